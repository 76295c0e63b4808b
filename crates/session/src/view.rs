//! Views of a run: the parts of its events and outcome that an observer may see.
//!
//! Entry points: [`View::event`] for each event as it happens, [`View::outcome`] at the end. Every way out of
//! a run goes through one: the command line, HTTP, server-sent events, A2A and MCP.
//!
//! Invariant: what a view lets pass is a function of the data labeled at or below its bounds. What is above
//! is left out: whole requests, whose very existence is labeled; answers; the outcome, whether it is a value
//! or an error.
//! Invariant: what has no label, or one that the lattice of the run does not have, is withheld.
//! Invariant: a view without bounds changes nothing.

use core_ir::{Data, Label, LabelSpec, Lattice, Num};
use machine::{Config, ErrorCode, RequestId, StopReason};
use runtime::{Answered, Asked, Event, RunReport, Usage};
use std::borrow::Cow;
use std::collections::HashMap;

/// Code of the error that replaces a withheld outcome.
pub const WITHHELD: &str = "withheld";

/// Message of the error that replaces a withheld outcome.
pub const WITHHELD_MESSAGE: &str =
    "the outcome of the run is withheld: its label is above the clearance of its reader";

/// A view of one run.
pub struct View {
    lattice: Lattice,
    /// A label passes if it flows to each of them. Empty: everything passes.
    bounds: Vec<Label>,
    /// Requests that were shown and are not answered.
    open: HashMap<RequestId, ShownRequest>,
    /// Number of requests shown. They are numbered anew, because their own numbers also count the others.
    shown: u32,
    usage: Usage,
}

/// A request that was shown.
struct ShownRequest {
    number: u32,
    /// Label of the answer, if that may be shown.
    answer: Option<Label>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Tool,
    Other,
}

impl View {
    /// A view of a run of this configuration: what is labeled at or below all of these bounds.
    pub fn new(config: &Config, bounds: &[&LabelSpec]) -> View {
        let mut lattice = Lattice::with_principals(config.lattice, &config.principals);
        let top = lattice.top();
        // A bound that is no label of the lattice admits nothing, the safe side.
        let mut bounds: Vec<Label> = bounds.iter().map(|b| lattice.resolve(b).unwrap_or_default()).collect();
        bounds.retain(|b| !lattice.flows(top, *b));
        View { lattice, bounds, open: HashMap::new(), shown: 0, usage: Usage::default() }
    }

    /// Returns whether everything is shown.
    pub fn is_unbounded(&self) -> bool {
        self.bounds.is_empty()
    }

    /// Returns the label that this data denotes, if data of that label may be shown.
    fn admitted(&mut self, label: &Data) -> Option<Label> {
        let label = self.lattice.label_of(label)?;
        self.bounds.iter().all(|b| self.lattice.flows(label, *b)).then_some(label)
    }

    /// Returns whether data of this label may be shown.
    pub fn admits(&mut self, label: &Data) -> bool {
        self.is_unbounded() || self.admitted(label).is_some()
    }

    /// The event as far as it may be shown.
    pub fn event<'e>(&mut self, event: &'e Event) -> Option<Cow<'e, Event>> {
        if self.is_unbounded() {
            return Some(Cow::Borrowed(event));
        }
        let named = |open: &ShownRequest| RequestId { strand: 0, number: open.number };
        let shown = match event {
            Event::Asked { id, span, channel, answer, what, recorded, importance, .. } => {
                self.admitted(channel)?;
                self.shown += 1;
                let kind = match what {
                    Asked::Model { .. } => Kind::Model,
                    Asked::Tool { .. } => Kind::Tool,
                    _ => Kind::Other,
                };
                let open = ShownRequest { number: self.shown, answer: self.admitted(answer), kind };
                let shown = Event::Asked {
                    id: named(&open),
                    span: *span,
                    channel: channel.clone(),
                    answer: if open.answer.is_some() { answer.clone() } else { Data::Null },
                    place: [self.shown].into(),
                    what: what.clone(),
                    why: Vec::new(),
                    recorded: *recorded,
                    importance: *importance,
                };
                match kind {
                    Kind::Model => self.usage.model_calls += 1,
                    Kind::Tool => self.usage.tool_calls += 1,
                    Kind::Other if matches!(what, Asked::Approve { .. }) => self.usage.questions += 1,
                    Kind::Other => {}
                }
                self.open.insert(*id, open);
                shown
            }
            Event::Retry { id, number, wait, cause } => {
                let open = self.open.get(id).filter(|o| o.answer.is_some())?;
                Event::Retry { id: named(open), number: *number, wait: *wait, cause: cause.clone() }
            }
            Event::Growing { id, output_tokens } => {
                let open = self.open.get(id).filter(|o| o.answer.is_some())?;
                Event::Growing { id: named(open), output_tokens: *output_tokens }
            }
            Event::Text { id, text } => {
                let open = self.open.get(id).filter(|o| o.answer.is_some())?;
                Event::Text { id: named(open), text: text.clone() }
            }
            Event::Answered { id, what, tokens, usd, finish, elapsed, stated, importance } => {
                let open = self.open.remove(id)?;
                let id = named(&open);
                let may = open.answer.is_some() && stated.as_ref().is_none_or(|s| self.admitted(s).is_some());
                if may {
                    self.spent(open.kind, *tokens, usd.as_ref());
                    Event::Answered {
                        id,
                        what: what.clone(),
                        tokens: *tokens,
                        usd: usd.clone(),
                        finish: *finish,
                        elapsed: *elapsed,
                        stated: stated.clone(),
                        importance: *importance,
                    }
                } else {
                    Event::Answered {
                        id,
                        what: Answered::Withheld,
                        tokens: Default::default(),
                        usd: None,
                        finish: runtime::Finish::Other,
                        elapsed: Default::default(),
                        stated: None,
                        importance: runtime::Importance::Normal,
                    }
                }
            }
        };
        Some(Cow::Owned(shown))
    }

    /// Resources of the requests that were shown.
    pub fn used(&self) -> &Usage {
        &self.usage
    }

    fn spent(&mut self, kind: Kind, tokens: runtime::Tokens, usd: Option<&Num>) {
        let usage = &mut self.usage;
        usage.input_tokens = usage.input_tokens.saturating_add(tokens.input);
        usage.output_tokens = usage.output_tokens.saturating_add(tokens.output);
        if kind == Kind::Model {
            usage.usd = usage.usd.as_ref().zip(usd).and_then(|(sum, cost)| sum.add(cost).ok());
        }
    }

    /// Returns the end of the run, as far as it may be shown; `None` if the outcome is withheld, whether a
    /// value or an error.
    ///
    /// With bounds, what was used is what the requests that were shown used, and nothing is told of refused
    /// calls, of what was done before a limit was reached and of the conversation.
    pub fn outcome<'r>(&self, report: &'r RunReport) -> Option<Cow<'r, RunReport>> {
        if self.is_unbounded() {
            return Some(Cow::Borrowed(report));
        }
        let mut lattice = self.lattice.clone();
        let label = lattice.label_of(&report.label)?;
        if !self.bounds.iter().all(|b| lattice.flows(label, *b)) {
            return None;
        }
        let result = match &report.result {
            Ok(value) => Ok(value.clone()),
            Err(failure) => {
                let mut failure = failure.clone();
                failure.notes = Vec::new();
                failure.refusal = None;
                // Such an end comes from outside of the program: it has no label, and reveals what was in
                // flight.
                if failure.code.is_final() {
                    failure.message = ended(failure.code).to_string();
                    failure.stopped = failure.stopped.filter(|reason| is_told(*reason));
                    failure.span =
                        diagnostics::Span { file: diagnostics::FileId(u32::MAX), start: 0, end: 0 };
                }
                Err(failure)
            }
        };
        Some(Cow::Owned(RunReport {
            run: report.run.clone(),
            result,
            label: report.label.clone(),
            partial: None,
            usage: self.usage.clone(),
            elapsed: report.elapsed,
            fuel: 0,
            conversation: Vec::new(),
            why: runtime::Why::default(),
            branches: Vec::new(),
            records: report.records.clone(),
        }))
    }
}

/// Finished run, with the part that its caller may see.
pub struct Ran {
    /// Everything.
    pub report: RunReport,
    /// The view of the local user.
    pub view: View,
}

impl Ran {
    /// Returns the end of the run, as far as it may be shown; `None` if it is withheld.
    pub fn shown(&self) -> Option<Cow<'_, RunReport>> {
        self.view.outcome(&self.report)
    }
}

impl std::ops::Deref for Ran {
    type Target = RunReport;

    fn deref(&self) -> &RunReport {
        &self.report
    }
}

/// Returns the JSON that replaces an outcome that may not be shown, whatever that outcome is.
pub fn withheld(run: &str) -> serde_json::Value {
    serde_json::json!({"run": run, "error": {"code": WITHHELD, "message": WITHHELD_MESSAGE}})
}

/// Returns whether a reason reveals nothing of what the run was doing.
fn is_told(reason: StopReason) -> bool {
    matches!(reason, StopReason::Interrupted | StopReason::TimeLimit | StopReason::Budget | StopReason::Fuel)
}

/// Explains why a run was stopped from outside, without saying what it was doing.
fn ended(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Budget => "a limit of the run was reached",
        ErrorCode::Fuel => "the run took more steps than it may",
        _ => "the run was ended before it was done",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use diagnostics::{FileId, Span};
    use std::time::Duration;

    const AT: Span = Span { file: FileId(0), start: 0, end: 0 };
    const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };

    fn label(words: &[&str]) -> Data {
        Data::list(words.iter().map(|w| Data::str(*w)))
    }

    fn asked(number: u32, channel: &[&str], answer: &[&str]) -> Event {
        Event::Asked {
            id: RequestId { strand: 0, number },
            span: AT,
            channel: label(channel),
            answer: label(answer),
            place: [number, u32::MAX].into(),
            what: Asked::Tool {
                name: "t".into(),
                args: vec![("x".into(), Data::Bool(true))],
                choices: Vec::new(),
            },
            why: Vec::new(),
            recorded: false,
            importance: runtime::Importance::Normal,
        }
    }

    fn answered(number: u32, stated: Option<&[&str]>) -> Event {
        Event::Answered {
            id: RequestId { strand: 0, number },
            what: Answered::Data(Data::str("planted")),
            tokens: runtime::Tokens::new(7, 7),
            usd: None,
            finish: runtime::Finish::Other,
            elapsed: Duration::from_millis(7),
            stated: stated.map(label),
            importance: runtime::Importance::Normal,
        }
    }

    /// Returns the events that a reader of public data is shown, as JSON.
    fn shown(events: &[Event]) -> Vec<serde_json::Value> {
        let mut view = View::new(&Config::default(), &[&UNTRUSTED]);
        let json = |e: Cow<'_, Event>| crate::events::event_json(&e, crate::events::Detail::Content);
        events.iter().filter_map(|e| view.event(e).and_then(json)).collect()
    }

    #[test]
    fn secret_requests_are_not_there_and_do_not_count() {
        let without = [asked(0, &["U"], &["U"]), answered(0, None), asked(1, &[], &[]), answered(1, None)];
        let with = [
            asked(0, &["U"], &["U"]),
            asked(1, &["S"], &["S"]),
            answered(0, None),
            answered(1, None),
            asked(2, &[], &[]),
            answered(2, None),
        ];
        let (with, without) = (shown(&with), shown(&without));
        assert_eq!(with.len(), 4);
        assert_eq!(with, without);
        assert!(with[0]["args"]["x"] == true && with[1]["content"] == "planted", "{with:?}");
    }

    #[test]
    fn secret_answers_are_withheld_with_all_that_is_told_of_them() {
        for events in [
            vec![asked(0, &[], &["S"]), answered(0, None)],
            // A label that only the answer states.
            vec![asked(0, &[], &["U"]), answered(0, Some(&["S"]))],
            // One that is none.
            vec![asked(0, &[], &["U"]), answered(0, Some(&["X"]))],
        ] {
            let text = Event::Text { id: RequestId { strand: 0, number: 0 }, text: "grows".into() };
            let events = shown(&events);
            assert_eq!(events[1]["status"], "withheld");
            assert!(!events[1].to_string().contains('7') && events[1].get("content").is_none(), "{events:?}");
            let secret = [asked(0, &[], &["S"]), text];
            assert_eq!(shown(&secret).len(), 1);
        }
    }

    #[test]
    fn without_bounds_nothing_changes() {
        let mut view = View::new(&Config::default(), &[&LabelSpec::TOP]);
        assert!(view.is_unbounded() && view.admits(&label(&["U", "S"])) && view.admits(&Data::Null));
        let event = asked(3, &["S"], &["S"]);
        assert!(matches!(view.event(&event), Some(Cow::Borrowed(_))));
        // A bound of another lattice admits what is labeled with nothing.
        let mut none = View::new(&Config::default(), &[&LabelSpec::Exact(Data::str("x"))]);
        assert!(none.admits(&label(&[])) && !none.admits(&label(&["U"])));
    }
}
