//! Lists that are computed of lists: what is taken of each, what stands at the same place, what a test keeps.

use super::Reader;
use super::value::{Held, Scope};
use crate::emit::Template;
use crate::kit::Kit;
use core_ir::{Bound, IfSugar, Name, Num, Prim, Term, TermId};
use diagnostics::Span;
use python::{Kind, Value};

impl Reader<'_, '_> {
    /// `enumerate(xs, from)`, `zip(xs, ys)`: lists of what stands at the same place, as far as the first goes.
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
        /// More than any list holds here.
        const MOST: u64 = 1_000_000;
        let [of, element, each, test] = parts;
        let (list, id) = (self.expr(kit, scope, of), self.world.object_of(element)?.0);
        let (item, at_item): (Name, Name) = (kit.b.fresh("each"), kit.b.fresh("turn"));
        let mut inner = scope.clone();
        inner.held.insert(id, Held { var: item.clone(), kind: self.item_kind(scope, of), live: false });
        let (test, each) = (self.test(kit, &inner, test), self.expr(kit, &inner, each));
        let field = |kit: &mut Kit<'_>, name: &str| {
            let turn = kit.b.var(at_item.clone(), at);
            kit.b.add(Term::Field(turn, name.into()), at)
        };
        let (so_far, again) = (field(kit, "out"), field(kit, "out"));
        let more = kit.b.add(Term::Prim(Prim::Append, vec![so_far, each]), at);
        let out = kit.b.add(Term::If(test, more, again, IfSugar::Plain), at);
        let (index, one, rest) = (field(kit, "at"), kit.b.lit(Num::from(1i64), at), field(kit, "of"));
        let next = kit.b.add(Term::Prim(Prim::Add, vec![index, one]), at);
        let fields = vec![("at".into(), next), ("of".into(), rest), ("out".into(), out)];
        let turn = kit.b.add(Term::Record(fields), at);
        let this = kit.b.var("self", at);
        let again = kit.b.app(this, turn, at);
        let (items, index) = (field(kit, "of"), field(kit, "at"));
        let one = kit.b.add(Term::Index(items, index), at);
        let again = kit.b.let_in(vec![(item, one)], again, at);
        let (items, index, result) = (field(kit, "of"), field(kit, "at"), field(kit, "out"));
        let count = kit.b.add(Term::Prim(Prim::Length, vec![items]), at);
        let goes_on = kit.b.add(Term::Prim(Prim::Lt, vec![index, count]), at);
        let body = kit.b.add(Term::If(goes_on, again, result, IfSugar::Plain), at);
        let step = kit.b.abs(at_item, None, body, at);
        let body = kit.b.abs("self", None, step, at);
        let fix = kit.b.add(Term::Fix { bound: Bound::Finite(MOST), origin: None, body }, at);
        let (zero, nothing) = (kit.b.lit(Num::from(0i64), at), kit.b.add(Term::List(Vec::new()), at));
        let fields = vec![("at".into(), zero), ("of".into(), list), ("out".into(), nothing)];
        let begin = kit.b.add(Term::Record(fields), at);
        Some(kit.b.app(fix, begin, at))
    }

    /// The items of a list that is wholly known.
    pub(super) fn known_list<'v>(&'v self, value: &'v Value) -> Option<&'v [Value]> {
        let items = self.world.items(value)?;
        let open = matches!(value.kind, Kind::List(id) if self.world.list(id).open.is_some());
        (!open && items.iter().all(|i| !i.maybe)).then_some(items)
    }

    /// `p(x) for x in xs` as the list of what the tests give; `all` of nothing holds, as `any` of nothing does not.
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
        inner.held.insert(id, Held { var: var.clone(), kind, live: false });
        let test = self.test(kit, &inner, &each.value);
        let test = kit.b.abs(var, None, test, at);
        Some(kit.b.add(Term::Each(None, test, items), at))
    }
}
