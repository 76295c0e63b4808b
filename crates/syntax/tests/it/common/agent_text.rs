//! Texts of programs with every construct, made from a sequence of choices, with the white space and the
//! comments of somebody in a hurry. They parse; whether their types are right is another matter.

/// Makes a program.
pub fn program(choices: &[u8]) -> String {
    let mut g = Maker { choices, at: 0, out: String::new(), budget: 400 };
    for _ in 0..=g.below(6) {
        g.item();
    }
    g.out
}

struct Maker<'a> {
    choices: &'a [u8],
    at: usize,
    out: String,
    /// Remaining budget.
    budget: usize,
}

const NAMES: &[&str] =
    &["a", "topic", "draft_of_the_article", "x1", "é", "model", "stage", "a_rather_long_name_for_a_variable"];
const TEXTS: &[&str] = &[
    "\"\"",
    "\"plain\"",
    "\"-- no comment\"",
    "\"a \\\"quoted\\\" { brace\"",
    "\"a somewhat longer text that takes a good part of the line it stands on\"",
    "\"\"\"\n      several\n        lines\n      \"\"\"",
];

impl Maker<'_> {
    fn below(&mut self, n: u8) -> u8 {
        // Where the choices are used up, the last alternative is taken: the small ones are last.
        let c = self.choices.get(self.at).map_or(n.saturating_sub(1), |c| c % n.max(1));
        self.at += 1;
        c
    }

    fn one<'b>(&mut self, of: &[&'b str]) -> &'b str {
        let i = self.below(of.len() as u8);
        of[i as usize]
    }

    fn small(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget == 0
    }

    /// Writes tokens with something between them.
    fn put(&mut self, tokens: &str) {
        for token in tokens.split(' ').filter(|t| !t.is_empty()) {
            self.token(token);
        }
    }

    fn token(&mut self, token: &str) {
        let space = match self.below(40) {
            0 => "\n",
            1 => "\n\n\n  ",
            2 => "   \t",
            3 => " -- trailing\n",
            4 => "\n  -- on its own line \n",
            5 => "\n\n// a remark\n\n",
            _ => " ",
        };
        // `endorse` and its operand, and the words of a declaration's head, stay on one line.
        let space = if self.out.ends_with("endorse") { " " } else { space };
        self.out.push_str(space);
        self.out.push_str(token);
    }

    fn name(&mut self) {
        let name = self.one(NAMES);
        self.token(name);
    }

    fn text(&mut self) {
        let text = self.one(TEXTS);
        self.token(text);
    }

    fn list(&mut self, open: &str, close: &str, most: u8, mut element: impl FnMut(&mut Self)) {
        self.token(open);
        let n = if self.small() { 0 } else { self.below(most + 1) };
        for i in 0..n {
            element(self);
            if i + 1 < n || self.below(3) == 0 {
                self.token(",");
            }
        }
        self.token(close);
    }

    fn ty(&mut self) {
        if self.small() {
            return self.token("String");
        }
        match self.below(7) {
            5 => self.put("lib . Ticket"),
            0 => self.token("Number"),
            1 => {
                self.put("List [");
                self.ty();
                self.token("]");
            }
            2 => {
                self.put("Option [");
                self.ty();
                self.token("]");
            }
            3 => {
                self.token("Obj");
                self.list("{", "}", 4, |g| {
                    g.name();
                    g.token(":");
                    g.ty();
                });
            }
            _ => self.token("String"),
        }
    }

    fn params(&mut self) {
        self.list("(", ")", 4, |g| {
            g.name();
            g.token(":");
            g.ty();
            if g.below(4) == 0 {
                let flow = g.one(&["untrusted", "secret", "requires trusted", "policy p"]);
                g.put(flow);
            }
        });
        self.token("->");
        self.ty();
    }

    fn item(&mut self) {
        // A declaration begins on a line of its own, as the parser's recovery expects.
        self.out.push('\n');
        match self.below(11) {
            9 => {
                let what = self.one(&["use \"lib.agent\"", "use mcp \"server\"", "use python \"tools.py\""]);
                self.put(what);
                match self.below(3) {
                    0 => {}
                    1 => self.put("as lib"),
                    _ => {
                        self.put("{ first");
                        for _ in 0..self.below(3) {
                            self.token(",");
                            self.name();
                            if self.below(2) == 0 {
                                self.put("as another_name");
                            }
                        }
                        self.token("}");
                    }
                }
                self.token(";");
            }
            8 => {
                self.put("policy {");
                self.rules(true);
                self.token("}");
            }
            0 => {
                self.put("type Alias =");
                self.ty();
                self.token(";");
            }
            1 => {
                self.put("enum Tone");
                self.list("{", "}", 5, Self::name);
                if self.below(2) == 0 {
                    self.token(";");
                }
            }
            2 => self.agent(),
            3 => {
                self.put("tool t");
                self.params();
                if self.below(2) == 0 {
                    self.put("reads untrusted");
                }
                self.body();
            }
            4 => {
                self.put("task t");
                self.params();
                if self.below(2) == 0 {
                    self.put("by agent");
                }
                self.body();
            }
            5 => {
                self.put("workflow w");
                self.params();
                self.token("{");
                for _ in 0..self.below(4) {
                    match self.below(3) {
                        0 => {
                            self.put("stage s = writer does draft");
                            self.list("(", ")", 3, Self::expr);
                            self.token(";");
                        }
                        1 => self.put(
                            "review reviewed = the_editor_in_chief checks the_first_draft revise with the_writer using improve_it max_rounds 3 ;",
                        ),
                        _ => {
                            self.token("return");
                            self.expr();
                            self.token(";");
                        }
                    }
                }
                self.token("}");
            }
            6 => {
                self.out.push_str("\ntest \"a test\"");
                self.block();
            }
            _ => {
                self.put("pipeline p");
                self.params();
                self.block();
            }
        }
    }

    /// Rules of a policy; those of a tool have none.
    fn rules(&mut self, outermost: bool) {
        for _ in 0..self.below(4) {
            match self.below(if outermost { 8 } else { 7 }) {
                0 => self.put("lattice levels ;"),
                1 => self.put("bound body untrusted secret ;"),
                2 => {
                    self.put("approve when");
                    self.expr();
                    self.token(";");
                }
                3 => {
                    self.token("allow");
                    self.expr();
                    self.put("else \"too_much\" ;");
                }
                4 => {
                    self.token("among");
                    self.list("{", "}", 2, |g| {
                        g.name();
                        g.put(": \"request\"");
                    });
                    self.token(";");
                }
                5 => self.put("at_most 3 ;"),
                6 => self.put("model \"*\" untrusted ;"),
                _ => {
                    self.put("tool pay {");
                    self.rules(false);
                    self.token("}");
                    if self.below(2) == 0 {
                        self.token(";");
                    }
                }
            }
        }
    }

    fn agent(&mut self) {
        self.out.push_str("\nagent writer {");
        let n = self.below(5);
        for i in 0..n {
            match i {
                0 => {
                    self.put("tools :");
                    self.list("[", "]", 3, Self::name);
                }
                1 => {
                    self.put("prompt :");
                    self.text_without_braces();
                }
                2 => {
                    self.put("memory : { store : \"local\" , keys :");
                    self.list("{", "}", 2, |g| {
                        g.name();
                        g.token(":");
                        g.ty();
                    });
                    self.put(", size : 20 }");
                }
                _ => self.put("budget : { usd : 0.4 , calls : 20 }"),
            }
            if i + 1 < n || self.below(2) == 0 {
                self.token(",");
            }
        }
        self.token("}");
        if self.below(3) == 0 {
            self.token(";");
        }
    }

    fn text_without_braces(&mut self) {
        let text = self.one(&["\"plain {x}\"", "\"\"\"\n   of {x}\n   lines\n   \"\"\""]);
        self.token(text);
    }

    fn body(&mut self) {
        self.token("{");
        match self.below(5) {
            0 => {
                if self.below(2) == 0 {
                    self.token("examples");
                    self.list("[", "]", 3, Self::expr);
                }
                self.token("prompt");
                self.text_without_braces();
            }
            1 => self.put("exec \"rg\" \"--json\" \"{pattern}\""),
            2 => self.put("builtin \"clock.now\" ;"),
            3 => self.put("http POST \"https://mail.internal/{x}\""),
            _ => {}
        }
        self.token("}");
    }

    fn block(&mut self) {
        self.token("{");
        let n = if self.small() { 0 } else { self.below(4) };
        for _ in 0..n {
            self.stmt();
        }
        self.token("}");
    }

    fn run(&mut self) {
        self.token("let");
        self.name();
        if self.below(2) == 0 {
            let work = self.one(&["= run work with", "= run lib . work with"]);
            self.put(work);
            self.list("{", "}", 4, Self::pair);
        } else {
            self.put("= work");
            self.list("(", ")", 3, Self::expr);
        }
        if self.below(2) == 0 {
            let writer = self.one(&["by writer", "by lib . writer"]);
            self.put(writer);
        }
        if self.below(2) == 0 {
            self.put("retries 2");
        }
        if self.below(2) == 0 {
            self.put("timeout 1.5");
        }
        match self.below(3) {
            0 => self.put("on_fail abort"),
            1 => {
                self.put("on_fail use");
                self.expr();
            }
            _ => {}
        }
        self.token(";");
    }

    fn pair(&mut self) {
        self.name();
        self.token(":");
        self.expr();
    }

    fn stmt(&mut self) {
        // So that what is missing is reported here, and reading goes on, as in any text.
        self.out.push('\n');
        match self.below(16) {
            0..4 => self.run(),
            4 => {
                self.token("let");
                self.name();
                self.token("=");
                self.expr();
                // A call would be another statement, with the same tokens.
                self.token(";");
            }
            5 => {
                self.token("parallel");
                if self.below(2) == 0 {
                    self.put("max_concurrency 2");
                }
                self.token("{");
                for _ in 0..self.below(3) {
                    self.run();
                }
                self.put("} join ;");
            }
            6 => {
                self.token("if");
                self.expr();
                self.block();
                while self.below(3) == 0 {
                    self.put("else if");
                    self.expr();
                    self.block();
                }
                if self.below(2) == 0 {
                    self.token("else");
                    self.block();
                }
            }
            7 => {
                let what =
                    self.one(&["if let y =", "if let Case { a , b : c } =", "if let lib . Case { a } ="]);
                self.put(what);
                self.expr();
                self.block();
                if self.below(3) == 0 {
                    self.token("else");
                    self.block();
                }
            }
            8 => {
                self.token("while");
                self.expr();
                if self.below(2) == 0 {
                    self.put("max 3");
                }
                self.block();
            }
            9 => {
                self.put("for item in");
                self.expr();
                self.block();
            }
            10 => {
                self.put("parallel for item in");
                self.expr();
                self.put("max_concurrency 4");
                self.block();
            }
            11 => {
                self.put("match tone {");
                for _ in 0..self.below(4) {
                    self.put("warm | \"cold\" =>");
                    self.block();
                    if self.below(2) == 0 {
                        self.token(",");
                    }
                }
                self.token("}");
            }
            12 => {
                self.token("try");
                self.block();
                let kind = self.below(4) as usize;
                match self.below(5) {
                    0 => {
                        self.token("ensure");
                        self.block();
                    }
                    other => {
                        self.put(["catch message", "catch error", "catch error e", "catch refusal e"][kind]);
                        self.block();
                        if other == 1 {
                            self.token("ensure");
                            self.block();
                        }
                    }
                }
            }
            13 => {
                self.token("assert");
                self.expr();
                if self.below(2) == 0 {
                    self.token(",");
                    self.text();
                }
                self.token(";");
            }
            14 => {
                self.put("guard x where");
                self.expr();
                self.put("retry 2 ;");
            }
            _ => {
                self.token("return");
                self.expr();
                self.token(";");
            }
        }
    }

    fn expr(&mut self) {
        if self.small() {
            return self.name();
        }
        match self.below(18) {
            0 => self.text(),
            1 => self.token("2.50"),
            2 => self.token("null"),
            3 => self.token("f\"a {x + 1} b\""),
            4 => {
                self.name();
                self.token(".");
                self.name();
            }
            5 => {
                self.name();
                self.token("[");
                self.expr();
                self.token("]");
            }
            6 | 7 => self.list("{", "}", 4, Self::pair),
            8 => self.list("[", "]", 5, Self::expr),
            9 => {
                self.token("length");
                self.list("(", ")", 3, Self::expr);
            }
            10 => {
                let op = self.one(&["!", "-"]);
                self.token(op);
                self.name();
            }
            11..14 => {
                self.expr();
                for _ in 0..=self.below(4) {
                    let op = self.one(&["+", "-", "*", "==", "&&", "||", "<"]);
                    self.token(op);
                    self.expr();
                }
            }
            14 => {
                self.token("(");
                self.expr();
                self.token(")");
            }
            15 => {
                self.put("quarantine ( \"about:{x}\" ) as");
                self.ty();
            }
            16 => {
                self.put("endorse x in");
                self.list("[", "]", 3, Self::text);
                self.put("else \"other\"");
            }
            _ => self.name(),
        }
    }
}
