//! Conditions of `if-else` nodes and of loops.
//!
//! Source: langgenius/dify, `api/core/workflow/utils/condition/processor.py`.

use super::{DifyLowering, holes};
use core_ir::{Data, IfSugar, Num, Prim, Term, TermId};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::{Part, codes};
use frontend_kit::graph::Env;
use frontend_kit::kit::Kit;

impl<'d> DifyLowering<'_, '_, 'd> {
    /// The test of one condition.
    fn condition(&self, kit: &mut Kit<'_>, c: Node<'d>, env: &Env, at: Span) -> TermId {
        let operator = c.get("comparison_operator").and_then(|o| o.text()).unwrap_or("");
        let value = self.selected(kit, c.get("variable_selector"), env, Data::Null, at);
        let written = c.get("value").and_then(|v| v.text()).unwrap_or("");
        let is_number = c.get("varType").and_then(|t| t.text()) == Some("number");
        if c.get("sub_variable_condition").is_some_and(|s| s.is_mapping()) {
            return kit.undecided(codes::NOT_COMPILED, "a condition on the parts of files".into(), at);
        }
        let other = |kit: &mut Kit<'_>| {
            let parts = holes(written);
            match written.trim().parse::<Num>() {
                Ok(n) if is_number => kit.b.lit(n, at),
                _ if matches!(parts[..], [Part::Text(_)]) => kit.text(written, at),
                _ => self.text(kit, written, env, None, at),
            }
        };
        let text = |kit: &mut Kit<'_>, v| kit.b.add(Term::Prim(Prim::ToStr, vec![v]), at);
        let not = |kit: &mut Kit<'_>, t| kit.b.add(Term::Prim(Prim::Not, vec![t]), at);
        let two = |kit: &mut Kit<'_>, prim: Prim, a, b| kit.b.add(Term::Prim(prim, vec![a, b]), at);
        let number = |kit: &mut Kit<'_>, v| {
            let s = kit.b.add(Term::Prim(Prim::ToStr, vec![v]), at);
            kit.b.add(Term::Prim(Prim::ToNum, vec![s]), at)
        };
        let compare = |kit: &mut Kit<'_>, prim| {
            let (v, o) = (number(kit, value), other(kit));
            let o = number(kit, o);
            two(kit, prim, v, o)
        };
        match operator {
            "contains" | "not contains" => {
                let (v, o) = (text(kit, value), other(kit));
                let t = two(kit, Prim::Contains, v, o);
                if operator == "contains" { t } else { not(kit, t) }
            }
            "is" | "is not" | "=" | "≠" => {
                let (v, o) = (text(kit, value), other(kit));
                let o = text(kit, o);
                two(kit, if matches!(operator, "is" | "=") { Prim::Eq } else { Prim::Ne }, v, o)
            }
            ">" => compare(kit, Prim::Gt),
            "<" => compare(kit, Prim::Lt),
            "≥" | ">=" => compare(kit, Prim::Ge),
            "≤" | "<=" => compare(kit, Prim::Le),
            "empty" | "not empty" => {
                // Nothing, an empty text, list or record.
                let held = kit.b.var("$seen", at);
                let none = kit.b.add(Term::Prim(Prim::IsNull, vec![held]), at);
                let held = kit.b.var("$seen", at);
                let shown = text(kit, held);
                let empty = kit.b.lit(Data::list(["", "[]", "{}"].map(Data::str).to_vec()), at);
                let among = two(kit, Prim::Contains, empty, shown);
                let yes = kit.b.lit(Data::Bool(true), at);
                let test = kit.b.add(Term::If(none, yes, among, IfSugar::Or), at);
                let test = kit.b.let_in(vec![("$seen".into(), value)], test, at);
                if operator == "empty" { test } else { not(kit, test) }
            }
            "in" | "not in" => {
                let v = text(kit, value);
                let list = match c.get("value").filter(|v| v.is_sequence()) {
                    Some(list) => {
                        let items = list.items().filter_map(|i| i.text()).map(Data::str).collect::<Vec<_>>();
                        kit.b.lit(Data::list(items), at)
                    }
                    None => other(kit),
                };
                let t = two(kit, Prim::Contains, list, v);
                if operator == "in" { t } else { not(kit, t) }
            }
            "all of" => {
                let mut all: Option<TermId> = None;
                for item in c.get("value").into_iter().flat_map(|v| v.items()).filter_map(|i| i.text()) {
                    let (v, item) = (
                        self.selected(kit, c.get("variable_selector"), env, Data::Null, at),
                        kit.text(item, at),
                    );
                    let this = two(kit, Prim::Contains, v, item);
                    all = Some(match all {
                        None => this,
                        Some(before) => {
                            let no = kit.b.lit(Data::Bool(false), at);
                            kit.b.add(Term::If(before, this, no, IfSugar::And), at)
                        }
                    });
                }
                all.unwrap_or_else(|| kit.b.lit(Data::Bool(true), at))
            }
            "null" | "not exists" => kit.b.add(Term::Prim(Prim::IsNull, vec![value]), at),
            "not null" | "exists" => {
                let t = kit.b.add(Term::Prim(Prim::IsNull, vec![value]), at);
                not(kit, t)
            }
            "start with" | "end with" => {
                let (v, o) = (text(kit, value), other(kit));
                let o = text(kit, o);
                let var = |kit: &mut Kit<'_>, name: &str| kit.b.var(name, at);
                let length = |kit: &mut Kit<'_>, name: &str| {
                    let of = var(kit, name);
                    kit.b.add(Term::Prim(Prim::Length, vec![of]), at)
                };
                // A longer text stands nowhere in a shorter one.
                let (long, short) = (length(kit, "$text"), length(kit, "$part"));
                let fits = two(kit, Prim::Ge, long, short);
                let (from, to) = match operator {
                    "start with" => (kit.b.lit(Num::ZERO, at), length(kit, "$part")),
                    _ => {
                        let (long, short) = (length(kit, "$text"), length(kit, "$part"));
                        (two(kit, Prim::Sub, long, short), length(kit, "$text"))
                    }
                };
                let of = var(kit, "$text");
                let cut = kit.b.add(Term::Prim(Prim::Slice, vec![of, from, to]), at);
                let part = var(kit, "$part");
                let same = two(kit, Prim::Eq, cut, part);
                let no = kit.b.lit(Data::Bool(false), at);
                let test = kit.b.add(Term::If(fits, same, no, IfSugar::And), at);
                kit.b.let_in(vec![("$text".into(), v), ("$part".into(), o)], test, at)
            }
            _ => kit.unknown(&format!("the condition {operator}"), at),
        }
    }

    pub(super) fn conditions(
        &self,
        kit: &mut Kit<'_>,
        case: Node<'d>,
        list: &str,
        env: &Env,
        at: Span,
    ) -> TermId {
        let any = case.get("logical_operator").and_then(|o| o.text()) == Some("or");
        let mut all: Option<TermId> = None;
        for c in case.get(list).into_iter().flat_map(|c| c.items()) {
            let test = self.condition(kit, c, env, c.head());
            all = Some(match all {
                None => test,
                Some(before) => {
                    let known = kit.b.lit(Data::Bool(any), at);
                    let (yes, no) = if any { (known, test) } else { (test, known) };
                    let sugar = if any { IfSugar::Or } else { IfSugar::And };
                    kit.b.add(Term::If(before, yes, no, sugar), at)
                }
            });
        }
        all.unwrap_or_else(|| kit.b.lit(Data::Bool(!any), at))
    }
}
