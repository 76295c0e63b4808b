//! Models behind HTTP as the command line uses them: through a proxy, and with an endpoint that tells the key
//! to everybody.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";

/// Answers every request with this text; gives the heads of the requests.
fn server(answer: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = seen.clone();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            loop {
                let n = stream.read(&mut buffer).unwrap_or(0);
                bytes.extend_from_slice(&buffer[..n]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    if n == 0 { break } else { continue }
                };
                let length = head.to_lowercase();
                let length = length
                    .lines()
                    .find_map(|l| l.strip_prefix("content-length: "))
                    .unwrap_or("0")
                    .to_string();
                if n == 0 || body.len() >= length.trim().parse::<usize>().unwrap() {
                    heads.lock().unwrap().push(head.to_string());
                    break;
                }
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                answer.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes()));
        }
    });
    (address, seen)
}

type Answer = fn(&str) -> String;

/// The protocols: the name of the provider, the path that is asked, an answer of this text.
const PROVIDERS: [(&str, &str, Answer); 3] = [
    ("openai", "chat/completions", completion),
    ("openai-responses", "responses", response),
    ("anthropic", "messages", message),
];

fn completion(text: &str) -> String {
    format!(
        r#"{{"choices": [{{"index": 0, "message": {{"role": "assistant", "content": "{text}"}}, "finish_reason": "stop"}}], "usage": {{"prompt_tokens": 1, "completion_tokens": 1}}}}"#
    )
}

fn response(text: &str) -> String {
    format!(
        r#"{{"status": "completed", "output": [{{"type": "message", "role": "assistant", "content": [{{"type": "output_text", "text": "{text}"}}]}}], "usage": {{"input_tokens": 1, "output_tokens": 1}}}}"#
    )
}

fn message(text: &str) -> String {
    format!(
        r#"{{"type": "message", "role": "assistant", "content": [{{"type": "text", "text": "{text}"}}], "stop_reason": "end_turn", "usage": {{"input_tokens": 1, "output_tokens": 1}}}}"#
    )
}

fn run(dir: &Path, env: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    for name in [
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ENTAIL_API_KEY",
        "ENTAIL_BASE_URL",
        "ENTAIL_MODEL",
        "NO_PROXY",
        "no_proxy",
        "HTTP_PROXY",
        "http_proxy",
    ] {
        command.env_remove(name);
    }
    command.envs(env.iter().copied()).args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

fn folder(base: &str, provider: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let settings = format!(
        "model = \"m\"\n[models.m]\nprovider = \"{provider}\"\nbase_url = \"{base}\"\nkey_env = \"M_KEY\"\nretries = 0\n"
    );
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    std::fs::write(dir.path().join("p.lam"), "llm \"\" {} \"hello\"\n").unwrap();
    dir
}

#[test]
fn a_proxy_of_the_environment_is_used() {
    for (provider, path, answer) in PROVIDERS {
        let (proxy, seen) = server(answer("by way of the proxy"));
        let dir = folder("http://models.example/v1", provider);
        let proxy = format!("http://{proxy}");
        let env = [("M_KEY", KEY), ("http_proxy", &*proxy), ("HTTP_PROXY", &*proxy)];
        let out = run(dir.path(), &env, &["run", "p.lam"]);
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("by way of the proxy"), "{provider}: {said}");
        let head = seen.lock().unwrap()[0].clone();
        let want = format!("POST http://models.example/v1/{path} HTTP/1.1");
        assert!(head.starts_with(&want), "{provider}: {head}");
    }
}

#[test]
fn a_proxy_that_is_not_there_is_named_without_its_password() {
    let dir = folder("http://models.example/v1", "openai");
    let env = [("M_KEY", KEY), ("HTTP_PROXY", "http://me:secret-of-the-proxy@127.0.0.1:1")];
    let out = run(dir.path(), &env, &["run", "p.lam"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        said.contains("no connection") && said.contains("and the proxy that `HTTP_PROXY` names"),
        "{said}"
    );
    assert!(!said.contains("secret-of-the-proxy"), "{said}");
}

/// Everything that is written in a directory.
fn written(dir: &Path, out: &mut Vec<u8>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => written(&path, out),
            path => out.extend(std::fs::read(path).unwrap()),
        }
    }
}

#[test]
fn a_key_that_the_endpoint_tells_is_in_no_output_journal_trace_or_log() {
    let echo = format!("your key is {KEY}, or {}", KEY.replace('p', "\\u0070"));
    let error = format!("{{\"error\": {{\"message\": \"{echo}\"}}}}");
    for (provider, _, answer) in PROVIDERS {
        for answer in [answer(&echo), error.clone(), echo.clone()] {
            let (endpoint, seen) = server(answer);
            let dir = folder(&format!("http://{endpoint}/v1"), provider);
            for extra in [&["--watch"][..], &["--log", "json"], &["-v"], &["--format", "json"]] {
                let args = [&["run", "p.lam", "--journal", "j", "--trace", "t.jsonl"], extra].concat();
                let out = run(dir.path(), &[("M_KEY", KEY)], &args);
                let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
                assert!(said.contains("[redacted]"), "{provider}: {said}");
                let mut all = said.into_bytes();
                written(dir.path(), &mut all);
                assert!(!String::from_utf8_lossy(&all).contains("planted"), "{provider} {extra:?}");
            }
            assert!(seen.lock().unwrap()[0].contains(KEY), "{provider}");
        }
    }
}

/// Two models at one endpoint, of which only `m` may see secrets, and a program that tells one.
fn with_policy(endpoint: &str, models: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let entry = |name: &str| format!("[models.{name}]\nbase_url = \"http://{endpoint}/v1\"\nretries = 0\n");
    let settings = format!("{models}\n{}{}", entry("m"), entry("other"));
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    let policy = "[models.\"*\"]\nclearance = \"untrusted\"\n[models.m]\nclearance = \"any\"\n";
    std::fs::write(dir.path().join("policy.toml"), policy).unwrap();
    std::fs::write(dir.path().join("p.lam"), "llm \"\" {} ([\"S\"] : \"4711\")\n").unwrap();
    dir
}

#[test]
fn a_model_that_the_settings_or_the_command_line_choose_is_held_to_its_clearance() {
    let (endpoint, seen) = server(completion("ok"));
    let dir = with_policy(&endpoint, "model = \"other\"");
    let policy = ["--policy", "policy.toml"];
    for args in
        [&["run", "p.lam", "--run-refused"][..], &["run", "p.lam", "--run-refused", "--model", "other"]]
    {
        let out = run(dir.path(), &[], &[args, &policy].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert!(said.contains("but the model `other` may see [\"U\"] at most"), "{said}");
        assert!(said.contains("under `[models.other]` of a policy"), "{said}");
    }
    let out = run(dir.path(), &[], &[&["check", "p.lam", "--show", "flow"][..], &policy].concat());
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("the model: never allowed"), "{said}");
    assert!(seen.lock().unwrap().is_empty());
    // The cleared one of a chain answers, and `check` says which one is not asked.
    let dir = with_policy(&endpoint, "model = [\"other\", \"m\"]");
    let out = run(dir.path(), &[], &[&["run", "p.lam"][..], &policy].concat());
    assert_eq!(String::from_utf8_lossy(&out.stdout), "\"ok\"\n");
    assert_eq!(seen.lock().unwrap().len(), 1);
    let out = run(dir.path(), &[], &[&["check", "p.lam", "--show", "flow"][..], &policy].concat());
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("the model: always allowed"), "{said}");
    assert!(
        said.contains("`other` of its chain is asked only with what is labeled [\"U\"] at most"),
        "{said}"
    );
}

#[test]
fn unpriced_model_has_unknown_cost() {
    let (endpoint, _) = server(completion("ok"));
    let dir = folder(&format!("http://{endpoint}/v1"), "openai");
    let out = run(dir.path(), &[("M_KEY", KEY)], &["run", "p.lam"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("price unknown: `m`") && !said.contains("$0"), "{said}");
    let out = run(dir.path(), &[("M_KEY", KEY)], &["run", "p.lam", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["usage"]["usd"], serde_json::Value::Null);
    assert_eq!(json["usage"]["unpriced"], serde_json::json!(["m"]));
    let cost = |dir: &Path, more: &[&str]| {
        let out = run(dir, &[], &[&["cost", "p.lam", "--format", "json"], more].concat());
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    assert_eq!(cost(dir.path(), &[])["usd"]["most"], serde_json::Value::Null);
    let text = run(dir.path(), &[], &["cost", "p.lam"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("price unknown") && !text.contains("$0"), "{text}");
    // With the price of the settings it is known, and `--prices` comes before them.
    std::fs::write(dir.path().join("p.lam"), "llm \"\" {max_tokens: 1000} \"hello\"\n").unwrap();
    let settings = std::fs::read_to_string(dir.path().join("entail.toml")).unwrap();
    std::fs::write(dir.path().join("entail.toml"), settings + "price = { input = 0, output = 2 }\n").unwrap();
    assert_eq!(cost(dir.path(), &[])["usd"]["most"], 0.002);
    std::fs::write(dir.path().join("prices.toml"), "[models.m]\ninput = 0\noutput = 5\n").unwrap();
    assert_eq!(cost(dir.path(), &["--prices", "prices.toml"])["usd"]["most"], 0.005);
}

/// Prices, with where they are from; a new list counts for the list, for bounds and for what runs cost.
#[test]
fn a_list_of_prices_is_shown_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("entail.toml"),
        "[models.fast]\nmodel = \"gpt-4o-mini\"\n[models.near]\nbase_url = \"http://127.0.0.1:9\"\n\
         [models.own]\nprovider = \"ollama\"\n[models.dear]\nprice = { input = 0.5, output = 2 }\n",
    )
    .unwrap();
    let shown = |names: &[&str]| {
        let out = run(dir.path(), &[], &[&["prices", "--format", "json"], names].concat());
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    let all = shown(&[
        "fast",
        "openai/gpt-4o-2024-08-06",
        "near",
        "own",
        "dear",
        "nobody-knows",
        "claude-opus-4-6",
    ]);
    assert_eq!(all["list"]["origin"], "built in");
    let models = all["models"].as_array().unwrap();
    let kinds: Vec<&str> = models.iter().map(|m| m["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["list", "list", "unknown", "free", "settings", "unknown", "list"]);
    assert_eq!((&models[0]["as"], models[0]["input"].as_f64()), (&"gpt-4o-mini".into(), Some(0.15)));
    assert_eq!(models[1]["as"], "gpt-4o");
    assert!(models[2]["input"].is_null() && models[5]["output"].is_null(), "unknown is not 0: {all}");
    assert_eq!((models[3]["output"].as_f64(), models[4]["input"].as_f64()), (Some(0.0), Some(0.5)));
    assert_eq!((&models[6]["date"], models[6]["cached"].as_f64()), (&"2026-11-22".into(), Some(0.5)));
    assert!(models[6]["source"].as_str().unwrap().starts_with("https://"), "{all}");
    let text = run(dir.path(), &[], &["prices", "fast", "nobody-knows"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("fast (as gpt-4o-mini)  0.15") && text.contains("nobody-knows           unknown"),
        "{text}"
    );

    // A list with a mistake says where, and changes nothing.
    let file = dir.path().join("new.toml");
    std::fs::write(&file, "date = \"2026-11-31\"\n").unwrap();
    let out = run(dir.path(), &[], &["prices", "update", "new.toml"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(
        said.contains("new.toml:1:8: `date` is not a date") && said.contains("a day that exists"),
        "{said}"
    );
    assert!(!dir.path().join("entail.prices.toml").exists());

    std::fs::write(
        &file,
        "date = \"2026-11-27\"\nsource = \"our contract\"\n[models.\"gpt-4o-mini\"]\ninput = 7\noutput = 2000\n",
    )
    .unwrap();
    let out = run(dir.path(), &[], &["prices", "update", "new.toml"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("without a price from now on") && said.contains("claude-opus-4-6"), "{said}");
    let all = shown(&["fast", "gpt-4o"]);
    assert!(all["list"]["origin"].as_str().unwrap().ends_with("entail.prices.toml"), "{all}");
    assert_eq!(
        (all["models"][0]["input"].as_f64(), &all["models"][0]["date"]),
        (Some(7.0), &"2026-11-27".into())
    );
    assert_eq!(all["models"][1]["kind"], "unknown");
    // Bounds use it.
    std::fs::write(
        dir.path().join("p.lam"),
        "llm \"\" {model: \"gpt-4o-mini\", max_tokens: 1000} \"hello\"\n",
    )
    .unwrap();
    let out = run(dir.path(), &[], &["cost", "p.lam", "--format", "json"]);
    let cost: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(cost["unpriced"], serde_json::json!([]), "{cost}");
    let text = run(dir.path(), &[], &["cost", "p.lam", "--explain"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains('$'), "{}", String::from_utf8_lossy(&text.stdout));
    // A list that became wrong is an error of every command.
    std::fs::write(dir.path().join("entail.prices.toml"), "[models.m]\ninput = -1\n").unwrap();
    let out = run(dir.path(), &[], &["cost", "p.lam"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("entail.prices.toml:2:9: `models.\"m\".input` is out of range"), "{said}");
}
