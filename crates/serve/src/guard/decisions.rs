//! A file with the decisions of a guard: an object a line, with the time, the session, the server, and where
//! the label of the conversation comes from.
//!
//! Invariant: arguments and results are not in it, and known secrets are replaced.
//! Invariant: it has at most two files of [`MAX_BYTES`].

use ::guard::Note;
use runtime::Redactor;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes after which the file is renamed to `FILE.1`, and another one is begun.
const MAX_BYTES: u64 = 64 << 20;

/// A file of decisions.
#[derive(Debug)]
pub struct DecisionLog {
    path: PathBuf,
    file: File,
    bytes: u64,
    most: u64,
    redactor: Redactor,
    session: String,
}

impl DecisionLog {
    /// Appends to a file, which is made if there is none. `session` is written with each decision.
    ///
    /// # Errors
    /// It can't be opened, in words for people.
    pub fn open(path: &Path, session: &str, redactor: Redactor) -> Result<DecisionLog, String> {
        let wrong =
            |e: std::io::Error| format!("cannot write `{}`: {}", path.display(), session::load::reason(&e));
        let file = append(path).map_err(wrong)?;
        let bytes = file.metadata().map_err(wrong)?.len();
        let (path, redactor) = (path.to_path_buf(), redactor.for_records());
        Ok(DecisionLog { path, file, bytes, most: MAX_BYTES, redactor, session: session.into() })
    }

    /// Adds a note, about this server if it is about one.
    ///
    /// # Errors
    /// It can't be written, in words for people.
    pub fn add(&mut self, server: Option<&str>, note: &Note) -> Result<(), String> {
        self.add_of(None, server, note)
    }

    /// Adds a note of one of several sessions, by its number.
    ///
    /// # Errors
    /// It can't be written, in words for people.
    pub fn add_of(&mut self, number: Option<u64>, server: Option<&str>, note: &Note) -> Result<(), String> {
        let session = number.map_or(self.session.clone(), |number| format!("{}-{number}", self.session));
        let mut object = json!({"time": since_1970(), "session": session});
        if let Some(server) = server {
            object["server"] = server.into();
        }
        if let (Some(all), serde_json::Value::Object(said)) = (object.as_object_mut(), note.to_json()) {
            all.extend(said);
        }
        self.redactor.json(&mut object);
        let line = format!("{object}\n");
        self.write(line.as_bytes())
            .map_err(|e| format!("cannot write `{}`: {}", self.path.display(), session::load::reason(&e)))
    }

    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        let length = line.len() as u64;
        if self.bytes > 0 && self.bytes + length > self.most {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            std::fs::rename(&self.path, old)?;
            self.file = append(&self.path)?;
            self.bytes = 0;
        }
        // One call, so that lines of several guards are not mixed.
        self.file.write_all(line)?;
        self.bytes += length;
        Ok(())
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| (t.as_secs_f64() * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Secret;
    use serde_json::Value;

    #[test]
    fn decisions_are_appended_without_secrets_and_the_file_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guard.jsonl");
        let redactor = || Redactor::new([Secret::new("sk-0123456789abcdef")]);
        let gone = |why: &str| Note::Gone(why.into());
        for session in ["one", "two"] {
            let mut log = DecisionLog::open(&path, session, redactor()).unwrap();
            log.add(Some("mail"), &gone("it said sk-0123456789abcdef")).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.iter().map(|l| &l["session"]).collect::<Vec<_>>(), ["one", "two"]);
        assert!(lines[0]["server"] == "mail" && lines[0]["event"] == "gone" && lines[0]["time"].is_number());
        assert!(!text.contains("0123456789"), "{text}");

        let mut log = DecisionLog::open(&path, "three", redactor()).unwrap();
        log.most = 2_000;
        for n in 0..100 {
            log.add(None, &gone(&n.to_string())).unwrap();
        }
        let sizes =
            ["guard.jsonl", "guard.jsonl.1"].map(|n| std::fs::metadata(dir.path().join(n)).unwrap().len());
        assert!(sizes.iter().all(|size| *size <= 2_000), "{sizes:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().last().unwrap().contains("\"99\""), "{text}");
        assert!(DecisionLog::open(dir.path(), "x", redactor()).is_err());
    }
}
