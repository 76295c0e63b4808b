//! `entail lock`: writes what MCP servers offer to `entail.lock`.

use super::offers::{Offers, write_lock};
use crate::args::LockArgs;
use crate::ui::{Exit, Ui};
use diagnostics::visible;
use runtime::{PinState, Pins, ServerTool};
use serde_json::json;
use session::settings::Settings;
use std::convert::identity;

/// Characters of the name of a tool that are shown.
const MAX_NAME_CHARS: usize = 100;

/// Runs the command.
pub fn lock(ui: &Ui, args: &LockArgs) -> Exit {
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    locked(ui, &settings, args).unwrap_or_else(identity)
}

fn locked(ui: &Ui, settings: &Settings, args: &LockArgs) -> Result<Exit, Exit> {
    let offers = Offers::of(ui, settings, &args.servers)?;
    let mut pins = settings.pins.clone();
    for server in &offers.servers {
        if !args.update && matches!(pins.definitions(server), Some(Ok(_))) {
            ui.note(&format!("`{server}` is locked; `--update` asks it again"));
            continue;
        }
        let offered = offers.ask(server)?;
        let changes = changes(&pins, server, &offered);
        // Somebody has approved other ones.
        if !args.update && pins.knows(server) && !changes.is_empty() {
            show(ui, server, &changes);
            let message = format!("the server `{server}` offers other tools than `{}` has", Settings::LOCK);
            ui.usage(&message, Some(&format!("look at them, and write `entail lock --update {server}`")));
            return Err(Exit::Failed);
        }
        show(ui, server, &changes);
        pins.approve(server, &offered);
    }
    if pins != settings.pins {
        write_lock(ui, settings, &pins)?;
    }
    Ok(Exit::Done)
}

/// The tools of a server that are not as they are locked, each with how they differ.
fn changes(pins: &Pins, server: &str, offered: &[ServerTool]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for tool in offered {
        let state = match pins.state(server, tool) {
            PinState::Approved => continue,
            PinState::NotApproved | PinState::New => "new".to_string(),
            PinState::Changed(parts) if parts.is_empty() => "changed".to_string(),
            PinState::Changed(parts) => format!("changed: {}", parts.join(", ")),
        };
        found.push((tool.name.clone(), state));
    }
    let locked = pins.tools_of(server).into_iter().flatten();
    let gone = locked.filter(|t| offered.iter().all(|o| o.name != t.name));
    found.extend(gone.map(|t| (t.name.to_string(), "gone".to_string())));
    found
}

fn show(ui: &Ui, server: &str, changes: &[(String, String)]) {
    for (tool, state) in changes {
        match ui.is_json() {
            true => ui.result(&json!({ "server": server, "tool": tool, "state": state }).to_string()),
            false => ui.result(&format!("{server}  {}  ({state})", visible(tool, MAX_NAME_CHARS))),
        }
    }
}
