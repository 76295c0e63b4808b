//! What a keystroke costs: the change of one character, and the findings of the whole file.

use lsp::Server;
use serde_json::{Value, json};

fn main() {
    divan::main();
}

fn notify(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A program of 1,000 lines.
#[divan::bench]
fn in_a_thousand_lines(bencher: divan::Bencher<'_, '_>) {
    let one = |i: usize| {
        format!(
            "task t{i}(text: String) -> Obj{{label: String, score: Number}} {{}}\n\
             pipeline p{i}(text: String) -> String {{\n    let a = t{i}(text) retries 2;\n    if a.score > 3 {{\n        \
             return a.label;\n    }}\n    let b = t{i}(a.label);\n    return f\"{{b.label}} and {{a.label}}\";\n}}\n\n"
        )
    };
    let text: String = (0..100).map(one).collect();
    let document = json!({"uri": "file:///p.agent", "version": 1, "text": text});
    let mut server = Server::new();
    server.handle(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    server.handle(&notify("textDocument/didOpen", json!({"textDocument": document})));
    let at = |c: u32| json!({"line": 506, "character": c});
    let mut typed = false;
    bencher.bench_local(move || {
        // A letter is typed, and removed again.
        typed = !typed;
        let change = match typed {
            true => json!({"range": {"start": at(8), "end": at(8)}, "text": "x"}),
            false => json!({"range": {"start": at(8), "end": at(9)}, "text": ""}),
        };
        let params =
            json!({"textDocument": {"uri": "file:///p.agent", "version": 2}, "contentChanges": [change]});
        server.handle(&notify("textDocument/didChange", params))
    });
}
