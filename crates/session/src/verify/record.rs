//! The record of a run that is checked: its program, what it was given, its answers and its end.

use crate::kept;
use core_ir::exchange::data_json;
use core_ir::{Data, LabelSpec, Name, py};
use machine::RequestId;
use runtime::{
    AFTER_RUN, Approvers, Edit, Journal, JournalError, KeptEntry, KeptMessages, KeptQuestion, KeptRun,
    POLICY_CHANGED, RunStatus, Via,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use verify::{FindingKind, Step};

/// A recorded run, from a journal or a receipt.
#[derive(Clone, Debug)]
pub struct Record {
    /// Identifier of the run.
    pub run: String,
    /// For people: the file and what of it was run.
    pub name: String,
    /// The program as `.lam`.
    pub program: String,
    /// The input.
    pub input: Option<Data>,
    /// Label of the input.
    pub input_label: LabelSpec,
    /// The settings that it was begun with.
    pub settings: Value,
    /// How it stands.
    pub status: RunStatus,
    /// JSON of the result, or of the error.
    pub outcome: Option<Value>,
    /// The requests.
    pub entries: BTreeMap<RequestId, KeptEntry>,
    /// The messages of their conversations.
    pub messages: KeptMessages,
    /// Questions to people.
    pub questions: HashMap<RequestId, KeptQuestion>,
    /// The last step that an earlier program of the run may have made.
    pub changed_to: u64,
    /// Parts that are not as they were written, with the step.
    pub damage: Vec<(Option<u64>, String)>,
    /// Approvers whose public keys are known.
    pub approvers: Approvers,
    /// True if it is of a receipt that does not show everything.
    pub is_redacted: bool,
}

/// Reason why there is no record.
pub type RecordError = JournalError;

impl Record {
    /// Takes a run out of a journal. Of approvals, those of these approvers can be checked.
    ///
    /// # Errors
    /// There is no such run, or its rows can't be read.
    pub fn of(journal: Journal, run: &str, approvers: Approvers) -> Result<Record, RecordError> {
        let journal = journal.with_approvers(approvers.clone());
        let KeptRun { info, program, input, settings, changes, entries, messages, questions, damage } =
            journal.kept(run)?;
        Ok(Record {
            run: info.id,
            name: info.name,
            program,
            input,
            input_label: kept::input_label(&settings),
            settings,
            status: info.status,
            outcome: info.outcome,
            entries,
            messages,
            questions,
            changed_to: changes.last().map_or(0, |c| c.step),
            damage: damage.into_iter().map(|d| (d.step, d.what)).collect(),
            approvers,
            is_redacted: false,
        })
    }

    /// Seed of its samples.
    pub(super) fn seed(&self) -> u64 {
        self.settings["seed"].as_u64().unwrap_or(0)
    }

    /// Returns true if it was resumed with another policy.
    pub(super) fn policy_changed(&self) -> bool {
        self.settings[POLICY_CHANGED] == true
    }

    /// Kind of run that is not checked.
    pub(super) fn unsupported(&self) -> Option<String> {
        if self.settings["planned"] == true {
            return Some("a run of several programs: a plan that a server had written".into());
        }
        if self.settings.get(AFTER_RUN).is_some() {
            return Some("a run that reuses the answers of an earlier one".into());
        }
        if self.settings["hidden"] == true {
            return Some("a run whose input the receipt does not show".into());
        }
        kept::policy_text(&self.settings).err().map(String::from)
    }

    /// Compares what a person was asked with what the program asks, and looks for who answered. `Err(Ok(_))`
    /// says why that is not known, `Err(Err(_))` what is wrong.
    pub(super) fn approval(
        &self,
        step: &Step,
        (tool, args): (&Name, &[(Name, Data)]),
        entry: &KeptEntry,
    ) -> Result<(), Result<String, (FindingKind, String)>> {
        let question = self.questions.get(&step.id);
        if let Some(question) = question {
            let arg = |((name, value), label): (&(Name, Data), &Data)| json!({"name": &**name, "value": data_json(&py::shown(value)), "label": data_json(label)});
            let now: Value = args.iter().zip(&step.arguments).map(arg).collect();
            let plain = |args: &Value| -> Value {
                args.as_array().into_iter().flatten().map(|a| json!([a["name"], a["value"]])).collect()
            };
            let wrong = |kind, what: &str| Err(Err((kind, what.to_string())));
            let (asked, channel) = (question.args(), question.channel());
            if question.tool() != &**tool || plain(&asked) != plain(&now) {
                return wrong(FindingKind::Approval, "somebody was asked about another call");
            }
            if asked != now || (channel != data_json(&step.channel) && !channel.is_null()) {
                return wrong(FindingKind::Label, "somebody was asked about a call with other labels");
            }
            if !question.is_intact() {
                return wrong(FindingKind::Damaged, "the question is not what was written");
            }
        }
        let verdict = match entry.answer(&step.call) {
            Some(Ok(machine::Response::Approve(verdict))) => verdict.map(|()| None).ok(),
            Some(Ok(machine::Response::Edited { args, label })) => Some(Some(Edit { args, label })),
            _ => return Ok(()),
        };
        let by = entry.decider();
        let signed = question.and_then(|q| q.signed(&self.approvers)).map(Result::ok);
        match (by.as_ref().map(|by| by.via), signed) {
            (Some(Via::Key), Some(decision)) if decision == verdict => Ok(()),
            (Some(Via::Key), Some(_)) => {
                Err(Err((FindingKind::Approval, "the approver decided otherwise".into())))
            }
            (Some(Via::Key), None) => {
                let name = by.map_or_else(String::new, |by| by.name.to_string());
                if self.approvers.key(&name).is_none() {
                    return Err(Ok(format!("who approved it: the settings have no key of `{name}`")));
                }
                let message = format!("no answer of the approver `{name}` is signed");
                Err(Err((FindingKind::Approval, message)))
            }
            // Nothing was endorsed.
            _ if verdict.is_none() => Ok(()),
            _ => Err(Ok(format!("who approved it: nobody signed that{}", said_by(entry)))),
        }
    }
}

/// Who is said to have approved a call.
fn said_by(entry: &KeptEntry) -> String {
    entry.decider().map_or_else(String::new, |by| format!(" (the record says `{}`)", by.name))
}
