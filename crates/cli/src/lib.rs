//! Programs of LLM agents in a Rust program: load, check, run, with typed inputs and outputs.
//!
//! Entry points: [`Program`] for what is run, [`World`] for who answers it, [`Settings`] for `entail.toml`,
//! [`lint()`] for configurations, [`Planning`] for plans. [`command_line()`] is what the program `entail`
//! does. The guide is `docs/library.md`.
//!
//! ```
//! use entail::{JsonSchema, Program, World, scripted};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Topic { topic: String }
//!
//! #[derive(Deserialize, JsonSchema, PartialEq, Debug)]
//! struct Found { title: String, words: u32 }
//!
//! // A tool is an async function.
//! #[derive(Deserialize, JsonSchema)]
//! struct Text { text: String }
//! async fn count(args: Text) -> Result<usize, String> {
//!     Ok(args.text.split(' ').count())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), entail::Error> {
//! let program = Program::from_source(r#"
//!     tool count(text: String) -> Number pure {}
//!     agent librarian { tools: [], prompt: "You know books." }
//!     task title_of(topic: String) -> String by agent { prompt "A title about {topic}" }
//!
//!     pipeline main(topic: String) -> Obj{title: String, words: Number} {
//!         let title = run title_of with { topic: topic } by librarian;
//!         let words = run count with { text: title };
//!         return { title: title, words: words };
//!     }
//! "#)?;
//!
//! // The bound of a run is known before it starts, and Rust's types are compared with the program's.
//! let main = program.main()?;
//! assert_eq!(main.bound().model_calls.most, Some(1));
//! let main = main.typed::<Topic, Found>()?;
//!
//! // A model can be any `Provider`.
//! let world = World::new(scripted(r#"["The Life of the Bee"]"#)?).tool("count", count);
//! let found = main.run(&Topic { topic: "bees".into() }, &world).await?;
//! assert_eq!(found, Found { title: "The Life of the Bee".into(), words: 5 });
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: an input is checked against the pipeline's type before anything runs, and an output is what the
//! pipeline's type says.
//! Invariant: nothing but the command line writes to standard output and standard error.

mod api;
mod approve;
mod args;
mod command_line;
mod commands;
pub mod guard;
mod interrupt;
mod passphrase;
mod setup;
mod ui;
mod watch;

pub use analysis::cost::CostBound;
#[cfg(feature = "frameworks")]
pub use api::lint;
pub use api::{Error, Finding, Pipeline, Place, Program, Typed, World, event_json, money, scripted};
#[cfg(feature = "plans")]
pub use api::{Plan, PlanSetup, PlanStep, PlanTool, Planning};
pub use command_line::command_line;
#[doc(hidden)]
pub use command_line::{command, command_line_of};
pub use core_ir::{Data, Name, Type};
pub use machine::{Message, Reply};
pub use runtime::{
    Answer, Approval, Approver, BoxFuture, CancellationToken, CustomTool, Decider, Edit, Event, Limits,
    ModelCall, ModelError, Models, Price, Progress, Provider, Remote, RemoteOptions, RunReport, Schema,
    Scripted, Tokens, Tools, Usage, Via, Work,
};
#[doc(hidden)]
pub use runtime::{PYTHON_SHIM, supervise};
pub use schemars::{self, JsonSchema};
pub use session::partials::Partials;
#[doc(hidden)]
pub use session::program::carried_by;
#[doc(hidden)]
pub use session::view::withheld;
pub use session::{Settings, SettingsError};

/// The program of the guide, which is run as a test of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
pub struct Guide;
