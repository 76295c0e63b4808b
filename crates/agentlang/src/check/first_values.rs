//! Variables whose first value says little: `let xs = [];`, `let counts = {};`, `let best = null;`.
//!
//! Entry point: [`Checker::item`]. A body with such a variable is checked once more if it has errors: what
//! the first pass has seen of later uses is what the variable is then declared as.
//!
//! Invariant: a body that has no errors means what its first pass says. So the second pass decides only what
//! would be refused.

use super::Checker;
use super::env::Entry;
use crate::codes;
use crate::exits::blocks_of;
use crate::types::{fits, join};
use core_ir::Type;
use diagnostics::{Diagnostic, Level, Span};
use std::collections::HashMap;
use syntax::agent::ast::{Block, Expr, ExprKind, Item, Name, StmtKind};

/// The most passes. More than two are needed where one such variable is given to another.
const MAX_PASSES: usize = 4;

/// A value that says little of the type of its variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstValue {
    List,
    Map,
    Null,
}

/// Knowledge about such variables in the body that is checked.
#[derive(Default)]
pub(super) struct FirstValues {
    /// True if uses are noted.
    noting: bool,
    /// The variables so far, by name, with the places where they got their first values.
    begun: HashMap<String, (Span, FirstValue)>,
    /// The types of their uses, by these places.
    uses: HashMap<Span, Vec<Type>>,
    /// The types that earlier passes have found.
    found: HashMap<Span, Type>,
}

fn first_value(e: &Expr) -> Option<FirstValue> {
    match &e.kind {
        ExprKind::Paren(e) => first_value(e),
        ExprKind::List(items) if items.is_empty() => Some(FirstValue::List),
        ExprKind::Record(fields) | ExprKind::Map(fields) if fields.is_empty() => Some(FirstValue::Map),
        ExprKind::Null => Some(FirstValue::Null),
        _ => None,
    }
}

/// Returns true if some variable of a block begins with such a value.
fn has_first_value(block: &Block) -> bool {
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for stmt in &block.stmts {
            if let StmtKind::Let(_, None, e) = &stmt.kind
                && first_value(e).is_some()
            {
                return true;
            }
            work.extend(blocks_of(stmt));
        }
    }
    false
}

/// Returns true if nothing in the type is left to the run.
fn is_known(ty: &Type) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
        Type::Dyn => false,
        Type::List(t) | Type::Option(t) => is_known(t),
        Type::Map(of) => is_known(&of.0) && is_known(&of.1),
        Type::Record(parts) | Type::Variant(parts) => parts.iter().all(|(_, t)| is_known(t)),
        _ => true,
    })
}

fn errors(found: &[Diagnostic]) -> usize {
    found.iter().filter(|d| d.level == Level::Error).count()
}

impl Checker<'_> {
    /// Checks an item, in a second pass with what the first has seen of its variables.
    pub(super) fn item(&mut self, item: &Item, constants: usize) {
        let body = match item {
            Item::Pipeline(p) | Item::Function(p) => Some(&p.body),
            Item::Test(t) => Some(&t.body),
            _ => None,
        };
        let before = self.out.len();
        self.first_values =
            FirstValues { noting: body.is_some_and(has_first_value), ..FirstValues::default() };
        if !self.first_values.noting {
            return self.item_once(item, constants);
        }
        let facts = std::mem::take(&mut self.facts);
        self.item_once(item, constants);
        let mut kept = (self.out.split_off(before), std::mem::take(&mut self.facts));
        for _ in 1..MAX_PASSES {
            if errors(&kept.0) == 0 || !self.first_values.learn() {
                break;
            }
            self.item_once(item, constants);
            let next = (self.out.split_off(before), std::mem::take(&mut self.facts));
            let is_list = |d: &Diagnostic| d.code == codes::EMPTY_LIST;
            // Of a list nothing was known before, so what is wrong now is wrong of the program.
            if errors(&next.0) < errors(&kept.0) || kept.0.iter().any(is_list) {
                kept = next;
            }
        }
        self.out.extend(kept.0);
        self.facts = facts;
        self.facts.extend(kept.1);
    }

    /// The type of the value that `let` without a type gives a variable.
    pub(super) fn bound_value(&mut self, name: &Name, e: &Expr, want: Option<&Type>) -> Type {
        let Some(kind) = first_value(e).filter(|_| self.first_values.noting) else {
            let ty = self.typed(e, want);
            self.used_as(&name.text, &ty);
            // What the other name is used as, this one is.
            if let ExprKind::Var(other) = &e.kind
                && !is_known(&ty)
                && let Some(begun) = self.first_values.begun.get(other).copied()
            {
                self.first_values.begun.insert(name.text.clone(), begun);
            }
            return ty;
        };
        // One that is emptied again has the type that it had.
        let before = match (self.env.get(&name.text), kind) {
            (Some(Entry::Bound(b)), FirstValue::List) => Some(&b.ty).filter(|t| matches!(t, Type::List(_))),
            (Some(Entry::Bound(b)), FirstValue::Map) => Some(&b.ty).filter(|t| matches!(t, Type::Map(_))),
            _ => None,
        };
        let before = before.filter(|t| is_known(t)).cloned();
        let (place, _) = *(self.first_values.begun)
            .entry(name.text.clone())
            .and_modify(|begun| {
                if begun.1 != kind {
                    *begun = (name.span, kind);
                }
            })
            .or_insert((name.span, kind));
        match self.first_values.found.get(&place).cloned().or(before) {
            None => self.typed(e, want),
            Some(known) => {
                let ty = self.typed(e, Some(&known));
                if fits(&ty, &known) { known } else { ty }
            }
        }
    }

    /// Notes that a variable is given a value of a type, or stands where one is wanted.
    pub(super) fn used_as(&mut self, name: &str, ty: &Type) {
        if !self.first_values.noting || !is_known(ty) {
            return;
        }
        let Some((place, kind)) = self.first_values.begun.get(name) else { return };
        let ty = match (kind, ty) {
            (FirstValue::List, Type::List(_)) | (FirstValue::Map, Type::Map(_)) => ty.clone(),
            (FirstValue::List | FirstValue::Map, Type::Option(t))
                if matches!(**t, Type::List(_) | Type::Map(_)) =>
            {
                return self.used_as(name, t);
            }
            (FirstValue::Null, Type::Option(_)) => ty.clone(),
            (FirstValue::Null, ty) if *ty != Type::Null => Type::option(ty.clone()),
            _ => return,
        };
        self.first_values.uses.entry(*place).or_default().push(ty);
    }

    /// Notes the use of an argument or operand that is a variable.
    pub(super) fn argument_used_as(&mut self, e: Option<&Expr>, ty: impl FnOnce() -> Type) {
        if let Some(Expr { kind: ExprKind::Var(name), .. }) = e
            && self.first_values.noting
        {
            self.used_as(name, &ty());
        }
    }
}

impl FirstValues {
    /// Takes over what a pass has seen. Returns false if that is nothing new.
    fn learn(&mut self) -> bool {
        self.begun.clear();
        let mut is_new = false;
        for (place, types) in self.uses.drain() {
            let mut types = types.into_iter();
            let Some(first) = types.next() else { continue };
            let ty = types.fold(first, |all, ty| join(&all, &ty).unwrap_or(all));
            is_new |= self.found.get(&place) != Some(&ty);
            self.found.insert(place, ty);
        }
        is_new
    }
}
