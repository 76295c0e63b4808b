//! `entail guard`: stands between an assistant and its MCP servers.

use super::{canceled, guard_hook, guard_install, guard_watch};
use crate::args::{GuardAction, GuardArgs};
use crate::interrupt::unless_canceled;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::serve::guard::{
    AnswerForm, Answered, DecisionLog, GuardEnd, GuardOptions, Guarded, Inquiry, LabelStore, Note,
    Quarantine, describe, guard_stdio, hook_folder,
};
use core_ir::{EnumType, Type};
use diagnostics::{Sources, visible};
use policy::Policy;
use runtime::{CancellationToken, Pins, Redactor, ServerTool};
use serde_json::json;
use session::load::replace_file;
use session::quarantine::Quarantined;
use session::server_list::{self, Launch, ListedServer};
use session::settings::read_lock;
use session::{Settings, SettingsError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a description that are shown.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// Runs the command.
pub fn guard(ui: &Ui, args: &GuardArgs) -> Exit {
    match &args.action {
        Some(GuardAction::Install(args)) => guard_install::install(ui, args),
        Some(GuardAction::Uninstall(args)) => guard_install::uninstall(ui, args),
        Some(GuardAction::Hook(args)) => guard_hook::hook(ui, args),
        Some(GuardAction::Watch(args)) => guard_watch::watch(ui, args),
        None => start(ui, args),
    }
}

fn start(ui: &Ui, args: &GuardArgs) -> Exit {
    let mut settings = match setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    if let Some(lock) = &args.lock {
        match read_lock(lock) {
            Ok(pins) => settings.pins = pins,
            Err(e) => return setup::refuse(ui, e),
        }
    }
    let servers = match servers(ui, args, &settings) {
        Ok(servers) => servers,
        Err(e) => return setup::refuse(ui, e),
    };
    #[cfg(feature = "serve")]
    let is_http = args.http.is_some();
    #[cfg(not(feature = "serve"))]
    let is_http = false;
    // One client needs one thread: others would only wait for each other.
    let runtime = match is_http {
        true => tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build(),
        false => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    if args.approve {
        return approve_all(ui, args, &settings, servers, &runtime);
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
    warn_of_unapproved(ui, &servers, &settings.pins);
    let labels = match labels(args, &policy, &settings) {
        Ok(labels) => labels,
        Err(why) => return ui.usage(&why, Some("name another file with `--labels FILE`")),
    };
    let decisions = match decisions(args, &servers, &settings) {
        Ok(decisions) => decisions,
        Err(why) => return ui.usage(&why, None),
    };
    let hooks = match args.hooks.then(|| hook_folder(&settings.environment)).transpose() {
        Ok(hooks) => hooks,
        Err(why) => return ui.usage(&why, None),
    };
    let quarantine = match args.quarantine.as_deref().map(|model| quarantined(ui, model)).transpose() {
        Ok(quarantine) => quarantine,
        Err(exit) => return exit,
    };
    let options = GuardOptions {
        secrets: settings.environment.secrets().map(|(_, secret)| secret).collect(),
        quarantine,
        labels,
        hooks,
        servers,
        policy,
        model: args.model.clone(),
        pins: settings.pins.clone(),
        observe: args.observe,
        max_message: args.max_message,
    };
    let cancel = CancellationToken::new();
    crate::interrupt::cancels(cancel.clone());
    let mut told = Told { ui, decisions };
    #[cfg(feature = "serve")]
    if let Some(address) = args.http {
        return over_http(&runtime, address, options, &cancel, &settings, told);
    }
    let mut log = |server: Option<&str>, note: &Note| told.tell(None, server, note);
    let ended = runtime.block_on(guard_stdio(options, &cancel, &mut log));
    // Writing to standard output can't be interrupted.
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

/// The model that questions about handles are put to.
fn quarantined(ui: &Ui, model: &str) -> Result<Quarantine, Exit> {
    let settings = setup::settings(ui)?;
    let session = session::Session::new(settings, session::RunOptions::default());
    let quarantined = Quarantined::new(session, model).map_err(|e| setup::refuse_config(ui, &e))?;
    let quarantined = Arc::new(quarantined);
    let ask = move |inquiry: Inquiry| -> Answered {
        let quarantined = quarantined.clone();
        Box::pin(async move {
            let form = match &inquiry.form {
                AnswerForm::Text => Type::Str,
                AnswerForm::Number => Type::Num,
                AnswerForm::Boolean => Type::Bool,
                AnswerForm::Choice(texts) => Type::Enum(Arc::new(EnumType::literals(
                    texts.iter().map(|t| t.as_str().into()).collect(),
                ))),
            };
            quarantined.ask(&inquiry.question, &inquiry.about, form).await
        })
    };
    Ok(Quarantine { model: model.into(), ask: Arc::new(ask) })
}

/// Where notes of a guard go: to standard error, and to the file of decisions.
struct Told<'u> {
    ui: &'u Ui,
    decisions: Option<DecisionLog>,
}

impl Told<'_> {
    /// Tells a note of a session, by its number if there are several.
    fn tell(&mut self, session: Option<u64>, server: Option<&str>, note: &Note) {
        say(self.ui, session, server, note);
        // A guard that can't say what it decides goes on deciding.
        if let Some(file) = &mut self.decisions
            && let Err(why) = file.add_of(session, server, note)
        {
            self.ui.say(&format!("entail guard: {why}; further decisions are not written"));
            self.decisions = None;
        }
    }
}

/// Name of the variable with the token that clients show over HTTP.
#[cfg(feature = "serve")]
const TOKEN: &str = "ENTAIL_GUARD_TOKEN";

/// Guards clients over HTTP until it is canceled.
#[cfg(feature = "serve")]
fn over_http(
    runtime: &tokio::runtime::Runtime,
    address: std::net::SocketAddr,
    options: GuardOptions,
    cancel: &CancellationToken,
    settings: &Settings,
    told: Told<'_>,
) -> Exit {
    let ui = told.ui;
    let given = settings.environment.get(TOKEN).filter(|token| !token.is_empty()).map(str::to_string);
    let is_given = given.is_some();
    let token = match given {
        Some(token) => token,
        None => {
            let mut bytes = [0; 24];
            if let Err(e) = getrandom::fill(&mut bytes) {
                return ui.usage(&format!("no token can be made: {e}"), Some("set `ENTAIL_GUARD_TOKEN`"));
            }
            runtime::hex(&bytes)
        }
    };
    // Whoever does not read what is told holds the guard up, and not its memory.
    let (send, notes) = std::sync::mpsc::sync_channel(1024);
    let log: ::serve::guard::FrontLog =
        Arc::new(std::sync::Mutex::new(move |session: u64, server: Option<&str>, note: &Note| {
            // Nobody listens any more: the guard ends.
            let _ = send.send((session, server.map(String::from), note.clone()));
        }));
    let front = match runtime.block_on(::serve::guard::HttpFront::bind(address, &token, options, log)) {
        Ok(front) => front,
        Err(why) => {
            return ui.usage(&why, Some("choose another address of this machine, such as 127.0.0.1:0"));
        }
    };
    ui.say(&match is_given {
        true => format!("entail guard: {} (clients show the token of `{TOKEN}`)", front.url()),
        false => format!("entail guard: {} (header `Authorization: Bearer {token}`)", front.url()),
    });
    let mut told = told;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (session, server, note) in notes {
                told.tell(Some(session), server.as_deref(), &note);
            }
        });
        runtime.block_on(front.run(cancel));
    });
    Exit::Canceled
}

/// The file of labels, if the policy needs one.
fn labels(args: &GuardArgs, policy: &Policy, settings: &Settings) -> Result<Option<Arc<LabelStore>>, String> {
    if !policy.has_memory() {
        return Ok(None);
    }
    let usual = || LabelStore::usual_path(&settings.environment);
    let path =
        args.labels.clone().or_else(usual).ok_or("there is no folder for labels: `HOME` is not set")?;
    LabelStore::open(&path).map(|store| Some(Arc::new(store)))
}

/// The file of decisions, if one is named.
fn decisions(
    args: &GuardArgs,
    servers: &Guarded,
    settings: &Settings,
) -> Result<Option<DecisionLog>, String> {
    let Some(path) = &args.log else { return Ok(None) };
    let of_environment = settings.environment.secrets().map(|(_, secret)| secret);
    let secrets = of_environment.chain(each(servers).iter().flat_map(ListedServer::secrets));
    // Sessions of one file are told apart by when they began, and by whom.
    let session = format!("{:x}-{:x}", now_millis(), std::process::id());
    DecisionLog::open(path, &session, Redactor::new(secrets)).map(Some)
}

fn now_millis() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_millis())
}

/// Writes a note to standard error: standard output is the client's.
fn say(ui: &Ui, session: Option<u64>, server: Option<&str>, note: &Note) {
    // What is made as it should be is no news.
    if matches!(note, Note::Made { .. }) {
        return;
    }
    if ui.is_json() {
        let mut object = note.to_json();
        if let Some(server) = server {
            object["server"] = server.into();
        }
        if let Some(session) = session {
            object["session"] = session.into();
        }
        return ui.say(&object.to_string());
    }
    let server = server.map_or(String::new(), |s| format!("{}: ", visible(s, MAX_DESCRIPTION_CHARS)));
    let session = session.map_or(String::new(), |session| format!("session {session}: "));
    ui.note(&format!("entail guard: {session}{server}{}", visible(&note.to_string(), 4000)));
}

/// The servers that are guarded: the command, or those of a list.
fn servers(ui: &Ui, args: &GuardArgs, settings: &Settings) -> Result<Guarded, SettingsError> {
    let Some(path) = &args.mcp_config else {
        let words = args.command.iter().map(|w| w.to_string_lossy());
        let name = args.server.clone().unwrap_or_else(|| words.collect::<Vec<_>>().join(" "));
        let launch = Launch::Process { command: args.command.clone(), env: Vec::new(), folder: None };
        return Ok(Guarded::One(ListedServer { name, launch }));
    };
    let folder = std::env::current_dir().map_err(|e| format!("the current folder is not known: {e}"))?;
    let list = server_list::read(path, &folder, &settings.environment)?;
    for (name, why) in &list.unusable {
        let (name, why) = (visible(name, MAX_DESCRIPTION_CHARS), visible(why, MAX_DESCRIPTION_CHARS));
        ui.note(&format!("entail guard: the server `{name}` is left out: {why}"));
    }
    if list.servers.is_empty() {
        return Err(format!("`{}` lists no server that can be started", Path::new(path).display()).into());
    }
    Ok(Guarded::List(list.servers))
}

fn each(servers: &Guarded) -> &[ListedServer] {
    match servers {
        Guarded::One(server) => std::slice::from_ref(server),
        Guarded::List(servers) => servers,
    }
}

fn warn_of_unapproved(ui: &Ui, servers: &Guarded, pins: &Pins) {
    let unknown = each(servers).iter().filter(|s| !pins.knows(&s.name));
    let unknown: Vec<String> =
        unknown.map(|s| format!("`{}`", visible(&s.name, MAX_DESCRIPTION_CHARS))).collect();
    if !unknown.is_empty() {
        ui.note(&format!(
            "entail guard: nothing of {} is approved, so descriptions of tools are untrusted text \
             (help: `entail guard --approve` with the same servers)",
            unknown.join(", ")
        ));
    }
}

/// Approves the servers, or the one that is named.
fn approve_all(
    ui: &Ui,
    args: &GuardArgs,
    settings: &Settings,
    servers: Guarded,
    runtime: &tokio::runtime::Runtime,
) -> Exit {
    let is_list = matches!(servers, Guarded::List(_));
    let only = args.server.as_deref().filter(|_| is_list);
    let chosen: Vec<&ListedServer> =
        each(&servers).iter().filter(|s| only.is_none_or(|only| s.name == only)).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = each(&servers).iter().map(|s| s.name.as_str()).collect();
        let help = format!("it lists: {}", names.join(", "));
        return ui.usage(&format!("the list has no server `{}`", only.unwrap_or_default()), Some(&help));
    }
    let (mut approved, mut exit) = (Vec::new(), Exit::Done);
    for server in chosen {
        match unless_canceled(runtime, describe(&server.launch, args.max_message)) {
            // What was said until now is approved as a whole or not at all.
            None => return canceled(ui),
            Some(Ok(said)) => {
                show(ui, &server.name, &said, is_list);
                approved.push((&server.name, said));
            }
            Some(Err(why)) => {
                ui.usage(&format!("`{}`: {why}", visible(&server.name, MAX_DESCRIPTION_CHARS)), None);
                exit = Exit::Failed;
            }
        }
    }
    if approved.is_empty() && !matches!(exit, Exit::Done) {
        return exit;
    }
    let path = args.lock.clone().unwrap_or_else(|| settings.dir.join(Settings::LOCK));
    // Another command may have approved servers while these were asked.
    let mut pins = match read_lock(&path) {
        Ok(pins) => pins,
        Err(e) => return setup::refuse(ui, e),
    };
    for (name, said) in &approved {
        pins.approve(name, said);
    }
    if let Err(e) = replace_file(&path, pins.to_toml()) {
        return ui.cannot_write(path.display(), &e);
    }
    ui.note(&format!("approved in `{}`; what changes is refused from now on", path.display()));
    exit
}

/// Shows what a server says of itself.
fn show(ui: &Ui, server: &str, said: &[ServerTool], is_list: bool) {
    let prefix = if is_list { ::serve::guard::tool_prefix(server) } else { String::new() };
    for tool in said {
        if ui.is_json() {
            ui.result(
                &json!({"server": server, "tool": tool.name, "description": tool.description,
                    "input": tool.input, "hash": tool.hash})
                .to_string(),
            );
            continue;
        }
        ui.result(&visible(&format!("{prefix}{}", tool.name), MAX_DESCRIPTION_CHARS));
        if !tool.description.is_empty() {
            ui.result(&format!("    {}", visible(&tool.description, MAX_DESCRIPTION_CHARS)));
        }
    }
}
