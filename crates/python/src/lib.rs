//! Python as data: what a project's modules build, without running them.
//!
//! Entry points: [`Sources`] holds the texts of a project's modules, [`World::new`] makes an evaluator over
//! them, [`World::run`] evaluates a module, [`World::explore`] enters what nobody called, and
//! [`World::objects`] gives everything that was built by calling something from outside the project:
//! `Agent(name="a", tools=[search])`, with each argument's value and place. Where many modules of a project
//! are looked at, [`Modules::among`] evaluates what they import once for all.
//!
//! ```
//! use diagnostics::FileId;
//! use python::{Limits, Sources, World};
//!
//! let mut sources = Sources::new();
//! let text = "from agents import Agent\nNAME = 'Bo'\na = Agent(name=NAME, prompt=f'You are {NAME}.')\n";
//! let main = sources.add(FileId(0), "main.py", text.into());
//! let mut world = World::new(&sources, Limits::default());
//! world.run(main);
//! let (_, agent) = world.objects().find(|(_, o)| &*o.callee == "agents.Agent").unwrap();
//! assert_eq!(world.str(&agent.arg("prompt").unwrap().value), Some("You are Bo."));
//! ```
//!
//! | Python | here |
//! |---|---|
//! | a call of something that is not in the project | an [`Object`]: its qualified name, arguments, later method calls in order |
//! | a function or class of the project | evaluated: calls are followed, instances have their attributes |
//! | a test that cannot be decided | both branches; what differs is [`PyKind::Either`], what happens only there is [`Value::maybe`] |
//! | a loop over something known | unrolled; otherwise the body once, with an unknown element |
//! | `TOOLS[name]` with a name that is not known | one of the functions, classes or objects of the container |
//! | a decorator of the project that gives back its function | called, for what it keeps; others wrap |
//! | a function that yields, without a decorator | an open list of what it yields |
//! | `os.getenv("X", "d")`, settings | [`PyKind::Env`] with the default |
//! | anything else | [`PyKind::Unknown`] with the reason and the place |
//!
//! Invariant: pure. Nothing is executed, imported or opened.
//! Invariant: total. Any text ends within the [`Limits`]; nesting is bounded by the size of the text, not by
//! the stack.
//! Invariant: what is known is right. A value that could differ at run time is unknown, one of several, or
//! marked.

mod call;
mod calls_made;
mod counters;
mod eval;
mod expr;
mod imports;
mod in_order;
mod literals;
mod loops;
mod methods;
mod modules;
pub mod names;
mod names_used;
mod overlay;
mod signatures;
mod sources;
mod stmt;
mod symbolic;
mod try_stmt;
mod unsandboxed_exec;
mod uses;
mod value;

pub use calls_made::CallsMade;
pub use eval::{Framework, Limits, World};
pub use imports::Imported;
pub use literals::{CALLED, RUN_BY_TOOL};
pub use modules::{MAX_STEPS, Modules};
pub use names_used::KeyedRead;
pub use signatures::{
    DataClass, Hint, HintedFunction, HintedParam, Instances, Reason, RecordField, Signatures,
};
pub use sources::{Source, Sources};
pub use symbolic::{Condition, Trace};
pub use uses::{CallUse, ImportUse, NameUse, Target, Uses};
pub use value::{
    Arg, Class, ClassId, Dict, DictId, Env, EnvId, Field, Function, FunctionId, List, ListId, ListKind,
    Method, Object, ObjectId, Param, ParamKind, Piece, PyKind, TextId, Value,
};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_modules;
