//! A store in this process.

use super::account::{Limits, initial, kept};
use super::{Act, Operation};
use core_ir::{Data, LabelSpec, Name};

/// The accounts of a store, one for each label.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Store {
    accounts: Vec<(LabelSpec, Vec<Entry>)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: Name,
    value: Data,
    limits: Limits,
}

impl Store {
    pub(super) fn carry_out(&mut self, operation: Operation) -> Result<Option<Data>, String> {
        let Operation { decl, key, now, .. } = operation;
        let at = self.accounts.iter().position(|(label, _)| *label == key.label);
        match &operation.act {
            Act::Recall => {
                let account = at.map_or(&[][..], |at| &self.accounts[at].1);
                let remain = kept(account, |e| e.limits, now);
                if let Some(entry) = remain.iter().find(|e| e.key == key.name) {
                    return operation.of_type(entry.value.clone()).map(Some);
                }
                // Most keys have no initial value.
                if key.initial.is_none() {
                    return Ok(None);
                }
                let written: Vec<Name> = remain.iter().map(|e| e.key.clone()).collect();
                Ok(initial(decl, key, &written, now).cloned())
            }
            Act::Remember(value) => {
                let account = match at {
                    Some(at) => &mut self.accounts[at].1,
                    None => {
                        self.accounts.push((key.label.clone(), Vec::new()));
                        let last = self.accounts.len() - 1;
                        &mut self.accounts[last].1
                    }
                };
                let others = kept(account.drain(..), |e| e.limits, now).into_iter();
                let entry =
                    Entry { key: key.name.clone(), value: value.clone(), limits: Limits::of(decl, now) };
                let all = std::iter::once(entry).chain(others.filter(|e| e.key != key.name));
                *account = kept(all, |e| e.limits, now);
                Ok(None)
            }
        }
    }
}
