//! Agents that share one conversation: each reply, call and result is a message of it.
//!
//! | source | term |
//! |---|---|
//! | an agent with tools | `fresh (send[system] p; send x; case (fix[n] (λself. λat. let t = recv[θ] in case t of {…})) of {…})` |
//! | a tool | `t a ⇒ send[tool] (tool[t] a); self at` |
//! | an agent as a tool | `h a ⇒ send[tool] (helper a.input); self at` |
//! | a handover | `h ⇒ send[tool] "…"; send[system] p'; self 'other` |
//! | a reply without a call | `final a ⇒ 'final a` |
//! | the bound is reached | `fail "…"` |
//!
//! Invariant: a turn of the loop is one reply of a model, whoever speaks.

use crate::emit::{self, LoopBound, clip, codes};
use crate::kit::Kit;
use core_ir::{Branch, Data, ModelParams, Name, Prim, Recv, Role, Term, TermId, ToolDecl};
use diagnostics::{Diagnostic, Span};
use std::collections::HashSet;
use std::sync::Arc;

/// What a call does.
pub(crate) enum Move {
    /// Calls the tool and shows its result.
    Call,
    /// Calls the tool, whose result is the answer.
    Finish,
    /// Asks an agent, a function of text, and shows its answer.
    Ask(TermId),
    /// Shows the value of a term about the arguments, `a`.
    Show(TermId),
    /// Another speaker goes on, by number; what the call is answered with.
    Switch(usize, String),
}

/// Something that a speaker may call.
pub(crate) struct Choice {
    pub decl: ToolDecl,
    pub does: Move,
}

/// An agent that takes part.
pub(crate) struct Speaker {
    pub name: String,
    pub head: Span,
    /// Makes the system message, each time the speaker begins.
    pub prompts: Vec<TermId>,
    pub params: ModelParams,
    pub model_at: Span,
    pub choices: Vec<Choice>,
    /// The place that lists them, if there is one.
    pub choices_at: Option<Span>,
}

/// The tag that says who speaks.
fn tag(index: usize, speakers: &[String]) -> Name {
    let slug: String = speakers[index]
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .take(32)
        .collect();
    let clash =
        slug.is_empty() || slug == "final" || speakers.iter().filter(|s| **s == speakers[index]).count() > 1;
    if clash { format!("{slug}_{}", index + 1).into() } else { slug.into() }
}

/// `Str → Str`. The first speaker begins. `over` is the error when the bound is reached.
pub(crate) fn talk(
    kit: &mut Kit<'_>,
    mut speakers: Vec<Speaker>,
    bound: LoopBound,
    over: &str,
    at: Span,
) -> TermId {
    let Some(first) = speakers.first_mut() else { return kit.unknown("a talk of nobody", at) };
    let prompt = first.prompts.pop().unwrap_or_else(|| kit.text("", at));
    if speakers.len() == 1 && speakers[0].choices.is_empty() {
        let Speaker { params, model_at, .. } = speakers.remove(0);
        return kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
    }
    let head = speakers[0].head;
    let fix_at = bound.span.unwrap_or(head);
    let names: Vec<String> = speakers.iter().map(|s| s.name.clone()).collect();
    let mut rest: Vec<Vec<TermId>> = speakers.iter_mut().map(|s| std::mem::take(&mut s.prompts)).collect();
    let mut turns: Vec<Branch> = Vec::new();
    let count = speakers.len();
    for (i, speaker) in speakers.into_iter().enumerate() {
        let body = turn(kit, speaker, &names, &mut rest);
        turns.push(Branch { tag: tag(i, &names), binder: None, body });
    }
    let step = if count == 1 {
        turns.remove(0).body
    } else {
        let who = kit.b.var("$at", head);
        kit.b.add(Term::Case { scrutinee: who, branches: turns, default: None }, head)
    };
    let step = kit.b.abs("$at", None, step, head);
    let step = kit.b.abs("self", None, step, head);
    let fix = kit.b.add(Term::Fix { bound: bound.bound, origin: bound.origin, body: step }, fix_at);
    let begin = kit.b.add(Term::Tag(tag(0, &names), None), head);
    let ran = kit.b.app(fix, begin, head);
    let answer = kit.b.var("a", head);
    let mut ends = vec![Branch { tag: "final".into(), binder: Some("a".into()), body: answer }];
    for i in 0..count {
        let message = kit.text(over, fix_at);
        let body = kit.b.add(Term::Fail(message), fix_at);
        ends.push(Branch { tag: tag(i, &names), binder: None, body });
    }
    let result = kit.b.add(Term::Case { scrutinee: ran, branches: ends, default: None }, head);
    let mut said: Vec<(Name, TermId)> = Vec::new();
    said.extend(system(kit, prompt, head));
    let x = kit.b.var("x", head);
    said.push(("_".into(), kit.b.add(Term::Send(Role::User, x), head)));
    let all = kit.b.let_in(said, result, head);
    let all = kit.b.add(Term::Fresh(all), head);
    kit.b.abs("x", Some(core_ir::Type::Str), all, head)
}

/// Sends the system message, unless there is none.
fn system(kit: &mut Kit<'_>, prompt: TermId, at: Span) -> Option<(Name, TermId)> {
    if matches!(kit.b.term(prompt), Term::Lit(Data::Str(t)) if t.is_empty()) {
        return None;
    }
    Some(("_".into(), kit.b.add(Term::Send(Role::System, prompt), at)))
}

fn turn(kit: &mut Kit<'_>, speaker: Speaker, names: &[String], prompts: &mut [Vec<TermId>]) -> TermId {
    let Speaker { head, mut params, model_at, choices, choices_at, .. } = speaker;
    let mut branches: Vec<Branch> = Vec::new();
    let mut seen: HashSet<Name> = HashSet::new();
    for Choice { decl, does } in choices {
        let (name, at) = (decl.name.clone(), decl.span);
        if branches.len() >= emit::MOST_TOOLS {
            kit.out.push(emit::too_many_tools(at));
            break;
        }
        if &*name == "final" || name.is_empty() || !seen.insert(name.clone()) {
            let message = format!("there is a tool `{}` already, this one is left out", clip(&name));
            kit.out.push(Diagnostic::warn(codes::DUPLICATE, message, at));
            continue;
        }
        let none = decl.params.is_empty();
        // What an agent is asked is its only argument.
        let input = decl.params.first().map_or_else(|| "input".into(), |p| p.name.clone());
        let id = kit.declared(decl);
        params.tools.push(id);
        let mut said: Vec<(Name, TermId)> = Vec::new();
        let (shown, next) = match does {
            Move::Call | Move::Finish => {
                let tool = kit.b.add(Term::Tool(id), at);
                let a = kit.b.var("a", at);
                let result = kit.b.app(tool, a, at);
                if matches!(does, Move::Finish) {
                    let text = kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at);
                    let body = kit.b.add(Term::Tag("final".into(), Some(text)), at);
                    branches.push(Branch { tag: name, binder: Some("a".into()), body });
                    continue;
                }
                (result, None)
            }
            Move::Ask(agent) => {
                let a = kit.b.var("a", at);
                let input = kit.b.add(Term::Field(a, input), at);
                (kit.b.app(agent, input, at), None)
            }
            Move::Show(shown) => (shown, None),
            Move::Switch(to, message) => (kit.text(&message, at), Some(to)),
        };
        said.push(("_".into(), kit.b.add(Term::Send(Role::Tool, shown), at)));
        let next = match next {
            None => kit.b.var("$at", at),
            Some(to) => {
                if let Some(prompt) = prompts.get_mut(to).and_then(Vec::pop) {
                    said.extend(system(kit, prompt, at));
                }
                kit.b.add(Term::Tag(tag(to, names), None), at)
            }
        };
        let this = kit.b.var("self", at);
        let again = kit.b.app(this, next, at);
        let body = kit.b.let_in(said, again, at);
        let binder = (!none || matches!(kit.b.term(shown), Term::App(..))).then(|| Name::from("a"));
        branches.push(Branch { tag: name, binder, body });
    }
    let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
    if branches.is_empty() {
        // Without anything to call, the reply is the answer.
        return kit.b.add(Term::Tag("final".into(), Some(recv)), head);
    }
    let answer = kit.b.var("a", head);
    let answer = kit.b.add(Term::Tag("final".into(), Some(answer)), head);
    branches.push(Branch { tag: "final".into(), binder: Some("a".into()), body: answer });
    let t = kit.b.var("t", head);
    let case_at = choices_at.unwrap_or(head);
    let case = kit.b.add(Term::Case { scrutinee: t, branches, default: None }, case_at);
    kit.b.let_in(vec![("t".into(), recv)], case, head)
}
