//! L021: group chats without end.

use crate::paths::Loop;
use crate::{Check, Context, Rule, below};
use core_ir::{Bound, BoundOrigin, Code, Term, TermId};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L021",
    name: "unbounded-group",
    level: Level::Error,
    meaning: "a `fix[∞]` over several agents has no path that returns without calling `self`: the group chat has neither end nor bound",
    docs: page!("../../../../docs/rules/L021-unbounded-group.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for l in context.loops().iter().filter(|l| is_endless_group(code, l)) {
        let mut d = rule.finding("this group chat never ends", code.span(l.fix));
        by_people(context, &mut d);
        if let Some(origin) = &l.origin {
            d = d.label(match origin {
                BoundOrigin::Unlimited(why) => why.to_string(),
                _ => origin.describe(),
            });
        }
        let how = context.unit.outline.of_loop(l.fix).bounded;
        let d = d.help(how.unwrap_or("set a limit of turns, or a termination condition"));
        out.push(speakers(context, d));
    }
}

/// Leaves a loop open that the code which chooses the next speaker may end.
pub(super) fn speakers(context: &Context<'_>, d: Diagnostic) -> Diagnostic {
    match context.compiled.facts.code.speakers_end {
        true => context.unless_code(d, "the function that chooses the next speaker may end the chat"),
        false => d,
    }
}

/// Downgrades a group chat in which people take part: they notice that it continues, and may be able to end
/// it.
pub(super) fn by_people(context: &Context<'_>, d: &mut Diagnostic) {
    let people = &context.unit.outline.people;
    let Some((at, may_end)) = people.iter().find(|(_, ends)| *ends).or(people.first()) else { return };
    d.level = if *may_end { Level::Info } else { Level::Warn };
    d.message = if *may_end {
        "only the person who takes part ends this group chat".into()
    } else {
        "this group chat never ends: the person who takes part can only abort it".into()
    };
    d.remarks.push(diagnostics::Remark { span: *at, text: "the person".into() });
}

/// Returns true if the loop asks several agents in turn without end. L021 reports such a loop, L004 does not.
pub(super) fn is_endless_group(code: &Code, l: &Loop) -> bool {
    l.is_endless() && l.bound == Bound::Infinite && oracles(code, l.fix) > 1
}

/// Returns true if a loop is a group chat: an iteration of it is the turn of a whole agent.
pub(super) fn is_group_chat(context: &Context<'_>, l: &Loop) -> bool {
    context.compiled.facts.chats || oracles(context.code(), l.fix) > 1
}

/// Returns the number of agents in a term: oracles, and separate conversations.
fn oracles(code: &Code, root: TermId) -> usize {
    below(code, root).filter(|id| matches!(code.term(*id), Term::Llm(..) | Term::Fresh(_))).count()
}
