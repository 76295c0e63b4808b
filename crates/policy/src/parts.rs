//! `fields` and `readers`: labels of parts of what a tool returns.
//!
//! Invariant: a rule about all fields of a record reaches those that another rule names, too.

use super::{PolicyReader, Signature, Value, codes};
use crate::tree::{Node, Table};
use core_ir::{
    LabelName, LabelSpec, LatticeKind, Name, PartLabel, PartPath, PathStep, ResultParts, ToolDecl, Type,
};
use diagnostics::{Diagnostic, Span, clip, nearest};

/// A rule of a signature, with its place in the file.
#[derive(Clone, Debug)]
pub(super) struct PartRule {
    rule: PartLabel,
    span: Span,
}

/// A parameter and those that name who must be among the readers of its argument, with the place.
pub(super) type IncludesRule = (Name, Box<[Name]>, Span);

impl Signature {
    /// The arguments whose places are labels of the result, with the places of the rules.
    pub(super) fn places(&self) -> impl Iterator<Item = (&Name, Span)> {
        self.parts.iter().flat_map(|part| {
            let names = part.rule.source.iter().chain(&part.rule.readers);
            names.filter_map(|name| match name {
                LabelName::Argument(name) => Some((name, part.span)),
                LabelName::Field(_) => None,
            })
        })
    }
}

impl PolicyReader {
    /// `fields`: a table with a label for each path.
    pub(super) fn fields(&mut self, value: &Value, out: &mut Vec<PartRule>) {
        let Some(table) = self.table(value, "a table with a label for each part of the result") else {
            return;
        };
        for (key, value) in table.iter() {
            let span = key.span();
            let Some(path) = self.part_path(key.get_ref(), span) else { continue };
            let mut rule = PartLabel::stated(path, LabelSpec::BOTTOM);
            match value.get_ref() {
                Node::Table(t) if is_rule(t) => {
                    for (key, value) in t.iter() {
                        match &**key.get_ref() {
                            "label" => rule.label = self.label(value).unwrap_or(LabelSpec::TOP),
                            "source" => rule.source = self.label_names(value),
                            "readers" => rule.readers = self.label_names(value),
                            other => self.unknown_key(other, key.span(), &["label", "source", "readers"]),
                        }
                    }
                }
                _ => rule.label = self.label(value).unwrap_or(LabelSpec::TOP),
            }
            add(out, PartRule { rule, span });
        }
    }

    /// `readers`: a table with the readers for each path.
    ///
    /// `includes @to` is about the argument of that name: those whom `to` names must be among its readers.
    pub(super) fn readers(
        &mut self,
        value: &Value,
        out: &mut Vec<PartRule>,
        includes: &mut Vec<IncludesRule>,
    ) {
        let Some(table) = self.table(value, "a table with the readers of each part of the result") else {
            return;
        };
        for (key, value) in table.iter() {
            let span = key.span();
            if let Node::Text(text) = value.get_ref()
                && let Some(who) = text.trim().strip_prefix("includes ")
            {
                if let Some(who) = self.includes(who, value.span()) {
                    includes.push((Name::from(&**key.get_ref()), who, span));
                }
                continue;
            }
            let Some(path) = self.part_path(key.get_ref(), span) else { continue };
            let rule =
                PartLabel { readers: self.label_names(value), ..PartLabel::stated(path, LabelSpec::BOTTOM) };
            add(out, PartRule { rule, span });
        }
    }

    /// `@to + @cc`, parameters whose arguments name readers.
    fn includes(&mut self, text: &str, span: Span) -> Option<Box<[Name]>> {
        if self.lattice.kind() != LatticeKind::SourcesReaders {
            let message = "readers by name are labels of the lattice `sources-readers`";
            let d = Diagnostic::error(codes::WRONG_VALUE, message, span);
            self.found.push(d.help(
                "write `lattice = \"sources-readers\"`, or let nothing secret into the argument (`bounds`)",
            ));
            return None;
        }
        let name = |part: &str| match LabelName::parse(part.trim()) {
            Some(LabelName::Field(name)) => Some(name),
            _ => None,
        };
        let names: Option<Box<[Name]>> = text.split('+').map(name).collect();
        if names.is_none() {
            let message = format!("`{}` names no argument", clip(text));
            let d = Diagnostic::error(codes::WRONG_VALUE, message, span);
            self.found.push(d.help("write `includes @to`, with `+` between several arguments"));
        }
        names
    }

    pub(super) fn part_path(&mut self, text: &str, span: Span) -> Option<PartPath> {
        let path = PartPath::parse(text);
        if path.is_none() {
            let message = format!("`{}` is not a path", clip(text));
            let d = Diagnostic::error(codes::WRONG_VALUE, message, span);
            self.found.push(d.help(
                "write `[]` for the items of a list, names of fields with points between them, and `{*}` for \
                 all other fields: `[].sender.name`, `{*}.title`",
            ));
        }
        path
    }

    /// `@field` and `$argument`, with `+` between several.
    fn label_names(&mut self, value: &Value) -> Box<[LabelName]> {
        let Node::Text(text) = value.get_ref() else {
            self.wrong(value, "a field such as \"@sender\"");
            return Box::default();
        };
        let names: Option<Box<[LabelName]>> = text.split('+').map(|n| LabelName::parse(n.trim())).collect();
        if names.is_none() {
            let message = format!("`{}` names no label", clip(text));
            let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
            self.found.push(d.help(
                "write `@field` for a field of the same record, `$argument` for an argument of the call, and \
                 `+` between several",
            ));
        }
        names.unwrap_or_default()
    }
}

/// Returns whether a table is a rule. Otherwise it is a label such as `{ sources = ["web"], readers = "*" }`.
fn is_rule(table: &Table) -> bool {
    let names_label = |v: &Node| matches!(v, Node::Text(s) if s.starts_with(['@', '$']));
    table.iter().any(|(key, value)| match &**key.get_ref() {
        "label" | "source" => true,
        "readers" => names_label(value.get_ref()),
        _ => false,
    })
}

/// Adds a rule to those of a signature.
fn add(out: &mut Vec<PartRule>, new: PartRule) {
    match out.iter_mut().find(|old| old.rule.path == new.rule.path) {
        // One of `fields` and one of `readers`.
        Some(old) => {
            let (old, new) = (&mut old.rule, new.rule);
            if old.label == LabelSpec::BOTTOM {
                old.label = new.label;
            }
            if old.source.is_empty() {
                old.source = new.source;
            }
            if old.readers.is_empty() {
                old.readers = new.readers;
            }
        }
        None => out.push(new),
    }
}

impl Signature {
    /// The label of each part; `None` for one that values name.
    pub(super) fn parts(&self) -> impl Iterator<Item = Option<&LabelSpec>> {
        self.parts.iter().map(|p| names(&p.rule).next().is_none().then_some(&p.rule.label))
    }

    /// Puts the labels of parts into a declaration. Returns whether it says any.
    pub(super) fn put_parts(&self, decl: &mut ToolDecl, found: &mut Vec<Diagnostic>) -> bool {
        if self.parts.is_empty() {
            return false;
        }
        for part in &self.parts {
            found.extend(check(part, decl));
        }
        let parts = ResultParts::new(spread(&self.parts));
        if let Some((rule, field)) = parts.cycle() {
            let at = self.parts.iter().find(|p| p.rule.path == rule.path).or(self.parts.first());
            let message = format!("the label of the field `{}` depends on itself", clip(&field));
            let span = at.map_or(decl.span, |p| p.span);
            let d = Diagnostic::error(codes::PART, message, span);
            found.push(d.help("state the label of one of the fields that name each other"));
            return true;
        }
        decl.parts = parts;
        true
    }
}

/// The rules with what is said of all fields of a record put where it counts: into a rule about all fields,
/// and into the rules that name a field, unless they say it themselves.
fn spread(parts: &[PartRule]) -> Vec<PartLabel> {
    let mut rules: Vec<PartLabel> = parts.iter().map(|p| p.rule.clone()).collect();
    for part in parts {
        let (steps, mut all) = (part.rule.path.steps(), part.rule.clone());
        let is_field = |n: &LabelName| matches!(n, LabelName::Field(_));
        if matches!(steps.last(), Some(PathStep::Field(_))) || !names(&all).any(is_field) {
            continue;
        }
        let record = all.path.record().unwrap_or_else(|| all.path.clone());
        let Some(path) = PartPath::new(record.steps().iter().cloned().chain([PathStep::Values])) else {
            continue;
        };
        if path != all.path {
            // What is stated, and what arguments say, is about the record itself.
            let (fields, own) = split(&all);
            let says_nothing = own.label == LabelSpec::BOTTOM && names(&own).next().is_none();
            rules.retain(|r| r.path != all.path || !says_nothing);
            if let Some(rule) = rules.iter_mut().find(|r| r.path == all.path) {
                *rule = own;
            }
            all = PartLabel { path: path.clone(), label: LabelSpec::BOTTOM, ..fields };
            match rules.iter_mut().find(|r| r.path == path) {
                Some(rule) => fill(rule, &all),
                None => rules.push(all.clone()),
            }
        }
        for rule in &mut rules {
            let Some(PathStep::Field(name)) = rule.path.steps().last() else { continue };
            if rule.path.record().as_ref() == Some(&record) && !all.excepts(name) {
                fill(rule, &all);
            }
        }
    }
    rules
}

fn names(rule: &PartLabel) -> impl Iterator<Item = &LabelName> {
    rule.source.iter().chain(&rule.readers)
}

/// A rule by what fields say, and by all else.
fn split(rule: &PartLabel) -> (PartLabel, PartLabel) {
    let by = |fields: bool, names: &[LabelName]| -> Box<[LabelName]> {
        names.iter().filter(|n| matches!(n, LabelName::Field(_)) == fields).cloned().collect()
    };
    let part = |fields| PartLabel {
        source: by(fields, &rule.source),
        readers: by(fields, &rule.readers),
        ..rule.clone()
    };
    (part(true), part(false))
}

/// Adds what values say, as far as a rule names none.
fn fill(rule: &mut PartLabel, all: &PartLabel) {
    if rule.source.is_empty() {
        rule.source = all.source.clone();
    }
    if rule.readers.is_empty() {
        rule.readers = all.readers.clone();
    }
}

/// Checks a rule against the declaration: the finding, if there is one.
fn check(part: &PartRule, decl: &ToolDecl) -> Option<Diagnostic> {
    let PartRule { rule, span } = part;
    let wrong = |message: String| Diagnostic::error(codes::PART, message, *span);
    let no_part = |path: &PartPath, at: usize| {
        let known = fields_at(&decl.result, &path.steps()[..at]);
        let message = format!("what `{}` returns has no part `{path}`", decl.name);
        match (&path.steps()[at], &known) {
            (PathStep::Field(name), Some(known)) if !known.is_empty() => {
                match nearest(name, known.iter().map(|n| &**n)) {
                    Some(near) => wrong(message).help(format!("did you mean `{near}`?")),
                    None => wrong(message).help(format!("there is: {}", known.join(", "))),
                }
            }
            _ => wrong(message).help(format!("its type is `{}`", decl.result)),
        }
    };
    if let Err(at) = rule.path.fits(&decl.result) {
        return Some(no_part(&rule.path, at));
    }
    let record = rule.path.record().unwrap_or_else(|| rule.path.clone());
    for name in names(rule) {
        match name {
            LabelName::Field(field) => {
                let path =
                    PartPath::new(record.steps().iter().cloned().chain([PathStep::Field(field.clone())]));
                let Some(path) = path else { return Some(wrong("this path is too long".into())) };
                if let Err(at) = path.fits(&decl.result) {
                    return Some(no_part(&path, at));
                }
            }
            LabelName::Argument(param) => {
                if decl.is_unknown() || decl.params.iter().any(|p| p.name == *param) {
                    continue;
                }
                let message = format!("the tool `{}` has no parameter `{}`", decl.name, clip(param));
                let d = Diagnostic::error(codes::UNKNOWN_NAME, message, *span);
                return Some(match nearest(param, decl.params.iter().map(|p| &*p.name)) {
                    Some(near) => d.help(format!("did you mean `${near}`?")),
                    None => d,
                });
            }
        }
    }
    None
}

/// The names of the fields where steps lead, if that is a record.
fn fields_at(ty: &Type, steps: &[PathStep]) -> Option<Vec<Name>> {
    match (ty, steps) {
        (Type::Option(inner), _) => fields_at(inner, steps),
        (Type::Refined(inner), _) => fields_at(&inner.0, steps),
        (Type::Record(fields), []) => Some(fields.iter().map(|(n, _)| n.clone()).collect()),
        (Type::List(item), [PathStep::Items, rest @ ..]) => fields_at(item, rest),
        (Type::Record(fields), [PathStep::Field(name), rest @ ..]) => {
            fields_at(fields.iter().find(|(n, _)| n == name).map(|(_, t)| t)?, rest)
        }
        _ => None,
    }
}
