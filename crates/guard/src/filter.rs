//! Items of a result that are left out, so that the conversation keeps its label.
//!
//! The rules of results decide whether an item raises the label: each is tried as the only item of its
//! list, in a copy of the session.
//!
//! Invariant: what is given has been tried. What there are too many of to be tried is left out.

use crate::decide::Allowed;
use crate::session::Session;
use core_ir::{Data, Name, PartPath, PathStep};
use std::sync::Arc;

/// The most items of a list that are tried.
const MAX_ITEMS: usize = 1_000;

impl Session {
    /// Returns a result without the items that the policy leaves out (`filter`), and their number; `None` if
    /// it leaves out nothing of this tool's results.
    pub fn filtered(&self, call: &Allowed, result: &Data) -> Option<(Data, usize)> {
        let lists: Vec<_> = self.filter(call.tool()).collect();
        if lists.is_empty() {
            return None;
        }
        let (mut result, mut left_out) = (result.clone(), 0);
        for (path, floor) in lists {
            let Some(Data::List(items)) = list_at(&result, path) else { continue };
            let empty = self.tried(call, with_list(&result, path, &[]));
            let most = self.joined_label(&empty, floor);
            let is_kept = |item: &&Data| {
                let one = self.tried(call, with_list(&result, path, std::slice::from_ref(*item)));
                one.is_within(&most)
            };
            let kept: Vec<Data> = items.iter().take(MAX_ITEMS).filter(is_kept).cloned().collect();
            left_out += items.len() - kept.len();
            result = with_list(&result, path, &kept);
        }
        Some((result, left_out))
    }

    /// A copy of the session that was given this result.
    fn tried(&self, call: &Allowed, result: Data) -> Session {
        let mut copy = self.clone();
        let _ = copy.finish(call.clone(), Ok(result), None);
        copy
    }
}

/// The list that a path leads to, if there is one.
fn list_at<'d>(data: &'d Data, path: &PartPath) -> Option<&'d Data> {
    let mut at = data;
    for step in path.steps() {
        match step {
            PathStep::Field(name) => at = at.field(name)?,
            // INVARIANT: the items of the list are the last step.
            PathStep::Items | PathStep::Values => break,
        }
    }
    matches!(at, Data::List(_)).then_some(at)
}

/// The data with other items in the list that a path leads to.
fn with_list(data: &Data, path: &PartPath, items: &[Data]) -> Data {
    let names: Vec<&Name> = path
        .steps()
        .iter()
        .filter_map(|step| match step {
            PathStep::Field(name) => Some(name),
            PathStep::Items | PathStep::Values => None,
        })
        .collect();
    replaced(data, &names, items)
}

/// Paths are short, so this is not deep.
fn replaced(data: &Data, names: &[&Name], items: &[Data]) -> Data {
    match (data, names) {
        (_, []) => Data::list(items.iter().cloned()),
        (Data::Record(fields), [name, rest @ ..]) => {
            let field = |(n, value): &(Name, Data)| {
                let value = if n == *name { replaced(value, rest, items) } else { value.clone() };
                (n.clone(), value)
            };
            Data::Record(Arc::from(fields.iter().map(field).collect::<Vec<_>>()))
        }
        (other, _) => other.clone(),
    }
}
