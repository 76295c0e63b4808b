//! Uses of packages judged against the releases that a project may have.
//!
//! A use is judged against a set of releases. A name is missing if no release of the set has it. An argument
//! is unknown if no release accepts it. If a definition leads to other packages, any release of them that may
//! be installed counts in favor of the use.

use crate::releases::Releases;
use crate::table::{
    Class, Entry, EntryKind, Extra, Member, MemberKind, Module, ModuleKind, Rest, Signature, Table, tables_of,
};
use std::cell::RefCell;
use std::collections::HashMap;

/// Returns the requirement of a package.
type Pin<'a> = Box<dyn Fn(&str) -> Option<Requirement> + 'a>;

/// The requirement that a project states for a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Some releases: `==1.2.0`, `>=1.0,<2`.
    Releases(String),
    /// A repository, folder or archive: it may differ from every release, and is not judged.
    Unreleased,
}

/// The releases that a project may have of each package.
pub struct Api<'a> {
    pin: Pin<'a>,
    views: RefCell<HashMap<&'static str, (Releases, bool)>>,
}

/// A use that fails, or should not be, in every release that a project may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// True if the program raises.
    pub raises: bool,
    /// The releases that were looked at.
    pub judged: Judged,
    /// The version that brought the fault; `None` if the table knows no release without it.
    pub since: Option<&'static str>,
    /// The first later version without the fault.
    pub until: Option<&'static str>,
    /// The module that defined the name before, and still has it.
    pub moved: Option<String>,
    /// The name that came with the release that dropped this one, or the most similar one.
    pub instead: Option<String>,
}

/// Kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// There is no such module.
    NoModule,
    /// The module or class has no such name.
    NoName {
        /// The module or class, qualified.
        within: String,
        /// The name.
        name: String,
        /// True if it is a class.
        class: bool,
    },
    /// Nothing takes the keyword argument.
    UnknownArgument {
        /// Qualified name of the function or class.
        callee: String,
        /// The argument.
        name: String,
    },
    /// Required arguments are not given.
    MissingArguments {
        /// Qualified name of the function or class.
        callee: String,
        /// The arguments.
        names: Vec<String>,
    },
    /// More positional arguments are given than are taken.
    TooManyArguments {
        /// Qualified name of the function or class.
        callee: String,
        /// The number that is taken at most.
        takes: usize,
    },
    /// The framework says that it is deprecated.
    Deprecated {
        /// The name or argument.
        name: String,
        /// The framework's message.
        message: String,
    },
}

/// The releases that a use was judged against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The package.
    pub package: &'static str,
    /// True if the project says its version.
    pub pinned: bool,
    /// The oldest version.
    pub oldest: &'static str,
    /// The newest version.
    pub newest: &'static str,
}

/// The arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Arguments<'a> {
    /// The number of positional arguments; `None` if it is not known.
    pub positional: Option<usize>,
    /// The names of keyword arguments.
    pub keywords: Vec<&'a str>,
    /// True if there may be other keyword arguments.
    pub more_keywords: bool,
}

/// The releases to ask: those of the project, or one release of a package.
#[derive(Clone, Copy)]
struct View<'a> {
    api: &'a Api<'a>,
    at: Option<(&'static str, u16)>,
}

/// Result of resolving a qualified name.
enum Found {
    Unknown,
    Missing { within: String, name: String, class: bool, table: &'static Table },
    NoModule { table: &'static Table },
    Module,
    Definition(Definition),
    Member { class: Definition, name: String, members: Vec<&'static Member>, table: &'static Table },
}

/// A function or class in the releases of a view.
#[derive(Clone)]
struct Definition {
    table: &'static Table,
    module_name: String,
    name: String,
    module: &'static Module,
    entries: Vec<&'static Entry>,
    /// The table and the message of a deprecation on the way here.
    deprecated: Option<(&'static Table, &'static str)>,
}

/// Result of asking for a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Yes,
    No,
    Dropped,
    Unknown,
}

/// The classes of which attributes are looked up, in order.
struct Mro {
    classes: Vec<Definition>,
    /// Bases of which no table tells.
    outside: Vec<String>,
}

const MAX_DEPTH: usize = 24;

/// Attributes that every pydantic model has beside those that begin with `model_`.
const MODEL_ATTRIBUTES: &[&str] = &[
    "construct",
    "copy",
    "dict",
    "from_orm",
    "json",
    "parse_file",
    "parse_obj",
    "parse_raw",
    "schema",
    "schema_json",
    "update_forward_refs",
    "validate",
    "Config",
];

impl<'a> Api<'a> {
    /// `pin` gives the requirement that a project states for a package. Without one, the releases of the last
    /// year count.
    pub fn new(pin: impl Fn(&str) -> Option<Requirement> + 'a) -> Api<'a> {
        Api { pin: Box::new(pin), views: RefCell::default() }
    }

    /// Returns true if a text contains the first name of a module that a table tells of. A text that doesn't
    /// can't import one.
    pub fn may_be_named(text: &str) -> bool {
        crate::table::roots().any(|root| text.contains(root))
    }

    /// Returns true if a table tells of a module.
    pub fn knows(module: &str) -> bool {
        crate::table::is_root(module)
    }

    /// The name at the top of the packages that have a module: `agents`, `google.adk`.
    pub fn root(module: &str) -> Option<&'static str> {
        crate::table::root_of(module)
    }

    /// The packages that may have a module.
    pub fn packages(module: &str) -> impl Iterator<Item = &'static str> {
        tables_of(module).flat_map(|table| std::iter::once(table.package).chain(table.also.iter().copied()))
    }

    /// Returns true if a package that may have a module is found under the name of the module's root.
    /// `agents` of `openai-agents` is not: that name alone does not tell that the package is meant.
    ///
    /// # Examples
    /// ```
    /// use framework_api::Api;
    /// assert!(Api::is_named_after_its_package("langchain_core.tools"));
    /// assert!(!Api::is_named_after_its_package("agents.models"));
    /// ```
    pub fn is_named_after_its_package(module: &str) -> bool {
        let Some(root) = Api::root(module) else { return false };
        let root = root.replace(['_', '.'], "-");
        Api::packages(module).any(|package| package == root)
    }

    /// The fault of `from MODULE import NAME`, or of `import MODULE`.
    pub fn import(&self, module: &str, name: Option<&str>) -> Option<Fault> {
        let ask = |view: View<'_>| match name {
            Some(name) => view.lookup(module, name, 0),
            None => view.module(module),
        };
        let path = name.map_or(module.to_string(), |n| format!("{module}.{n}"));
        let mut faults = self.judge(&path, &ask, None);
        faults.pop()
    }

    /// The faults of a use of a qualified name.
    pub fn name(&self, qualified: &str, arguments: Option<&Arguments<'_>>) -> Vec<Fault> {
        let ask = |view: View<'_>| view.path(qualified, 0);
        self.judge(qualified, &ask, arguments)
    }

    /// The faults of a use of an attribute of an instance of a class.
    pub fn member(&self, class: &str, name: &str, arguments: Option<&Arguments<'_>>) -> Vec<Fault> {
        let ask = |view: View<'_>| match view.path(class, 0) {
            Found::Definition(class) if class.is_class() => view.member(class, name),
            _ => Found::Unknown,
        };
        self.judge(&format!("{class}.{name}"), &ask, arguments)
    }

    /// Asks the releases of the project, and for each fault the others.
    fn judge(
        &self,
        path: &str,
        ask: &dyn Fn(View<'_>) -> Found,
        arguments: Option<&Arguments<'_>>,
    ) -> Vec<Fault> {
        let here = View { api: self, at: None };
        let found = ask(here);
        let raised = here.faults(path, &found, arguments);
        raised
            .into_iter()
            .map(|(kind, raises, table)| {
                let (releases, pinned) = self.view(table);
                let (first, last) = releases.ends().unwrap_or((0, 0));
                let again = |number: u16| {
                    let view = View { api: self, at: Some((table.package, number)) };
                    let found = ask(view);
                    !matches!(found, Found::Unknown)
                        && view.faults(path, &found, arguments).iter().any(|(k, ..)| same(k, &kind))
                };
                let before = (0..first).rev().find(|n| !again(*n));
                let since = before.map(|n| table.version(n + 1));
                // Of a class of which nothing is known it is not said that it takes more.
                let is_open = |number: u16| {
                    let found = ask(View { api: self, at: Some((table.package, number)) });
                    matches!(found, Found::Definition(d) if d.classes().any(|c| c.open))
                };
                let until = (last + 1..table.releases.len() as u16)
                    .find(|n| !again(*n))
                    .filter(|n| {
                        matches!(kind, FaultKind::NoModule | FaultKind::NoName { .. }) || !is_open(*n)
                    })
                    .map(|n| table.version(n));
                let judged = Judged {
                    package: table.package,
                    pinned,
                    oldest: table.version(first),
                    newest: table.version(last),
                };
                let moved = self.moved(path, &kind, table, before);
                let instead = here.instead(&kind, &found, table, before, ask);
                Fault { kind, raises, judged, since, until, moved, instead }
            })
            .collect()
    }

    fn view(&self, table: &'static Table) -> (Releases, bool) {
        if let Some(view) = self.views.borrow().get(table.package) {
            return view.clone();
        }
        let pin = std::iter::once(&table.package).chain(&table.also).find_map(|p| (self.pin)(p));
        let view = match pin {
            Some(Requirement::Releases(releases)) => (table.matching(&releases), true),
            Some(Requirement::Unreleased) => (Releases::default(), true),
            None => (table.recent(), false),
        };
        self.views.borrow_mut().insert(table.package, view.clone());
        view
    }

    /// The module that defined a missing name when it was there, if it still has it.
    fn moved(
        &self,
        path: &str,
        kind: &FaultKind,
        table: &'static Table,
        before: Option<u16>,
    ) -> Option<String> {
        let name = match kind {
            FaultKind::NoName { name, class: false, .. } => name.as_str(),
            FaultKind::NoModule => path.rsplit('.').next()?,
            _ => return None,
        };
        let then = View { api: self, at: Some((table.package, before?)) };
        let Found::Definition(old) = then.path(path, 0) else { return None };
        let here = View { api: self, at: None };
        let is_public = !old.module_name.split('.').any(|p| p.starts_with('_'));
        let is_there = || matches!(here.path(&old.qualified(), 0), Found::Definition(_));
        (is_public && old.name == name && is_there()).then_some(old.module_name)
    }
}

fn same(a: &FaultKind, b: &FaultKind) -> bool {
    match (a, b) {
        (FaultKind::MissingArguments { .. }, FaultKind::MissingArguments { .. })
        | (FaultKind::TooManyArguments { .. }, FaultKind::TooManyArguments { .. }) => true,
        (FaultKind::UnknownArgument { name: a, .. }, FaultKind::UnknownArgument { name: b, .. })
        | (FaultKind::Deprecated { name: a, .. }, FaultKind::Deprecated { name: b, .. }) => a == b,
        (FaultKind::NoModule | FaultKind::NoName { .. }, FaultKind::NoModule | FaultKind::NoName { .. }) => {
            true
        }
        _ => false,
    }
}

impl Definition {
    fn is_class(&self) -> bool {
        self.entries.iter().all(|e| matches!(e.kind, EntryKind::Class(_)))
    }

    fn classes(&self) -> impl Iterator<Item = &'static Class> {
        self.entries.iter().filter_map(|e| match &e.kind {
            EntryKind::Class(class) => Some(class),
            _ => None,
        })
    }

    fn qualified(&self) -> String {
        format!("{}.{}", self.module_name, self.name)
    }
}

impl View<'_> {
    fn releases(&self, table: &'static Table) -> Releases {
        match self.at {
            Some((package, number)) if package == table.package => Releases::one(number),
            _ => self.api.view(table).0,
        }
    }

    /// The kinds of a module in the view, and the table that has it.
    fn kinds(&self, module: &str) -> Vec<(&'static Table, ModuleKind)> {
        let mut out = Vec::new();
        for table in tables_of(module) {
            let Some(found) = table.module(module) else { continue };
            let releases = self.releases(table);
            if releases.is_empty() {
                // Some version that the table does not have.
                out.push((table, ModuleKind::Open));
            }
            out.extend(found.is.iter().filter(|(_, r)| r.meets(&releases)).map(|(k, _)| (table, *k)));
        }
        out
    }

    /// Looks a module up.
    fn module(&self, module: &str) -> Found {
        if !self.kinds(module).is_empty() {
            return Found::Module;
        }
        let mut above = module;
        while let Some((parent, child)) = above.rsplit_once('.') {
            if child.starts_with('_') {
                return Found::Unknown;
            }
            let kinds = self.kinds(parent);
            if let Some((table, _)) = kinds.first() {
                let closed = kinds.iter().all(|(_, k)| matches!(k, ModuleKind::File | ModuleKind::Package));
                // A lazy package may still have no such module, but one that adds names may add modules.
                return if closed { Found::NoModule { table } } else { self.gone(module) };
            }
            above = parent;
        }
        Found::Unknown
    }

    /// Looks up a module below a folder that several packages fill. It is missing if a table has it in other
    /// releases.
    fn gone(&self, module: &str) -> Found {
        let mut had =
            tables_of(module).filter(|t| t.module(module).is_some() && !self.releases(t).is_empty());
        match had.next() {
            Some(table) => Found::NoModule { table },
            None => Found::Unknown,
        }
    }

    /// A name of a module.
    fn lookup(&self, module: &str, name: &str, depth: usize) -> Found {
        if depth > MAX_DEPTH {
            return Found::Unknown;
        }
        let kinds = self.kinds(module);
        if kinds.is_empty() {
            return self.module(module);
        }
        for (table, _) in &kinds {
            let releases = self.releases(table);
            let Some(found) = table.module(module) else { continue };
            let entries: Vec<&'static Entry> =
                found.names.get(name).into_iter().flatten().filter(|e| e.releases.meets(&releases)).collect();
            if !entries.is_empty() {
                return self.follow(table, module, found, name, entries, depth);
            }
        }
        if !self.kinds(&format!("{module}.{name}")).is_empty() {
            return Found::Module;
        }
        let closed = kinds.iter().all(|(_, k)| matches!(k, ModuleKind::File | ModuleKind::Package));
        match kinds.first() {
            Some((table, _)) if closed && !name.starts_with('_') => {
                Found::Missing { within: module.to_string(), name: name.to_string(), class: false, table }
            }
            _ => Found::Unknown,
        }
    }

    fn follow(
        &self,
        table: &'static Table,
        module_name: &str,
        module: &'static Module,
        name: &str,
        entries: Vec<&'static Entry>,
        depth: usize,
    ) -> Found {
        let note = entries.iter().all(|e| e.deprecated.is_some()).then(|| entries[0].deprecated).flatten();
        let note = note.map(|n| (table, n));
        let definition = |entries| {
            let (name, module_name) = (name.to_string(), module_name.to_string());
            Found::Definition(Definition { table, module_name, name, module, entries, deprecated: note })
        };
        let all = |test: fn(&EntryKind) -> bool| entries.iter().all(|e| test(&e.kind));
        if all(|k| matches!(k, EntryKind::Alias(_))) {
            let mut last = Found::Unknown;
            for entry in &entries {
                let EntryKind::Alias(target) = entry.kind else { continue };
                match self.path(target, depth + 1) {
                    Found::Definition(mut found) => {
                        found.deprecated = note.or(found.deprecated);
                        last = Found::Definition(found);
                    }
                    Found::Module => return Found::Module,
                    // What another package has, or does not have, is judged where it is imported from that.
                    _ if note.is_none() => return Found::Unknown,
                    _ => {}
                }
            }
            return match (last, note) {
                (Found::Unknown, Some(_)) => definition(entries),
                (last, _) => last,
            };
        }
        let alike = all(|k| matches!(k, EntryKind::Function(_))) || all(|k| matches!(k, EntryKind::Class(_)));
        if alike || note.is_some() { definition(entries) } else { Found::Unknown }
    }

    /// Resolves a qualified name.
    fn path(&self, qualified: &str, depth: usize) -> Found {
        if depth > MAX_DEPTH || tables_of(qualified).next().is_none() {
            return Found::Unknown;
        }
        // The longest module that some release has.
        let mut module = qualified;
        let known = |m: &str| tables_of(m).any(|t| t.module(m).is_some());
        while !known(module) {
            match module.rsplit_once('.') {
                Some((parent, _)) => module = parent,
                None => return Found::Unknown,
            }
        }
        // A function or class of a package hides the module of its name.
        while let Some((parent, name)) = module.rsplit_once('.')
            && (self.kinds(module).is_empty() && !self.kinds(parent).is_empty() || self.defines(parent, name))
        {
            module = parent;
        }
        if self.kinds(module).is_empty() {
            return self.module(module);
        }
        let Some(rest) = qualified.get(module.len() + 1..) else { return Found::Module };
        let (name, rest) = rest.split_once('.').unwrap_or((rest, ""));
        match self.lookup(module, name, depth) {
            found if rest.is_empty() => found,
            Found::Definition(class) if class.is_class() && !rest.contains('.') => self.member(class, rest),
            found @ Found::Missing { .. } => found,
            _ => Found::Unknown,
        }
    }

    /// Returns true if a module itself defines or imports a name that is not one of its modules.
    fn defines(&self, module: &str, name: &str) -> bool {
        tables_of(module).any(|table| {
            let releases = self.releases(table);
            let entries = table.module(module).and_then(|m| m.names.get(name));
            entries.into_iter().flatten().any(|e| {
                e.releases.meets(&releases) && !matches!(e.kind, EntryKind::Value)
                    && !matches!(e.kind, EntryKind::Alias(target) if tables_of(target).any(|t| t.module(target).is_some()))
            })
        })
    }

    fn mro(&self, class: &Definition) -> Mro {
        let mut out = Mro { classes: Vec::new(), outside: Vec::new() };
        self.bases(class, &mut out, 0);
        out
    }

    fn bases(&self, class: &Definition, out: &mut Mro, depth: usize) {
        if depth > MAX_DEPTH || out.classes.iter().any(|c| c.qualified() == class.qualified()) {
            return;
        }
        out.classes.push(class.clone());
        let mut bases: Vec<&'static str> = Vec::new();
        for base in class.classes().flat_map(|c| &c.bases) {
            if !bases.contains(base) {
                bases.push(base);
            }
        }
        for base in bases {
            match self.path(base, 0) {
                Found::Definition(base) if base.is_class() => self.bases(&base, out, depth + 1),
                _ => out.outside.push(base.to_string()),
            }
        }
    }

    /// The members of a name that one class itself has in the view.
    fn own(&self, class: &Definition, name: &str) -> Vec<&'static Member> {
        let releases = self.releases(class.table);
        let members = class.module.members.get(class.name.as_str()).and_then(|m| m.get(name));
        members.into_iter().flatten().filter(|m| m.releases.meets(&releases)).collect()
    }

    /// All members that one class itself has in the view, with their names.
    fn members(&self, class: &Definition) -> impl Iterator<Item = (&'static str, &'static Member)> + use<> {
        let releases = self.releases(class.table);
        let names = class.module.members.get(class.name.as_str()).into_iter().flatten();
        names
            .flat_map(|(name, members)| members.iter().map(|m| (*name, m)))
            .filter(move |(_, m)| m.releases.meets(&releases))
    }

    fn member(&self, class: Definition, name: &str) -> Found {
        let mro = self.mro(&class);
        for c in &mro.classes {
            let members = self.own(c, name);
            if !members.is_empty() {
                let table = c.table;
                return Found::Member { class, name: name.to_string(), members, table };
            }
        }
        let closed = mro.outside.iter().all(|b| is_model(b))
            && mro
                .classes
                .iter()
                .flat_map(Definition::classes)
                .all(|c| !c.open && !c.dynamic && c.extra != Some(Extra::Allowed));
        let given = name.starts_with('_')
            || !mro.outside.is_empty() && (name.starts_with("model_") || MODEL_ATTRIBUTES.contains(&name));
        if !closed || given {
            return Found::Unknown;
        }
        Found::Missing { within: class.qualified(), name: name.to_string(), class: true, table: class.table }
    }

    /// The faults of what was found, each with the table that tells.
    fn faults(
        &self,
        path: &str,
        found: &Found,
        arguments: Option<&Arguments<'_>>,
    ) -> Vec<(FaultKind, bool, &'static Table)> {
        let mut out = Vec::new();
        match found {
            Found::Unknown | Found::Module => {}
            Found::NoModule { table } => out.push((FaultKind::NoModule, true, *table)),
            Found::Missing { within, name, class, table } => {
                let (within, name) = (within.clone(), name.clone());
                out.push((FaultKind::NoName { within, name, class: *class }, true, *table));
            }
            Found::Definition(definition) => {
                let last = path.rsplit('.').next().unwrap_or(path);
                if let Some((table, message)) = definition.deprecated {
                    let kind = FaultKind::Deprecated { name: last.to_string(), message: message.to_string() };
                    out.push((kind, false, table));
                }
                let Some(arguments) = arguments else { return out };
                if definition.is_class() {
                    self.construction(path, definition, arguments, &mut out);
                } else {
                    let signatures: Option<Vec<&Signature>> = definition
                        .entries
                        .iter()
                        .map(|e| match &e.kind {
                            EntryKind::Function(signature) => Some(signature),
                            _ => None,
                        })
                        .collect();
                    if let Some(signatures) = signatures {
                        fits(path, &signatures, arguments, false, definition.table, &mut out);
                    }
                }
            }
            Found::Member { class, name, members, table } => {
                let callee = format!("{}.{name}", class.name);
                if members.iter().all(|m| m.deprecated.is_some())
                    && let Some(message) = members[0].deprecated
                {
                    let kind = FaultKind::Deprecated { name: callee.clone(), message: message.to_string() };
                    out.push((kind, false, *table));
                }
                let Some(arguments) = arguments else { return out };
                let signatures: Option<Vec<&Signature>> = members
                    .iter()
                    .map(|m| match &m.kind {
                        MemberKind::Method(signature) => Some(signature),
                        _ => None,
                    })
                    .collect();
                if let Some(signatures) = signatures {
                    // `Class.method(x)` of a qualified name may pass `self`.
                    let unbound = path.ends_with(&format!(".{callee}"));
                    let class_call =
                        unbound && path.starts_with(class.module_name.split('.').next().unwrap_or(""));
                    fits(&callee, &signatures, arguments, class_call, table, &mut out);
                }
            }
        }
        out
    }

    /// The faults of a call of a class.
    fn construction(
        &self,
        path: &str,
        class: &Definition,
        arguments: &Arguments<'_>,
        out: &mut Vec<(FaultKind, bool, &'static Table)>,
    ) {
        let mro = self.mro(class);
        for name in &arguments.keywords {
            let takes = self.takes(&mro, name);
            if matches!(takes, Takes::No | Takes::Dropped) && !name.starts_with('_') {
                let kind = FaultKind::UnknownArgument { callee: path.to_string(), name: name.to_string() };
                out.push((kind, takes == Takes::No, class.table));
            }
            if takes == Takes::Yes {
                let fields = mro.classes.iter().find_map(|c| {
                    let own = self.own(c, name);
                    (!own.is_empty()).then_some((c.table, own))
                });
                if let Some((table, own)) = fields
                    && own
                        .iter()
                        .all(|m| m.deprecated.is_some() && matches!(m.kind, MemberKind::Field { .. }))
                    && let Some(message) = own[0].deprecated
                {
                    let kind = FaultKind::Deprecated { name: name.to_string(), message: message.to_string() };
                    out.push((kind, false, table));
                }
            }
        }
        // Positional and required arguments, where one signature tells.
        if let Some(signatures) = self.initializer(&mro) {
            let few = Arguments { keywords: arguments.keywords.clone(), ..*arguments };
            let mut found = Vec::new();
            fits(path, &signatures, &few, false, class.table, &mut found);
            found.retain(|(k, ..)| !matches!(k, FaultKind::UnknownArgument { .. }));
            out.extend(found);
        } else if self.is_plain_model(&mro) {
            if arguments.positional.is_some_and(|n| n > 0) {
                let kind = FaultKind::TooManyArguments { callee: path.to_string(), takes: 0 };
                out.push((kind, true, class.table));
            }
            if arguments.more_keywords
                || mro.classes.iter().flat_map(Definition::classes).any(|c| c.before.is_some())
                || mro.outside.iter().any(|b| b.contains(".v1.") || b.contains("pydantic_v1"))
            {
                return;
            }
            let missing: Vec<String> = self
                .required(&mro)
                .into_iter()
                .filter(|(name, aliases)| {
                    !arguments.keywords.iter().any(|k| k == name || aliases.contains(k))
                })
                .map(|(name, _)| name.to_string())
                .collect();
            if !missing.is_empty() {
                let kind = FaultKind::MissingArguments { callee: path.to_string(), names: missing };
                out.push((kind, true, class.table));
            }
        }
    }

    /// Asks a constructor for a keyword, in the releases of the view.
    fn takes(&self, mro: &Mro, name: &str) -> Takes {
        let classes = || mro.classes.iter().flat_map(Definition::classes);
        if mro.classes.iter().any(|c| c.classes().any(|c| c.open)) {
            return Takes::Unknown;
        }
        let outside = mro.outside.iter().any(|b| !is_model(b));
        for class in &mro.classes {
            let init = self.own(class, "__init__");
            let signatures: Vec<&Signature> = init
                .iter()
                .filter_map(|m| match &m.kind {
                    MemberKind::Method(signature) => Some(signature),
                    _ => None,
                })
                .collect();
            if !signatures.is_empty() {
                // Before or after the releases that have it, the bases decide.
                let mut goes_on = !covered(&init, &self.releases(class.table));
                let mut dropped = false;
                for signature in &signatures {
                    match keyword(signature, name) {
                        Some(takes @ (Takes::Yes | Takes::Unknown)) => return takes,
                        Some(Takes::Dropped) => dropped = true,
                        Some(Takes::No) => {}
                        None => goes_on = true,
                    }
                }
                if !goes_on {
                    // Pydantic replaces the constructor of a data class: its own is for type checkers.
                    let replaced = || class.classes().filter(|c| c.is_data).filter_map(|c| c.extra);
                    return if replaced().any(|e| e == Extra::Allowed) {
                        Takes::Unknown
                    } else if dropped || replaced().any(|e| e == Extra::Ignored) {
                        Takes::Dropped
                    } else {
                        Takes::No
                    };
                }
            }
            let fields = self.own(class, "__fields__");
            for member in &fields {
                if let MemberKind::Fields(signature) = &member.kind
                    && signature.params.iter().any(|p| p.name == name)
                {
                    return Takes::Yes;
                }
            }
            if self.own(class, name).iter().any(|m| matches!(m.kind, MemberKind::Field { .. })) {
                return Takes::Yes;
            }
            let is_alias =
                |m: &Member| matches!(&m.kind, MemberKind::Field { aliases, .. } if aliases.contains(&name));
            if self.members(class).any(|(_, m)| is_alias(m)) {
                return Takes::Yes;
            }
        }
        if outside {
            return Takes::Unknown;
        }
        let before =
            classes().filter_map(|c| c.before.as_ref()).any(|n| n.contains(&"*") || n.contains(&name));
        if before {
            return Takes::Unknown;
        }
        if mro.outside.is_empty() {
            // The nearest data class has the constructor. One of pydantic states what is done with others.
            let data = mro.classes.iter().find(|c| c.classes().any(|c| c.is_data));
            let extra = || data.iter().flat_map(|d| d.classes()).filter_map(|c| c.extra);
            return if extra().any(|e| e == Extra::Allowed) {
                Takes::Unknown
            } else if extra().any(|e| e == Extra::Ignored) {
                Takes::Dropped
            } else {
                Takes::No
            };
        }
        match classes().find_map(|c| c.extra) {
            Some(Extra::Forbidden) if classes().filter_map(|c| c.extra).all(|e| e == Extra::Forbidden) => {
                Takes::No
            }
            Some(Extra::Allowed) => Takes::Unknown,
            _ if classes().any(|c| c.extra == Some(Extra::Allowed)) => Takes::Unknown,
            _ => Takes::Dropped,
        }
    }

    /// The signatures of the first constructor, if it alone takes the arguments.
    fn initializer(&self, mro: &Mro) -> Option<Vec<&'static Signature>> {
        if mro.classes.iter().any(|c| c.classes().any(|c| c.open)) {
            return None;
        }
        for (i, class) in mro.classes.iter().enumerate() {
            let releases = self.releases(class.table);
            for name in ["__init__", "__fields__"] {
                let own = self.own(class, name);
                if own.is_empty() {
                    continue;
                }
                // Fields of bases come before those of a data class.
                if !covered(&own, &releases) || name == "__fields__" && mro.classes.len() > i + 1 {
                    return None;
                }
                return own
                    .iter()
                    .map(|m| match &m.kind {
                        MemberKind::Method(s) | MemberKind::Fields(s) => Some(s),
                        _ => None,
                    })
                    .collect();
            }
            if i == 0 && class.classes().any(|c| c.is_data) {
                return None;
            }
        }
        None
    }

    /// Returns true if the constructor is that of a pydantic model.
    fn is_plain_model(&self, mro: &Mro) -> bool {
        !mro.outside.is_empty()
            && mro.outside.iter().all(|b| is_model(b))
            && mro
                .classes
                .iter()
                .all(|c| self.own(c, "__init__").is_empty() && c.classes().all(|c| !c.open && !c.is_data))
    }

    /// The fields of a model that every release of the view requires, with their aliases.
    fn required(&self, mro: &Mro) -> Vec<(&'static str, Vec<&'static str>)> {
        let mut seen: Vec<&str> = Vec::new();
        let mut out = Vec::new();
        for class in &mro.classes {
            let releases = self.releases(class.table);
            let mut names: Vec<&'static str> = self.members(class).map(|(name, _)| name).collect();
            names.sort_unstable();
            for name in names {
                let own = self.own(class, name);
                if seen.contains(&name) {
                    continue;
                }
                seen.push(name);
                let is_required = |m: &&Member| matches!(m.kind, MemberKind::Field { required: true, .. });
                if own.iter().all(is_required) && covered(&own, &releases) {
                    let aliases = own.iter().flat_map(|m| match &m.kind {
                        MemberKind::Field { aliases, .. } => aliases.clone(),
                        _ => Vec::new(),
                    });
                    out.push((name, aliases.collect()));
                }
            }
        }
        out
    }

    /// Replacement of a name or argument that is missing.
    fn instead(
        &self,
        kind: &FaultKind,
        found: &Found,
        table: &'static Table,
        before: Option<u16>,
        ask: &dyn Fn(View<'_>) -> Found,
    ) -> Option<String> {
        let (name, mut now) = match (kind, found) {
            (FaultKind::UnknownArgument { name, .. }, _) => (name, self.parameters(found)),
            (FaultKind::NoName { name, class: false, within }, _) => {
                let releases = self.releases(table);
                let names = table.module(within).map(|m| &m.names);
                let here = names
                    .into_iter()
                    .flatten()
                    .filter(|(_, e)| e.iter().any(|e| e.releases.meets(&releases)));
                (name, here.map(|(n, _)| n.to_string()).collect())
            }
            (FaultKind::NoName { name, class: true, within }, _) => {
                let Found::Definition(class) = self.path(within, 0) else { return None };
                let mut names = Vec::new();
                for class in &self.mro(&class).classes {
                    let public = self.members(class).map(|(n, _)| n).filter(|n| !n.starts_with("__"));
                    names.extend(public.map(String::from));
                }
                (name, names)
            }
            _ => return None,
        };
        // The only one that came with the release that dropped it.
        if let (FaultKind::UnknownArgument { .. }, Some(before)) = (kind, before) {
            let view = |n| View { api: self.api, at: Some((table.package, n)) };
            let (then, after) = (view(before), view(before + 1));
            let (old, new) = (then.parameters(&ask(then)), after.parameters(&ask(after)));
            let gone: Vec<&String> = old.iter().filter(|n| !new.contains(n)).collect();
            let came: Vec<&String> = new.iter().filter(|n| !old.contains(n) && now.contains(n)).collect();
            if let ([_], [came]) = (&gone[..], &came[..]) {
                return Some(came.to_string());
            }
        }
        // Of names that are as near the first one, always the same.
        now.sort_unstable();
        diagnostics::nearest(name, now.iter().map(String::as_str)).map(String::from)
    }

    /// The keyword parameters of what was found.
    fn parameters(&self, found: &Found) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut add =
            |s: &Signature| out.extend(s.params.iter().filter(|p| p.keyword).map(|p| p.name.to_string()));
        match found {
            Found::Definition(definition) if definition.is_class() => {
                let mut fields = Vec::new();
                for class in &self.mro(definition).classes {
                    for name in ["__init__", "__fields__"] {
                        for member in self.own(class, name) {
                            if let MemberKind::Method(s) | MemberKind::Fields(s) = &member.kind {
                                add(s);
                            }
                        }
                    }
                    let own = self.members(class).filter(|(_, m)| matches!(m.kind, MemberKind::Field { .. }));
                    fields.extend(own.map(|(n, _)| n.to_string()));
                }
                out.extend(fields);
            }
            Found::Definition(definition) => {
                for entry in &definition.entries {
                    if let EntryKind::Function(s) = &entry.kind {
                        add(s);
                    }
                }
            }
            Found::Member { members, .. } => {
                for member in members {
                    if let MemberKind::Method(s) = &member.kind {
                        add(s);
                    }
                }
            }
            _ => {}
        }
        out.sort();
        out.dedup();
        out
    }
}

/// Returns true if a base class is pydantic's model, of either version.
fn is_model(base: &str) -> bool {
    matches!(
        base,
        "pydantic.BaseModel"
            | "pydantic.main.BaseModel"
            | "pydantic.v1.BaseModel"
            | "pydantic.v1.main.BaseModel"
    )
}

/// Returns true if members together cover all releases of a set.
fn covered(members: &[&Member], releases: &Releases) -> bool {
    let Some((first, last)) = releases.ends() else { return false };
    (first..=last)
        .map(Releases::one)
        .filter(|r| r.meets(releases))
        .all(|r| members.iter().any(|m| m.releases.meets(&r)))
}

/// Asks a signature for a keyword; `None` if the constructor of the base decides.
fn keyword(signature: &Signature, name: &str) -> Option<Takes> {
    if signature.unknown {
        return Some(Takes::Unknown);
    }
    if signature.params.iter().any(|p| p.keyword && p.name == name) {
        return Some(Takes::Yes);
    }
    match &signature.rest {
        None => Some(Takes::No),
        Some(Rest::Any) => Some(Takes::Unknown),
        Some(Rest::Raises(names)) => Some(if names.contains(&name) { Takes::Yes } else { Takes::No }),
        Some(Rest::Ignores(names)) => Some(if names.contains(&name) { Takes::Yes } else { Takes::Dropped }),
        Some(Rest::Base(names)) if names.contains(&name) => Some(Takes::Yes),
        Some(Rest::Base(_)) => None,
    }
}

/// The faults of arguments that none of some signatures fits.
fn fits(
    callee: &str,
    signatures: &[&Signature],
    arguments: &Arguments<'_>,
    unbound: bool,
    table: &'static Table,
    out: &mut Vec<(FaultKind, bool, &'static Table)>,
) {
    if signatures.iter().any(|s| s.unknown) {
        return;
    }
    for name in &arguments.keywords {
        let takes: Vec<Takes> =
            signatures.iter().map(|s| keyword(s, name).unwrap_or(Takes::Unknown)).collect();
        if takes.iter().all(|t| matches!(t, Takes::No | Takes::Dropped)) {
            let raises = !takes.contains(&Takes::Dropped);
            let kind = FaultKind::UnknownArgument { callee: callee.to_string(), name: name.to_string() };
            out.push((kind, raises, table));
        }
    }
    let Some(positional) = arguments.positional.filter(|_| !unbound) else { return };
    let most =
        |s: &&Signature| if s.args { usize::MAX } else { s.params.iter().filter(|p| p.positional).count() };
    let takes = signatures.iter().map(most).max().unwrap_or(usize::MAX);
    if positional > takes {
        let kind = FaultKind::TooManyArguments { callee: callee.to_string(), takes };
        out.push((kind, true, table));
        return;
    }
    if arguments.more_keywords {
        return;
    }
    let missing = |s: &&Signature| -> Vec<&'static str> {
        let given = s.params.iter().filter(|p| p.positional).take(positional).map(|p| p.name);
        let given: Vec<&str> = given.chain(arguments.keywords.iter().copied()).collect();
        s.params.iter().filter(|p| p.required && !given.contains(&p.name)).map(|p| p.name).collect()
    };
    let all: Vec<Vec<&str>> = signatures.iter().map(missing).collect();
    if let Some(fewest) = all.iter().min_by_key(|m| m.len())
        && !fewest.is_empty()
    {
        let names = fewest.iter().map(|n| n.to_string()).collect();
        out.push((FaultKind::MissingArguments { callee: callee.to_string(), names }, true, table));
    }
}
