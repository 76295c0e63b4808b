//! The variables that are bound at a place, and what ways through a statement agree on.

use crate::types::optional;
use core_ir::Type;
use diagnostics::Span;
use std::collections::HashMap;

/// The fields that a value has, as far as its text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Fields {
    /// It may have fields that its type does not name.
    #[default]
    Some,
    /// It is a record of these fields alone, each with those of its own value.
    These(Vec<(String, Fields)>),
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) id: u32,
    pub(super) ty: Type,
    pub(super) span: Span,
    /// The option that it is an inside of, where a condition has shown that it is not null.
    pub(super) whole: Option<Type>,
    /// The type of its value with the strings that are written there, `Obj{level: "low"}`, where that says
    /// more than its type. The value may stand where a type of literals is declared.
    pub(super) literal: Option<Type>,
    /// The fields of its value. One that is certain to be absent is null where an option is declared.
    pub(super) fields: Fields,
}

impl Binding {
    /// Its type, with the strings that are written in its value.
    pub(super) fn precise(&self) -> &Type {
        self.literal.as_ref().unwrap_or(&self.ty)
    }

    /// The binding without what a condition has shown.
    fn widened(self) -> Binding {
        match self.whole {
            Some(ty) => Binding { ty, whole: None, literal: None, ..self },
            None => self,
        }
    }
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
    /// Variables, and places such as `order.note`, with what a condition has shown of them.
    pub(super) names: HashMap<String, Entry>,
    pub(super) journal: Vec<(String, Option<Entry>)>,
    /// The places that begin with a variable.
    places: HashMap<String, Vec<String>>,
}

/// Returns true for a place that is no variable.
pub(super) fn is_place(name: &str) -> bool {
    name.contains('.')
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

    /// Sets what is known of a place that begins with the variable `root`.
    pub(super) fn set_place(&mut self, root: &str, place: &str, entry: Entry) {
        let places = self.places.entry(root.to_string()).or_default();
        if !places.iter().any(|p| p == place) {
            places.push(place.to_string());
        }
        self.set(place, Some(entry));
    }

    /// Returns true if something may be known of places that begin with a variable.
    pub(super) fn has_places(&self, root: &str) -> bool {
        self.places.contains_key(root)
    }

    /// Forgets what is known of places that begin with a variable, which has another value now.
    pub(super) fn forget_places(&mut self, root: &str) {
        let Some(places) = self.places.get(root) else { return };
        for place in places.clone() {
            if self.names.contains_key(&place) {
                self.set(&place, None);
            }
        }
    }

    /// Forgets what conditions have shown of a variable and of places that begin with it.
    pub(super) fn widen(&mut self, name: &str) {
        self.forget_places(name);
        if let Some(Entry::Bound(b)) = self.names.get(name)
            && (b.whole.is_some() || b.fields != Fields::Some)
        {
            let entry = Entry::Bound(Binding { fields: Fields::Some, ..b.clone().widened() });
            self.set(name, Some(entry));
        }
    }

    /// Goes back to the mark and forgets all places.
    pub(super) fn reset(&mut self, mark: usize) {
        self.undo(mark);
        self.places.clear();
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
            let before = match &base {
                Some(Entry::Bound(b)) => Some(b.id),
                _ => None,
            };
            let mut merged: Option<Option<Entry>> = None;
            let mut rebound = false;
            for way in ways {
                let here = way.get(name).cloned().unwrap_or_else(|| base.clone());
                rebound |= !matches!(&here, Some(Entry::Bound(b)) if Some(b.id) == before);
                merged = Some(match (merged, here) {
                    (None, here) => here,
                    (Some(Some(Entry::Bound(a))), Some(Entry::Bound(b))) if a.id == b.id => {
                        Some(Entry::Bound(if a.ty == b.ty { a } else { a.widened() }))
                    }
                    (Some(_), _) if is_place(name) => None,
                    (Some(Some(Entry::Bound(a))), Some(Entry::Bound(b))) => {
                        let literal = literals_of_both(&a, &b);
                        match optional(&a.ty, &b.ty).or_else(|| literal.clone()) {
                            // That of a way that binds it, so that what is around knows of it.
                            Some(ty) => {
                                let id = if Some(a.id) == before { b.id } else { a.id };
                                let literal = literal.filter(|l| *l != ty);
                                let fields = if a.fields == b.fields { a.fields } else { Fields::Some };
                                let span = a.span;
                                Some(Entry::Bound(Binding { id, ty, span, whole: None, literal, fields }))
                            }
                            None => Some(Entry::Types { first: (a.span, a.ty), second: (b.span, b.ty) }),
                        }
                    }
                    (Some(Some(Entry::Bound(b))), None) | (Some(None), Some(Entry::Bound(b))) => {
                        Some(Entry::OneWay { bound: b.span, construct })
                    }
                    (Some(Some(Entry::Bound(_)) | None), Some(gone)) => Some(gone),
                    (Some(gone), _) => gone,
                });
            }
            if let Some(entry) = merged {
                // What a condition has shown is no value that a way binds.
                if matches!(entry, Some(Entry::Bound(_))) && rebound && !is_place(name) {
                    bound.push(name.clone());
                }
                self.set(name, entry);
            }
        }
        bound
    }
}

/// The type of literals that two ways bind a name to, where at least one binds it to written strings.
fn literals_of_both(a: &Binding, b: &Binding) -> Option<Type> {
    (a.literal.is_some() || b.literal.is_some()).then(|| optional(a.precise(), b.precise())).flatten()
}

pub(super) type Changes = HashMap<String, Option<Entry>>;

/// A name that was bound for a block leaves its scope. If it meant something before, it means that again;
/// if not, it is gone, unless the block has bound it anew.
pub(super) fn leave(way: &mut Changes, name: &str, bound: u32, known: bool) {
    if known || matches!(way.get(name), Some(Some(Entry::Bound(b))) if b.id == bound) {
        way.remove(name);
    }
    // What was shown of the inner variable's places says nothing of the outer one's.
    way.retain(|place, _| !place.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
}
