//! Parts of values as terms: attributes, items, slices and methods; replies of models and their calls.

use super::value::{REPLY, Scope};
use super::{GraphReader, ReplyKind};
use core_ir::{Branch, Data, IfSugar, Name, Num, Prim, Role, Term, TermId, Type};
use diagnostics::Span;
use frontend_kit::emit::{clip, codes};
use frontend_kit::kit::Kit;
use python::{PyKind, Value};

impl GraphReader<'_, '_> {
    /// `len(x.tool_calls)`.
    pub(super) fn counts_calls<'v>(&'v self, value: &'v Value) -> Option<&'v Value> {
        let (_, object) = self.world.object_of(value)?;
        let of = &object.args.first().filter(|_| &*object.callee == "builtins.len")?.value;
        matches!(&of.kind, PyKind::Member(_, name) if name.ends_with("tool_calls")).then_some(of)
    }

    /// Returns true if a value is a reply of a model, or the last message.
    pub(super) fn is_reply(&self, scope: &Scope, value: &Value) -> bool {
        let PyKind::Object(id) = value.kind else { return false };
        if scope.held.contains_key(&id) {
            return true;
        }
        let object = self.world.object(id);
        let Some(base) = object.base else { return false };
        let last = object.args.first().is_some_and(|a| matches!(a.value.kind, PyKind::Int(-1)));
        let of = match object
            .callee
            .strip_suffix("[]")
            .and_then(|c| c.strip_prefix(&*self.world.object(base).callee))
        {
            Some("") => Value::new(PyKind::Object(base), value.span),
            Some(member) => {
                Value::new(PyKind::Member(base, member.trim_start_matches('.').into()), value.span)
            }
            None => return false,
        };
        last && self.is_conversation(scope, &of)
    }

    /// Lowers `x.tool_calls` as a test: does the reply call tools?
    pub(super) fn calls_of(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        value: &Value,
        at: Span,
    ) -> Option<TermId> {
        let PyKind::Member(id, name) = &value.kind else { return None };
        if !matches!(&**name, "tool_calls" | "additional_kwargs.tool_calls") {
            return None;
        }
        let on = Value::new(PyKind::Object(*id), at);
        let reply = self.reply(kit, scope, &on, at)?;
        let (yes, no) = (kit.b.lit(Data::Bool(true), at), kit.b.lit(Data::Bool(false), at));
        let branches = vec![Branch { tag: "final".into(), binder: None, body: no }];
        Some(kit.b.add(Term::Case { scrutinee: reply, branches, default: Some(yes) }, at))
    }

    /// The reply of a model as a tag, if a value is one.
    pub(super) fn reply(&self, kit: &mut Kit<'_>, scope: &Scope, on: &Value, at: Span) -> Option<TermId> {
        if !self.is_reply(scope, on) {
            return None;
        }
        if let PyKind::Object(id) = on.kind
            && let Some(held) = scope.held.get(&id)
        {
            return match held.kind {
                ReplyKind::Calls => Some(kit.b.var(held.var.clone(), at)),
                ReplyKind::Text => {
                    let text = kit.b.var(held.var.clone(), at);
                    Some(kit.b.add(Term::Tag("final".into(), Some(text)), at))
                }
                _ => None,
            };
        }
        let (_, var) = scope.state.as_ref()?;
        if !scope.replies {
            let nothing = kit.text("", at);
            return Some(kit.b.add(Term::Tag("final".into(), Some(nothing)), at));
        }
        Some(self.read(kit, var, REPLY, at))
    }

    /// The `tool_calls` that a value is one of.
    pub(super) fn call_of(&self, value: &Value) -> Option<Value> {
        let (_, object) = self.world.object_of(value)?;
        let base = object.base?;
        let calls = match &*object.callee {
            "element" => object.args.first().map(|a| a.value.clone())?,
            callee => {
                let member = callee.strip_prefix(&*self.world.object(base).callee)?.strip_suffix("[]")?;
                Value::new(PyKind::Member(base, member.strip_prefix('.')?.into()), value.span)
            }
        };
        let is =
            matches!(&calls.kind, PyKind::Member(_, name) if name.rsplit('.').next() == Some("tool_calls"));
        is.then_some(calls)
    }

    /// The name or the arguments of the call that a reply is.
    pub(super) fn call_part(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        calls: &Value,
        part: &str,
        at: Span,
    ) -> Option<TermId> {
        let PyKind::Member(id, _) = &calls.kind else { return None };
        let reply = self.reply(kit, scope, &Value::new(PyKind::Object(*id), at), at)?;
        let mut branches = Vec::new();
        for name in &scope.tools {
            let (binder, body) = match part {
                "name" => (None, kit.text(name, at)),
                "args" => (Some(Name::from("a")), kit.b.var("a", at)),
                "id" => (None, kit.text("", at)),
                _ => return None,
            };
            branches.push(Branch { tag: name.clone(), binder, body });
        }
        let default = match part {
            "args" => kit.b.lit(Data::record([]), at),
            _ => kit.text("", at),
        };
        Some(kit.b.add(Term::Case { scrutinee: reply, branches, default: Some(default) }, at))
    }

    /// The test and the sides of a value that is one of two.
    pub fn either_of(&self, value: &Value) -> Option<(Value, Value, Value)> {
        let (_, object) = self.world.object_of(value)?;
        let [test, yes, no] = &object.args[..] else { return None };
        (object.base.is_none() && &*object.callee == "if")
            .then(|| (test.value.clone(), yes.value.clone(), no.value.clone()))
    }

    /// `on.member`, which may have dots.
    pub(super) fn member(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        on: &Value,
        member: &str,
        at: Span,
    ) -> TermId {
        if let (Some((state, var)), PyKind::Object(id)) = (&scope.state, &on.kind)
            && state == id
        {
            let var = var.clone();
            let mut parts = member.split('.');
            let mut term = self.read(kit, &var, parts.next().unwrap_or(member), at);
            for part in parts {
                term = kit.b.add(Term::Field(term, part.into()), at);
            }
            return term;
        }
        if let Some((test, yes, no)) = self.either_of(on).filter(|_| !self.is_shared(scope, on)) {
            let test = self.test(kit, scope, &test);
            let (yes, no) = stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                (self.member(kit, scope, &yes, member, at), self.member(kit, scope, &no, member, at))
            });
            return kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at);
        }
        if let Some(calls) = self.call_of(on)
            && let Some(term) = self.call_part(kit, scope, &calls, member, at)
        {
            return term;
        }
        if let PyKind::Object(id) = on.kind
            && let Some(held) = scope.held.get(&id).cloned()
        {
            let var = kit.b.var(held.var.clone(), at);
            return match (held.kind, member) {
                (ReplyKind::Data, "type") if self.is_message(scope, on) => {
                    self.message_type(kit, scope, on, at)
                }
                (ReplyKind::Data, name)
                    if !matches!(name, "content" | "text") && self.is_message(scope, on) =>
                {
                    kit.undecided(codes::NOT_COMPILED, format!("`{}` of a message", clip(name)), at)
                }
                (ReplyKind::Text, "content" | "text") => var,
                (ReplyKind::Calls, "content" | "text") => {
                    let (a, nothing) = (kit.b.var("a", at), kit.text("", at));
                    let branches = vec![Branch { tag: "final".into(), binder: Some("a".into()), body: a }];
                    kit.b.add(Term::Case { scrutinee: var, branches, default: Some(nothing) }, at)
                }
                (ReplyKind::Text | ReplyKind::Calls, _) => {
                    kit.undecided(codes::NOT_COMPILED, format!("`{member}` of a reply"), at)
                }
                (ReplyKind::Data, _) => {
                    let mut term = var;
                    for part in member.split('.') {
                        term = kit.b.add(Term::Field(term, part.into()), at);
                    }
                    term
                }
            };
        }
        if self.is_message(scope, on) {
            return match member {
                "content" | "text" => {
                    let message = self.expr(kit, scope, on);
                    kit.b.add(Term::Field(message, "content".into()), at)
                }
                "type" => self.message_type(kit, scope, on, at),
                _ => kit.undecided(codes::NOT_COMPILED, format!("`{}` of a message", clip(member)), at),
            };
        }
        let mut term = self.expr(kit, scope, on);
        for part in member.split('.') {
            // `.value` of what is one of an enumeration is its text.
            if part != "value" {
                term = self.field(kit, term, part, at);
            }
        }
        term
    }

    /// A field of something that may be null on some ways.
    pub(super) fn field(&self, kit: &mut Kit<'_>, term: TermId, name: &str, at: Span) -> TermId {
        let open = matches!(kit.b.term(term), Term::If(..) | Term::Let { .. } | Term::Lit(_));
        let term = if open { kit.b.add(Term::Check("value".into(), Type::Dyn, term), at) } else { term };
        kit.b.add(Term::Field(term, name.into()), at)
    }

    /// Returns true if a value is one of the conversation's messages.
    pub(super) fn is_message(&self, scope: &Scope, value: &Value) -> bool {
        let PyKind::Object(id) = value.kind else { return false };
        let object = self.world.object(id);
        if &*object.callee == "element" {
            let of = object.args.first().map(|a| &a.value);
            return of.is_some_and(|of| self.is_conversation(scope, of) || self.is_messages(scope, of, 0));
        }
        let whole = object.args.first().is_some_and(|a| matches!(a.value.kind, PyKind::Int(_)));
        let Some(of) = self.owner(object, value.span) else { return false };
        whole && self.is_conversation(scope, &of)
    }

    /// Returns the owner of an item or a slice: `x` and `x.a` of `x[…]` and `x.a[…]`.
    pub(super) fn owner(&self, object: &python::Object, at: Span) -> Option<Value> {
        let base = object.base?;
        let owner = &self.world.object(base).callee;
        match object.callee.strip_prefix(&**owner)?.strip_suffix("[]")? {
            "" => Some(Value::new(PyKind::Object(base), at)),
            member => Some(Value::new(PyKind::Member(base, member.trim_start_matches('.').into()), at)),
        }
    }

    /// Role of a message, in the framework's words.
    pub(super) fn message_type(&self, kit: &mut Kit<'_>, scope: &Scope, on: &Value, at: Span) -> TermId {
        let message = self.expr(kit, scope, on);
        let role = kit.b.add(Term::Field(message, "role".into()), at);
        let names = [("user", "human"), ("assistant", "ai"), ("system", "system")];
        let branches = names.iter().map(|(role, name)| Branch {
            tag: (*role).into(),
            binder: None,
            body: kit.text(name, at),
        });
        let branches = branches.collect();
        let tool = kit.text("tool", at);
        kit.b.add(Term::Case { scrutinee: role, branches, default: Some(tool) }, at)
    }

    /// `on[key]`.
    pub(super) fn item(&self, kit: &mut Kit<'_>, scope: &Scope, on: &Value, key: &Value, at: Span) -> TermId {
        if let Some((test, yes, no)) = self.either_of(on).filter(|_| !self.is_shared(scope, on)) {
            let test = self.test(kit, scope, &test);
            let (yes, no) = stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                (self.item(kit, scope, &yes, key, at), self.item(kit, scope, &no, key, at))
            });
            return kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at);
        }
        if let (Some(calls), Some(part)) = (self.call_of(on), key.as_str())
            && let Some(term) = self.call_part(kit, scope, &calls, part, at)
        {
            return term;
        }
        // What another graph or an agent gave: its conversation.
        if let (PyKind::Object(id), Some("messages" | "output")) = (&on.kind, key.as_str())
            && scope.held.get(id).is_some_and(|h| matches!(h.kind, ReplyKind::Text | ReplyKind::Calls))
        {
            return self.expr(kit, scope, on);
        }
        if self.is_run_messages(scope, on) {
            // One message represents all that an agent said: its last.
            let text = self.expr(kit, scope, on);
            return self.message_term(kit, Role::Assistant, text, at);
        }
        match &key.kind {
            PyKind::Str(name) => {
                let on = self.expr(kit, scope, on);
                self.field(kit, on, name, at)
            }
            PyKind::Int(n) if *n >= 0 => {
                let (on, n) = (self.expr(kit, scope, on), kit.b.lit(Num::from(*n), at));
                kit.b.add(Term::Index(on, n), at)
            }
            PyKind::Int(n) => {
                let list = self.expr(kit, scope, on);
                self.nth_last(kit, list, n.unsigned_abs(), at)
            }
            PyKind::Object(id) if &*self.world.object(*id).callee == "slice" => {
                let parts: Vec<Value> = self.world.object(*id).args.iter().map(|a| a.value.clone()).collect();
                self.slice(kit, scope, on, &parts, at)
            }
            PyKind::Unknown(_) => self.not_known(kit, key),
            _ => {
                let (on, key) = (self.expr(kit, scope, on), self.expr(kit, scope, key));
                kit.b.add(Term::Index(on, key), at)
            }
        }
    }

    /// Returns true if a value is `held["messages"]` of an agent's result.
    pub(super) fn is_run_messages(&self, scope: &Scope, value: &Value) -> bool {
        let PyKind::Object(id) = value.kind else { return false };
        let object = self.world.object(id);
        let key = object.args.first().and_then(|a| a.value.as_str());
        let held = object.base.and_then(|b| scope.held.get(&b));
        key == Some("messages") && held.is_some_and(|h| matches!(h.kind, ReplyKind::Text | ReplyKind::Calls))
    }

    /// Item number `n` from the end, the last being 1.
    pub fn nth_last(&self, kit: &mut Kit<'_>, list: TermId, n: u64, at: Span) -> TermId {
        let name: Name = kit.b.fresh("v");
        let (a, b) = (kit.b.var(name.clone(), at), kit.b.var(name.clone(), at));
        let length = kit.b.add(Term::Prim(Prim::Length, vec![a]), at);
        let n = kit.b.lit(Num::from(i64::try_from(n).unwrap_or(i64::MAX)), at);
        let index = kit.b.add(Term::Prim(Prim::Sub, vec![length, n]), at);
        let item = kit.b.add(Term::Index(b, index), at);
        kit.b.let_in(vec![(name, list)], item, at)
    }

    /// `on[from:to]`; only bounds that are written, and no step.
    pub(super) fn slice(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        on: &Value,
        parts: &[Value],
        at: Span,
    ) -> TermId {
        let bound = |v: Option<&Value>| match v.map(|v| &v.kind) {
            None | Some(PyKind::None) => Some(None),
            Some(PyKind::Int(n)) => Some(Some(*n)),
            _ => None,
        };
        let (Some(from), Some(to), Some(None)) =
            (bound(parts.first()), bound(parts.get(1)), bound(parts.get(2)))
        else {
            return kit.undecided(codes::NOT_COMPILED, "a part of a list".into(), at);
        };
        let list = self.expr(kit, scope, on);
        self.slice_of(kit, list, from, to, at)
    }

    /// A part of a list or a text, from one place to before another one; negative ones count from the end.
    pub(super) fn slice_of(
        &self,
        kit: &mut Kit<'_>,
        list: TermId,
        from: Option<i64>,
        to: Option<i64>,
        at: Span,
    ) -> TermId {
        let name: Name = kit.b.fresh("v");
        let length = |kit: &mut Kit<'_>| {
            let var = kit.b.var(name.clone(), at);
            kit.b.add(Term::Prim(Prim::Length, vec![var]), at)
        };
        // A negative bound counts from the end, and never goes before the beginning; none goes beyond the
        // end.
        let place = |kit: &mut Kit<'_>, n: Option<i64>, default: bool| match n {
            None if default => length(kit),
            None => kit.b.lit(Num::from(0i64), at),
            Some(n) => {
                let whole = length(kit);
                let size = kit.b.lit(Num::from(i64::try_from(n.unsigned_abs()).unwrap_or(i64::MAX)), at);
                let test = kit.b.add(Term::Prim(Prim::Gt, vec![whole, size]), at);
                let size = kit.b.lit(Num::from(i64::try_from(n.unsigned_abs()).unwrap_or(i64::MAX)), at);
                let (near, far) = match n < 0 {
                    true => {
                        let whole = length(kit);
                        (
                            kit.b.add(Term::Prim(Prim::Sub, vec![whole, size]), at),
                            kit.b.lit(Num::from(0i64), at),
                        )
                    }
                    false => (size, length(kit)),
                };
                kit.b.add(Term::If(test, near, far, IfSugar::Plain), at)
            }
        };
        let (from, to) = (place(kit, from, false), place(kit, to, true));
        let var = kit.b.var(name.clone(), at);
        let part = kit.b.add(Term::Prim(Prim::Slice, vec![var, from, to]), at);
        kit.b.let_in(vec![(name, list)], part, at)
    }

    /// `on.method(args)` of texts, lists and dictionaries.
    pub(super) fn method(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        on: &Value,
        method: &str,
        args: &[&Value],
        at: Span,
    ) -> Option<TermId> {
        let op = match (method, args) {
            ("strip", []) => Prim::Trim,
            ("lower" | "casefold", []) => Prim::Lower,
            ("upper", []) => Prim::Upper,
            ("split", []) => {
                let text = self.expr(kit, scope, on);
                return Some(self.words(kit, text, at));
            }
            ("capitalize", []) => {
                let text = self.expr(kit, scope, on);
                let name: Name = kit.b.fresh("v");
                let (a, b) = (kit.b.var(name.clone(), at), kit.b.var(name.clone(), at));
                let first = self.slice_of(kit, a, None, Some(1), at);
                let first = kit.b.add(Term::Prim(Prim::Upper, vec![first]), at);
                let rest = self.slice_of(kit, b, Some(1), None, at);
                let rest = kit.b.add(Term::Prim(Prim::Lower, vec![rest]), at);
                let whole = kit.b.add(Term::Prim(Prim::Add, vec![first, rest]), at);
                return Some(kit.b.let_in(vec![(name, text)], whole, at));
            }
            ("split", [by]) => {
                let (on, by) = (self.expr(kit, scope, on), self.expr(kit, scope, by));
                return Some(kit.b.add(Term::Prim(Prim::Split, vec![on, by]), at));
            }
            ("replace", [from, to]) => {
                let parts = vec![self.expr(kit, scope, on), self.expr(kit, scope, from)];
                let parts = kit.b.add(Term::Prim(Prim::Split, parts), at);
                let to = self.expr(kit, scope, to);
                return Some(kit.b.add(Term::Prim(Prim::Join, vec![parts, to]), at));
            }
            ("startswith" | "endswith", [affix]) => {
                let affix = affix.as_str()?;
                let count = i64::try_from(affix.chars().count()).ok()?;
                let name: Name = kit.b.fresh("v");
                let text = self.expr(kit, scope, on);
                let var = |kit: &mut Kit<'_>| kit.b.var(name.clone(), at);
                let (of, measured) = (var(kit), var(kit));
                let length = kit.b.add(Term::Prim(Prim::Length, vec![measured]), at);
                let zero = kit.b.lit(Num::from(0i64), at);
                let wanted = kit.b.lit(Num::from(count), at);
                let (from, to) = match method {
                    "startswith" => (zero, wanted),
                    _ => (kit.b.add(Term::Prim(Prim::Sub, vec![length, wanted]), at), {
                        let again = var(kit);
                        kit.b.add(Term::Prim(Prim::Length, vec![again]), at)
                    }),
                };
                let part = kit.b.add(Term::Prim(Prim::Slice, vec![of, from, to]), at);
                let affix = kit.text(affix, at);
                let same = kit.b.add(Term::Prim(Prim::Eq, vec![part, affix]), at);
                // A text that is shorter has no such part.
                let measured = var(kit);
                let length = kit.b.add(Term::Prim(Prim::Length, vec![measured]), at);
                let wanted = kit.b.lit(Num::from(count), at);
                let long = kit.b.add(Term::Prim(Prim::Ge, vec![length, wanted]), at);
                let no = kit.b.lit(Data::Bool(false), at);
                let test = kit.b.add(Term::If(long, same, no, IfSugar::And), at);
                return Some(kit.b.let_in(vec![(name, text)], test, at));
            }
            ("splitlines", []) => {
                let (on, by) = (self.expr(kit, scope, on), kit.text("\n", at));
                return Some(kit.b.add(Term::Prim(Prim::Split, vec![on, by]), at));
            }
            ("keys", []) => Prim::Keys,
            ("model_dump" | "dict" | "copy" | "model_copy", []) => return Some(self.expr(kit, scope, on)),
            ("model_dump_json", []) => Prim::ToJson,
            ("get", [key]) => {
                let key = key.as_str()?.to_string();
                if matches!(&*key, "messages" | "output") && self.held_text(scope, on) {
                    return Some(self.expr(kit, scope, on));
                }
                return Some(self.optional(kit, scope, on, &key, None, at));
            }
            ("get", [key, default]) => {
                let key = key.as_str()?.to_string();
                if matches!(&*key, "messages" | "output") && self.held_text(scope, on) {
                    return Some(self.expr(kit, scope, on));
                }
                return Some(self.optional(kit, scope, on, &key, Some(default), at));
            }
            _ => return None,
        };
        let on = self.expr(kit, scope, on);
        Some(kit.b.add(Term::Prim(op, vec![on]), at))
    }

    pub(super) fn held_text(&self, scope: &Scope, on: &Value) -> bool {
        matches!(on.kind, PyKind::Object(id) if scope.held.get(&id).is_some_and(|h| matches!(h.kind, ReplyKind::Text | ReplyKind::Calls)))
    }

    /// A field that may be missing.
    pub(super) fn optional(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        on: &Value,
        key: &str,
        default: Option<&Value>,
        at: Span,
    ) -> TermId {
        let record = self.expr(kit, scope, on);
        let name: Name = kit.b.fresh("v");
        let (a, b) = (kit.b.var(name.clone(), at), kit.b.var(name.clone(), at));
        let text = kit.text(key, at);
        let test = kit.b.add(Term::Prim(Prim::Has, vec![a, text]), at);
        let field = kit.b.add(Term::Field(b, key.into()), at);
        let default = match default {
            Some(default) => self.expr(kit, scope, default),
            None => kit.b.lit(Data::Null, at),
        };
        let body = kit.b.add(Term::If(test, field, default, IfSugar::Plain), at);
        kit.b.let_in(vec![(name, record)], body, at)
    }
}
