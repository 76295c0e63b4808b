//! Tools of a module that run what they are given: `exec`, `eval` or a shell, with an argument of the tool in
//! it.
//!
//! Invariant: only what is certain. A tool that looks at its arguments first, or asks a person, is none.

use crate::Imported;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Decorator, Expr, ExprCall, Keyword, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

/// Decorators that turn a function into a tool, by their last name.
const DECORATORS: &[&str] = &["tool", "function_tool", "kernel_function", "ai_function", "agent_tool"];
/// Calls by which a tool asks a person before it acts.
const ASKS: &[&str] = &["input", "interrupt", "ask", "confirm", "approve"];

/// Returns true if a class extends a tool class. Its method `_run` is the tool.
pub(crate) fn is_tool_class(bases: &[Expr], imports: &[Imported]) -> bool {
    bases.iter().any(|b| last_name(b).is_some_and(|n| own_name(n, imports) == "BaseTool"))
}

/// Returns true if a decorator turns a function into a tool whose calls need no approval.
pub(crate) fn is_tool(decorators: &[Decorator], imports: &[Imported]) -> bool {
    decorators.iter().any(|d| {
        let (called, keywords) = match &d.expression {
            Expr::Call(call) => (&*call.func, &*call.arguments.keywords),
            other => (other, &[][..]),
        };
        last_name(called).is_some_and(|n| DECORATORS.contains(&own_name(n, imports)))
            && !keywords.iter().any(approves)
    })
}

/// Returns true if a call makes an AutoGen agent that asks a person before each reply, and so before it runs
/// code: `human_input_mode="ALWAYS"`, the default of `UserProxyAgent`.
pub(crate) fn asks_before(called: &str, keywords: &[Keyword]) -> bool {
    let named = |k: &&Keyword| k.arg.as_ref().is_some_and(|a| a.as_str() == "human_input_mode");
    match keywords.iter().find(named) {
        Some(k) => matches!(&k.value, Expr::StringLiteral(t) if t.value.to_str() == "ALWAYS"),
        None => called == "UserProxyAgent" && keywords.iter().all(|k| k.arg.is_some()),
    }
}

/// Returns true if a keyword requires approval of each call: `approval_mode="always_require"`,
/// `needs_approval=True`.
fn approves(keyword: &Keyword) -> bool {
    let asks = keyword.arg.as_ref().is_some_and(|a| a.contains("approval") || a.contains("confirm"));
    asks && match &keyword.value {
        Expr::BooleanLiteral(b) => b.value,
        Expr::StringLiteral(text) => text.value.to_str() != "never_require",
        _ => true,
    }
}

/// The module that a name is imported from, and its name there.
fn imported<'n>(name: &str, imports: &'n [Imported]) -> Option<(&'n str, &'n str)> {
    imports.iter().filter(|i| i.level == 0 && !i.names.is_empty()).find_map(|import| {
        let at = import.bound.iter().position(|bound| bound == name)?;
        Some((import.module.as_str(), import.names.get(at)?.as_str()))
    })
}

/// The name of an imported class or function in its module.
fn own_name<'n>(name: &'n str, imports: &'n [Imported]) -> &'n str {
    imported(name, imports).map_or(name, |(_, own)| own)
}

/// The module that a name is bound to; that of the same name if none is imported as it.
fn module_of<'n>(name: &'n str, imports: &'n [Imported]) -> &'n str {
    let binds = |i: &&Imported| i.level == 0 && i.names.is_empty() && i.bound.iter().any(|b| b == name);
    imports.iter().find(binds).map_or(name, |i| &i.module)
}

fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

/// Finds the calls in a tool that execute its arguments, in a module with these imports. Returns the name of
/// each executor and its range.
pub(crate) fn calls(function: &StmtFunctionDef, imports: &[Imported]) -> Vec<(&'static str, TextRange)> {
    let p = &function.parameters;
    let params = p.posonlyargs.iter().chain(&p.args).chain(&p.kwonlyargs);
    let params: Vec<&str> = params.map(|p| p.parameter.name.as_str()).filter(|n| *n != "self").collect();
    let mut search = Search { params, imports, found: Vec::new(), looks: false };
    for statement in &function.body {
        search.visit_stmt(statement);
    }
    if search.looks { Vec::new() } else { search.found }
}

struct Search<'a> {
    params: Vec<&'a str>,
    imports: &'a [Imported],
    found: Vec<(&'static str, TextRange)>,
    /// True if the tool tests an argument or asks a person.
    looks: bool,
}

impl Search<'_> {
    fn mentions(&self, expr: &Expr) -> bool {
        let mut names = Names { among: &self.params, found: false };
        names.visit_expr(expr);
        names.found
    }

    /// Returns the name of the executor if a call executes its first argument.
    fn runner(&self, call: &ExprCall) -> Option<&'static str> {
        let shell = || {
            let on = |k: &Keyword| {
                k.arg.as_ref().is_some_and(|a| a.as_str() == "shell")
                    && matches!(&k.value, Expr::BooleanLiteral(b) if b.value)
            };
            call.arguments.keywords.iter().any(on)
        };
        let of_module = |module: &str, name: &str| match module {
            "os" => ["system", "popen"].into_iter().find(|n| *n == name),
            "subprocess" => {
                let always = ["getoutput", "getstatusoutput"].into_iter().find(|n| *n == name);
                let asked = ["run", "call", "check_call", "check_output", "Popen"];
                always.or_else(|| asked.into_iter().find(|n| *n == name).filter(|_| shell()))
            }
            "asyncio" => Some("create_subprocess_shell").filter(|n| *n == name),
            _ => None,
        };
        match &*call.func {
            Expr::Name(name) => match imported(name.id.as_str(), self.imports) {
                Some((module, name)) => of_module(module, name),
                // With names of its own it is fenced, more or less.
                None if call.arguments.args.len() == 1 && call.arguments.keywords.is_empty() => {
                    ["exec", "eval"].into_iter().find(|n| *n == name.id.as_str())
                }
                None => None,
            },
            Expr::Attribute(attribute) => match &*attribute.value {
                Expr::Name(module) => {
                    of_module(module_of(module.id.as_str(), self.imports), attribute.attr.as_str())
                }
                value => of_module(last_name(value)?, attribute.attr.as_str()),
            },
            _ => None,
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Search<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let test = match statement {
            Stmt::If(s) => Some(&*s.test),
            Stmt::While(s) => Some(&*s.test),
            Stmt::Assert(s) => Some(&*s.test),
            _ => None,
        };
        if test.is_some_and(|t| self.mentions(t)) {
            self.looks = true;
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => {
                if last_name(&call.func).is_some_and(|n| ASKS.contains(&n)) {
                    self.looks = true;
                }
                if let (Some(by), Some(first)) = (self.runner(call), call.arguments.args.first())
                    && self.mentions(first)
                {
                    self.found.push((by, call.range()));
                }
            }
            // A test of its characters.
            Expr::If(test) if self.mentions(&test.test) => self.looks = true,
            Expr::Generator(all) if all.generators.iter().any(|g| self.mentions(&g.iter)) => {
                self.looks = true
            }
            _ => {}
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
    }
}

/// Searches an expression for any of some names.
struct Names<'n> {
    among: &'n [&'n str],
    found: bool,
}

impl<'a> SourceOrderVisitor<'a> for Names<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr {
            self.found |= self.among.contains(&name.id.as_str());
        }
        if !self.found {
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
        }
    }
}
