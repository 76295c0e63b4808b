//! Parts that front ends share: documents with places, terms of agents and graphs, and the types of inputs
//! and outputs of a front end.
//!
//! Entry points: [`doc`] reads YAML and JSON with the place of every node; [`Frontend`] is a front end, which
//! makes a [`Compiled`] of a [`File`] of a [`Project`]; [`kit`], [`graph`], [`flow`], [`conversation`] and
//! [`shape`] build terms.
//!
//! Invariant: pure. Files are read by the caller and handed in as text; nothing here opens one.
//! Invariant: total. Hostile input ends in a diagnostic within time and memory that its size bounds.
//! Invariant: no framework, no registry and no rule is known here.

pub mod calls;
pub mod codes;
pub mod conversation;
pub mod doc;
pub mod emit;
pub mod flow;
pub mod graph;
pub mod kit;
pub mod lists;
pub mod outline;
pub mod project;
#[cfg(not(feature = "python"))]
#[path = "python_absent.rs"]
mod python;
pub mod servers;
pub mod shape;
pub mod turn;
pub mod versions;

pub use outline::{
    Blank, DeadBranch, Ends, GraphOutline, Leftover, LeftoverKind, LeftoverState, LoopFacts, NodeOutline,
    NodeRole, Outline, Retried, ToolRole,
};
pub use project::{
    AgentPlace, CodeFacts, Compiled, Facts, File, Frontend, Project, Recognize, Recognized, Unit, UnitKind,
    Words, modules,
};
pub use python::Modules;
pub use servers::{Server, servers};
pub use versions::Versions;
