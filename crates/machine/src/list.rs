//! Persistent lists of values.
//!
//! Entry point: [`List`]. Appending takes constant time, amortized. Concatenation, indexing and slicing take
//! logarithmic time. Lists that have items in common share them.
//!
//! Invariant: a list never changes. What is appended is written behind its last item, where no list that is
//! shorter looks.
//! Invariant: no list holds itself, so it is dropped with its last share.
//! Invariant: dropping a list recurses no deeper than its tree is high; [`List::dismantle`] moves out what
//! has to be dropped without recursion.

use crate::value::{Kind, Value};
use std::sync::{Arc, OnceLock};

/// The maximum length of a chunk that is copied instead of shared.
const CHUNK: usize = 32;

/// The items that the first room of a list is for. It doubles up to the length of a chunk.
const FIRST_ROOM: usize = 4;

/// Items that stand side by side: a part of a shared slice.
#[derive(Clone, Debug, Default)]
struct Chunk {
    items: Arc<[Value]>,
    start: usize,
    end: usize,
}

impl Chunk {
    fn new(items: Arc<[Value]>) -> Chunk {
        Chunk { start: 0, end: items.len(), items }
    }

    fn as_slice(&self) -> &[Value] {
        &self.items[self.start..self.end]
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    /// The items from an index up to but not including another. A short part of a long slice is copied, so
    /// that it does not keep the rest alive.
    fn range(&self, from: usize, to: usize) -> Chunk {
        if to - from <= CHUNK && self.items.len() > CHUNK {
            return Chunk::new(self.as_slice()[from..to].iter().cloned().collect());
        }
        Chunk { items: self.items.clone(), start: self.start + from, end: self.start + to }
    }

    fn concat(&self, other: &[Value]) -> Chunk {
        Chunk::new(self.as_slice().iter().chain(other).cloned().collect())
    }
}

/// Room for items that are appended one by one: the first few are those of this list. Lists that were
/// appended to it may use what is behind.
#[derive(Clone, Debug)]
struct Room {
    slots: Arc<[OnceLock<Value>]>,
    len: usize,
}

impl Room {
    /// Room of this size for these items.
    fn new(items: impl Iterator<Item = Value>, size: usize) -> Room {
        let mut slots: Vec<OnceLock<Value>> = items.map(OnceLock::from).collect();
        let len = slots.len();
        slots.resize_with(size, OnceLock::new);
        Room { slots: slots.into(), len }
    }

    fn iter(&self) -> impl Iterator<Item = &Value> {
        self.slots[..self.len].iter().filter_map(OnceLock::get)
    }

    fn get(&self, index: usize) -> Option<&Value> {
        self.slots[..self.len].get(index).and_then(OnceLock::get)
    }

    /// The room with one more item, or the item if the room is as long as a chunk.
    fn append(&self, mut item: Value) -> Result<Room, Value> {
        if self.len >= CHUNK {
            return Err(item);
        }
        // A value with parts may hold this very list: in its room, nobody would ever drop it.
        let has_parts = matches!(item.kind, Kind::Node(_));
        if let Some(slot) = self.slots.get(self.len).filter(|_| !has_parts) {
            match slot.set(item) {
                Ok(()) => return Ok(Room { slots: self.slots.clone(), len: self.len + 1 }),
                // Another item was appended to this list before.
                Err(back) => item = back,
            }
        }
        let size = if has_parts { self.len + 1 } else { (2 * self.len).clamp(FIRST_ROOM, CHUNK) };
        Ok(Room::new(self.iter().cloned().chain([item]), size))
    }
}

/// A height-balanced tree of chunks: the heights of siblings differ by at most one.
#[derive(Debug)]
enum Tree {
    Leaf(Chunk),
    Node { left: Arc<Tree>, right: Arc<Tree>, len: usize, height: u8 },
}

impl Tree {
    fn leaf(chunk: Chunk) -> Arc<Tree> {
        Arc::new(Tree::Leaf(chunk))
    }

    fn node(left: Arc<Tree>, right: Arc<Tree>) -> Arc<Tree> {
        let (len, height) = (left.len() + right.len(), 1 + left.height().max(right.height()));
        Arc::new(Tree::Node { left, right, len, height })
    }

    fn len(&self) -> usize {
        match self {
            Tree::Leaf(chunk) => chunk.len(),
            Tree::Node { len, .. } => *len,
        }
    }

    fn height(&self) -> u8 {
        match self {
            Tree::Leaf(_) => 0,
            Tree::Node { height, .. } => *height,
        }
    }

    fn get(&self, mut index: usize) -> Option<&Value> {
        let mut tree = self;
        loop {
            match tree {
                Tree::Leaf(chunk) => return chunk.as_slice().get(index),
                Tree::Node { left, right, .. } => match index.checked_sub(left.len()) {
                    None => tree = left,
                    Some(rest) => (tree, index) = (right, rest),
                },
            }
        }
    }

    /// The concatenation of two trees, whose heights may differ.
    fn join(left: &Arc<Tree>, right: &Arc<Tree>) -> Arc<Tree> {
        match (&**left, &**right) {
            (Tree::Leaf(a), Tree::Leaf(b)) if a.len() + b.len() <= CHUNK => {
                Tree::leaf(a.concat(b.as_slice()))
            }
            // Down to the leaves, so that short ones become one.
            (Tree::Node { left: outer, right: inner, height, .. }, other)
                if *height > other.height() + 1 || other.height() == 0 =>
            {
                Tree::balanced(outer.clone(), Tree::join(inner, right))
            }
            (other, Tree::Node { left: inner, right: outer, height, .. })
                if *height > other.height() + 1 || other.height() == 0 =>
            {
                Tree::balanced(Tree::join(left, inner), outer.clone())
            }
            _ => Tree::node(left.clone(), right.clone()),
        }
    }

    /// A node of two trees whose heights differ by at most two.
    fn balanced(left: Arc<Tree>, right: Arc<Tree>) -> Arc<Tree> {
        if left.height() > right.height() + 1
            && let Tree::Node { left: a, right: b, .. } = &*left
        {
            return match &**b {
                Tree::Node { left: c, right: d, .. } if b.height() > a.height() => {
                    Tree::node(Tree::node(a.clone(), c.clone()), Tree::node(d.clone(), right))
                }
                _ => Tree::node(a.clone(), Tree::node(b.clone(), right)),
            };
        }
        if right.height() > left.height() + 1
            && let Tree::Node { left: a, right: b, .. } = &*right
        {
            return match &**a {
                Tree::Node { left: c, right: d, .. } if a.height() > b.height() => {
                    Tree::node(Tree::node(left, c.clone()), Tree::node(d.clone(), b.clone()))
                }
                _ => Tree::node(Tree::node(left, a.clone()), b.clone()),
            };
        }
        Tree::node(left, right)
    }

    /// The items from an index up to but not including another, of which there is at least one.
    fn range(this: &Arc<Tree>, from: usize, to: usize) -> Arc<Tree> {
        match &**this {
            _ if (from, to) == (0, this.len()) => this.clone(),
            Tree::Leaf(chunk) => Tree::leaf(chunk.range(from, to)),
            Tree::Node { left, right, .. } => {
                let middle = left.len();
                if to <= middle {
                    Tree::range(left, from, to)
                } else if from >= middle {
                    Tree::range(right, from - middle, to - middle)
                } else {
                    Tree::join(&Tree::range(left, from, middle), &Tree::range(right, 0, to - middle))
                }
            }
        }
    }
}

/// The items of a list value.
#[derive(Clone, Debug)]
pub(crate) struct List {
    front: Option<Arc<Tree>>,
    /// The items behind the front: all of most lists.
    tail: Chunk,
    /// The items behind the tail: those that were appended last.
    room: Option<Room>,
}

impl List {
    /// Number of items before the tail, and before the room.
    fn bounds(&self) -> (usize, usize) {
        let front = self.front.as_ref().map_or(0, |f| f.len());
        (front, front + self.tail.len())
    }

    pub(crate) fn len(&self) -> usize {
        self.bounds().1 + self.room.as_ref().map_or(0, |room| room.len)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Value> {
        let (tail, room) = self.bounds();
        match &self.front {
            Some(front) if index < tail => front.get(index),
            _ if index < room => self.tail.as_slice().get(index - tail),
            _ => self.room.as_ref().and_then(|r| r.get(index - room)),
        }
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        let mut iter = Iter {
            left: self.len(),
            trees: Vec::new(),
            chunk: [].iter(),
            tail: self.tail.as_slice(),
            room: self.room.as_ref().map_or(&[], |room| &room.slots[..room.len]),
        };
        match &self.front {
            None => iter.chunk = std::mem::take(&mut iter.tail).iter(),
            Some(front) => iter.trees.push(front),
        }
        iter
    }

    /// All as a tree in front of what follows.
    fn whole(&self) -> Option<Arc<Tree>> {
        let tail = (self.tail.len() > 0).then(|| self.tail.clone());
        let room = self.room.as_ref().map(|room| Chunk::new(room.iter().cloned().collect()));
        [tail, room].into_iter().flatten().fold(self.front.clone(), |front, chunk| {
            let leaf = Tree::leaf(chunk);
            Some(front.map_or_else(|| leaf.clone(), |front| Tree::join(&front, &leaf)))
        })
    }

    /// The list with one more item at its end.
    pub(crate) fn append(&self, item: Value) -> List {
        let more = match &self.room {
            Some(room) => room.append(item),
            None => Ok(Room::new(std::iter::once(item), FIRST_ROOM)),
        };
        match more {
            Ok(room) => List { front: self.front.clone(), tail: self.tail.clone(), room: Some(room) },
            Err(item) => {
                let room = Room::new(std::iter::once(item), CHUNK);
                List { front: self.whole(), tail: Chunk::default(), room: Some(room) }
            }
        }
    }

    pub(crate) fn concat(&self, other: &List) -> List {
        let own = self.len() - self.bounds().0;
        if other.front.is_none() && own + other.len() <= CHUNK {
            let own = self.tail.as_slice().iter().chain(self.room.iter().flat_map(Room::iter));
            let tail = Chunk::new(own.chain(other.iter()).cloned().collect());
            return List { front: self.front.clone(), tail, room: None };
        }
        let front = match (self.whole(), &other.front) {
            (Some(left), Some(right)) => Some(Tree::join(&left, right)),
            (left, right) => left.or_else(|| right.clone()),
        };
        List { front, tail: other.tail.clone(), room: other.room.clone() }
    }

    /// The items from an index up to but not including another. Indices beyond the end count as the end.
    pub(crate) fn slice(&self, from: usize, to: usize) -> List {
        let to = to.min(self.len());
        let from = from.min(to);
        let (middle, end) = self.bounds();
        let front = match &self.front {
            Some(front) if from < to.min(middle) => Some(Tree::range(front, from, to.min(middle))),
            _ => None,
        };
        let tail = self.tail.range(from.clamp(middle, end) - middle, to.clamp(middle, end) - middle);
        let part = List { front, tail, room: None };
        match &self.room {
            Some(_) if from <= end && to == self.len() => List { room: self.room.clone(), ..part },
            Some(room) if to > end => {
                let items = room.iter().take(to - end).skip(from.max(end) - end);
                List { front: part.whole(), tail: Chunk::new(items.cloned().collect()), room: None }
            }
            _ => part,
        }
    }

    /// Moves all that the list holds to `pieces`, and leaves it empty.
    pub(crate) fn dismantle(&mut self, pieces: &mut Vec<Piece>) {
        // Moved out, so that a piece that stands here twice is given up with the second share of it.
        pieces.extend(self.front.take().map(|t| Piece(PieceKind::Tree(t))));
        pieces.push(Piece(PieceKind::Items(std::mem::take(&mut self.tail).items)));
        pieces.extend(self.room.take().map(|r| Piece(PieceKind::Room(r.slots))));
    }

    /// Returns whether dropping the list may drop a value that is `nested`. Looks at the items of short lists
    /// alone. What somebody else holds too is only counted down.
    pub(crate) fn may_drop(&self, nested: impl Fn(&Value) -> bool) -> bool {
        let drops_front = self.front.as_ref().is_some_and(|front| Arc::strong_count(front) == 1);
        let items = &self.tail.items;
        let drops_tail = || {
            let may_drop = items.len() > CHUNK || items.iter().any(&nested);
            may_drop && Arc::strong_count(items) == 1
        };
        let drops_room = |room: &Room| {
            let slots = &room.slots;
            Arc::strong_count(slots) == 1 && slots.iter().filter_map(OnceLock::get).any(&nested)
        };
        drops_front || drops_tail() || self.room.as_ref().is_some_and(drops_room)
    }
}

/// A part of a list that is given up.
pub(crate) struct Piece(PieceKind);

enum PieceKind {
    Tree(Arc<Tree>),
    Items(Arc<[Value]>),
    Room(Arc<[OnceLock<Value>]>),
}

impl Piece {
    /// Takes the piece apart, if nobody else holds it: `take` is given each of its items.
    pub(crate) fn dismantle(self, pieces: &mut Vec<Piece>, mut take: impl FnMut(&mut Value)) {
        match self.0 {
            PieceKind::Tree(tree) => match Arc::into_inner(tree) {
                Some(Tree::Leaf(chunk)) => pieces.push(Piece(PieceKind::Items(chunk.items))),
                Some(Tree::Node { left, right, .. }) => {
                    pieces.extend([left, right].map(|t| Piece(PieceKind::Tree(t))));
                }
                None => {}
            },
            PieceKind::Items(mut items) => {
                if let Some(items) = Arc::get_mut(&mut items) {
                    items.iter_mut().for_each(take);
                }
            }
            PieceKind::Room(mut slots) => {
                if let Some(slots) = Arc::get_mut(&mut slots) {
                    slots.iter_mut().filter_map(OnceLock::get_mut).for_each(&mut take);
                }
            }
        }
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> List {
        List { front: None, tail: Chunk::new(items.into()), room: None }
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> List {
        List { front: None, tail: Chunk::new(items.into_iter().collect()), room: None }
    }
}

/// The items of a list in order.
pub(crate) struct Iter<'a> {
    left: usize,
    /// The trees behind the chunk, the next one last.
    trees: Vec<&'a Tree>,
    chunk: std::slice::Iter<'a, Value>,
    tail: &'a [Value],
    room: &'a [OnceLock<Value>],
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Value;

    #[inline]
    fn next(&mut self) -> Option<&'a Value> {
        loop {
            if let Some(item) = self.chunk.next() {
                self.left -= 1;
                return Some(item);
            }
            match self.trees.pop() {
                Some(Tree::Leaf(chunk)) => self.chunk = chunk.as_slice().iter(),
                Some(Tree::Node { left, right, .. }) => self.trees.extend([&**right, &**left]),
                None if !self.tail.is_empty() => self.chunk = std::mem::take(&mut self.tail).iter(),
                None => {
                    let (slot, rest) = self.room.split_first()?;
                    self.room = rest;
                    self.left -= 1;
                    return slot.get();
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{Label, Num};

    fn number(n: usize) -> Value {
        Value::new(Label::BOTTOM, Kind::Num(Num::from(n as i64)))
    }

    fn numbers(list: &List) -> Vec<i64> {
        let number = |v: &Value| match &v.kind {
            Kind::Num(n) => n.to_i64().expect("small"),
            other => panic!("{other:?}"),
        };
        assert_eq!(list.iter().len(), list.len());
        list.iter().map(number).collect()
    }

    fn height(list: &List) -> u8 {
        list.front.as_ref().map_or(0, |f| f.height())
    }

    #[test]
    fn operations_agree_with_those_of_vectors() {
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 33) as usize) % below
        };
        let mut lists: Vec<(List, Vec<i64>)> = vec![(Vec::new().into(), Vec::new())];
        for step in 0..20_000 {
            let (list, model) = lists[random(lists.len())].clone();
            let (other, its) = lists[random(lists.len())].clone();
            let (list, model) = match random(4) {
                0 => (list.append(number(step)), [&model[..], &[step as i64]].concat()),
                1 if model.len() + its.len() < 2_000 => (list.concat(&other), [model, its].concat()),
                2 => {
                    let (from, to) = (random(model.len() + 2), random(model.len() + 2));
                    let part = model.iter().skip(from).take(to.saturating_sub(from)).copied().collect();
                    (list.slice(from, from.max(to)), part)
                }
                _ => {
                    let count = random(80);
                    let items: Vec<Value> = (0..count).map(number).collect();
                    (items.into(), (0..count as i64).collect())
                }
            };
            assert_eq!(numbers(&list), model);
            for at in [0, model.len() / 2, model.len().saturating_sub(1), model.len()] {
                assert_eq!(list.get(at).is_some(), at < model.len());
            }
            match lists.len() {
                30.. => lists[random(30)] = (list, model),
                _ => lists.push((list, model)),
            }
        }
    }

    #[test]
    fn trees_stay_shallow() {
        let mut list: List = Vec::new().into();
        for n in 0..100_000 {
            list = list.append(number(n));
        }
        assert!(height(&list) <= 18, "{}", height(&list));
        assert_eq!(list.get(77_777).map(|v| v.kind()), Some("a number"));
        let mut reversed: List = Vec::new().into();
        for n in 0..10_000 {
            reversed = List::from(vec![number(n)]).concat(&reversed);
        }
        assert!(height(&reversed) <= 18, "{}", height(&reversed));
        for n in 0..99_990 {
            list = list.slice(1, list.len());
            assert_eq!(list.len(), 99_999 - n);
        }
        assert_eq!(numbers(&list), (99_990..100_000).collect::<Vec<_>>());
    }

    /// Two lists that one was appended to differ, whatever was appended first.
    #[test]
    fn lists_that_were_appended_to_one_share_nothing_behind_it() {
        for length in 0..70 {
            let list = (0..length).fold(List::from(Vec::new()), |list, n| list.append(number(n)));
            let (one, other) = (list.append(number(1_000)), list.append(number(2_000)));
            let (more, last) = (one.append(number(3_000)), other.append(number(4_000)));
            let before: Vec<i64> = (0..length as i64).collect();
            assert_eq!(numbers(&list), before);
            assert_eq!(numbers(&more), [&before[..], &[1_000, 3_000]].concat());
            assert_eq!(numbers(&last), [&before[..], &[2_000, 4_000]].concat());
            assert_eq!(numbers(&other), [&before[..], &[2_000]].concat());
        }
    }

    /// A list that is appended to itself is dropped with its last share.
    #[test]
    fn no_list_holds_itself() {
        let mut lattice = core_ir::Lattice::new(core_ir::LatticeKind::TwoAxis);
        let text: Arc<str> = "kept".into();
        let list = List::from(Vec::new()).append(Value::str(Label::BOTTOM, text.clone()));
        let body = crate::value::Body::List(list.clone());
        let longer = list.append(Value::node(&mut lattice, Label::BOTTOM, body));
        assert_eq!((longer.len(), Arc::strong_count(&text)), (2, 3));
        drop((list, longer));
        assert_eq!(Arc::strong_count(&text), 1);
    }

    /// Each level holds the one below twice, in a chunk of its own.
    #[test]
    fn deeply_nested_lists_are_dropped_without_recursion() {
        let mut lattice = core_ir::Lattice::new(core_ir::LatticeKind::TwoAxis);
        let mut value = number(0);
        for _ in 0..100_000 {
            let long: List = (0..40).map(|_| value.clone()).collect();
            value = Value::node(&mut lattice, Label::BOTTOM, crate::value::Body::List(long.concat(&long)));
        }
        drop(value);
    }
}
