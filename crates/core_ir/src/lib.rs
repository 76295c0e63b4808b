//! The core calculus as data: terms, types, labels, effects, tool signatures, and JSON data.
//!
//! Entry points: [`Builder`] makes a [`Code`] (front ends and the `.lam` parser use it),
//! [`Code::term`] reads it (analyses and the machine do).
//!
//! Invariant: a [`Code`] is closed and resolved. Every variable is a slot (see [`Slot`]); nothing is
//! looked up by name at run time.
//! Invariant: children stand before their parents, and every term but the root has exactly one
//! parent, so an attribute that flows upwards is computed by one loop over the terms.
//! Invariant: no two stores of a [`Code`] have one name and different declarations (see [`StoreTable`]).
//! Invariant: no term is nested deeper than [`MAX_DEPTH`].
//! Invariant: this crate evaluates nothing and reports nothing; it knows no front end and no rule.
//!
//! Source: `docs/calculus.md` §1–§6.

pub mod among;
mod bound_origin;
mod data;
pub mod draw;
mod effect;
pub mod exchange;
mod formats;
mod label;
mod lower;
mod num;
pub mod paper;
mod parts;
mod places;
mod plain;
mod pred;
pub mod print;
pub mod py;
mod read;
mod route;
mod schema;
mod stores;
mod term;
mod ty;
pub mod vendor;

pub use among::{Among, AmongSource, SetSize, SetStep};
pub use bound_origin::BoundOrigin;
pub use data::{Data, DataError, MAX_DATA_DEPTH, Name};
pub use effect::{Effect, EffectRow};
pub use formats::{FORMATS, Format};
pub use label::{
    Chain, Hop, Label, LabelSpec, Lattice, LatticeKind, Person, Principal, Principals, Stated, Step, What,
};
pub use lower::{END, Function, Instruction, Instructions, Op, Operand};
pub use num::{Num, NumError};
pub use parts::{LabelName, MAX_PATH_STEPS, PartLabel, PartPath, PartRules, PathStep, ResultParts};
pub use places::{Places, Region};
pub use plain::{AnswerSink, Link, LinkKind, Pattern, Plain};
pub use pred::{Comparison, Measure, Pred};
pub use print::{Style, print_code, print_data, print_term, print_with, write_data};
pub use read::InputMismatch;
pub use route::{Candidate, Clearances, ModelRoute, ModelRoutes};
pub use schema::Schema;
pub use stores::{StoreConflict, StoreDifference, StoreTable};
pub use term::{
    ASK_VERDICT, Abs, AbsSugar, Approve, Bound, Branch, BuildError, Builder, Catches, Code, Delegated,
    EffectClass, ErrorClass, Globals, IfSugar, Includes, KeyDecl, LetSugar, MAX_DEPTH, ModelParams, NEXT,
    NOTHING_WAITS, NewIds, Prim, Recv, Role, Slot, StoreDecl, StoreId, Term, TermId, ToolDecl, ToolId,
    ToolParam, includes_from_data, patterns_from_data,
};
pub use ty::{EnumType, RecType, Type};
pub use vendor::Vendor;
