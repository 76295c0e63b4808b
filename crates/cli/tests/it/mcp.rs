//! `entail mcp` as a client of the official SDK sees it, over the pipes of a real process.
#![cfg(feature = "mcp")]

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

async fn client(dir: &Path, args: &[&str]) -> RunningService<RoleClient, ()> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.arg("mcp").args(args).current_dir(dir);
    ().serve(TokioChildProcess::new(command).unwrap()).await.unwrap()
}

async fn call(client: &RunningService<RoleClient, ()>, tool: &'static str, args: Value) -> CallToolResult {
    let args = args.as_object().unwrap().clone();
    let request = CallToolRequestParams::new(tool).with_arguments(args);
    client.call_tool(request).await.unwrap()
}

fn text(result: &CallToolResult) -> String {
    serde_json::to_value(result).unwrap()["content"][0]["text"].as_str().unwrap_or_default().to_string()
}

/// A server that does not answer fails the test instead of holding it up.
#[tokio::test]
async fn an_assistant_lints_checks_and_runs() {
    tokio::time::timeout(Duration::from_secs(120), lints_checks_and_runs()).await.unwrap();
}

async fn lints_checks_and_runs() {
    let dir = tempfile::tempdir().unwrap();
    let program = r#"
agent a { tools: [], prompt: "answer" }
task greeting(name: String) -> String by agent { prompt "greet {name}" }
pipeline greet(name: String) -> String {
    let words = run greeting with { name: name } by a;
    return words;
}
"#;
    std::fs::write(dir.path().join("greet.agent"), program).unwrap();
    std::fs::write(dir.path().join("wrong.agent"), "pipeline p() -> String { return 1; }\n").unwrap();
    std::fs::write(dir.path().join("s.json"), r#"["Hello, Ada", {"error": "out of words"}]"#).unwrap();
    let client = client(dir.path(), &["greet.agent", "--script", "s.json"]).await;
    let server = format!("{:?}", client.peer_info());
    assert!(server.contains("name: \"entail\""), "{server}");
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|t| &*t.name).collect();
    assert_eq!(names, ["lint", "check", "cost", "explain", "run_greet"]);
    assert!(tools[4].description.as_deref().unwrap().contains("at most 1 calls of models"), "{:?}", tools[4]);

    let ran = call(&client, "run_greet", json!({"name": "Ada"})).await;
    assert_eq!(ran.structured_content.as_ref().unwrap()["result"], "Hello, Ada");
    let failed = call(&client, "run_greet", json!({"name": "Ada"})).await;
    assert!(failed.is_error == Some(true) && text(&failed).contains("out of words"), "{failed:?}");
    let wrong = call(&client, "run_greet", json!({"nam": "Ada"})).await;
    assert!(wrong.is_error == Some(true) && text(&wrong).contains("`greet` takes"), "{wrong:?}");

    let odd = call(&client, "run_greet", json!({"name": "Ada", "loud": true})).await;
    assert!(odd.is_error == Some(true) && text(&odd).contains("$.loud: there is no such field"), "{odd:?}");

    let cost = text(&call(&client, "cost", json!({"path": "greet.agent"})).await);
    assert_eq!(serde_json::from_str::<Value>(&cost).unwrap()["entry"], "greet");
    let checked = text(&call(&client, "check", json!({"path": "wrong.agent"})).await);
    assert!(checked.contains("\"level\":\"error\""), "{checked}");
    assert_eq!(text(&call(&client, "lint", json!({"path": "greet.agent"})).await), "nothing found");
    assert!(text(&call(&client, "explain", json!({"code": "A010"})).await).contains("A010"));

    // Files elsewhere are refused, and arguments are not options.
    for path in ["/etc/passwd", "../..", "--help", "none.agent"] {
        let refused = call(&client, "check", json!({ "path": path })).await;
        assert!(refused.is_error == Some(true) && text(&refused).contains("outside of"), "{refused:?}");
    }
    let option = call(&client, "explain", json!({"code": "--help"})).await;
    assert!(option.is_error == Some(true) && text(&option).contains("unknown diagnostic"), "{option:?}");
    client.cancel().await.unwrap();
}

/// A pipeline whose only parameter has the name that an input has which is no object.
#[tokio::test]
async fn a_parameter_may_be_called_input() {
    let dir = tempfile::tempdir().unwrap();
    let program = "pipeline main(input: String) -> String { return input; }\n";
    std::fs::write(dir.path().join("p.agent"), program).unwrap();
    let client = client(dir.path(), &["p.agent"]).await;
    let ran =
        tokio::time::timeout(Duration::from_secs(120), call(&client, "run_main", json!({"input": "x"})));
    let ran = ran.await.unwrap();
    assert_eq!(ran.structured_content.as_ref().map(|c| &c["result"]), Some(&json!("x")), "{ran:?}");
    client.cancel().await.unwrap();
}

/// An assistant gets the same in two worlds that differ in a secret, whether it is a result or an error. Data
/// that the assistant may see has its label.
#[tokio::test]
async fn an_assistant_sees_no_secret_and_the_labels_of_all_else() {
    let program = r#"
tool vault() -> String reads secret { exec "sh" "-c" "cat vault" }
tool look() -> String reads { exec "sh" "-c" "echo seen" }
pipeline value(x: String) -> String { let a = run vault with {}; return a; }
pipeline fails(x: String) -> String { let a = run vault with {}; assert a == "4711"; return a; }
pipeline looks(x: String) -> String { let a = run look with {}; return a; }
"#;
    let mut worlds = Vec::new();
    for secret in ["4711", "planted-secret-of-another-length"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("p.agent"), program).unwrap();
        std::fs::write(dir.path().join("vault"), secret).unwrap();
        let client = client(dir.path(), &["p.agent"]).await;
        let mut told = Vec::new();
        for tool in ["run_value", "run_fails"] {
            let result = call(&client, tool, json!({"x": "y"})).await;
            assert_eq!(result.is_error, Some(true), "{result:?}");
            told.push(serde_json::to_string(&result).unwrap());
        }
        assert!(told.iter().all(|t| t.contains("withheld") && !t.contains(secret)), "{told:?}");
        worlds.push(told);
        let looked = serde_json::to_value(call(&client, "run_looks", json!({"x": "y"})).await).unwrap();
        assert_eq!(looked["_meta"]["ifc"], json!({"integrity": "untrusted", "confidentiality": ["public"]}));
        client.cancel().await.unwrap();
        // The operator may let it see more.
        let settings = "[callers.mcp]\nclearance = \"any\"\n";
        std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
        let client = self::client(dir.path(), &["p.agent"]).await;
        let shown = serde_json::to_value(call(&client, "run_value", json!({"x": "y"})).await).unwrap();
        assert_eq!(shown["structuredContent"]["result"], secret);
        assert_eq!(shown["_meta"]["ifc"], json!({"integrity": "untrusted", "confidentiality": []}));
        client.cancel().await.unwrap();
    }
    assert_eq!(worlds[0], worlds[1]);
}

const PLAN: &str = r#"
[plan]
tools = ["tools.agent"]
replan = 1
[callers.mcp]
input = "trusted"
clearance = "any"
"#;

const PLAN_TOOLS: &str = r#"
tool read_bill(path: String) -> String reads untrusted { exec "printf" "Due 98 to EVIL-IBAN" }
tool pay(recipient: String, amount: Number) -> String writes requires trusted { exec "touch" "paid" }
"#;

/// A folder that offers plan mode, with the replies of the planner and of the quarantined model.
fn plan_folder(replies: &Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("entail.toml", &format!("policy = \"policy.toml\"\n{PLAN}"));
    write("tools.agent", PLAN_TOOLS);
    write("policy.toml", "[tools.pay]\neffect = \"write\"\ncontrol = \"untrusted\"\n");
    write("s.json", &replies.to_string());
    dir
}

#[tokio::test]
async fn a_plan_is_a_pipeline_from_a_request_to_an_answer() {
    let forged = "bill = read_bill(\"bill.txt\")\npay(bill.split(\" to \")[1], 98)\n";
    let good = "bill = read_bill(\"bill.txt\")\nif ask(f\"Overdue? {bill}\", bool):\n    pay(\"DE12\", 98)\nprint(\"done\")\n";
    let dir = plan_folder(&json!([forged, good, "true"]));
    let client = client(dir.path(), &["--script", "s.json"]).await;
    let names: Vec<String> =
        client.list_all_tools().await.unwrap().iter().map(|t| t.name.to_string()).collect();
    assert_eq!(names.last().map(String::as_str), Some("run_plan"), "{names:?}");
    let request = json!({"input": "Pay the bill bill.txt to DE12 if it is overdue"});
    let ran = tokio::time::timeout(Duration::from_secs(120), call(&client, "run_plan", request)).await;
    let ran = ran.unwrap();
    let outcome = ran.structured_content.clone().unwrap_or_default();
    assert_eq!(outcome["result"], "done", "{ran:?}");
    // Both plans and the question are the run's.
    let usage = &outcome["usage"];
    assert_eq!((&usage["modelCalls"], &usage["toolCalls"]), (&json!(3), &json!(2)), "{outcome}");
    assert!(dir.path().join("paid").exists());
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_plan_is_only_made_of_a_trusted_request_and_only_runs_without_mistakes() {
    let dir = plan_folder(&json!(["x = = 1", "print(nothing)"]));
    let mistaken = client(dir.path(), &["--script", "s.json"]).await;
    let failed = call(&mistaken, "run_plan", json!({"input": "Pay"})).await;
    let said = format!("{failed:?}");
    assert!(failed.is_error == Some(true) && said.contains("name `nothing` is not defined"), "{said}");
    mistaken.cancel().await.unwrap();
    let settings = std::fs::read_to_string(dir.path().join("entail.toml")).unwrap();
    std::fs::write(dir.path().join("entail.toml"), settings.replace("input = \"trusted\"", "")).unwrap();
    let untrusted = client(dir.path(), &["--script", "s.json"]).await;
    let refused = call(&untrusted, "run_plan", json!({"input": "Pay"})).await;
    let said = text(&refused);
    assert!(refused.is_error == Some(true) && said.contains("a trusted and public request"), "{refused:?}");
    assert!(said.contains("[callers.mcp]"), "{said}");
    untrusted.cancel().await.unwrap();
}

#[tokio::test]
async fn another_plan_follows_an_error_if_the_settings_say_so() {
    let fails = "bill = read_bill(\"bill.txt\")\npay(\"DE12\", 98)\nprint(int(bill))\n";
    let mended = "pay(\"DE12\", 98)\nprint(read_bill(\"other.txt\"))\n";
    for (errors, calls) in [(0, 2), (1, 3)] {
        let dir = plan_folder(&json!([fails, mended]));
        let settings = std::fs::read_to_string(dir.path().join("entail.toml")).unwrap();
        let settings = settings.replace("replan = 1", &format!("replan_errors = {errors}"));
        std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
        let client = client(dir.path(), &["--script", "s.json"]).await;
        let ran = call(&client, "run_plan", json!({"input": "Pay the bill bill.txt to DE12"})).await;
        let outcome = ran.structured_content.clone().unwrap_or_default();
        assert_eq!(ran.is_error == Some(true), errors == 0, "{ran:?}");
        if errors == 0 {
            assert!(outcome.get("replans").is_none() && text(&ran).contains("ValueError"), "{ran:?}");
        } else {
            assert_eq!(outcome["result"], "Due 98 to EVIL-IBAN", "{ran:?}");
            let told = &outcome["replans"][0];
            assert_eq!((&told["code"], &told["line"]), (&json!("ValueError"), &json!(3)), "{outcome}");
            assert_eq!(outcome["bits"], told["bits"]);
            let usage = &outcome["usage"];
            assert_eq!((&usage["modelCalls"], &usage["toolCalls"]), (&json!(2), &json!(calls)), "{outcome}");
        }
        client.cancel().await.unwrap();
    }
}
