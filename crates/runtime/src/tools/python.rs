//! Tools that are functions of Python: a process for each module, which stays for the run, and another one
//! where calls overlap.
//!
//! Entry point: [`PythonTool::call`] with the [`Workers`] of the run. The process is `shim.py`, which speaks
//! JSON lines; it comes with this crate, so that the Python of a project needs nothing installed.
//!
//! Invariant: a worker has one call at a time. If the call fails or its caller is gone, the worker's process
//! group is killed, and no other call with it.
//! Invariant: no shell; arguments are data on a pipe. What the function prints is never taken for an answer.

use super::{ToolError, ToolLimits, as_json, json_result};
use crate::ConfigError;
use crate::mcp::ModulePin;
use crate::process::{self, Process, ProcessGroup, STDERR_TAIL};
use core_ir::{Data, Name, Type};
use diagnostics::clip_to as clip;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

/// Python program that calls the functions and speaks the protocol of the workers.
pub const SHIM: &str = include_str!("shim.py");

/// Reads the shim from standard input, which begins with its length, and becomes it.
const BOOT: &str = "import sys;\
    exec(compile(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())), 'entail-shim', 'exec'))";

/// Timeout for importing a module: frameworks take seconds.
const LOADING: Duration = Duration::from_secs(120);

/// Time for a worker to exit after it was told to.
const GRACE: Duration = Duration::from_millis(500);

/// `[python]` of `entail.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PythonSettings {
    /// True if the functions of a compiled project may run as its tools. Handlers need no such consent.
    pub tools: bool,
    /// The interpreter: a file relative to the settings, or a program of the path. Without it, that of the
    /// active or nearest virtual environment, or else `python3`.
    pub interpreter: Option<PathBuf>,
    /// Names of variables that hold secrets and that functions get all the same.
    pub env: Vec<String>,
    /// Folder that paths are relative to.
    #[serde(skip)]
    pub dir: PathBuf,
    /// Modules that a lock in the folder has, by path relative to it. Others are not checked.
    #[serde(skip)]
    pub locked: BTreeMap<String, ModulePin>,
}

impl PythonSettings {
    /// Compares a module with the lock.
    ///
    /// # Errors
    /// The module is locked, and it or a module that it imports has changed.
    fn verify(&self, module: &str) -> Result<(), ConfigError> {
        let Ok(place) = Path::new(module).canonicalize() else { return Ok(()) };
        for (path, pin) in &self.locked {
            if !self.dir.join(path).canonicalize().is_ok_and(|locked| locked == place) {
                continue;
            }
            if let Err(changed) = pin.verify(&self.dir) {
                let (path, changed) = (clip(path, 200), clip(&changed, 200));
                let message = match changed == path {
                    true => format!("`{path}` has changed since it was locked"),
                    false => format!("`{changed}`, which `{path}` imports, has changed since it was locked"),
                };
                let help = format!("look at what has changed, and write `entail lock --update {path}`");
                return Err(ConfigError::new(message).with_help(help));
            }
        }
        Ok(())
    }
}

/// A handler, understood.
#[derive(Clone, Debug)]
pub(super) struct PythonTool {
    /// A file, or the name of a module.
    module: String,
    name: String,
    env: Vec<String>,
    timeout: Option<Duration>,
    /// Bytes.
    memory: Option<u64>,
    /// True if the program itself says that it calls the function, and not a framework that is told of it.
    pub(super) is_stated: bool,
}

impl PythonTool {
    /// Of `"file.py:name"`, `"module:name"`, `[module, name]` or `{file, name}`. The last one is a program's
    /// own.
    pub(super) fn read(
        words: &Data,
        env: Vec<String>,
        timeout: Option<Duration>,
        memory: Option<u64>,
    ) -> Result<PythonTool, String> {
        let named = match words {
            Data::Str(text) => text.rsplit_once(':'),
            Data::List(words) => match &words[..] {
                [module, name] => module.as_str().zip(name.as_str()),
                _ => None,
            },
            Data::Record(_) => {
                words.field("file").and_then(Data::as_str).zip(words.field("name").and_then(Data::as_str))
            }
            _ => None,
        };
        let is_stated = matches!(words, Data::Record(_));
        match named {
            Some((module, name)) if !module.is_empty() && !name.is_empty() && !module.starts_with('-') => {
                Ok(PythonTool { module: module.into(), name: name.into(), env, timeout, memory, is_stated })
            }
            _ => Err("`python` is not a file or module followed by a name, such as `tools.py:search`".into()),
        }
    }

    /// The file that it is in, if it is named by a file.
    pub(super) fn file(&self) -> Option<&Path> {
        self.module.ends_with(".py").then(|| Path::new(&self.module))
    }

    /// Compares its module with the lock.
    ///
    /// # Errors
    /// It has changed.
    pub(super) fn verify(&self, settings: &PythonSettings) -> Result<(), ConfigError> {
        settings.verify(&self.module)
    }

    /// The interpreter that its module is imported by.
    pub(super) fn interpreter(&self, settings: &PythonSettings) -> PathBuf {
        interpreter(settings, &self.module)
    }

    /// Describes the function for messages.
    pub(super) fn shown(&self) -> String {
        format!("`{}` of `{}`", clip(&self.name, 80), clip(&self.module, 200))
    }

    /// Resolves the file relative to a folder.
    pub(super) fn within(mut self, dir: &Path) -> PythonTool {
        if self.module.ends_with(".py") {
            self.module = dir.join(&self.module).display().to_string();
        }
        self
    }

    /// Calls the function; what it wrote to its error output stands in the message of a failure.
    pub(super) async fn call(
        &self,
        workers: &Workers,
        args: &[(Name, Data)],
        ty: &Type,
        limits: &ToolLimits,
        hidden: &[String],
        key: Option<String>,
    ) -> Result<Data, ToolError> {
        let start = WorkerSpec {
            module: self.module.clone(),
            env: workers.settings.env.iter().chain(&self.env).cloned().collect(),
            memory: self.memory.unwrap_or(limits.max_memory),
        };
        let mut worker = match workers.take(&start) {
            Some(worker) => worker,
            None => Worker::start(&start, &workers.settings, hidden, limits.max_output).await?,
        };
        let request = json!({"call": self.name, "args": as_json(args), "key": key});
        let limit = self.timeout.unwrap_or(limits.timeout);
        worker.forget();
        let asked = tokio::time::timeout(limit, worker.ask(&request, limits.max_output)).await;
        let shown = self.shown();
        let answer = match asked {
            Err(_) => {
                let why = format!("{shown} was killed: it took longer than {} s", limit.as_secs_f64());
                return Err(ToolError::Late(why));
            }
            Ok(Err(why)) => return Err(format!("{shown} {why}{}", worker.said().await).into()),
            Ok(Ok(answer)) => answer,
        };
        let result = match (answer.get("value"), answer.get("error").and_then(Json::as_str)) {
            (Some(value), _) => json_result(value, ty).map_err(|why| format!("{shown}: {why}").into()),
            (None, why) => {
                let why = clip(why.unwrap_or("no reason was given"), 500);
                match answer.get("missing") {
                    Some(_) => Err(ConfigError::new(format!("{shown} can't be called: {why}")).into()),
                    None => Err(format!("{shown} failed: {why}").into()),
                }
            }
        };
        workers.put(start, worker);
        result
    }
}

/// Parameters of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WorkerSpec {
    module: String,
    env: Vec<String>,
    memory: u64,
}

/// Workers that wait for their next call.
#[allow(clippy::box_collection, reason = "mostly there are none, and a run that waits is to be small")]
type IdleWorkers = Option<Box<HashMap<WorkerSpec, Vec<Worker>>>>;

/// The processes of a run that wait for a call.
#[derive(Debug, Default)]
pub(super) struct Workers {
    pub(super) settings: Arc<PythonSettings>,
    /// Boxed: every run has this, and few start workers.
    idle: Mutex<IdleWorkers>,
}

impl Workers {
    pub(super) fn new(settings: Arc<PythonSettings>) -> Workers {
        Workers { settings, idle: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, IdleWorkers> {
        // A panic while it was held leaves workers that are there or not there.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, start: &WorkerSpec) -> Option<Worker> {
        self.lock().as_mut()?.get_mut(start)?.pop()
    }

    fn put(&self, start: WorkerSpec, worker: Worker) {
        self.lock().get_or_insert_default().entry(start).or_default().push(worker);
    }

    /// Ends the workers: in peace, if there is time for that.
    pub(super) async fn close(&self, politely: bool) {
        let idle = std::mem::take(&mut *self.lock());
        if let (true, Some(idle)) = (politely, idle) {
            let mut closing = tokio::task::JoinSet::new();
            idle.into_values().flatten().for_each(|worker| drop(closing.spawn(worker.close())));
            closing.join_all().await;
        }
    }
}

/// The interpreter for a module.
fn interpreter(settings: &PythonSettings, module: &str) -> PathBuf {
    if let Some(given) = &settings.interpreter {
        // A bare name is a program of the path.
        return if given.components().count() > 1 { settings.dir.join(given) } else { given.clone() };
    }
    let within = |folder: &Path| {
        [["bin", "python"], ["Scripts", "python.exe"]]
            .map(|p| folder.join(p[0]).join(p[1]))
            .into_iter()
            .find(|p| p.is_file())
    };
    if let Some(found) = std::env::var_os("VIRTUAL_ENV").and_then(|v| within(Path::new(&v))) {
        return found;
    }
    const MAX_PARENTS: usize = 6;
    let module = std::path::absolute(module).unwrap_or_default();
    let folders = module.ancestors().skip(1).take(MAX_PARENTS);
    let environments = folders.flat_map(|f| [f.join(".venv"), f.join("venv")]);
    environments.into_iter().find_map(|e| within(&e)).unwrap_or_else(|| "python3".into())
}

/// A process that has imported its module. Dropping it kills its group.
#[derive(Debug)]
struct Worker {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The end of what it wrote to its error output since the call began.
    said: Arc<Mutex<Vec<u8>>>,
    process: Process,
    // Dropped last of all: what it started ends with it.
    group: ProcessGroup,
}

impl Worker {
    async fn start(
        start: &WorkerSpec,
        settings: &PythonSettings,
        hidden: &[String],
        most: usize,
    ) -> Result<Worker, ToolError> {
        settings.verify(&start.module)?;
        let interpreter = interpreter(settings, &start.module);
        let mut command = Command::new(&interpreter);
        command.args(["-c", BOOT, &start.module]);
        process::withhold_secrets(&mut command, hidden, &start.env);
        let shown = interpreter.display().to_string();
        let (mut process, group) = process::spawn(command, Stdio::piped(), Some(start.memory), &shown)?;
        let (Some(input), Some(output), Some(mut errors)) = process.pipes() else {
            return Err("its pipes are gone".to_string().into());
        };
        let said: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = said.clone();
        // It ends with the process.
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = errors.read(&mut chunk).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..n]);
                let over = kept.len().saturating_sub(STDERR_TAIL);
                kept.drain(..over);
            }
        });
        let mut worker = Worker { input, output: BufReader::new(output), said, process, group };
        let shown = clip(&start.module, 200);
        let hello = async {
            let text = format!("{}\n{SHIM}", SHIM.len());
            // One that ends early says why on its error output.
            let _ = worker.input.write_all(text.as_bytes()).await;
            worker.line(most).await
        };
        let hello = match tokio::time::timeout(LOADING, hello).await {
            Err(_) => {
                let why = format!("importing `{shown}` took longer than {} s", LOADING.as_secs());
                return Err(ToolError::Late(why));
            }
            Ok(Err(why)) => {
                let said = worker.said().await;
                return Err(format!("`{shown}` can't be imported: the process {why}{said}").into());
            }
            Ok(Ok(hello)) => hello,
        };
        match hello.get("error").and_then(Json::as_str) {
            Some(why) => {
                let error = ConfigError::new(format!("`{shown}` can't be imported: {}", clip(why, 500)));
                Err(match hello.get("module").and_then(Json::as_str) {
                    Some(module) => error.with_help(format!(
                        "`{}` has no module `{}`: install it there, or name the project's Python with \
                         `interpreter` under `[python]` in `entail.toml`",
                        interpreter.display(),
                        clip(module, 80)
                    )),
                    None => error,
                }
                .into())
            }
            None => Ok(worker),
        }
    }

    async fn ask(&mut self, request: &Json, most: usize) -> Result<Json, String> {
        let line = format!("{request}\n");
        if self.input.write_all(line.as_bytes()).await.is_err() {
            return Err("ended its process".into());
        }
        self.line(most).await
    }

    /// The next line that it writes.
    async fn line(&mut self, most: usize) -> Result<Json, String> {
        let mut line = Vec::new();
        // The envelope of the result is short.
        let limit = most as u64 + 64;
        let read = (&mut self.output).take(limit).read_until(b'\n', &mut line).await;
        if let Err(e) = read {
            return Err(format!("could not be heard: {e}"));
        }
        match line.last() {
            Some(b'\n') => serde_json::from_slice(&line).map_err(|e| format!("wrote no JSON ({e})")),
            _ if line.len() as u64 >= limit => Err(format!("was killed: it gave more than {most} bytes")),
            _ => Err("ended its process".into()),
        }
    }

    fn forget(&self) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the worker's standard error, once it has ended.
    async fn said(&mut self) -> String {
        self.group.kill();
        // The pipe closes with the process; the reader is the only other holder.
        let _ = tokio::time::timeout(GRACE, async {
            let _ = self.process.wait().await;
            while Arc::strong_count(&self.said) > 1 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&said).trim() {
            "" => String::new(),
            text => format!("; its output: `{}`", clip(text, 500)),
        }
    }

    /// Lets it end by itself.
    async fn close(mut self) {
        drop(self.input);
        if tokio::time::timeout(GRACE, self.process.wait()).await.is_err() {
            self.group.kill();
            let _ = tokio::time::timeout(GRACE, self.process.wait()).await;
        }
    }
}
