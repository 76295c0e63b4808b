//! Cost of a keystroke: the change of one character and the diagnostics of the whole file.

use lsp::Server;
use lsp_server::{Message, Notification, Request};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn notify(method: &str, params: Value) -> Message {
    Notification::new(method.into(), params).into()
}

/// Measures a letter that is typed into a file and removed again.
fn keystroke(bencher: divan::Bencher<'_, '_>, uri: &'static str, text: &str, (line, column): (u32, u32)) {
    let document = json!({"uri": uri, "languageId": "x", "version": 1, "text": text});
    let mut server = Server::new();
    server.handle(Request::new(1.into(), "initialize".into(), json!({})).into());
    server.handle(notify("textDocument/didOpen", json!({"textDocument": document})));
    let at = |c: u32| json!({"line": line, "character": c});
    let mut typed = false;
    bencher.bench_local(move || {
        typed = !typed;
        let change = match typed {
            true => json!({"range": {"start": at(column), "end": at(column)}, "text": "x"}),
            false => json!({"range": {"start": at(column), "end": at(column + 1)}, "text": ""}),
        };
        let params = json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [change]});
        server.handle(notify("textDocument/didChange", params))
    });
}

/// A program of 1,000 lines.
#[divan::bench]
fn in_a_program(bencher: divan::Bencher<'_, '_>) {
    let one = |i: usize| {
        format!(
            "task t{i}(text: String) -> Obj{{label: String, score: Number}} {{}}\n\
             pipeline p{i}(text: String) -> String {{\n    let a = t{i}(text) retries 2;\n    if a.score > 3 {{\n        \
             return a.label;\n    }}\n    let b = t{i}(a.label);\n    return f\"{{b.label}} and {{a.label}}\";\n}}\n\n"
        )
    };
    let text: String = (0..100).map(one).collect();
    keystroke(bencher, "file:///p.agent", &text, (506, 8));
}

/// A configuration of 1,000 lines: 166 agents of CrewAI.
#[divan::bench]
fn in_a_configuration(bencher: divan::Bencher<'_, '_>) {
    let one = |i: usize| {
        format!(
            "agent{i}:\n  role: Role {i}\n  goal: To do {i}\n  backstory: Long ago\n  llm: small\n  tools: [search]\n"
        )
    };
    let text: String = (0..166).map(one).collect();
    keystroke(bencher, "file:///agents.yaml", &text, (507, 10));
}

/// A module of Python of 1,000 lines: 200 agents of CrewAI in crews.
#[divan::bench]
fn in_a_module(bencher: divan::Bencher<'_, '_>) {
    let one = |i: usize| {
        format!(
            "a{i} = Agent(role='r{i}', goal='g', backstory='b', llm='m',\n    tools=[search])\n\
             t{i} = Task(description='d', expected_output='e',\n    agent=a{i})\nc{i} = Crew(agents=[a{i}], tasks=[t{i}])\n"
        )
    };
    let text = format!("from crewai import Agent, Crew, Task\n{}", (0..200).map(one).collect::<String>());
    keystroke(bencher, "file:///crew.py", &text, (506, 20));
}
