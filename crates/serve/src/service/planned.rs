//! `[plan]`: a pipeline from a request to an answer, whose program a planner writes.
//!
//! Invariant: a plan is only made of a request that is trusted and public. Everybody else would decide what
//! the plan does, or the planner would see what it may not.
//! Invariant: the planner sees no result of a tool.

use super::{Caller, Pipeline, Programs, Refused};
use crate::error::Error;
use analysis::cost::CostBound;
use core_ir::{Code, Data, LabelSpec, Lattice, ModelRoutes, Name, Num, Type};
use diagnostics::Sources;
use machine::Machine;
use runtime::{CancellationToken, Event, Handlers, Limits, RunReport, Stores, Tools, Usage};
use session::machine_config;
use session::planning::{self, Planning, Step};
use session::preflight::Gate;
use std::sync::Arc;

/// Name of the pipeline.
const PLAN: &str = "plan";

/// Writes plans for requests.
pub(super) struct Planner {
    planning: Planning,
    model: Option<Name>,
    tools: Tools,
    stores: Stores,
    routes: ModelRoutes,
    /// A question to the model that `ask` asks, for the check that it can be asked.
    quarantine: Arc<Code>,
}

/// A plan, with what writing it used.
pub(super) struct Written {
    pub(super) program: Result<PlannedProgram, PlanFailure>,
    pub(super) usage: Usage,
}

/// A program that is run for a request.
pub(super) struct PlannedProgram {
    pub(super) code: Arc<Code>,
    /// The files that its places are in, where they are not those of the server.
    pub(super) sources: Option<Sources>,
    pub(super) request: Option<Arc<str>>,
}

/// Why no plan runs.
#[derive(Clone, Debug)]
pub(super) struct PlanFailure {
    pub(super) code: String,
    pub(super) message: String,
}

/// A run, or why there was none.
pub(super) struct Ran {
    pub(super) report: Result<RunReport, PlanFailure>,
    pub(super) sources: Option<Sources>,
    /// Usage of writing the plan.
    pub(super) usage: Option<Usage>,
}

impl Ran {
    /// Everything that was used.
    pub(super) fn used(&self) -> Option<Usage> {
        match &self.report {
            Ok(report) => Some(report.usage.clone()),
            Err(_) => self.usage.clone(),
        }
    }
}

impl PlannedProgram {
    /// A program that was there before.
    pub(super) fn of(code: &Arc<Code>) -> PlannedProgram {
        PlannedProgram { code: code.clone(), sources: None, request: None }
    }
}

impl Planner {
    /// A question to the model that `ask` asks.
    pub(super) fn quarantine(&self) -> &Code {
        &self.quarantine
    }

    /// Has a plan written for a request.
    pub(super) async fn write(
        &self,
        request: &str,
        handlers: &Handlers,
        limits: &Limits,
        cancel: &CancellationToken,
        note: &mut (dyn FnMut(Event) + Send),
    ) -> Written {
        let request: Arc<str> = request.into();
        let mut planning = self.planning.about(request.clone());
        let gate = Gate { tools: &self.tools, stores: &self.stores, routes: &self.routes, refusals: false };
        let (mut prompt, mut usage, mut limits) = (planning.prompt(), Usage::default(), limits.clone());
        let program = loop {
            let report = self.ask(&prompt, handlers, &limits, cancel, note).await;
            usage = sum(&usage, &report.usage);
            spend(&mut limits, &report.usage);
            let reply = match report.result.map(|value| value.data()) {
                Ok(Some(Data::Str(reply))) => reply.to_string(),
                Ok(_) => String::new(),
                Err(f) => {
                    let message = format!("the planner gave no plan: {}", f.message);
                    break Err(PlanFailure { code: f.code.as_str().to_string(), message });
                }
            };
            match planning.reply(&reply, &gate) {
                Step::Again { prompt: next, .. } => prompt = next,
                Step::Done(draft) => {
                    let first = draft.errors().first().map(|d| d.message.clone());
                    let code = draft.outcome.ok().and_then(|c| c.loaded.runnables.into_iter().next());
                    break match (code, first) {
                        (Some(runnable), None) => Ok(PlannedProgram {
                            code: runnable.code,
                            sources: Some(draft.sources),
                            request: Some(request),
                        }),
                        (_, first) => Err(PlanFailure {
                            code: "plan".into(),
                            message: match first {
                                Some(first) => format!("the planner wrote no plan that can run: {first}"),
                                None => "the planner wrote no plan that can run".into(),
                            },
                        }),
                    };
                }
            }
        };
        Written { program, usage }
    }

    async fn ask(
        &self,
        prompt: &str,
        handlers: &Handlers,
        limits: &Limits,
        cancel: &CancellationToken,
        note: &mut (dyn FnMut(Event) + Send),
    ) -> RunReport {
        let code = planning::question(prompt, self.model.clone());
        let machine = Machine::new(code, None, machine_config(None, self.planning.policy()));
        runtime::run(machine, handlers, limits, cancel, note).await
    }
}

impl Programs {
    /// Adds the pipeline `plan`: from the text of a request to the answer of a plan.
    ///
    /// # Errors
    /// A program has a pipeline of this name.
    pub fn add_plan(
        &mut self,
        session: &session::Session,
        planning: Planning,
        planner: Option<&str>,
    ) -> Result<(), Error> {
        let model = planner.map(Name::from);
        let code = planning::question("", model.clone());
        let quarantine = planning::question("", planning.options().quarantine.clone());
        let policy = planning.policy();
        let config = Arc::new(machine_config(session.options.fuel, policy));
        let output = policy.map_or(LabelSpec::TOP, |p| p.output.clone());
        let bound = unbounded(session.bound(&code, false));
        let planner = Planner {
            tools: session.tools(),
            stores: session.settings.fresh_stores(),
            routes: session.model_settings().routes(&session.settings.environment),
            planning,
            model,
            quarantine,
        };
        self.insert(Pipeline {
            name: PLAN.into(),
            file: "[plan]".into(),
            input: Some(Type::Str),
            bound,
            code,
            config,
            output,
            planner: Some(Arc::new(planner)),
        })
    }
}

/// A program that is not written yet has no bound.
fn unbounded(bound: CostBound) -> CostBound {
    let open = |mut interval: analysis::cost::Interval| {
        interval.most = None;
        interval
    };
    CostBound {
        model_calls: open(bound.model_calls),
        tool_calls: open(bound.tool_calls),
        input_tokens: open(bound.input_tokens),
        output_tokens: open(bound.output_tokens),
        money: open(bound.money),
        millis: open(bound.millis),
        ..bound
    }
}

/// Refuses a caller whose requests are untrusted or secret.
pub(super) fn trusted(caller: &Caller, pipeline: &Pipeline) -> Result<(), Refused> {
    let mut lattice = Lattice::with_principals(pipeline.config.lattice, &pipeline.config.principals);
    let label = lattice.resolve(&caller.input).unwrap_or_else(|| lattice.top());
    if label == core_ir::Label::BOTTOM {
        return Ok(());
    }
    Err(Refused::Input(format!(
        "a plan is written from a trusted and public request, and the requests of `{0}` are neither by default (help: \
         `input = \"trusted\"` under `[callers.{0}]` of entail.toml says that a person wrote them)",
        caller.name
    )))
}

/// Takes what was used off the limits of what follows.
pub(super) fn spend(limits: &mut Limits, usage: &Usage) {
    let less = |most: &mut Option<u64>, used: u64| *most = most.map(|most| most.saturating_sub(used));
    less(&mut limits.max_model_calls, usage.model_calls);
    less(&mut limits.max_tool_calls, usage.tool_calls);
    less(&mut limits.max_tokens, usage.input_tokens.saturating_add(usage.output_tokens));
    if let (Some(most), Some(used)) = (&limits.max_usd, &usage.usd) {
        let zero = Num::from(0);
        limits.max_usd = Some(most.sub(used).ok().filter(|left| *left > zero).unwrap_or(zero));
    }
}

/// Sum of two usages.
pub(super) fn sum(a: &Usage, b: &Usage) -> Usage {
    let mut unpriced = a.unpriced.clone();
    unpriced.extend(b.unpriced.iter().filter(|m| !a.unpriced.contains(m)).cloned());
    Usage {
        model_calls: a.model_calls + b.model_calls,
        tool_calls: a.tool_calls + b.tool_calls,
        questions: a.questions + b.questions,
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        usd: a.usd.as_ref().zip(b.usd.as_ref()).and_then(|(a, b)| a.add(b).ok()),
        unpriced,
    }
}
