//! `entail fmt`: `.agent` and `.lam` files in one style.
//!
//! Invariant: a file is replaced as a whole or not at all, and only by text that reads as the same program.

use crate::args::FmtArgs;
use crate::commands::say_problem;
use crate::ui::{Exit, Ui};
use diagnostics::{Diagnostic, Sources};
use serde_json::json;
use session::load::{Kind, Problem, files_under, read_text, replace_file};
use std::path::{Path, PathBuf};
use syntax::format;

/// Numbers of files by result.
#[derive(Default)]
struct Count {
    same: usize,
    changed: usize,
    wrong: usize,
}

/// Runs the command.
pub fn fmt(ui: &Ui, args: &FmtArgs) -> Exit {
    if args.paths.iter().any(|p| p.as_os_str() == "-") {
        if args.paths.len() > 1 {
            return ui.usage(
                "`-` cannot be combined with other files: it formats standard input to standard output",
                None,
            );
        }
        return standard_input(ui, args);
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for path in &args.paths {
        let shown = path.display().to_string();
        if path.is_dir() {
            files.extend(files_under(path, |p| matches!(Kind::of(p), Kind::Agent | Kind::Lam)));
        } else if !path.exists() {
            return ui.usage(&format!("cannot read `{shown}`: no such file"), None);
        } else if Kind::of(&shown) == Kind::Plan {
            let help = "it is Python: a formatter of Python, such as `ruff format`, formats it";
            return ui.usage(&format!("`{shown}` is a plan"), Some(help));
        } else if Kind::of(&shown) == Kind::Config {
            let help = "`.agent` and `.lam` files are formatted";
            return ui.usage(&format!("`{shown}` is not a program"), Some(help));
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    if files.is_empty() {
        return ui.usage("nothing to format there", Some("`.agent` and `.lam` files are formatted"));
    }
    let mut count = Count::default();
    for file in &files {
        if let Err(exit) = one(ui, args, file, &mut count) {
            return exit;
        }
    }
    if !ui.is_json() {
        ui.note(&summary(&count, args.check || args.diff));
    }
    let found = count.wrong > 0 || (args.check && count.changed > 0);
    if found { Exit::Failed } else { Exit::Done }
}

fn one(ui: &Ui, args: &FmtArgs, file: &Path, count: &mut Count) -> Result<(), Exit> {
    let path = file.display().to_string();
    let mut sources = Sources::new();
    let formatted = match formatted(&mut sources, &path, Kind::of(&path)) {
        Ok(found) => found,
        Err(problem @ Problem::Unreadable(..)) => return Err(say_problem(ui, &sources, problem)),
        Err(problem) => {
            say_problem(ui, &sources, problem);
            count.wrong += 1;
            return Ok(());
        }
    };
    let (before, after) = formatted;
    let changed = before != after;
    if !changed {
        count.same += 1;
        return Ok(());
    }
    count.changed += 1;
    if !(args.check || args.diff) {
        replace_file(file, &after).map_err(|e| ui.cannot_write(&path, &e))?;
    }
    if ui.is_json() {
        let mut line = json!({"path": path, "changed": true, "written": !(args.check || args.diff)});
        if let (true, Some(o)) = (args.diff, line.as_object_mut()) {
            o.insert("diff".into(), ui.diff(&path, &before, &after).into());
        }
        ui.result(&line.to_string());
    } else if args.diff || (args.check && ui.args.verbose) {
        ui.result(&ui.diff(&path, &before, &after));
    } else if args.check || ui.args.verbose {
        ui.result(&path);
    }
    Ok(())
}

/// The text of a file as it is and as it should be.
fn formatted(sources: &mut Sources, path: &str, kind: Kind) -> Result<(String, String), Problem> {
    let (id, text) = read_text(sources, path)?;
    let format = match kind {
        Kind::Lam => format::lam,
        _ => format::agent,
    };
    format(id, &text).map(|after| (text.to_string(), after)).map_err(Problem::Wrong)
}

fn standard_input(ui: &Ui, args: &FmtArgs) -> Exit {
    let mut sources = Sources::new();
    let (id, text) = match read_text(&mut sources, "-") {
        Ok(read) => read,
        Err(problem) => return say_problem(ui, &sources, problem),
    };
    let formatted = match args.stdin_path.as_deref().map(Kind::of) {
        Some(Kind::Lam) => format::lam(id, &text),
        Some(Kind::Agent) => format::agent(id, &text),
        Some(Kind::Config | Kind::Plan) => {
            return ui.usage("`--stdin-path` names no program", Some("it ends in `.agent` or `.lam`"));
        }
        None => either(id, &text),
    };
    let after = match formatted {
        Ok(after) => after,
        Err(found) => return say_problem(ui, &sources, Problem::Wrong(found)),
    };
    let changed = *text != *after;
    if args.diff {
        ui.result(&ui.diff("<stdin>", &text, &after));
    } else if args.check {
        if changed {
            ui.result("<stdin>");
        }
    } else if ui.is_json() {
        ui.result(&json!({"path": "-", "changed": changed, "formatted": after}).to_string());
    } else {
        ui.result(after.trim_end_matches('\n'));
    }
    if args.check && changed { Exit::Failed } else { Exit::Done }
}

/// A program in the language that it can be read in; what is wrong is said for the likelier one.
fn either(id: diagnostics::FileId, text: &str) -> Result<String, Vec<Diagnostic>> {
    let agent = format::agent(id, text);
    if agent.is_ok() {
        return agent;
    }
    let lam = format::lam(id, text);
    let fewer = |a: &[Diagnostic], b: &[Diagnostic]| a.len() <= b.len();
    match (agent, lam) {
        (_, Ok(text)) => Ok(text),
        (Err(a), Err(b)) => Err(if fewer(&a, &b) { a } else { b }),
        (agent, _) => agent,
    }
}

fn summary(count: &Count, dry: bool) -> String {
    let files = |n: usize| format!("{n} file{}", if n == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    if count.changed > 0 {
        parts.push(format!("{} {}", files(count.changed), if dry { "would change" } else { "formatted" }));
    }
    if count.same > 0 {
        parts.push(format!(
            "{} left as {}",
            files(count.same),
            if count.same == 1 { "it is" } else { "they are" }
        ));
    }
    if count.wrong > 0 {
        parts.push(format!("{} with errors not touched", files(count.wrong)));
    }
    parts.join(", ")
}
