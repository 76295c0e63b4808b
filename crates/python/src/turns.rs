//! Loops: what their turns leave, and what other turns change that the text of the body does not show.
//!
//! A loop over known items is followed turn by turn; `break` and `continue` leave with the names that they find. Of any other loop one turn
//! stands for all: what a turn changes is not known at its begin. Names that the body assigns are seen in the text; what is changed through a
//! function, another name of the same list or an attribute is seen while the turn is evaluated, which then is evaluated again without knowing it.
//!
//! Invariant: a turn that stands for others finds nothing that one of them changes.

use crate::eval::{At, World};
use crate::stmt::{Flow, is_constant};
use crate::symbol::Condition;
use crate::value::*;
use diagnostics::Span;
use ruff_python_ast as ast;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_stmt};
use ruff_text_size::Ranged;
use std::collections::HashMap;
use std::sync::Arc;

/// How often a turn is evaluated because it changes what was taken for known.
const MAX_RETRIES: usize = 4;

/// The names on a way out of a turn, and what holds on it.
pub(crate) type Way<'a> = (Vec<Condition>, HashMap<&'a str, Value>);

/// The ways out of the turns of a loop that is evaluated.
#[derive(Debug, Default)]
pub(crate) struct Left<'a> {
    /// How long the path was before the loop.
    base: usize,
    pub broken: Vec<Way<'a>>,
    pub continued: Vec<Way<'a>>,
}

/// Something that was changed and is older than the turn that is evaluated.
#[derive(Clone, Debug)]
pub(crate) enum Written<'a> {
    /// Items were added behind those that a list had.
    Grown(ListId, usize),
    List(ListId),
    /// The entry of a text, or any.
    Entry(DictId, Option<Arc<str>>),
    Attribute(ObjectId, Arc<str>),
    ClassAttribute(ClassId, Arc<str>),
    Name(ScopeId, &'a str),
    /// A method was called, which changes nothing.
    Called(ObjectId),
}

/// Where the tables ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    lists: usize,
    dicts: usize,
    objects: usize,
    classes: usize,
    scopes: usize,
    written: usize,
    returns: usize,
}

impl<'a> World<'a> {
    pub(crate) fn for_loop(&mut self, s: &'a ast::StmtFor, at: At) -> Flow {
        let span = self.span(at.module, s.range);
        let iter = self.expr(&s.iter, at);
        if let Kind::Member(_, name) = &iter.kind
            && self.symbolic
            && self.framework.is_some_and(|f| f.holds_one(name.rsplit('.').next().unwrap_or(name)))
        {
            return self.one_turn(s, &iter, at);
        }
        let Some((items, open)) = self.iterate(&iter) else {
            if self.gathered(s, &iter, at).is_some() {
                return Flow::Next;
            }
            let element_at = self.span(at.module, s.target.range());
            let element = self.element(&iter, element_at).unwrap_or_else(|| {
                let why = format!("an element of {}", self.source(at.module).written(s.iter.range()));
                Value::unknown(why, element_at)
            });
            let turns = match element.kind {
                Kind::Object(id) if s.orelse.is_empty() && self.turns_are_alike(&s.body, span) => Some(id),
                _ => None,
            };
            let condition = turns.map_or(Condition::Undecided, Condition::Loop);
            self.turn_for_all(condition, span, at, |w| w.one_of_turns(s, element.clone(), at));
            self.under(Condition::Undecided, span, at, |w| {
                w.block(&s.orelse, at);
            });
            return Flow::Next;
        };
        // What more turns than are followed do is known of none of them.
        let mut open = open.or((items.len() > self.limits.turns).then_some(span));
        // A list may grow while it is gone over.
        let list = if let Kind::List(id) = self.settled(&iter).kind { Some((id, items.len())) } else { None };
        self.holds(&iter);
        // A turn that leaves the loop inside of `try` may fail instead: then there is another one.
        let tries = usize::from(!self.symbolic && leaves_in_try(&s.body));
        self.begin_turns();
        let base = self.path.len();
        let mut goes_on = true;
        for item in items.into_iter().take(self.limits.turns) {
            if !self.step(1, span) {
                self.end_turns();
                return Flow::Next;
            }
            let maybe = item.maybe;
            let skipped =
                maybe.then(|| (self.path[base.min(self.path.len())..].to_vec(), self.names(at, span)));
            self.assign(&s.target, item, at);
            // What was left by `break` has no further turn.
            let condition = usize::from(maybe) + usize::from(self.is_broken());
            self.conditions += condition;
            self.repeating += tries;
            let flow = self.block(&s.body, at);
            self.repeating -= tries;
            self.conditions -= condition;
            let mut ways = self.continued();
            if flow != Flow::Next {
                ways.extend(skipped);
            } else if !ways.is_empty() {
                let vars = self.names(at, span);
                ways.push((self.path.get(base..).unwrap_or(&[]).to_vec(), vars));
            }
            if !ways.is_empty() {
                self.meet(ways, base, at, span);
            } else if flow == Flow::Break && !self.symbolic {
                self.end_turns();
                return Flow::Next;
            } else if flow == Flow::Gone || flow != Flow::Next && self.symbolic {
                goes_on = false;
                break;
            }
        }
        let left = self.end_turns();
        let mut flow = Flow::Gone;
        if goes_on {
            if let Some((id, count)) = list
                && (self.list(id).items.len() != count || self.list(id).open.is_some())
            {
                open = open.or(Some(span));
            }
            if open.is_some() {
                let element_at = self.span(at.module, s.target.range());
                let element = Value::unknown("an element that is not known", element_at);
                self.turn_for_all(Condition::Undecided, span, at, |w| w.one_of_turns(s, element.clone(), at));
            }
            flow = self.block(&s.orelse, at);
        }
        let mut ways = left.broken;
        if ways.is_empty() {
            return flow;
        }
        if flow == Flow::Next {
            let vars = self.names(at, span);
            ways.push((self.path.get(base..).unwrap_or(&[]).to_vec(), vars));
        }
        self.meet(ways, base, at, span);
        Flow::Next
    }

    /// A turn that stands for others.
    fn one_of_turns(&mut self, s: &'a ast::StmtFor, element: Value, at: At) {
        let span = self.span(at.module, s.range);
        self.unsettle(&s.body, span, at);
        self.assign(&s.target, element, at);
        self.begin_turns();
        let flow = self.block(&s.body, at);
        self.turn_ended(flow, at, span);
    }

    /// A loop begins, whose turns `break` and `continue` leave.
    pub(crate) fn begin_turns(&mut self) {
        self.left.push(Left { base: self.path.len(), ..Left::default() });
    }

    /// The ways out of the turns of the loop that was begun last.
    pub(crate) fn end_turns(&mut self) -> Left<'a> {
        self.left.pop().unwrap_or_default()
    }

    /// The ways on which turns of the loop go on so far, which are taken away.
    pub(crate) fn continued(&mut self) -> Vec<Way<'a>> {
        self.left.last_mut().map(|l| std::mem::take(&mut l.continued)).unwrap_or_default()
    }

    /// Whether a turn of the loop was left for good on some way.
    pub(crate) fn is_broken(&self) -> bool {
        self.left.last().is_some_and(|l| !l.broken.is_empty())
    }

    /// `break` or `continue`, where what tests decide is kept.
    pub(crate) fn leave(&mut self, flow: Flow, at: At, span: Span) {
        let Some(base) = self.left.last().map(|l| l.base).filter(|_| self.symbolic) else { return };
        let vars = self.names(at, span);
        let way = (self.path.get(base..).unwrap_or(&[]).to_vec(), vars);
        if let Some(left) = self.left.last_mut() {
            if flow == Flow::Break { left.broken.push(way) } else { left.continued.push(way) }
        }
    }

    /// Goes on with all of some ways. False if there is none.
    pub(crate) fn meet(&mut self, mut ways: Vec<Way<'a>>, base: usize, at: At, span: Span) -> bool {
        if ways.len() < 2 {
            let Some((path, vars)) = ways.pop() else { return false };
            self.path.truncate(base);
            self.path.extend(path);
            self.scope_mut(at.scope).vars = vars;
            return true;
        }
        // What all have in common holds on.
        let common = |a: &[Condition], b: &[Condition]| {
            let same = |(a, b): &(&Condition, &Condition)| match (a, b) {
                (Condition::Test(a, holds), Condition::Test(b, other)) => holds == other && self.same(a, b),
                _ => false,
            };
            a.iter().zip(b).take_while(same).count()
        };
        let first = &ways[0].0;
        let shared = ways[1..].iter().map(|(path, _)| common(first, path)).min().unwrap_or(0);
        let shared = first[..shared].to_vec();
        self.path.truncate(base);
        self.path.extend(shared);
        self.joined_by_tests(ways, at, span);
        true
    }

    /// The end of a turn that stands for all: the names of all ways out of it.
    pub(crate) fn turn_ended(&mut self, flow: Flow, at: At, span: Span) {
        let left = self.end_turns();
        let mut ways: Vec<Way<'a>> = left.continued;
        ways.extend(left.broken);
        if ways.is_empty() {
            return;
        }
        if flow == Flow::Next {
            let vars = self.names(at, span);
            ways.push((self.path.get(left.base..).unwrap_or(&[]).to_vec(), vars));
        }
        self.meet(ways, left.base, at, span);
    }

    /// Notes that something is changed, if that matters.
    pub(crate) fn wrote(&mut self, what: impl FnOnce(&Self) -> Option<Written<'a>>) {
        if self.watching > 0
            && let Some(written) = what(self)
        {
            let lasting = self.is_lasting(&written);
            self.written.push((written, lasting));
        }
    }

    pub(crate) fn wrote_items(&mut self, id: ListId) {
        self.wrote(|w| {
            let list = w.list(id);
            let known = list.open.is_none() || list.items.iter().any(|i| !i.maybe);
            known.then_some(Written::List(id))
        });
    }

    pub(crate) fn grows(&mut self, id: ListId) {
        self.wrote(|w| w.list(id).open.is_none().then(|| Written::Grown(id, w.list(id).items.len())));
    }

    pub(crate) fn wrote_entry(&mut self, id: DictId, key: Option<&Value>) {
        self.wrote(|w| {
            let dict = w.dict(id);
            let is_unknown = |v: &Value| matches!(v.kind, Kind::Unknown(_));
            match key.and_then(|k| k.as_str()) {
                Some(key) => {
                    let old = dict.entries.iter().rev().find(|(k, _)| k.as_str() == Some(key));
                    let known =
                        old.is_none_or(|(_, v)| !is_unknown(v)) && !(old.is_none() && dict.open.is_some());
                    known.then(|| Written::Entry(id, Some(key.into())))
                }
                None => {
                    let known = dict.open.is_none() || dict.entries.iter().any(|(_, v)| !is_unknown(v));
                    known.then_some(Written::Entry(id, None))
                }
            }
        });
    }

    pub(crate) fn wrote_attribute(&mut self, id: ObjectId, name: &Arc<str>) {
        self.wrote(|w| {
            let known = w.object(id).attr(name).is_none_or(|v| !matches!(v.kind, Kind::Unknown(_)));
            known.then(|| Written::Attribute(id, name.clone()))
        });
    }

    pub(crate) fn wrote_name(&mut self, scope: ScopeId, name: &'a str) {
        self.wrote(|w| {
            let old = w.scope(scope).vars.get(name);
            old.is_none_or(|v| !matches!(v.kind, Kind::Unknown(_))).then_some(Written::Name(scope, name))
        });
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            lists: self.own.lists.len(),
            dicts: self.own.dicts.len(),
            objects: self.own.objects.len(),
            classes: self.own.classes.len(),
            scopes: self.own.scopes.len(),
            written: self.written.len(),
            returns: self.returns.last().map_or(0, |(_, r)| r.len()),
        }
    }

    /// Whether a change tells the next run of a function from this one: of a list, or of a constant. What is made when it is first wanted is not.
    fn is_lasting(&self, written: &Written<'a>) -> bool {
        let is_set = |v: Option<&Value>| v.is_some_and(|v| is_constant(v) && !v.is_none());
        match written {
            Written::Grown(..) | Written::List(_) => true,
            Written::Entry(id, Some(key)) => {
                let entries = &self.dict(*id).entries;
                is_set(entries.iter().rev().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v))
            }
            Written::Attribute(id, name) => is_set(self.object(*id).attr(name)),
            Written::ClassAttribute(id, name) => is_set(self.class(*id).attr(name)),
            Written::Name(id, name) => is_set(self.scope(*id).vars.get(name)),
            Written::Entry(_, None) | Written::Called(_) => false,
        }
    }

    /// Evaluates a function that is run again and again, and others beside it, so often that nothing which it changes was taken for known.
    pub(crate) fn settled_run(&mut self, span: Span, f: impl Fn(&mut Self) -> Value) -> Value {
        for _ in 0..MAX_RETRIES {
            let mark = self.mark();
            self.watching += 1;
            let value = f(self);
            self.watching -= 1;
            let changed = self.changed_since(mark, true);
            if changed.is_empty() || self.exhausted() {
                if self.watching == 0 {
                    self.written.clear();
                }
                return value;
            }
            self.changes += 1;
            self.again(mark, changed, span);
        }
        f(self)
    }

    /// How often something that functions share turned out to change while they were [traced](World::trace).
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// How many objects were made so far.
    pub fn made_so_far(&self) -> usize {
        self.own.objects.len()
    }

    /// Forgets the objects that were made since there were so many: what made them is evaluated again.
    pub fn forget_since(&mut self, count: usize) {
        let (part, end) = (self.part, self.own.objects.len());
        for object in &mut self.own.objects[..count.min(end)] {
            object.calls.retain(|m| m.result.part != part || (m.result.index as usize) < count);
        }
        self.forgotten.push((count as u32, end as u32));
    }

    /// Evaluates something so often that nothing which it changes was taken for known. `f` may be evaluated several times; what was made
    /// before the last time is forgotten.
    pub(crate) fn settled_turn(&mut self, at: At, span: Span, f: impl Fn(&mut Self)) {
        for _ in 0..MAX_RETRIES {
            let before = self.names(at, span);
            let mark = self.mark();
            self.watching += 1;
            f(self);
            self.watching -= 1;
            let changed = self.changed_since(mark, false);
            if changed.is_empty() || self.exhausted() {
                if self.watching == 0 {
                    self.written.clear();
                }
                return;
            }
            self.scope_mut(at.scope).vars = before;
            self.again(mark, changed, span);
        }
        f(self);
    }

    /// What was changed, for good or at all, that is older than a mark. Names that a body assigns itself are looked after in its text.
    pub(crate) fn changed_since(&self, mark: Mark, lasting: bool) -> Vec<Written<'a>> {
        let part = self.part;
        let old = |p: u32, index: u32, end: usize| p != part || (index as usize) < end;
        let mut seen: Vec<&Written<'a>> = Vec::new();
        for (written, lasts) in self.written.get(mark.written..).unwrap_or(&[]) {
            if lasting && !lasts {
                continue;
            }
            let is_old = match written {
                Written::Grown(id, _) | Written::List(id) => old(id.part, id.index, mark.lists),
                Written::Entry(id, _) => old(id.part, id.index, mark.dicts),
                Written::Attribute(id, _) => old(id.part, id.index, mark.objects),
                Written::ClassAttribute(id, _) => old(id.part, id.index, mark.classes),
                Written::Name(id, _) => old(id.part, id.index, mark.scopes),
                Written::Called(_) => false,
            };
            if is_old {
                seen.push(written);
            }
        }
        seen.into_iter().cloned().collect()
    }

    /// What was evaluated since a mark is evaluated again, without knowing what it changed.
    pub(crate) fn again(&mut self, mark: Mark, changed: Vec<Written<'a>>, span: Span) {
        self.forget(mark);
        for written in changed {
            self.not_settled(&written, span);
        }
    }

    /// Forgets the objects that were made since a mark.
    fn forget(&mut self, mark: Mark) {
        let end = self.own.objects.len();
        self.forgotten.push((mark.objects as u32, end as u32));
        let part = self.part;
        let called: Vec<ObjectId> = self.written[mark.written..]
            .iter()
            .filter_map(|(w, _)| if let Written::Called(id) = w { Some(*id) } else { None })
            .collect();
        for id in called {
            let own = |m: &Method| m.result.part == part && m.result.index as usize >= mark.objects;
            self.object_mut(id).calls.retain(|m| !own(m));
        }
        // What was changed is not known for loops around, too: it is noted for them.
        if self.watching == 0 {
            self.written.truncate(mark.written);
        }
        if let Some((_, returns)) = self.returns.last_mut() {
            returns.truncate(mark.returns);
        }
    }

    /// Something is not known any more.
    fn not_settled(&mut self, written: &Written<'a>, span: Span) {
        let unknown = || Value::unknown(OTHER_TURN, span);
        match written {
            Written::Grown(id, count) => {
                let list = self.list_mut(*id);
                list.items.truncate(*count);
                list.open = list.open.or(Some(span));
            }
            Written::List(id) => {
                let list = self.list_mut(*id);
                list.open = list.open.or(Some(span));
                list.items.iter_mut().for_each(|i| i.maybe = true);
            }
            Written::Entry(id, Some(key)) => {
                let key = Value::new(Kind::Str(key.clone()), span);
                self.put(*id, key, unknown());
            }
            Written::Entry(id, None) => {
                let dict = self.dict_mut(*id);
                dict.open = dict.open.or(Some(span));
                dict.entries.iter_mut().for_each(|(_, v)| *v = unknown());
            }
            Written::Attribute(id, name) => self.object_mut(*id).attrs.push((name.clone(), unknown())),
            Written::ClassAttribute(id, name) => self.class_mut(*id).attrs.push((name.clone(), unknown())),
            Written::Name(id, name) => {
                self.scope_mut(*id).vars.insert(name, unknown());
            }
            Written::Called(_) => {}
        }
    }

    /// Whether an object is of a turn that was evaluated again.
    pub(crate) fn is_forgotten(&self, id: ObjectId) -> bool {
        id.part == self.part && self.forgotten.iter().any(|(from, to)| (*from..*to).contains(&id.index))
    }
}

/// What another turn of a loop changes is not known.
pub(crate) const OTHER_TURN: &str = "what another turn of a loop leaves";

/// Returns whether statements leave the enclosing loop or function from inside a `try` that catches
/// something.
fn leaves_in_try(body: &[ast::Stmt]) -> bool {
    #[derive(Default)]
    struct Leaves {
        tries: usize,
        found: bool,
    }
    impl<'a> SourceOrderVisitor<'a> for Leaves {
        fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
            match stmt {
                ast::Stmt::FunctionDef(_) | ast::Stmt::ClassDef(_) => return,
                ast::Stmt::Break(_) | ast::Stmt::Return(_) => self.found |= self.tries > 0,
                _ => {}
            }
            let tries = matches!(stmt, ast::Stmt::Try(t) if !t.handlers.is_empty());
            self.tries += usize::from(tries);
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt));
            self.tries -= usize::from(tries);
        }
    }
    let mut leaves = Leaves::default();
    body.iter().for_each(|s| leaves.visit_stmt(s));
    leaves.found
}

/// Returns whether statements, or functions in them, have a loop or a `try`.
pub(crate) fn loops_or_tries(body: &[ast::Stmt]) -> bool {
    #[derive(Default)]
    struct Loops(bool);
    impl<'a> SourceOrderVisitor<'a> for Loops {
        fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
            self.0 |= matches!(stmt, ast::Stmt::For(_) | ast::Stmt::While(_) | ast::Stmt::Try(_));
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt));
        }
    }
    let mut loops = Loops::default();
    body.iter().for_each(|s| loops.visit_stmt(s));
    loops.0
}
