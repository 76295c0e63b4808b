//! Failure of nodes: retries, default values, and failure branches.
//!
//! | source | term |
//! |---|---|
//! | `retry_config` | `fix[max_retries]` of attempts in `try … catch transient`, then a last one |
//! | `error_strategy: default-value` | `try … catch m. {…, error_message: m}` |
//! | `error_strategy: fail-branch` | the same with empty outputs; the edges look at which it was |
//!
//! Source: langgenius/dify, `api/core/workflow/nodes/base/entities.py`, `graph_engine/error_handler.py`.

use super::outputs::nothing_of;
use core_ir::{Bound, Branch, Catches, Data, Name, Term, TermId};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::kit::Kit;
use frontend_kit::outline::Retried;

/// The edges of a node that may fail.
pub(super) const SUCCESS_BRANCH: &str = "success-branch";
pub(super) const FAIL_BRANCH: &str = "fail-branch";
/// The field that says that a node failed.
pub(super) const FAILED: &str = "__failed";
/// Attempts beside the first where it is not said how many.
const RETRIES: u64 = 1;

/// Returns true if a node has a failure branch.
pub(super) fn branches(data: Node<'_>) -> bool {
    data.get("error_strategy").and_then(|s| s.text()) == Some(FAIL_BRANCH)
}

/// `try body catch _. instead`.
pub(super) fn caught(kit: &mut Kit<'_>, body: TermId, instead: TermId, at: Span) -> TermId {
    caught_of(kit, Catches::All, body, instead, at)
}

fn caught_of(kit: &mut Kit<'_>, catches: Catches, body: TermId, handler: TermId, at: Span) -> TermId {
    let label = kit.b.lit(Data::list(["U", "S"].map(Data::str).to_vec()), at);
    kit.b.add(Term::Try { label, body, catches, name: "$why".into(), handler }, at)
}

/// The value of a node with its attempts, and with what it is instead if all fail.
pub(super) fn handled(kit: &mut Kit<'_>, data: Node<'_>, kind: &str, value: TermId, at: Span) -> TermId {
    let value = match attempts(data) {
        Some(n) => repeated(kit, value, n, at),
        None => value,
    };
    let strategy = data.get("error_strategy").and_then(|s| s.text()).unwrap_or("");
    let mut fields: Vec<(Name, TermId)> = Vec::new();
    match strategy {
        "default-value" => {
            for v in data.get("default_value").into_iter().flat_map(|v| v.items()) {
                let Some(key) = v.get("key").and_then(|k| k.text()) else { continue };
                if fields.iter().all(|(n, _)| &**n != key) {
                    let typed = v.get("type").and_then(|t| t.text()).unwrap_or("");
                    let value = v.get("value").and_then(|v| super::repeat::constant_of(v, typed));
                    fields.push((key.into(), kit.b.lit(value.unwrap_or(Data::Null), at)));
                }
            }
            if is_record(kind) {
                for (name, nothing) in outputs(data, kind) {
                    if fields.iter().all(|(n, _)| *n != name) {
                        fields.push((name, kit.b.lit(nothing, at)));
                    }
                }
            }
        }
        FAIL_BRANCH => {
            for (name, nothing) in outputs(data, kind) {
                fields.push((name, kit.b.lit(nothing, at)));
            }
            fields.push((FAILED.into(), kit.b.lit(Data::Bool(true), at)));
        }
        _ => return value,
    }
    fields.retain(|(n, _)| !matches!(&**n, "error_message" | "error_type"));
    fields.push(("error_message".into(), kit.b.var("$why", at)));
    fields.push(("error_type".into(), kit.text("Error", at)));
    let instead = kit.b.add(Term::Record(fields), at);
    // What did not fail has the same parts.
    let mut marks: Vec<(&str, Data)> = Vec::new();
    if is_record(kind) {
        marks.extend([("error_message", Data::str("")), ("error_type", Data::str(""))]);
    }
    if strategy == FAIL_BRANCH {
        marks.push((FAILED, Data::Bool(false)));
    }
    if marks.is_empty() {
        return caught(kit, value, instead, at);
    }
    let mut marked = kit.b.var("$done", at);
    for (name, mark) in marks {
        let mark = kit.b.lit(mark, at);
        marked = kit.b.add(Term::With(marked, name.into(), mark), at);
    }
    let value = kit.b.let_in(vec![("$done".into(), value)], marked, at);
    caught(kit, value, instead, at)
}

/// Returns true if the output of a node kind is a record of known fields and not the result of a tool.
fn is_record(kind: &str) -> bool {
    matches!(kind, "llm" | "agent" | "question-classifier" | "parameter-extractor" | "template-transform")
}

/// Returns the maximal number of retries of a node.
fn attempts(data: Node<'_>) -> Option<u64> {
    let config = data.get("retry_config")?;
    config.get("retry_enabled").and_then(|e| e.as_bool()).filter(|on| *on)?;
    let n = config.get("max_retries").and_then(|n| n.as_u64()).unwrap_or(RETRIES);
    (n > 0).then_some(n)
}

/// `` (fix[n + 1] (λself. λ$r. try `done value catch transient m. self (`failed m))) (`failed "") ``: after
/// the last attempt its error is the error. What comes again however often it is tried, such as a refused
/// key, is not repeated.
fn repeated(kit: &mut Kit<'_>, value: TermId, n: u64, at: Span) -> TermId {
    let done = kit.b.add(Term::Tag("done".into(), Some(value)), at);
    let why = kit.b.var("$why", at);
    let failed = kit.b.add(Term::Tag("failed".into(), Some(why)), at);
    let this = kit.b.var("self", at);
    let handler = kit.b.app(this, failed, at);
    let body = caught_of(kit, Catches::Transient, done, handler, at);
    let step = kit.b.abs("$r", None, body, at);
    let step = kit.b.abs("self", None, step, at);
    let fix =
        kit.b.add(Term::Fix { bound: Bound::Finite(n.saturating_add(1)), origin: None, body: step }, at);
    let nothing = kit.text("", at);
    let begin = kit.b.add(Term::Tag("failed".into(), Some(nothing)), at);
    let ran = kit.b.app(fix, begin, at);
    let (value, why) = (kit.b.var("$value", at), kit.b.var("$why", at));
    let error = kit.b.add(Term::Fail(why), at);
    let branches = vec![
        Branch { tag: "done".into(), binder: Some("$value".into()), body: value },
        Branch { tag: "failed".into(), binder: Some("$why".into()), body: error },
    ];
    kit.b.add(Term::Case { scrutinee: ran, branches, default: None }, at)
}

/// Returns the outputs of a node, each with the empty value of its type.
fn outputs(data: Node<'_>, kind: &str) -> Vec<(Name, Data)> {
    let text = || Data::str("");
    match kind {
        kind if is_record(kind) => {
            let given = super::outputs::given(data).unwrap_or_default();
            given.into_iter().map(|(name, ty)| (name, nothing_of(&ty))).collect()
        }
        "http-request" => vec![
            ("body".into(), text()),
            ("status_code".into(), Data::Null),
            ("headers".into(), Data::Null),
            ("files".into(), Data::list(Vec::new())),
        ],
        "tool" => vec![
            ("text".into(), text()),
            ("json".into(), Data::list(Vec::new())),
            ("files".into(), Data::list(Vec::new())),
        ],
        "code" => {
            let outputs = data.get("outputs").into_iter().flat_map(|o| o.entries());
            outputs.map(|e| (Name::from(e.name()), Data::Null)).collect()
        }
        _ => Vec::new(),
    }
}

/// Notes that a request or tool is repeated when it fails.
pub(super) fn retried(kit: &mut Kit<'_>, data: Node<'_>, kind: &str, title: &str) {
    let Some(entry) = data.entry("retry_config") else { return };
    if entry.value.get("retry_enabled").and_then(|e| e.as_bool()) != Some(true) {
        return;
    }
    let writes = match kind {
        "http-request" => {
            match data.get("method").and_then(|m| m.text()).map(str::to_ascii_lowercase).as_deref() {
                // A request of these kinds may be repeated by the rules of HTTP; one with a key is told apart
                // by the service.
                Some("post" | "patch") if !mentions_idempotency(data) => None,
                _ => return,
            }
        }
        _ => return,
    };
    let times = entry.value.get("max_retries").and_then(|n| n.as_u64());
    kit.outline.retried(Retried {
        name: title.to_string(),
        at: entry.key.span(),
        times,
        writes,
        message: false,
    });
}

/// Returns true if a node sends a key by which a service recognizes a repeated request.
fn mentions_idempotency(node: Node<'_>) -> bool {
    let texts = node.descendants().filter_map(|n| n.as_str());
    texts.into_iter().any(|t| t.to_ascii_lowercase().contains("idempoten"))
}
