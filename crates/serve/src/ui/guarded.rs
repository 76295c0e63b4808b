//! Sessions of a guard in the list of runs, from the file of its decisions.
//!
//! Invariant: the file is read again for each request, so what is shown is what was decided until then.

use super::documents::update_of;
use super::{Refusal, Ui};
use serde_json::{Value, json};
use session::guard_log::{GuardLog, GuardedSession};
use session::kept::RunDocument;
use session::load::reason;

/// Beginning of the names of sessions in the list of runs. Identifiers of runs are hexadecimal.
const PREFIX: &str = "guard-";

/// The most sessions that are listed.
const MAX_LISTED: usize = 100;

impl Ui {
    /// Entries of the list of runs: the sessions of the file, the last ones first.
    pub(super) fn guarded(&self) -> Vec<Value> {
        // A file that cannot be read has no sessions; showing one says why.
        let Ok(log) = self.guard_log() else { return Vec::new() };
        let mut sessions: Vec<&GuardedSession> = log.sessions.iter().collect();
        sessions.sort_by(|a, b| b.last.total_cmp(&a.last));
        sessions.into_iter().take(MAX_LISTED).map(entry).collect()
    }

    fn guard_log(&self) -> Result<GuardLog, Refusal> {
        let none = || Refusal::NotFound("no file of a guard's decisions was given".into());
        let path = self.guard_log.as_ref().ok_or_else(none)?;
        let unread = |e| Refusal::NotFound(format!("`{}` cannot be read: {}", path.display(), reason(&e)));
        let bytes = std::fs::read(path).map_err(unread)?;
        Ok(GuardLog::read(&String::from_utf8_lossy(&bytes)))
    }

    /// A session as a run, if this is the name of one.
    pub(super) fn guarded_document(&self, run: &str) -> Option<Result<RunDocument, Refusal>> {
        let id = run.strip_prefix(PREFIX)?;
        let unknown = || Refusal::NotFound(format!("no session `{id}`"));
        Some(self.guard_log().and_then(|log| {
            let session = log.session(id).ok_or_else(unknown)?;
            let mut document = session.document();
            document.about["run"] = entry(session);
            Ok(document)
        }))
    }

    /// All of a session, as an update of a page.
    pub(super) fn guarded_update(&self, run: &str) -> Option<Result<String, Refusal>> {
        let document = self.guarded_document(run)?;
        Some(document.map(|RunDocument { about, lines, .. }| {
            let head = json!({"revision": lines.len().to_string(), "keep": 0, "about": about});
            let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
            update_of(&head, &lines)
        }))
    }

    /// A text that differs whenever something was decided.
    pub(super) fn guard_revision(&self) -> String {
        let size = self.guard_log.as_ref().and_then(|path| std::fs::metadata(path).ok());
        size.map_or_else(String::new, |m| m.len().to_string())
    }
}

fn entry(session: &GuardedSession) -> Value {
    // Seconds since 1970 with a fraction fit into milliseconds.
    let millis = |seconds: f64| (seconds * 1000.0) as i64;
    let servers = session.servers.join(", ");
    let name = format!("guard {servers}");
    let refused = (session.refused > 0).then(|| {
        let of = session.refused;
        json!({"code": "refused", "message": format!("{of} {} refused", if of == 1 { "call" } else { "calls" })})
    });
    json!({
        "id": format!("{PREFIX}{}", session.id), "name": name.trim_end(), "created": millis(session.began),
        "ended": millis(session.last), "state": "done", "status": "done", "answers": session.made,
        "parent": null, "error": refused,
    })
}
