//! Tools of MCP servers: real server processes and a real HTTP server, made with the official SDK, and
//! servers that misbehave.
#![cfg(all(unix, feature = "mcp"))]

use crate::support::program::{AT, call, caught, decl, machine, par};
use core_ir::{Data, EffectClass, LabelSpec, LatticeKind, Name, Num, Principals, Term, ToolDecl, Type};
use machine::{Config, ErrorCode, Machine};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam, ContentBlock,
    ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use runtime::{
    CancellationToken, Environment, Handlers, Limits, McpServer, Models, Pins, Scripted, ServerTool,
    ToolLimits, Tools,
};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

/// A server with a tool for each thing to test.
#[derive(Clone, Default)]
pub(crate) struct TestServer {
    /// Appends a line for each thing that happens.
    log: Option<String>,
    /// True if its list of tools has no end.
    endless: bool,
    /// True if one tool is only in its first list.
    fickle: bool,
    lists: Arc<std::sync::atomic::AtomicUsize>,
}

impl TestServer {
    fn note(&self, line: &str) {
        use std::io::Write;
        if let Some(path) = &self.log {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "{line}").unwrap();
        }
    }
}

impl ServerHandler for TestServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let text =
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let add = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"},
            "note": {"type": "string"}}, "required": ["a", "b"]});
        let tool = |name: &'static str, schema: &serde_json::Value| {
            Tool::new(name, "for tests", Arc::new(schema.as_object().unwrap().clone()))
        };
        if self.endless {
            self.note("page");
            let large = "x".repeat(3 << 20);
            let tools = vec![tool("echo", &text).with_title(large)];
            return Ok(ListToolsResult {
                next_cursor: Some("more".into()),
                ..ListToolsResult::with_all_items(tools)
            });
        }
        if self.fickle {
            let first = self.lists.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            let names = ["picky", "lost"].into_iter().take(if first { 2 } else { 1 });
            return Ok(ListToolsResult::with_all_items(names.map(|name| tool(name, &text)).collect()));
        }
        Ok(ListToolsResult::with_all_items(vec![
            tool("add", &add),
            tool("echo", &text),
            tool("fail", &none),
            tool("hang", &none),
            tool("exit", &none),
            tool("variable", &text),
            tool("process", &none),
            tool("flood", &none),
            tool("labeled", &text),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = serde_json::Value::Object(request.arguments.unwrap_or_default());
        self.note(&format!("{} {args}", request.name));
        let text = |t: String| Ok(CallToolResult::success(vec![ContentBlock::text(t)]).into());
        match &*request.name {
            "add" => {
                let sum = args["a"].as_i64().unwrap() + args["b"].as_i64().unwrap();
                Ok(CallToolResult::structured(json!({ "sum": sum })).into())
            }
            "echo" => text(args["text"].as_str().unwrap().into()),
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("no such luck")]).into()),
            "hang" => {
                context.ct.cancelled().await;
                self.note("gave up");
                Err(ErrorData::internal_error("cancelled", None))
            }
            "exit" => {
                #[allow(clippy::print_stderr)] // A server's log.
                {
                    eprintln!("out of ink, {KEY}");
                }
                std::process::exit(7)
            }
            "variable" => text(std::env::var(args["text"].as_str().unwrap()).unwrap_or_default()),
            "process" => text(std::process::id().to_string()),
            "flood" => text("x".repeat(1 << 20)),
            // The text is what it says of its own answer.
            "labeled" => {
                let ifc: serde_json::Value = serde_json::from_str(args["text"].as_str().unwrap()).unwrap();
                let meta = MetaObject(json!({ "ifc": ifc }).as_object().unwrap().clone());
                let said = vec![ContentBlock::text("MALLORY")];
                Ok(CallToolResult::success(said).with_meta(Some(meta)).into())
            }
            "picky" => Err(ErrorData::invalid_params("not this text", None)),
            _ => Err(ErrorData::invalid_params("unknown tool", None)),
        }
    }

    async fn on_cancelled(&self, _: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        self.note("cancelled");
    }
}

/// The server as a process: this program, told to run one test only, which serves.
fn process(log: Option<&str>) -> McpServer {
    process_of("mcp::serves_when_told_to", log)
}

/// The process of another test that serves.
pub(crate) fn process_of(test: &str, log: Option<&str>) -> McpServer {
    let me = std::env::current_exe().unwrap().to_str().unwrap().to_string();
    let serve = ["--exact", test, "--ignored", "--nocapture", "--test-threads=2"];
    let env = [format!("MCP_TEST_LOG={}", log.unwrap_or(""))];
    let command = ["env".to_string()].into_iter().chain(env).chain([me]).chain(serve.map(String::from));
    McpServer { command: Some(command.collect()), ..McpServer::default() }
}

/// Not a test: the process above. What the test harness itself writes to standard output is no message;
/// clients skip it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore]
async fn serves_when_told_to() {
    let Ok(log) = std::env::var("MCP_TEST_LOG") else { return };
    let endless = log.ends_with("endless");
    let fickle = log.ends_with("fickle");
    let server =
        TestServer { log: (!log.is_empty()).then_some(log), endless, fickle, ..TestServer::default() };
    server.note("started");
    let service = server.clone().serve(rmcp::transport::stdio()).await.unwrap();
    let _ = service.waiting().await;
    server.note("ended");
}

fn tools(servers: impl IntoIterator<Item = (&'static str, McpServer)>) -> Tools {
    let env = Environment::new([("PLANTED_KEY", KEY)]);
    Tools::new(&env).with_servers(servers.into_iter().map(|(n, s)| (n.to_string(), s)).collect(), &env)
}

pub(crate) fn one(server: McpServer) -> Tools {
    tools([("s", server)])
}

pub(crate) fn mcp(tool: &str) -> Data {
    Data::record([("mcp".into(), Data::list([Data::str("s"), Data::str(tool)]))])
}

pub(crate) fn tool(name: &str, params: &[(&str, Type)], result: Type) -> ToolDecl {
    decl(name, params, result, Some(mcp(name)))
}

pub(crate) fn handlers(tools: Tools) -> Handlers {
    Handlers { tools, ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap()))) }
}

async fn run(tools: Tools, tool: ToolDecl, args: Vec<(Name, Data)>) -> Result<Data, String> {
    let m = machine(|b| call(b, tool, args));
    let mut events = Vec::new();
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers(tools), &limits, &cancel, &mut |e| events.push(e)).await;
    assert!(!format!("{report:?} {events:?}").contains("planted"), "{report:?} {events:?}");
    match report.result {
        Ok(value) => Ok(value.data().unwrap()),
        Err(f) => {
            // A server that is late is told from one that fails by the code.
            let is_late = f.message.contains("no result within ");
            assert_eq!(f.code == ErrorCode::ToolTimeout, is_late, "{f:?}");
            // What is before it names the tool.
            let before = match f.code {
                ErrorCode::Tool | ErrorCode::ToolTimeout => "`: ",
                ErrorCode::Configuration => "` can't be called: ",
                _ => panic!("{f:?}"),
            };
            Err(f.message.split_once(before).unwrap().1.to_string())
        }
    }
}

/// The error of a call that stands in a `try`.
async fn uncaught(tools: Tools, tool: ToolDecl, args: Vec<(Name, Data)>) -> (ErrorCode, String) {
    let m = machine(|b| {
        let call = call(b, tool, args);
        caught(b, call)
    });
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers(tools), &limits, &cancel, &mut |_| {}).await;
    let failure = report.result.unwrap_err();
    (failure.code, failure.message)
}

fn num(n: i64) -> Data {
    Data::Num(Num::from(n))
}

fn add() -> (ToolDecl, Vec<(Name, Data)>) {
    let params = [("a", Type::Num), ("b", Type::Num), ("note", Type::option(Type::Str))];
    let args = vec![("a".into(), num(2)), ("b".into(), num(3)), ("note".into(), Data::Null)];
    (tool("add", &params, Type::record([("sum".into(), Type::Num)])), args)
}

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|s| !s.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

pub(crate) async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_tool_that_changed_since_it_was_approved_is_refused() {
    let found = one(process(None)).discover("s").await.unwrap();
    let names: Vec<&str> = found.iter().map(|t| &*t.name).collect();
    assert!(
        names.contains(&"add") && found.iter().all(|t| t.description == "for tests" && t.hash.len() == 64)
    );
    let approved = |change: &dyn Fn(ServerTool) -> Option<ServerTool>| {
        let mut pins = Pins::default();
        let tools: Vec<ServerTool> = found.iter().cloned().filter_map(change).collect();
        pins.approve("s", &tools);
        // As it is read back from the file.
        one(process(None)).with_pins(Pins::parse(&pins.to_toml()).unwrap())
    };
    let call = async |tools: Tools| {
        let (decl, args) = add();
        run(tools, decl, args).await
    };
    assert!(call(approved(&Some)).await.is_ok());
    let seen = "(help: look at it with `entail tools --discover s`";
    type Change = fn(ServerTool) -> ServerTool;
    let changes: [(Change, &str); 3] = [
        (|t| ServerTool { description: "once".into(), ..t }, "its description"),
        (|t| ServerTool { input: json!({}), ..t }, "its arguments"),
        (|t| ServerTool { output: Some(json!({})), input: json!({}), ..t }, "its arguments, its result"),
    ];
    for (change, parts) in changes {
        let was = |t: ServerTool| Some(if t.name == "add" { change(t) } else { t });
        let e = call(approved(&was)).await.unwrap_err();
        assert!(e.contains(&format!("it has changed since it was approved: {parts} {seen}")), "{e}");
    }
    // A file of the first version has one hash for each tool.
    let add = found.iter().find(|t| t.name == "add").unwrap();
    let first = |hash: &str| {
        let text = format!("version = 1\n[tools.s]\nadd = \"{hash}\"\n");
        one(process(None)).with_pins(Pins::parse(&text).unwrap())
    };
    assert!(call(first(&add.hash)).await.is_ok());
    let e = call(first(&"0".repeat(64))).await.unwrap_err();
    assert!(e.contains(&format!("it has changed since it was approved {seen}")), "{e}");
    let e = call(approved(&|t| (t.name != "add").then_some(t))).await.unwrap_err();
    assert!(e.contains("it was not there when the server was approved"), "{e}");
    // What nobody has looked at is held to nothing.
    assert!(call(one(process(None)).with_pins(Pins::default())).await.is_ok());
    assert!(one(process(None)).discover("t").await.unwrap_err().contains("no MCP server `t` is declared"));
}

#[tokio::test]
async fn a_process_answers_in_every_revision() {
    let dir = tempfile::tempdir().unwrap();
    for protocol in [None, Some("2026-07-28"), Some("2025-11-25")] {
        let log = dir.path().join(protocol.unwrap_or("any"));
        let server = McpServer { protocol: protocol.map(String::from), ..process(log.to_str()) };
        let (decl, args) = add();
        let sum = run(one(server), decl, args).await;
        assert_eq!(sum, Ok(Data::record([("sum".into(), num(5))])), "{protocol:?}");
        // An absent argument is left out; the server is ended in peace.
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "started\nadd {\"a\":2,\"b\":3}\nended\n");
    }
}

/// §5: what a server says of its answer raises the declared label, and the calls after it are held to that.
#[tokio::test]
async fn a_label_that_a_server_states_is_honored() {
    let dir = tempfile::tempdir().unwrap();
    let untrusted = LabelSpec::Axes { untrusted: true, secret: false };
    let secret = LabelSpec::Axes { untrusted: false, secret: true };
    let stated = async |ifc: &str, bound: LabelSpec, declared: LabelSpec| {
        let log = dir.path().join("log");
        let _ = std::fs::remove_file(&log);
        let m = machine(|b| {
            let text = [("text", Type::Str)];
            let read = ToolDecl { label: declared, ..tool("labeled", &text, Type::Str) };
            let read = call(b, read, vec![("text".into(), Data::str(ifc))]);
            let mut echo = tool("echo", &text, Type::Str);
            echo.params[0].bound = bound;
            let id = b.tool(echo);
            let f = b.add(Term::Tool(id), AT);
            let x = b.var("x", AT);
            let args = b.add(Term::Record(vec![("text".into(), x)]), AT);
            let passed_on = b.app(f, args, AT);
            b.let_in(vec![("x".into(), read)], passed_on, AT)
        });
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let handlers = handlers(one(process(log.to_str())));
        let result = runtime::run(m, &handlers, &limits, &cancel, &mut |_| {}).await.result;
        let log = std::fs::read_to_string(&log).unwrap();
        assert!(log.contains("labeled "), "{log}");
        // What is refused never reaches the server.
        assert_eq!(log.contains("echo "), result.is_ok(), "{log}");
        match result {
            Ok(value) => {
                assert_eq!(value.data().unwrap(), Data::str("MALLORY"));
                None
            }
            Err(f) => {
                assert!(
                    f.code == ErrorCode::Flow && f.message.contains("the argument `text` of `echo`"),
                    "{f:?}"
                );
                Some(f.message)
            }
        }
    };
    let (bottom, top) = (|| LabelSpec::BOTTOM, || LabelSpec::TOP);
    assert_eq!(stated(r#"{"integrity": "trusted"}"#, bottom(), bottom()).await, None);
    let refused = stated(r#"{"integrity": "untrusted"}"#, bottom(), bottom()).await;
    assert!(refused.is_some_and(|why| why.contains("must be labeled [] at most")));
    assert_eq!(stated(r#"{"integrity": "untrusted"}"#, untrusted.clone(), bottom()).await, None);
    let refused = stated(r#"{"confidentiality": ["alice"]}"#, untrusted.clone(), bottom()).await;
    assert!(refused.is_some_and(|why| why.contains(r#"must be labeled ["U"] at most"#)));
    assert_eq!(stated(r#"{"confidentiality": ["public"]}"#, untrusted.clone(), bottom()).await, None);
    // What is not understood counts as the highest.
    assert!(stated(r#""secret""#, secret.clone(), bottom()).await.is_some());
    assert_eq!(stated(r#""secret""#, top(), bottom()).await, None);
    // Nobody is nobody.
    assert!(stated(r#"{"confidentiality": []}"#, untrusted.clone(), bottom()).await.is_some());
    // A server that calls its answer trusted does not make it so.
    let declared = LabelSpec::Axes { untrusted: true, secret: false };
    assert!(stated(r#"{"integrity": "trusted"}"#, secret, declared).await.is_some());
}

/// §1, §5: with the lattice of sources and readers, those whom the server names are the principals of the
/// run.
#[tokio::test]
async fn the_readers_that_a_server_names_are_principals() {
    let some = |names: &[&str]| Some(names.iter().map(|n| Name::from(*n)).collect());
    let known =
        Principals { readers: some(&["alice", "bob"]), sources: some(&["web"]), ..Principals::default() };
    let label = async |ifc: &str, principals: &Principals| {
        let code = crate::support::program::code(|b| {
            let read =
                ToolDecl { label: LabelSpec::BOTTOM, ..tool("labeled", &[("text", Type::Str)], Type::Str) };
            call(b, read, vec![("text".into(), Data::str(ifc))])
        });
        let lattice = LatticeKind::SourcesReaders;
        let config = Config { lattice, principals: principals.clone(), ..Config::default() };
        let m = Machine::new(code, None, config);
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let report = runtime::run(m, &handlers(one(process(None))), &limits, &cancel, &mut |_| {}).await;
        assert!(report.result.is_ok(), "{:?}", report.result);
        report.label.to_json().to_string()
    };
    let (anybody, alice) =
        (Principals::default(), r#"{"integrity": "trusted", "confidentiality": ["alice", "eve"]}"#);
    assert_eq!(label(alice, &known).await, r#"{"sources":[],"readers":["alice"]}"#);
    assert_eq!(label(alice, &anybody).await, r#"{"sources":[],"readers":["alice","eve"]}"#);
    let web = r#"{"integrity": ["web"], "confidentiality": ["public"]}"#;
    assert_eq!(label(web, &known).await, r#"{"sources":["web"],"readers":"*"}"#);
    let mail = r#"{"integrity": ["mail"], "confidentiality": ["eve"]}"#;
    assert_eq!(label(mail, &known).await, r#"{"sources":"*","readers":[]}"#);
    assert_eq!(label(r#"{"integrity": "untrusted"}"#, &known).await, r#"{"sources":"*","readers":"*"}"#);
    assert_eq!(label("7", &known).await, r#"{"sources":"*","readers":[]}"#);
}

#[tokio::test]
async fn a_server_is_started_once_for_a_run_and_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let m = machine(|b| par(b, None, 6, |b, _| call(b, tool("process", &[], Type::Str), vec![])));
    let handlers = handlers(one(process(log.to_str())));
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers, &limits, &cancel, &mut |_| {}).await;
    let Some(Data::List(pids)) = report.result.unwrap().data() else { panic!("a list") };
    assert!(pids.iter().all(|p| *p == pids[0]), "{pids:?}");
    assert!(!alive(pids[0].as_str().unwrap()));
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("started").count(), 1, "{log}");
    assert!(log.ends_with("ended\n"), "{log}");
    // Another run has a server of its own.
    let again = run(handlers.tools.clone(), tool("process", &[], Type::Str), vec![]).await.unwrap();
    assert_ne!(again, pids[0]);
}

#[tokio::test]
async fn a_server_that_no_tool_needs_is_not_started() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let servers = [("s", process(None)), ("other", process(log.to_str()))];
    let (decl, args) = add();
    run(tools(servers), decl, args).await.unwrap();
    assert!(!log.exists());
}

#[tokio::test]
async fn failures_are_those_of_the_tool() {
    let tools = one(process(None));
    let fails = run(tools.clone(), tool("fail", &[], Type::Str), vec![]).await;
    assert_eq!(fails, Err("MCP server `s`: it failed: `no such luck`".into()));
    // A program can catch it and use the same server again.
    let m = machine(|b| {
        par(b, Some(1), 2, |b, i| {
            let t = tool(if i == 0 { "fail" } else { "process" }, &[], Type::Str);
            let e = call(b, t, vec![]);
            caught(b, e)
        })
    });
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers(tools), &limits, &cancel, &mut |_| {}).await;
    let Some(Data::List(both)) = report.result.unwrap().data() else { panic!("a list") };
    assert!(both[1].as_str().is_some_and(|pid| pid.parse::<u32>().is_ok()), "{both:?}");
}

#[tokio::test]
async fn a_process_that_ends_is_explained_by_its_last_words() {
    let e = run(one(process(None)), tool("exit", &[], Type::Str), vec![]).await.unwrap_err();
    assert!(
        e.starts_with("MCP server `s`: the process ended (exit status: 7); its output: `")
            && e.contains("out of ink, [redacted]"),
        "{e}"
    );
}

#[tokio::test]
async fn a_server_that_was_lost_is_started_again_for_the_next_call() {
    let small = ToolLimits { max_output: 10_000, ..ToolLimits::default() };
    for (last, why) in [("exit", "the process ended"), ("flood", "it sent a message of more than")] {
        let m = machine(|b| {
            par(b, Some(1), 3, |b, i| {
                let t = tool(if i == 1 { last } else { "process" }, &[], Type::Str);
                let e = call(b, t, vec![]);
                caught(b, e)
            })
        });
        let tools = one(process(None)).with_limits(small.clone());
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let report = runtime::run(m, &handlers(tools), &limits, &cancel, &mut |_| {}).await;
        let Some(Data::List(all)) = report.result.unwrap().data() else { panic!("a list") };
        let [before, lost, after] = &all[..] else { panic!("{all:?}") };
        assert!(lost.as_str().is_some_and(|e| e.contains(why)), "{all:?}");
        for pid in [before, after] {
            assert!(pid.as_str().is_some_and(|p| p.parse::<u32>().is_ok()), "{all:?}");
            assert!(!alive(pid.as_str().unwrap()));
        }
        assert_ne!(before, after);
    }
}

/// The process that answers a run.
async fn asked(tools: &Tools) -> Result<Data, String> {
    run(tools.clone(), tool("process", &[], Type::Str), vec![]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_share_a_server_unless_it_is_for_each() {
    for per_run in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let begun = || std::fs::read_to_string(&log).unwrap_or_default().matches("started").count();
        let shared = one(McpServer { per_run, ..process(log.to_str()) }).sharing_servers();
        let at_once = if per_run { 3 } else { 20 };
        let runs: Vec<_> = (0..at_once)
            .map(|_| {
                let tools = shared.clone();
                tokio::spawn(async move { asked(&tools).await })
            })
            .collect();
        let mut pids = Vec::new();
        for answer in runs {
            pids.push(answer.await.unwrap().unwrap());
        }
        assert_eq!(begun(), if per_run { at_once } else { 1 });
        if !per_run {
            // The runs have ended, and the server has not; it is started anew when it is lost.
            assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");
            let pid = pids[0].as_str().unwrap();
            assert!(alive(pid));
            let killed = std::process::Command::new("kill").args(["-KILL", pid]).status().unwrap();
            assert!(killed.success());
            until(|| !alive(pid)).await;
            // The call that finds it gone may fail; the next one does not.
            let _ = asked(&shared).await;
            pids.push(asked(&shared).await.unwrap());
            assert_ne!(pids[0], *pids.last().unwrap());
        }
        shared.close_servers().await;
        for pid in &pids {
            until(|| !alive(pid.as_str().unwrap())).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_server_that_does_not_answer_is_not_asked_again() {
    let shared = one(process(None)).sharing_servers();
    let before = asked(&shared).await.unwrap();
    let slow = Data::record([
        ("mcp".into(), Data::list([Data::str("s"), Data::str("hang")])),
        ("timeout".into(), Data::Num("0.3".parse().unwrap())),
    ]);
    let late = run(shared.clone(), decl("hang", &[], Type::Str, Some(slow)), vec![]).await.unwrap_err();
    assert!(late.contains("no result within 0.3 s"), "{late}");
    assert_ne!(asked(&shared).await.unwrap(), before);
    until(|| !alive(before.as_str().unwrap())).await;
}

#[tokio::test]
async fn a_list_of_tools_without_an_end_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("endless");
    let echo = tool("echo", &[("text", Type::Str)], Type::Str);
    let said = run(one(process(log.to_str())), echo, vec![("text".into(), Data::str("hi"))]).await;
    assert_eq!(said, Ok(Data::str("hi")));
    // Pages of 3 MiB up to 16.
    assert_eq!(std::fs::read_to_string(log).unwrap().matches("page").count(), 6);
}

#[tokio::test]
async fn a_declaration_that_differs_is_refused_before_anything_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let tools = one(process(log.to_str()));
    let case = |t: ToolDecl, args: Vec<(Name, Data)>| run(tools.clone(), t, args);
    let echo = |params: &[(&str, Type)]| tool("echo", params, Type::Str);
    let e = case(echo(&[("text", Type::Num)]), vec![("text".into(), num(1))]).await.unwrap_err();
    assert_eq!(
        e,
        "MCP server `s`: it is not what it is declared as: \
         the parameter `text` is declared as a number, but the server expects a string \
         (help: declare it as `entail tools --discover s` shows it)"
    );
    let e = case(echo(&[]), vec![]).await.unwrap_err();
    assert!(e.contains("the server requires the parameter `text`, which the declaration lacks"), "{e}");
    let e = case(tool("ecko", &[], Type::Str), vec![]).await.unwrap_err();
    assert!(e.contains("the server has no such tool (help: did you mean `echo`?)"), "{e}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("echo"), "{log}");
    // The result is compared when it is there.
    let (decl, args) = add();
    let e = case(ToolDecl { result: Type::list(Type::Num), ..decl }, args).await.unwrap_err();
    assert!(e.contains("its result: expected a list, found a record"), "{e}");
}

#[tokio::test]
async fn a_tool_declared_by_name_alone_gets_what_it_is_applied_to() {
    let by_name = ToolDecl {
        handler: Some(Data::record([("mcp".into(), Data::str("s"))])),
        effect: EffectClass::Read,
        ..ToolDecl::unknown("echo".into(), crate::support::program::AT)
    };
    let m = machine(|b| {
        let id = b.tool(by_name);
        let f = b.add(core_ir::Term::Tool(id), crate::support::program::AT);
        let x = b.lit(Data::record([("text".into(), Data::str("hello"))]), crate::support::program::AT);
        b.app(f, x, crate::support::program::AT)
    });
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers(one(process(None))), &limits, &cancel, &mut |_| {}).await;
    assert_eq!(report.result.unwrap().data(), Some(Data::str("hello")));
}

#[tokio::test]
async fn too_much_and_too_long_end_the_call() {
    let tools = one(process(None));
    let small = ToolLimits { max_output: 10_000, ..ToolLimits::default() };
    let flood = tool("flood", &[], Type::Str);
    let e = run(tools.clone().with_limits(small), flood.clone(), vec![]).await.unwrap_err();
    assert!(e.contains("it sent a message of more than"), "{e}");
    assert!(run(tools.clone(), flood, vec![]).await.is_ok());
    // A limit of the handler's own.
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let handler = Data::record([
        ("mcp".into(), Data::list([Data::str("s"), Data::str("hang")])),
        ("timeout".into(), Data::Num("0.2".parse().unwrap())),
    ]);
    let hang = decl("hang", &[], Type::Str, Some(handler));
    let e = give_up_and_wait(one(process(log.to_str())), hang, move || {
        std::fs::read_to_string(&log).is_ok_and(|l| l.contains("cancelled"))
    });
    assert!(e.await.contains("MCP server `s`: no result within 0.2 s"));
}

/// Calls a tool that is given up, and sees that the server gets to know it while the run goes on; the result
/// as text.
async fn give_up_and_wait(
    tools: Tools,
    hang: ToolDecl,
    knows: impl Fn() -> bool + Send + Sync + 'static,
) -> String {
    let knows = Arc::new(knows);
    let wait = move |_| -> runtime::BoxFuture<Result<Data, String>> {
        let knows = knows.clone();
        Box::pin(async move {
            until(|| knows()).await;
            Ok(Data::Null)
        })
    };
    let tools = tools.with_custom("wait", Arc::new(wait));
    let m = machine(|b| {
        par(b, Some(1), 2, |b, i| {
            let t = if i == 0 { hang.clone() } else { decl("wait", &[], Type::Null, None) };
            let e = call(b, t, vec![]);
            caught(b, e)
        })
    });
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(m, &handlers(tools), &limits, &cancel, &mut |_| {}).await;
    report.result.unwrap().data().unwrap().to_json().to_string()
}

#[tokio::test]
async fn canceling_a_run_ends_its_servers() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let pid = dir.path().join("pid");
    // A shell that starts a child of its own: the whole group has to go.
    let mut server = process(log.to_str());
    let words = server.command.take().unwrap();
    let script = format!("sleep 1000 & echo $! > {}; exec \"$@\"", pid.display());
    let sh = ["sh".to_string(), "-c".into(), script, "sh".into()];
    server.command = Some(sh.into_iter().chain(words).collect());
    let m = machine(|b| call(b, tool("hang", &[], Type::Str), vec![]));
    let cancel = CancellationToken::new();
    let handlers = handlers(one(server));
    let limits = Limits::default();
    let mut ignore = |_| {};
    let running = runtime::run(m, &handlers, &limits, &cancel, &mut ignore);
    let watching = async {
        until(|| std::fs::read_to_string(&log).is_ok_and(|l| l.contains("hang"))).await;
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(running, watching);
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Cancelled);
    let pid = std::fs::read_to_string(pid).unwrap();
    until(|| !alive(&pid)).await;
}

#[tokio::test]
async fn dropping_a_run_ends_its_servers() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let pid = dir.path().join("pid");
    let mut server = process(log.to_str());
    let words = server.command.take().unwrap();
    let script = format!("echo $$ > {}; exec \"$@\"", pid.display());
    let sh = ["sh".to_string(), "-c".into(), script, "sh".into()];
    server.command = Some(sh.into_iter().chain(words).collect());
    let m = machine(|b| call(b, tool("hang", &[], Type::Str), vec![]));
    let handlers = handlers(one(server));
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let mut ignore = |_| {};
    {
        let running = runtime::run(m, &handlers, &limits, &cancel, &mut ignore);
        tokio::select! {
            _ = running => panic!("it hangs"),
            () = until(|| std::fs::read_to_string(&log).is_ok_and(|l| l.contains("hang"))) => {}
        }
    }
    let pid = std::fs::read_to_string(pid).unwrap();
    until(|| !alive(&pid)).await;
}

#[tokio::test]
async fn a_process_gets_no_secret() {
    // The variable is really set, for this one process.
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mcp::a_server_sees_no_key", "--ignored", "--nocapture"])
        .env("PLANTED_KEY", KEY)
        .env("MCP_SECRET_TEST", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Run by the test above, in a process that has the variable.
#[tokio::test]
#[ignore]
async fn a_server_sees_no_key() {
    if std::env::var("MCP_SECRET_TEST").is_err() {
        return;
    }
    let variable = || tool("variable", &[("text", Type::Str)], Type::Num);
    let args = || vec![("text".into(), Data::str("PLANTED_KEY"))];
    // The result is no number, and the error quotes it: without the key.
    let e = run(one(process(None)), variable(), args()).await.unwrap_err();
    assert!(e.contains("empty where Num is expected"), "{e}");
    let told = McpServer { env: vec!["PLANTED_KEY".into()], ..process(None) };
    let e = run(one(told), variable(), args()).await.unwrap_err();
    assert!(e.contains("`[redacted]`"), "{e}");
}

fn sh(script: &str) -> McpServer {
    McpServer {
        command: Some(["sh", "-c", script].map(String::from).to_vec()),
        start_timeout: Some(0.5),
        ..McpServer::default()
    }
}

#[tokio::test]
async fn servers_that_are_none() {
    let case = |server: McpServer| run(one(server), tool("echo", &[], Type::Str), vec![]);
    let e = case(sh("echo no config >&2; exit 3")).await.unwrap_err();
    assert_eq!(e, "MCP server `s`: the process ended (exit status: 3); its output: `no config`");
    let e = case(sh("echo waiting >&2; exec sleep 1000")).await.unwrap_err();
    assert_eq!(e, "MCP server `s`: it was not ready within 0.5 s; its output: `waiting`");
    let e = case(sh("exec yes")).await.unwrap_err();
    assert!(e.starts_with("MCP server `s`: it was not ready"), "{e}");
    let e = case(sh("exec cat /dev/zero")).await.unwrap_err();
    assert!(e.contains("it sent a message of more than"), "{e}");
    let e = case(sh(r#"while read -r l; do echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"go away"}}'; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"go away"}}'; done"#))
        .await
        .unwrap_err();
    assert!(e.contains("it refused the connection: `go away`"), "{e}");
    let none = McpServer { command: Some(vec!["/no/such/program".into()]), ..McpServer::default() };
    let e = case(none).await.unwrap_err();
    assert!(e.starts_with("MCP server `s`: program `/no/such/program` not found"), "{e}");
}

#[tokio::test]
async fn nothing_catches_a_declaration_that_the_server_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let server = || one(process(log.to_str()));
    let echo = |params: &[(&str, Type)]| tool("echo", params, Type::Str);
    let none = McpServer { command: Some(vec!["/no/such/program".into()]), ..McpServer::default() };
    let pins = "version = 1\n[tools.s]\n";
    let cases = [
        (server(), tool("ecko", &[], Type::Str), vec![], "the server has no such tool"),
        (server(), echo(&[]), vec![], "the server requires the parameter `text`"),
        (one(none), echo(&[]), vec![], "not found"),
        (
            server().with_pins(Pins::parse(pins).unwrap()),
            echo(&[("text", Type::Str)]),
            vec![("text".into(), Data::str("x"))],
            "it was not there when the server was approved",
        ),
    ];
    for (tools, tool, args, want) in cases {
        let (code, message) = uncaught(tools, tool, args).await;
        assert!(code == ErrorCode::Configuration && message.contains(want), "{want}: {code:?} {message}");
    }
    assert!(!std::fs::read_to_string(&log).unwrap().contains("echo"));
}

/// The server lists a tool when it starts, and no longer has it when it is called.
#[tokio::test]
async fn nothing_catches_a_tool_that_has_gone_since_the_server_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("fickle");
    let args = || vec![("text".into(), Data::str("x"))];
    let lost = tool("lost", &[("text", Type::Str)], Type::Str);
    let (code, message) = uncaught(one(process(log.to_str())), lost, args()).await;
    assert!(code == ErrorCode::Configuration && message.contains("the server has no such tool"), "{message}");
    // A refusal of the arguments is the server's answer.
    let picky = tool("picky", &[("text", Type::Str)], Type::Str);
    let e = run(one(process(log.to_str())), picky, args()).await.unwrap_err();
    assert!(e.contains("the server refused: `not this text`"), "{e}");
}

#[tokio::test]
async fn mistakes_in_the_settings_are_named() {
    let case = |server: McpServer| {
        let t = tool("echo", &[], Type::Str);
        one(server).check(&t).unwrap_err().one_line()
    };
    let start = "no handler for tool `echo`: the MCP server `s` can't be used: ";
    assert_eq!(case(McpServer::default()), format!("{start}it needs either `command` or `url`"));
    let url = |u: &str| McpServer { url: Some(u.into()), ..McpServer::default() };
    assert!(case(url("ftp://x")).contains("has the scheme `ftp`"));
    assert!(case(McpServer { protocol: Some("1".into()), ..sh("x") }).contains("`protocol` is `1`"));
    assert!(case(McpServer { start_timeout: Some(-1.0), ..sh("x") }).contains("`start_timeout`"));
    let key = McpServer { key_env: Some("NO_SUCH_KEY".into()), ..url("http://127.0.0.1:1/") };
    assert!(case(key).contains("`NO_SUCH_KEY` is not set"));
    let other = decl("t", &[], Type::Str, Some(Data::record([("mcp".into(), Data::str("S"))])));
    assert_eq!(
        one(sh("x")).check(&other).unwrap_err().one_line(),
        "no handler for tool `t`: no MCP server `S` is declared (help: did you mean `s`?)"
    );
}

/// A server at an address, with what it was asked.
struct Web {
    url: String,
    log: tempfile::TempDir,
    task: tokio::task::JoinHandle<()>,
    authorizations: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Web {
    async fn start(json: bool) -> Web {
        let log = tempfile::tempdir().unwrap();
        let log_file = log.path().join("log").to_str().unwrap().to_string();
        let server = TestServer { log: Some(log_file), ..TestServer::default() };
        let mut config = StreamableHttpServerConfig::default();
        config.json_response = json;
        config.legacy_session_mode = !json;
        let service = StreamableHttpService::new(
            move || Ok(server.clone()),
            Arc::<LocalSessionManager>::default(),
            config,
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let authorizations = Arc::<std::sync::Mutex<Vec<String>>>::default();
        let seen = authorizations.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (service, seen) = (service.clone(), seen.clone());
                let answer =
                    hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                        let service = service.clone();
                        if let Some(value) = request.headers().get("authorization") {
                            seen.lock().unwrap().push(value.to_str().unwrap().into());
                        }
                        async move { Ok::<_, std::convert::Infallible>(service.handle(request).await) }
                    });
                let stream = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, answer));
            }
        });
        Web { url, log, task, authorizations }
    }

    fn server(&self) -> McpServer {
        McpServer { url: Some(self.url.clone()), key_env: Some("PLANTED_KEY".into()), ..McpServer::default() }
    }
}

#[tokio::test]
async fn an_address_answers_in_every_revision() {
    for json in [false, true] {
        let web = Web::start(json).await;
        for protocol in [None, Some("2026-07-28"), Some("2025-11-25")] {
            let server = McpServer { protocol: protocol.map(String::from), ..web.server() };
            let (decl, args) = add();
            let sum = run(one(server), decl, args).await;
            assert_eq!(sum, Ok(Data::record([("sum".into(), num(5))])), "{protocol:?} {json}");
        }
        let seen = web.authorizations.lock().unwrap();
        assert!(!seen.is_empty() && seen.iter().all(|a| *a == format!("Bearer {KEY}")));
    }
}

#[tokio::test]
async fn giving_up_reaches_a_server_at_an_address() {
    for protocol in ["2026-07-28", "2025-11-25"] {
        let web = Web::start(false).await;
        let server = McpServer { protocol: Some(protocol.into()), ..web.server() };
        let handler = Data::record([
            ("mcp".into(), Data::list([Data::str("s"), Data::str("hang")])),
            ("timeout".into(), Data::Num("0.2".parse().unwrap())),
        ]);
        let hang = decl("hang", &[], Type::Str, Some(handler));
        let log = web.log.path().join("log");
        let e = give_up_and_wait(one(server), hang, move || {
            std::fs::read_to_string(&log).is_ok_and(|l| l.contains("hang") && l.contains("gave up"))
        });
        assert!(e.await.contains("MCP server `s`: no result within 0.2 s"));
    }
}

#[tokio::test]
async fn an_address_without_a_server_is_named() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = McpServer { url: Some(format!("http://{closed}/mcp")), ..McpServer::default() };
    let e = run(one(server), tool("echo", &[], Type::Str), vec![]).await.unwrap_err();
    assert!(e.starts_with("MCP server `s`: no connection"), "{e}");
}
