//! `try`, `raise` and `finally`.

use super::{Catching, Cx, Lower, Tail};
use crate::names;
use crate::scope::{Known, Taint, Ty};
use core_ir::{Branch, Data, Name, Prim, Term, TermId};
use diagnostics::Span;
use ruff_python_ast::{ExceptHandler, Expr, Stmt, StmtRaise, StmtTry};

/// Classes of exceptions with those that they include.
const CLASSES: &[(&str, &[&str])] = &[
    ("LookupError", &["LookupError", "KeyError", "IndexError"]),
    ("ArithmeticError", &["ArithmeticError", "ZeroDivisionError", "OverflowError"]),
    ("OSError", &["OSError", "TimeoutError", "FileNotFoundError", "PermissionError", "ConnectionError"]),
    ("FileNotFoundError", &["FileNotFoundError"]),
    ("PermissionError", &["PermissionError"]),
    ("ConnectionError", &["ConnectionError"]),
    ("NameError", &["NameError", "UnboundLocalError"]),
    ("UnboundLocalError", &["UnboundLocalError"]),
    ("KeyError", &["KeyError"]),
    ("IndexError", &["IndexError"]),
    ("ValueError", &["ValueError", "JSONDecodeError", "ValidationError"]),
    ("JSONDecodeError", &["JSONDecodeError"]),
    ("ValidationError", &["ValidationError"]),
    ("TypeError", &["TypeError"]),
    ("ZeroDivisionError", &["ZeroDivisionError"]),
    ("OverflowError", &["OverflowError"]),
    ("AttributeError", &["AttributeError"]),
    ("AssertionError", &["AssertionError"]),
    ("RuntimeError", &["RuntimeError", "NotImplementedError"]),
    ("NotImplementedError", &["NotImplementedError"]),
    ("StopIteration", &["StopIteration"]),
    ("ToolError", &["ToolError"]),
    ("TimeoutError", &["TimeoutError"]),
    ("PolicyError", &["PolicyError"]),
];

/// Returns the name of a class of exceptions if it is one of those that every plan has, and `Exception`
/// otherwise.
pub(crate) fn known_class(name: &str) -> &'static str {
    CLASSES.iter().map(|(class, _)| *class).find(|class| *class == name).unwrap_or(EXCEPTION)
}

/// Number of names that [`known_class`] gives.
pub(crate) const KNOWN_CLASSES: usize = CLASSES.len() + 1;

/// The class that includes the others.
const EXCEPTION: &str = "Exception";

/// The class that `except Exception` does not catch.
const UNCAUGHT: &str = "PolicyError";

fn class_of(e: &Expr) -> Option<&str> {
    match e {
        Expr::Name(n) => Some(n.id.as_str()),
        Expr::Attribute(a) => Some(a.attr.as_str()),
        _ => None,
    }
}

impl<'a> Lower<'a> {
    pub(crate) fn raise(&mut self, s: &'a StmtRaise, cx: &mut Cx, at: Span) -> TermId {
        // `from e` keeps the cause for whoever reads a traceback.
        if s.cause.as_deref().is_some_and(|e| !matches!(e, Expr::Name(_) | Expr::NoneLiteral(_))) {
            self.refuse(at, "this cause of an exception", "write `raise C(\"…\") from e`");
        }
        self.simple(
            &[],
            cx,
            at,
            |l| {
                let value = match s.exc.as_deref() {
                    None => match l.handled.last().cloned() {
                        Some(held) => l.var(&held, at),
                        None => {
                            l.refuse(
                                at,
                                "`raise` outside of a handler",
                                "name the exception: `raise ValueError(\"…\")`",
                            )
                            .term
                        }
                    },
                    Some(Expr::Call(c)) if c.arguments.keywords.is_empty() && c.arguments.args.len() <= 1 => {
                        let message = match c.arguments.args.first() {
                            Some(e) => {
                                let v = l.argument(e);
                                if class_of(&c.func).is_some_and(|name| l.is_key_error(name)) {
                                    let args = l.add(Term::List(vec![v.term]), at);
                                    let named = l.add(Term::Record(Vec::new()), at);
                                    l.total("b.repr", vec![args, named], at)
                                } else {
                                    l.text(v, at)
                                }
                            }
                            None => l.lit(Data::str(""), at),
                        };
                        l.raised(&c.func, message, at)
                    }
                    Some(Expr::Name(n)) if l.lookup(n.id.as_str()).is_some_and(|(_, k)| k.exception) => {
                        let v = l.read_variable(n.id.as_str(), at);
                        l.total("exception", vec![v.term], at)
                    }
                    Some(e @ Expr::Name(_)) => {
                        let message = l.lit(Data::str(""), at);
                        l.raised(e, message, at)
                    }
                    Some(_) => l.refuse(at, "this exception", "write `raise ValueError(\"…\")`").term,
                };
                let name = l.fresh("exception");
                (vec![(name.clone(), value)], name)
            },
            |l, cx, name| {
                let value = l.var(&name, at);
                l.throw(cx, value, at)
            },
        )
    }

    /// Ends a block with an exception.
    fn throw(&mut self, cx: &mut Cx, exception: TermId, at: Span) -> TermId {
        if self.catching != Catching::No {
            return self.pack(cx, "exc", Some(exception), at);
        }
        self.may_fail(Taint::NONE);
        self.add(Term::Fail(exception), at)
    }

    /// Returns true for a class of exceptions, of Python or the plan.
    pub(crate) fn is_exception(&self, name: &str) -> bool {
        name == "Exception" || CLASSES.iter().any(|(c, _)| *c == name) || self.exceptions.contains_key(name)
    }

    /// True for `KeyError` and what extends it: its message is shown as `repr` shows it.
    fn is_key_error(&self, name: &str) -> bool {
        let mut name = name;
        // A class extends one that stands before it.
        for _ in 0..=self.exceptions.len() {
            match self.exceptions.get(name) {
                Some(base) => name = base,
                None => break,
            }
        }
        name == "KeyError"
    }

    /// True if a class of the plan extends `KeyError`.
    pub(crate) fn extends_key_error(&self) -> bool {
        self.exceptions.keys().any(|name| self.is_key_error(name))
    }

    /// The classes that a class of exceptions includes.
    fn included(&self, name: &str) -> Option<Vec<String>> {
        let mut all: Vec<String> = match CLASSES.iter().find(|(c, _)| *c == name) {
            Some((_, includes)) => includes.iter().map(ToString::to_string).collect(),
            None if self.exceptions.contains_key(name) => vec![name.to_string()],
            None => return None,
        };
        // Classes of the plan extend those before them.
        let mut before = 0;
        while before < all.len() {
            before = all.len();
            for (class, base) in &self.exceptions {
                if all.contains(base) && !all.contains(class) {
                    all.push(class.clone());
                }
            }
        }
        Some(all)
    }

    fn raised(&mut self, class: &Expr, message: TermId, at: Span) -> TermId {
        let name = class_of(class).unwrap_or("");
        if !self.is_exception(name) {
            let all: Vec<&str> = CLASSES.iter().map(|(c, _)| *c).collect();
            return self
                .refuse(
                    at,
                    format!("the exception `{name}` is not part of the plan language"),
                    format!("there are: Exception, {}", all.join(", ")),
                )
                .term;
        }
        self.exception(name, message, at)
    }

    pub(crate) fn try_stmt(&mut self, s: &'a StmtTry, cx: &mut Cx, at: Span) -> TermId {
        if s.is_star {
            self.refuse(at, "`except*` is not part of the plan language", "write `except`");
        }
        if s.finalbody.is_empty() {
            return self.handled(s, cx, at);
        }
        // Everything before `finally` gives a record that says how it was left.
        let outs = cx.outs.clone();
        let mut before = Cx::new(outs.clone(), true);
        let catching = self.catching;
        self.catching = catching.max(Catching::Errors);
        let pc = self.pc;
        let frames = self.frames.clone();
        let iterated = self.iterated.clone();
        let term = self.handled(s, &mut before, at);
        self.catching = catching;
        self.iterated = iterated;
        let name = self.fresh("before");
        // `finally` runs however the block was left. What ends the run passes the `try`, as no `catch error`
        // takes it, and ends it here, too.
        let mut known = before.next.take();
        if let Some(left) = &before.left() {
            crate::scope::add(&mut known, left);
        }
        self.frames = known.unwrap_or(frames);
        self.pc = pc.join(before.taint);
        let bindings = self.unpack(&outs, &name, at);
        let last =
            self.seq(&s.finalbody, cx, &Tail::Resume { of: name.clone(), continues: before.again.is_some() });
        self.pc = pc;
        let last = self.b.let_in(bindings, last, at);
        self.b.let_in(vec![(name, term)], last, at)
    }

    /// The end of `finally`: goes on as what was before it.
    pub(crate) fn resume(&mut self, cx: &mut Cx, s: &Name, continues: bool, at: Span) -> TermId {
        let kind = self.field(s, "$k", at);
        let mut branches = Vec::new();
        let next = self.pack(cx, "next", None, at);
        branches.push(Branch { tag: "next".into(), binder: None, body: next });
        let value = self.field(s, "$v", at);
        let thrown = self.throw(cx, value, at);
        branches.push(Branch { tag: "exc".into(), binder: None, body: thrown });
        let default = if cx.signal { Some(self.propagate(cx, s, continues, at)) } else { None };
        self.add(Term::Case { scrutinee: kind, branches, default }, at)
    }

    /// `try … except … else`.
    fn handled(&mut self, s: &'a StmtTry, cx: &mut Cx, at: Span) -> TermId {
        if s.handlers.is_empty() {
            return self.seq(&s.body, cx, &Tail::Next);
        }
        let outs = cx.outs.clone();
        let mut body = Cx::new(outs.clone(), true);
        let catching = self.catching;
        let refusals = s.handlers.iter().any(|ExceptHandler::ExceptHandler(h)| {
            h.type_.as_deref().is_some_and(|t| match t {
                Expr::Tuple(t) => t.elts.iter().any(|e| class_of(e) == Some("PolicyError")),
                e => class_of(e) == Some("PolicyError"),
            })
        });
        self.catching = catching.max(if refusals { Catching::Refusals } else { Catching::Errors });
        let iterated = self.iterated.clone();
        let term = self.seq(&s.body, &mut body, &Tail::Next);
        self.catching = catching;
        self.iterated = iterated;
        let name = self.fresh("tried");
        let pc = self.pc;
        self.pc = pc.join(body.taint);
        let start = self.frames.clone();
        let mut branches = Vec::new();
        let falls = body.next.is_some();
        self.frames = body.next.take().unwrap_or_else(|| start.clone());
        if falls {
            let bindings = self.unpack(&outs, &name, at);
            let ended = self.seq(&s.orelse, cx, &Tail::Next);
            let ended = self.b.let_in(bindings, ended, at);
            branches.push(Branch { tag: "next".into(), binder: None, body: ended });
        }
        let left = body.left();
        self.frames = body.other.take().unwrap_or_else(|| start.clone());
        let bindings = self.unpack(&outs, &name, at);
        let exception = self.fresh("caught");
        let value = self.field(&name, "$v", at);
        let handled = self.handlers(&s.handlers, &exception, cx, at);
        let handled = self.b.let_in(vec![(exception, value)], handled, at);
        let handled = self.b.let_in(bindings, handled, at);
        branches.push(Branch { tag: "exc".into(), binder: None, body: handled });
        let default = if cx.signal {
            self.frames = left.unwrap_or(start);
            let bindings = self.unpack(&outs, &name, at);
            let left = self.propagate(cx, &name, body.again.is_some(), at);
            Some(self.b.let_in(bindings, left, at))
        } else if falls {
            None
        } else {
            // The block never ends by itself, which types do not know.
            let message = self.lit(Data::str("the end of a block that has none"), at);
            let never = self.exception("RuntimeError", message, at);
            Some(self.add(Term::Fail(never), at))
        };
        self.pc = pc;
        let scrutinee = self.field(&name, "$k", at);
        let choice = self.add(Term::Case { scrutinee, branches, default }, at);
        self.b.let_in(vec![(name, term)], choice, at)
    }

    fn handlers(&mut self, handlers: &'a [ExceptHandler], exception: &Name, cx: &mut Cx, at: Span) -> TermId {
        let Some((ExceptHandler::ExceptHandler(h), more)) = handlers.split_first() else {
            let value = self.var(exception, at);
            return self.throw(cx, value, at);
        };
        let (frames, iterated) = (self.frames.clone(), self.iterated.clone());
        let class = self.field(exception, "class", at);
        let at_handler = self.at(h);
        let test = match h.type_.as_deref() {
            None => self.excepted(class, at),
            Some(t) => {
                let all: Vec<&Expr> = match t {
                    Expr::Tuple(t) => t.elts.iter().collect(),
                    e => vec![e],
                };
                let mut names = Vec::new();
                let mut any = false;
                for e in all {
                    let name = class_of(e).unwrap_or("");
                    match self.included(name) {
                        Some(includes) => names.extend(includes),
                        None if matches!(name, "Exception" | "BaseException") => any = true,
                        None => {
                            let at = self.at(e);
                            self.refuse(
                                at,
                                format!("the exception `{name}` is not part of the plan language"),
                                "there are Exception, KeyError, IndexError, ValueError, TypeError, ToolError, TimeoutError and PolicyError",
                            );
                        }
                    }
                }
                let list = self.lit(Data::list(names.into_iter().map(Data::str)), at);
                if any {
                    let named = self.add(Term::Prim(Prim::Contains, vec![list, class]), at);
                    let class = self.field(exception, "class", at);
                    let rest = self.excepted(class, at);
                    let yes = self.lit(Data::Bool(true), at);
                    self.choose(named, yes, rest, at)
                } else {
                    self.add(Term::Prim(Prim::Contains, vec![list, class]), at)
                }
            }
        };
        let mut bindings = Vec::new();
        if let Some(name) = &h.name {
            let value = self.var(exception, at);
            let value = self.add(Term::Tag("exception".into(), Some(value)), at);
            let core = self.core_name(name.as_str());
            let frame = self.frame;
            let known = Known {
                core: core.clone(),
                ty: Ty::Any,
                taint: self.pc,
                unique: 0,
                maybe_unbound: false,
                function: None,
                exception: true,
            };
            self.frames[frame].vars.insert(name.to_string(), known);
            bindings.push((core, value));
        }
        self.handled.push(exception.clone());
        let mut inner = Cx::new(cx.outs.clone(), cx.signal);
        let term = match &h.name {
            // The name is unbound after the handler.
            Some(name) if names::assigned(&h.body).contains(name.as_str()) || !h.body.is_empty() => {
                self.unbinding(&h.body, name.as_str(), &mut inner, at_handler)
            }
            _ => self.seq(&h.body, &mut inner, &Tail::Next),
        };
        self.handled.pop();
        for (to, from) in
            [(&mut cx.next, inner.next), (&mut cx.again, inner.again), (&mut cx.other, inner.other)]
        {
            if let Some(frames) = from {
                crate::scope::add(to, &frames);
            }
        }
        cx.taint = cx.taint.join(inner.taint);
        let term = self.b.let_in(bindings, term, at);
        (self.frames, self.iterated) = (frames, iterated);
        let other = self.handlers(more, exception, cx, at);
        self.choose(test, term, other, at)
    }

    /// A handler's body, after which the name of its exception is unbound.
    fn unbinding(&mut self, body: &'a [Stmt], name: &str, cx: &mut Cx, at: Span) -> TermId {
        let term = self.seq(body, cx, &Tail::Next);
        let frame = self.frame;
        for frames in [&mut cx.next, &mut cx.again, &mut cx.other].into_iter().flatten() {
            if let Some(k) = frames[frame].vars.get_mut(name) {
                k.maybe_unbound = true;
                k.exception = false;
            }
        }
        if !cx.outs.iter().any(|o| o == name) {
            return term;
        }
        let held = self.fresh("handled");
        let of = self.var(&held, at);
        let unbound = self.unbound(at);
        let record = self.add(Term::With(of, name.into(), unbound), at);
        self.b.let_in(vec![(held, term)], record, at)
    }

    /// Returns true for what `except Exception` catches.
    fn excepted(&mut self, class: TermId, at: Span) -> TermId {
        let refused = self.lit(Data::str(UNCAUGHT), at);
        self.add(Term::Prim(Prim::Ne, vec![class, refused]), at)
    }
}
