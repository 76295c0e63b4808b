//! `entail guard hook`: asks the guards of the client above about a tool that the client has by itself, and
//! tells them what the user asks for, and when a conversation begins or goes on.
//!
//! It reads what the hooks `PreToolUse`, `UserPromptSubmit` and `SessionStart` of Claude Code are given and
//! answers in their words. Nothing is written for a call that is allowed, so the client's own permissions
//! decide as they would without it.
//!
//! Source: "Hooks reference" (code.claude.com).

use crate::args::HookArgs;
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
/// Tools of the guard's servers begin so: they are decided where they are called.
const GUARDED: &str = "mcp__entail__";

/// Runs the command. If it can't, the exit status is 2, which the client takes for a refusal.
pub fn hook(ui: &Ui, args: &HookArgs) -> Exit {
    let settings = match setup::settings(ui) {
        Ok(settings) => settings,
        Err(_) => return Exit::Usage,
    };
    let call = match call() {
        Ok(call) => call,
        Err(why) => return ui.usage(&format!("what the client says can't be read: {why}"), None),
    };
    if let Some(prompt) = prompt(&call) {
        if let Ok(folder) = hook_folder(&settings.environment) {
            tell_request(&folder, prompt);
        }
        return Exit::Done;
    }
    if let Some(is_fresh) = conversation(&call) {
        return begin(ui, &settings, is_fresh);
    }
    let tool = call["tool_name"].as_str().unwrap_or_default();
    // After a call there is nothing to decide.
    if call["hook_event_name"] != "PreToolUse" || tool.starts_with(GUARDED) {
        return Exit::Done;
    }
    let input = &call["tool_input"];
    let answer =
        hook_folder(&settings.environment).map_or(HookAnswer::Nobody, |folder| ask(&folder, tool, input));
    match answer {
        HookAnswer::Allowed => Exit::Done,
        HookAnswer::Asks => say(ui, "ask", "the policy wants a person to allow this call"),
        HookAnswer::Refused(why) => say(ui, "deny", &format!("entail guard refused this call: {why}")),
        HookAnswer::Nobody => alone(ui, args, &settings, tool, input),
    }
}

/// The call that the client describes on standard input.
fn call() -> Result<Value, String> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(MAX_INPUT + 1);
    input.read_to_string(&mut text).map_err(|e| session::load::reason(&e))?;
    if text.len() as u64 > MAX_INPUT {
        return Err(format!("it has more than {MAX_INPUT} bytes"));
    }
    let call: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let is_known =
        call["tool_name"].is_string() || prompt(&call).is_some() || call["hook_event_name"] == "SessionStart";
    if is_known { Ok(call) } else { Err("it names no tool".into()) }
}

/// The words of the user, if the client tells them.
fn prompt(said: &Value) -> Option<&str> {
    said["prompt"].as_str().filter(|_| said["hook_event_name"] == "UserPromptSubmit")
}

/// Returns true if a new conversation begins, and false if an earlier one continues; `None` if the client
/// says neither. A conversation that the client has made shorter is the same one.
fn conversation(said: &Value) -> Option<bool> {
    let source = said["source"].as_str().filter(|_| said["hook_event_name"] == "SessionStart")?;
    match source {
        "clear" => Some(true),
        "resume" => Some(false),
        _ => None,
    }
}

/// Tells the guards of the client, which may still be starting.
fn begin(ui: &Ui, settings: &Settings, is_fresh: bool) -> Exit {
    let folder = match hook_folder(&settings.environment) {
        Ok(folder) => folder,
        Err(why) => return ui.usage(&why, None),
    };
    let until = Instant::now() + STARTING;
    loop {
        if tell_conversation(&folder, is_fresh) {
            return Exit::Done;
        }
        if Instant::now() >= until {
            return ui
                .usage("no guard of this client answers, so it does not know of this conversation", None);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Decides where no guard is there.
fn alone(ui: &Ui, args: &HookArgs, settings: &Settings, tool: &str, input: &Value) -> Exit {
    let mut sources = Sources::new();
    let path = settings.loading(args.policy.as_deref()).policy;
    let policy = match session::policy::read(&mut sources, path.as_deref()) {
        Ok(Some(policy)) => Arc::new(policy),
        Ok(None) => return ui.usage("no guard of this client is there, and there is no policy", None),
        Err(problem) => {
            super::say_problem(ui, &sources, problem);
            return Exit::Usage;
        }
    };
    match decide_alone(policy, tool, input) {
        OwnDecision::Allowed => Exit::Done,
        OwnDecision::Asks => say(ui, "ask", "the policy wants a person to allow this call"),
        OwnDecision::Refused(refused) => {
            let why =
                format!("entail guard refused this call: no guard of this client answers, and {refused}");
            say(ui, "deny", &why)
        }
    }
}

fn say(ui: &Ui, decision: &str, why: &str) -> Exit {
    let output = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": why}});
    ui.result(&output.to_string());
    Exit::Done
}
