//! Findings, and what each entry point entails.

use crate::Document;
use crate::places::Places;
use analysis::cost::{self, Prices};
use core_ir::{Code, ModelRoutes, Style, print_with};
use diagnostics::{Applicability, Diagnostic, FileId, Sources, Span, render};
use entries::bound::path as path_of;
use entries::check::{Aspect, entry};
use entries::{Runnable, picture as pictures};
use frontend_kit::Versions;
use ide::{Programs, Workspace};
use policy::Policy;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Surroundings of a document of the page: its policy file.
struct Around {
    policy: Option<String>,
}

impl ide::Host for Around {
    fn resolve(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn read(&self, _: &Path) -> Option<Arc<str>> {
        None
    }

    fn options(&self, _: &Path) -> Result<ide::Options, String> {
        // What is wrong with it is a finding in the policy file.
        let policy = self.policy.as_deref().map(|text| (POLICY, text.into()));
        Ok(ide::Options { policy, ..ide::Options::default() })
    }

    fn units(&self, _: &Path) -> Result<Vec<frontend_kit::Unit>, String> {
        Err("the playground has one file".into())
    }
}

/// The document itself, and its policy file.
const MAIN: FileId = FileId(0);
const POLICY: FileId = FileId(1);

/// The document in a workspace of its own.
pub(crate) fn workspace(document: &Document) -> Workspace {
    let around = Around { policy: document.policy.clone() };
    let mut workspace = Workspace::new(Box::new(around));
    workspace.open(&document.path, document.text.as_str().into());
    workspace
}

/// The programs of a document, with the findings of its policy file.
pub(crate) fn programs(document: &Document) -> Programs {
    // INVARIANT: the workspace has the document.
    let mut programs = workspace(document).programs(&document.path).unwrap_or_default();
    if let Some(text) = &document.policy {
        let file = programs.sources.add("policy.toml", text.as_str());
        // With a block of the program it is read together with it.
        if programs.policy.is_none()
            && let Err(wrong) = Policy::parse(file, text)
        {
            programs.found.extend(wrong);
        }
    }
    programs
}

/// Answers `check`.
pub(crate) fn check(document: &Document) -> Value {
    let programs = programs(document);
    let Programs { sources, mut found, entries, policy } = programs;
    let places = [Places::of(&document.text), Places::of(document.policy.as_deref().unwrap_or(""))];
    let routes = ModelRoutes::default();
    let prices = Prices::standard();
    let path = RefCell::new(Value::Null);
    let bound = |code: &Arc<Code>, applied: bool| {
        let bound = cost::bound_with(code, applied, prices, &routes);
        path.replace(path_of(&bound, &sources));
        bound
    };
    let mut shown = Vec::new();
    for r in &entries {
        let checked = entry(&sources, &document.path, r, &Aspect::ALL, policy.as_ref(), &routes, &bound);
        for d in checked.found {
            // Entry points share their tools.
            if !found.contains(&d) {
                found.push(d);
            }
        }
        let mut object = checked.object;
        object["isDefault"] = r.is_default.into();
        object["lines"] = checked.lines.into();
        object["costPath"] = path.take();
        object["term"] = print_with(&r.code, Style::UNICODE).text.into();
        shown.push(object);
    }
    let findings: Vec<Value> = found.iter().map(|d| finding(&sources, &places, d)).collect();
    json!({"findings": findings, "entries": shown})
}

/// Answers `picture`.
pub(crate) fn picture(document: &Document, name: &str) -> Value {
    let programs = programs(document);
    let Some(r) = programs.entries.iter().find(|r: &&Runnable| r.name == name) else {
        return json!({"error": format!("there is no entry point `{}`", diagnostics::clip(name))});
    };
    match pictures::svg(&pictures::of(r, programs.policy.as_ref(), &ModelRoutes::default())) {
        Ok(svg) => json!({"svg": svg}),
        Err(error) => json!({"error": error}),
    }
}

/// Answers `audit`: the attack paths of the document, `null` if an audit does not read it.
pub(crate) fn audit(document: &Document) -> Value {
    let mut audit = audit::Audit::default();
    let (path, text) = (document.path.clone(), document.text.as_str().into());
    audit.project(vec![audit::GivenFile { path, text, is_main: true }], |_| Versions::default());
    if audit.programs.is_empty() {
        return json!({"attacks": null});
    }
    let places = [Places::of(&document.text), Places::of("")];
    let found = audit.findings();
    let (svg, error) = match pictures::svg(&audit.picture()) {
        Ok(svg) => (Some(svg), None),
        Err(error) => (None, Some(error)),
    };
    let findings: Vec<Value> = found.iter().map(|d| finding(&audit.sources, &places, d)).collect();
    let summary = audit.summary(&found);
    json!({"attacks": {"svg": svg, "error": error, "findings": findings, "summary": summary}})
}

/// A finding as `--format json` has it, with its places as a page counts them.
pub(crate) fn finding(sources: &Sources, places: &[Places<'_>; 2], d: &Diagnostic) -> Value {
    let mut object = render::json(sources, d);
    let Some(fields) = object.as_object_mut() else { return object };
    let file = d.span.map_or(MAIN, |s| s.file);
    fields.insert("file".into(), if file == POLICY { "policy" } else { "main" }.into());
    put(fields, places, d.span.unwrap_or(Span { file: MAIN, start: 0, end: 0 }));
    if let (Some(fix), Some(Value::Object(change))) = (&d.fix, fields.get_mut("fix")) {
        match ide::repair_title(d).filter(|_| fix.applicability != Applicability::DisplayOnly) {
            Some(title) => {
                change.insert("title".into(), title.into());
                put(change, places, fix.span);
            }
            None => drop(fields.remove("fix")),
        }
    }
    let remarks = d.remarks.iter();
    if let Some(Value::Array(evidence)) = fields.get_mut("evidence") {
        for (remark, said) in remarks.zip(evidence) {
            if let Some(said) = said.as_object_mut() {
                put(said, places, remark.span);
            }
        }
    }
    object
}

fn put(object: &mut Map<String, Value>, places: &[Places<'_>; 2], span: Span) {
    if let Some(places) = places.get(span.file.0 as usize) {
        object.insert("from".into(), places.utf16(span.start as usize).into());
        object.insert("to".into(), places.utf16(span.end as usize).into());
    }
}
