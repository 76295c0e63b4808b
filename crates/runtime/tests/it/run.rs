//! Whole runs: concurrency, budgets, time, cancellation, events and secrets.

use crate::support::program::{AT, ask, call, caught, decl, machine, par};
use crate::support::{Act, Server};
use core_ir::{Catches, Data, ModelParams, Num, Prim, StoreDecl, Term, Type};
use machine::{ErrorCode, Machine, Reply};
use runtime::{
    Answer, Answered, Asked, Backoff, CallKind, CancellationToken, CustomTool, Environment, Event, Finished,
    Handlers, Limits, ModelCall, Models, Price, Progress, Provider, Remote, RemoteOptions, Resource,
    RunReport, Scripted, Secret, Stores, Tokens, Tools, Work,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

fn scripted(script: &str) -> Handlers {
    Handlers::new(Models::only(Arc::new(Scripted::parse(script).unwrap())))
}

fn endpoint(server: &Server) -> Handlers {
    let mut o = RemoteOptions::new("gpt-test", &server.url, Some(Secret::new(KEY)));
    o.backoff = Backoff { retries: 1, base: Duration::from_millis(1), ..Backoff::default() };
    o.price = Some(Price::new("1".parse().unwrap(), "2".parse().unwrap()));
    Handlers::new(Models::only(Arc::new(Remote::new(o).unwrap())))
}

async fn run_with(
    machine: Machine,
    handlers: &Handlers,
    limits: Limits,
    cancel: &CancellationToken,
) -> (RunReport, Vec<Event>) {
    let mut events = Vec::new();
    let report = runtime::run(machine, handlers, &limits, cancel, &mut |e| events.push(e)).await;
    assert!(!format!("{report:?} {events:?}").contains("planted"), "{report:?} {events:?}");
    (report, events)
}

async fn run(machine: Machine, handlers: &Handlers, limits: Limits) -> RunReport {
    run_with(machine, handlers, limits, &CancellationToken::new()).await.0
}

fn data(report: RunReport) -> Data {
    report.result.unwrap().data().unwrap()
}

fn error(report: RunReport) -> (ErrorCode, String) {
    let f = report.result.unwrap_err();
    (f.code, f.message)
}

fn texts(items: &[&str]) -> Data {
    Data::list(items.iter().map(|t| Data::str(*t)))
}

fn plain() -> ModelParams {
    ModelParams::default()
}

#[tokio::test]
async fn branches_are_asked_at_once_and_results_keep_their_order() {
    // All four requests are under way before the first is answered: the server says so.
    let server = Server::start((0..4).map(|i| Act::Drip(format!("reply {i}")))).await;
    let m = machine(|b| par(b, None, 4, |b, i| ask(b, &format!("question {i}"), plain())));
    let (report, events) =
        run_with(m, &endpoint(&server), Limits::default(), &CancellationToken::new()).await;
    assert_eq!(report.usage.model_calls, 4);
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (44, 28));
    assert_eq!(report.usage.usd, Some("0.0001".parse().unwrap()));
    let Data::List(items) = data(report) else { panic!("a list") };
    assert_eq!(items.len(), 4);
    let first_answer = events.iter().position(|e| matches!(e, Event::Answered { .. })).unwrap();
    assert_eq!(first_answer, 4, "{events:?}");
    // Each branch got the answer to its own question.
    let asked: Vec<(_, String)> = events
        .iter()
        .filter_map(|e| match e {
            Event::Asked { id, what: Asked::Model { messages, .. }, .. } => {
                Some((*id, messages.iter().next()?.content.to_string()))
            }
            _ => None,
        })
        .collect();
    for e in &events {
        if let Event::Answered { id, what: Answered::Reply(machine::Reply::Text(reply)), .. } = e {
            let question = &asked.iter().find(|(i, _)| i == id).unwrap().1;
            let at: usize = question.strip_prefix("question ").unwrap().parse().unwrap();
            assert_eq!(items[at], Data::str(reply.as_str()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn branches_take_the_time_of_the_longest_and_bounds_hold() {
    let busy = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (b2, m2) = (busy.clone(), most.clone());
    let tools = Tools::new(&Environment::default()).with_custom(
        "nap",
        Arc::new(move |_| {
            let (busy, most) = (b2.clone(), m2.clone());
            Box::pin(async move {
                most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                busy.fetch_sub(1, Ordering::SeqCst);
                Ok(Data::Bool(true))
            })
        }),
    );
    let handlers = Handlers { tools, ..scripted("[]") };
    let nap = || decl("nap", &[("x", Type::Num)], Type::Bool, None);
    let naps = |bound| {
        machine(move |b| {
            par(b, bound, 8, |b, i| call(b, nap(), vec![("x".into(), Data::Num(Num::from(i as i64)))]))
        })
    };
    // The clock is paused: time passes only while everything waits.
    for (bound, in_flight, at_once, millis) in [(None, 64, 8, 100), (Some(2), 64, 2, 400), (None, 4, 4, 200)]
    {
        most.store(0, Ordering::SeqCst);
        let report = run(naps(bound), &handlers, Limits { in_flight, ..Limits::default() }).await;
        assert_eq!(report.usage.tool_calls, 8);
        assert_eq!(most.load(Ordering::SeqCst), at_once);
        let elapsed = report.elapsed.as_millis();
        assert!((millis..millis + 20).contains(&elapsed), "{elapsed}");
        assert!(report.result.is_ok());
    }
}

#[tokio::test]
async fn a_budget_of_calls_stops_the_run_even_within_try() {
    let m = machine(|b| {
        par(b, Some(1), 3, |b, _| {
            let e = ask(b, "hi", plain());
            caught(b, e)
        })
    });
    let limits = Limits { max_model_calls: Some(2), ..Limits::default() };
    let (report, events) =
        run_with(m, &scripted(r#"["a", "b", "c"]"#), limits, &CancellationToken::new()).await;
    assert_eq!(report.usage.model_calls, 2);
    let reply =
        |text| Finished { what: CallKind::Model, name: "scripted".into(), result: Ok(Data::str(text)) };
    let partial = report.partial.clone().expect("the outcome of a run that a budget ended");
    assert_eq!((partial.budget, partial.agent.clone()), (Resource::ModelCalls, None));
    assert_eq!(partial.finished, [reply("a"), reply("b")]);
    assert_eq!((partial.earlier, partial.under_way), (0, 0));
    assert_eq!(error(report), (ErrorCode::Budget, "the limit of 2 model calls is reached".into()));
    assert!(matches!(&events[..], [.., Event::Answered { what: Answered::Stopped(_), .. }]));
}

#[tokio::test]
async fn concurrent_branches_never_overspend() {
    let server = Server::start([Act::Say("ok".into())]).await;
    let branches = |max_tokens| {
        machine(move |b| par(b, None, 64, |b, _| ask(b, "hello", ModelParams { max_tokens, ..plain() })))
    };
    // A call may use 165 tokens of prompt and 100 of reply, and uses 18: 800 are enough for 30 or so of 64,
    // one after another.
    let limits = Limits { max_tokens: Some(800), ..Limits::default() };
    let report = run(branches(Some(100)), &endpoint(&server), limits).await;
    let used = report.usage.input_tokens + report.usage.output_tokens;
    assert!(used <= 800 && report.usage.model_calls > 3, "{:?}", report.usage);
    assert!(server.most_busy() <= 3, "{}", server.most_busy());
    let partial = report.partial.as_ref().expect("the outcome of a run that a budget ended");
    assert_eq!(partial.budget, Resource::Tokens);
    assert!(partial.finished.len() as u64 <= report.usage.model_calls);
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Budget);

    // A number of calls is kept exactly: that many are asked, however many want to at once.
    let limits = Limits { max_model_calls: Some(10), ..Limits::default() };
    let before = server.seen().len();
    let report = run(branches(None), &endpoint(&server), limits).await;
    assert_eq!(report.usage.model_calls, 10);
    assert!(server.seen().len() - before <= 10, "{}", server.seen().len() - before);
    assert_eq!(report.partial.as_ref().map(|p| p.budget), Some(Resource::ModelCalls));

    // Enough for all, though not for the worst of all at once: they wait for each other instead of failing.
    let limits = Limits { max_usd: Some("0.003".parse().unwrap()), ..Limits::default() };
    let report = run(branches(None), &endpoint(&server), limits).await;
    assert_eq!(report.usage.model_calls, 64);
    assert_eq!(report.usage.usd, Some("0.0016".parse().unwrap()));
    assert!(report.result.is_ok());
    let asked = server.seen().last().unwrap().body["max_tokens"].as_u64();
    assert!(asked.is_some_and(|n| (64..=1024).contains(&n)), "{asked:?}");
}

#[tokio::test]
async fn time_ends_what_is_under_way() {
    let server = Server::start([Act::Hang]).await;
    let m = machine(|b| {
        let e = par(b, None, 3, |b, _| ask(b, "hi", plain()));
        caught(b, e)
    });
    let limits = Limits { timeout: Some(Duration::from_millis(200)), ..Limits::default() };
    let report = run(m, &endpoint(&server), limits).await;
    let partial = report.partial.clone().expect("the outcome of a run that took too long");
    assert_eq!((partial.budget, partial.under_way), (Resource::Time, 3));
    assert_eq!(error(report), (ErrorCode::Cancelled, "the run took longer than the limit of 0.2 s".into()));
    server.until_busy(0).await;
}

#[tokio::test]
async fn cancellation_ends_what_is_under_way() {
    let server = Server::start([Act::Hang]).await;
    let handlers = endpoint(&server);
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let running = tokio::spawn(async move {
        let m = machine(|b| ask(b, "hi", plain()));
        runtime::run(m, &handlers, &Limits::default(), &token, &mut |_| {}).await
    });
    server.until_busy(1).await;
    cancel.cancel();
    let report = running.await.unwrap();
    // The endpoint may charge for what it was asked.
    let usage = report.usage.clone();
    assert!(usage.model_calls == 1 && usage.input_tokens > 0 && usage.usd > Some(Num::ZERO), "{usage:?}");
    assert_eq!(error(report), (ErrorCode::Cancelled, "the run was canceled".into()));
    server.until_busy(0).await;

    // Dropping the run does the same.
    let handlers = endpoint(&server);
    let running = tokio::spawn(async move {
        let m = machine(|b| ask(b, "hi", plain()));
        runtime::run(m, &handlers, &Limits::default(), &CancellationToken::new(), &mut |_| {}).await
    });
    server.until_busy(1).await;
    running.abort();
    server.until_busy(0).await;
}

#[tokio::test]
async fn a_loop_that_asks_nothing_can_be_ended() {
    let endless = || {
        machine(|b| {
            // fix[∞] (λself. λx. self x) 0
            let (s, x) = (b.var("self", AT), b.var("x", AT));
            let body = b.app(s, x, AT);
            let f = b.abs("x", None, body, AT);
            let f = b.abs("self", None, f, AT);
            let fix = b.add(Term::Fix { bound: core_ir::Bound::Infinite, origin: None, body: f }, AT);
            let zero = b.lit(Num::ZERO, AT);
            b.app(fix, zero, AT)
        })
    };
    let limits = Limits { timeout: Some(Duration::from_millis(50)), ..Limits::default() };
    assert_eq!(error(run(endless(), &scripted("[]"), limits).await).0, ErrorCode::Cancelled);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (report, _) = run_with(endless(), &scripted("[]"), Limits::default(), &cancel).await;
    assert_eq!(error(report).0, ErrorCode::Cancelled);
}

#[tokio::test]
async fn a_failing_model_can_be_caught_and_says_why() {
    let server = Server::start([Act::Raw(200, "text/html", None, format!("<html>{KEY}</html>"))]).await;
    let m = machine(|b| {
        let e = ask(b, "hi", plain());
        caught(b, e)
    });
    let message = data(run(m, &endpoint(&server), Limits::default()).await);
    assert!(message.as_str().unwrap().contains("not JSON: `<html>[redacted]</html>`"), "{message:?}");
}

#[tokio::test]
async fn a_key_in_the_conversation_is_not_told() {
    let server = Server::start([
        Act::Raw(500, "text/plain", None, format!("crashed on {KEY}")),
        Act::Say(format!("echo: {KEY}")),
    ])
    .await;
    let environment =
        Environment::new([("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &server.url), ("ENTAIL_MODEL", "m")]);
    let file = serde_json::from_value(serde_json::json!({"models": {"m": {"retries": 1}}})).unwrap();
    let settings = runtime::ModelSettings { file, ..Default::default() };
    let handlers = Handlers::new(Models::new(settings, environment).unwrap());
    let m = machine(|b| {
        let e = ask(b, &format!("my key is {KEY}"), plain());
        let store = StoreDecl {
            name: "s".into(),
            keys: vec![core_ir::KeyDecl {
                name: "k".into(),
                ty: Type::Str,
                label: core_ir::LabelSpec::TOP,
                initial: None,
            }],
            capacity: None,
            ttl: None,
            backend: None,
            span: AT,
        };
        let store = b.store(store);
        let write = b.add(Term::Remember("k".into(), None, e), AT);
        let read = b.add(Term::Recall("k".into(), None), AT);
        let both = b.add(Term::List(vec![write, read]), AT);
        b.add(Term::Mem(store, both), AT)
    });
    let (report, events) = run_with(m, &handlers, Limits::default(), &CancellationToken::new()).await;
    let shown: Vec<&str> = events
        .iter()
        .map(|e| match e {
            Event::Asked { what: Asked::Model { .. }, .. } => "ask",
            Event::Asked { what: Asked::Remember { .. }, .. } => "remember",
            Event::Asked { what: Asked::Recall { .. }, .. } => "recall",
            Event::Asked { .. } => "other",
            Event::Retry { .. } => "retry",
            Event::Growing { .. } => "growing",
            Event::Text { .. } => "text",
            Event::Answered { .. } => "answer",
        })
        .collect();
    assert_eq!(shown, ["ask", "retry", "answer", "remember", "answer", "recall", "answer"]);
    assert_eq!(
        report.result.unwrap().data(),
        Some(Data::list([Data::record([]), Data::str("echo: [redacted]")]))
    );
}

#[tokio::test]
async fn samples_depend_on_the_seed_alone() {
    let toss = || {
        machine(|b| {
            par(b, None, 16, |b, _| {
                let (h, t) = (b.lit(Num::ONE, AT), b.lit(Num::ZERO, AT));
                b.add(Term::Choose("0.5".parse().unwrap(), h, t), AT)
            })
        })
    };
    let with = |seed| Handlers { seed, ..scripted("[]") };
    let first = data(run(toss(), &with(1), Limits::default()).await);
    assert_eq!(first, data(run(toss(), &with(1), Limits { in_flight: 1, ..Limits::default() }).await));
    assert_ne!(first, data(run(toss(), &with(2), Limits::default()).await));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scripted_runs_are_the_same_every_time() {
    let script = format!("[{}]", (0..40).map(|i| format!("\"{i}\"")).collect::<Vec<_>>().join(","));
    let twice = |b: &mut core_ir::Builder, i: usize| {
        let first = ask(b, &format!("a{i}"), plain());
        let second = ask(b, &format!("b{i}"), plain());
        b.add(Term::Prim(Prim::Format, vec![first, second]), AT)
    };
    let mut seen = Vec::new();
    for _ in 0..5 {
        let m = machine(|b| par(b, Some(3), 20, twice));
        let (report, events) =
            run_with(m, &scripted(&script), Limits::default(), &CancellationToken::new()).await;
        let order: Vec<String> = events
            .iter()
            .filter_map(|e| match e {
                Event::Asked { id, what, .. } => Some(format!("{id:?} {what:?}")),
                _ => None,
            })
            .collect();
        seen.push((data(report), order));
    }
    assert!(seen.windows(2).all(|w| w[0] == w[1]));
}

/// Tells all that there is to tell in the same moment as the answer.
struct Hasty;

impl Provider for Hasty {
    fn name(&self) -> &str {
        "hasty"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn ask(self: Arc<Self>, _: ModelCall, progress: Progress) -> Work<Answer> {
        Work::Later(Box::pin(async move {
            progress.text("hel");
            progress.growing(1);
            progress.text("lo");
            Answer::new(Ok(Reply::Text("hello".into())), Tokens::new(1, 2))
        }))
    }
}

#[tokio::test]
async fn events_sent_with_an_answer_come_before_it() {
    let handlers = Handlers { stream: true, ..Handlers::new(Models::only(Arc::new(Hasty))) };
    let m = machine(|b| ask(b, "hi", plain()));
    let (report, events) = run_with(m, &handlers, Limits::default(), &CancellationToken::new()).await;
    assert_eq!(data(report), Data::str("hello"));
    let told: Vec<String> = events
        .iter()
        .map(|e| match e {
            Event::Text { text, .. } => text.clone(),
            Event::Growing { output_tokens, .. } => output_tokens.to_string(),
            Event::Asked { .. } => "asked".into(),
            Event::Answered { .. } => "answered".into(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, ["asked", "hel", "1", "lo", "answered"]);
}

#[tokio::test]
async fn a_crash_of_a_custom_tool_is_an_error_of_the_tool() {
    let later: CustomTool = Arc::new(|_| Box::pin(async { panic!("oops") }));
    let at_once: CustomTool = Arc::new(|_| panic!("oops"));
    for crashes in [later, at_once] {
        let tools = Tools::new(&Environment::default()).with_custom("t", crashes);
        let handlers = Handlers { tools, ..scripted("[]") };
        let m = machine(|b| call(b, decl("t", &[], Type::Str, None), vec![]));
        let (code, message) = error(run(m, &handlers, Limits::default()).await);
        assert_eq!(code, ErrorCode::Tool);
        assert!(message.contains("the handler crashed"), "{message}");
    }
}

#[tokio::test]
async fn a_model_that_is_not_configured_fails_with_the_remedy() {
    let environment = Environment::new([("ENTAIL_MODEL_DIR", "/nowhere")]);
    let models = Models::new(runtime::ModelSettings::default(), environment).unwrap();
    let params = || ModelParams { model: Some("gpt-4o".into()), ..plain() };
    let code = crate::support::program::code(|b| ask(b, "hi", params()));
    assert!(models.check(&code).unwrap_err().message.contains("`OPENAI_API_KEY` is not set"));
    let handlers = Handlers::new(models);
    let report = run(machine(|b| ask(b, "hi", params())), &handlers, Limits::default()).await;
    assert_eq!(report.usage.model_calls, 0);
    let (code, message) = error(report);
    assert_eq!(code, ErrorCode::Configuration);
    assert!(message.contains("run with `--model local`"), "{message}");
    // Nothing in the program catches it.
    let in_try = machine(|b| {
        let (body, handler) = (ask(b, "hi", params()), b.lit("caught", AT));
        let label = b.lit(Data::list([Data::str("U"), Data::str("S")]), AT);
        b.add(Term::Try { label, body, catches: Catches::All, name: "x".into(), handler }, AT)
    });
    assert_eq!(error(run(in_try, &handlers, Limits::default()).await).0, ErrorCode::Configuration);
}

#[tokio::test]
async fn stores_outlive_runs_that_share_them() {
    let store = || StoreDecl {
        name: "s".into(),
        keys: vec![core_ir::KeyDecl {
            name: "k".into(),
            ty: Type::Num,
            label: core_ir::LabelSpec::TOP,
            initial: None,
        }],
        capacity: None,
        ttl: None,
        backend: None,
        span: AT,
    };
    let stores = Stores::new();
    let handlers = Handlers { stores: stores.clone(), ..scripted("[]") };
    let write = machine(|b| {
        let v = b.lit(Num::from(7), AT);
        let e = b.add(Term::Remember("k".into(), None, v), AT);
        let s = b.store(store());
        b.add(Term::Mem(s, e), AT)
    });
    assert!(run(write, &handlers, Limits::default()).await.result.is_ok());
    let read = machine(|b| {
        let e = b.add(Term::Recall("k".into(), None), AT);
        let s = b.store(store());
        b.add(Term::Mem(s, e), AT)
    });
    let handlers = Handlers { stores, ..scripted("[]") };
    assert_eq!(data(run(read, &handlers, Limits::default()).await), Data::Num(Num::from(7)));
}

#[tokio::test]
async fn budgets_of_tool_calls_hold_and_events_are_told_as_they_happen() {
    let upper = || {
        decl(
            "up",
            &[("x", Type::Str)],
            Type::Str,
            Some(Data::record([("builtin".into(), Data::str("text.upper"))])),
        )
    };
    let m = machine(|b| {
        let items = ["a", "b"].map(|t| call(b, upper(), vec![("x".into(), Data::str(t))]));
        b.add(Term::List(items.into()), AT)
    });
    assert_eq!(data(run(m, &scripted("[]"), Limits::default()).await), texts(&["A", "B"]));
    let m = machine(|b| {
        let items = ["a", "b"].map(|t| call(b, upper(), vec![("x".into(), Data::str(t))]));
        b.add(Term::List(items.into()), AT)
    });
    let told = Mutex::new(0);
    let limits = Limits { max_tool_calls: Some(1), ..Limits::default() };
    let cancel = CancellationToken::new();
    let report =
        runtime::run(m, &scripted("[]"), &limits, &cancel, &mut |_| *told.lock().unwrap() += 1).await;
    assert_eq!(report.usage.tool_calls, 1);
    assert_eq!(error(report), (ErrorCode::Budget, "the limit of 1 tool call is reached".into()));
    assert_eq!(*told.lock().unwrap(), 4);
}

/// A store of one number, public and trusted.
fn counter(capacity: Option<u64>, ttl: Option<u64>, backend: Option<&str>) -> StoreDecl {
    let (ty, label, initial) = (Type::Num, core_ir::LabelSpec::BOTTOM, Some(Data::Num(Num::ZERO)));
    let keys = vec![core_ir::KeyDecl { name: "k".into(), ty, label, initial }];
    StoreDecl { name: "s".into(), keys, capacity, ttl, backend: backend.map(Into::into), span: AT }
}

/// `try (mem (recall k) store) catch x. x`
fn recalls(store: StoreDecl) -> Machine {
    machine(|b| {
        let e = b.add(Term::Recall("k".into(), None), AT);
        let s = b.store(store);
        let e = b.add(Term::Mem(s, e), AT);
        caught(b, e)
    })
}

/// `docs/calculus.md` §10, stores: a second declaration is an error before the run, and nothing catches it.
#[tokio::test]
async fn another_declaration_of_a_store_ends_the_run_before_its_first_step() {
    let handlers = scripted("[]");
    for _ in 0..2 {
        let value = data(run(recalls(counter(Some(3), None, None)), &handlers, Limits::default()).await);
        assert_eq!(value, Data::Num(Num::ZERO));
    }
    let report = run(recalls(counter(Some(4), None, None)), &handlers, Limits::default()).await;
    assert_eq!(report.fuel, 0);
    let (code, message) = error(report);
    assert_eq!(code, ErrorCode::Configuration);
    assert!(
        message.starts_with("the store `s` has two declarations, which differ in the capacity"),
        "{message}"
    );
    // In another scope it is another store.
    let scope = runtime::StoreScope { caller: "ann".into(), program: "p".into() };
    let other = Handlers { stores: handlers.stores.scoped(scope), ..scripted("[]") };
    assert!(run(recalls(counter(Some(4), None, None)), &other, Limits::default()).await.result.is_ok());
}

/// A mistake of configuration is no error of the program.
#[tokio::test]
async fn a_store_without_a_backend_ends_the_run_before_its_first_step() {
    let report = run(recalls(counter(None, None, Some("etcd"))), &scripted("[]"), Limits::default()).await;
    assert_eq!(report.fuel, 0);
    let (code, message) = error(report);
    assert_eq!(code, ErrorCode::Configuration);
    assert!(message.contains("the backend `etcd` is not configured"), "{message}");
}

/// `docs/calculus.md` §10, stores: time is read once, when the run begins. Wall-clock time would tell how
/// long a secret request took: `let _ = if secret then slow {} else null in recall k`.
#[tokio::test(start_paused = true)]
async fn entries_expire_between_runs_only() {
    let slow: CustomTool = Arc::new(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            Ok(Data::Null)
        })
    });
    let dir = tempfile::tempdir().unwrap();
    let file = runtime::StorePlace::File(dir.path().join("m.db"));
    for stores in [Stores::new(), Stores::new().with_places([("s".into(), file)])] {
        let tools = Tools::new(&Environment::default()).with_custom("slow", slow.clone());
        let handlers = Handlers { tools, stores, ..scripted("[]") };
        let first = machine(|b| {
            let seven = b.lit(Num::from(7), AT);
            let write = b.add(Term::Remember("k".into(), None, seven), AT);
            let wait = call(b, decl("slow", &[], Type::Null, None), vec![]);
            let read = b.add(Term::Recall("k".into(), None), AT);
            let all = b.add(Term::List(vec![write, wait, read]), AT);
            let s = b.store(counter(None, Some(60), None));
            b.add(Term::Mem(s, all), AT)
        });
        let Data::List(all) = data(run(first, &handlers, Limits::default()).await) else { panic!() };
        assert_eq!(all[2], Data::Num(Num::from(7)));
        // Where the key is absent when a run begins, there is the initial value.
        let then = data(run(recalls(counter(None, Some(60), None)), &handlers, Limits::default()).await);
        assert_eq!(then, Data::Num(Num::ZERO));
    }
}

/// A model without a price, whose calls nobody counts.
struct Uncounted;

impl Provider for Uncounted {
    fn name(&self) -> &str {
        "uncounted"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn ask(self: Arc<Self>, _: ModelCall, _: Progress) -> Work<Answer> {
        Work::Now(Answer::new(Ok(Reply::Text("ok".into())), Tokens::default()))
    }
}

#[tokio::test]
async fn unpriced_reply_has_unknown_cost() {
    let handlers = Handlers::new(Models::only(Arc::new(Uncounted)));
    let report = run(machine(|b| ask(b, "x", plain())), &handlers, Limits::default()).await;
    assert_eq!((report.usage.usd, &report.usage.unpriced[..]), (None, &["uncounted".to_string()][..]));
    let limits = Limits { max_usd: Some(Num::ONE), ..Limits::default() };
    let report = run(machine(|b| ask(b, "x", plain())), &handlers, limits).await;
    assert_eq!(report.usage.model_calls, 0);
    let (code, message) = error(report);
    assert_eq!(code, ErrorCode::Budget);
    assert!(message.contains("the price of `uncounted` is unknown"), "{message}");
}

#[tokio::test]
async fn retries_do_not_repeat_what_is_permanent() {
    for (status, code, asked) in [
        (401, "invalid_api_key", 1),
        (403, "forbidden", 1),
        (429, "insufficient_quota", 1),
        (400, "context_length_exceeded", 1),
        (400, "invalid_request", 1),
        (404, "model_not_found", 1),
        (500, "oops", 3),
    ] {
        let body = serde_json::json!({"error": {"message": "no", "code": code}}).to_string();
        let server = Server::start([Act::Raw(status, "application/json", None, body)]).await;
        let mut o = RemoteOptions::new("gpt-test", &server.url, None);
        o.backoff = Backoff { retries: 0, base: Duration::from_millis(1), ..Backoff::default() };
        let handlers = Handlers::new(Models::only(Arc::new(Remote::new(o).unwrap())));
        let m = machine(|b| {
            let attempt = |b: &mut core_ir::Builder, handler| {
                let (label, body) = (b.lit(Data::list([]), AT), ask(b, "x", plain()));
                b.add(Term::Try { label, body, catches: Catches::Transient, name: "m".into(), handler }, AT)
            };
            let last = ask(b, "x", plain());
            let second = attempt(b, last);
            attempt(b, second)
        });
        let (code, _) = error(run(m, &handlers, Limits::default()).await);
        assert_eq!((code, server.seen().len()), (ErrorCode::Model, asked), "{status}");
    }
}

/// Reads generated code with the prelude in scope.
struct Generated;

impl machine::CodeParser for Generated {
    fn parse(&self, text: &str) -> Result<Arc<core_ir::Code>, String> {
        agentlang::calculus::parse_generated(text)
    }
}

/// Programs in which stores told a secret: two worlds that differ in the secret alone give the public the
/// same.
#[tokio::test(start_paused = true)]
async fn secret_store_access_is_unobservable() {
    let slow: CustomTool = Arc::new(|_| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            Ok(Data::Null)
        })
    });
    let write_by_code = r#"mem (remember k 1) {k: Num @ ["S"]}"#;
    let script =
        serde_json::json!([{"match": "one", "reply": write_by_code}, {"match": "two", "reply": "1"}]);
    let programs = [
        // Eviction across labels: the secret entry is the newer one.
        (
            r#"mem (let _ = remember a 1 in let _ = (if s then remember h 1 else null) in recall a)
                 {a: Num, h: Num @ ["S"]} capacity 1"#,
            "1",
        ),
        // A secret use that counts.
        (
            "mem (let _ = remember a 1 in let _ = remember b 1 in let _ = (if s then recall a else null) in
                  let _ = remember c 1 in [recall a, recall b]) {a: Num, b: Num, c: Num} capacity 2",
            "[null,1]",
        ),
        // An initial value that a secret use brings about.
        (
            "mem (let _ = (if s then recall a else null) in let _ = remember b 1 in recall a)
               {a: Num = 7, b: Num} capacity 1",
            "null",
        ),
        // Time that passes under a secret.
        (
            "mem (let _ = remember a 1 in let _ = (if s then tool[slow] {} else null) in recall a) {a: Num} ttl 60",
            "1",
        ),
        // Code that declares the program's store again.
        (
            r#"mem (let _ = fresh (let _ = send (if s then "one" else "two") in recv) in recall k) {k: Num}"#,
            "null",
        ),
    ];
    for (program, expected) in programs {
        let text = format!(
            "tool slow() -> Null @ [\"S\"] read control [\"U\", \"S\"]\n\\s. let s = ([\"S\"]: s) in\n{program}"
        );
        for secret in [true, false] {
            let compiled = agentlang::calculus::compile(diagnostics::FileId(0), &text);
            let code = compiled.code.unwrap_or_else(|| panic!("{text}: {:?}", compiled.diagnostics));
            let config = machine::Config { parser: Some(Arc::new(Generated)), ..machine::Config::default() };
            let tools = Tools::new(&Environment::default()).with_custom("slow", slow.clone());
            let handlers = Handlers { tools, ..scripted(&script.to_string()) };
            let machine = Machine::new(Arc::new(code), Some(Data::Bool(secret)), config);
            let report = run(machine, &handlers, Limits::default()).await;
            assert_eq!(report.label, Data::list([]), "{program}");
            assert_eq!(data(report).to_json().to_string(), expected, "{program}: {secret}");
        }
    }
}
