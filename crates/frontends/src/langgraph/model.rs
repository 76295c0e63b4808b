//! Models, prompts, chains and what they are asked.

use super::prompt::{MessageContent, Part};
use super::value::Scope;
use super::{GraphReader, ReplyKind};
use crate::py::{self, Given, field};
use core_ir::{ModelParams, Name, Recv, Role, Term, TermId, ToolDecl, Type};
use diagnostics::Span;
use frontend_kit::emit::{codes, undecided};
use frontend_kit::kit::{self, Kit};
use frontend_kit::lists::said_each;
use python::{Arg, Object, ObjectId, PyKind, Value};
use std::sync::Arc;

/// A model with what is bound to it.
#[derive(Clone)]
pub(super) struct Model {
    /// The object that it was made by.
    pub object: Value,
    pub at: Span,
    /// Arguments that were bound later.
    pub bound: Vec<Arg>,
    pub tools: Vec<Value>,
    pub schema: Option<Value>,
    /// The tests that decided on this one among several.
    pub tests: Vec<Value>,
}

/// Stages of a chain.
#[derive(Clone)]
pub(super) struct Chain {
    pub prompt: Option<Value>,
    pub model: Model,
    /// True if the reply is parsed as JSON.
    pub json: bool,
    /// Sources of the prompt's variables: `{"a": …} | prompt`.
    pub given: Vec<(String, Value)>,
}

/// Methods that ask once, and those that give the answer in pieces.
const ASKS: &[&str] =
    &["invoke", "ainvoke", "stream", "astream", "predict", "apredict", "run", "arun", "__call__"];

impl GraphReader<'_, '_> {
    /// The object that a method was called on and the method's name.
    pub fn method_call<'o>(&self, object: &'o Object) -> Option<(ObjectId, &'o str)> {
        let base = object.base?;
        let rest = object.callee.strip_prefix(&*self.world.object(base).callee)?.strip_prefix('.')?;
        Some((base, rest))
    }

    /// The object whose asking this call is, and the argument.
    pub fn asking<'o>(&self, object: &'o Object) -> Option<(ObjectId, Option<&'o Arg>)> {
        let (base, method) = self.method_call(object)?;
        ASKS.contains(&method)
            .then(|| (base, object.args.iter().find(|a| a.name.is_none()).or_else(|| object.arg("input"))))
    }

    /// Returns true if the source itself scripts the replies of a model: a fake model of `langchain_core`, or
    /// a class derived from one.
    fn is_scripted(&self, value: &Value) -> bool {
        let fake = |name: &str| name.starts_with("langchain") && name.rsplit('.').next().is_some_and(is_fake);
        let replies =
            |c| py::replies_itself(self.world, c, "_generate", |name| name.starts_with("langchain"));
        self.world.object_of(value).is_some_and(|(_, o)| {
            fake(&o.callee) || o.class.is_some_and(|c| self.world.derives(c, fake) || replies(c))
        })
    }

    /// Notes whether what is given as a model is one that stands in for a model.
    pub(super) fn note_scripted(&self, kit: &mut Kit<'_>, value: &Value) {
        kit.outline.scripted |= self.is_scripted(value);
    }

    /// Returns true if an external object is a model class, or a function that makes a model.
    pub(super) fn is_model(&self, object: &Object) -> bool {
        if object.base.is_some()
            || object
                .class
                .is_some_and(|c| !self.world.derives(c, |n| n.contains("Chat") || n.contains("LLM")))
        {
            return false;
        }
        let short = object.short();
        let package = object.package();
        let chat =
            package.starts_with("langchain") || package == "langgraph" || package == "databricks_langchain";
        matches!(short, "init_chat_model" | "load_chat_model")
            || (short.starts_with("Chat")
                && !short.contains("Prompt")
                && !short.contains("Message")
                && !short.contains("History"))
            || (chat
                && matches!(
                    short,
                    "OpenAI"
                        | "AzureChatOpenAI"
                        | "AzureOpenAI"
                        | "Ollama"
                        | "OllamaLLM"
                        | "GoogleGenerativeAI"
                        | "HuggingFaceHub"
                        | "HuggingFaceEndpoint"
                        | "HuggingFacePipeline"
                        | "Bedrock"
                        | "BedrockLLM"
                        | "VertexAI"
                        | "Anthropic"
                        | "Groq"
                        | "LlamaCpp"
                        | "Cohere"
                        | "Together"
                        | "Replicate"
                ))
    }

    /// The model that a value is.
    pub fn model(&self, value: &Value) -> Option<Model> {
        self.model_within(value, &[], 0)
    }

    /// The model that a value is, with the outcomes of the first tests that decide between several; of the
    /// others the first is taken.
    pub(super) fn model_within(&self, value: &Value, outcomes: &[bool], depth: usize) -> Option<Model> {
        const MAX_DEPTH: usize = 24;
        let (id, object) = self.world.object_of(value)?;
        if depth > MAX_DEPTH {
            return None;
        }
        if let Some((test, yes, no)) = self.either_of(value) {
            // Both are models, or it is something else.
            let (yes, no) = (
                self.model_within(&yes, &[], depth + 1).map(|_| yes)?,
                self.model_within(&no, &[], depth + 1).map(|_| no)?,
            );
            let (holds, rest) = outcomes.split_first().map_or((true, outcomes), |(h, rest)| (*h, rest));
            let mut model = self.model_within(if holds { &yes } else { &no }, rest, depth + 1)?;
            model.tests.insert(0, test);
            return Some(model);
        }
        if self.is_model(object) {
            let object = Value::new(PyKind::Object(id), value.span);
            let at = self.world.object(id).span;
            return Some(Model {
                object,
                at,
                bound: Vec::new(),
                tools: Vec::new(),
                schema: None,
                tests: Vec::new(),
            });
        }
        let (base, method) = self.method_call(object)?;
        let base = Value::new(PyKind::Object(base), value.span);
        let known = [
            "bind_tools",
            "bind_functions",
            "with_structured_output",
            "bind",
            "with_config",
            "with_retry",
            "with_fallbacks",
            "configurable_fields",
            "configurable_alternatives",
            "with_listeners",
            "with_types",
        ];
        if !known.contains(&method) {
            return None;
        }
        let mut model = self.model_within(&base, outcomes, depth + 1)?;
        match method {
            "bind_tools" | "bind_functions" => {
                if let Some(given) = field(object, Some(0), "tools") {
                    model.tools = self.tool_items(given.value);
                }
                model.bound.extend(
                    object.args.iter().filter(|a| a.name.as_deref().is_some_and(|n| n != "tools")).cloned(),
                );
            }
            // Fields that may be configured: `with_config({"model": …})`.
            "with_config" => {
                let given = field(object, Some(0), "config").map(|g| g.value.clone());
                let mut entries: Vec<(Value, Value)> =
                    given.and_then(|v| self.world.entries(&v).map(<[_]>::to_vec)).unwrap_or_default();
                let inner = entries.iter().find(|(k, _)| k.as_str() == Some("configurable"));
                let inner = inner.and_then(|(_, v)| self.world.entries(v).map(<[_]>::to_vec));
                entries.extend(inner.unwrap_or_default());
                const FIELDS: &[&str] = &["model", "model_name", "temperature", "max_tokens"];
                for (key, value) in entries {
                    if let Some(name) = key.as_str().filter(|n| FIELDS.contains(n)) {
                        model.bound.push(Arg { name: Some(name.into()), span: value.span, value });
                    }
                }
            }
            "with_structured_output" => {
                model.schema = field(object, Some(0), "schema").map(|g| g.value.clone());
            }
            "bind" => {
                if let Some(given) = field(object, None, "tools") {
                    model.tools = self.tool_items(given.value);
                }
                model.bound.extend(
                    object.args.iter().filter(|a| a.name.as_deref().is_some_and(|n| n != "tools")).cloned(),
                );
            }
            _ => {}
        }
        Some(model)
    }

    /// The items of a list, or of the several lists that it is joined of, as far as they are known.
    pub fn items(&self, value: &Value) -> Vec<Value> {
        match self.world.items(value) {
            Some(items) => items.to_vec(),
            None => match self.world.object_of(value) {
                Some((_, o)) if matches!(&*o.callee, "+" | "[*]") => {
                    o.args.iter().flat_map(|a| self.items(&a.value)).collect()
                }
                // Items of one of two lists are there or not.
                Some((_, o)) if &*o.callee == "if" && self.ends_of(o).is_some() => {
                    let ends = self.ends_of(o).into_iter().flatten();
                    ends.map(|v| Value { maybe: true, ..v }).collect()
                }
                _ => match &value.kind {
                    PyKind::Either(id) => {
                        self.world.list(*id).items.first().map_or(Vec::new(), |v| self.items(v))
                    }
                    _ => vec![value.clone()],
                },
            },
        }
    }

    /// The tools that a value lists: see [`py::tool_list`].
    pub fn tool_items(&self, value: &Value) -> Vec<Value> {
        let joined = self.world.object_of(value).is_some_and(|(_, o)| {
            matches!(&*o.callee, "+" | "[*]") || &*o.callee == "if" && self.ends_of(o).is_some()
        });
        match joined {
            true => {
                let all = self.items(value).iter().flat_map(|v| py::tool_list(self.world, v)).collect();
                py::each_once(self.world, all)
            }
            false => py::tool_list(self.world, value),
        }
    }

    /// The items of the two lists that an `if` decides between.
    fn ends_of(&self, object: &Object) -> Option<Vec<Value>> {
        let [_, yes, no] = &object.args[..] else { return None };
        let (yes, no) = (self.world.items(&yes.value)?, self.world.items(&no.value)?);
        Some(yes.iter().chain(no).cloned().collect())
    }

    /// The parameters of a model, and the tools that it is offered.
    pub fn params(&self, kit: &mut Kit<'_>, model: &Model, purpose: &str) -> ModelParams {
        let mut params = ModelParams { purpose: Some(purpose.into()), ..ModelParams::default() };
        let settled = &model.object;
        if let Some(test) = model.tests.first() {
            let message = "the model depends on a test; the first one is assumed";
            kit.out.push(undecided(codes::NOT_COMPILED, message, test.span));
        }
        self.note_scripted(kit, settled);
        let before = kit.out.len();
        py::model(self.world, Some(Given { value: settled, at: model.at }), &mut params, kit);
        for arg in &model.bound {
            if let (Some("model" | "model_name"), Some(named)) =
                (arg.name.as_deref(), self.world.str(&arg.value))
            {
                // What is configured later is the model.
                params.model = Some(named.into());
                let mut i = 0;
                kit.out.retain(|d| {
                    i += 1;
                    i <= before || d.level != diagnostics::Level::Unknown
                });
                continue;
            }
            if let Some(name) = &arg.name {
                py::setting(
                    self.world,
                    name,
                    Given { value: &arg.value, at: arg.span },
                    &mut params,
                    kit.out,
                );
            }
        }
        for decl in self.tools(kit, &model.tools) {
            if params.tools.len() < frontend_kit::emit::MAX_TOOLS {
                let id = kit.declared(decl);
                params.tools.push(id);
            }
        }
        if let Some(schema) = &model.schema {
            params.result = Some(self.schema(schema));
        }
        params
    }

    /// The type that a schema says.
    pub fn schema(&self, value: &Value) -> Type {
        match py::type_of(self.world, value) {
            Type::Str | Type::Null => Type::Dyn,
            ty => ty,
        }
    }

    /// The declarations of tools.
    pub fn tools(&self, kit: &mut Kit<'_>, values: &[Value]) -> Vec<ToolDecl> {
        let mut out: Vec<ToolDecl> = Vec::new();
        for value in values {
            let value_at = value.span;
            if value.maybe && !py::is_rest(value) {
                let message = "the agent may not have this tool; it is assumed to have it";
                kit.out.push(undecided(codes::NOT_COMPILED, message, value_at));
            }
            let decl = match self.tool(value) {
                Some(decl) => decl,
                None => {
                    let why = self.world.unknown_reason(value);
                    let message = format!("a tool that is not known: {why}");
                    kit.out.push(undecided(codes::NOT_COMPILED, message, value_at));
                    let name = py::outside(value).unwrap_or_else(|| format!("unknown_{}", out.len() + 1));
                    ToolDecl::unknown(name.into(), value_at)
                }
            };
            if decl.name.is_empty() || &*decl.name == "final" || out.iter().any(|d| d.name == decl.name) {
                continue;
            }
            out.push(decl);
        }
        out
    }

    /// The declaration of a tool.
    pub fn tool(&self, value: &Value) -> Option<ToolDecl> {
        let at = value.span;
        let hidden = |world: &python::World<'_>, annotation: &Value| {
            let inner = match world.object_of(annotation) {
                Some((_, o)) if o.callee.ends_with("Annotated[]") => {
                    o.args.iter().any(|a| world.name_of(&a.value).is_some_and(|n| n.contains("Injected")))
                }
                _ => false,
            };
            inner
                || world.name_of(annotation).is_some_and(|n| {
                    let n = n.trim_end_matches("[]");
                    [
                        "RunnableConfig",
                        "ToolRuntime",
                        "InjectedState",
                        "InjectedStore",
                        "InjectedToolCallId",
                        "CallbackManagerForToolRun",
                    ]
                    .iter()
                    .any(|h| n.ends_with(h))
                })
        };
        if let Some(function) = py::function_of(value) {
            // `@tool("name")`, `@tool(description=…)`.
            let named = |position, key| py::decorator_arg(self.world, function, &["tool"], position, key);
            let name = named(Some(0), "name_or_callable").and_then(|v| self.world.str(v)).map(str::to_string);
            let own = self.world.function(function).name.to_string();
            let at = self.world.function(function).name_span;
            let mut decl = py::signature(self.world, function, &name.unwrap_or(own), at, hidden);
            if let Some(text) = named(None, "description").and_then(|v| self.world.str(v)) {
                decl.description = Some(text.into());
            }
            return Some(decl);
        }
        if let PyKind::Class(class) = value.kind {
            // A schema as a tool: its fields are the arguments.
            let class = self.world.class(class);
            let mut decl = ToolDecl::unknown((&*class.name).into(), class.name_span);
            decl.description = class.doc.as_deref().map(Name::from);
            if let Type::Record(fields) = py::type_of(self.world, value) {
                decl.params = fields
                    .iter()
                    .map(|(n, t)| core_ir::ToolParam {
                        name: n.clone(),
                        ty: t.clone(),
                        bound: core_ir::LabelSpec::BOTTOM,
                        default: None,
                    })
                    .collect();
            }
            return Some(decl);
        }
        if self.world.entries(value).is_some() {
            // A function as the protocol describes it.
            let get = |v: &Value, key: &str| -> Option<Value> {
                self.world.entries(v)?.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v.clone())
            };
            let function = get(value, "function").unwrap_or_else(|| value.clone());
            let name = get(&function, "name").or_else(|| get(value, "type"))?;
            let mut decl = ToolDecl::unknown(self.world.str(&name)?.into(), at);
            decl.description = get(&function, "description").and_then(|v| self.world.str(&v).map(Name::from));
            return Some(decl);
        }
        let (_, object) = self.world.object_of(value)?;
        let named = |key| field(object, None, key).and_then(|g| self.world.str(g.value)).map(str::to_string);
        match object.short() {
            // `tool(Schema)`: the schema as a tool.
            "tool" if matches!(object.args.first().map(|a| &a.value.kind), Some(PyKind::Class(_))) => {
                self.tool(&object.args.first()?.value)
            }
            "tool" | "from_function" | "StructuredTool" | "Tool" | "as_tool" | "convert_runnable_to_tool" => {
                let function = ["func", "coroutine", "name_or_callable", "runnable"]
                    .iter()
                    .find_map(|n| field(object, None, n))
                    .or_else(|| {
                        object
                            .args
                            .iter()
                            .find(|a| a.name.is_none() && py::function_of(&a.value).is_some())
                            .map(|a| Given { value: &a.value, at: a.span })
                    });
                let function = function.and_then(|g| py::function_of(g.value));
                let own = function.map(|f| self.world.function(f).name.to_string());
                let positional =
                    object.args.iter().find(|a| a.name.is_none()).and_then(|a| self.world.str(&a.value));
                let name = named("name").or_else(|| positional.map(str::to_string)).or(own)?;
                let mut decl = match function {
                    Some(f) => py::signature(self.world, f, &name, at, hidden),
                    None => ToolDecl::unknown(name.as_str().into(), at),
                };
                decl.description = named("description").map(Name::from).or(decl.description);
                Some(decl)
            }
            "create_retriever_tool" => {
                let name = field(object, Some(1), "name").and_then(|g| self.world.str(g.value))?;
                let mut decl = ToolDecl::unknown(name.into(), at);
                decl.description = field(object, Some(2), "description")
                    .and_then(|g| self.world.str(g.value))
                    .map(Name::from);
                Some(decl)
            }
            "create_handoff_tool" => {
                let to = field(object, None, "agent_name").and_then(|g| self.world.str(g.value))?;
                let name = named("name").unwrap_or_else(|| format!("transfer_to_{}", handoff_slug(to)));
                let mut decl = ToolDecl::unknown(name.as_str().into(), at);
                decl.description = named("description").map(Name::from);
                decl.params = Vec::new();
                Some(decl)
            }
            short => {
                let name = match named("name") {
                    Some(name) => name,
                    None => KNOWN_TOOLS
                        .iter()
                        .find(|(class, _)| *class == short)
                        .map_or_else(|| snake(short), |(_, n)| (*n).to_string()),
                };
                // An object of a class is a tool if it may be: what a call of a function gives may be
                // anything.
                let class = short.chars().next().is_some_and(char::is_uppercase) || object.class.is_some();
                let known = class && object.base.is_none();
                known.then(|| ToolDecl::unknown(name.as_str().into(), at))
            }
        }
    }

    /// The stages of `a | b | c`, with `a.pipe(b)`.
    pub fn stages(&self, value: &Value) -> Vec<Value> {
        const MAX_STAGES: usize = 64;
        let mut out = Vec::new();
        let mut todo = vec![value.clone()];
        while let Some(value) = todo.pop() {
            if out.len() + todo.len() > MAX_STAGES {
                break;
            }
            if let Some((_, object)) = self.world.object_of(&value) {
                if &*object.callee == "|" {
                    todo.extend(object.args.iter().rev().map(|a| a.value.clone()));
                    continue;
                }
                if let Some((base, method)) = self.method_call(object) {
                    if method == "pipe" {
                        todo.extend(object.args.iter().rev().map(|a| a.value.clone()));
                        todo.push(Value::new(PyKind::Object(base), value.span));
                        continue;
                    }
                    if matches!(method, "with_config" | "with_retry" | "with_types")
                        && &*self.world.object(base).callee == "|"
                    {
                        todo.push(Value::new(PyKind::Object(base), value.span));
                        continue;
                    }
                }
                if object.short() == "RunnableSequence" {
                    todo.extend(object.args.iter().rev().map(|a| a.value.clone()));
                    continue;
                }
                if object.short() == "LLMChain" {
                    let part = |n| field(object, None, n).map(|g| g.value.clone());
                    todo.extend([part("llm"), part("prompt")].into_iter().flatten());
                    continue;
                }
            }
            out.push(value);
        }
        out
    }

    /// A chain: what its prompt is made of, a prompt, a model, a parser.
    pub fn chain(&self, value: &Value) -> Option<Chain> {
        self.chain_within(value, &[])
    }

    /// The chain that a value is, with the outcomes of the first tests that decide on its model.
    pub(super) fn chain_within(&self, value: &Value, outcomes: &[bool]) -> Option<Chain> {
        let stages = self.stages(value);
        let at_model = stages.iter().position(|s| self.model(s).is_some())?;
        let model = self.model_within(&stages[at_model], outcomes, 0)?;
        let (before, after) = (&stages[..at_model], &stages[at_model + 1..]);
        let mut chain = Chain { prompt: None, model, json: false, given: Vec::new() };
        for stage in before {
            if self.is_prompt(stage) {
                chain.prompt = Some(stage.clone());
            } else if let Some(entries) = self.world.entries(stage) {
                chain
                    .given
                    .extend(entries.iter().filter_map(|(k, v)| Some((k.as_str()?.to_string(), v.clone()))));
            } else {
                return None;
            }
        }
        for stage in after {
            let (_, object) = self.world.object_of(stage)?;
            match object.short() {
                "StrOutputParser" => {}
                "JsonOutputParser" | "SimpleJsonOutputParser" => chain.json = true,
                "PydanticOutputParser" => {
                    chain.model.schema = field(object, None, "pydantic_object").map(|g| g.value.clone());
                }
                _ => return None,
            }
        }
        Some(chain)
    }

    /// A model asked by itself, in a conversation of its own.
    pub fn ask_alone(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        parts: &[Part],
        params: ModelParams,
        at: Span,
    ) -> TermId {
        if parts.iter().any(|p| matches!(p, Part::Several(_))) {
            let said = self.sends(kit, scope, parts);
            let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
            let body = kit.b.let_in(said, recv, at);
            return kit.b.add(Term::Fresh(body), at);
        }
        let said = self.messages(kit, scope, parts);
        kit::ask(kit, said, params, at)
    }

    /// The messages of a request, sent.
    pub fn sends(&self, kit: &mut Kit<'_>, scope: &Scope, parts: &[Part]) -> Vec<(Name, TermId)> {
        let mut out = Vec::new();
        for one in parts.chunk_by(|a, b| !matches!(a, Part::Several(_)) && !matches!(b, Part::Several(_))) {
            if let [Part::Several(value)] = one {
                let list = self.expr(kit, scope, value);
                let list = match self.is_message(scope, value) {
                    true => kit.b.add(Term::List(vec![list]), value.span),
                    false => list,
                };
                out.push(("_".into(), said_each(kit, list, value.span)));
                continue;
            }
            let said = self.messages(kit, scope, one);
            out.extend(kit::sent(kit, said));
        }
        out
    }

    /// The messages of a request.
    fn messages(&self, kit: &mut Kit<'_>, scope: &Scope, parts: &[Part]) -> Vec<(Role, TermId, Span)> {
        let mut out = Vec::new();
        for part in parts {
            out.push(match part {
                Part::Say(role, said) => {
                    let at = match said {
                        MessageContent::Value(v)
                        | MessageContent::Template(v, _)
                        | MessageContent::Computed(v, _) => v.span,
                    };
                    (*role, self.said(kit, scope, said), at)
                }
                Part::Conversation => continue,
                Part::Either(value, ..) | Part::Several(value) | Part::Other(value) => {
                    (Role::User, self.expr(kit, scope, value), value.span)
                }
            });
        }
        out
    }

    /// Returns the kind of a reply, by the output that its model is configured for.
    pub fn kind_of(&self, model: &Model, json: bool) -> ReplyKind {
        match (&model.schema, model.tools.is_empty(), json) {
            (Some(_), ..) | (None, true, true) => ReplyKind::Data,
            (None, false, _) => ReplyKind::Calls,
            (None, true, false) => ReplyKind::Text,
        }
    }
}

/// Tools of LangChain's collection, with the names that models see.
const KNOWN_TOOLS: &[(&str, &str)] = &[
    ("TavilySearchResults", "tavily_search_results_json"),
    ("TavilySearch", "tavily_search"),
    ("TavilyExtract", "tavily_extract"),
    ("DuckDuckGoSearchRun", "duckduckgo_search"),
    ("DuckDuckGoSearchResults", "duckduckgo_results_json"),
    ("WikipediaQueryRun", "wikipedia"),
    ("ArxivQueryRun", "arxiv"),
    ("PythonREPLTool", "Python_REPL"),
    ("PythonAstREPLTool", "python_repl_ast"),
    ("ShellTool", "terminal"),
    ("GoogleSerperRun", "google_serper"),
    ("YahooFinanceNewsTool", "yahoo_finance_news"),
];

/// A class's name as a tool's.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Returns true for a class of `langchain_core.language_models` with scripted replies.
fn is_fake(class: &str) -> bool {
    class.contains("Fake") && ["Model", "LLM"].iter().any(|end| class.ends_with(end))
}

/// The part of a handoff's name that the agent's name makes.
pub(super) fn handoff_slug(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join("_").to_lowercase()
}
