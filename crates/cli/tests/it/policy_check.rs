//! `entail policy check`: rules without effect, at their places, and nothing else.

use super::cli::{Ran, entail_in, write};
use serde_json::Value;
use std::path::Path;

const PROGRAM: &str = "tool contacts() -> List[String] reads { exec \"echo\" \"[]\" }\n\
    tool pay(to: String, amount: Number) -> String writes { exec \"echo\" \"\\\"paid\\\"\" }\n\
    pipeline main(input: String) -> String { let paid = pay(input, 1); return paid; }\n";

/// Findings of a policy, as (code, line, message).
fn found(dir: &Path, more: &[&str]) -> (Ran, Vec<(String, u64, String)>) {
    let args = ["policy", "check", "--policy", "policy.toml", "--format", "json"];
    let ran = entail_in(dir, &[&args, more].concat());
    let said: Value =
        serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}{}", ran.out, ran.err));
    let text = |d: &Value, field: &str| d[field].as_str().unwrap_or_default().to_string();
    let findings = said["findings"].as_array().unwrap_or_else(|| panic!("{}", ran.out)).clone();
    let findings = findings
        .iter()
        .map(|d| (text(d, "code"), d["line"].as_u64().unwrap_or_default(), text(d, "message")))
        .collect();
    (ran, findings)
}

fn check(dir: &Path, policy: &str, more: &[&str], expected: &[(&str, u64, &str)]) {
    write(dir, "policy.toml", policy);
    let (ran, found) = found(dir, more);
    assert_eq!(found.len(), expected.len(), "{policy}\n{}{}", ran.out, ran.err);
    for ((code, line, part), (got, at, message)) in expected.iter().zip(&found) {
        assert!(code == got && line == at && message.contains(part), "{policy}\n{found:?}");
    }
}

#[test]
fn rules_without_effect_are_found_at_their_place_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    let check =
        |policy: &str, expected: &[(&str, u64, &str)]| check(dir.path(), policy, &["p.agent"], expected);
    check("[tools.pay]\neffect = \"write\"\nresult = \"trusted\"\n", &[]);
    check("[tools.pay]\neffect = \"write\"\nat_most = 2\n", &[("S110", 3, "`at_most` of `pay`")]);
    check("[tools.pay]\nplain = { to = \"no-links\" }\n", &[("S110", 2, "refuses untrusted data first")]);
    check(
        "[tools.pay]\ncontrol = \"any\"\nbounds = { to = \"any\" }\npattern = { to = \"[a&&b]\" }\n",
        &[("S111", 4, "no text matches")],
    );
    // A set whose label, or whose type, admits nothing.
    check("[tools.pay]\namong = { to = \"tools.contacts()\" }\n", &[("S108", 2, "admits nothing")]);
    let trusted = "[tools.contacts]\nresult = \"trusted\"\n[tools.pay]\n";
    check(&format!("{trusted}among = {{ to = \"tools.contacts()\" }}\n"), &[]);
    check(&format!("{trusted}among = {{ amount = \"tools.contacts()\" }}\n"), &[("S111", 4, "`Num`")]);
    // Functions: one that allows no call, and one that goes wrong.
    check("[tools.pay]\nallow = '\\a. \"never\"'\n", &[("S111", 2, "allows no call")]);
    check("[tools.pay]\nallow = '\\a. a.too.value == \"x\"'\n", &[("S212", 2, "goes wrong")]);
    check("[tools.pay]\nallow = '\\a. a.amount.value < 10'\n", &[]);
    // Names.
    check("[tools.refund]\neffect = \"write\"\n", &[("S210", 1, "no tool has the name `refund`")]);
    check("[policies.outgoing]\napprove = true\n", &[("S210", 1, "no program names the policy")]);
    check("[tools.pay]\nbounds = { too = \"any\" }\n", &[("S204", 2, "no parameter `too`")]);
}

#[test]
fn rules_that_a_run_decides_are_listed_and_no_findings() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    write(dir.path(), "policy.toml", "[tools.pay]\nallow = '\\a. a.amount.value < 10'\n");
    let (ran, found) = found(dir.path(), &["p.agent"]);
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(found.is_empty() && ran.status == 0, "{}", ran.out);
    assert_eq!(said["undecided"][0]["rule"], "allow");
    assert_eq!(said["undecided"][0]["at"], "policy.toml:2:1");
}

#[test]
fn a_rule_has_an_effect_if_it_has_one_on_some_program() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    let other = "tool refund(id: String) -> String writes { exec \"echo\" \"\\\"x\\\"\" }\n\
                 pipeline main(input: String) -> String { let paid = refund(input); return paid; }\n";
    write(dir.path(), "q.agent", other);
    let policy = "[tools.refund]\neffect = \"write\"\n[tools.pay]\neffect = \"write\"\nat_most = 1\n";
    check(dir.path(), policy, &["p.agent", "q.agent"], &[("S110", 5, "`at_most`")]);
}

#[test]
fn the_block_of_a_program_is_checked_at_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let program = format!("{PROGRAM}policy {{\n    tool pay {{\n        at_most 2;\n    }}\n}}\n");
    write(dir.path(), "p.agent", program);
    let ran = entail_in(dir.path(), &["policy", "check", "p.agent"]);
    assert!(ran.out.contains("S110") && ran.out.contains("p.agent:6:"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_policy_is_compared_with_approved_tools_of_servers() {
    let dir = tempfile::tempdir().unwrap();
    let lock = "version = 3\n[tools.\"mail\"]\n\"send\" = { description = \"0\", input = \"0\", output = \"0\", \
                parameters = { \"to\" = true, \"body\" = true } }\n";
    write(dir.path(), "entail.lock", lock);
    let list = "{\"mcpServers\": {\"mail\": {\"command\": \"mail-server\"}}}";
    write(dir.path(), "list.json", list);
    let servers = ["--mcp-config", "list.json", "--lock", "entail.lock"];
    let check = |policy: &str, expected: &[(&str, u64, &str)]| check(dir.path(), policy, &servers, expected);
    check("[tools.send]\neffect = \"write\"\n", &[]);
    check("[tools.mail__send]\neffect = \"write\"\n", &[]);
    check("[tools.mail__send]\nbounds = { too = \"any\" }\n", &[("S204", 2, "no parameter `too`")]);
    check("[tools.refund]\neffect = \"write\"\n", &[("S210", 1, "`refund`")]);
    check("[tools.send]\neffect = \"write\"\nat_most = 1\n", &[("S110", 3, "`at_most`")]);
    // What the request names is known only in the session.
    check("[tools.send]\namong = { to = \"request\" }\n", &[]);
    // Before parameters were written down, nothing is known of them.
    write(dir.path(), "entail.lock", "version = 2\n[tools.\"mail\"]\n\"send\" = \"0\"\n");
    check("[tools.refund]\nbounds = { too = \"any\" }\n", &[]);
}

#[test]
fn without_a_policy_there_is_nothing_to_check() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    let ran = entail_in(dir.path(), &["policy", "check", "p.agent"]);
    assert!(ran.status == 2 && ran.err.contains("there is no policy to check"), "{}{}", ran.out, ran.err);
}

/// A directory is all programs in it: a tool that one of them lacks is no slip if another one has it.
#[test]
fn a_directory_is_all_of_its_programs() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("desk")).unwrap();
    for (file, tool) in [("desk/a.agent", "pay"), ("desk/b.agent", "mail")] {
        let text = format!(
            "tool {tool}(to: String) -> String writes {{ exec \"echo\" \"\\\"x\\\"\" }}\n\
             pipeline main(input: String) -> String {{ let done = {tool}(input); return done; }}\n"
        );
        write(dir.path(), file, &text);
    }
    let policy = "[tools.pay]\nresult = \"trusted\"\n[tools.mail]\nresult = \"trusted\"\n";
    check(dir.path(), policy, &["desk"], &[]);
    let slip = [("S210", 5, "no tool has the name `mial`")];
    check(dir.path(), &format!("{policy}[tools.mial]\neffect = \"read\"\n"), &["desk"], &slip);
    write(dir.path(), "policy.toml", policy);
    let ran = entail_in(dir.path(), &["policy", "explain", "desk", "--policy", "policy.toml"]);
    let rule = |tool: &str, line: u32| format!("{tool}\n  result: the policy file, policy.toml:{line}:1\n");
    assert_eq!((ran.status, ran.out), (0, rule("pay", 2) + &rule("mail", 4)), "{}", ran.err);
    let ran = entail_in(dir.path(), &["policy", "check", "--policy", "policy.toml", "."]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let ran = entail_in(dir.path(), &["policy", "check", "--policy", "policy.toml", "empty"]);
    assert!(ran.status == 2 && ran.err.contains("`empty` holds no program"), "{}", ran.err);
}

#[test]
fn rules_that_were_compared_with_nothing_are_not_said_to_have_an_effect() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "policy.toml", "[tools.nobody_has_this]\neffect = \"read\"\n");
    let ran = entail_in(dir.path(), &["policy", "check", "--policy", "policy.toml"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    assert!(ran.out.contains("compared with no tools") && ran.err.contains("--mcp-config"), "{}", ran.out);
}
