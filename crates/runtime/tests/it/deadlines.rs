//! Time limits of programs (`within`): who is late, and that what is given up really ends.
#![cfg(unix)]

use crate::support::program::{AT, ask, call, caught, code, decl, exec, machine, par};
use crate::support::{Act, Server};
use core_ir::{Builder, Data, LabelSpec, ModelParams, Num, Term, TermId, Type};
use machine::{ErrorCode, Machine, Reply};
use runtime::{
    Answer, Answered, Asked, Backoff, CancellationToken, Environment, Event, Handlers, Journal, Limits,
    ModelCall, Models, Price, Progress, Provider, Remote, RemoteOptions, RunReport, Scripted, Tokens, Tools,
    Work,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `within[seconds] e`
fn within(b: &mut Builder, seconds: &str, e: TermId) -> TermId {
    b.add(Term::Within(seconds.parse().unwrap(), e), AT)
}

/// `try e catch _. "late"`
fn caught_as_late(b: &mut Builder, e: TermId) -> TermId {
    caught_at(b, Data::list([]), e)
}

fn caught_at(b: &mut Builder, label: Data, e: TermId) -> TermId {
    let label = b.lit(label, AT);
    let handler = b.lit("late", AT);
    b.add(Term::Try { label, body: e, name: "_".into(), handler, catches: core_ir::Catches::All }, AT)
}

/// `tool[nap] {ms}`: sleeps so long.
fn nap(b: &mut Builder, ms: i64) -> TermId {
    let args = vec![("ms".into(), Data::Num(Num::from(ms)))];
    call(b, decl("nap", &[("ms", Type::Num)], Type::Str, None), args)
}

fn napping() -> Handlers {
    let tools = Tools::new(&Environment::default()).with_custom(
        "nap",
        Arc::new(|args| {
            let Some((_, Data::Num(ms))) = args.first() else { panic!("a number") };
            let ms = ms.to_i64().unwrap() as u64;
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(Data::str("rested"))
            })
        }),
    );
    handlers(tools)
}

fn handlers(tools: Tools) -> Handlers {
    Handlers { tools, ..Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap()))) }
}

async fn run(machine: Machine, handlers: &Handlers) -> (RunReport, Vec<Event>) {
    let mut events = Vec::new();
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(machine, handlers, &limits, &cancel, &mut |e| events.push(e)).await;
    (report, events)
}

fn texts(report: &RunReport) -> String {
    report.result.as_ref().unwrap().data().unwrap().to_json().to_string()
}

/// Milliseconds of the paused clock, whose timers are kept to the millisecond.
fn took(report: &RunReport, millis: u128) {
    let elapsed = report.elapsed.as_millis();
    assert!((millis..millis + 10).contains(&elapsed), "{elapsed}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_is_as_without_a_limit() {
    let m = machine(|b| {
        let e = nap(b, 100);
        within(b, "0.2", e)
    });
    let (report, _) = run(m, &napping()).await;
    took(&report, 100);
    assert_eq!(texts(&report), "\"rested\"");
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_scope_have_its_time_together() {
    let m = machine(|b| {
        let naps = (0..4).map(|_| {
            let e = nap(b, 100);
            caught_as_late(b, e)
        });
        let naps = naps.collect();
        let all = b.add(Term::List(naps), AT);
        within(b, "0.25", all)
    });
    let (report, events) = run(m, &napping()).await;
    // The third is given up half way, the fourth is late at once.
    took(&report, 250);
    assert_eq!(texts(&report), r#"["rested","rested","late","late"]"#);
    let late = events.iter().filter(|e| matches!(e, Event::Answered { what: Answered::Late, .. }));
    assert_eq!(late.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn scopes_have_their_own_clocks_and_the_outer_one_counts_too() {
    let m = machine(|b| {
        let naps = (0..4).map(|_| {
            let e = nap(b, 100);
            let e = within(b, "0.08", e);
            caught_as_late(b, e)
        });
        let naps = naps.collect();
        let all = b.add(Term::List(naps), AT);
        within(b, "0.2", all)
    });
    let (report, _) = run(m, &napping()).await;
    took(&report, 200);
    assert_eq!(texts(&report), r#"["late","late","late","late"]"#);
}

#[tokio::test(start_paused = true)]
async fn branches_share_the_clock_and_waiting_for_a_turn_counts() {
    let limits = Limits { in_flight: 2, ..Limits::default() };
    let m = machine(|b| {
        let all = par(b, None, 8, |b, _| {
            let e = nap(b, 100);
            caught_as_late(b, e)
        });
        within(b, "0.25", all)
    });
    let mut ignore = |_| {};
    let report = runtime::run(m, &napping(), &limits, &CancellationToken::new(), &mut ignore).await;
    took(&report, 250);
    assert_eq!(texts(&report).matches("rested").count(), 4);
    assert_eq!(texts(&report).matches("late").count(), 4);
}

#[tokio::test(start_paused = true)]
async fn without_a_handler_the_error_is_timeout() {
    let m = machine(|b| {
        let e = nap(b, 100);
        within(b, "0.05", e)
    });
    let failure = run(m, &napping()).await.0.result.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (ErrorCode::Timeout, "no answer within 0.05 s"));
}

/// A nap whose length is secret, and so is that it happens.
fn secret_nap(b: &mut Builder, ms: i64) -> TermId {
    let mut t = decl("nap", &[("ms", Type::Num)], Type::Str, None);
    t.params[0].bound = LabelSpec::TOP;
    let id = b.tool(t);
    let f = b.add(Term::Tool(id), AT);
    let ms = b.lit(Num::from(ms), AT);
    let label = b.lit(Data::list([Data::str("S")]), AT);
    let ms = b.add(Term::Relabel(label, ms), AT);
    b.app(f, ms, AT)
}

#[tokio::test(start_paused = true)]
async fn secret_usage_is_excluded_from_public_budget() {
    let m = machine(|b| {
        let first = secret_nap(b, 100);
        let second = nap(b, 100);
        let third = secret_nap(b, 100);
        let secret = || Data::list([Data::str("S")]);
        let items =
            vec![caught_at(b, secret(), first), caught_as_late(b, second), caught_at(b, secret(), third)];
        let all = b.add(Term::List(items), AT);
        within(b, "0.15", all)
    });
    let (report, _) = run(m, &napping()).await;
    // The second has 0.15 s, whatever the first took. The third, as secret as the first, had 50 ms left after
    // the first and none after the second.
    assert!(report.result.is_ok(), "{report:?}");
    took(&report, 200);
    assert_eq!(texts(&report), r#"["rested","rested","late"]"#);
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|s| !s.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

/// A tool that returns when `what` holds, so that a test sees it while the run goes on.
fn waiting(what: impl Fn() -> bool + Send + Sync + 'static) -> Tools {
    let what = Arc::new(what);
    Tools::new(&Environment::default()).with_custom(
        "wait",
        Arc::new(move |_| {
            let what = what.clone();
            Box::pin(async move {
                until(|| what()).await;
                Ok(Data::Null)
            })
        }),
    )
}

/// `[try within[0.3] e catch x. x, tool[wait] {}]`
fn give_up_and_wait(e: impl Fn(&mut Builder) -> TermId) -> Machine {
    machine(|b| {
        par(b, Some(1), 2, |b, i| match i {
            0 => {
                let e = e(b);
                let e = within(b, "0.3", e);
                caught(b, e)
            }
            _ => call(b, decl("wait", &[], Type::Null, None), vec![]),
        })
    })
}

#[tokio::test]
async fn a_process_is_killed_with_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let (pids, file) = (dir.path().join("pids"), dir.path().join("written"));
    let script =
        format!("sleep 1000 & echo $$ $! > {}; sleep 1000; touch {}", pids.display(), file.display());
    let handler = exec(&["sh", "-c", &script]);
    let m = give_up_and_wait(|b| call(b, decl("t", &[], Type::Str, Some(handler.clone())), vec![]));
    let seen = pids.clone();
    let dead = move || {
        std::fs::read_to_string(&seen)
            .is_ok_and(|p| p.split_whitespace().count() == 2 && p.split_whitespace().all(|p| !alive(p)))
    };
    let (report, _) = run(m, &handlers(waiting(dead))).await;
    assert_eq!(texts(&report), r#"["no answer within 0.3 s",null]"#);
    assert!(!file.exists());
}

#[tokio::test]
async fn a_socket_is_closed_and_the_call_is_counted() {
    let server = Arc::new(Server::start([Act::Hang]).await);
    let mut o = RemoteOptions::new("gpt-test", &server.url, None);
    o.backoff = Backoff { retries: 3, ..Backoff::default() };
    let tries = Arc::new(AtomicUsize::new(0));
    let (watched, counted) = (server.clone(), tries.clone());
    let tools = waiting(move || {
        counted.store(watched.seen().len(), Ordering::SeqCst);
        watched.busy() == 0
    });
    let handlers = Handlers { tools, ..Handlers::new(Models::only(Arc::new(Remote::new(o).unwrap()))) };
    let m = give_up_and_wait(|b| ask(b, "hello", ModelParams::default()));
    let (report, _) = run(m, &handlers).await;
    assert_eq!(texts(&report), r#"["no answer within 0.3 s",null]"#);
    assert_eq!(tries.load(Ordering::SeqCst), 1, "what is late is not tried again");
    assert_eq!(report.usage.model_calls, 1);
    // Whether the endpoint charges for what nobody waited for is not known; it is assumed.
    assert!(report.usage.input_tokens > 0);
}

/// A journal has what a call took that was given up, so that a run that is resumed or looked at counts it as
/// the first did. A call that was late before it began counts for nothing.
#[tokio::test]
async fn a_call_that_was_given_up_is_counted_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let server = Server::start([Act::Hang]).await;
    let model = || {
        let o = RemoteOptions::new("gpt-test", &server.url, None);
        Handlers::new(Models::only(Arc::new(
            Remote::new(RemoteOptions { price: Some(Price::FREE), ..o }).unwrap(),
        )))
    };
    let program = code(|b| {
        let all = par(b, Some(1), 2, |b, _| {
            let e = ask(b, "hello", ModelParams::default());
            caught(b, e)
        });
        let all = within(b, "0.2", all);
        caught(b, all)
    });
    let machine = || Machine::new(program.clone(), None, machine::Config::default());
    let about = runtime::RunIdentity::new("test", &program, None, serde_json::json!({}));
    let session = Journal::open(&file).unwrap().begin(&about, &Default::default()).unwrap();
    let id = session.id().to_string();
    let kept = |session| Handlers { journal: Some(Arc::new(Mutex::new(session))), ..model() };
    let (report, events) = run(machine(), &kept(session)).await;
    let journal = || Journal::existing(&file).unwrap();
    let (replayed, again) = run(machine(), &kept(journal().replay(&id).unwrap())).await;
    let mut shown = Vec::new();
    let played = journal().play(&id, machine(), &mut |e| {
        shown.push(e);
        std::ops::ControlFlow::Continue(())
    });
    let played = played.unwrap().report;
    assert_eq!((report.usage.model_calls, &report.usage.unpriced), (1, &vec![]));
    for other in [&replayed, &played] {
        assert_eq!((other.usage.clone(), texts(other)), (report.usage.clone(), texts(&report)));
    }
    for events in [events, again, shown] {
        let asked = events.iter().find_map(|e| match e {
            Event::Asked { what: Asked::Model { model, .. }, .. } => Some(&**model),
            _ => None,
        });
        let late = events.iter().find_map(|e| match e {
            Event::Answered { what: Answered::Late, elapsed, .. } => Some(elapsed.as_millis()),
            _ => None,
        });
        assert!(asked == Some("gpt-test") && late >= Some(200), "{events:?}");
    }
}

#[tokio::test]
async fn a_budget_that_was_kept_back_is_given_back() {
    let server = Server::start([Act::Hang, Act::Say("ok".into())]).await;
    let o = RemoteOptions::new("gpt-test", &server.url, None);
    let handlers = Handlers::new(Models::only(Arc::new(Remote::new(o).unwrap())));
    let m = machine(|b| {
        par(b, Some(1), 2, |b, i| {
            let e = ask(b, "hello", ModelParams { max_tokens: Some(100), ..ModelParams::default() });
            let e = if i == 0 { within(b, "0.2", e) } else { e };
            caught(b, e)
        })
    });
    let limits = Limits { max_tokens: Some(400), ..Limits::default() };
    let report = runtime::run(m, &handlers, &limits, &CancellationToken::new(), &mut |_| {}).await;
    assert_eq!(texts(&report), r#"["no answer within 0.2 s","ok"]"#);
}

/// A tool that keeps its thread to itself until it is released, or far too long. It gives whether it was
/// released; that is also told.
struct Blocking {
    tools: Tools,
    release: std::sync::mpsc::Sender<()>,
    released: std::sync::mpsc::Receiver<bool>,
}

fn blocking() -> Blocking {
    let (release, waits) = std::sync::mpsc::channel();
    let (tells, released) = std::sync::mpsc::channel();
    let waits = Arc::new(std::sync::Mutex::new(waits));
    let block = move |_| -> runtime::BoxFuture<_> {
        let (waits, tells) = (waits.clone(), tells.clone());
        Box::pin(async move {
            let was = waits.lock().unwrap().recv_timeout(Duration::from_secs(60)).is_ok();
            let _ = tells.send(was);
            Ok(Data::Bool(was))
        })
    };
    let tools = Tools::new(&Environment::default()).with_custom("block", Arc::new(block));
    Blocking { tools, release, released }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_keeps_its_thread_does_not_keep_the_run_beyond_its_limit() {
    let Blocking { tools, release, released } = blocking();
    let m = machine(|b| call(b, decl("block", &[], Type::Bool, None), vec![]));
    let limits = Limits { timeout: Some(Duration::from_millis(50)), ..Limits::default() };
    let handlers = handlers(tools);
    // As of a test of two threads: this one is none of them.
    let report = tokio::spawn(async move {
        runtime::run(m, &handlers, &limits, &CancellationToken::new(), &mut |_| {}).await
    });
    let failure = report.await.unwrap().result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::Cancelled);
    assert!(failure.message.contains("took longer than the limit of 0.05 s"), "{}", failure.message);
    release.send(()).unwrap();
    assert!(released.recv().unwrap(), "the run waited for the tool");
}

/// A model that keeps its thread to itself until it is released, or far too long.
struct Stubborn {
    waits: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
    tells: std::sync::Mutex<std::sync::mpsc::Sender<bool>>,
}

impl Provider for Stubborn {
    fn name(&self) -> &str {
        "stubborn"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn ask(self: Arc<Self>, _: ModelCall, _: Progress) -> Work<Answer> {
        Work::Later(Box::pin(async move {
            let was = self.waits.lock().unwrap().recv_timeout(Duration::from_secs(60)).is_ok();
            let _ = self.tells.lock().unwrap().send(was);
            Answer::new(Ok(Reply::Text("too late".into())), Tokens::default())
        }))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_keeps_its_thread_does_not_keep_the_run_beyond_its_limit() {
    let (release, waits) = std::sync::mpsc::channel();
    let (tells, released) = std::sync::mpsc::channel();
    let model = Arc::new(Stubborn { waits: waits.into(), tells: tells.into() });
    let m = machine(|b| ask(b, "hi", ModelParams::default()));
    let limits = Limits { timeout: Some(Duration::from_millis(50)), ..Limits::default() };
    let handlers = Handlers::new(Models::only(model));
    let report = tokio::spawn(async move {
        runtime::run(m, &handlers, &limits, &CancellationToken::new(), &mut |_| {}).await
    });
    let failure = report.await.unwrap().result.unwrap_err();
    assert!(failure.message.contains("took longer than the limit of 0.05 s"), "{}", failure.message);
    release.send(()).unwrap();
    assert!(released.recv().unwrap(), "the run waited for the model");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_keeps_its_thread_is_late_like_any_other() {
    let Blocking { tools, release, released } = blocking();
    let release = std::sync::Mutex::new(release);
    let tools = tools.with_custom(
        "release",
        Arc::new(move |_| {
            release.lock().unwrap().send(()).unwrap();
            Box::pin(async { Ok(Data::Null) })
        }),
    );
    let m = machine(|b| {
        let e = call(b, decl("block", &[], Type::Bool, None), vec![]);
        let e = within(b, "0.05", e);
        let first = caught_as_late(b, e);
        let second = call(b, decl("release", &[], Type::Null, None), vec![]);
        b.add(Term::List(vec![first, second]), AT)
    });
    let handlers = handlers(tools);
    let report = tokio::spawn(async move { run(m, &handlers).await.0 }).await.unwrap();
    assert_eq!(texts(&report), r#"["late",null]"#);
    assert!(released.recv().unwrap(), "the scope waited for the tool");
}
