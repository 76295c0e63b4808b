//! Outcomes of runs, for people and as JSON: what `entail run` and a server show.
//!
//! Invariant: what is shown is the report that is given. Whoever may not see all of a run gives the report of
//! a view.

use crate::bound;
use crate::refusal::{remarks, with_remedies};
use analysis::cost::CostBound;
use core_ir::{Code, Num, Term};
use diagnostics::{Diagnostic, Sources};
use machine::{ErrorCode, Failure};
use policy::Policy;
use runs::{RefusedCall, RunReport, Usage};
use serde_json::{Map, Value, json};

/// Reports calls that were refused while the program continued. The result may look as if they had been made.
pub fn refused_calls(report: &RunReport, code: &Code, policy: Option<&Policy>) -> Vec<Diagnostic> {
    let said = |call: &RefusedCall| {
        let tool = call.refused.name.as_deref().unwrap_or("?");
        let times = if call.times == 1 { "once".into() } else { format!("{} times", call.times) };
        let label = call.refused.value.label.to_json();
        let how = match (call.refused.integrity, call.refused.secrecy) {
            (true, false) => "untrusted",
            (false, true) => "secret",
            _ => "untrusted and secret",
        };
        let why = match &call.refused.part {
            machine::Part::Control => format!("what decided it is {how}: {label}"),
            part => format!("the argument `{}` is {how}: {label}", part.name()),
        };
        let message = format!("`{tool}` was not called: it was refused {times}, and the program went on");
        let d = Diagnostic::warn("flow", message, call.span).label(why);
        with_remedies(d, &call.refused, code, policy)
    };
    report.why.calls.iter().map(said).collect()
}

/// The message of a failure: of a plan's exception its class and its message.
fn message_of(failure: &Failure) -> String {
    match core_ir::py::uncaught(&failure.message).filter(|_| failure.code == ErrorCode::Fail) {
        Some((class, message)) if message.is_empty() => class,
        Some((class, message)) => format!("{class}: {message}"),
        None => failure.message.clone(),
    }
}

/// The failure of a run as a finding, with its origin and its remedies.
pub fn as_diagnostic(
    failure: &Failure,
    report: &RunReport,
    code: &Code,
    policy: Option<&Policy>,
) -> Diagnostic {
    let mut d = Diagnostic::error(failure.code.as_str(), message_of(failure), failure.span);
    for (span, note) in &failure.notes {
        d = d.remark(*span, note.clone());
    }
    if let Some(refused) = &report.why.refused {
        d = with_remedies(remarks(d, refused), refused, code, policy);
    }
    if failure.code == ErrorCode::Policy && report.why.refused.is_none() {
        d = d.help(
            "the function `policy` at the tool, or `allow` in the policy file, decides this: it is given the value and the label of each argument, and may give a text that says why not instead of `false`",
        );
    }
    if failure.unattended {
        d = d.help(
            "run it with standard input and standard error at a terminal, where you are asked, or with `--journal`, and answer with `entail approve`; see `approve` in docs/policies.md",
        );
    }
    let label = report.label.to_json().to_string();
    // Without a `try` in the program, as in most tests, the label of an error decides nothing.
    let tries = || code.iter().any(|(_, term)| matches!(term, Term::Try { .. }));
    if label != "[]" && tries() {
        d = d.help(format!("the error itself is labeled {label}: only a `try` at that label may catch it"));
    }
    d
}

/// `price unknown`, and of which models.
pub fn unpriced(usage: &Usage) -> String {
    match &usage.unpriced[..] {
        [] => "price unknown".into(),
        models => format!("price unknown: `{}`", models.join("`, `")),
    }
}

/// The outcome of a run as JSON: result or error, usage and bound (docs/cli.md).
pub fn as_json(sources: &Sources, report: &RunReport, bound: &CostBound) -> Value {
    let mut object = Map::new();
    match &report.result {
        Ok(value) => {
            // A function has no JSON; it is shown as text.
            let result = value.data().map_or_else(|| Value::from(value.to_string()), |d| d.to_json());
            object.insert("result".into(), result);
            object.insert("label".into(), report.label.to_json());
        }
        Err(f) => {
            let mut error =
                json!({"code": f.code.as_str(), "message": message_of(f), "label": report.label.to_json()});
            if let Some(reason) = f.stopped {
                error["reason"] = reason.as_str().into();
            }
            if let (Some(o), Some(source)) = (error.as_object_mut(), sources.get(f.span.file)) {
                o.insert("path".into(), source.path.clone().into());
                let at = source.line_column(f.span.start);
                o.insert("line".into(), at.line.into());
                o.insert("column".into(), at.column.into());
            }
            if let (Some(o), Some(refused)) = (error.as_object_mut(), &report.why.refused) {
                o.insert("refused".into(), refused.to_json(sources, &|_| None));
            }
            object.insert("error".into(), error);
            if let Some(partial) = &report.partial {
                object.insert("partial".into(), partial.to_json());
            }
        }
    }
    if !report.why.calls.is_empty() {
        let refused = |call: &RefusedCall| {
            let mut object = call.refused.to_json(sources, &|_| None);
            object["times"] = call.times.into();
            object
        };
        object.insert("refusedCalls".into(), report.why.calls.iter().map(refused).collect());
    }
    let usage = &report.usage;
    object.insert("run".into(), report.run.clone().into());
    object.insert("questions".into(), report.usage.questions.into());
    object.insert("usage".into(), usage_json(usage));
    object.insert(
        "bound".into(),
        json!({"modelCalls": bound.model_calls.most, "toolCalls": bound.tool_calls.most, "usd": bound::usd(bound)}),
    );
    object.insert("ms".into(), (report.elapsed.as_millis() as u64).into());
    Value::Object(object)
}

/// Usage of a run as JSON.
pub fn usage_json(usage: &Usage) -> Value {
    json!({
        "modelCalls": usage.model_calls, "toolCalls": usage.tool_calls,
        "inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens,
        "usd": usage.usd.as_ref().map(Num::to_json), "unpriced": usage.unpriced,
    })
}

/// A number of bits for people, rounded up.
pub fn shown_bits(bits: f64) -> String {
    match bits {
        0.0 => "0 bits".into(),
        bits => format!("{:.1} bits", (bits * 10.0).ceil() / 10.0),
    }
}
