//! Journals: record and replay, resuming after interruptions, what is written and what is not.

#[cfg(all(unix, feature = "postgres"))]
mod postgres;

use crate::support::program::{AT, ask, call, code, code as code_of, decl, par};
use crate::support::{Act, Server};
use core_ir::{Builder, Code, Data, EffectClass, ModelParams, Name, Num, Term, TermId, ToolDecl, Type};
use machine::{Config, ErrorCode, Machine};
use runtime::{
    CancellationToken, Environment, Event, Handlers, Journal, JournalPlace, Limits, ModelSettings, Models,
    POLICY_CHANGED, POLICY_TEXT, Played, Redactor, RunCursor, RunFilter, RunIdentity, RunReport, RunStatus,
    Scripted, Secret, Session, StorePlace, Stores, Tools, Unfinished,
};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

/// Two questions, two tools that write, a sample and a store, some of it in branches.
fn program(question: &str) -> Arc<Code> {
    code(|b| {
        let first = ask(b, question, ModelParams::default());
        let pays = par(b, None, 3, |b, i| pay(b, i as i64));
        let last = ask(b, "and then?", ModelParams::default());
        let toss = {
            let half = Num::from(1).div(&Num::from(2)).unwrap();
            let (x, y) = (b.lit("heads", AT), b.lit("tails", AT));
            b.add(Term::Choose(half, x, y), AT)
        };
        b.add(Term::List(vec![first, pays, last, toss]), AT)
    })
}

fn payment() -> ToolDecl {
    let mut t = decl("pay", &[("n", Type::Num)], Type::Str, None);
    t.effect = EffectClass::Write;
    t
}

fn pay(b: &mut Builder, n: i64) -> TermId {
    call(b, payment(), vec![("n".into(), Data::Num(Num::from(n)))])
}

/// Side effects in the world.
type Ledger = Arc<Mutex<Vec<String>>>;

fn handlers(script: &str, ledger: &Ledger) -> Handlers {
    let ledger = ledger.clone();
    let act = move |args: Vec<(Name, Data)>| -> runtime::BoxFuture<Result<Data, String>> {
        let ledger = ledger.clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            let n = args[0].1.to_json().to_string();
            ledger.lock().unwrap().push(n.clone());
            Ok(Data::str(format!("paid {n}")))
        })
    };
    let tools = Tools::new(&Environment::default()).with_custom("pay", Arc::new(act));
    Handlers { tools, seed: 7, ..Handlers::new(Models::only(Arc::new(Scripted::parse(script).unwrap()))) }
}

const SCRIPT: &str = r#"["one", "two"]"#;

fn about(code: &Code) -> RunIdentity {
    RunIdentity::new("test", code, None, json!({"seed": 7}))
}

fn with(handlers: Handlers, session: Session) -> Handlers {
    Handlers { journal: Some(Arc::new(Mutex::new(session))), ..handlers }
}

fn begin(file: impl Into<JournalPlace>, code: &Code) -> Session {
    Journal::open(file).unwrap().begin(&about(code), &Default::default()).unwrap()
}

fn resume(file: impl Into<JournalPlace>, id: &str, code: &Code, unfinished: Unfinished) -> Session {
    let journal = Journal::existing(file).unwrap();
    journal.resume(id, &about(code), &Default::default(), false, unfinished).unwrap()
}

async fn run(code: &Arc<Code>, handlers: &Handlers) -> (RunReport, Vec<String>) {
    let mut events = Vec::new();
    let machine = Machine::new(code.clone(), None, Config::default());
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report =
        runtime::run(machine, handlers, &limits, &cancel, &mut |e| events.push(format!("{e:?}"))).await;
    (report, events)
}

fn text(report: &RunReport) -> String {
    match &report.result {
        Ok(value) => value.data().unwrap().to_json().to_string(),
        Err(f) => panic!("{f:?}"),
    }
}

/// Tests that hold of a journal in a file and of one on a Postgres server.
macro_rules! of_each_database {
    ($($name:ident)*) => {
        mod in_a_file {
            $(#[tokio::test]
            async fn $name() {
                let dir = tempfile::tempdir().unwrap();
                super::$name(dir.path().join("r.db").into()).await;
            })*
        }

        #[cfg(all(unix, feature = "postgres"))]
        mod on_postgres {
            $(#[tokio::test]
            async fn $name() {
                let Some(server) = crate::support::postgres::PostgresServer::shared() else { return };
                super::$name(super::postgres::place(&server.fresh())).await;
            })*
        }
    };
}

of_each_database! {
    interrupted_run_resumes_without_repeated_requests
    a_replay_gives_the_same_and_asks_nothing
    a_replay_is_strict
    an_unfinished_call_is_asked_about
    a_tool_that_could_not_be_called_is_no_unfinished_call
    an_idempotent_tool_is_called_again_with_the_same_key
    a_changed_program_is_refused_or_replayed_as_far_as_it_asks_the_same
    a_run_with_a_changed_program_is_resumed_as_one_of_that_program
    a_fork_goes_another_way
    a_run_is_played_as_it_was
    a_run_that_goes_on_is_played_as_far_as_it_has_come
    pages_of_runs_meet_their_conditions
    a_program_is_kept_once_for_all_of_its_runs
    a_secret_in_the_settings_is_in_no_journal
}

/// Plays a run: what came of it, and its events without what only a live run knows.
fn play(file: &JournalPlace, id: &str, code: &Arc<Code>) -> (Played, Vec<String>) {
    let machine = Machine::new(code.clone(), None, Config::default());
    let mut events = Vec::new();
    let played = Journal::existing(file).unwrap().play(id, machine, &mut |e| {
        events.push(format!("{e:?}"));
        ControlFlow::Continue(())
    });
    (played.unwrap(), events)
}

/// Events without times, and in an order of their own.
fn comparable(mut events: Vec<String>) -> Vec<String> {
    for event in &mut events {
        let cut = event.find("elapsed").unwrap_or(event.len());
        event.truncate(cut);
        *event = event.replace("recorded: true", "recorded: false");
    }
    events.sort();
    events
}

async fn a_run_is_played_as_it_was(file: JournalPlace) {
    let (code, ledger) = (program("hello"), Ledger::default());
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let (report, events) = run(&code, &with(handlers(SCRIPT, &ledger), session)).await;
    let (played, again) = play(&file, &id, &code);
    assert!(played.is_over && played.differs.is_none(), "{:?}", played.differs);
    assert_eq!(text(&played.report), text(&report));
    assert_eq!((played.report.usage, played.report.run), (report.usage, id.clone()));
    let without_samples = |events| {
        let mut events = comparable(events);
        events.retain(|e| !e.contains("Sample"));
        events
    };
    assert_eq!(without_samples(again), without_samples(events));
    assert_eq!(ledger.lock().unwrap().len(), 3);
    // Each answer has its number and its time.
    let mut steps: Vec<u64> = played.records.values().map(|r| r.step).collect();
    steps.sort_unstable();
    assert_eq!(steps, [1, 2, 3, 4, 5]);
    assert!(played.records.values().all(|r| r.written.is_some()));
    let info = Journal::existing(&file).unwrap().run(&id).unwrap();
    assert!(info.ended.is_some_and(|ended| ended >= info.created), "{info:?}");
    // Another program than that of the run gets no answer of it.
    let (other, _) = play(&file, &id, &program("good bye"));
    assert!(!other.is_over && other.differs.unwrap().contains("the request differs"));
}

async fn a_run_that_goes_on_is_played_as_far_as_it_has_come(file: JournalPlace) {
    let (code, ledger) = (program("hello"), Ledger::default());
    let session = begin(&file, &code);
    let id = session.id().to_string();
    // No answer for the second question: it ends there, like a run that is under way.
    run(&code, &with(handlers(r#"["one"]"#, &ledger), session)).await;
    let before = Journal::existing(&file).unwrap().revision(&id).unwrap();
    let fork = Journal::open(&file).unwrap().fork(&id, 1, &json!({"reply": "two"})).unwrap();
    let (played, events) = play(&file, &fork, &code);
    assert!(!played.is_over && played.differs.is_none());
    assert_eq!(played.report.result.unwrap_err().message, "the run has not ended");
    let answered = events.iter().filter(|e| e.starts_with("Answered")).count();
    let asked = events.iter().filter(|e| e.starts_with("Asked")).count();
    assert_eq!((asked, answered, played.report.usage.model_calls), (4, 1, 1));
    let journal = Journal::existing(&file).unwrap();
    assert_eq!(journal.revision(&id).unwrap(), before);
    assert_ne!(journal.revision(&fork).unwrap(), before);
    assert!(journal.revision("none").is_err());
}

async fn pages_of_runs_meet_their_conditions(file: JournalPlace) {
    let code = program("hello");
    let end = |name: &str, script: &str| {
        let about = RunIdentity::new(name, &code, None, json!({"seed": 7}));
        let session = Journal::open(&file).unwrap().begin(&about, &Default::default()).unwrap();
        (session.id().to_string(), handlers(script, &Ledger::default()), session)
    };
    let mut ids = Vec::new();
    for (name, script) in [("a.agent x", SCRIPT), ("b%c.agent y", "[]"), ("bxc.agent y", SCRIPT)] {
        let (id, handlers, session) = end(name, script);
        run(&code, &with(handlers, session)).await;
        ids.push(id);
    }
    let (running, _, session) = end("d.agent z", "[]");
    ids.push(running);
    let journal = Journal::existing(&file).unwrap();
    let page = |filter: RunFilter, most| {
        let runs = journal.page(&filter, most).unwrap();
        runs.into_iter().map(|r| ids.iter().position(|id| *id == r.id).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(page(RunFilter::default(), 10), [3, 2, 1, 0]);
    let second = journal.page(&RunFilter::default(), 2).unwrap().pop().unwrap();
    let after = Some(RunCursor { created: second.created, id: second.id });
    assert_eq!(page(RunFilter { after, ..RunFilter::default() }, 10), [1, 0]);
    let named = |name: &str| RunFilter { name: Some(name.into()), ..RunFilter::default() };
    // No pattern: a text.
    assert_eq!((page(named("b%c"), 10), page(named("_"), 10)), (vec![1], vec![]));
    assert_eq!((page(named("'; DROP TABLE runs"), 10), page(named(".agent"), 1)), (vec![], vec![3]));
    let of = |statuses: &[RunStatus]| RunFilter { statuses: statuses.to_vec(), ..RunFilter::default() };
    assert_eq!(page(of(&[RunStatus::Done]), 10), [2, 0]);
    assert_eq!(page(of(&[RunStatus::Running, RunStatus::Failed]), 10), [3, 1]);
    let failed = RunFilter { error: Some("model".into()), ..RunFilter::default() };
    assert_eq!((page(failed, 10), journal.counts().unwrap().len()), (vec![1], 3));
    drop(session);
}

async fn a_program_is_kept_once_for_all_of_its_runs(file: JournalPlace) {
    let code = program("hello");
    let begun = |kept: &str| {
        let mut about = about(&code);
        about.kept = Some(kept.into());
        let secrets = Redactor::new([Secret::new(KEY)]);
        Journal::open(&file).unwrap().begin(&about, &secrets).unwrap().id().to_string()
    };
    let (one, two, other) = (begun(r#"{"a":1}"#), begun(r#"{"a":1}"#), begun(r#"{"a":2}"#));
    let secret = begun(&format!(r#"{{"key":"{KEY}"}}"#));
    let mut journal = Journal::existing(&file).unwrap();
    let kept = |journal: &Journal, id: &str| journal.kept_program(id).unwrap();
    assert_eq!(kept(&journal, &one), Some(json!({"a": 1})));
    assert_eq!((kept(&journal, &two), kept(&journal, &other)), (kept(&journal, &one), Some(json!({"a": 2}))));
    // One with a secret in it is not kept, and the run begins all the same.
    assert_eq!(kept(&journal, &secret), None);
    journal.delete(&one).unwrap();
    assert_eq!(kept(&journal, &two), Some(json!({"a": 1})));
    assert!(journal.check().unwrap().damaged.is_empty());
}

async fn a_secret_in_the_settings_is_in_no_journal(file: JournalPlace) {
    let code = program("hello");
    let secrets = Redactor::new([Secret::new(KEY)]);
    let with_setting = |name: &str, value: &str| {
        let mut about = about(&code);
        about.settings[name] = value.into();
        about
    };
    let open = || Journal::open(&file).unwrap();
    let of_policy = |text: &str| with_setting(POLICY_TEXT, text);
    let kept = |id: &str| open().settings(id).unwrap();

    let session = open().begin(&of_policy(&format!("# {KEY}")), &secrets).unwrap();
    let id = session.id().to_string();
    assert_eq!(kept(&id)[POLICY_TEXT], json!({"withheld": true}));
    drop(session);
    let resume = |policy: &str| {
        let about = of_policy(policy);
        drop(open().resume(&id, &about, &secrets, false, Unfinished::Ask).unwrap());
        let settings = kept(&id);
        (settings[POLICY_TEXT].clone(), settings[POLICY_CHANGED].clone())
    };
    assert_eq!(resume("# none"), (json!("# none"), json!(true)));
    assert_eq!(resume(&format!("# {KEY}")), (json!({"withheld": true}), json!(true)));

    // The machine reads the request, so it can't be left out.
    let refused = open().begin(&with_setting("request", KEY), &secrets).unwrap_err();
    assert!(refused.message.contains("holds a secret"), "{refused:?}");
    assert_eq!(open().runs().unwrap().len(), 1);
}

async fn a_replay_gives_the_same_and_asks_nothing(file: JournalPlace) {
    let (code, ledger) = (program("hello"), Ledger::default());
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let (recorded, events) = run(&code, &with(handlers(SCRIPT, &ledger), session)).await;
    assert_eq!(recorded.run, id);
    assert_eq!(ledger.lock().unwrap().len(), 3);
    let info = Journal::existing(&file).unwrap().run(&id[..6]).unwrap();
    assert_eq!((info.status, info.steps), (RunStatus::Done, 5));

    let nothing = Ledger::default();
    let session = Journal::existing(&file).unwrap().replay(&id).unwrap();
    let (replayed, again) = run(&code, &with(handlers("[]", &nothing), session)).await;
    assert_eq!(text(&replayed), text(&recorded));
    assert_eq!(replayed.usage, recorded.usage);
    assert!(nothing.lock().unwrap().is_empty());
    // Also what is told is the same, but for the order of what happened at once.
    let sorted = |mut e: Vec<String>| {
        e.retain(|e| !e.contains("Sample"));
        comparable(e)
    };
    let asked = |events: &[String], recorded: &str| events.iter().filter(|e| e.contains(recorded)).count();
    assert_eq!((asked(&events, "recorded: true"), asked(&again, "recorded: true")), (0, 5));
    assert_eq!(sorted(again), sorted(events));
}

async fn a_replay_is_strict(file: JournalPlace) {
    let (code, ledger) = (program("hello"), Ledger::default());
    let session = begin(&file, &code);
    run(&code, &with(handlers(SCRIPT, &ledger), session)).await;
    let replay = || {
        let journal = Journal::existing(&file).unwrap();
        let id = journal.latest(Some("test")).unwrap().id;
        with(handlers("[]", &ledger), journal.replay(&id).unwrap())
    };
    let failure = run(&program("good bye"), &replay()).await.0.result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::Cancelled);
    assert_eq!(
        failure.message,
        "the request differs from the recorded one: at messages[1].content: it was `hello` and is `good bye`"
    );
    let longer = code_of(|b| {
        let first = ask(b, "hello", ModelParams::default());
        let pays = par(b, None, 4, |b, i| pay(b, i as i64));
        b.add(Term::List(vec![first, pays]), AT)
    });
    let failure = run(&longer, &replay()).await.0.result.unwrap_err();
    assert!(
        failure.message.starts_with("the recording has no answer to this: `{\"kind\":\"tool\""),
        "{failure:?}"
    );
    assert_eq!(ledger.lock().unwrap().len(), 3);
}

async fn interrupted_run_resumes_without_repeated_requests(file: JournalPlace) {
    let code = program("hello");
    // Uninterrupted, for comparison.
    let whole = run(&code, &handlers(SCRIPT, &Ledger::default())).await.0;
    for cut in 0..16 {
        let ledger = Ledger::default();
        let session = begin(&file, &code);
        let id = session.id().to_string();
        let first = with(handlers(SCRIPT, &ledger), session);
        let machine = Machine::new(code.clone(), None, Config::default());
        let cancel = CancellationToken::new();
        let (told, stop) = (Mutex::new(0), cancel.clone());
        let mut count = move |_: Event| {
            let mut told = told.lock().unwrap();
            *told += 1;
            if *told > cut {
                stop.cancel();
            }
        };
        let cut_off = runtime::run(machine, &first, &Limits::default(), &cancel, &mut count).await;
        let status = Journal::existing(&file).unwrap().run(&id).unwrap().status;
        assert_eq!(status, if cut_off.result.is_ok() { RunStatus::Done } else { RunStatus::Stopped });
        let script = first.models.clone();
        drop(first);
        // The same script goes on where it was: an answer that was lost would be missed.
        let session = resume(&file, &id, &code, Unfinished::Retry);
        let second = Handlers { models: script, ..with(handlers("[]", &ledger), session) };
        let (report, _) = run(&code, &second).await;
        assert_eq!(text(&report), text(&whole), "cut after {cut}");
        assert_eq!(report.usage.model_calls, 2);
        let paid = ledger.lock().unwrap().clone();
        assert!((3..=6).contains(&paid.len()), "{paid:?}");
    }
}

async fn an_unfinished_call_is_asked_about(file: JournalPlace) {
    let code = code(|b| pay(b, 1));
    let session = begin(&file, &code);
    let id = session.id().to_string();
    // The process dies while the tool is at work.
    let hangs: runtime::CustomTool = Arc::new(|_| Box::pin(std::future::pending()));
    let tools = Tools::new(&Environment::default()).with_custom("pay", hangs);
    let first = with(Handlers { tools, ..handlers("[]", &Ledger::default()) }, session);
    {
        let began = Arc::new(tokio::sync::Notify::new());
        let told = began.clone();
        let machine = Machine::new(code.clone(), None, Config::default());
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let mut tell = move |_| told.notify_one();
        tokio::select! {
            _ = runtime::run(machine, &first, &limits, &cancel, &mut tell) => panic!("it hangs"),
            () = began.notified() => {}
        }
    }
    // Nobody else may resume it meanwhile.
    let journal = Journal::existing(&file).unwrap();
    let e = journal.resume(&id, &about(&code), &Default::default(), false, Unfinished::Ask).unwrap_err();
    assert!(e.message.contains("another process executes run"), "{e:?}");
    drop(first);

    let ledger = Ledger::default();
    let ask = with(handlers("[]", &ledger), resume(&file, &id, &code, Unfinished::Ask));
    let e = run(&code, &ask).await.0.result.unwrap_err();
    assert!(
        e.message.contains("interrupted while the tool `pay` was at work")
            && e.message.contains("--unfinished"),
        "{e:?}"
    );
    assert!(ledger.lock().unwrap().is_empty());
    drop(ask);
    let retry = with(handlers("[]", &ledger), resume(&file, &id, &code, Unfinished::Retry));
    assert_eq!(text(&run(&code, &retry).await.0), "\"paid 1\"");
    assert_eq!(ledger.lock().unwrap().len(), 1);
}

/// A writing tool whose program is missing was not called: once it is there, the run goes on without a
/// question.
async fn a_tool_that_could_not_be_called_is_no_unfinished_call(file: JournalPlace) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("pay");
    let mut t = payment();
    t.params.clear();
    t.handler = Some(crate::support::program::exec(&[program.to_str().unwrap()]));
    let code = code(|b| call(b, t, vec![]));
    let plain = || Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap())));
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let e = run(&code, &with(plain(), session)).await.0.result.unwrap_err();
    assert_eq!(e.code, ErrorCode::Configuration, "{e:?}");
    std::os::unix::fs::symlink("/bin/true", &program).unwrap();
    let report = run(&code, &with(plain(), resume(&file, &id, &code, Unfinished::Ask))).await.0;
    assert_eq!(text(&report), "\"\"");
}

/// A call that was interrupted stays one, even if its program is missing when it is tried again.
#[cfg(unix)]
#[tokio::test]
async fn an_interrupted_call_stays_one_when_its_program_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (file, program) = (dir.path().join("r.db"), dir.path().join("pay"));
    let hang = "#!/bin/sh\nexec sleep 1000\n";
    std::fs::write(&program, hang).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut t = payment();
    t.params.clear();
    t.handler = Some(crate::support::program::exec(&[program.to_str().unwrap()]));
    let code = code(|b| call(b, t, vec![]));
    let plain = || Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap())));
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let first = with(plain(), session);
    {
        let machine = Machine::new(code.clone(), None, Config::default());
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let mut ignore = |_| {};
        let noted = async {
            // The row of the call that is under way.
            let db = rusqlite::Connection::open(&file).unwrap();
            let rows = || db.query_row("SELECT count(*) FROM entries", [], |r| r.get::<_, i64>(0)).unwrap();
            while rows() == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            _ = runtime::run(machine, &first, &limits, &cancel, &mut ignore) => panic!("it hangs"),
            () = noted => {}
        }
    }
    drop(first);
    std::fs::remove_file(&program).unwrap();
    let retry = with(plain(), resume(&file, &id, &code, Unfinished::Retry));
    let e = run(&code, &retry).await.0.result.unwrap_err();
    assert_eq!(e.code, ErrorCode::Configuration, "{e:?}");
    drop(retry);
    let ask = with(plain(), resume(&file, &id, &code, Unfinished::Ask));
    let e = run(&code, &ask).await.0.result.unwrap_err();
    assert!(e.message.contains("interrupted while the tool `pay` was at work"), "{e:?}");
}

async fn an_idempotent_tool_is_called_again_with_the_same_key(file: JournalPlace) {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    // The first time it hangs after it has done its work.
    let script = format!(
        "echo $ENTAIL_IDEMPOTENCY_KEY >> {0}; if [ $(wc -l < {0}) = 1 ]; then sleep 1000; fi; echo done",
        keys.display()
    );
    let mut t = payment();
    t.params.clear();
    t.handler = Some(Data::record([
        ("exec".into(), Data::list(["sh", "-c", &script].map(Data::str))),
        ("idempotent".into(), Data::Bool(true)),
    ]));
    let code = code(|b| call(b, t, vec![]));
    let plain = || Handlers::new(Models::only(Arc::new(Scripted::parse("[]").unwrap())));
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let first = with(plain(), session);
    {
        let machine = Machine::new(code.clone(), None, Config::default());
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let mut ignore = |_| {};
        let written = async {
            while !keys.exists() || std::fs::read_to_string(&keys).unwrap().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            _ = runtime::run(machine, &first, &limits, &cancel, &mut ignore) => panic!("it hangs"),
            () = written => {}
        }
    }
    drop(first);
    let second = with(plain(), resume(&file, &id, &code, Unfinished::Ask));
    assert_eq!(text(&run(&code, &second).await.0), "\"done\"");
    let keys = std::fs::read_to_string(keys).unwrap();
    let lines: Vec<&str> = keys.lines().collect();
    assert!(lines.len() == 2 && lines[0] == lines[1] && lines[0].len() == 32, "{keys}");
}

async fn a_changed_program_is_refused_or_replayed_as_far_as_it_asks_the_same(file: JournalPlace) {
    let old = code(|b| {
        let (x, y) = (ask(b, "first", ModelParams::default()), ask(b, "second", ModelParams::default()));
        b.add(Term::List(vec![x, y]), AT)
    });
    let new = code(|b| {
        let (x, y) = (ask(b, "first", ModelParams::default()), ask(b, "2nd", ModelParams::default()));
        b.add(Term::List(vec![x, y]), AT)
    });
    let ledger = Ledger::default();
    let session = begin(&file, &old);
    let id = session.id().to_string();
    run(&old, &with(handlers(SCRIPT, &ledger), session)).await;
    let journal = || Journal::existing(&file).unwrap();
    let e = journal().resume(&id, &about(&new), &Default::default(), false, Unfinished::Ask).unwrap_err();
    assert!(e.message.contains("the program has changed") && e.message.contains("2nd"), "{e:?}");
    assert!(e.help.unwrap().contains("--allow-changed"));
    let session = journal().resume(&id, &about(&new), &Default::default(), true, Unfinished::Ask).unwrap();
    let (report, _) = run(&new, &with(handlers(r#"["fresh"]"#, &ledger), session)).await;
    assert_eq!(text(&report), r#"["one","fresh"]"#);
}

async fn a_run_with_a_changed_program_is_resumed_as_one_of_that_program(file: JournalPlace) {
    let questions = |all: [&'static str; 3]| {
        code(move |b| {
            let asked = all.iter().map(|q| ask(b, q, ModelParams::default())).collect();
            b.add(Term::List(asked), AT)
        })
    };
    let (old, new) = (questions(["1", "2", "3"]), questions(["1", "two", "3"]));
    let ledger = Ledger::default();
    let session = begin(&file, &old);
    let id = session.id().to_string();
    run(&old, &with(handlers(r#"["a", "b", "c"]"#, &ledger), session)).await;
    let journal = || Journal::existing(&file).unwrap();
    // The changed program is gone before it asks anything new: all answers in the file are still those to the
    // old one.
    let session = journal().resume(&id, &about(&new), &Default::default(), true, Unfinished::Ask).unwrap();
    let stopped = {
        let machine = Machine::new(new.clone(), None, Config::default());
        let (limits, cancel) =
            (Limits { max_model_calls: Some(1), ..Limits::default() }, CancellationToken::new());
        let handlers = with(handlers("[]", &ledger), session);
        runtime::run(machine, &handlers, &limits, &cancel, &mut |_| {}).await
    };
    assert_eq!(stopped.result.unwrap_err().code, ErrorCode::Budget);
    let changes = journal().changes(&id).unwrap();
    assert_eq!(changes.iter().map(|c| c.step).collect::<Vec<_>>(), [3]);
    assert!(changes[0].what.contains("two"), "{changes:?}");
    // It is its program now, and the old one is the changed one.
    let e = journal().resume(&id, &about(&old), &Default::default(), false, Unfinished::Ask).unwrap_err();
    assert!(e.message.contains("the program has changed"), "{e:?}");
    let fork = journal().fork(&id, 1, &json!({"reply": "A"})).unwrap();
    let fresh = with(handlers(r#"["B", "C"]"#, &ledger), resume(&file, &fork, &new, Unfinished::Ask));
    assert_eq!(text(&run(&new, &fresh).await.0), r#"["A","B","C"]"#);
    drop(fresh);
    let again = with(handlers(r#"["B", "C"]"#, &ledger), resume(&file, &id, &new, Unfinished::Ask));
    assert_eq!(text(&run(&new, &again).await.0), r#"["a","B","C"]"#);
    drop(again);
    // What is written now is of the new program, and strict as ever.
    let last = with(handlers("[]", &ledger), resume(&file, &id, &new, Unfinished::Ask));
    assert_eq!(text(&run(&new, &last).await.0), r#"["a","B","C"]"#);
    assert_eq!(journal().check().unwrap().damaged, Vec::<String>::new());
    assert_eq!(journal().changes(&id).unwrap(), changes);
    assert_eq!(journal().changes(&fork).unwrap()[0].step, 1);
}

async fn a_fork_goes_another_way(file: JournalPlace) {
    let (code, ledger) = (program("hello"), Ledger::default());
    let session = begin(&file, &code);
    let id = session.id().to_string();
    run(&code, &with(handlers(SCRIPT, &ledger), session)).await;
    let mut journal = Journal::existing(&file).unwrap();
    let e = journal.fork(&id, 1, &json!({"data": 1})).unwrap_err();
    assert!(e.message.contains("none to a request of kind `model`"), "{e:?}");
    assert!(journal.fork(&id, 77, &json!({"reply": "x"})).is_err());
    let forked = journal.fork(&id, 1, &json!({"reply": "ONE"})).unwrap();
    assert_eq!(journal.run(&forked).unwrap().parent.as_deref(), Some(&*id));
    let second = with(handlers(r#"["TWO"]"#, &ledger), resume(&file, &forked, &code, Unfinished::Ask));
    let (report, _) = run(&code, &second).await;
    assert!(text(&report).starts_with(r#"["ONE",["paid 0","paid 1","paid 2"],"TWO""#), "{}", text(&report));
    journal.delete(&id).unwrap();
    assert_eq!(journal.runs().unwrap().len(), 1);
}

#[tokio::test]
async fn secrets_are_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let environment = Environment::new([("PLANTED_KEY", KEY)]);
    let models = Models::new(ModelSettings::default(), environment.clone()).unwrap();
    let leak: runtime::CustomTool =
        Arc::new(|_| Box::pin(async { Ok(Data::str(format!("the key is {KEY}"))) }));
    let tools = Tools::new(&environment).with_custom("leak", leak);
    let code = code(|b| {
        let t = decl("leak", &[("x", Type::Str)], Type::Str, None);
        let first = call(b, t.clone(), vec![("x".into(), Data::str(KEY))]);
        let t = b.tool(t);
        let f = b.add(Term::Tool(t), AT);
        b.app(f, first, AT)
    });
    let about = RunIdentity::new(format!("name {KEY}"), &code, None, json!({}));
    let session = Journal::open(&file).unwrap().begin(&about, models.redactor()).unwrap();
    let handlers = Handlers { tools, ..with(Handlers::new(models.clone()), session) };
    let (report, events) = run(&code, &handlers).await;
    assert_eq!(text(&report), "\"the key is [redacted]\"");
    assert!(!format!("{events:?}").contains("planted"));
    drop(handlers);
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("planted"));
    }
    let about = RunIdentity { input: Some(Data::str(KEY)), ..about };
    let e = Journal::open(&file).unwrap().begin(&about, models.redactor()).unwrap_err();
    assert!(e.message.contains("the input holds a secret"), "{e:?}");
}

#[tokio::test]
async fn a_torn_end_loses_the_last_answers_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let (code, ledger) = (program("hello"), Ledger::default());
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let handlers_with = with(handlers(SCRIPT, &ledger), session);
    run(&code, &handlers_with).await;
    // As the disk is while the run goes on: a file and its log. The log is cut, or its end is garbage.
    let (db, wal) = (std::fs::read(&file).unwrap(), std::fs::read(dir.path().join("r.db-wal")).unwrap());
    assert!(wal.len() > 10_000);
    let mut steps = Vec::new();
    for cut in (0..wal.len()).step_by(3989) {
        for garbage in [false, true] {
            let copy = dir.path().join(format!("{cut}{garbage}.db"));
            std::fs::write(&copy, &db).unwrap();
            let mut torn = wal[..cut].to_vec();
            if garbage {
                torn.resize(wal.len(), 0xa5);
            }
            std::fs::write(dir.path().join(format!("{cut}{garbage}.db-wal")), torn).unwrap();
            match Journal::existing(&copy).and_then(|j| j.run(&id)) {
                Ok(info) => {
                    steps.push(info.steps);
                    let nothing = Ledger::default();
                    let journal = Journal::existing(&copy).unwrap();
                    let about = about(&code);
                    let session =
                        journal.resume(&id, &about, &Default::default(), false, Unfinished::Retry).unwrap();
                    let script = if info.steps == 0 { SCRIPT } else { r#"["two"]"# };
                    let (report, _) = run(&code, &with(handlers(script, &nothing), session)).await;
                    assert!(text(&report).starts_with(r#"["one",["paid 0","paid 1","paid 2"],"two""#));
                }
                // So early that the run was not there.
                Err(e) => assert!(e.message.contains("not found") || e.message.contains("journal"), "{e:?}"),
            }
        }
    }
    // What came at once may have been written at once.
    assert!(steps.contains(&0) && steps.contains(&1) && steps.contains(&5), "{steps:?}");
}

/// Without its log (a copy, a file system that lost something) there is nothing to mend a file with. What is
/// left must not pass for the whole.
#[tokio::test]
async fn a_damaged_file_is_refused_or_says_what_it_said() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let (code, ledger) = (program("hello"), Ledger::default());
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let writing = with(handlers(SCRIPT, &ledger), session);
    let whole = run(&code, &writing).await.0;
    drop(writing);
    let bytes = std::fs::read(&file).unwrap();
    assert!(!dir.path().join("r.db-wal").exists() && bytes.len() >= 5 * 4096, "{}", bytes.len());
    let copy = dir.path().join("copy.db");
    let replay = async |bytes: &[u8]| {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(dir.path().join(format!("copy.db{end}")));
        }
        std::fs::write(&copy, bytes).unwrap();
        let session = Journal::existing(&copy).and_then(|j| j.replay(&id))?;
        Ok::<_, runtime::JournalError>(run(&code, &with(handlers("[]", &Ledger::default()), session)).await.0)
    };
    assert_eq!(text(&replay(&bytes).await.unwrap()), text(&whole));
    // Cut off, within pages and between them: never taken for a whole one.
    let cuts = (0..bytes.len()).step_by(1021).chain((0..bytes.len()).step_by(4096)).chain([bytes.len() - 1]);
    for cut in cuts {
        let e = replay(&bytes[..cut]).await.expect_err("it is cut off");
        assert!(e.message.contains("journal") || e.message.contains("not found"), "{cut}: {e:?}");
    }
    // A page that was not written, or is another's.
    let mut refused = 0;
    for page in 0..bytes.len() / 4096 {
        for fill in [0, 0xa5] {
            let mut damaged = bytes.clone();
            damaged[page * 4096..][..4096].fill(fill);
            match replay(&damaged).await {
                Ok(report) => match &report.result {
                    Ok(_) => assert_eq!(text(&report), text(&whole), "page {page}"),
                    Err(failure) => {
                        assert_eq!(failure.code, ErrorCode::Cancelled, "page {page}: {failure:?}")
                    }
                },
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 0);
}

/// One byte of a text is another one: SQLite's structure is whole, what was said is not.
#[tokio::test]
async fn tampered_journal_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let (code, ledger) = (program("a question"), Ledger::default());
    let session = begin(&file, &code);
    let id = session.id().to_string();
    run(&code, &with(handlers(SCRIPT, &ledger), session)).await;
    let bytes = std::fs::read(&file).unwrap();
    let copy = dir.path().join("copy.db");
    // A message, an answer, an argument, and the program.
    for text in ["\"content\":\"a question", "{\"reply\":\"one", "\"args\":{\"n\":2", "tool pay"] {
        let at = bytes.windows(text.len()).position(|w| w == text.as_bytes()).expect(text);
        let mut changed = bytes.clone();
        changed[at + text.len() - 1] ^= 1;
        std::fs::write(&copy, &changed).unwrap();
        let replayed = Journal::existing(&copy).and_then(|j| j.replay(&id));
        let why = match replayed {
            Err(e) => e.message,
            Ok(session) => {
                let (report, _) = run(&code, &with(handlers("[]", &Ledger::default()), session)).await;
                // Of the conversation its hash is compared, and what it is now is known.
                match (text.contains("content"), report.result) {
                    (true, Ok(_)) => Journal::existing(&copy).unwrap().steps(&id).unwrap_err().message,
                    (_, result) => result.unwrap_err().message,
                }
            }
        };
        assert!(why.contains("it is damaged"), "{text}: {why}");
    }
}

/// A check names the damaged runs and continues with the others.
#[tokio::test]
async fn a_check_names_the_runs_that_are_not_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let (good, bad, ledger) = (program("a question"), program("another one"), Ledger::default());
    let mut ids = Vec::new();
    for code in [&good, &bad] {
        let session = begin(&file, code);
        ids.push(session.id().to_string());
        run(code, &with(handlers(SCRIPT, &ledger), session)).await;
    }
    let whole = Journal::existing(&file).unwrap().check().unwrap();
    assert_eq!((whole.runs, whole.damaged.len()), (2, 0));
    assert!(whole.entries >= 10 && whole.messages >= 4, "{whole:?}");
    let bytes = std::fs::read(&file).unwrap();
    for text in ["\"content\":\"another on", "tool pay", "\"paid 1"] {
        let places: Vec<usize> =
            (0..bytes.len()).filter(|i| bytes[*i..].starts_with(text.as_bytes())).collect();
        let mut damaged = std::collections::HashSet::new();
        for at in &places {
            let mut changed = bytes.clone();
            changed[at + text.len() - 1] ^= 1;
            std::fs::write(&file, &changed).unwrap();
            let journal = Journal::existing(&file).unwrap();
            let checked = journal.check().unwrap();
            // A page that is free holds what nobody reads.
            if checked.damaged.is_empty() {
                continue;
            }
            assert_eq!(checked.damaged.len(), 1, "{text} at {at}");
            let other = usize::from(checked.damaged[0] == ids[0]);
            let session = journal.replay(&ids[other]).unwrap();
            let (report, _) = run([&good, &bad][other], &with(handlers("[]", &ledger), session)).await;
            assert!(report.result.is_ok(), "{text} at {at}: {report:?}");
            damaged.extend(checked.damaged);
        }
        assert!(damaged.contains(&ids[1]), "{text}");
    }
    // Of a file whose structure is damaged nothing is relied on.
    let mut torn = bytes.clone();
    let last = bytes.len() - 4096;
    torn[last..].fill(0xa5);
    std::fs::write(&file, &torn).unwrap();
    let e = Journal::existing(&file).and_then(|j| j.check()).unwrap_err();
    assert!(e.message.contains("it is damaged"), "{e:?}");
}

/// An agent that calls a tool `rounds` times, and asks with all that has been said each time.
async fn long_conversation(file: &Path, rounds: usize) -> u64 {
    let code = {
        let program = r#"
            tool look(q: String) -> String reads {}
            agent seeker { tools: [look], prompt: "You look things up.", max_steps: 1000 }
            task find(q: String) -> String by agent { prompt "find {q}" }
            pipeline main() -> String { let a = run find with { q: "it" } by seeker; return a; }
        "#;
        let (module, found) = agentlang::check(AT.file, program);
        let module = module.unwrap_or_else(|| panic!("{found:?}"));
        Arc::new(module.lower(module.default_entry().unwrap()).unwrap())
    };
    let calls = Mutex::new(0);
    let look: runtime::CustomTool = Arc::new(move |_| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        let said = format!("{calls} {}", "x".repeat(2000));
        Box::pin(async { Ok(Data::str(said)) })
    });
    let mut script = vec![json!({"tool": "look", "args": {"q": "it"}}); rounds];
    script.push(json!("found"));
    let session = Journal::open(file).unwrap().begin(&about(&code), &Default::default()).unwrap();
    let mut handlers = with(handlers(&json!(script).to_string(), &Ledger::default()), session);
    handlers.tools = Tools::new(&Environment::default()).with_custom("look", look);
    let machine = Machine::new(code, Some(Data::record([])), Config::default());
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let report = runtime::run(machine, &handlers, &limits, &cancel, &mut |_| {}).await;
    assert_eq!(text(&report), "\"found\"");
    drop(handlers);
    std::fs::metadata(file).unwrap().len()
}

#[tokio::test]
async fn a_conversation_takes_as_much_as_it_is_long() {
    let dir = tempfile::tempdir().unwrap();
    let mut sizes = Vec::new();
    for rounds in [25, 50, 100] {
        sizes.push(long_conversation(&dir.path().join(format!("{rounds}.db")), rounds).await);
    }
    // A result is in the answer of its tool and in the conversation. Whole conversations in each request
    // would be 10 MB.
    assert!(sizes[2] < 100 * 12_000, "{sizes:?}");
    assert!(sizes[2] - sizes[1] < 3 * (sizes[1] - sizes[0]), "{sizes:?}");
    // And the request is shown with all that was said.
    let journal = Journal::existing(dir.path().join("25.db")).unwrap();
    let steps = journal.steps(&journal.latest(None).unwrap().id).unwrap();
    let last = &steps.iter().rfind(|s| s.request["kind"] == "model").unwrap().request;
    let messages = last["messages"].as_array().unwrap();
    assert!(messages.len() > 50, "{}", messages.len());
    assert!(messages.iter().any(|m| m["content"].as_str().unwrap().starts_with("25 xxx")));
    // A fork has what was said before, and a run that is deleted leaves nothing.
    let mut journal = journal;
    let id = journal.latest(None).unwrap().id;
    let fork = journal.fork(&id, 3, &json!({"reply": "now"})).unwrap();
    journal.delete(&id).unwrap();
    let steps = journal.steps(&fork).unwrap();
    assert_eq!(steps.len(), 3);
    assert!(steps[2].request["messages"].to_string().contains("1 xxx"));
    journal.delete(&fork).unwrap();
    drop(journal);
    let db = rusqlite::Connection::open(dir.path().join("25.db")).unwrap();
    let left: i64 = db.query_row("SELECT count(*) FROM messages", [], |r| r.get(0)).unwrap();
    assert_eq!(left, 0);
}

/// While the disk (here: another writer) keeps one run waiting, others on the same thread go on.
#[tokio::test]
async fn a_run_that_waits_for_the_disk_holds_up_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let code = program("hello");
    let session = begin(&file, &code);
    let mut other = rusqlite::Connection::open(&file).unwrap();
    let writing = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let (first, ledger) = (with(handlers(SCRIPT, &Ledger::default()), session), Ledger::default());
    let plain = handlers(SCRIPT, &ledger);
    let mut waits = std::pin::pin!(run(&code, &first));
    let quick = async {
        // The other one has asked, and its answer is on its way to the disk.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        run(&code, &plain).await
    };
    tokio::select! {
        biased;
        _ = &mut waits => panic!("its answers can't be written yet"),
        (report, _) = quick => assert!(report.result.is_ok()),
    }
    assert_eq!(ledger.lock().unwrap().len(), 3);
    writing.rollback().unwrap();
    assert!(waits.await.0.result.is_ok());
}

#[test]
fn files_that_are_no_journals_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    std::fs::write(&text, "this is no database, but long enough to look like one".repeat(20)).unwrap();
    assert!(Journal::open(&text).unwrap_err().message.contains("it is not a journal"));
    assert!(Journal::existing(dir.path().join("none")).unwrap_err().message.contains("not found"));
    assert!(Journal::open(dir.path()).is_err());
}

/// A run that goes on sees its stores at the time at which it began.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_has_the_time_at_which_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let (file, store) = (dir.path().join("r.db"), StorePlace::File(dir.path().join("m.db")));
    let code = code_of(|b| {
        let seven = b.lit(Num::from(7), AT);
        let write = b.add(Term::Remember("k".into(), None, seven), AT);
        let paid = pay(b, 1);
        let read = b.add(Term::Recall("k".into(), None), AT);
        let all = b.add(Term::List(vec![write, paid, read]), AT);
        let (ty, label, initial) = (Type::Num, core_ir::LabelSpec::BOTTOM, None);
        let keys = vec![core_ir::KeyDecl { name: "k".into(), ty, label, initial }];
        let (name, capacity, ttl) = ("s".into(), None, Some(60));
        let s = b.store(core_ir::StoreDecl { name, keys, capacity, ttl, backend: None, span: AT });
        b.add(Term::Mem(s, all), AT)
    });
    let (ledger, stores) = (Ledger::default(), Stores::new().with_places([("s".into(), store)]));
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let first = Handlers { stores: stores.clone(), ..with(handlers("[]", &ledger), session) };
    let (cancel, mut answers) = (CancellationToken::new(), 0);
    let stop = cancel.clone();
    let mut end_at_the_tool = |event: Event| {
        answers += usize::from(matches!(event, Event::Asked { .. }));
        if answers == 2 {
            stop.cancel();
        }
    };
    let machine = Machine::new(code.clone(), None, Config::default());
    let cut = runtime::run(machine, &first, &Limits::default(), &cancel, &mut end_at_the_tool).await;
    assert!(cut.result.is_err());
    drop(first);
    tokio::time::advance(std::time::Duration::from_secs(100)).await;
    let session = resume(&file, &id, &code, Unfinished::Retry);
    let (report, _) = run(&code, &Handlers { stores, ..with(handlers("[]", &ledger), session) }).await;
    assert_eq!(text(&report), r#"[{},"paid 1",7]"#);
}

#[tokio::test]
async fn attempts_that_failed_are_kept_with_the_answer_and_without_secrets() {
    let crashed = |text: &str| Act::Raw(500, "text/plain", None, format!("{text} {KEY}"));
    let server =
        Server::start([crashed("overloaded"), crashed("overloaded"), Act::Say("hello".into())]).await;
    let environment =
        Environment::new([("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &server.url), ("ENTAIL_MODEL", "m")]);
    let file = serde_json::from_value(json!({"models": {"m": {"retries": 2}}})).unwrap();
    let models = Models::new(ModelSettings { file, ..Default::default() }, environment).unwrap();
    let code = code(|b| ask(b, "hi", ModelParams::default()));
    let dir = tempfile::tempdir().unwrap();
    let place: JournalPlace = dir.path().join("r.db").into();
    let session = Journal::open(&place).unwrap().begin(&about(&code), models.redactor()).unwrap();
    let id = session.id().to_string();
    let (report, events) = run(&code, &with(Handlers::new(models), session)).await;
    assert_eq!(text(&report), r#""hello""#, "{events:?}");
    let (played, _) = play(&place, &id, &code);
    let [record] = played.records.values().collect::<Vec<_>>()[..] else { panic!("{:?}", played.records) };
    let retries = record.retries.as_ref().unwrap();
    assert_eq!((retries.number, retries.causes.len()), (2, 1), "{retries:?}");
    assert!(retries.waited > std::time::Duration::ZERO, "{retries:?}");
    assert!(retries.causes[0].contains("overloaded [redacted]"), "{retries:?}");
}
