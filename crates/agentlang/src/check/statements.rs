//! The rules of statements.

use super::cases::{no_case, no_field};
use super::env::{Binding, Changes, Entry, Fields, is_place, leave};
use super::expr::not_a_variant;
use super::{Checker, Closed, duplicate, leaves, removal, zero};
use crate::codes;
use crate::generics;
use crate::predicate;
use crate::types::{certain, numbers, optional, same, show, shown_data, unconditional};
use core_ir::{EnumType, Num, Type};
use diagnostics::{Applicability, Diagnostic, Fix, Span};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use syntax::agent::ast::{self, Block, Expr, ExprKind, PatternForm, Run, Stmt, StmtKind};

/// A loop that is being checked.
pub(super) struct Loop {
    pub(super) mark: usize,
    /// The environments at its `break`s and `continue`s.
    pub(super) exits: Vec<Changes>,
}

/// The cases of a `match` so far.
#[derive(Default)]
pub(super) struct Cases<'e> {
    seen: HashMap<Cow<'e, str>, Span>,
    /// The place of `_`.
    rest: Option<Span>,
    /// True if a pattern is no case of what is matched.
    has_unknown: bool,
}

/// A number of a pattern as it is shown: `1.0` is `1`.
pub(crate) fn number(written: &str) -> String {
    written.parse::<Num>().map_or_else(|_| written.to_string(), |n| n.to_string())
}

fn kind_of(form: PatternForm) -> &'static str {
    match form {
        PatternForm::Texts | PatternForm::Words | PatternForm::Else => "String",
        PatternForm::Numbers => "Number",
    }
}

/// The names that a block binds, also inside of its statements.
fn bound_in(block: &Block) -> Vec<&str> {
    let mut out = Vec::new();
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Run(run) => out.push(&*run.name.text),
                StmtKind::Let(name, ..) | StmtKind::Guard(name, ..) => out.push(&name.text),
                StmtKind::Parallel { runs, .. } => out.extend(runs.iter().map(|r| &*r.name.text)),
                StmtKind::Error(lost) => out.extend(lost.iter().map(|n| &*n.text)),
                _ => {}
            }
            work.extend(crate::exits::blocks_of(stmt));
        }
    }
    out
}

/// The values that a `match` distinguishes.
pub(super) enum Matched {
    Enum(Arc<EnumType>),
    /// These numbers, as they are shown.
    Numbers(Vec<String>),
    /// Any String, or any Number.
    Any(PatternForm),
    Sum(Arc<[(core_ir::Name, Type)]>),
    /// A type that only the run shows, or one that was reported.
    Unknown,
}

impl Checker<'_> {
    pub(super) fn block(&mut self, block: &Block) {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut reachable = true;
            // What follows a `return` is checked, but binds nothing for what is run.
            let mut dead: Option<(usize, usize)> = None;
            for (i, stmt) in block.stmts.iter().enumerate() {
                if !reachable && !self.readable {
                    break;
                }
                if !reachable && dead.is_none() {
                    dead = Some((self.env.mark(), self.loops.last().map_or(0, |l| l.exits.len())));
                    let last = block.stmts.last().map_or(stmt.span, |s| s.span);
                    self.report(
                        Diagnostic::warn(codes::UNREACHABLE, "this can't be reached", stmt.span)
                            .help("remove it, or move it before the statement that leaves the block")
                            .fix(Fix {
                                applicability: Applicability::Unsafe,
                                ..removal(Span { end: last.end, ..stmt.span })
                            }),
                    );
                }
                if let StmtKind::Guard(name, _, Some(retry)) = &stmt.kind {
                    let producer = i.checked_sub(1).map(|i| &block.stmts[i].kind);
                    if let Some(StmtKind::Run(r)) = producer
                        && let Some(signature) = self.decls.callable(&r.target.text)
                        && retry.text.parse() != Ok(0u64)
                    {
                        self.repeated(signature, retry.span);
                    }
                    if !matches!(producer, Some(StmtKind::Run(r)) if r.name.text == name.text) {
                        self.report(
                            Diagnostic::error(
                                codes::GUARD_RETRY,
                                format!("no call just before the guard has the result `{}`", name.text),
                                retry.span,
                            )
                            .help("put the guard directly after the call that it repeats, or remove `retry`"),
                        );
                    }
                }
                self.stmt(stmt);
                reachable = reachable && self.exits.stmt(stmt).falls;
            }
            if let Some((mark, exits)) = dead {
                self.env.undo(mark);
                if let Some(inner) = self.loops.last_mut() {
                    inner.exits.truncate(exits);
                }
            }
        });
    }

    pub(super) fn merge(&mut self, stmt: Span, ways: &[Changes], construct: &'static str) {
        let outs = self.env.merge(ways, construct);
        self.facts.outs.insert(stmt, outs.into());
    }

    /// [`Self::merge`] of the ways that lead on. One that returns or leaves the loop binds nothing for what
    /// follows; if all do, nothing follows.
    fn merge_open(&mut self, stmt: Span, ways: Vec<(Option<&Block>, Changes)>, construct: &'static str) {
        let is_open =
            |(block, _): &(Option<&Block>, Changes)| block.is_none_or(|b| self.exits.block(b).falls);
        let any = ways.iter().any(is_open);
        let open: Vec<bool> = ways.iter().map(|way| !any || is_open(way)).collect();
        let ways: Vec<Changes> =
            ways.into_iter().zip(open).filter(|(_, open)| *open).map(|((_, w), _)| w).collect();
        self.merge(stmt, &ways, construct);
    }

    pub(super) fn branch(&mut self, block: Option<&Block>) -> Changes {
        let mark = self.env.mark();
        if let Some(block) = block {
            self.block(block);
        }
        self.env.undo(mark)
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Run(run) => {
                let ty = self.run(run);
                self.used_as(&run.name.text, &ty);
                self.facts.variables.push((run.name.span, ty.clone()));
                self.bind(&run.name, ty);
            }
            StmtKind::Let(name, written, e) => {
                let ty = match written {
                    Some(written) => self.annotated(name, written, e),
                    None => {
                        let kept = self.literal_kept(name, e);
                        self.bound_value(name, e, kept.as_ref())
                    }
                };
                // A hidden one has no place where its name stands.
                if !name.text.starts_with('$') {
                    self.facts.variables.push((name.span, ty.clone()));
                }
                let literal = self.literal_type(e, &ty);
                let fields = self.fields_of_value(e);
                self.bind(name, ty);
                self.bind_literal(name, literal);
                self.bind_fields(name, fields);
            }
            StmtKind::Parallel { .. } | StmtKind::ParallelFor(..) if self.pure.is_some() => {
                if let Some(pure) = self.pure {
                    self.not_pure(pure, "`parallel`", stmt.span);
                }
            }
            StmtKind::Parallel { max_concurrency, runs } => self.parallel(max_concurrency.as_ref(), runs),
            StmtKind::If(condition, then, other) => {
                self.condition(condition);
                let (holds, fails) = (self.shown_by(condition, true), self.shown_by(condition, false));
                let ways = vec![
                    (Some(then), self.branch_under(Some(then), &holds)),
                    (other.as_ref(), self.branch_under(other.as_ref(), &fails)),
                ];
                self.merge_open(
                    stmt.span,
                    ways,
                    if other.is_some() { "`if`" } else { "`if` without `else`" },
                );
                // Only one way leads on.
                if !self.exits.block(then).falls {
                    self.apply(&fails);
                }
                if other.as_ref().is_some_and(|b| !self.exits.block(b).falls) {
                    self.apply(&holds);
                }
            }
            StmtKind::IfLet(name, e, then, other) => {
                let ty = self.optional(e);
                let mark = self.env.mark();
                let known = self.env.get(&name.text).is_some();
                self.bind(name, ty);
                let bound = self.bindings;
                self.block(then);
                let mut found = self.env.undo(mark);
                leave(&mut found, &name.text, bound, known);
                let ways = vec![(Some(then), found), (other.as_ref(), self.branch(other.as_ref()))];
                self.merge_open(stmt.span, ways, "`if let`");
            }
            StmtKind::While(condition, max, body) => {
                if let (Some(pure), None) = (self.pure, max) {
                    self.report(
                        Diagnostic::error(
                            codes::NOT_PURE,
                            "this loop has no bound, and a `fn` always ends",
                            Span { end: condition.span.end, ..stmt.span },
                        )
                        .remark(pure.place, "in this `fn`")
                        .help("say how many rounds it has at most: `while … max 100 { … }`"),
                    );
                }
                if let Some(n) = max.as_ref().filter(|n| n.text.parse() == Ok(0u64)) {
                    self.report(zero(n, "a loop of at most 0 rounds does nothing"));
                }
                self.looping(stmt.span, condition.span, body, None, |c| {
                    c.condition(condition);
                    c.assume(condition, true);
                });
            }
            StmtKind::For(name, list, body) => {
                let item = self.items(list);
                let literal = self.literal_item(list, &item);
                self.looping(stmt.span, list.span, body, Some(&name.text), |c| {
                    c.bind(name, item);
                    c.bind_literal(name, literal);
                });
            }
            StmtKind::ParallelFor(name, list, max, body) => {
                self.parallel_for(stmt.span, name, list, max.as_ref(), body);
            }
            StmtKind::Match(e, arms) => self.matching(stmt.span, e, arms),
            StmtKind::Try(body, ast::Catch { kind, name }, handler) => {
                let tried = self.branch(Some(body));
                let mark = self.env.mark();
                let known = self.env.get(&name.text).is_some();
                let caught = match kind {
                    ast::CatchKind::Any => Type::Str,
                    ast::CatchKind::Error | ast::CatchKind::Refusal => {
                        Type::record(["code", "message"].map(|field| (field.into(), Type::Str)))
                    }
                };
                self.bind(name, caught);
                let bound = self.bindings;
                self.block(handler);
                let mut caught = self.env.undo(mark);
                leave(&mut caught, &name.text, bound, known);
                self.merge_open(stmt.span, vec![(Some(body), tried), (Some(handler), caught)], "`try`");
            }
            StmtKind::Ensure(body, cleanup) => {
                if let Some(pure) = self.pure {
                    self.not_pure(pure, "`ensure`", stmt.span);
                    return;
                }
                let tried = self.branch(Some(body));
                let loops = std::mem::take(&mut self.loops);
                let around = self.closed.replace(Closed::Ensure(cleanup.span));
                // What it binds, nobody sees.
                self.branch(Some(cleanup));
                self.closed = around;
                self.loops = loops;
                self.merge_open(stmt.span, vec![(Some(body), tried)], "`try`");
            }
            StmtKind::Assert(e, message) => {
                self.condition(e);
                if let Some(message) = message {
                    let fails = self.shown_by(e, false);
                    self.under(fails, |c| c.template(message));
                }
                self.assume(e, true);
            }
            StmtKind::Guard(name, e, _) => {
                self.guard(name, e);
                self.assume(e, true);
            }
            StmtKind::Return(_) if self.closed.is_some() => {
                let d = leaves("return", stmt.span, self.closed);
                self.report(d);
            }
            StmtKind::Return(e) => match self.result.clone() {
                Some((ty, declared)) => {
                    let found = self.expect(e, &ty, Some((declared, "the declared result".to_string())));
                    if !certain(&found, &ty) {
                        match self.pure {
                            Some(_) => drop(self.facts.unsure.insert(e.span, ty)),
                            None => drop(self.facts.unsure_results.insert(declared)),
                        }
                    }
                }
                None => {
                    self.expr(e, None);
                    self.report(
                        Diagnostic::error(codes::RETURN_IN_TEST, "a test returns nothing", stmt.span)
                            .help("use `assert` to say what must hold"),
                    );
                }
            },
            StmtKind::Break | StmtKind::Continue => {
                let word = if matches!(stmt.kind, StmtKind::Break) { "break" } else { "continue" };
                if let Some(inner) = self.loops.last_mut() {
                    inner.exits.push(self.env.changes(inner.mark));
                } else if self.closed.is_some() {
                    let d = leaves(word, stmt.span, self.closed);
                    self.report(d);
                } else {
                    self.report(
                        Diagnostic::error(
                            codes::OUTSIDE_LOOP,
                            format!("`{word}` outside of a loop"),
                            stmt.span,
                        )
                        .help("use it only inside `while` or `for`"),
                    );
                }
            }
            StmtKind::Error(lost) => lost.iter().for_each(|name| self.bind(name, Type::Dyn)),
        }
    }

    /// A loop: like an `if` without `else`, and what changes its type may not be read in a later round.
    pub(super) fn looping(
        &mut self,
        stmt: Span,
        head: Span,
        body: &Block,
        item: Option<&str>,
        enter: impl FnOnce(&mut Self),
    ) {
        let mark = self.env.mark();
        let known = item.is_some_and(|name| self.env.get(name).is_some());
        self.loops.push(Loop { mark, exits: Vec::new() });
        // A later round sees what an earlier one has bound.
        bound_in(body).into_iter().for_each(|name| self.env.widen(name));
        enter(self);
        let bound = self.bindings;
        self.block(body);
        let end = self.env.undo(mark);
        let exits = self.loops.pop().map(|l| l.exits).unwrap_or_default();
        let mut ways = vec![Changes::new(), end];
        ways.extend(exits);
        if let Some(name) = item {
            ways.iter_mut().for_each(|way| leave(way, name, bound, known));
        }
        for way in &ways {
            for (name, entry) in way {
                let (Some(Entry::Bound(before)), Some(Entry::Bound(after))) = (self.env.get(name), entry)
                else {
                    continue;
                };
                let whole = before.whole.as_ref().unwrap_or(&before.ty);
                if before.id == after.id || optional(whole, &after.ty).is_some_and(|ty| same(&ty, whole)) {
                    continue;
                }
                let Some(read) = self.reads.get(&before.id).copied().filter(|r| r.start >= head.start) else {
                    continue;
                };
                let d = Diagnostic::error(
                    codes::TYPE_CHANGES_IN_LOOP,
                    format!("`{name}` has another type in the second round of the loop"),
                    read,
                )
                .label(format!("a {} in the first round", show(&before.ty)))
                .remark(after.span, format!("becomes a {} here", show(&after.ty)))
                .help("use another name for the new value");
                if !self.out.contains(&d) {
                    self.out.push(d);
                }
            }
        }
        self.merge(stmt, &ways, "a loop");
    }

    /// The rounds run at the same time, each with the variables as they are before. What a round binds on
    /// every way is afterwards the list of what the rounds have bound, and so must be new: no round sees
    /// another.
    pub(super) fn parallel_for(
        &mut self,
        stmt: Span,
        name: &ast::Name,
        list: &Expr,
        max: Option<&ast::Number>,
        body: &Block,
    ) {
        if let Some(n) = max.filter(|n| n.text.parse() == Ok(0u64)) {
            self.report(zero(n, "at most 0 at a time would never finish"));
        }
        let item = self.items(list);
        let mark = self.env.mark();
        let known = self.env.get(&name.text).is_some();
        self.bind(name, item);
        let bound = self.bindings;
        let loops = std::mem::take(&mut self.loops);
        let head = Span { end: name.span.end, ..stmt };
        let around = self.closed.replace(Closed::Rounds(head));
        self.block(body);
        self.closed = around;
        self.loops = loops;
        let mut round = self.env.undo(mark);
        leave(&mut round, &name.text, bound, known);
        let mut outs: Vec<String> = Vec::new();
        let mut names: Vec<(String, Option<Entry>)> = round.into_iter().collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, entry) in names.into_iter().filter(|(name, _)| !is_place(name)) {
            match (self.env.get(&name).cloned(), &entry) {
                (Some(Entry::Bound(before)), Some(Entry::Bound(after))) if before.id != after.id => {
                    let d = Diagnostic::error(
                        codes::NOT_FRESH,
                        format!("`{name}` has a value already, and `parallel for` only binds new names"),
                        after.span,
                    )
                    .remark(before.span, "bound here")
                    .remark(head, "in the rounds of this, which run at the same time");
                    self.report(
                        d.help("choose another name; afterwards it is the list of what the rounds bind"),
                    );
                }
                (Some(Entry::Bound(_)), _) => {}
                (_, Some(Entry::Bound(b))) => {
                    self.bindings += 1;
                    let ty = Type::list(b.ty.clone());
                    let literal = b.literal.clone().map(Type::list);
                    let list = Binding {
                        id: self.bindings,
                        ty,
                        span: b.span,
                        whole: None,
                        literal,
                        fields: Fields::Some,
                    };
                    self.env.set(&name, Some(Entry::Bound(list)));
                    outs.push(name);
                }
                (_, Some(_)) => self.env.set(&name, entry),
                (_, None) => {}
            }
        }
        self.facts.outs.insert(stmt, outs.into());
    }

    /// The type of an item of a list with the strings that are written in it.
    fn literal_item(&self, list: &Expr, item: &Type) -> Option<Type> {
        match self.literal_type(list, &Type::list(item.clone()))? {
            Type::List(literal) => Some((*literal).clone()),
            _ => None,
        }
    }

    pub(super) fn items(&mut self, list: &Expr) -> Type {
        match self.expr(list, None) {
            Type::List(t) => (*t).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                self.report(
                    Diagnostic::error(
                        codes::MISMATCH,
                        format!("`for` goes through a list, found {}", show(&other)),
                        list.span,
                    )
                    .help(match other {
                        Type::Num => "to count, write `range(0, n)`",
                        Type::Str => "a text becomes a list with `split(text, \" \")`",
                        Type::Option(_) => "look inside the option with `if let xs = …`",
                        Type::Map(_) => {
                            "go through `items(m)`, which have a `key` and a `value`, through `keys(m)` or `values(m)`"
                        }
                        _ => "a list of one item is written `[…]`",
                    }),
                );
                Type::Dyn
            }
        }
    }

    pub(super) fn condition(&mut self, e: &Expr) {
        let ty = self.expr(e, Some(&Type::Bool));
        if !ty.is_subtype(&Type::Bool) {
            let mut d = Diagnostic::error(
                codes::MISMATCH,
                format!("a condition must be a Bool, found {}", show(&ty)),
                e.span,
            );
            d = match ty {
                Type::Option(_) => d.help("write `if let x = …` to look inside an option"),
                Type::Str => d.help("compare it: `… != \"\"`"),
                Type::Num => d.help("compare it: `… != 0`"),
                _ => d.help("write a comparison, or the name of something that is a Bool"),
            };
            self.report(d);
        }
    }

    /// If-let: `e` must be an option; its inside.
    pub(super) fn optional(&mut self, e: &Expr) -> Type {
        match self.whole(e) {
            Type::Option(t) => (*t).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                self.report(
                    Diagnostic::error(codes::NOT_AN_OPTION, "`if let` needs an option", e.span)
                        .label(format!("this is {}", show(&other)))
                        .help(
                            "only a value of type `Option[…]` can be absent; use `if` for other conditions",
                        ),
                );
                Type::Dyn
            }
        }
    }

    pub(super) fn matching(&mut self, stmt: Span, e: &Expr, arms: &[ast::Arm]) {
        let patterns = arms.iter().map(|a| &a.pattern);
        let matched = self.matched(e, patterns);
        let mut cases = Cases::default();
        let mut ways = Vec::new();
        for arm in arms {
            let bound = self.case(&mut cases, &matched, &arm.pattern);
            let mark = self.env.mark();
            let mut fields = Vec::new();
            for (name, ty) in bound {
                let known = self.env.get(&name.text).is_some();
                self.bind_field(name, ty);
                fields.push((name, self.bindings, known));
            }
            self.block(&arm.body);
            let mut way = self.env.undo(mark);
            for (name, bound, known) in fields {
                leave(&mut way, &name.text, bound, known);
            }
            ways.push((Some(&arm.body), way));
        }
        self.exhaustive(&cases, &matched, e.span, stmt, "{ }");
        self.merge_open(stmt, ways, "`match`");
    }

    /// The type of literals that a variable has already, if a new value is one of them.
    fn literal_kept(&self, name: &ast::Name, e: &Expr) -> Option<Type> {
        let Some(Entry::Bound(before)) = self.env.get(&name.text) else { return None };
        let value = predicate::constant(e)?;
        let is_literal = match &before.ty {
            Type::Enum(t) => t.is_literal(),
            t => numbers(t).is_some(),
        };
        (is_literal && before.ty.admits(&value)).then(|| before.ty.clone())
    }

    /// Binds a field of a case.
    pub(super) fn bind_field(&mut self, name: &ast::Name, ty: Type) {
        self.facts.variables.push((name.span, ty.clone()));
        self.bind(name, ty);
    }

    /// The values that a `match` or an `if let` of a case distinguishes.
    pub(super) fn matched<'p>(
        &mut self,
        e: &Expr,
        mut patterns: impl Iterator<Item = &'p ast::Pattern>,
    ) -> Matched {
        let declared = match unconditional(&self.typed(e, None)) {
            Type::Rec(r) => unconditional(&r.unfold()),
            other => other,
        };
        let is_sum = matches!(declared, Type::Variant(_) | Type::Dyn);
        if !is_sum && patterns.any(|p| p.form == PatternForm::Else) {
            let message = "`if let` with a case needs a value of a type with cases";
            let d = Diagnostic::error(codes::MATCH_NOT_ENUM, message, e.span)
                .label(format!("this is {}", show(&declared)));
            self.report(match declared {
                Type::Option(_) => d.help("look inside the option before: `if let x = …`"),
                _ => d.help("an `if` compares other values"),
            });
            return Matched::Unknown;
        }
        let literal = numbers(&declared);
        let form = match &declared {
            Type::Enum(_) | Type::Str => Some(PatternForm::Texts),
            t if literal.is_some() || *t == Type::Num => Some(PatternForm::Numbers),
            _ => None,
        };
        if let Some(form) = form {
            self.facts.matched_literals.insert(e.span, form);
        }
        if let Some(all) = literal {
            return Matched::Numbers(all.iter().map(shown_data).collect());
        }
        match declared {
            ref t if generics::name_of(t, &self.generics).is_some() => {
                self.report(
                    Diagnostic::error(codes::MATCH_NOT_ENUM, "nothing is known of this value", e.span)
                        .label(format!("each call decides what `{}` is", show(t)))
                        .help("give the `fn` a parameter of a type with cases"),
                );
                Matched::Unknown
            }
            Type::Enum(t) => Matched::Enum(t),
            Type::Str => Matched::Any(PatternForm::Texts),
            Type::Num => Matched::Any(PatternForm::Numbers),
            Type::Variant(cases) => Matched::Sum(cases),
            Type::Dyn => Matched::Unknown,
            other => {
                let d = Diagnostic::error(
                    codes::MATCH_NOT_ENUM,
                    "`match` needs a value of an enum or of a type with cases, a String or a Number",
                    e.span,
                )
                .label(format!("this is {}", show(&other)));
                self.report(match other {
                    Type::Option(t) if matches!(*t, Type::Enum(_) | Type::Variant(_)) => {
                        d.help("look inside the option with `if let x = …`, and match `x`")
                    }
                    _ => d.help("use `if` and `else if` for other values"),
                });
                Matched::Unknown
            }
        }
    }

    /// Checks the pattern of a case against those before it.
    ///
    /// Returns the variables that it binds.
    pub(super) fn case<'e>(
        &mut self,
        cases: &mut Cases<'e>,
        matched: &Matched,
        pattern: &'e ast::Pattern,
    ) -> Vec<(&'e ast::Name, Type)> {
        if let Some(first) = cases.rest {
            self.report(
                Diagnostic::warn(codes::UNREACHABLE, "this case can't be reached", pattern.span)
                    .remark(first, "`_` takes everything")
                    .help("put `_` last"),
            );
        }
        for v in &pattern.variants {
            let key = match pattern.form {
                PatternForm::Numbers => Cow::Owned(number(&v.text)),
                _ => Cow::Borrowed(&*v.text),
            };
            if let Some(first) = cases.seen.get(&key) {
                let d = duplicate("case", v, *first);
                self.report(d);
            } else {
                let d = match matched {
                    Matched::Enum(t) if !t.variants.iter().any(|n| **n == *v.text) => {
                        Some(not_a_variant(&v.text, v.span, t))
                    }
                    Matched::Sum(all) if !all.iter().any(|(n, _)| **n == *v.text) => Some(no_case(v, all)),
                    Matched::Numbers(all) if !all.contains(&number(&v.text)) => Some(
                        Diagnostic::error(
                            codes::NOT_A_VARIANT,
                            format!("`{}` is not one of {}", v.text, all.join(" | ")),
                            v.span,
                        )
                        .help("write one of these, or add it to the type"),
                    ),
                    Matched::Any(form) if *form != pattern.form => Some(
                        Diagnostic::error(
                            codes::NOT_A_VARIANT,
                            format!("`{}` is no {}", v.text, kind_of(*form)),
                            v.span,
                        )
                        .help(match form {
                            PatternForm::Texts => {
                                format!("write a string: `\"{}\" => …`, or `_` for all others", v.text)
                            }
                            _ => "write a number, or `_` for all others".to_string(),
                        }),
                    ),
                    _ => None,
                };
                cases.has_unknown |= d.is_some();
                d.into_iter().for_each(|d| self.report(d));
            }
            cases.seen.insert(key, v.span);
        }
        if pattern.variants.is_empty() {
            if let Matched::Sum(all) = matched
                && !pattern.is_left_out()
                && all.iter().all(|(n, _)| cases.seen.contains_key(&**n))
            {
                self.report(
                    Diagnostic::warn(codes::UNREACHABLE, "this case can't be reached", pattern.span)
                        .label("there is a case for every value")
                        .help("remove it"),
                );
            }
            cases.rest = cases.rest.or(Some(pattern.span));
        }
        self.fields_of(matched, pattern)
    }

    /// The variables that the fields of a pattern bind, with their types.
    fn fields_of<'e>(&mut self, matched: &Matched, pattern: &'e ast::Pattern) -> Vec<(&'e ast::Name, Type)> {
        let case = match (&pattern.variants[..], matched) {
            ([only], Matched::Sum(all)) => self.decls.types.case_of(all, &only.text),
            _ => None,
        };
        if let (Some((name, _)), [only]) = (case, &pattern.variants[..]) {
            self.facts.patterns.insert(only.span, name.to_string());
        }
        let case = case.map(|(_, case)| case);
        if let Some(first) = pattern.fields.first()
            && !matches!(matched, Matched::Unknown)
            && (pattern.variants.is_empty() || !matches!(matched, Matched::Sum(_)))
        {
            self.report(
                Diagnostic::error(codes::NO_CASE, "only a case of a sum type has fields", first.field.span)
                    .help("write the pattern without braces"),
            );
        }
        let mut bound = Vec::new();
        for (i, f) in pattern.fields.iter().enumerate() {
            if let Some(first) = pattern.fields[..i].iter().find(|g| g.name.text == f.name.text) {
                let d = duplicate("name", &f.name, first.name.span);
                self.report(d);
                continue;
            }
            let ty = case.and_then(|c| c.field(&f.field.text).cloned());
            if let (None, Some(case), [only]) = (&ty, case, &pattern.variants[..]) {
                let d = no_field(&f.field, &only.text, case);
                self.report(d);
            }
            bound.push((&f.name, ty.unwrap_or(Type::Dyn)));
        }
        bound
    }

    /// Reports variants without a case. `empty` is what the repair gives as the body of the new case.
    pub(super) fn exhaustive(
        &mut self,
        cases: &Cases<'_>,
        matched: &Matched,
        of: Span,
        whole: Span,
        empty: &str,
    ) {
        // A case of another name may be one that seems to be missing, and was reported.
        if cases.rest.is_some() || cases.has_unknown {
            return;
        }
        let (all, name): (Vec<&str>, String) = match matched {
            Matched::Enum(t) => (t.variants.iter().map(|v| &**v).collect(), t.name.to_string()),
            Matched::Sum(all) => {
                let sum = all.first().and_then(|(n, _)| self.decls.types.case_of(all, n));
                (all.iter().map(|(n, _)| &**n).collect(), sum.map_or(String::new(), |(_, c)| c.of.clone()))
            }
            Matched::Numbers(all) => (all.iter().map(String::as_str).collect(), all.join(" | ")),
            Matched::Any(form) => {
                let at = whole.end.saturating_sub(1);
                let d = Diagnostic::error(codes::NOT_EXHAUSTIVE, "no case for all other values", of)
                    .label(format!("a {} may be anything", kind_of(*form)))
                    .help(format!("add `_ => {}` at the end", if empty == "{ }" { "{ … }" } else { "…" }));
                self.report(d.fix(Fix {
                    span: Span { start: at, end: at, ..whole },
                    replacement: format!("_ => {empty} "),
                    applicability: Applicability::Unsafe,
                }));
                return;
            }
            Matched::Unknown => return,
        };
        let missing: Vec<&str> = all.into_iter().filter(|v| !cases.seen.contains_key(*v)).collect();
        if missing.is_empty() {
            return;
        }
        let at = whole.end.saturating_sub(1);
        self.report(
            Diagnostic::error(codes::NOT_EXHAUSTIVE, format!("no case for `{}`", missing.join("`, `")), of)
                .label(format!("a value of `{name}`"))
                .help(format!(
                    "add the missing cases, or `_ => {}` for all others",
                    if empty == "{ }" { "{ … }" } else { "…" }
                ))
                .fix(Fix {
                    span: Span { start: at, end: at, ..whole },
                    replacement: format!("{} => {empty} ", missing.join(" | ")),
                    applicability: Applicability::Unsafe,
                }),
        );
    }

    pub(super) fn guard(&mut self, name: &ast::Name, e: &Expr) {
        let var = Expr { kind: ExprKind::Var(name.text.clone()), span: name.span, height: 1 };
        self.expr(&var, None);
        self.in_guard = true;
        let wrong = self.out.len();
        self.condition(e);
        self.in_guard = false;
        // What is no condition at all is no predicate either, and was said.
        let known = diagnostics::has_errors(&self.out[wrong..]);
        if let Err(span) = predicate::of(&name.text, e)
            && !known
        {
            self.report(
                Diagnostic::error(codes::NOT_A_PREDICATE, "this can't be decided about the guarded value alone", span)
                    .help(format!(
                        "a guard compares `{0}`, a field of it, `length({0})` or `words({0})` with a constant, or says `contains`, `matches`, `schema`, `every` or `some` of it, \
                         with `&&`, `||` and `!`",
                        name.text
                    )),
            );
        }
    }

    pub(super) fn parallel(&mut self, max: Option<&ast::Number>, runs: &[Run]) {
        if let Some(n) = max.filter(|n| n.text.parse() == Ok(0u64)) {
            self.report(zero(n, "at most 0 at a time would never finish"));
        }
        let mut results = Vec::new();
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for run in runs {
            // All targets are fresh and pairwise distinct.
            let first = *seen.entry(&run.name.text).or_insert(run.name.span);
            if first != run.name.span {
                let d = duplicate("result", &run.name, first);
                self.report(d);
            } else if let Some(Entry::Bound(b)) = self.env.get(&run.name.text) {
                let first = b.span;
                self.report(
                    Diagnostic::error(
                        codes::NOT_FRESH,
                        format!(
                            "`{}` has a value already, and `parallel` only binds new names",
                            run.name.text
                        ),
                        run.name.span,
                    )
                    .remark(first, "bound here")
                    .help("choose another name"),
                );
            }
            results.push(self.run(run));
        }
        for (run, ty) in runs.iter().zip(results) {
            self.bind(&run.name, ty);
        }
    }
}
