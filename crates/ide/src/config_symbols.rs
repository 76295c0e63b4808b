//! Hover and completion in configurations and modules of Python.
//!
//! Entry points: [`hover`], [`completion`].

use crate::analysis::Language;
use crate::cross_file::{self, Text};
use crate::fields;
use crate::{Completion, CompletionKind};
use analysis::{cost, types};
use diagnostics::{FileId, Span};
use frontend_kit::doc::{Limits, Node};
use frontend_kit::{File, Project, Recognized};
use std::sync::Arc;

fn read(path: &str, text: &str) -> File {
    File::read(FileId(0), path, &Arc::from(text), &Limits::default())
}

/// Meaning of a name or a key at a place.
pub(crate) fn hover(path: &str, text: &str, offset: usize) -> Option<String> {
    if !matches!(Language::of(path), Language::Config | Language::Python) {
        return None;
    }
    let file = read(path, text);
    let inside = |s: Span| (s.start as usize..=s.end as usize).contains(&offset);
    if let Some(text) = agent(&file, text, offset) {
        return Some(text);
    }
    let mut left: Vec<Node<'_>> = file.documents.iter().map(|d| d.root()).collect();
    while let Some(node) = left.pop() {
        for e in node.entries().filter(|e| !e.merged) {
            if inside(e.key.span()) {
                return Some(format!("`{}`: {}", e.name(), fields::meaning(e.name())?));
            }
            if inside(e.value.span()) {
                left.push(e.value);
            }
        }
        left.extend(node.items().filter(|n| inside(n.span())));
    }
    None
}

/// The type, the effects and the bound of the agent or crew that is named at a place.
fn agent(file: &File, text: &str, offset: usize) -> Option<String> {
    let Recognized::Frontend(frontend) = frontends::recognize(file) else { return None };
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let (before, after) = text.split_at_checked(offset)?;
    let start =
        before.rfind(|c| !word(c)).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
    let end = offset + after.find(|c| !word(c)).unwrap_or(after.len());
    let name = text.get(start..end).filter(|n| !n.is_empty())?;
    let compiled = frontend.lower(&Project { files: vec![file.clone()], ..Project::default() }, 0);
    let unit = compiled
        .units
        .iter()
        .find(|u| u.name == name)
        .or_else(|| compiled.units.iter().find(|u| u.agents.iter().any(|a| a.name == name)))?;
    // The name of an agent within a larger unit is told from a word that happens to be the same.
    let declares = unit
        .agents
        .iter()
        .any(|a| a.name == name && (a.span.start as usize..=a.span.end as usize).contains(&offset));
    if unit.name != name && !declares {
        return None;
    }
    let typing = types::check(&unit.code, None);
    let bound = cost::bound(&unit.code, true);
    let calls = |i: cost::Interval, what: &str| match i.most {
        Some(most) => format!("at most {most} {what}"),
        None => format!("{what} without a bound"),
    };
    let whole = if unit.name == name { String::new() } else { format!(", in `{}`", unit.name) };
    Some(format!(
        "`{name}`{whole}: `{}`, effects `{}`\n\nA run makes {} and {}.",
        typing.ty,
        typing.effects,
        calls(bound.model_calls, "model calls"),
        calls(bound.tool_calls, "tool calls")
    ))
}

/// Completions at a place: names of agents where others are named, and keys where a key is written.
pub(crate) fn completion(
    path: &str,
    text: &str,
    offset: usize,
    files: impl FnOnce() -> Vec<Text>,
) -> Vec<Completion> {
    let before = text.get(..offset).unwrap_or("");
    let line = before.rsplit('\n').next().unwrap_or("");
    let names = |files: Vec<Text>| -> Vec<Completion> {
        let all = cross_file::declared(&files).into_iter();
        all.map(|n| Completion::new(n, CompletionKind::Agent)).collect()
    };
    if Language::of(path) == Language::Python {
        // Inside of a text.
        let quotes = |q: char| line.matches(q).count() % 2 == 1;
        return if quotes('"') || quotes('\'') { names(files()) } else { Vec::new() };
    }
    let written = line.trim_start().trim_start_matches("- ").trim_start();
    let indent = line.len() - line.trim_start().len();
    let key = match written.split_once(':') {
        Some((key, _)) => Some(key.trim_matches(['"', '\''])),
        // An item of a list names what the key above the list says.
        None if line.trim_start().starts_with('-') => {
            above(before, indent).filter(|k| fields::names_others(k))
        }
        None => None,
    };
    if let Some(key) = key {
        return if fields::names_others(key) { names(files()) } else { Vec::new() };
    }
    let file = read(path, text);
    // The edit in progress may break the file; then the last valid version is used.
    let format = match frontends::recognize(&file) {
        Recognized::Frontend(f) => Some(f),
        _ => {
            let start = offset - line.len();
            let end = offset + text.get(offset..).and_then(|t| t.find('\n')).unwrap_or(text.len() - offset);
            let without = format!("{}{}", text.get(..start).unwrap_or(""), text.get(end..).unwrap_or(""));
            match frontends::recognize(&read(path, &without)) {
                Recognized::Frontend(f) => Some(f),
                _ => None,
            }
        }
    };
    let mut keys = format.map_or_else(Vec::new, |f| f.fields());
    keys.sort_unstable();
    keys.dedup();
    let item = |key: &str| Completion {
        insert: Some(format!("{key}: ")),
        documentation: fields::meaning(key).map(String::from),
        ..Completion::new(key, CompletionKind::Field)
    };
    keys.into_iter().map(item).collect()
}

/// The key of the mapping entry that a line with this indentation belongs to.
fn above(before: &str, indent: usize) -> Option<&str> {
    let mut lines = before.lines().rev();
    lines.next();
    for line in lines {
        let trimmed = line.trim_start();
        if trimmed.is_empty() || trimmed.starts_with(['-', '#']) {
            continue;
        }
        if line.len() - trimmed.len() <= indent {
            return trimmed.split_once(':').map(|(key, _)| key.trim());
        }
    }
    None
}
