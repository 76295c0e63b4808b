//! Programs that count: loops over lists and up or down from numbers that are known only when they run.
//! Guards, assertions and conditions say how large these are. Loops are nested and left early, and have
//! states of several shapes. A bound on rounds can be wrong about which of these conditions
//! holds where.
//!
//! Entry point: [`counting`]. Invariant: the text is a closed `.lam` program, a function of an input such as
//! [`counting_input`] gives. An operation on a value of another type ends a run, which is a run as well.

use super::random::Rng;
use core_ir::{Data, Num};
use std::fmt::Write;

/// A `.lam` program of a seed, about as large as `size`.
pub fn counting(seed: u64, size: u32) -> String {
    let mut making =
        Making { rng: Rng::new(seed), numbers: Vec::new(), lists: Vec::new(), next: 0, down: false };
    making.numbers.extend(["input.n".into(), "input.m".into()]);
    making.lists.extend(["input.xs".into(), "input.ys".into()]);
    let mut limits = String::new();
    for what in ["input.n", "input.m", "prim[length](input.xs)", "prim[length](input.ys)"] {
        if making.rng.chance(85) {
            let most = 4 + making.rng.below(5);
            let _ = write!(limits, "let _ = if {what} <= {most} then null else fail 'large' in ");
        }
    }
    let body = making.statements(size);
    format!("tool t(a: Num) -> Num read\n\\input. {limits}{body}\n")
}

/// An input of [`counting`] programs.
pub fn counting_input(seed: u64) -> Data {
    let mut rng = Rng::new(seed);
    let mut list = || {
        let n = rng.below(6);
        Data::list((0..n).map(|_| Data::Num(small(&mut rng))))
    };
    let (xs, ys) = (list(), list());
    let (n, m) = (small(&mut rng), small(&mut rng));
    Data::record([("xs".into(), xs), ("ys".into(), ys), ("n".into(), n.into()), ("m".into(), m.into())])
}

/// A number from -2 to 8, sometimes between two whole ones.
pub fn small(rng: &mut Rng) -> Num {
    let whole = Num::from(rng.below(11) as i64 - 2);
    let half = Num::ONE.div(&Num::from(2)).unwrap_or(Num::ONE);
    if rng.chance(80) { whole } else { whole.add(&half).unwrap_or(whole) }
}

struct Making {
    rng: Rng,
    /// Terms that read numbers and lists of numbers.
    numbers: Vec<String>,
    lists: Vec<String>,
    next: usize,
    /// True if the loop around this place counts down.
    down: bool,
}

impl Making {
    fn name(&mut self, of: &str) -> String {
        self.next += 1;
        format!("{of}{}", self.next)
    }

    fn one(&mut self, of: &[&str]) -> String {
        self.rng.pick(of).map_or(String::new(), |(_, s)| (*s).to_string())
    }

    /// With the variables in scope as before.
    fn inside<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let (numbers, lists) = (self.numbers.len(), self.lists.len());
        let out = f(self);
        self.numbers.truncate(numbers);
        self.lists.truncate(lists);
        out
    }

    /// A variable, later ones more often.
    fn number_variable(&mut self) -> String {
        let n = self.numbers.len();
        let i = self.rng.below(n).max(self.rng.below(n));
        self.numbers.get(i).cloned().unwrap_or_else(|| "1".into())
    }

    fn list_variable(&mut self) -> String {
        let n = self.lists.len();
        let i = self.rng.below(n).max(self.rng.below(n));
        self.lists.get(i).cloned().unwrap_or_else(|| "[1]".into())
    }

    fn number(&mut self, depth: u32) -> String {
        match self.rng.below(if depth == 0 { 6 } else { 11 }) {
            0..2 => self.rng.below(7).to_string(),
            2..5 => self.number_variable(),
            5 | 6 => format!("prim[length]({})", self.list_variable()),
            7 => format!("(-{})", self.number_variable()),
            8 => format!("(if {} then {} else {})", self.condition(0), self.number(0), self.number(0)),
            _ => {
                let (a, b) = (self.number(depth - 1), self.number(depth - 1));
                format!("({a} {} {b})", self.one(&["+", "-", "-", "+", "*"]))
            }
        }
    }

    fn list(&mut self, depth: u32) -> String {
        match self.rng.below(if depth == 0 { 4 } else { 10 }) {
            0 => "[1, 2]".into(),
            1..6 => self.list_variable(),
            6 => format!("prim[append]({}, {})", self.list(depth - 1), self.number(0)),
            7 => format!("prim[range]({}, {})", self.number(0), self.number(0)),
            8 => format!("prim[slice]({}, {}, {})", self.list(depth - 1), self.rng.below(3), self.number(0)),
            _ => format!("({} + {})", self.list(depth - 1), self.list(depth - 1)),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        match self.rng.below(if depth == 0 { 6 } else { 10 }) {
            0..6 => {
                let a = if self.rng.chance(40) { self.number(1) } else { self.number_variable() };
                let op = self.one(&["<", "<=", ">", ">=", "==", "!=", "<", ">"]);
                format!("{a} {op} {}", self.number(1))
            }
            6 | 7 => format!("({}) && ({})", self.condition(depth - 1), self.condition(depth - 1)),
            8 => format!("({}) || ({})", self.condition(depth - 1), self.condition(depth - 1)),
            _ => format!("!({})", self.condition(depth - 1)),
        }
    }

    /// A condition that says how large something is at most.
    fn limit(&mut self) -> String {
        let what = match self.rng.chance(50) {
            true => format!("prim[length]({})", self.list_variable()),
            false => self.number_variable(),
        };
        let n = 3 + self.rng.below(6);
        match self.rng.below(8) {
            0 => format!("{what} < {n}"),
            1 => format!("{what} <= {}", self.number(0)),
            2 => format!("{n} > {what}"),
            3 => format!("({what} <= {n}) && ({})", self.condition(0)),
            _ => format!("{what} <= {n}"),
        }
    }

    fn call(&mut self) -> String {
        match self.rng.chance(70) {
            true => format!("tool[t] {{a: {}}}", self.number(0)),
            false => "(llm 'p') 'x'".into(),
        }
    }

    /// A term for a number, after some that bind variables, test them and call.
    fn statements(&mut self, size: u32) -> String {
        let Some(size) = size.checked_sub(1) else { return self.number(1) };
        match self.rng.below(16) {
            0 => {
                let (v, call) = (self.name("c"), self.call());
                if call.starts_with("tool") {
                    self.numbers.push(v.clone());
                }
                format!("let {v} = {call} in {}", self.statements(size))
            }
            1 => {
                let (v, of) = (self.name("n"), self.number(2));
                self.numbers.push(v.clone());
                format!("let {v} = {of} in {}", self.statements(size))
            }
            2 => {
                let (v, of) = (self.name("l"), self.list(2));
                self.lists.push(v.clone());
                format!("let {v} = {of} in {}", self.statements(size))
            }
            3 | 4 => {
                let limit = self.limit();
                let check = match self.rng.below(6) {
                    0 | 1 => format!("if !({limit}) then fail 'no' else null"),
                    2 => {
                        let (l, r, a) = (self.name("left"), self.name("right"), self.number(1));
                        let b = 4 + self.rng.below(4);
                        format!("let {l} = {a} in let {r} = {b} in if {l} <= {r} then null else fail 'no'")
                    }
                    3 => {
                        let (l, xs) = (self.name("many"), self.list_variable());
                        format!("let {l} = prim[length]({xs}) > 5 in if {l} then fail 'no' else null")
                    }
                    _ => format!("if {limit} then null else fail 'no'"),
                };
                format!("let _ = {check} in {}", self.statements(size))
            }
            5 => {
                let (v, of, n) = (self.name("g"), self.number_variable(), 2 + self.rng.below(7));
                self.numbers.push(v.clone());
                let p = self.one(&["value <=", "value <", "value >= -1 && value <="]);
                format!("let {v} = guard ({of}) {p} {n} in {}", self.statements(size))
            }
            6 => {
                let (v, of, n) = (self.name("g"), self.list_variable(), 2 + self.rng.below(5));
                self.lists.push(v.clone());
                let p = self.one(&["length <=", "length <", "length <=", "length ==", "!length >"]);
                format!("let {v} = guard ({of}) {p} {n} in {}", self.statements(size))
            }
            7 | 8 => {
                let (limit, small) = (self.limit(), self.number(0));
                let rest = self.inside(|m| m.statements(size));
                match self.rng.chance(50) {
                    true => format!("if {limit} then {rest} else {small}"),
                    false => format!("if !({limit}) then {small} else {rest}"),
                }
            }
            9 => {
                let (x, list, v) = (self.name("x"), self.list(1), self.name("e"));
                let body = self.inside(|m| {
                    m.numbers.push(x.clone());
                    m.statements(size / 3)
                });
                self.lists.push(v.clone());
                format!("let {v} = each[1] (\\{x}. {body}) ({list}) in {}", self.statements(size / 2))
            }
            _ => {
                let (v, looped) = (self.name("r"), self.inside(|m| m.looped(size / 2)));
                self.numbers.push(v.clone());
                format!("let {v} = {looped} in {}", self.statements(size / 2))
            }
        }
    }

    /// A loop over a state of one number, or of two numbers and a list.
    fn looped(&mut self, size: u32) -> String {
        let (again, state) = (self.name("s"), self.name("p"));
        let around = self.down;
        self.down = self.rng.chance(35);
        let looped = self.looped_inside(&again, &state, size);
        self.down = around;
        looped
    }

    fn looped_inside(&mut self, again: &str, state: &str, size: u32) -> String {
        let bound = if self.rng.chance(85) { "inf".to_string() } else { self.rng.below(6).to_string() };
        let start = |m: &mut Self| match m.down {
            true if m.rng.chance(70) => m.one(&["input.n", "input.m", "prim[length](input.xs)"]),
            true => m.number_variable(),
            false if m.rng.chance(80) => "0".into(),
            false => m.number(1),
        };
        if self.rng.chance(30) {
            let first = start(self);
            self.numbers.push(state.to_string());
            let body = self.round(again, &[(state.to_string(), None)], size);
            return format!("(fix[{bound}] (\\{again}. \\{state}. {body})) ({first})");
        }
        let tagged = self.rng.chance(30);
        let (i, j, list) = (start(self), self.number(1), self.list(1));
        let first = format!("{{i: {i}, j: {j}, xs: {list}}}");
        let parts = [(format!("{state}.i"), Some("i")), (format!("{state}.j"), Some("j"))];
        self.lists.push(format!("{state}.xs"));
        self.numbers.extend(parts.iter().rev().map(|(p, _)| p.clone()));
        let again_with = if tagged { format!("{again} `next ") } else { again.to_string() };
        let body = self.round(again_with.trim_end(), &parts, size);
        // A bound that is reached gives the state back, which is no number.
        match tagged {
            true => {
                let t = self.name("t");
                let cases = format!("case {t} of {{next {state} => {body}}}");
                format!("(fix[inf] (\\{again}. \\{t}. {cases})) (`next {first})")
            }
            false => format!("(fix[inf] (\\{again}. \\{state}. {body})) {first}"),
        }
    }

    /// The body of a loop: a condition, calls, and what begins the next round.
    fn round(&mut self, again: &str, parts: &[(String, Option<&str>)], size: u32) -> String {
        let i = parts[0].0.clone();
        let limit = match (self.down, self.rng.below(5)) {
            (_, 0) => self.condition(1),
            (true, _) => format!("{i} {} {}", self.one(&[">", ">="]), self.number(0)),
            (false, 1) => format!("{i} {} {}", self.one(&["<", "<="]), self.number(1)),
            (false, _) => format!("{i} < prim[length]({})", self.list_variable()),
        };
        let condition = match self.rng.below(4) {
            0 => format!("({limit}) && ({})", self.condition(0)),
            1 => format!("({}) && ({limit})", self.condition(0)),
            _ => limit,
        };
        let called = if self.rng.chance(60) { format!("let _ = {} in ", self.call()) } else { String::new() };
        let then = self.inside(|m| m.round_inside(again, parts, size));
        format!("if {condition} then ({called}{then}) else {}", self.number(0))
    }

    fn round_inside(&mut self, again: &str, parts: &[(String, Option<&str>)], size: u32) -> String {
        let Some(size) = size.checked_sub(1) else { return self.next(again, parts) };
        match self.rng.below(9) {
            0..3 => {
                let (v, call) = (self.name("c"), self.call());
                if call.starts_with("tool") {
                    self.numbers.push(v.clone());
                }
                format!("let {v} = {call} in {}", self.round_inside(again, parts, size))
            }
            3 => {
                let (v, of) = (self.name("n"), self.number(1));
                self.numbers.push(v.clone());
                format!("let {v} = {of} in {}", self.round_inside(again, parts, size))
            }
            // `break`
            4 => {
                let (condition, last) = (self.condition(1), self.number(0));
                let rest = self.inside(|m| m.round_inside(again, parts, size));
                format!("if {condition} then {last} else ({rest})")
            }
            // `continue`
            5 => {
                let condition = self.condition(1);
                let (one, other) = (
                    self.inside(|m| m.round_inside(again, parts, size / 2)),
                    self.inside(|m| m.round_inside(again, parts, size / 2)),
                );
                format!("if {condition} then ({one}) else ({other})")
            }
            6 => {
                let (v, inner) = (self.name("r"), self.inside(|m| m.looped(size / 2)));
                self.numbers.push(v.clone());
                format!("let {v} = {inner} in {}", self.round_inside(again, parts, size / 2))
            }
            // The state's last number, counted before it is tested.
            7 => {
                let (v, (i, _)) = (self.name("k"), parts[0].clone());
                self.numbers.push(v.clone());
                let rest = self.inside(|m| m.round_inside(again, parts, size));
                format!("let {v} = {i} + 1 in if {v} > {} then {v} else ({rest})", self.number(0))
            }
            _ => self.next(again, parts),
        }
    }

    /// The call of the next round.
    fn next(&mut self, again: &str, parts: &[(String, Option<&str>)]) -> String {
        let mut fields = String::new();
        for (part, name) in parts {
            let (up, down) = if self.down { ("-", "+") } else { ("+", "-") };
            let moved = match self.rng.below(40) {
                0..36 => format!("{part} {up} {}", 1 + self.rng.below(2)),
                36 => format!("{part} {down} 1"),
                37 => part.clone(),
                38 if !self.down => format!("(if {} then {part} + 1 else {part} + 2)", self.condition(0)),
                _ => self.number(1),
            };
            match name {
                Some(name) => drop(write!(fields, "{name}: {moved}, ")),
                None => return format!("{again} ({moved})"),
            }
        }
        let list = self.lists.iter().rev().find(|l| l.ends_with(".xs") && l.starts_with('p')).cloned();
        let list = match list {
            Some(list) if self.rng.chance(80) => list,
            _ => self.list(1),
        };
        let mut next = format!("{again} {{{fields}xs: {list}}}");
        if self.rng.chance(8) {
            next = format!("{next} + {}", self.next(again, parts));
        }
        next
    }
}
