//! Nodes: calls in order, and an update of the state.
//!
//! | Python | term |
//! |---|---|
//! | `model.invoke(state["messages"])`, added to the messages | `recv θ` in the conversation of the graph |
//! | `model.invoke("…")`, `(prompt \| model).invoke({…})` | `llm p θ` in a conversation of its own |
//! | a call of something outside the project | a tool that is named after it |
//! | `if test: …` | `if` |
//! | `return {"key": value}` | `$s.key := …`, merged by the key's reducer |
//! | `Command(update=…, goto=…)` | the same, and where to go on |

use super::calls::{Level, PathContext};
use super::plan::Plan;
use super::update::Site;
use super::value::{BoundResult, REPLY, STATE, Scope};
use super::{GraphReader, ReplyKind, Traced};
use crate::py::field;
use core_ir::{Branch, IfSugar, ModelParams, Name, Prim, Recv, Role, Term, TermId};
use diagnostics::Span;
use frontend_kit::calls;
use frontend_kit::emit::{clip, codes, undecided};
use frontend_kit::kit::Kit;
use python::{PyKind, Value};
use std::sync::Arc;

use super::model::Chain;

/// Variable that holds the state as changed by the tool calls of a reply so far.
const STATE_SO_FAR: &str = "state";
/// The field of the state that says where a `Command` goes on.
pub(super) const GOTO: &str = "$to";
/// The field of the state that holds what is sent to a node by `Send`.
pub(super) const SENT: &str = "$sent";

/// A graph while it is compiled.
pub(super) struct Graph<'p> {
    pub plan: &'p Plan,
    /// True if models are called with the conversation of the state.
    pub has_conversation: bool,
    /// True if a model has tools, so that its reply must be kept.
    pub replies: bool,
    /// Instructions that all models of the conversation share, placed at its beginning.
    pub hoisted: Option<Value>,
    /// True if no node adds instructions to the conversation.
    pub uninstructed: bool,
    /// Tools that models of this graph are offered.
    pub tools: Vec<Value>,
    /// Their names.
    pub names: Vec<Name>,
    pub depth: usize,
}

/// A node where it runs.
#[derive(Clone, Copy)]
pub(super) struct NodeRun<'a> {
    /// Name of the node.
    pub name: &'a str,
    /// Variable that holds the state.
    pub state: &'a str,
    /// Expected result.
    pub mode: Mode,
    /// Place of the node.
    pub at: Span,
}

/// Result that is expected of a node's term.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The new state.
    Alone,
    /// The update as a record with these keys: other nodes run at the same time.
    Beside,
}

impl GraphReader<'_, '_> {
    /// The scope of a traced function.
    pub fn scope(&self, graph: &Graph<'_>, traced: &Traced, state: &str) -> Scope {
        Scope {
            state: Some((traced.state, state.into())),
            messages: graph.plan.messages().map(str::to_string),
            replies: graph.replies,
            tools: graph.names.clone(),
            uninstructed: graph.uninstructed,
            ..Scope::default()
        }
    }

    /// Lowers a node that reads the state from a variable.
    pub fn node(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        index: usize,
        state: &str,
        mode: Mode,
    ) -> TermId {
        let node = &graph.plan.nodes[index];
        let at = node.at;
        let run = NodeRun { name: &node.name, state, mode, at };
        if let Some(tools) = self.tool_node(&node.value, graph) {
            let term = self.calls_tools(kit, graph, &tools, run);
            let decides = self.traced(&node.value).is_some_and(|t| self.commands(&t.trace.value));
            if !decides || mode == Mode::Beside {
                return term;
            }
            let to = kit.undecided(codes::NOT_COMPILED, "the next node after these calls".into(), at);
            return kit.b.add(Term::With(term, GOTO.into(), to), at);
        }
        if let Some(inner) = self.inner_graph(&node.value) {
            return self.inner(kit, graph, inner, run);
        }
        if let Some(chain) = self.chain(&node.value) {
            return self.chain_node(kit, graph, &chain, run);
        }
        let Some(traced) = self.traced(&node.value) else {
            return self.by_tool(kit, graph, run);
        };
        let scope = self.scope(graph, traced, state);
        let calls = self.calls(&scope, traced);
        let scope = self.naming(scope, traced, &calls);
        let name = node.name.clone();
        let value = traced.trace.value.clone();
        let commands = self.commands(&value);
        let mut leaf = |kit: &mut Kit<'_>, scope: &Scope, value: &Value| {
            let state = self.update(kit, Site { graph, scope, mode, name: &name, at }, value);
            if !commands || mode == Mode::Beside || self.command(value).is_some() {
                return state;
            }
            // Nothing is said of where it goes on.
            let nothing = kit.text("", at);
            kit.b.add(Term::With(state, GOTO.into(), nothing), at)
        };
        let ways = PathContext { graph, name: &node.name, mode, value: &traced.trace.value };
        self.level(kit, scope, Level { calls: &calls, depth: 0, value: &value, ways: &ways }, &mut leaf)
    }

    /// The `Command` that a value is.
    pub(super) fn command<'v>(&'v self, value: &'v Value) -> Option<&'v python::Object> {
        let (_, object) = self.world.object_of(value)?;
        (object.short() == "Command" && object.base.is_none()).then_some(object)
    }

    /// Returns true if a function may return a `Command` with a `goto`.
    pub fn commands(&self, value: &Value) -> bool {
        let mut todo = vec![value.clone()];
        let mut left = 400;
        while let Some(value) = todo.pop() {
            left -= 1;
            if left == 0 {
                return false;
            }
            if self.command(&value).is_some_and(|c| c.arg("goto").is_some()) {
                return true;
            }
            match &value.kind {
                PyKind::Either(id) => todo.extend(self.world.list(*id).items.iter().cloned()),
                _ => todo.extend(self.either_of(&value).into_iter().flat_map(|(_, a, b)| [a, b])),
            }
        }
        false
    }

    /// A node of which only the name is known: a tool that is given the state and gives the update.
    pub(super) fn by_tool(&self, kit: &mut Kit<'_>, graph: &Graph<'_>, run: NodeRun<'_>) -> TermId {
        let NodeRun { name, state, mode, at } = run;
        let message =
            format!("`{}` is code that is not in the project: a tool of its name replaces it", clip(name));
        kit.out.push(undecided(codes::NOT_COMPILED, message, at));
        let id = kit.tool(name, at, false, None, None);
        let tool = kit.b.add(Term::Tool(id), at);
        let s = kit.b.var(state, at);
        let fields = graph.plan.channels.iter().map(|c| {
            let s = kit.b.var(state, at);
            (Name::from(c.name.as_str()), kit.b.add(Term::Field(s, c.name.as_str().into()), at))
        });
        let fields: Vec<_> = fields.collect();
        let given = kit.b.add(Term::Record(fields), at);
        let input = kit.b.add(Term::Record(vec![("input".into(), given)]), at);
        let update = kit.b.app(tool, input, at);
        if mode == Mode::Beside {
            return update;
        }
        // Keys that the update has take the place of the state's.
        let var: Name = kit.b.fresh("r");
        let mut out = s;
        for channel in &graph.plan.channels {
            let key: Name = channel.name.as_str().into();
            let u = kit.b.var(var.clone(), at);
            let text = kit.text(&channel.name, at);
            let has = kit.b.add(Term::Prim(Prim::Has, vec![u, text]), at);
            let u = kit.b.var(var.clone(), at);
            let new = kit.b.add(Term::Field(u, key.clone()), at);
            let old = self.read(kit, &state.into(), &channel.name, at);
            let merged = self.reduced(kit, &channel.reducer, old, new, at);
            let old = self.read(kit, &state.into(), &channel.name, at);
            let value = kit.b.add(Term::If(has, merged, old, IfSugar::Plain), at);
            out = kit.b.add(Term::With(out, key, value), at);
        }
        kit.b.let_in(vec![(var, update)], out, at)
    }

    /// A model or a chain as a node.
    pub(super) fn chain_node(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        chain: &Chain,
        run: NodeRun<'_>,
    ) -> TermId {
        let NodeRun { name, state, mode, at } = run;
        let Some(key) = graph.plan.messages().filter(|_| mode == Mode::Alone) else {
            return self.by_tool(kit, graph, run);
        };
        let params = self.params(kit, &chain.model, name);
        let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
        let var = kit.b.fresh("r");
        let text = match self.kind_of(&chain.model, false) {
            ReplyKind::Calls => {
                let t = kit.b.var(var.clone(), at);
                let (a, nothing) = (kit.b.var("a", at), kit.text("", at));
                let branches = vec![Branch { tag: "final".into(), binder: Some("a".into()), body: a }];
                kit.b.add(Term::Case { scrutinee: t, branches, default: Some(nothing) }, at)
            }
            _ => kit.b.var(var.clone(), at),
        };
        let message = self.message_term(kit, Role::Assistant, text, at);
        let new = kit.b.add(Term::List(vec![message]), at);
        let old = self.read(kit, &state.into(), key, at);
        let all = kit.b.add(Term::Prim(Prim::Add, vec![old, new]), at);
        let s = kit.b.var(state, at);
        let mut s = kit.b.add(Term::With(s, key.into(), all), at);
        if graph.replies {
            let t = kit.b.var(var.clone(), at);
            let t = match self.kind_of(&chain.model, false) {
                ReplyKind::Calls => t,
                _ => kit.b.add(Term::Tag("final".into(), Some(t)), at),
            };
            s = kit.b.add(Term::With(s, REPLY.into(), t), at);
        }
        kit.b.let_in(vec![(var, recv)], s, at)
    }

    /// The tools of a node that answers the calls of the last reply.
    pub fn tool_node(&self, value: &Value, graph: &Graph<'_>) -> Option<Vec<Value>> {
        if let Some((_, object)) = self.world.object_of(value)
            && (object.short() == "ToolNode"
                || object.class.is_some_and(|c| self.world.derives(c, |n| n.ends_with("ToolNode"))))
        {
            return Some(field(object, Some(0), "tools").map_or_else(Vec::new, |g| self.tool_items(g.value)));
        }
        let traced = self.traced(value)?;
        self.answers_calls(traced).then(|| graph.tools.clone())
    }

    /// Returns true if a function answers tool calls: it returns tool messages.
    pub fn answers_calls(&self, traced: &Traced) -> bool {
        let scope = Scope::default();
        let mut todo = vec![traced.trace.value.clone()];
        let mut left = 400;
        while let Some(value) = todo.pop() {
            left -= 1;
            if left == 0 {
                return false;
            }
            if self.message_of(&value).is_some_and(|(role, _)| role == Role::Tool) {
                return true;
            }
            match &value.kind {
                PyKind::Object(id) => {
                    let object = self.world.object(*id);
                    let inner = matches!(&*object.callee, "if" | "+" | "[*]" | "[for]")
                        || object.short() == "Command";
                    if inner && object.base.is_none() {
                        todo.extend(object.args.iter().map(|a| a.value.clone()));
                    }
                }
                PyKind::List(id) | PyKind::Either(id) => {
                    todo.extend(self.world.list(*id).items.iter().cloned())
                }
                PyKind::Dict(id) => todo.extend(self.world.dict(*id).entries.iter().map(|(_, v)| v.clone())),
                _ => {}
            }
        }
        let _ = scope;
        false
    }

    /// The calls of the last reply are carried out.
    pub(super) fn calls_tools(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        tools: &[Value],
        run: NodeRun<'_>,
    ) -> TermId {
        let NodeRun { state, mode, at, .. } = run;
        let Some(key) = graph.plan.messages().filter(|_| graph.replies) else {
            return self.by_tool(kit, graph, NodeRun { name: "tools", ..run });
        };
        let mut branches = Vec::new();
        let decls = self.tools(kit, tools);
        let mut params = ModelParams::default();
        params.tools.extend(decls.iter().map(|decl| kit.declared(decl.clone())));
        // In a conversation that goes on, the calls that wait are carried out, too.
        let goes_on = mode == Mode::Alone && graph.has_conversation;
        for (decl, id) in decls.into_iter().zip(params.tools.clone()) {
            let (name, place) = (decl.name, decl.span);
            let tool = kit.b.add(Term::Tool(id), place);
            let a = kit.b.var("a", place);
            let result = kit.b.app(tool, a, place);
            let o = kit.b.var("o", place);
            let send = kit.b.add(Term::Send(Role::Tool, o), place);
            let o = kit.b.var("o", place);
            let text = kit.b.add(Term::Prim(Prim::ToStr, vec![o]), place);
            let message = self.message_term(kit, Role::Tool, text, place);
            let new = kit.b.add(Term::List(vec![message]), place);
            let body = match mode {
                Mode::Beside => kit.b.add(Term::Record(vec![(key.into(), new)]), place),
                Mode::Alone => {
                    let old = self.read(kit, &state.into(), key, place);
                    let all = kit.b.add(Term::Prim(Prim::Add, vec![old, new]), place);
                    let s = kit.b.var(state, place);
                    kit.b.add(Term::With(s, key.into(), all), place)
                }
            };
            let mut bindings = vec![("o".into(), result)];
            let mut body = body;
            if goes_on {
                bindings.push(("_".into(), send));
                bindings.push((state.into(), calls::so_far(kit, STATE_SO_FAR, place)));
                let known = vec![(STATE_SO_FAR.into(), body)];
                body = calls::more(kit, &params, known, place).unwrap_or(body);
            }
            let body = kit.b.let_in(bindings, body, place);
            branches.push(Branch { tag: name, binder: Some("a".into()), body });
        }
        let reply = self.read(kit, &state.into(), REPLY, at);
        if goes_on {
            let s = kit.b.var(state, at);
            let after = calls::so_far(kit, STATE_SO_FAR, at);
            return calls::received(kit, reply, vec![(STATE_SO_FAR.into(), s)], branches, after, at);
        }
        let rest = match mode {
            Mode::Alone => kit.b.var(state, at),
            Mode::Beside => {
                let none = kit.b.add(Term::List(Vec::new()), at);
                kit.b.add(Term::Record(vec![(key.into(), none)]), at)
            }
        };
        kit.b.add(Term::Case { scrutinee: reply, branches, default: Some(rest) }, at)
    }

    /// A function that decides: the label of where to go on, as a text.
    pub fn decision(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        path: &Value,
        name: &str,
        at: Span,
    ) -> Option<TermId> {
        let traced = self.traced(path)?;
        let scope = self.scope(graph, traced, STATE);
        let calls = self.calls(&scope, traced);
        let scope = self.naming(scope, traced, &calls);
        let value = traced.trace.value.clone();
        let ways = PathContext { graph, name, mode: Mode::Beside, value: &value };
        let mut leaf = |kit: &mut Kit<'_>, scope: &Scope, value: &Value| match self.labels(value) {
            Some(labels) => kit.text(&labels.join("+"), value.span),
            None => match &value.kind {
                PyKind::Bool(b) => kit.text(&b.to_string(), value.span),
                PyKind::Either(_) => kit.undecided(codes::NOT_COMPILED, "the branch taken".into(), at),
                // No way at all.
                PyKind::None => kit.text("", value.span),
                PyKind::Object(_) | PyKind::Member(..) if self.sent(value).is_some() => {
                    self.sent_items(kit, scope, value, value.span)
                }
                _ => self.expr(kit, scope, value),
            },
        };
        Some(self.level(kit, scope, Level { calls: &calls, depth: 0, value: &value, ways: &ways }, &mut leaf))
    }

    /// The items of a list of which all is known.
    fn known_items<'v>(&'v self, value: &'v Value) -> Option<&'v [Value]> {
        let PyKind::List(id) = value.kind else { return None };
        let list = self.world.list(id);
        (list.open.is_none() && list.items.iter().all(|i| !i.maybe)).then_some(&list.items[..])
    }

    /// The nodes that a value names: one, or several at once.
    pub fn labels(&self, value: &Value) -> Option<Vec<String>> {
        if let Some(name) = self.node_name(value) {
            return Some(vec![name]);
        }
        if let PyKind::Function(_) = value.kind {
            return None;
        }
        let items = self.known_items(value)?;
        items.iter().map(|v| self.node_name(v)).collect()
    }

    /// Returns the payloads and the target node of `Send("node", arg)`s: `[Send("n", f(x)) for x in xs]`.
    pub fn sent(&self, value: &Value) -> Option<(String, Vec<(Value, Value)>)> {
        let send = |value: &Value| -> Option<(String, Value)> {
            let (_, object) = self.world.object_of(value)?;
            if object.short() != "Send" || object.base.is_some() {
                return None;
            }
            let node = field(object, Some(0), "node").and_then(|g| self.node_name(g.value))?;
            Some((node, field(object, Some(1), "arg")?.value.clone()))
        };
        if let Some((node, arg)) = send(value) {
            return Some((node, vec![(value.clone(), arg)]));
        }
        if let Some((_, object)) = self.world.object_of(value)
            && &*object.callee == "[for]"
        {
            let (node, arg) = send(&object.args.get(2)?.value)?;
            return Some((node, vec![(value.clone(), arg)]));
        }
        let items = self.known_items(value)?;
        let all: Option<Vec<(String, Value)>> = items.iter().map(send).collect();
        let all = all.filter(|a| !a.is_empty())?;
        let node = all[0].0.clone();
        let one = all.iter().all(|(n, _)| *n == node);
        one.then(|| (node, items.iter().cloned().zip(all.into_iter().map(|(_, a)| a)).collect()))
    }

    /// Lowers the payloads of `Send`s as a list.
    pub(super) fn sent_items(&self, kit: &mut Kit<'_>, scope: &Scope, value: &Value, at: Span) -> TermId {
        let Some((_, items)) = self.sent(value) else {
            return kit.undecided(codes::NOT_COMPILED, "the payload of `Send`".into(), at);
        };
        if let Some((_, object)) = self.world.object_of(value)
            && &*object.callee == "[for]"
            && let ([of, element, _], Some((_, arg))) = (&object.args[..], items.first())
        {
            let list = self.expr(kit, scope, &of.value);
            let mut inner = scope.clone();
            let var: Name = kit.b.fresh("each");
            if let Some((id, _)) = self.world.object_of(&element.value) {
                inner.held.insert(id, BoundResult { var: var.clone(), kind: ReplyKind::Data, live: false });
            }
            let body = self.expr(kit, &inner, arg);
            let body = kit.b.abs(var, None, body, at);
            return kit.b.add(Term::Each(None, body, list), at);
        }
        let items = items.iter().map(|(_, arg)| self.expr(kit, scope, arg)).collect();
        kit.b.add(Term::List(items), at)
    }
}
