//! Abstract interpretation of loops.
//!
//! A loop over known items is unrolled; `break` and `continue` leave it with the names of their branches. Any
//! other loop is widened: one iteration represents all, and everything that an iteration may change is
//! unknown at its start. Names that the body assigns are found in its text. Changes through a function, an
//! alias or an attribute are recorded during evaluation; then the iteration is evaluated again with their
//! targets unknown, up to a fixpoint.
//!
//! Invariant: a widened iteration reads nothing as known that another iteration changes.

use crate::eval::{Context, World};
use crate::stmt::{Flow, is_constant};
use crate::symbolic::Condition;
use crate::value::*;
use diagnostics::Span;
use ruff_python_ast as ast;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_text_size::Ranged;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximal number of evaluations of one iteration or run until nothing that it assumed changes.
const MAX_RETRIES: usize = 4;

/// Path condition and names of one exit of an iteration.
pub(crate) type Branch<'a> = (Vec<Condition>, HashMap<&'a str, Value>);

/// Exits of the current loop's iterations.
#[derive(Debug, Default)]
pub(crate) struct LoopExits<'a> {
    /// Length of the path before the loop.
    base: usize,
    pub broken: Vec<Branch<'a>>,
    pub continued: Vec<Branch<'a>>,
    /// Unless evaluation is symbolic, what a `break` under a condition leaves in the names.
    names: Vec<HashMap<&'a str, Value>>,
}

/// A write to something older than the iteration being evaluated.
#[derive(Clone, Debug)]
pub(crate) enum Write<'a> {
    /// Items were appended to a list that had this many.
    Appended(ListId, usize),
    List(ListId),
    /// The entry of a constant string, or of any key.
    Entry(DictId, Option<Arc<str>>),
    Attribute(ObjectId, Arc<str>),
    ClassAttribute(ClassId, Arc<str>),
    Name(ScopeId, &'a str),
    /// A method call, which changes nothing that is known.
    Called(ObjectId),
}

/// Lengths of the tables at a point of the evaluation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    lists: usize,
    dicts: usize,
    objects: usize,
    classes: usize,
    scopes: usize,
    written: usize,
    returns: usize,
}

impl<'a> World<'a> {
    pub(crate) fn for_loop(&mut self, s: &'a ast::StmtFor, at: Context) -> Flow {
        let span = self.span(at.module, s.range);
        let iter = self.expr(&s.iter, at);
        if let PyKind::Member(_, name) = &iter.kind
            && self.symbolic
            && self.framework.is_some_and(|f| f.holds_one(name.rsplit('.').next().unwrap_or(name)))
        {
            return self.at_most_one_iteration(s, &iter, at);
        }
        let Some((items, open)) = self.iterate(&iter) else {
            if self.loop_as_comprehension(s, &iter, at).is_some() {
                return Flow::Next;
            }
            let element_at = self.span(at.module, s.target.range());
            let element = self.element(&iter, element_at).unwrap_or_else(|| {
                let why = format!("an element of {}", self.source(at.module).written(s.iter.range()));
                Value::unknown(why, element_at)
            });
            let iterations = match element.kind {
                PyKind::Object(id)
                    if s.orelse.is_empty() && self.has_independent_iterations(&s.body, span) =>
                {
                    Some(id)
                }
                _ => None,
            };
            let condition = iterations.map_or(Condition::Undecided, Condition::Loop);
            self.widen_loop(condition, None, span, at, |w| w.widened_iteration(s, element.clone(), at));
            self.conditionally(Condition::Undecided, span, at, |w| {
                w.block(&s.orelse, at);
            });
            return Flow::Next;
        };
        // Iterations beyond the limit are widened.
        let mut open = open.or((items.len() > self.limits.iterations).then_some(span));
        // A list may grow while it is gone over.
        let list =
            if let PyKind::List(id) = self.resolve_env(&iter).kind { Some((id, items.len())) } else { None };
        self.note_alias(&iter);
        // An iteration that leaves the loop inside of `try` may fail instead: then there is another one.
        let tries = !self.symbolic && exits_in_try(&s.body);
        let most = items.len().min(self.limits.iterations);
        self.begin_loop();
        let base = self.path.len();
        let mut goes_on = true;
        for (i, item) in items.into_iter().take(self.limits.iterations).enumerate() {
            if !self.step(1, span) {
                self.end_loop();
                return Flow::Next;
            }
            let maybe = item.maybe;
            let skipped =
                maybe.then(|| (self.path[base.min(self.path.len())..].to_vec(), self.names(at, span)));
            self.assign(&s.target, item, at);
            // What was left by `break` has no further iteration.
            let condition = usize::from(maybe) + usize::from(self.is_broken());
            self.conditions += condition;
            let before = tries.then(|| self.counts());
            let flow = self.block(&s.body, at);
            if let Some(before) = before.filter(|_| flow != Flow::Next) {
                self.represent(before, (most - i) as u64);
            }
            self.conditions -= condition;
            let mut ways = self.take_continued();
            if flow != Flow::Next {
                ways.extend(skipped);
            } else if !ways.is_empty() {
                let vars = self.names(at, span);
                ways.push((self.path.get(base..).unwrap_or(&[]).to_vec(), vars));
            }
            if !ways.is_empty() {
                self.join_branches(ways, base, at, span);
            } else if flow == Flow::Break && !self.symbolic {
                let left = self.end_loop();
                self.join_names(left.names, at, span);
                return Flow::Next;
            } else if flow == Flow::Exit || flow != Flow::Next && self.symbolic {
                goes_on = false;
                break;
            }
        }
        let left = self.end_loop();
        let mut flow = Flow::Exit;
        if goes_on {
            if let Some((id, count)) = list
                && (self.list(id).items.len() != count || self.list(id).open.is_some())
            {
                open = open.or(Some(span));
            }
            if open.is_some() {
                let element_at = self.span(at.module, s.target.range());
                let element = Value::unknown("an element that is not known", element_at);
                self.widen_loop(Condition::Undecided, None, span, at, |w| {
                    w.widened_iteration(s, element.clone(), at)
                });
            }
            flow = self.block(&s.orelse, at);
        }
        self.join_names(left.names, at, span);
        let mut ways = left.broken;
        if ways.is_empty() {
            return flow;
        }
        if flow == Flow::Next {
            let vars = self.names(at, span);
            ways.push((self.path.get(base..).unwrap_or(&[]).to_vec(), vars));
        }
        self.join_branches(ways, base, at, span);
        Flow::Next
    }

    /// Numbers of objects made, and of calls of each function.
    fn counts(&self) -> (usize, Vec<u64>) {
        (self.own.objects.len(), self.own.functions.iter().map(|f| f.called).collect())
    }

    /// Multiplies what was made and called since some counts.
    fn represent(&mut self, (objects, called): (usize, Vec<u64>), times: u64) {
        for object in &mut self.own.objects[objects..] {
            object.times = object.times.saturating_mul(times);
        }
        for (i, function) in self.own.functions.iter_mut().enumerate() {
            let before = called.get(i).copied().unwrap_or(0);
            let since = function.called.saturating_sub(before);
            function.called = before.saturating_add(since.saturating_mul(times));
        }
    }

    /// Evaluates one iteration that represents all.
    fn widened_iteration(&mut self, s: &'a ast::StmtFor, element: Value, at: Context) {
        let span = self.span(at.module, s.range);
        self.havoc(&s.body, span, at);
        self.assign(&s.target, element, at);
        self.begin_loop();
        let flow = self.block(&s.body, at);
        self.end_widened_iteration(flow, at, span);
    }

    /// Starts a loop, whose iterations `break` and `continue` leave.
    pub(crate) fn begin_loop(&mut self) {
        self.left.push(LoopExits { base: self.path.len(), ..LoopExits::default() });
    }

    /// Ends the innermost loop and returns its exits.
    pub(crate) fn end_loop(&mut self) -> LoopExits<'a> {
        self.left.pop().unwrap_or_default()
    }

    /// Takes the branches that have continued the innermost loop so far.
    pub(crate) fn take_continued(&mut self) -> Vec<Branch<'a>> {
        self.left.last_mut().map(|l| std::mem::take(&mut l.continued)).unwrap_or_default()
    }

    /// Returns true if some branch left the loop with `break`.
    pub(crate) fn is_broken(&self) -> bool {
        self.left.last().is_some_and(|l| !l.broken.is_empty())
    }

    /// Records the branch of a `break` or `continue`. Unless evaluation is symbolic, only what a `break` that
    /// may be reached leaves in the names.
    pub(crate) fn exit_iteration(&mut self, flow: Flow, at: Context, span: Span) {
        let Some(base) = self.left.last().map(|l| l.base) else { return };
        if !self.symbolic {
            if flow == Flow::Break && self.conditions > 0 {
                let names = self.names(at, span);
                if let Some(left) = self.left.last_mut() {
                    left.names.push(names);
                }
            }
            return;
        }
        let vars = self.names(at, span);
        let way = (self.path.get(base..).unwrap_or(&[]).to_vec(), vars);
        if let Some(left) = self.left.last_mut() {
            if flow == Flow::Break { left.broken.push(way) } else { left.continued.push(way) }
        }
    }

    /// Joins the names of the current scope with those of other branches.
    fn join_names(&mut self, others: Vec<HashMap<&'a str, Value>>, at: Context, span: Span) {
        for other in others {
            self.step(other.len() / 8, span);
            for (name, value) in other {
                let value = match self.scope(at.scope).vars.get(name).cloned() {
                    Some(old) if self.same(&old, &value) => continue,
                    Some(old) => self.either(vec![old, value], span),
                    None => value,
                };
                self.scope_mut(at.scope).vars.insert(name, value);
            }
        }
    }

    /// Continues with the join of some branches. Returns false if there are none.
    pub(crate) fn join_branches(
        &mut self,
        mut ways: Vec<Branch<'a>>,
        base: usize,
        at: Context,
        span: Span,
    ) -> bool {
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
        self.join_by_tests(ways, at, span);
        true
    }

    /// Ends an iteration that represents all: joins the names of all its exits.
    pub(crate) fn end_widened_iteration(&mut self, flow: Flow, at: Context, span: Span) {
        let left = self.end_loop();
        let mut ways: Vec<Branch<'a>> = left.continued;
        ways.extend(left.broken);
        if ways.is_empty() {
            return;
        }
        if flow == Flow::Next {
            let vars = self.names(at, span);
            ways.push((self.path.get(left.base..).unwrap_or(&[]).to_vec(), vars));
        }
        self.join_branches(ways, left.base, at, span);
    }

    /// Records a write while an iteration is being watched.
    pub(crate) fn record_write(&mut self, what: impl FnOnce(&Self) -> Option<Write<'a>>) {
        if self.watching > 0
            && let Some(written) = what(self)
        {
            let lasting = self.is_lasting(&written);
            self.written.push((written, lasting));
        }
    }

    pub(crate) fn record_items_write(&mut self, id: ListId) {
        self.record_write(|w| {
            let list = w.list(id);
            let known = list.open.is_none() || list.items.iter().any(|i| !i.maybe);
            known.then_some(Write::List(id))
        });
    }

    pub(crate) fn record_append(&mut self, id: ListId) {
        self.record_write(|w| w.list(id).open.is_none().then(|| Write::Appended(id, w.list(id).items.len())));
    }

    pub(crate) fn record_entry_write(&mut self, id: DictId, key: Option<&Value>) {
        self.record_write(|w| {
            let dict = w.dict(id);
            let is_unknown = |v: &Value| matches!(v.kind, PyKind::Unknown(_));
            match key.and_then(|k| k.as_str()) {
                Some(key) => {
                    let old = dict.entries.iter().rev().find(|(k, _)| k.as_str() == Some(key));
                    let known =
                        old.is_none_or(|(_, v)| !is_unknown(v)) && !(old.is_none() && dict.open.is_some());
                    known.then(|| Write::Entry(id, Some(key.into())))
                }
                None => {
                    let known = dict.open.is_none() || dict.entries.iter().any(|(_, v)| !is_unknown(v));
                    known.then_some(Write::Entry(id, None))
                }
            }
        });
    }

    pub(crate) fn record_attribute_write(&mut self, id: ObjectId, name: &Arc<str>) {
        self.record_write(|w| {
            let known = w.object(id).attr(name).is_none_or(|v| !matches!(v.kind, PyKind::Unknown(_)));
            known.then(|| Write::Attribute(id, name.clone()))
        });
    }

    pub(crate) fn record_name_write(&mut self, scope: ScopeId, name: &'a str) {
        self.record_write(|w| {
            let old = w.scope(scope).vars.get(name);
            old.is_none_or(|v| !matches!(v.kind, PyKind::Unknown(_))).then_some(Write::Name(scope, name))
        });
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            lists: self.own.lists.len(),
            dicts: self.own.dicts.len(),
            objects: self.own.objects.len(),
            classes: self.own.classes.len(),
            scopes: self.own.scopes.len(),
            written: self.written.len(),
            returns: self.returns.last().map_or(0, |(_, r)| r.len()),
        }
    }

    /// Returns true if a write may change the next run of a function: one to a list, or of a constant. Lazily
    /// made objects don't count.
    fn is_lasting(&self, written: &Write<'a>) -> bool {
        let is_set = |v: Option<&Value>| v.is_some_and(|v| is_constant(v) && !v.is_none());
        match written {
            Write::Appended(..) | Write::List(_) => true,
            Write::Entry(id, Some(key)) => {
                let entries = &self.dict(*id).entries;
                is_set(entries.iter().rev().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v))
            }
            Write::Attribute(id, name) => is_set(self.object(*id).attr(name)),
            Write::ClassAttribute(id, name) => is_set(self.class(*id).attr(name)),
            Write::Name(id, name) => is_set(self.scope(*id).vars.get(name)),
            Write::Entry(_, None) | Write::Called(_) => false,
        }
    }

    /// Evaluates a function that may run again, or beside others, until nothing that it changes was assumed.
    pub(crate) fn run_to_fixpoint(&mut self, span: Span, f: impl Fn(&mut Self) -> Value) -> Value {
        for _ in 0..MAX_RETRIES {
            let mark = self.snapshot();
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
            self.prepare_rerun(mark, changed, span);
        }
        f(self)
    }

    /// Number of times that shared state turned out to change while functions were [traced](World::trace).
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Number of objects made so far.
    pub fn object_count(&self) -> usize {
        self.own.objects.len()
    }

    /// Discards the objects made after the first `count`, before their evaluation is repeated.
    pub fn discard_objects_since(&mut self, count: usize) {
        let (component, end) = (self.component, self.own.objects.len());
        for object in &mut self.own.objects[..count.min(end)] {
            object.calls.retain(|m| m.result.component != component || (m.result.index as usize) < count);
        }
        self.discarded.push((count as u32, end as u32));
    }

    /// Evaluates `f` until nothing that it changes was assumed. `f` may run several times; objects of all
    /// runs but the last are discarded.
    pub(crate) fn iterate_to_fixpoint(&mut self, at: Context, span: Span, f: impl Fn(&mut Self)) {
        for _ in 0..MAX_RETRIES {
            let before = self.names(at, span);
            let mark = self.snapshot();
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
            self.prepare_rerun(mark, changed, span);
        }
        f(self);
    }

    /// Returns the writes since a snapshot to entries older than it; with `lasting`, only those that later
    /// runs can see. Names assigned in the body are found in its text instead.
    pub(crate) fn changed_since(&self, mark: Snapshot, lasting: bool) -> Vec<Write<'a>> {
        let component = self.component;
        let old = |p: u32, index: u32, end: usize| p != component || (index as usize) < end;
        let mut linked: Vec<&Write<'a>> = Vec::new();
        for (written, lasts) in self.written.get(mark.written..).unwrap_or(&[]) {
            if lasting && !lasts {
                continue;
            }
            let is_old = match written {
                Write::Appended(id, _) | Write::List(id) => old(id.component, id.index, mark.lists),
                Write::Entry(id, _) => old(id.component, id.index, mark.dicts),
                Write::Attribute(id, _) => old(id.component, id.index, mark.objects),
                Write::ClassAttribute(id, _) => old(id.component, id.index, mark.classes),
                Write::Name(id, _) => old(id.component, id.index, mark.scopes),
                Write::Called(_) => false,
            };
            if is_old {
                linked.push(written);
            }
        }
        linked.into_iter().cloned().collect()
    }

    /// Discards everything evaluated since a snapshot and makes the entries that it changed unknown, before
    /// the next evaluation.
    pub(crate) fn prepare_rerun(&mut self, mark: Snapshot, changed: Vec<Write<'a>>, span: Span) {
        self.discard(mark);
        for written in changed {
            self.havoc_write(&written, span);
        }
    }

    /// Discards the objects made since a snapshot.
    fn discard(&mut self, mark: Snapshot) {
        let end = self.own.objects.len();
        self.discarded.push((mark.objects as u32, end as u32));
        let component = self.component;
        let called: Vec<ObjectId> = self.written[mark.written..]
            .iter()
            .filter_map(|(w, _)| if let Write::Called(id) = w { Some(*id) } else { None })
            .collect();
        for id in called {
            let own = |m: &Method| m.result.component == component && m.result.index as usize >= mark.objects;
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

    /// Makes the target of a write unknown.
    fn havoc_write(&mut self, written: &Write<'a>, span: Span) {
        let unknown = || Value::unknown(WIDENED, span);
        match written {
            Write::Appended(id, count) => {
                let list = self.list_mut(*id);
                list.items.truncate(*count);
                list.open = list.open.or(Some(span));
            }
            Write::List(id) => {
                let list = self.list_mut(*id);
                list.open = list.open.or(Some(span));
                list.items.iter_mut().for_each(|i| i.maybe = true);
            }
            Write::Entry(id, Some(key)) => {
                let key = Value::new(PyKind::Str(key.clone()), span);
                self.put(*id, key, unknown());
            }
            Write::Entry(id, None) => {
                let dict = self.dict_mut(*id);
                dict.open = dict.open.or(Some(span));
                dict.entries.iter_mut().for_each(|(_, v)| *v = unknown());
            }
            Write::Attribute(id, name) => self.object_mut(*id).attrs.push((name.clone(), unknown())),
            Write::ClassAttribute(id, name) => self.class_mut(*id).attrs.push((name.clone(), unknown())),
            Write::Name(id, name) => {
                self.scope_mut(*id).vars.insert(name, unknown());
            }
            Write::Called(_) => {}
        }
    }

    /// Returns true if an object belongs to an evaluation that was repeated.
    pub(crate) fn is_discarded(&self, id: ObjectId) -> bool {
        id.component == self.component
            && self.discarded.iter().any(|(from, to)| (*from..*to).contains(&id.index))
    }
}

/// Reason of values that are unknown because another iteration may change them.
pub(crate) const WIDENED: &str = "a value that another iteration may change";

/// Returns whether statements leave the enclosing loop or function from inside a `try` that catches
/// something.
fn exits_in_try(body: &[ast::Stmt]) -> bool {
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
pub(crate) fn has_loop_or_try(body: &[ast::Stmt]) -> bool {
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

/// Returns whether statements read an attribute of `self` with one of these names.
pub(crate) fn reads_own(body: &[ast::Stmt], names: &HashSet<&str>) -> bool {
    struct Reads<'n>(&'n HashSet<&'n str>, bool);
    impl<'a> SourceOrderVisitor<'a> for Reads<'_> {
        fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt));
        }
        fn visit_expr(&mut self, expr: &'a ast::Expr) {
            if let ast::Expr::Attribute(a) = expr
                && matches!(&*a.value, ast::Expr::Name(n) if n.id.as_str() == "self")
            {
                self.1 |= self.0.contains(a.attr.id.as_str());
            }
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
        }
    }
    let mut reads = Reads(names, false);
    body.iter().for_each(|s| reads.visit_stmt(s));
    reads.1
}
