//! Configurations in YAML.

use super::yaml::{self, Layout, Quotes};
use super::{difference, files, harmless, inserted, own_folders};
use core_ir::{Code, exchange};
use diagnostics::{FileId, Level, Sources, Span};
use frontend_kit::doc::{Document, Format, Limits, Node, NodeKind, load};
use frontend_kit::{File, Project};
use lint::{Config, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE: FileId = FileId(0);

/// A finding, its place by the path of the node that it is in.
struct Found {
    what: String,
    /// The nodes that it may be said to be at: several may begin with the same byte.
    places: BTreeSet<String>,
}

/// Parts of a file's analysis that are compared.
struct Meaning {
    found: Vec<Found>,
    units: Vec<(String, Arc<Code>, Value)>,
}

fn documents(text: &str) -> Vec<Document> {
    load(FILE, &Arc::from(text), Some(Format::Yaml), &Limits::default()).documents
}

/// Everything below a node, with its path; what aliases name is left out.
fn below<'d>(node: Node<'d>, path: String, out: &mut Vec<(String, Span)>) {
    out.push((path.clone(), node.span()));
    if node.span() != node.definition() {
        return;
    }
    for (i, item) in node.items().enumerate() {
        below(item, format!("{path}/{i}"), out);
    }
    for entry in node.entries().filter(|e| !e.merged) {
        let inner = format!("{path}/{}", entry.name());
        out.push((format!("key {inner}"), entry.key.span()));
        below(entry.value, inner, out);
    }
}

/// The nodes that a span may be said to be at.
fn places(nodes: &[(String, Span)], text: &str, span: Span) -> BTreeSet<String> {
    let with = |such: &dyn Fn(Span) -> bool, prefix: &str| -> BTreeSet<String> {
        nodes.iter().filter(|(_, s)| such(*s)).map(|(p, _)| format!("{prefix}{p}")).collect()
    };
    let exact = with(&|s| s == span, "");
    if !exact.is_empty() {
        return exact;
    }
    let inner = with(&|s| s.start == span.start && s.end > span.end && span.end > span.start, "");
    if !inner.is_empty() {
        return inner;
    }
    let end = with(&|s| s.end == span.start && span.start == span.end, "end of ");
    if !end.is_empty() {
        return end;
    }
    let around = nodes.iter().filter(|(_, s)| s.start <= span.start && span.end <= s.end);
    let around = around.min_by_key(|(_, s)| s.end - s.start).map_or("", |(p, _)| p);
    let part = text.get(span.start as usize..span.end as usize).unwrap_or("");
    let part: String = part.chars().filter(|c| c.is_alphanumeric()).collect();
    [format!("`{part}` in {around}")].into()
}

/// A term as a tree, in which what has no order has none: the branches of a `case`, the fields of a record
/// that asks nobody, the tools and options of a model, the declarations of tools and stores.
fn unordered(code: &Code) -> Value {
    let all = exchange::to_json(code, &Sources::new());
    let without_places = |of: &str| {
        let mut items: Vec<Value> = all[of].as_array().into_iter().flatten().cloned().collect();
        items.iter_mut().filter_map(Value::as_object_mut).for_each(|o| drop(o.remove("at")));
        items.sort_by_key(Value::to_string);
        items
    };
    json!([tree(&all, &all["root"]), without_places("tools"), without_places("stores")])
}

/// The term at a position, with its subterms in place of their positions.
fn tree(all: &Value, position: &Value) -> Value {
    let at = |list: &Value, position: &Value| -> Value {
        position.as_u64().map_or(Value::Null, |i| list[i as usize].clone())
    };
    let mut term = at(&all["terms"], position);
    let Some(term_fields) = term.as_object_mut() else { return term };
    term_fields.remove("at");
    for (key, value) in term_fields.iter_mut() {
        match (key.as_str(), value) {
            ("of", Value::Array(items)) => items.iter_mut().for_each(|i| *i = tree(all, i)),
            ("body" | "default", position) => *position = tree(all, position),
            ("bindings", Value::Array(items)) => {
                items.iter_mut().for_each(|pair| pair[1] = tree(all, &pair[1]));
            }
            ("fields", Value::Array(items)) => {
                items.iter_mut().for_each(|pair| pair[1] = tree(all, &pair[1]));
                if !items.iter().any(acts) {
                    items.sort_by_key(|pair| pair[0].to_string());
                }
            }
            ("branches", Value::Array(branches)) => {
                branches.iter_mut().for_each(|b| b["body"] = tree(all, &b["body"]));
                branches.sort_by_key(|b| b["tag"].to_string());
            }
            ("tool", position) => *position = at(&all["tools"], position)["name"].clone(),
            ("params", params) => {
                if let Some(extra) = params["extra"].as_array_mut() {
                    extra.sort_by_key(Value::to_string);
                }
                if let Some(tools) = params["tools"].as_array_mut() {
                    tools.iter_mut().for_each(|tool| *tool = at(&all["tools"], tool)["name"].clone());
                    tools.sort_by_key(Value::to_string);
                }
            }
            _ => {}
        }
    }
    term
}

/// Returns true if evaluating a term may ask a model or a tool, write a store or end in an error.
fn acts(term: &Value) -> bool {
    let pure =
        ["var", "lit", "record", "list", "field", "index", "prim", "pair", "fst", "snd", "tag", "if", "abs"];
    match term {
        Value::Object(fields) => {
            fields.get("op").is_some_and(|op| !pure.contains(&op.as_str().unwrap_or("")))
                || fields.values().any(acts)
        }
        Value::Array(items) => items.iter().any(acts),
        _ => false,
    }
}

/// The findings and terms of a text; `None` if no front end reads it.
fn meaning(path: &str, text: &str) -> Option<Meaning> {
    let config = Config { level: Level::Info, ..Config::default() };
    let report = lint::lint_bytes(frontends::recognize, path, FILE, text.as_bytes(), &config);
    let Outcome::Checked { findings, .. } = report.outcome else { return None };
    let mut nodes = Vec::new();
    for (i, document) in documents(text).iter().enumerate() {
        below(document.root(), format!("{i}:"), &mut nodes);
    }
    let found = findings.iter().map(|d| Found {
        what: format!("{} {} {}", d.code, d.level.as_str(), d.message),
        places: d.span.map_or_else(BTreeSet::new, |s| places(&nodes, text, s)),
    });
    let file = File::read(FILE, path, &Arc::from(text), &Limits::default());
    let compiled = frontends::compile(&Project { files: vec![file], ..Project::default() }, 0)?;
    let units = compiled.units.into_iter().map(|u| {
        let term = unordered(&u.code);
        (u.name.to_string(), u.code, term)
    });
    Some(Meaning { found: found.collect(), units: units.collect() })
}

impl Meaning {
    /// Describes the difference from another text of the same meaning. Units and findings have no order.
    fn differs(&self, other: &Meaning) -> Option<String> {
        let mut left: Vec<&Found> = other.found.iter().collect();
        let mut missing = Vec::new();
        for found in &self.found {
            let same = |o: &&Found| {
                o.what == found.what
                    && (o.places.is_empty() && found.places.is_empty()
                        || !o.places.is_disjoint(&found.places))
            };
            match left.iter().position(same) {
                Some(i) => drop(left.remove(i)),
                None => missing.push(found),
            }
        }
        let lines = |found: &[&Found]| -> Vec<String> {
            found.iter().map(|f| format!("{} at {:?}", f.what, f.places)).collect()
        };
        let mut out = difference(&lines(&missing), &lines(&left));
        let mut others: Vec<_> = other.units.iter().collect();
        for (name, code, term) in &self.units {
            match others.iter().position(|o| (&o.0, &o.2) == (name, term)) {
                Some(i) => drop(others.remove(i)),
                None => out += &format!("  - term of {name}\n{}\n", core_ir::print_code(code)),
            }
        }
        for (name, code, _) in others {
            out += &format!("  + term of {name}\n{}\n", core_ir::print_code(code));
        }
        (!out.is_empty()).then_some(out)
    }
}

/// Returns true if two nodes say the same; keys may come in another order if `any_order` says so.
fn same(a: Node<'_>, b: Node<'_>, any_order: bool) -> bool {
    if (a.kind(), a.text(), a.tag()) != (b.kind(), b.text(), b.tag()) {
        return false;
    }
    match a.kind() {
        NodeKind::Sequence => {
            a.items().len() == b.items().len() && a.items().zip(b.items()).all(|(a, b)| same(a, b, any_order))
        }
        NodeKind::Mapping => {
            let (a, b): (Vec<_>, Vec<_>) = (a.entries().collect(), b.entries().collect());
            a.len() == b.len()
                && a.iter().zip(&b).all(|(x, y)| {
                    let y = if any_order { b.iter().find(|y| y.name() == x.name()) } else { Some(y) };
                    y.is_some_and(|y| x.name() == y.name() && same(x.value, y.value, any_order))
                })
        }
        _ => true,
    }
}

fn same_texts(a: &str, b: &str, any_order: bool) -> bool {
    let load = |text: &str| load(FILE, &Arc::from(text), Some(Format::Yaml), &Limits::default());
    let (a, b) = (load(a), load(b));
    a.documents.len() == b.documents.len()
        && a.failed() == b.failed()
        && a.documents.iter().zip(&b.documents).all(|(a, b)| same(a.root(), b.root(), any_order))
}

/// A text with comments on lines of their own and at the ends of lines.
fn commented(text: &str) -> Option<String> {
    let stream = yaml::read(text)?;
    let mut insertions = Vec::new();
    let mut at = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let content = line.trim_end_matches(['\n', '\r']);
        let indent = content.len() - content.trim_start().len();
        if !stream.inside.contains(&i) && i > 0 {
            insertions.push((at, format!("{}# a \"remark: [1\n", &content[..indent])));
        }
        if !stream.inside.contains(&(i + 1)) && !content.trim().is_empty() {
            insertions.push((at + content.len(), "  # it's {one".to_string()));
        }
        at += line.len();
    }
    let kept = harmless(text, &insertions, &|changed| same_texts(text, changed, false));
    (!kept.is_empty()).then(|| inserted(text, &kept))
}

const LAYOUTS: [(&str, Layout); 3] = [
    ("block", Layout { indent: 2, quotes: Quotes::Double, flow_below: usize::MAX, blank_lines: false }),
    ("wide", Layout { indent: 4, quotes: Quotes::Plain, flow_below: usize::MAX, blank_lines: true }),
    ("flow", Layout { indent: 3, quotes: Quotes::Single, flow_below: 1, blank_lines: false }),
];

/// Mappings whose order of keys has a meaning, by framework and by the key that they stand under (empty for
/// that of the document), with the meaning.
const ORDERED: &[(&str, &str, &str)] = &[
    ("crewai", "", "the tasks of a crew are carried out in the order of `tasks.yaml`"),
    ("praisonai", "roles", "the tasks of the roles are carried out in this order"),
    ("praisonai", "agents", "the tasks of the agents are carried out in this order"),
    ("praisonai", "tasks", "the tasks of a role are carried out in this order"),
    ("langchain", "steps__", "the results of the branches stand in this order in the record"),
    ("dify", "properties", "a model writes the fields of its reply in this order"),
    ("oa", "properties", "a model writes the fields of its reply in this order"),
];

fn framework(path: &str, text: &str) -> Option<&'static str> {
    let report = lint::lint_bytes(frontends::recognize, path, FILE, text.as_bytes(), &Config::default());
    match report.outcome {
        Outcome::Checked { framework, .. } => Some(framework),
        _ => None,
    }
}

/// A text with the keys of its mappings in reverse.
fn reordered(path: &str, text: &str) -> Option<String> {
    let stream = yaml::read(text)?;
    // An alias has to follow its anchor.
    if stream.has_aliases {
        return None;
    }
    let framework = framework(path, text)?;
    let ordered = |path: &[String]| {
        let under = path.last().map_or("", String::as_str);
        ORDERED.iter().any(|(of, key, _)| *of == framework && *key == under)
    };
    let reversed: Vec<_> = stream.documents.iter().map(|d| d.reversed(&mut Vec::new(), &ordered)).collect();
    Some(yaml::write(&reversed, LAYOUTS[0].1))
}

#[derive(Default)]
struct Tally {
    files: usize,
    /// Changes that were compared.
    changes: usize,
    /// Changes that could not be made.
    left_out: Vec<String>,
    differences: Vec<String>,
}

impl Tally {
    /// Compares a changed text with the text as it is.
    fn compare(&mut self, name: &str, path: &str, text: &str, changed: Option<String>, any_order: bool) {
        let Some(changed) = changed.filter(|c| same_texts(text, c, any_order)) else {
            self.left_out.push(format!("{name} of {path}"));
            return;
        };
        let before = meaning(path, text).expect("it is a configuration");
        self.changes += 1;
        let difference = match meaning(path, &changed) {
            Some(after) => before.differs(&after),
            None => Some("  it is no configuration any more\n".to_string()),
        };
        if let Some(difference) = difference {
            self.differences.push(format!("{name} of {path}:\n{difference}"));
        }
    }

    fn file(&mut self, path: &Path) {
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let path = path.display().to_string();
        // What is not read to its end is not compared; neither are keys that occur twice, nor JSON.
        let loaded = load(FILE, &Arc::from(text.as_str()), Some(Format::Yaml), &Limits::default());
        let is_yaml = loaded.documents.first().is_some_and(|d| d.format() == Format::Yaml);
        if !is_yaml || !loaded.diagnostics.is_empty() || meaning(&path, &text).is_none() {
            return;
        }
        let Some(stream) = yaml::read(&text) else { return };
        if !stream.documents.iter().all(yaml::Written::has_simple_keys) {
            return;
        }
        self.files += 1;
        self.compare("comments", &path, &text, commented(&text), false);
        // A comment may be a suppression.
        if text.contains("entail:") {
            return;
        }
        for (name, layout) in LAYOUTS {
            self.compare(name, &path, &text, Some(yaml::write(&stream.documents, layout)), false);
        }
        self.compare("order of keys", &path, &text, reordered(&path, &text), true);
    }

    fn finish(self) {
        eprintln!("{} files, {} changes, left out: {:?}", self.files, self.changes, self.left_out);
        assert!(self.differences.is_empty(), "{}", self.differences.join("\n"));
    }
}

#[test]
fn comments_layout_and_key_order_of_configurations_mean_nothing() {
    let mut tally = Tally::default();
    files(&own_folders(), &["yaml", "yml"]).iter().for_each(|path| tally.file(path));
    assert!(tally.files > 60 && tally.changes > 250, "{} files, {} changes", tally.files, tally.changes);
    tally.finish();
}

#[test]
fn comments_layout_and_key_order_of_a_corpus_mean_nothing() {
    let Ok(corpus) = std::env::var("ENTAIL_CORPUS") else { return };
    let cases = std::env::var("ENTAIL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut tally = Tally::default();
    for path in files(&[PathBuf::from(corpus)], &["yaml", "yml"]) {
        if tally.files < cases {
            tally.file(&path);
        }
    }
    assert!(tally.files > 0, "the folder has configurations");
    tally.finish();
}
