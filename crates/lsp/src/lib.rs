//! The language server: the protocol of editors over the queries of [`ide`].
//!
//! Entry points: [`serve`] answers a client over two streams; [`Server::handle`] answers one message, without
//! any stream. [`disk`] reads files for hosts that supply an [`ide::Host`].
//!
//! Parameters and results are those of `lsp_types`, messages those of `lsp_server`.
//!
//! Invariant: no message makes it panic or end, except `exit`. A request gets exactly one answer, a
//! notification none.
//! Invariant: positions are in UTF-16 code units, as the protocol has them, and never split a character.
//! Invariant: nothing is decided here but how an answer of [`ide`] is written.

pub mod disk;
mod protocol;
mod server;
mod text;

pub use protocol::serve;
pub use server::Server;
