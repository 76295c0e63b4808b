//! The types that the solver works on, and how values are used.

use crate::types::effects::EffectNode;
use core_ir::{Data, EnumType, Name, Pred};
use std::rc::Rc;
use std::sync::Arc;

/// A type in the arena of a [`Solver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::types) struct T(pub(in crate::types) u32);

/// Types that are always there.
pub(in crate::types) const DYN: T = T(0);
pub(in crate::types) const STR: T = T(1);
pub(in crate::types) const NUM: T = T(2);
pub(in crate::types) const BOOL: T = T(3);
pub(in crate::types) const NULL: T = T(4);
pub(in crate::types) const UNIT: T = T(5);
pub(in crate::types) const DATA: T = T(6);
pub(in crate::types) const LABEL: T = T(7);
pub(in crate::types) const ANY_RECORD: T = T(8);
pub(in crate::types) const SIZED: T = T(9);

/// A field of a record.
#[derive(Clone)]
pub(in crate::types) struct Field {
    pub(in crate::types) name: Name,
    pub(in crate::types) ty: T,
    /// True if a value of the type may lack the field.
    pub(in crate::types) may_lack: bool,
}

#[derive(Clone)]
pub(in crate::types) enum Node {
    Var,
    Dyn,
    Str,
    Num,
    Bool,
    Null,
    /// A string or number that is known.
    Lit(Data),
    List(T),
    /// A list of which each item is known.
    Tuple(Rc<[T]>),
    Option(T),
    Pair(T, T),
    /// `exact`: there are no other fields.
    Record {
        fields: Rc<[Field]>,
        exact: bool,
    },
    /// The arguments of a planned call of the tool.
    Args {
        tool: Name,
        fields: Rc<[Field]>,
    },
    Enum(Arc<EnumType>),
    Variant(Rc<[(Name, T)]>),
    Fun(T, EffectNode, T),
    Refined(T, Arc<Pred>),
    Use(Rc<Use>),
}

/// Use of a value that is not a type. Only ever an upper bound.
pub(in crate::types) enum Use {
    Field {
        name: Name,
        result: T,
    },
    Index {
        index: T,
        key: Option<Data>,
        result: T,
    },
    With {
        name: Name,
        value: T,
        result: T,
    },
    /// An operand of `+`.
    Plus {
        peer: T,
        result: T,
    },
    /// An operand of `<` and the like.
    Order {
        peer: T,
    },
    Sized,
    Slice {
        result: T,
    },
    Contains {
        item: T,
    },
    AnyRecord,
    /// `case`: the branches with what their binders get.
    Cases {
        branches: Box<[(Name, Option<T>)]>,
        default: bool,
    },
    Classify,
    /// Must not contain a function.
    Data,
    Label,
    Guard {
        pred: Arc<Pred>,
        result: T,
    },
    /// The value restricted to the kinds that passed a test.
    Filter {
        keep: Kinds,
        result: T,
    },
    /// The record is known to have the field.
    Present {
        name: Name,
        result: T,
    },
    /// The value passes only if the record may lack the field.
    Lacks {
        name: Name,
        value: T,
        result: T,
    },
    /// The argument of a tool.
    Args {
        tool: Name,
        params: Rc<[Field]>,
    },
}

/// A set of kinds of values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::types) struct Kinds(pub(in crate::types) u8);

impl Kinds {
    pub(in crate::types) const NULL: Kinds = Kinds(1);
    pub(in crate::types) const STR: Kinds = Kinds(2);
    pub(in crate::types) const NUM: Kinds = Kinds(4);
    pub(in crate::types) const BOOL: Kinds = Kinds(8);
    pub(in crate::types) const LIST: Kinds = Kinds(16);
    pub(in crate::types) const RECORD: Kinds = Kinds(32);
    pub(in crate::types) const FUN: Kinds = Kinds(64);
    pub(super) const OTHER: Kinds = Kinds(128);

    pub(in crate::types) fn but(self) -> Kinds {
        Kinds(!self.0)
    }

    pub(in crate::types) fn has(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl Use {
    /// Maps the types in the use.
    pub(super) fn map(&self, f: &mut impl FnMut(T) -> T) -> Use {
        match self {
            Use::Field { name, result } => Use::Field { name: name.clone(), result: f(*result) },
            Use::Index { index, key, result } => {
                Use::Index { index: f(*index), key: key.clone(), result: f(*result) }
            }
            Use::With { name, value, result } => {
                Use::With { name: name.clone(), value: f(*value), result: f(*result) }
            }
            Use::Plus { peer, result } => Use::Plus { peer: f(*peer), result: f(*result) },
            Use::Order { peer } => Use::Order { peer: f(*peer) },
            Use::Slice { result } => Use::Slice { result: f(*result) },
            Use::Contains { item } => Use::Contains { item: f(*item) },
            Use::Cases { branches, default } => Use::Cases {
                branches: branches.iter().map(|(n, b)| (n.clone(), b.map(&mut *f))).collect(),
                default: *default,
            },
            Use::Guard { pred, result } => Use::Guard { pred: pred.clone(), result: f(*result) },
            Use::Filter { keep, result } => Use::Filter { keep: *keep, result: f(*result) },
            Use::Present { name, result } => Use::Present { name: name.clone(), result: f(*result) },
            Use::Lacks { name, value, result } => {
                Use::Lacks { name: name.clone(), value: f(*value), result: f(*result) }
            }
            Use::Args { tool, params } => Use::Args {
                tool: tool.clone(),
                params: params.iter().map(|p| Field { ty: f(p.ty), ..p.clone() }).collect(),
            },
            Use::Sized => Use::Sized,
            Use::AnyRecord => Use::AnyRecord,
            Use::Classify => Use::Classify,
            Use::Data => Use::Data,
            Use::Label => Use::Label,
        }
    }
}
