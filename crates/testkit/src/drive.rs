//! Runs the machine in a [`World`] until it ends.

use crate::generate::Rng;
use crate::naive::REPAIR;
use crate::outcome::{Failure, Outcome, Tree, TreeNode};
use crate::world::{self, Answer, World};
use core_ir::{Code, Data, Label, Name, Num, Role, StoreDecl, ToolDecl};
use machine::{
    Answers, Args, Asked, Call, CodeParser, Config, Deadlines, Machine, Output, Reified, ReifiedKind, Reply,
    Response, Stop, StopReason,
};
use std::sync::Arc;

/// The most messages that are kept of a run, over all its questions.
const MAX_KEPT_MESSAGES: usize = 1_000_000;

/// In which order requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each as soon as it is made, some of them where they stand.
    AtOnce,
    /// Each as soon as it is made, none of them where it stands.
    OneByOne,
    /// All that can be made are collected before one of them, a random one, is answered.
    Random(u64),
}

/// A parser of generated code made of a function.
pub struct ParseWith<F>(pub F);

impl<F: Fn(&str) -> Result<Arc<Code>, String> + Send + Sync> CodeParser for ParseWith<F> {
    fn parse(&self, text: &str) -> Result<Arc<Code>, String> {
        self.0(text)
    }
}

/// Runs the machine to its end; a world that gives an answer of the wrong kind ends the run.
pub fn run(
    code: &Arc<Code>,
    input: Option<&Data>,
    config: Config,
    world: &mut dyn World,
    order: Order,
) -> Outcome {
    run_on(&mut Machine::new(code.clone(), input.cloned(), config), world, order)
}

/// The same with a machine that has not begun; it can be asked about the run after it.
pub fn run_on(machine: &mut Machine, world: &mut dyn World, order: Order) -> Outcome {
    run_named(machine, world, order).0
}

/// Somebody who is shown requests where they stand.
pub(crate) trait Shown {
    /// The answer, if it is to be given there.
    fn answer(&mut self, asked: &Asked<'_>, call: &Call) -> Option<Response>;
}

/// Shows requests to somebody. An answer that cannot be given in place is left for the request that is made
/// instead.
pub(crate) struct InPlace<S> {
    pub to: S,
    pub left: Option<Response>,
}

impl<S: Shown> InPlace<S> {
    pub fn new(to: S) -> Self {
        InPlace { to, left: None }
    }

    fn shown<T>(
        &mut self,
        asked: &Asked<'_>,
        call: &Call,
        of: impl FnOnce(Response) -> Result<T, Response>,
    ) -> Option<T> {
        if self.left.is_some() {
            return None;
        }
        match of(self.to.answer(asked, call)?) {
            Ok(answer) => Some(answer),
            Err(other) => {
                self.left = Some(other);
                None
            }
        }
    }
}

impl<S: Shown> Answers for InPlace<S> {
    fn tool(
        &mut self,
        asked: &Asked<'_>,
        tool: &Arc<ToolDecl>,
        args: Args<'_>,
    ) -> Option<Result<Data, String>> {
        let call = Call::Tool { tool: tool.clone(), args: args.to_vec() };
        self.shown(asked, &call, |r| if let Response::Tool(result) = r { Ok(result) } else { Err(r) })
    }

    fn recall(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
    ) -> Option<Result<Option<Data>, String>> {
        let call = Call::Recall { store: store.clone(), key };
        self.shown(asked, &call, |r| if let Response::Recall(result) = r { Ok(result) } else { Err(r) })
    }

    fn remember(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
        value: &Data,
    ) -> Option<Result<(), String>> {
        let call = Call::Remember { store: store.clone(), key, value: value.clone() };
        self.shown(asked, &call, |r| if let Response::Remember(result) = r { Ok(result) } else { Err(r) })
    }

    fn sample(&mut self, asked: &Asked<'_>, probability: &Num, draw: u64) -> Option<bool> {
        let call = Call::Sample { probability: probability.clone(), draw };
        self.shown(asked, &call, |r| if let Response::Sample(first) = r { Ok(first) } else { Err(r) })
    }
}

/// Requests of a run, and the world that answers them.
struct Asking<'w> {
    world: &'w mut dyn World,
    /// True if some requests are answered where they stand.
    in_place: bool,
    requests: Vec<(world::Call, Data)>,
    limits: Vec<Vec<Num>>,
    names: Vec<Vec<u64>>,
    strands: Vec<u64>,
}

impl Asking<'_> {
    /// Notes a request, and gives its time limits.
    fn note(
        &mut self,
        asked: &world::Call,
        channel: Data,
        deadlines: &Deadlines,
        draw: Option<u64>,
        strand: u64,
    ) -> Vec<Num> {
        self.requests.push((asked.clone(), channel));
        self.strands.push(strand);
        let seconds: Vec<Num> = deadlines.iter().map(|d| d.seconds.clone()).collect();
        self.limits.push(seconds.clone());
        self.names.push(draw.into_iter().chain(deadlines.iter().map(|d| d.scope)).collect());
        seconds
    }
}

/// Which draw a call is, if it is one.
fn draw_of(call: &Call) -> Option<u64> {
    match call {
        Call::Sample { draw, .. } => Some(*draw),
        _ => None,
    }
}

impl Shown for Asking<'_> {
    /// Half of the requests are made all the same, so that both ways are tested.
    fn answer(&mut self, asked: &Asked<'_>, of: &Call) -> Option<Response> {
        if !self.in_place || !(asked.span.start + asked.id().number).is_multiple_of(2) {
            return None;
        }
        let called = call(of);
        let channel = asked.lattice.data_of(asked.channel);
        let seconds = self.note(&called, channel, asked.deadlines(), draw_of(of), asked.id().strand);
        let answer = self.world.answer_within(&called, &seconds);
        Some(response(&called, answer))
    }
}

/// The names in a run that its outcome has not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The numbers that each request was named by: the draw, if it is one, and the time limits, innermost
    /// first.
    pub names: Vec<Vec<u64>>,
    /// The branch of each request, as in [`machine::RequestId::strand`].
    pub strands: Vec<u64>,
    /// The branch that failed, as in [`machine::Failure::strand`].
    pub failed: Option<u64>,
}

/// The same with the names of requests and branches.
pub fn run_named(machine: &mut Machine, world: &mut dyn World, order: Order) -> (Outcome, Named) {
    let in_place = order == Order::AtOnce;
    let asking = Asking {
        world,
        in_place,
        requests: Vec::new(),
        limits: Vec::new(),
        names: Vec::new(),
        strands: Vec::new(),
    };
    let mut shown = InPlace::new(asking);
    let mut kept = 0;
    let mut pending = Vec::new();
    let mut rng = match order {
        Order::AtOnce | Order::OneByOne => None,
        Order::Random(seed) => Some(Rng::new(seed)),
    };
    let result = loop {
        match machine.poll_with(&mut shown) {
            Output::Request(id, request) => {
                if let Some(response) = shown.left.take() {
                    machine.handle(id, response);
                    continue;
                }
                let asked = call(&request.call);
                // Each question is kept with its whole conversation: a loop that asks without end would fill
                // the memory.
                if let world::Call::Model { messages, .. } = &asked {
                    kept += messages.len();
                    if kept > MAX_KEPT_MESSAGES {
                        let message = "more messages than a test keeps".into();
                        machine.cancel(Stop { reason: StopReason::Fuel, message });
                        continue;
                    }
                }
                let channel = machine.lattice().data_of(request.channel);
                let seconds =
                    shown.to.note(&asked, channel, &request.deadlines, draw_of(&request.call), id.strand);
                if rng.is_some() {
                    pending.push((id, asked, seconds));
                } else {
                    let answer = shown.to.world.answer_within(&asked, &seconds);
                    machine.handle(id, response(&asked, answer));
                }
            }
            Output::Working => {}
            Output::Waiting => {
                let at = rng.as_mut().map_or(0, |r| r.below(pending.len()));
                if pending.is_empty() {
                    let message = "nothing to wait for".into();
                    machine.cancel(Stop { reason: StopReason::Interrupted, message });
                } else {
                    let (id, asked, seconds) = pending.swap_remove(at);
                    let answer = shown.to.world.answer_within(&asked, &seconds);
                    machine.handle(id, response(&asked, answer));
                }
            }
            Output::Done(result) => break result,
        }
    };
    let Asking { requests, limits, names, strands, .. } = shown.to;
    let failed = result.as_ref().err().map(|e| e.strand);
    let result = match result {
        Ok(v) => Ok(tree(machine.reify(&v))),
        Err(e) => Err(Failure {
            code: e.code.as_str(),
            message: e.message,
            label: machine.lattice().data_of(e.label),
        }),
    };
    let (label, messages) = machine.conversation();
    let messages = messages.iter().map(message).collect();
    let outcome = Outcome {
        result,
        conversation_label: label_data(machine, label),
        conversation: messages,
        requests,
        limits,
    };
    (outcome, Named { names, strands, failed })
}

/// Returns the world's answer to a request of the machine.
pub fn answer(world: &mut dyn World, asked: &Call) -> Response {
    let asked = call(asked);
    let answer = world.answer(&asked);
    response(&asked, answer)
}

fn label_data(machine: &Machine, label: Label) -> Data {
    machine.lattice().data_of(label)
}

/// Translates a request of the machine for the world.
pub(crate) fn call(call: &Call) -> world::Call {
    match call {
        Call::Model { messages, params, tools, .. } => world::Call::Model {
            messages: messages.iter().map(message).collect(),
            params: params.clone(),
            tools: tools.iter().map(|t| t.name.clone()).collect(),
        },
        Call::Tool { tool, args } => world::Call::Tool { name: tool.name.clone(), args: args.clone() },
        Call::Approve { tool, args, .. } => {
            world::Call::Approve { name: tool.name.clone(), args: args.clone() }
        }
        Call::Recall { store, key } => {
            world::Call::Recall { store: store.name.clone(), key: key_name(store, *key) }
        }
        Call::Remember { store, key, value } => world::Call::Remember {
            store: store.name.clone(),
            key: key_name(store, *key),
            value: value.clone(),
        },
        Call::Sample { probability, .. } => world::Call::Sample { probability: probability.clone() },
    }
}

/// A message; how a repair is worded is nobody's business.
pub(crate) fn message(m: &machine::Message) -> world::Message {
    let text = if m.role == Role::User && m.content.starts_with(REPAIR) { REPAIR } else { &*m.content };
    (m.role, text.to_string())
}

fn key_name(store: &core_ir::StoreDecl, key: u32) -> Name {
    store.keys.get(key as usize).map_or_else(|| Name::from("?"), |k| k.name.clone())
}

/// An answer as the machine knows it.
pub(crate) fn response(asked: &world::Call, answer: Answer) -> Response {
    match (asked, answer) {
        (world::Call::Model { .. }, Answer::Text(text)) => Response::Model(Ok(Reply::Text(text))),
        (world::Call::Model { .. }, Answer::ToolCall(name, args)) => {
            Response::Model(Ok(Reply::ToolCall { name, args }))
        }
        (world::Call::Model { .. }, Answer::ToolCalls(calls)) => Response::Model(Ok(Reply::ToolCalls(calls))),
        (world::Call::Model { .. }, Answer::Failed(why)) => Response::Model(Err(why)),
        (world::Call::Tool { .. }, Answer::Data(d)) => Response::Tool(Ok(d)),
        (world::Call::Tool { .. }, Answer::Labeled(d, label)) => Response::LabeledTool(Ok(d), label),
        (world::Call::Approve { .. }, Answer::Approved(verdict)) => Response::Approve(verdict),
        (world::Call::Approve { .. }, Answer::Edited(args, label)) => Response::Edited { args, label },
        (world::Call::Tool { .. }, Answer::ToolTimeout(why)) => Response::ToolTimeout(why),
        (world::Call::Tool { .. }, Answer::Failed(why)) => Response::Tool(Err(why)),
        (world::Call::Recall { .. }, Answer::Found(d)) => Response::Recall(Ok(d)),
        (world::Call::Recall { .. }, Answer::Failed(why)) => Response::Recall(Err(why)),
        (world::Call::Remember { .. }, Answer::Kept) => Response::Remember(Ok(())),
        (world::Call::Remember { .. }, Answer::Failed(why)) => Response::Remember(Err(why)),
        (world::Call::Sample { .. }, Answer::Drawn(b)) => Response::Sample(b),
        (world::Call::Model { .. }, Answer::Permanent(why)) => Response::Permanent(why),
        (_, Answer::Late(n)) => Response::Late(n),
        (_, answer) => Response::Stop(Stop {
            reason: StopReason::Interrupted,
            message: format!("an answer of the wrong kind: {answer:?}"),
        }),
    }
}

pub(crate) fn tree(r: Reified) -> Tree {
    let node = match r.kind {
        ReifiedKind::Scalar(d) => TreeNode::Scalar(d),
        ReifiedKind::List(items) => TreeNode::List(items.into_iter().map(tree).collect()),
        ReifiedKind::Record(fields) => {
            TreeNode::Record(fields.into_iter().map(|(n, v)| (n, tree(v))).collect())
        }
        ReifiedKind::Args(tool, fields) => {
            TreeNode::Args(tool, fields.into_iter().map(|(n, v)| (n, tree(v))).collect())
        }
        ReifiedKind::Pair(p) => TreeNode::Pair(Box::new((tree(p.0), tree(p.1)))),
        ReifiedKind::Tag(n, v) => TreeNode::Tag(n, Box::new(tree(*v))),
        ReifiedKind::Function(deep) => TreeNode::Function(deep),
        ReifiedKind::TooDeep => TreeNode::Scalar(Data::str("nested too deep to be shown")),
    };
    Tree { label: r.label, node }
}
