//! Sessions of a guard as traces, from the file of its decisions.
//!
//! Entry point: [`GuardLog::read`]. A decision is a request of the trace with its answer, so what shows a run
//! shows a session: the calls that were made, those that a person was asked about, and those that were
//! refused, with why. The file has neither arguments nor results, so the trace has none.
//!
//! Invariant: the order is that of the file, which is written when something is decided.

use crate::kept::RunDocument;
use runtime::trace::VERSION;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of a file that a [`FollowedGuardLog`] looks back at most.
const LOOK_BACK: u64 = 64 << 20;

/// Decisions of a file, by session.
#[derive(Clone, Debug, Default)]
pub struct GuardLog {
    /// The sessions, in the order of their first decisions.
    pub sessions: Vec<GuardedSession>,
    /// Lines that are no decisions of a guard.
    pub foreign: usize,
}

/// The decisions about one session.
#[derive(Clone, Debug)]
pub struct GuardedSession {
    /// Its identifier in the file.
    pub id: String,
    /// The servers that it is a session of.
    pub servers: Vec<String>,
    /// Time of the first decision, in seconds since 1970.
    pub began: f64,
    /// Time of the last one.
    pub last: f64,
    /// The label of the conversation, as the last decision left it.
    pub label: Value,
    /// Calls that were made.
    pub made: usize,
    /// Calls that a person was asked about, or would have been.
    pub asked: usize,
    /// Calls that were refused, or would have been, and results that were withheld.
    pub refused: usize,
    steps: Vec<Value>,
}

impl GuardLog {
    /// Returns true if a text is of such a file, by its first line.
    ///
    /// # Examples
    /// ```
    /// use session::guard_log::GuardLog;
    /// assert!(GuardLog::is_one("{\"time\":1.0,\"session\":\"a\",\"event\":\"made\",\"tool\":\"f\"}\n"));
    /// assert!(!GuardLog::is_one("{\"event\":\"run\",\"version\":1}\n"));
    /// ```
    pub fn is_one(text: &str) -> bool {
        let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
        serde_json::from_str::<Value>(first).is_ok_and(|line| is_decision(&line))
    }

    /// Reads the text of such a file. A last line that is not whole is left out.
    pub fn read(text: &str) -> GuardLog {
        let mut log = GuardLog::default();
        log.read_more(text);
        log
    }

    fn read_more(&mut self, text: &str) {
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            match serde_json::from_str::<Value>(line) {
                Ok(decision) if is_decision(&decision) => self.add(&decision),
                _ => self.foreign += 1,
            }
        }
    }

    /// The session whose identifier begins so, if it is only one.
    pub fn session(&self, beginning: &str) -> Option<&GuardedSession> {
        if let Some(exact) = self.sessions.iter().find(|s| s.id == beginning) {
            return Some(exact);
        }
        let mut found = self.sessions.iter().filter(|s| s.id.starts_with(beginning));
        found.next().filter(|_| found.next().is_none())
    }

    fn add(&mut self, decision: &Value) {
        let text = |key: &str| decision[key].as_str().unwrap_or_default();
        let (id, time) = (text("session"), decision["time"].as_f64().unwrap_or_default());
        // Mostly one of the last sessions goes on.
        let at = self.sessions.iter().rposition(|s| s.id == id).unwrap_or_else(|| {
            self.sessions.push(GuardedSession {
                id: id.into(),
                servers: Vec::new(),
                began: time,
                last: time,
                label: json!([]),
                made: 0,
                asked: 0,
                refused: 0,
                steps: Vec::new(),
            });
            self.sessions.len() - 1
        });
        let session = &mut self.sessions[at];
        session.last = time;
        let server = text("server");
        if !server.is_empty() && !session.servers.iter().any(|s| s == server) {
            session.servers.push(server.into());
        }
        match text("event") {
            "made" => session.made += 1,
            "asked" | "would_ask" => session.asked += 1,
            "refused" | "would_refuse" | "withheld" => session.refused += 1,
            "raised" | "fresh" => session.label = label(text("label")),
            _ => {}
        }
        session.steps.push(decision.clone());
    }
}

/// A file of decisions that is being written. Each look at it reads what was added since the last one.
///
/// Invariant: it holds decisions of at most 128 MiB of the file. Of a longer one it knows the last ones.
#[derive(Debug)]
pub struct FollowedGuardLog {
    path: PathBuf,
    look_back: u64,
    /// The part of the file that was read, in bytes.
    from: u64,
    to: u64,
    log: GuardLog,
}

impl FollowedGuardLog {
    /// Follows a file, which need not exist yet. Nothing is read until [`now`](Self::now).
    pub fn new(path: PathBuf) -> FollowedGuardLog {
        FollowedGuardLog { path, look_back: LOOK_BACK, from: 0, to: 0, log: GuardLog::default() }
    }

    /// The file that is followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The decisions until now. A line that is not whole yet is left for the next look.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn now(&mut self) -> io::Result<&GuardLog> {
        let mut file = File::open(&self.path)?;
        let size = file.metadata()?.len();
        // A shorter file is another one.
        let begins = self.to == 0 || size < self.to || size - self.from > 2 * self.look_back;
        if begins {
            self.from = size.saturating_sub(self.look_back);
            self.to = self.from;
            self.log = GuardLog::default();
        }
        file.seek(SeekFrom::Start(self.to))?;
        let mut added = Vec::new();
        file.take(size - self.to).read_to_end(&mut added)?;
        let whole = added.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        // The beginning of a line that began before.
        let part = match begins && self.from > 0 {
            true => added[..whole].iter().position(|b| *b == b'\n').map_or(0, |end| end + 1),
            false => 0,
        };
        self.log.read_more(&String::from_utf8_lossy(&added[part..whole]));
        self.to += whole as u64;
        Ok(&self.log)
    }
}

impl GuardedSession {
    /// The lines of a trace of the session.
    ///
    /// # Examples
    /// ```
    /// use session::guard_log::GuardLog;
    /// let log = GuardLog::read(
    ///     "{\"time\":1.0,\"session\":\"a\",\"event\":\"made\",\"tool\":\"fetch\",\"label\":\"[]\"}\n\
    ///      {\"time\":1.0,\"session\":\"a\",\"event\":\"raised\",\"by\":\"f\",\"label\":\"[\\\"U\\\"]\"}\n\
    ///      {\"time\":2.0,\"session\":\"a\",\"event\":\"refused\",\"tool\":\"send\",\"message\":\"no\"}\n",
    /// );
    /// let lines = log.sessions[0].lines();
    /// let refused = lines.iter().find(|l| l["event"] == "response" && l["error"].is_string()).unwrap();
    /// assert_eq!(refused["error"], "refused: no");
    /// assert_eq!(lines.last().unwrap()["label"], serde_json::json!(["U"]));
    /// ```
    pub fn lines(&self) -> Vec<Value> {
        let program = match &self.servers[..] {
            [] => "guard".to_string(),
            servers => format!("guard of {}", servers.join(", ")),
        };
        let mut lines =
            vec![json!({"event": "run", "version": VERSION, "program": program, "entry": self.id,
            "input": null})];
        let mut channel = json!([]);
        for (n, decision) in self.steps.iter().enumerate() {
            if let "raised" | "fresh" = decision["event"].as_str().unwrap_or_default() {
                channel = label(decision["label"].as_str().unwrap_or_default());
            }
            lines.extend(step(n + 1, decision, &channel));
        }
        let count = |n: usize, what: &str| format!("{n} {what}");
        let result =
            [count(self.made, "made"), count(self.asked, "asked about"), count(self.refused, "refused")];
        lines.push(json!({"event": "end", "result": result.join(", "), "label": self.label, "usage": {
            "modelCalls": 0, "toolCalls": self.made, "questions": self.asked, "inputTokens": 0,
            "outputTokens": 0, "usd": null, "unpriced": 0, "steps": 0,
        }}));
        lines
    }

    /// The session as a document of a run, for whatever shows one.
    pub fn document(&self) -> RunDocument {
        RunDocument {
            about: json!({"bound": null, "findings": []}),
            lines: self.lines(),
            numbers: HashMap::new(),
        }
    }
}

fn is_decision(line: &Value) -> bool {
    line["session"].is_string() && line["event"].is_string() && line["time"].is_number()
}

/// A label as traces have it: a list of names. The file has it as text.
fn label(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| if text.is_empty() { json!([]) } else { json!([text]) })
}

/// A decision as a request with its answer.
fn step(n: usize, decision: &Value, channel: &Value) -> [Value; 2] {
    let text = |key: &str| decision[key].as_str().unwrap_or_default();
    let event = text("event");
    let call = matches!(event, "made" | "refused" | "would_refuse" | "withheld" | "asked" | "would_ask");
    let kind = if call { "tool".to_string() } else { event.replace('_', " ") };
    let subject = ["tool", "by", "handle", "what", "of", "server"].into_iter().map(text);
    let subject = subject.into_iter().find(|s| !s.is_empty()).unwrap_or_default();
    // The file has no arguments.
    let request = json!({"event": "request", "n": n, "place": [], "kind": kind, "tool": subject,
        "channel": channel, "at": decision["time"]});
    let names = |key: &str| -> Vec<String> {
        let all = decision[key].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(|name| format!("`{name}`")).collect()
    };
    let since = match names("raisedBy") {
        by if by.is_empty() => String::new(),
        by => format!(", since calls of {}", by.join(", ")),
    };
    let remedy = match text("remedy") {
        "" => String::new(),
        remedy => format!("; {remedy}"),
    };
    let why = format!("{}{since}{remedy}", text("message"));
    let mut response = json!({"event": "response", "n": n});
    let (key, said) = match event {
        "made" => ("data", "made".to_string()),
        "refused" => ("error", format!("refused: {why}")),
        "withheld" => ("error", format!("the result was withheld: {why}")),
        "would_refuse" => ("data", format!("made; a guard that enforces refuses it: {why}")),
        "asked" => ("data", "a person was asked".to_string()),
        "would_ask" => ("data", "made; a guard that enforces asks a person".to_string()),
        "raised" => ("data", format!("the conversation is labeled {} from here on", text("label"))),
        "recalled" => ("data", format!("it read what was written{since}")),
        "filtered" => ("data", format!("{} items were left out", decision["items"])),
        "kept" => ("data", format!("kept as {}", names("handles").join(", "))),
        "inquired" => ("data", format!("the model `{}` was asked about it", text("model"))),
        "fresh" => ("data", format!("a new conversation, labeled {}", text("label"))),
        "policy" | "invalid" | "gone" | "unanswered" => ("error", why),
        _ => ("data", why),
    };
    response[key] = said.into();
    [request, response]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn line(session: &str) -> String {
        format!("{{\"time\":1.0,\"session\":\"{session}\",\"event\":\"made\",\"tool\":\"f\"}}\n")
    }

    fn made(log: &GuardLog) -> Vec<(&str, usize)> {
        log.sessions.iter().map(|s| (&*s.id, s.made)).collect()
    }

    #[test]
    fn a_followed_file_gives_what_was_added_since_the_last_look() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("decisions.jsonl");
        let mut followed = FollowedGuardLog::new(path.clone());
        assert_eq!(followed.now().unwrap_err().kind(), io::ErrorKind::NotFound);
        let (whole, half) = (line("a"), line("b"));
        let mut file = File::create(&path).unwrap();
        file.write_all(whole.as_bytes()).unwrap();
        file.write_all(&half.as_bytes()[..20]).unwrap();
        assert_eq!(made(followed.now().unwrap()), [("a", 1)]);
        file.write_all(&half.as_bytes()[20..]).unwrap();
        assert_eq!(made(followed.now().unwrap()), [("a", 1), ("b", 1)]);
        assert_eq!(made(followed.now().unwrap()), [("a", 1), ("b", 1)]);
        // Another file under the same name.
        std::fs::write(&path, line("c")).unwrap();
        assert_eq!(made(followed.now().unwrap()), [("c", 1)]);
    }

    #[test]
    fn the_last_decisions_of_a_long_file_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("decisions.jsonl");
        let size = line("00").len() as u64;
        let mut followed = FollowedGuardLog::new(path.clone());
        // Four lines and a part of the one before.
        followed.look_back = 4 * size + 3;
        let mut file = File::create(&path).unwrap();
        let mut write = |sessions: std::ops::Range<u32>| {
            sessions.for_each(|n| file.write_all(line(&format!("{n:02}")).as_bytes()).unwrap());
        };
        let first = |log: &GuardLog| (log.sessions[0].id.clone(), log.sessions.len(), log.foreign);
        write(0..20);
        assert_eq!(first(followed.now().unwrap()), ("16".into(), 4, 0));
        write(20..23);
        assert_eq!(first(followed.now().unwrap()), ("16".into(), 7, 0));
        write(23..30);
        assert_eq!(first(followed.now().unwrap()), ("26".into(), 4, 0));
    }
}
