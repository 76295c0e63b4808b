//! Scripts: answers that are written down beforehand.
//!
//! Entry point: [`Script`].

use crate::{FaultKind, ModelError};
use core_ir::{Data, Name, Type};
use diagnostics::clip_to as clip;
use machine::{Messages, Reply};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::fmt;

/// Answers from a script: a JSON array. An entry is
///
/// - a string: the next reply to whatever is asked;
/// - `{"reply": …}`, the same, where a reply that is no string is sent as JSON text;
/// - `{"tool": "name", "args": {…}}`: a call of a tool that was offered;
/// - `{"tools": [{"tool": "name", "args": {…}}, …]}`: several at once;
/// - `{"error": "message"}`: the model fails, perhaps with a `"kind"` of [`FaultKind`];
/// - `{"call": "name", "result": …}`: the result of the next call of a tool, which is not carried out;
/// - `{"call": "name", "fails": "message"}`: that call fails.
///
/// With `"purpose": "task"` or `"match": "part of the last message"` a reply answers only such a question,
/// and is preferred to replies without a condition. Of several, the one is preferred whose `"place"` is that
/// of the question, as the [trace](crate::trace) shows it: which of the questions in branches of a `parallel`
/// comes first may be a matter of time. An entry answers once, with `"repeat": true` always. A script that
/// has no reply left is an error that says which question was not answered.
///
/// # Examples
/// ```
/// let replies = r#"["first", {"purpose": "classify", "reply": {"category": "billing"}}]"#;
/// let script = runs::Script::parse(replies, "the script").unwrap();
/// assert_eq!(script.left(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    /// Source of the script, for messages.
    source: String,
    entries: Vec<Entry>,
    /// The entries with each place.
    placed: HashMap<Vec<u32>, Unused>,
    /// The entries with a condition and without a place, those with a condition, and all.
    unused: [Unused; 3],
    results: Vec<ToolEntry>,
    /// The results of each tool.
    results_of: HashMap<String, Unused>,
    asked: u64,
}

/// Numbers of entries, some of which can answer. The ones at the front that can't are passed over for good.
/// So a script that is used in its order is not searched from its front for each question.
#[derive(Clone, Debug, Default)]
struct Unused {
    entries: Vec<usize>,
    from: usize,
}

impl Unused {
    /// The first number that fits.
    fn first(&mut self, is_spent: impl Fn(usize) -> bool, fits: impl Fn(usize) -> bool) -> Option<usize> {
        self.from += self.entries[self.from..].iter().take_while(|i| is_spent(**i)).count();
        self.entries[self.from..].iter().copied().find(|i| fits(*i))
    }
}

/// A script that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The problem; it names the entry.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScriptError {}

/// A question that a script answers.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The conversation.
    pub messages: &'a Messages,
    /// Purpose of the call.
    pub purpose: Option<&'a str>,
    /// Position in the run: [`machine::Place::path`].
    pub place: &'a [u32],
}

impl Question<'_> {
    fn last_text(&self) -> &str {
        self.messages.last().map_or("", |m| &m.content)
    }
}

/// A reply of a model.
#[derive(Clone, Debug)]
struct Entry {
    purpose: Option<String>,
    part: Option<String>,
    place: Option<Vec<u32>>,
    repeat: bool,
    used: bool,
    reply: Result<Reply, ModelError>,
}

/// The result of a call of a tool.
#[derive(Clone, Debug)]
struct ToolEntry {
    tool: String,
    repeat: bool,
    used: bool,
    result: Result<Json, String>,
}

impl Entry {
    fn is_conditional(&self) -> bool {
        self.purpose.is_some() || self.part.is_some()
    }

    /// Returns whether it answers nothing any more.
    fn is_spent(&self) -> bool {
        self.used && !self.repeat
    }

    fn fits(&self, asked: &Question<'_>) -> bool {
        #[cfg(test)]
        LOOKED_AT.with(|n| n.set(n.get() + 1));
        !self.is_spent()
            && self.purpose.as_deref().is_none_or(|p| asked.purpose == Some(p))
            && self.part.as_deref().is_none_or(|p| asked.last_text().contains(p))
    }
}

impl Script {
    /// Reads a script; `source` names it in messages.
    ///
    /// # Errors
    /// It is no JSON array, or an entry has an unknown form.
    pub fn parse(text: &str, source: &str) -> Result<Script, ScriptError> {
        let bare = |message| ScriptError { message, help: None };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let json: Json =
            serde_json::from_str(text).map_err(|e| bare(format!("{source} is not JSON: {e}")))?;
        let Json::Array(items) = json else {
            return Err(bare(format!("{source} is not a JSON array of replies")));
        };
        let mut script = Script {
            source: source.to_string(),
            entries: Vec::new(),
            placed: HashMap::new(),
            unused: Default::default(),
            results: Vec::new(),
            results_of: HashMap::new(),
            asked: 0,
        };
        for (i, item) in items.iter().enumerate() {
            let wrong = |why: String| ScriptError {
                message: format!("entry {} of {source}: {why}", i + 1),
                help: Some(HELP.into()),
            };
            if item.get("call").is_some() {
                let entry = tool_entry(item).map_err(wrong)?;
                let of = script.results_of.entry(entry.tool.clone()).or_default();
                of.entries.push(script.results.len());
                script.results.push(entry);
            } else {
                script.add(entry(item).map_err(wrong)?);
            }
        }
        Ok(script)
    }

    fn add(&mut self, entry: Entry) {
        let number = self.entries.len();
        let [conditional, any_conditional, all] = &mut self.unused;
        all.entries.push(number);
        if entry.is_conditional() {
            any_conditional.entries.push(number);
            if entry.place.is_none() {
                conditional.entries.push(number);
            }
        }
        if let Some(place) = &entry.place {
            self.placed.entry(place.clone()).or_default().entries.push(number);
        }
        self.entries.push(entry);
    }

    /// Returns the number of unused replies.
    pub fn left(&self) -> usize {
        self.entries.iter().filter(|e| !e.used).count()
    }

    /// The tools whose results are in the script, each once.
    pub fn tools(&self) -> Vec<&str> {
        let mut tools: Vec<&str> = Vec::new();
        for entry in &self.results {
            if !tools.contains(&&*entry.tool) {
                tools.push(&entry.tool);
            }
        }
        tools
    }

    /// Answers a question to a model.
    ///
    /// # Errors
    /// The script says so, or has no reply left.
    pub fn reply(&mut self, asked: &Question<'_>) -> Result<Reply, ModelError> {
        self.asked += 1;
        let number = self.asked;
        let entries = &mut self.entries;
        // The last number of a place only sorts.
        let here = asked.place.split_last().and_then(|(_, place)| self.placed.get_mut(place));
        // A program that has changed since has other places, and takes what is left in the order of the
        // script.
        let chosen = here
            .into_iter()
            .chain(&mut self.unused)
            .find_map(|unused| unused.first(|i| entries[i].is_spent(), |i| entries[i].fits(asked)));
        let Some(i) = chosen else {
            let purpose = asked.purpose.map_or(String::new(), |p| format!(" (`{p}`)"));
            return Err(ModelError::new(format!(
                "{} has no reply left for question {number}{purpose}: `{}`",
                self.source,
                clip(asked.last_text(), 200)
            ))
            .with_help("add a reply to the script"));
        };
        entries[i].used = true;
        entries[i].reply.clone()
    }

    /// Returns the result of a call of a tool with a result of this type; `None` if no result of the tool is
    /// in the script.
    pub fn result(&mut self, tool: &str, ty: &Type) -> Option<Result<Data, String>> {
        let results = &mut self.results;
        let is_spent = |i: usize| results[i].used && !results[i].repeat;
        let next = self.results_of.get_mut(tool)?.first(is_spent, |i| !is_spent(i));
        let Some(entry) = next.map(|i| &mut results[i]) else {
            return Some(Err(format!(
                "{} has no result left for a call of `{tool}` (help: add one, or `\"repeat\": true`)",
                self.source
            )));
        };
        entry.used = true;
        Some(entry.result.clone().and_then(|json| json_result(&json, ty)))
    }
}

/// Converts the JSON result of a tool to data of the declared type. A declared string accepts any result as
/// text.
///
/// # Errors
/// It is not of the type.
pub fn json_result(json: &Json, ty: &Type) -> Result<Data, String> {
    match (ty, json) {
        (Type::Str, Json::String(text)) => Ok(Data::str(text.as_str())),
        (Type::Str, other) => Ok(Data::str(other.to_string())),
        _ => ty.read(json).map_err(|e| format!("its result: {e}")),
    }
}

/// The remedy for an entry of an unknown form.
const HELP: &str = "write a string, or an object with `reply`, `tool` and `args`, `tools`, or `error`, and \
                    perhaps `match`, `purpose`, `place`, `repeat`; or `call` with `result` or `fails`";

fn tool_entry(item: &Json) -> Result<ToolEntry, String> {
    let Json::Object(fields) = item else { return Err("it is neither a string nor an object".into()) };
    for name in fields.keys() {
        if !matches!(name.as_str(), "call" | "result" | "fails" | "repeat") {
            return Err(format!("unknown field `{}` beside `call`", clip(name, 40)));
        }
    }
    let Some(Json::String(tool)) = fields.get("call") else {
        return Err("`call` is not the name of a tool".into());
    };
    let result = match (fields.get("result"), fields.get("fails")) {
        (Some(json), None) => Ok(json.clone()),
        (None, Some(Json::String(why))) => Err(why.clone()),
        _ => return Err("`call` needs exactly one of `result` and `fails` (a text)".into()),
    };
    Ok(ToolEntry { tool: tool.clone(), repeat: repeats(fields)?, used: false, result })
}

fn repeats(fields: &serde_json::Map<String, Json>) -> Result<bool, String> {
    match fields.get("repeat") {
        None => Ok(false),
        Some(Json::Bool(b)) => Ok(*b),
        Some(_) => Err("`repeat` is neither true nor false".into()),
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
    let repeat = repeats(fields)?;
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
                Ok::<_, String>((Name::from(name), args.map_err(|e| e.to_string())?))
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

#[cfg(test)]
thread_local! {
    /// Number of times that an entry was compared with a question.
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Role;
    use machine::Message;

    /// A conversation of many turns once looked at each entry up to four times for each of them.
    #[test]
    fn a_script_is_not_searched_from_its_front_for_each_question() {
        for form in
            ["\"N\"", r#"{"match": "N", "reply": "N"}"#, r#"{"match": "N", "place": [N], "reply": "N"}"#]
        {
            let count = 1_000;
            let entries: Vec<String> = (0..count).map(|n| form.replace('N', &n.to_string())).collect();
            let mut script = Script::parse(&format!("[{}]", entries.join(",")), "the script").unwrap();
            LOOKED_AT.with(|n| n.set(0));
            for n in 0..count {
                let said = Message { role: Role::User, content: n.to_string().into(), call: None };
                let (messages, place) = (Messages::from(vec![said]), [n, u32::MAX]);
                let asked = Question { messages: &messages, purpose: None, place: &place };
                assert_eq!(script.reply(&asked), Ok(Reply::Text(n.to_string())), "{form}");
            }
            let looked_at = LOOKED_AT.with(std::cell::Cell::get);
            assert!(looked_at <= 2 * count as usize, "{looked_at} for {form}");
            assert_eq!(script.left(), 0);
        }
    }

    #[test]
    fn results_of_a_tool_answer_its_calls_in_order() {
        let text = r#"["reply", {"call": "f", "result": 1}, {"call": "g", "fails": "down", "repeat": true},
            {"call": "f", "result": [2]}]"#;
        let mut script = Script::parse(text, "the script").unwrap();
        assert_eq!((script.tools(), script.left()), (vec!["f", "g"], 1));
        assert_eq!(script.result("f", &Type::Num), Some(Ok(Data::Num(1.into()))));
        // A declared string takes any result as text; other types are checked by the machine.
        assert_eq!(script.result("f", &Type::Str), Some(Ok(Data::str("[2]"))));
        let none_left = script.result("f", &Type::Num).unwrap().unwrap_err();
        assert!(none_left.starts_with("the script has no result left for a call of `f`"), "{none_left}");
        for _ in 0..3 {
            assert_eq!(script.result("g", &Type::Str), Some(Err("down".into())));
        }
        assert_eq!(script.result("h", &Type::Str), None);
    }
}
