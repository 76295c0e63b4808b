//! The rules of values of sum types.

use super::expr::is_rest;
use super::{Checker, duplicate, suggest};
use crate::codes;
use crate::types::{CaseDecl, certain, show};
use core_ir::{Name, Type};
use diagnostics::{Applicability, Diagnostic, Fix, Span, nearest};
use syntax::agent::ast::{self, Expr, ExprKind};

/// The report of a pattern that is no case of what is matched.
pub(super) fn no_case(name: &ast::Name, all: &[(Name, Type)]) -> Diagnostic {
    let message = format!("`{}` is not a case of {}", name.text, show(&Type::Variant(all.into())));
    let d = Diagnostic::error(codes::NO_CASE, message, name.span);
    match nearest(&name.text, all.iter().map(|(n, _)| &**n)) {
        _ if is_rest(&name.text) => d.help("write `_ => …` for all others"),
        Some(near) => suggest(d, near),
        None => {
            let names: Vec<String> = all.iter().take(20).map(|(n, _)| format!("`{n}`")).collect();
            d.help(format!("its cases are {}", names.join(", ")))
        }
    }
}

/// The report of a field that a case does not have.
pub(super) fn no_field(field: &ast::Name, case: &str, decl: &CaseDecl) -> Diagnostic {
    let d = Diagnostic::error(
        codes::NO_SUCH_FIELD,
        format!("the case `{case}` has no field `{}`", field.text),
        field.span,
    )
    .remark(decl.span, "declared here");
    match nearest(&field.text, decl.fields().iter().map(|(n, _)| &**n)) {
        Some(near) => suggest(d, near),
        None if decl.fields().is_empty() => d.help(format!("it has no fields: write `{case}`")),
        None => {
            let names: Vec<String> = decl.fields().iter().take(20).map(|(n, _)| format!("`{n}`")).collect();
            d.help(format!("its fields are {}", names.join(", ")))
        }
    }
}

impl Checker<'_> {
    /// The type of a name that is no variable, if it is a case.
    pub(super) fn plain_case(&mut self, name: &str, span: Span) -> Option<Type> {
        let case = self.decls.types.cases.get(name)?;
        self.facts.cases.insert(span);
        if let Some((first, _)) = case.fields().iter().find(|(_, t)| !matches!(t, Type::Option(_))) {
            let d = Diagnostic::error(codes::MISMATCH, format!("the case `{name}` has fields"), span)
                .remark(case.span, "declared here")
                .label(format!("`{first}` is missing"))
                .help(format!("write `{}`", case.written(name)));
            self.report(d);
        }
        Some(case.sum.clone())
    }

    /// `Case { field: e, … }`. A field that may be absent may be left out.
    pub(super) fn construct(&mut self, name: &ast::Name, fields: &[(ast::Name, Expr)], span: Span) -> Type {
        let decls = self.decls;
        let Some(case) = decls.types.cases.get(&name.text) else {
            fields.iter().for_each(|(_, e)| {
                self.expr(e, None);
            });
            let d =
                Diagnostic::error(codes::NO_CASE, format!("no type has a case `{}`", name.text), name.span);
            let d = match nearest(&name.text, decls.types.cases.keys().map(String::as_str)) {
                Some(near) => suggest(d, near),
                None => d.help("a record is written without its type: `{ field: … }`"),
            };
            self.report(d);
            return Type::Dyn;
        };
        for (i, (field, e)) in fields.iter().enumerate() {
            if let Some((first, _)) = fields[..i].iter().find(|(n, _)| n.text == field.text) {
                let d = duplicate("key", field, first.span);
                self.report(d);
            }
            match case.field(&field.text) {
                Some(want) => {
                    let found = self.expect(e, want, Some((case.span, "the declared case".to_string())));
                    if !certain(&found, want) {
                        self.facts.unsure.insert(e.span, want.clone());
                    }
                }
                None => {
                    self.expr(e, None);
                    let d = no_field(field, &name.text, case);
                    self.report(d);
                }
            }
        }
        let given = |name: &str| fields.iter().any(|(n, _)| n.text == name);
        let missing: Vec<&str> = case
            .fields()
            .iter()
            .filter(|(n, t)| !matches!(t, Type::Option(_)) && !given(n))
            .map(|(n, _)| &**n)
            // A slip in the name has been reported as an unknown field.
            .filter(|n| {
                !fields.iter().any(|(m, _)| case.field(&m.text).is_none() && nearest(&m.text, [*n]).is_some())
            })
            .collect();
        if !missing.is_empty() {
            self.report(
                Diagnostic::error(
                    codes::MISMATCH,
                    format!("`{}` is missing in the case `{}`", missing.join("`, `"), name.text),
                    span,
                )
                .remark(case.span, "declared here")
                .help(format!("write `{}`", case.written(&name.text))),
            );
        }
        case.sum.clone()
    }

    /// Adds how a value of these cases is written, where something else stands.
    pub(super) fn meant_case(&self, d: Diagnostic, e: &Expr, cases: &[(Name, Type)]) -> Diagnostic {
        let written = |name: &str| {
            let case = self.decls.types.case_of(cases, name);
            case.map_or_else(|| name.to_string(), |(name, case)| case.written(name))
        };
        if let ExprKind::Str(text) = &e.kind
            && let Some((name, payload)) = cases.iter().find(|(n, _)| **n == **text)
        {
            let d = d.help(format!("a case is written without quotes: `{}`", written(name)));
            return match payload {
                Type::Null => d.fix(Fix {
                    span: e.span,
                    replacement: written(name),
                    applicability: Applicability::Unsafe,
                }),
                _ => d,
            };
        }
        let all: Vec<String> = cases.iter().take(8).map(|(n, _)| format!("`{}`", written(n))).collect();
        d.help(format!("write one of its cases: {}", all.join(", ")))
    }

    /// How a field of a case is reached.
    pub(super) fn by_match(&self, cases: &[(Name, Type)], field: &str) -> String {
        let with = cases
            .iter()
            .find(|(n, _)| self.decls.types.case_of(cases, n).is_some_and(|(_, c)| c.field(field).is_some()));
        match with {
            Some((name, _)) => {
                format!(
                    "only some cases have fields; look at the case: `match x {{ {name} {{ {field} }} => …, _ => … }}`"
                )
            }
            None => "look at the case with `match`".to_string(),
        }
    }
}
