//! Random plans: for CPython, and for two worlds.
//!
//! They don't have: fractions that a `float` does not hold exactly, `inf` and `nan`, and orders of sets other
//! than sorted. Of what is refused before the run they have aliases and what comes of misused types.

pub mod alias;
mod idioms;
mod more;
mod policed;
mod wide;

/// A deterministic source of choices.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<'s>(&mut self, of: &[&'s str]) -> &'s str {
        of[self.below(of.len())]
    }
}

pub struct Plans {
    rng: Rng,
    out: String,
    /// Variables by kind: numbers, texts, lists, dictionaries, sets, anything.
    vars: Vec<(Kind, String)>,
    functions: Vec<(String, usize)>,
    next: usize,
    in_function: bool,
    loops: usize,
    calls: usize,
    /// True if the plan has sources of labeled data and sinks.
    flows: bool,
    /// True if the plan has the class `P`.
    class: bool,
    /// True if the plan has templates, and the imports and classes that they name.
    wide: bool,
    /// True if the plan has a model of Pydantic.
    models: bool,
    /// True if the plan is for the world with a policy.
    policed: bool,
    /// Number of templates that are being filled.
    filling: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Num,
    Str,
    List,
    Dict,
    Set,
    /// A dictionary of lists.
    Groups,
    /// An object of the class `P`.
    Object,
    Date,
    Any,
}

/// A plan for the tools of `run`.
pub fn plan(seed: u64) -> String {
    generate(seed, false, false)
}

/// A plan that reads labeled data and calls sinks: for the tools of `worlds`.
pub fn flowing(seed: u64) -> String {
    generate(seed, true, false)
}

/// The same for the tools of `policed`.
pub fn policed(seed: u64) -> String {
    generate(seed, true, true)
}

fn generate(seed: u64, flows: bool, policed: bool) -> String {
    let mut p = Plans {
        rng: Rng::new(seed),
        out: String::new(),
        vars: Vec::new(),
        functions: Vec::new(),
        next: 0,
        in_function: false,
        loops: 0,
        calls: 0,
        flows,
        class: false,
        wide: false,
        models: false,
        policed,
        filling: 0,
    };
    p.wide = p.rng.chance(if flows { 40 } else { 55 }) || !flows && seed.is_multiple_of(3);
    p.models = p.wide && p.rng.chance(15);
    p.prelude();
    if p.wide {
        p.wide_prelude();
    }
    if policed {
        p.policed_prelude();
    }
    for kind in [Kind::Num, Kind::Str, Kind::List, Kind::Dict] {
        let name = p.fresh();
        let value = p.expr(kind, 2);
        p.line(0, &format!("{name} = {value}"));
        p.vars.push((kind, name));
    }
    if !flows && seed.is_multiple_of(3) {
        // A construct alone: its class of exception is compared.
        p.alone();
    } else {
        let count = 3 + p.rng.below(8);
        p.block(0, count);
    }
    let mut shown: Vec<String> = p.vars.iter().map(|(_, n)| n.clone()).collect();
    shown.sort();
    shown.dedup();
    let shown = shown.join(", ");
    if p.rng.chance(70) {
        p.line(0, &format!("[{shown}]"));
    } else {
        p.line(0, &format!("print({shown})"));
    }
    p.out
}

impl Plans {
    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.out.push_str(&"    ".repeat(depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn var(&mut self, kind: Kind) -> Option<String> {
        let of: Vec<&String> =
            self.vars.iter().filter(|(k, _)| kind == Kind::Any || *k == kind).map(|(_, n)| n).collect();
        if of.is_empty() { None } else { Some(of[self.rng.below(of.len())].clone()) }
    }

    fn kind(&mut self) -> Kind {
        [Kind::Num, Kind::Num, Kind::Str, Kind::Str, Kind::List, Kind::List, Kind::Dict, Kind::Set]
            [self.rng.below(8)]
    }

    fn block(&mut self, depth: usize, count: usize) {
        for _ in 0..count.max(1) {
            self.statement(depth);
        }
    }

    /// A block whose new variables may stay unbound: they are forgotten, mostly.
    fn nested(&mut self, depth: usize, count: usize) {
        let known = self.vars.len();
        self.block(depth, count);
        if !self.rng.chance(10) {
            self.vars.truncate(known);
        }
    }

    fn statement(&mut self, depth: usize) {
        let deep = depth >= 4;
        if self.flows && self.rng.chance(22) {
            return if self.policed { self.policed_sink(depth) } else { self.sink(depth) };
        }
        if self.wide && self.rng.chance(35) {
            return self.template(depth);
        }
        if self.rng.chance(25) {
            return self.more(depth, deep);
        }
        let count = 1 + self.rng.below(3);
        match self.rng.below(if deep { 60 } else { 100 }) {
            ..18 => {
                let kind = self.kind();
                let value = self.expr(kind, 3);
                let old = if self.rng.chance(50) { self.var(kind) } else { None };
                let name = old.unwrap_or_else(|| self.fresh());
                self.line(depth, &format!("{name} = {value}"));
                self.vars.push((kind, name));
            }
            18..24 => {
                if let Some(name) = self.var(Kind::Num) {
                    let value = self.expr(Kind::Num, 2);
                    let op = self.rng.one(&["+=", "-=", "*=", "+=", "//=", "%="]);
                    self.line(depth, &format!("{name} {op} {value}"));
                } else {
                    self.line(depth, "pass");
                }
            }
            24..32 => {
                if let Some(name) = self.var(Kind::List) {
                    let item = self.expr(Kind::Num, 2);
                    let text = match self.rng.below(9) {
                        0 | 1 => format!("{name}.append({item})"),
                        2 => format!("{name}.insert({}, {item})", self.rng.below(5) as i64 - 2),
                        3 => format!("{name}.extend([{item}, 1])"),
                        4 => format!("{name} += [{item}]"),
                        5 => format!(
                            "{name}.sort(reverse={})",
                            if self.rng.chance(50) { "True" } else { "False" }
                        ),
                        6 => format!("{name}.reverse()"),
                        7 => {
                            let taken = self.fresh();
                            let text = format!("{taken} = {name}.pop()");
                            self.vars.push((Kind::Any, taken));
                            text
                        }
                        _ => format!("{name}[{}] = {item}", self.rng.below(5) as i64 - 2),
                    };
                    self.line(depth, &text);
                } else {
                    self.line(depth, "pass");
                }
            }
            32..38 => {
                if let Some(name) = self.var(Kind::Dict) {
                    let value = self.expr(Kind::Num, 2);
                    let key = self.key();
                    let text = match self.rng.below(7) {
                        0 | 1 => format!("{name}[{key}] = {value}"),
                        2 => format!("{name}.pop({key}, None)"),
                        3 => format!("{name}.pop({key})"),
                        4 => format!("{name}[{key}] = {name}.get({key}, 0) + 1"),
                        5 => format!("{name}.update({{{key}: {value}}})"),
                        _ => format!("{name}[{key}] += 1"),
                    };
                    self.line(depth, &text);
                } else {
                    self.line(depth, "pass");
                }
            }
            38..41 => {
                if let Some(name) = self.var(Kind::Set) {
                    let value = self.expr(Kind::Num, 1);
                    let method = self.rng.one(&["add", "discard", "remove"]);
                    self.line(depth, &format!("{name}.{method}({value})"));
                } else {
                    self.line(depth, "pass");
                }
            }
            41..45 => {
                // An alias; a mutation through either is refused.
                let kind = self.kind();
                if let Some(other) = self.var(kind) {
                    let name = self.fresh();
                    self.line(depth, &format!("{name} = {other}"));
                    self.vars.push((kind, name));
                } else {
                    self.line(depth, "pass");
                }
            }
            45..49 => {
                let (a, b) = (self.fresh(), self.fresh());
                let (x, y) = (self.expr(Kind::Num, 2), self.expr(Kind::Str, 2));
                let text = match self.rng.below(3) {
                    0 => format!("{a}, {b} = {x}, {y}"),
                    1 => format!("{a}, {b} = ({x}, {y})"),
                    _ => format!("({a}, {b}) = [{x}, {y}]"),
                };
                self.line(depth, &text);
                self.vars.push((Kind::Num, a));
                self.vars.push((Kind::Str, b));
            }
            49..52 => {
                let test = self.test(2);
                self.line(depth, &format!("assert {test}, \"no\""));
            }
            52..54 => {
                let class = self.class();
                let text = self.expr(Kind::Str, 1);
                self.line(depth, &format!("raise {class}({text})"));
            }
            54..57 => {
                let text = if self.loops > 0 { self.rng.one(&["break", "continue", "pass"]) } else { "pass" };
                let test = self.test(1);
                self.line(depth, &format!("if {test}:"));
                self.line(depth + 1, text);
            }
            57..60 => {
                let value = self.expr(Kind::Num, 2);
                if self.in_function || self.rng.chance(30) {
                    let test = self.test(1);
                    self.line(depth, &format!("if {test}:"));
                    self.line(depth + 1, &format!("return {value}"));
                } else {
                    self.line(depth, &format!("echo({value})"));
                }
            }
            60..70 => {
                let test = self.test(2);
                self.line(depth, &format!("if {test}:"));
                self.nested(depth + 1, count);
                if self.rng.chance(40) {
                    let test = self.test(2);
                    self.line(depth, &format!("elif {test}:"));
                    self.nested(depth + 1, count);
                }
                if self.rng.chance(60) {
                    self.line(depth, "else:");
                    self.nested(depth + 1, count);
                }
            }
            70..80 if self.loops < 2 => {
                let name = if self.rng.chance(15) {
                    self.var(Kind::Num).unwrap_or_else(|| self.fresh())
                } else {
                    self.fresh()
                };
                let known = self.vars.len();
                let (target, over) = match self.rng.below(6) {
                    0 => (name.clone(), format!("range({})", self.rng.below(5))),
                    1 => (name.clone(), self.expr(Kind::List, 1)),
                    2 => (name.clone(), self.expr(Kind::Str, 1)),
                    3 => {
                        let k = self.fresh();
                        let of = self.expr(Kind::Dict, 1);
                        (format!("{k}, {name}"), format!("({of}).items()"))
                    }
                    4 => {
                        let i = self.fresh();
                        let of = self.expr(Kind::List, 1);
                        (format!("{i}, {name}"), format!("enumerate({of})"))
                    }
                    _ => (name.clone(), self.expr(Kind::Set, 1)),
                };
                self.line(depth, &format!("for {target} in {over}:"));
                self.vars.push((Kind::Any, name));
                self.loops += 1;
                self.block(depth + 1, count);
                self.loops -= 1;
                self.vars.truncate(known);
                if self.rng.chance(25) {
                    self.line(depth, "else:");
                    self.nested(depth + 1, 1);
                }
            }
            80..84 if self.loops < 2 => {
                let name = self.fresh();
                let n = self.rng.below(4);
                self.line(depth, &format!("{name} = {n}"));
                self.line(depth, &format!("while {name} > 0:"));
                self.line(depth + 1, &format!("{name} -= 1"));
                self.loops += 1;
                self.nested(depth + 1, count);
                self.loops -= 1;
                if self.rng.chance(25) {
                    self.line(depth, "else:");
                    self.nested(depth + 1, 1);
                }
            }
            84..95 => {
                self.line(depth, "try:");
                self.nested(depth + 1, count);
                let handlers = self.rng.below(3);
                let finally = handlers == 0 || self.rng.chance(30);
                for i in 0..handlers {
                    let class = match self.rng.below(6) {
                        0 => "Exception".to_string(),
                        1 => "(KeyError, IndexError)".into(),
                        2 => "ToolError".into(),
                        _ => self.class().to_string(),
                    };
                    if i + 1 == handlers && self.rng.chance(20) {
                        self.line(depth, "except:");
                    } else if self.rng.chance(50) {
                        let e = self.fresh();
                        self.line(depth, &format!("except {class} as {e}:"));
                        let text = self.rng.one(&["pass", "raise", "echo('caught')", "pass"]);
                        self.line(depth + 1, text);
                    } else {
                        self.line(depth, &format!("except {class}:"));
                    }
                    self.nested(depth + 1, 1);
                }
                if handlers > 0 && self.rng.chance(30) {
                    self.line(depth, "else:");
                    self.nested(depth + 1, 1);
                }
                if finally {
                    self.line(depth, "finally:");
                    if self.rng.chance(15) && (self.in_function || depth == 0) {
                        let value = self.expr(Kind::Num, 1);
                        self.line(depth + 1, &format!("return {value}"));
                    } else {
                        self.nested(depth + 1, 1);
                    }
                }
            }
            _ if depth == 0 => self.function(),
            _ => {
                let value = self.expr(Kind::Num, 2);
                self.line(depth, &format!("echo({value})"));
            }
        }
    }

    fn function(&mut self) {
        let name = format!("f{}", self.functions.len());
        let params = 1 + self.rng.below(2);
        let known = self.vars.clone();
        let names: Vec<String> = (0..params).map(|_| self.fresh()).collect();
        let default = self.expr(Kind::Num, 1);
        let mut written = names.clone();
        if self.rng.chance(50)
            && let Some(last) = written.last_mut()
        {
            *last = format!("{last}={default}");
        }
        self.line(0, &format!("def {name}({}):", written.join(", ")));
        // Names of the plan are read, and some are shadowed.
        for n in &names {
            self.vars.push((Kind::Num, n.clone()));
        }
        let loops = std::mem::replace(&mut self.loops, 0);
        self.in_function = true;
        let out = self.out.len();
        let count = 1 + self.rng.below(3);
        self.block(1, count);
        self.in_function = false;
        let value = self.expr(Kind::Num, 2);
        self.line(1, &format!("return {value}"));
        self.loops = loops;
        self.vars = known;
        // `print` stands outside of functions.
        debug_assert!(!self.out[out..].contains("print("));
        self.functions.push((name, params));
    }

    fn class(&mut self) -> &'static str {
        self.rng.one(&[
            "KeyError",
            "IndexError",
            "ValueError",
            "TypeError",
            "ZeroDivisionError",
            "ToolError",
            "RuntimeError",
            "AttributeError",
            "NameError",
            "AssertionError",
            "LookupError",
            "OverflowError",
            "TimeoutError",
            "NotImplementedError",
            "OSError",
            "ArithmeticError",
            "E1",
            "E2",
        ])
    }

    fn key(&mut self) -> String {
        match self.rng.below(6) {
            0 => self.rng.below(3).to_string(),
            1 => format!("({}, 'x')", self.rng.below(2)),
            _ => format!("'{}'", self.rng.one(&["a", "b", "c", "id"])),
        }
    }

    fn test(&mut self, depth: usize) -> String {
        let (a, b) = (self.expr(Kind::Num, depth), self.expr(Kind::Num, depth));
        match self.rng.below(12) {
            9 => self.truth(),
            10 => match self.var(Kind::Any) {
                Some(name) => format!("bool({name}) != (not {name})"),
                None => "True".into(),
            },
            11 => {
                let op = self.rng.one(&["<", "==", "!=", "in", "is not"]);
                let right = match op {
                    "in" => self.expr(Kind::List, 0),
                    "is not" => "None".into(),
                    _ => self.expr(Kind::Num, 0),
                };
                format!("{a} <= {b} {op} {right}")
            }
            0 => format!("{a} < {b}"),
            1 => format!("{a} == {b}"),
            2 => format!("{a} <= echo({b}) < {}", self.rng.below(9)),
            3 => self.expr(Kind::List, depth),
            4 => format!("{a} in {}", self.expr(Kind::List, 1)),
            5 => format!("not {}", self.expr(Kind::Str, depth)),
            6 => format!("{a} > 1 and {b} > 1 or {}", self.expr(Kind::Num, 1)),
            7 => format!("{} != {}", self.expr(Kind::Str, 1), self.expr(Kind::Str, 1)),
            _ => format!("{} is None", self.var(Kind::Any).unwrap_or("None".into())),
        }
    }

    fn expr(&mut self, kind: Kind, depth: usize) -> String {
        // Now and then something of another kind.
        let kind = if self.rng.chance(3) { self.kind() } else { kind };
        if self.rng.chance(35)
            && let Some(name) = self.var(kind)
        {
            return name;
        }
        let d = depth.saturating_sub(1);
        let leaf = depth == 0;
        if self.flows && kind == Kind::Num && self.rng.chance(12) {
            return if self.policed { self.policed_source() } else { self.source() };
        }
        if !leaf
            && self.wide
            && self.filling < 3
            && self.rng.chance(22)
            && let Some(text) = self.templated(kind)
        {
            return text;
        }
        if !leaf
            && self.rng.chance(18)
            && let Some(text) = self.another(kind, d)
        {
            return text;
        }
        match kind {
            Kind::Num if leaf => match self.rng.below(6) {
                0 => "0".into(),
                1 => "-1".into(),
                2 => "True".into(),
                3 => "3".into(),
                _ => self.rng.below(10).to_string(),
            },
            Kind::Num => match self.rng.below(25) {
                0..=4 => {
                    let op = self.rng.one(&["+", "-", "*", "+", "//", "%", "-"]);
                    format!("({} {op} {})", self.expr(Kind::Num, d), self.expr(Kind::Num, d))
                }
                5 => format!("len({})", self.any_sized(d)),
                6 => format!("sum({})", self.expr(Kind::List, d)),
                7 => format!("{}({})", self.rng.one(&["min", "max"]), self.expr(Kind::List, d)),
                8 => format!("{}[{}]", self.expr(Kind::List, d), self.rng.below(6) as i64 - 3),
                9 => format!("{}[{}]", self.expr(Kind::Dict, d), self.key()),
                10 => format!("{}.get({}, 7)", self.expr(Kind::Dict, d), self.key()),
                11 => format!(
                    "int({})",
                    self.rng.one(&["'12'", "' -3 '", "'x'", "2.5", "True", "'1_0'", "-2.5"])
                ),
                12 => format!("abs({})", self.expr(Kind::Num, d)),
                13 => format!("round({} / 4)", self.expr(Kind::Num, d)),
                14 => format!("{}.count({})", self.expr(Kind::Str, d), self.expr(Kind::Str, 0)),
                15 => format!("{}.find({})", self.expr(Kind::Str, d), self.expr(Kind::Str, 0)),
                16 => format!(
                    "({} if {} else {})",
                    self.expr(Kind::Num, d),
                    self.test(d),
                    self.expr(Kind::Num, d)
                ),
                17 if self.calls < 12 => {
                    self.calls += 1;
                    format!("add({}, {})", self.expr(Kind::Num, d), self.expr(Kind::Num, d))
                }
                18 if self.calls < 12 => {
                    self.calls += 1;
                    let tool = self.rng.one(&["echo", "echo", "fail"]);
                    format!("{tool}({})", self.expr(Kind::Num, d))
                }
                19 if !self.functions.is_empty() => {
                    let (name, params) = self.functions[self.rng.below(self.functions.len())].clone();
                    let count = if self.rng.chance(80) { params } else { params - 1 };
                    // A call is expanded where it stands: many inside of each other are too large.
                    if self.in_function && (self.functions.len() > 3 || self.rng.chance(60)) {
                        return "2".into();
                    }
                    let args: Vec<String> = (0..count.max(1)).map(|_| self.expr(Kind::Num, 1)).collect();
                    format!("{name}({})", args.join(", "))
                }
                20 => format!("sum(x * 2 for x in {} if x)", self.expr(Kind::List, d)),
                21 => format!(
                    "divmod({}, {})[{}]",
                    self.expr(Kind::Num, d),
                    self.expr(Kind::Num, d),
                    self.rng.below(2)
                ),
                22 => format!(
                    "({} and {} or {})",
                    self.expr(Kind::Num, d),
                    self.expr(Kind::Num, d),
                    self.expr(Kind::Num, d)
                ),
                23 => format!("(lambda x: x + {})({})", self.expr(Kind::Num, 0), self.expr(Kind::Num, d)),
                _ => format!("(-{})", self.expr(Kind::Num, d)),
            },
            Kind::Str if leaf => {
                let text = self.rng.one(&[
                    "",
                    "a",
                    "ab",
                    "Hello World",
                    "a,b,,c",
                    "  x ",
                    "12",
                    "éß",
                    "it's",
                    "a\\nb",
                    "日本 é",
                    "😀x",
                    "ﬁX",
                    "0x1F",
                    "101",
                ]);
                format!("\"{text}\"")
            }
            Kind::Str => match self.rng.below(18) {
                0 | 1 => format!("({} + {})", self.expr(Kind::Str, d), self.expr(Kind::Str, d)),
                2 => {
                    let method = self.rng.one(&[
                        "upper",
                        "lower",
                        "strip",
                        "title",
                        "capitalize",
                        "swapcase",
                        "lstrip",
                    ]);
                    format!("{}.{method}()", self.expr(Kind::Str, d))
                }
                3 => format!(
                    "{}.replace({}, {})",
                    self.expr(Kind::Str, d),
                    self.expr(Kind::Str, 0),
                    self.expr(Kind::Str, 0)
                ),
                4 => format!("{}[{}]", self.expr(Kind::Str, d), self.slice()),
                5 => {
                    format!("{}.join(str(x) for x in {})", self.expr(Kind::Str, 0), self.expr(Kind::List, d))
                }
                6 => {
                    let width = self.rng.one(&["5", ">6", "<6", "^7", "*^9", "05", ".2", "x>4.3"]);
                    format!("f\"{{{}:{width}}}\"", self.simple_str())
                }
                7 => {
                    let spec =
                        self.rng.one(&["d", "5d", "05d", "+d", ",", ".2f", "8.3f", "e", "x", "%", "b", "_d"]);
                    format!("f\"<{{{}:{spec}}}>\"", self.simple_num())
                }
                8 if self.rng.chance(30) => format!("f\"{{{} / 4:.2f}}\"", self.simple_num()),
                8 => format!("f\"{{{}}}-{{{}!r}}\"", self.simple_num(), self.simple_str()),
                9 => format!("str({})", self.expr(Kind::List, d)),
                10 => format!("repr({})", self.expr(Kind::Dict, d)),
                11 => format!("{}.zfill({})", self.expr(Kind::Str, d), self.rng.below(8)),
                12 => format!("{}.center({}, '*')", self.expr(Kind::Str, d), self.rng.below(12)),
                13 => format!("({} * {})", self.expr(Kind::Str, d), self.rng.below(4)),
                14 => format!(
                    "{}.split({})[{}]",
                    self.expr(Kind::Str, d),
                    self.rng.one(&["", "','", "'a'"]),
                    self.rng.below(3) as i64 - 1
                ),
                15 => format!("({} or {})", self.expr(Kind::Str, d), self.expr(Kind::Str, d)),
                16 => format!(
                    "{}.partition({})[{}]",
                    self.expr(Kind::Str, d),
                    self.rng.one(&["'a'", "','", "' '"]),
                    self.rng.below(3)
                ),
                _ => format!("'%'.join(sorted({}))", self.expr(Kind::Str, d)),
            },
            Kind::List if leaf => {
                format!("[{}, {}]", self.rng.below(5), self.rng.below(5))
            }
            Kind::List => match self.rng.below(20) {
                0 | 1 => {
                    let n = self.rng.below(4);
                    let items: Vec<String> = (0..n).map(|_| self.expr(Kind::Num, d)).collect();
                    format!("[{}]", items.join(", "))
                }
                2 => format!("{}[{}]", self.expr(Kind::List, d), self.slice()),
                3 => format!("({} + {})", self.expr(Kind::List, d), self.expr(Kind::List, d)),
                4 => format!("sorted({})", self.expr(Kind::List, d)),
                5 => format!("sorted({}, key=lambda x: -x)", self.expr(Kind::List, d)),
                6 => format!("list(reversed({}))", self.expr(Kind::List, d)),
                7 => format!("list(range({}, {}))", self.rng.below(4), self.rng.below(8)),
                8 => format!("[x for x in {} if x > {}]", self.expr(Kind::List, d), self.rng.below(4)),
                9 => format!("[x + y for x in {} for y in [1, 2]]", self.expr(Kind::List, d)),
                10 => format!("list({})", self.expr(Kind::Set, d)),
                11 => format!("[v for k, v in {}.items()]", self.expr(Kind::Dict, d)),
                12 => format!("list({}.values())", self.expr(Kind::Dict, d)),
                13 => format!("[{} // x for x in {}]", self.rng.below(9), self.expr(Kind::List, d)),
                14 => format!("[i * x for i, x in enumerate({})]", self.expr(Kind::List, d)),
                15 => format!(
                    "[a - b for a, b in zip({}, {})]",
                    self.expr(Kind::List, d),
                    self.expr(Kind::List, d)
                ),
                16 if self.calls < 12 => {
                    self.calls += 1;
                    format!("[r['id'] for r in items({})]", self.rng.below(4))
                }
                17 => format!("[len(w) for w in {}.split()]", self.expr(Kind::Str, d)),
                18 => match self.var(Kind::Num) {
                    // The target shadows a variable.
                    Some(name) => format!("[{name} for {name} in {}]", self.expr(Kind::List, d)),
                    None => "[1]".into(),
                },
                _ if self.calls < 12 => {
                    self.calls += 1;
                    format!("[echo(x) for x in {}]", self.expr(Kind::List, d))
                }
                _ => format!("({} * 2)", self.expr(Kind::List, d)),
            },
            Kind::Dict if leaf => "{'a': 1}".into(),
            Kind::Dict => match self.rng.below(8) {
                0..=2 => {
                    let n = self.rng.below(4);
                    let items: Vec<String> =
                        (0..n).map(|_| format!("{}: {}", self.key(), self.expr(Kind::Num, d))).collect();
                    format!("{{{}}}", items.join(", "))
                }
                3 => format!("{{x: x * 2 for x in {}}}", self.expr(Kind::List, d)),
                4 => format!("dict({})", self.expr(Kind::Dict, d)),
                5 => format!("{{**{}, 'z': {}}}", self.expr(Kind::Dict, d), self.expr(Kind::Num, d)),
                6 => format!("dict(zip('abc', {}))", self.expr(Kind::List, d)),
                _ => format!("{{k: v for k, v in {}.items() if v}}", self.expr(Kind::Dict, d)),
            },
            Kind::Set if leaf => "{1, 3, 2}".into(),
            Kind::Set => match self.rng.below(5) {
                0 => format!("set({})", self.expr(Kind::List, d)),
                1 => format!("{{x % 3 for x in {}}}", self.expr(Kind::List, d)),
                2 => format!("({} | {})", self.expr(Kind::Set, d), self.expr(Kind::Set, d)),
                3 => format!("({} & {})", self.expr(Kind::Set, d), self.expr(Kind::Set, d)),
                _ => format!("({} - {})", self.expr(Kind::Set, d), self.expr(Kind::Set, d)),
            },
            Kind::Groups => "{'a': [1, 2]}".into(),
            Kind::Object if self.class => "P(1)".into(),
            Kind::Date => "date(2024, 2, 29)".into(),
            Kind::Object | Kind::Any => self.expr(Kind::Num, depth),
        }
    }

    fn any_sized(&mut self, depth: usize) -> String {
        let kind = [Kind::Str, Kind::List, Kind::Dict, Kind::Set][self.rng.below(4)];
        self.expr(kind, depth)
    }

    fn slice(&mut self) -> String {
        let part = |rng: &mut Rng| {
            if rng.chance(40) { String::new() } else { (rng.below(9) as i64 - 4).to_string() }
        };
        let (a, b) = (part(&mut self.rng), part(&mut self.rng));
        if self.rng.chance(40) {
            format!("{a}:{b}:{}", self.rng.one(&["2", "-1", "-2", "1"]))
        } else {
            format!("{a}:{b}")
        }
    }

    /// Inside of an f-string: without quotes.
    fn simple_num(&mut self) -> String {
        self.var(Kind::Num).unwrap_or_else(|| "42".into())
    }

    fn simple_str(&mut self) -> String {
        self.var(Kind::Str).unwrap_or_else(|| "'ab'".into())
    }
}
