//! Reports of the flow analysis, for people and for programs.

use super::codes;
use super::{Cause, Check, Checked, CoveredPart, FlowReport, IdleSet, Sink, Site, Source, Verdict};
use diagnostics::{Diagnostic, Level, Sources, Span, toml_key};
use serde_json::{Value, json};

/// Decision about how often a tool is called.
const AT_MOST: &str = "the number of calls of a run (`at_most`)";

/// More sources than this are not listed in one finding.
const MAX_SOURCES: usize = 6;

/// Returns the diagnostics of a report in the order of their places.
pub fn findings(report: &FlowReport) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    if let Some((span, why)) = report.gave_up {
        let message = format!("the flow analysis gave up here: {why}");
        out.push(
            Diagnostic::new(Level::Unknown, codes::GAVE_UP, message, span)
                .help("nothing is claimed about this program; the run is checked all the same"),
        );
        return out;
    }
    for site in &report.sites {
        out.extend(refusal(site));
        out.extend(trifecta(site));
    }
    for r in &report.reclassifications {
        if !r.lowers {
            let message = "this lowers no label: whatever comes here has at most the label that it is given";
            out.push(Diagnostic::warn(codes::UNNECESSARY, message, r.span).help("remove it"));
        } else if !r.shows {
            let message = "this has no effect: whether it is carried out depends on what it is to lower";
            out.push(
                Diagnostic::warn(codes::INERT, message, r.span)
                    .help("reclassify the value before it decides anything"),
            );
        }
    }
    out.extend(policy_warnings(report));
    for p in &report.passed {
        let message = format!("an error labeled {} may pass this `try`", p.lacks.to_json());
        let d = Diagnostic::info(codes::PASSED, message, p.span)
            .help(format!("add {} to the label of the `try`", p.lacks.to_json()));
        out.push(remarks(d, &p.sources));
    }
    diagnostics::sort(&mut out);
    out
}

/// Rules of a policy that have no effect on a program: sets that admit nothing, and labels of parts that
/// change nothing. Their places are those of the tools.
pub fn policy_warnings(report: &FlowReport) -> Vec<Diagnostic> {
    let sets = report.idle_sets.iter().map(|set| set.finding(set.span));
    sets.chain(report.covered.iter().map(|part| part.finding(part.span))).collect()
}

impl IdleSet {
    /// The finding, at this place.
    pub fn finding(&self, at: Span) -> Diagnostic {
        let (tool, param) = (&self.tool, &self.param);
        let why = match &self.labels {
            Some((label, bound)) => {
                format!("it is labeled {}, and {} is the bound", label.to_json(), bound.to_json())
            }
            None => "it can't be read before the first step".into(),
        };
        let message = format!("a set of the parameter `{param}` of `{tool}` admits nothing: {why}");
        Diagnostic::warn(codes::IDLE_SET, message, at)
            .help("read the set from a tool whose result is trusted and public, or remove it from `among`")
    }
}

impl CoveredPart {
    /// The finding, at this place.
    pub fn finding(&self, at: Span) -> Diagnostic {
        let (tool, path, (own, whole)) = (&self.tool, &self.path, &self.labels);
        let message = format!(
            "the label {} of `{path}` in the result of `{tool}` has no effect: what it is in is labeled {}",
            own.to_json(),
            whole.to_json()
        );
        Diagnostic::warn(codes::COVERED, message, at).help(
            "label the result as a whole `trusted` if nobody else can add to it, or remove the label of the part",
        )
    }
}

/// The finding for a site that is refused every time; nothing for others.
pub fn certain_refusal(site: &Site) -> Option<Diagnostic> {
    refusal(site).filter(|_| site.verdict == Verdict::Never)
}

/// The finding for a site that is refused, every time or perhaps; nothing for one that is always admitted.
pub fn refusal(site: &Site) -> Option<Diagnostic> {
    (site.verdict != Verdict::Always).then(|| refused(site, site.verdict))
}

fn remarks(mut d: Diagnostic, sources: &[Source]) -> Diagnostic {
    for s in sources.iter().take(MAX_SOURCES) {
        let text = format!("{}, labeled {}", s.origin.describe(), s.label.to_json());
        d = d.remark(s.origin.span, text);
    }
    d
}

/// A call that is refused always, or perhaps.
fn refused(site: &Site, verdict: Verdict) -> Diagnostic {
    let broken: Vec<&Check> = site.checks.iter().filter(|c| c.verdict != Verdict::Always).collect();
    // One that is refused for sure says more than one that may be.
    let check = broken.iter().find(|c| c.verdict == Verdict::Never).or(broken.first());
    let (level, code) = match verdict {
        Verdict::Never => (Level::Error, codes::NEVER),
        _ => (Level::Info, codes::DEPENDS),
    };
    let what = site.sink.describe();
    let Some(check) = check else {
        let limit = if site.at_most.is_some() { AT_MOST } else { "its bounds" };
        let by = site.asks.unwrap_or(limit);
        return Diagnostic::new(level, code, format!("{what} may be refused here by {by}"), site.span);
    };
    let (most, bound) = (check.most.to_json(), check.bound.to_json());
    let how = if verdict == Verdict::Never { "is refused every time" } else { "may be refused" };
    let message = match &check.what {
        Checked::Control => {
            format!("{what} {how}: whether this is reached depends on {most}, and {bound} is the bound")
        }
        Checked::Value if site.sink == Sink::Answer => {
            format!("{what} {how}: it may be labeled {most}, and {bound} is the bound")
        }
        constant if check.constant => format!(
            "{what} {how}: {} is a constant, but what decides that this is reached is labeled {most}, and {bound} \
             is the bound",
            constant.describe()
        ),
        other => {
            format!("{what} {how}: {} may be labeled {most}, and {bound} is the bound", other.describe())
        }
    };
    let breaking: Vec<Source> = check.sources.iter().filter(|s| s.breaks).cloned().collect();
    let d = remarks(Diagnostic::new(level, code, message, site.span), &breaking);
    match site.sink.name().filter(|_| site.unknown) {
        Some(tool) => d.help(of_unknown(tool)),
        None => d.help(remedy(site, check, &breaking)),
    }
}

/// The remedy for a tool that is not said to do less than change the world, by a program that says so or
/// because nothing is said.
pub fn of_unknown(tool: &str) -> String {
    let key = toml_key(tool);
    let lines = format!("[tools.{key}]\neffect = \"read\"");
    let asked = format!("[tools.{key}]\neffect = \"write\"\napprove = true");
    format!(
        "no policy says what `{tool}` does, so it is assumed to change the world: untrusted data must not decide \
         such a call, and results of tools are untrusted. If it only looks things up, say so in a policy file \
         (`--policy FILE`; `entail policy init` writes one for all tools of a program):\n\n{lines}\n\nif it changes \
         the world, let a person allow each call:\n\n{asked}"
    )
}

fn remedy(site: &Site, check: &Check, breaking: &[Source]) -> String {
    let untrusted = breaking.iter().any(|s| s.untrusted);
    let secret = breaking.iter().any(|s| s.secret);
    if !breaking.is_empty() && breaking.iter().all(|s| s.origin.cause == Cause::Try) {
        return format!(
            "an error has the labels of all parts of the result that was asked for: call it without `try` and \
             `retries`, or give no part of that result a label above the result as a whole, or give {} a higher \
             bound in the policy",
            site.sink.describe()
        );
    }
    if let (Checked::Argument(name), true, true) = (&check.what, check.constant, untrusted && !secret) {
        return format!(
            "make the call where nothing untrusted decides, or let untrusted data choose among fixed values: a set \
             (`among`) of the parameter `{name}`, such as `principals.NAME.email`, has the constant"
        );
    }
    let how = match (untrusted, secret) {
        (true, false) => {
            "read it as a typed answer in a conversation of its own, have it endorsed by a person or a check"
        }
        (false, true) => "keep it out, or declassify what may be known",
        _ => "keep the two apart",
    };
    match &check.what {
        Checked::Control | Checked::Argument(_) => {
            let which = match &check.what {
                Checked::Argument(name) => format!("the parameter `{name}`"),
                _ => "the control bound".into(),
            };
            format!("{how}, or give {which} of {} a higher bound in the policy", site.sink.describe())
        }
        Checked::Conversation => {
            format!("{how}, or give {} a higher clearance in the policy", site.sink.describe())
        }
        Checked::Value if site.sink == Sink::Answer => {
            format!("{how}, or raise `bound` under `[output]` of the policy")
        }
        Checked::Value => format!("{how}, or declare {} at a higher label", site.sink.describe()),
    }
}

/// Untrusted input, private data and an outward channel.
fn trifecta(site: &Site) -> Option<Diagnostic> {
    // A sink that is always refused sends nothing.
    if !site.outward || site.verdict == Verdict::Never {
        return None;
    }
    let all: Vec<&Source> =
        site.checks.iter().flat_map(|c| &c.sources).filter(|s| s.origin.is_data()).collect();
    let untrusted = all.iter().find(|s| s.untrusted)?;
    let secret = all
        .iter()
        .find(|s| s.secret && s.origin != untrusted.origin)
        .or_else(|| all.iter().find(|s| s.secret))?;
    let stopped = match site.verdict {
        Verdict::Always => "and its bounds let it happen",
        _ => "and only the check at run time is in between",
    };
    let message = format!(
        "untrusted input and private data come together in {}, which can be seen from outside, {stopped}",
        site.sink.describe()
    );
    Some(
        Diagnostic::warn(codes::TRIFECTA, message, site.span)
            .label("the outward channel")
            .remark(untrusted.origin.span, format!("the untrusted input: {}", untrusted.origin.describe()))
            .remark(secret.origin.span, format!("the private data: {}", secret.origin.describe()))
            .help("take one of the three away: read the untrusted part in quarantine, keep the private part out, or bound the channel"),
    )
}

/// Lines for people: each sink with its verdict, and what it depends on.
pub fn to_text(report: &FlowReport, sources: &Sources) -> Vec<String> {
    let mut out = Vec::new();
    if let Some((span, why)) = report.gave_up {
        out.push(format!("flow: unknown; the analysis gave up at {}: {why}", sources.place(span)));
        return out;
    }
    for site in &report.sites {
        let verdict = match site.verdict {
            Verdict::Always => "always allowed",
            Verdict::Never => "never allowed",
            Verdict::Depends => "depends",
        };
        let input = match site.checks.iter().any(|c| c.rests_on_input) {
            true if site.verdict == Verdict::Always => ", the input being public and trusted",
            _ => "",
        };
        out.push(format!("{}: {}: {verdict}{input}", sources.place(site.span), site.sink.describe()));
        if let Some(who) = site.asks {
            out.push(format!("  {who} decides as well"));
        }
        for choice in site.chosen.iter().filter(|_| site.verdict != Verdict::Never) {
            out.push(format!("  {}", choice.describe()));
        }
        // If all models are refused, the first one represents them.
        for (model, clearance) in site.passed_over.iter().filter(|_| site.verdict != Verdict::Never) {
            let most = clearance.to_json();
            out.push(format!("  `{model}` of its chain is asked only with what is labeled {most} at most"));
        }
        for check in site.checks.iter().filter(|c| c.verdict != Verdict::Always) {
            out.push(format!(
                "  {}: up to {}, bound {}",
                check.what.describe(),
                check.most.to_json(),
                check.bound.to_json()
            ));
            for s in check.sources.iter().filter(|s| s.breaks).take(MAX_SOURCES) {
                out.push(format!("    {} at {}", with_label(s), sources.place(s.origin.span)));
            }
        }
    }
    // A report without a line would say that nothing is called.
    for (span, what) in report.unknown.iter().filter(|_| report.sites.is_empty()) {
        let place = sources.place(*span);
        out.push(format!("{place}: not known before the run: {what}; what follows is not analyzed"));
    }
    if let Some(label) = report.result.as_ref().filter(|l| l.to_json() != json!([])) {
        out.push(format!("result: up to {}", label.to_json()));
    }
    out
}

fn with_label(s: &Source) -> String {
    format!("{}: {}", s.label.to_json(), s.origin.describe())
}

/// A site as an object, as the report has it.
pub fn site_json(site: &Site, sources: &Sources) -> Value {
    let source = |s: &Source| {
        json!({
            "place": sources.place(s.origin.span), "what": s.origin.describe(), "label": s.label.to_json(),
            "breaks": s.breaks,
        })
    };
    let check = |c: &Check| {
        json!({
            "what": c.what.describe(), "most": c.most.to_json(), "bound": c.bound.to_json(),
            "verdict": c.verdict.as_str(), "restsOnInput": c.rests_on_input, "sources": c.sources.iter().map(source).collect::<Vec<_>>(),
        })
    };
    let passed_over = site
        .passed_over
        .iter()
        .map(|(model, clearance)| json!({"model": &**model, "clearance": clearance.to_json()}));
    json!({
        "place": sources.place(site.span), "sink": site.sink.kind(), "name": site.sink.name(),
        "verdict": site.verdict.as_str(), "asks": site.asks, "passedOver": passed_over.collect::<Vec<_>>(),
        "chosen": site.chosen.iter().map(|c| json!({"param": c.param.as_deref(), "what": c.describe()})).collect::<Vec<_>>(),
        "checks": site.checks.iter().map(check).collect::<Vec<_>>(),
    })
}

/// The report as one object: the contract of `entail check --show flow --format json`.
pub fn to_json(report: &FlowReport, sources: &Sources) -> Value {
    json!({
        "sites": report.sites.iter().map(|s| site_json(s, sources)).collect::<Vec<_>>(),
        "result": report.result.as_ref().map(core_ir::Data::to_json),
        "error": report.error.as_ref().map(core_ir::Data::to_json),
        "gaveUp": report.gave_up.map(|(span, why)| json!({"place": sources.place(span), "why": why})),
    })
}
