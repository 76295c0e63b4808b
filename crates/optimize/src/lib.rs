//! The equational theory of the calculus: named rewrites, an optimizer, and equality of programs up to the
//! laws.
//!
//! Entry points: [`optimize`] with [`laws`] or rules chosen by [`rules`], and [`equivalent`].
//!
//! A law preserves results, labels and requests; each is a property of `tests/laws.rs` over generated
//! programs. A cost rewrite saves calls, so it changes requests, and is applied only if named explicitly.
//!
//! Invariant: pure and total. A term that is too large, or that cannot be written down again, is given back
//! as it is.
//!
//! Source: `docs/calculus.md` §4 (equational theory); seed 000 Theorem 5.7 and §9 (3).

mod cost;
mod laws;
mod tree;

use core_ir::{Code, Name, TermId};
use diagnostics::Span;
use std::collections::{BTreeMap, HashSet};
use tree::{Child, Tree};

/// Equality that a rewrite preserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Results, labels and requests; it makes the term smaller, or opens the way for others.
    Law,
    /// Like a law, but the term becomes harder to read: for comparing programs.
    Normal,
    /// Neither requests nor, with real models, results: it saves calls.
    Cost,
}

/// A named rewrite.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name, as the command line has it.
    pub name: &'static str,
    /// Equality that the law preserves.
    pub kind: Kind,
    /// The law as an equation.
    pub equation: &'static str,
    apply: fn(&mut Tree<'_>, TermId) -> Option<TermId>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! rules {
    ($($name:literal $kind:ident $apply:path, $equation:literal;)*) => {
        &[$(Rule { name: $name, kind: Kind::$kind, equation: $equation, apply: $apply }),*]
    };
}

/// Every rewrite, in the order in which they are tried.
pub const RULES: &[Rule] = rules! {
    "compose-assoc" Law laws::compose_assoc, "(a >> b) >> c = a >> b >> c";
    "compose-id" Law laws::compose_id, "a >> id >> b = a >> b";
    "compose-apply" Law laws::compose_apply, "(a >> b) e = b (a e), if a and b do nothing themselves";
    "eta" Law laws::eta, "\\x. f x = f, for a function written there that is not a tool";
    "beta" Law laws::beta, "(\\x. b) e = let x = e in b";
    "let-dead" Law laws::let_dead, "let x = e in b = b, if b has no x and e does nothing";
    "let-copy" Law laws::let_copy, "let x = y in b = b[x := y], for a variable or a scalar";
    "let-return" Law laws::let_return, "let x = e in x = e";
    "let-let" Law laws::let_let, "let x = (let y = a in b) in c = let y = a in let x = b in c";
    "let-apply" Law laws::let_apply, "(let x = a in f) e = let x = a in f e";
    "if-known" Law laws::if_known, "if true then a else b = a";
    "case-known" Law laws::case_known, "case `l e of {l x => b, …} = let x = e in b";
    "project-known" Law laws::project_known, "fst (a, b) = a, {f: a, …}.f = a, [a, …].[0] = a, if the other parts do nothing";
    "classify-known" Law laws::classify_known, "classify[l, …] \"l\" = `l";
    "check-known" Law laws::check_known, "check[t] k = k, for a scalar of the type";
    "guard-known" Law laws::guard_known, "guard k P = k, for a scalar that satisfies P";
    "guard-implied" Law laws::guard_implied, "guard (guard e P) Q = guard e P, if P implies Q";
    "guard-and" Law laws::guard_and, "guard (guard e P) Q = guard e (P && Q), without retries";
    "fix-zero" Law laws::fix_zero, "fix[0] F e = e, if F does nothing";
    "fix-unused" Law laws::fix_unused, "fix[n] (\\s. f) = f, if f has no s and n > 0";
    "try-total" Law laws::try_total, "try[l] e catch x. h = l : e, if e cannot fail";
    "scope-idle" Law laws::scope_idle, "fork e = e, fresh e = e, if e leaves the conversation alone";
    "scope-twice" Law laws::scope_twice, "fork (fork e) = fork e, fresh (fork e) = fresh e, fork (fresh e) = fresh e";
    "par-total" Law laws::par_total, "par [a, …] = [a, …], if the branches do nothing; each f [] = []";
    "mem-unused" Law laws::mem_unused, "mem e s = e, if e uses no key of s";
    "compose-unfold" Normal laws::compose_unfold, "a >> b = \\x. b (a x)";
    "let-once" Normal laws::let_once, "let x = e in C[x] = C[e], if x is used once and nothing happens before it";
    "fuse-models" Cost cost::fuse_models, "llm p >> llm q = llm (p, then q), for plain answers of one model";
    "hoist-reads" Cost cost::hoist_reads, "… recall k … recall k … = let x = recall k in … x … x …";
    "share-calls" Cost cost::share_calls, "… tool[f] e … tool[f] e … = let x = tool[f] e in … x … x …, for a pure tool";
};

/// The laws that an optimizer may always apply.
pub fn laws() -> Vec<&'static Rule> {
    RULES.iter().filter(|r| r.kind == Kind::Law).collect()
}

/// Returns the rules of a list of names; `laws` and `cost` select all of a kind.
///
/// # Errors
/// The first unknown name.
///
/// # Examples
/// ```
/// assert_eq!(optimize::rules(["beta", "fuse-models"]).unwrap().len(), 2);
/// assert_eq!(optimize::rules(["bogus"]).unwrap_err(), "bogus");
/// ```
pub fn rules<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Vec<&'static Rule>, String> {
    let mut chosen: Vec<&'static Rule> = Vec::new();
    for name in names {
        let found: Vec<&'static Rule> = match name {
            "laws" => laws(),
            "cost" => RULES.iter().filter(|r| r.kind == Kind::Cost).collect(),
            name => RULES.iter().filter(|r| r.name == name).collect(),
        };
        if found.is_empty() {
            return Err(name.to_string());
        }
        for rule in found {
            if !chosen.iter().any(|r| r.name == rule.name) {
                chosen.push(rule);
            }
        }
    }
    Ok(chosen)
}

/// A rewrite that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rule's name.
    pub rule: &'static str,
    /// Where.
    pub at: Span,
}

/// A term after rewriting.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The term; the one that was given if nothing was rewritten.
    pub code: Code,
    /// Rewrites in order.
    pub steps: Vec<Step>,
}

/// Larger terms are left as they are.
const MAX_TERMS: usize = 20_000;
/// Number of passes over a term.
const MAX_ROUNDS: u32 = 10;
/// The most rewrites of one term, and nodes made.
const MAX_STEPS: usize = 20_000;
const MAX_NODES: usize = 2_000_000;

/// Rewrites a term until none of the rules applies.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Data, Globals, IfSugar, Term};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let (c, x, y) = (b.lit(true, at), b.lit("a", at), b.lit("b", at));
/// let term = b.add(Term::If(c, x, y, IfSugar::Plain), at);
/// let code = b.finish(term, &Globals::none()).unwrap();
/// let done = optimize::optimize(&code, &optimize::laws());
/// assert_eq!(*done.code.term(done.code.root()), Term::Lit(Data::str("a")));
/// assert_eq!(done.steps[0].rule, "if-known");
/// ```
pub fn optimize(code: &Code, rules: &[&Rule]) -> Optimized {
    let mut done = Optimized { code: code.clone(), steps: Vec::new() };
    // A law may depend on the constructs anywhere in the program, of which there may be fewer now.
    for _ in 0..MAX_ROUNDS {
        if done.code.len() > MAX_TERMS {
            break;
        }
        let (mut tree, root) = Tree::new(&done.code);
        let mut run = Rewriter { rules, steps: Vec::new(), normal: HashSet::new() };
        let root = run.simplify(&mut tree, root, &mut Scope::default());
        if run.steps.is_empty() {
            break;
        }
        match tree.finish(root) {
            Some(code) => done.code = code,
            None => break,
        }
        done.steps.append(&mut run.steps);
    }
    done
}

struct Rewriter<'r> {
    rules: &'r [&'r Rule],
    steps: Vec<Step>,
    /// Nodes that no rule applies to, nor to what is in them.
    normal: HashSet<TermId>,
}

/// Context of a term.
#[derive(Default)]
struct Scope {
    /// True inside the body of a function.
    in_function: bool,
    /// Variables bound around the term within that body.
    bound: Vec<Name>,
}

impl Scope {
    /// Returns true if a rewrite drops a variable that the enclosing function may have captured. A function's
    /// label is joined with the labels of its captured values wherever all of it is examined.
    fn is_narrowed(&self, t: &mut Tree<'_>, old: TermId, new: TermId) -> bool {
        if !self.in_function {
            return false;
        }
        let (before, after) = (t.free(old), t.free(new));
        before.difference(&after).any(|n| !tree::is_global(n) && !self.bound.contains(n))
    }
}

impl Rewriter<'_> {
    fn simplify(&mut self, t: &mut Tree<'_>, id: TermId, scope: &mut Scope) -> TermId {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.simplify_inner(t, id, scope))
    }

    /// The parts of a term, rewritten.
    fn parts(&mut self, t: &mut Tree<'_>, id: TermId, kids: &[Child], scope: &mut Scope) -> Vec<TermId> {
        if t.is_closure(id) {
            let mut body = Scope { in_function: true, bound: Vec::new() };
            return self.parts_in(t, kids, &mut body);
        }
        self.parts_in(t, kids, scope)
    }

    fn parts_in(&mut self, t: &mut Tree<'_>, kids: &[Child], scope: &mut Scope) -> Vec<TermId> {
        let around = scope.bound.len();
        kids.iter()
            .map(|(kid, binder)| {
                scope.bound.extend(binder.clone());
                let new = self.simplify(t, *kid, scope);
                scope.bound.truncate(around);
                new
            })
            .collect()
    }

    fn simplify_inner(&mut self, t: &mut Tree<'_>, mut id: TermId, scope: &mut Scope) -> TermId {
        loop {
            if self.normal.contains(&id) {
                return id;
            }
            let kids = t.kids(id);
            let new = self.parts(t, id, &kids, scope);
            if new.iter().ne(kids.iter().map(|(k, _)| k)) {
                id = t.with_kids(id, &new);
            }
            if self.steps.len() >= MAX_STEPS || t.len() >= MAX_NODES {
                return id;
            }
            let rewritten = self.rules.iter().find_map(|r| {
                let next = (r.apply)(t, id)?;
                (!scope.is_narrowed(t, id, next)).then_some((r.name, next))
            });
            match rewritten {
                Some((rule, next)) => {
                    self.steps.push(Step { rule, at: t.span(id) });
                    id = next;
                }
                None => {
                    self.normal.insert(id);
                    return id;
                }
            }
        }
    }
}

/// Result of comparing two programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are, by these laws, with how often each was used on either side.
    Equal(BTreeMap<&'static str, (usize, usize)>),
    /// The laws do not show it; they may be equal all the same.
    Unknown,
}

/// Compares two terms up to the laws by their normal forms. Names of variables, types that are written and
/// places do not count.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Globals, ModelParams, Term};
/// use diagnostics::{FileId, Span};
/// use optimize::{Verdict, equivalent};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let stage = |b: &mut Builder, text: &str| {
///     let p = b.lit(text, at);
///     b.add(Term::Llm(p, ModelParams::default().into()), at)
/// };
/// let mut b = Builder::new();
/// let stages = vec![stage(&mut b, "one"), stage(&mut b, "two")];
/// let pipe = b.compose(stages, at);
/// let pipe = b.finish(pipe, &Globals::none()).unwrap();
/// let mut b = Builder::new();
/// let (f, g, x) = (stage(&mut b, "one"), stage(&mut b, "two"), b.var("x", at));
/// let inner = b.app(f, x, at);
/// let outer = b.app(g, inner, at);
/// let function = b.abs("x", None, outer, at);
/// let function = b.finish(function, &Globals::none()).unwrap();
/// assert!(matches!(equivalent(&pipe, &function), Verdict::Equal(_)));
/// ```
pub fn equivalent(a: &Code, b: &Code) -> Verdict {
    if a.len() > MAX_TERMS || b.len() > MAX_TERMS || a.globals().names() != b.globals().names() {
        return Verdict::Unknown;
    }
    let rules: Vec<&Rule> = RULES.iter().filter(|r| r.kind != Kind::Cost).collect();
    let (first, second) = (optimize(a, &rules), optimize(b, &rules));
    let ((left, x), (right, y)) = (Tree::new(&first.code), Tree::new(&second.code));
    if !left.same(x, &right, y) {
        return Verdict::Unknown;
    }
    let mut used: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    first.steps.iter().for_each(|s| used.entry(s.rule).or_default().0 += 1);
    second.steps.iter().for_each(|s| used.entry(s.rule).or_default().1 += 1);
    Verdict::Equal(used)
}
