//! L017: a bound that the source does not state.

use crate::decision::{Decision, decision};
use crate::paths::Loop;
use crate::repair::wish;
use crate::rules::l021_unbounded_group::is_group_chat;
use crate::rules::l023_unreachable_end::never_ends;
use crate::{Check, Context, Rule, below};
use core_ir::{Bound, BoundOrigin, Code, Term, TermId};
use diagnostics::{Applicability, Diagnostic, Level};
use frontend_kit::{Ends, LoopFacts};

pub(super) static RULE: Rule = Rule {
    code: "L017",
    name: "default-bound",
    level: Level::Warn,
    meaning: "n of `fix[n]` is not in the source, so what the loop may cost changes with the framework's version",
    docs: page!("../../../../docs/rules/L017-default-bound.md"),
    check: Check::Term(check),
};

/// A loop whose bound the source does not state, with the facts that may excuse it.
struct Case<'a> {
    context: &'a Context<'a>,
    loop_: &'a Loop,
    origin: &'a BoundOrigin,
    decided: Decision,
    facts: LoopFacts,
}

impl Case<'_> {
    fn is_unbounded(&self) -> bool {
        self.loop_.bound == Bound::Infinite
    }

    /// Returns true if the source gives a bound for the case that the environment gives none.
    fn is_supplied(&self) -> bool {
        !self.is_unbounded() && matches!(self.origin, BoundOrigin::Fallback(_))
    }

    /// Returns true if the framework has a setting of its own for how often results are refused.
    fn is_retry(&self) -> bool {
        !self.context.compiled.facts.words.retries.is_empty()
            && matches!(self.origin, BoundOrigin::Retries(_))
    }

    /// Returns true if a framework supplies the bound, and it is not large.
    fn is_small(&self) -> bool {
        let supplied = matches!(self.origin, BoundOrigin::Default(_) | BoundOrigin::Retries(_));
        supplied
            && matches!(self.loop_.bound, Bound::Finite(n) if n <= self.context.config.most_default_rounds)
    }

    fn has_people(&self) -> bool {
        !self.context.unit.outline.people.is_empty() && is_group_chat(self.context, self.loop_)
    }
}

/// A reason to take a loop less hard.
struct Excuse {
    holds: fn(&Case<'_>) -> bool,
    /// The highest level that a finding has then.
    most: Level,
    reason: &'static str,
}

impl Excuse {
    const fn info(reason: &'static str, holds: fn(&Case<'_>) -> bool) -> Excuse {
        Excuse { holds, most: Level::Info, reason }
    }

    const fn unknown(reason: &'static str, holds: fn(&Case<'_>) -> bool) -> Excuse {
        Excuse { holds, most: Level::Unknown, reason }
    }
}

/// The first that holds counts. The rule's page lists them.
const EXCUSES: &[Excuse] = &[
    Excuse::info("a person takes part in each round", |c| c.has_people()),
    Excuse::info("its time is limited", |c| c.facts.timed),
    Excuse::info("no setting of the program bounds it", |c| c.facts.unsettable),
    Excuse::info("the provider carries out its tools within one turn", |c| {
        c.facts.ends == Some(Ends::AtOnce)
    }),
    Excuse::info("a run stops in each round, and a person resumes it", |c| c.facts.stopped),
    Excuse::info("the source says what holds unless the environment says otherwise", |c| c.is_supplied()),
    Excuse::info("it continues only while its results are refused", |c| c.is_retry()),
    Excuse::info("the replies of its model are constants of the code", |c| c.context.unit.outline.scripted),
    Excuse::unknown("no tool that is known takes a turn, and the others are known when it runs", |c| {
        c.facts.ends == Some(Ends::ByUnknownTools)
    }),
    Excuse::unknown("code decides after each call whether there is another turn", |c| {
        c.facts.ends == Some(Ends::ByCode)
    }),
    Excuse::info("a counter in the state seems to end it", |c| c.decided.counted),
    Excuse::unknown("the condition that continues the loop is not known", |c| c.decided.unknown),
    Excuse::unknown("a person may be asked in each round", |c| c.decided.person),
    Excuse::info("the default is at most `most-default-rounds` of `[lint]`", |c| c.is_small()),
];

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    // A loop that nothing ends, not even a default, is L004a's and L021's.
    // L023 reports a graph that never reaches END.
    let endless_graph = context.unit.outline.graphs.iter().any(never_ends);
    let mut found = Vec::new();
    for l in context.loops().iter().filter(|l| l.bound != Bound::Infinite || !l.is_endless()) {
        let Some(origin) = &l.origin else { continue };
        let is_count = matches!(origin, BoundOrigin::Repeated(_));
        if is_count || endless_graph && l.bound == Bound::Infinite || is_brought(context, l) {
            continue;
        }
        let Term::Fix { body, .. } = code.term(l.fix) else { continue };
        let decided = decision(code, &context.unit.outline, *body);
        if decided.again {
            let facts = context.unit.outline.of_loop(l.fix);
            let Some(d) = finding(rule, &Case { context, loop_: l, origin, decided, facts }) else {
                continue;
            };
            found.push(d);
        }
    }
    out.extend(match context.compiled.facts.code.members {
        [] => found,
        _ => once_a_run(context, found),
    });
}

/// Where a run bounds all its parts, leaves one finding of those with one cause: the unit's own, or the
/// first. A part that another module defines is reported at the unit, because no finding of that module asks
/// for a limit.
fn once_a_run(context: &Context<'_>, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let unit = context.unit.span;
    let mut out: Vec<Diagnostic> = Vec::new();
    for mut d in found {
        if d.span.is_some_and(|s| s.file != unit.file) {
            (d.span, d.fix) = (Some(unit), None);
        }
        let is_same =
            |o: &&mut Diagnostic| d.level > Level::Unknown && o.level == d.level && o.message == d.message;
        match out.iter_mut().find(is_same) {
            Some(known) if d.span == Some(unit) => *known = d,
            Some(_) => {}
            None => out.push(d),
        }
    }
    out
}

/// Returns true for the loop of an agent that a framework gives to an agent of the program: it has the place
/// of that one, and no setting of the program bounds it.
fn is_brought(context: &Context<'_>, inner: &Loop) -> bool {
    let code = context.code();
    // Parts of a term that are not known and repeated runs are loops, too, and no agents.
    let is_agent =
        |l: &Loop| l.bound != Bound::Infinite && matches!(l.origin, None | Some(BoundOrigin::Default(_)));
    let outer = |l: &&Loop| l.fix != inner.fix && code.span(l.fix) == code.span(inner.fix) && is_agent(l);
    matches!(inner.origin, Some(BoundOrigin::Default(_)))
        && context.loops().iter().filter(outer).any(|l| below(code, l.fix).any(|id| id == inner.fix))
}

fn finding(rule: &Rule, case: &Case<'_>) -> Option<Diagnostic> {
    let Case { context, loop_: l, origin, facts, .. } = case;
    let (code, words) = (context.code(), context.compiled.facts.words);
    let supplied = case.is_supplied();
    let message = match origin {
        BoundOrigin::Unlimited(why) => format!("this loop has no limit: {why}"),
        _ if supplied => format!("the bound of this loop is {}", origin.describe()),
        _ => format!("the bound of this loop is not stated: it is {}", origin.describe()),
    };
    let mut d = rule.finding(message, code.span(l.fix)).about(origin.to_string());
    if let (Bound::Finite(_), Some(most)) = (l.bound, context.cost().model_calls.most) {
        d = d.label(format!("a run may call models up to {most} times"));
    }
    // One round of tool calls and the answer is no loop to worry about.
    if matches!(l.bound, Bound::Finite(0..=2)) {
        d.level = Level::Info;
    }
    // A bound that someone sets at run time is neither missing nor known.
    if case.is_unbounded() && !matches!(origin, BoundOrigin::Unlimited(_)) {
        if !asks(code, l.fix) {
            return None;
        }
        d.level = Level::Unknown;
    }
    let stated_here = !case.is_retry() && !supplied && facts.bounded.is_none();
    // The repair states the effective default: nothing changes until the framework does.
    if let (Bound::Finite(n), Some(_), Some(at), true) = (l.bound, words.stated, d.span, stated_here) {
        d.fix = Some(wish(at, &n.to_string(), Applicability::Safe));
    }
    if let Some(excuse) = EXCUSES.iter().find(|e| (e.holds)(case))
        && d.level > excuse.most
    {
        d.level = excuse.most;
        d.help.push(excuse.reason.to_string());
    }
    // The number that decides, where it does.
    let most = context.config.most_default_rounds;
    if most > 0
        && d.level > Level::Unknown
        && matches!((l.bound, origin), (Bound::Finite(_), BoundOrigin::Default(_)))
    {
        d.help.push(format!("a default above {most} is a warning: `most-default-rounds` of `[lint]`"));
    }
    let help = match facts.bounded {
        _ if case.is_retry() => words.retries,
        _ if supplied => "",
        Some(how) => how,
        None if case.is_unbounded() && !words.round.is_empty() => words.round,
        None => words.bound,
    };
    let d = if help.is_empty() { d } else { d.help(help) };
    Some(match facts.ends {
        Some(Ends::ByExecutors) => {
            context.unless_code(d, "its executors are code, which decides whether the cycle continues")
        }
        _ => d,
    })
}

/// Returns true if a loop itself asks a model, calls a tool or has unknown parts. A loop that only repeats
/// earlier values costs nothing.
fn asks(code: &Code, root: TermId) -> bool {
    below(code, root)
        .any(|id| matches!(code.term(id), Term::Llm(..) | Term::Recv(_) | Term::Tool(_) | Term::Unknown(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_lists_the_excuses_in_their_order() {
        let row = |e: &Excuse| format!("| {} | {} |\n", e.most.as_str(), e.reason);
        let rows: String = EXCUSES.iter().map(row).collect();
        assert!(RULE.docs.contains(&rows), "the page lacks these rows:\n{rows}");
    }
}
