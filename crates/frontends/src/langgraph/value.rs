//! Values that nodes compute, as terms.
//!
//! A node's function was [traced](python::World::trace) with a state that is not known: what it computes of
//! the state is an object whose callee says how. Here such values become terms; what cannot be said in the
//! calculus becomes an unknown term with its place.

use super::let_bindings::{Place, Sharing};
use super::{GraphReader, ReplyKind};
use core_ir::{Data, IfSugar, Name, Num, Prim, Role, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::{Template, codes};
use frontend_kit::kit::Kit;
use python::{Condition, Object, ObjectId, Piece, PyKind, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// The variable that holds the state.
pub(super) const STATE: &str = "$s";
/// The field of the state that holds what a model that is offered tools said last.
pub(super) const REPLY: &str = "$reply";
/// Callee of the object that represents the state in a traced function.
pub(super) const STATE_CALLEE: &str = "langgraph.State";

/// A variable that holds what a call gave.
#[derive(Clone, Debug)]
pub(super) struct BoundResult {
    pub var: Name,
    pub kind: ReplyKind,
    /// True if the conversation of the graph holds it already.
    pub live: bool,
}

/// Names of values at the place of a term.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// The state that the function was given, and the variable that holds it.
    pub state: Option<(ObjectId, Name)>,
    /// Variables that hold the results of calls.
    pub held: HashMap<ObjectId, BoundResult>,
    /// Kinds of the items of lists that calls returned.
    pub items: HashMap<ObjectId, ReplyKind>,
    /// The key that holds the conversation, if there is one.
    pub messages: Option<String>,
    /// True if unbound variables of prompts are inputs of the unit.
    pub inputs: bool,
    /// True if the graph calls a model that has tools.
    pub replies: bool,
    /// The names of the tools that models of the graph are offered.
    pub tools: Vec<Name>,
    /// True if no node adds instructions to the conversation.
    pub uninstructed: bool,
    /// The conditions that hold.
    pub path: Vec<Condition>,
    /// Values of the function that are worth a name.
    pub sharing: Option<Rc<Sharing>>,
    /// Place at which names are bound.
    pub place: Option<Rc<Place>>,
}

impl GraphReader<'_, '_> {
    /// A value as a term.
    pub fn expr(&self, kit: &mut Kit<'_>, scope: &Scope, value: &Value) -> TermId {
        if !kit.budget.begin_value() {
            return too_much(kit, value.span);
        }
        let term = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.expr_inner(kit, scope, value));
        kit.budget.end_value();
        super::let_bindings::not_known_whole(kit, term)
    }

    pub(super) fn not_known(&self, kit: &mut Kit<'_>, value: &Value) -> TermId {
        if let Some(asked) = crate::py::ambient(kit, self.world, value) {
            return asked;
        }
        let why = self.world.unknown_reason(value).to_string();
        kit.undecided(codes::NOT_COMPILED, why, value.span)
    }

    pub(super) fn expr_inner(&self, kit: &mut Kit<'_>, scope: &Scope, value: &Value) -> TermId {
        let at = value.span;
        let settled = self.world.resolve_env(value);
        match &settled.kind {
            PyKind::None => kit.b.lit(Data::Null, at),
            PyKind::Bool(b) => kit.b.lit(Data::Bool(*b), at),
            PyKind::Int(n) => kit.b.lit(Num::from(*n), at),
            PyKind::Float(_) => match crate::py::number(settled) {
                Some(n) => kit.b.lit(n, at),
                None => self.not_known(kit, value),
            },
            PyKind::Str(s) => kit.text(s, at),
            PyKind::Text(_) => self.text(kit, scope, settled),
            PyKind::List(id) => {
                let list = self.world.list(*id);
                if list.open.is_some() || list.items.iter().any(|i| i.maybe) {
                    return kit.undecided(
                        codes::NOT_COMPILED,
                        "what this list holds is not known".into(),
                        at,
                    );
                }
                let items = list.items.iter().map(|i| self.expr(kit, scope, i)).collect();
                kit.b.add(Term::List(items), at)
            }
            PyKind::Dict(id) => {
                let dict = self.world.dict(*id);
                let plain =
                    dict.open.is_none() && dict.entries.iter().all(|(k, v)| k.as_str().is_some() && !v.maybe);
                if let Some(term) =
                    self.spread_record(kit, scope, &dict.entries, at).filter(|_| dict.open.is_none())
                {
                    return term;
                }
                if !plain {
                    return kit.undecided(
                        codes::NOT_COMPILED,
                        "what this dictionary holds is not known".into(),
                        at,
                    );
                }
                if let Some((role, content)) = self.message_of(settled) {
                    return self.message(kit, scope, role, &content, at);
                }
                let fields = self.fields_of(kit, scope, &dict.entries);
                kit.b.add(Term::Record(fields), at)
            }
            PyKind::Object(id) => self.object(kit, scope, *id, at),
            PyKind::Member(id, member) => {
                let base = Value::new(PyKind::Object(*id), at);
                self.member(kit, scope, &base, member, at)
            }
            _ => match self.node_name(settled) {
                Some(name) => kit.text(&name, at),
                None => self.not_known(kit, value),
            },
        }
    }

    /// `{"a": 1, **x, "b": 2}`: `x` with what follows it set, and with what stands before it where it has no
    /// such key.
    fn spread_record(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        entries: &[(Value, Value)],
        at: Span,
    ) -> Option<TermId> {
        let is_spread =
            |(k, v): &(Value, Value)| matches!(&k.kind, PyKind::External(n) if &**n == "**") && !v.maybe;
        let place = entries.iter().position(is_spread)?;
        let (before, after) = (&entries[..place], &entries[place + 1..]);
        let plain = |(k, v): &(Value, Value)| k.as_str().is_some() && !v.maybe;
        if !before.iter().chain(after).all(plain) {
            return None;
        }
        let record = self.expr(kit, scope, &entries[place].1);
        let name: Name = kit.b.fresh("v");
        let mut term = kit.b.var(name.clone(), at);
        for (key, value) in self.fields_of(kit, scope, before) {
            let (a, b, text) = (kit.b.var(name.clone(), at), kit.b.var(name.clone(), at), kit.text(&key, at));
            let has = kit.b.add(Term::Prim(Prim::Has, vec![a, text]), at);
            let own = kit.b.add(Term::Field(b, key.clone()), at);
            let value = kit.b.add(Term::If(has, own, value, IfSugar::Plain), at);
            term = kit.b.add(Term::With(term, key, value), at);
        }
        for (key, value) in after {
            let Some(key) = key.as_str().map(Name::from) else { continue };
            let value = self.expr(kit, scope, value);
            term = kit.b.add(Term::With(term, key, value), at);
        }
        Some(kit.b.let_in(vec![(name, record)], term, at))
    }

    pub(super) fn fields_of(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        entries: &[(Value, Value)],
    ) -> Vec<(Name, TermId)> {
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for (k, v) in entries {
            let Some(name) = k.as_str().map(Name::from) else { continue };
            if fields.iter().all(|(n, _)| *n != name) {
                let term = self.expr(kit, scope, v);
                fields.push((name, term));
            }
        }
        fields
    }

    /// A text with what is put into it.
    pub fn text(&self, kit: &mut Kit<'_>, scope: &Scope, value: &Value) -> TermId {
        let Some(pieces) = self.world.text_of(value) else { return self.expr(kit, scope, value) };
        let mut template = Template::new(value.span);
        for piece in pieces {
            match piece {
                Piece::Text(t) => {
                    template.text(&t);
                }
                Piece::Hole(hole, _) => {
                    let term = self.expr(kit, scope, &hole);
                    template.term(term);
                }
            }
        }
        let text = template.build(&mut kit.b);
        crate::py::written(kit, value, text)
    }

    /// A message: who says it, and its text.
    pub fn message(&self, kit: &mut Kit<'_>, scope: &Scope, role: Role, content: &Value, at: Span) -> TermId {
        let content = self.text(kit, scope, content);
        self.message_term(kit, role, content, at)
    }

    pub fn message_term(&self, kit: &mut Kit<'_>, role: Role, content: TermId, at: Span) -> TermId {
        let role = kit.text(role.as_str(), at);
        kit.b.add(Term::Record(vec![("role".into(), role), ("content".into(), content)]), at)
    }

    /// Returns true if a value is the whole conversation of the state.
    pub fn is_conversation(&self, scope: &Scope, value: &Value) -> bool {
        const MAX_DEPTH: usize = 16;
        let Some(messages) = &scope.messages else { return false };
        let mut value = value;
        for _ in 0..MAX_DEPTH {
            match (self.state_key(scope, value), self.copied(value)) {
                (Some(key), _) => return key == *messages,
                (None, Some(of)) => value = of,
                (None, None) => return false,
            }
        }
        false
    }

    /// Returns the original of a copy: `list(x)`, `x.copy()`, `x or []`.
    fn copied<'v>(&'v self, value: &'v Value) -> Option<&'v Value> {
        let (_, object) = self.world.object_of(value)?;
        let empty = |v: &Value| v.is_none() || self.world.items(v).is_some_and(<[Value]>::is_empty);
        match (&*object.callee, &object.args[..]) {
            ("builtins.list" | "builtins.tuple" | "list.copy", [of]) => Some(&of.value),
            ("or", [of, rest @ ..]) if rest.iter().all(|a| empty(&a.value)) => Some(&of.value),
            _ => None,
        }
    }

    /// The key of the state that a value is.
    pub fn state_key(&self, scope: &Scope, value: &Value) -> Option<String> {
        let (state, _) = scope.state.as_ref()?;
        match &value.kind {
            PyKind::Member(id, name) if id == state && !name.contains('.') => Some(name.to_string()),
            PyKind::Object(id) => {
                let object = self.world.object(*id);
                let key =
                    |o: &Object| o.args.first().and_then(|a| self.world.str(&a.value)).map(str::to_string);
                let is = |suffix: &str| object.callee.strip_suffix(suffix) == Some(STATE_CALLEE);
                (object.base == Some(*state) && (is("[]") || is(".get") || is(".pop")))
                    .then(|| key(object))?
            }
            _ => None,
        }
    }

    pub(super) fn object(&self, kit: &mut Kit<'_>, scope: &Scope, id: ObjectId, at: Span) -> TermId {
        if let Some(held) = scope.held.get(&id) {
            return kit.b.var(held.var.clone(), at);
        }
        match self.shared(kit, scope, id, at) {
            Some(name) => name,
            None => self.object_itself(kit, scope, id, at),
        }
    }

    /// Lowers an object that has no name.
    pub(super) fn object_itself(&self, kit: &mut Kit<'_>, scope: &Scope, id: ObjectId, at: Span) -> TermId {
        let object = self.world.object(id);
        let value = Value::new(PyKind::Object(id), at);
        if let Some((state, var)) = &scope.state
            && *state == id
        {
            return kit.b.var(var.clone(), at);
        }
        if let Some(text) = self.enum_text(&value) {
            let text = text.to_string();
            return kit.text(&text, at);
        }
        if let Some(key) = self.state_key(scope, &value)
            && let Some((_, var)) = &scope.state
        {
            let field = self.read(kit, var, &key, at);
            let default = object.callee.ends_with(".get").then(|| object.args.get(1)).flatten();
            return match default.filter(|d| !d.value.is_none()) {
                None => field,
                Some(default) => {
                    let again = self.read(kit, var, &key, at);
                    let test = kit.b.add(Term::Prim(Prim::IsNull, vec![again]), at);
                    let default = self.expr(kit, scope, &default.value);
                    kit.b.add(Term::If(test, default, field, IfSugar::Plain), at)
                }
            };
        }
        if let Some((role, content)) = self.message_of(&value) {
            return self.message(kit, scope, role, &content, at);
        }
        let args: Vec<&Value> = object.args.iter().filter(|a| a.name.is_none()).map(|a| &a.value).collect();
        let Some(base) = object.base else {
            return match self.operator(kit, scope, &object.callee, &args, at) {
                Some(term) => term,
                None => self.made_value(kit, scope, id, at),
            };
        };
        let owner = &self.world.object(base).callee;
        let rest = object.callee.strip_prefix(&**owner).unwrap_or(&object.callee);
        let base = Value::new(PyKind::Object(base), at);
        if let Some(call) = self.call_of(&value) {
            // A call as a whole: what it is called with.
            return match self.call_part(kit, scope, &call, "args", at) {
                Some(term) => term,
                None => self.not_known(kit, &value),
            };
        }
        if &*object.callee == "element" {
            return self.not_known(kit, &value);
        }
        // `x.a.b[k]`, `x[k]`: an item of a member.
        if let Some(member) = rest.strip_suffix("[]") {
            let on = match member.strip_prefix('.') {
                None => base,
                Some(member) => Value::new(PyKind::Member(object.base.unwrap_or(id), member.into()), at),
            };
            let Some(key) = args.first() else { return self.not_known(kit, &value) };
            return self.item(kit, scope, &on, key, at);
        }
        // A method of a member.
        let Some(path) = rest.strip_prefix('.') else { return self.not_known(kit, &value) };
        let (on, method) = match path.rsplit_once('.') {
            Some((member, method)) => {
                (Value::new(PyKind::Member(object.base.unwrap_or(id), member.into()), at), method)
            }
            None => (base, path),
        };
        match self.method(kit, scope, &on, method, &args, at) {
            Some(term) => term,
            None => self.not_known(kit, &value),
        }
    }

    /// A key of the state.
    pub fn read(&self, kit: &mut Kit<'_>, var: &Name, key: &str, at: Span) -> TermId {
        let state = kit.b.var(var.clone(), at);
        kit.b.add(Term::Field(state, key.into()), at)
    }

    /// An instance of a class of the project, or an object of something outside.
    pub(super) fn made_value(&self, kit: &mut Kit<'_>, scope: &Scope, id: ObjectId, at: Span) -> TermId {
        let object = self.world.object(id);
        if object.class.is_some() {
            let mut fields: Vec<(Name, TermId)> = Vec::new();
            let mut names: Vec<&str> = object.attrs.iter().map(|(n, _)| &**n).collect();
            names.extend(object.args.iter().filter_map(|a| a.name.as_deref()));
            for name in names {
                let value = object.attr(name).or_else(|| object.arg(name).map(|a| &a.value));
                if let (Some(value), true) = (value, fields.iter().all(|(n, _)| **n != *name)) {
                    let term = self.expr(kit, scope, value);
                    fields.push((name.into(), term));
                }
            }
            return kit.b.add(Term::Record(fields), at);
        }
        let value = Value::new(PyKind::Object(id), at);
        self.not_known(kit, &value)
    }

    /// Lowers an operator or a builtin function of Python.
    pub(super) fn operator(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        callee: &str,
        args: &[&Value],
        at: Span,
    ) -> Option<TermId> {
        let prim = |kit: &mut Kit<'_>, prim, of: Vec<TermId>| Some(kit.b.add(Term::Prim(prim, of), at));
        match (callee, args) {
            ("if", [test, yes, no]) => Some(self.if_else(kit, scope, [test, yes, no], at)),
            (
                "=="
                | "!="
                | "<"
                | "<="
                | ">"
                | ">="
                | "is"
                | "is not"
                | "in"
                | "not in"
                | "not"
                | "builtins.bool"
                | "builtins.isinstance"
                | "builtins.hasattr"
                | "builtins.any"
                | "builtins.all",
                _,
            ) => self.comparison(kit, scope, callee, args, at),
            // As values: the first that decides.
            ("or" | "and", [first, rest @ ..]) if !rest.is_empty() => {
                let test = self.test(kit, scope, first);
                let value = self.expr(kit, scope, first);
                let rest = if rest.len() == 1 {
                    self.expr(kit, scope, rest[0])
                } else {
                    self.operator(kit, scope, callee, rest, at)?
                };
                let (holds, otherwise) = if callee == "or" { (value, rest) } else { (rest, value) };
                Some(kit.b.add(Term::If(test, holds, otherwise, IfSugar::Plain), at))
            }
            // A path and a part of one.
            ("/", [a, b]) if self.is_text(a) || self.is_text(b) => {
                let (a, b) = (self.expr(kit, scope, a), self.expr(kit, scope, b));
                let mut path = Template::new(at);
                path.term(a).text("/").term(b);
                Some(path.build(&mut kit.b))
            }
            // A repeated text, and a text whose placeholders are filled.
            ("*" | "%", [a, b]) if self.is_text(a) || callee == "*" && self.is_text(b) => None,
            ("+" | "-" | "*" | "/" | "%", [a, b]) => {
                let (a, b) = (self.expr(kit, scope, a), self.expr(kit, scope, b));
                let op = match callee {
                    "+" => Prim::Add,
                    "-" => Prim::Sub,
                    "*" => Prim::Mul,
                    "/" => Prim::Div,
                    _ => Prim::Rem,
                };
                prim(kit, op, vec![a, b])
            }
            ("neg", [a]) => {
                let a = self.expr(kit, scope, a);
                prim(kit, Prim::Neg, vec![a])
            }
            ("[*]", parts) => {
                let mut sum = self.expr(kit, scope, parts.first()?);
                for part in &parts[1..] {
                    let part = self.expr(kit, scope, part);
                    sum = kit.b.add(Term::Prim(Prim::Add, vec![sum, part]), at);
                }
                Some(sum)
            }
            ("[for]", [of, element, each]) => {
                let (list, id) = (self.expr(kit, scope, of), self.world.object_of(element)?.0);
                let var: Name = kit.b.fresh("each");
                let mut inner = scope.clone();
                inner.held.insert(
                    id,
                    BoundResult { var: var.clone(), kind: self.item_kind(scope, of), live: false },
                );
                let body =
                    self.side(kit, &inner, || Condition::Each(id), |kit, inner| self.expr(kit, inner, each));
                let body = kit.b.abs(var, None, body, at);
                Some(kit.b.add(Term::Each(None, body, list), at))
            }
            ("[for]", [of, element, each, test]) => self.filtered(kit, scope, [of, element, each, test], at),
            ("builtins.enumerate", [of]) => self.paired(kit, scope, &[of], Some(0), at),
            ("builtins.enumerate", [of, start]) => match start.kind {
                PyKind::Int(n) => self.paired(kit, scope, &[of], Some(n), at),
                _ => None,
            },
            ("builtins.zip", [_, _, ..]) => self.paired(kit, scope, args, None, at),
            ("builtins.max" | "builtins.min", [a, b]) => {
                let (x, y): (Name, Name) = (kit.b.fresh("v"), kit.b.fresh("v"));
                let (first, second) = (self.expr(kit, scope, a), self.expr(kit, scope, b));
                let var = |kit: &mut Kit<'_>, n: &Name| kit.b.var(n.clone(), at);
                let (a, b) = (var(kit, &x), var(kit, &y));
                let less = kit.b.add(Term::Prim(Prim::Lt, vec![a, b]), at);
                let (a, b) = (var(kit, &x), var(kit, &y));
                let (a, b) = if callee == "builtins.max" { (b, a) } else { (a, b) };
                let either = kit.b.add(Term::If(less, a, b, IfSugar::Plain), at);
                Some(kit.b.let_in(vec![(x, first), (y, second)], either, at))
            }
            (
                "builtins.sum" | "builtins.max" | "builtins.min" | "builtins.next" | "builtins.filter"
                | "builtins.map",
                _,
            ) => self.of_list(kit, scope, callee, args, at),
            ("operator.add" | "operator.concat" | "operator.iadd", [_, _]) => {
                self.operator(kit, scope, "+", args, at)
            }
            ("langchain_core.messages.get_buffer_string" | "langchain.schema.get_buffer_string", [of]) => {
                let list = self.expr(kit, scope, of);
                Some(self.buffer(kit, list, at))
            }
            ("builtins.len", [of]) => {
                let of = self.expr(kit, scope, of);
                prim(kit, Prim::Length, vec![of])
            }
            ("builtins.str", [of]) => {
                let of = self.expr(kit, scope, of);
                prim(kit, Prim::ToStr, vec![of])
            }
            ("builtins.int" | "builtins.float", [of]) => {
                let number = self.expr(kit, scope, of);
                // What is a number already is the number of its text.
                let text = match self.is_text(of) {
                    true => number,
                    false => kit.b.add(Term::Prim(Prim::ToStr, vec![number]), at),
                };
                prim(kit, Prim::ToNum, vec![text])
            }
            ("builtins.list" | "builtins.tuple" | "builtins.dict", [of]) => Some(self.expr(kit, scope, of)),
            ("json.loads", [of]) => {
                let of = self.expr(kit, scope, of);
                prim(kit, Prim::FromJson, vec![of])
            }
            ("json.dumps", [of, ..]) => {
                let of = self.expr(kit, scope, of);
                prim(kit, Prim::ToJson, vec![of])
            }
            ("str.join", [separator, list]) => {
                let (list, separator) = (self.expr(kit, scope, list), self.expr(kit, scope, separator));
                prim(kit, Prim::Join, vec![list, separator])
            }
            (callee, [on, rest @ ..]) => {
                let method = ["str.", "list.", "dict."].iter().find_map(|p| callee.strip_prefix(p))?;
                self.method(kit, scope, on, method, rest, at)
            }
            ("builtins.list", []) => Some(kit.b.add(Term::List(Vec::new()), at)),
            _ => None,
        }
    }

    /// Returns the kind of a list's items.
    pub(super) fn item_kind(&self, scope: &Scope, of: &Value) -> ReplyKind {
        let known = self.world.object_of(of).and_then(|(id, _)| scope.items.get(&id));
        known.copied().unwrap_or(ReplyKind::Data)
    }

    /// Returns true if a value is certainly a list.
    fn is_list(&self, value: &Value) -> bool {
        matches!(self.world.resolve_env(value).kind, PyKind::List(_))
    }

    /// Returns true if a value is certainly a text.
    fn is_text(&self, value: &Value) -> bool {
        matches!(self.world.resolve_env(value).kind, PyKind::Str(_) | PyKind::Text(_))
    }

    /// Lowers the truth value of a value.
    pub fn test(&self, kit: &mut Kit<'_>, scope: &Scope, value: &Value) -> TermId {
        let term = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.test_inner(kit, scope, value));
        super::let_bindings::not_known_whole(kit, term)
    }

    pub(super) fn test_inner(&self, kit: &mut Kit<'_>, scope: &Scope, value: &Value) -> TermId {
        let at = value.span;
        if let Some(calls) = self.calls_of(kit, scope, value, at) {
            return calls;
        }
        if let PyKind::Object(id) = value.kind {
            if self.is_test(value)
                && let Some(name) = self.shared(kit, scope, id, at)
            {
                return name;
            }
            let object = self.world.object(id);
            let args: Vec<&Value> = object.args.iter().map(|a| &a.value).collect();
            if let ("and" | "or", true) = (&*object.callee, object.base.is_none()) {
                let mut tests: Vec<TermId> = args.iter().map(|a| self.test(kit, scope, a)).collect();
                let mut term = tests.pop().unwrap_or_else(|| kit.b.lit(Data::Bool(true), at));
                for test in tests.into_iter().rev() {
                    let and = &*object.callee == "and";
                    let other = kit.b.lit(Data::Bool(!and), at);
                    term = if and {
                        kit.b.add(Term::If(test, term, other, IfSugar::And), at)
                    } else {
                        kit.b.add(Term::If(test, other, term, IfSugar::Or), at)
                    };
                }
                return term;
            }
            if object.base.is_none()
                && let Some(term) = self.comparison(kit, scope, &object.callee, &args, at)
            {
                return term;
            }
        }
        match self.world_truth(value) {
            Some(known) => kit.b.lit(Data::Bool(known), at),
            None => {
                let term = self.expr(kit, scope, value);
                if matches!(kit.b.term(term), Term::Unknown(_)) {
                    return term;
                }
                truthy(kit, term, at)
            }
        }
    }

    pub(super) fn world_truth(&self, value: &Value) -> Option<bool> {
        match &value.kind {
            PyKind::None => Some(false),
            PyKind::Bool(b) => Some(*b),
            PyKind::Int(n) => Some(*n != 0),
            PyKind::Str(s) => Some(!s.is_empty()),
            // A variable that the environment must have has a value.
            PyKind::Env(_) => match self.world.resolve_env(value) {
                Value { kind: PyKind::Env(_), .. } => Some(true),
                settled => self.world_truth(settled),
            },
            _ => None,
        }
    }

    pub(super) fn comparison(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        callee: &str,
        args: &[&Value],
        at: Span,
    ) -> Option<TermId> {
        let not = |kit: &mut Kit<'_>, term| kit.b.add(Term::Prim(Prim::Not, vec![term]), at);
        Some(match (callee, args) {
            ("not", [a]) => {
                let a = self.test(kit, scope, a);
                not(kit, a)
            }
            ("builtins.bool", [a]) => self.test(kit, scope, a),
            ("is" | "is not" | "==" | "!=", [a, b]) if a.is_none() || b.is_none() => {
                let of = self.expr(kit, scope, if a.is_none() { b } else { a });
                let null = kit.b.add(Term::Prim(Prim::IsNull, vec![of]), at);
                if matches!(callee, "is" | "==") { null } else { not(kit, null) }
            }
            // How many calls the last reply has: one or none.
            (">" | "!=" | ">=" | "==", [a, b]) if self.counts_calls(a).is_some() => {
                let PyKind::Int(n) = b.kind else { return None };
                let calls = self.calls_of(kit, scope, self.counts_calls(a)?, at)?;
                match (callee, n) {
                    (">" | "!=", 0) | (">=" | "==", 1) => calls,
                    ("==", 0) => not(kit, calls),
                    (">" | "!=", 1) => kit.b.lit(Data::Bool(false), at),
                    _ => return None,
                }
            }
            // Whether one set is a part of another.
            ("<" | "<=" | ">" | ">=", [a, b]) if self.is_list(a) || self.is_list(b) => {
                kit.undecided(codes::NOT_COMPILED, "which of two lists or sets is more".into(), at)
            }
            ("==" | "!=" | "<" | "<=" | ">" | ">=" | "is" | "is not", [a, b]) => {
                let op = match callee {
                    "==" | "is" => Prim::Eq,
                    "!=" | "is not" => Prim::Ne,
                    "<" => Prim::Lt,
                    "<=" => Prim::Le,
                    ">" => Prim::Gt,
                    _ => Prim::Ge,
                };
                let (a, b) = (self.expr(kit, scope, a), self.expr(kit, scope, b));
                kit.b.add(Term::Prim(op, vec![a, b]), at)
            }
            ("in" | "not in", [a, b]) => {
                let needle = self.expr(kit, scope, a);
                let of = self.expr(kit, scope, b);
                let found = kit.b.add(Term::Prim(Prim::Contains, vec![of, needle]), at);
                if callee == "in" { found } else { not(kit, found) }
            }
            ("builtins.hasattr", [on, name]) if self.is_reply(scope, on) => {
                kit.b.lit(Data::Bool(matches!(name.as_str(), Some("tool_calls" | "content"))), at)
            }
            // Some of a list, or all of it.
            ("builtins.any" | "builtins.all", [of]) => {
                let any = callee == "builtins.any";
                let found = match self.known_list(of) {
                    Some(items) => {
                        let mut term = kit.b.lit(Data::Bool(!any), at);
                        for item in items.iter().rev() {
                            let test = self.test(kit, scope, item);
                            let decided = kit.b.lit(Data::Bool(any), at);
                            term = match any {
                                true => kit.b.add(Term::If(test, decided, term, IfSugar::Or), at),
                                false => kit.b.add(Term::If(test, term, decided, IfSugar::And), at),
                            };
                        }
                        return Some(term);
                    }
                    None => self.tests_of(kit, scope, of, at)?,
                };
                // What decides is among them, or is not.
                let wanted = kit.b.lit(Data::Bool(any), at);
                let contains = kit.b.add(Term::Prim(Prim::Contains, vec![found, wanted]), at);
                if any { contains } else { not(kit, contains) }
            }
            ("builtins.isinstance", [on, class]) if self.known_list(class).is_some() => {
                let mut term = kit.b.lit(Data::Bool(false), at);
                for class in self.known_list(class)?.iter().rev() {
                    let test = self.comparison(kit, scope, callee, &[on, class], at)?;
                    let yes = kit.b.lit(Data::Bool(true), at);
                    term = kit.b.add(Term::If(test, yes, term, IfSugar::Or), at);
                }
                term
            }
            ("builtins.isinstance", [on, class]) => {
                let class = self.world.name_of(class)?;
                let plain = match &*class {
                    "builtins.str" => Some(Prim::IsStr),
                    "builtins.dict" => Some(Prim::IsRecord),
                    "builtins.list" | "builtins.tuple" => Some(Prim::IsArray),
                    "builtins.int" | "builtins.float" => Some(Prim::IsNum),
                    "builtins.bool" => Some(Prim::IsBool),
                    _ => None,
                };
                if let Some(prim) = plain {
                    let on = self.expr(kit, scope, on);
                    return Some(kit.b.add(Term::Prim(prim, vec![on]), at));
                }
                let role = message_role(&class)?;
                // A reply is what the assistant says, whatever it is here.
                if self.held_text(scope, on) {
                    return Some(kit.b.lit(Data::Bool(role == Role::Assistant), at));
                }
                let message = self.expr(kit, scope, on);
                let said = kit.b.add(Term::Field(message, "role".into()), at);
                let role = kit.text(role.as_str(), at);
                kit.b.add(Term::Prim(Prim::Eq, vec![said, role]), at)
            }
            _ => return None,
        })
    }

    /// The keys of the state that a function reads.
    pub fn keys_read(&self, traced: &super::Traced) -> Vec<(String, Span)> {
        let scope = Scope { state: Some((traced.state, STATE.into())), ..Scope::default() };
        let read = |id: &ObjectId| {
            let object = self.world.object(*id);
            let key = self.state_key(&scope, &Value::new(PyKind::Object(*id), object.span))?;
            Some((key, object.span))
        };
        traced.trace.objects.iter().filter_map(read).collect()
    }

    /// The keys that an update writes, on any way.
    pub fn keys_written(&self, value: &Value, out: &mut Vec<(String, Span)>) {
        const MAX_KEYS: usize = 200;
        let mut todo = vec![value.clone()];
        while let Some(value) = todo.pop() {
            if out.len() > MAX_KEYS {
                return;
            }
            match &value.kind {
                PyKind::Dict(id) => {
                    out.extend(
                        self.world
                            .dict(*id)
                            .entries
                            .iter()
                            .filter_map(|(k, _)| Some((k.as_str()?.to_string(), k.span))),
                    );
                }
                PyKind::Either(id) | PyKind::List(id) => {
                    todo.extend(self.world.list(*id).items.iter().cloned())
                }
                PyKind::Object(id) => {
                    let object = self.world.object(*id);
                    match object.short() {
                        "if" => todo.extend(object.args.iter().skip(1).map(|a| a.value.clone())),
                        "Command" => todo.extend(object.arg("update").map(|a| a.value.clone())),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
}

/// Lowers the truth value of data by the rules of Python.
pub(crate) fn truthy(kit: &mut Kit<'_>, term: TermId, at: Span) -> TermId {
    let name: Name = kit.b.fresh("v");
    let var = |kit: &mut Kit<'_>| kit.b.var(name.clone(), at);
    let mut chain = kit.b.lit(Data::Bool(true), at);
    // What is empty counts as false, whatever it is.
    for (is, empty) in [
        (Prim::IsArray, Data::list(Vec::new())),
        (Prim::IsRecord, Data::record([])),
        (Prim::IsNum, Data::Num(Num::from(0i64))),
        (Prim::IsStr, Data::str("")),
    ] {
        let (a, b) = (var(kit), var(kit));
        let empty = kit.b.lit(empty, at);
        let test = kit.b.add(Term::Prim(is, vec![a]), at);
        let full = kit.b.add(Term::Prim(Prim::Ne, vec![b, empty]), at);
        chain = kit.b.add(Term::If(test, full, chain, IfSugar::Plain), at);
    }
    let (a, b, c) = (var(kit), var(kit), var(kit));
    let is_bool = kit.b.add(Term::Prim(Prim::IsBool, vec![a]), at);
    let chain = kit.b.add(Term::If(is_bool, b, chain, IfSugar::Plain), at);
    let is_null = kit.b.add(Term::Prim(Prim::IsNull, vec![c]), at);
    let no = kit.b.lit(Data::Bool(false), at);
    let chain = kit.b.add(Term::If(is_null, no, chain, IfSugar::Plain), at);
    kit.b.let_in(vec![(name, term)], chain, at)
}

/// Makes the unknown term for a value beyond the size limit.
pub(super) fn too_much(kit: &mut Kit<'_>, at: Span) -> TermId {
    kit.undecided(codes::NOT_COMPILED, "this is computed in more steps than are compiled".into(), at)
}

/// Makes the term for a path that raises an exception.
pub(super) fn raised(kit: &mut Kit<'_>, at: Span) -> TermId {
    let message = kit.text("an exception is raised", at);
    kit.b.add(Term::Fail(message), at)
}

/// Role of messages of a class.
pub(super) fn message_role(class: &str) -> Option<Role> {
    Some(match class.rsplit('.').next().unwrap_or(class) {
        "HumanMessage" | "HumanMessageChunk" | "HumanMessagePromptTemplate" => Role::User,
        "SystemMessage" | "SystemMessageChunk" | "SystemMessagePromptTemplate" => Role::System,
        "AIMessage" | "AIMessageChunk" | "AIMessagePromptTemplate" => Role::Assistant,
        "ToolMessage" | "FunctionMessage" => Role::Tool,
        _ => return None,
    })
}

/// Role of the core for a role's name.
pub(super) fn role_of(name: &str) -> Option<Role> {
    Some(match name {
        "user" | "human" => Role::User,
        "system" | "developer" => Role::System,
        "assistant" | "ai" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return None,
    })
}
