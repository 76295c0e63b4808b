//! Every provider gives the same answers to the same cases, and ends with an error that names the cause when
//! its endpoint misbehaves.
//!
//! The models behind HTTP speak to a server that speaks their real protocol, whole and as a stream
//! ([`wire`]); the scripted and the recorded model are asked directly.

mod wire;

use core_ir::{Data, LabelSpec, ModelParams, Role, ToolDecl, ToolParam, Type};
use diagnostics::{FileId, Span};
use machine::{Message, Reply};
use runtime::{
    Answer, Backoff, FaultKind, Finish, ModelCall, Progress, Protocol, Provider, Remote, RemoteOptions,
    Scripted, Secret, Work,
};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use wire::{Act, Body, Say, Server};

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

/// Protocols of HTTP models, each with and without streams.
const WAYS: [(Protocol, bool); 14] = [
    (Protocol::Chat, false),
    (Protocol::Chat, true),
    (Protocol::Azure, false),
    (Protocol::Azure, true),
    (Protocol::Bedrock, false),
    (Protocol::Bedrock, true),
    (Protocol::Responses, false),
    (Protocol::Responses, true),
    (Protocol::Anthropic, false),
    (Protocol::Anthropic, true),
    (Protocol::Gemini, false),
    (Protocol::Gemini, true),
    (Protocol::Vertex, false),
    (Protocol::Vertex, true),
];

fn user(text: &str) -> Message {
    Message { role: Role::User, content: text.into(), call: None }
}

fn tool(name: &str, params: &[(&str, Type)]) -> Arc<ToolDecl> {
    let span = Span { file: FileId(0), start: 0, end: 0 };
    let param = |(n, t): &(&str, Type)| ToolParam {
        name: (*n).into(),
        ty: t.clone(),
        bound: LabelSpec::TOP,
        default: None,
    };
    let params = params.iter().map(param).collect();
    ToolDecl { params, description: Some("finds things".into()), ..ToolDecl::unknown(name.into(), span) }
        .into()
}

fn call(result: Option<Type>) -> ModelCall {
    let params = ModelParams { result, purpose: Some("sort tickets".into()), ..ModelParams::default() };
    let system = Message { role: Role::System, content: "be brief".into(), call: None };
    ModelCall {
        messages: vec![system, user("hello")].into(),
        params: Some(Arc::new(params)),
        tools: vec![tool("web.search", &[("q", Type::Str)]), tool("now", &[])],
        max_output: None,
        attempt: 0,
        place: Arc::default(),
        said: Arc::default(),
    }
}

fn options(server: &Server, (protocol, stream): (Protocol, bool)) -> RemoteOptions {
    let mut o = RemoteOptions::new("m-test", &server.url, Some(Secret::new(KEY)));
    (o.protocol, o.stream, o.jitter) = (protocol, Some(stream), Some(7));
    if protocol == Protocol::Bedrock {
        o.key = None;
        o.signing = Some(runtime::AwsCredentials {
            access_key: "AKID".into(),
            secret_key: Secret::new(KEY),
            session_token: Some(Secret::new("SESSION")),
            region: "eu-central-1".into(),
        });
    }
    o.backoff = Backoff { retries: 2, base: Duration::from_millis(1), ..Backoff::default() };
    // No case waits for anything but these.
    (o.read_timeout, o.total_timeout) = (Duration::from_millis(400), Duration::from_millis(1500));
    o
}

async fn ask(provider: Arc<dyn Provider>, call: ModelCall) -> Answer {
    let asked = async {
        match provider.ask(call, Progress::none()) {
            Work::Now(answer) => answer,
            Work::Later(answer) => answer.await,
        }
    };
    // Longer than any limit: whatever the server does, there is an end.
    let answer =
        tokio::time::timeout(Duration::from_secs(60), asked).await.expect("the provider gives up by itself");
    assert!(!format!("{answer:?}").contains("planted"), "{answer:?}");
    answer
}

/// The answers of all models behind HTTP to a call for which the server does these things.
async fn all(acts: &[Act], call: &ModelCall) -> Vec<((Protocol, bool), Answer, Vec<Json>)> {
    let mut out = Vec::new();
    for way in WAYS {
        let server = Server::start(way.0, acts.iter().cloned()).await;
        let provider = Arc::new(Remote::new(options(&server, way)).unwrap());
        let answer = ask(provider, call.clone()).await;
        out.push((way, answer, server.seen()));
    }
    out
}

fn text(t: &str) -> Say {
    Say { text: t.into(), ..Say::default() }
}

fn record(fields: &[(&str, &str)]) -> Data {
    Data::record(fields.iter().map(|(n, v)| ((*n).into(), Data::str(*v))))
}

#[tokio::test]
async fn a_reply_comes_with_its_usage() {
    for (way, answer, seen) in all(&[Act::Say(text("hi"))], &call(None)).await {
        assert_eq!(answer.result, Ok(Reply::Text("hi".into())), "{way:?}");
        assert_eq!((answer.tokens.input, answer.tokens.output), (11, 7), "{way:?}");
        let written = u64::from(matches!(way.0, Protocol::Anthropic | Protocol::Bedrock));
        assert_eq!((answer.tokens.cached, answer.tokens.cache_write), (2, written), "{way:?}");
        assert_eq!(answer.finish, Finish::Stop, "{way:?}");
        assert_eq!(seen.len(), 1, "{way:?}");
    }
    let script = Arc::new(Scripted::parse(r#"["hi"]"#).unwrap());
    let answer = ask(script, call(None)).await;
    assert_eq!((answer.result, answer.finish), (Ok(Reply::Text("hi".into())), Finish::Stop));
}

#[tokio::test]
async fn streams_are_told_piece_by_piece() {
    use runtime::{CancellationToken, Event, Handlers, Limits, Models};
    for (protocol, _) in WAYS.into_iter().filter(|(_, stream)| *stream) {
        let server =
            Server::start(protocol, [Act::Say(text(&format!("one two sk-{} three", &KEY[3..])))]).await;
        let mut o = options(&server, (protocol, true));
        o.stream = None;
        let mut handlers = Handlers::new(Models::only(Arc::new(Remote::new(o).unwrap())));
        handlers.stream = true;
        let mut b = core_ir::Builder::new();
        let at = Span { file: FileId(0), start: 0, end: 0 };
        let prompt = b.lit("say", at);
        let ask = b.add(core_ir::Term::Llm(prompt, Arc::new(ModelParams::default())), at);
        let code = b.finish(ask, &core_ir::Globals::none()).unwrap();
        let machine =
            machine::Machine::new(code.into(), Some(Data::str("hello")), machine::Config::default());
        let mut pieces = Vec::new();
        let mut note = |e: Event| {
            if let Event::Text { text, .. } = e {
                pieces.push(text);
            }
        };
        let report =
            runtime::run(machine, &handlers, &Limits::default(), &CancellationToken::new(), &mut note).await;
        assert_eq!(
            report.result.unwrap().data(),
            Some(Data::str("one two [redacted] three")),
            "{protocol:?}"
        );
        assert!(pieces.len() > 1, "{protocol:?}: {pieces:?}");
        assert_eq!(pieces.concat(), "one two [redacted] three", "{protocol:?}");
    }
}

#[tokio::test]
async fn tools_are_called_natively_and_several_at_once() {
    let calls = |calls: &[(&str, &str)]| {
        let calls = calls.iter().map(|(n, a)| (n.to_string(), a.to_string())).collect();
        Act::Say(Say { calls, ..Say::default() })
    };
    for (way, answer, _) in all(&[calls(&[("web_search", r#"{"q":"x"}"#)])], &call(None)).await {
        let want = Reply::ToolCall { name: "web.search".into(), args: record(&[("q", "x")]) };
        assert_eq!((answer.result, answer.finish), (Ok(want), Finish::ToolCalls), "{way:?}");
    }
    // A wrong name, and arguments that are no JSON, are for the machine, which tells the model.
    let several = [("web_search", r#"{"q":"x"}"#), ("rm", "{}"), ("web_search", "{oops")];
    for (way, answer, _) in all(&[calls(&several)], &call(None)).await {
        let want = Reply::ToolCalls(vec![
            ("web.search".into(), record(&[("q", "x")])),
            ("rm".into(), Data::record([])),
            ("web.search".into(), Data::str("{oops")),
        ]);
        assert_eq!(answer.result, Ok(want), "{way:?}");
    }
}

#[tokio::test]
async fn conversations_with_tools_go_on_in_the_protocol_s_own_way() {
    let called = |args: Data| Message {
        role: Role::Assistant,
        content: "".into(),
        call: Some(Arc::new(("web.search".into(), args))),
    };
    let result = |text: &str| Message { role: Role::Tool, content: text.into(), call: None };
    let mut c = call(None);
    c.messages = vec![
        user("hello"),
        called(record(&[("q", "x")])),
        result("found"),
        called(Data::str("{oops")),
        user("the arguments are not JSON"),
        Message { role: Role::Assistant, content: "well".into(), call: None },
        user("go on"),
    ]
    .into();
    // The server checks the order of messages, and that each call has its result.
    for tools in [c.tools.clone(), Vec::new()] {
        c.tools = tools;
        for (way, answer, _) in all(&[Act::Say(text("done"))], &c).await {
            assert_eq!(answer.result, Ok(Reply::Text("done".into())), "{way:?}");
        }
    }
}

#[tokio::test]
async fn typed_answers_are_asked_for_as_each_provider_accepts() {
    let category = core_ir::EnumType::new("C", vec!["bug".into(), "other".into()]);
    let category = Type::Enum(Arc::new(category));
    for (way, answer, seen) in
        all(&[Act::Say(text(r#"{"value":"bug"}"#))], &call(Some(category.clone()))).await
    {
        if way.0 == Protocol::Bedrock {
            // Its protocol has no field for it.
            assert!(seen[0]["system"].to_string().contains("according to this JSON Schema"), "{}", seen[0]);
            continue;
        }
        assert_eq!(answer.result, Ok(Reply::Text(r#""bug""#.into())), "{way:?}");
        let at = match way.0 {
            Protocol::Chat | Protocol::Azure => "/response_format/json_schema/schema",
            Protocol::Responses => "/text/format/schema",
            Protocol::Anthropic => "/output_config/format/schema",
            Protocol::Gemini | Protocol::Vertex => "/generationConfig/responseJsonSchema",
            Protocol::Bedrock => continue,
        };
        let schema = seen[0].pointer(at).unwrap_or_else(|| panic!("{way:?}: {}", seen[0]));
        assert_eq!(schema["properties"]["value"]["enum"], json!(["bug", "other"]), "{way:?}");
    }
    // Bounds that a provider does not know are left out of what it gets, and said in words; the machine
    // checks them.
    use core_ir::{Comparison, Measure, Num, Pred};
    let bounded = Pred::Compare(Measure::Value, Comparison::Le, Num::from(5));
    let record = Type::record([("n".into(), Type::Refined(Arc::new((Type::Num, bounded))))]);
    for (way, answer, seen) in all(&[Act::Say(text(r#"{"n":9}"#))], &call(Some(record.clone()))).await {
        assert_eq!(answer.result, Ok(Reply::Text(r#"{"n":9}"#.into())), "{way:?}");
        assert!(seen[0].to_string().contains("maximum"), "{way:?}: {}", seen[0]);
    }
    // An endpoint that does not know the field is asked in words.
    let refuse =
        |what: &str| Act::Raw(400, Body::json(wire::error(Protocol::Chat, "invalid_request_error", what)));
    let acts = [
        refuse("response_format / text.format / output_config / response_mime_type: unknown"),
        refuse("json_object: response_format, text.format, output_config, response_mime_type"),
        Act::Say(text(r#"{"n":1}"#)),
    ];
    for (way, answer, seen) in all(&acts, &call(Some(record))).await {
        if way.0 == Protocol::Bedrock {
            continue;
        }
        assert_eq!(answer.result, Ok(Reply::Text(r#"{"n":1}"#.into())), "{way:?}");
        assert!(seen.last().unwrap().to_string().contains("according to this JSON Schema"), "{way:?}");
    }
}

#[tokio::test]
async fn refusals_and_truncation_are_told_apart() {
    let refusal = Say { text: "I won't".into(), refused: true, ..Say::default() };
    let cut = Say { text: "so far".into(), cut: true, ..Say::default() };
    let cases = [
        (refusal, FaultKind::Refused, "the model refused: `I won't`"),
        (cut, FaultKind::CutOff, "the answer was cut off at the limit: `so far`"),
        (text("   "), FaultKind::Empty, "the model's answer is empty"),
    ];
    for (say, kind, want) in cases {
        for (way, answer, _) in all(&[Act::Say(say.clone())], &call(None)).await {
            let e = answer.result.unwrap_err();
            // A model of Google does not decline: the answer is withheld.
            let is_withheld =
                matches!(way.0, Protocol::Gemini | Protocol::Vertex) && kind == FaultKind::Refused;
            let (kind, want) = match is_withheld {
                true => (FaultKind::Filtered, "the endpoint's content filter withheld the answer"),
                false => (kind, want),
            };
            assert_eq!(e.kind, kind, "{way:?}: {e}");
            assert!(e.message.contains(want), "{way:?}: {e}");
            assert!(answer.tokens.output > 0, "{way:?}: what was written is counted");
        }
    }
}

#[tokio::test]
async fn passing_troubles_are_survived() {
    for fault in [
        Act::Error(429, "rate_limit_error"),
        Act::Error(500, "api_error"),
        Act::Error(529, "overloaded_error"),
        Act::Raw(503, Body::text("text/html", "<html>busy</html>")),
        Act::Close,
        Act::Reset,
        Act::Truncate,
    ] {
        for (way, answer, seen) in all(&[fault.clone(), Act::Say(text("hi"))], &call(None)).await {
            assert_eq!(answer.result, Ok(Reply::Text("hi".into())), "{way:?} {fault:?}");
            assert_eq!(seen.len(), 2, "{way:?} {fault:?}");
        }
    }
    for (way, answer, _) in all(&[Act::Drip(text("slowly but surely"))], &call(None)).await {
        assert_eq!(answer.result, Ok(Reply::Text("slowly but surely".into())), "{way:?}");
    }
}

#[tokio::test]
async fn lasting_troubles_end_in_time_with_an_error_that_names_the_cause() {
    let html = Body::text("text/html", &format!("<html>Welcome, {KEY}</html>"));
    let long = Body::text("application/json", &format!("{{\"x\":\"{}\"}}", "y".repeat(10 << 20)));
    let cases: Vec<(Act, FaultKind, &[&str])> = vec![
        (Act::Error(429, "rate_limit_error"), FaultKind::RateLimited, &["HTTP 429", "(after 3 attempts)"]),
        (Act::Error(500, "api_error"), FaultKind::Server, &["HTTP 500", "(after 3 attempts)"]),
        (Act::Error(401, "authentication_error"), FaultKind::Unauthorized, &["check the key"]),
        (Act::Error(404, "not_found_error"), FaultKind::NotFound, &["check the model's name `m-test`"]),
        (
            Act::Error(200, "overloaded_error"),
            FaultKind::Server,
            &["[redacted] is wrong", "(after 3 attempts)"],
        ),
        (Act::Hang, FaultKind::Slow, &["no answer in time"]),
        (Act::HangInBody, FaultKind::Slow, &["in time"]),
        (Act::Close, FaultKind::Connection, &["(after 3 attempts)"]),
        (Act::Reset, FaultKind::Connection, &["(after 3 attempts)"]),
        (Act::Truncate, FaultKind::Connection, &["the answer broke off"]),
        (Act::SlowDrip, FaultKind::Slow, &["no answer within 1.5 s"]),
        (Act::Raw(200, html), FaultKind::Malformed, &["the answer is `text/html`, not JSON", "[redacted]"]),
        (Act::Raw(200, Body::json(json!({}))), FaultKind::Malformed, &["the answer holds no message"]),
        (Act::Raw(200, Body::text("application/json", "{\"a\":")), FaultKind::Malformed, &["cut off"]),
        (Act::Raw(200, long), FaultKind::TooLarge, &["larger than the limit of 8388608 bytes"]),
        (Act::Event("x".repeat(10 << 20)), FaultKind::TooLarge, &["larger than the limit of 8388608 bytes"]),
        (Act::Bytes(b"data: \"\xff\xfe\"\n\n".to_vec()), FaultKind::Malformed, &["not UTF-8"]),
        (Act::Event("no json".into()), FaultKind::Malformed, &["not JSON", "`no json`"]),
    ];
    for (act, kind, wants) in cases {
        for (way, answer, _) in all(std::slice::from_ref(&act), &call(None)).await {
            // Its errors have a status of their own.
            if way == (Protocol::Bedrock, false) && matches!(act, Act::Error(200, _)) {
                continue;
            }
            // These bytes are no frame.
            if way == (Protocol::Bedrock, true) && matches!(act, Act::Bytes(_)) {
                continue;
            }
            let e = answer.result.expect_err(&format!("{way:?} {act:?}"));
            let shown = e.to_string();
            let case = act.to_string();
            assert_eq!(e.kind, kind, "{way:?} {case}: {shown}");
            for want in wants {
                assert!(shown.contains(want), "{way:?} {case}: {shown}");
            }
            assert!(shown.len() < 2000, "{way:?} {case}: {} bytes", shown.len());
        }
    }
}

#[tokio::test]
async fn retry_after_is_obeyed_by_all_calls_of_a_model() {
    for way in WAYS {
        let wait = Act::Later(429, 1);
        let server = Server::start(way.0, [wait, Act::Say(text("hi"))]).await;
        let mut o = options(&server, way);
        o.read_timeout = Duration::from_secs(20);
        o.total_timeout = Duration::from_secs(20);
        let provider = Arc::new(Remote::new(o).unwrap());
        let first = ask(provider.clone(), call(None)).await;
        assert_eq!(first.result, Ok(Reply::Text("hi".into())), "{way:?}");
        assert_eq!(server.seen().len(), 2, "{way:?}");
    }
    // Longer than anybody waits.
    for (way, answer, seen) in all(&[Act::Later(503, 3600)], &call(None)).await {
        assert_eq!(answer.result.unwrap_err().kind, FaultKind::Server, "{way:?}");
        assert_eq!(seen.len(), 1, "{way:?}");
    }
}

#[tokio::test]
async fn endpoints_without_streams_are_asked_without() {
    for way in WAYS.into_iter().filter(|(_, stream)| *stream) {
        let refuse = wire::error(way.0, "invalid_request_error", "`stream` is not supported");
        let acts = [Act::Raw(400, Body::json(refuse)), Act::Say(text("hi"))];
        let server = Server::start(way.0, acts).await;
        let provider = Arc::new(Remote::new(options(&server, way)).unwrap());
        for _ in 0..2 {
            let answer = ask(provider.clone(), call(None)).await;
            assert_eq!(answer.result, Ok(Reply::Text("hi".into())), "{way:?}");
        }
        let streams: Vec<bool> = server.seen().iter().map(|b| b.get("stream").is_some()).collect();
        assert_eq!(streams, [true, false, false], "{way:?}");
    }
}

#[tokio::test]
async fn connections_are_kept() {
    for way in WAYS {
        let server = Server::start(way.0, [Act::Say(text("hi"))]).await;
        let provider = Arc::new(Remote::new(options(&server, way)).unwrap());
        for _ in 0..3 {
            ask(provider.clone(), call(None)).await.result.unwrap();
        }
        // The end of a stream may still be on its way when the next question is asked.
        assert!(server.connections() <= if way.1 { 3 } else { 1 }, "{way:?}: {}", server.connections());
    }
}

#[tokio::test]
async fn a_chain_asks_the_next_where_a_provider_fails_and_not_where_a_model_declines() {
    use runtime::{Environment, ModelSettings, Models};
    let chain = async |first: Act| {
        let a = Server::start(Protocol::Chat, [first]).await;
        let b = Server::start(Protocol::Anthropic, [Act::Say(text("from b"))]).await;
        let file = json!({"model": ["a", "b"], "models": {
            "a": {"model": "m-test", "base_url": a.url, "key_env": "A_KEY", "retries": 0, "read_timeout": 0.4, "price": {"input": 1, "output": 1}},
            "b": {"model": "m-test", "base_url": b.url, "key_env": "A_KEY", "provider": "anthropic", "price": {"input": 2, "output": 0.5}},
        }});
        let file = serde_json::from_value(file).unwrap();
        let settings = ModelSettings { file, ..ModelSettings::default() };
        let models = Models::new(settings, Environment::new([("A_KEY", KEY)])).unwrap();
        let provider = models.resolve(None).unwrap();
        // A budget keeps the most that either may cost, for as many attempts.
        let price = provider.price().unwrap();
        assert_eq!((price.input, price.output, provider.most_attempts()), (2.into(), 1.into(), 2));
        let answer = ask(provider, call(None)).await;
        (answer, b.seen().len())
    };
    for act in [
        Act::Error(500, "api_error"),
        Act::Error(401, "authentication_error"),
        Act::Hang,
        Act::Event("{".into()),
    ] {
        let (answer, asked) = chain(act.clone()).await;
        assert_eq!((answer.result, asked), (Ok(Reply::Text("from b".into())), 1), "{act}");
        let (name, usd) = answer.by.unwrap();
        assert_eq!(name, "m-test");
        // What the first may have used is counted at its price.
        assert!(usd.unwrap() >= "0.0000255".parse().unwrap());
    }
    let (answer, asked) = chain(Act::Say(Say { text: "no".into(), refused: true, ..Say::default() })).await;
    assert_eq!((answer.result.unwrap_err().kind, asked), (FaultKind::Refused, 0));
    let (answer, asked) = chain(Act::Say(text("from a"))).await;
    assert_eq!((answer.result, asked), (Ok(Reply::Text("from a".into())), 0));
}

/// An agent with the tool `look` and four steps.
fn seeker() -> Arc<core_ir::Code> {
    let program = r#"
        tool look(q: String) -> String reads {}
        agent seeker { tools: [look], prompt: "You look things up.", max_steps: 4 }
        task find(q: String) -> String by agent { prompt "find {q}" }
        pipeline main(q: String) -> String { let a = run find with { q: q } by seeker; return a; }
    "#;
    let (module, found) = agentlang::check(FileId(0), program);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    Arc::new(module.lower(module.default_entry().unwrap()).unwrap())
}

/// A model that calls tools for ever is ended by the steps of its agent, or by the budget of the run,
/// whichever is first, and the error says which.
#[tokio::test]
async fn a_loop_of_tool_calls_without_an_end_is_ended() {
    use runtime::{CancellationToken, Environment, Handlers, Limits, Models, Tools};
    const STEPS: usize = 4;
    let code = seeker();
    let run = async |model: Arc<dyn Provider>, limits: Limits| {
        let look: runtime::CustomTool = Arc::new(|_| Box::pin(async { Ok(Data::str("nothing yet")) }));
        let tools = Tools::new(&Environment::default()).with_custom("look", look);
        let handlers = Handlers { tools, ..Handlers::new(Models::only(model)) };
        let input = Some(Data::record([("q".into(), Data::str("it"))]));
        let machine = machine::Machine::new(code.clone(), input, machine::Config::default());
        let (cancel, mut ignore) = (CancellationToken::new(), |_| {});
        let ran = runtime::run(machine, &handlers, &limits, &cancel, &mut ignore);
        // There is an end, and the test does not wait for ever to find that there is none.
        let report = tokio::time::timeout(Duration::from_secs(60), ran).await.expect("it ends");
        (report.result.unwrap_err(), report.usage)
    };
    let few = |calls: Option<u64>, tools: Option<u64>| Limits {
        max_model_calls: calls,
        max_tool_calls: tools,
        ..Limits::default()
    };
    let steps = "agent `seeker` used its 4 steps without an answer";
    let cases = [
        (few(None, None), "", steps),
        (few(Some(3), None), "budget", "the limit of 3 model calls is reached"),
        (few(None, Some(2)), "budget", "the limit of 2 tool calls is reached"),
    ];
    let scripted = || -> Arc<dyn Provider> {
        let again = r#"[{"tool": "look", "args": {"q": "it"}, "repeat": true}]"#;
        Arc::new(Scripted::parse(again).unwrap())
    };
    for (limits, code, why) in cases {
        let (failure, usage) = run(scripted(), limits.clone()).await;
        assert!(failure.message.contains(why), "{failure:?}");
        assert!(code.is_empty() || failure.code.as_str() == code, "{failure:?}");
        assert!(usage.model_calls as usize <= STEPS, "{usage:?}");
        for way in WAYS {
            let call = vec![("look".to_string(), r#"{"q":"it"}"#.to_string())];
            let server = Server::start(way.0, [Act::Say(Say { calls: call, ..Say::default() })]).await;
            let remote = Arc::new(Remote::new(options(&server, way)).unwrap());
            let (failure, _) = run(remote, limits.clone()).await;
            assert!(failure.message.contains(why), "{way:?}: {failure:?}");
            assert_eq!(server.seen().len() as u64, usage.model_calls, "{way:?}");
        }
    }
}

/// A model that thinks gets its thoughts back with the results of the tools that it called, as it said them;
/// so does one whose run was interrupted in between.
#[tokio::test]
async fn thoughts_are_sent_back_with_the_results_of_tools() {
    use runtime::{
        CancellationToken, Environment, Handlers, Journal, Limits, Models, RunIdentity, RunReport, Tools,
        Unfinished,
    };
    let program = r#"tool look(q: Str) -> Str read
tool note(q: Str) -> Str read
let begun = send "go" in (fix[inf] (\more. \t. case t of {
    look a => (let sent = send[tool] (tool[look] a) in more (recv {tools: [look, note], waiting: true, thinking: {type: "enabled", budget_tokens: 1024}, reasoning_effort: "low"})),
    note a => (let sent = send[tool] (tool[note] a) in more (recv {tools: [look, note], waiting: true, thinking: {type: "enabled", budget_tokens: 1024}, reasoning_effort: "low"})),
    none => more (recv {tools: [look, note], thinking: {type: "enabled", budget_tokens: 1024}, reasoning_effort: "low"}),
    final a => a
})) (recv {tools: [look, note], thinking: {type: "enabled", budget_tokens: 1024}, reasoning_effort: "low"})"#;
    let compiled = agentlang::calculus::compile(FileId(0), program);
    let code = Arc::new(compiled.code.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)));
    let say = |text: &str, names: &[&str]| {
        let call = |n: &&str| (n.to_string(), json!({"q": n}).to_string());
        Act::Say(Say { text: text.into(), calls: names.iter().map(call).collect(), ..Say::default() })
    };
    let acts = [say("Two things first.", &["look", "note"]), say("", &["look"]), say("that is it", &[])];
    for way in WAYS {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("j.db");
        let about = RunIdentity::new("test", &code, None, json!({}));
        let run = async |url: &Server, session: runtime::Session, calls: Option<u64>| -> RunReport {
            let act: runtime::CustomTool = Arc::new(|_| Box::pin(async { Ok(Data::str("found")) }));
            let tools =
                Tools::new(&Environment::default()).with_custom("look", act.clone()).with_custom("note", act);
            let model = Arc::new(Remote::new(options(url, way)).unwrap());
            let mut handlers = Handlers { tools, ..Handlers::new(Models::only(model)) };
            handlers.journal = Some(Arc::new(std::sync::Mutex::new(session)));
            let machine = machine::Machine::new(code.clone(), None, machine::Config::default());
            let limits = Limits { max_model_calls: calls, ..Limits::default() };
            let (cancel, mut ignore) = (CancellationToken::new(), |_| {});
            runtime::run(machine, &handlers, &limits, &cancel, &mut ignore).await
        };
        let server = Server::start(way.0, acts.clone()).await;
        let session = Journal::open(&file).unwrap().begin(&about, &Default::default()).unwrap();
        let id = session.id().to_string();
        // After each answer the run is stopped, and another process goes on.
        assert_eq!(run(&server, session, Some(1)).await.result.unwrap_err().code.as_str(), "budget");
        for calls in [Some(2), None] {
            let journal = Journal::existing(&file).unwrap();
            let session = journal.resume(&id, &about, &Default::default(), false, Unfinished::Ask).unwrap();
            let report = run(&server, session, calls).await;
            match calls {
                Some(_) => assert_eq!(report.result.unwrap_err().code.as_str(), "budget", "{way:?}"),
                None => assert_eq!(report.result.unwrap().data(), Some(Data::str("that is it")), "{way:?}"),
            }
        }
        // The server refuses turns that do not begin with its thoughts.
        let seen = server.seen();
        assert_eq!(seen.len(), 3, "{way:?}: {seen:?}");
        if matches!(way.0, Protocol::Gemini | Protocol::Vertex) {
            let contents = seen[2]["contents"].as_array().unwrap();
            let kinds = |c: &Json| -> Vec<String> {
                let kind = |p: &Json| p.as_object().unwrap().keys().next().unwrap().clone();
                c["parts"].as_array().unwrap().iter().map(kind).collect()
            };
            assert_eq!(kinds(&contents[1]), ["text", "text", "functionCall", "functionCall"]);
            assert_eq!(kinds(&contents[2]), ["functionResponse", "functionResponse"]);
            assert_eq!(contents[1]["parts"][2]["thoughtSignature"], wire::SIGNATURE);
            continue;
        }
        if way.0 == Protocol::Responses {
            let kinds: Vec<&str> = seen[2]["input"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|item| item["type"].as_str())
                .collect();
            let (call, output) = ("function_call", "function_call_output");
            let first = ["reasoning", "message", call, call, output, output];
            assert_eq!(kinds, [&first[..], &["reasoning", call, output]].concat());
            continue;
        }
        let messages = seen[2]["messages"].as_array().unwrap();
        if matches!(way.0, Protocol::Chat | Protocol::Azure) {
            let said: Vec<&Json> = messages.iter().filter(|m| m.get("tool_calls").is_some()).collect();
            let calls = |m: &Json| m["tool_calls"].as_array().unwrap().len();
            assert_eq!((said.len(), calls(said[0]), calls(said[1])), (2, 2, 1), "{way:?}");
            assert!(said.iter().all(|m| m["reasoning_content"] == wire::THOUGHT), "{way:?}");
            continue;
        }
        if way.0 == Protocol::Bedrock {
            let kinds = |m: &Json| -> Vec<String> {
                let kind = |b: &Json| b.as_object().unwrap().keys().next().unwrap().clone();
                m["content"].as_array().unwrap().iter().map(kind).collect()
            };
            assert_eq!(kinds(&messages[1]), ["reasoningContent", "text", "toolUse", "toolUse"]);
            assert_eq!(kinds(&messages[2]), ["toolResult", "toolResult"]);
            assert_eq!(kinds(&messages[3]), ["reasoningContent", "toolUse"]);
            continue;
        }
        let kinds = |m: &Json| -> Vec<String> {
            m["content"].as_array().unwrap().iter().map(|b| b["type"].as_str().unwrap().into()).collect()
        };
        assert_eq!(kinds(&messages[1]), ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]);
        assert_eq!(kinds(&messages[2]), ["tool_result", "tool_result"]);
        assert_eq!(kinds(&messages[3]), ["thinking", "redacted_thinking", "tool_use"]);
        assert_eq!(messages[1]["content"].as_array().unwrap()[..2], wire::thoughts());
    }
}

/// A model that names a tool that was not offered, or whose arguments are no JSON or not those of the tool,
/// is told so each time; if it does not learn, the run ends and the error says what it did.
#[tokio::test]
async fn wrong_calls_without_an_end_are_ended() {
    use runtime::{CancellationToken, Environment, Handlers, Limits, Models, Tools};
    let code = seeker();
    let cases = [
        ("rm", "{}", "there is no tool `rm`; offered: look"),
        ("look", "{oops", "the arguments of `look` are no JSON object: \"{oops\""),
        ("look", r#"{"q": 7}"#, "the argument `q` of `look`: $: expected a string, found a number"),
        ("look", r#"{"sk-planted-0zq7xw2rt9lm4kp8vb3nc": 1}"#, "the argument `q` of `look` is missing"),
    ];
    for (name, args, cause) in cases {
        for way in WAYS {
            let calls = vec![(name.to_string(), args.to_string())];
            let server = Server::start(way.0, [Act::Say(Say { calls, ..Say::default() })]).await;
            let remote = Arc::new(Remote::new(options(&server, way)).unwrap());
            let called = Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let count = called.clone();
            let look: runtime::CustomTool = Arc::new(move |_| {
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Box::pin(async { Ok(Data::str("nothing")) })
            });
            let environment = Environment::new([("PLANTED_KEY", KEY)]);
            let tools = Tools::new(&environment).with_custom("look", look);
            let handlers = Handlers { tools, ..Handlers::new(Models::only(remote)) };
            let input = Some(Data::record([("q".into(), Data::str("it"))]));
            let machine = machine::Machine::new(code.clone(), input, machine::Config::default());
            let (limits, cancel, mut ignore) = (Limits::default(), CancellationToken::new(), |_| {});
            let ran = runtime::run(machine, &handlers, &limits, &cancel, &mut ignore);
            let report = tokio::time::timeout(Duration::from_secs(60), ran).await.expect("it ends");
            let failure = report.result.unwrap_err();
            assert!(failure.message.contains(cause), "{way:?} {name} {args}: {failure:?}");
            assert_eq!(called.load(std::sync::atomic::Ordering::Relaxed), 0, "{way:?} {name} {args}");
            assert!(!server.seen().is_empty() && server.seen().len() <= 5, "{way:?} {}", server.seen().len());
        }
    }
}

#[tokio::test]
async fn a_recorded_model_answers_the_conversations_that_it_knows() {
    use runtime::{CancellationToken, Handlers, Journal, Limits, Models, Recorded, RunIdentity};
    use std::sync::Mutex;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let code = {
        let at = Span { file: FileId(0), start: 0, end: 0 };
        let mut b = core_ir::Builder::new();
        let prompt = b.lit("say", at);
        let ask = b.add(core_ir::Term::Llm(prompt, Arc::new(ModelParams::default())), at);
        Arc::new(b.finish(ask, &core_ir::Globals::none()).unwrap())
    };
    let run = async |models: Models, word: &str, record: bool| {
        let mut handlers = Handlers::new(models);
        if record {
            let about = RunIdentity::new("r", &code, Some(Data::str(word)), json!({}));
            let session = Journal::open(&file).unwrap().begin(&about, handlers.models.redactor()).unwrap();
            handlers.journal = Some(Arc::new(Mutex::new(session)));
        }
        let machine = machine::Machine::new(code.clone(), Some(Data::str(word)), machine::Config::default());
        runtime::run(machine, &handlers, &Limits::default(), &CancellationToken::new(), &mut |_| {})
            .await
            .result
    };
    let script = Scripted::parse(r#"["the answer"]"#).unwrap();
    run(Models::only(Arc::new(script)), "hello", true).await.unwrap();
    let recorded = || Models::only(Arc::new(Recorded::load(&file).unwrap()));
    for _ in 0..2 {
        assert_eq!(run(recorded(), "hello", false).await.unwrap().data(), Some(Data::str("the answer")));
    }
    let e = run(recorded(), "bye", false).await.unwrap_err();
    assert!(e.message.contains("has no answer to this conversation, whose end is `bye`"), "{}", e.message);
}

/// The reasons and the delays of Google's errors are in the body.
#[tokio::test]
async fn google_tells_of_keys_and_delays_in_the_body() {
    let error = |code: u16, detail: Json| {
        Act::Raw(code, Body::json(json!({"error": {"code": code, "message": "no", "details": [detail]}})))
    };
    let key =
        error(400, json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}));
    let way = (Protocol::Gemini, false);
    let server = Server::start(way.0, [key]).await;
    let answer = ask(Arc::new(Remote::new(options(&server, way)).unwrap()), call(None)).await;
    let e = answer.result.unwrap_err();
    assert_eq!(e.kind, FaultKind::Unauthorized, "{e}");
    assert!(e.to_string().contains("check the key in"), "{e}");

    let wait = error(429, json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.6s"}));
    let server = Server::start(way.0, [wait, Act::Say(text("hi"))]).await;
    let begun = std::time::Instant::now();
    let answer = ask(Arc::new(Remote::new(options(&server, way)).unwrap()), call(None)).await;
    assert_eq!(answer.result, Ok(Reply::Text("hi".into())));
    assert!(begun.elapsed() >= Duration::from_millis(600), "{:?}", begun.elapsed());
    // A prompt that is blocked has no candidates.
    let blocked = Body::json(
        json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}),
    );
    let server = Server::start(way.0, [Act::Raw(200, blocked)]).await;
    let answer = ask(Arc::new(Remote::new(options(&server, way)).unwrap()), call(None)).await;
    assert_eq!(answer.result.unwrap_err().kind, FaultKind::Filtered);
}

/// Providers that need more than a key say what is missing.
#[tokio::test]
async fn providers_of_clouds_say_which_variable_is_missing() {
    use runtime::{Environment, ModelSettings, Models};
    let make = |provider: &str, env: &[(&str, &str)]| {
        let file = json!({"models": {"m": {"provider": provider, "model": "n"}}});
        let file = serde_json::from_value(file).unwrap();
        let settings = ModelSettings { file, ..ModelSettings::default() };
        let models = Models::new(settings, Environment::new(env.iter().copied())).unwrap();
        models.resolve(Some("m")).map(|_| ()).map_err(|e| (e.message, e.help.unwrap_or_default()))
    };
    let region = ("AWS_DEFAULT_REGION", "eu-central-1");
    let id = ("AWS_ACCESS_KEY_ID", "AKID");
    type Variables = Vec<(&'static str, &'static str)>;
    let cases: Vec<(&str, Variables, &str, &str)> = vec![
        ("vertex", vec![("GOOGLE_ACCESS_TOKEN", KEY)], "`GOOGLE_CLOUD_PROJECT` is not set", "`my-project`"),
        ("vertex", vec![("GOOGLE_CLOUD_PROJECT", "p")], "`GOOGLE_ACCESS_TOKEN` is not set", "in `.env`"),
        ("azure", vec![("AZURE_OPENAI_API_KEY", KEY)], "`AZURE_OPENAI_ENDPOINT` is not set", "azure.com"),
        (
            "azure",
            vec![("AZURE_OPENAI_ENDPOINT", "https://n.openai.azure.com/")],
            "`AZURE_OPENAI_API_KEY` is not",
            "",
        ),
        ("bedrock", vec![id], "`AWS_REGION` is not set", "us-east-1"),
        ("bedrock", vec![region], "`AWS_ACCESS_KEY_ID` is not set", "`AWS_BEARER_TOKEN_BEDROCK`"),
        ("bedrock", vec![region, id], "`AWS_SECRET_ACCESS_KEY` is not set", "`AWS_BEARER_TOKEN_BEDROCK`"),
    ];
    for (provider, env, message, help) in cases {
        let e = make(provider, &env).unwrap_err();
        assert!(
            e.0.contains(message) && e.1.contains(help) && e.0.contains("model `m`"),
            "{provider}: {e:?}"
        );
    }
    for (provider, env) in [
        ("vertex", vec![("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_ACCESS_TOKEN", KEY)]),
        (
            "azure",
            vec![("AZURE_OPENAI_ENDPOINT", "https://n.openai.azure.com/"), ("AZURE_OPENAI_API_KEY", KEY)],
        ),
        ("bedrock", vec![region, id, ("AWS_SECRET_ACCESS_KEY", KEY)]),
        ("bedrock", vec![region, ("AWS_BEARER_TOKEN_BEDROCK", KEY)]),
        ("vllm", vec![]),
    ] {
        assert_eq!(make(provider, &env), Ok(()), "{provider}");
    }
}

/// Azure looks at prompts before a model does.
#[tokio::test]
async fn a_prompt_that_azure_filters_is_an_answer_withheld() {
    let error =
        json!({"error": {"code": "content_filter", "message": "filtered", "status": 400, "param": "prompt"}});
    let way = (Protocol::Azure, false);
    let server = Server::start(way.0, [Act::Raw(400, Body::json(error))]).await;
    let answer = ask(Arc::new(Remote::new(options(&server, way)).unwrap()), call(None)).await;
    assert_eq!(answer.result.unwrap_err().kind, FaultKind::Filtered);
}

/// Where prompts are cached on request, their ends are marked; what that costs is counted.
#[tokio::test]
async fn prompts_are_cached_on_request_and_priced() {
    use runtime::{Environment, ModelSettings, Models};
    for way in WAYS.into_iter().filter(|way| matches!(way.0, Protocol::Anthropic | Protocol::Bedrock)) {
        let server = Server::start(way.0, [Act::Say(text("hi"))]).await;
        let mut o = options(&server, way);
        o.cache = true;
        ask(Arc::new(Remote::new(o).unwrap()), call(None)).await.result.unwrap();
        let seen = &server.seen()[0];
        let marks = seen.to_string().matches("cache_control").count()
            + seen.to_string().matches("cachePoint").count();
        assert_eq!(marks, 2, "{way:?}: {seen}");
        let last = seen["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_array()
            .unwrap()
            .last()
            .unwrap();
        assert!(last.get("cache_control").or(last.get("cachePoint")).is_some(), "{way:?}: {last}");
        // A request whose answer is lost may have been written to the cache.
        let server = Server::start(way.0, [Act::Hang]).await;
        let mut o = options(&server, way);
        o.cache = true;
        let tokens = ask(Arc::new(Remote::new(o).unwrap()), call(None)).await.tokens;
        assert!(tokens.input > 0 && tokens.cache_write == tokens.input, "{way:?}: {tokens:?}");
    }
    let make = |entry: Json| {
        let file = serde_json::from_value(json!({"models": {"m": entry}})).unwrap();
        let settings = ModelSettings { file, ..ModelSettings::default() };
        let env = Environment::new([("ANTHROPIC_API_KEY", KEY), ("OPENAI_API_KEY", KEY)]);
        Models::new(settings, env).unwrap().resolve(Some("m"))
    };
    let e = make(json!({"provider": "anthropic", "cache": true, "price": {"input": 3, "output": 15}}));
    assert_eq!(e.err().unwrap().message, "model `m`: the price of what `cache` writes is unknown");
    let e = make(json!({"cache": true})).err().unwrap();
    assert_eq!(e.message, "model `m`: `openai` has no caching on request");
    let price = json!({"input": 3, "output": 15, "cached": 0.3, "cache_write": 3.75});
    let price =
        make(json!({"provider": "anthropic", "cache": true, "price": price})).unwrap().price().unwrap();
    let mut tokens = runtime::Tokens::new(1_000_000, 100_000);
    assert_eq!(price.of(tokens), "4.5".parse().unwrap());
    (tokens.cached, tokens.cache_write) = (600_000, 300_000);
    // 100,000 as usual, 600,000 from the cache, 300,000 into it, and the reply.
    assert_eq!(price.of(tokens), "3.105".parse().unwrap());
}

/// Parameters that one provider knows are not sent to others, which would refuse them.
#[tokio::test]
async fn parameters_of_a_provider_are_sent_to_it_alone() {
    use runtime::{Environment, ModelSettings, Models};
    for (provider, want) in [("vllm", true), ("llama.cpp", true), ("ollama", false), ("openai", false)] {
        let server = Server::start(Protocol::Chat, [Act::Say(text("hi"))]).await;
        let entry =
            json!({"provider": provider, "model": "m-test", "base_url": server.url, "key_env": "A_KEY"});
        let file = serde_json::from_value(json!({"models": {"m": entry}})).unwrap();
        let settings = ModelSettings { file, ..ModelSettings::default() };
        let models = Models::new(settings, Environment::new([("A_KEY", KEY)])).unwrap();
        let mut c = call(None);
        let extra = vec![("top_k".into(), Data::Num(7.into())), ("top_p".into(), Data::Num(1.into()))];
        c.params = Some(Arc::new(ModelParams { extra, ..ModelParams::default() }));
        ask(models.resolve(Some("m")).unwrap(), c).await.result.unwrap();
        let seen = &server.seen()[0];
        assert_eq!((seen["top_k"] == 7, seen["top_p"] == 1), (want, true), "{provider}: {seen}");
    }
}
