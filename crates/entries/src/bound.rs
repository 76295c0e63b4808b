//! Cost bounds as JSON.

use analysis::cost::{CostBound, Interval, Line, Share};
use diagnostics::Sources;
use serde_json::{Value, json};

/// The figures of a bound as JSON; the most is `null` where no bound is known.
pub fn figures(bound: &CostBound, sources: &Sources) -> Value {
    let interval = |i: Interval| json!({"least": i.least, "most": i.most});
    let open: Vec<Value> = bound
        .unbounded
        .iter()
        .map(|(span, why)| json!({"place": sources.place(*span), "why": why}))
        .collect();
    let unpriced: Vec<Value> =
        bound.unpriced.iter().map(|(model, calls)| json!({"model": &**model, "calls": calls})).collect();
    json!({
        "modelCalls": interval(bound.model_calls),
        "toolCalls": interval(bound.tool_calls),
        "inputTokens": interval(bound.input_tokens),
        "outputTokens": interval(bound.output_tokens),
        "usd": {"least": in_dollars(bound.money.least), "most": usd(bound)},
        "ms": interval(bound.millis),
        "unpriced": unpriced,
        "unbounded": open,
    })
}

/// The most expensive path as JSON: calls, and how often the deeper lines below a line happen. A call has
/// `most`, which it spends in a run at most; a quantity of it is `null` if no bound is known.
pub fn path(bound: &CostBound, sources: &Sources) -> Value {
    let most = |s: &Share| {
        let usd = s.money.map(in_dollars);
        json!({"modelCalls": s.model_calls, "toolCalls": s.tool_calls, "usd": usd})
    };
    let line = |l: &Line| {
        let mut line = json!({"depth": l.depth, "place": sources.place(l.span), "text": l.text});
        if let Some(share) = &l.most {
            line["most"] = most(share);
        }
        line
    };
    bound.path.iter().map(line).collect()
}

fn in_dollars(billionths: u64) -> f64 {
    billionths as f64 / 1e9
}

/// The most dollars of a run, if all models that it may ask have a price.
pub fn usd(bound: &CostBound) -> Option<f64> {
    bound.money.most.filter(|_| bound.unpriced.is_empty()).map(in_dollars)
}
