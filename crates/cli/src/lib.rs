//! Programs of LLM agents in a Rust program: load, check, run, with typed inputs and outputs.
//!
//! Entry points: [`Program`] for what is run, [`World`] for who answers it.
//!
//! ```
//! use entail::{Program, World, scripted};
//! use serde::Deserialize;
//! use serde_json::json;
//!
//! #[derive(Deserialize, PartialEq, Debug)]
//! struct Found { title: String, words: u32 }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), entail::Error> {
//! let program = Program::from_source(r#"
//!     tool count(text: String) -> Number pure {}
//!     agent librarian { tools: [], prompt: "You know books." }
//!     task title_of(topic: String) -> String by agent { prompt "A title about {topic}" }
//!
//!     pipeline main(topic: String) -> Obj{title: String, words: Number} {
//!         let title = run title_of with { topic: topic } by librarian;
//!         let words = run count with { text: title };
//!         return { title: title, words: words };
//!     }
//! "#)?;
//!
//! // What a run may cost is known before it runs.
//! let main = program.pipeline("main")?;
//! assert_eq!(main.bound().model_calls.most, Some(1));
//!
//! // A tool is an async function; a model can be any `Provider`.
//! let world = World::new(scripted(r#"["The Life of the Bee"]"#)?)
//!     .tool("count", |args: serde_json::Value| async move {
//!         Ok::<_, String>(args["text"].as_str().unwrap_or_default().split(' ').count())
//!     });
//! let found: Found = main.run(&json!({"topic": "bees"}), &world).await?;
//! assert_eq!(found, Found { title: "The Life of the Bee".into(), words: 5 });
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: an input is checked against the pipeline's type before anything runs, and an output is what the pipeline's type says.

use check::cost::{self, CostBound};
use core_ir::{Code, Data, Type};
use diagnostics::{FileId, Sources, has_errors, render};
use frontend::surface::{self, EntryKind};
use machine::{Config, Machine};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use machine::Reply;
pub use runtime::{
    Answer, Approval, Approver, BoxFuture, CancellationToken, Event, Limits, ModelCall, ModelError, Models,
    Price, Progress, Provider, Remote, RemoteOptions, RunReport, Scripted, Tokens, Tools, Usage, Work,
};

/// What went wrong, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// `program`, `input`, `output`, `settings`, or the code of the error that ended a run, such as `tool` or `budget`.
    pub code: String,
    /// The problem.
    pub message: String,
}

impl Error {
    fn new(code: &str, message: impl Into<String>) -> Error {
        Error { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// A program that was read and found right.
#[derive(Debug)]
pub struct Program {
    pipelines: Vec<Pipeline>,
}

/// Something that can be run.
#[derive(Debug)]
pub struct Pipeline {
    name: String,
    code: Arc<Code>,
    input: Type,
}

impl Program {
    /// Reads a program in the language `.agent`. It may import nothing.
    ///
    /// # Errors
    /// What is wrong with it: all errors as the command line shows them.
    pub fn from_source(text: &str) -> Result<Program, Error> {
        Program::read("<source>", text)
    }

    /// Reads a file in the language `.agent`. It may import nothing.
    ///
    /// # Errors
    /// As [`Program::from_source`], or the file can't be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Program, Error> {
        let shown = path.as_ref().display().to_string();
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|e| Error::new("program", format!("cannot read `{shown}`: {e}")))?;
        Program::read(&shown, &text)
    }

    fn read(path: &str, text: &str) -> Result<Program, Error> {
        struct Nothing;
        impl surface::Loader for Nothing {
            fn load(&mut self, _: FileId, path: &str) -> Result<(FileId, Arc<str>), String> {
                Err(format!("`{path}` can't be imported here"))
            }
        }
        let mut sources = Sources::new();
        let file = sources.add(path, text);
        let (module, mut found) = surface::check_files(file, text, &mut Nothing);
        let mut pipelines = Vec::new();
        for (module, entry) in module.iter().flat_map(|m| m.entries().iter().map(move |e| (m, e))) {
            if entry.kind != EntryKind::Pipeline {
                continue;
            }
            match module.lower(entry) {
                Ok(code) => pipelines.push(Pipeline {
                    name: entry.name.clone(),
                    code: Arc::new(code),
                    input: entry.input.clone(),
                }),
                Err(more) => found.extend(more),
            }
        }
        if has_errors(&found) {
            let shown: Vec<String> = found.iter().map(|d| render::text(&sources, d, false)).collect();
            return Err(Error::new("program", shown.join("\n")));
        }
        Ok(Program { pipelines })
    }

    /// The pipelines.
    pub fn pipelines(&self) -> &[Pipeline] {
        &self.pipelines
    }

    /// The pipeline of a name.
    ///
    /// # Errors
    /// There is none; the message says which there are.
    pub fn pipeline(&self, name: &str) -> Result<&Pipeline, Error> {
        self.pipelines.iter().find(|p| p.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.pipelines.iter().map(|p| &*p.name).collect();
            Error::new("program", format!("there is no pipeline `{name}`; there is {}", names.join(", ")))
        })
    }
}

impl Pipeline {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it takes.
    pub fn input(&self) -> &Type {
        &self.input
    }

    /// What a run may use at most.
    pub fn bound(&self) -> CostBound {
        cost::bound(&self.code, true)
    }

    /// Runs it, and reads what it gives.
    ///
    /// # Errors
    /// The input is none of its type, the run failed, or what it gives is no `O`.
    pub async fn run<I: Serialize + ?Sized, O: DeserializeOwned>(
        &self,
        input: &I,
        world: &World,
    ) -> Result<O, Error> {
        let report = self.report(input, world, &CancellationToken::new(), &mut |_| {}).await?;
        let value = report.result.map_err(|f| Error::new(f.code.as_str(), f.message))?;
        let data =
            value.data().ok_or_else(|| Error::new("output", format!("the result is no data: {value}")))?;
        serde_json::from_value(data.to_json())
            .map_err(|e| Error::new("output", format!("the result is not what was expected: {e}")))
    }

    /// Runs it and tells everything: what was used, labels, events as they happen. `cancel` ends it.
    ///
    /// # Errors
    /// The input is none of its type. That a run failed is in the report.
    pub async fn report<I: Serialize + ?Sized>(
        &self,
        input: &I,
        world: &World,
        cancel: &CancellationToken,
        events: &mut (dyn FnMut(Event) + Send),
    ) -> Result<RunReport, Error> {
        let wrong = |why: String| Error::new("input", format!("`{}` takes {}: {why}", self.name, self.input));
        let json = serde_json::to_value(input).map_err(|e| wrong(e.to_string()))?;
        let data = self.input.read(&json).map_err(|e| wrong(e.to_string()))?;
        self.input.check(&data).map_err(|(path, cause)| wrong(format!("{path}: {cause}")))?;
        let machine = Machine::new(self.code.clone(), Some(data), Config::default());
        Ok(runtime::run(machine, &world.handlers, &world.limits, cancel, events).await)
    }
}

/// Who answers what programs ask, and what they may use.
#[derive(Clone, Debug)]
pub struct World {
    /// Models, tools, stores, approval, the seed of samples.
    pub handlers: runtime::Handlers,
    /// What a run may use.
    pub limits: Limits,
}

impl World {
    /// With one model for every call; tools as their declarations say.
    ///
    /// # Examples
    /// A model of one's own:
    /// ```
    /// use entail::{Answer, ModelCall, Price, Progress, Provider, Reply, Tokens, Work, World};
    /// use std::sync::Arc;
    ///
    /// struct Echo;
    /// impl Provider for Echo {
    ///     fn name(&self) -> &str { "echo" }
    ///     fn price(&self) -> Option<Price> { Some(Price::FREE) }
    ///     fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
    ///         let text = call.last_text().to_string();
    ///         Work::Now(Answer::new(Ok(Reply::Text(text)), Tokens::default()))
    ///     }
    /// }
    /// let world = World::new(Arc::new(Echo));
    /// ```
    pub fn new(model: Arc<dyn Provider>) -> World {
        World::with_models(Models::only(model))
    }

    /// With these models.
    pub fn with_models(models: Models) -> World {
        World { handlers: runtime::Handlers::new(models), limits: Limits::default() }
    }

    /// With an async function for a tool: from its arguments as a record to its result, or to why it failed.
    #[must_use]
    pub fn tool<A, R, E, F, Fut>(mut self, name: &str, act: F) -> World
    where
        A: DeserializeOwned + Send + 'static,
        R: Serialize,
        E: fmt::Display,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let act = Arc::new(act);
        let custom: runtime::CustomTool = Arc::new(move |args| {
            let act = act.clone();
            Box::pin(async move {
                let args = serde_json::from_value(Data::record(args).to_json())
                    .map_err(|e| format!("the arguments are not what the tool takes: {e}"))?;
                let result = act(args).await.map_err(|e| e.to_string())?;
                let json = serde_json::to_value(result).map_err(|e| format!("the result is no data: {e}"))?;
                Data::from_json(&json).map_err(|e| e.to_string())
            })
        });
        self.handlers.tools = self.handlers.tools.with_custom(name, custom);
        self
    }

    /// Within these limits.
    #[must_use]
    pub fn within(self, limits: Limits) -> World {
        World { limits, ..self }
    }

    /// With somebody who approves calls of tools that want it.
    #[must_use]
    pub fn approver(mut self, approver: Approver) -> World {
        self.handlers.approver = Some(approver);
        self
    }
}

/// A model with replies that are written down beforehand; see [`Scripted`].
///
/// # Errors
/// The script is none.
pub fn scripted(script: &str) -> Result<Arc<dyn Provider>, Error> {
    let script = Scripted::parse(script).map_err(|e| Error::new("settings", e.to_string()))?;
    Ok(Arc::new(script))
}
