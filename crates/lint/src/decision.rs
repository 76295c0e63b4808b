//! The decision that continues a loop.
//!
//! Entry point: [`decision`].
//!
//! Looked at are the tests whose branches differ in calling `self`, and, where such a test reads a part of
//! the state or a name, what is assigned to it in the turn. Source: seed 000 §5.4 (bounded iteration,
//! framework-internal logic).
//!
//! Invariant: a doubt is never a denial. What is said here takes findings less hard; it makes none.

use super::paths::turn;
use core_ir::{Code, Name, Prim, Slot, Term, TermId};
use frontend_kit::{Outline, ToolRole};
use std::collections::{HashMap, HashSet};

/// Knowledge about the decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    /// True if the loop can iterate at all.
    pub again: bool,
    /// True if it depends on what is not known.
    pub unknown: bool,
    /// True if a count that each turn raises ends it.
    pub counted: bool,
    /// True if a person takes part in an iteration.
    pub person: bool,
}

/// Maximum number of state fields whose decisions are analyzed.
const MAX_FIELDS: usize = 16;

/// Finds the decision that continues a fixpoint, given by its function.
pub(crate) fn decision(code: &Code, outline: &Outline, function: TermId) -> Decision {
    let Some(turn) = turn(code, function) else { return Decision { again: true, ..Decision::default() } };
    let inside = activation(code, turn.body);
    let calls = calling(code, &inside, turn.this);
    let again = calls.contains(&turn.body);
    let mut assigned: HashMap<&Name, Vec<TermId>> = HashMap::new();
    let mut named: HashMap<&Name, Vec<TermId>> = HashMap::new();
    let mut person = false;
    // Whether something changes the state in a way that is not known.
    let mut changed = false;
    for id in &inside {
        match code.term(*id) {
            Term::With(_, field, value) => assigned.entry(field).or_default().push(*value),
            Term::Let { bindings, .. } => {
                for (name, value) in bindings {
                    changed |= &**name == "_" && matches!(code.term(*value), Term::Unknown(_));
                    named.entry(name).or_default().push(*value);
                }
            }
            Term::Tool(tool) => person |= outline.roles.get(tool) == Some(&ToolRole::Person),
            _ => {}
        }
    }
    let mut tests: Vec<TermId> = Vec::new();
    for id in &inside {
        let (test, ways) = match code.term(*id) {
            Term::If(test, yes, no, _) => (*test, vec![*yes, *no]),
            Term::Case { scrutinee, branches, default } => {
                (*scrutinee, branches.iter().map(|b| b.body).chain(*default).collect())
            }
            _ => continue,
        };
        let again = ways.iter().filter(|w| calls.contains(w)).count();
        if again > 0 && again < ways.len() {
            tests.push(test);
        }
    }
    let mut found = Decision { again, person, ..Decision::default() };
    let mut seen: HashSet<TermId> = HashSet::new();
    let mut fields: HashSet<&Name> = HashSet::new();
    while let Some(id) = tests.pop() {
        if !seen.insert(id) {
            continue;
        }
        match code.term(id) {
            // A part of the state that is the answer: whatever gives it, and whatever decides what gives it.
            Term::Field(_, field) => {
                found.unknown |= changed;
                tests.extend(assigned.get(field).into_iter().flatten());
                if fields.len() < MAX_FIELDS && fields.insert(field) {
                    tests.extend(deciding(code, &inside, field));
                }
            }
            Term::Var(name, _) => tests.extend(named.get(name).into_iter().flatten()),
            Term::Prim(Prim::Lt | Prim::Le | Prim::Gt | Prim::Ge | Prim::Eq | Prim::Ne, sides) => {
                found.counted |= sides.iter().any(|s| counts(code, *s, &assigned));
                tests.extend(sides.iter().filter(|s| !matches!(code.term(**s), Term::Field(..))));
            }
            Term::Prim(_, parts) => tests.extend(parts),
            Term::If(test, yes, no, _) => tests.extend([*test, *yes, *no]),
            Term::Case { scrutinee, branches, default } => {
                tests.push(*scrutinee);
                tests.extend(branches.iter().map(|b| b.body).chain(*default));
            }
            Term::Let { bindings, body, .. } => {
                tests.push(*body);
                tests.extend(bindings.iter().map(|(_, e)| *e).filter(|e| plain(code, *e)));
            }
            Term::Check(_, _, value) => tests.push(*value),
            Term::Unknown(_) => found.unknown = true,
            Term::App(function, _) => found.unknown |= matches!(code.term(*function), Term::Tool(_)),
            _ => {}
        }
    }
    found
}

/// Returns true if a term only computes: what asks a model or tool is no part of a test.
fn plain(code: &Code, id: TermId) -> bool {
    !matches!(
        code.term(id),
        Term::App(..) | Term::Fresh(_) | Term::Recv(_) | Term::Record(_) | Term::With(..)
    )
}

/// Returns true if a value grows from iteration to iteration: a length, or a field of the state to which
/// something is added.
fn counts(code: &Code, side: TermId, assigned: &HashMap<&Name, Vec<TermId>>) -> bool {
    super::below(code, side).take(200).any(|id| match code.term(id) {
        Term::Prim(Prim::Length, _) => true,
        Term::Field(_, field) => assigned.get(field).into_iter().flatten().any(|value| {
            super::below(code, *value)
                .take(200)
                .any(|part| matches!(code.term(part), Term::Prim(Prim::Add, _)))
        }),
        _ => false,
    })
}

/// The terms of an activation, parts before wholes: not those in functions, but those of its branches and
/// conversations.
fn activation(code: &Code, root: TermId) -> Vec<TermId> {
    let mut left = vec![root];
    let mut all = Vec::new();
    while let Some(id) = left.pop() {
        all.push(id);
        if !matches!(code.term(id), Term::Abs(_) | Term::Fix { .. }) {
            left.extend(code.term(id).children());
        }
    }
    all.reverse();
    all
}

/// The tests that decide whether a part of the state is assigned, or to what.
fn deciding(code: &Code, inside: &[TermId], field: &Name) -> Vec<TermId> {
    let mut assigns: HashSet<TermId> = HashSet::new();
    let mut tests = Vec::new();
    for id in inside {
        let term = code.term(*id);
        let own = matches!(term, Term::With(_, f, _) if f == field);
        let closed = matches!(term, Term::Abs(_) | Term::Fix { .. });
        if own || !closed && term.children().iter().any(|c| assigns.contains(c)) {
            assigns.insert(*id);
        }
        match term {
            Term::If(test, yes, no, _) if assigns.contains(yes) || assigns.contains(no) => tests.push(*test),
            Term::Case { scrutinee, branches, .. } if branches.iter().any(|b| assigns.contains(&b.body)) => {
                tests.push(*scrutinee);
            }
            _ => {}
        }
    }
    tests
}

/// The terms of an activation in which `self` occurs, be it in a function that has captured it.
fn calling(code: &Code, inside: &[TermId], this: Slot) -> HashSet<TermId> {
    let captured = |id: TermId| matches!(code.term(id), Term::Abs(abs) if abs.captures.contains(&this));
    let mut calls = HashSet::new();
    for id in inside {
        let does = match code.term(*id) {
            Term::Var(_, slot) => *slot == this,
            Term::Abs(_) => captured(*id),
            Term::Fix { body, .. } => captured(*body),
            term => term.children().iter().any(|c| calls.contains(c)),
        };
        if does {
            calls.insert(*id);
        }
    }
    calls
}
