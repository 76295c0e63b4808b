//! Plans about names of one list or dictionary: nothing but assignments, mutations and ways through blocks.
//!
//! Most are refused, since they mutate what may have another name. Each of the others must mean what it means
//! in CPython: a name that is missed makes the values differ.

use super::Rng;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Values that the variables begin with.
const FIRST: &[&str] =
    &["[]", "[[1]]", "{}", "{'k': [1]}", "[1, 2]", "[[], []]", "{'k': {'k': 1}}", "([1], [2])"];

/// Values without variables.
const ATOMS: &[&str] =
    &["1", "'x'", "None", "[]", "{}", "[0]", "[[1]]", "{'k': [1]}", "{'k': 1}", "([1], 2)", "[[], []]"];

/// Expressions; `@` and `#` are variables, `$` is a key.
const VALUES: &[&str] = &[
    "@",
    "@",
    "@",
    "@[$]",
    "[@]",
    "[@, #]",
    "(@, #)",
    "{'k': @}",
    "@ + #",
    "@ * 2",
    "2 * @",
    "[@] * 2",
    "[[]] * 2",
    "list(@)",
    "dict(@)",
    "dict(k=@)",
    "@[:]",
    "[*@, #]",
    "{**@, 'q': #}",
    "@ or #",
    "@ and #",
    "@ if # else @",
    "[x for x in @]",
    "[[x] for x in @]",
    "[@ for x in #]",
    "{'k': x for x in @}",
    "{y: @ for y in 'ab'}",
    "sorted(@, key=str)",
    "max(@, #, key=str)",
    "max([@, #], key=str)",
    "next((x for x in @), #)",
    "@.get('k', #)",
    "@.copy()",
    "list(@.values())",
    "list(@.items())",
    "list(zip(@, #))",
    "list(enumerate(@))",
    "list(reversed(@))",
    "sum(@, [])",
    "dict.fromkeys('k', @)",
    "dict.fromkeys(['k', 'j'], @)",
    "tuple(@)",
    "@ | #",
    "f(@)",
    "g(@, #)",
    "h(@)",
    "p(@).x",
    "P(@)",
    "m(@)",
    "list(filter(None, @))",
    "list(map(list, @))",
];

/// Statements; `~` is an expression.
const STATEMENTS: &[&str] = &[
    "@ = ~",
    "@ = ~",
    "@ = ~",
    "@ = ~",
    "@ = ~",
    "@.append(~)",
    "@.insert(0, ~)",
    "@[$] = ~",
    "@[$].append(#)",
    "@[$].append(1)",
    "@[$][$] = ~",
    "@ += ~",
    "@ *= 2",
    "@[$] += ~",
    "@.extend(#)",
    "@.extend([#])",
    "@.extend([[]] * 2)",
    "@.update({'z': #})",
    "@.update(k=#)",
    "@ = #.pop()",
    "@ = #.pop(0)",
    "@ = #.pop('k')",
    "@ = #.setdefault('k', [])",
    "@ = #.setdefault('q', @)",
    "@, # = #, @",
    "@, # = ~",
    "@ = # = ~",
    "@[:1] = ~",
    "@[0:] = ~",
];

const BEGIN: &str = "from dataclasses import dataclass
@dataclass
class P:
    x: list
def f(z):
    return z
def g(y, z):
    return [y, z]
def h(z):
    z = [z]
    return z
def m(z):
    z = list(z)
    z.append(7)
    return z
def p(z):
    return P(z)
q = 0
";

/// A plan that assigns and mutates four variables, and prints them.
pub fn plan(seed: u64) -> String {
    let mut plan = Aliases { rng: Rng::new(seed), out: BEGIN.into() };
    for name in NAMES {
        let first = plan.rng.one(FIRST);
        plan.line(0, &format!("{name} = {first}"));
    }
    for _ in 0..3 + plan.rng.below(6) {
        plan.statement(0, 2);
    }
    plan.line(0, "print(a, b, c, d)");
    plan.out
}

struct Aliases {
    rng: Rng,
    out: String,
}

impl Aliases {
    fn line(&mut self, depth: usize, text: &str) {
        self.out.push_str(&"    ".repeat(depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn filled(&mut self, template: &str) -> String {
        let mut out = String::new();
        let (first, second) = (self.rng.one(&NAMES), self.rng.one(&NAMES));
        for c in template.chars() {
            match c {
                '@' => out.push_str(first),
                '#' => out.push_str(second),
                '$' => out.push_str(self.rng.one(&["0", "-1", "'k'", "1"])),
                '~' => {
                    let value = self.value();
                    out.push_str(&value);
                }
                c => out.push(c),
            }
        }
        out
    }

    fn value(&mut self) -> String {
        if self.rng.chance(15) {
            return self.rng.one(ATOMS).into();
        }
        let template = self.rng.one(VALUES);
        self.filled(template)
    }

    fn block(&mut self, depth: usize, nesting: usize) {
        for _ in 0..1 + self.rng.below(3) {
            self.statement(depth, nesting);
        }
    }

    fn statement(&mut self, depth: usize, nesting: usize) {
        if nesting == 0 || self.rng.chance(75) {
            let template = self.rng.one(STATEMENTS);
            let text = self.filled(template);
            return self.line(depth, &text);
        }
        let nesting = nesting - 1;
        match self.rng.below(4) {
            0 => {
                let head = self.filled("if @:");
                self.line(depth, &head);
                self.block(depth + 1, nesting);
                if self.rng.chance(60) {
                    self.line(depth, "else:");
                    self.block(depth + 1, nesting);
                }
            }
            1 => {
                let item = if self.rng.chance(50) { "q".into() } else { format!("x{depth}") };
                let over = ["range(2)", "range(3)", "@", "[@, #]", "@.values()", "[[], [1]]", "[[]] * 2"];
                let over = self.rng.one(&over);
                let head = self.filled(&format!("for {item} in {over}:"));
                self.line(depth, &head);
                self.block(depth + 1, nesting);
                self.jump(depth + 1, nesting);
                if self.rng.chance(20) {
                    self.line(depth + 1, &format!("{item}.append(9)"));
                }
                if self.rng.chance(20) {
                    self.line(depth, "else:");
                    self.block(depth + 1, nesting);
                }
            }
            2 => {
                let n = format!("n{depth}");
                self.line(depth, &format!("{n} = 0"));
                self.line(depth, &format!("while {n} < 3:"));
                self.line(depth + 1, &format!("{n} += 1"));
                self.block(depth + 1, nesting);
                self.jump(depth + 1, nesting);
            }
            _ => {
                self.line(depth, "try:");
                self.block(depth + 1, nesting);
                self.line(depth, "except Exception:");
                self.block(depth + 1, nesting);
                if self.rng.chance(30) {
                    self.line(depth, "finally:");
                    self.block(depth + 1, nesting);
                }
            }
        }
    }

    /// On one way a statement and the end of the round; otherwise what follows.
    fn jump(&mut self, depth: usize, nesting: usize) {
        if self.rng.chance(50) {
            return;
        }
        let test = self.rng.one(&["q == 1", "@ == #", "@", "len(str(@)) > 4"]);
        let head = self.filled(&format!("if {test}:"));
        self.line(depth, &head);
        self.statement(depth + 1, 0);
        let way = self.rng.one(&["continue", "continue", "break"]);
        self.line(depth + 1, way);
        self.block(depth, nesting);
    }
}
