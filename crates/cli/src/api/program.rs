//! Programs and what can be run in them.

use super::{Error, Finding, Typed, World};
use ::policy::Policy;
use analysis::cost::CostBound;
use analysis::flow;
use analysis::types::{self, Typing};
use core_ir::{Code, Data, LabelSpec, ModelRoutes, Type};
use diagnostics::{Diagnostic, FileId, Sources, has_errors};
use machine::{Config, Machine};
use runtime::{CancellationToken, Event, RunReport, Schema};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use session::bound::Pricing;
use session::load::{self, Loaded, Options, Runnable};
use session::machine_config;
use session::policy;
use session::report::{as_diagnostic, as_json};
use session::settings::Settings;
use session::view::View;
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError};

/// A program that was read and found right.
#[derive(Debug)]
pub struct Program {
    pipelines: Vec<Pipeline>,
    sources: Arc<Sources>,
    found: Vec<Diagnostic>,
}

/// Entry point of a program: a pipeline, or the agent or crew of a configuration.
#[derive(Debug)]
pub struct Pipeline {
    name: String,
    code: Arc<Code>,
    input: Option<Type>,
    is_default: bool,
    policy: Option<Arc<Policy>>,
    routes: Arc<ModelRoutes>,
    pricing: Arc<Pricing>,
    sources: Arc<Sources>,
    typing: OnceLock<Typing>,
    /// The request that a plan fulfills; `None` for other programs.
    request: Option<Arc<str>>,
}

impl Program {
    /// Reads a program in the language `.agent`, with the policy that it has. It may import nothing.
    ///
    /// # Errors
    /// The errors of the program. One that names a policy of a file is one of them.
    ///
    /// # Examples
    /// ```
    /// let text = "tool pay(to: String) -> String reads {}\n\
    ///     policy { tool pay { arguments trusted; } }\n\
    ///     pipeline main(to: String untrusted) -> String { let r = pay(to); return r; }";
    /// let program = entail::Program::from_source(text).unwrap();
    /// assert!(program.check().iter().any(|finding| finding.code == "S101"));
    /// ```
    pub fn from_source(text: &str) -> Result<Program, Error> {
        struct Nothing;
        impl agentlang::Loader for Nothing {
            fn load(&mut self, _: FileId, path: &str) -> Result<(FileId, Arc<str>), String> {
                Err(format!("`{path}` can't be imported by a text; load a file instead"))
            }
        }
        let mut sources = Sources::new();
        let file = sources.add("<source>", text);
        let (module, mut found) = agentlang::check_files(file, text, &mut Nothing);
        let Some(mut module) = module else { return Err(Error::of_program(&sources, &found)) };
        let policy = policy::of_program(&mut sources, None, file, &module)
            .map_err(|problem| Error::of_problem(&sources, problem))?;
        found.extend(policy::check_named(policy.as_ref(), &mut module));
        let mut runnables = load::pipelines(&module, &mut found);
        if has_errors(&found) {
            return Err(Error::of_program(&sources, &found));
        }
        let named = module.policies();
        if let Some(policy) = &policy {
            policy::apply(policy, &named, runnables.iter_mut().map(|r| &mut r.code))
                .map_err(|problem| Error::of_problem(&sources, problem))?;
        }
        Ok(Program::new(
            sources,
            Loaded { runnables, found, policy, named, routes: ModelRoutes::default(), declared: Vec::new() },
            Pricing::default(),
            None,
        ))
    }

    /// Reads a program, `.agent` or `.lam`, with what it imports; or a configuration of a framework, or the
    /// directory of a project in which there is one.
    ///
    /// # Errors
    /// What is wrong with it, or why it can't be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Program, Error> {
        Program::load_as(path.as_ref(), &Options::default(), Pricing::default())
    }

    /// Loads a program as [`Program::load`] does, and applies the policy, models and prices of the settings.
    ///
    /// # Errors
    /// The errors of [`Program::load`], or the policy can't be applied.
    pub fn load_with(path: impl AsRef<Path>, settings: &Settings) -> Result<Program, Error> {
        Program::load_as(path.as_ref(), &settings.loading(None), Pricing::of(settings, None))
    }

    fn load_as(path: &Path, options: &Options, pricing: Pricing) -> Result<Program, Error> {
        let mut sources = Sources::new();
        match load::load(&mut sources, &path.display().to_string(), options) {
            Ok(loaded) => Ok(Program::new(sources, loaded, pricing, None)),
            Err(problem) => Err(Error::of_problem(&sources, problem)),
        }
    }

    /// The program of what was loaded; of a plan with the request that it fulfills.
    pub(super) fn new(
        sources: Sources,
        loaded: Loaded,
        pricing: Pricing,
        request: Option<Arc<str>>,
    ) -> Program {
        let sources = Arc::new(sources);
        let policy = loaded.policy.map(Arc::new);
        let (routes, pricing) = (Arc::new(loaded.routes), Arc::new(pricing));
        let pipeline = |r: Runnable| Pipeline {
            name: r.name,
            code: r.code,
            input: r.input,
            is_default: r.is_default,
            policy: policy.clone(),
            routes: routes.clone(),
            pricing: pricing.clone(),
            sources: sources.clone(),
            typing: OnceLock::new(),
            request: request.clone(),
        };
        let pipelines = loaded.runnables.into_iter().map(pipeline).collect();
        Program { pipelines, sources: sources.clone(), found: loaded.found }
    }

    /// Returns the entry points.
    pub fn pipelines(&self) -> &[Pipeline] {
        &self.pipelines
    }

    /// The pipeline of a name.
    ///
    /// # Errors
    /// The pipeline does not exist; the error lists the pipelines.
    pub fn pipeline(&self, name: &str) -> Result<&Pipeline, Error> {
        self.pipelines.iter().find(|p| p.name == name).ok_or_else(|| {
            let near = diagnostics::nearest(name, self.pipelines.iter().map(|p| &*p.name));
            let help = near.map_or_else(|| self.names(), |n| format!("did you mean `{n}`?"));
            Error::new("usage", format!("unknown pipeline `{name}`")).with_help(Some(help))
        })
    }

    /// Returns the default entry point: the only pipeline, or `main`, or the crew of a configuration.
    ///
    /// # Errors
    /// There are several, or none.
    pub fn main(&self) -> Result<&Pipeline, Error> {
        self.pipelines.iter().find(|p| p.is_default).ok_or_else(|| {
            if self.pipelines.is_empty() {
                return Error::new("usage", "there is nothing to run");
            }
            Error::new("usage", "there are several pipelines").with_help(Some(self.names()))
        })
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.pipelines.iter().map(|p| &*p.name).collect();
        if names.is_empty() { "there is none".into() } else { format!("there is: {}", names.join(", ")) }
    }

    /// All that is to be said about it: what was noticed when it was read, types that do not fit, calls that
    /// their policy refuses.
    pub fn check(&self) -> Vec<Finding> {
        let mut found = self.found.clone();
        for p in &self.pipelines {
            let options = policy::options(p.policy.as_deref(), (*p.routes).clone(), p.input.is_some());
            let flows = flow::findings(&flow::analyze(&p.code, &options));
            // Pipelines share tools and tasks.
            for d in p.typing().diagnostics.iter().chain(&flows) {
                if !found.contains(d) {
                    found.push(d.clone());
                }
            }
        }
        found.iter().map(|d| Finding::of(&self.sources, d)).collect()
    }
}

impl Pipeline {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it is what runs if nothing is named.
    pub fn is_default(&self) -> bool {
        self.is_default
    }

    /// Returns true if it is a plan that [`Planning`](super::Planning) checked.
    pub fn is_plan(&self) -> bool {
        self.request.is_some()
    }

    /// Type of the input; `None` for a term that is evaluated without one.
    pub fn input(&self) -> Option<&Type> {
        self.input.as_ref()
    }

    /// Type of the output, as far as it is known statically.
    pub fn output(&self) -> &Type {
        let typing = self.typing();
        typing.result.as_ref().unwrap_or(&typing.ty)
    }

    /// The JSON Schema of what it takes.
    pub fn input_schema(&self) -> Option<Value> {
        Schema::of(self.input.as_ref()?).map(|s| s.json)
    }

    fn typing(&self) -> &Typing {
        self.typing.get_or_init(|| types::check(&self.code, self.input.as_ref()))
    }

    /// Cost bound of a run, with the models and prices of the settings that the program was loaded with.
    /// Without settings, prices are those of the list that comes with Entail.
    pub fn bound(&self) -> CostBound {
        self.pricing.bound(&self.code, self.input.is_some())
    }

    /// Cost bound of a run, as `entail cost --format json` writes it.
    pub fn bound_json(&self) -> Value {
        session::bound::figures(&self.bound(), &self.sources)
    }

    /// Returns the pipeline with Rust types of its input and output, which are checked against the program's.
    ///
    /// # Errors
    /// The pipeline does not accept every value of `I`, or may return a value that is not an `O`.
    pub fn typed<I, O>(&self) -> Result<Typed<'_, I, O>, Error>
    where
        I: Serialize + JsonSchema,
        O: DeserializeOwned + JsonSchema,
    {
        Typed::of(self)
    }

    /// Checks that this world handles every request of the program: each tool has a handler, functions have
    /// the types of their tools, and the models that the program names exist.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn check_world(&self, world: &World) -> Result<(), Error> {
        world.can_answer(&self.code)
    }

    /// Runs it, and reads what it gives.
    ///
    /// # Errors
    /// The input has the wrong type, a function does not fit its tool, the run failed, or the result is not
    /// an `O`.
    pub async fn run<I: Serialize + ?Sized, O: DeserializeOwned>(
        &self,
        input: &I,
        world: &World,
    ) -> Result<O, Error> {
        let report = self.report(input, world, &CancellationToken::new(), &mut |_| {}).await?;
        if let Some(error) = self.error_of(&report) {
            return Err(error);
        }
        let value = match &report.result {
            Ok(value) => value,
            // Said above.
            Err(f) => return Err(Error::new(f.code.as_str(), f.message.clone())),
        };
        let data =
            value.data().ok_or_else(|| Error::new("output", format!("the result is not data: {value}")))?;
        serde_json::from_value(data.to_json())
            .map_err(|e| Error::new("output", format!("the result is not what was expected: {e}")))
    }

    /// Runs it and tells everything: what was used, labels, events as they happen. `cancel` ends it.
    ///
    /// # Errors
    /// The input has the wrong type, or a function does not fit its tool. A failure of the run is in the
    /// report.
    pub async fn report<I: Serialize + ?Sized>(
        &self,
        input: &I,
        world: &World,
        cancel: &CancellationToken,
        events: &mut (dyn FnMut(Event) + Send),
    ) -> Result<RunReport, Error> {
        let json = serde_json::to_value(input).map_err(|e| self.wrong(e.to_string()))?;
        let input = self.read_input(&json)?;
        world.fits(&self.code)?;
        let machine = Machine::new(self.code.clone(), input, self.config(world));
        Ok(runtime::run(machine, &world.handlers, &world.limits, cancel, events).await)
    }

    /// Configuration of a run.
    fn config(&self, world: &World) -> Config {
        let mut config = machine_config(world.fuel, self.policy.as_deref());
        config.request = self.request.clone();
        if let Some(history) = &world.handlers.history {
            history.lock().unwrap_or_else(PoisonError::into_inner).carry_into(&mut config);
        }
        // An approver sees where arguments come from.
        config.explain_flow =
            world.handlers.approver.is_some() && self.code.tools.iter().any(|t| t.may_ask());
        config
    }

    /// The report of a run, as far as the policy's `[output]` lets it be shown; `None` if it is withheld.
    pub fn shown<'r>(&self, report: &'r RunReport) -> Option<Cow<'r, RunReport>> {
        let config = machine_config(None, self.policy.as_deref());
        let output = self.policy.as_ref().map_or(LabelSpec::TOP, |p| p.output.clone());
        View::new(&config, &[&output]).outcome(report)
    }

    /// Returns the error of a failed run, with its place in the program and the remedy; `None` if the run
    /// succeeded.
    pub fn error_of(&self, report: &RunReport) -> Option<Error> {
        let failure = report.result.as_ref().err()?;
        Some(Error::of(&self.sources, &as_diagnostic(failure, report, &self.code, self.policy.as_deref())))
    }

    /// Returns the result and usage of a run as JSON, as `entail run --format json` writes it.
    pub fn report_json(&self, report: &RunReport) -> Value {
        as_json(&self.sources, report, &self.bound())
    }

    fn wrong(&self, why: String) -> Error {
        let takes = self.input.as_ref().map_or_else(|| "nothing".into(), Type::to_string);
        Error::new("input", format!("`{}` takes {takes}: {why}", self.name))
    }

    /// The input from JSON.
    fn read_input(&self, json: &Value) -> Result<Option<Data>, Error> {
        let ty = match (&self.input, json) {
            (None, Value::Null) => return Ok(None),
            (None, _) => &Type::Dyn,
            (Some(ty), _) => ty,
        };
        let data = ty.read_input(json).map_err(|why| self.wrong(why.message).with_help(why.help))?;
        Ok(Some(data))
    }
}
