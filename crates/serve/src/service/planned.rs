//! `[plan]`: a pipeline from a request to an answer, whose program a planner writes.
//!
//! Invariant: a plan is only made of a request that is trusted and public. Everybody else would decide what
//! the plan does, or the planner would see what it may not.
//! Invariant: the planner sees no result of a tool, and of a run what `session::replanning` lets it know.
//! Invariant: each question to the planner and each plan is a program with a strand of its own, numbered in
//! their order, which is the same when the run is resumed.

use super::{Caller, Pipeline, Programs, Refused};
use crate::error::Error;
use analysis::cost::CostBound;
use core_ir::{Code, Data, LabelSpec, Lattice, ModelRoutes, Name, Type};
use diagnostics::Sources;
use machine::{Config, Machine};
use runtime::{
    CancellationToken, Event, Handlers, Limits, RunReport, RunStatus, Stores, Tools, Usage, end_run, run_end,
};
use serde_json::{Value, json};
use session::Follows;
use session::limits::{spend, sum};
use session::machine_config;
use session::planning::{self, Planning, Step};
use session::preflight::Gate;
use session::replanning::{PlanOutline, Replanning};
use std::ops::RangeFrom;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

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
    /// The tools as the policy has them.
    declarations: String,
}

/// A plan that can run.
struct Written {
    code: Arc<Code>,
    /// The files that its places are in.
    sources: Sources,
    outline: PlanOutline,
}

/// Why no plan runs.
#[derive(Clone, Debug)]
pub(super) struct PlanFailure {
    pub(super) code: String,
    pub(super) message: String,
    /// True if a limit or somebody outside stopped the planner.
    is_final: bool,
}

/// A run, or why there was none.
pub(super) struct Ran {
    pub(super) report: Result<RunReport, PlanFailure>,
    /// The files that places of the program are in, where they are not those of the server.
    pub(super) sources: Option<Sources>,
    /// Errors of earlier runs that the planner was told, and the usage of all.
    pub(super) replanning: Option<Replanning>,
}

impl Ran {
    /// A run of a program that was there before.
    pub(super) fn of(report: RunReport) -> Ran {
        Ran { report: Ok(report), sources: None, replanning: None }
    }

    /// Everything that was used.
    pub(super) fn used(&self) -> Option<Usage> {
        match &self.report {
            Ok(report) => Some(report.usage.clone()),
            Err(_) => self.replanning.as_ref().map(|r| r.usage().clone()),
        }
    }

    /// Adds what the planner was told of earlier runs to an outcome.
    pub(super) fn add_told(&self, outcome: &mut Value) {
        if let Some(replanning) = &self.replanning {
            replanning.add_to(outcome);
        }
    }
}

/// Configuration and handlers with which a request is fulfilled.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) config: &'a Config,
    pub(super) handlers: &'a Handlers,
    pub(super) limits: &'a Limits,
    pub(super) cancel: &'a CancellationToken,
}

impl Planner {
    /// A question to the model that `ask` asks.
    pub(super) fn quarantine(&self) -> &Code {
        &self.quarantine
    }

    /// The tools as the policy has them: a run that is resumed has the same.
    pub(super) fn declarations(&self) -> &str {
        &self.declarations
    }

    /// Fulfills a request, and writes the end to the journal of the run.
    ///
    /// The journal has the answers of the planner and of all plans. A run that is resumed asks the planner
    /// the same and has its answers, so the same plans go as far as they went.
    pub(super) async fn fulfill(
        &self,
        request: &str,
        means: Means<'_>,
        note: &mut (dyn FnMut(Event) + Send),
    ) -> Ran {
        let handlers = Handlers { continues: true, ..means.handlers.clone() };
        let ran = self.carry_out(request, Means { handlers: &handlers, ..means }, note).await;
        let (status, outcome) = match &ran.report {
            Ok(report) => run_end(&report.result, handlers.models.redactor()),
            Err(why) => {
                let status = if why.is_final { RunStatus::Stopped } else { RunStatus::Failed };
                (status, json!({"error": why.code, "message": why.message}))
            }
        };
        end_run(&handlers, status, outcome).await;
        ran
    }

    /// Has plans written for a request and runs them, until one ends well or no further one may follow.
    async fn carry_out(&self, request: &str, means: Means<'_>, note: &mut (dyn FnMut(Event) + Send)) -> Ran {
        let Means { config, handlers, limits, cancel } = means;
        let mut strands = 0..;
        let request: Arc<str> = request.into();
        let mut planning = self.planning.about(request.clone());
        let mut replanning = Replanning::new(planning.options().replan_errors, config);
        let mut prompt = planning.prompt();
        loop {
            let left = replanning.limits(limits);
            let (written, usage) =
                self.write(&mut planning, prompt, Means { limits: &left, ..means }, &mut strands, note).await;
            replanning.used(&usage, Duration::ZERO);
            let Written { code, sources, outline } = match written {
                Ok(written) => written,
                Err(why) => return Ran { report: Err(why), sources: None, replanning: Some(replanning) },
            };
            let strand = strands.next().unwrap_or_default();
            let mut config = Config { request: Some(request.clone()), strand, ..config.clone() };
            let mut handlers = handlers.clone();
            if let Some(Follows { history, after }) = replanning.follows() {
                history.lock().unwrap_or_else(PoisonError::into_inner).carry_into(&mut config);
                handlers.history = Some(history);
                // Idempotency keys are made of the name of the run.
                if let (Some(run), Some(_)) = (&mut handlers.run, after) {
                    *run = format!("{run}.{}", replanning.told().len());
                }
            }
            let left = replanning.limits(limits);
            let machine = Machine::new(code, None, config);
            let mut report = runtime::run(machine, &handlers, &left, cancel, note).await;
            if let Some(told) = replanning.after(&outline, &report) {
                prompt = planning.after_error(told.ended.clone());
                continue;
            }
            report.usage = replanning.usage().clone();
            if let Some(run) = &means.handlers.run {
                report.run.clone_from(run);
            }
            return Ran { report: Ok(report), sources: Some(sources), replanning: Some(replanning) };
        }
    }

    /// Has a plan written; gives also what that used.
    async fn write(
        &self,
        planning: &mut Planning,
        mut prompt: String,
        means: Means<'_>,
        strands: &mut RangeFrom<u64>,
        note: &mut (dyn FnMut(Event) + Send),
    ) -> (Result<Written, PlanFailure>, Usage) {
        let Means { handlers, limits, cancel, .. } = means;
        let gate = Gate { tools: &self.tools, stores: &self.stores, routes: &self.routes, refusals: false };
        let (mut usage, mut limits) = (Usage::default(), limits.clone());
        let written = loop {
            let strand = strands.next().unwrap_or_default();
            let report = self.ask((&prompt, strand), handlers, &limits, cancel, note).await;
            usage = sum(&usage, &report.usage);
            spend(&mut limits, &report.usage, Duration::ZERO);
            let reply = match report.result.map(|value| value.data()) {
                Ok(Some(Data::Str(reply))) => reply.to_string(),
                Ok(_) => String::new(),
                Err(f) => {
                    let message = format!("the planner gave no plan: {}", f.message);
                    let (code, is_final) = (f.code.as_str().to_string(), f.code.is_final());
                    break Err(PlanFailure { code, message, is_final });
                }
            };
            match planning.reply(&reply, &gate) {
                Step::Again { prompt: next, .. } => prompt = next,
                Step::Done(draft) => {
                    let first = draft.errors().first().map(|d| d.message.clone());
                    let outline = draft.outline();
                    let code = draft.outcome.ok().and_then(|c| c.loaded.runnables.into_iter().next());
                    break match (code, outline, first) {
                        (Some(runnable), Some(outline), None) => {
                            Ok(Written { code: runnable.code, sources: draft.sources, outline })
                        }
                        (_, _, first) => Err(PlanFailure {
                            code: "plan".into(),
                            is_final: false,
                            message: match first {
                                Some(first) => format!("the planner wrote no plan that can run: {first}"),
                                None => "the planner wrote no plan that can run".into(),
                            },
                        }),
                    };
                }
            }
        };
        (written, usage)
    }

    async fn ask(
        &self,
        (prompt, strand): (&str, u64),
        handlers: &Handlers,
        limits: &Limits,
        cancel: &CancellationToken,
        note: &mut (dyn FnMut(Event) + Send),
    ) -> RunReport {
        let code = planning::question(prompt, self.model.clone());
        let config = Config { strand, ..machine_config(None, self.planning.policy()) };
        let machine = Machine::new(code, None, config);
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
        let policy_text = policy.map(|p| p.text().into());
        let bound = unbounded(session.bound(&code, false));
        let planner = Planner {
            tools: session.tools(),
            stores: session.settings.fresh_stores(),
            routes: session.model_settings().routes(&session.settings.environment),
            declarations: planning.declarations(),
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
            policy: policy_text,
            planner: Some(Arc::new(planner)),
            kept: None,
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
    let label = lattice.resolve_or_top(&caller.input);
    if label == core_ir::Label::BOTTOM {
        return Ok(());
    }
    Err(Refused::Input(format!(
        "a plan is written from a trusted and public request, and the requests of `{0}` are neither by default (help: \
         `input = \"trusted\"` under `[callers.{0}]` of entail.toml says that a person wrote them)",
        caller.name
    )))
}
