//! What a front end is given, and what it gives back.

use crate::doc::{self, Document, Format, Limits};
use crate::outline::Outline;
use crate::versions::Versions;
use core_ir::Code;
use diagnostics::{Diagnostic, FileId, Span};
use python::{Modules, normal};
use std::sync::Arc;

/// One file of a project, loaded.
#[derive(Clone, Debug)]
pub struct File {
    /// Its number.
    pub id: FileId,
    /// Its path as the user wrote it. A front end may compare folders; it never opens it.
    pub path: String,
    /// Its documents, see [`doc::load`]; shared, because a file is given to everything that is compiled among
    /// others.
    pub documents: Arc<[Document]>,
    /// What was wrong with its text.
    pub diagnostics: Vec<Diagnostic>,
    /// The module, if it is Python. Then there are no documents.
    pub python: Option<Arc<python::Source>>,
}

impl File {
    /// Loads a text. The path's extension says whether it is JSON, YAML or Python.
    pub fn read(id: FileId, path: &str, text: &Arc<str>, limits: &Limits) -> File {
        if File::is_python(path) {
            let python = Some(Arc::new(python::Source::new(id, path, text.clone())));
            return File {
                id,
                path: path.to_string(),
                documents: Arc::default(),
                diagnostics: Vec::new(),
                python,
            };
        }
        let loaded = doc::load(id, text, Format::of_path(path), limits);
        let (documents, diagnostics) = (loaded.documents, loaded.diagnostics);
        File { id, path: path.to_string(), documents: documents.into(), diagnostics, python: None }
    }

    /// Whether a path is that of a file that can be read here: YAML, JSON or Python by its extension.
    pub fn is_read(path: &str) -> bool {
        Format::of_path(path).is_some() || File::is_python(path)
    }

    /// Whether a path is that of a module of Python.
    pub fn is_python(path: &str) -> bool {
        path.ends_with(".py")
    }

    /// The folder it is in, without a closing slash; empty for none.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once(['/', '\\']).map_or("", |(f, _)| f)
    }
}

/// The modules of Python among files, to be evaluated once for all that import them: see
/// [`Project::modules`].
pub fn modules(files: &[File]) -> Arc<Modules> {
    Arc::new(Modules::new(python_of(files)))
}

fn python_of(files: &[File]) -> python::Sources {
    let mut sources = python::Sources::new();
    for module in files.iter().filter_map(|f| f.python.clone()) {
        sources.push(module);
    }
    sources
}

impl Project {
    /// The modules of Python among the files. What was parsed already stays parsed.
    pub fn python(&self) -> python::Sources {
        python_of(&self.files)
    }

    /// The loaded file that another names by a path relative to its own folder.
    pub fn beside(&self, from: &File, path: &str) -> Option<&File> {
        let wanted = join(from.folder(), path);
        // Few files have the name; the path of the others need not be looked at closely.
        let name = wanted.rsplit('/').next().unwrap_or(&wanted);
        self.files.iter().find(|f| f.path.ends_with(name) && normal(&f.path) == wanted)
    }
}

/// A path relative to a folder, without `.` and `..`.
pub fn join(folder: &str, path: &str) -> String {
    if path.starts_with('/') || folder.is_empty() {
        normal(path)
    } else {
        normal(&format!("{folder}/{path}"))
    }
}

/// The files that are compiled together: a crew's `agents.yaml` and `tasks.yaml`, say.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// The files.
    pub files: Vec<File>,
    /// The versions of packages, as far as lock files and requirements say them.
    pub versions: Versions,
    /// The modules of Python that can be imported, where several files of a project are compiled: what is
    /// evaluated for one is kept for the others. Those among [`Project::files`] if it is `None`.
    pub modules: Option<Arc<Modules>>,
}

/// A kind of configuration.
///
/// Adding one: a folder here with an implementation, a line in the registry of `frontends`, fixtures of
/// your own writing in `suite/frontends/NAME/`.
pub trait Frontend: Sync {
    /// The name used in diagnostics and statistics, such as `crewai`.
    fn name(&self) -> &'static str;

    /// How surely the content of a file is of this kind: 0 (not at all) to 100 (cannot be anything
    /// else). Reads the content only, never the path, and looks at a bounded part of it.
    fn detect(&self, file: &File) -> u8;

    /// Whether a configuration of this kind names modules of Python, which are compiled with it.
    fn names_modules(&self) -> bool {
        false
    }

    /// Whether a configuration of this kind refers to others of its folder, which are then to be among the
    /// files of its project.
    fn names_files(&self) -> bool {
        false
    }

    /// The keys of its agents and tasks that count, for editors; empty if they are not listed.
    fn fields(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Compiles file number `main` of the project; the other files are there to be referred to.
    /// Total: what cannot be compiled is an unknown term with a diagnostic.
    fn lower(&self, project: &Project, main: usize) -> Compiled;
}

/// What a configuration means.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The front end's name.
    pub framework: &'static str,
    /// What can be run: agents, and what is composed of them. In the order of the source.
    pub units: Vec<Unit>,
    /// What the source leaves to the framework, and the framework supplies.
    pub facts: Facts,
    /// What was wrong, odd or left out. Keys without a counterpart are here, at level info.
    pub diagnostics: Vec<Diagnostic>,
}

/// Something that can be run.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The agent's, task's or crew's name in the source.
    pub name: String,
    /// What it is.
    pub kind: UnitKind,
    /// Its term: a function from its input to its output.
    pub code: Arc<Code>,
    /// Where it is written.
    pub span: Span,
    /// The agents in it with the place that defines each, outer before inner.
    pub agents: Vec<AgentPlace>,
    /// How its parts hang together, where the term does not tell.
    pub outline: Outline,
}

impl Unit {
    /// The innermost agent that is defined around a place.
    pub fn agent_at(&self, span: Span) -> Option<&AgentPlace> {
        self.agents
            .iter()
            .filter(|a| a.span.file == span.file && a.span.start <= span.start && span.end <= a.span.end)
            .min_by_key(|a| a.span.end - a.span.start)
    }
}

/// What a [`Unit`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitKind {
    /// One agent, which may have others inside.
    Agent,
    /// Tasks carried out by agents.
    Crew,
}

/// Where an agent is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// Its name.
    pub name: String,
    /// Its definition, key included.
    pub span: Span,
}

/// What the framework itself adds to every agent. `None` where nothing is added: then the source
/// must say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Facts {
    /// Which model is asked if the source names none.
    pub default_model: Option<&'static str>,
    /// What ends a loop though the source does not say so.
    pub ends_loops: Option<&'static str>,
    /// What the parts of an agent are called, for advice.
    pub words: Words,
    /// Whether no framework is known to read the format. Its agents may have instructions of their own.
    pub any_reader: bool,
    /// Whether a loop that no reply ends is a group chat, even of one agent.
    pub chats: bool,
    /// Whether the user who talks with an agent is asked before each call of a tool, unless told otherwise.
    pub asks_user: bool,
    /// Whether somebody wrote the term itself. An identity in it is meant.
    pub written_term: bool,
    /// Limits of what a module of Python shows.
    pub code: CodeFacts,
}

/// Parts of a framework's runs that code decides. A module of Python may not show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CodeFacts {
    /// Whether edges are followed whatever a node returns. Otherwise the code of a node may end a run.
    pub fixed_edges: bool,
    /// Whether edges may be added elsewhere in the code.
    pub edges_elsewhere: bool,
    /// Whether the code that chooses the next speaker may end the chat.
    pub speakers_end: bool,
    /// The keyword or key that limits a run, wherever in a project runs begin.
    pub run_limit: Option<&'static str>,
}

/// Where a framework's users write the parts of an agent: what help texts name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Where the instructions stand.
    pub prompt: &'static str,
    /// Where the model is named.
    pub model: &'static str,
    /// Where a loop is bounded; empty if the format has no place for it.
    pub bound: &'static str,
    /// Where a circle that nothing bounds is bounded, if not there.
    pub round: &'static str,
    /// What gives a loop a way to return.
    pub exit: &'static str,
    /// The keys of the agent that lead to the list of its tools, and the tool in it that ends a loop, if
    /// there is one.
    pub ender: Option<(&'static [&'static str], &'static str)>,
    /// The keys of the agent that lead to the bound of its loop, where stating it is one entry more; the last
    /// is the keyword in code.
    pub stated: Option<&'static [&'static str]>,
    /// Where a loop is bounded that only goes on while its results are refused: its origin ends with
    /// `retries`.
    pub retries: &'static str,
}

impl Default for Words {
    fn default() -> Self {
        Words {
            prompt: "say what the agent is to do",
            model: "name one",
            bound: "",
            round: "",
            exit: "give the loop a way to return: a tool that ends it, or a reply that is the answer",
            ender: None,
            stated: None,
            retries: "",
        }
    }
}

/// What a file is.
#[derive(Clone, Copy)]
pub enum Recognised {
    /// A front end compiles it.
    Frontend(&'static dyn Frontend),
    /// It is the named format, which no front end compiles yet.
    Unsupported(&'static str),
    /// No agent configuration that is known here.
    Unknown,
}

impl std::fmt::Debug for Recognised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Recognised::Frontend(frontend) => write!(f, "Frontend({})", frontend.name()),
            Recognised::Unsupported(name) => write!(f, "Unsupported({name})"),
            Recognised::Unknown => f.write_str("Unknown"),
        }
    }
}

/// A function that decides by content what a file is. Drivers hand in that of the registry of all front ends.
pub type Recognise = fn(&File) -> Recognised;
