//! A turn of an assistant: replies of a model, and the tools that it calls.
//!
//! Source: microsoft/autogen 0.7.5, `autogen_agentchat/agents/_assistant_agent.py`.

use super::group_chat::{TurnResult, alone, entry};
use super::model::{Assistant, Handoff, Member, ToolUse};
use core_ir::{
    Branch, EffectClass, LabelSpec, ModelParams, Name, Prim, Recv, Role, Term, TermId, ToolDecl, Type,
};
use diagnostics::{Diagnostic, Span};
use frontend_kit::calls;
use frontend_kit::emit::{self, Template, clip, codes};
use frontend_kit::kit::Kit;
use std::collections::HashSet;
use std::sync::Arc;

/// The variable that holds the calls of a turn and what they gave, as messages of the group chat.
pub(super) const DONE: &str = "$done";

/// Field for the summaries of a reply's calls.
const TOLD: &str = "told";
/// Field for the target of a handoff.
const TO: &str = "to";
const NOBODY: &str = "nobody";

/// A turn of an assistant in the conversation around it. `finish` makes the result from the variable that
/// holds what it says. If its calls are to be remembered under a name, they are in [`DONE`] there, unless it
/// can make none.
pub(super) fn turn(
    kit: &mut Kit<'_>,
    head: Span,
    a: &Assistant,
    remembered: Option<&str>,
    finish: &mut dyn FnMut(&mut Kit<'_>, Name, &TurnResult) -> TermId,
) -> TermId {
    let model_at = a.model_at.unwrap_or(head);
    let mut params = a.params.clone();
    let mut seen: HashSet<Name> = HashSet::new();
    let mut tools: Vec<&ToolUse> = Vec::new();
    for tool in &a.tools {
        if room(kit, &tool.decl.name, tool.decl.span, params.tools.len(), &mut seen) {
            params.tools.push(kit.declared(tool.decl.clone()));
            tools.push(tool);
        }
    }
    let mut handoffs: Vec<&Handoff> = Vec::new();
    for handoff in &a.handoffs {
        let (name, at) = (Name::from(handoff.name.as_str()), handoff.at);
        if !room(kit, &name, at, params.tools.len(), &mut seen) {
            continue;
        }
        let mut decl = ToolDecl::unknown(name, at);
        decl.description = Some(handoff.description.as_str().into());
        decl.params = Vec::new();
        decl.result = Type::Str;
        decl.effect = EffectClass::Pure;
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        params.tools.push(kit.declared(decl));
        handoffs.push(handoff);
    }
    let plain = ModelParams { tools: Vec::new(), ..params.clone() };
    if tools.is_empty() && handoffs.is_empty() {
        let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
        let body = finish(kit, "y".into(), &TurnResult::Text);
        return named(kit, "y", recv, body, head);
    }
    let looped = !tools.is_empty();
    let once = Once {
        params: &params,
        summary: a.summary.as_deref(),
        remembered,
        looped,
        hands_off: !handoffs.is_empty(),
        head,
        model_at,
    };
    let done = once.calls(kit, &tools, &handoffs);
    let ran = if looped { rounds(kit, a, done, &handoffs, remembered, head) } else { done };
    let mut ends: Vec<Branch> = Vec::new();
    // Of a pair the text is `y`, and the calls are what is remembered.
    let text = |kit: &mut Kit<'_>| {
        let r = kit.b.var("r", head);
        if remembered.is_some() { kit.b.add(Term::Field(r, "text".into()), head) } else { r }
    };
    let pair_of = |kit: &mut Kit<'_>, body: TermId| match remembered {
        Some(_) => {
            let r = kit.b.var("r", head);
            let done = kit.b.add(Term::Field(r, "done".into()), head);
            kit.b.let_in(vec![(DONE.into(), done)], body, head)
        }
        None => body,
    };
    let body = finish(kit, "y".into(), &TurnResult::Text);
    let branch = match remembered {
        Some(_) => {
            let y = text(kit);
            let body = named(kit, "y", y, body, head);
            Branch { tag: "said".into(), binder: Some("r".into()), body: pair_of(kit, body) }
        }
        None => Branch { tag: "said".into(), binder: Some("y".into()), body },
    };
    ends.push(branch);
    if looped {
        let (said, y) = if a.reflect {
            // The tools are not offered when their results are looked back on.
            (TurnResult::Text, kit.b.add(Term::Recv(Recv::Data(Arc::new(plain))), model_at))
        } else {
            let (all, line) = (text(kit), kit.text("\n", head));
            (TurnResult::Summary, kit.b.add(Term::Prim(Prim::Join, vec![all, line]), head))
        };
        let body = finish(kit, "y".into(), &said);
        let body = named(kit, "y", y, body, head);
        let binder = (!a.reflect || remembered.is_some()).then(|| Name::from("r"));
        ends.push(Branch { tag: "summary".into(), binder, body: pair_of(kit, body) });
    }
    for handoff in handoffs {
        let message = kit.text(&handoff.message, handoff.at);
        let body = finish(kit, "y".into(), &TurnResult::Handoff(handoff.target.clone()));
        let body = kit.b.let_in(vec![("y".into(), message)], body, handoff.at);
        let binder = remembered.map(|_| Name::from(DONE));
        ends.push(Branch { tag: handoff.name.as_str().into(), binder, body });
    }
    kit.b.add(Term::Case { scrutinee: ran, branches: ends, default: None }, head)
}

/// The rounds of tool calls: each is a reply with its calls. Gives the summary of the last one if there is no
/// round left.
fn rounds(
    kit: &mut Kit<'_>,
    a: &Assistant,
    done: TermId,
    handoffs: &[&Handoff],
    remembered: Option<&str>,
    head: Span,
) -> TermId {
    let fix_at = a.bound.span.unwrap_or(head);
    // What was remembered before, and what this reply called.
    let all = |kit: &mut Kit<'_>| {
        let r = kit.b.var("r", head);
        if remembered.is_none() {
            return r;
        }
        let (before, text) = (kit.b.var(DONE, head), kit.b.add(Term::Field(r, "text".into()), head));
        let r = kit.b.var("r", head);
        let done = kit.b.add(Term::Field(r, "done".into()), head);
        let done = kit.b.add(Term::Prim(Prim::Add, vec![before, done]), head);
        pair(kit, text, done, head)
    };
    let mut branches: Vec<Branch> = Vec::new();
    let payload = all(kit);
    let body = kit.b.add(Term::Tag("said".into(), Some(payload)), head);
    branches.push(Branch { tag: "said".into(), binder: Some("r".into()), body });
    let payload = all(kit);
    let step = kit.b.add(Term::Tag("summary".into(), Some(payload)), head);
    let this = kit.b.var("self", head);
    let body = kit.b.app(this, step, head);
    branches.push(Branch { tag: "summary".into(), binder: Some("r".into()), body });
    for handoff in handoffs {
        let done = remembered.map(|_| {
            let (before, done) = (kit.b.var(DONE, head), kit.b.var("d", head));
            kit.b.add(Term::Prim(Prim::Add, vec![before, done]), head)
        });
        let binder = done.map(|_| Name::from("d"));
        let body = kit.b.add(Term::Tag(handoff.name.as_str().into(), done), head);
        branches.push(Branch { tag: handoff.name.as_str().into(), binder, body });
    }
    let step = kit.b.add(Term::Case { scrutinee: done, branches, default: None }, head);
    let mut bindings: Vec<(Name, TermId)> = Vec::new();
    if remembered.is_some() {
        let (r, before) = (kit.b.var("$r", head), kit.b.var("r", head));
        let done = kit.b.add(Term::Field(before, "done".into()), head);
        let branches = vec![Branch { tag: "summary".into(), binder: Some("r".into()), body: done }];
        let done = kit.b.add(Term::Case { scrutinee: r, branches, default: None }, head);
        bindings.push((DONE.into(), done));
    }
    let step = kit.b.let_in(bindings, step, head);
    let step = kit.b.abs("$r", None, step, head);
    let step = kit.b.abs("self", None, step, head);
    let fix = kit.fix(a.bound.clone(), step, fix_at);
    let first = nothing(kit, remembered, head);
    let begin = kit.b.add(Term::Tag("summary".into(), Some(first)), head);
    kit.b.app(fix, begin, head)
}

/// No call: of summaries, and of what is remembered.
fn nothing(kit: &mut Kit<'_>, remembered: Option<&str>, at: Span) -> TermId {
    let text = kit.b.add(Term::List(Vec::new()), at);
    if remembered.is_none() {
        return text;
    }
    let done = kit.b.add(Term::List(Vec::new()), at);
    pair(kit, text, done, at)
}

/// A reply and what it calls.
struct Once<'a> {
    params: &'a ModelParams,
    summary: Option<&'a str>,
    remembered: Option<&'a str>,
    /// True if tools are called, so that there is a summary.
    looped: bool,
    hands_off: bool,
    head: Span,
    model_at: Span,
}

impl Once<'_> {
    /// `said`, or, when all calls are carried out, the first handoff or the `summary` of all.
    fn calls(&self, kit: &mut Kit<'_>, tools: &[&ToolUse], handoffs: &[&Handoff]) -> TermId {
        let mut branches: Vec<Branch> = Vec::new();
        for ToolUse { decl, ask } in tools {
            branches.push(self.tool(kit, decl, ask.as_ref()));
        }
        for handoff in handoffs {
            branches.push(self.handoff(kit, handoff));
        }
        let head = self.head;
        let mut y = kit.b.var("y", head);
        if self.remembered.is_some() {
            let done = kit.b.add(Term::List(Vec::new()), head);
            y = pair(kit, y, done, head);
        }
        let body = kit.b.add(Term::Tag("said".into(), Some(y)), head);
        branches.push(Branch { tag: "final".into(), binder: Some("y".into()), body });
        let after = self.over(kit, handoffs);
        let known = self.fields().into_iter();
        let known = known.map(|field| match field {
            TO => (TO.into(), kit.b.add(Term::Tag(NOBODY.into(), None), head)),
            field => (field.into(), kit.b.add(Term::List(Vec::new()), head)),
        });
        let known = known.collect();
        calls::calls(kit, self.params.clone(), known, branches, after, (head, head, self.model_at))
    }

    /// Returns the fields for a reply's calls so far: summaries, calls with results, and the target of a
    /// handoff.
    fn fields(&self) -> Vec<&'static str> {
        let mut fields = Vec::new();
        fields.extend(self.looped.then_some(TOLD));
        fields.extend(self.remembered.map(|_| "done"));
        fields.extend(self.hands_off.then_some(TO));
        fields
    }

    /// No call is left.
    fn over(&self, kit: &mut Kit<'_>, handoffs: &[&Handoff]) -> TermId {
        let at = self.head;
        let done = |kit: &mut Kit<'_>| calls::so_far(kit, "done", at);
        let summary = self.looped.then(|| {
            let mut told = calls::so_far(kit, TOLD, at);
            if self.remembered.is_some() {
                let done = done(kit);
                told = pair(kit, told, done, at);
            }
            kit.b.add(Term::Tag("summary".into(), Some(told)), at)
        });
        let mut branches: Vec<Branch> = Vec::new();
        if handoffs.is_empty() {
            // INVARIANT: there are tools or handoffs.
            return summary.unwrap_or_else(|| nothing(kit, None, at));
        }
        let nobody = summary.unwrap_or_else(|| {
            // Every call is a handoff then.
            let message = kit.text("there was no handoff", at);
            kit.b.add(Term::Fail(message), at)
        });
        branches.push(Branch { tag: NOBODY.into(), binder: None, body: nobody });
        for handoff in handoffs {
            let tag = Name::from(handoff.name.as_str());
            let done = self.remembered.map(|_| done(kit));
            let body = kit.b.add(Term::Tag(tag.clone(), done), at);
            branches.push(Branch { tag, binder: None, body });
        }
        let to = calls::so_far(kit, TO, at);
        kit.b.add(Term::Case { scrutinee: to, branches, default: None }, at)
    }

    /// After a call of a tool, which is told of, or a handoff: what it adds to what is known, or, if a reply
    /// holds one call, the result of the reply.
    fn after(&self, kit: &mut Kit<'_>, tool: &Name, result: &str, told: Option<TermId>, at: Span) -> TermId {
        let to = told.is_none().then_some(tool);
        let one = |kit: &mut Kit<'_>, item: TermId| kit.b.add(Term::List(vec![item]), at);
        let done = self.remembered.map(|me| called(kit, me, tool, result, at));
        let single = !calls::several(self.params);
        let told = told.map(|told| one(kit, told));
        if single {
            return match (to, told) {
                (Some(to), _) => kit.b.add(Term::Tag(to.clone(), done), at),
                (None, told) => {
                    let told = told.unwrap_or_else(|| nothing(kit, None, at));
                    let payload = match done {
                        Some(done) => pair(kit, told, done, at),
                        None => told,
                    };
                    kit.b.add(Term::Tag("summary".into(), Some(payload)), at)
                }
            };
        }
        let to = to.map(|to| {
            // Of several handoffs the first counts.
            let (before, to) = (calls::so_far(kit, TO, at), kit.b.add(Term::Tag(to.clone(), None), at));
            let nobody = vec![Branch { tag: NOBODY.into(), binder: None, body: to }];
            let first = calls::so_far(kit, TO, at);
            kit.b.add(Term::Case { scrutinee: before, branches: nobody, default: Some(first) }, at)
        });
        let mut known = Vec::new();
        for field in self.fields() {
            let before = calls::so_far(kit, field, at);
            let new = match field {
                TOLD => told,
                TO => to,
                _ => done,
            };
            let all = match new {
                Some(new) if field == TO => new,
                Some(new) => kit.b.add(Term::Prim(Prim::Add, vec![before, new]), at),
                None => before,
            };
            known.push((field.into(), all));
        }
        // INVARIANT: a reply may hold several calls here.
        calls::more(kit, self.params, known, at).unwrap_or_else(|| nothing(kit, None, at))
    }

    fn tool(&self, kit: &mut Kit<'_>, decl: &ToolDecl, ask: Option<&Member>) -> Branch {
        let (name, at) = (decl.name.clone(), decl.span);
        let given = kit.b.var("a", at);
        let result = match ask {
            Some(member) => {
                let agent = alone(kit, member);
                let task = kit.b.add(Term::Field(given, "task".into()), at);
                kit.b.app(agent, task, at)
            }
            None => {
                let id = kit.declared(decl.clone());
                let tool = kit.b.add(Term::Tool(id), at);
                let result = kit.b.app(tool, given, at);
                kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at)
            }
        };
        let o = kit.b.var("o", at);
        let send = kit.b.add(Term::Send(Role::Tool, o), at);
        let told = summary(kit, self.summary, &name, at);
        let next = self.after(kit, &name, "o", Some(told), at);
        let body = kit.b.let_in(vec![("o".into(), result), ("_".into(), send)], next, at);
        Branch { tag: name, binder: Some("a".into()), body }
    }

    fn handoff(&self, kit: &mut Kit<'_>, handoff: &Handoff) -> Branch {
        let (name, at) = (Name::from(handoff.name.as_str()), handoff.at);
        let message = kit.text(&handoff.message, at);
        let y = kit.b.var("y", at);
        let send = kit.b.add(Term::Send(Role::Tool, y), at);
        let next = self.after(kit, &name, "y", None, at);
        let body = kit.b.let_in(vec![("y".into(), message), ("_".into(), send)], next, at);
        Branch { tag: name, binder: self.remembered.map(|_| "a".into()), body }
    }
}

/// `{text: …, done: …}`.
fn pair(kit: &mut Kit<'_>, text: TermId, done: TermId, at: Span) -> TermId {
    kit.b.add(Term::Record(vec![("text".into(), text), ("done".into(), done)]), at)
}

/// The call that is carried out, with its result.
fn called(kit: &mut Kit<'_>, me: &str, tool: &Name, result: &str, at: Span) -> TermId {
    let a = kit.b.var("a", at);
    let call = kit.b.add(Term::Tag(tool.clone(), Some(a)), at);
    let call = entry(kit, me, "call", call, at);
    let o = kit.b.var(result, at);
    let result = entry(kit, me, "result", o, at);
    kit.b.add(Term::List(vec![call, result]), at)
}

/// `let name = value in body`, or the value if that is all of the body.
fn named(kit: &mut Kit<'_>, name: &str, value: TermId, body: TermId, at: Span) -> TermId {
    match kit.b.term(body) {
        Term::Var(n, _) if &**n == name => value,
        _ => kit.b.let_in(vec![(name.into(), value)], body, at),
    }
}

/// Returns true if a tool or handoff of this name may be added. Reports it otherwise.
fn room(kit: &mut Kit<'_>, name: &Name, at: Span, count: usize, seen: &mut HashSet<Name>) -> bool {
    if count >= emit::MAX_TOOLS {
        if count == emit::MAX_TOOLS {
            kit.out.push(emit::too_many_tools(at));
        }
        return false;
    }
    let taken =
        calls::reserved(name) || matches!(&**name, "said" | "summary" | NOBODY) || !seen.insert(name.clone());
    if taken {
        let message = format!("there is a tool `{}` already, this one is left out", clip(name));
        kit.out.push(Diagnostic::warn(codes::DUPLICATE, message, at));
    }
    !taken
}

/// Lowers the summary of the tool result in `o`.
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
