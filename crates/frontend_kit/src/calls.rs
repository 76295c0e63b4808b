//! Execution of the calls in a model's reply, one after the other, before the next request.
//!
//! | source | term |
//! |---|---|
//! | a reply that holds one call | `case recv[θ] of {…}` |
//! | a reply and what it calls | `(fix[∞] (λmore. λt. case t of {…, none ⇒ …})) (recv[θ])` |
//! | after a call | `more (recv[θ, waiting])` |
//!
//! Invariant: a reply is asked for once, however many calls it holds; how many it holds has no bound.

use crate::kit::Kit;
use core_ir::{Bound, BoundOrigin, Branch, Data, ModelParams, NOTHING_WAITS, Name, Recv, Term, TermId};
use diagnostics::Span;
use std::sync::Arc;

/// Reason why the loop over the calls of a reply has no bound.
pub const AS_MANY: &str = "a reply may hold any number of calls";

/// Returns true if a name is reserved, because a reply without a call, or the end of the waiting calls, has
/// that tag.
pub fn reserved(name: &str) -> bool {
    matches!(name, "" | "final" | NOTHING_WAITS)
}

/// Returns true if a reply may contain several calls: the source doesn't disable parallel calls.
pub fn several(params: &ModelParams) -> bool {
    !params.extra.iter().any(|(n, d)| &**n == "parallel_tool_calls" && *d == Data::Bool(false))
}

/// Returns the parameters of the request that receives the next waiting call.
pub fn waiting(params: &ModelParams) -> ModelParams {
    ModelParams {
        model: params.model.clone(),
        tools: params.tools.clone(),
        repair: params.repair,
        waiting: true,
        ..ModelParams::default()
    }
}

/// Lowers the continuation after a call: the next waiting call and its handling, given the values known so
/// far. `None` if a reply contains one call at most.
pub fn more(kit: &mut Kit<'_>, params: &ModelParams, known: Vec<(Name, TermId)>, at: Span) -> Option<TermId> {
    if !several(params) {
        return None;
    }
    let next = kit.b.add(Term::Recv(Recv::Data(Arc::new(waiting(params)))), at);
    let next = with(kit, next, known, at);
    let more = kit.b.var("more", at);
    Some(kit.b.app(more, next, at))
}

/// Adds the known values to a reply.
fn with(kit: &mut Kit<'_>, reply: TermId, known: Vec<(Name, TermId)>, at: Span) -> TermId {
    if known.is_empty() {
        return reply;
    }
    let mut fields = vec![(Name::from("reply"), reply)];
    fields.extend(known);
    kit.b.add(Term::Record(fields), at)
}

/// Lowers a field of the values passed to [`more`].
pub fn so_far(kit: &mut Kit<'_>, field: &str, at: Span) -> TermId {
    let t = kit.b.var("t", at);
    kit.b.add(Term::Field(t, field.into()), at)
}

/// Lowers the calls of a reply. The branches state the effect of each call, with [`more`] in them, and the
/// meaning of a reply without a call. `known` is known before the first call, and `after` is the result when
/// no call is left.
pub fn calls(
    kit: &mut Kit<'_>,
    params: ModelParams,
    known: Vec<(Name, TermId)>,
    mut branches: Vec<Branch>,
    after: TermId,
    (at, branches_at, model_at): (Span, Span, Span),
) -> TermId {
    let several = several(&params);
    let reply = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
    if !several {
        return kit.b.add(Term::Case { scrutinee: reply, branches, default: None }, branches_at);
    }
    // A tool of this name would be called again and again.
    branches.retain(|b| &*b.tag != NOTHING_WAITS);
    branches.push(Branch { tag: NOTHING_WAITS.into(), binder: None, body: after });
    one_by_one(kit, reply, known, branches, None, (at, branches_at, model_at))
}

/// Lowers the calls of a reply that was received before. `after` is also the result of a reply without a
/// call.
pub fn received(
    kit: &mut Kit<'_>,
    reply: TermId,
    known: Vec<(Name, TermId)>,
    mut branches: Vec<Branch>,
    after: TermId,
    at: Span,
) -> TermId {
    branches.retain(|b| &*b.tag != NOTHING_WAITS);
    one_by_one(kit, reply, known, branches, Some(after), (at, at, at))
}

fn one_by_one(
    kit: &mut Kit<'_>,
    reply: TermId,
    known: Vec<(Name, TermId)>,
    branches: Vec<Branch>,
    default: Option<TermId>,
    (at, branches_at, model_at): (Span, Span, Span),
) -> TermId {
    let t = if known.is_empty() { kit.b.var("t", at) } else { so_far(kit, "reply", at) };
    let case = kit.b.add(Term::Case { scrutinee: t, branches, default }, branches_at);
    let step = kit.b.abs("t", None, case, at);
    let step = kit.b.abs("more", None, step, at);
    let origin = Some(BoundOrigin::from(AS_MANY));
    let fix = kit.b.add(Term::Fix { bound: Bound::Infinite, origin, body: step }, at);
    let reply = with(kit, reply, known, model_at);
    kit.b.app(fix, reply, at)
}
