//! Findings about a plan, as its planner is told them: what is wrong, where the value comes from, and the
//! ways that a plan has.
//!
//! Entry point: [`told`].
//!
//! Invariant: what is told is a function of the plan's text, the declarations and the policy. Nothing has
//! run. Invariant: a remedy is one that a plan can carry out. A planner can't change the policy.

use crate::planning::{Compiled, Draft};
use analysis::flow::{self, Cause, Check, Checked, Sink, Site, Source, Verdict};
use core_ir::{EffectClass, Lattice, Name, ToolDecl, Type};
use diagnostics::{Diagnostic, Level, Span};
use plan::planner::{Trust, trust};
use std::sync::Arc;

/// More sources, or tools, than this are not named in one finding.
const MAX_NAMED: usize = 3;

/// Nesting of a type that is looked into at most.
const MAX_TYPE_DEPTH: usize = 8;

/// The errors of a plan with their lines. The tools are as the policy has them.
pub(crate) fn told(
    draft: &Draft,
    found: &[Diagnostic],
    tools: &[Arc<ToolDecl>],
    lattice: &Lattice,
) -> Vec<(u32, String)> {
    let refused = |c: &Compiled| c.refusal.is_some();
    let report = draft.outcome.as_ref().is_ok_and(refused).then(|| draft.flow()).flatten();
    let sites = report.map_or_else(Vec::new, |report| report.sites);
    let said = |d: &Diagnostic| {
        let span = d.span.filter(|s| s.file == draft.file && d.level == Level::Error)?;
        let of = sites.iter().find_map(|site| {
            let own =
                flow::certain_refusal(site).filter(|own| own.span == d.span && own.message == d.message)?;
            // What the compiler knows of the call besides.
            let hints = d.help.iter().filter(|help| !own.help.contains(help));
            Some((site, hints.cloned().collect::<Vec<_>>()))
        });
        let text = match of {
            Some((site, hints)) => Refused { draft, site, tools, lattice }.describe(hints),
            None if d.help.is_empty() => d.message.clone(),
            None => format!("{} ({})", d.message, d.help.join("; ")),
        };
        Some((draft.line(span), text))
    };
    found.iter().filter_map(said).collect()
}

/// A call, or the answer, that is refused every time.
struct Refused<'a> {
    draft: &'a Draft,
    site: &'a Site,
    tools: &'a [Arc<ToolDecl>],
    lattice: &'a Lattice,
}

impl Refused<'_> {
    fn describe(&self, hints: Vec<String>) -> String {
        let what = match &self.site.sink {
            Sink::Tool(name) => format!("`{name}`"),
            other => other.describe(),
        };
        let broken = self.site.checks.iter().filter(|c| c.verdict != Verdict::Always);
        let never = broken.clone().find(|c| c.verdict == Verdict::Never);
        let Some(check) = never.or_else(|| broken.clone().next()) else {
            return format!("{what} is refused every time: end with what you have");
        };
        let from = self.sources(check);
        let why = match &check.what {
            Checked::Control => format!("{from} decides whether it is called"),
            Checked::Argument(name) => format!("its argument `{name}` comes from {from}"),
            Checked::Conversation | Checked::Value => format!("it comes from {from}"),
        };
        let mut ways = hints;
        ways.extend(self.ways(check));
        ways.push("end with what you have".into());
        format!("{what} is refused every time: {why}; {}", ways.join(", or "))
    }

    /// Where the label that breaks the bound comes from, with lines.
    fn sources(&self, check: &Check) -> String {
        let mut named: Vec<String> = Vec::new();
        for source in breaking(check) {
            let what = match &source.origin.cause {
                Cause::Tool(name) => format!("`{name}`"),
                _ => source.origin.describe(),
            };
            let said = match self.in_plan(source.origin.span) {
                Some(line) => format!("{what} in line {line}"),
                None => what,
            };
            if !named.contains(&said) {
                named.push(said);
            }
        }
        let rest = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        match (named.is_empty(), rest) {
            (true, _) => "data that the bound does not admit".into(),
            (_, 0) => named.join(" and "),
            (_, rest) => format!("{} and {rest} more", named.join(", ")),
        }
    }

    fn in_plan(&self, span: Span) -> Option<u32> {
        (span.file == self.draft.file).then(|| self.draft.line(span))
    }

    /// The ways around a refusal that a plan has.
    fn ways(&self, check: &Check) -> Vec<String> {
        let untrusted = breaking(check).any(|s| s.untrusted);
        if breaking(check).any(|s| s.secret) {
            // Nothing that a plan can do makes a value public.
            return vec!["leave out what is secret".into()];
        }
        match &check.what {
            Checked::Argument(name) => {
                let mut ways = vec!["take it from the request".to_string()];
                let known = self.known(name);
                if !known.is_empty() {
                    ways.push(format!("look it up with {}, which is trusted", known.join(" or ")));
                }
                if untrusted {
                    ways.push(format!(
                        "have a person confirm it before any condition that was read: `confirm({name}, \"why\")`"
                    ));
                }
                ways
            }
            Checked::Control => {
                vec!["call it outside of that condition".into(), "let what is trusted decide".into()]
            }
            Checked::Conversation | Checked::Value => {
                vec!["leave it out".into(), "have a person confirm it: `confirm(x, \"why\")`".into()]
            }
        }
    }

    /// Trusted tools that read and may give a value of the type of a parameter.
    fn known(&self, param: &Name) -> Vec<String> {
        let Sink::Tool(sink) = &self.site.sink else { return Vec::new() };
        let decl = self.tools.iter().find(|t| t.name == *sink);
        let Some(param) = decl.and_then(|t| t.params.iter().find(|p| p.name == *param)) else {
            return Vec::new();
        };
        let fits = |tool: &&Arc<ToolDecl>| {
            tool.effect == EffectClass::Read
                && matches!(trust(tool, self.lattice), Trust::Trusted { .. })
                && may_give(&tool.result, &param.ty, 0)
        };
        self.tools.iter().filter(fits).take(MAX_NAMED).map(|t| format!("`{}`", t.name)).collect()
    }
}

/// The sources of a check that break its bound; all of them if none does by itself.
fn breaking(check: &Check) -> impl Iterator<Item = &Source> {
    let any = check.sources.iter().any(|s| s.breaks);
    check.sources.iter().filter(move |s| s.breaks || !any)
}

/// Returns true if a value of a type, or a part of it, may be of another type.
fn may_give(result: &Type, wanted: &Type, depth: usize) -> bool {
    if depth > MAX_TYPE_DEPTH {
        return true;
    }
    let part = |ty: &Type| may_give(ty, wanted, depth + 1);
    match (result, wanted) {
        (_, Type::Option(inner) | Type::List(inner)) => may_give(result, inner, depth + 1),
        (_, Type::Refined(r)) => may_give(result, &r.0, depth + 1),
        (Type::List(inner) | Type::Option(inner), _) => part(inner),
        (Type::Refined(r), _) => part(&r.0),
        (Type::Record(fields), _) => fields.iter().any(|(_, ty)| part(ty)),
        (Type::Str | Type::Enum(_), Type::Str | Type::Enum(_))
        | (Type::Num, Type::Num)
        | (Type::Bool, Type::Bool)
        | (Type::Null, Type::Null) => true,
        (Type::Str | Type::Enum(_) | Type::Num | Type::Bool | Type::Null, other) => *other == Type::Dyn,
        // Anything may be in it.
        _ => true,
    }
}
