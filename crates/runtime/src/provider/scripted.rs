//! A model whose replies are written down beforehand, for tests and demonstrations.

use super::kinds::{ModelSpec, ProviderKind};
use super::{Answer, FaultKind, ModelCall, ModelError, Price, Provider, Tokens, Work};
use crate::ConfigError;
use crate::event::Progress;
use core_ir::Data;
use diagnostics::clip_to as clip;
use machine::Reply;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A script larger than this is refused.
const MAX_FILE: u64 = 64 << 20;

/// Answers from a script: a JSON array. An entry is
///
/// - a string: the next reply to whatever is asked;
/// - `{"reply": …}`, the same, where a reply that is no string is sent as JSON text;
/// - `{"tool": "name", "args": {…}}`: a call of a tool that was offered;
/// - `{"tools": [{"tool": "name", "args": {…}}, …]}`: several at once;
/// - `{"error": "message"}`: the model fails, perhaps with a `"kind"` of [`FaultKind`].
///
/// With `"purpose": "task"` or `"match": "part of the last message"` an entry answers only such a question,
/// and is preferred to entries without a condition. Of several, the one is preferred whose `"place"` is that
/// of the question, as the [trace](crate::trace) shows it: which of the questions in branches of a `parallel`
/// comes first may be a matter of time. An entry answers once, with `"repeat": true` always. A script that
/// has no reply left is an error that says which question was not answered.
///
/// # Examples
/// ```
/// let replies = r#"["first", {"purpose": "classify", "reply": {"category": "billing"}}]"#;
/// let model = runtime::Scripted::parse(replies).unwrap();
/// assert_eq!(model.left(), 2);
/// ```
#[derive(Debug)]
pub struct Scripted {
    /// Source of the script, for messages.
    source: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    entries: Vec<Entry>,
    asked: u64,
}

#[derive(Debug)]
struct Entry {
    purpose: Option<String>,
    part: Option<String>,
    place: Option<Vec<u32>>,
    repeat: bool,
    used: bool,
    reply: Result<Reply, ModelError>,
}

impl Entry {
    fn is_conditional(&self) -> bool {
        self.purpose.is_some() || self.part.is_some()
    }

    fn stands_at(&self, call: &ModelCall) -> bool {
        self.place.as_deref().is_some_and(|p| call.place.split_last().is_some_and(|(_, place)| p == place))
    }

    fn fits(&self, call: &ModelCall) -> bool {
        (!self.used || self.repeat)
            && self.purpose.as_deref().is_none_or(|p| call.purpose() == Some(p))
            && self.part.as_deref().is_none_or(|p| call.last_text().contains(p))
    }
}

impl Scripted {
    /// Reads a script.
    ///
    /// # Errors
    /// It is no JSON array, or an entry has an unknown form; the message names the entry.
    pub fn parse(text: &str) -> Result<Scripted, ConfigError> {
        Scripted::named(text, "the script")
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// The errors of [`Scripted::parse`], or the file can't be read or is larger than 64 MiB.
    pub fn load(path: &Path) -> Result<Scripted, ConfigError> {
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
        Scripted::named(&text, &name)
    }

    fn named(text: &str, source: &str) -> Result<Scripted, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let json: Json =
            serde_json::from_str(text).map_err(|e| ConfigError::new(format!("{source} is not JSON: {e}")))?;
        let Json::Array(items) = json else {
            return Err(ConfigError::new(format!("{source} is not a JSON array of replies")));
        };
        let entries = items.iter().enumerate().map(|(i, item)| {
            entry(item).map_err(|why| {
                ConfigError::new(format!("entry {} of {source}: {why}", i + 1)).with_help(
                    "write a string, or an object with `reply`, `tool` and `args`, `tools`, or `error`, \
                     and perhaps `match`, `purpose`, `place`, `repeat`",
                )
            })
        });
        let entries = entries.collect::<Result<_, _>>()?;
        Ok(Scripted { source: source.to_string(), state: Mutex::new(State { entries, asked: 0 }) })
    }

    /// Returns the number of unused entries.
    pub fn left(&self) -> usize {
        self.lock().entries.iter().filter(|e| !e.used).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic while the lock was held can't leave an entry half used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, call: &ModelCall) -> Result<Reply, ModelError> {
        let mut state = self.lock();
        state.asked += 1;
        let asked = state.asked;
        let entries = &mut state.entries;
        let first = |fits: &dyn Fn(&Entry) -> bool| entries.iter().position(|e| e.fits(call) && fits(e));
        // A program that has changed since has other places, and takes what is left in the order of the
        // script.
        let chosen = first(&|e| e.stands_at(call))
            .or_else(|| first(&|e| e.is_conditional() && e.place.is_none()))
            .or_else(|| first(&Entry::is_conditional))
            .or_else(|| first(&|_| true));
        let Some(i) = chosen else {
            let purpose = call.purpose().map_or(String::new(), |p| format!(" (`{p}`)"));
            return Err(ModelError::new(format!(
                "{} has no reply left for question {asked}{purpose}: `{}`",
                self.source,
                clip(call.last_text(), 200)
            ))
            .with_help("add a reply to the script"));
        };
        entries[i].used = true;
        entries[i].reply.clone()
    }
}

fn entry(item: &Json) -> Result<Entry, String> {
    let plain = |reply| Entry { purpose: None, part: None, place: None, repeat: false, used: false, reply };
    let fields = match item {
        Json::String(s) => return Ok(plain(Ok(Reply::Text(s.clone())))),
        Json::Object(fields) => fields,
        _ => return Err("it is neither a string nor an object".into()),
    };
    for name in fields.keys() {
        if !matches!(
            name.as_str(),
            "match" | "purpose" | "place" | "repeat" | "reply" | "tool" | "tools" | "args" | "error" | "kind"
        ) {
            return Err(format!("unknown field `{}`", clip(name, 40)));
        }
    }
    let text = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(Json::String(s)) => Ok(Some(s.clone())),
        Some(_) => Err(format!("`{name}` is not a string")),
    };
    let kind = match text("kind")? {
        None => None,
        Some(_) if !fields.contains_key("error") => return Err("`kind` is for an `error`".into()),
        Some(name) => Some(FaultKind::named(&name).ok_or("`kind` is not a kind of error")?),
    };
    let repeat = match fields.get("repeat") {
        None => false,
        Some(Json::Bool(b)) => *b,
        Some(_) => return Err("`repeat` is neither true nor false".into()),
    };
    let place = match fields.get("place") {
        None => None,
        Some(place) => {
            let number = |n: &Json| n.as_u64().and_then(|n| u32::try_from(n).ok());
            let numbers = place.as_array().and_then(|all| all.iter().map(number).collect());
            Some(numbers.ok_or("`place` is not a list of numbers, as a trace shows it")?)
        }
    };
    let reply = match (fields.get("reply"), text("tool")?, text("error")?, fields.get("tools")) {
        (Some(Json::String(s)), None, None, None) => Ok(Reply::Text(s.clone())),
        (Some(other), None, None, None) => Ok(Reply::Text(other.to_string())),
        (None, Some(name), None, None) => {
            let args = fields.get("args").map_or(Ok(Data::record([])), Data::from_json);
            Ok(Reply::ToolCall { name: name.into(), args: args.map_err(|e| e.to_string())? })
        }
        (None, None, Some(message), None) => Err(ModelError::of(kind.unwrap_or_default(), message)),
        (None, None, None, Some(Json::Array(calls))) if !calls.is_empty() => {
            let call = |c: &Json| {
                let name = c.get("tool").and_then(Json::as_str).ok_or("an item of `tools` has no `tool`")?;
                let args = c.get("args").map_or(Ok(Data::record([])), Data::from_json);
                Ok::<_, String>((name.into(), args.map_err(|e| e.to_string())?))
            };
            Ok(Reply::ToolCalls(calls.iter().map(call).collect::<Result<_, _>>()?))
        }
        _ => return Err("it needs exactly one of `reply`, `tool`, `tools` (a list) and `error`".into()),
    };
    if fields.contains_key("args") && !fields.contains_key("tool") {
        return Err("`args` belongs to `tool`".into());
    }
    Ok(Entry { purpose: text("purpose")?, part: text("match")?, place, repeat, ..plain(reply) })
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
            Some(file) => Ok(Arc::new(Scripted::load(file)?)),
            None => Err(wanted.wrong("a scripted model needs a `file`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{ModelParams, Role};
    use machine::Message;

    fn call(purpose: Option<&str>, text: &str) -> ModelCall {
        let params = ModelParams { purpose: purpose.map(Into::into), ..ModelParams::default() };
        ModelCall {
            messages: Arc::new(vec![Message { role: Role::User, content: text.into(), call: None }]),
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
