//! The table of one package: its releases, and its modules with the releases that have each name.

use crate::releases::{Releases, compare};
use crate::source::Source;
use std::collections::HashMap;
use std::sync::OnceLock;

// The tables, by the names of their packages.
include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// Size of the text of a table at most: ten times that of the largest.
const MAX_BYTES: usize = 16 << 20;

/// Returns true if the table of some package tells of a module, by the first part of its name.
pub(crate) fn is_root(module: &str) -> bool {
    SOURCES.iter().any(|source| source.tells_of(module))
}

/// The name at the top of the packages that have a module.
pub(crate) fn root_of(module: &str) -> Option<&'static str> {
    SOURCES.iter().find_map(|source| source.root_of(module))
}

/// First names of the modules that the tables tell of.
pub(crate) fn roots() -> impl Iterator<Item = &'static str> {
    let roots = SOURCES.iter().flat_map(|source| source.roots.iter());
    roots.map(|root| root.split('.').next().unwrap_or(root))
}

/// The tables of the packages that may have a module.
pub(crate) fn tables_of(module: &str) -> impl Iterator<Item = &'static Table> {
    SOURCES.iter().filter(move |source| source.tells_of(module)).filter_map(Source::table)
}

/// The table of a package.
#[derive(Debug)]
pub(crate) struct Table {
    /// The name of the package.
    pub package: &'static str,
    /// Packages of the same versions that require it.
    pub also: Vec<&'static str>,
    /// Its releases with their days, in the order of versions.
    pub releases: Vec<(&'static str, &'static str)>,
    modules: HashMap<&'static str, Block>,
}

/// A module whose lines are read when it is first asked for.
#[derive(Debug)]
struct Block {
    lines: &'static str,
    module: OnceLock<Module>,
}

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Its kinds, by releases.
    pub is: Vec<(ModuleKind, Releases)>,
    pub names: HashMap<&'static str, Vec<Entry>>,
    /// The members of its classes.
    pub members: HashMap<&'static str, HashMap<&'static str, Vec<Member>>>,
}

/// The kinds of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModuleKind {
    /// A file.
    File,
    /// A folder with `__init__.py`, which no other package adds modules to.
    Package,
    /// A folder without one.
    Namespace,
    /// A file or package with names that only running it shows.
    Open,
}

/// A name of a module in some releases.
#[derive(Debug)]
pub(crate) struct Entry {
    pub kind: EntryKind,
    pub deprecated: Option<&'static str>,
    pub releases: Releases,
}

/// Kinds of a name of a module.
#[derive(Debug)]
pub(crate) enum EntryKind {
    Value,
    /// Another name, qualified.
    Alias(&'static str),
    Function(Signature),
    Class(Class),
}

/// A class.
#[derive(Debug, Default)]
pub(crate) struct Class {
    pub bases: Vec<&'static str>,
    /// True if nothing is known of its constructor and attributes.
    pub open: bool,
    /// True if it has attributes that only running it shows.
    pub dynamic: bool,
    pub is_data: bool,
    pub extra: Option<Extra>,
    /// Keywords that a validator takes before fields are filled; `*` for any.
    pub before: Option<Vec<&'static str>>,
}

/// Keywords of a constructor that are no fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Forbidden,
    Ignored,
    Allowed,
}

/// A member of a class in some releases.
#[derive(Debug)]
pub(crate) struct Member {
    pub kind: MemberKind,
    pub deprecated: Option<&'static str>,
    pub releases: Releases,
}

/// Kinds of a member.
#[derive(Debug)]
pub(crate) enum MemberKind {
    Value,
    Method(Signature),
    /// The fields of a data class, as parameters of its constructor.
    Fields(Signature),
    Field {
        required: bool,
        aliases: Vec<&'static str>,
    },
}

/// Parameters.
#[derive(Debug, Default)]
pub(crate) struct Signature {
    /// True if nothing is known of them.
    pub unknown: bool,
    pub params: Vec<Param>,
    /// True if there is `*args`.
    pub args: bool,
    pub rest: Option<Rest>,
}

/// A parameter.
#[derive(Debug)]
pub(crate) struct Param {
    pub name: &'static str,
    pub required: bool,
    pub positional: bool,
    pub keyword: bool,
}

/// Treatment of keywords that are no parameters.
#[derive(Debug)]
pub(crate) enum Rest {
    Any,
    /// Others than these raise.
    Raises(Vec<&'static str>),
    /// Others than these are dropped.
    Ignores(Vec<&'static str>),
    /// Others than these go to the constructor of the base class.
    Base(Vec<&'static str>),
}

impl Table {
    /// Reads a compressed table; `None` if it is damaged or of another kind.
    pub(crate) fn read(compressed: &[u8]) -> Option<Table> {
        let text = miniz_oxide::inflate::decompress_to_vec_with_limit(compressed, MAX_BYTES).ok()?;
        // Read once per process and kept to its end.
        let text: &'static str = String::from_utf8(text).ok()?.leak();
        Table::parse(text)
    }

    /// Reads the text of a table; `None` if it is of another kind.
    pub(crate) fn parse(text: &'static str) -> Option<Table> {
        let rest = text.strip_prefix("entail framework table 1\npackage ")?;
        let (package, mut rest) = rest.split_once('\n')?;
        let mut also = Vec::new();
        while let Some(line) = rest.strip_prefix("also ") {
            let (name, after) = line.split_once('\n')?;
            also.push(name);
            rest = after;
        }
        let mut releases = Vec::new();
        while let Some(line) = rest.strip_prefix("release ") {
            let (line, after) = line.split_once('\n')?;
            releases.push(line.split_once(' ')?);
            rest = after;
        }
        let mut modules = HashMap::new();
        let mut rest = rest.strip_prefix("module ");
        while let Some(here) = rest {
            let (block, after) = match here.split_once("\nmodule ") {
                Some((block, after)) => (block, Some(after)),
                None => (here, None),
            };
            let (name, lines) = block.split_once('\n').unwrap_or((block, ""));
            modules.insert(name, Block { lines, module: OnceLock::new() });
            rest = after;
        }
        Some(Table { package, also, releases, modules })
    }

    /// All releases.
    fn all(&self) -> Releases {
        Releases::range(0, self.releases.len() as u16)
    }

    /// The version of a release.
    pub fn version(&self, number: u16) -> &'static str {
        self.releases.get(usize::from(number)).map_or("", |r| r.0)
    }

    /// The releases of the last year before the newest.
    pub fn recent(&self) -> Releases {
        let Some(newest) = self.releases.iter().map(|r| r.1).max() else { return Releases::default() };
        let year: u32 = newest.get(..4).and_then(|y| y.parse().ok()).unwrap_or(0);
        let since = format!("{:04}{}", year.saturating_sub(1), newest.get(4..).unwrap_or(""));
        // Of old lines that are still repaired, nobody gets one without a pin.
        let from = self.releases.iter().rposition(|r| r.1 < since.as_str()).map_or(0, |i| i + 1);
        let from = from.min(self.releases.len().saturating_sub(1));
        Releases::range(from as u16, self.releases.len() as u16)
    }

    /// The releases that a requirement allows: `==1.2`, `>=1.0,<2`; none if it is not understood.
    pub fn matching(&self, requirement: &str) -> Releases {
        let parts: Vec<&str> = requirement.split(',').map(str::trim).filter(|p| !p.is_empty()).collect();
        let fits = |version: &str| {
            parts.iter().all(|part| {
                let test = |operator: &str| part.strip_prefix(operator).map(|v| compare(version, v.trim()));
                if let Some(order) = test("==") {
                    order.is_eq()
                } else if let Some(order) = test(">=") {
                    order.is_ge()
                } else if let Some(order) = test("<") {
                    order.is_lt()
                } else {
                    false
                }
            })
        };
        let mut out = Releases::default();
        let mut start = None;
        for (i, (version, _)) in self.releases.iter().enumerate() {
            match (fits(version), start) {
                (true, None) => start = Some(i),
                (false, Some(from)) => {
                    out.push(from as u16, i as u16);
                    start = None;
                }
                _ => {}
            }
        }
        if let Some(from) = start {
            out.push(from as u16, self.releases.len() as u16);
        }
        out
    }

    /// A module that some release has.
    pub(crate) fn module(&self, name: &str) -> Option<&Module> {
        let block = self.modules.get(name)?;
        Some(block.module.get_or_init(|| self.read_module(block.lines)))
    }

    fn read_module(&self, lines: &'static str) -> Module {
        let numbers: HashMap<&str, u16> =
            self.releases.iter().enumerate().map(|(i, r)| (r.0, i as u16)).collect();
        let mut module = Module::default();
        // Members stand after all entries of their class.
        let mut class: Option<&'static str> = None;
        for line in lines.lines() {
            let (line, releases) = self.ranged(line, &numbers);
            if let Some(flags) = line.strip_prefix('=') {
                let kind = match flags {
                    _ if flags.ends_with("open") => ModuleKind::Open,
                    "package" => ModuleKind::Package,
                    "namespace" => ModuleKind::Namespace,
                    _ => ModuleKind::File,
                };
                module.is.push((kind, releases));
            } else if let Some(line) = line.strip_prefix("  ") {
                let Some(of) = class else { continue };
                let members = module.members.entry(of).or_default();
                if let Some(names) = line.strip_prefix(": ") {
                    for name in names.split(' ') {
                        let member =
                            Member { kind: MemberKind::Value, deprecated: None, releases: releases.clone() };
                        members.entry(name).or_default().push(member);
                    }
                } else if let Some((name, rest)) = line.split_once(' ') {
                    let (rest, deprecated) = noted(rest);
                    let kind = member(rest);
                    members.entry(name).or_default().push(Member { kind, deprecated, releases });
                }
            } else if let Some(line) = line.strip_prefix(' ') {
                if let Some(names) = line.strip_prefix(": ") {
                    for name in names.split(' ') {
                        let entry =
                            Entry { kind: EntryKind::Value, deprecated: None, releases: releases.clone() };
                        module.names.entry(name).or_default().push(entry);
                    }
                } else if let Some((name, rest)) = line.split_once(' ') {
                    let (rest, deprecated) = noted(rest);
                    class = Some(name);
                    let entry = Entry { kind: entry(rest), deprecated, releases };
                    module.names.entry(name).or_default().push(entry);
                }
            }
        }
        module
    }

    /// A line without its releases, and those.
    fn ranged(&self, line: &'static str, numbers: &HashMap<&str, u16>) -> (&'static str, Releases) {
        let at = if line.starts_with("=@") { Some(1) } else { line.rfind(" @").map(|i| i + 1) };
        let Some(at) = at else { return (line, self.all()) };
        let mut out = Releases::default();
        for range in line[at + 1..].split(',') {
            let Some((from, to)) = range.split_once("..") else { return (line, self.all()) };
            let from = if from.is_empty() { Some(0) } else { numbers.get(from).copied() };
            let to = if to.is_empty() { Some(self.releases.len() as u16) } else { numbers.get(to).copied() };
            let (Some(from), Some(to)) = (from, to) else { return (line, self.all()) };
            out.push(from, to);
        }
        (line[..at].strip_suffix(' ').unwrap_or(&line[..at]), out)
    }
}

impl Signature {
    fn read(text: &'static str) -> Signature {
        let mut out = Signature::default();
        if text == "?" {
            out.unknown = true;
            return out;
        }
        let mut keyword_only = false;
        for part in text.split(',').filter(|p| !p.is_empty()) {
            if part == "/" {
                out.params.iter_mut().for_each(|p| p.keyword = false);
            } else if let Some(rest) = part.strip_prefix("**") {
                let names = |s: &'static str| s.split('|').filter(|n| !n.is_empty()).collect::<Vec<_>>();
                out.rest = Some(match rest.split_at(rest.len().min(1)) {
                    ("!", n) => Rest::Raises(names(n)),
                    ("~", n) => Rest::Ignores(names(n)),
                    (">", n) => Rest::Base(names(n)),
                    _ => Rest::Any,
                });
            } else if let Some(name) = part.strip_prefix('*') {
                keyword_only = true;
                out.args |= !name.is_empty();
            } else {
                let name = part.trim_end_matches('?');
                let required = name.len() == part.len();
                out.params.push(Param { name, required, positional: !keyword_only, keyword: true });
            }
        }
        out
    }
}

/// A line without its note of a deprecation, and that.
fn noted(rest: &'static str) -> (&'static str, Option<&'static str>) {
    match rest.find(" !") {
        Some(at) => (&rest[..at], Some(&rest[at + 2..])),
        None => (rest, None),
    }
}

fn entry(text: &'static str) -> EntryKind {
    match text.split_once(' ') {
        Some(("a", target)) => EntryKind::Alias(target),
        Some(("f", signature)) => EntryKind::Function(Signature::read(signature)),
        Some(("c", rest)) => {
            let mut words = rest.split(' ');
            let bases = words.next().unwrap_or("-");
            let mut class = Class::default();
            if bases != "-" {
                class.bases = bases.split(',').collect();
            }
            for word in words {
                match word {
                    "open" => class.open = true,
                    "dynamic" => class.dynamic = true,
                    "data" | "data-kw" => class.is_data = true,
                    "forbid" => class.extra = Some(Extra::Forbidden),
                    "ignore" => class.extra = Some(Extra::Ignored),
                    "allow" => class.extra = Some(Extra::Allowed),
                    _ => {
                        if let Some(names) = word.strip_prefix("before=") {
                            class.before = Some(names.split('|').filter(|n| !n.is_empty()).collect());
                        }
                    }
                }
            }
            EntryKind::Class(class)
        }
        _ if text == "f" => EntryKind::Function(Signature::default()),
        _ => EntryKind::Value,
    }
}

fn member(text: &'static str) -> MemberKind {
    match text.split_once(' ') {
        Some(("f", signature)) => MemberKind::Method(Signature::read(signature)),
        Some(("d", signature)) => MemberKind::Fields(Signature::read(signature)),
        Some(("p", rest)) => MemberKind::Field {
            required: rest.split(' ').any(|w| w == "required"),
            aliases: rest.split(' ').filter_map(|w| w.strip_prefix('=')).flat_map(|w| w.split('|')).collect(),
        },
        _ if text == "p" => MemberKind::Field { required: false, aliases: Vec::new() },
        _ if text == "f" => MemberKind::Method(Signature::default()),
        _ if text == "d" => MemberKind::Fields(Signature::default()),
        _ => MemberKind::Value,
    }
}
