//! S006: a server of tools in whatever version is the newest.

use crate::{Check, FileContext, Rule};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "S006",
    name: "unpinned-server",
    level: Level::Warn,
    meaning: "whoever publishes the next version decides what the tools do: the code that runs need not be the code that was reviewed",
    docs: page!("../../../../docs/rules/S006-unpinned-server.md"),
    check: Check::File(check),
};

fn check(rule: &Rule, context: &FileContext<'_>, out: &mut Vec<Diagnostic>) {
    for server in &context.servers {
        if let Some((package, at)) = server.unpinned {
            let message = "the version of this server is not pinned";
            let d = rule.finding(message, at);
            let exact = if package.starts_with("git+") {
                "a revision: `git+https://…@REVISION`"
            } else {
                "its version: `NAME@1.2.3`"
            };
            out.push(d.help(format!("name {exact}")));
        }
    }
}
