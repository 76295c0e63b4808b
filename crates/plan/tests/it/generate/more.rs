//! Sinks and sources of labeled data, and what the language has beside the common statements.

use super::{Kind, Plans};

impl Plans {
    /// Imports and classes.
    pub(super) fn prelude(&mut self) {
        self.line(0, "import re, json");
        self.line(0, "from datetime import date, timedelta");
        if self.rng.chance(40) {
            self.class = true;
            self.line(0, "from dataclasses import dataclass, field");
            self.line(0, "@dataclass");
            self.line(0, "class P:");
            self.line(1, "x: int");
            self.line(1, "y: str = 'é'");
            self.line(1, "z: list = field(default_factory=list)");
        }
        let bases = if self.rng.chance(50) { ["ValueError", "E1"] } else { ["KeyError", "Exception"] };
        for (class, base) in ["E1", "E2"].into_iter().zip(bases) {
            self.line(0, &format!("class {class}({base}):"));
            self.line(1, "pass");
        }
    }

    /// A call that somebody sees, now and then under a condition.
    pub(super) fn sink(&mut self, depth: usize) {
        let depth = if self.rng.chance(40) {
            let test = self.test(1);
            self.line(depth, &format!("if {test}:"));
            depth + 1
        } else {
            depth
        };
        let value = self.expr(Kind::Num, 1);
        let n = self.rng.below(3);
        let lines = match self.rng.below(8) {
            0 => vec![format!("post({value})")],
            1 => vec![format!("keep({value})")],
            2 => vec![format!("note({value})")],
            3 => vec![format!("pay('{}', {n})", self.rng.one(&["bob", "ann"]))],
            4 => vec![format!("pay('bob', 1, str({value}))")],
            5 => vec!["for w in ['bob', 'ann']:".into(), format!("    pay(w, {n})")],
            6 => vec![
                format!("for w, n in [('bob', {n}), ('ann', 1)]:"),
                format!("    if {value}:"),
                "        pay(w, n)".into(),
            ],
            _ => {
                let shown = self.simple_num();
                vec!["who = 'bob'".into(), format!("pay(who, 2, f'{{{shown}}}')")]
            }
        };
        for line in lines {
            self.line(depth, &line);
        }
    }

    /// Data with a label.
    pub(super) fn source(&mut self) -> String {
        self.rng.one(&["read()", "read()", "vault()", "known()", "ask('a number', int)"]).into()
    }

    /// Statements beside the common ones.
    pub(super) fn more(&mut self, depth: usize, deep: bool) {
        let value = self.expr(Kind::Num, 2);
        match self.rng.below(if deep { 12 } else { 19 }) {
            0 => {
                let name = self.fresh();
                let list = self.expr(Kind::List, 1);
                self.line(depth, &format!("{name} = {{'a': [{value}], 'b': []}}"));
                self.line(depth, &format!("{name}['c'] = list({list})"));
                self.vars.push((Kind::Groups, name));
            }
            1 | 2 => {
                let Some(name) = self.var(Kind::Groups) else { return self.line(depth, "pass") };
                let key = self.rng.one(&["'a'", "'b'", "'c'", "'é'"]);
                let text = match self.rng.below(6) {
                    0 => format!("{name}[{key}].append({value})"),
                    1 => format!("{name}[{key}] += [{value}]"),
                    2 => format!("{name}[{key}][0] -= {value}"),
                    3 => format!("{name}[{key}].sort(key=lambda x: -x)"),
                    4 => format!("{name}['a'], {name}['b'] = [{value}], []"),
                    _ => format!("{name}[{key}][{}:] = [{value}]", self.rng.below(3) as i64 - 1),
                };
                self.line(depth, &text);
            }
            3 if self.class => {
                let name = self.fresh();
                let text = self.expr(Kind::Str, 1);
                let made = match self.rng.below(3) {
                    0 => format!("P({value})"),
                    1 => format!("P(y={text}, x={value})"),
                    _ => format!("P({value}, {text}, [{value}])"),
                };
                self.line(depth, &format!("{name} = {made}"));
                self.vars.push((Kind::Object, name));
            }
            4 => {
                let Some(name) = self.var(Kind::Object) else { return self.line(depth, "pass") };
                let text = match self.rng.below(5) {
                    0 => format!("{name}.x = {value}"),
                    1 => format!("{name}.x += {value}"),
                    2 => format!("{name}.z.append({value})"),
                    3 => format!("{name}.z += [{name}.x]"),
                    _ => format!("{name}.y *= 2"),
                };
                self.line(depth, &text);
            }
            5 => {
                let (a, b) = (self.fresh(), self.fresh());
                let list = self.expr(Kind::List, 2);
                let text = match self.rng.below(3) {
                    0 => format!("{a}, *{b} = {list}"),
                    1 => format!("*{b}, {a} = {list}"),
                    _ => format!("{a}, *{b}, _ = {list}"),
                };
                self.line(depth, &text);
                self.vars.push((Kind::Any, a));
                self.vars.push((Kind::List, b));
            }
            6 => {
                let Some(name) = self.var(Kind::List) else { return self.line(depth, "pass") };
                let (from, to) = (self.rng.below(5) as i64 - 2, self.rng.below(5) as i64 - 2);
                let text = match self.rng.below(3) {
                    0 => format!("{name}[{from}:{to}] = [{value}]"),
                    1 => format!("{name}[:{to}] = []"),
                    _ => format!("{name}[{from}:] = (1, {value})"),
                };
                self.line(depth, &text);
            }
            7 => {
                let (a, b) = (self.fresh(), self.fresh());
                self.line(depth, &format!("{a} = {b} = {value}"));
                self.vars.push((Kind::Num, a));
                self.vars.push((Kind::Num, b));
            }
            8 => {
                let class = self.class();
                let test = self.test(1);
                self.line(depth, &format!("if {test}:"));
                let from = if self.rng.chance(20) { " from None" } else { "" };
                self.line(depth + 1, &format!("raise {class}{from}"));
            }
            9 => {
                let name = self.fresh();
                let (month, day) = (1 + self.rng.below(12), 1 + self.rng.below(30));
                let text = format!("{name} = date(2024, {month}, {day}) + timedelta(days={value} % 400)");
                self.line(depth, &text);
                self.vars.push((Kind::Date, name));
            }
            10 => {
                let name = self.fresh();
                self.line(depth, &format!("{name} = {value} if {value} else -1"));
                self.vars.push((Kind::Num, name));
            }
            11 if !self.in_function => {
                let list = self.expr(Kind::List, 2);
                self.line(depth, &format!("print({value}, *{list}, sep='/')"));
            }
            12 | 13 if self.loops < 2 => self.nested_loops(depth),
            14 if self.loops < 2 => {
                let name = self.fresh();
                self.line(depth, &format!("{name} = 0"));
                self.line(depth, "while True:");
                self.line(depth + 1, &format!("{name} += 1"));
                let n = self.rng.below(4);
                self.line(depth + 1, &format!("if {name} > {n} or {value}:"));
                self.line(depth + 2, "break");
                self.loops += 1;
                self.nested(depth + 1, 1);
                self.loops -= 1;
                self.vars.push((Kind::Num, name));
            }
            15 | 16 if depth == 0 => self.ways_out(),
            17 if depth == 0 => self.closure(),
            _ => self.line(depth, &format!("echo({value})")),
        }
    }

    /// Nested loops with every way out.
    fn nested_loops(&mut self, depth: usize) {
        let (i, j) = (self.fresh(), self.fresh());
        let (a, b) = (self.rng.below(4), self.expr(Kind::List, 1));
        self.line(depth, &format!("for {i} in range({a}):"));
        self.line(depth + 1, &format!("for {j} in {b}:"));
        let known = self.vars.len();
        self.vars.push((Kind::Num, i));
        self.vars.push((Kind::Num, j));
        self.loops += 2;
        for _ in 0..2 {
            let test = self.test(1);
            self.line(depth + 2, &format!("if {test}:"));
            let way = self.rng.one(&["break", "continue", "echo('in')", "raise E2('out')"]);
            self.line(depth + 3, way);
        }
        self.block(depth + 2, 1);
        if self.rng.chance(60) {
            self.line(depth + 1, "else:");
            let way = self.rng.one(&["break", "continue", "echo('else')", "pass"]);
            self.line(depth + 2, way);
        }
        self.loops -= 2;
        self.vars.truncate(known);
        if self.rng.chance(40) {
            self.line(depth, "else:");
            self.nested(depth + 1, 1);
        }
    }

    /// A function that is left in every way through `try` and `finally`.
    fn ways_out(&mut self) {
        let name = format!("f{}", self.functions.len());
        let n = self.fresh();
        let default = self.expr(Kind::Num, 1);
        self.line(0, &format!("def {name}({n}={default}):"));
        let known = self.vars.clone();
        self.vars.push((Kind::Num, n.clone()));
        self.in_function = true;
        let loops = std::mem::replace(&mut self.loops, 1);
        self.line(1, &format!("for {n}i in [{n}, 1, 2]:"));
        self.line(2, "try:");
        for _ in 0..2 {
            let test = self.test(1);
            let value = self.expr(Kind::Num, 1);
            self.line(3, &format!("if {test}:"));
            let class = self.class();
            let way = match self.rng.below(5) {
                0 => format!("return {value}"),
                1 => "break".into(),
                2 => "continue".into(),
                3 => format!("raise {class}({value})"),
                _ => format!("echo({value})"),
            };
            self.line(4, &way);
        }
        self.statement(3);
        if self.rng.chance(60) {
            let class = self.class();
            self.line(2, &format!("except {class} as e:"));
            let ways = ["raise", "continue", "return str(e)", "raise E1('x') from e", "break", "pass"];
            let way = self.rng.one(&ways);
            self.line(3, way);
        }
        self.line(2, "finally:");
        let value = self.expr(Kind::Num, 1);
        let way = match self.rng.below(5) {
            0 => format!("return {value}"),
            1 => "break".into(),
            _ => format!("echo(['f', {value}])"),
        };
        self.line(3, &way);
        if self.rng.chance(50) {
            self.line(1, "else:");
            self.line(2, "echo('else')");
        }
        let value = self.expr(Kind::Num, 1);
        self.line(1, &format!("return {value}"));
        self.in_function = false;
        self.loops = loops;
        self.vars = known;
        self.functions.push((name, 1));
    }

    /// Functions in functions, and variables that change after a function was made.
    fn closure(&mut self) {
        let name = format!("f{}", self.functions.len());
        let (k, m) = (self.fresh(), self.fresh());
        let (a, b) = (self.expr(Kind::Num, 1), self.expr(Kind::Num, 1));
        self.line(0, &format!("{k} = {a}"));
        self.line(0, &format!("def {name}({m}):"));
        self.line(1, &format!("{m}2 = {m}"));
        self.line(1, &format!("def inner({m}, extra={m}2):"));
        self.line(2, &format!("return {m} + {k} + extra"));
        self.line(1, &format!("g = lambda x: inner(x) + {m}2"));
        self.line(1, &format!("{m}2 = {b}"));
        let i = self.rng.below(2);
        let sorted = format!("sorted([3, 1, {m}2], key=lambda x: x % 2 + inner(x))");
        self.line(1, &format!("return [inner({m}), g(1), len({sorted})][{i}]"));
        if self.rng.chance(60) {
            self.line(0, &format!("{k} = {b}"));
        }
        self.vars.push((Kind::Num, k));
        self.functions.push((name, 1));
    }

    /// A tool around an expression, in a position where other expressions rarely have one.
    fn called(&mut self, text: &str) -> String {
        self.calls += 1;
        if self.calls < 16 { format!("echo({text})") } else { text.into() }
    }

    /// The truth of everything.
    pub(super) fn truth(&mut self) -> String {
        let of = self.rng.one(&[
            "None",
            "''",
            "'0'",
            "0",
            "()",
            "(0,)",
            "{}",
            "set()",
            "[[]]",
            "{0: 0}",
            "timedelta()",
            "'é'",
            "re.search('x', 'é')",
            "re.search('é', 'é')",
            "date(2024, 1, 1)",
            "range(0)",
            "0 == False",
            "0.5",
            "-1",
        ]);
        format!("{}{of}", self.rng.one(&["", "not "]))
    }

    /// Expressions beside the common ones; `None` where a variable is missing.
    pub(super) fn another(&mut self, kind: Kind, d: usize) -> Option<String> {
        Some(match kind {
            Kind::Num => match self.rng.below(14) {
                0 => {
                    let i = self.rng.below(5) as i64 - 2;
                    let i = self.called(&i.to_string());
                    format!("{}[{i}]", self.expr(Kind::List, d))
                }
                1 => {
                    let n = self.rng.below(4).to_string();
                    let n = self.called(&n);
                    format!("next((x for x in {} if x > {n}), -1)", self.expr(Kind::List, d))
                }
                2 => {
                    let x = self.called("x");
                    format!("max({}, key=lambda x: (x % 3, {x}), default=0)", self.expr(Kind::List, d))
                }
                3 => format!("sum(map(len, [{}, {}]))", self.expr(Kind::Str, d), self.expr(Kind::Str, 0)),
                4 => format!("int({}, {})", self.expr(Kind::Str, 0), self.rng.one(&["2", "10", "16", "0"])),
                5 => {
                    let o = self.var(Kind::Object)?;
                    format!("{o}.{}", self.rng.one(&["x", "x", "x", "w"]))
                }
                6 => {
                    let t = self.var(Kind::Date)?;
                    format!("{t}.{}", self.rng.one(&["day", "month", "weekday()", "toordinal()"]))
                }
                7 => format!("({} - {}).days", self.var(Kind::Date)?, self.var(Kind::Date)?),
                8 => {
                    let g = self.var(Kind::Groups)?;
                    format!("len({g}[{}])", self.rng.one(&["'a'", "'c'", "'z'"]))
                }
                9 => format!("[{} for _ in {}][-1]", self.expr(Kind::Num, d), self.expr(Kind::List, 0)),
                10 => {
                    let op = self.rng.one(&["-", "//", "*"]);
                    format!(
                        "(lambda a, b: a {op} b)({}, {})",
                        self.expr(Kind::Num, d),
                        self.expr(Kind::Num, 0)
                    )
                }
                11 => format!("len(json.dumps({}))", self.expr(Kind::Dict, d)),
                12 => format!("{{'a': 1, 'é': 2}}[{}]", self.expr(Kind::Str, 0)),
                _ => format!("any({} for x in {})", self.test(0), self.expr(Kind::List, d)),
            },
            Kind::Str => match self.rng.below(13) {
                0 => format!("f\"{{{}!r:>{}}}\"", self.simple_str(), self.rng.below(12)),
                1 => {
                    let n = self.called("3");
                    format!("f\"<{{{}:*^{{{n}}}}}>\"", self.simple_str())
                }
                2 => {
                    let pattern = self.rng.one(&["r'[aeé]+'", "r'(\\w)(\\w)'", "r'\\s*'", "'b$'", "'(?i)x'"]);
                    let new = self.rng.one(&["'-'", "''", "r'<\\g<0>>'", "r'\\\\'"]);
                    format!("re.sub({pattern}, {new}, {})", self.expr(Kind::Str, d))
                }
                3 => format!("'|'.join(re.findall(r'\\w+', {}))", self.expr(Kind::Str, d)),
                4 => format!("','.join(map(str, {}))", self.expr(Kind::List, d)),
                5 => format!("json.dumps({})", self.expr(Kind::Dict, d)),
                6 => format!("{}.strftime('%a %d.%m.%Y %j')", self.var(Kind::Date)?),
                7 => {
                    let o = self.var(Kind::Object)?;
                    self.rng.one(&["str(O)", "O.y", "f'{O}'", "repr(O.z)"]).replace('O', &o)
                }
                8 => format!("({})[::{}]", self.expr(Kind::Str, d), self.rng.one(&["-1", "2", "-2"])),
                9 => {
                    let method = self.rng.one(&[
                        "casefold()",
                        "ljust(6, '.')",
                        "rjust(4)",
                        "rpartition('a')[0]",
                        "removeprefix('a')",
                        "title()",
                        "splitlines()[0]",
                        "split(maxsplit=1)[-1]",
                        "rsplit(',', 1)[0]",
                        "swapcase()",
                    ]);
                    format!("{}.{method}", self.expr(Kind::Str, d))
                }
                10 => format!("str({})", self.var(Kind::Groups)?),
                11 => format!("str({})", self.expr(Kind::Set, d)),
                _ => format!("'{{}}-{{x:>4}}'.format({}, x={})", self.simple_str(), self.simple_num()),
            },
            Kind::List => match self.rng.below(9) {
                0 => {
                    // Stability with a key that many items share.
                    let reverse = self.rng.one(&["True", "False"]);
                    let list = self.expr(Kind::List, d);
                    format!(
                        "[p[0] for p in sorted(enumerate({list}), key=lambda p: p[1] % 2, reverse={reverse})]"
                    )
                }
                1 => {
                    let x = self.called("x");
                    format!("sorted({}, key=lambda x: {x} % 3)", self.expr(Kind::List, d))
                }
                2 => {
                    let (a, b) = (self.expr(Kind::List, d), self.expr(Kind::Num, 0));
                    format!("[*{a}, {b}, *{}]", self.expr(Kind::Set, 0))
                }
                3 => format!(
                    "list(map(lambda x: x - {}, {}))",
                    self.expr(Kind::Num, 0),
                    self.expr(Kind::List, d)
                ),
                4 => format!("list(filter(lambda x: {}, {}))", self.test(0), self.expr(Kind::List, d)),
                5 => format!("[len(w) for w in re.split('[, ]', {})]", self.expr(Kind::Str, d)),
                6 => format!("list(dict.fromkeys({}))", self.expr(Kind::List, d)),
                7 => format!("[x for x in {} for x in [x, x + 1] if x % 2]", self.expr(Kind::List, d)),
                _ => format!("[x for v in {}.values() for x in v]", self.var(Kind::Groups)?),
            },
            Kind::Dict => match self.rng.below(3) {
                0 => format!("({} | {})", self.expr(Kind::Dict, d), self.expr(Kind::Dict, d)),
                1 => format!("{{c: {} for c in {}}}", self.expr(Kind::Num, 0), self.expr(Kind::Str, d)),
                _ => format!("{{'é': {}, **{}}}", self.expr(Kind::Num, d), self.expr(Kind::Dict, d)),
            },
            _ => return None,
        })
    }
}
