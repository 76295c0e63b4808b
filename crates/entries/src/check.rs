//! Checks of entry points: types, effects, bounds and flow, for people and as JSON.
//!
//! Entry point: [`entry`]. `entail check` and the playground show what it gives.

use crate::bound::figures;
use crate::{Runnable, policy};
use ::policy::Policy;
use analysis::cost::CostBound;
use analysis::{flow, types};
use core_ir::{Code, ModelRoutes, Name};
use diagnostics::{Diagnostic, Hint, Sources};
use serde_json::{Value, json};
use std::sync::Arc;

/// A part of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// The type, and where the run decides whether types fit.
    Types,
    /// Effects.
    Effects,
    /// Bounds on the calls of a run.
    Cost,
    /// Calls that the policy allows always, never, or under a condition.
    Flow,
}

impl Aspect {
    /// All of them.
    pub const ALL: [Aspect; 4] = [Aspect::Types, Aspect::Effects, Aspect::Cost, Aspect::Flow];
}

/// Result of checking one entry point.
pub struct Entry {
    /// Findings in it.
    pub found: Vec<Diagnostic>,
    /// The checked parts as JSON.
    pub object: Value,
    /// The same in lines for people.
    pub lines: Vec<String>,
    /// Models for which there is no list price.
    pub unpriced: Vec<Name>,
}

/// Analyzes one entry point of the file at a path. `bound` gives the cost bound of a term, or of a call of
/// the function that it is.
pub fn entry(
    sources: &Sources,
    path: &str,
    r: &Runnable,
    aspects: &[Aspect],
    policy: Option<&Policy>,
    routes: &ModelRoutes,
    bound: &dyn Fn(&Arc<Code>, bool) -> CostBound,
) -> Entry {
    let input = r.analyzed_for();
    let mut object = json!({"path": path, "entry": r.name, "input": input.as_ref().map(ToString::to_string)});
    let mut lines = Vec::new();
    let of = input.as_ref().map_or(String::new(), |t| format!(" of {t}"));
    lines.push(format!("{path}: {}{of}", r.name));
    let mut add = |more: Value| {
        if let (Some(o), Value::Object(more)) = (object.as_object_mut(), more) {
            o.extend(more);
        }
    };
    let typing = types::check(&r.code, r.input.as_ref());
    let mut found = typing.diagnostics;
    let mut unpriced = Vec::new();
    if aspects.contains(&Aspect::Types) {
        let ty = typing.result.as_ref().unwrap_or(&typing.ty);
        let open: Vec<String> = typing.dynamic.iter().map(|s| sources.place(*s).to_string()).collect();
        lines.push(match typing.result {
            Some(_) => format!("  result: {ty}"),
            None => format!("  type: {ty}"),
        });
        if !typing.complete {
            lines.push("  the program is too large for all of its types to be checked".into());
        }
        if !open.is_empty() {
            let shown = open.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            let more = if open.len() > 5 { ", …" } else { "" };
            let uses = if open.len() == 1 { "use" } else { "uses" };
            lines.push(format!("  decided when it runs: {} {uses} ({shown}{more})", open.len()));
        }
        add(json!({"type": ty.to_string(), "dynamic": open, "complete": typing.complete}));
    }
    if aspects.contains(&Aspect::Effects) {
        let effects = match (&r.input, &input) {
            // Those of a call.
            (None, Some(_)) => types::check(&r.code, input.as_ref()).effects,
            _ => typing.effects,
        };
        lines.push(format!("  effects: {effects}"));
        add(json!({"effects": effects.to_string()}));
    }
    if aspects.contains(&Aspect::Cost) {
        let bound = bound(&r.code, input.is_some());
        add(figures(&bound, sources));
        unpriced = bound.unpriced.iter().map(|(name, _)| name.clone()).collect();
        lines.push(format!("  model calls: {}", bound.model_calls));
        lines.push(format!("  tool calls: {}", bound.tool_calls));
        for (span, why) in &bound.unbounded {
            lines.push(format!("  at {}: {why}", sources.place(*span)));
        }
    }
    if aspects.contains(&Aspect::Flow) {
        let options = policy::options(policy, routes.clone(), input.is_some());
        let report = flow::analyze(&r.code, &options);
        let mut refused = flow::findings(&report);
        Hint::add(&r.hints, &mut refused);
        found.extend(refused);
        add(json!({"flow": flow::to_json(&report, sources)}));
        lines.extend(flow::to_text(&report, sources).into_iter().map(|line| format!("  {line}")));
    }
    Entry { found, object, lines, unpriced }
}
