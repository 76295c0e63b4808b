//! The offers of MCP servers of the settings, for the commands that show and lock them.
//!
//! Entry point: [`Offers`].

use super::canceled;
use crate::interrupt::unless_canceled;
use crate::ui::{Exit, Ui};
use runtime::{Pins, ServerOffer, Tools};
use session::load::replace_file;
use session::settings::Settings;

/// Servers to be asked.
pub(super) struct Offers<'a> {
    ui: &'a Ui,
    runtime: tokio::runtime::Runtime,
    tools: Tools,
    /// The names of the servers.
    pub servers: Vec<String>,
}

impl<'a> Offers<'a> {
    /// The offers of these servers, or of all that are declared if none is named.
    ///
    /// # Errors
    /// None is declared, or the system refuses, which the user has been told.
    pub fn of(ui: &'a Ui, settings: &Settings, named: &[String]) -> Result<Offers<'a>, Exit> {
        let servers: Vec<String> = match named.is_empty() {
            true => settings.mcp.keys().cloned().collect(),
            false => named.to_vec(),
        };
        if servers.is_empty() {
            return Err(ui.usage("no MCP server is declared", Some("add `[mcp.NAME]` to `entail.toml`")));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| ui.usage(&format!("cannot start the runtime: {e}"), None))?;
        Ok(Offers { ui, runtime, tools: settings.tools(), servers })
    }

    /// Asks one of them.
    ///
    /// # Errors
    /// It does not answer, or the user has not waited, which the user has been told.
    pub fn ask(&self, server: &str) -> Result<ServerOffer, Exit> {
        match unless_canceled(&self.runtime, self.tools.offer(server)) {
            None => Err(canceled(self.ui)),
            Some(Ok(offered)) => Ok(offered),
            Some(Err(why)) => {
                self.ui.usage(&why, None);
                Err(Exit::Failed)
            }
        }
    }
}

/// Writes the lock file.
///
/// # Errors
/// It can't be written, which the user has been told.
pub(super) fn write_lock(ui: &Ui, settings: &Settings, pins: &Pins) -> Result<(), Exit> {
    let path = settings.dir.join(Settings::LOCK);
    replace_file(&path, pins.to_toml()).map_err(|e| ui.cannot_write(path.display(), &e))?;
    ui.note(&format!("written to `{}`; a tool that changes is refused from now on", path.display()));
    Ok(())
}
