//! This program as a server of the Model Context Protocol, for the assistants of editors.
//!
//! Tools: `lint`, `check`, `cost` and `explain`, and each pipeline of the files that are named. The first
//! four are what the command line does, done by it in a process of its own, so that nothing else gets onto
//! standard output; pipelines run here.
//!
//! Invariant: files outside of the root are not read, and no argument is taken for an option.

use crate::service::{Service, StartOptions, ifc, input_schema};
use core_ir::Type;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use session::callers::Caller;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a result.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// Timeout of a command.
const PATIENCE: Duration = Duration::from_secs(120);

/// Options of an MCP server.
#[derive(Clone, Debug)]
pub struct McpOptions {
    /// The client.
    pub caller: Arc<Caller>,
    /// Folder whose files may be read; absolute.
    pub root: PathBuf,
    /// This program: its file, and the arguments that come first.
    pub program: (PathBuf, Vec<std::ffi::OsString>),
}

/// Serves one client on standard input and output until it leaves, and ends its runs.
///
/// # Errors
/// No client speaks the protocol there, in words for people.
pub async fn serve_stdio(service: Service, options: McpOptions) -> Result<(), String> {
    let McpOptions { caller, root, program } = options;
    let service = Arc::new(service);
    let server = Server { service: service.clone(), caller, root, program };
    // Whoever started us may have gone without a word.
    let running = server.serve(rmcp::transport::stdio()).await.map_err(|e| e.to_string())?;
    let _ = running.waiting().await;
    service.close(Duration::ZERO).await;
    Ok(())
}

struct Server {
    service: Arc<Service>,
    /// The client, which there is one of.
    caller: Arc<Caller>,
    root: PathBuf,
    /// This program: its file, and the arguments that come first.
    program: (PathBuf, Vec<std::ffi::OsString>),
}

/// The commands that are tools: name, what it does, its argument, what that is, and whether it names a file.
const COMMANDS: [(&str, &str, &str, &str, bool); 4] = [
    (
        "lint",
        "Finds defects in agent programs and in the configurations of agent frameworks (CrewAI, AutoGen, LangGraph, Dify, n8n and others). One JSON object a line for each finding.",
        "path",
        "a file or directory within the root",
        true,
    ),
    (
        "check",
        "Checks types, effects, bounds and information flow of a .agent or .lam program or a configuration. One JSON object a line.",
        "path",
        "a file or directory within the root",
        true,
    ),
    (
        "cost",
        "Tells what a run of a program or configuration may cost at most: calls, tokens, money, time. One JSON object a line for each pipeline.",
        "path",
        "a file within the root",
        true,
    ),
    (
        "explain",
        "Tells what the code of a finding means, with a wrong and a right example.",
        "code",
        "such as A010",
        false,
    ),
];

impl Server {
    /// A path within the root.
    fn path(&self, given: &str) -> Result<PathBuf, String> {
        let refused = || format!("`{given}` does not exist or is outside of `{}`", self.root.display());
        let path = self.root.join(given).canonicalize().map_err(|_| refused())?;
        let inside = path.strip_prefix(&self.root).map_err(|_| refused())?;
        Ok(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_path_buf() })
    }

    /// Returns the output of a command.
    async fn command(&self, name: &str, argument: &Path) -> Result<String, String> {
        let mut command = tokio::process::Command::new(&self.program.0);
        command
            .args(&self.program.1)
            .arg(name)
            .args(["--format", "json", "--"])
            .arg(argument)
            .current_dir(&self.root);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let done = tokio::time::timeout(PATIENCE, command.output()).await;
        let done = done.map_err(|_| format!("`{name}` took longer than {} s", PATIENCE.as_secs()))?;
        let done = done.map_err(|e| format!("`{name}` could not be run: {e}"))?;
        let text = |bytes: &[u8]| diagnostics::clip_to(&String::from_utf8_lossy(bytes), 2000);
        match done.status.code() {
            // Findings are a result.
            Some(0 | 1) => {
                let mut out = String::from_utf8_lossy(&done.stdout).into_owned();
                if out.len() > MAX_RESULT_BYTES {
                    let end = out.floor_char_boundary(MAX_RESULT_BYTES);
                    out.truncate(end);
                    out.push_str("\n… (cut off)");
                }
                Ok(if out.trim().is_empty() { "nothing found".into() } else { out })
            }
            _ if !done.stdout.is_empty() => Err(text(&done.stdout)),
            _ => Err(text(&done.stderr)),
        }
    }

    /// Runs a pipeline to its end; a call that is canceled ends it.
    async fn pipeline(
        &self,
        name: &str,
        args: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, String> {
        let pipeline = self.service.pipelines().find(|p| p.name == name);
        let is_within = pipeline.is_some_and(|p| arguments(p.input.as_ref()).1);
        let input = match args.get("input") {
            Some(input) if is_within && args.len() == 1 => input.clone(),
            _ => Value::Object(args),
        };
        let started = self
            .service
            .start(&self.caller, name, &input, StartOptions::default())
            .map_err(|refused| refused.message().into_owned())?;
        let _left = started.cancel.drop_guard();
        let mut events = started.events;
        loop {
            tokio::select! {
                () = context.ct.cancelled() => return Err("the call was canceled".into()),
                event = events.recv() => if event.is_none() { break },
            }
        }
        self.service.outcome(&self.caller, &started.run).ok_or_else(|| "the run was lost".into())
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |name: String, description: String, schema: Value, reads: bool| {
            let schema = if let Value::Object(schema) = schema { schema } else { Map::new() };
            let mut annotations = ToolAnnotations::default();
            annotations.read_only_hint = Some(reads);
            annotations.open_world_hint = Some(!reads);
            Tool::new(name, description, Arc::new(schema)).with_annotations(annotations)
        };
        let mut all: Vec<Tool> = COMMANDS
            .iter()
            .map(|(name, what, argument, is, _)| {
                let schema = json!({
                    "type": "object", "properties": {*argument: {"type": "string", "description": is}},
                    "required": [argument], "additionalProperties": false,
                });
                tool((*name).into(), (*what).into(), schema, true)
            })
            .collect();
        all.extend(self.service.pipelines().map(|p| {
            let most = |n: Option<u64>| n.map_or("any number of".to_string(), |n| format!("at most {n}"));
            let what = format!(
                "Runs the pipeline `{}`: {} calls of models, {} calls of tools.",
                p.name,
                most(p.bound.model_calls.most),
                most(p.bound.tool_calls.most)
            );
            tool(format!("run_{}", p.name), what, arguments(p.input.as_ref()).0, false)
        }));
        all
    }
}

/// The outcome of a run as the result of a tool, with its label.
fn told(outcome: Value) -> CallToolResult {
    let error = outcome.get("error");
    let label = error.map_or(&outcome["label"], |e| &e["label"]);
    let mut meta = MetaObject::default();
    // A withheld outcome has no label.
    if !label.is_null() {
        meta.0.insert("ifc".into(), ifc(label));
    }
    let message = error.map(|e| e["message"].as_str().unwrap_or_default().to_string());
    let mut result = match message {
        None => CallToolResult::structured(outcome),
        Some(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
    };
    result.meta = (!meta.0.is_empty()).then_some(meta);
    result
}

/// The schema of a tool that runs a pipeline with such an input, and whether the input is within its
/// arguments: those are an object, and what is no object is the only field of it.
fn arguments(input: Option<&Type>) -> (Value, bool) {
    let schema = input_schema(input);
    if schema["type"] == "object" {
        return (schema, false);
    }
    let schema = json!({"type": "object", "properties": {"input": schema}, "required": ["input"], "additionalProperties": false});
    (schema, true)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("entail", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        let name = &*request.name;
        let done = if let Some((_, _, argument, _, is_path)) = COMMANDS.iter().find(|c| c.0 == name) {
            let Some(given) = args.get(*argument).and_then(Value::as_str) else {
                return Err(ErrorData::invalid_params(format!("`{argument}` is missing"), None));
            };
            let given = if *is_path { self.path(given) } else { Ok(PathBuf::from(given)) };
            match given {
                Ok(given) => self.command(name, &given).await,
                Err(why) => Err(why),
            }
        } else if let Some(pipeline) = name.strip_prefix("run_")
            && self.service.pipelines().any(|p| p.name == pipeline)
        {
            let done = self.pipeline(pipeline, args, &context).await;
            match done {
                Ok(outcome) => return Ok(told(outcome).into()),
                Err(why) => Err(why),
            }
        } else {
            return Err(ErrorData::invalid_params(
                format!("unknown tool `{}`", diagnostics::clip_to(name, 80)),
                None,
            ));
        };
        Ok(match done {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]).into(),
        })
    }
}
