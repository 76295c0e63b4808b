//! Adversarial plans of `suite/plans/adversarial` through the command line, each in two worlds: the calls
//! that an observer sees, the output and the exit status must not tell which world it was.
//!
//! The comments at the top of a plan are those that `crates/plan/tests/it/adversarial.rs` reads.
#![cfg(unix)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

const TOOLS: &str = r#"
tool read() -> Any reads untrusted { exec "sh" "read.sh" }
tool vault() -> Any reads untrusted { exec "sh" "vault.sh" }
tool known() -> Any reads untrusted { exec "sh" "known.sh" }
tool post(x: Option[Any]) -> Any writes { exec "sh" "-c" "cat >> seen; echo >> seen; echo null" }
tool keep(x: Option[Any]) -> Any writes { exec "sh" "-c" "cat > /dev/null; echo null" }
tool note(x: Option[Any]) -> Any writes { exec "sh" "-c" "cat > /dev/null; echo null" }
tool pay(to: String, n: Number, text: Option[String]) -> Any writes { exec "sh" "-c" "cat >> paid; echo >> paid; echo null" }
tool few(x: Option[Any]) -> Any writes { exec "sh" "-c" "cat > /dev/null; echo null" }
tool sign(x: Option[Any]) -> Any writes { exec "sh" "-c" "cat > /dev/null; echo null" }
"#;

const POLICY: &str = r#"
[tools.read]
effect = "read"
control = "any"
[tools.vault]
effect = "read"
control = "any"
result = "trusted secret"
[tools.known]
effect = "read"
control = "any"
result = "trusted"
[tools.post]
effect = "write"
result = "trusted"
[tools.keep]
effect = "write"
control = "secret"
arguments = "secret"
result = "trusted secret"
[tools.note]
effect = "write"
control = "any"
arguments = "any"
result = "any"
[tools.pay]
effect = "write"
control = "untrusted"
bounds = { text = "untrusted" }
[tools.few]
effect = "write"
control = "untrusted"
arguments = "untrusted"
at_most = 2
[tools.sign]
effect = "write"
result = "trusted"
approve = "if-refused"
"#;

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|l| l.strip_prefix(&format!("# {name}:")).map(str::trim))
}

/// Public part of a run.
#[derive(Debug)]
struct Seen {
    status: Option<i32>,
    output: String,
    calls: String,
    /// The payments, of which untrusted data may decide whether they happen.
    paid: String,
}

/// Runs a plan in a world; `None` if a world of the command line can't be that.
fn run(text: &str, world: &str) -> Option<Seen> {
    let answers: Value = serde_json::from_str(field(text, world)?).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let none = Value::Null;
    for tool in ["read", "vault", "known"] {
        let answer = answers.get(tool).unwrap_or(&none);
        if answer.get("each").is_some() {
            return None;
        }
        if answer.get("late").is_some() {
            write(&format!("{tool}.sh"), "exec sleep 60\n");
            let handler = format!("[handlers]\n{tool} = {{ exec = [\"sh\", \"{tool}.sh\"], timeout = 1 }}\n");
            write("entail.toml", &handler);
            continue;
        }
        match answer.get("error").and_then(Value::as_str) {
            Some(why) => write(&format!("{tool}.sh"), &format!("echo '{why}' >&2\nexit 1\n")),
            None => write(&format!("{tool}.sh"), &format!("cat > /dev/null\ncat <<'EOF'\n{answer}\nEOF\n")),
        }
    }
    let clearance = match field(text, "observer") {
        Some("public") => "untrusted",
        Some("trusted") => "secret",
        _ => "trusted",
    };
    let reply = answers.get("ask").unwrap_or(&none).to_string();
    write("replies.json", &Value::from(vec![reply; 20]).to_string());
    write("tools.agent", TOOLS);
    write("policy.toml", &format!("{POLICY}[output]\nclearance = \"{clearance}\"\n"));
    write("a.plan.py", text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(["run", "a.plan.py", "--policy", "policy.toml", "--script", "replies.json", "-q"]);
    // What is refused for certain is what these are about.
    command.args(["--run-refused", "--fuel", "2000000"]).env_remove("ENTAIL_MODEL");
    let out = command.current_dir(dir.path()).stdin(Stdio::null()).output().unwrap();
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    let output = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(!output.contains("panicked") && out.status.code() != Some(2), "{text}\n{output}");
    Some(Seen { status: out.status.code(), output, calls: read("seen"), paid: read("paid") })
}

#[test]
fn no_adversarial_plan_tells_on_the_command_line_what_it_must_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/plans/adversarial");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "py"));
    let (todo, wrong, counts) = (Mutex::new(paths), Mutex::new(Vec::new()), Mutex::new((0, 0)));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(path) = todo.lock().unwrap().pop() else { return };
                    let text = std::fs::read_to_string(&path).unwrap();
                    let (Some(one), Some(other)) = (run(&text, "world 1"), run(&text, "world 2")) else {
                        continue;
                    };
                    // A run that ends of what the observer does not see has shown a beginning of the other.
                    // Nobody confirms anything here, which ends a run as well.
                    let ends = field(&text, "sees 1").is_some() || text.contains("confirm(");
                    let same = match ends {
                        false => {
                            (one.status, &one.output, &one.calls)
                                == (other.status, &other.output, &other.calls)
                        }
                        true => {
                            let hidden =
                                |s: &Seen| s.status == Some(1) && s.output.contains("error[withheld]");
                            let begun = |a: &Seen, b: &Seen| hidden(a) && b.calls.starts_with(&a.calls);
                            begun(&one, &other)
                                || begun(&other, &one)
                                || one.calls == other.calls && one.output == other.output
                        }
                    };
                    // Nobody has the plan pay whom it does not want to pay.
                    if !same || one.paid.contains("eve") || other.paid.contains("eve") {
                        wrong.lock().unwrap().push(format!("{}:\n{one:?}\n{other:?}", path.display()));
                    }
                    let mut counts = counts.lock().unwrap();
                    counts.0 += 1;
                    counts.1 += usize::from(!one.calls.is_empty() || !other.calls.is_empty());
                }
            });
        }
    });
    let (wrong, counts) = (wrong.into_inner().unwrap(), counts.into_inner().unwrap());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    // Some of them call what the observer sees.
    assert!(counts.0 > 80 && counts.1 > 10, "{counts:?}");
}
