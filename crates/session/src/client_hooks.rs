//! Hooks of clients: commands that they run before they call a tool, by which the guard decides about tools
//! that a client has by itself.
//!
//! A file of hooks that is not there is written, and removed again if it is still the same. Into a file that
//! has other settings the user puts the lines.
//!
//! Source: the documentation of each client on its hooks.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The setting of a client that makes it ask the guard.
#[derive(Debug, PartialEq, Eq)]
pub struct ClientHooks {
    /// The file of its hooks.
    pub file: PathBuf,
    /// The text with the hooks, as a whole file.
    pub text: String,
}

/// The hooks of a client that ask the guard with these words, for the installation in its file of servers;
/// `None` if the client has no hooks.
pub fn of(client: &str, servers: &Path, words: &[String]) -> Option<ClientHooks> {
    let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    with_command(client, servers, &command.join(" "))
}

fn with_command(client: &str, servers: &Path, command: &str) -> Option<ClientHooks> {
    let folder = servers.parent().unwrap_or(Path::new(""));
    let (file, text) = match client {
        // The list of a project is beside its folder of settings, and that of the user as well.
        "claude-code" => {
            let is_user = servers.file_name().is_some_and(|name| name == ".claude.json");
            let name = if is_user { "settings.json" } else { "settings.local.json" };
            let run = json!({"type": "command", "command": command});
            let hooks = json!({"PreToolUse": [{"matcher": "*", "hooks": [run]}],
                "UserPromptSubmit": [{"hooks": [run]}], "SessionStart": [{"hooks": [run]}]});
            (folder.join(".claude").join(name), pretty(&json!({ "hooks": hooks })))
        }
        "gemini" => {
            let run = json!({"type": "command", "command": command});
            let hooks = json!({"BeforeTool": [{"matcher": ".*", "hooks": [run]}],
                "BeforeAgent": [{"hooks": [run]}], "SessionStart": [{"hooks": [run]}]});
            (servers.to_path_buf(), pretty(&json!({ "hooks": hooks })))
        }
        "cursor" => {
            let run = json!([{"command": command, "failClosed": true}]);
            let hooks = json!({"preToolUse": run, "beforeSubmitPrompt": [{"command": command}]});
            (folder.join("hooks.json"), pretty(&json!({"version": 1, "hooks": hooks})))
        }
        "windsurf" => {
            let run = json!([{"command": command, "show_output": true}]);
            let events =
                ["pre_run_command", "pre_read_code", "pre_write_code", "pre_mcp_tool_use", "pre_user_prompt"];
            let hooks: serde_json::Map<String, Value> =
                events.into_iter().map(|event| (event.into(), run.clone())).collect();
            (folder.join("hooks.json"), pretty(&json!({ "hooks": hooks })))
        }
        "codex" => {
            let run = Value::from(command).to_string();
            let hook = |event: &str| {
                format!("[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ntype = \"command\"\ncommand = {run}\n")
            };
            let text = ["PreToolUse", "UserPromptSubmit", "SessionStart"].map(hook).join("\n");
            (servers.to_path_buf(), text)
        }
        _ => return None,
    };
    Some(ClientHooks { file, text })
}

/// Returns whether a file of hooks has nothing but those of a guard, whatever its words are.
pub fn is_own(client: &str, servers: &Path, text: &str) -> bool {
    let root = serde_json::from_str::<Value>(text).unwrap_or_default();
    let command = first_command(&root["hooks"]);
    command.and_then(|command| with_command(client, servers, &command)).is_some_and(|own| own.text == text)
}

fn first_command(hooks: &Value) -> Option<String> {
    match hooks {
        Value::Object(fields) => match fields.get("command") {
            Some(Value::String(command)) => Some(command.clone()),
            _ => fields.values().find_map(first_command),
        },
        Value::Array(items) => items.iter().find_map(first_command),
        _ => None,
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+@%,".contains(c);
    match (word.chars().all(is_plain), cfg!(windows)) {
        (true, _) => word.into(),
        (false, true) => format!("\"{word}\""),
        (false, false) => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_with_hooks_has_a_file_of_them() {
        let words = ["/opt/my tools/entail".to_string(), "guard".into(), "hook".into()];
        let of = |client: &str, servers: &str| of(client, Path::new(servers), &words).unwrap();
        for (client, servers, file) in [
            ("claude-code", "/p/.mcp.json", "/p/.claude/settings.local.json"),
            ("claude-code", "/home/u/.claude.json", "/home/u/.claude/settings.json"),
            ("cursor", "/p/.cursor/mcp.json", "/p/.cursor/hooks.json"),
            ("windsurf", "/h/.codeium/windsurf/mcp_config.json", "/h/.codeium/windsurf/hooks.json"),
            ("gemini", "/p/.gemini/settings.json", "/p/.gemini/settings.json"),
            ("codex", "/h/.codex/config.toml", "/h/.codex/config.toml"),
        ] {
            let hooks = of(client, servers);
            assert_eq!(hooks.file, Path::new(file), "{client}");
            assert!(hooks.text.contains("'/opt/my tools/entail' guard hook"), "{}", hooks.text);
            match client {
                "codex" => drop(hooks.text.parse::<toml::Table>().unwrap()),
                _ => drop(serde_json::from_str::<Value>(&hooks.text).unwrap()),
            }
        }
        let hooks = of("cursor", "/p/.cursor/mcp.json");
        assert!(is_own("cursor", Path::new("/p/.cursor/mcp.json"), &hooks.text));
        assert!(!is_own(
            "cursor",
            Path::new("/p/.cursor/mcp.json"),
            &hooks.text.replace("preTool", "postTool")
        ));
        assert_eq!(super::of("zed", Path::new("/p/settings.json"), &words), None);
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
