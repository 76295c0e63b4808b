//! `--watch`: linting again whenever a file changes.

use super::once;
use crate::args::LintArgs;
use crate::ui::{Exit, Ui};
use frontend_kit::File;
use notify::{EventKind, RecursiveMode, Watcher};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Changes that come so close together are one.
const TOGETHER: Duration = Duration::from_millis(60);

/// Lints, waits for a change, and lints again, until it is interrupted.
pub fn watch(ui: &Ui, args: &LintArgs) -> Exit {
    let (send, changes) = mpsc::channel();
    let watcher = notify::recommended_watcher(move |event| {
        // The other side is gone only when the command ends.
        let _ = send.send(event);
    });
    let mut watcher = match watcher {
        Ok(watcher) => watcher,
        Err(e) => return ui.usage(&format!("cannot watch files: {e}"), None),
    };
    for path in &args.paths {
        // An editor may put another file in the place of the old one: the directory is watched.
        let at = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        let at = if at.as_os_str().is_empty() { Path::new(".") } else { at };
        if let Err(e) = watcher.watch(at, RecursiveMode::Recursive) {
            return ui.usage(&format!("cannot watch `{}`: {e}", at.display()), None);
        }
    }
    loop {
        if let exit @ Exit::Usage = once(ui, args) {
            return exit;
        }
        ui.note("watching for changes; interrupt to end");
        loop {
            let Ok(event) = changes.recv() else { return Exit::Done };
            if event.is_ok_and(|e| matters(&e)) {
                while changes.recv_timeout(TOGETHER).is_ok() {}
                break;
            }
        }
    }
}

/// Returns true if an event can change findings. What this program does itself, reading, does not.
fn matters(event: &notify::Event) -> bool {
    let changes = matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_));
    changes
        && event.paths.iter().any(|p| {
            let name = p.file_name().and_then(|n| n.to_str()).unwrap_or("");
            File::is_read(name)
                || session::lint::is_program(name)
                || name == "entail.toml"
                || name.starts_with(".env")
        })
}
