//! Telemetry against a receiver that decodes OTLP with the protocol's own types.

use crate::support::program::{ask, call, caught, decl, machine};
use core_ir::{Data, LabelSpec, ModelParams, Type};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data as Points;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message;
use runtime::{
    CancellationToken, Environment, Handlers, Limits, Models, Scripted, Telemetry, TelemetryEntry,
    TelemetryOptions,
};
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Action of the collector on a request.
#[derive(Clone, Debug)]
enum Act {
    /// This status, header lines and body.
    Answer(u16, &'static str, Vec<u8>),
    /// An answer after this many milliseconds.
    Slow(u64),
    Reset,
    Hang,
}

fn ok() -> Act {
    Act::Answer(200, "", Vec::new())
}

/// A request: its head and its body.
type Seen = (String, Vec<u8>);

/// A collector that does these things, one for each request, the last one for all further.
struct Collector {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrived: Arc<tokio::sync::Notify>,
}

impl Collector {
    async fn start(acts: impl IntoIterator<Item = Act>) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let acts: Arc<Mutex<VecDeque<Act>>> = Arc::new(Mutex::new(acts.into_iter().collect()));
        let (seen, arrived) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::new(tokio::sync::Notify::new()));
        let (keep, tell) = (seen.clone(), arrived.clone());
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (acts, keep, tell) = (acts.clone(), keep.clone(), tell.clone());
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let (head, body) = loop {
                        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                            return;
                        }
                        let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
                        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
                        let length = head.to_lowercase();
                        let length = length.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap();
                        if bytes.len() == end + 4 + length.parse::<usize>().unwrap() {
                            break (head, bytes[end + 4..].to_vec());
                        }
                    };
                    keep.lock().unwrap().push((head, body));
                    let act = {
                        let mut acts = acts.lock().unwrap();
                        if acts.len() > 1 { acts.pop_front() } else { acts.front().cloned() }
                    };
                    let (status, head, body) = match act.unwrap() {
                        Act::Answer(status, head, body) => (status, head, body),
                        Act::Slow(millis) => {
                            tokio::time::sleep(Duration::from_millis(millis)).await;
                            (200, "", Vec::new())
                        }
                        Act::Reset => return stream.set_zero_linger().unwrap(),
                        Act::Hang => std::future::pending().await,
                    };
                    let length = body.len();
                    let head = format!(
                        "HTTP/1.1 {status} X\r\nconnection: close\r\n{head}content-length: {length}\r\n\r\n"
                    );
                    let _ = stream.write_all(head.as_bytes()).await;
                    let _ = stream.write_all(&body).await;
                    tell.notify_one();
                });
            }
        });
        Collector { url, seen, arrived }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Requests for traces, and those for metrics.
    fn by_signal(&self) -> (Vec<Seen>, Vec<Seen>) {
        self.seen().into_iter().partition(|(head, _)| head.starts_with("POST /v1/traces "))
    }

    fn names(&self) -> Vec<String> {
        let all = self.by_signal().0;
        let mut names: Vec<String> = all.iter().flat_map(|(_, body)| spans(body)).map(|s| s.name).collect();
        names.sort_unstable();
        names
    }
}

fn options(url: &str, entry: Json, env: &[(&str, &str)]) -> TelemetryOptions {
    let entry: TelemetryEntry = serde_json::from_value(entry).unwrap();
    let env = Environment::new(env.iter().copied());
    TelemetryOptions::from_environment(&env, &entry, Some(url), "p.agent main".into()).unwrap().unwrap()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match attributes.iter().find(|a| a.key == key)?.value.as_ref()?.value.as_ref()? {
        Value::StringValue(s) => Some(s),
        _ => None,
    }
}

fn int(attributes: &[KeyValue], key: &str) -> Option<i64> {
    match attributes.iter().find(|a| a.key == key)?.value.as_ref()?.value.as_ref()? {
        Value::IntValue(n) => Some(*n),
        _ => None,
    }
}

/// Runs a program that asks a model, which answers, and calls a tool, which fails. Returns what the end of
/// the telemetry says, and how long the run took.
async fn run_with(mut telemetry: Telemetry) -> (Result<(), String>, Duration) {
    let script = Scripted::parse(r#"["a private answer"]"#).unwrap();
    let mut handlers = Handlers::new(Models::only(Arc::new(script)));
    let fail: runtime::CustomTool = Arc::new(|_| Box::pin(async { Err("no such luck".to_string()) }));
    handlers.tools = handlers.tools.with_custom("dig", fail);
    let m = machine(|b| {
        let said = ask(b, "a private question", ModelParams::default());
        let dug = call(
            b,
            decl("dig", &[("to", Type::Str)], Type::Str, None),
            vec![("to".into(), Data::str("earth"))],
        );
        let dug = caught(b, dug);
        b.add(core_ir::Term::List(vec![said, dug]), crate::support::program::AT)
    });
    let mut note = |e| telemetry.note(&e);
    let begun = Instant::now();
    let report = runtime::run(m, &handlers, &Limits::default(), &CancellationToken::new(), &mut note).await;
    let took = begun.elapsed();
    report.result.as_ref().unwrap();
    (telemetry.send(&report).await, took)
}

/// Runs that program with a collector that accepts everything; returns what arrived.
async fn run(entry: Json, extra: &[(&str, &str)]) -> Vec<Seen> {
    let collector = Collector::start([ok()]).await;
    run_with(Telemetry::new(options(&collector.url, entry, extra)).unwrap()).await.0.unwrap();
    collector.seen()
}

/// A message of the protocol. Not read by `serde_json`, whose numbers of any precision the generated types
/// can't take.
fn decoded<T: serde::de::DeserializeOwned>(body: &str) -> T {
    fn plain(json: &serde_json::Value) -> toml::Value {
        match json {
            serde_json::Value::Object(o) => {
                toml::Value::Table(o.iter().map(|(n, v)| (n.clone(), plain(v))).collect())
            }
            serde_json::Value::Array(a) => toml::Value::Array(a.iter().map(plain).collect()),
            serde_json::Value::String(s) => toml::Value::String(s.clone()),
            serde_json::Value::Bool(b) => toml::Value::Boolean(*b),
            serde_json::Value::Number(n) => {
                n.as_i64().map_or_else(|| toml::Value::Float(n.as_f64().unwrap()), toml::Value::Integer)
            }
            serde_json::Value::Null => panic!("the protocol has no null"),
        }
    }
    plain(&serde_json::from_str(body).unwrap()).try_into().unwrap()
}

/// Decodes a request for traces in either encoding.
fn trace_request(body: &[u8]) -> ExportTraceServiceRequest {
    match std::str::from_utf8(body) {
        Ok(text) if text.starts_with('{') => decoded(text),
        _ => ExportTraceServiceRequest::decode(body).unwrap(),
    }
}

fn spans(body: &[u8]) -> Vec<Span> {
    let request = trace_request(body);
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), Some("entail"));
    request.resource_spans[0].scope_spans[0].spans.clone()
}

#[tokio::test]
async fn a_run_is_a_trace_of_its_requests() {
    // Values of headers are percent-encoded.
    let seen = run(json!({}), &[("OTEL_EXPORTER_OTLP_HEADERS", "x-key=Basic%20sk-planted-0123,b=c")]).await;
    assert!(
        seen[0].0.starts_with("POST /v1/traces ") && seen[0].0.contains("x-key: Basic sk-planted-0123"),
        "{}",
        seen[0].0
    );
    let said = String::from_utf8(seen[0].1.clone()).unwrap();
    assert!(!said.contains("private") && !said.contains("earth"), "{said}");
    assert!(!seen.iter().any(|(_, body)| String::from_utf8_lossy(body).contains("planted")));
    let spans = spans(&seen[0].1);
    let names: Vec<&str> = spans.iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["invoke_agent p.agent main", "chat scripted", "execute_tool dig"]);
    let [root, chat, tool] = &spans[..] else { panic!() };
    assert_eq!((root.trace_id.len(), root.span_id.len(), root.parent_span_id.len()), (16, 8, 0));
    for span in [chat, tool] {
        assert_eq!((&span.trace_id, &span.parent_span_id), (&root.trace_id, &root.span_id));
        assert!(
            span.start_time_unix_nano >= root.start_time_unix_nano
                && span.end_time_unix_nano <= root.end_time_unix_nano
        );
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano && span.start_time_unix_nano > 0);
    }
    assert_ne!(chat.span_id, tool.span_id);
    assert_eq!((chat.kind(), tool.kind()), (SpanKind::Client, SpanKind::Internal));
    assert_eq!(text(&chat.attributes, "gen_ai.operation.name"), Some("chat"));
    assert_eq!(int(&chat.attributes, "gen_ai.usage.output_tokens"), Some(0));
    assert_eq!(text(&tool.attributes, "gen_ai.tool.name"), Some("dig"));
    assert_eq!(tool.status.as_ref().unwrap().message, "no such luck");
    assert_eq!(int(&root.attributes, "entail.tool_calls"), Some(1));

    let metrics: ExportMetricsServiceRequest = decoded(std::str::from_utf8(&seen[1].1).unwrap());
    let metrics = &metrics.resource_metrics[0].scope_metrics[0].metrics;
    let names: Vec<&str> = metrics.iter().map(|m| &*m.name).collect();
    assert_eq!(names, ["gen_ai.client.token.usage", "gen_ai.client.operation.duration", "entail.cost"]);
    let Some(Points::Histogram(times)) = &metrics[1].data else { panic!("{:?}", metrics[1]) };
    assert_eq!(times.data_points.len(), 2);
    for p in &times.data_points {
        assert_eq!(
            (p.count, p.bucket_counts.iter().sum::<u64>(), p.bucket_counts.len()),
            (1, 1, p.explicit_bounds.len() + 1)
        );
    }
}

/// A span for each time an agent is at work, with its questions and its tools beneath it; what no agent asks
/// is beneath the run.
#[tokio::test]
async fn agents_have_spans_of_their_own() {
    let program = r#"
        tool look(q: String) -> String reads {}
        tool file(q: String) -> String reads {}
        agent seeker { tools: [look], prompt: "You look things up.", max_steps: 5 }
        agent judge { tools: [], prompt: "You judge." }
        task find(q: String) -> String by agent { prompt "find {q}" }
        task rate(q: String) -> String by agent { prompt "rate {q}" }
        pipeline main() -> String {
            let a = run find with { q: "it" } by seeker;
            let b = run find with { q: a } by seeker;
            let c = run file with { q: b };
            let d = run rate with { q: c } by judge;
            return d;
        }
    "#;
    let (module, found) = agentlang::check(crate::support::program::AT.file, program);
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let code = Arc::new(module.lower(module.default_entry().unwrap()).unwrap());
    let collector = Collector::start([ok()]).await;
    let options = TelemetryOptions { name: "p main".into(), ..options(&collector.url, json!({}), &[]) };
    let mut telemetry = Telemetry::new(options).unwrap();
    let script = r#"[{"tool": "look", "args": {"q": "it"}}, "first", "second", "third"]"#;
    let mut handlers = Handlers::new(Models::only(Arc::new(Scripted::parse(script).unwrap())));
    for tool in ["look", "file"] {
        let echo: runtime::CustomTool = Arc::new(|args| Box::pin(async move { Ok(args[0].1.clone()) }));
        handlers.tools = handlers.tools.with_custom(tool, echo);
    }
    let m = machine::Machine::new(code, Some(Data::record([])), machine::Config::default());
    let mut note = |e| telemetry.note(&e);
    let report = runtime::run(m, &handlers, &Limits::default(), &CancellationToken::new(), &mut note).await;
    assert_eq!(report.result.as_ref().unwrap().data(), Some(Data::str("third")));
    telemetry.send(&report).await.unwrap();
    let spans = spans(&collector.seen()[0].1);
    let name_of = |id: &[u8]| spans.iter().position(|s| s.span_id == id);
    let tree: Vec<(&str, Option<usize>)> =
        spans.iter().map(|s| (&*s.name, name_of(&s.parent_span_id))).collect();
    assert_eq!(
        tree,
        [
            ("invoke_agent p main", None),
            ("invoke_agent seeker", Some(0)),
            ("invoke_agent seeker", Some(0)),
            ("invoke_agent judge", Some(0)),
            ("chat scripted", Some(1)),
            ("execute_tool look", Some(1)),
            ("chat scripted", Some(1)),
            ("chat scripted", Some(2)),
            ("execute_tool file", Some(0)),
            ("chat scripted", Some(3)),
        ]
    );
    assert_eq!(text(&spans[3].attributes, "gen_ai.agent.name"), Some("judge"));
    for s in &spans[1..] {
        let parent = &spans[name_of(&s.parent_span_id).unwrap()];
        assert!(s.start_time_unix_nano >= parent.start_time_unix_nano);
        assert!(s.end_time_unix_nano <= parent.end_time_unix_nano);
    }
}

#[tokio::test]
async fn content_is_told_on_request_and_a_parent_is_kept() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let env = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"), ("TRACEPARENT", parent)];
    let seen = run(json!({}), &env).await;
    let spans = spans(&seen[0].1);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(&spans[0].trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&spans[0].parent_span_id), "b7ad6b7169203331");
    assert!(text(&spans[1].attributes, "gen_ai.input.messages").unwrap().contains("a private question"));
    assert!(text(&spans[1].attributes, "gen_ai.output.messages").unwrap().contains("a private answer"));
    assert_eq!(text(&spans[2].attributes, "gen_ai.tool.call.arguments"), Some(r#"{"to":"earth"}"#));
}

/// The binary encoding says what the JSON says.
#[tokio::test]
async fn both_encodings_say_the_same() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let env = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"), ("TRACEPARENT", parent)];
    let binary = run(json!({"protocol": "http/protobuf"}), &env).await;
    let json = run(json!({"protocol": "http/json"}), &env).await;
    assert!(binary.iter().all(|(head, _)| head.contains("content-type: application/x-protobuf")));
    // Times and the name of the run differ from run to run.
    let plain = |mut request: ExportTraceServiceRequest| {
        for span in
            request.resource_spans.iter_mut().flat_map(|r| &mut r.scope_spans).flat_map(|s| &mut s.spans)
        {
            assert!(span.start_time_unix_nano > 1_700_000_000_000_000_000 && span.span_id.len() == 8);
            (span.start_time_unix_nano, span.end_time_unix_nano) = (0, 0);
            (span.span_id, span.parent_span_id) = (Vec::new(), Vec::new());
            span.attributes.retain(|a| a.key != "gen_ai.conversation.id");
            span.events.iter_mut().for_each(|e| e.time_unix_nano = 0);
        }
        request
    };
    let read = |seen: &[Seen]| plain(trace_request(&seen[0].1));
    assert_eq!(read(&binary), read(&json));
    assert!(read(&binary).resource_spans[0].scope_spans[0].schema_url.ends_with("/1.40.0"));
    let of_json: ExportMetricsServiceRequest = decoded(std::str::from_utf8(&json[1].1).unwrap());
    let of_binary = ExportMetricsServiceRequest::decode(&*binary[1].1).unwrap();
    let plain = |mut request: ExportMetricsServiceRequest| {
        for metric in &mut request.resource_metrics[0].scope_metrics[0].metrics {
            match &mut metric.data {
                Some(Points::Histogram(h)) => {
                    for p in &mut h.data_points {
                        assert_eq!(p.bucket_counts.iter().sum::<u64>(), p.count);
                        (p.start_time_unix_nano, p.time_unix_nano) = (0, 0);
                        // Times depend on the machine.
                        if metric.unit == "s" {
                            (p.sum, p.bucket_counts) = (None, Vec::new());
                        }
                    }
                }
                Some(Points::Sum(s)) => {
                    s.data_points
                        .iter_mut()
                        .for_each(|p| (p.start_time_unix_nano, p.time_unix_nano) = (0, 0));
                }
                other => panic!("{other:?}"),
            }
        }
        request
    };
    assert_eq!(plain(of_binary), plain(of_json));
}

#[tokio::test]
async fn labels_limits_and_bounds_are_attributes() {
    let collector = Collector::start([ok()]).await;
    let limits =
        Limits { max_model_calls: Some(9), max_usd: Some("0.5".parse().unwrap()), ..Limits::default() };
    let bound = runtime::RunBound { model_calls: Some(1), usd: Some(0.25), ..Default::default() };
    let telemetry = Telemetry::new(options(&collector.url, json!({}), &[])).unwrap();
    run_with(telemetry.limited(&limits).bounded(&bound)).await.0.unwrap();
    let spans = spans(&collector.seen()[0].1);
    let [root, chat, tool] = &spans[..] else { panic!() };
    assert_eq!(int(&root.attributes, "entail.limit.model_calls"), Some(9));
    assert_eq!(int(&root.attributes, "entail.bound.model_calls"), Some(1));
    // A bound that is not known is not told.
    assert!(root.attributes.iter().all(|a| a.key != "entail.bound.tool_calls"));
    let double =
        |key: &str| match root.attributes.iter().find(|a| a.key == key)?.value.as_ref()?.value.as_ref()? {
            Value::DoubleValue(x) => Some(*x),
            _ => None,
        };
    assert_eq!((double("entail.limit.usd"), double("entail.bound.usd")), (Some(0.5), Some(0.25)));
    assert_eq!(int(&root.attributes, "entail.refusals"), Some(0));
    for span in [chat, tool] {
        for key in ["entail.label.channel", "entail.label.answer"] {
            assert!(text(&span.attributes, key).is_some(), "{key}: {span:?}");
        }
    }
    assert!(text(&root.attributes, "entail.label").is_some());
}

#[tokio::test]
async fn a_refused_call_is_an_event_of_the_run() {
    // The argument is untrusted, and the tool takes none such.
    let code = crate::support::program::code(|b| {
        let mut tool = decl("post", &[("q", Type::Str)], Type::Str, None);
        tool.params[0].bound = LabelSpec::BOTTOM;
        let tool = b.tool(tool);
        let at = crate::support::program::AT;
        let (tool, label, q) = (
            b.add(core_ir::Term::Tool(tool), at),
            b.lit(Data::list([Data::str("U")]), at),
            b.lit("a private word", at),
        );
        let q = b.add(core_ir::Term::Relabel(label, q), at);
        let args = b.add(core_ir::Term::Record(vec![("q".into(), q)]), at);
        b.app(tool, args, at)
    });
    let collector = Collector::start([ok()]).await;
    let mut telemetry = Telemetry::new(options(&collector.url, json!({}), &[])).unwrap();
    let handlers = Handlers::new(Models::only(Arc::new(Scripted::parse(r#"["x"]"#).unwrap())));
    let m = machine::Machine::new(code, None, machine::Config::default());
    let mut note = |e| telemetry.note(&e);
    let report = runtime::run(m, &handlers, &Limits::default(), &CancellationToken::new(), &mut note).await;
    assert!(report.result.as_ref().unwrap_err().refusal.is_some(), "{report:?}");
    telemetry.send(&report).await.unwrap();
    let spans = spans(&collector.seen()[0].1);
    let [event] = &spans[0].events[..] else { panic!("{spans:?}") };
    assert_eq!(event.name, "refusal");
    assert_eq!(text(&event.attributes, "entail.refusal.part"), Some("the argument `q`"));
    assert_eq!(text(&event.attributes, "entail.refusal.name"), Some("post"));
    assert!(text(&event.attributes, "entail.refusal.bound").is_some());
    assert_eq!(int(&spans[0].attributes, "entail.refusals"), Some(1));
}

/// A request that failed for a passing reason is sent again, after the time that the collector asks for.
#[tokio::test]
async fn passing_troubles_of_a_collector_are_survived() {
    for act in [
        Act::Answer(429, "retry-after: 1\r\n", b"slow down".to_vec()),
        Act::Answer(503, "", b"<html>busy</html>".to_vec()),
        Act::Answer(502, "retry-after: 0\r\n", Vec::new()),
        Act::Reset,
        Act::Slow(300),
    ] {
        let collector = Collector::start([act.clone(), ok()]).await;
        let begun = Instant::now();
        let telemetry =
            Telemetry::new(options(&collector.url, json!({"protocol": "http/protobuf"}), &[])).unwrap();
        run_with(telemetry).await.0.unwrap_or_else(|why| panic!("{act:?}: {why}"));
        if matches!(act, Act::Answer(429, ..)) {
            assert!(begun.elapsed() >= Duration::from_secs(1), "{act:?}");
        }
        let spans = spans(&collector.by_signal().0.last().unwrap().1);
        assert_eq!(spans.len(), 3, "{act:?}");
    }
}

/// A run is not delayed by its collector, and its end waits no longer than the settings say.
#[tokio::test]
async fn lasting_troubles_of_a_collector_are_told_and_delay_no_run() {
    let answer = |status: u16, body: &[u8]| Act::Answer(status, "", body.to_vec());
    let cases: Vec<(Act, &str)> = vec![
        (answer(500, b"x"), "4 could not be sent: HTTP 500"),
        (answer(401, b"sk-planted-0123"), "could not be sent: HTTP 401"),
        (answer(200, &b"y".repeat(10 << 20)), "its answer is larger than 65536 bytes"),
        (answer(200, b"<html>"), "its answer is not one of OTLP"),
        (Act::Answer(429, "retry-after: 3600\r\n", Vec::new()), "could not be sent: HTTP 429"),
        (Act::Hang, "were not sent within 0.7 s"),
        (answer(503, b""), "were not sent within 0.7 s"),
    ];
    for (act, want) in cases {
        let collector = Collector::start([act.clone()]).await;
        let env = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sk-planted-0123")];
        let telemetry = Telemetry::new(options(&collector.url, json!({"flush_timeout": 0.7}), &env)).unwrap();
        let begun = Instant::now();
        let (sent, took) = run_with(telemetry.live("r1")).await;
        let why = sent.unwrap_err();
        assert!(took < Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(3), "{took:?}");
        assert!(why.contains(&format!("telemetry for `{}`", collector.url)), "{why}");
        let want = want.replace("4 could", "could");
        assert!(why.contains(&want) && !why.contains("planted") && why.len() < 500, "{want}: {why}");
    }
    // Nobody is there.
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let telemetry = Telemetry::new(options(&format!("http://{closed}"), json!({}), &[])).unwrap();
    let begun = Instant::now();
    let (sent, took) = run_with(telemetry.live("r1")).await;
    let why = sent.unwrap_err();
    assert!(why.contains("could not be sent: no connection"), "{why}");
    assert!(
        took < Duration::from_millis(300) && begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
}

/// A collector that is overloaded is not asked more often because runs end.
#[tokio::test]
async fn an_overloaded_collector_is_left_alone_while_runs_end() {
    let collector = Collector::start([Act::Answer(503, "", Vec::new())]).await;
    let first = Telemetry::new(options(&collector.url, json!({"flush_timeout": 0.05}), &[])).unwrap();
    let others: Vec<Telemetry> = (0..10).map(|n| first.another(format!("p{n}"), None)).collect();
    let begun = Instant::now();
    for telemetry in std::iter::once(first).chain(others) {
        run_with(telemetry).await.0.unwrap_err();
    }
    // The shortest wait is a quarter of a second. There were eleven ends of runs.
    let most = 3 + begun.elapsed().as_millis() / 250;
    assert!((collector.seen().len() as u128) <= most, "{} in {:?}", collector.seen().len(), begun.elapsed());
}

#[tokio::test]
async fn a_partial_success_is_counted() {
    let json =
        br#"{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old, sk-planted-0123"}}"#.to_vec();
    // Field 1, a message: 2 rejected, because of "full".
    let binary = vec![0x0a, 8, 0x08, 2, 0x12, 4, b'f', b'u', b'l', b'l'];
    for (protocol, body, want) in
        [("http/json", json, "too old, [redacted]"), ("http/protobuf", binary, "full")]
    {
        let collector = Collector::start([Act::Answer(200, "", body), ok()]).await;
        let env = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sk-planted-0123")];
        let telemetry =
            Telemetry::new(options(&collector.url, json!({ "protocol": protocol }), &env)).unwrap();
        let another = telemetry.another("q".into(), None);
        let why = run_with(telemetry).await.0.unwrap_err();
        assert!(why.contains("the collector rejected some of 3: "), "{why}");
        assert!(why.ends_with(want), "{why}");
        let (spans, metrics) = another.delivered();
        assert_eq!((spans.sent, spans.rejected, spans.failed, spans.dropped), (1, 2, 0, 0), "{protocol}");
        assert_eq!(metrics.sent, 3, "{protocol}");
    }
}

/// A queue that is full drops what is new, counts it, and delays nothing.
#[tokio::test]
async fn a_full_queue_drops_and_counts() {
    let collector = Collector::start([Act::Hang]).await;
    let entry = json!({"queue": 2, "flush_timeout": 0.2});
    let telemetry = Telemetry::new(options(&collector.url, entry, &[])).unwrap();
    let another = telemetry.another("q".into(), None);
    let (sent, took) = run_with(telemetry).await;
    let why = sent.unwrap_err();
    assert!(why.contains("were dropped because 2 were waiting already"), "{why}");
    assert!(took < Duration::from_millis(300), "{took:?}");
    let (spans, metrics) = another.delivered();
    // Three spans and three metrics for two places.
    assert_eq!((spans.dropped, metrics.dropped), (1, 3));
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_errors_with_a_remedy() {
    let read = |entry: Json, env: &[(&str, &str)]| {
        let entry: TelemetryEntry = serde_json::from_value(entry).unwrap();
        let env = Environment::new(env.iter().copied());
        TelemetryOptions::from_environment(&env, &entry, None, "x".into())
    };
    assert!(read(json!({}), &[]).unwrap().is_none());
    let at = json!({"endpoint": "http://127.0.0.1:1"});
    assert_eq!(read(at.clone(), &[]).unwrap().unwrap().endpoint, "http://127.0.0.1:1");
    assert!(read(at.clone(), &[("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
    let other = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:2");
    assert_eq!(read(at.clone(), &[other]).unwrap().unwrap().endpoint, "http://127.0.0.1:2");
    let e = read(at.clone(), &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err();
    assert_eq!(e.message, "`OTEL_EXPORTER_OTLP_PROTOCOL`: telemetry can't be sent by `grpc`");
    assert!(e.help.unwrap().contains("gRPC is not built in: write `http/json` or `http/protobuf`"));
    for (entry, env, want) in [
        (json!({"endpoint": "http://h", "protocol": "x"}), ("A", "b"), "`protocol` of `[telemetry]`"),
        (json!({"endpoint": "http://h", "queue": 0}), ("A", "b"), "a queue of 0"),
        (
            json!({"endpoint": "http://h", "flush_timeout": -1.0}),
            ("A", "b"),
            "`flush_timeout` of `[telemetry]`",
        ),
        (
            at.clone(),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            "`OTEL_EXPORTER_OTLP_TIMEOUT` is not a whole number",
        ),
        (at, ("OTEL_BSP_MAX_QUEUE_SIZE", "0"), "a queue of 0"),
    ] {
        let e = read(entry, &[env]).unwrap_err();
        assert!(e.message.contains(want) && e.help.is_some(), "{e:?}");
    }
}

/// The run goes on only after the span of its first request has arrived.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_told_of_before_the_run_ends() {
    let collector = Collector::start([ok()]).await;
    let arrived = collector.arrived.clone();
    let mut telemetry = Telemetry::new(options(&collector.url, json!({}), &[])).unwrap().live("r1");
    let mut handlers = Handlers::new(Models::only(Arc::new(Scripted::parse(r#"["first"]"#).unwrap())));
    handlers.run = Some("r1".into());
    let wait: runtime::CustomTool = Arc::new(move |_| {
        let arrived = arrived.clone();
        Box::pin(async move {
            arrived.notified().await;
            Ok(Data::str("seen"))
        })
    });
    handlers.tools = handlers.tools.with_custom("wait", wait);
    let m = machine(|b| {
        let said = ask(b, "a question", ModelParams::default());
        let waited = call(b, decl("wait", &[], Type::Str, None), vec![]);
        b.add(core_ir::Term::List(vec![said, waited]), crate::support::program::AT)
    });
    let mut note = |e| telemetry.note(&e);
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let run = runtime::run(m, &handlers, &limits, &cancel, &mut note);
    let report = tokio::time::timeout(std::time::Duration::from_secs(60), run).await.unwrap();
    report.result.as_ref().unwrap();
    telemetry.send(&report).await.unwrap();
    let traces = collector.by_signal().0;
    let first = spans(&traces[0].1);
    assert_eq!(first.iter().map(|s| &*s.name).collect::<Vec<_>>(), ["chat scripted"]);
    // Each once, and all in one trace, under the run.
    assert_eq!(collector.names(), ["chat scripted", "execute_tool wait", "invoke_agent p.agent main"]);
    let spans: Vec<Span> = traces.iter().flat_map(|(_, body)| spans(body)).collect();
    let root = spans.iter().find(|s| s.name.starts_with("invoke_agent")).unwrap();
    assert!(spans.iter().all(|s| s.trace_id == root.trace_id));
    assert_eq!(spans.iter().filter(|s| s.parent_span_id == root.span_id).count(), 2);
}
