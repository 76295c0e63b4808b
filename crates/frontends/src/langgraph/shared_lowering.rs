//! Functions of one value, for other front ends: what a function of the project computes of it, as a term.
//!
//! Entry points: [`Functions::follow`], then [`Functions::result`], [`Functions::term`] and
//! [`Functions::test`].
//!
//! Invariant: what cannot be said in the calculus is an unknown term with a finding, as in nodes of graphs.

use super::value::Scope;
use super::{GraphReader, Key, Traced, callable, follow};
use core_ir::{Name, TermId};
use frontend_kit::kit::Kit;
use python::{ObjectId, Value, World};
use std::collections::HashMap;

/// Functions that were followed.
#[derive(Default)]
pub(crate) struct Functions(HashMap<Key, Traced>);

/// Object that represents the argument of a function, and the variable that holds it.
pub(crate) type Of = (ObjectId, Name);

impl Functions {
    /// Follows a function, if the value is one of the project.
    pub fn follow(&mut self, world: &mut World<'_>, function: &Value) {
        follow(world, function, &mut self.0);
    }

    /// Returns the result of a traced function and the object that represents its argument.
    pub fn result(&self, world: &World<'_>, function: &Value) -> Option<(&Value, ObjectId)> {
        let (_, key, _) = callable(world, function)?;
        self.0.get(&key).map(|traced| (&traced.trace.value, traced.state))
    }

    /// A value that a followed function computes.
    pub fn term(&self, kit: &mut Kit<'_>, world: &World<'_>, of: &Of, value: &Value) -> TermId {
        self.reader(world).expr(kit, &scope(of), value)
    }

    /// The same as a truth value.
    pub fn test(&self, kit: &mut Kit<'_>, world: &World<'_>, of: &Of, value: &Value) -> TermId {
        self.reader(world).test(kit, &scope(of), value)
    }

    fn reader<'r, 'w>(&'r self, world: &'r World<'w>) -> GraphReader<'r, 'w> {
        GraphReader { world, traces: &self.0, plans: HashMap::new() }
    }
}

fn scope(of: &Of) -> Scope {
    Scope { state: Some(of.clone()), ..Scope::default() }
}
