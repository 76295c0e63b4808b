//! Plans run on the machine, and compared with CPython.

#![allow(clippy::disallowed_methods, reason = "tests read fixtures and the environment")]
#![allow(clippy::print_stdout, reason = "tests report what they measured")]

mod adversarial;
mod analyzed;
mod asked;
mod chosen;
mod confirmed;
mod cpython;
mod delegated;
mod differential;
mod generate;
mod hostile;
mod noninterference;
mod planned;
mod policed;
mod refused;
mod run;
mod tasks;
mod worlds;
