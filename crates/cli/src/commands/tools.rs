//! `entail tools`: what a program can call, and what MCP servers offer; calls a tool by itself.

use super::offers::{Offers, write_lock};
use super::run::{InputArgs, Running, conclude, input, pretty, show_result, world};
use super::{canceled, load_or_say};
use crate::args::{ToolsArgs, WorldArgs};
use crate::interrupt::unless_canceled;
use crate::ui::{Exit, Ui};
use core_ir::{Builder, Code, EffectClass, Term, ToolDecl, Type};
use diagnostics::{Sources, visible};
use policy::Policy;
use runtime::{PinState, Pins, ServerTool};
use serde_json::json;
use session::load::{Loaded, Runnable};
use session::settings::Settings;
#[cfg(feature = "frameworks")]
use session::tool_schemas::of_server;
use std::collections::BTreeMap;
use std::convert::identity;
use std::fmt::Write as _;
use std::sync::Arc;

/// Characters of a description that are shown.
const MAX_DESCRIPTION_CHARS: usize = 300;

/// Characters of an address to authorize at that are shown.
const MAX_ADDRESS_CHARS: usize = 4000;

/// Runs the command.
pub fn tools(ui: &Ui, args: &ToolsArgs) -> Exit {
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    if let Some(server) = &args.login {
        return login(ui, &settings, server);
    }
    if let Some(servers) = &args.approve {
        return servers_of(ui, &settings, servers, Listing::Approve).unwrap_or_else(identity);
    }
    if let Some(servers) = &args.discover {
        let listing = if args.to.is_some() { Listing::Declare } else { Listing::Show };
        return servers_of(ui, &settings, servers, listing).unwrap_or_else(identity);
    }
    let Some(file) = &args.file else {
        let servers: Vec<&str> = settings.mcp.keys().map(String::as_str).collect();
        let help = match servers.is_empty() {
            true => "name a program: entail tools FILE".to_string(),
            false => format!("name a program, or look at a server with `--discover`: {}", servers.join(", ")),
        };
        return ui.usage("no program was given to list the tools of", Some(&help));
    };
    let mut sources = Sources::new();
    let loaded = match load_or_say(ui, &mut sources, file, args.policy.as_deref()) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let Loaded { runnables, policy, .. } = loaded;
    let mut known: BTreeMap<String, Arc<ToolDecl>> = BTreeMap::new();
    for tool in runnables.iter().flat_map(|r| &r.code.tools) {
        known.entry(tool.name.to_string()).or_insert_with(|| tool.clone());
    }
    if let Some(test) = &args.test {
        // INVARIANT: clap takes one or two.
        let (name, given) = (test.first().map_or("", String::as_str), test.get(1));
        let Some(tool) = known.get(name) else {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let help = (!names.is_empty()).then(|| format!("there is: {}", names.join(", ")));
            return ui.usage(&format!("`{file}` has no tool `{name}`"), help.as_deref());
        };
        let owner = runnables.iter().find(|r| r.code.tools.iter().any(|t| t.name == tool.name));
        let Some(code) = owner.and_then(|r| only(tool, &r.code)) else {
            return ui.usage(&format!("`{name}` cannot be called by itself"), None);
        };
        return match call(ui, args, &sources, policy.as_ref(), code, given) {
            Ok(exit) | Err(exit) => exit,
        };
    }
    let handlers = settings.tools();
    let mut exit = Exit::Done;
    for tool in known.values() {
        let problem = handlers.check(tool).err().map(|e| e.one_line());
        if problem.is_some() {
            exit = Exit::Failed;
        }
        if ui.is_json() {
            ui.result(&json!({
                "tool": &*tool.name, "signature": signature(tool), "effect": effect(tool), "approve": tool.may_ask(),
                "policy": tool.policy.is_some(), "description": tool.description.as_deref(), "problem": problem,
            }).to_string());
            continue;
        }
        let mut marks = vec![effect(tool).to_string()];
        if tool.may_ask() {
            marks.push("approve".into());
        }
        if tool.policy.is_some() {
            marks.push("policy".into());
        }
        ui.result(&format!("{}  {}", signature(tool), marks.join(", ")));
        if let Some(text) = &tool.description {
            ui.result(&format!("    {}", visible(text, MAX_DESCRIPTION_CHARS)));
        }
        if let Some(problem) = problem {
            ui.result(&format!("    cannot be called: {problem}"));
        }
    }
    exit
}

/// The term that is a tool, as a program declares it.
fn only(tool: &ToolDecl, program: &Code) -> Option<Code> {
    let mut b = Builder::new();
    let id = b.tool(tool.clone());
    let root = b.add(Term::Tool(id), tool.span);
    b.finish(root, program.globals()).ok()
}

/// Calls a tool as a run would: checked, under its policy, after approval if it wants that, within the limits
/// of the settings.
fn call(
    ui: &Ui,
    args: &ToolsArgs,
    sources: &Sources,
    policy: Option<&Policy>,
    code: Code,
    given: Option<&String>,
) -> Result<Exit, Exit> {
    let tool = code.tools.first().cloned();
    let params = tool.iter().flat_map(|t| &t.params).map(|p| (p.name.clone(), p.ty.clone())).collect();
    let name = tool.map_or_else(String::new, |t| t.name.to_string());
    let runnable = Runnable {
        name,
        code: Arc::new(code),
        input: Some(Type::Record(params)),
        is_default: true,
        hints: Vec::new(),
    };
    let command = format!("tools {} --test {}", args.file.as_deref().unwrap_or_default(), runnable.name);
    // As `--input`: a file may hold the arguments.
    let input = input(ui, InputArgs { command, given: None, option: given }, &runnable)?;
    // Whoever names the tool consents to running it, be it a function of a project.
    let options = WorldArgs { policy: args.policy.clone(), python_tools: true, ..WorldArgs::default() };
    let session = crate::setup::session(ui, &options)?;
    let running = Running {
        session: &session,
        args: &options,
        code: &runnable.code,
        policy,
        input,
        request: None,
        plan: None,
        journal: None,
        models: None,
        follows: None,
        limits: None,
        sources: None,
    };
    let (report, _) = world(ui, running, &mut |_| {})?;
    let bound = session.bound(&runnable.code, true);
    show_result(ui, sources, &report, &bound, (&runnable.code, policy), pretty);
    Ok(conclude(ui, &report, &bound))
}

/// Returns the effect class of a tool as programs write it.
fn effect(tool: &ToolDecl) -> &'static str {
    match tool.effect {
        EffectClass::Pure => "pure",
        EffectClass::Read => "reads",
        EffectClass::Write => "writes",
    }
}

fn signature(tool: &ToolDecl) -> String {
    let mut text = format!("{}(", tool.name);
    for (i, p) in tool.params.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{}: {}", if i > 0 { ", " } else { "" }, p.name, p.ty);
    }
    let _ = write!(text, ") -> {}", tool.result);
    text
}

/// Use of the tools of servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// They are shown as their servers describe them.
    Show,
    /// They are shown and approved.
    Approve,
    /// They are printed as declarations.
    Declare,
}

/// Lets the person at the terminal authorize Entail for a server.
fn login(ui: &Ui, settings: &Settings, server: &str) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    let mut show = |url: &str| {
        let url = visible(url, MAX_ADDRESS_CHARS);
        ui.note(&format!("open this address in a browser of this machine, if you trust its host:\n{url}"));
    };
    let tools = settings.tools();
    match unless_canceled(&runtime, tools.login(server, &mut show)) {
        None => canceled(ui),
        Some(Ok(file)) => {
            ui.note(&format!("logged in; the tokens are in `{}`, delete it to log out", file.display()));
            Exit::Done
        }
        Some(Err(why)) => {
            ui.usage(&why, None);
            Exit::Failed
        }
    }
}

/// Lists the tools of servers, of all that are declared if none is named.
fn servers_of(ui: &Ui, settings: &Settings, named: &[String], listing: Listing) -> Result<Exit, Exit> {
    let offers = Offers::of(ui, settings, named)?;
    let mut pins = settings.pins.clone();
    for server in &offers.servers {
        let offer = offers.ask(server)?;
        let found = offer.tools;
        match listing {
            Listing::Declare => declare(ui, server, &found)?,
            Listing::Show | Listing::Approve => show(ui, &settings.pins, server, &found),
        }
        pins.approve(server, &found);
        pins.lock_version(server, offer.version.as_deref());
    }
    if listing == Listing::Approve {
        write_lock(ui, settings, &pins)?;
    }
    Ok(Exit::Done)
}

/// Refuses: the declarations are written by the converter, which is absent.
#[cfg(not(feature = "frameworks"))]
fn declare(ui: &Ui, _: &str, _: &[ServerTool]) -> Result<(), Exit> {
    let message = "this program was built without `frameworks`, which writes declarations";
    Err(ui.usage(message, Some("build it with `--features frameworks`")))
}

/// Prints the tools of a server as declarations of the language `.agent`.
#[cfg(feature = "frameworks")]
fn declare(ui: &Ui, server: &str, found: &[ServerTool]) -> Result<(), Exit> {
    let mut sources = Sources::new();
    let at = diagnostics::Span { file: sources.add(format!("mcp:{server}"), ""), start: 0, end: 0 };
    let decls: Result<Vec<ToolDecl>, String> = found.iter().map(|t| of_server(server, t, at)).collect();
    let (text, found) = convert::declarations(&decls.map_err(|why| ui.usage(&why, None))?);
    ui.result(text.trim_end());
    if found.is_empty() {
        return Ok(());
    }
    ui.problems(&sources, &found);
    Err(Exit::Failed)
}

fn show(ui: &Ui, pins: &Pins, server: &str, found: &[ServerTool]) {
    for tool in found {
        let state = match pins.state(server, tool) {
            PinState::Approved => "approved",
            PinState::Changed(_) => "changed",
            PinState::New => "new",
            PinState::NotApproved => "not approved",
        };
        if ui.is_json() {
            ui.result(&json!({
                "server": server, "tool": tool.name, "state": state, "description": tool.description, "input": tool.input, "hash": tool.hash,
            }).to_string());
            continue;
        }
        ui.result(&format!("{server}  {}  ({state})", visible(&tool.name, MAX_DESCRIPTION_CHARS)));
        if !tool.description.is_empty() {
            ui.result(&format!("    {}", visible(&tool.description, MAX_DESCRIPTION_CHARS)));
        }
        ui.result(&format!("    {}", visible(&tool.input.to_string(), 4 * MAX_DESCRIPTION_CHARS)));
    }
}
