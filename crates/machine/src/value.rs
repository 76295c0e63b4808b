//! Labeled values.

use crate::list::{self, List, Piece};
use crate::meter::Meter;
use crate::record::Fields;
use core_ir::{
    Bound, Code, Data, Delegated, Label, Lattice, MAX_DATA_DEPTH, ModelParams, Name, Num, TermId, ToolDecl,
};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

/// A labeled value `l:v`. Cheap to clone. Source: `docs/calculus.md` §2.
#[derive(Clone, Debug)]
pub struct Value {
    pub(crate) label: Label,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Num(Num),
    Str(Arc<str>),
    Node(Ref),
}

/// Somebody's share of a node. The one that every run has, `unit`, needs no counting, which is most of what
/// it would cost.
#[derive(Clone, Debug)]
pub(crate) enum Ref {
    Counted(Arc<Node>),
    /// A fixpoint that has been unfolded so often: as many times fewer are left of its bound. So that an
    /// unfolding makes no node.
    Unfolded(Arc<Node>, u32),
    Always(&'static Node),
}

impl std::ops::Deref for Ref {
    type Target = Node;
    #[inline]
    fn deref(&self) -> &Node {
        match self {
            Ref::Counted(node) | Ref::Unfolded(node, _) => node,
            Ref::Always(node) => node,
        }
    }
}

impl Ref {
    /// A node that is shared with nobody yet.
    pub(crate) fn new(node: Node) -> Ref {
        Ref::Counted(Arc::new(node))
    }

    /// The node, if it is counted.
    fn counted(&self) -> Option<&Arc<Node>> {
        match self {
            Ref::Counted(node) | Ref::Unfolded(node, _) => Some(node),
            Ref::Always(_) => None,
        }
    }

    /// The remaining bound of a fixpoint.
    #[inline]
    pub(crate) fn left(&self) -> Option<Bound> {
        let times = match self {
            Ref::Unfolded(_, times) => *times,
            _ => 0,
        };
        match &self.body {
            // INVARIANT: it was not unfolded more often than its bound admits.
            Body::Fix(Bound::Finite(n), _) => Some(Bound::Finite(n - u64::from(times))),
            Body::Fix(Bound::Infinite, _) => Some(Bound::Infinite),
            _ => None,
        }
    }

    /// A share of a fixpoint after one more unfolding, which its bound admits.
    #[inline(always)]
    pub(crate) fn unfolded(&self) -> Ref {
        match self {
            Ref::Counted(node) if matches!(node.body, Body::Fix(Bound::Infinite, _)) => {
                Ref::Counted(node.clone())
            }
            _ => self.counted_down(),
        }
    }

    /// The same for a bound that is counted: one less of it is left.
    #[inline(never)]
    fn counted_down(&self) -> Ref {
        let (node, times) = match self {
            Ref::Counted(node) => (node, 0),
            Ref::Unfolded(node, times) => (node, *times),
            Ref::Always(_) => return self.clone(),
        };
        match (&node.body, times.checked_add(1)) {
            (_, Some(times)) => Ref::Unfolded(node.clone(), times),
            // Four billion unfoldings are counted; then it is another node.
            (Body::Fix(Bound::Finite(n), function), None) => Ref::new(Node {
                deep: node.deep,
                has_function: true,
                has_args: false,
                body: Body::Fix(Bound::Finite(n - u64::from(times) - 1), function.clone()),
            }),
            (_, None) => Ref::Counted(node.clone()),
        }
    }
}

/// A value with parts.
#[derive(Debug)]
pub(crate) struct Node {
    /// The join of every label inside, the node's own top label not included.
    pub deep: Label,
    /// True if a function is inside, or this is one.
    pub has_function: bool,
    /// True if the arguments of a planned call are inside, outside of functions, or these are some.
    pub has_args: bool,
    pub body: Body,
}

/// The captured values of a closure. Most have one or none, which need no allocation of their own.
pub(crate) type Captures = SmallVec<[Value; 1]>;

#[derive(Debug)]
pub(crate) enum Body {
    List(List),
    Record(Fields),
    /// The arguments of a planned call of this tool. Only the term `args[f]{…}` makes them; as data they are
    /// a record.
    Args(Arc<ToolDecl>, Fields),
    Pair(Value, Value),
    Tag(Name, Value),
    /// A closure, or the activation of a whole code (then `term` is its root and nothing is captured).
    Closure {
        code: Arc<Code>,
        term: TermId,
        captures: Captures,
    },
    Fix(Bound, Value),
    /// A guarded function; `term` is the `guard` that made it.
    Guarded {
        code: Arc<Code>,
        term: TermId,
        function: Value,
    },
    Llm {
        prompt: Value,
        params: Arc<ModelParams>,
        code: Arc<Code>,
        term: TermId,
    },
    Tool(Tool),
}

/// A tool with its labels in the lattice of the run.
#[derive(Debug)]
pub(crate) struct Tool {
    pub decl: Arc<ToolDecl>,
    pub control: Label,
    /// Of each parameter.
    pub bounds: Box<[Label]>,
    pub result: Label,
    /// The join of `result` and of all that labels of parts may add to it, but what arguments name.
    pub most: Label,
    /// The observers of a call.
    pub channel: Label,
    /// Greatest label of the data that may choose from its sets; no limit if `None`.
    pub choosers: Option<Label>,
}

impl Tool {
    pub(crate) fn in_lattice(lattice: &mut Lattice, decl: &Arc<ToolDecl>) -> Tool {
        // A bound that is no label of this lattice admits nothing, a result's is as high as can be: the safe
        // side.
        let control = lattice.resolve(&decl.control).unwrap_or_default();
        let bounds: Box<[Label]> =
            decl.params.iter().map(|p| lattice.resolve(&p.bound).unwrap_or_default()).collect();
        let result = lattice.resolve_or_top(&decl.label);
        let most = decl.parts.iter().fold(result, |most, rule| {
            // What a value names is known only then.
            let label = if rule.names_fields() { None } else { lattice.resolve(&rule.label) };
            let label = label.unwrap_or_else(|| lattice.top());
            lattice.join(most, label)
        });
        let channel = bounds.iter().fold(control, |channel, bound| lattice.join(channel, *bound));
        let choosers = decl.delegated.as_ref();
        let choosers = choosers.map(|d| lattice.resolve(&Delegated::label(&d.to)).unwrap_or_default());
        Tool { decl: decl.clone(), control, bounds, result, most, channel, choosers }
    }
}

impl Body {
    fn is_function(&self) -> bool {
        !matches!(self, Body::List(_) | Body::Record(_) | Body::Args(..) | Body::Pair(..) | Body::Tag(..))
    }

    /// The fields of what is a record as data.
    pub(crate) fn as_record(&self) -> Option<&Fields> {
        match self {
            Body::Record(fields) | Body::Args(_, fields) => Some(fields),
            _ => None,
        }
    }

    /// Number of parts of data.
    fn len(&self) -> usize {
        match self {
            Body::List(items) => items.len(),
            Body::Record(fields) | Body::Args(_, fields) => fields.len(),
            Body::Pair(..) => 2,
            Body::Tag(..) => 1,
            _ => 0,
        }
    }

    fn parts(&self) -> Parts<'_> {
        match self {
            Body::List(items) => Parts::List(items.iter()),
            Body::Closure { captures, .. } => Parts::Slice(captures.iter()),
            Body::Record(fields) | Body::Args(_, fields) => Parts::Fields(fields.iter()),
            Body::Pair(a, b) => Parts::Two(Some(a), Some(b)),
            Body::Tag(_, v)
            | Body::Fix(_, v)
            | Body::Guarded { function: v, .. }
            | Body::Llm { prompt: v, .. } => Parts::Two(Some(v), None),
            Body::Tool(_) => Parts::Two(None, None),
        }
    }

    /// The counted nodes that its parts are.
    fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.parts().filter_map(Value::counted)
    }
}

enum Parts<'a> {
    List(list::Iter<'a>),
    Slice(std::slice::Iter<'a, Value>),
    Fields(std::slice::Iter<'a, (Name, Value)>),
    Two(Option<&'a Value>, Option<&'a Value>),
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a Value;
    fn next(&mut self) -> Option<&'a Value> {
        match self {
            Parts::List(i) => i.next(),
            Parts::Slice(i) => i.next(),
            Parts::Fields(i) => i.next().map(|(_, v)| v),
            Parts::Two(a, b) => a.take().or_else(|| b.take()),
        }
    }
}

/// Dropping a value nested a million deep must not recurse a million deep: parts that nobody outside
/// holds are taken apart one by one.
impl Drop for Node {
    fn drop(&mut self) {
        if !may_recurse(&self.body) {
            return;
        }
        let (mut work, mut pieces) = (Vec::new(), Vec::new());
        take_nodes(&mut self.body, &mut work, &mut pieces);
        loop {
            if let Some(node) = work.pop() {
                if let Some(mut only) = Arc::into_inner(node) {
                    take_nodes(&mut only.body, &mut work, &mut pieces);
                }
            } else if let Some(piece) = pieces.pop() {
                piece.dismantle(&mut pieces, |v| take_node(v, &mut work));
            } else {
                return;
            }
        }
    }
}

/// Returns whether dropping a body may drop nodes that hold nodes. What somebody else holds too is only
/// counted down.
fn may_recurse(body: &Body) -> bool {
    let holds_nodes = |node: &Node| match &node.body {
        Body::List(items) => items.may_drop(|v| v.counted().is_some()),
        body => body.nodes().next().is_some(),
    };
    if let Body::List(items) = body {
        return items.may_drop(|v| v.counted().is_some_and(|n| holds_nodes(n)));
    }
    // All who hold a part may be here: `(p, p)` is the last of `p`.
    let here = body.nodes().count();
    here > 0 && body.nodes().any(|n| holds_nodes(n) && Arc::strong_count(n) <= here)
}

fn take_node(v: &mut Value, work: &mut Vec<Arc<Node>>) {
    if let Kind::Node(Ref::Counted(node) | Ref::Unfolded(node, _)) =
        std::mem::replace(&mut v.kind, Kind::Null)
    {
        work.push(node);
    }
}

fn take_nodes(body: &mut Body, work: &mut Vec<Arc<Node>>, pieces: &mut Vec<Piece>) {
    let mut take = |v: &mut Value| take_node(v, work);
    match body {
        Body::List(items) => items.dismantle(pieces),
        Body::Closure { captures, .. } => captures.iter_mut().for_each(take),
        Body::Record(fields) | Body::Args(_, fields) => fields.values_mut().for_each(take),
        Body::Pair(a, b) => {
            take(a);
            take(b);
        }
        Body::Tag(_, v)
        | Body::Fix(_, v)
        | Body::Guarded { function: v, .. }
        | Body::Llm { prompt: v, .. } => take(v),
        Body::Tool(_) => {}
    }
}

/// The join of the labels of parts, and whether a function, and arguments of a planned call, are among them
/// or in them.
#[inline]
fn inside<'a>(lattice: &mut Lattice, parts: impl Iterator<Item = &'a Value>) -> (Label, bool, bool) {
    let (mut deep, mut functions, mut args) = (Label::BOTTOM, false, false);
    for part in parts {
        if part.label != Label::BOTTOM {
            deep = lattice.join(deep, part.label);
        }
        if let Kind::Node(n) = &part.kind {
            deep = lattice.join(deep, n.deep);
            functions |= n.has_function;
            args |= n.has_args;
        }
    }
    (deep, functions, args)
}

/// Reason why a value is not data or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotData {
    Function,
    TooDeep,
    TooLarge,
}

impl NotData {
    pub(crate) fn message(self) -> String {
        match self {
            NotData::Function => "a function is not data".to_string(),
            NotData::TooDeep => format!("value nested deeper than {MAX_DATA_DEPTH} levels"),
            NotData::TooLarge => "value larger than the size limit".to_string(),
        }
    }
}

static UNIT: Node = EMPTY;

static MARK: Node = EMPTY;

const EMPTY: Node =
    Node { deep: Label::BOTTOM, has_function: false, has_args: false, body: Body::Record(Fields::NONE) };

impl Value {
    pub(crate) fn new(label: Label, kind: Kind) -> Value {
        Value { label, kind }
    }

    pub(crate) fn node(lattice: &mut Lattice, label: Label, body: Body) -> Value {
        Value { label, kind: Kind::Node(Ref::Counted(Value::made(lattice, body))) }
    }

    /// A node, with what is said of all its parts.
    pub(crate) fn made(lattice: &mut Lattice, body: Body) -> Arc<Node> {
        // Lists and records are long: each has a loop of its own, in which labels that are ⊥ cost a
        // comparison.
        let (deep, functions, args) = match &body {
            Body::List(items) => inside(lattice, items.iter()),
            Body::Record(fields) | Body::Args(_, fields) => inside(lattice, fields.iter().map(|f| &f.1)),
            Body::Pair(first, second) => inside(lattice, [first, second].into_iter()),
            _ => inside(lattice, body.parts()),
        };
        let has_function = functions || body.is_function();
        let has_args = matches!(body, Body::Args(..)) || (args && !body.is_function());
        Arc::new(Node { deep, has_function, has_args, body })
    }

    /// A node whose inside is known and holds no arguments of a planned call: the join of all labels there,
    /// and whether a function is among it.
    pub(crate) fn known(label: Label, body: Body, deep: Label, has_function: bool) -> Value {
        Value { label, kind: Kind::Node(Ref::new(Node { deep, has_function, has_args: false, body })) }
    }

    /// `unit`, the empty record.
    pub(crate) fn unit(label: Label) -> Value {
        Value { label, kind: Kind::Node(Ref::Always(&UNIT)) }
    }

    /// The mark that stands on a stack in the place of an argument that is applied already. No value of a
    /// program is one.
    pub(crate) fn mark() -> Value {
        Value { label: Label::BOTTOM, kind: Kind::Node(Ref::Always(&MARK)) }
    }

    /// Returns whether this is [`Value::mark`].
    #[inline]
    pub(crate) fn is_mark(&self) -> bool {
        matches!(&self.kind, Kind::Node(Ref::Always(node)) if std::ptr::eq(*node, &MARK))
    }

    pub(crate) fn str(label: Label, text: impl Into<Arc<str>>) -> Value {
        Value { label, kind: Kind::Str(text.into()) }
    }

    /// The top label.
    pub fn label(&self) -> Label {
        self.label
    }

    /// The join of every label in the value, captured environments of closures included.
    #[inline]
    pub fn deep_label(&self, lattice: &mut Lattice) -> Label {
        match &self.kind {
            Kind::Node(n) => lattice.join(self.label, n.deep),
            _ => self.label,
        }
    }

    /// The node, if it is counted.
    fn counted(&self) -> Option<&Arc<Node>> {
        match &self.kind {
            Kind::Node(node) => node.counted(),
            _ => None,
        }
    }

    /// Another label, joined with every label in the value.
    pub(crate) fn deep_label_in(&self, lattice: &mut Lattice, other: Label) -> Label {
        let deep = self.deep_label(lattice);
        lattice.join(other, deep)
    }

    /// The parts that have a label of their own: the way to each, and the join of the labels in it and around
    /// it.
    pub(crate) fn labeled_parts(&self, lattice: &mut Lattice, most: usize) -> Vec<(String, Label)> {
        let mut out = Vec::new();
        // Breadth first: what is left out is the deepest. Each visit is counted, whether it gives something
        // or not.
        let mut work = VecDeque::from([(String::new(), self, Label::BOTTOM)]);
        let mut left = most.saturating_mul(10);
        while let Some((way, value, around)) = work.pop_front() {
            if out.len() == most || left == 0 {
                break;
            }
            left -= 1;
            let here = lattice.join(around, value.label);
            let deep = value.deep_label(lattice);
            let label = lattice.join(here, deep);
            if label == Label::BOTTOM {
                continue;
            }
            out.push((way.clone(), label));
            match value.body() {
                Some(Body::Record(fields) | Body::Args(_, fields)) => {
                    work.extend(fields.iter().take(left).map(|(n, v)| (format!("{way}.{n}"), v, here)));
                }
                Some(Body::List(items)) => {
                    let items = items.iter().take(left).enumerate();
                    work.extend(items.map(|(i, v)| (format!("{way}[{i}]"), v, here)));
                }
                Some(Body::Pair(a, b)) => {
                    work.extend([(format!("{way}.fst"), a, here), (format!("{way}.snd"), b, here)]);
                }
                Some(Body::Tag(name, v)) => work.push_back((format!("{way}.{name}"), v, here)),
                _ => {}
            }
        }
        out
    }

    /// The value read under a label: `(l ⊔ pc):v`.
    #[inline]
    pub(crate) fn read(&self, lattice: &mut Lattice, pc: Label) -> Value {
        Value { label: self.label_read(lattice, pc), kind: self.kind.clone() }
    }

    /// The label of the value read under a label: `l ⊔ pc`.
    #[inline]
    pub(crate) fn label_read(&self, lattice: &mut Lattice, pc: Label) -> Label {
        lattice.join(self.label, pc)
    }

    pub(crate) fn body(&self) -> Option<&Body> {
        match &self.kind {
            Kind::Node(n) => Some(&n.body),
            _ => None,
        }
    }

    /// The remaining bound of a fixpoint.
    #[inline]
    pub(crate) fn left(&self) -> Option<Bound> {
        match &self.kind {
            Kind::Node(node) => node.left(),
            _ => None,
        }
    }

    pub(crate) fn has_function(&self) -> bool {
        matches!(&self.kind, Kind::Node(n) if n.has_function)
    }

    /// Returns whether this is a function.
    pub fn is_function(&self) -> bool {
        self.body().is_some_and(Body::is_function)
    }

    /// The kind of value, with an article.
    pub fn kind(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a boolean",
            Kind::Num(_) => "a number",
            Kind::Str(_) => "a string",
            Kind::Node(n) => match &n.body {
                Body::List(_) => "a list",
                Body::Record(_) => "a record",
                Body::Args(..) => "the arguments of a planned call",
                Body::Pair(..) => "a pair",
                Body::Tag(..) => "a tag",
                _ => "a function",
            },
        }
    }

    /// Data from the world as a value, without copying scalars.
    #[inline]
    pub(crate) fn of_answer(lattice: &mut Lattice, label: Label, data: Data) -> Value {
        match data {
            Data::Null => Value::new(label, Kind::Null),
            Data::Bool(b) => Value::new(label, Kind::Bool(b)),
            Data::Num(n) => Value::new(label, Kind::Num(n)),
            Data::Str(s) => Value::new(label, Kind::Str(s)),
            data => Value::from_data(lattice, label, &data),
        }
    }

    /// Data from the world as a value, every part labeled ⊥. The depth of data is bounded (see [`Data`]).
    pub(crate) fn from_data(lattice: &mut Lattice, label: Label, data: &Data) -> Value {
        Value::of_data(lattice, label, Label::BOTTOM, data)
    }

    /// A literal of the program: what its constructors would give, every part at the program counter.
    #[inline]
    pub(crate) fn literal(lattice: &mut Lattice, pc: Label, data: &Data) -> Value {
        Value::of_data(lattice, pc, pc, data)
    }

    fn of_data(lattice: &mut Lattice, label: Label, inner: Label, data: &Data) -> Value {
        let part = |lattice: &mut Lattice, d: &Data| Value::of_data(lattice, inner, inner, d);
        let body = match data {
            Data::Null => return Value::new(label, Kind::Null),
            Data::Bool(b) => return Value::new(label, Kind::Bool(*b)),
            Data::Num(n) => return Value::new(label, Kind::Num(n.clone())),
            Data::Str(s) => return Value::new(label, Kind::Str(s.clone())),
            Data::List(items) => Body::List(items.iter().map(|d| part(lattice, d)).collect()),
            Data::Record(fields) => {
                Body::Record(fields.iter().map(|(n, d)| (n.clone(), part(lattice, d))).collect())
            }
            Data::Pair(p) => Body::Pair(part(lattice, &p.0), part(lattice, &p.1)),
            Data::Tag(n, d) => Body::Tag(n.clone(), part(lattice, d)),
        };
        Value::node(lattice, label, body)
    }

    /// `strip V` as data.
    #[inline]
    pub(crate) fn to_data(&self, meter: &mut Meter) -> Result<Data, NotData> {
        match &self.kind {
            Kind::Num(n) => Ok(Data::Num(n.clone())),
            Kind::Node(n) if n.has_function => Err(NotData::Function),
            _ => self.data_at(0, meter),
        }
    }

    fn data_at(&self, depth: usize, meter: &mut Meter) -> Result<Data, NotData> {
        if depth > MAX_DATA_DEPTH {
            return Err(NotData::TooDeep);
        }
        let node = match &self.kind {
            Kind::Null => return Ok(Data::Null),
            Kind::Bool(b) => return Ok(Data::Bool(*b)),
            Kind::Num(n) => return Ok(Data::Num(n.clone())),
            Kind::Str(s) => return Ok(Data::Str(s.clone())),
            Kind::Node(n) => n,
        };
        meter.parts(node.body.len())?;
        let mut part = |v: &Value| v.data_at(depth + 1, meter);
        Ok(match &node.body {
            Body::List(items) => Data::List(items.iter().map(part).collect::<Result<_, _>>()?),
            Body::Record(fields) | Body::Args(_, fields) => {
                Data::Record(fields.iter().map(|(n, v)| Ok((n.clone(), part(v)?))).collect::<Result<_, _>>()?)
            }
            Body::Pair(a, b) => Data::Pair(Arc::new((part(a)?, part(b)?))),
            Body::Tag(n, v) => Data::Tag(n.clone(), Arc::new(part(v)?)),
            _ => return Err(NotData::Function),
        })
    }

    /// The value with all labels of its data erased to ⊥ (functions keep what they captured), the arguments
    /// of planned calls as records.
    #[inline]
    pub(crate) fn strip(&self, lattice: &mut Lattice, meter: &mut Meter) -> Result<Value, NotData> {
        self.strip_at(lattice, 0, meter)
    }

    fn strip_at(&self, lattice: &mut Lattice, depth: usize, meter: &mut Meter) -> Result<Value, NotData> {
        let node = match &self.kind {
            Kind::Node(n) if (n.deep != Label::BOTTOM || n.has_args) && !n.body.is_function() => n,
            kind => return Ok(Value::new(Label::BOTTOM, kind.clone())),
        };
        if depth > MAX_DATA_DEPTH {
            return Err(NotData::TooDeep);
        }
        meter.parts(node.body.len())?;
        let mut part = |v: &Value| v.strip_at(lattice, depth + 1, meter);
        let body = match &node.body {
            Body::List(items) => Body::List(items.iter().map(part).collect::<Result<_, _>>()?),
            Body::Record(fields) | Body::Args(_, fields) => Body::Record(fields.try_map(part)?),
            Body::Pair(a, b) => Body::Pair(part(a)?, part(b)?),
            Body::Tag(n, v) => Body::Tag(n.clone(), part(v)?),
            // Functions were returned above.
            _ => return Ok(Value::new(Label::BOTTOM, self.kind.clone())),
        };
        Ok(Value::node(lattice, Label::BOTTOM, body))
    }

    /// The text that `send` puts into a conversation. Source: `docs/calculus.md` §10, serialization.
    pub(crate) fn text(&self, meter: &mut Meter) -> Result<Arc<str>, NotData> {
        if let Kind::Str(s) = &self.kind {
            return if s.len() > meter.limit() { Err(NotData::TooLarge) } else { Ok(s.clone()) };
        }
        let mut out = String::new();
        let written = self.write(&mut out, meter, 0);
        meter.bytes(out.len());
        written.map(|()| out.into())
    }

    fn write(&self, out: &mut String, meter: &mut Meter, depth: usize) -> Result<(), NotData> {
        if depth > MAX_DATA_DEPTH {
            return Err(NotData::TooDeep);
        }
        match &self.kind {
            Kind::Null => out.push_str("null"),
            Kind::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            // INVARIANT: writing to a string does not fail.
            Kind::Num(n) => drop(write!(out, "{n}")),
            Kind::Str(s) if s.len() > meter.limit() => return Err(NotData::TooLarge),
            Kind::Str(s) => quote(out, s),
            Kind::Node(n) => {
                meter.parts(n.body.len())?;
                match &n.body {
                    Body::List(items) => {
                        out.push('[');
                        for (i, v) in items.iter().enumerate() {
                            if i > 0 {
                                out.push(',');
                            }
                            v.write(out, meter, depth + 1)?;
                        }
                        out.push(']');
                    }
                    Body::Record(fields) | Body::Args(_, fields) => {
                        out.push('{');
                        for (i, (name, v)) in fields.iter().enumerate() {
                            if i > 0 {
                                out.push(',');
                            }
                            quote(out, name);
                            out.push(':');
                            v.write(out, meter, depth + 1)?;
                        }
                        out.push('}');
                    }
                    Body::Pair(a, b) => {
                        out.push('(');
                        a.write(out, meter, depth + 1)?;
                        out.push_str(", ");
                        b.write(out, meter, depth + 1)?;
                        out.push(')');
                    }
                    Body::Tag(name, v) => {
                        out.push('`');
                        out.push_str(name);
                        if !matches!(v.kind, Kind::Null) {
                            out.push(' ');
                            v.write(out, meter, depth + 1)?;
                        }
                    }
                    _ => out.push_str("<function>"),
                }
            }
        }
        if out.len() > meter.limit() { Err(NotData::TooLarge) } else { Ok(()) }
    }

    /// A short text that describes the value in a message.
    pub(crate) fn in_brief(&self, most: usize) -> String {
        match self.text(&mut Meter::new(most)) {
            Ok(text) => format!("`{text}`"),
            Err(_) => self.kind().to_string(),
        }
    }

    /// Structural equality of two values without functions; labels do not count.
    pub(crate) fn same(&self, other: &Value, meter: &mut Meter) -> Result<bool, NotData> {
        let mut work = vec![(self, other)];
        while let Some((a, b)) = work.pop() {
            let (m, n) = match (&a.kind, &b.kind) {
                (Kind::Null, Kind::Null) => continue,
                (Kind::Bool(x), Kind::Bool(y)) if x == y => continue,
                (Kind::Num(x), Kind::Num(y)) if x == y => continue,
                (Kind::Str(x), Kind::Str(y)) if x.len() == y.len() => {
                    meter.bytes(x.len());
                    if x == y {
                        continue;
                    }
                    return Ok(false);
                }
                (Kind::Node(m), Kind::Node(n)) => (m, n),
                _ => return Ok(false),
            };
            if std::ptr::eq::<Node>(&**m, &**n) {
                continue;
            }
            match (&m.body, &n.body) {
                (Body::List(x), Body::List(y)) if x.len() == y.len() => {
                    meter.parts(x.len())?;
                    work.extend(x.iter().zip(y.iter()));
                }
                // Records are equal whatever the order of their fields.
                (Body::Record(x) | Body::Args(_, x), Body::Record(y) | Body::Args(_, y))
                    if x.len() == y.len() =>
                {
                    meter.parts(x.len())?;
                    for (name, v) in x.iter() {
                        match y.get(name) {
                            Some(w) => work.push((v, w)),
                            None => return Ok(false),
                        }
                    }
                }
                (Body::Pair(a, b), Body::Pair(c, d)) => {
                    meter.parts(2)?;
                    work.extend([(a, c), (b, d)]);
                }
                (Body::Tag(x, v), Body::Tag(y, w)) if x == y => {
                    meter.parts(1)?;
                    work.push((v, w));
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// A JSON string literal.
fn quote(out: &mut String, s: &str) {
    out.push_str(&serde_json::Value::from(s).to_string());
}

/// A value as a tree with its labels as label values: for printing and for comparison with another
/// evaluator. Functions are opaque.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reified {
    /// The top label.
    pub label: Data,
    /// True if the label is ⊥.
    pub is_bottom: bool,
    /// The value.
    pub kind: ReifiedKind,
}

/// The kinds of [`Reified`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReifiedKind {
    /// A scalar.
    Scalar(Data),
    /// A list.
    List(Vec<Reified>),
    /// A record.
    Record(Vec<(Name, Reified)>),
    /// The arguments of a planned call of the tool of this name.
    Args(Name, Vec<(Name, Reified)>),
    /// A pair.
    Pair(Box<(Reified, Reified)>),
    /// A tag with its payload.
    Tag(Name, Box<Reified>),
    /// A function, with the join of what it captured.
    Function(Data),
    /// Nested too deeply, or too large, to be shown.
    TooDeep,
}

impl Reified {
    pub(crate) fn of(lattice: &Lattice, v: &Value, budget: usize) -> Reified {
        let mut left = budget;
        Reified::at(lattice, v, 0, &mut left)
    }

    fn at(lattice: &Lattice, v: &Value, depth: usize, left: &mut usize) -> Reified {
        let exhausted = depth > MAX_DATA_DEPTH || *left == 0;
        *left = left.saturating_sub(1);
        let mut part = |v: &Value| Reified::at(lattice, v, depth + 1, left);
        let kind = match &v.kind {
            Kind::Null => ReifiedKind::Scalar(Data::Null),
            Kind::Bool(b) => ReifiedKind::Scalar(Data::Bool(*b)),
            Kind::Num(n) => ReifiedKind::Scalar(Data::Num(n.clone())),
            Kind::Str(s) => ReifiedKind::Scalar(Data::Str(s.clone())),
            Kind::Node(_) if exhausted => ReifiedKind::TooDeep,
            Kind::Node(n) => match &n.body {
                Body::List(items) => ReifiedKind::List(items.iter().map(part).collect()),
                Body::Record(fields) => {
                    ReifiedKind::Record(fields.iter().map(|(n, v)| (n.clone(), part(v))).collect())
                }
                Body::Args(tool, fields) => ReifiedKind::Args(
                    tool.name.clone(),
                    fields.iter().map(|(n, v)| (n.clone(), part(v))).collect(),
                ),
                Body::Pair(a, b) => ReifiedKind::Pair(Box::new((part(a), part(b)))),
                Body::Tag(n, v) => ReifiedKind::Tag(n.clone(), Box::new(part(v))),
                _ => ReifiedKind::Function(lattice.data_of(n.deep)),
            },
        };
        Reified { label: lattice.data_of(v.label), is_bottom: v.label == Label::BOTTOM, kind }
    }

    /// The value without labels; `None` if it contains a function.
    pub fn data(&self) -> Option<Data> {
        Some(match &self.kind {
            ReifiedKind::Scalar(d) => d.clone(),
            ReifiedKind::List(items) => Data::List(items.iter().map(Reified::data).collect::<Option<_>>()?),
            ReifiedKind::Record(fields) | ReifiedKind::Args(_, fields) => {
                Data::Record(fields.iter().map(|(n, v)| Some((n.clone(), v.data()?))).collect::<Option<_>>()?)
            }
            ReifiedKind::Pair(p) => Data::Pair(Arc::new((p.0.data()?, p.1.data()?))),
            ReifiedKind::Tag(n, v) => Data::Tag(n.clone(), Arc::new(v.data()?)),
            ReifiedKind::Function(_) | ReifiedKind::TooDeep => return None,
        })
    }
}

impl std::fmt::Display for Reified {
    /// `["U"]:2`, `[1,["S"]:"x"]`: a label is shown where it is not ⊥.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.is_bottom {
            write!(f, "{}:", self.label.to_json())?;
        }
        match &self.kind {
            ReifiedKind::Scalar(Data::Num(n)) => write!(f, "{n}"),
            ReifiedKind::Scalar(d) => write!(f, "{}", d.to_json()),
            ReifiedKind::List(items) => {
                f.write_str("[")?;
                for (i, v) in items.iter().enumerate() {
                    write!(f, "{}{v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            ReifiedKind::Record(fields) | ReifiedKind::Args(_, fields) => {
                if let ReifiedKind::Args(tool, _) = &self.kind {
                    write!(f, "args[{tool}]")?;
                }
                f.write_str("{")?;
                for (i, (n, v)) in fields.iter().enumerate() {
                    write!(f, "{}{n}: {v}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            ReifiedKind::Pair(p) => write!(f, "({}, {})", p.0, p.1),
            ReifiedKind::Tag(n, v) if v.kind == ReifiedKind::Scalar(Data::Null) && v.is_bottom => {
                write!(f, "`{n}")
            }
            ReifiedKind::Tag(n, v) => write!(f, "`{n} {v}"),
            ReifiedKind::Function(_) => f.write_str("<function>"),
            ReifiedKind::TooDeep => f.write_str("…"),
        }
    }
}
