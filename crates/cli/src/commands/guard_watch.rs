//! `entail guard watch`: what guards decide, while they decide it, from the file that they write.
//!
//! The file is that of a `DecisionLog` of `serve::guard`: an object a line. At a terminal the view is drawn
//! again when something is added; elsewhere it is written once.

use crate::args::GuardWatchArgs;
use crate::ui::{Exit, Ui};
use diagnostics::visible;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// Time between two looks at the file.
const LOOK: Duration = Duration::from_millis(250);
/// The most sessions that are shown; the first ones are left out.
const MAX_SESSIONS: usize = 100;
/// The most decisions that are shown.
const MAX_RECENT: usize = 200;
/// Bytes of the file that are read at the beginning: its end.
const MAX_READ: u64 = 8 << 20;
/// Bytes of a line that is looked at.
const MAX_LINE: usize = 1 << 20;

/// Runs the command.
pub fn watch(ui: &Ui, args: &GuardWatchArgs) -> Exit {
    let mut view = WatchView::default();
    let mut log = LogFile::default();
    if let Err(e) = log.read(&args.file, &mut view) {
        return ui.cannot_read(args.file.display(), &e);
    }
    if ui.is_json() {
        ui.result(&view.to_json().to_string());
        return Exit::Done;
    }
    if log.foreign > 0 {
        let lines = super::plural(log.foreign, "line");
        ui.note(&format!("{lines} of `{}` not read: no decisions of a guard", args.file.display()));
    }
    if !ui.can_redraw() {
        for line in view.lines(usize::MAX, usize::MAX) {
            ui.result(&line);
        }
        return Exit::Done;
    }
    let mut is_new = true;
    // It ends with the process: nothing is kept that would have to be put back.
    loop {
        if is_new {
            let lines = view.lines(rows(), ui.columns());
            ui.result(&format!("\x1b[2J\x1b[H{}", lines.join("\n")));
        }
        std::thread::sleep(LOOK);
        is_new = match log.read(&args.file, &mut view) {
            Ok(is_new) => is_new,
            Err(e) => return ui.cannot_read(args.file.display(), &e),
        };
    }
}

/// A line that is no longer than the terminal is wide. A longer one ends in `…`.
fn fitted(line: &str, columns: usize) -> String {
    let text = visible(line, MAX_LINE);
    if text.chars().count() <= columns {
        return text;
    }
    text.chars().take(columns - 1).chain(['…']).collect()
}

/// Lines of the terminal.
fn rows() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_row > 1
    {
        return usize::from(size.ws_row) - 1;
    }
    40
}

/// A file of decisions, as far as it was read.
#[derive(Default)]
struct LogFile {
    at: u64,
    rest: Vec<u8>,
    /// Lines that are no decisions.
    foreign: usize,
}

impl LogFile {
    /// Reads what was added; says whether there was anything. A file that became shorter is another one.
    fn read(&mut self, path: &Path, view: &mut WatchView) -> std::io::Result<bool> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        if length < self.at {
            (self.at, self.rest) = (0, Vec::new());
        }
        let is_cut = length - self.at > MAX_READ;
        if is_cut {
            self.at = length - MAX_READ;
            self.rest.clear();
        }
        file.seek(SeekFrom::Start(self.at))?;
        let mut added = Vec::new();
        file.take(length - self.at).read_to_end(&mut added)?;
        self.at += added.len() as u64;
        self.rest.append(&mut added);
        let mut lines: Vec<Vec<u8>> = self.rest.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        self.rest = lines.pop().unwrap_or_default();
        if self.rest.len() > MAX_LINE {
            self.rest.clear();
        }
        // The first may be the end of a line.
        let lines = lines.iter().skip(usize::from(is_cut)).filter(|line| line.len() <= MAX_LINE);
        let mut is_new = false;
        for line in lines {
            match serde_json::from_slice::<Value>(line) {
                Ok(object) if object["session"].is_string() => {
                    view.add(&object);
                    is_new = true;
                }
                _ => self.foreign += 1,
            }
        }
        Ok(is_new)
    }
}

/// A session, as far as its events tell.
#[derive(Default)]
struct WatchedSession {
    /// Its number in the order of their beginning.
    began: u64,
    label: String,
    raised_by: Vec<String>,
    made: u64,
    asked: u64,
    refused: u64,
}

/// The sessions and the last decisions.
#[derive(Default)]
struct WatchView {
    sessions: BTreeMap<String, WatchedSession>,
    recent: VecDeque<String>,
    begun: u64,
}

impl WatchView {
    fn add(&mut self, event: &Value) {
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        let Some(name) = event["session"].as_str() else { return };
        if !self.sessions.contains_key(name) {
            self.begun += 1;
            let label = "[]".into();
            let began = self.begun;
            self.sessions.insert(name.into(), WatchedSession { began, label, ..WatchedSession::default() });
        }
        if self.sessions.len() > MAX_SESSIONS
            && let Some(first) =
                self.sessions.iter().min_by_key(|(_, s)| s.began).map(|(name, _)| name.clone())
        {
            self.sessions.remove(&first);
        }
        let Some(session) = self.sessions.get_mut(name) else { return };
        match text("event") {
            "made" => session.made += 1,
            "asked" | "would_ask" => session.asked += 1,
            "refused" | "would_refuse" | "withheld" => session.refused += 1,
            "raised" => {
                session.label = text("label").into();
                session.raised_by.push(text("by").into());
                session.raised_by.truncate(16);
            }
            "fresh" => {
                session.label = text("label").into();
                session.raised_by.clear();
            }
            _ => {}
        }
        let tool = if text("tool").is_empty() { text("by") } else { text("tool") };
        let what = match text("event") {
            // The new label stands with the session.
            "raised" => text("label"),
            _ => text("message"),
        };
        let line = format!("{}  {:<12} {tool}  {what}", time(event), text("event"));
        self.recent.push_back(line.trim_end().into());
        if self.recent.len() > MAX_RECENT {
            self.recent.pop_front();
        }
    }

    fn to_json(&self) -> Value {
        let session = |(name, s): (&String, &WatchedSession)| {
            json!({"session": name, "label": s.label, "raisedBy": s.raised_by, "made": s.made,
                "asked": s.asked, "refused": s.refused})
        };
        json!({"sessions": self.sessions.iter().map(session).collect::<Vec<_>>()})
    }

    /// The view in at most this number of lines of a width: the sessions, the last ones first, and the
    /// decisions.
    fn lines(&self, rows: usize, columns: usize) -> Vec<String> {
        let mut sessions: Vec<(&String, &WatchedSession)> = self.sessions.iter().collect();
        sessions.sort_by_key(|(_, session)| std::cmp::Reverse(session.began));
        let mut out = vec![format!("{:<20} {:>6} {:>6} {:>7}  label", "session", "made", "asked", "refused")];
        for (name, s) in sessions.iter().take((rows / 2).max(1)) {
            let by = match s.raised_by.is_empty() {
                true => String::new(),
                false => format!("  since {}", s.raised_by.join(", ")),
            };
            out.push(format!("{name:<20} {:>6} {:>6} {:>7}  {}{by}", s.made, s.asked, s.refused, s.label));
        }
        out.push(String::new());
        let room = rows.saturating_sub(out.len());
        out.extend(self.recent.iter().skip(self.recent.len().saturating_sub(room)).cloned());
        out.iter().map(|line| fitted(line, columns.max(20))).collect()
    }
}

/// The time of day of an event, UTC.
fn time(event: &Value) -> String {
    // Seconds of a day are few.
    let seconds = event["time"].as_f64().unwrap_or_default().max(0.0) as u64 % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(session: &str, what: Value) -> Value {
        let mut object = json!({"time": 3_723.5, "session": session});
        object.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        object
    }

    #[test]
    fn the_view_has_the_label_of_each_session_and_the_last_decisions() {
        let mut view = WatchView::default();
        view.add(&event("a", json!({"event": "made", "tool": "fetch", "label": "[]"})));
        view.add(&event("a", json!({"event": "raised", "by": "fetch", "label": "[\"U\"]"})));
        view.add(&event("a", json!({"event": "refused", "tool": "send", "message": "no"})));
        view.add(&event("b", json!({"event": "made", "tool": "send", "label": "[]"})));
        let lines = view.lines(20, 100);
        assert!(lines[1].starts_with("b ") && lines[1].ends_with("[]"), "{lines:?}");
        assert!(lines[2].starts_with("a ") && lines[2].ends_with("[\"U\"]  since fetch"), "{lines:?}");
        assert!(lines.iter().any(|l| l == "01:02:03  refused      send  no"), "{lines:?}");
        // A new conversation of the session has read nothing.
        view.add(&event("a", json!({"event": "fresh", "from": "[\"U\"]", "label": "[]"})));
        assert!(view.lines(20, 100)[2].ends_with("[]"));
        // Where no terminal limits it, the reason is whole.
        let why = "because ".repeat(40);
        view.add(&event("a", json!({"event": "refused", "tool": "send", "message": why.trim()})));
        assert!(view.lines(usize::MAX, usize::MAX).iter().any(|l| l.ends_with(why.trim())));
        // It is no longer than the terminal, and controls it not.
        view.add(&event("a", json!({"event": "refused", "tool": "x\u{1b}[2J"})));
        let narrow = view.lines(6, 40);
        assert!(narrow.len() <= 6 && narrow.iter().all(|l| l.chars().count() <= 40), "{narrow:?}");
        assert!(view.lines(20, 100).iter().all(|l| !l.contains('\u{1b}')));
    }

    #[test]
    fn a_file_is_read_on_from_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let line = |n: u64| format!("{}\n", event("a", json!({"event": "made", "tool": format!("t{n}")})));
        std::fs::write(&path, format!("{}{}", line(1), &line(2)[..10])).unwrap();
        let (mut view, mut log) = (WatchView::default(), LogFile::default());
        assert!(log.read(&path, &mut view).unwrap());
        assert_eq!(view.sessions["a"].made, 1);
        std::fs::write(&path, format!("{}{}no JSON\n", line(1), line(2))).unwrap();
        assert!(log.read(&path, &mut view).unwrap());
        assert_eq!((view.sessions["a"].made, log.foreign), (2, 1));
        assert!(!log.read(&path, &mut view).unwrap());
        // Renamed, and begun again.
        std::fs::write(&path, line(3)).unwrap();
        assert!(log.read(&path, &mut view).unwrap());
        assert_eq!(view.sessions["a"].made, 3);
    }
}
