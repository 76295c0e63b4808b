//! `entail policy`: policy files to begin with, and what their rules say.

use super::check::programs_under;
use super::say_problem;
use crate::args::{PolicyAction, PolicyArgs};
use crate::ui::{Exit, Ui};
use core_ir::ToolDecl;
use diagnostics::Sources;
use policy::{Author, PolicyUse, RuleSource};
use serde_json::json;
use session::load::{Loaded, Options, Problem, load};
use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Runs the command.
pub fn policy(ui: &Ui, args: &PolicyArgs) -> Exit {
    match &args.action {
        PolicyAction::Init { file, output } => init(ui, file, output),
        PolicyAction::Explain { file, policy } => explain(ui, file, policy.as_deref()),
        PolicyAction::Check(args) => super::policy_check::check(ui, args),
    }
}

/// Shows who says each rule of a program's tools.
fn explain(ui: &Ui, file: &str, policy: Option<&Path>) -> Exit {
    let mut sources = Sources::new();
    let options = match super::options(ui, policy) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let is_directory = Path::new(file).is_dir();
    let mut rules: Vec<(RuleSource, String)> = Vec::new();
    let mut has_program = false;
    for path in programs_under(Path::new(file)) {
        let loaded = match load(&mut sources, &path.display().to_string(), &options) {
            Ok(loaded) => loaded,
            // In a directory, configurations of unknown formats are simply not programs.
            Err(Problem::Unreadable(..)) if is_directory => continue,
            Err(problem) => return say_problem(ui, &sources, problem),
        };
        has_program = true;
        let mut tools: Vec<Arc<ToolDecl>> = loaded.declared.clone();
        for tool in loaded.runnables.iter().flat_map(|r| &r.code.tools) {
            if !tools.iter().any(|t| t.name == tool.name) {
                tools.push(tool.clone());
            }
        }
        let said = loaded.policy.as_ref().map_or_else(Vec::new, |p| p.rules(&tools, &loaded.named));
        for rule in said {
            let place = sources.place(rule.span);
            // The policy file says the same of a tool in each program that has it.
            if !rules.iter().any(|(r, at)| (&r.tool, r.rule(), at) == (&rule.tool, rule.rule(), &place)) {
                rules.push((rule, place));
            }
        }
    }
    if !has_program {
        let help = "name the file of a program";
        return ui.usage(&format!("`{file}` holds no program of a known framework"), Some(help));
    }
    if ui.is_json() {
        let rules: Vec<serde_json::Value> = rules
            .iter()
            .map(|(r, place)| {
                let by = match r.author {
                    Author::File => "file",
                    Author::Program => "program",
                    Author::SetAside => "program, set aside",
                };
                json!({"tool": &*r.tool, "rule": r.rule(), "by": by, "at": place})
            })
            .collect();
        ui.result(&json!({ "rules": rules }).to_string());
        return Exit::Done;
    }
    let mut shown: Option<&str> = None;
    for (rule, place) in &rules {
        if shown != Some(&*rule.tool) {
            ui.result(&rule.tool);
            shown = Some(&rule.tool);
        }
        let by = match rule.author {
            Author::File => "the policy file",
            Author::Program => "the program",
            Author::SetAside => "the program, set aside for the policy file",
        };
        ui.result(&format!("  {}: {by}, {}", rule.rule(), place));
    }
    if rules.is_empty() {
        ui.note("no policy says anything of the tools");
    }
    Exit::Done
}

fn init(ui: &Ui, file: &str, output: &Path) -> Exit {
    let mut sources = Sources::new();
    // Without the policy that there may be: what is wanted is one that has everything.
    let options = match super::options(ui, None) {
        Ok(options) => Options { policy: None, undecided: true, ..options },
        Err(exit) => return exit,
    };
    let is_directory = Path::new(file).is_dir();
    let mut programs: Vec<Loaded> = Vec::new();
    for path in programs_under(Path::new(file)) {
        match load(&mut sources, &path.display().to_string(), &options) {
            Ok(loaded) => programs.push(loaded),
            // In a directory, configurations of unknown formats are simply not programs.
            Err(Problem::Unreadable(..)) if is_directory => {}
            Err(problem) => return say_problem(ui, &sources, problem),
        }
    }
    let uses: Vec<PolicyUse> = programs.iter().flat_map(|p| p.named.iter().cloned()).collect();
    // Entry points of one file share their tools. The order is that of the text.
    let mut tools: BTreeMap<(String, u32, &str), &ToolDecl> = BTreeMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for tool in programs.iter().flat_map(|p| &p.runnables).flat_map(|r| &r.code.tools) {
        let path = sources.get(tool.span.file).map_or(String::new(), |s| s.path.to_string());
        if seen.insert(&*tool.name) {
            tools.insert((path, tool.span.start, &tool.name), tool);
        }
    }
    let placed: Vec<(&ToolDecl, String)> = tools
        .into_iter()
        .map(|((path, start, _), tool)| match sources.get(tool.span.file) {
            Some(source) => (tool, format!("{path}:{}", source.line_column(start).line)),
            None => (tool, path),
        })
        .collect();
    if placed.is_empty() && uses.is_empty() {
        return ui
            .usage(&format!("`{file}` has no tools to describe"), Some("name a program that has tools"));
    }
    let named = named(&sources, &uses);
    let text = policy::starter(file, &placed, &named);
    let undecided = placed.iter().filter(|(t, _)| t.is_unspecified()).count();
    let shown = output.display();
    if output != Path::new("-") {
        // An existing file may contain decisions of its author.
        let written = std::fs::File::create_new(output).and_then(|mut f| f.write_all(text.as_bytes()));
        match written {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                let help = "choose another with `--output`; `--output -` shows what would be in it";
                return ui.usage(&format!("`{shown}` is there already"), Some(help));
            }
            Err(e) => return ui.cannot_write(shown, &e),
        }
    }
    if ui.is_json() {
        ui.result(
            &json!({
                "file": output, "tools": placed.len(), "undecided": undecided,
                "policies": named.iter().map(|(name, _)| name).collect::<Vec<_>>(), "policy": text,
            })
            .to_string(),
        );
        return Exit::Done;
    }
    if output == Path::new("-") {
        ui.result(text.trim_end());
        return Exit::Done;
    }
    let tools = super::plural(placed.len(), "tool");
    ui.result(&match undecided {
        0 => format!("wrote {shown}: {tools}, and the program says what they do"),
        n => format!("wrote {shown}: {tools}, {n} to complete"),
    });
    if !named.is_empty() {
        let names: Vec<String> = named.iter().map(|(name, _)| format!("`{name}`")).collect();
        ui.note(&format!("the program runs once the file defines {}", names.join(", ")));
    }
    if crate::setup::settings(ui).is_ok_and(|s| s.loading(None).policy.is_none()) {
        ui.note(&format!(
            "use it with `--policy {shown}`, or always with `policy = \"{shown}\"` in entail.toml"
        ));
    }
    Exit::Done
}

/// The policies that a program names, each with the places, in the order of the text.
fn named<'a>(sources: &Sources, uses: &'a [PolicyUse]) -> Vec<(&'a str, String)> {
    let mut out: Vec<(&str, String)> = Vec::new();
    for u in uses {
        let of = match &u.param {
            Some(param) => format!("`{param}` of `{}`", u.tool),
            None => format!("`{}`", u.tool),
        };
        let place = sources.get(u.span.file).map_or(of.clone(), |source| {
            format!("{of}, {}:{}", source.path, source.line_column(u.span.start).line)
        });
        match out.iter_mut().find(|(name, _)| *name == u.policy) {
            Some((_, places)) => places.push_str(&format!("; {place}")),
            None => out.push((&u.policy, place)),
        }
    }
    out
}
