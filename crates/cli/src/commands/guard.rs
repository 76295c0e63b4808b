//! `entail guard`: stands between an assistant and an MCP server.

use crate::args::GuardArgs;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::serve::guard::{GuardEnd, GuardOptions, Note, describe, guard_stdio};
use diagnostics::{Sources, visible};
use runtime::{CancellationToken, Pins, ServerTool};
use serde_json::json;
use session::Settings;
use session::load::replace_file;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a description that are shown.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// Runs the command.
pub fn guard(ui: &Ui, args: &GuardArgs) -> Exit {
    let settings = match setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let words = args.command.iter().map(|w| w.to_string_lossy());
    let server = args.server.clone().unwrap_or_else(|| words.collect::<Vec<_>>().join(" "));
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    if args.approve {
        let said = runtime.block_on(describe(&args.command, args.max_message));
        return match said {
            Ok(said) => approve(ui, &settings, &server, &said),
            Err(why) => {
                ui.usage(&format!("`{}`: {why}", visible(&server, MAX_DESCRIPTION_CHARS)), None);
                Exit::Failed
            }
        };
    }
    let policy = settings.loading(args.policy.as_deref()).policy;
    let Some(policy) = policy else {
        let help = "name one with `--policy FILE`, or as `policy` in `entail.toml`; an empty file assumes that \
                    every tool changes the world and returns untrusted data";
        return ui.usage("a guard needs a policy", Some(help));
    };
    let mut sources = Sources::new();
    let policy = match session::policy::read(&mut sources, Some(&policy)) {
        Ok(Some(policy)) => Arc::new(policy),
        Ok(None) => return ui.usage("a guard needs a policy", None),
        Err(problem) => return super::say_problem(ui, &sources, problem),
    };
    if !settings.pins.knows(&server) {
        ui.note(&format!(
            "entail guard: nothing of `{}` is approved, so its descriptions of tools are untrusted text \
             (help: `entail guard --approve` with the same command)",
            visible(&server, MAX_DESCRIPTION_CHARS)
        ));
    }
    let options = GuardOptions {
        command: args.command.clone(),
        policy,
        model: args.model.clone(),
        pins: settings.pins.clone(),
        server,
        observe: args.observe,
        max_message: args.max_message,
    };
    let cancel = CancellationToken::new();
    crate::interrupt::cancels(cancel.clone());
    let mut log = |note: &Note| match ui.is_json() {
        // Standard output is the client's.
        true => ui.say(&note.to_json().to_string()),
        false => ui.note(&format!("entail guard: {}", visible(&note.to_string(), 4000))),
    };
    let ended = runtime.block_on(guard_stdio(options, &cancel, &mut log));
    // Reading standard input can't be interrupted.
    runtime.shutdown_timeout(Duration::from_millis(100));
    match ended {
        Ok(GuardEnd::ClientLeft) => Exit::Done,
        Ok(GuardEnd::Canceled) => Exit::Canceled,
        Ok(GuardEnd::ServerGone(how)) => {
            ui.say(&format!("error: the server is gone: {how}"));
            Exit::Failed
        }
        Err(why) => {
            ui.usage(&why, None);
            Exit::Failed
        }
    }
}

/// Shows what a server says of itself and writes it to the lock file.
fn approve(ui: &Ui, settings: &Settings, server: &str, said: &[ServerTool]) -> Exit {
    for tool in said {
        if ui.is_json() {
            ui.result(
                &json!({"server": server, "tool": tool.name, "description": tool.description,
                    "input": tool.input, "hash": tool.hash})
                .to_string(),
            );
            continue;
        }
        ui.result(&visible(&tool.name, MAX_DESCRIPTION_CHARS));
        if !tool.description.is_empty() {
            ui.result(&format!("    {}", visible(&tool.description, MAX_DESCRIPTION_CHARS)));
        }
    }
    let mut pins: Pins = settings.pins.clone();
    pins.approve(server, said);
    let path = settings.dir.join(Settings::LOCK);
    if let Err(e) = replace_file(&path, &pins.to_toml()) {
        return ui.usage(&format!("cannot write `{}`: {e}", path.display()), None);
    }
    ui.note(&format!("approved in `{}`; what changes is refused from now on", path.display()));
    Exit::Done
}
