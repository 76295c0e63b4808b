//! Sessions of a guard in the list of runs, from the file of its decisions.
//!
//! Invariant: each request looks at the file, so what is shown is what was decided until then.

use super::documents::update_of;
use super::{Refusal, Ui};
use serde_json::{Value, json};
use session::guard_log::{GuardLog, GuardedSession};
use session::kept::RunDocument;
use session::load::reason;
use std::sync::PoisonError;

/// Beginning of the names of sessions in the list of runs. Identifiers of runs are hexadecimal.
const PREFIX: &str = "guard-";

/// The most sessions that are listed.
const MAX_LISTED: usize = 100;

impl Ui {
    /// Entries of the list of runs: the sessions of the file, the last ones first.
    pub(super) fn guarded(&self) -> Vec<Value> {
        let listed = self.with_guard_log(|log| {
            let mut sessions: Vec<&GuardedSession> = log.sessions.iter().collect();
            sessions.sort_by(|a, b| b.last.total_cmp(&a.last));
            sessions.into_iter().take(MAX_LISTED).map(entry).collect()
        });
        // A file that cannot be read has no sessions; showing one says why.
        listed.unwrap_or_default()
    }

    fn with_guard_log<T>(&self, look: impl FnOnce(&GuardLog) -> T) -> Result<T, Refusal> {
        let none = || Refusal::NotFound("no file of a guard's decisions was given".into());
        let followed = self.guard_log.as_ref().ok_or_else(none)?;
        // A look that panicked has left what was read before.
        let mut followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
        let path = followed.path().display().to_string();
        let unread = |e| Refusal::NotFound(format!("`{path}` cannot be read: {}", reason(&e)));
        Ok(look(followed.now().map_err(unread)?))
    }

    /// A session as a run, if this is the name of one.
    pub(super) fn guarded_document(&self, run: &str) -> Option<Result<RunDocument, Refusal>> {
        let id = run.strip_prefix(PREFIX)?;
        let unknown = || Refusal::NotFound(format!("no session `{id}`"));
        let document = self.with_guard_log(|log| {
            let session = log.session(id)?;
            let mut document = session.document();
            document.about["run"] = entry(session);
            Some(document)
        });
        Some(document.and_then(|found| found.ok_or_else(unknown)))
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
        let size = self.guard_log.as_ref().and_then(|followed| {
            let followed = followed.lock().unwrap_or_else(PoisonError::into_inner);
            std::fs::metadata(followed.path()).ok()
        });
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
