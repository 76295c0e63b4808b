//! The OpenAI-compatible provider against a server that speaks its protocol, faults included.

use crate::support::{Act, Server};
use core_ir::{
    Comparison, Data, EnumType, LabelSpec, Measure, ModelParams, Num, Pred, Role, ToolDecl, ToolParam, Type,
};
use diagnostics::{FileId, Span};
use machine::{Message, Reply};
use runtime::{
    Answer, Backoff, ModelCall, Progress, Provider, Remote, RemoteOptions, Secret, Structured, Work,
};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

fn user(text: &str) -> Message {
    Message { role: Role::User, content: text.into(), call: None }
}

fn call(result: Option<Type>) -> ModelCall {
    ModelCall {
        messages: vec![user("hello")].into(),
        params: Some(Arc::new(ModelParams {
            result,
            purpose: Some("sort tickets".into()),
            ..ModelParams::default()
        })),
        tools: Vec::new(),
        max_output: None,
        attempt: 0,
        place: Arc::default(),
        said: Arc::default(),
    }
}

fn options(server: &Server) -> RemoteOptions {
    let mut o = RemoteOptions::new("gpt-test", &server.url, Some(Secret::new(KEY)));
    o.backoff = Backoff { retries: 2, base: Duration::from_millis(1), ..Backoff::default() };
    o
}

async fn ask(options: RemoteOptions, call: ModelCall) -> Answer {
    let provider = Arc::new(Remote::new(options).unwrap());
    ask_provider(&provider, call).await
}

async fn ask_provider(provider: &Arc<Remote>, call: ModelCall) -> Answer {
    let answer = match provider.clone().ask(call, Progress::none()) {
        Work::Now(answer) => answer,
        Work::Later(answer) => answer.await,
    };
    assert!(!format!("{answer:?} {provider:?}").contains("planted"), "{answer:?}");
    answer
}

/// The reply to a call for which the server does these things, and the requests it got.
async fn text(
    acts: impl IntoIterator<Item = Act>,
    call: ModelCall,
) -> (Result<Reply, String>, Vec<crate::support::Seen>) {
    let server = Server::start(acts).await;
    let answer = ask(options(&server), call).await;
    (answer.result.map_err(|e| e.to_string()), server.seen())
}

async fn failure(act: Act) -> String {
    text([act], call(None)).await.0.unwrap_err()
}

fn ok(text: &str) -> Result<Reply, String> {
    Ok(Reply::Text(text.into()))
}

fn refused(status: u16, message: &str) -> Act {
    let body = json!({"error": {"message": message, "type": "x", "code": null}});
    Act::Raw(status, "application/json", None, body.to_string())
}

#[tokio::test]
async fn a_reply_comes_with_its_usage() {
    let server = Server::start([Act::Say("hi".into())]).await;
    let mut c = call(None);
    let params = ModelParams {
        temperature: Some("0.25".parse().unwrap()),
        max_tokens: Some(99),
        extra: vec![
            ("top_p".into(), Data::Num("0.5".parse().unwrap())),
            ("verbose".into(), Data::Bool(true)),
        ],
        ..ModelParams::default()
    };
    c.params = Some(Arc::new(params));
    let answer = ask(options(&server), c).await;
    assert_eq!(answer.result, Ok(Reply::Text("hi".into())));
    assert_eq!((answer.tokens.input, answer.tokens.output), (11, 7));
    let seen = server.seen();
    assert_eq!(seen[0].authorization.as_deref(), Some("Bearer sk-planted-0zq7xw2rt9lm4kp8vb3nc"));
    let want = json!({"model": "gpt-test", "messages": [{"role": "user", "content": "hello"}], "temperature": 0.25, "top_p": 0.5, "max_tokens": 99});
    assert_eq!(seen[0].body, want);
}

#[tokio::test]
async fn passing_troubles_are_survived() {
    for act in [
        refused(429, "slow down"),
        Act::Raw(429, "text/plain", Some(("retry-after", "0".into())), "slow down".into()),
        refused(500, "oops"),
        Act::Raw(503, "text/html", None, "<html>busy</html>".into()),
        Act::Close,
        Act::Reset,
        Act::Truncate,
    ] {
        let (reply, seen) = text([act.clone(), Act::Say("hi".into())], call(None)).await;
        assert_eq!(reply, ok("hi"), "{act:?}");
        assert_eq!(seen.len(), 2, "{act:?}");
    }
    let drip = text([Act::Drip("slowly".into())], call(None)).await;
    assert_eq!(drip.0, ok("slowly"));
}

#[tokio::test]
async fn retry_after_is_told_and_obeyed() {
    let wait = Act::Raw(429, "application/json", Some(("retry-after", "1".into())), "{}".into());
    let (reply, _) = text([wait, Act::Say("hi".into())], call(None)).await;
    assert_eq!(reply, ok("hi"));
    let date = "Wed, 21 Oct 2099 07:28:00 GMT".to_string();
    let never = Act::Raw(503, "application/json", Some(("retry-after", date)), "{}".into());
    let (reply, seen) = text([never], call(None)).await;
    assert!(reply.unwrap_err().contains("HTTP 503"));
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn lasting_troubles_are_named() {
    let cases = [
        (refused(500, "oops"), "HTTP 500: oops (after 3 attempts)"),
        (
            refused(401, "bad key sk-planted-0zq7xw2rt9lm4kp8vb3nc"),
            "HTTP 401: bad key [redacted] (help: check the key in `OPENAI_API_KEY`)",
        ),
        (refused(404, "no such model"), "check the model's name `gpt-test`"),
        (
            Act::Raw(200, "text/html", None, "<html>Welcome</html>".into()),
            "the answer is `text/html`, not JSON: `<html>Welcome</html>`",
        ),
        (
            Act::Raw(200, "application/json", None, r#"{"choices": [{"mess"#.into()),
            r#"the answer is cut off: `{"choices": [{"mess`"#,
        ),
        (Act::Raw(200, "application/json", None, "".into()), "the answer is cut off: nothing"),
        (
            Act::Raw(200, "application/json", None, "sk-planted-0zq7xw2rt9lm4kp8vb3nc!".into()),
            "at line 1 column 2): `[redacted]!`",
        ),
        (
            Act::Raw(
                200,
                "application/json",
                None,
                r#"{"error": {"message": "out of memory", "code": "oom"}}"#.into(),
            ),
            "HTTP 200: out of memory (oom)",
        ),
        (
            Act::Raw(200, "application/json", None, r#"{"choices": []}"#.into()),
            r#"the answer holds no message: `{"choices":[]}`"#,
        ),
        (
            Act::Raw(200, "application/json", None, r#"{"choices": [{"message": "x"}]}"#.into()),
            "the answer holds no message",
        ),
        (Act::Raw(200, "application/json", None, "[1, 2]".into()), "the answer holds no message"),
        (
            Act::Raw(302, "text/plain", Some(("location", "http://127.0.0.1:9/".into())), "".into()),
            "HTTP 302: nothing",
        ),
        (Act::Close, "(after 3 attempts)"),
        (Act::Reset, "(after 3 attempts)"),
        (Act::Truncate, "the answer broke off"),
        (Act::Message(json!({"role": "assistant", "content": null}), "stop"), "the model's answer is empty"),
        (
            Act::Message(json!({"role": "assistant", "content": null, "refusal": "I won't"}), "stop"),
            "the model refused: `I won't`",
        ),
        (Act::Message(json!({"role": "assistant", "content": "ab"}), "content_filter"), "content filter"),
        (
            Act::Message(json!({"role": "assistant", "content": "so far"}), "length"),
            "the answer was cut off at the limit: `so far`",
        ),
    ];
    for (act, want) in cases {
        let e = failure(act.clone()).await;
        assert!(e.contains(want), "{act:?}\n{e}");
        assert!(e.contains("/v1/chat/completions`: "), "{e}");
    }
}

#[tokio::test]
async fn an_exhausted_quota_is_not_asked_again() {
    let body = json!({"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}});
    let act = Act::Raw(429, "application/json", None, body.to_string());
    let (reply, seen) = text([act], call(None)).await;
    assert!(reply.unwrap_err().contains("insufficient_quota"));
    assert_eq!(seen.len(), 1);
}

#[tokio::test]
async fn a_body_without_end_is_cut() {
    let server = Server::start([Act::Endless]).await;
    let mut o = options(&server);
    o.max_body = 1 << 20;
    let e = ask(o, call(None)).await.result.unwrap_err().to_string();
    assert!(e.contains("the answer is larger than the limit of 1048576 bytes"), "{e}");
    server.until_busy(0).await;
}

#[tokio::test]
async fn silence_ends_in_an_error_and_the_connection_is_closed() {
    for act in [Act::Hang, Act::HangInBody] {
        let server = Server::start([act]).await;
        let mut o = options(&server);
        o.read_timeout = Duration::from_millis(100);
        let answer = ask(o, call(None)).await;
        let e = answer.result.unwrap_err().to_string();
        assert!(e.contains("in time") || e.contains("timed out"), "{e}");
        assert!(answer.tokens.input > 0, "what nobody waited for may be charged");
        server.until_busy(0).await;
        assert_eq!(server.seen().len(), 1);

        let mut o = options(&server);
        o.total_timeout = Duration::from_millis(100);
        let e = ask(o, call(None)).await.result.unwrap_err().to_string();
        assert!(e.contains("no answer within 0.1 s"), "{e}");
        server.until_busy(0).await;
    }
}

#[tokio::test]
async fn dropping_the_question_closes_the_connection() {
    let server = Server::start([Act::Hang]).await;
    let provider = Arc::new(Remote::new(options(&server)).unwrap());
    let Work::Later(answer) = provider.ask(call(None), Progress::none()) else { panic!("takes time") };
    let task = tokio::spawn(answer);
    server.until_busy(1).await;
    task.abort();
    server.until_busy(0).await;
}

#[tokio::test]
async fn an_endpoint_that_is_down_is_named() {
    let server = Server::start([Act::Hang]).await;
    let o = options(&server);
    drop(server);
    let e = ask(o, call(None)).await.result.unwrap_err();
    assert!(e.message.contains("no connection") && e.message.contains("(after 3 attempts)"), "{e}");
    assert_eq!(e.help.as_deref(), Some("check the base URL and that the endpoint is running"));
}

#[tokio::test]
async fn https_is_not_spoken_to_a_plain_server() {
    let server = Server::start([Act::Say("hi".into())]).await;
    let mut o = options(&server);
    o.base_url = server.url.replace("http:", "https:");
    let e = ask(o, call(None)).await.result.unwrap_err();
    assert!(e.message.contains("no connection"), "{e}");
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn typed_answers_are_asked_for_by_schema_and_unwrapped() {
    let category = Type::Enum(Arc::new(EnumType::new("C", vec!["bug".into(), "other".into()])));
    let (reply, seen) = text([Act::Say(r#"{"value":"bug"}"#.into())], call(Some(category))).await;
    assert_eq!(reply, ok(r#""bug""#));
    let format = &seen[0].body["response_format"]["json_schema"];
    assert_eq!((format["name"].as_str(), format["strict"].as_bool()), (Some("sort_tickets"), Some(true)));
    assert_eq!(format["schema"]["properties"]["value"]["enum"], json!(["bug", "other"]));

    // A record is an object already.
    let record = Type::record([("n".into(), Type::Num)]);
    assert_eq!(text([Act::Say(r#"{"n":1}"#.into())], call(Some(record))).await.0, ok(r#"{"n":1}"#));

    // A text with a condition is sent as JSON and comes back as text.
    let long = Pred::Compare(Measure::Length, Comparison::Ge, Num::from(2));
    let refined = Type::Refined(Arc::new((Type::Str, long)));
    assert_eq!(text([Act::Say(r#"{"value":"a\"b"}"#.into())], call(Some(refined))).await.0, ok("a\"b"));

    // Whatever it is, it is JSON.
    assert_eq!(
        text([Act::Say(r#"{"value":["a",1]}"#.into())], call(Some(Type::Dyn))).await.0,
        ok(r#"["a",1]"#)
    );

    // What does not fit is left for the machine to complain about.
    assert_eq!(text([Act::Say("no idea".into())], call(Some(Type::Num))).await.0, ok("no idea"));

    // Plain text needs no schema.
    let (_, seen) = text([Act::Say("x".into())], call(Some(Type::Str))).await;
    assert_eq!(seen[0].body.get("response_format"), None);
}

#[tokio::test]
async fn endpoints_without_schemas_are_asked_in_simpler_ways() {
    let server = Server::start([
        refused(400, "Unsupported parameter: response_format"),
        refused(400, "json_object is not supported"),
        Act::Say("```json\n{\"n\": 1}\n```".into()),
        Act::Say(r#"{"n":2}"#.into()),
    ])
    .await;
    let record = Type::record([("n".into(), Type::Num)]);
    let provider = Arc::new(Remote::new(options(&server)).unwrap());
    let first = ask_provider(&provider, call(Some(record.clone()))).await;
    assert_eq!(first.result, Ok(Reply::Text("```json\n{\"n\": 1}\n```".into())));
    // The way is remembered.
    let second = ask_provider(&provider, call(Some(record.clone()))).await;
    assert_eq!(second.result, Ok(Reply::Text(r#"{"n":2}"#.into())));
    let seen = server.seen();
    let formats: Vec<_> = seen.iter().map(|s| s.body["response_format"]["type"].as_str()).collect();
    assert_eq!(formats, [Some("json_schema"), Some("json_object"), None, None]);
    assert!(seen[2].body["messages"][0]["content"].as_str().unwrap().contains(r#""n":{"type":"number"}"#));

    let mut o = options(&server);
    o.structured = Structured::Prompt;
    ask(o, call(Some(record))).await.result.unwrap();
    assert_eq!(server.seen()[4].body.get("response_format"), None);
}

#[tokio::test]
async fn an_endpoint_that_wants_the_new_name_of_the_limit_is_given_it() {
    let complaint = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let server = Server::start([refused(400, complaint), Act::Say("hi".into())]).await;
    let provider = Arc::new(Remote::new(options(&server)).unwrap());
    for _ in 0..2 {
        let limited = ModelCall { max_output: Some(50), ..call(None) };
        assert_eq!(ask_provider(&provider, limited).await.result, Ok(Reply::Text("hi".into())));
    }
    let names = ["max_tokens", "max_completion_tokens"];
    let seen = server.seen();
    let limits: Vec<_> = seen.iter().map(|s| names.map(|n| s.body.get(n).and_then(Json::as_u64))).collect();
    assert_eq!(limits, [[Some(50), None], [None, Some(50)], [None, Some(50)]]);
}

fn tool(name: &str, params: &[(&str, Type)]) -> ToolDecl {
    let span = Span { file: FileId(0), start: 0, end: 0 };
    let param = |(n, t): &(&str, Type)| ToolParam {
        name: (*n).into(),
        ty: t.clone(),
        bound: LabelSpec::TOP,
        default: None,
    };
    ToolDecl {
        params: params.iter().map(param).collect(),
        description: Some("finds things".into()),
        ..ToolDecl::unknown(name.into(), span)
    }
}

fn called(name: &str, arguments: &str) -> Act {
    let function = json!({"name": name, "arguments": arguments});
    let calls = json!([{"id": "c1", "type": "function", "function": function}]);
    Act::Message(json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

#[tokio::test]
async fn several_tools_are_called_one_after_the_other() {
    let mut c = call(None);
    c.tools = vec![tool("a", &[("q", Type::Str)]).into(), tool("b", &[]).into()];
    let function = |name: &str, arguments: &str| json!({"id": name, "type": "function", "function": {"name": name, "arguments": arguments}});
    let calls = json!([function("a", r#"{"q":"x"}"#), function("nope", ""), function("b", "not json")]);
    let act = Act::Message(json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls");
    let (reply, seen) = text([act], c).await;
    let want = vec![
        ("a".into(), Data::record([("q".into(), Data::str("x"))])),
        // What is wrong with a call is for the machine to tell the model, without losing the others.
        ("nope".into(), Data::record([])),
        ("b".into(), Data::str("not json")),
    ];
    assert_eq!(reply.unwrap(), Reply::ToolCalls(want));
    assert!(seen[0].body.get("parallel_tool_calls").is_none());
}

#[tokio::test]
async fn tools_are_offered_and_called_natively() {
    let mut c = call(None);
    c.tools = vec![
        tool("web.search", &[("q", Type::Str), ("n", Type::option(Type::Num))]).into(),
        tool("web_search", &[]).into(),
    ];
    let args = Data::record([("q".into(), Data::str("x")), ("n".into(), Data::Null)]);
    let (reply, seen) = text([called("web_search", r#"{"q":"x","n":null}"#)], c.clone()).await;
    assert_eq!(reply, Ok(Reply::ToolCall { name: "web.search".into(), args: args.clone() }));
    let names: Vec<_> =
        seen[0].body["tools"].as_array().unwrap().iter().map(|t| t["function"]["name"].clone()).collect();
    assert_eq!(names, ["web_search", "web_search_2"]);
    let (reply, _) = text([called("web_search_2", "")], c.clone()).await;
    assert_eq!(reply, Ok(Reply::ToolCall { name: "web_search".into(), args: Data::record([]) }));
    // Wrong names and arguments are for the machine, which tells the model.
    let (reply, _) = text([called("rm", "{}")], c.clone()).await;
    assert_eq!(reply, Ok(Reply::ToolCall { name: "rm".into(), args: Data::record([]) }));
    let (reply, _) = text([called("web_search", "{oops")], c.clone()).await;
    assert_eq!(reply, Ok(Reply::ToolCall { name: "web.search".into(), args: Data::str("{oops") }));

    // The conversation goes on in the protocol's own way.
    let step = |args: Data| Message {
        role: Role::Assistant,
        content: "".into(),
        call: Some(Arc::new(("web.search".into(), args))),
    };
    let result = Message { role: Role::Tool, content: "found".into(), call: None };
    c.messages = vec![
        user("hello"),
        step(args),
        result.clone(),
        step(Data::record([])),
        user("`q` is missing"),
        result,
    ]
    .into();
    let (reply, seen) = text([Act::Say("done".into())], c).await;
    assert_eq!(reply, ok("done"));
    let roles: Vec<_> = seen[0].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool", "user"]);
}

#[tokio::test]
async fn the_key_never_shows_even_if_the_endpoint_says_it() {
    let echo = format!("your key is {KEY}");
    let escaped = format!("{echo}, also \\u0073k-planted-0zq7xw2rt9lm4kp8vb3nc");
    let cases = [
        refused(400, &format!("invalid header: Bearer {KEY}")),
        Act::Raw(500, "text/plain", None, echo.clone()),
        Act::Raw(200, "text/html", None, echo.clone()),
        Act::Raw(
            200,
            "application/json",
            None,
            format!("{{\"choices\": [{{\"message\": {{\"content\": \"{escaped}\"}}}}]}}"),
        ),
        Act::Message(json!({"role": "assistant", "content": null, "refusal": format!("no, {KEY}")}), "stop"),
        called("t", &json!({"q": KEY}).to_string()),
    ];
    for act in cases {
        let (reply, _) = text([act], call(None)).await;
        assert!(!format!("{reply:?}").contains("planted"), "{reply:?}");
    }
    // An address with a password would show it.
    let o = RemoteOptions::new("m", format!("http://user:{KEY}@127.0.0.1/v1"), None);
    let e = Remote::new(o).unwrap_err();
    assert!(e.message.contains("contains a user or a password") && !format!("{e:?}").contains("planted"));
}
