//! Checks that a program can run, before it asks for anything: flow under the policy, handlers, servers,
//! models, stores.
//!
//! Entry points: [`Preflight::entry`] for an entry point, [`Preflight::settings`] for `entail.toml` itself,
//! [`Gate::check`] for drivers that run programs.
//!
//! Invariant: nothing is started and no request is made; only the existence of files and programs is checked.

pub mod codes;

use crate::load::{Kind, Runnable};
use crate::policy;
use crate::settings::Settings;
use ::policy::Policy;
use analysis::flow::{self, Sink, Verdict};
use core_ir::{Code, ModelRoutes, Name, Recv, Term, ToolDecl};
use diagnostics::{Diagnostic, Hint, Span};
use runtime::{ConfigError, ConfigErrorKind, Environment, Models, Stores, Tools};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tools, stores and models that the settings offer to programs.
pub struct Preflight {
    tools: Tools,
    stores: Stores,
    /// Models as a run would create them.
    models: Option<Models>,
    /// Models as a run would create them if every key were set.
    with_keys: Option<Models>,
    /// Which models may answer which calls.
    routes: ModelRoutes,
    /// The names of the models and servers in the settings.
    names: (Vec<String>, Vec<String>),
}

/// Requirement of a run that is missing or wrong.
struct Requirement {
    code: &'static str,
    span: Option<Span>,
    /// The tool that needs it.
    tool: Option<Name>,
    error: ConfigError,
    /// True if the requirement is that of a configuration, whose tools are the framework's.
    of_config: bool,
}

/// Findings about an entry point.
#[derive(Default)]
pub struct Found {
    /// Calls that are refused every time.
    refused: Vec<Diagnostic>,
    needs: Vec<Requirement>,
    /// Rules of the policy that have no effect; of plans alone.
    pub warnings: Vec<Diagnostic>,
    /// Tools that nothing is known of and whose calls are refused every time for that.
    pub unknown: BTreeSet<Name>,
}

impl Found {
    /// Mistakes, wherever the program is run.
    pub fn errors(&self) -> Vec<Diagnostic> {
        let invalid = self.needs.iter().filter(|n| !n.is_left_to_host() && !n.is_lacking());
        unique(self.refused.iter().cloned().chain(invalid.map(Requirement::diagnostic)))
    }

    /// Mistakes, and whatever else a run on this machine would miss.
    fn errors_of_run(&self) -> Vec<Diagnostic> {
        unique(self.refused.iter().cloned().chain(self.needs.iter().map(Requirement::diagnostic)))
    }

    /// The tools that the host supplies.
    pub fn left_to_host(&self) -> BTreeSet<Name> {
        self.needs.iter().filter(|n| n.is_left_to_host()).filter_map(|n| n.tool.clone()).collect()
    }

    /// Returns the requirements of a run that this machine lacks: keys and programs.
    pub fn lacking(&self) -> BTreeSet<String> {
        let lacking = self.needs.iter().filter(|n| n.is_lacking() && !n.error.local_model_missing);
        lacking.map(|n| n.error.message.clone()).collect()
    }
}

impl Requirement {
    fn is_left_to_host(&self) -> bool {
        matches!(self.error.kind, ConfigErrorKind::NoHandler | ConfigErrorKind::NoConsent)
            || (self.of_config && self.code == codes::HANDLER)
    }

    fn is_lacking(&self) -> bool {
        // The embedded model is offered where it is needed.
        self.error.local_model_missing
            || matches!(self.error.kind, ConfigErrorKind::NotSet(_) | ConfigErrorKind::NotInstalled)
    }

    fn diagnostic(&self) -> Diagnostic {
        let d = Diagnostic::error(self.code, self.error.message.clone(), self.span);
        self.error.help.iter().cloned().fold(d, Diagnostic::help)
    }
}

/// Entry points of one file share their tools.
fn unique(all: impl Iterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = Vec::new();
    for d in all {
        if !out.contains(&d) {
            out.push(d);
        }
    }
    out
}

impl Preflight {
    /// With what the settings say.
    pub fn of(settings: &Settings) -> Preflight {
        let models = |environment: Environment| Models::new(settings.model_settings(None), environment).ok();
        let keys = settings.models.models.values().filter_map(|m| m.key_env.as_deref());
        let usual = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"];
        Preflight {
            tools: settings.tools(),
            stores: settings.fresh_stores(),
            models: models(settings.environment.clone()),
            with_keys: models(settings.environment.clone().assuming(keys.chain(usual))),
            routes: settings.model_settings(None).routes(&settings.environment),
            names: (settings.models.models.keys().cloned().collect(), settings.mcp.keys().cloned().collect()),
        }
    }

    /// Looks for mistakes in the entries of `entail.toml`, whatever programs use of them.
    pub fn settings(&self) -> Vec<Diagnostic> {
        let (models, servers) = &self.names;
        let model = |name: &String| self.with_keys.as_ref()?.resolve(Some(name)).err();
        let server = |name: &String| self.tools.check_server(name).err();
        let wrong = models.iter().filter_map(model).chain(servers.iter().filter_map(server));
        let needs = wrong.map(|error| Requirement {
            code: codes::SETTING,
            span: None,
            tool: None,
            error,
            of_config: false,
        });
        needs.filter(|n| !n.is_lacking()).map(|n| n.diagnostic()).collect()
    }

    /// Checks an entry point of a file of this kind.
    pub fn entry(&self, kind: Kind, r: &Runnable, policy: Option<&Policy>) -> Found {
        let mut found = Found::default();
        flows(kind, r, policy, &self.routes, &mut found);
        needs(kind, &r.code, &self.tools, &self.stores, &mut found);
        // With a key a model may be wrong in another way.
        let keyless = self.models_of(kind, &r.code, self.models.as_ref());
        found.needs.extend(keyless.into_iter().filter(Requirement::is_lacking));
        let others = self.models_of(kind, &r.code, self.with_keys.as_ref());
        found.needs.extend(others.into_iter().filter(|n| !n.is_lacking()));
        found
    }

    /// Looks for mistakes in the declarations of tools, whether anything uses them or not. What a run of them
    /// would need besides is left out.
    pub fn declarations(&self, declared: &[Arc<ToolDecl>]) -> Vec<Diagnostic> {
        let need = |tool: &Arc<ToolDecl>| {
            let (span, name) = (Some(tool.span), Some(tool.name.clone()));
            let error = self.tools.check(tool).err()?;
            Some(Requirement { code: codes::HANDLER, span, tool: name, error, of_config: false })
        };
        let wrong = declared.iter().filter_map(need).filter(|n| !n.is_left_to_host() && !n.is_lacking());
        wrong.map(|n| n.diagnostic()).collect()
    }

    /// The models that a program can ask and that can't be resolved, each with the first place that names it.
    fn models_of(&self, kind: Kind, code: &Code, models: Option<&Models>) -> Vec<Requirement> {
        let Some(models) = models else { return Vec::new() };
        let mut out: BTreeMap<String, Requirement> = BTreeMap::new();
        for (id, params) in asked(code) {
            if let Err(error) = models.resolve_chain(params) {
                let (span, of_config) = (Some(code.span(id)), kind == Kind::Config);
                let need =
                    || Requirement { code: codes::MODEL, span, tool: None, error: error.clone(), of_config };
                out.entry(error.message.clone()).or_insert_with(need);
            }
        }
        out.into_values().collect()
    }

    /// Returns whether the settings have a price for a model. The empty name means the default model.
    pub fn has_price(&self, name: &str) -> bool {
        let name = Some(name).filter(|n| !n.is_empty());
        match self.with_keys.as_ref().map(|m| m.resolve(name)) {
            Some(Ok(provider)) => provider.price().is_some(),
            // It costs nothing once it is there.
            Some(Err(e)) => e.local_model_missing,
            None => false,
        }
    }
}

/// The questions to models in a program.
pub(crate) fn asked(code: &Code) -> impl Iterator<Item = (core_ir::TermId, Option<&core_ir::ModelParams>)> {
    code.iter().filter_map(|(id, term)| match term {
        // Nobody is asked.
        Term::Recv(Recv::Data(params)) if params.waiting => None,
        Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => Some((id, Some(&**params))),
        Term::Recv(Recv::Code) => Some((id, None)),
        _ => None,
    })
}

/// Handlers of the tools and backends of the stores that a program uses.
fn needs(kind: Kind, code: &Code, tools: &Tools, stores: &Stores, found: &mut Found) {
    let of_config = kind == Kind::Config;
    // Others are only offered: what they do is a part of the program.
    let mut called: Vec<core_ir::ToolId> = code
        .iter()
        .filter_map(|(_, term)| match term {
            Term::Tool(id) => Some(*id),
            _ => None,
        })
        .collect();
    called.sort();
    called.dedup();
    for id in called {
        let tool = code.tool(id);
        if let Err(error) = tools.check(tool) {
            let (span, name) = (Some(tool.span), Some(tool.name.clone()));
            found.needs.push(Requirement { code: codes::HANDLER, span, tool: name, error, of_config });
        }
    }
    for store in &code.stores {
        if let Err(error) = stores.check(store) {
            found.needs.push(Requirement {
                code: codes::STORE,
                span: Some(store.span),
                tool: None,
                error,
                of_config,
            });
        }
    }
}

/// Calls that are refused every time. In a configuration nothing says what most tools do: such a tool is no
/// mistake of its author, and a policy is what is missing.
fn flows(kind: Kind, r: &Runnable, policy: Option<&Policy>, routes: &ModelRoutes, found: &mut Found) {
    let options = policy::options(policy, routes.clone(), r.input.is_some());
    let report = flow::analyze(&r.code, &options);
    if kind == Kind::Plan {
        found.warnings.extend(flow::policy_warnings(&report));
    }
    for site in report.sites {
        let of_config = kind == Kind::Config && (policy.is_none() || site.unknown);
        match (&site.sink, site.verdict) {
            (Sink::Tool(name), Verdict::Never) if of_config => {
                found.unknown.insert(name.clone());
            }
            _ if of_config => {}
            _ => found.refused.extend(flow::certain_refusal(&site)),
        }
    }
    Hint::add(&r.hints, &mut found.refused);
}

/// Checks that a run must pass before it starts.
pub struct Gate<'a> {
    /// Handlers that carry out tools.
    pub tools: &'a Tools,
    /// Stores of the run.
    pub stores: &'a Stores,
    /// Which models may answer which calls.
    pub routes: &'a ModelRoutes,
    /// True if a program may run even though some of its calls are refused every time.
    pub refusals: bool,
}

/// Reasons why a program can't run as it is set up.
#[derive(Debug)]
pub struct Refusal {
    /// The findings, all of level error.
    pub findings: Vec<Diagnostic>,
    /// True if a call is among them that is refused every time; the program can run up to it.
    pub calls_refused: bool,
}

impl Gate<'_> {
    /// Checks that a program can run, before it asks for anything.
    ///
    /// # Errors
    /// Everything that keeps it from running.
    pub fn check(&self, kind: Kind, r: &Runnable, policy: Option<&Policy>) -> Result<(), Refusal> {
        let mut found = Found::default();
        if !self.refusals {
            flows(kind, r, policy, self.routes, &mut found);
        }
        needs(kind, &r.code, self.tools, self.stores, &mut found);
        match found.errors_of_run() {
            none if none.is_empty() => Ok(()),
            findings => Err(Refusal { findings, calls_refused: !found.refused.is_empty() }),
        }
    }
}
