//! The machine's replay beside the interpreter's answer.
//!
//! Compared are all requests in the order of their places with their channel labels, arguments, conversations
//! and time limits, and the result with all its labels, or the label of the error. Not compared is the
//! wording of errors, which each of the two has its own; the interpreter marks where it used one.

use crate::case::{Case, Uncovered, worded};
use crate::replay::{End, Replay, Step};
use crate::{Finding, FindingKind};
use core_ir::{Data, exchange};
use machine::{Call, Message, Reified, ReifiedKind};
use serde_json::{Value, json};

/// Stands in a text of the interpreter for words of its own.
const OWN_WORDS: char = '\u{5}';

/// How the interpreter's run compares with the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// It is the same.
    Same {
        /// Number of requests that were compared.
        requests: usize,
        /// True if the end was compared as well.
        end: bool,
        /// Number of texts that contain words of an error, which were not compared.
        worded: usize,
    },
    /// It differs.
    Differs(Finding),
    /// The interpreter does not cover the run.
    Uncovered(Uncovered),
}

/// Compares what the interpreter answered to a case with the replay that the case is of.
pub fn compare(case: &Case, replay: &Replay, answer: &Value) -> Compared {
    let uncovered =
        |construct: &str| Compared::Uncovered(Uncovered { step: None, construct: construct.to_string() });
    if let Some(what) = answer.get("unsupported").and_then(Value::as_str) {
        return uncovered(what);
    }
    if answer["result"] == "out of fuel" {
        return uncovered("evaluation deeper than the interpreter goes");
    }
    let mut words = Words::default();
    let trace = answer["trace"].as_array().map_or(&[][..], Vec::as_slice);
    // The request that no answer was left for is the last one of both.
    let steps = &replay.steps[..replay.steps.len().min(case.answers + usize::from(case.is_open))];
    for (step, event) in steps.iter().zip(trace) {
        let (mut want, mut have) = (event.clone(), shown(step));
        without_names(&mut want);
        if words.same(&want, &have) {
            continue;
        }
        let (wanted, had) = (take(&mut want, "channel"), take(&mut have, "channel"));
        let finding = match words.same(&want, &have) {
            true => Finding {
                step: step.step,
                kind: FindingKind::Label,
                message: format!("its channel is labeled {had}, and {wanted} by the interpreter"),
            },
            false => Finding {
                step: step.step,
                kind: FindingKind::Request,
                message: format!("the interpreter makes another request: {}", clip(&want)),
            },
        };
        return Compared::Differs(finding);
    }
    if trace.len() < steps.len() {
        let message = "the interpreter ends without this request".to_string();
        let step = steps.get(trace.len()).and_then(|s| s.step);
        return Compared::Differs(Finding { step, kind: FindingKind::Extra, message });
    }
    if let Some(event) = trace.get(steps.len()) {
        let message = format!("the interpreter makes a further request: {}", clip(event));
        return Compared::Differs(Finding { step: None, kind: FindingKind::Missing, message });
    }
    if case.is_open {
        return Compared::Same { requests: steps.len(), end: false, worded: words.count };
    }
    match end(replay, answer, &mut words) {
        Some(finding) => Compared::Differs(finding),
        None => Compared::Same { requests: steps.len(), end: true, worded: words.count },
    }
}

/// Compares the results, and the conversations at the end.
fn end(replay: &Replay, answer: &Value, words: &mut Words) -> Option<Finding> {
    let End::Ended(result) = &replay.end else { return None };
    let finding = |kind, message| Some(Finding { step: None, kind, message });
    let mut want = answer["result"].clone();
    if let Some(error) = want.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("message");
    }
    let have = match result {
        Ok(value) => {
            if let Some(value) = want.get_mut("value") {
                as_read(value, &[]);
            }
            let mut have = tree(value);
            as_read(&mut have, &[]);
            json!({"value": have})
        }
        // In the proofs that is no error, but the end of the run, and has no label.
        Err(e) if e.code.as_str() == "budget" => json!({"stopped": "at_most"}),
        Err(_) => {
            let label = replay.error_label.as_ref().map_or(Value::Null, Data::to_json);
            json!({"error": {"label": label}})
        }
    };
    if !words.same(&want, &have) {
        let (mut plain_want, mut plain_have) = (want.clone(), have.clone());
        [&mut plain_want, &mut plain_have].into_iter().for_each(without_labels);
        let kind = match words.same(&plain_want, &plain_have) {
            true => FindingKind::Label,
            false => FindingKind::Result,
        };
        return finding(kind, format!("the interpreter's result differs: {}", clip(&want)));
    }
    let label = replay.conversation_label.to_json();
    if answer["conversation_label"] != label {
        let message = format!(
            "the conversation is labeled {label}, and {} by the interpreter",
            answer["conversation_label"]
        );
        return finding(FindingKind::Label, message);
    }
    if !words.same(&without_empty(&answer["conversation"]), &messages(&replay.conversation)) {
        return finding(FindingKind::Result, "the interpreter ends with another conversation".into());
    }
    None
}

fn take(value: &mut Value, key: &str) -> Value {
    value.as_object_mut().and_then(|o| o.remove(key)).unwrap_or_default()
}

fn clip(value: &Value) -> String {
    diagnostics::clip_to(&value.to_string().replace(OWN_WORDS, "…"), 200)
}

/// A request as the interpreter prints it.
fn shown(step: &Step) -> Value {
    let data = |args: &[(core_ir::Name, Data)]| -> Value {
        args.iter().map(|(_, d)| exchange::data_json(d)).collect()
    };
    let mut event = match &step.call {
        Call::Model { messages: ms, .. } => json!({"model": messages(ms.iter())}),
        Call::Tool { tool, args } => json!({"tool": *tool.name, "args": data(args)}),
        Call::Approve { tool, args, .. } => json!({"approve": *tool.name, "args": data(args)}),
        Call::Sample { probability, .. } => {
            json!({"sample": exchange::data_json(&Data::Num(probability.clone()))})
        }
        Call::Recall { store, key } => json!({"recall": &*runs::key_name(store, *key)}),
        Call::Remember { store, key, value } => {
            json!({"remember": &*runs::key_name(store, *key), "value": exchange::data_json(value)})
        }
    };
    event["channel"] = step.channel.to_json();
    if !step.limits.is_empty() {
        event["within"] = step.limits.iter().map(|n| exchange::data_json(&Data::Num(n.clone()))).collect();
    }
    event
}

/// Messages as the interpreter prints them. An empty system prompt is none in the machine.
fn messages<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Value {
    messages.into_iter().map(|m| json!([m.role.as_str(), worded(m.role, &m.content)])).collect()
}

fn without_empty(messages: &Value) -> Value {
    let all = messages.as_array().into_iter().flatten();
    all.filter(|m| **m != json!(["system", ""])).cloned().collect()
}

/// Removes what an event of the interpreter has beyond the request: names of draws and limits, and the
/// numbers of stores in the names of keys.
fn without_names(event: &mut Value) {
    take(event, "names");
    for key in ["recall", "remember"] {
        if let Some(Value::String(name)) = event.get_mut(key) {
            *name = name.rsplit('.').next().unwrap_or("").to_string();
        }
    }
    if let Some(messages) = event.get_mut("model") {
        *messages = without_empty(messages);
    }
}

/// A value as the interpreter prints it. What a function has captured is counted differently there.
fn tree(value: &Reified) -> Value {
    let fields = |fields: &[(core_ir::Name, Reified)]| -> Value {
        fields.iter().map(|(n, v)| json!([**n, tree(v)])).collect()
    };
    let mut node = json!({"label": value.label.to_json()});
    let (key, inner) = match &value.kind {
        ReifiedKind::Scalar(d) => ("scalar", exchange::data_json(d)),
        ReifiedKind::List(items) => ("list", items.iter().map(tree).collect()),
        ReifiedKind::Record(all) => ("record", fields(all)),
        // The proofs do not name the tool.
        ReifiedKind::Args(_, all) => ("args", fields(all)),
        ReifiedKind::Pair(p) => ("pair", json!([tree(&p.0), tree(&p.1)])),
        ReifiedKind::Tag(n, v) => {
            node["payload"] = json!([tree(v)]);
            ("tag", json!(**n))
        }
        ReifiedKind::Function(_) => ("function", Value::Null),
        ReifiedKind::TooDeep => ("scalar", Value::Null),
    };
    node[key] = inner;
    node
}

/// Joins the label of each container to those of its parts, as reading does: what no program can tell is not
/// compared. Forgets what functions have captured.
fn as_read(value: &mut Value, outer: &[Value]) {
    let own = value["label"].as_array().cloned().unwrap_or_default();
    let axes = ["U", "S"].into_iter().map(Value::from);
    let label: Vec<Value> = axes.filter(|l| own.contains(l) || outer.contains(l)).collect();
    value["label"] = Value::Array(label.clone());
    if let Some(function) = value.get_mut("function") {
        *function = Value::Null;
    }
    for key in ["list", "pair", "payload"] {
        let parts = value.get_mut(key).and_then(Value::as_array_mut);
        parts.into_iter().flatten().for_each(|part| as_read(part, &label));
    }
    for key in ["record", "args"] {
        let fields = value.get_mut(key).and_then(Value::as_array_mut);
        fields.into_iter().flatten().for_each(|field| as_read(&mut field[1], &label));
    }
}

fn without_labels(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("label");
            fields.values_mut().for_each(without_labels);
        }
        Value::Array(items) => items.iter_mut().for_each(without_labels),
        _ => {}
    }
}

/// Compares what the interpreter prints with what the machine did.
#[derive(Default)]
struct Words {
    /// Number of texts that were compared but for words of the interpreter's own.
    count: usize,
}

impl Words {
    fn same(&mut self, want: &Value, have: &Value) -> bool {
        match (want, have) {
            (Value::String(want), Value::String(have)) if want.contains(OWN_WORDS) => {
                self.count += 1;
                fits(want, have)
            }
            (Value::Array(want), Value::Array(have)) => {
                want.len() == have.len() && want.iter().zip(have).all(|(w, h)| self.same(w, h))
            }
            (Value::Object(want), Value::Object(have)) => {
                want.len() == have.len()
                    && want.iter().all(|(key, w)| have.get(key).is_some_and(|h| self.same(w, h)))
            }
            _ => want == have,
        }
    }
}

/// Returns whether a text is that of the interpreter, with any words where it has its own.
fn fits(want: &str, have: &str) -> bool {
    let mut parts = want.split(OWN_WORDS);
    let Some(rest) = have.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or("");
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    parts.into_iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_of_the_interpreter_fit_any_text_and_nothing_else_does() {
        for (want, have, is) in [
            ("a \u{5} b", "a whatever it is b", true),
            ("a \u{5} b", "a whatever it is c", false),
            ("\u{5}", "", true),
            ("x\u{5}y\u{5}z", "x1y2z", true),
            ("x\u{5}y\u{5}z", "x12z", false),
            ("xy\u{5}yz", "xyz", false),
        ] {
            assert_eq!(fits(want, have), is, "{want:?} {have:?}");
        }
        let mut words = Words::default();
        assert!(words.same(&json!({"a": ["\u{5}!"]}), &json!({"a": ["no!"]})));
        assert_eq!(words.count, 1);
        assert!(!words.same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    }
}
