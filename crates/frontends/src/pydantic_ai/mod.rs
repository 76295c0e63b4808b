//! pydantic-ai, in Python: what `Agent(…)` and its decorators build.
//!
//! | source | term |
//! |---|---|
//! | `Agent(model, instructions=…, system_prompt=…)` | `llm p θ` |
//! | `@agent.tool`, `@agent.tool_plain`, `tools=[…]`, `Tool(f)`, `FunctionToolset` | a tool with the function's parameters |
//! | `requires_approval=True`, `.approval_required()` | a tool that a person allows each time |
//! | `MCPServerStdio(…)` and other servers, `toolsets=[…]` | one tool that represents those of the server |
//! | a tool in whose body another agent is run | that agent is asked, then the tool is called |
//! | `output_type` | the type that the reply is decoded to; functions in it are tools whose result is the answer |
//! | `UsageLimits(request_limit=n)` | the bound; 50 if it does not say |
//!
//! Entry point: [`PydanticAi`].
//!
//! Source: pydantic-ai-slim 2.68.0: `agent/__init__.py`, `tools.py`, `toolsets/`, `mcp.py`, `usage.py`,
//! `capabilities/`.

use crate::agent_host::{self, AgentHost, Decorated, Note, Offer};
use crate::defaults;
use crate::py::{self, Given, field};
use core_ir::{Approve, ModelParams, Name, TermId, ToolDecl, Type};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Template, Unused};
use frontend_kit::kit::{Kit, Units, plain};
use frontend_kit::outline::ToolRole;
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, Words};
use frontend_kit::shape::why;
use python::{FunctionId, Object, ObjectId, PyKind, Value, World};
use std::collections::{HashMap, HashSet};

/// The front end.
pub struct PydanticAi;

const AGENT_KEYS: &[&str] = &[
    "model",
    "name",
    "instructions",
    "system_prompt",
    "model_settings",
    "tools",
    "builtin_tools",
    "toolsets",
    "mcp_servers",
    "output_type",
    "result_type",
    "capabilities",
    "retries",
    "output_retries",
];
const AGENT_UNUSED: &[Unused] = &[
    ("deps_type", "the dependencies are code"),
    ("description", why::SHOWN),
    ("metadata", why::RUNTIME),
    ("tool_timeout", why::RUNTIME),
    ("max_concurrency", why::RUNTIME),
    ("validation_context", why::RUNTIME),
    ("end_strategy", why::RUNTIME),
    ("defer_model_check", why::RUNTIME),
    ("instrument", why::RUNTIME),
    ("history_processors", why::CODE),
    ("event_stream_handler", why::CODE),
    ("prepare_tools", why::CODE),
    ("prepare_output_tools", why::CODE),
];
/// Methods that run an agent.
const RUNS: &[&str] = &["run", "run_sync", "run_stream", "run_stream_sync", "run_stream_events", "iter"];
/// Tools that the provider carries out, with the names of their effects.
const BUILTIN: &[(&str, &str)] = &[
    ("WebSearchTool", "web_search"),
    ("WebFetchTool", "web_fetch"),
    ("UrlContextTool", "url_context"),
    ("CodeExecutionTool", "code_execution"),
    ("FileSearchTool", "file_search"),
    ("ImageGenerationTool", "image_generation"),
    ("MemoryTool", "memory"),
    ("MCPServerTool", "mcp"),
    ("XSearchTool", "x_search"),
    ("WebSearch", "web_search"),
    ("WebFetch", "web_fetch"),
    ("XSearch", "x_search"),
    ("ImageGeneration", "image_generation"),
];
/// Capabilities that bring no tools.
const NO_TOOLS: &[&str] = &[
    "Caching",
    "Citations",
    "Instrumentation",
    "ModelFallback",
    "PrepareOutputTools",
    "ProcessHistory",
    "ReinjectSystemPrompt",
    "Thinking",
    "UseThreadExecutor",
];
/// Methods of toolsets that give a toolset with the same tools.
const SAME_TOOLS: &[&str] =
    &["prefixed", "filtered", "prepared", "renamed", "approval_required", "with_metadata"];
/// Toolsets around another one, which is their first argument.
const AROUND: &[&str] = &[
    "WrapperToolset",
    "PrefixedToolset",
    "FilteredToolset",
    "PreparedToolset",
    "RenamedToolset",
    "ApprovalRequiredToolset",
];
/// Toolsets within one another.
const MAX_DEPTH: usize = 8;

impl Frontend for PydanticAi {
    fn name(&self) -> &'static str {
        "pydantic_ai"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["Agent.run", "Agent.run_sync", "Agent.run_stream", "Agent.iter"]
    }

    fn detect(&self, file: &File) -> u8 {
        let makes = || py::makes(file, |name| name.starts_with("pydantic_ai.") && name.ends_with("Agent"));
        if py::imports(file, &["pydantic_ai"]) && makes() { 78 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            ends_loops: Some("pydantic-ai ends a run at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `instructions=`",
                model: "name one: `Agent(\"openai:gpt-4.1\")`",
                bound: "state it: `usage_limits=UsageLimits(request_limit=…)` of `run`",
                ..Words::default()
            },
            code: CodeFacts { run_limit: Some("request_limit"), ..CodeFacts::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        py::evaluated(project, file, python::Limits::default(), None, |mut world, found| {
            units.compiled.diagnostics.extend(found);
            let all: HashSet<FunctionId> =
                world.functions().filter(|(_, f)| !f.decorators.is_empty()).map(|(id, _)| id).collect();
            let given =
                world.objects().flat_map(|(id, _)| functions_given(&world, id)).collect::<HashSet<_>>();
            let mut functions: Vec<FunctionId> = all.union(&given).copied().collect();
            functions.sort();
            let is_run = |name: &str| RUNS.contains(&name);
            let delegates = agent_host::delegates(&mut world, functions, is_run, is_agent);
            let decorated = agent_host::decorated(&world);
            agent_host::units(units, file, &Host { world: &world, decorated, delegates })
        })
    }
}

/// The functions among the tools that an object is given.
fn functions_given(world: &World<'_>, id: ObjectId) -> Vec<FunctionId> {
    let object = world.object(id);
    if object.package() != "pydantic_ai" {
        return Vec::new();
    }
    let lists = ["tools"].iter().filter_map(|key| world.items(field(object, None, key)?.value)).flatten();
    lists.chain(object.args.iter().map(|a| &a.value)).filter_map(py::function_of).collect()
}

fn is_agent(world: &World<'_>, id: ObjectId) -> bool {
    let object = world.object(id);
    let ours = |n: &str| n.starts_with("pydantic_ai.") && n.trim_end_matches("[]").ends_with(".Agent");
    match object.class {
        Some(class) => world.derives(class, ours),
        None => object.base.is_none() && ours(&object.callee),
    }
}

struct Host<'r, 'w> {
    world: &'r World<'w>,
    decorated: Decorated,
    delegates: HashMap<FunctionId, Vec<ObjectId>>,
}

impl<'w> Host<'_, 'w> {
    fn get(&self, id: ObjectId, position: Option<usize>, name: &str) -> Option<Given<'_>> {
        field(self.world.object(id), position, name).filter(|g| !g.value.is_none())
    }

    fn decorated_with(&self, id: ObjectId, methods: &[&str]) -> Vec<(FunctionId, Option<ObjectId>)> {
        let all = self.decorated.get(&id).into_iter().flatten();
        all.filter(|(_, method, _)| methods.contains(&method.as_str()))
            .map(|(f, _, call)| (*f, *call))
            .collect()
    }

    /// The tool that a function is. `call` has the settings, if there are any.
    fn function(&self, function: FunctionId, call: Option<&Object>, at: Option<Span>) -> Offer {
        let hidden = |world: &World<'_>, annotation: &Value| {
            world.name_of(annotation).is_some_and(|n| n.trim_end_matches("[]").ends_with("RunContext"))
        };
        let f = self.world.function(function);
        let text = |key| call.and_then(|c| field(c, None, key)).and_then(|g| self.world.str(g.value));
        let name = text("name").unwrap_or(&f.name).to_string();
        let mut decl = py::signature(self.world, function, &name, at.unwrap_or(f.name_span), hidden);
        decl.params.retain(|p| &*p.name != "ctx");
        if let Some(description) = text("description") {
            decl.description = Some(description.into());
        }
        if call.and_then(|c| field(c, None, "requires_approval")).is_some_and(|g| is_true(g.value)) {
            decl.approve = Approve::Always;
        }
        match self.delegates.get(&function) {
            Some(agents) => Offer::Delegates(decl, agents.clone()),
            None => Offer::Tool(decl, ToolRole::Program),
        }
    }

    /// The tools that a value of `tools=` is.
    fn tool(&self, value: &Value, out: &mut Vec<Offer>, notes: &mut Vec<Note>) {
        if let Some(function) = py::function_of(value) {
            out.push(self.function(function, None, None));
            return;
        }
        let Some((_, object)) = self.world.object_of(value) else {
            out.push(Offer::Tool(
                agent_host::unknown_tool(self.world, value, out.len(), notes),
                ToolRole::Program,
            ));
            return;
        };
        let function = field(object, Some(0), "function").or_else(|| field(object, None, "func"));
        if object.short() == "Tool"
            && let Some(function) = function.and_then(|g| py::function_of(g.value))
        {
            out.push(self.function(function, Some(object), None));
            return;
        }
        let builtin = BUILTIN.iter().find(|(class, _)| *class == object.short());
        let name = match builtin {
            Some((_, name)) => (*name).to_string(),
            None => object.short().to_string(),
        };
        let role = if builtin.is_some() { ToolRole::Provider } else { ToolRole::Program };
        out.push(Offer::Tool(ToolDecl::unknown(name.as_str().into(), value.span), role));
    }

    fn tools_of(&self, given: Option<Given<'_>>, out: &mut Vec<Offer>, notes: &mut Vec<Note>) {
        let Some(given) = given else { return };
        let items = agent_host::tool_list(self.world, given.value, notes);
        items.iter().for_each(|v| self.tool(v, out, notes));
    }

    /// The tools of a capability that the program makes.
    fn capability(&self, value: &Value, out: &mut Vec<Offer>, notes: &mut Vec<Note>) {
        let Some((id, object)) = self.world.object_of(value) else { return };
        self.tools_of(field(object, None, "tools"), out, notes);
        for (function, call) in self.decorated_with(id, &["tool", "tool_plain"]) {
            out.push(self.function(function, call.map(|c| self.world.object(c)), None));
        }
        if let Some(given) = field(object, None, "toolsets").or_else(|| field(object, None, "toolset")) {
            self.toolset(given.value, out, notes, 0);
        }
    }

    /// The tools of a toolset.
    fn toolset(&self, value: &Value, out: &mut Vec<Offer>, notes: &mut Vec<Note>, depth: usize) {
        if let Some(items) = self.world.items(value).filter(|_| depth < MAX_DEPTH) {
            items.iter().for_each(|v| self.toolset(v, out, notes, depth + 1));
            return;
        }
        let Some((id, object)) = self.world.object_of(value).filter(|_| depth < MAX_DEPTH) else {
            out.push(Offer::Tool(
                agent_host::unknown_tool(self.world, value, out.len(), notes),
                ToolRole::Program,
            ));
            return;
        };
        let inner = match object.base {
            Some(base) if SAME_TOOLS.contains(&object.short()) => {
                Some(Value::new(PyKind::Object(base), value.span))
            }
            _ if AROUND.contains(&object.short()) => {
                field(object, Some(0), "wrapped").map(|g| g.value.clone())
            }
            _ => None,
        };
        if let Some(inner) = inner {
            let first = out.len();
            self.toolset(&inner, out, notes, depth + 1);
            if matches!(object.short(), "approval_required" | "ApprovalRequiredToolset") {
                // A function that decides which calls are asked about may decide that none is.
                let always = object.args.iter().all(|a| py::function_of(&a.value).is_none());
                out[first..].iter_mut().filter(|_| always).for_each(approved);
            }
            return;
        }
        match object.short() {
            "CombinedToolset" => {
                let all = field(object, Some(0), "toolsets").and_then(|g| self.world.items(g.value));
                all.unwrap_or(&[]).iter().for_each(|v| self.toolset(v, out, notes, depth + 1));
            }
            "FunctionToolset" => {
                self.tools_of(field(object, Some(0), "tools"), out, notes);
                for (function, call) in self.decorated_with(id, &["tool", "tool_plain"]) {
                    out.push(self.function(function, call.map(|c| self.world.object(c)), None));
                }
                let decorated = self.decorated_with(id, &["tool", "tool_plain"]);
                for method in &object.calls {
                    let call = self.world.object(method.result);
                    let function = call.args.first().and_then(|a| py::function_of(&a.value));
                    let function = function.filter(|f| !decorated.iter().any(|(d, _)| d == f));
                    if let (Some(f), "add_function" | "tool") = (function, &*method.name) {
                        out.push(self.function(f, Some(call), None));
                    }
                }
            }
            short if short.contains("MCP") || short.contains("mcp") => {
                let servers = out.iter().filter(|o| is_server(o)).count();
                let name = if servers == 0 { "mcp".to_string() } else { format!("mcp_{}", servers + 1) };
                let named = ["id", "tool_prefix"].iter().find_map(|key| field(object, None, key));
                let server = named.and_then(|g| self.world.str(g.value)).unwrap_or(short);
                out.push(Offer::Tool(
                    agent_host::server(&name, server, value.span, notes),
                    ToolRole::Program,
                ));
            }
            _ => out.push(Offer::Tool(
                agent_host::unknown_tool(self.world, value, out.len(), notes),
                ToolRole::Program,
            )),
        }
    }

    /// The functions and the type of `output_type`.
    fn outputs(&self, id: ObjectId) -> (Vec<FunctionId>, Option<Type>) {
        let given = self.get(id, None, "output_type").or_else(|| self.get(id, None, "result_type"));
        let Some(given) = given else { return (Vec::new(), None) };
        let all = self.world.items(given.value).unwrap_or(std::slice::from_ref(given.value));
        let mut functions = Vec::new();
        let mut types = Vec::new();
        for value in all {
            // `ToolOutput(f)`, `NativeOutput(T)`.
            let inner = self.world.object_of(value).filter(|(_, o)| o.short().ends_with("Output"));
            let value = inner.and_then(|(_, o)| Some(&o.args.first()?.value)).unwrap_or(value);
            match py::function_of(value) {
                Some(function) => functions.push(function),
                None => types.push(py::type_of(self.world, value)),
            }
        }
        let ty = match &types[..] {
            [one] if functions.is_empty() && !matches!(one, Type::Str | Type::Null) => Some(one.clone()),
            [] | [_] => None,
            _ => Some(Type::Dyn),
        };
        (functions, ty)
    }
}

fn is_true(value: &Value) -> bool {
    matches!(value.kind, PyKind::Bool(true))
}

fn is_server(offer: &Offer) -> bool {
    matches!(offer, Offer::Tool(decl, _) if decl.name.starts_with("mcp"))
}

fn approved(offer: &mut Offer) {
    if let Offer::Tool(decl, _) | Offer::Delegates(decl, _) = offer {
        decl.approve = Approve::Always;
    }
}

impl<'w> AgentHost<'w> for Host<'_, 'w> {
    fn world(&self) -> &World<'w> {
        self.world
    }

    fn is_agent(&self, id: ObjectId) -> bool {
        is_agent(self.world, id)
    }

    fn name(&self, id: ObjectId) -> String {
        if let Some(name) = self.get(id, None, "name").and_then(|g| py::label(self.world, g.value)) {
            return name;
        }
        // The name of the variable, as pydantic-ai takes it from the frame.
        let file = self.world.object(id).span.file;
        let module = self.world.sources().of_file(file);
        let globals = module.map(|m| self.world.globals(m)).unwrap_or_default();
        let variable = globals.iter().find(|(_, v)| matches!(v.kind, PyKind::Object(o) if o == id));
        variable.map_or_else(|| "agent".to_string(), |(n, _)| (*n).to_string())
    }

    fn offers(&self, id: ObjectId, notes: &mut Vec<Note>) -> Vec<Offer> {
        let mut out = Vec::new();
        for key in ["tools", "builtin_tools"] {
            self.tools_of(self.get(id, None, key), &mut out, notes);
        }
        for (function, call) in self.decorated_with(id, &["tool", "tool_plain"]) {
            out.push(self.function(function, call.map(|c| self.world.object(c)), None));
        }
        let decorated = self.decorated_with(id, &["tool", "tool_plain"]);
        for method in &self.world.object(id).calls {
            let call = self.world.object(method.result);
            let function = call.args.first().and_then(|a| py::function_of(&a.value));
            // A decorator is a call as well.
            let function = function.filter(|f| !decorated.iter().any(|(d, _)| d == f));
            if let (Some(f), "tool" | "tool_plain") = (function, &*method.name) {
                out.push(self.function(f, Some(call), None));
            }
        }
        for key in ["toolsets", "mcp_servers"] {
            if let Some(given) = self.get(id, None, key) {
                match agent_host::listed(self.world, given.value, "toolsets", notes) {
                    Ok(items) => items.iter().for_each(|v| self.toolset(v, &mut out, notes, 0)),
                    Err(value) => self.toolset(value, &mut out, notes, 0),
                }
            }
        }
        let capabilities = self.get(id, None, "capabilities").and_then(|g| self.world.items(g.value));
        for value in capabilities.unwrap_or(&[]) {
            let short = self.world.object_of(value).map_or("", |(_, o)| o.short());
            match short {
                "NativeTool" | "Toolset" => {
                    let inner = self.world.object_of(value).and_then(|(_, o)| o.args.first());
                    match inner.map(|a| &a.value) {
                        Some(inner) if short == "Toolset" => self.toolset(inner, &mut out, notes, 0),
                        Some(inner) => self.tool(inner, &mut out, notes),
                        None => {}
                    }
                }
                "MCP" => self.toolset(value, &mut out, notes, 0),
                // Instructions and tools in one: `Capability(…)` with functions under `@capability.tool`.
                "Capability" => self.capability(value, &mut out, notes),
                _ if NO_TOOLS.contains(&short) => {}
                _ => self.tool(value, &mut out, notes),
            }
        }
        for (function, _) in self.decorated_with(id, &["toolset"]) {
            let message = format!(
                "the tools that `{}` gives are known when it runs",
                self.world.function(function).name
            );
            notes.push(Note { message, at: self.world.function(function).name_span, uncounted: true });
        }
        for function in self.outputs(id).0 {
            out.push(match self.function(function, None, None) {
                Offer::Tool(decl, _) => Offer::Finish(decl),
                other => other,
            });
        }
        out
    }

    fn functions(&self, id: ObjectId) -> Vec<FunctionId> {
        self.decorated.get(&id).into_iter().flatten().map(|(f, ..)| *f).collect()
    }

    fn length(&self, id: ObjectId) -> usize {
        let texts = ["instructions", "system_prompt"].iter().filter_map(|key| self.get(id, None, key));
        texts.map(|g| py::length(self.world, g.value)).sum()
    }

    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let head = self.world.object(id).span;
        let mut texts: Vec<&Value> = Vec::new();
        for key in ["system_prompt", "instructions"] {
            if let Some(given) = self.get(id, None, key) {
                texts.extend(self.world.items(given.value).unwrap_or(std::slice::from_ref(given.value)));
            }
        }
        let by_code = self.decorated_with(id, &["system_prompt", "instructions"]);
        if let ([one], true) = (&texts[..], by_code.is_empty())
            && py::function_of(one).is_none()
        {
            return py::text(kit, self.world, one, plain);
        }
        let mut template = Template::new(head);
        let mut first = true;
        let functions = texts.iter().filter_map(|v| py::function_of(v));
        let functions: Vec<FunctionId> = functions.chain(by_code.iter().map(|(f, _)| *f)).collect();
        for text in texts.into_iter().filter(|v| py::function_of(v).is_none()) {
            if !std::mem::take(&mut first) {
                template.text("\n\n");
            }
            py::fill(kit, self.world, text, &mut template, plain);
        }
        for function in functions {
            if !std::mem::take(&mut first) {
                template.text("\n\n");
            }
            let f = self.world.function(function);
            let unknown = kit.unknown(&format!("the output of `{}`", f.name), f.name_span);
            template.term(unknown);
        }
        template.build(&mut kit.b)
    }

    fn params(&self, kit: &mut Kit<'_>, id: ObjectId) -> (ModelParams, Option<Span>) {
        let object = self.world.object(id);
        py::report(object, AGENT_KEYS, AGENT_UNUSED, "an agent", kit.out);
        let mut params = ModelParams { purpose: Some(Name::from(self.name(id))), ..ModelParams::default() };
        let at = py::model(self.world, self.get(id, Some(0), "model"), &mut params, kit);
        if let Some(given) = self.get(id, None, "model_settings") {
            let by_keyword = self.world.object_of(given.value).map(|(_, o)| o);
            for arg in by_keyword.iter().flat_map(|o| &o.args) {
                if let Some(name) = &arg.name {
                    let given = Given { value: &arg.value, at: arg.span };
                    py::setting(self.world, name, given, &mut params, kit.out);
                }
            }
            for (key, value) in self.world.entries(given.value).unwrap_or(&[]) {
                if let Some(name) = key.as_str() {
                    py::setting(self.world, name, Given { value, at: value.span }, &mut params, kit.out);
                }
            }
        }
        params.result = self.outputs(id).1;
        (params, at)
    }

    fn tools_at(&self, id: ObjectId) -> Option<Span> {
        self.get(id, None, "tools").map(|g| g.at)
    }

    fn bound(&self, kit: &Kit<'_>, id: ObjectId) -> LoopBound {
        let default = defaults::bound(&defaults::PYDANTIC_AI_REQUESTS, kit.versions);
        let runs = self.world.objects().filter(|(_, o)| o.base == Some(id) && self.is_run(o.short()));
        let limits: Vec<Option<Given<'_>>> = runs
            .map(|(_, run)| {
                let limits = field(run, None, "usage_limits").filter(|g| !g.value.is_none())?;
                let (_, limits) = self.world.object_of(limits.value)?;
                field(limits, None, "request_limit")
            })
            .collect();
        match &limits[..] {
            [one] => py::bound(self.world, *one, default),
            [] => default,
            all if all.iter().all(Option::is_none) => default,
            _ => LoopBound::unknown("its runs have several limits"),
        }
    }

    fn over(&self) -> (&'static str, bool) {
        ("the request limit is exceeded", false)
    }

    fn repeated(&self, kit: &mut Kit<'_>, id: ObjectId, term: TermId) -> TermId {
        let at = self.world.object(id).span;
        // An empty reply, or one that a validator refuses, is asked for again, once if nothing says more.
        // Where there are tools or a type, the bound counts that.
        let (functions, ty) = self.outputs(id);
        if ty.is_some() || !functions.is_empty() || !self.offers(id, &mut Vec::new()).is_empty() {
            return term;
        }
        let given = self.get(id, None, "output_retries").or_else(|| self.get(id, None, "retries"));
        match given.map(|g| &self.world.resolve_env(g.value).kind) {
            None => kit.repeated(term, 2, "a reply that is refused is asked for again, once by default", at),
            Some(PyKind::Int(n)) if *n >= 0 => {
                let n = u64::try_from(*n).unwrap_or(0).saturating_add(1);
                kit.repeated(term, n, "a reply that is refused is asked for again", at)
            }
            Some(_) => kit.uncounted(term, "how often a refused reply is asked for again is not known", at),
        }
    }

    fn is_run(&self, method: &str) -> bool {
        RUNS.contains(&method)
    }
}
