//! State updates of nodes, merged by the reducers of the keys.

use super::node::{GOTO, Graph, Mode, SENT};
use super::plan::Reducer;
use super::value::{BoundResult, REPLY, Scope};
use super::{GraphReader, ReplyKind};
use crate::py::field;
use core_ir::{IfSugar, Name, Prim, Role, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::{clip, codes, undecided};
use frontend_kit::kit::Kit;
use python::{ObjectId, PyKind, Value};

/// Context of an update: the graph and its node, the scope, and the expected result.
#[derive(Clone, Copy)]
pub(super) struct Site<'s> {
    pub graph: &'s Graph<'s>,
    pub scope: &'s Scope,
    pub mode: Mode,
    /// The node.
    pub name: &'s str,
    pub at: Span,
}

/// A key of an update, and its value: what it is put together of, for messages.
type Entry = (String, Vec<Value>);

impl GraphReader<'_, '_> {
    /// Lowers the result of a node as the new state or as an update.
    pub(super) fn update(&self, kit: &mut Kit<'_>, site: Site<'_>, value: &Value) -> TermId {
        let Some(command) = self.command(value) else {
            return self.goes(kit, site, value, None);
        };
        let nothing = Value::new(PyKind::None, value.span);
        let given = field(command, None, "update").map_or(nothing, |g| g.value.clone());
        let to = field(command, None, "goto").map(|g| g.value.clone());
        self.goes(kit, site, &given, to.as_ref())
    }

    /// An update, and where it goes on.
    fn goes(&self, kit: &mut Kit<'_>, site: Site<'_>, given: &Value, to: Option<&Value>) -> TermId {
        if !kit.budget.begin_value() {
            return super::value::too_much(kit, site.at);
        }
        let term = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.goes_inner(kit, site, given, to));
        kit.budget.end_value();
        term
    }

    fn goes_inner(&self, kit: &mut Kit<'_>, site: Site<'_>, given: &Value, to: Option<&Value>) -> TermId {
        // What is one of two values is decided first, for both.
        if let Some((test, ..)) = self.either_of(given).or_else(|| to.and_then(|t| self.either_of(t))) {
            let (yes, no) = self.sides(given, &test);
            let sides = to.map(|t| self.sides(t, &test));
            let (to_yes, to_no) = sides.map_or((None, None), |(a, b)| (Some(a), Some(b)));
            let test = self.test(kit, site.scope, &test);
            let yes = self.goes(kit, site, &yes, to_yes.as_ref());
            let no = self.goes(kit, site, &no, to_no.as_ref());
            return kit.b.add(Term::If(test, yes, no, IfSugar::Plain), site.at);
        }
        let Some(to) = to else {
            return self.merged(kit, site, given, None);
        };
        if self.sent(to).is_some() {
            let term = self.sent_items(kit, site.scope, to, to.span);
            let state = self.merged(kit, site, given, None);
            return kit.b.add(Term::With(state, SENT.into(), term), to.span);
        }
        let goto = match self.labels(to) {
            Some(labels) => kit.text(&labels.join("+"), to.span),
            // A text that is computed names the node.
            None => self.expr(kit, site.scope, to),
        };
        self.merged(kit, site, given, Some(goto))
    }

    fn merged(&self, kit: &mut Kit<'_>, site: Site<'_>, given: &Value, goto: Option<TermId>) -> TermId {
        let Site { graph, scope, mode, name, at } = site;
        let Some((_, var)) = scope.state.clone() else { return kit.unknown("a node without a state", at) };
        let Some(entries) = self.entries_of(scope, given) else {
            // What another graph or an agent gave is the update.
            if let PyKind::Object(id) = given.kind
                && let Some(held) = scope.held.get(&id).cloned()
                && let (Some(key), ReplyKind::Text | ReplyKind::Calls) = (graph.plan.messages(), held.kind)
            {
                let message = Value::new(PyKind::Object(id), given.span);
                return self.apply(kit, site, &[(key.to_string(), vec![message])], goto);
            }
            let why = format!("what `{}` changes: {}", clip(name), self.world.unknown_reason(given));
            let term = kit.undecided(codes::NOT_COMPILED, why, given.span);
            if mode == Mode::Alone {
                let state = kit.b.var(var, at);
                let state = kit.b.let_in(vec![("_".into(), term)], state, at);
                return match goto {
                    Some(goto) => kit.b.add(Term::With(state, GOTO.into(), goto), at),
                    None => state,
                };
            }
            let fields = goto.map(|goto| (Name::from(GOTO), goto)).into_iter().collect();
            let update = kit.b.add(Term::Record(fields), at);
            return kit.b.let_in(vec![("_".into(), term)], update, at);
        };
        let messages = graph.plan.messages();
        let parts = |(key, value): (String, Value)| {
            let parts = if Some(key.as_str()) == messages { self.joined_of(&value) } else { vec![value] };
            (key, parts)
        };
        self.applied(kit, site, entries.into_iter().map(parts).collect(), goto)
    }

    /// Returns the parts of a concatenation: `a + b`, `[*a, b]`.
    fn joined_of(&self, value: &Value) -> Vec<Value> {
        const MAX_PARTS: usize = 200;
        let (mut out, mut todo) = (Vec::new(), vec![value.clone()]);
        while let Some(value) = todo.pop() {
            match self.world.object_of(&value) {
                Some((_, o))
                    if o.base.is_none() && matches!(&*o.callee, "+" | "[*]") && out.len() < MAX_PARTS =>
                {
                    todo.extend(o.args.iter().rev().map(|a| a.value.clone()));
                }
                _ => out.push(value),
            }
        }
        out
    }

    /// An update; if a part of what is added to the conversation is one of two things, it is decided first.
    fn applied(
        &self,
        kit: &mut Kit<'_>,
        site: Site<'_>,
        entries: Vec<Entry>,
        goto: Option<TermId>,
    ) -> TermId {
        let messages = site.graph.plan.messages();
        let decided = |(i, (key, parts)): (usize, &Entry)| {
            let open = parts.iter().position(|v| self.either_of(v).is_some());
            open.filter(|_| Some(key.as_str()) == messages).map(|j| (i, j))
        };
        let found = entries.iter().enumerate().find_map(decided).filter(|_| goto.is_none());
        let Some(((i, j), (test, yes, no))) =
            found.and_then(|(i, j)| Some(((i, j), self.either_of(&entries[i].1[j])?)))
        else {
            return self.apply(kit, site, &entries, goto);
        };
        if !kit.budget.begin_value() {
            return super::value::too_much(kit, site.at);
        }
        let side = |value: &Value| {
            let mut entries = entries.clone();
            entries[i].1.splice(j..=j, self.joined_of(value));
            entries
        };
        let test = self.test(kit, site.scope, &test);
        let (yes, no) = stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            let yes = self.applied(kit, site, side(&yes), None);
            (yes, self.applied(kit, site, side(&no), None))
        });
        kit.budget.end_value();
        kit.b.add(Term::If(test, yes, no, IfSugar::Plain), site.at)
    }

    /// The keys that an update sets.
    pub(super) fn entries_of(&self, scope: &Scope, given: &Value) -> Option<Vec<(String, Value)>> {
        match &given.kind {
            PyKind::None => Some(Vec::new()),
            PyKind::Dict(id) => {
                let dict = self.world.dict(*id);
                if dict.open.is_some() {
                    return None;
                }
                let mut out: Vec<(String, Value)> = Vec::new();
                for (key, value) in &dict.entries {
                    match (key.as_str(), &key.kind) {
                        // Whether it is set is not known.
                        (Some(_), _) if value.maybe => return None,
                        (Some(key), _) => {
                            out.retain(|(k, _)| k != key);
                            out.push((key.to_string(), value.clone()));
                        }
                        // `{**state, …}`: the other keys stay as they are.
                        (None, PyKind::External(star)) if &**star == "**" => {
                            let whole = matches!(value.kind, PyKind::Object(s) if scope.state.as_ref().is_some_and(|(id, _)| *id == s));
                            // What stands before it is set only where the state has no such key.
                            if !whole || !out.is_empty() {
                                return None;
                            }
                        }
                        _ => return None,
                    }
                }
                Some(out)
            }
            PyKind::Object(id) => {
                let (state, _) = scope.state.as_ref()?;
                let object = self.world.object(*id);
                if id == state {
                    // The state itself, with what was set in it.
                    let mut out: Vec<(String, Value)> = Vec::new();
                    for call in object.calls.iter().filter(|c| &*c.name == "__setitem__") {
                        let args = &self.world.object(call.result).args;
                        let (key, value) = (args.first()?.value.as_str()?, args.get(1)?.value.clone());
                        out.retain(|(k, _)| k != key);
                        out.push((key.to_string(), value));
                    }
                    for (name, value) in &object.attrs {
                        out.retain(|(k, _)| *k != **name);
                        out.push((name.to_string(), value.clone()));
                    }
                    return Some(out);
                }
                // An instance of the state's class. A message is what is added to a conversation.
                let class = object.class?;
                if self.world.derives(class, |n| n.ends_with("Message")) {
                    return None;
                }
                Some(
                    object
                        .args
                        .iter()
                        .filter_map(|a| Some((a.name.as_ref()?.to_string(), a.value.clone())))
                        .collect(),
                )
            }
            _ => None,
        }
    }

    /// The state with an update merged into it, or the update as a record.
    fn apply(&self, kit: &mut Kit<'_>, site: Site<'_>, entries: &[Entry], goto: Option<TermId>) -> TermId {
        let Site { graph, scope, mode, at, .. } = site;
        let Some((_, var)) = scope.state.clone() else { return kit.unknown("a node without a state", at) };
        let mut said: Vec<(Name, TermId)> = Vec::new();
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for (key, parts) in entries {
            let Some(value) = parts.first() else { continue };
            let channel = graph.plan.channel(key);
            if channel.is_none() && graph.plan.declared {
                let message = format!("the state has no key `{}`", clip(key));
                kit.out.push(diagnostics::Diagnostic::warn(codes::UNDEFINED, message, value.span));
                continue;
            }
            let reducer = channel.map_or(&Reducer::Last, |c| &c.reducer);
            if let Reducer::Messages = reducer {
                self.add_messages(kit, site, key, parts, &mut said, &mut fields);
                continue;
            }
            let new = self.expr(kit, scope, value);
            let new = match mode {
                Mode::Beside => new,
                Mode::Alone => {
                    let old = self.read(kit, &var, key, at);
                    self.reduced(kit, reducer, old, new, value.span)
                }
            };
            fields.push((key.as_str().into(), new));
        }
        if let Some(goto) = goto {
            fields.push((GOTO.into(), goto));
        }
        let term = match mode {
            Mode::Beside => kit.b.add(Term::Record(fields), at),
            Mode::Alone => {
                let mut state = kit.b.var(var, at);
                for (name, value) in fields {
                    let place = kit.b.span(value);
                    state = kit.b.add(Term::With(state, name, value), place);
                }
                state
            }
        };
        kit.b.let_in(said, term, at)
    }

    /// The old value of a key and an update, merged.
    pub fn reduced(
        &self,
        kit: &mut Kit<'_>,
        reducer: &Reducer,
        old: TermId,
        new: TermId,
        at: Span,
    ) -> TermId {
        match reducer {
            Reducer::Last => new,
            Reducer::Messages | Reducer::Add => kit.b.add(Term::Prim(Prim::Add, vec![old, new]), at),
            Reducer::Function(function) => {
                let Some(traced) = self.traced(function) else {
                    return kit.undecided(codes::NOT_COMPILED, "how this key is merged".into(), at);
                };
                let mut scope = Scope::default();
                let (a, b): (Name, Name) = (kit.b.fresh("old"), kit.b.fresh("new"));
                scope
                    .held
                    .insert(traced.state, BoundResult { var: a.clone(), kind: ReplyKind::Data, live: false });
                if let Some(second) = traced.second {
                    scope
                        .held
                        .insert(second, BoundResult { var: b.clone(), kind: ReplyKind::Data, live: false });
                }
                let body = self.expr(kit, &scope, &traced.trace.value);
                kit.b.let_in(vec![(a, old), (b, new)], body, at)
            }
            Reducer::Unknown(why) => {
                let message = format!("how this key is merged: {why}");
                kit.out.push(undecided(codes::NOT_COMPILED, message, at));
                new
            }
        }
    }

    /// Returns the messages that a value adds to the conversation.
    fn added(&self, scope: &Scope, parts: &[Value]) -> Vec<Added> {
        const MAX_ADDED: usize = 200;
        let mut out = Vec::new();
        let mut todo: Vec<Value> = parts.iter().rev().cloned().collect();
        while let Some(value) = todo.pop() {
            if out.len() > MAX_ADDED {
                break;
            }
            if self.is_conversation(scope, &value) {
                continue;
            }
            if let PyKind::Object(id) = value.kind {
                if scope.held.contains_key(&id) {
                    out.push(Added::BoundResult(id));
                    continue;
                }
                let object = self.world.object(id);
                if object.base.is_none() && matches!(&*object.callee, "+" | "[*]") {
                    todo.extend(object.args.iter().rev().map(|a| a.value.clone()));
                    continue;
                }
                // `held["messages"]`, or its last one.
                if let Some(id) = self.held_messages(scope, id) {
                    out.push(Added::BoundResult(id));
                    continue;
                }
            }
            match (self.message_of(&value), self.world.items(&value), &value.kind) {
                (Some((role, content)), ..) => out.push(Added::Say(role, content)),
                (None, Some(items), _) if !items.iter().any(|i| i.maybe) => {
                    todo.extend(items.iter().rev().cloned())
                }
                // What a message says, without who says it, is what the user says.
                (None, _, PyKind::Member(_, name)) if name.rsplit('.').next() == Some("content") => {
                    out.push(Added::Say(Role::User, value));
                }
                (None, _, PyKind::Str(_) | PyKind::Text(_)) => out.push(Added::Say(Role::User, value)),
                _ => out.push(match self.removed(scope, &value) {
                    Some((from, to)) => Added::Removed(from, to),
                    None if self.makes_messages(&value) => Added::Several(value),
                    None => Added::Unknown(value),
                }),
            }
        }
        out
    }

    /// Returns true if a value is a list of new messages.
    fn makes_messages(&self, value: &Value) -> bool {
        let Some((_, object)) = self.world.object_of(value) else { return false };
        let item = object.args.get(2).filter(|_| &*object.callee == "[for]");
        item.is_some_and(|i| self.message_of(&i.value).is_some() || self.made_message(&i.value))
    }

    /// Returns the range of messages that a value removes from the conversation: `RemoveMessage(id=m.id)`,
    /// for one, all or some of them.
    fn removed(&self, scope: &Scope, value: &Value) -> Option<(Option<i64>, Option<i64>)> {
        let (_, object) = self.world.object_of(value)?;
        if let ("[for]", [list, element, item]) = (&*object.callee, &object.args[..]) {
            let of = self.id_removed(&item.value)?;
            let PyKind::Object(of) = of.kind else { return None };
            if !matches!(element.value.kind, PyKind::Object(e) if e == of) {
                return None;
            }
            return self.range(scope, &list.value);
        }
        if field(object, Some(0), "id").is_some_and(|g| {
            self.world.str(g.value) == Some("__remove_all__")
                || self.world.name_of(g.value).is_some_and(|n| n.ends_with("REMOVE_ALL_MESSAGES"))
        }) && object.short() == "RemoveMessage"
        {
            return Some((None, None));
        }
        let of = self.id_removed(value)?;
        let (_, of) = self.world.object_of(&of)?;
        let Some(PyKind::Int(place)) = of.args.first().map(|a| &a.value.kind) else { return None };
        let whole = self.owner(of, value.span).is_some_and(|l| self.is_conversation(scope, &l));
        whole.then(|| (Some(*place), place.checked_add(1).filter(|n| *n != 0)))
    }

    /// The message that is taken out.
    fn id_removed(&self, value: &Value) -> Option<Value> {
        let (_, object) = self.world.object_of(value)?;
        let id = field(object, Some(0), "id").filter(|_| object.short() == "RemoveMessage")?;
        match &id.value.kind {
            PyKind::Member(of, name) if &**name == "id" => Some(Value::new(PyKind::Object(*of), value.span)),
            _ => None,
        }
    }

    /// A part of the conversation: where it begins and before what it ends.
    fn range(&self, scope: &Scope, value: &Value) -> Option<(Option<i64>, Option<i64>)> {
        if self.is_conversation(scope, value) {
            return Some((None, None));
        }
        let (_, object) = self.world.object_of(value)?;
        let of = self.owner(object, value.span)?;
        let (_, slice) = self.world.object_of(&object.args.first()?.value)?;
        if !self.is_conversation(scope, &of) || &*slice.callee != "slice" {
            return None;
        }
        let bound = |i: usize| match slice.args.get(i).map(|a| &a.value.kind) {
            None | Some(PyKind::None) => Some(None),
            Some(PyKind::Int(n)) => Some(Some(*n)),
            _ => None,
        };
        bound(2)?.is_none().then_some((bound(0)?, bound(1)?))
    }

    pub(super) fn held_messages(&self, scope: &Scope, id: ObjectId) -> Option<ObjectId> {
        let mut at = id;
        for _ in 0..4 {
            let base = self.world.object(at).base?;
            if let Some(held) = scope.held.get(&base) {
                return (!matches!(held.kind, ReplyKind::Data)).then_some(base);
            }
            at = base;
        }
        None
    }

    /// Adds what is said to what a node does, and the messages to what it changes.
    fn add_messages(
        &self,
        kit: &mut Kit<'_>,
        site: Site<'_>,
        key: &str,
        parts: &[Value],
        said: &mut Vec<(Name, TermId)>,
        fields: &mut Vec<(Name, TermId)>,
    ) {
        let Site { graph, scope, mode, .. } = site;
        let at = parts.first().map_or(site.at, |v| v.span);
        let Some((_, var)) = scope.state.clone() else { return };
        let mut messages: Vec<TermId> = Vec::new();
        let mut reply: Option<TermId> = None;
        let mut added = self.added(scope, parts);
        // What is taken out was there before.
        added.sort_by_key(|a| !matches!(a, Added::Removed(..)));
        let mut old = self.read(kit, &var, key, at);
        let mut lists: Vec<TermId> = Vec::new();
        for added in added {
            let (role, text, live) = match added {
                // Calls keep their form in the conversation itself only, which cannot be made anew then.
                Added::Removed(..) if mode == Mode::Beside || graph.replies => {
                    let why = "which messages are taken out of the conversation";
                    let term = kit.undecided(codes::NOT_COMPILED, why.into(), at);
                    (Role::Assistant, term, false)
                }
                Added::Removed(from, to) => {
                    let whole: Name = kit.b.fresh("v");
                    let (a, b) = (kit.b.var(whole.clone(), at), kit.b.var(whole.clone(), at));
                    let mut kept = kit.b.add(Term::List(Vec::new()), at);
                    if from.is_some() {
                        kept = self.slice_of(kit, a, None, from, at);
                    }
                    if to.is_some() {
                        let rest = self.slice_of(kit, b, to, None, at);
                        kept = kit.b.add(Term::Prim(Prim::Add, vec![kept, rest]), at);
                    }
                    let kept = kit.b.let_in(vec![(whole, old)], kept, at);
                    let name: Name = kit.b.fresh("kept");
                    said.push((name.clone(), kept));
                    old = kit.b.var(name.clone(), at);
                    if graph.has_conversation {
                        said.push(("_".into(), kit.b.add(Term::Clear, at)));
                        said.extend(self.hoisted(kit, graph, at));
                        let again = kit.b.var(name, at);
                        said.push(("_".into(), frontend_kit::lists::said_each(kit, again, at)));
                    }
                    continue;
                }
                Added::Several(value) => {
                    let list = self.expr(kit, scope, &value);
                    let name: Name = kit.b.fresh("m");
                    said.push((name.clone(), list));
                    if graph.has_conversation && mode == Mode::Alone {
                        let again = kit.b.var(name.clone(), at);
                        said.push(("_".into(), frontend_kit::lists::said_each(kit, again, at)));
                    }
                    if graph.replies {
                        let nothing = kit.text("", at);
                        reply = Some(kit.b.add(Term::Tag("final".into(), Some(nothing)), at));
                    }
                    lists.push(kit.b.add(Term::List(std::mem::take(&mut messages)), at));
                    lists.push(kit.b.var(name, at));
                    continue;
                }
                Added::BoundResult(id) => {
                    let held = scope.held.get(&id).cloned();
                    let content = Value::new(PyKind::Member(id, "content".into()), at);
                    let kind = held.as_ref().map_or(ReplyKind::Data, |h| h.kind);
                    let text = match kind {
                        ReplyKind::Data => {
                            let data = self.expr(kit, scope, &Value::new(PyKind::Object(id), at));
                            kit.b.add(Term::Prim(Prim::ToStr, vec![data]), at)
                        }
                        _ => self.expr(kit, scope, &content),
                    };
                    if let (Some(held), true) = (&held, graph.replies) {
                        let tag = kit.b.var(held.var.clone(), at);
                        reply = Some(match kind {
                            ReplyKind::Calls => tag,
                            _ => kit.b.add(Term::Tag("final".into(), Some(tag)), at),
                        });
                    }
                    (Role::Assistant, text, mode == Mode::Alone && held.as_ref().is_some_and(|h| h.live))
                }
                Added::Say(role, content) => {
                    let text = self.text(kit, scope, &content);
                    if graph.replies {
                        let nothing = kit.text("", at);
                        reply = Some(kit.b.add(Term::Tag("final".into(), Some(nothing)), at));
                    }
                    (role, text, false)
                }
                Added::Unknown(value) => {
                    let message = format!(
                        "the messages added to the conversation are not known: {}",
                        self.world.unknown_reason(&value)
                    );
                    let term = kit.undecided(codes::NOT_COMPILED, message, value.span);
                    (Role::Assistant, term, false)
                }
            };
            let text = if live || !graph.has_conversation || mode == Mode::Beside {
                text
            } else {
                // It is said in the conversation, too, and is looked at twice.
                let name = kit.b.fresh("m");
                said.push((name.clone(), text));
                let shown = kit.b.var(name.clone(), at);
                said.push(("_".into(), kit.b.add(Term::Send(role, shown), at)));
                kit.b.var(name, at)
            };
            messages.push(self.message_term(kit, role, text, at));
        }
        let mut new = kit.b.add(Term::List(messages), at);
        for list in lists.into_iter().rev() {
            new = kit.b.add(Term::Prim(Prim::Add, vec![list, new]), at);
        }
        let new = match mode {
            Mode::Beside => new,
            Mode::Alone => kit.b.add(Term::Prim(Prim::Add, vec![old, new]), at),
        };
        fields.push((key.into(), new));
        if let (Some(reply), Mode::Alone) = (reply, mode) {
            fields.push((REPLY.into(), reply));
        }
    }
}

/// Addition to the conversation.
pub(super) enum Added {
    /// Reply of a model or an agent.
    BoundResult(ObjectId),
    Say(Role, Value),
    /// Messages that are computed.
    Several(Value),
    /// The messages from one place to before another one are taken out.
    Removed(Option<i64>, Option<i64>),
    Unknown(Value),
}
