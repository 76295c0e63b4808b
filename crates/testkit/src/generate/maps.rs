//! Maps and values of recursive types in generated programs: records that are read by keys which the run
//! computes, and data that is checked against `Map τ τ'` and `rec`.
//!
//! Entry point: [`in_maps`]. Invariant: what replaces a number gives one, or ends the run.

use super::random::{Rng, Style, decision, deeper, label, rewritten};
use super::{Ast, Op};
use core_ir::{Catches, Data, LatticeKind, Name, Num, Prim, RecType, Type};
use std::sync::Arc;

/// Names of fields, of which a map has some.
const KEYS: [&str; 4] = ["a", "b", "c", "z"];

/// The type of a map of numbers.
pub(super) fn map_type() -> Type {
    Type::map(Type::Str, Type::Num)
}

/// The type of a tree of numbers.
pub(super) fn tree_type() -> Type {
    let more = Type::list(Type::Var("Tree".into()));
    let body = Type::record([("a".into(), Type::Num), ("b".into(), more)]);
    let tree = RecType::new("Tree".into(), Arc::new([(Name::from("Tree"), body)]));
    tree.map_or(Type::Dyn, |tree| Type::Rec(tree.into()))
}

/// The tree with some numbers read from maps, and from values of a recursive type.
pub(super) fn in_maps(ast: Ast, rng: &mut Rng, lattice: LatticeKind, style: &Style, inner: u8) -> Ast {
    let Ast { op, kids } = ast;
    let kids = rewritten(&op, kids, inner, |kid, inner| in_maps(kid, rng, lattice, style, inner));
    match op {
        Op::Lit(Data::Num(_)) if rng.chance(40) => {
            let mut making = Making { rng, lattice, style, inner };
            making.read(Ast::new(op, []))
        }
        op => Ast { op, kids },
    }
}

struct Making<'a> {
    rng: &'a mut Rng,
    lattice: LatticeKind,
    style: &'a Style,
    /// Number of binders around what is made.
    inner: u8,
}

fn node<const N: usize>(op: Op, kids: [Ast; N]) -> Ast {
    Ast::new(op, kids)
}

fn py<const N: usize>(operation: &str, args: [Ast; N]) -> Ast {
    Ast::new(Op::Prim(Prim::Py), [Ast::lit(operation)].into_iter().chain(args))
}

fn number(n: i64) -> Ast {
    Ast::lit(Data::Num(Num::from(n)))
}

impl Making<'_> {
    /// The same with a label, now and then.
    fn labeled(&mut self, e: Ast, percent: u64) -> Ast {
        match self.rng.chance(percent) {
            true => node(Op::Relabel, [Ast::lit(label(self.rng, self.lattice)), e]),
            false => e,
        }
    }

    /// One of two, decided by a secret, if programs of this style have one.
    fn either(&mut self, one: Ast, other: impl FnOnce(&mut Self) -> Ast) -> Ast {
        match decision(self.rng, self.style, self.inner) {
            Some(test) => node(Op::If, [test, one, other(self)]),
            None => one,
        }
    }

    fn key(&mut self) -> Ast {
        let one = Ast::lit(Data::str(KEYS[self.rng.below(KEYS.len())]));
        let key = self.either(one, |this| Ast::lit(Data::str(KEYS[this.rng.below(KEYS.len())])));
        self.labeled(key, 25)
    }

    /// A record with some keys, of which a number is one.
    fn record(&mut self, known: &Ast) -> Ast {
        let n = 1 + self.rng.below(3) as u8;
        let first = self.rng.below(3) as u8;
        let names: Vec<u8> = (0..n).map(|i| (first + i) % 4).collect();
        let parts: Vec<Ast> = (0..n)
            .map(|_| {
                let part = if self.rng.chance(50) { known.clone() } else { number(self.rng.below(5) as i64) };
                self.labeled(part, 30)
            })
            .collect();
        Ast::new(Op::Record(names), parts)
    }

    /// A map, whose keys may depend on a secret.
    fn map(&mut self, known: &Ast) -> Ast {
        let one = self.record(known);
        let map = self.either(one, |this| this.record(known));
        let map = match self.rng.below(8) {
            0 => node(Op::With(self.rng.below(4) as u8), [map, known.clone()]),
            1 => {
                let key = self.key();
                let value = self.labeled(known.clone(), 30);
                py("agent.set", [map, key, value])
            }
            2 => {
                let key = self.key();
                py("agent.remove", [map, key])
            }
            3 => {
                let other = self.record(known);
                py("agent.merge", [map, other])
            }
            _ => map,
        };
        let map = self.labeled(map, 25);
        // Of a record it is known which keys it lacks.
        if self.style.typed || self.rng.chance(40) { node(Op::Check(map_type()), [map]) } else { map }
    }

    /// A number that is read from a map or from a tree.
    fn read(&mut self, known: Ast) -> Ast {
        let m = || Ast::var(0);
        match self.rng.below(10) {
            // Below the variable of the map.
            0..4 => {
                let map = self.map(&known);
                let key = deeper(self.key(), 1);
                let has = node(Op::Prim(Prim::Has), [m(), key.clone()]);
                let found = node(Op::Index, [m(), key]);
                node(Op::Let, [map, node(Op::If, [has, found, deeper(known, 1)])])
            }
            // The key may be missing.
            4 => {
                let map = self.map(&known);
                let key = self.key();
                let top = Ast::lit(label(self.rng, self.lattice));
                let found = node(Op::Index, [map, key]);
                node(Op::Try(Catches::All), [top, found, number(3)])
            }
            5 => node(Op::Prim(Prim::Length), [self.map(&known)]),
            6 => {
                let map = self.map(&known);
                let keys = node(Op::Prim(Prim::Keys), [map]);
                node(Op::Prim(Prim::Length), [keys])
            }
            // All values, each read by its key; there is one at least, unless it was removed.
            7 => {
                let map = self.map(&known);
                let read = node(Op::Lam, [node(Op::Index, [Ast::var(1), Ast::var(0)])]);
                let keys = node(Op::Prim(Prim::Keys), [m()]);
                let values = node(Op::Each(Some(1)), [read, keys]);
                let some = match self.rng.chance(50) {
                    true => node(Op::Index, [values, number(0)]),
                    false => py("agent.sum", [values]),
                };
                node(Op::Let, [map, some])
            }
            // Two maps are equal or not.
            8 => {
                let (one, other) = (self.map(&known), self.map(&known));
                let equal = node(Op::Prim(Prim::Eq), [one, other]);
                node(Op::If, [equal, known, number(1)])
            }
            _ => {
                let tree = self.tree(&known, 2);
                let tree = self.labeled(tree, 25);
                let checked = node(Op::Check(tree_type()), [tree]);
                let more = node(Op::Field(1), [m()]);
                let some = match self.rng.below(3) {
                    0 => node(Op::Field(0), [m()]),
                    1 => node(Op::Prim(Prim::Length), [more]),
                    _ => {
                        let each =
                            node(Op::Each(Some(1)), [node(Op::Lam, [node(Op::Field(0), [m()])]), more]);
                        py("agent.sum", [each])
                    }
                };
                node(Op::Let, [checked, some])
            }
        }
    }

    /// A value of [`tree_type`], or nearly one.
    fn tree(&mut self, known: &Ast, depth: u32) -> Ast {
        let own = if self.rng.chance(95) { known.clone() } else { Ast::lit("no number") };
        let own = self.labeled(own, 20);
        let n = if depth == 0 { 0 } else { self.rng.below(3) };
        let kids: Vec<Ast> = (0..n).map(|_| self.tree(known, depth - 1)).collect();
        let one = Ast::new(Op::List, kids);
        let more = self.either(one, |_| Ast::new(Op::List, []));
        node(Op::Record(vec![0, 1]), [own, more])
    }
}
