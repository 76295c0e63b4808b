//! The static rules: names, arities, types, environments, and that every path returns.
//!
//! Source: seed 004 §2. Where a rule of the seed is met, its name stands beside the code.

mod calls;
mod cases;
mod constants;
mod env;
mod expr;
mod first_values;
mod functions;
mod narrow;
mod statements;

pub(super) use calls::{arguments_of, usage};
use env::{Binding, Entry, Env, Fields};
use first_values::FirstValues;
pub(crate) use functions::each_expression;
use statements::Loop;
pub(super) use statements::number;

use super::codes;
use super::decls::{ActionKind, CallableKind, Decls, Signature};
use super::exits::ExitTable;
use super::generics;
use super::recursion::{self, Descent};
use super::scopes::Scopes;
use super::types::{certain, show, unconditional};
use core_ir::Type;
use diagnostics::{Applicability, Diagnostic, Fix, Span};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use syntax::agent::ast::{self, Block, Expr, Item, PatternForm, Run, Stmt, StmtKind};

/// Results of the checker that lowering needs.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The field accesses whose field is optional, and so may be absent.
    pub(super) optional_fields: HashSet<Span>,
    /// The indices that look up a key of a map.
    pub(super) lookups: HashSet<Span>,
    /// For each statement with blocks, the variables that it binds for what follows, sorted.
    pub(super) outs: HashMap<Span, Arc<[String]>>,
    /// Decreasing parameters of recursive pipelines.
    pub(super) descents: HashMap<String, Descent>,
    /// Parameters of `fn`s that call themselves, of which each such call gets a part.
    pub(super) into_parts: HashMap<String, String>,
    /// The declared types of variables, which the run checks, each at the place of its name.
    pub(super) checked: HashMap<Span, Type>,
    /// The types of the variables that `let` binds, each at the place of its name.
    pub(super) variables: Vec<(Span, Type)>,
    /// The expressions in texts whose value may be or hold a number that is no decimal.
    pub(super) numbers: HashSet<Span>,
    /// True if the program divides, or imports what may. Without that all numbers are decimals.
    pub(super) divides: bool,
    /// Arguments of pipelines and `fn`s, results of `fn`s, and fields of cases, whose type only the run
    /// shows, with the type that they must have.
    pub(super) unsure: HashMap<Span, Type>,
    /// Records in which options are left out where they are declared: the paths of fields that are null.
    pub(super) absent: HashMap<Span, Vec<Vec<core_ir::Name>>>,
    /// The declared results of pipelines that return something whose type only the run shows.
    pub(super) unsure_results: HashSet<Span>,
    /// Uses of variables and fields that a condition has shown not to be null, with the type inside. The term
    /// says it, since the types of the core follow only conditions on variables.
    pub(super) narrowed: HashMap<Span, Type>,
    /// The names in expressions that are cases of sum types.
    pub(super) cases: HashSet<Span>,
    /// The case of which each pattern of one name is, by the place of the name.
    pub(super) patterns: HashMap<Span, String>,
    /// The values of `match`es that are texts, or numbers.
    pub(super) matched_literals: HashMap<Span, PatternForm>,
}

impl Facts {
    /// Adds what was found in another part of the program.
    fn extend(&mut self, other: Facts) {
        let Facts {
            optional_fields,
            lookups,
            outs,
            descents,
            into_parts,
            checked,
            variables,
            numbers,
            divides,
            unsure,
            absent,
            unsure_results,
            narrowed,
            cases,
            patterns,
            matched_literals,
        } = other;
        self.optional_fields.extend(optional_fields);
        self.lookups.extend(lookups);
        self.outs.extend(outs);
        self.descents.extend(descents);
        self.into_parts.extend(into_parts);
        self.checked.extend(checked);
        self.variables.extend(variables);
        self.numbers.extend(numbers);
        self.divides |= divides;
        self.unsure.extend(unsure);
        self.absent.extend(absent);
        self.unsure_results.extend(unsure_results);
        self.narrowed.extend(narrowed);
        self.cases.extend(cases);
        self.patterns.extend(patterns);
        self.matched_literals.extend(matched_literals);
    }
}

/// Checks the bodies of a program against its declarations.
pub(super) fn check(
    program: &ast::Program,
    decls: &Decls,
    exits: &ExitTable,
    scopes: &Scopes,
    out: &mut Vec<Diagnostic>,
) -> Facts {
    let mut c = Checker {
        decls,
        scopes,
        exits,
        out,
        facts: Facts::default(),
        env: Env::default(),
        result: None,
        loops: Vec::new(),
        closed: None,
        reads: HashMap::new(),
        bindings: 0,
        in_guard: false,
        readable: true,
        pure: None,
        wide: false,
        generics: HashSet::new(),
        first_values: FirstValues::default(),
    };
    c.constants(program);
    let constants = c.env.mark();
    for item in &program.items {
        c.item(item, constants);
    }
    let mut facts = c.facts;
    // A run checks nothing of what only a caller knows.
    let generic: HashSet<String> =
        decls.callables.values().flat_map(|s| s.generics.iter().cloned()).collect();
    if !generic.is_empty() {
        let checks =
            facts.unsure.values_mut().chain(facts.checked.values_mut()).chain(facts.narrowed.values_mut());
        checks.for_each(|ty| *ty = generics::replaced(ty, &generic, &|_| Type::Dyn));
    }
    facts.divides |= program.items.iter().any(|i| matches!(i, Item::Import(_)));
    if !facts.divides {
        facts.numbers.clear();
    }
    cycles(program, decls, exits, &mut facts.descents, out);
    functions::cycles(program, decls, exits, &mut facts.into_parts, out);
    cycles_of_agents(program, decls, out);
    facts
}

/// A block that ends at its end alone.
#[derive(Clone, Copy)]
enum Closed {
    /// The rounds of a `parallel for` with this head.
    Rounds(Span),
    /// The block of this `ensure`.
    Ensure(Span),
}

/// The report of a statement that would end such a block early.
fn leaves(word: &str, at: Span, closed: Option<Closed>) -> Diagnostic {
    if let Some(Closed::Ensure(block)) = closed {
        let message = format!("`{word}` can't leave the block of an `ensure`, which runs on every way out");
        return Diagnostic::error(codes::LEAVES_PARALLEL, message, at)
            .remark(block, "in this")
            .help("write it in the block of the `try`, or after the whole statement");
    }
    let d = Diagnostic::error(
        codes::LEAVES_PARALLEL,
        format!("`{word}` can't leave the rounds of `parallel for`, which run at the same time"),
        at,
    );
    let d = match closed {
        Some(Closed::Rounds(head)) => d.remark(head, "in this"),
        _ => d,
    };
    d.help("bind a variable instead and look at the list of its values afterwards; or use `for`")
}

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

/// A repair that takes something away that does nothing.
pub(super) fn removal(span: Span) -> Fix {
    Fix { span, replacement: String::new(), applicability: Applicability::Safe }
}

/// The report of a second declaration of a name.
pub(super) fn duplicate(what: &str, name: &ast::Name, first: Span) -> Diagnostic {
    Diagnostic::error(codes::DUPLICATE, format!("{what} `{}` is declared twice", name.text), name.span)
        .remark(first, "first here")
        .help("remove one of them or give it another name")
}

struct Checker<'a> {
    decls: &'a Decls,
    scopes: &'a Scopes,
    exits: &'a ExitTable,
    out: &'a mut Vec<Diagnostic>,
    facts: Facts,
    env: Env,
    /// The result type of the pipeline with the place where it is declared; `None` in a test.
    result: Option<(Type, Span)>,
    loops: Vec<Loop>,
    /// The innermost block around this place that can't be left.
    closed: Option<Closed>,
    /// Last read of each binding.
    reads: HashMap<u32, Span>,
    bindings: u32,
    /// True in the condition of a guard.
    in_guard: bool,
    /// True if the whole pipeline was parsed, so that the contents of its blocks are known.
    readable: bool,
    /// The innermost function around this place, which may only compute.
    pure: Option<Pure>,
    /// True where what conditions have shown is not looked at.
    wide: bool,
    /// The types that calls of the `fn` around this place decide.
    generics: HashSet<String>,
    first_values: FirstValues,
}

/// A function that may only compute.
#[derive(Clone, Copy)]
struct Pure {
    place: Span,
    /// Kind of the thing, for messages.
    what: &'static str,
}

impl Checker<'_> {
    fn report(&mut self, d: Diagnostic) {
        self.out.push(d);
    }

    fn bind(&mut self, name: &ast::Name, ty: Type) {
        self.no_constant(name);
        self.env.forget_places(&name.text);
        self.bind_name(name, ty);
    }

    /// Binds a name that nobody has bound before.
    fn bind_name(&mut self, name: &ast::Name, ty: Type) {
        self.bindings += 1;
        // What a condition says of a value holds until the variable is bound anew, which a loop may do.
        let ty = unconditional(&ty);
        let binding = Binding {
            id: self.bindings,
            ty,
            span: name.span,
            whole: None,
            literal: None,
            fields: Fields::Some,
        };
        self.env.set(&name.text, Some(Entry::Bound(binding)));
    }

    /// Checks one item of a program.
    fn item_once(&mut self, item: &Item, constants: usize) {
        self.env.reset(constants);
        self.result = None;
        self.pure = None;
        self.generics = HashSet::new();
        match item {
            Item::Pipeline(p) => self.pipeline(p),
            Item::Function(p) => {
                self.pure = Some(Pure { place: p.name.span, what: "`fn`" });
                if let Some(s) = self.decls.function(&p.name.text).filter(|s| s.name.span == p.name.span) {
                    self.generics = s.generics.clone();
                }
                self.pipeline(p);
            }
            // Test blocks are checked in an empty environment.
            Item::Test(t) => {
                if let Some(rows) = &t.rows {
                    self.bind(&rows.name, self.decls.rows.get(&rows.span).cloned().unwrap_or(Type::Dyn));
                }
                self.block(&t.body);
            }
            Item::Task(t) => {
                if let Some(s) = self.decls.callables.get(&t.name.text).filter(|s| s.name.span == t.name.span)
                {
                    self.defaults(s);
                    self.examples(s, t);
                }
                self.prompt(t);
            }
            _ => {}
        }
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
        self.defaults(signature);
        for param in &signature.params {
            self.bind(&param.name, param.ty.clone());
        }
        self.result = Some((signature.result.clone(), p.result.span));
        self.readable = !unreadable(&p.body);
        self.block(&p.body);
        if self.exits.block(&p.body).falls && self.readable {
            let (place, why) = open_end(&p.body, self.exits);
            self.report(
                Diagnostic::error(
                    codes::NO_RETURN,
                    format!(
                        "{} `{}` can reach its end without `return`",
                        signature.kind.as_str(),
                        p.name.text
                    ),
                    p.name.span,
                )
                .remark(place, why)
                .help(format!("return a value of type `{}` on every path", show(&signature.result))),
            );
        }
    }

    /// The defaults of parameters, which only compute and see no parameter.
    fn defaults(&mut self, s: &Signature) {
        let around = self.pure;
        for p in &s.params {
            let Some(e) = &p.default else { continue };
            self.pure = Some(Pure { place: p.name.span, what: "default" });
            let found = self.expect(e, &p.ty, Some((p.name.span, "the parameter".to_string())));
            if !certain(&found, &p.ty) {
                self.facts.unsure.insert(e.span, p.ty.clone());
            }
        }
        self.pure = around;
    }

    /// The examples of a task, which only compute and see no parameter.
    fn examples(&mut self, s: &Signature, t: &ast::Callable) {
        let Some(e) = &t.body.examples else { return };
        let around = self.pure.replace(Pure { place: t.name.span, what: "example" });
        let want = s.examples();
        let found = self.expect(e, &want, Some((t.name.span, "the task".to_string())));
        if !certain(&found, &want) {
            self.facts.unsure.insert(e.span, want);
        }
        self.pure = around;
    }

    /// The holes of a task's prompt.
    fn prompt(&mut self, t: &ast::Callable) {
        let prompt = match &t.body.kind {
            ast::BodyKind::Prompt(template) => Some(template),
            _ => None,
        };
        if prompt.is_none() && t.body.system.is_none() {
            return;
        }
        let Some(signature) = self.decls.callables.get(&t.name.text).filter(|s| s.name.span == t.name.span)
        else {
            return;
        };
        for param in &signature.params {
            self.bind(&param.name, param.ty.clone());
        }
        for template in t.body.system.iter().chain(prompt) {
            self.template(template);
            for part in &template.parts {
                if let ast::TemplatePart::Text(text) = part {
                    self.braces_of_text(&text.value, text.span, true);
                }
            }
        }
    }

    fn template(&mut self, template: &ast::Template) {
        for part in &template.parts {
            match part {
                ast::TemplatePart::Hole(e) => {
                    let ty = self.expr(e, None);
                    if holds_numbers(&ty) {
                        self.facts.numbers.insert(e.span);
                    }
                }
                ast::TemplatePart::Text(_) => {}
            }
        }
    }

    // ----- statements -----

    // ----- calls -----

    // ----- expressions -----
}

/// Returns true if a value of the type may be or hold a number that the program has computed. Data of any
/// shape comes from outside, and its numbers are decimals.
pub(super) fn holds_numbers(ty: &Type) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match ty {
        Type::Num => true,
        Type::List(t) | Type::Option(t) => holds_numbers(t),
        Type::Map(of) => holds_numbers(&of.1),
        Type::Rec(r) => r.bodies().iter().any(|(_, t)| holds_numbers(t)),
        Type::Record(fields) | Type::Variant(fields) => fields.iter().any(|(_, t)| holds_numbers(t)),
        Type::Refined(r) => holds_numbers(&r.0),
        _ => false,
    })
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

/// Returns true if a part of the block could not be parsed. That part may be the one that returns.
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

/// Returns the place and the reason why a block may reach its end.
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
            StmtKind::Ensure(a, _) => (a, None),
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

/// Reports pipelines that call each other in a cycle, unless it is one pipeline that counts down.
fn cycles(
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
            .filter(|r| decls.callables.get(&r.target.text).is_some_and(|s| s.kind == CallableKind::Pipeline))
            .map(|r| (r.target.text.as_str(), r.target.span))
            .collect();
        calls.insert(&p.name.text, called);
        bodies.insert(&p.name.text, p);
        order.push(&*p.name.text);
    }
    let mut looked_at: HashSet<&str> = HashSet::new();
    each_cycle(&order, &calls, |cycle, span| {
        let target = cycle[0];
        let alone = cycle.len() == 2;
        let mut why = None;
        if let (true, Some(p), Some(s)) = (alone, bodies.get(target), decls.callables.get(target)) {
            // Each call of itself is a cycle of one.
            if descents.contains_key(target) || !looked_at.insert(target) {
                return;
            }
            match recursion::descent(p, &s.params, exits) {
                Ok(descent) => {
                    descents.insert(target.to_string(), descent);
                    return;
                }
                Err(reason) => why = reason,
            }
        }
        let message = match alone {
            true => format!("no bound is known for how often `{target}` calls itself"),
            false => format!(
                "no bound is known for how often these pipelines call themselves: {}",
                cycle.join(" → ")
            ),
        };
        let mut d = Diagnostic::error(codes::RECURSION, message, span);
        if let Some(why) = why {
            d = d.remark(why.span, why.text);
        }
        d = d.help("repeat with `while … max n { … }`, which has a bound");
        out.push(match alone {
            true => d.help(format!(
                "or count down: with a parameter `n: Number`, `if n <= 0 {{ return …; }}` before the call, and \
                 `{target}(…, n - 1)`"
            )),
            false => d.help("or make it one pipeline, which may call itself if it counts down"),
        });
    });
}

/// Calls `f` with each cycle of calls that a search from these callables in order meets: the names on it, the
/// first one again at its end, and the place of the call that closes it.
fn each_cycle<'a>(
    order: &[&'a str],
    calls: &HashMap<&'a str, Vec<(&'a str, Span)>>,
    mut f: impl FnMut(&[&'a str], Span),
) {
    let mut done: HashSet<&str> = HashSet::new();
    for &start in order {
        // Depth first with an explicit stack: the path, and how far each of its callables is looked through.
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
                let cycle: Vec<&str> = path[at..].iter().map(|(n, _)| *n).chain([target]).collect();
                f(&cycle, span);
            } else if !done.contains(target) {
                path.push((target, 0));
            }
        }
    }
}

/// Reports agents that ask or hand off to each other in a cycle, also by pipelines: no bound would be
/// known.
fn cycles_of_agents(program: &ast::Program, decls: &Decls, out: &mut Vec<Diagnostic>) {
    let mut next: HashMap<&str, Vec<(&str, Span)>> = HashMap::new();
    for (name, decl) in &decls.agents {
        let others = decl.offers.iter().filter(|o| matches!(o.kind, ActionKind::Ask | ActionKind::HandOff));
        let others: Vec<_> = others.map(|o| (&*o.name.text, o.name.span)).collect();
        if !others.is_empty() {
            next.insert(name, others);
        }
    }
    if next.is_empty() {
        return;
    }
    // An agent is meant where a pipeline has its name, too.
    for item in &program.items {
        let Item::Pipeline(p) = item else { continue };
        if decls.agents.contains_key(&p.name.text) {
            continue;
        }
        let called = runs_in(&p.body).into_iter().flat_map(|run| {
            let by = run.clauses.iter().find_map(|c| match &c.kind {
                ast::ClauseKind::By(agent) => Some((&*agent.text, agent.span)),
                _ => None,
            });
            [Some((&*run.target.text, run.target.span)), by].into_iter().flatten()
        });
        next.insert(&p.name.text, called.collect());
    }
    let mut done: HashSet<&str> = HashSet::new();
    for item in &program.items {
        let Item::Agent(a) = item else { continue };
        let mut path: Vec<(&str, usize)> = vec![(&a.name.text, 0)];
        while let Some((name, i)) = path.last_mut() {
            let (name, now) = (*name, *i);
            *i += 1;
            let Some((target, span)) = next.get(name).and_then(|n| n.get(now)).copied() else {
                done.insert(name);
                path.pop();
                continue;
            };
            let Some(at) = path.iter().position(|(n, _)| *n == target) else {
                if !done.contains(target) {
                    path.push((target, 0));
                }
                continue;
            };
            let cycle: Vec<&str> = path[at..].iter().map(|(n, _)| *n).chain([target]).collect();
            // Pipelines alone are reported as such.
            if cycle.iter().any(|n| decls.agents.contains_key(*n)) {
                let message =
                    format!("no bound is known for how often these ask each other: {}", cycle.join(" → "));
                out.push(Diagnostic::error(codes::RECURSION, message, span).help(
                    "let a pipeline decide which agent continues, with `while … max n { … }`, or remove one of them from the cycle",
                ));
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
