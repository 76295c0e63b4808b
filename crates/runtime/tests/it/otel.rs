//! Telemetry against a receiver that decodes OTLP with the protocol's own types.

use crate::support::program::{ask, call, caught, decl, machine};
use core_ir::{Data, ModelParams, Type};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data as Points;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use runtime::{
    CancellationToken, Environment, Handlers, Limits, Models, Scripted, Telemetry, TelemetryOptions,
};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Takes two requests and gives their paths, heads and bodies.
async fn receiver(status: u16) -> (String, tokio::task::JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let (head, body) = loop {
                stream.read_buf(&mut bytes).await.unwrap();
                let text = String::from_utf8(bytes.clone()).unwrap();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.to_lowercase();
                let length =
                    length.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().to_string();
                if body.len() == length.parse::<usize>().unwrap() {
                    break (head.to_string(), body.to_string());
                }
            };
            let answer = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            seen.push((head, body));
            if status != 200 {
                break;
            }
        }
        seen
    });
    (url, task)
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

/// Runs a program that asks a model, which answers, and calls a tool, which fails; gives what arrived.
async fn run(extra: &[(&str, &str)]) -> Vec<(String, String)> {
    let (url, task) = receiver(200).await;
    let env: Vec<(&str, &str)> =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", &*url)].into_iter().chain(extra.iter().copied()).collect();
    let env = Environment::new(env);
    let options = TelemetryOptions::from_environment(&env, None, "p.agent main".into()).unwrap();
    let mut telemetry = Telemetry::new(options).unwrap();
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
    let report = runtime::run(m, &handlers, &Limits::default(), &CancellationToken::new(), &mut note).await;
    report.result.as_ref().unwrap();
    telemetry.send(&report).await.unwrap();
    task.await.unwrap()
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

fn spans(body: &str) -> Vec<Span> {
    let request: ExportTraceServiceRequest = decoded(body);
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), Some("entail"));
    request.resource_spans[0].scope_spans[0].spans.clone()
}

#[tokio::test]
async fn a_run_is_a_trace_of_its_requests() {
    let seen = run(&[("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sk-planted-0123,b=c")]).await;
    assert!(
        seen[0].0.starts_with("POST /v1/traces ") && seen[0].0.contains("x-key: sk-planted-0123"),
        "{}",
        seen[0].0
    );
    assert!(!seen[0].1.contains("private") && !seen[0].1.contains("earth"), "{}", seen[0].1);
    assert!(!seen.iter().any(|(_, body)| body.contains("planted")));
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

    let metrics: ExportMetricsServiceRequest = decoded(&seen[1].1);
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
    let (url, task) = receiver(200).await;
    let options =
        TelemetryOptions::from_environment(&Environment::default(), Some(&url), "p main".into()).unwrap();
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
    let spans = spans(&task.await.unwrap()[0].1);
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
    let seen =
        run(&[("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"), ("TRACEPARENT", parent)]).await;
    let spans = spans(&seen[0].1);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(&spans[0].trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&spans[0].parent_span_id), "b7ad6b7169203331");
    assert!(text(&spans[1].attributes, "gen_ai.input.messages").unwrap().contains("a private question"));
    assert!(text(&spans[1].attributes, "gen_ai.output.messages").unwrap().contains("a private answer"));
    assert_eq!(text(&spans[2].attributes, "gen_ai.tool.call.arguments"), Some(r#"{"to":"earth"}"#));
}

#[tokio::test]
async fn a_receiver_that_refuses_is_named() {
    let (url, _task) = receiver(500).await;
    let options =
        TelemetryOptions::from_environment(&Environment::default(), Some(&url), "x".into()).unwrap();
    let telemetry = Telemetry::new(options).unwrap();
    let script = Scripted::parse(r#"["x"]"#).unwrap();
    let handlers = Handlers::new(Models::only(Arc::new(script)));
    let m = machine(|b| b.lit("x", crate::support::program::AT));
    let report = runtime::run(m, &handlers, &Limits::default(), &CancellationToken::new(), &mut |_| {}).await;
    let why = telemetry.send(&report).await.unwrap_err();
    assert_eq!(why, format!("traces could not be sent to `{url}`: HTTP 500"));
    assert!(TelemetryOptions::from_environment(&Environment::default(), None, "x".into()).is_none());
}

/// The run goes on only after the span of its first request has arrived.
#[tokio::test(flavor = "multi_thread")]
async fn requests_are_told_of_before_the_run_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (arrived, all) = (Arc::new(tokio::sync::Notify::new()), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (tell, keep) = (arrived.clone(), all.clone());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            let body = loop {
                stream.read_buf(&mut bytes).await.unwrap();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.to_lowercase();
                let length =
                    length.lines().find_map(|l| l.strip_prefix("content-length: ")).unwrap().to_string();
                if body.len() == length.parse::<usize>().unwrap() {
                    break body.to_string();
                }
            };
            keep.lock().unwrap().push(body);
            let answer = "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).await.unwrap();
            tell.notify_one();
        }
    });
    let options =
        TelemetryOptions::from_environment(&Environment::default(), Some(&url), "p".into()).unwrap();
    let mut telemetry = Telemetry::new(options).unwrap().live("r1");
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
    let all = all.lock().unwrap().clone();
    let first = spans(&all[0]);
    assert_eq!(first.iter().map(|s| &*s.name).collect::<Vec<_>>(), ["chat scripted"]);
    // Each once, and all in one trace, under the run.
    let spans: Vec<Span> =
        all.iter().filter(|b| b.contains("resourceSpans")).flat_map(|b| spans(b)).collect();
    let mut names: Vec<&str> = spans.iter().map(|s| &*s.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["chat scripted", "execute_tool wait", "invoke_agent p"]);
    let root = spans.iter().find(|s| s.name.starts_with("invoke_agent")).unwrap();
    assert!(spans.iter().all(|s| s.trace_id == root.trace_id));
    assert_eq!(spans.iter().filter(|s| s.parent_span_id == root.span_id).count(), 2);
}
