//! Origins of labels: for each component of a label, the steps of the run that contributed it.
//!
//! A label that keeps its origin is a label of the lattice with two sets of steps, one for integrity and one
//! for secrecy. A join joins all three, so what carries labels carries origins. A step knows what it depended
//! on itself, which gives the chain.
//!
//! Invariant: a step holds names and places of the program and no data.
//! Invariant: origins do not depend on the order in which answers arrive: sets are ordered by what their
//! steps are.
//! Invariant: a set has at most [`MAX_STEPS`] steps, and there are at most [`MAX_LABELS`] labels and steps;
//! what is left out is known to be.

use super::sets::{Joins, PairHasher, pair};
use super::{Algebra, Axis, Component};
use crate::Name;
use diagnostics::Span;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

/// A map whose keys are few small numbers, none of them chosen by an attacker.
type Table<K> = HashMap<K, u32, BuildHasherDefault<PairHasher>>;

/// The most steps of a set.
const MAX_STEPS: usize = 16;

/// The most labels, and the most steps, that are kept. Labels that are met later have no origin.
const MAX_LABELS: usize = 1 << 20;

/// The most chains that are shown for a component: the shortest.
const MAX_CHAINS: usize = 3;

/// Something in the course of a run that gave data their label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Kind of the step.
    pub what: What,
    /// The term that did it.
    pub span: Span,
    /// If it was a request: which, as strand and number.
    pub request: Option<(u64, u32)>,
    /// If it was a request: where it stands in the run.
    pub place: Option<Arc<[u32]>>,
}

/// The kinds of steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The program states the label.
    Stated,
    /// Something was said in the conversation.
    Sent,
    /// It decided what runs.
    Decided,
    /// A call, a message or a key was refused: that it was says what the bound is about.
    Refused,
    /// A model replied; the empty name is the run's own model.
    Model(Name),
    /// A tool answered.
    Tool(Name),
    /// A key was read.
    Key(Name),
    /// Whoever approved the call wrote an argument.
    Edited,
}

impl What {
    /// The name used in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            What::Stated => "stated",
            What::Sent => "sent",
            What::Decided => "decided",
            What::Refused => "refused",
            What::Model(_) => "model",
            What::Tool(_) => "tool",
            What::Key(_) => "key",
            What::Edited => "edited",
        }
    }

    /// The model, tool or key.
    pub fn name(&self) -> Option<&str> {
        match self {
            What::Model(name) | What::Tool(name) | What::Key(name) => {
                Some(name).filter(|n| !n.is_empty()).map(|n| &**n)
            }
            _ => None,
        }
    }

    /// Describes the step in words.
    pub fn describe(&self) -> String {
        match self {
            What::Stated => "the program states this label".into(),
            What::Sent => "it was sent in the conversation".into(),
            What::Decided => "it decided what runs".into(),
            What::Refused => "something was refused".into(),
            What::Model(name) if name.is_empty() => "the model replied, having read the conversation".into(),
            What::Model(name) => format!("the model `{name}` replied, having read the conversation"),
            What::Tool(name) => format!("the tool `{name}` answered"),
            What::Key(name) => format!("it was read from the key `{name}`"),
            What::Edited => "whoever approved the call wrote it".into(),
        }
    }
}

/// A step of a [`Chain`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Kind of the step.
    pub what: What,
    /// The term that did it.
    pub span: Span,
    /// The request, if it was one.
    pub request: Option<(u64, u32)>,
}

/// Origin of one component of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The component as it is written in labels: `U`, `S`, a source, `readers`.
    pub component: String,
    /// Effect of the component on data, in words: `is untrusted`.
    pub words: String,
    /// The shortest ways to steps that brought it, each from the data back to that step.
    pub ways: Vec<Vec<Hop>>,
    /// True if further chains were left out.
    pub more: bool,
}

/// A set of steps, in their order.
type Set = (Box<[u32]>, bool);

/// A label and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Entry {
    base: u32,
    integrity: u32,
    secrecy: u32,
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, to: &mut H) {
        to.write_u64(u64::from(self.integrity) << 32 | u64::from(self.secrecy));
        to.write_u64(u64::from(self.base));
    }
}

/// A step and what it depended on.
#[derive(Clone, Debug)]
struct Event {
    step: Step,
    before: Entry,
    /// Label that the step added itself.
    own: u32,
    /// Tells steps apart whatever order they were met in.
    digest: u64,
}

/// Identity of a step that is not a request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EventKey {
    what: What,
    span: Span,
    before: Entry,
    own: u32,
}

impl Hash for EventKey {
    /// Steps at one place are of one kind; their names need not be read.
    fn hash<H: Hasher>(&self, to: &mut H) {
        to.write_u64(u64::from(self.span.start));
        self.before.hash(to);
        to.write_u64(u64::from(self.own));
    }
}

/// The labels of a run that keeps origins.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    entries: Vec<Entry>,
    entry_index: Table<Entry>,
    joins: Joins,
    sets: Vec<Set>,
    set_index: HashMap<Set, u32>,
    /// The sets with one step each, by the step.
    singles: Vec<u32>,
    events: Vec<Event>,
    event_index: Table<EventKey>,
    /// Digests of the algebra's labels, by label.
    written: Table<u32>,
}

/// The set without steps.
const NONE: u32 = 0;

/// The set of which nothing is known any more.
const FORGOTTEN: u32 = 1;

impl Default for Origins {
    fn default() -> Origins {
        let bottom = Entry::default();
        Origins {
            entries: vec![bottom],
            entry_index: Table::from_iter([(bottom, 0)]),
            joins: HashMap::default(),
            sets: vec![(Box::default(), false), (Box::default(), true)],
            set_index: HashMap::from([((Box::default(), false), NONE), ((Box::default(), true), FORGOTTEN)]),
            singles: Vec::new(),
            events: Vec::new(),
            event_index: Table::default(),
            written: Table::default(),
        }
    }
}

impl Origins {
    // INVARIANT: labels that are given in were made by `intern`; a foreign one reads as ⊤, the safe side.
    fn entry(&self, label: u32) -> Entry {
        self.entries.get(label as usize).copied().unwrap_or(Entry {
            base: u32::MAX,
            integrity: FORGOTTEN,
            secrecy: FORGOTTEN,
        })
    }

    pub(super) fn base(&self, label: u32) -> u32 {
        self.entry(label).base
    }

    /// A label of which no origin is known.
    pub(super) fn unmarked(&mut self, base: u32) -> u32 {
        self.intern(Entry { base, ..Entry::default() })
    }

    fn intern(&mut self, mut entry: Entry) -> u32 {
        if let Some(i) = self.entry_index.get(&entry) {
            return *i;
        }
        if self.entries.len() >= MAX_LABELS && (entry.integrity, entry.secrecy) != (FORGOTTEN, FORGOTTEN) {
            (entry.integrity, entry.secrecy) = (FORGOTTEN, FORGOTTEN);
            return self.intern(entry);
        }
        let i = self.entries.len() as u32;
        self.entries.push(entry);
        self.entry_index.insert(entry, i);
        i
    }

    pub(super) fn join(&mut self, algebra: &mut Algebra, a: u32, b: u32) -> u32 {
        if let Some(c) = self.joins.get(&pair(a, b)) {
            return *c;
        }
        let (p, q) = (self.entry(a), self.entry(b));
        let joined = Entry {
            base: algebra.join(p.base, q.base),
            integrity: self.union(p.integrity, q.integrity),
            secrecy: self.union(p.secrecy, q.secrecy),
        };
        let c = self.intern(joined);
        if self.joins.len() < MAX_LABELS {
            self.joins.insert(pair(a, b), c);
        }
        c
    }

    pub(super) fn reclassify(&mut self, base: u32, integrity: u32, secrecy: u32) -> u32 {
        let (integrity, secrecy) = (self.entry(integrity).integrity, self.entry(secrecy).secrecy);
        if base == 0 { 0 } else { self.intern(Entry { base, integrity, secrecy }) }
    }

    fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == NONE {
            return a;
        }
        if a == NONE {
            return b;
        }
        let ((x, more), (y, also)) = (&self.sets[a as usize], &self.sets[b as usize]);
        let mut all: Vec<u32> = x.iter().chain(y.iter()).copied().collect();
        let mut more = *more || *also;
        all.sort_by(|a, b| self.order(*a).cmp(&self.order(*b)));
        all.dedup();
        more |= all.len() > MAX_STEPS;
        all.truncate(MAX_STEPS);
        self.intern_set((all.into(), more))
    }

    /// The place of a step in sets.
    fn order(&self, event: u32) -> (Option<&[u32]>, Span, u64) {
        let e = &self.events[event as usize];
        (e.step.place.as_deref(), e.step.span, e.digest)
    }

    fn intern_set(&mut self, set: Set) -> u32 {
        if let Some(i) = self.set_index.get(&set) {
            return *i;
        }
        let i = self.push_set(set.clone());
        if i != FORGOTTEN {
            self.set_index.insert(set, i);
        }
        i
    }

    /// A set that was not met before.
    fn push_set(&mut self, set: Set) -> u32 {
        if self.sets.len() >= MAX_LABELS {
            return FORGOTTEN;
        }
        self.sets.push(set);
        self.sets.len() as u32 - 1
    }

    /// See [`super::Lattice::mark`].
    pub(super) fn mark(
        &mut self,
        algebra: &mut Algebra,
        label: u32,
        before: u32,
        own: u32,
        step: Step,
    ) -> u32 {
        let base = self.base(label);
        if base == 0 {
            return 0;
        }
        let (before, own) = (self.entry(before), self.base(own));
        // A request is answered once, so its step is not looked for.
        let key = step.request.is_none().then(|| EventKey {
            what: step.what.clone(),
            span: step.span,
            before,
            own,
        });
        let event = match key.as_ref().and_then(|key| self.event_index.get(key)) {
            Some(event) => *event,
            None if self.events.len() >= MAX_LABELS => return label,
            None => {
                let digest = self.digest(algebra, &step, before, own);
                let event = self.events.len() as u32;
                self.events.push(Event { step, before, own, digest });
                if let Some(key) = key {
                    self.event_index.insert(key, event);
                }
                // No join gives a set of one step, so it is not looked for again.
                let single = self.push_set((Box::new([event]), false));
                self.singles.push(single);
                event
            }
        };
        // INVARIANT: each event has its set.
        let set = self.singles.get(event as usize).copied().unwrap_or(FORGOTTEN);
        let on = |axis| {
            algebra.reclassify(
                if axis == Axis::Integrity { base } else { 0 },
                if axis == Axis::Secrecy { base } else { 0 },
            )
        };
        let [integrity, secrecy] =
            [Axis::Integrity, Axis::Secrecy].map(on).map(|part| if part == 0 { NONE } else { set });
        self.intern(Entry { base, integrity, secrecy })
    }

    /// Over what does not depend on the order in which anything was met, as numbers of interned labels do.
    fn digest(&mut self, algebra: &Algebra, step: &Step, before: Entry, own: u32) -> u64 {
        let own = *self.written.entry(own).or_insert_with(|| {
            let hash = fnv(FNV, algebra.write(own).to_json().to_string().as_bytes());
            (hash ^ hash >> 32) as u32
        });
        let mut hash = FNV;
        let mut add = |bytes: &[u8]| hash = fnv(hash, bytes);
        add(step.what.kind().as_bytes());
        add(step.what.name().unwrap_or_default().as_bytes());
        let (strand, number) = step.request.unwrap_or_default();
        add(&strand.to_le_bytes());
        add(&number.to_le_bytes());
        add(&own.to_le_bytes());
        for set in [before.integrity, before.secrecy] {
            for event in self.sets[set as usize].0.iter() {
                add(&self.events[*event as usize].digest.to_le_bytes());
            }
            add(b"|");
        }
        hash
    }

    /// See [`super::Lattice::why`].
    pub(super) fn why(&self, algebra: &Algebra, label: u32) -> Vec<Chain> {
        let entry = self.entry(label);
        algebra.components(entry.base).iter().map(|c| self.chain(algebra, entry, c)).collect()
    }

    fn set(&self, entry: Entry, axis: Axis) -> &Set {
        let set = if axis == Axis::Integrity { entry.integrity } else { entry.secrecy };
        &self.sets[set as usize]
    }

    fn chain(&self, algebra: &Algebra, entry: Entry, component: &Component) -> Chain {
        let has = |base: u32| {
            algebra.components(base).iter().any(|c| (c.axis, &c.name) == (component.axis, &component.name))
        };
        let mut chain = Chain {
            component: component.name.clone(),
            words: component.words.clone(),
            ways: Vec::new(),
            more: false,
        };
        // Breadth first, so that the shortest ways are found first; `from` is the step it was reached from.
        let mut from: HashMap<u32, Option<u32>> = HashMap::new();
        let mut queue = VecDeque::new();
        let (first, more) = self.set(entry, component.axis);
        chain.more |= more;
        for event in first {
            from.insert(*event, None);
            queue.push_back(*event);
        }
        while let Some(at) = queue.pop_front() {
            let event = &self.events[at as usize];
            let own = has(event.own);
            let before = has(event.before.base);
            if !own && !before {
                continue;
            }
            let (earlier, more) = self.set(event.before, component.axis);
            if own || earlier.is_empty() {
                if chain.ways.len() == MAX_CHAINS {
                    chain.more = true;
                    break;
                }
                let way = std::iter::successors(Some(at), |at| from.get(at).copied().flatten());
                let mut way: Vec<Hop> = way
                    .map(|e| &self.events[e as usize].step)
                    .map(|s| Hop { what: s.what.clone(), span: s.span, request: s.request })
                    .collect();
                way.reverse();
                chain.ways.push(way);
            }
            chain.more |= more;
            if before {
                for event in earlier {
                    from.entry(*event).or_insert_with(|| {
                        queue.push_back(*event);
                        Some(at)
                    });
                }
            }
        }
        chain
    }
}

/// Offset basis of FNV-1a.
const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}
