//! Rules that give a value from values: reading, constructors, primitives and choice.
//!
//! Entry points: each rule is a function from the values of the subterms to the value or the error. The
//! instructions call them.
//!
//! Invariant: nothing here looks at a conversation or asks the world.
//!
//! Source: `docs/calculus.md` §3, §10 (reading, constructors, choice, primitives, `check`, `fail`).

use super::{Strand, failure, local};
use crate::meter::Meter;
use crate::prim::{self, PrimError, Small};
use crate::value::{Body, Captures, Kind, NotData, Value};
use crate::{ErrorCode, Failure, Machine};
use core_ir::{Code, Data, Label, Lattice, Num, Operand, Prim, Term, TermId, Type, What, py};
use diagnostics::{Span, clip};
use smallvec::SmallVec;
use std::sync::Arc;

/// An operand of an instruction.
pub(super) enum Held<'a> {
    /// A value on the stack, labeled as it is bound.
    There(&'a Value),
    /// A literal or a definition of the prelude.
    Made(Value),
}

impl std::ops::Deref for Held<'_> {
    type Target = Value;
    #[inline]
    fn deref(&self) -> &Value {
        match self {
            Held::There(value) => value,
            Held::Made(value) => value,
        }
    }
}

/// The value of a term, or its error.
pub(super) type Computed = Result<Value, Box<Failure>>;

/// The place where a rule is applied.
#[derive(Clone, Copy)]
pub(super) struct Env<'a> {
    pub code: &'a Arc<Code>,
    pub pc: Label,
    /// Number of the strand, for errors.
    pub strand: u64,
}

impl Env<'_> {
    fn error<T>(
        &self,
        code: ErrorCode,
        label: Label,
        term: TermId,
        message: impl Into<String>,
    ) -> Result<T, Box<Failure>> {
        Err(failure(self.strand, code, label, self.code.span(term), message.into()))
    }
}

/// The result of a `par` or `each` whose branches gave these values.
pub(super) fn results(lattice: &mut Lattice, pc: Label, values: Vec<Value>) -> Value {
    Value::node(lattice, pc, Body::List(values.into()))
}

impl Machine {
    /// Counts the steps of evaluating this number of terms. Returns false if there is not enough fuel.
    #[inline(always)]
    pub(super) fn step(&mut self, steps: u32) -> bool {
        match self.fuel.checked_sub(u64::from(steps)) {
            Some(fuel) => {
                self.fuel = fuel;
                true
            }
            None => false,
        }
    }

    #[cold]
    pub(super) fn out_of_fuel(&self, s: &mut Strand, pc: Label, span: Span) {
        s.fail(ErrorCode::Fuel, pc, span, format!("still running after {} steps", self.config.fuel));
    }

    /// The value of an operand; a temporary is taken off. A variable that is bound to `l:v` gives
    /// `(pc ⊔ l):v`.
    #[inline]
    pub(super) fn operand(&mut self, s: &mut Strand, code: &Code, operand: Operand) -> Value {
        if operand.is_taken() {
            return s.pop();
        }
        match self.held(s, code, operand) {
            Held::There(value) => value.read(&mut self.lattice, s.pc),
            Held::Made(value) => value,
        }
    }

    /// An operand where it is, for a rule that joins the program counter itself.
    #[inline(always)]
    pub(super) fn held<'a>(&mut self, s: &'a Strand, code: &Code, operand: Operand) -> Held<'a> {
        match operand {
            // INVARIANT: `Instructions::verify` admits operands that are there.
            Operand::Taken(i) | Operand::Local(i) => Held::There(&s.stack[s.base + i as usize]),
            Operand::Global(i) => Held::Made(Value::new(s.pc, Kind::Node(self.global(i)))),
            Operand::Literal(term) => Held::Made(self.literal(code, term, s.pc)),
        }
    }

    /// A literal.
    #[inline]
    fn literal(&mut self, code: &Code, term: TermId, pc: Label) -> Value {
        let Term::Lit(data) = code.term(term) else { unreachable!("a literal") };
        self.charge_data(data);
        Value::literal(&mut self.lattice, pc, data)
    }

    /// A tag without payload.
    pub(super) fn empty_tag(&mut self, at: &Env<'_>, id: TermId) -> Value {
        let Term::Tag(name, _) = at.code.term(id) else { unreachable!("a tag") };
        let body = Body::Tag(name.clone(), Value::new(at.pc, Kind::Null));
        Value::node(&mut self.lattice, at.pc, body)
    }

    /// `λx. e`: the function with what it captures.
    pub(super) fn closure(&mut self, at: &Env<'_>, id: TermId, activation: &[Value]) -> Value {
        let Term::Abs(abs) = at.code.term(id) else { unreachable!("a function") };
        let slots = &at.code.instructions().function(id).captures;
        debug_assert_eq!(slots.len(), abs.captures.len());
        let mut captures = Captures::with_capacity(slots.len());
        for slot in slots.iter() {
            let held = match *slot {
                Operand::Local(i) => activation.get(i as usize),
                _ => None,
            };
            captures.push(self.captured(held, *slot));
        }
        let body = Body::Closure { code: at.code.clone(), term: id, captures };
        Value::node(&mut self.lattice, at.pc, body)
    }

    /// A value that a function captures, with the label that it is bound with.
    #[inline]
    pub(super) fn captured(&mut self, held: Option<&Value>, slot: Operand) -> Value {
        match (held, slot) {
            (Some(value), _) => value.clone(),
            (None, Operand::Global(i)) => Value::new(Label::BOTTOM, Kind::Node(self.global(i))),
            // INVARIANT: `Builder::finish` resolves variables to slots that are there.
            (None, _) => unreachable!("a captured variable"),
        }
    }

    /// A record, list or arguments of a planned call of these parts.
    pub(super) fn structure(&mut self, at: &Env<'_>, id: TermId, parts: Vec<Value>) -> Value {
        let body = match at.code.term(id) {
            Term::Record(fields) if fields.is_empty() => return Value::unit(at.pc),
            Term::Record(fields) => Body::Record(fields.iter().map(|(n, _)| n.clone()).zip(parts).collect()),
            Term::Args(tool, fields) => {
                let fields = fields.iter().map(|(n, _)| n.clone()).zip(parts).collect();
                Body::Args(at.code.tool(*tool).clone(), fields)
            }
            _ => Body::List(parts.into()),
        };
        Value::node(&mut self.lattice, at.pc, body)
    }

    /// `prim p e…`: `(pc ⊔ ⨆ deep Vᵢ):r`, and less where only constructors are looked at.
    #[inline]
    pub(super) fn primitive(&mut self, at: &Env<'_>, id: TermId, prim: Prim, args: &[&Value]) -> Computed {
        if matches!(prim, Prim::Length | Prim::Keys | Prim::Has | Prim::Py)
            && let Some(result) = self.of_constructor(at.pc, prim, args)
        {
            return Ok(result);
        }
        let deep: SmallVec<[Label; 4]> = args.iter().map(|arg| self.deep(arg)).collect();
        let label = self.of_operands(at.pc, deep);
        let mut meter = self.meter();
        let result = prim::apply(&mut self.lattice, prim, args, &mut meter);
        self.charge(meter.steps());
        match result {
            Ok(kind) => Ok(Value::new(label, kind)),
            Err(error) => no_result(at, id, label, error),
        }
    }

    /// The label of what a primitive gives of operands with these deep labels.
    #[inline(always)]
    fn of_operands(&mut self, pc: Label, deep: impl IntoIterator<Item = Label>) -> Label {
        deep.into_iter().fold(pc, |label, deep| self.lattice.join(label, deep))
    }

    /// `prim p e e` of two machine integers with a small result; `None` for all else, which
    /// [`Machine::primitive`] is for. Such values are not moved, and count nothing beyond the step of the
    /// term.
    #[inline(always)]
    pub(super) fn of_integers(
        &mut self,
        s: &Strand,
        code: &Code,
        prim: Prim,
        (a, b): (Operand, Operand),
    ) -> Option<(Label, Small)> {
        let (label, x) = s.integer(code, a)?;
        let (other, y) = s.integer(code, b)?;
        let result = prim::integers(prim, x, y)?;
        Some((self.of_operands(s.pc, [label, other]), result))
    }

    /// A primitive that looks at the constructor of its operand: at how many items or which fields there are.
    /// `None` for every other, and where there is no result.
    fn of_constructor(&mut self, pc: Label, prim: Prim, args: &[&Value]) -> Option<Value> {
        let (of, label) = match (prim, args) {
            (Prim::Length | Prim::Keys, [of]) => (*of, pc),
            (Prim::Has, [of, key]) => (*of, key.deep_label_in(&mut self.lattice, pc)),
            (Prim::Py, [op, of, rest @ ..]) => return self.of_python_constructor(pc, op, of, rest),
            _ => return None,
        };
        let body = of.body().filter(|b| matches!(b, Body::List(_)) || b.as_record().is_some())?;
        if matches!(body, Body::List(_)) && prim != Prim::Length {
            return None;
        }
        let label = self.lattice.join(label, of.label);
        let mut meter = self.meter();
        let result = prim::apply(&mut self.lattice, prim, args, &mut meter);
        self.charge(meter.steps());
        Some(Value::new(label, result.ok()?))
    }

    /// The same for the operations of Python: `len`, and those that give a part, which keeps its label.
    fn of_python_constructor(&mut self, pc: Label, op: &Value, of: &Value, rest: &[&Value]) -> Option<Value> {
        let Kind::Str(name) = &op.kind else { return None };
        let label = self.lattice.join(pc, op.label);
        let label = self.lattice.join(label, of.label);
        if &**name == "b.len" {
            let (Some(Body::List(args)), [named]) = (of.body(), rest) else { return None };
            let only = args.get(0).filter(|_| args.len() == 1)?;
            let body = only.body()?;
            let Some(Body::Record(none)) = named.body() else { return None };
            if !none.is_empty() {
                return None;
            }
            let label = self.lattice.join(label, named.label);
            if let Some(fields) = body.as_record().filter(|fields| fields.get(py::CLASS).is_some()) {
                // What is raised is told by a record of the same form.
                let form = Data::record(fields.iter().map(|(n, _)| (n.clone(), Data::Null)));
                self.charge(fields.len() as u64);
                let operands = [Data::list([form]), Data::record([])];
                let told = py::apply(name, &operands, self.config.max_text).ok()?;
                let label = self.lattice.join(label, only.label);
                return Some(Value::from_data(&mut self.lattice, label, &told));
            }
            let length = self.of_constructor(label, Prim::Length, &[only])?;
            return Some(self.ok(length.label, Value::new(Label::BOTTOM, length.kind)));
        }
        if !matches!(&**name, "iter" | "index" | "attribute") {
            return None;
        }
        // A part is given as it is: what it is like is not looked at, and must not decide the label.
        let body = of.body()?;
        let key = rest.first().map_or(Label::BOTTOM, |key| key.deep_label(&mut self.lattice));
        let label = self.lattice.join(label, key);
        let part = match (&**name, body, rest) {
            ("iter", Body::List(_), []) => Value::new(Label::BOTTOM, of.kind.clone()),
            ("index", Body::List(items), [Value { kind: Kind::Num(i), .. }])
                if let Some(item) = i.to_usize().and_then(|i| items.get(i)) =>
            {
                item.clone()
            }
            ("iter" | "index" | "attribute", _, [] | [_]) => {
                // Which part it is, or why there is none, is told by a container of the same form that holds
                // numbers.
                let (parts, form): (Vec<&Value>, Data) = match body {
                    Body::List(items) => (items.iter().collect(), Data::list((0..items.len()).map(number))),
                    body => {
                        let Body::Record(fields) = body else { return None };
                        let names = fields.iter().enumerate().map(|(i, (n, _))| (n.clone(), number(i)));
                        (fields.iter().map(|(_, v)| v).collect(), Data::record(names))
                    }
                };
                self.charge(parts.len() as u64);
                let mut operands = vec![form];
                for key in rest {
                    operands.push(self.data(key).ok()?);
                }
                match py::apply(name, &operands, self.config.max_text).ok()? {
                    Data::Tag(ok, at) if &*ok == "ok" && !rest.is_empty() => match &*at {
                        Data::Num(at) => (*parts.get(at.to_usize()?)?).clone(),
                        _ => return None,
                    },
                    // The names of a record, or what is raised.
                    told => return Some(Value::from_data(&mut self.lattice, label, &told)),
                }
            }
            _ => return None,
        };
        Some(self.ok(label, part))
    }

    /// `` `ok v ``.
    fn ok(&mut self, label: Label, v: Value) -> Value {
        Value::node(&mut self.lattice, label, Body::Tag("ok".into(), v))
    }

    /// A condition decides: the program counter of the branch, and whether it is the first.
    #[inline(always)]
    pub(super) fn decided(
        &mut self,
        at: &Env<'_>,
        id: TermId,
        condition: &Value,
    ) -> Result<(Label, bool), Box<Failure>> {
        match condition.kind {
            Kind::Bool(first) => Ok((self.raised_pc(at, id, condition.label), first)),
            _ => self.undecided(at, id, condition),
        }
    }

    #[cold]
    fn undecided<T>(&mut self, at: &Env<'_>, id: TermId, condition: &Value) -> Result<T, Box<Failure>> {
        let label = self.blame(at.pc, condition);
        let message = format!("a condition must be a boolean, found {}", condition.kind());
        at.error(ErrorCode::Type, label, id, message)
    }

    /// The program counter of a branch that a value of this label decides.
    #[inline(always)]
    pub(super) fn raised_pc(&mut self, at: &Env<'_>, id: TermId, by: Label) -> Label {
        let by = self.raised(by, at.pc, What::Decided, || at.code.span(id));
        self.lattice.join(at.pc, by)
    }

    /// `e.f`, `fst e` and `snd e`: a part of a value.
    #[inline]
    pub(super) fn part(&mut self, at: &Env<'_>, id: TermId, v: &Value) -> Computed {
        let read = v.label_read(&mut self.lattice, at.pc);
        match at.code.term(id) {
            Term::Field(_, name) => {
                let found = match v.body() {
                    Some(Body::Record(fields)) => fields.get(name),
                    _ => None,
                };
                match found {
                    Some(field) => Ok(field.read(&mut self.lattice, read)),
                    None => {
                        let label = self.blame(at.pc, v);
                        at.error(ErrorCode::Index, label, id, missing_field(v, name))
                    }
                }
            }
            Term::Fst(_) | Term::Snd(_) => {
                let is_first = matches!(at.code.term(id), Term::Fst(_));
                let Some(Body::Pair(a, b)) = v.body() else {
                    let label = self.blame(at.pc, v);
                    let what = if is_first { "fst" } else { "snd" };
                    let message = format!("`{what}` needs a pair, found {}", v.kind());
                    return at.error(ErrorCode::Index, label, id, message);
                };
                let side = if is_first { a } else { b };
                Ok(side.read(&mut self.lattice, read))
            }
            // INVARIANT: `Op::Part` is of one of these.
            _ => unreachable!("a part"),
        }
    }

    /// `e.[e]`: an item of a list or text, or a field of a record.
    #[inline]
    pub(super) fn item(&mut self, at: &Env<'_>, id: TermId, of: &Value, key: &Value) -> Computed {
        let label = self.lattice.join(of.label, key.label);
        let label = self.lattice.join(label, at.pc);
        let found = match (of.body(), &of.kind, &key.kind) {
            (Some(Body::List(items)), _, Kind::Num(i)) => {
                i.to_usize().and_then(|i| items.get(i)).map(|p| p.read(&mut self.lattice, label))
            }
            (Some(Body::Record(fields)), _, Kind::Str(name)) => {
                self.charge_text(name);
                fields.get(name).map(|p| p.read(&mut self.lattice, label))
            }
            (_, Kind::Str(text), Kind::Num(i)) => {
                // Found from the front.
                let found = i.to_usize().and_then(|i| text.char_indices().nth(i));
                let looked_at = found.map_or(text.len(), |(start, _)| start);
                self.charge_text(&text[..looked_at]);
                found.map(|(_, c)| Value::str(label, c.to_string()))
            }
            _ => None,
        };
        match found {
            Some(value) => Ok(value),
            None => {
                let shown = key.in_brief(100);
                let message = format!("{} has nothing at {shown}", of.kind());
                let a = self.blame(at.pc, of);
                let b = self.deep(key);
                let label = self.lattice.join(a, b);
                at.error(ErrorCode::Index, label, id, message)
            }
        }
    }

    /// The rules of forms with one subterm that computes.
    pub(super) fn unary(&mut self, at: &Env<'_>, id: TermId, v: Value) -> Computed {
        match at.code.term(id) {
            Term::Tag(name, _) => Ok(Value::node(&mut self.lattice, at.pc, Body::Tag(name.clone(), v))),
            Term::Classify(tags, _) => {
                let tag = match (&v.kind, v.body()) {
                    (Kind::Str(text), _) => {
                        self.charge_text(text);
                        prim::classify(text, tags)
                    }
                    (_, Some(Body::Tag(name, _))) => tags.iter().find(|t| *t == name),
                    _ => None,
                };
                let label = self.blame(at.pc, &v);
                match tag.cloned() {
                    Some(tag) => {
                        let body = Body::Tag(tag, Value::new(Label::BOTTOM, Kind::Null));
                        Ok(Value::node(&mut self.lattice, label, body))
                    }
                    None => {
                        let shown = match prim::as_str(&v) {
                            Some(text) => format!("`{}`", clip(text)),
                            None => v.kind().to_string(),
                        };
                        let names: Vec<&str> = tags.iter().map(|t| &**t).collect();
                        let message = format!("{shown} is none of {}", names.join(", "));
                        at.error(ErrorCode::Classify, label, id, message)
                    }
                }
            }
            Term::Fix { bound, .. } => Ok(Value::node(&mut self.lattice, at.pc, Body::Fix(*bound, v))),
            Term::Llm(_, params) => {
                if !matches!(v.kind, Kind::Str(_)) {
                    let label = self.blame(at.pc, &v);
                    let message = format!("a prompt must be a string, found {}", v.kind());
                    return at.error(ErrorCode::Type, label, id, message);
                }
                let body = Body::Llm { prompt: v, params: params.clone(), code: at.code.clone(), term: id };
                Ok(Value::node(&mut self.lattice, at.pc, body))
            }
            Term::Fail(_) => {
                let label = self.blame(at.pc, &v);
                match self.text(&v) {
                    Ok(text) => at.error(ErrorCode::Fail, label, id, &*text),
                    Err(e) => at.error(e.code(ErrorCode::Type), label, id, e.message()),
                }
            }
            Term::Check(what, ty, _) => {
                let problem = match self.data(&v) {
                    Ok(data) => self
                        .checked(ty, &data)
                        .err()
                        .map(|(path, cause)| (ErrorCode::Type, format!("{what}: {path}: {cause}"))),
                    Err(NotData::Function) => {
                        let message = format!("{what}: expected {}, found a function", ty.in_words());
                        Some((ErrorCode::Type, message))
                    }
                    Err(e) => Some((ErrorCode::Limit, e.message())),
                };
                match problem {
                    None => Ok(v),
                    Some((code, message)) => {
                        let label = self.blame(at.pc, &v);
                        at.error(code, label, id, message)
                    }
                }
            }
            // INVARIANT: callers have the value of the only subterm of one of these.
            _ => unreachable!("a term with one subterm"),
        }
    }

    /// The rules of forms with two subterms that compute.
    pub(super) fn binary(&mut self, at: &Env<'_>, id: TermId, first: Value, v: Value) -> Computed {
        match at.code.term(id) {
            Term::Pair(..) => Ok(Value::node(&mut self.lattice, at.pc, Body::Pair(first, v))),
            Term::With(_, name, _) => {
                let Some(Body::Record(fields)) = first.body() else {
                    let label = self.blame(at.pc, &first);
                    let message = format!("a field can be set in a record only, found {}", first.kind());
                    return at.error(ErrorCode::Index, label, id, message);
                };
                let fields = fields.with(name, v);
                self.charge(fields.len() as u64);
                Ok(Value::node(&mut self.lattice, first.label, Body::Record(fields)))
            }
            // INVARIANT: callers have the values of the two subterms of one of these.
            _ => unreachable!("a term with two subterms"),
        }
    }

    /// A label that something raises to. If it does raise it, and origins are kept, this step is where it
    /// comes from.
    #[inline]
    pub(super) fn raised(&mut self, by: Label, to: Label, what: What, span: impl FnOnce() -> Span) -> Label {
        if self.lattice.keeps_origins() { self.raised_by(by, to, what, span()) } else { by }
    }

    #[cold]
    fn raised_by(&mut self, by: Label, to: Label, what: What, span: Span) -> Label {
        if self.lattice.flows(by, to) {
            return by;
        }
        self.lattice.mark(by, by, Label::BOTTOM, || local(what, span))
    }

    pub(super) fn deep(&mut self, v: &Value) -> Label {
        v.deep_label(&mut self.lattice)
    }

    /// `pc ⊔ deep V`, the label of most errors.
    pub(super) fn blame(&mut self, pc: Label, v: &Value) -> Label {
        let deep = self.deep(v);
        self.lattice.join(pc, deep)
    }

    /// Uses fuel in proportion to what is copied or looked at.
    pub(super) fn charge(&mut self, steps: u64) {
        self.fuel = self.fuel.saturating_sub(steps);
    }

    /// Uses fuel for a text that is copied or looked at.
    #[inline]
    pub(super) fn charge_text(&mut self, text: &str) {
        self.charge(text.len() as u64 / 16);
    }

    /// A meter for the work of one rule.
    #[inline]
    pub(super) fn meter(&self) -> Meter {
        Meter::new(self.config.max_text)
    }

    /// `strip V` as data. Its parts count.
    pub(super) fn data(&mut self, v: &Value) -> Result<Data, NotData> {
        let mut meter = self.meter();
        let data = v.to_data(&mut meter);
        self.charge(meter.steps());
        data
    }

    /// The text that represents a value. What is written counts.
    pub(super) fn text(&mut self, v: &Value) -> Result<Arc<str>, NotData> {
        let mut meter = self.meter();
        let text = v.text(&mut meter);
        self.charge(meter.steps());
        text
    }

    /// Checks that data has a type. What is looked at counts. On failure, the path and the cause.
    pub(super) fn checked(&mut self, ty: &Type, data: &Data) -> Result<(), (String, String)> {
        let mut steps = 0;
        let checked = ty.check_counting(data, &mut steps);
        self.charge(steps);
        checked
    }

    /// Data from the world, or a literal, as a value. Its parts count.
    pub(super) fn charge_data(&mut self, data: &Data) {
        if let Data::List(_) | Data::Record(_) | Data::Pair(_) | Data::Tag(..) = data {
            let mut meter = self.meter();
            meter.data(data);
            self.charge(meter.steps());
        }
    }
}

/// The error of a primitive.
#[cold]
fn no_result(at: &Env<'_>, id: TermId, label: Label, error: PrimError) -> Computed {
    let (code, message) = match error {
        PrimError::Wrong(message) => (ErrorCode::Prim, message),
        PrimError::Limit(message) => (ErrorCode::Limit, message),
        PrimError::Unknown(message) => (ErrorCode::Unknown, message),
    };
    at.error(code, label, id, message)
}

impl NotData {
    /// The kind of error that this is where a function is an error of the given kind.
    pub(super) fn code(self, function: ErrorCode) -> ErrorCode {
        if self == NotData::Function { function } else { ErrorCode::Limit }
    }
}

fn missing_field(v: &Value, name: &str) -> String {
    match v.body() {
        Some(Body::Record(fields)) => {
            let have: Vec<&str> = fields.iter().take(12).map(|(n, _)| &**n).collect();
            format!(
                "no field `{name}`; there is {}",
                if have.is_empty() { "none".into() } else { have.join(", ") }
            )
        }
        _ => format!("no field `{name}` in {}", v.kind()),
    }
}

fn number(n: usize) -> Data {
    Data::Num(Num::from(n as i64))
}
