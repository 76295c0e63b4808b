//! Tools that the client has by itself, such as a shell: it asks before it calls one. What such a tool
//! returns is not seen, so its result has the highest label that the policy says of any part of it, from the
//! moment that the call is allowed.

use super::{Gateway, Routed};
use crate::decide::{Decision, Outcome, Refused};
use crate::note::Note;
use crate::program::{Param, ToolSpec};
use crate::session::SERVER_SEPARATOR;
use crate::upstream::{METHOD, Trust};
use core_ir::Data;
use serde_json::Value;

/// The most tools of a client, and the most arguments of one.
const MAX_OWN_TOOLS: usize = 512;
const MAX_PARAMS: usize = 64;

/// Decision about a call of a tool that the client has by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnDecision {
    /// The client may make it.
    Allowed,
    /// The client has to ask the user first, and may make it then.
    Asks,
    /// The client must not make it.
    Refused(Refused),
}

impl<T: Trust> Gateway<T> {
    /// Takes note of what the user asks for ([`crate::Session::user_asks`]).
    pub fn user_asks(&mut self, text: &str) {
        self.session.user_asks(text);
    }

    /// Decides a call of a tool that the client has by itself. It raises the label as if the call had been
    /// made.
    pub fn own_tool(&mut self, tool: &str, input: &Value) -> (OwnDecision, Vec<Routed>) {
        let mut out = Vec::new();
        let decision = self.decide_own(tool, input, &mut out);
        if let OwnDecision::Refused(refused) = &decision {
            out.push(Routed::Note(None, Note::Refused(refused.clone())));
        }
        (decision, self.checked(out))
    }

    fn decide_own(&mut self, tool: &str, input: &Value, out: &mut Vec<Routed>) -> OwnDecision {
        let is_of_server =
            tool.split_once(SERVER_SEPARATOR).is_some_and(|(s, _)| self.servers.iter().any(|m| m.short == s));
        if is_of_server || tool.starts_with(METHOD) {
            return OwnDecision::Refused(self.session.refuse(tool, "it is the name of a server's tool"));
        }
        if let Err(why) = self.offer_own(tool, input) {
            return OwnDecision::Refused(self.session.refuse(tool, why));
        }
        let Ok(args) = Data::from_json(input) else {
            return OwnDecision::Refused(self.session.refuse(tool, "its arguments can't be read"));
        };
        let mut is_asked = false;
        let mut decision = self.session.call(tool, &args);
        loop {
            decision = match decision {
                Decision::Allowed(allowed) => {
                    let (tool, label) = (allowed.tool().clone(), self.session.label());
                    out.push(Routed::Note(None, Note::Made { tool: tool.clone(), label: label.clone() }));
                    // A failure has the labels of all parts.
                    let outcome =
                        self.session.finish(allowed, Err("what it returns is not seen".into()), None);
                    let to = self.session.label();
                    if to != label {
                        out.push(Routed::Note(None, Note::Raised { by: tool, to }));
                    }
                    return match outcome {
                        Outcome::Withheld(refused) => OwnDecision::Refused(refused),
                        Outcome::Delivered if is_asked => OwnDecision::Asks,
                        Outcome::Delivered => OwnDecision::Allowed,
                    };
                }
                Decision::Asks(question) => {
                    is_asked = true;
                    out.push(Routed::Note(None, Note::Asked(question.tool().clone())));
                    // The client asks, and does not make the call if the user refuses.
                    self.session.answer(question, Ok(()))
                }
                Decision::Reads(read) => {
                    let why = Err("sets are not read for a tool of the client".into());
                    self.session.read(read, why, None)
                }
                Decision::Refused(refused) => return OwnDecision::Refused(refused),
            }
        }
    }

    /// Offers the tool with the arguments that it has had so far: nobody lists them.
    fn offer_own(&mut self, tool: &str, input: &Value) -> Result<(), &'static str> {
        let Some(fields) = input.as_object() else { return Err("its arguments are no object") };
        if !self.own_tools.contains_key(tool) && self.own_tools.len() >= MAX_OWN_TOOLS {
            return Err("the client has too many tools");
        }
        let params = self.own_tools.entry(tool.to_string()).or_default();
        params.extend(fields.keys().cloned());
        if params.len() > MAX_PARAMS {
            return Err("it has too many arguments");
        }
        let params = params.iter().map(|name| Param { name: name.as_str().into(), optional: true }).collect();
        self.session.offer([ToolSpec { name: tool.into(), params: Some(params), reads: false }]);
        Ok(())
    }
}
