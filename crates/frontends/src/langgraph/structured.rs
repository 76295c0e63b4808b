//! Configurations that are nested as they follow each other: rows, decisions up to where their ways meet, and
//! one cycle.

use super::pregel::{Machine, Next};
use super::steps::over;
use super::value::STATE;
use core_ir::{Bound, Data, IfSugar, Name, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::LoopBound;
use frontend_kit::kit::Kit;
use std::collections::HashSet;

/// The field that says whether a loop goes on.
const ON: &str = "$on";

/// Numbers of steps before a loop and in each iteration.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub(super) before: u64,
    pub(super) round: u64,
    /// True if the numbers are exact and not only upper bounds.
    pub(super) exact: bool,
}

/// Terms for configurations that are nested as they follow each other.
pub(super) struct StructuredLowering<'l, 'm, 'r, 'w, 'p> {
    pub(super) machine: &'l Machine<'m, 'r, 'w, 'p>,
    /// Post-dominator of each configuration. `None` if its branches meet at the end only.
    pub(super) join: Vec<Option<usize>>,
    pub(super) back: HashSet<(usize, usize)>,
    /// Configurations that may still be lowered: what several ways share is lowered for each.
    pub(super) left: usize,
    /// The one where the cycle begins, the limit, and the steps. Taken when the loop is made.
    pub(super) header: Option<(usize, LoopBound, Steps)>,
}

impl StructuredLowering<'_, '_, '_, '_, '_> {
    /// From a configuration, whose nodes are run, to another, which is not, or to the end.
    pub(super) fn tail(&mut self, kit: &mut Kit<'_>, from: usize, stop: Option<usize>) -> Option<TermId> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.tail_inner(kit, from, stop, false))
    }

    fn inside(&mut self, kit: &mut Kit<'_>, from: usize, stop: Option<usize>) -> Option<TermId> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.tail_inner(kit, from, stop, true))
    }

    fn tail_inner(
        &mut self,
        kit: &mut Kit<'_>,
        from: usize,
        stop: Option<usize>,
        inside: bool,
    ) -> Option<TermId> {
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut at = from;
        loop {
            let place = self.machine.place(at);
            if !inside && self.header.as_ref().is_some_and(|(h, ..)| *h == at) {
                let term = self.cycle(kit, at)?;
                return Some(kit.b.let_in(bindings, term, place));
            }
            self.left = self.left.checked_sub(1)?;
            if at != 0 {
                bindings.extend(self.machine.run(kit, at));
            }
            let next = self.machine.configs[at].1.clone()?;
            match (&next, self.join[at]) {
                (Next::To(to), _) => {
                    if let Some(to) = to.filter(|t| Some(*t) != stop && !self.back.contains(&(at, *t))) {
                        at = to;
                        continue;
                    }
                    let term = self.leave(kit, at, *to, stop, inside, place);
                    return Some(kit.b.let_in(bindings, term, place));
                }
                (Next::Decide { .. }, Some(join)) if Some(join) != stop => {
                    let machine = self.machine;
                    let this = &mut *self;
                    let mut to = |kit: &mut Kit<'_>, target: Option<usize>| {
                        this.way(kit, at, target, Some(join), inside, place)
                    };
                    let term = machine.decide(kit, &next, at, &mut to)?;
                    bindings.push((STATE.into(), term));
                    at = join;
                }
                (Next::Decide { .. }, _) => {
                    let machine = self.machine;
                    let this = &mut *self;
                    let mut to = |kit: &mut Kit<'_>, target: Option<usize>| {
                        this.way(kit, at, target, stop, inside, place)
                    };
                    let term = machine.decide(kit, &next, at, &mut to)?;
                    return Some(kit.b.let_in(bindings, term, place));
                }
            }
        }
    }

    fn way(
        &mut self,
        kit: &mut Kit<'_>,
        from: usize,
        to: Option<usize>,
        stop: Option<usize>,
        inside: bool,
        at: Span,
    ) -> Option<TermId> {
        match to {
            Some(to) if Some(to) != stop && !self.back.contains(&(from, to)) => {
                if inside {
                    self.inside(kit, to, stop)
                } else {
                    self.tail(kit, to, stop)
                }
            }
            _ => Some(self.leave(kit, from, to, stop, inside, at)),
        }
    }

    /// The state where a way ends: at a join, at the end, or where the loop begins again.
    fn leave(
        &self,
        kit: &mut Kit<'_>,
        from: usize,
        to: Option<usize>,
        stop: Option<usize>,
        inside: bool,
        at: Span,
    ) -> TermId {
        let s = kit.b.var(STATE, at);
        match to {
            Some(to) if self.back.contains(&(from, to)) => {
                let this = kit.b.var("self", at);
                kit.b.app(this, s, at)
            }
            None if inside && (stop.is_none() || to.is_none()) => {
                let off = kit.b.lit(Data::Bool(false), at);
                kit.b.add(Term::With(s, ON.into(), off), at)
            }
            _ => s,
        }
    }

    /// The loop that begins at a configuration, and what the limit leaves of a last round.
    fn cycle(&mut self, kit: &mut Kit<'_>, header: usize) -> Option<TermId> {
        let at = self.machine.place(header);
        let body = self.inside(kit, header, None)?;
        let (h, limit, steps) = self.header.take()?;
        let fix_at = limit.span.unwrap_or(at);
        let step = kit.b.abs(STATE, None, body, at);
        let body = kit.b.abs("self", None, step, at);
        let message = over(&limit.bound);
        let (bound, rest) = match limit.bound {
            Bound::Infinite => (Bound::Infinite, 0),
            Bound::Finite(n) => {
                let left = n.saturating_sub(steps.before);
                let turns = left.saturating_sub(1) / steps.round.max(1);
                (Bound::Finite(turns), if steps.exact { left - turns * steps.round.max(1) } else { 0 })
            }
        };
        let fix = kit.fix(LoopBound { bound, ..limit.clone() }, body, fix_at);
        let on = kit.b.lit(Data::Bool(true), at);
        let s = kit.b.var(STATE, at);
        let first = kit.b.add(Term::With(s, ON.into(), on), at);
        let ran = if bound == Bound::Finite(0) { first } else { kit.b.app(fix, first, at) };
        let last = self.peel(kit, header, rest, &message, fix_at)?;
        self.header = Some((h, limit, steps));
        let test = self.machine.reader.read(kit, &STATE.into(), ON, at);
        let s = kit.b.var(STATE, at);
        let body = kit.b.add(Term::If(test, last, s, IfSugar::Plain), at);
        Some(kit.b.let_in(vec![(STATE.into(), ran)], body, at))
    }

    /// The remaining steps, of which the last ends in failure.
    fn peel(
        &mut self,
        kit: &mut Kit<'_>,
        config: usize,
        steps: u64,
        message: &str,
        fix_at: Span,
    ) -> Option<TermId> {
        let fail = |kit: &mut Kit<'_>| {
            let message = kit.text(message, fix_at);
            kit.b.add(Term::Fail(message), fix_at)
        };
        if steps == 0 {
            return Some(fail(kit));
        }
        self.left = self.left.checked_sub(1)?;
        let place = self.machine.place(config);
        let bindings = self.machine.run(kit, config);
        let body = if steps == 1 {
            fail(kit)
        } else {
            let next = self.machine.configs[config].1.clone()?;
            let machine = self.machine;
            let this = &mut *self;
            let mut to = |kit: &mut Kit<'_>, target: Option<usize>| match target {
                None => Some(kit.b.var(STATE, place)),
                Some(target) => this.peel(kit, target, steps - 1, message, fix_at),
            };
            machine.decide(kit, &next, config, &mut to)?
        };
        Some(kit.b.let_in(bindings, body, place))
    }
}

/// Edges to a configuration from which the way to them leads, in depth-first order.
pub(super) fn back_edges(out: &[Vec<Option<usize>>]) -> HashSet<(usize, usize)> {
    let mut state = vec![0u8; out.len()];
    let mut back = HashSet::new();
    if out.is_empty() {
        return back;
    }
    let mut stack = vec![(0usize, 0usize)];
    state[0] = 1;
    while let Some((node, next)) = stack.pop() {
        match out[node].get(next) {
            Some(to) => {
                stack.push((node, next + 1));
                let Some(to) = *to else { continue };
                match state[to] {
                    0 => {
                        state[to] = 1;
                        stack.push((to, 0));
                    }
                    1 => {
                        back.insert((node, to));
                    }
                    _ => {}
                }
            }
            None => state[node] = 2,
        }
    }
    back
}

/// The least and the most edges from one to each, without cycles.
pub(super) fn distances(forward: &[Vec<usize>], from: usize) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let mut near = vec![None; forward.len()];
    let mut far = vec![None; forward.len()];
    if from >= forward.len() {
        return (near, far);
    }
    (near[from], far[from]) = (Some(0), Some(0));
    for node in topological(forward) {
        let (Some(n), Some(f)) = (near[node], far[node]) else { continue };
        for to in &forward[node] {
            near[*to] = Some(near[*to].map_or(n + 1, |d: usize| d.min(n + 1)));
            far[*to] = Some(far[*to].map_or(f + 1, |d: usize| d.max(f + 1)));
        }
    }
    (near, far)
}

/// Each before those that it leads to.
fn topological(forward: &[Vec<usize>]) -> Vec<usize> {
    let mut before = vec![0usize; forward.len()];
    forward.iter().flatten().for_each(|to| before[*to] += 1);
    let mut ready: Vec<usize> = (0..forward.len()).filter(|n| before[*n] == 0).collect();
    let mut out = Vec::new();
    while let Some(node) = ready.pop() {
        out.push(node);
        for to in &forward[node] {
            before[*to] -= 1;
            if before[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    out
}

pub(super) fn reached_without(forward: &[Vec<usize>], from: usize, without: usize) -> Vec<bool> {
    let mut seen = vec![false; forward.len()];
    let mut todo = vec![from];
    while let Some(node) = todo.pop() {
        if node != without && !std::mem::replace(&mut seen[node], true) {
            todo.extend(&forward[node]);
        }
    }
    seen
}

/// For each configuration where all ways from it meet; none if that is the end, or where a loop begins again.
pub(super) fn joins(
    out: &[Vec<Option<usize>>],
    back: &HashSet<(usize, usize)>,
    forward: &[Vec<usize>],
) -> Vec<Option<usize>> {
    let end = out.len();
    let next = |node: usize| {
        out[node].iter().map(move |to| to.filter(|t| !back.contains(&(node, *t))).unwrap_or(end))
    };
    let join = frontend_kit::graph::joins(end, &topological(forward), next);
    join.into_iter().map(|j| Some(j).filter(|j| *j != end)).collect()
}
