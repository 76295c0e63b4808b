//! Tools shared by the tests of several crates: a reference evaluator, generated programs, and worlds that
//! answer them.
//!
//! Entry points: [`naive::run`] evaluates a [`core_ir::Code`] by the rules of `docs/calculus.md`;
//! [`generate::programs`] is the strategy of closed programs; [`generate::Script`] answers whatever a
//! program asks, always in the same way; [`drive::run`] runs the machine in such a world;
//! [`secrets::check`] runs a program on two inputs that nobody below their label may tell apart.
//!
//! Invariant: [`naive`] is written from `docs/calculus.md` alone. It shares no code with the machine that
//! it is compared with, beyond the data of `core_ir`.
//! Invariant: everything here is deterministic; the same program in the same world gives the same outcome.

pub mod drive;
pub mod erase;
pub mod generate;
pub mod naive;
pub mod outcome;
pub mod secrets;
pub mod world;
