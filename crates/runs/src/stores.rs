//! Stores without a world.

use core_ir::{Data, KeyDecl, Name, StoreDecl};
use machine::store::StoreState;
use std::collections::HashMap;

/// Stores as a value, in which no time passes: a copy goes its own way. For following every course that a run
/// can take.
///
/// They hold what stores would that are in the process and begin empty. Time stands still: what lives
/// for no time is gone at once, everything else stays.
///
/// # Examples
/// ```
/// use core_ir::{Data, KeyDecl, LabelSpec, StoreDecl, Type};
/// use diagnostics::{FileId, Span};
/// let key = |name: &str, initial| KeyDecl {
///     name: name.into(),
///     ty: Type::Num,
///     label: LabelSpec::BOTTOM,
///     initial,
/// };
/// let decl = StoreDecl {
///     name: "s".into(),
///     keys: vec![key("a", Some(Data::Num(7.into()))), key("b", None)],
///     capacity: Some(1),
///     ttl: None,
///     backend: None,
///     span: Span { file: FileId(0), start: 0, end: 0 },
/// };
/// let mut stores = runs::StillStores::default();
/// assert_eq!(stores.recall(&decl, 0), Ok(Some(Data::Num(7.into()))));
/// stores.remember(&decl, 1, Data::Num(8.into())).unwrap();
/// assert_eq!(stores.recall(&decl, 0), Ok(None));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StillStores {
    stores: HashMap<Name, StoreState>,
}

impl StillStores {
    fn key<'d>(&mut self, decl: &'d StoreDecl, key: u32) -> Result<(&mut StoreState, &'d KeyDecl), String> {
        let key = decl.keys.get(key as usize);
        let key = key.ok_or_else(|| format!("store `{}` has no such key", decl.name))?;
        Ok((self.stores.entry(decl.name.clone()).or_default(), key))
    }

    /// Returns the value of a key, if it has one.
    ///
    /// # Errors
    /// It holds what is not of the key's type.
    pub fn recall(&mut self, decl: &StoreDecl, key: u32) -> Result<Option<Data>, String> {
        let (state, key) = self.key(decl, key)?;
        state.recall(decl, key, 0).map(|data| of_type(decl, key, data)).transpose()
    }

    /// Writes a key.
    ///
    /// # Errors
    /// The store has no such key.
    pub fn remember(&mut self, decl: &StoreDecl, key: u32, value: Data) -> Result<(), String> {
        let (state, key) = self.key(decl, key)?;
        state.remember(decl, key, value, 0);
        Ok(())
    }
}

/// Checks that the value of a key has its type.
///
/// # Errors
/// It has not; the message names the key.
pub fn of_type(decl: &StoreDecl, key: &KeyDecl, data: Data) -> Result<Data, String> {
    let KeyDecl { name, ty, .. } = key;
    match ty.check(&data) {
        Ok(()) => Ok(data),
        Err((path, why)) => {
            let store = &decl.name;
            Err(format!("key `{name}` of store `{store}`: what it holds is not of its type: {path}: {why}"))
        }
    }
}
