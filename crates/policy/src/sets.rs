//! `among`: sets of values that untrusted data may choose arguments from.
//!
//! Invariant: a set is a fixed source. Nothing of it is taken from the text of an argument.

use super::{Policy, PolicyReader, PolicyUse, Signature, Value, codes};
use crate::tree::Spanned;
use crate::tree::{Node, Table};
use core_ir::{Among, AmongSource, Code, Data, Name, Person, Region, SetStep, ToolDecl, among};
use diagnostics::{Diagnostic, Span, clip, nearest};

/// A set of a signature, with its place in the file.
pub(super) type SetRule = (Among, Span);

const HELP: &str = "write `request`, `tools.NAME()` or `tools.NAME().FIELD`, `below(request)`, `under:/downloads/`, \
                    `absent`, or `principals.NAME.KEY`, with `{*}` for each name and `|` between several";

impl PolicyReader {
    /// `among`: a table with a set for each parameter, or a list of tables, each for parameters that are
    /// chosen together.
    pub(super) fn among(&mut self, value: &Value) -> Vec<SetRule> {
        match value.get_ref() {
            Node::Table(sets) => self.single_sets(sets),
            Node::List(tables) => {
                let mut out = Vec::new();
                for table in tables.iter() {
                    match table.get_ref() {
                        Node::Table(sets) if sets.len() < 2 => out.extend(self.single_sets(sets)),
                        Node::Table(sets) => out.extend(self.joint_set(sets, table.span())),
                        _ => self.wrong(table, "a table such as { to = \"tools.contacts().email\" }"),
                    }
                }
                out
            }
            _ => {
                self.wrong(value, "a table with a set for each parameter, or a list of tables");
                Vec::new()
            }
        }
    }

    fn single_sets(&mut self, sets: &Table) -> Vec<SetRule> {
        let of = |(param, set): (&Spanned<String>, _)| self.set_of(Name::from(&**param.get_ref()), set);
        sets.iter().flat_map(of).collect()
    }

    /// The sets of a parameter.
    pub(super) fn set_of(&mut self, param: Name, set: &Value) -> Vec<SetRule> {
        let span = set.span();
        let sources = self.sources(set);
        sources
            .into_iter()
            .map(|(source, path)| (Among { source, params: vec![(param.clone(), path)] }, span))
            .collect()
    }

    /// Parameters that take their values from one item.
    fn joint_set(&mut self, sets: &Table, span: Span) -> Option<SetRule> {
        let mut from: Option<AmongSource> = None;
        let mut params = Vec::new();
        for (param, set) in sets.iter() {
            let found = self.sources(set);
            let [(source, path)] = &found[..] else {
                if found.len() > 1 {
                    let message = "parameters that are chosen together have one source";
                    let d = Diagnostic::error(codes::WRONG_VALUE, message, set.span());
                    self.found.push(d.help("write a table of the list for each source"));
                }
                return None;
            };
            let alike = from.get_or_insert_with(|| source.clone()) == source;
            if !alike || !matches!(source, AmongSource::Tool(_)) {
                let message = "parameters that are chosen together come from the items of one tool's result";
                let d = Diagnostic::error(codes::WRONG_VALUE, message, set.span());
                self.found.push(d.help(
                    "write `[{ to = \"tools.bills().iban\", amount = \"tools.bills().total\" }]`; a table \
                     outside of a list has a set for each parameter",
                ));
                return None;
            }
            params.push((Name::from(&**param.get_ref()), path.clone()));
        }
        Some((Among { source: from?, params }, span))
    }

    /// The values of `NAME.KEY` under `[principals]`; `{*}` is each name, or each key.
    fn values_of(&self, text: &str, at: Span) -> Result<Box<[Data]>, Box<Diagnostic>> {
        let (name, key) = text.split_once('.').map_or((text, None), |(name, key)| (name, Some(key)));
        let of_name = |p: &&Person| name == "{*}" || *p.name == *name;
        let people = || self.people.iter().filter(of_name);
        if people().next().is_none() {
            let message = format!("`[principals]` has no `{}` with values", clip(name));
            let d = Diagnostic::error(codes::UNKNOWN_NAME, message, at);
            let help = match nearest(name, self.people.iter().map(|p| &*p.name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "add it to `[principals]`: `alice = { email = \"alice@example.org\" }`".into(),
            };
            return Err(d.help(help).into());
        }
        let of_key = |p: &&Person| key.is_none_or(|key| key == "{*}" || p.key.as_deref() == Some(key));
        let mut values: Vec<Data> = Vec::new();
        for person in people().filter(of_key) {
            let value = Data::str(&*person.value);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.is_empty() {
            let message = format!("no principal has `{}` here", clip(key.unwrap_or_default()));
            let d = Diagnostic::error(codes::UNKNOWN_NAME, message, at);
            let keys = || people().filter_map(|p| p.key.as_deref());
            let help = match nearest(key.unwrap_or_default(), keys()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => HELP.into(),
            };
            return Err(d.help(help).into());
        }
        Ok(values.into())
    }

    /// The sources of a set with the fields that are taken of each. None if there is an error.
    fn sources(&mut self, value: &Value) -> Vec<(AmongSource, Vec<SetStep>)> {
        let Node::Text(text) = value.get_ref() else {
            self.wrong(value, "a set such as \"request | tools.contacts().email\"");
            return Vec::new();
        };
        let parts = text.split('|').map(str::trim);
        let mut all: Option<Vec<_>> = Some(Vec::new());
        for part in parts {
            let found = match (part.strip_prefix("under:"), part.strip_prefix("principals.")) {
                (Some(place), _) => match Region::new(place).and_then(rooted) {
                    Ok(region) => Some((AmongSource::Below(region), Vec::new())),
                    Err(why) => {
                        let message = format!("`{}`: {why}", clip(place));
                        let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
                        self.found.push(d.help("write a path or an address: `under:/downloads/`"));
                        return Vec::new();
                    }
                },
                (_, Some(who)) => match self.values_of(who, value.span()) {
                    Ok(values) => Some((AmongSource::Values(values), Vec::new())),
                    Err(d) => {
                        self.found.push(*d);
                        return Vec::new();
                    }
                },
                _ => source(part),
            };
            match (&mut all, found) {
                (Some(all), Some(found)) => all.push(found),
                (all, _) => *all = None,
            }
        }
        if all.is_none() {
            let message = format!("`{}` is not a set", clip(text));
            let d = Diagnostic::error(codes::WRONG_VALUE, message, value.span());
            self.found.push(d.help(HELP));
        }
        all.unwrap_or_default()
    }
}

/// A region that doesn't depend on where whoever reads its texts stands.
fn rooted(region: Region) -> Result<Region, &'static str> {
    if region.is_rootless() { Err(super::ROOTLESS) } else { Ok(region) }
}

/// `request`, `below(request)`, `absent`, or `tools.NAME()` with fields. The name is as it is, so it may have
/// dots.
fn source(text: &str) -> Option<(AmongSource, Vec<SetStep>)> {
    // An argument that is left out is `null`.
    if text == "absent" {
        return Some((AmongSource::Values([Data::Null].into()), Vec::new()));
    }
    if text == "request" {
        return Some((AmongSource::Request, Vec::new()));
    }
    if text == "below(request)" {
        return Some((AmongSource::Sites, Vec::new()));
    }
    let (name, path) = text.strip_prefix("tools.")?.split_once("()")?;
    let fields = match path.strip_prefix('.') {
        Some(path) => path.split('.').map(SetStep::parse).collect::<Option<Vec<_>>>()?,
        None if path.is_empty() => Vec::new(),
        None => return None,
    };
    let last = fields.len().saturating_sub(1);
    let is_path = !fields.iter().take(last).any(|step| *step == SetStep::Keys);
    (!name.is_empty() && is_path).then(|| (AmongSource::Tool(name.into()), fields))
}

impl Policy {
    /// Reports mistakes in the sets of a program, all of whose policies are applied.
    pub(super) fn check_sets(&self, code: &Code, found: &mut Vec<Diagnostic>) {
        for decl in &code.tools {
            for among in &decl.among {
                let span = self.set_place(&decl.name, among).unwrap_or(decl.span);
                if let Some(d) = wrong_set(code, decl, among, span) {
                    found.push(d);
                }
            }
        }
    }

    /// The place of a set of a tool.
    pub fn set_place(&self, tool: &str, among: &Among) -> Option<Span> {
        let own = self.tools.iter().find(|t| *t.name == *tool).map(|t| &t.says);
        let all = self.signatures(own).chain(self.own.iter().map(|t| &t.says));
        all.flat_map(|says| &says.among).find(|(set, _)| set == among).map(|(_, span)| *span)
    }

    /// The tools that sets of a tool are read from, which a program declares and for which it names policies.
    pub fn set_tools<'a>(&'a self, tool: &'a str, uses: &'a [PolicyUse]) -> impl Iterator<Item = &'a str> {
        let tables = self.tools.iter().chain(&self.own).filter(move |t| *t.name == *tool).map(|t| &t.says);
        tables.chain(self.whole(tool, uses)).flat_map(|says| &says.among).filter_map(
            |(among, _)| match &among.source {
                AmongSource::Tool(set) => Some(&**set),
                _ => None,
            },
        )
    }

    /// The signatures that may have a set: the tool's own first.
    fn signatures<'a>(&'a self, own: Option<&'a Signature>) -> impl Iterator<Item = &'a Signature> {
        own.into_iter().chain(self.named.iter().map(super::named::NamedPolicy::says)).chain(&self.unknown)
    }
}

fn wrong_set(code: &Code, decl: &ToolDecl, among: &Among, span: Span) -> Option<Diagnostic> {
    for (name, _) in &among.params {
        if !decl.params.iter().any(|p| p.name == *name) {
            let message = format!("the tool `{}` has no parameter `{}`", decl.name, clip(name));
            let d = Diagnostic::error(codes::UNKNOWN_NAME, message, span);
            return Some(match nearest(name, decl.params.iter().map(|p| &*p.name)) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d,
            });
        }
    }
    if matches!(among.source, AmongSource::Below(_) | AmongSource::Sites)
        && let Some(param) = among.params.iter().find_map(|(n, _)| decl.params.iter().find(|p| p.name == *n))
        && !super::may_hold_text(&param.ty)
    {
        return Some(super::no_text(decl, param, "a set of paths or addresses", span));
    }
    let AmongSource::Tool(name) = &among.source else { return None };
    let Some(read) = code.tools.iter().find(|t| t.name == *name) else {
        let message = format!("the program has no tool `{}` to read this set from", clip(name));
        let d = Diagnostic::error(codes::UNKNOWN_NAME, message, span);
        return Some(match nearest(name, code.tools.iter().map(|t| &*t.name)) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d.help("declare it in the program, or remove the set"),
        });
    };
    if read.can_be_a_set() {
        return among.params.iter().find_map(|(_, path)| {
            let at = among::type_at(&read.result, path).err()?;
            let message = format!("what `{name}` returns has no part `{}`", path[at]);
            let d = Diagnostic::error(codes::WRONG_VALUE, message, span);
            Some(d.help(format!("its type is `{}`", read.result)))
        });
    }
    let message = format!("a set can't be read from `{name}`");
    let d = Diagnostic::error(codes::WRONG_VALUE, message, span);
    Some(d.help(
        "a set is read before the first step: the tool needs the effect `read` or `pure`, no arguments that \
         must be given, and neither `approve` nor `allow`",
    ))
}
