//! Types with variables, and the constraints between them.
//!
//! A constraint `a <: b` says that values of `a` are used as `b`. A variable keeps what flows into it (its
//! lower bounds) and how it is used (its upper bounds); each of the former must fit each of the latter. How a
//! value is used is a type or a [`Use`], such as "an operand of `+`", whose meaning depends on what arrives.
//!
//! Invariant: solving is a loop over a worklist. Each pair of types is visited once, and the pairs are
//! counted: too many end the analysis with "unknown", never with an error.
//! Invariant: what is not known is [`Node::Dyn`] or a variable without lower bounds; neither gives an error.
//!
//! Source: `docs/calculus.md` §4; the treatment of bounds follows Parreaux, *The simple essence of algebraic
//! subtyping* (ICFP 2020), without its levels: only closed functions are polymorphic here.

mod copy;
mod node;
mod report;
mod uses;

pub(in crate::types) use node::*;

use super::effects::{EffectNode, Effects};
use super::{Why, codes};
use crate::pred::{self, Answer};
use core_ir::{Data, EffectRow, Name, Pred, Type};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

#[derive(Default)]
struct Bounds {
    lower: Vec<(T, Why)>,
    upper: Vec<(T, Why)>,
}

/// One thing that is wrong.
pub(super) struct Mistake {
    pub(super) code: &'static str,
    pub(super) message: String,
    /// The use.
    pub(super) at: Why,
    /// Origin of the value.
    pub(super) from: Why,
    pub(super) help: Option<String>,
}

/// The arena, the graph of effects, and what was found.
pub(super) struct Solver {
    nodes: Vec<Node>,
    /// The bounds of variables, by the number of the node.
    bounds: HashMap<T, Bounds>,
    pub(super) effects: Effects,
    seen: HashSet<(T, T)>,
    work: Vec<(T, T, Why, Why)>,
    pub(super) mistakes: Vec<Mistake>,
    /// Places where something of unknown type is used as something known.
    pub(super) dynamic: Vec<Why>,
    /// Remaining work units.
    pub(super) fuel: u64,
    /// The list that comes out of a use of lists, whichever list goes in, and the guard inside a guard; and
    /// how many types a use has made.
    lists: HashMap<T, T>,
    /// Nesting depth of each guard in guards on functions.
    levels: HashMap<T, u32>,
    made: HashMap<T, u32>,
    /// Values that have reached each guard.
    guards: HashMap<T, GuardArrivals>,
}

/// Values that have reached a guard: whether any may pass, and the first that never does.
#[derive(Default)]
struct GuardArrivals {
    may_pass: bool,
    refused: Option<Mistake>,
}

/// Types that one use makes before what comes out of it is unknown: a loop may feed it with what it made.
const MAX_NEW_TYPES: u32 = 32;
/// Guards on functions that give functions are kept apart up to this depth.
const MAX_LEVELS: u32 = 4;

/// Maximum number of compared pairs of types and of copied types.
const MAX_COMPARISONS: u64 = 1_000_000;

impl Solver {
    pub(super) fn new() -> Solver {
        let nodes = vec![
            Node::Dyn,
            Node::Str,
            Node::Num,
            Node::Bool,
            Node::Null,
            Node::Record { fields: Rc::new([]), exact: true },
            Node::Use(Rc::new(Use::Data)),
            Node::Use(Rc::new(Use::Label)),
            Node::Use(Rc::new(Use::AnyRecord)),
            Node::Use(Rc::new(Use::Sized)),
        ];
        Solver {
            nodes,
            bounds: HashMap::new(),
            effects: Effects::default(),
            seen: HashSet::new(),
            work: Vec::new(),
            mistakes: Vec::new(),
            dynamic: Vec::new(),
            fuel: MAX_COMPARISONS,
            lists: HashMap::new(),
            levels: HashMap::new(),
            made: HashMap::new(),
            guards: HashMap::new(),
        }
    }

    /// Returns the mistakes, once all constraints are propagated.
    pub(super) fn found(&mut self) -> Vec<Mistake> {
        let mut guards = std::mem::take(&mut self.guards);
        if guards.values().any(|g| !g.may_pass) {
            // Unknown values, such as the parameter of a function that is never called, may pass.
            let mut open: Vec<T> =
                self.bounds.iter().filter(|(_, b)| b.lower.is_empty()).map(|(t, _)| *t).collect();
            let mut seen: HashSet<T> = open.iter().copied().collect();
            while let Some(t) = open.pop() {
                for (upper, _) in self.bounds.get(&t).map_or(&[][..], |b| &b.upper) {
                    if let Some(guard) = guards.get_mut(upper) {
                        guard.may_pass = true;
                    }
                    if self.is_var(*upper) && seen.insert(*upper) {
                        open.push(*upper);
                    }
                }
            }
        }
        let mut never: Vec<(T, Mistake)> = guards
            .into_iter()
            .filter(|(_, g)| !g.may_pass)
            .filter_map(|(t, g)| Some((t, g.refused?)))
            .collect();
        never.sort_by_key(|(t, _)| t.0);
        let mut all = std::mem::take(&mut self.mistakes);
        all.extend(never.into_iter().map(|(_, mistake)| mistake));
        all
    }

    pub(super) fn add(&mut self, node: Node) -> T {
        self.nodes.push(node);
        T(self.nodes.len() as u32 - 1)
    }

    pub(super) fn var(&mut self) -> T {
        self.add(Node::Var)
    }

    pub(super) fn uses(&mut self, how: Use) -> T {
        self.add(Node::Use(Rc::new(how)))
    }

    pub(super) fn node(&self, t: T) -> &Node {
        &self.nodes[t.0 as usize]
    }

    /// Returns the number of types.
    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// A declared type.
    pub(super) fn declared(&mut self, ty: &Type) -> T {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match ty {
            // Accesses to maps and to values of recursive types are checked in the run.
            Type::Dyn | Type::Map(_) | Type::Rec(_) | Type::Var(_) => DYN,
            Type::Str => STR,
            Type::Num => NUM,
            Type::Bool => BOOL,
            Type::Null => NULL,
            Type::List(t) => {
                let t = self.declared(t);
                self.add(Node::List(t))
            }
            Type::Option(t) => {
                let t = self.declared(t);
                self.add(Node::Option(t))
            }
            Type::Record(fields) => {
                let fields = self.declared_fields(fields);
                self.add(Node::Record { fields, exact: false })
            }
            Type::Enum(e) => self.add(Node::Enum(e.clone())),
            Type::Variant(tags) => {
                let tags = tags.iter().map(|(n, t)| (n.clone(), self.declared(t))).collect();
                self.add(Node::Variant(tags))
            }
            Type::Pair(p) => {
                let (a, b) = (self.declared(&p.0), self.declared(&p.1));
                self.add(Node::Pair(a, b))
            }
            Type::Fun(f) => {
                let (a, b) = (self.declared(&f.0), self.declared(&f.2));
                let e = self.effects.declared(&f.1);
                self.add(Node::Fun(a, e, b))
            }
            Type::Refined(r) => {
                let t = self.declared(&r.0);
                self.add(Node::Refined(t, Arc::new(r.1.clone())))
            }
        })
    }

    pub(super) fn declared_fields(&mut self, fields: &[(Name, Type)]) -> Rc<[Field]> {
        fields
            .iter()
            .map(|(name, t)| Field {
                name: name.clone(),
                ty: self.declared(t),
                may_lack: matches!(t, Type::Option(_)),
            })
            .collect()
    }

    /// Values of `a` are used as `b`.
    pub(super) fn flows(&mut self, a: T, b: T, from: Why, to: Why) {
        self.work.push((a, b, from, to));
        while let Some((a, b, from, to)) = self.work.pop() {
            if a == b || !self.seen.insert((a, b)) {
                continue;
            }
            if self.fuel == 0 {
                self.work.clear();
                return;
            }
            self.fuel -= 1;
            self.step(a, b, from, to);
        }
    }

    fn step(&mut self, a: T, b: T, from: Why, to: Why) {
        let (left, right) = (self.node(a).clone(), self.node(b).clone());
        match (&left, &right) {
            (Node::Var, _) => {
                let bounds = self.bounds.entry(a).or_default();
                bounds.upper.push((b, to));
                let lower = &bounds.lower;
                self.work.extend(lower.iter().rev().map(|(l, why)| (*l, b, *why, to)));
            }
            (_, Node::Var) => {
                let bounds = self.bounds.entry(b).or_default();
                bounds.lower.push((a, from));
                let upper = &bounds.upper;
                self.work.extend(upper.iter().rev().map(|(u, why)| (a, *u, from, *why)));
            }
            (_, Node::Dyn) => {}
            (Node::Dyn, _) => {
                if matches!(&right, Node::Use(how) if matches!(**how, Use::Guard { .. })) {
                    self.guards.entry(b).or_default().may_pass = true;
                }
                self.unknown_used(&right, to);
            }
            (_, Node::Use(how)) => {
                let how = how.clone();
                self.used(a, &left, b, &how, from, to);
            }
            (Node::Option(x), Node::Option(y)) => self.work.push((*x, *y, from, to)),
            (Node::Null, Node::Option(_)) => {}
            // The predicate may be about null as well.
            (Node::Refined(x, _), Node::Option(y))
                if matches!(self.node(*x), Node::Option(_) | Node::Null | Node::Var)
                    && !matches!(self.node(*y), Node::Refined(..)) =>
            {
                self.work.push((*x, b, from, to));
            }
            (_, Node::Option(y)) => self.work.push((a, *y, from, to)),
            (Node::Refined(x, p), Node::Refined(y, q)) => {
                self.work.push((*x, *y, from, to));
                if pred::implies(p, q) != Answer::Yes {
                    self.refused(p.to_string(), q, from, to);
                }
            }
            (Node::Lit(d), Node::Refined(y, q)) => {
                self.work.push((a, *y, from, to));
                if let Err(reason) = q.holds(d) {
                    self.mistake(
                        codes::REFINEMENT,
                        format!("this value does not satisfy `{q}`: {reason}"),
                        from,
                        to,
                    );
                }
            }
            (_, Node::Refined(y, q)) => {
                self.work.push((a, *y, from, to));
                if **q != Pred::True {
                    self.refused("any".into(), q, from, to);
                }
            }
            (Node::Refined(x, _), _) => self.work.push((*x, b, from, to)),
            (Node::Option(x), _) => {
                self.may_be_null(b, from, to);
                self.work.push((*x, b, from, to));
            }
            (Node::Null, _) => self.may_be_null(b, from, to),
            (Node::Lit(Data::Str(s)), Node::Enum(e)) => {
                if !e.variants.iter().any(|v| **v == **s) {
                    let names: Vec<&str> = e.variants.iter().map(|v| &**v).collect();
                    let message = format!("expected one of {}, found \"{s}\"", names.join(", "));
                    self.mistake(codes::MISMATCH, message, from, to);
                }
            }
            (Node::Lit(Data::Str(_)) | Node::Str | Node::Enum(_), Node::Str)
            | (Node::Lit(Data::Num(_)) | Node::Num, Node::Num)
            | (Node::Bool, Node::Bool) => {}
            (Node::Enum(x), Node::Enum(y)) => {
                if !x.variants.iter().all(|v| y.variants.contains(v)) {
                    self.mismatch(a, b, from, to);
                }
            }
            (Node::List(x), Node::List(y)) => self.work.push((*x, *y, from, to)),
            (Node::Tuple(xs), Node::List(y)) => {
                self.work.extend(xs.iter().rev().map(|x| (*x, *y, from, to)));
            }
            (Node::Pair(x, y), Node::Pair(v, w)) => {
                self.work.push((*y, *w, from, to));
                self.work.push((*x, *v, from, to));
            }
            (Node::Record { fields: have, exact }, Node::Record { fields: want, .. }) => {
                for w in want.iter() {
                    match have.iter().find(|h| h.name == w.name) {
                        Some(h) => self.work.push((h.ty, w.ty, from, to)),
                        None if w.may_lack => {}
                        None => self.no_field(a, *exact, &w.name, from, to),
                    }
                }
            }
            (Node::Variant(have), Node::Variant(want)) => {
                for (tag, x) in have.iter() {
                    match want.iter().find(|(n, _)| n == tag) {
                        Some((_, y)) => self.work.push((*x, *y, from, to)),
                        None => {
                            self.mismatch(a, b, from, to);
                            break;
                        }
                    }
                }
            }
            (Node::Fun(x, e, y), Node::Fun(v, f, w)) => {
                self.work.push((*y, *w, from, to));
                // The argument is used where it stands.
                let argument = Why { span: to.argument, what: "the argument", argument: to.argument };
                self.work.push((*v, *x, argument, argument));
                self.effects.contains(*f, *e, to);
            }
            (_, Node::Fun(..)) => {
                let found = self.show(a);
                let message = format!("only functions can be applied; found {found}");
                self.mistake(codes::NOT_A_FUNCTION, message, from, to);
            }
            _ => self.mismatch(a, b, from, to),
        }
    }

    /// Something of unknown type is used. What comes out of it is as unknown.
    fn unknown_used(&mut self, how: &Node, to: Why) {
        let mut noted = true;
        match how {
            Node::Fun(_, e, r) => {
                let any = self.effects.node();
                self.effects.does_anything(any);
                self.effects.contains(*e, any, to);
                self.work.push((DYN, *r, to, to));
            }
            Node::List(t) | Node::Option(t) | Node::Refined(t, _) if self.is_var(*t) => {
                self.work.push((DYN, *t, to, to));
            }
            Node::Pair(a, b) => {
                for t in [*a, *b] {
                    if self.is_var(t) {
                        self.work.push((DYN, t, to, to));
                    }
                }
            }
            Node::Use(how) => match &**how {
                Use::Field { result, .. }
                | Use::Index { result, .. }
                | Use::With { result, .. }
                | Use::Plus { result, .. }
                | Use::Slice { result } => self.work.push((DYN, *result, to, to)),
                Use::Guard { result, .. } => {
                    // It is decided when it is known.
                    noted = false;
                    self.work.push((DYN, *result, to, to));
                }
                Use::Present { result, .. } => {
                    noted = false;
                    self.work.push((DYN, *result, to, to));
                }
                Use::Lacks { value, result, .. } => {
                    noted = false;
                    self.work.push((*value, *result, to, to));
                }
                Use::Filter { keep, result } => {
                    noted = false;
                    let known = match *keep {
                        Kinds::NULL => NULL,
                        Kinds::STR => STR,
                        Kinds::NUM => NUM,
                        Kinds::BOOL => BOOL,
                        Kinds::LIST => self.add(Node::List(DYN)),
                        _ => DYN,
                    };
                    self.work.push((known, *result, to, to));
                }
                Use::Cases { branches, default } => {
                    noted = !default;
                    self.work.extend(branches.iter().filter_map(|(_, b)| Some((DYN, (*b)?, to, to))));
                }
                _ => {}
            },
            _ => {}
        }
        if noted {
            self.dynamic.push(to);
        }
    }

    /// A type that a use makes of what goes in; unknown if it has made too many.
    fn make(&mut self, by: T, node: Node, to: Why) -> T {
        let made = self.made.entry(by).or_default();
        *made += 1;
        if *made > MAX_NEW_TYPES {
            self.dynamic.push(to);
            return DYN;
        }
        self.add(node)
    }

    /// The list that comes out of a use.
    fn list_of(&mut self, by: T) -> T {
        if let Some(list) = self.lists.get(&by) {
            return *list;
        }
        let v = self.var();
        let list = self.add(Node::List(v));
        self.lists.insert(by, list);
        list
    }

    fn is_var(&self, t: T) -> bool {
        matches!(self.node(t), Node::Var)
    }

    fn kinds(node: &Node) -> Kinds {
        match node {
            Node::Null => Kinds::NULL,
            Node::Str | Node::Enum(_) | Node::Lit(Data::Str(_)) => Kinds::STR,
            Node::Num | Node::Lit(_) => Kinds::NUM,
            Node::Bool => Kinds::BOOL,
            Node::List(_) | Node::Tuple(_) => Kinds::LIST,
            Node::Record { .. } | Node::Args { .. } => Kinds::RECORD,
            Node::Fun(..) => Kinds::FUN,
            _ => Kinds::OTHER,
        }
    }

    // ----- mistakes -----

    fn mistake(&mut self, code: &'static str, message: String, from: Why, to: Why) {
        let help = match code {
            codes::NULLABLE => Some("test it first: `if is_null x then … else …`".to_string()),
            codes::NOT_EXHAUSTIVE => Some("add the branches, or `_ => …` for the rest".to_string()),
            codes::REFINEMENT => {
                Some("put the value under a `guard` of that predicate, or a stronger one".to_string())
            }
            _ => None,
        };
        self.mistakes.push(Mistake { code, message, at: to, from, help });
    }

    fn mismatch(&mut self, a: T, b: T, from: Why, to: Why) {
        let (found, wanted) = (self.show(a), self.show(b));
        self.mistake(codes::MISMATCH, format!("expected {wanted}, found {found}"), from, to);
    }

    fn wrong_kind(&mut self, a: T, wanted: &str, from: Why, to: Why) {
        if matches!(self.node(a), Node::Null) {
            return self.mistake(
                codes::NULLABLE,
                format!("this may be null where {wanted} is needed"),
                from,
                to,
            );
        }
        let found = self.show(a);
        self.mistake(codes::MISMATCH, format!("expected {wanted}, found {found}"), from, to);
    }

    fn may_be_null(&mut self, b: T, from: Why, to: Why) {
        let message = match self.node(b) {
            Node::Use(_) | Node::Null => "this may be null".to_string(),
            Node::Fun(..) => "this may be null where a function is needed".to_string(),
            _ => format!("this may be null where {} is needed", self.show(b)),
        };
        self.mistake(codes::NULLABLE, message, from, to);
    }

    fn no_field(&mut self, a: T, exact: bool, name: &Name, from: Why, to: Why) {
        let Node::Record { fields, .. } = self.node(a) else { return };
        let near = diagnostics::nearest(name, fields.iter().map(|f| &*f.name));
        let help = near.map(|n| format!("did you mean `{n}`?"));
        let names: Vec<&str> = fields.iter().take(8).map(|f| &*f.name).collect();
        let message = match (names.is_empty(), exact) {
            (true, _) => format!("there is no field `{name}`: the record has none"),
            _ => format!("there is no field `{name}`: the record has {}", names.join(", ")),
        };
        self.mistakes.push(Mistake { code: codes::NO_FIELD, message, at: to, from, help });
    }

    fn refused(&mut self, have: String, want: &Pred, from: Why, to: Why) {
        let message = match have.as_str() {
            "any" => format!("this is not known to satisfy `{want}`"),
            _ => format!("`{have}` does not imply `{want}`"),
        };
        self.mistake(codes::REFINEMENT, message, from, to);
    }

    fn show(&self, t: T) -> String {
        diagnostics::clip_to(&self.reported(t).unwrap_or(Type::Dyn).to_string(), 120)
    }
}

impl Solver {
    /// The type of a literal; `top`: what it is is kept.
    pub(super) fn literal(&mut self, d: &Data, top: bool) -> T {
        /// Longer lists are not followed item by item.
        const MAX_ITEMS: usize = 32;
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match d {
            Data::Null => NULL,
            Data::Bool(_) => BOOL,
            Data::Str(_) | Data::Num(_) if top => self.add(Node::Lit(d.clone())),
            Data::Str(_) => STR,
            Data::Num(_) => NUM,
            Data::List(items) if items.len() <= MAX_ITEMS => {
                let ts = items.iter().map(|i| self.literal(i, top)).collect();
                self.add(Node::Tuple(ts))
            }
            Data::List(items) => {
                let v = self.var();
                let why = Why::NONE;
                for item in items.iter() {
                    let t = self.literal(item, false);
                    self.flows(t, v, why, why);
                }
                self.add(Node::List(v))
            }
            Data::Record(fields) => {
                let fields = fields
                    .iter()
                    .map(|(n, d)| Field { name: n.clone(), ty: self.literal(d, top), may_lack: false })
                    .collect();
                self.add(Node::Record { fields, exact: true })
            }
            Data::Pair(p) => {
                let (a, b) = (self.literal(&p.0, top), self.literal(&p.1, top));
                self.add(Node::Pair(a, b))
            }
            Data::Tag(n, payload) => {
                let t = self.literal(payload, top);
                self.add(Node::Variant(Rc::new([(n.clone(), t)])))
            }
        })
    }
}
