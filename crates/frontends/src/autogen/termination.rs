//! Termination of a group chat: bounds on turns, and tests of the state.
//!
//! Source: microsoft/autogen 0.7.5, `autogen_agentchat/conditions`, `autogen_agentchat/base/_termination.py`.

use super::group_chat::{StateFields, state};
use super::model::{Place, Team, Termination};
use core_ir::{Bound, BoundOrigin, Data, IfSugar, Name, Num, Prim, Term, TermId};
use diagnostics::{Diagnostic, Span};
use frontend_kit::emit::{LoopBound, clip, codes};
use frontend_kit::kit::Kit;

/// The most turns: what the team says, or the messages that end it.
pub(super) fn limit(team: &Team) -> LoopBound {
    let said = team.ends.as_ref().and_then(most_messages);
    let own = &team.bound;
    match (own.bound, said) {
        (Bound::Finite(n), Some((m, at))) if m.saturating_sub(1) < n => {
            LoopBound::written(Bound::Finite(m.saturating_sub(1)), Some(at))
        }
        // The task is a message, too.
        (Bound::Infinite, Some((m, at))) => LoopBound::written(Bound::Finite(m.saturating_sub(1)), Some(at)),
        (Bound::Infinite, None)
            if own.origin.as_ref().is_some_and(|o| matches!(o, BoundOrigin::Unlimited(_))) =>
        {
            match team.ends.as_ref().and_then(ended_outside) {
                Some((why, at)) => LoopBound { span: Some(at), ..LoopBound::unknown(&why) },
                None => own.clone(),
            }
        }
        _ => own.clone(),
    }
}

/// The messages after which a group chat ends whatever they say.
pub(super) fn most_messages(ends: &Termination) -> Option<(u64, Span)> {
    match ends {
        Termination::Messages(n, at) => Some((*n, *at)),
        Termination::Any(list) => list.iter().filter_map(most_messages).min_by_key(|(n, _)| *n),
        _ => None,
    }
}

/// Returns the reason and the place of an end that is decided outside the chat.
fn ended_outside(ends: &Termination) -> Option<(String, Span)> {
    match ends {
        Termination::Outside(why, at) => Some((why.clone(), *at)),
        Termination::Any(list) => list.iter().find_map(ended_outside),
        _ => None,
    }
}

/// Lowers a termination condition as a test of the state. `None` if it never holds. Variables that *and*
/// needs are bound before.
pub(super) fn holds(
    kit: &mut Kit<'_>,
    ends: &Termination,
    needs: &StateFields,
    latches: &mut Vec<(Name, TermId)>,
) -> Option<TermId> {
    match ends {
        Termination::Any(list) => {
            let mut test = None;
            for e in list {
                let this = holds(kit, e, needs, latches);
                test = or(kit, test, this);
            }
            test
        }
        Termination::All(list) => {
            let mut all: Option<TermId> = None;
            for e in list {
                let (held, at) = match e {
                    Termination::Messages(n, at) => (counted(kit, *n, *at), *at),
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
        Termination::Messages(n, at) => needs.count.then(|| counted(kit, *n, *at)),
        Termination::Mention { text, sources, place, at } => {
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
        Termination::Handoff(target, at) => Some(equals(kit, "to", target, *at)),
        Termination::Source(names, at) => Some(spoken_by(kit, names, *at)),
        Termination::TextOf(source, at) => {
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
        Termination::Called(tool, at) => {
            Some(kit.undecided(codes::NOT_COMPILED, format!("whether `{}` was called", clip(tool)), *at))
        }
        Termination::Outside(why, at) => {
            let message = format!("the termination by {} is left out", clip(why));
            kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, *at));
            None
        }
        Termination::Unknown(why, at) => Some(kit.undecided(codes::NOT_COMPILED, why.clone(), *at)),
    }
}

/// Tests whether the last message contains a text.
fn mention(kit: &mut Kit<'_>, text: &str, place: Place, at: Span) -> TermId {
    let said = state(kit, "text", at);
    holds_text(kit, said, text, place, at)
}

/// Tests whether a text contains another one.
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

pub(super) fn equals(kit: &mut Kit<'_>, field: &str, text: &str, at: Span) -> TermId {
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

/// Returns true if a handoff to `target` may end the group chat.
pub(super) fn ended_by(ends: &Termination, target: &str) -> bool {
    match ends {
        Termination::Any(list) | Termination::All(list) => list.iter().any(|e| ended_by(e, target)),
        Termination::Handoff(to, _) => to == target,
        Termination::Unknown(..) => true,
        _ => false,
    }
}
