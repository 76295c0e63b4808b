//! Interface of a front end: its input and its output.

use crate::doc::{self, Document, Format, Limits};
use crate::outline::Outline;
#[cfg(not(feature = "python"))]
use crate::python;
use crate::versions::Versions;
use core_ir::Code;
use diagnostics::{Diagnostic, FileId, Span, normal_path};
use python::Modules;
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
    /// Findings in its text.
    pub diagnostics: Vec<Diagnostic>,
    /// The module, if it is Python. Then there are no documents. A build without the feature `python` knows
    /// nothing of it.
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

    /// Returns true for a file that front ends read: YAML, JSON or Python, by its extension.
    pub fn is_read(path: &str) -> bool {
        Format::of_path(path).is_some() || File::is_python(path)
    }

    /// Returns true for the path of a Python module.
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
        self.files.iter().find(|f| f.path.ends_with(name) && normal_path(&f.path) == wanted)
    }
}

/// A path relative to a folder, without `.` and `..`.
pub fn join(folder: &str, path: &str) -> String {
    if path.starts_with('/') || folder.is_empty() {
        normal_path(path)
    } else {
        normal_path(&format!("{folder}/{path}"))
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

    /// Returns the confidence that the content of a file is of this kind, from 0 (certainly not) to 100
    /// (certainly). Reads a bounded part of the content, and never the path.
    fn detect(&self, file: &File) -> u8;

    /// Returns true if configurations of this kind refer to Python modules, which are compiled with them.
    fn names_modules(&self) -> bool {
        false
    }

    /// Returns true if configurations of this kind refer to others of their folder, which are then part of
    /// the project.
    fn names_files(&self) -> bool {
        false
    }

    /// Methods whose calls in a module start a run, as `python::Source::calls` takes them.
    fn run_methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// The keys of its agents and tasks that count, for editors; empty if they are not listed.
    fn fields(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Compiles file number `main` of the project; the other files are there to be referred to.
    /// Total: what cannot be compiled is an unknown term with a diagnostic.
    fn lower(&self, project: &Project, main: usize) -> Compiled;
}

/// Compiled configuration.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The front end's name.
    pub framework: &'static str,
    /// Runnable units, in the order of the source.
    pub units: Vec<Unit>,
    /// Facts that the framework supplies where the source is silent.
    pub facts: Facts,
    /// Errors, warnings and omissions. Keys without a counterpart are here, at level info.
    pub diagnostics: Vec<Diagnostic>,
}

/// A runnable unit.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The agent's, task's or crew's name in the source.
    pub name: String,
    /// Kind of unit.
    pub kind: UnitKind,
    /// Its term: a function from its input to its output.
    pub code: Arc<Code>,
    /// Place of the definition.
    pub span: Span,
    /// The agents in it with the place that defines each, outer before inner.
    pub agents: Vec<AgentPlace>,
    /// Structure that the term doesn't show.
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

/// Kind of a [`Unit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitKind {
    /// One agent, which may have others inside.
    Agent,
    /// Tasks carried out by agents.
    Crew,
}

/// Definition of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentPlace {
    /// Its name.
    pub name: String,
    /// Its definition, key included.
    pub span: Span,
}

/// Facts that a framework adds to every agent. `None` where it adds nothing, so that the source must state
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Facts {
    /// Default model.
    pub default_model: Option<&'static str>,
    /// Reason why a loop ends though the source has no bound.
    pub ends_loops: Option<&'static str>,
    /// Names of an agent's settings, for help texts.
    pub words: Words,
    /// True if no framework is known to read the format. Its agents may have instructions of their own.
    pub any_reader: bool,
    /// True if a loop that no reply ends is a group chat, even of one agent.
    pub chats: bool,
    /// True if the user is asked before each tool call, unless configured otherwise.
    pub asks_user: bool,
    /// True if a node that puts nothing out ends a run, wherever its edges lead.
    pub nothing_ends_run: bool,
    /// True if settings that a model does not take are left out of its requests.
    pub filters_settings: bool,
    /// True if the agents of a unit share a session that goes on after an answer: what one of them has read,
    /// each of them sees in a later turn.
    pub shares_session: bool,
    /// True if the term itself was written by hand. An identity in it is intended.
    pub written_term: bool,
    /// Limits of what a module of Python shows.
    pub code: CodeFacts,
}

/// Parts of a framework's runs that code decides. A module of Python may not show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CodeFacts {
    /// True if edges are followed whatever a node returns. Otherwise the code of a node may end a run.
    pub fixed_edges: bool,
    /// True if the program or a person may end a run otherwise than by the graph's edges.
    pub ends_runs: bool,
    /// True if edges may be added elsewhere in the code.
    pub edges_elsewhere: bool,
    /// True if the code that selects the next speaker may end the chat.
    pub speakers_end: bool,
    /// The keyword or key that limits a run, wherever in a project runs begin.
    pub run_limit: Option<&'static str>,
    /// Keywords and classes by which an agent takes in others. What these are given has no run of its own
    /// that the program could limit.
    pub members: &'static [&'static str],
    /// Methods that begin a run. If a module calls none and no other imports it, runs of what it makes begin
    /// elsewhere. If no module of a project calls one, the framework's own command or server begins its runs,
    /// which takes no limit. Empty if that is not to be told.
    pub runs: &'static [&'static str],
}

/// Names of an agent's settings in the framework, for help texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Setting of the instructions.
    pub prompt: &'static str,
    /// Setting of the model.
    pub model: &'static str,
    /// Setting of a loop's bound. Empty if the format has none.
    pub bound: &'static str,
    /// Setting of the bound of a cycle, if it differs.
    pub round: &'static str,
    /// Advice for a way out of a loop.
    pub exit: &'static str,
    /// The keys of the agent that lead to the list of its tools, and the tool in it that ends a loop, if
    /// there is one.
    pub ender: Option<(&'static [&'static str], &'static str)>,
    /// The keys of the agent that lead to the bound of its loop, where stating it is one entry more; the last
    /// is the keyword in code.
    pub stated: Option<&'static [&'static str]>,
    /// Setting that bounds retries of refused results.
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

/// Reader of a file.
#[derive(Clone, Copy)]
pub enum Recognized {
    /// A front end compiles it.
    Frontend(&'static dyn Frontend),
    /// It is the named format, which no front end compiles yet.
    Unsupported(&'static str),
    /// No agent configuration that is known here.
    Unknown,
}

impl std::fmt::Debug for Recognized {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Recognized::Frontend(frontend) => write!(f, "Frontend({})", frontend.name()),
            Recognized::Unsupported(name) => write!(f, "Unsupported({name})"),
            Recognized::Unknown => f.write_str("Unknown"),
        }
    }
}

/// A function that decides by content what a file is. Drivers hand in that of the registry of all front ends.
pub type Recognize = fn(&File) -> Recognized;
