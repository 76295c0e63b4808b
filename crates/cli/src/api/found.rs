//! Findings and errors as plain values.

use diagnostics::{Diagnostic, Level, Sources, render};
use runtime::ConfigError;
use serde_json::{Value, json};
use session::SettingsError;
use session::load::Problem;
use std::fmt;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named.
    pub path: String,
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
}

impl Place {
    fn of_json(json: &Value) -> Option<Place> {
        let number = |name: &str| json.get(name)?.as_u64();
        let path = json.get("path")?.as_str()?.to_string();
        Some(Place { path, line: number("line")?, column: number("column")? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

/// Finding about a program or a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The code that `entail explain` knows, such as `L004a`.
    pub code: String,
    /// `error`, `warn`, `unknown` (it could not be decided) or `info`.
    pub level: String,
    /// The problem.
    pub message: String,
    /// Where.
    pub place: Option<Place>,
    /// The remedy.
    pub help: Option<String>,
    json: Value,
}

impl Finding {
    pub(crate) fn of(sources: &Sources, d: &Diagnostic) -> Finding {
        Finding::of_json(&render::json(sources, d))
    }

    pub(crate) fn of_json(json: &Value) -> Finding {
        let text = |name: &str| json.get(name).and_then(Value::as_str).map(String::from);
        Finding {
            code: text("code").unwrap_or_default(),
            level: text("level").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            place: Place::of_json(json),
            help: text("help"),
            json: json.clone(),
        }
    }

    /// Everything that is known of it, as `entail lint --format json` writes it: also the end of the place,
    /// other places, the framework, the agent, the repair.
    pub fn to_json(&self) -> &Value {
        &self.json
    }

    /// Returns true if the level is `error`.
    pub fn is_error(&self) -> bool {
        self.level == Level::Error.as_str()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}[{}]: {}", self.level, self.code, self.message)
    }
}

/// Error for people to read. `{}` prints it as the command line does.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// `program`, `input`, `output`, `type` (a Rust type that differs from the program's), `settings`,
    /// `usage`, or the code of the error that ended a run, such as `tool` or `budget`.
    pub code: String,
    /// The problem; of several the first.
    pub message: String,
    /// Place in a program.
    pub place: Option<Box<Place>>,
    /// The remedy.
    pub help: Option<String>,
    /// All that is wrong with a program.
    pub findings: Vec<Finding>,
    shown: Option<Box<str>>,
}

impl Error {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Error {
        Error {
            code: code.into(),
            message: message.into(),
            place: None,
            help: None,
            findings: Vec::new(),
            shown: None,
        }
    }

    /// A wrong request.
    pub fn usage(message: impl Into<String>) -> Error {
        Error::new("usage", message)
    }

    pub(crate) fn with_help(mut self, help: Option<impl Into<String>>) -> Error {
        self.help = help.map(Into::into);
        self
    }

    /// Returns the errors of a program.
    pub(crate) fn of_program(sources: &Sources, found: &[Diagnostic]) -> Error {
        let worst = found.iter().find(|d| d.level == Level::Error).or(found.first());
        let mut error = match worst {
            Some(d) => Error::of(sources, d),
            None => Error::new("program", "the program is wrong"),
        };
        error.code = "program".into();
        error.findings = found.iter().map(|d| Finding::of(sources, d)).collect();
        let shown: Vec<String> = found.iter().map(|d| render::text(sources, d, false)).collect();
        error.shown = Some(shown.join("\n\n").into());
        error
    }

    /// The reason why a program could not be loaded.
    pub(crate) fn of_problem(sources: &Sources, problem: Problem) -> Error {
        match problem {
            Problem::Unreadable(message, help) => Error::new("program", message).with_help(help),
            Problem::Wrong(found) | Problem::Policy(found) => Error::of_program(sources, &found),
        }
    }

    /// One diagnostic as an error.
    pub(crate) fn of(sources: &Sources, d: &Diagnostic) -> Error {
        let finding = Finding::of(sources, d);
        Error {
            code: finding.code,
            message: finding.message,
            place: finding.place.map(Box::new),
            help: finding.help,
            findings: Vec::new(),
            shown: Some(render::text(sources, d, false).into()),
        }
    }

    /// As JSON: `code`, `message`, `help`, the place as `path`, `line` and `column`, `findings`, and `text`,
    /// which is what is shown.
    pub fn to_json(&self) -> Value {
        let mut json = json!({"code": self.code, "message": self.message, "text": self.to_string()});
        if let Some(place) = &self.place {
            json["path"] = place.path.clone().into();
            json["line"] = place.line.into();
            json["column"] = place.column.into();
        }
        if let Some(help) = &self.help {
            json["help"] = help.clone().into();
        }
        if !self.findings.is_empty() {
            json["findings"] = self.findings.iter().map(|f| f.json.clone()).collect();
        }
        json
    }
}

impl From<SettingsError> for Error {
    fn from(e: SettingsError) -> Error {
        Error::new("settings", e.message).with_help(e.help)
    }
}

impl From<ConfigError> for Error {
    fn from(e: ConfigError) -> Error {
        Error::new("settings", e.message).with_help(e.help)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(shown) = &self.shown {
            return f.write_str(shown);
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
