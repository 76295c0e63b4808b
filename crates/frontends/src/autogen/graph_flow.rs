//! Group chats along the edges of a graph.
//!
//! | source | term |
//! |---|---|
//! | edges without conditions, no cycle, nothing that ends the group chat early | one step after another; `par` where several members are ready at once |
//! | otherwise | a loop; its state says who is ready, and how many edges are missing where all must be taken |
//!
//! A turn of the loop is what AutoGen runs at once: everyone who is ready. Everyone hears what was said in
//! the turns before.
//!
//! Source: microsoft/autogen 0.7.5, `autogen_agentchat/teams/_group_chat/_graph/_digraph_group_chat.py`.

use super::GROUP_CHAT_BOUND;
use super::assistant_turn::turn;
use super::group_chat::{self, Start, appended, entry, heard, said_as, state};
use super::model::{Graph, GraphEdge, MemberKind, Team, Termination, When};
use super::termination::{holds, limit};
use core_ir::{Bound, Data, IfSugar, Name, Num, Prim, Term, TermId};
use diagnostics::{Diagnostic, Span};
use frontend_kit::emit::{clip, codes};
use frontend_kit::kit::Kit;
use frontend_kit::outline::{GraphOutline, NodeOutline, NodeRole};
use std::collections::BTreeMap;

/// The edges between members, by their numbers.
struct Edges<'g> {
    all: Vec<(usize, usize, &'g GraphEdge)>,
    starts: Vec<usize>,
}

fn edges<'g>(team: &Team, graph: &'g Graph) -> Edges<'g> {
    let index = |name: &str| team.members.iter().position(|m| m.name == name);
    let all: Vec<_> = graph.edges.iter().filter_map(|e| Some((index(&e.from)?, index(&e.to)?, e))).collect();
    let starts = match graph.start.as_deref().and_then(index) {
        Some(start) => vec![start],
        None => (0..team.members.len()).filter(|n| all.iter().all(|(_, to, _)| to != n)).collect(),
    };
    Edges { all, starts }
}

/// The speakers of each turn, if the graph alone determines them.
pub(super) fn waves(team: &Team, graph: &Graph) -> Option<Vec<Vec<usize>>> {
    let Edges { all, starts } = edges(team, graph);
    let plain = |e: &GraphEdge| matches!(e.when, When::Always) && !e.any && e.group == e.to;
    if starts.is_empty() || !all.iter().all(|(_, _, e)| plain(e)) {
        return None;
    }
    let mut left: Vec<usize> = vec![0; team.members.len()];
    for (_, to, _) in &all {
        left[*to] += 1;
    }
    let mut out = Vec::new();
    let mut ready = starts;
    let mut ran = 0;
    while !ready.is_empty() {
        ran += ready.len();
        // In a cycle somebody would speak again.
        if ran > team.members.len() {
            return None;
        }
        let mut next = Vec::new();
        for node in &ready {
            for (_, to, _) in all.iter().filter(|(from, ..)| from == node) {
                left[*to] = left[*to].checked_sub(1)?;
                if left[*to] == 0 {
                    next.push(*to);
                }
            }
        }
        out.push(std::mem::replace(&mut ready, next));
    }
    let enough = match limit(team).bound {
        Bound::Finite(n) => n >= out.len() as u64,
        Bound::Infinite => true,
    };
    let early =
        team.ends.as_ref().is_some_and(|e| !matches!(e, Termination::Messages(n, _) if *n > ran as u64));
    (enough && !early).then_some(out)
}

/// The state in which the group chat ends.
pub(super) fn lower(kit: &mut Kit<'_>, team: &Team, graph: &Graph, start: Start, rich: bool) -> TermId {
    let at = team.at;
    let Edges { all, starts } = edges(team, graph);
    for e in &graph.edges {
        for name in [&e.from, &e.to] {
            if team.members.iter().all(|m| m.name != *name) {
                let message = format!("`{}` is not a member of this graph", clip(name));
                kit.out.push(Diagnostic::error(codes::UNDEFINED, message, e.at));
            }
        }
    }
    let Some(first) = starts.first() else {
        let text = kit.undecided(codes::NOT_COMPILED, "a graph without a member to begin with".into(), at);
        let log = kit.b.lit(Data::list(Vec::new()), at);
        return kit.b.add(Term::Record(vec![("text".into(), text), ("log".into(), log)]), at);
    };
    let nodes = team.members.iter().map(|m| NodeOutline {
        name: m.name.clone(),
        at: m.head,
        outcomes: None,
        role: NodeRole::Plain,
    });
    // Each member to begin with is reached from the first, as far as pictures and rules go.
    let begun = starts.iter().skip(1).map(|s| (*first, *s, None));
    let drawn = all.iter().map(|(from, to, e)| {
        let when = match &e.when {
            When::Always => None,
            When::Contains(text) => Some(text.clone()),
            When::NotContains(text) => Some(format!("not {text}")),
            When::Unknown(why) => Some(why.clone()),
        };
        (*from, *to, when)
    });
    let placed = all.iter().map(|(_, _, e)| Some(e.at)).chain(starts.iter().skip(1).map(|_| None)).collect();
    kit.outline.graph(GraphOutline {
        at,
        nodes: nodes.collect(),
        edges: drawn.chain(begun).collect(),
        placed,
        start: *first,
        open: false,
        stops: false,
        dead: Vec::new(),
    });
    let log = match start {
        Start::Log => kit.b.var("$log", at),
        Start::Task => {
            let x = kit.b.var("x", at);
            let first = entry(kit, "user", said_as(rich), x, at);
            kit.b.add(Term::List(vec![first]), at)
        }
    };
    let text = match start {
        Start::Log => group_chat::last(kit, at),
        Start::Task => kit.b.var("x", at),
    };
    let begin = vec![(Name::from("text"), text), (Name::from("log"), log)];
    match waves(team, graph) {
        Some(waves) => steps(kit, team, &waves, begin, rich),
        None => machine(kit, team, &all, &starts, begin, rich),
    }
}

/// Lowers a turn of a member with its own conversation. The state is `$s`.
fn speaks(kit: &mut Kit<'_>, team: &Team, i: usize, rich: bool) -> TermId {
    let m = &team.members[i];
    let at = m.head;
    if let Err(unknown) = group_chat::open(kit, m) {
        return unknown;
    }
    let said = match &m.kind {
        MemberKind::Assistant(a) => {
            let typed = a.result.is_some();
            let reply = turn(kit, at, a, None, &mut |kit, y, said| {
                let text = kit.b.var(y, at);
                match said {
                    group_chat::TurnResult::Text if typed => {
                        kit.b.add(Term::Prim(Prim::ToJson, vec![text]), at)
                    }
                    _ => text,
                }
            });
            let mut said = group_chat::system(kit, a, at);
            let log = state(kit, "log", at);
            said.push(heard(kit, &m.name, log, at));
            let body = kit.b.let_in(said, reply, at);
            kit.b.add(Term::Fresh(body), at)
        }
        MemberKind::Outside => {
            let text = state(kit, "text", at);
            frontend_kit::flow::by_tool(kit, &m.name, text, at)
        }
        MemberKind::SocietyOfMind(inner) => {
            let y = group_chat::society_of_mind(kit, m, inner, rich);
            let log = state(kit, "log", at);
            kit.b.let_in(vec![("$log".into(), log)], y, at)
        }
        // What is said inside is not heard outside: only the last of it.
        MemberKind::Team(inner) => {
            let s = group_chat::group_chat(kit, inner, Start::Log, true, rich);
            let log = state(kit, "log", at);
            let in_ = kit.b.let_in(vec![("$log".into(), log)], s, at);
            kit.b.add(Term::Field(in_, "text".into()), at)
        }
        MemberKind::Constant(text) => kit.text(text, at),
        MemberKind::Unknown(why) => kit.undecided(codes::NOT_COMPILED, why.clone(), at),
    };
    kit.close();
    said
}

/// One of the answers of a turn: `$all.[i]`.
fn answer(kit: &mut Kit<'_>, i: usize, at: Span) -> TermId {
    let (all, i) = (kit.b.var("$all", at), kit.b.lit(Num::from(i as i64), at));
    kit.b.add(Term::Index(all, i), at)
}

fn steps(
    kit: &mut Kit<'_>,
    team: &Team,
    waves: &[Vec<usize>],
    begin: Vec<(Name, TermId)>,
    rich: bool,
) -> TermId {
    let at = team.at;
    let mut bindings: Vec<(Name, TermId)> = vec![("$s".into(), kit.b.add(Term::Record(begin), at))];
    for wave in waves {
        let mut log = state(kit, "log", at);
        let text = if let [one] = wave[..] {
            let said = speaks(kit, team, one, rich);
            bindings.push(("y".into(), said));
            let y = kit.b.var("y", at);
            log = appended(kit, log, &team.members[one].name, said_as(rich), y, at);
            kit.b.var("y", at)
        } else {
            let sides = wave.iter().map(|i| speaks(kit, team, *i, rich)).collect();
            bindings.push(("$all".into(), kit.b.add(Term::Par(None, sides), at)));
            for (k, i) in wave.iter().enumerate() {
                let y = answer(kit, k, at);
                log = appended(kit, log, &team.members[*i].name, said_as(rich), y, at);
            }
            answer(kit, wave.len() - 1, at)
        };
        let next = kit.b.add(Term::Record(vec![("text".into(), text), ("log".into(), log)]), at);
        bindings.push(("$s".into(), next));
    }
    let s = kit.b.var("$s", at);
    kit.b.let_in(bindings, s, at)
}

/// The field that says whether a member is ready.
fn ready(i: usize) -> Name {
    format!("go{}", i + 1).into()
}

/// Groups of edges to one member: the edges, and whether one is enough.
type Groups<'g> = BTreeMap<(usize, &'g str), (Vec<(usize, &'g GraphEdge)>, bool)>;

fn machine(
    kit: &mut Kit<'_>,
    team: &Team,
    all: &[(usize, usize, &GraphEdge)],
    starts: &[usize],
    mut begin: Vec<(Name, TermId)>,
    rich: bool,
) -> TermId {
    let at = team.at;
    let count = team.members.len();
    let mut groups: Groups<'_> = BTreeMap::new();
    for (from, to, e) in all {
        let group = groups.entry((*to, e.group.as_str())).or_insert_with(|| (Vec::new(), e.any));
        group.0.push((*from, e));
    }
    for i in 0..count {
        begin.push((ready(i), kit.b.lit(Data::Bool(starts.contains(&i)), at)));
    }
    // Where several edges must be taken, how many are missing.
    let waits: Vec<(usize, String)> = groups
        .iter()
        .filter(|(_, (edges, any))| !any && edges.len() > 1)
        .map(|((to, group), _)| (*to, (*group).to_string()))
        .collect();
    let missing = |to: usize, group: &str| {
        waits.iter().position(|(t, g)| *t == to && g == group).map(|n| Name::from(format!("left{}", n + 1)))
    };
    for ((to, group), (edges, _)) in &groups {
        if let Some(name) = missing(*to, group) {
            begin.push((name, kit.b.lit(Num::from(edges.len() as i64), at)));
        }
    }
    let (needs, mut latches) = (group_chat::StateFields::of(team, true, rich), Vec::new());
    let end = team.ends.as_ref().and_then(|e| holds(kit, e, &needs, &mut latches));
    for (name, _) in &latches {
        begin.push((name.clone(), kit.b.lit(Data::Bool(false), at)));
    }
    for (needed, field, value) in
        [(needs.by, "by", "user"), (needs.to, "to", ""), (needs.kind, "kind", "text")]
    {
        if needed {
            begin.push((field.into(), kit.text(value, at)));
        }
    }
    if needs.count {
        begin.push(("count".into(), kit.b.lit(Num::ONE, at)));
    }
    // Who is ready speaks.
    let mut sides = Vec::new();
    for i in 0..count {
        let at = team.members[i].head;
        let (go, nothing) = (state(kit, &ready(i), at), kit.text("", at));
        let said = speaks(kit, team, i, rich);
        sides.push(kit.b.add(Term::If(go, said, nothing, IfSugar::Plain), at));
    }
    let mut bindings: Vec<(Name, TermId)> = vec![("$all".into(), kit.b.add(Term::Par(None, sides), at))];
    let mut fields: Vec<(Name, TermId)> = Vec::new();
    let (mut log, mut text, mut by) = (state(kit, "log", at), state(kit, "text", at), kit.text("user", at));
    let mut spoken = state_count(kit, &needs, at);
    for i in 0..count {
        let name = &team.members[i].name;
        let y = answer(kit, i, at);
        let more = entry(kit, name, said_as(rich), y, at);
        let (go, some, none) = (
            state(kit, &ready(i), at),
            kit.b.add(Term::List(vec![more]), at),
            kit.b.add(Term::List(Vec::new()), at),
        );
        let more = kit.b.add(Term::If(go, some, none, IfSugar::Plain), at);
        log = kit.b.add(Term::Prim(Prim::Add, vec![log, more]), at);
        let (go, y) = (state(kit, &ready(i), at), answer(kit, i, at));
        text = kit.b.add(Term::If(go, y, text, IfSugar::Plain), at);
        if needs.by {
            let (go, name) = (state(kit, &ready(i), at), kit.text(name, at));
            by = kit.b.add(Term::If(go, name, by, IfSugar::Plain), at);
        }
        if let Some(count) = spoken {
            let (go, one, zero) =
                (state(kit, &ready(i), at), kit.b.lit(Num::ONE, at), kit.b.lit(Num::from(0), at));
            let more = kit.b.add(Term::If(go, one, zero, IfSugar::Plain), at);
            spoken = Some(kit.b.add(Term::Prim(Prim::Add, vec![count, more]), at));
        }
    }
    fields.push(("text".into(), text));
    fields.push(("log".into(), log));
    // Whether each group of edges is satisfied now, and what it still waits for.
    let mut next: Vec<Option<TermId>> = vec![None; count];
    for ((to, group), (edges, _)) in &groups {
        let satisfied = match missing(*to, group) {
            None => {
                let mut any: Option<TermId> = None;
                for (from, e) in edges {
                    let taken = taken(kit, *from, e);
                    any = Some(or(kit, any, taken));
                }
                any
            }
            Some(field) => {
                let mut left = state(kit, &field, at);
                for (from, e) in edges {
                    let taken = taken(kit, *from, e);
                    let (one, zero) = (kit.b.lit(Num::ONE, at), kit.b.lit(Num::from(0), at));
                    let one = kit.b.add(Term::If(taken, one, zero, IfSugar::Plain), at);
                    left = kit.b.add(Term::Prim(Prim::Sub, vec![left, one]), at);
                }
                let name = Name::from(format!("${field}"));
                bindings.push((name.clone(), left));
                let (left, zero) = (kit.b.var(name.clone(), at), kit.b.lit(Num::from(0), at));
                let done = kit.b.add(Term::Prim(Prim::Eq, vec![left, zero]), at);
                let (full, left) =
                    (kit.b.lit(Num::from(edges.len() as i64), at), kit.b.var(name.clone(), at));
                let again = kit.b.add(Term::If(done, full, left, IfSugar::Plain), at);
                fields.push((field, again));
                let (left, zero) = (kit.b.var(name, at), kit.b.lit(Num::from(0), at));
                Some(kit.b.add(Term::Prim(Prim::Eq, vec![left, zero]), at))
            }
        };
        next[*to] = match (next[*to], satisfied) {
            (before, Some(now)) => Some(or(kit, before, now)),
            (before, None) => before,
        };
    }
    for (i, go) in next.into_iter().enumerate() {
        let go = go.unwrap_or_else(|| kit.b.lit(Data::Bool(false), at));
        fields.push((ready(i), go));
    }
    for (name, _) in &latches {
        fields.push((name.clone(), kit.b.var(name.clone(), at)));
    }
    if needs.by {
        fields.push(("by".into(), by));
    }
    for (needed, field, value) in [(needs.to, "to", ""), (needs.kind, "kind", "text")] {
        if needed {
            fields.push((field.into(), kit.text(value, at)));
        }
    }
    if let Some(count) = spoken {
        fields.push(("count".into(), count));
    }
    let next = kit.b.add(Term::Record(fields), at);
    let this = kit.b.var("self", at);
    let again = kit.b.app(this, next, at);
    let turn = kit.b.let_in(bindings, again, at);
    let mut anyone: Option<TermId> = None;
    for i in 0..count {
        let go = state(kit, &ready(i), at);
        anyone = Some(or(kit, anyone, go));
    }
    let anyone = anyone.unwrap_or_else(|| kit.b.lit(Data::Bool(false), at));
    let goes_on = match end {
        None => anyone,
        Some(end) => {
            let on = kit.b.add(Term::Prim(Prim::Not, vec![end]), at);
            let no = kit.b.lit(Data::Bool(false), at);
            kit.b.add(Term::If(anyone, on, no, IfSugar::And), at)
        }
    };
    let s = kit.b.var("$s", at);
    let step = kit.b.add(Term::If(goes_on, turn, s, IfSugar::Plain), at);
    let step = if latches.is_empty() { step } else { kit.b.let_in(latches, step, at) };
    let step = kit.b.abs("$s", None, step, at);
    let step = kit.b.abs("self", None, step, at);
    let mut bound = limit(team);
    bound.facts.bounded = Some(GROUP_CHAT_BOUND);
    let fix_at = bound.span.unwrap_or(at);
    let fix = kit.fix(bound, step, fix_at);
    let begin = kit.b.add(Term::Record(begin), at);
    kit.b.app(fix, begin, at)
}

fn state_count(kit: &mut Kit<'_>, needs: &group_chat::StateFields, at: Span) -> Option<TermId> {
    needs.count.then(|| state(kit, "count", at))
}

fn or(kit: &mut Kit<'_>, a: Option<TermId>, b: TermId) -> TermId {
    let Some(a) = a else { return b };
    let at = kit.b.span(b);
    let yes = kit.b.lit(Data::Bool(true), at);
    kit.b.add(Term::If(a, yes, b, IfSugar::Or), at)
}

/// Tests whether an edge is taken: its source spoke, and its condition holds for the message.
fn taken(kit: &mut Kit<'_>, from: usize, e: &GraphEdge) -> TermId {
    let go = state(kit, &ready(from), e.at);
    let test = match &e.when {
        When::Always => return go,
        When::Contains(text) => {
            let (y, text) = (answer(kit, from, e.at), kit.text(text, e.at));
            kit.b.add(Term::Prim(Prim::Contains, vec![y, text]), e.at)
        }
        When::NotContains(text) => {
            let (y, text) = (answer(kit, from, e.at), kit.text(text, e.at));
            let says = kit.b.add(Term::Prim(Prim::Contains, vec![y, text]), e.at);
            kit.b.add(Term::Prim(Prim::Not, vec![says]), e.at)
        }
        When::Unknown(why) => kit.undecided(codes::NOT_COMPILED, why.clone(), e.at),
    };
    let no = kit.b.lit(Data::Bool(false), e.at);
    kit.b.add(Term::If(go, test, no, IfSugar::And), e.at)
}
