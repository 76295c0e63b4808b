//! Loops over lists.

use crate::kit::Kit;
use core_ir::{Bound, Branch, Data, IfSugar, Name, Num, Prim, Role, Term, TermId};
use diagnostics::Span;

/// Folds a list item by item, from the first value on. `next` is given the maker of the value so far.
pub fn folded(
    kit: &mut Kit<'_>,
    list: TermId,
    first: TermId,
    item: Name,
    at: Span,
    next: impl FnOnce(&mut Kit<'_>, &dyn Fn(&mut Kit<'_>) -> TermId) -> TermId,
) -> TermId {
    /// More than any list holds here.
    const MAX_ITEMS: u64 = 1_000_000;
    let turn: Name = kit.b.fresh("turn");
    let field = |kit: &mut Kit<'_>, name: &str| {
        let turn = kit.b.var(turn.clone(), at);
        kit.b.add(Term::Field(turn, name.into()), at)
    };
    let out = next(kit, &|kit| field(kit, "out"));
    let (index, one, rest) = (field(kit, "at"), kit.b.lit(Num::from(1i64), at), field(kit, "of"));
    let index = kit.b.add(Term::Prim(Prim::Add, vec![index, one]), at);
    let fields = vec![("at".into(), index), ("of".into(), rest), ("out".into(), out)];
    let next = kit.b.add(Term::Record(fields), at);
    let this = kit.b.var("self", at);
    let again = kit.b.app(this, next, at);
    let (items, index) = (field(kit, "of"), field(kit, "at"));
    let one = kit.b.add(Term::Index(items, index), at);
    let again = kit.b.let_in(vec![(item, one)], again, at);
    let (items, index, result) = (field(kit, "of"), field(kit, "at"), field(kit, "out"));
    let count = kit.b.add(Term::Prim(Prim::Length, vec![items]), at);
    let goes_on = kit.b.add(Term::Prim(Prim::Lt, vec![index, count]), at);
    let body = kit.b.add(Term::If(goes_on, again, result, IfSugar::Plain), at);
    let step = kit.b.abs(turn.clone(), None, body, at);
    let body = kit.b.abs("self", None, step, at);
    let fix = kit.b.add(Term::Fix { bound: Bound::Finite(MAX_ITEMS), origin: None, body }, at);
    let zero = kit.b.lit(Num::from(0i64), at);
    let fields = vec![("at".into(), zero), ("of".into(), list), ("out".into(), first)];
    let begin = kit.b.add(Term::Record(fields), at);
    kit.b.app(fix, begin, at)
}

/// Says the messages of a list, in its order, each by whom it names.
pub fn said_each(kit: &mut Kit<'_>, list: TermId, at: Span) -> TermId {
    let message: Name = kit.b.fresh("m");
    let field = |kit: &mut Kit<'_>, name: &str| {
        let of = kit.b.var(message.clone(), at);
        kit.b.add(Term::Field(of, name.into()), at)
    };
    let say = |kit: &mut Kit<'_>, role: Role| {
        let text = field(kit, "content");
        kit.b.add(Term::Send(role, text), at)
    };
    let nothing = kit.b.lit(Data::Null, at);
    folded(kit, list, nothing, message.clone(), at, |kit, _| {
        let branches = [Role::User, Role::System, Role::Tool].map(|role| Branch {
            tag: role.as_str().into(),
            binder: None,
            body: say(kit, role),
        });
        let default = Some(say(kit, Role::Assistant));
        let role = field(kit, "role");
        let said = kit.b.add(Term::Case { scrutinee: role, branches: branches.into(), default }, at);
        let nothing = kit.b.lit(Data::Null, at);
        kit.b.let_in(vec![("_".into(), said)], nothing, at)
    })
}
