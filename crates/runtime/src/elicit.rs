//! Questions of MCP servers to a person, asked while a call of their tools is open.
//!
//! Entry point: [`Elicitation`], which an [`Approver`] with [`Approver::answering`] gets.
//!
//! Invariant: texts of a question are untrusted. Whoever shows them escapes them, and nothing in them is
//! followed or opened.
//! Invariant: an answer with a secret of the environment never reaches the server or the journal.

#![cfg_attr(not(feature = "mcp"), allow(dead_code))]

use crate::approve::Approver;
use crate::journal::Session;
use core_ir::{Data, LabelSpec, Name};
use machine::RequestId;
use runs::Redactor;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, Weak};

/// Maximum number of fields of a form, and of the options of a field.
const MAX_FIELDS: usize = 50;
const MAX_OPTIONS: usize = 200;

/// Maximum number of bytes of the texts of a question.
const MAX_QUESTION: usize = 32 << 10;

/// A question of an MCP server. All texts in it are the server's. Secrets of the environment are removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    /// Name of the server in the settings.
    pub server: String,
    /// The tool whose call is open.
    pub tool: Name,
    /// The message to show.
    pub message: String,
    /// The kind of answer that the server asks for.
    pub asks: ElicitationKind,
    /// Labels of the data that the question may depend on, as label values.
    pub labels: Vec<Data>,
}

/// Kind of answer that a server asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationKind {
    /// Values for these fields.
    Form(Vec<FormField>),
    /// A visit of this address (`http` or `https`), by a person who decides to open it. The answer says only
    /// whether the person agrees.
    Url(String),
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// Its name in the answer.
    pub name: String,
    /// Its title for people.
    pub title: Option<String>,
    /// Its description for people.
    pub description: Option<String>,
    /// True if an answer must have it.
    pub is_required: bool,
    /// The values that it takes.
    pub kind: FieldKind,
    /// The value that the server proposes.
    pub default: Option<Json>,
}

/// Values that a field takes.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A text of this many characters.
    Text {
        /// Minimum number of characters.
        min: Option<u64>,
        /// Maximum number of characters.
        max: Option<u64>,
        /// Format that the server expects, such as `email`. It is for people, and not checked here.
        format: Option<String>,
    },
    /// A number in this range.
    Number {
        /// Least number.
        min: Option<f64>,
        /// Greatest number.
        max: Option<f64>,
        /// True for whole numbers.
        is_integer: bool,
    },
    /// True or false.
    Boolean,
    /// One of these options: a value and its title.
    Choice(Vec<(String, String)>),
    /// A list of several of these options.
    Choices {
        /// Values and their titles.
        options: Vec<(String, String)>,
        /// Minimum number of values.
        min: Option<u64>,
        /// Maximum number of values.
        max: Option<u64>,
    },
}

/// Answer to a question of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationAnswer {
    /// The values of the fields; empty for an address.
    Accept {
        /// Values by the names of the fields.
        content: Map<String, Json>,
        /// Label of what the person wrote.
        label: LabelSpec,
    },
    /// The person does not want to answer, for this reason. The server isn't told the reason.
    Decline(String),
    /// No answer was given, for this reason.
    Cancel(String),
}

impl ElicitationKind {
    /// Reads the schema of a form. `order` names fields that come first.
    ///
    /// # Errors
    /// The schema is too large, or has a field that is none of [`FieldKind`].
    pub(crate) fn form(schema: &Json, order: &[String]) -> Result<ElicitationKind, String> {
        let properties = schema.get("properties").and_then(Json::as_object).cloned().unwrap_or_default();
        if properties.len() > MAX_FIELDS {
            return Err(format!("it has more than {MAX_FIELDS} fields"));
        }
        let required: Vec<&str> = list(schema, "required").filter_map(Json::as_str).collect();
        let rank = |name: &str| order.iter().position(|n| n == name).unwrap_or(order.len());
        let fields = properties.iter().map(|(name, schema)| {
            let kind = FieldKind::read(schema).map_err(|why| format!("its field `{}` {why}", short(name)))?;
            let text = |key: &str| schema.get(key).and_then(Json::as_str).map(String::from);
            let default = schema.get("default").filter(|d| kind.check(d).is_ok()).cloned();
            Ok(FormField {
                name: name.clone(),
                title: text("title"),
                description: text("description"),
                is_required: required.contains(&&**name),
                kind,
                default,
            })
        });
        let mut fields = fields.collect::<Result<Vec<_>, String>>()?;
        fields.sort_by_key(|field| rank(&field.name));
        Ok(ElicitationKind::Form(fields))
    }

    /// Reads an address.
    ///
    /// # Errors
    /// It is not one of `http` or `https`.
    pub(crate) fn url(url: &str) -> Result<ElicitationKind, String> {
        // As it is read, so that a person sees the host that a browser would ask.
        let url = crate::web::url(url, "its address").map_err(|e| e.message)?;
        Ok(ElicitationKind::Url(url.to_string()))
    }
}

impl FieldKind {
    fn read(schema: &Json) -> Result<FieldKind, String> {
        let number = |key: &str| schema.get(key).and_then(Json::as_f64);
        let count = |key: &str| schema.get(key).and_then(Json::as_u64);
        let options = |values: Vec<(String, String)>| match values.len() {
            0 => Err("has no options".to_string()),
            n if n > MAX_OPTIONS => Err(format!("has more than {MAX_OPTIONS} options")),
            _ => Ok(values),
        };
        match schema.get("type").and_then(Json::as_str) {
            Some("boolean") => Ok(FieldKind::Boolean),
            Some(kind @ ("number" | "integer")) => {
                let is_integer = kind == "integer";
                Ok(FieldKind::Number { min: number("minimum"), max: number("maximum"), is_integer })
            }
            Some("string") if ["enum", "oneOf"].iter().any(|key| schema.get(key).is_some()) => {
                options(choices(schema)).map(FieldKind::Choice)
            }
            Some("string") => Ok(FieldKind::Text {
                min: count("minLength"),
                max: count("maxLength"),
                format: schema.get("format").and_then(Json::as_str).map(String::from),
            }),
            Some("array") => {
                let options = options(schema.get("items").map(choices).unwrap_or_default())?;
                Ok(FieldKind::Choices { options, min: count("minItems"), max: count("maxItems") })
            }
            _ => Err("is neither a text, a number, a choice nor true or false".into()),
        }
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The field doesn't take it; the reason for people.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let within = |n: u64, min: &Option<u64>, max: &Option<u64>, of: &str| match (min, max) {
            (Some(min), _) if n < *min => Err(format!("it needs at least {min} {of}")),
            (_, Some(max)) if n > *max => Err(format!("it takes at most {max} {of}")),
            _ => Ok(()),
        };
        let one_of = |options: &[(String, String)], value: &Json| {
            let known = value.as_str().is_some_and(|v| options.iter().any(|(o, _)| o == v));
            if known { Ok(()) } else { Err("it is none of the options".to_string()) }
        };
        match (self, value) {
            (FieldKind::Boolean, Json::Bool(_)) => Ok(()),
            (FieldKind::Boolean, _) => Err("it is neither true nor false".into()),
            (FieldKind::Text { min, max, .. }, Json::String(text)) => {
                within(text.chars().count() as u64, min, max, "characters")
            }
            (FieldKind::Text { .. }, _) => Err("it is not a text".into()),
            (FieldKind::Number { min, max, is_integer }, Json::Number(n)) => {
                let n = n.as_f64().unwrap_or(f64::NAN);
                match (min, max) {
                    _ if n.is_nan() => Err("it is not a number".into()),
                    _ if *is_integer && n.fract() != 0.0 => Err("it is not a whole number".into()),
                    (Some(min), _) if n < *min => Err(format!("it is less than {min}")),
                    (_, Some(max)) if n > *max => Err(format!("it is more than {max}")),
                    _ => Ok(()),
                }
            }
            (FieldKind::Number { .. }, _) => Err("it is not a number".into()),
            (FieldKind::Choice(options), value) => one_of(options, value),
            (FieldKind::Choices { options, min, max }, Json::Array(values)) => {
                values.iter().try_for_each(|value| one_of(options, value))?;
                within(values.len() as u64, min, max, "options")
            }
            (FieldKind::Choices { .. }, _) => Err("it is not a list of options".into()),
        }
    }
}

/// The options of `enum`, with `enumNames`, or of `oneOf` or `anyOf`, with titles.
fn choices(schema: &Json) -> Vec<(String, String)> {
    let names: Vec<&str> = list(schema, "enumNames").filter_map(Json::as_str).collect();
    let plain = list(schema, "enum").filter_map(Json::as_str).enumerate();
    let plain = plain.map(|(i, value)| (value.to_string(), names.get(i).unwrap_or(&value).to_string()));
    let titled = ["oneOf", "anyOf"].into_iter().flat_map(|key| list(schema, key)).filter_map(|option| {
        let value = option.get("const")?.as_str()?;
        let title = option.get("title").and_then(Json::as_str).unwrap_or(value);
        Some((value.to_string(), title.to_string()))
    });
    plain.chain(titled).collect()
}

fn list<'a>(schema: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    schema.get(key).and_then(Json::as_array).into_iter().flatten()
}

fn short(text: &str) -> String {
    diagnostics::clip_to(text, 40)
}

/// Checks that an answer has values for the fields of a question, and no others.
fn check(asks: &ElicitationKind, content: &Map<String, Json>) -> Result<(), String> {
    let fields: &[FormField] = match asks {
        ElicitationKind::Form(fields) => fields,
        ElicitationKind::Url(_) => &[],
    };
    if let Some(name) = content.keys().find(|name| !fields.iter().any(|f| f.name == **name)) {
        return Err(format!("the form has no field `{}`", short(name)));
    }
    fields.iter().try_for_each(|field| match content.get(&field.name) {
        Some(value) => field.kind.check(value).map_err(|why| format!("`{}`: {why}", short(&field.name))),
        None if field.is_required => Err(format!("`{}` is missing", short(&field.name))),
        None => Ok(()),
    })
}

/// A person who can be asked while a call of a tool is open, with the journal of the answers.
#[derive(Debug)]
pub(crate) struct Respondent {
    pub(crate) approver: Approver,
    pub(crate) id: RequestId,
    /// The call, as the journal has it.
    pub(crate) call: String,
    pub(crate) tool: Name,
    pub(crate) labels: Vec<Data>,
    /// The journal, which ends with the run and not with a call that is being given up.
    pub(crate) journal: Weak<Mutex<Session>>,
    pub(crate) redactor: Redactor,
    /// Number of times that a question was asked in this call, by what it asks.
    pub(crate) asked: Mutex<HashMap<String, u32>>,
}

impl Respondent {
    /// Asks the person, unless the journal has the answer. An answer that is not the person's, or can't be
    /// sent, is no acceptance.
    pub(crate) async fn ask(&self, server: &str, message: &str, asks: ElicitationKind) -> ElicitationAnswer {
        let message = self.redactor.text(message).into_owned();
        let question = format!("{}\n{server}\n{message}\n{asks:?}", self.call);
        if question.len() > self.call.len() + MAX_QUESTION {
            return ElicitationAnswer::Decline(format!("it is longer than {MAX_QUESTION} bytes"));
        }
        let token = crate::journal::token_of(&question, {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let times = asked.entry(question.clone()).or_default();
            *times += 1;
            *times
        });
        let known = self.journal.upgrade().and_then(|session| lock(&session).elicited(self.id, &token));
        if let Some((content, label)) = known {
            return match check(&asks, &content) {
                Ok(()) => ElicitationAnswer::Accept { content, label },
                Err(why) => ElicitationAnswer::Decline(why),
            };
        }
        let shown = Elicitation {
            server: server.into(),
            tool: self.tool.clone(),
            message,
            asks: asks.clone(),
            labels: self.labels.clone(),
        };
        let answer = self.approver.elicit(shown).await;
        let ElicitationAnswer::Accept { content, label } = answer else { return answer };
        if let Err(why) = check(&asks, &content) {
            return ElicitationAnswer::Decline(why);
        }
        if self.redactor.finds(&Json::Object(content.clone())) {
            let why = "the answer holds a secret of the environment, so it was not sent";
            return ElicitationAnswer::Decline(why.into());
        }
        let journal = self.journal.upgrade();
        let kept =
            journal.and_then(|session| lock(&session).keep_elicited(self.id, &token, &content, &label));
        if let Some(kept) = kept
            && let Err(why) = kept.wait().await
        {
            return ElicitationAnswer::Cancel(why);
        }
        ElicitationAnswer::Accept { content, label }
    }
}

fn lock(session: &Mutex<Session>) -> std::sync::MutexGuard<'_, Session> {
    // As in the driver.
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(properties: &Json) -> Result<Vec<FormField>, String> {
        let schema = json!({"type": "object", "properties": properties, "required": ["a"]});
        match ElicitationKind::form(&schema, &["b".into()])? {
            ElicitationKind::Form(fields) => Ok(fields),
            ElicitationKind::Url(_) => panic!("a form"),
        }
    }

    #[test]
    fn forms_are_read_with_their_limits() {
        let read = fields(&json!({
            "a": {"type": "string", "minLength": 2, "maxLength": 3, "default": "toolong"},
            "b": {"type": "integer", "minimum": 1, "maximum": 9, "default": 4, "title": "B"},
            "c": {"type": "string", "enum": ["x", "y"], "enumNames": ["X"]},
            "d": {"type": "array", "items": {"anyOf": [{"const": "p", "title": "P"}]}, "minItems": 1},
            "e": {"type": "boolean"},
        }));
        let read = read.unwrap();
        let names: Vec<&str> = read.iter().map(|f| &*f.name).collect();
        assert_eq!(names, ["b", "a", "c", "d", "e"]);
        assert_eq!((read[0].default.clone(), read[1].default.clone()), (Some(json!(4)), None));
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(read[2].kind, FieldKind::Choice(vec![pair("x", "X"), pair("y", "y")]));
        let form = ElicitationKind::Form(read);
        let problem = |content: Json| check(&form, content.as_object().unwrap()).err();
        assert_eq!(problem(json!({"a": "ab", "b": 9, "c": "y", "d": ["p"], "e": false})), None);
        assert_eq!(problem(json!({"b": 9})).unwrap(), "`a` is missing");
        let with = |name: &str, value: Json| {
            let mut content = json!({"a": "ab"});
            content[name] = value;
            problem(content).unwrap()
        };
        assert_eq!(with("a", json!("abcd")), "`a`: it takes at most 3 characters");
        assert_eq!(with("a", json!(1)), "`a`: it is not a text");
        assert_eq!(with("b", json!(10)), "`b`: it is more than 9");
        assert_eq!(with("b", json!(1.5)), "`b`: it is not a whole number");
        assert_eq!(with("c", json!("X")), "`c`: it is none of the options");
        assert_eq!(with("d", json!([])), "`d`: it needs at least 1 options");
        assert_eq!(with("d", json!(["q"])), "`d`: it is none of the options");
        assert_eq!(with("e", json!("yes")), "`e`: it is neither true nor false");
        assert_eq!(with("f", json!(1)), "the form has no field `f`");
    }

    #[test]
    fn forms_that_are_too_large_or_nested_are_none() {
        let many: Map<String, Json> = (0..51).map(|i| (i.to_string(), json!({"type": "boolean"}))).collect();
        assert_eq!(fields(&Json::Object(many)).unwrap_err(), "it has more than 50 fields");
        let options: Vec<String> = (0..201).map(|i| i.to_string()).collect();
        let e = fields(&json!({"a": {"type": "string", "enum": options}})).unwrap_err();
        assert_eq!(e, "its field `a` has more than 200 options");
        let e = fields(&json!({"a": {"type": "object", "properties": {}}})).unwrap_err();
        assert!(e.contains("neither a text, a number"), "{e}");
    }

    #[test]
    fn only_addresses_of_the_web_are_shown() {
        for bad in ["javascript:alert(1)", "file:///etc/passwd", "https://user@host/", "x"] {
            assert!(ElicitationKind::url(bad).is_err(), "{bad}");
        }
        // The host as a browser asks it.
        let url = ElicitationKind::url("https://ex\u{e4}mple.com/a b");
        assert_eq!(url, Ok(ElicitationKind::Url("https://xn--exmple-cua.com/a%20b".into())));
    }
}
