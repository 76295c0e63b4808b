//! Approval of tool calls: who is asked, what they see, what becomes of their answer.

use crate::support::program::{AT, call, code, decl, par};
use core_ir::{Approve, Builder, Catches, Code, Data, EffectClass, Term, TermId, Type};
use machine::{Config, ErrorCode, Machine, NOBODY};
use runtime::{
    Answered, Approval, Approver, BoxFuture, CancellationToken, Environment, Event, Handlers, Journal,
    Limits, ModelSettings, Models, RunIdentity, RunReport, Session, Tools, Unfinished,
};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

/// Events seen by a test's handlers.
type Seen<T> = Arc<Mutex<Vec<T>>>;

/// A payment to somebody untrusted.
fn pay(b: &mut Builder, to: &str) -> TermId {
    let mut tool = decl("pay", &[("to", Type::Str)], Type::Str, None);
    (tool.effect, tool.approve) = (EffectClass::Write, Approve::Always);
    let tool = b.tool(tool);
    let (tool, label, to) =
        (b.add(Term::Tool(tool), AT), b.lit(Data::list([Data::str("U")]), AT), b.lit(to, AT));
    let to = b.add(Term::Relabel(label, to), AT);
    let args = b.add(Term::Record(vec![("to".into(), to)]), AT);
    b.app(tool, args, AT)
}

/// `try e catch x. x` where the error may be untrusted
fn caught(b: &mut Builder, body: TermId) -> TermId {
    let (label, handler) = (b.lit(Data::list([Data::str("U")]), AT), b.var("x", AT));
    b.add(Term::Try { label, body, catches: Catches::All, name: "x".into(), handler }, AT)
}

/// Pays by noting it in `paid`; asks an approver who gives the answer.
fn handlers(paid: &Seen<String>, approver: Option<Approver>) -> Handlers {
    let environment = Environment::new([("PLANTED_KEY", KEY)]);
    let models = Models::new(ModelSettings::default(), environment.clone()).unwrap();
    let paid = paid.clone();
    let act: runtime::CustomTool = Arc::new(move |args| {
        paid.lock().unwrap().push(args[0].1.to_json().to_string());
        Box::pin(async { Ok(Data::str("paid")) })
    });
    let tools = Tools::new(&environment).with_custom("pay", act);
    Handlers { tools, approver, ..Handlers::new(models) }
}

fn answering(answer: Result<(), &str>, asked: &Seen<Approval>) -> Option<Approver> {
    let (answer, asked) = (answer.map_err(String::from), asked.clone());
    Some(Approver::new(move |call| -> BoxFuture<_> {
        asked.lock().unwrap().push(call);
        let answer = answer.clone();
        Box::pin(async move {
            tokio::task::yield_now().await;
            answer
        })
    }))
}

/// Never answers.
fn asleep() -> Option<Approver> {
    Some(Approver::new(|_| Box::pin(std::future::pending())))
}

async fn run_until(
    code: &Arc<Code>,
    handlers: &Handlers,
    cancel: &CancellationToken,
) -> (RunReport, Vec<Event>) {
    let mut events = Vec::new();
    let machine = Machine::new(code.clone(), None, Config::default());
    let report = runtime::run(machine, handlers, &Limits::default(), cancel, &mut |e| events.push(e)).await;
    (report, events)
}

async fn run(code: &Arc<Code>, handlers: &Handlers) -> (RunReport, Vec<Event>) {
    run_until(code, handlers, &CancellationToken::new()).await
}

fn text(report: &RunReport) -> String {
    report.result.as_ref().unwrap().data().unwrap().to_json().to_string()
}

#[tokio::test]
async fn approver_sees_arguments_and_labels_without_secrets() {
    let (paid, asked) = (Seen::default(), Seen::default());
    let code = code(|b| pay(b, &format!("bob {KEY}")));
    let (report, _) = run(&code, &handlers(&paid, answering(Ok(()), &asked))).await;
    assert_eq!(text(&report), r#""paid""#);
    assert_eq!(paid.lock().unwrap().len(), 1);
    let asked = asked.lock().unwrap();
    let [call] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((&*call.tool, call.args.len()), ("pay", 1));
    assert_eq!(call.args[0].value, Data::str("bob [redacted]"));
    assert_eq!(call.args[0].label, Data::list([Data::str("U")]));
}

/// An approval is where integrity is vouched for, so a trace says so, and only then.
#[tokio::test]
async fn the_trace_tells_what_was_endorsed() {
    use runtime::trace::{Head, Recorder};
    let lines = async |answer: Result<(), &str>| {
        let (paid, asked) = (Seen::default(), Seen::default());
        let code = code(|b| pay(b, &format!("bob {KEY}")));
        let (report, events) = run(&code, &handlers(&paid, answering(answer, &asked))).await;
        let mut recorder = Recorder::new();
        events.iter().for_each(|e| recorder.note(e));
        let head = Head { program: "p".into(), entry: "main".into(), input: None };
        recorder.lines(&head, &diagnostics::Sources::new(), &report)
    };
    let approved = lines(Ok(())).await;
    let order: Vec<&str> = approved.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(order, ["run", "request", "response", "endorsement", "request", "response", "end"]);
    let want = json!({"event": "endorsement", "n": 1, "tool": "pay", "args": [{"name": "to", "label": ["U"]}],
            "by": {"name": "the embedding program", "via": "program"}});
    assert_eq!(approved[3], want);
    let refused = lines(Err("no")).await;
    assert!(refused.iter().all(|l| l["event"] != "endorsement"), "{refused:?}");
}

#[tokio::test]
async fn refused_call_is_skipped_with_reason() {
    let (paid, asked) = (Seen::default(), Seen::default());
    let refusing = || answering(Err("not to bob"), &asked);
    let (report, _) = run(&code(|b| pay(b, "bob")), &handlers(&paid, refusing())).await;
    let failure = report.result.unwrap_err();
    assert_eq!((failure.code, &*failure.message), (ErrorCode::Tool, "`pay`: not approved: not to bob"));
    let crashing = Some(Approver::new(|_| Box::pin(async { panic!("out to lunch") })));
    // Somebody who refuses in these words is there.
    let in_the_same_words = answering(Err(NOBODY), &asked);
    let cases =
        [(None, NOBODY, true), (crashing, "the handler crashed", false), (in_the_same_words, NOBODY, false)];
    for (approver, why, unattended) in cases {
        let (report, _) = run(&code(|b| pay(b, "bob")), &handlers(&paid, approver)).await;
        let failure = report.result.unwrap_err();
        assert_eq!(failure.message, format!("`pay`: not approved: {why}"));
        assert_eq!(failure.unattended, unattended, "{failure:?}");
    }
    assert!(paid.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn waiting_for_approval_counts_for_time_limits_and_ends_when_the_run_is_canceled() {
    let paid = Seen::default();
    let limited = code(|b| {
        let e = pay(b, "bob");
        b.add(Term::Within("5".parse().unwrap(), e), AT)
    });
    let (report, events) = run(&limited, &handlers(&paid, asleep())).await;
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Timeout);
    assert!(matches!(events.last(), Some(Event::Answered { what: Answered::Late, .. })), "{events:?}");

    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        later.cancel();
    });
    let (report, _) = run_until(&code(|b| pay(b, "bob")), &handlers(&paid, asleep()), &cancel).await;
    assert_eq!(report.result.unwrap_err().code, ErrorCode::Cancelled);
    assert!(paid.lock().unwrap().is_empty());
}

fn about(code: &Code) -> RunIdentity {
    RunIdentity::new("test", code, None, json!({}))
}

fn begin(file: &Path, code: &Code) -> Session {
    Journal::open(file).unwrap().begin(&about(code), &Default::default()).unwrap()
}

fn resume(file: &Path, id: &str, code: &Code) -> Session {
    let journal = Journal::existing(file).unwrap();
    journal.resume(id, &about(code), &Default::default(), false, Unfinished::Ask).unwrap()
}

fn with(handlers: Handlers, session: Session) -> Handlers {
    Handlers { journal: Some(Arc::new(Mutex::new(session))), ..handlers }
}

#[tokio::test]
async fn a_replay_repeats_the_answer_without_asking() {
    let dir = tempfile::tempdir().unwrap();
    for (n, answer) in [Ok(()), Err("not to bob")].into_iter().enumerate() {
        let file = dir.path().join(format!("{n}.db"));
        let (paid, asked) = (Seen::default(), Seen::default());
        let code = code(|b| {
            let e = pay(b, "bob");
            caught(b, e)
        });
        let session = begin(&file, &code);
        let id = session.id().to_string();
        let (recorded, _) = run(&code, &with(handlers(&paid, answering(answer, &asked)), session)).await;
        let session = Journal::existing(&file).unwrap().replay(&id).unwrap();
        // Whoever could be asked now would say the opposite.
        let opposite = if answer.is_ok() { Err("no") } else { Ok(()) };
        let (replayed, _) = run(&code, &with(handlers(&paid, answering(opposite, &asked)), session)).await;
        assert_eq!(text(&replayed), text(&recorded));
        assert_eq!((recorded.usage.questions, replayed.usage.questions), (1, 1));
        assert_eq!(asked.lock().unwrap().len(), 1);
        assert_eq!(paid.lock().unwrap().len(), usize::from(answer.is_ok()));
        // Nor does a run that goes on ask again.
        let session = resume(&file, &id, &code);
        let (resumed, _) = run(&code, &with(handlers(&paid, answering(opposite, &asked)), session)).await;
        assert_eq!((text(&resumed), asked.lock().unwrap().len()), (text(&recorded), 1));
    }
}

/// Whoever can write the journal can write that a call was approved. So an approval that nobody has signed
/// counts there only if its call was made.
#[tokio::test(start_paused = true)]
async fn an_approval_that_cannot_be_proved_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let (paid, asked) = (Seen::default(), Seen::default());
    let code = code(|b| pay(b, "bob"));
    let session = begin(&file, &code);
    let id = session.id().to_string();
    // Approved, and canceled while the call was under way.
    let mut endless = handlers(&paid, answering(Ok(()), &asked));
    let act: runtime::CustomTool = Arc::new(|_| Box::pin(std::future::pending()));
    endless.tools = endless.tools.with_custom("pay", act);
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        later.cancel();
    });
    let (cut_off, _) = run_until(&code, &with(endless, session), &cancel).await;
    assert_eq!(cut_off.result.unwrap_err().code, ErrorCode::Cancelled);
    let steps = Journal::existing(&file).unwrap().steps(&id).unwrap();
    assert_eq!(steps[0].response.as_ref().unwrap()["by"]["via"], "program", "{steps:?}");

    let journal = Journal::existing(&file).unwrap();
    let session = journal.resume(&id, &about(&code), &Default::default(), false, Unfinished::Retry).unwrap();
    let (resumed, _) = run(&code, &with(handlers(&paid, answering(Err("not now"), &asked)), session)).await;
    assert_eq!(resumed.result.unwrap_err().message, "`pay`: not approved: not now");
    assert_eq!((asked.lock().unwrap().len(), paid.lock().unwrap().len()), (2, 0));
}

#[tokio::test]
async fn unanswered_approval_is_requested_on_resume() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let (paid, asked) = (Seen::default(), Seen::default());
    let code = code(|b| par(b, None, 2, |b, i| pay(b, ["bob", "eve"][i])));
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let (alone, _) = run(&code, &with(handlers(&paid, None), session)).await;
    assert!(alone.result.unwrap_err().unattended);
    // A replay shows what happened.
    let session = Journal::existing(&file).unwrap().replay(&id).unwrap();
    let (replayed, _) = run(&code, &with(handlers(&paid, answering(Ok(()), &asked)), session)).await;
    assert!(replayed.result.unwrap_err().unattended);
    assert!(asked.lock().unwrap().is_empty());

    let session = resume(&file, &id, &code);
    let (resumed, _) = run(&code, &with(handlers(&paid, answering(Ok(()), &asked)), session)).await;
    assert_eq!(text(&resumed), r#"["paid","paid"]"#);
    assert_eq!((asked.lock().unwrap().len(), paid.lock().unwrap().len()), (2, 2));
    let steps = Journal::existing(&file).unwrap().steps(&id).unwrap();
    assert_eq!(steps.iter().map(|s| s.step).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_run_that_went_on_without_approval_does_not_turn_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.db");
    let (paid, asked) = (Seen::default(), Seen::default());
    let code = code(|b| {
        let e = pay(b, "bob");
        let first = caught(b, e);
        let mut tool = decl("pay", &[("to", Type::Str)], Type::Str, None);
        tool.name = "note".into();
        let then = call(b, tool, vec![("to".into(), Data::str("log"))]);
        b.add(Term::List(vec![first, then]), AT)
    });
    let noting = |approver| {
        let mut handlers = handlers(&paid, approver);
        let note: runtime::CustomTool = Arc::new(|_| Box::pin(async { Ok(Data::str("noted")) }));
        handlers.tools = handlers.tools.with_custom("note", note);
        handlers
    };
    let session = begin(&file, &code);
    let id = session.id().to_string();
    let (alone, _) = run(&code, &with(noting(None), session)).await;
    assert!(text(&alone).contains(NOBODY) && text(&alone).contains("noted"), "{alone:?}");
    let session = resume(&file, &id, &code);
    let (resumed, _) = run(&code, &with(noting(answering(Ok(()), &asked)), session)).await;
    assert_eq!(text(&resumed), text(&alone));
    assert!(asked.lock().unwrap().is_empty() && paid.lock().unwrap().is_empty());
}

/// A person vouches only for where data comes from. A secret is refused whatever they say, and the remedy is
/// not to ask them.
#[tokio::test]
async fn a_secret_refused_to_an_approved_tool_is_refused_for_its_secrecy_alone() {
    let paid = Seen::default();
    let code = code(|b| {
        let mut tool = decl("pay", &[("to", Type::Str)], Type::Str, None);
        (tool.effect, tool.approve) = (EffectClass::Write, Approve::Always);
        tool.params[0].bound = core_ir::LabelSpec::BOTTOM;
        let tool = b.tool(tool);
        let label = b.lit(Data::list(["U", "S"].map(Data::str).to_vec()), AT);
        let (tool, to) = (b.add(Term::Tool(tool), AT), b.lit("bob", AT));
        let to = b.add(Term::Relabel(label, to), AT);
        b.app(tool, to, AT)
    });
    let (report, _) = run(&code, &handlers(&paid, answering(Ok(()), &Seen::default()))).await;
    let refused = report.why.refused.unwrap();
    assert_eq!((refused.integrity, refused.secrecy), (false, true));
    assert!(paid.lock().unwrap().is_empty());
}
