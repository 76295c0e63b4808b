//! Uses of frameworks in a module of Python, judged against the versions that its project may have.
//!
//! Entry points: [`concerns`] tells whether a module is worth asking, [`findings`] applies the rules about
//! uses.
//!
//! Invariant: quiet where the module may know better: guarded imports, names that it sets, modules of the
//! project that shadow a package.

use crate::{Check, RULES, Rule};
use diagnostics::{Applicability, Diagnostic, Fix, Level, Span, clip};
use framework_api::{Api, Arguments, Fault, FaultKind, Requirement};
use frontend_kit::{File, Project, Versions};
use python::{CallUse, ImportUse, Target};
use std::collections::HashSet;

/// A use of a framework that goes wrong.
pub(crate) enum Misuse {
    /// The framework has no such name, takes no such arguments, or deprecates it.
    Fault(Box<FaultyUse>),
    /// The module has the name of the package, so that Python may find the module in its place.
    Hidden {
        /// First name of the package's modules.
        package: String,
        /// Place of the first import of one of them.
        span: Span,
    },
}

/// A use that is at fault.
pub(crate) struct FaultyUse {
    pub fault: Fault,
    /// Place of the name or argument.
    pub span: Span,
    /// The name as the module writes it.
    pub name: String,
    /// The repair, where one edit is enough.
    pub fix: Option<Fix>,
}

impl FaultyUse {
    /// The finding of a rule about this use: its level, versions, remedy and repair.
    pub(crate) fn finding(&self, rule: &Rule, message: String, raises: bool) -> Diagnostic {
        let mut d = rule.finding(message, self.span);
        let judged = &self.fault.judged;
        // Without a pin, a name that was there before may be there where the program runs.
        let certain = judged.pinned || self.fault.since.is_none() && self.fault.until.is_none();
        d.level = match (raises, certain) {
            (true, true) => Level::Error,
            (true, false) => Level::Warn,
            (false, _) => rule.level,
        };
        if let Some(moved) = &self.fault.moved {
            d.help.push(format!("import it from `{moved}`"));
        } else if let Some(instead) = &self.fault.instead {
            d.help.push(format!("the nearest name is `{instead}`"));
        }
        let package = judged.package;
        if let Some(since) = self.fault.since {
            d.help.push(format!("{package} {since} changed it"));
        } else if let Some(until) = self.fault.until {
            d.help.push(format!("it came with {package} {until}"));
        }
        if !judged.pinned {
            d.help.push(format!(
                "no version of {package} is pinned: judged against {} to {}",
                judged.oldest, judged.newest
            ));
        }
        d.fix = self.fix.clone();
        d
    }

    /// The versions that the use was judged against.
    pub(crate) fn versions(&self) -> String {
        let judged = &self.fault.judged;
        if judged.oldest == judged.newest || !judged.pinned {
            format!("{} {}", judged.package, judged.newest)
        } else {
            format!("{} {} to {}", judged.package, judged.oldest, judged.newest)
        }
    }
}

/// Returns true if a module imports a framework that has a table.
pub fn concerns(file: &File) -> bool {
    let Some(source) = &file.python else { return false };
    // A text without any of the names imports none, and need not be parsed.
    Api::may_be_named(&source.text)
        && source.imported().iter().any(|i| i.level == 0 && i.qualified().any(|name| Api::knows(&name)))
}

/// The findings of the rules about uses in the first file of a project.
pub(crate) fn findings(project: &Project) -> Vec<Diagnostic> {
    let Some(file) = project.files.first().filter(|f| concerns(f)) else { return Vec::new() };
    let hides = |_: &&str| !is_in_package(&file.path, project);
    let hidden = own_name_imported(file).filter(hides).and_then(|package| {
        let imports = &file.python.as_ref()?.uses().imports;
        let first = imports.iter().find(|i| !i.guarded && first_name(&i.module) == package)?;
        Some(Misuse::Hidden { package: package.to_string(), span: first.module_span })
    });
    let mut out = Vec::new();
    for misuse in
        hidden.into_iter().chain(faulty(file, project).into_iter().map(|used| Misuse::Fault(Box::new(used))))
    {
        for rule in RULES {
            if let Check::Use(check) = rule.check {
                out.extend(check(rule, &misuse));
            }
        }
    }
    out
}

/// The first part of a qualified name.
fn first_name(qualified: &str) -> &str {
    qualified.split('.').next().unwrap_or(qualified)
}

/// The name of a module of Python, if the module imports a package of that name: its name is an accident, and
/// what it imports is meant to be the package.
fn own_name_imported(file: &File) -> Option<&str> {
    let name = file.path.rsplit(['/', '\\']).next()?.strip_suffix(".py")?;
    let imported = file.python.as_ref()?.imported();
    let is_own = |full: &str| first_name(full) == name && Api::knows(full);
    imported.iter().any(|i| i.level == 0 && i.qualified().any(|full| is_own(&full))).then_some(name)
}

/// Returns true if a folder has an `__init__.py` in the project.
fn is_package(folder: &str, project: &Project) -> bool {
    let initializer = format!("{folder}__init__.py");
    project.files.iter().any(|other| other.python.is_some() && other.path == initializer)
}

/// Returns true if the folder of a file, or one around it, is a package of the project. What is in one is
/// imported by a longer name, and as a rule not run as a program.
fn is_in_package(path: &str, project: &Project) -> bool {
    path.char_indices()
        .filter(|(_, c)| matches!(c, '/' | '\\'))
        .any(|(at, _)| is_package(&path[..=at], project))
}

/// The requirement of a package: an exact version, the bounds of a range, or a source that is no release.
fn requirement(versions: &Versions, package: &str) -> Option<Requirement> {
    if versions.is_unreleased(package) {
        return Some(Requirement::Unreleased);
    }
    if let Some(exact) = versions.exact(package) {
        return Some(Requirement::Releases(format!("=={exact}")));
    }
    let least = versions.of(package).map(|v| format!(">={v}"));
    let below = versions.below(package).map(|v| format!("<{v}"));
    match (least, below) {
        (None, None) => None,
        (least, below) => {
            let bounds: Vec<String> = [least, below].into_iter().flatten().collect();
            Some(Requirement::Releases(bounds.join(",")))
        }
    }
}

/// Returns true if a module of the project shadows one of a package.
fn is_shadowed(module: &str, project: &Project) -> bool {
    let path = module.replace('.', "/");
    let root = path.split('/').next().unwrap_or(&path);
    // `google` is shared by many distributions; what is below it decides.
    let roots = [format!("{root}/__init__.py"), format!("{root}.py")];
    let whole = [format!("{path}/__init__.py"), format!("{path}.py")];
    project.files.iter().filter(|f| f.python.is_some()).any(|f| {
        let folder = roots.iter().chain(&whole).find_map(|suffix| folder_of(&f.path, suffix));
        folder.is_some_and(|folder| !is_package(folder, project)) && own_name_imported(f).is_none()
    })
}

/// The folder in which a path has a relative path: all before it, up to a separator.
fn folder_of<'p>(path: &'p str, relative: &str) -> Option<&'p str> {
    path.strip_suffix(relative).filter(|folder| folder.is_empty() || folder.ends_with(['/', '\\']))
}

/// The folders in which a path goes through a relative path that ends in a separator.
fn folders_through<'p>(path: &'p str, relative: &str) -> impl Iterator<Item = &'p str> {
    let before = path.match_indices(relative).map(|(at, _)| &path[..at]);
    before.filter(|folder| folder.is_empty() || folder.ends_with(['/', '\\']))
}

/// Returns true if an import of a framework's module finds, or may be meant to find, one of the project.
///
/// A folder or module shadows a package by Python's rules if it has an `__init__.py` and any folder around it
/// is on the path, which depends on the program that runs. A folder without one gives way to an installed
/// package. Whether that is installed is known only if its modules have its name or the project requires it.
fn is_local(import: &ImportUse, project: &Project) -> bool {
    if is_shadowed(&import.module, project) {
        return true;
    }
    let Some(root) = Api::root(&import.module) else { return false };
    let root = format!("{}/", root.replace('.', "/"));
    let module = format!("{}/", import.module.replace('.', "/"));
    let named = import.name.as_ref().map(|name| format!("{module}{name}/"));
    // Below the root a module is found by its whole path.
    let below = [Some(module).filter(|m| *m != root), named];
    let modules = || project.files.iter().filter(|f| f.python.is_some());
    let mut found: Vec<&str> = Vec::new();
    for whole in below.iter().flatten() {
        let as_file = format!("{}.py", whole.trim_end_matches('/'));
        found.extend(modules().filter_map(|f| folder_of(&f.path, &as_file)));
        found.extend(modules().flat_map(|f| folders_through(&f.path, whole)));
    }
    let telling = Api::is_named_after_its_package(&import.module);
    if found.iter().any(|folder| !telling || is_package(&format!("{folder}{root}"), project)) {
        return true;
    }
    let required = || Api::packages(&import.module).any(|package| project.versions.names(package));
    if telling || required() {
        return false;
    }
    // A folder without `__init__.py` has no names but those of its modules.
    let only_root = import.name.is_some() && below[0].is_none();
    modules().any(|f| {
        folders_through(&f.path, &root)
            .any(|folder| !only_root || is_package(&format!("{folder}{root}"), project))
    })
}

fn faulty(file: &File, project: &Project) -> Vec<FaultyUse> {
    let Some(source) = &file.python else { return Vec::new() };
    let uses = source.uses();
    let api = Api::new(|package| requirement(&project.versions, package));
    let mut out: Vec<FaultyUse> = Vec::new();
    let known = || uses.imports.iter().filter(|import| Api::knows(&import.module));
    let local: HashSet<&str> = known()
        .filter(|import| uses.patched.contains(&import.module) || is_local(import, project))
        .map(|import| first_name(&import.module))
        .collect();
    // A name such as `agents` may be anything: it is the package's if the requirements say so, or if the
    // package has another name that is imported from there.
    let fits = |import: &&ImportUse| {
        import.name.is_some() && api.import(&import.module, import.name.as_deref()).is_none()
    };
    let meant: HashSet<&str> = known().filter(fits).map(|import| first_name(&import.module)).collect();
    let is_meant = |module: &str| {
        Api::is_named_after_its_package(module)
            || Api::packages(module).any(|package| project.versions.names(package))
            || meant.contains(first_name(module))
    };
    let mut imported: HashSet<String> = HashSet::new();
    // Imports that fail: what is done with their names is no finding of its own.
    let mut failed: HashSet<String> = HashSet::new();
    for import in known().filter(|import| !local.contains(first_name(&import.module))) {
        let path = import.name.as_ref().map_or(import.module.clone(), |n| format!("{}.{n}", import.module));
        imported.insert(path.clone());
        if import.guarded || uses.patched.contains(&path) {
            continue;
        }
        if let Some(fault) = api.import(&import.module, import.name.as_deref()) {
            if matches!(fault.kind, FaultKind::NoModule | FaultKind::NoName { .. }) {
                failed.insert(path.clone());
                if !is_meant(&import.module) {
                    continue;
                }
            }
            let no_module = matches!(fault.kind, FaultKind::NoModule);
            let span = if no_module { import.module_span } else { import.span };
            let fix =
                fault.moved.as_ref().filter(|_| import.alone && import.name.is_some()).map(|moved| Fix {
                    span: import.module_span,
                    replacement: moved.clone(),
                    applicability: Applicability::Safe,
                });
            let name = if no_module { import.module.clone() } else { import.name.clone().unwrap_or(path) };
            // One module that is missing is one finding.
            if !(no_module && out.iter().any(|u| u.span == span)) {
                out.push(FaultyUse { fault, span, name, fix });
            }
        }
    }
    for used in uses.names.iter().filter(|u| !u.guarded) {
        let qualified = match &used.target {
            Target::Name(name) => name.clone(),
            Target::Member { class, name } => format!("{class}.{name}"),
        };
        let root = first_name(&qualified);
        let last = qualified.rsplit('.').next().unwrap_or(&qualified);
        let of_failed = |f: &String| {
            qualified.strip_prefix(f.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('.'))
        };
        if !Api::knows(&qualified)
            || failed.iter().any(of_failed)
            || local.contains(root)
            || uses.patched.contains(last)
            || uses.patched.iter().any(|p| p.contains('.') && qualified.starts_with(p.as_str()))
        {
            continue;
        }
        let arguments = used.call.as_ref().map(arguments);
        let faults = match &used.target {
            Target::Name(name) => api.name(name, arguments.as_ref()),
            Target::Member { class, name } => api.member(class, name, arguments.as_ref()),
        };
        for fault in faults {
            let of_import = match &fault.kind {
                FaultKind::NoModule => true,
                FaultKind::NoName { within, name, .. } => imported.contains(&format!("{within}.{name}")),
                FaultKind::Deprecated { .. } => imported.contains(&qualified),
                _ => false,
            };
            if of_import {
                continue;
            }
            let argument = match &fault.kind {
                FaultKind::UnknownArgument { name, .. } | FaultKind::Deprecated { name, .. } => {
                    used.call.iter().flat_map(|c| &c.keywords).find(|(n, _)| n == name)
                }
                _ => None,
            };
            let span = argument.map_or(used.span, |(_, at)| *at);
            // That the new argument means the same is not known.
            let fix = match (&fault.kind, argument, &fault.instead) {
                (FaultKind::UnknownArgument { .. }, Some((_, at)), Some(instead)) => {
                    let given = used.call.iter().flat_map(|c| &c.keywords).any(|(n, _)| n == instead);
                    (!given).then(|| Fix {
                        span: *at,
                        replacement: instead.clone(),
                        applicability: Applicability::Unsafe,
                    })
                }
                _ => None,
            };
            out.push(FaultyUse { fault, span, name: last.to_string(), fix });
        }
    }
    out
}

fn arguments(call: &CallUse) -> Arguments<'_> {
    Arguments {
        positional: (!call.spread).then_some(call.positional),
        keywords: call.keywords.iter().map(|(name, _)| name.as_str()).collect(),
        more_keywords: call.keywords_spread,
    }
}

/// A name in backticks, shortened.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", clip(name))
}
