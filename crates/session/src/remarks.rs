//! Remarks under the lines of a plan before it runs.
//!
//! Entry point: [`all`].
//!
//! Invariant: a remark is about the text of the plan. What is wrong with a policy is a finding.

use crate::planning::Draft;
use crate::report::shown_bits;
use ::policy::Policy;
use analysis::flow::{self, Cause, Checked, Choices, Chosen, FlowReport, Sink, Site, Source, Verdict};
use core_ir::{AmongSource, Code, Name, Term, ToolDecl};
use diagnostics::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Possible refusals of the calls of a plan, questions to a person, choices of an attacker, texts of several
/// writers, and delegations; each with its line.
pub(crate) fn all(draft: &Draft, report: &FlowReport) -> Vec<(u32, String)> {
    let mut remarks: Vec<(u32, String)> = Vec::new();
    let mut add = |span: Span, text: String| {
        let remark = (draft.line(span), text);
        if span.file == draft.file && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    };
    for d in flow::findings(report) {
        if let Some(span) = d.span {
            add(span, d.message.clone());
        }
    }
    for site in report.sites.iter().filter(|s| s.verdict != Verdict::Never) {
        if let (Sink::Tool(name), Some(who)) = (&site.sink, site.asks) {
            add(site.span, format!("`{name}`: {who} decides"));
        }
        for choice in &site.chosen {
            add(site.span, choice.describe());
        }
        for (param, writers) in joined(site) {
            let said = |s: &&Source| match (&s.origin.cause, s.origin.span.file == draft.file) {
                (Cause::Tool(name), true) => format!("`{name}` in line {}", draft.line(s.origin.span)),
                (Cause::Tool(name), false) => format!("`{name}`"),
                _ => s.origin.describe(),
            };
            let writers: Vec<String> = writers.iter().map(said).collect();
            let writers = writers.join(" and of ");
            add(
                site.span,
                format!("`{param}` joins text of {writers}: nothing tells their writers apart in it"),
            );
        }
    }
    if let Ok(compiled) = &draft.outcome
        && let Some(runnable) = compiled.runnable()
    {
        for (span, text) in delegations(&runnable.code, compiled.loaded.policy.as_ref(), report) {
            add(span, text);
        }
    }
    remarks
}

/// The texts at a sink in which results of several calls meet, with these calls.
fn joined(site: &Site) -> Vec<(Name, Vec<&Source>)> {
    let control = site.checks.iter().find(|c| c.what == Checked::Control);
    let decides = |s: &Source| control.is_some_and(|c| c.sources.iter().any(|d| d.origin == s.origin));
    let is_text = |param: &Name| {
        let of_param = |c: &&Chosen| c.param.as_ref() == Some(param);
        site.chosen.iter().find(of_param).is_some_and(|c| matches!(c.among, Choices::Text | Choices::Any))
    };
    let mut found = Vec::new();
    for check in &site.checks {
        let Checked::Argument(param) = &check.what else { continue };
        let is_read = |s: &&Source| s.untrusted && matches!(s.origin.cause, Cause::Tool(_)) && !decides(s);
        let writers: Vec<&Source> = check.sources.iter().filter(is_read).collect();
        if writers.len() > 1 && is_text(param) {
            found.push((param.clone(), writers));
        }
    }
    found
}

/// The blocks that delegate, each with whose text may choose, among what, and how much that is.
fn delegations(code: &Code, policy: Option<&Policy>, report: &FlowReport) -> Vec<(Span, String)> {
    let mut blocks: BTreeMap<Span, Vec<&Arc<ToolDecl>>> = BTreeMap::new();
    for (id, term) in code.iter() {
        let Term::Tool(tool) = term else { continue };
        let decl = code.tool(*tool);
        if decl.delegated.is_some() && !decl.confirms {
            blocks.entry(code.span(id)).or_default().push(decl);
        }
    }
    let rules = policy.map_or(&[][..], Policy::delegates);
    let describe = |(span, offered): (Span, Vec<&Arc<ToolDecl>>)| {
        let to = &offered.first()?.delegated.as_ref()?.to;
        let most = rules.iter().find(|rule| rule.to == *to)?.at_most;
        let names: Vec<String> = offered.iter().map(|decl| format!("`{}`", decl.called())).collect();
        let calls = if most == 1 { "call" } else { "calls" };
        let size = Size::of(&offered, span, report).describe(most);
        Some((
            span,
            format!(
                "text of {} may choose among {}; at most {most} {calls}; {size}",
                to.join(", "),
                names.join(", ")
            ),
        ))
    };
    blocks.into_iter().filter_map(describe).collect()
}

/// How much one choice of a block is.
#[derive(Default)]
struct Size {
    /// Choices, as far as they can be counted, that nothing is called included.
    count: f64,
    /// Parameters that are chosen freely.
    free: BTreeSet<Name>,
    /// Parameters that are chosen from sets that are read when the run begins.
    sets: BTreeSet<Name>,
}

impl Size {
    fn of(offered: &[&Arc<ToolDecl>], span: Span, report: &FlowReport) -> Size {
        let mut size = Size { count: 1.0, ..Size::default() };
        for decl in offered {
            let at = |s: &&Site| s.span == span && s.sink == Sink::Tool(decl.name.clone());
            let site = report.sites.iter().find(at);
            let mut count = 1.0;
            for param in &decl.params {
                let of_param = |c: &&Chosen| c.param.as_ref() == Some(&param.name);
                let chosen = site.and_then(|s| s.chosen.iter().find(of_param));
                // Of what a read is asked for no bound is known but its type.
                match chosen.map_or_else(|| Choices::of(&param.ty), |c| c.among.clone()) {
                    // INVARIANT: types and policies have far fewer than 2⁵² values, so the conversion is
                    // exact.
                    Choices::Values(n) => count *= n as f64,
                    Choices::Number | Choices::Text | Choices::Any => {
                        size.free.insert(param.name.clone());
                    }
                    Choices::Sets(sets) => match stated(&sets) {
                        Some(n) => count *= n as f64,
                        None => {
                            size.sets.insert(param.name.clone());
                        }
                    },
                }
            }
            size.count += count;
        }
        size
    }

    /// `≤ 3.2 bits`, or what can't be counted.
    fn describe(&self, calls: u64) -> String {
        let listed = |names: &BTreeSet<Name>| {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let mut parts = Vec::new();
        if !self.free.is_empty() {
            parts.push(format!("free in {}", listed(&self.free)));
        }
        if !self.sets.is_empty() {
            parts.push(format!("one of a set in {}", listed(&self.sets)));
        }
        match parts.is_empty() {
            true => format!("≤ {}", shown_bits(self.count.log2() * calls as f64)),
            false => parts.join(", "),
        }
    }
}

/// The number of values of sets that the policy states.
fn stated(sets: &[AmongSource]) -> Option<usize> {
    let of = |set: &AmongSource| match set {
        AmongSource::Values(values) => Some(values.len()),
        _ => None,
    };
    sets.iter().map(of).sum()
}
