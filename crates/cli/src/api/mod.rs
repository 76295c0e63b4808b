//! The library: programs, what is said about them, who answers them.

mod fit;
mod found;
#[cfg(feature = "frameworks")]
mod linting;
#[cfg(feature = "plans")]
mod plan;
mod program;
mod typed;
mod world;

pub use found::{Error, Finding, Place};
#[cfg(feature = "frameworks")]
pub use linting::lint;
#[cfg(feature = "plans")]
pub use plan::{Plan, PlanSetup, PlanStep, PlanTool, Planning};
pub use program::{Pipeline, Program};
pub use typed::Typed;
pub use world::{World, scripted};

use runtime::Event;
use serde_json::Value;
use session::events::Detail;

/// An event of a run as JSON, as `entail run --log json` writes it; with `content` also what models and tools
/// are told and say. `None` for one that tells nothing then.
pub fn event_json(event: &Event, content: bool) -> Option<Value> {
    session::events::event_json(event, if content { Detail::Content } else { Detail::Outline })
}

/// An amount of money, for [`Limits`](runtime::Limits): US dollars as a decimal.
///
/// # Errors
/// The text is not an amount of money.
pub fn money(text: &str) -> Result<core_ir::Num, Error> {
    session::limits::money("usd", text).map_err(Error::usage)
}
