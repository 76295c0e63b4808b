//! A group chat of two before 0.4, of whom one has a model: that one's conversation.

use super::classic::Stop;
use super::group_chat::{state, system};
use super::model::{Assistant, Member, MemberKind};
use super::termination::holds_text;
use core_ir::{Branch, Data, IfSugar, Prim, Recv, Role, Term, TermId, ToolDecl, Type};
use diagnostics::Span;
use frontend_kit::calls;
use frontend_kit::emit::{LoopBound, codes};
use frontend_kit::kit::Kit;
use std::sync::Arc;

/// Field for the results of the tools that a reply calls.
const TOLD: &str = "told";

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
    let tools: Vec<&ToolDecl> =
        a.tools.iter().map(|t| &t.decl).filter(|d| !calls::reserved(&d.name)).collect();
    let tools = &tools[..tools.len().min(frontend_kit::emit::MAX_TOOLS)];
    params.tools.extend(tools.iter().map(|decl| kit.declared((*decl).clone())));
    for (decl, id) in tools.iter().zip(params.tools.clone()) {
        let (name, at) = (decl.name.clone(), decl.span);
        let (tool, given) = (kit.b.add(Term::Tool(id), at), kit.b.var("a", at));
        let result = kit.b.app(tool, given, at);
        let result = kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at);
        let o = kit.b.var("o", at);
        let send = kit.b.add(Term::Send(Role::Tool, o), at);
        let (before, o) = (calls::so_far(kit, TOLD, at), kit.b.var("o", at));
        let all = kit.b.add(Term::List(vec![o]), at);
        let all = kit.b.add(Term::Prim(Prim::Add, vec![before, all]), at);
        let next = calls::more(kit, &params, vec![(TOLD.into(), all)], at).unwrap_or_else(|| {
            let o = kit.b.var("o", at);
            kit.b.add(Term::Tag(TOLD.into(), Some(o)), at)
        });
        let body = kit.b.let_in(vec![("o".into(), result), ("_".into(), send)], next, at);
        branches.push(Branch { tag: name, binder: Some("a".into()), body });
    }
    let head = member.head;
    let reply = if branches.is_empty() {
        let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
        let on = next(kit, "y", true, head);
        kit.b.let_in(vec![("y".into(), recv)], on, head)
    } else {
        let y = kit.b.var("y", head);
        let said = kit.b.add(Term::Tag("said".into(), Some(y)), head);
        branches.push(Branch { tag: "final".into(), binder: Some("y".into()), body: said });
        // The results of a reply's calls are one message.
        let (all, lines) = (calls::so_far(kit, TOLD, head), kit.text("\n\n", head));
        let all = kit.b.add(Term::Prim(Prim::Join, vec![all, lines]), head);
        let after = kit.b.add(Term::Tag(TOLD.into(), Some(all)), head);
        let known = vec![(TOLD.into(), kit.b.add(Term::List(Vec::new()), head))];
        let done = calls::calls(kit, params, known, branches, after, (head, head, model_at));
        let (said, told) = (next(kit, "y", true, head), next(kit, "o", false, head));
        let branches = vec![
            Branch { tag: "said".into(), binder: Some("y".into()), body: said },
            Branch { tag: TOLD.into(), binder: Some("o".into()), body: told },
        ];
        kit.b.add(Term::Case { scrutinee: done, branches, default: None }, head)
    };
    // Whether the other one answers.
    let place = other.head;
    let yes = |kit: &mut Kit<'_>, b: bool| kit.b.lit(Data::Bool(b), place);
    let answers = match &other.kind {
        MemberKind::Constant(text) => {
            let text = kit.text(text, place);
            let told = kit.b.add(Term::Send(Role::User, text), place);
            let goes_on = yes(kit, true);
            kit.b.let_in(vec![("_".into(), told)], goes_on, place)
        }
        MemberKind::Unknown(why) => kit.undecided(codes::NOT_COMPILED, why.clone(), place),
        _ => {
            let said = state(kit, "text", place);
            let answer = frontend_kit::flow::by_tool(kit, &other.name, said, place);
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
    let fix = kit.fix(bound, step, fix_at);
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
