//! The rules of constants: values with a name for all of the program, which only compute.

use super::{Checker, Pure};
use crate::codes;
use crate::types::certain;
use core_ir::Type;
use diagnostics::Diagnostic;
use std::collections::HashSet;
use syntax::agent::ast::{self, ExprKind, Item, Program};

impl Checker<'_> {
    /// Checks the constants, each after those that it mentions, and binds them for all that follows.
    pub(super) fn constants(&mut self, program: &Program) {
        let mut done: HashSet<&str> = HashSet::new();
        for item in &program.items {
            let Item::Const(c) = item else { continue };
            // An explicit stack: the names on the way from the first constant, and what each still needs.
            let mut path: Vec<(&str, Vec<String>)> = Vec::new();
            let mut next = Some(c.name.text.clone());
            loop {
                if let Some(name) = next.take()
                    && let Some((name, decl)) = self.decls.constants.get_key_value(&name)
                    && !done.contains(name.as_str())
                {
                    if let Some(at) = path.iter().position(|(n, _)| n == name) {
                        let cycle: Vec<&str> = path[at..].iter().map(|(n, _)| *n).chain([&**name]).collect();
                        self.report(
                            Diagnostic::error(
                                codes::CONSTANT_CYCLE,
                                format!("`{name}` is defined by itself: {}", cycle.join(" → ")),
                                decl.name.span,
                            )
                            .help("the value of a constant can't depend on the constant"),
                        );
                        self.bind_name(&decl.name, Type::Dyn);
                        done.insert(name);
                    } else {
                        let mut needs = Vec::new();
                        decl.value.each_variable(&mut |n, _| needs.push(n.to_string()));
                        path.push((name, needs));
                    }
                }
                let Some((name, needs)) = path.last_mut() else { break };
                if let Some(need) = needs.pop() {
                    next = Some(need);
                    continue;
                }
                let name = *name;
                path.pop();
                if done.insert(name) {
                    self.constant(name);
                }
            }
        }
    }

    fn constant(&mut self, name: &str) {
        let Some(decl) = self.decls.constants.get(name) else { return };
        self.pure = Some(Pure { place: decl.name.span, what: "constant" });
        let mut calls = Vec::new();
        decl.value.walk(&mut |e| {
            let called = match &e.kind {
                ExprKind::Call(name, _) => Some((&*name.text, name.span)),
                ExprKind::Var(name) => Some((&**name, e.span)),
                _ => None,
            };
            calls.extend(called.filter(|(name, _)| self.decls.function(name).is_some()));
        });
        for (called, at) in calls {
            self.report(
                Diagnostic::error(codes::NOT_PURE, format!("`{called}` can't be called in a constant"), at)
                    .remark(decl.name.span, "in this")
                    .help(format!(
                        "a `fn` may use constants, so a constant calls none; write `fn {name}() -> Type {{ … }}` \
                         instead"
                    )),
            );
        }
        let ty = match &decl.ty {
            Some(want) => {
                let because = (decl.name.span, "the declared type".to_string());
                let found = self.expect(&decl.value, want, Some(because));
                if !certain(&found, want) {
                    self.facts.unsure.insert(decl.value.span, want.clone());
                }
                want.clone()
            }
            None => self.typed(&decl.value, None),
        };
        self.pure = None;
        self.facts.variables.push((decl.name.span, ty.clone()));
        self.bind_name(&decl.name, ty);
    }

    /// Reports a variable that has the name of a constant.
    pub(super) fn no_constant(&mut self, name: &ast::Name) {
        let Some(constant) = self.decls.constants.get(&name.text) else { return };
        let d = Diagnostic::error(
            codes::CONSTANT_BOUND,
            format!("`{}` is a constant, so no variable can have its name", name.text),
            name.span,
        )
        .remark(constant.name.span, "declared here")
        .help("choose another name: a constant keeps its value");
        self.report(d);
    }
}
