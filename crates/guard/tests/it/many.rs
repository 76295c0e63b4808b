//! Many sessions in one process.

use crate::proxy::{Approved, tool};
use diagnostics::FileId;
use guard::{Action, Proxy, Session, SessionOptions};
use policy::Policy;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SESSIONS: usize = 500;
const CALLS: usize = 20;
const TOOLS: usize = 12;

/// Pages of memory that the process has, where the system says so.
fn resident() -> Option<usize> {
    std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()
}

/// What the client of one session says next, with the server's answer: whether the call was made.
fn call(proxy: &mut Proxy<Approved>, id: usize, tool: &str) -> bool {
    let params = json!({"name": tool, "arguments": {"to": format!("{id}"), "body": "hello"}});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let mut is_made = false;
    for action in proxy.from_client(&request.to_string()) {
        if let Action::ToServer(message) = action {
            is_made = true;
            let result = json!({"content": [{"type": "text", "text": "a page of text"}]});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            proxy.from_server(&answer.to_string());
        }
    }
    is_made
}

/// Sessions at once, call by call in turn: each has its own label. Prints memory and time.
#[test]
fn five_hundred_sessions_at_once_keep_apart() {
    let mut text = String::from("[tools.page]\neffect = \"read\"\n");
    let names: Vec<String> = (0..TOOLS).map(|n| format!("send{n}")).collect();
    names.iter().for_each(|n| text += &format!("[tools.{n}]\neffect = \"write\"\nresult = \"trusted\"\n"));
    let policy = Arc::new(Policy::parse(FileId(0), &text).unwrap());
    let mut tools: Vec<Value> = names.iter().map(|n| tool(n, &["to", "body"])).collect();
    tools.push(tool("page", &["to", "body"]));
    let before = resident();
    let mut sessions: Vec<Proxy<Approved>> = (0..SESSIONS)
        .map(|_| {
            let session = Session::new(policy.clone(), &SessionOptions::default());
            let mut proxy = Proxy::new(session, Approved(tools.clone()), false);
            proxy.from_client(&json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"}).to_string());
            proxy.from_server(&json!({"jsonrpc": "2.0", "id": "l", "result": {"tools": tools}}).to_string());
            proxy
        })
        .collect();
    let mut slowest = Duration::ZERO;
    let begin = Instant::now();
    for id in 0..CALLS {
        for (n, proxy) in sessions.iter_mut().enumerate() {
            // Every other session reads a page in the middle.
            let reads = n % 2 == 1 && id == CALLS / 2;
            let name = if reads { "page" } else { &names[(n + id) % TOOLS] };
            let at = Instant::now();
            let is_made = call(proxy, id, name);
            slowest = slowest.max(at.elapsed());
            assert_eq!(is_made, n % 2 == 0 || id <= CALLS / 2, "session {n}, call {id}");
        }
    }
    let each = begin.elapsed() / u32::try_from(SESSIONS * CALLS).unwrap();
    let pages = before.zip(resident()).map(|(before, after)| after.saturating_sub(before) * 4 / SESSIONS);
    println!(
        "{SESSIONS} sessions of {} tools: {pages:?} KiB each; a call takes {each:?}, at most {slowest:?}",
        TOOLS + 1
    );
    let labels: Vec<String> = sessions.iter().map(|s| s.session().label()).collect();
    assert!(labels.iter().enumerate().all(|(n, label)| label == if n % 2 == 0 { "[]" } else { r#"["U"]"# }));
}
