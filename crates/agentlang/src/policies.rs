//! The block `policy { … }` as the tables that a policy file has.
//!
//! A condition, of `allow` or after `when`, becomes a function from the arguments of the call to a Bool. So
//! it is checked and lowered as one. Its name has a space, so no program can call it.
//!
//! Invariant: only the form of rules is known here. What a key means, the crate `policy` knows.

use super::decls::{CallableKind, Decls};
use core_ir::{Builder, Code, Data, Globals, IfSugar, Name, Term, print_code};
use diagnostics::{Diagnostic, Span, clip, nearest};
use policy::codes;
use policy::tree::{Node, Spanned, Table, Value};
use syntax::agent::ast::{
    self, Block, Callable, Expr, ExprKind, Item, Pipeline, PolicyArg, PolicyRule, Program, Stmt, StmtKind,
    TypeExpr, TypeKind, UnaryOp,
};
use syntax::agent::keywords::{self, Role, is};

/// The function that a condition became.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    /// Place of the rule.
    rule: Span,
    /// Index of the item.
    pub(super) item: usize,
}

/// The blocks of a program, in order.
fn blocks(program: &Program) -> impl Iterator<Item = &ast::PolicyBlock> {
    program.items.iter().filter_map(|item| match item {
        Item::Policy(block) => Some(block),
        _ => None,
    })
}

/// The tool or task that a rule `tool NAME { … }` is about, as it is declared.
fn declared<'a>(program: &'a Program, name: &str) -> Option<&'a Callable> {
    let find = |task: bool| {
        program.items.iter().find_map(|item| match item {
            Item::Tool(c) if !task && c.name.text == name => Some(c),
            Item::Task(c) if task && c.by_agent.is_none() && c.name.text == name => Some(c),
            _ => None,
        })
    };
    find(false).or_else(|| find(true))
}

fn tool_name(rule: &PolicyRule) -> Option<(&str, Span)> {
    match &rule.args[..] {
        [PolicyArg::Word(name)] => Some((&name.text, name.span)),
        [PolicyArg::Text(name)] => Some((&name.value, name.span)),
        _ => None,
    }
}

/// A condition that is a text is a function in `.lam`.
fn is_lam(condition: &Expr) -> bool {
    matches!(condition.kind, ExprKind::Str(_))
}

/// Adds a function for each condition.
pub(super) fn expand(program: &mut Program) -> Vec<Condition> {
    let (mut functions, mut out) = (Vec::new(), Vec::new());
    for rule in blocks(program).flat_map(|b| &b.rules).filter(|r| r.key.text == "tool") {
        let Some(tool) = tool_name(rule).and_then(|(name, _)| declared(program, name)) else { continue };
        for inner in rule.rules.iter().flat_map(|(rules, _)| rules) {
            let Some(condition) = inner.condition.as_ref().filter(|e| !is_lam(e)) else { continue };
            let name = format!("the condition of {} {}", tool.name.text, functions.len() + 1);
            let params = tool.params.iter().map(|p| ast::Field { flow: Vec::new(), ..p.clone() });
            let returns = Stmt { kind: StmtKind::Return(condition.clone()), span: condition.span };
            out.push(Condition { rule: inner.span, item: program.items.len() + functions.len() });
            functions.push(Pipeline {
                name: ast::Name { text: name, span: inner.key.span },
                generics: Vec::new(),
                params: params.collect(),
                result: TypeExpr { kind: TypeKind::Name("Bool".into()), span: inner.key.span },
                body: Block { stmts: vec![returns], span: condition.span },
                span: inner.span,
            });
        }
    }
    program.items.extend(functions.into_iter().map(Item::Function));
    out
}

/// The function from the record of arguments as a policy has them, each with `value` and `label`.
pub(super) fn of_values(function: &Code, params: &[Name], at: Span) -> Option<Code> {
    let mut b = Builder::new();
    let inner = b.graft(function);
    let called = b.fresh("called");
    let value = |b: &mut Builder, param: &Name| {
        let all = b.var(called.clone(), at);
        let argument = b.add(Term::Field(all, param.clone()), at);
        b.add(Term::Field(argument, "value".into()), at)
    };
    let fields: Vec<_> = params.iter().map(|p| (p.clone(), value(&mut b, p))).collect();
    let args = b.add(Term::Record(fields), at);
    let applied = b.app(inner, args, at);
    let root = b.abs(called, None, applied, at);
    b.finish(root, &Globals::none()).ok()
}

/// A function that gives the reason where the condition does not hold.
fn with_reason(function: &Code, reason: &str, at: Span) -> Option<Code> {
    let mut b = Builder::new();
    let inner = b.graft(function);
    let called = b.fresh("called");
    let given = b.var(called.clone(), at);
    let holds = b.app(inner, given, at);
    let (yes, no) = (b.lit(true, at), b.lit(Data::str(reason), at));
    let choice = b.add(Term::If(holds, yes, no, IfSugar::Plain), at);
    let root = b.abs(called, None, choice, at);
    b.finish(root, &Globals::none()).ok()
}

/// The tables of the blocks of a program; `None` without a block. `condition` gives the function of a
/// condition.
pub(super) fn table(
    program: &Program,
    decls: &Decls,
    condition: &mut dyn FnMut(&PolicyRule) -> Option<Code>,
    out: &mut Vec<Diagnostic>,
) -> Option<Table> {
    let mut root = Table::default();
    let mut any = false;
    for block in blocks(program) {
        any = true;
        let mut writer = Writer { decls, condition, out };
        for rule in &block.rules {
            writer.outermost(rule, &mut root);
        }
    }
    any.then_some(root)
}

struct Writer<'a> {
    decls: &'a Decls,
    condition: &'a mut dyn FnMut(&PolicyRule) -> Option<Code>,
    out: &'a mut Vec<Diagnostic>,
}

/// Rules of a program as a whole, each with an example.
const OUTERMOST: &[(&str, &str)] = &[
    ("lattice", "lattice levels;"),
    ("principal", "principal alice { email: \"alice@example.org\" };"),
    ("readers", "readers [\"alice\"];"),
    ("sources", "sources [\"web\"];"),
    ("place", "place \"/home/me/**\" trusted;"),
    ("model", "model \"*\" untrusted;"),
    ("output", "output { bound untrusted; }"),
    ("tool", "tool pay { approve; }"),
    ("unknown_tools", "unknown_tools { reads; }"),
];

/// Rules of a tool, each with an example.
const OF_TOOL: &[(&str, &str)] = &[
    ("pure", "pure;"),
    ("reads", "reads;"),
    ("writes", "writes;"),
    ("control", "control untrusted;"),
    ("arguments", "arguments untrusted;"),
    ("bound", "bound body secret;` or `bound path below \"/downloads/\";"),
    ("result", "result untrusted;` or `result \"[].id\" trusted;"),
    ("readers", "readers \"[]\" \"@to\";` or `readers body includes \"@to\";"),
    ("among", "among to \"tools.contacts().email\";"),
    ("plain", "plain body \"no-links\";"),
    ("pattern", "pattern code \"[0-9]{6}\";"),
    ("completes", "completes code;"),
    ("approve", "approve;`, `approve if_refused;` or `approve when amount > 50;"),
    ("at_most", "at_most 3;"),
    ("allow", "allow amount <= 1500 else \"too much\";"),
];

/// Rules of `output`, each with an example.
const OF_OUTPUT: &[(&str, &str)] =
    &[("clearance", "clearance untrusted;"), ("bound", "bound untrusted;"), ("plain", "plain \"no-links\";")];

fn key(text: &str, at: Span) -> Spanned<String> {
    Spanned::new(at, text.to_string())
}

fn text(text: &str, at: Span) -> Value {
    Spanned::new(at, Node::Text(text.to_string()))
}

/// From the first of some words and values to the last.
fn place_of(rule: &PolicyRule, args: &[PolicyArg]) -> Span {
    match (args.first(), args.last()) {
        (Some(first), Some(last)) => Span { end: last.span().end, ..first.span() },
        _ => rule.key.span,
    }
}

impl Writer<'_> {
    fn report(&mut self, d: Diagnostic) {
        self.out.push(d);
    }

    /// Reports a rule that has not the form of its key.
    fn malformed(&mut self, rule: &PolicyRule, known: &[(&str, &str)]) {
        let Some((_, example)) = known.iter().find(|(key, _)| *key == rule.key.text) else {
            let d = Diagnostic::error(
                codes::UNKNOWN_KEY,
                format!("a policy has no rule `{}` here", clip(&rule.key.text)),
                rule.key.span,
            );
            let names = || known.iter().map(|(key, _)| *key);
            let instead = keywords::instead_of_rule(&rule.key.text);
            let elsewhere = is(&rule.key.text, Role::Rule) || is(&rule.key.text, Role::Flow);
            self.report(match nearest(&rule.key.text, names()) {
                _ if let Some(help) = instead => d.help(help),
                Some(near) if !elsewhere => d.help(format!("did you mean `{near}`?")),
                _ => d.help(format!("there is: {}", names().collect::<Vec<_>>().join(", "))),
            });
            return;
        };
        let message = format!("this is no rule `{}`", rule.key.text);
        let d = Diagnostic::error(codes::WRONG_VALUE, message, rule.span);
        self.report(d.help(format!("write `{example}`")));
    }

    /// Adds a key, which must not be there.
    fn put(&mut self, table: &mut Table, key: Spanned<String>, value: Value) {
        let (name, at) = (key.get_ref().clone(), key.span());
        if let Some(first) = table.insert(key, value) {
            let message = format!("the program says `{}` twice", clip(&name));
            let d = Diagnostic::error(codes::CONTRADICTION, message, at);
            self.report(d.remark(first, "said here").help("let one of the two say it"));
        }
    }

    /// Adds a key with its value, if there is one. Returns true if there is.
    fn put_some(&mut self, table: &mut Table, key: Spanned<String>, value: Option<Value>) -> bool {
        value.map(|value| self.put(table, key, value)).is_some()
    }

    /// Adds a key to the table of another one, which is added if it is not there. Returns true if it has a
    /// value.
    fn put_below(
        &mut self,
        table: &mut Table,
        of: Spanned<String>,
        key: Spanned<String>,
        value: Option<Value>,
    ) -> bool {
        let Some(value) = value else { return false };
        let Some(table) = table.table_at(&of) else { return false };
        self.put(table, key, value);
        true
    }

    /// A label: words, or a value of the lattice.
    fn label(&mut self, rule: &PolicyRule, args: &[PolicyArg]) -> Option<Value> {
        let at = place_of(rule, args);
        if let [PolicyArg::Value(e)] = args {
            return self.value(e);
        }
        let words = args.iter().map(|arg| match arg {
            PolicyArg::Word(name) => Some(name.text.as_str()),
            _ => None,
        });
        let words: Vec<&str> = words.collect::<Option<_>>()?;
        (!words.is_empty()).then(|| text(&words.join(" "), at))
    }

    /// A constant.
    fn value(&mut self, e: &Expr) -> Option<Value> {
        // Expressions have a bounded height.
        let node = match &e.kind {
            ExprKind::Str(s) => Node::Text(s.clone()),
            ExprKind::Bool(b) => Node::Bool(*b),
            ExprKind::Number(n) => Node::Whole(n.parse().ok()),
            ExprKind::Unary(UnaryOp::Neg, _) => Node::Whole(None),
            ExprKind::Paren(inner) => return self.value(inner),
            ExprKind::List(items) => {
                Node::List(items.iter().map(|item| self.value(item)).collect::<Option<_>>()?)
            }
            ExprKind::Record(fields) | ExprKind::Map(fields) => {
                let mut table = Table::default();
                for (name, value) in fields {
                    let value = self.value(value)?;
                    self.put(&mut table, key(&name.text, name.span), value);
                }
                Node::Table(table)
            }
            ExprKind::Error => return None,
            _ => {
                let message = "a policy has constants here";
                let d = Diagnostic::error(codes::WRONG_VALUE, message, e.span);
                self.report(d.help("write a text, a number, `true`, `false`, a list or a record of them"));
                return None;
            }
        };
        Some(Spanned::new(e.span, node))
    }

    fn outermost(&mut self, rule: &PolicyRule, root: &mut Table) {
        let at = rule.key.span;
        let done = match (&*rule.key.text, &rule.args[..], &rule.rules) {
            ("lattice", [PolicyArg::Word(ast::Name { text: name, span })], None)
            | ("lattice", [PolicyArg::Text(ast::StrLit { value: name, span })], None) => {
                self.put(root, key("lattice", at), text(name, *span));
                true
            }
            ("principal", [PolicyArg::Word(name), value], None) => {
                let value = match value {
                    PolicyArg::Text(s) => Some(text(&s.value, s.span)),
                    PolicyArg::Value(e) => self.value(e),
                    _ => None,
                };
                self.put_below(root, key("principals", at), key(&name.text, name.span), value)
            }
            ("readers" | "sources", [PolicyArg::Value(e)], None) => {
                let value = self.value(e);
                self.put_below(root, key("principals", at), key(&rule.key.text, at), value)
            }
            ("place", [PolicyArg::Text(place), label @ ..], None) => {
                let label = self.label(rule, label);
                self.put_below(root, key("places", at), key(&place.value, place.span), label)
            }
            ("model", [PolicyArg::Word(ast::Name { text: name, span }), label @ ..], None)
            | ("model", [PolicyArg::Text(ast::StrLit { value: name, span }), label @ ..], None) => {
                let model = self.label(rule, label).map(|label| {
                    let mut model = Table::default();
                    model.insert(key("clearance", *span), label);
                    Spanned::new(*span, Node::Table(model))
                });
                self.put_below(root, key("models", at), key(name, *span), model)
            }
            ("output", [], Some((rules, _))) => {
                for inner in rules {
                    let value = match (&*inner.key.text, &inner.args[..]) {
                        ("clearance" | "bound", label) => self.label(inner, label),
                        ("plain", [PolicyArg::Text(form)]) => Some(text(&form.value, form.span)),
                        _ => None,
                    };
                    let value = value.filter(|_| is_plain(inner));
                    if !self.put_below(root, key("output", at), key(&inner.key.text, inner.key.span), value) {
                        self.malformed(inner, OF_OUTPUT);
                    }
                }
                true
            }
            ("tool", [_], Some((rules, _))) => match tool_name(rule) {
                Some((name, span)) => {
                    self.tool(name, span, at, rules, root);
                    true
                }
                None => false,
            },
            ("unknown_tools", [], Some((rules, _))) => {
                if let Some(table) = root.table_at(&key("unknown_tools", at)) {
                    rules.iter().for_each(|inner| self.rule(inner, &[], table));
                }
                true
            }
            _ => false,
        };
        if !done || rule.condition.is_some() {
            self.malformed(rule, OUTERMOST);
        }
    }

    fn tool(&mut self, name: &str, span: Span, at: Span, rules: &[PolicyRule], root: &mut Table) {
        let of_program = self.decls.tools.get(name).or_else(|| {
            let task = self.decls.callables.get(name);
            task.filter(|s| s.kind == CallableKind::Task)
        });
        let called = match of_program {
            Some(s) => self.decls.handler_name(s),
            // The configurations that a program imports have tools of their own, which it can't name.
            None if self.decls.callables.values().any(|s| s.kind == CallableKind::Import) => name.to_string(),
            None => {
                let message = format!("the program has no tool `{}`", clip(name));
                let d = Diagnostic::error(codes::UNKNOWN_NAME, message, span);
                let names = self.decls.tools.keys().map(String::as_str);
                let d = match nearest(name, names) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help("declare it with `tool`, or remove the rules"),
                };
                return self.report(d);
            }
        };
        let params: Vec<Name> = of_program
            .map_or_else(Vec::new, |s| s.params.iter().map(|p| p.name.text.as_str().into()).collect());
        let Some(tools) = root.table_at(&key("tools", at)) else { return };
        let Some(table) = tools.table_at(&key(&called, span)) else { return };
        for inner in rules {
            self.rule(inner, &params, table);
        }
    }

    /// A rule of a tool.
    fn rule(&mut self, rule: &PolicyRule, params: &[Name], table: &mut Table) {
        let at = rule.key.span;
        let word = &*rule.key.text;
        let effect = match word {
            "pure" => Some("pure"),
            "reads" => Some("read"),
            "writes" => Some("write"),
            _ => None,
        };
        let done = match (word, &rule.args[..]) {
            ("pure" | "reads" | "writes", []) if is_plain(rule) => {
                self.put(table, key("effect", at), text(effect.unwrap_or_default(), at));
                true
            }
            ("control" | "arguments", label) if is_plain(rule) => {
                let label = self.label(rule, label);
                self.put_some(table, key(word, at), label)
            }
            ("bound", [PolicyArg::Word(param), PolicyArg::Word(below), PolicyArg::Text(place)])
                if below.text == "below" && is_plain(rule) =>
            {
                let value = text(&format!("under:{}", place.value), place.span);
                self.put_below(table, key("bounds", at), key(&param.text, param.span), Some(value))
            }
            ("bound", [PolicyArg::Word(param), label @ ..]) if is_plain(rule) => {
                let label = self.label(rule, label);
                self.put_below(table, key("bounds", at), key(&param.text, param.span), label)
            }
            ("result", [PolicyArg::Text(path), rest @ ..]) if is_plain(rule) => {
                let label = self.part_of_result(rule, rest);
                self.put_below(table, key("fields", at), key(&path.value, path.span), label)
            }
            ("result", label) if is_plain(rule) => {
                let label = self.label(rule, label);
                self.put_some(table, key(word, at), label)
            }
            ("readers", [PolicyArg::Text(path), PolicyArg::Text(who)]) if is_plain(rule) => {
                let who = text(&who.value, who.span);
                self.put_below(table, key("readers", at), key(&path.value, path.span), Some(who))
            }
            ("readers", [PolicyArg::Word(param), PolicyArg::Word(includes), PolicyArg::Text(who)])
                if includes.text == "includes" && is_plain(rule) =>
            {
                let value = text(&format!("includes {}", who.value), who.span);
                self.put_below(table, key("readers", at), key(&param.text, param.span), Some(value))
            }
            ("among", [PolicyArg::Word(param), PolicyArg::Text(set)]) if is_plain(rule) => {
                let mut sets = Table::default();
                sets.insert(key(&param.text, param.span), text(&set.value, set.span));
                self.set(table, sets, rule)
            }
            ("among", [PolicyArg::Value(e)]) if is_plain(rule) => match self.value(e) {
                Some(value) => match value.get_ref() {
                    Node::Table(sets) => self.set(table, sets.clone(), rule),
                    _ => false,
                },
                None => return,
            },
            ("plain" | "pattern", [PolicyArg::Word(param), PolicyArg::Text(form)]) if is_plain(rule) => self
                .put_below(
                    table,
                    key(word, at),
                    key(&param.text, param.span),
                    Some(text(&form.value, form.span)),
                ),
            ("completes", [_, ..]) if is_plain(rule) => {
                let names = rule.args.iter().map(|arg| match arg {
                    PolicyArg::Word(name) => Some(text(&name.text, name.span)),
                    _ => None,
                });
                match (names.collect::<Option<Vec<_>>>(), table.list_at(&key(word, at))) {
                    (Some(names), Some(list)) => {
                        list.extend(names);
                        true
                    }
                    _ => false,
                }
            }
            ("at_most", [PolicyArg::Number(n)]) if is_plain(rule) => {
                let value = Spanned::new(n.span, Node::Whole(n.text.parse().ok()));
                self.put(table, key(word, at), value);
                true
            }
            ("approve", []) if rule.condition.is_some() => {
                if let Some(function) = self.function(rule, params) {
                    let mut when = Table::default();
                    when.insert(key("when", at), function);
                    self.put(table, key(word, at), Spanned::new(rule.span, Node::Table(when)));
                }
                true
            }
            ("approve", []) if is_plain(rule) => {
                self.put(table, key(word, at), Spanned::new(at, Node::Bool(true)));
                true
            }
            ("approve", [PolicyArg::Word(which)]) if is_plain(rule) => {
                let value = match &*which.text {
                    "if_refused" => Some(Node::Text("if-refused".into())),
                    "never" => Some(Node::Bool(false)),
                    _ => None,
                };
                self.put_some(table, key(word, at), value.map(|value| Spanned::new(which.span, value)))
            }
            ("allow", []) if rule.condition.is_some() => {
                if let Some(function) = self.function(rule, params) {
                    self.put(table, key(word, at), function);
                }
                true
            }
            _ => false,
        };
        if !done {
            self.malformed(rule, OF_TOOL);
        }
    }

    /// Adds a set, or sets that belong together.
    fn set(&mut self, table: &mut Table, sets: Table, rule: &PolicyRule) -> bool {
        let Some(list) = table.list_at(&key("among", rule.key.span)) else { return false };
        list.push(Spanned::new(rule.span, Node::Table(sets)));
        true
    }

    /// The label of a part of a result: words, or `from` a field beside it or an argument, or both.
    fn part_of_result(&mut self, rule: &PolicyRule, args: &[PolicyArg]) -> Option<Value> {
        let from = args.iter().position(|arg| matches!(arg, PolicyArg::Word(name) if name.text == "from"));
        let Some(from) = from else { return self.label(rule, args) };
        let [PolicyArg::Text(source)] = &args[from + 1..] else { return None };
        let mut part = Table::default();
        if from > 0 {
            let label = self.label(rule, &args[..from])?;
            part.insert(key("label", rule.key.span), label);
        }
        part.insert(key("source", source.span), text(&source.value, source.span));
        Some(Spanned::new(place_of(rule, args), Node::Table(part)))
    }

    /// The function of a condition, in `.lam`.
    fn function(&mut self, rule: &PolicyRule, params: &[Name]) -> Option<Value> {
        let condition = rule.condition.as_ref()?;
        let at = condition.span;
        if let ExprKind::Str(lam) = &condition.kind {
            if let Some(reason) = &rule.reason {
                let d = Diagnostic::error(
                    codes::WRONG_VALUE,
                    "a function in `.lam` says itself why it refuses a call",
                    reason.span,
                );
                self.report(d.help("let the function give the text, and remove `else`"));
            }
            return Some(text(lam, at));
        }
        let code = (self.condition)(rule)?;
        let code = of_values(&code, params, at)?;
        let code = match &rule.reason {
            Some(reason) => with_reason(&code, &reason.value, at)?,
            None => code,
        };
        Some(text(&print_code(&code), at))
    }
}

/// Returns true if a rule has only words and values.
fn is_plain(rule: &PolicyRule) -> bool {
    rule.condition.is_none() && rule.rules.is_none()
}

/// The function that the condition of a rule became.
pub(super) fn of_rule<'a>(conditions: &'a [Condition], rule: &PolicyRule) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.rule == rule.span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use syntax::agent::keywords::words;

    #[test]
    fn every_rule_is_a_word_of_the_table() {
        let known = || OUTERMOST.iter().chain(OF_TOOL).chain(OF_OUTPUT).map(|(key, _)| *key);
        for word in known() {
            assert!(is(word, Role::Rule) || is(word, Role::Flow) || is(word, Role::Item), "{word}");
        }
        for word in words(Role::Rule).filter(|w| *w != "below") {
            assert!(known().any(|key| key == word), "{word}");
        }
    }
}
