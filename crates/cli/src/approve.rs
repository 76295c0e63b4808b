//! Asking the person at the terminal whether a tool may be called, and what a server wants to know.
//!
//! Entry point: [`Terminal::open`].
//!
//! Invariant: only `y` or `yes`, typed after the question was shown, approves. Other arguments that are typed
//! are shown in a question of their own.
//! Invariant: only the answer to a displayed question is read. Later input is left to the terminal's next
//! reader.
//! Invariant: an address that a server wants to be visited is shown, and never opened.
//! Invariant: what is shown cannot move the cursor, reorder text or look like the label: values are JSON, and
//! everything that controls a terminal is escaped.

use core_ir::{Data, LabelSpec, Name};
use diagnostics::visible;
use runtime::{
    Approval, Approver, Decider, Edit, Elicitation, ElicitationAnswer, ElicitationKind, FieldKind, FormField,
    Via,
};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, oneshot};

/// Characters of an argument that are shown.
pub(crate) const MAX_ARGUMENT_CHARS: usize = 1000;

/// Lines of a server's message that are shown.
const MAX_LINES: usize = 20;

/// A terminal with a person at it.
#[derive(Clone, Default)]
pub struct Terminal {
    asking: Arc<AtomicBool>,
    /// Lock held during a question, so that questions of parallel branches come one after another.
    turn: Arc<Mutex<()>>,
}

impl Terminal {
    /// The terminal, if questions can be both seen (on standard error) and answered (from standard input).
    pub fn open() -> Option<Terminal> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then(Terminal::default)
    }

    /// Returns true if a question stands there, which must not be written over.
    pub fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed)
    }

    /// Approves what the person at the terminal approves.
    pub fn approver(&self) -> Approver {
        let (terminal, answers) = (self.clone(), self.clone());
        Approver::editing(move |call| {
            let terminal = terminal.clone();
            Box::pin(async move { terminal.ask(&call).await })
        })
        .answering(move |question| {
            let terminal = answers.clone();
            Box::pin(async move { terminal.answer(&question).await })
        })
        .answered_by(Decider::new(local_user(), Via::Terminal))
    }

    /// Asks about a call: yes, no, or other arguments, which are asked about again.
    ///
    /// # Errors
    /// The reason of a refusal.
    async fn ask(&self, call: &Approval) -> Result<Option<Edit>, String> {
        let _turn = self.turn.lock().await;
        // Input typed before the question is not an answer to it.
        discard_typed();
        let mut shown = ShownQuestion { asking: &self.asking, unanswered: Some("not approved: no answer") };
        self.asking.store(true, Ordering::Relaxed);
        let mut changed: Vec<(Name, Data)> = Vec::new();
        say(&format!("\r\x1b[2K{}", question(call)));
        loop {
            let Some(line) = read_line().await else { break };
            if is_yes(&line) {
                shown.unanswered = None;
                return Ok((!changed.is_empty()).then(|| Edit::trusted(changed)));
            }
            if call.args.is_empty() || !is_edit(&line) {
                shown.unanswered = None;
                return Err("it was refused at the terminal".into());
            }
            say("the arguments that change, as JSON: ");
            let Some(line) = read_line().await else { break };
            match other_arguments(call, &line) {
                Ok(args) => changed = args,
                Err(why) => say(&format!("{}\n", visible(&why, 2 * MAX_ARGUMENT_CHARS))),
            }
            say(&asked_again(&changed));
        }
        Err("no answer was given at the terminal".into())
    }
}

/// The question after other arguments have been typed.
fn asked_again(changed: &[(Name, Data)]) -> String {
    let mut text = String::from(if changed.is_empty() { "the call as it is\n" } else { "the call with\n" });
    for (name, value) in changed {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} = {}", visible(name, MAX_ARGUMENT_CHARS), shown(&value.to_json()));
    }
    text.push_str(QUESTION_WITH_ARGUMENTS);
    text
}

/// The end of a question about a call that has arguments.
const QUESTION_WITH_ARGUMENTS: &str = "approve? [y/N, e changes arguments] ";

fn is_edit(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "e" | "edit")
}

/// The arguments of an object that differ from those of the call.
///
/// # Errors
/// In words for people: the text is no object, or an argument has no parameter or not its type.
fn other_arguments(call: &Approval, typed: &str) -> Result<Vec<(Name, Data)>, String> {
    let object: Value = serde_json::from_str(typed).map_err(|e| format!("this is not JSON: {e}"))?;
    let fields = object.as_object().ok_or("this is not an object such as {\"amount\": 40}")?;
    let mut args = Vec::new();
    for (name, json) in fields {
        let Some(asked) = call.args.iter().find(|arg| *arg.name == **name) else {
            return Err(format!("`{}` has no parameter `{name}`", call.tool));
        };
        let data = Data::from_json(json).map_err(|e| format!("the argument `{name}`: {e}"))?;
        asked.ty.check(&data).map_err(|(path, why)| format!("the argument `{name}`: {path}: {why}"))?;
        if data != asked.value {
            args.push((asked.name.clone(), data));
        }
    }
    Ok(args)
}

impl Terminal {
    /// Asks what a server wants to know.
    async fn answer(&self, question: &Elicitation) -> ElicitationAnswer {
        let _turn = self.turn.lock().await;
        discard_typed();
        let mut shown = ShownQuestion { asking: &self.asking, unanswered: Some("not answered") };
        self.asking.store(true, Ordering::Relaxed);
        say(&format!("\r\x1b[2K{}", server_question(question)));
        let answer = match read_line().await {
            Some(line) if is_yes(&line) => match &question.asks {
                ElicitationKind::Form(fields) => fill_in(fields).await,
                ElicitationKind::Url(_) => Some(Map::new()),
            },
            Some(_) => {
                shown.unanswered = None;
                return ElicitationAnswer::Decline("it was declined at the terminal".into());
            }
            None => None,
        };
        match answer {
            Some(content) => {
                shown.unanswered = None;
                // As what this person gives the run as its input by default.
                ElicitationAnswer::Accept { content, label: LabelSpec::BOTTOM }
            }
            None => ElicitationAnswer::Cancel("no answer was given at the terminal".into()),
        }
    }
}

/// Asks for the value of each field, again if a value does not fit; `None` if the input ends before that.
async fn fill_in(fields: &[FormField]) -> Option<Map<String, Value>> {
    let mut content = Map::new();
    for field in fields {
        say(&field_prompt(field));
        let value = loop {
            say("  > ");
            let line = read_line().await?;
            match typed_value(field, line.trim_end_matches(['\r', '\n'])) {
                Ok(value) => break value,
                Err(why) => say(&format!("  {why}\n")),
            }
        };
        if let Some(value) = value {
            content.insert(field.name.clone(), value);
        }
    }
    Some(content)
}

/// The value of a field as it was typed. Nothing is the proposed value, or no value.
fn typed_value(field: &FormField, typed: &str) -> Result<Option<Value>, String> {
    let options = |options: &[(String, String)], typed: &str| {
        let number = typed.trim().parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let named = options.iter().find(|(value, _)| value == typed.trim());
        named.or_else(|| options.get(number?)).map(|(value, _)| Value::from(&**value))
    };
    if typed.trim().is_empty() {
        return match &field.default {
            None if field.is_required => Err("it needs a value; Ctrl-D gives no answer at all".into()),
            default => Ok(default.clone()),
        };
    }
    let none = || "it is none of the options".to_string();
    let value = match &field.kind {
        FieldKind::Text { .. } => Value::from(typed),
        FieldKind::Number { .. } => match serde_json::from_str::<Value>(typed.trim()) {
            Ok(value @ Value::Number(_)) => value,
            _ => return Err("it is not a number".into()),
        },
        FieldKind::Boolean => match typed.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("it is neither `y` nor `n`".into()),
        },
        FieldKind::Choice(of) => options(of, typed).ok_or_else(none)?,
        FieldKind::Choices { options: of, .. } => {
            let chosen = typed.split(',').map(|typed| options(of, typed).ok_or_else(none));
            Value::Array(chosen.collect::<Result<_, _>>()?)
        }
    };
    field.kind.check(&value).map(|()| Some(value))
}

/// The question of a server, with all its texts escaped.
fn server_question(question: &Elicitation) -> String {
    let short = |text: &str| visible(text, MAX_ARGUMENT_CHARS);
    let mut text = format!(
        "the MCP server `{}` asks a question while its tool `{}` is called. Its message, which nobody has checked:\n",
        short(&question.server),
        short(&question.tool)
    );
    for line in question.message.lines().take(MAX_LINES) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  | {}", short(line));
    }
    if question.message.lines().count() > MAX_LINES {
        let _ = writeln!(text, "  | … and more lines");
    }
    match &question.asks {
        ElicitationKind::Form(fields) => {
            let names: Vec<String> = fields.iter().map(|f| format!("`{}`", short(&f.name))).collect();
            let _ = writeln!(text, "it asks for {}. Give it no password and no key", names.join(", "));
            text.push_str("answer? [y/N] ");
        }
        ElicitationKind::Url(url) => {
            let _ = writeln!(text, "it asks you to visit {}", visible(url, 4 * MAX_ARGUMENT_CHARS));
            text.push_str("open it yourself if you trust this host. Go on? [y/N] ");
        }
    }
    text
}

/// The lines above the value of a field.
fn field_prompt(field: &FormField) -> String {
    let short = |text: &str| visible(text, MAX_ARGUMENT_CHARS);
    let mut text = short(&field.name);
    let mut add = |more: String| text.push_str(&more);
    if let Some(title) = &field.title {
        add(format!(" ({})", short(title)));
    }
    if let Some(description) = &field.description {
        add(format!(": {}", short(description)));
    }
    add("\n".into());
    match &field.kind {
        FieldKind::Text { format: Some(format), .. } => {
            add(format!("  a text of the format {}\n", short(format)))
        }
        FieldKind::Text { .. } => add("  a text\n".into()),
        FieldKind::Number { is_integer, .. } => {
            add(format!("  a {}number\n", if *is_integer { "whole " } else { "" }));
        }
        FieldKind::Boolean => add("  y or n\n".into()),
        FieldKind::Choice(options) | FieldKind::Choices { options, .. } => {
            for (i, (value, title)) in options.iter().enumerate() {
                let title = if value == title { String::new() } else { format!(": {}", short(title)) };
                add(format!("  {}. {}{title}\n", i + 1, short(value)));
            }
            if matches!(field.kind, FieldKind::Choices { .. }) {
                add("  several, with commas between them\n".into());
            }
        }
    }
    match &field.default {
        Some(default) => add(format!("  nothing means {}\n", self::shown(default))),
        None if !field.is_required => add("  nothing leaves it out\n".into()),
        None => {}
    }
    text
}

/// The name of the local user, as the environment has it.
pub(crate) fn local_user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|n| std::env::var(n).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(unnamed_user)
}

#[cfg(unix)]
fn unnamed_user() -> String {
    format!("uid {}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn unnamed_user() -> String {
    "local user".into()
}

/// A question that stands at the terminal; it may be dropped before it is answered.
struct ShownQuestion<'a> {
    asking: &'a AtomicBool,
    /// Line that says that it was not answered.
    unanswered: Option<&'static str>,
}

impl Drop for ShownQuestion<'_> {
    fn drop(&mut self) {
        if let Some(line) = self.unanswered {
            say(&format!("\n{line}\n"));
        }
        self.asking.store(false, Ordering::Relaxed);
    }
}

/// Writes to the terminal. If that fails, the question stays unseen and so is not approved.
fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Reads a line of standard input; `None` at its end. A read can't be canceled, so it runs on a thread of its
/// own, which first checks that input is available and that the caller still waits.
async fn read_line() -> Option<String> {
    let (give, line) = oneshot::channel();
    std::thread::spawn(move || {
        while !give.is_closed() {
            if something_is_typed() {
                // A terminal gives a line at a time.
                let mut typed = Vec::new();
                let read = std::io::stdin().lock().read_until(b'\n', &mut typed).is_ok_and(|n| n > 0);
                let _ = give.send(read.then(|| String::from_utf8_lossy(&typed).into_owned()));
                return;
            }
        }
    });
    line.await.ok().flatten()
}

/// Returns true if reading standard input would not wait; looked for during a moment.
#[cfg(unix)]
fn something_is_typed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let stdin = std::io::stdin();
    // Where it can't be known, reading tells.
    !matches!(
        poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&moment)),
        Ok(0) | Err(rustix::io::Errno::INTR)
    )
}

#[cfg(not(unix))]
fn something_is_typed() -> bool {
    true
}

#[cfg(unix)]
fn discard_typed() {
    // If it can't be done, the lines that were read are discarded all the same.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Asks a question at the terminal until the answer is yes or no; `None` if the input ends before that
/// (Ctrl-D).
pub(crate) fn ask_here(question: &str) -> Option<bool> {
    discard_typed();
    ask_until(question, &mut std::io::stdin().lock())
}

fn ask_until(question: &str, typed: &mut impl BufRead) -> Option<bool> {
    loop {
        say(question);
        let mut line = Vec::new();
        if !typed.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            say("\n");
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        if is_yes(&line) {
            return Some(true);
        }
        if matches!(line.trim().to_ascii_lowercase().as_str(), "n" | "no") {
            return Some(false);
        }
        say("answer `y` or `n`; Ctrl-D leaves it waiting\n");
    }
}

/// Line about a call that untrusted data decided.
pub(crate) const DECIDED: &str =
    "  untrusted data decided that this call is made; the labels say so of every argument\n";

/// A value for a question. Of one that is too long, the texts in it are cut as far as needed, so that none of
/// them keeps what follows from being seen.
pub(crate) fn shown(value: &Value) -> String {
    let whole = value.to_string();
    let fits = |text: &String| text.chars().count() <= MAX_ARGUMENT_CHARS;
    if !value.is_object() && !value.is_array() || fits(&whole) {
        return visible(&whole, MAX_ARGUMENT_CHARS);
    }
    let mut shorter = [400, 200, 100].into_iter().map(|most| with_short_texts(value, most));
    let text = shorter.find(fits).unwrap_or_else(|| with_short_texts(value, 50));
    visible(&text, MAX_ARGUMENT_CHARS)
}

/// A value as JSON in which each text and key has this many characters at most, and the number of those left
/// out.
fn with_short_texts(value: &Value, most: usize) -> String {
    let short = |text: &str| {
        let beginning: String = text.chars().take(most).collect();
        let left = text.chars().count().saturating_sub(most);
        let rest = if left == 0 { String::new() } else { format!(" … and {left} more characters") };
        Value::from(beginning + &rest).to_string()
    };
    let inner = |v: &Value| with_short_texts(v, most);
    match value {
        Value::String(text) => short(text),
        Value::Array(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(k, v)| format!("{}:{}", short(k), inner(v)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// The question: the tool, and each argument with its label.
fn question(call: &Approval) -> String {
    let mut text = format!("the program asks to call the tool `{}`", visible(&call.tool, MAX_ARGUMENT_CHARS));
    text.push_str(if call.args.is_empty() { " without arguments\n" } else { " with\n" });
    for arg in &call.args {
        let value = shown(&arg.value.to_json());
        let label = arg.label.to_json().to_string();
        let label = if label == "[]" {
            String::new()
        } else {
            format!("  (label {})", visible(&label, MAX_ARGUMENT_CHARS))
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} = {value}{label}", visible(&arg.name, MAX_ARGUMENT_CHARS));
        for reason in arg.reasons() {
            let _ = writeln!(text, "      {}", visible(&reason, 2 * MAX_ARGUMENT_CHARS));
        }
    }
    if call.is_decided {
        text.push_str(DECIDED);
    }
    text.push_str(if call.args.is_empty() { "approve? [y/N] " } else { QUESTION_WITH_ARGUMENTS });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Type;
    use runtime::ApprovalArg;

    #[test]
    fn other_arguments_have_the_types_of_the_parameters() {
        let arg = |name: &str, ty, value| ApprovalArg {
            name: name.into(),
            ty,
            value,
            label: Data::list([]),
            chains: Vec::new(),
        };
        let call = Approval {
            tool: "pay".into(),
            args: vec![arg("to", Type::Str, Data::str("bob")), arg("urgent", Type::Bool, Data::Bool(false))],
            is_decided: false,
            channel: Data::list([]),
        };
        let typed = |text: &str| other_arguments(&call, text);
        assert_eq!(typed(r#"{"to": "carol"}"#), Ok(vec![("to".into(), Data::str("carol"))]));
        assert_eq!(typed(r#"{"to": "bob", "urgent": false}"#), Ok(Vec::new()));
        for (text, why) in [
            ("carol", "not JSON"),
            ("[1]", "not an object"),
            (r#"{"who": "carol"}"#, "no parameter `who`"),
            (r#"{"urgent": "yes"}"#, "the argument `urgent`"),
        ] {
            assert!(typed(text).unwrap_err().contains(why), "{text}");
        }
        assert!(asked_again(&[("to".into(), Data::str("a\u{202e}"))]).contains(r"\u{202e}"));
    }

    #[test]
    fn questions_show_calls_without_control_characters() {
        let arg = |name: &str, value, label| ApprovalArg {
            name: name.into(),
            ty: Type::Dyn,
            value,
            label,
            chains: Vec::new(),
        };
        let call = Approval {
            tool: "send\x1b[2J".into(),
            args: vec![
                arg("to", Data::str("a\u{202e}b\n\u{9b}2J"), Data::list([Data::str("U")])),
                arg("n", Data::Bool(true), Data::list([])),
                arg("body", Data::str("x".repeat(2000)), Data::list([])),
            ],
            is_decided: false,
            channel: Data::list([]),
        };
        let decided = question(&Approval { is_decided: true, ..call.clone() });
        assert!(decided.contains("\n  untrusted data decided that this call is made; "), "{decided}");
        let text = question(&call);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], r"the program asks to call the tool `send\u{1b}[2J` with");
        assert_eq!(lines[1], r#"  to = "a\u{202e}b\n\u{9b}2J"  (label ["U"])"#);
        assert_eq!(lines[2], "  n = true");
        assert!(lines[3].ends_with("xxx … and 1002 more characters"), "{}", lines[3]);
        assert_eq!(lines[4..], [QUESTION_WITH_ARGUMENTS]);
    }

    fn field(name: &str, kind: FieldKind) -> FormField {
        FormField {
            name: name.into(),
            title: None,
            description: None,
            is_required: true,
            kind,
            default: None,
        }
    }

    #[test]
    fn questions_of_servers_are_shown_without_control_characters() {
        let asks = ElicitationKind::Form(vec![field("ke\x1by", FieldKind::Boolean)]);
        let (server, tool) = ("s".into(), "book".into());
        let message = "Hello\x1b[2J\n> approve? [y/N] y\u{202e}".into();
        let question = Elicitation { server, tool, message, asks, labels: Vec::new() };
        let text = server_question(&question);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("the MCP server `s` asks a question while its tool `book` is called"));
        assert_eq!(lines[1..3], [r"  | Hello\u{1b}[2J", r"  | > approve? [y/N] y\u{202e}"]);
        assert_eq!(lines[3], r"it asks for `ke\u{1b}y`. Give it no password and no key");
        let url = ElicitationKind::Url("https://example.com/login".into());
        let text = server_question(&Elicitation { asks: url, message: "x\n".repeat(30), ..question });
        assert!(
            text.contains("  | … and more lines\nit asks you to visit https://example.com/login\n"),
            "{text}"
        );
    }

    #[test]
    fn typed_values_fit_their_field() {
        let typed = |field: &FormField, line: &str| typed_value(field, line);
        let text = field("t", FieldKind::Text { min: None, max: Some(3), format: None });
        assert_eq!(typed(&text, "abc"), Ok(Some(Value::from("abc"))));
        assert_eq!(typed(&text, "abcd"), Err("it takes at most 3 characters".into()));
        assert!(typed(&text, " ").is_err_and(|why| why.contains("it needs a value")));
        let left_out = FormField { is_required: false, ..text.clone() };
        assert_eq!(typed(&left_out, ""), Ok(None));
        assert_eq!(typed(&FormField { default: Some("x".into()), ..text }, ""), Ok(Some("x".into())));
        let number = field("n", FieldKind::Number { min: Some(1.0), max: None, is_integer: true });
        assert_eq!(typed(&number, " 7 "), Ok(Some(7.into())));
        assert!(typed(&number, "0").is_err() && typed(&number, "\"7\"").is_err());
        assert_eq!(typed(&field("b", FieldKind::Boolean), "No"), Ok(Some(false.into())));
        let of = vec![("r".to_string(), "Red".to_string()), ("g".to_string(), "g".to_string())];
        let choice = field("c", FieldKind::Choice(of.clone()));
        assert_eq!((typed(&choice, "2"), typed(&choice, "r")), (Ok(Some("g".into())), Ok(Some("r".into()))));
        assert!(
            typed(&choice, "3").is_err() && typed(&choice, "0").is_err() && typed(&choice, "Red").is_err()
        );
        let several = field("s", FieldKind::Choices { options: of, min: None, max: None });
        assert_eq!(typed(&several, "1, g"), Ok(Some(serde_json::json!(["r", "g"]))));
        assert!(field_prompt(&several).contains("  1. r: Red\n  2. g\n  several"));
    }

    #[test]
    fn a_long_text_hides_no_other_part() {
        let note = "x".repeat(5000);
        let text = shown(&serde_json::json!({"note": note, "items": [note], "to": "MALLORY"}));
        assert!(text.ends_with(r#" … and 4600 more characters"],"to":"MALLORY"}"#), "{text}");
        let many = shown(&serde_json::json!([vec!["a\u{202e}"; 999], "MALLORY"]));
        assert!(many.contains(r#""a\u{202e}","a"#) && many.ends_with(" more characters"), "{many}");
    }

    #[test]
    fn a_question_that_waits_is_denied_only_by_a_no() {
        for (typed, answer) in [
            ("y\n", Some(true)),
            ("n\n", Some(false)),
            (" NO\n", Some(false)),
            ("", None),
            ("\n", None),
            ("\n\nperhaps\nyes\n", Some(true)),
            ("perhaps\nn", Some(false)),
        ] {
            assert_eq!(ask_until("approve? [y/n] ", &mut typed.as_bytes()), answer, "{typed:?}");
        }
        let mut bytes: &[u8] = b"\xff\xfe\ny\n";
        assert_eq!(ask_until("approve? [y/n] ", &mut bytes), Some(true));
    }

    #[test]
    fn only_yes_is_yes() {
        for yes in ["y\n", " YES \r\n", "Y"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yy\n", "yes please\n", "да\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
