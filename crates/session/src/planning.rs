//! Plan mode before the run: the tools of a plan, the exchange with a planner, and what is known of a plan.
//!
//! Entry points: [`Toolset`] for the tools, [`Planning`] for the exchange, [`question`] for a planner that is
//! a model. A driver runs the plan as every other program.
//!
//! ```
//! use session::load::Options;
//! use session::planning::{PlanOptions, Planning, Step, Toolset};
//! use session::preflight::Gate;
//! # use diagnostics::Sources;
//! # use session::Settings;
//!
//! # fn example(settings: &Settings, planner: impl Fn(String) -> String) -> Option<()> {
//! let mut sources = Sources::new();
//! let mut tools = Toolset::read(&mut sources, &Options::default()).ok()?;
//! tools.declare_file(&mut sources, "tools.agent").ok()?;
//! let mut planning = Planning::new(sources, tools, "Pay the rent".into(), PlanOptions::default());
//! let gate = Gate {
//!     tools: &settings.tools(),
//!     stores: &settings.fresh_stores(),
//!     routes: &Default::default(),
//!     refusals: false,
//! };
//! let mut prompt = planning.prompt();
//! let draft = loop {
//!     match planning.reply(&planner(prompt), &gate) {
//!         Step::Again { prompt: next, .. } => prompt = next,
//!         Step::Done(draft) => break draft,
//!     }
//! };
//! println!("{}", draft.text);
//! # Some(())
//! # }
//! ```
//!
//! Invariant: a planner is given the request, the signatures of tools and findings before the run. Of a run
//! it is given nothing but what [`replanning`](crate::replanning) lets it know.
//! Invariant: nothing is run here, and nobody is asked.

use crate::feedback;
use crate::frameworks;
use crate::load::{Imports, Kind, Loaded, Options, Problem, Runnable, read_text};
use crate::policy;
use crate::preflight::{Gate, Refusal};
use crate::remarks;
use crate::replanning::PlanOutline;
use crate::settings::Settings;
use crate::tool_schemas;
use ::policy::{Policy, PolicyUse};
use analysis::flow::{self, FlowReport};
use core_ir::{
    Builder, Code, Data, Globals, Lattice, LatticeKind, ModelParams, ModelRoutes, Name, Term, ToolDecl,
};
use diagnostics::{Diagnostic, FileId, Level, Sources, Span, has_errors};
use plan::planner::{self, Ended};
use runtime::{PinState, Pins, ServerTool};
use serde_json::Value;
use std::sync::Arc;

/// Name of a plan that a planner wrote.
pub const WRITTEN: &str = "request.plan.py";

/// Number of further plans, each after findings about the one before, unless the caller says otherwise.
pub const REPLAN: u32 = 2;

/// The tools that a plan may call, with the policy that applies to them.
#[derive(Clone, Debug, Default)]
pub struct Toolset {
    tools: Vec<Arc<ToolDecl>>,
    /// Places where declarations name policies.
    named: Vec<PolicyUse>,
    /// Findings about the declarations.
    found: Vec<Diagnostic>,
    policy: Option<Policy>,
    /// True if declarations may name policies that don't exist yet.
    undecided: bool,
    routes: ModelRoutes,
    /// The approved tools of servers that files may import; `None` for those of the nearest lock.
    pins: Option<Arc<Pins>>,
}

/// The text of a plan, with its place among the sources.
#[derive(Clone, Debug)]
pub struct PlanText<'a> {
    /// The file of the plan among the sources.
    pub file: FileId,
    /// Its path, for messages.
    pub path: &'a str,
    /// The plan.
    pub text: Arc<str>,
    /// Maximum number of rounds of a `while` loop.
    pub max_rounds: u64,
    /// The model that `ask` asks; the default model of the run without it.
    pub quarantine: Option<Name>,
}

impl Toolset {
    /// No tools, and the policy file of the options.
    ///
    /// # Errors
    /// The policy file can't be read or is wrong.
    pub fn read(sources: &mut Sources, options: &Options) -> Result<Toolset, Problem> {
        let policy = policy::read(sources, options.policy.as_deref())?;
        Ok(Toolset {
            policy,
            undecided: options.undecided,
            routes: options.routes.clone(),
            pins: options.pins.clone(),
            ..Toolset::default()
        })
    }

    /// Replaces the policy by one that is a text: the contents of a policy file.
    ///
    /// # Errors
    /// The text is no policy.
    pub fn set_policy(&mut self, sources: &mut Sources, text: &str) -> Result<(), Problem> {
        let file = sources.add("<policy>", text);
        self.policy = Some(Policy::parse_kept(file, text).map_err(Problem::Policy)?);
        Ok(())
    }

    /// Adds tools as `--tools` names them: a file in the language `.agent`, a file of Python whose public
    /// functions are tools, or `mcp:NAME` for those of an MCP server of the settings.
    ///
    /// A server's description of a tool is its own text until somebody has approved it (`entail.lock`). It is
    /// refused before that, unless `unpinned` says otherwise, and when it has changed since.
    ///
    /// # Errors
    /// The file or server can't be read, its tools are not approved, or one is there already.
    pub async fn declare(
        &mut self,
        sources: &mut Sources,
        source: &str,
        settings: &Settings,
        unpinned: bool,
    ) -> Result<(), Problem> {
        if let Some(server) = source.strip_prefix("mcp:") {
            let offered = settings.tools().discover(server).await;
            let offered = offered.map_err(|why| Problem::Unreadable(why, None))?;
            return self.declare_server(sources, server, &offered, &settings.pins, unpinned);
        }
        match source.ends_with(".py") {
            true => self.declare_python(sources, source),
            false => self.declare_file(sources, source),
        }
    }

    /// Adds the tools that an MCP server offers, as far as they are approved.
    ///
    /// # Errors
    /// See [`Toolset::declare`].
    pub fn declare_server(
        &mut self,
        sources: &mut Sources,
        server: &str,
        offered: &[ServerTool],
        pins: &Pins,
        unpinned: bool,
    ) -> Result<(), Problem> {
        let file = sources.add(format!("mcp:{server}"), "");
        for tool in offered {
            let refused = match pins.state(server, tool) {
                PinState::NotApproved if unpinned => None,
                PinState::NotApproved => Some("nobody has approved what its server says of it".to_string()),
                state => state.refusal(),
            };
            let name = diagnostics::clip(&tool.name);
            if let Some(why) = refused {
                let mut help = format!(
                    "look at it with `entail tools --discover {server}`, and approve it with `entail lock \
                     --update {server}`"
                );
                if !pins.knows(server) {
                    help.push_str("; `--unpinned` shows the planner what nobody has approved");
                }
                let what = format!("the tool `{name}` of the server `{server}` is not offered: {why}");
                return Err(Problem::Unreadable(what, Some(help)));
            }
            let at = Span { file, start: 0, end: 0 };
            let decl = tool_schemas::of_server(server, tool, at).map_err(|why| {
                Problem::Unreadable(format!("the tool `{name}` of the server `{server}`: {why}"), None)
            })?;
            self.add(Arc::new(decl))?;
        }
        Ok(())
    }

    /// Adds the public functions of a module of Python, which is read and not imported.
    ///
    /// # Errors
    /// The file can't be read or is no Python, or declares a tool that is there already.
    pub fn declare_python(&mut self, sources: &mut Sources, path: &str) -> Result<(), Problem> {
        let (id, text) = read_text(sources, path)?;
        let tools = frameworks::function_tools(id, path, text).map_err(Problem::Wrong)?;
        if tools.is_empty() {
            let help = "a public function at the top level is a tool: `def search(text: str) -> str:`";
            return Err(Problem::Unreadable(format!("`{path}` has no public function"), Some(help.into())));
        }
        tools.into_iter().try_for_each(|tool| self.add(Arc::new(tool)))
    }

    /// Adds the tools that a file in the language `.agent` declares.
    ///
    /// # Errors
    /// The file can't be read or is wrong, or declares a tool that is there already.
    pub fn declare_file(&mut self, sources: &mut Sources, path: &str) -> Result<(), Problem> {
        let (id, text) = read_text(sources, path)?;
        let (module, found) =
            agentlang::check_files(id, &text, &mut Imports::new(sources, id).with_lock(self.pins.clone()));
        let failed = has_errors(&found);
        self.found.extend(found);
        let Some(mut module) = module.filter(|_| !failed) else {
            return Err(Problem::Wrong(std::mem::take(&mut self.found)));
        };
        if let Some(block) = module.policy_block().map_err(Problem::Wrong)? {
            self.policy = Some(match &self.policy {
                Some(other) if other.has_block() => {
                    let what = format!("`{path}` and another file of tools both have a policy");
                    let help = "let one of them say it, or write a policy file";
                    return Err(Problem::Unreadable(what, Some(help.into())));
                }
                Some(file) => Policy::parse_with(file.file, file.text(), &block).map_err(Problem::Wrong)?,
                None => Policy::of_block(id, &block).map_err(Problem::Wrong)?,
            });
        }
        let unknown = policy::check_named(self.policy.as_ref(), &mut module);
        if !self.undecided {
            self.found.extend(unknown);
        }
        for tool in module.tools() {
            self.add(tool)?;
        }
        self.named.extend(module.policies());
        Ok(())
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// There is one of this name already, or the name is one of plans: they would call something else.
    pub fn add(&mut self, tool: Arc<ToolDecl>) -> Result<(), Problem> {
        if plan::is_reserved(&tool.name) {
            let what = format!(
                "a plan can't call a tool of the name `{}`, which means something else there",
                tool.name
            );
            let help = "rename it; a tool of an MCP server is renamed in the declaration that `entail tools --discover \
                        NAME --to agent` prints";
            return Err(Problem::Unreadable(what, Some(help.into())));
        }
        if self.tools.iter().any(|t| t.name == tool.name) {
            let what = format!("the tool `{}` is declared twice", tool.name);
            return Err(Problem::Unreadable(what, Some("rename one of them".into())));
        }
        self.tools.push(tool);
        Ok(())
    }

    /// The tools as they are declared, without the policy.
    pub fn tools(&self) -> &[Arc<ToolDecl>] {
        &self.tools
    }

    /// The tools as the policy has them, for the planner. Mistakes in the policy are found with the plan.
    fn signatures(&self) -> Vec<Arc<ToolDecl>> {
        self.code().map_or_else(|| self.tools.clone(), |code| code.tools)
    }

    /// The lattice of the policy.
    fn lattice(&self) -> Lattice {
        let policy = self.policy.as_ref();
        policy.map_or_else(
            || Lattice::new(LatticeKind::TwoAxis),
            |policy| Lattice::with_principals(policy.lattice, &policy.principals),
        )
    }

    /// A program that calls nothing, with the tools as the policy has them.
    fn code(&self) -> Option<Code> {
        let mut b = Builder::new();
        for tool in &self.tools {
            b.tool((**tool).clone());
        }
        let root = b.lit(Data::Null, NOWHERE);
        let mut code = b.finish(root, &Globals::none()).ok()?;
        if let Some(policy) = &self.policy {
            policy.apply_to(&mut code, &self.named);
        }
        Some(code)
    }

    /// Compiles a plan with these tools, and applies the policy.
    ///
    /// # Errors
    /// The plan, a declaration or the policy is wrong.
    pub fn compile(&self, text: &PlanText<'_>) -> Result<Loaded, Problem> {
        let mut world = plan::World {
            tools: self.tools.clone(),
            max_rounds: text.max_rounds,
            quarantine: text.quarantine.clone(),
            ..plan::World::default()
        };
        if let Some(policy) = &self.policy {
            world.lattice = policy.lattice;
            world.people.clone_from(&policy.people);
            world.delegates = policy.delegates().iter().map(delegate).collect();
            let label = |t: &Arc<ToolDecl>| Some((t.name.clone(), policy.result_of(&t.name, &self.named)?));
            world.results = self.tools.iter().filter_map(label).collect();
        }
        let (code, more, hints) = plan::compile_with_hints(text.file, text.path, text.text.clone(), &world);
        let mut found = self.found.clone();
        found.extend(more);
        let Some(code) = code.filter(|_| !has_errors(&found)) else { return Err(Problem::Wrong(found)) };
        let mut runnable =
            Runnable { name: "plan".into(), code: Arc::new(code), input: None, is_default: true, hints };
        if let Some(policy) = &self.policy {
            policy::apply(policy, &self.named, std::iter::once(&mut runnable.code))?;
        }
        Ok(Loaded {
            runnables: vec![runnable],
            found,
            policy: self.policy.clone(),
            named: self.named.clone(),
            routes: self.routes.clone(),
            declared: self.tools.clone(),
        })
    }
}

/// No place in any file.
const NOWHERE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };

/// Options of an exchange with a planner.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Path of the plan, for messages.
    pub path: String,
    /// Maximum number of rounds of a `while` loop.
    pub max_rounds: u64,
    /// Maximum number of further plans, each after findings about the one before.
    pub replan: u32,
    /// Maximum number of further plans, each after a plan that was run and ended with an error.
    pub replan_errors: u32,
    /// The model that `ask` asks; the default model of the run without it.
    pub quarantine: Option<Name>,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            path: WRITTEN.into(),
            max_rounds: plan::MAX_ROUNDS,
            replan: REPLAN,
            replan_errors: 0,
            quarantine: None,
        }
    }
}

/// An exchange with a planner: prompts out, plans in, until one is right or no further one may be written.
#[derive(Clone, Debug)]
pub struct Planning {
    sources: Sources,
    tools: Toolset,
    request: Arc<str>,
    options: PlanOptions,
    /// Further plans that may be written after findings.
    left: u32,
    /// Plans that were run and ended with an error.
    ended: Vec<Ended>,
}

/// Step that follows a plan.
#[derive(Debug)]
pub enum Step {
    /// The plan has mistakes that the planner may mend.
    Again {
        /// The prompt for the next plan.
        prompt: String,
        /// The mistakes, with their lines.
        findings: Vec<(u32, String)>,
    },
    /// This is the plan.
    Done(Box<Draft>),
}

/// The last plan of an exchange.
#[derive(Debug)]
pub struct Draft {
    /// The plan.
    pub text: String,
    /// Its file among the sources.
    pub file: FileId,
    /// The files that findings point into.
    pub sources: Sources,
    /// The plan as a program, or what is wrong.
    pub outcome: Result<Compiled, Problem>,
}

/// A plan that compiles.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub loaded: Loaded,
    /// Why it can't run, if it can't.
    pub refusal: Option<Refusal>,
}

impl Compiled {
    /// The term of the plan.
    pub fn runnable(&self) -> Option<&Runnable> {
        self.loaded.runnables.first()
    }
}

impl Planning {
    /// An exchange about a request. The sources have the declarations of the tools and the policy.
    pub fn new(sources: Sources, tools: Toolset, request: Arc<str>, options: PlanOptions) -> Planning {
        let left = options.replan;
        Planning { sources, tools, request, options, left, ended: Vec::new() }
    }

    /// An exchange about another request.
    #[must_use]
    pub fn about(&self, request: Arc<str>) -> Planning {
        Planning { request, left: self.options.replan, ended: Vec::new(), ..self.clone() }
    }

    /// The tools as the policy has them, as text: a plan that is resumed has the same.
    pub fn declarations(&self) -> String {
        self.tools.code().as_ref().map_or_else(String::new, core_ir::print_code)
    }

    /// The policy that applies to plans.
    pub fn policy(&self) -> Option<&Policy> {
        self.tools.policy.as_ref()
    }

    /// The options.
    pub fn options(&self) -> &PlanOptions {
        &self.options
    }

    /// The prompt for the next plan.
    pub fn prompt(&self) -> String {
        let people = self.tools.policy.as_ref().map_or(&[][..], |policy| &policy.people);
        let (tools, lattice) = (self.tools.signatures(), self.tools.lattice());
        planner::prompt(&self.request, (&tools, &lattice), people, &self.ended)
    }

    /// Notes that the last plan was run and ended with an error; returns the prompt for another one.
    pub fn after_error(&mut self, ended: Ended) -> String {
        self.ended.push(ended);
        self.prompt()
    }

    /// The request.
    pub fn request(&self) -> &Arc<str> {
        &self.request
    }

    /// Takes what a planner replied.
    pub fn reply(&mut self, reply: &str, gate: &Gate<'_>) -> Step {
        let text = planner::code_of(reply);
        let mut draft = self.draft(&text, gate);
        // A file may be empty, and then does nothing; a planner was asked for a plan.
        if text.trim().is_empty() {
            let at = Span { file: draft.file, start: 0, end: 0 };
            let empty = Diagnostic::error(plan::codes::SYNTAX, "the planner's reply has no plan", at);
            draft.outcome = Err(Problem::Wrong(vec![empty.help("answer with one block of Python code")]));
        }
        if self.left > 0
            && let Some(findings) = draft.feedback(&self.tools)
        {
            self.left -= 1;
            let prompt = planner::retry(self.prompt(), &draft.text, &findings);
            return Step::Again { prompt, findings };
        }
        Step::Done(Box::new(draft))
    }

    /// Compiles and checks a plan that is there already.
    pub fn draft(&self, text: &str, gate: &Gate<'_>) -> Draft {
        let mut sources = self.sources.clone();
        let PlanOptions { path, max_rounds, quarantine, .. } = self.options.clone();
        let file = sources.add(path.as_str(), text);
        let plan = PlanText { file, path: &path, text: text.into(), max_rounds, quarantine };
        let compiled = self.tools.compile(&plan);
        let outcome = compiled.map(|loaded| {
            let checked = |r: &Runnable| gate.check(Kind::Plan, r, loaded.policy.as_ref()).err();
            let refusal = loaded.runnables.first().and_then(checked);
            Compiled { loaded, refusal }
        });
        Draft { text: text.to_string(), file, sources, outcome }
    }
}

impl Draft {
    /// The outline of the plan for [`replanning`](crate::replanning); `None` if it doesn't compile.
    pub fn outline(&self) -> Option<PlanOutline> {
        let runnable = self.outcome.as_ref().ok()?.runnable()?;
        Some(PlanOutline::new(&self.text, self.file, &runnable.code))
    }

    /// Findings that keep the plan from running.
    pub fn errors(&self) -> &[Diagnostic] {
        match &self.outcome {
            Ok(compiled) => compiled.refusal.as_ref().map_or(&[], |r| &r.findings),
            Err(Problem::Wrong(found) | Problem::Policy(found)) => found,
            Err(Problem::Unreadable(..)) => &[],
        }
    }

    /// Findings that a planner can mend, with their lines: facts of the plan's text, the declarations and the
    /// policy. `None` if there are none, or others besides.
    fn feedback(&self, tools: &Toolset) -> Option<Vec<(u32, String)>> {
        let found = match &self.outcome {
            Ok(Compiled { refusal: Some(refusal), .. }) if refusal.calls_refused => &refusal.findings,
            Err(Problem::Wrong(found)) if self.all_in_plan(found) => found,
            _ => return None,
        };
        Some(feedback::told(self, found, &tools.signatures(), &tools.lattice()))
    }

    /// True if all errors are about the plan: those in a declaration are nothing that a planner can mend.
    fn all_in_plan(&self, found: &[Diagnostic]) -> bool {
        let mut errors = found.iter().filter(|d| d.level == Level::Error);
        errors.all(|d| d.span.is_some_and(|s| s.file == self.file))
    }

    pub(crate) fn line(&self, span: Span) -> u32 {
        self.sources.get(span.file).map_or(0, |s| s.line_column(span.start).line)
    }

    /// The static flows of the plan; `None` if it doesn't compile.
    pub fn flow(&self) -> Option<FlowReport> {
        let loaded = &self.outcome.as_ref().ok()?.loaded;
        let options = policy::options(loaded.policy.as_ref(), loaded.routes.clone(), false);
        Some(flow::analyze(&loaded.runnables.first()?.code, &options))
    }

    /// Lines with remarks: possible refusals of the calls of the plan, questions to a person, choices of an
    /// attacker, texts of several writers, and delegations.
    pub fn remarks(&self, report: &FlowReport) -> Vec<(u32, String)> {
        remarks::all(self, report)
    }

    /// Rules of the policy without effect: sets that admit nothing, and labels of parts that change nothing.
    pub fn warnings(&self, report: &FlowReport) -> Vec<Diagnostic> {
        flow::policy_warnings(report)
    }

    /// The calls of the plan as JSON: each as `entail check --show flow` has it, with `line`, and with `why`
    /// and `help` if it may be refused.
    pub fn calls(&self, report: &FlowReport) -> Vec<Value> {
        let call = |site: &flow::Site| {
            let mut json = flow::site_json(site, &self.sources);
            json["line"] =
                if site.span.file == self.file { self.line(site.span).into() } else { Value::Null };
            if let Some(d) = flow::refusal(site) {
                json["why"] = d.message.into();
                json["help"] = d.help.join("\n").into();
            }
            json
        };
        report.sites.iter().map(call).collect()
    }
}

/// The program that asks a model for a plan: one call, in a conversation of its own, without tools. Without a
/// name it is the default model of the run.
pub fn question(prompt: &str, model: Option<Name>) -> Arc<Code> {
    let mut b = Builder::new();
    let system = b.lit("", NOWHERE);
    let params = ModelParams { purpose: Some("plan".into()), model, ..ModelParams::default() };
    let model = b.add(Term::Llm(system, Arc::new(params)), NOWHERE);
    let prompt = b.lit(Data::str(prompt), NOWHERE);
    let root = b.app(model, prompt, NOWHERE);
    match b.finish(root, &Globals::none()) {
        Ok(code) => code.into(),
        // INVARIANT: the term has no variables, so none is free.
        Err(e) => unreachable!("a closed term: {e:?}"),
    }
}

/// A delegation of the policy, as plans see it.
fn delegate(rule: &::policy::Delegate) -> plan::Delegate {
    plan::Delegate { to: rule.to.clone(), tools: rule.tools.clone(), at_most: rule.at_most }
}
