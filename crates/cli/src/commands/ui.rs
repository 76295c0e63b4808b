//! `entail ui`: the runs of a journal in a browser.

use super::trace::write_page;
use crate::args::UiArgs;
use crate::interrupt::stopped;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::serve::Error;
use ::serve::ui::{UiOptions, UiServer};
use runtime::{CancellationToken, JournalPlace};
use serde_json::json;
use session::{RunOptions, Session};
use std::time::Duration;

/// Runs the command.
pub fn ui(ui: &Ui, args: &UiArgs) -> Exit {
    let session = match setup::settings(ui) {
        Ok(settings) => Session::new(settings, RunOptions::default()),
        Err(exit) => return exit,
    };
    let journal = match setup::journal(ui, &args.journal) {
        Ok(place) => place.or_file(),
        Err(exit) => return exit,
    };
    let options = UiOptions {
        guard_log: args.guard_log.clone(),
        ..options(session, journal, args.journal.display().to_string(), args.port)
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    let exit = runtime.block_on(listen(ui, options));
    runtime.shutdown_timeout(Duration::from_millis(200));
    exit
}

/// Options of a page that shows a journal, which the command line calls `named`.
pub(super) fn options(session: Session, journal: JournalPlace, named: String, port: u16) -> UiOptions {
    let approvers = session.settings.approvers.clone();
    let export = |document: &session::kept::RunDocument| {
        let mut page = Vec::new();
        // Writing to memory cannot fail.
        let _ = write_page(&mut page, &document.lines, &document.about);
        page
    };
    UiOptions { journal, session, approvers, port, export, named, guard_log: None }
}

/// Says where the page is.
pub(super) const LINK: &str =
    "open this link in a browser of this machine; it works once, and Ctrl-C ends the page:";

async fn listen(ui: &Ui, options: UiOptions) -> Exit {
    let server = match UiServer::bind(options).await {
        Ok(server) => server,
        Err(e @ Error::Listen { .. }) => {
            return ui.usage(&e.to_string(), Some("choose another port with `--port`, or none"));
        }
        Err(e) => return ui.usage(&e.to_string(), e.help()),
    };
    if ui.is_json() {
        ui.result(&json!({"link": server.link()}).to_string());
    } else {
        ui.note(LINK);
        ui.result(&server.link());
    }
    let stop = CancellationToken::new();
    tokio::spawn(stopped(stop.clone()));
    server.run(stop).await;
    Exit::Done
}
