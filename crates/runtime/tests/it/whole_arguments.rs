//! Tools get their arguments whole: a call that is cut off while it is written is never carried out with a
//! part of them, wherever it is cut, and a run that goes on repeats it with the same arguments and the same
//! idempotency key.
//!
//! The servers speak the real protocols: HTTP by hyper, MCP by the official SDK, over streamable HTTP and
//! over the pipes of a process. In between stands what cuts or stops the stream at a byte.
#![cfg(all(unix, feature = "mcp"))]

use crate::support::program::{call, code, decl};
use core_ir::{Code, Data, EffectClass, Name, ToolDecl, Type};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use machine::{Config, Machine};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use runtime::{
    CancellationToken, Environment, Handlers, Journal, Limits, McpServer, Models, RunIdentity, RunReport,
    Scripted, Tools, Unfinished,
};
use serde_json::{Value as Json, json};
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Begins the text of the arguments, and is nowhere else in the stream.
const MARK: &str = "mark-of-the-arguments";

/// The argument: longer than the buffers of sockets have to be to take it at once.
fn text() -> String {
    format!("{MARK}{}", "0123456789".repeat(400))
}

/// Executed call: arguments and idempotency key.
#[derive(Clone, Debug, PartialEq)]
struct Carried {
    args: Json,
    key: String,
}

/// Ledger of a server.
#[derive(Clone)]
enum Book {
    Here(Arc<Mutex<Vec<Carried>>>),
    /// A file, for a server that is another process.
    File(String),
}

impl Book {
    fn note(&self, carried: Carried) {
        match self {
            Book::Here(all) => all.lock().unwrap().push(carried),
            Book::File(path) => {
                use std::io::Write;
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
                writeln!(file, "{}", json!({"args": carried.args, "key": carried.key})).unwrap();
            }
        }
    }

    fn all(&self) -> Vec<Carried> {
        match self {
            Book::Here(all) => all.lock().unwrap().clone(),
            Book::File(path) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
                lines
                    .map(|l| Carried { args: l["args"].clone(), key: l["key"].as_str().unwrap().into() })
                    .collect()
            }
        }
    }
}

/// A server of MCP with one tool that writes.
#[derive(Clone)]
struct Payments(Book);

impl ServerHandler for Payments {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema =
            json!({"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]});
        let pay = Tool::new("pay", "for tests", Arc::new(schema.as_object().unwrap().clone()));
        Ok(ListToolsResult::with_all_items(vec![pay]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let key = context.meta.0.get("entail/idempotencyKey").and_then(Json::as_str).unwrap_or_default();
        let args = Json::Object(request.arguments.unwrap_or_default());
        self.0.note(Carried { args, key: key.to_string() });
        Ok(CallToolResult::success(vec![ContentBlock::text("paid")]).into())
    }
}

/// Not a test: the server as a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore]
async fn serves_when_told_to() {
    let Ok(book) = std::env::var("WHOLE_TEST_BOOK") else { return };
    let service = Payments(Book::File(book)).serve(rmcp::transport::stdio()).await.unwrap();
    let _ = service.waiting().await;
}

/// A server at an address, for as long as it is kept.
struct Served {
    address: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An HTTP server whose only resource takes the payment of a body.
async fn http(book: Book) -> Served {
    serve(move |request| {
        let book = book.clone();
        async move {
            let (head, body) = request.into_parts();
            // Without the whole body there is nothing to carry out.
            let Ok(body) = body.collect().await else {
                return hyper::Response::builder().status(400).body(Full::<Bytes>::default()).unwrap();
            };
            let key = head.headers.get("idempotency-key").map_or("", |v| v.to_str().unwrap()).to_string();
            let args = match head.method.as_str() {
                "GET" => {
                    let query = head.uri.query().unwrap_or_default();
                    json!({"note": query.strip_prefix("note=").unwrap_or_default()})
                }
                // Whatever is there is carried out: a careless server.
                _ => serde_json::from_slice(&body.to_bytes()).unwrap_or(json!("no JSON")),
            };
            book.note(Carried { args, key });
            hyper::Response::new(Full::<Bytes>::from("\"paid\""))
        }
    })
    .await
}

/// A server of MCP over streamable HTTP.
async fn mcp(book: Book) -> Served {
    let service = StreamableHttpService::new(
        move || Ok(Payments(book.clone())),
        Arc::<LocalSessionManager>::default(),
        StreamableHttpServerConfig::default(),
    );
    serve(move |request| {
        let service = service.clone();
        async move { service.handle(request).await }
    })
    .await
}

async fn serve<F, B>(
    answer: impl Fn(hyper::Request<hyper::body::Incoming>) -> F + Clone + Send + 'static,
) -> Served
where
    F: Future<Output = hyper::Response<B>> + Send + 'static,
    B: hyper::body::Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            let service = hyper::service::service_fn(move |request| {
                let answered = answer(request);
                async move { Ok::<_, Infallible>(answered.await) }
            });
            let stream = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
        }
    });
    Served { address, task }
}

/// Fault injected into the stream to a server, from a number of bytes after the mark on.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nothing.
    None,
    /// The connection is closed.
    Close(usize),
    /// The connection is reset.
    Reset(usize),
    /// Nothing more arrives, and the connection stays.
    Stop(usize),
}

/// A way to a server that has a fault.
struct Way {
    served: Served,
    fault: Arc<Mutex<Fault>>,
    /// All that clients wrote.
    written: Arc<Mutex<Vec<u8>>>,
}

impl Way {
    async fn to(server: &Served) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (fault, written) = (Arc::new(Mutex::new(Fault::None)), Arc::<Mutex<Vec<u8>>>::default());
        let (to, faults, seen) = (server.address.clone(), fault.clone(), written.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&to).await.unwrap();
                tokio::spawn(between(client, server, faults.clone(), seen.clone()));
            }
        });
        Way { served: Served { address, task }, fault, written }
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
        self.written.lock().unwrap().clear();
    }

    fn has_written(&self, text: &str) -> bool {
        find(&self.written.lock().unwrap(), text).is_some()
    }
}

fn find(bytes: &[u8], text: &str) -> Option<usize> {
    bytes.windows(text.len()).position(|w| w == text.as_bytes())
}

/// Passes on what comes, up to the fault.
async fn between(
    client: TcpStream,
    server: TcpStream,
    fault: Arc<Mutex<Fault>>,
    written: Arc<Mutex<Vec<u8>>>,
) {
    let (mut from, mut back) = client.into_split();
    let (mut answers, mut to) = server.into_split();
    let answering = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut answers, &mut back).await;
        (answers, back)
    });
    let (mut all, mut passed, mut chunk) = (Vec::new(), 0, [0; 512]);
    while let Ok(n @ 1..) = from.read(&mut chunk).await {
        all.extend_from_slice(&chunk[..n]);
        written.lock().unwrap().extend_from_slice(&chunk[..n]);
        let fault = *fault.lock().unwrap();
        let most = match (fault, find(&all, MARK)) {
            (Fault::Close(n) | Fault::Reset(n) | Fault::Stop(n), Some(mark)) => mark + n,
            _ => all.len(),
        };
        let upto = most.min(all.len()).max(passed);
        if to.write_all(&all[passed..upto]).await.is_err() {
            break;
        }
        passed = upto;
        match fault {
            Fault::Close(_) if passed == most && find(&all, MARK).is_some() => break,
            Fault::Reset(_) if passed == most && find(&all, MARK).is_some() => {
                for stream in [from.as_ref(), to.as_ref()] {
                    stream.set_zero_linger().unwrap();
                }
                break;
            }
            _ => {}
        }
    }
    answering.abort();
}

/// A writing tool, and what carries it out.
struct Case {
    tools: Tools,
    code: Arc<Code>,
}

impl Case {
    fn new(handler: Data, servers: Vec<(String, McpServer)>) -> Case {
        let env = Environment::default();
        let tools = Tools::new(&env).with_servers(servers.into_iter().collect(), &env);
        let pay = ToolDecl {
            effect: EffectClass::Write,
            ..decl("pay", &[("note", Type::Str)], Type::Str, Some(handler))
        };
        let args: Vec<(Name, Data)> = vec![("note".into(), Data::str(text()))];
        Case { tools, code: code(|b| call(b, pay, args)) }
    }

    /// An HTTP tool at an address.
    fn http(address: &str, method: &str) -> Case {
        let url = format!("http://{address}/pay");
        let about = [("method", method), ("url", &url)].map(|(n, v)| (n.into(), Data::str(v)));
        Case::new(Data::record([("http".into(), Data::record(about))]), Vec::new())
    }

    /// A tool of an MCP server.
    fn mcp(server: McpServer) -> Case {
        Case::new(Data::record([("mcp".into(), Data::str("s"))]), vec![("s".into(), server)])
    }

    fn mcp_at(address: &str) -> Case {
        Case::mcp(McpServer { url: Some(format!("http://{address}/mcp")), ..McpServer::default() })
    }

    /// A server that is a process behind a pipeline of the shell.
    fn mcp_behind(pipeline: &str, book: &str) -> Case {
        let me = std::env::current_exe().unwrap().display().to_string();
        let serve = "--exact whole_arguments::serves_when_told_to --ignored --nocapture --test-threads=2";
        let script = format!("{pipeline} WHOLE_TEST_BOOK='{book}' '{me}' {serve}");
        let command = Some(["sh", "-c", &script].map(String::from).to_vec());
        // The bytes of the handshake are the same each time.
        let protocol = Some("2025-11-25".into());
        Case::mcp(McpServer { command, protocol, ..McpServer::default() })
    }

    fn about(&self) -> RunIdentity {
        RunIdentity::new("test", &self.code, None, json!({}))
    }

    fn run(&self, session: runtime::Session) -> impl Future<Output = RunReport> + use<> {
        let handlers = Handlers {
            tools: self.tools.clone(),
            journal: Some(Arc::new(Mutex::new(session))),
            ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap())))
        };
        let machine = Machine::new(self.code.clone(), None, Config::default());
        async move {
            let (limits, cancel) = (Limits::default(), CancellationToken::new());
            runtime::run(machine, &handlers, &limits, &cancel, &mut |_| {}).await
        }
    }

    fn begin(&self, file: &Path) -> (String, impl Future<Output = RunReport> + use<>) {
        let session = Journal::open(file).unwrap().begin(&self.about(), &Default::default()).unwrap();
        (session.id().to_string(), self.run(session))
    }

    async fn resume(&self, file: &Path, id: &str) -> RunReport {
        let journal = Journal::existing(file).unwrap();
        let session =
            journal.resume(id, &self.about(), &Default::default(), false, Unfinished::Retry).unwrap();
        self.run(session).await
    }
}

/// Fails unless each payment was made with all of its arguments under a key.
fn whole(book: &Book, most: usize, what: &str) {
    let all = book.all();
    assert!(all.len() <= most, "{what}: carried out {} times", all.len());
    for carried in all {
        assert_eq!(carried.args, json!({"note": text()}), "{what}");
        assert_eq!(carried.key.len(), 32, "{what}");
    }
}

/// Places in the stream after the mark: within the arguments, at their end, and behind it.
fn places() -> impl Iterator<Item = usize> {
    let end = text().len();
    [0, 1, MARK.len(), 511, 512, 1000, 2048].into_iter().chain(end - 2..end + 6)
}

#[tokio::test]
async fn a_connection_that_is_cut_carries_out_no_part_of_a_call() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["POST", "PUT", "GET", "mcp"] {
        let book = Book::Here(Arc::default());
        let server = if kind == "mcp" { mcp(book.clone()).await } else { http(book.clone()).await };
        let way = Way::to(&server).await;
        let address = way.served.address.clone();
        let case = || if kind == "mcp" { Case::mcp_at(&address) } else { Case::http(&address, kind) };
        let mut calls = 0;
        let mut cut_off = 0;
        for n in places() {
            for fault in [Fault::Close(n), Fault::Reset(n)] {
                way.set(fault);
                calls += 1;
                let file = dir.path().join(format!("{kind}{calls}.db"));
                let (_, run) = case().begin(&file);
                cut_off += usize::from(run.await.result.is_err());
                whole(&book, calls, &format!("{kind} {fault:?}"));
            }
        }
        // The cuts were cuts.
        assert!(cut_off >= 14, "{kind}: {cut_off}");
        way.set(Fault::None);
        let before = book.all().len();
        let (_, run) = case().begin(&dir.path().join(format!("{kind}.db")));
        assert!(run.await.result.is_ok());
        assert_eq!(book.all().len(), before + 1);
        whole(&book, calls + 1, kind);
    }
}

#[tokio::test]
async fn a_run_that_was_interrupted_within_a_call_repeats_it_whole_under_the_same_key() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["POST", "GET", "mcp"] {
        for n in [MARK.len(), 2048, text().len() - 1] {
            let book = Book::Here(Arc::default());
            let server = if kind == "mcp" { mcp(book.clone()).await } else { http(book.clone()).await };
            let way = Way::to(&server).await;
            let address = way.served.address.clone();
            let case = if kind == "mcp" { Case::mcp_at(&address) } else { Case::http(&address, kind) };
            way.set(Fault::Stop(n));
            let file = dir.path().join(format!("{kind}{n}.db"));
            let (id, run) = case.begin(&file);
            tokio::select! {
                _ = run => panic!("{kind}: it was answered"),
                () = until(|| way.has_written(&text())) => {}
            }
            assert_eq!(book.all(), [], "{kind} {n}");
            // As it was written, though not as it arrived.
            let written = String::from_utf8_lossy(&way.written.lock().unwrap()).into_owned();
            way.set(Fault::None);
            let report = case.resume(&file, &id).await;
            assert!(report.result.is_ok(), "{kind} {n}: {report:?}");
            whole(&book, 1, kind);
            let key = &book.all()[0].key;
            assert!(written.contains(key.as_str()), "{kind} {n}: {key}\n{written}");
        }
    }
}

#[tokio::test]
async fn a_process_whose_input_ends_within_a_call_carries_out_no_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    // What a whole call is on the pipe.
    let (stream, book) = (path("stream"), Book::File(path("whole")));
    let case = Case::mcp_behind(&format!("tee '{stream}' |"), &path("whole"));
    let (_, run) = case.begin(&dir.path().join("whole.db"));
    assert!(run.await.result.is_ok());
    whole(&book, 1, "whole");
    assert_eq!(book.all().len(), 1);
    let bytes = std::fs::read(&stream).unwrap();
    let (mark, begin) = (find(&bytes, MARK).unwrap(), find(&bytes, "tools/call").unwrap());
    let end = mark + bytes[mark..].iter().position(|b| *b == b'\n').unwrap();
    for n in [begin, mark, mark + 1, mark + 2000, mark + text().len(), end - 1, end, end + 1] {
        let book = Book::File(path(&format!("book{n}")));
        let case = Case::mcp_behind(&format!("dd bs=1 count={n} 2>/dev/null |"), &path(&format!("book{n}")));
        let (_, run) = case.begin(&dir.path().join(format!("{n}.db")));
        let report = run.await;
        whole(&book, 1, &format!("{n} of {end}: {report:?}"));
        // With all but the line break, or right before its end, a server may have carried it out.
        assert!(n >= end || book.all().is_empty(), "{n} of {end}: {report:?}");
    }
}

#[tokio::test]
async fn a_run_that_was_interrupted_on_a_pipe_repeats_its_call_whole_under_the_same_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (first, second) = (path("first"), path("second"));
    // The first server hears the call up to a byte of its arguments; the second one hears everything.
    let stops = format!(
        "n=$(cat '{0}/offset' 2>/dev/null || echo 1000000000); tee -a '{0}/stream' | \
         if [ -e '{0}/offset' ]; then (dd bs=1 count=\"$n\" 2>/dev/null; exec sleep 1000); else cat; fi |",
        dir.path().display()
    );
    let probe = Case::mcp_behind(&stops, &first);
    let (_, run) = probe.begin(&dir.path().join("probe.db"));
    assert!(run.await.result.is_ok());
    let stream = dir.path().join("stream");
    let mark = find(&std::fs::read(&stream).unwrap(), MARK).unwrap();
    std::fs::write(dir.path().join("offset"), (mark + 1000).to_string()).unwrap();
    std::fs::remove_file(&stream).unwrap();

    let case = Case::mcp_behind(&stops, &second);
    let file = dir.path().join("r.db");
    let (id, run) = case.begin(&file);
    tokio::select! {
        _ = run => panic!("it was answered"),
        () = until(|| std::fs::read(&stream).is_ok_and(|bytes| find(&bytes, &text()).is_some())) => {}
    }
    let book = Book::File(second);
    assert_eq!(book.all(), []);
    let written = std::fs::read_to_string(&stream).unwrap();
    std::fs::remove_file(dir.path().join("offset")).unwrap();
    let report = case.resume(&file, &id).await;
    assert!(report.result.is_ok(), "{report:?}");
    whole(&book, 1, "resumed");
    assert_eq!(book.all().len(), 1);
    assert!(written.contains(&book.all()[0].key), "{written}");
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
