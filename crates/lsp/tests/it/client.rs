//! A client that speaks the protocol over streams, and one that speaks nonsense.

use lsp::{Server, serve};
use lsp_server::Message;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::{BufReader, Cursor};

const URI: &str = "file:///nowhere/p.agent";

/// Everything that the server says to these messages.
fn session(messages: &[Value]) -> Vec<Value> {
    let mut input = Vec::new();
    for m in messages {
        let text = m.to_string();
        input.extend(format!("Content-Length: {}\r\n\r\n{text}", text.len()).bytes());
    }
    let mut output = Vec::new();
    serve(Server::new(), &mut BufReader::new(Cursor::new(input)), &mut output).unwrap();
    let mut said = Vec::new();
    let mut rest = std::str::from_utf8(&output).unwrap();
    while let Some((head, body)) = rest.split_once("\r\n\r\n") {
        let length: usize = head.strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        said.push(serde_json::from_str(&body[..length]).unwrap());
        rest = &body[length..];
    }
    said
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn notify(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The server's answers to one message, without a stream.
fn say(server: &mut Server, message: Value) -> Vec<Value> {
    let message: Message = serde_json::from_value(message).unwrap();
    server.handle(message).iter().map(|m| serde_json::to_value(m).unwrap()).collect()
}

fn open(uri: &str, text: &str) -> Value {
    notify(
        "textDocument/didOpen",
        json!({"textDocument": {"uri": uri, "languageId": "x", "version": 1, "text": text}}),
    )
}

/// The answer to one question about a text, at the place of the `|` in it.
fn ask(method: &str, marked: &str, more: Value) -> Value {
    let at = marked.find('|').unwrap_or(0);
    let text = marked.replacen('|', "", 1);
    let line = text[..at].matches('\n').count();
    let column = text[..at].rsplit('\n').next().unwrap().encode_utf16().count();
    let position = json!({"line": line, "character": column});
    let mut params = json!({"textDocument": {"uri": URI}, "position": position, "range": {"start": position, "end": position}});
    if let (Some(p), Value::Object(more)) = (params.as_object_mut(), more) {
        p.extend(more);
    }
    let said = session(&[request(1, "initialize", json!({})), open(URI, &text), request(2, method, params)]);
    let answer = said.into_iter().find(|m| m["id"] == 2).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// The answer to one question about several open files, at the place of the `|` in one of them.
fn ask_among(files: &[(&str, &str)], method: &str, more: Value) -> Value {
    let mut messages = vec![request(1, "initialize", json!({}))];
    let mut params = json!({});
    for (uri, marked) in files {
        let text = marked.replacen('|', "", 1);
        messages.push(open(uri, &text));
        if let Some(at) = marked.find('|') {
            let line = text[..at].matches('\n').count();
            let column = text[..at].rsplit('\n').next().unwrap().encode_utf16().count();
            params = json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": column}});
        }
    }
    if let (Some(p), Value::Object(more)) = (params.as_object_mut(), more) {
        p.extend(more);
    }
    messages.push(request(2, method, params));
    let answer = session(&messages).into_iter().find(|m| m["id"] == 2).unwrap();
    answer.get("result").cloned().unwrap_or(answer)
}

const PROGRAM: &str = "enum Tone { warm, cold }\n\
    agent writer { tools: [look] }\n\
    tool look(q: String) -> String reads {}\n\
    task tone(text: String) -> Tone by agent { prompt \"The tone of {text}\" }\n\
    pipeline main(text: String) -> Tone {\n    let t = tone(text) by writer retries 1;\n    return t;\n}\n";

fn marked(place: &str) -> String {
    let plain = place.replacen('|', "", 1);
    assert!(PROGRAM.contains(&plain), "{plain}");
    PROGRAM.replacen(&plain, place, 1)
}

#[test]
fn findings_follow_what_is_typed() {
    let change = |range: Value, text: &str| {
        let change = json!([{"range": range, "text": text}]);
        notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": change}),
        )
    };
    let said = session(&[
        request(1, "initialize", json!({})),
        notify("initialized", json!({})),
        open(URI, "pipeline p() -> String { return \"😀\" + x; }"),
        // Behind the emoji, which is two units long.
        change(json!({"start": {"line": 0, "character": 39}, "end": {"line": 0, "character": 40}}), "\"y\""),
        notify("textDocument/didClose", json!({"textDocument": {"uri": URI}})),
        request(2, "shutdown", Value::Null),
        notify("exit", Value::Null),
    ]);
    assert_eq!(said.len(), 5, "{said:#?}");
    assert_eq!(said[0]["result"]["capabilities"]["textDocumentSync"]["change"], 2);
    let found = &said[1]["params"]["diagnostics"];
    assert_eq!((&found[0]["code"], &found[0]["severity"]), (&json!("A030"), &json!(1)), "{found}");
    let place = json!({"start": {"line": 0, "character": 39}, "end": {"line": 0, "character": 40}});
    assert_eq!(found[0]["range"], place);
    assert_eq!(said[2]["params"]["diagnostics"], json!([]), "{}", said[2]);
    assert_eq!(said[3]["params"]["diagnostics"], json!([]));
    assert_eq!(said[4]["result"], Value::Null);
}

/// Importers are checked again when an imported document is changed, closed or saved.
#[test]
fn importer_findings_follow_import_changes() {
    let folder = std::env::temp_dir().join(format!("entail-lsp-imports-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let uri = |name: &str| format!("file://{}", folder.join(name).display());
    let lib =
        |result: &str| format!("agent a {{ tools: [] }}\ntask t(x: String) -> {result} by agent {{}}\n");
    let main = "use \"lib.agent\";\npipeline p(x: String) -> String { let y = t(x) by a; return y; }\n";
    std::fs::write(folder.join("lib.agent"), lib("String")).unwrap();
    std::fs::write(folder.join("apart.agent"), "").unwrap();
    let typed = |text: &str| {
        let change = json!({"textDocument": {"uri": uri("lib.agent"), "version": 2}, "contentChanges": [{"text": text}]});
        notify("textDocument/didChange", change)
    };
    let about = |method: &str, name: &str| notify(method, json!({"textDocument": {"uri": uri(name)}}));
    let said = session(&[
        request(1, "initialize", json!({})),
        open(&uri("apart.agent"), ""),
        open(&uri("main.agent"), main),
        open(&uri("lib.agent"), &lib("String")),
        typed(&lib("Number")),
        about("textDocument/didClose", "lib.agent"),
        about("textDocument/didSave", "main.agent"),
    ]);
    std::fs::remove_dir_all(&folder).unwrap();
    let published: Vec<(String, usize)> = said[1..]
        .iter()
        .map(|m| {
            let uri = m["params"]["uri"].as_str().unwrap();
            let count = m["params"]["diagnostics"].as_array().unwrap().len();
            (uri.rsplit('/').next().unwrap().to_string(), count)
        })
        .collect();
    let want = [
        ("apart.agent", 0),
        ("main.agent", 0),
        // Opened with the text that it has.
        ("lib.agent", 0),
        ("main.agent", 0),
        // A number is no text.
        ("lib.agent", 0),
        ("main.agent", 1),
        // Closed without having been saved.
        ("lib.agent", 0),
        ("main.agent", 0),
        // Saved.
        ("apart.agent", 0),
        ("main.agent", 0),
    ];
    let want: Vec<(String, usize)> = want.map(|(n, c)| (n.to_string(), c)).to_vec();
    assert_eq!(published, want, "{said:#?}");
}

#[test]
fn terms_and_configurations_are_checked_as_well() {
    let found = |uri: &str, text: &str| {
        let said = session(&[request(1, "initialize", json!({})), open(uri, text)]);
        said[1]["params"]["diagnostics"].clone()
    };
    assert!(found("file:///a/t.lam", "\\x. y")[0]["message"].as_str().unwrap().contains('y'));
    let agent = "agentId: helper\ntype: simple\nmodel: {name: small}\nsystemPrompt: \"\"\n";
    assert_eq!(found("file:///a/agent.yaml", agent)[0]["code"], "L001");
    assert_eq!(found("file:///a/other.yaml", "a: 1\n"), json!([]));
    assert!(found("file:///a/broken.yaml", "a: [1\n").as_array().unwrap().len() < 3);
}

#[test]
fn repairs_of_findings_are_offered() {
    let actions = ask(
        "textDocument/codeAction",
        &PROGRAM.replace("by writer", "by |writre"),
        json!({"context": {"diagnostics": []}}),
    );
    let action = &actions[0];
    assert_eq!(action["kind"], "quickfix");
    assert_eq!(action["edit"]["changes"][URI][0]["newText"], "writer", "{actions}");
    assert_eq!(action["diagnostics"][0]["code"], "A033");
}

#[test]
fn names_lead_to_their_declarations_and_uses() {
    let start = |v: &Value| {
        (v["range"]["start"]["line"].as_u64().unwrap(), v["range"]["start"]["character"].as_u64().unwrap())
    };
    assert_eq!(start(&ask("textDocument/definition", &marked("by wri|ter"), json!({}))), (1, 6));
    assert_eq!(start(&ask("textDocument/definition", &marked("let t = to|ne"), json!({}))), (3, 5));
    assert_eq!(start(&ask("textDocument/definition", &marked("tools: [|look"), json!({}))), (2, 5));
    assert_eq!(start(&ask("textDocument/definition", &marked("-> Ton|e by"), json!({}))), (0, 5));
    assert_eq!(start(&ask("textDocument/definition", &marked("return |t;"), json!({}))), (5, 8));
    // A variable of one name in another declaration is another variable.
    let uses = ask(
        "textDocument/references",
        &PROGRAM.replace("tone(text) by", "tone(te|xt) by"),
        json!({"context": {"includeDeclaration": true}}),
    );
    assert_eq!(uses.as_array().unwrap().iter().map(|u| start(u).0).collect::<Vec<_>>(), [4, 5], "{uses}");
}

#[test]
fn renaming_changes_every_place_of_a_name() {
    let edit = ask("textDocument/rename", &marked("agent wri|ter"), json!({"newName": "author"}));
    let edits = edit["changes"][URI].as_array().unwrap();
    assert_eq!(edits.len(), 2, "{edit}");
    assert!(edits.iter().all(|e| e["newText"] == "author"));
}

/// The text after a rename at the `|` to `new_name`.
fn renamed(marked: &str, new_name: &str) -> String {
    let edit = ask("textDocument/rename", marked, json!({"newName": new_name}));
    let mut edits: Vec<(u64, u64, u64)> = edit["changes"][URI]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            assert_eq!(e["newText"], new_name);
            let at = |end: &str, what: &str| e["range"][end][what].as_u64().unwrap();
            (at("start", "line"), at("start", "character"), at("end", "character"))
        })
        .collect();
    edits.sort();
    let mut lines: Vec<String> = marked.replacen('|', "", 1).lines().map(String::from).collect();
    for (line, start, end) in edits.into_iter().rev() {
        lines[line as usize].replace_range(start as usize..end as usize, new_name);
    }
    lines.join("\n")
}

#[test]
fn renaming_a_parameter_changes_the_named_arguments_of_its_calls() {
    let program = r#"
task tone(te|xt: String) -> String by writer { prompt "{text}" }
agent writer { tools: [] }
task other(text: String) -> String by writer { prompt "{text}" }
pipeline main(text: String) -> String {
    let a = run tone with { text: text };
    let b = run other with { text: a };
    return b;
}"#;
    let expected = program.replace("te|xt", "line").replacen(r#""{text}""#, r#""{line}""#, 1).replacen(
        "with { text: text }",
        "with { line: text }",
        1,
    );
    assert_eq!(renamed(program, "line"), expected);
    // The same from the place of a call.
    let from_call = program.replace("te|xt", "text").replacen("{ text: text }", "{ te|xt: text }", 1);
    assert_eq!(renamed(&from_call, "line"), expected);
}

#[test]
fn renaming_a_review_changes_the_task_that_it_calls() {
    let program = r#"
task t(x: String) -> Obj{text: String} by a {}
task review_r(text: String) -> Obj{approved: Bool, feedback: String} by a {}
task fix(text: String, feedback: String) -> Obj{text: String} by a {}
agent a { tools: [] }
workflow w(x: String) -> Obj{text: String} {
  stage d = a does t(x);
  review |r = a checks d revise with a using fix max_rounds 2;
  return r;
}"#;
    let expected = program
        .replace("review_r", "review_checked")
        .replace("review |r", "review checked")
        .replace("return r;", "return checked;");
    assert_eq!(renamed(program, "checked"), expected);
}

#[test]
fn hover_shows_definition() {
    let text = |v: Value| v["contents"]["value"].as_str().unwrap_or("").to_string();
    let hover = text(ask("textDocument/hover", &marked("let t = to|ne"), json!({})));
    assert!(hover.contains("task tone(text: String) -> Tone by agent"), "{hover}");
    let hover = text(ask("textDocument/hover", &marked("pipeline ma|in"), json!({})));
    assert!(hover.contains("model calls"), "{hover}");
    let hover = text(ask("textDocument/hover", &marked("retr|ies 1"), json!({})));
    assert!(hover.contains("failed call"), "{hover}");
    let hints = ask("textDocument/inlayHint", PROGRAM, json!({}));
    assert_eq!(hints[0]["position"]["line"], 4, "{hints}");
    let symbols = ask("textDocument/documentSymbol", PROGRAM, json!({}));
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Tone", "writer", "look", "tone", "main"]);
}

#[test]
fn completion_offers_fitting_names() {
    let labels = |v: Value| {
        v.as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(labels(ask("textDocument/completion", &marked("by wri|ter"), json!({}))), ["writer"]);
    assert_eq!(labels(ask("textDocument/completion", &marked("tools: [lo|ok"), json!({}))), ["look"]);
    let types = labels(ask("textDocument/completion", &marked("-> To|ne {"), json!({})));
    assert!(types.contains(&"Tone".into()) && types.contains(&"Option".into()), "{types:?}");
    let all = labels(ask("textDocument/completion", &marked("return |t;"), json!({})));
    assert!(
        ["t", "text", "tone", "length", "assert"].iter().all(|w| all.contains(&(*w).to_string())),
        "{all:?}"
    );
}

#[test]
fn the_arguments_of_run_are_completed_by_their_names() {
    let program = |record: &str| {
        format!(
            "tool send(to: String, text: String) -> String {{}}\npipeline p() -> String {{ let x = run send with {record}"
        )
    };
    let labels = |record: &str| -> Vec<String> {
        let found = ask("textDocument/completion", &program(record), json!({}));
        found.as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(labels("{ |"), ["to", "text"]);
    assert_eq!(labels("{ to: \"a\", te|"), ["to", "text"]);
    assert!(labels("{ to: |").contains(&"length".to_string()));
}

#[test]
fn the_parameters_of_a_call_are_shown() {
    let help = |marked: &str| ask("textDocument/signatureHelp", marked, json!({}));
    let shown =
        help("task ä(é: String, n: Int) -> String by agent {}\npipeline p() -> String { let x = ä(\"a\", |");
    assert_eq!(shown["signatures"][0]["label"], "ä(é: String, n: Int) -> String");
    assert_eq!(shown["signatures"][0]["parameters"][1]["label"], json!([13, 19]));
    assert_eq!(shown["activeParameter"], 1);
    let built_in = help("pipeline p() -> Bool { return contains(|");
    assert_eq!(built_in["signatures"].as_array().unwrap().len(), 2);
    assert_eq!(help(&marked("by wri|ter")), Value::Null);
    // A function of a module of the standard library.
    let library = help("use \"std:lists\";\npipeline p() -> List[Int] { return take([1], |");
    assert!(library["signatures"][0]["label"].as_str().unwrap().starts_with("take("), "{library}");
}

#[test]
fn parts_of_several_lines_fold() {
    let folds = ask("textDocument/foldingRange", &format!("// one\n// two\n{PROGRAM}"), json!({}));
    let lines = |kind: Value| {
        let all = folds.as_array().unwrap().iter().filter(move |f| f["kind"] == kind);
        all.map(|f| (f["startLine"].clone(), f["endLine"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(lines(json!("comment")), [(json!(0), json!(1))]);
    assert_eq!(lines(Value::Null), [(json!(6), json!(8))]);
}

#[test]
fn lenses_are_for_clients_that_have_their_commands() {
    let text = format!("{PROGRAM}test \"tones\" {{ assert true; }}\n");
    let lenses = |options: Value| {
        let params = json!({"textDocument": {"uri": URI}});
        let begin = json!({"initializationOptions": options});
        let said = session(&[
            request(1, "initialize", begin),
            open(URI, &text),
            request(2, "textDocument/codeLens", params),
        ]);
        said.into_iter().find(|m| m["id"] == 2).unwrap()["result"].clone()
    };
    assert_eq!(lenses(Value::Null), json!([]));
    let shown = lenses(json!({"commands": true}));
    let command = |i: usize| shown[i]["command"].clone();
    let run = json!({"title": "Run", "command": "entail.runPipeline", "arguments": [URI, "main", true]});
    assert_eq!(command(0), run, "{shown}");
    assert_eq!(
        (&command(1)["command"], &command(1)["title"]),
        (&json!("entail.showProgram"), &json!("≤ 72 model calls, ≤ 24 tool calls"))
    );
    let test = json!({"title": "Test", "command": "entail.runTest", "arguments": [URI, "tones"]});
    assert_eq!(command(2), test);
    assert_eq!(shown[0]["range"]["start"], json!({"line": 4, "character": 9}));
}

#[test]
fn declarations_of_all_open_files_are_found() {
    let files = [(URI, PROGRAM), ("file:///nowhere/q.agent", "tool overlook(q: String) -> String {}")];
    let found = ask_among(&files, "workspace/symbol", json!({"query": "LOOK"}));
    let found: Vec<(&str, &str)> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["name"].as_str().unwrap(), s["location"]["uri"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("look", URI), ("overlook", "file:///nowhere/q.agent")]);
}

#[test]
fn formatting_and_tokens() {
    let options = json!({"options": {"tabSize": 4, "insertSpaces": true}});
    let edits = ask("textDocument/formatting", "pipeline p( x:String )->String{return x ;}", options);
    assert_eq!(edits[0]["newText"], "pipeline p(x: String) -> String {\n    return x;\n}\n");
    let data = ask(
        "textDocument/semanticTokens/full",
        "-- why\nenum A { b }\ntask t(x: A) -> A {}\n",
        json!({}),
    )["data"]
        .clone();
    // A comment; `A`; `t`, `x`, `A`, `A`: line, column, length, kind, whether it is declared, each from the
    // one before.
    let expected =
        json!([0, 0, 6, 4, 0, 1, 5, 1, 0, 1, 1, 5, 1, 2, 1, 0, 2, 1, 3, 1, 0, 3, 1, 0, 0, 0, 6, 1, 0, 0]);
    assert_eq!(data, expected);
}

#[test]
fn every_request_gets_one_response() {
    let said = session(&[
        request(1, "textDocument/hover", json!({})),
        request(2, "initialize", json!({})),
        request(3, "nobody/knows", json!({})),
        request(4, "textDocument/hover", json!({"textDocument": {"uri": "file:///not/open"}})),
        notify("nobody/knows", json!({})),
        json!(17),
        json!({"id": 5, "result": null}),
    ]);
    let codes: Vec<i64> = said.iter().map(|m| m["error"]["code"].as_i64().unwrap_or(0)).collect();
    assert_eq!(codes, [-32002, 0, -32601, -32602, -32600], "{said:#?}");
}

#[test]
fn broken_streams_end_with_an_error_and_broken_json_with_an_answer() {
    let mut out = Vec::new();
    assert!(serve(Server::new(), &mut BufReader::new(&b"Hello: 1\r\n\r\n{}"[..]), &mut out).is_err());
    assert!(
        serve(Server::new(), &mut BufReader::new(&b"Content-Length: 99999999999\r\n\r\n{}"[..]), &mut out)
            .is_err()
    );
    // A stream that ends in the middle is a client that is gone.
    assert!(
        !serve(Server::new(), &mut BufReader::new(&b"Content-Length: 9\r\n\r\n{}"[..]), &mut out).unwrap()
    );
    let mut out = Vec::new();
    serve(Server::new(), &mut BufReader::new(&b"Content-Length: 2\r\n\r\n{]"[..]), &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("-32700"));
}

const AGENTS: &str = "writer:\n  role: Writer\n  goal: To write\n  backstory: Long\n  llm: small\n  tools: [look]\neditor:\n  role: Editor\n  goal: To edit\n  backstory: Short\n  llm: small\n";
const TASKS: &str = "draft:\n  description: Write it\n  expected_output: A text\n  agent: writer\npolish:\n  description: Edit what writer wrote\n  expected_output: A text\n  agent: editor\n  context: [draft]\n";
const CREW: &str = "from crewai import Agent\nfrom crewai.project import CrewBase, agent\n@CrewBase\nclass Crew:\n    @agent\n    def writer(self):\n        return Agent(config=self.agents_config['writer'], tools=[look])\n    def both(self):\n        return [self.writer()]\n";
const CALLER: &str = "use agent \"config/agents.yaml\" \"writer\" as write(topic: String) -> String;\npipeline p(t: String) -> String { let x = write(t); return x; }\n";

/// A crew with its configurations and a program that uses it, with a mark in one file.
fn crew(place: &str) -> [(&'static str, String); 4] {
    let plain = place.replacen('|', "", 1);
    let files = [
        ("file:///c/config/agents.yaml", AGENTS),
        ("file:///c/config/tasks.yaml", TASKS),
        ("file:///c/crew.py", CREW),
        ("file:///c/main.agent", CALLER),
    ];
    let mut marked = false;
    let files = files.map(|(uri, text)| {
        let at = text.find(&plain).filter(|_| !marked);
        marked |= at.is_some();
        (uri, at.map_or(text.to_string(), |_| text.replacen(&plain, place, 1)))
    });
    assert!(marked, "{place}");
    files
}

fn of_crew(place: &str, method: &str, more: Value) -> Value {
    let files = crew(place);
    let files: Vec<(&str, &str)> = files.iter().map(|(u, t)| (*u, t.as_str())).collect();
    ask_among(&files, method, more)
}

fn spot(v: &Value) -> (String, u64) {
    let file = v["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_string();
    (file, v["range"]["start"]["line"].as_u64().unwrap())
}

#[test]
fn names_lead_from_file_to_file() {
    let declared = ("agents.yaml".to_string(), 0);
    for place in ["agent: wri|ter", "agents_config['wri|ter']", "def wri|ter", "\"wri|ter\" as"] {
        assert_eq!(spot(&of_crew(place, "textDocument/definition", json!({}))), declared, "{place}");
    }
    let draft = of_crew("[dra|ft]", "textDocument/definition", json!({}));
    assert_eq!(spot(&draft), ("tasks.yaml".into(), 0));
    let file = of_crew("config/age|nts.yaml", "textDocument/definition", json!({}));
    assert_eq!(spot(&file), declared);
    let all =
        of_crew("wri|ter:", "textDocument/references", json!({"context": {"includeDeclaration": true}}));
    let mut spots: Vec<_> = all.as_array().unwrap().iter().map(spot).collect();
    spots.sort();
    let at = |f: &str, l: u64| (f.to_string(), l);
    let expected = [
        at("agents.yaml", 0),
        at("crew.py", 5),
        at("crew.py", 6),
        at("crew.py", 8),
        at("main.agent", 0),
        at("tasks.yaml", 3),
    ];
    assert_eq!(spots, expected);
}

#[test]
fn renaming_changes_every_file() {
    let edit = of_crew("wri|ter:", "textDocument/rename", json!({"newName": "author"}));
    let changes = edit["changes"].as_object().unwrap();
    let count = |uri: &str| changes[uri].as_array().unwrap().len();
    assert_eq!(changes.len(), 4, "{edit}");
    assert_eq!((count("file:///c/crew.py"), count("file:///c/config/tasks.yaml")), (3, 1));
    // Python has it as the name of a method.
    let answer = of_crew("wri|ter:", "textDocument/rename", json!({"newName": "the author"}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let held = of_crew("wri|ter:", "textDocument/prepareRename", json!({}));
    assert_eq!(held["placeholder"], "writer");
    // Two files as near as each other declare it.
    let twice = [
        ("file:///c/a/x.yaml", AGENTS),
        ("file:///c/b/y.yaml", AGENTS),
        ("file:///c/tasks.yaml", &TASKS.replace("agent: writer", "agent: wri|ter")),
    ];
    let answer = ask_among(&twice, "textDocument/rename", json!({"newName": "author"}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("several files"), "{answer}");
}

#[test]
fn programs_share_names() {
    let lib = "agent writer { tools: [] }\ntask tone(text: String) -> String by agent {}\n";
    let main =
        "use \"lib.agent\";\npipeline p(t: String) -> String { let x = to|ne(t) by writer; return x; }\n";
    let files = [("file:///p/main.agent", main), ("file:///p/lib.agent", lib)];
    let found = ask_among(&files, "textDocument/definition", json!({}));
    assert_eq!(spot(&found), ("lib.agent".into(), 1));
    let edit = ask_among(&files, "textDocument/rename", json!({"newName": "mood"}));
    assert_eq!(edit["changes"].as_object().unwrap().len(), 2, "{edit}");
    let from_lib = [
        ("file:///p/main.agent", &*main.replace('|', "")),
        ("file:///p/lib.agent", &*lib.replace("agent writer", "agent wri|ter")),
    ];
    let all =
        ask_among(&from_lib, "textDocument/references", json!({"context": {"includeDeclaration": false}}));
    assert_eq!(all.as_array().unwrap().iter().map(spot).collect::<Vec<_>>(), [("main.agent".into(), 1)]);
}

#[test]
fn modules_of_python_are_linted() {
    let text = "from langgraph.prebuilt import create_react_agent\ndef look(at: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return at\napp = create_react_agent('openai:m', [look], prompt='p')\napp.invoke({'messages': []})\n";
    let said = session(&[request(1, "initialize", json!({})), open("file:///c/graph.py", text)]);
    assert_eq!(said[1]["params"]["diagnostics"][0]["code"], "L017", "{}", said[1]);
    let said = session(&[request(1, "initialize", json!({})), open("file:///c/other.py", "print(1)\n")]);
    assert_eq!(said[1]["params"]["diagnostics"], json!([]));
}

#[test]
fn configurations_are_explained_and_completed() {
    let text = |v: Value| v["contents"]["value"].as_str().unwrap_or("").to_string();
    let field = text(of_crew("to|ols: [look]", "textDocument/hover", json!({})));
    assert!(field.contains("`θ` of `llm p θ`") && field.contains("the agent is a loop"), "{field}");
    let agent = text(of_crew("edi|tor:", "textDocument/hover", json!({})));
    assert!(agent.contains("at most 1 model calls") && agent.contains("effects"), "{agent}");
    let labels = |v: Value| -> Vec<String> {
        v.as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(
        labels(of_crew("agent: |writer", "textDocument/completion", json!({}))),
        ["draft", "editor", "polish", "writer"]
    );
    assert!(
        labels(of_crew("['|writer']", "textDocument/completion", json!({}))).contains(&"editor".to_string())
    );
    let keys = labels(ask_among(
        &[("file:///c/agents.yaml", &format!("{AGENTS}  ma|"))],
        "textDocument/completion",
        json!({}),
    ));
    assert!(keys.contains(&"max_iter".to_string()) && keys.contains(&"backstory".to_string()), "{keys:?}");
    assert_eq!(labels(of_crew("role: Wri|ter", "textDocument/completion", json!({}))), Vec::<String>::new());
}

#[test]
fn the_types_of_variables_are_shown() {
    let hints = ask("textDocument/inlayHint", PROGRAM, json!({}));
    let labels: Vec<&str> = hints.as_array().unwrap().iter().map(|h| h["label"].as_str().unwrap()).collect();
    assert_eq!(labels[1..], [": Tone"]);
}

fn methods() -> impl Strategy<Value = String> {
    let all = [
        "initialize",
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/codeAction",
        "textDocument/codeLens",
        "textDocument/completion",
        "textDocument/definition",
        "textDocument/documentHighlight",
        "textDocument/documentSymbol",
        "textDocument/foldingRange",
        "textDocument/formatting",
        "textDocument/hover",
        "textDocument/inlayHint",
        "textDocument/prepareRename",
        "textDocument/references",
        "textDocument/rename",
        "textDocument/semanticTokens/full",
        "textDocument/signatureHelp",
        "workspace/symbol",
        "textDocument/didClose",
        "textDocument/didSave",
        "workspace/didChangeWatchedFiles",
        "$/x",
    ];
    prop::sample::select(all.to_vec()).prop_map(String::from)
}

fn params() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (0u64..12).prop_map(Value::from),
        Just(json!(-1)),
        Just(json!(1e99)),
        Just(json!(u64::MAX)),
        Just(Value::Null)
    ];
    let position = (number.clone(), number).prop_map(|(l, c)| json!({"line": l, "character": c}));
    let text = prop_oneof![
        Just(PROGRAM.to_string()),
        "[a-z😀{}();=.\" \\n]{0,80}",
        (0usize..PROGRAM.len()).prop_map(|n| PROGRAM.get(..n).unwrap_or("").to_string()),
        prop::sample::select(vec![AGENTS, TASKS, CREW, CALLER]).prop_map(String::from),
        (0usize..AGENTS.len()).prop_map(|n| AGENTS.get(..n).unwrap_or("").to_string()),
        (0usize..CREW.len()).prop_map(|n| CREW.get(..n).unwrap_or("").to_string()),
    ];
    let uri = prop::sample::select(vec![
        "file:///a.agent",
        "file:///b.agent",
        "file:///a.lam",
        "file:///a.yaml",
        "file:///config/b.yaml",
        "file:///crew.py",
        "x",
        "file://%",
    ]);
    (position.clone(), position, text, uri, any::<bool>()).prop_map(|(a, b, text, uri, whole)| {
        let range = json!({"start": a, "end": b});
        let change = if whole { json!({"text": text}) } else { json!({"text": text, "range": range}) };
        json!({
            "textDocument": {"uri": uri, "version": 3, "text": text}, "position": a, "range": range,
            "contentChanges": [change, 4], "newName": text, "context": {},
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is said, each request gets one answer with its number, and the server goes on.
    #[test]
    fn a_client_that_speaks_nonsense_is_survived(
        said in prop::collection::vec((methods(), params(), any::<bool>()), 1..14),
    ) {
        let mut server = Server::new();
        say(&mut server, request(0, "initialize", json!({})));
        for (i, (method, params, asks)) in said.into_iter().enumerate() {
            let id = i as u32 + 1;
            let answers = match asks {
                true => say(&mut server, request(id, &method, params)),
                false => say(&mut server, notify(&method, params)),
            };
            let own: Vec<_> = answers.iter().filter(|a| a.get("id").is_some()).collect();
            prop_assert_eq!(own.len(), usize::from(asks));
            prop_assert!(own.iter().all(|a| a["id"] == id && (a.get("result").is_some() != a.get("error").is_some())));
        }
    }
}
