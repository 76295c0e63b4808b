//! Expressions.

use crate::eval::{Context, World};
use crate::stmt::is_constant;
use crate::symbolic::Condition;
use crate::value::*;
use diagnostics::Span;
use ruff_python_ast::{self as ast, Expr, FStringPart, InterpolatedStringElement, Number};
use ruff_text_size::Ranged;
use std::collections::HashSet;
use std::sync::Arc;

/// Names that Python defines by itself.
const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "ascii",
    "bin",
    "bool",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "delattr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "property",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
    "__import__",
    "Exception",
    "BaseException",
    "ValueError",
    "TypeError",
    "KeyError",
    "IndexError",
    "RuntimeError",
    "ImportError",
    "ModuleNotFoundError",
    "FileNotFoundError",
    "OSError",
    "NotImplementedError",
    "StopIteration",
    "TimeoutError",
    "ConnectionError",
    "PermissionError",
    "AttributeError",
    "KeyboardInterrupt",
    "SystemExit",
    "ZeroDivisionError",
    "NotImplemented",
    "Ellipsis",
];

/// Parts of a container that a selection by an unknown key is one of.
const MAX_SELECTED: usize = 64;

/// Classes that are looked at for what a class derives from.
pub(crate) const MAX_BASES: usize = 64;

/// Items that a value is known to hold, and where more may be.
pub(crate) type Items = (Vec<Value>, Option<Span>);

impl<'a> World<'a> {
    pub(crate) fn expr(&mut self, e: &'a Expr, at: Context) -> Value {
        let span = self.span(at.module, e.range());
        if !self.step(1, span) {
            return Value::unknown("a value beyond the evaluation limit", span);
        }
        self.with_stack(|w| w.expression(e, span, at))
    }

    fn expression(&mut self, e: &'a Expr, span: Span, at: Context) -> Value {
        let kind = match e {
            Expr::NoneLiteral(_) => PyKind::None,
            Expr::BooleanLiteral(b) => PyKind::Bool(b.value),
            Expr::NumberLiteral(n) => match &n.value {
                Number::Int(i) => match i.as_i64() {
                    Some(i) => PyKind::Int(i),
                    None => PyKind::Unknown("a very large number".into()),
                },
                Number::Float(f) => PyKind::Float(*f),
                Number::Complex { .. } => PyKind::Unknown("a complex number".into()),
            },
            Expr::StringLiteral(s) => self.text_kind(s.value.to_str().into(), span),
            Expr::BytesLiteral(_) => PyKind::Unknown("bytes".into()),
            Expr::EllipsisLiteral(_) => PyKind::External("builtins.Ellipsis".into()),
            Expr::FString(f) => return self.fstring(f, span, at),
            Expr::TString(_) => PyKind::Unknown("a template string".into()),
            Expr::Name(n) => return self.name(n.id.as_str(), span, at),
            Expr::Attribute(a) => {
                let on = self.expr(&a.value, at);
                return self.attribute(&on, a.attr.id.as_str(), span);
            }
            Expr::Subscript(s) => {
                let on = self.expr(&s.value, at);
                if let (Expr::Slice(slice), false) = (&*s.slice, self.symbolic) {
                    return self.slice(&on, slice, span, at);
                }
                let key = self.expr(&s.slice, at);
                return self.subscript(&on, key, span);
            }
            Expr::Call(c) => return self.call_expr(c, span, at),
            Expr::List(l) => return self.collection(&l.elts, ListKind::List, span, at),
            Expr::Tuple(l) => return self.collection(&l.elts, ListKind::Tuple, span, at),
            Expr::Set(l) => return self.collection(&l.elts, ListKind::Set, span, at),
            Expr::Dict(d) => return self.dictionary(d, span, at),
            Expr::ListComp(c) => {
                return self.comprehension(&[&c.elt], &c.generators, ListKind::List, span, at);
            }
            Expr::SetComp(c) => return self.comprehension(&[&c.elt], &c.generators, ListKind::Set, span, at),
            Expr::Generator(c) => {
                return self.comprehension(&[&c.elt], &c.generators, ListKind::List, span, at);
            }
            Expr::DictComp(c) => {
                let Some(key) = &c.key else { return Value::unknown("a dictionary of dictionaries", span) };
                let pairs = self.comprehension(&[key, &c.value], &c.generators, ListKind::List, span, at);
                let dict = self.add_dict(Dict::default());
                match self.iterate(&pairs) {
                    Some((pairs, open)) => {
                        self.dict_mut(dict).open = open;
                        for pair in pairs {
                            if let Some((mut kv, _)) = self.iterate(&pair)
                                && kv.len() == 2
                            {
                                let value = kv.remove(1);
                                self.put(dict, kv.remove(0), Value { maybe: pair.maybe, ..value });
                            }
                        }
                    }
                    None => self.dict_mut(dict).open = Some(span),
                }
                PyKind::Dict(dict)
            }
            Expr::BinOp(b) => {
                let left = self.expr(&b.left, at);
                let right = self.expr(&b.right, at);
                return self.binary(&left, b.op, &right, span);
            }
            Expr::UnaryOp(u) => {
                let value = self.expr(&u.operand, at);
                match (u.op, &value.kind) {
                    (ast::UnaryOp::Not, _) => match self.truth(&value) {
                        Some(b) => PyKind::Bool(!b),
                        None if self.symbolic => return self.symbolic("not", vec![value], span),
                        None => PyKind::Unknown("an undecided test".into()),
                    },
                    (ast::UnaryOp::USub, PyKind::Int(n)) => match n.checked_neg() {
                        Some(n) => PyKind::Int(n),
                        None => PyKind::Unknown("a very large number".into()),
                    },
                    (ast::UnaryOp::USub, PyKind::Float(f)) => PyKind::Float(-f),
                    (ast::UnaryOp::UAdd, PyKind::Int(_) | PyKind::Float(_)) => value.kind,
                    (ast::UnaryOp::USub, _) if self.symbolic => {
                        return self.symbolic("neg", vec![value], span);
                    }
                    _ => PyKind::Unknown("a computed value".into()),
                }
            }
            Expr::BoolOp(b) => return self.bool_op(b, span, at),
            Expr::Compare(c) => return self.compare(c, span, at),
            Expr::If(i) => {
                let test = self.expr(&i.test, at);
                match self.truth(&test) {
                    Some(true) => return self.expr(&i.body, at),
                    Some(false) => return self.expr(&i.orelse, at),
                    None => {
                        self.conditions += 1;
                        let here = self.path.len();
                        self.path.push(Condition::Test(test.clone(), true));
                        let yes = self.expr(&i.body, at);
                        self.path.truncate(here);
                        self.path.push(Condition::Test(test.clone(), false));
                        let no = self.expr(&i.orelse, at);
                        self.path.truncate(here);
                        self.conditions -= 1;
                        if self.symbolic && !self.same(&yes, &no) {
                            return self.symbolic("if", vec![test, yes, no], span);
                        }
                        return self.either(vec![yes, no], span);
                    }
                }
            }
            Expr::Lambda(l) => {
                let params = l.parameters.as_deref().map_or(Vec::new(), |p| self.params(p, at)).into();
                let closure = if self.scope(at.scope).is_class { self.scope(at.scope).parent } else { None };
                let function = Function {
                    name: "<lambda>".into(),
                    qualified: format!("{}.<lambda>", self.source(at.module).module_name()).into(),
                    params,
                    returns: None,
                    doc: None,
                    decorators: Arc::default(),
                    span,
                    name_span: span,
                    is_async: false,
                    class: None,
                    module: at.module,
                    body: Body::Expr(&l.body),
                    closure: closure.unwrap_or(at.scope),
                    names: l.parameters.as_deref().map_or(Vec::new(), World::parameter_names).into(),
                    entered: false,
                    called: 0,
                    repeated: false,
                };
                PyKind::Function(self.add_function(function))
            }
            Expr::Named(n) => {
                let value = self.expr(&n.value, at);
                self.assign(&n.target, value.clone(), at);
                return value;
            }
            Expr::Await(a) => return self.expr(&a.value, at),
            Expr::Starred(s) => {
                self.expr(&s.value, at);
                PyKind::Unknown("a list in pieces".into())
            }
            Expr::Yield(y) => {
                if let Some(v) = &y.value {
                    let value = self.expr(v, at);
                    // What a generator yields is what the loop around its call sees, or one of it.
                    self.record_return(value);
                    self.yields.last_mut().into_iter().for_each(|y| *y = true);
                }
                PyKind::Unknown("a value sent to a generator".into())
            }
            Expr::YieldFrom(y) => {
                self.expr(&y.value, at);
                PyKind::Unknown("the result of a generator".into())
            }
            Expr::Slice(s) => {
                let mut parts = Vec::new();
                for part in [&s.lower, &s.upper, &s.step] {
                    parts.push(part.as_ref().map_or(Value::new(PyKind::None, span), |p| self.expr(p, at)));
                }
                if self.symbolic {
                    return self.symbolic("slice", parts, span);
                }
                PyKind::Unknown("a slice".into())
            }
            Expr::IpyEscapeCommand(_) => PyKind::Unknown("a command of a notebook".into()),
        };
        Value::new(kind, span)
    }

    /// A known text, unless too much text was made.
    pub(crate) fn text_kind(&mut self, text: Arc<str>, span: Span) -> PyKind {
        self.text = self.text.saturating_add(text.len());
        if self.text > self.limits.text {
            self.step(0, span);
            return PyKind::Unknown("text beyond the evaluation limit".into());
        }
        PyKind::Str(text)
    }

    fn fstring(&mut self, f: &'a ast::ExprFString, span: Span, at: Context) -> Value {
        let mut pieces: Vec<Piece> = Vec::new();
        for part in f.value.as_slice() {
            match part {
                FStringPart::Literal(s) => pieces.push(Piece::Text(s.value.as_ref().into())),
                FStringPart::FString(f) => {
                    for element in &f.elements {
                        match element {
                            InterpolatedStringElement::Literal(l) => {
                                pieces.push(Piece::Text((&*l.value).into()))
                            }
                            InterpolatedStringElement::Interpolation(i) => {
                                let value = self.expr(&i.expression, at);
                                let written = self.source(at.module).written(i.expression.range());
                                if let Some(debug) = &i.debug_text {
                                    let text = format!("{}{written}{}", debug.leading(), debug.trailing());
                                    pieces.push(Piece::Text(text.into()));
                                }
                                let plain = i.format_spec.is_none()
                                    && i.conversion.is_none()
                                    && i.debug_text.is_none();
                                self.push_str(value, plain, written, &mut pieces);
                            }
                        }
                    }
                }
            }
        }
        self.join_pieces(pieces, span)
    }

    /// A value as `str` shows it, if that is known.
    pub(crate) fn push_str(&self, value: Value, plain: bool, written: Arc<str>, pieces: &mut Vec<Piece>) {
        match &value.kind {
            PyKind::Str(s) if plain => pieces.push(Piece::Text(s.clone())),
            PyKind::Int(n) if plain => pieces.push(Piece::Text(n.to_string().into())),
            PyKind::Bool(b) if plain => pieces.push(Piece::Text(if *b { "True" } else { "False" }.into())),
            PyKind::None if plain => pieces.push(Piece::Text("None".into())),
            PyKind::Text(id) if plain => pieces.extend(self.pieces(*id).iter().cloned()),
            _ => pieces.push(Piece::Hole(value, written)),
        }
    }

    /// Pieces as one text.
    pub(crate) fn join_pieces(&mut self, pieces: Vec<Piece>, span: Span) -> Value {
        let mut size = 0;
        let mut out: Vec<Piece> = Vec::new();
        let mut run = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(t) => {
                    size += t.len();
                    if self.text.saturating_add(size) > self.limits.text {
                        return Value::unknown("text beyond the evaluation limit", span);
                    }
                    run.push_str(&t);
                }
                hole @ Piece::Hole(..) => {
                    if !run.is_empty() {
                        out.push(Piece::Text(std::mem::take(&mut run).into()));
                    }
                    out.push(hole);
                }
            }
        }
        self.step(out.len(), span);
        if out.is_empty() {
            let kind = self.text_kind(run.into(), span);
            return Value::new(kind, span);
        }
        if !run.is_empty() {
            out.push(Piece::Text(run.into()));
        }
        self.text += size;
        let id = self.add_text(out);
        Value::new(PyKind::Text(id), span)
    }

    fn name(&mut self, name: &str, span: Span, at: Context) -> Value {
        if let Some(value) = self.lookup_in(at.scope, name) {
            return value;
        }
        if BUILTINS.contains(&name) {
            return Value::new(PyKind::External(format!("builtins.{name}").into()), span);
        }
        let stars = self.module_scope(at.module).map_or(&[][..], |s| &self.scope(s).stars);
        match stars {
            [one] => Value::new(PyKind::External(format!("{one}.{name}").into()), span),
            _ => Value::unknown(format!("`{}`, which is not defined before", clip(name)), span),
        }
    }

    /// A name in a scope or the ones around it.
    pub(crate) fn lookup_in(&self, scope: ScopeId, name: &str) -> Option<Value> {
        let mut next = Some(scope);
        while let Some(scope) = next {
            let scope = self.scope(scope);
            if let Some(value) = scope.vars.get(name) {
                return Some(value.clone());
            }
            next = scope.parent;
        }
        None
    }

    fn collection(&mut self, elts: &'a [Expr], kind: ListKind, span: Span, at: Context) -> Value {
        let (mut items, mut open) = (Vec::new(), None);
        if self.symbolic && kind == ListKind::List && elts.iter().any(Expr::is_starred_expr) {
            return self.collection_with_spreads(elts, span, at);
        }
        for e in elts {
            match e {
                Expr::Starred(s) => {
                    let value = self.expr(&s.value, at);
                    match self.iterate(&value) {
                        Some((more, rest)) => {
                            self.step(more.len(), span);
                            if !self.exhausted() {
                                items.extend(more);
                            }
                            open = open.or(rest);
                        }
                        None => open = open.or(Some(self.opened_at(&value, value.span))),
                    }
                }
                e => {
                    let value = self.expr(e, at);
                    items.push(Value { maybe: false, ..value });
                }
            }
        }
        self.list_value(items, kind, open, span)
    }

    fn collection_with_spreads(&mut self, elts: &'a [Expr], span: Span, at: Context) -> Value {
        let mut parts = Vec::new();
        for e in elts {
            let Expr::Starred(s) = e else {
                let value = self.expr(e, at);
                parts.push(Ok(Value { maybe: false, ..value }));
                continue;
            };
            let value = self.expr(&s.value, at);
            match self.iterate(&value) {
                Some((items, None)) if self.step(items.len(), span) => {
                    parts.extend(items.into_iter().map(Ok))
                }
                _ => parts.push(Err(value)),
            }
        }
        self.list_of_parts(parts, span)
    }

    fn dictionary(&mut self, d: &'a ast::ExprDict, span: Span, at: Context) -> Value {
        let id = self.add_dict(Dict::default());
        for item in &d.items {
            match &item.key {
                Some(key) => {
                    let key = self.expr(key, at);
                    let value = self.expr(&item.value, at);
                    self.put(id, key, Value { maybe: false, ..value });
                }
                None => {
                    let more = self.expr(&item.value, at);
                    // The dictionary is made where it stands, whatever that depends on.
                    let conditions = std::mem::take(&mut self.conditions);
                    self.update(id, &more, span);
                    self.conditions = conditions;
                }
            }
        }
        Value::new(PyKind::Dict(id), span)
    }

    /// Adds the entries of a value to a dictionary.
    pub(crate) fn update(&mut self, id: DictId, more: &Value, span: Span) {
        match more.kind {
            PyKind::Dict(other) => {
                let Dict { entries, open } = self.dict(other).clone();
                self.step(entries.len(), span);
                if self.exhausted() {
                    return;
                }
                let maybe = self.conditions > 0;
                for (key, value) in entries {
                    let maybe = maybe || value.maybe;
                    self.put(id, key, Value { maybe, ..value });
                }
                if open.is_some() {
                    self.record_entry_write(id, None);
                }
                let dict = self.dict_mut(id);
                dict.open = dict.open.or(open);
            }
            PyKind::None => {}
            _ if self.symbolic && self.conditions == 0 => {
                // What is spread stands among the entries, under a key that no text is.
                let key = Value::new(PyKind::External(SPREAD.into()), more.span);
                self.record_entry_write(id, None);
                self.dict_mut(id).entries.push((key, more.clone()));
            }
            _ => {
                self.record_entry_write(id, None);
                self.dict_mut(id).open = Some(more.span);
            }
        }
    }

    /// The elements of a comprehension. Of several expressions, a tuple each.
    fn comprehension(
        &mut self,
        elts: &[&'a Expr],
        generators: &'a [ast::Comprehension],
        kind: ListKind,
        span: Span,
        at: Context,
    ) -> Value {
        let scope = self.new_scope(Some(at.scope), false);
        let inner = Context { scope, ..at };
        if let (true, [elt], [generator]) = (self.symbolic, elts, generators) {
            let iter = self.expr(&generator.iter, at);
            let element_at = self.span(at.module, generator.target.range());
            let known = self.iterate(&iter).is_some_and(|(_, open)| open.is_none());
            if !known && let Some(element) = self.element(&iter, element_at) {
                let PyKind::Object(id) = element.kind else { return element };
                self.assign(&generator.target, element.clone(), inner);
                let here = self.path.len();
                self.path.push(Condition::Each(id));
                let mut parts = vec![iter, element];
                let tests: Vec<Value> = generator.ifs.iter().map(|test| self.expr(test, inner)).collect();
                parts.push(self.expr(elt, inner));
                parts.extend(tests);
                self.path.truncate(here);
                return self.symbolic("[for]", parts, span);
            }
        }
        let mut out = (Vec::new(), None);
        self.generate(elts, generators, span, inner, &mut out);
        let (items, open) = out;
        self.list_value(items, kind, open, span)
    }

    /// Returns the object that represents each element of an unknown iterable. `None` unless evaluation is
    /// symbolic.
    pub(crate) fn element(&mut self, of: &Value, span: Span) -> Option<Value> {
        let base = match of.kind {
            PyKind::Object(id) | PyKind::Member(id, _) if self.symbolic => id,
            _ => return None,
        };
        Some(self.derived(base, "element".into(), vec![Arg { name: None, span, value: of.clone() }], span))
    }

    fn generate(
        &mut self,
        elts: &[&'a Expr],
        generators: &'a [ast::Comprehension],
        span: Span,
        at: Context,
        out: &mut Items,
    ) {
        let Some((first, rest)) = generators.split_first() else {
            let values: Vec<Value> = elts.iter().map(|e| self.expr(e, at)).collect();
            let value = match values.len() {
                1 => values.into_iter().next().unwrap_or(Value::unknown("nothing", span)),
                _ => self.list_value(values, ListKind::Tuple, None, span),
            };
            let maybe = self.conditions > 0;
            out.0.push(Value { maybe: maybe || value.maybe, ..value });
            return;
        };
        let iter = self.expr(&first.iter, at);
        let Some((items, open)) = self.iterate(&iter) else {
            out.1 = out.1.or(Some(self.opened_at(&iter, span)));
            self.widened_comprehension(elts, generators, span, at, out);
            return;
        };
        let cut = items.len() > self.limits.iterations;
        if cut || open.is_some() {
            self.widened_comprehension(elts, generators, span, at, out);
        }
        out.1 = out.1.or(open).or(cut.then_some(span));
        for item in items.into_iter().take(self.limits.iterations) {
            if !self.step(1, span) {
                out.1 = Some(span);
                return;
            }
            let mut conditions = usize::from(item.maybe);
            self.assign(&first.target, item, at);
            let mut taken = true;
            for test in &first.ifs {
                let value = self.expr(test, at);
                match self.truth(&value) {
                    Some(true) => {}
                    Some(false) => taken = false,
                    None => conditions += 1,
                }
            }
            if taken {
                self.conditions += conditions;
                self.with_stack(|w| w.generate(elts, rest, span, at, out));
                self.conditions -= conditions;
            }
        }
    }

    /// Evaluates what a comprehension makes of each element of something that is not known: what it calls is
    /// called, nobody knows how often. An element that is known whatever it is made of may be an item.
    fn widened_comprehension(
        &mut self,
        elts: &[&'a Expr],
        generators: &'a [ast::Comprehension],
        span: Span,
        at: Context,
        out: &mut Items,
    ) {
        if self.symbolic || !self.step(1, span) {
            return;
        }
        self.conditions += 1;
        self.repeating.push(None);
        for generator in generators {
            let why = "an element that is not known";
            self.assign(&generator.target, Value::unknown(why, span), at);
            for test in &generator.ifs {
                self.expr(test, at);
            }
        }
        for elt in elts {
            let value = self.expr(elt, at);
            let is_selected = |kind: &PyKind| {
                matches!(kind, PyKind::Function(_) | PyKind::Class(_) | PyKind::Bound(..) | PyKind::Either(_))
            };
            if let ([_], true) = (elts, is_selected(&value.kind)) {
                out.0.push(Value { maybe: true, ..value });
            }
        }
        self.repeating.pop();
        self.conditions -= 1;
    }

    /// Returns the truth value of a value. `None` if it isn't known.
    pub(crate) fn truth(&self, value: &Value) -> Option<bool> {
        match &value.kind {
            PyKind::None => Some(false),
            PyKind::Bool(b) => Some(*b),
            PyKind::Int(n) => Some(*n != 0),
            PyKind::Float(f) => Some(*f != 0.0),
            PyKind::Str(s) => Some(!s.is_empty()),
            PyKind::Text(id) => {
                self.pieces(*id).iter().any(|p| matches!(p, Piece::Text(t) if !t.is_empty())).then_some(true)
            }
            PyKind::List(id) => match self.list(*id) {
                l if l.items.iter().any(|i| !i.maybe) => Some(true),
                l if l.items.is_empty() && l.open.is_none() => Some(false),
                _ => None,
            },
            PyKind::Dict(id) => match self.dict(*id) {
                d if d.entries.iter().any(|(k, v)| !v.maybe && !Dict::is_spread(k)) => Some(true),
                d if d.entries.is_empty() && d.open.is_none() => Some(false),
                _ => None,
            },
            PyKind::Function(_) | PyKind::Class(_) | PyKind::Module(_) | PyKind::Bound(..) => Some(true),
            // While types are checked is not while the program runs.
            PyKind::External(name) => (&**name == "typing.TYPE_CHECKING").then_some(false),
            _ => None,
        }
    }

    /// `a[i:j]` of a text or a list that is known; of anything else as any other part of it.
    fn slice(&mut self, on: &Value, s: &'a ast::ExprSlice, span: Span, at: Context) -> Value {
        let mut bounds = [Ok(None); 3];
        for (bound, part) in bounds.iter_mut().zip([&s.lower, &s.upper, &s.step]) {
            if let Some(part) = part {
                *bound = match self.expr(part, at).kind {
                    PyKind::Int(n) => Ok(Some(n)),
                    PyKind::None => Ok(None),
                    _ => Err(()),
                };
            }
        }
        if let [Ok(from), Ok(to), Ok(None | Some(1))] = bounds
            && let Some(part) = self.slice_known(on, from, to, span)
        {
            return part;
        }
        self.subscript(on, Value::unknown("a slice", span), span)
    }

    /// From one place of a text or list to another, as Python counts them. `None` if it is not known.
    fn slice_known(&mut self, on: &Value, from: Option<i64>, to: Option<i64>, span: Span) -> Option<Value> {
        let cut = |len: usize| {
            let place =
                |n: i64| (if n < 0 { n.saturating_add(len as i64) } else { n }).clamp(0, len as i64) as usize;
            let from = from.map_or(0, place);
            from..to.map_or(len, place).max(from)
        };
        let part = match self.resolve_env(on).kind.clone() {
            PyKind::Str(text) if self.charge_text(text.len(), span) => {
                let range = cut(text.chars().count());
                let text: String = text.chars().skip(range.start).take(range.len()).collect();
                let kind = self.text_kind(text.into(), span);
                Value::new(kind, span)
            }
            PyKind::List(id) => {
                let List { items, kind, open } = self.list(id);
                if open.is_some() || *kind == ListKind::Set || items.iter().any(|i| i.maybe) {
                    return None;
                }
                let (kind, range) = (*kind, cut(items.len()));
                if !self.step(range.len(), span) {
                    return None;
                }
                let items = self.list(id).items[range].to_vec();
                self.list_value(items, kind, None, span)
            }
            _ => return None,
        };
        Some(self.env_dependent(&[on], part))
    }

    /// Wraps a result of operands in [`PyKind::Env`] if an operand depends on the environment, so that the
    /// result does, too.
    pub(crate) fn env_dependent(&mut self, on: &[&Value], value: Value) -> Value {
        let env = on.iter().find_map(|v| if let PyKind::Env(id) = v.kind { Some(id) } else { None });
        match env {
            Some(_) if matches!(value.kind, PyKind::Unknown(_)) => value,
            Some(id) => {
                let env = Env { name: self.env(id).name.clone(), default: Some(value.clone()) };
                Value::new(PyKind::Env(self.add_env(env)), value.span)
            }
            None => value,
        }
    }

    /// Reading a text of this many bytes costs steps where it is long. False if there are none left.
    pub(crate) fn charge_text(&mut self, bytes: usize, at: Span) -> bool {
        self.charge_scan(bytes / 8, at)
    }

    fn bool_op(&mut self, b: &'a ast::ExprBoolOp, span: Span, at: Context) -> Value {
        let or = b.op == ast::BoolOp::Or;
        let mut possible: Vec<Value> = Vec::new();
        for (i, e) in b.values.iter().enumerate() {
            // The first is evaluated in any case.
            let optional = usize::from(i > 0);
            self.operands += optional;
            let value = self.expr(e, at);
            self.operands -= optional;
            let last = i + 1 == b.values.len();
            match self.truth(&value) {
                Some(t) if t == or => {
                    possible.push(value);
                    break;
                }
                Some(_) if !last => {}
                _ => possible.push(value),
            }
        }
        // `os.getenv("X") or "default"`.
        if or
            && let [first, second] = &possible[..]
            && let PyKind::Env(id) = first.kind
            && self.env(id).default.as_ref().is_none_or(Value::is_none)
        {
            let env = Env { name: self.env(id).name.clone(), default: Some(second.clone()) };
            let id = self.add_env(env);
            return Value::new(PyKind::Env(id), span);
        }
        if self.symbolic && possible.len() > 1 {
            return self.symbolic(if or { "or" } else { "and" }, possible, span);
        }
        match possible.is_empty() {
            true => Value::unknown("an undecided test", span),
            false => self.either(possible, span),
        }
    }

    fn compare(&mut self, c: &'a ast::ExprCompare, span: Span, at: Context) -> Value {
        let mut left = self.expr(&c.left, at);
        if let (true, [op], [right]) = (self.symbolic, &*c.ops, &*c.comparators) {
            let right = self.expr(right, at);
            self.charge_search(*op, &right, span);
            return match self.compared(&left, *op, &right) {
                Some(b) => Value::new(PyKind::Bool(b), span),
                None => self.symbolic(op.as_str(), vec![left, right], span),
            };
        }
        let mut known = Some(true);
        for (op, right) in c.ops.iter().zip(&c.comparators) {
            let right = self.expr(right, at);
            self.charge_search(*op, &right, span);
            known = match (known, self.compared(&left, *op, &right)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            left = right;
        }
        match known {
            Some(b) => Value::new(PyKind::Bool(b), span),
            None => Value::unknown("an undecided test", span),
        }
    }

    /// Charges steps for a comparison or a search in a value.
    fn charge_search(&mut self, op: ast::CmpOp, value: &Value, at: Span) {
        let size = match (op, &value.kind) {
            (ast::CmpOp::In | ast::CmpOp::NotIn, PyKind::List(id)) => self.list(*id).items.len(),
            (ast::CmpOp::In | ast::CmpOp::NotIn, PyKind::Dict(id)) => self.dict(*id).entries.len(),
            (ast::CmpOp::In | ast::CmpOp::NotIn, PyKind::Str(text)) => text.len() / 16,
            (_, PyKind::Str(text)) => text.len() / 64,
            _ => 0,
        };
        self.charge_scan(size, at);
    }

    fn compared(&self, left: &Value, op: ast::CmpOp, right: &Value) -> Option<bool> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let order = match (&left.kind, &right.kind) {
            (PyKind::Int(a), PyKind::Int(b)) => Some(a.cmp(b)),
            (PyKind::Str(a), PyKind::Str(b)) => Some(a.cmp(b)),
            _ => None,
        };
        let equal = match (&left.kind, &right.kind) {
            _ if order.is_some() => order.map(|o| o == Equal),
            (PyKind::None, PyKind::None) => Some(true),
            (PyKind::Bool(a), PyKind::Bool(b)) => Some(a == b),
            (PyKind::None, k) | (k, PyKind::None) => match k {
                PyKind::Unknown(_) | PyKind::Env(_) | PyKind::Either(_) | PyKind::Member(..) => None,
                PyKind::Object(id) => self.object(*id).class.is_some().then_some(false),
                PyKind::External(_) => None,
                _ => Some(false),
            },
            _ => None,
        };
        match op {
            ast::CmpOp::Eq | ast::CmpOp::Is => equal,
            ast::CmpOp::NotEq | ast::CmpOp::IsNot => equal.map(|e| !e),
            ast::CmpOp::Lt => order.map(|o| o == Less),
            ast::CmpOp::LtE => order.map(|o| o != Greater),
            ast::CmpOp::Gt => order.map(|o| o == Greater),
            ast::CmpOp::GtE => order.map(|o| o != Less),
            ast::CmpOp::In | ast::CmpOp::NotIn => {
                let inside = match (&left.kind, &right.kind) {
                    (PyKind::Str(a), PyKind::Str(b)) => Some(b.contains(&**a)),
                    (PyKind::Str(_), PyKind::List(id)) => {
                        let list = self.list(*id);
                        let known = list.open.is_none()
                            && list.items.iter().all(|i| i.as_str().is_some() && !i.maybe);
                        known.then(|| list.items.iter().any(|i| self.same(i, left)))
                    }
                    (PyKind::Str(_), PyKind::Dict(id)) => {
                        let dict = self.dict(*id);
                        let known = dict.open.is_none() && dict.entries.iter().all(|(_, v)| !v.maybe);
                        let has = known && dict.entries.iter().any(|(k, _)| self.same(k, left));
                        (has || known && !dict.has_spread()).then_some(has)
                    }
                    _ => None,
                };
                if op == ast::CmpOp::In { inside } else { inside.map(|i| !i) }
            }
        }
    }

    pub(crate) fn binary(&mut self, left: &Value, op: ast::Operator, right: &Value, span: Span) -> Value {
        use ast::Operator as O;
        let int = |n: Option<i64>| n.map_or(PyKind::Unknown("a very large number".into()), PyKind::Int);
        // `int(os.getenv("N", "3")) + 1`
        let number = |v: &Value| matches!(self.resolve_env(v).kind, PyKind::Int(_) | PyKind::Float(_));
        if matches!((&left.kind, &right.kind), (PyKind::Env(_), _) | (_, PyKind::Env(_)))
            && number(left)
            && number(right)
        {
            let (a, b) = (self.resolve_env(left).clone(), self.resolve_env(right).clone());
            let value = self.binary(&a, op, &b, span);
            return self.env_dependent(&[left, right], value);
        }
        let kind = match (&left.kind, op, &right.kind) {
            (PyKind::Int(a), O::Add, PyKind::Int(b)) => int(a.checked_add(*b)),
            (PyKind::Int(a), O::Sub, PyKind::Int(b)) => int(a.checked_sub(*b)),
            (PyKind::Int(a), O::Mult, PyKind::Int(b)) => int(a.checked_mul(*b)),
            (PyKind::Int(a), O::FloorDiv, PyKind::Int(b)) if *a >= 0 && *b > 0 => PyKind::Int(a / b),
            (PyKind::Int(a), O::Div, PyKind::Int(b)) if *b != 0 => PyKind::Float(*a as f64 / *b as f64),
            (PyKind::Int(a), O::Mod, PyKind::Int(b)) if *a >= 0 && *b > 0 => PyKind::Int(a % b),
            (PyKind::Int(a), O::Pow, PyKind::Int(b)) if (0..64).contains(b) => int(a.checked_pow(*b as u32)),
            (PyKind::Str(_) | PyKind::Text(_) | PyKind::Env(_), O::Add, _)
            | (_, O::Add, PyKind::Str(_) | PyKind::Text(_)) => {
                let mut pieces = Vec::new();
                for value in [left, right] {
                    let why = self.unknown_reason(value);
                    self.push_str(value.clone(), !matches!(value.kind, PyKind::Int(_)), why, &mut pieces);
                }
                return self.join_pieces(pieces, span);
            }
            (PyKind::Str(a), O::Mult, PyKind::Int(n)) => {
                let size = a.len().saturating_mul(usize::try_from(*n).unwrap_or(0));
                if self.text.saturating_add(size) > self.limits.text {
                    PyKind::Unknown("text beyond the evaluation limit".into())
                } else {
                    let text = a.repeat(usize::try_from(*n).unwrap_or(0));
                    self.text_kind(text.into(), span)
                }
            }
            (PyKind::Str(a), O::Mod, _) => return self.percent_format(&a.clone(), right, span),
            (PyKind::List(id), O::Mult, PyKind::Int(n)) if self.list(*id).open.is_none() => {
                let (id, len) = (*id, self.list(*id).items.len());
                let size = len.saturating_mul(usize::try_from(*n).unwrap_or(0));
                // More is not made, nor is the rest of the module given up for it.
                if size > self.limits.iterations
                    || self.list(id).kind == ListKind::Set
                    || !self.step(size, span)
                {
                    return Value::unknown("a long list", span);
                }
                let List { items, kind, .. } = self.list(id);
                let (items, kind) = (items.iter().cycle().take(size).cloned().collect(), *kind);
                return self.list_value(items, kind, None, span);
            }
            (PyKind::List(_), O::Add, _) if self.symbolic && self.iterate(right).is_none() => {
                return self.symbolic("+", vec![left.clone(), right.clone()], span);
            }
            (PyKind::List(a), O::Add, _) => {
                let List { items, kind, open } = self.list(*a).clone();
                self.step(items.len(), span);
                let value = self.list_value(items, kind, open, span);
                if let (PyKind::List(id), false) = (&value.kind, self.exhausted()) {
                    let conditions = std::mem::take(&mut self.conditions);
                    self.extend(*id, right, span);
                    self.conditions = conditions;
                }
                return value;
            }
            (PyKind::Dict(a), O::BitOr, PyKind::Dict(_)) => {
                let dict = self.dict(*a).clone();
                self.step(dict.entries.len(), span);
                let id = self.add_dict(dict);
                let conditions = std::mem::take(&mut self.conditions);
                self.update(id, right, span);
                self.conditions = conditions;
                PyKind::Dict(id)
            }
            // `str | None`, and the operators that frameworks give their own meaning: `prompt | model |
            // parser`.
            (PyKind::Unknown(_), ..) | (.., PyKind::Unknown(_)) => PyKind::Unknown("a computed value".into()),
            _ => {
                let args = [left, right].map(|v| Arg { name: None, span: v.span, value: v.clone() }).to_vec();
                PyKind::Object(self.new_object(op.as_str().into(), args, None, span, None))
            }
        };
        Value::new(kind, span)
    }

    /// Returns the items of an iterable value. `None` if they aren't known.
    pub(crate) fn iterate(&mut self, value: &Value) -> Option<Items> {
        let kind = self.resolve_env(value).kind.clone();
        if let PyKind::Class(id) = kind {
            let names = self.member_names(id, value.span)?;
            let members = names.iter().map(|n| self.class_attribute(id, n, value.span)).collect();
            return Some((members, None));
        }
        if let (PyKind::Either(id), false) = (&kind, self.symbolic) {
            return self.iterate_one_of(*id, value.span);
        }
        let size = match kind {
            PyKind::List(id) => self.list(id).items.len(),
            PyKind::Dict(id) => self.dict(id).entries.len(),
            _ => return None,
        };
        if !self.charge_scan(size, value.span) {
            return Some((Vec::new(), Some(value.span)));
        }
        Some(match kind {
            PyKind::List(id) => (self.list(id).items.clone(), self.list(id).open),
            PyKind::Dict(id) => {
                let dict = self.dict(id);
                let keys = dict.entries.iter().filter(|(k, _)| !Dict::is_spread(k));
                let keys = keys.map(|(k, v)| Value { maybe: v.maybe, ..k.clone() }).collect();
                (keys, dict.open.or(dict.has_spread().then_some(value.span)))
            }
            _ => return None,
        })
    }

    /// The place at which a list is open that takes in items of a value that is not known: that of the call
    /// that gives them, if there is one, so that whoever reads the list can look at that.
    pub(crate) fn opened_at(&self, value: &Value, otherwise: Span) -> Span {
        match value.kind {
            PyKind::Object(id) | PyKind::Member(id, _) => self.object(id).span,
            _ => otherwise,
        }
    }

    /// The items of one of several lists: each is there only if its list is the one. `None` if none of them
    /// is a list.
    fn iterate_one_of(&mut self, id: ListId, span: Span) -> Option<Items> {
        let all = self.list(id).items.clone();
        let is_list = |v: &Value| matches!(v.kind, PyKind::List(_));
        if !all.iter().any(is_list) {
            return None;
        }
        let (mut items, mut open): Items = (Vec::new(), None);
        for one in all.iter().filter(|v| !v.is_none()) {
            match is_list(one).then(|| self.iterate(one)).flatten() {
                Some((more, rest)) => {
                    items.extend(more.into_iter().map(|v| Value { maybe: true, ..v }));
                    open = open.or(rest);
                }
                None => open = open.or(Some(one.span)),
            }
        }
        if !self.step(items.len(), span) {
            return Some((Vec::new(), Some(span)));
        }
        Some((items, open))
    }

    /// Looking through this many entries costs steps where they are many. False if there are none left.
    pub(crate) fn charge_scan(&mut self, entries: usize, at: Span) -> bool {
        const AT_ONCE: usize = 64;
        entries < AT_ONCE || self.step(entries / AT_ONCE, at)
    }

    pub(crate) fn subscript(&mut self, on: &Value, key: Value, span: Span) -> Value {
        match (&on.kind, &key.kind) {
            (PyKind::Dict(id), _) => {
                if !self.charge_scan(self.dict(*id).entries.len(), span) {
                    return Value::unknown("a value beyond the evaluation limit", span);
                }
                if self.dict(*id).has_spread() && matches!(key.kind, PyKind::Str(_)) {
                    return self.lookup_with_spread(*id, &key, None, span);
                }
                let (dict, key) = (self.dict(*id), key.clone());
                let found: Vec<Value> =
                    dict.entries.iter().filter(|(k, _)| self.same(k, &key)).map(|(_, v)| v.clone()).collect();
                let dict_open = dict.open;
                match (found.len(), dict_open) {
                    (1, None) => found
                        .into_iter()
                        .next()
                        .map_or(Value::unknown("nothing", span), |v| Value { maybe: false, ..v }),
                    (0, _) if self.symbolic && !matches!(key.kind, PyKind::Str(_)) => {
                        self.symbolic("[]", vec![on.clone(), key], span)
                    }
                    (0, _) if !is_constant(&key) => {
                        let all = self.dict(*id).entries.iter().map(|(_, v)| v.clone()).collect();
                        let why = "an entry that is not known";
                        self.one_of_parts(all, dict_open.map(|_| why), why, span)
                    }
                    (0, _) => Value::unknown("an entry that is not known", span),
                    _ => self.either(found, span),
                }
            }
            (PyKind::Env(_), _) if matches!(self.resolve_env(on).kind, PyKind::List(_) | PyKind::Dict(_)) => {
                let default = self.resolve_env(on).clone();
                let part = self.subscript(&default, key, span);
                self.env_dependent(&[on], part)
            }
            (PyKind::List(id), PyKind::Int(n)) => {
                self.charge_scan(self.list(*id).items.len(), span);
                let list = self.list(*id);
                let index = if *n < 0 { list.items.len() as i64 + n } else { *n };
                let item = usize::try_from(index).ok().and_then(|i| list.items.get(i)).cloned();
                let ordered = list.kind != ListKind::Set;
                let settled = ordered && list.open.is_none() && list.items.iter().all(|i| !i.maybe);
                match item {
                    Some(item) if settled => item,
                    _ => Value::unknown("an item that is not known", span),
                }
            }
            (PyKind::List(id), _) if !self.symbolic && !is_constant(&key) => {
                self.charge_scan(self.list(*id).items.len(), span);
                let List { items, open, .. } = self.list(*id).clone();
                let why = "an item that is not known";
                self.one_of_parts(items, open.map(|_| why), why, span)
            }
            (PyKind::Object(id), _) if self.symbolic && self.last_set_item(*id, &key).is_some() => {
                self.last_set_item(*id, &key).unwrap_or_else(|| Value::unknown("nothing", span))
            }
            (PyKind::Object(id), PyKind::Str(name)) if self.typed_entry(*id, name).is_some() => {
                self.typed_entry(*id, name).unwrap_or_else(|| Value::unknown("nothing", span))
            }
            (PyKind::Object(id), _) => {
                let id = *id;
                let callee = format!("{}[]", self.object(id).callee);
                self.derived(id, callee, vec![Arg { name: None, span: key.span, value: key }], span)
            }
            (PyKind::External(name), _) if &**name == "os.environ" => {
                let name = key.as_str().map(Arc::from);
                let id = self.add_env(Env { name, default: None });
                Value::new(PyKind::Env(id), span)
            }
            (PyKind::External(name), _) => {
                let callee: Arc<str> = format!("{name}[]").into();
                let args = match &key.kind {
                    PyKind::List(id) if self.list(*id).kind == ListKind::Tuple => {
                        self.list(*id).items.clone()
                    }
                    _ => vec![key],
                };
                let args =
                    args.into_iter().map(|value| Arg { name: None, span: value.span, value }).collect();
                Value::new(PyKind::Object(self.new_object(callee, args, None, span, None)), span)
            }
            (PyKind::Member(id, member), _) => {
                let id = *id;
                let callee = format!("{}.{member}[]", self.object(id).callee);
                self.derived(id, callee, vec![Arg { name: None, span: key.span, value: key }], span)
            }
            (PyKind::Class(id), PyKind::Str(name))
                if self.is_enumeration(*id) && self.class(*id).attr(name).is_some() =>
            {
                self.class_attribute(*id, &name.clone(), span)
            }
            // `Generic[T]`, of a class of the project.
            (PyKind::Class(_), _) => on.clone(),
            _ => Value::unknown("a part of a value that is not known", span),
        }
    }

    /// One of the parts of a container, selected by a key that is not known: a registry of tools or agents.
    /// Of constants it stays unknown which one it is. `rest` says that there may be other parts.
    pub(crate) fn one_of_parts(
        &mut self,
        mut parts: Vec<Value>,
        rest: Option<&'static str>,
        why: &'static str,
        span: Span,
    ) -> Value {
        let is_made = |v: &Value| {
            matches!(
                v.kind,
                PyKind::Function(_)
                    | PyKind::Class(_)
                    | PyKind::Object(_)
                    | PyKind::Bound(..)
                    | PyKind::List(_)
                    | PyKind::Either(_)
                    | PyKind::External(_)
            )
        };
        if self.symbolic || parts.is_empty() || !parts.iter().any(is_made) || !self.step(parts.len(), span) {
            return Value::unknown(why, span);
        }
        parts.iter_mut().for_each(|v| v.maybe = false);
        parts.extend(rest.map(|why| Value::unknown(why, span)));
        self.either_of(parts, MAX_SELECTED, span)
    }

    /// An entry of a typed dictionary as it was made, if nothing was called on it since.
    fn typed_entry(&self, id: ObjectId, name: &str) -> Option<Value> {
        let object = self.object(id);
        let plain = object.calls.is_empty() && object.open.is_none();
        let typed = object.class.filter(|_| plain)?;
        let arg = object.arg(name).filter(|_| self.derives(typed, |n| n.ends_with("TypedDict")))?;
        (!arg.value.maybe).then(|| arg.value.clone())
    }

    pub(crate) fn is_enumeration(&self, class: ClassId) -> bool {
        self.derives(class, |n| n.ends_with("Enum"))
    }

    /// The names of an enumeration's members, in order, without other names of the same value. `None` if a
    /// class is none, or if what a member's value is is not known: one of `auto()`, one that `__new__` makes,
    /// one of a flag.
    pub(crate) fn member_names(&mut self, class: ClassId, span: Span) -> Option<Vec<Arc<str>>> {
        if !self.is_enumeration(class) || !self.step(1 + self.class(class).attrs.len(), span) {
            return None;
        }
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut values: HashSet<Result<Arc<str>, i64>> = HashSet::new();
        for (name, value) in &self.class(class).attrs {
            let key = match &value.kind {
                PyKind::Function(_) if !matches!(&**name, "__new__" | "__init__") => continue,
                PyKind::Str(_) if matches!(&**name, "__doc__" | "__module__") => continue,
                PyKind::Str(text) if !value.maybe && !name.starts_with('_') => Ok(text.clone()),
                PyKind::Int(n) if !value.maybe && !name.starts_with('_') => Err(*n),
                _ => return None,
            };
            if values.insert(key) {
                names.push(name.clone());
            }
        }
        Some(names)
    }

    /// The entry of a dictionary among whose entries something that is not known was spread: the last one of
    /// the key, or what that has.
    pub(crate) fn lookup_with_spread(
        &mut self,
        id: DictId,
        key: &Value,
        default: Option<Value>,
        span: Span,
    ) -> Value {
        if key.as_str().is_none() || self.dict(id).open.is_some() {
            return Value::unknown("an entry that is not known", span);
        }
        let entries = self.dict(id).entries.clone();
        self.step(entries.len(), span);
        let mut found = default;
        for (k, value) in entries {
            if Dict::is_spread(&k) {
                let arg = |value: Value| Arg { name: None, span: value.span, value };
                found = Some(match found {
                    Some(before) => {
                        let get = self.attribute(&value, "get", span);
                        self.with_stack(|w| w.apply(&get, vec![arg(key.clone()), arg(before)], None, span))
                    }
                    None => self.subscript(&value, key.clone(), span),
                });
            } else if self.same(&k, key) {
                let certain = !value.maybe;
                found = Some(match found {
                    Some(_) if !certain => Value::unknown("an entry that is not known", span),
                    _ => Value { maybe: false, ..value },
                });
            }
        }
        found.unwrap_or_else(|| Value::unknown("an entry that is not known", span))
    }

    /// Returns the value last stored under a key of an object by `obj[key] = value`.
    fn last_set_item(&self, id: ObjectId, key: &Value) -> Option<Value> {
        let call = self.object(id).calls.iter().rev().filter(|c| &*c.name == "__setitem__").find(|c| {
            let args = &self.object(c.result).args;
            args.first().is_some_and(|a| self.same(&a.value, key))
        })?;
        let value = self.object(call.result).args.get(1)?.value.clone();
        let certain = self.path(call.result).len() <= self.path.len();
        Some(if certain { value } else { Value::unknown("an item set under a condition", value.span) })
    }

    fn derived(&mut self, base: ObjectId, callee: String, args: Vec<Arg>, span: Span) -> Value {
        // Names do not grow without end.
        let callee = if callee.len() > 400 { "…".into() } else { callee.into() };
        Value::new(PyKind::Object(self.new_object(callee, args, None, span, Some(base))), span)
    }

    pub(crate) fn attribute(&mut self, on: &Value, name: &str, span: Span) -> Value {
        match &on.kind {
            PyKind::External(of) => {
                if of.len() > 400 {
                    return Value::unknown("a part of a value that is not known", span);
                }
                Value::new(PyKind::External(format!("{of}.{name}").into()), span)
            }
            PyKind::Module(module) => {
                let (module, scope) = (*module, self.load(*module, span));
                if let Some(value) = scope.and_then(|s| self.scope(s).vars.get(name)) {
                    return value.clone();
                }
                let source = self.source(module);
                let sub = source
                    .path
                    .ends_with("__init__.py")
                    .then(|| self.sources.import(module, 1, name))
                    .flatten();
                match sub {
                    Some(sub) if self.may_load(sub) => {
                        self.load(sub, span);
                        Value::new(PyKind::Module(sub), span)
                    }
                    _ => {
                        Value::unknown(format!("`{}` of a module that does not define it", clip(name)), span)
                    }
                }
            }
            PyKind::Object(id) => self.object_attribute(*id, name, span),
            PyKind::Member(id, member) if member.len() < 400 => {
                Value::new(PyKind::Member(*id, format!("{member}.{name}").into()), span)
            }
            PyKind::Class(id) => self.class_attribute(*id, name, span),
            // Of a member of an enumeration that is a text.
            PyKind::Str(_) if name == "value" => on.clone(),
            PyKind::Str(_) | PyKind::Text(_) | PyKind::List(_) | PyKind::Dict(_) | PyKind::Env(_) => {
                Value::new(PyKind::Method(Box::new(on.clone()), name.into()), span)
            }
            PyKind::Function(id) => match name {
                "__name__" => Value::new(PyKind::Str(self.function(*id).name.clone()), span),
                "__doc__" => match &self.function(*id).doc {
                    Some(doc) => Value::new(PyKind::Str(doc.clone()), span),
                    None => Value::new(PyKind::None, span),
                },
                _ => Value::new(PyKind::Method(Box::new(on.clone()), name.into()), span),
            },
            PyKind::Either(id) => {
                let all = self.list(*id).items.clone();
                let values =
                    all.iter().filter(|v| !v.is_none()).map(|v| self.attribute(v, name, span)).collect();
                self.either_or_unknown(values, span)
            }
            _ => Value::unknown(format!("`{}` of {}", clip(name), self.unknown_reason(on)), span),
        }
    }

    pub(crate) fn either_or_unknown(&mut self, values: Vec<Value>, span: Span) -> Value {
        if values.is_empty() { Value::unknown("one of no values", span) } else { self.either(values, span) }
    }

    fn object_attribute(&mut self, id: ObjectId, name: &str, span: Span) -> Value {
        self.charge_scan(self.object(id).attrs.len(), span);
        let object = self.object(id);
        if let Some(value) = object.attr(name) {
            return value.clone();
        }
        match object.class {
            Some(class) => {
                self.charge_scan(self.class(class).attrs.len(), span);
                if name == "__class__" {
                    return Value::new(PyKind::Class(class), span);
                }
                let Some((value, _)) = self.class_lookup(class, name) else {
                    let given = self.framework.and_then(|f| f.attribute(self, id, class, name));
                    return given.unwrap_or_else(|| Value::new(PyKind::Member(id, name.into()), span));
                };
                match value.kind {
                    PyKind::Function(f) => {
                        let property = self.decorated(f, &["property", "cached_property"]);
                        if property {
                            return self.call_body(f, Some(id), Vec::new(), None, span);
                        }
                        if self.decorated(f, &["staticmethod"]) {
                            return value;
                        }
                        if self.decorated(f, &["classmethod"]) {
                            let of = Value::new(PyKind::Class(class), span);
                            return Value::new(PyKind::Method(Box::new(of), name.into()), span);
                        }
                        Value::new(PyKind::Bound(id, f), span)
                    }
                    _ => value,
                }
            }
            None => match object.arg(name) {
                Some(arg) if !arg.value.maybe => arg.value.clone(),
                _ => Value::new(PyKind::Member(id, name.into()), span),
            },
        }
    }

    pub(crate) fn class_attribute(&mut self, id: ClassId, name: &str, span: Span) -> Value {
        if name == "__name__" {
            return Value::new(PyKind::Str(self.class(id).name.clone()), span);
        }
        self.charge_scan(self.class(id).attrs.len(), span);
        match self.class_lookup(id, name) {
            Some((value, of)) => {
                // `Color.RED.value` of an enumeration.
                let is_enum = self.derives(of, |n| n.ends_with("Enum"));
                match value.kind {
                    PyKind::Str(_) | PyKind::Int(_) if is_enum => {
                        let member = self.new_object(
                            format!("{}.{name}", self.class(of).qualified).into(),
                            Vec::new(),
                            None,
                            span,
                            None,
                        );
                        let object = self.object_mut(member);
                        object.class = Some(of);
                        object.attrs.push(("value".into(), value.clone()));
                        object.attrs.push(("name".into(), Value::new(PyKind::Str(name.into()), span)));
                        // A text that is an enumeration's is a text.
                        if self.derives(of, |n| n.ends_with("StrEnum") || n == "builtins.str") {
                            return value;
                        }
                        Value::new(PyKind::Object(member), span)
                    }
                    PyKind::Function(f) if self.decorated(f, &["classmethod"]) => {
                        let class = Value::new(PyKind::Class(id), span);
                        Value::new(PyKind::Method(Box::new(class), name.into()), span)
                    }
                    _ => value,
                }
            }
            None => Value::unknown(format!("`{}` of class `{}`", clip(name), self.class(id).name), span),
        }
    }

    /// Returns true if a class derives from a class outside the project whose name passes the test.
    pub fn derives(&self, class: ClassId, test: impl Fn(&str) -> bool) -> bool {
        let mut todo = vec![class];
        let mut seen = Vec::new();
        while let Some(id) = todo.pop() {
            if seen.contains(&id) || seen.len() > MAX_BASES {
                continue;
            }
            seen.push(id);
            for base in self.class(id).bases.iter().take(MAX_BASES) {
                match &base.kind {
                    PyKind::Class(id) => todo.push(*id),
                    PyKind::External(name) if test(name) => return true,
                    PyKind::Object(id) if test(self.object(*id).callee.trim_end_matches("[]")) => {
                        return true;
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// Looks up a name in a class and its bases. Returns the value and the class that defines it.
    pub fn class_lookup(&self, class: ClassId, name: &str) -> Option<(Value, ClassId)> {
        let mut todo = vec![class];
        let mut seen = Vec::new();
        while let Some(id) = todo.pop() {
            if seen.contains(&id) || seen.len() > MAX_BASES {
                continue;
            }
            seen.push(id);
            if let Some(value) = self.class(id).attr(name) {
                return Some((value.clone(), id));
            }
            let bases = self.class(id).bases.iter().take(MAX_BASES).rev();
            todo.extend(bases.filter_map(|b| match b.kind {
                PyKind::Class(id) => Some(id),
                _ => None,
            }));
        }
        None
    }

    /// Returns true if a function has a decorator whose name ends in one of these.
    pub fn decorated(&self, function: FunctionId, names: &[&str]) -> bool {
        self.decorator(function, names).is_some()
    }

    /// The decorator of a function whose name ends in one of these: `tool` is `crewai.tools.tool` and
    /// `tool("x")` alike.
    pub fn decorator(&self, function: FunctionId, names: &[&str]) -> Option<&Value> {
        self.function(function).decorators.iter().find(|d| {
            let name = self.name_of(d);
            name.is_some_and(|n| names.contains(&n.rsplit('.').next().unwrap_or(&n)))
        })
    }
}

pub(crate) fn clip(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(at, _)| &text[..at])
}
