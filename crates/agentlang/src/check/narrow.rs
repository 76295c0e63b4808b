//! Narrowing of options by conditions, which show that a value is not null.
//!
//! Source: `docs/language/types.md`, "Values that may be absent".

use super::Checker;
use super::env::{Binding, Changes, Entry, Fields};
use super::expr::comparable;
use crate::codes;
use crate::types::{show, unconditional};
use core_ir::Type;
use diagnostics::{Applicability, Diagnostic, Fix, Span};
use syntax::agent::ast::{self, BinaryOp, Block, Expr, ExprKind, UnaryOp};

/// A place of which a condition has shown that it is not null.
pub(super) struct Shown {
    /// `x` or `x.field.field`.
    place: String,
    /// The variable, and the binding of it that was looked at.
    root: String,
    binding: u32,
    /// The option, and its inside.
    whole: Type,
    inside: Type,
    span: Span,
}

/// The variable and the fields of a place, innermost first.
fn place_of(e: &Expr) -> Option<(&str, Vec<&str>)> {
    let (mut e, mut fields) = (e, Vec::new());
    loop {
        match &e.kind {
            ExprKind::Paren(inner) => e = inner,
            ExprKind::Field(base, name) | ExprKind::OptionalField(base, name) => {
                fields.push(&*name.text);
                e = base;
            }
            ExprKind::Var(name) => return Some((name, fields)),
            _ => return None,
        }
    }
}

/// The text by which the environment knows a place.
fn key<'a>(root: &str, fields: impl Iterator<Item = &'a &'a str>) -> String {
    fields.fold(root.to_string(), |key, field| key + "." + field)
}

impl Checker<'_> {
    /// The places that are not null if a condition holds, or if it fails.
    pub(super) fn shown_by(&self, condition: &Expr, holds: bool) -> Vec<Shown> {
        let mut out = Vec::new();
        // As deep as the parser lets expressions nest.
        self.collect_shown(condition, holds, &mut out);
        out
    }

    fn collect_shown(&self, e: &Expr, holds: bool, out: &mut Vec<Shown>) {
        match &e.kind {
            ExprKind::Paren(inner) => self.collect_shown(inner, holds, out),
            ExprKind::Unary(UnaryOp::Not, inner) => self.collect_shown(inner, !holds, out),
            ExprKind::Binary(BinaryOp::And, _, a, b) if holds => {
                self.collect_shown(a, true, out);
                self.collect_shown(b, true, out);
            }
            ExprKind::Binary(BinaryOp::Or, _, a, b) if !holds => {
                self.collect_shown(a, false, out);
                self.collect_shown(b, false, out);
            }
            ExprKind::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), _, a, b)
                if (*op == BinaryOp::Ne) == holds =>
            {
                let value = match (&a.kind, &b.kind) {
                    (_, ExprKind::Null) => a,
                    (ExprKind::Null, _) => b,
                    _ => return,
                };
                self.note(value, out);
            }
            _ => {}
        }
    }

    /// Notes that a place is not null, and so nothing before a `?.` in it.
    fn note(&self, e: &Expr, out: &mut Vec<Shown>) {
        match &e.kind {
            ExprKind::Paren(inner) => return self.note(inner, out),
            ExprKind::OptionalField(base, _) => self.note(base, out),
            ExprKind::Field(base, _) if has_optional(base) => self.note(base, out),
            _ => {}
        }
        let Some((root, fields)) = place_of(e) else { return };
        let Some(Entry::Bound(binding)) = self.env.get(root) else { return };
        let mut place = root.to_string();
        let known = |place: &str, out: &[Shown]| {
            out.iter().rev().find(|s| s.place == place).map(|s| s.inside.clone())
        };
        let mut ty = known(root, out).unwrap_or_else(|| binding.ty.clone());
        for field in fields.iter().rev() {
            let Type::Record(all) = &ty.unfolded() else { return };
            let Some((_, t)) = all.iter().find(|(n, _)| **n == **field) else { return };
            place = place + "." + field;
            ty = match (known(&place, out), self.env.get(&place)) {
                (Some(inside), _) => inside,
                (None, Some(Entry::Bound(b))) => b.ty.clone(),
                _ => t.clone(),
            };
        }
        if let Type::Option(inside) = &ty {
            out.push(Shown {
                place,
                root: root.to_string(),
                binding: binding.id,
                inside: (**inside).clone(),
                whole: ty,
                span: e.span,
            });
        }
    }

    /// Takes what was shown as known from here on, of variables that have the values that were looked at.
    pub(super) fn apply(&mut self, shown: &[Shown]) {
        for s in shown {
            let Some(Entry::Bound(b)) = self.env.get(&s.root) else { continue };
            if b.id != s.binding {
                continue;
            }
            let span = if s.place == s.root { b.span } else { s.span };
            let entry = Entry::Bound(Binding {
                id: if s.place == s.root { b.id } else { 0 },
                ty: s.inside.clone(),
                span,
                whole: Some(s.whole.clone()),
                literal: None,
                fields: Fields::Some,
            });
            match s.place == s.root {
                true => self.env.set(&s.root, Some(entry)),
                false => self.env.set_place(&s.root, &s.place, entry),
            }
        }
    }

    /// Takes it as known from here on that a condition holds, or fails.
    pub(super) fn assume(&mut self, condition: &Expr, holds: bool) {
        let shown = self.shown_by(condition, holds);
        self.apply(&shown);
    }

    /// Calls `f` where this is known.
    pub(super) fn under<T>(&mut self, shown: Vec<Shown>, f: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.env.mark();
        self.apply(&shown);
        let out = f(self);
        self.env.undo(mark);
        out
    }

    /// The changes of a block where this is known.
    pub(super) fn branch_under(&mut self, block: Option<&Block>, shown: &[Shown]) -> Changes {
        let mark = self.env.mark();
        self.apply(shown);
        if let Some(block) = block {
            self.block(block);
        }
        self.env.undo(mark)
    }

    /// The inside of an optional field, where a condition has shown that it is there.
    pub(super) fn shown_of(&self, e: &Expr) -> Option<Type> {
        if self.wide {
            return None;
        }
        let (root, fields) = place_of(e)?;
        if !self.env.has_places(root) {
            return None;
        }
        match self.env.get(&key(root, fields.iter().rev())) {
            Some(Entry::Bound(b)) if b.whole.is_some() => Some(b.ty.clone()),
            _ => None,
        }
    }

    /// [`shown_of`](Self::shown_of), noted for the term.
    pub(super) fn narrowed(&mut self, e: &Expr) -> Option<Type> {
        let ty = self.shown_of(e)?;
        self.facts.narrowed.insert(e.span, ty.clone());
        Some(ty)
    }

    /// The type of an expression that must be an option. What conditions have shown of it is not looked at,
    /// so that it may be asked again.
    pub(super) fn whole(&mut self, e: &Expr) -> Type {
        let ty = self.expr(e, None);
        if matches!(ty, Type::Option(_) | Type::Dyn) {
            return ty;
        }
        self.option_of(e).unwrap_or(ty)
    }

    /// The option of a place, where a condition has shown that it is not null.
    fn option_of(&self, e: &Expr) -> Option<Type> {
        let (root, fields) = place_of(e)?;
        match self.env.get(&key(root, fields.iter().rev())) {
            Some(Entry::Bound(Binding { whole: Some(whole), .. })) => Some(whole.clone()),
            _ => None,
        }
    }

    /// Returns whether two expressions can be compared if what conditions have shown of them is not looked
    /// at.
    pub(super) fn comparable_whole(&mut self, a: &Expr, b: &Expr) -> bool {
        if self.wide {
            return false;
        }
        let (errors, variables) = (self.out.len(), self.facts.variables.len());
        self.wide = true;
        let (ta, tb) = self.both(a, b);
        self.wide = false;
        self.out.truncate(errors);
        self.facts.variables.truncate(variables);
        comparable(&ta, &tb)
    }

    /// `e?.name`: null if `e` is.
    pub(super) fn optional_field(&mut self, e: &Expr, base: &Expr, name: &ast::Name) -> Type {
        let (ty, absent) = match self.expr(base, None) {
            Type::Option(t) => (unconditional(&t.unfolded()), true),
            Type::Dyn => (Type::Dyn, true),
            other if self.option_of(base).is_some() => (other, false),
            other => {
                let dot = Span { start: base.span.end, end: name.span.start, ..name.span };
                self.report(
                    Diagnostic::error(codes::NOT_AN_OPTION, "`?.` needs an option before it", dot)
                        .remark(base.span, format!("this is {}", show(&other)))
                        .help("only a value of type `Option[…]` can be absent; write `.`")
                        .fix(Fix {
                            span: dot,
                            replacement: ".".into(),
                            applicability: Applicability::Unsafe,
                        }),
                );
                return match other {
                    Type::Record(_) => self.field(e, base, other, name),
                    _ => Type::Dyn,
                };
            }
        };
        match self.field(e, base, ty, name) {
            found @ (Type::Option(_) | Type::Dyn) => found,
            found if absent => self.narrowed(e).unwrap_or_else(|| Type::option(found)),
            // The term has a case for null, which is not reached.
            found => {
                self.facts.narrowed.insert(e.span, found.clone());
                found
            }
        }
    }
}

/// Returns true if a `?.` is in a place.
fn has_optional(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::OptionalField(..) => true,
        ExprKind::Paren(inner) | ExprKind::Field(inner, _) => has_optional(inner),
        _ => false,
    }
}
