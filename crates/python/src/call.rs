//! Calls: of the project's functions and classes, of what Python has built in, and of everything else.

use crate::eval::{Context, Times, World};
use crate::expr::MAX_BASES;
use crate::loops::Write;
use crate::stmt::Flow;
use crate::symbolic::Condition;
use crate::value::*;
use diagnostics::Span;
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::Ranged;
use std::collections::HashSet;
use std::sync::Arc;

/// Methods that frameworks call once and remember the result of, and functions that Python does so with.
const MEMOIZED: &[&str] = &["agent", "task", "crew", "llm", "cache", "lru_cache", "cached_property"];

/// Decorators that call a function again where it fails.
const RETRY_DECORATORS: &[&str] = &[
    "tenacity.retry",
    "retry.retry",
    "retrying.retry",
    "stamina.retry",
    "backoff.on_exception",
    "backoff.on_predicate",
];

/// From how many arguments on they cost steps.
const COSTLY_ARGUMENTS: usize = 16;

impl<'a> World<'a> {
    pub(crate) fn call_expr(&mut self, c: &'a ast::ExprCall, span: Span, at: Context) -> Value {
        if let Expr::Attribute(a) = &*c.func
            && let Expr::Call(inner) = &*a.value
            && matches!(&*inner.func, Expr::Name(n) if n.id.as_str() == "super")
            && let Some((Some(this), class)) = at.this
        {
            let (args, open) = self.arguments(&c.arguments, at);
            return self.super_call(this, class, a.attr.id.as_str(), args, open, span);
        }
        let function = self.expr(&c.func, at);
        if matches!(function.kind, PyKind::Unknown(_)) {
            self.note_unresolved(chain_of(&c.func), span);
        }
        if let (PyKind::External(name), [Expr::Starred(all)]) = (&function.kind, &*c.arguments.args)
            && &**name == "asyncio.gather"
        {
            // Everything in a list, which it gives.
            return self.expr(&all.value, at);
        }
        let (args, open) = self.arguments(&c.arguments, at);
        self.with_stack(|w| w.apply(&function, args, open, span))
    }

    fn arguments(&mut self, a: &'a ast::Arguments, at: Context) -> (Vec<Arg>, Option<Span>) {
        let (mut out, mut open) = (Vec::new(), None);
        for e in &a.args {
            let span = self.span(at.module, e.range());
            if let Expr::Starred(s) = e {
                let value = self.expr(&s.value, at);
                match self.iterate(&value) {
                    Some((items, rest)) => {
                        self.step(items.len(), span);
                        if self.exhausted() {
                            continue;
                        }
                        out.extend(items.into_iter().map(|value| Arg { name: None, value, span }));
                        open = open.or(rest);
                    }
                    None => open = Some(span),
                }
            } else {
                let value = self.expr(e, at);
                out.push(Arg { name: None, value: Value { maybe: false, ..value }, span });
            }
        }
        for k in &a.keywords {
            let span = self.span(at.module, k.range);
            let value = self.expr(&k.value, at);
            match &k.arg {
                Some(name) => {
                    let value = Value { maybe: false, ..value };
                    out.push(Arg { name: Some(name.id.as_str().into()), value, span });
                }
                None => match value.kind {
                    PyKind::Dict(id) => {
                        let Dict { entries, open: rest } = self.dict(id).clone();
                        self.step(entries.len(), span);
                        for (key, value) in entries {
                            match key.as_str() {
                                Some(name) => {
                                    let span = key.span.to(value.span);
                                    out.push(Arg { name: Some(name.into()), value, span });
                                }
                                None => open = Some(span),
                            }
                        }
                        open = open.or(rest.map(|_| span));
                    }
                    _ => open = Some(span),
                },
            }
        }
        (out, open)
    }

    pub(crate) fn apply(
        &mut self,
        function: &Value,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        // Arguments that were spread, or given before, are copied.
        if args.len() > COSTLY_ARGUMENTS && !self.step(args.len(), span) {
            return Value::unknown("a value beyond the evaluation limit", span);
        }
        match &function.kind {
            PyKind::Function(id) => match self.decorated_function(*id, span) {
                Some(wrapper) => self.with_stack(|w| w.apply(&wrapper, args, open, span)),
                None => self.call_function(*id, None, args, open, span),
            },
            PyKind::Bound(this, id) => match self.decorated_function(*id, span) {
                Some(wrapper) => {
                    let this = Arg { name: None, value: Value::new(PyKind::Object(*this), span), span };
                    let args = std::iter::once(this).chain(args).collect();
                    self.with_stack(|w| w.apply(&wrapper, args, open, span))
                }
                None => self.call_function(*id, Some(*this), args, open, span),
            },
            PyKind::Class(id) => {
                // `Color('red')`
                if let [Arg { value, name: None, .. }] = &args[..]
                    && let Some(names) = self.member_names(*id, span)
                    && let Some(name) =
                        names.iter().find(|n| self.class(*id).attr(n).is_some_and(|v| self.same(v, value)))
                {
                    return self.class_attribute(*id, name, span);
                }
                let id = self.instance(*id, args, open, span);
                Value::new(PyKind::Object(id), span)
            }
            PyKind::External(name) => self.external(&name.clone(), args, open, span),
            PyKind::Member(id, name) => self.record_method_call(*id, name.clone(), args, open, span),
            PyKind::Method(on, name) => self.method(on, name, args, open, span),
            PyKind::Object(id) => {
                let id = *id;
                // `Agent[Context](…)` is a call of `Agent`.
                let object = self.object(id);
                if object.base.is_none()
                    && &*object.callee == "functools.partial"
                    && let Some((first, given)) = object.args.split_first()
                {
                    // What is given later outweighs what was given before, by name.
                    let function = first.value.clone();
                    let later = |a: &Arg| a.name.is_some() && args.iter().any(|b| b.name == a.name);
                    let mut all: Vec<Arg> = given.iter().filter(|a| !later(a)).cloned().collect();
                    let open = open.or(object.open);
                    all.extend(args);
                    return self.with_stack(|w| w.apply(&function, all, open, span));
                }
                if let (Some(name), None) = (object.callee.strip_suffix("[]"), object.base) {
                    let name = name.to_string();
                    return self.external(&name, args, open, span);
                }
                if let Some((value, _)) = self.object(id).class.and_then(|c| self.class_lookup(c, "__call__"))
                    && let PyKind::Function(f) = value.kind
                {
                    return self.call_body(f, Some(id), args, open, span);
                }
                self.record_method_call(id, "__call__".into(), args, open, span)
            }
            PyKind::Either(id) if self.symbolic => {
                let all = &self.list(*id).items;
                let callable: Vec<Value> = all.iter().filter(|v| !v.is_none()).take(4).cloned().collect();
                self.call_one_of(&callable, args, open, span)
            }
            PyKind::Either(id) => {
                let all = self.list(*id).items.clone();
                self.conditions += 1;
                let callable = all.iter().filter(|v| !v.is_none()).take(4);
                let values = callable.map(|f| self.apply(f, args.clone(), open, span)).collect();
                self.conditions -= 1;
                self.either_or_unknown(values, span)
            }
            _ => {
                let why = self.unknown_reason(function);
                Value::unknown(format!("the result of calling {why}"), span)
            }
        }
    }

    /// Returns the function that the project's own decorators leave in place of `id`. `None` if there are no
    /// such decorators, or if their result isn't a function.
    fn decorated_function(&mut self, id: FunctionId, span: Span) -> Option<Value> {
        if !self.symbolic {
            return None;
        }
        if let Some(known) = self.wrappers.get(&id) {
            return known.clone();
        }
        let is_own = |d: &Value| matches!(d.kind, PyKind::Function(_));
        let function = self.function(id);
        if !function.decorators.iter().any(is_own) || self.decorated(id, &["staticmethod", "classmethod"]) {
            return None;
        }
        let mut plain = function.clone();
        let wrappers: Vec<Value> = plain.decorators.iter().rev().filter(|d| is_own(d)).cloned().collect();
        plain.decorators = plain.decorators.iter().filter(|d| !is_own(d)).cloned().collect();
        let plain = self.add_function(plain);
        let mut value = Value::new(PyKind::Function(plain), span);
        for wrapper in wrappers {
            let arg = Arg { name: None, value, span };
            value = self.with_stack(|w| w.apply(&wrapper, vec![arg], None, span));
        }
        let value = Some(value).filter(|v| matches!(v.kind, PyKind::Function(_)));
        self.wrappers.insert(id, value.clone());
        value
    }

    /// Evaluates a function that is called; once more where a decorator calls it again if it fails.
    fn call_function(
        &mut self,
        id: FunctionId,
        this: Option<ObjectId>,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        self.note_entry(span, id);
        let retried = self.has_retry_decorator(id);
        let wrapped = !self.symbolic && self.has_repeating_decorator(id);
        let times = match (retried, wrapped) {
            (_, true) => None,
            (true, false) => self.retries(id),
            (false, false) => Some(1),
        };
        self.repeating.push(times);
        if retried && self.symbolic {
            let here = self.path.len();
            self.path.push(Condition::Undecided);
            self.conditions += 1;
            let _ = self.call_body(id, this, args.clone(), open, span);
            self.conditions -= 1;
            self.path.truncate(here);
        }
        let value = self.call_body(id, this, args, open, span);
        self.repeating.pop();
        value
    }

    /// Returns whether a decorator of a library calls a function again when it fails.
    fn has_retry_decorator(&self, id: FunctionId) -> bool {
        self.function(id).decorators.iter().any(|d| {
            self.name_of(d).is_some_and(|n| RETRY_DECORATORS.contains(&&*n))
                || self.object_of(d).is_some_and(|(_, o)| RETRY_DECORATORS.contains(&&*o.callee))
        })
    }

    /// Maximal number of calls that the decorators of libraries make of a function where one is made; `None`
    /// if it is not known.
    fn retries(&self, id: FunctionId) -> Times {
        let decorators = &self.function(id).decorators;
        decorators.iter().try_fold(1_u64, |n, d| {
            let is_retry = |name: &str| RETRY_DECORATORS.contains(&name);
            match self.object_of(d) {
                Some((_, o)) if is_retry(&o.callee) => {
                    let arg = ["stop", "tries", "max_tries", "attempts", "stop_max_attempt_number"];
                    let value = arg.iter().find_map(|name| o.arg(name)).map(|a| &a.value)?;
                    let value = match self.object_of(value) {
                        Some((_, stop)) if stop.short() == "stop_after_attempt" => &stop.args.first()?.value,
                        _ => value,
                    };
                    match value.kind {
                        PyKind::Int(times) => n.checked_mul(u64::try_from(times).ok()?),
                        _ => None,
                    }
                }
                _ if self.name_of(d).is_some_and(|n| is_retry(&n)) => None,
                _ => Some(n),
            }
        })
    }

    /// Returns whether a decorator of the project may call a function more than once: it has a loop or a
    /// `try`.
    fn has_repeating_decorator(&self, id: FunctionId) -> bool {
        self.function(id).decorators.iter().any(|d| match d.kind {
            PyKind::Function(f) => crate::loops::has_loop_or_try(self.function(f).body()),
            _ => false,
        })
    }

    /// Returns whether the decorators of a function that nothing calls may call it more than once.
    pub(crate) fn repeating_call(&self, id: FunctionId) -> Times {
        if self.has_repeating_decorator(id) { None } else { self.retries(id) }
    }

    /// Calls one of several functions: nobody knows which, but it is one.
    fn call_one_of(&mut self, functions: &[Value], args: Vec<Arg>, open: Option<Span>, span: Span) -> Value {
        let [first, rest @ ..] = functions else { return Value::unknown("one of no values", span) };
        if rest.is_empty() {
            return self.apply(first, args, open, span);
        }
        let test = Value::unknown("which of several values is called", first.span);
        let here = self.path.len();
        self.conditions += 1;
        self.path.push(Condition::Test(test.clone(), true));
        let yes = self.with_stack(|w| w.apply(first, args.clone(), open, span));
        self.path.truncate(here);
        self.path.push(Condition::Test(test.clone(), false));
        let no = self.with_stack(|w| w.call_one_of(rest, args, open, span));
        self.path.truncate(here);
        self.conditions -= 1;
        self.symbolic("if", vec![test, yes, no], span)
    }

    /// Notes that a method of an object is called.
    pub(crate) fn record_method_call(
        &mut self,
        on: ObjectId,
        name: Arc<str>,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        let callee = format!("{}.{name}", self.object(on).callee);
        let callee: Arc<str> = if callee.len() > 400 { "…".into() } else { callee.into() };
        let result = self.new_object(callee, args, open, span, Some(on));
        self.record_write(|_| Some(Write::Called(on)));
        self.object_mut(on).calls.push(Method { name, result });
        Value::new(PyKind::Object(result), span)
    }

    /// Evaluates the body of a function. What is not given is unknown if `open` says that more may be given.
    pub(crate) fn call_body(
        &mut self,
        id: FunctionId,
        this: Option<ObjectId>,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        self.within_budget(id, span, |w| w.evaluate_body(id, this, args, open, span))
    }

    fn evaluate_body(
        &mut self,
        id: FunctionId,
        this: Option<ObjectId>,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        let function = self.function(id).clone();
        self.note_call(id);
        let remembered = args.is_empty() && self.decorated(id, MEMOIZED);
        if remembered && let Some(value) = self.memo.get(&(this, id)) {
            return value.clone();
        }
        if self.in_order.as_mut().is_some_and(|visited| !visited.insert(id)) {
            return Value::unknown(
                format!("the result of `{}`, which was called before", function.name),
                span,
            );
        }
        let again = self.within.iter().filter(|f| **f == id).count();
        if self.depth >= self.limits.calls || again >= 2 || !self.step(1 + function.params.len(), span) {
            return Value::unknown(format!("the result of a recursive call of `{}`", function.name), span);
        }
        let scope = self.new_scope(Some(function.closure), false);
        let method = this.is_some() && function.class.is_some() && !self.decorated(id, &["staticmethod"]);
        let mut given = args.into_iter();
        let mut positional: Vec<Arg> = Vec::new();
        let mut named: Vec<Arg> = Vec::new();
        if let (true, Some(this)) = (method, this) {
            // A method of the class is given the class.
            let class = function.class.filter(|_| self.decorated(id, &["classmethod"]));
            let class = class.map(|c| self.object(this).class.unwrap_or(c));
            let value = Value::new(class.map_or(PyKind::Object(this), PyKind::Class), span);
            positional.push(Arg { name: None, value, span });
        }
        for arg in given.by_ref() {
            if arg.name.is_some() { named.push(arg) } else { positional.push(arg) }
        }
        let mut positional = positional.into_iter();
        let mut values: Vec<(&'a str, Value)> = Vec::new();
        for (param, name) in function.params.iter().zip(function.names.iter().copied()) {
            let value = match param.kind {
                ParamKind::Rest => {
                    let rest: Vec<Value> = positional.by_ref().map(|a| a.value).collect();
                    self.list_value(rest, ListKind::Tuple, open, param.span)
                }
                ParamKind::Keywords => {
                    let mut dict = Dict { entries: Vec::new(), open };
                    for arg in named.drain(..) {
                        if let Some(name) = arg.name {
                            dict.entries.push((Value::new(PyKind::Str(name), arg.span), arg.value));
                        }
                    }
                    let dict = self.add_dict(dict);
                    Value::new(PyKind::Dict(dict), param.span)
                }
                ParamKind::Plain | ParamKind::Keyword => {
                    let by_position = if param.kind == ParamKind::Plain { positional.next() } else { None };
                    let by_name = named.iter().position(|a| a.name.as_ref() == Some(&param.name));
                    let by_name = by_name.map(|i| named.remove(i));
                    let unknown = || Value::unknown(format!("parameter `{}`", param.name), param.span);
                    match (by_position.or(by_name), &param.default) {
                        (Some(arg), _) => arg.value,
                        (None, Some(default)) if open.is_none() || self.exploring => {
                            Value { is_default: true, ..default.clone() }
                        }
                        _ => unknown(),
                    }
                }
            };
            self.note_alias(&value);
            values.push((name, value));
        }
        self.scope_mut(scope).vars.extend(values);
        let at = Context { scope, module: function.module, this: function.class.map(|c| (this, c)) };
        self.within.push(id);
        self.depth += 1;
        self.repeating.push((again == 0).then_some(1));
        let base = self.path.len();
        self.returns.push((base, Vec::new()));
        self.yields.push(false);
        let (flow, last) = match function.body {
            Body::Block(body) if self.in_order.is_some() => {
                self.block_in_order(body, at);
                (Flow::Next, None)
            }
            Body::Block(body) => (self.with_stack(|w| w.block(body, at)), None),
            Body::Expr(e) => (Flow::Exit, Some(self.expr(e, at))),
        };
        let (_, mut given) = self.returns.pop().unwrap_or_default();
        let yields = self.yields.pop().unwrap_or_default();
        self.depth -= 1;
        self.repeating.pop();
        self.within.pop();
        given.extend(last.map(|v| (Vec::new(), v)));
        if yields && !self.symbolic && function.decorators.is_empty() && !self.exhausted() {
            // A decorated one is a context manager or a fixture, which yields once.
            self.path.truncate(base);
            let items = given.into_iter().map(|(_, v)| Value { maybe: true, ..v }).collect();
            return self.list_value(items, ListKind::List, Some(span), span);
        }
        if flow != Flow::Exit {
            let rest = self.path.get(base..).unwrap_or(&[]).to_vec();
            given.push((rest, Value::new(PyKind::None, function.span)));
        }
        self.path.truncate(base);
        let value = if self.exhausted() {
            Value::unknown("a value beyond the evaluation limit", span)
        } else if self.symbolic && given.len() > 1 {
            self.merge_guarded(given, span)
        } else {
            let mut returned: Vec<Value> = given.into_iter().map(|(_, v)| v).collect();
            match returned.len() {
                0 => Value::unknown(
                    format!("the result of `{}`, which only raises exceptions", function.name),
                    span,
                ),
                1 => returned.remove(0),
                _ => self.either(returned, span),
            }
        };
        if remembered {
            self.memo.insert((this, id), value.clone());
        }
        value
    }

    /// An instance of a class of the project.
    pub(crate) fn instance(
        &mut self,
        class: ClassId,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> ObjectId {
        let callee = self.class(class).qualified.clone();
        let id = self.new_object(callee, args.clone(), open, span, None);
        self.object_mut(id).class = Some(class);
        if let Some(framework) = self.framework {
            framework.on_instance(self, id, class);
        }
        if let Some((init, _)) = self.class_lookup(class, "__init__") {
            if let PyKind::Function(f) = init.kind {
                self.call_body(f, Some(id), args, open, span);
            }
            return id;
        }
        let settings = self.derives(class, |n| n.ends_with("BaseSettings"));
        let named = self.derives(class, |n| n.ends_with("NamedTuple"));
        let dataclass = named
            || self.class(class).decorators.iter().any(|d| {
                self.name_of(d).is_some_and(|n| {
                    n.ends_with("dataclass") || n.ends_with("define") || n.ends_with("attr.s")
                })
            });
        let mut positional: Vec<Arg> =
            if dataclass { args.iter().filter(|a| a.name.is_none()).cloned().collect() } else { Vec::new() };
        positional.reverse();
        let fields = self.fields(class);
        self.step(fields.len() * (1 + args.len() / 16), span);
        for field in fields {
            let given = args
                .iter()
                .find(|a| a.name.as_ref() == Some(&field.name))
                .cloned()
                .or_else(|| positional.pop());
            let supplied = self.framework.is_some_and(|f| f.supplies(self, class, &field.name));
            if given.is_none() && field.default.is_none() && supplied {
                continue;
            }
            let value = match (given, &field.default) {
                (Some(arg), _) => arg.value,
                // Whoever makes it may give something else, as an environment may.
                (None, Some(default)) if open.is_some() => {
                    let default = default.clone();
                    match self.default_of(default) {
                        Value { kind: PyKind::Unknown(_), .. } => {
                            Value::unknown(format!("field `{}`", field.name), field.span)
                        }
                        default => {
                            let env = Env { name: Some(field.name.clone()), default: Some(default) };
                            Value::new(PyKind::Env(self.add_env(env)), field.span)
                        }
                    }
                }
                (None, None) if open.is_some() => {
                    Value::unknown(format!("field `{}`", field.name), field.span)
                }
                (None, Some(default)) => {
                    let default = default.clone();
                    Value { is_default: true, ..self.default_of(default) }
                }
                (None, None) if settings => Value::unknown("a setting", field.span),
                (None, None) => continue,
            };
            let value = if settings {
                let default = Some(value).filter(|v| !matches!(v.kind, PyKind::Unknown(_)));
                let env = Env { name: Some(field.name.to_uppercase().into()), default };
                let env = self.add_env(env);
                Value::new(PyKind::Env(env), field.span)
            } else {
                value
            };
            self.object_mut(id).attrs.push((field.name, value));
        }
        let after = ["__post_init__", "__attrs_post_init__"].iter().find_map(|n| self.class_lookup(class, n));
        if let Some((Value { kind: PyKind::Function(f), .. }, _)) = after.filter(|_| dataclass) {
            self.call_body(f, Some(id), Vec::new(), open, span);
        }
        id
    }

    /// The annotated names of a class and of those that it derives from, theirs first.
    pub fn fields(&self, class: ClassId) -> Vec<Field> {
        let mut order = Vec::new();
        let mut todo = vec![class];
        while let Some(id) = todo.pop() {
            if !order.contains(&id) && order.len() < MAX_BASES {
                order.push(id);
                todo.extend(self.class(id).bases.iter().take(MAX_BASES).filter_map(|b| match b.kind {
                    PyKind::Class(id) => Some(id),
                    _ => None,
                }));
            }
        }
        let mut out: Vec<Field> = Vec::new();
        for field in order.iter().rev().flat_map(|id| &self.class(*id).fields) {
            match out.iter_mut().find(|f| f.name == field.name) {
                Some(known) => *known = field.clone(),
                None => out.push(field.clone()),
            }
        }
        out
    }

    /// The default that `Field(default=…)`, `field(default_factory=…)` and the like state; any other value is
    /// itself.
    pub fn default_of(&mut self, value: Value) -> Value {
        let PyKind::Object(id) = value.kind else { return value };
        let object = self.object(id);
        if !matches!(object.short(), "Field" | "field" | "Factory" | "ib") {
            return value;
        }
        let span = object.span;
        if let Some(arg) = object.arg_at(0, "default") {
            let arg = arg.value.clone();
            return match arg.kind {
                PyKind::External(name) if name.ends_with("Ellipsis") => {
                    Value::unknown("a required field", span)
                }
                _ => arg,
            };
        }
        match object.arg("default_factory").or_else(|| object.arg("factory")).map(|a| a.value.clone()) {
            Some(factory) => self.apply(&factory, Vec::new(), None, span),
            None => Value::unknown("a required field", span),
        }
    }

    fn super_call(
        &mut self,
        this: ObjectId,
        class: ClassId,
        name: &str,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        let bases: Vec<ClassId> = self
            .class(class)
            .bases
            .iter()
            .filter_map(|b| match b.kind {
                PyKind::Class(id) => Some(id),
                _ => None,
            })
            .collect();
        for base in bases {
            if let Some((value, _)) = self.class_lookup(base, name)
                && let PyKind::Function(f) = value.kind
            {
                return self.call_body(f, Some(this), args, open, span);
            }
        }
        if name == "__init__" {
            // What is outside the project takes these as the instance's own arguments.
            let object = self.object_mut(this);
            object.args.retain(|a| a.name.is_none() || args.iter().all(|b| b.name != a.name));
            object.args.extend(args);
            object.open = object.open.or(open);
            return Value::new(PyKind::None, span);
        }
        self.record_method_call(this, name.into(), args, open, span)
    }

    /// A call of something that is not in the project.
    fn external(&mut self, name: &str, args: Vec<Arg>, open: Option<Span>, span: Span) -> Value {
        if open.is_none()
            && let Some(value) = self.built_in(name, &args, span)
        {
            return value;
        }
        Value::new(PyKind::Object(self.new_object(name.into(), args, open, span, None)), span)
    }

    fn built_in(&mut self, name: &str, args: &[Arg], span: Span) -> Option<Value> {
        let first = args.first().map(|a| &a.value);
        let kind = match name {
            "os.getenv" | "os.environ.get" | "os.environ.setdefault" | "decouple.config" => {
                let name = first?.as_str().map(Arc::from);
                let given = args
                    .get(1)
                    .filter(|a| a.name.is_none())
                    .or_else(|| args.iter().find(|a| a.name.as_deref() == Some("default")));
                let default = given.map(|a| a.value.clone());
                PyKind::Env(self.add_env(Env { name, default }))
            }
            "asyncio.run"
            | "anyio.run"
            | "trio.run"
            | "asyncio.create_task"
            | "asyncio.ensure_future"
            | "copy.copy"
            | "copy.deepcopy"
            | "builtins.iter" => {
                // `iter(f, end)` calls `f` until it gives the end.
                if let ("builtins.iter", [function, _]) = (name, args) {
                    let function = function.value.clone();
                    let here = self.path.len();
                    self.path.push(Condition::Undecided);
                    self.conditions += 1;
                    self.repeating(None, |w| {
                        w.with_stack(|w| w.apply(&function, Vec::new(), None, span));
                    });
                    self.conditions -= 1;
                    self.path.truncate(here);
                    return Some(Value::unknown("an item of `iter` with a sentinel", span));
                }
                return first.map(|v| match v.kind {
                    // `anyio.run(main)` calls it.
                    PyKind::Function(f) => self.call_body(f, None, args[1..].to_vec(), None, span),
                    _ => v.clone(),
                });
            }
            "asyncio.gather" => {
                let items = args.iter().filter(|a| a.name.is_none()).map(|a| a.value.clone()).collect();
                return Some(self.list_value(items, ListKind::List, None, span));
            }
            "asyncio.wait_for" | "asyncio.shield" => return first.cloned(),
            // They call what they are given elsewhere.
            "asyncio.to_thread" | "anyio.to_thread.run_sync" | "starlette.concurrency.run_in_threadpool" => {
                let function = first?.clone();
                return Some(self.with_stack(|w| w.apply(&function, args[1..].to_vec(), None, span)));
            }
            "typing.cast" => return args.get(1).map(|a| a.value.clone()),
            "textwrap.dedent" | "inspect.cleandoc" => {
                let value = first?.clone();
                return Some(self.dedent(&value, name == "inspect.cleandoc", span));
            }
            "builtins.str" => match first {
                None => PyKind::Str("".into()),
                Some(value) => match &value.kind {
                    PyKind::Str(_) | PyKind::Text(_) => return first.cloned(),
                    PyKind::Int(n) => PyKind::Str(n.to_string().into()),
                    PyKind::Env(_) => return first.cloned(),
                    _ => {
                        let why = self.unknown_reason(value);
                        return Some(self.join_pieces(vec![Piece::Hole(value.clone(), why)], span));
                    }
                },
            },
            "builtins.int" | "builtins.float" => {
                let value = first?;
                let settled = self.resolve_env(value).clone();
                let number = match (&settled.kind, name) {
                    (PyKind::Int(n), "builtins.int") => PyKind::Int(*n),
                    (PyKind::Str(s), "builtins.int") => PyKind::Int(s.trim().parse().ok()?),
                    (PyKind::Int(n), _) => PyKind::Float(*n as f64),
                    (PyKind::Str(s), _) => PyKind::Float(s.trim().parse().ok()?),
                    (PyKind::Float(f), "builtins.float") => PyKind::Float(*f),
                    _ => return None,
                };
                match value.kind {
                    PyKind::Env(id) => {
                        let name = self.env(id).name.clone();
                        let default = Some(Value::new(number, settled.span));
                        PyKind::Env(self.add_env(Env { name, default }))
                    }
                    _ => number,
                }
            }
            "builtins.bool" => PyKind::Bool(self.truth(first?)?),
            "builtins.sum" if args.get(1).is_some_and(|a| matches!(a.value.kind, PyKind::List(_))) => {
                let (mut lists, open) = self.iterate(first?)?;
                lists.insert(0, args[1].value.clone());
                let value = self.concatenated(&lists, span);
                if let (PyKind::List(id), Some(at)) = (&value.kind, open) {
                    let list = self.list_mut(*id);
                    list.open = list.open.or(Some(at));
                }
                return Some(value);
            }
            "builtins.len" | "builtins.abs" | "builtins.max" | "builtins.min" | "builtins.sum"
            | "builtins.any" | "builtins.all" => {
                let kind = self.aggregate(name, args, span)?;
                let on: Vec<&Value> = args.iter().map(|a| &a.value).collect();
                return Some(self.env_dependent(&on, Value::new(kind, span)));
            }
            // `sum(lists, [])` and the like.
            "itertools.chain" | "itertools.chain.from_iterable" => {
                let lists: Vec<Value> = match name {
                    "itertools.chain" => args.iter().map(|a| a.value.clone()).collect(),
                    _ => self.iterate(first?).filter(|(_, open)| open.is_none())?.0,
                };
                return Some(self.concatenated(&lists, span));
            }
            "builtins.range" => {
                let numbers: Vec<i64> = args
                    .iter()
                    .map(|a| match a.value.kind {
                        PyKind::Int(n) => Some(n),
                        _ => None,
                    })
                    .collect::<Option<_>>()?;
                let (from, to, by) = match numbers[..] {
                    [to] => (0, to, 1),
                    [from, to] => (from, to, 1),
                    [from, to, by] if by > 0 => (from, to, by),
                    _ => return None,
                };
                let most = self.limits.iterations as i64;
                if to.saturating_sub(from) / by > most {
                    return None;
                }
                let items: Vec<i64> = (from..to).step_by(by as usize).collect();
                if !self.step(items.len(), span) {
                    return None;
                }
                let items = items.into_iter().map(|n| Value::new(PyKind::Int(n), span)).collect();
                return Some(self.list_value(items, ListKind::List, None, span));
            }
            "builtins.list" | "builtins.tuple" | "builtins.set" | "builtins.sorted" | "builtins.reversed"
            | "builtins.frozenset" => {
                let (mut items, open) = match first {
                    Some(value) => self.iterate(value)?,
                    None => (Vec::new(), None),
                };
                // A list made of a set has its items in an order that nobody knows.
                let set = first.is_some_and(|v| match self.resolve_env(v).kind {
                    PyKind::List(id) => self.list(id).kind == ListKind::Set,
                    _ => false,
                });
                self.step(items.len(), span);
                match name {
                    "builtins.reversed" => items.reverse(),
                    "builtins.sorted" if items.iter().all(|i| i.as_str().is_some()) && args.len() == 1 => {
                        items.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
                    }
                    "builtins.sorted" => return None,
                    _ => {}
                }
                let kind = match name {
                    "builtins.list" | "builtins.tuple" | "builtins.reversed" if set => ListKind::Set,
                    "builtins.tuple" => ListKind::Tuple,
                    "builtins.set" | "builtins.frozenset" => ListKind::Set,
                    _ => ListKind::List,
                };
                return Some(self.list_value(items, kind, open, span));
            }
            "builtins.dict" => {
                let id = self.add_dict(Dict::default());
                for arg in args {
                    match &arg.name {
                        Some(name) => {
                            let key = Value::new(PyKind::Str(name.clone()), arg.span);
                            self.put(id, key, arg.value.clone());
                        }
                        None => self.update(id, &arg.value, span),
                    }
                }
                PyKind::Dict(id)
            }
            "builtins.enumerate" => {
                let (items, open) = self.iterate(first?)?;
                let start = match args.get(1).map(|a| &a.value.kind) {
                    Some(PyKind::Int(n)) => *n,
                    Some(_) => return None,
                    None => 0,
                };
                if !self.step(items.len(), span) {
                    return None;
                }
                let mut pairs = Vec::with_capacity(items.len());
                for (i, item) in items.into_iter().enumerate() {
                    let maybe = item.maybe;
                    let index = Value::new(PyKind::Int(start.saturating_add(i as i64)), span);
                    let pair = self.list_value(vec![index, item], ListKind::Tuple, None, span);
                    pairs.push(Value { maybe, ..pair });
                }
                return Some(self.list_value(pairs, ListKind::List, open, span));
            }
            "builtins.zip" => {
                let columns: Vec<Vec<Value>> = args
                    .iter()
                    .map(|a| {
                        self.iterate(&a.value).filter(|(_, open)| open.is_none()).map(|(items, _)| items)
                    })
                    .collect::<Option<_>>()?;
                let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
                self.step(rows * columns.len(), span);
                let rows = (0..rows)
                    .map(|i| {
                        let row = columns.iter().map(|c| c[i].clone()).collect();
                        self.list_value(row, ListKind::Tuple, None, span)
                    })
                    .collect();
                return Some(self.list_value(rows, ListKind::List, None, span));
            }
            "builtins.setattr" => {
                let [on, name, value] = args else { return None };
                let name: Arc<str> = name.value.as_str()?.into();
                self.set_attribute(&on.value, name, value.value.clone());
                PyKind::None
            }
            "builtins.getattr" => {
                let Some(name) = args.get(1)?.value.as_str().map(str::to_string) else {
                    let parts = self.members_of(first?);
                    return Some(self.one_of_parts(parts, None, "an attribute that is not known", span));
                };
                return Some(self.attribute(&first?.clone(), &name, span));
            }
            "builtins.map" => {
                let function = first?.clone();
                if !matches!(function.kind, PyKind::Function(_) | PyKind::Class(_)) {
                    return None;
                }
                let (items, open) = self.iterate(&args.get(1)?.value)?;
                let mut out = Vec::new();
                for item in items.into_iter().take(self.limits.iterations) {
                    let arg = Arg { name: None, span: item.span, value: item };
                    out.push(self.apply(&function, vec![arg], None, span));
                }
                return Some(self.list_value(out, ListKind::List, open, span));
            }
            _ => return None,
        };
        Some(Value::new(kind, span))
    }

    /// The functions that an attribute of a module or of an instance may be, without those of a private name.
    fn members_of(&self, value: &Value) -> Vec<Value> {
        let is_public = |name: &str| !name.starts_with('_');
        match value.kind {
            PyKind::Module(module) => {
                let own =
                    |v: &Value| matches!(v.kind, PyKind::Function(f) if self.function(f).module == module);
                let all = self.globals(module).into_iter();
                all.filter(|(n, v)| is_public(n) && own(v)).map(|(_, v)| v.clone()).collect()
            }
            PyKind::Object(id) => {
                let class = self.object(id).class.map(|c| self.class(c));
                let methods = class.into_iter().flat_map(|c| &c.attrs).filter(|(n, _)| is_public(n));
                let bound = methods.filter_map(|(_, v)| match v.kind {
                    PyKind::Function(f) => Some(Value::new(PyKind::Bound(id, f), v.span)),
                    _ => None,
                });
                bound.collect()
            }
            _ => Vec::new(),
        }
    }

    /// The items of several iterables, one after the other.
    fn concatenated(&mut self, lists: &[Value], span: Span) -> Value {
        let value = self.list_value(Vec::new(), ListKind::List, None, span);
        if let PyKind::List(id) = value.kind {
            let outer = std::mem::take(&mut self.conditions);
            for list in lists {
                self.conditions = usize::from(list.maybe);
                self.extend(id, list, span);
            }
            self.conditions = outer;
        }
        value
    }

    /// Evaluates `len`, `abs`, `sum`, `max`, `min`, `any` or `all` over the items of a list or over several
    /// arguments. `None` if the result isn't known.
    fn aggregate(&mut self, name: &str, args: &[Arg], span: Span) -> Option<PyKind> {
        if args.iter().any(|a| a.name.is_some()) {
            return None;
        }
        let first = self.resolve_env(&args.first()?.value).clone();
        let items = match (args, &first.kind) {
            ([_], PyKind::Str(text)) if name == "builtins.len" => {
                return self.charge_text(text.len(), span).then(|| PyKind::Int(text.chars().count() as i64));
            }
            ([_], PyKind::Int(n)) if name == "builtins.abs" => return n.checked_abs().map(PyKind::Int),
            ([_], PyKind::Float(f)) if name == "builtins.abs" => return Some(PyKind::Float(f.abs())),
            ([_], PyKind::Str(_)) | ([], _) => return None,
            ([_], _) => self.iterate(&first).filter(|(_, open)| open.is_none())?.0,
            (all, _) if matches!(name, "builtins.max" | "builtins.min") => {
                all.iter().map(|a| self.resolve_env(&a.value).clone()).collect()
            }
            _ => return None,
        };
        if items.iter().any(|i| i.maybe) {
            return None;
        }
        // A set holds what is written twice once.
        let once = match first.kind {
            PyKind::List(id) if self.list(id).kind == ListKind::Set => distinct(&items),
            _ => true,
        };
        let numbers = items.iter().map(|i| if let PyKind::Int(n) = i.kind { Some(n) } else { None });
        let mut truths = items.iter().map(|i| self.truth(i));
        Some(match name {
            "builtins.len" if once => PyKind::Int(items.len() as i64),
            "builtins.sum" if once => {
                PyKind::Int(numbers.into_iter().try_fold(0i64, |sum, n| sum.checked_add(n?))?)
            }
            "builtins.max" => PyKind::Int(numbers.collect::<Option<Vec<_>>>()?.into_iter().max()?),
            "builtins.min" => PyKind::Int(numbers.collect::<Option<Vec<_>>>()?.into_iter().min()?),
            "builtins.any" | "builtins.all" => {
                // One that is true decides whether any is; one that is false, whether all are.
                let any = name == "builtins.any";
                let decided = truths.clone().any(|t| t == Some(any));
                PyKind::Bool(if decided || truths.all(|t| t.is_some()) {
                    decided == any
                } else {
                    return None;
                })
            }
            _ => return None,
        })
    }
}

/// Returns true if all values are constants that certainly differ from one another: strings, or integers.
fn distinct(items: &[Value]) -> bool {
    let mut seen = HashSet::new();
    let texts = items.iter().all(|i| i.as_str().is_some_and(|s| seen.insert(s)));
    let mut seen = HashSet::new();
    texts || items.iter().all(|i| matches!(i.kind, PyKind::Int(n) if seen.insert(n)))
}

/// The names of attributes and calls that lead to what is called, with dots, the last ones of many:
/// `users.messages.send` of `service.users().messages().send`.
fn chain_of(called: &Expr) -> Option<String> {
    const MAX_NAMES: usize = 6;
    let mut names: Vec<&str> = Vec::new();
    let mut at = called;
    while names.len() < MAX_NAMES {
        at = match at {
            Expr::Attribute(a) => {
                names.push(a.attr.as_str());
                &a.value
            }
            Expr::Call(call) if !names.is_empty() => &call.func,
            Expr::Name(n) if names.is_empty() => {
                names.push(n.id.as_str());
                break;
            }
            _ => break,
        };
    }
    names.reverse();
    (!names.is_empty()).then(|| names.join("."))
}
