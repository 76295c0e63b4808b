//! Plan mode: tools that schemas describe, the exchange with a planner, the plan as a program.

use super::{Error, Finding, Program, World};
use core_ir::{ModelRoutes, Name};
use diagnostics::{FileId, Sources, Span};
use runtime::{CustomTool, RunReport, Stores, Tools};
use serde_json::Value;
use session::bound::Pricing;
use session::load::Loaded;
use session::machine_config;
use session::planning::{self, Compiled, Draft, PlanOptions, Step, Toolset};
use session::preflight::Gate;
use session::replanning::{PlanOutline, Replanning};
use session::report::usage_json;
use session::settings::Settings;
use session::tool_schemas::{ToolSchemas, declaration};
use std::path::PathBuf;
use std::sync::Arc;

/// A tool that the embedding program carries out ([`World::tool_of_schemas`](super::World::tool_of_schemas)).
#[derive(Clone, Debug, Default)]
pub struct PlanTool {
    /// Its name in plans.
    pub name: String,
    /// Description for the planner.
    pub description: Option<String>,
    /// JSON Schema of its arguments, an object.
    pub takes: Value,
    /// JSON Schema of its result, if it is known.
    pub gives: Option<Value>,
}

/// A request with the tools that may fulfill it.
#[derive(Clone, Debug, Default)]
pub struct PlanSetup {
    /// The request.
    pub request: String,
    /// Tools that the embedding program carries out.
    pub tools: Vec<PlanTool>,
    /// Further tools as `--tools` names them: files in the language `.agent`, files of Python, `mcp:NAME`.
    pub sources: Vec<String>,
    /// True if a planner may see what MCP servers say of tools that nobody has approved.
    pub unpinned: bool,
    /// The policy file; without one, that of the settings.
    pub policy: Option<PathBuf>,
    /// The text of a policy, instead of a file.
    pub policy_text: Option<String>,
    /// Maximum number of rounds of a `while` loop.
    pub max_rounds: Option<u64>,
    /// Maximum number of further plans, each after findings about the one before.
    pub replan: Option<u32>,
    /// Maximum number of further plans, each after a plan that was run and ended with an error
    /// ([`Planning::after`]); none by default.
    pub replan_errors: Option<u32>,
    /// True if a plan may run although one of its calls is refused every time.
    pub run_refused: bool,
    /// Consent to run functions of Python files as tools.
    pub python_tools: bool,
}

/// An exchange with a planner: prompts out, plans in.
///
/// # Examples
/// ```
/// use entail::{Error, PlanSetup, PlanStep, PlanTool, Planning, Settings};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let takes = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
/// let read = PlanTool {
///     name: "read_file".into(),
///     takes,
///     gives: Some(json!({"type": "string"})),
///     ..PlanTool::default()
/// };
/// let setup = PlanSetup { request: "Show a.txt".into(), tools: vec![read], ..PlanSetup::default() };
/// let mut planning = Planning::new(&Settings::nearest()?, setup).await?;
/// assert!(planning.prompt().contains("def read_file(path: str) -> str:"));
/// // The reply of a planner, with a mistake.
/// let PlanStep::Again { prompt, .. } = planning.reply("print(read_fil(path=\"a.txt\"))") else { panic!() };
/// assert!(prompt.contains("did you mean `read_file`?"));
/// let PlanStep::Done(plan) = planning.reply("print(read_file(path=\"a.txt\"))") else { panic!() };
/// assert!(plan.errors().is_empty());
/// assert!(plan.program().is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Planning {
    exchange: planning::Planning,
    tools: Tools,
    stores: Stores,
    routes: ModelRoutes,
    pricing: Pricing,
    run_refused: bool,
    /// The last plan, if it compiles.
    last: Option<PlanOutline>,
    replanning: Replanning,
}

/// Step that follows a plan.
#[derive(Debug)]
pub enum PlanStep {
    /// The plan has mistakes that the planner may mend.
    Again {
        /// The prompt for the next plan.
        prompt: String,
        /// The mistakes, with their lines.
        findings: Vec<(u32, String)>,
    },
    /// This is the plan.
    Done(Box<Plan>),
}

/// A plan, checked; it can run unless it has errors.
#[derive(Debug)]
pub struct Plan {
    text: String,
    errors: Vec<Finding>,
    calls: Vec<Value>,
    problem: Option<Error>,
    program: Option<Program>,
}

impl Planning {
    /// An exchange about a request, with the policy, handlers and models of the settings.
    ///
    /// # Errors
    /// The policy, a tool, a file or a server can't be used.
    pub async fn new(settings: &Settings, setup: PlanSetup) -> Result<Planning, Error> {
        let mut sources = Sources::new();
        let mut toolset = Toolset::read(&mut sources, &settings.loading(setup.policy.as_deref()))
            .map_err(|problem| Error::of_problem(&sources, problem))?;
        if let Some(text) = &setup.policy_text {
            let set = toolset.set_policy(&mut sources, text);
            set.map_err(|problem| Error::of_problem(&sources, problem))?;
        }
        for source in &setup.sources {
            let declared = toolset.declare(&mut sources, source, settings, setup.unpinned).await;
            declared.map_err(|problem| Error::of_problem(&sources, problem))?;
        }
        let mut tools = settings.tools();
        if setup.python_tools {
            tools = tools.allowing_python();
        }
        let file = sources.add("<tools>", "");
        for tool in &setup.tools {
            let decl = declared(tool, file)?;
            let added = toolset.add(Arc::new(decl));
            added.map_err(|problem| Error::of_problem(&sources, problem))?;
            tools = tools.with_custom(tool.name.as_str(), not_yet());
        }
        let usual = PlanOptions::default();
        let options = PlanOptions {
            max_rounds: setup.max_rounds.unwrap_or(usual.max_rounds),
            replan: setup.replan.unwrap_or(usual.replan),
            replan_errors: setup.replan_errors.unwrap_or(usual.replan_errors),
            ..usual
        };
        let exchange = planning::Planning::new(sources, toolset, setup.request.into(), options);
        Ok(Planning {
            last: None,
            replanning: replanning_of(&exchange),
            exchange,
            tools,
            stores: settings.fresh_stores(),
            routes: settings.model_settings(None).routes(&settings.environment),
            pricing: Pricing::of(settings, None),
            run_refused: setup.run_refused,
        })
    }

    /// An exchange that goes on from here, for a run of its own of the last plan.
    #[must_use]
    pub fn again(&self) -> Planning {
        Planning {
            exchange: self.exchange.clone(),
            tools: self.tools.clone(),
            stores: self.stores.clone(),
            routes: self.routes.clone(),
            pricing: self.pricing.clone(),
            run_refused: self.run_refused,
            last: self.last.clone(),
            replanning: replanning_of(&self.exchange),
        }
    }

    /// The world for a run of the last plan: with the answers of earlier plans of the request, and what their
    /// runs left of its limits.
    pub fn world(&self, world: &World) -> World {
        let mut world = world.clone();
        world.handlers.history = self.replanning.follows().map(|follows| follows.history);
        world.limits = self.replanning.limits(&world.limits);
        world
    }

    /// Takes the report of a run of the last plan. Returns the prompt for another plan if it ended with an
    /// error of which the planner may be told, and another one may be written.
    pub fn after(&mut self, report: &RunReport) -> Option<String> {
        let told = self.replanning.after(self.last.as_ref()?, report)?.ended.clone();
        Some(self.exchange.after_error(told))
    }

    /// Adds what the planner was told of runs to the outcome of the last one, and what all of them used, as
    /// `entail plan --format json` writes it.
    pub fn add_told(&self, outcome: &mut Value) {
        if !self.replanning.told().is_empty() {
            self.replanning.add_to(outcome);
            outcome["usage"] = usage_json(self.replanning.usage());
            outcome["questions"] = self.replanning.usage().questions.into();
        }
    }

    /// The prompt for the next plan: the request, the signatures of the tools and the language of plans.
    pub fn prompt(&self) -> String {
        self.exchange.prompt()
    }

    /// Takes what a planner replied.
    pub fn reply(&mut self, reply: &str) -> PlanStep {
        let Planning { exchange, tools, stores, routes, run_refused, .. } = self;
        match exchange.reply(reply, &Gate { tools, stores, routes, refusals: *run_refused }) {
            Step::Again { prompt, findings } => PlanStep::Again { prompt, findings },
            Step::Done(draft) => PlanStep::Done(Box::new(self.plan_of(*draft))),
        }
    }

    /// Checks a plan that is there already.
    pub fn plan(&mut self, text: &str) -> Plan {
        let Planning { exchange, tools, stores, routes, run_refused, .. } = self;
        let draft = exchange.draft(text, &Gate { tools, stores, routes, refusals: *run_refused });
        self.plan_of(draft)
    }

    fn plan_of(&mut self, draft: Draft) -> Plan {
        self.last = draft.outline();
        let finding = |d| Finding::of(&draft.sources, d);
        let errors = draft.errors().iter().map(finding).filter(Finding::is_error).collect();
        let calls = draft.flow().map_or_else(Vec::new, |report| draft.calls(&report));
        let Draft { text, sources, outcome, .. } = draft;
        let (program, problem) = match outcome {
            Ok(Compiled { loaded, refusal }) => {
                let problem = refusal.map(|r| Error::of_program(&sources, &r.findings));
                (Some(self.program_of(sources, loaded)), problem)
            }
            Err(problem) => (None, Some(Error::of_problem(&sources, problem))),
        };
        Plan { text, errors, calls, problem, program }
    }

    fn program_of(&self, sources: Sources, loaded: Loaded) -> Program {
        Program::new(sources, loaded, self.pricing.clone(), Some(self.exchange.request().clone()))
    }

    /// The program that asks a model for a plan: one call without tools, whose result is the reply.
    pub fn question(settings: &Settings, prompt: &str) -> Program {
        let loaded = Loaded::of_term("plan", planning::question(prompt, None));
        Program::new(Sources::new(), loaded, Pricing::of(settings, None), None)
    }
}

/// Runs of the plans of an exchange.
fn replanning_of(exchange: &planning::Planning) -> Replanning {
    Replanning::new(exchange.options().replan_errors, &machine_config(None, exchange.policy()))
}

/// The declaration of a tool.
fn declared(tool: &PlanTool, file: FileId) -> Result<core_ir::ToolDecl, Error> {
    let schemas = ToolSchemas {
        name: &tool.name,
        description: tool.description.as_deref(),
        takes: &tool.takes,
        gives: tool.gives.as_ref(),
    };
    declaration(&schemas, Span { file, start: 0, end: 0 }).map_err(Error::usage)
}

/// Handler for the check before the run, when the function is not there yet.
fn not_yet() -> CustomTool {
    Arc::new(|_: Vec<(Name, core_ir::Data)>| {
        Box::pin(async { Err("the world has no function for this tool".to_string()) })
    })
}

impl Plan {
    /// The plan, in a subset of Python.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Findings that keep it from running.
    pub fn errors(&self) -> &[Finding] {
        &self.errors
    }

    /// Its calls with their static verdicts, as JSON: `line`, `sink`, `name`, `verdict` (`always`, `never`,
    /// `depends`), `asks`, and `why` and `help` if it may be refused.
    pub fn calls(&self) -> &[Value] {
        &self.calls
    }

    /// Findings that keep it from running, as an error.
    pub fn problem(&self) -> Option<&Error> {
        self.problem.as_ref()
    }

    /// The plan as a program with one pipeline, `plan`; `None` if it doesn't compile.
    pub fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// The plan as a program.
    pub fn into_program(self) -> Option<Program> {
        self.program
    }
}
