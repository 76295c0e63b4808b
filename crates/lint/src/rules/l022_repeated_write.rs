//! L022: something that changes the world, tried again.

use crate::{Check, Context, Rule, below};
use core_ir::Term;
use diagnostics::{Diagnostic, Level};
use tool_facts::acts;

pub(super) static RULE: Rule = Rule {
    code: "L022",
    name: "repeated-write",
    level: Level::Warn,
    meaning: "a `write` effect is inside a retry: an attempt that fails after the effect leaves it done, and the next attempt repeats it",
    docs: page!("../../../../docs/rules/L022-repeated-write.md"),
    check: Check::Term(check),
};

const HELP: &str = "make it idempotent (a key that the service recognizes), or do not retry it";

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for retried in &context.unit.outline.retried {
        let name = diagnostics::clip(&retried.name);
        let times = retried.times.map_or(String::new(), |n| format!(", up to {n} times"));
        let d = match retried.writes {
            Some(true) => rule.finding(
                format!("`{name}` is retried after a failure{times}, and may already have happened"),
                retried.at,
            ),
            None => {
                let message = format!(
                    "`{name}` is retried after a failure{times}: whether it then happens twice depends on the service"
                );
                let mut d = rule.finding(message, retried.at);
                d.level = Level::Unknown;
                d
            }
            Some(false) => continue,
        };
        let d = if retried.message { told_twice(d) } else { d };
        out.push(d.about(retried.name.as_str()).help(HELP));
    }
    let code = context.code();
    for (id, term) in code.iter() {
        let Term::Guard { term, retry: 1.., .. } = term else { continue };
        let tools = below(code, *term).filter_map(|id| match code.term(id) {
            Term::Tool(tool) => Some(code.tool(*tool)),
            _ => None,
        });
        if let Some(tool) = tools.into_iter().find(|t| acts(&t.name)) {
            let name = diagnostics::clip(&tool.name);
            let unstated = context.unit.outline.unstated_retries.contains(&id);
            let message = match unstated {
                true => format!("a task that fails is tried again by default, and `{name}` with it"),
                false => format!("this guard repeats `{name}` when it refuses a result"),
            };
            let mut d = rule
                .finding(message, code.span(id))
                .about(&*tool.name)
                .remark(tool.span, "this may happen again")
                .help(HELP);
            if unstated {
                d.level = Level::Info;
            }
            out.push(d);
        }
    }
}

/// Takes a repeated message less hard: its readers see that it came twice.
fn told_twice(mut d: Diagnostic) -> Diagnostic {
    d.level = d.level.min(Level::Info);
    d
}
