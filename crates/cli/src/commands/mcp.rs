//! `entail mcp`: this program as a server of the Model Context Protocol, for the assistants of editors.

use super::server::service;
use crate::args::McpArgs;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::serve::mcp::{McpOptions, serve_stdio};
use ::serve::{Log, ServiceOptions};
use session::callers::{self, Callers};
use std::sync::Arc;
use std::time::Duration;

/// Runs the command.
pub fn mcp(ui: &Ui, args: &McpArgs) -> Exit {
    let session = match setup::session(ui, &args.world) {
        Ok(session) => session,
        Err(exit) => return exit,
    };
    let root = match args.root.canonicalize() {
        Ok(root) if root.is_dir() => root,
        _ => return ui.usage(&format!("`{}` is not a directory", args.root.display()), None),
    };
    let caller = match Callers::reserved(&session.settings.callers, callers::MCP) {
        Ok(caller) => Arc::new(caller),
        Err(why) => return ui.usage(&why, None),
    };
    let callers = Callers::only(caller.clone());
    let service = service(ui, &args.world, &session, &args.files, |models, limits| ServiceOptions {
        models,
        limits,
        journal: None,
        max_runs: 16,
        callers,
        log: Log::silent(),
    });
    let service = match service {
        Ok(service) => service,
        Err(exit) => return exit,
    };
    let program = match crate::command_line::this_program() {
        Ok(program) => program,
        Err(e) => return ui.usage(&format!("cannot find this program itself: {e}"), None),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    if let Err(e) = runtime.block_on(serve_stdio(service, McpOptions { caller, root, program })) {
        ui.note(&format!("no client: {e}"));
    }
    runtime.shutdown_timeout(Duration::from_millis(200));
    Exit::Done
}
