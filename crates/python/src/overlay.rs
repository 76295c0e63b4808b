//! Tables of evaluated entries, and overlays for changes across components. A component is what the modules
//! of one import cycle made, mostly a single module.
//!
//! A component is evaluated once and then immutable. If an importer changes one of its entries, say by an
//! append to an imported list, the changed copy is kept in an overlay of the importer, which its own
//! importers see, too.
//!
//! Invariant: an entry is identified by its component and its index there, so that identities do not depend
//! on the order of evaluation.
//! Invariant: a value refers only to entries of components that are linked where the value is.

use crate::eval::{Scope, same};
use crate::value::*;
use std::collections::HashMap;

/// Entries that a component made.
#[derive(Debug, Default)]
pub(crate) struct Tables<'a> {
    pub lists: Vec<List>,
    pub dicts: Vec<Dict>,
    pub texts: Vec<Vec<Piece>>,
    pub objects: Vec<Object>,
    pub functions: Vec<Function<'a>>,
    pub classes: Vec<Class>,
    pub envs: Vec<Env>,
    pub scopes: Vec<Scope<'a>>,
}

/// Changed copy of another component's entry.
#[derive(Clone, Debug)]
pub(crate) struct Overlaid<T> {
    pub entry: T,
    /// Components whose changes it includes.
    pub by: Vec<u32>,
}

/// Changed entries of other components.
#[derive(Debug)]
pub(crate) struct Overlay<I, T>(HashMap<I, Overlaid<T>>);

impl<I, T> Default for Overlay<I, T> {
    fn default() -> Self {
        Overlay(HashMap::new())
    }
}

impl<I: Copy + Eq + std::hash::Hash, T: Mergeable> Overlay<I, T> {
    pub fn get(&self, id: I) -> Option<&T> {
        self.0.get(&id).map(|c| &c.entry)
    }

    /// Returns an entry for a change by a component.
    pub fn get_mut(&mut self, id: I, by: u32, made: impl FnOnce() -> T) -> &mut T {
        let changed = self.0.entry(id).or_insert_with(|| Overlaid { entry: made(), by: Vec::new() });
        if !changed.by.contains(&by) {
            changed.by.push(by);
        }
        &mut changed.entry
    }

    /// Returns the entries that a component changed itself.
    pub fn of(self, component: u32) -> HashMap<I, Overlaid<T>> {
        self.0.into_iter().filter(|(_, c)| c.by.contains(&component)).collect()
    }

    /// Adds what another component changed, which saw the changes of some. `made` is the entry as its own
    /// component made it.
    pub fn add<'m>(
        &mut self,
        more: &HashMap<I, Overlaid<T>>,
        component: u32,
        links: impl Fn(u32) -> bool,
        made: impl Fn(I) -> &'m T,
    ) where
        T: 'm,
    {
        for (id, theirs) in more {
            match self.0.get_mut(id) {
                Some(mine) if !mine.by.iter().all(|p| *p == component || links(*p)) => {
                    mine.entry.merge(made(*id), &theirs.entry);
                    let more = theirs.by.iter().filter(|p| !mine.by.contains(p)).copied().collect::<Vec<_>>();
                    mine.by.extend(more);
                }
                // Whatever was changed before is in it.
                _ => drop(self.0.insert(*id, theirs.clone())),
            }
        }
    }
}

/// An entry that components may change without knowing of each other.
pub(crate) trait Mergeable: Clone {
    /// Adds what another component added to what was made.
    fn merge(&mut self, made: &Self, other: &Self);
}

/// Appends the new items of another copy that this one lacks.
fn add<T: Clone>(mine: &mut Vec<T>, made: usize, other: &[T], is: impl Fn(&T, &T) -> bool) {
    for item in other.iter().skip(made) {
        if !mine.iter().skip(made).any(|i| is(i, item)) {
            mine.push(item.clone());
        }
    }
}

impl Mergeable for List {
    fn merge(&mut self, made: &Self, other: &Self) {
        add(&mut self.items, made.items.len(), &other.items, same);
        self.open = self.open.or(other.open);
    }
}

impl Mergeable for Dict {
    fn merge(&mut self, made: &Self, other: &Self) {
        add(&mut self.entries, made.entries.len(), &other.entries, |(k, _), (l, _)| same(k, l));
        self.open = self.open.or(other.open);
    }
}

impl Mergeable for Object {
    fn merge(&mut self, made: &Self, other: &Self) {
        add(&mut self.calls, made.calls.len(), &other.calls, |m, n| m.result == n.result);
        add(&mut self.attrs, made.attrs.len(), &other.attrs, |(n, v), (m, w)| n == m && same(v, w));
        add(&mut self.args, made.args.len(), &other.args, |a, b| {
            a.name == b.name && same(&a.value, &b.value)
        });
        self.open = self.open.or(other.open);
    }
}

impl Mergeable for Class {
    fn merge(&mut self, made: &Self, other: &Self) {
        add(&mut self.attrs, made.attrs.len(), &other.attrs, |(n, v), (m, w)| n == m && same(v, w));
        add(&mut self.fields, made.fields.len(), &other.fields, |f, g| f.name == g.name);
    }
}

impl Mergeable for Scope<'_> {
    fn merge(&mut self, made: &Self, other: &Self) {
        for (name, value) in &other.vars {
            if made.vars.get(name).is_none_or(|v| !same(v, value)) {
                self.vars.insert(name, value.clone());
            }
        }
    }
}
