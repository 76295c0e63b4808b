//! Interfaces of agent frameworks over their releases: modules, names, parameters and methods.
//!
//! Entry points: [`Api::new`] takes the releases that a project may have of each package. [`Api::import`],
//! [`Api::name`] and [`Api::member`] return the faults that a use has in every one of them.
//!
//! ```
//! use framework_api::{Api, Fault, Requirement};
//! let pin = Requirement::Releases("==1.0.2".into());
//! let api = Api::new(|package| (package == "langgraph-prebuilt").then(|| pin.clone()));
//! let fault = api.import("langgraph.prebuilt", Some("create_agent_executor"));
//! assert!(matches!(fault, Some(Fault { .. })));
//! assert_eq!(api.import("langgraph.prebuilt", Some("create_react_agent")).map(|f| f.raises), Some(false));
//! ```
//!
//! A binary embeds the tables. A module of WebAssembly does not: [`lacking`] says which are needed, and
//! [`supply`] takes them.
//!
//! The tables in `tables/` are written by `scripts/framework-tables` from the packages of the frameworks.
//!
//! Invariant: pure and total. Nothing is opened; a table is unpacked when it is first asked.
//! Invariant: what a table marks open, and what no table describes, is never at fault. A table that is not
//! there describes nothing, and `lacking` says so.
//! Invariant: no framework is known here. Names of packages are data of the tables.

mod api;
mod releases;
mod source;
mod table;

pub use api::{Api, Arguments, Fault, FaultKind, Judged, Requirement};
pub use source::{SupplyError, lacking, supply};

#[cfg(test)]
mod tests;
