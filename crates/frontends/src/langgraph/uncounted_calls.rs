//! Sources of model requests outside the term of a graph, an agent or a chain: retries, middleware, hooks,
//! tools, and repeated runs.
//!
//! Source: langgraph 1.2.22 (`types.py`, `pregel/_retry.py`), langchain 1.4.7 (`agents/factory.py`,
//! `agents/middleware`), langchain-core 1.7.2 (`runnables/base.py`, `runnables/retry.py`,
//! `runnables/fallbacks.py`).

use super::{GraphReader, What};
use crate::model_requests::{ModelRequests, Uncounted};
use crate::py::{self, Runs, field};
use diagnostics::Span;
use python::{Object, ObjectId, PyKind, Value};
use tool_facts::model_calls::is_asking;

/// Calls that have something tried again, by the last part of their names.
const RETRIES: &[&str] = &[
    "ModelFallbackMiddleware",
    "ModelRetryMiddleware",
    "RetryPolicy",
    "ToolRetryMiddleware",
    "with_fallbacks",
    "with_retry",
];
/// Classes of LangChain that ask a model by themselves.
const ASK_ITSELF: &[&str] = &[
    "ConversationSummaryBufferMemory",
    "ConversationSummaryMemory",
    "LLMChainExtractor",
    "LLMChainFilter",
    "LLMListwiseRerank",
    "MultiQueryRetriever",
    "OutputFixingParser",
    "RePhraseQueryRetriever",
    "RetryOutputParser",
    "RetryWithErrorOutputParser",
    "SelfQueryRetriever",
];
/// Middleware of LangChain that asks no model.
const QUIET_MIDDLEWARE: &[&str] = &[
    "ContextEditingMiddleware",
    "FilesystemFileSearchMiddleware",
    "FilesystemMiddleware",
    "HumanInTheLoopMiddleware",
    "ModelCallLimitMiddleware",
    "PIIMiddleware",
    "ShellToolMiddleware",
    "TodoListMiddleware",
    "ToolCallLimitMiddleware",
];
/// Methods of middleware around a request, which may make it more than once.
const WRAPS: &[&str] = &["wrap_model_call", "awrap_model_call"];
/// Functions, methods and classes that make agents, or models that are offered tools.
const MAKERS: &[&str] = &[
    "AgentExecutor",
    "ToolNode",
    "async_create_deep_agent",
    "bind_tools",
    "create_agent",
    "create_deep_agent",
    "create_react_agent",
    "create_supervisor",
    "create_swarm",
    "create_tool_calling_agent",
    "create_tool_calling_executor",
    "from_agent_and_tools",
    "initialize_agent",
];
/// Methods that run once, and those that run once for each of several inputs.
const RUNS: &[&str] = &["ainvoke", "astream", "astream_events", "invoke", "predict", "run", "arun", "stream"];
const RUNS_FOR_EACH: &[&str] = &[
    "abatch",
    "abatch_as_completed",
    "apply",
    "atransform",
    "batch",
    "batch_as_completed",
    "map",
    "transform",
];

impl GraphReader<'_, '_> {
    /// Number of runs.
    pub(super) fn run_again(&self, what: &What) -> Option<Runs> {
        let id = match what {
            What::Graph(id) | What::Agent(id) | What::Team(id) => *id,
            What::Chain(value) => self.world.object_of(value)?.0,
        };
        let place = self.world.object(id).span;
        // What a function makes again is the same.
        let same = self.world.objects().filter(|(_, o)| o.span == place).map(|(id, _)| id);
        let mut runs: Vec<ObjectId> = Vec::new();
        for id in same {
            for (method, call) in self.world.method_chain(id) {
                let name = method.name.rsplit('.').next().unwrap_or(&method.name);
                if RUNS_FOR_EACH.contains(&name) && self.inputs(method.result).is_none() {
                    return Some(Runs::Unknown(format!("`{name}` runs it once for each input"), call.span));
                }
                if RUNS.contains(&name) || RUNS_FOR_EACH.contains(&name) {
                    runs.push(method.result);
                }
            }
        }
        let times = py::repeats_of(self.world, &runs, |id| self.inputs(*id).unwrap_or(1));
        // An agent's turns do not depend on what is in its state.
        if matches!(what, What::Graph(_)) && self.is_kept(place) { py::resumed(times) } else { times }
    }

    /// The most times that retries and fallbacks repeat a call, with the place of one of them. `None` if
    /// there are none.
    pub(super) fn retries(&self) -> Option<Result<(u64, Span), Uncounted>> {
        let is_ours = |o: &Object| o.callee.starts_with("langchain") || o.callee.starts_with("langgraph");
        let of_chain = |o: &Object| o.base.is_some() && matches!(o.short(), "with_retry" | "with_fallbacks");
        let all = self.world.objects().map(|(_, o)| o);
        let all = all.filter(|o| RETRIES.contains(&o.short()) && (is_ours(o) || of_chain(o)));
        // What stands in one place is made of one call after another, or beside each other.
        let mut seen: Vec<Span> = Vec::new();
        let (mut most, mut nodes) = (1_u64, 1_u64);
        let mut at = None;
        for object in all {
            at = Some(object.span);
            let Some(n) = self.attempts(object).filter(|_| !object.repeated) else {
                let why = format!("`{}` asks again when something fails", object.short());
                return Some(Err((why, object.span)));
            };
            if seen.contains(&object.span) {
                continue;
            }
            seen.push(object.span);
            match object.short() {
                // Nodes of one graph are not within one another.
                "RetryPolicy" if self.plans.len() == 1 => nodes = nodes.max(n),
                _ => most = most.saturating_mul(n),
            }
        }
        at.map(|at| Ok((most.saturating_mul(nodes), at)))
    }

    /// The most attempts that a call of [`RETRIES`] makes of what it is about, if it is known. The defaults
    /// are those of `langgraph.types`, `langchain_core.runnables.base` and `langchain.agents.middleware`.
    fn attempts(&self, object: &Object) -> Option<u64> {
        if object.open.is_some() {
            return None;
        }
        let number = |position: Option<usize>, name: &str, default: u64| match field(object, position, name) {
            None => Some(default),
            Some(given) => match self.world.resolve_env(given.value).kind {
                PyKind::Int(n) => u64::try_from(n).ok(),
                _ => None,
            },
        };
        let is_model = |v: &Value| self.model(v).is_some() || self.world.str(v).is_some();
        match object.short() {
            "with_retry" => number(None, "stop_after_attempt", 3),
            "RetryPolicy" => number(Some(3), "max_attempts", 3),
            "ModelRetryMiddleware" | "ToolRetryMiddleware" => number(None, "max_retries", 2)?.checked_add(1),
            "ModelFallbackMiddleware" => {
                let models = object.args.iter().all(|a| is_model(&a.value));
                u64::try_from(object.args.len() + 1).ok().filter(|_| models)
            }
            "with_fallbacks" => {
                let others = field(object, Some(0), "fallbacks")?.value;
                let models = self.world.items(others)?.iter().all(is_model);
                // Another chain may ask more often than the first one.
                self.world.count(others)?.checked_add(1).filter(|_| models)
            }
            _ => None,
        }
    }

    /// Returns true if the state of a graph that is built in a place may be kept between runs.
    fn is_kept(&self, place: Span) -> bool {
        let graphs = self.world.objects().filter(|(_, o)| o.span == place).map(|(id, _)| id);
        let mut compiled = graphs.flat_map(|id| self.world.method_chain(id));
        compiled.any(|(m, o)| {
            m.name.ends_with("compile") && (o.open.is_some() || field(o, Some(0), "checkpointer").is_some())
        })
    }

    /// Number of inputs of a call, if it is known.
    fn inputs(&self, run: ObjectId) -> Option<u64> {
        let call = self.world.object(run);
        if !RUNS_FOR_EACH.contains(&call.short()) {
            return Some(1);
        }
        self.world.count(field(call, Some(0), "inputs")?.value)
    }

    /// Reason for model calls outside the term.
    pub(super) fn beside(&self, asks: &ModelRequests<'_, '_>, what: &What) -> Option<Uncounted> {
        let objects = || self.world.objects().map(|(_, o)| o);
        if let Some(Err(uncounted)) = self.retries() {
            return Some(uncounted);
        }
        let itself =
            |o: &Object| o.callee.split('.').find_map(|part| ASK_ITSELF.iter().find(|n| **n == part));
        if let Some((object, name)) = objects().find_map(|o| Some((o, itself(o)?))) {
            return Some((format!("`{name}` asks a model by itself"), object.span));
        }
        let is_part = |id: ObjectId| {
            let value = Value::new(PyKind::Object(id), self.world.object(id).span);
            self.inner_graph(&value).is_some()
        };
        for object in objects().filter(|o| MAKERS.contains(&o.short())) {
            if let Some(found) = self.middleware(asks, object) {
                return Some(found);
            }
            let args =
                object.args.iter().filter(|a| !matches!(a.name.as_deref(), Some("model" | "middleware")));
            if let Some(found) = asks.beside(args.map(|a| &a.value), &is_part) {
                return Some(found);
            }
        }
        match what {
            // Nodes are compiled: what they ask otherwise than as models of LangChain is not.
            What::Graph(_) | What::Team(_) => {
                let made = self.traces.values().flat_map(|t| &t.trace.objects);
                let mut made: Vec<ObjectId> = made.copied().collect();
                made.sort();
                let made = made.into_iter().map(|id| self.world.object(id));
                let other = made.into_iter().find(|o| is_asking(o) && self.asking(o).is_none())?;
                Some((format!("what `{}` asks is not compiled", other.short()), other.span))
            }
            What::Chain(value) => {
                let (mut parts, mut at) = (vec![value.clone()], self.world.object_of(value)?.1);
                const MAX_PARTS: usize = 100;
                while let (Some(base), true) = (at.base, parts.len() < MAX_PARTS) {
                    parts.push(Value::new(PyKind::Object(base), at.span));
                    at = self.world.object(base);
                }
                asks.beside(&parts, &is_part)
            }
            What::Agent(_) => None,
        }
    }

    /// Place where middleware says that it may jump to another node than the next one, other than the end.
    fn jumps(&self, item: &Value) -> Option<Span> {
        let ends = |v: &Value| self.world.str(v) == Some("end");
        let declared = |value: &Value| {
            let (_, made) = self.world.object_of(value)?;
            let given = field(made, None, "can_jump_to")?;
            let only_ends = self.world.items(given.value).is_some_and(|all| all.iter().all(ends));
            (!only_ends).then_some(given.at)
        };
        let function = |f| self.world.function(f).decorators.iter().find_map(declared);
        if let Some(at) = declared(item).or_else(|| py::function_of(item).and_then(function)) {
            return Some(at);
        }
        let class = self.world.object_of(item)?.1.class?;
        const HOOKS: &[&str] = &[
            "before_agent",
            "before_model",
            "after_model",
            "after_agent",
            "abefore_agent",
            "abefore_model",
            "aafter_model",
            "aafter_agent",
        ];
        let hooks = HOOKS.iter().filter_map(|h| self.world.class_lookup(class, h));
        hooks.filter_map(|(v, _)| py::function_of(&v)).find_map(function)
    }

    /// Reason for model calls of an agent's middleware.
    fn middleware(&self, asks: &ModelRequests<'_, '_>, object: &Object) -> Option<Uncounted> {
        let given = field(object, None, "middleware")?;
        let Some(items) = self.world.items(given.value) else {
            return (!given.value.is_none())
                .then(|| ("which middleware there is is not known".into(), given.at));
        };
        items.iter().find_map(|item| {
            if let Some(found) = asks.beside([item], &|_| false) {
                return Some(found);
            }
            if let Some(at) = self.jumps(item) {
                return Some(("middleware may jump back to the model".into(), at));
            }
            let function = py::function_of(item).or_else(|| {
                let (_, made) = self.world.object_of(item)?;
                made.args.first().and_then(|a| py::function_of(&a.value))
            });
            let wraps = match (function, self.world.object_of(item)) {
                (Some(function), made) => {
                    self.world.decorated(function, WRAPS)
                        || made.is_some_and(|(_, o)| WRAPS.contains(&o.short()))
                }
                (None, Some((_, made))) => match made.class {
                    Some(class) => WRAPS.iter().any(|w| self.world.class_lookup(class, w).is_some()),
                    None if QUIET_MIDDLEWARE.contains(&made.short()) || RETRIES.contains(&made.short()) => {
                        false
                    }
                    None => {
                        let why = format!("what `{}` asks is not compiled", made.short());
                        return Some((why, made.span));
                    }
                },
                (None, None) => return Some(("middleware that is not known".into(), item.span)),
            };
            wraps.then(|| ("middleware decides how often a request is made".into(), item.span))
        })
    }
}
