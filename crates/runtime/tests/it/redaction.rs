//! Redaction is no oracle: a page with a list of words looks the same whichever of them is a password in the
//! environment.

use crate::support::program::{AT, call, code, decl};
use crate::support::{Act, Server};
use core_ir::{Data, ModelParams, Term, Type};
use machine::{Config, ErrorCode, Machine};
use runtime::{
    CancellationToken, Environment, Event, Handlers, Journal, Limits, ModelSettings, Models, RunIdentity,
    RunReport, Session,
};
use serde_json::json;
use std::sync::{Arc, Mutex};

const PAGE: &str = "sunshine moonlight hunter22 letmein1 c3Vuc2hpbmUhIQ==";
const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

/// Reads a page, asks a model about it, and posts both: everything that somebody outside may see.
fn program() -> Arc<core_ir::Code> {
    code(|b| {
        let page = call(b, decl("page", &[], Type::Str, None), vec![]);
        let post = b.tool(decl("post", &[("text", Type::Str)], Type::Str, None));
        let prompt = b.lit("", AT);
        let llm = b.add(Term::Llm(prompt, Arc::new(ModelParams::default())), AT);
        let shown = b.var("page", AT);
        let said = b.app(llm, shown, AT);
        let texts = ["page", "said"].map(|name| b.var(name, AT)).to_vec();
        let texts = b.add(Term::List(texts), AT);
        let text = b.add(Term::Prim(core_ir::Prim::ToStr, vec![texts]), AT);
        let post = b.add(Term::Tool(post), AT);
        let posted = b.app(post, text, AT);
        b.let_in(vec![("page".into(), page), ("said".into(), said)], posted, AT)
    })
}

struct View {
    result: Result<Data, (ErrorCode, String)>,
    events: String,
    posted: Vec<String>,
    model: Vec<serde_json::Value>,
    report: RunReport,
}

async fn run(password: &str, page: &str, session: Option<Session>) -> View {
    let server = Server::start([Act::Say(format!("It says: {page}"))]).await;
    let environment = Environment::new([
        ("DB_PASSWORD", password),
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", &*server.url),
        ("ENTAIL_MODEL", "m"),
        ("ENTAIL_MODEL_DIR", "/nowhere"),
    ]);
    let mut handlers = Handlers::new(Models::new(ModelSettings::default(), environment).unwrap());
    let posted: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, page) = (posted.clone(), page.to_string());
    let page: runtime::CustomTool = Arc::new(move |_| {
        let page = Data::str(&*page);
        Box::pin(async move { Ok(page) })
    });
    let post: runtime::CustomTool = Arc::new(move |args| {
        seen.lock().unwrap().push(args[0].1.to_json().to_string());
        Box::pin(async move { Ok(Data::str("posted")) })
    });
    handlers.tools = handlers.tools.with_custom("page", page).with_custom("post", post);
    handlers.stream = true;
    handlers.journal = session.map(|s| Arc::new(Mutex::new(s)));
    let machine = Machine::new(program(), None, Config::default());
    let (limits, cancel, mut events) = (Limits::default(), CancellationToken::new(), Vec::new());
    let report = runtime::run(machine, &handlers, &limits, &cancel, &mut |e| events.push(e)).await;
    for e in &mut events {
        if let Event::Answered { elapsed, .. } = e {
            *elapsed = std::time::Duration::ZERO;
        }
    }
    let result = report.result.clone().map(|v| v.data().unwrap()).map_err(|f| (f.code, f.message));
    let posted = posted.lock().unwrap().clone();
    let model = server.seen().into_iter().map(|s| s.body).collect();
    View { result, events: format!("{events:?}"), posted, model, report }
}

#[tokio::test]
async fn a_page_with_a_list_of_words_does_not_learn_which_is_a_password() {
    let first = run("sunshine", PAGE, None).await;
    assert!(first.result.is_ok(), "{:?}", first.result);
    for password in ["hunter22", "letmein1", "another-word"] {
        let other = run(password, PAGE, None).await;
        assert_eq!(first.result, other.result);
        assert_eq!(first.posted, other.posted);
        assert_eq!(first.model, other.model);
        assert_eq!(first.events, other.events);
    }
    assert!(first.posted[0].contains("sunshine") && first.posted[0].contains("hunter22"));
}

#[tokio::test]
async fn unguessable_keys_are_redacted_everywhere() {
    let view = run("sunshine", &format!("echo {KEY}"), None).await;
    let all = format!("{:?} {} {:?} {:?}", view.result, view.events, view.posted, view.model);
    assert!(!all.contains(KEY) && all.contains("echo [redacted]"), "{all}");
}

#[tokio::test]
async fn records_keep_no_password_and_replay_never_shows_a_mark() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("j.db");
    let code = program();
    let about = RunIdentity::new("p", &code, None, json!({}));
    let session = Journal::open(&file).unwrap().begin(&about, &Default::default()).unwrap();
    let first = run("hunter22", "the word is hunter22", Some(session)).await;
    assert!(first.posted[0].contains("hunter22"), "the run itself is not changed");
    let kept: Vec<u8> = std::fs::read_dir(dir.path())
        .unwrap()
        .flat_map(|f| std::fs::read(f.unwrap().path()).unwrap())
        .collect();
    assert!(!kept.windows(8).any(|w| w == b"hunter22"), "in the journal");
    let mut line = json!({"text": first.posted[0]});
    first.report.records.json(&mut line);
    assert!(!line.to_string().contains("hunter22"), "{line}");
    // It can't be replayed past the answer, rather than continue with another one.
    let session = Journal::existing(&file).unwrap().replay(&first.report.run).unwrap();
    let again = run("hunter22", "the word is hunter22", Some(session)).await;
    let (code, message) = again.result.unwrap_err();
    assert_eq!(code, ErrorCode::Cancelled);
    assert!(message.contains("held a secret of the environment"), "{message}");
    assert!(again.posted.is_empty());
}
