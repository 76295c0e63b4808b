//! Plans: a subset of Python, lowered exactly to a core term.
//!
//! Entry point: [`compile`].
//!
//! ```
//! use diagnostics::FileId;
//! let world = plan::World::default();
//! let (code, found) = plan::compile(FileId(0), "a.plan.py", "print(1 + 2)".into(), &world);
//! assert!(found.is_empty());
//! assert!(code.is_some());
//! ```
//!
//! The lowering is functional: what branches, loops and handlers assign are their results. A block gives a
//! record of the variables that it may assign. If it may be left early, the record also says how (`$k`:
//! `next`, `break`, `continue`, `return` or `exc`) and with which value (`$v`).
//!
//! Invariant: the meaning is that of CPython. What has another meaning is an error with a code, never a
//! guess.
//! Invariant: the term has no `endorse` and no `declassify`. What a plan confirms is endorsed by an approval.
//! Invariant: pure and total. Nothing is executed or opened.
//!
//! Source: `docs/language/plans.md`.

pub mod codes;
mod lower;
mod names;
pub mod planner;
mod scope;

use core_ir::{Code, LabelSpec, LatticeKind, Name, Person, ToolDecl};
use diagnostics::{Diagnostic, FileId, Hint, Span};
use std::sync::Arc;

/// The largest number of rounds of a `while` loop, unless the caller says otherwise.
pub const MAX_ROUNDS: u64 = 1_000;

/// Environment that a plan is compiled for.
#[derive(Clone, Debug)]
pub struct World {
    /// The tools that the plan may call.
    pub tools: Vec<Arc<ToolDecl>>,
    /// The lattice of the run.
    pub lattice: LatticeKind,
    /// Labels of results that a policy states, by tool.
    pub results: Vec<(Name, LabelSpec)>,
    /// Rounds of a `while` loop at most.
    pub max_rounds: u64,
    /// The model that `ask` asks; the default model of the run without it.
    pub quarantine: Option<Name>,
    /// Whose data may choose calls, as the policy says.
    pub delegates: Vec<Delegate>,
    /// Values of principals, such as addresses. A plan reads them by name and key, as `principals`.
    pub people: Vec<Person>,
}

/// Sources whose data may choose calls in `delegate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegate {
    /// Their names; sorted.
    pub to: Box<[Name]>,
    /// The tools whose calls they may choose.
    pub tools: Vec<Name>,
    /// Maximum number of calls of a block.
    pub at_most: u64,
}

impl Default for World {
    fn default() -> World {
        World {
            tools: Vec::new(),
            lattice: LatticeKind::TwoAxis,
            results: Vec::new(),
            max_rounds: MAX_ROUNDS,
            quarantine: None,
            delegates: Vec::new(),
            people: Vec::new(),
        }
    }
}

/// Compiles a plan.
///
/// Returns the term, whose value is the answer, and the findings. There is no term if one is an error.
pub fn compile(file: FileId, path: &str, text: Arc<str>, world: &World) -> (Option<Code>, Vec<Diagnostic>) {
    let (code, found, _) = compile_with_hints(file, path, text, world);
    (code, found)
}

/// Compiles a plan. Returns also remedies for the calls that a policy refuses because of where they stand.
pub fn compile_with_hints(
    file: FileId,
    path: &str,
    text: Arc<str>,
    world: &World,
) -> (Option<Code>, Vec<Diagnostic>, Vec<Hint>) {
    let source = python::Source::new(file, path, text);
    if let Some((span, message)) = source.syntax_error() {
        return (None, vec![Diagnostic::error(codes::SYNTAX, message, span)], Vec::new());
    }
    if let Some(part) = names::too_much(source.body()) {
        let (range, what, help) = match part {
            names::TooMuch::Depth(at) => {
                (at, "plan nested too deep".into(), "divide the expression or block into several statements")
            }
            names::TooMuch::Statements(at) => {
                let what = format!("plan with more than {} statements", names::MAX_STATEMENTS);
                (at, what, "write loops over lists")
            }
        };
        let d = Diagnostic::error(codes::TOO_LARGE, what, source.span(range));
        return (None, vec![d.help(help)], Vec::new());
    }
    // Python's grammar has them everywhere; its compiler refuses them.
    let outside = names::outside_of_loops(source.body());
    if !outside.is_empty() {
        let refused = outside.into_iter().map(|(range, keyword)| {
            let span = source.span(range);
            let d = Diagnostic::error(codes::SYNTAX, format!("`{keyword}` outside of a loop"), span);
            d.help("write it inside of the `for` or `while` that it belongs to")
        });
        return (None, refused.collect(), Vec::new());
    }
    lower::plan(&source, world)
}

/// Returns the name of a class of exceptions if it is one of those that every plan has. Any other, such as a
/// class of the plan, is `Exception`.
///
/// # Examples
/// ```
/// assert_eq!((plan::known_class("KeyError"), plan::known_class("Mine")), ("KeyError", "Exception"));
/// ```
pub fn known_class(name: &str) -> &'static str {
    lower::known_class(name)
}

/// Returns true for a keyword, a function or another name that plans have, which no tool can have.
///
/// # Examples
/// ```
/// assert!(plan::is_reserved("print") && plan::is_reserved("ask") && plan::is_reserved("import"));
/// assert!(!plan::is_reserved("send_money"));
/// ```
pub fn is_reserved(name: &str) -> bool {
    lower::is_reserved(name)
}

/// Number of names that [`known_class`] gives.
pub const KNOWN_CLASSES: usize = lower::KNOWN_CLASSES;

/// The beginning of a file.
pub(crate) fn nowhere(file: FileId) -> Span {
    Span { file, start: 0, end: 0 }
}
