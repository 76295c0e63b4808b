//! Facts about what tools do, each with its evidence.
//!
//! Entry points: [`Reader::facts`] for the tools of a compiled file, [`by_name`] for a tool of which only the
//! name is known, [`registry::server`] for a server of tools.
//!
//! | evidence | from |
//! |---|---|
//! | [`Evidence::Call`] | the body of a Python function and the functions of the project that it calls |
//! | [`Evidence::Registry`] | what is documented of a framework's tool or a server, with source and date |
//! | [`Evidence::Hint`] | what a server says of its tools, where it was asked |
//! | [`Evidence::Name`], [`Evidence::Description`] | words: the weakest, used where nothing else is known |
//!
//! Invariant: a fact is an [`Effect`], never a text. What an effect means for an attack is said once, by
//! [`Effect::roles`].
//! Invariant: names are resolved by the reader of Python. The text of a module only decides whether its steps
//! are looked at.
//! Invariant: nothing is executed or opened. Nothing here knows a rule, a policy or a term.

mod body;
mod effect;
mod fact;
mod hints;
pub mod model_calls;
mod reader;
pub mod registry;
mod steps;
mod words;
mod written;

pub use effect::{Effect, Role};
pub use fact::{Confidence, Evidence, Fact, Knowledge, ToolFacts};
pub use hints::OfferedTool;
pub use reader::{Reader, ServerDef, triggers};
pub use steps::{Acted, Fed, Handed, OwnPath, Passed, Steps};
pub use words::{acts, by_name};
