//! The static rules: names, arities, types, environments, and that every path returns.
//!
//! Source: seed 004 §2. Where a rule of the seed is met, its name stands beside the code.

use super::codes;
use super::decls::{Decls, Kind, Signature};
use super::exits::ExitTable;
use super::functions::{self, Function};
use super::predicate;
use super::recursion::{self, Descent};
use super::types::{join, same, show, why_not};
use core_ir::{Num, Type};
use diagnostics::{Applicability, Diagnostic, Fix, Span, nearest};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use syntax::agent::ast::{
    self, Args, BinaryOp, Block, ClauseKind, Expr, ExprKind, Item, Run, Stmt, StmtKind, UnaryOp,
};

/// What the checker found out that lowering needs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The field accesses whose field is optional, and so may be absent.
    pub(super) optional_fields: HashSet<Span>,
    /// For each statement with blocks, the variables that it binds for what follows, sorted.
    pub(super) outs: HashMap<Span, Arc<[String]>>,
    /// How the pipelines count down that call themselves.
    pub(super) descents: HashMap<String, Descent>,
}

/// Checks the bodies of a program against its declarations.
pub(super) fn check(
    program: &ast::Program,
    decls: &Decls,
    exits: &ExitTable,
    out: &mut Vec<Diagnostic>,
) -> Facts {
    let mut c = Checker {
        decls,
        exits,
        out,
        facts: Facts::default(),
        env: Env::default(),
        result: None,
        loops: Vec::new(),
        concurrent: None,
        reads: HashMap::new(),
        bindings: 0,
    };
    for item in &program.items {
        c.env = Env::default();
        c.result = None;
        match item {
            Item::Pipeline(p) => c.pipeline(p),
            // Test blocks are checked in an empty environment.
            Item::Test(t) => c.block(&t.body),
            Item::Task(t) => c.prompt(t),
            _ => {}
        }
    }
    let mut facts = c.facts;
    circles(program, decls, exits, &mut facts.descents, out);
    facts
}

/// The report of a statement that would end the rounds of a `parallel for` early.
fn leaves(word: &str, at: Span, concurrent: Option<Span>) -> Diagnostic {
    let d = Diagnostic::error(
        codes::LEAVES_PARALLEL,
        format!("`{word}` can't leave the rounds of `parallel for`, which run at the same time"),
        at,
    );
    let d = match concurrent {
        Some(head) => d.remark(head, "in this"),
        None => d,
    };
    d.help("bind a variable instead and look at the list of its values afterwards; or use `for`")
}

/// The parameter that lets a tool recognise a call that it has carried out already.
const IDEMPOTENCY_KEY: &str = "idempotency_key";

/// Proposes the nearest name in place of the one that the report is about.
pub(super) fn suggest(d: Diagnostic, near: &str) -> Diagnostic {
    let d = d.help(format!("did you mean `{near}`?"));
    match d.span {
        Some(span) => {
            d.fix(Fix { span, replacement: near.to_string(), applicability: Applicability::Unsafe })
        }
        None => d,
    }
}

/// The text of an expression that can stand in the hole of a text: a name, or fields of one.
fn plain_text(e: &Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Var(name) => Some(name.clone()),
        ExprKind::Number(n) => Some(n.clone()),
        ExprKind::Field(base, name) => Some(format!("{}.{}", plain_text(base)?, name.text)),
        _ => None,
    }
}

/// A repair that takes something away that does nothing.
fn removal(span: Span) -> Fix {
    Fix { span, replacement: String::new(), applicability: Applicability::Safe }
}

/// The report of a second declaration of a name.
pub(super) fn duplicate(what: &str, name: &ast::Name, first: Span) -> Diagnostic {
    Diagnostic::error(codes::DUPLICATE, format!("{what} `{}` is declared twice", name.text), name.span)
        .remark(first, "first here")
        .help("remove one of them or give it another name")
}

/// A variable.
#[derive(Clone, Debug)]
struct Binding {
    id: u32,
    ty: Type,
    span: Span,
}

/// What the environment knows of a name.
#[derive(Clone, Debug)]
enum Entry {
    Bound(Binding),
    /// It was bound, but not on every way to here.
    OneWay {
        bound: Span,
        construct: &'static str,
    },
    /// It was bound on every way, with different types.
    Types {
        first: (Span, Type),
        second: (Span, Type),
    },
}

/// `Γ`, with a journal so that a branch costs what it changes and not what there is.
#[derive(Default)]
struct Env {
    names: HashMap<String, Entry>,
    journal: Vec<(String, Option<Entry>)>,
}

type Changes = HashMap<String, Option<Entry>>;

impl Env {
    fn set(&mut self, name: &str, entry: Option<Entry>) {
        let old = match entry {
            Some(e) => self.names.insert(name.to_string(), e),
            None => self.names.remove(name),
        };
        self.journal.push((name.to_string(), old));
    }

    fn get(&self, name: &str) -> Option<&Entry> {
        self.names.get(name)
    }

    fn mark(&self) -> usize {
        self.journal.len()
    }

    /// What the names changed since the mark stand for now.
    fn changes(&self, mark: usize) -> Changes {
        self.journal[mark..].iter().map(|(n, _)| (n.clone(), self.names.get(n).cloned())).collect()
    }

    /// Goes back to the mark and gives what had changed.
    fn undo(&mut self, mark: usize) -> Changes {
        let changes = self.changes(mark);
        while self.journal.len() > mark {
            let Some((name, old)) = self.journal.pop() else { break };
            match old {
                Some(e) => self.names.insert(name, e),
                None => self.names.remove(&name),
            };
        }
        changes
    }

    /// `Γ ⊓ (Γ1, …, Γn)`: what every way binds, with one type, stays. Gives the names that some way binds
    /// and that are bound afterwards.
    fn merge(&mut self, ways: &[Changes], construct: &'static str) -> Vec<String> {
        let mut bound = Vec::new();
        let mut names: Vec<&String> = ways.iter().flat_map(|w| w.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let base = self.names.get(name).cloned();
            let mut merged: Option<Option<Entry>> = None;
            for way in ways {
                let here = way.get(name).cloned().unwrap_or_else(|| base.clone());
                merged = Some(match (merged, here) {
                    (None, here) => here,
                    (Some(Some(Entry::Bound(a))), Some(Entry::Bound(b))) if same(&a.ty, &b.ty) => {
                        Some(Entry::Bound(a))
                    }
                    (Some(Some(Entry::Bound(a))), Some(Entry::Bound(b))) => {
                        Some(Entry::Types { first: (a.span, a.ty), second: (b.span, b.ty) })
                    }
                    (Some(Some(Entry::Bound(b))), None) | (Some(None), Some(Entry::Bound(b))) => {
                        Some(Entry::OneWay { bound: b.span, construct })
                    }
                    (Some(Some(Entry::Bound(_)) | None), Some(gone)) => Some(gone),
                    (Some(gone), _) => gone,
                });
            }
            if let Some(entry) = merged {
                if matches!(entry, Some(Entry::Bound(_))) {
                    bound.push(name.clone());
                }
                self.set(name, entry);
            }
        }
        bound
    }
}

/// A loop that is being checked.
struct Loop {
    mark: usize,
    /// The environments at its `break`s and `continue`s.
    exits: Vec<Changes>,
}

struct Checker<'a> {
    decls: &'a Decls,
    exits: &'a ExitTable,
    out: &'a mut Vec<Diagnostic>,
    facts: Facts,
    env: Env,
    /// The result type of the pipeline with the place where it is declared; `None` in a test.
    result: Option<(Type, Span)>,
    loops: Vec<Loop>,
    /// The innermost `parallel for` around this place.
    concurrent: Option<Span>,
    /// Where each binding was read last.
    reads: HashMap<u32, Span>,
    bindings: u32,
}

impl Checker<'_> {
    fn report(&mut self, d: Diagnostic) {
        self.out.push(d);
    }

    fn bind(&mut self, name: &ast::Name, ty: Type) {
        self.bindings += 1;
        let binding = Binding { id: self.bindings, ty, span: name.span };
        self.env.set(&name.text, Some(Entry::Bound(binding)));
    }

    // ----- declarations -----

    /// Pipeline well-typedness.
    fn pipeline(&mut self, p: &ast::Pipeline) {
        let Some(signature) = self.decls.callables.get(&p.name.text).filter(|s| s.name.span == p.name.span)
        else {
            // A second declaration of the name; its body is checked against its own signature when the
            // name is repaired.
            return;
        };
        for param in &signature.params {
            self.bind(&param.name, param.ty.clone());
        }
        self.result = Some((signature.result.clone(), p.result.span));
        self.block(&p.body);
        if self.exits.block(&p.body).falls && !unreadable(&p.body) {
            let (place, why) = open_end(&p.body, self.exits);
            self.report(
                Diagnostic::error(
                    codes::NO_RETURN,
                    format!("pipeline `{}` can reach its end without `return`", p.name.text),
                    p.name.span,
                )
                .remark(place, why)
                .help(format!("return a value of type `{}` on every path", show(&signature.result))),
            );
        }
    }

    /// The holes of a task's prompt.
    fn prompt(&mut self, t: &ast::Callable) {
        let ast::BodyKind::Prompt(template) = &t.body.kind else { return };
        let Some(signature) = self.decls.callables.get(&t.name.text).filter(|s| s.name.span == t.name.span)
        else {
            return;
        };
        for param in &signature.params {
            self.bind(&param.name, param.ty.clone());
        }
        self.template(template);
    }

    fn template(&mut self, template: &ast::Template) {
        for part in &template.parts {
            if let ast::TemplatePart::Hole(e) = part {
                self.expr(e, None);
            }
        }
    }

    // ----- statements -----

    fn block(&mut self, block: &Block) {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut reachable = true;
            for (i, stmt) in block.stmts.iter().enumerate() {
                if !reachable {
                    let last = block.stmts.last().map_or(stmt.span, |s| s.span);
                    self.report(
                        Diagnostic::warn(codes::UNREACHABLE, "this can't be reached", stmt.span)
                            .help("remove it, or move it before the statement that leaves the block")
                            .fix(Fix {
                                applicability: Applicability::Unsafe,
                                ..removal(Span { end: last.end, ..stmt.span })
                            }),
                    );
                    // One report is enough, and what is never run needs no types.
                    return;
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
                                format!(
                                    "there is no call of which `{}` is the result just before the guard",
                                    name.text
                                ),
                                retry.span,
                            )
                            .help("put the guard directly after the call that it repeats, or remove `retry`"),
                        );
                    }
                }
                self.stmt(stmt);
                reachable = self.exits.stmt(stmt).falls;
            }
        });
    }

    fn merge(&mut self, stmt: Span, ways: &[Changes], construct: &'static str) {
        let outs = self.env.merge(ways, construct);
        self.facts.outs.insert(stmt, outs.into());
    }

    fn branch(&mut self, block: Option<&Block>) -> Changes {
        let mark = self.env.mark();
        if let Some(block) = block {
            self.block(block);
        }
        self.env.undo(mark)
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Run(run) => {
                let ty = self.run(run);
                self.bind(&run.name, ty);
            }
            StmtKind::Let(name, e) => {
                let ty = self.expr(e, None);
                self.bind(name, ty);
            }
            StmtKind::Parallel { max_concurrency, runs } => self.parallel(max_concurrency.as_ref(), runs),
            StmtKind::If(condition, then, other) => {
                self.condition(condition);
                let ways = [self.branch(Some(then)), self.branch(other.as_ref())];
                self.merge(stmt.span, &ways, if other.is_some() { "`if`" } else { "`if` without `else`" });
            }
            StmtKind::IfLet(name, e, then, other) => {
                let ty = self.optional(e);
                let mark = self.env.mark();
                let known = self.env.get(&name.text).is_some();
                self.bind(name, ty);
                let bound = self.bindings;
                self.block(then);
                let mut then = self.env.undo(mark);
                leave(&mut then, &name.text, bound, known);
                let ways = [then, self.branch(other.as_ref())];
                self.merge(stmt.span, &ways, "`if let`");
            }
            StmtKind::While(condition, max, body) => {
                if let Some(n) = max.as_ref().filter(|n| n.text.parse() == Ok(0u64)) {
                    self.report(zero(n, "a loop of at most 0 rounds does nothing"));
                }
                self.looping(stmt.span, condition.span, body, None, |c| c.condition(condition));
            }
            StmtKind::For(name, list, body) => {
                let item = self.items(list);
                self.looping(stmt.span, list.span, body, Some(&name.text), |c| c.bind(name, item));
            }
            StmtKind::ParallelFor(name, list, max, body) => {
                self.parallel_for(stmt.span, name, list, max.as_ref(), body);
            }
            StmtKind::Match(e, arms) => self.matching(stmt.span, e, arms),
            StmtKind::Try(body, name, handler) => {
                let tried = self.branch(Some(body));
                let mark = self.env.mark();
                let known = self.env.get(&name.text).is_some();
                self.bind(name, Type::Str);
                let bound = self.bindings;
                self.block(handler);
                let mut caught = self.env.undo(mark);
                leave(&mut caught, &name.text, bound, known);
                self.merge(stmt.span, &[tried, caught], "`try`");
            }
            StmtKind::Assert(e, _) => self.condition(e),
            StmtKind::Guard(name, e, _) => self.guard(name, e),
            StmtKind::Return(_) if self.concurrent.is_some() => {
                let d = leaves("return", stmt.span, self.concurrent);
                self.report(d);
            }
            StmtKind::Return(e) => match self.result.clone() {
                Some((ty, declared)) => {
                    self.expect(e, &ty, Some((declared, "the declared result".to_string())));
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
                } else if self.concurrent.is_some() {
                    let d = leaves(word, stmt.span, self.concurrent);
                    self.report(d);
                } else {
                    self.report(
                        Diagnostic::error(
                            codes::OUTSIDE_LOOP,
                            format!("`{word}` outside of a loop"),
                            stmt.span,
                        )
                        .help("it can only stand inside `while` or `for`"),
                    );
                }
            }
            StmtKind::Error(lost) => lost.iter().for_each(|name| self.bind(name, Type::Dyn)),
        }
    }

    /// A loop: like an `if` without `else`, and what changes its type may not be read in a later round.
    fn looping(
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
                if same(&before.ty, &after.ty) {
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

    /// The rounds run at the same time, each with the variables as they are before. What a round binds on every way is
    /// afterwards the list of what the rounds have bound, and so must be new: no round sees another.
    fn parallel_for(
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
        let around = self.concurrent.replace(head);
        self.block(body);
        self.concurrent = around;
        self.loops = loops;
        let mut round = self.env.undo(mark);
        leave(&mut round, &name.text, bound, known);
        let mut outs: Vec<String> = Vec::new();
        let mut names: Vec<(String, Option<Entry>)> = round.into_iter().collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, entry) in names {
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
                    let list = Binding { id: self.bindings, ty: Type::list(b.ty.clone()), span: b.span };
                    self.env.set(&name, Some(Entry::Bound(list)));
                    outs.push(name);
                }
                (_, Some(_)) => self.env.set(&name, entry),
                (_, None) => {}
            }
        }
        self.facts.outs.insert(stmt, outs.into());
    }

    fn items(&mut self, list: &Expr) -> Type {
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
                        _ => "a list of one item is written `[…]`",
                    }),
                );
                Type::Dyn
            }
        }
    }

    fn condition(&mut self, e: &Expr) {
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
    fn optional(&mut self, e: &Expr) -> Type {
        match self.expr(e, None) {
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

    fn matching(&mut self, stmt: Span, e: &Expr, arms: &[ast::Arm]) {
        let ty = self.expr(e, None);
        let variants = match &ty {
            Type::Enum(t) => Some(t.clone()),
            Type::Dyn => None,
            other => {
                self.report(
                    Diagnostic::error(codes::MATCH_NOT_ENUM, "`match` needs a value of an enum type", e.span)
                        .label(format!("this is {}", show(other)))
                        .help("use `if` and `else if` for other values"),
                );
                None
            }
        };
        let mut seen: HashMap<&str, Span> = HashMap::new();
        let mut rest: Option<Span> = None;
        let mut ways = Vec::new();
        for arm in arms {
            if let Some(first) = rest {
                self.report(
                    Diagnostic::warn(codes::UNREACHABLE, "this case can't be reached", arm.pattern)
                        .remark(first, "`_` takes everything")
                        .help("put `_` last"),
                );
            }
            for v in &arm.variants {
                if let Some(first) = seen.get(&*v.text) {
                    let d = duplicate("case", v, *first);
                    self.report(d);
                } else if let Some(t) =
                    variants.as_ref().filter(|t| !t.variants.iter().any(|n| **n == *v.text))
                {
                    let d = not_a_variant(&v.text, v.span, t);
                    self.report(d);
                }
                seen.insert(&v.text, v.span);
            }
            if arm.variants.is_empty() {
                rest = rest.or(Some(arm.pattern));
            }
            ways.push(self.branch(Some(&arm.body)));
        }
        if let (Some(t), None) = (&variants, rest) {
            let missing: Vec<&str> =
                t.variants.iter().map(|v| &**v).filter(|v| !seen.contains_key(v)).collect();
            if !missing.is_empty() {
                self.report(
                    Diagnostic::error(
                        codes::NOT_EXHAUSTIVE,
                        format!("no case for `{}`", missing.join("`, `")),
                        e.span,
                    )
                    .label(format!("a value of `{}`", t.name))
                    .help("add the missing cases, or `_ => { … }` for all others")
                    .fix(Fix {
                        span: Span {
                            start: stmt.end.saturating_sub(1),
                            end: stmt.end.saturating_sub(1),
                            ..stmt
                        },
                        replacement: format!("{} => {{ }} ", missing.join(" | ")),
                        applicability: Applicability::Unsafe,
                    }),
                );
            }
        }
        self.merge(stmt, &ways, "`match`");
    }

    fn guard(&mut self, name: &ast::Name, e: &Expr) {
        let var = Expr { kind: ExprKind::Var(name.text.clone()), span: name.span, height: 1 };
        self.expr(&var, None);
        self.condition(e);
        if let Err(span) = predicate::of(&name.text, e) {
            self.report(
                Diagnostic::error(codes::NOT_A_PREDICATE, "this can't be decided about the guarded value alone", span)
                    .help(format!(
                        "a guard compares `{0}`, a field of it or `length({0})` with a constant, with `&&`, `||` and `!`",
                        name.text
                    )),
            );
        }
    }

    fn parallel(&mut self, max: Option<&ast::Number>, runs: &[Run]) {
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

    // ----- calls -----

    /// The type of the result of a call.
    fn run(&mut self, run: &Run) -> Type {
        let Some(signature) = self.decls.callable(&run.target.text) else {
            return self.run_unknown(run);
        };
        self.arguments(signature, run);
        self.clauses(signature, run);
        signature.result.clone()
    }

    fn run_unknown(&mut self, run: &Run) -> Type {
        if let (Args::Positional(args), Some(f)) = (&run.args, functions::named(&run.target.text)) {
            let ty = self.call(f, &run.target, args, run.args_span);
            if let Some(clause) = run.clauses.first() {
                self.report(
                    Diagnostic::error(
                        codes::CLAUSE_ON_FUNCTION,
                        format!("`{}` can't fail or be retried", f.name),
                        clause.span,
                    )
                    .help("it is a function of the language; remove the clause")
                    .fix(removal(clause.span)),
                );
            }
            return ty;
        }
        for e in arguments_of(run) {
            self.expr(e, None);
        }
        let name = &run.target.text;
        let d = Diagnostic::error(
            codes::UNKNOWN_CALL,
            format!("there is no task or pipeline `{name}`"),
            run.target.span,
        );
        let candidates = self.decls.callables.keys().chain(self.decls.tools.keys()).map(String::as_str);
        let d = match nearest(name, candidates.chain(functions::ALL.iter().map(|f| f.name))) {
            Some(near) => suggest(d, near),
            None if self.decls.agents.contains_key(name) => {
                d.help(format!("`{name}` is an agent; run a task and add `by {name}`"))
            }
            None => d.help(format!("declare it: `task {name}(…) -> Type {{}}`")),
        };
        self.report(d);
        Type::Dyn
    }

    fn arguments(&mut self, signature: &Signature, run: &Run) {
        let kind = signature.kind.as_str();
        let declared = |d: Diagnostic| d.remark(signature.name.span, "declared here").help(usage(signature));
        match &run.args {
            Args::Positional(args) => {
                if args.len() != signature.params.len() {
                    self.report(declared(Diagnostic::error(
                        codes::ARGUMENT_COUNT,
                        format!(
                            "{kind} `{}` takes {}, found {}",
                            signature.name.text,
                            count(signature.params.len(), "argument"),
                            args.len()
                        ),
                        run.args_span,
                    )));
                }
                for (i, e) in args.iter().enumerate() {
                    match signature.params.get(i) {
                        Some(p) => self.expect(e, &p.ty, Some((p.name.span, "the parameter".to_string()))),
                        None => {
                            self.expr(e, None);
                        }
                    }
                }
            }
            Args::Named(args) => {
                for (i, (name, e)) in args.iter().enumerate() {
                    if let Some((first, _)) = args[..i].iter().find(|(n, _)| n.text == name.text) {
                        let d = duplicate("argument", name, first.span);
                        self.report(d);
                    }
                    if let Some(p) = signature.params.iter().find(|p| p.name.text == name.text) {
                        self.expect(e, &p.ty, Some((p.name.span, "the parameter".to_string())));
                        continue;
                    }
                    self.expr(e, None);
                    let d = Diagnostic::error(
                        codes::UNKNOWN_ARGUMENT,
                        format!("{kind} `{}` has no parameter `{}`", signature.name.text, name.text),
                        name.span,
                    )
                    .remark(signature.name.span, "declared here");
                    let near = nearest(&name.text, signature.params.iter().map(|p| p.name.text.as_str()));
                    self.report(match near {
                        Some(near) => suggest(d, near),
                        None => d.help(usage(signature)),
                    });
                }
                let missing: Vec<&str> = signature
                    .params
                    .iter()
                    .map(|p| p.name.text.as_str())
                    .filter(|p| !args.iter().any(|(n, _)| n.text == *p))
                    // A slip in the name has been reported as an unknown parameter.
                    .filter(|p| {
                        let known = |n: &str| signature.params.iter().any(|q| q.name.text == n);
                        !args.iter().any(|(n, _)| !known(&n.text) && nearest(&n.text, [*p]).is_some())
                    })
                    .collect();
                if !missing.is_empty() {
                    self.report(declared(Diagnostic::error(
                        codes::MISSING_ARGUMENT,
                        format!(
                            "`{}` is missing in the call of {kind} `{}`",
                            missing.join("`, `"),
                            signature.name.text
                        ),
                        run.args_span,
                    )));
                }
            }
        }
    }

    fn clauses(&mut self, signature: &Signature, run: &Run) {
        let mut by = None;
        for clause in &run.clauses {
            match &clause.kind {
                ClauseKind::By(agent) => {
                    by = Some(agent);
                    if !self.decls.agents.contains_key(&agent.text) {
                        let d = Diagnostic::error(
                            codes::UNKNOWN_AGENT,
                            format!("there is no agent `{}`", agent.text),
                            agent.span,
                        );
                        let near = nearest(&agent.text, self.decls.agents.keys().map(String::as_str));
                        self.report(match near {
                            Some(near) => suggest(d, near),
                            None => d.help(format!("declare it: `agent {} {{ tools: [] }}`", agent.text)),
                        });
                    }
                    match signature.kind {
                        Kind::AgentTask => {}
                        Kind::Pipeline | Kind::Import => self.report(
                            Diagnostic::error(
                                codes::BY_ON_PIPELINE,
                                format!(
                                    "`{}` is {} {}; the agents are chosen inside it",
                                    signature.name.text,
                                    if signature.kind == Kind::Import { "an" } else { "a" },
                                    signature.kind.as_str()
                                ),
                                clause.span,
                            )
                            .remark(signature.name.span, "declared here")
                            .help("remove `by`")
                            .fix(removal(clause.span)),
                        ),
                        Kind::Task | Kind::Tool => self.report(
                            Diagnostic::warn(
                                codes::BY_WITHOUT_AGENT,
                                format!(
                                    "`{}` is not carried out by an agent, so `by` does nothing",
                                    signature.name.text
                                ),
                                clause.span,
                            )
                            .remark(signature.name.span, "declared without `by agent`")
                            .help("remove `by`, or declare the task `by agent`")
                            .fix(removal(clause.span)),
                        ),
                    }
                }
                ClauseKind::Use(e) => {
                    // Fallback policy.
                    let why =
                        (signature.name.span, "the result of this must be replaceable by it".to_string());
                    self.expect(e, &signature.result, Some(why));
                }
                ClauseKind::Timeout(n) => {
                    if n.text.parse::<Num>().is_ok_and(|n| n.is_zero()) {
                        self.report(
                            Diagnostic::error(codes::BAD_SETTING, "a call can't be done in no time", n.span)
                                .help("write a number of seconds, for example `30` or `0.5`"),
                        );
                    }
                }
                ClauseKind::Retries(n) if n.text.parse() != Ok(0u64) => self.repeated(signature, clause.span),
                ClauseKind::Retries(_) | ClauseKind::Abort => {}
            }
        }
        if signature.kind == Kind::AgentTask && by.is_none() {
            let mut agents: Vec<&str> = self.decls.agents.keys().map(String::as_str).collect();
            agents.sort_unstable();
            let help = match agents[..] {
                [] => "declare an agent and add `by NAME`".to_string(),
                [one] => format!("add `by {one}`"),
                _ => format!("add `by` and one of `{}`", agents.join("`, `")),
            };
            let at = Span { start: run.args_span.end, ..run.args_span };
            let mut d = Diagnostic::error(
                codes::NO_AGENT,
                format!(
                    "`{}` is carried out by an agent, and the call does not say by which",
                    signature.name.text
                ),
                run.target.span,
            )
            .remark(signature.name.span, "declared `by agent`")
            .help(help);
            if let [one] = agents[..] {
                let fix =
                    Fix { span: at, replacement: format!(" by {one}"), applicability: Applicability::Unsafe };
                d = d.fix(fix);
            }
            self.report(d);
        }
    }

    /// A call that is made again though it changes the world: a warning, unless the tool can tell.
    fn repeated(&mut self, s: &Signature, at: Span) {
        let writes = s.flow.class == Some(core_ir::EffectClass::Write);
        if !writes || s.params.iter().any(|p| p.name.text == IDEMPOTENCY_KEY) {
            return;
        }
        self.report(
            Diagnostic::warn(
                codes::RETRIED_WRITE,
                format!("a repeated call of `{}` may change the world twice", s.name.text),
                at,
            )
            .remark(s.name.span, "declared `writes`")
            .help(format!(
                "give it a parameter `{IDEMPOTENCY_KEY}: String` by which it recognises a call that it has carried \
                 out, or remove the repetition"
            )),
        );
    }

    // ----- expressions -----

    /// Checks that an expression may stand where `want` is asked for.
    fn expect(&mut self, e: &Expr, want: &Type, because: Option<(Span, String)>) {
        let found = self.expr(e, Some(want));
        if found.is_subtype(want) {
            return;
        }
        let mut d = Diagnostic::error(
            codes::MISMATCH,
            format!("expected {}, found {}", show(want), show(&found)),
            e.span,
        );
        if let Some(why) = why_not(&found, want) {
            d = d.label(why);
        }
        if let Some((span, text)) = because {
            d = d.remark(span, text);
        }
        d = match (&found, want) {
            (Type::Str, Type::Enum(t)) => d.help(format!(
                "a String may be anything; only {} are sure to be a `{}`",
                t.variants.iter().map(|v| format!("`\"{v}\"`")).collect::<Vec<_>>().join(", "),
                t.name
            )),
            (Type::Option(_), _) => d.help("look inside the option with `if let x = …`"),
            (Type::Null, _) => d.help("only an `Option[…]` can be null"),
            (_, Type::Str) => d.help("write it into a string: `f\"{…}\"`"),
            (_, Type::List(_)) if !matches!(found, Type::List(_)) => {
                d.help("a list of one item is written `[…]`")
            }
            (_, Type::Bool) => d.help("compare it: `… == …`"),
            _ => d.help(format!("give a value of type {}", show(want))),
        };
        // Holes hold no quotes, so only what has none can be moved into one.
        if let (Type::Num | Type::Bool, Type::Str, Some(text)) = (&found, want, plain_text(e)) {
            d = d.fix(Fix {
                span: e.span,
                replacement: format!("f\"{{{text}}}\""),
                applicability: Applicability::Unsafe,
            });
        }
        self.report(d);
    }

    /// The type of an expression. `want` is what its place asks for; it decides what an empty list is a
    /// list of, and makes messages precise. Whether the type fits is the caller's question.
    fn expr(&mut self, e: &Expr, want: Option<&Type>) -> Type {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.expr_inner(e, want))
    }

    fn expr_inner(&mut self, e: &Expr, want: Option<&Type>) -> Type {
        match &e.kind {
            ExprKind::Str(s) => self.string(s, e.span, want),
            ExprKind::Number(n) => {
                if n.parse::<Num>().is_err() {
                    self.report(
                        Diagnostic::error(codes::HUGE_NUMBER, "this number is too large", e.span)
                            .help("write one of fewer digits"),
                    );
                }
                Type::Num
            }
            ExprKind::Bool(_) => Type::Bool,
            ExprKind::Null => Type::Null,
            ExprKind::Var(name) => self.variable(name, e.span),
            ExprKind::Field(base, name) => self.field(e, base, name),
            ExprKind::Index(base, index) => {
                let base_ty = self.expr(base, None);
                self.expect(index, &Type::Num, Some((base.span, "an index counts from 0".to_string())));
                match base_ty {
                    Type::List(t) => (*t).clone(),
                    Type::Str | Type::Enum(_) => Type::Str,
                    Type::Dyn => Type::Dyn,
                    other => {
                        self.report(
                            Diagnostic::error(
                                codes::NOT_INDEXABLE,
                                "only a list or a string has an index",
                                base.span,
                            )
                            .label(format!("this is {}", show(&other)))
                            .help(match other {
                                Type::Record(_) => "the fields of a record are reached with `.name`",
                                Type::Option(_) => "look inside the option with `if let x = …`",
                                _ => "use the value itself",
                            }),
                        );
                        Type::Dyn
                    }
                }
            }
            ExprKind::Record(fields) => self.record(fields, want),
            ExprKind::List(items) => self.list(e, items, want),
            ExprKind::Template(t) => {
                self.template(t);
                Type::Str
            }
            ExprKind::Paren(inner) => self.expr(inner, want),
            ExprKind::Unary(UnaryOp::Not, inner) => {
                self.operand("!", inner, &Type::Bool);
                Type::Bool
            }
            ExprKind::Unary(UnaryOp::Neg, inner) => {
                self.operand("-", inner, &Type::Num);
                Type::Num
            }
            ExprKind::Binary(op, op_span, a, b) => self.binary(*op, *op_span, a, b),
            ExprKind::Call(name, args) => match functions::named(&name.text) {
                Some(f) => self.call(f, name, args, e.span),
                None => self.call_in_expression(name, args),
            },
            ExprKind::Quarantine(prompt, ty) => {
                self.expect(prompt, &Type::Str, None);
                self.decls.types.ty(ty, self.out)
            }
            ExprKind::Endorse(value, values, other) => self.endorse(e.span, value, values, other.as_deref()),
            ExprKind::Error => Type::Dyn,
        }
    }

    /// `endorse value in [constant, …] else constant`: the result is one of the constants.
    fn endorse(&mut self, at: Span, value: &Expr, values: &[Expr], other: Option<&Expr>) -> Type {
        let ty = self.expr(value, None);
        let kind = [Type::Str, Type::Num, Type::Bool].into_iter().find(|t| ty.is_subtype(t));
        if kind.is_none() {
            self.report(
                Diagnostic::error(
                    codes::MISMATCH,
                    format!("only a String, a Number or a Bool can be endorsed, found {}", show(&ty)),
                    value.span,
                )
                .help("endorse the part of it that is needed"),
            );
        }
        if values.is_empty() {
            self.report(
                Diagnostic::error(codes::BAD_SETTING, "nothing is permitted", at)
                    .help("write the values that may be trusted between `[` and `]`"),
            );
        }
        let mut result: Option<Type> = None;
        for (e, is_other) in values.iter().map(|v| (v, false)).chain(other.map(|o| (o, true))) {
            let found = self.expr(e, None);
            if predicate::constant(e).is_none() && !matches!(e.kind, ExprKind::Error) {
                self.report(
                    Diagnostic::error(
                        codes::NOT_CONSTANT,
                        "what may be endorsed must be a constant",
                        e.span,
                    )
                    .help("write a string, a number, `true` or `false`; whatever stands here becomes trusted"),
                );
                continue;
            }
            if found == Type::Null && is_other {
                result = result.map(Type::option);
                continue;
            }
            if let Some(kind) = kind.as_ref().filter(|k| !found.is_subtype(k)) {
                self.report(
                    Diagnostic::error(
                        codes::MISMATCH,
                        format!("expected {}, found {}", show(kind), show(&found)),
                        e.span,
                    )
                    .remark(value.span, format!("this is {}", show(&ty)))
                    .help("the permitted values have the type of what is endorsed"),
                );
                continue;
            }
            result = match result {
                None => Some(found),
                Some(t) => join(&t, &found),
            };
        }
        result.unwrap_or(Type::Dyn)
    }

    /// Enum typing: a string that is a variant has the type of its enum.
    fn string(&mut self, s: &str, span: Span, want: Option<&Type>) -> Type {
        if let Some((found, _)) = self.decls.types.variants.get(s) {
            return Type::Enum(found.clone());
        }
        if let Some(Type::Enum(t)) = want {
            let d = not_a_variant(s, span, t);
            self.report(d);
            return Type::Enum(t.clone());
        }
        Type::Str
    }

    fn variable(&mut self, name: &str, span: Span) -> Type {
        let d = match self.env.get(name) {
            Some(Entry::Bound(b)) => {
                let (id, ty) = (b.id, b.ty.clone());
                self.reads.insert(id, span);
                return ty;
            }
            Some(Entry::OneWay { bound, construct }) => {
                let d =
                    Diagnostic::error(codes::MAYBE_UNBOUND, format!("`{name}` may have no value here"), span)
                        .remark(*bound, format!("bound here, but not on every way through {construct}"));
                d.help("bind it on every way, or before")
            }
            Some(Entry::Types { first, second }) => Diagnostic::error(
                codes::MAYBE_UNBOUND,
                format!("`{name}` may have one of two types here"),
                span,
            )
            .remark(first.0, format!("a {} here", show(&first.1)))
            .remark(second.0, format!("a {} here", show(&second.1)))
            .help("give it the same type on every way, or use two names"),
            None => self.unknown_variable(name, span),
        };
        self.report(d);
        // Reported once; what follows from it is not worth another message.
        self.bindings += 1;
        let binding = Binding { id: self.bindings, ty: Type::Dyn, span };
        self.env.set(name, Some(Entry::Bound(binding)));
        Type::Dyn
    }

    fn unknown_variable(&self, name: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::error(codes::UNKNOWN_VARIABLE, format!("there is no variable `{name}`"), span);
        let bound = self.env.names.iter().filter(|(_, e)| matches!(e, Entry::Bound(b) if b.ty != Type::Dyn));
        let mut names: Vec<&str> = bound.map(|(n, _)| n.as_str()).collect();
        names.sort_unstable();
        match nearest(name, names) {
            Some(near) => suggest(d, near),
            None if self.decls.callable(name).is_some() => {
                d.help(format!("`{name}` is called in a statement of its own: `let x = {name}(…);`"))
            }
            None if self.decls.types.variants.contains_key(name) => {
                d.help(format!("the variants of an enum are written as strings: `\"{name}\"`"))
            }
            None => d.help(format!("bind it first: `let {name} = …;`")),
        }
    }

    /// Field access.
    fn field(&mut self, e: &Expr, base: &Expr, name: &ast::Name) -> Type {
        let ty = self.expr(base, None);
        match &ty {
            Type::Dyn => Type::Dyn,
            Type::Record(fields) => {
                if let Some((_, t)) = fields.iter().find(|(n, _)| **n == *name.text) {
                    if matches!(t, Type::Option(_)) {
                        self.facts.optional_fields.insert(e.span);
                    }
                    return t.clone();
                }
                let d = Diagnostic::error(
                    codes::NO_SUCH_FIELD,
                    format!("there is no field `{}` in {}", name.text, show(&ty)),
                    name.span,
                );
                let d = match nearest(&name.text, fields.iter().map(|(n, _)| &**n)) {
                    Some(near) => suggest(d, near),
                    None if fields.is_empty() => d.help("it has no fields"),
                    None => {
                        let names: Vec<String> =
                            fields.iter().take(20).map(|(n, _)| format!("`{n}`")).collect();
                        d.help(format!("its fields are {}", names.join(", ")))
                    }
                };
                self.report(d);
                Type::Dyn
            }
            other => {
                let d = Diagnostic::error(
                    codes::NO_SUCH_FIELD,
                    format!("only a record has fields; this is {}", show(other)),
                    name.span,
                )
                .remark(base.span, format!("of type {}", show(other)));
                self.report(match other {
                    Type::Option(_) => d.help("look inside the option with `if let x = …`"),
                    Type::List(_) => d.help("an item of a list is reached with `[0]`"),
                    _ => d.help(format!("remove `.{}`", name.text)),
                });
                Type::Dyn
            }
        }
    }

    /// Object literal.
    fn record(&mut self, fields: &[(ast::Name, Expr)], want: Option<&Type>) -> Type {
        let mut all: Vec<(core_ir::Name, Type)> = Vec::new();
        for (i, (name, e)) in fields.iter().enumerate() {
            if let Some((first, _)) = fields[..i].iter().find(|(n, _)| n.text == name.text) {
                let d = duplicate("key", name, first.span);
                self.report(d);
                self.expr(e, None);
                continue;
            }
            let wanted = match want {
                Some(Type::Record(want)) => want.iter().find(|(n, _)| **n == *name.text).map(|(_, t)| t),
                _ => None,
            };
            let ty = match wanted {
                Some(t) => {
                    self.expect(e, t, None);
                    t.clone()
                }
                None => self.expr(e, None),
            };
            all.push((name.text.as_str().into(), ty));
        }
        Type::record(all)
    }

    /// List literal: all items of the same type.
    fn list(&mut self, e: &Expr, items: &[Expr], want: Option<&Type>) -> Type {
        let want = match want {
            Some(Type::List(t)) => Some(&**t),
            _ => None,
        };
        if let Some(t) = want {
            for item in items {
                self.expect(item, t, None);
            }
            return Type::list(t.clone());
        }
        let mut all: Option<(Type, Span)> = None;
        for item in items {
            let ty = self.expr(item, None);
            all = match all {
                None => Some((ty, item.span)),
                Some((t, first)) => match join(&t, &ty) {
                    Some(both) => Some((both, first)),
                    None => {
                        self.report(
                            Diagnostic::error(
                                codes::MIXED_LIST,
                                format!("the items of a list have one type; this is {}", show(&ty)),
                                item.span,
                            )
                            .remark(first, format!("a {} here", show(&t)))
                            .help("use a record for values of different types"),
                        );
                        Some((Type::Dyn, first))
                    }
                },
            };
        }
        match all {
            Some((t, _)) => Type::list(t),
            None => {
                self.report(
                    Diagnostic::error(codes::EMPTY_LIST, "nothing says what this is a list of", e.span).help(
                        "an empty list can stand where a type is declared: as an argument, a field, a result",
                    ),
                );
                Type::list(Type::Dyn)
            }
        }
    }

    fn operand(&mut self, op: &str, e: &Expr, want: &Type) {
        let ty = self.expr(e, None);
        if !ty.is_subtype(want) {
            let d = Diagnostic::error(
                codes::BAD_OPERAND,
                format!("`{op}` works on a {}, found {}", show(want), show(&ty)),
                e.span,
            );
            self.report(d.help(match (&ty, want) {
                (Type::Option(_), _) => "look inside the option with `if let x = …`",
                (Type::Str, Type::Num) => "read the number with `to_number(…)`",
                (_, Type::Bool) => "compare it: `… == …`",
                _ => "use a number here",
            }));
        }
    }

    fn binary(&mut self, op: BinaryOp, op_span: Span, a: &Expr, b: &Expr) -> Type {
        match op {
            BinaryOp::Or | BinaryOp::And => {
                self.operand(op.as_str(), a, &Type::Bool);
                self.operand(op.as_str(), b, &Type::Bool);
                Type::Bool
            }
            BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => {
                self.operand(op.as_str(), a, &Type::Num);
                self.operand(op.as_str(), b, &Type::Num);
                Type::Num
            }
            // Addition.
            BinaryOp::Add => self.alike(op, op_span, a, b),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                self.alike(op, op_span, a, b);
                Type::Bool
            }
            // Equality, inequality.
            BinaryOp::Eq | BinaryOp::Ne => {
                let empty = |e: &Expr| matches!(&e.kind, ExprKind::List(items) if items.is_empty());
                let (ta, tb) = if empty(a) {
                    let tb = self.expr(b, None);
                    (self.expr(a, Some(&tb)), tb)
                } else {
                    let ta = self.expr(a, None);
                    let tb = self.expr(b, Some(&ta).filter(|_| empty(b)));
                    (ta, tb)
                };
                self.compared(op, op_span, (a, &ta), (b, &tb));
                Type::Bool
            }
        }
    }

    /// `+` and the order: two strings or two numbers.
    fn alike(&mut self, op: BinaryOp, op_span: Span, a: &Expr, b: &Expr) -> Type {
        let (ta, tb) = (self.expr(a, None), self.expr(b, None));
        for t in [Type::Str, Type::Num] {
            // `Dyn` fits everything, so the other operand decides.
            let decisive = if ta == Type::Dyn { &tb } else { &ta };
            if decisive.is_subtype(&t) && ta.is_subtype(&t) && tb.is_subtype(&t) {
                return if *decisive == Type::Dyn { Type::Dyn } else { t };
            }
        }
        let one = |t: &Type| t.is_subtype(&Type::Str) || t.is_subtype(&Type::Num);
        let mut d = Diagnostic::error(
            codes::BAD_OPERAND,
            format!(
                "`{}` works on two strings or two numbers, found {} and {}",
                op.as_str(),
                show(&ta),
                show(&tb)
            ),
            op_span,
        )
        .remark(a.span, show(&ta))
        .remark(b.span, show(&tb));
        if op == BinaryOp::Add && one(&ta) && one(&tb) {
            d = d.help("write the number into a string: `f\"… {x} …\"`");
        } else if matches!(ta, Type::Option(_)) || matches!(tb, Type::Option(_)) {
            d = d.help("look inside the option with `if let x = …`");
        } else {
            d = d.help("compare and add fields or items that are strings or numbers");
        }
        self.report(d);
        Type::Dyn
    }

    fn compared(&mut self, op: BinaryOp, op_span: Span, (a, ta): (&Expr, &Type), (b, tb): (&Expr, &Type)) {
        let comparable = same(ta, tb)
            || matches!((ta, tb), (Type::Null, Type::Option(_)) | (Type::Option(_), Type::Null))
            || matches!((ta, tb), (Type::Enum(_), Type::Str) | (Type::Str, Type::Enum(_)));
        if !comparable {
            let mut d = Diagnostic::error(
                codes::NOT_COMPARABLE,
                format!("`{}` can't compare {} with {}", op.as_str(), show(ta), show(tb)),
                op_span,
            )
            .remark(a.span, show(ta))
            .remark(b.span, show(tb));
            if matches!(ta, Type::Option(_)) || matches!(tb, Type::Option(_)) {
                d = d.help("an option can be compared with `null`; look inside it with `if let x = …`");
            } else {
                d = d.help("compare values of one type; `to_string(…)` and `to_number(…)` convert");
            }
            self.report(d);
            return;
        }
        for ((e, t), other) in [((a, ta), tb), ((b, tb), ta)] {
            let mut e = e;
            while let ExprKind::Paren(inner) = &e.kind {
                e = inner;
            }
            if let (ExprKind::Str(s), Type::Str, Type::Enum(variants)) = (&e.kind, t, other) {
                let mut d = not_a_variant(s, e.span, variants);
                d.level = diagnostics::Level::Warn;
                d.code = codes::NEVER_EQUAL;
                d.message =
                    format!("no `{}` is `{s}`, so this is always {}", variants.name, op == BinaryOp::Ne);
                self.report(d);
            }
        }
    }

    fn call(&mut self, f: &Function, name: &ast::Name, args: &[Expr], span: Span) -> Type {
        let types: Vec<Type> = args.iter().map(|a| self.expr(a, None)).collect();
        match (f.ty)(&types) {
            Some(ty) => ty,
            None if types.contains(&Type::Dyn) => Type::Dyn,
            None => {
                let shown: Vec<String> = types.iter().map(show).collect();
                self.report(
                    Diagnostic::error(
                        codes::BAD_CALL,
                        format!("`{}` can't be called with ({})", name.text, shown.join(", ")),
                        span,
                    )
                    .help(format!("its signature is `{}`", f.signature)),
                );
                Type::Dyn
            }
        }
    }

    fn call_in_expression(&mut self, name: &ast::Name, args: &[Expr]) -> Type {
        for a in args {
            self.expr(a, None);
        }
        let d = match self.decls.callable(&name.text) {
            Some(s) => Diagnostic::error(
                codes::CALL_IN_EXPRESSION,
                format!("{} `{}` can't be called inside an expression", s.kind.as_str(), name.text),
                name.span,
            )
            .remark(s.name.span, "declared here")
            .help(format!("call it in a statement of its own: `let x = {}(…);`", name.text)),
            None => {
                let d = Diagnostic::error(
                    codes::UNKNOWN_FUNCTION,
                    format!("there is no function `{}`", name.text),
                    name.span,
                );
                match nearest(&name.text, functions::ALL.iter().map(|f| f.name)) {
                    Some(near) => suggest(d, near),
                    None => d.help(format!("the functions are {}", functions::list())),
                }
            }
        };
        self.report(d);
        Type::Dyn
    }
}

fn not_a_variant(s: &str, span: Span, t: &core_ir::EnumType) -> Diagnostic {
    let d = Diagnostic::error(codes::NOT_A_VARIANT, format!("`{s}` is not a variant of `{}`", t.name), span);
    match nearest(s, t.variants.iter().map(|v| &**v)) {
        Some(near) => {
            // A literal has quotes around the name, a case of a `match` has not.
            let quotes = if (span.end - span.start) as usize > s.len() { "\"" } else { "" };
            let d = suggest(d, &format!("{quotes}{near}{quotes}"));
            Diagnostic { help: vec![format!("did you mean `{near}`?")], ..d }
        }
        None => d.help(format!(
            "its variants are {}",
            t.variants.iter().take(20).map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ")
        )),
    }
}

fn zero(n: &ast::Number, message: &str) -> Diagnostic {
    Diagnostic::error(codes::BAD_SETTING, message, n.span).help("write a number of at least 1")
}

fn count(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

fn usage(s: &Signature) -> String {
    let params: Vec<String> = s.params.iter().map(|p| format!("{}: {}", p.name.text, show(&p.ty))).collect();
    format!("it is `{}({}) -> {}`", s.name.text, params.join(", "), show(&s.result))
}

/// A name that was bound for a block leaves its scope. If it meant something before, it means that again;
/// if not, it is gone, unless the block has bound it anew.
fn leave(way: &mut Changes, name: &str, bound: u32, known: bool) {
    if known || matches!(way.get(name), Some(Some(Entry::Bound(b))) if b.id == bound) {
        way.remove(name);
    }
}

/// The arguments of a call in order.
pub(super) fn arguments_of(run: &Run) -> Vec<&Expr> {
    match &run.args {
        Args::Named(args) => args.iter().map(|(_, e)| e).collect(),
        Args::Positional(args) => args.iter().collect(),
    }
}

/// Whether a part of the block could not be read: it may be the one that returns.
fn unreadable(block: &Block) -> bool {
    let mut work = vec![block];
    while let Some(b) = work.pop() {
        if b.stmts.iter().any(|s| matches!(s.kind, StmtKind::Error(_))) {
            return true;
        }
        work.extend(b.stmts.iter().flat_map(super::exits::blocks_of));
    }
    false
}

/// Where a block that may reach its end does so, and why.
fn open_end(block: &Block, exits: &ExitTable) -> (Span, &'static str) {
    let mut block = block;
    loop {
        let end = Span { start: block.span.end.saturating_sub(1), ..block.span };
        let Some(last) = block.stmts.last() else { return (end, "nothing is returned here") };
        let head = |e: &Expr| Span { start: last.span.start, ..e.span };
        let (inner, other): (&Block, Option<&Block>) = match &last.kind {
            StmtKind::If(e, a, b) | StmtKind::IfLet(_, e, a, b) => match b {
                None => return (head(e), "if this does not hold, nothing is returned"),
                Some(b) => (a, Some(b)),
            },
            StmtKind::Try(a, _, b) => (a, Some(b)),
            StmtKind::Match(_, arms) => {
                let Some(arm) = arms.iter().find(|a| exits.block(&a.body).falls) else {
                    return (end, "nothing is returned here");
                };
                (&arm.body, None)
            }
            StmtKind::While(e, ..) | StmtKind::For(_, e, _) => {
                return (head(e), "this loop may end without returning");
            }
            _ => return (end, "nothing is returned here"),
        };
        block = match other {
            Some(other) if !exits.block(inner).falls => other,
            _ => inner,
        };
    }
}

/// Reports pipelines that call each other in a circle, unless it is one pipeline that counts down.
fn circles(
    program: &ast::Program,
    decls: &Decls,
    exits: &ExitTable,
    descents: &mut HashMap<String, Descent>,
    out: &mut Vec<Diagnostic>,
) {
    let mut calls: HashMap<&str, Vec<(&str, Span)>> = HashMap::new();
    let mut bodies: HashMap<&str, &ast::Pipeline> = HashMap::new();
    let mut order = Vec::new();
    for item in &program.items {
        let Item::Pipeline(p) = item else { continue };
        let called = runs_in(&p.body)
            .into_iter()
            .filter(|r| decls.callables.get(&r.target.text).is_some_and(|s| s.kind == Kind::Pipeline))
            .map(|r| (r.target.text.as_str(), r.target.span))
            .collect();
        calls.insert(&p.name.text, called);
        bodies.insert(&p.name.text, p);
        order.push(&*p.name.text);
    }
    let mut done: HashSet<&str> = HashSet::new();
    let mut looked_at: HashSet<&str> = HashSet::new();
    for start in order {
        // Depth first with an explicit stack: the path, and how far each of its pipelines is looked through.
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((name, next)) = path.last_mut() {
            let name = *name;
            let call = calls.get(name).and_then(|c| c.get(*next)).copied();
            *next += 1;
            let Some((target, span)) = call else {
                done.insert(name);
                path.pop();
                continue;
            };
            if let Some(at) = path.iter().position(|(n, _)| *n == target) {
                let mut why = None;
                if let (true, Some(p), Some(s)) =
                    (name == target, bodies.get(name), decls.callables.get(name))
                {
                    // Each call of itself is a circle of one.
                    if descents.contains_key(name) || !looked_at.insert(name) {
                        continue;
                    }
                    match recursion::descent(p, &s.params, exits) {
                        Ok(descent) => {
                            descents.insert(name.to_string(), descent);
                            continue;
                        }
                        Err(reason) => why = reason,
                    }
                }
                let circle: Vec<&str> = path[at..].iter().map(|(n, _)| *n).chain([target]).collect();
                let alone = circle.len() == 2;
                let message = match alone {
                    true => format!("no bound is known for how often `{target}` calls itself"),
                    false => format!(
                        "no bound is known for how often these pipelines call themselves: {}",
                        circle.join(" → ")
                    ),
                };
                let mut d = Diagnostic::error(codes::RECURSION, message, span);
                if let Some(why) = why {
                    d = d.remark(why.span, why.text);
                }
                d = d.help("repeat with `while … max n { … }`, which says how often at most");
                out.push(match alone {
                    true => d.help(format!(
                        "or count down: with a parameter `n: Number`, `if n <= 0 {{ return …; }}` before the call, and \
                         `{target}(…, n - 1)`"
                    )),
                    false => d.help("or make it one pipeline, which may call itself if it counts down"),
                });
            } else if !done.contains(target) {
                path.push((target, 0));
            }
        }
    }
}

/// All calls of a block, in order.
pub(super) fn runs_in(block: &Block) -> Vec<&Run> {
    let mut out = Vec::new();
    let mut work: Vec<&Stmt> = block.stmts.iter().rev().collect();
    while let Some(stmt) = work.pop() {
        match &stmt.kind {
            StmtKind::Run(r) => out.push(r),
            StmtKind::Parallel { runs, .. } => out.extend(runs),
            _ => {
                for b in super::exits::blocks_of(stmt).into_iter().rev() {
                    work.extend(b.stmts.iter().rev());
                }
            }
        }
    }
    out
}
