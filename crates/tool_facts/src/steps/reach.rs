//! Search for the places that a value reaches. One that enters a function by a call returns to that call
//! only.

use super::{
    Acted, Edge, Fed, Handed, How, MAX_RUNS, MAX_VISITS, MAX_VISITS_EACH, OwnPath, Passed, Steps, Way,
};
use crate::body::Decided;
use crate::effect::Effect;
use diagnostics::Span;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Relation of a value to the text that a search begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Level {
    /// It is a part of the text.
    Text,
    /// It is an answer of a model that was given the text.
    Answer,
    /// It was selected by such an answer.
    Choice,
}

/// Calls by which the current functions were entered, the last ones first, [`CALL_BITS`] each; 0 if that is
/// not known.
type Calls = u128;

const CALL_BITS: u32 = 21;
/// Calls beyond this number are not told apart.
const MAX_CALLS: u32 = (1 << CALL_BITS) - 1;
/// Calls that are remembered.
const KEPT: Calls = (1 << (6 * CALL_BITS)) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    node: u32,
    /// The part that holds it, or 0 for the whole.
    key: u32,
    level: Level,
    calls: Calls,
}

impl State {
    /// The state after an edge, if something goes on.
    fn after(self, edge: Edge, shared: &[bool]) -> Option<State> {
        let (key, level) = match (edge.how, self.level) {
            (How::Because, Level::Choice) => (0, Level::Choice),
            (How::Because, _) => return None,
            (How::Compared, Level::Text) => return None,
            (How::Compared, _) => (0, Level::Choice),
            (How::Asks(_), Level::Choice) => return None,
            (How::Asks(_), _) => (0, Level::Answer),
            (How::Copy, level) => (self.key, level),
            (How::Whole, level) => (0, level),
            (How::Store(key), level) => (key, level),
            (How::Load(key), level) if self.key == 0 || self.key == key => (0, level),
            (How::Load(_), _) => return None,
        };
        let calls = match edge.way {
            Way::Here => self.calls,
            Way::Enter(call) => (self.calls << CALL_BITS | Calls::from(call.min(MAX_CALLS))) & KEPT,
            Way::Return(_) if self.calls == 0 => 0,
            Way::Return(call) => {
                if self.calls & Calls::from(MAX_CALLS) != Calls::from(call.min(MAX_CALLS)) {
                    return None;
                }
                self.calls >> CALL_BITS
            }
        };
        let calls = if shared[edge.to as usize] { 0 } else { calls };
        Some(State { node: edge.to, key, level, calls })
    }
}

/// The states that a value reaches.
#[derive(Default)]
struct Reached {
    states: Vec<State>,
    /// For each state, the one before it and the call of a model between them.
    before: Vec<(u32, Option<u32>)>,
    /// The first state of each node at each level.
    at: HashMap<(u32, Level), u32>,
    /// Calls of models that were given it.
    asked: BTreeSet<u32>,
}

impl Reached {
    fn first(&self, nodes: &[u32], level: Level) -> Option<u32> {
        nodes.iter().find_map(|n| self.at.get(&(*n, level)).copied())
    }

    /// The calls of models before a state, in order.
    fn models(&self, state: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut at = state;
        loop {
            let (before, asked) = self.before[at as usize];
            if let Some(run) = asked
                && !out.contains(&run)
            {
                out.push(run);
            }
            if before == at {
                break;
            }
            at = before;
        }
        out.reverse();
        out
    }

    /// The last test before a state.
    fn test(&self, state: u32, tests: &HashMap<u32, Span>) -> Option<Span> {
        let mut at = state;
        loop {
            if let Some(span) = tests.get(&self.states[at as usize].node) {
                return Some(*span);
            }
            let (before, _) = self.before[at as usize];
            if before == at {
                return None;
            }
            at = before;
        }
    }
}

impl Steps {
    fn reach(&self, start: u32, level: Level, left: &mut usize, cut: &mut bool) -> Reached {
        let mut out = Reached::default();
        let mut seen: HashSet<State> = HashSet::new();
        let first = State { node: start, key: 0, level, calls: 0 };
        seen.insert(first);
        out.states.push(first);
        out.before.push((0, None));
        out.at.insert((start, level), 0);
        let mut next = 0;
        while let Some(state) = out.states.get(next).copied() {
            for edge in &self.edges[state.node as usize] {
                let Some(after) = state.after(*edge, &self.shared) else { continue };
                let asked = match edge.how {
                    How::Asks(run) => {
                        out.asked.insert(run);
                        Some(run)
                    }
                    _ => None,
                };
                // Whatever goes on from here goes on from the whole, and from a call that is not known.
                let covered = |key, calls| seen.contains(&State { key, calls, ..after });
                if covered(0, 0) || covered(0, after.calls) || covered(after.key, 0) || !seen.insert(after) {
                    continue;
                }
                if *left == 0 || out.states.len() >= MAX_VISITS_EACH {
                    *cut = true;
                    return out;
                }
                *left -= 1;
                // INVARIANT: there are at most `MAX_VISITS_EACH` states.
                let index = out.states.len() as u32;
                out.at.entry((after.node, after.level)).or_insert(index);
                out.states.push(after);
                out.before.push((next as u32, asked));
            }
            next += 1;
        }
        out
    }

    /// Returns what the project hands to agents and what it does by itself, and true if something was left
    /// out.
    pub fn handed(mut self) -> (Handed, bool) {
        self.settle();
        let mut out = Handed::default();
        let (mut left, mut cut) = (MAX_VISITS, self.cut);
        for (origin, start) in &self.origins {
            let reached = self.reach(*start, Level::Text, &mut left, &mut cut);
            let fed = |agents: &HashSet<Span>, made| Fed {
                agents: agents.clone(),
                made,
                name: origin.name.clone(),
                span: origin.span,
                fact: origin.fact.clone(),
            };
            out.fed.extend(reached.asked.iter().map(|r| fed(&self.runs[*r as usize].agents, false)));
            for made in &self.made {
                let is_given =
                    [Level::Text, Level::Answer].iter().any(|l| reached.first(&made.args, *l).is_some());
                if is_given {
                    out.fed.push(fed(&HashSet::from([made.span]), true));
                }
            }
            self.own_paths(origin, &reached, &mut out);
        }
        for run in self.runs.iter().filter(|r| !r.agents.is_empty()).take(MAX_RUNS) {
            let reached = self.reach(run.result, Level::Answer, &mut left, &mut cut);
            for act in &self.acts {
                if reached.first(act.decisive(), Level::Answer).is_some() {
                    let super::Origin { name, span, fact } = act.origin.clone();
                    out.acted.push(Acted { agents: run.agents.clone(), name, span, fact });
                }
            }
            for other in reached.asked.iter().map(|r| &self.runs[*r as usize]) {
                if other.span != run.span && !other.agents.is_empty() {
                    let (from, to) = (run.agents.clone(), other.agents.clone());
                    out.passed.push(Passed { from, to, made: false });
                }
            }
            for made in self.made.iter().filter(|m| !run.agents.contains(&m.span)) {
                if reached.first(&made.args, Level::Answer).is_some() {
                    let to = HashSet::from([made.span]);
                    out.passed.push(Passed { from: run.agents.clone(), to, made: true });
                }
            }
        }
        (out, cut)
    }

    /// The paths from a text through models to calls that act.
    fn own_paths(&self, origin: &super::Origin, reached: &Reached, out: &mut Handed) {
        for act in &self.acts {
            let by_content = reached.first(act.decisive(), Level::Answer);
            let decided = by_content.or_else(|| act.decided_by_test(reached));
            let Some(state) = decided else { continue };
            let models: Vec<Span> =
                reached.models(state).into_iter().map(|r| self.runs[r as usize].span).collect();
            let is_test = by_content.is_none();
            let fact = if is_test { act.origin.fact.at_most_likely() } else { act.origin.fact.clone() };
            out.own.push(OwnPath {
                source: origin.name.clone(),
                source_at: origin.span,
                source_fact: origin.fact.clone(),
                models,
                sink: act.origin.name.clone(),
                sink_at: act.origin.span,
                sink_fact: fact,
                test: is_test.then(|| reached.test(state, &self.tests)).flatten(),
            });
        }
    }
}

impl super::Act {
    /// The values that an answer has to be a part of.
    fn decisive(&self) -> &[u32] {
        match self.decided {
            Decided::Any => &self.args,
            Decided::Target => &self.target,
        }
    }

    /// The state of a test of an answer that decides whether the call is made, if that matters. No outsider
    /// gains by mail and messages that say the same whatever was read.
    fn decided_by_test(&self, reached: &Reached) -> Option<u32> {
        let given = || [Level::Text, Level::Answer].iter().any(|l| reached.first(&self.args, *l).is_some());
        let matters = match self.origin.fact.effect {
            Effect::AccountWrite | Effect::Payment => true,
            Effect::MailSend | Effect::MessageSend | Effect::Publish => given(),
            _ => false,
        };
        if !matters {
            return None;
        }
        reached.first(&self.tests, Level::Choice)
    }
}
