//! `entail lock`: writes what MCP servers offer, and modules of Python, to `entail.lock`.

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
    let (files, servers): (Vec<&String>, Vec<&String>) =
        args.names.iter().partition(|name| name.ends_with(".py") || name.ends_with(".agent"));
    let mut pins = settings.pins.clone();
    let all = args.names.is_empty();
    if !servers.is_empty() || all && (!settings.mcp.is_empty() || pins.modules().is_empty()) {
        let servers: Vec<String> = servers.into_iter().cloned().collect();
        lock_servers(ui, settings, &servers, args.update, &mut pins)?;
    }
    let again: Vec<String> = settings.pins.modules().keys().filter(|_| all).cloned().collect();
    let again = again.iter().map(|path| settings.dir.join(path).display().to_string());
    let files: Vec<String> = files.into_iter().cloned().chain(again).collect();
    if !files.is_empty() {
        modules::lock(ui, settings, &files, args.update, &mut pins)?;
    }
    if pins != settings.pins {
        write_lock(ui, settings, &pins)?;
    }
    Ok(Exit::Done)
}

fn lock_servers(
    ui: &Ui,
    settings: &Settings,
    servers: &[String],
    update: bool,
    pins: &mut Pins,
) -> Result<(), Exit> {
    let offers = Offers::of(ui, settings, servers)?;
    for server in &offers.servers {
        if !update && matches!(pins.definitions(server), Some(Ok(_))) {
            ui.note(&format!("`{server}` is locked; `--update` asks it again"));
            continue;
        }
        let offered = offers.ask(server)?;
        let changes = changes(pins, server, &offered);
        show(ui, server, &changes);
        // Somebody has approved other ones.
        if !update && pins.knows(server) && !changes.is_empty() {
            let message = format!("the server `{server}` offers other tools than `{}` has", Settings::LOCK);
            ui.usage(&message, Some(&format!("look at them, and write `entail lock --update {server}`")));
            return Err(Exit::Failed);
        }
        pins.approve(server, &offered);
    }
    Ok(())
}

/// This build reads no Python.
#[cfg(not(feature = "frameworks"))]
mod modules {
    use super::*;

    pub(super) fn lock(ui: &Ui, _: &Settings, _: &[String], _: bool, _: &mut Pins) -> Result<(), Exit> {
        Err(ui.usage(
            "this program was built without a reader of Python",
            Some("build it with `--features frameworks`"),
        ))
    }
}

/// Modules of Python.
#[cfg(feature = "frameworks")]
mod modules {
    use super::*;
    use agentlang::NotImported;
    use diagnostics::{Sources, has_errors};
    use runtime::ModulePin;
    use session::load::{Imports, read_text};
    use session::python_file::PythonFile;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// Locks modules, and those that programs import.
    pub(super) fn lock(
        ui: &Ui,
        settings: &Settings,
        names: &[String],
        update: bool,
        pins: &mut Pins,
    ) -> Result<(), Exit> {
        let mut found: BTreeMap<String, ModulePin> = BTreeMap::new();
        for name in names {
            let modules = match name.ends_with(".py") {
                true => vec![module(ui, name)?],
                false => of_program(ui, name, settings)?,
            };
            found.extend(modules.iter().map(|m| m.pin(&settings.dir)));
        }
        for (path, new) in found {
            let known = pins.modules().get(&path);
            let changes =
                known.map_or_else(|| declared(&ModulePin::default(), &new), |old| changed(old, &new));
            if !update && known.is_some() {
                if changes.is_empty() {
                    ui.note(&format!("`{path}` is locked"));
                    continue;
                }
                show(ui, &path, &changes);
                let message = format!("`{path}` is not as `{}` has it", Settings::LOCK);
                ui.usage(&message, Some(&format!("look at it, and write `entail lock --update {path}`")));
                return Err(Exit::Failed);
            }
            show(ui, &path, &changes);
            pins.lock_module(&path, new);
        }
        Ok(())
    }

    fn module(ui: &Ui, path: &str) -> Result<PythonFile, Exit> {
        PythonFile::read(&mut Sources::new(), Path::new(path)).map_err(|NotImported { why, .. }| {
            ui.usage(&format!("cannot lock `{path}`: {why}"), None);
            Exit::Failed
        })
    }

    /// The modules that a program imports.
    fn of_program(ui: &Ui, path: &str, settings: &Settings) -> Result<Vec<PythonFile>, Exit> {
        let mut sources = Sources::new();
        let (id, text) = read_text(&mut sources, path)
            .map_err(|problem| super::super::say_problem(ui, &sources, problem))?;
        let mut imports = Imports::new(&mut sources, id).with_lock(Some(settings.pins.clone().into()));
        let (_, found) = agentlang::check_files(id, &text, &mut imports);
        let modules: Vec<PythonFile> = imports.modules().cloned().collect();
        if has_errors(&found) && modules.is_empty() {
            return Err(super::super::say_problem(ui, &sources, session::load::Problem::Wrong(found)));
        }
        if modules.is_empty() {
            ui.note(&format!("`{path}` imports no module of Python"));
        }
        Ok(modules)
    }

    /// Differences between a module as it is and as it was locked.
    fn changed(old: &ModulePin, new: &ModulePin) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (path, hash) in &new.files {
            match old.files.get(path) {
                Some(known) if known == hash => {}
                Some(_) => found.push((path.clone(), "changed".to_string())),
                None => found.push((path.clone(), "new file".to_string())),
            }
        }
        let gone = old.files.keys().filter(|path| !new.files.contains_key(*path));
        found.extend(gone.map(|path| (path.clone(), "gone".to_string())));
        found.extend(declared(old, new));
        found
    }

    fn declared(old: &ModulePin, new: &ModulePin) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (name, signature) in &new.declared {
            match old.declared.get(name) {
                Some(known) if known == signature => {}
                Some(_) => found.push((name.clone(), "changed: its type".to_string())),
                None => found.push((name.clone(), "new".to_string())),
            }
        }
        let gone = old.declared.keys().filter(|name| !new.declared.contains_key(*name));
        found.extend(gone.map(|name| (name.clone(), "gone".to_string())));
        found
    }
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
