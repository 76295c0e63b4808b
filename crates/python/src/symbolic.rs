//! Functions followed with values that are not known: what is computed of them stays, as
//! [objects](crate::Object).
//!
//! | Python | object |
//! |---|---|
//! | a comparison, `not`, `and`, `or`, arithmetic | its callee is the operator: `==`, `in`, `not`, `+` |
//! | one of two values by a test | `if`, with the test and both |
//! | `a[i:j]` | the index is a `slice` |
//! | `[*a, b]` | `[*]`, with lists and what is spread |
//! | `if t: xs.append(a)` | `[*]`, with the list and `if t` the one item or none |
//! | `[f(x) for x in xs]` | `[for]`, with `xs`, the element and what is made of it; tests of elements follow |
//! | `"…".join(xs)` and other methods of texts | `str.join`, with the text first |
//!
//! Entry point: [`World::trace`]. Under which conditions an object is made says [`World::path`].

use crate::eval::World;
use crate::value::*;
use diagnostics::Span;
use std::sync::Arc;

/// A condition on the path to an object.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A test that is not decided came out so.
    Test(Value, bool),
    /// It happens for each element of something, which this object represents.
    Each(ObjectId),
    /// It happens in the iterations of a loop over something, one for each element, which this object
    /// represents; what names have after the loop is not known.
    Loop(ObjectId),
    /// It happens or does not, or more than once.
    Undecided,
}

/// Result of a [traced](World::trace) call.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Return value.
    pub value: Value,
    /// All objects that it made, in order.
    pub objects: Vec<ObjectId>,
}

/// A value with the conditions under which it is the one.
pub(crate) type Guarded = (Vec<Condition>, Value);

impl World<'_> {
    /// Calls a function of the project and keeps what is computed of values that are not known.
    pub fn trace(&mut self, function: &Value, args: Vec<Arg>) -> Trace {
        let symbolic = std::mem::replace(&mut self.symbolic, true);
        let conditions = std::mem::replace(&mut self.conditions, 0);
        let exploring = std::mem::replace(&mut self.exploring, false);
        let within = std::mem::take(&mut self.within);
        let path = std::mem::take(&mut self.path);
        let operands = std::mem::take(&mut self.operands);
        let first = self.own.objects.len();
        let value = self.run_to_fixpoint(function.span, |w| w.call(function, args.clone()));
        let made = self.own_objects(first).map(|(id, _)| id);
        let objects = made.filter(|id| !self.is_discarded(*id)).collect();
        (self.symbolic, self.operands) = (symbolic, operands);
        (self.conditions, self.exploring, self.within, self.path) = (conditions, exploring, within, path);
        Trace { value, objects }
    }

    /// The conditions under which an object was made, outermost first; none if it was not made by
    /// [`World::trace`].
    pub fn path(&self, id: ObjectId) -> &[Condition] {
        self.paths.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Returns true if an object was made in an operand of `and` or `or` that may be skipped. Its path
    /// doesn't say so.
    pub fn is_optional(&self, id: ObjectId) -> bool {
        self.optional.contains(&id)
    }

    /// Makes an object for an operation on unknown values.
    pub(crate) fn symbolic(&mut self, what: &str, of: Vec<Value>, span: Span) -> Value {
        let args = of.into_iter().map(|value| Arg { name: None, span: value.span, value }).collect();
        Value::new(PyKind::Object(self.new_object(what.into(), args, None, span, None)), span)
    }

    /// Notes under which conditions an object is made.
    pub(crate) fn note_path(&mut self, id: ObjectId, span: Span) {
        if self.symbolic && self.operands > 0 {
            self.optional.insert(id);
        }
        if self.symbolic && !self.path.is_empty() {
            let path = self.path.clone();
            self.step(path.len() / 8, span);
            self.paths.insert(id, path);
        }
    }

    /// The value of which the conditions hold: of several the first.
    pub(crate) fn merge_guarded(&mut self, all: Vec<Guarded>, span: Span) -> Value {
        self.step(1 + all.len(), span);
        if self.exhausted() {
            return Value::unknown("a value beyond the evaluation limit", span);
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
        let side = |world: &Self, wanted: bool| -> Vec<Guarded> {
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
            return self.with_stack(|w| w.merge_guarded(if yes.is_empty() { no } else { yes }, span));
        }
        let yes = self.with_stack(|w| w.merge_guarded(yes, span));
        let no = self.with_stack(|w| w.merge_guarded(no, span));
        if self.same(&yes, &no) {
            return yes;
        }
        match self.merge_lists(&test, &yes, &no, span) {
            Some(list) => list,
            None => self.symbolic("if", vec![test, yes, no], span),
        }
    }

    /// Two lists that begin alike: what both begin with, and one of two ends. A list that grows under one
    /// test after the other is as long as what is added to it that way.
    fn merge_lists(&mut self, test: &Value, yes: &Value, no: &Value, span: Span) -> Option<Value> {
        // One test decides between two lists as they are.
        if !self.is_concatenation(yes) && !self.is_concatenation(no) {
            return None;
        }
        let (mut yes, mut no) = (self.list_parts(yes)?, self.list_parts(no)?);
        self.step(yes.len() + no.len(), span);
        let alike = |(a, b): &(&Result<Value, Value>, &Result<Value, Value>)| match (a, b) {
            (Ok(a), Ok(b)) | (Err(a), Err(b)) => self.same(a, b),
            _ => false,
        };
        let begin = yes.iter().zip(&no).take_while(alike).count();
        if begin == 0 {
            return None;
        }
        let ends = [yes.split_off(begin), no.split_off(begin)].map(|end| self.list_of_parts(end, span));
        let [first, second] = ends;
        let end = self.symbolic("if", vec![test.clone(), first, second], span);
        yes.push(Err(end));
        Some(self.concatenation(yes, span))
    }

    /// Returns true if a value is a concatenation of lists.
    fn is_concatenation(&self, list: &Value) -> bool {
        matches!(list.kind, PyKind::Object(id) if self.object(id).base.is_none() && &*self.object(id).callee == "[*]")
    }

    /// Returns the parts of a list: known items as `Ok`, lists that aren't known as `Err`.
    fn list_parts(&self, list: &Value) -> Option<Vec<Result<Value, Value>>> {
        let known = |id: &ListId| {
            let list = self.list(*id);
            let plain =
                list.kind == ListKind::List && list.open.is_none() && list.items.iter().all(|i| !i.maybe);
            plain.then(|| list.items.iter().cloned().map(Ok))
        };
        match &list.kind {
            PyKind::List(id) => Some(known(id)?.collect()),
            PyKind::Object(id) => {
                let object = self.object(*id);
                if object.base.is_none() && matches!(&*object.callee, "if" | "[for]") {
                    return Some(vec![Err(list.clone())]);
                }
                if !self.is_concatenation(list) {
                    return None;
                }
                let mut out = Vec::new();
                for arg in &object.args {
                    match &arg.value.kind {
                        PyKind::List(id) if known(id).is_some() => out.extend(known(id)?),
                        _ => out.push(Err(arg.value.clone())),
                    }
                }
                Some(out)
            }
            _ => None,
        }
    }

    /// A list of items and of lists that are not known.
    pub(crate) fn list_of_parts(&mut self, parts: Vec<Result<Value, Value>>, span: Span) -> Value {
        if parts.iter().all(Result::is_ok) {
            let items = parts.into_iter().filter_map(Result::ok).collect();
            return self.list_value(items, ListKind::List, None, span);
        }
        self.concatenation(parts, span)
    }

    /// The parts of a list of which some are not known.
    pub(crate) fn concatenation(&mut self, parts: Vec<Result<Value, Value>>, span: Span) -> Value {
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
        self.symbolic("[*]", out, span)
    }

    /// A method of a text, list or dictionary whose result is not known.
    pub(crate) fn symbolic_method(&mut self, on: &Value, name: &str, args: Vec<Arg>, span: Span) -> Value {
        let of = match on.kind {
            PyKind::List(_) => "list",
            PyKind::Dict(_) => "dict",
            _ => "str",
        };
        let callee: Arc<str> = format!("{of}.{}", crate::expr::clip(name)).into();
        let this = Arg { name: None, span: on.span, value: on.clone() };
        let args = std::iter::once(this).chain(args).collect();
        Value::new(PyKind::Object(self.new_object(callee, args, None, span, None)), span)
    }
}
