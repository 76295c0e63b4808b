//! `entail check` means it: what can't run as it is set up, or is refused every time, is found before
//! anything is asked.
//!
//! Each case is a program with settings. `check` and `lint` report it, `run` refuses it before its first
//! request, and wrapping the call in `try` or `on_fail` changes neither.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    for name in [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_BASE_URL",
        "ENTAIL_BASE_URL",
        "ENTAIL_MODEL",
        "REDIS_URL",
    ] {
        command.env_remove(name);
    }
    let out = command.args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

/// A program that first calls a tool which leaves a trace in the file `ledger`, then does what is wrong.
struct Case {
    name: &'static str,
    /// The code that `check` reports; empty where the settings can't be read.
    code: &'static str,
    /// Declarations.
    declares: &'static str,
    /// The call.
    call: &'static str,
    settings: &'static str,
    policy: &'static str,
}

const CASE: Case =
    Case { name: "", code: "E001", declares: "", call: "bad(\"x\")", settings: "", policy: "" };

const TOOL: &str = "tool bad(a: String) -> String reads {}\n";
const ASKS: &str =
    "agent a { tools: [], model: \"m\" }\ntask bad(a: String) -> String by agent { prompt \"{a}\" }\n";

fn cases() -> Vec<Case> {
    let handler = |name, settings| Case { name, declares: TOOL, settings, ..CASE };
    let model = |name, settings| Case {
        name,
        code: "E002",
        declares: ASKS,
        call: "bad(\"x\") by a",
        settings,
        ..CASE
    };
    let body = |name, declares| Case { name, declares, ..CASE };
    let flow = |name, declares, call| Case { name, code: "S101", declares, call, ..CASE };
    vec![
        body(
            "an MCP server that the settings lack",
            "tool bad(a: String) -> String reads { mcp \"nowhere\" }\n",
        ),
        body("an unknown built-in tool", "tool bad(a: String) -> String pure { builtin \"text.uper\" }\n"),
        body(
            "a confined tool without its root",
            "tool bad(a: String) -> String reads { builtin \"file.read\" }\n",
        ),
        body(
            "a host that depends on an argument",
            "tool bad(a: String) -> String reads { http GET \"https://{a}/x\" }\n",
        ),
        body(
            "a program that depends on an argument",
            "tool bad(a: String) -> String reads { exec \"{a}\" }\n",
        ),
        handler("a brace that is not closed", "[handlers]\nbad = { exec = [\"echo\", \"{a\"] }\n"),
        handler("a parameter that the tool lacks", "[handlers]\nbad = { exec = [\"echo\", \"{b}\"] }\n"),
        handler("no program", "[handlers]\nbad = { exec = [] }\n"),
        handler("an unknown kind of handler", "[handlers]\nbad = { shell = \"rm\" }\n"),
        handler(
            "two kinds of handler",
            "[handlers]\nbad = { exec = [\"echo\"], builtin = \"text.upper\" }\n",
        ),
        handler("a timeout below zero", "[handlers]\nbad = { exec = [\"echo\"], timeout = -1 }\n"),
        handler("a memory that is no number", "[handlers]\nbad = { exec = [\"echo\"], memory = \"big\" }\n"),
        handler("a file of Python that is not there", "[handlers]\nbad = { python = \"nowhere.py:bad\" }\n"),
        handler("a file of Python without a function", "[handlers]\nbad = { python = \"nowhere.py\" }\n"),
        handler(
            "a key whose variable has no name of a secret",
            "[handlers]\nbad = { http = { url = \"https://example.com/\", key_env = \"HOME\" } }\n",
        ),
        handler(
            "an unknown method",
            "[handlers]\nbad = { http = { method = \"FETCH\", url = \"https://example.com/\" } }\n",
        ),
        handler(
            "a header with a hole for nothing",
            "[handlers]\nbad = { http = { url = \"https://example.com/\", headers = { x-y = \"{z}\" } } }\n",
        ),
        handler(
            "a server with neither command nor url",
            "[handlers]\nbad = { mcp = [\"s\", \"t\"] }\n[mcp.s]\n",
        ),
        model("an unknown provider", "[models.m]\nprovider = \"telepathy\"\n"),
        model(
            "a price below zero",
            "[models.m]\nbase_url = \"http://127.0.0.1:9\"\nprice = { input = -1, output = 1 }\n",
        ),
        model("an address that is none", "[models.m]\nbase_url = \"ftp://127.0.0.1\"\n"),
        model("a script that is not there", "[models.m]\nprovider = \"scripted\"\nfile = \"nowhere.json\"\n"),
        model(
            "a fallback that can't be used",
            "[models.m]\nbase_url = \"http://127.0.0.1:9\"\nfallback = [\"n\"]\n[models.n]\nprovider = \"telepathy\"\n",
        ),
        Case {
            name: "a backend that is not configured",
            code: "E003",
            declares: "agent a { tools: [], model: \"m\", memory: { store: \"cassandra\", keys: { notes: String } } }\n\
                task bad(a: String) -> String by agent { prompt \"{a}\" }\n",
            call: "bad(\"x\") by a",
            settings: "[models.m]\nbase_url = \"http://127.0.0.1:9\"\n",
            policy: "",
        },
        Case {
            name: "a policy that does not exist",
            code: "A086",
            declares: "tool bad(a: String) -> String writes policy nobody { exec \"echo\" }\n",
            ..CASE
        },
        handler("a setting of the wrong type", "retry_timeouts = \"yes\"\n"),
        flow(
            "a refused argument",
            "tool page(u: String) -> String reads { exec \"echo\" \"{u}\" }\n\
             tool bad(a: String) -> String writes { exec \"echo\" \"{a}\" }\n\
             pipeline pay(a: String) -> String { let p = page(a); let r = bad(p); return r; }\n",
            "pay(\"x\")",
        ),
        flow(
            "a secret argument",
            "tool vault() -> String pure secret { exec \"echo\" \"{{}}\" }\n\
             tool bad(a: String) -> String writes { exec \"echo\" \"{a}\" }\n\
             pipeline pay(a: String) -> String { let p = vault(); let r = bad(p); return r; }\n",
            "pay(\"x\")",
        ),
        Case {
            name: "a clearance that the conversation exceeds",
            code: "S101",
            declares: "tool vault() -> String pure secret { exec \"echo\" \"{{}}\" }\n\
                agent a { tools: [], model: \"m\" }\n\
                task ask(a: String) -> String by agent { prompt \"{a}\" }\n\
                pipeline pay(a: String) -> String { let p = vault(); let r = ask(p) by a; return r; }\n",
            call: "pay(\"x\")",
            settings: "policy = \"policy.toml\"\n[models.m]\nbase_url = \"http://127.0.0.1:9\"\n",
            policy: "[models.\"*\"]\nclearance = \"untrusted\"\n",
        },
    ]
}

/// The program of a case, whose call stands as it is, in a `try` or behind `on_fail`.
fn program(case: &Case, how: &str) -> String {
    let call = case.call;
    let body = match how {
        "try" => format!("try {{ let x = {call}; return x; }} catch e {{ return e; }}"),
        "on_fail" => format!("let x = {call} on_fail use \"caught\"; return x;"),
        _ => format!("let x = {call}; return x;"),
    };
    format!(
        "tool note() -> String writes {{ exec \"sh\" \"-c\" \"echo called >> ledger; echo done\" }}\n{}\
         pipeline main() -> String {{ let n = note(); {body} }}\n",
        case.declares
    )
}

fn folder(case: &Case, how: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("p.agent", &program(case, how));
    write("entail.toml", case.settings);
    if !case.policy.is_empty() {
        write("policy.toml", case.policy);
    }
    dir
}

#[test]
fn preflight_errors_precede_requests_and_are_uncatchable() {
    let cases = cases();
    assert!(cases.len() >= 20);
    for case in &cases {
        for how in ["plain", "try", "on_fail"] {
            let dir = folder(case, how);
            let at = dir.path();
            let shown = |ran: &(i32, String, String)| format!("{}, {how}: {ran:?}", case.name);
            let is_readable = !case.settings.starts_with("retry_timeouts");
            let checked = entail(at, &["check", "p.agent"]);
            assert_eq!(checked.0, 1, "{}", shown(&checked));
            if is_readable {
                let said = format!("{}{}", checked.1, checked.2);
                assert!(said.contains(&format!("error[{}]", case.code)), "{}", shown(&checked));
                let linted = entail(at, &["lint", "p.agent"]);
                assert_eq!(linted.0, 1, "{}", shown(&linted));
                assert!(linted.1.contains(&format!("error[{}]", case.code)), "{}", shown(&linted));
            }
            let ran = entail(at, &["run", "p.agent", "--pipeline", "main"]);
            assert!(ran.0 == 1 || ran.0 == 2, "{}", shown(&ran));
            assert!(!ran.1.contains("caught"), "{}", shown(&ran));
            assert!(!at.join("ledger").exists(), "a tool was called: {}", shown(&ran));
            let traced = entail(at, &["trace", "p.agent", "--pipeline", "main"]);
            assert!(traced.0 != 0 && !at.join("ledger").exists(), "{}", shown(&traced));
        }
    }
}

#[test]
fn the_program_around_the_cases_runs() {
    let case = Case { declares: "tool bad(a: String) -> String pure { builtin \"text.upper\" }\n", ..CASE };
    let dir = folder(&case, "plain");
    let checked = entail(dir.path(), &["check", "p.agent"]);
    assert_eq!(checked.0, 0, "{checked:?}");
    let ran = entail(dir.path(), &["run", "p.agent"]);
    assert!(ran.0 == 0 && ran.1.contains("X") && dir.path().join("ledger").exists(), "{ran:?}");
}

#[test]
fn an_empty_body_is_left_to_the_host() {
    let two = "tool a(x: String) -> String reads {}\ntool b(x: String) -> String reads {}\n\
        pipeline main(x: String) -> String { let y = a(x); let z = b(y); return z; }\n";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), two).unwrap();
    let checked = entail(dir.path(), &["check", "p.agent"]);
    assert_eq!(checked.0, 0, "{checked:?}");
    assert!(checked.1.contains("2 tools are left to the host: `a`, `b`"), "{checked:?}");
    let object = entail(dir.path(), &["check", "p.agent", "--format", "json"]);
    let object: Value = serde_json::from_str(object.1.trim()).unwrap();
    assert_eq!(object["host"], serde_json::json!(["a", "b"]));
    for args in [
        &["run", "p.agent", "x"][..],
        &["trace", "p.agent", "x"],
        &["serve", "p.agent", "--listen", "127.0.0.1:0"],
    ] {
        let ran = entail(dir.path(), args);
        assert_eq!(ran.0, 1, "{ran:?}");
        assert!(ran.2.contains("error[E001]: no handler for tool `a`"), "{ran:?}");
        assert!(ran.2.contains("[handlers]"), "{ran:?}");
    }
}

#[test]
fn a_missing_key_is_no_error_of_check_and_one_of_run() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("p.agent"),
        format!("{ASKS}pipeline main() -> String {{ let x = bad(\"x\") by a; return x; }}\n"),
    )
    .unwrap();
    std::fs::write(dir.path().join("entail.toml"), "[models.m]\nkey_env = \"SOME_KEY\"\n").unwrap();
    let checked = entail(dir.path(), &["check", "p.agent"]);
    assert!(checked.0 == 0 && checked.2.contains("`SOME_KEY` is not set"), "{checked:?}");
    let ran = entail(dir.path(), &["run", "p.agent"]);
    assert!(ran.0 == 2 && ran.2.contains("`SOME_KEY` is not set"), "{ran:?}");
    // With a key there is something else wrong with it.
    let more = "[models.m]\nkey_env = \"SOME_KEY\"\nprice = { input = -1, output = 1 }\n";
    std::fs::write(dir.path().join("entail.toml"), more).unwrap();
    let checked = entail(dir.path(), &["check", "p.agent"]);
    assert!(checked.0 == 1 && checked.1.contains("the price of model `m`"), "{checked:?}");
}

/// `check` looks at every declaration, used or not. `run` needs only those that it uses.
#[test]
fn tools_that_no_pipeline_uses_are_checked_too() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let used = "tool ok(a: String) -> String pure { builtin \"text.upper\" }\n";
    let main = "pipeline main() -> String { let x = ok(\"x\"); return x; }\n";
    let wrong = "tool never(a: String) -> String pure { builtin \"text.uper\" }\n";
    std::fs::write(at.join("p.agent"), format!("{used}{wrong}{main}")).unwrap();
    let unused = "tool never(a: Str) -> Str by {builtin: \"text.uper\"}\n1\n";
    std::fs::write(at.join("p.lam"), unused).unwrap();
    for file in ["p.agent", "p.lam"] {
        let checked = entail(at, &["check", file]);
        assert!(checked.0 == 1 && checked.1.contains("error[E001]"), "{checked:?}");
        assert!(checked.1.contains("text.uper"), "{checked:?}");
        let linted = entail(at, &["lint", file]);
        assert!(linted.0 == 1 && linted.1.contains("error[E001]"), "{linted:?}");
        let ran = entail(at, &["run", file]);
        assert_eq!(ran.0, 0, "{ran:?}");
    }
    // An empty body and a missing program are needs of a run, and nothing runs these.
    let left = "tool host(a: String) -> String reads {}\n\
        tool gone(a: String) -> String reads { exec \"no-such-program-anywhere\" }\n";
    std::fs::write(at.join("q.agent"), format!("{used}{left}{main}")).unwrap();
    let checked = entail(at, &["check", "q.agent"]);
    assert!(checked.0 == 0 && !checked.1.contains("host") && !checked.2.contains("no-such"), "{checked:?}");
}

/// Approval vouches for what is untrusted, and lets nothing secret out.
#[test]
fn entries_that_no_program_uses_are_checked_too() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), "pipeline main() -> Number { return 1; }\n").unwrap();
    for (settings, expected) in [
        ("[models.unused]\nbase_url = \"not an address\"\n", "the base URL of the model is not a URL"),
        ("[models.unused]\nprovider = \"nonsense\"\n", "unknown provider `nonsense`"),
        ("[mcp.unused]\nurl = \"ftp://x\"\n", "`url` has the scheme `ftp`"),
    ] {
        std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
        let (status, out, err) = entail(dir.path(), &["check", "p.agent"]);
        assert_eq!(status, 1, "{err}");
        assert!(out.contains("error[E004]") && out.contains(expected), "{out}");
    }
}

#[test]
fn approval_is_advised_only_where_it_helps() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let program = "tool page(u: String) -> String reads { exec \"echo\" \"{u}\" }\n\
        tool vault() -> String reads secret { exec \"echo\" \"4711\" }\n\
        tool send(a: String) -> String writes { exec \"echo\" \"{a}\" }\n\
        pipeline untrusted() -> String { let a = page(\"u\"); let r = send(a); return r; }\n\
        pipeline both() -> String { let a = page(\"u\"); let b = vault(); let r = send(a + b); return r; }\n";
    std::fs::write(at.join("p.agent"), program).unwrap();
    let policy = "[tools.send]\neffect = \"write\"\n";
    let advice = |pipeline: &str, policy: &str| {
        std::fs::write(at.join("policy.toml"), policy).unwrap();
        let ran = entail(
            at,
            &["run", "p.agent", "--pipeline", pipeline, "--run-refused", "--policy", "policy.toml"],
        );
        assert!(ran.0 == 1 && ran.2.contains("error[flow]"), "{ran:?}");
        ran.2.contains("approve = true")
    };
    assert!(advice("untrusted", policy));
    assert!(!advice("both", policy));
    // What is still refused of a tool that has it is what is secret.
    assert!(!advice("both", &format!("{policy}approve = true\n")));
}

/// A variable is missing on this machine, and not the settings wrong.
#[test]
fn a_store_whose_variable_is_not_set_is_noted_by_check_and_refused_by_run() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let uses = "tool note() -> String writes { exec \"sh\" \"-c\" \"echo called >> ledger; echo done\" }\n\
        agent a { tools: [], model: \"m\", memory: { store: \"redis\", keys: { plans: String } } }\n\
        task ask(q: String) -> String by agent { prompt \"{q}\" }\n\
        pipeline main() -> String { let n = note(); let x = ask(\"x\") by a; return x; }\n";
    std::fs::write(at.join("p.agent"), uses).unwrap();
    std::fs::write(at.join("other.agent"), "pipeline main() -> String { return \"x\"; }\n").unwrap();
    let settings = |name: &str| {
        format!("[models.m]\nbase_url = \"http://127.0.0.1:9\"\n[stores.{name}]\nredis_env = \"PLANS_AT\"\n")
    };
    std::fs::write(at.join("entail.toml"), settings("a")).unwrap();
    let checked = entail(at, &["check", "p.agent"]);
    assert!(checked.0 == 0 && checked.2.contains("`PLANS_AT` is not set"), "{checked:?}");
    let ran = entail(at, &["run", "p.agent"]);
    assert!(
        ran.0 == 1 && ran.2.contains("error[E003]") && ran.2.contains("`PLANS_AT` is not set"),
        "{ran:?}"
    );
    assert!(ran.2.contains("redis://localhost:6379") && !at.join("ledger").exists(), "{ran:?}");
    // Programs that do not use it are not concerned.
    let ran = entail(at, &["run", "other.agent"]);
    assert_eq!(ran.0, 0, "{ran:?}");
}

/// A tool does not gain the rights that the file of its program gives, and its failure says so.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_would_gain_rights_says_that_it_does_not() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let program = |name: &str| {
        format!(
            "tool t() -> String reads {{ exec \"./{name}\" }}\n\
             pipeline main() -> String {{ let x = t(); return x; }}\n"
        )
    };
    for (name, mode) in [("plain", 0o755), ("suid", 0o4755)] {
        std::fs::copy("/bin/false", at.join(name)).unwrap();
        std::fs::set_permissions(at.join(name), PermissionsExt::from_mode(mode)).unwrap();
        std::fs::write(at.join("p.agent"), program(name)).unwrap();
        let ran = entail(at, &["run", "p.agent"]);
        assert!(ran.0 == 1 && ran.2.contains("failed with exit status: 1"), "{ran:?}");
        assert_eq!(ran.2.contains("a tool gains no rights by setuid"), name == "suid", "{ran:?}");
    }
}

/// A program that this machine lacks is looked for without running anything.
#[test]
fn a_missing_program_is_noted_by_check_and_refused_by_run() {
    let cases = [
        ("bad = { exec = [\"no-such-program-anywhere\"] }", "program `no-such-program-anywhere` not found"),
        ("bad = { exec = [\"./plain.txt\", \"{a}\"] }", "`./plain.txt` is not executable"),
        (
            "bad = { exec = [\"./orphan\"] }",
            "needs the interpreter `/no/such/interpreter`, which is not there",
        ),
        ("bad = { python = \"t.py:bad\" }\n[python]\ninterpreter = \"bin/nothing\"", "bin/nothing`"),
        ("bad = { builtin = \"file.read\", root = \"nowhere\" }", "its root `nowhere` is not a directory"),
        (
            "bad = { mcp = \"s\" }\n[mcp.s]\ncommand = [\"no-such-server\"]",
            "program `no-such-server` not found",
        ),
    ];
    for (handler, want) in cases {
        let settings: &str = &format!("[handlers]\n{handler}\n");
        for how in ["plain", "try", "on_fail"] {
            let case = Case { declares: TOOL, ..CASE };
            let dir = folder(&case, how);
            let at = dir.path();
            std::fs::write(at.join("entail.toml"), settings).unwrap();
            std::fs::write(at.join("t.py"), "def bad(a): return a\n").unwrap();
            std::fs::write(at.join("plain.txt"), "no program\n").unwrap();
            std::fs::write(at.join("orphan"), "#!/no/such/interpreter\n").unwrap();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(at.join("orphan"), PermissionsExt::from_mode(0o755)).unwrap();
            }
            let checked = entail(at, &["check", "p.agent"]);
            assert!(checked.0 == 0 && checked.2.contains(want), "{want}: {checked:?}");
            let ran = entail(at, &["run", "p.agent", "--pipeline", "main"]);
            assert!(ran.0 == 1 && ran.2.contains("error[E001]") && ran.2.contains(want), "{want}: {ran:?}");
            assert!(!at.join("ledger").exists(), "a tool was called: {ran:?}");
        }
    }
}

/// A mistake that only the call can find out about ends the run, whatever is around the call.
#[test]
fn nothing_catches_a_mistake_that_only_the_call_finds() {
    let server = "tool shout(a: String) -> String pure { builtin \"text.upper\" }\n\
        pipeline other(a: String) -> String { let x = shout(a); return x; }\n";
    let mcp = format!(
        "[handlers]\nbad = {{ mcp = \"s\" }}\n[mcp.s]\ncommand = [{:?}, \"mcp\", \"server.agent\"]\n",
        env!("CARGO_BIN_EXE_entail")
    );
    let cases = [
        (mcp.as_str(), "the server has no such tool"),
        // The first tool removes it.
        ("[handlers]\nbad = { exec = [\"./fleeting\"] }\n", "program `./fleeting` not found"),
    ];
    for (settings, want) in cases {
        for how in ["plain", "try", "on_fail"] {
            let case = Case { declares: TOOL, ..CASE };
            let dir = folder(&case, how);
            let at = dir.path();
            let text =
                program(&case, how).replace("echo called >> ledger", "echo called >> ledger; rm fleeting");
            std::fs::write(at.join("p.agent"), text).unwrap();
            std::fs::write(at.join("entail.toml"), settings).unwrap();
            std::fs::write(at.join("server.agent"), server).unwrap();
            std::fs::write(at.join("fleeting"), "#!/bin/sh\n").unwrap();
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(at.join("fleeting"), PermissionsExt::from_mode(0o755)).unwrap();
            }
            let ran = entail(at, &["run", "p.agent", "--pipeline", "main"]);
            assert!(ran.0 == 1 && ran.2.contains("error[configuration]"), "{want}, {how}: {ran:?}");
            assert!(ran.2.contains("the tool `bad` can't be called: ") && ran.2.contains(want), "{ran:?}");
            assert!(!ran.1.contains("caught") && at.join("ledger").exists(), "{want}, {how}: {ran:?}");
        }
    }
}

#[test]
fn a_call_that_may_be_refused_is_no_error() {
    let program = "tool page(u: String) -> String reads { exec \"echo\" \"{u}\" }\n\
        tool send(a: String) -> String writes { exec \"echo\" \"{a}\" }\n\
        pipeline main(u: String, b: Bool) -> String {\n\
            let x = \"fixed\";\n\
            if b { let x = page(u); }\n\
            let r = send(x);\n\
            return r;\n\
        }\n";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), program).unwrap();
    let checked = entail(dir.path(), &["check", "p.agent"]);
    assert_eq!(checked.0, 0, "{checked:?}");
    let no = entail(dir.path(), &["run", "p.agent", r#"{"u": "u", "b": false}"#]);
    assert_eq!(no.0, 0, "{no:?}");
}

#[test]
fn a_refused_program_runs_up_to_the_refusal_if_that_is_wanted() {
    let case = cases().into_iter().find(|c| c.name == "a refused argument").unwrap();
    let dir = folder(&case, "plain");
    let ran = entail(dir.path(), &["run", "p.agent", "--pipeline", "main", "--run-refused"]);
    assert!(ran.0 == 1 && ran.2.contains("error[flow]"), "{ran:?}");
    assert!(dir.path().join("ledger").exists());
}

#[test]
fn an_unknown_tool_of_a_configuration_is_no_mistake_of_its_author() {
    let desk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policies/desk.yml");
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/policies/desk.policy.toml");
    let dir = tempfile::tempdir().unwrap();
    let checked = entail(dir.path(), &["check", desk]);
    assert!(checked.0 == 0 && checked.1.contains("entail policy init"), "{checked:?}");
    // Whoever says what the tools do is told.
    let checked = entail(dir.path(), &["check", desk, "--policy", policy]);
    assert!(checked.0 == 1 && checked.1.contains("error[S101]"), "{checked:?}");
}
