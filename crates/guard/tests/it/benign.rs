//! Sessions in which nobody attacks (`suite/guard`): how many of their calls are asked about or refused.

use core_ir::Stated;
use diagnostics::FileId;
use guard::{Action, Approval, KeptLabel, Keys, Note, Proxy, Session, SessionOptions, Trust};
use policy::Policy;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Approves everything, and keeps labels as long as the session lasts.
#[derive(Default)]
struct Desk(RefCell<Vec<(Keys, KeptLabel)>>);

impl Trust for Desk {
    fn tool(&self, _: &Value) -> Approval {
        Approval::Approved
    }

    fn stated(&self, _: &Value) -> Stated {
        Stated { sources: None, readers: Some(Vec::new()) }
    }

    fn keep(&self, keys: &Keys, label: &KeptLabel) -> Result<(), String> {
        self.0.borrow_mut().push((keys.clone(), label.clone()));
        Ok(())
    }

    fn kept(&self, keys: &Keys) -> Result<Vec<KeptLabel>, String> {
        let meets = |written: &Keys| match (keys, written) {
            (Keys::Some(a), Keys::Some(b)) => a.iter().any(|key| b.contains(key)),
            _ => true,
        };
        Ok(self.0.borrow().iter().filter(|(written, _)| meets(written)).map(|(_, l)| l.clone()).collect())
    }
}

/// A recorded session.
struct Recorded {
    name: String,
    request: String,
    calls: Vec<Value>,
}

/// A kind of work: its tools, its policy and its sessions.
struct Kind {
    name: String,
    tools: Value,
    policy: Policy,
    sessions: Vec<Recorded>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/guard")
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn kinds() -> Vec<Kind> {
    let kind = |path: PathBuf| {
        let read = |file: &str| std::fs::read_to_string(path.join(file)).unwrap();
        let session = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            let first: Value = lines.next().unwrap();
            let request = first["request"].as_str().expect("a request").into();
            Recorded { name: name(path), request, calls: lines.collect() }
        };
        Kind {
            name: name(&path),
            tools: serde_json::from_str(&read("tools.json")).unwrap(),
            policy: Policy::parse(FileId(0), &read("policy.toml")).unwrap(),
            sessions: sorted(&path.join("sessions")).iter().map(session).collect(),
        }
    };
    sorted(&folder()).into_iter().filter(|path| path.is_dir()).map(kind).collect()
}

/// A call that was not simply made.
struct Stopped {
    call: String,
    is_asked: bool,
    why: String,
}

/// Plays a session through a guard whose client can ask its user, who approves. `is_told` says that the
/// client tells the guard what the user asks for.
fn play(kind: &Kind, session: &Recorded, is_told: bool) -> Vec<Stopped> {
    let mut proxy = Proxy::new(
        Session::new(kind.policy.clone().into(), &SessionOptions::default()),
        Desk::default(),
        false,
    );
    if is_told {
        proxy.user_asks(&session.request);
    }
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "assistant", "version": "1"}});
    let mut stopped = Vec::new();
    let requests = [("initialize", hello), ("tools/list", json!({}))].map(|(m, p)| (m.to_string(), p));
    let calls = session
        .calls
        .iter()
        .map(|call| ("tools/call".to_string(), json!({"name": call["call"], "arguments": call["args"]})));
    for (id, (method, params)) in requests.into_iter().chain(calls).enumerate() {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let recorded = id.checked_sub(2).map(|at| &session.calls[at]);
        let mut todo = proxy.from_client(&request.to_string());
        let mut answered = false;
        while !todo.is_empty() {
            for action in std::mem::take(&mut todo) {
                match action {
                    Action::ToServer(message) => {
                        let result = result(kind, session, recorded, &message);
                        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                        todo.extend(proxy.from_server(&answer.to_string()));
                    }
                    Action::ToClient(message) if message["method"] == "elicitation/create" => {
                        let why = message["params"]["message"].as_str().unwrap().replace('\n', ";");
                        stopped.push(Stopped { call: String::new(), is_asked: true, why });
                        let accepted = json!({"action": "accept", "content": {"approve": true}});
                        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": accepted});
                        todo.extend(proxy.from_client(&answer.to_string()));
                    }
                    Action::ToClient(message) => {
                        assert_eq!(message["id"], id, "{message}");
                        answered = true;
                    }
                    Action::Note(Note::Refused(refused) | Note::Withheld(refused)) => {
                        stopped.push(Stopped { call: String::new(), is_asked: false, why: refused.message });
                    }
                    Action::Note(note @ (Note::Invalid { .. } | Note::Policy(_) | Note::LeftOut { .. })) => {
                        panic!("{} {}: {note:?}", kind.name, session.name)
                    }
                    Action::Ask(inquiry) => panic!("{inquiry:?}"),
                    Action::Note(_) => {}
                }
            }
        }
        assert!(answered, "{} {}: the request {id} has an answer", kind.name, session.name);
        let call = recorded.map_or(method, |call| call["call"].as_str().unwrap().into());
        for stopped in stopped.iter_mut().filter(|stopped| stopped.call.is_empty()) {
            stopped.call = format!("{}/{} {}: {call}", kind.name, session.name, id.saturating_sub(1));
        }
    }
    stopped
}

/// The result of a server. A set is the recorded result of its tool, of this session or another one.
fn result(kind: &Kind, session: &Recorded, recorded: Option<&Value>, message: &Value) -> Value {
    let Some(recorded) = recorded else {
        return match message["method"].as_str() {
            Some("tools/list") => json!({"tools": kind.tools}),
            _ => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "desk", "version": "1"}}),
        };
    };
    let tool = &message["params"]["name"];
    let of = |session: &Recorded| session.calls.iter().find(|c| c["call"] == *tool).cloned();
    let is_own = recorded["call"] == *tool;
    let found = is_own.then(|| recorded.clone()).or_else(|| of(session));
    let found = found.or_else(|| kind.sessions.iter().find_map(of));
    let found = found.unwrap_or_else(|| panic!("{}: no session calls `{tool}`", kind.name));
    let text = found["result"].as_str().map_or_else(|| found["result"].to_string(), String::from);
    json!({"content": [{"type": "text", "text": text}]})
}

/// The table of the guide, and each call that was stopped with its reason.
fn measure() -> (String, Vec<Stopped>) {
    let mut table = String::from(
        "| work | sessions | calls | asked | asked, request told | refused |\n|---|---|---|---|---|---|\n",
    );
    let (mut sum, mut all) = ([0; 5], Vec::new());
    let mut row = |name: &str, n: [usize; 5]| {
        let [sessions, calls, asked, told, refused] = n;
        writeln!(table, "| {name} | {sessions} | {calls} | {asked} | {told} | {refused} |").unwrap();
    };
    for kind in kinds() {
        let run = |is_told| kind.sessions.iter().flat_map(|s| play(&kind, s, is_told)).collect::<Vec<_>>();
        let (stopped, told) = (run(false), run(true));
        let calls = kind.sessions.iter().map(|s| s.calls.len()).sum();
        let asked = |all: &[Stopped]| all.iter().filter(|s| s.is_asked).count();
        let refused = stopped.len() - asked(&stopped);
        assert_eq!(told.len() - asked(&told), refused, "{}", kind.name);
        let n = [kind.sessions.len(), calls, asked(&stopped), asked(&told), refused];
        row(&kind.name, n);
        sum.iter_mut().zip(n).for_each(|(sum, n)| *sum += n);
        all.extend(stopped);
    }
    row("all", sum);
    (table, all)
}

/// The guide has the numbers of this tree.
#[test]
fn the_guide_says_how_many_benign_calls_are_stopped() {
    let (table, stopped) = measure();
    println!("{table}");
    for Stopped { call, is_asked, why } in &stopped {
        println!("{} {call}\n    {why}", if *is_asked { "asked  " } else { "refused" });
    }
    let guide = std::fs::read_to_string(folder().join("../../docs/guard.md")).unwrap();
    assert!(guide.contains(&table), "docs/guard.md has another table than\n{table}");
}

/// Each recorded call has the parameters of its tool, and each kind has sessions.
#[test]
fn recorded_sessions_are_well_formed() {
    let kinds = kinds();
    assert!(kinds.len() >= 10 && kinds.iter().map(|k| k.sessions.len()).sum::<usize>() >= 40);
    for kind in &kinds {
        for session in &kind.sessions {
            for call in &session.calls {
                let tools = kind.tools.as_array().unwrap();
                let tool = tools.iter().find(|t| t["name"] == call["call"]);
                let tool = tool.unwrap_or_else(|| panic!("{}: {call}", session.name));
                let known = tool["inputSchema"]["properties"].as_object().unwrap();
                let args = call["args"].as_object().unwrap();
                assert!(args.keys().all(|a| known.contains_key(a)), "{}: {call}", session.name);
                assert!(call.get("result").is_some(), "{}: {call}", session.name);
            }
        }
    }
}
