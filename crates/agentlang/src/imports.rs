//! Imports of units from configurations of other frameworks: checks of their inputs and results.
//!
//! `use crew "research/" as research(topic: String) -> String;` is a task that is carried out by the term the
//! configuration is compiled to. A unit that has named inputs takes the record of the arguments; any other
//! takes one text.

use super::codes;
use super::decls::{Decls, Param, Signature};
use super::files::Files;
use core_ir::{Name, Term, Type};
use diagnostics::{Diagnostic, nearest};
use frontend_kit::Unit;
use syntax::agent::ast::{Import, Item, Program};

/// The named inputs of a unit; `None` if it takes one text.
pub(super) fn inputs(unit: &Unit) -> Option<&[(Name, Type)]> {
    match unit.code.term(unit.code.root()) {
        Term::Abs(abs) => match &abs.ty {
            Some(Type::Record(fields)) => Some(fields),
            _ => None,
        },
        _ => None,
    }
}

/// Reports the imports that do not take what their units take.
pub(super) fn check(program: &Program, files: &Files, decls: &Decls, out: &mut Vec<Diagnostic>) {
    for item in &program.items {
        let Item::Import(import) = item else { continue };
        let Some(unit) = files.unit(import.span) else { continue };
        // One of two declarations of a name is reported already.
        let Some(signature) =
            decls.callables.get(&import.name.text).filter(|s| s.name.span == import.name.span)
        else {
            continue;
        };
        match inputs(unit) {
            Some(fields) => record(import, unit, fields, signature, out),
            None => text(import, unit, signature, out),
        }
    }
}

fn record(import: &Import, unit: &Unit, fields: &[(Name, Type)], s: &Signature, out: &mut Vec<Diagnostic>) {
    let names = fields.iter().map(|(n, _)| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let optional = |ty: &Type| matches!(ty, Type::Option(_) | Type::Dyn);
    for p in &s.params {
        match fields.iter().find(|(n, _)| **n == *p.name.text) {
            Some((_, ty)) if !p.ty.is_subtype(ty) && !matches!(ty, Type::Dyn) => out.push(
                Diagnostic::error(
                    codes::NOT_IMPORTED,
                    format!("`{}` takes {ty} as `{}`, and this is {}", unit.name, p.name.text, p.ty),
                    p.name.span,
                )
                .help("declare the parameter with that type"),
            ),
            Some(_) => {}
            None => {
                let d = Diagnostic::error(
                    codes::NOT_IMPORTED,
                    format!("`{}` has no input `{}`", unit.name, p.name.text),
                    p.name.span,
                );
                let near = nearest(&p.name.text, fields.iter().map(|(n, _)| &**n));
                out.push(match near {
                    Some(near) => super::check::suggest(d, near),
                    None => d.help(format!("its inputs are {names}")),
                });
            }
        }
    }
    let given = |n: &Name| s.params.iter().any(|p: &Param| *p.name.text == **n);
    for (name, ty) in fields.iter().filter(|(n, ty)| !given(n) && !optional(ty)) {
        out.push(
            Diagnostic::error(
                codes::NOT_IMPORTED,
                format!("`{}` needs an input `{name}`", unit.name),
                import.name.span,
            )
            .help(format!("add `{name}: {ty}` to the parameters")),
        );
    }
}

fn text(import: &Import, unit: &Unit, s: &Signature, out: &mut Vec<Diagnostic>) {
    if !matches!(&s.params[..], [one] if one.ty.is_subtype(&Type::Str)) {
        out.push(
            Diagnostic::error(
                codes::NOT_IMPORTED,
                format!("`{}` takes one text", unit.name),
                import.name.span,
            )
            .help(format!("write `{}(input: String)`", import.name.text)),
        );
    }
}
