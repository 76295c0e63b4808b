//! Statements, one after the other: each is bound in front of what follows it.

use super::{Catching, Cx, Function, Lower, Tail, Val};
use crate::codes;
use crate::names::{self, PRINTED};
use crate::scope::{Known, Taint, Ty, UNIQUE};
use core_ir::{Branch, Catches, Data, LabelSpec, Name, Prim, Term, TermId};
use diagnostics::Span;
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};
use std::rc::Rc;

/// One step of a path into a value: `[key]` or `.name`.
pub(crate) enum Step<'a> {
    Item(&'a Expr),
    Attribute(&'a str),
}

pub(crate) type Bindings = Vec<(Name, TermId)>;

impl<'a> Lower<'a> {
    pub(crate) fn seq(&mut self, stmts: &'a [Stmt], cx: &mut Cx, tail: &Tail) -> TermId {
        stacker::maybe_grow(256 << 10, 2 << 20, || self.seq_inner(stmts, cx, tail))
    }

    fn seq_inner(&mut self, stmts: &'a [Stmt], cx: &mut Cx, tail: &Tail) -> TermId {
        let Some((stmt, rest)) = stmts.split_first() else { return self.end(cx, tail) };
        let at = self.at(stmt);
        if self.too_large(at) {
            return self.lit(Data::Null, at);
        }
        self.with_place(stmts, at, |l| l.one(stmt, rest, cx, tail))
    }

    /// A statement and what follows it.
    fn one(&mut self, stmt: &'a Stmt, rest: &'a [Stmt], cx: &mut Cx, tail: &Tail) -> TermId {
        let at = self.at(stmt);
        match stmt {
            Stmt::Pass(_) => self.seq(rest, cx, tail),
            Stmt::Import(s) => {
                for alias in &s.names {
                    let name = alias.name.as_str();
                    self.import(name, alias.asname.as_ref().map_or(name, |n| n.as_str()), name, at);
                }
                self.seq(rest, cx, tail)
            }
            Stmt::ImportFrom(s) => {
                let module = s.module.as_ref().map_or("", |m| m.as_str());
                for alias in &s.names {
                    let name = alias.name.as_str();
                    let as_name = alias.asname.as_ref().map_or(name, |n| n.as_str());
                    self.import(module, as_name, &format!("{module}.{name}"), at);
                }
                self.seq(rest, cx, tail)
            }
            Stmt::FunctionDef(def) => {
                let bindings = self.define(def, at);
                let body = self.seq(rest, cx, tail);
                self.b.let_in(bindings, body, at)
            }
            Stmt::ClassDef(s) => {
                self.class(s, at);
                self.seq(rest, cx, tail)
            }
            Stmt::Return(s) => self.simple(
                &[],
                cx,
                at,
                |l| {
                    let v = match &s.value {
                        Some(e) => l.whole_expr(e),
                        None => {
                            let none = l.lit(Data::Null, at);
                            (Vec::new(), l.val(none, Ty::Null, Taint::NONE))
                        }
                    };
                    l.temporary("value", v)
                },
                |l, cx, (name, v)| {
                    l.note_return(&v);
                    l.store(&v);
                    let value = l.var(&name, at);
                    l.pack(cx, "return", Some(value), at)
                },
            ),
            Stmt::Break(_) => self.pack(cx, "break", None, at),
            Stmt::Continue(_) => self.pack(cx, "continue", None, at),
            Stmt::Raise(s) => self.raise(s, cx, at),
            Stmt::Assert(s) => self.simple(
                &[],
                cx,
                at,
                |l| {
                    let test = l.expr(&s.test);
                    let holds = l.truth(&test, at);
                    let pc = l.pc;
                    l.pc = pc.join(test.taint);
                    let mut taint = test.taint;
                    let message = match &s.msg {
                        Some(e) => {
                            let v = l.expr(e);
                            taint = taint.join(v.taint);
                            l.text(v, at)
                        }
                        None => l.lit(Data::str(""), at),
                    };
                    let e = l.exception("AssertionError", message, at);
                    l.may_fail(taint);
                    let failed = l.add(Term::Fail(e), at);
                    l.pc = pc;
                    let none = l.lit(Data::Null, at);
                    let checked = l.choose(holds, none, failed, at);
                    (vec![("_".into(), checked)], ())
                },
                |l, cx, ()| l.seq(rest, cx, tail),
            ),
            Stmt::Assign(s) => {
                let outs: Vec<String> = names::assigned(std::slice::from_ref(stmt)).into_iter().collect();
                self.simple(
                    &outs,
                    cx,
                    at,
                    |l| {
                        let to_name = matches!(s.targets[..], [Expr::Name(_)]);
                        l.alone = s.value.as_call_expr().filter(|_| to_name);
                        let mut bindings = Vec::new();
                        // `a, b = b, a`: no tuple is made.
                        if let ([Expr::Tuple(t)], Expr::Tuple(v)) = (&s.targets[..], &*s.value)
                            && t.elts.len() == v.elts.len()
                            && !t.elts.iter().chain(&v.elts).any(|e| matches!(e, Expr::Starred(_)))
                        {
                            let mut values = Vec::new();
                            for e in &v.elts {
                                let value = l.expr(e);
                                let (more, (name, v)) = l.temporary("item", (Vec::new(), value));
                                bindings.extend(more);
                                values.push((name, v));
                            }
                            for (target, (name, mut v)) in t.elts.iter().zip(values) {
                                v.term = l.var(&name, at);
                                l.assign(target, v, &mut bindings);
                            }
                            return (bindings, ());
                        }
                        let (more, v) = l.whole_expr(&s.value);
                        bindings.extend(more);
                        if let [target] = &s.targets[..] {
                            l.assign(target, v, &mut bindings);
                        } else {
                            let (more, (name, v)) = l.temporary("value", (Vec::new(), v));
                            bindings.extend(more);
                            let mut last: Option<(usize, String, u8)> = None;
                            for target in &s.targets {
                                let mut value = v.clone();
                                value.term = l.var(&name, at);
                                value.roots.extend(last.clone());
                                l.assign(target, value, &mut bindings);
                                last = names::root(target).map(|n| (l.frame, n.to_string(), 0));
                            }
                        }
                        (bindings, ())
                    },
                    |l, cx, ()| l.seq(rest, cx, tail),
                )
            }
            Stmt::AnnAssign(s) => {
                let Some(value) = &s.value else { return self.seq(rest, cx, tail) };
                let outs: Vec<String> = names::assigned(std::slice::from_ref(stmt)).into_iter().collect();
                self.simple(
                    &outs,
                    cx,
                    at,
                    |l| {
                        let (mut bindings, v) = l.whole_expr(value);
                        let v = l.stated(&s.annotation, &s.target, value, v, &mut bindings);
                        l.assign(&s.target, v, &mut bindings);
                        (bindings, ())
                    },
                    |l, cx, ()| l.seq(rest, cx, tail),
                )
            }
            Stmt::AugAssign(s) => {
                let outs: Vec<String> = names::assigned(std::slice::from_ref(stmt)).into_iter().collect();
                self.simple(&outs, cx, at, |l| (l.augmented(s, at), ()), |l, cx, ()| l.seq(rest, cx, tail))
            }
            Stmt::Expr(s) => {
                let outs: Vec<String> = names::assigned(std::slice::from_ref(stmt)).into_iter().collect();
                // The last expression of a plan is its answer.
                let last = rest.is_empty()
                    && self.frame == 0
                    && self.frames[0].parent.is_none()
                    && self.loops == 0
                    && self.catching == Catching::No
                    && matches!(tail, Tail::Next)
                    && cx.signal
                    && self.top_level(stmt);
                if let Expr::Call(call) = &*s.value
                    && matches!(&*call.func, Expr::Name(n) if n.id.as_str() == "print" && self.lookup("print").is_none())
                {
                    return self.simple(
                        &[PRINTED.to_string()],
                        cx,
                        at,
                        |l| (l.print(call, at), ()),
                        |l, cx, ()| l.seq(rest, cx, tail),
                    );
                }
                self.simple(
                    &outs,
                    cx,
                    at,
                    |l| {
                        l.alone = s.value.as_call_expr();
                        let v = l.whole_expr(&s.value);
                        l.temporary(if last { "answer" } else { "unused" }, v)
                    },
                    |l, cx, (name, _)| {
                        if last {
                            let value = l.var(&name, at);
                            return l.pack(cx, "return", Some(value), at);
                        }
                        l.seq(rest, cx, tail)
                    },
                )
            }
            Stmt::If(_) | Stmt::For(_) | Stmt::While(_) | Stmt::Try(_) => self.compound(stmt, rest, cx, tail),
            other => {
                let (what, help) = match other {
                    Stmt::With(_) => ("`with`", "call the functions one after the other"),
                    Stmt::Match(_) => ("`match`", "write `if` and `elif`"),
                    Stmt::Delete(_) => ("`del`", "use `d.pop(key)` or `xs.pop(i)`"),
                    Stmt::Global(_) | Stmt::Nonlocal(_) => {
                        ("`global` and `nonlocal`", "return the new value from the function")
                    }
                    _ => ("this statement", "write it with assignments, `if`, `for` and calls"),
                };
                self.refuse(at, format!("{what} is not part of the plan language"), help);
                self.seq(rest, cx, tail)
            }
        }
    }

    fn top_level(&self, stmt: &Stmt) -> bool {
        self.source.body().last().is_some_and(|s| std::ptr::eq(s, stmt))
    }

    fn end(&mut self, cx: &mut Cx, tail: &Tail) -> TermId {
        let at = Span { start: self.source.text.len() as u32, ..crate::nowhere(self.source.id) };
        let at = Span { end: at.start, ..at };
        match tail {
            Tail::Next => self.pack(cx, "next", None, at),
            Tail::Resume { of, continues } => self.resume(cx, of, *continues, at),
        }
    }

    /// A statement without blocks. In a `try` one that may fail becomes a signal, with the variables as they
    /// were before it.
    pub(crate) fn simple<T>(
        &mut self,
        outs: &[String],
        cx: &mut Cx,
        at: Span,
        make: impl FnOnce(&mut Self) -> (Bindings, T),
        rest: impl FnOnce(&mut Self, &mut Cx, T) -> TermId,
    ) -> TermId {
        let (fails, err) = (self.fails, self.err);
        (self.fails, self.err) = (false, Taint::NONE);
        let before = self.frames.clone();
        let catching = self.catching;
        let (bindings, given) = make(self);
        let (failed, label, of_errors) = (self.fails, self.err, self.of_errors.take());
        (self.fails, self.err) = (fails, err);
        if catching == Catching::No || !failed {
            if failed {
                self.may_fail(label);
            }
            let body = rest(self, cx, given);
            return self.b.let_in(bindings, body, at);
        }
        // What the statement binds, temporaries included, is given by the `try`.
        let mut names: Vec<Name> = Vec::new();
        for (n, _) in &bindings {
            if &**n != "_" && !names.contains(n) {
                names.push(n.clone());
            }
        }
        for out in outs {
            if let Some(k) = self.frames[self.frame].vars.get(out)
                && k.function.is_none()
                && !names.contains(&k.core)
            {
                names.push(k.core.clone());
            }
        }
        let ok = Name::from("$k");
        let mut fields: Vec<(Name, TermId)> = vec![(ok, self.lit(Data::str("next"), at))];
        for n in &names {
            let v = self.var(n, at);
            fields.push((n.clone(), v));
        }
        let none = self.placeholder(Data::Null, at);
        fields.push((Name::from("$v"), none));
        let record = self.add(Term::Record(fields), at);
        let body = self.b.let_in(bindings, record, at);
        let error = self.fresh("error");
        let caught = self.var(&error, at);
        let exception = self.total("caught", vec![caught], at);
        let kind = self.lit(Data::str("exc"), at);
        let mut fields = vec![(Name::from("$k"), kind), (Name::from("$v"), exception)];
        for n in &names {
            let none = self.placeholder(Data::Null, at);
            fields.push((n.clone(), none));
        }
        let handler = self.add(Term::Record(fields), at);
        let taint = label.join(self.pc);
        let label = match of_errors {
            // The data of a label is that label.
            Some(LabelSpec::Exact(label)) => self.lit(label, at),
            _ => self.label(taint, at),
        };
        let catches = if catching == Catching::Refusals { Catches::Refusal } else { Catches::Error };
        let tried = self.add(Term::Try { label, body, catches, name: error, handler }, at);
        let s = self.fresh("try");
        let scrutinee = self.field(&s, "$k", at);
        let pc = self.pc;
        self.pc = pc.join(taint);
        let after = self.frames.clone();
        // The exception, with the variables as they were.
        self.frames = before;
        let value = self.field(&s, "$v", at);
        let raised = self.pack(cx, "exc", Some(value), at);
        self.frames = after;
        let frame = self.frame;
        for out in outs {
            if let Some(k) = self.frames[frame].vars.get_mut(out) {
                k.taint = k.taint.join(taint);
            }
        }
        let mut unpacked = Vec::new();
        for n in names {
            let v = self.field(&s, &n, at);
            unpacked.push((n, v));
        }
        let next = rest(self, cx, given);
        let next = self.b.let_in(unpacked, next, at);
        self.pc = pc;
        let branches = vec![
            Branch { tag: "next".into(), binder: None, body: next },
            Branch { tag: "exc".into(), binder: None, body: raised },
        ];
        let choice = self.add(Term::Case { scrutinee, branches, default: None }, at);
        self.b.let_in(vec![(s, tried)], choice, at)
    }

    /// A statement with blocks, and what follows it.
    fn compound(&mut self, stmt: &'a Stmt, rest: &'a [Stmt], cx: &mut Cx, tail: &Tail) -> TermId {
        let at = self.at(stmt);
        match stmt {
            Stmt::If(s) => self.simple(
                &[],
                cx,
                at,
                |l| l.test(&s.test, at),
                |l, cx, (name, v)| {
                    let term = l.var(&name, at);
                    let v = Val { term, ..v };
                    l.statement(stmt, rest, cx, tail, |l, inner| l.branches(s, v, inner, at))
                },
            ),
            Stmt::For(s) => {
                if s.is_async {
                    self.refuse(at, "`async for` is not part of the plan language", "write `for`");
                }
                self.simple(
                    &[],
                    cx,
                    at,
                    |l| {
                        let v = l.expr(&s.iter);
                        let v = l.items_of(v, at);
                        l.temporary("items", (Vec::new(), v))
                    },
                    |l, cx, (name, v)| {
                        l.statement(stmt, rest, cx, tail, |l, inner| l.for_loop(s, name, v, inner, at))
                    },
                )
            }
            Stmt::While(s) => self.statement(stmt, rest, cx, tail, |l, inner| l.while_loop(s, inner, at)),
            Stmt::Try(s) => self.statement(stmt, rest, cx, tail, |l, inner| l.try_stmt(s, inner, at)),
            _ => self.seq(rest, cx, tail),
        }
    }

    fn branches(&mut self, s: &'a ruff_python_ast::StmtIf, test: Val, cx: &mut Cx, at: Span) -> TermId {
        let pc = self.pc;
        self.pc = pc.join(test.taint);
        let (frames, iterated) = (self.frames.clone(), self.iterated.clone());
        let then = self.seq(&s.body, cx, &Tail::Next);
        (self.frames, self.iterated) = (frames, iterated);
        let other = self.clauses(&s.elif_else_clauses, cx, at);
        self.pc = pc;
        self.choose(test.term, then, other, at)
    }

    fn clauses(&mut self, clauses: &'a [ruff_python_ast::ElifElseClause], cx: &mut Cx, at: Span) -> TermId {
        let Some((clause, more)) = clauses.split_first() else { return self.pack(cx, "next", None, at) };
        let Some(test) = &clause.test else { return self.seq(&clause.body, cx, &Tail::Next) };
        let at = self.at(test);
        self.simple(
            &[],
            cx,
            at,
            |l| l.test(test, at),
            |l, cx, (name, v)| {
                let test = l.var(&name, at);
                let pc = l.pc;
                l.pc = pc.join(v.taint);
                let (frames, iterated) = (l.frames.clone(), l.iterated.clone());
                let then = l.seq(&clause.body, cx, &Tail::Next);
                (l.frames, l.iterated) = (frames, iterated);
                let other = l.clauses(more, cx, at);
                l.pc = pc;
                l.choose(test, then, other, at)
            },
        )
    }

    /// Binds the record of a statement with blocks and goes on where it ends without being left early.
    pub(crate) fn statement(
        &mut self,
        stmt: &'a Stmt,
        rest: &'a [Stmt],
        cx: &mut Cx,
        tail: &Tail,
        make: impl FnOnce(&mut Self, &mut Cx) -> TermId,
    ) -> TermId {
        let at = self.at(stmt);
        let one = std::slice::from_ref(stmt);
        let outs: Rc<[String]> = names::assigned(one).into_iter().collect();
        let signal = names::leaves(one, false) || self.catching != Catching::No;
        let mut inner = Cx::new(outs.clone(), signal);
        let (frames, iterated) = (self.frames.clone(), self.iterated.clone());
        let term = make(self, &mut inner);
        // On some way through the statement a loop may still go over what it went over before.
        self.iterated = iterated;
        let s = self.fresh("block");
        let pc = self.pc;
        let falls = inner.next.is_some();
        self.frames = inner.next.take().unwrap_or_else(|| frames.clone());
        if !signal {
            let mut bindings = vec![(s.clone(), term)];
            bindings.extend(self.unpack(&outs, &s, at));
            let body = self.seq(rest, cx, tail);
            return self.b.let_in(bindings, body, at);
        }
        self.pc = pc.join(inner.taint);
        let scrutinee = self.field(&s, "$k", at);
        let mut branches = Vec::new();
        if falls {
            let bindings = self.unpack(&outs, &s, at);
            let body = self.seq(rest, cx, tail);
            let body = self.b.let_in(bindings, body, at);
            branches.push(Branch { tag: "next".into(), binder: None, body });
        }
        self.frames = inner.left().unwrap_or(frames);
        let bindings = self.unpack(&outs, &s, at);
        let left = self.propagate(cx, &s, inner.again.is_some(), at);
        let left = self.b.let_in(bindings, left, at);
        self.pc = pc;
        let choice = self.add(Term::Case { scrutinee, branches, default: Some(left) }, at);
        self.b.let_in(vec![(s, term)], choice, at)
    }

    /// Binds a value to a temporary.
    pub(crate) fn temporary(&mut self, stem: &str, v: (Bindings, Val)) -> (Bindings, (Name, Val)) {
        let (mut bindings, v) = v;
        let name = self.fresh(stem);
        self.note_once(&name, v.term);
        bindings.push((name.clone(), v.term));
        (bindings, (name, v))
    }

    /// The truth of a condition, under a name.
    pub(crate) fn test(&mut self, condition: &'a Expr, at: Span) -> (Bindings, (Name, Val)) {
        let value = self.expr(condition);
        let term = self.truth(&value, at);
        let truth = self.val(term, Ty::Bool, value.taint);
        self.temporary("test", (Vec::new(), truth))
    }

    fn import(&mut self, module: &str, name: &str, full: &str, at: Span) {
        const KNOWN: &[&str] = &[
            "re",
            "math",
            "json",
            "typing",
            "collections",
            "__future__",
            "enum",
            "dataclasses",
            "pydantic",
            "datetime",
        ];
        let top = module.split('.').next().unwrap_or("");
        if !KNOWN.contains(&top) {
            self.refuse(
                at,
                format!("module `{module}` is not part of the plan language"),
                match top {
                    "statistics" => "compute it: `sum(xs) / len(xs)`, `sorted(xs)[len(xs) // 2]`",
                    "itertools" | "functools" | "operator" => "write a loop or a comprehension",
                    "random" | "time" | "os" | "sys" => "a plan has the time as `datetime.now()`, and the world as tools",
                    _ => {
                        "a plan imports `re`, `json`, `math`, `datetime`, `collections`, `typing`, `dataclasses`, `enum` \
                         and `pydantic`; tools need no import"
                    }
                },
            );
            return;
        }
        self.imports.insert(name.into(), full.into());
    }

    fn define(&mut self, def: &'a StmtFunctionDef, at: Span) -> Bindings {
        let name = def.name.as_str();
        if def.is_async || !def.decorator_list.is_empty() {
            let what = if def.is_async { "`async def`" } else { "a decorator" };
            self.refuse(at, format!("{what} is not part of the plan language"), "write a plain `def`");
        }
        let own =
            |body: &[Stmt]| body.iter().any(|s| matches!(s, Stmt::FunctionDef(d) if std::ptr::eq(d, def)));
        let around = self.active.last().map(|id| self.functions[*id].clone());
        let direct = match around {
            Some(Function::Def(outer, _)) => own(&outer.body),
            _ => own(self.source.body()),
        };
        if !direct {
            self.refuse(at, "`def` inside of a loop, `try` or branch", "define the function before it");
        }
        let id = self.functions.len();
        self.functions.push(Function::Def(def, self.frame));
        let bindings = self.defaults(id, &def.parameters);
        self.bind_function(name, id, at);
        bindings
    }

    pub(crate) fn bind_function(&mut self, name: &str, id: usize, _: Span) {
        let core = self.core_name(name);
        let frame = self.frame;
        let known = Known {
            core,
            ty: Ty::Any,
            taint: Taint::NONE,
            unique: UNIQUE,
            maybe_unbound: false,
            function: Some(id),
            exception: false,
        };
        self.frames[frame].vars.insert(name.into(), known);
    }

    // ── assignment ──

    /// An expression that is the whole of a statement, or all that it assigns: it may mutate a variable.
    pub(crate) fn whole_expr(&mut self, e: &'a Expr) -> (Bindings, Val) {
        let at = self.at(e);
        let Some((call, of, method)) = names::mutation(e) else { return (Vec::new(), self.expr(e)) };
        let Some(root) = names::root(of) else { return (Vec::new(), self.expr(e)) };
        let args = &call.arguments;
        let uses = args.args.iter().chain(args.keywords.iter().map(|k| &k.value));
        if uses.clone().any(|a| names::occurrences(a, root) > 0) {
            let v = self.refuse(
                at,
                format!("`{root}` is mutated and used in one statement"),
                "compute the argument in a statement before",
            );
            return (Vec::new(), v);
        }
        let mut bindings = Vec::new();
        let Some((root, steps)) = path(of) else { return (Vec::new(), self.expr(e)) };
        let Some(place) = self.place(root, &steps, at, &mut bindings) else {
            let none = self.lit(Data::Null, at);
            return (bindings, self.val(none, Ty::Any, Taint::NONE));
        };
        if !self.owns(root, steps.len(), at) {
            let none = self.lit(Data::Null, at);
            return (bindings, self.val(none, Ty::Any, Taint::NONE));
        }
        // The object.
        let object = self.read_place(&place, at);
        let object_name = self.fresh("object");
        bindings.push((object_name.clone(), object));
        let mut taint = self.known_taint(root);
        self.check_method(&object_name, method, call, taint, &mut bindings);
        let mut positional = Vec::new();
        let mut unique = UNIQUE;
        for a in &args.args {
            let v = self.argument(a);
            taint = taint.join(v.taint);
            unique = unique.min(self.store(&v));
            let name = self.fresh("arg");
            bindings.push((name.clone(), v.term));
            positional.push(self.var(&name, at));
        }
        let positional = self.add(Term::List(positional), at);
        let named = self.keywords(call, method, &mut bindings);
        unique = unique.min(named.unique);
        let (named, more) = self.with_keys(named, &object_name, &mut bindings, at);
        taint = taint.join(more);
        let object = self.var(&object_name, at);
        let changed = self.py(&format!("mut.{method}"), vec![object, positional, named], taint, at);
        let result = self.fresh("changed");
        bindings.push((result.clone(), changed));
        let new = self.field(&result, "self", at);
        let ty = match method {
            "append" | "extend" | "insert" => Some(Ty::List(Rc::new(Ty::Any))),
            _ => None,
        };
        let item_level = steps.len() as u8 + 1;
        // These take the parts of their argument.
        let unique = if matches!(method, "extend" | "update") { unique.saturating_sub(1) } else { unique };
        let unique = item_level.saturating_add(unique);
        let part = NewPart { term: new, taint, ty, unique, is_assigned: false };
        self.write_place(root, &place, part, at, &mut bindings);
        let value = self.field(&result, "value", at);
        let ty = if matches!(method, "pop" | "popitem" | "setdefault") { Ty::Any } else { Ty::Null };
        let mut v = self.val(value, ty, taint);
        if method == "setdefault" {
            v.roots.push((self.frame, root.to_string(), item_level));
        } else if let Some(k) = self.frames[self.frame].vars.get(root) {
            // What was taken out has no other owner, if the parts had none.
            v.unique = k.unique.saturating_sub(item_level).min(UNIQUE);
            if k.unique >= UNIQUE {
                v.unique = UNIQUE;
            }
        }
        (bindings, v)
    }

    fn known_taint(&self, root: &str) -> Taint {
        self.lookup(root).map_or(Taint::NONE, |(_, k)| k.taint)
    }

    /// Checks that a variable is the only owner of what is mutated, `depth` levels inside of it.
    pub(crate) fn owns(&mut self, root: &str, depth: usize, at: Span) -> bool {
        let Some((frame, known)) = self.lookup(root) else {
            self.unknown_name(root, at);
            return false;
        };
        let (unique, ty) = (known.unique, known.ty.clone());
        if self.iterated.iter().any(|i| i == root) {
            let what = format!("`{root}` is mutated while a loop iterates over it");
            let keys = format!("`list({root}.keys())` or `list({root}.items())`");
            let help = match ty {
                Ty::Dict(_) => format!("iterate over a copy: `for … in` {keys}"),
                Ty::Any => {
                    format!("iterate over a copy: `for … in list({root}):`, or of a dictionary {keys}")
                }
                _ => format!("iterate over a copy: `for … in list({root}):`"),
            };
            self.error(codes::ITERATED, at, what, help);
            return false;
        }
        if frame != self.frame {
            self.error(
                codes::SHARED,
                at,
                format!("`{root}` belongs to the code around the function"),
                "return the new value from the function and assign it there",
            );
            return false;
        }
        if usize::from(unique) <= depth {
            let part = if depth == 0 { format!("`{root}`") } else { format!("a part of `{root}`") };
            let what = format!("{part} is mutated, and may have another name");
            self.error(codes::SHARED, at, what, copied(root, &ty, depth));
            return false;
        }
        true
    }

    /// Evaluates the keys of a path; gives the container at each level and the keys.
    fn place(&mut self, root: &str, steps: &[Step<'a>], at: Span, bindings: &mut Bindings) -> Option<Place> {
        let Some((frame, known)) = self.lookup(root) else {
            self.unknown_name(root, at);
            return None;
        };
        if frame != self.frame {
            self.owns(root, 0, at);
            return None;
        }
        if known.function.is_some() {
            self.refuse(at, format!("`{root}` is a function"), "use another name for the value");
            return None;
        }
        let (core, mut taint) = (known.core.clone(), known.taint);
        if known.maybe_unbound {
            let checked = self.read_variable(root, at);
            bindings.push((core.clone(), checked.term));
        }
        let mut place = Place { levels: vec![core.clone()], keys: Vec::new(), taint };
        for step in steps {
            let key = self.fresh("key");
            let (term, op) = match step {
                Step::Item(e) => {
                    let v = self.expr(e);
                    taint = taint.join(v.taint);
                    (v.term, "index")
                }
                Step::Attribute(name) => (self.lit(Data::str(*name), at), "attribute"),
            };
            bindings.push((key.clone(), term));
            place.keys.push((key, op));
            place.taint = taint;
        }
        Some(place)
    }

    /// Reads the containers of a path down to the last, which is given.
    fn read_place(&mut self, place: &Place, at: Span) -> TermId {
        let mut now = self.var(&place.levels[0], at);
        for (key, op) in &place.keys {
            let key = self.var(key, at);
            // What is read here is written back.
            let op = if *op == "index" { "index_to_change" } else { op };
            now = self.py(op, vec![now, key], place.taint, at);
        }
        now
    }

    /// Puts a new value where a path leads, and rebinds the variable at its root.
    fn write_place(&mut self, root: &str, place: &Place, new: NewPart, at: Span, bindings: &mut Bindings) {
        let NewPart { term: new, taint, ty, unique, is_assigned } = new;
        let taint = taint.join(place.taint).join(self.pc);
        let value = self.fresh("new");
        bindings.push((value.clone(), new));
        // From the inside out: each container with the changed part.
        let mut changed = value;
        for depth in (0..place.keys.len()).rev() {
            let outer = Place { levels: place.levels.clone(), keys: place.keys[..depth].to_vec(), taint };
            let container = self.read_place(&outer, at);
            let (key, _) = place.keys[depth].clone();
            let key = self.var(&key, at);
            let part = self.var(&changed, at);
            // A part that was changed in place stays where it is, also in a tuple.
            let is_assigned = is_assigned && depth + 1 == place.keys.len();
            let op = match (place.keys[depth].1, is_assigned) {
                ("attribute", _) => "put_attribute",
                (_, true) => "put",
                (_, false) => "put_back",
            };
            let put = self.py(op, vec![container, key, part], taint, at);
            let name = self.fresh("new");
            bindings.push((name.clone(), put));
            changed = name;
        }
        let term = self.var(&changed, at);
        let frame = self.frame;
        if let Some(known) = self.frames[frame].vars.get_mut(root) {
            known.taint = known.taint.join(taint);
            known.unique = known.unique.min(unique);
            known.maybe_unbound = false;
            if !place.keys.is_empty() {
                known.ty = match &known.ty {
                    Ty::List(_) => Ty::List(Rc::new(Ty::Any)),
                    Ty::Dict(_) => Ty::Dict(None),
                    _ => Ty::Any,
                };
            } else {
                known.ty = match (ty, &known.ty) {
                    (Some(ty), _) => ty,
                    (None, Ty::Set) => Ty::Set,
                    (None, Ty::List(item)) => Ty::List(item.clone()),
                    (None, Ty::Dict(_)) => Ty::Dict(None),
                    _ => Ty::Any,
                };
            }
            let core = known.core.clone();
            bindings.push((core, term));
        }
    }

    /// Assigns a value to a target.
    pub(crate) fn assign(&mut self, target: &'a Expr, v: Val, bindings: &mut Bindings) {
        let at = self.at(target);
        match target {
            Expr::Name(n) => {
                let name = n.id.as_str();
                if let Some(id) = v.function {
                    if self.loops > 0 || self.catching != Catching::No {
                        self.refuse(
                            at,
                            "a function as a value inside of a loop or `try`",
                            "define it with `def` before",
                        );
                    }
                    self.bind_function(name, id, at);
                    return;
                }
                if self.iterated.iter().any(|i| i == name) {
                    // A new value for the name leaves the collection as it is.
                    self.iterated.retain(|i| i != name);
                }
                let core = self.bind(name, &v);
                if self.frames[self.frame].once.iter().any(|n| n == name) {
                    self.note_once(&core, v.term);
                }
                bindings.push((core, v.term));
            }
            Expr::Tuple(_) | Expr::List(_) => {
                let elts: &[Expr] = match target {
                    Expr::Tuple(t) => &t.elts,
                    Expr::List(t) => &t.elts,
                    _ => &[],
                };
                let star = elts.iter().position(|e| matches!(e, Expr::Starred(_)));
                let unique = v.unique.saturating_sub(u8::from(v.unique < UNIQUE));
                let roots: Vec<_> =
                    v.roots.iter().map(|(f, n, d)| (*f, n.clone(), d.saturating_add(1))).collect();
                let parts = match star {
                    None => {
                        let count = self.number(elts.len() as i64, at);
                        self.py("unpack", vec![v.term, count], v.taint, at)
                    }
                    Some(star) => {
                        self.share_parts(&v);
                        let before = self.number(star as i64, at);
                        let after = self.number((elts.len() - star - 1) as i64, at);
                        self.py("unpack_rest", vec![v.term, before, after], v.taint, at)
                    }
                };
                let name = self.fresh("parts");
                self.note_once(&name, parts);
                bindings.push((name.clone(), parts));
                for (i, e) in elts.iter().enumerate() {
                    let list = self.var(&name, at);
                    let index = self.number(i as i64, at);
                    let term = self.add(Term::Index(list, index), at);
                    if let Expr::Starred(s) = e {
                        let ty = Ty::List(Rc::new(Ty::Any));
                        let rest = Val { unique: 1, ..self.val(term, ty, v.taint) };
                        self.assign(&s.value, rest, bindings);
                        continue;
                    }
                    let part = Val {
                        term,
                        ty: Ty::Any,
                        taint: v.taint,
                        unique,
                        roots: roots.clone(),
                        function: None,
                    };
                    self.assign(e, part, bindings);
                }
            }
            Expr::Subscript(_) | Expr::Attribute(_) => {
                let Some((root, steps)) = path(target) else {
                    self.refuse(at, "assignment to a part of a temporary value", of_temporary(target));
                    return;
                };
                if v.function.is_some() {
                    self.refuse(at, "a function as a part of a value", "call the function by its name");
                    return;
                }
                if let Expr::Subscript(sub) = target
                    && let Expr::Slice(slice) = &*sub.slice
                {
                    self.assign_slice(sub, slice, v, bindings);
                    return;
                }
                // The value is evaluated before the place.
                let value = self.fresh("value");
                bindings.push((value.clone(), v.term));
                let unique = self.store(&v);
                let Some(place) = self.place(root, &steps, at, bindings) else { return };
                if !self.owns(root, steps.len() - 1, at) {
                    return;
                }
                let new = self.var(&value, at);
                let level = steps.len() as u8;
                let unique = level.saturating_add(unique);
                let new = NewPart { term: new, taint: v.taint, ty: None, unique, is_assigned: true };
                self.write_place(root, &place, new, at, bindings);
            }
            Expr::Starred(_) => {
                self.refuse(at, "`*` in an assignment", "take the parts with slices");
            }
            _ => {
                self.refuse(at, "assignment to this expression", "assign to a variable, item or attribute");
            }
        }
    }

    /// `xs[i:j] = value`
    fn assign_slice(
        &mut self,
        target: &'a ruff_python_ast::ExprSubscript,
        slice: &'a ruff_python_ast::ExprSlice,
        v: Val,
        bindings: &mut Bindings,
    ) {
        let at = self.at(target);
        if slice.step.is_some() {
            self.refuse(at, "assignment to a slice with a step", "assign to the items one by one");
            return;
        }
        let Some((root, steps)) = path(&target.value) else {
            self.refuse(at, "assignment to a part of a temporary value", of_temporary(&target.value));
            return;
        };
        let value = self.fresh("value");
        bindings.push((value.clone(), v.term));
        self.share_parts(&v);
        let Some(place) = self.place(root, &steps, at, bindings) else { return };
        let mut taint = place.taint.join(v.taint);
        let list = self.read_place(&place, at);
        let name = self.fresh("list");
        bindings.push((name.clone(), list));
        let mut args = vec![self.var(&name, at)];
        for bound in [&slice.lower, &slice.upper] {
            args.push(match bound {
                Some(e) => {
                    let bound = self.argument(e);
                    taint = taint.join(bound.taint);
                    let name = self.fresh("bound");
                    bindings.push((name.clone(), bound.term));
                    self.var(&name, at)
                }
                None => self.lit(Data::Null, at),
            });
        }
        if !self.owns(root, steps.len(), at) {
            return;
        }
        args.push(self.var(&value, at));
        let new = self.py("put_slice", args, taint, at);
        let level = steps.len() as u8 + 1;
        let ty = Some(Ty::List(Rc::new(Ty::Any)));
        let part = NewPart { term: new, taint, ty, unique: level, is_assigned: false };
        self.write_place(root, &place, part, at, bindings);
    }

    fn augmented(&mut self, s: &'a ruff_python_ast::StmtAugAssign, at: Span) -> Bindings {
        let op = super::exprs::operator(s.op);
        let mut bindings = Vec::new();
        let Some((root, steps)) = path(&s.target) else {
            self.refuse(at, "assignment to this expression", "assign to a variable, item or attribute");
            return bindings;
        };
        let Some(op) = op else {
            self.refuse(at, "this operator", "use arithmetic operators");
            return bindings;
        };
        let in_place = if op == "add" { "add_to" } else { op };
        let Some(place) = self.place(root, &steps, at, &mut bindings) else { return bindings };
        let old = self.read_place(&place, at);
        let old_name = self.fresh("old");
        bindings.push((old_name.clone(), old));
        let (more, v) = self.whole_expr(&s.value);
        bindings.extend(more);
        let value = self.fresh("value");
        bindings.push((value.clone(), v.term));
        let unique = self.store(&v);
        let (ty, owned) = match self.frames[self.frame].vars.get(root) {
            Some(k) => (k.ty.clone(), usize::from(k.unique) > steps.len()),
            None => (Ty::Any, true),
        };
        let scalar = steps.is_empty() && ty.scalar();
        if !steps.is_empty() && !self.owns(root, steps.len() - 1, at) {
            return bindings;
        }
        let iterated = self.iterated.iter().any(|i| i == root);
        if !scalar && (!owned || iterated) {
            if matches!(ty, Ty::List(_) | Ty::Set | Ty::Dict(_)) && steps.is_empty() {
                self.owns(root, steps.len(), at);
                return bindings;
            }
            // A list would be changed in place, and be seen by its other name.
            let (old, name) = (self.var(&old_name, at), self.lit(Data::str(root), at));
            let checked = self.total("only_owner", vec![old, name], at);
            bindings.push(("_".into(), checked));
        }
        let (old, new) = (self.var(&old_name, at), self.var(&value, at));
        let taint = place.taint.join(v.taint);
        let both = steps.is_empty() && matches!((&ty, &v.ty), (Ty::Num, Ty::Num));
        let result = match (both, op) {
            (true, "add") => self.add(Term::Prim(Prim::Add, vec![old, new]), at),
            (true, "sub") => self.add(Term::Prim(Prim::Sub, vec![old, new]), at),
            (true, "mul") => self.add(Term::Prim(Prim::Mul, vec![old, new]), at),
            _ => self.py(in_place, vec![old, new], taint, at),
        };
        // The parts of the value become parts of the sum. What is repeated has each of its own several times.
        let parts = match op {
            "mul" if !(steps.is_empty() && super::exprs::has_scalars(&ty)) => 0,
            _ => unique.saturating_sub(1),
        };
        let level = (steps.len() as u8 + 1).saturating_add(parts);
        let kept = ty.clone();
        let ty = Some(sum_type(&kept, &v.ty));
        let part = NewPart { term: result, taint, ty, unique: level, is_assigned: true };
        self.write_place(root, &place, part, at, &mut bindings);
        if steps.is_empty()
            && !scalar
            && !owned
            && let Some(k) = self.frames[self.frame].vars.get_mut(root)
        {
            // It was no list, or the check above failed: a new value.
            k.unique = UNIQUE;
        }
        bindings
    }

    /// Binds the target of a loop.
    pub(crate) fn bind_target(&mut self, target: &'a Expr, item: Val) -> Bindings {
        let mut bindings = Vec::new();
        self.assign(target, item, &mut bindings);
        bindings
    }

    fn print(&mut self, call: &'a ruff_python_ast::ExprCall, at: Span) -> Bindings {
        let mut bindings = Vec::new();
        if self.frame != 0 {
            self.refuse(
                at,
                "`print` inside of a function",
                "return the text and print it outside; write the statements of a `main` at the top level",
            );
            return bindings;
        }
        let mut taint = Taint::NONE;
        let mut texts = Vec::new();
        let starred = call.arguments.args.iter().any(|a| matches!(a, Expr::Starred(_)));
        let mut joined = None;
        if starred {
            // `print(*xs)`
            let v = self.joined(&call.arguments.args, at);
            taint = taint.join(v.taint);
            joined = Some(self.py("texts", vec![v.term], taint, at));
        } else {
            for a in &call.arguments.args {
                let v = self.argument(a);
                taint = taint.join(v.taint);
                let text = self.text(v, at);
                texts.push(text);
            }
        }
        let mut separator = self.lit(Data::str(" "), at);
        for k in &call.arguments.keywords {
            let v = self.expr(&k.value);
            match k.arg.as_ref().map(|a| a.as_str()) {
                Some("sep") => {
                    taint = taint.join(v.taint);
                    separator = match v.ty {
                        Ty::Str => v.term,
                        _ => self.py("separator", vec![v.term], v.taint, at),
                    };
                }
                _ => {
                    self.refuse(at, "this keyword of `print`", "put the whole text into the argument");
                }
            }
        }
        let list = match joined {
            Some(list) => list,
            None => self.add(Term::List(texts), at),
        };
        let line = self.add(Term::Prim(Prim::Join, vec![list, separator]), at);
        let old = Name::from(PRINTED);
        let old = self.var(&old, at);
        let all = self.add(Term::Prim(Prim::Append, vec![old, line]), at);
        let v = self.val(all, Ty::List(Rc::new(Ty::Str)), taint.join(self.known_taint(PRINTED)));
        let core = self.bind(PRINTED, &v);
        bindings.push((core, all));
        bindings
    }

    /// Notes what a function may return.
    fn note_return(&mut self, v: &Val) {
        let frame = self.frame;
        if self.frames[frame].closed {
            // A variable of the function ends with it: what only it refers to has no other name then.
            let own = |(of, name, depth): &(usize, String, u8)| {
                let known = self.frames[frame].vars.get(name);
                *of == frame && *depth == 0 && known.is_some_and(|k| k.unique >= UNIQUE)
            };
            let alone = v.unique >= UNIQUE && v.roots.len() <= 1 && v.roots.iter().all(own);
            let unique = if v.ty.scalar() || alone { UNIQUE } else { 0 };
            let known = Known {
                core: "$v".into(),
                ty: v.ty.clone(),
                taint: v.taint.join(self.pc),
                unique,
                maybe_unbound: false,
                function: None,
                exception: false,
            };
            let frames = &mut self.frames[frame].vars;
            let joined = match frames.get("$return") {
                Some(old) => Known {
                    ty: old.ty.join(&known.ty),
                    taint: old.taint.join(known.taint),
                    unique: old.unique.min(known.unique),
                    ..known
                },
                None => known,
            };
            frames.insert("$return".into(), joined);
        }
    }
}

fn sum_type(old: &Ty, new: &Ty) -> Ty {
    match (old, new) {
        (Ty::Num, Ty::Num) => Ty::Num,
        (Ty::Str, _) => Ty::Str,
        (Ty::List(_), _) => Ty::List(Rc::new(Ty::Any)),
        (Ty::Set, _) => Ty::Set,
        _ => Ty::Any,
    }
}

/// A value that is put at a place, and what is known of it.
struct NewPart {
    term: TermId,
    taint: Taint,
    ty: Option<Ty>,
    unique: u8,
    /// True if a statement assigns it to the place, which a tuple does not take.
    is_assigned: bool,
}

/// A place inside of a variable.
#[derive(Clone)]
struct Place {
    levels: Vec<Name>,
    keys: Vec<(Name, &'static str)>,
    taint: Taint,
}

/// The remedy for a mutation of a value that has no name.
pub(super) fn of_temporary(e: &Expr) -> &'static str {
    match e {
        Expr::Subscript(s) => of_temporary(&s.value),
        Expr::Attribute(a) => of_temporary(&a.value),
        Expr::Call(c) if matches!(&*c.func, Expr::Attribute(a) if a.attr.as_str() == "setdefault") => {
            "write `if key not in d: d[key] = …` in a statement before, and then change `d[key]`"
        }
        _ => "give the value a name first",
    }
}

/// The remedy for a mutation of a value with two names, `depth` levels inside of it.
fn copied(root: &str, ty: &Ty, depth: usize) -> String {
    let (list, dict) = match depth {
        0 => (format!("`{root} = list({root})`"), format!("`{root} = dict({root})`")),
        _ => (
            format!("`{root} = [list(x) for x in {root}]`"),
            format!("`{root} = {{k: dict(v) for k, v in {root}.items()}}`"),
        ),
    };
    let copy = match ty {
        Ty::Dict(_) => dict,
        Ty::Set => format!("`{root} = set({root})`"),
        Ty::Object(..) if depth == 0 => format!("`{root} = replace({root})`"),
        Ty::List(_) => list,
        _ => format!("{list}, or {dict} of a dictionary"),
    };
    match depth {
        0 => format!(
            "make a copy of it first, such as {copy}; or change the original where it is, such as `xs[i]` or \
             `d[key]`"
        ),
        _ => format!("copy its parts first, such as {copy}"),
    }
}

/// The variable and the steps of a target.
pub(super) fn path(e: &Expr) -> Option<(&str, Vec<Step<'_>>)> {
    match e {
        Expr::Name(n) => Some((n.id.as_str(), Vec::new())),
        Expr::Attribute(a) => {
            let (root, mut steps) = path(&a.value)?;
            steps.push(Step::Attribute(a.attr.as_str()));
            Some((root, steps))
        }
        Expr::Subscript(s) => {
            let (root, mut steps) = path(&s.value)?;
            steps.push(Step::Item(&s.slice));
            Some((root, steps))
        }
        _ => None,
    }
}
