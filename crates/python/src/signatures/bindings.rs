//! The names that a module binds, and to what.

use crate::uses::with_stack;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Alias, Expr, ExprContext, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};
use std::collections::HashMap;

/// The reason why the meaning of a name is not certain.
pub(super) const CONDITIONAL: &str = "it is defined under a condition";
const AGAIN: &str = "its name is bound to something else later";
const ASSIGNED: &str = "a function of its module binds its name";

/// Meaning of a name in a module.
#[derive(Clone, Debug)]
pub(super) enum Binding<'a> {
    Function(&'a StmtFunctionDef),
    Class(&'a StmtClassDef),
    /// `name` of a module; without a name the module itself. There are `level` dots before the module.
    Import {
        level: u32,
        module: String,
        name: Option<String>,
    },
    /// An expression that is assigned, or the value of a `type` statement.
    Alias(&'a Expr),
    /// Another thing, or one of several.
    Uncertain {
        at: TextRange,
        why: &'static str,
        /// True if one of them is a function.
        is_function: bool,
    },
}

/// A binding and where it begins to hold.
#[derive(Clone, Debug)]
pub(super) struct Bound<'a> {
    pub(super) at: TextSize,
    pub(super) binding: Binding<'a>,
}

/// `from module import *`.
#[derive(Clone, Debug)]
pub(super) struct Star {
    pub(super) level: u32,
    pub(super) module: String,
    pub(super) at: TextSize,
    pub(super) range: TextRange,
    /// False if it stands under a condition.
    pub(super) is_certain: bool,
}

/// The names of a module.
#[derive(Debug, Default)]
pub(super) struct Bindings<'a> {
    names: HashMap<&'a str, Bound<'a>>,
    pub(super) stars: Vec<Star>,
}

impl<'a> Bindings<'a> {
    pub(super) fn of(body: &'a [Stmt]) -> Bindings<'a> {
        let mut all = Bindings::default();
        for statement in body {
            all.statement(statement);
        }
        let mut globals = Globals(Vec::new());
        body.iter().for_each(|s| globals.visit_stmt(s));
        for (name, at) in globals.0 {
            if let Some(bound) = all.names.get_mut(name) {
                let is_function = bound.binding.may_be_function();
                bound.binding = Binding::Uncertain { at, why: ASSIGNED, is_function };
            }
        }
        all
    }

    pub(super) fn get(&self, name: &str) -> Option<&Bound<'a>> {
        self.names.get(name)
    }

    /// The names of functions that are meant for others, in the order of the text.
    pub(super) fn public(&self) -> Vec<&'a str> {
        if let Some(listed) = self.listed() {
            return listed;
        }
        let mut own: Vec<(TextSize, &'a str)> = self
            .names
            .iter()
            .filter(|(name, bound)| !name.starts_with('_') && bound.binding.may_be_function())
            .map(|(name, bound)| (bound.at, *name))
            .collect();
        own.sort_unstable();
        own.into_iter().map(|(_, name)| name).collect()
    }

    /// The names in `__all__`, if that is a list of texts.
    fn listed(&self) -> Option<Vec<&'a str>> {
        let Binding::Alias(list) = &self.names.get("__all__")?.binding else { return None };
        let items = match list {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            _ => return None,
        };
        let mut names = Vec::new();
        for item in items {
            let Expr::StringLiteral(text) = item else { return None };
            let name = text.value.to_str();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(names)
    }

    fn bind(&mut self, name: &'a str, at: TextRange, binding: Binding<'a>) {
        let was_function = self.names.get(name).is_some_and(|b| b.binding.may_be_function());
        let binding = match binding {
            Binding::Function(_) => binding,
            Binding::Uncertain { why, is_function, .. } => {
                Binding::Uncertain { at, why, is_function: is_function || was_function }
            }
            _ if was_function => Binding::Uncertain { at, why: AGAIN, is_function: true },
            binding => binding,
        };
        self.names.insert(name, Bound { at: at.start(), binding });
    }

    fn statement(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(def) => self.bind(def.name.id.as_str(), def.name.range, Binding::Function(def)),
            Stmt::ClassDef(def) => self.bind(def.name.id.as_str(), def.name.range, Binding::Class(def)),
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.import(alias)),
            Stmt::ImportFrom(from) => {
                let module = from.module.as_ref().map_or("", |m| m.id.as_str());
                for alias in &from.names {
                    if alias.name.id.as_str() == "*" {
                        self.stars.push(star(from.level, module, from.range, true));
                        continue;
                    }
                    let bound = alias.asname.as_ref().map_or(alias.name.id.as_str(), |n| n.id.as_str());
                    let name = Some(alias.name.id.to_string());
                    let import = Binding::Import { level: from.level, module: module.into(), name };
                    self.bind(bound, alias.range, import);
                }
            }
            Stmt::Assign(assign) => match &assign.targets[..] {
                [Expr::Name(name)] => self.bind(name.id.as_str(), name.range, Binding::Alias(&assign.value)),
                _ => self.uncertain(statement, AGAIN),
            },
            Stmt::AnnAssign(assign) => match (&*assign.target, assign.value.as_deref()) {
                (Expr::Name(name), Some(value)) => {
                    self.bind(name.id.as_str(), name.range, Binding::Alias(value));
                }
                (_, Some(_)) => self.uncertain(statement, AGAIN),
                (_, None) => {}
            },
            Stmt::TypeAlias(alias) if alias.type_params.is_none() => match &*alias.name {
                Expr::Name(name) => self.bind(name.id.as_str(), name.range, Binding::Alias(&alias.value)),
                _ => self.uncertain(statement, AGAIN),
            },
            // Only checkers see it.
            Stmt::If(test) if is_type_checking(&test.test) && test.elif_else_clauses.is_empty() => {
                test.body.iter().for_each(|s| match s {
                    Stmt::Import(_) | Stmt::ImportFrom(_) => self.statement(s),
                    _ => self.uncertain(s, CONDITIONAL),
                });
            }
            _ => self.uncertain(statement, CONDITIONAL),
        }
    }

    fn import(&mut self, alias: &'a Alias) {
        let full = alias.name.id.as_str();
        let (bound, module) = match &alias.asname {
            Some(name) => (name.id.as_str(), full),
            None => {
                let first = full.split('.').next().unwrap_or(full);
                (first, first)
            }
        };
        let import = Binding::Import { level: 0, module: module.into(), name: None };
        self.bind(bound, alias.range, import);
    }

    /// Whatever a statement binds is not certain.
    fn uncertain(&mut self, statement: &'a Stmt, why: &'static str) {
        let mut inner = Inner { names: Vec::new(), stars: Vec::new() };
        inner.visit_stmt(statement);
        for (name, at, is_function) in inner.names {
            self.bind(name, at, Binding::Uncertain { at, why, is_function });
        }
        self.stars.extend(inner.stars);
    }
}

impl Binding<'_> {
    fn may_be_function(&self) -> bool {
        matches!(self, Binding::Function(_) | Binding::Uncertain { is_function: true, .. })
    }
}

fn star(level: u32, module: &str, range: TextRange, is_certain: bool) -> Star {
    Star { level, module: module.into(), at: range.start(), range, is_certain }
}

fn is_type_checking(test: &Expr) -> bool {
    match test {
        Expr::Name(name) => name.id.as_str() == "TYPE_CHECKING",
        Expr::Attribute(attribute) => attribute.attr.id.as_str() == "TYPE_CHECKING",
        _ => false,
    }
}

/// The names that a statement binds in the scope in which it stands.
struct Inner<'a> {
    names: Vec<(&'a str, TextRange, bool)>,
    stars: Vec<Star>,
}

impl<'a> SourceOrderVisitor<'a> for Inner<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(def) => self.names.push((def.name.id.as_str(), def.name.range, true)),
            Stmt::ClassDef(def) => self.names.push((def.name.id.as_str(), def.name.range, false)),
            _ => with_stack(|| walk_stmt(self, statement)),
        }
        if let Stmt::ImportFrom(from) = statement
            && from.names.iter().any(|n| n.name.id.as_str() == "*")
        {
            let module = from.module.as_ref().map_or("", |m| m.id.as_str());
            self.stars.push(star(from.level, module, from.range, false));
        }
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let full = alias.name.id.as_str();
        let bound = alias.asname.as_ref().map_or(full, |n| n.id.as_str());
        self.names.push((bound.split('.').next().unwrap_or(bound), alias.range, false));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx != ExprContext::Load => {
                self.names.push((name.id.as_str(), name.range, false));
            }
            Expr::Lambda(_) => {}
            _ => with_stack(|| walk_expr(self, expr)),
        }
    }
}

/// The names that functions declare as `global`.
struct Globals<'a>(Vec<(&'a str, TextRange)>);

impl<'a> SourceOrderVisitor<'a> for Globals<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Global(global) = statement {
            self.0.extend(global.names.iter().map(|n| (n.id.as_str(), n.range())));
        }
        with_stack(|| walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}
