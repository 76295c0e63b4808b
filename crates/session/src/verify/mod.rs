//! Checking recorded runs: their journals, their course on the machine, and their course on the interpreter
//! that is extracted from the proofs.
//!
//! Entry points: [`Record::of`] takes a run out of a journal, [`check`] checks it.
//!
//! Invariant: a run is [`Verdict::Verified`] only if the record is as it was written, the machine and the
//! interpreter make exactly its requests, and both end as it says. What one of them does not cover is named,
//! and makes the verdict [`Verdict::Unknown`].

mod receipt;
mod record;

pub use receipt::{MAX_BYTES, Openings, Receipt, ReceiptError, Signer};
pub use record::{Record, RecordError};

use crate::kept;
use core_ir::Code;
use diagnostics::Sources;
use machine::{Call, Config, RequestId};
use policy::Policy;
use runtime::{Interpreter, InterpreterError, REDACTED, RunStatus, run_end};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use verify::{Case, Compared, End, Finding, FindingKind, Found, Recording, Replay, compare, replay};

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All of it is as it should be.
    Verified,
    /// A part could not be checked.
    Unknown,
    /// The record is not one of a run of the program.
    Refuted,
}

impl Verdict {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Verified => "verified",
            Verdict::Unknown => "unknown",
            Verdict::Refuted => "refuted",
        }
    }
}

/// A checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checker {
    /// Signature of a receipt.
    Signature,
    /// Checksums and links of the record.
    Record,
    /// The machine, which ran it.
    Machine,
    /// The interpreter that is extracted from the proofs.
    Interpreter,
}

impl Checker {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Checker::Signature => "signature",
            Checker::Record => "record",
            Checker::Machine => "machine",
            Checker::Interpreter => "interpreter",
        }
    }
}

/// One check of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The checker.
    pub by: Checker,
    /// Its verdict.
    pub verdict: Verdict,
    /// Number of requests that were checked.
    pub requests: usize,
    /// True if the end of the run was checked as well.
    pub end: bool,
    /// Which interpreter it was, for [`Checker::Interpreter`].
    pub identity: Option<String>,
}

/// A part that was not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// Who could not check it.
    pub by: Checker,
    /// The step, if it is one.
    pub step: Option<u64>,
    /// The construct, or the reason.
    pub what: String,
}

/// The checks of a run, by whom, and what came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The checks, in the order in which they were made.
    pub checks: Vec<Check>,
    /// The defects, each with the check that noticed it.
    pub findings: Vec<(Checker, Finding)>,
    /// The parts that could not be checked.
    pub unchecked: Vec<Unchecked>,
}

impl Verification {
    /// The verdict of all checks together.
    pub fn verdict(&self) -> Verdict {
        let all = self.checks.iter().map(|check| check.verdict);
        all.max().unwrap_or(Verdict::Unknown)
    }

    /// The verification as JSON.
    pub fn to_json(&self) -> Value {
        let check = |c: &Check| {
            let mut o = json!({"by": c.by.as_str(), "verdict": c.verdict.as_str()});
            if matches!(c.by, Checker::Machine | Checker::Interpreter) {
                o["requests"] = c.requests.into();
                o["end"] = c.end.into();
            }
            if let Some(identity) = &c.identity {
                o["interpreter"] = identity.as_str().into();
            }
            o
        };
        let finding = |(by, f): &(Checker, Finding)| json!({"by": by.as_str(), "step": f.step, "kind": f.kind.as_str(), "message": f.message});
        let unchecked = |u: &Unchecked| json!({"by": u.by.as_str(), "step": u.step, "what": u.what});
        json!({
            "verdict": self.verdict().as_str(),
            "checks": self.checks.iter().map(check).collect::<Value>(),
            "findings": self.findings.iter().map(finding).collect::<Value>(),
            "unknown": self.unchecked.iter().map(unchecked).collect::<Value>(),
        })
    }

    /// Puts other checks before these.
    pub fn prepend(&mut self, first: Verification) {
        let then = std::mem::replace(self, first);
        self.checks.extend(then.checks);
        self.findings.extend(then.findings);
        self.unchecked.extend(then.unchecked);
    }

    pub(crate) fn push(&mut self, by: Checker, requests: usize, end: bool, identity: Option<String>) {
        let has = |found: bool, verdict| found.then_some(verdict);
        let refuted = has(self.findings.iter().any(|(who, _)| *who == by), Verdict::Refuted);
        let unknown = has(self.unchecked.iter().any(|u| u.by == by), Verdict::Unknown);
        let verdict = refuted.or(unknown).unwrap_or(Verdict::Verified);
        self.checks.push(Check { by, verdict, requests, end, identity });
    }
}

/// A program that was run, with what it was run on.
struct Program {
    code: Arc<Code>,
    config: Config,
}

/// A run that was checked.
pub struct Checked {
    /// The verdict.
    pub verification: Verification,
    /// The course of the run on the machine and how that was configured, if its program could be read.
    pub course: Option<(Replay, Config)>,
}

/// Checks a record; `interpreter` is the one that is there, or why there is none.
pub fn check(
    record: &Record,
    interpreter: &Result<Interpreter, InterpreterError>,
    limit: Duration,
) -> Checked {
    let mut verification = Verification { checks: Vec::new(), findings: Vec::new(), unchecked: Vec::new() };
    for (step, message) in &record.damage {
        let finding = Finding { step: *step, kind: FindingKind::Damaged, message: message.clone() };
        verification.findings.push((Checker::Record, finding));
    }
    verification.push(Checker::Record, record.entries.len(), true, None);
    let program = match Program::of(record) {
        Ok(program) => program,
        Err(problem) => {
            match problem {
                Unreadable::Wrong(message) => {
                    let finding = Finding { step: None, kind: FindingKind::Program, message };
                    verification.findings.push((Checker::Machine, finding));
                }
                Unreadable::Unknown(what) => {
                    for by in [Checker::Machine, Checker::Interpreter] {
                        verification.unchecked.push(Unchecked { by, step: None, what: what.clone() });
                    }
                }
            }
            verification.push(Checker::Machine, 0, false, None);
            return Checked { verification, course: None };
        }
    };
    let (input, config) = (record.input.clone(), program.config.clone());
    let course = replay(&program.code, input, config, record.seed(), &mut Answers { record });
    machine_check(record, &course, &mut verification);
    interpreter_check(record, &program, &course, interpreter, limit, &mut verification);
    Checked { verification, course: Some((course, program.config)) }
}

/// Judges the course of a record on the machine.
fn machine_check(record: &Record, course: &Replay, verification: &mut Verification) {
    let by = Checker::Machine;
    let mut findings = course.findings.clone();
    let mut unknown = |step, what: &str| {
        verification.unchecked.push(Unchecked { by, step, what: what.to_string() });
    };
    for step in &course.uncleared {
        unknown(
            Some(*step),
            "whether the model may see the conversation: the policy knows it by another name",
        );
    }
    for step in &course.raced {
        unknown(Some(*step), "a request of a branch that another one's error may have ended");
    }
    let mut withheld = false;
    for step in &course.steps {
        let Some(entry) = record.entries.get(&step.id) else { continue };
        let hidden = match (entry.is_withheld(), entry.is_redacted()) {
            (true, _) => Some("an answer that held a secret, and what follows from it"),
            (_, true) => Some("an answer that the receipt does not show, and what follows from it"),
            _ => None,
        };
        if let Some(what) = hidden {
            withheld = true;
            unknown(Some(entry.step), what);
        }
        if ["args", "value"].iter().any(|part| entry.request[*part].get(REDACTED).is_some()) {
            unknown(Some(entry.step), "arguments that the receipt does not show");
        }
        if let Call::Approve { tool, args, .. } = &step.call {
            match record.approval(step, (&tool.name, args), entry) {
                Ok(()) => {}
                Err(Ok(what)) => unknown(step.step, &what),
                Err(Err((kind, message))) => findings.push(Finding { step: step.step, kind, message }),
            }
        }
    }
    // It was stopped from outside, behind its last answer.
    let outran = record.status == RunStatus::Stopped
        && matches!(&course.end, End::Ended(result) if !result.as_ref().is_err_and(|f| f.code.is_final()));
    if outran {
        unknown(None, "that the run was stopped: its answers lead to its end");
    }
    if record.policy_changed() {
        unknown(None, "steps of an earlier policy: the run was resumed with another one");
    }
    if record.is_redacted {
        // Behind what is not shown, whatever is left can't be told from what was altered; the signature is
        // for that.
        if let Some(first) = findings.drain(..).next() {
            unknown(first.step, "what follows from requests that the receipt does not show");
        }
    } else if findings.is_empty() && !withheld && !outran {
        findings.extend(end_of(record, course));
    }
    verification.findings.extend(findings.into_iter().map(|finding| (by, finding)));
    let ended = matches!(course.end, End::Ended(_));
    let answered = course.steps.iter().filter(|s| s.response.is_some()).count();
    verification.push(by, answered, ended, None);
}

/// Compares the end of a run with its record.
fn end_of(record: &Record, course: &Replay) -> Option<Finding> {
    let finding = |kind, message: String| Some(Finding { step: None, kind, message });
    match (&course.end, record.status) {
        (End::Wrong, _) => None,
        // Whoever is killed behind the last answer writes no end.
        (End::Ended(_), RunStatus::Running) | (End::Open, RunStatus::Running | RunStatus::Stopped) => None,
        (End::Open, RunStatus::Done | RunStatus::Failed) => {
            let what = course.unanswered.as_deref().unwrap_or("a request");
            let message =
                format!("the run is said to have ended, and the record has no answer to this: {what}");
            let last = record.entries.values().filter(|e| e.response.is_some()).map(|e| e.step).max();
            Some(Finding { step: Some(last.unwrap_or(0) + 1), kind: FindingKind::Missing, message })
        }
        (End::Ended(result), status) => {
            let (now, outcome) = run_end(result, &runtime::Redactor::default());
            if now != status {
                let message =
                    format!("the run is said to be `{}`, and is `{}`", status.as_str(), now.as_str());
                return finding(FindingKind::Result, message);
            }
            if record.outcome.as_ref() == Some(&outcome) {
                return None;
            }
            let was = record.outcome.as_ref().map_or_else(|| "nothing".into(), Value::to_string);
            let message = format!(
                "the result was {}, and is {}",
                diagnostics::clip_to(&was, 120),
                diagnostics::clip_to(&outcome.to_string(), 120)
            );
            finding(FindingKind::Result, message)
        }
    }
}

/// Has the interpreter run the record, as far as the machine found nothing wrong with it.
fn interpreter_check(
    record: &Record,
    program: &Program,
    course: &Replay,
    interpreter: &Result<Interpreter, InterpreterError>,
    limit: Duration,
    verification: &mut Verification,
) {
    let by = Checker::Interpreter;
    if verification.findings.iter().any(|(who, _)| *who == Checker::Machine) {
        return;
    }
    let mut unknown = |step, what: String| verification.unchecked.push(Unchecked { by, step, what });
    let interpreter = match interpreter {
        Ok(interpreter) => interpreter,
        Err(why) => {
            unknown(None, why.to_string());
            return verification.push(by, 0, false, None);
        }
    };
    let identity = Some(interpreter.identity().to_string());
    let case = match Case::of(&program.code, record.input.as_ref(), &program.config, course) {
        Ok(case) => case,
        Err(uncovered) => {
            unknown(uncovered.step, uncovered.construct);
            return verification.push(by, 0, false, identity);
        }
    };
    let compared = match interpreter.run(&case.input, limit) {
        Ok(answer) => compare(&case, course, &answer),
        Err(why) => {
            unknown(None, why.to_string());
            return verification.push(by, 0, false, identity);
        }
    };
    match compared {
        Compared::Same { requests, end, .. } => {
            let left = course.steps[requests.min(course.steps.len())..].iter().find(|s| s.response.is_some());
            if let Some(step) = left {
                unknown(step.step, "requests of branches behind one that was not answered".into());
            }
            verification.push(by, requests, end, identity);
        }
        Compared::Differs(finding) => {
            verification.findings.push((by, finding));
            verification.push(by, 0, false, identity);
        }
        Compared::Uncovered(uncovered) => {
            unknown(uncovered.step, uncovered.construct);
            verification.push(by, 0, false, identity);
        }
    }
}

/// Reason why a program can't be run again.
enum Unreadable {
    /// It is not what a run has.
    Wrong(String),
    /// It is of a kind that is not checked.
    Unknown(String),
}

impl Program {
    fn of(record: &Record) -> Result<Program, Unreadable> {
        if let Some(what) = record.unsupported() {
            return Err(Unreadable::Unknown(what));
        }
        let mut sources = Sources::new();
        let file = sources.add("program.lam", &*record.program);
        let parsed = agentlang::calculus::compile(file, &record.program);
        let Some(code) = parsed.code else {
            let why = parsed.diagnostics.first().map_or_else(String::new, |d| format!(": {}", d.message));
            return Err(Unreadable::Wrong(format!("the program of the record can't be read{why}")));
        };
        let text = kept::policy_text(&record.settings).map_err(|why| Unreadable::Unknown(why.into()))?;
        let policy = match text {
            None => None,
            Some(text) => {
                let file = sources.add("policy.toml", text);
                let policy = Policy::parse_kept(file, text);
                Some(policy.map_err(|_| Unreadable::Wrong("the policy of the record can't be read".into()))?)
            }
        };
        let mut config = kept::config(&record.settings, policy.as_ref());
        config.input = record.input_label.clone();
        Ok(Program { code: Arc::new(code), config })
    }
}

/// The answers of a record.
struct Answers<'a> {
    record: &'a Record,
}

impl Recording for Answers<'_> {
    fn look_up(&mut self, id: RequestId, call: &Call) -> Found {
        let Some(entry) = self.record.entries.get(&id) else { return Found::Missing };
        let step = entry.response.is_some().then_some(entry.step);
        let wrong = |kind, message| Found::Wrong(Finding { step, kind, message });
        if let Some(why) = entry.difference(&self.record.messages, call) {
            return wrong(FindingKind::Request, format!("the program makes another request: {why}"));
        }
        match entry.answer(call) {
            None => Found::Open,
            Some(_) if entry.is_withheld() || entry.is_redacted() => Found::Open,
            Some(Ok(response)) => Found::Answered { step: entry.step, response, model: entry.model.clone() },
            Some(Err(why)) => wrong(FindingKind::Answer, format!("the answer can't be read: {why}")),
        }
    }

    fn answered(&self) -> BTreeMap<u64, u64> {
        let answered = self.record.entries.iter().filter(|(_, e)| e.response.is_some());
        answered
            .filter(|(_, e)| !e.is_withheld() && !e.is_redacted())
            .map(|(id, e)| (e.step, id.strand))
            .collect()
    }

    fn changed_to(&self) -> u64 {
        self.record.changed_to
    }
}
