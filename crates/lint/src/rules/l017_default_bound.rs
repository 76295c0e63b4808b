//! L017: a bound that the source does not state.

use crate::decision::{Decision, decision};
use crate::repair::wish;
use crate::rules::l021_unbounded_group::is_talk;
use crate::rules::l023_unreachable_end::never_ends;
use crate::{Check, Context, Rule, below};
use core_ir::{Bound, BoundOrigin, Code, Term, TermId};
use diagnostics::{Applicability, Diagnostic, Level};
use frontend_kit::Ends;

pub(super) static RULE: Rule = Rule {
    code: "L017",
    name: "default-bound",
    level: Level::Warn,
    meaning: "n of `fix[n]` is not in the source, so what the loop may cost changes with the framework's version",
    docs: include_str!("../../../../docs/rules/L017-default-bound.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    // A loop that nothing ends, not even a default, is L004a's and L021's.
    // A graph that goes round for ever is L023's.
    let graph = context.unit.outline.graphs.iter().any(never_ends);
    for l in context.loops().iter().filter(|l| l.bound != Bound::Infinite || !l.is_endless()) {
        let Some(origin) = &l.origin else { continue };
        if graph && l.bound == Bound::Infinite {
            continue;
        }
        let Term::Fix { body, .. } = code.term(l.fix) else { continue };
        let decided = decision(code, *body);
        if !decided.again {
            continue;
        }
        let supplied = l.bound != Bound::Infinite && matches!(origin, BoundOrigin::Fallback(_));
        let message = match origin {
            BoundOrigin::Unlimited(why) => format!("this loop has no limit: {why}"),
            _ if supplied => format!("the bound of this loop is {origin}"),
            _ => format!("the bound of this loop is not stated: it is {origin}"),
        };
        let mut d = rule.finding(message, code.span(l.fix));
        if let (Bound::Finite(_), Some(most)) = (l.bound, context.cost().model_calls.most) {
            d = d.label(format!("a run may call models up to {most} times"));
        }
        // One round of tool calls and the answer is no loop to worry about.
        if matches!(l.bound, Bound::Finite(0..=2)) {
            d.level = Level::Info;
        }
        // A bound that someone sets at run time is neither missing nor known.
        if l.bound == Bound::Infinite && !matches!(origin, BoundOrigin::Unlimited(_)) {
            if !asks(code, l.fix) {
                continue;
            }
            d.level = Level::Unknown;
        }
        let words = context.compiled.facts.words;
        let retries = !words.retries.is_empty() && matches!(origin, BoundOrigin::Retries(_));
        let at = code.span(l.fix);
        let elsewhere = context.unit.outline.bounded.iter().find(|(loop_at, _)| *loop_at == at);
        let here = !retries && !supplied && elsewhere.is_none();
        // What holds anyway is stated: nothing changes until the framework does.
        if let (Bound::Finite(n), Some(_), Some(at), true) = (l.bound, words.stated, d.span, here) {
            d.fix = Some(wish(at, &n.to_string(), Applicability::Safe));
        }
        let timed = context.unit.outline.timed.contains(&at);
        let ends = context.unit.outline.ends.iter().find(|(loop_at, _)| *loop_at == at).map(|(_, how)| *how);
        // A graph's own loop is in no other one.
        let whole =
            || context.loops().iter().all(|o| o.fix == l.fix || !below(code, o.fix).any(|id| id == l.fix));
        let stopped = !context.unit.outline.stopped.is_empty() && whole();
        let people = !context.unit.outline.people.is_empty() && is_talk(context, l);
        let (most, why) = match decided {
            _ if people => (Level::Info, "a person takes part in each round"),
            _ if timed => (Level::Info, "its time is limited"),
            _ if ends == Some(Ends::AtOnce) => {
                (Level::Info, "the provider carries out its tools within one turn")
            }
            _ if stopped => (Level::Info, "a run stops in each round, and a person resumes it"),
            _ if supplied => {
                (Level::Info, "the source says what holds unless the environment says otherwise")
            }
            _ if retries => (Level::Info, "it continues only while its results are refused"),
            _ if context.unit.outline.scripted => {
                (Level::Info, "the replies of its model are constants of the code")
            }
            _ if ends == Some(Ends::ByCode) => {
                (Level::Unknown, "code decides after each call whether there is another turn")
            }
            Decision { counted: true, .. } => (Level::Info, "a counter in the state seems to end it"),
            Decision { unknown: true, .. } => {
                (Level::Unknown, "the condition that continues the loop is not known")
            }
            Decision { person: true, .. } => (Level::Unknown, "a person may be asked in each round"),
            _ => (Level::Error, ""),
        };
        if d.level > most {
            d.level = most;
            d.help.push(why.to_string());
        }
        let circle = l.bound == Bound::Infinite && !words.round.is_empty();
        let help = match elsewhere {
            _ if retries => words.retries,
            _ if supplied => "",
            Some((_, how)) => how,
            None if circle => words.round,
            None => words.bound,
        };
        out.push(if help.is_empty() { d } else { d.help(help) });
    }
}

/// Returns true if a loop itself asks a model, calls a tool or has unknown parts. A loop that only repeats
/// earlier values costs nothing.
fn asks(code: &Code, root: TermId) -> bool {
    below(code, root)
        .any(|id| matches!(code.term(id), Term::Llm(..) | Term::Recv(_) | Term::Tool(_) | Term::Unknown(_)))
}
