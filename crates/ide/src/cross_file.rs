//! Names across files: where an agent of a configuration, or a declaration of a program, is named in the
//! files beside it.
//!
//! Entry point: [`same`]. A configuration in YAML or JSON declares names of agents, tasks and nodes; other
//! configurations name them as values, modules of Python as texts (and, where such a text is, as functions
//! and members of that name), and programs after `use agent "file" "name"`. Programs name what another one
//! declares that they `use`.
//!
//! Invariant: a name belongs to the declaration that is nearest in the tree of folders. Where two are as
//! near, it is not renamed.

use crate::analysis::Language;
use crate::names::{Kind, MAIN, Names, Occurrence};
use diagnostics::{FileId, normal_path};
use frontend_kit::File;
use frontend_kit::doc::{Limits, Node};
use python::names::Role;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use syntax::agent::ast::{Item, StrLit, UseSource, UsedNames};

/// A file with its text, as the editor has it or as it lies on the disk.
pub(crate) type Text = (String, Arc<str>);

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which of the files.
    pub(crate) file: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) declares: bool,
}

/// Named item at a place.
#[derive(Debug)]
pub(crate) struct SameName {
    pub(crate) name: String,
    /// Every place of it, in the order of the files.
    pub(crate) places: Vec<Place>,
    /// Which of them was asked about.
    pub(crate) here: usize,
    /// Reason why the name can't be changed, if it can't.
    pub(crate) fixed: Option<String>,
    /// True if the name has to be a word that Python or a program accepts.
    pub(crate) word: bool,
}

/// Returns the item that the first file names at a place, and its references in the others.
pub(crate) fn same(files: &[Text], offset: usize) -> Option<SameName> {
    match Language::of(&files.first()?.0) {
        Language::Agent => in_programs(files, offset).or_else(|| imported(files, offset)),
        Language::Config | Language::Python => {
            let found = words(0, &files[0]).into_iter().find(|w| w.contains(offset))?;
            in_configurations(files, &found)
        }
        Language::Lam => None,
    }
}

/// The names that the files' configurations declare, for completion.
pub(crate) fn declared(files: &[Text]) -> Vec<String> {
    let all = files.iter().enumerate().flat_map(|(i, f)| words(i, f));
    let mut names: Vec<String> = all.filter(|w| w.declares).map(|w| w.text).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the start of the file that a program names at a place.
pub(crate) fn file_named(files: &[Text], offset: usize) -> Option<usize> {
    let (path, text) = files.first()?;
    let program = syntax::agent::parse(MAIN, text).0;
    let inside = |s: &StrLit| (s.span.start as usize..=s.span.end as usize).contains(&offset);
    let named = program.items.iter().find_map(|item| match item {
        Item::Use(u) if inside(&u.path) => Some(&u.path),
        Item::Import(i) if inside(&i.path) => Some(&i.path),
        _ => None,
    })?;
    let wanted = joined(path, &named.value);
    let at = |(i, (p, _)): (usize, &Text)| (normal_path(p) == wanted).then_some(i);
    // Of a folder, its first file.
    let below = |(i, (p, _)): (usize, &Text)| normal_path(p).starts_with(&format!("{wanted}/")).then_some(i);
    files.iter().enumerate().find_map(at).or_else(|| files.iter().enumerate().find_map(below))
}

// ----- configurations and modules -----

/// A word of a configuration or a module.
#[derive(Clone, Debug)]
struct Word {
    file: usize,
    text: String,
    start: usize,
    end: usize,
    declares: bool,
    /// A function or member of Python: a name only where the module has it as a text, too.
    code: bool,
}

impl Word {
    fn contains(&self, offset: usize) -> bool {
        (self.start..=self.end).contains(&offset)
    }

    fn place(&self) -> Place {
        Place { file: self.file, start: self.start, end: self.end, declares: self.declares }
    }
}

/// Keys by which the mapping of an agent, a task or a node is known.
const MARKS: &[&str] = &[
    "role",
    "goal",
    "backstory",
    "instruction",
    "instructions",
    "expected_output",
    "system_prompt",
    "systemPrompt",
    "system_message",
    "prompt",
    "_type",
    "agent_class",
    "llm_config",
    "description",
];
/// Keys of mappings that are parts of a format, not things with names.
const PARTS: &[&str] = &[
    "workflow",
    "config",
    "data",
    "spec",
    "metadata",
    "agent",
    "general",
    "parameters",
    "settings",
    "app",
    "graph",
    "model",
    "llm",
    "mcp",
];
/// Keys under which an item says its name.
const NAMES: &[&str] = &["id", "agentId", "agent_name", "name", "node_name"];
/// Keys under which a text is prose, or names something else.
const PROSE: &[&str] = &[
    "role",
    "goal",
    "backstory",
    "instruction",
    "instructions",
    "description",
    "expected_output",
    "system_prompt",
    "systemPrompt",
    "system_message",
    "prompt",
    "title",
    "label",
    "model",
    "llm",
    "type",
    "_type",
    "kind",
    "version",
    "framework",
];

/// The words of a file that may be names.
fn words(file: usize, (path, text): &Text) -> Vec<Word> {
    match Language::of(path) {
        Language::Python => of_module(file, path, text),
        Language::Config => of_configuration(file, path, text),
        Language::Agent => of_imports(file, text),
        Language::Lam => Vec::new(),
    }
}

fn of_module(file: usize, path: &str, text: &Arc<str>) -> Vec<Word> {
    let source = python::Source::new(FileId(0), path, text.clone());
    let found = python::names::mentions(&source).into_iter();
    let words = found.map(|m| Word {
        file,
        start: m.span.start as usize,
        end: m.span.end as usize,
        declares: m.role == Role::Named,
        code: matches!(m.role, Role::Defined | Role::Member),
        text: m.text,
    });
    words.collect()
}

/// The units that a program imports by name.
fn of_imports(file: usize, text: &str) -> Vec<Word> {
    let program = syntax::agent::parse(MAIN, text).0;
    let units = program.items.iter().filter_map(|item| match item {
        Item::Import(i) => i.unit.as_ref(),
        _ => None,
    });
    units.filter_map(|unit| literal(file, text, unit)).collect()
}

fn literal(file: usize, text: &str, of: &StrLit) -> Option<Word> {
    let (start, end) = (of.span.start as usize + 1, (of.span.end as usize).checked_sub(1)?);
    let plain = text.get(start..end) == Some(of.value.as_str());
    plain.then(|| Word { file, text: of.value.clone(), start, end, declares: false, code: false })
}

fn of_configuration(file: usize, path: &str, text: &Arc<str>) -> Vec<Word> {
    let read = File::read(FileId(0), path, text, &Limits::default());
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |node: Node<'_>, declares: bool| {
        let span = node.span();
        let (mut start, mut end) = (span.start as usize, span.end as usize);
        let Some(written) = text.get(start..end) else { return };
        if written.starts_with(['"', '\'']) && written.len() >= 2 {
            (start, end) = (start + 1, end - 1);
        }
        // A text with escapes or line breaks is not a name.
        let Some(word) = node.text().filter(|t| text.get(start..end) == Some(*t) && is_name(t)) else {
            return;
        };
        if seen.insert(start) {
            out.push(Word { file, text: word.to_string(), start, end, declares, code: false });
        }
    };
    for document in read.documents.iter() {
        // A node, and the key that it stands under.
        let mut left = vec![(document.root(), String::new(), 0usize)];
        let mut visited = HashSet::new();
        while let Some((node, key, depth)) = left.pop() {
            if !visited.insert(node.id()) {
                continue;
            }
            if node.is_mapping() {
                let known = MARKS.iter().any(|m| node.get(m).is_some());
                if (known || key == "metadata" || node.get("type").is_some())
                    && let Some(name) = NAMES.iter().find_map(|n| node.get(n))
                {
                    add(name, true);
                }
                for e in node.entries().filter(|e| !e.merged) {
                    let of_a_thing = e.value.is_mapping()
                        && depth < 4
                        && !PARTS.contains(&e.name())
                        && MARKS.iter().any(|m| e.value.get(m).is_some());
                    if of_a_thing {
                        add(e.key, true);
                    }
                    left.push((e.value, e.name().to_string(), depth + 1));
                }
            } else if node.is_sequence() {
                left.extend(node.items().map(|item| (item, key.clone(), depth + 1)));
            } else if !PROSE.contains(&key.as_str()) {
                add(node, false);
            }
        }
    }
    out.sort_by_key(|w: &Word| w.start);
    out
}

/// Returns true if a text may be a name: short, on one line, of words.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    !text.trim().is_empty()
        && text.len() <= 80
        && text.chars().all(fits)
        && text.starts_with(char::is_alphabetic)
}

/// Finds the uses of a word of a configuration or module.
fn in_configurations(files: &[Text], asked: &Word) -> Option<SameName> {
    let mut all: Vec<Word> = files
        .iter()
        .enumerate()
        // Most files do not have the word at all.
        .filter(|(_, (_, text))| text.contains(&asked.text))
        .flat_map(|(i, f)| words(i, f))
        .filter(|w| w.text == asked.text)
        .collect();
    // A configuration declares; a module does where no configuration does.
    let by_file = |w: &&Word| w.declares && Language::of(&files[w.file].0) == Language::Config;
    let configured: HashSet<usize> = all.iter().filter(by_file).map(|w| w.file).collect();
    let declaring: HashSet<usize> = match configured.is_empty() {
        false => configured,
        true => all.iter().filter(|w| w.declares).map(|w| w.file).collect(),
    };
    if declaring.is_empty() {
        return None;
    }
    let as_text: HashSet<usize> = all.iter().filter(|w| !w.code).map(|w| w.file).collect();
    all.retain(|w| !w.code || as_text.contains(&w.file));
    let nearest = |file: usize| -> Vec<usize> {
        let near = |d: usize| if d == file { usize::MAX } else { common(&files[d].0, &files[file].0) };
        let most = declaring.iter().map(|d| near(*d)).max().unwrap_or(0);
        let mut of: Vec<usize> = declaring.iter().copied().filter(|d| near(*d) == most).collect();
        of.sort_unstable();
        of
    };
    let home = nearest(asked.file);
    let mut fixed = (home.len() > 1).then(|| format!("several files declare `{}`", asked.text));
    let mut places: Vec<Place> = Vec::new();
    let mut word = false;
    for w in &all {
        let of = nearest(w.file);
        if of.iter().any(|d| home.contains(d)) {
            if of.len() > 1 && fixed.is_none() {
                fixed = Some(format!("several files declare `{}`", asked.text));
            }
            word |= w.code;
            let declares = w.declares && declaring.contains(&w.file);
            places.push(Place { declares, ..w.place() });
        }
    }
    let here = places.iter().position(|p| p.file == asked.file && p.start == asked.start)?;
    places.iter().any(|p| p.declares).then(|| SameName {
        name: asked.text.clone(),
        places,
        here,
        fixed,
        word,
    })
}

/// Item that a program imports by name, in the configuration that declares it.
fn imported(files: &[Text], offset: usize) -> Option<SameName> {
    let found = of_imports(0, &files[0].1).into_iter().find(|w| w.contains(offset))?;
    in_configurations(files, &found)
}

/// Returns the number of common parent folders of two paths.
fn common(a: &str, b: &str) -> usize {
    let folders = |p: &str| -> Vec<String> {
        let mut parts: Vec<String> = normal_path(p).split('/').map(String::from).collect();
        parts.pop();
        parts
    };
    let (a, b) = (folders(a), folders(b));
    a.iter().zip(&b).take_while(|(x, y)| x == y).count()
}

// ----- programs -----

/// An import of a program by another, by their numbers.
struct Edge {
    from: usize,
    to: usize,
    names: UsedNames,
}

/// Meaning of a name: a declaration of the programs that share their names, or a name of one file.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    /// By the first of these programs.
    Shared(usize, String),
    Local(usize, String),
}

/// The programs that hang together.
struct Programs {
    edges: Vec<Edge>,
    /// The first of the programs with which each shares its names.
    shares: HashMap<usize, usize>,
}

impl Programs {
    fn new(files: &[Text]) -> Programs {
        let paths: HashMap<String, usize> =
            files.iter().enumerate().map(|(i, (p, _))| (normal_path(p), i)).collect();
        let mut edges = Vec::new();
        for (from, (p, t)) in
            files.iter().enumerate().filter(|(_, (p, _))| Language::of(p) == Language::Agent)
        {
            if from != 0 && !t.contains("use") {
                continue;
            }
            for item in syntax::agent::parse(MAIN, t).0.items {
                if let Item::Use(u) = item
                    && u.source == UseSource::File
                    && let Some(to) = paths.get(&joined(p, &u.path.value))
                {
                    edges.push(Edge { from, to: *to, names: u.names });
                }
            }
        }
        let mut programs = Programs { edges, shares: HashMap::new() };
        for i in 0..files.len() {
            if !programs.shares.contains_key(&i) {
                for member in programs.around(i, |e| matches!(e.names, UsedNames::All)) {
                    programs.shares.insert(member, i);
                }
            }
        }
        programs
    }

    /// The programs that imports of a kind connect with this one, in their order.
    fn around(&self, of: usize, follows: impl Fn(&Edge) -> bool) -> Vec<usize> {
        let mut together = vec![of];
        let mut next = 0;
        while let Some(at) = together.get(next).copied() {
            next += 1;
            for e in self.edges.iter().filter(|e| (e.from == at || e.to == at) && follows(e)) {
                let other = if e.from == at { e.to } else { e.from };
                if !together.contains(&other) {
                    together.push(other);
                }
            }
        }
        together.sort_unstable();
        together
    }

    fn shared(&self, file: usize, text: &str) -> Meaning {
        Meaning::Shared(self.shares.get(&file).copied().unwrap_or(file), text.to_string())
    }

    /// The meaning of a name in a file; `None` if it is one of a file that is not here.
    fn meaning(&self, file: usize, o: &Occurrence) -> Option<Meaning> {
        let mut edges = self.edges.iter().filter(|e| e.from == file);
        if let Some(import) = &o.behind {
            let is_it = |e: &&Edge| matches!(&e.names, UsedNames::Behind(name) if name.text == *import);
            return Some(self.shared(edges.find(is_it)?.to, &o.text));
        }
        match o.kind {
            Kind::Renamed => return Some(Meaning::Local(file, o.text.clone())),
            Kind::Taken => {
                let has = |e: &&Edge| match &e.names {
                    UsedNames::These(names) => names.iter().any(|n| n.name.span == o.span),
                    _ => false,
                };
                return Some(self.shared(edges.find(has)?.to, &o.text));
            }
            _ => {}
        }
        let taken = edges.find_map(|e| match &e.names {
            UsedNames::These(names) => Some((e.to, names.iter().find(|n| n.local().text == o.text)?)),
            _ => None,
        });
        Some(match taken {
            Some((_, used)) if used.renamed.is_some() => Meaning::Local(file, o.text.clone()),
            Some((to, _)) => self.shared(to, &o.text),
            None => self.shared(file, &o.text),
        })
    }
}

/// Finds the uses of a declaration in its program and in the programs that use it.
fn in_programs(files: &[Text], offset: usize) -> Option<SameName> {
    let (_, text) = files.first()?;
    let own = Names::of(&syntax::agent::parse(MAIN, text).0);
    let across = |k: Kind| !matches!(k, Kind::Variable(_) | Kind::Policy | Kind::Import);
    let asked = own.at(offset).filter(|o| across(o.kind))?.clone();
    let programs = Programs::new(files);
    let meaning = programs.meaning(0, &asked)?;
    let named: Vec<(usize, Names)> = programs
        .around(0, |_| true)
        .into_iter()
        .map(|i| (i, Names::of(&syntax::agent::parse(MAIN, &files[i].1).0)))
        .collect();
    let mut same: Vec<(usize, &Occurrence)> = Vec::new();
    for (file, names) in &named {
        let all = names.all.iter().filter(|o| across(o.kind) && o.text == asked.text);
        same.extend(
            all.filter(|o| programs.meaning(*file, o).as_ref() == Some(&meaning)).map(|o| (*file, o)),
        );
    }
    let called = |k: Kind| matches!(k, Kind::Tool | Kind::Callable);
    let declares = |kind: Kind| same.iter().any(|(_, o)| o.declares && o.kind == kind);
    // A tool that another file declares looks like a task where it is called.
    let both = declares(Kind::Tool) && declares(Kind::Callable);
    // An import names declarations of all kinds, and a value behind one may be of several.
    let open = |o: &Occurrence| {
        matches!(o.kind, Kind::Taken | Kind::Renamed) || o.behind.is_some() && o.kind == Kind::Constant
    };
    let fits = |o: &Occurrence| {
        o.kind == asked.kind || !both && called(o.kind) && called(asked.kind) || open(o) || open(&asked)
    };
    let mut places = Vec::new();
    for (file, o) in same.iter().filter(|(_, o)| fits(o)) {
        let (start, end) = (o.span.start as usize, o.span.end as usize);
        places.push(Place { file: *file, start, end, declares: o.declares });
    }
    let here = places.iter().position(|p| p.file == 0 && p.start == asked.span.start as usize)?;
    Some(SameName { name: asked.text, places, here, fixed: None, word: true })
}

/// A path that is written in a file, from where that file is.
fn joined(from: &str, path: &str) -> String {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    normal_path(&folder.join(path).display().to_string())
}
