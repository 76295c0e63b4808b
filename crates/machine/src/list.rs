//! Persistent lists of values.
//!
//! Entry point: [`List`]. Appending takes constant time, amortized. Concatenation, indexing and slicing take
//! logarithmic time. Lists that have items in common share them.
//!
//! Invariant: a list never changes.
//! Invariant: dropping a list recurses no deeper than its tree is high; [`List::dismantle`] moves out what
//! has to be dropped without recursion.

use crate::value::Value;
use std::sync::Arc;

/// The maximum length of a chunk that is copied instead of shared.
const CHUNK: usize = 32;

/// Items that stand side by side: a part of a shared slice.
#[derive(Clone, Debug)]
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
    /// The items behind the front: all of most lists, and the last few of those that were appended to.
    tail: Chunk,
}

impl List {
    pub(crate) fn len(&self) -> usize {
        self.front.as_ref().map_or(0, |f| f.len()) + self.tail.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Value> {
        match &self.front {
            None => self.tail.as_slice().get(index),
            Some(front) => match index.checked_sub(front.len()) {
                None => front.get(index),
                Some(rest) => self.tail.as_slice().get(rest),
            },
        }
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        let mut iter =
            Iter { left: self.len(), trees: Vec::new(), chunk: [].iter(), tail: self.tail.as_slice() };
        match &self.front {
            None => iter.chunk = std::mem::take(&mut iter.tail).iter(),
            Some(front) => iter.trees.push(front),
        }
        iter
    }

    /// The tail as a tree in front of what follows.
    fn whole(&self) -> Option<Arc<Tree>> {
        let tail = (self.tail.len() > 0).then(|| Tree::leaf(self.tail.clone()));
        match (&self.front, tail) {
            (Some(front), Some(tail)) => Some(Tree::join(front, &tail)),
            (front, tail) => tail.or_else(|| front.clone()),
        }
    }

    /// The list with one more item at its end.
    pub(crate) fn append(&self, item: Value) -> List {
        self.with_items(std::slice::from_ref(&item))
            .unwrap_or_else(|| List { front: self.whole(), tail: Chunk::new(Arc::new([item])) })
    }

    /// The list with these items at its end, if they fit into its tail.
    fn with_items(&self, items: &[Value]) -> Option<List> {
        (self.tail.len() + items.len() <= CHUNK)
            .then(|| List { front: self.front.clone(), tail: self.tail.concat(items) })
    }

    pub(crate) fn concat(&self, other: &List) -> List {
        if other.front.is_none()
            && let Some(both) = self.with_items(other.tail.as_slice())
        {
            return both;
        }
        let front = match (self.whole(), &other.front) {
            (Some(left), Some(right)) => Some(Tree::join(&left, right)),
            (left, right) => left.or_else(|| right.clone()),
        };
        List { front, tail: other.tail.clone() }
    }

    /// The items from an index up to but not including another. Indices beyond the end count as the end.
    pub(crate) fn slice(&self, from: usize, to: usize) -> List {
        let to = to.min(self.len());
        let from = from.min(to);
        let middle = self.front.as_ref().map_or(0, |f| f.len());
        let front = match &self.front {
            Some(front) if from < to.min(middle) => Some(Tree::range(front, from, to.min(middle))),
            _ => None,
        };
        List { front, tail: self.tail.range(from.max(middle) - middle, to.max(middle) - middle) }
    }

    /// Moves all that the list holds to `pieces`, and leaves it empty.
    pub(crate) fn dismantle(&mut self, pieces: &mut Vec<Piece>) {
        // Moved out, so that a piece that stands here twice is given up with the second share of it.
        pieces.extend(self.front.take().map(|t| Piece(PieceKind::Tree(t))));
        let tail = std::mem::replace(&mut self.tail.items, Arc::new([]));
        (self.tail.start, self.tail.end) = (0, 0);
        pieces.push(Piece(PieceKind::Items(tail)));
    }

    /// Returns whether dropping the list may drop a value that is `nested`. Looks at the items of short lists
    /// alone.
    pub(crate) fn may_drop(&self, nested: impl Fn(&Value) -> bool) -> bool {
        self.front.is_some() || self.tail.items.len() > CHUNK || self.tail.items.iter().any(nested)
    }
}

/// A part of a list that is given up.
pub(crate) struct Piece(PieceKind);

enum PieceKind {
    Tree(Arc<Tree>),
    Items(Arc<[Value]>),
}

impl Piece {
    /// Takes the piece apart, if nobody else holds it: `take` is given each of its items.
    pub(crate) fn dismantle(self, pieces: &mut Vec<Piece>, take: impl FnMut(&mut Value)) {
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
        }
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> List {
        List { front: None, tail: Chunk::new(items.into()) }
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> List {
        List { front: None, tail: Chunk::new(items.into_iter().collect()) }
    }
}

/// The items of a list in order.
pub(crate) struct Iter<'a> {
    left: usize,
    /// The trees behind the chunk, the next one last.
    trees: Vec<&'a Tree>,
    chunk: std::slice::Iter<'a, Value>,
    tail: &'a [Value],
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
                None if self.tail.is_empty() => return None,
                None => self.chunk = std::mem::take(&mut self.tail).iter(),
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
    use crate::value::Kind;
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
