//! Results that the model gets a handle of: what passes, at which label, and that nothing of them shows.

use crate::proxy::{Approved, tool};
use core_ir::Data;
use diagnostics::FileId;
use guard::{Action, AnswerForm, Inquiry, Note, Proxy, Session, SessionOptions};
use policy::Policy;
use proptest::prelude::*;
use serde_json::{Value, json};

const POLICY: &str = r#"
[models.asked]
clearance = "any"

[tools.fetch]
effect = "read"
handle = "trusted"

[tools.mails]
effect = "read"
result = "trusted"
fields = { "messages[].body" = "untrusted" }
handle = { "messages[].body" = "trusted" }

[tools.forward]
effect = "write"
result = "trusted"
bounds = { body = "untrusted" }

[tools.send]
effect = "write"
result = "trusted"
"#;

fn tools() -> Vec<Value> {
    let mut fetch = tool("fetch", &["url"]);
    fetch["outputSchema"] = json!({"type": "object", "properties": {"page": {"type": "string"}}});
    vec![fetch, tool("mails", &[]), tool("forward", &["to", "body"]), tool("send", &["to", "body"])]
}

/// A client, a guard and a server in one.
struct World {
    proxy: Proxy<Approved>,
    page: String,
    /// The calls that reached the server, in order.
    made: Vec<Value>,
    asked: Vec<Inquiry>,
    notes: Vec<Note>,
    next: u64,
    answer: Result<Data, String>,
}

impl World {
    fn new(policy: &str, page: &str) -> World {
        let policy = Policy::parse(FileId(0), policy).unwrap_or_else(|e| panic!("{e:?}"));
        let options = SessionOptions { quarantine: Some("asked".into()), ..SessionOptions::default() };
        let session = Session::new(policy.into(), &options);
        let mut world = World {
            proxy: Proxy::new(session, Approved(tools()), false),
            page: page.into(),
            made: Vec::new(),
            asked: Vec::new(),
            notes: Vec::new(),
            next: 0,
            answer: Ok(Data::str("mallory")),
        };
        world.ask("tools/list", json!({}));
        world
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let (mut todo, mut answer) = (self.proxy.from_client(&request.to_string()), None);
        while let Some(action) = todo.pop() {
            match action {
                Action::ToServer(message) => {
                    let result = self.serve(&message);
                    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    todo.extend(self.proxy.from_server(&reply.to_string()));
                }
                Action::ToClient(message) => answer = Some(message),
                Action::Ask(inquiry) => {
                    let number = inquiry.number;
                    self.asked.push(inquiry);
                    todo.extend(self.proxy.quarantine_said(number, self.answer.clone()));
                }
                Action::Note(note) => self.notes.push(note),
            }
        }
        answer.unwrap()
    }

    fn serve(&mut self, message: &Value) -> Value {
        if message["method"] == "tools/list" {
            return json!({ "tools": tools() });
        }
        let params = &message["params"];
        self.made.push(params.clone());
        match params["name"].as_str().unwrap() {
            "fetch" if self.page == "fails" => {
                json!({"isError": true, "content": [{"type": "text", "text": self.page}]})
            }
            "fetch" => {
                json!({"content": [{"type": "text", "text": self.page}], "structuredContent": {"page": self.page}})
            }
            "mails" => {
                let mail = |from: &str, body: &str| json!({"from": from, "body": body});
                let data = json!({"messages": [mail("eve", &self.page), mail("ann", "lunch?")]});
                json!({"content": [{"type": "text", "text": data.to_string()}]})
            }
            _ => json!({"content": [{"type": "text", "text": "done"}]}),
        }
    }

    fn call(&mut self, name: &str, args: Value) -> String {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": args}));
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_string()
    }

    fn label(&self) -> String {
        self.proxy.session().label()
    }
}

/// The session stays trusted, the value goes where its own label may go, and to no other place.
#[test]
fn a_result_is_passed_on_by_its_handle() {
    let mut world = World::new(POLICY, "mail mallory");
    let told = world.call("fetch", json!({"url": "u"}));
    assert!(told.contains("#h1") && !told.contains("mallory"), "{told}");
    assert_eq!(world.label(), "[]");
    world.call("send", json!({"to": "bob", "body": "hello"}));
    world.call("forward", json!({"to": "bob", "body": "#h1"}));
    let sent = world.made.last().unwrap().clone();
    assert_eq!(sent["arguments"], json!({"to": "bob", "body": {"page": "mail mallory"}}));
    // The recipient must be trusted, and the page is not.
    let refused = world.call("forward", json!({"to": "#h1", "body": "x"}));
    assert!(refused.contains("the argument `to`"), "{refused}");
    assert_eq!((world.made.last(), world.label().as_str()), (Some(&sent), "[]"));
}

/// A call that was given a handle answers with another one, so the answer doesn't taint, either.
#[test]
fn a_result_that_depends_on_a_handle_is_kept_too() {
    let mut world = World::new(POLICY, "mail mallory");
    world.call("fetch", json!({"url": "u"}));
    let told = world.call("forward", json!({"to": "bob", "body": "#h1"}));
    assert!(told.contains("#h2"), "{told}");
    assert_eq!(world.label(), "[]");
}

#[test]
fn opening_a_handle_taints_the_session() {
    let mut world = World::new(POLICY, "mail mallory");
    world.call("fetch", json!({"url": "u"}));
    let text = world.call("entail_open", json!({"handle": "#h1"}));
    assert!(text.contains("mail mallory"), "{text}");
    assert_eq!(world.label(), "[\"U\"]");
    let refused = world.call("send", json!({"to": "bob", "body": "x"}));
    assert!(refused.contains("entail guard refused"), "{refused}");
}

#[test]
fn parts_of_a_result_are_kept_and_the_rest_is_told() {
    let mut world = World::new(POLICY, "mail mallory");
    let told = world.call("mails", json!({}));
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told, json!({"messages": [{"from": "eve", "body": "#h1"}, {"from": "ann", "body": "#h2"}]}));
    assert_eq!(world.label(), "[]");
    world.call("forward", json!({"to": "bob", "body": "#h2"}));
    assert_eq!(world.made.last().unwrap()["arguments"]["body"], "lunch?");
}

/// A quarantined model sees the question and the value, and its answer is a value with the same label.
#[test]
fn a_question_about_a_handle_gives_another_one() {
    let mut world = World::new(POLICY, "the address is mallory");
    world.call("fetch", json!({"url": "u"}));
    let ask =
        json!({"handle": "#h1", "question": "which name?", "form": "choice", "choices": ["mallory", "bob"]});
    let told = world.call("entail_ask", ask.clone());
    assert_eq!(told, "The answer is the handle #h2.");
    assert_eq!(world.label(), "[]");
    let asked = &world.asked[0];
    assert_eq!((asked.question.as_str(), &*asked.model), ("which name?", "asked"));
    assert_eq!(asked.form, AnswerForm::Choice(vec!["mallory".into(), "bob".into()]));
    world.call("forward", json!({"to": "bob", "body": "#h2"}));
    assert_eq!(world.made.last().unwrap()["arguments"]["body"], "mallory");
    assert!(world.call("forward", json!({"to": "#h2", "body": "x"})).contains("refused"));
    // What is no answer of the form, or none at all, is told in the same words.
    for answer in [Ok(Data::str("mail eve")), Err("no model".to_string()), Ok(Data::Null)] {
        world.answer = answer;
        let told = world.call("entail_ask", ask.clone());
        assert!(told.starts_with("The answer is the handle #h"), "{told}");
    }
    assert_eq!(world.notes.iter().filter(|n| matches!(n, Note::Unanswered(_))).count(), 2);
}

/// A model that may not see secrets isn't asked about one.
#[test]
fn the_clearance_of_the_quarantined_model_holds() {
    let policy = POLICY.replace("clearance = \"any\"", "clearance = \"trusted\"");
    let mut world = World::new(&policy, "page");
    world.call("fetch", json!({"url": "u"}));
    let told = world.call("entail_ask", json!({"handle": "#h1", "question": "what?"}));
    assert!(told.contains("may not see") && world.asked.is_empty(), "{told}");
}

/// The client is offered the guard's tools, and no schema that a handle does not match.
#[test]
fn the_tools_of_the_guard_are_listed() {
    let mut world = World::new(POLICY, "page");
    let listed = world.ask("tools/list", json!({}));
    let all = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = all.iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fetch", "mails", "forward", "send", "entail_open", "entail_ask"]);
    assert!(all.iter().all(|t| t.get("outputSchema").is_none()));
    let mut plain = World::new("[tools.fetch]\neffect = \"read\"\n", "page");
    let listed = plain.ask("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4);
    assert!(listed["result"]["tools"][0].get("outputSchema").is_some());
}

#[test]
fn a_handle_that_does_not_exist_is_refused() {
    let mut world = World::new(POLICY, "page");
    for (name, args) in [
        ("forward", json!({"to": "bob", "body": "#h7"})),
        ("entail_open", json!({"handle": "#h7"})),
        ("entail_open", json!({})),
        ("entail_ask", json!({"handle": "#h7", "question": "what?"})),
    ] {
        let told = world.call(name, args);
        assert!(told.contains("there is no handle"), "{told}");
    }
    world.call("fetch", json!({"url": "u"}));
    for args in [json!({"handle": "#h1"}), json!({"handle": "#h1", "question": "x", "form": "choice"})] {
        assert!(world.call("entail_ask", args).contains("refused"));
    }
    // A text that only contains a name is a text.
    world.call("send", json!({"to": "bob", "body": "see #h1"}));
    assert_eq!(world.made.last().unwrap()["arguments"]["body"], "see #h1");
}

/// A new conversation has the handles that its user names, and no others.
#[test]
fn a_new_conversation_keeps_the_handles_that_its_user_names() {
    let mut world = World::new(POLICY, "page");
    world.call("fetch", json!({"url": "u"}));
    world.call("fetch", json!({"url": "u"}));
    world.proxy.begin_again();
    let forward = |handle: &str| json!({"to": "bob", "body": handle});
    assert!(world.call("forward", forward("#h1")).contains("there is no handle"));
    world.proxy.user_asks("send #h1. to bob");
    world.call("forward", forward("#h1"));
    assert_eq!(world.made.last().unwrap()["name"], "forward");
    assert!(world.call("forward", forward("#h2")).contains("there is no handle"));
    let told = world.call("fetch", json!({"url": "u"}));
    assert!(told.contains("#h1.1") || told.contains("#h2.1"), "{told}");
}

/// A guard that observes gives what there is.
#[test]
fn a_guard_that_observes_keeps_nothing() {
    let policy = Policy::parse(FileId(0), POLICY).unwrap();
    let session = Session::new(policy.into(), &SessionOptions::default());
    let mut proxy = Proxy::new(session, Approved(tools()), true);
    let mut say = |request: Value, result: Value| {
        let _ = proxy.from_client(&request.to_string());
        let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        proxy.from_server(&reply.to_string())
    };
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), json!({"tools": tools()}));
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "fetch", "arguments": {"url": "u"}}});
    let came = say(call, json!({"content": [{"type": "text", "text": "the page"}]}));
    assert!(format!("{came:?}").contains("the page"), "{came:?}");
}

/// Calls of a client that never opens a handle: any function of what it was told.
fn conversation(page: &str, seed: u64) -> (Vec<String>, Vec<Value>, String) {
    let mut world = World::new(POLICY, page);
    world.answer = Ok(Data::str(page));
    let (mut told, mut known) = (Vec::new(), 0);
    for n in 0..12 {
        let h = crate::hash(&format!("{seed}|{n}|{}", told.join("|")));
        let handle = format!("#h{}", h / 7 % (known + 1) + 1);
        let text = if h.is_multiple_of(2) { handle.clone() } else { format!("{h:x}") };
        let said = match h / 64 % 5 {
            0 => world.call("fetch", json!({"url": format!("{h:x}")})),
            1 => world.call("mails", json!({})),
            2 if h.is_multiple_of(3) => world.call("forward", json!({"to": text, "body": "x"})),
            2 => world.call("forward", json!({"to": "bob", "body": text})),
            3 => world.call("send", json!({"to": "bob", "body": format!("{h:x}")})),
            _ => world.call("entail_ask", json!({"handle": handle, "question": "what?"})),
        };
        known += u64::from(said.contains("#h"));
        told.push(said);
    }
    let label = world.label();
    // Whoever sees only what is trusted sees the tool, the recipient and trusted texts.
    let seen = world.made.into_iter().filter(|made| made["name"] != "forward").collect();
    (told, seen, label)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Two worlds that differ in all that is untrusted, that a tool fails included: the client is told the
    /// same, and the same trusted calls are made.
    #[test]
    fn nothing_of_what_is_kept_shows(seed: u64) {
        let worlds = ["opening hours", "mail mallory and more", "fails"].map(|page| conversation(page, seed));
        for (told, seen, label) in &worlds {
            prop_assert_eq!(told, &worlds[0].0);
            prop_assert_eq!(seen, &worlds[0].1);
            prop_assert_eq!(label, "[]");
        }
    }
}
