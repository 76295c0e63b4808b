//! Statements.

use crate::eval::{Context, Times, World};
use crate::loops::{WIDENED, Write};
use crate::symbolic::Condition;
use crate::value::*;
use diagnostics::Span;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::HashMap;
use std::sync::Arc;

/// Exit of a block of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The next statement is evaluated.
    Next,
    /// `return` or `raise`: the function ends.
    Exit,
    /// `continue`, or branches that all leave the iteration.
    Continue,
    /// `break`.
    Break,
}

/// Branches of a statement.
struct Branches<'a> {
    /// Path and names of each branch that continues. Unless evaluation is symbolic, a single entry holds the
    /// join of all.
    alive: Vec<(Vec<Condition>, HashMap<&'a str, Value>)>,
    /// Names after the last branch that ended.
    last: Option<HashMap<&'a str, Value>>,
    /// True if every branch that ended left the function.
    all_exit: bool,
}

impl Branches<'_> {
    fn none() -> Self {
        Branches { alive: Vec::new(), last: None, all_exit: true }
    }
}

impl<'a> World<'a> {
    pub(crate) fn block(&mut self, body: &'a [Stmt], at: Context) -> Flow {
        for stmt in body {
            let span = self.span(at.module, stmt.range());
            if !self.step(1, span) {
                return Flow::Next;
            }
            let flow = self.with_stack(|w| w.statement(stmt, at));
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    pub(crate) fn statement(&mut self, stmt: &'a Stmt, at: Context) -> Flow {
        let span = self.span(at.module, stmt.range());
        match stmt {
            Stmt::Expr(s) => {
                if self.symbolic && self.conditional_append(stmt, span, at).is_some() {
                    return Flow::Next;
                }
                self.expr(&s.value, at);
            }
            Stmt::Assign(s) => {
                let value = self.expr(&s.value, at);
                for target in &s.targets {
                    self.assign(target, value.clone(), at);
                }
            }
            Stmt::AnnAssign(s) => {
                let value = s.value.as_deref().map(|v| self.expr(v, at));
                if let (true, Expr::Name(name)) = (self.scope(at.scope).is_class, &*s.target) {
                    let annotation = self.expr(&s.annotation, at);
                    let field =
                        Field { name: name.id.as_str().into(), annotation, default: value.clone(), span };
                    if let Some((_, class)) = at.this {
                        self.class_mut(class).fields.push(field);
                    }
                }
                if let Some(value) = value {
                    self.assign(&s.target, value, at);
                }
            }
            Stmt::AugAssign(s) => {
                let value = self.expr(&s.value, at);
                let old = self.expr(&s.target, at);
                // `list += items` changes the list itself.
                if let (PyKind::List(id), ast::Operator::Add) = (&old.kind, s.op)
                    && self.list(*id).kind == ListKind::List
                {
                    let id = *id;
                    self.extend(id, &value, span);
                } else {
                    let new = self.binary(&old, s.op, &value, span);
                    self.assign(&s.target, new, at);
                }
            }
            Stmt::Return(s) => {
                let value = match &s.value {
                    Some(v) => self.expr(v, at),
                    None => Value::new(PyKind::None, span),
                };
                self.record_return(value);
                return Flow::Exit;
            }
            Stmt::Raise(s) => {
                if let Some(exc) = &s.exc {
                    self.expr(exc, at);
                }
                return Flow::Exit;
            }
            Stmt::If(s) => return self.branch(s, at),
            Stmt::For(s) => return self.for_loop(s, at),
            Stmt::While(s) => {
                let test = self.expr(&s.test, at);
                if self.truth(&test) == Some(false) {
                    return self.block(&s.orelse, at);
                }
                let times = self.iterations(s, at);
                self.widen_loop(Condition::Undecided, times, span, at, |w| {
                    w.havoc(&s.body, span, at);
                    w.begin_loop();
                    let flow = w.block(&s.body, at);
                    w.end_widened_iteration(flow, at, span);
                    // Each iteration ends with the test.
                    if w.symbolic {
                        w.expr(&s.test, at);
                    }
                });
                self.conditionally(Condition::Undecided, span, at, |w| {
                    w.block(&s.orelse, at);
                });
            }
            Stmt::With(s) => {
                let mut managers: Vec<Value> = Vec::new();
                for item in &s.items {
                    let value = self.expr(&item.context_expr, at);
                    let entered = self.call_context_manager(&value, ["__enter__", "__aenter__"], span);
                    if let Some(target) = &item.optional_vars {
                        self.assign(target, entered.unwrap_or_else(|| value.clone()), at);
                    }
                    managers.push(value);
                }
                let before = self.names(at, span);
                let flow = self.block(&s.body, at);
                let mut caught = false;
                for manager in managers.iter().rev() {
                    let exited = self.call_context_manager(manager, ["__exit__", "__aexit__"], span);
                    caught |= exited.is_some_and(|v| self.truth(&v) != Some(false));
                    caught |=
                        self.object_of(manager).is_some_and(|(_, o)| &*o.callee == "contextlib.suppress");
                }
                return match flow {
                    Flow::Next => flow,
                    _ if caught && self.symbolic => self.after_failure(before, at, span),
                    _ => flow,
                };
            }
            Stmt::Try(s) => return self.try_stmt(s, at),
            Stmt::Match(s) => {
                let subject = self.expr(&s.subject, at);
                if let Some(case) = self.decided_case(&subject, &s.cases, at) {
                    if let ast::Pattern::MatchAs(p) = &case.pattern
                        && let Some(name) = &p.name
                    {
                        self.bind(name.id.as_str(), subject, at);
                    }
                    return self.block(&case.body, at);
                }
                let mut ways = Branches::none();
                let before = self.names(at, span);
                let base = self.path.len();
                let mut covered = false;
                for case in &s.cases {
                    if !self.restore(&before, at, span) {
                        break;
                    }
                    let test = self.pattern_test(&subject, case, at);
                    let here = self.path.len();
                    self.path.extend(test.clone());
                    self.conditions += 1;
                    self.bind_pattern_names(&case.pattern, at);
                    let flow = self.block(&case.body, at);
                    self.conditions -= 1;
                    let vars = std::mem::take(&mut self.scope_mut(at.scope).vars);
                    let path = self.path.get(base..).unwrap_or(&[]).to_vec();
                    self.add(&mut ways, flow, path, vars, span);
                    self.path.truncate(here);
                    match test {
                        Some(Condition::Test(test, _)) => self.path.push(Condition::Test(test, false)),
                        Some(other) => self.path.push(other),
                        // Whatever it is, this case takes it.
                        None => {
                            covered = self.symbolic;
                            if covered {
                                break;
                            }
                        }
                    }
                }
                if !covered {
                    let path = self.path.get(base..).unwrap_or(&[]).to_vec();
                    self.add(&mut ways, Flow::Next, path, before, span);
                }
                self.path.truncate(base);
                return self.join(ways, at, span);
            }
            Stmt::FunctionDef(s) => {
                let value = self.define(s, at);
                self.bind(s.name.id.as_str(), value, at);
            }
            Stmt::ClassDef(s) => {
                let value = self.define_class(s, at);
                self.bind(s.name.id.as_str(), value, at);
            }
            Stmt::Import(s) => {
                for alias in &s.names {
                    self.import(alias, at);
                }
            }
            Stmt::ImportFrom(s) => self.import_from(s, at),
            Stmt::Global(s) => {
                for name in &s.names {
                    self.scope_mut(at.scope).globals.insert(name.id.as_str());
                }
            }
            Stmt::Delete(s) => {
                for target in &s.targets {
                    if let Expr::Name(name) = target {
                        self.scope_mut(at.scope).vars.remove(name.id.as_str());
                    }
                }
            }
            Stmt::Nonlocal(s) => {
                for name in &s.names {
                    self.scope_mut(at.scope).outer.insert(name.id.as_str());
                }
            }
            Stmt::Break(_) => {
                self.exit_iteration(Flow::Break, at, span);
                return Flow::Break;
            }
            Stmt::Continue(_) => {
                self.exit_iteration(Flow::Continue, at, span);
                return Flow::Continue;
            }
            Stmt::Assert(s) => {
                self.expr(&s.test, at);
            }
            Stmt::Pass(_) | Stmt::TypeAlias(_) | Stmt::IpyEscapeCommand(_) => {}
        }
        Flow::Next
    }

    /// Evaluates one iteration of a loop in place of all.
    pub(crate) fn widen_loop(
        &mut self,
        condition: Condition,
        times: Times,
        span: Span,
        at: Context,
        turn: impl Fn(&mut Self),
    ) {
        self.repeating.push(times);
        if self.symbolic {
            self.iterate_to_fixpoint(at, span, |w| w.conditionally(condition.clone(), span, at, &turn));
        } else {
            self.conditionally(condition, span, at, turn);
        }
        self.repeating.pop();
    }

    /// Records a return value with its path.
    pub(crate) fn record_return(&mut self, value: Value) {
        if let Some((base, returns)) = self.returns.last_mut() {
            let path = self.path.get(*base..).unwrap_or(&[]).to_vec();
            returns.push((path, value));
        }
    }

    fn branch(&mut self, s: &'a ast::StmtIf, at: Context) -> Flow {
        let span = self.span(at.module, s.range);
        let mut branches: Vec<(Option<&'a Expr>, &'a [Stmt])> = vec![(Some(&*s.test), &s.body)];
        branches.extend(s.elif_else_clauses.iter().map(|c| (c.test.as_ref(), &*c.body)));
        let mut ways = Branches::none();
        let mut before: Option<HashMap<&'a str, Value>> = None;
        let mut covered = false;
        let base = self.path.len();
        for (side, (test, body)) in branches.into_iter().enumerate() {
            if let Some(before) = &before
                && !self.restore(before, at, span)
            {
                break;
            }
            let (truth, test) = match test {
                Some(test) => {
                    let value = self.expr(test, at);
                    (self.truth(&value), Some(value))
                }
                None => (Some(true), None),
            };
            match truth {
                Some(false) => continue,
                Some(true) if before.is_none() => return self.block(body, at),
                _ => {}
            }
            if before.is_none() {
                before = Some(self.names(at, span));
            }
            let here = self.path.len();
            let test = test.filter(|_| truth.is_none());
            self.path.extend(test.clone().map(|t| Condition::Test(t, true)));
            self.conditions += 1;
            self.sides.push((span, side));
            let flow = self.block(body, at);
            self.sides.pop();
            self.conditions -= 1;
            let vars = std::mem::take(&mut self.scope_mut(at.scope).vars);
            let path = self.path.get(base..).unwrap_or(&[]).to_vec();
            self.add(&mut ways, flow, path, vars, span);
            self.path.truncate(here);
            self.path.extend(test.map(|t| Condition::Test(t, false)));
            if truth == Some(true) {
                covered = true;
                break;
            }
        }
        match before {
            None => Flow::Next,
            Some(before) => {
                if !covered {
                    let path = self.path.get(base..).unwrap_or(&[]).to_vec();
                    self.add(&mut ways, Flow::Next, path, before, span);
                }
                self.path.truncate(base);
                self.join(ways, at, span)
            }
        }
    }

    /// Adds a branch. Unless evaluation is symbolic, its names are joined with those of earlier branches at
    /// once.
    fn add(
        &mut self,
        ways: &mut Branches<'a>,
        flow: Flow,
        path: Vec<Condition>,
        vars: HashMap<&'a str, Value>,
        span: Span,
    ) {
        if flow != Flow::Next {
            ways.all_exit &= flow == Flow::Exit;
            ways.last = Some(vars);
            return;
        }
        match ways.alive.first_mut() {
            Some((_, joined)) if !self.symbolic => {
                let mut joined = std::mem::take(joined);
                self.step(vars.len() / 8, span);
                for (name, value) in vars {
                    let value = match joined.get(name) {
                        Some(old) if self.same(old, &value) => continue,
                        Some(old) => {
                            let both = vec![old.clone(), value];
                            self.either(both, span)
                        }
                        None => value,
                    };
                    joined.insert(name, value);
                }
                ways.alive[0].1 = joined;
            }
            _ => ways.alive.push((path, vars)),
        }
    }

    /// Joins the branches of a statement into the current scope and returns how it ends.
    fn join(&mut self, mut ways: Branches<'a>, at: Context, span: Span) -> Flow {
        if ways.alive.is_empty() {
            self.scope_mut(at.scope).vars = ways.last.unwrap_or_default();
            return if ways.all_exit { Flow::Exit } else { Flow::Continue };
        }
        if self.symbolic {
            self.join_by_tests(ways.alive, at, span);
        } else if let Some((_, vars)) = ways.alive.pop() {
            self.scope_mut(at.scope).vars = vars;
        }
        Flow::Next
    }

    /// Joins branches: each name gets its value by the tests of the branches. The tests of a single branch
    /// hold afterwards.
    pub(crate) fn join_by_tests(
        &mut self,
        alive: Vec<(Vec<Condition>, HashMap<&'a str, Value>)>,
        at: Context,
        span: Span,
    ) {
        if let [(path, vars)] = &alive[..] {
            self.path.extend(path.iter().cloned());
            self.scope_mut(at.scope).vars = vars.clone();
            return;
        }
        let mut names: Vec<&'a str> = alive.iter().flat_map(|(_, vars)| vars.keys().copied()).collect();
        names.sort_unstable();
        names.dedup();
        self.step(names.len() * alive.len() / 8, span);
        let mut vars = HashMap::with_capacity(names.len());
        for name in names {
            let values: Vec<_> =
                alive.iter().filter_map(|(p, vars)| Some((p.clone(), vars.get(name)?.clone()))).collect();
            let same = values.iter().all(|(_, v)| self.same(v, &values[0].1));
            let value = if same { values[0].1.clone() } else { self.merge_guarded(values, span) };
            vars.insert(name, value);
        }
        self.scope_mut(at.scope).vars = vars;
    }

    /// Returns a copy of the current scope's names, which costs steps.
    pub(crate) fn names(&mut self, at: Context, span: Span) -> HashMap<&'a str, Value> {
        let names = self.scope(at.scope).vars.clone();
        // Where tests decide, the names of all ways are kept.
        self.step(names.len() / if self.symbolic { 2 } else { 8 }, span);
        names
    }

    /// Restores earlier names, which costs steps. Returns false if the budget is used up.
    fn restore(&mut self, before: &HashMap<&'a str, Value>, at: Context, span: Span) -> bool {
        let enough = self.step(before.len() / if self.symbolic { 2 } else { 8 }, span);
        if enough {
            self.scope_mut(at.scope).vars.clone_from(before);
        }
        enough
    }

    /// Evaluates `f` under a condition and joins the result with the state before.
    pub(crate) fn conditionally(
        &mut self,
        condition: Condition,
        span: Span,
        at: Context,
        f: impl FnOnce(&mut Self),
    ) {
        let before = self.names(at, span);
        self.conditions += 1;
        let here = self.path.len();
        self.path.push(condition);
        f(self);
        self.path.truncate(here);
        self.conditions -= 1;
        let after = std::mem::take(&mut self.scope_mut(at.scope).vars);
        let mut ways = Branches::none();
        self.add(&mut ways, Flow::Next, vec![Condition::Undecided], after, span);
        self.add(&mut ways, Flow::Next, Vec::new(), before, span);
        self.join(ways, at, span);
    }

    /// Makes everything unknown that the body of a widened loop assigns: constants always, and in symbolic
    /// evaluation any value, since it must not decide tests as the first iteration would.
    pub(crate) fn havoc(&mut self, body: &'a [Stmt], span: Span, at: Context) {
        let (names, changed, looked_at) = assigned(body);
        self.step(looked_at / 8, span);
        for name in names {
            let constant =
                self.scope(at.scope).vars.get(name).is_some_and(|v| self.symbolic || is_constant(v));
            if constant {
                self.bind(name, Value::unknown(WIDENED, span), at);
            }
        }
        let symbolic = self.symbolic;
        for (on, how) in changed.into_iter().filter(|_| symbolic) {
            let Some(on) = self.part_of_name(on, at) else { continue };
            match (on.kind, how) {
                (PyKind::List(id), Change::Added) => {
                    let list = self.list_mut(id);
                    list.open = list.open.or(Some(span));
                }
                (PyKind::List(id), _) => {
                    let list = self.list_mut(id);
                    list.open = list.open.or(Some(span));
                    list.items.iter_mut().for_each(|i| i.maybe = true);
                }
                (PyKind::Dict(id), Change::Set(Some(key))) => {
                    let key = Value::new(PyKind::Str(key.into()), span);
                    let known = self.dict(id).entries.iter().any(|(k, _)| self.same(k, &key));
                    let value = Value { maybe: !known, ..Value::unknown(WIDENED, span) };
                    self.put(id, key, value);
                }
                (PyKind::Dict(id), _) => {
                    let dict = self.dict_mut(id);
                    dict.open = dict.open.or(Some(span));
                    dict.entries.iter_mut().for_each(|(_, v)| *v = Value::unknown(WIDENED, span));
                }
                _ => {}
            }
        }
    }

    /// Returns the value of a name, or of an entry of it named by constant strings.
    fn part_of_name(&self, expr: &Expr, at: Context) -> Option<Value> {
        match expr {
            Expr::Name(name) => self.lookup_in(at.scope, name.id.as_str()),
            Expr::Subscript(s) => {
                let PyKind::Dict(id) = self.part_of_name(&s.value, at)?.kind else { return None };
                let key = written(&s.slice)?;
                let entries = &self.dict(id).entries;
                entries.iter().rev().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v.clone())
            }
            _ => None,
        }
    }

    /// Returns true if one iteration represents all: there is one for each element, and none changes
    /// something that the next one reads.
    pub(crate) fn has_independent_iterations(&mut self, body: &'a [Stmt], span: Span) -> bool {
        if !self.symbolic {
            return false;
        }
        let (alike, looked_at) = is_independent_body(body);
        self.step(looked_at / 8, span);
        alike
    }

    /// Evaluates an exception handler. Names that are known keep their values.
    pub(crate) fn on_failure(&mut self, span: Span, at: Context, f: impl FnOnce(&mut Self)) {
        let before = self.names(at, span);
        self.conditions += 1;
        let returned = self.returns.last().map_or(0, |(_, r)| r.len());
        let here = self.path.len();
        self.path.push(Condition::Undecided);
        f(self);
        self.path.truncate(here);
        if returned > 0
            && let Some((_, returns)) = self.returns.last_mut()
        {
            returns.truncate(returned);
        }
        self.conditions -= 1;
        let vars = &mut self.scope_mut(at.scope).vars;
        for (name, value) in before {
            vars.insert(name, value);
        }
    }

    /// Records that a list may have another name.
    pub(crate) fn note_alias(&mut self, value: &Value) {
        if let (true, PyKind::List(id)) = (self.symbolic, &value.kind) {
            self.aliased.insert(*id);
        }
    }

    /// Rebinds all names of a value to another one.
    fn rebind(&mut self, old: &Value, new: &Value, at: Context, span: Span) {
        let vars = &self.scope(at.scope).vars;
        let count = vars.len();
        let names: Vec<&'a str> = vars.iter().filter(|(_, v)| self.same(v, old)).map(|(n, _)| *n).collect();
        self.step(count / 8, span);
        self.scope_mut(at.scope).vars.extend(names.into_iter().map(|n| (n, new.clone())));
    }

    /// Returns true if nothing else refers to a list, so that a change may rebind its names to a new list.
    fn is_own_list(&self, name: &str, list: &Value) -> bool {
        let is_param = self
            .within
            .last()
            .is_some_and(|f| self.function(*f).own_params().iter().any(|p| *p.name == *name));
        !is_param && !matches!(list.kind, PyKind::List(id) if self.aliased.contains(&id))
    }

    /// Evaluates `out.append(e)` under a test, or on a list that depends on one, by binding a new list, so
    /// that each branch has its own. `None` if the statement is another one, or if something else refers to
    /// the list.
    fn conditional_append(&mut self, stmt: &'a Stmt, span: Span, at: Context) -> Option<()> {
        let (name, item) = appended(stmt)?;
        // Where nobody knows whether it happens, what is added is there or not.
        if self.path.iter().any(|c| matches!(c, Condition::Undecided | Condition::Loop(_))) {
            return None;
        }
        let old = self.scope(at.scope).vars.get(name)?.clone();
        if !self.is_own_list(name, &old) {
            return None;
        }
        if matches!(old.kind, PyKind::List(_)) && self.conditions == 0 {
            return None;
        }
        let parts = self.list_parts_so_far(&old)?;
        self.step(parts.len(), span);
        let item = self.expr(item, at);
        let parts: Vec<_> = parts.into_iter().chain([Ok(Value { maybe: false, ..item })]).collect();
        let new = self.list_of_parts(parts, span);
        self.rebind(&old, &new, at, span);
        Some(())
    }

    /// Returns the parts of a list that is appended to: its items, or one part for a computed list.
    fn list_parts_so_far(&self, list: &Value) -> Option<Vec<Result<Value, Value>>> {
        match &list.kind {
            PyKind::List(id) => {
                let list = self.list(*id);
                let known =
                    list.kind == ListKind::List && list.open.is_none() && list.items.iter().all(|i| !i.maybe);
                known.then(|| list.items.iter().cloned().map(Ok).collect())
            }
            PyKind::Object(id) => {
                let object = self.object(*id);
                let computed = object.base.is_none() && matches!(&*object.callee, "if" | "[*]" | "[for]");
                computed.then(|| vec![Err(list.clone())])
            }
            _ => None,
        }
    }

    /// Evaluates `for x in xs: …; out.append(e)` over an unknown iterable as `out += [e for x in xs]`. `None`
    /// for any other loop.
    pub(crate) fn loop_as_comprehension(
        &mut self,
        s: &'a ast::StmtFor,
        iter: &Value,
        at: Context,
    ) -> Option<()> {
        if !self.symbolic || !s.orelse.is_empty() {
            return None;
        }
        let (last, before) = s.body.split_last()?;
        let (test, last) = match last {
            Stmt::If(i) if i.elif_else_clauses.is_empty() => match &i.body[..] {
                [one] => (Some(&*i.test), one),
                _ => return None,
            },
            other => (None, other),
        };
        let (list, item) = appended(last)?;
        // What else happens in an iteration only gives names to values.
        let mut names: Vec<&'a Expr> = vec![&*s.target];
        for stmt in before {
            match stmt {
                Stmt::Assign(a) if a.targets.iter().all(|t| matches!(t, Expr::Name(_) | Expr::Tuple(_))) => {
                    names.extend(&a.targets);
                }
                Stmt::AnnAssign(a) if matches!(*a.target, Expr::Name(_)) => names.push(&*a.target),
                Stmt::Expr(_) => {}
                _ => return None,
            }
        }
        let span = self.span(at.module, s.range);
        let old = self.scope(at.scope).vars.get(list)?.clone();
        let so_far = self.list_parts_so_far(&old).filter(|_| self.is_own_list(list, &old))?;
        let element_at = self.span(at.module, s.target.range());
        let element = self.element(iter, element_at)?;
        let PyKind::Object(id) = element.kind else { return None };
        self.step(so_far.len(), span);
        let (mark, all_names) = (self.snapshot(), self.names(at, span));
        self.watching += 1;
        let here = self.path.len();
        self.path.push(Condition::Each(id));
        self.conditions += 1;
        // What the list holds so far differs from iteration to iteration.
        self.rebind(&old, &Value::unknown(WIDENED, element_at), at, span);
        self.havoc(before, span, at);
        self.assign(&s.target, element.clone(), at);
        let _ = self.block(before, at);
        self.conditions -= 1;
        let mut parts = vec![iter.clone(), element];
        let test = test.map(|t| self.expr(t, at));
        parts.push(self.expr(item, at));
        parts.extend(test);
        self.path.truncate(here);
        self.watching -= 1;
        let changed = self.changed_since(mark, false);
        if !changed.is_empty() {
            self.scope_mut(at.scope).vars = all_names;
            self.prepare_rerun(mark, changed, span);
            return None;
        }
        let holders: Vec<&'a str> =
            all_names.iter().filter(|(_, v)| self.same(v, &old)).map(|(n, _)| *n).collect();
        for name in names {
            let value = Value::unknown("a value from the last iteration of a loop", element_at);
            self.assign(name, value, at);
        }
        let each = self.symbolic("[for]", parts, span);
        let all = match so_far.is_empty() {
            true => each,
            false => self.concatenation(so_far.into_iter().chain([Err(each)]).collect(), span),
        };
        self.scope_mut(at.scope).vars.extend(holders.into_iter().map(|n| (n, all.clone())));
        Some(())
    }

    /// Evaluates a loop that has at most one iteration.
    pub(crate) fn at_most_one_iteration(&mut self, s: &'a ast::StmtFor, iter: &Value, at: Context) -> Flow {
        let span = self.span(at.module, s.range);
        let before = self.names(at, span);
        let element_at = self.span(at.module, s.target.range());
        let base = self.path.len();
        // A test that was made before is not made again.
        let known = self.path.iter().any(|c| match c {
            Condition::Test(test, true) => match (&test.kind, &iter.kind) {
                (PyKind::Member(a, n), PyKind::Member(b, m)) => n == m && self.is_same_part(*a, *b),
                _ => false,
            },
            _ => false,
        });
        if !known {
            self.path.push(Condition::Test(iter.clone(), true));
            self.conditions += 1;
        }
        if let Some(element) = self.element(iter, element_at) {
            self.assign(&s.target, element, at);
        }
        let flow = match self.block(&s.body, at) {
            Flow::Exit => Flow::Exit,
            _ => Flow::Next,
        };
        if known {
            return flow;
        }
        self.conditions -= 1;
        let vars = std::mem::take(&mut self.scope_mut(at.scope).vars);
        let path = self.path.get(base..).unwrap_or(&[]).to_vec();
        self.path.truncate(base);
        let otherwise = vec![Condition::Test(iter.clone(), false)];
        let mut ways = Branches::none();
        self.add(&mut ways, flow, path, vars, span);
        self.add(&mut ways, Flow::Next, otherwise, before, span);
        self.join(ways, at, span)
    }

    /// Returns true if two objects are the same part of the same object.
    fn is_same_part(&self, a: ObjectId, b: ObjectId) -> bool {
        let (mut a, mut b) = (a, b);
        for _ in 0..16 {
            if a == b {
                return true;
            }
            let (x, y) = (self.object(a), self.object(b));
            let args = x.args.len() == y.args.len()
                && x.args.iter().zip(&y.args).all(|(p, q)| self.same(&p.value, &q.value));
            match (x.base, y.base) {
                (Some(next), Some(other)) if x.callee == y.callee && args => (a, b) = (next, other),
                _ => return false,
            }
        }
        false
    }

    /// Binds a name in the current scope, or in the scope that `global` or `nonlocal` selects.
    pub(crate) fn bind(&mut self, name: &'a str, value: Value, at: Context) {
        let scope = self.scope(at.scope);
        let target = if scope.globals.contains(name) {
            self.module_scope(at.module).unwrap_or(at.scope)
        } else if scope.outer.contains(name) {
            let around = |s: &ScopeId| self.scope(*s).parent;
            let mut scopes = std::iter::successors(scope.parent, around);
            scopes.find(|s| self.scope(*s).vars.contains_key(name)).unwrap_or(at.scope)
        } else {
            at.scope
        };
        let mut value = value;
        if target != at.scope {
            self.record_name_write(target, name);
            // Other functions have their names on all ways through this one.
            if let Some(old) = self.scope(target).vars.get(name).cloned()
                && self.may_keep_old(&old, &value)
            {
                let span = value.span;
                value = self.either(vec![value, old], span);
            }
        }
        self.scope_mut(target).vars.insert(name, value);
    }

    pub(crate) fn assign(&mut self, target: &'a Expr, value: Value, at: Context) {
        match target {
            Expr::Name(name) => self.bind(name.id.as_str(), value, at),
            Expr::Starred(s) => {
                let span = self.span(at.module, s.range);
                self.assign(&s.value, Value::unknown("the rest of a list", span), at);
            }
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                // Nobody knows in which order a set gives its items.
                let unordered = matches!(self.resolve_env(&value).kind, PyKind::List(id) if self.list(id).kind == ListKind::Set);
                let items = self.iterate(&value).filter(|(_, open)| open.is_none() && !unordered);
                let items = items.map(|(items, _)| items);
                let mut stars = elts.iter().enumerate().filter(|(_, e)| matches!(e, Expr::Starred(_)));
                let star = stars.next();
                let plain = star.is_none();
                match items {
                    // `first, *rest = list`
                    Some(mut items)
                        if let Some((at_star, Expr::Starred(starred))) = star
                            && items.len() + 1 >= elts.len()
                            && self.step(items.len(), value.span)
                            && items.iter().all(|i| !i.maybe) =>
                    {
                        let tail = items.split_off(items.len() - (elts.len() - 1 - at_star));
                        let rest = items.split_off(at_star);
                        let rest = self.list_value(rest, ListKind::List, None, value.span);
                        for (target, item) in elts.iter().zip(items) {
                            self.with_stack(|w| w.assign(target, item, at));
                        }
                        self.with_stack(|w| w.assign(&starred.value, rest, at));
                        for (target, item) in elts[at_star + 1..].iter().zip(tail) {
                            self.with_stack(|w| w.assign(target, item, at));
                        }
                    }
                    Some(items) if plain && items.len() == elts.len() => {
                        for (target, item) in elts.iter().zip(items) {
                            self.with_stack(|w| w.assign(target, item, at));
                        }
                    }
                    _ => {
                        for (i, target) in elts.iter().enumerate() {
                            let part = match value.kind {
                                PyKind::Object(_) if plain => {
                                    let index = Value::new(PyKind::Int(i as i64), value.span);
                                    self.subscript(&value, index, value.span)
                                }
                                _ => {
                                    let span = self.span(at.module, target.range());
                                    Value::unknown("a part of a value that is not known", span)
                                }
                            };
                            self.with_stack(|w| w.assign(target, part, at));
                        }
                    }
                }
            }
            Expr::Attribute(a) => {
                let on = self.expr(&a.value, at);
                self.set_attribute(&on, a.attr.id.as_str().into(), value);
            }
            Expr::Subscript(s) => {
                let on = self.expr(&s.value, at);
                let key = self.expr(&s.slice, at);
                let maybe = self.conditions > 0;
                match on.kind {
                    PyKind::Dict(id) => match self.conditional_entry(id, &key, &value) {
                        Some(value) => self.put(id, key, value),
                        None => self.put(id, key, Value { maybe, ..value }),
                    },
                    PyKind::List(id) => {
                        let index = match key.kind {
                            PyKind::Int(n) => usize::try_from(n).ok(),
                            _ => None,
                        };
                        let span = value.span;
                        self.note_alias(&value);
                        self.record_items_write(id);
                        match index.filter(|i| *i < self.list(id).items.len() && !maybe) {
                            Some(i) => self.list_mut(id).items[i] = value,
                            None => self.list_mut(id).open = Some(span),
                        }
                    }
                    PyKind::Object(id) => {
                        let key = Arg { name: None, span: key.span, value: key };
                        let value = Arg { name: None, span: value.span, value };
                        let span = self.span(at.module, s.range);
                        self.record_method_call(id, "__setitem__".into(), vec![key, value], None, span);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Evaluates `on.name = value`.
    pub(crate) fn set_attribute(&mut self, on: &Value, name: Arc<str>, value: Value) {
        self.note_alias(&value);
        match on.kind {
            PyKind::Object(id) => {
                self.charge_scan(self.object(id).attrs.len(), value.span);
                self.record_attribute_write(id, &name);
                let old = self.object(id).attr(&name).cloned();
                let value = self.either_old(value, old);
                self.object_mut(id).attrs.push((name, value));
            }
            PyKind::Class(id) => {
                self.record_write(|w| {
                    let old = w.class(id).attr(&name);
                    let known = old.is_none_or(|v| !matches!(v.kind, PyKind::Unknown(_)));
                    known.then(|| Write::ClassAttribute(id, name.clone()))
                });
                let old = self.class(id).attr(&name).cloned();
                let value = self.either_old(value, old);
                self.class_mut(id).attrs.push((name, value));
            }
            _ => {}
        }
    }

    /// Returns the new value, joined with the old one if the assignment may not happen or its time isn't
    /// known.
    fn either_old(&mut self, value: Value, old: Option<Value>) -> Value {
        match old {
            Some(old) if self.may_keep_old(&old, &value) => {
                let span = value.span;
                self.either(vec![value, old], span)
            }
            _ => value,
        }
    }

    /// Returns true if the old value may still be there after an assignment. A lazily made object replaces
    /// it.
    fn may_keep_old(&self, old: &Value, new: &Value) -> bool {
        let is_made = match new.kind {
            PyKind::Object(id) => {
                let object = self.object(id);
                let class = object.short().starts_with(|c: char| c.is_uppercase());
                object.base.is_none() && (class || object.class.is_some())
            }
            _ => false,
        };
        (self.conditions > 0 || self.is_guarded())
            && !(is_made && (old.is_none() || self.is_same_class(old, new)))
            || self.replaces_number(old, new)
    }

    fn is_same_class(&self, a: &Value, b: &Value) -> bool {
        match (&a.kind, &b.kind) {
            (PyKind::Object(a), PyKind::Object(b)) => self.object(*a).callee == self.object(*b).callee,
            _ => false,
        }
    }

    /// Returns true after a conditional `return` in a function that another one calls.
    pub(crate) fn is_guarded(&self) -> bool {
        let inner = self.within.len().saturating_sub(1);
        let first = self.returns.len().checked_sub(inner).and_then(|i| self.returns.get(i));
        self.symbolic && first.is_some_and(|(base, _)| self.path.len() > *base)
    }

    /// Returns true if a function that nothing calls replaces a number. When that happens isn't known.
    fn replaces_number(&self, old: &Value, new: &Value) -> bool {
        self.exploring && matches!(old.kind, PyKind::Int(_) | PyKind::Bool(_)) && !self.same(old, new)
    }

    /// Returns the entry set under the tests of the current path: the new value where all hold, else the old
    /// one. `None` without tests, or if the old value isn't known.
    fn conditional_entry(&mut self, id: DictId, key: &Value, value: &Value) -> Option<Value> {
        if !self.symbolic || self.conditions == 0 || key.as_str().is_none() || self.dict(id).open.is_some() {
            return None;
        }
        let tests: Option<Vec<(Value, bool)>> = self
            .path
            .iter()
            .map(|c| if let Condition::Test(test, holds) = c { Some((test.clone(), *holds)) } else { None })
            .collect();
        let tests = tests.filter(|t| !t.is_empty())?;
        let own = self.dict(id).entries.iter().rev().find(|(k, _)| self.same(k, key)).map(|(_, v)| v.clone());
        let old = match own.filter(|v| !v.maybe && !self.dict(id).has_spread()) {
            Some(old) => old,
            None if self.dict(id).has_spread() => {
                self.lookup_with_spread(id, key, Some(Value::new(PyKind::None, value.span)), value.span)
            }
            None => return None,
        };
        if matches!(old.kind, PyKind::Unknown(_)) {
            return None;
        }
        let mut new = Value { maybe: false, ..value.clone() };
        for (test, holds) in tests.into_iter().rev() {
            let (yes, no) = if holds { (new, old.clone()) } else { (old.clone(), new) };
            new = self.symbolic("if", vec![test, yes, no], value.span);
        }
        Some(new)
    }

    /// Sets an entry of a dictionary.
    pub(crate) fn put(&mut self, id: DictId, key: Value, value: Value) {
        if !self.charge_scan(self.dict(id).entries.len(), key.span) {
            return;
        }
        self.record_entry_write(id, Some(&key));
        self.note_alias(&value);
        // What was spread outweighs what stands before it; it represents itself.
        let entries = &self.dict(id).entries;
        let after = entries.iter().rposition(|(k, _)| Dict::is_spread(k)).map_or(0, |i| i + 1);
        let same = match Dict::is_spread(&key) {
            true => None,
            false => entries[after..].iter().position(|(k, _)| self.same(k, &key)).map(|i| i + after),
        };
        let value = match same.map(|i| self.dict(id).entries[i].1.clone()) {
            Some(old) if self.replaces_number(&old, &value) => {
                let span = value.span;
                self.either(vec![value, old], span)
            }
            _ => value,
        };
        // A member of one of the project's enumerations is a key, too.
        let member = matches!(key.kind, PyKind::Object(id) if self.object(id).class.is_some());
        let known = member
            || matches!(
                key.kind,
                PyKind::Str(_)
                    | PyKind::Int(_)
                    | PyKind::Bool(_)
                    | PyKind::Function(_)
                    | PyKind::Class(_)
                    | PyKind::External(_)
            );
        let dict = self.dict_mut(id);
        match same {
            Some(i) if !value.maybe => dict.entries[i].1 = value,
            _ if !known => dict.open = Some(key.span),
            _ => dict.entries.push((key, value)),
        }
    }

    /// Adds the items of something to a list.
    pub(crate) fn extend(&mut self, id: ListId, more: &Value, span: Span) {
        let maybe = self.conditions > 0;
        match self.iterate(more) {
            Some((items, open)) => {
                self.step(items.len(), span);
                if self.exhausted() {
                    return;
                }
                self.record_append(id);
                let list = self.list_mut(id);
                list.items.extend(items.into_iter().map(|v| Value { maybe: maybe || v.maybe, ..v }));
                list.open = list.open.or(open);
            }
            None => {
                self.record_append(id);
                let at = self.opened_at(more, span);
                let list = self.list_mut(id);
                list.open = list.open.or(Some(at));
            }
        }
    }

    /// Returns the case that a constant certainly selects: all patterns up to it are constants. Booleans are
    /// excluded, as `True` equals `1`.
    fn decided_case(
        &mut self,
        subject: &Value,
        cases: &'a [ast::MatchCase],
        at: Context,
    ) -> Option<&'a ast::MatchCase> {
        let constant =
            |v: &Value| matches!(v.kind, PyKind::Str(_) | PyKind::Int(_) | PyKind::None) && !v.maybe;
        if !constant(subject) {
            return None;
        }
        for case in cases {
            if case.guard.is_some() {
                return None;
            }
            let alternatives = match &case.pattern {
                ast::Pattern::MatchAs(p) if p.pattern.is_none() => return Some(case),
                ast::Pattern::MatchOr(or) => &or.patterns[..],
                one => std::slice::from_ref(one),
            };
            for pattern in alternatives {
                let ast::Pattern::MatchValue(v) = pattern else { return None };
                let value = self.expr(&v.value, at);
                if !constant(&value) {
                    return None;
                }
                if self.same(subject, &value) {
                    return Some(case);
                }
            }
        }
        None
    }

    /// Returns the condition under which a case is taken if no earlier one is. `None` for a case that matches
    /// everything.
    fn pattern_test(&mut self, subject: &Value, case: &'a ast::MatchCase, at: Context) -> Option<Condition> {
        if case.guard.is_some() || !self.symbolic {
            return Some(Condition::Undecided);
        }
        let span = self.span(at.module, case.pattern.range());
        let mut values = Vec::new();
        let mut todo = vec![&case.pattern];
        while let Some(pattern) = todo.pop() {
            match pattern {
                ast::Pattern::MatchValue(v) => values.push(self.expr(&v.value, at)),
                ast::Pattern::MatchSingleton(v) => values.push(Value::new(
                    match v.value {
                        ast::Singleton::None => PyKind::None,
                        ast::Singleton::True => PyKind::Bool(true),
                        ast::Singleton::False => PyKind::Bool(false),
                    },
                    span,
                )),
                ast::Pattern::MatchOr(or) => todo.extend(or.patterns.iter().rev()),
                ast::Pattern::MatchAs(p) if p.pattern.is_none() => return None,
                _ => return Some(Condition::Undecided),
            }
        }
        let mut tests: Vec<Value> = Vec::new();
        for value in values {
            tests.push(self.symbolic("==", vec![subject.clone(), value], span));
        }
        let test = if tests.len() == 1 { tests.remove(0) } else { self.symbolic("or", tests, span) };
        Some(Condition::Test(test, true))
    }

    pub(crate) fn bind_pattern_names(&mut self, pattern: &'a ast::Pattern, at: Context) {
        let mut todo = vec![pattern];
        while let Some(pattern) = todo.pop() {
            let name = match pattern {
                ast::Pattern::MatchAs(p) => {
                    todo.extend(p.pattern.as_deref());
                    p.name.as_ref()
                }
                ast::Pattern::MatchStar(p) => p.name.as_ref(),
                ast::Pattern::MatchMapping(p) => {
                    todo.extend(&p.patterns);
                    p.rest.as_ref()
                }
                ast::Pattern::MatchSequence(p) => {
                    todo.extend(&p.patterns);
                    None
                }
                ast::Pattern::MatchOr(p) => {
                    todo.extend(&p.patterns);
                    None
                }
                ast::Pattern::MatchClass(p) => {
                    todo.extend(p.arguments.patterns.iter());
                    todo.extend(p.arguments.keywords.iter().map(|k| &k.pattern));
                    None
                }
                _ => None,
            };
            if let Some(name) = name {
                let span = self.span(at.module, name.range);
                self.bind(name.id.as_str(), Value::unknown("a value matched by a pattern", span), at);
            }
        }
    }

    fn define(&mut self, s: &'a ast::StmtFunctionDef, at: Context) -> Value {
        let span = self.span(at.module, s.range);
        let decorators: Arc<[Value]> =
            s.decorator_list.iter().map(|d| self.expr(&d.expression, at)).collect();
        let params = self.params(&s.parameters, at).into();
        let returns = s.returns.as_deref().map(|r| self.expr(r, at));
        let in_class = self.scope(at.scope).is_class;
        let name: Arc<str> = s.name.id.as_str().into();
        let class = at.this.filter(|_| in_class).map(|(_, c)| c);
        let qualified = match class {
            Some(class) => format!("{}.{name}", self.class(class).qualified).into(),
            None => format!("{}.{name}", self.source(at.module).module_name()).into(),
        };
        // Methods do not see the names of their class.
        let closure = match self.scope(at.scope).parent {
            Some(parent) if in_class => parent,
            _ => at.scope,
        };
        let function = Function {
            name,
            qualified,
            params,
            returns,
            doc: documentation(&s.body),
            decorators,
            span,
            name_span: self.span(at.module, s.name.range),
            is_async: s.is_async,
            class,
            module: at.module,
            body: Body::Block(&s.body),
            closure,
            names: World::parameter_names(&s.parameters).into(),
            entered: false,
            called: 0,
            repeated: false,
        };
        let methods: Vec<Value> = function
            .decorators
            .iter()
            .rev()
            .filter(|d| matches!(d.kind, PyKind::Member(..)))
            .cloned()
            .collect();
        let id = self.add_function(function);
        let made = Value { maybe: self.conditions > 0, ..Value::new(PyKind::Function(id), span) };
        // `@graph.add_node`: the method is called with the function; what it gives is taken for the function.
        for method in methods {
            self.call(&method, vec![Arg { name: None, value: made.clone(), span }]);
        }
        self.register(id, &made, span);
        made
    }

    /// Calls the project's own decorators that give back the function that they are given: what they keep of
    /// it is their purpose, as with `@register`. Others wrap it, and their calls belong to the calls of it.
    fn register(&mut self, id: FunctionId, made: &Value, span: Span) {
        if self.symbolic {
            return;
        }
        let decorators: Vec<Value> = self.function(id).decorators.iter().rev().cloned().collect();
        for decorator in decorators {
            if let PyKind::Function(d) | PyKind::Bound(_, d) = decorator.kind
                && self.gives_back(d)
            {
                let arg = Arg { name: None, value: made.clone(), span };
                self.with_stack(|w| w.apply(&decorator, vec![arg], None, span));
            }
        }
    }

    /// Returns true if a function ends by giving back its first argument, and defines no other function.
    fn gives_back(&self, id: FunctionId) -> bool {
        let function = self.function(id);
        let Some(first) = function.own_params().first() else { return false };
        let body = function.body();
        let Some(Stmt::Return(ast::StmtReturn { value: Some(given), .. })) = body.last() else {
            return false;
        };
        matches!(&**given, Expr::Name(n) if *n.id == *first.name)
            && !body.iter().any(|s| matches!(s, Stmt::FunctionDef(_) | Stmt::ClassDef(_)))
    }

    /// Returns the names of parameters in the order of [`World::params`].
    pub(crate) fn parameter_names(p: &'a ast::Parameters) -> Vec<&'a str> {
        let plain = p.posonlyargs.iter().chain(&p.args).chain(&p.kwonlyargs).map(|p| &p.parameter);
        let rest = [&p.vararg, &p.kwarg].into_iter().flatten().map(AsRef::as_ref);
        plain.chain(rest).map(|p| p.name.id.as_str()).collect()
    }

    pub(crate) fn params(&mut self, p: &'a ast::Parameters, at: Context) -> Vec<Param> {
        let mut out = Vec::new();
        let plain = p.posonlyargs.iter().chain(&p.args).map(|p| (p, ParamKind::Plain));
        let keyword = p.kwonlyargs.iter().map(|p| (p, ParamKind::Keyword));
        let rest = |w: &mut Self, param: &'a ast::Parameter, kind, default| {
            let annotation = param.annotation.as_deref().map(|a| w.expr(a, at));
            let span = w.span(at.module, param.range);
            Param { name: param.name.id.as_str().into(), annotation, default, kind, span }
        };
        for (param, kind) in plain.chain(keyword) {
            let default = param.default.as_deref().map(|d| self.expr(d, at));
            out.push(rest(self, &param.parameter, kind, default));
        }
        for (param, kind) in [(&p.vararg, ParamKind::Rest), (&p.kwarg, ParamKind::Keywords)] {
            if let Some(param) = param {
                out.push(rest(self, param, kind, None));
            }
        }
        out
    }

    fn define_class(&mut self, s: &'a ast::StmtClassDef, at: Context) -> Value {
        let span = self.span(at.module, s.range);
        let decorators = s.decorator_list.iter().map(|d| self.expr(&d.expression, at)).collect();
        let (mut bases, mut keywords) = (Vec::new(), Vec::new());
        if let Some(arguments) = &s.arguments {
            bases.extend(arguments.args.iter().map(|a| self.expr(a, at)));
            for k in &arguments.keywords {
                let value = self.expr(&k.value, at);
                let span = self.span(at.module, k.range);
                keywords.push(Arg { name: k.arg.as_ref().map(|n| n.id.as_str().into()), value, span });
            }
        }
        let name: Arc<str> = s.name.id.as_str().into();
        let class = Class {
            qualified: format!("{}.{name}", self.source(at.module).module_name()).into(),
            name,
            bases,
            keywords,
            decorators,
            attrs: Vec::new(),
            fields: Vec::new(),
            doc: documentation(&s.body),
            span,
            name_span: self.span(at.module, s.name.range),
            module: at.module,
        };
        let id = self.add_class(class);
        let scope = self.new_scope(Some(at.scope), true);
        let inner = Context { scope, this: Some((None, id)), ..at };
        self.block(&s.body, inner);
        let mut attrs: Vec<(Arc<str>, Value)> =
            self.scope_mut(scope).vars.drain().map(|(n, v)| (Arc::from(n), v)).collect();
        attrs.sort_by_key(|(_, v)| v.span);
        self.class_mut(id).attrs.extend(attrs);
        Value::new(PyKind::Class(id), span)
    }

    fn import(&mut self, alias: &'a ast::Alias, at: Context) {
        let span = self.span(at.module, alias.range);
        let name = alias.name.id.as_str();
        let head = name.split('.').next().unwrap_or(name);
        let found = |w: &mut Self, name: &str| match w.sources.import(at.module, 0, name) {
            Some(module) if !w.framework.is_some_and(|f| f.owns(name, "")) => {
                w.load(module, span);
                Value::new(PyKind::Module(module), span)
            }
            _ => Value::new(PyKind::External(name.into()), span),
        };
        match &alias.asname {
            Some(bound) => {
                let value = found(self, name);
                self.bind(bound.id.as_str(), value, at);
            }
            None => {
                found(self, name);
                let value = found(self, head);
                self.bind(head, value, at);
            }
        }
    }

    fn import_from(&mut self, s: &'a ast::StmtImportFrom, at: Context) {
        let name = s.module.as_ref().map_or("", |m| m.id.as_str());
        let module = self.sources.import(at.module, s.level, name);
        let dots = ".".repeat(s.level.min(20) as usize);
        for alias in &s.names {
            let span = self.span(at.module, alias.range);
            let wanted = alias.name.id.as_str();
            if wanted == "*" {
                self.import_all(module, &format!("{dots}{name}"), s.range, at);
                continue;
            }
            let bound = alias.asname.as_ref().map_or(wanted, |n| n.id.as_str());
            let owned = s.level == 0 && self.framework.is_some_and(|f| f.owns(name, wanted));
            let inside = module.filter(|_| !owned).and_then(|m| {
                let scope = self.load(m, span)?;
                self.lookup_in(scope, wanted)
            });
            let value = match inside {
                Some(value) => value,
                None => {
                    let full = if name.is_empty() { wanted.to_string() } else { format!("{name}.{wanted}") };
                    match self.sources.import(at.module, s.level, &full).filter(|_| !owned) {
                        Some(m) => {
                            self.load(m, span);
                            Value::new(PyKind::Module(m), span)
                        }
                        None if module.is_some_and(|m| self.is_cut(m)) => {
                            Value::unknown("a name of a module that exceeds the evaluation limit", span)
                        }
                        None => Value::new(PyKind::External(format!("{dots}{full}").into()), span),
                    }
                }
            };
            self.bind(bound, value, at);
        }
    }

    fn import_all(&mut self, module: Option<usize>, name: &str, range: TextRange, at: Context) {
        let Some(module) = module else {
            self.scope_mut(at.scope).stars.push(name.into());
            return;
        };
        let span = self.span(at.module, range);
        let Some(scope) = self.load(module, span) else { return };
        if scope == at.scope {
            return;
        }
        let all: Vec<(&'a str, Value)> = self
            .scope(scope)
            .vars
            .iter()
            .filter(|(n, _)| !n.starts_with('_'))
            .map(|(n, v)| (*n, v.clone()))
            .collect();
        let stars = self.scope(scope).stars.clone();
        self.step(all.len(), span);
        for (name, value) in all {
            self.bind(name, value, at);
        }
        self.scope_mut(at.scope).stars.extend(stars.into_iter().take(8));
    }
}

/// Returns the docstring of a body.
pub(crate) fn documentation(body: &[Stmt]) -> Option<Arc<str>> {
    match body.first()? {
        Stmt::Expr(s) => match &*s.value {
            Expr::StringLiteral(s) => Some(s.value.to_str().trim().into()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the list and the item of `out.append(item)`.
fn appended(stmt: &Stmt) -> Option<(&str, &Expr)> {
    let Stmt::Expr(e) = stmt else { return None };
    let Expr::Call(c) = &*e.value else { return None };
    let Expr::Attribute(a) = &*c.func else { return None };
    match (&*a.value, a.attr.id.as_str(), &*c.arguments.args) {
        (Expr::Name(list), "append", [item]) if c.arguments.keywords.is_empty() => {
            Some((list.id.as_str(), item))
        }
        _ => None,
    }
}

/// Returns whether statements always continue with the next iteration and assign to names only, and the
/// number of statements examined.
fn is_independent_body(body: &[Stmt]) -> (bool, usize) {
    let names_only = |target: &Expr| {
        let mut targets = vec![target];
        while let Some(target) = targets.pop() {
            match target {
                Expr::Name(_) => {}
                Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                    targets.extend(elts);
                }
                _ => return false,
            }
        }
        true
    };
    let mut looked_at = 0;
    let mut blocks: Vec<&[Stmt]> = vec![body];
    while let Some(block) = blocks.pop() {
        looked_at += block.len();
        for stmt in block {
            let fits = match stmt {
                Stmt::Assign(s) => s.targets.iter().all(names_only),
                Stmt::AugAssign(s) => names_only(&s.target),
                Stmt::AnnAssign(s) => names_only(&s.target),
                Stmt::Expr(s) => !matches!(*s.value, Expr::Yield(_) | Expr::YieldFrom(_)),
                Stmt::If(s) => {
                    blocks.push(&s.body);
                    blocks.extend(s.elif_else_clauses.iter().map(|c| &*c.body));
                    true
                }
                Stmt::For(s) => {
                    blocks.extend([&*s.body, &*s.orelse]);
                    names_only(&s.target)
                }
                Stmt::With(s) => {
                    blocks.push(&s.body);
                    true
                }
                Stmt::Try(s) => {
                    blocks.extend([&*s.body, &*s.orelse, &*s.finalbody]);
                    blocks.extend(s.handlers.iter().map(|h| {
                        let ast::ExceptHandler::ExceptHandler(h) = h;
                        &*h.body
                    }));
                    true
                }
                Stmt::Continue(_)
                | Stmt::Pass(_)
                | Stmt::Import(_)
                | Stmt::ImportFrom(_)
                | Stmt::Assert(_) => true,
                _ => false,
            };
            if !fits {
                return (false, looked_at);
            }
        }
    }
    (true, looked_at)
}

/// Returns true for constants: values that can decide tests and count iterations.
pub(crate) fn is_constant(value: &Value) -> bool {
    matches!(value.kind, PyKind::Int(_) | PyKind::Float(_) | PyKind::Bool(_) | PyKind::Str(_) | PyKind::None)
}

/// A change of a container.
enum Change<'a> {
    /// Something is added behind what is there.
    Added,
    /// A part is set, under a text if it is written.
    Set(Option<&'a str>),
}

/// A text that is written out.
fn written(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::StringLiteral(s) => Some(s.value.to_str()),
        _ => None,
    }
}

/// Returns the container that a call changes, as `xs.append(x)` does, and how.
fn changes(expr: &Expr) -> Option<(&Expr, Change<'_>)> {
    let Expr::Call(call) = expr else { return None };
    let Expr::Attribute(method) = &*call.func else { return None };
    let how = match method.attr.id.as_str() {
        "append" | "extend" | "add" => Change::Added,
        "setdefault" => Change::Set(call.arguments.args.first().and_then(written)),
        "update" | "insert" | "pop" | "popitem" | "popleft" | "appendleft" | "remove" | "discard"
        | "clear" | "sort" | "reverse" => Change::Set(None),
        _ => return None,
    };
    Some((&method.value, how))
}

/// The names that statements assign to, not those in functions and classes, what else they change, and how
/// many statements were looked at.
#[allow(clippy::type_complexity)]
fn assigned(body: &[Stmt]) -> (Vec<&str>, Vec<(&Expr, Change<'_>)>, usize) {
    let mut names = Vec::new();
    let mut changed = Vec::new();
    let mut looked_at = 0;
    let mut blocks: Vec<&[Stmt]> = vec![body];
    while let Some(block) = blocks.pop() {
        looked_at += block.len();
        for stmt in block {
            let mut targets: Vec<&Expr> = Vec::new();
            match stmt {
                Stmt::Assign(s) => {
                    targets.extend(&s.targets);
                    changed.extend(changes(&s.value));
                }
                Stmt::Expr(s) => changed.extend(changes(&s.value)),
                Stmt::AugAssign(s) => targets.push(&s.target),
                Stmt::AnnAssign(s) if s.value.is_some() => targets.push(&s.target),
                Stmt::If(s) => {
                    blocks.push(&s.body);
                    blocks.extend(s.elif_else_clauses.iter().map(|c| &*c.body));
                }
                Stmt::For(s) => blocks.extend([&*s.body, &*s.orelse]),
                Stmt::While(s) => blocks.extend([&*s.body, &*s.orelse]),
                Stmt::With(s) => blocks.push(&s.body),
                Stmt::Try(s) => {
                    blocks.extend([&*s.body, &*s.orelse, &*s.finalbody]);
                    blocks.extend(s.handlers.iter().map(|h| {
                        let ast::ExceptHandler::ExceptHandler(h) = h;
                        &*h.body
                    }));
                }
                Stmt::Match(s) => blocks.extend(s.cases.iter().map(|c| &*c.body)),
                _ => {}
            }
            while let Some(target) = targets.pop() {
                match target {
                    Expr::Name(name) => names.push(name.id.as_str()),
                    Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                        targets.extend(elts)
                    }
                    Expr::Starred(s) => targets.push(&s.value),
                    Expr::Subscript(s) => changed.push((&s.value, Change::Set(written(&s.slice)))),
                    _ => {}
                }
            }
        }
    }
    (names, changed, looked_at)
}
