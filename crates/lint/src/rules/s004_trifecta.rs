//! S004: one agent with all three parts of a leak.

use crate::rules::capability::{self, Capability};
use crate::{Check, Context, Rule};
use core_ir::{Recv, Term, ToolDecl};
use diagnostics::{Diagnostic, Level};

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
        let with = |c: Capability| tools.iter().copied().find(|t| does(t).contains(&c));
        let all = [Capability::Untrusted, Capability::Private, Capability::Outward].map(with);
        let [Some(untrusted), Some(private), Some(outward)] = all else { continue };
        let approved = |t: &ToolDecl| t.approve.may_ask();
        if tools.iter().filter(|t| does(t).contains(&Capability::Outward)).all(|t| approved(t)) {
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

/// Returns the capabilities of a tool by its name, or by that of its server.
fn does(tool: &ToolDecl) -> Vec<Capability> {
    capability::of(&tool.name)
}
