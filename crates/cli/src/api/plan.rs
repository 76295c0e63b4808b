//! Plan mode: tools that schemas describe, the exchange with a planner, the plan as a program.

use super::{Error, Finding, Program};
use core_ir::{ModelRoutes, Name};
use diagnostics::{FileId, Sources, Span};
use runtime::{CustomTool, Stores, Tools};
use serde_json::Value;
use session::bound::Pricing;
use session::load::Loaded;
use session::planning::{self, Compiled, Draft, PlanOptions, Step, Toolset};
use session::preflight::Gate;
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
            ..usual
        };
        Ok(Planning {
            exchange: planning::Planning::new(sources, toolset, setup.request.into(), options),
            tools,
            stores: settings.fresh_stores(),
            routes: settings.model_settings(None).routes(&settings.environment),
            pricing: Pricing::of(settings, None),
            run_refused: setup.run_refused,
        })
    }

    /// The prompt for the first plan: the request, the signatures of the tools and the language of plans.
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
    pub fn plan(&self, text: &str) -> Plan {
        let Planning { exchange, tools, stores, routes, run_refused, .. } = self;
        self.plan_of(exchange.draft(text, &Gate { tools, stores, routes, refusals: *run_refused }))
    }

    fn plan_of(&self, draft: Draft) -> Plan {
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
