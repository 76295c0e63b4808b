//! `entail audit`: attack paths of a project, without a word of its user.

use super::plural;
use crate::args::{AuditArgs, Format};
use crate::ui::{Exit, Ui};
use diagnostics::report::{Report, RuleInfo};
use diagnostics::{Diagnostic, Level};
use serde_json::{Value, json};
use session::audit::{Audit, AuditedProgram, AuditedTool, PathKind, Step, codes};
use std::io::Write as _;
use std::path::Path;

/// Runs the command.
pub fn audit(ui: &Ui, args: &AuditArgs) -> Exit {
    let audit = match session::audit::of(&args.paths) {
        Ok(audit) => audit,
        Err(e) => return crate::setup::refuse(ui, e),
    };
    #[cfg(feature = "mcp")]
    let audit = match args.ask_servers.then(|| super::audit_servers::offers(ui, &audit)) {
        None => audit,
        Some(Err(exit)) => return exit,
        Some(Ok(offers)) => match session::audit::with_offers(&args.paths, offers) {
            Ok(audit) => audit,
            Err(e) => return crate::setup::refuse(ui, e),
        },
    };
    if let Some(output) = &args.policy_out
        && let Err(exit) = write_policy(ui, &audit, output)
    {
        return exit;
    }
    let mut found = audit.findings();
    if !ui.args.verbose && !ui.is_json() {
        found.retain(|d| d.level > Level::Info);
    }
    match ui.args.format {
        Format::Sarif | Format::Github | Format::Markdown => {
            let mut report = Report::default();
            report.add(&audit.sources, &found);
            let rules = codes::EXPLANATIONS.iter();
            let rules: Vec<RuleInfo> = rules
                .map(|e| RuleInfo { code: e.code, name: e.title, summary: e.title, text: e.text })
                .collect();
            match ui.args.format {
                Format::Sarif => ui.result(&report.sarif(env!("CARGO_PKG_VERSION"), &rules).to_string()),
                Format::Github => ui.result(report.github().trim_end()),
                _ => ui.result(report.markdown().trim_end()),
            }
        }
        Format::Json => {
            ui.findings(&audit.sources, &found);
            ui.result(&object(&audit).to_string());
        }
        Format::Mermaid => ui.result(audit.picture().mermaid().trim_end()),
        Format::Dot => ui.result(audit.picture().dot().trim_end()),
        Format::Svg => match entries::picture::svg(&audit.picture()) {
            Ok(image) => ui.result(image.trim_end()),
            Err(why) => return ui.usage(&why, None),
        },
        _ => text(ui, &audit, &found),
    }
    if found.iter().any(|d| d.level == Level::Error) { Exit::Failed } else { Exit::Done }
}

/// Writes the policy file, which must not be there yet: it may hold decisions of its author.
fn write_policy(ui: &Ui, audit: &Audit, output: &Path) -> Result<(), Exit> {
    let text = audit.policy();
    let shown = output.display();
    let written = std::fs::File::create_new(output).and_then(|mut f| f.write_all(text.as_bytes()));
    match written {
        Ok(()) => {
            ui.note(&format!("wrote {shown}; read it, then use it with `--policy {shown}`"));
            Ok(())
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(ui.usage(&format!("`{shown}` is there already"), Some("choose another file")))
        }
        Err(e) => Err(ui.cannot_write(shown, &e)),
    }
}

fn text(ui: &Ui, audit: &Audit, found: &[Diagnostic]) {
    let (unknown, paths): (Vec<Diagnostic>, Vec<Diagnostic>) =
        found.iter().cloned().partition(|d| d.code == codes::UNKNOWN);
    ui.findings(&audit.sources, &paths);
    if ui.args.verbose {
        ui.findings(&audit.sources, &unknown);
        for tool in audit.tools() {
            ui.result(&described(audit, tool));
        }
    }
    if ui.args.verbose {
        for (program, (what, span)) in
            audit.programs.iter().flat_map(|p| p.unread.iter().map(move |u| (p, u)))
        {
            ui.result(&format!("{}: not read of `{}`: {what}", audit.sources.place(*span), program.name));
        }
    }
    let mut line = match audit.programs.is_empty() {
        true if audit.plain_modules > 0 => {
            let modules = plural(audit.plain_modules, "module");
            format!("0 attack paths in {modules} with calls of models and no known framework")
        }
        true => "no program of a known framework and no list of MCP servers: nothing was audited".to_string(),
        false => audit.summary(&paths),
    };
    if audit.programs.iter().any(|p| !p.unread.is_empty()) {
        line.push_str(" (--verbose)");
    }
    for (name, files) in &audit.not_read {
        let use_it = if *files == 1 { "uses" } else { "use" };
        line.push_str(&format!("; {} {use_it} {name}, which is not read", plural(*files, "file")));
    }
    ui.result(&line);
}

/// Describes what is known of a tool in a line.
fn described(audit: &Audit, tool: &AuditedTool) -> String {
    let facts: Vec<String> = tool
        .facts
        .facts
        .iter()
        .map(|f| format!("{} ({})", f.effect.describe(), f.evidence.describe(&audit.sources)))
        .collect();
    let what = match (&facts[..], tool.declared) {
        ([], true) => "declared by the program".to_string(),
        ([], false) => tool.facts.knowledge.as_str().to_string(),
        _ => facts.join("; "),
    };
    format!("{}: `{}`: {what}", audit.sources.place(tool.span), diagnostics::clip(&tool.name))
}

/// The result as one object.
fn object(audit: &Audit) -> Value {
    let step = |s: &Step| {
        json!({
            "name": s.name, "tools": s.tools, "params": s.params, "agent": s.agent,
            "place": audit.sources.place(s.span), "effect": s.fact.effect.as_str(),
            "confidence": s.fact.confidence.as_str(), "evidence": s.fact.evidence.describe(&audit.sources),
        })
    };
    let kind = |k: PathKind| match k {
        PathKind::Runs => "runs",
        PathKind::Leaks => "leaks",
        PathKind::Acts => "acts",
    };
    let program = |p: &AuditedProgram| {
        let paths = p.paths.iter().map(|path| {
            json!({
                "kind": kind(path.kind), "source": step(&path.source), "private": path.private.as_ref().map(step),
                "sink": step(&path.sink), "models": path.models.iter().map(|at| audit.sources.place(*at)).collect::<Vec<_>>(),
                "test": path.test.map(|at| audit.sources.place(at)), "confidence": path.confidence().as_str(), "userIsAsked": path.asked,
            })
        });
        let tools = p.tools.iter().map(|t| {
            let facts = t.facts.facts.iter().map(|f| {
                json!({
                    "effect": f.effect.as_str(), "confidence": f.confidence.as_str(), "kind": f.evidence.kind(),
                    "evidence": f.evidence.describe(&audit.sources),
                })
            });
            json!({
                "name": t.name, "place": audit.sources.place(t.span), "server": t.server, "approved": t.approved,
                "declared": t.declared, "knowledge": t.facts.knowledge.as_str(), "facts": facts.collect::<Vec<_>>(),
            })
        });
        json!({
            "path": audit.sources.get(p.file).map(|s| &s.path), "framework": p.framework, "name": p.name,
            "paths": paths.collect::<Vec<_>>(), "morePaths": p.more_paths, "tools": tools.collect::<Vec<_>>(), "approved": p.approved,
            "gaveUp": p.gave_up.map(|(span, why)| json!({"place": audit.sources.place(span), "why": why})),
            "unread": p.unread.iter().map(|(what, span)| json!({"place": audit.sources.place(*span), "what": what})).collect::<Vec<_>>(),
        })
    };
    let programs: Vec<Value> = audit.programs.iter().map(program).collect();
    json!({"audit": {"programs": programs, "notRead": audit.not_read}})
}
