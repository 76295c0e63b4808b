//! Values that are used several times, computed once: `let v = … in …`.
//!
//! A value of Python's that two others are made of would stand in both, and those in what is made of them:
//! terms would grow with each name that a program gives. So what is worth a name gets one, at the place where
//! Python has computed it: after the calls that it is made of, under the tests that it was made under, and no
//! earlier.
//!
//! Entry points: [`GraphReader::sharing`] says what is worth a name, [`Scope::opened`] begins a place that
//! names are given in, and [`GraphReader::shared`] gives one.
//!
//! Invariant: what Python computes only on one way is not computed on another one: a value gets its name at a
//! place whose tests it was made under.

use super::calls::Call;
use super::value::{BoundResult, Scope};
use super::{GraphReader, ReplyKind, Traced};
use core_ir::{IfSugar, Name, Prim, Term, TermId};
use diagnostics::Span;
use frontend_kit::kit::Kit;
use python::{Condition, DictId, ListId, ObjectId, Piece, PyKind, TextId, Value};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Minimal number of expressions that a name must save.
const MIN_SAVED: u64 = 40;
/// Calls and elements that a value with a name is made of.
const MAX_NEEDS: usize = 48;
/// Values of a function that are looked at.
const MAX_VALUES: usize = 40_000;

/// The values of a function that are worth a name, with the calls and elements that each is made of.
pub(super) type Sharing = HashMap<ObjectId, Rc<[ObjectId]>>;

/// Place at which names may be bound: before the term that is compiled there.
#[derive(Debug)]
pub(super) struct Place {
    /// Scope of the place, whose own place is the enclosing one.
    scope: Scope,
    made: RefCell<Vec<(Name, TermId)>>,
    names: RefCell<HashMap<ObjectId, SharedValue>>,
}

/// Replacement for a value that gets a name.
#[derive(Clone, Debug)]
enum SharedValue {
    Name(Name),
    /// It is not known as a whole, and why: it is said where it is used, so that ways that do not use it do
    /// not end.
    Unknown(Name, Span),
}

impl SharedValue {
    fn term(self, kit: &mut Kit<'_>, at: Span) -> TermId {
        match self {
            SharedValue::Name(name) => kit.b.var(name, at),
            SharedValue::Unknown(why, at) => kit.b.add(Term::Unknown(why), at),
        }
    }
}

impl Scope {
    /// The scope in which names are given that stand at a new place within this one; `None` where nothing is
    /// worth a name.
    pub(super) fn opened(&self) -> Option<(Scope, Rc<Place>)> {
        self.sharing.as_ref()?;
        let place = Place { scope: self.clone(), made: RefCell::default(), names: RefCell::default() };
        let place = Rc::new(place);
        Some((Scope { place: Some(place.clone()), ..self.clone() }, place))
    }

    /// The scope under one more condition.
    pub(super) fn under(&self, condition: Condition) -> Scope {
        let mut scope = self.clone();
        scope.path.push(condition);
        scope
    }
}

impl Place {
    /// The names that were given here, with what they represent.
    pub(super) fn made(&self) -> Vec<(Name, TermId)> {
        self.made.take()
    }
}

/// Parts of values that other values are made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Object(ObjectId),
    List(ListId),
    Dict(DictId),
    Text(TextId),
}

/// Parts, and how often each stands in the term of what is made of them.
type Parts = Vec<(Node, u64)>;

fn node(value: &Value) -> Option<Node> {
    Some(match &value.kind {
        PyKind::Object(id) | PyKind::Member(id, _) => Node::Object(*id),
        PyKind::List(id) | PyKind::Either(id) => Node::List(*id),
        PyKind::Dict(id) => Node::Dict(*id),
        PyKind::Text(id) => Node::Text(*id),
        _ => return None,
    })
}

impl GraphReader<'_, '_> {
    /// The scope of a function in which what is worth it gets a name.
    pub(super) fn naming(&self, scope: Scope, traced: &Traced, calls: &[Call]) -> Scope {
        let calls: Vec<ObjectId> = calls.iter().map(|c| c.id).collect();
        let sharing = Some(self.sharing(traced, &calls)).filter(|s| !s.is_empty());
        Scope { sharing: sharing.map(Rc::new), ..scope }
    }

    /// A text that a function computes by itself, with names for what is worth one.
    pub(super) fn text_of_function(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        value: &Value,
        sharing: &Rc<Sharing>,
    ) -> TermId {
        let scope = Scope { sharing: Some(sharing.clone()), ..scope.clone() };
        let Some((inner, place)) = scope.opened() else { return self.text(kit, &scope, value) };
        let text = self.text(kit, &inner, value);
        let at = kit.b.span(text);
        kit.b.let_in(place.made(), text, at)
    }

    /// Finds the values of a function that are worth a name, besides the results of its calls.
    pub(super) fn sharing(&self, traced: &Traced, calls: &[ObjectId]) -> Sharing {
        let held: HashSet<ObjectId> = calls.iter().copied().collect();
        let own: HashSet<ObjectId> = traced.trace.objects.iter().copied().collect();
        // A call, an element and the state are there; what they are made of is no part of what is made of
        // them.
        let items = traced.trace.objects.iter().filter_map(|id| {
            let object = self.world.object(*id);
            match object.args.get(1).map(|a| &a.value.kind) {
                Some(PyKind::Object(element)) if &*object.callee == "[for]" => Some(*element),
                _ => None,
            }
        });
        let mut items: HashSet<ObjectId> = items.collect();
        items.extend(calls.iter().flat_map(|c| self.world.path(*c)).filter_map(|c| match c {
            Condition::Loop(element) => Some(*element),
            _ => None,
        }));
        let is_there = |id: ObjectId| id == traced.state || held.contains(&id) || items.contains(&id);
        let mut roots: Parts = node(&traced.trace.value).map(|n| (n, 1)).into_iter().collect();
        let mut tests: HashSet<Node> = HashSet::new();
        for call in calls {
            for condition in self.world.path(*call) {
                if let Condition::Test(test, _) = condition
                    && let Some(test) = node(test)
                    && tests.insert(test)
                {
                    roots.push((test, 1));
                }
            }
            roots.extend(self.world.object(*call).args.iter().filter_map(|a| Some((node(&a.value)?, 1))));
        }
        let parts = |n: Node| match n {
            Node::Object(id) if is_there(id) => Vec::new(),
            _ => self.made_of(n),
        };
        let order = ordered(&roots, parts);
        let mut sizes: HashMap<Node, u64> = HashMap::new();
        let mut needs: HashMap<Node, Option<Rc<[ObjectId]>>> = HashMap::new();
        for (n, parts) in &order {
            let of =
                |(part, weight): &(Node, u64)| sizes.get(part).copied().unwrap_or(1).saturating_mul(*weight);
            let size = parts.iter().map(of).fold(1, u64::saturating_add);
            sizes.insert(*n, size);
            let wanted = self.needed(*n, parts, &needs, &is_there, &held);
            needs.insert(*n, wanted);
        }
        let mut uses: HashMap<Node, u64> = HashMap::new();
        for (root, weight) in roots {
            let count = uses.entry(root).or_default();
            *count = count.saturating_add(weight);
        }
        let mut out = Sharing::new();
        for (n, parts) in order.iter().rev() {
            let mut count = uses.get(n).copied().unwrap_or(1);
            if let (Node::Object(id), Some(Some(needs))) = (n, needs.get(n))
                && count > 1
                && (count - 1).saturating_mul(sizes.get(n).copied().unwrap_or(1)) > MIN_SAVED
                && own.contains(id)
                && !is_there(*id)
                && !self.world.is_optional(*id)
            {
                out.insert(*id, needs.clone());
                count = 1;
            }
            for (part, weight) in parts {
                let uses = uses.entry(*part).or_default();
                *uses = uses.saturating_add(count.saturating_mul(*weight));
            }
        }
        out
    }

    /// Returns the parts of a value and the number of occurrences of each in its term.
    fn made_of(&self, n: Node) -> Parts {
        let all = |values: &mut dyn Iterator<Item = &Value>| {
            values.filter_map(|v| Some((node(v)?, 1))).collect::<Vec<_>>()
        };
        match n {
            Node::List(id) => all(&mut self.world.list(id).items.iter()),
            Node::Dict(id) => all(&mut self.world.dict(id).entries.iter().map(|(_, v)| v)),
            Node::Text(id) => {
                let at = Span { file: diagnostics::FileId(0), start: 0, end: 0 };
                let pieces = self.world.text_of(&Value::new(PyKind::Text(id), at)).unwrap_or_default();
                let hole = |piece: Piece| match piece {
                    Piece::Hole(hole, _) => Some((node(&hole)?, 1)),
                    Piece::Text(_) => None,
                };
                pieces.into_iter().filter_map(hole).collect()
            }
            Node::Object(id) => {
                let object = self.world.object(id);
                let args = object.args.iter().map(|a| &a.value);
                let mut out = all(&mut args.chain(object.attrs.iter().map(|(_, v)| v)));
                // What decides is looked at before it is the value.
                if let ("or" | "and", Some((_, weight))) = (&*object.callee, out.first_mut()) {
                    *weight = 2;
                }
                out.extend(object.base.map(|base| (Node::Object(base), 1)));
                out
            }
        }
    }

    /// The calls and elements that a value is made of; `None` if there are too many.
    fn needed(
        &self,
        n: Node,
        parts: &[(Node, u64)],
        known: &HashMap<Node, Option<Rc<[ObjectId]>>>,
        is_there: &dyn Fn(ObjectId) -> bool,
        held: &HashSet<ObjectId>,
    ) -> Option<Rc<[ObjectId]>> {
        let mut out: Vec<ObjectId> = Vec::new();
        for (part, _) in parts {
            match (known.get(part), part) {
                (Some(needs), _) => out.extend(needs.as_ref()?.iter()),
                // Of a cycle nothing is known.
                (None, _) => return None,
            }
        }
        if let Node::Object(id) = n {
            if is_there(id) {
                return Some(Rc::new([id]));
            }
            let object = self.world.object(id);
            if let ("[for]", Some(PyKind::Object(element))) =
                (&*object.callee, object.args.get(1).map(|a| &a.value.kind))
            {
                // A call that is made for each item is a part of what all items are, which is bound as a
                // whole.
                let inside = |c: &ObjectId| {
                    held.contains(c)
                        && self.world.path(*c).iter().any(|c| matches!(c, Condition::Each(e) if e == element))
                };
                if out.iter().any(inside) {
                    return Some(Rc::new([id]));
                }
                out.retain(|e| e != element);
            }
        }
        out.sort_unstable();
        out.dedup();
        (out.len() <= MAX_NEEDS).then(|| out.into())
    }

    /// The name of a value that is worth one.
    pub(super) fn shared(&self, kit: &mut Kit<'_>, scope: &Scope, id: ObjectId, at: Span) -> Option<TermId> {
        let mut place = scope.place.as_ref()?;
        let needs = scope.sharing.as_ref()?.get(&id)?.clone();
        // What a loop that is not followed made is what it is after the loop: nobody knows how often, or
        // whether, it was made.
        let path = self.world.path(id);
        let within = |c: &Condition| matches!(c, Condition::Loop(e) if scope.held.contains_key(e));
        let open = |c: &Condition| matches!(c, Condition::Undecided | Condition::Loop(_)) && !within(c);
        let path = &path[..path.iter().position(open).unwrap_or(path.len())];
        let loops: Vec<ObjectId> = self
            .world
            .path(id)
            .iter()
            .filter_map(|c| match c {
                Condition::Loop(e) if !within(c) => Some(*e),
                _ => None,
            })
            .collect();
        let mut best: Option<&Rc<Place>> = None;
        loop {
            let given = place.names.borrow().get(&id).cloned();
            if let Some(given) = given {
                return Some(given.term(kit, at));
            }
            let inside = path.len() <= place.scope.path.len()
                && path.iter().zip(&place.scope.path).all(|(a, b)| is_same(a, b));
            let there = |need: &ObjectId| {
                place.scope.held.contains_key(need)
                    || loops.contains(need)
                    || place.scope.state.as_ref().is_some_and(|(state, _)| state == need)
            };
            if inside && needs.iter().all(there) {
                best = Some(place);
            }
            match &place.scope.place {
                Some(outer) => place = outer,
                None => break,
            }
        }
        let place = best?.clone();
        let inner = Scope { place: Some(place.clone()), ..place.scope.clone() };
        let depth = kit.budget.apart();
        let span = self.world.object(id).span;
        let term = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.object_itself(kit, &inner, id, span));
        kit.budget.together(depth);
        let term = not_known_whole(kit, term);
        let unknown = match kit.b.term(term) {
            Term::Unknown(why) => Some(SharedValue::Unknown(why.clone(), kit.b.span(term))),
            _ => None,
        };
        let given = unknown.unwrap_or_else(|| {
            let name: Name = kit.b.fresh("v");
            place.made.borrow_mut().push((name.clone(), term));
            SharedValue::Name(name)
        });
        place.names.borrow_mut().insert(id, given.clone());
        Some(given.term(kit, at))
    }

    /// Returns true if a value has a name or may get one, and is data in every alternative. A part of it is
    /// then a part of the named value.
    pub(super) fn is_shared(&self, scope: &Scope, value: &Value) -> bool {
        let Some(sharing) = scope.sharing.as_ref().filter(|_| scope.place.is_some()) else { return false };
        let PyKind::Object(id) = value.kind else { return false };
        sharing.contains_key(&id) && !scope.held.contains_key(&id) && self.is_data(scope, value)
    }

    /// Returns true if a value is neither a reply nor a message in any alternative.
    fn is_data(&self, scope: &Scope, value: &Value) -> bool {
        const MAX_PARTS: usize = 64;
        let mut seen: HashSet<ObjectId> = HashSet::new();
        let mut todo = vec![value.clone()];
        while let Some(value) = todo.pop() {
            let PyKind::Object(id) = value.kind else { continue };
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > MAX_PARTS {
                return false;
            }
            let object = self.world.object(id);
            if object.base.is_none() && matches!(&*object.callee, "if" | "or" | "and") {
                let sides = object.args.iter().skip(usize::from(&*object.callee == "if"));
                todo.extend(sides.map(|a| a.value.clone()));
                continue;
            }
            let of_model = |h: &BoundResult| !matches!(h.kind, ReplyKind::Data);
            if scope.held.get(&id).is_some_and(of_model)
                || self.is_message(scope, &value)
                || self.is_run_messages(scope, &value)
                || self.is_reply(scope, &value) && !scope.held.contains_key(&id)
                || self.call_of(&value).is_some()
            {
                return false;
            }
        }
        true
    }

    /// `if`, each side with names of its own.
    pub(super) fn side(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        condition: impl FnOnce() -> Condition,
        make: impl FnOnce(&mut Kit<'_>, &Scope) -> TermId,
    ) -> TermId {
        let Some((inner, place)) = scope.sharing.as_ref().and_then(|_| scope.under(condition()).opened())
        else {
            return make(kit, scope);
        };
        let body = make(kit, &inner);
        let at = kit.b.span(body);
        kit.b.let_in(place.made(), body, at)
    }

    /// `if test then yes else no`, each side with names of its own.
    pub(super) fn if_else(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        [test, yes, no]: [&Value; 3],
        at: Span,
    ) -> TermId {
        // A test that was made before decides.
        if let Some(holds) = known_test(&scope.path, test) {
            return self.expr(kit, scope, if holds { yes } else { no });
        }
        let condition = self.test(kit, scope, test);
        let [yes, no] = [(yes, true), (no, false)].map(|(value, holds)| {
            let under = || Condition::Test(test.clone(), holds);
            self.side(kit, scope, under, |kit, scope| self.expr(kit, scope, value))
        });
        kit.b.add(Term::If(condition, yes, no, IfSugar::Plain), at)
    }
}

/// Replaces a term that is certainly computed from an unknown by that unknown. Texts keep their known parts,
/// and so do alternatives of a test.
pub(super) fn not_known_whole(kit: &Kit<'_>, term: TermId) -> TermId {
    let unknown = |id: &TermId| matches!(kit.b.term(*id), Term::Unknown(_));
    let plain = |id: &TermId| unknown(id) || matches!(kit.b.term(*id), Term::Lit(_));
    let of = match kit.b.term(term) {
        Term::Prim(Prim::Format, _) => None,
        Term::Prim(_, of) if of.iter().all(plain) => of.iter().find(|id| unknown(id)),
        Term::Field(of, _) | Term::Check(_, _, of) | Term::Each(_, _, of) => Some(of),
        Term::Index(of, key) if plain(key) => Some(of),
        Term::Let { bindings, .. } => bindings.first().map(|(_, value)| value),
        Term::If(test, _, _, IfSugar::And | IfSugar::Or) => Some(test),
        _ => None,
    };
    of.copied().filter(unknown).unwrap_or(term)
}

/// Returns the outcome of a test that the path has decided.
pub(super) fn known_test(path: &[Condition], test: &Value) -> Option<bool> {
    path.iter().find_map(|c| match c {
        Condition::Test(known, holds) if super::calls::same(known, test) => Some(*holds),
        _ => None,
    })
}

/// Returns true if two conditions are the same.
fn is_same(a: &Condition, b: &Condition) -> bool {
    match (a, b) {
        (Condition::Test(a, holds), Condition::Test(b, other)) => holds == other && super::calls::same(a, b),
        (Condition::Each(a), Condition::Each(b)) | (Condition::Loop(a), Condition::Loop(b)) => a == b,
        _ => false,
    }
}

/// Returns all reachable values in topological order, parts first.
fn ordered(roots: &[(Node, u64)], parts: impl Fn(Node) -> Parts) -> Vec<(Node, Parts)> {
    let mut out: Vec<(Node, Parts)> = Vec::new();
    let mut seen: HashSet<Node> = HashSet::new();
    for (root, _) in roots {
        if !seen.insert(*root) {
            continue;
        }
        let mut todo: Vec<(Node, Parts, usize)> = vec![(*root, parts(*root), 0)];
        while let Some((n, of, next)) = todo.last_mut() {
            match of.get(*next) {
                Some((part, _)) => {
                    *next += 1;
                    let part = *part;
                    if seen.len() < MAX_VALUES && seen.insert(part) {
                        todo.push((part, parts(part), 0));
                    }
                }
                None => {
                    out.push((*n, std::mem::take(of)));
                    todo.pop();
                }
            }
        }
    }
    out
}
