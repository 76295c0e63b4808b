//! Types with variables, and the constraints between them.
//!
//! A constraint `a <: b` says that values of `a` are used as `b`. A variable keeps what flows into it (its lower
//! bounds) and how it is used (its upper bounds); each of the former must fit each of the latter. How a value is
//! used is a type or a [`Use`], such as "an operand of `+`", whose meaning depends on what arrives.
//!
//! Invariant: solving is a loop over a list of work, each pair of types is looked at once, and the pairs are
//! counted: too many end the analysis with "unknown", never with an error.
//! Invariant: what is not known is [`Node::Dyn`] or a variable without lower bounds; neither gives an error.
//!
//! Source: `docs/calculus.md` §4; the treatment of bounds follows Parreaux, *The simple essence of algebraic
//! subtyping* (ICFP 2020), without its levels: only closed functions are polymorphic here.

use super::effects::{Eff, Effects};
use super::{Why, codes};
use crate::pred::{self, Answer};
use core_ir::{Data, EffectRow, EnumType, Name, Pred, Type};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// A type in the arena of a [`Solver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct T(pub(super) u32);

/// Types that are always there.
pub(super) const DYN: T = T(0);
pub(super) const STR: T = T(1);
pub(super) const NUM: T = T(2);
pub(super) const BOOL: T = T(3);
pub(super) const NULL: T = T(4);
pub(super) const UNIT: T = T(5);
pub(super) const DATA: T = T(6);
pub(super) const LABEL: T = T(7);
pub(super) const ANY_RECORD: T = T(8);
pub(super) const SIZED: T = T(9);

/// A field of a record.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) name: Name,
    pub(super) ty: T,
    /// Whether a value of the type may lack it.
    pub(super) may_lack: bool,
}

#[derive(Clone)]
pub(super) enum Node {
    Var,
    Dyn,
    Str,
    Num,
    Bool,
    Null,
    /// A string or number that is known.
    Lit(Data),
    List(T),
    /// A list of which each item is known.
    Tuple(Rc<[T]>),
    Option(T),
    Pair(T, T),
    /// `exact`: there are no other fields.
    Record {
        fields: Rc<[Field]>,
        exact: bool,
    },
    Enum(Arc<EnumType>),
    Variant(Rc<[(Name, T)]>),
    Fun(T, Eff, T),
    Refined(T, Arc<Pred>),
    Use(Rc<Use>),
}

/// How a value is used, if that is no type. Only ever an upper bound.
pub(super) enum Use {
    Field {
        name: Name,
        result: T,
    },
    Index {
        index: T,
        key: Option<Data>,
        result: T,
    },
    With {
        name: Name,
        value: T,
        result: T,
    },
    /// An operand of `+`.
    Plus {
        peer: T,
        result: T,
    },
    /// An operand of `<` and the like.
    Order {
        peer: T,
    },
    Sized,
    Slice {
        result: T,
    },
    Contains {
        item: T,
    },
    AnyRecord,
    /// `case`: the branches with what their binders get.
    Cases {
        branches: Box<[(Name, Option<T>)]>,
        default: bool,
    },
    Classify,
    /// Must not contain a function.
    Data,
    Label,
    Guard {
        pred: Arc<Pred>,
        result: T,
    },
    /// What remains after a test of the kind.
    Filter {
        keep: Kinds,
        result: T,
    },
    /// The record is known to have the field.
    Present {
        name: Name,
        result: T,
    },
    /// The value goes on only if the record may lack the field.
    Lacks {
        name: Name,
        value: T,
        result: T,
    },
    /// The argument of a tool.
    Args {
        tool: Name,
        params: Rc<[Field]>,
    },
}

/// A set of kinds of values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(pub(super) u8);

impl Kinds {
    pub(super) const NULL: Kinds = Kinds(1);
    pub(super) const STR: Kinds = Kinds(2);
    pub(super) const NUM: Kinds = Kinds(4);
    pub(super) const BOOL: Kinds = Kinds(8);
    pub(super) const LIST: Kinds = Kinds(16);
    pub(super) const RECORD: Kinds = Kinds(32);
    pub(super) const FUN: Kinds = Kinds(64);
    const OTHER: Kinds = Kinds(128);

    pub(super) fn but(self) -> Kinds {
        Kinds(!self.0)
    }

    pub(super) fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

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
    /// Where the value comes from.
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
    /// What may still be done.
    pub(super) fuel: u64,
    /// The list that comes out of a use of lists, whichever list goes in, and the guard inside a guard; and how many types a use has made.
    lists: HashMap<T, T>,
    /// How deep a guard is inside guards on functions.
    levels: HashMap<T, u32>,
    made: HashMap<T, u32>,
}

/// Types that one use makes before what comes out of it is unknown: a loop may feed it with what it made.
const MOST_MADE: u32 = 32;
/// Guards on functions that give functions are kept apart up to this depth.
const MOST_LEVELS: u32 = 4;

/// Pairs of types that are compared, and types copied, before the analysis gives up.
const MOST_WORK: u64 = 1_000_000;

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
            fuel: MOST_WORK,
            lists: HashMap::new(),
            levels: HashMap::new(),
            made: HashMap::new(),
        }
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

    /// How many types there are.
    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// A declared type.
    pub(super) fn declared(&mut self, ty: &Type) -> T {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match ty {
            Type::Dyn => DYN,
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
            (Node::Dyn, _) => self.unknown_used(&right, to),
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
                let message = format!("this is applied, but it is no function: found {found}");
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
        if *made > MOST_MADE {
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
            Node::Record { .. } => Kinds::RECORD,
            Node::Fun(..) => Kinds::FUN,
            _ => Kinds::OTHER,
        }
    }

    /// `a`, which is no variable, is used in a way that is no type.
    fn used(&mut self, a: T, node: &Node, b: T, how: &Use, from: Why, to: Why) {
        // These look at the value as it is.
        match (node, how) {
            (Node::Option(x), Use::Filter { .. } | Use::Cases { .. }) => {
                self.work.push((*x, b, from, to));
                self.work.push((NULL, b, from, to));
                return;
            }
            (Node::Option(x), Use::Data | Use::Present { .. } | Use::Lacks { .. }) => {
                self.work.push((*x, b, from, to));
                return;
            }
            (Node::Refined(x, _), Use::Data) => {
                self.work.push((*x, b, from, to));
                return;
            }
            (_, Use::Filter { keep, result }) => {
                let base = match node {
                    Node::Refined(x, _) => self.node(*x).clone(),
                    other => other.clone(),
                };
                match &base {
                    // What it is is not known yet.
                    Node::Refined(..) | Node::Var | Node::Dyn => self.work.push((a, *result, from, to)),
                    base if keep.has(Solver::kinds(base)) => self.work.push((a, *result, from, to)),
                    _ => {}
                }
                return;
            }
            (_, Use::Guard { pred, result }) => return self.guarded(a, node, b, (pred, *result), from, to),
            (Node::Refined(x, _), _) => {
                self.work.push((*x, b, from, to));
                return;
            }
            (Node::Option(x), _) => {
                self.may_be_null(b, from, to);
                self.work.push((*x, b, from, to));
                return;
            }
            _ => {}
        }
        match (how, node) {
            (Use::Present { name, result }, Node::Record { fields, exact }) => {
                let t = if fields.iter().any(|f| f.may_lack && f.name == *name) {
                    let fields = fields
                        .iter()
                        .map(|f| Field { may_lack: f.may_lack && f.name != *name, ..f.clone() })
                        .collect();
                    self.make(b, Node::Record { fields, exact: *exact }, to)
                } else {
                    a
                };
                self.work.push((t, *result, from, to));
            }
            (Use::Present { result, .. }, _) => self.work.push((a, *result, from, to)),
            (Use::Lacks { name, value, result }, _) => {
                let lacks = match node {
                    Node::Record { fields, .. } => {
                        fields.iter().find(|f| f.name == *name).is_none_or(|f| f.may_lack)
                    }
                    // `has` fails on what is no record.
                    _ => false,
                };
                if lacks {
                    self.work.push((*value, *result, from, to));
                }
            }
            (Use::Data, _) => self.data(a, node, b, from, to),
            (
                Use::Label,
                Node::List(_)
                | Node::Tuple(_)
                | Node::Record { .. }
                | Node::Lit(Data::Str(_))
                | Node::Str
                | Node::Enum(_),
            ) => {}
            (Use::Field { name, result }, Node::Record { fields, exact }) => {
                match fields.iter().find(|f| f.name == *name) {
                    Some(f) => {
                        if f.may_lack {
                            self.dynamic.push(to);
                        }
                        self.work.push((f.ty, *result, from, to));
                    }
                    None => self.no_field(a, *exact, name, from, to),
                }
            }
            (Use::With { name, value, result }, Node::Record { fields, exact }) => {
                let mut fields: Vec<Field> = fields.iter().filter(|f| f.name != *name).cloned().collect();
                fields.push(Field { name: name.clone(), ty: *value, may_lack: false });
                let t = self.make(b, Node::Record { fields: fields.into(), exact: *exact }, to);
                self.work.push((t, *result, from, to));
            }
            (Use::Index { index, key, result }, _) => {
                self.indexed(a, node, *index, key.as_ref(), *result, from, to);
            }
            (Use::Plus { peer, result }, _) => match Solver::kinds(node) {
                k @ (Kinds::STR | Kinds::NUM) => {
                    let t = if k == Kinds::STR { STR } else { NUM };
                    self.work.push((*peer, t, to, to));
                    self.work.push((t, *result, from, to));
                }
                Kinds::LIST => {
                    let sum = self.list_of(b);
                    self.work.push((*peer, sum, to, to));
                    self.work.push((a, sum, from, to));
                    self.work.push((sum, *result, from, to));
                }
                _ => self.wrong_kind(a, "a number, a string or a list", from, to),
            },
            (Use::Order { peer }, _) => match Solver::kinds(node) {
                Kinds::STR => self.work.push((*peer, STR, to, to)),
                Kinds::NUM => self.work.push((*peer, NUM, to, to)),
                _ => self.wrong_kind(a, "a number or a string", from, to),
            },
            (Use::Sized, _) => {
                if !Kinds(Kinds::STR.0 | Kinds::LIST.0 | Kinds::RECORD.0).has(Solver::kinds(node)) {
                    self.wrong_kind(a, "a string, a list or a record", from, to);
                }
            }
            (Use::Slice { result }, _) => match (Solver::kinds(node), node) {
                (Kinds::STR, _) => self.work.push((STR, *result, from, to)),
                (_, Node::Tuple(_)) => {
                    let list = self.list_of(b);
                    self.work.push((a, list, from, to));
                    self.work.push((list, *result, from, to));
                }
                (Kinds::LIST, _) => self.work.push((a, *result, from, to)),
                _ => self.wrong_kind(a, "a string or a list", from, to),
            },
            (Use::Contains { item }, _) => match Solver::kinds(node) {
                Kinds::STR => self.work.push((*item, STR, to, to)),
                Kinds::LIST => {
                    self.work.push((a, DATA, from, to));
                    self.work.push((*item, DATA, to, to));
                }
                _ => self.wrong_kind(a, "a string or a list", from, to),
            },
            (Use::AnyRecord, Node::Record { .. }) => {}
            (Use::AnyRecord, _) => self.wrong_kind(a, "a record", from, to),
            (Use::Classify, _) => {
                if !matches!(node, Node::Variant(_)) && Solver::kinds(node) != Kinds::STR {
                    self.wrong_kind(a, "a string", from, to);
                }
            }
            (Use::Cases { branches, default }, _) => self.cases(a, node, branches, *default, from, to),
            (Use::Args { tool, params }, _) => self.arguments(a, node, tool, params, from, to),
            (Use::Label, _) => {
                self.wrong_kind(a, "a label, which is a list or a record", from, to);
            }
            (Use::Field { name, .. }, Node::Fun(..) | Node::Variant(_) | _) => {
                let found = self.show(a);
                let message = format!("there is no field `{name}` here: found {found}");
                self.mistake(codes::NO_FIELD, message, from, to);
            }
            (Use::With { .. }, _) => self.wrong_kind(a, "a record", from, to),
            // Handled above.
            (Use::Guard { .. } | Use::Filter { .. }, _) => {}
        }
    }

    /// Data without functions inside.
    fn data(&mut self, a: T, node: &Node, b: T, from: Why, to: Why) {
        match node {
            Node::Fun(..) => {
                let found = self.show(a);
                let message = format!("a function is no data: found {found}");
                self.mistake(codes::FUNCTION_AS_DATA, message, from, to);
            }
            Node::List(t) => self.work.push((*t, b, from, to)),
            Node::Tuple(ts) => self.work.extend(ts.iter().map(|t| (*t, b, from, to))),
            Node::Pair(x, y) => self.work.extend([(*x, b, from, to), (*y, b, from, to)]),
            Node::Record { fields, .. } => self.work.extend(fields.iter().map(|f| (f.ty, b, from, to))),
            Node::Variant(tags) => self.work.extend(tags.iter().map(|(_, t)| (*t, b, from, to))),
            _ => {}
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of an index, and where")]
    fn indexed(&mut self, a: T, node: &Node, index: T, key: Option<&Data>, result: T, from: Why, to: Why) {
        let at = match key {
            Some(Data::Num(n)) => n.to_usize(),
            _ => None,
        };
        match node {
            Node::Tuple(ts) => {
                self.work.push((index, NUM, to, to));
                match (at, key) {
                    (Some(i), _) if i < ts.len() => self.work.push((ts[i], result, from, to)),
                    (_, Some(Data::Num(n))) => {
                        let message = format!("a list of {} has nothing at {n}", ts.len());
                        self.mistake(codes::NO_FIELD, message, from, to);
                    }
                    _ => self.work.extend(ts.iter().map(|t| (*t, result, from, to))),
                }
            }
            Node::List(t) => {
                self.work.push((index, NUM, to, to));
                self.work.push((*t, result, from, to));
            }
            Node::Record { fields, exact } => {
                self.work.push((index, STR, to, to));
                match key {
                    Some(Data::Str(name)) => match fields.iter().find(|f| *f.name == **name) {
                        Some(f) => {
                            if f.may_lack {
                                self.dynamic.push(to);
                            }
                            self.work.push((f.ty, result, from, to));
                        }
                        None => self.no_field(a, *exact, &Name::from(&**name), from, to),
                    },
                    _ if *exact => self.work.extend(fields.iter().map(|f| (f.ty, result, from, to))),
                    _ => self.work.push((DYN, result, from, to)),
                }
            }
            _ if Solver::kinds(node) == Kinds::STR => {
                self.work.push((index, NUM, to, to));
                self.work.push((STR, result, from, to));
            }
            _ => self.wrong_kind(a, "a list, a record or a string", from, to),
        }
    }

    fn guarded(&mut self, a: T, node: &Node, b: T, (pred, result): (&Arc<Pred>, T), from: Why, to: Why) {
        if let Node::Fun(param, e, r) = node {
            let (param, e, r) = (*param, *e, *r);
            // What a function under a guard gives is under the same guard, and so on inwards: a use for each level, and, so that
            // this ends, one for all that are deeper.
            let (guard, v) = match self.lists.get(&b).map(|g| (*g, self.node(*g).clone())) {
                Some((guard, Node::Use(how))) => match &*how {
                    Use::Guard { result, .. } => (guard, *result),
                    _ => return,
                },
                _ => {
                    let v = self.var();
                    let guard = self.uses(Use::Guard { pred: pred.clone(), result: v });
                    self.lists.insert(b, guard);
                    let level = self.levels.get(&b).copied().unwrap_or(0) + 1;
                    if level < MOST_LEVELS {
                        self.levels.insert(guard, level);
                    } else {
                        self.lists.insert(guard, guard);
                    }
                    (guard, v)
                }
            };
            self.work.push((r, guard, from, to));
            let f = self.make(b, Node::Fun(param, e, v), to);
            self.work.push((f, result, from, to));
            return;
        }
        if let Some(why) = self.never(a, pred) {
            let message = format!("this guard can never hold: {why}");
            self.mistake(codes::IMPOSSIBLE_GUARD, message, from, to);
        }
        let t = match (&**pred, node) {
            (Pred::True, _) => a,
            // What has passed this guard passes it again.
            (_, Node::Refined(_, known)) if known == pred => a,
            _ => self.make(b, Node::Refined(a, pred.clone()), to),
        };
        self.work.push((t, result, from, to));
    }

    /// Why no value of a type satisfies a predicate, if that is so.
    fn never(&self, a: T, pred: &Pred) -> Option<String> {
        if let Node::Lit(d) = self.node(a) {
            return pred.holds(d).err();
        }
        let ty = self.reported(a)?;
        (pred::possible(pred, &ty) == Answer::No).then(|| format!("no {ty} satisfies `{pred}`"))
    }

    fn cases(
        &mut self,
        a: T,
        node: &Node,
        branches: &[(Name, Option<T>)],
        default: bool,
        from: Why,
        to: Why,
    ) {
        let find = |tag: &str| branches.iter().find(|(n, _)| **n == *tag);
        let missing = |tags: Vec<&str>| {
            let names: Vec<String> = tags.iter().map(|t| format!("`{t}`")).collect();
            format!("no branch for {}", names.join(", "))
        };
        match node {
            Node::Variant(tags) => {
                for (tag, payload) in tags.iter() {
                    if let Some((_, Some(binder))) = find(tag) {
                        self.work.push((*payload, *binder, from, to));
                    }
                }
                let left: Vec<&str> =
                    tags.iter().map(|(n, _)| &**n).filter(|n| find(n).is_none()).take(5).collect();
                if !default && !left.is_empty() {
                    self.mistake(codes::NOT_EXHAUSTIVE, missing(left), from, to);
                }
            }
            Node::Enum(_) | Node::Lit(Data::Str(_)) => {
                let names: Vec<&str> = match node {
                    Node::Enum(e) => e.variants.iter().map(|v| &**v).collect(),
                    Node::Lit(Data::Str(s)) => vec![&**s],
                    _ => Vec::new(),
                };
                // The payload of a string is null.
                for name in &names {
                    if let Some((_, Some(binder))) = find(name) {
                        self.work.push((NULL, *binder, from, to));
                    }
                }
                let left: Vec<&str> = names.into_iter().filter(|n| find(n).is_none()).take(5).collect();
                if !default && !left.is_empty() {
                    self.mistake(codes::NOT_EXHAUSTIVE, missing(left), from, to);
                }
            }
            Node::Str => {
                self.work.extend(branches.iter().filter_map(|(_, b)| Some((NULL, (*b)?, from, to))));
                if !default {
                    let message = "a string may be anything, and there is no `_` branch".to_string();
                    self.mistake(codes::NOT_EXHAUSTIVE, message, from, to);
                }
            }
            _ if default => {}
            Node::Null => self.may_be_null(a, from, to),
            _ => self.wrong_kind(a, "a tag or a string", from, to),
        }
    }

    /// The argument of a tool. Source: `docs/calculus.md` §10 (`tool[f] V`).
    fn arguments(&mut self, a: T, node: &Node, tool: &Name, params: &[Field], from: Why, to: Why) {
        let record = match node {
            Node::Record { fields, exact } => Some((fields.clone(), *exact)),
            _ => None,
        };
        match (params, record) {
            ([], Some((fields, _))) if fields.is_empty() => {}
            ([], None) if matches!(node, Node::Null) => {}
            ([only], None) => self.work.push((a, only.ty, from, to)),
            ([only], Some((fields, exact))) if !fields.iter().any(|f| f.name == only.name) => {
                if !exact {
                    self.dynamic.push(to);
                }
                self.work.push((a, only.ty, from, to));
            }
            (_, None) => {
                let what = format!("a record of the arguments of `{tool}`");
                self.wrong_kind(a, &what, from, to);
            }
            (params, Some((fields, exact))) => {
                for p in params {
                    match fields.iter().find(|f| f.name == p.name) {
                        Some(f) => {
                            if f.may_lack && !p.may_lack {
                                self.dynamic.push(to);
                            }
                            self.work.push((f.ty, p.ty, from, to));
                        }
                        None if p.may_lack => {}
                        None => {
                            let message = format!("the argument `{}` of `{tool}` is missing", p.name);
                            self.mistake(codes::ARGUMENTS, message, from, to);
                        }
                    }
                }
                for f in fields.iter() {
                    if !params.iter().any(|p| p.name == f.name) {
                        let message = format!("`{tool}` has no parameter `{}`", f.name);
                        self.mistake(codes::ARGUMENTS, message, from, to);
                    }
                }
                if !exact {
                    // It may have fields that the type does not tell, and the tool takes no others.
                    self.dynamic.push(to);
                }
            }
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

    // ----- results -----

    /// What values flow here, as a type; `None` if none does.
    pub(super) fn reported(&self, t: T) -> Option<Type> {
        Report { solver: self, open: HashSet::new(), left: MOST_REPORTED, sets: None }.below(t, 0).map(tidy)
    }

    /// The same with the effects of functions.
    pub(super) fn reported_with(&self, t: T, sets: &[super::effects::Set]) -> Option<Type> {
        Report { solver: self, open: HashSet::new(), left: MOST_REPORTED, sets: Some(sets) }
            .below(t, 0)
            .map(tidy)
    }

    /// A copy of everything reachable that was made since the node `from` (and the effect `from_effect`).
    pub(super) fn instantiate(&mut self, root: T, from: u32, from_effect: u32) -> Option<T> {
        let mut copies: HashMap<T, T> = HashMap::new();
        let mut effects: HashMap<Eff, Eff> = HashMap::new();
        let mut todo: Vec<(T, T)> = Vec::new();
        let mut todo_effects: Vec<(Eff, Eff)> = Vec::new();
        let copied = self.copy_of(root, from, &mut copies, &mut todo);
        while let Some((old, new)) = todo.pop() {
            if self.fuel == 0 {
                return None;
            }
            self.fuel -= 1;
            let mut go = |s: &mut Solver, t: T| s.copy_of(t, from, &mut copies, &mut todo);
            let node = match self.node(old).clone() {
                Node::List(t) => Node::List(go(self, t)),
                Node::Option(t) => Node::Option(go(self, t)),
                Node::Tuple(ts) => Node::Tuple(ts.iter().map(|t| go(self, *t)).collect()),
                Node::Pair(a, b) => Node::Pair(go(self, a), go(self, b)),
                Node::Record { fields, exact } => {
                    let fields = fields.iter().map(|f| Field { ty: go(self, f.ty), ..f.clone() }).collect();
                    Node::Record { fields, exact }
                }
                Node::Variant(tags) => {
                    Node::Variant(tags.iter().map(|(n, t)| (n.clone(), go(self, *t))).collect())
                }
                Node::Fun(a, e, b) => {
                    let (a, b) = (go(self, a), go(self, b));
                    let e = copy_effect(&mut self.effects, e, from_effect, &mut effects, &mut todo_effects);
                    Node::Fun(a, e, b)
                }
                Node::Refined(t, p) => Node::Refined(go(self, t), p),
                Node::Use(how) => Node::Use(Rc::new(how.map(&mut |t| go(self, t)))),
                node => node,
            };
            self.nodes[new.0 as usize] = node;
            if let Some(bounds) = self.bounds.get(&old) {
                let (lower, upper) = (bounds.lower.clone(), bounds.upper.clone());
                let mut go = |(t, why): (T, Why)| (self.copy_of(t, from, &mut copies, &mut todo), why);
                let bounds = Bounds {
                    lower: lower.into_iter().map(&mut go).collect(),
                    upper: upper.into_iter().map(&mut go).collect(),
                };
                self.bounds.insert(new, bounds);
            }
            while let Some((old, new)) = todo_effects.pop() {
                self.effects.copy(old, new, |graph, e| {
                    copy_effect(graph, e, from_effect, &mut effects, &mut todo_effects)
                });
            }
        }
        Some(copied)
    }

    fn copy_of(&mut self, t: T, from: u32, copies: &mut HashMap<T, T>, todo: &mut Vec<(T, T)>) -> T {
        if t.0 < from {
            return t;
        }
        if let Some(copy) = copies.get(&t) {
            return *copy;
        }
        // Scalars are shared.
        if matches!(self.node(t), Node::Lit(_) | Node::Enum(_)) {
            return t;
        }
        let copy = self.var();
        copies.insert(t, copy);
        todo.push((t, copy));
        copy
    }
}

fn copy_effect(
    graph: &mut Effects,
    e: Eff,
    from: u32,
    copies: &mut HashMap<Eff, Eff>,
    todo: &mut Vec<(Eff, Eff)>,
) -> Eff {
    if e.0 < from || graph.is_closed(e) {
        return e;
    }
    if let Some(copy) = copies.get(&e) {
        return *copy;
    }
    let copy = graph.node();
    copies.insert(e, copy);
    todo.push((e, copy));
    copy
}

impl Use {
    /// The same with other types.
    fn map(&self, f: &mut impl FnMut(T) -> T) -> Use {
        match self {
            Use::Field { name, result } => Use::Field { name: name.clone(), result: f(*result) },
            Use::Index { index, key, result } => {
                Use::Index { index: f(*index), key: key.clone(), result: f(*result) }
            }
            Use::With { name, value, result } => {
                Use::With { name: name.clone(), value: f(*value), result: f(*result) }
            }
            Use::Plus { peer, result } => Use::Plus { peer: f(*peer), result: f(*result) },
            Use::Order { peer } => Use::Order { peer: f(*peer) },
            Use::Slice { result } => Use::Slice { result: f(*result) },
            Use::Contains { item } => Use::Contains { item: f(*item) },
            Use::Cases { branches, default } => Use::Cases {
                branches: branches.iter().map(|(n, b)| (n.clone(), b.map(&mut *f))).collect(),
                default: *default,
            },
            Use::Guard { pred, result } => Use::Guard { pred: pred.clone(), result: f(*result) },
            Use::Filter { keep, result } => Use::Filter { keep: *keep, result: f(*result) },
            Use::Present { name, result } => Use::Present { name: name.clone(), result: f(*result) },
            Use::Lacks { name, value, result } => {
                Use::Lacks { name: name.clone(), value: f(*value), result: f(*result) }
            }
            Use::Args { tool, params } => Use::Args {
                tool: tool.clone(),
                params: params.iter().map(|p| Field { ty: f(p.ty), ..p.clone() }).collect(),
            },
            Use::Sized => Use::Sized,
            Use::AnyRecord => Use::AnyRecord,
            Use::Classify => Use::Classify,
            Use::Data => Use::Data,
            Use::Label => Use::Label,
        }
    }
}

/// Parts of one reported type.
const MOST_REPORTED: u32 = 2_000;
/// Levels of one reported type.
const DEEPEST: u32 = 24;

/// Types as they are reported: variables replaced by the join of what flows into them.
struct Report<'a> {
    solver: &'a Solver,
    open: HashSet<T>,
    left: u32,
    sets: Option<&'a [super::effects::Set]>,
}

impl Report<'_> {
    /// What flows here; `None` if nothing.
    fn below(&mut self, t: T, depth: u32) -> Option<Type> {
        if depth > DEEPEST || self.left == 0 {
            return Some(Type::Dyn);
        }
        self.left -= 1;
        let part = |r: &mut Self, t: T| r.below(t, depth + 1).unwrap_or_else(nothing);
        Some(match self.solver.node(t) {
            Node::Var => {
                if !self.open.insert(t) {
                    return Some(Type::Dyn);
                }
                let mut all: Option<Type> = None;
                if let Some(bounds) = self.solver.bounds.get(&t) {
                    for (lower, _) in &bounds.lower {
                        // A variable that only feeds itself adds nothing.
                        if self.open.contains(lower) {
                            continue;
                        }
                        let Some(ty) = self.below(*lower, depth) else { continue };
                        all = Some(match all {
                            None => ty,
                            Some(before) => join(before, ty),
                        });
                        if all == Some(Type::Dyn) {
                            break;
                        }
                    }
                }
                self.open.remove(&t);
                return all;
            }
            Node::Dyn | Node::Use(_) => Type::Dyn,
            Node::Str | Node::Lit(Data::Str(_)) => Type::Str,
            Node::Num | Node::Lit(_) => Type::Num,
            Node::Bool => Type::Bool,
            Node::Null => Type::Null,
            Node::List(t) => Type::list(part(self, *t)),
            Node::Tuple(ts) => {
                let items = ts.clone();
                let mut all: Option<Type> = None;
                for t in items.iter() {
                    let ty = part(self, *t);
                    all = Some(match all {
                        None => ty,
                        Some(before) => join(before, ty),
                    });
                    if all == Some(Type::Dyn) {
                        break;
                    }
                }
                Type::list(all.unwrap_or_else(nothing))
            }
            Node::Option(t) => match part(self, *t) {
                t @ (Type::Option(_) | Type::Null) => t,
                t => Type::option(t),
            },
            Node::Pair(a, b) => Type::Pair(Arc::new((part(self, *a), part(self, *b)))),
            Node::Record { fields, .. } => {
                let fields = fields.clone();
                Type::Record(fields.iter().map(|f| (f.name.clone(), part(self, f.ty))).collect())
            }
            Node::Enum(e) => Type::Enum(e.clone()),
            Node::Variant(tags) => {
                let tags = tags.clone();
                Type::Variant(tags.iter().map(|(n, t)| (n.clone(), part(self, *t))).collect())
            }
            Node::Fun(a, e, b) => {
                let (a, e, b) = (*a, *e, *b);
                let param = self.above(a, depth + 1).unwrap_or(Type::Dyn);
                let row = match self.sets {
                    Some(sets) => {
                        sets.get(e.0 as usize).map_or(EffectRow::Any, |s| self.solver.effects.row(s))
                    }
                    None => EffectRow::pure(),
                };
                Type::fun(param, row, part(self, b))
            }
            Node::Refined(t, p) => Type::Refined(Arc::new((part(self, *t), (**p).clone()))),
        })
    }

    /// What may flow there, from how it is used; `None` if that is not known.
    fn above(&mut self, t: T, depth: u32) -> Option<Type> {
        if depth > DEEPEST || self.left == 0 {
            return None;
        }
        self.left -= 1;
        match self.solver.node(t) {
            Node::Var => {
                if !self.open.insert(t) {
                    return None;
                }
                let mut found: Option<Type> = None;
                if let Some(bounds) = self.solver.bounds.get(&t) {
                    for (upper, _) in &bounds.upper {
                        match (self.above(*upper, depth), &found) {
                            (Some(ty), None) => found = Some(ty),
                            // It is used in two ways; the more special one is nearer to the truth.
                            (Some(ty), Some(before)) if ty != *before && ty.is_subtype(before) => {
                                found = Some(ty);
                            }
                            _ => {}
                        }
                    }
                }
                self.open.remove(&t);
                found
            }
            Node::Use(how) => match &**how {
                Use::Args { params, .. } => {
                    let params = params.clone();
                    match &params[..] {
                        [only] => self.above(only.ty, depth + 1),
                        all => Some(Type::record(
                            all.iter()
                                .map(|p| (p.name.clone(), self.below(p.ty, depth + 1).unwrap_or(Type::Dyn))),
                        )),
                    }
                }
                Use::Field { name, result } => {
                    let (name, result) = (name.clone(), *result);
                    let ty = self.above(result, depth + 1).unwrap_or(Type::Dyn);
                    Some(Type::record([(name, ty)]))
                }
                _ => None,
            },
            Node::Dyn => None,
            Node::Fun(a, _, b) => {
                let (a, b) = (*a, *b);
                let param = self.below(a, depth + 1).unwrap_or(Type::Dyn);
                let result = self.above(b, depth + 1).unwrap_or(Type::Dyn);
                Some(Type::fun(param, EffectRow::Any, result))
            }
            Node::List(t) => {
                let t = *t;
                Some(Type::list(self.above(t, depth + 1).unwrap_or(Type::Dyn)))
            }
            Node::Option(t) => {
                let t = *t;
                Some(Type::option(self.above(t, depth + 1).unwrap_or(Type::Dyn)))
            }
            _ => self.below(t, depth),
        }
    }
}

/// The type without values, while a type is put together.
fn nothing() -> Type {
    Type::Variant([].into())
}

/// What is never there is reported as unknown.
fn tidy(ty: Type) -> Type {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match ty {
        Type::Variant(tags) if tags.is_empty() => Type::Dyn,
        Type::Variant(tags) => {
            Type::Variant(tags.iter().map(|(n, t)| (n.clone(), tidy(t.clone()))).collect())
        }
        Type::Record(fields) => {
            Type::Record(fields.iter().map(|(n, t)| (n.clone(), tidy(t.clone()))).collect())
        }
        Type::List(t) => Type::list(tidy((*t).clone())),
        Type::Option(t) => Type::option(tidy((*t).clone())),
        Type::Pair(p) => Type::Pair(Arc::new((tidy(p.0.clone()), tidy(p.1.clone())))),
        Type::Fun(f) => Type::fun(tidy(f.0.clone()), f.1.clone(), tidy(f.2.clone())),
        Type::Refined(r) => Type::Refined(Arc::new((tidy(r.0.clone()), r.1.clone()))),
        ty => ty,
    })
}

/// A type that both are of, as narrow as the types of the calculus allow.
fn join(a: Type, b: Type) -> Type {
    if a == b {
        return a;
    }
    match (a, b) {
        (Type::Variant(tags), t) | (t, Type::Variant(tags)) if tags.is_empty() => t,
        (Type::Null, t) | (t, Type::Null) => match t {
            t @ (Type::Option(_) | Type::Dyn) => t,
            t => Type::option(t),
        },
        (Type::Option(x), Type::Option(y)) => Type::option(join((*x).clone(), (*y).clone())),
        (Type::Option(x), t) | (t, Type::Option(x)) => match join((*x).clone(), t) {
            Type::Dyn => Type::Dyn,
            t @ Type::Option(_) => t,
            t => Type::option(t),
        },
        (Type::Refined(r), t) | (t, Type::Refined(r)) => match t {
            Type::Refined(s) if r.1 == s.1 => {
                Type::Refined(Arc::new((join(r.0.clone(), s.0.clone()), r.1.clone())))
            }
            Type::Refined(s) => join(r.0.clone(), s.0.clone()),
            t => join(r.0.clone(), t),
        },
        (Type::Enum(_), Type::Enum(_) | Type::Str) | (Type::Str, Type::Enum(_)) => Type::Str,
        (Type::List(x), Type::List(y)) => Type::list(join((*x).clone(), (*y).clone())),
        (Type::Pair(x), Type::Pair(y)) => {
            Type::Pair(Arc::new((join(x.0.clone(), y.0.clone()), join(x.1.clone(), y.1.clone()))))
        }
        (Type::Record(x), Type::Record(y)) => Type::Record(
            x.iter()
                .filter_map(|(n, t)| {
                    let (_, u) = y.iter().find(|(m, _)| m == n)?;
                    Some((n.clone(), join(t.clone(), u.clone())))
                })
                .collect(),
        ),
        (Type::Variant(x), Type::Variant(y)) => {
            let mut tags: Vec<(Name, Type)> = x.to_vec();
            for (n, t) in y.iter() {
                match tags.iter_mut().find(|(m, _)| m == n) {
                    Some((_, u)) => *u = join(u.clone(), t.clone()),
                    None => tags.push((n.clone(), t.clone())),
                }
            }
            Type::Variant(tags.into())
        }
        (Type::Fun(x), Type::Fun(y)) => {
            let param = if x.0 == y.0 { x.0.clone() } else { Type::Dyn };
            Type::fun(param, x.1.union(&y.1), join(x.2.clone(), y.2.clone()))
        }
        _ => Type::Dyn,
    }
}

impl Solver {
    /// The type of a literal; `top`: what it is is kept.
    pub(super) fn literal(&mut self, d: &Data, top: bool) -> T {
        /// Longer lists are not followed item by item.
        const MOST_ITEMS: usize = 32;
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || match d {
            Data::Null => NULL,
            Data::Bool(_) => BOOL,
            Data::Str(_) | Data::Num(_) if top => self.add(Node::Lit(d.clone())),
            Data::Str(_) => STR,
            Data::Num(_) => NUM,
            Data::List(items) if items.len() <= MOST_ITEMS => {
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
