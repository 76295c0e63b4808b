//! `entail guard hook`: asks the guards of the client above about a tool that the client has by itself, and
//! tells them what the user asks for, and when a conversation begins or goes on.
//!
//! It reads what the hooks of a client are given and answers in the client's words. Nothing is written for a
//! call that is allowed, so the client's own permissions decide as they would without it.
//!
//! Source: each client's documentation of its hooks ([`HookClient`]).

use crate::args::{HookArgs, HookClient};
use crate::setup;
use crate::ui::{Exit, Ui};
use ::serve::guard::{
    HookAnswer, OwnDecision, ask, decide_alone, hook_folder, tell_conversation, tell_request,
};
use diagnostics::Sources;
use serde_json::{Value, json};
use session::Settings;
use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of what the client says.
const MAX_INPUT: u64 = 16 << 20;
/// Time for a guard to start.
const STARTING: Duration = Duration::from_secs(5);
/// Name of the guard in a client's list of servers. Its tools are decided where they are called.
const GUARD: &str = "entail";

/// A message of a client's hook.
enum Said {
    /// It wants to make this call.
    Call(String, Value),
    /// The user asks for this.
    Request(String),
    /// A new conversation begins (true), or an earlier one goes on.
    Conversation(bool),
    /// Nothing that the guard decides or notes.
    Nothing,
}

/// The decision about a call, for the client.
enum Told {
    Allowed,
    Asks,
    Refused(String),
}

/// Runs the command. If it can't, the exit status is 2, which every client takes for a refusal.
pub fn hook(ui: &Ui, args: &HookArgs) -> Exit {
    let settings = match setup::settings(ui) {
        Ok(settings) => settings,
        Err(_) => return Exit::Usage,
    };
    let said = match input().and_then(|said| args.client.said(&said)) {
        Ok(said) => said,
        Err(why) => {
            let help = "this command is run by a client's hook, which describes the call on standard input; \
                        `entail guard install CLIENT --hooks` says how it is set up";
            return ui.usage(&format!("what the client says can't be read: {why}"), Some(help));
        }
    };
    let (tool, input) = match said {
        Said::Call(tool, input) => (tool, input),
        Said::Request(prompt) => {
            if let Ok(folder) = hook_folder(&settings.environment) {
                tell_request(&folder, &prompt);
            }
            return args.client.say(ui, Told::Allowed);
        }
        Said::Conversation(is_fresh) => return begin(ui, args, &settings, is_fresh),
        Said::Nothing => return args.client.say(ui, Told::Allowed),
    };
    let answer =
        hook_folder(&settings.environment).map_or(HookAnswer::Nobody, |folder| ask(&folder, &tool, &input));
    let told = match answer {
        HookAnswer::Allowed => Told::Allowed,
        HookAnswer::Asks => Told::Asks,
        HookAnswer::Refused(why) => Told::Refused(why),
        HookAnswer::Nobody => match alone(ui, args, &settings, &tool, &input) {
            Ok(told) => told,
            Err(exit) => return exit,
        },
    };
    args.client.say(ui, told)
}

/// The object on standard input.
fn input() -> Result<Value, String> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(MAX_INPUT + 1);
    input.read_to_string(&mut text).map_err(|e| session::load::reason(&e))?;
    if text.len() as u64 > MAX_INPUT {
        return Err(format!("it has more than {MAX_INPUT} bytes"));
    }
    if text.trim().is_empty() {
        return Err("it says nothing".into());
    }
    serde_json::from_str(&text).map_err(|e| e.to_string())
}

/// The tool and the arguments in these fields.
fn call(said: &Value, tool: &str, input: &str) -> Result<Said, String> {
    let name = said[tool].as_str().ok_or("it names no tool")?;
    Ok(Said::Call(name.into(), said[input].clone()))
}

impl HookClient {
    /// Reads what the client says.
    fn said(self, said: &Value) -> Result<Said, String> {
        match self {
            HookClient::ClaudeCode | HookClient::Codex => of_claude(said),
            HookClient::Gemini => of_gemini(said),
            HookClient::Cursor => of_cursor(said),
            HookClient::Windsurf => of_windsurf(said),
        }
    }

    /// Returns whether the client asks its user if a hook wants that.
    fn can_ask(self) -> bool {
        self == HookClient::ClaudeCode
    }

    /// Says a decision in the client's words.
    fn say(self, ui: &Ui, told: Told) -> Exit {
        let (decision, why) = match told {
            Told::Allowed => {
                if self == HookClient::Cursor {
                    ui.result(&json!({"permission": "allow", "continue": true}).to_string());
                }
                return Exit::Done;
            }
            Told::Asks if self.can_ask() => ("ask", "the policy wants a person to allow this call".into()),
            Told::Asks => {
                let why =
                    "the policy wants a person to allow this call, and a hook of this client can't ask one";
                ("deny", format!("entail guard refused this call: {why}"))
            }
            Told::Refused(why) => ("deny", format!("entail guard refused this call: {why}")),
        };
        let output = match self {
            HookClient::ClaudeCode => json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                "permissionDecision": decision, "permissionDecisionReason": why}}),
            HookClient::Gemini => json!({"decision": decision, "reason": why}),
            HookClient::Cursor => json!({"permission": decision, "user_message": why, "agent_message": why}),
            // These take the exit status, and show the model what is on standard error.
            HookClient::Codex | HookClient::Windsurf => {
                ui.say(&why);
                return Exit::Usage;
            }
        };
        ui.result(&output.to_string());
        Exit::Done
    }
}

/// Claude Code and Codex: `PreToolUse`, `UserPromptSubmit` and `SessionStart`.
fn of_claude(said: &Value) -> Result<Said, String> {
    match said["hook_event_name"].as_str() {
        Some("UserPromptSubmit") => Ok(of_prompt(&said["prompt"])),
        Some("SessionStart") => Ok(of_start(&said["source"])),
        Some("PreToolUse") => match call(said, "tool_name", "tool_input")? {
            Said::Call(tool, _) if tool.starts_with(&format!("mcp__{GUARD}__")) => Ok(Said::Nothing),
            call => Ok(call),
        },
        // After a call there is nothing to decide.
        _ => call(said, "tool_name", "tool_input").map(|_| Said::Nothing),
    }
}

/// Gemini CLI: `BeforeTool`, `BeforeAgent` and `SessionStart`.
fn of_gemini(said: &Value) -> Result<Said, String> {
    match said["hook_event_name"].as_str() {
        Some("BeforeAgent") => Ok(of_prompt(&said["prompt"])),
        Some("SessionStart") => {
            let source = if said["source"].is_string() { &said["source"] } else { &said["trigger"] };
            Ok(of_start(source))
        }
        Some("BeforeTool") if said["mcp_context"]["server_name"] == GUARD => Ok(Said::Nothing),
        Some("BeforeTool") => call(said, "tool_name", "tool_input"),
        _ => Err("it is none of the events that the guard knows".into()),
    }
}

/// Cursor: `preToolUse` and `beforeSubmitPrompt`. Which server a tool is of is not told there, so tools of
/// servers are left to the guard and to Cursor.
fn of_cursor(said: &Value) -> Result<Said, String> {
    match said["hook_event_name"].as_str() {
        Some("beforeSubmitPrompt") => Ok(of_prompt(&said["prompt"])),
        Some("preToolUse") => match call(said, "tool_name", "tool_input")? {
            Said::Call(tool, _) if tool.starts_with("MCP:") => Ok(Said::Nothing),
            call => Ok(call),
        },
        _ => Err("it is none of the events that the guard knows".into()),
    }
}

/// Windsurf: `pre_run_command`, `pre_read_code`, `pre_write_code`, `pre_mcp_tool_use`, `pre_user_prompt`. A
/// tool is named as its event, without `pre_`.
fn of_windsurf(said: &Value) -> Result<Said, String> {
    let info = &said["tool_info"];
    match said["agent_action_name"].as_str() {
        Some("pre_user_prompt") => Ok(of_prompt(&info["user_prompt"])),
        Some("pre_mcp_tool_use") if info["mcp_server_name"] == GUARD => Ok(Said::Nothing),
        Some("pre_mcp_tool_use") => {
            let text = |field: &str| info[field].as_str().ok_or("it names no tool");
            let name = format!("mcp__{}__{}", text("mcp_server_name")?, text("mcp_tool_name")?);
            Ok(Said::Call(name, info["mcp_tool_arguments"].clone()))
        }
        Some(event) if event.starts_with("pre_") => {
            Ok(Said::Call(event.trim_start_matches("pre_").into(), info.clone()))
        }
        _ => Err("it is none of the events that the guard knows".into()),
    }
}

fn of_prompt(prompt: &Value) -> Said {
    prompt.as_str().map_or(Said::Nothing, |text| Said::Request(text.into()))
}

/// A conversation that the client has made shorter is the same one.
fn of_start(source: &Value) -> Said {
    match source.as_str() {
        Some("clear") => Said::Conversation(true),
        Some("resume") => Said::Conversation(false),
        _ => Said::Nothing,
    }
}

/// Tells the guards of the client, which may still be starting.
fn begin(ui: &Ui, args: &HookArgs, settings: &Settings, is_fresh: bool) -> Exit {
    let folder = match hook_folder(&settings.environment) {
        Ok(folder) => folder,
        Err(why) => return ui.usage(&why, None),
    };
    let until = Instant::now() + STARTING;
    loop {
        if tell_conversation(&folder, is_fresh) {
            return args.client.say(ui, Told::Allowed);
        }
        if Instant::now() >= until {
            return ui
                .usage("no guard of this client answers, so it does not know of this conversation", None);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Decides where no guard is there.
fn alone(ui: &Ui, args: &HookArgs, settings: &Settings, tool: &str, input: &Value) -> Result<Told, Exit> {
    let mut sources = Sources::new();
    let path = settings.loading(args.policy.as_deref()).policy;
    let policy = match session::policy::read(&mut sources, path.as_deref()) {
        Ok(Some(policy)) => Arc::new(policy),
        Ok(None) => {
            let help = "name the policy of the guard with `--policy FILE`";
            return Err(ui.usage("no guard of this client is there, and there is no policy", Some(help)));
        }
        Err(problem) => {
            super::say_problem(ui, &sources, problem);
            return Err(Exit::Usage);
        }
    };
    Ok(match decide_alone(policy, tool, input) {
        OwnDecision::Allowed => Told::Allowed,
        OwnDecision::Asks => Told::Asks,
        OwnDecision::Refused(refused) => {
            Told::Refused(format!("no guard of this client answers, and {refused}"))
        }
    })
}
