//! A run on a script: models and tools answer from it, stores are empty, no time passes.

use crate::script::Question;
use crate::{
    Answered, Builtin, Event, Finish, Importance, Redactor, RunReport, Script, StillStores, Tokens, Usage,
    sample,
};
use core_ir::{Data, Name, Num, ToolDecl};
use machine::{Call, CallCount, Machine, NOBODY, Output, Request, RequestId, Response, Stop, StopReason};
use std::time::Duration;

/// The model of a run on a script, in events.
const MODEL: &str = "scripted";

/// Runs a machine to its end without a world: models and tools answer from the script, built-in tools
/// compute, stores begin empty, nobody approves anything, no time limit passes. `now` is the time in seconds
/// since 1970 for tools that tell it.
///
/// `events` is called for everything that happens. They and the report are those of `runtime::run` with the
/// same answers.
pub fn run_script(
    mut machine: Machine,
    script: &mut Script,
    now: u64,
    events: &mut dyn FnMut(Event),
) -> RunReport {
    let redactor = Redactor::default();
    let mut world = ScriptedWorld { script, now, stores: StillStores::default(), usage: Usage::default() };
    let result = loop {
        match machine.poll() {
            Output::Working => {}
            // Every request is answered before the next poll.
            Output::Waiting => machine.cancel(Stop {
                reason: StopReason::Interrupted,
                message: "the run waits for an answer that nobody gives".into(),
            }),
            Output::Request(id, request) if request.counts == CallCount::Repeated => machine.no_further(id),
            Output::Request(id, request) => {
                let model = world.model(&request);
                let asked = Event::asked(id, &request, machine.lattice(), &redactor, model, false);
                let importance = asked.importance();
                events(asked);
                let (what, response) = world.answer(&request);
                events(world.answered(id, what, &request, importance));
                machine.handle(id, response);
            }
            Output::Done(result) => break result,
        }
    };
    RunReport { usage: world.usage, ..RunReport::of(&mut machine, &redactor, result) }
}

struct ScriptedWorld<'s> {
    script: &'s mut Script,
    now: u64,
    stores: StillStores,
    usage: Usage,
}

impl ScriptedWorld<'_> {
    fn model(&self, request: &Request) -> &'static str {
        if matches!(request.call, Call::Model { .. }) { MODEL } else { "" }
    }

    fn answered(&self, id: RequestId, what: Answered, request: &Request, asked: Importance) -> Event {
        let is_model = matches!(request.call, Call::Model { .. });
        let finish = match &what {
            Answered::Reply(reply) if is_model => Finish::of(reply),
            _ => Finish::Other,
        };
        let usd = is_model.then_some(Num::ZERO);
        let (tokens, elapsed, stated) = (Tokens::default(), Duration::ZERO, None);
        let importance = asked.answered(&what);
        Event::Answered { id, what, tokens, usd, finish, elapsed, stated, importance }
    }

    fn answer(&mut self, request: &Request) -> (Answered, Response) {
        match &request.call {
            Call::Model { messages, params, .. } => {
                self.usage.model_calls += 1;
                let purpose = params.as_ref().and_then(|p| p.purpose.as_deref());
                let place = request.place.path();
                match self.script.reply(&Question { messages, purpose, place: &place }) {
                    Ok(reply) => (Answered::Reply(reply.clone()), Response::Model(Ok(reply))),
                    Err(e) => {
                        let why = e.to_string();
                        let response = match e.kind.is_permanent() {
                            true => Response::Permanent(why.clone()),
                            false => Response::Model(Err(why.clone())),
                        };
                        (Answered::Failed(why), response)
                    }
                }
            }
            Call::Tool { tool, args } => match self.result(tool, args) {
                Some(result) => {
                    self.usage.tool_calls += 1;
                    let what = result.clone().map_or_else(Answered::Failed, Answered::Data);
                    (what, Response::Tool(result))
                }
                None => {
                    let message = format!(
                        "the script has no result of the tool `{}` (help: add \
                         `{{\"call\": \"{}\", \"result\": …}}` to the script)",
                        tool.name,
                        tool.called()
                    );
                    let reason = StopReason::Configuration;
                    (Answered::Stopped(message.clone()), Response::Stop(Stop { reason, message }))
                }
            },
            Call::Approve { .. } => {
                self.usage.questions += 1;
                (Answered::Failed(NOBODY.into()), Response::Unattended)
            }
            Call::Recall { store, key } => {
                let found = self.stores.recall(store, *key);
                let what = match &found {
                    Ok(Some(data)) => Answered::Data(data.clone()),
                    Ok(None) => Answered::Nothing,
                    Err(e) => Answered::Failed(e.clone()),
                };
                (what, Response::Recall(found))
            }
            Call::Remember { store, key, value } => {
                let kept = self.stores.remember(store, *key, value.clone());
                let what = kept.clone().map_or_else(Answered::Failed, |()| Answered::Nothing);
                (what, Response::Remember(kept))
            }
            Call::Sample { probability, draw } => {
                let drawn = sample(0, *draw, probability);
                (Answered::Sample(drawn), Response::Sample(drawn))
            }
        }
    }

    /// The result of a tool: that of the script, or what a built-in tool computes.
    fn result(&mut self, tool: &ToolDecl, args: &[(Name, Data)]) -> Option<Result<Data, String>> {
        self.script.result(tool.called(), &tool.result).or_else(|| {
            let name = tool.handler.as_ref()?.field("builtin")?;
            Some(Builtin::named(name.as_str()?)?.call(args, self.now))
        })
    }
}
