//! Entry points of programs and configurations: the terms, the policy in them, and what the analyses say.
//!
//! Entry points: [`pipelines`], [`of_term`] and [`of_units`] give the [`Runnable`]s of a file;
//! [`check::entry`] says what one entails; [`picture`] draws one; [`machine_config`] configures the machine
//! that runs one.
//!
//! Invariant: no file is read here. The command line, servers and the playground read text in their own ways
//! and agree on everything that follows from it.

pub mod bound;
pub mod check;
pub mod input;
pub mod picture;
pub mod policy;
pub mod refusal;
pub mod report;
pub mod rules;

use ::policy::Policy;
use agentlang::EntryKind;
use analysis::types;
use core_ir::{Code, Term, Type};
use diagnostics::{Diagnostic, Hint};
use frontend_kit::{Unit, UnitKind};
use machine::{CodeParser, Config};
use std::path::Path;
use std::sync::Arc;

/// Entry point with the types of its input and output.
#[derive(Debug)]
pub struct Runnable {
    /// Its name in the source.
    pub name: String,
    /// Its term.
    pub code: Arc<Code>,
    /// Type of the input; `None` for a term that is evaluated without one.
    pub input: Option<Type>,
    /// True if this is the default entry point.
    pub is_default: bool,
    /// Remedies for calls of a plan that are refused because of where they stand.
    pub hints: Vec<Hint>,
}

impl Runnable {
    /// Returns the type of the input for which an entry point is analyzed. A term without input whose value
    /// is a function of data is analyzed as applied, as `entail run` applies it: unapplied, the function
    /// would cost nothing.
    pub fn analyzed_for(&self) -> Option<Type> {
        self.input.clone().or_else(|| match types::check(&self.code, None).ty {
            Type::Fun(f) if !matches!(f.0, Type::Fun(_)) => Some(f.0.clone()),
            _ => None,
        })
    }
}

/// The end of the names of plans.
const PLAN: &str = ".plan.py";

/// Kind of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The surface language.
    Agent,
    /// The calculus.
    Lam,
    /// A plan, in a subset of Python.
    Plan,
    /// YAML or JSON of some framework.
    Config,
}

impl Kind {
    /// By the extension of a path.
    pub fn of(path: &str) -> Kind {
        let path = Path::new(path);
        let named = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        // `Dockerfile.agent` makes an image.
        if named.get(..10).is_some_and(|n| n.eq_ignore_ascii_case("dockerfile")) {
            return Kind::Config;
        }
        if named.len() > PLAN.len() && named.ends_with(PLAN) {
            return Kind::Plan;
        }
        match path.extension().and_then(|e| e.to_str()) {
            Some("agent") => Kind::Agent,
            Some("lam") => Kind::Lam,
            _ => Kind::Config,
        }
    }
}

/// The pipelines of a checked module; what is wrong with one is added to what was found.
pub fn pipelines(module: &agentlang::Module, found: &mut Vec<Diagnostic>) -> Vec<Runnable> {
    let default = module.default_entry().map(|e| e.name.clone());
    let mut out = Vec::new();
    for entry in module.entries().iter().filter(|e| e.kind == EntryKind::Pipeline) {
        match module.lower(entry) {
            Ok(code) => out.push(Runnable {
                name: entry.name.clone(),
                code: Arc::new(code),
                input: Some(entry.input.clone()),
                is_default: default.as_ref() == Some(&entry.name),
                hints: Vec::new(),
            }),
            Err(more) => found.extend(more),
        }
    }
    out
}

/// The entry point that a term of the calculus is: one without an input.
pub fn of_term(name: &str, code: Arc<Code>) -> Runnable {
    Runnable { name: name.into(), code, input: None, is_default: true, hints: Vec::new() }
}

/// The entry points of a compiled configuration.
pub fn of_units(units: Vec<Unit>) -> Vec<Runnable> {
    // The last crew, or else the only agent, is what the file is for.
    let only = units.len() == 1;
    let crew = units.iter().rposition(|u| u.kind == UnitKind::Crew);
    let runnable = |(i, unit): (usize, Unit)| Runnable {
        name: unit.name,
        input: Some(input_of(&unit.code)),
        code: unit.code,
        is_default: only || crew == Some(i),
        hints: Vec::new(),
    };
    units.into_iter().enumerate().map(runnable).collect()
}

/// Returns the input type of a compiled configuration: the one that its function states, or a string.
fn input_of(code: &Code) -> Type {
    match code.term(code.root()) {
        Term::Abs(abs) => abs.ty.clone().unwrap_or(Type::Str),
        _ => Type::Str,
    }
}

/// The configuration of the machine for a program under a policy.
pub fn machine_config(fuel: Option<u64>, policy: Option<&Policy>) -> Config {
    let endorse = policy.is_some_and(|p| p.generated_endorse);
    let mut config = Config { parser: Some(Arc::new(Generated { endorse })), ..Config::default() };
    if let Some(fuel) = fuel {
        config.fuel = fuel;
    }
    if let Some(policy) = policy {
        policy::configure(policy, &mut config);
    }
    config
}

/// Reads generated code with the prelude in scope.
struct Generated {
    /// True if the policy lets the caller reclassify.
    endorse: bool,
}

impl CodeParser for Generated {
    fn parse(&self, text: &str) -> Result<Arc<Code>, String> {
        let options = syntax::lam::Options { endorse: self.endorse, ..syntax::lam::Options::GENERATED };
        agentlang::calculus::parse_generated_with(text, options)
    }
}
