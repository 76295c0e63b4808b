//! Tools: how a declared tool is carried out.

mod confined;
mod exec;
mod http;
mod python;
mod template;
#[cfg(feature = "wasm")]
mod wasm;

pub use python::{PythonSettings, SHIM as PYTHON_SHIM};
pub(crate) use runs::utc as utc_text;

use crate::elicit::Respondent;
use crate::mcp::{Connections, McpCall, McpServer, Pins, ServerOffer, ServerPart, ServerTool};
use crate::process::look_up;
use crate::provider::{BoxFuture, Work, script_in};
use crate::{ConfigError, ConfigErrorKind, Environment, Redactor};
use core_ir::{Data, LabelSpec, Name, Stated, ToolDecl, Type};
use diagnostics::clip_to as clip;
use python::{PythonTool, Workers};
use runs::{BUILTINS, Builtin, Script, as_text, json_result};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use template::Template;

/// Result of a tool, with the label that the tool states for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolAnswer {
    pub(crate) result: Result<Data, ToolError>,
    pub(crate) label: Option<Stated>,
    /// Label of what a person answered to questions of the tool's server, if there were any.
    pub(crate) person: Option<LabelSpec>,
}

impl From<Result<Data, ToolError>> for ToolAnswer {
    fn from(result: Result<Data, ToolError>) -> ToolAnswer {
        ToolAnswer { result, label: None, person: None }
    }
}

impl From<Result<Data, String>> for ToolAnswer {
    fn from(result: Result<Data, String>) -> ToolAnswer {
        result.map_err(ToolError::Failed).into()
    }
}

/// Circumstances of a call.
#[derive(Debug, Default)]
pub(crate) struct CallContext {
    /// The idempotency key, if the tool changes the world.
    pub(crate) key: Option<String>,
    /// Person who answers questions of the tool's server.
    pub(crate) person: Option<Arc<Respondent>>,
}

/// Reason why a tool gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolError {
    /// Failure of the call, which the program may handle.
    Failed(String),
    /// The call took longer than its own limit. The program may handle it, and tell it from other failures.
    Late(String),
    /// Mistake of configuration, found before the tool was called. It ends the run.
    Configuration(ConfigError),
}

impl ToolError {
    /// Changes the message.
    #[cfg(feature = "mcp")]
    pub(crate) fn map(self, change: impl Fn(String) -> String) -> ToolError {
        match self {
            ToolError::Failed(why) => ToolError::Failed(change(why)),
            ToolError::Late(why) => ToolError::Late(change(why)),
            ToolError::Configuration(e) => {
                ToolError::Configuration(ConfigError { message: change(e.message), ..e })
            }
        }
    }

    /// Problem and remedy in one line.
    pub(crate) fn one_line(self) -> String {
        match self {
            ToolError::Failed(why) | ToolError::Late(why) => why,
            ToolError::Configuration(e) => e.one_line(),
        }
    }

    pub(crate) fn redacted(self, redactor: &Redactor) -> ToolError {
        match self {
            ToolError::Failed(why) => ToolError::Failed(redactor.owned(why)),
            ToolError::Late(why) => ToolError::Late(redactor.owned(why)),
            ToolError::Configuration(e) => ToolError::Configuration(ConfigError {
                message: redactor.owned(e.message),
                help: e.help.map(|help| redactor.owned(help)),
                ..e
            }),
        }
    }
}

impl From<String> for ToolError {
    fn from(why: String) -> ToolError {
        ToolError::Failed(why)
    }
}

impl From<ConfigError> for ToolError {
    fn from(e: ConfigError) -> ToolError {
        ToolError::Configuration(e)
    }
}

/// Limits of one tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLimits {
    /// Time. A handler's own `timeout`, in seconds, replaces it.
    pub timeout: Duration,
    /// Bytes of the result.
    pub max_output: usize,
    /// Bytes of memory of each process. A handler's own `memory`, in MiB, replaces it. On Linux only.
    pub max_memory: u64,
}

impl Default for ToolLimits {
    /// A minute, 4 MiB, 4 GiB.
    fn default() -> ToolLimits {
        ToolLimits { timeout: Duration::from_secs(60), max_output: 4 << 20, max_memory: 4 << 30 }
    }
}

/// Tool implemented by the embedding program. Receives the arguments in the order of the parameters. Dropping
/// the future must cancel the call. The machine checks the result against the declared type.
///
/// It should not keep its thread to itself: computations and calls that block belong into
/// [`tokio::task::spawn_blocking`]. The time limits of a run hold even then, on a runtime of several threads,
/// but its cancellation may wait for the tool, and so do other runs on a runtime of one thread.
pub type CustomTool = Arc<dyn Fn(Vec<(Name, Data)>) -> BoxFuture<Result<Data, String>> + Send + Sync>;

/// Carries tools out: as the embedding program says, or else the configuration, or else the declaration.
///
/// A handler, in a declaration or in the configuration, is one of
///
/// - `{exec: [program, argument, …], env?, memory?, timeout?}`: a process, see below;
/// - `{http: {method, url, headers?}, timeout?}`: a request with `GET`, `POST`, `PUT`, `PATCH` or `DELETE`;
/// - `{mcp: [server, tool], timeout?}`: a tool of a server of [`Tools::with_servers`]; `{mcp: server}` if it
///   has the declared name;
/// - `{resource: [server, uri], timeout?}`: a resource of a server, whose URI has holes; `{resource: server}`
///   if the parameter `uri` is the URI;
/// - `{prompt: [server, name], timeout?}`: a prompt of a server; `{prompt: server}` as with `mcp`;
/// - `{wasm: file, function?, fuel?, memory?, timeout?}`: a function of a WebAssembly component, which can do
///   nothing but compute, within these limits of fuel and MiB of memory; only where the program was built
///   with the feature `wasm`;
/// - `{python: "tools.py:name", env?, memory?, timeout?}`: a function of Python, or a tool of a framework, in
///   a process that stays for the run;
/// - `{builtin: name}`: one of [`BUILTINS`]; those on files need `root`, and `http.fetch` needs `allow`.
///
/// A tool that changes the world gets an idempotency key, the same whenever a run asks the same: a process as
/// the variable `ENTAIL_IDEMPOTENCY_KEY`, a request as the header `Idempotency-Key`, an MCP server as
/// `entail/idempotencyKey` in `_meta`. A handler with `idempotent: true` says that the tool heeds it, so that
/// a run that was interrupted may call it again.
///
/// Arguments of processes (not the program), URLs and header values have holes `{parameter}`; braces that are
/// text are doubled. A process gets all arguments as one JSON object on its standard input and writes its
/// result as JSON to its standard output (any text, if the tool returns `Str`). It has no shell, a process
/// group of its own that is killed when the call ends in any way, and none of the variables whose names say
/// that they hold secrets (`…KEY`, `…TOKEN`, `…SECRET`, `…PASSWORD`) except those that its handler lists in
/// `env`. A hole is one argument, or a part of one; one that could be taken for an option should stand after
/// `--`.
/// A request other than `GET` and `DELETE` carries all arguments as its JSON body; with those two the
/// arguments that are in no hole become the query. In a URL holes stand after the host only, are
/// percent-encoded, and cannot be `.` or `..`.
#[derive(Clone)]
pub struct Tools {
    // Each run has a clone.
    shared: Arc<Shared>,
    /// Names of variables that processes do not get.
    hidden: Arc<[String]>,
    mcp: Arc<Connections>,
    python: Arc<Workers>,
}

/// State shared by all runs.
#[derive(Clone)]
struct Shared {
    custom: BTreeMap<Name, CustomTool>,
    configured: BTreeMap<Name, Data>,
    /// Results of tools that are not carried out.
    scripted: Option<Arc<Mutex<Script>>>,
    limits: ToolLimits,
    redactor: Redactor,
    /// True if only functions and built-in tools that compute are carried out.
    computing_only: bool,
    /// Environment with the keys of HTTP tools.
    environment: Environment,
    web: Arc<http::Clients>,
    #[cfg(feature = "wasm")]
    wasm: Arc<wasm::Components>,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tools")
            .field("custom", &self.shared.custom.keys())
            .field("configured", &self.shared.configured)
            .field("limits", &self.shared.limits)
            .finish_non_exhaustive()
    }
}

/// Executor of a tool call, ready for use.
pub(crate) struct Prepared(Carrier);

enum Carrier {
    /// A function of the embedding program.
    Custom(CustomTool),
    /// Results that are written down.
    Scripted(Arc<Mutex<Script>>),
    /// Handler from the declaration or the configuration.
    Handler(Handler),
}

/// A handler, understood.
#[derive(Debug)]
enum Handler {
    Confined(confined::Confined),
    Exec(exec::Exec),
    Http(http::HttpTool),
    Builtin(Builtin),
    Python(PythonTool),
    Mcp(Mcp),
    #[cfg(feature = "wasm")]
    Wasm(wasm::Wasm),
}

/// A tool of an MCP server.
#[derive(Debug)]
struct Mcp {
    server: String,
    part: McpPart,
    timeout: Option<Duration>,
}

/// Part of a server that a tool uses, before its arguments are known.
#[derive(Debug)]
enum McpPart {
    Tool(String),
    Prompt(String),
    /// The URI has the arguments in its holes.
    Resource(Template),
    /// The parameter with this index is the URI.
    ResourceOf(usize),
}

impl McpPart {
    /// The part for these arguments.
    fn with(&self, args: &[(Name, Data)]) -> Result<ServerPart, String> {
        Ok(match self {
            McpPart::Tool(name) => ServerPart::Tool(name.clone()),
            McpPart::Prompt(name) => ServerPart::Prompt(name.clone()),
            McpPart::Resource(uri) => ServerPart::Resource(uri.fill(args, |part| match &*part {
                "." | ".." => Err("an argument of a URI can't be `.` or `..`".into()),
                part => Ok(runs::percent_encoded(part)),
            })?),
            McpPart::ResourceOf(index) => match args.get(*index).and_then(|(_, uri)| uri.as_str()) {
                Some(uri) => ServerPart::Resource(uri.into()),
                None => return Err("its `uri` is not a text".into()),
            },
        })
    }
}

impl Tools {
    /// Only what declarations say. The environment tells what is secret.
    pub fn new(environment: &Environment) -> Tools {
        let shared = Shared {
            custom: BTreeMap::new(),
            configured: BTreeMap::new(),
            scripted: None,
            limits: ToolLimits::default(),
            redactor: Redactor::new(environment.secrets().map(|(_, s)| s)),
            computing_only: false,
            environment: environment.clone(),
            web: Arc::default(),
            #[cfg(feature = "wasm")]
            wasm: Arc::default(),
        };
        Tools {
            shared: Arc::new(shared),
            hidden: environment.secrets().map(|(name, _)| name.to_string()).collect(),
            mcp: Arc::default(),
            python: Arc::default(),
        }
    }

    /// With settings for functions of Python (`[python]` of `entail.toml`).
    #[must_use]
    pub fn with_python(mut self, settings: PythonSettings) -> Tools {
        self.python = Arc::new(Workers::new(Arc::new(settings)));
        self
    }

    /// With consent to run the functions of compiled projects as the tools that they are.
    #[must_use]
    pub fn allowing_python(self) -> Tools {
        let settings = PythonSettings { tools: true, ..(*self.python.settings).clone() };
        self.with_python(settings)
    }

    /// With these MCP servers, by name (`[mcp.NAME]` of `entail.toml`). None is started before its first tool
    /// is called. The environment has their keys.
    #[must_use]
    pub fn with_servers(mut self, servers: BTreeMap<String, McpServer>, environment: &Environment) -> Tools {
        self.mcp = Arc::new(Connections::new(servers, environment));
        let keys = self.mcp.keys().cloned();
        let redactor = Redactor::new(environment.secrets().map(|(_, s)| s).chain(keys));
        Arc::make_mut(&mut self.shared).redactor = redactor;
        self
    }

    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: ToolLimits) -> Tools {
        Arc::make_mut(&mut self.shared).limits = limits;
        self
    }

    /// Held to what was approved of MCP servers (`entail.lock`): a tool that has changed since, or is new, is
    /// refused.
    #[must_use]
    pub fn with_pins(mut self, pins: Pins) -> Tools {
        self.mcp = Arc::new(self.mcp.with_pins(pins));
        self
    }

    /// Looks for mistakes in the settings of an MCP server, without starting it.
    ///
    /// # Errors
    /// It is not declared, or can't be used.
    pub fn check_server(&self, server: &str) -> Result<(), ConfigError> {
        self.mcp.check(server)
    }

    /// Runs that use clones of these tools share their MCP servers: one process or session of each for all of
    /// them, started for the first call and anew for the next call after one that ended, broke off or did not
    /// answer in time. A server whose settings say `per_run` is not shared.
    ///
    /// Shared servers live until [`Tools::close_servers`], or the last clone is dropped.
    #[must_use]
    pub fn sharing_servers(mut self) -> Tools {
        self.mcp = Arc::new(self.mcp.sharing());
        self
    }

    /// Ends the MCP servers that runs share.
    pub async fn close_servers(&self) {
        self.mcp.close_shared().await;
    }

    /// Lets a person authorize this program for an MCP server with `oauth`. `show` gets the address that the
    /// person has to open. The result is the file with the tokens.
    ///
    /// # Errors
    /// It is not declared, has no `oauth`, or was not authorized; in words for people.
    pub async fn login(
        &self,
        server: &str,
        show: &mut (dyn FnMut(&str) + Send),
    ) -> Result<std::path::PathBuf, String> {
        self.mcp.login(server, show).await
    }

    /// The tools of an MCP server, as it describes them now.
    ///
    /// # Errors
    /// It is not declared, or can't be reached; in words for people.
    pub async fn discover(&self, server: &str) -> Result<Vec<ServerTool>, String> {
        self.offer(server).await.map(|offer| offer.tools)
    }

    /// An MCP server with its tools, as it describes them now.
    ///
    /// # Errors
    /// It is not declared, or can't be reached; in words for people.
    pub async fn offer(&self, server: &str) -> Result<ServerOffer, String> {
        self.mcp.list(server, &self.shared.limits, &self.hidden).await
    }

    /// With a handler for a tool, which replaces that of its declaration (`[handlers]` of `entail.toml`).
    #[must_use]
    pub fn with_handler(mut self, tool: impl Into<Name>, handler: Data) -> Tools {
        Arc::make_mut(&mut self.shared).configured.insert(tool.into(), handler);
        self
    }

    /// With a function for a tool, which replaces all other handlers.
    #[must_use]
    pub fn with_custom(mut self, tool: impl Into<Name>, act: CustomTool) -> Tools {
        Arc::make_mut(&mut self.shared).custom.insert(tool.into(), act);
        self
    }

    /// With the results of a script in place of the tools that it names.
    ///
    /// # Errors
    /// The errors of [`Scripted::load`](crate::Scripted::load).
    pub fn with_script(mut self, file: &Path) -> Result<Tools, ConfigError> {
        let script = script_in(file)?;
        let tools: Vec<String> = script.tools().into_iter().map(String::from).collect();
        Arc::make_mut(&mut self.shared).scripted = (!tools.is_empty()).then(|| Arc::new(Mutex::new(script)));
        Ok(self)
    }

    /// For tests: functions of the embedding program and built-in tools that compute are carried out, and
    /// nothing else.
    #[must_use]
    pub fn computing_only(mut self) -> Tools {
        Arc::make_mut(&mut self.shared).computing_only = true;
        self
    }

    /// Looks for mistakes in a tool's handler before any run. Nothing is started or asked; programs and files
    /// are looked for.
    ///
    /// # Errors
    /// There is no handler, it can't be used, or this machine lacks what it needs.
    pub fn check(&self, tool: &ToolDecl) -> Result<(), ConfigError> {
        // Nothing is called.
        if tool.confirms {
            return Ok(());
        }
        let name = &tool.name;
        let lost = |file: &Path| {
            let file = file.display();
            ConfigError::new(format!("the handler of tool `{name}` can't be used: file `{file}` not found"))
        };
        let needs = |program: &OsStr| look_up(program).map(|_| ()).map_err(|e| uncallable(name, e));
        match self.prepare(tool)?.0 {
            Carrier::Handler(Handler::Exec(exec)) => needs(exec.program().as_ref()),
            Carrier::Handler(Handler::Mcp(mcp)) => match self.mcp.program(&mcp.server) {
                Some(program) => needs(program.as_ref()),
                None => Ok(()),
            },
            Carrier::Handler(Handler::Python(function)) => match function.file() {
                Some(file) if !file.is_file() => Err(lost(file)),
                _ => {
                    function.verify(&self.python.settings)?;
                    needs(function.interpreter(&self.python.settings).as_os_str())
                }
            },
            Carrier::Handler(Handler::Confined(confined)) => {
                confined.check().map_err(|e| uncallable(name, e))
            }
            #[cfg(feature = "wasm")]
            Carrier::Handler(Handler::Wasm(wasm)) if !wasm.file().is_file() => Err(lost(wasm.file())),
            _ => Ok(()),
        }
    }

    /// For one run: with servers of its own, and with further variables that processes do not get.
    #[must_use]
    pub(crate) fn for_run<'a>(mut self, hidden: impl IntoIterator<Item = &'a str>) -> Tools {
        let mut more = hidden.into_iter().map(String::from).peekable();
        if more.peek().is_some() {
            self.hidden = self.hidden.iter().cloned().chain(more).collect();
        }
        if !self.mcp.is_empty() {
            self.mcp = Arc::new(self.mcp.afresh());
        }
        self.python = Arc::new(Workers::new(self.python.settings.clone()));
        self
    }

    /// Ends what was started for the run: politely, if it ended by itself.
    pub(crate) async fn close(&self, politely: bool) {
        tokio::join!(self.mcp.close(politely), self.python.close(politely));
        crate::process::all_ended().await;
    }

    /// Returns true if the handler of a tool recognizes a repeated call by its idempotency key.
    pub(crate) fn is_idempotent(&self, tool: &ToolDecl) -> bool {
        let handler = self.shared.configured.get(tool.called()).or(tool.handler.as_ref());
        !self.is_custom(tool) && handler.is_some_and(|h| h.field("idempotent") == Some(&Data::Bool(true)))
    }

    /// Calls a tool that returns at once, as built-in ones do. Returns `None` for others, which are not
    /// started.
    pub fn at_once(&self, tool: &ToolDecl, args: Vec<(Name, Data)>) -> Option<Result<Data, String>> {
        let prepared = match self.prepare(tool) {
            Ok(prepared) => prepared,
            Err(e) => return Some(Err(e.one_line())),
        };
        match self.call(prepared, tool, args, CallContext::default()) {
            Work::Now(answer) => Some(answer.result.map_err(ToolError::one_line)),
            Work::Later(_) => None,
        }
    }

    /// Returns true if a tool is a function of the embedding program.
    pub(crate) fn is_custom(&self, tool: &ToolDecl) -> bool {
        self.shared.custom.contains_key(tool.called())
    }

    /// Returns true if a tool is called on an MCP server.
    pub(crate) fn is_of_server(&self, tool: &ToolDecl) -> bool {
        let handler = self.shared.configured.get(tool.called()).or(tool.handler.as_ref());
        !self.is_custom(tool)
            && handler
                .is_some_and(|h| ["mcp", "resource", "prompt"].iter().any(|kind| h.field(kind).is_some()))
    }

    /// The function that a tool is, if it is a built-in one.
    pub(crate) fn builtin(&self, tool: &ToolDecl) -> Option<Builtin> {
        if self.is_custom(tool) || self.scripted(tool).is_some() {
            return None;
        }
        match self.handler(tool) {
            Ok(Handler::Builtin(builtin)) => Some(builtin),
            _ => None,
        }
    }

    /// The script, if it has results of a tool.
    fn scripted(&self, tool: &ToolDecl) -> Option<Arc<Mutex<Script>>> {
        let script = self.shared.scripted.as_ref()?;
        let has_results = lock(script).tools().contains(&&**tool.called());
        has_results.then(|| script.clone())
    }

    /// Returns the executor of a tool.
    ///
    /// # Errors
    /// The tool has no handler, or the handler can't be used.
    pub(crate) fn prepare(&self, tool: &ToolDecl) -> Result<Prepared, ConfigError> {
        match (self.scripted(tool), self.shared.custom.get(tool.called())) {
            (Some(script), _) => Ok(Prepared(Carrier::Scripted(script))),
            (None, Some(act)) => Ok(Prepared(Carrier::Custom(act.clone()))),
            (None, None) => self.handler(tool).map(|handler| Prepared(Carrier::Handler(handler))),
        }
    }

    /// Calls a tool.
    pub(crate) fn call(
        &self,
        prepared: Prepared,
        tool: &ToolDecl,
        args: Vec<(Name, Data)>,
        context: CallContext,
    ) -> Work<ToolAnswer> {
        let CallContext { key, person } = context;
        let handler = match prepared.0 {
            // Called where it is polled, so that one that blocks or panics at once does so there.
            Carrier::Custom(act) => return Work::Later(Box::pin(async move { act(args).await.into() })),
            Carrier::Scripted(script) => {
                let result = lock(&script).result(tool.called(), &tool.result);
                // It was prepared because the script has results of it.
                return Work::Now(
                    result.unwrap_or_else(|| Err("the script has no result of it".into())).into(),
                );
            }
            Carrier::Handler(handler) => handler,
        };
        let redactor = self.shared.redactor.clone();
        let (name, result) = (tool.name.clone(), tool.result.clone());
        let told = move |e: ToolError| match e.redacted(&redactor) {
            ToolError::Configuration(e) => uncallable(&name, e).into(),
            failed => failed,
        };
        match handler {
            Handler::Builtin(b) => Work::Now(b.call(&args, seconds_now()).into()),
            Handler::Confined(confined) => {
                let (limits, web) = (self.shared.limits.clone(), self.shared.web.clone());
                Work::Later(Box::pin(async move {
                    let result = confined.call(args, limits, web).await;
                    result.map_err(told).into()
                }))
            }
            Handler::Exec(exec) => {
                let (limits, hidden) = (self.shared.limits.clone(), self.hidden.clone());
                Work::Later(Box::pin(async move {
                    let result = exec.call(&args, &result, &limits, &hidden, key).await;
                    result.map_err(told).into()
                }))
            }
            Handler::Http(http) => {
                let (limits, web) = (self.shared.limits.clone(), self.shared.web.clone());
                Work::Later(Box::pin(async move {
                    let result = http.call(&args, &result, &limits, &web, key).await;
                    result.map_err(told).into()
                }))
            }
            #[cfg(feature = "wasm")]
            Handler::Wasm(wasm) => {
                let (limits, components, decl) =
                    (self.shared.limits.clone(), self.shared.wasm.clone(), Arc::new(tool.clone()));
                Work::Later(Box::pin(async move {
                    let result = wasm.call(decl, args, limits, components).await;
                    result.map_err(told).into()
                }))
            }
            Handler::Python(function) => {
                let (limits, hidden, workers) =
                    (self.shared.limits.clone(), self.hidden.clone(), self.python.clone());
                Work::Later(Box::pin(async move {
                    let result = function.call(&workers, &args, &result, &limits, &hidden, key).await;
                    result.map_err(told).into()
                }))
            }
            Handler::Mcp(mcp) => {
                let (limits, hidden, connections) =
                    (self.shared.limits.clone(), self.hidden.clone(), self.mcp.clone());
                let decl = tool.clone();
                let part = match mcp.part.with(&args) {
                    Ok(part) => part,
                    Err(why) => return Work::Now(Err(why).into()),
                };
                Work::Later(Box::pin(async move {
                    let call = McpCall {
                        server: &mcp.server,
                        part: &part,
                        decl: &decl,
                        args: &args,
                        limit: mcp.timeout.unwrap_or(limits.timeout),
                        limits: &limits,
                        hidden: &hidden,
                        key,
                        person,
                    };
                    let answer = connections.call(call).await;
                    ToolAnswer { result: answer.result.map_err(told), ..answer }
                }))
            }
        }
    }

    fn handler(&self, tool: &ToolDecl) -> Result<Handler, ConfigError> {
        let handler = self.declared(tool);
        let computes = match &handler {
            Ok(handler) => matches!(handler, Handler::Builtin(_)),
            Err(e) => e.kind == ConfigErrorKind::Invalid,
        };
        if self.shared.computing_only && !computes {
            let name = &tool.name;
            let error = ConfigError::new(format!("the test calls the tool `{name}`, which has no mock"));
            let help =
                format!("mock it, as in `mock {name} => …;`, or run with `--live` to call it for real");
            return Err(error.with_help(help).of_kind(ConfigErrorKind::NotMocked));
        }
        handler
    }

    /// The handler as it is declared or configured.
    fn declared(&self, tool: &ToolDecl) -> Result<Handler, ConfigError> {
        let name = tool.called();
        let configured = self.shared.configured.get(name);
        let Some(data) = configured.or(tool.handler.as_ref()) else {
            let is_bare = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
            // Names of other frameworks may have anything in them. A string of JSON is one of TOML.
            let key = if is_bare { name.to_string() } else { serde_json::Value::from(&**name).to_string() };
            let given: Vec<String> = self.shared.custom.keys().map(|n| format!("`{n}`")).collect();
            let help = match given.is_empty() {
                false => format!(
                    "register a function of this name; there is one for {}",
                    diagnostics::clip_to(&given.join(", "), 200)
                ),
                true => format!(
                    "add a body such as `{{ exec \"program\" \"{{argument}}\" }}`, or add \
                     `{key} = {{ exec = [\"program\"] }}` to `[handlers]` in `entail.toml`"
                ),
            };
            let error = ConfigError::new(format!("no handler for tool `{name}`"));
            return Err(error.with_help(help).of_kind(ConfigErrorKind::NoHandler));
        };
        let bad =
            |why: String| ConfigError::new(format!("the handler of tool `{name}` can't be used: {why}"));
        let unfit = |e: ConfigError| {
            let message = format!("the handler of tool `{name}` can't be used: {}", e.message);
            ConfigError { message, ..e }
        };
        let fields = match data {
            Data::Record(fields) => fields,
            other => return Err(bad(format!("it is {}, not a record", other.kind()))),
        };
        let timeout = match data.field("timeout") {
            None => None,
            Some(Data::Num(n)) => match Duration::try_from_secs_f64(n.to_f64()) {
                Ok(d) if d > Duration::ZERO => Some(d),
                _ => return Err(bad("`timeout` is not a positive number of seconds".into())),
            },
            Some(other) => {
                return Err(bad(format!("`timeout` is {}, not a number of seconds", other.kind())));
            }
        };
        if !matches!(data.field("idempotent"), None | Some(Data::Bool(_))) {
            return Err(bad("`idempotent` is neither true nor false".into()));
        }
        let kinds: Vec<&Name> = fields
            .iter()
            .map(|(n, _)| n)
            .filter(|n| {
                !matches!(
                    &***n,
                    "timeout" | "env" | "memory" | "idempotent" | "root" | "allow" | "function" | "fuel"
                )
            })
            .collect();
        let [kind] = kinds[..] else {
            return Err(bad(
                "it needs exactly one of `exec`, `http`, `mcp`, `resource`, `prompt`, `python`, `wasm` and `builtin`".into()
            ));
        };
        let params: Vec<&str> = tool.params.iter().map(|p| &*p.name).collect();
        match (&**kind, data.field(kind)) {
            (other, _)
                if other != "wasm" && (data.field("function").is_some() || data.field("fuel").is_some()) =>
            {
                Err(bad("`function` and `fuel` belong to `wasm`".into()))
            }
            ("exec", Some(words)) => {
                let (env, memory) = (names_in(data).map_err(bad)?, memory_in(data).map_err(bad)?);
                exec::Exec::read(words, &params, timeout, env, memory).map(Handler::Exec).map_err(bad)
            }
            ("wasm", Some(_))
                if data.field("env").is_some()
                    || data.field("root").is_some()
                    || data.field("allow").is_some() =>
            {
                Err(bad("a component gets neither `env` nor `root` nor `allow`".into()))
            }
            #[cfg(feature = "wasm")]
            ("wasm", Some(file)) => {
                let (function, fuel, memory) =
                    (data.field("function"), data.field("fuel"), data.field("memory"));
                let wasm = wasm::Wasm::read(file, name, function, fuel, memory, timeout);
                wasm.map(Handler::Wasm).map_err(bad)
            }
            #[cfg(not(feature = "wasm"))]
            ("wasm", Some(_)) => {
                Err(bad("this program was built without WebAssembly (help: build it with `--features wasm`)"
                    .into()))
            }
            ("python", Some(words)) => {
                let (env, memory) = (names_in(data).map_err(bad)?, memory_in(data).map_err(bad)?);
                let function = PythonTool::read(words, env, timeout, memory).map_err(bad)?;
                if configured.is_some() {
                    return Ok(Handler::Python(function.within(&self.python.settings.dir)));
                }
                if !self.python.settings.tools && !function.is_stated {
                    let error = ConfigError::new(format!(
                        "the tool `{name}` is {}, which runs only with consent",
                        function.shown()
                    ));
                    return Err(error
                        .with_help("`--python-tools`, or `tools = true` under `[python]` in `entail.toml`")
                        .of_kind(ConfigErrorKind::NoConsent));
                }
                Ok(Handler::Python(function))
            }
            _ if data.field("memory").is_some() => {
                Err(bad("`memory` belongs to `exec`, `python` and `wasm`".into()))
            }
            (other, _)
                if other != "builtin" && (data.field("root").is_some() || data.field("allow").is_some()) =>
            {
                Err(bad("`root` and `allow` belong to `builtin`".into()))
            }
            _ if data.field("env").is_some() => Err(bad("`env` belongs to `exec` and `python`".into())),
            ("http", Some(about)) => {
                // A program does not choose which of our keys goes where.
                let keys = configured.map(|_| &self.shared.environment);
                http::HttpTool::read(about, &params, timeout, keys).map(Handler::Http).map_err(unfit)
            }
            (kind @ ("mcp" | "resource" | "prompt"), Some(about)) => {
                let (server, part) = match (kind, about) {
                    ("resource", Data::Str(server)) => {
                        let index = params.iter().position(|p| *p == "uri");
                        let index = index.ok_or_else(|| {
                            bad("the tool has no parameter `uri`; name the resource, as in \
                                 `[\"server\", \"file:///notes/{name}\"]`"
                                .into())
                        })?;
                        (&**server, McpPart::ResourceOf(index))
                    }
                    _ => {
                        let (server, of) = mcp_names(kind, about, name).map_err(bad)?;
                        let part = match kind {
                            "mcp" => McpPart::Tool(of.into()),
                            "prompt" => McpPart::Prompt(of.into()),
                            _ => {
                                let uri = Template::read(of, &params).map_err(bad)?;
                                // Data must not choose what kind of thing is read.
                                if !uri.before_holes().contains(':') {
                                    return Err(bad(
                                        "the scheme of its URI is missing or depends on an argument".into(),
                                    ));
                                }
                                McpPart::Resource(uri)
                            }
                        };
                        (server, part)
                    }
                };
                self.mcp.check(server).map_err(|e| {
                    let message = format!("no handler for tool `{name}`: {}", e.message);
                    ConfigError { message, ..e }
                })?;
                Ok(Handler::Mcp(Mcp { server: server.to_string(), part, timeout }))
            }
            ("builtin", Some(Data::Str(which))) => {
                if let Some(confined) = confined::Confined::read(which, data, timeout) {
                    return confined.map(Handler::Confined).map_err(bad);
                }
                builtin(which).map(Handler::Builtin).map_err(bad)
            }
            ("builtin", _) => Err(bad("`builtin` is not a string".into())),
            (other, _) => Err(bad(format!(
                "`{}` is not one of `exec`, `http`, `mcp`, `resource`, `prompt`, `python`, `wasm` and `builtin`",
                clip(other, 40)
            ))),
        }
    }
}

/// A mistake of configuration, with the tool that can't be called because of it.
fn uncallable(tool: &str, e: ConfigError) -> ConfigError {
    ConfigError { message: format!("the tool `{tool}` can't be called: {}", e.message), ..e }
}

/// `env` of a handler: the variables that it gets although they hold secrets.
fn names_in(handler: &Data) -> Result<Vec<String>, String> {
    match handler.field("env") {
        None => Ok(Vec::new()),
        Some(Data::List(names)) => {
            let names = names.iter().map(|n| n.as_str().map(String::from));
            names.collect::<Option<_>>().ok_or_else(|| "`env` has an item that is not a string".into())
        }
        Some(other) => Err(format!("`env` is {}, not a list of names", other.kind())),
    }
}

/// `memory` of a handler, in bytes.
fn memory_in(handler: &Data) -> Result<Option<u64>, String> {
    match handler.field("memory") {
        None => Ok(None),
        Some(Data::Num(n)) => {
            let mib = n.to_i64().and_then(|n| u64::try_from(n).ok()).filter(|n| (1..1 << 40).contains(n));
            let mib = mib.ok_or("`memory` is not a positive whole number of MiB")?;
            Ok(Some(mib << 20))
        }
        Some(other) => Err(format!("`memory` is {}, not a number of MiB", other.kind())),
    }
}

/// Server and tool of `[server, tool]`, `{server, tool}` or, for a tool of the declared name, the server
/// alone; of a resource or a prompt likewise.
fn mcp_names<'a>(kind: &str, about: &'a Data, declared: &'a str) -> Result<(&'a str, &'a str), String> {
    let names = match about {
        Data::Str(server) => Some((&**server, declared)),
        Data::List(words) => match words.iter().map(Data::as_str).collect::<Option<Vec<_>>>().as_deref() {
            Some([server, tool]) => Some((*server, *tool)),
            _ => None,
        },
        Data::Record(fields) if kind == "mcp" && fields.len() == 2 => {
            let text = |name: &str| about.field(name).and_then(Data::as_str);
            text("server").zip(text("tool"))
        }
        _ => None,
    };
    names.ok_or_else(|| match kind {
        "resource" => "`resource` is not a list of a server and a URI".into(),
        "prompt" => "`prompt` is not a list of a server and a prompt".into(),
        _ => "`mcp` is not a list of a server and a tool".into(),
    })
}

/// The arguments as the JSON object that tools get.
fn as_json(args: &[(Name, Data)]) -> Json {
    Json::Object(args.iter().map(|(n, d)| (n.to_string(), d.to_json())).collect())
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    // A panic while the lock was held can't leave an entry half used.
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The built-in tool of a name.
fn builtin(name: &str) -> Result<Builtin, String> {
    Builtin::named(name).ok_or_else(|| {
        let names: Vec<&str> = BUILTINS.iter().chain(confined::CONFINED).map(|(n, _)| *n).collect();
        format!(
            "`{}` is not a built-in tool; expected one of `{}`",
            diagnostics::clip_to(name, 40),
            names.join("`, `")
        )
    })
}

/// The time as whole seconds since the beginning of 1970.
pub(crate) fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Converts the output of a tool to data of the declared type.
fn result(bytes: &[u8], ty: &Type) -> Result<Data, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err("its output is not valid UTF-8".into());
    };
    let json = serde_json::from_str::<Json>(text);
    if matches!(ty, Type::Str) {
        return Ok(match json {
            Ok(Json::String(s)) => Data::str(s),
            _ => Data::str(text.strip_suffix('\n').map_or(text, |t| t.strip_suffix('\r').unwrap_or(t))),
        });
    }
    match json {
        Ok(json) => ty.read(&json).map_err(|e| format!("its output: {e}")),
        Err(_) if text.trim().is_empty() && matches!(ty, Type::Null | Type::Option(_)) => Ok(Data::Null),
        Err(_) if text.trim().is_empty() => {
            Err(format!("it wrote nothing where JSON of type {ty} is expected"))
        }
        Err(e) => Err(format!("its output is not JSON ({e}): `{}`", clip(text, 300))),
    }
}
