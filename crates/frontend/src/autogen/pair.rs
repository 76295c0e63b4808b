//! A talk of two before 0.4, of whom one has a model: that one's conversation.

use super::classic::Stop;
use super::ends::holds_text;
use super::model::{Assistant, Kind, Member, ToolUse};
use super::term::{state, system};
use crate::emit::{LoopBound, codes};
use crate::kit::Kit;
use core_ir::{Branch, Data, IfSugar, Prim, Recv, Role, Term, TermId, Type};
use diagnostics::Span;
use std::sync::Arc;

/// One side's conversation with another one that has no model.
pub(super) fn conversation(
    kit: &mut Kit<'_>,
    member: &Member,
    a: &Assistant,
    other: &Member,
    stop: Stop,
    bound: LoopBound,
    at: Span,
) -> TermId {
    let model_at = a.model_at.unwrap_or(member.head);
    let mut params = a.params.clone();
    let mut branches: Vec<Branch> = Vec::new();
    let next = |kit: &mut Kit<'_>, text: &str, waits: bool, at: Span| {
        let (text, waits) = (kit.b.var(text, at), kit.b.lit(Data::Bool(waits), at));
        let s = kit.b.add(Term::Record(vec![("text".into(), text), ("answer".into(), waits)]), at);
        let this = kit.b.var("self", at);
        kit.b.app(this, s, at)
    };
    for ToolUse { decl, .. } in &a.tools {
        let (name, at) = (decl.name.clone(), decl.span);
        if &*name == "final" || branches.len() >= crate::emit::MOST_TOOLS {
            continue;
        }
        let id = kit.declared(decl.clone());
        params.tools.push(id);
        let (tool, given) = (kit.b.add(Term::Tool(id), at), kit.b.var("a", at));
        let result = kit.b.app(tool, given, at);
        let result = kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at);
        let o = kit.b.var("o", at);
        let told = kit.b.add(Term::Send(Role::Tool, o), at);
        let on = next(kit, "o", false, at);
        let body = kit.b.let_in(vec![("o".into(), result), ("_".into(), told)], on, at);
        branches.push(Branch { tag: name, binder: Some("a".into()), body });
    }
    let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
    let on = next(kit, "y", true, member.head);
    let reply = if branches.is_empty() {
        kit.b.let_in(vec![("y".into(), recv)], on, member.head)
    } else {
        branches.push(Branch { tag: "final".into(), binder: Some("y".into()), body: on });
        let t = kit.b.var("t", member.head);
        let case = kit.b.add(Term::Case { scrutinee: t, branches, default: None }, member.head);
        kit.b.let_in(vec![("t".into(), recv)], case, member.head)
    };
    // Whether the other one answers.
    let place = other.head;
    let yes = |kit: &mut Kit<'_>, b: bool| kit.b.lit(Data::Bool(b), place);
    let answers = match &other.kind {
        Kind::Says(text) => {
            let text = kit.text(text, place);
            let told = kit.b.add(Term::Send(Role::User, text), place);
            let goes_on = yes(kit, true);
            kit.b.let_in(vec![("_".into(), told)], goes_on, place)
        }
        Kind::Unknown(why) => kit.undecided(codes::NOT_COMPILED, why.clone(), place),
        _ => {
            let said = state(kit, "text", place);
            let answer = crate::flow::by_tool(kit, &other.name, said, place);
            let (w, exit) = (kit.b.var("w", place), kit.text("exit", place));
            let ends = kit.b.add(Term::Prim(Prim::Eq, vec![w, exit]), place);
            let w = kit.b.var("w", place);
            let told = kit.b.add(Term::Send(Role::User, w), place);
            let (over, goes_on) = (yes(kit, false), yes(kit, true));
            let goes_on = kit.b.let_in(vec![("_".into(), told)], goes_on, place);
            let body = kit.b.add(Term::If(ends, over, goes_on, IfSugar::Plain), place);
            kit.b.let_in(vec![("w".into(), answer)], body, place)
        }
    };
    let mut stops: Option<TermId> = None;
    match stop {
        Ok(texts) => {
            for (text, how) in texts {
                let said = state(kit, "text", place);
                let test = holds_text(kit, said, &text, how, place);
                stops = Some(match stops {
                    None => test,
                    Some(before) => {
                        let t = yes(kit, true);
                        kit.b.add(Term::If(before, t, test, IfSugar::Or), place)
                    }
                });
            }
        }
        Err(why) => stops = Some(kit.undecided(codes::NOT_COMPILED, why, place)),
    }
    let answers = match stops {
        None => answers,
        Some(stops) => {
            let over = yes(kit, false);
            kit.b.add(Term::If(stops, over, answers, IfSugar::Plain), place)
        }
    };
    let (waits, goes_on) = (state(kit, "answer", place), yes(kit, true));
    let on = kit.b.add(Term::If(waits, answers, goes_on, IfSugar::Plain), place);
    let s = kit.b.var("$s", at);
    let step = kit.b.add(Term::If(on, reply, s, IfSugar::Plain), at);
    let step = kit.b.abs("$s", None, step, at);
    let step = kit.b.abs("self", None, step, at);
    let fix_at = bound.span.unwrap_or(at);
    let fix = kit.b.add(Term::Fix { bound: bound.bound, origin: bound.origin, body: step }, fix_at);
    let (x, waits) = (kit.b.var("x", at), kit.b.lit(Data::Bool(false), at));
    let begin = kit.b.add(Term::Record(vec![("text".into(), x), ("answer".into(), waits)]), at);
    let ran = kit.b.app(fix, begin, at);
    let text = kit.b.add(Term::Field(ran, "text".into()), at);
    let mut said = system(kit, a, member.head);
    let x = kit.b.var("x", at);
    said.push(("_".into(), kit.b.add(Term::Send(Role::User, x), at)));
    let body = kit.b.let_in(said, text, at);
    let body = kit.b.add(Term::Fresh(body), at);
    kit.b.abs("x", Some(Type::Str), body, at)
}
