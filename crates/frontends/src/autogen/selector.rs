//! A model that names who speaks next.
//!
//! It is told the roles and what was said in one text, and may try again if it names nobody, several, or
//! whoever spoke last; after that, whoever spoke last goes on, or else the first.
//!
//! Source: microsoft/autogen 0.7.5, `autogen_agentchat/teams/_group_chat/_selector_group_chat.py`.

use super::assistant_turn::python_format;
use super::group_chat::state;
use super::model::{Selector, Team, Words};
use core_ir::{Branch, IfSugar, Num, Prim, Recv, Role, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Template, codes};
use frontend_kit::kit::Kit;
use std::sync::Arc;

/// Default selector prompt of AutoGen.
pub(super) const PROMPT: &str = "You are in a role play game. The following roles are available:\n{roles}.\nRead the following conversation. Then select the next role from {participants} to play. Only return the role.\n\n{history}\n\nRead the above conversation. Then select the next role from {participants} to play. Only return the role.\n";

/// A message as it stands in the history: who, what, and an empty line.
pub(super) fn line(kit: &mut Kit<'_>, by: &str, text: TermId, at: Span) -> TermId {
    let mut line = Template::new(at);
    line.text(&format!("{by}: ")).term(text);
    let line = line.build(&mut kit.b);
    let line = kit.b.add(Term::Prim(Prim::Trim, vec![line]), at);
    let mut out = Template::new(at);
    out.term(line).text("\n\n");
    out.build(&mut kit.b)
}

/// Names as Python writes a list of them.
fn listed(names: &[&str]) -> String {
    let quoted = names.iter().map(|n| if n.contains('\'') { format!("\"{n}\"") } else { format!("'{n}'") });
    format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
}

/// The name of the next speaker, from the state.
pub(super) fn next(kit: &mut Kit<'_>, team: &Team, selector: &Selector) -> TermId {
    let at = selector.model_at.unwrap_or(team.at);
    if let Some((why, place)) = &selector.code {
        return kit.undecided(codes::NOT_COMPILED, why.clone(), *place);
    }
    let names: Vec<&str> = team.members.iter().map(|m| m.name.as_str()).collect();
    match (&names[..], selector.repeats) {
        ([only], _) => kit.text(only, at),
        // Of two, the other one: nobody is asked.
        ([first, second], false) => {
            let ask = asked(kit, team, selector, &names, at);
            let first_spoke = spoke(kit, first, at);
            let second_spoke = spoke(kit, second, at);
            let (other, one) = (kit.text(second, at), kit.text(first, at));
            let rest = kit.b.add(Term::If(second_spoke, one, ask, IfSugar::Plain), at);
            kit.b.add(Term::If(first_spoke, other, rest, IfSugar::Plain), at)
        }
        _ => asked(kit, team, selector, &names, at),
    }
}

fn spoke(kit: &mut Kit<'_>, name: &str, at: Span) -> TermId {
    let (by, name) = (state(kit, "by", at), kit.text(name, at));
    kit.b.add(Term::Prim(Prim::Eq, vec![by, name]), at)
}

/// The candidates as text: all, or all but whoever spoke last.
fn candidates(kit: &mut Kit<'_>, selector: &Selector, names: &[&str], at: Span) -> TermId {
    if selector.repeats || names.len() < 3 {
        return kit.text(&listed(names), at);
    }
    let scrutinee = state(kit, "by", at);
    let mut branches = Vec::new();
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            continue;
        }
        let others: Vec<&str> = names.iter().copied().filter(|n| n != name).collect();
        let body = kit.text(&listed(&others), at);
        branches.push(Branch { tag: (*name).into(), binder: None, body });
    }
    let all = kit.text(&listed(names), at);
    kit.b.add(Term::Case { scrutinee, branches, default: Some(all) }, at)
}

fn asked(kit: &mut Kit<'_>, team: &Team, selector: &Selector, names: &[&str], at: Span) -> TermId {
    let roles: Vec<String> = team
        .members
        .iter()
        .map(|m| {
            let line = format!("{}: {}", m.name, m.description.shown());
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect();
    let roles = roles.join("\n");
    let prompt = filled(kit, &selector.prompt, &roles, at);
    let role = if selector.as_system { Role::System } else { Role::User };
    let told = kit.b.add(Term::Send(role, prompt), at);
    let mut said = vec![("_".into(), told)];
    if let Some(after) = &selector.after {
        let log = state(kit, "log", at);
        said.push(super::group_chat::heard(kit, "", log, at));
        let after = filled(kit, after, &roles, at);
        said.push(("_".into(), kit.b.add(Term::Send(role, after), at)));
    }
    let all = candidates(kit, selector, names, at);
    let tries = attempts(kit, selector, names, at);
    let first = kit.text(names.first().unwrap_or(&""), at);
    let fallback = or_first(kit, names, first, at);
    let w = kit.b.var("w", at);
    let ends = vec![
        Branch { tag: "chosen".into(), binder: Some("w".into()), body: w },
        Branch { tag: "again".into(), binder: None, body: fallback },
    ];
    let who = kit.b.add(Term::Case { scrutinee: tries, branches: ends, default: None }, at);
    said.insert(0, ("$names".into(), all));
    let body = kit.b.let_in(said, who, at);
    kit.b.add(Term::Fresh(body), at)
}

/// A prompt with its placeholders filled in.
fn filled(kit: &mut Kit<'_>, words: &Words, roles: &str, at: Span) -> TermId {
    let mut prompt = Template::new(words.at);
    for piece in &words.pieces {
        match piece {
            Err(why) => {
                let hole = kit.unknown(why, words.at);
                prompt.term(hole);
            }
            Ok(text) => {
                for part in python_format(text) {
                    match part.as_ref().map_err(String::as_str) {
                        Ok(text) => {
                            prompt.text(text);
                        }
                        Err("roles") => {
                            prompt.text(roles);
                        }
                        Err("participants" | "agentlist") => {
                            let all = kit.b.var("$names", at);
                            prompt.term(all);
                        }
                        Err("history") => {
                            let (history, by) = (state(kit, "history", at), kit.text("\n", at));
                            let all = kit.b.add(Term::Prim(Prim::Join, vec![history, by]), at);
                            prompt.term(all);
                        }
                        Err(other) => {
                            let hole = kit.unknown(&format!("`{other}` in the selector's prompt"), at);
                            prompt.term(hole);
                        }
                    }
                }
            }
        }
    }
    prompt.build(&mut kit.b)
}

/// The last speaker, or the first member if nobody has spoken.
fn or_first(kit: &mut Kit<'_>, names: &[&str], first: TermId, at: Span) -> TermId {
    let known =
        kit.b.lit(core_ir::Data::list(names.iter().map(|n| core_ir::Data::str(*n)).collect::<Vec<_>>()), at);
    let (by, last) = (state(kit, "by", at), state(kit, "by", at));
    let test = kit.b.add(Term::Prim(Prim::Contains, vec![known, by]), at);
    kit.b.add(Term::If(test, last, first, IfSugar::Plain), at)
}

fn attempts(kit: &mut Kit<'_>, selector: &Selector, names: &[&str], at: Span) -> TermId {
    let mut params = selector.params.clone();
    params.purpose = Some("selector".into());
    let reply = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
    let mut named: Option<TermId> = None;
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            continue;
        }
        let test = mentions(kit, name, names, at);
        let yes = kit.text(name, at);
        let (yes, no) = (kit.b.add(Term::List(vec![yes]), at), kit.b.add(Term::List(Vec::new()), at));
        let this = kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at);
        named = Some(match named {
            None => this,
            Some(before) => kit.b.add(Term::Prim(Prim::Add, vec![before, this]), at),
        });
    }
    let named = named.unwrap_or_else(|| kit.b.add(Term::List(Vec::new()), at));
    let count = |kit: &mut Kit<'_>| {
        let n = kit.b.var("$named", at);
        kit.b.add(Term::Prim(Prim::Length, vec![n]), at)
    };
    let one = |kit: &mut Kit<'_>| {
        let (n, zero) = (kit.b.var("$named", at), kit.b.lit(Num::from(0), at));
        kit.b.add(Term::Index(n, zero), at)
    };
    let again = |kit: &mut Kit<'_>, before: &str, after: &str| {
        let mut text = Template::new(at);
        let all = kit.b.var("$names", at);
        text.text(before).term(all).text(after);
        let text = text.build(&mut kit.b);
        let told = kit.b.add(Term::Send(Role::User, text), at);
        let this = kit.b.var("self", at);
        let tag = kit.b.add(Term::Tag("again".into(), None), at);
        let next = kit.b.app(this, tag, at);
        kit.b.let_in(vec![("_".into(), told)], next, at)
    };
    let chosen = one(kit);
    let chosen = kit.b.add(Term::Tag("chosen".into(), Some(chosen)), at);
    let chosen = if selector.repeats {
        chosen
    } else {
        let (by, who) = (state(kit, "by", at), one(kit));
        let same = kit.b.add(Term::Prim(Prim::Eq, vec![by, who]), at);
        let refused =
            again(kit, "Repeated speaker is not allowed, please select a different name from: ", ".");
        kit.b.add(Term::If(same, refused, chosen, IfSugar::Plain), at)
    };
    let nobody = again(kit, "No valid name was mentioned. Please select from: ", ".");
    let several = again(kit, "Expected exactly one name to be mentioned. Please select only one from: ", ".");
    let (n, zero) = (count(kit), kit.b.lit(Num::from(0), at));
    let none = kit.b.add(Term::Prim(Prim::Eq, vec![n, zero]), at);
    let wrong = kit.b.add(Term::If(none, nobody, several, IfSugar::Plain), at);
    let (n, single) = (count(kit), kit.b.lit(Num::ONE, at));
    let is_one = kit.b.add(Term::Prim(Prim::Eq, vec![n, single]), at);
    let step = kit.b.add(Term::If(is_one, chosen, wrong, IfSugar::Plain), at);
    let step = kit.b.let_in(vec![("y".into(), reply), ("$named".into(), named)], step, at);
    let step = kit.b.abs("$r", None, step, at);
    let step = kit.b.abs("self", None, step, at);
    // How often AutoGen tries is its own business, unless the program says it.
    let bound = &selector.attempts;
    let origin = bound.origin.clone().filter(|_| bound.span.is_some());
    let fix_at = bound.span.unwrap_or(at);
    let fix = kit.fix(LoopBound { origin, ..bound.clone() }, step, fix_at);
    let begin = kit.b.add(Term::Tag("again".into(), None), at);
    kit.b.app(fix, begin, at)
}

/// Tests whether the reply in `y` names a member. Longer names that contain the name don't count.
fn mentions(kit: &mut Kit<'_>, name: &str, names: &[&str], at: Span) -> TermId {
    let mut text = kit.b.var("y", at);
    for longer in names.iter().filter(|n| **n != name && n.contains(name)) {
        let (longer, nothing) = (kit.text(longer, at), kit.text("", at));
        let parts = kit.b.add(Term::Prim(Prim::Split, vec![text, longer]), at);
        text = kit.b.add(Term::Prim(Prim::Join, vec![parts, nothing]), at);
    }
    let name = kit.text(name, at);
    kit.b.add(Term::Prim(Prim::Contains, vec![text, name]), at)
}
