//! Agents and group chats of AutoGen as terms.
//!
//! | source | term |
//! |---|---|
//! | an assistant alone | `llm p θ` |
//! | with tools | `fresh (send[system] p; send x; case (fix[max_tool_iterations] …) of {said y ⇒ y, summary y ⇒ y})` |
//! | `reflect_on_tool_use` | `summary _ ⇒ recv[θ without tools]` |
//! | a team | `(fix[n] (λself. λ$s. if end then $s else case $s.at of {a ⇒ let y = … in self {…}})) {text: x, …}` |
//! | what a member has heard | the group chat so far, said again in a conversation of its own: `fresh (send[system] p; $say "a" $s.log; recv[θ])` |
//! | of a group chat with one assistant | the conversation around the loop |
//! | a termination condition | a test of the state; an *and* remembers what has held before |
//!
//! Invariant: a turn of the loop is a turn of the group chat, and a bound that is reached ends the group chat
//! as AutoGen does: with what was said last.

use super::GROUP_CHAT_BOUND;
use super::assistant_turn::{DONE, turn};
use super::graph_flow;
use super::magentic;
use super::model::{Assistant, Member, MemberKind, SocietyOfMind, SpeakerSelection, Team, Termination};
use super::selector;
use super::termination::{ended_by, holds, limit, most_messages};
use core_ir::{Bound, BoundOrigin, Branch, Data, IfSugar, Name, Num, Prim, Recv, Role, Term, TermId, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::emit::{LoopBound, clip, codes};
use frontend_kit::kit::{Kit, size};
use std::sync::Arc;

/// Result of a turn.
#[derive(Clone)]
pub(super) enum TurnResult {
    Text,
    Summary,
    Handoff(String),
}

/// Opens a member; the term that represents it if that is not possible.
pub(super) fn open(kit: &mut Kit<'_>, member: &Member) -> Result<(), TermId> {
    let text = match &member.kind {
        MemberKind::Assistant(a) => a.system.as_ref().map_or(0, |s| s.len()),
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
        MemberKind::Assistant(a) => assistant(kit, member, a),
        MemberKind::Outside => {
            let x = kit.b.var("x", at);
            let said = frontend_kit::flow::by_tool(kit, &member.name, x, at);
            kit.b.abs("x", Some(Type::Str), said, at)
        }
        MemberKind::Team(team) => {
            let rich = !is_live(team) && calls(team);
            let s = group_chat(kit, team, Start::Task, false, rich);
            let text = kit.b.add(Term::Field(s, "text".into()), at);
            let body = with_say(kit, !is_live(team), team, rich, text, at);
            kit.b.abs("x", Some(Type::Str), body, at)
        }
        MemberKind::SocietyOfMind(society) => {
            let x = kit.b.var("x", at);
            let rich = matches!(&society.team.kind, MemberKind::Team(team) if calls(team));
            let entry = entry(kit, "user", said_as(rich), x, at);
            let log = kit.b.add(Term::List(vec![entry]), at);
            let said = self::society_of_mind(kit, member, society, rich);
            let body = kit.b.let_in(vec![("$log".into(), log)], said, at);
            let body = match &society.team.kind {
                MemberKind::Team(team) => with_say(kit, true, team, rich, body, at),
                _ => body,
            };
            kit.b.abs("x", Some(Type::Str), body, at)
        }
        MemberKind::Constant(text) => {
            let said = kit.text(text, at);
            kit.b.abs("x", Some(Type::Str), said, at)
        }
        MemberKind::Unknown(why) => kit.undecided(codes::NOT_COMPILED, why.clone(), at),
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
    let reply = turn(kit, head, a, None, &mut |kit, y, _| kit.b.var(y, head));
    let body = kit.b.let_in(said, reply, head);
    let body = kit.b.add(Term::Fresh(body), head);
    kit.b.abs("x", Some(Type::Str), body, head)
}

/// `{by: …, as: …, text: …}`: a message of the group chat. A `call` and its `result` are known to whoever
/// made it; a member that hears itself again has no use for what was `told` of them. Where nobody calls
/// anything, all is said, and the field left out.
pub(super) fn entry(kit: &mut Kit<'_>, by: &str, how: &str, text: TermId, at: Span) -> TermId {
    let mut fields = vec![(Name::from("by"), kit.text(by, at))];
    if !how.is_empty() {
        fields.push(("as".into(), kit.text(how, at)));
    }
    fields.push(("text".into(), text));
    kit.b.add(Term::Record(fields), at)
}

/// Returns true if a member of a chat whose messages are passed on has tools.
fn calls(team: &Team) -> bool {
    team.members.iter().any(|m| match &m.kind {
        MemberKind::Assistant(a) => !a.tools.is_empty() || !a.handoffs.is_empty(),
        MemberKind::Team(inner) => calls(inner),
        MemberKind::SocietyOfMind(society) => {
            matches!(&society.team.kind, MemberKind::Team(inner) if calls(inner))
        }
        _ => false,
    })
}

/// A field of the state.
pub(super) fn state(kit: &mut Kit<'_>, field: &str, at: Span) -> TermId {
    let s = kit.b.var("$s", at);
    kit.b.add(Term::Field(s, field.into()), at)
}

/// Input of a chat.
pub(super) enum Start {
    /// The variable `x`.
    Task,
    /// Earlier messages, in the variable `$log`.
    Log,
}

/// Returns true if a single assistant takes part and all others see only its last message. The chat is then
/// one conversation.
fn is_live(team: &Team) -> bool {
    let simple = matches!(team.how, SpeakerSelection::RoundRobin | SpeakerSelection::Swarm);
    let assistants = team.members.iter().filter(|m| matches!(m.kind, MemberKind::Assistant(_))).count();
    let others =
        team.members.iter().any(|m| matches!(m.kind, MemberKind::Team(_) | MemberKind::SocietyOfMind(_)));
    simple && assistants == 1 && !others
}

/// Returns the tag of a message, empty if calls are not kept.
pub(super) fn said_as(rich: bool) -> &'static str {
    if rich { "said" } else { "" }
}

/// Binds `$say` around a term, if it is needed: it says a group chat again, as one of its members heard it.
fn with_say(kit: &mut Kit<'_>, needed: bool, team: &Team, rich: bool, body: TermId, at: Span) -> TermId {
    if !needed {
        return body;
    }
    let bound = match messages(team, rich) {
        Some(n) => LoopBound::written(Bound::Finite(n), None),
        None => {
            let origin = BoundOrigin::Default("the number of messages of the chat".into());
            LoopBound::unwritten(Bound::Infinite, origin)
        }
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
    let sends = |kit: &mut Kit<'_>, role: Role| {
        let text = field(kit, "text");
        kit.b.add(Term::Send(role, text), at)
    };
    let (as_own, as_other) = if rich {
        let unit = |kit: &mut Kit<'_>| kit.b.add(Term::Record(Vec::new()), at);
        let branch = |tag: &str, body: TermId| Branch { tag: tag.into(), binder: None, body };
        let own = vec![branch("result", sends(kit, Role::Tool)), branch("told", unit(kit))];
        let (how, rest) = (field(kit, "as"), sends(kit, Role::Assistant));
        let own = kit.b.add(Term::Case { scrutinee: how, branches: own, default: Some(rest) }, at);
        let other = vec![branch("call", unit(kit)), branch("result", unit(kit))];
        let (how, rest) = (field(kit, "as"), sends(kit, Role::User));
        (own, kit.b.add(Term::Case { scrutinee: how, branches: other, default: Some(rest) }, at))
    } else {
        (sends(kit, Role::Assistant), sends(kit, Role::User))
    };
    let say = kit.b.add(Term::If(own, as_own, as_other, IfSugar::Plain), at);
    let (this, i, one) = (kit.b.var("self", at), kit.b.var("$i", at), kit.b.lit(Num::ONE, at));
    let next = kit.b.add(Term::Prim(Prim::Add, vec![i, one]), at);
    let again = kit.b.app(this, next, at);
    let some = kit.b.let_in(vec![("$m".into(), message), ("_".into(), say)], again, at);
    let done = kit.b.var("$i", at);
    let step = kit.b.add(Term::If(test, some, done, IfSugar::Plain), at);
    let step = kit.b.abs("$i", None, step, at);
    let step = kit.b.abs("self", None, step, at);
    let fix = kit.fix(bound, step, at);
    let zero = kit.b.lit(Num::from(0), at);
    let all = kit.b.app(fix, zero, at);
    let all = kit.b.abs("$log", None, all, at);
    let say = kit.b.abs("$me", None, all, at);
    kit.b.let_in(vec![("$say".into(), say)], body, at)
}

/// Messages of a group chat at most, as far as its turns bound them.
fn messages(team: &Team, rich: bool) -> Option<u64> {
    let magentic = matches!(team.how, SpeakerSelection::Magentic(_));
    let most = if magentic { magentic::rounds(team) } else { limit(team) };
    let turns = match most.bound {
        Bound::Finite(n) => n,
        Bound::Infinite => match &team.how {
            SpeakerSelection::Graph(graph) => graph_flow::waves(team, graph)?.len() as u64,
            _ => return None,
        },
    };
    let mut each: u64 = 0;
    for member in &team.members {
        let of = match &member.kind {
            MemberKind::Team(inner) => messages(inner, rich)?,
            MemberKind::SocietyOfMind(society) => match &society.team.kind {
                MemberKind::Team(inner) => messages(inner, rich)?,
                _ => 1,
            },
            // A reply may hold any number of calls, which are remembered.
            MemberKind::Assistant(a) if rich && a.calls_several() => return None,
            // Each call with its result, what is said, and a handoff.
            MemberKind::Assistant(a) if rich => match a.bound.bound {
                _ if a.tools.is_empty() => 3,
                Bound::Finite(n) => n.saturating_mul(2).saturating_add(1),
                Bound::Infinite => return None,
            },
            _ => 1,
        };
        each = match team.how {
            // Of a graph, all members may speak in one turn.
            SpeakerSelection::Graph(_) => each.saturating_add(of),
            _ => each.max(of),
        };
    }
    // An orchestrator says what is to be done before each turn.
    each = each.saturating_add(u64::from(magentic));
    Some(turns.saturating_mul(each).saturating_add(1))
}

/// `$say "name" log`, as a binding.
pub(super) fn heard(kit: &mut Kit<'_>, name: &str, log: TermId, at: Span) -> (Name, TermId) {
    let (say, me) = (kit.b.var("$say", at), kit.text(name, at));
    let of = kit.b.app(say, me, at);
    ("_".into(), kit.b.app(of, log, at))
}

/// Parts of a chat's state besides the last message.
pub(super) struct StateFields {
    pub live: bool,
    pub at: bool,
    pub by: bool,
    pub to: bool,
    pub kind: bool,
    pub count: bool,
    pub log: bool,
    pub history: bool,
    /// True if a turn adds more than one message.
    pub many: bool,
    /// True if tool calls are kept.
    pub rich: bool,
}

impl StateFields {
    pub fn of(team: &Team, nested: bool, rich: bool) -> StateFields {
        let many = team.members.iter().any(|m| matches!(m.kind, MemberKind::Team(_)));
        let live = !nested && is_live(team);
        let chosen = matches!(team.how, SpeakerSelection::Selector(_));
        let magentic = matches!(team.how, SpeakerSelection::Magentic(_));
        let mut needs = StateFields {
            live,
            at: !chosen && !magentic && team.members.len() > 1,
            by: chosen,
            to: false,
            kind: false,
            count: (many || magentic || matches!(team.how, SpeakerSelection::Graph(_)))
                && team.ends.as_ref().is_some_and(|e| most_messages(e).is_some()),
            log: !live,
            history: matches!(&team.how, SpeakerSelection::Selector(s) if s.after.is_none()),
            many,
            rich,
        };
        if let Some(ends) = &team.ends {
            needs.look(ends, false);
        }
        needs
    }

    fn look(&mut self, ends: &Termination, all: bool) {
        match ends {
            Termination::Any(list) => list.iter().for_each(|e| self.look(e, all)),
            Termination::All(list) => list.iter().for_each(|e| self.look(e, true)),
            Termination::Messages(..) => self.count |= all,
            Termination::Mention { sources, .. } => self.by |= sources.is_some(),
            Termination::Handoff(..) => self.to = true,
            Termination::Source(..) => self.by = true,
            Termination::TextOf(source, _) => {
                self.kind = true;
                self.by |= source.is_some();
            }
            Termination::Called(..) | Termination::Outside(..) | Termination::Unknown(..) => {}
        }
    }

    /// Returns true if a turn returns a record and not only a text.
    pub fn records(&self, team: &Team) -> bool {
        self.to
            || self.kind
            || self.many
            || self.rich
            || (self.at && matches!(team.how, SpeakerSelection::Swarm))
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

/// The state in which a group chat ends, in which `text` is what was said last.
pub(super) fn group_chat(kit: &mut Kit<'_>, team: &Team, start: Start, nested: bool, rich: bool) -> TermId {
    let at = team.at;
    if team.members.is_empty() {
        let text = kit.undecided(codes::NOT_COMPILED, "a team without members that are known".into(), at);
        let x = kit.b.lit(Data::list(Vec::new()), at);
        return kit.b.add(Term::Record(vec![("text".into(), text), ("log".into(), x)]), at);
    }
    if let SpeakerSelection::Graph(graph) = &team.how {
        return graph_flow::lower(kit, team, graph, start, rich);
    }
    if let SpeakerSelection::Magentic(orchestrator) = &team.how {
        return magentic::lower(kit, team, orchestrator, start, nested, rich);
    }
    let needs = StateFields::of(team, nested, rich);
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
        let chosen = matches!(team.how, SpeakerSelection::Selector(_)) && !twice;
        let tag = if chosen { name.as_str().into() } else { tag(i, team) };
        branches.push(Branch { tag, binder: None, body });
    }
    let next = match &team.how {
        SpeakerSelection::Selector(selector) => {
            let who = selector::next(kit, team, selector);
            // Only members are named; a `case` on a text has to say what else happens.
            let message = kit.text("the next speaker is not a member", at);
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
    let mut bound = bound;
    bound.facts.bounded = Some(GROUP_CHAT_BOUND);
    let fix = kit.fix(bound, step, fix_at);
    let begin = begin(kit, team, &needs, &kept, start);
    let ran = kit.b.app(fix, begin, at);
    if !needs.live {
        return ran;
    }
    let mut said = Vec::new();
    let mut role = Role::User;
    for m in &team.members {
        if let MemberKind::Assistant(a) = &m.kind {
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
fn begin(kit: &mut Kit<'_>, team: &Team, needs: &StateFields, kept: &[Name], start: Start) -> TermId {
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
                let first = entry(kit, &team.opener, said_as(needs.rich), x, at);
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
        let line = selector::line(kit, &team.opener, text, at);
        fields.push(("history".into(), kit.b.add(Term::List(vec![line]), at)));
    }
    for name in kept {
        fields.push((name.clone(), kit.b.lit(Data::Bool(false), at)));
    }
    kit.b.add(Term::Record(fields), at)
}

/// Returns the last message of `$log`.
pub(super) fn last(kit: &mut Kit<'_>, at: Span) -> TermId {
    let (log, of, one) = (kit.b.var("$log", at), kit.b.var("$log", at), kit.b.lit(Num::ONE, at));
    let count = kit.b.add(Term::Prim(Prim::Length, vec![of]), at);
    let index = kit.b.add(Term::Prim(Prim::Sub, vec![count, one]), at);
    let message = kit.b.add(Term::Index(log, index), at);
    kit.b.add(Term::Field(message, "text".into()), at)
}

/// A member's turn, and the group chat from there.
fn member(kit: &mut Kit<'_>, team: &Team, i: usize, needs: &StateFields, kept: &[Name]) -> TermId {
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
    if needs.live && !matches!(m.kind, MemberKind::Assistant(_)) {
        let y = kit.b.var("y", at);
        bindings.push(("_".into(), kit.b.add(Term::Send(Role::User, y), at)));
    }
    let mut fields: Vec<(Name, TermId)> = Vec::new();
    if needs.at {
        let next = match team.how {
            SpeakerSelection::Swarm => part(kit, "at"),
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
        let log = if needs.many || needs.rich {
            part(kit, "log")
        } else {
            let y = kit.b.var("y", at);
            let log = state(kit, "log", at);
            appended(kit, log, &m.name, "", y, at)
        };
        fields.push(("log".into(), log));
    }
    if needs.history {
        let (y, history) = (kit.b.var("y", at), state(kit, "history", at));
        let line = selector::line(kit, &m.name, y, at);
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

/// A log with one more message.
pub(super) fn appended(
    kit: &mut Kit<'_>,
    log: TermId,
    by: &str,
    how: &str,
    text: TermId,
    at: Span,
) -> TermId {
    let more = entry(kit, by, how, text, at);
    kit.b.add(Term::Prim(Prim::Append, vec![log, more]), at)
}

/// Lowers a turn of a member: a text, or a record that contains it.
pub(super) fn speaks(kit: &mut Kit<'_>, team: &Team, i: usize, needs: &StateFields, records: bool) -> TermId {
    let m = &team.members[i];
    let at = m.head;
    let calls = matches!(&m.kind, MemberKind::Assistant(a) if !a.tools.is_empty() || !a.handoffs.is_empty());
    let gives = |kit: &mut Kit<'_>, text: TermId, said: &TurnResult| {
        if !records {
            return text;
        }
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        if needs.at && matches!(team.how, SpeakerSelection::Swarm) {
            let next = match said {
                TurnResult::Handoff(target) => team.members.iter().position(|m| m.name == *target),
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
            let target = if let TurnResult::Handoff(target) = said { target } else { "" };
            fields.push(("to".into(), kit.text(target, at)));
        }
        if needs.kind {
            let kind = match said {
                TurnResult::Text => "text",
                TurnResult::Summary => "summary",
                TurnResult::Handoff(_) => "handoff",
            };
            fields.push(("kind".into(), kit.text(kind, at)));
        }
        if needs.many && needs.count {
            fields.push(("more".into(), kit.b.lit(Num::ONE, at)));
        }
        if needs.many || needs.rich {
            let y = kit.b.var(y, at);
            let mut log = state(kit, "log", at);
            if needs.rich && calls {
                let done = kit.b.var(DONE, at);
                log = kit.b.add(Term::Prim(Prim::Add, vec![log, done]), at);
            }
            let how = match said {
                _ if !needs.rich => "",
                TurnResult::Text => "said",
                TurnResult::Summary | TurnResult::Handoff(_) => "told",
            };
            let log = appended(kit, log, &m.name, how, y, at);
            fields.push(("log".into(), log));
        }
        let record = kit.b.add(Term::Record(fields), at);
        kit.b.let_in(bound.map(|text| ("$y".into(), text)).into_iter().collect(), record, at)
    };
    match &m.kind {
        MemberKind::Assistant(a) => {
            if let SpeakerSelection::Swarm = team.how {
                strangers(kit, team, a);
            }
            let typed = a.result.is_some();
            let remembered = needs.rich.then_some(m.name.as_str());
            let reply = turn(kit, at, a, remembered, &mut |kit, y, said| {
                let text = kit.b.var(y, at);
                let text = match said {
                    TurnResult::Text if typed => kit.b.add(Term::Prim(Prim::ToJson, vec![text]), at),
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
        MemberKind::Outside => {
            let text = state(kit, "text", at);
            let y = frontend_kit::flow::by_tool(kit, &m.name, text, at);
            gives(kit, y, &TurnResult::Text)
        }
        MemberKind::Team(inner) => {
            let s = group_chat(kit, inner, Start::Log, true, needs.rich);
            let log = state(kit, "log", at);
            let before = state(kit, "log", at);
            let mut fields: Vec<(Name, TermId)> = Vec::new();
            let part = |kit: &mut Kit<'_>, field: &str| {
                let s = kit.b.var("$in", at);
                kit.b.add(Term::Field(s, field.into()), at)
            };
            if needs.at && matches!(team.how, SpeakerSelection::Swarm) {
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
        MemberKind::SocietyOfMind(inner) => {
            let y = society_of_mind(kit, m, inner, needs.rich);
            let log = state(kit, "log", at);
            let y = kit.b.let_in(vec![("$log".into(), log)], y, at);
            gives(kit, y, &TurnResult::Text)
        }
        MemberKind::Constant(text) => {
            let y = kit.text(text, at);
            gives(kit, y, &TurnResult::Text)
        }
        MemberKind::Unknown(why) => {
            let y = kit.undecided(codes::NOT_COMPILED, why.clone(), at);
            gives(kit, y, &TurnResult::Text)
        }
    }
}

/// Handoffs to agents outside the group chat.
fn strangers(kit: &mut Kit<'_>, team: &Team, a: &Assistant) {
    for handoff in &a.handoffs {
        let known = team.members.iter().any(|m| m.name == handoff.target);
        if !known && !team.ends.as_ref().is_some_and(|e| ended_by(e, &handoff.target)) {
            let message = format!(
                "`{}` is not a member of this swarm, and no termination condition ends the chat there",
                clip(&handoff.target)
            );
            let help = format!(
                "add it to the members, or end the chat with `HandoffTermination(\"{}\")`",
                clip(&handoff.target)
            );
            kit.out.push(Diagnostic::warn(codes::UNDEFINED, message, handoff.at).help(help));
        }
    }
}

/// Lowers the reply of an agent with a group chat inside. The messages that it received are in `$log`.
pub(super) fn society_of_mind(
    kit: &mut Kit<'_>,
    member: &Member,
    society: &SocietyOfMind,
    rich: bool,
) -> TermId {
    let at = member.head;
    let MemberKind::Team(team) = &society.team.kind else {
        return kit.undecided(codes::NOT_COMPILED, "the group chat inside an agent".into(), at);
    };
    let inner = group_chat(kit, team, Start::Log, true, rich);
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
