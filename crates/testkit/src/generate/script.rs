//! The world of a generated program.

use super::random::{Rng, data_of, spec};
use super::{Beside, Drawing, Program, Reply, draw_parts};
use crate::world::{Answer, Call, World, hash};
use core_ir::{Data, KeyDecl, Name, Num, PartRules, StoreDecl, ToolDecl, Type};
use machine::store::StoreState;
use std::collections::HashMap;

/// Answers a program's requests by their content and the program's seed. If nothing runs in parallel, an
/// answer depends also on how many there were before, and stores keep what they are given, with their
/// capacities and lifetimes; otherwise the order in which requests are made does not matter.
#[derive(Clone, Debug)]
pub struct Script {
    program: Program,
    stores: HashMap<Name, StoreState>,
    /// Start of the run, in milliseconds.
    now: i64,
    /// True if answers depend on what was asked before.
    remembers: bool,
    answered: u64,
}

impl Script {
    /// The world of a program.
    pub fn new(program: &Program) -> Script {
        // Before or after the entries of an earlier run have expired.
        let now = if program.seed.is_multiple_of(2) { Script::EXPIRES - 1 } else { Script::EXPIRES };
        let stores = HashMap::new();
        Script { remembers: !program.is_parallel(), program: program.clone(), stores, now, answered: 0 }
    }

    /// The same, with answers that depend on nothing but the request. Stores remember nevertheless.
    #[must_use]
    pub fn forgetful(self) -> Script {
        Script { answered: u64::MAX, ..self }
    }

    /// Returns the key that determines an answer.
    fn key(&mut self, call: &Call) -> String {
        if self.remembers && self.answered != u64::MAX {
            self.answered += 1;
        }
        format!("{} {call:?}", self.answered)
    }
}

impl World for Script {
    fn answer(&mut self, call: &Call) -> Answer {
        let key = self.key(call);
        let mut rng = Rng::new(hash(self.program.seed, &key));
        if let Call::Recall { .. } = call
            && self.remembers
            && rng.chance(Script::FORGETS)
        {
            return Answer::Found(None);
        }
        self.respond(call, &mut rng)
    }

    /// Late by the content of the call, one time in five.
    fn answer_within(&mut self, call: &Call, limits: &[Num]) -> Answer {
        let mut rng = Rng::new(hash(self.program.seed ^ 1, &format!("{} {call:?}", self.answered)));
        match u32::try_from(limits.len()) {
            Ok(n) if n > 0 && rng.chance(20) => Answer::Late(rng.below(n as usize) as u32),
            _ => self.answer(call),
        }
    }
}

impl Script {
    /// Percentage of accesses at which a store has dropped its value. Capacity and expiry are the store's own
    /// affair.
    pub(crate) const FORGETS: u64 = 3;

    /// The lifetime of entries where there is one that ends, in milliseconds.
    const EXPIRES: i64 = 60_000;

    /// Writes a key as an earlier run of this number may have done.
    pub(crate) fn begin(&mut self, store: &StoreDecl, key: &KeyDecl, run: u64) {
        let mut rng = Rng::new(hash(self.program.seed ^ run, &key.name));
        if rng.chance(70) {
            let value = data_of(&mut rng, &key.ty);
            self.stores.entry(store.name.clone()).or_default().remember(store, key, value, 0);
        }
    }

    /// The declaration of a key.
    fn key_of(&self, store: &Name, key: &Name) -> Option<(&StoreDecl, &KeyDecl)> {
        let store = self.program.stores.iter().find(|s| s.name == *store)?;
        Some((store, store.keys.iter().find(|k| k.name == *key)?))
    }

    /// Returns the percentage of model calls that fail.
    fn fails(&self) -> u64 {
        if self.program.permanent { 8 } else { 3 }
    }

    fn failed(&self, rng: &mut Rng) -> Answer {
        if self.program.permanent && rng.chance(50) {
            return Answer::Permanent("there is no such model".into());
        }
        Answer::Failed("the model is busy".into())
    }

    /// The answer to a call, by random numbers that decide it; of a store that has given up nothing.
    pub(crate) fn respond(&mut self, call: &Call, rng: &mut Rng) -> Answer {
        match call {
            Call::Model { params: None, .. } => match rng.pick(&self.program.replies) {
                _ if rng.chance(self.fails()) => self.failed(rng),
                Some((index, Reply::Code(_))) => Answer::Text(format!("#{index}")),
                Some((_, Reply::Text(text))) => Answer::Text(text.clone()),
                None => Answer::Text("null".into()),
            },
            Call::Model { params: Some(params), .. } => {
                if rng.chance(self.fails()) {
                    return self.failed(rng);
                }
                if rng.chance(20) {
                    return Answer::Text("certainly! here it is".into());
                }
                let offered: Vec<_> =
                    params.tools.iter().filter_map(|t| self.program.tools.get(t.0 as usize)).collect();
                if let Some((_, tool)) = rng.pick(&offered)
                    && rng.chance(50)
                {
                    let mut call = |tool: &ToolDecl| {
                        let args = tool.params.iter().map(|p| (p.name.clone(), data_of(rng, &p.ty)));
                        (tool.name.clone(), Data::record(args.collect::<Vec<_>>()))
                    };
                    let (name, args) = call(tool);
                    if offered.len() > 1 {
                        let mut calls: Vec<_> = offered.iter().map(|t| call(t)).collect();
                        calls.push((name, args));
                        return Answer::ToolCalls(calls);
                    }
                    return Answer::ToolCall(name, args);
                }
                match &params.result {
                    None | Some(Type::Str | Type::Enum(_)) => {
                        let ty = params.result.clone().unwrap_or(Type::Str);
                        Answer::Text(data_of(rng, &ty).as_str().unwrap_or_default().to_string())
                    }
                    Some(ty) => {
                        let json = data_of(rng, ty).to_json().to_string();
                        if rng.chance(20) {
                            Answer::Text(format!("```json\n{json}\n```"))
                        } else {
                            Answer::Text(json)
                        }
                    }
                }
            }
            Call::Tool { name, .. } => match self.program.tools.iter().find(|t| t.name == *name) {
                Some(_) if rng.chance(10) => match self.program.seed % 4 {
                    0 => Answer::ToolTimeout("the tool is late".into()),
                    _ => Answer::Failed("the tool is broken".into()),
                },
                // Of another type: what has parts, or what has none.
                Some(_) if rng.chance(5) => Answer::Data(match self.program.seed % 2 {
                    0 => Data::Tag("odd".into(), Data::Null.into()),
                    _ => Data::Bool(true),
                }),
                Some(tool) if self.program.labeling && rng.chance(10) => {
                    let data = data_of(rng, &tool.result);
                    Answer::Labeled(data, spec(rng, self.program.lattice, 10, 20))
                }
                Some(tool) if !tool.parts.is_empty() => {
                    let mut drawing = Unlabeled(rng.draw());
                    Answer::Data(draw_parts(&mut drawing, &tool.parts.root(), &tool.result, "", ()).0)
                }
                Some(tool) => Answer::Data(data_of(rng, &tool.result)),
                None => Answer::Failed("no such tool".into()),
            },
            Call::Approve { .. } if rng.chance(20) => Answer::Approved(Err("no".into())),
            Call::Approve { name, .. } if self.program.edits && rng.chance(30) => {
                let tool = self.program.tools.iter().find(|t| t.name == *name);
                let params = tool.map_or(&[][..], |tool| &tool.params);
                let edited = params.iter().filter(|_| rng.chance(60)).collect::<Vec<_>>();
                let args = edited.iter().map(|p| (p.name.clone(), data_of(rng, &p.ty))).collect();
                Answer::Edited(args, spec(rng, self.program.lattice, 10, 50))
            }
            Call::Approve { .. } => Answer::Approved(Ok(())),
            Call::Recall { .. } | Call::Remember { .. } if self.program.failing_stores && rng.chance(4) => {
                Answer::Failed("the store is shut".into())
            }
            // What it holds may be of another type, if the key has one that a tag is not of.
            Call::Recall { key, .. } if self.program.failing_stores && **key != *"d" && rng.chance(3) => {
                Answer::Found(Some(Data::Tag("odd".into(), Data::Null.into())))
            }
            Call::Recall { store, key } => {
                let Some((store, key)) = self.key_of(store, key) else { return Answer::Found(None) };
                let state = self.stores.get(&store.name).cloned().unwrap_or_default();
                Answer::Found(state.recall(store, key, self.now))
            }
            Call::Remember { store, key, value } => {
                if self.remembers
                    && let Some((store, key)) = self.key_of(store, key)
                {
                    let mut state = self.stores.get(&store.name).cloned().unwrap_or_default();
                    state.remember(store, key, value.clone(), self.now);
                    let name = store.name.clone();
                    self.stores.insert(name, state);
                }
                Answer::Kept
            }
            Call::Sample { .. } => Answer::Drawn(rng.chance(50)),
        }
    }
}

/// Results that depend on nothing but the call.
struct Unlabeled(u64);

impl Drawing for Unlabeled {
    type Label = ();

    fn rng(&mut self, path: &str, (): &()) -> Rng {
        Rng::new(hash(self.0, path))
    }

    fn label(&mut self, (): &(), _: &PartRules<'_>, _: Option<&Name>, _: &Beside<()>) -> Self::Label {}

    fn join(&mut self, (): &(), (): &()) -> Self::Label {}
}
