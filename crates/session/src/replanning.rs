//! Further plans for one request, after a plan that was run and ended with an error.
//!
//! Entry point: [`Replanning`]. A driver runs each plan with its [`Replanning::follows`] and
//! [`Replanning::limits`], and asks [`Replanning::after`] what the planner may be told.
//!
//! The rule about what a planner is told stands here alone:
//! - nothing, unless the user asked for it, and no more often than that;
//! - nothing of an error whose label is not public, or not known. The clearance of the planner doesn't count:
//!   what the next plan does is visible to everybody, so an error that is secret would be declassified by it.
//!   Errors that come from outside of the program have no label;
//! - of any other error its code, of a finite list ([`CODES`], and the classes of exceptions that every plan
//!   has), and its line; and which calls in the text of the plan were made that may have changed something,
//!   as far as trusted and public data alone decided that, with the arguments;
//! - no message, no argument, no answer, no count.
//!
//! If the error is untrusted, that is an endorsement of one of a finite list, and is counted in bits. The
//! calls count, too: in a loop, untrusted data may decide whether an error comes before or after one.
//!
//! Invariant: what one run may use and do, all runs together may.

use crate::limits::{spend, sum};
use crate::report::shown_bits;
use crate::run::{Follows, PLAN_TEXT};
use core_ir::{Code, EffectClass, Label, Lattice, Name, Term};
use diagnostics::{FileId, Span};
use machine::{Config, ErrorCode, Failure};
use plan::planner::Ended;
use runtime::{AFTER_RUN, History, Journal, JournalError, JournalPlace, Limits, RunReport, Usage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The codes of errors that a planner may be told, besides the classes of exceptions and [`REFUSED`].
pub const CODES: &[ErrorCode] = &[
    ErrorCode::NotAFunction,
    ErrorCode::NoBranch,
    ErrorCode::Flow,
    ErrorCode::Type,
    ErrorCode::Tool,
    ErrorCode::ToolTimeout,
    ErrorCode::Model,
    ErrorCode::Decode,
    ErrorCode::Guard,
    ErrorCode::Assert,
    ErrorCode::Index,
    ErrorCode::Prim,
    ErrorCode::NotALabel,
    ErrorCode::StoreRefused,
    ErrorCode::Store,
    ErrorCode::Classify,
    ErrorCode::Timeout,
    ErrorCode::Policy,
    ErrorCode::Unknown,
    ErrorCode::Limit,
];

/// Code of a call that a person did not approve.
pub const REFUSED: &str = "refused";

/// A plan that is run, as far as what is told of its run depends on it.
#[derive(Clone, Debug)]
pub struct PlanOutline {
    text: Arc<str>,
    file: FileId,
    /// Calls of tools that write: their lines and tools.
    writes: BTreeSet<(u32, Name)>,
}

impl PlanOutline {
    /// The outline of a plan with this text, this file and this term.
    pub fn new(text: &str, file: FileId, code: &Code) -> PlanOutline {
        let mut plan = PlanOutline { text: text.into(), file, writes: BTreeSet::new() };
        for (id, term) in code.iter() {
            let Term::Tool(tool) = term else { continue };
            let tool = code.tool(*tool);
            if tool.effect == EffectClass::Write && !tool.confirms {
                plan.writes.insert((plan.line(code.span(id)), tool.called().clone()));
            }
        }
        plan
    }

    /// The line of a place; 0 if it is not in the plan.
    fn line(&self, span: Span) -> u32 {
        let before = self.text.get(..span.start as usize).filter(|_| span.file == self.file);
        let line = before.map_or(0, |before| before.matches('\n').count() + 1);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    /// Bits of one of all things that may be told of a run of this plan, that nothing is told included.
    fn bits(&self) -> f64 {
        // INVARIANT: both are far below 2⁵², so the conversion is exact.
        let codes = (CODES.len() + plan::KNOWN_CLASSES + 1) as f64;
        let places = (self.text.lines().count() + 1) as f64;
        (codes * places + 1.0).log2() + self.writes.len() as f64
    }
}

/// An error that the planner was told.
#[derive(Clone, Debug)]
pub struct ToldError {
    /// The run that ended with it.
    pub run: String,
    /// The part that the planner is told.
    pub ended: Ended,
    /// How much of it untrusted data may have chosen, in bits.
    pub bits: f64,
}

/// Runs of plans for one request.
#[derive(Debug)]
pub struct Replanning {
    left: u32,
    lattice: Lattice,
    history: Arc<Mutex<History>>,
    told: Vec<ToldError>,
    usage: Usage,
    elapsed: Duration,
    is_off: bool,
}

impl Replanning {
    /// At most `errors` further plans after errors, under this configuration of runs.
    pub fn new(errors: u32, config: &Config) -> Replanning {
        let lattice = Lattice::with_principals(config.lattice, &config.principals);
        Replanning {
            left: errors,
            history: Arc::new(Mutex::new(History::new(lattice.clone()))),
            lattice,
            told: Vec::new(),
            usage: Usage::default(),
            elapsed: Duration::ZERO,
            is_off: errors == 0,
        }
    }

    /// The runs that the next one follows; `None` if no run may follow another.
    pub fn follows(&self) -> Option<Follows> {
        let after = self.told.last().map(|told| told.run.clone());
        (!self.is_off).then(|| Follows { history: self.history.clone(), after })
    }

    /// The rest of these limits after earlier runs and other work for the request.
    pub fn limits(&self, all: &Limits) -> Limits {
        let mut limits = all.clone();
        spend(&mut limits, &self.usage, self.elapsed);
        limits
    }

    /// Notes what was used for the request.
    pub fn used(&mut self, usage: &Usage, elapsed: Duration) {
        self.usage = sum(&self.usage, usage);
        self.elapsed = self.elapsed.saturating_add(elapsed);
    }

    /// Usage for the request so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Takes the report of a run, with everything in it. Returns what the planner is told of it; `None` if no
    /// further plan may be written.
    pub fn after(&mut self, plan: &PlanOutline, report: &RunReport) -> Option<&ToldError> {
        self.used(&report.usage, report.elapsed);
        if self.left == 0 {
            return None;
        }
        let told = self.told_of(plan, report)?;
        self.left -= 1;
        self.told.push(told);
        self.told.last()
    }

    fn told_of(&mut self, plan: &PlanOutline, report: &RunReport) -> Option<ToldError> {
        let failure = report.result.as_ref().err()?;
        let code = code_of(failure)?;
        let label = self.lattice.label_of(&report.label)?;
        let secrecy = self.lattice.reclassify(Label::BOTTOM, label);
        if !self.lattice.flows(secrecy, Label::BOTTOM) {
            return None;
        }
        let made: BTreeSet<(u32, Name)> = {
            let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            let known = history.made().iter().filter(|call| call.is_trusted_and_public);
            let place = known.map(|call| (plan.line(call.span), call.tool.clone()));
            place.filter(|place| plan.writes.contains(place)).collect()
        };
        let bits = if self.lattice.flows(label, Label::BOTTOM) { 0.0 } else { plan.bits() };
        let ended = Ended {
            plan: plan.text.clone(),
            code,
            line: plan.line(failure.span),
            made: made.into_iter().collect(),
        };
        Some(ToldError { run: report.run.clone(), ended, bits })
    }

    /// The errors that the planner was told.
    pub fn told(&self) -> &[ToldError] {
        &self.told
    }

    /// How much untrusted data may have chosen of what the planner was told, in bits.
    pub fn bits(&self) -> f64 {
        self.told.iter().map(|t| t.bits).sum()
    }

    /// Adds what the planner was told to the outcome of the last run as JSON: `replans` and `bits`.
    pub fn add_to(&self, outcome: &mut Value) {
        if !self.told.is_empty() {
            outcome["replans"] = self.told.iter().map(ToldError::to_json).collect();
            outcome["bits"] = json!(self.bits());
        }
    }
}

impl ToldError {
    /// `run`, `code`, `line`, `made` and `bits`.
    pub fn to_json(&self) -> Value {
        let made = |(line, tool): &(u32, Name)| json!({"line": line, "tool": &**tool});
        let Ended { code, line, made: calls, .. } = &self.ended;
        json!({
            "run": self.run, "code": code, "line": (*line > 0).then_some(line),
            "made": calls.iter().map(made).collect::<Vec<_>>(), "bits": self.bits,
        })
    }

    /// The line of a trace, between the lines of two runs.
    pub fn trace_line(&self) -> Value {
        let mut line = self.to_json();
        line["event"] = "replan".into();
        line
    }

    /// A line for people.
    pub fn describe(&self) -> String {
        let Ended { code, line, made, .. } = &self.ended;
        let place = if *line > 0 { format!(" in line {line}") } else { String::new() };
        let calls = match made.len() {
            0 => String::new(),
            n => format!(", and {n} call{} that it made", if n == 1 { "" } else { "s" }),
        };
        format!("the planner is told `{code}`{place}{calls} ({})", shown_bits(self.bits))
    }
}

/// A plan that a journal keeps.
#[derive(Clone, Debug)]
pub struct KeptPlan {
    /// The run of the plan.
    pub run: String,
    /// The plan.
    pub plan: String,
    /// The request that it was written for.
    pub request: String,
}

/// The plan of a run in a journal, after those of the runs that it follows, the first one
/// first.
///
/// # Errors
/// There is no such run or it keeps no plan, another run follows it, or the journal can't be read.
pub fn kept_plans(place: &JournalPlace, run: &str) -> Result<Vec<KeptPlan>, JournalError> {
    let journal = Journal::existing(place)?;
    let last = journal.run(run)?.id;
    if let Some(follower) = journal.follower(&last)? {
        return Err(JournalError {
            message: format!("run `{last}` has ended with an error, and run `{}` follows it", follower.id),
            help: Some(format!("resume that one: `entail plan --resume {}`", follower.id)),
        });
    }
    let mut plans: Vec<KeptPlan> = Vec::new();
    let mut next = Some(last);
    while let Some(run) = next {
        let settings = journal.settings(&run)?;
        let text = |field: &str| settings[field].as_str().map(String::from);
        let Some(plan) = text(PLAN_TEXT) else {
            return Err(JournalError {
                message: format!("run `{run}` keeps no plan"),
                help: Some("name the file of its plan: `--plan FILE`".into()),
            });
        };
        // A journal that was changed by hand may have a cycle.
        next = text(AFTER_RUN).filter(|after| *after != run && plans.iter().all(|p| p.run != *after));
        plans.push(KeptPlan { run, plan, request: text("request").unwrap_or_default() });
    }
    plans.reverse();
    Ok(plans)
}

/// The code of an error that may be told; `None` for one that comes from outside of the program, which has no
/// label.
fn code_of(failure: &Failure) -> Option<&'static str> {
    if failure.stopped.is_some() {
        return None;
    }
    match failure.code {
        ErrorCode::Fail => Some(match core_ir::py::uncaught(&failure.message) {
            Some((class, _)) => plan::known_class(&class),
            None => plan::known_class(""),
        }),
        ErrorCode::Tool if failure.permanent => Some(REFUSED),
        code => CODES.contains(&code).then_some(code.as_str()),
    }
}
