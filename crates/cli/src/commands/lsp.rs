//! `entail lsp`: the language server on standard input and output.

use crate::load::{Problem, import_units};
use crate::ui::{Exit, Ui};
use crate::{policy, settings};
use ::lsp::{Options, Server, Surroundings};
use diagnostics::Sources;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

/// Runs the command. As the protocol wants it, the exit status is 0 if the client has said `shutdown`.
pub fn lsp(ui: &Ui) -> Exit {
    let (mut input, mut output) = (BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout()));
    let around = Disk { config: ui.args.config.clone() };
    match ::lsp::serve(Server::within(Box::new(around)), &mut input, &mut output) {
        Ok(true) => Exit::Done,
        Ok(false) => Exit::Failed,
        Err(e) => ui.usage(&format!("the client does not speak the protocol: {e}"), None),
    }
}

/// What `entail check` would find around a program, said in its folder.
struct Disk {
    /// What `--config` names.
    config: Option<PathBuf>,
}

impl Surroundings for Disk {
    fn options(&self, folder: &Path) -> Result<Options, String> {
        let said = settings::loading_in(folder, self.config.as_deref())?;
        let mut sources = Sources::new();
        let policy = policy::read(&mut sources, said.policy.as_deref()).map_err(|problem| match problem {
            Problem::Unreadable(message, _) => message,
            Problem::Wrong(found) | Problem::Policy(found) => found
                .first()
                .map_or("the policy file is wrong".into(), |d| format!("in the policy file: {}", d.message)),
        })?;
        Ok(Options { policy, retry_timeouts: said.retry_timeouts })
    }

    fn units(&self, path: &Path) -> Result<Vec<frontend::Unit>, String> {
        import_units(&mut Sources::new(), path)
    }
}
