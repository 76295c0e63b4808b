//! Map from the requests in flight, which rarely number more than one, to their data.
//!
//! Entry point: [`InlineMap`]. A hash map has room for four entries from the first, and its hashes cost more
//! than all else where there is one; a run that waits for a model has a handful of such maps, and there may
//! be a hundred thousand of these.

use machine::RequestId;
use std::collections::HashMap;

/// A map from requests, in little room while it has at most one entry.
#[derive(Debug, Default)]
pub(crate) enum InlineMap<V> {
    #[default]
    None,
    One(RequestId, V),
    /// Never shrinks: a run that had several requests in flight will have them again.
    #[allow(clippy::box_collection, reason = "what has none or one is to be small")]
    Many(Box<HashMap<RequestId, V>>),
}

impl<V> InlineMap<V> {
    /// Puts a value there; the old one is dropped.
    pub(crate) fn insert(&mut self, id: RequestId, value: V) {
        match self {
            InlineMap::Many(all) => {
                all.insert(id, value);
            }
            InlineMap::One(first, _) if *first != id => {
                if let InlineMap::One(first, old) = std::mem::take(self) {
                    *self = InlineMap::Many(Box::new(HashMap::from([(first, old), (id, value)])));
                }
            }
            _ => *self = InlineMap::One(id, value),
        }
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<V> {
        match self {
            InlineMap::Many(all) => all.remove(&id),
            InlineMap::One(one, _) if *one == id => match std::mem::take(self) {
                InlineMap::One(_, value) => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut V> {
        match self {
            InlineMap::Many(all) => all.get_mut(&id),
            InlineMap::One(one, value) if *one == id => Some(value),
            _ => None,
        }
    }

    pub(crate) fn contains(&self, id: RequestId) -> bool {
        match self {
            InlineMap::Many(all) => all.contains_key(&id),
            InlineMap::One(one, _) => *one == id,
            InlineMap::None => false,
        }
    }

    /// Any of them.
    pub(crate) fn first_mut(&mut self) -> Option<(RequestId, &mut V)> {
        match self {
            InlineMap::Many(all) => all.iter_mut().next().map(|(id, value)| (*id, value)),
            InlineMap::One(id, value) => Some((*id, value)),
            InlineMap::None => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            InlineMap::Many(all) => all.len(),
            InlineMap::One(..) => 1,
            InlineMap::None => 0,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestId, &V)> {
        let (one, many) = match self {
            InlineMap::Many(all) => (None, Some(all.iter())),
            InlineMap::One(id, value) => (Some((*id, value)), None),
            InlineMap::None => (None, None),
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
        let mut few = InlineMap::default();
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
