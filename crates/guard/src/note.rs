//! Notes for whoever keeps the policy.

use crate::decide::Refused;
use core_ir::Name;
use serde_json::{Value, json};

/// A note for whoever keeps the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A call or a message was refused.
    Refused(Refused),
    /// It would have been, by a guard that does more than observe.
    WouldRefuse(Refused),
    /// A person was asked about a call of the tool.
    Asked(Name),
    /// A person would have been asked.
    WouldAsk(Name),
    /// A result was not delivered.
    Withheld(Refused),
    /// The label of the conversation was raised.
    Raised {
        /// The tool whose result raised it.
        by: Name,
        /// The label from then on.
        to: String,
    },
    /// A description of the server was left out, for this reason.
    LeftOut {
        /// Its name.
        what: String,
        /// Why.
        why: String,
    },
    /// A message that can't be passed on.
    Invalid {
        /// True if it is the server's.
        by_server: bool,
        /// The problem.
        why: String,
    },
    /// The policy doesn't fit the tools of the server: no call is allowed.
    Policy(String),
    /// A call was made, at this label of the conversation.
    Made {
        /// The tool.
        tool: Name,
        /// The label.
        label: String,
    },
    /// The result of a call was read from what was written at a label above that of the conversation.
    Recalled {
        /// The tool.
        tool: Name,
        /// Tools whose results had raised that label when it was written.
        raised_by: Vec<Name>,
    },
    /// Items of a result were left out, as the policy says.
    Filtered {
        /// The tool.
        tool: Name,
        /// Number of items.
        items: usize,
    },
    /// A result or parts of it were kept from the model, which has these handles.
    Kept {
        /// The tool.
        tool: Name,
        /// The handles.
        handles: Vec<Name>,
    },
    /// A quarantined model was asked about a handle.
    Inquired {
        /// The handle.
        handle: Name,
        /// The model.
        model: Name,
    },
    /// A quarantined model gave no answer, for this reason. The client is not told.
    Unanswered(String),
    /// A server is gone, for this reason. The others stay.
    Gone(String),
    /// A server that was gone has been started again.
    Back,
    /// The user has begun a new conversation.
    Fresh {
        /// The label of the conversation before.
        from: String,
        /// The label that it begins with: that of texts which the client keeps showing.
        to: String,
    },
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Note::Refused(r) => write!(f, "refused: {r}"),
            Note::WouldRefuse(r) => write!(f, "would refuse: {r}"),
            Note::Withheld(r) => write!(f, "withheld the result: {r}"),
            Note::Asked(tool) => write!(f, "asked a person about a call of `{tool}`"),
            Note::WouldAsk(tool) => write!(f, "would ask a person about a call of `{tool}`"),
            Note::Raised { by, to } => write!(f, "the conversation is labeled {to} from here on: `{by}`"),
            Note::LeftOut { what, why } => write!(f, "left out {what}: {why}"),
            Note::Invalid { by_server, why } => {
                write!(f, "a message of the {} was not passed on: {why}", who(*by_server))
            }
            Note::Policy(why) => write!(f, "the policy does not fit the tools, so no call is allowed: {why}"),
            Note::Made { tool, label } => write!(f, "made a call of `{tool}` at the label {label}"),
            Note::Recalled { tool, raised_by } => {
                let by: Vec<String> = raised_by.iter().map(|n| format!("`{n}`")).collect();
                write!(f, "`{tool}` read what was written after calls of {}", by.join(", "))
            }
            Note::Filtered { tool, items } => {
                write!(f, "left out {items} items of what `{tool}` returned")
            }
            Note::Kept { tool, handles } => {
                let names: Vec<&str> = handles.iter().map(|n| &**n).collect();
                write!(f, "kept what `{tool}` returned as {}", names.join(", "))
            }
            Note::Inquired { handle, model } => write!(f, "asked the model `{model}` about {handle}"),
            Note::Unanswered(why) => write!(f, "a question about a handle has no answer: {why}"),
            Note::Gone(how) => write!(f, "the server is gone: {how}"),
            Note::Back => write!(f, "the server is there again"),
            Note::Fresh { from, to } => {
                write!(f, "a new conversation begins at the label {to}, after one labeled {from}")
            }
        }
    }
}

fn who(server: bool) -> &'static str {
    if server { "server" } else { "client" }
}

impl Note {
    /// The note as an object.
    pub fn to_json(&self) -> Value {
        let refused = |event: &str, r: &Refused| {
            let mut out = json!({"event": event, "tool": &*r.tool, "message": r.message, "remedy": r.remedy,
                "label": r.label, "raisedBy": r.raised_by.iter().map(|n| &**n).collect::<Vec<_>>()});
            if let Some((part, label, bound)) = &r.broke {
                out["broke"] = json!({"part": part, "label": label, "bound": bound});
            }
            out
        };
        match self {
            Note::Refused(r) => refused("refused", r),
            Note::WouldRefuse(r) => refused("would_refuse", r),
            Note::Withheld(r) => refused("withheld", r),
            Note::Asked(tool) => json!({"event": "asked", "tool": &**tool}),
            Note::WouldAsk(tool) => json!({"event": "would_ask", "tool": &**tool}),
            Note::Raised { by, to } => json!({"event": "raised", "by": &**by, "label": to}),
            Note::LeftOut { what, why } => json!({"event": "left_out", "what": what, "message": why}),
            Note::Invalid { by_server, why } => {
                json!({"event": "invalid", "of": who(*by_server), "message": why})
            }
            Note::Policy(why) => json!({"event": "policy", "message": why}),
            Note::Made { tool, label } => json!({"event": "made", "tool": &**tool, "label": label}),
            Note::Recalled { tool, raised_by } => {
                let by: Vec<&str> = raised_by.iter().map(|n| &**n).collect();
                json!({"event": "recalled", "tool": &**tool, "raisedBy": by})
            }
            Note::Filtered { tool, items } => {
                json!({"event": "filtered", "tool": &**tool, "items": items})
            }
            Note::Kept { tool, handles } => {
                let names: Vec<&str> = handles.iter().map(|n| &**n).collect();
                json!({"event": "kept", "tool": &**tool, "handles": names})
            }
            Note::Inquired { handle, model } => {
                json!({"event": "inquired", "handle": &**handle, "model": &**model})
            }
            Note::Unanswered(why) => json!({"event": "unanswered", "message": why}),
            Note::Gone(how) => json!({"event": "gone", "message": how}),
            Note::Back => json!({"event": "back"}),
            Note::Fresh { from, to } => json!({"event": "fresh", "from": from, "label": to}),
        }
    }
}
