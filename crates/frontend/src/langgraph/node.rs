//! What a node does: calls in order, and an update of the state.
//!
//! | Python | term |
//! |---|---|
//! | `model.invoke(state["messages"])`, added to the messages | `recv θ` in the conversation of the graph |
//! | `model.invoke("…")`, `(prompt \| model).invoke({…})` | `llm p θ` in a conversation of its own |
//! | a call of something outside the project | a tool that is named after it |
//! | `if test: …` | `if` |
//! | `return {"key": value}` | `$s.key := …`, merged by the key's reducer |
//! | `Command(update=…, goto=…)` | the same, and where to go on |

use super::plan::{Plan, Reducer};
use super::value::{Held, REPLY, STATE, Scope};
use super::{Kindly, Reader, Traced};
use crate::emit::{clip, codes, undecided};
use crate::kit::Kit;
use crate::py::field;
use core_ir::{Branch, Data, IfSugar, ModelParams, Name, Prim, Recv, Role, Term, TermId, ToolDecl};
use diagnostics::Span;
use python::{Condition, Kind, ObjectId, Value};
use std::sync::Arc;

use super::model::{Chain, Part, Vars};

/// The field of the state that says where a `Command` goes on.
pub(super) const GOTO: &str = "$to";
/// The field of the state that holds what is sent to a node by `Send`.
pub(super) const SENT: &str = "$sent";

/// A graph while it is compiled.
pub(super) struct Graph<'p> {
    pub plan: &'p Plan,
    /// Whether models are asked with the conversation of the state.
    pub talks: bool,
    /// Whether a model is offered tools, so that its reply has to be remembered.
    pub replies: bool,
    /// Whether all models that see the conversation are given the same instructions, which are said at its beginning.
    pub hoisted: Option<Value>,
    /// Tools that models of this graph are offered.
    pub tools: Vec<Value>,
    /// Their names.
    pub names: Vec<Name>,
    pub depth: usize,
}

/// What a node's term is to give.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The new state.
    Alone,
    /// The update as a record with these keys: other nodes run at the same time.
    Beside,
}

/// A call that asks the world.
#[derive(Clone)]
enum Effect {
    Ask(Box<Chain>, Option<Value>),
    /// An agent or a graph is run.
    Run(ObjectId, Option<Value>),
    Tool(ToolDecl, Vec<(Name, Value)>),
    /// It cannot be said how it is carried out.
    Unknown(String),
}

#[derive(Clone)]
struct Call {
    id: ObjectId,
    does: Effect,
}

/// What is added to the conversation.
enum Added {
    /// What a model or an agent said.
    Held(ObjectId),
    Say(Role, Value),
    Unknown(Value),
}

/// Does something with a leaf of the tree of decisions that a function is.
type Leaf<'l> = dyn FnMut(&mut Kit<'_>, &Scope, &Value) -> TermId + 'l;

impl Reader<'_, '_> {
    /// The scope of a traced function.
    pub fn scope(&self, graph: &Graph<'_>, traced: &Traced, state: &str) -> Scope {
        Scope {
            state: Some((traced.state, state.into())),
            messages: graph.plan.messages().map(str::to_string),
            replies: graph.replies,
            tools: graph.names.clone(),
            ..Scope::default()
        }
    }

    /// What a node does, from the state in a variable.
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
        if let Some(tools) = self.tool_node(&node.value, graph) {
            return self.calls_tools(kit, graph, &tools, state, mode, at);
        }
        if let Some(inner) = self.inner_graph(&node.value) {
            return self.inner(kit, graph, inner, &node.name, state, mode, at);
        }
        if let Some(chain) = self.chain(&node.value) {
            return self.chain_node(kit, graph, &chain, &node.name, state, mode, at);
        }
        let Some(traced) = self.traced(&node.value) else {
            return self.by_tool(kit, graph, &node.name, state, mode, at);
        };
        let scope = self.scope(graph, traced, state);
        let calls = self.calls(&scope, traced);
        let name = node.name.clone();
        let value = traced.trace.value.clone();
        let commands = self.commands(&value);
        let mut leaf = |kit: &mut Kit<'_>, scope: &Scope, value: &Value| {
            let state = self.update(kit, graph, scope, value, mode, &name, at);
            if !commands || mode == Mode::Beside || self.command(value).is_some() {
                return state;
            }
            // Nothing is said of where it goes on.
            let nothing = kit.text("", at);
            kit.b.add(Term::With(state, GOTO.into(), nothing), at)
        };
        let ways = Ways { graph, name: &node.name, mode, value: &traced.trace.value };
        self.level(kit, scope, &calls, 0, &value, &ways, &mut leaf)
    }

    /// The `Command` that a value is.
    fn command<'v>(&'v self, value: &'v Value) -> Option<&'v python::Object> {
        let (_, object) = self.world.object_of(value)?;
        (object.short() == "Command" && object.base.is_none()).then_some(object)
    }

    /// Whether a function gives a `Command` that says where to go on, on some way.
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
                Kind::Either(id) => todo.extend(self.world.list(*id).items.iter().cloned()),
                _ => todo.extend(self.either_of(&value).into_iter().flat_map(|(_, a, b)| [a, b])),
            }
        }
        false
    }

    /// Calls of a traced function that ask the world, in order.
    fn calls(&self, scope: &Scope, traced: &Traced) -> Vec<Call> {
        traced
            .trace
            .objects
            .iter()
            .filter_map(|id| Some(Call { id: *id, does: self.effect(scope, *id)? }))
            .collect()
    }

    fn effect(&self, scope: &Scope, id: ObjectId) -> Option<Effect> {
        let object = self.world.object(id);
        let at = object.span;
        if let Some((base, arg)) = self.asking(object) {
            let on = Value::new(Kind::Object(base), at);
            let arg_value = arg.map(|a| a.value.clone());
            if let Some(chain) = self.chain(&on) {
                return Some(Effect::Ask(Box::new(chain), arg_value));
            }
            if self.inner_graph(&on).is_some() {
                return Some(Effect::Run(base, arg_value));
            }
            if self.is_prompt(&on) || self.rooted_in_state(scope, base) {
                return None;
            }
            if let Some(decl) = self.tool(&on) {
                let args = self.tool_args(&decl, arg_value.as_ref());
                return Some(Effect::Tool(decl, args));
            }
            return Some(Effect::Unknown(format!("what `{}` gives", clip(&object.callee))));
        }
        if let Some(base) = object.base {
            let this = Value::new(Kind::Object(id), at);
            if self.model(&this).is_some() || self.inner_graph(&this).is_some() {
                return None;
            }
            let (_, method) = self.method_call(object)?;
            let root = self.root(base);
            let known = self.world.object(root);
            if self.rooted_in_state(scope, base) || is_quiet(&known.callee) || self.asking_root(base) {
                return None;
            }
            let method = method.rsplit('.').next().unwrap_or(method);
            if matches!(
                method,
                "append"
                    | "extend"
                    | "update"
                    | "add"
                    | "__setitem__"
                    | "get"
                    | "strip"
                    | "lower"
                    | "upper"
                    | "split"
                    | "format"
                    | "items"
                    | "keys"
                    | "values"
                    | "model_dump"
            ) || known.class.is_some()
            {
                return None;
            }
            let name = format!("{}_{method}", known.short());
            return Some(self.outside(&name, id, at));
        }
        // `search.invoke(…)` of a function that is a tool.
        if let Some(first) = object.args.first()
            && let Some(function) = crate::py::function_of(&first.value)
            && (object.callee.ends_with(".invoke")
                || object.callee.ends_with(".ainvoke")
                || object.callee.ends_with(".run"))
        {
            let decl = self.tool(&Value::new(Kind::Function(function), first.value.span))?;
            let args = self.tool_args(&decl, object.args.get(1).map(|a| &a.value));
            return Some(Effect::Tool(decl, args));
        }
        if object.class.is_some() || is_quiet(&object.callee) || !object.callee.contains('.') {
            return None;
        }
        if object.callee.ends_with("types.interrupt") {
            return Some(self.outside("interrupt", id, at));
        }
        // What begins with a capital letter is a class: making an instance of it asks nobody.
        let class = object.short().chars().next().is_none_or(|c| c.is_uppercase());
        (!class && !object.callee.contains("[]")).then(|| self.outside(object.short(), id, at))
    }

    fn outside(&self, name: &str, id: ObjectId, at: Span) -> Effect {
        let object = self.world.object(id);
        let mut decl = ToolDecl::unknown(name.into(), at);
        let mut args: Vec<(Name, Value)> = Vec::new();
        for (i, arg) in object.args.iter().enumerate() {
            let name: Name = arg.name.as_deref().map_or_else(
                || if i == 0 { "input".into() } else { format!("arg{}", i + 1).into() },
                Name::from,
            );
            if args.iter().all(|(n, _)| *n != name) {
                args.push((name, arg.value.clone()));
            }
        }
        decl.params = args
            .iter()
            .map(|(n, _)| core_ir::ToolParam {
                name: n.clone(),
                ty: core_ir::Type::Dyn,
                bound: core_ir::LabelSpec::BOTTOM,
            })
            .collect();
        Effect::Tool(decl, args)
    }

    fn tool_args(&self, decl: &ToolDecl, arg: Option<&Value>) -> Vec<(Name, Value)> {
        let Some(arg) = arg else { return Vec::new() };
        match self.world.entries(arg) {
            Some(entries) => {
                entries.iter().filter_map(|(k, v)| Some((Name::from(k.as_str()?), v.clone()))).collect()
            }
            None => decl.params.first().map(|p| (p.name.clone(), arg.clone())).into_iter().collect(),
        }
    }

    fn root(&self, id: ObjectId) -> ObjectId {
        let mut at = id;
        for _ in 0..40 {
            match self.world.object(at).base {
                Some(base) => at = base,
                None => break,
            }
        }
        at
    }

    /// Whether a value is a part of the state or of what the framework hands in beside it.
    fn rooted_in_state(&self, scope: &Scope, id: ObjectId) -> bool {
        let root = self.root(id);
        scope.state.as_ref().is_some_and(|(s, _)| *s == root)
            || self.world.object(root).callee.starts_with("langgraph.")
            || self.world.object(id).callee.contains("element")
    }

    /// Whether something is a part of what a model, an agent or a tool gave.
    fn asking_root(&self, id: ObjectId) -> bool {
        let mut at = id;
        for _ in 0..40 {
            let object = self.world.object(at);
            if self.asking(object).is_some() {
                return true;
            }
            match object.base {
                Some(base) => at = base,
                None => return false,
            }
        }
        false
    }

    /// The calls of one way, then what it gives.
    #[allow(clippy::too_many_arguments)]
    fn level(
        &self,
        kit: &mut Kit<'_>,
        scope: Scope,
        calls: &[Call],
        depth: usize,
        value: &Value,
        ways: &Ways<'_>,
        leaf: &mut Leaf<'_>,
    ) -> TermId {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            self.level_inner(kit, scope, calls, depth, value, ways, leaf)
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn level_inner(
        &self,
        kit: &mut Kit<'_>,
        mut scope: Scope,
        calls: &[Call],
        depth: usize,
        value: &Value,
        ways: &Ways<'_>,
        leaf: &mut Leaf<'_>,
    ) -> TermId {
        let at = value.span;
        if !kit.budget.take(0, at, kit.out) {
            return kit.unknown("more than is compiled", at);
        }
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        for (i, call) in calls.iter().enumerate() {
            let path = self.world.path(call.id);
            let place = self.world.object(call.id).span;
            match path.get(depth) {
                None => self.bind(kit, &mut scope, call, ways, &mut bindings),
                Some(Condition::Test(test, _)) => {
                    let rest = &calls[i..];
                    let one = rest.iter().all(|c| matches!(self.world.path(c.id).get(depth), Some(Condition::Test(t, _)) if same(t, test)));
                    let (yes, no) = self.sides(value, test);
                    if one {
                        let side = |wanted: bool| -> Vec<usize> {
                            let at = |c: &Call| matches!(self.world.path(c.id).get(depth), Some(Condition::Test(_, h)) if *h == wanted);
                            (i..calls.len()).filter(|n| at(&calls[*n])).collect()
                        };
                        let condition = self.test(kit, &scope, test);
                        let (of_yes, of_no) = (pick(calls, &side(true)), pick(calls, &side(false)));
                        let yes = self.level(kit, scope.clone(), &of_yes, depth + 1, &yes, ways, leaf);
                        let no = self.level(kit, scope.clone(), &of_no, depth + 1, &no, ways, leaf);
                        let body = kit.b.add(Term::If(condition, yes, no, IfSugar::Plain), place);
                        return kit.b.let_in(bindings, body, at);
                    }
                    // What follows does not depend on the test: the call alone does.
                    let tests: Option<Vec<(Value, bool)>> = path[depth..]
                        .iter()
                        .map(|c| match c {
                            Condition::Test(t, holds) => Some((t.clone(), *holds)),
                            _ => None,
                        })
                        .collect();
                    let Some(tests) = tests else {
                        self.repeated(kit, &mut scope, call, place, &mut bindings);
                        continue;
                    };
                    let before = bindings.len();
                    let condition = self.all_of(kit, &scope, &tests, place);
                    self.bind(kit, &mut scope, call, ways, &mut bindings);
                    let made: Vec<(Name, TermId)> = bindings.drain(before..).collect();
                    if let Some((name, _)) = made.last().cloned() {
                        let body = kit.b.var(name.clone(), place);
                        let body = kit.b.let_in(made, body, place);
                        let nothing = kit.b.lit(Data::Null, place);
                        let either = kit.b.add(Term::If(condition, body, nothing, IfSugar::Plain), place);
                        bindings.push((name, either));
                    }
                }
                Some(Condition::Each(_)) if scope.held.contains_key(&call.id) => {}
                Some(_) => self.repeated(kit, &mut scope, call, place, &mut bindings),
            }
        }
        if let Kind::Object(id) = value.kind
            && let object = self.world.object(id)
            && object.base.is_none()
            && &*object.callee == "if"
            && let [test, yes, no] = &object.args[..]
        {
            let condition = self.test(kit, &scope, &test.value);
            let yes = self.level(kit, scope.clone(), &[], depth + 1, &yes.value, ways, leaf);
            let no = self.level(kit, scope, &[], depth + 1, &no.value, ways, leaf);
            let body = kit.b.add(Term::If(condition, yes, no, IfSugar::Plain), at);
            return kit.b.let_in(bindings, body, at);
        }
        let body = leaf(kit, &scope, value);
        kit.b.let_in(bindings, body, at)
    }

    /// A call that happens more than once, or not certainly.
    fn repeated(
        &self,
        kit: &mut Kit<'_>,
        scope: &mut Scope,
        call: &Call,
        at: Span,
        out: &mut Vec<(Name, TermId)>,
    ) {
        let why = "a call that is repeated, or made under a condition that is not followed";
        let term = kit.undecided(codes::NOT_COMPILED, why.into(), at);
        let var = kit.b.fresh("r");
        out.push((var.clone(), term));
        scope.held.insert(call.id, Held { var, kind: Kindly::Data, live: false });
    }

    /// What a value is on both sides of a test.
    fn sides(&self, value: &Value, test: &Value) -> (Value, Value) {
        if let Kind::Object(id) = value.kind
            && let object = self.world.object(id)
            && &*object.callee == "if"
            && let [t, yes, no] = &object.args[..]
            && same(&t.value, test)
        {
            return (yes.value.clone(), no.value.clone());
        }
        (value.clone(), value.clone())
    }

    fn all_of(&self, kit: &mut Kit<'_>, scope: &Scope, tests: &[(Value, bool)], at: Span) -> TermId {
        let mut all: Option<TermId> = None;
        for (test, holds) in tests.iter().rev() {
            let mut term = self.test(kit, scope, test);
            if !holds {
                term = kit.b.add(Term::Prim(Prim::Not, vec![term]), at);
            }
            all = Some(match all {
                None => term,
                Some(rest) => {
                    let no = kit.b.lit(Data::Bool(false), at);
                    kit.b.add(Term::If(term, rest, no, IfSugar::And), at)
                }
            });
        }
        all.unwrap_or_else(|| kit.b.lit(Data::Bool(true), at))
    }

    /// Binds what a call gives.
    fn bind(
        &self,
        kit: &mut Kit<'_>,
        scope: &mut Scope,
        call: &Call,
        ways: &Ways<'_>,
        out: &mut Vec<(Name, TermId)>,
    ) {
        let at = self.world.object(call.id).span;
        let var = kit.b.fresh("r");
        let mut live = false;
        let (term, kind) = match &call.does {
            Effect::Ask(chain, arg) => {
                let kind = self.kind_of(&chain.model, chain.json);
                let params = self.params(kit, &chain.model, ways.name);
                let parts = self.asked_with(scope, chain, arg.as_ref());
                live = ways.mode == Mode::Alone
                    && self.is_added(ways.value, call.id)
                    && self.may_be_live(ways.graph, &parts, kind);
                let mut term = self.ask(kit, scope, ways.graph, &parts, params, live, at, out);
                if chain.json && kind == Kindly::Data && chain.model.schema.is_none() {
                    term = kit.b.add(Term::Prim(Prim::FromJson, vec![term]), at);
                }
                (term, kind)
            }
            Effect::Run(id, arg) => self.run_inside(kit, scope, *id, arg.as_ref(), ways.graph.depth + 1, at),
            Effect::Tool(decl, args) => {
                let id = kit.declared(decl.clone());
                let tool = kit.b.add(Term::Tool(id), at);
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                for (name, value) in args {
                    let term = self.expr(kit, scope, value);
                    fields.push((name.clone(), term));
                }
                let record = kit.b.add(Term::Record(fields), at);
                (kit.b.app(tool, record, at), Kindly::Data)
            }
            Effect::Unknown(why) => (kit.undecided(codes::NOT_COMPILED, why.clone(), at), Kindly::Data),
        };
        out.push((var.clone(), term));
        scope.held.insert(call.id, Held { var, kind, live });
    }

    /// Whether a model may be asked in the conversation itself: nothing is said to it alone. Calls keep their form there only, so a model
    /// that is offered tools is always asked there.
    fn may_be_live(&self, graph: &Graph<'_>, parts: &[Part], kind: Kindly) -> bool {
        let Some(middle) = parts.iter().position(|p| matches!(p, Part::Conversation)) else { return false };
        let said = graph.hoisted.is_some() && matches!(parts[..middle], [Part::Say(Role::System, _)]);
        middle + 1 == parts.len() && (middle == 0 || said || kind == Kindly::Calls)
    }

    /// What a chain's model is asked with an argument.
    pub fn asked_with(&self, scope: &Scope, chain: &Chain, arg: Option<&Value>) -> Vec<Part> {
        let Some(prompt) = &chain.prompt else {
            return arg.map_or(Vec::new(), |a| self.parts(scope, a));
        };
        let mut vars = match arg {
            None => Vars::Values(Vec::new()),
            Some(arg) => match self.world.entries(arg) {
                Some(entries) => Vars::Values(
                    entries.iter().filter_map(|(k, v)| Some((k.as_str()?.to_string(), v.clone()))).collect(),
                ),
                None => Vars::Of(arg.clone()),
            },
        };
        if !chain.given.is_empty() {
            // `RunnablePassthrough()` hands on what the chain is given.
            let given = chain.given.iter().map(|(name, value)| {
                let passed =
                    self.world.object_of(value).is_some_and(|(_, o)| o.short() == "RunnablePassthrough");
                let picked = self
                    .world
                    .object_of(value)
                    .filter(|(_, o)| o.short() == "itemgetter")
                    .and_then(|(_, o)| o.args.first()?.value.as_str().map(str::to_string));
                let inner = match (passed, picked, arg) {
                    (true, _, Some(arg)) => arg.clone(),
                    (_, Some(key), Some(arg)) => self
                        .world
                        .entries(arg)
                        .and_then(|e| e.iter().find(|(k, _)| k.as_str() == Some(&key)))
                        .map_or_else(|| value.clone(), |(_, v)| v.clone()),
                    _ => value.clone(),
                };
                (name.clone(), inner)
            });
            vars = Vars::Values(given.collect());
        }
        let mut parts = Vec::new();
        self.prompt_parts(scope, prompt, &vars, &mut parts, 0);
        parts
    }

    /// A model is asked. In the conversation of the graph, if that is what it is given.
    #[allow(clippy::too_many_arguments)]
    fn ask(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        graph: &Graph<'_>,
        parts: &[Part],
        params: ModelParams,
        live: bool,
        at: Span,
        out: &mut Vec<(Name, TermId)>,
    ) -> TermId {
        let Some(middle) = parts.iter().position(|p| matches!(p, Part::Conversation)) else {
            for part in parts {
                if let Part::Other(value) = part {
                    let message =
                        format!("what is asked here is not known to be messages: {}", self.world.why(value));
                    kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
                }
            }
            return self.ask_alone(kit, scope, parts, params, at);
        };
        let (before, after) = (&parts[..middle], &parts[middle + 1..]);
        let before = match (&graph.hoisted, before) {
            (Some(_), [Part::Say(Role::System, _)]) => &[],
            _ => before,
        };
        let recv = |kit: &mut Kit<'_>| kit.b.add(Term::Recv(Recv::Data(Arc::new(params.clone()))), at);
        if live && after.is_empty() {
            out.extend(self.sends(kit, scope, before));
            return recv(kit);
        }
        let mut said = self.sends(kit, scope, before);
        said.extend(self.sends(kit, scope, after));
        let body = recv(kit);
        let body = kit.b.let_in(said, body, at);
        kit.b.add(Term::Fork(body), at)
    }

    /// Whether what a call gives is added to the conversation.
    fn is_added(&self, value: &Value, id: ObjectId) -> bool {
        let mut todo = vec![value.clone()];
        let mut left = 400;
        while let Some(value) = todo.pop() {
            left -= 1;
            if left == 0 {
                return false;
            }
            match &value.kind {
                Kind::Object(o) if *o == id => return true,
                Kind::Object(o) => {
                    let object = self.world.object(*o);
                    if object.base.is_none() && matches!(object.short(), "if" | "+" | "[*]" | "Command") {
                        todo.extend(object.args.iter().map(|a| a.value.clone()));
                    }
                }
                Kind::List(list) => todo.extend(self.world.list(*list).items.iter().cloned()),
                Kind::Dict(dict) => {
                    let entries = &self.world.dict(*dict).entries;
                    todo.extend(entries.iter().filter(|(k, _)| k.as_str().is_some()).map(|(_, v)| v.clone()));
                }
                _ => {}
            }
        }
        false
    }

    /// What a node gives, as the new state or as an update.
    #[allow(clippy::too_many_arguments)]
    fn update(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        scope: &Scope,
        value: &Value,
        mode: Mode,
        name: &str,
        at: Span,
    ) -> TermId {
        let place = value.span;
        let Some(command) = self.command(value) else {
            return self.goes(kit, graph, scope, value, None, mode, name, at);
        };
        let given = field(command, None, "update").map_or(Value::new(Kind::None, place), |g| g.value.clone());
        let to = field(command, None, "goto").map(|g| g.value.clone());
        self.goes(kit, graph, scope, &given, to.as_ref(), mode, name, at)
    }

    /// An update, and where it goes on.
    #[allow(clippy::too_many_arguments)]
    fn goes(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        scope: &Scope,
        given: &Value,
        to: Option<&Value>,
        mode: Mode,
        name: &str,
        at: Span,
    ) -> TermId {
        if !kit.budget.take(0, at, kit.out) {
            return kit.unknown("more than is compiled", at);
        }
        // What is one of two values is decided first, for both.
        if let Some((test, ..)) = self.either_of(given).or_else(|| to.and_then(|t| self.either_of(t))) {
            let (yes, no) = self.sides(given, &test);
            let sides = to.map(|t| self.sides(t, &test));
            let (to_yes, to_no) = sides.map_or((None, None), |(a, b)| (Some(a), Some(b)));
            let test = self.test(kit, scope, &test);
            let yes = self.goes(kit, graph, scope, &yes, to_yes.as_ref(), mode, name, at);
            let no = self.goes(kit, graph, scope, &no, to_no.as_ref(), mode, name, at);
            return kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at);
        }
        let Some(to) = to else {
            return self.merged(kit, graph, scope, given, mode, name, at, None);
        };
        if self.sent(to).is_some() {
            let term = self.sent_items(kit, scope, to, to.span);
            let state = self.merged(kit, graph, scope, given, mode, name, at, None);
            return kit.b.add(Term::With(state, SENT.into(), term), to.span);
        }
        let goto = match self.labels(to) {
            Some(labels) => kit.text(&labels.join("+"), to.span),
            // A text that is computed names the node.
            None => self.expr(kit, scope, to),
        };
        self.merged(kit, graph, scope, given, mode, name, at, Some(goto))
    }

    #[allow(clippy::too_many_arguments)]
    fn merged(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        scope: &Scope,
        given: &Value,
        mode: Mode,
        name: &str,
        at: Span,
        goto: Option<TermId>,
    ) -> TermId {
        let Some((_, var)) = scope.state.clone() else { return kit.unknown("a node without a state", at) };
        let Some(entries) = self.entries_of(scope, given) else {
            // What another graph or an agent gave is the update.
            if let Kind::Object(id) = given.kind
                && let Some(held) = scope.held.get(&id).cloned()
                && let (Some(key), Kindly::Text | Kindly::Calls) = (graph.plan.messages(), held.kind)
            {
                let message = Value::new(Kind::Object(id), given.span);
                return self.apply(kit, graph, scope, &[(key.to_string(), message)], mode, goto, at);
            }
            let why = format!("what `{}` changes: {}", clip(name), self.world.why(given));
            let term = kit.undecided(codes::NOT_COMPILED, why, given.span);
            if mode == Mode::Alone {
                let state = kit.b.var(var, at);
                let state = kit.b.let_in(vec![("_".into(), term)], state, at);
                return match goto {
                    Some(goto) => kit.b.add(Term::With(state, GOTO.into(), goto), at),
                    None => state,
                };
            }
            return kit.b.let_in(vec![("_".into(), term)], goto.unwrap_or(term), at);
        };
        self.applied(kit, graph, scope, entries, mode, goto, at)
    }

    /// An update; if what is added to the conversation is one of two things, it is decided first.
    #[allow(clippy::too_many_arguments)]
    fn applied(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        scope: &Scope,
        entries: Vec<(String, Value)>,
        mode: Mode,
        goto: Option<TermId>,
        at: Span,
    ) -> TermId {
        let messages = graph.plan.messages();
        let found =
            entries.iter().position(|(k, v)| Some(k.as_str()) == messages && self.either_of(v).is_some());
        let Some((i, (test, yes, no))) =
            found.and_then(|i| Some((i, self.either_of(&entries[i].1)?))).filter(|_| goto.is_none())
        else {
            return self.apply(kit, graph, scope, &entries, mode, goto, at);
        };
        let side = |value: Value| {
            let mut entries = entries.clone();
            entries[i].1 = value;
            entries
        };
        let test = self.test(kit, scope, &test);
        let yes = self.applied(kit, graph, scope, side(yes), mode, None, at);
        let no = self.applied(kit, graph, scope, side(no), mode, None, at);
        kit.b.add(Term::If(test, yes, no, IfSugar::Plain), at)
    }

    /// The keys that an update sets.
    fn entries_of(&self, scope: &Scope, given: &Value) -> Option<Vec<(String, Value)>> {
        match &given.kind {
            Kind::None => Some(Vec::new()),
            Kind::Dict(id) => {
                let dict = self.world.dict(*id);
                if dict.open.is_some() {
                    return None;
                }
                let mut out: Vec<(String, Value)> = Vec::new();
                for (key, value) in &dict.entries {
                    match (key.as_str(), &key.kind) {
                        (Some(key), _) => {
                            out.retain(|(k, _)| k != key);
                            out.push((key.to_string(), value.clone()));
                        }
                        // `{**state, …}`: the other keys stay as they are.
                        (None, Kind::External(star)) if &**star == "**" => {
                            let whole = matches!(value.kind, Kind::Object(s) if scope.state.as_ref().is_some_and(|(id, _)| *id == s));
                            if !whole {
                                return None;
                            }
                        }
                        _ => return None,
                    }
                }
                Some(out)
            }
            Kind::Object(id) => {
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
                // An instance of the state's class.
                object.class?;
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
    #[allow(clippy::too_many_arguments)]
    fn apply(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        scope: &Scope,
        entries: &[(String, Value)],
        mode: Mode,
        goto: Option<TermId>,
        at: Span,
    ) -> TermId {
        let Some((_, var)) = scope.state.clone() else { return kit.unknown("a node without a state", at) };
        let mut said: Vec<(Name, TermId)> = Vec::new();
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for (key, value) in entries {
            let channel = graph.plan.channel(key);
            if channel.is_none() && graph.plan.declared {
                let message = format!("the state has no key `{}`", clip(key));
                kit.out.push(diagnostics::Diagnostic::warn(codes::UNDEFINED, message, value.span));
                continue;
            }
            let reducer = channel.map_or(&Reducer::Last, |c| &c.reducer);
            if let Reducer::Messages = reducer {
                self.add_messages(kit, graph, scope, key, value, mode, &mut said, &mut fields);
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
                scope.held.insert(traced.state, Held { var: a.clone(), kind: Kindly::Data, live: false });
                if let Some(second) = traced.second {
                    scope.held.insert(second, Held { var: b.clone(), kind: Kindly::Data, live: false });
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

    /// What a value adds to the conversation.
    fn added(&self, scope: &Scope, value: &Value) -> Vec<Added> {
        const MOST: usize = 200;
        let mut out = Vec::new();
        let mut todo = vec![value.clone()];
        while let Some(value) = todo.pop() {
            if out.len() > MOST {
                break;
            }
            if self.is_conversation(scope, &value) {
                continue;
            }
            if let Kind::Object(id) = value.kind {
                if scope.held.contains_key(&id) {
                    out.push(Added::Held(id));
                    continue;
                }
                let object = self.world.object(id);
                if object.base.is_none() && matches!(&*object.callee, "+" | "[*]") {
                    todo.extend(object.args.iter().rev().map(|a| a.value.clone()));
                    continue;
                }
                // `held["messages"]`, or its last one.
                if let Some(id) = self.held_messages(scope, id) {
                    out.push(Added::Held(id));
                    continue;
                }
            }
            match (self.message_of(&value), self.world.items(&value), &value.kind) {
                (Some((role, content)), ..) => out.push(Added::Say(role, content)),
                (None, Some(items), _) if !items.iter().any(|i| i.maybe) => {
                    todo.extend(items.iter().rev().cloned())
                }
                (None, _, Kind::Str(_) | Kind::Text(_)) => out.push(Added::Say(Role::User, value)),
                _ => out.push(Added::Unknown(value)),
            }
        }
        out
    }

    fn held_messages(&self, scope: &Scope, id: ObjectId) -> Option<ObjectId> {
        let mut at = id;
        for _ in 0..4 {
            let base = self.world.object(at).base?;
            if let Some(held) = scope.held.get(&base) {
                return (!matches!(held.kind, Kindly::Data)).then_some(base);
            }
            at = base;
        }
        None
    }

    #[allow(clippy::too_many_arguments)]
    fn add_messages(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        scope: &Scope,
        key: &str,
        value: &Value,
        mode: Mode,
        said: &mut Vec<(Name, TermId)>,
        fields: &mut Vec<(Name, TermId)>,
    ) {
        let at = value.span;
        let Some((_, var)) = scope.state.clone() else { return };
        let mut messages: Vec<TermId> = Vec::new();
        let mut reply: Option<TermId> = None;
        for added in self.added(scope, value) {
            let (role, text, live) = match added {
                Added::Held(id) => {
                    let held = scope.held.get(&id).cloned();
                    let content = Value::new(Kind::Member(id, "content".into()), at);
                    let kind = held.as_ref().map_or(Kindly::Data, |h| h.kind);
                    let text = match kind {
                        Kindly::Data => {
                            let data = self.expr(kit, scope, &Value::new(Kind::Object(id), at));
                            kit.b.add(Term::Prim(Prim::ToStr, vec![data]), at)
                        }
                        _ => self.expr(kit, scope, &content),
                    };
                    if let (Some(held), true) = (&held, graph.replies) {
                        let tag = kit.b.var(held.var.clone(), at);
                        reply = Some(match kind {
                            Kindly::Calls => tag,
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
                    let message =
                        format!("what is added to the conversation is not known: {}", self.world.why(&value));
                    let term = kit.undecided(codes::NOT_COMPILED, message, value.span);
                    (Role::Assistant, term, false)
                }
            };
            let text = if live || !graph.talks || mode == Mode::Beside {
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
        let new = kit.b.add(Term::List(messages), at);
        let new = match mode {
            Mode::Beside => new,
            Mode::Alone => {
                let old = self.read(kit, &var, key, at);
                kit.b.add(Term::Prim(Prim::Add, vec![old, new]), at)
            }
        };
        fields.push((key.into(), new));
        if let (Some(reply), Mode::Alone) = (reply, mode) {
            fields.push((REPLY.into(), reply));
        }
    }

    /// A node of which only the name is known: a tool that is given the state and gives the update.
    fn by_tool(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        name: &str,
        state: &str,
        mode: Mode,
        at: Span,
    ) -> TermId {
        let message =
            format!("`{}` is code that is not in the project: a tool of its name stands for it", clip(name));
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
    #[allow(clippy::too_many_arguments)]
    fn chain_node(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        chain: &Chain,
        name: &str,
        state: &str,
        mode: Mode,
        at: Span,
    ) -> TermId {
        let Some(key) = graph.plan.messages().filter(|_| mode == Mode::Alone) else {
            return self.by_tool(kit, graph, name, state, mode, at);
        };
        let params = self.params(kit, &chain.model, name);
        let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
        let var = kit.b.fresh("r");
        let text = match self.kind_of(&chain.model, false) {
            Kindly::Calls => {
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
                Kindly::Calls => t,
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
            return Some(field(object, Some(0), "tools").map_or_else(Vec::new, |g| self.items(g.value)));
        }
        let traced = self.traced(value)?;
        self.answers_calls(traced).then(|| graph.tools.clone())
    }

    /// Whether a function answers calls: it gives messages of tools.
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
                Kind::Object(id) => {
                    let object = self.world.object(*id);
                    let inner = matches!(&*object.callee, "if" | "+" | "[*]" | "[for]")
                        || object.short() == "Command";
                    if inner && object.base.is_none() {
                        todo.extend(object.args.iter().map(|a| a.value.clone()));
                    }
                }
                Kind::List(id) | Kind::Either(id) => todo.extend(self.world.list(*id).items.iter().cloned()),
                Kind::Dict(id) => todo.extend(self.world.dict(*id).entries.iter().map(|(_, v)| v.clone())),
                _ => {}
            }
        }
        let _ = scope;
        false
    }

    /// The calls of the last reply are carried out.
    fn calls_tools(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        tools: &[Value],
        state: &str,
        mode: Mode,
        at: Span,
    ) -> TermId {
        let Some(key) = graph.plan.messages().filter(|_| graph.replies) else {
            return self.by_tool(kit, graph, "tools", state, mode, at);
        };
        let mut branches = Vec::new();
        for decl in self.tools(kit, tools, at) {
            let (name, place, none) = (decl.name.clone(), decl.span, decl.params.is_empty());
            let id = kit.declared(decl);
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
            if mode == Mode::Alone && graph.talks {
                bindings.push(("_".into(), send));
            }
            let body = kit.b.let_in(bindings, body, place);
            let _ = none;
            branches.push(Branch { tag: name, binder: Some("a".into()), body });
        }
        let reply = self.read(kit, &state.into(), REPLY, at);
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
        let value = traced.trace.value.clone();
        let ways = Ways { graph, name, mode: Mode::Beside, value: &value };
        let mut leaf = |kit: &mut Kit<'_>, scope: &Scope, value: &Value| match self.labels(value) {
            Some(labels) => kit.text(&labels.join("+"), value.span),
            None => match &value.kind {
                Kind::Bool(b) => kit.text(&b.to_string(), value.span),
                Kind::Either(_) => kit.undecided(codes::NOT_COMPILED, "which way is taken".into(), at),
                // No way at all.
                Kind::None => kit.text("", value.span),
                Kind::Object(_) | Kind::Member(..) if self.sent(value).is_some() => {
                    self.sent_items(kit, scope, value, value.span)
                }
                _ => self.expr(kit, scope, value),
            },
        };
        Some(self.level(kit, scope, &calls, 0, &value, &ways, &mut leaf))
    }

    /// The nodes that a value names: one, or several at once.
    pub fn labels(&self, value: &Value) -> Option<Vec<String>> {
        if let Some(name) = self.node_name(value) {
            return Some(vec![name]);
        }
        if let Kind::Function(_) = value.kind {
            return None;
        }
        let items = self.world.items(value)?;
        items.iter().map(|v| self.node_name(v)).collect()
    }

    /// What `Send("node", arg)`s send, and to which node: `[Send("n", f(x)) for x in xs]`.
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
        let items = self.world.items(value)?;
        let all: Option<Vec<(String, Value)>> = items.iter().map(send).collect();
        let all = all.filter(|a| !a.is_empty())?;
        let node = all[0].0.clone();
        let one = all.iter().all(|(n, _)| *n == node);
        one.then(|| (node, items.iter().cloned().zip(all.into_iter().map(|(_, a)| a)).collect()))
    }

    /// What is sent, as a list.
    fn sent_items(&self, kit: &mut Kit<'_>, scope: &Scope, value: &Value, at: Span) -> TermId {
        let Some((_, items)) = self.sent(value) else {
            return kit.undecided(codes::NOT_COMPILED, "what is sent".into(), at);
        };
        if let Some((_, object)) = self.world.object_of(value)
            && &*object.callee == "[for]"
            && let ([of, element, _], Some((_, arg))) = (&object.args[..], items.first())
        {
            let list = self.expr(kit, scope, &of.value);
            let mut inner = scope.clone();
            let var: Name = kit.b.fresh("each");
            if let Some((id, _)) = self.world.object_of(&element.value) {
                inner.held.insert(id, Held { var: var.clone(), kind: Kindly::Data, live: false });
            }
            let body = self.expr(kit, &inner, arg);
            let body = kit.b.abs(var, None, body, at);
            return kit.b.add(Term::Each(None, body, list), at);
        }
        let items = items.iter().map(|(_, arg)| self.expr(kit, scope, arg)).collect();
        kit.b.add(Term::List(items), at)
    }
}

/// What is the same on all ways through a function.
struct Ways<'w> {
    graph: &'w Graph<'w>,
    /// The node's name, for what models are asked.
    name: &'w str,
    mode: Mode,
    /// What the function gives.
    value: &'w Value,
}

fn pick(calls: &[Call], which: &[usize]) -> Vec<Call> {
    which.iter().filter_map(|i| calls.get(*i).cloned()).collect()
}

/// Whether two tests are the same one.
fn same(a: &Value, b: &Value) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Object(a), Kind::Object(b)) => a == b,
        (Kind::Member(a, m), Kind::Member(b, n)) => a == b && m == n,
        (Kind::Unknown(_), Kind::Unknown(_)) => a.span == b.span,
        _ => false,
    }
}

/// Whether calling something asks nobody: what Python has built in, and what only makes values.
fn is_quiet(callee: &str) -> bool {
    const QUIET: &[&str] = &[
        "builtins",
        "typing",
        "typing_extensions",
        "logging",
        "json",
        "re",
        "math",
        "datetime",
        "time",
        "uuid",
        "copy",
        "os",
        "sys",
        "enum",
        "dataclasses",
        "functools",
        "itertools",
        "collections",
        "operator",
        "textwrap",
        "string",
        "random",
        "pydantic",
        "langchain",
        "langchain_core",
        "langgraph",
        "pprint",
        "rich",
        "loguru",
        "warnings",
        "traceback",
        "pathlib",
        "asyncio",
        "decimal",
        "structlog",
        "langsmith",
        "inspect",
        "types",
        "hashlib",
        "base64",
        "html",
        "urllib",
        "IPython",
        "str",
        "list",
        "dict",
    ];
    let head = callee.split('.').next().unwrap_or(callee);
    let logger = callee.contains("getLogger") || callee.contains("logger");
    logger
        || ((QUIET.contains(&head) || head.starts_with("langchain_")) && !callee.ends_with("types.interrupt"))
}
