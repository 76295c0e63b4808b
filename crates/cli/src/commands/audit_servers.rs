//! Servers of lists that `entail audit` asks what they offer.

use super::canceled;
use crate::interrupt::unless_canceled;
use crate::setup;
use crate::ui::{Exit, Ui};
use ::serve::guard::offered;
use diagnostics::visible;
use serde_json::Value;
use session::audit::{Audit, OfferedTool, Offers};
use session::server_list;
use std::path::Path;

/// Bytes of a message.
const MAX_MESSAGE: usize = 16 << 20;
/// Characters of a name or a reason that are shown.
const MAX_SHOWN: usize = 300;

/// Asks the servers of all lists. One that does not answer is told of, and left to what is known without it.
pub fn offers(ui: &Ui, audit: &Audit) -> Result<Offers, Exit> {
    let settings = setup::settings(ui)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| ui.usage(&format!("cannot start the runtime: {e}"), None))?;
    let mut all = Offers::new();
    for path in audit.lists() {
        let folder = Path::new(&path).parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let list = match server_list::read(Path::new(&path), folder, &settings.environment) {
            Ok(list) => list,
            Err(e) => {
                ui.note(&format!("`{}` is not asked: {e}", visible(&path, MAX_SHOWN)));
                continue;
            }
        };
        for (name, why) in &list.unusable {
            not_asked(ui, name, why);
        }
        for server in list.servers {
            match unless_canceled(&runtime, offered(&server.launch, MAX_MESSAGE)) {
                None => return Err(canceled(ui)),
                Some(Ok(tools)) => {
                    all.insert((path.clone(), server.name), tools.iter().map(tool).collect());
                }
                Some(Err(why)) => not_asked(ui, &server.name, &why),
            }
        }
    }
    Ok(all)
}

fn not_asked(ui: &Ui, server: &str, why: &str) {
    let (server, why) = (visible(server, MAX_SHOWN), visible(why, MAX_SHOWN));
    ui.note(&format!("the server `{server}` does not say what it offers: {why}"));
}

fn tool(said: &Value) -> OfferedTool {
    let text = |field: &str| said[field].as_str().unwrap_or_default().to_string();
    let hint = |name: &str| said["annotations"][name].as_bool();
    OfferedTool {
        name: text("name"),
        description: text("description"),
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        open_world: hint("openWorldHint"),
    }
}
