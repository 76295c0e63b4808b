//! `entail lock`: writes what MCP servers offer, modules of Python and prices to `entail.lock`, and compares
//! with it.

use super::offers::{Offers, write_lock};
use crate::args::LockArgs;
use crate::ui::{Exit, Ui};
use core_ir::{Data, ToolDecl};
use diagnostics::{Sources, clip, visible};
use frontend_kit::doc::Limits;
use frontend_kit::{File, Recognized};
use runtime::{PinState, Pins, ServerOffer, ServerTool};
use serde_json::json;
use session::bound::Pricing;
use session::locked::{model_pins, not_locked, prices_that_differ};
use session::settings::Settings;
use std::collections::BTreeSet;
use std::convert::identity;
use std::sync::Arc;

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
    let is_file = |name: &&String| {
        let ends = [".agent", ".json", ".lam", ".py", ".yaml", ".yml"];
        !settings.mcp.contains_key(*name) && ends.iter().any(|end| name.ends_with(end))
    };
    let (files, servers): (Vec<&String>, Vec<&String>) = args.names.iter().partition(is_file);
    let mut pins = settings.pins.clone();
    let all = args.names.is_empty();
    let knows_others = !pins.modules().is_empty() || !pins.models().is_empty();
    if !servers.is_empty() || all && (!settings.mcp.is_empty() || !knows_others) {
        let servers: Vec<String> = servers.into_iter().cloned().collect();
        lock_servers(ui, settings, &servers, args.update, &mut pins)?;
    }
    let (mut paths, mut models) = (BTreeSet::new(), BTreeSet::new());
    if all {
        let module = |path: &String| settings.dir.join(path).display().to_string();
        paths.extend(settings.pins.modules().keys().map(module));
        models.extend(settings.pins.models().keys().cloned());
    }
    for file in files {
        match file.ends_with(".py") && !is_program(file) {
            true => drop(paths.insert(file.clone())),
            false => of_program(ui, file, settings, &mut paths, &mut models)?,
        }
    }
    if !paths.is_empty() {
        modules::lock(ui, settings, &paths, args.update, &mut pins)?;
    }
    lock_models(ui, settings, &models, args.update, &mut pins)?;
    if pins != settings.pins {
        write_lock(ui, settings, &pins)?;
    }
    Ok(Exit::Done)
}

/// Returns whether a module of Python is a program of a framework.
fn is_program(path: &str) -> bool {
    let read = session::load::read_text(&mut Sources::new(), path);
    let file = read.map(|(id, text)| File::read(id, path, &text, &Limits::default()));
    file.is_ok_and(|file| matches!(session::frameworks::recognize(&file), Recognized::Frontend(_)))
}

/// The modules of Python and the models that a program names.
fn of_program(
    ui: &Ui,
    path: &str,
    settings: &Settings,
    paths: &mut BTreeSet<String>,
    models: &mut BTreeSet<String>,
) -> Result<(), Exit> {
    let mut sources = Sources::new();
    let loaded = session::load::load(&mut sources, path, &settings.loading(None))
        .map_err(|problem| super::say_problem(ui, &sources, problem))?;
    let pricing = Pricing::of(settings, None);
    models.extend(loaded.runnables.iter().flat_map(|r| pricing.models(&r.code)));
    let handlers = loaded.declared.iter().filter_map(|t| t.handler.as_ref()?.field("python")?.field("file"));
    paths.extend(handlers.filter_map(Data::as_str).map(String::from));
    Ok(())
}

fn lock_models(
    ui: &Ui,
    settings: &Settings,
    models: &BTreeSet<String>,
    update: bool,
    pins: &mut Pins,
) -> Result<(), Exit> {
    for (name, now) in model_pins(settings, models) {
        let locked = pins.models().get(&name);
        let has_changed = locked.is_some_and(|locked| !locked.has_price_of(&now));
        let state = match locked {
            None => Some(format!("new: {now}")),
            Some(locked) => has_changed.then(|| format!("changed: {locked}, now {now}")),
        };
        show(ui, ("model", &name), &Vec::from_iter(state.map(|state| ("price".to_string(), state))));
        if has_changed && !update {
            let message = format!("the price of `{}` is not as `{}` has it", clip(&name), Settings::LOCK);
            ui.usage(&message, Some("look at it, and write `entail lock --update`"));
            return Err(Exit::Failed);
        }
        // The date and the source of a price may be other ones.
        if update || locked.is_none() {
            pins.lock_model(&name, now);
        }
    }
    Ok(())
}

/// Compares what a program uses with the lock. A price that differs is a warning; with `--locked` it is an
/// error, and so is what the lock does not have.
///
/// # Errors
/// The user has been told.
pub(super) fn compare(
    ui: &Ui,
    settings: &Settings,
    models: &BTreeSet<String>,
    declared: &[Arc<ToolDecl>],
    is_required: bool,
) -> Result<(), Exit> {
    let differ = prices_that_differ(settings, models);
    if !is_required {
        for other in differ {
            ui.note(&format!("warning: {other}\n  help: look at it, and write `entail lock --update`"));
        }
        return Ok(());
    }
    let lacking = not_locked(settings, models, declared);
    if let [first, rest @ ..] = &lacking[..] {
        let more = match rest.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let message = format!("`{}` lacks {first}{more}", Settings::LOCK);
        ui.usage(&message, Some("`entail lock` with the name of the program or server writes it"));
        return Err(Exit::Failed);
    }
    match differ.first() {
        Some(other) => {
            ui.usage(&other.to_string(), Some("look at it, and write `entail lock --update`"));
            Err(Exit::Failed)
        }
        None => Ok(()),
    }
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
        let ServerOffer { version, tools: offered } = offers.ask(server)?;
        let changes = changes(pins, server, &offered);
        show(ui, ("server", server), &changes);
        if let (Some(was), Some(now)) = (pins.version_of(server), &version)
            && was != now
        {
            let state = format!("changed: {}, now {}", clip(was), clip(now));
            show(ui, ("server", server), &[("version".to_string(), state)]);
        }
        // Somebody has approved other ones.
        if !update && pins.knows(server) && !changes.is_empty() {
            let message = format!("the server `{server}` offers other tools than `{}` has", Settings::LOCK);
            ui.usage(&message, Some(&format!("look at them, and write `entail lock --update {server}`")));
            return Err(Exit::Failed);
        }
        pins.approve(server, &offered);
        pins.lock_version(server, version.as_deref());
    }
    Ok(())
}

/// This build reads no Python.
#[cfg(not(feature = "frameworks"))]
mod modules {
    use super::*;

    pub(super) fn lock(
        ui: &Ui,
        _: &Settings,
        _: &BTreeSet<String>,
        _: bool,
        _: &mut Pins,
    ) -> Result<(), Exit> {
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
    use runtime::ModulePin;
    use session::python_file::PythonFile;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// Locks modules.
    pub(super) fn lock(
        ui: &Ui,
        settings: &Settings,
        paths: &BTreeSet<String>,
        update: bool,
        pins: &mut Pins,
    ) -> Result<(), Exit> {
        let mut found: BTreeMap<String, ModulePin> = BTreeMap::new();
        for path in paths {
            found.extend([module(ui, path)?.pin(&settings.dir)]);
        }
        for (path, new) in found {
            let known = pins.modules().get(&path);
            let changes =
                known.map_or_else(|| declared(&ModulePin::default(), &new), |old| changed(old, &new));
            show(ui, ("module", &path), &changes);
            if !update && known.is_some() {
                if changes.is_empty() {
                    ui.note(&format!("`{path}` is locked"));
                    continue;
                }
                let message = format!("`{path}` is not as `{}` has it", Settings::LOCK);
                ui.usage(&message, Some(&format!("look at it, and write `entail lock --update {path}`")));
                return Err(Exit::Failed);
            }
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

    /// Differences between a module as it is and as it was locked.
    fn changed(old: &ModulePin, new: &ModulePin) -> Vec<(String, String)> {
        let mut found = differing(&old.files, &new.files, ["changed", "new file"]);
        found.extend(declared(old, new));
        found
    }

    fn declared(old: &ModulePin, new: &ModulePin) -> Vec<(String, String)> {
        differing(&old.declared, &new.declared, ["changed: its type", "new"])
    }

    /// The entries that are not as they were, with the words for one that has changed and for a new one.
    fn differing(
        old: &BTreeMap<String, String>,
        new: &BTreeMap<String, String>,
        [changed, added]: [&str; 2],
    ) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, is) in new {
            match old.get(name) {
                Some(was) if was == is => {}
                Some(_) => found.push((name.clone(), changed.into())),
                None => found.push((name.clone(), added.into())),
            }
        }
        let gone = old.keys().filter(|name| !new.contains_key(*name));
        found.extend(gone.map(|name| (name.clone(), "gone".into())));
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

/// Shows what is new or other in something, such as a server.
fn show(ui: &Ui, (kind, name): (&str, &str), changes: &[(String, String)]) {
    let part = if kind == "server" { "tool" } else { "part" };
    for (of, state) in changes {
        match ui.is_json() {
            true => ui.result(&json!({ kind: name, part: of, "state": state }).to_string()),
            false => ui.result(&format!("{name}  {}  ({state})", visible(of, MAX_NAME_CHARS))),
        }
    }
}
