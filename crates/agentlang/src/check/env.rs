//! The variables that are bound at a place, and what ways through a statement agree on.

use crate::types::same;
use core_ir::Type;
use diagnostics::Span;
use std::collections::HashMap;

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) id: u32,
    pub(super) ty: Type,
    pub(super) span: Span,
}

/// State of a name in the environment.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Bound(Binding),
    /// It was bound, but not on every way to here.
    OneWay {
        bound: Span,
        construct: &'static str,
    },
    /// It was bound on every way, with different types.
    Types {
        first: (Span, Type),
        second: (Span, Type),
    },
}

/// `Γ`, with a journal so that a branch costs what it changes and not what there is.
#[derive(Default)]
pub(super) struct Env {
    pub(super) names: HashMap<String, Entry>,
    pub(super) journal: Vec<(String, Option<Entry>)>,
}

impl Env {
    pub(super) fn set(&mut self, name: &str, entry: Option<Entry>) {
        let old = match entry {
            Some(e) => self.names.insert(name.to_string(), e),
            None => self.names.remove(name),
        };
        self.journal.push((name.to_string(), old));
    }

    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.names.get(name)
    }

    pub(super) fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Returns the current entries of the names changed since the mark.
    pub(super) fn changes(&self, mark: usize) -> Changes {
        self.journal[mark..].iter().map(|(n, _)| (n.clone(), self.names.get(n).cloned())).collect()
    }

    /// Goes back to the mark and gives what had changed.
    pub(super) fn undo(&mut self, mark: usize) -> Changes {
        let changes = self.changes(mark);
        while self.journal.len() > mark {
            let Some((name, old)) = self.journal.pop() else { break };
            match old {
                Some(e) => self.names.insert(name, e),
                None => self.names.remove(&name),
            };
        }
        changes
    }

    /// `Γ ⊓ (Γ1, …, Γn)`: what every way binds, with one type, stays. Gives the names that some way binds
    /// and that are bound afterwards.
    pub(super) fn merge(&mut self, ways: &[Changes], construct: &'static str) -> Vec<String> {
        let mut bound = Vec::new();
        let mut names: Vec<&String> = ways.iter().flat_map(|w| w.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let base = self.names.get(name).cloned();
            let mut merged: Option<Option<Entry>> = None;
            for way in ways {
                let here = way.get(name).cloned().unwrap_or_else(|| base.clone());
                merged = Some(match (merged, here) {
                    (None, here) => here,
                    (Some(Some(Entry::Bound(a))), Some(Entry::Bound(b))) if same(&a.ty, &b.ty) => {
                        Some(Entry::Bound(a))
                    }
                    (Some(Some(Entry::Bound(a))), Some(Entry::Bound(b))) => {
                        Some(Entry::Types { first: (a.span, a.ty), second: (b.span, b.ty) })
                    }
                    (Some(Some(Entry::Bound(b))), None) | (Some(None), Some(Entry::Bound(b))) => {
                        Some(Entry::OneWay { bound: b.span, construct })
                    }
                    (Some(Some(Entry::Bound(_)) | None), Some(gone)) => Some(gone),
                    (Some(gone), _) => gone,
                });
            }
            if let Some(entry) = merged {
                if matches!(entry, Some(Entry::Bound(_))) {
                    bound.push(name.clone());
                }
                self.set(name, entry);
            }
        }
        bound
    }
}

pub(super) type Changes = HashMap<String, Option<Entry>>;

/// A name that was bound for a block leaves its scope. If it meant something before, it means that again;
/// if not, it is gone, unless the block has bound it anew.
pub(super) fn leave(way: &mut Changes, name: &str, bound: u32, known: bool) {
    if known || matches!(way.get(name), Some(Some(Entry::Bound(b))) if b.id == bound) {
        way.remove(name);
    }
}
