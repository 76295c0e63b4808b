//! `fn`s that call themselves on a part of an argument.
//!
//! A `fn` may call itself if there is one parameter of which every such call gets a part: a field, an item,
//! the value of a key, or what a pattern or a loop takes from it. Values are finite trees, so such calls end.
//!
//! Invariant: what is accepted here ends, whatever the arguments are.
//! Invariant: a part has fewer parts than the value that it is taken from. So the inside of an option is
//! none, and neither is a character: the first one of a text may be the text.

use super::check::arguments_of;
use super::decls::{Decls, Param, Signature};
use super::exits::{ExitTable, blocks_of};
use super::functions;
use core_ir::Type;
use diagnostics::Span;
use std::collections::HashMap;
use syntax::agent::ast::{self, Args, BinaryOp, Block, Expr, ExprKind, Pattern, Stmt, StmtKind};

/// Relation of a value to an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// It is the argument.
    Same,
    /// It is a part of it.
    Part,
    /// It is a list of parts.
    Parts,
    /// It is a list of keys with parts, as `items` gives it.
    Entries,
    /// It is a key with a part.
    Entry,
}

impl Relation {
    /// A field, or the value of a key.
    fn field(self, name: &str) -> Option<Relation> {
        match self {
            Relation::Same | Relation::Part => Some(Relation::Part),
            Relation::Entry => (name == "value").then_some(Relation::Part),
            Relation::Parts | Relation::Entries => None,
        }
    }

    /// An item, if it is a list.
    fn item(self) -> Option<Relation> {
        match self {
            Relation::Same | Relation::Part | Relation::Parts => Some(Relation::Part),
            Relation::Entries => Some(Relation::Entry),
            Relation::Entry => None,
        }
    }

    /// A list of some of its items.
    fn items(self) -> Option<Relation> {
        match self {
            Relation::Same | Relation::Part | Relation::Parts => Some(Relation::Parts),
            Relation::Entries => Some(Relation::Entries),
            Relation::Entry => None,
        }
    }

    /// A value that is one of two.
    fn or(self, other: Relation) -> Option<Relation> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Relation::Same | Relation::Part, Relation::Same | Relation::Part) => Some(Relation::Same),
            _ => None,
        }
    }
}

/// Reason why no parameter gets smaller.
pub(super) struct Why {
    /// A call, or an argument of one.
    pub(super) span: Span,
    /// The parameter.
    pub(super) param: String,
    /// Progress of the analysis for this parameter. The most promising reason is reported.
    rank: usize,
}

/// Finds the parameter of which each call of a `fn` by itself gets a part, or the reason why there is none.
///
/// # Errors
/// The most promising parameter's reason; none if no parameter has parts.
pub(super) fn descent(
    p: &ast::Pipeline,
    s: &Signature,
    decls: &Decls,
    exits: &ExitTable,
) -> Result<String, Option<Why>> {
    let mut best: Option<Why> = None;
    for (index, param) in s.params.iter().enumerate().filter(|(_, q)| has_parts(&q.ty)) {
        let mut walk = Walk {
            function: &p.name.text,
            param: (index, param),
            decls,
            exits,
            known: HashMap::from([(param.name.text.clone(), Relation::Same)]),
            calls: 0,
            why: None,
        };
        walk.block(&p.body);
        match walk.why {
            None => return Ok(param.name.text.clone()),
            Some(why) if best.as_ref().is_none_or(|b| b.rank < why.rank) => best = Some(why),
            Some(_) => {}
        }
    }
    Err(best)
}

/// Returns true for the types of values whose fields and items are parts. A value of an unknown type may be a
/// text.
fn has_parts(ty: &Type) -> bool {
    match ty {
        Type::Refined(r) => has_parts(&r.0),
        Type::Option(inside) => has_parts(inside),
        Type::Rec(_) => has_parts(&ty.unfolded()),
        Type::List(_) | Type::Map(_) | Type::Record(_) | Type::Variant(_) => true,
        _ => false,
    }
}

type Known = HashMap<String, Relation>;

/// Ways through a statement: if what follows is reached by it, and how to go through it.
type Ways<'w, 'a> = Vec<(bool, Box<dyn FnOnce(&mut Walk<'a>) + 'w>)>;

struct Walk<'a> {
    function: &'a str,
    param: (usize, &'a Param),
    decls: &'a Decls,
    exits: &'a ExitTable,
    /// The variables that are the argument, or have parts of it.
    known: Known,
    /// Number of calls that get a part.
    calls: usize,
    why: Option<Why>,
}

impl<'a> Walk<'a> {
    fn set(&mut self, name: &str, to: Option<Relation>) {
        match to {
            Some(relation) => self.known.insert(name.to_string(), relation),
            None => self.known.remove(name),
        };
    }

    /// Goes through something with names that mean what they meant before behind it.
    fn within(&mut self, names: &[(&str, Option<Relation>)], f: impl FnOnce(&mut Self)) {
        let before: Vec<_> = names.iter().map(|(n, _)| (*n, self.known.get(*n).copied())).collect();
        names.iter().for_each(|(n, to)| self.set(n, *to));
        f(self);
        before.into_iter().for_each(|(n, to)| self.set(n, to));
    }

    /// The names that a pattern binds.
    fn fields<'p>(pattern: &'p Pattern, of: Option<Relation>) -> Vec<(&'p str, Option<Relation>)> {
        let bound = |f: &'p ast::PatternField| (&*f.name.text, of.and_then(|r| r.field(&f.field.text)));
        pattern.fields.iter().map(bound).collect()
    }

    fn block(&mut self, block: &Block) {
        stacker::maybe_grow(64 << 10, 1 << 20, || block.stmts.iter().for_each(|s| self.stmt(s)));
    }

    /// Goes through the ways of a statement. Behind it is known what each way that goes on knows.
    fn ways(&mut self, ways: Ways<'_, 'a>) {
        let before = self.known.clone();
        let mut after: Option<Known> = None;
        for (falls, way) in ways {
            self.known.clone_from(&before);
            way(self);
            if falls {
                after = Some(match after {
                    None => self.known.clone(),
                    Some(mut all) => {
                        all.retain(|name, relation| self.known.get(name) == Some(relation));
                        all
                    }
                });
            }
        }
        self.known = after.unwrap_or(before);
    }

    fn falls(&self, block: Option<&Block>) -> bool {
        block.is_none_or(|b| self.exits.block(b).falls)
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let(name, _, e) => {
                self.expr(e);
                let relation = self.relation(e);
                self.set(&name.text, relation);
            }
            StmtKind::Run(run) => {
                let args = arguments_of(run);
                args.iter().for_each(|e| self.expr(e));
                let relation = match &run.args {
                    Args::Positional(args) => {
                        if run.target.text == self.function {
                            self.call(args, run.target.span);
                        }
                        self.result(&run.target.text, args)
                    }
                    Args::Named(_) => {
                        // A `fn` is called by position; this has been reported.
                        if run.target.text == self.function {
                            self.call(&[], run.target.span);
                        }
                        None
                    }
                };
                self.set(&run.name.text, relation);
            }
            StmtKind::If(c, then, other) => {
                self.expr(c);
                let falls = [self.falls(Some(then)), self.falls(other.as_ref())];
                self.ways(vec![
                    (falls[0], Box::new(|w| w.block(then))),
                    (falls[1], Box::new(|w| other.iter().for_each(|b| w.block(b)))),
                ]);
            }
            StmtKind::IfLet(name, e, then, other) => {
                self.expr(e);
                // What is inside of an option is the same value.
                let inside = self.relation(e);
                let falls = [self.falls(Some(then)), self.falls(other.as_ref())];
                self.ways(vec![
                    (falls[0], Box::new(move |w| w.within(&[(&name.text, inside)], |w| w.block(then)))),
                    (falls[1], Box::new(|w| other.iter().for_each(|b| w.block(b)))),
                ]);
            }
            StmtKind::Match(e, arms) => {
                self.expr(e);
                let of = self.relation(e);
                let mut ways: Ways<'_, 'a> = Vec::new();
                for arm in arms {
                    let falls = self.falls(Some(&arm.body));
                    ways.push((
                        falls,
                        Box::new(move |w| w.within(&Self::fields(&arm.pattern, of), |w| w.block(&arm.body))),
                    ));
                }
                self.ways(ways);
            }
            StmtKind::While(c, _, body) => {
                self.forget(body);
                let before = self.known.clone();
                self.expr(c);
                self.block(body);
                self.known = before;
            }
            StmtKind::For(name, e, body) | StmtKind::ParallelFor(name, e, _, body) => {
                self.expr(e);
                let item = self.relation(e).and_then(Relation::item);
                self.forget(body);
                let before = self.known.clone();
                self.within(&[(&name.text, item)], |w| w.block(body));
                self.known = before;
            }
            StmtKind::Try(body, ast::Catch { name, .. }, handler) => {
                let before = self.known.clone();
                self.block(body);
                // The error may have come from anywhere in the body.
                self.known = before;
                self.forget(body);
                self.within(&[(&name.text, None)], |w| w.block(handler));
                self.forget(body);
                self.forget(handler);
            }
            StmtKind::Ensure(body, cleanup) => {
                self.block(body);
                self.forget(body);
                self.block(cleanup);
                self.forget(cleanup);
            }
            StmtKind::Assert(e, message) => {
                self.expr(e);
                message.iter().flat_map(ast::Template::holes).for_each(|e| self.expr(e));
            }
            StmtKind::Guard(_, e, _) | StmtKind::Return(e) => self.expr(e),
            StmtKind::Parallel { runs, .. } => {
                for run in runs {
                    arguments_of(run).iter().for_each(|e| self.expr(e));
                    self.set(&run.name.text, None);
                }
            }
            StmtKind::Error(names) => names.iter().for_each(|n| self.set(&n.text, None)),
            StmtKind::Break | StmtKind::Continue => {}
        }
    }

    /// Forgets the variables that a block binds, which may have other values in a later round.
    fn forget(&mut self, block: &Block) {
        let mut blocks = vec![block];
        while let Some(block) = blocks.pop() {
            for stmt in &block.stmts {
                match &stmt.kind {
                    StmtKind::Let(name, ..) => self.set(&name.text, None),
                    StmtKind::Run(run) => self.set(&run.name.text, None),
                    StmtKind::Parallel { runs, .. } => runs.iter().for_each(|r| self.set(&r.name.text, None)),
                    _ => {}
                }
                blocks.extend(blocks_of(stmt));
            }
        }
    }

    /// Goes through an expression and looks at the calls in it.
    fn expr(&mut self, e: &Expr) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Call(name, args) => {
                if name.text == self.function {
                    self.call(args, name.span);
                }
                match args.split_last() {
                    Some((f, before)) if self.is_higher(&name.text) => {
                        before.iter().for_each(|e| self.expr(e));
                        let item = args.first().and_then(|l| self.relation(l)).and_then(Relation::item);
                        self.applied(f, item);
                    }
                    _ => args.iter().for_each(|e| self.expr(e)),
                }
            }
            ExprKind::If(name, condition, then, other) => {
                self.expr(condition);
                let inside = self.relation(condition);
                let bound: Vec<_> = name.iter().map(|n| (&*n.text, inside)).collect();
                self.within(&bound, |w| w.expr(then));
                self.expr(other);
            }
            ExprKind::Match(of, arms) => {
                self.expr(of);
                let relation = self.relation(of);
                for arm in arms {
                    self.within(&Self::fields(&arm.pattern, relation), |w| w.expr(&arm.value));
                }
            }
            ExprKind::Block(lets, value) => {
                let names: Vec<_> =
                    lets.iter().map(|l| (&*l.name.text, self.known.get(&l.name.text).copied())).collect();
                self.within(&names, |w| {
                    for l in lets {
                        w.expr(&l.value);
                        let relation = w.relation(&l.value);
                        w.set(&l.name.text, relation);
                    }
                    w.expr(value);
                });
            }
            ExprKind::Lambda(..) => self.applied(e, None),
            _ => e.children().into_iter().for_each(|e| self.expr(e)),
        });
    }

    /// A function that is an argument, applied to items of a list. The last of its parameters is the item.
    fn applied(&mut self, f: &Expr, item: Option<Relation>) {
        match &f.kind {
            ExprKind::Paren(inner) => self.applied(inner, item),
            ExprKind::Lambda(params, body) => {
                let last = params.len().saturating_sub(1);
                let to = |i: usize| if i == last { item } else { None };
                let names: Vec<_> = params.iter().enumerate().map(|(i, p)| (&*p.text, to(i))).collect();
                self.within(&names, |w| w.expr(body));
            }
            // By its name it gets the item, and nothing else of the list.
            ExprKind::Var(name) if name == self.function => {
                let (index, _) = self.param;
                if index == 0 && item == Some(Relation::Part) {
                    self.calls += 1;
                } else {
                    self.fail(f.span);
                }
            }
            _ => self.expr(f),
        }
    }

    /// A call of the `fn` by itself.
    fn call(&mut self, args: &[Expr], at: Span) {
        // One that is left out has been reported, or is a constant.
        match args.get(self.param.0) {
            Some(e) if self.relation(e) == Some(Relation::Part) => self.calls += 1,
            Some(e) => self.fail(e.span),
            None => self.fail(at),
        }
    }

    fn fail(&mut self, span: Span) {
        if self.why.is_none() {
            let param = self.param.1.name.text.clone();
            self.why = Some(Why { span, param, rank: self.calls });
        }
    }

    fn relation(&self, e: &Expr) -> Option<Relation> {
        match &e.kind {
            ExprKind::Paren(inner) => self.relation(inner),
            ExprKind::Var(name) => self.known.get(name).copied(),
            ExprKind::Field(of, name) | ExprKind::OptionalField(of, name) => {
                self.relation(of)?.field(&name.text)
            }
            ExprKind::Index(of, _) => self.relation(of)?.item(),
            ExprKind::Binary(BinaryOp::Coalesce, _, a, b) => self.relation(a)?.or(self.relation(b)?),
            ExprKind::Call(name, args) => self.result(&name.text, args),
            _ => None,
        }
    }

    /// Returns true for a function of the language that takes a function. A `fn` may have its name.
    fn is_higher(&self, name: &str) -> bool {
        functions::higher(name).is_some() && self.decls.function(name).is_none()
    }

    /// The relation of what a function of the language gives.
    fn result(&self, name: &str, args: &[Expr]) -> Option<Relation> {
        if self.decls.function(name).is_some() {
            return None;
        }
        let of = self.relation(args.first()?)?;
        match (name, of) {
            ("filter" | "sort_by" | "sort" | "reverse" | "unique" | "slice", _) => of.items(),
            ("find", _) => of.item(),
            ("get", Relation::Same | Relation::Part) if args.len() == 2 => Some(Relation::Part),
            ("values", Relation::Same | Relation::Part) => Some(Relation::Parts),
            ("items", Relation::Same | Relation::Part) => Some(Relation::Entries),
            ("flatten", Relation::Same | Relation::Part | Relation::Parts) => Some(Relation::Parts),
            _ => None,
        }
    }
}
