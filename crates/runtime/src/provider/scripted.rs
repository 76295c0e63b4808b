//! A model whose replies are written down beforehand, for tests and demonstrations.

use super::kinds::{ModelSpec, ProviderKind};
use super::{Answer, ModelCall, ModelError, Price, Provider, Tokens, Work};
use crate::ConfigError;
use crate::event::Progress;
use machine::Reply;
use runs::{Question, Script, ScriptError};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A script larger than this is refused.
const MAX_FILE: u64 = 64 << 20;

/// A model that answers from a [`Script`].
///
/// # Examples
/// ```
/// let replies = r#"["first", {"purpose": "classify", "reply": {"category": "billing"}}]"#;
/// let model = runtime::Scripted::parse(replies).unwrap();
/// assert_eq!(model.left(), 2);
/// ```
#[derive(Debug)]
pub struct Scripted(Mutex<Script>);

impl From<ScriptError> for ConfigError {
    fn from(e: ScriptError) -> ConfigError {
        let error = ConfigError::new(e.message);
        match e.help {
            Some(help) => error.with_help(help),
            None => error,
        }
    }
}

/// Reads a script from a file.
pub(crate) fn script_in(path: &Path) -> Result<Script, ConfigError> {
    let name = format!("`{}`", path.display());
    let failed = |e: std::io::Error| {
        match e.kind() {
            std::io::ErrorKind::NotFound => ConfigError::new(format!("cannot read {name}: no such file"))
                .with_help("a script is a JSON array of replies, such as `[\"yes\"]`; its path is relative to the working directory"),
            _ => ConfigError::new(format!("cannot read {name}: {e}")),
        }
    };
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err(ConfigError::new(format!("{name} is not a file")));
    }
    if about.len() > MAX_FILE {
        return Err(ConfigError::new(format!("{name} is larger than 64 MiB")));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok(Script::parse(&text, &name)?)
}

impl Scripted {
    /// Reads a script.
    ///
    /// # Errors
    /// It is no JSON array, an entry has an unknown form, or is the result of a tool, which is no model's;
    /// the message names the entry or the tool.
    pub fn parse(text: &str) -> Result<Scripted, ConfigError> {
        let script = Script::parse(text, "the script")?;
        if let Some(tool) = script.tools().first() {
            let help = "register a function for the tool; in a test, write `mock`";
            return Err(
                ConfigError::new(format!("the script has a result of the tool `{tool}`")).with_help(help)
            );
        }
        Ok(Scripted(Mutex::new(script)))
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// The errors of [`Scripted::parse`], or the file can't be read or is larger than 64 MiB.
    pub fn load(path: &Path) -> Result<Scripted, ConfigError> {
        script_in(path).map(|script| Scripted(Mutex::new(script)))
    }

    /// Returns the number of unused replies.
    pub fn left(&self) -> usize {
        self.lock().left()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Script> {
        // A panic while the lock was held can't leave an entry half used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, call: &ModelCall) -> Result<Reply, ModelError> {
        let (messages, purpose) = (&call.messages, call.purpose());
        self.lock().reply(&Question { messages, purpose, place: &call.place })
    }
}

impl Provider for Scripted {
    fn stands_in(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        "scripted"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn may_block(&self) -> bool {
        false
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
        Work::Now(Answer::new(self.answer(&call), Tokens::default()))
    }
}

/// The provider `scripted`.
pub(super) struct ScriptFile;

impl ProviderKind for ScriptFile {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn is_free(&self) -> bool {
        true
    }

    fn make(&self, wanted: &ModelSpec<'_>) -> Result<Arc<dyn Provider>, ConfigError> {
        match wanted.file {
            Some(file) => {
                let model = Scripted::load(file)?;
                let tool = model.lock().tools().first().map(|tool| tool.to_string());
                match tool {
                    None => Ok(Arc::new(model)),
                    Some(tool) => Err(wanted.wrong(&format!(
                        "its script has a result of the tool `{tool}`, and only that of `--script` may have one"
                    ))),
                }
            }
            None => Err(wanted.wrong("a scripted model needs a `file`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{Data, ModelParams, Role};
    use machine::Message;

    fn call(purpose: Option<&str>, text: &str) -> ModelCall {
        let params = ModelParams { purpose: purpose.map(Into::into), ..ModelParams::default() };
        ModelCall {
            messages: vec![Message { role: Role::User, content: text.into(), call: None }].into(),
            params: Some(Arc::new(params)),
            tools: Vec::new(),
            max_output: None,
            attempt: 0,
            place: Arc::default(),
            said: Arc::default(),
        }
    }

    fn text(s: &str) -> Result<Reply, ModelError> {
        Ok(Reply::Text(s.into()))
    }

    #[test]
    fn conditions_are_preferred_and_the_rest_comes_in_order() {
        let script = r#"["one", {"match": "cat", "reply": "meow"}, {"reply": {"n": 1.50}}, {"purpose": "p", "repeat": true, "error": "down"},
            {"tool": "search", "args": {"q": "x"}}, {"tools": [{"tool": "a"}, {"tool": "b", "args": {"n": 1}}]}]"#;
        let s = Scripted::parse(script).unwrap();
        assert_eq!(s.answer(&call(None, "a cat")), text("meow"));
        assert_eq!(s.answer(&call(None, "a cat")), text("one"));
        assert_eq!(s.answer(&call(Some("p"), "x")), Err(ModelError::new("down")));
        assert_eq!(s.answer(&call(Some("p"), "x")), Err(ModelError::new("down")));
        assert_eq!(s.answer(&call(None, "x")), text(r#"{"n":1.50}"#));
        let args = Data::record([("q".into(), Data::str("x"))]);
        assert_eq!(s.answer(&call(None, "x")), Ok(Reply::ToolCall { name: "search".into(), args }));
        let none = || Data::record([]);
        let n = Data::record([("n".into(), Data::Num(core_ir::Num::ONE))]);
        let several = vec![("a".into(), none()), ("b".into(), n)];
        assert_eq!(s.answer(&call(None, "x")), Ok(Reply::ToolCalls(several)));
        let e = s.answer(&call(Some("classify"), "what\nis it?")).unwrap_err();
        assert_eq!(e.message, "the script has no reply left for question 8 (`classify`): `what is it?`");
    }

    #[test]
    fn a_bad_script_names_the_entry() {
        let error = |s: &str| Scripted::parse(s).unwrap_err().to_string();
        assert_eq!(error("{}"), "the script is not a JSON array of replies");
        assert!(error("[").starts_with("the script is not JSON"));
        assert_eq!(error(r#"["a", 1]"#), "entry 2 of the script: it is neither a string nor an object");
        assert_eq!(error(r#"[{"replay": "a"}]"#), "entry 1 of the script: unknown field `replay`");
        assert!(error(r#"[{"reply": "a", "tool": "t"}]"#).contains("exactly one"));
        assert!(error(r#"[{"reply": "a", "args": {}}]"#).contains("belongs to"));
        assert!(Scripted::load(Path::new("/")).unwrap_err().to_string().contains("not a file"));
    }
}
