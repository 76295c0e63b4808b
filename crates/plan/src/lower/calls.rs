//! Calls: functions of the plan, tools, builtins and methods.

use super::loops::Stop;
use super::stmts::Bindings;
use super::{Catching, Cx, Function, Lower, MAX_CALLS, Tail, Val};
use crate::codes;
use crate::names;
use crate::scope::{Frame, Known, Taint, Ty, UNIQUE};
use core_ir::{Data, Name, Num, Prim, Term, TermId, Type};
use diagnostics::{Span, nearest};
use ruff_python_ast::{Expr, ExprCall, ExprGenerator, Parameters};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// An argument that was evaluated.
pub(crate) struct Arg {
    pub(crate) name: Option<String>,
    pub(crate) value: Val,
    pub(crate) at: Span,
}

/// Keyword arguments that were evaluated.
pub(crate) struct Keywords {
    pub(crate) fields: Vec<(Name, TermId)>,
    /// The function of `key=`.
    key: Option<usize>,
    /// `reverse=`, unless it certainly is a truth value.
    reverse: Option<Name>,
    pub(crate) taint: Taint,
    /// Levels of a collection with these values that nothing else refers to.
    pub(crate) unique: u8,
}

/// A function of the plan that is called.
struct Callee<'a> {
    id: usize,
    parameters: &'a Parameters,
    /// Frame that the function was defined in.
    definition: usize,
    name: &'a str,
}

impl<'a> Lower<'a> {
    pub(crate) fn call(&mut self, c: &'a ExprCall, at: Span) -> Val {
        if c.arguments.args.iter().any(|a| matches!(a, Expr::Starred(_)))
            || c.arguments.keywords.iter().any(|k| k.arg.is_none())
        {
            return self.refuse(
                at,
                "`*` and `**` in a call are not part of the plan language",
                "write the arguments one by one",
            );
        }
        if let Some(full) = self.module_path(&c.func) {
            return self.module_call(&full, c, at);
        }
        match &*c.func {
            Expr::Name(n) => {
                let name = n.id.as_str();
                if self.lookup(name).is_none()
                    && !self.tools.contains_key(name)
                    && !self.classes.contains_key(name)
                {
                    match name {
                        "next" => return self.next_of(c, at),
                        "print" => {
                            return self.refuse(
                                at,
                                "`print` inside of an expression",
                                "print in a statement of its own",
                            );
                        }
                        "eval" | "exec" | "open" | "input" | "getattr" | "setattr" | "globals"
                        | "compile" | "__import__" | "type" | "super" | "vars" | "hasattr" | "map"
                        | "filter" | "iter" | "hash" | "id" | "callable" => {
                            let help = match name {
                                "map" | "filter" => "write a list comprehension, or put it into `list(…)`",
                                "iter" => "use `for`, or an index",
                                "type" => "use `isinstance(x, str)`",
                                "hasattr" | "getattr" => "use `d.get(key)`",
                                "open" | "input" => "call a tool",
                                _ => "use the functions of the plan language",
                            };
                            return self.refuse(
                                at,
                                format!("`{name}` is not part of the plan language"),
                                help,
                            );
                        }
                        "float" if self.is_infinity(c) => {
                            return self.refuse(
                                at,
                                "infinity and NaN are not part of the plan language",
                                "begin with `None`, or use `min(…)` and `max(…)` of a list",
                            );
                        }
                        "isinstance" => return self.isinstance(c, at),
                        "ask" => return self.ask(c, at),
                        "confirm" => return self.confirm(c, at),
                        "delegate" => return self.delegate(c, at),
                        _ if super::exprs::BUILTINS.contains(&name) => return self.builtin(name, c, at),
                        _ => {}
                    }
                }
                let f = self.expr(&c.func);
                match f.function {
                    Some(id) => {
                        let args = self.arguments(c);
                        self.apply(id, args, at)
                    }
                    None if self.found.iter().any(|d| d.span == Some(self.at(&*c.func))) => f,
                    None => self.refuse(
                        at,
                        format!("`{name}` is not a function"),
                        "call a tool or a function of the plan",
                    ),
                }
            }
            Expr::Attribute(a) => {
                let method = a.attr.as_str();
                if names::MUTATORS.contains(&method) {
                    if super::stmts::path(&a.value).is_none() {
                        let help = super::stmts::of_temporary(&a.value);
                        return self.refuse(at, format!("`.{method}(…)` of a temporary value"), help);
                    }
                    return self.refuse(
                        at,
                        format!("`.{method}(…)` inside of an expression"),
                        "call it in a statement of its own, such as `x = xs.pop()`",
                    );
                }
                if let Expr::Name(n) = &*a.value
                    && self.lookup(n.id.as_str()).is_none()
                {
                    match (n.id.as_str(), method) {
                        ("dict", "fromkeys") => return self.builtin("fromkeys", c, at),
                        ("str" | "list" | "dict" | "set", _) if !c.arguments.args.is_empty() => {
                            let f = self.function_value(&c.func);
                            let args = self.arguments(c);
                            return match f.function {
                                Some(id) => self.apply(id, args, at),
                                None => f,
                            };
                        }
                        _ => {}
                    }
                }
                if method.starts_with("__") {
                    return self.refuse(
                        at,
                        "names with `__` are not part of the plan language",
                        "use operators",
                    );
                }
                self.method(a, c, at)
            }
            Expr::Lambda(_) => {
                let f = self.expr(&c.func);
                let args = self.arguments(c);
                match f.function {
                    Some(id) => self.apply(id, args, at),
                    None => f,
                }
            }
            _ => self.refuse(at, "a call of this expression", "call a tool or a function by its name"),
        }
    }

    /// `float("inf")`
    fn is_infinity(&self, c: &ExprCall) -> bool {
        matches!(&c.arguments.args[..], [Expr::StringLiteral(s)] if {
            let text = s.value.to_str().trim().trim_start_matches(['+', '-']).to_ascii_lowercase();
            matches!(text.as_str(), "inf" | "infinity" | "nan")
        })
    }

    pub(crate) fn arguments(&mut self, c: &'a ExprCall) -> Vec<Arg> {
        let mut out = Vec::new();
        for a in &c.arguments.args {
            let at = self.at(a);
            out.push(Arg { name: None, value: self.expr(a), at });
        }
        for k in &c.arguments.keywords {
            let at = self.at(&k.value);
            out.push(Arg { name: k.arg.as_ref().map(ToString::to_string), value: self.expr(&k.value), at });
        }
        out
    }

    /// Calls a function with arguments that were evaluated in order.
    pub(crate) fn apply(&mut self, id: usize, args: Vec<Arg>, at: Span) -> Val {
        match self.functions[id].clone() {
            Function::Tool(name) => self.tool(&name, args, at),
            Function::Builtin(name) => {
                let mut taint = Taint::NONE;
                let mut terms = Vec::new();
                for a in args {
                    taint = taint.join(a.value.taint);
                    self.share_parts(&a.value);
                    terms.push(a.value.term);
                }
                let list = self.add(Term::List(terms), at);
                let named = self.add(Term::Record(Vec::new()), at);
                self.builtin_of(&name, list, named, taint, at)
            }
            Function::Class(name) => self.construct(&name, args, at),
            Function::Method(object, method, taint) => {
                let object = self.var(&object, at);
                self.call_method(object, &method, args, taint, at)
            }
            Function::Unbound(class, method) => self.call_unbound(class, &method, args, at),
            Function::Module(full) => {
                let Some((op, ty)) = super::library::operation(&full) else {
                    return self.unknown_member(&full, at);
                };
                let mut taint = Taint::NONE;
                let mut terms = Vec::new();
                for a in args {
                    taint = taint.join(a.value.taint);
                    self.share_parts(&a.value);
                    terms.push(a.value.term);
                }
                let list = self.add(Term::List(terms), at);
                let named = self.add(Term::Record(Vec::new()), at);
                let term = self.py(&op, vec![list, named], taint, at);
                self.val(term, ty, taint)
            }
            Function::Def(def, frame) => {
                let name = def.name.as_str();
                let callee = Callee { id, parameters: &def.parameters, definition: frame, name };
                self.expand(callee, args, at, |l, _| {
                    let mut cx = Cx::new([].into(), true);
                    let term = l.seq(&def.body, &mut cx, &Tail::Next);
                    let s = l.fresh("call");
                    let value = l.field(&s, "$v", at);
                    let term = l.b.let_in(vec![(s, term)], value, at);
                    let frame = l.frame;
                    let returned = cx.other.as_ref().and_then(|f| f[frame].vars.get("$return")).cloned();
                    let falls = cx.next.is_some();
                    let v = match returned {
                        Some(k) => Val {
                            ty: if falls { Ty::Any } else { k.ty },
                            unique: k.unique,
                            ..l.val(term, Ty::Any, k.taint.join(cx.taint))
                        },
                        None => l.val(term, Ty::Null, cx.taint),
                    };
                    Val { term, taint: v.taint.join(cx.taint), ..v }
                })
            }
            Function::Lambda(lambda, frame) => {
                let none = Box::default();
                let parameters: &'a Parameters = match &lambda.parameters {
                    Some(p) => p,
                    None => {
                        let _: Box<Parameters> = none;
                        return self.expand_none(id, lambda, frame, args, at);
                    }
                };
                let callee = Callee { id, parameters, definition: frame, name: "lambda" };
                self.expand(callee, args, at, |l, _| {
                    let v = l.expr(&lambda.body);
                    // What it gives may be part of what it was given.
                    let unique = if v.ty.scalar() || v.roots.is_empty() { v.unique } else { 0 };
                    Val { roots: Vec::new(), unique, ..v }
                })
            }
        }
    }

    /// `str.lower(x)`: the arguments are evaluated, then the object must be of the class.
    fn call_unbound(&mut self, class: &str, method: &str, args: Vec<Arg>, at: Span) -> Val {
        let mut bindings: Bindings = Vec::new();
        let mut bound = Vec::new();
        for arg in args {
            if arg.value.function.is_some() {
                return self.refuse(arg.at, "a function as a value", "call it, or pass it as `key=`");
            }
            let name = self.fresh("arg");
            bindings.push((name.clone(), arg.value.term));
            bound.push((name, arg));
        }
        let Some((object, first)) = bound.first() else {
            let what = format!("`{method}` needs the object that it is called on");
            return self.error(codes::ARGUMENTS, at, what, "call it as `text.method(…)`");
        };
        if first.name.is_some() {
            return self.refuse(first.at, "the object of a method by name", "call it as `text.method(…)`");
        }
        let (object, taint) = (object.clone(), first.value.taint);
        let of_class = matches!(
            (&first.value.ty, class),
            (Ty::Str, "str") | (Ty::List(_), "list") | (Ty::Dict(_), "dict") | (Ty::Set, "set")
        );
        if !of_class {
            let checked = self.must_be(&object, (class, method), taint, at);
            bindings.push(("_".into(), checked));
        }
        let args = bound.split_off(1).into_iter().map(|(name, arg)| {
            let term = self.var(&name, at);
            Arg { value: Val { term, ..arg.value }, ..arg }
        });
        let args = args.collect();
        let object = self.var(&object, at);
        let v = self.call_method(object, method, args, taint, at);
        Val { term: self.b.let_in(bindings, v.term, at), ..v }
    }

    /// `TypeError` if the object of an unbound method is of another class.
    fn must_be(&mut self, object: &Name, (class, method): (&str, &str), taint: Taint, at: Span) -> TermId {
        let (object, classes) = (self.var(object, at), self.lit(Data::list([Data::str(class)]), at));
        let of = self.add(Term::List(vec![object, classes]), at);
        let named = self.add(Term::Record(Vec::new()), at);
        let holds = self.py("b.isinstance", vec![of, named], taint, at);
        let message = format!("descriptor '{method}' for '{class}' objects doesn't apply to this object");
        let failed = self.fail("TypeError", &message, taint, at);
        let nothing = self.lit(Data::Null, at);
        self.choose(holds, nothing, failed, at)
    }

    fn expand_none(
        &mut self,
        id: usize,
        lambda: &'a ruff_python_ast::ExprLambda,
        frame: usize,
        args: Vec<Arg>,
        at: Span,
    ) -> Val {
        if !args.is_empty() {
            return self.error(
                codes::ARGUMENTS,
                at,
                "the function takes no argument",
                "call it without arguments",
            );
        }
        if self.active.contains(&id) {
            return self.refuse(at, "recursion is not part of the plan language", "write a loop");
        }
        let (caller, length) = (self.frame, self.frames.len());
        self.instances += 1;
        self.frames.push(Frame {
            vars: BTreeMap::new(),
            locals: [].into(),
            parent: Some(frame),
            prefix: format!("{}_", self.instances).into(),
            closed: true,
            once: [].into(),
        });
        self.frame = length;
        self.active.push(id);
        self.sites.push((length, at));
        let v = self.expr(&lambda.body);
        self.sites.pop();
        self.active.pop();
        self.frame = caller;
        self.frames.truncate(length);
        Val { roots: Vec::new(), unique: if v.ty.scalar() { UNIQUE } else { 0 }, ..v }
    }

    /// A call of a function of the plan, expanded at its place.
    fn expand(
        &mut self,
        callee: Callee<'a>,
        args: Vec<Arg>,
        at: Span,
        body: impl FnOnce(&mut Self, ()) -> Val,
    ) -> Val {
        let Callee { id, parameters, definition, name } = callee;
        if self.active.contains(&id) {
            return self.refuse(at, "recursion is not part of the plan language", "write a loop");
        }
        if self.active.len() >= MAX_CALLS {
            return self.refuse(at, "functions call each other too deep", "write fewer functions");
        }
        if definition >= self.frames.len() {
            return self.refuse(
                at,
                format!("`{name}` belongs to a function that has ended"),
                "define it at the top level",
            );
        }
        if parameters.vararg.is_some() || parameters.kwarg.is_some() {
            return self.refuse(
                at,
                "`*args` and `**kwargs` are not part of the plan language",
                "name the parameters",
            );
        }
        let known: Vec<&str> = parameters.iter_non_variadic_params().map(|p| p.name().as_str()).collect();
        let only_position = parameters.posonlyargs.len();
        let positions = only_position + parameters.args.len();
        let mut given: BTreeMap<&str, Val> = BTreeMap::new();
        let mut bindings: Bindings = Vec::new();
        let mut roots: Vec<(usize, String, u8)> = Vec::new();
        for (i, mut arg) in args.into_iter().enumerate() {
            let parameter = match &arg.name {
                None => known.get(i).copied().filter(|_| i < positions),
                Some(n) => {
                    known.iter().position(|k| k == n).filter(|p| *p >= only_position).map(|p| known[p])
                }
            };
            let Some(parameter) = parameter else {
                return self.no_parameter(&arg, ("", &format!("`{name}`")), &known);
            };
            if given.contains_key(parameter) {
                return self.given_twice(parameter, arg.at);
            }
            if arg.value.function.is_none() {
                let temporary = self.fresh("arg");
                self.note_once(&temporary, arg.value.term);
                bindings.push((temporary.clone(), arg.value.term));
                arg.value.term = self.var(&temporary, at);
            }
            given.insert(parameter, arg.value);
        }
        // The new frame.
        let (caller, length) = (self.frame, self.frames.len());
        self.instances += 1;
        let prefix: Rc<str> = format!("{}_", self.instances).into();
        let mut locals: Vec<String> = known.iter().map(ToString::to_string).collect();
        let mut changed = BTreeSet::new();
        let mut once: Vec<String> = Vec::new();
        if let Function::Def(def, _) = self.functions[id].clone() {
            locals.extend(names::bound(&def.body));
            changed = names::assigned(&def.body);
            // A parameter is bound by the call, too.
            let all = names::assigned_once(&def.body).into_iter();
            once = all.filter(|n| !known.contains(&n.as_str())).collect();
        }
        let mut vars = BTreeMap::new();
        for (i, p) in parameters.iter_non_variadic_params().enumerate() {
            let parameter = p.name().as_str();
            let core: Name = format!("${prefix}{parameter}").into();
            let v = match given.remove(parameter) {
                Some(v) => v,
                None if p.default.is_some() => {
                    let held = format!("$default{id}_{i}");
                    match self.frames[definition].vars.get(&held).cloned() {
                        Some(k) => {
                            let term = self.var(&k.core, at);
                            Val { unique: 0, function: k.function, ..self.val(term, k.ty, k.taint) }
                        }
                        None => {
                            let none = self.lit(Data::Null, at);
                            self.val(none, Ty::Any, Taint::NONE)
                        }
                    }
                }
                None => {
                    let what = format!("`{name}` needs the argument `{parameter}`");
                    return self.error(codes::ARGUMENTS, at, what, format!("it takes: {}", known.join(", ")));
                }
            };
            roots.extend(v.roots.iter().cloned());
            if v.function.is_none() {
                if !changed.contains(parameter) {
                    self.note_once(&core, v.term);
                }
                bindings.push((core.clone(), v.term));
            }
            let unique = if v.ty.scalar() || v.roots.is_empty() { v.unique } else { 0 };
            vars.insert(
                parameter.to_string(),
                Known {
                    core,
                    ty: v.ty,
                    taint: v.taint.join(self.pc),
                    unique,
                    maybe_unbound: false,
                    function: v.function,
                    exception: false,
                },
            );
        }
        self.frames.push(Frame {
            vars,
            locals: locals.into(),
            parent: Some(definition),
            prefix,
            closed: true,
            once: once.into(),
        });
        self.frame = length;
        self.active.push(id);
        let (catching, handled) = (self.catching, std::mem::take(&mut self.handled));
        let iterated = std::mem::take(&mut self.iterated);
        self.catching = Catching::No;
        self.sites.push((length, at));
        let mut v = body(self, ());
        self.sites.pop();
        self.catching = catching;
        self.handled = handled;
        self.iterated = iterated;
        self.active.pop();
        self.frame = caller;
        self.frames.truncate(length);
        if v.unique < UNIQUE && !v.ty.scalar() {
            // The result may be part of an argument, or of a variable around the function.
            for (frame, name, depth) in &roots {
                if let Some(known) = self.frames.get_mut(*frame).and_then(|f| f.vars.get_mut(name)) {
                    known.unique = known.unique.min(*depth);
                }
            }
            for known in self.frames[definition].vars.values_mut() {
                known.unique = 0;
            }
        }
        v.roots.clear();
        v.term = self.b.let_in(bindings, v.term, at);
        v
    }

    /// Evaluates the defaults of a function where it is defined.
    pub(crate) fn defaults(&mut self, id: usize, parameters: &'a Parameters) -> Bindings {
        let mut bindings = Vec::new();
        for (i, p) in parameters.iter_non_variadic_params().enumerate() {
            let Some(default) = &p.default else { continue };
            let v = self.argument(default);
            if !v.roots.is_empty() {
                self.store(&v);
            }
            let core = self.fresh("default");
            bindings.push((core.clone(), v.term));
            let known = Known {
                core,
                ty: v.ty,
                taint: v.taint.join(self.pc),
                unique: 0,
                maybe_unbound: false,
                function: None,
                exception: false,
            };
            let frame = self.frame;
            self.frames[frame].vars.insert(format!("$default{id}_{i}"), known);
        }
        bindings
    }

    /// Reports an argument that has no parameter. The callee has an article in the middle of a sentence.
    pub(crate) fn no_parameter(&mut self, arg: &Arg, (article, callee): (&str, &str), known: &[&str]) -> Val {
        let names = known.join(", ");
        let (what, help) = match &arg.name {
            Some(n) => (
                format!("{callee} has no parameter `{n}`"),
                nearest(n, known.iter().copied())
                    .map_or_else(|| format!("it has: {names}"), |k| format!("did you mean `{k}`?")),
            ),
            None => (format!("too many arguments for {article}{callee}"), format!("it takes: {names}")),
        };
        self.error(codes::ARGUMENTS, arg.at, what, help)
    }

    pub(crate) fn given_twice(&mut self, parameter: &str, at: Span) -> Val {
        let what = format!("two values for the parameter `{parameter}`");
        self.error(codes::ARGUMENTS, at, what, "give one of them")
    }

    // ── tools ──

    fn tool(&mut self, name: &str, args: Vec<Arg>, at: Span) -> Val {
        let Some(id) = self.tools.get(name).copied() else { return self.unknown_name(name, at) };
        let world = self.world;
        let Some(decl) = world.tools.iter().find(|t| *t.name == *name) else {
            return self.unknown_name(name, at);
        };
        let known: Vec<&str> = decl.params.iter().map(|p| &*p.name).collect();
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        let mut taint = Taint::NONE;
        for (i, arg) in args.into_iter().enumerate() {
            let parameter = match &arg.name {
                None => known.get(i).copied(),
                Some(n) => known.iter().copied().find(|k| k == n),
            };
            let Some(parameter) = parameter else {
                return self.no_parameter(&arg, ("the ", &format!("tool `{name}`")), &known);
            };
            if fields.iter().any(|(n, _)| **n == *parameter) {
                return self.given_twice(parameter, arg.at);
            }
            if arg.value.function.is_some() {
                return self.refuse(arg.at, "a function as an argument of a tool", "call it first");
            }
            let wanted = decl.params.iter().find(|p| *p.name == *parameter).map(|p| &p.ty);
            if let Some(wanted) = wanted
                && !fits(&arg.value.ty, wanted)
            {
                let what = format!("the parameter `{parameter}` of `{name}` is {}", wanted);
                return self.error(
                    codes::ARGUMENTS,
                    arg.at,
                    what,
                    "convert the argument, such as with `str` or `int`",
                );
            }
            taint = taint.join(arg.value.taint);
            let plain = arg.value.ty.plain();
            let term = if plain { arg.value.term } else { self.total("json", vec![arg.value.term], arg.at) };
            fields.push((parameter.into(), term));
        }
        for p in &decl.params {
            if fields.iter().any(|(n, _)| *n == p.name) {
                continue;
            }
            if let Some(default) = &p.default {
                let term = self.lit(default.clone(), at);
                fields.push((p.name.clone(), term));
            } else if !matches!(p.ty, Type::Option(_) | Type::Null) {
                let what = format!("tool `{name}` needs the argument `{}`", p.name);
                return self.error(codes::ARGUMENTS, at, what, format!("it takes: {}", known.join(", ")));
            }
        }
        // A tool of one parameter takes a value that is no record of its arguments for the argument itself.
        if let ([only], true) = (&decl.params[..], fields.is_empty()) {
            let nothing = self.lit(Data::Null, at);
            fields.push((only.name.clone(), nothing));
        }
        let stated = world.results.iter().find(|(n, _)| **n == *name).map_or(&decl.label, |(_, l)| l);
        let result = Taint::covering(&mut self.lattice, stated).join(taint).join(self.pc);
        self.may_fail(result);
        if self.catching == Catching::Refusals {
            let mut bounds = Taint::covering(&mut self.lattice, &decl.control);
            for p in &decl.params {
                bounds = bounds.join(Taint::covering(&mut self.lattice, &p.bound));
            }
            self.may_fail(bounds);
        }
        let record = match self.planned(super::planned::ToolCall { tool: id, decl, fields: &fields, at }) {
            Some(args) => args,
            None => self.add(Term::Record(fields), at),
        };
        let tool = self.add(Term::Tool(id), at);
        let term = self.b.app(tool, record, at);
        self.val(term, Ty::of(&decl.result), result)
    }

    // ── builtins ──

    fn isinstance(&mut self, c: &'a ExprCall, at: Span) -> Val {
        let [value, classes] = &c.arguments.args[..] else {
            return self.error(
                codes::ARGUMENTS,
                at,
                "`isinstance` takes two arguments",
                "write `isinstance(x, str)`",
            );
        };
        let v = self.argument(value);
        fn alternatives<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
            match e {
                Expr::Tuple(t) => t.elts.iter().for_each(|e| alternatives(e, out)),
                Expr::BinOp(b) if b.op == ruff_python_ast::Operator::BitOr => {
                    alternatives(&b.left, out);
                    alternatives(&b.right, out);
                }
                e => out.push(e),
            }
        }
        let mut all: Vec<&Expr> = Vec::new();
        alternatives(classes, &mut all);
        let mut names = Vec::new();
        for e in all {
            let name = match e {
                Expr::Name(n) => n.id.as_str(),
                Expr::Attribute(a) => a.attr.as_str(),
                _ => "",
            };
            let builtin = matches!(
                name,
                "str" | "int" | "float" | "bool" | "list" | "tuple" | "dict" | "set" | "object"
            );
            let moment = matches!(name, "date" | "datetime" | "time" | "timedelta")
                && self.module_path(e).is_some_and(|full| full.starts_with("datetime."));
            let class = self.class_named(name).is_some_and(|c| c.kind != super::types::ClassKind::TypedDict);
            if !(builtin || moment || class) {
                let at = self.at(e);
                return self.refuse(
                    at,
                    "this class in `isinstance`",
                    "use `str`, `int`, `float`, `bool`, `list`, `tuple`, `dict`, `set`, a class of `datetime` or of \
                     the plan",
                );
            }
            names.push(Data::str(name));
        }
        let classes = self.lit(Data::list(names), at);
        let args = self.add(Term::List(vec![v.term, classes]), at);
        let named = self.add(Term::Record(Vec::new()), at);
        let term = self.py("b.isinstance", vec![args, named], v.taint, at);
        self.val(term, Ty::Bool, v.taint)
    }

    fn builtin_of(&mut self, name: &str, args: TermId, named: TermId, taint: Taint, at: Span) -> Val {
        let op = format!("b.{name}");
        let term = match name {
            "str" | "repr" => self.total(&op, vec![args, named], at),
            _ => self.py(&op, vec![args, named], taint, at),
        };
        let any = || Rc::new(Ty::Any);
        let ty = match name {
            "str" | "repr" | "format" | "chr" | "bin" | "hex" | "oct" => Ty::Str,
            "len" | "int" | "float" | "ord" | "floor" | "ceil" | "trunc" | "round" => Ty::Num,
            "bool" | "any" | "all" | "isinstance" => Ty::Bool,
            "range" => Ty::List(Rc::new(Ty::Num)),
            "list" | "sorted" | "reversed" => Ty::List(any()),
            "enumerate" | "zip" => Ty::List(Rc::new(Ty::Tuple)),
            "tuple" | "divmod" => Ty::Tuple,
            "set" | "frozenset" => Ty::Set,
            "dict" | "fromkeys" => Ty::Dict(None),
            _ => Ty::Any,
        };
        let unique = match name {
            "min" | "max" | "sum" => 0,
            _ if ty.scalar() => UNIQUE,
            _ => 1,
        };
        Val { unique, ..self.val(term, ty, taint) }
    }

    fn builtin(&mut self, name: &str, c: &'a ExprCall, at: Span) -> Val {
        let args = &c.arguments;
        if let [Expr::Generator(g)] = &args.args[..] {
            return self.over_generator(name, g, c, at);
        }
        let mut taint = Taint::NONE;
        let mut bindings: Bindings = Vec::new();
        let mut terms = Vec::new();
        let mut fresh = true;
        let (mut first, mut all) = (None, Vec::new());
        let mut shared_is_scalar = true;
        for (n, a) in args.args.iter().enumerate() {
            let v = match self.mapped(name, a) {
                Some(v) => v,
                None => self.argument(a),
            };
            taint = taint.join(v.taint);
            shared_is_scalar &= n == 0 || v.ty.scalar();
            // A new value, such as that of `d.items()`, may have parts that are not.
            fresh &=
                v.roots.is_empty() && v.unique == UNIQUE || v.ty.scalar() || super::exprs::has_scalars(&v.ty);
            let is_part = match name {
                "min" | "max" => args.args.len() > 1,
                "fromkeys" => n == 1,
                _ => false,
            };
            if is_part {
                self.store(&v);
            } else if !matches!(
                name,
                "len" | "str" | "repr" | "int" | "float" | "bool" | "any" | "all" | "round" | "abs"
            ) {
                self.share_parts(&v);
            }
            let temporary = self.fresh("arg");
            bindings.push((temporary.clone(), v.term));
            terms.push(self.b.var(temporary.clone(), at));
            all.push(temporary.clone());
            first.get_or_insert((temporary, v));
        }
        let list = self.add(Term::List(terms), at);
        let named = self.keywords(c, name, &mut bindings);
        fresh &= named.unique >= UNIQUE;
        if matches!(name, "min" | "max")
            && all.len() > 1
            && named.fields.iter().any(|(n, _)| &**n == "default")
        {
            let message = format!("Cannot specify a default for {name}() with multiple positional arguments");
            let failed = self.fail("TypeError", &message, taint, at);
            bindings.push(("_".into(), failed));
        }
        let items_name = self.fresh("items");
        if named.key.is_some() {
            let Some((of, v)) = first else {
                return self.error(
                    codes::ARGUMENTS,
                    at,
                    format!("`{name}` needs an argument"),
                    "give it a list",
                );
            };
            // With a key the items are looked at first, each in turn.
            let items = if args.args.len() == 1 {
                let term = self.var(&of, at);
                self.items_of(Val { term, ..v }, at)
            } else {
                let terms: Vec<TermId> = all.iter().map(|n| self.var(n, at)).collect();
                let term = self.add(Term::List(terms), at);
                self.val(term, Ty::List(Rc::new(Ty::Any)), taint)
            };
            bindings.push((items_name.clone(), items.term));
        }
        let (named, more) = self.with_keys(named, &items_name, &mut bindings, at);
        taint = taint.join(more);
        let mut v = self.builtin_of(name, list, named, taint, at);
        // All keys of `dict.fromkeys` have the same value.
        let is_shared = name == "fromkeys" && !shared_is_scalar;
        if fresh && !matches!(name, "min" | "max" | "sum") && !is_shared {
            v.unique = UNIQUE;
        }
        v.term = self.b.let_in(bindings, v.term, at);
        v
    }

    /// Evaluates keyword arguments, in order. `key=` is a function.
    pub(crate) fn keywords(&mut self, c: &'a ExprCall, name: &str, bindings: &mut Bindings) -> Keywords {
        let at = self.at(c);
        let mut named =
            Keywords { fields: Vec::new(), key: None, reverse: None, taint: Taint::NONE, unique: UNIQUE };
        for k in &c.arguments.keywords {
            let Some(arg) = &k.arg else { continue };
            if arg.as_str() == "key" && matches!(name, "sorted" | "min" | "max" | "sort") {
                named.key = self.key(&k.value, bindings, at);
                continue;
            }
            // `json.dumps(x, default=str)`
            let v =
                if arg.as_str() == "default" && matches!(&k.value, Expr::Name(n) if n.id.as_str() == "str") {
                    let yes = self.lit(Data::Bool(true), at);
                    self.val(yes, Ty::Bool, Taint::NONE)
                } else {
                    self.argument(&k.value)
                };
            named.taint = named.taint.join(v.taint);
            // A part of the collection, one level inside of it.
            named.unique = named.unique.min(self.store(&v).saturating_add(1));
            let name = self.fresh("named");
            bindings.push((name.clone(), v.term));
            if arg.as_str() == "reverse" && v.ty != Ty::Bool {
                named.reverse = Some(name.clone());
            }
            let term = self.var(&name, at);
            named.fields.push((Name::from(arg.as_str()), term));
        }
        named
    }

    /// The function of `key=`, unless that is `None`.
    fn key(&mut self, value: &'a Expr, bindings: &mut Bindings, at: Span) -> Option<usize> {
        let f = match value {
            Expr::Attribute(a) if self.module_path(value).is_none() => {
                // `key=counts.get`: the object is evaluated once.
                match self.unbound_method(a) {
                    Some(f) => f,
                    None => {
                        let object = self.argument(&a.value);
                        self.bound_method(object, a.attr.as_str(), bindings, at)
                    }
                }
            }
            e => self.function_value(e),
        };
        if f.function.is_none() && f.ty != Ty::Null {
            let at = self.at(value);
            self.refuse(at, "a `key` that is no function", "write `key=lambda x: …`");
        }
        f.function
    }

    /// Keyword arguments as a record. `key=` is applied to each item of `items` and given as `$keys`.
    pub(crate) fn with_keys(
        &mut self,
        named: Keywords,
        items: &Name,
        bindings: &mut Bindings,
        at: Span,
    ) -> (TermId, Taint) {
        let Keywords { mut fields, key, reverse, mut taint, .. } = named;
        // `reverse` must be an integer before any key is made.
        if let Some(name) = reverse {
            let reverse = self.var(&name, at);
            let checked = self.py("c_int", vec![reverse], taint, at);
            bindings.push(("_".into(), checked));
        }
        if let Some(id) = key {
            let known = self.lookup_items(items);
            let (keys, t) = self.map_items(id, items, known, at);
            taint = taint.join(t);
            let name = self.fresh("keys");
            bindings.push((name.clone(), keys));
            let keys = self.var(&name, at);
            fields.push((Name::from("$keys"), keys));
        }
        (self.add(Term::Record(fields), at), taint)
    }

    /// Results of a function for the items of a list.
    pub(crate) fn map_items(&mut self, id: usize, items: &Name, known: Taint, at: Span) -> (TermId, Taint) {
        let (again, state, acc, item) = (self.fresh("again"), self.fresh("state"), "acc", self.fresh("item"));
        let (all, now) = (self.var(items, at), self.field(&state, "$i", at));
        let one = self.add(Term::Index(all, now), at);
        let term = self.var(&item, at);
        let value = Val { unique: 0, ..self.val(term, Ty::Any, known) };
        let key = self.apply(id, vec![Arg { name: None, value, at }], at);
        let so_far = self.field(&state, acc, at);
        let next_acc = self.add(Term::Prim(Prim::Append, vec![so_far, key.term]), at);
        let (now, step) = (self.field(&state, "$i", at), self.number(1, at));
        let next = self.add(Term::Prim(Prim::Add, vec![now, step]), at);
        let record = self.add(Term::Record(vec![("$i".into(), next), (acc.into(), next_acc)]), at);
        let function = self.var(&again, at);
        let round = self.b.app(function, record, at);
        let round = self.b.let_in(vec![(item, one)], round, at);
        let (now, all) = (self.field(&state, "$i", at), self.var(items, at));
        let length = self.add(Term::Prim(Prim::Length, vec![all]), at);
        let more = self.add(Term::Prim(Prim::Lt, vec![now, length]), at);
        let done = self.var(&state, at);
        let chosen = self.choose(more, round, done, at);
        let zero = self.lit(Num::ZERO, at);
        let none = self.add(Term::List(Vec::new()), at);
        let start = self.add(Term::Record(vec![("$i".into(), zero), (acc.into(), none)]), at);
        let round = self.b.abs(state, None, chosen, at);
        let round = self.b.abs(again, None, round, at);
        let origin = core_ir::BoundOrigin::Default("the length of what is sorted".into());
        let fix =
            self.add(Term::Fix { bound: core_ir::Bound::Infinite, origin: Some(origin), body: round }, at);
        let result = self.b.app(fix, start, at);
        (self.add(Term::Field(result, acc.into()), at), key.taint)
    }

    /// The label of items that are about to be looked at: at most that of everything.
    fn lookup_items(&self, _: &Name) -> Taint {
        self.frames.iter().flat_map(|f| f.vars.values()).fold(self.pc.join(self.err), |t, k| t.join(k.taint))
    }

    /// A function of a generator: `any(… for x in xs)`.
    fn over_generator(&mut self, name: &str, g: &'a ExprGenerator, c: &'a ExprCall, at: Span) -> Val {
        match name {
            "any" | "all" => {
                let value = name == "any";
                let first = self.lit(Data::Bool(!value), at);
                let stop = Stop::At(value);
                let (term, taint) = self.comprehension(&g.generators, first, stop, at, &mut |l, _| {
                    let v = l.argument(&g.elt);
                    let taint = v.taint;
                    (l.truth(&v, at), taint)
                });
                return self.val(term, Ty::Bool, taint);
            }
            "sum" if c.arguments.keywords.is_empty() => {
                let first = self.lit(Num::ZERO, at);
                let (term, taint) =
                    self.comprehension(&g.generators, first, Stop::Never, at, &mut |l, acc| {
                        let v = l.argument(&g.elt);
                        let taint = v.taint;
                        let acc = l.var(acc, at);
                        (l.py("add", vec![acc, v.term], taint, at), taint)
                    });
                return Val { unique: 0, ..self.val(term, Ty::Any, taint) };
            }
            "set" | "frozenset" => return self.set_comprehension(&g.elt, &g.generators, at),
            "list" => return self.list_comprehension(&g.elt, &g.generators, at),
            "tuple" | "sorted" | "min" | "max" | "sum" | "dict" => {}
            _ => {
                return self.refuse(
                    at,
                    format!("a generator as the argument of `{name}`"),
                    "write a list comprehension: `[… for … in …]`",
                );
            }
        }
        let list = self.list_comprehension(&g.elt, &g.generators, at);
        let items = self.fresh("items");
        let mut bindings = vec![(items.clone(), list.term)];
        let named = self.keywords(c, name, &mut bindings);
        let (named, more) = self.with_keys(named, &items, &mut bindings, at);
        let term = self.var(&items, at);
        let args = self.add(Term::List(vec![term]), at);
        let taint = list.taint.join(more);
        let mut v = self.builtin_of(name, args, named, taint, at);
        if !matches!(name, "min" | "max" | "sum") {
            v.unique = list.unique;
        }
        v.term = self.b.let_in(bindings, v.term, at);
        v
    }

    // ── methods and modules ──

    fn method(&mut self, a: &'a ruff_python_ast::ExprAttribute, c: &'a ExprCall, at: Span) -> Val {
        let method = a.attr.as_str();
        if !super::library::METHODS.contains(&method) {
            let help = match diagnostics::nearest(method, super::library::METHODS.iter().copied()) {
                Some(near) => format!("did you mean `.{near}(…)`?"),
                None => "use the methods of str, list, dict, set and of `datetime`".into(),
            };
            return self.refuse(at, format!("the method `{method}` is not part of the plan language"), help);
        }
        let of = self.argument(&a.value);
        let mut taint = of.taint;
        let mut bindings: Bindings = Vec::new();
        let object = self.fresh("object");
        bindings.push((object.clone(), of.term));
        let mut terms = Vec::new();
        if !(of.ty == Ty::Str && super::library::has_method("str", method)) {
            self.check_method(&object, method, c, taint, &mut bindings);
        }
        let mut roots: Vec<(usize, String, u8)> = Vec::new();
        let inner = |r: &[(usize, String, u8)]| -> Vec<(usize, String, u8)> {
            r.iter().map(|(f, n, d)| (*f, n.clone(), d.saturating_add(1))).collect()
        };
        if method == "get" {
            roots.extend(inner(&of.roots));
        }
        for e in &c.arguments.args {
            let v = match e {
                Expr::Generator(g) if method == "join" => {
                    let at = self.at(e);
                    self.list_comprehension(&g.elt, &g.generators, at)
                }
                e => match self.mapped(method, e) {
                    Some(v) => v,
                    None => self.argument(e),
                },
            };
            taint = taint.join(v.taint);
            if method == "get" {
                roots.extend(v.roots.iter().cloned());
            }
            let name = self.fresh("arg");
            bindings.push((name.clone(), v.term));
            terms.push(self.b.var(name, at));
        }
        let args = self.add(Term::List(terms), at);
        let named = self.keywords(c, method, &mut bindings);
        taint = taint.join(named.taint);
        let named = self.add(Term::Record(named.fields), at);
        let object = self.var(&object, at);
        let term = self.py(&format!("m.{method}"), vec![object, args, named], taint, at);
        let ty = method_type(method, &of.ty);
        let term = self.b.let_in(bindings, term, at);
        let mut v = self.val(term, ty, taint);
        if method == "get" {
            v.roots = roots;
            v.unique = of.unique.min(if of.unique < UNIQUE { of.unique.saturating_sub(1) } else { UNIQUE });
        } else if !v.ty.scalar() && !matches!(method, "split" | "rsplit" | "splitlines" | "keys") {
            self.share_parts(&of);
            v.unique = if of.roots.is_empty() { of.unique } else { 1 };
        }
        v
    }

    /// A method is looked up before its arguments are evaluated.
    pub(crate) fn check_method(
        &mut self,
        object: &Name,
        method: &str,
        call: &ExprCall,
        taint: Taint,
        bindings: &mut Bindings,
    ) {
        let args = &call.arguments;
        let mut all = args.args.iter().chain(args.keywords.iter().map(|k| &k.value));
        let is_bound = |n: &str| self.lookup(n).is_none_or(|(_, known)| !known.maybe_unbound);
        if all.all(|a| match a {
            Expr::Name(n) => is_bound(n.id.as_str()),
            a => a.is_literal_expr() || a.is_lambda_expr(),
        }) {
            return;
        }
        let at = self.at(call);
        self.must_have(object, method, taint, bindings, at);
    }

    /// `AttributeError` if the object has no such method.
    pub(crate) fn must_have(
        &mut self,
        object: &Name,
        method: &str,
        taint: Taint,
        bindings: &mut Bindings,
        at: Span,
    ) {
        let (object, name) = (self.var(object, at), self.lit(Data::str(method), at));
        let checked = self.py("method", vec![object, name], taint, at);
        bindings.push(("_".into(), checked));
    }
}

/// Type of the result of a method.
pub(crate) fn method_type(method: &str, of: &Ty) -> Ty {
    match method {
        "upper" | "lower" | "strip" | "lstrip" | "rstrip" | "title" | "capitalize" | "join" | "zfill"
        | "ljust" | "rjust" | "center" | "casefold" | "swapcase" | "removeprefix" | "removesuffix"
        | "format" | "format_map" | "isoformat" | "strftime" => Ty::Str,
        "startswith" | "endswith" | "isdigit" | "isalpha" | "isalnum" | "isspace" | "isupper" | "islower"
        | "issubset" | "issuperset" | "isdisjoint" | "isnumeric" | "isdecimal" | "istitle" | "isascii"
        | "isidentifier" => Ty::Bool,
        "rsplit" | "splitlines" => Ty::List(Rc::new(Ty::Str)),
        // A date and a pattern have these methods, too.
        "replace" if *of == Ty::Str => Ty::Str,
        "split" if *of == Ty::Str => Ty::List(Rc::new(Ty::Str)),
        "split" | "findall" | "finditer" => Ty::List(Rc::new(Ty::Any)),
        "find" | "rfind" | "count" | "index" | "rindex" | "weekday" | "isoweekday" | "toordinal"
        | "timestamp" | "total_seconds" | "start" | "end" => Ty::Num,
        "items" => Ty::List(Rc::new(Ty::Tuple)),
        "keys" | "values" | "most_common" => Ty::List(Rc::new(Ty::Any)),
        "partition" | "rpartition" | "span" | "groups" | "isocalendar" => Ty::Tuple,
        "groupdict" => Ty::Dict(None),
        "date" | "time" | "astimezone" | "utcoffset" => Ty::Atom,
        "copy" => of.clone(),
        _ => Ty::Any,
    }
}

/// Returns false if a value of a known type is certainly no value of a parameter's type.
fn fits(ty: &Ty, wanted: &Type) -> bool {
    match wanted {
        Type::Option(inner) => *ty == Ty::Null || fits(ty, inner),
        Type::Refined(r) => fits(ty, &r.0),
        Type::Str | Type::Enum(_) => matches!(ty, Ty::Any | Ty::Str),
        Type::Num => matches!(ty, Ty::Any | Ty::Num),
        Type::Bool => matches!(ty, Ty::Any | Ty::Bool),
        Type::List(_) => matches!(ty, Ty::Any | Ty::List(_) | Ty::Tuple | Ty::Set),
        Type::Record(_) => matches!(ty, Ty::Any | Ty::Dict(_)),
        _ => true,
    }
}
