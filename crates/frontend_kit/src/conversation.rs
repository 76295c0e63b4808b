//! Conversations of several agents: each reply, call and result is a message.
//!
//! | source | term |
//! |---|---|
//! | an agent with tools | `fresh (send[system] p; send x; case (fix[n] (λself. λat. case calls of {final a ⇒ 'final a, at ⇒ self 'at})) of {…})` |
//! | the calls of a reply | `(fix[∞] (λmore. λt. case t of {…, none ⇒ 'at})) (recv[θ])`, see [`crate::calls`] |
//! | a tool | `t a ⇒ send[tool] (tool[t] a); more (recv[θ, waiting])` |
//! | an agent as a tool | `h a ⇒ send[tool] (helper a.input); more (recv[θ, waiting])` |
//! | a handoff | `h ⇒ send[tool] "…"; more (recv[θ, waiting]); send[system] p'; 'other` |
//! | a reply without a call | `final a ⇒ 'final a` |
//! | the bound is reached | `fail "…"` |
//!
//! Invariant: a turn of the loop is one reply of a model, whoever speaks and however many calls the reply
//! holds.

use crate::calls;
use crate::emit::{self, LoopBound, clip, codes};
use crate::kit::Kit;
use crate::outline::ToolRole;
use core_ir::{Branch, Data, ModelParams, Name, Prim, Recv, Role, Term, TermId, ToolDecl};
use diagnostics::{Diagnostic, Span};
use std::collections::HashSet;
use std::sync::Arc;

/// Effect of a call.
pub enum CallEffect {
    /// Calls the tool and shows its result.
    Call,
    /// Calls the tool, whose result is the answer once the other calls of the reply are executed.
    Finish,
    /// Calls the tool, whose result is the answer; later calls of the reply aren't executed.
    FinishNow,
    /// Calls an agent, a function of text, and shows its answer.
    Ask(TermId),
    /// Shows the value of a term about the arguments, `a`.
    Show(TermId),
    /// Switches to another speaker, by number. The text is the result of the call.
    Switch(usize, String),
}

/// A call that a speaker may choose.
pub struct Choice {
    /// Declaration that the model is shown.
    pub decl: ToolDecl,
    /// Effect of a call.
    pub kind: CallEffect,
    /// Executor of the call.
    pub role: ToolRole,
}

impl Choice {
    /// Makes a call that the program executes.
    pub fn new(decl: ToolDecl, kind: CallEffect) -> Choice {
        Choice { decl, kind, role: ToolRole::Program }
    }
}

/// Behavior when the bound is reached.
pub enum Over<'a> {
    /// The run fails with this message.
    Fails(&'a str),
    /// Calls the model once more, without tools, after this message of the user.
    AskedFor(&'a str, Box<ModelParams>),
}

/// A participant of the conversation.
pub struct Speaker {
    /// Name.
    pub name: String,
    /// Place of its definition.
    pub head: Span,
    /// Makes the system message, each time the speaker begins.
    pub prompts: Vec<TermId>,
    /// Model and its parameters.
    pub params: ModelParams,
    /// Place that names the model.
    pub model_at: Span,
    /// Tools and handoffs.
    pub choices: Vec<Choice>,
    /// Place of their list, if there is one.
    pub choices_at: Option<Span>,
}

/// Returns the tag of a speaker.
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

/// Returns the maximal number of replies if no speaker speaks twice: only handoff targets continue, and no
/// handoff leads back. `None` if a speaker may speak again. Calls that are `free` take no reply of their own.
pub fn max_replies(speakers: &[Speaker], free: impl Fn(&Choice) -> bool) -> Option<u64> {
    let mut next: Vec<Vec<usize>> = Vec::with_capacity(speakers.len());
    for speaker in speakers {
        let mut to = Vec::new();
        for choice in &speaker.choices {
            match choice.kind {
                _ if free(choice) => {}
                CallEffect::Call | CallEffect::Ask(_) | CallEffect::Show(_) => return None,
                CallEffect::Finish | CallEffect::FinishNow => {}
                CallEffect::Switch(other, _) => to.push(other),
            }
        }
        next.push(to);
    }
    // How many replies there are at most up to and with a speaker: each round settles those that nobody who
    // is left hands off to.
    let mut led = vec![0usize; next.len()];
    next.iter().flatten().for_each(|to| led[*to] += 1);
    let mut begin: Vec<usize> = (0..next.len()).filter(|n| led[*n] == 0).collect();
    let mut replies = vec![1u64; next.len()];
    let mut done = 0;
    while let Some(speaker) = begin.pop() {
        done += 1;
        for to in &next[speaker] {
            replies[*to] = replies[*to].max(replies[speaker] + 1);
            led[*to] -= 1;
            if led[*to] == 0 {
                begin.push(*to);
            }
        }
    }
    (done == next.len()).then(|| replies.into_iter().max().unwrap_or(1))
}

/// Start of a conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// A text, as a message of the user.
    Text,
    /// A list of messages with their roles.
    Messages,
}

/// Lowers a conversation as a function of type `Str → Str`. The first speaker starts. `over` is the error for
/// a reached bound.
pub fn conversation(
    kit: &mut Kit<'_>,
    speakers: Vec<Speaker>,
    bound: LoopBound,
    over: &str,
    at: Span,
) -> TermId {
    conversation_from(kit, Opening::Text, speakers, bound, Over::Fails(over), at)
}

/// Lowers a conversation from an opening.
pub fn conversation_from(
    kit: &mut Kit<'_>,
    begins: Opening,
    mut speakers: Vec<Speaker>,
    bound: LoopBound,
    over: Over<'_>,
    at: Span,
) -> TermId {
    let Some(first) = speakers.first_mut() else { return kit.unknown("a group chat without members", at) };
    let prompt = first.prompts.pop().unwrap_or_else(|| kit.text("", at));
    if speakers.len() == 1 && speakers[0].choices.is_empty() {
        let Speaker { params, model_at, .. } = speakers.remove(0);
        if begins == Opening::Text {
            return kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
        }
        let answer = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
        return begun(kit, begins, prompt, answer, at);
    }
    let head = speakers[0].head;
    let fix_at = bound.span.unwrap_or(head);
    let names: Vec<String> = speakers.iter().map(|s| s.name.clone()).collect();
    let mut rest: Vec<Vec<TermId>> = speakers.iter_mut().map(|s| std::mem::take(&mut s.prompts)).collect();
    let mut turns: Vec<Branch> = Vec::new();
    let count = speakers.len();
    for (i, speaker) in speakers.into_iter().enumerate() {
        let body = turn(kit, i, speaker, &names, &mut rest);
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
    let fix = kit.fix(bound, step, fix_at);
    let begin = kit.b.add(Term::Tag(tag(0, &names), None), head);
    let ran = kit.b.app(fix, begin, head);
    let answer = kit.b.var("a", head);
    let mut ends = vec![Branch { tag: "final".into(), binder: Some("a".into()), body: answer }];
    for i in 0..count {
        let body = match &over {
            Over::Fails(message) => {
                let message = kit.text(message, fix_at);
                kit.b.add(Term::Fail(message), fix_at)
            }
            Over::AskedFor(message, params) => {
                let message = kit.text(message, fix_at);
                let said = kit.b.add(Term::Send(Role::User, message), fix_at);
                let answer = kit.b.add(Term::Recv(Recv::Data(Arc::new((**params).clone()))), fix_at);
                kit.b.let_in(vec![("_".into(), said)], answer, fix_at)
            }
        };
        ends.push(Branch { tag: tag(i, &names), binder: None, body });
    }
    let result = kit.b.add(Term::Case { scrutinee: ran, branches: ends, default: None }, head);
    begun(kit, begins, prompt, result, head)
}

/// Lowers the start of a conversation, followed by the rest.
fn begun(kit: &mut Kit<'_>, begins: Opening, prompt: TermId, rest: TermId, head: Span) -> TermId {
    let mut said: Vec<(Name, TermId)> = Vec::new();
    said.extend(system(kit, prompt, head));
    let x = kit.b.var("x", head);
    let (heard, ty) = match begins {
        Opening::Text => (kit.b.add(Term::Send(Role::User, x), head), Some(core_ir::Type::Str)),
        Opening::Messages => (crate::lists::said_each(kit, x, head), None),
    };
    said.push(("_".into(), heard));
    let all = kit.b.let_in(said, rest, head);
    let all = kit.b.add(Term::Fresh(all), head);
    kit.instructed(all, prompt);
    kit.b.abs("x", ty, all, head)
}

/// Sends the system message, if there is one.
fn system(kit: &mut Kit<'_>, prompt: TermId, at: Span) -> Option<(Name, TermId)> {
    if matches!(kit.b.term(prompt), Term::Lit(Data::Str(t)) if t.is_empty()) {
        return None;
    }
    Some(("_".into(), kit.b.add(Term::Send(Role::System, prompt), at)))
}

/// Result of a choice in a turn.
struct Step {
    tag: Name,
    at: Span,
    binder: Option<Name>,
    /// Bindings, in order.
    said: Vec<(Name, TermId)>,
    next: Next,
}

/// Continuation of a turn.
enum Next {
    /// The same speaker.
    Stay,
    /// Another speaker, after its system message.
    Other(usize, Option<(Name, TermId)>),
    /// The answer, once the other calls of the reply are executed.
    End(TermId),
    /// The answer at once.
    EndNow(TermId),
}

fn turn(
    kit: &mut Kit<'_>,
    me: usize,
    speaker: Speaker,
    names: &[String],
    prompts: &mut [Vec<TermId>],
) -> TermId {
    let Speaker { head, mut params, model_at, choices, choices_at, .. } = speaker;
    let mut steps: Vec<Step> = Vec::new();
    let mut seen: HashSet<Name> = HashSet::new();
    for Choice { decl, kind, role } in choices {
        let (name, at) = (decl.name.clone(), decl.span);
        if steps.len() >= emit::MAX_TOOLS {
            kit.out.push(emit::too_many_tools(at));
            break;
        }
        if calls::reserved(&name) || !seen.insert(name.clone()) {
            let message = format!("there is a tool `{}` already, this one is left out", clip(&name));
            kit.out.push(Diagnostic::warn(codes::DUPLICATE, message, at));
            continue;
        }
        let none = decl.params.is_empty();
        // What an agent is asked is its only argument.
        let input = decl.params.first().map_or_else(|| "input".into(), |p| p.name.clone());
        let id = kit.declared_as(decl, role);
        params.tools.push(id);
        let (shown, next) = match kind {
            CallEffect::Call | CallEffect::Finish | CallEffect::FinishNow => {
                let tool = kit.b.add(Term::Tool(id), at);
                let a = kit.b.var("a", at);
                let result = kit.b.app(tool, a, at);
                if !matches!(kind, CallEffect::Call) {
                    let text = kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at);
                    let next =
                        if let CallEffect::Finish = kind { Next::End(text) } else { Next::EndNow(text) };
                    steps.push(Step { tag: name, at, binder: Some("a".into()), said: Vec::new(), next });
                    continue;
                }
                (result, Next::Stay)
            }
            CallEffect::Ask(agent) => {
                let a = kit.b.var("a", at);
                let input = kit.b.add(Term::Field(a, input), at);
                (kit.b.app(agent, input, at), Next::Stay)
            }
            CallEffect::Show(shown) => (shown, Next::Stay),
            CallEffect::Switch(to, message) => {
                let prompt = prompts.get_mut(to).and_then(Vec::pop);
                let prompt = prompt.and_then(|prompt| system(kit, prompt, at));
                (kit.text(&message, at), Next::Other(to, prompt))
            }
        };
        let binder = (!none || matches!(kit.b.term(shown), Term::App(..))).then(|| Name::from("a"));
        let said = vec![("_".into(), kit.b.add(Term::Send(Role::Tool, shown), at))];
        steps.push(Step { tag: name, at, binder, said, next });
    }
    if steps.is_empty() {
        // Without anything to call, the reply is the answer.
        let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
        return kit.b.add(Term::Tag("final".into(), Some(recv)), head);
    }
    let case_at = choices_at.unwrap_or(head);
    let answer = kit.b.var("a", head);
    let answer = kit.b.add(Term::Tag("final".into(), Some(answer)), head);
    let ends = Branch { tag: "final".into(), binder: Some("a".into()), body: answer };
    // Where every call ends the run, no turn follows.
    let stays = steps.iter().any(|s| !matches!(s.next, Next::End(_) | Next::EndNow(_)));
    let mut others: Vec<usize> = if stays { vec![me] } else { Vec::new() };
    let mut branches = Vec::new();
    for Step { tag: name, at, binder, mut said, next } in steps {
        let more = calls::more(kit, &params, Vec::new(), at);
        let body = match next {
            Next::Stay => more.unwrap_or_else(|| kit.b.add(Term::Tag(tag(me, names), None), at)),
            Next::Other(to, prompt) => {
                // The calls beside it are carried out, then the other one speaks.
                others.extend((!others.contains(&to)).then_some(to));
                said.extend(more.map(|more| ("_".into(), more)));
                said.extend(prompt);
                kit.b.add(Term::Tag(tag(to, names), None), at)
            }
            Next::EndNow(text) => kit.b.add(Term::Tag("final".into(), Some(text)), at),
            Next::End(text) => {
                said.push(("r".into(), text));
                said.extend(more.map(|more| ("_".into(), more)));
                let r = kit.b.var("r", at);
                kit.b.add(Term::Tag("final".into(), Some(r)), at)
            }
        };
        let body = kit.b.let_in(said, body, at);
        branches.push(Branch { tag: name, binder, body });
    }
    branches.push(ends);
    let stay = match stays {
        true => kit.b.add(Term::Tag(tag(me, names), None), head),
        // Nobody looks at what the last of the calls beside one that ends the run gives.
        false => {
            let nothing = kit.text("", head);
            kit.b.add(Term::Tag("final".into(), Some(nothing)), head)
        }
    };
    let done = calls::calls(kit, params, Vec::new(), branches, stay, (head, case_at, model_at));
    let answer = kit.b.var("a", head);
    let answer = kit.b.add(Term::Tag("final".into(), Some(answer)), head);
    let mut branches = vec![Branch { tag: "final".into(), binder: Some("a".into()), body: answer }];
    for to in others {
        let this = kit.b.var("self", head);
        let next = match to {
            to if to == me => kit.b.var("$at", head),
            to => kit.b.add(Term::Tag(tag(to, names), None), head),
        };
        let body = kit.b.app(this, next, head);
        branches.push(Branch { tag: tag(to, names), binder: None, body });
    }
    kit.b.add(Term::Case { scrutinee: done, branches, default: None }, case_at)
}
