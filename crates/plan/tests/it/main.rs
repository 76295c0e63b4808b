//! Plans run on the machine, and compared with CPython.

#![allow(clippy::disallowed_methods, reason = "tests read fixtures and the environment")]

mod analysed;
mod asked;
mod chosen;
mod confirmed;
mod cpython;
mod delegated;
mod differential;
mod generate;
mod planned;
mod refused;
mod run;
