//! The language server: what editors ask about `.agent`, `.lam`, configurations in YAML and JSON, and modules of Python that build
//! agents.
//!
//! Entry points: [`serve`] answers a client over two streams; [`Server::handle`] answers one message, without any stream;
//! [`Surroundings`] is where settings, policies and imported configurations come from.
//!
//! The protocol is read and written as JSON values: the workspace keeps numbers exact (`arbitrary_precision` of
//! `serde_json`), under which the untagged enums of the usual libraries for it don't read integers.
//!
//! Invariant: no message makes it panic or end, except `exit`. A request gets exactly one answer, a notification none.
//! Invariant: positions are in UTF-16 code units, as the protocol has them, and never split a character.
//! Invariant: findings and repairs are those of `entail check` and `entail lint`; nothing is checked here.

mod analysis;
mod beside;
mod configured;
mod fields;
mod names;
mod protocol;
mod server;
mod text;

pub use analysis::{Options, Surroundings};
pub use protocol::serve;
pub use server::Server;
