//! Map from the requests in flight, which rarely number more than one, to their data.
//!
//! Entry point: [`Few`]. A hash map has room for four entries from the first, and its hashes cost more than
//! all else where there is one; a run that waits for a model has a handful of such maps, and there may be a
//! hundred thousand of these.

use machine::RequestId;
use std::collections::HashMap;

/// A map from requests, in little room while it has at most one entry.
#[derive(Debug, Default)]
pub(crate) enum Few<V> {
    #[default]
    None,
    One(RequestId, V),
    /// Not given up again: a run that had several requests under way will have.
    #[allow(clippy::box_collection, reason = "what has none or one is to be small")]
    Many(Box<HashMap<RequestId, V>>),
}

impl<V> Few<V> {
    /// Puts a value there; the old one is dropped.
    pub(crate) fn insert(&mut self, id: RequestId, value: V) {
        match self {
            Few::Many(all) => {
                all.insert(id, value);
            }
            Few::One(first, _) if *first != id => {
                if let Few::One(first, old) = std::mem::take(self) {
                    *self = Few::Many(Box::new(HashMap::from([(first, old), (id, value)])));
                }
            }
            _ => *self = Few::One(id, value),
        }
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<V> {
        match self {
            Few::Many(all) => all.remove(&id),
            Few::One(one, _) if *one == id => match std::mem::take(self) {
                Few::One(_, value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut V> {
        match self {
            Few::Many(all) => all.get_mut(&id),
            Few::One(one, value) if *one == id => Some(value),
            _ => None,
        }
    }

    pub(crate) fn contains(&self, id: RequestId) -> bool {
        match self {
            Few::Many(all) => all.contains_key(&id),
            Few::One(one, _) => *one == id,
            Few::None => false,
        }
    }

    /// Any of them.
    pub(crate) fn first_mut(&mut self) -> Option<(RequestId, &mut V)> {
        match self {
            Few::Many(all) => all.iter_mut().next().map(|(id, value)| (*id, value)),
            Few::One(id, value) => Some((*id, value)),
            Few::None => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Few::Many(all) => all.len(),
            Few::One(..) => 1,
            Few::None => 0,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestId, &V)> {
        let (one, many) = match self {
            Few::Many(all) => (None, Some(all.iter())),
            Few::One(id, value) => (Some((*id, value)), None),
            Few::None => (None, None),
        };
        one.into_iter().chain(many.into_iter().flatten().map(|(id, value)| (*id, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map_whatever_its_size() {
        let id = |n: u32| RequestId { strand: 0, number: n };
        let mut few = Few::default();
        assert_eq!((few.len(), few.remove(id(1))), (0, None));
        few.insert(id(1), 'a');
        few.insert(id(1), 'b');
        assert_eq!((few.len(), few.contains(id(1)), few.contains(id(2))), (1, true, false));
        assert_eq!((few.remove(id(2)), few.get_mut(id(2))), (None, None));
        few.insert(id(2), 'c');
        *few.get_mut(id(1)).unwrap() = 'd';
        let mut all: Vec<_> = few.iter().map(|(id, v)| (id.number, *v)).collect();
        all.sort_unstable();
        assert_eq!(all, [(1, 'd'), (2, 'c')]);
        assert_eq!((few.remove(id(1)), few.remove(id(1)), few.len()), (Some('d'), None, 1));
        few.insert(id(1), 'e');
        assert_eq!((few.remove(id(2)), few.remove(id(1)), few.len()), (Some('c'), Some('e'), 0));
    }
}
