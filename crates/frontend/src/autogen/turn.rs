//! A turn of an assistant: replies of a model, and the tools that it calls.
//!
//! Source: microsoft/autogen 0.7.5, `autogen_agentchat/agents/_assistant_agent.py`.

use super::model::{Assistant, ToolUse};
use super::term::{Said, alone, entry};
use crate::emit::{self, Template, clip, codes};
use crate::kit::Kit;
use core_ir::{
    Branch, EffectClass, LabelSpec, ModelParams, Name, Prim, Recv, Role, Term, TermId, ToolDecl, Type,
};
use diagnostics::{Diagnostic, Span};
use std::collections::HashSet;
use std::sync::Arc;

/// The variable that holds the calls of a turn and what they gave, as messages of the talk.
pub(super) const DONE: &str = "$done";

/// A turn of an assistant in the conversation around it. `finish` makes the result from the variable that holds what it says.
/// If its calls are to be remembered under a name, they are in [`DONE`] there, unless it can make none.
pub(super) fn turn(
    kit: &mut Kit<'_>,
    head: Span,
    a: &Assistant,
    remembered: Option<&str>,
    finish: &mut dyn FnMut(&mut Kit<'_>, Name, &Said) -> TermId,
) -> TermId {
    let model_at = a.model_at.unwrap_or(head);
    let mut params = a.params.clone();
    let mut branches: Vec<Branch> = Vec::new();
    let mut over: Vec<Branch> = Vec::new();
    let mut seen: HashSet<Name> = HashSet::new();
    let looped = !a.tools.is_empty();
    for ToolUse { decl, ask } in &a.tools {
        let (name, at) = (decl.name.clone(), decl.span);
        if !room(kit, &name, at, branches.len(), &mut seen) {
            continue;
        }
        let id = kit.declared(decl.clone());
        params.tools.push(id);
        let given = kit.b.var("a", at);
        let result = match ask {
            Some(member) => {
                let agent = alone(kit, member);
                let task = kit.b.add(Term::Field(given, "task".into()), at);
                kit.b.app(agent, task, at)
            }
            None => {
                let tool = kit.b.add(Term::Tool(id), at);
                let result = kit.b.app(tool, given, at);
                kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at)
            }
        };
        let o = kit.b.var("o", at);
        let told = kit.b.add(Term::Send(Role::Tool, o), at);
        let mut payload = summary(kit, a.summary.as_deref(), &name, at);
        if let Some(me) = remembered {
            let before = kit.b.var(DONE, at);
            let done = called(kit, me, Some(before), "o", at);
            payload = pair(kit, payload, done, at);
        }
        let step = kit.b.add(Term::Tag("summary".into(), Some(payload)), at);
        let this = kit.b.var("self", at);
        let again = kit.b.app(this, step, at);
        let body = kit.b.let_in(vec![("o".into(), result), ("_".into(), told)], again, at);
        branches.push(Branch { tag: name, binder: Some("a".into()), body });
    }
    for handoff in &a.handoffs {
        let (name, at) = (Name::from(handoff.name.as_str()), handoff.at);
        if !room(kit, &name, at, branches.len(), &mut seen) {
            continue;
        }
        let mut decl = ToolDecl::unknown(name.clone(), at);
        decl.description = Some(handoff.description.as_str().into());
        decl.params = Vec::new();
        decl.result = Type::Str;
        decl.effect = EffectClass::Pure;
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        let id = kit.declared(decl);
        params.tools.push(id);
        let message = kit.text(&handoff.message, at);
        let y = kit.b.var("y", at);
        let told = kit.b.add(Term::Send(Role::Tool, y), at);
        let then = Said::Handoff(handoff.target.clone());
        if looped {
            let done = remembered.map(|me| {
                let before = kit.b.var(DONE, at);
                called(kit, me, Some(before), "y", at)
            });
            let binder = done.map(|_| Name::from(DONE));
            let tag = kit.b.add(Term::Tag(name.clone(), done), at);
            let body = kit.b.let_in(vec![("y".into(), message), ("_".into(), told)], tag, at);
            branches.push(Branch { tag: name.clone(), binder: None, body });
            let message = kit.text(&handoff.message, at);
            let body = finish(kit, "y".into(), &then);
            let body = kit.b.let_in(vec![("y".into(), message)], body, at);
            over.push(Branch { tag: name, binder, body });
        } else {
            let body = finish(kit, "y".into(), &then);
            let mut bindings = vec![("y".into(), message), ("_".into(), told)];
            if let Some(me) = remembered {
                bindings.push((DONE.into(), called(kit, me, None, "y", at)));
            }
            let body = kit.b.let_in(bindings, body, at);
            branches.push(Branch { tag: name, binder: None, body });
        }
    }
    let plain = ModelParams { tools: Vec::new(), ..params.clone() };
    let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
    if branches.is_empty() {
        let body = finish(kit, "y".into(), &Said::Text);
        return named(kit, "y", recv, body, head);
    }
    let t = kit.b.var("t", head);
    let nothing = |kit: &mut Kit<'_>| kit.b.add(Term::List(Vec::new()), head);
    if !looped {
        let body = finish(kit, "y".into(), &Said::Text);
        let done = remembered.map(|_| (Name::from(DONE), nothing(kit)));
        let body = kit.b.let_in(done.into_iter().collect(), body, head);
        branches.push(Branch { tag: "final".into(), binder: Some("y".into()), body });
        let case = kit.b.add(Term::Case { scrutinee: t, branches, default: None }, head);
        return kit.b.let_in(vec![("t".into(), recv)], case, head);
    }
    let fix_at = a.bound.span.unwrap_or(head);
    let mut y = kit.b.var("y", head);
    if remembered.is_some() {
        let done = kit.b.var(DONE, head);
        y = pair(kit, y, done, head);
    }
    let said = kit.b.add(Term::Tag("said".into(), Some(y)), head);
    branches.push(Branch { tag: "final".into(), binder: Some("y".into()), body: said });
    let case = kit.b.add(Term::Case { scrutinee: t, branches, default: None }, head);
    let mut bindings: Vec<(Name, TermId)> = Vec::new();
    if remembered.is_some() {
        let (r, before) = (kit.b.var("$r", head), kit.b.var("r", head));
        let done = kit.b.add(Term::Field(before, "done".into()), head);
        let branches = vec![Branch { tag: "summary".into(), binder: Some("r".into()), body: done }];
        let done = kit.b.add(Term::Case { scrutinee: r, branches, default: None }, head);
        bindings.push((DONE.into(), done));
    }
    bindings.push(("t".into(), recv));
    let step = kit.b.let_in(bindings, case, head);
    let step = kit.b.abs("$r", None, step, head);
    let step = kit.b.abs("self", None, step, head);
    let fix =
        kit.b.add(Term::Fix { bound: a.bound.bound, origin: a.bound.origin.clone(), body: step }, fix_at);
    let mut first = kit.text("", head);
    if remembered.is_some() {
        let done = nothing(kit);
        first = pair(kit, first, done, head);
    }
    let begin = kit.b.add(Term::Tag("summary".into(), Some(first)), head);
    let ran = kit.b.app(fix, begin, head);
    // Of a pair the text is `y`, and the calls are what is remembered.
    let mut end = |kit: &mut Kit<'_>, tag: &str, said: Said, again: Option<TermId>| {
        let body = finish(kit, "y".into(), &said);
        let part = |kit: &mut Kit<'_>, field: &str| {
            let r = kit.b.var("r", head);
            kit.b.add(Term::Field(r, field.into()), head)
        };
        let reflects = again.is_some();
        let body = match (again, remembered) {
            (Some(again), _) => named(kit, "y", again, body, head),
            (None, Some(_)) => {
                let y = part(kit, "text");
                kit.b.let_in(vec![("y".into(), y)], body, head)
            }
            (None, None) => body,
        };
        let binder = match remembered {
            Some(_) => Some("r".into()),
            None => (!reflects).then(|| Name::from("y")),
        };
        let body = match remembered {
            Some(_) => {
                let done = part(kit, "done");
                kit.b.let_in(vec![(DONE.into(), done)], body, head)
            }
            None => body,
        };
        Branch { tag: tag.into(), binder, body }
    };
    let mut ends = vec![end(kit, "said", Said::Text, None)];
    if a.reflect {
        // The tools are not offered when their results are looked back on.
        let again = kit.b.add(Term::Recv(Recv::Data(Arc::new(plain))), model_at);
        ends.push(end(kit, "summary", Said::Text, Some(again)));
    } else {
        ends.push(end(kit, "summary", Said::Summary, None));
    }
    ends.extend(over);
    kit.b.add(Term::Case { scrutinee: ran, branches: ends, default: None }, head)
}

/// `{text: …, done: …}`.
fn pair(kit: &mut Kit<'_>, text: TermId, done: TermId, at: Span) -> TermId {
    kit.b.add(Term::Record(vec![("text".into(), text), ("done".into(), done)]), at)
}

/// The calls before, and the call in `t` with its result.
fn called(kit: &mut Kit<'_>, me: &str, before: Option<TermId>, result: &str, at: Span) -> TermId {
    let t = kit.b.var("t", at);
    let call = entry(kit, me, "call", t, at);
    let o = kit.b.var(result, at);
    let result = entry(kit, me, "result", o, at);
    let now = kit.b.add(Term::List(vec![call, result]), at);
    match before {
        None => now,
        Some(before) => kit.b.add(Term::Prim(Prim::Add, vec![before, now]), at),
    }
}

/// `let name = value in body`, or the value if that is all of the body.
fn named(kit: &mut Kit<'_>, name: &str, value: TermId, body: TermId, at: Span) -> TermId {
    match kit.b.term(body) {
        Term::Var(n, _) if &**n == name => value,
        _ => kit.b.let_in(vec![(name.into(), value)], body, at),
    }
}

/// Whether one more thing to call may have this name; otherwise that is said.
fn room(kit: &mut Kit<'_>, name: &Name, at: Span, count: usize, seen: &mut HashSet<Name>) -> bool {
    if count >= emit::MOST_TOOLS {
        if count == emit::MOST_TOOLS {
            kit.out.push(emit::too_many_tools(at));
        }
        return false;
    }
    let taken = matches!(&**name, "final" | "said" | "summary" | "") || !seen.insert(name.clone());
    if taken {
        let message = format!("there is a tool `{}` already, this one is left out", clip(name));
        kit.out.push(Diagnostic::warn(codes::DUPLICATE, message, at));
    }
    !taken
}

/// How the result of a tool, in `o`, is told to the others.
fn summary(kit: &mut Kit<'_>, format: Option<&str>, tool: &str, at: Span) -> TermId {
    let o = kit.b.var("o", at);
    let Some(format) = format.filter(|f| *f != "{result}") else { return o };
    let mut out = Template::new(at);
    for part in python_format(format) {
        match part {
            Ok(text) => {
                out.text(&text);
            }
            Err(name) => match name.as_str() {
                "result" => {
                    let o = kit.b.var("o", at);
                    out.term(o);
                }
                "tool_name" => {
                    out.text(tool);
                }
                "arguments" => {
                    let a = kit.b.var("a", at);
                    let json = kit.b.add(Term::Prim(Prim::ToJson, vec![a]), at);
                    out.term(json);
                }
                // A tool that fails ends the run.
                "is_error" => {
                    out.text("False");
                }
                other => {
                    let hole = kit.unknown(&format!("`{other}` in the format of a summary"), at);
                    out.term(hole);
                }
            },
        }
    }
    out.build(&mut kit.b)
}

/// The parts of a text for Python's `format`: text, or the name in braces; `{{` is a brace.
pub(super) fn python_format(text: &str) -> Vec<Result<String, String>> {
    let mut out: Vec<Result<String, String>> = Vec::new();
    let mut now = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.peek() == Some(&c) => {
                chars.next();
                now.push(c);
            }
            '{' => {
                let mut name = String::new();
                for c in chars.by_ref() {
                    if c == '}' {
                        break;
                    }
                    name.push(c);
                }
                out.push(Ok(std::mem::take(&mut now)));
                out.push(Err(name));
            }
            _ => now.push(c),
        }
    }
    out.push(Ok(now));
    out.retain(|p| !matches!(p, Ok(t) if t.is_empty()));
    out
}
