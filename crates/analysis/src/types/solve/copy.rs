//! Copies of types, for functions that are used at several.

use super::*;

impl Solver {
    /// A copy of everything reachable that was made since the node `from` (and the effect `from_effect`).
    pub(in crate::types) fn instantiate(&mut self, root: T, from: u32, from_effect: u32) -> Option<T> {
        let mut copies: HashMap<T, T> = HashMap::new();
        let mut effects: HashMap<EffectNode, EffectNode> = HashMap::new();
        let mut todo: Vec<(T, T)> = Vec::new();
        let copied = self.copy_of(root, from, &mut copies, &mut todo);
        while let Some((old, new)) = todo.pop() {
            if self.fuel == 0 {
                return None;
            }
            self.fuel -= 1;
            let mut go = |s: &mut Solver, t: T| s.copy_of(t, from, &mut copies, &mut todo);
            let node = match self.node(old).clone() {
                Node::List(t) => Node::List(go(self, t)),
                Node::Option(t) => Node::Option(go(self, t)),
                Node::Tuple(ts) => Node::Tuple(ts.iter().map(|t| go(self, *t)).collect()),
                Node::Pair(a, b) => Node::Pair(go(self, a), go(self, b)),
                Node::Record { fields, exact } => {
                    let fields = fields.iter().map(|f| Field { ty: go(self, f.ty), ..f.clone() }).collect();
                    Node::Record { fields, exact }
                }
                Node::Args { tool, fields } => {
                    let fields = fields.iter().map(|f| Field { ty: go(self, f.ty), ..f.clone() }).collect();
                    Node::Args { tool, fields }
                }
                Node::Variant(tags) => {
                    Node::Variant(tags.iter().map(|(n, t)| (n.clone(), go(self, *t))).collect())
                }
                Node::Fun(a, e, b) => {
                    let (a, b) = (go(self, a), go(self, b));
                    let e = copy_effect(&mut self.effects, e, from_effect, &mut effects);
                    Node::Fun(a, e, b)
                }
                Node::Refined(t, p) => Node::Refined(go(self, t), p),
                Node::Use(how) => Node::Use(Rc::new(how.map(&mut |t| go(self, t)))),
                node => node,
            };
            self.nodes[new.0 as usize] = node;
            if let Some(bounds) = self.bounds.get(&old) {
                let (lower, upper) = (bounds.lower.clone(), bounds.upper.clone());
                let mut go = |(t, why): (T, Why)| (self.copy_of(t, from, &mut copies, &mut todo), why);
                let bounds = Bounds {
                    lower: lower.into_iter().map(&mut go).collect(),
                    upper: upper.into_iter().map(&mut go).collect(),
                };
                self.bounds.insert(new, bounds);
            }
        }
        // All nodes that the types name are known now. In their order, so that a run is like another one.
        let mut originals: Vec<EffectNode> = effects.keys().copied().collect();
        originals.sort_unstable_by_key(|e| e.0);
        let is_done = |e| self.effects.copy(e, from_effect, &effects, &mut self.fuel);
        originals.into_iter().all(is_done).then_some(copied)
    }

    fn copy_of(&mut self, t: T, from: u32, copies: &mut HashMap<T, T>, todo: &mut Vec<(T, T)>) -> T {
        if t.0 < from {
            return t;
        }
        if let Some(copy) = copies.get(&t) {
            return *copy;
        }
        // Scalars are shared.
        if matches!(self.node(t), Node::Lit(_) | Node::Enum(_)) {
            return t;
        }
        let copy = self.var();
        copies.insert(t, copy);
        todo.push((t, copy));
        copy
    }
}

/// The copy of an effect that a type names, without its content.
fn copy_effect(
    graph: &mut Effects,
    e: EffectNode,
    from: u32,
    copies: &mut HashMap<EffectNode, EffectNode>,
) -> EffectNode {
    if e.0 < from || graph.is_closed(e) {
        return e;
    }
    *copies.entry(e).or_insert_with(|| graph.node())
}
