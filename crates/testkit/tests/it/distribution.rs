//! Exact distributions: against a direct definition, and the laws of the distribution monad (seed 000,
//! probabilistic choice; `docs/calculus.md` §4) on generated programs.

use core_ir::{Builder, Data, Globals, Num, Prim, Term, TermId};
use diagnostics::{FileId, Span};
use machine::explore::{Exploration, Limits, explore, sample};
use machine::{Call, Config, Machine};
use proptest::prelude::*;
use std::collections::BTreeMap;

const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

/// A small probabilistic program over numbers, with one variable.
#[derive(Clone, Debug)]
enum Program {
    X,
    Number(i64),
    Plus(Box<Program>, Box<Program>),
    /// The first with this number of twelfths.
    Choose(u8, Box<Program>, Box<Program>),
    IfZero(Box<Program>, Box<Program>, Box<Program>),
    Bind(Box<Program>, Box<Program>),
    Fail,
}
use Program::*;

fn programs() -> impl Strategy<Value = Program> {
    let leaf = prop_oneof![5 => Just(X), 5 => (-2i64..3).prop_map(Number), 1 => Just(Fail)];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let p = || inner.clone().prop_map(Box::new);
        prop_oneof![
            (p(), p()).prop_map(|(a, b)| Plus(a, b)),
            (0u8..13, p(), p()).prop_map(|(n, a, b)| Choose(n, a, b)),
            (p(), p(), p()).prop_map(|(a, b, c)| IfZero(a, b, c)),
            (p(), p()).prop_map(|(a, b)| Bind(a, b)),
        ]
    })
}

fn twelfths(n: u8) -> Num {
    Num::from(i64::from(n)).div(&Num::from(12)).unwrap()
}

/// The distribution of results by definition; an error is `None`.
type Dist = BTreeMap<Option<i64>, Num>;

fn put(d: &mut Dist, value: Option<i64>, p: &Num) {
    let sum = d.get(&value).unwrap_or(&Num::ZERO).add(p).unwrap();
    if sum > Num::ZERO {
        d.insert(value, sum);
    }
}

fn bind(d: Dist, f: impl Fn(i64) -> Dist) -> Dist {
    let mut out = Dist::new();
    for (value, p) in d {
        match value {
            None => put(&mut out, None, &p),
            Some(x) => f(x).iter().for_each(|(v, q)| put(&mut out, *v, &p.mul(q).unwrap())),
        }
    }
    out
}

fn mean(program: &Program, x: i64) -> Dist {
    match program {
        X => Dist::from([(Some(x), Num::ONE)]),
        Number(n) => Dist::from([(Some(*n), Num::ONE)]),
        Fail => Dist::from([(None, Num::ONE)]),
        Plus(a, b) => bind(mean(a, x), |m| bind(mean(b, x), |n| Dist::from([(Some(m + n), Num::ONE)]))),
        Choose(n, a, b) => {
            let p = twelfths(*n);
            let mut out = Dist::new();
            mean(a, x).iter().for_each(|(v, q)| put(&mut out, *v, &p.mul(q).unwrap()));
            let rest = Num::ONE.sub(&p).unwrap();
            mean(b, x).iter().for_each(|(v, q)| put(&mut out, *v, &rest.mul(q).unwrap()));
            out
        }
        IfZero(c, a, b) => bind(mean(c, x), |n| mean(if n == 0 { a } else { b }, x)),
        Bind(a, b) => bind(mean(a, x), |n| mean(b, n)),
    }
}

fn term(b: &mut Builder, program: &Program, x: &str) -> TermId {
    match program {
        X => b.var(x, AT),
        Number(n) => b.lit(Num::from(*n), AT),
        Fail => {
            let why = b.lit("no", AT);
            b.add(Term::Fail(why), AT)
        }
        Plus(l, r) => {
            let both = vec![term(b, l, x), term(b, r, x)];
            b.add(Term::Prim(Prim::Add, both), AT)
        }
        Choose(n, l, r) => {
            let (l, r) = (term(b, l, x), term(b, r, x));
            b.add(Term::Choose(twelfths(*n), l, r), AT)
        }
        IfZero(c, l, r) => {
            let zero = b.lit(Num::ZERO, AT);
            let both = vec![term(b, c, x), zero];
            let c = b.add(Term::Prim(Prim::Eq, both), AT);
            let (l, r) = (term(b, l, x), term(b, r, x));
            b.add(Term::If(c, l, r, core_ir::IfSugar::Plain), AT)
        }
        Bind(m, f) => {
            let name = format!("{x}i");
            let m = term(b, m, x);
            let f = term(b, f, &name);
            b.let_in(vec![(name.as_str().into(), m)], f, AT)
        }
    }
}

/// `let x = 1 in program` on the machine, every course followed.
fn run(program: &Program) -> Exploration {
    let mut b = Builder::new();
    let one = b.lit(Num::ONE, AT);
    let body = term(&mut b, program, "x");
    let root = b.let_in(vec![("x".into(), one)], body, AT);
    let code = b.finish(root, &Globals::none()).expect("a closed term");
    let machine = Machine::new(code.into(), None, Config::default());
    let limits = Limits { worlds: 1_000_000, fuel: 100_000_000 };
    let found = explore(machine, (), limits, &mut |(), call| match call {
        Call::Sample { probability, .. } => Ok(sample(probability, &())),
        _ => Err("only samples".into()),
    });
    found.expect("samples are all that is asked for")
}

fn found(e: &Exploration) -> Dist {
    assert_eq!(e.open, Num::ZERO);
    let mut out = Dist::new();
    for ending in &e.endings {
        let value = match ending.result.as_ref().ok().and_then(|v| v.data()) {
            Some(Data::Num(n)) => Some(n.to_string().parse().expect("a whole number")),
            _ => None,
        };
        put(&mut out, value, &ending.probability);
    }
    out
}

fn dist(program: Program) -> Dist {
    found(&run(&program))
}

fn then(m: &Program, f: &Program) -> Program {
    Bind(Box::new(m.clone()), Box::new(f.clone()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_gives_the_distribution_of_the_definition(p in programs()) {
        let e = run(&p);
        prop_assert_eq!(found(&e), mean(&p, 1));
        let total = e.endings.iter().try_fold(Num::ZERO, |t, x| t.add(&x.probability)).unwrap();
        prop_assert_eq!(total, Num::ONE);
    }

    #[test]
    fn left_unit(n in -2i64..3, f in programs()) {
        prop_assert_eq!(dist(then(&Number(n), &f)), mean(&f, n));
    }

    #[test]
    fn right_unit(m in programs()) {
        prop_assert_eq!(dist(then(&m, &X)), dist(m));
    }

    #[test]
    fn associativity(m in programs(), f in programs(), g in programs()) {
        prop_assert_eq!(dist(then(&then(&m, &f), &g)), dist(then(&m, &then(&f, &g))));
    }
}

#[test]
fn unfollowed_branches_are_reported() {
    // Ten tosses, of which the courses through at most three worlds are followed.
    let toss = |rest| Choose(6, Box::new(Number(0)), Box::new(rest));
    let program = (0..10).fold(Number(1), |rest, _| toss(rest));
    let mut b = Builder::new();
    let root = term(&mut b, &program, "x");
    let code = b.finish(root, &Globals::none()).unwrap();
    let machine = Machine::new(code.into(), None, Config::default());
    let limits = Limits { worlds: 3, fuel: 1_000_000 };
    let found = explore(machine, (), limits, &mut |(), call| match call {
        Call::Sample { probability, .. } => Ok(sample(probability, &())),
        _ => Err("only samples".into()),
    })
    .unwrap();
    let told = found.endings.iter().try_fold(found.open.clone(), |t, e| t.add(&e.probability)).unwrap();
    assert_eq!(told, Num::ONE);
    assert!(found.open > Num::ZERO && found.worlds <= 3);
}
