//! Sessions of the guard, with JSON texts in and out.
//!
//! Invariant: the lock of a session is held only while the interpreter is let go of.

use crate::{failure, parsed, wrong};
use entail::Data;
use entail::guard::{
    Allowed, Decision, Note, Outcome, Question, Refused, Session, SessionOptions, SetRead, ToolSpec,
    policy_of_file, policy_of_text,
};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A session of the guard: one conversation.
#[pyclass(frozen, name = "GuardSession")]
pub(crate) struct PySession {
    session: Mutex<Session>,
    observe: bool,
}

/// A call on its way through the guard. Each step takes it once.
#[pyclass(frozen)]
pub(crate) struct GuardCall(Mutex<Option<Step>>);

enum Step {
    Allowed(Allowed),
    Asks(Question),
    Reads(SetRead, Data),
}

/// Result of a step: a JSON text, and the call for the next step.
type Stepped = PyResult<(String, Option<GuardCall>)>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused_json(refused: &Refused) -> Value {
    let mut json = Note::Refused(refused.clone()).to_json();
    json["text"] = refused.to_string().into();
    json
}

fn stepped(decision: Decision, args: &Data, note: Option<Note>) -> (String, Option<GuardCall>) {
    let mut notes: Vec<Value> = note.iter().map(Note::to_json).collect();
    let (mut told, step) = match decision {
        Decision::Allowed(allowed) => (json!({"decision": "allowed"}), Some(Step::Allowed(allowed))),
        Decision::Refused(refused) => {
            notes.push(Note::Refused(refused.clone()).to_json());
            (json!({"decision": "refused", "refused": refused_json(&refused)}), None)
        }
        Decision::Asks(question) => {
            let labels = question.args().iter().map(|(name, _, label)| (name.to_string(), json!(label)));
            let args = question.args().iter().map(|(name, data, _)| (name.to_string(), data.to_json()));
            let told = json!({"decision": "asks", "args": args.collect::<Value>(),
                "labels": labels.collect::<Value>(), "decided": question.is_decided()});
            (told, Some(Step::Asks(question)))
        }
        Decision::Reads(read) => {
            (json!({"decision": "reads", "set": &**read.set()}), Some(Step::Reads(read, args.clone())))
        }
    };
    told["notes"] = notes.into();
    (told.to_string(), step.map(|step| GuardCall(Mutex::new(Some(step)))))
}

/// A result as the model is shown it: a text that is JSON is read as that, as from a server.
fn data_of(json: &str) -> Result<Data, String> {
    let value: Value = serde_json::from_str(json).map_err(|e| e.to_string())?;
    let value = match value {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        value => value,
    };
    Data::from_json(&value).map_err(|e| e.to_string())
}

/// A result, or the text of a failure; of one that is neither nothing is known but its label.
fn result_of(result: Option<&str>, failed: Option<String>) -> Result<Data, String> {
    match (result, failed) {
        (_, Some(why)) => Err(why),
        (Some(json), None) => data_of(json),
        (None, None) => Err("its result is no data".into()),
    }
}

/// Arguments of a call that was made elsewhere; `null` if they are no data.
fn known_arguments(json: &str) -> Data {
    let value: Value = serde_json::from_str(json).unwrap_or(Value::Null);
    Data::from_json(&value).unwrap_or(Data::Null)
}

fn taken(call: &GuardCall) -> PyResult<Step> {
    let step = locked(&call.0).take();
    step.ok_or_else(|| wrong("the result of this call was given already"))
}

#[pymethods]
impl PySession {
    /// A session of the policy in a file, or of the text of one.
    #[new]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        text: Option<String>,
        model: Option<String>,
        observe: bool,
    ) -> PyResult<PySession> {
        let policy = py.detach(|| match (path, text) {
            (Some(path), _) => policy_of_file(&path),
            (None, text) => policy_of_text(&text.unwrap_or_default()),
        });
        let policy = policy.map_err(|e| failure(&e))?;
        // Labels of what tools remember are kept by the guards of servers alone.
        let options = SessionOptions {
            model: model.map(|m| m.as_str().into()),
            forgets: true,
            // A client in Python has no tool that asks about handles.
            quarantine: None,
        };
        Ok(PySession { session: Mutex::new(Session::new(policy.into(), &options)), observe })
    }

    /// A session of the same policy and tools that has read nothing.
    fn fresh(&self, py: Python<'_>) -> PySession {
        let session = py.detach(|| locked(&self.session).fresh());
        PySession { session: Mutex::new(session), observe: self.observe }
    }

    /// Adds tools: a list of `{name, schema}`. Gives the problems of the policy with all tools.
    fn offer(&self, py: Python<'_>, tools: String) -> PyResult<String> {
        let tools = parsed(&tools)?;
        let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
        let spec =
            |tool: &Value| ToolSpec::of_schema(tool["name"].as_str().unwrap_or_default(), &tool["schema"]);
        let specs: Vec<ToolSpec> = tools.iter().map(spec).collect();
        Ok(py.detach(|| {
            let mut session = locked(&self.session);
            session.offer(specs);
            let problems = session.problems().iter();
            let problems = problems
                .map(|p| json!({"code": p.code.to_string(), "message": p.message, "help": p.help.first()}));
            Value::Array(problems.collect()).to_string()
        }))
    }

    fn decide(&self, py: Python<'_>, tool: String, args: String) -> Stepped {
        let args =
            Data::from_json(&parsed(&args)?).map_err(|e| wrong(format!("the arguments of `{tool}`: {e}")))?;
        Ok(py.detach(|| {
            let (decision, note) = locked(&self.session).decide(&tool, &args, self.observe);
            stepped(decision, &args, note)
        }))
    }

    /// Gives the result of the set that a call waits for.
    fn read(
        &self,
        py: Python<'_>,
        call: &GuardCall,
        result: Option<String>,
        failed: Option<String>,
    ) -> Stepped {
        let Step::Reads(read, args) = taken(call)? else { return Err(wrong("this call waits for no set")) };
        Ok(py.detach(|| {
            let result = result_of(result.as_deref(), failed);
            let (decision, note) =
                locked(&self.session).decide_after(read, result, None, &args, self.observe);
            stepped(decision, &args, note)
        }))
    }

    /// Gives the answer of a person: `None` approves.
    fn answer(&self, py: Python<'_>, call: &GuardCall, why_not: Option<String>) -> Stepped {
        let Step::Asks(question) = taken(call)? else { return Err(wrong("nobody is asked about this call")) };
        Ok(py.detach(|| {
            let decision = locked(&self.session).answer(question, why_not.map_or(Ok(()), Err));
            stepped(decision, &Data::Null, None)
        }))
    }

    /// Nobody is there to be asked.
    fn unattended(&self, py: Python<'_>, call: &GuardCall) -> Stepped {
        let Step::Asks(question) = taken(call)? else { return Err(wrong("nobody is asked about this call")) };
        Ok(py.detach(|| {
            let decision = locked(&self.session).unattended(question);
            stepped(decision, &Data::Null, None)
        }))
    }

    /// Takes note of the result of a call, or of the text of its failure. With neither the result is no data.
    fn conclude(
        &self,
        py: Python<'_>,
        call: &GuardCall,
        result: Option<String>,
        failed: Option<String>,
    ) -> PyResult<String> {
        let Step::Allowed(allowed) = taken(call)? else { return Err(wrong("this call was not allowed")) };
        Ok(py.detach(|| {
            let mut session = locked(&self.session);
            let result = match result_of(result.as_deref(), failed) {
                // It may be the text of a failure, which has the labels of all parts.
                Ok(Data::Str(text)) if session.has_parts(allowed.tool()) => Err(text.to_string()),
                result => result,
            };
            let (outcome, notes) = session.conclude(allowed, result, None, self.observe);
            let mut told = json!({"notes": notes.iter().map(Note::to_json).collect::<Vec<_>>()});
            if let Outcome::Withheld(refused) = outcome {
                told["withheld"] = refused_json(&refused);
            }
            told.to_string()
        }))
    }

    /// Takes note of a result of another session. Gives the notes.
    fn seen(&self, py: Python<'_>, tool: String, args: String) -> PyResult<String> {
        let args = known_arguments(&args);
        Ok(py.detach(|| {
            let mut session = locked(&self.session);
            let before = session.label();
            session.seen(&tool, &args);
            let to = session.label();
            let raised = Note::Raised { by: tool.as_str().into(), to: to.clone() };
            let notes = if before == to { Vec::new() } else { vec![raised.to_json()] };
            Value::Array(notes).to_string()
        }))
    }

    /// Returns whether a result of a call would raise the label, were it of another session.
    fn would_raise(&self, py: Python<'_>, tool: String, args: String) -> PyResult<bool> {
        let args = known_arguments(&args);
        Ok(py.detach(|| {
            let session = locked(&self.session);
            let mut probe = session.clone();
            probe.seen(&tool, &args);
            probe.label() != session.label()
        }))
    }

    /// The label of the conversation, as it is written.
    fn label(&self, py: Python<'_>) -> String {
        py.detach(|| locked(&self.session).label())
    }

    /// The raises of the label, as a JSON text.
    fn raised(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let session = locked(&self.session);
            let raised = session.raised().iter().map(|r| json!([&*r.by, r.to]));
            Value::Array(raised.collect()).to_string()
        })
    }

    /// State that must outlive the process, as a JSON text.
    fn save(&self, py: Python<'_>) -> String {
        py.detach(|| locked(&self.session).save().to_string())
    }

    /// Joins what another session saved.
    fn join(&self, py: Python<'_>, saved: String) -> PyResult<()> {
        let saved = parsed(&saved)?;
        py.detach(|| locked(&self.session).join(&saved)).map_err(wrong)
    }
}
