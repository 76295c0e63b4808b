//! Connections to servers, with what can happen to them.

use super::host::{Host, OpenCall, capabilities, roots};
use super::pins::{Pins, ServerOffer, ServerTool};
use super::{BEFORE, McpCall, McpServer, NEWEST, ServerPart, oauth, result, signature};
use crate::process::{self, ProcessGroup, STDERR_TAIL};
use crate::tools::{ToolAnswer, ToolError, ToolLimits};
use crate::{ConfigError, ConfigErrorKind, Environment, Secret, web};
use core_ir::{Data, Name, Type};
use diagnostics::clip_to as clip;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig, ElicitRequestParams,
    ElicitationAction, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    InputRequiredResult, InputResponses, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, RequestMetaObject, Tool,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Default time for a server to become ready.
const START: Duration = Duration::from_secs(60);

/// Time for a server to exit by itself when the run has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Maximum number of pages of tools that a server lists; it may begin another one below `MAX_LIST` bytes.
const MAX_PAGES: usize = 100;
const MAX_LIST: usize = 16 << 20;

/// Error of the revision 2025-11-25: a person has to visit addresses before the call.
const URL_NEEDED: i32 = -32042;

/// Maximum number of times that a call is sent, because the server asks for something before its result.
const MAX_ROUNDS: usize = 12;

/// Wait before a call that a server wants to be repeated, doubled each time up to this power of two.
const AGAIN: Duration = Duration::from_millis(50);
const MAX_STATES: u32 = 5;

/// Bytes allowed for the envelope of a result in a message.
const FRAME: usize = 64 << 10;

/// The servers that the settings declare, and the connections of one run, or of several that share them.
#[derive(Default)]
pub(crate) struct Connections {
    servers: Arc<BTreeMap<String, Declared>>,
    pins: Arc<Pins>,
    open: Mutex<HashMap<String, Arc<OnceCell<Client>>>>,
    /// Connections of several runs, for servers that are not started for each run.
    shared: Option<Arc<Connections>>,
}

struct Declared {
    settings: McpServer,
    key: Option<Secret>,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.servers.keys()).finish()
    }
}

impl Connections {
    /// These servers, none of them connected.
    pub(crate) fn new(servers: BTreeMap<String, McpServer>, environment: &Environment) -> Connections {
        let declared = servers.into_iter().map(|(name, settings)| {
            let key = settings.key_env.as_deref().and_then(|n| environment.secret(n));
            (name, Declared { settings, key })
        });
        Connections { servers: Arc::new(declared.collect()), ..Connections::default() }
    }

    /// Returns true if there are no servers.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Returns the servers without connections, except for the shared ones.
    pub(crate) fn afresh(&self) -> Connections {
        Connections {
            servers: self.servers.clone(),
            pins: self.pins.clone(),
            open: Mutex::default(),
            shared: self.shared.clone(),
        }
    }

    /// Returns the servers without connections; copies made from the result share its connections.
    pub(crate) fn sharing(&self) -> Connections {
        let shared = Arc::new(Connections { shared: None, ..self.afresh() });
        Connections { shared: Some(shared), ..self.afresh() }
    }

    /// Ends the servers that are shared, politely.
    pub(crate) async fn close_shared(&self) {
        if let Some(shared) = &self.shared {
            shared.close(true).await;
        }
    }

    /// Returns the connection to a server.
    fn place(&self, declared: &Declared) -> &Connections {
        self.shared.as_deref().filter(|_| !declared.settings.per_run).unwrap_or(self)
    }

    /// Returns the servers, restricted to their approved definitions.
    pub(crate) fn with_pins(&self, pins: Pins) -> Connections {
        Connections { pins: Arc::new(pins), ..self.afresh() }
    }

    /// The tools of a server, as it describes them now.
    pub(crate) async fn list(
        &self,
        server: &str,
        limits: &ToolLimits,
        hidden: &[String],
    ) -> Result<ServerOffer, String> {
        let declared = self.declared(server).map_err(|e| e.one_line())?;
        let limit = declared.settings.start_timeout.map_or(START, Duration::from_secs_f64);
        let connected = Client::connect(server, declared, limits, hidden, limit, false).await;
        let client = connected.map_err(|e| format!("MCP server `{server}`: {}", e.one_line()))?;
        let tools = client.tools.iter().map(described).collect();
        let version = client.version();
        client.close(true).await;
        Ok(ServerOffer { version, tools })
    }

    /// The keys of servers.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Secret> {
        self.servers.values().filter_map(|s| s.key.as_ref())
    }

    /// Checks the settings of a server.
    pub(crate) fn check(&self, server: &str) -> Result<(), ConfigError> {
        self.declared(server).map(|_| ())
    }

    /// The program of a server that is a process.
    pub(crate) fn program(&self, server: &str) -> Option<&str> {
        let words = self.servers.get(server)?.settings.command.as_ref()?;
        words.first().map(String::as_str)
    }

    fn declared(&self, server: &str) -> Result<&Declared, ConfigError> {
        let shown = clip(server, 40);
        let Some(declared) = self.servers.get(server) else {
            let near = diagnostics::nearest(server, self.servers.keys().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    format!("add `[mcp.{shown}]` with `command = [\"program\"]` or `url` to `entail.toml`")
                }
            };
            return Err(ConfigError::new(format!("no MCP server `{shown}` is declared")).with_help(help));
        };
        if let Some(problem) = declared.settings.problem() {
            return Err(format!("the MCP server `{shown}` can't be used: {problem}").into());
        }
        if let (Some(variable), None) = (&declared.settings.key_env, &declared.key) {
            let message = format!("no key for the MCP server `{shown}`: `{variable}` is not set");
            return Err(ConfigError::new(message)
                .with_help("set it in the environment or in `.env`")
                .of_kind(ConfigErrorKind::NotSet(variable.clone())));
        }
        Ok(declared)
    }

    /// Calls a tool of a server, which is connected first if it is not yet.
    pub(crate) async fn call(&self, call: McpCall<'_>) -> ToolAnswer {
        let answer = self.answer(&call).await.unwrap_or_else(|e| Err(e).into());
        let settings = self.servers.get(call.server).map(|declared| &declared.settings);
        let Some(settings) = settings.filter(|s| s.oauth.is_some()).cloned() else { return answer };
        // A server can repeat the token that it got.
        let redactor = tokio::task::spawn_blocking(move || oauth::redactor(&settings)).await;
        let Ok(redactor) = redactor else { return Err("the handler crashed".to_string()).into() };
        let result = answer.result.map(|data| redactor.data(&data)).map_err(|e| e.redacted(&redactor));
        ToolAnswer { result, ..answer }
    }

    /// Lets a person authorize Entail for a server.
    pub(crate) async fn login(
        &self,
        server: &str,
        show: &mut (dyn FnMut(&str) + Send),
    ) -> Result<PathBuf, String> {
        let declared = self.declared(server).map_err(|e| e.one_line())?;
        if declared.settings.oauth.is_none() {
            return Err(format!(
                "the MCP server `{server}` has no `oauth` (help: add `oauth = {{}}` to `[mcp.{server}]`)"
            ));
        }
        let done = oauth::login(&declared.settings, show).await;
        done.map_err(|why| format!("MCP server `{server}`: {why}"))
    }

    async fn answer(&self, call: &McpCall<'_>) -> Result<ToolAnswer, ToolError> {
        let server = call.server;
        let declared = self.declared(server)?;
        let place = self.place(declared);
        let cell = place.cell(server);
        // The first caller connects; if that fails or is canceled, the next one tries again.
        let connected = cell.get_or_try_init(|| async {
            let limit = declared.settings.start_timeout.map_or(START, Duration::from_secs_f64);
            let asks = call.person.is_some();
            Client::connect(server, declared, call.limits, call.hidden, limit, asks).await
        });
        let of_server = |why: String| format!("MCP server `{server}`: {why}");
        let client = connected.await.map_err(|e| e.map(of_server))?;
        let open = client.service.service().open.begin(call.person.clone());
        let answer = tokio::select! {
            answer = client.call(call, &self.pins, &open.call) => answer,
            // Dropping the call tells the server to cancel it.
            () = open.call.too_long(call.limit) => {
                // It may be stuck, and must not block other runs. It ends with its last call in flight.
                if !std::ptr::eq(place, self) {
                    place.forget(server, &cell);
                }
                Err(ToolError::Late(format!("no result within {} s", call.limit.as_secs_f64())).into())
            }
        };
        let explained = |why: String| {
            let part = match call.part {
                // The declared name is in the message already.
                ServerPart::Tool(tool) if **tool == *call.decl.name => String::new(),
                part => format!(", {}", part.shown()),
            };
            open.call.explain(format!("MCP server `{server}`{part}: {why}"))
        };
        // The next call connects anew, even if the connection isn't known to be closed yet.
        if matches!(&answer, Err(CallError { is_lost: true, .. })) {
            place.forget(server, &cell);
        }
        let answer = answer.map_err(|e| e.error);
        let answer = answer.map_err(|e| e.map(explained))?;
        let person = open.call.person();
        Ok(ToolAnswer { result: answer.result.map_err(|e| e.map(explained)), label: answer.label, person })
    }

    /// Returns the cell of the connection to a server. A lost connection is replaced: its pending requests
    /// have failed, but later calls need not.
    fn cell(&self, server: &str) -> Arc<OnceCell<Client>> {
        let mut open = self.lock();
        let cell = open.entry(server.to_string()).or_default();
        if cell.get().is_some_and(|client| client.service.is_transport_closed()) {
            *cell = Arc::default();
        }
        cell.clone()
    }

    /// Later calls connect anew.
    fn forget(&self, server: &str, cell: &Arc<OnceCell<Client>>) {
        let mut open = self.lock();
        if open.get(server).is_some_and(|known| Arc::ptr_eq(known, cell)) {
            open.remove(server);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<OnceCell<Client>>>> {
        // A panic while the lock was held can't leave the map half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all servers: politely, if there is time for that.
    pub(crate) async fn close(&self, politely: bool) {
        let open: Vec<_> = self.lock().drain().collect();
        let mut closing = JoinSet::new();
        for (_, cell) in open {
            // All calls have ended, so this is the last reference.
            if let Some(client) = Arc::into_inner(cell).and_then(OnceCell::into_inner) {
                closing.spawn(client.close(politely));
            }
        }
        closing.join_all().await;
    }
}

/// A connected server. Dropping it kills its process.
#[derive(Debug)]
struct Client {
    service: RunningService<RoleClient, Host>,
    process: Option<Process>,
    tools: Vec<Tool>,
}

/// A request whose result the server may make depend on answers to requests of its own.
enum Request {
    Tool(CallToolRequestParams),
    Resource(ReadResourceRequestParams),
    Prompt(GetPromptRequestParams),
}

/// Result of one round of a request.
enum Round {
    Complete(Reply),
    InputRequired(InputRequiredResult),
    Task,
}

/// Result of a request.
enum Reply {
    Tool(CallToolResult),
    Resource(ReadResourceResult),
    Prompt(GetPromptResult),
}

impl Request {
    async fn send(&self, peer: &Peer<RoleClient>) -> Result<Round, ServiceError> {
        Ok(match self {
            Request::Tool(params) => match peer.call_tool_once(params.clone()).await? {
                CallToolResponse::Complete(done) => Round::Complete(Reply::Tool(done)),
                CallToolResponse::InputRequired(needs) => Round::InputRequired(needs),
                _ => Round::Task,
            },
            Request::Resource(params) => match peer.read_resource_once(params.clone()).await? {
                ReadResourceResponse::Complete(read) => Round::Complete(Reply::Resource(read)),
                ReadResourceResponse::InputRequired(needs) => Round::InputRequired(needs),
                _ => return Err(ServiceError::UnexpectedResponse),
            },
            Request::Prompt(params) => match peer.get_prompt_once(params.clone()).await? {
                GetPromptResponse::Complete(got) => Round::Complete(Reply::Prompt(got)),
                GetPromptResponse::InputRequired(needs) => Round::InputRequired(needs),
                _ => return Err(ServiceError::UnexpectedResponse),
            },
        })
    }

    /// Puts the answers to the requests of a round into the request.
    fn answer(&mut self, responses: Option<InputResponses>, state: Option<String>) {
        let (to_responses, to_state) = match self {
            Request::Tool(params) => (&mut params.input_responses, &mut params.request_state),
            Request::Resource(params) => (&mut params.input_responses, &mut params.request_state),
            Request::Prompt(params) => (&mut params.input_responses, &mut params.request_state),
        };
        (*to_responses, *to_state) = (responses, state);
    }
}

/// Reason why a call has no result.
struct CallError {
    error: ToolError,
    /// True if the connection is lost.
    is_lost: bool,
}

impl<E: Into<ToolError>> From<E> for CallError {
    fn from(error: E) -> CallError {
        CallError { error: error.into(), is_lost: false }
    }
}

/// A server that is a process of ours.
#[derive(Debug)]
struct Process {
    group: Arc<Mutex<ProcessGroup>>,
    /// Exit status of the process and its last output on standard error, once it has ended.
    ended: watch::Receiver<Option<String>>,
    said: Arc<Mutex<Vec<u8>>>,
    /// True if the server sent an overlong message.
    too_long: Arc<AtomicBool>,
    most: usize,
    /// They watch over it and end with it.
    _tasks: JoinSet<()>,
}

impl Client {
    /// Connects to a server. `asks`: a person answers its questions.
    async fn connect(
        server: &str,
        declared: &Declared,
        limits: &ToolLimits,
        hidden: &[String],
        limit: Duration,
        asks: bool,
    ) -> Result<Client, ToolError> {
        let settings = &declared.settings;
        let most = limits.max_output.saturating_add(FRAME);
        let slow = || format!("it was not ready within {} s", limit.as_secs_f64());
        let mut info = ClientConfig::new(
            capabilities(!settings.roots.is_empty(), asks),
            Implementation::new("entail", env!("CARGO_PKG_VERSION")),
        );
        let before = ProtocolVersion::V_2025_11_25;
        let lifecycle = match settings.protocol.as_deref() {
            Some(BEFORE) => {
                info = info.with_protocol_version(before);
                ClientLifecycleMode::Initialize
            }
            Some(NEWEST) => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
            }
            _ => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(before),
            },
        };
        let host = Host {
            server: server.into(),
            config: info,
            roots: roots(&settings.roots)?,
            open: Arc::default(),
        };
        let (service, process) = if let Some(words) = &settings.command {
            let (process, stdin, stdout) = start(words, &settings.env, hidden, most)?;
            let transport = AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(usize::MAX);
            let service = match timeout(limit, host.serve_with_lifecycle(transport, lifecycle)).await {
                Ok(Ok(service)) => service,
                Ok(Err(e)) => return Err(process.explain(start_problem(&e), lost_at_start(&e)).await.into()),
                Err(_) => return Err(process.with_last_words(slow()).into()),
            };
            (service, Some(process))
        } else {
            let url = web::url(settings.url.as_deref().unwrap_or_default(), "`url`")?;
            let mut headers = HeaderMap::new();
            if let Some(key) = &declared.key {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                    .map_err(|_| ConfigError::new("the key has characters that no header can have"))?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            let http = web::client(&url, Duration::from_secs(10), None, headers)?;
            let config =
                StreamableHttpClientTransportConfig::with_uri(url.to_string()).max_sse_event_size(most);
            let service = match &settings.oauth {
                None => {
                    let transport = StreamableHttpClientTransport::with_client(http, config);
                    timeout(limit, host.serve_with_lifecycle(transport, lifecycle)).await
                }
                Some(_) => {
                    let client = timeout(limit, oauth::authorized(server, settings, http)).await;
                    let client = client.map_err(|_| slow())??;
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    timeout(limit, host.serve_with_lifecycle(transport, lifecycle)).await
                }
            };
            (service.map_err(|_| slow())?.map_err(|e| start_problem(&e))?, None)
        };
        let mut client = Client { service, process, tools: Vec::new() };
        // What a server says now is not what it said before.
        client.service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        match timeout(limit, list(&client.service)).await {
            Ok(Ok(tools)) => client.tools = tools,
            // A server of resources and prompts.
            Ok(Err(ServiceError::McpError(e))) if e.code == ErrorCode::METHOD_NOT_FOUND => {}
            Ok(Err(e)) => return Err(client.explain(&e).await.into()),
            Err(_) => {
                let why = client.process.as_ref().map_or_else(slow, |p| p.with_last_words(slow()));
                return Err(why.into());
            }
        }
        Ok(client)
    }

    /// The version that the server states, if it states one.
    fn version(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        Some(info.server_info.as_ref()?.version.clone()).filter(|v| !v.is_empty())
    }

    /// Explains why a request has no result, with the state of the server's process.
    async fn explain(&self, e: &ServiceError) -> String {
        match &self.process {
            Some(process) if is_lost(e) => process.explain(call_problem(e), true).await,
            _ => call_problem(e),
        }
    }

    async fn call(&self, call: &McpCall<'_>, pins: &Pins, open: &OpenCall) -> Result<ToolAnswer, CallError> {
        let (request, tool) = match call.part {
            ServerPart::Tool(tool) => (Request::Tool(self.tool_request(call, tool, pins)?), Some(tool)),
            ServerPart::Resource(uri) => (Request::Resource(ReadResourceRequestParams::new(uri)), None),
            ServerPart::Prompt(name) => {
                let params = GetPromptRequestParams::new(name);
                (Request::Prompt(params.with_arguments(as_prompt_arguments(call.args))), None)
            }
        };
        let (ty, most) = (&call.decl.result, call.limits.max_output);
        let (result, label) = match self.rounds(request, tool, open).await? {
            Reply::Tool(done) => (result::read(&done, ty, most), result::label(&done)),
            Reply::Resource(read) => (result::read_resource(&read, ty, most), None),
            Reply::Prompt(got) => (result::read_prompt(&got, ty, most), None),
        };
        Ok(ToolAnswer { result: result.map_err(ToolError::Failed), label, person: None })
    }

    /// The request that calls a tool.
    ///
    /// # Errors
    /// The server has no such tool, it was not approved, or it is not what it is declared as.
    fn tool_request(
        &self,
        call: &McpCall<'_>,
        name: &str,
        pins: &Pins,
    ) -> Result<CallToolRequestParams, ToolError> {
        let Some(tool) = self.tools.iter().find(|t| t.name == name) else {
            return Err(no_such_tool(name, &self.tools).into());
        };
        if pins.knows(call.server)
            && let Some(what) = pins.state(call.server, &described(tool)).refusal()
        {
            let help = format!(
                "look at it with `entail tools --discover {0}`, and approve it with `entail lock --update {0}`",
                call.server
            );
            let was = pins.version_of(call.server);
            let what = match self.version().filter(|now| was.is_some_and(|was| was != now)) {
                Some(now) => {
                    let (now, was) = (clip(&now, 40), clip(was.unwrap_or_default(), 40));
                    format!("{what} (its server is of version {now}, and was of {was})")
                }
                None => what,
            };
            return Err(ConfigError::new(what).with_help(help).into());
        }
        let arguments = match arguments(call, tool) {
            Some(fields) => fields,
            None => {
                let output = tool.output_schema.as_deref();
                if let Some(difference) = signature::difference(call.decl, &tool.input_schema, output) {
                    let error = ConfigError::new(format!("it is not what it is declared as: {difference}"));
                    return Err(error
                        .with_help(format!(
                            "declare it as `entail tools --discover {}` shows it",
                            call.server
                        ))
                        .into());
                }
                as_arguments(call, &tool.input_schema)
            }
        };
        let mut params = CallToolRequestParams::new(name.to_string()).with_arguments(arguments);
        if let Some(key) = &call.key {
            let mut meta = RequestMetaObject::new();
            meta.insert("entail/idempotencyKey".into(), key.as_str().into());
            params.meta = Some(meta);
        }
        Ok(params)
    }

    /// Sends a request, again after each round in which the server asks for something.
    async fn rounds(
        &self,
        mut request: Request,
        tool: Option<&String>,
        open: &OpenCall,
    ) -> Result<Reply, CallError> {
        let mut states = 0;
        for _ in 0..MAX_ROUNDS {
            match request.send(self.service.peer()).await {
                Ok(Round::Complete(reply)) => return Ok(reply),
                Ok(Round::InputRequired(needs)) => {
                    if needs.input_requests.as_ref().is_none_or(|r| r.is_empty()) {
                        // The server wants to be asked again, and not at once.
                        tokio::time::sleep(AGAIN * 2_u32.pow(states)).await;
                        states = (states + 1).min(MAX_STATES);
                    }
                    let responses = open.fulfill(self.service.service(), needs.input_requests).await;
                    request.answer(responses.map_err(ToolError::Failed)?, needs.request_state);
                }
                Ok(Round::Task) => {
                    let why = "it answers with a task, which is not supported";
                    return Err(ToolError::Failed(why.into()).into());
                }
                Err(ServiceError::McpError(e)) if e.code.0 == URL_NEEDED => self.visit(&e, open).await?,
                Err(e) => {
                    let gone = match tool {
                        Some(tool) => self.tools_if_gone(tool, &e).await.map(|now| (tool, now)),
                        None => None,
                    };
                    return Err(match gone {
                        Some((tool, now)) => CallError::from(ToolError::from(no_such_tool(tool, &now))),
                        None => CallError { error: self.explain(&e).await.into(), is_lost: is_lost(&e) },
                    });
                }
            }
        }
        Err(ToolError::Failed(format!("it has no result after {MAX_ROUNDS} rounds of requests")).into())
    }

    /// Asks the person to visit the addresses that a server needs to have been visited before a call.
    async fn visit(&self, e: &rmcp::ErrorData, open: &OpenCall) -> Result<(), ToolError> {
        let needs = e.data.as_ref().and_then(|data| data.get("elicitations")).and_then(Json::as_array);
        let needs: Vec<ElicitRequestParams> =
            needs.into_iter().flatten().filter_map(|n| serde_json::from_value(n.clone()).ok()).collect();
        let failed = || ToolError::Failed(format!("the server refused: `{}`", clip(&e.message, 300)));
        if needs.is_empty() {
            return Err(failed());
        }
        for question in needs {
            let answer = open.elicit(&self.service.service().server, question).await;
            if answer.action != ElicitationAction::Accept {
                return Err(failed());
            }
        }
        Ok(())
    }

    /// Returns the server's current tools if it rejected a call because the tool is gone. The error code of
    /// such a rejection is that of any invalid parameter, so the server is asked for its tools.
    async fn tools_if_gone(&self, tool: &str, e: &ServiceError) -> Option<Vec<Tool>> {
        let ServiceError::McpError(e) = e else { return None };
        if !matches!(e.code, ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND) {
            return None;
        }
        let now = list(&self.service).await.ok()?;
        now.iter().all(|t| t.name != tool).then_some(now)
    }

    /// Closes the connection. Gives the process a moment to end by itself, if that is to be, and waits for
    /// its end.
    async fn close(mut self, politely: bool) {
        if politely {
            let _ = self.service.close_with_timeout(GRACE).await;
        }
        if let Some(process) = &mut self.process {
            let by_itself =
                async { politely && timeout(GRACE, process.ended.wait_for(Option::is_some)).await.is_ok() };
            if !by_itself.await {
                process.group.lock().unwrap_or_else(PoisonError::into_inner).kill();
                let _ = timeout(GRACE, process.ended.wait_for(Option::is_some)).await;
            }
        }
    }
}

/// Returns true if the connection to a server is lost.
fn is_lost(e: &ServiceError) -> bool {
    matches!(e, ServiceError::TransportClosed | ServiceError::TransportSend(_))
}

/// The mistake of declaring a tool that a server lacks.
fn no_such_tool(name: &str, tools: &[Tool]) -> ConfigError {
    let names: Vec<&str> = tools.iter().map(|t| &*t.name).collect();
    let help = match diagnostics::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", clip(&names.join(", "), 300)),
    };
    ConfigError::new("the server has no such tool").with_help(help)
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
}

/// The arguments of a tool that is only declared by name: whatever the record says that it was applied to.
fn arguments(call: &McpCall<'_>, tool: &Tool) -> Option<Map<String, Json>> {
    let ([param], [(_, Data::Record(fields))]) = (&call.decl.params[..], call.args) else { return None };
    let known = tool.input_schema.get("properties").is_some_and(|ps| ps.get(&*param.name).is_some());
    (param.ty == Type::Dyn && !known)
        .then(|| fields.iter().map(|(n, d)| (n.to_string(), d.to_json())).collect())
}

/// The arguments by the names of the parameters. One that is absent is left out, unless the server wants to
/// hear of it.
fn as_arguments(call: &McpCall<'_>, input: &Map<String, Json>) -> Map<String, Json> {
    let required = input.get("required").and_then(Json::as_array);
    let is_required = |n: &Name| required.is_some_and(|r| r.iter().any(|r| r.as_str() == Some(&**n)));
    let said = call.args.iter().filter(|(n, d)| *d != Data::Null || is_required(n));
    said.map(|(n, d)| (n.to_string(), d.to_json())).collect()
}

/// Arguments of a prompt, which are texts. One that is absent is left out.
fn as_prompt_arguments(args: &[(Name, Data)]) -> Map<String, Json> {
    let said = args.iter().filter(|(_, d)| *d != Data::Null);
    let text = |data: &Data| data.as_str().map_or_else(|| data.to_json().to_string(), String::from);
    said.map(|(n, d)| (n.to_string(), Json::String(text(d)))).collect()
}

/// A tool as its server describes it.
fn described(tool: &Tool) -> ServerTool {
    let description = tool.description.as_deref().unwrap_or_default().to_string();
    let input = Json::Object((*tool.input_schema).clone());
    let output = tool.output_schema.as_deref().map(|o| Json::Object(o.clone()));
    ServerTool::new(&tool.name, &description, input, output)
}

/// All tools of a server.
async fn list(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ServiceError> {
    let mut tools = Vec::new();
    let (mut cursor, mut bytes) = (None, 0usize);
    // Pages beyond the limit are treated as if the server did not have them.
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(params)).await?;
        bytes = bytes.saturating_add(serde_json::to_string(&page.tools).map_or(MAX_LIST, |text| text.len()));
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || bytes > MAX_LIST {
            break;
        }
    }
    Ok(tools)
}

/// Starts a server's process.
#[allow(clippy::type_complexity)] // Named once, taken apart at once.
fn start(
    words: &[String],
    env: &[String],
    hidden: &[String],
    most: usize,
) -> Result<(Process, tokio::process::ChildStdin, Bounded<tokio::process::ChildStdout>), ToolError> {
    let [program, args @ ..] = words else {
        return Err(ConfigError::new("`command` names no program").into());
    };
    let mut command = Command::new(program);
    command.args(args);
    process::withhold_secrets(&mut command, hidden, env);
    let (mut child, group) = process::spawn(command, Stdio::piped(), None, &clip(program, 80))?;
    let (Some(stdin), Some(stdout), stderr) = child.pipes() else {
        return Err("its standard input and output are not there".to_string().into());
    };
    let said = Arc::new(Mutex::new(Vec::new()));
    let too_long = Arc::new(AtomicBool::new(false));
    let (tell, ended) = watch::channel(None);
    let mut tasks = JoinSet::new();
    let group = Arc::new(Mutex::new(group));
    let (keeps, kills) = (said.clone(), group.clone());
    tasks.spawn(async move {
        let listening = async {
            if let Some(pipe) = stderr {
                listen(pipe, &keeps).await;
            }
        };
        let (how, ()) = tokio::join!(wait(&mut child, &kills), listening);
        let _ = tell.send(Some(how));
    });
    let stdout = Bounded { inner: stdout, line: 0, most, too_long: too_long.clone() };
    Ok((Process { group, ended, said, too_long, most, _tasks: tasks }, stdin, stdout))
}

/// Waits for a child and describes how it ended.
async fn wait(child: &mut process::Process, group: &Mutex<ProcessGroup>) -> String {
    let how = child.wait().await;
    // Its leftover processes end with it; otherwise the pipes might never close.
    group.lock().unwrap_or_else(PoisonError::into_inner).kill();
    how.map_or_else(|e| e.to_string(), |status| status.to_string())
}

/// Keeps the end of what is said.
async fn listen(mut pipe: impl AsyncRead + Unpin, said: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 4096];
    while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&chunk[..n]);
        if said.len() > 2 * STDERR_TAIL {
            let cut = said.len() - STDERR_TAIL;
            said.drain(..cut);
        }
    }
}

impl Process {
    /// A problem, with what the process said last; if the connection was lost, with how it ended.
    async fn explain(&self, why: String, lost: bool) -> String {
        if self.too_long.load(Ordering::Relaxed) {
            return self.with_last_words(format!("it sent a message of more than {} bytes", self.most));
        }
        if !lost {
            return self.with_last_words(why);
        }
        // A process that closed its output is about to end.
        let mut ended = self.ended.clone();
        let how = timeout(GRACE, ended.wait_for(Option::is_some)).await;
        let how = how.ok().and_then(Result::ok).and_then(|h| h.clone());
        self.with_last_words(how.map_or(why, |how| format!("the process ended ({how})")))
    }

    /// A problem, with what the process said last.
    fn with_last_words(&self, why: String) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&said).trim() {
            "" => why,
            text => {
                let tail = text.char_indices().rev().nth(499).map_or(text, |(i, _)| &text[i..]);
                format!("{why}; its output: `{}`", clip(tail, 500))
            }
        }
    }
}

/// Breaks off when a line is too long, instead of keeping it or waiting for its end.
struct Bounded<R> {
    inner: R,
    /// Bytes since the last line break.
    line: usize,
    most: usize,
    too_long: Arc<AtomicBool>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let new = &buf.filled()[before..];
        self.line = match new.iter().rposition(|b| *b == b'\n') {
            Some(at) => new.len() - at - 1,
            None => self.line + new.len(),
        };
        if self.line > self.most {
            self.too_long.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(std::io::Error::other("a line is too long")));
        }
        Poll::Ready(Ok(()))
    }
}

/// Explains why a server is not ready.
fn start_problem(e: &ClientInitializeError) -> String {
    match e {
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection before it was ready".into(),
        ClientInitializeError::TransportError { error, .. } => transport_problem(&*error.error),
        ClientInitializeError::JsonRpcError(e) => {
            format!("it refused the connection: `{}` (code {})", clip(&e.message, 300), e.code.0)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let theirs: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            format!("it speaks only the revisions {}", clip(&theirs.join(", "), 100))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => start_problem(fallback),
        _ => "its output is not MCP".into(),
    }
}

/// Returns true if the connection was lost before the server was ready.
fn lost_at_start(e: &ClientInitializeError) -> bool {
    match e {
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => lost_at_start(fallback),
        _ => false,
    }
}

/// Explains why a request has no result.
fn call_problem(e: &ServiceError) -> String {
    match e {
        ServiceError::McpError(e) => {
            format!("the server refused: `{}` (code {})", clip(&e.message, 300), e.code.0)
        }
        ServiceError::TransportSend(e) => transport_problem(&*e.error),
        ServiceError::TransportClosed => "the connection is closed".into(),
        ServiceError::Cancelled { reason } => match reason {
            Some(reason) => format!("the server gave up: `{}`", clip(reason, 300)),
            None => "the server gave up".into(),
        },
        _ => "the server's answer is none to the request".into(),
    }
}

fn transport_problem(e: &(dyn Error + Send + Sync + 'static)) -> String {
    match e.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(e)) => web::cause(e),
        Some(StreamableHttpError::HttpStatus(e)) => clip(&e.to_string(), 300),
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            "it requires a key, or another one (help: name the variable that holds it in `key_env`; with `oauth`, log in again with `entail tools --login`)".into()
        }
        _ => clip(&e.to_string(), 300),
    }
}
