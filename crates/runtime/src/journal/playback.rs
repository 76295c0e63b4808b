//! Progress of a run, from its program and the answers in the journal. No model, tool or person is called.
//!
//! Entry point: [`Journal::play`].
//!
//! Invariant: the machine gets the answers that the run got, so events, labels and their origins are those of
//! the run. An answer that the journal does not have is not invented: its request stays open.

use super::session::{Known, Recorded};
use super::{Journal, JournalError, Retries};
use crate::driver::{answered_with, stated};
use machine::{Call, CallCount, Machine, Output, Request, RequestId, Response, Stop, StopReason};
use runs::{Answered, Decider, Event, Finish, Importance, Redactor, RunReport, Tokens, Usage, sample};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

/// Record of an answer in the journal, without the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRecord {
    /// Number in the order of the answers, by which [`Journal::fork`] names it.
    pub step: u64,
    /// When it was written, in milliseconds since 1970; `None` of an entry of before.
    pub written: Option<i64>,
    /// Duration of the request.
    pub elapsed: Duration,
    /// Party that approved a call, or refused it.
    pub by: Option<Decider>,
    /// Attempts that failed before it.
    pub retries: Option<Retries>,
}

/// Result of [`Journal::play`].
#[derive(Debug)]
pub struct Played {
    /// The report of the run, as far as it has come. Of a run that has not ended, the result is an error that
    /// says so.
    pub report: RunReport,
    /// True if the program has ended, and `events` did not break off.
    pub is_over: bool,
    /// Records of the answers.
    pub records: HashMap<RequestId, AnswerRecord>,
    /// First answer of the journal that could not be given to the program, with the reason.
    pub differs: Option<String>,
}

impl Journal {
    /// Plays a run, whether it has ended or not: the machine, which must be that of the run, gets the answers
    /// of the journal. `events` is called for everything that has happened, until it breaks off.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn play(
        self,
        run: &str,
        mut machine: Machine,
        events: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Played, JournalError> {
        let mut session = self.look(run)?;
        let redactor = Redactor::default();
        let seed = session.settings()["seed"].as_u64().unwrap_or(0);
        let (mut usage, mut records, mut differs) = (Usage::default(), HashMap::new(), None);
        // Which models may answer was decided where the run was.
        machine.leave_clearance_to_driver();
        let mut is_over = true;
        let result = loop {
            let (id, request) = match machine.poll() {
                Output::Working => continue,
                Output::Request(id, request) => (id, request),
                Output::Done(result) => break result,
                Output::Waiting => {
                    is_over = false;
                    interrupt(&mut machine, "the run has not ended");
                    continue;
                }
            };
            let known = session.known(id, &request.call, &redactor);
            let is_known = matches!(known, Known::Answered(_));
            if !is_known && request.counts == CallCount::Repeated {
                machine.no_further(id);
                continue;
            }
            let model = match &known {
                Known::Answered(recorded) => recorded.model.clone(),
                _ => String::new(),
            };
            let asked = Event::asked(id, &request, machine.lattice(), &redactor, &model, is_known);
            let importance = asked.importance();
            let mut wanted = events(asked);
            match known {
                Known::Answered(recorded) => {
                    count(&mut usage, &request, &recorded);
                    let Recorded { step, written, elapsed, ref by, ref retries, .. } = *recorded;
                    let (by, retries) = (by.clone(), retries.clone());
                    records.insert(id, AnswerRecord { step, written, elapsed, by, retries });
                    let (event, response) = told(&machine, (id, importance), *recorded);
                    if wanted.is_continue() {
                        wanted = events(event);
                    }
                    machine.handle(id, response);
                }
                Known::Nothing | Known::Begun => {
                    if let Call::Sample { probability, draw } = &request.call {
                        let drawn = sample(seed, *draw, probability);
                        if wanted.is_continue() {
                            wanted = events(answered(id, Answered::Sample(drawn), importance));
                        }
                        machine.handle(id, Response::Sample(drawn));
                    }
                }
                Known::Wrong(why) => differs = differs.or(Some(why)),
            }
            if wanted.is_break() {
                is_over = false;
                interrupt(&mut machine, "no more of the run is wanted");
            }
        };
        let report =
            RunReport { usage, run: session.id().into(), ..RunReport::of(&mut machine, &redactor, result) };
        Ok(Played { report, is_over, records, differs })
    }
}

/// Ends a run that is played: nothing is asked further.
fn interrupt(machine: &mut Machine, why: &str) {
    machine.cancel(Stop { reason: StopReason::Interrupted, message: why.into() });
}

/// Counts an answered request, and what its answer cost.
fn count(usage: &mut Usage, request: &Request, recorded: &Recorded) {
    match &request.call {
        _ if !recorded.was_begun() => {}
        Call::Model { .. } => {
            usage.model_calls += 1;
            usage.input_tokens = usage.input_tokens.saturating_add(recorded.tokens.input);
            usage.output_tokens = usage.output_tokens.saturating_add(recorded.tokens.output);
            usage.charge(&recorded.model, recorded.usd.as_ref());
        }
        Call::Tool { .. } => usage.tool_calls += 1,
        Call::Approve { .. } => usage.questions += 1,
        _ => {}
    }
}

/// Returns the event of an answer, and the answer for the machine.
fn told(
    machine: &Machine,
    (id, importance): (RequestId, Importance),
    recorded: Recorded,
) -> (Event, Response) {
    let Recorded { response, by, tokens, usd, elapsed, .. } = recorded;
    let what = answered_with(&response, by);
    let finish = match &what {
        Answered::Reply(reply) => Finish::of(reply),
        _ => Finish::Other,
    };
    let stated = match &response {
        Response::LabeledTool(_, said) | Response::Edited { label: said, .. } => Some(stated(machine, said)),
        _ => None,
    };
    let importance = importance.answered(&what);
    (Event::Answered { id, what, tokens, usd, finish, elapsed, stated, importance }, response)
}

fn answered(id: RequestId, what: Answered, asked: Importance) -> Event {
    let (tokens, elapsed) = (Tokens::default(), Duration::ZERO);
    let (finish, importance) = (Finish::Other, asked.answered(&what));
    Event::Answered { id, what, tokens, usd: None, finish, elapsed, stated: None, importance }
}
