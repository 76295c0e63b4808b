//! Effect sets as a graph: a node is the effects of some piece of code, an edge says that one contains
//! another.
//!
//! Invariant: the sets are computed once, when all edges are known; a node that a declaration closes never
//! grows, what would flow into it is checked against it instead.

use super::Why;
use core_ir::{Effect, EffectRow, Name};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EffectNode(pub(super) u32);

/// One thing that code may do. Reading and writing a key are told apart, for `par`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Llm(Name),
    Tool(Name),
    Read(Name, Name),
    Write(Name, Name),
    Sample,
    Conversation,
}

#[derive(Default)]
struct Node {
    atoms: Vec<u32>,
    any: bool,
    /// Effects that it contains; `true` if without the conversation (`fresh`).
    subs: Vec<(EffectNode, bool)>,
    /// Nodes gathered for copies, which copies of the copies must not have.
    gathered: Vec<EffectNode>,
    closed: bool,
}

/// The graph.
#[derive(Default)]
pub(super) struct Effects {
    nodes: Vec<Node>,
    atoms: Vec<Atom>,
    numbers: HashMap<Atom, u32>,
    /// Inclusions to check: the effects, the declaration that must contain them, the place.
    pub(super) bounds: Vec<(EffectNode, EffectNode, Why)>,
}

/// A set of atoms, or everything.
#[derive(Clone, Default)]
pub(super) struct Set {
    pub(super) any: bool,
    words: Vec<u64>,
}

impl Set {
    fn insert(&mut self, n: u32) {
        let word = n as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (n % 64);
    }

    /// Adds the other set, without one atom; whether that changed anything.
    fn add(&mut self, other: &Set, without: Option<u32>) -> bool {
        let mut changed = other.any && !self.any;
        self.any |= other.any;
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (i, word) in other.words.iter().enumerate() {
            let mut word = *word;
            if let Some(n) = without
                && n as usize / 64 == i
            {
                word &= !(1 << (n % 64));
            }
            changed |= word & !self.words[i] != 0;
            self.words[i] |= word;
        }
        changed
    }

    fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(i, word)| (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| i as u32 * 64 + b))
    }

    fn within(&self, other: &Set) -> bool {
        other.any
            || !self.any
                && self
                    .words
                    .iter()
                    .enumerate()
                    .all(|(i, w)| w & !other.words.get(i).copied().unwrap_or(0) == 0)
    }
}

/// More words than this for all sets together are not computed; effects are then unknown.
const MAX_WORDS: usize = 1 << 22;

impl Effects {
    /// No effect so far.
    pub(super) fn node(&mut self) -> EffectNode {
        self.nodes.push(Node::default());
        EffectNode(self.nodes.len() as u32 - 1)
    }

    /// Returns the number of nodes.
    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn number(&mut self, atom: Atom) -> u32 {
        let next = self.atoms.len() as u32;
        let n = *self.numbers.entry(atom.clone()).or_insert(next);
        if n == next {
            self.atoms.push(atom);
        }
        n
    }

    /// The code may do this.
    pub(super) fn does(&mut self, at: EffectNode, atom: Atom) {
        let n = self.number(atom);
        self.nodes[at.0 as usize].atoms.push(n);
    }

    /// The code may do anything.
    pub(super) fn does_anything(&mut self, at: EffectNode) {
        self.nodes[at.0 as usize].any = true;
    }

    /// `big` contains `small`.
    pub(super) fn contains(&mut self, big: EffectNode, small: EffectNode, why: Why) {
        if big == small {
            return;
        }
        if self.nodes[big.0 as usize].closed {
            self.bounds.push((small, big, why));
        } else {
            self.nodes[big.0 as usize].subs.push((small, false));
        }
    }

    /// `big` contains `small` without the conversation.
    pub(super) fn contains_fresh(&mut self, big: EffectNode, small: EffectNode) {
        self.nodes[big.0 as usize].subs.push((small, true));
    }

    /// A declared bound. `EffectRow::Any` bounds nothing.
    pub(super) fn declared(&mut self, row: &EffectRow) -> EffectNode {
        let at = self.node();
        match row {
            EffectRow::Any => self.does_anything(at),
            EffectRow::Only(set) => {
                for effect in set {
                    // A declaration of a key allows both, whatever store it is of.
                    match effect {
                        Effect::Llm(m) => self.does(at, Atom::Llm(m.clone())),
                        Effect::Tool(t) => self.does(at, Atom::Tool(t.clone())),
                        Effect::State(k) => {
                            self.does(at, Atom::Read("".into(), k.clone()));
                            self.does(at, Atom::Write("".into(), k.clone()));
                        }
                        Effect::Sample => self.does(at, Atom::Sample),
                        Effect::Conversation => self.does(at, Atom::Conversation),
                    }
                }
                self.nodes[at.0 as usize].closed = true;
            }
        }
        at
    }

    /// Makes the copy of a node for one use of a polymorphic function. `copies` are the nodes that types of
    /// the function name, with their copies. Only those can contain more later, so what lies between them
    /// becomes part of the copies: a function that uses another one is not longer by what that one uses.
    /// Nodes before
    /// `from` are shared. False if the fuel does not suffice; each node that is looked at takes one.
    pub(super) fn copy(
        &mut self,
        original: EffectNode,
        from: u32,
        copies: &HashMap<EffectNode, EffectNode>,
        fuel: &mut u64,
    ) -> bool {
        let Some(copy) = copies.get(&original).copied() else { return true };
        let conversation = self.numbers.get(&Atom::Conversation).copied();
        let mut seen = HashSet::from([(original, false)]);
        let mut todo = vec![(original, false)];
        let (mut atoms, mut any, mut subs) = (BTreeSet::new(), false, Vec::new());
        while let Some((at, is_fresh)) = todo.pop() {
            if *fuel == 0 {
                return false;
            }
            *fuel -= 1;
            let node = &self.nodes[at.0 as usize];
            any |= node.any;
            atoms.extend(node.atoms.iter().filter(|n| !is_fresh || Some(**n) != conversation));
            for (sub, without) in &node.subs {
                let is_fresh = is_fresh || *without;
                // Without the conversation it is less than with it.
                if seen.contains(&(*sub, false)) || !seen.insert((*sub, is_fresh)) {
                    continue;
                }
                let is_shared = sub.0 < from || self.is_closed(*sub);
                match copies.get(sub).copied().or(is_shared.then_some(*sub)) {
                    Some(known) => subs.push((known, is_fresh)),
                    None => todo.push((*sub, is_fresh)),
                }
            }
        }
        let node = &mut self.nodes[copy.0 as usize];
        (node.atoms, node.any, node.subs) = (atoms.into_iter().collect(), any, subs);
        self.nodes[original.0 as usize].gathered.push(copy);
        true
    }

    /// Returns true if a node is a declaration, which all copies share.
    pub(super) fn is_closed(&self, at: EffectNode) -> bool {
        self.nodes[at.0 as usize].closed
    }

    /// The sets of all nodes; `None` if there are too many to be computed.
    pub(super) fn solve(&self) -> Option<Vec<Set>> {
        if self.atoms.len() / 64 * self.nodes.len() > MAX_WORDS {
            return None;
        }
        let conversation = self.numbers.get(&Atom::Conversation).copied();
        let mut sets = vec![Set::default(); self.nodes.len()];
        let mut users: Vec<Vec<(u32, bool)>> = vec![Vec::new(); self.nodes.len()];
        let mut work = VecDeque::new();
        for (i, node) in self.nodes.iter().enumerate() {
            for atom in &node.atoms {
                sets[i].insert(*atom);
            }
            sets[i].any = node.any;
            for (sub, fresh) in &node.subs {
                users[sub.0 as usize].push((i as u32, *fresh));
            }
            for sub in &node.gathered {
                users[sub.0 as usize].push((i as u32, false));
            }
            if node.any || !node.atoms.is_empty() {
                work.push_back(i as u32);
            }
        }
        while let Some(i) = work.pop_front() {
            let set = sets[i as usize].clone();
            for (user, fresh) in &users[i as usize] {
                let without = if *fresh { conversation } else { None };
                if sets[*user as usize].add(&set, without) {
                    work.push_back(*user);
                }
            }
        }
        Some(sets)
    }

    /// Returns the effect row of a set.
    pub(super) fn row(&self, set: &Set) -> EffectRow {
        if set.any {
            return EffectRow::Any;
        }
        EffectRow::Only(set.numbers().map(|n| effect(&self.atoms[n as usize])).collect::<BTreeSet<_>>())
    }

    /// Returns true if a declaration, which names keys without their stores, allows a set.
    pub(super) fn allowed(&self, set: &Set, declared: &Set) -> bool {
        set.within(declared) || self.row(set).within(&self.row(declared))
    }

    /// A key that one of the branches writes and another reads or writes: its name and the two branches.
    pub(super) fn conflict(&self, branches: &[&Set]) -> Option<(Name, usize, usize)> {
        // Who wrote and who read each key, the first two of each.
        type KeyConflict = (Vec<usize>, Vec<usize>);
        let mut seen: HashMap<(&Name, &Name), KeyConflict> = HashMap::new();
        for (i, set) in branches.iter().enumerate() {
            for n in set.numbers() {
                let (store, key, writes) = match &self.atoms[n as usize] {
                    Atom::Read(s, k) => (s, k, false),
                    Atom::Write(s, k) => (s, k, true),
                    _ => continue,
                };
                let (written, read) = seen.entry((store, key)).or_default();
                let other = written.iter().chain(if writes { &**read } else { &[] }).find(|j| **j != i);
                if let Some(j) = other {
                    return Some((key.clone(), *j, i));
                }
                let list = if writes { written } else { read };
                if list.len() < 2 && !list.contains(&i) {
                    list.push(i);
                }
            }
        }
        None
    }
}

fn effect(atom: &Atom) -> Effect {
    match atom {
        Atom::Llm(m) => Effect::Llm(m.clone()),
        Atom::Tool(t) => Effect::Tool(t.clone()),
        Atom::Read(_, k) | Atom::Write(_, k) => Effect::State(k.clone()),
        Atom::Sample => Effect::Sample,
        Atom::Conversation => Effect::Conversation,
    }
}
