//! Operations that all drivers of a session share: observing, results of other sessions, and keeping a
//! session.

use crate::decide::{Allowed, Decision, Outcome, SetRead};
use crate::note::Note;
use crate::program::{Param, ToolSpec};
use crate::session::{Raised, Session};
use core_ir::exchange::{data_from_json, data_json};
use core_ir::{Data, LabelSpec, Name};
use serde_json::{Map, Value, json};

/// Name of a tool of which nothing is known.
const UNKNOWN: &str = "mcp:unknown";

const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };

impl Session {
    /// Decides a call. With `observe` it is made all the same, and the note says what would have been refused
    /// or asked.
    pub fn decide(&mut self, tool: &str, args: &Data, observe: bool) -> (Decision, Option<Note>) {
        self.observing(tool, args, observe, |session| session.call(tool, args))
    }

    /// Takes the result of a set as [`Session::read`] does, and decides the call that waited for it as
    /// [`Session::decide`] does.
    pub fn decide_after(
        &mut self,
        read: SetRead,
        result: Result<Data, String>,
        stated: Option<LabelSpec>,
        args: &Data,
        observe: bool,
    ) -> (Decision, Option<Note>) {
        let tool = read.tool().clone();
        self.observing(&tool, args, observe, |session| session.read(read, result, stated))
    }

    fn observing(
        &mut self,
        tool: &str,
        args: &Data,
        observe: bool,
        decide: impl FnOnce(&mut Session) -> Decision,
    ) -> (Decision, Option<Note>) {
        if !observe {
            return (decide(self), None);
        }
        let mut probe = self.clone();
        let note = match decide(&mut probe) {
            Decision::Refused(refused) => Note::WouldRefuse(refused),
            Decision::Asks(_) => Note::WouldAsk(tool.into()),
            made => {
                *self = probe;
                return (made, None);
            }
        };
        self.keep_sets(probe);
        (self.admitted(tool, args), Some(note))
    }

    /// Admits a call whatever is known of it.
    fn admitted(&mut self, tool: &str, args: &Data) -> Decision {
        match self.admit(tool, args).or_else(|| self.admit_unknown(args)) {
            Some(allowed) => Decision::Allowed(allowed),
            None => Decision::Refused(self.refuse(tool, "the policy can't be used")),
        }
    }

    /// Admits a call whose arguments are not its parameters, or whose policy can't be used: the label of its
    /// result is not known, and counts as that of a tool of which nothing is.
    fn admit_unknown(&mut self, args: &Data) -> Option<Allowed> {
        self.offer([ToolSpec { name: UNKNOWN.into(), params: None, reads: true }]);
        self.admit(UNKNOWN, args)
    }

    /// Takes note of a result as [`Session::finish`] does. The notes say what changed. With `observe` nothing
    /// is withheld.
    pub fn conclude(
        &mut self,
        call: Allowed,
        result: Result<Data, String>,
        stated: Option<LabelSpec>,
        observe: bool,
    ) -> (Outcome, Vec<Note>) {
        let before = self.label();
        let by = call.tool().clone();
        let outcome = self.finish(call, result, stated);
        let to = self.label();
        let mut notes = Vec::new();
        if before != to {
            notes.push(Note::Raised { by, to });
        }
        match outcome {
            Outcome::Withheld(refused) if observe => {
                notes.push(Note::WouldRefuse(refused));
                (Outcome::Delivered, notes)
            }
            Outcome::Withheld(refused) => {
                notes.push(Note::Withheld(refused.clone()));
                (Outcome::Withheld(refused), notes)
            }
            Outcome::Delivered => (Outcome::Delivered, notes),
        }
    }

    /// Takes note of a result that the model is shown and that is of no call of this session: of an earlier
    /// session, or of a tool that a provider carries out. Only its tool and arguments are known, so it counts
    /// as a failure, which has the labels of all parts.
    pub fn seen(&mut self, tool: &str, args: &Data) {
        let mut probe = self.clone();
        if !probe.knows(tool) {
            let names = match args {
                Data::Record(fields) => fields.iter().map(|(name, _)| name.clone()).collect(),
                _ => Vec::new(),
            };
            let param = |name: Name| Param { name, optional: true };
            let params = Some(names.into_iter().map(param).collect());
            probe.offer([ToolSpec { name: tool.into(), params, reads: false }]);
        }
        let failed = || Err(String::new());
        match probe.admit(tool, args) {
            Some(allowed) => {
                let _ = probe.finish(allowed, failed(), None);
                self.adopt(&probe);
            }
            // Its parameters are others, or the policy does not fit them.
            None => {
                let label = self.result_of(tool).unwrap_or(UNTRUSTED);
                match self.admit_unknown(args) {
                    Some(allowed) => drop(self.finish(allowed, failed(), Some(label))),
                    // While the policy does not fit the tools, no call is allowed. Nothing can follow from it
                    // before it is mended, and then it may be anything.
                    None => self.raise_to_top(tool),
                }
            }
        }
    }

    /// State that must outlive the process: the label, what raised it, and the calls that were counted.
    pub fn save(&self) -> Value {
        let raised: Vec<Value> = self.raised().iter().map(|r| json!({"by": &*r.by, "to": r.to})).collect();
        let counted: Map<String, Value> =
            self.counted().iter().map(|(name, n)| (name.to_string(), (*n).into())).collect();
        json!({"label": data_json(&self.label_data()), "raised": raised, "counted": counted})
    }

    /// Joins what another session of the same policy saved: both conversations are one from here on.
    ///
    /// # Errors
    /// It was not saved by a session with this lattice, in words for people. The session is unchanged.
    pub fn join(&mut self, saved: &Value) -> Result<(), String> {
        let wrong = || "it is not what a session with this policy saved".to_string();
        let label = data_from_json(&saved["label"]).map_err(|_| wrong())?;
        let entry = |raised: &Value| {
            Some(Raised { by: raised["by"].as_str()?.into(), to: raised["to"].as_str()?.into() })
        };
        let raised: Option<Vec<Raised>> =
            saved["raised"].as_array().and_then(|all| all.iter().map(entry).collect());
        let count = |(name, n): (&String, &Value)| Some((Name::from(name.as_str()), n.as_u64()?));
        let counted: Option<Vec<(Name, u64)>> =
            saved["counted"].as_object().and_then(|all| all.iter().map(count).collect());
        let (Some(raised), Some(counted)) = (raised, counted) else { return Err(wrong()) };
        if self.join_saved(&label, raised, &counted) { Ok(()) } else { Err(wrong()) }
    }
}
