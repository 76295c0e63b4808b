//! Confirmations: `confirm(x, "why")`, an approval of a value.
//!
//! It is the call of a tool that gives back its argument ([`ToolDecl::confirmation`]). A person is asked
//! where the value is untrusted. Approved, it is trusted from then on: later uses ask nothing again.
//!
//! Source: `docs/language/plans.md`.

use super::{Lower, Val};
use crate::codes;
use crate::scope::{Taint, UNIQUE};
use core_ir::{Term, ToolDecl, ToolId};
use diagnostics::Span;
use ruff_python_ast::ExprCall;

/// Name of the tool, in questions and policies.
const CONFIRM: &str = "confirm";

impl<'a> Lower<'a> {
    /// `confirm(x, "why")`.
    pub(crate) fn confirm(&mut self, c: &'a ExprCall, at: Span) -> Val {
        let [Some(value), Some(why)] = [(0, "value"), (1, "why")].map(|(i, name)| {
            let named =
                c.arguments.keywords.iter().find(|k| k.arg.as_ref().is_some_and(|a| a.as_str() == name));
            c.arguments.args.get(i).or_else(|| named.map(|k| &k.value))
        }) else {
            return self.error(
                codes::ARGUMENTS,
                at,
                "`confirm` takes a value and the reason for it",
                "write `confirm(x, \"why it is to be trusted\")`",
            );
        };
        if c.arguments.args.len() + c.arguments.keywords.len() > 2 {
            let help = "it takes a value and a reason; put several values into one dictionary";
            return self.error(codes::ARGUMENTS, at, "too many arguments for `confirm`", help);
        }
        let value = self.argument(value);
        let why = self.argument(why);
        let taint = value.taint.join(why.taint);
        let why = self.text(why, at);
        let id = self.own_tool(ToolDecl::confirmation(CONFIRM.into(), at));
        let record = self.add(Term::Record(vec![("value".into(), value.term), ("why".into(), why)]), at);
        let tool = self.add(Term::Tool(id), at);
        let term = self.b.app(tool, record, at);
        // A refusal tells of the value and of the reason.
        self.may_fail(taint);
        let endorsed = Taint { untrusted: false, ..taint }.join(self.pc);
        Val { unique: UNIQUE, ..self.val(term, value.ty, endorsed) }
    }

    /// A tool of the language's own, which is declared once.
    pub(crate) fn own_tool(&mut self, decl: ToolDecl) -> ToolId {
        if let Some(id) = self.own_tools.get(&decl.name) {
            return *id;
        }
        let name = decl.name.clone();
        let id = self.b.tool(decl);
        self.own_tools.insert(name, id);
        id
    }
}
