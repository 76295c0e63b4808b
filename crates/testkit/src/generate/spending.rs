//! Programs that do little but call: functions of functions, in records and lists, guarded, in loops with and
//! without a bound, applied to each other. What a bound of calls can be wrong about is who applies what how
//! often, which programs with every former seldom test.
//!
//! Entry point: [`spending`]. Invariant: what it makes is closed and, labels and errors of the world apart,
//! well-typed.

use super::random::{Rng, deeper, program};
use super::{Ast, Op, Program, Style};
use core_ir::{
    Approve, Bound, Comparison, Data, LabelSpec, LatticeKind, Measure, ModelParams, Num, Pred, Prim,
};

/// A program of a seed that spends, with tools and models that nothing hinders: tool 0 takes a number and
/// gives one, model 1 gives a number.
pub fn spending(seed: u64) -> Program {
    let mut program = program(&mut Rng::new(seed), &Style::default());
    program.lattice = LatticeKind::TwoAxis;
    program.clearance = LabelSpec::TOP;
    program.shadowing = false;
    for tool in &mut program.tools {
        (tool.control, tool.label, tool.approve, tool.policy) =
            (LabelSpec::TOP, LabelSpec::BOTTOM, Approve::Never, None);
        tool.params.iter_mut().for_each(|p| p.bound = LabelSpec::TOP);
    }
    let mut rng = Rng::new(seed);
    for model in &mut program.models {
        *model = ModelParams {
            result: model.result.clone(),
            repair: 1 + rng.below(3) as u32,
            ..ModelParams::default()
        };
    }
    let mut making = Making { rng, scope: Vec::new() };
    let size = 6 + making.rng.below(40) as u32;
    let ast = making.term(&Ty::Num, size);
    program.with(ast)
}

/// Type of a generated term: a number, or a structure or function of numbers.
#[derive(Clone, PartialEq)]
enum Ty {
    Num,
    Fun(Box<(Ty, Ty)>),
    Record(Box<Ty>),
    List(Box<Ty>),
    Pair(Box<(Ty, Ty)>),
}

impl Ty {
    /// Returns true if a guard tests a number: what holds functions is no data.
    fn is_tested(&self) -> bool {
        match self {
            Ty::Num => true,
            Ty::Fun(f) => f.1.is_tested(),
            Ty::Record(_) | Ty::List(_) | Ty::Pair(_) => false,
        }
    }
}

struct Making {
    rng: Rng,
    /// The types of the variables in scope, outermost first.
    scope: Vec<Ty>,
}

fn num(n: i64) -> Ast {
    Ast::lit(Data::Num(Num::from(n)))
}

fn fun(a: Ty, b: Ty) -> Ty {
    Ty::Fun(Box::new((a, b)))
}

fn half() -> Num {
    Num::ONE.div(&Num::from(2)).unwrap_or(Num::ONE)
}

impl Making {
    fn any_type(&mut self, depth: u32) -> Ty {
        if depth == 0 {
            return Ty::Num;
        }
        match self.rng.below(9) {
            0..3 => Ty::Num,
            3 | 4 => fun(Ty::Num, Ty::Num),
            5 => fun(self.any_type(depth - 1), self.any_type(depth - 1)),
            6 => Ty::Record(Box::new(self.any_type(depth - 1))),
            7 => Ty::List(Box::new(self.any_type(depth - 1))),
            _ => Ty::Pair(Box::new((self.any_type(depth - 1), self.any_type(depth - 1)))),
        }
    }

    fn predicate(&mut self) -> Pred {
        match self.rng.below(4) {
            0 => Pred::True,
            n => Pred::Compare(Measure::Value, Comparison::Ge, Num::from(n as i64)),
        }
    }

    fn under(&mut self, of: &[&Ty], ty: &Ty, size: u32) -> Ast {
        let before = self.scope.len();
        self.scope.extend(of.iter().map(|t| (*t).clone()));
        let body = self.term(ty, size);
        self.scope.truncate(before);
        body
    }

    /// A variable of the type, the last ones more often than the others.
    fn variable(&mut self, ty: &Ty) -> Option<Ast> {
        let fitting: Vec<u8> =
            (self.scope.iter().rev().zip(0..)).filter_map(|(t, i)| (t == ty).then_some(i)).collect();
        let i = self.rng.below(fitting.len()).min(self.rng.below(fitting.len()));
        fitting.get(i).map(|i| Ast::var(*i))
    }

    /// A variable that holds a function with such results, and what it takes.
    fn applicable(&mut self, ty: &Ty) -> Option<(Ast, Ty)> {
        let fitting: Vec<(u8, Ty)> = (self.scope.iter().rev().zip(0..))
            .filter_map(|(t, i)| match t {
                Ty::Fun(f) if f.1 == *ty => Some((i, f.0.clone())),
                _ => None,
            })
            .collect();
        let (_, (i, of)) = self.rng.pick(&fitting)?;
        Some((Ast::var(*i), of.clone()))
    }

    fn leaf(&mut self, ty: &Ty) -> Ast {
        if let Some(variable) = self.variable(ty)
            && self.rng.chance(80)
        {
            return variable;
        }
        match ty {
            Ty::Num if self.rng.chance(40) => Ast::new(Op::App, [self.asking(), num(2)]),
            Ty::Num => num(1 + self.rng.below(4) as i64),
            Ty::Fun(f) if f.0 == Ty::Num && f.1 == Ty::Num && self.rng.chance(70) => self.asking(),
            Ty::Fun(f) => Ast::new(Op::Lam, [self.under(&[&f.0], &f.1, 0)]),
            Ty::Record(t) => Ast::new(Op::Record(vec![0]), [self.leaf(t)]),
            Ty::List(t) => Ast::new(Op::List, [self.leaf(t)]),
            Ty::Pair(p) => Ast::new(Op::Pair, [self.leaf(&p.0), self.leaf(&p.1)]),
        }
    }

    /// A function that calls: a tool, or a model that gives a number.
    fn asking(&mut self) -> Ast {
        match self.rng.chance(50) {
            true => Ast::new(Op::Tool(0), []),
            false => Ast::new(Op::Llm(1), [Ast::lit(Data::str("p"))]),
        }
    }

    fn term(&mut self, ty: &Ty, size: u32) -> Ast {
        if size == 0 {
            return self.leaf(ty);
        }
        let (one, two) = (size - 1, (size - 1) / 2);
        match self.rng.below(18) {
            0..4 => {
                let of = self.any_type(2);
                let f = self.term(&fun(of.clone(), ty.clone()), two);
                Ast::new(Op::App, [f, self.term(&of, two)])
            }
            16 | 17 => match self.applicable(ty) {
                Some((f, of)) => Ast::new(Op::App, [f, self.term(&of, one)]),
                None => self.made(ty, size),
            },
            4 | 5 => {
                let of = self.any_type(2);
                let made = self.term(&of, two);
                Ast::new(Op::Let, [made, self.under(&[&of], ty, two)])
            }
            6 => Ast::new(Op::Field(0), [self.term(&Ty::Record(Box::new(ty.clone())), one)]),
            7 => Ast::new(Op::Index, [self.term(&Ty::List(Box::new(ty.clone())), one), num(0)]),
            8 => {
                let other = self.any_type(1);
                let pair = self.term(&Ty::Pair(Box::new((ty.clone(), other))), one);
                Ast::new(Op::Fst, [pair])
            }
            9 => Ast::new(Op::Choose(half()), [self.term(ty, two), self.term(ty, two)]),
            10 | 11 if ty.is_tested() => {
                let (p, retry) = (self.predicate(), self.rng.below(3) as u32);
                Ast::new(Op::Guard(p, retry), [self.term(ty, one)])
            }
            _ => self.made(ty, size),
        }
    }

    /// By what makes a value of the type.
    fn made(&mut self, ty: &Ty, size: u32) -> Ast {
        let (one, two) = (size - 1, (size - 1) / 2);
        match ty {
            Ty::Num => match self.rng.below(5) {
                0 | 1 => Ast::new(Op::App, [self.asking(), self.term(&Ty::Num, one)]),
                2 => Ast::new(Op::Prim(Prim::Add), [self.term(ty, two), self.term(ty, two)]),
                3 => {
                    let list = Ty::List(Box::new(Ty::Num));
                    let made = self.term(&list, two);
                    Ast::new(Op::Let, [made, self.under(&[&list], ty, two)])
                }
                _ => self.leaf(ty),
            },
            Ty::Fun(f) => match self.rng.below(10) {
                8 | 9 => self.looped(f, ty, one),
                0..3 => Ast::new(Op::Lam, [self.under(&[&f.0], &f.1, one)]),
                3 | 4 => {
                    let between = self.any_type(1);
                    let first = self.term(&fun(f.0.clone(), between.clone()), two);
                    Ast::new(Op::Compose, [first, self.term(&fun(between, f.1.clone()), two)])
                }
                5 | 6 if f.0 == Ty::Num && f.1 == Ty::Num => self.asking(),
                _ => self.leaf(ty),
            },
            Ty::Record(t) => Ast::new(Op::Record(vec![0]), [self.term(t, one)]),
            Ty::Pair(p) => Ast::new(Op::Pair, [self.term(&p.0, two), self.term(&p.1, two)]),
            Ty::List(t) => match self.rng.below(4) {
                0 => {
                    let from = self.any_type(1);
                    let f = self.term(&fun(from.clone(), (**t).clone()), two);
                    Ast::new(Op::Each(Some(1)), [f, self.term(&Ty::List(Box::new(from)), two)])
                }
                1 => Ast::new(Op::Par(None), [self.term(t, two), self.term(t, two)]),
                _ => Ast::new(Op::List, [self.term(t, two), self.term(t, two)]),
            },
        }
    }

    /// A loop: with a bound if what it gives back when that is reached, its argument, is of the type of its
    /// result; else one that a draw ends.
    fn looped(&mut self, f: &(Ty, Ty), ty: &Ty, size: u32) -> Ast {
        let twice = |body| Ast::new(Op::Lam, [Ast::new(Op::Lam, [body])]);
        if f.0 == f.1 && self.rng.chance(60) {
            let body = self.under(&[ty, &f.0], &f.1, size);
            return Ast::new(Op::Fix(Bound::Finite(self.rng.below(4) as u64)), [twice(body)]);
        }
        let last = deeper(self.leaf(&f.1), 2);
        let more = match self.rng.chance(50) {
            true => self.under(&[ty, &f.0], &f.1, size),
            // Something, and then a further round.
            false => {
                let first = self.under(&[ty, &f.0], &Ty::Num, size / 2);
                let argument = self.under(&[ty, &f.0, &Ty::Num], &f.0, size / 4);
                Ast::new(Op::Let, [first, Ast::new(Op::App, [Ast::var(2), argument])])
            }
        };
        Ast::new(Op::Fix(Bound::Infinite), [twice(Ast::new(Op::Choose(half()), [last, more]))])
    }
}
