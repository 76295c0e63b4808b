//! Gradual types for Python's values.
//!
//! Python is dynamically typed: `d.get("k", {})` may be a value of any type, though one branch is an empty
//! record. Where a field, item or operation uses such a value, its type is dynamic, and a type error is an
//! error of the run, as in Python. Variables, literals, and results of models and tools keep their types.

use super::value::STATE;
use core_ir::{Builder, Data, Prim, Term, TermId, Type};

/// Opens the values of a unit where they are used.
pub(super) fn open(b: &mut Builder) {
    let mut state = false;
    b.revise(|_, _, term| {
        state |= matches!(&term, Term::Check(name, Type::Dyn, _) if &**name == "state");
        term
    });
    b.revise(|b, _, term| match term {
        Term::Field(of, name) => Term::Field(opened(b, of, state), name),
        Term::Index(of, key) => Term::Index(opened(b, of, state), opened(b, key, state)),
        Term::With(of, name, value) => Term::With(opened(b, of, state), name, value),
        Term::Each(most, f, of) => Term::Each(most, f, opened(b, of, state)),
        Term::Send(role, text) => Term::Send(role, opened(b, text, state)),
        Term::Llm(prompt, params) => Term::Llm(opened(b, prompt, state), params),
        Term::App(f, x) if matches!(b.term(f), Term::Llm(..)) => Term::App(f, opened(b, x, state)),
        Term::Prim(prim, of) if demands(prim) => {
            let joins = prim == Prim::Add;
            let open = |e: TermId| if joins && is_full_list(b, e) { e } else { opened(b, e, state) };
            Term::Prim(prim, of.into_iter().map(open).collect())
        }
        // A definition for one expression: `let v = … in if is_null v …`.
        Term::Let { mut bindings, body, sugar } => {
            for (name, value) in &mut bindings {
                if name.starts_with("$v") {
                    *value = match b.term(*value) {
                        Term::Var(of, _) if of.starts_with('$') && &**of != STATE => any(b, *value),
                        _ => opened(b, *value, state),
                    };
                }
            }
            Term::Let { bindings, body, sugar }
        }
        term => term,
    });
}

/// Returns true if a term is a list literal with items, whose type is known.
fn is_full_list(b: &Builder, id: TermId) -> bool {
    matches!(b.term(id), Term::List(items) if !items.is_empty())
}

/// Returns true if a primitive restricts the types of its operands.
fn demands(prim: Prim) -> bool {
    !matches!(
        prim,
        Prim::Not
            | Prim::Eq
            | Prim::Ne
            | Prim::Format
            | Prim::IsFn
            | Prim::IsArray
            | Prim::IsRecord
            | Prim::IsStr
            | Prim::IsNum
            | Prim::IsBool
            | Prim::IsNull
            | Prim::ToStr
            | Prim::ToJson
            | Prim::Flatten
    )
}

fn opened(b: &mut Builder, id: TermId, state: bool) -> TermId {
    if is_loose(b, id, state, 0) { any(b, id) } else { id }
}

/// A value as one of any type.
fn any(b: &mut Builder, id: TermId) -> TermId {
    let at = b.span(id);
    b.add(Term::Check("value".into(), Type::Dyn, id), at)
}

/// Returns true if a value may have several types, or one that its use doesn't fit.
fn is_loose(b: &Builder, id: TermId, state: bool, depth: usize) -> bool {
    const MAX_DEPTH: usize = 40;
    if depth > MAX_DEPTH {
        return true;
    }
    let within = |id: &TermId| is_loose(b, *id, state, depth + 1);
    match b.term(id) {
        Term::If(_, yes, no, _) => {
            // A variable that is looked at before is one way among others.
            let way = |id: &TermId| matches!(b.term(*id), Term::Var(..)) || within(id);
            way(yes) || way(no)
        }
        Term::Let { bindings, body, .. } => match b.term(*body) {
            // `let v = list in v.[n]` is as loose as the list.
            Term::Index(of, _) if matches!(b.term(*of), Term::Var(..)) => {
                bindings.last().is_none_or(|(_, value)| within(value))
            }
            _ => within(body),
        },
        Term::Case { .. } | Term::List(_) | Term::Record(_) => true,
        Term::Lit(data) => matches!(data, Data::Null | Data::List(_) | Data::Record(_)),
        Term::Prim(prim, of) => matches!(prim, Prim::Add) && of.iter().any(within),
        Term::Field(of, _) if is_whole(b, *of) => false,
        // A loop with a bound returns its argument when the bound is reached.
        Term::App(f, _) => matches!(b.term(*f), Term::Fix { .. }),
        // What a reducer joins.
        Term::Var(name, _) => name.starts_with("$new") || name.starts_with("$old"),
        Term::Field(..) | Term::Index(..) => !(state && of_state(b, id)),
        _ => false,
    }
}

/// Returns true if a term is the whole state, whose keys keep their initial types.
fn is_whole(b: &Builder, id: TermId) -> bool {
    matches!(b.term(id), Term::Var(name, _) if &**name == STATE)
}

/// Returns true if a value is part of the state. Its type is unknown where the state is open.
fn of_state(b: &Builder, mut id: TermId) -> bool {
    loop {
        match b.term(id) {
            Term::Field(of, _) | Term::Index(of, _) => id = *of,
            Term::Check(..) => return true,
            Term::Var(name, _) => return &**name == STATE,
            _ => return false,
        }
    }
}
