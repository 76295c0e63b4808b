//! The rules of what only computes: `fn`, functions as arguments, and `if`, `match` and records with a value.

use super::calls::{arity, takes, usage};
use super::expr::{is_empty, is_one_of};
use super::statements::Cases;
use super::{Checker, Pure, count, duplicate, suggest};
use crate::codes;
use crate::decls::{CallableKind, Decls, Param, Signature};
use crate::exits::ExitTable;
use crate::functions::{self, Function, Higher};
use crate::generics::{self, Chosen};
use crate::structural;
use crate::types::{certain, fits, join, show, unconditional};
use core_ir::Type;
use diagnostics::{Diagnostic, Span, nearest};
use std::collections::{HashMap, HashSet};
use syntax::agent::ast::{self, Args, Expr, ExprKind, Item, Name, Program, ValueArm};

/// The type of a parameter, with what earlier arguments of a call have chosen.
fn chosen_in(ty: &Type, s: &Signature, chosen: &Chosen) -> Type {
    generics::replaced(ty, &s.generics, &|n| chosen.get(n).cloned().unwrap_or_else(|| generics::opaque(n)))
}

/// A function that is an argument.
enum Applied<'a> {
    Lambda(&'a [Name], &'a Expr),
    Declared(&'a Signature),
    BuiltIn(&'static Function),
}

impl Checker<'_> {
    /// Reports what a function may not do.
    pub(super) fn not_pure(&mut self, pure: Pure, what: &str, at: Span) {
        let help = match pure.what {
            "`fn`" => "a `fn` only computes: do this in a pipeline and give the `fn` the result",
            "default" => "a default only computes: do this before the call and give the argument",
            "constant" => "a constant only computes: do this in a pipeline",
            _ => "a function argument only computes: use `for` or `parallel for` in the pipeline",
        };
        self.report(
            Diagnostic::error(codes::NOT_PURE, format!("{what} can't be used in a {}", pure.what), at)
                .remark(pure.place, "in this")
                .help(help),
        );
    }

    /// Checks an argument of a call, and notes one of a pipeline or `fn` whose type only the run shows.
    ///
    /// Types that the call decides are chosen by it.
    pub(super) fn argument(&mut self, s: &Signature, p: &Param, e: &Expr, chosen: &mut Chosen) {
        let because = Some((p.name.span, "the parameter".to_string()));
        let want = chosen_in(&p.ty, s, chosen);
        let (found, want) = match generics::mentions(&want, &s.generics) {
            false => (self.expect(e, &want, because), want),
            true => {
                let found = self.typed(e, None);
                generics::choose(&want, &unconditional(&found), &s.generics, chosen);
                // A type that nothing is known of is that of an empty list.
                let want =
                    generics::replaced(&want, &s.generics, &|n| chosen.get(n).cloned().unwrap_or(Type::Dyn));
                if !fits(&found, &want) {
                    let message = format!("expected {}, found {}", show(&p.ty), show(&found));
                    self.report(
                        Diagnostic::error(codes::MISMATCH, message, e.span)
                            .remark(p.name.span, "the parameter")
                            .help(usage(s)),
                    );
                }
                (found, want)
            }
        };
        if !certain(&found, &want) {
            match s.kind {
                CallableKind::Function => drop(self.facts.unsure.insert(e.span, want)),
                // `null` is given for one that is left out.
                CallableKind::Pipeline => drop(self.facts.unsure.insert(e.span, p.input())),
                _ => {}
            }
        }
    }

    /// The result type of a call that has chosen the types that it decides.
    pub(super) fn result_type(&mut self, s: &Signature, chosen: &Chosen) -> Type {
        generics::replaced(&s.result, &s.generics, &|n| chosen.get(n).cloned().unwrap_or(Type::Dyn))
    }

    /// The call of a `fn`.
    pub(super) fn call_function(&mut self, name: &Name, args: &[Expr], span: Span) -> Type {
        let Some(s) = self.decls.function(&name.text) else { return Type::Dyn };
        if !takes(s, args.len()) {
            self.report(
                Diagnostic::error(
                    codes::ARGUMENT_COUNT,
                    format!("fn `{}` takes {}, found {}", name.text, arity(s), args.len()),
                    span,
                )
                .remark(s.name.span, "declared here")
                .help(usage(s)),
            );
        }
        let mut chosen = Chosen::new();
        for (i, e) in args.iter().enumerate() {
            match s.params.get(i) {
                Some(p) => self.argument(s, p, e, &mut chosen),
                None => {
                    self.expr(e, None);
                }
            }
        }
        self.result_type(s, &chosen)
    }

    /// A function that stands where no function is expected.
    pub(super) fn stray_function(&mut self, at: Span, params: &[Name], body: &Expr) -> Type {
        let mark = self.env.mark();
        params.iter().for_each(|p| self.bind(p, Type::Dyn));
        self.expr(body, None);
        self.env.undo(mark);
        self.report(
            Diagnostic::error(codes::NO_FUNCTION, "no function is expected here", at).help(
                "functions such as `x => x + 1` are arguments of `map`, `filter` and the like; one with a name is \
                 declared: `fn name(x: Type) -> Type { … }`",
            ),
        );
        Type::Dyn
    }

    /// A function of lists that takes a function.
    pub(super) fn higher(
        &mut self,
        f: &Higher,
        name: &Name,
        args: &[Expr],
        span: Span,
        want: Option<&Type>,
    ) -> Type {
        let arity = if f.name == "fold" { 3 } else { 2 };
        if args.len() != arity {
            for a in args {
                match &a.kind {
                    ExprKind::Lambda(..) => {}
                    _ => {
                        self.expr(a, None);
                    }
                }
            }
            let message = format!("`{}` takes {}, found {}", f.name, count(arity, "argument"), args.len());
            let d = Diagnostic::error(codes::ARGUMENT_COUNT, message, span);
            self.report(d.help(format!("its signature is `{}`", f.signature)));
            return Type::Dyn;
        }
        let wanted = if matches!(f.name, "filter" | "sort_by") { want } else { None };
        let known = self.out.len();
        let list = self.expr(&args[0], wanted);
        // Of a list that there is not nothing more is said.
        if matches!(args[0].kind, ExprKind::Var(_)) && self.out.len() > known {
            return Type::Dyn;
        }
        let item = match &list {
            Type::List(t) => (**t).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let d = Diagnostic::error(
                    codes::BAD_CALL,
                    format!("`{}` goes through a list, found {}", f.name, show(other)),
                    args[0].span,
                );
                self.report(match other {
                    Type::Option(_) => d.help("look inside the option, or give another list: `xs ?? []`"),
                    _ => d.help(format!("its signature is `{}`", f.signature)),
                });
                Type::Dyn
            }
        };
        let function = &args[arity - 1];
        if f.name == "fold" {
            return self.fold(f, name, &args[1], function, &item, want);
        }
        let inner = match (f.name, want) {
            ("map", Some(Type::List(t))) => Some((**t).clone()),
            _ => None,
        };
        // Several keys are one mistake, whatever their types are.
        let inner =
            if f.name == "sort_by" && is_list(function) { Some(Type::list(Type::Dyn)) } else { inner };
        let result = self.applied(f, function, std::slice::from_ref(&item), inner.as_ref());
        let same = |list: Type| if list == Type::Dyn { Type::list(Type::Dyn) } else { list };
        let items = Type::list(item.clone());
        match f.name {
            "map" => return Type::list(result),
            "sort_by" => {
                if !functions::is_ordered(&result) {
                    let d = Diagnostic::error(
                        codes::BAD_CALL,
                        format!("there is no order of values of type {}", show(&result)),
                        function.span,
                    );
                    self.report(d.help(match result {
                        Type::List(_) => {
                            "sort twice, by the first key last: `xs.sort_by(x => x.second).sort_by(x => x.first)`; equal items stay in their order"
                        }
                        _ => "sort by a String, a Number or a Bool of each item",
                    }));
                }
                return same(items);
            }
            "group_by" => {
                return Type::list(Type::record([("key".into(), result), ("items".into(), items)]));
            }
            _ => {}
        }
        if !result.is_subtype(&Type::Bool) {
            let d = Diagnostic::error(
                codes::MISMATCH,
                format!("`{}` asks a Bool of each item, found {}", f.name, show(&result)),
                function.span,
            );
            self.report(d.help("compare something: `x => x.amount > 50`"));
        }
        match f.name {
            "filter" => same(items),
            "find" => Type::option(item),
            "count" => Type::Num,
            _ => Type::Bool,
        }
    }

    fn fold(
        &mut self,
        f: &Higher,
        name: &Name,
        start: &Expr,
        function: &Expr,
        item: &Type,
        want: Option<&Type>,
    ) -> Type {
        let unknown = is_empty(start);
        let so_far = match (&start.kind, want) {
            (ExprKind::List(_), None) if unknown => Type::list(Type::Dyn),
            // A record without fields can't become another one.
            (ExprKind::Record(_), None) if unknown => Type::map(Type::Str, Type::Dyn),
            _ => self.expr(start, want),
        };
        let next = self.applied(f, function, &[so_far.clone(), item.clone()], want);
        if unknown && want.is_none() && matches!(next, Type::List(_) | Type::Map(_)) {
            return next;
        }
        if fits(&next, &so_far) {
            return so_far;
        }
        self.report(
            Diagnostic::error(
                codes::MISMATCH,
                format!(
                    "`{}` begins with {}, and its function gives {}",
                    name.text,
                    show(&so_far),
                    show(&next)
                ),
                function.span,
            )
            .remark(start.span, format!("this is {}", show(&so_far)))
            .help("both must have one type"),
        );
        so_far
    }

    /// The type of what a function that is an argument gives for values of these types.
    fn applied(&mut self, of: &Higher, f: &Expr, types: &[Type], want: Option<&Type>) -> Type {
        let mut inner = f;
        while let ExprKind::Paren(e) = &inner.kind {
            inner = e;
        }
        let decls = self.decls;
        let applied = match &inner.kind {
            ExprKind::Lambda(params, body) => Some(Applied::Lambda(params, body)),
            ExprKind::Var(name) if self.env.get(name).is_none() => decls
                .function(name)
                .map(Applied::Declared)
                .or_else(|| functions::named(name).map(Applied::BuiltIn)),
            ExprKind::Error => return Type::Dyn,
            _ => None,
        };
        let wrong_count = |found: usize| {
            let example = if types.len() == 1 { "x => …" } else { "(so_far, x) => …" };
            Diagnostic::error(
                codes::NO_FUNCTION,
                format!(
                    "`{}` gives its function {}, and this one takes {found}",
                    of.name,
                    count(types.len(), "value")
                ),
                f.span,
            )
            .help(format!("write `{example}`"))
        };
        match applied {
            Some(Applied::Lambda(params, body)) => {
                if params.len() != types.len() {
                    self.report(wrong_count(params.len()));
                }
                let mark = self.env.mark();
                for (i, p) in params.iter().enumerate() {
                    if let Some(first) = params[..i].iter().find(|q| q.text == p.text && q.text != "_") {
                        let d = duplicate("parameter", p, first.span);
                        self.report(d);
                    }
                    self.bind(p, types.get(i).cloned().unwrap_or(Type::Dyn));
                }
                let around = self.pure;
                self.pure = Some(around.unwrap_or(Pure { place: f.span, what: "function argument" }));
                let ty = self.expr(body, want);
                self.pure = around;
                self.env.undo(mark);
                ty
            }
            Some(Applied::Declared(s)) => {
                if !takes(s, types.len()) {
                    self.report(wrong_count(s.params.len()).remark(s.name.span, "declared here"));
                }
                let mut chosen = Chosen::new();
                for (p, found) in s.params.iter().zip(types) {
                    generics::choose(&p.ty, &unconditional(found), &s.generics, &mut chosen);
                }
                let decided = |ty: &Type| {
                    generics::replaced(ty, &s.generics, &|n| chosen.get(n).cloned().unwrap_or(Type::Dyn))
                };
                for (p, found) in s.params.iter().zip(types) {
                    if !fits(found, &decided(&p.ty)) {
                        self.report(
                            Diagnostic::error(
                                codes::MISMATCH,
                                format!("`{}` takes {}, found {}", s.name.text, show(&p.ty), show(found)),
                                f.span,
                            )
                            .remark(p.name.span, "the parameter")
                            .help(usage(s)),
                        );
                    }
                }
                if s.params.iter().zip(types).any(|(p, found)| !certain(found, &decided(&p.ty))) {
                    let params = s.params.iter().map(|p| (p.name.text.as_str().into(), decided(&p.ty)));
                    self.facts.unsure.insert(f.span, Type::record(params.collect::<Vec<_>>()));
                }
                decided(&s.result)
            }
            Some(Applied::BuiltIn(b)) => self.applied_built_in(b, b.name, types, f.span),
            None => {
                let d = Diagnostic::error(
                    codes::NO_FUNCTION,
                    format!("`{}` needs a function here", of.name),
                    f.span,
                );
                let d = match &inner.kind {
                    ExprKind::Var(name) if self.env.get(name).is_none() => {
                        let names =
                            self.decls.callables.values().filter(|s| s.kind == CallableKind::Function);
                        let names = names.map(|s| s.name.text.as_str()).chain(functions::function_names());
                        match (nearest(name, names), self.decls.callable(name)) {
                            (Some(near), None) => suggest(d, near),
                            (_, Some(s)) => d.remark(s.name.span, "declared here").help(format!(
                                "{} `{name}` does more than compute: call it in a `for` or `parallel for`",
                                s.kind.as_str()
                            )),
                            _ => d.help(format!("declare it: `fn {name}(x: Type) -> Type {{ … }}`")),
                        }
                    }
                    _ => {
                        self.expr(f, None);
                        d.help(format!("write `x => …`; its signature is `{}`", of.signature))
                    }
                };
                self.report(d);
                Type::Dyn
            }
        }
    }

    /// `{ ...r, name: e }`: the record with these fields set.
    pub(super) fn update(&mut self, of: &Expr, fields: &[(Name, Expr)], want: Option<&Type>) -> Type {
        let base = self.expr(of, None);
        // A field is set to a value of its type, if it can have one.
        let own = match (&base, want) {
            (Type::Record(before), None) => Some(Type::record(before.iter().filter_map(|(name, ty)| {
                let value = fields.iter().find(|(n, _)| *n.text == **name).map(|(_, e)| e)?;
                is_one_of(value, ty).then(|| (name.clone(), ty.clone()))
            }))),
            _ => None,
        };
        let set = self.record(fields, want.or(own.as_ref()));
        match (&base, set) {
            (Type::Record(before), Type::Record(set)) => {
                let kept = before.iter().filter(|(n, _)| !set.iter().any(|(m, _)| m == n)).cloned();
                Type::record(kept.chain(set.iter().cloned()).collect::<Vec<_>>())
            }
            (Type::Dyn, _) => Type::Dyn,
            (other, _) => {
                let d = Diagnostic::error(
                    codes::MISMATCH,
                    format!("only a record can be copied with `...`, found {}", show(other)),
                    of.span,
                );
                self.report(match other {
                    Type::Option(_) => d.help("look inside the option with `if let x = …`"),
                    Type::List(_) => d.help("lists are joined with `+`, and `append(xs, x)` adds an item"),
                    _ => d.help("write the fields of the record"),
                });
                Type::Dyn
            }
        }
    }

    /// `if c { a } else { b }` with a value.
    pub(super) fn if_value(
        &mut self,
        bound: Option<&Name>,
        condition: &Expr,
        then: &Expr,
        other: &Expr,
        want: Option<&Type>,
    ) -> Type {
        let first = match bound {
            None => {
                self.condition(condition);
                let (holds, fails) = (self.shown_by(condition, true), self.shown_by(condition, false));
                if let (None, true) = (want, is_empty(then) || is_empty(other)) {
                    let known = if is_empty(then) { (other, fails) } else { (then, holds) };
                    let ty = self.under(known.1, |c| c.expr(known.0, None));
                    let empty = if is_empty(then) { then } else { other };
                    let empty = (self.expr(empty, Some(&ty)), empty.span);
                    return self.joined(vec![(ty, known.0.span), empty]);
                }
                let first = self.under(holds, |c| c.expr(then, want));
                let second = self.under(fails, |c| c.expr(other, want));
                return self.joined(vec![(first, then.span), (second, other.span)]);
            }
            Some(name) => {
                let inside = self.optional(condition);
                let mark = self.env.mark();
                self.bind(name, inside);
                let ty = self.expr(then, want);
                self.env.undo(mark);
                ty
            }
        };
        let second = self.expr(other, want);
        self.joined(vec![(first, then.span), (second, other.span)])
    }

    /// `match e { a => x, _ => y }` with a value.
    pub(super) fn match_value(
        &mut self,
        whole: Span,
        of: &Expr,
        arms: &[ValueArm],
        want: Option<&Type>,
    ) -> Type {
        let matched = self.matched(of, arms.iter().map(|a| &a.pattern));
        let mut cases = Cases::default();
        let mut values = Vec::new();
        for arm in arms {
            let bound = self.case(&mut cases, &matched, &arm.pattern);
            let mark = self.env.mark();
            bound.into_iter().for_each(|(name, ty)| self.bind_field(name, ty));
            values.push((self.expr(&arm.value, want), arm.value.span));
            self.env.undo(mark);
        }
        self.exhaustive(&cases, &matched, of.span, whole, "null,");
        self.joined(values)
    }

    /// The type of a value that is one of these.
    fn joined(&mut self, values: Vec<(Type, Span)>) -> Type {
        let mut all: Option<(Type, Span)> = None;
        for (ty, at) in values {
            all = match all {
                None => Some((ty, at)),
                Some((t, first)) => match join(&t, &ty) {
                    Some(both) => Some((both, first)),
                    None => {
                        self.report(
                            Diagnostic::error(
                                codes::BRANCHES,
                                format!("the branches give {} and {}", show(&t), show(&ty)),
                                at,
                            )
                            .remark(first, format!("this is {}", show(&t)))
                            .help("give both the same type; `null` in one of them makes it an option"),
                        );
                        Some((Type::Dyn, first))
                    }
                },
            };
        }
        all.map_or(Type::Dyn, |(t, _)| t)
    }
}

/// Reports `fn`s that call each other in a cycle, or themselves on something that is no part of an argument.
/// Notes the parameters that become smaller.
pub(super) fn cycles(
    program: &Program,
    decls: &Decls,
    exits: &ExitTable,
    into_parts: &mut HashMap<String, String>,
    out: &mut Vec<Diagnostic>,
) {
    let mut bodies: HashMap<&str, &ast::Pipeline> = HashMap::new();
    let mut calls: HashMap<&str, Vec<(&str, Span)>> = HashMap::new();
    let mut order = Vec::new();
    for item in &program.items {
        let Item::Function(p) = item else { continue };
        let mut called = Vec::new();
        let mut note = |name: &'_ Name| {
            if let Some(s) = decls.function(&name.text) {
                called.push((s.name.text.as_str(), name.span));
            }
        };
        for run in super::runs_in(&p.body) {
            note(&run.target);
        }
        let mut blocks = vec![&p.body];
        while let Some(block) = blocks.pop() {
            for stmt in &block.stmts {
                each_expression(stmt, &mut |e| match &e.kind {
                    ExprKind::Call(name, _) => note(name),
                    // A function by its name.
                    ExprKind::Var(text) => note(&Name { text: text.clone(), span: e.span }),
                    _ => {}
                });
                blocks.extend(crate::exits::blocks_of(stmt));
            }
        }
        calls.insert(&p.name.text, called);
        bodies.insert(&p.name.text, p);
        order.push(&*p.name.text);
    }
    let mut looked_at: HashSet<&str> = HashSet::new();
    super::each_cycle(&order, &calls, |cycle, span| {
        let [target, _] = cycle else {
            let message = format!("these functions call themselves: {}", cycle.join(" → "));
            out.push(
                Diagnostic::error(codes::FUNCTION_RECURSION, message, span)
                    .help("make it one `fn`, which may call itself on a part of an argument")
                    .help("or repeat with `for`, `while … max n` or `fold`"),
            );
            return;
        };
        // Each call of itself is a cycle of one.
        if !looked_at.insert(*target) {
            return;
        }
        let (Some(p), Some(s)) = (bodies.get(target), decls.function(target)) else { return };
        let why = match structural::descent(p, s, decls, exits) {
            Ok(param) => return drop(into_parts.insert(target.to_string(), param)),
            Err(why) => why,
        };
        let help =
            "a field, an item of a list, the value of a key, or what a pattern or a loop takes from it";
        out.push(match why {
            Some(why) => Diagnostic::error(
                codes::FUNCTION_RECURSION,
                format!("fn `{target}` calls itself with something that is no part of `{}`", why.param),
                why.span,
            )
            .help(format!("a `fn` ends if it calls itself on parts alone: {help}"))
            .help("repeat with `for`, `while … max n` or `fold`"),
            None => Diagnostic::error(
                codes::FUNCTION_RECURSION,
                format!("fn `{target}` calls itself, and no parameter has parts"),
                span,
            )
            .help("a `fn` always ends: repeat with `for`, `while … max n` or `fold`")
            .help("a pipeline may call itself if it counts down"),
        });
    });
}

/// Calls `f` with every expression that is directly in a statement, and with all inside of it.
pub(crate) fn each_expression<'a>(stmt: &'a ast::Stmt, f: &mut dyn FnMut(&'a Expr)) {
    use ast::StmtKind::{Assert, For, Guard, If, IfLet, Let, Match, Return, Run, While};
    match &stmt.kind {
        Let(_, _, e)
        | If(e, ..)
        | IfLet(_, e, ..)
        | While(e, ..)
        | For(_, e, _)
        | Match(e, _)
        | Guard(_, e, _)
        | Return(e) => e.walk(f),
        Assert(e, message) => {
            e.walk(f);
            message.iter().flat_map(ast::Template::holes).for_each(|e| e.walk(f));
        }
        Run(run) => match &run.args {
            Args::Named(args) => args.iter().for_each(|(_, e)| e.walk(f)),
            Args::Positional(args) => args.iter().for_each(|e| e.walk(f)),
        },
        _ => {}
    }
}

/// Returns whether a function gives a list that is written in it.
fn is_list(function: &Expr) -> bool {
    matches!(&function.kind, ExprKind::Lambda(_, body) if matches!(body.kind, ExprKind::List(_)))
}
