//! The laws, each as a function from a redex to what it equals.
//!
//! Invariant: both sides give the same value with the same labels, ask the same of the world in the same
//! order, and fail with the same error at the same label; what a message says may differ. Each is a property
//! of `tests/laws.rs`.

use crate::tree::{Node, Tree};
use analysis::pred::{Answer, implies};
use core_ir::{Bound, Data, LetSugar, Pred, Slot, Term, TermId};
use std::sync::Arc;

type New = Option<TermId>;

/// `(a >> b) >> c = a >> b >> c`
pub(crate) fn compose_assoc(t: &mut Tree<'_>, id: TermId) -> New {
    let Node::Compose(stages) = t.node(id).clone() else { return None };
    let nested = |s: &TermId| matches!(t.node(*s), Node::Compose(_));
    if !stages.iter().any(nested) {
        return None;
    }
    let flat = stages.iter().flat_map(|s| match t.node(*s) {
        Node::Compose(inner) => inner.clone(),
        _ => vec![*s],
    });
    let flat = flat.collect();
    Some(t.add(Node::Compose(flat), t.span(id)))
}

/// Returns true if the term is the identity function.
fn is_identity(t: &mut Tree<'_>, id: TermId) -> bool {
    match t.term(id).cloned() {
        Some(Term::Var(_, Slot::Global(i))) => {
            let Some((code, f)) = t.code.globals().get(i) else { return false };
            let Term::Abs(abs) = code.term(f) else { return false };
            matches!(code.term(abs.body), Term::Var(_, Slot::Local(0)))
        }
        Some(Term::Abs(abs)) => matches!(t.term(abs.body), Some(Term::Var(x, _)) if *x == abs.param),
        Some(Term::Fix { bound: Bound::Finite(0), body, .. }) => t.is_pure(body) && t.is_closed(body),
        _ => false,
    }
}

/// `a >> id >> b = a >> b`; of one stage that is a function, the stage.
pub(crate) fn compose_id(t: &mut Tree<'_>, id: TermId) -> New {
    let Node::Compose(stages) = t.node(id).clone() else { return None };
    let mut kept: Vec<TermId> = stages.iter().copied().filter(|s| !is_identity(t, *s)).collect();
    if kept.is_empty() {
        kept.extend(stages.first());
    }
    match kept[..] {
        // `λx. f x` is not `f` where the label of `f` can be seen.
        [only] if t.reads_its_argument(only) => Some(only),
        _ if kept.len() < stages.len() => Some(t.add(Node::Compose(kept), t.span(id))),
        _ => None,
    }
}

/// `(a >> b) e = b (a e)`
pub(crate) fn compose_apply(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::App(f, e)) = t.term(id) else { return None };
    let (f, e, span) = (*f, *e, t.span(id));
    let Node::Compose(stages) = t.node(f).clone() else { return None };
    // The argument comes before the stages on the left, after them on the right.
    if !stages.iter().all(|s| t.is_pure(*s)) {
        return None;
    }
    Some(stages.into_iter().fold(e, |at, s| t.add(Node::Term(Term::App(s, at)), span)))
}

/// `a >> b = λx. b (a x)`
pub(crate) fn compose_unfold(t: &mut Tree<'_>, id: TermId) -> New {
    let Node::Compose(stages) = t.node(id).clone() else { return None };
    let span = t.span(id);
    let name = t.fresh("$x");
    let x = t.var(name.clone(), span);
    let body = stages.into_iter().fold(x, |at, s| t.add(Node::Term(Term::App(s, at)), span));
    let abs =
        core_ir::Abs { param: name, ty: None, body, captures: Box::new([]), sugar: core_ir::AbsSugar::Plain };
    Some(t.add(Node::Term(Term::Abs(abs)), span))
}

/// `λx. f x = f`, for a function written there that is not a tool
pub(crate) fn eta(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Abs(abs)) = t.term(id).cloned() else { return None };
    let Some(Term::App(f, x)) = t.term(abs.body) else { return None };
    let (f, x) = (*f, *x);
    let applied = matches!(t.term(x), Some(Term::Var(n, _)) if *n == abs.param);
    (applied && t.reads_its_argument(f) && !t.mentions(f, &abs.param)).then_some(f)
}

/// `(λx. b) e = let x = e in b`
pub(crate) fn beta(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::App(f, e)) = t.term(id) else { return None };
    let (f, e) = (*f, *e);
    let Some(Term::Abs(abs)) = t.term(f).cloned() else { return None };
    Some(t.let_in(abs.param, e, abs.body, t.span(id)))
}

fn plain_let(t: &Tree<'_>, id: TermId) -> Option<(core_ir::Name, TermId, TermId)> {
    match t.term(id) {
        Some(Term::Let { bindings, body, sugar: LetSugar::Plain }) => {
            Some((bindings[0].0.clone(), bindings[0].1, *body))
        }
        _ => None,
    }
}

/// `let x = e in b = b`, if `b` has no `x` and `e` does nothing
pub(crate) fn let_dead(t: &mut Tree<'_>, id: TermId) -> New {
    let (x, e, body) = plain_let(t, id)?;
    (t.is_pure(e) && !t.mentions(body, &x)).then_some(body)
}

/// `let x = y in b = b[x := y]`, for a variable or a scalar
pub(crate) fn let_copy(t: &mut Tree<'_>, id: TermId) -> New {
    let (x, e, body) = plain_let(t, id)?;
    let small = match t.term(e)? {
        Term::Var(..) => true,
        Term::Lit(d) => !matches!(d, Data::List(_) | Data::Record(_) | Data::Pair(_) | Data::Tag(..)),
        _ => false,
    };
    let (uses, inside) = t.uses(body, &x);
    // A function that captured `x` may be made to run under a lower program counter than `x` was made under.
    if !small || uses == 0 || inside && t.reclassifies {
        return None;
    }
    Some(t.replace(body, &x, e))
}

/// `let x = e in x = e`
pub(crate) fn let_return(t: &mut Tree<'_>, id: TermId) -> New {
    let (x, e, body) = plain_let(t, id)?;
    matches!(t.term(body), Some(Term::Var(y, _)) if *y == x).then_some(e)
}

/// `let x = (let y = a in b) in c = let y = a in let x = b in c`
pub(crate) fn let_let(t: &mut Tree<'_>, id: TermId) -> New {
    let (x, e, c) = plain_let(t, id)?;
    let (y, a, b) = plain_let(t, e)?;
    let inner = t.let_in(x, b, c, t.span(id));
    Some(t.let_in(y, a, inner, t.span(e)))
}

/// `(let x = a in f) e = let x = a in f e`
pub(crate) fn let_apply(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::App(f, e)) = t.term(id) else { return None };
    let (f, e) = (*f, *e);
    let (x, a, b) = plain_let(t, f)?;
    let call = t.add(Node::Term(Term::App(b, e)), t.span(id));
    Some(t.let_in(x, a, call, t.span(f)))
}

/// `let x = e in C[x] = C[e]`, if `x` is used once and nothing happens before it
pub(crate) fn let_once(t: &mut Tree<'_>, id: TermId) -> New {
    let (x, e, body) = plain_let(t, id)?;
    (t.uses(body, &x) == (1, false) && comes_first(t, body, &x)).then(|| t.replace(body, &x, e))
}

/// Returns true if, pure parts aside, the variable is evaluated first, at the program counter of the term.
fn comes_first(t: &mut Tree<'_>, id: TermId, x: &core_ir::Name) -> bool {
    let Some(term) = t.term(id).cloned() else { return false };
    let strict: Vec<TermId> = match &term {
        Term::Var(y, _) => return y == x,
        Term::If(c, ..) | Term::Case { scrutinee: c, .. } => vec![*c],
        Term::Record(_)
        | Term::Args(..)
        | Term::List(_)
        | Term::Prim(..)
        | Term::Pair(..)
        | Term::App(..)
        | Term::Field(..)
        | Term::Index(..)
        | Term::With(..)
        | Term::Fst(_)
        | Term::Snd(_)
        | Term::Tag(..)
        | Term::Classify(..)
        | Term::Check(..)
        | Term::Remember(..)
        | Term::Send(..)
        | Term::Let { sugar: LetSugar::Plain, .. } => term.children(),
        _ => return false,
    };
    for kid in strict {
        if t.mentions(kid, x) {
            return comes_first(t, kid, x);
        }
        if !t.is_pure(kid) {
            return false;
        }
    }
    false
}

/// `if true then a else b = a`
pub(crate) fn if_known(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::If(c, a, b, _)) = t.term(id) else { return None };
    match t.term(*c) {
        Some(Term::Lit(Data::Bool(true))) => Some(*a),
        Some(Term::Lit(Data::Bool(false))) => Some(*b),
        _ => None,
    }
}

/// `case l e of {…, l x ⇒ b, …} = let x = e in b`
pub(crate) fn case_known(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Case { scrutinee, branches, default }) = t.term(id).cloned() else { return None };
    let span = t.span(id);
    let (tag, payload) = match t.term(scrutinee).cloned()? {
        Term::Tag(name, Some(e)) => (Some(name), e),
        Term::Tag(name, None) => (Some(name), t.add(Node::Term(Term::Lit(Data::Null)), span)),
        Term::Lit(Data::Tag(name, d)) => (Some(name), t.add(Node::Term(Term::Lit((*d).clone())), span)),
        Term::Lit(Data::Str(s)) => {
            (Some(core_ir::Name::from(&*s)), t.add(Node::Term(Term::Lit(Data::Null)), span))
        }
        Term::Lit(_) => (None, t.add(Node::Term(Term::Lit(Data::Null)), span)),
        _ => return None,
    };
    let branch = branches.iter().find(|b| Some(&b.tag) == tag.as_ref());
    let (binder, body) = match branch {
        Some(b) => (b.binder.clone(), b.body),
        None => (None, default?),
    };
    match binder {
        Some(x) => Some(t.let_in(x, payload, body, span)),
        None if t.is_pure(payload) => Some(body),
        None => {
            let unused = t.fresh("_");
            Some(t.let_in(unused, payload, body, span))
        }
    }
}

/// `fst (a, b) = a`, `{f: a, …}.f = a`, `[a, …].[0] = a`, if the other parts do nothing
pub(crate) fn project_known(t: &mut Tree<'_>, id: TermId) -> New {
    let (whole, at): (TermId, usize) = match t.term(id)? {
        Term::Fst(e) => (*e, 0),
        Term::Snd(e) => (*e, 1),
        Term::Field(e, name) => match t.term(*e)? {
            Term::Record(fields) => (*e, fields.iter().position(|(n, _)| n == name)?),
            _ => return None,
        },
        Term::Index(e, i) => match (t.term(*e)?, t.term(*i)?) {
            (Term::List(_), Term::Lit(Data::Num(n))) => (*e, n.to_usize()?),
            (Term::Record(fields), Term::Lit(Data::Str(s))) => {
                (*e, fields.iter().position(|(n, _)| **n == **s)?)
            }
            _ => return None,
        },
        _ => return None,
    };
    let parts = match t.term(whole)? {
        Term::Pair(a, b) if matches!(t.term(id)?, Term::Fst(_) | Term::Snd(_)) => vec![*a, *b],
        Term::Record(_) | Term::List(_) if !matches!(t.term(id)?, Term::Fst(_) | Term::Snd(_)) => {
            t.term(whole)?.children()
        }
        _ => return None,
    };
    let others = parts.iter().enumerate().all(|(i, p)| i == at || t.is_pure(*p));
    if others { parts.get(at).copied() } else { None }
}

/// ``classify[l, …] "l" = `l``
pub(crate) fn classify_known(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Classify(tags, e)) = t.term(id) else { return None };
    let Some(Term::Lit(Data::Str(s))) = t.term(*e) else { return None };
    let tag = tags.iter().find(|tag| ***tag == **s)?.clone();
    Some(t.add(Node::Term(Term::Tag(tag, None)), t.span(id)))
}

/// `check[τ] k = k`, for a literal of the type
pub(crate) fn check_known(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Check(_, ty, e)) = t.term(id) else { return None };
    let Some(Term::Lit(d)) = t.term(*e) else { return None };
    (is_short(d) && ty.check(d).is_ok()).then_some(*e)
}

/// Scalars that no limit of a run refuses.
fn is_short(d: &Data) -> bool {
    match d {
        Data::Str(s) => s.len() <= 1_000,
        Data::Null | Data::Bool(_) => true,
        Data::Num(n) => n.to_i64().is_some(),
        _ => false,
    }
}

/// `guard k P = k`, for a literal that satisfies `P`
pub(crate) fn guard_known(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Guard { term, pred, .. }) = t.term(id) else { return None };
    let Some(Term::Lit(d)) = t.term(*term) else { return None };
    (is_short(d) && pred.holds(d).is_ok()).then_some(*term)
}

/// `guard (guard e P) Q = guard e P`, if `P` implies `Q`
pub(crate) fn guard_implied(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Guard { term: inner, pred: q, .. }) = t.term(id) else { return None };
    let Some(Term::Guard { pred: p, .. }) = t.term(*inner) else { return None };
    (implies(p, q) == Answer::Yes).then_some(*inner)
}

/// `guard (guard e P) Q = guard e (P && Q)`, where nothing is retried and no message is inspected
pub(crate) fn guard_and(t: &mut Tree<'_>, id: TermId) -> New {
    // The message names the predicate.
    if t.reads_messages {
        return None;
    }
    let Some(Term::Guard { term: inner, pred: q, retry: 0 }) = t.term(id) else { return None };
    let Some(Term::Guard { term, pred: p, retry: 0 }) = t.term(*inner) else { return None };
    let pred = Pred::And(Arc::new((p.clone(), q.clone())));
    let term = Term::Guard { term: *term, pred, retry: 0 };
    Some(t.add(Node::Term(term), t.span(id)))
}

/// `fix[0] F e = e`, if `F` does nothing
pub(crate) fn fix_zero(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::App(f, e)) = t.term(id) else { return None };
    let Some(Term::Fix { bound: Bound::Finite(0), body, .. }) = t.term(*f) else { return None };
    t.is_pure(*body).then_some(*e)
}

/// `fix[n] (λs. f) = f`, if `f` has no `s` and `n > 0`
pub(crate) fn fix_unused(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Fix { bound, body, .. }) = t.term(id) else { return None };
    if *bound == Bound::Finite(0) {
        return None;
    }
    let Some(Term::Abs(abs)) = t.term(*body).cloned() else { return None };
    (t.is_function(abs.body) && !t.mentions(abs.body, &abs.param)).then_some(abs.body)
}

/// `try[l] e catch x. h = l : e`, if `e` cannot fail
pub(crate) fn try_total(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Try { label, body, .. }) = t.term(id) else { return None };
    let (label, body) = (*label, *body);
    t.is_pure(body).then(|| t.add(Node::Term(Term::Relabel(label, body)), t.span(id)))
}

/// `fork e = e`, `fresh e = e`, if `e` leaves the conversation alone
pub(crate) fn scope_idle(t: &mut Tree<'_>, id: TermId) -> New {
    match t.term(id) {
        Some(Term::Fork(e) | Term::Fresh(e)) if t.is_silent(*e) => Some(*e),
        _ => None,
    }
}

/// `fork (fork e) = fork e`, `fresh (fork e) = fresh e`, `fork (fresh e) = fresh e`,
/// `fresh (fresh e) = fresh e`
pub(crate) fn scope_twice(t: &mut Tree<'_>, id: TermId) -> New {
    let (outer, inner) = match t.term(id)? {
        Term::Fork(e) => (false, *e),
        Term::Fresh(e) => (true, *e),
        _ => return None,
    };
    match t.term(inner)? {
        Term::Fresh(_) => Some(inner),
        Term::Fork(e) if outer => {
            let e = *e;
            Some(t.add(Node::Term(Term::Fresh(e)), t.span(id)))
        }
        Term::Fork(_) => Some(inner),
        _ => None,
    }
}

/// `par [a, …] = [a, …]`, if the branches do nothing; `each f [] = []`
pub(crate) fn par_total(t: &mut Tree<'_>, id: TermId) -> New {
    // Draws are numbered by the `par`s before them.
    if t.samples {
        return None;
    }
    let items = match t.term(id)? {
        Term::Par(_, es) if es.iter().all(|e| t.is_pure(*e)) => es.clone(),
        Term::Each(_, f, list) if t.is_pure(*f) => match t.term(*list)? {
            Term::List(es) if es.is_empty() => Vec::new(),
            _ => return None,
        },
        _ => return None,
    };
    Some(t.add(Node::Term(Term::List(items)), t.span(id)))
}

/// `mem e σ = e`, if `e` uses no key of `σ`
pub(crate) fn mem_unused(t: &mut Tree<'_>, id: TermId) -> New {
    let Some(Term::Mem(store, e)) = t.term(id) else { return None };
    (!t.uses_store(*e, *store)).then_some(*e)
}
