//! Findings in a document, through the functions of `entail check` and `entail lint`.

use crate::Location;
use crate::workspace::range_of;
use agentlang::{EntryKind, Loader, Module, NoFiles, NotImported, PythonModule, WithheldFunction};
use analysis::cost::{self, Interval};
use core_ir::Code;
use diagnostics::{Diagnostic, FileId, Sources, Span, has_errors};
use entries::Runnable;
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project, Recognized};
use lint::Outcome;
use policy::Policy;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syntax::agent::ast::{Use, UseSource};

/// Everything around a document: settings, policies, imported files, the project. The host of an editor
/// session supplies it.
pub trait Host {
    /// The one name of a file, such as its canonical path; `None` if there is no such file.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// The text of a file as it lies on the disk, if it is there, is one, and is not too large.
    fn read(&self, place: &Path) -> Option<Arc<str>>;

    /// Options with which programs in this folder are checked.
    ///
    /// # Errors
    /// Reason why the settings or the policy file cannot be used, for a message.
    fn options(&self, folder: &Path) -> Result<Options, String>;

    /// The declarations of the tools of a server, for programs in this folder.
    ///
    /// # Errors
    /// Nothing is known of the server.
    fn server(&self, _folder: &Path, _name: &str) -> Result<Arc<str>, NotImported> {
        NoFiles.server(FileId(0), "").map(|(_, text)| text)
    }

    /// The folder in which the project of a module of Python begins; `None` if all files are of one.
    fn project(&self, _module: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the definitions of the configuration at a path; the first is what it is for. The path may lead
    /// to a folder.
    ///
    /// # Errors
    /// The reason why there are no units, for a message.
    fn units(&self, path: &Path) -> Result<Vec<frontend_kit::Unit>, String>;

    /// Returns the findings of lint in a configuration or a module of Python of this path and text. Without
    /// anything around it, what [`lint::lint_bytes`] finds. Places are in the file of number 0.
    fn lint(&self, path: &str, text: &str) -> Outcome {
        lint::lint_bytes(frontends::recognize, path, FileId(0), text.as_bytes(), &lint::Config::default())
            .outcome
    }

    /// The other files of the project of a file, as they lie on the disk: configurations, modules of Python,
    /// programs.
    fn files(&self, _path: &Path) -> Vec<(String, Arc<str>)> {
        Vec::new()
    }

    /// Something has changed on the disk: what was read of it may be old.
    fn changed(&self) {}
}

/// Options for checking a program: its settings in `entail.toml`.
#[derive(Default)]
pub struct Options {
    /// The text of the policy file, and the file that findings about it name.
    pub policy: Option<(FileId, Arc<str>)>,
    /// True if `retries` try again what was late.
    pub retry_timeouts: bool,
}

/// The language of a document, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The surface language.
    Agent,
    /// The calculus.
    Lam,
    /// YAML or JSON of some framework.
    Config,
    /// A module that may build agents.
    Python,
}

impl Language {
    /// The language of a path.
    pub fn of(path: &str) -> Language {
        match Path::new(path).extension().and_then(|e| e.to_str()) {
            Some("agent") => Language::Agent,
            Some("lam") => Language::Lam,
            Some("py") => Language::Python,
            _ => Language::Config,
        }
    }
}

/// The files that a program imports: what an editor has of them, or what is on disk.
struct Imports<'a> {
    sources: &'a mut Sources,
    open: &'a HashMap<PathBuf, Arc<str>>,
    known: HashMap<PathBuf, FileId>,
    modules: HashMap<PathBuf, (FileId, PythonFile)>,
    around: &'a dyn Host,
}

/// A module of Python as declarations of tools.
#[derive(Clone)]
pub(crate) struct PythonFile {
    pub(crate) text: Arc<str>,
    withheld: Vec<WithheldFunction>,
    declared: Vec<frontends::Declared>,
}

impl Imports<'_> {
    /// Resolves a path written in a file.
    fn place(&self, from: FileId, path: &str) -> PathBuf {
        let importing = self.sources.get(from).map_or(String::new(), |s| s.path.clone());
        folder_of(&importing).join(path)
    }

    fn text(&self, place: &Path) -> Option<Arc<str>> {
        self.open.get(place).cloned().or_else(|| self.around.read(place))
    }

    /// The module of Python at a path.
    fn module(&mut self, from: FileId, path: &str) -> Result<&(FileId, PythonFile), NotImported> {
        let because = |why: &str, help: &str| NotImported { why: why.into(), help: help.into() };
        if !cfg!(feature = "python_tools") {
            return Err(because("modules of Python are not read here", "run `entail check`"));
        }
        let place = self
            .around
            .resolve(&self.place(from, path))
            .ok_or_else(|| because("no such file", "the path is relative to the folder of this file"))?;
        if !self.modules.contains_key(&place) {
            let text = self.text(&place).ok_or_else(|| because("it can't be read", "repair the file"))?;
            let shown = place.display().to_string();
            let file = self.sources.add(shown.as_str(), text.clone());
            let root = self.around.project(&place);
            let (modules, main) = frontends::with_imports(file, &shown, text, |path| {
                let place = self.around.resolve(Path::new(path))?;
                let is_own = root.as_ref().is_none_or(|root| place.starts_with(root));
                let text = self.text(&place).filter(|_| is_own)?;
                Some((self.sources.add(place.display().to_string(), text.clone()), text))
            });
            let tools = frontends::tool_module(&modules, main, path)
                .map_err(|why| because(&why, "repair the module"))?;
            let withheld = tools.withheld.into_iter().map(|(name, reason)| WithheldFunction {
                name,
                why: reason.why,
                help: reason.help,
                at: reason.at,
            });
            let text: Arc<str> = tools.text.into();
            let id = self.sources.add(format!("python:{shown}"), text.clone());
            let module = PythonFile { text, withheld: withheld.collect(), declared: tools.declared };
            self.modules.insert(place.clone(), (id, module));
        }
        Ok(&self.modules[&place])
    }
}

fn folder_of(path: &str) -> &Path {
    Path::new(path).parent().unwrap_or(Path::new(""))
}

impl Loader for Imports<'_> {
    fn units(&mut self, from: FileId, path: &str) -> Result<Vec<frontend_kit::Unit>, String> {
        self.around.units(&self.place(from, path))
    }

    fn server(&mut self, from: FileId, name: &str) -> Result<(FileId, Arc<str>), NotImported> {
        // No path has such a name.
        let place = PathBuf::from(format!("mcp:{name}"));
        if let Some(id) = self.known.get(&place) {
            return Ok((*id, self.sources.get(*id).map_or_else(|| "".into(), |s| s.text.clone())));
        }
        let folder = self.place(from, "");
        let text = self.around.server(&folder, name)?;
        let id = self.sources.add(place.display().to_string(), text.clone());
        self.known.insert(place, id);
        Ok((id, text))
    }

    fn python(&mut self, from: FileId, path: &str) -> Result<PythonModule, NotImported> {
        let (file, PythonFile { text, withheld, .. }) = self.module(from, path)?;
        Ok(PythonModule { file: *file, text: text.clone(), withheld: withheld.clone() })
    }

    fn load(&mut self, from: FileId, path: &str) -> Result<(FileId, Arc<str>), String> {
        let place = self.around.resolve(&self.place(from, path)).ok_or("no such file")?;
        if let Some(id) = self.known.get(&place) {
            return Ok((*id, self.sources.get(*id).map_or_else(|| "".into(), |s| s.text.clone())));
        }
        let text = self.text(&place).ok_or("it can't be read")?;
        let id = self.sources.add(place.display().to_string(), text.clone());
        self.known.insert(place, id);
        Ok((id, text))
    }
}

/// The texts of the files that a document imports, as far as they can be read.
pub(crate) fn used(
    path: &str,
    text: &Arc<str>,
    uses: &[&Use],
    open: &HashMap<PathBuf, Arc<str>>,
    around: &dyn Host,
) -> Vec<Arc<str>> {
    let mut sources = Sources::new();
    let id = sources.add(path, text.clone());
    let mut imports =
        Imports { sources: &mut sources, open, known: HashMap::new(), modules: HashMap::new(), around };
    let read = |u: &&Use| match (u.source, agentlang::library_text(&u.path.value)) {
        (UseSource::Python, _) => imports.module(id, &u.path.value).ok().map(|(_, m)| m.text.clone()),
        (UseSource::Server, _) => imports.server(id, &u.path.value).ok().map(|(_, text)| text),
        (UseSource::File, Some(text)) => Some(text.into()),
        (UseSource::File, None) => imports.load(id, &u.path.value).ok().map(|(_, text)| text),
    };
    uses.iter().filter_map(read).collect()
}

/// The declaration of a name that a document imports from a module of Python, with its place there.
pub(crate) fn declared_in_python(
    path: &str,
    text: &Arc<str>,
    (import, name): (&Use, &str),
    open: &HashMap<PathBuf, Arc<str>>,
    around: &dyn Host,
) -> Option<(PythonFile, Location)> {
    let mut sources = Sources::new();
    let id = sources.add(path, text.clone());
    let mut imports =
        Imports { sources: &mut sources, open, known: HashMap::new(), modules: HashMap::new(), around };
    let module = imports.module(id, &import.path.value).ok()?.1.clone();
    let at = module.declared.iter().find(|d| d.name == name)?.at;
    let source = sources.get(at.file)?;
    let place = Location { path: source.path.clone(), text: source.text.clone(), range: range_of(at) };
    Some((module, place))
}

/// Static knowledge about a pipeline.
pub(crate) struct Bound {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Findings of a document.
pub(crate) struct Analysis {
    pub(crate) sources: Sources,
    pub(crate) found: Vec<Diagnostic>,
    /// The checked module, if a program was accepted; `None` for a configuration.
    module: Option<agentlang::Module>,
    /// The term of a file of the calculus, if it was accepted.
    term: Option<Arc<Code>>,
    /// The policy: that of the program and of its settings.
    policy: Option<Policy>,
}

/// The entry points of a document, with everything that is known before their analysis.
#[derive(Debug, Default)]
pub struct Programs {
    /// The document, of number 0, and the files that were read for it.
    pub sources: Sources,
    /// Findings in the document.
    pub found: Vec<Diagnostic>,
    /// Entry points, with the policy applied.
    pub entries: Vec<Runnable>,
    /// The policy of its settings.
    pub policy: Option<Policy>,
}

pub(crate) fn analyze(
    path: &str,
    text: &str,
    open: &HashMap<PathBuf, Arc<str>>,
    around: &dyn Host,
) -> Analysis {
    let mut sources = Sources::new();
    let id = sources.add(path, text);
    let (mut module, mut term, mut policy) = (None, None, None);
    let found = match Language::of(path) {
        Language::Agent => {
            let known = around.resolve(Path::new(path)).map(|p| (p, id)).into_iter().collect();
            let mut imports = Imports { sources: &mut sources, open, known, modules: HashMap::new(), around };
            let (read, mut found) = agentlang::check_files(id, text, &mut imports);
            module = read;
            if let Some(module) = &mut module {
                let (more, of_program) = policies(module, id, around.options(folder_of(path)));
                found.extend(more);
                policy = of_program;
            }
            found
        }
        Language::Lam => {
            let parsed = agentlang::calculus::compile(id, text);
            term = parsed.code.filter(|_| !has_errors(&parsed.diagnostics)).map(Arc::new);
            parsed.diagnostics
        }
        Language::Config | Language::Python => match around.lint(path, text) {
            Outcome::Checked { findings, .. } => findings,
            Outcome::Unreadable(found) => found,
            Outcome::Skipped(_) => Vec::new(),
        },
    };
    if module.is_none()
        && let Ok(Options { policy: Some((file, text)), .. }) = around.options(folder_of(path))
    {
        policy = Policy::parse(file, &text).ok();
    }
    Analysis { sources, found, module, term, policy }
}

/// Has the program checked as the settings say. Returns what is wrong with its policy, and the policy.
fn policies(
    module: &mut Module,
    id: FileId,
    options: Result<Options, String>,
) -> (Vec<Diagnostic>, Option<Policy>) {
    let uses = module.policies();
    let unknown = |why: String| {
        uses.iter().map(|u| Diagnostic { help: vec![why.clone()], ..u.unknown(None) }).collect()
    };
    let (options, failed) = match options {
        Ok(options) => (options, None),
        Err(why) => (Options::default(), Some(why)),
    };
    module.retry_timeouts = options.retry_timeouts;
    let file = options.policy.as_ref().map(|(file, text)| (*file, &**text));
    match entries::policy::of_program(file, id, module) {
        Ok(Some(policy)) => {
            module.assume(&policy);
            let found = match failed {
                Some(why) => unknown(why),
                // The policy file is not one of the sources here.
                None => policy
                    .check_named(&uses)
                    .into_iter()
                    .map(|d| Diagnostic { remarks: Vec::new(), ..d })
                    .collect(),
            };
            (found, Some(policy))
        }
        Ok(None) => match failed {
            Some(why) => (unknown(why), None),
            None => (uses.iter().map(|u| u.unknown(None)).collect(), None),
        },
        Err(found) => {
            let of_file = |d: &Diagnostic| d.span.map(|at| at.file) == file.map(|(file, _)| file);
            let (of_file, mut own): (Vec<_>, Vec<_>) = found.into_iter().partition(of_file);
            if let Some(first) = of_file.first() {
                own.extend(unknown(format!("in the policy file: {}", first.message)));
            }
            let own = own.into_iter().map(|d| Diagnostic { remarks: Vec::new(), ..d });
            (own.collect(), None)
        }
    }
}

/// The units of a configuration or a module of Python that is a whole project.
fn units(path: &str, text: &Arc<str>) -> Vec<frontend_kit::Unit> {
    if matches!(Language::of(path), Language::Agent | Language::Lam) {
        return Vec::new();
    }
    let file = File::read(FileId(0), path, text, &Limits::default());
    let Recognized::Frontend(frontend) = frontends::recognize(&file) else { return Vec::new() };
    frontend.lower(&Project { files: vec![file], ..Project::default() }, 0).units
}

impl Analysis {
    /// The entry points of the document at this path. What is wrong with one is added to the findings.
    pub(crate) fn programs(self, path: &str, text: &Arc<str>) -> Programs {
        let Analysis { sources, mut found, module, term, policy } = self;
        let mut entries = match (&module, term) {
            (Some(module), _) => entries::pipelines(module, &mut found),
            (None, Some(term)) => vec![entries::of_term("main", term)],
            (None, None) => entries::of_units(units(path, text)),
        };
        if let Some(policy) = &policy {
            let uses = module.as_ref().map_or_else(Vec::new, Module::policies);
            let all = entries.iter_mut().map(|r| &mut r.code);
            if let Err(wrong) = entries::policy::apply(policy, &uses, all) {
                found.extend(wrong);
            }
        }
        if has_errors(&found) && module.is_some() {
            entries.clear();
        }
        Programs { sources, found, entries, policy }
    }

    /// The variables of the document with their types.
    pub(crate) fn variables(&self) -> Vec<(Span, String)> {
        let all = self.module.as_ref().map_or_else(Vec::new, Module::variables);
        all.into_iter().filter(|(at, _)| at.file == FileId(0)).collect()
    }

    /// Returns the bound on model and tool calls of each pipeline in the document.
    pub(crate) fn bounds(&self) -> Vec<Bound> {
        let Some(module) = &self.module else { return Vec::new() };
        let pipelines = module.entries().iter().filter(|e| e.kind == EntryKind::Pipeline);
        pipelines
            .filter_map(|e| {
                let bound = cost::bound(&Arc::new(module.lower(e).ok()?), true);
                let text = format!(
                    "{}, {}",
                    calls(bound.model_calls, "model call"),
                    calls(bound.tool_calls, "tool call")
                );
                Some(Bound { name: e.name.clone(), text })
            })
            .collect()
    }
}

fn calls(i: Interval, what: &str) -> String {
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    match (i.least, i.most) {
        (least, Some(most)) if least == most => format!("{most} {what}{}", plural(most)),
        (_, Some(most)) => format!("≤ {most} {what}{}", plural(most)),
        (least, None) => format!("≥ {least} {what}s, no bound known"),
    }
}
