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
    docs: include_str!("../../../../docs/rules/S004-lethal-trifecta.md"),
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
        let with = |role| tools.iter().zip(&facts).find(|(_, f)| f.role(role).is_some()).map(|(t, _)| *t);
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
