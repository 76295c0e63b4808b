//! Abstract values.

use super::taint::{Range, Taint, Taints};
use core_ir::{Bound, Data, Label, ModelParams, Name, TermId, ToolId};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// A function that the program makes; an index into the analysis' table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FnId(pub u32);

/// A set of functions.
pub(super) type Fns = Rc<BTreeSet<FnId>>;

/// Owner of a term's code: the program or the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CodeId(pub u8);

/// An abstract value: its label, everything that is inside it, and its shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AbstractValue {
    pub label: Range,
    /// The join of all labels inside, the value's own not included.
    pub inner: Taint,
    pub shape: Shape,
}

/// Abstract shape of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// Data, or one of these functions, or data that contains some of them. If `unknown`, other
    /// functions too, of which nothing is known, and arguments of planned calls.
    Top { fns: Fns, unknown: bool },
    /// Data, of which some parts are known.
    Parts(Rc<DataParts>),
    /// Exactly this.
    Const(Data),
    /// A list of these items.
    List(Rc<Vec<AbstractValue>>),
    /// A record with these fields.
    Record(Rc<Vec<(Name, AbstractValue)>>),
    /// The arguments of a planned call of the tool of this name.
    Args(Name, Rc<Vec<(Name, AbstractValue)>>),
    /// A pair.
    Pair(Rc<(AbstractValue, AbstractValue)>),
    /// One of these tags.
    Tags(Rc<Vec<(Name, AbstractValue)>>),
    /// One of these functions.
    Fns(Fns),
}

/// Parts of data whose form is not known: of a tool's result that has labels for its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DataParts {
    /// An item, if it is a list.
    pub item: AbstractValue,
    /// Fields of these names, if it is a record that has them.
    pub fields: Vec<(Name, AbstractValue)>,
    /// Every other part.
    pub rest: AbstractValue,
    /// The form, as far as the type of the result says it.
    pub form: Form,
}

/// Form of data, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// Nothing.
    Any,
    /// It is a list.
    List,
    /// It is a record that has fields of these names.
    Record(Vec<Name>),
}

impl DataParts {
    /// The field of a name.
    pub(super) fn field(&self, name: &str) -> &AbstractValue {
        self.fields.iter().find(|(n, _)| &**n == name).map_or(&self.rest, |(_, v)| v)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &AbstractValue> {
        self.fields.iter().map(|(_, v)| v).chain([&self.item, &self.rest])
    }

    fn either(t: &mut Taints, a: &DataParts, b: &DataParts) -> DataParts {
        let names = a.fields.iter().chain(&b.fields).map(|(n, _)| n.clone()).collect::<BTreeSet<Name>>();
        let fields = names
            .into_iter()
            .map(|n| {
                let v = AbstractValue::either(t, a.field(&n), b.field(&n));
                (n, v)
            })
            .collect();
        let form = match (&a.form, &b.form) {
            (Form::Record(x), Form::Record(y)) => {
                Form::Record(x.iter().filter(|n| y.contains(n)).cloned().collect())
            }
            (x, y) if x == y => x.clone(),
            _ => Form::Any,
        };
        let item = AbstractValue::either(t, &a.item, &b.item);
        DataParts { item, fields, rest: AbstractValue::either(t, &a.rest, &b.rest), form }
    }
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AbstractFunction {
    Closure {
        code: CodeId,
        term: TermId,
        captures: Rc<Vec<AbstractValue>>,
    },
    /// The self reference has perhaps no unfolding left, even if the bound was not zero.
    Fix {
        code: CodeId,
        term: TermId,
        bound: Bound,
        own: bool,
        body: Rc<AbstractValue>,
    },
    Guarded {
        code: CodeId,
        term: TermId,
        function: Rc<AbstractValue>,
    },
    Llm {
        code: CodeId,
        term: TermId,
        prompt: Rc<AbstractValue>,
    },
    Tool {
        code: CodeId,
        tool: ToolId,
    },
}

impl AbstractFunction {
    /// Place where the function was created. Functions of one place are distinguished only up to a limit.
    pub(super) fn place(&self) -> (CodeId, u32, u8) {
        match self {
            AbstractFunction::Closure { code, term, .. } => (*code, term.0, 0),
            AbstractFunction::Fix { code, term, own, .. } => (*code, term.0, 1 + u8::from(*own)),
            AbstractFunction::Guarded { code, term, .. } => (*code, term.0, 3),
            AbstractFunction::Llm { code, term, .. } => (*code, term.0, 4),
            AbstractFunction::Tool { code, tool } => (*code, tool.0, 5),
        }
    }

    /// The values it holds.
    pub(super) fn parts(&self) -> &[AbstractValue] {
        match self {
            AbstractFunction::Closure { captures, .. } => captures,
            AbstractFunction::Fix { body: v, .. }
            | AbstractFunction::Guarded { function: v, .. }
            | AbstractFunction::Llm { prompt: v, .. } => std::slice::from_ref(v),
            AbstractFunction::Tool { .. } => &[],
        }
    }

    /// Returns the function with other parts.
    pub(super) fn with_parts(&self, mut parts: Vec<AbstractValue>) -> AbstractFunction {
        let mut out = self.clone();
        match &mut out {
            AbstractFunction::Closure { captures, .. } => *captures = Rc::new(parts),
            AbstractFunction::Fix { body: v, .. }
            | AbstractFunction::Guarded { function: v, .. }
            | AbstractFunction::Llm { prompt: v, .. } => {
                if let Some(part) = parts.pop() {
                    *v = Rc::new(part);
                }
            }
            AbstractFunction::Tool { .. } => {}
        }
        out
    }
}

/// Parameters of a model call.
pub(super) type Params = Arc<ModelParams>;

/// Structure nested deeper than this is not told apart.
const MAX_DEPTH: u32 = 7;
/// Constants of more parts than this are just data.
const MAX_CONST_PARTS: usize = 64;

impl Shape {
    pub(super) fn data() -> Shape {
        Shape::Top { fns: Fns::default(), unknown: false }
    }

    pub(super) fn unknown() -> Shape {
        Shape::Top { fns: Fns::default(), unknown: true }
    }

    fn open(fns: BTreeSet<FnId>, unknown: bool) -> Shape {
        Shape::Top { fns: Rc::new(fns), unknown }
    }

    fn depth(&self) -> u32 {
        match self {
            Shape::Top { .. } | Shape::Const(_) | Shape::Fns(_) => 0,
            Shape::List(items) => 1 + items.iter().map(|v| v.shape.depth()).max().unwrap_or(0),
            Shape::Record(parts) | Shape::Args(_, parts) | Shape::Tags(parts) => {
                1 + parts.iter().map(|(_, v)| v.shape.depth()).max().unwrap_or(0)
            }
            Shape::Pair(p) => 1 + p.0.shape.depth().max(p.1.shape.depth()),
            Shape::Parts(parts) => 1 + parts.all().map(|v| v.shape.depth()).max().unwrap_or(0),
        }
    }

    /// Returns true if its form is not known: it may be any data, and perhaps a function.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Shape::Top { .. } | Shape::Parts(_))
    }

    /// Adds the functions that may be in it; whether there may be unknown ones, or arguments of planned
    /// calls.
    pub(super) fn functions(&self, out: &mut BTreeSet<FnId>) -> bool {
        match self {
            Shape::Top { fns, unknown } => {
                out.extend(fns.iter());
                *unknown
            }
            // It is data.
            Shape::Const(_) | Shape::Parts(_) => false,
            Shape::List(items) => items.iter().fold(false, |u, v| v.shape.functions(out) | u),
            Shape::Record(parts) | Shape::Tags(parts) => {
                parts.iter().fold(false, |u, (_, v)| v.shape.functions(out) | u)
            }
            Shape::Args(_, parts) => {
                parts.iter().for_each(|(_, v)| {
                    v.shape.functions(out);
                });
                true
            }
            Shape::Pair(p) => p.0.shape.functions(out) | p.1.shape.functions(out),
            Shape::Fns(fns) => {
                out.extend(fns.iter());
                false
            }
        }
    }

    /// Returns the shape without its structure.
    pub(super) fn flat(&self) -> Shape {
        let mut fns = BTreeSet::new();
        let unknown = self.functions(&mut fns);
        Shape::open(fns, unknown)
    }
}

fn size(data: &Data, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match data {
        Data::Null | Data::Bool(_) | Data::Num(_) => true,
        Data::Str(s) => s.len() < 200,
        Data::List(items) => items.iter().all(|d| size(d, left)),
        Data::Record(fields) => fields.iter().all(|(_, d)| size(d, left)),
        Data::Pair(p) => size(&p.0, left) && size(&p.1, left),
        Data::Tag(_, d) => size(d, left),
    }
}

fn is_scalar(data: &Data) -> bool {
    matches!(data, Data::Null | Data::Bool(_) | Data::Num(_) | Data::Str(_))
}

impl AbstractValue {
    /// Data whose parts are public.
    pub(super) fn data(label: Range) -> AbstractValue {
        AbstractValue { label, inner: Taint::NONE, shape: Shape::data() }
    }

    /// A literal; its parts are labeled like itself.
    pub(super) fn literal(data: &Data, pc: Range) -> AbstractValue {
        let mut left = MAX_CONST_PARTS;
        let shape = if size(data, &mut left) { Shape::Const(data.clone()) } else { Shape::data() };
        // Nothing is inside a scalar.
        let inner = if is_scalar(data) { Taint::NONE } else { pc.hi };
        AbstractValue { label: pc, inner, shape }
    }

    pub(super) fn unit(label: Range) -> AbstractValue {
        AbstractValue { label, inner: Taint::NONE, shape: Shape::Record(Rc::default()) }
    }

    /// `deepLabel`, from above.
    pub(super) fn deep(&self, t: &mut Taints) -> Taint {
        t.union(self.label.hi, self.inner)
    }

    /// `deepLabel`, from both sides.
    pub(super) fn deep_range(&self, t: &mut Taints) -> Range {
        let under = if self.inner == Taint::NONE { self.label.under } else { 0 };
        Range { lo: self.deep_lo(t), hi: self.deep(t), under }
    }

    fn deep_lo(&self, t: &mut Taints) -> Label {
        let lo = self.label.lo;
        match &self.shape {
            // Of data of which no form is known there may be no part.
            Shape::Top { .. } | Shape::Const(_) | Shape::Fns(_) | Shape::Parts(_) => lo,
            Shape::List(items) => items.iter().fold(lo, |l, v| {
                let part = v.deep_lo(t);
                t.lattice.join(l, part)
            }),
            Shape::Record(parts) | Shape::Args(_, parts) => parts.iter().fold(lo, |l, (_, v)| {
                let part = v.deep_lo(t);
                t.lattice.join(l, part)
            }),
            Shape::Pair(p) => {
                let (a, b) = (p.0.deep_lo(t), p.1.deep_lo(t));
                let parts = t.lattice.join(a, b);
                t.lattice.join(lo, parts)
            }
            Shape::Tags(parts) => {
                let mut least = None;
                for (_, v) in parts.iter() {
                    let part = v.deep_lo(t);
                    least = Some(least.map_or(part, |l| t.meet(l, part)));
                }
                t.lattice.join(lo, least.unwrap_or_default())
            }
        }
    }

    /// A value made of parts, at a label.
    pub(super) fn made(t: &mut Taints, label: Range, shape: Shape) -> AbstractValue {
        let mut inner = Taint::NONE;
        let mut add = |v: &AbstractValue| {
            let deep = v.deep(t);
            inner = t.union(inner, deep);
        };
        match &shape {
            Shape::List(items) => items.iter().for_each(add),
            Shape::Record(parts) | Shape::Args(_, parts) | Shape::Tags(parts) => {
                parts.iter().for_each(|(_, v)| add(v));
            }
            Shape::Pair(p) => {
                add(&p.0);
                add(&p.1);
            }
            Shape::Parts(parts) => parts.all().for_each(add),
            Shape::Top { .. } | Shape::Const(_) | Shape::Fns(_) => {}
        }
        let shape = if shape.depth() > MAX_DEPTH { shape.flat() } else { shape };
        AbstractValue { label, inner, shape }
    }

    /// `(l ⊔ pc):v`.
    pub(super) fn read(&self, t: &mut Taints, at: Range) -> AbstractValue {
        AbstractValue { label: t.join(self.label, at), ..self.clone() }
    }

    /// The exact parts of constants, as of other values.
    pub(super) fn opened(&self) -> AbstractValue {
        let part = |d: &Data| {
            let label = Range::new(Label::BOTTOM, self.inner);
            let inner = if is_scalar(d) { Taint::NONE } else { self.inner };
            AbstractValue { label, inner, shape: Shape::Const(d.clone()) }
        };
        let Shape::Const(data) = &self.shape else { return self.clone() };
        let shape = match data {
            Data::List(items) => Shape::List(Rc::new(items.iter().map(part).collect())),
            Data::Record(fields) => {
                Shape::Record(Rc::new(fields.iter().map(|(n, d)| (n.clone(), part(d))).collect()))
            }
            Data::Pair(p) => Shape::Pair(Rc::new((part(&p.0), part(&p.1)))),
            Data::Tag(n, d) => Shape::Tags(Rc::new(vec![(n.clone(), part(d))])),
            _ => return self.clone(),
        };
        AbstractValue { shape, ..self.clone() }
    }

    /// Some part of it, read: of which nothing is known but what is known of the whole.
    pub(super) fn some_part(&self, t: &mut Taints) -> AbstractValue {
        let label = Range::new(self.label.lo, self.deep(t));
        AbstractValue { label, inner: self.inner, shape: self.shape.flat() }
    }

    /// Every label in it changed in the same way, and every function.
    pub(super) fn mapped(
        &self,
        f: &dyn Fn(Range) -> Range,
        g: &mut dyn FnMut(FnId) -> FnId,
    ) -> AbstractValue {
        let fields = |vs: &[(Name, AbstractValue)], g: &mut dyn FnMut(FnId) -> FnId| {
            Rc::new(vs.iter().map(|(n, v)| (n.clone(), v.mapped(f, g))).collect::<Vec<_>>())
        };
        let shape = match &self.shape {
            Shape::Top { fns, unknown } => {
                Shape::Top { fns: Rc::new(fns.iter().map(|id| g(*id)).collect()), unknown: *unknown }
            }
            Shape::Fns(fns) => Shape::Fns(Rc::new(fns.iter().map(|id| g(*id)).collect())),
            Shape::Const(d) => Shape::Const(d.clone()),
            Shape::Parts(parts) => Shape::Parts(Rc::new(DataParts {
                item: parts.item.mapped(f, g),
                fields: parts.fields.iter().map(|(n, v)| (n.clone(), v.mapped(f, g))).collect(),
                rest: parts.rest.mapped(f, g),
                form: parts.form.clone(),
            })),
            Shape::List(items) => Shape::List(Rc::new(items.iter().map(|v| v.mapped(f, g)).collect())),
            Shape::Record(vs) => Shape::Record(fields(vs, g)),
            Shape::Args(tool, vs) => Shape::Args(tool.clone(), fields(vs, g)),
            Shape::Tags(vs) => Shape::Tags(fields(vs, g)),
            Shape::Pair(p) => Shape::Pair(Rc::new((p.0.mapped(f, g), p.1.mapped(f, g)))),
        };
        AbstractValue { label: f(self.label), inner: self.inner, shape }
    }

    /// One of the two.
    pub(super) fn either(t: &mut Taints, a: &AbstractValue, b: &AbstractValue) -> AbstractValue {
        if a == b {
            return a.clone();
        }
        let label = t.either(a.label, b.label);
        let inner = t.union(a.inner, b.inner);
        let shape = match (&a.shape, &b.shape) {
            (x, y) if x == y => x.clone(),
            (Shape::Parts(x), Shape::Parts(y)) => Shape::Parts(Rc::new(DataParts::either(t, x, y))),
            // A scalar has no parts.
            (Shape::Parts(x), Shape::Const(d)) | (Shape::Const(d), Shape::Parts(x)) if is_scalar(d) => {
                Shape::Parts(Rc::new(DataParts { form: Form::Any, ..x.as_ref().clone() }))
            }
            (Shape::Fns(x), Shape::Fns(y)) => Shape::Fns(Rc::new(x.union(y).copied().collect())),
            _ => match (&a.opened().shape, &b.opened().shape) {
                (Shape::List(x), Shape::List(y)) if x.len() == y.len() => Shape::List(Rc::new(
                    x.iter().zip(y.iter()).map(|(v, w)| AbstractValue::either(t, v, w)).collect(),
                )),
                (Shape::Record(x), Shape::Record(y)) if same_names(x, y) => {
                    Shape::Record(either_field(t, x, y))
                }
                (Shape::Args(f, x), Shape::Args(g, y)) if f == g && same_names(x, y) => {
                    Shape::Args(f.clone(), either_field(t, x, y))
                }
                (Shape::Pair(x), Shape::Pair(y)) => Shape::Pair(Rc::new((
                    AbstractValue::either(t, &x.0, &y.0),
                    AbstractValue::either(t, &x.1, &y.1),
                ))),
                (Shape::Tags(x), Shape::Tags(y)) => {
                    let mut all = x.as_ref().clone();
                    for (name, v) in y.iter() {
                        match all.iter_mut().find(|(n, _)| n == name) {
                            Some((_, w)) => *w = AbstractValue::either(t, w, v),
                            None => all.push((name.clone(), v.clone())),
                        }
                    }
                    all.sort_by(|(n, _), (m, _)| n.cmp(m));
                    Shape::Tags(Rc::new(all))
                }
                _ => {
                    let mut fns = BTreeSet::new();
                    let unknown = a.shape.functions(&mut fns) | b.shape.functions(&mut fns);
                    Shape::open(fns, unknown)
                }
            },
        };
        let shape = if shape.depth() > MAX_DEPTH { shape.flat() } else { shape };
        AbstractValue { label, inner, shape }
    }
}

fn same_names(x: &[(Name, AbstractValue)], y: &[(Name, AbstractValue)]) -> bool {
    x.len() == y.len() && x.iter().zip(y).all(|(f, g)| f.0 == g.0)
}

/// The fields of one of two records with the same names.
fn either_field(
    t: &mut Taints,
    x: &[(Name, AbstractValue)],
    y: &[(Name, AbstractValue)],
) -> Rc<Vec<(Name, AbstractValue)>> {
    let fields = x.iter().zip(y);
    Rc::new(fields.map(|(f, g)| (f.0.clone(), AbstractValue::either(t, &f.1, &g.1))).collect())
}
