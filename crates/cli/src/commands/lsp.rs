//! `entail lsp`: the language server on standard input and output.

use crate::ui::{Exit, Ui};
use ::lsp::{Server, disk};
use agentlang::NotImported;
use diagnostics::{FileId, Sources};
use ide::{Host, Options};
use lint::{Config, Outcome, lint_bytes};
use session::lint::Linter;
use session::load::{Problem, import_units};
use session::project_files::{beside, root_of};
use session::{policy, server_file, settings};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Runs the command. As the protocol wants it, the exit status is 0 if the client has said `shutdown`.
pub fn lsp(ui: &Ui) -> Exit {
    let (mut input, mut output) = (BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout()));
    let around = Disk { config: ui.args.config.clone(), linters: RefCell::default() };
    match ::lsp::serve(Server::within(Box::new(around)), &mut input, &mut output) {
        Ok(true) => Exit::Done,
        Ok(false) => Exit::Failed,
        Err(e) => ui.usage(&format!("the client does not speak the protocol: {e}"), None),
    }
}

/// Files on disk around a program: what `entail check` would read, relative to the program's folder.
struct Disk {
    /// Path given by `--config`.
    config: Option<PathBuf>,
    /// Linters by folder, each with the projects that it has read.
    linters: RefCell<HashMap<PathBuf, Rc<Linter>>>,
}

impl Disk {
    fn linter(&self, folder: &Path) -> Result<Rc<Linter>, String> {
        if let Some(known) = self.linters.borrow().get(folder) {
            return Ok(known.clone());
        }
        let (settings, dir) = settings::linting_in(folder, self.config.as_deref())?;
        let linter = Rc::new(Linter::of_settings(&settings, &dir)?);
        self.linters.borrow_mut().insert(folder.to_path_buf(), linter.clone());
        Ok(linter)
    }
}

impl Host for Disk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        disk::resolve(path)
    }

    fn read(&self, place: &Path) -> Option<Arc<str>> {
        disk::read(place)
    }

    fn options(&self, folder: &Path) -> Result<Options, String> {
        let said = settings::loading_in(folder, self.config.as_deref())?;
        let mut sources = Sources::new();
        let policy =
            policy::read_file(&mut sources, said.policy.as_deref()).map_err(|problem| match problem {
                Problem::Unreadable(message, _) => message,
                Problem::Wrong(found) | Problem::Policy(found) => {
                    found.first().map_or("the policy file is wrong".into(), |d| {
                        format!("in the policy file: {}", d.message)
                    })
                }
            })?;
        // It is none of the files of an editor's query.
        let policy = policy.map(|(_, text)| (FileId(u32::MAX), text));
        Ok(Options { policy, retry_timeouts: said.retry_timeouts })
    }

    fn server(&self, folder: &Path, name: &str) -> Result<Arc<str>, NotImported> {
        let unknown = |why: String| NotImported { why, help: "repair the settings".into() };
        let said = settings::loading_in(folder, self.config.as_deref()).map_err(unknown)?;
        let pins = said.pins.unwrap_or_default();
        let text = server_file::of_lock(&pins, name);
        text.map(Into::into).map_err(|(why, help)| NotImported { why, help })
    }

    fn project(&self, module: &Path) -> Option<PathBuf> {
        Some(root_of(module.parent()?).to_path_buf())
    }

    fn units(&self, path: &Path) -> Result<Vec<frontend_kit::Unit>, String> {
        import_units(&mut Sources::new(), path)
    }

    fn lint(&self, path: &str, text: &str) -> Outcome {
        let path = Path::new(path);
        match self.linter(path.parent().unwrap_or(Path::new(""))) {
            Ok(linter) => linter.lint(path, text.as_bytes()).outcome,
            // Wrong settings are said where they are used for more than an editor's view.
            Err(_) => {
                lint_bytes(
                    session::frameworks::recognize,
                    &path.display().to_string(),
                    FileId(0),
                    text.as_bytes(),
                    &Config::default(),
                )
                .outcome
            }
        }
    }

    fn files(&self, path: &Path) -> Vec<(String, Arc<str>)> {
        beside(path)
    }

    fn changed(&self) {
        self.linters.borrow_mut().clear();
    }
}
