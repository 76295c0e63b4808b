//! The inbox: calls that wait for approval, with the facts, and their answers.

use super::{Refusal, Ui, aside, body_json};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use core_ir::Data;
use core_ir::exchange::data_from_json;
use runtime::{Approvers, Authority, Decision, RunInfo, Schema, Waiting};
use serde::Deserialize;
use serde_json::{Value, json};
use session::kept::{AskedBecause, KeptRun};
use session::keyring;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// The approvers whose keys are on this machine.
pub(super) fn keys(approvers: &Approvers) -> Vec<String> {
    let has_key = |name: &&str| keyring::find(approvers, Some(name)).is_ok();
    approvers.names().filter(has_key).map(String::from).collect()
}

/// The calls that wait, the oldest first.
pub(super) async fn list(State(ui): State<Arc<Ui>>) -> Result<Json<Value>, Refusal> {
    aside(move || ui.waiting()).await.map(Json)
}

impl Ui {
    fn waiting(&self) -> Result<Value, Refusal> {
        let journal = self.journal()?;
        let mut runs: HashMap<String, Option<Asking>> = HashMap::new();
        let mut all = Vec::new();
        for question in journal.waiting(None)? {
            let info = journal.run(&question.run)?;
            let asking = runs.entry(question.run.clone()).or_insert_with(|| self.asking(&question.run));
            all.push(card(&info, &question, asking.as_ref()));
        }
        Ok(json!({"approvals": all, "keys": keys(&self.approvers)}))
    }

    /// Course of a run until it asked; `None` if its program was not kept or can't be read.
    fn asking(&self, run: &str) -> Option<Asking> {
        let (kept, document) = self.document(run).ok()?;
        let kept = kept?;
        let number = |line: &Value| line["n"].as_u64();
        let lines = document.lines.into_iter().filter(|line| number(line).is_some()).collect();
        Some(Asking { kept, lines, numbers: document.numbers })
    }
}

/// A run that asks.
struct Asking {
    kept: KeptRun,
    lines: Vec<Value>,
    numbers: HashMap<machine::RequestId, usize>,
}

impl Asking {
    fn number(&self, question: &Waiting) -> Option<u64> {
        u64::try_from(*self.numbers.get(&question.id)?).ok()
    }

    /// The request for the call in the trace.
    fn request(&self, question: &Waiting) -> Option<&Value> {
        let n = self.number(question)?;
        self.lines.iter().find(|line| line["event"] == "request" && line["n"] == n)
    }

    /// Where the labels of the call come from: `why` of its request in the trace.
    fn why(&self, question: &Waiting) -> Option<&Value> {
        self.request(question)?.get("why")
    }

    /// The label of the decision to make the call. It is not that of the question: whether an `if-refused`
    /// call is asked about depends on the arguments as well.
    fn control(&self, question: &Waiting) -> Option<Data> {
        let why = self.request(question)?["why"].as_array();
        let part = why.into_iter().flatten().find(|part| part["of"] == "control");
        // Parts without a label are left out.
        part.map_or_else(|| Some(Data::list([])), |part| Data::from_json(&part["label"]).ok())
    }

    /// The number of an earlier request for the same call that was refused.
    fn refused_before(&self, question: &Waiting) -> Option<u64> {
        let (n, now) = (self.number(question)?, self.request(question)?);
        let is_same = |line: &&Value| {
            line["event"] == "request"
                && line["kind"] == "approve"
                && line["tool"] == now["tool"]
                && line["args"] == now["args"]
                && line["n"].as_u64().is_some_and(|m| m < n)
        };
        let was_refused = |m: &u64| {
            self.lines.iter().any(|l| l["event"] == "response" && l["n"] == *m && l.get("error").is_some())
        };
        self.lines.iter().filter(is_same).filter_map(|line| line["n"].as_u64()).find(was_refused)
    }
}

/// A question with what an approver needs to know.
fn card(info: &RunInfo, question: &Waiting, asking: Option<&Asking>) -> Value {
    let plain = |json: &Value| data_from_json(json).map_or_else(|_| json.clone(), |data| data.to_json());
    let tool = asking.and_then(|a| session::approvals::declaration(&a.kept, question));
    let args: Vec<Value> = question
        .args
        .as_array()
        .into_iter()
        .flatten()
        .map(|arg| {
            // What the parameter takes; null if that is not known, and then it can't be edited.
            let param = tool.and_then(|t| t.params.iter().find(|p| Some(&*p.name) == arg["name"].as_str()));
            json!({
                "name": arg["name"], "value": plain(&arg["value"]), "label": plain(&arg["label"]),
                "type": param.map(|p| p.ty.to_string()), "schema": param.and_then(|p| Some(Schema::of(&p.ty)?.json)),
            })
        })
        .collect();
    let control = asking.and_then(|a| a.control(question));
    let because = asking.zip(control.as_ref()).map(|(a, control)| match a.kept.asked_because(question, control) {
        AskedBecause::Always => json!({"kind": "always"}),
        AskedBecause::Unknown => json!({"kind": "unknown"}),
        AskedBecause::Refused(parts) => {
            let part = |p: session::kept::BrokenBound| {
                json!({"part": p.part, "label": p.label.to_json(), "bound": p.bound.to_json()})
            };
            json!({"kind": "refused", "parts": parts.into_iter().map(part).collect::<Vec<_>>()})
        }
    });
    json!({
        "request": question.token, "run": question.run, "name": info.name, "tool": question.tool, "args": args,
        "control": control.map(|label| label.to_json()), "decided": question.is_decided, "asked": question.asked, "expires": question.expires,
        "n": asking.and_then(|a| a.number(question)), "why": asking.and_then(|a| a.why(question)),
        "because": because, "refusedBefore": asking.and_then(|a| a.refused_before(question)),
    })
}

/// Body of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    decision: Verdict,
    reason: Option<String>,
    /// Arguments in place of those of the call.
    edit: Option<Value>,
    /// The approver whose key signs; not needed if this machine has one key.
    approver: Option<String>,
    passphrase: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Approve,
    Deny,
}

/// An answer, before the question is known.
enum Said {
    Decision(Decision),
    Edit(Value),
}

/// The most characters of a reason.
const MAX_REASON: usize = 2000;

/// Answers a question by its whole name. The answer is signed with the approver's key and written into the
/// journal, where the run finds it, whichever process it is in.
pub(super) async fn decide(
    State(ui): State<Arc<Ui>>,
    Path(request): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    // No message says what was sent: a passphrase is in it.
    let answer: Answer = serde_json::from_value(body_json(&headers, &body)?)
        .map_err(|_| Refusal::Input("the body is not an answer".into()))?;
    let reason = answer.reason.as_deref().map(str::trim).filter(|text| !text.is_empty());
    if reason.is_some_and(|text| text.chars().count() > MAX_REASON) {
        return Err(Refusal::Input(format!("a reason has at most {MAX_REASON} characters")));
    }
    let said = match (answer.decision, answer.edit) {
        (Verdict::Approve, _) if reason.is_some() => {
            return Err(Refusal::Input("a reason is for a refusal".into()));
        }
        (Verdict::Deny, Some(_)) => return Err(Refusal::Input("an edit is for an approval".into())),
        (Verdict::Approve, Some(edit)) => Said::Edit(edit),
        (Verdict::Approve, None) => Said::Decision(Decision::Approve),
        (Verdict::Deny, None) => Said::Decision(Decision::Deny(reason.map(String::from))),
    };
    aside(move || ui.decide(&request, said, answer.approver.as_deref(), &answer.passphrase)).await.map(Json)
}

impl Ui {
    fn decide(
        &self,
        request: &str,
        said: Said,
        approver: Option<&str>,
        passphrase: &str,
    ) -> Result<Value, Refusal> {
        let mut journal = self.journal()?;
        let Some(question) = journal.question(request)? else {
            return Err(Refusal::NotFound("unknown question: the run may have gone on".into()));
        };
        let decision = match said {
            Said::Decision(decision) => decision,
            Said::Edit(edit) => {
                session::approvals::edited(&self.journal, &question, &edit).map_err(Refusal::Input)?
            }
        };
        let key = {
            // A panic while it was held changes nothing.
            let _one = self.unlocking.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = keyring::find(&self.approvers, approver).and_then(|key| key.open(passphrase));
            opened.map_err(|e| Refusal::Forbidden(e.message, e.help))?
        };
        let decided = journal.decide(request, &decision, &Authority::Key(&key));
        decided.map_err(|e| Refusal::Conflict(e.message))?;
        let verdict = decision.verdict();
        Ok(json!({"request": request, "run": question.run, "verdict": verdict, "by": key.name()}))
    }
}
