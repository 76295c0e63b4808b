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

/// The task in a world whose answers depend on the call alone.
pub(crate) fn answer(n: &Data) -> Result<Data, String> {
    task(n, &mut 0)
}

/// The model's reply to a prompt, which ends with a number.
pub(crate) fn reply(prompt: &str) -> String {
    let n: Num = prompt.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a prompt with a number");
    judged(&n).to_string()
}

/// The number that the model replies to a number.
fn judged(n: &Num) -> Num {
    n.add(n).and_then(|n| n.rem(&Num::from(5))).expect("a number")
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
            StmtKind::Run(run) if ["judge", "judge_a", "flow"].contains(&&*run.target.text) => {
                let Data::Num(n) = self.argument(&run.args) else { panic!() };
                let n = if run.target.text == "flow" { judged(&n).add(&Num::ONE).unwrap() } else { n };
                self.env.insert(run.name.text.clone(), Data::Num(judged(&n)));
            }
            StmtKind::Run(run) => {
                if let Args::Named(_) = &run.args {
                    let n = self.argument(&run.args);
                    let v = task(&n, &mut self.calls).map_err(|m| failed(&m))?;
                    self.env.insert(run.name.text.clone(), v);
                    return Ok(());
                }
                let Args::Positional(args) = &run.args else { panic!() };
                if [
                    "length", "twice", "sum", "fold", "add", "find", "lit", "weight", "leaves", "read",
                    "steps",
                ]
                .contains(&&*run.target.text)
                    || MAP_FUNCTIONS.contains(&&*run.target.text)
                    || LIST_FUNCTIONS.contains(&&*run.target.text)
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
            StmtKind::Ensure(body, cleanup) => {
                let before = self.env.clone();
                let tried = self.block(body);
                let after = std::mem::replace(&mut self.env, before);
                let cleaned = self.block(cleanup);
                self.env = after;
                match (tried, cleaned) {
                    (Err(first @ (Signal::Fail(..) | Signal::Tired)), Err(later)) => {
                        return Err(first.or(later));
                    }
                    (_, Err(later)) => return Err(later),
                    (tried, Ok(())) => tried?,
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

    /// The only argument of a call.
    fn argument(&mut self, args: &Args) -> Data {
        match args {
            Args::Named(args) => self.expr(&args[0].1),
            Args::Positional(args) => self.expr(&args[0]),
        }
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
                let optional = match &*case.text {
                    "Node" => "of",
                    "Za" => "b",
                    _ => "m",
                };
                if all.len() == 1 && !["Leaf", "Zb"].contains(&&*case.text) {
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
            ExprKind::Call(f, args) if ["read", "steps"].contains(&&*f.text) => {
                let of = self.expr(&args[0]);
                Data::Num(if f.text == "read" { read(&of) } else { steps(&of) })
            }
            ExprKind::Call(f, args) if PER_ITEM.contains(&&*f.text) => {
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
                    "any" => Data::Bool(kept.next().is_some()),
                    "all" => Data::Bool(kept.count() == items.len()),
                    "count" => Data::Num(Num::from(kept.count() as i64)),
                    "sort_by" => {
                        let mut all: Vec<(&Data, &Data)> = given.iter().zip(items.iter()).collect();
                        all.sort_by(|a, b| in_order(a.0, b.0));
                        Data::list(all.into_iter().map(|(_, item)| item.clone()))
                    }
                    "group_by" => {
                        let mut keys: Vec<&Data> = Vec::new();
                        for k in &given {
                            if !keys.contains(&k) {
                                keys.push(k);
                            }
                        }
                        let of = |key: &Data| {
                            let own = items.iter().zip(&given).filter(|(_, g)| *g == key);
                            Data::list(own.map(|(i, _)| i.clone()).collect::<Vec<_>>())
                        };
                        let group = |key: &Data| {
                            Data::record([("key".into(), key.clone()), ("items".into(), of(key))])
                        };
                        Data::list(keys.into_iter().map(group).collect::<Vec<_>>())
                    }
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
            ExprKind::Call(f, args) if LIST_FUNCTIONS.contains(&&*f.text) => {
                let args: Vec<Data> = args.iter().map(|e| self.expr(e)).collect();
                of_list(&f.text, &args)
            }
            ExprKind::Template(t) => {
                let parts = t.parts.iter().map(|part| match part {
                    TemplatePart::Text(t) => t.value.clone(),
                    TemplatePart::Hole(e) => match self.expr(e) {
                        Data::Str(s) => s.to_string(),
                        Data::Num(n) => n.to_string(),
                        other => panic!("{other:?}"),
                    },
                });
                Data::str(parts.collect::<String>())
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
            ExprKind::Binary(BinaryOp::And, _, a, b) => match self.expr(a) {
                Data::Bool(true) => self.expr(b),
                _ => Data::Bool(false),
            },
            ExprKind::Unary(UnaryOp::Neg, e) => {
                let Data::Num(n) = self.expr(e) else { panic!() };
                Data::Num(Num::ZERO.sub(&n).unwrap())
            }
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
                    (BinaryOp::Add, Data::Str(a), Data::Str(b)) => Data::str(format!("{a}{b}")),
                    (BinaryOp::Add, Data::List(a), Data::List(b)) => {
                        Data::list(a.iter().chain(b.iter()).cloned().collect::<Vec<_>>())
                    }
                    (BinaryOp::Rem, Data::Num(a), Data::Num(b)) => Data::Num(a.rem(b).unwrap()),
                    (BinaryOp::Sub, Data::Num(a), Data::Num(b)) => Data::Num(a.sub(b).unwrap()),
                    (BinaryOp::Mul, Data::Num(a), Data::Num(b)) => Data::Num(a.mul(b).unwrap()),
                    (BinaryOp::Le, a, b) => Data::Bool(in_order(a, b).is_le()),
                    (BinaryOp::Gt, a, b) => Data::Bool(in_order(a, b).is_gt()),
                    (BinaryOp::Ge, a, b) => Data::Bool(in_order(a, b).is_ge()),
                    (BinaryOp::Lt, Data::Str(a), Data::Str(b)) => Data::Bool(a < b),
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

/// The `fn` of this name, which reads a record whose optional fields may be left out.
fn read(of: &Data) -> Num {
    let more = match of.field("l") {
        Some(Data::List(items)) => items.len() as i64,
        _ => 0,
    };
    let j = match of.field("j") {
        Some(Data::Num(j)) => j.clone(),
        _ => Num::from(7),
    };
    number_in(of, "k").add(&j).unwrap().add(&Num::from(more)).unwrap()
}

/// The `fn` of this name, which has loops that are left early.
fn steps(of: &Data) -> Num {
    let Data::Num(n) = of else { panic!() };
    let (mut m, two) = (n.clone(), Num::from(2));
    for _ in 0..3 {
        if m >= Num::from(5) {
            break;
        }
        if m == two {
            return m;
        }
        m = m.add(&Num::ONE).unwrap();
    }
    for i in [n.clone(), Num::ONE, Num::from(9)] {
        if i == two {
            continue;
        }
        if i > Num::from(8) {
            break;
        }
        m = m.add(&i).unwrap();
    }
    m
}

/// Numbers or texts in their order.
fn in_order(a: &Data, b: &Data) -> std::cmp::Ordering {
    match (a, b) {
        (Data::Num(a), Data::Num(b)) => a.cmp(b),
        (Data::Str(a), Data::Str(b)) => a.cmp(b),
        other => panic!("{other:?}"),
    }
}

/// Functions that apply a function to each item.
const PER_ITEM: &[&str] = &["map", "filter", "find", "any", "all", "count", "sort_by", "group_by"];

const LIST_FUNCTIONS: &[&str] = &[
    "sort",
    "reverse",
    "unique",
    "flatten",
    "zip",
    "min",
    "max",
    "append",
    "slice",
    "range",
    "contains",
    "join",
    "split",
    "upper",
    "replace",
    "starts_with",
    "pad_start",
    "to_string",
    "to_number",
    "abs",
    "round",
    "floor",
];

/// A function of lists, texts and numbers.
fn of_list(name: &str, args: &[Data]) -> Data {
    let number = |n: &Num| Data::Num(n.clone());
    match (name, args) {
        ("sort", [Data::List(items)]) => {
            let mut all = items.to_vec();
            all.sort_by(in_order);
            Data::list(all)
        }
        ("reverse", [Data::List(items)]) => Data::list(items.iter().rev().cloned().collect::<Vec<_>>()),
        ("reverse", [Data::Str(s)]) => Data::str(s.chars().rev().collect::<String>()),
        ("unique", [Data::List(items)]) => {
            let mut all: Vec<Data> = Vec::new();
            for item in items.iter() {
                if !all.contains(item) {
                    all.push(item.clone());
                }
            }
            Data::list(all)
        }
        ("flatten", [Data::List(items)]) => {
            let inner = |d: &Data| match d {
                Data::List(items) => items.to_vec(),
                other => panic!("{other:?}"),
            };
            Data::list(items.iter().flat_map(inner).collect::<Vec<_>>())
        }
        ("zip", [Data::List(a), Data::List(b)]) => {
            let pair = |(a, b): (&Data, &Data)| {
                Data::record([("first".into(), a.clone()), ("second".into(), b.clone())])
            };
            Data::list(a.iter().zip(b.iter()).map(pair).collect::<Vec<_>>())
        }
        ("min" | "max", [Data::List(items)]) => {
            let least = match name {
                "min" => items.iter().min_by(|a, b| in_order(a, b)),
                _ => items.iter().max_by(|a, b| in_order(a, b)),
            };
            least.cloned().unwrap_or(Data::Null)
        }
        ("min", [Data::Num(a), Data::Num(b)]) => number(a.min(b)),
        ("max", [Data::Num(a), Data::Num(b)]) => number(a.max(b)),
        ("append", [Data::List(items), item]) => {
            Data::list(items.iter().chain([item]).cloned().collect::<Vec<_>>())
        }
        ("slice", [Data::List(items), Data::Num(from), Data::Num(to)]) => {
            let at = |n: &Num| n.to_usize().unwrap().min(items.len());
            Data::list(items.get(at(from)..at(to)).unwrap_or_default().to_vec())
        }
        ("range", [Data::Num(from), Data::Num(to)]) => {
            let (from, to) = (from.to_i64().unwrap(), to.to_i64().unwrap());
            Data::list((from..to).map(|n| Data::Num(Num::from(n))).collect::<Vec<_>>())
        }
        ("contains", [Data::List(items), item]) => Data::Bool(items.contains(item)),
        ("contains", [Data::Str(s), Data::Str(part)]) => Data::Bool(s.contains(&**part)),
        ("join", [Data::List(items), Data::Str(by)]) => {
            let texts: Vec<&str> = items.iter().filter_map(Data::as_str).collect();
            Data::str(texts.join(by))
        }
        ("split", [Data::Str(s), Data::Str(by)]) => {
            Data::list(s.split(&**by).map(Data::str).collect::<Vec<_>>())
        }
        ("upper", [Data::Str(s)]) => Data::str(s.to_uppercase()),
        ("replace", [Data::Str(s), Data::Str(old), Data::Str(new)]) => Data::str(s.replace(&**old, new)),
        ("starts_with", [Data::Str(s), Data::Str(part)]) => Data::Bool(s.starts_with(&**part)),
        ("pad_start", [Data::Str(s), Data::Num(n)]) => {
            let missing = n.to_usize().unwrap().saturating_sub(s.chars().count());
            Data::str(" ".repeat(missing) + s)
        }
        ("to_string", [Data::Num(n)]) => Data::str(n.to_string()),
        ("to_number", [Data::Str(s)]) => Data::Num(s.parse().unwrap()),
        // All numbers of the generated programs are whole.
        ("round" | "floor", [Data::Num(n)]) => number(n),
        ("abs", [Data::Num(n)]) if *n < Num::ZERO => Data::Num(Num::ZERO.sub(n).unwrap()),
        ("abs", [Data::Num(n)]) => number(n),
        other => panic!("{other:?}"),
    }
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
                let response = match &request.call {
                    Call::Tool { args, .. } => Response::Tool(task(&args[0].1, &mut calls)),
                    Call::Model { messages, .. } => {
                        let text = reply(&messages.last().expect("a prompt").content);
                        Response::Model(Ok(machine::Reply::Text(text)))
                    }
                    other => panic!("{other:?}"),
                };
                machine.handle(id, response);
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

    /// A number that is computed from a list or a text.
    fn of_list(&mut self) -> String {
        let (x, y) = (self.var(), self.var());
        match self.below(20) {
            0 => format!("[{x}, {y}, 3].sort_by(i => 0 - i)[0]"),
            1 => format!("[{{ k: {x}, i: 1 }}, {{ k: {y}, i: 2 }}].sort_by(i => i.k)[1].i"),
            2 => format!("[{x}, {y}, 2, a].group_by(i => i % 2).map(g => g.key * 10 + g.items.sum()).sum()"),
            3 => format!("[{x}, {y}].count(i => i < 2) + [{y}].reverse()[0]"),
            4 => format!("([{x}, {y}].max() ?? {x}) - min({x}, {y})"),
            5 => format!("zip([{x}, {y}], [1, 2, 3]).map(p => p.first - p.second).sum()"),
            6 => format!("length([[{x}], [{y}, {x}]].flatten().unique())"),
            7 => format!("range(0, 3).map(i => i * {x}).sum() + slice([{x}, {y}], 1, 5).sum()"),
            8 => format!("append([{x}], {y}).sort()[0]"),
            9 => format!("if [{x}, {y}].any(i => i == {}) {{ {x} }} else {{ {y} }}", self.below(4)),
            10 => format!("if [{x}, {y}].all(i => i >= {}) {{ {x} }} else {{ {y} }}", self.below(3)),
            11 => format!("if contains([{x}, {y}], c) {{ {x} }} else {{ -{y} }}"),
            12 => format!("length(f\"{{{x}}}-{{s}}\" + upper(s))"),
            13 => format!("s.replace(\"x\", \"yz\").length() + {x}"),
            14 => format!("split(s + \"x-\", \"x\").map(length).sum() + {y}"),
            15 => format!("length([s, \"q\"].join(\"+\").pad_start(5)) + {x}"),
            16 => format!("to_number(to_string({x})) + abs({y}) + round({x})"),
            17 => format!("[{x}, {y}].map(i => {{ let j = i + 1; if j > 2 {{ j }} else {{ {x} }} }}).sum()"),
            18 => format!("([] + [{x}]).sum() + length([{y}] + [a, b])"),
            _ => format!(
                "if s.starts_with(\"xy\") && {x} <= {y} {{ {x} }} else if {x} > {y} {{ {y} }} else {{ 3 }}"
            ),
        }
    }

    /// A number that is computed from a record or a case of a sum type.
    fn of_record(&mut self) -> String {
        let (x, y) = (self.var(), self.var());
        match self.below(14) {
            0 => format!("read({{ k: {x} }})"),
            1 => format!("read({{ k: {x}, j: {y} }})"),
            2 => format!("read({{ k: {x}, j: o, l: [{y}] }})"),
            3 => format!("({{ {x}, k: {y} }}).{x}"),
            4 => format!("[{{ a, k: {y} }}, {{ a: {x}, k: 1 }}].map(r => r.a + r.k).sum()"),
            5 => format!("match {} {{ Za {{ a: q, b: w }} => q + (w ?? 1), Zb {{ s }} => length(s) }}", ["Za { a }", "(Za { a })"][self.below(2) as usize]),
            6 => format!("match z {{ Za {{ a: q, b }} => q + (b ?? {x}), Zb {{ s: w }} => length(w) + {y} }}"),
            7 => "match (if a < b { Za { a, b } } else { Zb { s } }) { Za { a: q, b: w } => q + (w ?? c), Zb { s: w } => length(w) }".into(),
            8 => format!("steps({x} + {y})"),
            9 => format!("[{x}, {y}].map(steps).sum()"),
            10 => format!("[{{ k: {x}, j: null, l: null }}].map(read).sum()"),
            11 => format!("if let Za {{ a: q, b: w }} = z {{ q + (w ?? {x}) }} else {{ {y} }}"),
            12 => format!("if let Q {{ n: {x} }} = u {{ {x} + 1 }} else if {x} < {y} {{ {y} }} else {{ 2 }}"),
            _ => format!("if Za {{ a }} == z {{ {x} }} else {{ {y} }}"),
        }
    }

    fn number(&mut self) -> String {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        if byte >= 236 {
            self.at += 1;
            return match self.below(6) {
                0 => self.of_map(),
                1 => self.of_list(),
                2 => self.of_record(),
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
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        if byte >= 244 {
            self.at += 1;
            let (x, y) = (self.number(), self.var());
            return match byte % 12 {
                0 => format!("({x}) <= {y} && !({y} == 1)"),
                1 => format!("({x}) > {y} || {y} >= 2"),
                2 => format!("[{y}, {x}].any(i => i < {y})"),
                3 => format!("[{y}, {x}].all(i => i != 1)"),
                4 => format!("contains([{x}], {y})"),
                5 => format!("s.starts_with(\"x\") && ({x}) < {y}"),
                6 => "u == P".into(),
                7 => "e == \"red\" || v != \"a\"".into(),
                8 => format!("o != null && o < ({x})"),
                9 => format!("o == null || o + {y} < ({x})"),
                10 => format!("if ({x}) < {y} {{ {y} == 1 }} else {{ true }}"),
                _ => format!("match v {{ \"a\" => ({x}) == {y}, \"b\" => {y} != 0 }}"),
            };
        }
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

    /// The block of an `ensure`: it calls, and may fail, but can't be left.
    fn cleanup(&mut self, depth: u8, out: &mut String) {
        let mut inner = String::new();
        self.block(depth + 2, false, &mut inner);
        if inner.contains("return") {
            inner = format!("{{ let {} = t({}); }} ", self.var(), self.plain_number());
        }
        out.push_str(&inner);
    }

    /// Writes a statement. Returns true if the block ends with it.
    fn stmt(&mut self, depth: u8, in_loop: bool, out: &mut String) -> bool {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        let kind = if depth > 4 || self.at > self.bytes.len() {
            self.below(4)
        } else if byte >= 240 {
            self.at += 1;
            23 + byte % 16 + if byte % 16 == 15 { self.below(3) } else { 0 }
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
            31 => {
                let x = self.var();
                let line = match self.below(5) {
                    0 => format!("let {x} = run t with {{ n: {} }}; ", self.plain_number()),
                    1 => format!("let {x} = run judge_a with {{ a }} by reader; "),
                    2 => format!(
                        "let {x} = run judge with {{ n: {} }} by reader retries 1; ",
                        self.plain_number()
                    ),
                    3 => format!("let {x} = t({}) timeout 5 on_fail use {}; ", self.number(), self.var()),
                    _ => format!("let {x} = flow({}); ", self.number()),
                };
                out.push_str(&line);
            }
            32 => {
                let line = match self.below(5) {
                    0 => format!("let z = Za {{ a: {} }}; ", self.plain_number()),
                    1 => "let z = Za { a, b }; ".to_string(),
                    2 => "let z = Zb { s }; ".to_string(),
                    3 => format!(
                        "let k1: R = {{ k: {} }}; let {} = read(k1) + read({{ ...k1, j: {} }}); ",
                        self.number(),
                        self.var(),
                        self.var()
                    ),
                    _ => format!(
                        "let k2 = {{ a, s, k: {} }}; let {} = k2.a + k2.k; let s = k2.s; ",
                        self.number(),
                        self.var()
                    ),
                };
                out.push_str(&line);
            }
            // What a branch that leaves the block does not bind, the other ways do.
            33 => {
                self.fresh += 1;
                let n = self.fresh;
                out.push_str(&format!("if {} ", self.condition()));
                let (value, read) = (self.number(), self.var());
                let left = format!("{{ return [{}, a, {n}]; }} ", self.var());
                let bound = format!("{{ let f{n} = {value}; }} ");
                let (first, second) = if self.below(2) == 0 { (left, bound) } else { (bound, left) };
                out.push_str(&format!("{first}else {second}let {read} = f{n}; "));
            }
            34 => {
                self.fresh += 1;
                let n = self.fresh;
                let (x, y, value) = (self.var(), self.var(), self.plain_number());
                let line = match self.below(4) {
                    0 => format!(
                        "try {{ let f{n} = t({value}); }} catch m {{ return [{x}, length(m) - length(m), {n}]; }} let {y} = f{n}; "
                    ),
                    1 => format!(
                        "match e {{ red => {{ return [{x}, 1, 2]; }} green => {{ let f{n} = {value}; }} blue => {{ let f{n} = {x}; }} }} let {y} = f{n}; "
                    ),
                    2 => format!(
                        "match z {{ Za {{ a: q }} => {{ let f{n} = q + {x}; }} Zb {{ s: q }} => {{ return [length(q), {x}, {y}]; }} }} let {y} = f{n}; "
                    ),
                    _ => format!(
                        "if let q = o {{ let f{n} = q + {x}; }} else {{ return [{value}, 2, c]; }} let {y} = f{n}; "
                    ),
                };
                out.push_str(&line);
            }
            35 => {
                out.push_str(&format!("if {} ", self.condition()));
                self.block(depth, in_loop, out);
                out.push_str(&format!("else if {} ", self.condition()));
                self.block(depth, in_loop, out);
                out.push_str("else ");
                self.block(depth, in_loop, out);
            }
            36 => {
                self.fresh += 1;
                let n = self.fresh;
                let (max, x, y) = (1 + self.below(4), self.var(), self.var());
                out.push_str(&format!("while true max {max} {{ if {} {{ ", self.condition()));
                out.push_str(["break;", "continue;"][self.below(2) as usize]);
                let value = self.number();
                out.push_str(&format!(" }} else {{ let f{n} = {value}; }} let {x} = f{n} + {y}; }} "));
            }
            37 => {
                let x = self.var();
                let line = match self.below(4) {
                    0 => format!("for i in [{x}, {}].sort() {{ let {x} = {x} + i; }} ", self.number()),
                    1 => format!(
                        "for i in range(0, {}) {{ if i == {x} {{ continue; }} let {x} = {} + i; }} ",
                        self.below(4),
                        self.number()
                    ),
                    2 => format!(
                        "for g in [a, b, c].group_by(i => i < {}) {{ let {x} = g.items[0] + {x}; }} ",
                        self.var()
                    ),
                    _ => format!(
                        "let t1 = \"\"; for i in split(s, \"\") {{ let t1 = t1 + i; }} let {x} = length(t1) + {}; ",
                        self.number()
                    ),
                };
                out.push_str(&line);
            }
            39 => {
                let head =
                    ["if let Za { a: q } = z ", "if let Zb { s: q } = z ", "if let Q { n: a, m: q } = u "]
                        [self.below(3) as usize];
                out.push_str(head);
                self.block(depth, in_loop, out);
                match self.below(3) {
                    0 => {}
                    1 => {
                        out.push_str("else ");
                        self.block(depth, in_loop, out);
                    }
                    _ => {
                        out.push_str("else if let Q { n: q } = u ");
                        self.block(depth, in_loop, out);
                    }
                }
            }
            // Variables whose first value says little.
            40 => {
                self.fresh += 1;
                let (n, x, y) = (self.fresh, self.var(), self.var());
                let line = match self.below(4) {
                    0 => format!(
                        "let f{n} = []; for i in [{x}, {y}, 2] {{ let f{n} = append(f{n}, i + {y}); }} let {x} = f{n}.sum(); "
                    ),
                    1 => format!(
                        "let f{n} = {{}}; for i in [{x}, {y}, 2] {{ let f{n} = f{n}.set(to_string(i), (f{n}[\"2\"] ?? {x}) + 1); }} let {y} = values(f{n}).sum(); "
                    ),
                    2 => format!(
                        "let f{n} = null; for i in [{x}, {y}, c] {{ if f{n} == null || i > f{n} {{ let f{n} = i; }} }} let {x} = f{n} ?? {y}; "
                    ),
                    _ => format!(
                        "let f{n} = []; let g{n} = f{n}; while length(g{n}) < 2 max 3 {{ let g{n} = [{x}] + g{n}; if {y} < 1 {{ let g{n} = []; }} }} let {y} = length(g{n}); "
                    ),
                };
                out.push_str(&line);
            }
            38 => {
                let (x, y) = (self.var(), self.plain_number());
                let line = match self.below(4) {
                    0 => format!("let s = f\"{{s}}{{{x}}}\"; "),
                    1 => format!(
                        "try {{ if {x} < {y} {{ let {x} = t({y}); return [{x}, 0, c]; }} }} catch error q {{ let s = q.code; }} "
                    ),
                    2 => format!("assert {x} >= 0 || {y} < 9 && {x} != 3, f\"n{{{x}}}\"; "),
                    _ => format!(
                        "try {{ assert {x} > {y}, \"less\"; let {x} = t({y}); }} catch error q {{ assert q.code != \"fail\", f\"again {{q.code}}\"; let s = q.message; }} "
                    ),
                };
                out.push_str(&line);
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
                let byte = self.bytes.get(self.at).copied().unwrap_or(0);
                if byte >= 224 {
                    self.at += 1;
                    out.push_str("ensure ");
                    self.cleanup(depth, out);
                    return false;
                }
                let kind = self.below(4) as usize;
                out.push_str(["catch m ", "catch s ", "catch error q ", "catch refusal q "][kind]);
                if kind > 1 {
                    out.push_str("{ let m = q.message; let s = q.code; if m != \"\" ");
                }
                self.block(depth, in_loop, out);
                if kind > 1 {
                    out.push_str("} ");
                }
                if self.bytes.get(self.at).is_some_and(|b| *b >= 224) {
                    self.at += 1;
                    out.push_str("ensure ");
                    self.cleanup(depth, out);
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

pub(crate) fn program(bytes: &[u8]) -> String {
    let mut choices = Choices { bytes, at: 0, fresh: 0 };
    let mut body = String::new();
    for _ in 0..3 + choices.below(8) {
        if choices.stmt(0, false, &mut body) {
            break;
        }
    }
    format!(
        "agent reader {{ tools: [] }}\ntask judge(n: Number) -> Number by agent {{ prompt \"judge {{n}}\" }}\ntask judge_a(a: Number) -> Number by agent {{ examples [{{ input: {{ a: 1 / 3 }}, output: twice(2) }}] prompt \"judge {{a}}\" }}\n\
         workflow flow(n: Number) -> Number {{ stage m = reader does judge(n); stage k = reader does judge(m + 1); return k; }}\n\
         type R = Obj{{k: Number, j: Option[Number], l: Option[List[Number]]}};\ntype Z = Za {{ a: Number, b: Option[Number] }} | Zb {{ s: String }};\n\
         fn read(r: R) -> Number {{ r.k + (r.j ?? 7) + length(r.l ?? []) }}\n\
         fn steps(n: Number) -> Number {{ let m = n; while m < 5 max 3 {{ if m == 2 {{ return m; }} let m = m + 1; }} for i in [n, 1, 9] {{ if i == 2 {{ continue; }} if i > 8 {{ break; }} let m = m + i; }} m }}\n\
         const K = J + 1;\nconst J: Number = 3;\ntype V = \"a\" | \"b\";\ntype Small = Number where it < 9 && it >= 0;\n\
         enum E {{ red, green, blue }}\ntype W = Obj{{n: Number, more: List[W]}};\ntype L = Leaf {{ n: Number }} | Node {{ left: L, of: Option[W] }};\ntype U = P | Q {{ n: Number, m: Option[Number] }};\ntask t(n: Number) -> Number {{}}\n\
         fn twice(n: Number) -> Number {{ if n < 2 {{ n }} else {{ let m = n + n; m }} }}\n\
         fn pick[T](xs: List[T], other: T) -> T {{ xs.find(x => true) ?? other }}\n\
         fn lit(v: V) -> Number {{ match v {{ \"a\" => 1, \"b\" => 2 }} }}\n\
         fn weight(w: W, by: Number = 1) -> Number {{ w.n * by + w.more.map(v => weight(v, by + 1)).sum() }}\n\
         fn leaves(l: L) -> Number {{ match l {{ Leaf {{ n }} => n, Node {{ left, of }} => {{ let own = if let w = of {{ weight(w) }} else {{ 0 }}; own + leaves(left) }} }} }}\n\
         fn add(n: Number, m: Number = 10) -> Number {{ n + m }}\n\
         pipeline sub(n: Number) -> Number {{ if n < 2 {{ return 0; }} let m = t(n); return m; }}\n\
         pipeline down(n: Number) -> Number {{ if n < 1 {{ return n; }} let m = t(n) on_fail use n; let r = down(n - 1); return m + r; }}\n\
         pipeline p(a: Number, b: Number, c: Number, s: String, o: Option[Number], n: Option[Number], e: E, v: V, u: U, z: Z, h: Map[String, Number], w: W, l: L, r: Option[Obj{{k: Number, j: Option[Number]}}]) -> List[Number] {{\n\
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

/// The input of `p`.
pub(crate) fn inputs(variant: &str) -> Vec<(Name, Data)> {
    let number = |n: i64| Data::Num(Num::from(n));
    [
        ("a", number(1)),
        ("b", number(2)),
        ("c", number(0)),
        ("s", Data::str("xy")),
        ("o", number(5)),
        ("n", Data::Null),
        ("e", Data::str(variant)),
        ("v", Data::str("b")),
        ("w", tree(2)),
        (
            "z",
            match variant {
                "red" => Data::Tag(
                    "Zb".into(),
                    std::sync::Arc::new(Data::record([("s".into(), Data::str("zed"))])),
                ),
                _ => Data::Tag(
                    "Za".into(),
                    std::sync::Arc::new(Data::record([("a".into(), number(1)), ("b".into(), Data::Null)])),
                ),
            },
        ),
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
    .collect()
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
    let input = inputs(variant);
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
        "weight", "leaves", "add", "sub", "down", "reader", "judge", "judge_a", "flow", "R", "Z", "Za", "Zb",
        "read", "steps",
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

pub(crate) fn programs() -> u32 {
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

/// Constructs that are in generated programs, as they are written there.
const CONSTRUCTS: &[&str] = &[
    "sort_by",
    "group_by",
    ".count(",
    "reverse()",
    "min(",
    ".max()",
    "zip(",
    "flatten()",
    "unique()",
    "range(",
    "slice(",
    "append(",
    ".sort()",
    ".any(",
    ".all(",
    "contains(",
    "f\"",
    "upper(",
    "replace(",
    "split(",
    "join(",
    "pad_start(",
    "to_number(",
    "starts_with(",
    "read({ k: a })",
    ".map(read)",
    "match (Za { a })",
    "{ a, k: ",
    "match Za { a }",
    "match z",
    "Za { a, b }",
    "Zb { s }",
    "steps(",
    "run t with",
    "run judge_a with { a }",
    "run judge with",
    "timeout 5",
    "flow(",
    "else if",
    "while true max",
    "{ return [a, a, ",
    "catch m { return",
    "return [length(q), ",
    "let q = w.more",
    "if let Zb { s: q } = z",
    "else if let Q",
    "if let Za { a: q, b: w } = z",
    " = []; for i",
    " = {}; for i",
    " = null; for i",
    " = []; let g",
    "continue;",
    "break;",
    "o != null && o <",
    "o == null || o +",
    "&& !(",
    "for g in",
    "for i in range",
    "parallel max",
    "parallel for",
    "guard ",
    "endorse ",
    "let u = P",
    "h.set(",
    "weight(",
    "leaves(",
    "pick(",
    "Small",
    "Int",
    "?.",
    "??",
    "if let",
    "catch error",
    "catch refusal",
    "} ensure { ",
    "retries 2 on_fail use a",
];

/// The generator would be of no use if most of its programs were refused, or those with some construct.
#[test]
fn most_generated_programs_are_accepted_and_end() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let (mut compared, mut with) = (0, vec![0; CONSTRUCTS.len()]);
    for i in 0..1000 {
        // Half of them have more of what is rare.
        let bytes: Vec<u8> = (0..120)
            .map(|_| if i % 2 == 0 { next() } else { next() | [0, 240][usize::from(next() < 60)] })
            .collect();
        if compare(&bytes, "green", false).is_some() {
            compared += 1;
            let text = program(&bytes);
            let body = &text[text.find("pipeline p(").unwrap()..];
            for (n, construct) in with.iter_mut().zip(CONSTRUCTS) {
                *n += u32::from(body.contains(construct));
            }
        }
    }
    let few: Vec<_> = CONSTRUCTS.iter().zip(&with).filter(|(_, n)| **n < 3).collect();
    assert!(compared > 500 && few.is_empty(), "{compared} compared; {few:?}");
}
