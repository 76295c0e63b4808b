//! Lines from a terminal or a pipe, put together to inputs.
//!
//! Entry point: [`Input::open`], then [`Input::read`].
//!
//! Invariant: an input continues while a bracket or a string is open or an operand is missing. An empty line
//! always ends it.
//! Invariant: where standard input is no terminal, nothing but what inputs give is written.

use super::{COMMANDS, command};
use crate::ui::Ui;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::io::{BufRead, IsTerminal, Read as _};
use std::path::PathBuf;
use syntax::lam::{Ending, ending};

/// Result of parsing an input.
pub enum ParsedInput {
    /// An input.
    Text(String),
    /// Invalid input, with the reason.
    Wrong(String),
    /// There is no more.
    End,
}

/// Source of inputs.
pub enum Input {
    /// A terminal, and where its history is kept.
    Terminal(Box<Editor<Assistant, DefaultHistory>>, Option<PathBuf>),
    /// Anything else.
    Lines,
}

/// Lines of one input at most, so that reading does not take ever longer.
const MAX_LINES: usize = 1_000;

impl Input {
    /// Standard input.
    pub fn open(ui: &Ui) -> Input {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Input::Lines;
        }
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .auto_add_history(true)
            .max_history_size(2_000)
            .map(|c| c.build())
            .unwrap_or_default();
        let Ok(mut editor) = Editor::with_config(config) else { return Input::Lines };
        editor.set_helper(Some(Assistant { names: Vec::new(), files: FilenameCompleter::new() }));
        let history = history();
        if let Some(file) = history.as_ref().filter(|f| f.exists())
            && let Err(e) = editor.load_history(file)
        {
            ui.note(&format!("the history `{}` cannot be read: {e}", file.display()));
        }
        Input::Terminal(Box::new(editor), history)
    }

    /// Returns true if the input is a terminal.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Input::Terminal(..))
    }

    /// The next input; these names can be completed.
    pub fn read(&mut self, names: &[String]) -> ParsedInput {
        let Input::Terminal(editor, history) = self else { return piped() };
        if let Some(helper) = editor.helper_mut() {
            helper.names = names.to_vec();
        }
        loop {
            match editor.readline("entail> ") {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => {
                    // A history that cannot be kept is not worth a word after every input.
                    if let Some(file) = history {
                        let _ = file.parent().map(std::fs::create_dir_all);
                        let _ = editor.append_history(file);
                    }
                    return ParsedInput::Text(indented(&text));
                }
                // Ctrl-C gives the line up.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return ParsedInput::End,
                Err(e) => return ParsedInput::Wrong(format!("cannot read the line: {e}")),
            }
        }
    }
}

/// An input from something that is no terminal.
fn piped() -> ParsedInput {
    let most = syntax::lam::MAX_TEXT_BYTES as u64 + 1;
    let mut text = String::new();
    for n in 0.. {
        let mut line = Vec::new();
        match std::io::stdin().lock().take(most).read_until(b'\n', &mut line) {
            Ok(_) => {}
            Err(e) => return ParsedInput::Wrong(format!("cannot read standard input: {e}")),
        }
        let ended = line.is_empty();
        let Ok(line) = String::from_utf8(line) else {
            return ParsedInput::Wrong("the line is not UTF-8".into());
        };
        let blank = line.trim().is_empty();
        text.push_str(&line);
        if ended && text.trim().is_empty() {
            return ParsedInput::End;
        }
        let full = n + 1 >= MAX_LINES || text.len() >= most as usize;
        let goes_on = !(ended || full || blank && n > 0);
        let more = goes_on && unfinished(&text);
        if !more && !text.trim().is_empty() {
            break;
        }
    }
    ParsedInput::Text(indented(text.trim_end_matches(['\n', '\r'])))
}

/// Returns true if an input continues on the next line.
fn unfinished(text: &str) -> bool {
    wanting(text) != Ending::Complete
}

/// Returns how an input ends. Text after a command that takes no term is never continued on the next line.
fn wanting(text: &str) -> Ending {
    match command(text) {
        None => ending(text),
        Some((name, rest)) if COMMANDS.iter().any(|(n, takes, _)| *n == name && *takes == "TERM") => {
            ending(rest)
        }
        Some(_) => Ending::Complete,
    }
}

/// An input whose later lines stand to the right of its first, because a line at the margin begins something
/// new.
fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if !line.starts_with(char::is_whitespace) && wanting(&out) == Ending::Open {
            out.push_str("  ");
        }
        out.push_str(line);
    }
    out
}

/// `entail/history` in the user's state directory.
fn history() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_STATE_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".local").join("state")));
    Some(base.or_else(|| set("LOCALAPPDATA"))?.join("entail").join("history"))
}

/// Helps to write an input: more lines where it is unfinished, names and commands that fit.
pub struct Assistant {
    /// Names that the input defines.
    names: Vec<String>,
    files: FilenameCompleter,
}

impl Helper for Assistant {}
impl Highlighter for Assistant {}
impl Hinter for Assistant {
    type Hint = String;
}

impl Validator for Assistant {
    fn validate(&self, ctx: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let text = ctx.input();
        let blank = text.contains('\n') && text.rsplit('\n').next().is_some_and(|l| l.trim().is_empty());
        let goes_on = !blank && text.lines().count() < MAX_LINES && unfinished(text);
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, ctx: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or(line);
        if let Some(("load", rest)) = command(before)
            && before.contains(char::is_whitespace)
        {
            // Only the path is completed, whatever it contains.
            let start = before.len() - rest.trim_start().len();
            let (at, found) = self.files.complete_path(rest.trim_start(), rest.trim_start().len())?;
            return Ok((start + at, found));
        }
        let _ = ctx;
        let is_part = |c: char| core_ir::print::identifier_part(c);
        let start = before
            .rfind(|c| !is_part(c))
            .map_or(0, |n| n + before[n..].chars().next().map_or(1, char::len_utf8));
        let word = &before[start..];
        let pair = |text: &str| Pair { display: text.to_string(), replacement: text.to_string() };
        if before.trim_start().strip_prefix(':') == Some(word) {
            let found =
                COMMANDS.iter().filter(|(name, ..)| name.starts_with(word)).map(|(name, takes, _)| {
                    let space = if takes.is_empty() { "" } else { " " };
                    Pair { display: format!(":{name}"), replacement: format!("{name}{space}") }
                });
            return Ok((start, found.collect()));
        }
        if word.is_empty() {
            return Ok((start, Vec::new()));
        }
        let prelude = agentlang::calculus::prelude();
        let mut all: Vec<&str> = self.names.iter().map(String::as_str).collect();
        all.extend(prelude.names().iter().map(|n| &**n));
        all.extend(core_ir::print::KEYWORDS);
        all.retain(|name| name.starts_with(word) && name.chars().all(is_part));
        all.sort_unstable();
        all.dedup();
        Ok((start, all.into_iter().map(pair).collect()))
    }
}
