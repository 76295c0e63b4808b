//! The tools that a guard offers where the policy gives handles: one opens a handle, one puts a question
//! about it to a quarantined model.
//!
//! Both texts are the guard's own, so they have no label. What the model is told of a question is the name of
//! the handle that the answer is kept as, whatever the answer is.

use crate::message as msg;
use crate::note::Note;
use crate::session::Session;
use crate::upstream::Action;
use core_ir::{Data, LabelSpec, Name};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Opens a handle.
const OPEN: &str = "entail_open";
/// Asks about a handle.
const ASK: &str = "entail_ask";
/// The most questions that are open.
const MAX_INQUIRIES: usize = 64;
/// Bytes of a question, and the most choices.
const MAX_QUESTION: usize = 16 << 10;
const MAX_CHOICES: usize = 64;

/// Form of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of these texts.
    Choice(Vec<String>),
}

/// A question to a quarantined model: one that has no tools and knows nothing of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// Its number, for the answer.
    pub number: u64,
    /// The model.
    pub model: Name,
    /// The question.
    pub question: String,
    /// The data that it is about.
    pub about: Data,
    /// The form of the answer.
    pub form: AnswerForm,
}

/// A question that waits for its answer.
struct Waiting {
    call: Value,
    by: Name,
    label: LabelSpec,
    form: AnswerForm,
}

/// The guard's own tools, and the questions that are open.
#[derive(Default)]
pub(crate) struct HandleTools {
    next: u64,
    open: BTreeMap<u64, Waiting>,
}

/// Returns whether a name is one of the guard's own tools.
pub(crate) fn is_own(tool: &str) -> bool {
    [OPEN, ASK].contains(&tool)
}

/// Adds the guard's own tools to a list of tools, if the session has handles.
pub(crate) fn add_to(tools: &mut Vec<Value>, session: &Session) {
    if !session.has_handles() {
        return;
    }
    let handle = json!({"type": "string", "description": "the handle, such as #h1"});
    tools.push(json!({"name": OPEN, "annotations": {"readOnlyHint": true},
        "description": "Gives the value of a handle such as #h1. Calls that are allowed before may be refused \
                        afterwards, because the value is not trusted. To pass the value on, give the handle \
                        itself as an argument of the tool.",
        "inputSchema": {"type": "object", "properties": {"handle": handle}, "required": ["handle"]}}));
    if session.quarantine().is_some() {
        let form =
            json!({"enum": ["text", "number", "boolean", "choice"], "description": "the form of the answer"});
        let choices = json!({"type": "array", "items": {"type": "string"},
            "description": "the possible answers, if the form is `choice`"});
        tools.push(json!({"name": ASK, "annotations": {"readOnlyHint": true},
            "description": "Puts a question about the value of a handle to another model, which sees nothing \
                            else and has no tools. The answer is another handle.",
            "inputSchema": {"type": "object", "required": ["handle", "question"],
                "properties": {"handle": handle, "question": {"type": "string"}, "form": form, "choices": choices}}}));
    }
}

/// The text for the model in place of a result that is kept.
pub(crate) fn told(handle: &str, tool: &str, session: &Session) -> String {
    let ask = match session.quarantine() {
        Some(_) => format!(", ask about it with `{ASK}`"),
        None => String::new(),
    };
    format!(
        "The result of `{tool}` is kept as the handle {handle}, because it is not trusted. Give {handle} as an \
         argument to pass it on{ask}, or read it with `{OPEN}`, after which calls may be refused."
    )
}

impl HandleTools {
    /// Returns whether a question of the client with this id is open.
    pub(crate) fn is_under_way(&self, id: &Value) -> bool {
        self.open.values().any(|waiting| waiting.call["id"] == *id)
    }

    /// Returns whether no question is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Answers a call of one of the tools, or asks the quarantined model.
    pub(crate) fn call(&mut self, message: Value, session: &mut Session) -> Vec<Action> {
        let args = &message["params"]["arguments"];
        let handle = args["handle"].as_str().unwrap_or_default().to_string();
        if message["params"]["name"] == OPEN {
            let before = session.label();
            return match session.open_handle(&handle) {
                Ok(value) => {
                    let to = session.label();
                    let by = Name::from(handle.as_str());
                    let raised = (before != to).then_some(Action::Note(Note::Raised { by, to }));
                    let text = value.as_str().map_or_else(|| value.to_json().to_string(), String::from);
                    raised.into_iter().chain([answer(&message, &text)]).collect()
                }
                Err(refused) => refuse(&message, &refused.to_string(), Some(Note::Refused(*refused))),
            };
        }
        match self.inquire(&message, &handle, session) {
            Ok(actions) => actions,
            Err(why) => {
                let refused = session.refuse(ASK, &why);
                refuse(&message, &refused.to_string(), Some(Note::Refused(refused)))
            }
        }
    }

    fn inquire(
        &mut self,
        message: &Value,
        handle: &str,
        session: &mut Session,
    ) -> Result<Vec<Action>, String> {
        let args = &message["params"]["arguments"];
        let model = session.quarantine().cloned().ok_or("no model is named for questions about handles")?;
        let found = session.handle(handle).cloned();
        let found = found.ok_or_else(|| format!("there is no handle `{}`", diagnostics::clip(handle)))?;
        let question = args["question"].as_str().unwrap_or_default().trim();
        if question.is_empty() || question.len() > MAX_QUESTION {
            return Err(format!("a question is a text of at most {MAX_QUESTION} bytes"));
        }
        let form = form(args)?;
        if self.open.len() >= MAX_INQUIRIES {
            return Err(format!("more than {MAX_INQUIRIES} questions are open"));
        }
        if !session.may_show(&model, &found.label) {
            return Err(format!("the model `{model}` may not see `{handle}`: raise its `clearance`"));
        }
        let label = session.label_of_question(&found);
        self.next += 1;
        let inquiry = Inquiry {
            number: self.next,
            model: model.clone(),
            question: question.into(),
            about: found.value,
            form: form.clone(),
        };
        self.open.insert(self.next, Waiting { call: message.clone(), by: found.by, label, form });
        let note = Note::Inquired { handle: found.name, model };
        Ok(vec![Action::Note(note), Action::Ask(inquiry)])
    }

    /// Takes the answer of the quarantined model. Whether it answers at all depends on the data, so the
    /// client is told the same each time.
    pub(crate) fn answered(
        &mut self,
        number: u64,
        said: Result<Data, String>,
        session: &mut Session,
    ) -> Vec<Action> {
        let Some(Waiting { call, by, label, form }) = self.open.remove(&number) else { return Vec::new() };
        let (value, note) = match said {
            Ok(value) if value == Data::Null || form.admits(&value) => (value, None),
            Ok(_) => (Data::Null, Some("it is not of the form that was asked for".into())),
            Err(why) => (Data::Null, Some(why)),
        };
        let note = note.map(|why| Action::Note(Note::Unanswered(why)));
        let answer = match session.keep_answer(by.clone(), value, label) {
            Some(name) => answer(&call, &format!("The answer is the handle {name}.")),
            None => {
                let refused = session.refuse(ASK, "the session has too many handles");
                return refuse(&call, &refused.to_string(), Some(Note::Refused(refused)));
            }
        };
        note.into_iter().chain([answer]).collect()
    }

    /// The client has canceled a call.
    pub(crate) fn canceled(&mut self, id: &Value) {
        self.open.retain(|_, waiting| waiting.call["id"] != *id);
    }

    /// A new conversation has begun: the questions of the last one are refused.
    pub(crate) fn begin_again(&mut self, session: &Session) -> Vec<Action> {
        let refused = session.refuse(ASK, "a new conversation has begun");
        let open = std::mem::take(&mut self.open);
        open.values().flat_map(|waiting| refuse(&waiting.call, &refused.to_string(), None)).collect()
    }
}

impl AnswerForm {
    /// Returns whether an answer has the form.
    pub fn admits(&self, answer: &Data) -> bool {
        match (self, answer) {
            (AnswerForm::Text, Data::Str(_))
            | (AnswerForm::Number, Data::Num(_))
            | (AnswerForm::Boolean, Data::Bool(_)) => true,
            (AnswerForm::Choice(all), Data::Str(text)) => all.iter().any(|choice| **choice == **text),
            _ => false,
        }
    }
}

fn form(args: &Value) -> Result<AnswerForm, String> {
    match args["form"].as_str() {
        None if args["form"].is_null() => Ok(AnswerForm::Text),
        Some("text") => Ok(AnswerForm::Text),
        Some("number") => Ok(AnswerForm::Number),
        Some("boolean") => Ok(AnswerForm::Boolean),
        Some("choice") => {
            let choices = args["choices"].as_array().map_or(&[][..], Vec::as_slice);
            let texts: Vec<String> = choices.iter().filter_map(|c| c.as_str().map(String::from)).collect();
            match texts.is_empty() || texts.len() != choices.len() || texts.len() > MAX_CHOICES {
                true => Err(format!("`choices` are 1 to {MAX_CHOICES} texts")),
                false => Ok(AnswerForm::Choice(texts)),
            }
        }
        _ => Err("the `form` of an answer is `text`, `number`, `boolean` or `choice`".into()),
    }
}

fn answer(call: &Value, text: &str) -> Action {
    Action::ToClient(msg::tool_text(&call["id"], text, msg::is_stateless(call)))
}

fn refuse(call: &Value, why: &str, note: Option<Note>) -> Vec<Action> {
    let text = format!("entail guard refused this call: {why}");
    let error = Action::ToClient(msg::tool_error(&call["id"], &text, msg::is_stateless(call)));
    note.map(Action::Note).into_iter().chain([error]).collect()
}
