//! A run of a program on recorded answers.
//!
//! Answers are given in the order of the record, each when the program has asked for it. So a record whose
//! answers could not have come in this order is noticed, and not only one with other requests.

use crate::case::catches;
use crate::{Finding, FindingKind};
use core_ir::{Candidate, Code, Data, LabelSpec, Num};
use machine::{
    Call, CallCount, Config, Failure, Machine, Message, Output, Reified, Request, RequestId, Response,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The answers of a recorded run.
pub trait Recording {
    /// Looks a request up.
    fn look_up(&mut self, id: RequestId, call: &Call) -> Found;

    /// The answered steps: the number of each with its branch ([`RequestId::strand`]).
    fn answered(&self) -> BTreeMap<u64, u64>;

    /// The last step that an earlier program of the run may have made: up to there the order of the steps is
    /// not checked. 0 for a run that always had the same program.
    fn changed_to(&self) -> u64;
}

/// A request as a record has it.
#[derive(Clone, Debug)]
pub enum Found {
    /// The answer.
    Answered {
        /// Number of the step.
        step: u64,
        /// The answer.
        response: Response,
        /// The model that gave it; empty for other requests.
        model: String,
    },
    /// It was in flight when the run was left.
    Open,
    /// Nothing.
    Missing,
    /// The record has something else.
    Wrong(Finding),
}

/// A request of a replay.
#[derive(Clone, Debug)]
pub struct Step {
    /// Names it.
    pub id: RequestId,
    /// Position in the order of a run whose branches run one after another.
    pub place: Arc<[u32]>,
    /// The request.
    pub call: Call,
    /// Channel label, as a label value: who can see that it is made.
    pub channel: Data,
    /// Label of what it is made of, as a label value.
    pub inputs: Data,
    /// Label of the answer, as a label value, without what the answer states itself.
    pub answer: Data,
    /// The label of each argument of a question to a person, as label values.
    pub arguments: Vec<Data>,
    /// The time limits around it in seconds, innermost first.
    pub limits: Vec<Num>,
    /// Number of the step in the record, if it was answered there.
    pub step: Option<u64>,
    /// The answer.
    pub response: Option<Response>,
}

/// How a replay ends.
#[derive(Clone, Debug)]
pub enum End {
    /// With a value, or an error of the program.
    Ended(Result<Reified, Failure>),
    /// The record has no further answers.
    Open,
    /// At a finding.
    Wrong,
}

/// A program on recorded answers.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The requests, in the order of their places.
    pub steps: Vec<Step>,
    /// The end.
    pub end: End,
    /// Label of the error, as a label value, if it ended with one.
    pub error_label: Option<Data>,
    /// Label of the conversation at the end, as a label value.
    pub conversation_label: Data,
    /// The conversation at the end.
    pub conversation: Vec<Message>,
    /// The defects of the record, in the order in which it was noticed. The first one ends the replay.
    pub findings: Vec<Finding>,
    /// Steps whose model may or may not see the conversation: it has a name that the policy does not know.
    pub uncleared: Vec<u64>,
    /// Steps that the program did not ask for again, in branches that another one's error may have ended: how
    /// far such a branch comes is a matter of time.
    pub raced: Vec<u64>,
    /// The first request that the record has no answer to.
    pub unanswered: Option<String>,
}

/// Runs a program on recorded answers. No record keeps samples: they depend on the seed.
pub fn replay(
    code: &Arc<Code>,
    input: Option<Data>,
    config: Config,
    seed: u64,
    recording: &mut dyn Recording,
) -> Replay {
    let clears = config.clearance != LabelSpec::TOP || !config.clearances.is_empty();
    let root = config.strand;
    let named: BTreeSet<_> = config.clearances.iter().map(|(name, _)| name.to_string()).collect();
    let mut machine = Machine::new(code.clone(), input, config);
    // As in the run itself, whose driver knew the models.
    machine.leave_clearance_to_driver();
    let answered = recording.answered();
    let mut left: BTreeSet<u64> = answered.keys().copied().collect();
    let changed_to = recording.changed_to();
    let mut waiting: BTreeMap<u64, (RequestId, Response)> = BTreeMap::new();
    let mut steps: BTreeMap<(Arc<[u32]>, RequestId), Step> = BTreeMap::new();
    let mut found = Noted::default();
    let end = loop {
        match machine.poll() {
            Output::Working => {}
            Output::Done(result) => {
                let label = result.as_ref().err().map(|e| machine.lattice().data_of(e.label));
                found.error_label = label;
                break End::Ended(result.map(|value| machine.reify(&value)));
            }
            Output::Request(id, request) => {
                let mut step = step_of(&machine, id, &request);
                if let Call::Sample { probability, draw } = &request.call {
                    let response = Response::Sample(runs::sample(seed, *draw, probability));
                    step.response = Some(response.clone());
                    steps.insert((step.place.clone(), id), step);
                    machine.handle(id, response);
                    continue;
                }
                match recording.look_up(id, &request.call) {
                    Found::Answered { step: number, response, model } => {
                        let is_reply = matches!(response, Response::Model(_));
                        if clears && is_reply {
                            found.clearance(&machine, &request, (number, &model), &named);
                        }
                        step.step = Some(number);
                        step.response = Some(response.clone());
                        waiting.insert(number, (id, response));
                    }
                    Found::Open => found.missing.push(described(&request.call)),
                    // The run ended here, unless an earlier one had made the call.
                    Found::Missing if request.counts == CallCount::Repeated => {
                        machine.no_further(id);
                        continue;
                    }
                    Found::Missing => found.missing.push(described(&request.call)),
                    Found::Wrong(finding) => found.findings.push(finding),
                }
                steps.insert((step.place.clone(), id), step);
                if !found.findings.is_empty() {
                    break End::Wrong;
                }
            }
            Output::Waiting => {
                let next = waiting.first_entry();
                let Some(next) = next else { break End::Open };
                // An earlier answer to something that is not asked for yet.
                if let Some(early) = left.first().filter(|first| *first < next.key() && **first > changed_to)
                {
                    found.early = Some(*early);
                    break End::Wrong;
                }
                let (number, (id, response)) = next.remove_entry();
                left.remove(&number);
                machine.handle(id, response);
            }
        }
    };
    for number in waiting.keys() {
        left.remove(number);
    }
    let fails = matches!(&end, End::Ended(result) if catches(code) || result.is_err());
    if fails {
        found.raced = left.iter().copied().filter(|step| answered.get(step) != Some(&root)).collect();
        left.retain(|step| answered.get(step) == Some(&root));
    }
    found.of_rest(&left, &answered, matches!(end, End::Ended(_)));
    let (label, messages) = machine.conversation();
    let Noted { findings, uncleared, error_label, missing, raced, .. } = found;
    Replay {
        steps: steps.into_values().collect(),
        end: if findings.is_empty() { end } else { End::Wrong },
        error_label,
        conversation_label: machine.lattice().data_of(label),
        conversation: messages.iter().cloned().collect(),
        findings,
        uncleared,
        raced,
        unanswered: missing.into_iter().next(),
    }
}

fn step_of(machine: &Machine, id: RequestId, request: &Request) -> Step {
    let data = |label| machine.lattice().data_of(label);
    Step {
        id,
        place: request.place.path(),
        call: request.call.clone(),
        channel: data(request.channel),
        inputs: data(request.inputs),
        answer: data(request.answer),
        arguments: match &request.call {
            Call::Approve { labels, .. } => labels.iter().map(|l| data(*l)).collect(),
            _ => Vec::new(),
        },
        limits: request.deadlines.iter().map(|d| d.seconds.clone()).collect(),
        step: None,
        response: None,
    }
}

/// The notes that are made while a program is replayed.
#[derive(Default)]
struct Noted {
    findings: Vec<Finding>,
    uncleared: Vec<u64>,
    error_label: Option<Data>,
    /// Requests that the record has no answer to.
    missing: Vec<String>,
    raced: Vec<u64>,
    /// A step that was answered before it could have been asked for.
    early: Option<u64>,
}

impl Noted {
    /// Compares the model of an answer with the clearances of the policy.
    fn clearance(
        &mut self,
        machine: &Machine,
        request: &Request,
        (step, model): (u64, &str),
        named: &BTreeSet<String>,
    ) {
        let may_see = |name: &str| machine.may_see(&Candidate::named(name), request.channel);
        if may_see(model) {
            return;
        }
        // The record has the name of the provider's; the policy may know the model by another one.
        if named.iter().any(|name| may_see(name)) {
            return self.uncleared.push(step);
        }
        let message = format!("no model may see the conversation that `{model}` was shown");
        self.findings.push(Finding { step: Some(step), kind: FindingKind::Clearance, message });
    }

    /// Judges what was left when the replay came to its end.
    fn of_rest(&mut self, left: &BTreeSet<u64>, answered: &BTreeMap<u64, u64>, ended: bool) {
        let (Some(step), true) = (left.first().copied(), self.findings.is_empty()) else { return };
        if let Some(what) = self.missing.first().filter(|_| !ended) {
            // The next answers can't be asked for without the one that is missing. Where a number is left
            // out, it is that of the missing one.
            let gap = (1..step).find(|n| !answered.contains_key(n));
            let message = format!("the record has no answer to this: {what}");
            let step = gap.unwrap_or(step);
            self.findings.push(Finding { step: Some(step), kind: FindingKind::Missing, message });
        } else if let Some(early) = self.early {
            let message =
                "its answer stands before one without which it could not have been asked for".into();
            self.findings.push(Finding { step: Some(early), kind: FindingKind::Order, message });
        } else {
            let message = match ended {
                true => "the program ends without this request",
                false => "the program does not make this request",
            };
            self.findings.push(Finding {
                step: Some(step),
                kind: FindingKind::Extra,
                message: message.into(),
            });
        }
    }
}

/// Describes a request for people.
pub(crate) fn described(call: &Call) -> String {
    let clip = |text: &str| diagnostics::clip_to(text, 120);
    match call {
        Call::Model { messages, .. } => {
            format!("a model is asked `{}`", clip(messages.last().map_or("", |m| &*m.content)))
        }
        Call::Tool { tool, args } => format!("`{}` is called with {}", tool.name, clip(&shown(args))),
        Call::Approve { tool, args, .. } => {
            format!("somebody is asked whether `{}` may be called with {}", tool.name, clip(&shown(args)))
        }
        Call::Recall { store, key } => format!("`{}.{}` is read", store.name, runs::key_name(store, *key)),
        Call::Remember { store, key, .. } => {
            format!("`{}.{}` is written", store.name, runs::key_name(store, *key))
        }
        Call::Sample { probability, .. } => format!("a sample is drawn with probability {probability}"),
    }
}

fn shown(args: &[(core_ir::Name, Data)]) -> String {
    Data::record(args.iter().cloned()).to_json().to_string()
}
