//! Rewrites that save calls and change what a program asks of the world: only by explicit request.

use crate::tree::{Node, Tree};
use core_ir::{Data, EffectClass, LetSugar, ModelParams, Term, TermId, Type};
use std::sync::Arc;

type New = Option<TermId>;

/// `llm p >> llm q = llm r`, where `r` says to do both: two questions with plain answers to one model.
pub(crate) fn fuse_models(t: &mut Tree<'_>, id: TermId) -> New {
    let Node::Compose(stages) = t.node(id).clone() else { return None };
    let at = (1..stages.len()).find(|i| fusible(t, stages[i - 1], stages[*i]).is_some())?;
    let (p, q, params) = fusible(t, stages[at - 1], stages[at])?;
    let span = t.span(stages[at]);
    let prompt = format!(
        "Do two things one after the other, and answer with the result of the second alone.\n\nFirst:\n{p}\n\nThen, with \
         the result of the first as the input:\n{q}"
    );
    let prompt = t.add(Node::Term(Term::Lit(Data::str(prompt))), span);
    let both = t.add(Node::Term(Term::Llm(prompt, Arc::new(params))), span);
    let mut stages = stages;
    stages.splice(at - 1..=at, [both]);
    Some(match stages[..] {
        [only] => only,
        _ => t.add(Node::Compose(stages), t.span(id)),
    })
}

fn fusible(t: &Tree<'_>, a: TermId, b: TermId) -> Option<(Arc<str>, Arc<str>, ModelParams)> {
    let (Some(Term::Llm(p, first)), Some(Term::Llm(q, second))) = (t.term(a), t.term(b)) else { return None };
    let (Some(Term::Lit(Data::Str(p))), Some(Term::Lit(Data::Str(q)))) = (t.term(*p), t.term(*q)) else {
        return None;
    };
    let plain =
        matches!(first.result, None | Some(Type::Str)) && first.tools.is_empty() && second.tools.is_empty();
    let alike = first.model == second.model
        && first.temperature == second.temperature
        && first.extra == second.extra
        && !p.is_empty()
        && !q.is_empty();
    let most = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    let params = ModelParams {
        max_tokens: most(first.max_tokens, second.max_tokens),
        purpose: second.purpose.clone().or_else(|| first.purpose.clone()),
        ..(**second).clone()
    };
    (plain && alike).then(|| (p.clone(), q.clone(), params))
}

/// `… recall k … recall k … = let x = recall k in … x … x …`, if nothing in between can write.
pub(crate) fn hoist_reads(t: &mut Tree<'_>, id: TermId) -> New {
    share(t, id, &|t, e| matches!(t.term(e), Some(Term::Recall(..))), &|t, e| {
        matches!(t.term(e), Some(Term::Remember(..) | Term::Each(..)))
            || matches!(t.term(e), Some(Term::App(f, _)) if !matches!(t.term(*f), Some(Term::Tool(_) | Term::Llm(..))))
    })
}

/// `… f e … f e … = let x = f e in … x … x …`, for a pure tool and an argument that does nothing.
pub(crate) fn share_calls(t: &mut Tree<'_>, id: TermId) -> New {
    share(
        t,
        id,
        &|t, e| {
            let Some(Term::App(f, x)) = t.term(e) else { return false };
            let Some(Term::Tool(tool)) = t.term(*f) else { return false };
            let decl = t.code.tool(*tool);
            let free =
                !decl.approve.may_ask() && !decl.confirms && decl.policy.is_none() && decl.at_most.is_none();
            decl.effect == EffectClass::Pure && free && t.is_pure(*x)
        },
        &|_, _| false,
    )
}

/// Makes one of two equal terms that are surely both evaluated, at one program counter. `such`: what is made
/// one; `never`: what must not be anywhere in between.
fn share(
    t: &mut Tree<'_>,
    id: TermId,
    such: &dyn Fn(&Tree<'_>, TermId) -> bool,
    never: &dyn Fn(&Tree<'_>, TermId) -> bool,
) -> New {
    let sequence = |t: &Tree<'_>, id: TermId| {
        matches!(
            t.term(id),
            Some(
                Term::Record(_)
                    | Term::Args(..)
                    | Term::List(_)
                    | Term::Prim(..)
                    | Term::Pair(..)
                    | Term::App(..)
                    | Term::Let { sugar: LetSugar::Plain, .. }
            )
        )
    };
    if !sequence(t, id) {
        return None;
    }
    // Parts evaluated one after the other.
    let mut found: Vec<TermId> = Vec::new();
    let mut work = vec![id];
    while let Some(at) = work.pop() {
        if never(t, at) {
            return None;
        }
        if such(t, at) {
            found.push(at);
        } else if sequence(t, at) {
            work.extend(t.kids(at).into_iter().map(|(k, _)| k));
        } else if anywhere(t, at, never) {
            return None;
        }
    }
    let free = t.free(id);
    for (i, a) in found.iter().enumerate() {
        let known = t.free(*a).is_subset(&free);
        let twins: Vec<TermId> = found[i + 1..].iter().copied().filter(|b| t.same(*a, t, *b)).collect();
        if !known || twins.is_empty() {
            continue;
        }
        let name = t.fresh("$shared");
        let (a, span) = (*a, t.span(*a));
        let body = exchange(t, id, &|at| at == a || twins.contains(&at), &name);
        return Some(t.let_in(name, a, body, span));
    }
    None
}

/// Returns true if the tree, including bodies of functions, contains such a term.
fn anywhere(t: &Tree<'_>, id: TermId, such: &dyn Fn(&Tree<'_>, TermId) -> bool) -> bool {
    such(t, id)
        || t.kids(id)
            .into_iter()
            .any(|(k, _)| stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || anywhere(t, k, such)))
}

fn exchange(t: &mut Tree<'_>, id: TermId, such: &dyn Fn(TermId) -> bool, name: &core_ir::Name) -> TermId {
    if such(id) {
        return t.var(name.clone(), t.span(id));
    }
    let kids = t.kids(id);
    if kids.is_empty() {
        return id;
    }
    let kids: Vec<TermId> = kids
        .into_iter()
        .map(|(k, _)| stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || exchange(t, k, such, name)))
        .collect();
    t.with_kids(id, &kids)
}
