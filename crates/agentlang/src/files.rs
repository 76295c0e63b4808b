//! The files of a program: the one that is checked, and what it imports, directly or through others.
//!
//! All of them are one program with one set of names. Each file is part of it once, however often it is
//! imported.

use super::codes;
use super::library;
use super::scopes::{self, Link, Scopes};
use core_ir::Name;
use diagnostics::{Diagnostic, FileId, Span};
use frontend_kit::{Unit, UnitKind};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use syntax::agent::ast::{BodyKind, Comment, Import, Item, Program, Use, UseSource, UsedNames};

/// Maximum number of files of a program.
const MAX_FILES: usize = 1_000;

/// Opens the files that a program imports. Front ends open none themselves.
pub trait Loader {
    /// The file that `path`, as it is written in the file `from`, means, with its text. A file has the same
    /// number each time.
    ///
    /// # Errors
    /// Reason why there is no such text, for a message: `no such file`.
    fn load(&mut self, from: FileId, path: &str) -> Result<(FileId, Arc<str>), String>;

    /// The declarations of the tools of a server, as a file of the language. A server has the same
    /// number each time.
    ///
    /// # Errors
    /// Nothing is known of its tools.
    fn server(&mut self, _from: FileId, _name: &str) -> Result<(FileId, Arc<str>), NotImported> {
        Err(NotImported {
            why: "nothing is known of servers here".into(),
            help: "declare its tools: `tool name(…) -> Type { mcp \"server\" \"tool\" }`".into(),
        })
    }

    /// The functions of a module of Python as declarations of tools.
    ///
    /// # Errors
    /// There is no such module, or Python is not read here.
    fn python(&mut self, _from: FileId, _path: &str) -> Result<PythonModule, NotImported> {
        Err(NotImported {
            why: "modules of Python are not read here".into(),
            help: "declare its tools: `tool name(…) -> Type { python \"tools.py\" \"name\" }`".into(),
        })
    }

    /// A path of a file that is not imported, as written in the file `from`, relative to where the program
    /// is run.
    fn path(&self, _from: FileId, path: &str) -> String {
        path.into()
    }

    /// Returns the units of the configuration at `path`, as written in the file `from`. The first one is the
    /// main unit, if the configuration names one. A path may be that of a folder.
    ///
    /// # Errors
    /// Reason why there is nothing, for a message.
    fn units(&mut self, _from: FileId, _path: &str) -> Result<Vec<Unit>, String> {
        Err("configurations are not read here".into())
    }
}

/// Reason why something could not be imported, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotImported {
    /// The reason, for a message: `no such file`.
    pub why: String,
    /// The remedy.
    pub help: String,
}

/// The functions of a module of Python.
#[derive(Clone, Debug)]
pub struct PythonModule {
    /// Number of the declarations, the same each time. It is not that of the module.
    pub file: FileId,
    /// A file of the language that declares a tool for each function that can be one.
    pub text: Arc<str>,
    /// The other functions.
    pub withheld: Vec<WithheldFunction>,
}

/// A function that can't be a tool. That is an error only where a program names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldFunction {
    /// Its name.
    pub name: String,
    /// The reason, for a message: ``its parameter `x` has no type``.
    pub why: String,
    /// The remedy.
    pub help: String,
    /// Place of the reason in the module.
    pub at: Span,
}

/// A loader for programs of one file.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn load(&mut self, _: FileId, _: &str) -> Result<(FileId, Arc<str>), String> {
        Err("this program is a single text without other files".into())
    }
}

/// A file of a program.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) text: Arc<str>,
    pub(super) comments: Vec<Comment>,
    /// The names of declarations that could not be read.
    pub(super) unread: Vec<Name>,
}

/// The files of a program by number, what it imports from configurations, and what its names mean.
#[derive(Debug, Default)]
pub(super) struct Files(HashMap<FileId, SourceFile>, HashMap<Span, Unit>, Scopes);

impl Files {
    /// The text of a place.
    pub(super) fn text(&self, span: Span) -> Option<&str> {
        self.0.get(&span.file)?.text.get(span.start as usize..span.end as usize)
    }

    /// Returns true if a declaration of the name at a place could not be read, which has been reported.
    pub(super) fn is_unread(&self, place: Span) -> bool {
        let Some(name) = self.text(place) else { return false };
        self.0.values().any(|file| file.unread.iter().any(|unread| **unread == *name))
    }

    /// Returns the unit of an import, by the place of its declaration.
    pub(super) fn unit(&self, import: Span) -> Option<&Unit> {
        self.1.get(&import)
    }

    /// The names of the files.
    pub(super) fn scopes(&self) -> &Scopes {
        &self.2
    }

    pub(super) fn get(&self, file: FileId) -> Option<&SourceFile> {
        self.0.get(&file)
    }

    /// The comment on the lines directly above a declaration. It tells models what a tool or a variant is
    /// for.
    pub(super) fn comment_above(&self, declaration: Span) -> Option<Name> {
        let comments = &self.get(declaration.file)?.comments;
        let last = comments.partition_point(|c| c.span.end <= declaration.start);
        let mut lines = Vec::new();
        let mut below = declaration.start;
        for comment in comments[..last].iter().rev() {
            let between = self.text(Span { start: comment.span.end, end: below, ..declaration })?;
            if !comment.own_line || !between.trim().is_empty() || between.matches('\n').count() != 1 {
                break;
            }
            let text = self.text(comment.span)?;
            lines.push(text.trim_start_matches(['-', '/']).trim());
            below = comment.span.start;
        }
        lines.reverse();
        let text = lines.join(" ").trim().to_string();
        (!text.is_empty()).then(|| text.into())
    }
}

/// A file that is being read: its items, and how many of its imports have been followed.
struct Open {
    file: FileId,
    items: Vec<Item>,
    uses: Vec<Use>,
    next: usize,
}

/// Reads a file and all that it imports. What a file imports comes before it.
pub(super) fn collect(
    file: FileId,
    text: &str,
    loader: &mut dyn Loader,
    out: &mut Vec<Diagnostic>,
) -> (Program, Files) {
    let mut files = Files::default();
    let mut items = Vec::new();
    let (mut order, mut links) = (vec![file], Vec::new());
    let (main, whole) = open(file, text.into(), loader, &mut files, out);
    let mut withheld = HashMap::new();
    let mut path = vec![main];
    while let Some(top) = path.last_mut() {
        let Some(import) = top.uses.get(top.next).cloned() else {
            items.extend(path.pop().map_or(Vec::new(), |done| done.items));
            continue;
        };
        top.next += 1;
        let from = top.file;
        if files.0.len() >= MAX_FILES {
            out.push(
                Diagnostic::error(
                    codes::NOT_IMPORTED,
                    format!("a program of more than {MAX_FILES} files"),
                    import.path.span,
                )
                .help("this and further imports were not followed"),
            );
            break;
        }
        let loaded = read(&import, from, loader);
        match loaded {
            Err(why) => {
                let message =
                    format!("can't import `{}`: {}", diagnostics::clip(&import.path.value), why.why);
                let d = Diagnostic::error(codes::NOT_IMPORTED, message, import.path.span);
                out.push(d.help(why.help));
                links.push(Link { from, to: None, import });
            }
            Ok(Loaded { file: found, text, functions }) => {
                withheld.entry(found).or_insert(functions);
                links.push(Link { from, to: Some(found), import });
                if let Some(at) = path.iter().position(|f| f.file == found) {
                    cycle(&path[at..], out);
                } else if !files.0.contains_key(&found) {
                    order.push(found);
                    path.push(open(found, text, loader, &mut files, out).0);
                }
            }
        }
    }
    // Left over only if there are too many files.
    items.extend(path.into_iter().rev().flat_map(|f| f.items));
    for item in &items {
        if let Item::Import(i) = item {
            match loader.units(i.span.file, &i.path.value).and_then(|units| choose(i, units)) {
                Ok(unit) => {
                    files.1.insert(i.span, unit);
                }
                Err(why) => out.push(
                    Diagnostic::error(
                        codes::NOT_IMPORTED,
                        format!("can't import `{}`: {why}", diagnostics::clip(&i.path.value)),
                        i.path.span,
                    )
                    .help("the path is relative to the folder of this file"),
                ),
            }
        }
    }
    let mut program = Program { items, unread: Vec::new(), comments: Vec::new(), span: whole };
    files.2 = scopes::resolve(&mut program, &order, links, withheld, out);
    (program, files)
}

/// The file that an import is of.
struct Loaded {
    file: FileId,
    text: Arc<str>,
    /// Functions of a module that are no tools.
    functions: Vec<WithheldFunction>,
}

fn read(import: &Use, from: FileId, loader: &mut dyn Loader) -> Result<Loaded, NotImported> {
    let path = &import.path.value;
    let because = |why: String, help: &str| NotImported { why, help: help.into() };
    let loaded = match import.source {
        UseSource::Server => loader.server(from, path),
        UseSource::Python => {
            let PythonModule { file, text, withheld } = loader.python(from, path)?;
            return Ok(Loaded { file, text, functions: withheld });
        }
        UseSource::File => match library::load(path) {
            Some(own) => own
                .map(|(file, text)| (file, text.into()))
                .map_err(|why| because(why, "a path with `std:` is one of the standard library")),
            None => loader
                .load(from, path)
                .map_err(|why| because(why, "the path is relative to the folder of this file")),
        },
    };
    loaded.map(|(file, text)| Loaded { file, text, functions: Vec::new() })
}

/// Returns whether two imports of one file say the same of its names.
fn alike(a: &Use, b: &Use) -> bool {
    a.source == b.source
        && a.path.value == b.path.value
        && std::mem::discriminant(&a.names) == std::mem::discriminant(&b.names)
}

/// The unit that is meant: the one of the name, or else the first of the kind.
fn choose(import: &Import, units: Vec<Unit>) -> Result<Unit, String> {
    let names = || units.iter().map(|u| format!("`{}`", u.name)).collect::<Vec<_>>().join(", ");
    let crew = import.kind.text != "agent";
    let wanted = match &import.unit {
        Some(name) => units.iter().position(|u| u.name == name.value),
        None => {
            let fits = |u: &&Unit| (u.kind == UnitKind::Crew) == crew;
            let mut fitting = units.iter().filter(fits);
            match (fitting.next(), fitting.next()) {
                (Some(_), Some(_)) if !crew => {
                    return Err(format!(
                        "it defines several agents: {}; say which one, in quotes after the path",
                        names()
                    ));
                }
                (Some(one), _) => units.iter().position(|u| u.name == one.name),
                // A single unit is what is meant, whatever it is called.
                (None, _) if units.len() == 1 => Some(0),
                (None, _) => None,
            }
        }
    };
    match (wanted, &import.unit) {
        (Some(i), _) => Ok(units.into_iter().nth(i).expect("the position was found in the list")),
        (None, _) if units.is_empty() => Err("it defines nothing that can be run".into()),
        (None, Some(name)) => {
            Err(format!("it defines no `{}`, but {}", diagnostics::clip(&name.value), names()))
        }
        (None, None) => Err(format!("it defines no {}, but {}", import.kind.text, names())),
    }
}

fn open(
    file: FileId,
    text: Arc<str>,
    loader: &dyn Loader,
    files: &mut Files,
    out: &mut Vec<Diagnostic>,
) -> (Open, Span) {
    let (mut program, found) = syntax::agent::parse(file, &text);
    out.extend(found);
    for item in &mut program.items {
        if let Item::Tool(c) | Item::Task(c) = item
            && let BodyKind::Python(module, _) = &mut c.body.kind
        {
            module.value = loader.path(file, &module.value);
        }
    }
    let mut uses: Vec<Use> = Vec::new();
    let mut seen = HashSet::new();
    for item in &program.items {
        let Item::Use(u) = item else { continue };
        if seen.insert((u.source, &u.path.value, std::mem::discriminant(&u.names))) {
            uses.push(u.clone());
            continue;
        }
        let mut d = Diagnostic::error(
            codes::DUPLICATE,
            format!("`{}` is imported twice", diagnostics::clip(&u.path.value)),
            u.path.span,
        );
        if let Some(first) = uses.iter().find(|f| alike(f, u)) {
            d = d.remark(first.path.span, "first here");
        }
        out.push(d.help(match u.names {
            UsedNames::These(_) => "name all that is needed in one of them",
            UsedNames::All | UsedNames::Behind(_) => "remove one of them",
        }));
    }
    let unread = program.unread.iter().map(|name| name.text.as_str().into()).collect();
    files.0.insert(file, SourceFile { text, comments: program.comments, unread });
    (Open { file, items: program.items, uses, next: 0 }, program.span)
}

/// Files each of which imports the next, and the last the first.
fn cycle(path: &[Open], out: &mut Vec<Diagnostic>) {
    let mut imports = path.iter().filter_map(|f| f.uses.get(f.next.checked_sub(1)?));
    let Some(first) = imports.next() else { return };
    let mut d = Diagnostic::error(
        codes::IMPORT_CYCLE,
        format!("importing `{}` imports this file again", diagnostics::clip(&first.path.value)),
        first.path.span,
    );
    let mut alone = true;
    for other in imports {
        d = d.remark(other.path.span, "through this");
        alone = false;
    }
    out.push(d.help(if alone {
        "remove it: a file knows itself"
    } else {
        "put what both files need into a third one that imports neither"
    }));
}
