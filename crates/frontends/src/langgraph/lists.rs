//! Lists that are computed of lists: what is taken of each, what stands at the same place, what a test keeps.

use super::GraphReader;
use super::value::{BoundResult, Scope};
use core_ir::{IfSugar, Name, Num, Prim, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::Template;
use frontend_kit::kit::Kit;
use frontend_kit::lists::folded;
use python::{Condition, PyKind, Value};

impl GraphReader<'_, '_> {
    /// `enumerate(xs, from)`, `zip(xs, ys)`: lists of what stands at the same place, as far as the first
    /// goes.
    pub(super) fn paired(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        lists: &[&Value],
        from: Option<i64>,
        at: Span,
    ) -> Option<TermId> {
        let names: Vec<Name> = lists.iter().map(|_| kit.b.fresh("v")).collect();
        let place: Name = kit.b.fresh("turn");
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut items: Vec<TermId> = Vec::new();
        if let Some(from) = from {
            let (i, from) = (kit.b.var(place.clone(), at), kit.b.lit(Num::from(from), at));
            items.push(kit.b.add(Term::Prim(Prim::Add, vec![i, from]), at));
        }
        for (name, list) in names.iter().zip(lists) {
            let list = self.expr(kit, scope, list);
            bindings.push((name.clone(), list));
            let (list, i) = (kit.b.var(name.clone(), at), kit.b.var(place.clone(), at));
            items.push(kit.b.add(Term::Index(list, i), at));
        }
        let pair = kit.b.add(Term::List(items), at);
        let pair = kit.b.abs(place, None, pair, at);
        let length = |kit: &mut Kit<'_>, name: &Name| {
            let list = kit.b.var(name.clone(), at);
            kit.b.add(Term::Prim(Prim::Length, vec![list]), at)
        };
        // The shortest ends it.
        let mut most = length(kit, names.first()?);
        for name in &names[1..] {
            let (a, b): (Name, Name) = (kit.b.fresh("v"), kit.b.fresh("v"));
            let other = length(kit, name);
            let (x, y) = (kit.b.var(a.clone(), at), kit.b.var(b.clone(), at));
            let less = kit.b.add(Term::Prim(Prim::Lt, vec![x, y]), at);
            let (x, y) = (kit.b.var(a.clone(), at), kit.b.var(b.clone(), at));
            let least = kit.b.add(Term::If(less, x, y, IfSugar::Plain), at);
            most = kit.b.let_in(vec![(a, most), (b, other)], least, at);
        }
        let zero = kit.b.lit(Num::from(0i64), at);
        let places = kit.b.add(Term::Prim(Prim::Range, vec![zero, most]), at);
        let each = kit.b.add(Term::Each(None, pair, places), at);
        Some(kit.b.let_in(bindings, each, at))
    }

    /// Messages as text, a line each: `Human: …`.
    pub(super) fn buffer(&self, kit: &mut Kit<'_>, messages: TermId, at: Span) -> TermId {
        let var: Name = kit.b.fresh("m");
        let field = |kit: &mut Kit<'_>, name: &str| {
            let message = kit.b.var(var.clone(), at);
            kit.b.add(Term::Field(message, name.into()), at)
        };
        let mut who = kit.text("Tool", at);
        for (role, shown) in [("system", "System"), ("assistant", "AI"), ("user", "Human")] {
            let (said, role, shown) = (field(kit, "role"), kit.text(role, at), kit.text(shown, at));
            let test = kit.b.add(Term::Prim(Prim::Eq, vec![said, role]), at);
            who = kit.b.add(Term::If(test, shown, who, IfSugar::Plain), at);
        }
        let mut line = Template::new(at);
        line.term(who).text(": ").term(field(kit, "content"));
        let line = line.build(&mut kit.b);
        let function = kit.b.abs(var, None, line, at);
        let lines = kit.b.add(Term::Each(None, function, messages), at);
        let by = kit.text("\n", at);
        kit.b.add(Term::Prim(Prim::Join, vec![lines, by]), at)
    }

    /// `[each for element in of if test]`: a turn for each item.
    pub(super) fn filtered(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        parts: [&Value; 4],
        at: Span,
    ) -> Option<TermId> {
        let [of, element, each, test] = parts;
        let (list, id) = (self.expr(kit, scope, of), self.world.object_of(element)?.0);
        let item: Name = kit.b.fresh("each");
        let mut inner = scope.clone();
        inner
            .held
            .insert(id, BoundResult { var: item.clone(), kind: self.item_kind(scope, of), live: false });
        let nothing = kit.b.add(Term::List(Vec::new()), at);
        Some(folded(kit, list, nothing, item, at, |kit, so_far| {
            let test =
                self.side(kit, &inner, || Condition::Each(id), |kit, inner| self.test(kit, inner, test));
            let each =
                self.side(kit, &inner, || Condition::Each(id), |kit, inner| self.expr(kit, inner, each));
            let (whole, again) = (so_far(kit), so_far(kit));
            let more = kit.b.add(Term::Prim(Prim::Append, vec![whole, each]), at);
            kit.b.add(Term::If(test, more, again, IfSugar::Plain), at)
        }))
    }

    /// Lowers builtins of Python over a list: `sum`, `max`, `min`, `next`, `filter(None, …)`, `map(str, …)`,
    /// and the words of a text.
    pub(super) fn of_list(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        callee: &str,
        args: &[&Value],
        at: Span,
    ) -> Option<TermId> {
        let item: Name = kit.b.fresh("each");
        let var = |kit: &mut Kit<'_>, name: &Name| kit.b.var(name.clone(), at);
        match (callee, args) {
            ("builtins.sum", [of]) => {
                // Of tests, how many hold.
                let tests = match self.world.object_of(of) {
                    Some((_, o)) if &*o.callee == "[for]" => {
                        o.args.get(2).is_some_and(|a| self.is_test(&a.value))
                    }
                    _ => false,
                };
                let list = match tests {
                    true => self.tests_of(kit, scope, of, at)?,
                    false => self.expr(kit, scope, of),
                };
                let zero = kit.b.lit(Num::from(0i64), at);
                Some(folded(kit, list, zero, item.clone(), at, |kit, so_far| {
                    let (sum, more) = (so_far(kit), var(kit, &item));
                    let more = match tests {
                        false => more,
                        true => {
                            let (one, none) =
                                (kit.b.lit(Num::from(1i64), at), kit.b.lit(Num::from(0i64), at));
                            kit.b.add(Term::If(more, one, none, IfSugar::Plain), at)
                        }
                    };
                    kit.b.add(Term::Prim(Prim::Add, vec![sum, more]), at)
                }))
            }
            ("builtins.max" | "builtins.min", [of]) => {
                let list: Name = kit.b.fresh("v");
                let of = self.expr(kit, scope, of);
                let (all, first) = (var(kit, &list), var(kit, &list));
                let zero = kit.b.lit(Num::from(0i64), at);
                let first = kit.b.add(Term::Index(first, zero), at);
                let best = folded(kit, all, first, item.clone(), at, |kit, so_far| {
                    let (old, new) = (so_far(kit), var(kit, &item));
                    let less = kit.b.add(Term::Prim(Prim::Lt, vec![old, new]), at);
                    let (old, new) = (so_far(kit), var(kit, &item));
                    let (yes, no) = if callee == "builtins.max" { (new, old) } else { (old, new) };
                    kit.b.add(Term::If(less, yes, no, IfSugar::Plain), at)
                });
                Some(kit.b.let_in(vec![(list, of)], best, at))
            }
            ("builtins.next", [of, rest @ ..]) if rest.len() < 2 => {
                let list: Name = kit.b.fresh("v");
                let all = self.expr(kit, scope, of);
                let (a, b) = (var(kit, &list), var(kit, &list));
                let zero = kit.b.lit(Num::from(0i64), at);
                let first = kit.b.add(Term::Index(a, zero), at);
                let Some(default) = rest.first() else {
                    return Some(kit.b.let_in(vec![(list, all)], first, at));
                };
                let default = self.expr(kit, scope, default);
                let default = kit.b.add(Term::Check("value".into(), core_ir::Type::Dyn, default), at);
                let count = kit.b.add(Term::Prim(Prim::Length, vec![b]), at);
                let zero = kit.b.lit(Num::from(0i64), at);
                let some = kit.b.add(Term::Prim(Prim::Gt, vec![count, zero]), at);
                let either = kit.b.add(Term::If(some, first, default, IfSugar::Plain), at);
                Some(kit.b.let_in(vec![(list, all)], either, at))
            }
            ("builtins.filter", [test, of]) if test.is_none() => {
                let list = self.expr(kit, scope, of);
                Some(self.full(kit, list, at))
            }
            ("builtins.map", [function, of]) => {
                let name = self.world.name_of(function)?;
                let op = match &*name {
                    "builtins.str" => Prim::ToStr,
                    "builtins.len" => Prim::Length,
                    _ => return None,
                };
                let list = self.expr(kit, scope, of);
                let one = var(kit, &item);
                let one = kit.b.add(Term::Prim(op, vec![one]), at);
                let one = kit.b.abs(item, None, one, at);
                Some(kit.b.add(Term::Each(None, one, list), at))
            }
            _ => None,
        }
    }

    /// The words of a text: what stands between white space.
    pub(super) fn words(&self, kit: &mut Kit<'_>, text: TermId, at: Span) -> TermId {
        let mut text = text;
        for space in ["\n", "\t", "\r"] {
            let (by, other) = (kit.text(space, at), kit.text(" ", at));
            let parts = kit.b.add(Term::Prim(Prim::Split, vec![text, by]), at);
            text = kit.b.add(Term::Prim(Prim::Join, vec![parts, other]), at);
        }
        let by = kit.text(" ", at);
        let parts = kit.b.add(Term::Prim(Prim::Split, vec![text, by]), at);
        self.full(kit, parts, at)
    }

    /// The items of a list that count as true.
    fn full(&self, kit: &mut Kit<'_>, list: TermId, at: Span) -> TermId {
        let item: Name = kit.b.fresh("each");
        let nothing = kit.b.add(Term::List(Vec::new()), at);
        folded(kit, list, nothing, item.clone(), at, |kit, so_far| {
            let one = kit.b.var(item.clone(), at);
            let test = super::value::truthy(kit, one, at);
            let (whole, again, one) = (so_far(kit), so_far(kit), kit.b.var(item.clone(), at));
            let more = kit.b.add(Term::Prim(Prim::Append, vec![whole, one]), at);
            kit.b.add(Term::If(test, more, again, IfSugar::Plain), at)
        })
    }

    /// Returns true if every alternative of a value is a boolean.
    pub(super) fn is_test(&self, value: &Value) -> bool {
        const TESTS: &[&str] = &[
            "==",
            "!=",
            "<",
            "<=",
            ">",
            ">=",
            "in",
            "not in",
            "not",
            "is",
            "is not",
            "builtins.bool",
            "builtins.isinstance",
            "builtins.any",
            "builtins.all",
        ];
        match &value.kind {
            PyKind::Bool(_) => true,
            _ => self
                .world
                .object_of(value)
                .is_some_and(|(_, o)| o.base.is_none() && TESTS.contains(&&*o.callee)),
        }
    }

    /// The items of a list that is wholly known.
    pub(super) fn known_list<'v>(&'v self, value: &'v Value) -> Option<&'v [Value]> {
        let items = self.world.items(value)?;
        let open = matches!(value.kind, PyKind::List(id) if self.world.list(id).open.is_some());
        (!open && items.iter().all(|i| !i.maybe)).then_some(items)
    }

    /// `p(x) for x in xs` as the list of what the tests give; `all` of nothing holds, as `any` of nothing
    /// does not.
    pub(super) fn tests_of(&self, kit: &mut Kit<'_>, scope: &Scope, of: &Value, at: Span) -> Option<TermId> {
        let (_, object) = self.world.object_of(of)?;
        let [list, element, each] = &object.args[..] else { return None };
        if &*object.callee != "[for]" {
            return None;
        }
        let id = self.world.object_of(&element.value)?.0;
        let items = self.expr(kit, scope, &list.value);
        let var: Name = kit.b.fresh("each");
        let mut inner = scope.clone();
        let kind = self.item_kind(scope, &list.value);
        inner.held.insert(id, BoundResult { var: var.clone(), kind, live: false });
        let under = || Condition::Each(id);
        let test = self.side(kit, &inner, under, |kit, inner| self.test(kit, inner, &each.value));
        let test = kit.b.abs(var, None, test, at);
        Some(kit.b.add(Term::Each(None, test, items), at))
    }
}
