//! Functions followed with values that are not known: what is computed of them stays, as [objects](crate::Object).
//!
//! | Python | object |
//! |---|---|
//! | a comparison, `not`, `and`, `or`, arithmetic | its callee is the operator: `==`, `in`, `not`, `+` |
//! | one of two values by a test | `if`, with the test and both |
//! | `a[i:j]` | the index is a `slice` |
//! | `[*a, b]` | `[*]`, with lists and what is spread |
//! | `[f(x) for x in xs]` | `[for]`, with `xs`, the element and what is made of it; tests of elements follow |
//! | `"…".join(xs)` and other methods of texts | `str.join`, with the text first |
//!
//! Entry point: [`World::trace`]. Under which conditions an object is made says [`World::path`].

use crate::eval::World;
use crate::value::*;
use diagnostics::Span;
use std::sync::Arc;

/// What holds where something happens.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A test that is not decided came out so.
    Test(Value, bool),
    /// It happens for each element of something, which this object stands for.
    Each(ObjectId),
    /// It happens or does not, or more than once.
    Undecided,
}

/// What a function does.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What it gives.
    pub value: Value,
    /// All objects that it made, in order.
    pub objects: Vec<ObjectId>,
}

/// A value with the conditions under which it is the one.
pub(crate) type Under = (Vec<Condition>, Value);

impl World<'_> {
    /// Calls a function of the project and keeps what is computed of values that are not known.
    pub fn trace(&mut self, function: &Value, args: Vec<Arg>) -> Trace {
        let symbolic = std::mem::replace(&mut self.symbolic, true);
        let conditions = std::mem::replace(&mut self.conditions, 0);
        let exploring = std::mem::replace(&mut self.exploring, false);
        let within = std::mem::take(&mut self.within);
        let path = std::mem::take(&mut self.path);
        let first = self.objects().count();
        let value = self.call(function, args);
        let objects = self.objects().skip(first).map(|(id, _)| id).collect();
        self.symbolic = symbolic;
        (self.conditions, self.exploring, self.within, self.path) = (conditions, exploring, within, path);
        Trace { value, objects }
    }

    /// The conditions under which an object was made, outermost first; none if it was not made by [`World::trace`].
    pub fn path(&self, id: ObjectId) -> &[Condition] {
        self.paths.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Something that is computed of values that are not known.
    pub(crate) fn symbol(&mut self, what: &str, of: Vec<Value>, span: Span) -> Value {
        let args = of.into_iter().map(|value| Arg { name: None, span: value.span, value }).collect();
        Value::new(Kind::Object(self.new_object(what.into(), args, None, span, None)), span)
    }

    /// Notes under which conditions an object is made.
    pub(crate) fn note_path(&mut self, id: ObjectId, span: Span) {
        if self.symbolic && !self.path.is_empty() {
            let path = self.path.clone();
            self.step(path.len() / 8, span);
            self.paths.insert(id, path);
        }
    }

    /// The value of which the conditions hold: of several the first.
    pub(crate) fn decided(&mut self, all: Vec<Under>, span: Span) -> Value {
        self.step(1 + all.len(), span);
        if self.exhausted() {
            return Value::unknown("more than is evaluated", span);
        }
        let Some((path, first)) = all.first() else {
            return Value::unknown("one of no values", span);
        };
        let (test, first) = match path.first() {
            None => return first.clone(),
            Some(Condition::Test(test, _)) => (test.clone(), first.clone()),
            Some(_) => {
                let values = all.into_iter().map(|(_, v)| v).collect();
                return self.either(values, span);
            }
        };
        if all.len() == 1 {
            return first;
        }
        let side = |world: &Self, wanted: bool| -> Vec<Under> {
            let kept = all.iter().filter_map(|(path, value)| match path.first() {
                Some(Condition::Test(t, holds)) if world.same(t, &test) => {
                    (*holds == wanted).then(|| (path[1..].to_vec(), value.clone()))
                }
                _ => Some((path.clone(), value.clone())),
            });
            kept.collect()
        };
        let (yes, no) = (side(self, true), side(self, false));
        if yes.is_empty() || no.is_empty() {
            return self.deeply(|w| w.decided(if yes.is_empty() { no } else { yes }, span));
        }
        let yes = self.deeply(|w| w.decided(yes, span));
        let no = self.deeply(|w| w.decided(no, span));
        if self.same(&yes, &no) { yes } else { self.symbol("if", vec![test, yes, no], span) }
    }

    /// The parts of a list of which some are not known.
    pub(crate) fn spread(&mut self, parts: Vec<Result<Value, Value>>, span: Span) -> Value {
        let mut out: Vec<Value> = Vec::new();
        let mut run: Vec<Value> = Vec::new();
        for part in parts {
            match part {
                Ok(item) => run.push(item),
                Err(list) => {
                    if !run.is_empty() {
                        let known = std::mem::take(&mut run);
                        out.push(self.list_value(known, ListKind::List, None, span));
                    }
                    out.push(list);
                }
            }
        }
        if !run.is_empty() {
            out.push(self.list_value(run, ListKind::List, None, span));
        }
        self.symbol("[*]", out, span)
    }

    /// A method of a text, list or dictionary whose result is not known.
    pub(crate) fn computed(&mut self, on: &Value, name: &str, args: Vec<Arg>, span: Span) -> Value {
        let of = match on.kind {
            Kind::List(_) => "list",
            Kind::Dict(_) => "dict",
            _ => "str",
        };
        let callee: Arc<str> = format!("{of}.{}", crate::expr::clip(name)).into();
        let this = Arg { name: None, span: on.span, value: on.clone() };
        let args = std::iter::once(this).chain(args).collect();
        Value::new(Kind::Object(self.new_object(callee, args, None, span, None)), span)
    }
}
