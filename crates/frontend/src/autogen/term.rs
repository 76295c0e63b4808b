//! Agents and talks of AutoGen as terms.
//!
//! | source | term |
//! |---|---|
//! | an assistant alone | `llm p θ` |
//! | with tools | `fresh (send[system] p; send x; case (fix[max_tool_iterations] …) of {said y ⇒ y, summary y ⇒ y})` |
//! | `reflect_on_tool_use` | `summary _ ⇒ recv[θ without tools]` |
//! | a team | `(fix[n] (λself. λ$s. if end then $s else case $s.at of {a ⇒ let y = … in self {…}})) {text: x, …}` |
//! | what a member has heard | the talk so far, said again in a conversation of its own: `fresh (send[system] p; $say "a" $s.log; recv[θ])` |
//! | of a talk with one assistant | the conversation around the loop |
//! | a termination condition | a test of the state; an *and* remembers what has held before |
//!
//! Invariant: a turn of the loop is a turn of the talk, and a bound that is reached ends the talk as AutoGen does: with what was
//! said last.

use super::choose;
use super::model::{Assistant, Ends, How, Kind, Member, Place, Society, Team, ToolUse};
use super::network;
use crate::emit::{self, LoopBound, Template, clip, codes};
use crate::kit::{Kit, size};
use core_ir::{
    Bound, Branch, Data, EffectClass, IfSugar, LabelSpec, ModelParams, Name, Num, Prim, Recv, Role, Term,
    TermId, ToolDecl, Type,
};
use diagnostics::{Diagnostic, Span};
use std::collections::HashSet;
use std::sync::Arc;

/// What a turn ends with.
#[derive(Clone)]
pub(super) enum Said {
    Text,
    Summary,
    Handoff(String),
}

/// Opens a member; the term that stands for it if that is not possible.
pub(super) fn open(kit: &mut Kit<'_>, member: &Member) -> Result<(), TermId> {
    let text = match &member.kind {
        Kind::Assistant(a) => a.system.as_ref().map_or(0, |s| s.len()),
        _ => size(member.head),
    };
    kit.open(&member.name, member.place, member.head, text)
}

/// `Str → Str`: what a member makes of a task when nobody else takes part.
pub(super) fn alone(kit: &mut Kit<'_>, member: &Member) -> TermId {
    let at = member.head;
    if let Err(term) = open(kit, member) {
        return term;
    }
    let term = match &member.kind {
        Kind::Assistant(a) => assistant(kit, member, a),
        Kind::Outside => {
            let x = kit.b.var("x", at);
            let said = crate::flow::by_tool(kit, &member.name, x, at);
            kit.b.abs("x", Some(Type::Str), said, at)
        }
        Kind::Team(team) => {
            let s = talk(kit, team, Start::Task, false);
            let text = kit.b.add(Term::Field(s, "text".into()), at);
            let body = with_say(kit, !is_live(team), team, text, at);
            kit.b.abs("x", Some(Type::Str), body, at)
        }
        Kind::Society(society) => {
            let x = kit.b.var("x", at);
            let entry = entry(kit, "user", x, at);
            let log = kit.b.add(Term::List(vec![entry]), at);
            let said = self::society(kit, member, society);
            let body = kit.b.let_in(vec![("$log".into(), log)], said, at);
            let body = match &society.team.kind {
                Kind::Team(team) => with_say(kit, true, team, body, at),
                _ => body,
            };
            kit.b.abs("x", Some(Type::Str), body, at)
        }
        Kind::Says(text) => {
            let said = kit.text(text, at);
            kit.b.abs("x", Some(Type::Str), said, at)
        }
        Kind::Unknown(why) => kit.undecided(codes::NOT_COMPILED, why.clone(), at),
    };
    kit.close();
    term
}

/// The system message, unless there is none.
pub(super) fn system(kit: &mut Kit<'_>, a: &Assistant, at: Span) -> Vec<(Name, TermId)> {
    let Some(words) = &a.system else {
        // That nothing is said is said, so that rules can tell.
        return Vec::new();
    };
    let prompt = words.build(kit);
    vec![("_".into(), kit.b.add(Term::Send(Role::System, prompt), at))]
}

fn assistant(kit: &mut Kit<'_>, member: &Member, a: &Assistant) -> TermId {
    let head = member.head;
    if a.tools.is_empty() && a.handoffs.is_empty() {
        let prompt = match &a.system {
            Some(words) => words.build(kit),
            None => kit.text("", head),
        };
        return kit.b.add(Term::Llm(prompt, Arc::new(a.params.clone())), a.model_at.unwrap_or(head));
    }
    let mut said = system(kit, a, head);
    let x = kit.b.var("x", head);
    said.push(("_".into(), kit.b.add(Term::Send(Role::User, x), head)));
    let reply = turn(kit, head, a, &mut |kit, y, _| kit.b.var(y, head));
    let body = kit.b.let_in(said, reply, head);
    let body = kit.b.add(Term::Fresh(body), head);
    kit.b.abs("x", Some(Type::Str), body, head)
}

/// A turn of an assistant in the conversation around it. `finish` makes the result from the variable that holds what it says.
pub(super) fn turn(
    kit: &mut Kit<'_>,
    head: Span,
    a: &Assistant,
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
        let summary = summary(kit, a.summary.as_deref(), &name, at);
        let step = kit.b.add(Term::Tag("summary".into(), Some(summary)), at);
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
            let tag = kit.b.add(Term::Tag(name.clone(), None), at);
            let body = kit.b.let_in(vec![("y".into(), message), ("_".into(), told)], tag, at);
            branches.push(Branch { tag: name.clone(), binder: None, body });
            let message = kit.text(&handoff.message, at);
            let body = finish(kit, "y".into(), &then);
            let body = kit.b.let_in(vec![("y".into(), message)], body, at);
            over.push(Branch { tag: name, binder: None, body });
        } else {
            let body = finish(kit, "y".into(), &then);
            let body = kit.b.let_in(vec![("y".into(), message), ("_".into(), told)], body, at);
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
    if !looped {
        let body = finish(kit, "y".into(), &Said::Text);
        branches.push(Branch { tag: "final".into(), binder: Some("y".into()), body });
        let case = kit.b.add(Term::Case { scrutinee: t, branches, default: None }, head);
        return kit.b.let_in(vec![("t".into(), recv)], case, head);
    }
    let fix_at = a.bound.span.unwrap_or(head);
    let y = kit.b.var("y", head);
    let said = kit.b.add(Term::Tag("said".into(), Some(y)), head);
    branches.push(Branch { tag: "final".into(), binder: Some("y".into()), body: said });
    let case = kit.b.add(Term::Case { scrutinee: t, branches, default: None }, head);
    let step = kit.b.let_in(vec![("t".into(), recv)], case, head);
    let step = kit.b.abs("$r", None, step, head);
    let step = kit.b.abs("self", None, step, head);
    let fix =
        kit.b.add(Term::Fix { bound: a.bound.bound, origin: a.bound.origin.clone(), body: step }, fix_at);
    let nothing = kit.text("", head);
    let begin = kit.b.add(Term::Tag("summary".into(), Some(nothing)), head);
    let ran = kit.b.app(fix, begin, head);
    let body = finish(kit, "y".into(), &Said::Text);
    let mut ends = vec![Branch { tag: "said".into(), binder: Some("y".into()), body }];
    if a.reflect {
        // The tools are not offered when their results are looked back on.
        let again = kit.b.add(Term::Recv(Recv::Data(Arc::new(plain))), model_at);
        let body = finish(kit, "y".into(), &Said::Text);
        let body = named(kit, "y", again, body, head);
        ends.push(Branch { tag: "summary".into(), binder: None, body });
    } else {
        let body = finish(kit, "y".into(), &Said::Summary);
        ends.push(Branch { tag: "summary".into(), binder: Some("y".into()), body });
    }
    ends.extend(over);
    kit.b.add(Term::Case { scrutinee: ran, branches: ends, default: None }, head)
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

/// `{by: …, text: …}`: a message of the talk.
pub(super) fn entry(kit: &mut Kit<'_>, by: &str, text: TermId, at: Span) -> TermId {
    let by = kit.text(by, at);
    kit.b.add(Term::Record(vec![("by".into(), by), ("text".into(), text)]), at)
}

/// A field of the state.
pub(super) fn state(kit: &mut Kit<'_>, field: &str, at: Span) -> TermId {
    let s = kit.b.var("$s", at);
    kit.b.add(Term::Field(s, field.into()), at)
}

/// What begins a talk.
pub(super) enum Start {
    /// The variable `x`.
    Task,
    /// What was said before: the variable `$log`.
    Log,
}

/// Whether one assistant takes part, and everyone else is asked by its last message: then the talk is one conversation.
fn is_live(team: &Team) -> bool {
    let simple = matches!(team.how, How::RoundRobin | How::Swarm);
    let assistants = team.members.iter().filter(|m| matches!(m.kind, Kind::Assistant(_))).count();
    let others = team.members.iter().any(|m| matches!(m.kind, Kind::Team(_) | Kind::Society(_)));
    simple && assistants == 1 && !others
}

/// Binds `$say` around a term, if it is needed: it says a talk again, as one of its members heard it.
fn with_say(kit: &mut Kit<'_>, needed: bool, team: &Team, body: TermId, at: Span) -> TermId {
    if !needed {
        return body;
    }
    let bound = match messages(team) {
        Some(n) => LoopBound { bound: Bound::Finite(n), origin: None, span: None },
        None => LoopBound::unknown("how many messages the talk has"),
    };
    let (i, log) = (kit.b.var("$i", at), kit.b.var("$log", at));
    let count = kit.b.add(Term::Prim(Prim::Length, vec![log]), at);
    let test = kit.b.add(Term::Prim(Prim::Lt, vec![i, count]), at);
    let (log, i) = (kit.b.var("$log", at), kit.b.var("$i", at));
    let message = kit.b.add(Term::Index(log, i), at);
    let field = |kit: &mut Kit<'_>, name: &str| {
        let m = kit.b.var("$m", at);
        kit.b.add(Term::Field(m, name.into()), at)
    };
    let (by, me) = (field(kit, "by"), kit.b.var("$me", at));
    let own = kit.b.add(Term::Prim(Prim::Eq, vec![by, me]), at);
    let text = field(kit, "text");
    let as_own = kit.b.add(Term::Send(Role::Assistant, text), at);
    let text = field(kit, "text");
    let as_other = kit.b.add(Term::Send(Role::User, text), at);
    let say = kit.b.add(Term::If(own, as_own, as_other, IfSugar::Plain), at);
    let (this, i, one) = (kit.b.var("self", at), kit.b.var("$i", at), kit.b.lit(Num::ONE, at));
    let next = kit.b.add(Term::Prim(Prim::Add, vec![i, one]), at);
    let again = kit.b.app(this, next, at);
    let some = kit.b.let_in(vec![("$m".into(), message), ("_".into(), say)], again, at);
    let done = kit.b.var("$i", at);
    let step = kit.b.add(Term::If(test, some, done, IfSugar::Plain), at);
    let step = kit.b.abs("$i", None, step, at);
    let step = kit.b.abs("self", None, step, at);
    let fix = kit.b.add(Term::Fix { bound: bound.bound, origin: bound.origin, body: step }, at);
    let zero = kit.b.lit(Num::from(0), at);
    let all = kit.b.app(fix, zero, at);
    let all = kit.b.abs("$log", None, all, at);
    let say = kit.b.abs("$me", None, all, at);
    kit.b.let_in(vec![("$say".into(), say)], body, at)
}

/// Messages of a talk at most, as far as its turns bound them.
fn messages(team: &Team) -> Option<u64> {
    let turns = match limit(team).bound {
        Bound::Finite(n) => n,
        Bound::Infinite => match &team.how {
            How::Graph(graph) => network::waves(team, graph)?.len() as u64,
            _ => return None,
        },
    };
    let mut each: u64 = 0;
    for member in &team.members {
        let of = match &member.kind {
            Kind::Team(inner) => messages(inner)?,
            Kind::Society(society) => match &society.team.kind {
                Kind::Team(inner) => messages(inner)?,
                _ => 1,
            },
            _ => 1,
        };
        each = match team.how {
            // Of a graph, all members may speak in one turn.
            How::Graph(_) => each.saturating_add(of),
            _ => each.max(of),
        };
    }
    Some(turns.saturating_mul(each).saturating_add(1))
}

/// `$say "name" log`, as a binding.
pub(super) fn heard(kit: &mut Kit<'_>, name: &str, log: TermId, at: Span) -> (Name, TermId) {
    let (say, me) = (kit.b.var("$say", at), kit.text(name, at));
    let of = kit.b.app(say, me, at);
    ("_".into(), kit.b.app(of, log, at))
}

/// The most turns: what the team says, or the messages that end it.
pub(super) fn limit(team: &Team) -> LoopBound {
    let said = team.ends.as_ref().and_then(most_messages);
    let own = &team.bound;
    match (own.bound, said) {
        (Bound::Finite(n), Some((m, at))) if m.saturating_sub(1) < n || own.origin.is_some() => {
            LoopBound { bound: Bound::Finite(m.saturating_sub(1)), origin: None, span: Some(at) }
        }
        // The task is a message, too.
        (Bound::Infinite, Some((m, at))) => {
            LoopBound { bound: Bound::Finite(m.saturating_sub(1)), origin: None, span: Some(at) }
        }
        (Bound::Infinite, None) if own.origin.as_ref().is_some_and(|o| o.starts_with("none")) => {
            match team.ends.as_ref().and_then(ended_outside) {
                Some((why, at)) => LoopBound { span: Some(at), ..LoopBound::unknown(&why) },
                None => clone(own),
            }
        }
        _ => clone(own),
    }
}

fn clone(bound: &LoopBound) -> LoopBound {
    LoopBound { bound: bound.bound, origin: bound.origin.clone(), span: bound.span }
}

/// The messages after which a talk ends whatever they say.
fn most_messages(ends: &Ends) -> Option<(u64, Span)> {
    match ends {
        Ends::Messages(n, at) => Some((*n, *at)),
        Ends::Any(list) => list.iter().filter_map(most_messages).min_by_key(|(n, _)| *n),
        _ => None,
    }
}

/// What ends a talk that nobody in it says.
fn ended_outside(ends: &Ends) -> Option<(String, Span)> {
    match ends {
        Ends::Outside(why, at) => Some((why.clone(), *at)),
        Ends::Any(list) => list.iter().find_map(ended_outside),
        _ => None,
    }
}

/// What the state of a talk holds beside the last message.
pub(super) struct Needs {
    pub live: bool,
    pub at: bool,
    pub by: bool,
    pub to: bool,
    pub kind: bool,
    pub count: bool,
    pub log: bool,
    pub history: bool,
    /// Whether a turn says more than one message.
    pub many: bool,
}

impl Needs {
    pub fn of(team: &Team, nested: bool) -> Needs {
        let many = team.members.iter().any(|m| matches!(m.kind, Kind::Team(_)));
        let live = !nested && is_live(team);
        let chosen = matches!(team.how, How::Selector(_) | How::Magentic(_));
        let mut needs = Needs {
            live,
            at: !chosen && team.members.len() > 1,
            by: chosen,
            to: false,
            kind: false,
            count: (many || matches!(team.how, How::Graph(_)))
                && team.ends.as_ref().is_some_and(|e| most_messages(e).is_some()),
            log: !live,
            history: matches!(&team.how, How::Selector(s) | How::Magentic(s) if s.after.is_none()),
            many,
        };
        if let Some(ends) = &team.ends {
            needs.look(ends, false);
        }
        needs
    }

    fn look(&mut self, ends: &Ends, all: bool) {
        match ends {
            Ends::Any(list) => list.iter().for_each(|e| self.look(e, all)),
            Ends::All(list) => list.iter().for_each(|e| self.look(e, true)),
            Ends::Messages(..) => self.count |= all,
            Ends::Mention { sources, .. } => self.by |= sources.is_some(),
            Ends::Handoff(..) => self.to = true,
            Ends::Source(..) => self.by = true,
            Ends::TextOf(source, _) => {
                self.kind = true;
                self.by |= source.is_some();
            }
            Ends::Called(..) | Ends::Outside(..) | Ends::Unknown(..) => {}
        }
    }

    /// Whether a turn gives more than a text.
    fn records(&self, team: &Team) -> bool {
        self.to || self.kind || self.many || (self.at && matches!(team.how, How::Swarm))
    }
}

/// The tag that says who speaks.
fn tag(index: usize, team: &Team) -> Name {
    let name = &team.members[index].name;
    let clash = team.members.iter().filter(|m| m.name == *name).count() > 1;
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain && !clash { name.as_str().into() } else { format!("{}_{}", slug(name), index + 1).into() }
}

fn slug(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(32).collect()
}

/// The state in which a talk ends, in which `text` is what was said last.
pub(super) fn talk(kit: &mut Kit<'_>, team: &Team, start: Start, nested: bool) -> TermId {
    let at = team.at;
    if team.members.is_empty() {
        let text = kit.undecided(codes::NOT_COMPILED, "a team without members that are known".into(), at);
        let x = kit.b.lit(Data::list(Vec::new()), at);
        return kit.b.add(Term::Record(vec![("text".into(), text), ("log".into(), x)]), at);
    }
    if let How::Graph(graph) = &team.how {
        return network::lower(kit, team, graph, start);
    }
    let needs = Needs::of(team, nested);
    let bound = limit(team);
    let fix_at = bound.span.unwrap_or(at);
    let mut latches: Vec<(Name, TermId)> = Vec::new();
    let end = team.ends.as_ref().and_then(|e| holds(kit, e, &needs, &mut latches));
    let kept: Vec<Name> = latches.iter().map(|(n, _)| n.clone()).collect();
    let mut branches: Vec<Branch> = Vec::new();
    for i in 0..team.members.len() {
        let body = member(kit, team, i, &needs, &kept);
        // A model names a member as it is called.
        let name = &team.members[i].name;
        let twice = team.members[..i].iter().any(|m| m.name == *name);
        let chosen = matches!(team.how, How::Selector(_) | How::Magentic(_)) && !twice;
        let tag = if chosen { name.as_str().into() } else { tag(i, team) };
        branches.push(Branch { tag, binder: None, body });
    }
    let next = match &team.how {
        How::Selector(selector) | How::Magentic(selector) => {
            let who = choose::next(kit, team, selector);
            // Only members are named; a `case` on a text has to say what else happens.
            let message = kit.text("whoever is to speak takes no part", at);
            let nobody = kit.b.add(Term::Fail(message), at);
            kit.b.add(Term::Case { scrutinee: who, branches, default: Some(nobody) }, at)
        }
        _ if branches.len() == 1 => branches.remove(0).body,
        _ => {
            let scrutinee = state(kit, "at", at);
            kit.b.add(Term::Case { scrutinee, branches, default: None }, at)
        }
    };
    let step = match end {
        Some(test) => {
            let s = kit.b.var("$s", at);
            kit.b.add(Term::If(test, s, next, IfSugar::Plain), at)
        }
        None => next,
    };
    let step = if latches.is_empty() { step } else { kit.b.let_in(latches, step, at) };
    let step = kit.b.abs("$s", None, step, at);
    let step = kit.b.abs("self", None, step, at);
    let fix = kit.b.add(Term::Fix { bound: bound.bound, origin: bound.origin, body: step }, fix_at);
    let begin = begin(kit, team, &needs, &kept, start);
    let ran = kit.b.app(fix, begin, at);
    if !needs.live {
        return ran;
    }
    let mut said = Vec::new();
    let mut role = Role::User;
    for m in &team.members {
        if let Kind::Assistant(a) = &m.kind {
            said.extend(system(kit, a, m.head));
            if m.name == team.opener {
                role = Role::Assistant;
            }
        }
    }
    let x = kit.b.var("x", at);
    said.push(("_".into(), kit.b.add(Term::Send(role, x), at)));
    let body = kit.b.let_in(said, ran, at);
    kit.b.add(Term::Fresh(body), at)
}

/// The state before anybody spoke.
fn begin(kit: &mut Kit<'_>, team: &Team, needs: &Needs, kept: &[Name], start: Start) -> TermId {
    let at = team.at;
    let mut fields: Vec<(Name, TermId)> = Vec::new();
    if needs.at {
        fields.push(("at".into(), kit.b.add(Term::Tag(tag(0, team), None), at)));
    }
    if needs.by {
        fields.push(("by".into(), kit.text(&team.opener, at)));
    }
    let text = match start {
        Start::Task => kit.b.var("x", at),
        Start::Log => last(kit, at),
    };
    fields.push(("text".into(), text));
    if needs.to {
        fields.push(("to".into(), kit.text("", at)));
    }
    if needs.kind {
        fields.push(("kind".into(), kit.text("text", at)));
    }
    if needs.count {
        fields.push(("count".into(), kit.b.lit(Num::ONE, at)));
    }
    if needs.log {
        let log = match start {
            Start::Task => {
                let x = kit.b.var("x", at);
                let first = entry(kit, &team.opener, x, at);
                kit.b.add(Term::List(vec![first]), at)
            }
            Start::Log => kit.b.var("$log", at),
        };
        fields.push(("log".into(), log));
    }
    if needs.history {
        let text = match start {
            Start::Task => kit.b.var("x", at),
            Start::Log => last(kit, at),
        };
        let line = choose::line(kit, &team.opener, text, at);
        fields.push(("history".into(), kit.b.add(Term::List(vec![line]), at)));
    }
    for name in kept {
        fields.push((name.clone(), kit.b.lit(Data::Bool(false), at)));
    }
    kit.b.add(Term::Record(fields), at)
}

/// What was said last of `$log`.
pub(super) fn last(kit: &mut Kit<'_>, at: Span) -> TermId {
    let (log, of, one) = (kit.b.var("$log", at), kit.b.var("$log", at), kit.b.lit(Num::ONE, at));
    let count = kit.b.add(Term::Prim(Prim::Length, vec![of]), at);
    let index = kit.b.add(Term::Prim(Prim::Sub, vec![count, one]), at);
    let message = kit.b.add(Term::Index(log, index), at);
    kit.b.add(Term::Field(message, "text".into()), at)
}

/// Whether a talk is over, as a test of the state; `None` if this never ends it. What an *and* has to remember is bound before.
pub(super) fn holds(
    kit: &mut Kit<'_>,
    ends: &Ends,
    needs: &Needs,
    latches: &mut Vec<(Name, TermId)>,
) -> Option<TermId> {
    match ends {
        Ends::Any(list) => {
            let mut test = None;
            for e in list {
                let this = holds(kit, e, needs, latches);
                test = or(kit, test, this);
            }
            test
        }
        Ends::All(list) => {
            let mut all: Option<TermId> = None;
            for e in list {
                let (held, at) = match e {
                    Ends::Messages(n, at) => (counted(kit, *n, *at), *at),
                    _ => {
                        let now = holds(kit, e, needs, latches)?;
                        let at = kit.b.span(now);
                        let name = Name::from(format!("met{}", latches.len() + 1));
                        let (before, yes) = (state(kit, &name, at), kit.b.lit(Data::Bool(true), at));
                        let held = kit.b.add(Term::If(before, yes, now, IfSugar::Or), at);
                        latches.push((name.clone(), held));
                        (kit.b.var(name, at), at)
                    }
                };
                all = Some(match all {
                    None => held,
                    Some(before) => {
                        let no = kit.b.lit(Data::Bool(false), at);
                        kit.b.add(Term::If(before, held, no, IfSugar::And), at)
                    }
                });
            }
            all
        }
        // Where each turn is a message, the bound of the loop says it.
        Ends::Messages(n, at) => needs.count.then(|| counted(kit, *n, *at)),
        Ends::Mention { text, sources, place, at } => {
            let says = mention(kit, text, *place, *at);
            Some(match sources {
                None => says,
                Some(names) => {
                    let by = spoken_by(kit, names, *at);
                    let no = kit.b.lit(Data::Bool(false), *at);
                    kit.b.add(Term::If(by, says, no, IfSugar::And), *at)
                }
            })
        }
        Ends::Handoff(target, at) => Some(equals(kit, "to", target, *at)),
        Ends::Source(names, at) => Some(spoken_by(kit, names, *at)),
        Ends::TextOf(source, at) => {
            let is_text = equals(kit, "kind", "text", *at);
            Some(match source {
                None => is_text,
                Some(name) => {
                    let by = equals(kit, "by", name, *at);
                    let no = kit.b.lit(Data::Bool(false), *at);
                    kit.b.add(Term::If(by, is_text, no, IfSugar::And), *at)
                }
            })
        }
        Ends::Called(tool, at) => {
            Some(kit.undecided(codes::NOT_COMPILED, format!("whether `{}` was called", clip(tool)), *at))
        }
        Ends::Outside(why, at) => {
            let message = format!("that {} ends the talk is left out", clip(why));
            kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, *at));
            None
        }
        Ends::Unknown(why, at) => Some(kit.undecided(codes::NOT_COMPILED, why.clone(), *at)),
    }
}

/// Whether the last message holds a text.
fn mention(kit: &mut Kit<'_>, text: &str, place: Place, at: Span) -> TermId {
    let said = state(kit, "text", at);
    holds_text(kit, said, text, place, at)
}

/// Whether a text holds another one.
pub(super) fn holds_text(kit: &mut Kit<'_>, said: TermId, text: &str, place: Place, at: Span) -> TermId {
    let needle = kit.text(text, at);
    if place == Place::Anywhere {
        return kit.b.add(Term::Prim(Prim::Contains, vec![said, needle]), at);
    }
    let said = kit.b.add(Term::Prim(Prim::Trim, vec![said]), at);
    if place == Place::All {
        return kit.b.add(Term::Prim(Prim::Eq, vec![said, needle]), at);
    }
    // It ends so if nothing is left behind its last occurrence.
    let parts = kit.b.add(Term::Prim(Prim::Split, vec![said, needle]), at);
    let var = |kit: &mut Kit<'_>| kit.b.var("$parts", at);
    let (of, again) = (var(kit), var(kit));
    let (count, one) = (kit.b.add(Term::Prim(Prim::Length, vec![of]), at), kit.b.lit(Num::ONE, at));
    let several = kit.b.add(Term::Prim(Prim::Gt, vec![count, one]), at);
    let (of, one) = (var(kit), kit.b.lit(Num::ONE, at));
    let count = kit.b.add(Term::Prim(Prim::Length, vec![of]), at);
    let last = kit.b.add(Term::Prim(Prim::Sub, vec![count, one]), at);
    let last = kit.b.add(Term::Index(again, last), at);
    let nothing = kit.text("", at);
    let ends = kit.b.add(Term::Prim(Prim::Eq, vec![last, nothing]), at);
    let no = kit.b.lit(Data::Bool(false), at);
    let test = kit.b.add(Term::If(several, ends, no, IfSugar::And), at);
    kit.b.let_in(vec![("$parts".into(), parts)], test, at)
}

fn or(kit: &mut Kit<'_>, a: Option<TermId>, b: Option<TermId>) -> Option<TermId> {
    let (Some(x), Some(y)) = (a, b) else { return a.or(b) };
    let at = kit.b.span(y);
    let yes = kit.b.lit(Data::Bool(true), at);
    Some(kit.b.add(Term::If(x, yes, y, IfSugar::Or), at))
}

fn counted(kit: &mut Kit<'_>, n: u64, at: Span) -> TermId {
    let n = kit.b.lit(Num::from(i64::try_from(n).unwrap_or(i64::MAX)), at);
    let count = state(kit, "count", at);
    kit.b.add(Term::Prim(Prim::Ge, vec![count, n]), at)
}

fn equals(kit: &mut Kit<'_>, field: &str, text: &str, at: Span) -> TermId {
    let (value, text) = (state(kit, field, at), kit.text(text, at));
    kit.b.add(Term::Prim(Prim::Eq, vec![value, text]), at)
}

fn spoken_by(kit: &mut Kit<'_>, names: &[String], at: Span) -> TermId {
    if let [name] = names {
        return equals(kit, "by", name, at);
    }
    let names = kit.b.lit(Data::list(names.iter().map(|n| Data::str(n.as_str())).collect::<Vec<_>>()), at);
    let by = state(kit, "by", at);
    kit.b.add(Term::Prim(Prim::Contains, vec![names, by]), at)
}

/// A member's turn, and the talk from there.
fn member(kit: &mut Kit<'_>, team: &Team, i: usize, needs: &Needs, kept: &[Name]) -> TermId {
    let m = &team.members[i];
    let at = m.head;
    let records = needs.records(team);
    let said = match open(kit, m) {
        Ok(()) => {
            let said = speaks(kit, team, i, needs, records);
            kit.close();
            said
        }
        Err(unknown) => unknown,
    };
    let mut bindings: Vec<(Name, TermId)> = Vec::new();
    let part = |kit: &mut Kit<'_>, field: &str| {
        let t = kit.b.var("$t", at);
        kit.b.add(Term::Field(t, field.into()), at)
    };
    if records {
        bindings.push(("$t".into(), said));
        let y = part(kit, "text");
        bindings.push(("y".into(), y));
    } else {
        bindings.push(("y".into(), said));
    }
    if needs.live && !matches!(m.kind, Kind::Assistant(_)) {
        let y = kit.b.var("y", at);
        bindings.push(("_".into(), kit.b.add(Term::Send(Role::User, y), at)));
    }
    let mut fields: Vec<(Name, TermId)> = Vec::new();
    if needs.at {
        let next = match team.how {
            How::Swarm => part(kit, "at"),
            _ => kit.b.add(Term::Tag(tag((i + 1) % team.members.len(), team), None), at),
        };
        fields.push(("at".into(), next));
    }
    if needs.by {
        fields.push(("by".into(), kit.text(&m.name, at)));
    }
    let y = kit.b.var("y", at);
    fields.push(("text".into(), y));
    for (needed, field) in [(needs.to, "to"), (needs.kind, "kind")] {
        if needed {
            let value = part(kit, field);
            fields.push((field.into(), value));
        }
    }
    if needs.count {
        let (count, more) =
            (state(kit, "count", at), if needs.many { part(kit, "more") } else { kit.b.lit(Num::ONE, at) });
        fields.push(("count".into(), kit.b.add(Term::Prim(Prim::Add, vec![count, more]), at)));
    }
    if needs.log {
        let log = if needs.many {
            part(kit, "log")
        } else {
            let y = kit.b.var("y", at);
            appended(kit, &m.name, y, at)
        };
        fields.push(("log".into(), log));
    }
    if needs.history {
        let (y, history) = (kit.b.var("y", at), state(kit, "history", at));
        let line = choose::line(kit, &m.name, y, at);
        fields.push(("history".into(), kit.b.add(Term::Prim(Prim::Append, vec![history, line]), at)));
    }
    for name in kept {
        fields.push((name.clone(), kit.b.var(name.clone(), at)));
    }
    let next = kit.b.add(Term::Record(fields), at);
    let this = kit.b.var("self", at);
    let again = kit.b.app(this, next, at);
    kit.b.let_in(bindings, again, at)
}

/// The log with one more message.
pub(super) fn appended(kit: &mut Kit<'_>, name: &str, text: TermId, at: Span) -> TermId {
    let log = state(kit, "log", at);
    let more = entry(kit, name, text, at);
    kit.b.add(Term::Prim(Prim::Append, vec![log, more]), at)
}

/// What a member says: a text, or a record with it.
fn speaks(kit: &mut Kit<'_>, team: &Team, i: usize, needs: &Needs, records: bool) -> TermId {
    let m = &team.members[i];
    let at = m.head;
    let gives = |kit: &mut Kit<'_>, text: TermId, said: &Said| {
        if !records {
            return text;
        }
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        if needs.at && matches!(team.how, How::Swarm) {
            let next = match said {
                Said::Handoff(target) => team.members.iter().position(|m| m.name == *target),
                _ => None,
            };
            fields.push(("at".into(), kit.b.add(Term::Tag(tag(next.unwrap_or(i), team), None), at)));
        }
        // A text that is no variable is made once.
        let (y, bound): (Name, _) = match kit.b.term(text) {
            Term::Var(name, _) => (name.clone(), None),
            _ => ("$y".into(), Some(text)),
        };
        fields.push(("text".into(), kit.b.var(y.clone(), at)));
        if needs.to {
            let target = if let Said::Handoff(target) = said { target } else { "" };
            fields.push(("to".into(), kit.text(target, at)));
        }
        if needs.kind {
            let kind = match said {
                Said::Text => "text",
                Said::Summary => "summary",
                Said::Handoff(_) => "handoff",
            };
            fields.push(("kind".into(), kit.text(kind, at)));
        }
        if needs.many {
            if needs.count {
                fields.push(("more".into(), kit.b.lit(Num::ONE, at)));
            }
            let y = kit.b.var(y, at);
            let log = appended(kit, &m.name, y, at);
            fields.push(("log".into(), log));
        }
        let record = kit.b.add(Term::Record(fields), at);
        kit.b.let_in(bound.map(|text| ("$y".into(), text)).into_iter().collect(), record, at)
    };
    match &m.kind {
        Kind::Assistant(a) => {
            if let How::Swarm = team.how {
                strangers(kit, team, a);
            }
            let typed = a.result.is_some();
            let reply = turn(kit, at, a, &mut |kit, y, said| {
                let text = kit.b.var(y, at);
                let text = match said {
                    Said::Text if typed => kit.b.add(Term::Prim(Prim::ToJson, vec![text]), at),
                    _ => text,
                };
                gives(kit, text, said)
            });
            if needs.live {
                return reply;
            }
            let mut said = system(kit, a, at);
            let log = state(kit, "log", at);
            said.push(heard(kit, &m.name, log, at));
            let body = kit.b.let_in(said, reply, at);
            kit.b.add(Term::Fresh(body), at)
        }
        Kind::Outside => {
            let text = state(kit, "text", at);
            let y = crate::flow::by_tool(kit, &m.name, text, at);
            gives(kit, y, &Said::Text)
        }
        Kind::Team(inner) => {
            let s = talk(kit, inner, Start::Log, true);
            let log = state(kit, "log", at);
            let before = state(kit, "log", at);
            let mut fields: Vec<(Name, TermId)> = Vec::new();
            let part = |kit: &mut Kit<'_>, field: &str| {
                let s = kit.b.var("$in", at);
                kit.b.add(Term::Field(s, field.into()), at)
            };
            if needs.at && matches!(team.how, How::Swarm) {
                fields.push(("at".into(), kit.b.add(Term::Tag(tag(i, team), None), at)));
            }
            fields.push(("text".into(), part(kit, "text")));
            if needs.to {
                fields.push(("to".into(), kit.text("", at)));
            }
            if needs.kind {
                fields.push(("kind".into(), kit.text("text", at)));
            }
            if needs.count {
                let after = part(kit, "log");
                let after = kit.b.add(Term::Prim(Prim::Length, vec![after]), at);
                let before = kit.b.add(Term::Prim(Prim::Length, vec![before]), at);
                fields.push(("more".into(), kit.b.add(Term::Prim(Prim::Sub, vec![after, before]), at)));
            }
            fields.push(("log".into(), part(kit, "log")));
            let record = kit.b.add(Term::Record(fields), at);
            kit.b.let_in(vec![("$log".into(), log), ("$in".into(), s)], record, at)
        }
        Kind::Society(inner) => {
            let y = society(kit, m, inner);
            let log = state(kit, "log", at);
            let y = kit.b.let_in(vec![("$log".into(), log)], y, at);
            gives(kit, y, &Said::Text)
        }
        Kind::Says(text) => {
            let y = kit.text(text, at);
            gives(kit, y, &Said::Text)
        }
        Kind::Unknown(why) => {
            let y = kit.undecided(codes::NOT_COMPILED, why.clone(), at);
            gives(kit, y, &Said::Text)
        }
    }
}

/// Hands over that lead to nobody in the talk.
fn strangers(kit: &mut Kit<'_>, team: &Team, a: &Assistant) {
    for handoff in &a.handoffs {
        let known = team.members.iter().any(|m| m.name == handoff.target);
        if !known && !team.ends.as_ref().is_some_and(|e| ended_by(e, &handoff.target)) {
            let message = format!(
                "`{}` is no member of this swarm, and nothing ends the talk there",
                clip(&handoff.target)
            );
            let help = format!(
                "add it to the members, or end the talk with `HandoffTermination(\"{}\")`",
                clip(&handoff.target)
            );
            kit.out.push(Diagnostic::warn(codes::UNDEFINED, message, handoff.at).help(help));
        }
    }
}

/// Whether handing over to somebody ends the talk, or may.
fn ended_by(ends: &Ends, target: &str) -> bool {
    match ends {
        Ends::Any(list) | Ends::All(list) => list.iter().any(|e| ended_by(e, target)),
        Ends::Handoff(to, _) => to == target,
        Ends::Unknown(..) => true,
        _ => false,
    }
}

/// What an agent with a talk inside says; what it has heard is `$log`.
pub(super) fn society(kit: &mut Kit<'_>, member: &Member, society: &Society) -> TermId {
    let at = member.head;
    let Kind::Team(team) = &society.team.kind else {
        return kit.undecided(codes::NOT_COMPILED, "the talk inside an agent".into(), at);
    };
    let inner = talk(kit, team, Start::Log, true);
    let part = |kit: &mut Kit<'_>| {
        let s = kit.b.var("$in", at);
        kit.b.add(Term::Field(s, "log".into()), at)
    };
    let role = if society.as_system { Role::System } else { Role::User };
    let instruction = society.instruction.build(kit);
    let first = kit.b.add(Term::Send(role, instruction), at);
    let (log, before, of) = (part(kit), kit.b.var("$log", at), part(kit));
    let from = kit.b.add(Term::Prim(Prim::Length, vec![before]), at);
    let to = kit.b.add(Term::Prim(Prim::Length, vec![of]), at);
    let new = kit.b.add(Term::Prim(Prim::Slice, vec![log, from, to]), at);
    let heard = heard(kit, "", new, at);
    let response = society.response.build(kit);
    let last = kit.b.add(Term::Send(role, response), at);
    let recv =
        kit.b.add(Term::Recv(Recv::Data(Arc::new(society.params.clone()))), society.model_at.unwrap_or(at));
    let body = kit.b.let_in(vec![("_".into(), first), heard, ("_".into(), last)], recv, at);
    let body = kit.b.add(Term::Fresh(body), at);
    kit.b.let_in(vec![("$in".into(), inner)], body, at)
}
