//! S004: one agent with all three parts of a leak.

use crate::{Check, Context, Rule};
use core_ir::{Recv, Term, ToolDecl};
use diagnostics::{Diagnostic, Level};
use tool_facts::{Role, ToolFacts};

pub(super) static RULE: Rule = Rule {
    code: "S004",
    name: "lethal-trifecta",
    level: Level::Warn,
    meaning: "one conversation holds text from anyone, data that is not for everyone, and a channel outward: the text decides what goes out",
    docs: page!("../../../../docs/rules/S004-lethal-trifecta.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        let (Term::Llm(_, params) | Term::Recv(Recv::Data(params))) = term else { continue };
        if params.waiting {
            continue;
        }
        let tools: Vec<&ToolDecl> = params.tools.iter().map(|t| &**code.tool(*t)).collect();
        if tools.len() < 2 {
            continue;
        }
        let facts: Vec<ToolFacts> = tools.iter().map(|t| context.facts(t)).collect();
        // The tool that shows the role best, the first of equals.
        let with = |role| {
            let all = tools.iter().zip(&facts).filter_map(|(t, f)| Some((*t, f.shows(role)?)));
            all.rev().max_by_key(|(_, shown)| *shown).map(|(t, _)| t)
        };
        let all = [Role::Untrusted, Role::Private, Role::Outward].map(with);
        let [Some(untrusted), Some(private), Some(outward)] = all else { continue };
        let approved = |t: &ToolDecl| t.approve.may_ask();
        let outward_tools = tools.iter().zip(&facts).filter(|(_, f)| f.role(Role::Outward).is_some());
        if outward_tools.into_iter().all(|(t, _)| approved(t)) {
            continue;
        }
        let show = |t: &ToolDecl| format!("`{}`", diagnostics::clip(&t.name));
        let message = format!(
            "this agent reads untrusted text ({}) and private data ({}), and can send both out ({})",
            show(untrusted),
            show(private),
            show(outward)
        );
        let mut d = rule
            .finding(message, code.span(id))
            .about([untrusted, private, outward].map(|t| &*t.name).join(" "));
        if context.compiled.facts.asks_user {
            d.level = Level::Info;
        }
        let d = d.remark(untrusted.span, "text from anyone").remark(private.span, "private data");
        out.push(
            d.remark(outward.span, "a way out").help(
                "split it into agents that have two of the three, or let a person approve what goes out",
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Outcome, lint_bytes};
    use diagnostics::FileId;

    #[test]
    fn names_the_tools_that_are_made_for_it() {
        let text = include_str!("../../tests/fixtures/S004/best_tool_warn.py");
        let report = lint_bytes(frontends::recognize, "m.py", FileId(0), text.as_bytes(), &Config::default());
        let Outcome::Checked { findings, .. } = report.outcome else { panic!("not checked") };
        let found = findings.iter().find(|d| d.code == "S004").map(|d| d.message.as_str());
        let expected = "this agent reads untrusted text (`fetch_page`) and private data (`read_notes`), and can send both out (`fetch_page`)";
        assert_eq!(found, Some(expected));
    }
}
