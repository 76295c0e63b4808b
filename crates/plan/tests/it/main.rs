//! Plans run on the machine, and compared with CPython.

mod analysed;
mod cpython;
mod differential;
mod generate;
mod refused;
mod run;
