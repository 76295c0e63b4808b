//! Files of the user as programs.

use crate::frameworks;
use crate::packages::versions;
#[cfg(feature = "plans")]
use crate::planning::{PlanText, Toolset};
use crate::policy;
use crate::project_files::{around, root_of};
#[cfg(feature = "frameworks")]
use crate::python_file::PythonFile;
use crate::server_file;
use crate::settings::{Settings, read_lock};
use ::policy::{Policy, PolicyUse};
use agentlang::{
    DataSet, EntryKind, NotImported, ProgramBranch, PythonModule, Row, Samples, TermBranches, TestPlan,
};
use core_ir::{Code, Data, ModelRoutes, ToolDecl};
use diagnostics::{Diagnostic, FileId, Sources, Span, has_errors};
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{File, Project, Recognized};
use runtime::Pins;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use entries::{Kind, Runnable, pipelines};

/// Reason why nothing could be loaded.
#[derive(Debug)]
pub enum Problem {
    /// The request is wrong: no such file, a directory, no text.
    Unreadable(String, Option<String>),
    /// The file was read and is wrong; the findings say how.
    Wrong(Vec<Diagnostic>),
    /// The policy file can't be applied; the findings say why. The request is wrong, not the program.
    Policy(Vec<Diagnostic>),
}

/// Options for loading programs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// True if the `retries` of a program also retry timeouts.
    pub retry_timeouts: bool,
    /// The policy file.
    pub policy: Option<PathBuf>,
    /// True if the program is loaded to write its policy file, so that it may name policies that don't exist
    /// yet.
    pub undecided: bool,
    /// Which models may answer which calls.
    pub routes: ModelRoutes,
    /// The tools of servers that are approved; `None` for those of the nearest lock.
    pub pins: Option<Arc<Pins>>,
}

/// A file that was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// Entry points, with the policy applied.
    pub runnables: Vec<Runnable>,
    /// Diagnostics.
    pub found: Vec<Diagnostic>,
    /// The policy's rules about the run.
    pub policy: Option<Policy>,
    /// Places where the program names policies.
    pub named: Vec<PolicyUse>,
    /// Which models may answer which calls.
    pub routes: ModelRoutes,
    /// The tools that a program declares, whether anything uses them or not; none of a configuration.
    pub declared: Vec<Arc<ToolDecl>>,
}

impl Loaded {
    /// A term that is no file's: one entry point without an input, and no policy.
    pub fn of_term(name: &str, code: Arc<Code>) -> Loaded {
        Loaded {
            runnables: vec![entries::of_term(name, code)],
            found: Vec::new(),
            policy: None,
            named: Vec::new(),
            routes: ModelRoutes::default(),
            declared: Vec::new(),
        }
    }
}

/// The file beside a plan that declares its tools.
#[cfg(feature = "plans")]
const PLAN_TOOLS: &str = "tools.agent";

/// The files under a directory that are accepted by their path, in a stable order; what .gitignore names is
/// left out, what is hidden, and packages that were installed. Paths under `.` have no `./` before them.
pub fn files_under(directory: &Path, accepts: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    files_and_hidden(directory, |_| false, accepts)
}

/// Returns true for a folder of packages that were installed: a virtual environment of Python, whatever its
/// name, or the folder of packages in one. Nobody edits what is in it.
pub(crate) fn is_installed(entry: &ignore::DirEntry) -> bool {
    entry.file_type().is_some_and(|t| t.is_dir())
        && (entry.file_name() == "site-packages" || entry.path().join("pyvenv.cfg").is_file())
}

/// Returns the files, also hidden ones and those in hidden folders with the given names.
pub fn files_and_hidden(
    directory: &Path,
    hidden: impl Fn(&str) -> bool + Send + Sync + 'static,
    accepts: impl Fn(&str) -> bool,
) -> Vec<PathBuf> {
    let seen = move |e: &ignore::DirEntry| {
        let name = e.file_name().to_string_lossy();
        e.depth() == 0 || !is_installed(e) && (!name.starts_with('.') || hidden(&name))
    };
    let mut files: Vec<PathBuf> = ignore::WalkBuilder::new(directory)
        .require_git(false)
        .hidden(false)
        .filter_entry(seen)
        .build()
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_some_and(|t| t.is_file()))
        .filter(|e| accepts(&e.path().display().to_string()))
        .map(|e| e.path().strip_prefix(".").unwrap_or(e.path()).to_path_buf())
        .collect();
    files.sort();
    files
}

/// Applies a function to each item on all cores. Returns the results in the order of the items.
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(items.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = f(item);
                    // A poisoned lock means that another thread panicked; its panic is raised by the scope.
                    if let Ok(mut done) = done.lock() {
                        done.push((index, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, r)| r).collect()
}

/// Returns the size limits of a file: programs may be longer than configurations, which take more memory.
pub fn limits_of(path: &str) -> Limits {
    let usual = Limits::default();
    match Kind::of(path) {
        Kind::Agent => Limits { bytes: syntax::agent::MAX_TEXT_BYTES, ..usual },
        Kind::Lam => Limits { bytes: syntax::lam::MAX_TEXT_BYTES, ..usual },
        Kind::Plan | Kind::Config => usual,
    }
}

/// Reads the bytes of a program or configuration, at most one more than the limit for its text.
pub fn read_bytes(path: &str) -> std::io::Result<Vec<u8>> {
    read_at_most(path, limits_of(path).bytes as u64 + 1)
}

/// Reads all of a file of data: an input, a script, a trace.
///
/// # Errors
/// Also if it is larger than anybody will want to keep in memory; no part of it is given then.
pub fn read_data(path: &str) -> std::io::Result<Vec<u8>> {
    const MAX_BYTES: u64 = 256 << 20;
    let bytes = read_at_most(path, MAX_BYTES + 1)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(std::io::Error::other("it is larger than 256 MiB"));
    }
    Ok(bytes)
}

fn read_at_most(path: &str, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == "-" {
        // It can be read only once, and who looks at what it is reads it again.
        static INPUT: Mutex<Option<Vec<u8>>> = Mutex::new(None);
        let mut known = INPUT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
        return Ok(known.insert(bytes).clone());
    }
    let file = std::fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(std::io::Error::new(std::io::ErrorKind::IsADirectory, "is a directory"));
    }
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file as text and adds it to the sources.
pub fn read_text(sources: &mut Sources, path: &str) -> Result<(FileId, Arc<str>), Problem> {
    read_text_and_bytes(sources, path).map(|(file, text, _)| (file, text))
}

/// Reads a file as text and adds it to the sources; with the bytes that it was read from.
pub(crate) fn read_text_and_bytes(
    sources: &mut Sources,
    path: &str,
) -> Result<(FileId, Arc<str>, Vec<u8>), Problem> {
    let bytes = read_bytes(path).map_err(|e| {
        Problem::Unreadable(format!("cannot read `{path}`: {}", reason(&e)), remedy(&e).map(String::from))
    })?;
    match decode(sources.next_id(), &bytes, &limits_of(path)) {
        Ok(text) => Ok((sources.add(path, text.clone()), text, bytes)),
        Err(d) => {
            sources.add(path, "");
            Err(Problem::Wrong(vec![*d]))
        }
    }
}

/// Replaces a file by a text, whole or not at all: it is written beside it and then takes its name. A file
/// that is not there is made, and its owner decides who may read it.
pub fn replace_file(file: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    replace(file, text.as_ref(), 0o666)
}

/// Replaces a file as [`replace_file`] does. If it is not there, the new one is for its owner alone.
pub fn replace_private_file(file: &Path, text: impl AsRef<[u8]>) -> std::io::Result<()> {
    replace(file, text.as_ref(), 0o600)
}

/// Replaces a file. `mode` is that of a new one, without what the process masks.
fn replace(file: &Path, text: &[u8], mode: u32) -> std::io::Result<()> {
    // Through a link, the file that it leads to is replaced.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let old = std::fs::metadata(&target).ok();
    // A terminal, a pipe or a device is written to, and stays what it is.
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return std::fs::write(&target, text);
    }
    let folder = target.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".entail-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    let mut new = builder.tempfile_in(folder)?;
    new.write_all(text)?;
    if let Some(old) = old {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.as_file().sync_all()?;
    new.persist(&target).map_err(|e| e.error)?;
    Ok(())
}

/// An input-output error without its number.
pub fn reason(e: &std::io::Error) -> String {
    use std::io::ErrorKind as Kind;
    match e.kind() {
        Kind::NotFound => "no such file".into(),
        Kind::PermissionDenied => "permission denied".into(),
        Kind::IsADirectory => "it is a directory".into(),
        Kind::NotADirectory => "a part of the path is a file".into(),
        Kind::AlreadyExists => "it is there already".into(),
        Kind::StorageFull => "no space is left".into(),
        Kind::ReadOnlyFilesystem => "the file system is read-only".into(),
        Kind::InvalidData => "it is not UTF-8".into(),
        _ => {
            let text = e.to_string();
            let number = e.raw_os_error().map(|n| format!(" (os error {n})")).unwrap_or_default();
            text.strip_suffix(&number).unwrap_or(&text).to_string()
        }
    }
}

/// The remedy for an input-output error at a file that the user named.
pub fn remedy(e: &std::io::Error) -> Option<&'static str> {
    use std::io::ErrorKind as Kind;
    Some(match e.kind() {
        Kind::NotFound => "check the path; it is relative to the working directory",
        Kind::PermissionDenied => "check the owner and the mode of the file and of its folder",
        Kind::IsADirectory => "name a file in it",
        Kind::NotADirectory => "check the path",
        Kind::AlreadyExists => "name another file, or remove this one",
        Kind::StorageFull => "make room, or name a file on another disk",
        Kind::ReadOnlyFilesystem => "name a file elsewhere",
        Kind::InvalidData => "save it as UTF-8",
        _ => return None,
    })
}

/// Reads a file that a person or this program keeps, such as settings or a list of servers, as text.
///
/// # Errors
/// It can't be read, is not UTF-8, or is larger than such a file is.
pub fn read_kept(path: &Path) -> std::io::Result<String> {
    let most = Limits::default().bytes;
    let bytes = read_at_most(&path.display().to_string(), most as u64 + 1)?;
    if bytes.len() > most {
        return Err(std::io::Error::other(format!("it is larger than the limit of {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|e| std::io::Error::new(std::io::ErrorKind::InvalidData, e))
}

/// Returns the kind of a text by the extension of its path. Standard input has none: it is a configuration if
/// it looks like one.
fn kind_of(id: FileId, path: &str, text: &Arc<str>) -> Kind {
    match Kind::of(path) {
        Kind::Config if path == "-" => {
            let file = File::read(id, path, text, &Limits::default());
            if matches!(frameworks::recognize(&file), Recognized::Unknown) {
                Kind::Agent
            } else {
                Kind::Config
            }
        }
        kind => kind,
    }
}

/// Loads a file and applies the policy to what can be run in it.
pub fn load(sources: &mut Sources, path: &str, options: &Options) -> Result<Loaded, Problem> {
    let main;
    let path = if Path::new(path).is_dir() {
        main = main_of(path)?;
        &main
    } else {
        path
    };
    let (id, text) = read_text(sources, path)?;
    match kind_of(id, path, &text) {
        Kind::Agent => agent(sources, id, &text, options),
        Kind::Lam => lam(sources, id, &text, options),
        Kind::Plan => plan(sources, id, path, text, options),
        Kind::Config => {
            let files = project(sources, id, path, &text);
            let (runnables, found) = config(path, files)?;
            with_policy(sources, runnables, found, options)
        }
    }
}

/// A configuration with the files that it may refer to.
fn project(sources: &mut Sources, id: FileId, path: &str, text: &Arc<str>) -> Vec<File> {
    let (limits, main) = (Limits::default(), Path::new(path));
    let mut files = vec![File::read(id, path, text, &limits)];
    let others = match frameworks::recognize(&files[0]) {
        Recognized::Frontend(f) if File::is_python(path) || f.names_modules() => around(main),
        Recognized::Frontend(f) if f.names_files() => siblings(main),
        // Most files contain no agents, and most others are self-contained: their project is not read.
        _ => Vec::new(),
    };
    for sibling in others {
        // A neighbor that cannot be read is one that is not there.
        if let Ok((id, text)) = read_text(sources, &sibling) {
            files.push(File::read(id, &sibling, &text, &limits));
        }
    }
    files
}

/// The file of a project that is its program: of those that a front end reads, the one that makes most of the
/// others its parts.
fn main_of(directory: &str) -> Result<String, Problem> {
    const MAX_FILES: usize = 600;
    let found = files_under(Path::new(directory), File::is_read);
    let mut ranked: Vec<(usize, usize, String)> = Vec::new();
    for path in found.into_iter().take(MAX_FILES) {
        let shown = path.display().to_string();
        let Ok(bytes) = read_bytes(&shown) else { continue };
        let Ok(text) = decode(FileId(0), &bytes, &Limits::default()) else { continue };
        let file = File::read(FileId(0), &shown, &text, &Limits::default());
        let Recognized::Frontend(frontend) = frameworks::recognize(&file) else { continue };
        // Code that starts a run is the most specific; then Python, which loads configurations; then tasks,
        // which name agents.
        let starts = file.python.as_ref().is_some_and(|module| module.calls(frontend.run_methods()));
        let stem = path.file_stem().map_or(String::new(), |s| s.to_string_lossy().into_owned());
        let rank = match (File::is_python(&shown), &*stem) {
            (true, "crew") => 0,
            (true, "main" | "app" | "__main__") if starts => 1,
            (true, _) if starts => 2,
            (true, _) => 3,
            (false, "tasks" | "crew") => 4,
            (false, _) => 5,
        };
        ranked.push((rank, path.components().count(), shown));
    }
    ranked.sort();
    match &ranked[..] {
        [] => {
            let programs = files_under(Path::new(directory), |p| Kind::of(p) != Kind::Config);
            let names: Vec<String> = programs.iter().map(|p| p.display().to_string()).collect();
            match &names[..] {
                [only] => Ok(only.clone()),
                [] => Err(Problem::Unreadable(
                    format!("`{directory}` holds no configuration of a known framework, and no program"),
                    Some(frameworks::ABSENT.unwrap_or(NAME_A_FILE).into()),
                )),
                [first, second, ..] => Err(several(directory, first, second)),
            }
        }
        [first, second, ..] if first.0 == second.0 && first.1 == second.1 && first.0 != 5 && first.0 > 1 => {
            Err(several(directory, &first.2, &second.2))
        }
        [first, ..] => Ok(first.2.clone()),
    }
}

fn several(directory: &str, first: &str, second: &str) -> Problem {
    Problem::Unreadable(
        format!("`{directory}` holds several programs: `{first}`, `{second}`"),
        Some("name one of them".into()),
    )
}

/// The files that are read together with a configuration, because it may refer to them: those of its folder.
fn siblings(main: &Path) -> Vec<String> {
    /// Files of one folder at most, and bytes of one of them.
    const MAX_SIBLINGS: (usize, u64) = (60, 1 << 20);
    let folder = main.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let small = |e: &std::fs::DirEntry| e.metadata().is_ok_and(|m| m.is_file() && m.len() <= MAX_SIBLINGS.1);
    let name = main.file_name();
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|e| Some(e.file_name().as_os_str()) != name && small(e))
        .map(|e| main.with_file_name(e.file_name()).display().to_string())
        .filter(|p| File::is_read(p))
        .collect();
    found.sort();
    found.truncate(MAX_SIBLINGS.0);
    found
}

/// The files that programs import, by the place that their paths lead to.
pub struct Imports<'a> {
    sources: &'a mut Sources,
    known: HashMap<PathBuf, FileId>,
    /// The files that servers became.
    servers: HashMap<String, FileId>,
    /// The declarations of modules of Python, by place.
    #[cfg(feature = "frameworks")]
    modules: HashMap<PathBuf, (FileId, PythonFile)>,
    pins: Option<Arc<Pins>>,
}

impl<'a> Imports<'a> {
    /// The imports of a program of which the first file is read already.
    pub fn new(sources: &'a mut Sources, main: FileId) -> Imports<'a> {
        let mut known = HashMap::new();
        if let Some(path) = sources.get(main).and_then(|s| Path::new(&s.path).canonicalize().ok()) {
            known.insert(path, main);
        }
        Imports {
            sources,
            known,
            servers: HashMap::new(),
            #[cfg(feature = "frameworks")]
            modules: HashMap::new(),
            pins: None,
        }
    }

    /// Declares tools of servers as they are approved there, instead of in the nearest lock.
    pub fn with_lock(self, pins: Option<Arc<Pins>>) -> Imports<'a> {
        Imports { pins: pins.or(self.pins), ..self }
    }

    /// A path as written in a file, relative to the working directory.
    fn beside(&self, from: FileId, path: &str) -> PathBuf {
        let importing = self.sources.get(from).map_or(String::new(), |s| s.path.clone());
        Path::new(&importing).parent().unwrap_or(Path::new("")).join(path)
    }

    /// The nearest lock, upwards from the folder of a file.
    fn lock(&mut self, from: FileId) -> Result<Arc<Pins>, NotImported> {
        if let Some(pins) = &self.pins {
            return Ok(pins.clone());
        }
        let importing = self.sources.get(from).map_or(String::new(), |s| s.path.clone());
        let folder = Path::new(&importing).parent().and_then(|f| f.canonicalize().ok());
        let here = folder.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let path = here.ancestors().map(|f| f.join(Settings::LOCK)).find(|p| p.is_file());
        let pins = match path {
            Some(path) => read_lock(&path).map_err(|e| NotImported {
                why: e.message,
                help: e.help.unwrap_or_else(|| "restore it".into()),
            })?,
            None => Pins::default(),
        };
        Ok(self.pins.insert(Arc::new(pins)).clone())
    }
}

impl agentlang::Loader for Imports<'_> {
    fn server(&mut self, from: FileId, name: &str) -> Result<(FileId, Arc<str>), NotImported> {
        if let Some(id) = self.servers.get(name) {
            return Ok((*id, self.sources.get(*id).map_or_else(|| "".into(), |s| s.text.clone())));
        }
        let pins = self.lock(from)?;
        let text: Arc<str> =
            server_file::of_lock(&pins, name).map_err(|(why, help)| NotImported { why, help })?.into();
        let id = self.sources.add(format!("mcp:{name}"), text.clone());
        self.servers.insert(name.to_string(), id);
        Ok((id, text))
    }

    fn units(&mut self, from: FileId, path: &str) -> Result<Vec<frontend_kit::Unit>, String> {
        import_units(self.sources, &self.beside(from, path))
    }

    #[cfg(feature = "frameworks")]
    fn python(&mut self, from: FileId, path: &str) -> Result<PythonModule, NotImported> {
        let path = self.beside(from, path);
        let place = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !self.modules.contains_key(&place) {
            let file = PythonFile::read(self.sources, &path)?;
            let id = self.sources.add(format!("python:{}", path.display()), file.text.clone());
            self.modules.insert(place.clone(), (id, file));
        }
        let (file, PythonFile { text, withheld, .. }) = &self.modules[&place];
        Ok(PythonModule { file: *file, text: text.clone(), withheld: withheld.clone() })
    }

    #[cfg(not(feature = "frameworks"))]
    fn python(&mut self, _: FileId, _: &str) -> Result<PythonModule, NotImported> {
        let why = "this program was built without a reader of Python".into();
        Err(NotImported { why, help: "build it with `--features frameworks`".into() })
    }

    fn path(&self, from: FileId, path: &str) -> String {
        #[cfg(feature = "frameworks")]
        if self.modules.values().any(|(id, _)| *id == from) {
            return path.into();
        }
        self.beside(from, path).display().to_string()
    }

    fn load(&mut self, from: FileId, path: &str) -> Result<(FileId, Arc<str>), String> {
        let path = self.beside(from, path);
        let place = path.canonicalize().map_err(|e| reason(&e))?;
        if let Some(id) = self.known.get(&place) {
            return Ok((*id, self.sources.get(*id).map_or_else(|| "".into(), |s| s.text.clone())));
        }
        match read_text(self.sources, &path.display().to_string()) {
            Ok((id, text)) => {
                self.known.insert(place, id);
                Ok((id, text))
            }
            Err(Problem::Unreadable(message, _)) => Err(message),
            Err(Problem::Wrong(found) | Problem::Policy(found)) => {
                Err(found.first().map_or_else(|| "it is not text".into(), |d| d.message.clone()))
            }
        }
    }
}

/// Loads the units of a configuration.
pub fn import_units(sources: &mut Sources, path: &Path) -> Result<Vec<frontend_kit::Unit>, String> {
    let said = |problem: Problem| match problem {
        Problem::Unreadable(message, _) => message,
        Problem::Wrong(found) | Problem::Policy(found) => found
            .iter()
            .find(|d| d.level == diagnostics::Level::Error)
            .map_or("it is wrong".into(), |d| d.message.clone()),
    };
    let mut path = path.display().to_string();
    if Path::new(&path).is_dir() {
        path = main_of(&path).map_err(said)?;
    }
    if Kind::of(&path) != Kind::Config {
        return Err("it is not a configuration; `use \"path\";` imports a program".into());
    }
    let (id, text) = read_text(sources, &path).map_err(said)?;
    let files = project(sources, id, &path, &text);
    let (mut units, _) = compile(&path, files).map_err(said)?;
    // The last crew is what the file is for.
    if let Some(i) = units.iter().rposition(|u| u.kind == frontend_kit::UnitKind::Crew) {
        units[..=i].rotate_right(1);
    }
    Ok(units)
}

fn agent(sources: &mut Sources, id: FileId, text: &str, options: &Options) -> Result<Loaded, Problem> {
    let (module, mut found) =
        agentlang::check_files(id, text, &mut Imports::new(sources, id).with_lock(options.pins.clone()));
    let Some(mut module) = module else { return Err(Problem::Wrong(found)) };
    module.retry_timeouts = options.retry_timeouts;
    let policy = policy::of_program(sources, options.policy.as_deref(), id, &module)?;
    let named = policy::check_named(policy.as_ref(), &mut module);
    if !options.undecided {
        found.extend(named);
    }
    let mut out = pipelines(&module, &mut found);
    if has_errors(&found) {
        return Err(Problem::Wrong(found));
    }
    let named = module.policies();
    if let Some(policy) = &policy {
        policy::apply(policy, &named, out.iter_mut().map(|r| &mut r.code))?;
    }
    let declared = module.tools();
    Ok(Loaded { runnables: out, found, policy, named, routes: options.routes.clone(), declared })
}

/// Applies the policy to the entry points.
fn with_policy(
    sources: &mut Sources,
    mut runnables: Vec<Runnable>,
    found: Vec<Diagnostic>,
    options: &Options,
) -> Result<Loaded, Problem> {
    let policy = policy::read(sources, options.policy.as_deref())?;
    if let Some(policy) = &policy {
        policy::apply(policy, &[], runnables.iter_mut().map(|r| &mut r.code))?;
    }
    let routes = options.routes.clone();
    Ok(Loaded { runnables, found, policy, named: Vec::new(), routes, declared: Vec::new() })
}

/// Reads a term of the calculus.
pub fn lam(sources: &mut Sources, id: FileId, text: &str, options: &Options) -> Result<Loaded, Problem> {
    let parsed = agentlang::calculus::compile(id, text);
    match parsed.code {
        Some(code) if !has_errors(&parsed.diagnostics) => {
            let runnable = entries::of_term("main", Arc::new(code));
            let declared = runnable.code.tools.clone();
            let loaded = with_policy(sources, vec![runnable], parsed.diagnostics, options)?;
            Ok(Loaded { declared, ..loaded })
        }
        _ => Err(Problem::Wrong(parsed.diagnostics)),
    }
}

/// Refuses: this build reads no plans.
#[cfg(not(feature = "plans"))]
fn plan(_: &mut Sources, _: FileId, path: &str, _: Arc<str>, _: &Options) -> Result<Loaded, Problem> {
    let help = "this program was built without plans; build it with `--features plans`";
    Err(Problem::Unreadable(format!("`{path}` is a plan"), Some(help.into())))
}

/// Compiles a plan with the tools that `tools.agent` beside it declares. The policy applies to them.
#[cfg(feature = "plans")]
fn plan(
    sources: &mut Sources,
    id: FileId,
    path: &str,
    text: Arc<str>,
    options: &Options,
) -> Result<Loaded, Problem> {
    let mut tools = Toolset::read(sources, options)?;
    let beside = Path::new(path).with_file_name(PLAN_TOOLS);
    if path != "-" && beside.is_file() {
        tools.declare_file(sources, &beside.display().to_string())?;
    }
    let max_rounds = plan::MAX_ROUNDS;
    tools.compile(&PlanText { file: id, path, text, max_rounds, quarantine: None })
}

/// Compiles the first of the files; the others are there to be referred to.
fn config(path: &str, files: Vec<File>) -> Result<(Vec<Runnable>, Vec<Diagnostic>), Problem> {
    let (units, found) = compile(path, files)?;
    Ok((entries::of_units(units), found))
}

/// The remedy for a file of an unknown kind.
const PROGRAM_ENDINGS: &str =
    "programs end in `.agent` or `.lam`; configurations are recognized by their content";

/// The remedy for a directory without a program.
const NAME_A_FILE: &str = "name a file; programs end in `.agent`, `.lam` or `.plan.py`";

/// Compiles the units that the first of the files defines.
fn compile(path: &str, files: Vec<File>) -> Result<(Vec<frontend_kit::Unit>, Vec<Diagnostic>), Problem> {
    let file = &files[0];
    let frontend = match frameworks::recognize(file) {
        Recognized::Frontend(f) => f,
        Recognized::Unsupported(name) => {
            return Err(Problem::Unreadable(
                format!("`{path}` is of the format {name}, which has no front end yet"),
                None,
            ));
        }
        Recognized::Unknown if has_errors(&file.diagnostics) && File::is_read(path) => {
            return Err(Problem::Wrong(file.diagnostics.clone()));
        }
        Recognized::Unknown => {
            return Err(Problem::Unreadable(
                format!("`{path}` is neither an agent program nor a configuration of a known framework"),
                Some(frameworks::ABSENT.unwrap_or(PROGRAM_ENDINGS).into()),
            ));
        }
    };
    let mut found = file.diagnostics.clone();
    let versions = versions(Path::new(path));
    let compiled = frontend.lower(&Project { files, versions, modules: None }, 0);
    found.extend(compiled.diagnostics);
    if has_errors(&found) {
        return Err(Problem::Wrong(found));
    }
    Ok((compiled.units, found))
}

/// A test of a program, or a row of one.
#[derive(Clone)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// Place of the declaration.
    pub span: Span,
    /// Its term, a function of anything.
    pub code: Arc<Code>,
    /// Its mocks of tools and its expectations about their calls.
    pub plan: Arc<TestPlan>,
    /// Its input: the row, if it has a data set.
    pub input: Data,
    /// Number of the row, from 1.
    pub row: Option<usize>,
    /// Its repetition.
    pub samples: Option<Samples>,
    /// Branches of its term that are branches of the program.
    pub branches: Arc<TermBranches>,
}

/// The tests of a program.
pub struct Tests {
    /// A test for each row of a data set.
    pub tests: Vec<Test>,
    /// The policy of the run.
    pub policy: Option<Policy>,
    /// The branches of the program and of the files that it imports.
    pub branches: Vec<ProgramBranch>,
}

/// The tests of an `.agent` program, the policy being applied.
///
/// # Errors
/// The program, a data set or the policy can't be read or has errors.
pub fn tests(sources: &mut Sources, path: &str, options: &Options) -> Result<Tests, Problem> {
    let (id, text) = read_text(sources, path)?;
    let (module, mut found) =
        agentlang::check_files(id, &text, &mut Imports::new(sources, id).with_lock(options.pins.clone()));
    let Some(mut module) = module else { return Err(Problem::Wrong(found)) };
    module.retry_timeouts = options.retry_timeouts;
    let policy = policy::of_program(sources, options.policy.as_deref(), id, &module)?;
    found.extend(policy::check_named(policy.as_ref(), &mut module));
    let (mut out, mut all_rows): (Vec<Test>, Vec<Option<Vec<Row>>>) = Default::default();
    // The tests of imported files are run where these are named themselves.
    for entry in module.entries().iter().filter(|e| e.kind == EntryKind::Test && e.span.file == id) {
        match module.lower_with_branches(entry) {
            Ok((code, branches)) => match module.test_plan(entry) {
                Ok(plan) => {
                    out.push(Test {
                        name: entry.name.clone(),
                        span: entry.span,
                        code: Arc::new(code),
                        plan: Arc::new(plan),
                        input: Data::record([]),
                        row: None,
                        samples: module.samples(entry),
                        branches: Arc::new(branches),
                    });
                    match module.data_set(entry).map(|set| rows(sources, path, &set)).transpose() {
                        Ok(rows) => all_rows.push(rows),
                        Err(more) => found.extend(more),
                    }
                }
                Err(more) => found.extend(more),
            },
            Err(more) => found.extend(more),
        }
    }
    if has_errors(&found) {
        return Err(Problem::Wrong(found));
    }
    if let Some(policy) = &policy {
        policy::apply(policy, &module.policies(), out.iter_mut().map(|t| &mut t.code))?;
    }
    // A test for each row; they share their term.
    let of_rows = |(test, rows): (Test, Option<Vec<Row>>)| match rows {
        None => vec![test],
        Some(rows) => {
            rows.into_iter().map(|r| Test { input: r.input, row: Some(r.number), ..test.clone() }).collect()
        }
    };
    let tests = out.into_iter().zip(all_rows).flat_map(of_rows).collect();
    Ok(Tests { tests, policy, branches: module.branches().to_vec() })
}

/// The rows of a data set, whose path is relative to the folder of the program. The file is one of the
/// program's project, also where the path leads through links.
fn rows(sources: &mut Sources, program: &str, set: &DataSet) -> Result<Vec<Row>, Vec<Diagnostic>> {
    const MAX_BYTES: usize = 16 << 20;
    let unreadable = |why: &str| vec![set.unreadable(why)];
    if program == "-" {
        return Err(unreadable("the program comes from standard input and has no folder"));
    }
    let folder = Path::new(program).parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let own = folder.canonicalize().map_err(|e| unreadable(&reason(&e)))?;
    let project = own.ancestors().find(|f| f.join("entail.toml").is_file()).unwrap_or_else(|| root_of(&own));
    let path = folder.join(&set.path);
    let place = path.canonicalize().map_err(|e| unreadable(&reason(&e)))?;
    if !place.starts_with(project) {
        return Err(unreadable("it is outside of the project of this file"));
    }
    // A pipe or a device may have no end.
    let about = std::fs::metadata(&place).map_err(|e| unreadable(&reason(&e)))?;
    if !about.is_file() {
        return Err(unreadable("it is no regular file"));
    }
    if about.len() > MAX_BYTES as u64 {
        return Err(unreadable("it is larger than 16 MiB"));
    }
    let shown = path.display().to_string();
    let bytes = read_at_most(&place.display().to_string(), MAX_BYTES as u64 + 1)
        .map_err(|e| unreadable(&reason(&e)))?;
    match decode(sources.next_id(), &bytes, &Limits { bytes: MAX_BYTES, ..Limits::default() }) {
        Ok(text) => set.rows(sources.add(shown, text.clone()), &text),
        Err(d) => {
            sources.add(shown, "");
            Err(unreadable(&d.message))
        }
    }
}

#[cfg(all(test, feature = "frameworks"))]
mod tests {
    use super::{files_under, main_of};

    #[test]
    fn installed_packages_are_not_walked() {
        let dir = tempfile::tempdir().unwrap();
        let texts =
            ["py312/pyvenv.cfg", "py312/share/a.py", "lib/site-packages/b.py", "tools/c.py", "main.py"];
        for text in texts {
            let path = dir.path().join(text);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let names = |folder: &str| -> Vec<String> {
            let found = files_under(&dir.path().join(folder), |p| p.ends_with(".py"));
            found.iter().map(|p| p.file_name().unwrap().display().to_string()).collect()
        };
        assert_eq!(names(""), ["main.py", "c.py"]);
        // A directory that is named is walked.
        assert_eq!(names("py312"), ["a.py"]);
        let around = crate::project_files::around(&dir.path().join("main.py"));
        assert!(around.len() == 1 && around[0].ends_with("c.py"), "{around:?}");
    }

    /// As with `--save /dev/stdout`: it was removed, and a file took its place.
    #[cfg(unix)]
    #[test]
    fn a_pipe_is_written_to_and_stays_a_pipe() {
        use std::os::unix::fs::FileTypeExt;
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let from = pipe.clone();
        let reader = std::thread::spawn(move || std::fs::read_to_string(from).unwrap());
        super::replace_file(&pipe, "text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }

    const AGENT: &str =
        "from agents import Agent, Runner\na = Agent(name='a', instructions='x', model='m')\n";

    #[test]
    fn the_program_of_a_directory_is_the_module_that_starts_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        // Words in comments and texts start nothing.
        write("a.py", &format!("{AGENT}# Runner.run(a)\nhelp = 'crew.kickoff()'\n"));
        write("b.py", &format!("{AGENT}Runner.run_sync(a, 'hello')\n"));
        let main = main_of(dir.path().to_str().unwrap());
        assert!(main.as_ref().is_ok_and(|path| path.ends_with("b.py")), "{:?}", main.ok());
    }
}
