//! The texts of a module with what they are given to, for rules that look at what is written and not at what
//! it makes.

use crate::Source;
use crate::unsandboxed_exec;
use diagnostics::Span;
use ruff_python_ast::visitor::source_order::{
    SourceOrderVisitor, walk_expr, walk_interpolated_string_element, walk_stmt,
};
use ruff_python_ast::{Expr, InterpolatedStringElement, Keyword, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

/// The key under which the name of what is called is given.
pub const CALLED: &str = "()";

/// The key under which the name is given of what runs, in a tool, a text that the tool is given.
pub const RUN_BY_TOOL: &str = "tool()";

impl Source {
    /// Every text and truth value that is written, with the keyword, key of a dictionary or variable that it
    /// is given to (empty if there is none) and its place, but `use_docker` of an agent of AutoGen that asks
    /// a person each time; under [`CALLED`] the last name of everything that is called; and under
    /// [`RUN_BY_TOOL`] what runs an argument of a tool as code or in a shell. Of texts with values in them,
    /// the parts between are given.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let text = "URL = 'a'\nrun(x, {'deep': False}, name='b')\n";
    /// let source = python::Source::new(FileId(0), "m.py", text.into());
    /// let mut found = Vec::new();
    /// source.texts(&mut |key, text, _| found.push(format!("{key} {text}")));
    /// assert_eq!(found, ["URL a", "() run", "deep False", "name b"]);
    /// ```
    pub fn texts(&self, found: &mut dyn FnMut(&str, &str, Span)) {
        let mut texts = Texts { source: self, asked: false, found };
        for statement in self.body() {
            texts.visit_stmt(statement);
        }
    }
}

struct Texts<'s, 'f> {
    source: &'s Source,
    /// True within the arguments of an agent that asks a person before it runs code.
    asked: bool,
    found: &'f mut dyn FnMut(&str, &str, Span),
}

impl Texts<'_, '_> {
    fn tool(&mut self, function: &StmtFunctionDef) {
        for (by, range) in unsandboxed_exec::calls(function, self.source.imported()) {
            (self.found)(RUN_BY_TOOL, by, self.source.span(range));
        }
    }

    /// Reports a value if it is a string or a boolean. Returns whether it is.
    fn literal(&mut self, key: &str, value: &Expr) -> bool {
        let span = self.source.span(value.range());
        match value {
            Expr::StringLiteral(text) => (self.found)(key, text.value.to_str(), span),
            Expr::BooleanLiteral(_) if self.asked && key == "use_docker" => {}
            Expr::BooleanLiteral(b) => (self.found)(key, if b.value { "True" } else { "False" }, span),
            _ => return false,
        }
        true
    }
}

impl<'a> SourceOrderVisitor<'a> for Texts<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Assign(assigned) = statement
            && let [Expr::Name(name)] = &assigned.targets[..]
            && self.literal(&name.id, &assigned.value)
        {
            return;
        }
        match statement {
            Stmt::FunctionDef(function)
                if unsandboxed_exec::is_tool(&function.decorator_list, self.source.imported()) =>
            {
                self.tool(function)
            }
            Stmt::ClassDef(class)
                if unsandboxed_exec::is_tool_class(class.bases(), self.source.imported()) =>
            {
                for method in class.body.iter().filter_map(Stmt::as_function_def_stmt) {
                    if matches!(method.name.as_str(), "_run" | "_arun") {
                        self.tool(method);
                    }
                }
            }
            _ => {}
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, statement));
    }

    fn visit_interpolated_string_element(&mut self, element: &'a InterpolatedStringElement) {
        if let InterpolatedStringElement::Literal(text) = element {
            (self.found)("", &text.value, self.source.span(text.range()));
        }
        walk_interpolated_string_element(self, element);
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        let name = keyword.arg.as_ref().map_or("", |a| a.as_str());
        if !self.literal(name, &keyword.value) {
            self.visit_expr(&keyword.value);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if self.literal("", expr) {
            return;
        }
        match expr {
            Expr::Dict(dict) => {
                for item in &dict.items {
                    let key = match &item.key {
                        Some(Expr::StringLiteral(key)) => key.value.to_str(),
                        Some(other) => {
                            self.visit_expr(other);
                            ""
                        }
                        None => "",
                    };
                    if !self.literal(key, &item.value) {
                        self.visit_expr(&item.value);
                    }
                }
            }
            Expr::Call(call) => {
                let name = match &*call.func {
                    Expr::Name(name) => Some(name.id.as_str()),
                    Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
                    _ => None,
                };
                if let Some(name) = name {
                    (self.found)(CALLED, name, self.source.span(call.func.range()));
                }
                let before = self.asked;
                self.asked |= unsandboxed_exec::asks_before(name.unwrap_or(""), &call.arguments.keywords);
                stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
                self.asked = before;
            }
            _ => stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr)),
        }
    }
}
