//! The command line as scripts see it: exit status, what goes where, and wrong input of every kind.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) struct Ran {
    pub(super) status: i32,
    pub(super) out: String,
    pub(super) err: String,
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn entail(args: &[&str]) -> Ran {
    entail_in(&root(), args)
}

/// Runs the program without the user's settings, keys and models.
pub(super) fn entail_in(dir: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"] {
        command.env_remove(name);
    }
    let out = command.args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap();
    Ran {
        status: out.status.code().unwrap_or(-1),
        out: String::from_utf8(out.stdout).unwrap(),
        err: String::from_utf8(out.stderr).unwrap(),
    }
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.out))
}

pub(super) fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[test]
fn eval_prints_the_label() {
    let ran = entail(&["eval", r#"["U"]:1 + 1"#]);
    assert_eq!((ran.status, ran.out.as_str(), ran.err.as_str()), (0, "[\"U\"]:2\n", ""));
    let ran = entail(&["eval", "--format", "json", r#"["U"]:1 + 1"#]);
    assert_eq!(
        (json(&ran)["result"].clone(), json(&ran)["label"].clone()),
        (2.into(), serde_json::json!(["U"]))
    );
}

#[test]
fn a_send_under_a_secret_condition_is_refused_at_the_if() {
    let ran = entail(&["eval", r#"if (["S"]:true) then send "hello" else null"#]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("error[flow]"), "{}", ran.err);
    assert!(ran.err.contains(r#"label ["S"]"#) && ran.err.contains("labeled []"), "{}", ran.err);
    // The note points at the whole `if`.
    assert!(ran.err.contains("what runs here depends on a value labeled"), "{}", ran.err);
    let ran = entail(&["eval", "--format", "json", r#"if (["S"]:true) then send "hello" else null"#]);
    assert_eq!(json(&ran)["error"]["code"], "flow");
    assert_eq!(json(&ran)["error"]["line"], 1);
}

#[test]
fn triage_runs_on_scripted_replies_and_says_its_bound() {
    let ticket = r#"{"ticket": "I was charged twice for March, please refund me."}"#;
    let script = "examples/triage.script.json";
    let ran = entail(&["run", "--format", "json", "--script", script, "examples/triage.agent", ticket]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let report = json(&ran);
    assert_eq!(report["result"]["category"], "billing");
    assert!(report["result"]["urgency"].is_number() && report["result"]["summary"].is_string());
    assert!(report["result"]["route"].as_str().unwrap().starts_with("finance/"));
    let (used, most) = (&report["usage"]["modelCalls"], &report["bound"]["modelCalls"]);
    assert!(used.as_u64().unwrap() >= 1 && used.as_u64() <= most.as_u64(), "{used} of {most}");
}

#[test]
fn a_script_has_the_results_of_tools_without_handlers() {
    let dir = tempfile::tempdir().unwrap();
    let program = write(
        dir.path(),
        "settle.agent",
        "tool page(url: String) -> String reads untrusted {}\n\
         tool pay(to: String, amount: Number requires public) -> Bool writes {}\n\
         pipeline settle(url: String) -> Bool { let text = page(url); let ok = pay(\"bob\", length(text)); return ok; }",
    );
    let run = |script: &str| {
        let script = write(dir.path(), "s.json", script);
        entail(&["run", "--format", "json", "--script", &script, &program, "u"])
    };
    let page = r#"{"call": "page", "result": "twelve bytes"}"#;
    let ran = run(&format!(r#"[{page}, {{"call": "pay", "result": true}}]"#));
    assert_eq!((ran.status, &json(&ran)["result"]), (0, &serde_json::json!(true)), "{}", ran.err);
    assert_eq!(json(&ran)["label"], serde_json::json!(["U"]));
    let failed = |script: &str, said: &str| {
        let ran = run(script);
        assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
        assert!(json(&ran)["error"]["message"].as_str().unwrap().contains(said), "{}", ran.out);
    };
    failed(&format!(r#"[{page}, {{"call": "pay", "fails": "no funds"}}]"#), "no funds");
    failed(
        &format!(r#"[{page}, {{"call": "pay", "result": "yes"}}]"#),
        "the result of `pay`: $: expected a boolean",
    );
    // A tool without a result in the script needs a handler, as without a script.
    let ran = run(&format!("[{page}]"));
    assert!(ran.status == 1 && ran.out.contains("no handler for tool `pay`"), "{}{}", ran.out, ran.err);
    for (script, said) in [
        (r#"[{"call": 1}]"#, "entry 1 of"),
        (r#"[{"call": "page"}]"#, "exactly one of `result` and `fails`"),
        (r#"["x", {"call": "page", "result": 1, "match": "x"}]"#, "unknown field `match` beside `call`"),
    ] {
        let ran = run(script);
        assert!(ran.status == 2 && ran.out.contains(said), "{script}: {}{}", ran.out, ran.err);
    }
}

/// The lines of data in a page that `--html` wrote.
fn data_of(page: &str) -> Vec<Value> {
    let (_, rest) = page.split_once("<script type=\"application/jsonl\" id=\"trace\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    data.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_is_a_page_whose_texts_cannot_be_markup() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = "</script><script>alert(1)</script><!-- %TRACE%";
    let program = write(
        dir.path(),
        "p.agent",
        "tool page(url: String) -> String reads untrusted {}\n\
         tool pay(to: String requires trusted) -> String writes {}\n\
         pipeline p(url: String) -> String { let text = page(url); let done = pay(text); return done; }",
    );
    let script = write(
        dir.path(),
        "s.json",
        serde_json::json!([{"call": "page", "result": hostile}, {"call": "pay", "result": ""}]).to_string(),
    );
    let html = dir.path().join("run.html").display().to_string();
    let run = |more: &[&str]| entail(&[&["trace", &program, hostile, "--html", &html], more].concat());
    let ran = run(&["--script", &script, "--run-refused"]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    let page = std::fs::read_to_string(&html).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "one of data, one of the page itself");
    let data = data_of(&page);
    assert_eq!(data[1]["input"]["url"], hostile);
    assert_eq!(data[0]["bound"]["toolCalls"], 2);
    assert!(data[0]["findings"][0]["help"].as_str().unwrap().contains("to allow it,"), "{}", data[0]);
    let request = data.iter().find(|line| line["event"] == "request").unwrap();
    assert!(request["tool"] == "page" && data.last().unwrap()["error"]["refused"]["name"] == "pay");
    // Labels are explained without being asked for.
    assert!(data.last().unwrap()["error"]["refused"]["from"][0]["ways"][0].is_array());
    let ran = run(&["--script", &script, "--run-refused", "--timeline"]);
    assert!(ran.status == 2 && ran.err.contains("--timeline"), "{}", ran.err);
    let nowhere = entail(&[
        "trace",
        &program,
        "u",
        "--script",
        &script,
        "--run-refused",
        "--html",
        "/no/such/run.html",
    ]);
    assert!(
        nowhere.status == 2 && nowhere.err.contains("cannot write `/no/such/run.html`"),
        "{}",
        nowhere.err
    );
}

#[test]
fn one_text_need_not_be_json() {
    let ran =
        entail(&["run", "--script", "examples/triage.script.json", "examples/triage.agent", "charged twice"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    // Standard output is the result and nothing else.
    assert!(serde_json::from_str::<Value>(&ran.out).is_ok(), "{}", ran.out);
    assert!(ran.err.contains("bound:"), "{}", ran.err);
}

#[test]
fn wrong_requests_exit_with_2_and_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().display().to_string();
    let triage = "examples/triage.agent";
    for (args, said) in [
        (vec!["run", "no/such.agent"], "no such file"),
        (vec!["run", &folder], "holds no configuration of a known framework"),
        (vec!["run", triage], "needs an input"),
        (vec!["run", triage, "{}"], "$.ticket: missing"),
        (
            vec!["run", triage, "{\"tiket\": 1}"],
            "$.tiket: there is no such field\n  help: did you mean `ticket`?",
        ),
        (vec!["run", triage, "{\"ticket\": \"x\", \"loud\": true}"], "leave it out: there is `ticket`"),
        (vec!["run", triage, "{\"ticket\": 1}"], "$.ticket: expected a string, found a number"),
        (vec!["run", triage, "{"], "not JSON"),
        (vec!["run", triage, "x", "--pipeline", "triag"], "did you mean `triage`?"),
        (vec!["run", triage, "x", "--max-usd", "cheap"], "not an amount"),
        (vec!["run", triage, "x", "--timeout=-1"], "not a positive number"),
        (vec!["run", triage, "x", "--script", "no/such.json"], "no/such.json"),
        (vec!["run", triage, "x", "--config", "no/such.toml"], "no such file"),
        (vec!["check", "README.md"], "neither an agent program"),
        (vec!["lint", "no/such"], "no such file"),
        (vec!["lint", ".", "--select", "L99"], "unknown rule"),
        (vec!["explain", "L00A"], "unknown diagnostic"),
        (vec!["frobnicate"], "unrecognized subcommand"),
    ] {
        let ran = entail(&args);
        assert_eq!(ran.status, 2, "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
        assert_eq!(ran.out, "", "{args:?}");
    }
}

#[test]
fn unknown_settings_are_refused_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "entail.toml", "modle = \"x\"\n");
    let ran = entail_in(dir.path(), &["eval", "1"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("line 1") && ran.err.contains("modle"), "{}", ran.err);
}

#[test]
fn programs_with_mistakes_exit_with_1_and_show_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "p.agent", "pipeline p() -> String {\n    return missing;\n}\n");
    let ran = entail(&["run", &file]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("p.agent:2:12") && ran.err.contains("missing"), "{}", ran.err);
    let ran = entail(&["check", "--format", "json", &file]);
    assert_eq!(ran.status, 1);
    assert_eq!((json(&ran)["line"].clone(), json(&ran)["column"].clone()), (2.into(), 12.into()));
}

#[test]
fn hostile_files_end_in_a_diagnostic_within_bounded_time_and_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..40 {
        let refs = vec![format!("*a{}", i - 1); 9].join(", ");
        laughs.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
    }
    laughs.push_str("agents: *a39\nrole: *a39\ngoal: *a39\nbackstory: *a39\n");
    let mut deep_crew = String::from("researcher:\n  role: r\n  goal: g\n  backstory: b\n  tools: ");
    deep_crew.push_str(&"[".repeat(100_000));
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("laughs.yaml", laughs.into_bytes()),
        ("deep.yaml", "[".repeat(100_000).into_bytes()),
        ("deep_crew.yaml", deep_crew.into_bytes()),
        ("deep.json", format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes()),
        ("deep.agent", format!("pipeline p() -> Number {{ return {}1; }}", "(".repeat(100_000)).into_bytes()),
        ("deep.lam", format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000)).into_bytes()),
        ("junk.yaml", (0..=255u8).cycle().take(100_000).collect()),
        ("junk.agent", (0..=255u8).cycle().take(100_000).collect()),
        ("junk.lam", (1..=127u8).cycle().take(100_000).collect()),
        ("latin1.yaml", b"role: caf\xe9\ngoal: x\nbackstory: y\n".to_vec()),
        ("latin1.agent", b"-- caf\xe9\n".to_vec()),
        ("empty.yaml", Vec::new()),
        ("empty.agent", Vec::new()),
        ("empty.lam", Vec::new()),
        ("tabs.yaml", b"a:\n\t- b: [\n".to_vec()),
        ("large.yaml", b"key: value value value value\n".repeat(100 * 1024 * 1024 / 29)),
        ("large.agent", b"-- a comment that goes on\n".repeat(100 * 1024 * 1024 / 26)),
    ];
    for (name, bytes) in files {
        let file = write(dir.path(), name, bytes);
        for command in ["lint", "check", "compile"] {
            let begun = Instant::now();
            let ran = entail(&[command, &file]);
            assert!((0..=2).contains(&ran.status), "{command} {name}: status {} {}", ran.status, ran.err);
            assert!(!ran.err.contains("panicked"), "{command} {name}: {}", ran.err);
            // Not a measurement: only whether it ends at all.
            assert!(begun.elapsed() < Duration::from_secs(60), "{command} {name}");
            if name.starts_with("large") && command == "compile" {
                assert_ne!(ran.status, 0, "{name}");
            }
        }
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn line_ends_and_byte_order_marks_do_not_shift_places() {
    let dir = tempfile::tempdir().unwrap();
    let program = "pipeline p() -> String {\r\n    return missing;\r\n}\r\n";
    let file = write(dir.path(), "crlf.agent", program);
    let ran = entail(&["check", "--format", "json", &file]);
    assert_eq!((json(&ran)["line"].clone(), json(&ran)["column"].clone()), (2.into(), 12.into()));
    let config = "agentId: a\r\ntype: react\r\nmodel: m\r\nsystemPrompt: p\r\nreact: {maxSteps: 0}\r\n";
    let plain = write(dir.path(), "crlf.yaml", config);
    let marked = write(dir.path(), "bom.yaml", format!("\u{feff}{config}"));
    for file in [plain, marked] {
        let ran = entail(&["lint", "--format", "json", "--select", "L003", &file]);
        assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
        assert_eq!(json(&ran)["line"], 5, "{}", ran.out);
    }
}

#[test]
fn lint_finds_the_bugs_of_the_listing() {
    let dir = tempfile::tempdir().unwrap();
    let listing = "agentId: seeCoderManus\ntype: react\nmodel: {name: qwen3-max, temperature: 0.7}\n\
                   systemPrompt: \"You are a coding assistant\"\nreact: {maxSteps: 20}\nmcp:\n  onlineTool: {SeeCoder-mcp: [sum, improve]}\n  \
                   localTools: [terminate]\nmemory: {strategy: redis, size: 20, ttl: 7200}\n";
    let good = write(dir.path(), "good.yaml", listing);
    let ran = entail(&["compile", &good]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    for part in ["mem", "fix[20]", "λself. λx", "case", "sum", "improve", "terminate"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert_eq!(entail(&["lint", &good]).status, 0);
    let codes = |text: String| -> Vec<String> {
        let file = write(dir.path(), "bad.yaml", text);
        let ran = entail(&["lint", "--format", "json", &file]);
        ran.out
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap()["code"].as_str().unwrap().to_string())
            .collect()
    };
    let without = codes(listing.replace("localTools: [terminate]", "localTools: []"));
    assert!(without.iter().any(|c| c.starts_with("L004")), "{without:?}");
    assert!(codes(listing.replace("maxSteps: 20", "maxSteps: 0")).contains(&"L003".to_string()));
}

#[test]
fn a_crew_is_run_with_its_placeholders_as_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let agents = "scout:\n  role: Scout of {topic}\n  goal: Find news\n  backstory: Patient.\n  llm: small\n";
    let tasks =
        "look:\n  description: Look for news about {topic}.\n  expected_output: One line.\n  agent: scout\n";
    write(dir.path(), "agents.yaml", agents);
    let tasks = write(dir.path(), "tasks.yaml", tasks);
    let script = write(dir.path(), "s.json", "[\"bees hum\"]");
    let ran = entail(&["run", "--format", "json", "--script", &script, &tasks, "{\"topic\": \"bees\"}"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert_eq!(json(&ran)["result"], "bees hum");
    let ran = entail(&["run", "--script", &script, &tasks, "{\"topic\": 1}"]);
    assert!(ran.status == 2 && ran.err.contains("$.topic: expected a string"), "{}", ran.err);
}

#[test]
fn standard_input_is_a_program_or_a_configuration() {
    let piped = |text: &str, args: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_entail"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    let program = "pipeline p(x: Number) -> Number { return x + 1; }";
    assert_eq!(piped(program, &["run", "-", "{\"x\": 1}"]), (Some(0), "2\n".into()));
    let config = "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: p\n";
    let (status, shown) = piped(config, &["compile", "-"]);
    assert!(status == Some(0) && shown.contains("llm"), "{shown}");
    assert_eq!(piped("1 + 1", &["eval", "-"]), (Some(0), "2\n".into()));
    // Every command that reads a file.
    let (status, shown) = piped("pipeline p() -> Number { return y; }", &["lint", "-", "--format", "json"]);
    assert!(status == Some(1) && shown.contains("\"A030\""), "{shown}");
    let (status, shown) = piped("agentId: a\ntype: simple\nsystemPrompt: p\n", &["lint", "-"]);
    assert!(status == Some(1) && shown.contains("L002"), "{shown}");
    let (status, shown) = piped("test \"sums\" { assert 1 + 1 == 3; }", &["test", "-"]);
    assert!(status == Some(1) && shown.contains("FAIL -: sums"), "{shown}");
    for wrong in [["lint", "--fix", "-"], ["test", "--record", "-"]] {
        assert_eq!(piped("", &wrong), (Some(2), String::new()), "{wrong:?}");
    }
}

#[test]
fn a_function_costs_and_does_what_a_call_of_it_does() {
    let dir = tempfile::tempdir().unwrap();
    let agent = write(dir.path(), "agent.lam", r#"fix[20] (\s. \x. s (llm "Go on." {model: "gpt-4.1"} x))"#);
    let ran = entail(&["cost", "--format", "json", &agent]);
    assert_eq!(json(&ran)["modelCalls"], serde_json::json!({"least": 1, "most": 20}), "{}", ran.out);
    let ran = entail(&["check", "--show", "types,effects,cost,flow", &agent]);
    for part in [
        "main of Dyn",
        "type: Dyn -[llm(\"gpt-4.1\")]> Str",
        "effects: llm(\"gpt-4.1\")",
        "model calls: 1 to 20",
        "always allowed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    // What takes functions is no agent, and data no function.
    let twice = write(dir.path(), "twice.lam", r"\f: Num -> Num. f >> f");
    assert!(entail(&["check", &twice]).out.starts_with(&format!("{twice}: main\n")));
}

#[test]
fn the_identity_is_no_empty_composition() {
    let dir = tempfile::tempdir().unwrap();
    // Zero, an identity stage, a branch that ends a loop.
    let zero = r"\f. \x. x";
    let stage = r#"(\s. prim[upper](s)) >> (\x: Str. x)"#;
    let done = r#"fix[3] (\s. \x. (case `done null of {go => s, done => \y. y, _ => s}) x)"#;
    for (name, text) in [("zero.lam", zero), ("stage.lam", stage), ("done.lam", done)] {
        let ran = entail(&["lint", &write(dir.path(), name, text)]);
        assert!(ran.status == 0 && !ran.out.contains("L006"), "{}", ran.out);
    }
    for (name, text) in [("none.lam", "(>>)"), ("par.lam", "par []")] {
        assert!(entail(&["lint", &write(dir.path(), name, text)]).out.contains("L006"), "{text}");
    }
}

#[test]
fn large_files_are_read_whole_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    // Programs up to 16 MiB, as their pages say; what is larger is said to be.
    let long =
        format!("-- {}\npipeline p(x: String) -> Number {{ return length(x); }}\n", "x".repeat(9 << 20));
    let long = write(dir.path(), "long.agent", long);
    let ran = entail(&["check", &long]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    let longer = write(dir.path(), "longer.lam", vec![b' '; 17 << 20]);
    let ran = entail(&["check", &longer]);
    assert!(ran.status == 1 && ran.err.contains("the file is larger than"), "{}", ran.err);
    // An input is not cut off.
    let input = write(dir.path(), "input.txt", vec![b'a'; 9 << 20]);
    let short = write(dir.path(), "short.agent", "pipeline p(x: String) -> Number { return length(x); }");
    let ran = entail(&["run", &short, "--input", &format!("@{input}")]);
    assert_eq!((ran.status, ran.out.as_str()), (0, "9437184\n"), "{}", ran.err);
}

#[test]
fn every_code_that_lint_reports_can_be_selected() {
    let dir = tempfile::tempdir().unwrap();
    let file =
        write(dir.path(), "a.yaml", "agentId: a\nagentId: b\ntype: simple\nmodel: m\nsystemPrompt: p\n");
    let ran = entail(&["lint", "--format", "json", "--select", "D004", &file]);
    assert_eq!(json(&ran)["code"], "D004", "{}{}", ran.out, ran.err);
    // No code begins with a Y.
    assert_eq!(entail(&["lint", "--select", "Y1", &file]).status, 2);
}

#[test]
fn missing_model_fails_before_run() {
    let dir = tempfile::tempdir().unwrap();
    let models = dir.path().display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(["run", "examples/triage.agent", "hello"]).current_dir(root()).stdin(Stdio::null());
    command.env("ENTAIL_MODEL_DIR", &models).env_remove("ENTAIL_MODEL");
    let out = command.output().unwrap();
    let err = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{err}");
    assert!(err.contains("entail model pull"), "{err}");
}

#[test]
fn an_endpoint_that_is_down_fails_the_run_with_the_cause() {
    let dir = tempfile::tempdir().unwrap();
    let program = std::fs::read_to_string(root().join("examples/triage.agent")).unwrap();
    let file = write(dir.path(), "triage.agent", program);
    // Nothing listens on port 1 of the loopback address.
    write(
        dir.path(),
        "entail.toml",
        "model = \"m\"\n[models.m]\nbase_url = \"http://127.0.0.1:1/v1\"\nretries = 0\n",
    );
    let ran = entail_in(dir.path(), &["run", "--format", "json", &file, "hello"]);
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    let error = &json(&ran)["error"];
    assert_eq!(error["code"], "model");
    assert!(error["message"].as_str().unwrap().contains("connect"), "{error}");
    assert_eq!(error["path"], file.as_str());
}

/// Sends Ctrl-C to a run as soon as something is true of it; its exit status and what it said.
#[cfg(unix)]
fn interrupted(args: &[&str], ready: impl Fn(u32) -> bool) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held until the process has ended: what it reads has no end.
    let stdin = child.stdin.take();
    while !ready(child.id()) {
        std::thread::yield_now();
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let out = child.wait_with_output().unwrap();
    drop(stdin);
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// Returns true if a process has a handler for Ctrl-C, which is signal 2.
#[cfg(target_os = "linux")]
fn listens(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0").trim();
    u64::from_str_radix(caught, 16).is_ok_and(|set| set & 2 != 0)
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_before_the_run_begins_says_so_and_ends_with_130() {
    // It waits for a program on standard input, which never comes.
    let (status, said) = interrupted(&["run", "-", "x"], listens);
    assert_eq!((status, said.contains("cancelled")), (Some(130), true), "{said}");
}

/// The run is over then, and what it gave is the result.
#[cfg(unix)]
#[test]
fn ctrl_c_gives_up_a_collector_that_does_not_answer() {
    let collector = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    collector.set_nonblocking(true).unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let connection = std::cell::RefCell::new(None);
    let (status, said) = interrupted(&["eval", "1 + 1", "--otlp", &url], |_| {
        *connection.borrow_mut() = collector.accept().ok();
        connection.borrow().is_some()
    });
    assert_eq!((status, said.contains("were dropped")), (Some(0), true), "{said}");
}

/// A tool, and what it has started, end with a run that is killed and can't see to it.
#[cfg(target_os = "linux")]
#[test]
fn tools_end_with_a_run_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let ids = dir.path().join("ids");
    // The run may be held up between starting the tool and having it watched.
    let script = format!("sleep 600 & leaf=$!; sleep 1; echo $leaf $$ > {}; wait", ids.display());
    let program = format!(
        "tool hang() -> String writes {{ exec \"sh\" \"-c\" \"{script}\" }}\n\
         pipeline p() -> String {{ let r = hang(); return r; }}\n"
    );
    write(dir.path(), "p.agent", program);
    let mut run = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["run", "p.agent"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = loop {
        let started = std::fs::read_to_string(&ids).unwrap_or_default();
        let started: Vec<u32> = started.split_whitespace().filter_map(|id| id.parse().ok()).collect();
        if started.len() == 2 {
            break started;
        }
        assert_eq!(run.try_wait().unwrap(), None, "the tool hangs");
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    // SIGKILL
    run.kill().unwrap();
    run.wait().unwrap();
    // What has ended is a zombie until somebody waits for it, which is the business of the system now.
    let is_there = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.contains("State:") && !status.contains("State:\tZ")
    };
    let mut polls = 0;
    while started.iter().any(is_there) {
        polls += 1;
        assert!(polls < 6000, "{started:?} is left behind");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// A process that is killed leaves the trace of what was answered. It once left an empty file: the trace was
/// written at the end of the run, and each piece of a line for itself.
#[test]
fn a_killed_run_leaves_the_trace_of_what_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let started = dir.path().join("started");
    let program = format!(
        "tool quick(n: Number) -> Number reads {{ exec \"sh\" \"-c\" \"echo 1\" }}\n\
         tool hang() -> String writes {{ exec \"sh\" \"-c\" \"echo > {}; sleep 600\" }}\n\
         pipeline p() -> String {{ let a = quick(1); let b = quick(2); let r = hang(); return r; }}\n",
        started.display()
    );
    write(dir.path(), "p.agent", program);
    let mut run = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["run", "p.agent", "--trace", "t.jsonl"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !started.exists() {
        assert_eq!(run.try_wait().unwrap(), None, "the tool hangs");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SIGKILL
    run.kill().unwrap();
    run.wait().unwrap();
    let text = std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["run", "request", "response", "request", "response"], "{text}");
    // It can be shown.
    let shown = entail_in(dir.path(), &["trace", "t.jsonl"]);
    assert_eq!(shown.status, 0, "{}", shown.err);
    assert!(shown.out.contains("quick") && !shown.out.contains("hang"), "{}", shown.out);
    assert!(shown.err.contains("this trace has no end"), "{}", shown.err);
}

/// Returns the output of `entail lsp` for a client that opens a document and leaves.
fn editor(uri: &str, text: &str, args: &[&str]) -> String {
    use std::io::Write;
    let mut server = Command::new(env!("CARGO_BIN_EXE_entail"))
        .arg("lsp")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let document = serde_json::json!({"uri": uri, "languageId": "agent", "version": 1, "text": text});
    let mut input = server.stdin.take().unwrap();
    for message in [
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}),
        serde_json::json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}),
        serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}),
        serde_json::json!({"jsonrpc": "2.0", "method": "exit"}),
    ] {
        let text = message.to_string();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
    }
    drop(input);
    let out = server.wait_with_output().unwrap();
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(0), "{said}");
    said
}

#[test]
fn a_client_uses_the_language_server() {
    let said = editor("file:///p.agent", "pipeline p() -> String { return 1; }", &[]);
    assert!(said.contains("hoverProvider") && said.contains("A050"), "{said}");
}

/// A module that is open is looked at again when one that it imports is saved.
#[test]
fn saving_a_module_changes_the_findings_of_what_imports_it() {
    use std::io::{BufRead, Read, Write};
    let dir = tempfile::tempdir().unwrap();
    let uri = |name: &str| format!("file://{}/{name}", dir.path().display());
    let graph = "from langgraph.prebuilt import create_react_agent\nfrom limits import LIMITS\n\
                 def look(at: str) -> str:\n    '''Looks.'''\n    return at\n\
                 app = create_react_agent('openai:m', [look], prompt='p')\napp.invoke({'messages': []}, LIMITS)\n";
    write(dir.path(), "graph.py", graph);
    write(dir.path(), "limits.py", "LIMITS = {}\n");
    let mut server = Command::new(env!("CARGO_BIN_EXE_entail"))
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    let mut say = |message: serde_json::Value| {
        let text = message.to_string();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        input.flush().unwrap();
    };
    let mut hear = || {
        let (mut head, mut empty) = (String::new(), String::new());
        output.read_line(&mut head).unwrap();
        output.read_line(&mut empty).unwrap();
        let length = head.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        output.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    };
    say(serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    assert!(hear().contains("hoverProvider"));
    let document =
        serde_json::json!({"uri": uri("graph.py"), "languageId": "python", "version": 1, "text": graph});
    say(
        serde_json::json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}}),
    );
    let before = hear();
    assert!(before.contains("graph.py") && before.contains("L017"), "{before}");
    write(dir.path(), "limits.py", "LIMITS = {'recursion_limit': 5}\n");
    let saved = serde_json::json!({"textDocument": {"uri": uri("limits.py")}});
    say(serde_json::json!({"jsonrpc": "2.0", "method": "textDocument/didSave", "params": saved}));
    let after = hear();
    assert!(after.contains("graph.py") && !after.contains("L017"), "{after}");
    say(serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}));
    say(serde_json::json!({"jsonrpc": "2.0", "method": "exit"}));
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn the_language_server_finds_what_check_finds_with_the_settings_around() {
    let dir = tempfile::tempdir().unwrap();
    let uri = format!("file://{}/inner/p.agent", dir.path().display());
    std::fs::create_dir(dir.path().join("inner")).unwrap();
    let program = "tool pay(n: Number) -> String writes policy spending {}\n\
                   use crew \"crew.yaml\" as research(topic: String) -> String;\n\
                   pipeline p(n: Number) -> String { let r = pay(n); return r; }\n";
    write(&dir.path().join("inner"), "p.agent", program);
    let crew = "researcher:\n  role: r\n  goal: g\n  backstory: b\n";
    // Neither the configuration nor the policy is there.
    let said = editor(&uri, program, &[]);
    assert!(said.contains("A085") && said.contains("no such file"), "{said}");
    write(&dir.path().join("inner"), "crew.yaml", crew);
    let said = editor(&uri, program, &[]);
    assert!(said.contains("A086") && said.contains("name a policy file"), "{said}");
    // The settings of a folder above name the policy file.
    write(dir.path(), "entail.toml", "policy = \"p.toml\"\n");
    write(dir.path(), "p.toml", "[policies.spendings]\nresult = \"trusted\"\n");
    let said = editor(&uri, program, &[]);
    assert!(said.contains("A086") && said.contains("spendings"), "{said}");
    write(dir.path(), "p.toml", "[policies.spending]\nresult = \"trusted\"\n");
    let said = editor(&uri, program, &[]);
    assert!(said.contains("\"diagnostics\":[]"), "{said}");
    // Settings that cannot be used are the reason.
    write(dir.path(), "entail.toml", "polcy = 1\n");
    let said = editor(&uri, program, &[]);
    assert!(said.contains("A086") && said.contains("is wrong"), "{said}");
    // `--config` comes first.
    write(dir.path(), "other.toml", "policy = \"p.toml\"\n");
    let other = dir.path().join("other.toml").display().to_string();
    let said = editor(&uri, program, &["--config", &other]);
    assert!(said.contains("\"diagnostics\":[]"), "{said}");
}

/// All commands that show costs use the prices of the settings, as `cost` does.
#[test]
fn every_bound_uses_the_prices_of_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let program = |model: &str| {
        format!(
            "agent a {{ tools: [], model: \"{model}\", max_tokens: 100 }}\n\
        task ask(q: String) -> String by agent {{ prompt \"{{q}}\" }}\n\
        pipeline main() -> String {{ let x = ask(\"hello\") by a; return x; }}\n"
        )
    };
    let settings = "[models.mine]\nbase_url = \"http://127.0.0.1:9\"\nprice = { input = 1.0, output = 1.0 }\n\
        [models.lent]\nprovider = \"llama.cpp\"\nbase_url = \"http://127.0.0.1:9\"\n\
        [models.gpt-4o]\nbase_url = \"http://127.0.0.1:9\"\nprice = { input = 7.0, output = 7.0 }\n";
    write(at, "entail.toml", settings);
    // By entry, by provider, by the name of a provider, and with another price than that of the list.
    for model in ["mine", "lent", "ollama/deepseek-chat", "local", "gpt-4o"] {
        let file = write(at, "p.agent", program(model));
        let cost = json(&entail_in(at, &["cost", "--format", "json", "p.agent"]));
        assert_eq!(cost["unpriced"], serde_json::json!([]), "{model}: {cost}");
        let money = cost["usd"].clone();
        let is_free = money["most"] == 0.0;
        assert_eq!(is_free, !matches!(model, "mine" | "gpt-4o"), "{model}: {cost}");
        let checked = entail_in(at, &["check", "--format", "json", "--show", "cost", "p.agent"]);
        assert_eq!(json(&checked)["usd"], money, "{model}");
        assert!(!checked.err.contains("no price"), "{}", checked.err);
        let library =
            entail::Program::load_with(&file, &entail::Settings::load(at.join("entail.toml")).unwrap());
        assert_eq!(library.unwrap().main().unwrap().bound_json()["usd"], money, "{model}");
        let typed = ":load p.agent\n:cost main\n";
        let mut repl = Command::new(env!("CARGO_BIN_EXE_entail"))
            .args(["repl", "--format", "json"])
            .current_dir(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut repl.stdin.take().unwrap(), typed.as_bytes()).unwrap();
        let out = String::from_utf8(repl.wait_with_output().unwrap().stdout).unwrap();
        let last: Value = serde_json::from_str(out.trim().lines().last().unwrap()).unwrap();
        assert_eq!(last["usd"], money, "{model}: {out}");
        let compiled = entail_in(at, &["compile", "--optimise=fuse-models", "p.agent"]);
        assert!(!compiled.err.contains("price unknown"), "{model}: {}", compiled.err);
    }
    // Elsewhere it is somebody else's model.
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.env("ENTAIL_BASE_URL", "http://127.0.0.1:9").env_remove("ENTAIL_MODEL");
    write(at, "p.agent", program("ollama/nobody-knows"));
    let out = command.args(["cost", "--format", "json", "p.agent"]).current_dir(at).output().unwrap();
    let cost: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(cost["unpriced"][0]["model"], "ollama/nobody-knows", "{cost}");
}

#[test]
fn countdown_loop_is_bounded_if_start_is_known() {
    let bounds = |pipeline: &str| {
        let file = "suite/agent/run/recursion.agent";
        let ran = entail(&["cost", "--format", "json", "--pipeline", pipeline, file]);
        json(&ran)["toolCalls"].clone()
    };
    assert_eq!(bounds("twice"), serde_json::json!({"least": 1, "most": 4}));
    assert_eq!(bounds("refine"), serde_json::json!({"least": 1, "most": null}));
}

#[test]
fn a_policy_of_a_name_comes_from_the_file_that_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let program = "tool pay(amount: Number) -> String writes policy spending { exec \"echo\" \"\\\"paid\\\"\" }\n\
                   pipeline p(amount: Number) -> String { let r = pay(amount); return r; }\n\
                   test \"much\" { let r = p(11); }\ntest \"little\" { let r = p(9); assert r == \"paid\"; }\n";
    write(dir.path(), "p.agent", program);
    let policy = "[policies.spending]\nallow = '\\a. if a.amount.value < 10 then true else \"too much\"'\n";
    write(dir.path(), "policy.toml", policy);
    // A file to begin with can be written for it, and it decides nothing by itself.
    let init = entail_in(dir.path(), &["policy", "init", "p.agent", "--output", "new.toml"]);
    assert!(init.status == 0 && init.err.contains("the file defines `spending`"), "{}{}", init.out, init.err);
    let text = std::fs::read_to_string(dir.path().join("new.toml")).unwrap();
    assert!(text.contains("# [policies.spending]  # `pay`, p.agent:1"), "{text}");
    let ran = entail_in(dir.path(), &["check", "p.agent", "--policy", "new.toml"]);
    assert!(ran.status == 1 && ran.err.contains("add `[policies.spending]`"), "{}{}", ran.out, ran.err);
    let chosen = text.replace("# [policies", "[policies").replace("# allow", "allow");
    write(dir.path(), "new.toml", chosen);
    let ran = entail_in(dir.path(), &["check", "p.agent", "--policy", "new.toml"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    write(dir.path(), "near.toml", policy.replace("spending", "spendings"));
    let commands: [&[&str]; 7] = [
        &["run", "p.agent", "{\"amount\":9}"],
        &["check", "p.agent"],
        &["cost", "p.agent"],
        &["trace", "p.agent", "{\"amount\":9}"],
        &["test", "p.agent", "--live", "--filter", "little"],
        &["compile", "p.agent"],
        &["lambda", "p.agent"],
    ];
    for command in commands {
        // Nothing is run, checked or counted without it, and a slip is said.
        let ran = entail_in(dir.path(), command);
        assert_eq!(ran.status, 1, "{command:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("A086") || ran.out.contains("A086"), "{command:?}: {}{}", ran.out, ran.err);
        let ran = entail_in(dir.path(), &[command, &["--policy", "near.toml"]].concat());
        assert!(
            format!("{}{}", ran.out, ran.err).contains("did you mean `spendings`?"),
            "{command:?}: {}",
            ran.err
        );
        let ran = entail_in(dir.path(), &[command, &["--policy", "policy.toml"]].concat());
        assert_eq!(ran.status, 0, "{command:?}: {}{}", ran.out, ran.err);
    }
    // The settings name it for every command, relative to themselves.
    let inner = dir.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    write(dir.path(), "entail.toml", "policy = \"policy.toml\"\n");
    for command in commands {
        let command: Vec<String> = command.iter().map(|a| a.replace("p.agent", "../p.agent")).collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let ran = entail_in(&inner, &command);
        assert_eq!(ran.status, 0, "{command:?}: {}{}", ran.out, ran.err);
    }
    let ran = entail_in(&inner, &["run", "../p.agent", "{\"amount\":11}"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("the policy of `pay` refuses the call: too much"), "{}", ran.err);
    let ran = entail_in(&inner, &["test", "--live", "../p.agent"]);
    assert!(ran.status == 1 && ran.out.contains("ok ") && ran.out.contains("too much"), "{}", ran.out);
    // A policy file that is wrong is a wrong request.
    write(dir.path(), "policy.toml", "[policies.spending]\nalow = 1\n");
    let ran = entail_in(&inner, &["test", "../p.agent"]);
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_with_130() {
    let dir = tempfile::tempdir().unwrap();
    let program = "task wait(x: String) -> String { exec \"sleep\" \"30\" }\n\
                   pipeline p(x: String) -> String { let y = run wait with { x: x }; return y; }\n";
    let file = write(dir.path(), "wait.agent", program);
    let mut child = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(["run", "-v", &file, "x"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line on standard error says that the tool is being called: then the signal has something to
    // interrupt.
    let mut reader = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut reader, &mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{line}{rest}");
    assert!(rest.contains("error[cancelled]"), "{line}{rest}");
}

#[test]
fn explain_knows_every_code_it_lists() {
    let listed = entail(&["explain"]);
    let codes: Vec<&str> = listed.out.lines().filter_map(|l| l.split_whitespace().next()).collect();
    assert!(codes.len() > 30);
    let mut sorted = codes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), codes.len(), "a code is listed twice");
    for code in ["L004a", "C007", "A001"] {
        let ran = entail(&["explain", code]);
        assert!(ran.status == 0 && ran.out.contains(code), "{code}");
    }
}

#[test]
fn fmt_checks_shows_and_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let ugly = "pipeline p( x:String )->String{\n\n\n-- why\nreturn x;}";
    let good = "pipeline p(x: String) -> String {\n    -- why\n    return x;\n}\n";
    let file = write(dir.path(), "p.agent", ugly);
    let bad = write(dir.path(), "wrong.agent", "pipeline p( {");
    write(dir.path(), "t.lam", "let x=1\nx+x");
    let read = |path: &str| std::fs::read_to_string(path).unwrap();

    let ran = entail_in(dir.path(), &["fmt", "--check", "p.agent", "t.lam"]);
    assert_eq!((ran.status, ran.out.as_str()), (1, "p.agent\nt.lam\n"), "{}", ran.err);
    assert!(ran.err.contains("2 files would change"), "{}", ran.err);
    let ran = entail_in(dir.path(), &["fmt", "--diff", "p.agent"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    for line in ["\n-pipeline p( x:String )->String{\n", "\n+pipeline p(x: String) -> String {\n"] {
        assert!(ran.out.contains(line), "{}", ran.out);
    }
    assert_eq!(read(&file), ugly);

    // One file with errors is reported and left alone; the others are formatted.
    let ran = entail_in(dir.path(), &["fmt", "."]);
    assert_eq!(ran.status, 1);
    assert!(
        ran.err.contains("error[") && ran.err.contains("2 files formatted, 1 file with errors"),
        "{}",
        ran.err
    );
    assert_eq!((read(&file).as_str(), read(&bad).as_str()), (good, "pipeline p( {"));
    let ran = entail_in(dir.path(), &["fmt", "--check", "--format", "json", "p.agent"]);
    assert_eq!((ran.status, ran.out.as_str()), (0, ""), "{}", ran.err);

    for (args, said) in [
        (vec!["fmt", "no.agent"], "no such file"),
        (vec!["fmt", "-", "p.agent"], "cannot be combined"),
        (vec!["fmt", "-", "--stdin-path", "x.yaml"], "names no program"),
    ] {
        let ran = entail_in(dir.path(), &args);
        assert_eq!(ran.status, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
    }
}

#[cfg(unix)]
#[test]
fn fmt_keeps_permissions_and_links() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "t.lam", "1+1");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = dir.path().join("link.lam");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let ran = entail(&["fmt", &link.display().to_string()]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1 + 1\n");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn the_examples_are_formatted() {
    let ran = entail(&["fmt", "--check", "examples"]);
    assert_eq!(ran.status, 0, "{}", ran.out);
}

const BOTH: &str = r#"
task ask(s: String) -> String by agent { prompt "{s}" }
agent a { tools: [] }
pipeline both(s: String) -> String {
    parallel {
        let x = ask(s + "1") by a;
        let y = ask(s + "2") by a;
    } join;
    let z = ask(x + y) by a;
    return z;
}
test "model" { let x = both("q"); assert x == "done"; }
test "wrong" { assert 1 + 1 == 3, "sums"; }
test "plain" { assert 1 + 1 == 2; }
"#;

const REPLIES: &str = r#"{"model": [{"match": "q2", "reply": "2"}, {"match": "q1", "reply": "1"}, "done"]}"#;

#[test]
fn tests_are_run_with_the_replies_beside_the_program() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "both.agent", BOTH);
    let ran = entail_in(dir.path(), &["test", "both.agent"]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    // Without replies no model is asked, and it is said how to get them.
    assert!(ran.out.contains("FAIL both.agent: model") && ran.out.contains("--record"), "{}", ran.out);
    assert!(ran.err.contains("1 passed, 2 failed"), "{}", ran.err);

    write(dir.path(), "both.replies.json", REPLIES);
    for jobs in ["1", "8"] {
        let ran = entail_in(dir.path(), &["test", ".", "--jobs", jobs]);
        assert_eq!(ran.status, 1, "{}", ran.err);
        assert!(
            ran.out.contains("ok   both.agent: model") && ran.out.contains("ok   both.agent: plain"),
            "{}",
            ran.out
        );
        // The values on both sides, and the place.
        assert!(
            ran.out.contains("sums (left: 2, right: 3)") && ran.out.contains("both.agent:13:16"),
            "{}",
            ran.out
        );
    }
    let ran = entail_in(dir.path(), &["test", ".", "--filter", "model", "--format", "json"]);
    assert_eq!((ran.status, json(&ran)["status"].as_str()), (0, Some("passed")), "{}", ran.err);
    assert_eq!(json(&ran)["usage"]["modelCalls"], 3);
    let ran = entail_in(dir.path(), &["test", ".", "--format", "junit"]);
    assert!(ran.out.contains("<testsuites name=\"entail\" tests=\"3\" failures=\"1\">"), "{}", ran.out);
    assert!(ran.out.contains("sums (left: 2, right: 3)\" type=\"fail\">"), "{}", ran.out);

    write(dir.path(), "none.agent", "type T = String;");
    for (args, said) in [
        (vec!["test", "none.agent"], "no tests found"),
        (vec!["test", "no/such.agent"], "no such file"),
        (vec!["test", "both.replies.json"], "not an `.agent` program"),
        (vec!["test", ".", "--script", "none.agent"], "not JSON"),
        (vec!["fmt", "--format", "junit", "none.agent"], "invalid value 'junit' for '--format <FORMAT>'"),
    ] {
        let ran = entail_in(dir.path(), &args);
        assert_eq!(ran.status, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
    }
}

#[test]
fn recorded_replies_replay_in_tests() {
    let dir = tempfile::tempdir().unwrap();
    let program = write(dir.path(), "both.agent", BOTH);
    // A model that answers from a script replaces a real one.
    write(
        dir.path(),
        "entail.toml",
        "model = \"m\"\n[models.m]\nprovider = \"scripted\"\nfile = \"m.json\"\n",
    );
    write(
        dir.path(),
        "m.json",
        r#"[{"match": "q2", "reply": "2"}, {"match": "q1", "reply": "1"}, {"match": "12", "reply": "done"}]"#,
    );
    let ran = entail_in(dir.path(), &["test", "--record", "--filter", "model", &program]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    std::fs::remove_file(dir.path().join("m.json")).unwrap();
    let ran = entail_in(dir.path(), &["test", "--filter", "model", &program]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let recorded = std::fs::read_to_string(dir.path().join("both.replies.json")).unwrap();
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    assert_eq!(recorded["model"].as_array().unwrap().len(), 3);
    assert_eq!(recorded.as_object().unwrap().len(), 1, "tests that ask no model have nothing to record");
}

#[test]
fn a_trace_is_the_same_whatever_the_order_of_answers() {
    let dir = tempfile::tempdir().unwrap();
    // Tools in processes of their own: chance decides which answers first.
    let program = r#"
        tool slow(n: Number) -> Number { }
        pipeline p() -> List[Number] {
            parallel { let a = slow(30); let b = slow(1); let c = slow(15); } join;
            let d = slow(2);
            return [a, b, c, d];
        }
    "#;
    write(dir.path(), "p.agent", program);
    let sleep = "import json, sys, time; n = json.load(sys.stdin)[\\\"n\\\"]; time.sleep(n / 1000); print(n)";
    write(
        dir.path(),
        "entail.toml",
        format!("[handlers]\nslow = {{ exec = [\"python3\", \"-c\", \"{sleep}\"] }}\n"),
    );
    let traces: Vec<String> = (0..3)
        .map(|i| {
            let file = format!("t{i}.jsonl");
            let ran = entail_in(dir.path(), &["run", "p.agent", "--trace", &file]);
            assert_eq!(ran.status, 0, "{}", ran.err);
            std::fs::read_to_string(dir.path().join(file)).unwrap()
        })
        .collect();
    assert_eq!(traces[0], traces[1]);
    assert_eq!(traces[0], traces[2]);
    let asked: Vec<u64> = traces[0]
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
        .filter(|l| l["event"] == "request")
        .map(|l| l["args"]["n"].as_u64().unwrap())
        .collect();
    assert_eq!(asked, [30, 1, 15, 2]);
    let ran = entail_in(dir.path(), &["trace", "t0.jsonl", "--timeline"]);
    assert!(ran.out.contains("4 requests, at most 2 of them one after another"), "{}", ran.out);
}

/// Both branches ask the same, and which of them asks first is a matter of time.
#[test]
fn recorded_replies_match_requests_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let program = r#"
        agent a { tools: [] }
        tool slow(n: Number) -> Number { }
        task say() -> String by agent { prompt "Say something." }
        pipeline sub(n: Number) -> String { let x = slow(n); let s = say() by a; let t = say() by a; return s + t; }
        pipeline p() -> List[String] {
            parallel { let x = sub(0); let y = sub(1); } join;
            return [x, y];
        }
        test "both" { let r = p(); assert f"{r[0]} {r[1]}" == "ab cd"; }
    "#;
    write(dir.path(), "p.agent", program);
    // The branch `late` is the slow one; the model answers in the order in which it is asked.
    let settings = |late: u32| {
        let code = format!(
            "import json, sys, time; n = json.load(sys.stdin)[\\\"n\\\"]; time.sleep(0.5 * (n == {late})); print(n)"
        );
        format!(
            "model = \"m\"\n[models.m]\nprovider = \"scripted\"\nfile = \"m.json\"\n\
             [handlers]\nslow = {{ exec = [\"python3\", \"-c\", \"{code}\"] }}\n"
        )
    };
    write(dir.path(), "m.json", r#"["a", "b", "c", "d"]"#);
    write(dir.path(), "entail.toml", settings(1));
    let ran = entail_in(dir.path(), &["test", "--live", "--record", "p.agent"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let recorded = std::fs::read_to_string(dir.path().join("p.replies.json")).unwrap();
    assert!(recorded.contains("\"place\""), "{recorded}");
    let traces = [0, 1].map(|late| {
        write(dir.path(), "entail.toml", settings(late));
        let ran = entail_in(dir.path(), &["test", "--live", "p.agent"]);
        assert_eq!(ran.status, 0, "{late}: {}{}", ran.out, ran.err);
        let script: Value = serde_json::from_str(&recorded).unwrap();
        write(dir.path(), "s.json", script["both"].to_string());
        let args = ["run", "--pipeline", "p", "p.agent", "--script", "s.json", "--trace", "t.jsonl"];
        let ran = entail_in(dir.path(), &args);
        assert_eq!(ran.status, 0, "{}", ran.err);
        (ran.out, std::fs::read_to_string(dir.path().join("t.jsonl")).unwrap())
    });
    assert_eq!(traces[0], traces[1]);
}

#[test]
fn the_seven_phases_of_an_agents_step_are_in_the_trace() {
    let script = write(
        tempfile::tempdir().unwrap().keep().as_path(),
        "s.json",
        r#"[{"tool": "search", "args": {"query": "x"}}, "no JSON", "{\"text\": \"found\"}"]"#,
    );
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "entail.toml",
        "[handlers]\nsearch = { exec = [\"echo\", \"[\\\"a\\\"]\"] }\npage = { exec = [\"false\"] }\n",
    );
    let config = dir.path().join("entail.toml").display().to_string();
    let args =
        ["trace", "--json", "suite/agent/agents/react.agent", "?", "--script", &script, "--config", &config];
    let ran = entail(&args);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let phases: Vec<String> = ran
        .out
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap())
        .filter(|l| l["event"] == "phase")
        .map(|l| format!("{} {}", l["step"], l["phase"].as_str().unwrap()))
        .collect();
    let first = ["1 think", "1 parse", "1 route", "1 invoke", "1 observe", "1 update", "1 check"];
    // A reply that does not decode is asked for again within the step.
    let second = ["2 think", "2 parse", "2 think", "2 parse", "2 route", "2 check"];
    assert_eq!(phases, [&first[..], &second[..]].concat());
}

#[test]
fn wrong_traces_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.jsonl", "{\"event\": \"phase\"}\n");
    write(dir.path(), "b.jsonl", "{");
    write(dir.path(), "c.jsonl", "{\"event\": \"run\", \"version\": 99}\n");
    for (args, said) in [
        (vec!["trace", "a.jsonl"], "is not a trace"),
        (vec!["trace", "b.jsonl"], "line 1: not JSON"),
        (vec!["trace", "c.jsonl"], "version 99"),
        (vec!["trace", "d.jsonl"], "no such file"),
    ] {
        let ran = entail_in(dir.path(), &args);
        assert_eq!(ran.status, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
    }
}

/// Two parts that are not known were taken for equal if the same was said about them.
#[test]
fn parts_that_are_not_known_are_not_equal() {
    let dir = tempfile::tempdir().unwrap();
    let known = write(dir.path(), "known.lam", "\\x. x");
    let part = write(dir.path(), "part.lam", r#"\x. unknown "a function that is not in the file""#);
    let ran = entail(&["check", "--equiv", &known, &known]);
    assert_eq!((ran.status, ran.out.as_str()), (0, "equal: the terms are the same but for names\n"));
    let ran = entail(&["check", "--equiv", &part, &part]);
    assert!(
        ran.status == 1 && ran.out.starts_with("unknown: ") && ran.out.contains("1 part that"),
        "{}",
        ran.out
    );
    let ran = entail(&["check", "--format", "json", "--equiv", &part, &part]);
    assert!(ran.status == 1 && ran.out.contains("\"equal\":null"), "{}", ran.out);
}

/// Stores of `--dist` are those of a run: initial values, capacities and lifetimes were not known to it.
#[test]
fn distributions_know_what_stores_hold() {
    let programs = [
        "mem (recall a) {a: Num = 7}",
        "mem (let _ = remember a 1 in let _ = remember b 2 in [recall a, recall b]) {a: Num, b: Num} capacity 1",
        "mem (let _ = remember a 1 in recall a) {a: Num} ttl 0",
        "mem (let _ = remember a 1 in recall a) {a: Num} ttl 60",
        "mem (let _ = remember a 1 in mem ([recall b, recall a]) {b: Num}) {a: Num}",
    ];
    for program in programs {
        let (ran, all) = (entail(&["eval", program]), entail(&["eval", "--dist", program]));
        let certain = format!("{:<20} {}", 1, ran.out);
        assert_eq!((all.status, all.out.as_str()), (0, certain.as_str()), "{program}: {}", all.err);
    }
    // A course that is too unlikely is left, so an endless program ends.
    let endless = r"(fix[inf] (\s. \n. choose 0.5 n (s (n + 1)))) 0";
    let ran = entail(&["eval", "--dist", endless]);
    assert!(ran.out.lines().all(|l| l.len() < 60) && ran.out.lines().count() == 4_096, "{}", ran.out);
    assert!(ran.out.contains("about 9.095e-13      39"), "{}", ran.out);
}

#[test]
fn distributions_are_exact_and_say_what_is_left() {
    let ran = entail(&["eval", "--dist", "let a = choose 0.5 1 0 in let b = choose 1/3 1 0 in a + b"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert_eq!(ran.out, "0.5                  1\n1/3 = 0.333333       0\n1/6 = 0.166667       2\n");
    let dir = tempfile::tempdir().unwrap();
    let script = write(
        dir.path(),
        "s.json",
        r#"[{"choices": [{"p": "1/3", "reply": "yes"}, {"p": "2/3", "reply": "no"}], "repeat": true}]"#,
    );
    let both = r#"let ask = llm "q" {result: Str} in par [ask "1", ask "2"]"#;
    let ran = entail(&["eval", "--dist", "--script", &script, both]);
    assert!(ran.out.starts_with("4/9 = 0.444444       [\"no\", \"no\"]\n2/9"), "{}{}", ran.out, ran.err);
    let endless = r"fix[inf] (\s. \n. if choose 0.5 true false then n else s (n + 1)) 0";
    let ran = entail(&["eval", "--dist", "--max-worlds", "3", endless]);
    assert_eq!(ran.status, 1, "{}", ran.err);
    assert!(
        ran.out.contains("not followed to the end") && ran.err.contains("lower bound"),
        "{}{}",
        ran.out,
        ran.err
    );
    let wrong = write(dir.path(), "w.json", r#"[{"choices": [{"p": 0.5, "reply": "yes"}]}]"#);
    let ran = entail(&["eval", "--dist", "--script", &wrong, both]);
    assert!(ran.status == 2 && ran.err.contains("add up to 0.5, not 1"), "{}", ran.err);
}

#[test]
fn every_front_end_has_a_notation() {
    for (file, said) in [
        ("examples/triage.agent", "λ"),
        ("examples/llmbda/repair.lam", "fix₅"),
        ("suite/frontends/lambda_yaml/listing1.yaml", "fix₂₀"),
        ("suite/frontends/crewai/crew.yaml", "λ"),
    ] {
        let ran = entail(&["lambda", file]);
        assert_eq!(ran.status, 0, "{file}: {}", ran.err);
        assert!(ran.out.contains(said), "{file}: {}", ran.out);
        let ran = entail(&["lambda", "--ascii", file]);
        // What the program's own texts contain stays.
        assert!(ran.status == 0 && !ran.out.contains(['λ', '≫', '⇒', '₂']), "{file}: {}", ran.out);
        let ran = entail(&["lambda", "--latex", file]);
        let plain = ran.out.replace("\\{", "").replace("\\}", "");
        assert_eq!(plain.matches('{').count(), plain.matches('}').count(), "{file}: {}", ran.out);
        assert!(
            ran.out.contains("\\begin{array}{l}") && ran.out.contains("\\lambda "),
            "{file}: {}",
            ran.out
        );
    }
}

#[test]
fn timeouts_are_retried_only_if_configured() {
    let program = "task look(x: String) -> String { exec \"python3\" \"look.py\" }\n\
                   pipeline p(x: String) -> String { let y = look(x) timeout 5 retries 1; return y; }\n";
    // The first call never answers.
    let script = "import os, time, json\n\
                  if not os.path.exists('seen'):\n    open('seen', 'w').close()\n    time.sleep(600)\n\
                  print(json.dumps('found'))\n";
    let run = |settings: &str| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "p.agent", program);
        write(dir.path(), "look.py", script);
        write(dir.path(), "entail.toml", settings);
        entail_in(dir.path(), &["run", "--format", "json", "p.agent", "bees"])
    };
    let ran = run("");
    assert_eq!(ran.status, 1, "{}{}", ran.out, ran.err);
    assert_eq!(json(&ran)["error"]["code"], "timeout", "{}", ran.out);
    let ran = run("retry_timeouts = true\n");
    assert_eq!(json(&ran)["result"], "found", "{}{}", ran.out, ran.err);
}

#[test]
fn a_workflow_with_named_inputs_is_run_and_not_only_given_them() {
    // Its term was a function of the inputs to a function of a text: nothing ran, and the bound was 0.
    let dir = tempfile::tempdir().unwrap();
    let script = write(dir.path(), "s.json", "[\"Bees at Work\"]");
    let input = "{\"report\": \"bees\"}";
    let ran = entail(&["run", "--script", &script, "examples/composition/headline.yml", input]);
    assert!(ran.status == 0 && ran.out.contains("Bees at Work"), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("1 model call (bound: 1)"), "{}", ran.err);
}

#[test]
fn three_frameworks_are_one_program() {
    let script = "examples/composition/newsletter.script.json";
    let ran = entail(&[
        "run",
        "--format",
        "json",
        "--script",
        script,
        "examples/composition/newsletter.agent",
        "bees",
    ]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert_eq!(json(&ran)["result"]["title"], "What bees see and say");
}

/// The same replies give the same bytes, on however many threads: results and traces.
#[test]
fn a_run_is_the_same_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let program = "examples/writing/blog.agent";
    let ran = |threads: usize, time: usize| {
        let trace = dir.path().join(format!("{threads}-{time}.jsonl"));
        let out = Command::new(env!("CARGO_BIN_EXE_entail"))
            .env("TOKIO_WORKER_THREADS", threads.to_string())
            .args(["run", "--script", "examples/writing/blog.script.json", program, "bees", "--trace"])
            .arg(&trace)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        (out.stdout, std::fs::read(&trace).unwrap())
    };
    let first = ran(1, 0);
    for threads in [1, 2, 8] {
        for time in 1..4 {
            assert!(ran(threads, time) == first, "on {threads} threads");
        }
    }
}

/// `docs/calculus.md` §10, stores: a name has one declaration, also on a server.
#[cfg(feature = "serve")]
#[test]
fn programs_of_a_server_agree_on_the_stores_that_they_share() {
    let dir = tempfile::tempdir().unwrap();
    for (file, pipeline, size) in [("a.agent", "first", 20), ("b.agent", "second", 30)] {
        let program = format!(
            "agent scribe {{ tools: [], prompt: \"You take notes.\", memory: {{ keys: {{ notes: String }}, size: {size} }} }}\n\
             task note(text: String) -> String by agent {{ prompt \"{{text}}\" }}\n\
             pipeline {pipeline}(text: String) -> String {{ let x = note(text) by scribe; return x; }}\n"
        );
        write(dir.path(), file, program);
    }
    write(dir.path(), "entail.toml", "[stores.scribe]\nshared = true\n");
    write(dir.path(), "s.json", r#"["noted"]"#);
    let ran = entail_in(
        dir.path(),
        &["serve", "a.agent", "b.agent", "--script", "s.json", "--listen", "127.0.0.1:0"],
    );
    assert_ne!(ran.status, 0);
    let expected = "the store `scribe` has two declarations, which differ in the capacity: that of `a.agent` and that of `b.agent`";
    assert!(ran.err.contains(expected), "{}", ran.err);
}

/// Runs the tests of a program in a folder of its own.
fn tested(program: &str, settings: &str, more: &[&str]) -> (tempfile::TempDir, Ran) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), program).unwrap();
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    let ran = entail_in(dir.path(), &[&["test", "p.agent"], more].concat());
    (dir, ran)
}

const LEDGER: &str = "tool pay(to: String, amount: Number) -> String writes {\n\
    exec \"sh\" \"-c\" \"echo \\\"$1\\\" >> ledger; echo paid\" \"sh\" \"{to}\"\n}\n\
    tool page(url: String) -> String reads { http GET \"http://127.0.0.1:9/{url}\" }\n\
    tool shout(text: String) -> String pure { builtin \"text.upper\" }\n\
    pipeline order(to: String, amount: Number) -> String { let r = pay(to, amount); return r; }\n\
    pipeline fetch(url: String) -> String { let p = page(url); let r = pay(p, 1); return r; }\n";

#[test]
fn tests_call_no_tool_for_real() {
    let plain = format!("{LEDGER}test \"pays\" {{ let r = order(\"bob\", 3); assert r == \"paid\"; }}\n");
    let (dir, ran) = tested(&plain, "", &[]);
    assert!(
        ran.status == 1 && ran.out.contains("the test calls the tool `pay`, which has no mock"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("mock pay => …;") && ran.out.contains("--live"), "{}", ran.out);
    assert!(!dir.path().join("ledger").exists());
    // Nothing of the program hides that.
    let caught = format!(
        "{LEDGER}test \"pays\" {{ try {{ let r = order(\"bob\", 3); }} catch e {{ assert 1 == 1; }} }}\n"
    );
    let (_, ran) = tested(&caught, "", &[]);
    assert!(ran.status == 1 && ran.out.contains("which has no mock"), "{}", ran.out);
    let (dir, ran) = tested(&plain, "", &["--live"]);
    assert!(ran.status == 0 && dir.path().join("ledger").exists(), "{}{}", ran.out, ran.err);
    // What only computes is carried out.
    let pure = format!(
        "{LEDGER}test \"loud\" {{ let l = shout(\"a\"); assert l == \"A\"; expect call shout(\"a\"); }}\n"
    );
    let (_, ran) = tested(&pure, "", &[]);
    assert_eq!(ran.status, 0, "{}", ran.out);
}

#[test]
fn mocks_answer_and_calls_are_expected() {
    let suite = root().join("suite/agent/test/mocks.agent").display().to_string();
    let ran = entail(&["test", &suite]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let all = format!(
        "{LEDGER}test \"all\" {{\n\
         mock pay(_, 3) => \"three\";\n\
         mock pay(to, amount) => f\"{{to}} got {{amount}}\";\n\
         mock page fails \"the page is gone\";\n\
         let a = order(\"bob\", 3);\n\
         assert a == \"three\";\n\
         let b = order(\"al\", 4);\n\
         assert b == \"al got 4\";\n\
         try {{ let p = fetch(\"x\"); assert 1 == 2; }} catch e {{ assert contains(e, \"the page is gone\"); }}\n\
         expect call pay;\n\
         expect call pay(\"bob\", _);\n\
         expect no call pay(\"bob\", 4);\n\
         expect call page(\"x\");\n\
         }}\n"
    );
    let (dir, ran) = tested(&all, "", &[]);
    assert!(ran.status == 0 && !dir.path().join("ledger").exists(), "{}", ran.out);
    let wrong = |expects: &str, says: &str| {
        let program =
            format!("{LEDGER}test \"t\" {{ mock pay => \"x\"; let a = order(\"bob\", 3); {expects} }}\n");
        let (_, ran) = tested(&program, "", &[]);
        assert!(
            ran.status == 1 && (ran.out.clone() + &ran.err).contains(says),
            "{says}\n{}{}",
            ran.out,
            ran.err
        );
    };
    wrong("expect call page;", "`page` was not called");
    wrong("expect call pay(\"al\", _);", "`pay` was not called with these arguments");
    wrong("expect no call pay;", "`pay` was called");
    wrong("expect refused pay;", "no call of `pay` was refused");
    wrong("mock page => 3;", "error[A050]");
    wrong("mock pay(1, 2) => \"x\";", "error[A091]");
    wrong("mock order => \"x\";", "error[A090]");
    wrong("mock pai => \"x\";", "did you mean `pay`?");
    wrong("if 1 == 1 { mock page => \"x\"; }", "error[A092]");
    // A call that no mock fits is no error that the program may catch.
    let none = format!(
        "{LEDGER}test \"t\" {{ mock pay(\"al\", _) => \"x\"; try {{ let a = order(\"bob\", 3); }} catch e {{ assert 1 == 1; }} }}\n"
    );
    let (_, ran) = tested(&none, "", &[]);
    assert!(ran.status == 1 && ran.out.contains("no mock of `pay` fits the call"), "{}", ran.out);
}

#[test]
fn a_refusal_is_expected() {
    let refused = format!(
        "{LEDGER}test \"refused\" {{\n\
         mock page => \"MALLORY\";\n\
         mock pay => \"paid\";\n\
         try {{ let r = fetch(\"x\"); assert 1 == 2; }} catch e {{ assert contains(e, \"`pay`\"); }}\n\
         expect refused pay;\n\
         expect no call pay;\n\
         }}\n"
    );
    let (_, ran) = tested(&refused, "", &[]);
    assert_eq!(ran.status, 0, "{}", ran.out);
}

/// Of a folder all programs have their tools in the file.
#[test]
fn a_starter_policy_of_a_folder_has_the_tools_of_all_programs() {
    let dir = tempfile::tempdir().unwrap();
    let program = |tool: &str| {
        format!(
            "tool {tool}(to: String) -> String {{ exec \"echo\" \"\\\"x\\\"\" }}\n\
             pipeline p(to: String) -> String {{ let r = {tool}(to); return r; }}\n"
        )
    };
    write(dir.path(), "a.agent", program("pay"));
    write(dir.path(), "b.agent", program("send"));
    write(dir.path(), "notes.yaml", "no: program\n");
    let init = entail_in(dir.path(), &["policy", "init", ".", "--output", "-"]);
    assert!(init.status == 0 && init.out.contains("[tools.pay]"), "{}{}", init.out, init.err);
    assert!(init.out.contains("[tools.send]"), "{}", init.out);
}
