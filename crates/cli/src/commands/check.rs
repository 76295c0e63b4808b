//! `entail check`: what a program entails, without running it.

use super::cost::figures;
use super::{say_problem, worth_saying};
use crate::args::{CheckArgs, Show};
use crate::load::{Kind, Loaded, Problem, Runnable, files_under, load};
use crate::policy;
use crate::ui::{Exit, Ui};
use check::{cost, flow, types};
use diagnostics::{Sources, has_errors};
use frontend::File;
use frontend::policy::Policy;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn check(ui: &Ui, args: &CheckArgs) -> Exit {
    if args.equiv {
        return super::equiv::equiv(ui, &args.paths);
    }
    let mut exit = Exit::Done;
    let mut programs = 0;
    let options = match super::options(ui, args.policy.as_deref()) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    for path in &args.paths {
        let shown = path.display().to_string();
        if shown != "-" && !path.exists() {
            return ui.usage(&format!("cannot read `{shown}`: no such file"), None);
        }
        let is_directory = path.is_dir();
        for file in programs_under(path) {
            let mut sources = Sources::new();
            let name = file.display().to_string();
            match load(&mut sources, &name, &options) {
                // In a directory, configurations of unknown formats are simply not programs.
                Err(Problem::Unreadable(..)) if is_directory => continue,
                Err(problem) => {
                    programs += 1;
                    exit = worse(exit, say_problem(ui, &sources, problem));
                }
                Ok(Loaded { runnables, found, policy }) => {
                    programs += 1;
                    if has_errors(&found) {
                        exit = worse(exit, Exit::Failed);
                    }
                    ui.findings(&sources, &worth_saying(ui, found));
                    for r in &runnables {
                        exit = worse(exit, entry(ui, &sources, &name, r, &args.show, policy.as_ref()));
                    }
                }
            }
        }
    }
    if programs == 0 {
        let help = "programs end in `.agent` or `.lam`; configurations are recognised by their content";
        return ui.usage("nothing to check there", Some(help));
    }
    exit
}

/// Shows one entry point: one object, or some lines; what is wrong with its flows comes first.
fn entry(
    ui: &Ui,
    sources: &Sources,
    path: &str,
    r: &Runnable,
    show: &[Show],
    policy: Option<&Policy>,
) -> Exit {
    let mut exit = Exit::Done;
    let mut object =
        json!({"path": path, "entry": r.name, "input": r.input.as_ref().map(ToString::to_string)});
    let mut lines = Vec::new();
    let input = r.input.as_ref().map_or(String::new(), |t| format!(" of {t}"));
    lines.push(format!("{path}: {}{input}", r.name));
    let mut add = |more: Value| {
        if let (Some(o), Value::Object(more)) = (object.as_object_mut(), more) {
            o.extend(more);
        }
    };
    let typing = types::check(&r.code, r.input.as_ref());
    if has_errors(&typing.diagnostics) {
        exit = Exit::Failed;
    }
    ui.findings(sources, &worth_saying(ui, typing.diagnostics));
    if show.contains(&Show::Types) {
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
            lines.push(format!(
                "  decided when it runs: {} ({shown}{more})",
                super::plural(open.len(), "use")
            ));
        }
        add(json!({"type": ty.to_string(), "dynamic": open, "complete": typing.complete}));
    }
    if show.contains(&Show::Effects) {
        lines.push(format!("  effects: {}", typing.effects));
        add(json!({"effects": typing.effects.to_string()}));
    }
    if show.contains(&Show::Cost) {
        let bound = cost::bound(&r.code, r.input.is_some());
        add(figures(&bound, sources));
        lines.push(format!("  model calls: {}", bound.model_calls));
        lines.push(format!("  tool calls: {}", bound.tool_calls));
        for (span, why) in &bound.unbounded {
            lines.push(format!("  at {}: {why}", sources.place(*span)));
        }
    }
    if show.contains(&Show::Flow) {
        let options = policy::options(policy, None, r.input.is_some());
        let report = flow::analyse(&r.code, &options);
        let found = worth_saying(ui, flow::findings(&report));
        if has_errors(&found) {
            exit = Exit::Failed;
        }
        ui.findings(sources, &found);
        add(json!({"flow": flow::to_json(&report, sources)}));
        lines.extend(flow::to_text(&report, sources).into_iter().map(|line| format!("  {line}")));
    }
    if ui.is_json() {
        ui.result(&object.to_string());
    } else {
        for line in &lines {
            ui.result(line);
        }
    }
    exit
}

fn worse(a: Exit, b: Exit) -> Exit {
    match (a, b) {
        (Exit::Usage, _) | (_, Exit::Usage) => Exit::Usage,
        (Exit::Failed, _) | (_, Exit::Failed) => Exit::Failed,
        _ => Exit::Done,
    }
}

/// The file itself, or the programs and configurations in a directory, in a stable order.
fn programs_under(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    files_under(path, |p| Kind::of(p) != Kind::Config || File::is_read(p))
}
