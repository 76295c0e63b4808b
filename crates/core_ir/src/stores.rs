//! The table of store declarations: one declaration for each name.
//!
//! Entry points: [`StoreTable::declare`], [`StoreDecl::difference`].
//!
//! Invariant: a [`StoreTable`] holds no two declarations of one name. Declarations that say the same are one.
//!
//! Source: `docs/calculus.md` §6 and §10, stores.

use crate::{KeyDecl, Name, StoreDecl};
use diagnostics::Span;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The declarations of the stores of a program, or of programs that share their stores.
///
/// # Examples
/// ```
/// use core_ir::{StoreDecl, StoreDifference, StoreTable};
/// use diagnostics::{FileId, Span};
/// use std::sync::Arc;
/// let at = |start| Span { file: FileId(0), start, end: start + 1 };
/// let notes = |capacity, start| {
///     let name = "notes".into();
///     Arc::new(StoreDecl { name, keys: Vec::new(), capacity, ttl: None, backend: None, span: at(start) })
/// };
/// let mut table = StoreTable::default();
/// table.declare(&notes(Some(3), 0)).unwrap();
/// // The same again, elsewhere.
/// table.declare(&notes(Some(3), 5)).unwrap();
/// let conflict = table.declare(&notes(None, 9)).unwrap_err();
/// assert_eq!(conflict.difference, StoreDifference::Capacity);
/// assert_eq!((conflict.first, conflict.second), (at(0), at(9)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct StoreTable {
    declared: HashMap<Name, Arc<StoreDecl>>,
}

impl StoreTable {
    /// Adds a declaration, unless it is there.
    ///
    /// # Errors
    /// The name has a declaration that says something else.
    pub fn declare(&mut self, store: &Arc<StoreDecl>) -> Result<(), StoreConflict> {
        let Some(first) = self.declared.get(&store.name) else {
            self.declared.insert(store.name.clone(), store.clone());
            return Ok(());
        };
        match first.difference(store) {
            None => Ok(()),
            Some(difference) => Err(StoreConflict {
                name: store.name.clone(),
                first: first.span,
                second: store.span,
                difference,
            }),
        }
    }
}

/// Two declarations of one store that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConflict {
    /// The name of the store.
    pub name: Name,
    /// The first declaration.
    pub first: Span,
    /// The second declaration.
    pub second: Span,
    /// The first thing in which they differ.
    pub difference: StoreDifference,
}

impl StoreConflict {
    /// The change that resolves the conflict.
    pub const HELP: &str = "declare the store once, or give one of the two another name";
}

impl fmt::Display for StoreConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store `{}` has two declarations, which differ in {}", self.name, self.difference)
    }
}

/// The first thing in which two declarations of one store differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreDifference {
    /// One of them has the key, or has it in another place.
    Key(Name),
    /// The type of the key.
    Type(Name),
    /// The label of the key.
    Label(Name),
    /// The initial value of the key.
    Initial(Name),
    /// The capacity.
    Capacity,
    /// The lifetime of entries.
    Lifetime,
    /// The backend.
    Backend,
}

impl fmt::Display for StoreDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreDifference::Key(key) => write!(f, "the key `{key}`"),
            StoreDifference::Type(key) => write!(f, "the type of the key `{key}`"),
            StoreDifference::Label(key) => write!(f, "the label of the key `{key}`"),
            StoreDifference::Initial(key) => write!(f, "the initial value of the key `{key}`"),
            StoreDifference::Capacity => f.write_str("the capacity"),
            StoreDifference::Lifetime => f.write_str("the lifetime of entries"),
            StoreDifference::Backend => f.write_str("the backend"),
        }
    }
}

impl StoreDecl {
    /// Returns the first thing in which two declarations differ; the place in the source does not count.
    pub fn difference(&self, other: &StoreDecl) -> Option<StoreDifference> {
        let StoreDecl { name: _, keys, capacity, ttl, backend, span: _ } = self;
        for (mine, theirs) in keys.iter().zip(&other.keys) {
            let KeyDecl { name, ty, label, initial } = mine;
            if *name != theirs.name {
                return Some(StoreDifference::Key(name.clone()));
            }
            if *label != theirs.label {
                return Some(StoreDifference::Label(name.clone()));
            }
            if *ty != theirs.ty {
                return Some(StoreDifference::Type(name.clone()));
            }
            if *initial != theirs.initial {
                return Some(StoreDifference::Initial(name.clone()));
            }
        }
        let common = keys.len().min(other.keys.len());
        if let Some(key) = keys[common..].iter().chain(&other.keys[common..]).next() {
            return Some(StoreDifference::Key(key.name.clone()));
        }
        if *capacity != other.capacity {
            return Some(StoreDifference::Capacity);
        }
        if *ttl != other.ttl {
            return Some(StoreDifference::Lifetime);
        }
        (*backend != other.backend).then_some(StoreDifference::Backend)
    }
}
