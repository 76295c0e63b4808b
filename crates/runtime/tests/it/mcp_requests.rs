//! Requests of MCP servers while their tools are called: questions to a person, folders, completions; and
//! servers that ask for too much or at the wrong time.
#![cfg(all(unix, feature = "mcp"))]
// Roots and sampling are deprecated since 2026-07-28.
#![allow(deprecated)]

use crate::mcp::{handlers, one, process_of, tool, until};
use crate::support::program::{call, caught, code, decl, par};
use core_ir::{Code, Data, EffectClass, LabelSpec, ToolDecl, Type};
use machine::{Config, ErrorCode, Machine};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, ElicitRequest, ElicitRequestParams, ElicitationSchema, ErrorCode as RpcCode,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequiredResult,
    ListRootsRequest, ListToolsResult, PaginatedRequestParams, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceContents, Role, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use runtime::{
    Approver, CancellationToken, Elicitation, ElicitationAnswer, ElicitationKind, Environment, Handlers,
    Journal, Limits, McpServer, ModelSettings, Models, RunIdentity, RunReport, Scripted, ToolLimits,
    Unfinished,
};
use serde_json::{Map, Value as Json, json};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

/// A server whose tools ask before they answer.
#[derive(Clone)]
struct AskingServer {
    /// Appends a line for each thing that happens.
    log: String,
}

impl AskingServer {
    fn note(&self, line: &str) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn form(schema: Json) -> ElicitRequestParams {
    let Json::Object(schema) = schema else { panic!("a schema") };
    let requested_schema = ElicitationSchema::from_json_schema(schema).unwrap();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Which seat?\u{1b}[2J".into(),
        requested_schema,
    }
}

fn seat() -> ElicitRequestParams {
    form(
        json!({"type": "object", "properties": {"seat": {"type": "string", "maxLength": 40}}, "required": ["seat"]}),
    )
}

fn visit(url: &str) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: "Sign in".into(),
        url: url.into(),
        elicitation_id: "7".into(),
    }
}

fn elicit(params: ElicitRequestParams) -> InputRequest {
    InputRequest::Elicitation(ElicitRequest::new(params))
}

fn needs(requests: impl IntoIterator<Item = InputRequest>) -> Result<CallToolResponse, ErrorData> {
    let requests = requests.into_iter().enumerate().map(|(i, r)| (format!("q{i}"), r)).collect();
    Ok(InputRequiredResult::new(Some(requests), Some("state".into())).into())
}

impl ServerHandler for AskingServer {
    fn get_info(&self) -> ServerConfig {
        let all = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        ServerConfig::new(all.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let none = json!({"type": "object", "properties": {}});
        let none = Arc::new(none.as_object().unwrap().clone());
        let names = [
            "ask",
            "ask_peer",
            "hang",
            "nag",
            "nag_peer",
            "huge",
            "twice",
            "url",
            "bad_url",
            "url_first",
            "late",
            "sample",
            "sample_peer",
            "roots",
            "roots_peer",
            "crowd",
            "again",
            "slow",
        ];
        Ok(ListToolsResult::with_all_items(names.map(|n| Tool::new(n, "for tests", none.clone())).to_vec()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.note(&format!("read {}", request.uri));
        let contents = match (&*request.uri, request.input_responses) {
            ("notes:binary", _) => ResourceContents::blob("AA==", "notes:binary"),
            ("notes:large", _) => ResourceContents::text("x".repeat(20_000), "notes:large"),
            ("notes:ask", None) => {
                let requests = [("q".to_string(), elicit(seat()))].into();
                return Ok(InputRequiredResult::from_input_requests(requests).into());
            }
            ("notes:ask", Some(answers)) => ResourceContents::text(json!(answers).to_string(), "notes:ask"),
            ("notes:none", _) => return Err(ErrorData::resource_not_found("no such note", None)),
            (uri, _) => ResourceContents::text(format!("{{\"of\": \"{uri}\"}}"), uri),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let args = json!(request.arguments).to_string();
        self.note(&format!("prompt {} {args}", request.name));
        if request.name != "review" {
            return Err(ErrorData::invalid_params("no such prompt", None));
        }
        let message = PromptMessage::new(Role::User, ContentBlock::text(format!("Review {args}")));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answers = request.input_responses.map(|r| json!(r));
        self.note(&format!("{} {}", request.name, answers.clone().unwrap_or_default()));
        let text = |t: String| Ok(CallToolResult::success(vec![ContentBlock::text(t)]).into());
        let peer = context.peer.clone();
        match (&*request.name, answers) {
            ("ask" | "url" | "bad_url" | "twice" | "huge" | "sample" | "roots" | "crowd", Some(answers)) => {
                assert_eq!(request.request_state.as_deref(), Some("state"));
                text(answers.to_string())
            }
            ("ask", None) => needs([elicit(seat())]),
            ("twice", None) => needs([elicit(seat()), elicit(seat())]),
            ("url", None) => needs([elicit(visit("https://example.com/login?x=1"))]),
            ("bad_url", None) => needs([elicit(visit("file:///etc/passwd"))]),
            ("sample", None) => {
                let params = CreateMessageRequestParams::new(Vec::new(), 10);
                needs([InputRequest::CreateMessage(CreateMessageRequest::new(params))])
            }
            ("roots", None) => needs([InputRequest::ListRoots(ListRootsRequest::default())]),
            ("crowd", None) => needs((0..33).map(|_| elicit(seat()))),
            ("huge", None) => {
                let field = |i| (format!("f{i}"), json!({"type": "boolean"}));
                let properties: Map<String, Json> = (0..10_000).map(field).collect();
                needs([elicit(form(json!({"type": "object", "properties": properties})))])
            }
            ("nag", _) => needs((0..3).map(|_| elicit(seat()))),
            ("again", _) => Ok(InputRequiredResult::from_request_state("more").into()),
            ("hang", None) => needs([elicit(seat())]),
            ("hang", Some(answers)) => {
                // The first call that was answered has no end.
                if std::fs::read_to_string(&self.log).unwrap().matches("hang {").count() > 1 {
                    return text(answers.to_string());
                }
                context.ct.cancelled().await;
                Err(ErrorData::internal_error("cancelled", None))
            }
            ("ask_peer", _) => {
                let answer = peer.create_elicitation(seat()).await;
                text(answer.map_or_else(|e| e.to_string(), |a| json!(a).to_string()))
            }
            ("slow", _) => {
                // Two calls are open, so this one has no right to ask.
                tokio::time::sleep(Duration::from_millis(300)).await;
                let answer = peer.create_elicitation(seat()).await;
                text(answer.map_or_else(|e| e.to_string(), |a| json!(a).to_string()))
            }
            ("nag_peer", _) => {
                let mut last = String::new();
                for _ in 0..20 {
                    let answer = peer.create_elicitation(seat()).await;
                    last = answer.map_or_else(|e| e.to_string(), |a| json!(a).to_string());
                    self.note(&format!("nagged {last}"));
                }
                text(last)
            }
            ("sample_peer", _) => {
                let answer = peer.create_message(CreateMessageRequestParams::new(Vec::new(), 10)).await;
                Ok(CallToolResult::error(vec![ContentBlock::text(answer.unwrap_err().to_string())]).into())
            }
            ("roots_peer", _) => text(json!(peer.list_roots().await.unwrap()).to_string()),
            ("url_first", _) => {
                if std::fs::read_to_string(&self.log).unwrap().matches("url_first").count() > 1 {
                    return text("seen".into());
                }
                let data = json!({"elicitations": [visit("https://example.com/consent")]});
                Err(ErrorData::new(RpcCode(-32042), "visit it first", Some(data)))
            }
            ("late", _) => {
                let server = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let answer = peer.create_elicitation(seat()).await;
                    server.note(&format!("late: {answer:?}"));
                });
                text("done".into())
            }
            _ => Err(ErrorData::invalid_params("unknown tool", None)),
        }
    }
}

/// Not a test: the server as a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore]
async fn asks_when_told_to() {
    let Ok(log) = std::env::var("MCP_TEST_LOG") else { return };
    let service = AskingServer { log }.serve(rmcp::transport::stdio()).await.unwrap();
    let _ = service.waiting().await;
}

struct World {
    dir: tempfile::TempDir,
    /// Questions that a person was asked.
    asked: Arc<Mutex<Vec<Elicitation>>>,
}

const OLD: Option<&str> = Some("2025-11-25");
const NEW: Option<&str> = Some("2026-07-28");

impl World {
    fn new() -> World {
        World { dir: tempfile::tempdir().unwrap(), asked: Arc::default() }
    }

    fn log_file(&self) -> std::path::PathBuf {
        self.dir.path().join("log")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn server(&self, protocol: Option<&str>) -> McpServer {
        let server = process_of("mcp_requests::asks_when_told_to", self.log_file().to_str());
        McpServer { protocol: protocol.map(String::from), ..server }
    }

    /// A person who gives this answer to all questions.
    fn person(&self, answer: ElicitationAnswer) -> Approver {
        let asked = self.asked.clone();
        Approver::new(|_| Box::pin(async { Ok(()) })).answering(move |question| {
            asked.lock().unwrap().push(question);
            let answer = answer.clone();
            Box::pin(async move { answer })
        })
    }

    fn asked(&self) -> Vec<Elicitation> {
        self.asked.lock().unwrap().clone()
    }
}

fn accept(content: Json) -> ElicitationAnswer {
    labeled(content, LabelSpec::BOTTOM)
}

fn labeled(content: Json, label: LabelSpec) -> ElicitationAnswer {
    let Json::Object(content) = content else { panic!("an object") };
    ElicitationAnswer::Accept { content, label }
}

fn calls(name: &str) -> Arc<Code> {
    code(|b| call(b, tool(name, &[], Type::Str), vec![]))
}

async fn run(code: &Arc<Code>, handlers: &Handlers) -> RunReport {
    let machine = Machine::new(code.clone(), None, Config::default());
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    runtime::run(machine, handlers, &limits, &cancel, &mut |_| {}).await
}

/// The text that a tool returns, or the message of its failure.
async fn said(name: &str, server: McpServer, approver: Option<Approver>) -> Result<String, String> {
    let report = run(&calls(name), &Handlers { approver, ..handlers(one(server)) }).await;
    match report.result {
        Ok(value) => Ok(value.data().unwrap().as_str().unwrap().to_string()),
        Err(f) => {
            assert_eq!(f.code, ErrorCode::Tool, "{f:?}");
            Err(f.message)
        }
    }
}

#[tokio::test]
async fn a_person_answers_in_every_revision() {
    for (name, protocol) in [("ask", NEW), ("ask_peer", OLD)] {
        let world = World::new();
        let person = world.person(accept(json!({"seat": "12A"})));
        let answer = said(name, world.server(protocol), Some(person)).await.unwrap();
        let answer: Json = serde_json::from_str(&answer).unwrap();
        let answer = answer.get("q0").unwrap_or(&answer);
        assert_eq!(*answer, json!({"action": "accept", "content": {"seat": "12A"}}), "{name}");
        let asked = world.asked();
        let [question] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!((&*question.server, &*question.tool), ("s", name));
        // The terminal escapes it; programs get it as it is.
        assert_eq!(question.message, "Which seat?\u{1b}[2J");
        assert!(matches!(&question.asks, ElicitationKind::Form(fields) if fields[0].name == "seat"));
    }
}

#[tokio::test]
async fn a_question_without_an_answer_is_declined_and_explained() {
    for (name, protocol) in [("ask", NEW), ("ask_peer", OLD)] {
        let world = World::new();
        let no = world.person(ElicitationAnswer::Decline("not today".into()));
        let answer = said(name, world.server(protocol), Some(no)).await.unwrap();
        assert!(answer.contains(r#"{"action":"decline"}"#), "{answer}");
        let wrong = world.person(accept(json!({"seat": 7})));
        assert!(said(name, world.server(protocol), Some(wrong)).await.unwrap().contains("decline"));
        let other = world.person(accept(json!({"seat": "1", "row": "2"})));
        assert!(said(name, world.server(protocol), Some(other)).await.unwrap().contains("decline"));
        // A person who only approves.
        let approver = Approver::new(|_| Box::pin(async { Ok(()) }));
        let answer = said(name, world.server(protocol), Some(approver)).await;
        let told = answer.unwrap_or_else(|e| e);
        assert!(!told.contains("accept"), "{told}");
    }
}

#[tokio::test]
async fn an_answer_with_a_secret_is_not_sent() {
    let world = World::new();
    let person = world.person(accept(json!({"seat": KEY})));
    let env = Environment::new([("PLANTED_KEY", KEY)]);
    let models = Models::new(ModelSettings::default(), env).unwrap();
    let handlers = Handlers { approver: Some(person), ..handlers(one(world.server(NEW))) };
    let report = run(&calls("ask"), &Handlers { models, ..handlers }).await;
    let answer = report.result.unwrap().data().unwrap().to_json().to_string();
    assert!(answer.contains("decline") && world.asked().len() == 1, "{answer}");
    assert!(!world.log().contains("planted"), "{}", world.log());
}

#[tokio::test]
async fn words_of_a_person_raise_the_label_of_the_result() {
    let world = World::new();
    let secret = LabelSpec::Axes { untrusted: false, secret: true };
    let mut labels = Vec::new();
    for label in [LabelSpec::BOTTOM, secret] {
        let person = world.person(labeled(json!({"seat": "1"}), label));
        let code = code(|b| {
            let mut ask = tool("ask", &[], Type::Str);
            ask.label = LabelSpec::BOTTOM;
            call(b, ask, vec![])
        });
        let handlers = Handlers { approver: Some(person), ..handlers(one(world.server(NEW))) };
        labels.push(run(&code, &handlers).await.label.to_json().to_string());
    }
    assert_eq!(labels, ["[]", r#"["S"]"#]);
}

#[tokio::test]
async fn addresses_are_shown_and_only_those_of_the_web() {
    let world = World::new();
    let person = || Some(world.person(accept(json!({}))));
    let answer = said("url", world.server(NEW), person()).await.unwrap();
    assert_eq!(answer, r#"{"q0":{"action":"accept"}}"#);
    let url = ElicitationKind::Url("https://example.com/login?x=1".into());
    assert_eq!(world.asked().pop().unwrap().asks, url);
    let answer = said("bad_url", world.server(NEW), person()).await.unwrap();
    assert_eq!((answer.as_str(), world.asked().len()), (r#"{"q0":{"action":"decline"}}"#, 1));
    // The error of the revision before, which says what is to be visited before the call.
    assert_eq!(said("url_first", world.server(OLD), person()).await.unwrap(), "seen");
    assert_eq!(world.asked().len(), 2);
    let world = World::new();
    let no = world.person(ElicitationAnswer::Decline("no".into()));
    let e = said("url_first", world.server(OLD), Some(no)).await.unwrap_err();
    assert!(e.contains("the server refused: `visit it first`; its question `Sign in`: no"), "{e}");
}

#[tokio::test]
async fn floods_of_questions_are_ended() {
    let world = World::new();
    let person = || Some(world.person(accept(json!({"seat": "1"}))));
    let e = said("nag", world.server(NEW), person()).await.unwrap_err();
    assert!(
        e.contains("it has no result after 12 rounds of requests; it asked more than 10 questions"),
        "{e}"
    );
    assert_eq!(world.asked().len(), 10);
    let last = said("nag_peer", world.server(OLD), person()).await.unwrap();
    assert_eq!((&*last, world.asked().len()), (r#"{"action":"cancel"}"#, 20));
    let e = said("crowd", world.server(NEW), person()).await.unwrap_err();
    assert!(e.contains("it makes more than 32 requests at once"), "{e}");
    let e = said("again", world.server(NEW), person()).await.unwrap_err();
    assert!(e.contains("no result after 12 rounds"), "{e}");
    let huge = said("huge", world.server(NEW), person()).await.unwrap();
    assert_eq!((&*huge, world.asked().len()), (r#"{"q0":{"action":"decline"}}"#, 20));
}

#[tokio::test]
async fn a_question_outside_of_a_call_is_refused() {
    let world = World::new();
    let person = world.person(accept(json!({"seat": "1"})));
    let log = world.log_file();
    // The run goes on until the server was answered.
    let wait = move |_| -> runtime::BoxFuture<Result<Data, String>> {
        let log = log.clone();
        Box::pin(async move {
            until(|| std::fs::read_to_string(&log).is_ok_and(|l| l.contains("late: "))).await;
            Ok(Data::Null)
        })
    };
    let tools = one(world.server(OLD)).with_custom("wait", Arc::new(wait));
    let code = code(|b| {
        par(b, Some(1), 2, |b, i| {
            let late = || tool("late", &[], Type::Str);
            let t = if i == 0 { late() } else { decl("wait", &[], Type::Null, None) };
            call(b, t, vec![])
        })
    });
    let report = run(&code, &Handlers { approver: Some(person), ..handlers(tools) }).await;
    assert!(report.result.is_ok(), "{:?}", report.result);
    assert!(world.log().contains("only while exactly one call is open"), "{}", world.log());
    assert!(world.asked().is_empty());
}

#[tokio::test]
async fn a_question_that_may_belong_to_several_calls_is_refused() {
    let world = World::new();
    let person = world.person(accept(json!({"seat": "1"})));
    let code = code(|b| par(b, None, 2, |b, _| call(b, tool("slow", &[], Type::Str), vec![])));
    let handlers = Handlers { approver: Some(person), ..handlers(one(world.server(OLD))) };
    let report = run(&code, &handlers).await;
    let answers = report.result.unwrap().data().unwrap().to_json().to_string();
    assert!(answers.contains("only while exactly one call is open"), "{answers}");
}

#[tokio::test]
async fn the_time_in_which_a_person_answers_does_not_count() {
    let world = World::new();
    let person = Approver::new(|_| Box::pin(async { Ok(()) })).answering(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            accept(json!({"seat": "1"}))
        })
    });
    let mcp = Data::list([Data::str("s"), Data::str("ask")]);
    let limit = Data::Num("2".parse().unwrap());
    let handler = Data::record([("mcp".into(), mcp), ("timeout".into(), limit)]);
    let code = code(|b| call(b, decl("ask", &[], Type::Str, Some(handler)), vec![]));
    let report = run(&code, &Handlers { approver: Some(person), ..handlers(one(world.server(NEW))) }).await;
    assert!(report.result.is_ok(), "{:?}", report.result);
}

#[tokio::test]
async fn completions_are_refused() {
    let world = World::new();
    let e = said("sample", world.server(NEW), None).await.unwrap_err();
    assert!(e.contains("asks for a completion of a model (sampling), which this client refuses"), "{e}");
    let e = said("sample_peer", world.server(OLD), None).await.unwrap_err();
    assert!(e.contains("which this client refuses"), "{e}");
}

#[tokio::test]
async fn servers_are_told_of_the_folders_of_their_settings() {
    for (name, protocol) in [("roots", NEW), ("roots_peer", OLD)] {
        let world = World::new();
        let folder = world.dir.path().join("my notes");
        std::fs::create_dir(&folder).unwrap();
        let with = |roots: &[&Path]| McpServer {
            roots: roots.iter().map(|r| r.to_path_buf()).collect(),
            ..world.server(protocol)
        };
        let told = said(name, with(&[&folder]), None).await.unwrap();
        assert!(told.contains("/my%20notes\"") && told.contains("\"name\":\"my notes\""), "{told}");
        assert!(said(name, with(&[]), None).await.is_ok_and(|told| told.contains("\"roots\":[]")));
        let none = world.dir.path().join("none");
        let report = run(&calls(name), &handlers(one(with(&[&none])))).await;
        let e = report.result.unwrap_err();
        assert!(e.code == ErrorCode::Configuration && e.message.contains("none` is no folder"), "{e:?}");
    }
}

#[tokio::test]
async fn a_resumed_run_does_not_ask_again() {
    for effect in [EffectClass::Read, EffectClass::Write] {
        let world = World::new();
        let file = world.dir.path().join("journal.db");
        let program = code(|b| {
            let mut hang = tool("hang", &[], Type::Str);
            hang.effect = effect;
            let call = call(b, hang, vec![]);
            caught(b, call)
        });
        let about = RunIdentity::new("test", &program, None, json!({}));
        let person = || Some(world.person(accept(json!({"seat": "12A"}))));
        let with = |session| Handlers {
            approver: person(),
            journal: Some(Arc::new(Mutex::new(session))),
            ..handlers(one(world.server(NEW)))
        };
        let session = Journal::open(&file).unwrap().begin(&about, &Default::default()).unwrap();
        let id = session.id().to_string();
        {
            let handlers = with(session);
            let machine = Machine::new(program.clone(), None, Config::default());
            let (limits, cancel) = (Limits::default(), CancellationToken::new());
            let mut ignore = |_| {};
            tokio::select! {
                _ = runtime::run(machine, &handlers, &limits, &cancel, &mut ignore) => panic!("it hangs"),
                () = until(|| world.log().contains("hang {")) => {}
            }
        }
        assert_eq!(world.asked().len(), 1);
        let journal = Journal::existing(&file).unwrap();
        assert!(journal.check().unwrap().damaged.is_empty());
        let resumed = journal.resume(&id, &about, &Default::default(), false, Unfinished::Retry).unwrap();
        let report = run(&program, &with(resumed)).await;
        let answer = report.result.unwrap().data().unwrap().to_json().to_string();
        assert!(answer.contains("12A"), "{answer}");
        assert_eq!(world.asked().len(), 1);
    }
}

/// A tool that reads a resource or gets a prompt.
fn part(kind: &str, of: Data, params: &[(&str, Type)], result: Type) -> ToolDecl {
    decl("part", params, result, Some(Data::record([(kind.into(), of)])))
}

fn of_server(name: &str) -> Data {
    Data::list([Data::str("s"), Data::str(name)])
}

async fn read(
    world: &World,
    protocol: Option<&str>,
    tool: ToolDecl,
    args: &[(&str, Data)],
) -> Result<String, String> {
    let args = args.iter().map(|(n, d)| ((*n).into(), d.clone())).collect();
    let code = code(|b| call(b, tool, args));
    let person = world.person(accept(json!({"seat": "1"})));
    let tools =
        one(world.server(protocol)).with_limits(ToolLimits { max_output: 10_000, ..ToolLimits::default() });
    let report = run(&code, &Handlers { approver: Some(person), ..handlers(tools) }).await;
    match report.result {
        Ok(value) => Ok(value.data().unwrap().to_json().to_string()),
        Err(f) => Err(f.message),
    }
}

#[tokio::test]
async fn resources_are_read_in_every_revision() {
    for protocol in [NEW, OLD] {
        let world = World::new();
        let name = [("name", Type::Str)];
        let record = Type::record([("of".into(), Type::Str)]);
        let note = part("resource", of_server("notes:a/{name}"), &name, record);
        let got = read(&world, protocol, note, &[("name", Data::str("b/../c?d"))]).await;
        assert_eq!(got.unwrap(), r#"{"of":"notes:a/b%2F..%2Fc%3Fd"}"#);
        let any = || part("resource", Data::str("s"), &[("uri", Type::Str)], Type::Str);
        let got = read(&world, protocol, any(), &[("uri", Data::str("other:x"))]).await;
        assert!(got.unwrap().contains("other:x"));
        let e = read(&world, protocol, any(), &[("uri", Data::str("notes:none"))]).await.unwrap_err();
        assert!(
            e.contains("MCP server `s`, resource `notes:none`: the server refused: `no such note`"),
            "{e}"
        );
        let e = read(&world, protocol, any(), &[("uri", Data::str("notes:binary"))]).await.unwrap_err();
        assert!(e.contains("it is binary data where Str is expected"), "{e}");
        let e = read(&world, protocol, any(), &[("uri", Data::str("notes:large"))]).await.unwrap_err();
        assert!(e.contains("it has more than 10000 bytes"), "{e}");
        let up = part("resource", of_server("notes:a/{name}"), &name, Type::Str);
        let e = read(&world, protocol, up, &[("name", Data::str(".."))]).await.unwrap_err();
        assert!(e.contains("can't be `.` or `..`") && !world.log().contains("notes:a/.."), "{e}");
    }
    // A server may ask a person before it gives a resource.
    let world = World::new();
    let ask = part("resource", of_server("notes:ask"), &[], Type::Str);
    assert!(read(&world, NEW, ask, &[]).await.unwrap().contains("accept"));
}

#[tokio::test]
async fn prompts_are_got_in_every_revision() {
    for protocol in [NEW, OLD] {
        let world = World::new();
        let params =
            [("code", Type::Str), ("line", Type::option(Type::Num)), ("style", Type::option(Type::Str))];
        let args = [("code", Data::str("x")), ("line", Data::Num(7.into())), ("style", Data::Null)];
        let review = part("prompt", of_server("review"), &params, Type::Str);
        let got = read(&world, protocol, review, &args).await.unwrap();
        // Arguments are texts; absent ones are left out.
        assert!(
            got.contains(r#"{\\\"code\\\":\\\"x\\\",\\\"line\\\":\\\"7\\\"}"#)
                || got.contains(r#"Review {\"code\":\"x\",\"line\":\"7\"}"#),
            "{got}"
        );
        let e =
            read(&world, protocol, part("prompt", of_server("none"), &[], Type::Str), &[]).await.unwrap_err();
        assert!(e.contains("prompt `none`: the server refused: `no such prompt`"), "{e}");
    }
}

#[test]
fn mistakes_in_handlers_of_resources_are_named() {
    let world = World::new();
    let tools = one(world.server(NEW));
    let problem = |kind: &str, of: Data| {
        let decl = part(kind, of, &[("name", Type::Str)], Type::Str);
        tools.check(&decl).unwrap_err().one_line()
    };
    assert!(problem("resource", Data::str("s")).contains("the tool has no parameter `uri`"));
    assert!(problem("resource", of_server("{name}")).contains("the scheme of its URI"));
    assert!(problem("resource", of_server("file:///{nam}")).contains("`{nam}` is not a parameter"));
    assert!(problem("resource", Data::Null).contains("`resource` is not a list of a server and a URI"));
    assert!(problem("prompt", Data::Null).contains("`prompt` is not a list of a server and a prompt"));
    let other = Data::list([Data::str("t"), Data::str("x")]);
    assert!(problem("prompt", other).contains("no MCP server `t` is declared"));
}

#[tokio::test]
async fn models_are_not_asked_for_servers() {
    // The script would answer.
    let world = World::new();
    let models = Models::only(Arc::new(Scripted::parse(r#"["yes"]"#).unwrap()));
    let report = run(&calls("sample"), &Handlers { models, ..handlers(one(world.server(NEW))) }).await;
    assert!(report.result.is_err() && report.usage.model_calls == 0, "{:?}", report.usage);
}
