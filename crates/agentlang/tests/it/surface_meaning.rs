//! Generated programs mean the same to the machine, after lowering, as to an interpreter that follows the
//! transition rules of seed 004 §3 on the syntax tree: they never go wrong. With a mistake in them they are
//! refused.
//!
//! `PROPTEST_CASES` says how many; 2,000 without it, 100,000 in the nightly run.

use core_ir::{Data, Name, Num};
use diagnostics::Sources;
use machine::{Call, Machine, Output, Response};
use proptest::prelude::*;
use std::collections::HashMap;
use syntax::agent::ast::{
    Args, BinaryOp, Block, Catch, CatchKind, ClauseKind, Expr, ExprKind, Item, Pattern, Stmt, StmtKind,
    TemplatePart, TypeExpr, TypeKind, UnaryOp,
};
use syntax::agent::parse;

/// Task `t`: it fails for multiples of three, and otherwise counts.
fn task(n: &Data, calls: &mut u32) -> Result<Data, String> {
    *calls += 1;
    let Data::Num(n) = n else { return Err("no number".into()) };
    if n.rem(&Num::from(3)).unwrap().is_zero() {
        return Err(format!("call {calls}"));
    }
    Ok(Data::Num(n.add(&Num::from(i64::from(*calls))).unwrap()))
}

/// The error of the task.
fn failed(why: &str) -> Signal {
    Signal::Fail("tool", format!("`t`: {why}"), Vec::new())
}

// ----- the interpreter -----

enum Signal {
    Break,
    Continue,
    Return(Data),
    /// The code and message of an error, and the messages of those of later parallel branches: one that is
    /// labeled higher than the place of the `parallel` ends the run before the first one does
    /// (`docs/calculus.md` §10).
    Fail(&'static str, String, Vec<String>),
    /// More steps than a test should take.
    Tired,
}

impl Signal {
    /// Combines the exits of two parallel branches.
    fn or(self, later: Signal) -> Signal {
        match (self, later) {
            (Signal::Fail(code, message, mut others), Signal::Fail(_, later, more)) => {
                others.push(later);
                others.extend(more);
                Signal::Fail(code, message, others)
            }
            (first, _) => first,
        }
    }
}

/// Checks a value against the type that its name is declared with: only `Small` and `Int` have a condition.
fn declared(name: &str, ty: Option<&TypeExpr>, v: &Data) -> Result<(), Signal> {
    match ty.map(|ty| &ty.kind) {
        Some(TypeKind::Name(ty)) if ty == "Int" => match v {
            Data::Num(n) if n.floor() == *n => Ok(()),
            other => {
                let message = format!("the value of `{name}`: $: {} is no integer", other.to_json());
                Err(Signal::Fail("type", message, Vec::new()))
            }
        },
        Some(TypeKind::Name(ty)) if ty == "Small" => {
            let small = small(v).map_err(|why| format!("the value of `{name}`: $: {why}"));
            small.map_err(|message| Signal::Fail("type", message, Vec::new()))
        }
        _ => Ok(()),
    }
}

#[derive(Clone)]
struct Interpreter {
    env: HashMap<String, Data>,
    calls: u32,
    fuel: u32,
}

impl Interpreter {
    fn block(&mut self, b: &Block) -> Result<(), Signal> {
        b.stmts.iter().try_for_each(|s| self.stmt(s))
    }

    fn stmt(&mut self, s: &Stmt) -> Result<(), Signal> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Signal::Tired)?;
        match &s.kind {
            StmtKind::Parallel { runs, .. } => {
                // All branches run to their end; then the first error counts.
                let before = self.clone();
                let mut all = Ok(Vec::new());
                for run in runs {
                    let mut branch = Interpreter { calls: self.calls, fuel: self.fuel, ..before.clone() };
                    let stmt = Stmt { kind: StmtKind::Run(run.clone()), span: run.span };
                    let ended = branch.stmt(&stmt);
                    (self.calls, self.fuel) = (branch.calls, branch.fuel);
                    let value = branch.env.get(&run.name.text).cloned();
                    all = match (all, ended) {
                        (Ok(mut vs), Ok(())) => {
                            vs.push((run.name.text.clone(), value.unwrap()));
                            Ok(vs)
                        }
                        (Err(first), Err(later)) => Err(first.or(later)),
                        (Err(e), Ok(())) | (Ok(_), Err(e)) => Err(e),
                    };
                }
                self.env.extend(all?);
            }
            StmtKind::ParallelFor(x, list, _, body) => {
                let Data::List(items) = self.expr(list) else { panic!() };
                let before = self.clone();
                let names: Vec<String> = body
                    .stmts
                    .iter()
                    .filter_map(|s| match &s.kind {
                        StmtKind::Let(n, ..) => Some(n.text.clone()),
                        StmtKind::Run(r) => Some(r.name.text.clone()),
                        _ => None,
                    })
                    .collect();
                let mut all: HashMap<String, Vec<Data>> = HashMap::new();
                let mut first: Result<(), Signal> = Ok(());
                for item in items.iter() {
                    let mut round = Interpreter { calls: self.calls, fuel: self.fuel, ..before.clone() };
                    round.env.insert(x.text.clone(), item.clone());
                    let ended = round.block(body);
                    (self.calls, self.fuel) = (round.calls, round.fuel);
                    for n in &names {
                        all.entry(n.clone()).or_default().extend(round.env.get(n).cloned());
                    }
                    first = match (first, ended) {
                        (Err(first), Err(later)) => Err(first.or(later)),
                        (first, ended) => first.and(ended),
                    };
                }
                first?;
                self.env.extend(all.into_iter().map(|(n, vs)| (n, Data::list(vs))));
            }
            StmtKind::Guard(..) => {}
            StmtKind::Run(run) if run.target.text == "sub" => {
                let Args::Positional(args) = &run.args else { panic!() };
                let n = self.expr(&args[0]);
                let v = self.sub(&n)?;
                self.env.insert(run.name.text.clone(), v);
            }
            StmtKind::Run(run) if run.target.text == "down" => {
                let Args::Positional(args) = &run.args else { panic!() };
                let n = self.expr(&args[0]);
                let v = self.down(&n)?;
                self.env.insert(run.name.text.clone(), v);
            }
            StmtKind::Let(x, ty, e) => {
                let v = self.expr(e);
                declared(&x.text, ty.as_ref(), &v)?;
                self.env.insert(x.text.clone(), v);
            }
            StmtKind::Run(run) => {
                let Args::Positional(args) = &run.args else { panic!() };
                if ["length", "twice", "sum", "fold", "add", "find", "lit", "weight", "leaves"]
                    .contains(&&*run.target.text)
                    || MAP_FUNCTIONS.contains(&&*run.target.text)
                {
                    let call = ExprKind::Call(run.target.clone(), args.clone());
                    let v = self.expr(&Expr { kind: call, span: run.span, height: 1 });
                    declared(&run.name.text, run.ty.as_ref(), &v)?;
                    self.env.insert(run.name.text.clone(), v);
                    return Ok(());
                }
                let v = self.expr(&args[0]);
                let (mut attempts, mut instead) = (1, None);
                for c in &run.clauses {
                    match &c.kind {
                        ClauseKind::Retries(n) => attempts += n.text.parse::<u32>().unwrap(),
                        ClauseKind::Use(e) => instead = Some(self.expr(e)),
                        _ => {}
                    }
                }
                let mut result = Err(String::new());
                while attempts > 0 && result.is_err() {
                    result = task(&v, &mut self.calls);
                    attempts -= 1;
                }
                let v = match (result, instead) {
                    (Ok(v), _) | (Err(_), Some(v)) => v,
                    (Err(m), None) => return Err(failed(&m)),
                };
                self.env.insert(run.name.text.clone(), v);
            }
            StmtKind::If(c, a, b) => {
                if self.expr(c) == Data::Bool(true) {
                    self.block(a)?;
                } else if let Some(b) = b {
                    self.block(b)?;
                }
            }
            StmtKind::IfLet(x, e, a, b) => match self.expr(e) {
                Data::Null => {
                    if let Some(b) = b {
                        self.block(b)?;
                    }
                }
                v => self.scoped(&x.text, v, a)?,
            },
            StmtKind::While(c, max, body) => {
                let mut left = max.as_ref().map_or(u64::MAX, |n| n.text.parse().unwrap());
                while left > 0 && self.expr(c) == Data::Bool(true) {
                    left -= 1;
                    self.fuel = self.fuel.checked_sub(1).ok_or(Signal::Tired)?;
                    match self.block(body) {
                        Err(Signal::Break) => break,
                        Err(Signal::Continue) | Ok(()) => {}
                        other => other?,
                    }
                }
            }
            StmtKind::For(x, list, body) => {
                let Data::List(items) = self.expr(list) else { panic!() };
                for item in items.iter() {
                    match self.scoped(&x.text, item.clone(), body) {
                        Err(Signal::Break) => break,
                        Err(Signal::Continue) | Ok(()) => {}
                        other => other?,
                    }
                }
            }
            StmtKind::Match(e, arms) => {
                let v = self.expr(e);
                let arm = arms.iter().find(|a| taken(&a.pattern, &v)).unwrap();
                let before = self.env.clone();
                let fields = fields_of(&arm.pattern, &v);
                self.env.extend(fields.iter().cloned());
                let result = self.block(&arm.body);
                for (name, _) in fields {
                    match before.get(&name) {
                        Some(v) => self.env.insert(name, v.clone()),
                        None => self.env.remove(&name),
                    };
                }
                result?;
            }
            StmtKind::Try(a, Catch { kind, name }, b) => {
                let before = self.env.clone();
                match self.block(a) {
                    // None of these errors is a refusal.
                    Err(Signal::Fail(code, message, _)) => {
                        self.env = before;
                        let told = match kind {
                            CatchKind::Any => Data::str(message),
                            CatchKind::Error | CatchKind::Refusal => {
                                let fields = [("code", code.to_string()), ("message", message)];
                                Data::record(fields.map(|(n, text)| (Name::from(n), Data::str(text))))
                            }
                        };
                        self.scoped(&name.text, told, b)?;
                    }
                    other => other?,
                }
            }
            StmtKind::Assert(e, message) => {
                if self.expr(e) != Data::Bool(true) {
                    let parts = message.as_ref().unwrap().parts.iter().map(|part| match part {
                        TemplatePart::Text(t) => t.value.clone(),
                        TemplatePart::Hole(e) => match self.expr(e) {
                            Data::Str(s) => s.to_string(),
                            other => panic!("{other:?}"),
                        },
                    });
                    let text: String = parts.collect();
                    return Err(Signal::Fail("fail", format!("assertion failed: {text}"), Vec::new()));
                }
            }
            StmtKind::Return(e) => return Err(Signal::Return(self.expr(e))),
            StmtKind::Break => return Err(Signal::Break),
            StmtKind::Continue => return Err(Signal::Continue),
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    /// The pipeline `sub`, in a scope of its own.
    fn sub(&mut self, n: &Data) -> Result<Data, Signal> {
        let Data::Num(number) = n else { panic!() };
        if *number < Num::from(2) {
            return Ok(Data::Num(Num::ZERO));
        }
        task(n, &mut self.calls).map_err(|m| failed(&m))
    }

    /// The pipeline `down`, which calls itself.
    fn down(&mut self, n: &Data) -> Result<Data, Signal> {
        let (mut left, mut sum) = (n.clone(), Num::ZERO);
        loop {
            self.fuel = self.fuel.checked_sub(1).ok_or(Signal::Tired)?;
            let Data::Num(number) = &left else { panic!() };
            if *number < Num::from(1) {
                return Ok(Data::Num(sum.add(number).unwrap()));
            }
            let Data::Num(more) = task(&left, &mut self.calls).unwrap_or(left.clone()) else { panic!() };
            sum = sum.add(&more).unwrap();
            left = Data::Num(number.sub(&Num::from(1)).unwrap());
        }
    }

    /// A block with a name of its own, which means what it did before afterwards.
    fn scoped(&mut self, name: &str, value: Data, block: &Block) -> Result<(), Signal> {
        let before = self.env.insert(name.to_string(), value);
        let result = self.block(block);
        match before {
            Some(v) => self.env.insert(name.to_string(), v),
            None => self.env.remove(name),
        };
        result
    }

    /// The value of an expression in which these names mean something else.
    fn with(&mut self, names: &[(&str, Data)], e: &Expr) -> Data {
        let before = self.env.clone();
        self.env.extend(names.iter().map(|(n, v)| (n.to_string(), v.clone())));
        let v = self.expr(e);
        self.env = before;
        v
    }

    fn expr(&mut self, e: &Expr) -> Data {
        match &e.kind {
            ExprKind::Str(s) => Data::str(s.as_str()),
            ExprKind::Number(n) => Data::Num(n.parse().unwrap()),
            ExprKind::Bool(b) => Data::Bool(*b),
            ExprKind::Null => Data::Null,
            ExprKind::Var(x) if x == "K" => Data::Num(Num::from(4)),
            ExprKind::Var(x) if x != "P" => self.env[x].clone(),
            ExprKind::Paren(e) => self.expr(e),
            ExprKind::Index(list, at) => match (self.expr(list), self.expr(at)) {
                (Data::List(items), Data::Num(n)) => items[n.to_usize().unwrap()].clone(),
                (map, Data::Str(key)) => map.field(&key).cloned().unwrap_or(Data::Null),
                _ => panic!(),
            },
            ExprKind::Endorse(e, values, other) => {
                let v = self.expr(e);
                match values.iter().any(|p| self.expr(p) == v) {
                    true => v,
                    false => self.expr(other.as_ref().unwrap()),
                }
            }
            ExprKind::If(None, c, a, b) => match self.expr(c) {
                Data::Bool(true) => self.expr(a),
                _ => self.expr(b),
            },
            ExprKind::If(Some(x), o, a, b) => match self.expr(o) {
                Data::Null => self.expr(b),
                v => self.with(&[(&x.text, v)], a),
            },
            ExprKind::Match(of, arms) => {
                let v = self.expr(of);
                let arm = arms.iter().find(|a| taken(&a.pattern, &v)).unwrap();
                let fields = fields_of(&arm.pattern, &v);
                let names: Vec<(&str, Data)> = fields.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
                self.with(&names, &arm.value)
            }
            ExprKind::Construct(case, fields) => {
                let mut all: Vec<(Name, Data)> =
                    fields.iter().map(|(n, e)| (Name::from(&*n.text), self.expr(e))).collect();
                let optional = if case.text == "Node" { "of" } else { "m" };
                if all.len() == 1 && case.text != "Leaf" {
                    all.push((optional.into(), Data::Null));
                }
                Data::Tag(Name::from(&*case.text), std::sync::Arc::new(Data::record(all)))
            }
            ExprKind::Var(x) if x == "P" => Data::Tag("P".into(), std::sync::Arc::new(Data::Null)),
            ExprKind::Block(lets, value) => {
                let before = self.env.clone();
                for l in lets {
                    let v = self.expr(&l.value);
                    self.env.insert(l.name.text.clone(), v);
                }
                let v = self.expr(value);
                self.env = before;
                v
            }
            ExprKind::Record(fields) | ExprKind::Map(fields) => Data::record(
                fields.iter().map(|(n, e)| (Name::from(&*n.text), self.expr(e))).collect::<Vec<_>>(),
            ),
            ExprKind::Update(of, fields) => {
                let Data::Record(old) = self.expr(of) else { panic!() };
                let mut all: Vec<(Name, Data)> = old.to_vec();
                for (n, e) in fields {
                    let v = self.expr(e);
                    all.retain(|(m, _)| **m != *n.text);
                    all.push((Name::from(&*n.text), v));
                }
                Data::record(all)
            }
            ExprKind::Field(of, name) => self.expr(of).field(&name.text).unwrap().clone(),
            ExprKind::Call(f, args) if f.text == "twice" => {
                let Data::Num(n) = self.expr(&args[0]) else { panic!() };
                if n < Num::from(2) {
                    return Data::Num(n);
                }
                Data::Num(n.add(&n).unwrap())
            }
            ExprKind::Call(f, args) if f.text == "add" => {
                let given: Vec<Data> = args.iter().map(|e| self.expr(e)).collect();
                match &given[..] {
                    [Data::Num(a)] => Data::Num(a.add(&Num::from(10)).unwrap()),
                    [Data::Num(a), Data::Num(b)] => Data::Num(a.add(b).unwrap()),
                    _ => panic!(),
                }
            }
            ExprKind::Call(f, args) if ["weight", "leaves"].contains(&&*f.text) => {
                let given: Vec<Data> = args.iter().map(|e| self.expr(e)).collect();
                Data::Num(match (&*f.text, &given[..]) {
                    ("weight", [of, Data::Num(by)]) => weight(of, by),
                    ("weight", [of]) => weight(of, &Num::from(1)),
                    ("leaves", [of]) => leaves(of),
                    _ => panic!(),
                })
            }
            ExprKind::Call(f, args) if f.text == "sum" => {
                let Data::List(items) = self.expr(&args[0]) else { panic!() };
                let add = |s: Num, i: &Data| match i {
                    Data::Num(n) => s.add(n).unwrap(),
                    _ => panic!(),
                };
                Data::Num(items.iter().fold(Num::ZERO, add))
            }
            ExprKind::Call(f, args) if ["map", "filter", "find"].contains(&&*f.text) => {
                let Data::List(items) = self.expr(&args[0]) else { panic!() };
                let given: Vec<Data> = items
                    .iter()
                    .map(|i| match &args[1].kind {
                        ExprKind::Lambda(params, body) => self.with(&[(&params[0].text, i.clone())], body),
                        ExprKind::Var(f) => {
                            let x = Expr { kind: ExprKind::Var("$x".into()), span: e.span, height: 1 };
                            let f = syntax::agent::ast::Name { text: f.clone(), span: e.span };
                            let call = Expr { kind: ExprKind::Call(f, vec![x]), span: e.span, height: 2 };
                            self.with(&[("$x", i.clone())], &call)
                        }
                        _ => panic!(),
                    })
                    .collect();
                let mut kept =
                    items.iter().zip(&given).filter(|(_, g)| **g == Data::Bool(true)).map(|(i, _)| i);
                match &*f.text {
                    "map" => Data::list(given),
                    "find" => kept.next().cloned().unwrap_or(Data::Null),
                    _ => Data::list(kept.cloned().collect::<Vec<_>>()),
                }
            }
            ExprKind::Call(f, args) if f.text == "fold" => {
                let Data::List(items) = self.expr(&args[0]) else { panic!() };
                let start = self.expr(&args[1]);
                let ExprKind::Lambda(params, body) = &args[2].kind else { panic!() };
                items.iter().fold(start, |so_far, item| {
                    self.with(&[(&params[0].text, so_far), (&params[1].text, item.clone())], body)
                })
            }
            ExprKind::List(items) => Data::list(items.iter().map(|e| self.expr(e)).collect::<Vec<_>>()),
            ExprKind::Call(f, args) if f.text == "pick" => match self.expr(&args[0]) {
                Data::List(items) => items[0].clone(),
                _ => panic!(),
            },
            ExprKind::Call(f, args) if f.text == "lit" => match self.expr(&args[0]) {
                Data::Str(s) => Data::Num(Num::from(if &*s == "a" { 1 } else { 2 })),
                _ => panic!(),
            },
            ExprKind::Call(f, args) if MAP_FUNCTIONS.contains(&&*f.text) => {
                let args: Vec<Data> = args.iter().map(|e| self.expr(e)).collect();
                of_map(&f.text, &args)
            }
            ExprKind::Call(f, args) if f.text == "length" => match self.expr(&args[0]) {
                Data::Str(s) => Data::Num(Num::from(s.chars().count() as i64)),
                Data::List(items) => Data::Num(Num::from(items.len() as i64)),
                _ => panic!(),
            },
            ExprKind::OptionalField(of, name) => match self.expr(of) {
                Data::Null => Data::Null,
                of => of.field(&name.text).unwrap().clone(),
            },
            ExprKind::Binary(BinaryOp::Or, _, a, b) => match self.expr(a) {
                Data::Bool(true) => Data::Bool(true),
                _ => self.expr(b),
            },
            ExprKind::Unary(UnaryOp::Not, e) => Data::Bool(self.expr(e) != Data::Bool(true)),
            ExprKind::Binary(op, _, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                match (op, &a, &b) {
                    (BinaryOp::Coalesce, Data::Null, b) => b.clone(),
                    (BinaryOp::Coalesce, a, _) => a.clone(),
                    (BinaryOp::Eq, a, b) => Data::Bool(a == b),
                    (BinaryOp::Ne, a, b) => Data::Bool(a != b),
                    (BinaryOp::Add, Data::Num(a), Data::Num(b)) => Data::Num(a.add(b).unwrap()),
                    (BinaryOp::Rem, Data::Num(a), Data::Num(b)) => Data::Num(a.rem(b).unwrap()),
                    (BinaryOp::Lt, Data::Num(a), Data::Num(b)) => Data::Bool(a < b),
                    _ => panic!(),
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn number_in(record: &Data, field: &str) -> Num {
    match record.field(field) {
        Some(Data::Num(n)) => n.clone(),
        _ => panic!(),
    }
}

/// The `fn` of this name, which calls itself on items.
fn weight(of: &Data, by: &Num) -> Num {
    let Some(Data::List(more)) = of.field("more") else { panic!() };
    let next = by.add(&Num::from(1)).unwrap();
    let own = number_in(of, "n").mul(by).unwrap();
    more.iter().fold(own, |sum, item| sum.add(&weight(item, &next)).unwrap())
}

/// The `fn` of this name, which calls itself on what a pattern takes.
fn leaves(of: &Data) -> Num {
    let Data::Tag(case, fields) = of else { panic!() };
    if &**case == "Leaf" {
        return number_in(fields, "n");
    }
    let own = match fields.field("of") {
        Some(Data::Null) | None => Num::ZERO,
        Some(w) => weight(w, &Num::from(1)),
    };
    own.add(&leaves(fields.field("left").unwrap())).unwrap()
}

const MAP_FUNCTIONS: &[&str] = &["keys", "values", "items", "get", "has", "set", "remove", "merge"];

/// A function of maps, with a list of entries in place of the record.
fn of_map(name: &str, args: &[Data]) -> Data {
    let Data::Record(entries) = &args[0] else { panic!() };
    let set = |all: &mut Vec<(Name, Data)>, key: &Name, value: &Data| match all
        .iter_mut()
        .find(|(n, _)| n == key)
    {
        Some((_, old)) => *old = value.clone(),
        None => all.push((key.clone(), value.clone())),
    };
    let mut all = entries.to_vec();
    match (name, &args[1..]) {
        ("keys", []) => Data::list(all.iter().map(|(n, _)| Data::str(&**n))),
        ("values", []) => Data::list(all.into_iter().map(|(_, d)| d)),
        ("items", []) => Data::list(
            all.into_iter()
                .map(|(n, value)| Data::record([("key".into(), Data::str(&*n)), ("value".into(), value)])),
        ),
        ("has", [Data::Str(key)]) => Data::Bool(args[0].field(key).is_some()),
        ("get", [Data::Str(key), other]) => args[0].field(key).unwrap_or(other).clone(),
        ("remove", [Data::Str(key)]) => {
            all.retain(|(n, _)| **n != **key);
            Data::record(all)
        }
        ("set", [Data::Str(key), value]) => {
            set(&mut all, &Name::from(&**key), value);
            Data::record(all)
        }
        ("merge", [Data::Record(more)]) => {
            more.iter().for_each(|(n, d)| set(&mut all, n, d));
            Data::record(all)
        }
        other => panic!("{other:?}"),
    }
}

/// Reason why a number is no `Small`.
fn small(v: &Data) -> Result<(), String> {
    let Data::Num(n) = v else { panic!() };
    match n {
        n if *n >= Num::from(9) => Err(format!("value is {n}, expected < 9")),
        n if *n < Num::ZERO => Err(format!("value is {n}, expected >= 0")),
        _ => Ok(()),
    }
}

/// Returns whether a pattern is for a value.
fn taken(pattern: &Pattern, v: &Data) -> bool {
    let name: &str = match v {
        Data::Str(s) => s,
        Data::Tag(name, _) => name,
        Data::Num(n) => {
            let is = |written: &str| written.parse::<Num>().unwrap() == *n;
            return pattern.variants.is_empty() || pattern.variants.iter().any(|v| is(&v.text));
        }
        _ => panic!(),
    };
    pattern.variants.is_empty() || pattern.variants.iter().any(|n| *n.text == *name)
}

/// The variables that a pattern binds.
fn fields_of(pattern: &Pattern, v: &Data) -> Vec<(String, Data)> {
    let Data::Tag(_, payload) = v else { return Vec::new() };
    let field = |name: &str| payload.field(name).unwrap().clone();
    pattern.fields.iter().map(|f| (f.name.text.clone(), field(&f.field.text))).collect()
}

/// The result of a pipeline, or the message of its failure; nothing if it takes too long.
fn interpret(text: &str, input: &[(Name, Data)]) -> Option<Result<Data, (String, Vec<String>)>> {
    let mut sources = Sources::new();
    let file = sources.add("t.agent", text);
    let (program, _) = parse(file, text);
    let body = program.items.iter().find_map(|i| match i {
        Item::Pipeline(p) if p.name.text == "p" => Some(&p.body),
        _ => None,
    });
    let env = input.iter().map(|(n, d)| (n.to_string(), d.clone())).collect();
    let mut interpreter = Interpreter { env, calls: 0, fuel: 5_000 };
    match interpreter.block(body.unwrap()) {
        Err(Signal::Return(v)) => Some(Ok(v)),
        Err(Signal::Fail(_, message, others)) => Some(Err((message, others))),
        Err(Signal::Tired) => None,
        Ok(()) | Err(Signal::Break | Signal::Continue) => panic!("not accepted"),
    }
}

fn run(code: core_ir::Code, input: &[(Name, Data)]) -> Result<Data, String> {
    let input = Data::record(input.iter().cloned());
    let mut machine = Machine::new(code.into(), Some(input), machine::Config::default());
    let mut calls = 0;
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let Call::Tool { args, .. } = &request.call else { panic!("asks for no tool") };
                machine.handle(id, Response::Tool(task(&args[0].1, &mut calls)));
            }
            Output::Working => {}
            Output::Waiting => panic!("waits for nothing"),
            Output::Done(Ok(v)) => return Ok(machine.reify(&v).data().expect("data")),
            Output::Done(Err(f)) => return Err(f.message),
        }
    }
}

// ----- the generator -----

/// A stream of choices.
struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of generated names.
    fresh: u32,
}

impl Choices<'_> {
    fn below(&mut self, n: u8) -> u8 {
        let b = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        b % n
    }

    fn var(&mut self) -> &'static str {
        ["a", "b", "c"][self.below(3) as usize]
    }

    /// A number that a function, a choice or a record gives.
    fn computed(&mut self, kind: u8) -> String {
        let (x, y) = (self.var(), self.var());
        match kind {
            18 => return format!("lit(v) + pick([K, {y}], {x}) + pick([[{x}]], [K])[0]"),
            19 => return format!("match {x} {{ 1 | 2.0 => {y}, 0 => K, _ => {x} }}"),
            16 => return format!("add({x})"),
            17 => return format!("[{x}, {y}].map(add).sum() + add({y}, {x})"),
            12 => return format!("(r?.k ?? {x})"),
            13 => return format!("if r?.j != null {{ r.j + {x} }} else {{ r?.k ?? {y} }}"),
            14 => return format!("if o != null {{ o + {x} }} else {{ {y} }}"),
            15 => return format!("if n == null || !(n < {x}) {{ {y} }} else {{ n + {x} }}"),
            10 => return format!("match u {{ P => {x}, Q {{ n: {y}, m }} => {y} + (m ?? {x}) }}"),
            11 => {
                return format!(
                    "match (if {x} < {y} {{ P }} else {{ Q {{ n: {x} }} }}) {{ Q {{ n }} => n + {y}, P => {x} }}"
                );
            }
            _ => {}
        }
        match kind % 10 {
            0 => format!("twice({x} + {y})"),
            1 => format!("if {x} < {y} {{ {x} }} else {{ let {x} = {y} + 1; {x} + {y} }}"),
            2 => format!("if let {x} = o {{ {x} + {y} }} else {{ {y} }}"),
            3 => "match e { red => a, green | blue => { let z = b; z + c } }".into(),
            4 => format!("[{x}, {y}, 2].map({x} => {x} + {y}).sum()"),
            5 => format!("[{x}, {y}].filter(i => i < 2).map(twice).sum()"),
            6 => format!("[{x}, {y}, 3].fold(c, ({y}, i) => {y} + i)"),
            7 => format!("({{ ...{{ k: {x}, j: 1 }}, k: {y} + 1 }}).k"),
            8 => format!("([{x}, {y}].find(i => !(i < 1)) ?? twice({y}))"),
            _ => format!("({x}.twice() + [[{x}], [{y}]].map(i => i.map(j => j + {x}).sum()).sum())"),
        }
    }

    /// A number that is in a map, or computed from one.
    fn of_map(&mut self) -> String {
        let (x, y) = (self.var(), self.var());
        match self.below(16) {
            13 => format!("weight(w, {x})"),
            14 => format!("w.more.map(weight).sum() + {y}"),
            15 => "leaves(l) + leaves(Node { left: l, of: w })".into(),
            8 => format!("w.n + length(w.more) + {x}"),
            9 => format!("(w.more.find(i => i.n < {x})?.n ?? {y})"),
            10 => "w.more.map(i => i.n + length(i.more)).sum()".into(),
            11 => format!("match l {{ Leaf {{ n }} => n, Node {{ left, of }} => (of?.n ?? {x}) }}"),
            0 => format!("(h[\"k\"] ?? {x})"),
            1 => format!("(h.set(\"k\", {x})[s] ?? {y})"),
            2 => format!("h.get(\"z\", {x})"),
            3 => format!("values(h.set(s, {x} + 1)).sum()"),
            4 => format!("items(h.remove(\"k\")).map(i => i.value + {x}).sum()"),
            5 => format!("length(keys(merge(h, {{ \"z\": {x}, y: {y} }})))"),
            6 => format!("if has(h, s) {{ {x} }} else {{ {y} }}"),
            7 => format!("if let {x} = h[s] {{ {x} + {y} }} else {{ {y} }}"),
            _ => format!(
                "{{ \"a\": {x}, \"b\": {y} }}.items().fold({{}}, (t, i) => t.set(i.key, i.value + 1)).values().sum()"
            ),
        }
    }

    fn number(&mut self) -> String {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        if byte >= 236 {
            self.at += 1;
            return match self.below(4) {
                0 => self.of_map(),
                _ => self.computed(byte - 236),
            };
        }
        self.plain_number()
    }

    /// A number without a function of a list: the items of a list are looked at as branches are, so the
    /// requests of a `parallel` around it may come in another order.
    fn plain_number(&mut self) -> String {
        match self.below(7) {
            0 => format!("{} + {}", self.var(), self.var()),
            1 => format!("({} + 1) % 7", self.var()),
            6 => {
                let option = ["o", "n"][self.below(2) as usize];
                format!("({option} ?? {} + 1)", self.var())
            }
            2 => self.below(5).to_string(),
            3 => "length(s)".into(),
            _ => self.var().into(),
        }
    }

    fn condition(&mut self) -> String {
        let x = self.number();
        match self.below(5) {
            0 => format!("{x} == {}", self.below(4)),
            4 => format!("{} == {x}", ["o", "n", "r?.j"][self.below(3) as usize]),
            1 => format!("!({x} < {})", self.var()),
            2 => format!("({x}) % 2 == 0"),
            _ => format!("{x} < {}", self.var()),
        }
    }

    fn block(&mut self, depth: u8, in_loop: bool, out: &mut String) {
        out.push_str("{ ");
        for _ in 0..self.below(4) {
            if self.stmt(depth + 1, in_loop, out) {
                break;
            }
        }
        out.push_str("} ");
    }

    /// Writes a statement. Returns true if the block ends with it.
    fn stmt(&mut self, depth: u8, in_loop: bool, out: &mut String) -> bool {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        let kind = if depth > 4 || self.at > self.bytes.len() {
            self.below(4)
        } else if byte >= 240 {
            self.at += 1;
            23 + byte % 8
        } else {
            self.below(23)
        };
        match kind {
            18 => {
                let (x, y) = (self.plain_number(), self.plain_number());
                self.fresh += 1;
                let n = self.fresh;
                let line = format!(
                    "parallel max_concurrency {} {{ let p{n} = t({x}); let q{n} = t({y}); }} join; let a = p{n} + q{n}; ",
                    1 + self.below(2)
                );
                out.push_str(&line);
            }
            19 => {
                let (x, y) = (self.plain_number(), self.plain_number());
                self.fresh += 1;
                let n = self.fresh;
                let line = format!(
                    "parallel for i{n} in [{x}, {y}] {{ let r{n} = t(i{n}); let w{n} = r{n} + {}; }} let b = r{n}[0] + w{n}[1]; ",
                    self.var()
                );
                out.push_str(&line);
            }
            20 => out.push_str("let s = endorse s in [\"x\", \"xx\"] else \"xxx\"; "),
            21 => {
                let target = if self.below(2) == 0 { "sub" } else { "down" };
                let line = format!("let {} = {target}({}); ", self.var(), self.number());
                out.push_str(&line);
            }
            23 => {
                let value = match self.below(3) {
                    0 => "P".to_string(),
                    1 => format!("Q {{ n: {} }}", self.plain_number()),
                    _ => format!("Q {{ m: {}, n: {} }}", self.var(), self.plain_number()),
                };
                out.push_str(&format!("let u = {value}; "));
            }
            25 => {
                let line = match self.below(8) {
                    5 => format!("let w = {{ n: {}, more: [w, {{ n: 1, more: [] }}] }}; ", self.var()),
                    6 => format!(
                        "if let q = w.more.find(i => i.n < 3) {{ let w = q; let {} = w.n; }} ",
                        self.var()
                    ),
                    7 => format!(
                        "let l = Node {{ left: Node {{ left: l }}, of: w }}; let {} = w.n; ",
                        self.var()
                    ),
                    3 => format!("let h = h.set(s, {}); ", self.var()),
                    4 => format!("let h: Map[String, Number] = {{ \"x\": {}, k: 2 }}; ", self.var()),
                    0 => format!("let o = [{}, {}].find(i => i < 2); ", self.var(), self.var()),
                    1 => "let o = null; ".to_string(),
                    _ => format!("if o != null {{ let {} = o; }} ", self.var()),
                };
                out.push_str(&line);
            }
            26 => {
                let option = ["o", "n", "r?.j"][self.below(3) as usize];
                out.push_str(&format!("if {option} == null "));
                self.block(depth, in_loop, out);
                let x = self.var();
                let option = option.replace('?', "");
                out.push_str(&format!(
                    "else {{ let {x} = {option} + 1; if let {x} = {option} {{ let a = {option}; }} }} "
                ));
            }
            27 => {
                let option = ["o", "n"][self.below(2) as usize];
                let line = format!(
                    "if {option} == null {{ return [{}, 0, c]; }} let {} = {option} + {}; ",
                    self.number(),
                    self.var(),
                    self.var()
                );
                out.push_str(&line);
            }
            28 => {
                let value = ["a", "b"][self.below(2) as usize];
                let line = match self.below(3) {
                    0 => format!("let v = \"{value}\"; "),
                    // The strings that a variable is bound to on all ways are literals.
                    1 => format!(
                        "let w = \"{value}\"; if {} {{ let w = \"b\"; }} let {} = lit(w); ",
                        self.condition(),
                        self.var()
                    ),
                    _ => format!(
                        "let w = {{ x: \"{value}\", y: 1 }}; let {} = lit({{ ...w, y: 2 }}.x) + lit(w.x); ",
                        self.var()
                    ),
                };
                out.push_str(&line);
            }
            29 => {
                let ty = ["Small", "Int"][self.below(2) as usize];
                let line = format!("let {}: {ty} = {}; ", self.var(), self.number());
                out.push_str(&line);
            }
            30 => {
                let (head, first, rest) = match self.below(3) {
                    0 => ("v", "\"a\"", "b"),
                    1 => ("s", "\"x\" | \"\"", "_"),
                    _ => ("a", "0 | 1", "_"),
                };
                out.push_str(&format!("match {head} {{ {first} => "));
                self.block(depth, in_loop, out);
                out.push_str(&format!("{rest} => "));
                self.block(depth, in_loop, out);
                out.push_str("} ");
            }
            24 => {
                out.push_str("match u { P => ");
                self.block(depth, in_loop, out);
                let fields = ["{ n: a }", "{ n: x, m: y }", "{ n: s2 }", ""][self.below(4) as usize];
                out.push_str(&format!("Q {fields} => "));
                self.block(depth, in_loop, out);
                out.push_str("} ");
            }
            22 => {
                let v = self.var();
                out.push_str(&format!("guard {v} where {v} < 1000 || !({v} < 1000); "));
            }
            0..=2 => {
                let ty = if self.below(3) == 0 { ": Number" } else { "" };
                let line = format!("let {}{ty} = {}; ", self.var(), self.number());
                out.push_str(&line);
            }
            3 | 4 => {
                let clauses = [
                    "",
                    " retries 1",
                    " retries 2 on_fail use a",
                    " on_fail use c + 1",
                    " on_fail abort",
                    "",
                ];
                let line =
                    format!("let {} = t({}){}; ", self.var(), self.number(), clauses[self.below(6) as usize]);
                out.push_str(&line);
            }
            5 => out.push_str(&format!("let s = \"{}\"; ", "x".repeat(self.below(4) as usize))),
            6 | 7 => {
                let head = format!("if {} ", self.condition());
                out.push_str(&head);
                self.block(depth, in_loop, out);
                if self.below(2) == 0 {
                    out.push_str("else ");
                    self.block(depth, in_loop, out);
                }
            }
            8 => {
                let option = ["o", "n"][self.below(2) as usize];
                let bound = ["a", "x", "s2"][self.below(3) as usize];
                out.push_str(&format!("if let {bound} = {option} "));
                self.block(depth, in_loop, out);
                out.push_str("else ");
                self.block(depth, in_loop, out);
            }
            9 | 10 => {
                let max =
                    if self.below(4) == 0 { String::new() } else { format!("max {} ", 1 + self.below(4)) };
                let head = format!("while {} {max}", self.condition());
                out.push_str(&head);
                self.block(depth, true, out);
            }
            11 => {
                let bound = ["b", "x"][self.below(2) as usize];
                out.push_str(&format!("for {bound} in [{}, {}, 2] ", self.number(), self.number()));
                self.block(depth, true, out);
            }
            12 => {
                out.push_str("match e { red => ");
                self.block(depth, in_loop, out);
                out.push_str(if self.below(2) == 0 { "green | blue => " } else { "_ => " });
                self.block(depth, in_loop, out);
                out.push_str("} ");
            }
            13 | 14 => {
                out.push_str("try ");
                self.block(depth, in_loop, out);
                let kind = self.below(4) as usize;
                out.push_str(["catch m ", "catch s ", "catch error q ", "catch refusal q "][kind]);
                if kind > 1 {
                    out.push_str("{ let m = q.message; let s = q.code; if m != \"\" ");
                }
                self.block(depth, in_loop, out);
                if kind > 1 {
                    out.push_str("} ");
                }
            }
            15 => {
                let message = ["\"m\"", "f\"m{s}\"", "f\"{if true { \"m\" } else { s }}\""];
                let message = message[self.below(3) as usize];
                let line = format!("assert {} == {} || true == true, {message}; ", self.var(), self.below(3));
                out.push_str(&line);
            }
            16 if in_loop => {
                out.push_str(["break; ", "continue; "][self.below(2) as usize]);
                return true;
            }
            16 => {
                let message = ["\"n\"", "f\"n{s}\""][self.below(2) as usize];
                let c = format!("assert !({}), {message}; ", self.condition());
                out.push_str(&c);
            }
            _ => {
                let line = format!("return [{}, {}, c]; ", self.number(), self.var());
                out.push_str(&line);
                return true;
            }
        }
        false
    }
}

fn program(bytes: &[u8]) -> String {
    let mut choices = Choices { bytes, at: 0, fresh: 0 };
    let mut body = String::new();
    for _ in 0..3 + choices.below(8) {
        if choices.stmt(0, false, &mut body) {
            break;
        }
    }
    format!(
        "const K = J + 1;\nconst J: Number = 3;\ntype V = \"a\" | \"b\";\ntype Small = Number where it < 9 && it >= 0;\n\
         enum E {{ red, green, blue }}\ntype W = Obj{{n: Number, more: List[W]}};\ntype L = Leaf {{ n: Number }} | Node {{ left: L, of: Option[W] }};\ntype U = P | Q {{ n: Number, m: Option[Number] }};\ntask t(n: Number) -> Number {{}}\n\
         fn twice(n: Number) -> Number {{ if n < 2 {{ n }} else {{ let m = n + n; m }} }}\n\
         fn pick[T](xs: List[T], other: T) -> T {{ xs.find(x => true) ?? other }}\n\
         fn lit(v: V) -> Number {{ match v {{ \"a\" => 1, \"b\" => 2 }} }}\n\
         fn weight(w: W, by: Number = 1) -> Number {{ w.n * by + w.more.map(v => weight(v, by + 1)).sum() }}\n\
         fn leaves(l: L) -> Number {{ match l {{ Leaf {{ n }} => n, Node {{ left, of }} => {{ let own = if let w = of {{ weight(w) }} else {{ 0 }}; own + leaves(left) }} }} }}\n\
         fn add(n: Number, m: Number = 10) -> Number {{ n + m }}\n\
         pipeline sub(n: Number) -> Number {{ if n < 2 {{ return 0; }} let m = t(n); return m; }}\n\
         pipeline down(n: Number) -> Number {{ if n < 1 {{ return n; }} let m = t(n) on_fail use n; let r = down(n - 1); return m + r; }}\n\
         pipeline p(a: Number, b: Number, c: Number, s: String, o: Option[Number], n: Option[Number], e: E, v: V, u: U, h: Map[String, Number], w: W, l: L, r: Option[Obj{{k: Number, j: Option[Number]}}]) -> List[Number] {{\n\
         {body}\nreturn [a, b, c, length(s)]; }}"
    )
}

/// A value of type `W`.
fn tree(depth: i64) -> Data {
    let more = (0..depth).map(|_| tree(depth - 1));
    Data::record([("n".into(), Data::Num(Num::from(depth))), ("more".into(), Data::list(more))])
}

/// The message without the values of both sides, which the interpreter does not show.
fn plain(message: &str) -> String {
    message.split(" (left: ").next().unwrap_or("").to_string()
}

/// `labeled`: what the task returns is untrusted, and an input is secret. That changes labels, not results:
/// every error must still reach its `catch`, whatever data decided that it happens.
fn compare(bytes: &[u8], variant: &str, labeled: bool) -> Option<()> {
    let mut text = program(bytes);
    if labeled {
        text = text.replace("-> Number {}", "-> Number reads {}").replace("c: Number", "c: Number secret");
    }
    let mut sources = Sources::new();
    let file = sources.add("t.agent", text.as_str());
    let (module, _) = agentlang::check(file, &text);
    // Some are refused: a name that has one of two types, for example.
    let module = module?;
    let number = |n: i64| Data::Num(Num::from(n));
    let input: Vec<(Name, Data)> = [
        ("a", number(1)),
        ("b", number(2)),
        ("c", number(0)),
        ("s", Data::str("xy")),
        ("o", number(5)),
        ("n", Data::Null),
        ("e", Data::str(variant)),
        ("v", Data::str("b")),
        ("w", tree(2)),
        ("l", Data::Tag("Leaf".into(), std::sync::Arc::new(Data::record([("n".into(), number(8))])))),
        ("h", Data::record([("k".into(), number(6)), ("xy".into(), number(7))])),
        (
            "r",
            if variant == "red" {
                Data::Null
            } else {
                Data::record([
                    ("k".into(), number(2)),
                    ("j".into(), if variant == "green" { Data::Null } else { number(4) }),
                ])
            },
        ),
        (
            "u",
            Data::Tag(
                "Q".into(),
                std::sync::Arc::new(Data::record([("n".into(), number(3)), ("m".into(), Data::Null)])),
            ),
        ),
    ]
    .into_iter()
    .map(|(n, d)| (Name::from(n), d))
    .collect();
    let expected = interpret(&text, &input)?;
    let code = module.lower(module.pipeline("p").unwrap()).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    let found = run(code, &input).map_err(|m| plain(&m));
    let expected = expected.map_err(|(message, others)| match &found {
        Err(m) if labeled && others.contains(m) => m.clone(),
        _ => message,
    });
    assert_eq!(found, expected, "{text}");
    for (lib, main) in split(&text) {
        let (_, module, diagnostics) =
            crate::suite::found_in(&format!("-- main.agent\n{main}\n-- lib.agent\n{lib}"));
        let module = module.unwrap_or_else(|| panic!("{diagnostics:?}\n{main}"));
        let code = module.lower(module.pipeline("p").unwrap()).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
        assert_eq!(run(code, &input).map_err(|m| plain(&m)), found, "{main}");
    }
    Some(())
}

/// The program in two files: its last pipeline imports what is above it by names, and behind a name.
fn split(text: &str) -> Vec<(String, String)> {
    const NAMES: &[&str] = &[
        "K", "J", "V", "Small", "W", "L", "Leaf", "Node", "U", "P", "Q", "t", "twice", "pick", "lit",
        "weight", "leaves", "add", "sub", "down",
    ];
    let (above, main) = text.split_at(text.find("pipeline p(").unwrap());
    // The strings that are variants of an enum are those of the file in which it is.
    let (enums, lib): (Vec<&str>, Vec<&str>) = above.lines().partition(|l| l.starts_with("enum"));
    let (enums, lib) = (enums.join("\n"), lib.join("\n"));
    let taken = format!("use \"lib.agent\" {{ {} }};\n{enums}\n{main}", NAMES.join(", "));
    let mut behind = format!("use \"lib.agent\" as lib;\n{enums}\n");
    let tokens = syntax::agent::lex(diagnostics::FileId(0), main, 0, main.len()).tokens;
    let mut end = 0;
    let word = |i: usize| tokens.get(i).map_or("", |t| &main[t.start as usize..t.end as usize]);
    for (i, t) in tokens.iter().enumerate() {
        behind.push_str(&main[end..t.start as usize]);
        // A variable may have the name of the task.
        let is_variable = word(i) == "t" && !matches!(word(i + 1), "(" | "with");
        if NAMES.contains(&word(i)) && !is_variable && word(i + 1) != ":" && (i == 0 || word(i - 1) != ".") {
            behind.push_str("lib.");
        }
        behind.push_str(word(i));
        end = t.end as usize;
    }
    // Holes of strings are no tokens, and what stands before the dot of a method is its argument.
    let is_method = |i: usize| word(i) == "." && NAMES.contains(&word(i + 1));
    let mut all = vec![(lib.clone(), taken)];
    if !main.contains("f\"") && !(0..tokens.len()).any(is_method) {
        all.push((lib, behind));
    }
    all
}

fn programs() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000)
}

/// Statements that break one rule each, wherever they stand.
const MISTAKES: &[&str] = &[
    "let z1 = a + s;",
    "let z2 = nobody;",
    "if a { }",
    "while s { }",
    "let z3 = t(s);",
    "let z4 = t();",
    "let z5 = t(1) on_fail use s;",
    "let z6 = nothing(1);",
    "assert a, \"m\";",
    "let z7 = a == s;",
    "let z8 = e.field;",
    "match [a] { _ => { } }",
    "match a { 1 => { } }",
    "match a { red => { } _ => { } }",
    "match s { \"x\" => { } }",
    "let k1 = lit(\"c\");",
    "let k2 = lit(s);",
    "let j1 = \"c\"; let j2 = lit(j1);",
    "let j3 = { x: s }; let j4 = lit(j3.x);",
    "let j5 = o == s;",
    "assert a == 1, f\"{nobody}\";",
    "let k3: Small = -1;",
    "let j6: Int = 1.5;",
    "let j7: Date = \"2026-02-30\";",
    "let j8: Int = s;",
    "let k4 = K + s;",
    "let k6 = pick([a], s);",
    "let k7 = pick([a], 1) + s;",
    "let k8 = pick(a, a);",
    "let K = 1;",
    "match v { \"a\" => { } }",
    "let k5 = lit(\"a\"); match k5 { 1 => { } }",
    "match e { red => { } }",
    "if let q = a { }",
    "let z9 = [1, \"x\"];",
    "for q in a { }",
    "let y1 = t(1) by nobody;",
    "let y2 = { k: 1, k: 2 };",
    "let y3 = length(a) + 1;",
    "let y4 = endorse s in [s] else \"x\";",
    "guard a where a < b;",
    "parallel { let y5 = t(1); let y5 = t(2); } join;",
    "parallel for q in [1, 2] { let a = q; }",
    "parallel for q in [1, 2] { return [q]; }",
    "let y6 = t(1) timeout 0;",
    "let y7 = sub(s);",
    "let y8 = t(1) + 1;",
    "if a < b { return s; }",
    "let y9 = [];",
    "let x1 = !a;",
    "let x2 = s[e];",
    "let x3 = if a < b { 1 } else { s };",
    "let x4 = if a { 1 } else { 2 };",
    "let x5 = match e { red => 1 };",
    "let x6 = [a].map(i => i + s);",
    "let x7 = [a].filter(i => i);",
    "let x8 = [a].map(t);",
    "let x9 = [a].map(i => t(i));",
    "let w1 = twice(s);",
    "let w2 = twice(a, b);",
    "let w3 = { ...a, k: 1 };",
    "let w4 = [a].fold(0, i => i);",
    "let w5 = [a].map(i => quarantine(\"{i}\") as Number);",
    "let w6 = [a].sort_by(i => [i]);",
    "let t1 = add();",
    "let t2 = add(1, 2, 3);",
    "let t3 = add(s);",
    "let u1 = [a].find(i => i < 2); let u2 = u1 + 1;",
    "let u1 = [a].find(i => i < 2); if u1 == null { let u2 = u1 + 1; }",
    "let u1 = [a].find(i => i < 2); if u1 != null || a < b { let u2 = u1 + 1; }",
    "let u1 = [a].find(i => i < 2); if u1 != null { let u1 = [a].find(i => i < 2); let u2 = u1 + 1; }",
    "let u3 = [{ k: a }].find(i => true); let u4 = u3.k;",
    "let u3 = [{ k: a }].find(i => true); let u4 = u3?.k + 1;",
    "let u6 = a?.k;",
    "let w7 = Q { n: s };",
    "let w8 = Q { m: a };",
    "let w9 = R { n: a };",
    "match u { P => { } }",
    "match u { P => { } Q { k } => { } }",
    "let v1 = match u { P => 1, Q { n } => s };",
    "let v2 = u.n;",
    "let v3 = Q;",
    "let p1 = w.more.n;",
    "let p2: W = { n: 1, more: [1] };",
    "let p3: W = { n: 1, more: [{ n: s, more: [] }] };",
    "let p4 = w.more[0] + 1;",
    "let p5 = Node { left: w };",
    "match l { Leaf { n } => { } }",
    "let q1 = h[a];",
    "let q2 = h.k;",
    "let q3 = h[s] + 1;",
    "for q in h { }",
    "let q4 = { \"a\": 1, \"b\": s };",
    "let q5 = h.set(s, s) == h;",
    "let q6: Map[Number, Number] = {};",
    "let q7: Map[E, Number] = { \"pink\": 1 };",
    "let q8: Map[String, Number] = { k: s };",
];

/// Returns the number of a program's warnings, or of its errors.
fn surface_check(text: &str) -> Result<usize, usize> {
    let mut sources = Sources::new();
    let file = sources.add("t.agent", text);
    match agentlang::check(file, text) {
        (Some(_), found) => Ok(found.len()),
        (None, found) => Err(found.len()),
    }
}

/// The results and the requests with their numbers, for any order in which requests are answered.
#[test]
fn the_order_of_answers_does_not_matter() {
    let text = "task t(n: Number) -> Number {}
        pipeline inner(n: Number) -> Number { let a = t(n) retries 1 on_fail use 7; let b = t(a + 10) on_fail use 0 - a; return b; }
        pipeline p(xs: List[Number]) -> Obj{rows: List[List[Number]], x: Number, m: String} {
            parallel for x in xs {
                parallel for y in xs max_concurrency 2 { let r = inner(x * 10 + y); let s = t(r) on_fail use 1; }
                parallel { let u = t(x); let v = inner(x + 1); } join;
            }
            let m = \"\";
            try { parallel for x in xs { let w = t(x * 3); } } catch e { let m = e; }
            return { rows: r, x: u[0] + v[1] + s[0][1], m: m };
        }";
    let mut sources = Sources::new();
    let file = sources.add("t.agent", text);
    let module = agentlang::check(file, text).0.unwrap();
    let code = std::sync::Arc::new(module.lower(module.pipeline("p").unwrap()).unwrap());
    let numbers = [1, 2, 4, 5].map(|n| Data::Num(Num::from(n)));
    let input = Data::record([("xs".into(), Data::list(numbers))]);
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..40u64 {
        let mut state = seed;
        let mut machine = Machine::new(code.clone(), Some(input.clone()), machine::Config::default());
        let (mut open, mut trace) = (Vec::new(), Vec::new());
        let outcome = loop {
            match machine.poll() {
                Output::Request(id, request) => open.push((id, request)),
                Output::Working => {}
                Output::Waiting => {
                    // The first run answers in order, the others in any.
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let next = if seed == 0 { 0 } else { (state >> 33) as usize % open.len() };
                    let (id, request) = open.remove(next);
                    let Call::Tool { args, .. } = &request.call else { panic!("asks for no tool") };
                    trace.push(format!("{id:?} {args:?}"));
                    // What comes back depends on what was asked alone.
                    machine.handle(id, Response::Tool(task(&args[0].1, &mut 0)));
                }
                Output::Done(Ok(v)) => break machine.reify(&v).data().expect("data").to_json().to_string(),
                Output::Done(Err(f)) => break format!("{} {}", f.code.as_str(), f.message),
            }
        };
        trace.sort();
        outcomes.insert((outcome, trace));
    }
    assert_eq!(outcomes.len(), 1, "{:#?}", outcomes.iter().map(|o| &o.0).collect::<Vec<_>>());
    let (outcome, trace) = outcomes.first().unwrap();
    assert!(outcome.contains("`t`: call 1") && trace.len() > 60, "{outcome} {}", trace.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: programs(), ..ProptestConfig::default() })]

    #[test]
    fn the_machine_does_what_the_rules_say(
        bytes in prop::collection::vec(any::<u8>(), 10..160),
        variant in prop::sample::select(vec!["red", "green", "blue"]),
        labeled: bool,
    ) {
        compare(&bytes, variant, labeled);
    }

    #[test]
    fn a_mistake_is_refused(
        bytes in prop::collection::vec(any::<u8>(), 10..120),
        mistake in prop::sample::select(MISTAKES),
        place in any::<prop::sample::Index>(),
    ) {
        let text = program(&bytes);
        // What is never reached is not checked, so programs without such parts only.
        if !surface_check(&text).is_ok_and(|warnings| warnings == 0) {
            return Ok(());
        }
        let body = text.find("{\n").unwrap() + 2;
        let blocks: Vec<usize> = text[body..]
            .match_indices("{ ")
            // Arms of `match` and rounds of `parallel` hold no statements of this kind.
            .filter(|(i, _)| !["red ", "parallel", "in ["].iter().any(|w| {
                let before = &text[body..body + i];
                let start = before.rfind([';', '{', '}']).map_or(0, |s| s + 1);
                before[start..].contains("match") || (*w != "red " && *w != "in [" && before[start..].contains(w))
            }))
            .map(|(i, _)| body + i + 2)
            .chain([body])
            .collect();
        let at = *place.get(&blocks);
        let wrong = format!("{}{mistake} {}", &text[..at], &text[at..]);
        prop_assert!(surface_check(&wrong).is_err(), "accepted: {wrong}");
    }
}

/// A secret error ends the run before the public one of an earlier branch counts; without labels the first
/// counts.
#[test]
fn an_error_above_the_place_of_a_parallel_ends_the_run() {
    let bytes =
        [0, 13, 234, 228, 4, 213, 9, 69, 0, 4, 9, 11, 63, 12, 0, 69, 201, 1, 0, 0, 110, 64, 76, 4, 17, 0];
    for labeled in [false, true] {
        assert_eq!(compare(&bytes, "red", labeled), Some(()));
    }
}

/// The generator would be of no use if most of its programs were refused.
#[test]
fn most_generated_programs_are_accepted_and_end() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let compared = (0..300).filter(|_| {
        let bytes: Vec<u8> = (0..120).map(|_| next()).collect();
        compare(&bytes, "green", false).is_some()
    });
    assert!(compared.count() > 150);
}
