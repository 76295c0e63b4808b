//! `entail guard install` and `uninstall`: put a guard in front of the servers of a client, and take it away.

use crate::args::InstallArgs;
use crate::setup;
use crate::ui::{Exit, Ui};
use diagnostics::{Sources, visible};
use runtime::Redactor;
use serde_json::json;
use session::client_config::{self, Client, Edited};
use session::client_hooks::{self, ClientHooks};
use session::load::{read_kept, reason, replace_private_file};
use session::{Settings, SettingsError};
use std::path::{Path, PathBuf};

/// Characters of a path or a reason that are shown.
const MAX_SHOWN: usize = 400;

/// The file of a client, and the one with its servers.
struct Files {
    config: PathBuf,
    text: String,
    servers: PathBuf,
    /// The text of the latter, if it is there.
    moved: Option<String>,
}

/// Puts a guard in front of the servers of a client.
pub fn install(ui: &Ui, args: &InstallArgs) -> Exit {
    let settings = match setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let (client, files) = match chosen(args, &settings) {
        Ok(chosen) => chosen,
        Err(e) => return setup::refuse(ui, e),
    };
    let policy = settings.loading(args.policy.as_deref()).policy;
    let Some(policy) = policy else {
        let help = "name one with `--policy FILE`, or as `policy` in `entail.toml`; `entail audit FILE --policy-out \
                    policy.toml` writes one for the servers of a list";
        return ui.usage("a guard needs a policy", Some(help));
    };
    let mut sources = Sources::new();
    if let Err(problem) = session::policy::read(&mut sources, Some(&policy)) {
        return super::say_problem(ui, &sources, problem);
    }
    let lock = settings.dir.join(Settings::LOCK);
    let mut words = match words(&policy, &lock, &files.servers) {
        Ok(words) => words,
        Err(why) => return ui.usage(&why, None),
    };
    let hooks = match args.hooks.then(|| hooks(client, &files, &policy)).transpose() {
        Ok(hooks) => hooks,
        Err(e) => return setup::refuse(ui, e),
    };
    if hooks.is_some() {
        words.push("--hooks".into());
    }
    let edited = match client_config::install(client, &files.text, files.moved.as_deref(), &words) {
        Ok(edited) => edited,
        Err(why) => return wrong(ui, &files.config, &why),
    };
    if args.show {
        if let Some(hooks) = hooks.filter(|hooks| !hooks.file.exists()) {
            ui.result(&ui.diff(&shown(&hooks.file), "", &hooks.text));
        }
        return show(ui, client, &files, &edited);
    }
    // The servers are in their file before they are in no other.
    if let Err(why) =
        write(&files.servers, &edited.servers).and_then(|()| write(&files.config, &edited.config))
    {
        return setup::refuse(ui, why);
    }
    if let Some(Err(e)) = hooks.map(|hooks| write_hooks(ui, &hooks)) {
        return setup::refuse(ui, e);
    }
    told(ui, "installed", client, &files);
    ui.note(&format!(
        "restart {}; approve what the servers say with `entail guard --approve --lock {} --mcp-config {}`",
        client.title,
        shown(&std::path::absolute(&lock).unwrap_or(lock)),
        shown(&files.servers)
    ));
    Exit::Done
}

/// Puts the servers of a client back.
pub fn uninstall(ui: &Ui, args: &InstallArgs) -> Exit {
    let settings = match setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let (client, files) = match chosen(args, &settings) {
        Ok(chosen) => chosen,
        Err(e) => return setup::refuse(ui, e),
    };
    let Some(moved) = &files.moved else {
        let why = match client_config::is_installed(client, &files.text) {
            true => format!("the file with its servers, `{}`, is gone", shown(&files.servers)),
            false => "no guard stands in front of its servers".into(),
        };
        return wrong(ui, &files.config, &why);
    };
    let config = match client_config::uninstall(client, &files.text, moved) {
        Ok(config) => config,
        Err(why) => return wrong(ui, &files.config, &why),
    };
    if args.show {
        let edited = Edited { config, servers: String::new() };
        return show(ui, client, &files, &edited);
    }
    if let Err(why) = write(&files.config, &config) {
        return setup::refuse(ui, why);
    }
    if let Err(e) = std::fs::remove_file(&files.servers) {
        ui.say(&format!("warning: cannot remove `{}`: {}", shown(&files.servers), reason(&e)));
    }
    remove_hooks(ui, client, &files);
    told(ui, "uninstalled", client, &files);
    ui.note(&format!("restart {}", client.title));
    Exit::Done
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string(), MAX_SHOWN)
}

fn wrong(ui: &Ui, config: &Path, why: &str) -> Exit {
    ui.usage(&format!("`{}`: {}", shown(config), visible(why, MAX_SHOWN)), None)
}

fn told(ui: &Ui, what: &str, client: &Client, files: &Files) {
    let (config, servers) = (shown(&files.config), shown(&files.servers));
    if ui.is_json() {
        let line = json!({"event": what, "client": client.name, "config": config, "servers": servers});
        return ui.result(&line.to_string());
    }
    ui.result(&match what {
        "installed" => format!("the servers of `{config}` are in `{servers}` now, behind a guard"),
        _ => format!("the servers of `{config}` are there again"),
    });
}

/// The client and its file: the one that is named, that of the project here, or that of the user.
fn chosen(args: &InstallArgs, settings: &Settings) -> Result<(&'static Client, Files), SettingsError> {
    let client = Client::named(&args.client)?;
    let folder = std::env::current_dir().map_err(|e| format!("the current folder is not known: {e}"))?;
    let project = client.project_file(&folder).filter(|_| !args.user);
    let candidates: Vec<PathBuf> = match &args.file {
        Some(file) => vec![folder.join(file)],
        None => project.into_iter().chain(client.user_file(&settings.environment)).collect(),
    };
    let Some(config) = candidates.iter().find(|file| args.file.is_some() || file.is_file()) else {
        let all: Vec<String> = candidates.iter().map(|c| format!("`{}`", shown(c))).collect();
        let what = format!("{} has no list of servers: there is no {}", client.title, all.join(" and no "));
        return Err(SettingsError::new(what).with_help(Some("name its file with `--file FILE`".into())));
    };
    let text = read(config)?.ok_or_else(|| format!("there is no `{}`", shown(config)))?;
    let servers = client_config::servers_file(config);
    let moved = read(&servers)?;
    Ok((client, Files { config: config.clone(), text, servers, moved }))
}

/// The text of a file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, SettingsError> {
    match read_kept(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(SettingsError::unreadable(path, &e)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), SettingsError> {
    replace_private_file(path, text).map_err(|e| SettingsError::unwritable(path, &e))
}

/// The hooks of a client, which ask the guard about tools that the client has by itself.
fn hooks(client: &Client, files: &Files, policy: &Path) -> Result<ClientHooks, SettingsError> {
    let words = hook_words(client, policy)?;
    client_hooks::of(client.name, &files.config, &words).ok_or_else(|| {
        let why =
            format!("{} runs no commands before its own tools, so nothing can ask the guard", client.title);
        SettingsError::new(why).with_help(Some("install the guard without `--hooks`".into()))
    })
}

fn hook_words(client: &Client, policy: &Path) -> Result<Vec<String>, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program is not known: {e}"))?;
    let words = ["guard", "hook", "--client", client.name, "--policy"].map(String::from);
    Ok([vec![absolute(&program)?], words.to_vec(), vec![absolute(policy)?]].concat())
}

/// Writes the hooks into a file of their own. Into one that is there, the user has to put them.
fn write_hooks(ui: &Ui, hooks: &ClientHooks) -> Result<(), SettingsError> {
    match read(&hooks.file)? {
        Some(text) if text == hooks.text => {}
        Some(text) if HOOK.into_iter().all(|word| text.contains(word)) => {
            ui.note(&format!("`{}` has the hooks", shown(&hooks.file)));
        }
        Some(_) => {
            ui.note(&format!("add the hooks to `{}`:\n{}", shown(&hooks.file), hooks.text.trim_end()));
        }
        None => {
            if let Some(folder) = hooks.file.parent() {
                std::fs::create_dir_all(folder).map_err(|e| SettingsError::unwritable(folder, &e))?;
            }
            write(&hooks.file, &hooks.text)?;
            ui.note(&format!("the hooks are in `{}`", shown(&hooks.file)));
        }
    }
    Ok(())
}

/// Words of a command that asks the guard.
const HOOK: [&str; 2] = ["guard hook", "--client"];

/// Removes a file that has nothing but the hooks; tells of hooks in another one.
fn remove_hooks(ui: &Ui, client: &Client, files: &Files) {
    let Some(at) = client_hooks::of(client.name, &files.config, &[]) else { return };
    let Ok(Some(text)) = read(&at.file) else { return };
    if !HOOK.into_iter().all(|word| text.contains(word)) {
        return;
    }
    match client_hooks::is_own(client.name, &files.config, &text) && std::fs::remove_file(&at.file).is_ok() {
        true => {}
        false => ui.note(&format!("remove the hooks `entail guard hook` from `{}`", shown(&at.file))),
    }
}

/// The words that start the guard. Clients start it in some folder, so all paths are absolute.
fn words(policy: &Path, lock: &Path, servers: &Path) -> Result<Vec<String>, String> {
    let program = std::env::current_exe().map_err(|e| format!("this program is not known: {e}"))?;
    Ok(vec![
        absolute(&program)?,
        "guard".into(),
        "--policy".into(),
        absolute(policy)?,
        "--lock".into(),
        absolute(lock)?,
        "--mcp-config".into(),
        absolute(servers)?,
    ])
}

/// A path that holds in any folder, as text.
fn absolute(path: &Path) -> Result<String, String> {
    let path = std::path::absolute(path).map_err(|e| format!("the current folder is not known: {e}"))?;
    let text = path.to_str().map(String::from);
    text.ok_or_else(|| format!("`{}` is not UTF-8, which the client's file needs", shown(&path)))
}

/// Shows what would be written, without the values of variables and headers.
fn show(ui: &Ui, client: &Client, files: &Files, edited: &Edited) -> Exit {
    let moved = files.moved.as_deref().unwrap_or("");
    let secrets = [files.text.as_str(), moved].into_iter().flat_map(|text| client.secrets(text));
    let redactor = Redactor::new(secrets).for_records();
    let both =
        [(&files.config, files.text.as_str(), &edited.config), (&files.servers, moved, &edited.servers)];
    for (path, before, after) in both {
        let (before, after) = (redactor.text(before), redactor.text(after));
        if ui.is_json() {
            ui.result(&json!({"file": shown(path), "before": &*before, "after": &*after}).to_string());
        } else if before != after {
            ui.result(&ui.diff(&shown(path), &before, &after));
        }
    }
    Exit::Done
}
