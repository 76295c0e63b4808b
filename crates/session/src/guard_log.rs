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
        for line in text.lines().filter(|l| !l.trim().is_empty()) {
            match serde_json::from_str::<Value>(line) {
                Ok(decision) if is_decision(&decision) => log.add(&decision),
                _ => log.foreign += 1,
            }
        }
        log
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
