//! `.agent` programs in one style.
//!
//! The tokens are those of the text, optional commas and semicolons aside; the tree says which braces hold
//! statements, where operators and clauses stand, and which brackets are types or indices.

use super::layout::{Gap, Layout, Nest, Note, Piece};
use crate::agent::ast::*;
use crate::agent::{lexer, parse};
use diagnostics::{Diagnostic, FileId, Span, has_errors};
use lexer::Token;
use std::collections::{HashMap, HashSet};

/// Writes a program in the one style.
///
/// # Errors
/// What is wrong with the text, if it is no program; such a text is not formatted.
///
/// # Examples
/// ```
/// let mut sources = diagnostics::Sources::new();
/// let text = "pipeline  id( x:String )->String{return x ;}";
/// let file = sources.add("id.agent", text);
/// let formatted = syntax::format::agent(file, text).unwrap();
/// assert_eq!(formatted, "pipeline id(x: String) -> String {\n    return x;\n}\n");
/// ```
pub fn agent(file: FileId, text: &str) -> Result<String, Vec<Diagnostic>> {
    let (program, found) = parse(file, text);
    if has_errors(&found) {
        return Err(found);
    }
    let out = arrange(file, text, &program).print();
    debug_assert!(!has_errors(&parse(file, &out).1), "formatted text is a program");
    Ok(out)
}

/// Layout of a bracket's content. A bracket without an entry is a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BracketKind {
    /// Statements, each on a line.
    Block,
    /// The cases of a `match`, each on a line, without commas.
    Cases,
    /// Body of a tool or task, or a block with nothing but its value.
    Body,
    /// Fields of a record type.
    Fields,
    /// One expression or type.
    Single,
    /// Elements with a comma after each but the last.
    List,
}

const STEP: usize = 4;

fn arrange<'a>(file: FileId, text: &'a str, program: &Program) -> Layout<'a> {
    let lexed = lexer::lex(file, text, 0, text.len());
    let tokens = lexed.tokens.iter().filter(|t| t.token != Token::End);
    let pieces = tokens.map(|t| Piece { start: t.start, end: t.end }).collect();
    let notes = lexed.comments.iter().map(|c| {
        let written = text.get(c.span.start as usize..c.span.end as usize).unwrap_or("").trim_end();
        Note { start: c.span.start, end: c.span.start + written.len() as u32, own_line: c.own_line }
    });
    let mut marks = Marks {
        l: Layout::new(text, pieces, notes.collect(), STEP),
        kinds: HashMap::new(),
        operands: HashSet::new(),
        prefixes: HashSet::new(),
        tight: HashSet::new(),
        breaks: Vec::new(),
    };
    marks.program(program);
    marks.spaces();
    for (i, gap) in std::mem::take(&mut marks.breaks) {
        marks.l.gap(i, gap);
    }
    marks.brackets();
    marks.l
}

/// Facts of the tree about the tokens, which are referred to by number.
struct Marks<'a> {
    l: Layout<'a>,
    /// Kinds of opening brackets.
    kinds: HashMap<usize, BracketKind>,
    /// Opening brackets of expressions in parentheses.
    operands: HashSet<usize>,
    /// Prefix operators.
    prefixes: HashSet<usize>,
    /// Opening brackets that stand directly after what they belong to.
    tight: HashSet<usize>,
    /// Gaps other than those that [`Marks::spaces`] gives.
    breaks: Vec<(usize, Gap)>,
}

impl Marks<'_> {
    fn first(&self, span: Span) -> usize {
        self.l.at(span.start)
    }

    /// The last token of a span.
    fn last(&self, span: Span) -> usize {
        self.l.at(span.end).saturating_sub(1)
    }

    fn break_at(&mut self, i: usize, gap: Gap) {
        self.breaks.push((i, gap));
    }

    /// Leaves out the semicolon that ends a span, if one does.
    fn no_semicolon(&mut self, span: Span) {
        let last = self.last(span);
        if self.l.source(last) == ";" {
            self.l.leave_out(last);
        }
    }

    fn program(&mut self, program: &Program) {
        let mut after_block = false;
        for item in &program.items {
            let (span, block) = match item {
                Item::Use(u) => (u.span, false),
                Item::Import(i) => {
                    self.signature(&i.params, &i.result);
                    (i.span, false)
                }
                Item::Const(c) => {
                    c.ty.iter().for_each(|t| self.ty(t));
                    self.expr(&c.value);
                    (c.span, false)
                }
                Item::Alias(a) => {
                    self.ty(&a.ty);
                    (a.span, false)
                }
                Item::Enum(e) => {
                    self.no_semicolon(e.span);
                    (e.span, false)
                }
                Item::Sum(s) => {
                    self.sum(s);
                    (s.span, false)
                }
                Item::Agent(a) => {
                    self.no_semicolon(a.span);
                    for field in &a.fields {
                        match &field.value {
                            AgentValue::Memory(m) => self.fields(&m.keys),
                            AgentValue::Settings(settings, _) => {
                                settings.iter().for_each(|(_, e)| self.expr(e))
                            }
                            _ => {}
                        }
                    }
                    (a.span, false)
                }
                Item::Tool(c) | Item::Task(c) => {
                    self.signature(&c.params, &c.result);
                    self.no_semicolon(Span { end: c.body.span.end.saturating_sub(1), ..c.body.span });
                    self.task_body(&c.body);
                    (c.span, false)
                }
                Item::Pipeline(p) | Item::Function(p) => {
                    if let Some(first) = p.generics.first() {
                        self.tight.insert(self.first(first.span) - 1);
                    }
                    self.signature(&p.params, &p.result);
                    self.block(&p.body);
                    (p.span, true)
                }
                Item::Policy(p) => {
                    self.rules(&p.rules, p.body_span);
                    (p.span, true)
                }
                Item::Workflow(w) => {
                    self.signature(&w.params, &w.result);
                    self.kind(w.body_span, BracketKind::Block);
                    w.steps.iter().for_each(|s| self.step(s));
                    (w.span, true)
                }
                Item::Test(t) => {
                    if let Some(ty) = t.rows.as_ref().and_then(|r| r.ty.as_ref()) {
                        self.ty(ty);
                    }
                    self.block(&t.body);
                    for mock in &t.mocks {
                        self.break_at(self.first(mock.span), Gap::Line);
                        self.expr(&mock.call);
                        if let MockAnswer::Gives(e) = &mock.answer {
                            self.expr(e);
                        }
                    }
                    for attack in &t.attacks {
                        self.break_at(self.first(attack.span), Gap::Line);
                    }
                    for expectation in &t.expectations {
                        self.break_at(self.first(expectation.span), Gap::Line);
                        self.expr(&expectation.call);
                    }
                    (t.span, true)
                }
            };
            let gap = if block || after_block { Gap::Blank } else { Gap::Line };
            after_block = block;
            self.break_at(self.first(span), gap);
        }
    }

    /// The rules of a policy, each on a line.
    fn rules(&mut self, rules: &[PolicyRule], body: Span) {
        // An explicit stack of what is still to be laid out: rules of tools stand inside of others.
        let mut work = vec![(rules, body)];
        while let Some((rules, body)) = work.pop() {
            self.kind(body, BracketKind::Block);
            for rule in rules {
                self.break_at(self.first(rule.span), Gap::Line);
                for arg in &rule.args {
                    if let PolicyArg::Value(e) = arg {
                        self.expr(e);
                    }
                }
                rule.condition.iter().for_each(|e| self.expr(e));
                if let Some((inner, body)) = &rule.rules {
                    self.no_semicolon(rule.span);
                    work.push((inner, *body));
                }
            }
        }
    }

    /// The body of a tool or task. One with examples has each part on a line of its own.
    fn task_body(&mut self, body: &Body) {
        let Some(examples) = &body.examples else {
            self.kind(body.span, BracketKind::Body);
            return;
        };
        self.kind(body.span, BracketKind::Block);
        self.expr(examples);
        let prompt = match &body.kind {
            BodyKind::Prompt(prompt) => Some(prompt.span),
            _ => None,
        };
        // A word is before each part.
        for part in body.system.iter().map(|t| t.span).chain([examples.span]).chain(prompt) {
            self.break_at(self.first(part) - 1, Gap::Line);
        }
    }

    fn kind(&mut self, span: Span, kind: BracketKind) {
        self.kinds.insert(self.first(span), kind);
    }

    fn signature(&mut self, params: &[Field], result: &TypeExpr) {
        self.fields(params);
        self.ty(result);
    }

    /// The cases of a sum type: all stay on one line, or all but the first begin one.
    fn sum(&mut self, sum: &Sum) {
        sum.cases.iter().for_each(|c| self.fields(&c.fields));
        for case in sum.cases.iter().skip(1) {
            self.break_at(self.first(case.span) - 1, Gap::Soft);
        }
        if let [first, second, ..] = &sum.cases[..] {
            let (first, bar, last) =
                (self.first(first.span), self.first(second.span) - 1, self.last(sum.span));
            self.l.group(first, last, false, self.l.broken_before(bar));
            self.l.indent(bar, last, Nest::Around);
        }
    }

    fn fields(&mut self, fields: &[Field]) {
        for f in fields {
            self.ty(&f.ty);
            f.default.iter().for_each(|e| self.expr(e));
        }
    }

    fn ty(&mut self, ty: &TypeExpr) {
        let bracket = self.first(ty.span) + 1;
        match &ty.kind {
            TypeKind::Name(_) | TypeKind::Error => {}
            TypeKind::List(t) | TypeKind::Option(t) => {
                self.tight.insert(bracket);
                self.kinds.insert(bracket, BracketKind::Single);
                self.ty(t);
            }
            TypeKind::Map(of) => {
                self.tight.insert(bracket);
                self.ty(&of.0);
                self.ty(&of.1);
            }
            TypeKind::Obj(fields) => {
                self.tight.insert(bracket);
                self.kinds.insert(bracket, BracketKind::Fields);
                self.fields(fields);
            }
            TypeKind::Literals(values) => {
                for value in values.iter().skip(1) {
                    self.break_at(self.first(value.span) - 1, Gap::Soft);
                }
                if let [first, second, ..] = &values[..] {
                    let (first, bar, last) =
                        (self.first(first.span), self.first(second.span) - 1, self.last(ty.span));
                    self.l.group(first, last, false, self.l.broken_before(bar));
                    self.l.indent(bar, last, Nest::Around);
                }
            }
            TypeKind::Where(of, condition) => {
                self.ty(of);
                self.expr(condition);
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let span = match step {
            Step::Stage { args, span, .. } => {
                args.iter().for_each(|e| self.expr(e));
                *span
            }
            Step::Review { subject, reviser, task, span, .. } => {
                let last = self.last(*span);
                // review y = r checks x · revise with v · using t · max_rounds n;
                let parts = [subject.span, reviser.span, task.span].map(|before| self.last(before) + 1);
                if parts[2] < last {
                    parts.into_iter().for_each(|p| self.break_at(p, Gap::Soft));
                    self.l.group(parts[0], last, true, false);
                    self.l.indent(parts[0], last, Nest::Around);
                }
                *span
            }
            Step::Return(e, span) => {
                self.expr(e);
                *span
            }
        };
        self.break_at(self.first(span), Gap::Line);
    }

    fn block(&mut self, block: &Block) {
        self.kind(block.span, BracketKind::Block);
        for stmt in &block.stmts {
            self.break_at(self.first(stmt.span), Gap::Line);
            self.stmt(stmt);
        }
    }

    /// The `else` of an `if`, or the body of an `ensure`.
    fn other(&mut self, block: &Block) {
        match &block.stmts[..] {
            // The block is the statement in it: an `else if`.
            [inner] if block.span == inner.span => self.stmt(inner),
            _ => self.block(block),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Run(run) => self.run(run),
            StmtKind::Let(_, ty, e) => {
                ty.iter().for_each(|t| self.ty(t));
                self.expr(e);
            }
            StmtKind::Assert(e, _) | StmtKind::Return(e) | StmtKind::Guard(_, e, _) => {
                self.expr(e);
            }
            StmtKind::Parallel { runs, .. } => {
                // The block has no node of its own: it ends with `} join ;`.
                let first = self.first(stmt.span);
                if let Some(open) = (first..=self.last(stmt.span)).find(|i| self.l.source(*i) == "{") {
                    self.kinds.insert(open, BracketKind::Block);
                }
                for run in runs {
                    self.break_at(self.first(run.span), Gap::Line);
                    self.run(run);
                }
            }
            StmtKind::If(e, then, other) | StmtKind::IfLet(_, e, then, other) => {
                self.expr(e);
                self.block(then);
                other.iter().for_each(|b| self.other(b));
            }
            StmtKind::While(e, _, body)
            | StmtKind::For(_, e, body)
            | StmtKind::ParallelFor(_, e, _, body) => {
                self.expr(e);
                self.block(body);
            }
            StmtKind::Match(e, arms)
                if let [case, other] = &arms[..]
                    && other.pattern.form == PatternForm::Else =>
            {
                self.expr(e);
                self.block(&case.body);
                if !other.pattern.is_left_out() {
                    self.other(&other.body);
                }
            }
            StmtKind::Match(e, arms) => {
                self.expr(e);
                let open = self.l.at(e.span.end);
                self.kinds.insert(open, BracketKind::Cases);
                for arm in arms {
                    self.break_at(self.first(arm.pattern.span), Gap::Line);
                    self.block(&arm.body);
                    let comma = self.last(arm.body.span) + 1;
                    if self.l.source(comma) == "," {
                        self.l.leave_out(comma);
                    }
                }
            }
            StmtKind::Try(body, _, handler) => {
                self.block(body);
                self.block(handler);
            }
            StmtKind::Ensure(body, cleanup) => {
                // With a `catch` the body is that `try`.
                self.other(body);
                self.block(cleanup);
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Error(_) => {}
        }
    }

    fn run(&mut self, run: &Run) {
        run.ty.iter().for_each(|t| self.ty(t));
        match &run.args {
            Args::Named(args) => args.iter().for_each(|(_, e)| self.expr(e)),
            Args::Positional(args) => {
                let end = Span { end: run.args_span.end, ..run.target.span };
                self.call(&run.target, args, end);
            }
        }
        for clause in &run.clauses {
            self.break_at(self.first(clause.span), Gap::Soft);
            if let ClauseKind::Use(e) = &clause.kind {
                self.expr(e);
            }
        }
        if let Some(first) = run.clauses.first() {
            let (first, last) = (self.first(first.span), self.last(run.span));
            self.l.group(first, last, true, false);
            self.l.indent(first, last, Nest::Around);
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Str(_)
            | ExprKind::Number(_)
            | ExprKind::Bool(_)
            | ExprKind::Null
            | ExprKind::Var(_)
            // What is in the holes stays as it is written.
            | ExprKind::Template(_)
            | ExprKind::Error => {}
            ExprKind::Field(e, _) | ExprKind::OptionalField(e, _) => self.expr(e),
            ExprKind::Index(a, b) => {
                let open = self.l.at(a.span.end);
                self.tight.insert(open);
                self.kinds.insert(open, BracketKind::Single);
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Record(fields) | ExprKind::Map(fields) | ExprKind::Construct(_, fields) => {
                fields.iter().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::Update(of, fields) => {
                self.prefixes.insert(self.first(e.span) + 1);
                self.expr(of);
                fields.iter().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::List(es) => es.iter().for_each(|e| self.expr(e)),
            ExprKind::Call(name, es) => self.call(name, es, e.span),
            ExprKind::Lambda(_, body) => {
                let open = self.first(e.span);
                if self.l.source(open) == "(" {
                    self.operands.insert(open);
                    self.kinds.insert(open, BracketKind::Single);
                }
                self.expr(body);
            }
            ExprKind::If(_, condition, then, other) => {
                self.expr(condition);
                self.expr(then);
                self.expr(other);
            }
            ExprKind::Match(of, arms) if let [case, other] = &arms[..] && other.pattern.form == PatternForm::Else => {
                self.expr(of);
                self.expr(&case.value);
                self.expr(&other.value);
            }
            ExprKind::Match(of, arms) => {
                self.expr(of);
                let open = self.l.at(of.span.end);
                self.kinds.insert(open, BracketKind::Cases);
                for arm in arms {
                    self.break_at(self.first(arm.pattern.span), Gap::Line);
                    self.expr(&arm.value);
                    let last = self.last(arm.value.span);
                    match (self.l.source(last + 1) == ",", matches!(arm.value.kind, ExprKind::Block(..))) {
                        (true, true) => self.l.leave_out(last + 1),
                        (false, false) => self.l.comma_if_broken(last),
                        _ => {}
                    }
                }
            }
            ExprKind::Block(lets, body) => {
                let kind = if lets.is_empty() { BracketKind::Body } else { BracketKind::Block };
                self.kind(e.span, kind);
                for l in lets {
                    self.break_at(self.first(l.span), Gap::Line);
                    l.ty.iter().for_each(|t| self.ty(t));
                    self.expr(&l.value);
                }
                if !lets.is_empty() {
                    self.break_at(self.first(body.span), Gap::Line);
                }
                self.expr(body);
            }
            ExprKind::Unary(_, inner) => {
                self.prefixes.insert(self.first(e.span));
                self.expr(inner);
            }
            ExprKind::Binary(op, ..) => self.chain(e, op.precedence()),
            ExprKind::Paren(inner) => {
                let open = self.first(e.span);
                self.operands.insert(open);
                self.kinds.insert(open, BracketKind::Single);
                self.expr(inner);
            }
            ExprKind::Quarantine(inner, ty) => {
                // With a comma after it, the prompt would be a string without holes.
                self.kinds.insert(self.first(e.span) + 1, BracketKind::Single);
                self.expr(inner);
                self.ty(ty);
            }
            ExprKind::Endorse(inner, es, other) => {
                self.expr(inner);
                es.iter().for_each(|e| self.expr(e));
                if let Some(e) = other {
                    self.expr(e);
                }
            }
        }
    }

    /// A call. Several calls in a row, `xs.filter(…).map(…)`, stay on one line or each begins one.
    fn call(&mut self, name: &Name, args: &[Expr], whole: Span) {
        let is_method = |name: &Name, args: &[Expr]| {
            args.first().is_some_and(|of| of.span.end <= name.span.start && of.span.file == name.span.file)
        };
        let (mut name, mut args, mut dots) = (name, args, Vec::new());
        let mut first = whole;
        while is_method(name, args) {
            dots.push(self.first(name.span).saturating_sub(1));
            args[1..].iter().for_each(|e| self.expr(e));
            first = args[0].span;
            match &args[0].kind {
                ExprKind::Call(inner, of) => (name, args) = (inner, of),
                _ => {
                    self.expr(&args[0]);
                    args = &[];
                }
            }
        }
        args.iter().for_each(|e| self.expr(e));
        let Some(outermost) = dots.last().copied().filter(|_| dots.len() > 1) else { return };
        let broken = dots.iter().any(|dot| self.l.broken_before(*dot));
        dots.iter().for_each(|dot| self.break_at(*dot, Gap::SoftTight));
        let last = self.last(whole);
        self.l.group(self.first(first), last, false, broken);
        self.l.indent(outermost, last, Nest::Around);
    }

    /// Operators of one precedence in a row: all stay on one line or all begin a line.
    fn chain(&mut self, e: &Expr, precedence: u8) {
        let (mut left, mut first_op) = (e, 0);
        while let ExprKind::Binary(op, at, a, b) = &left.kind
            && op.precedence() == precedence
        {
            first_op = self.first(*at);
            self.break_at(first_op, Gap::Soft);
            self.expr(b);
            left = a;
        }
        self.expr(left);
        let (first, last) = (self.first(e.span), self.last(e.span));
        self.l.group(first, last, false, false);
        self.l.indent(first_op, last, Nest::Around);
    }

    /// Spaces between tokens, where no line can be broken.
    fn spaces(&mut self) {
        for i in 1..self.l.pieces.len() {
            let (before, here) = (self.l.source(i - 1), self.l.source(i));
            let tight = match here {
                "," | ";" | ")" | "]" | "." | "?." | ":" => true,
                "(" => !self.operands.contains(&i),
                "[" | "{" => self.tight.contains(&i),
                _ => false,
            };
            if tight || matches!(before, "(" | "[" | "." | "?.") || self.prefixes.contains(&(i - 1)) {
                self.l.gap(i, Gap::Tight);
            }
        }
    }

    /// Lays out the content of brackets.
    fn brackets(&mut self) {
        // The opening brackets around, each with the commas between its elements.
        let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
        // Brackets that have been closed: where they began.
        let mut began = HashMap::new();
        for i in 0..self.l.pieces.len() {
            match self.l.source(i) {
                "{" | "(" | "[" => open.push((i, Vec::new())),
                "," => {
                    if let Some((_, commas)) = open.last_mut() {
                        commas.push(i);
                    }
                }
                "}" | ")" | "]" => {
                    if let Some((first, commas)) = open.pop() {
                        began.insert(i, first);
                        self.bracket(first, i, &commas, &began);
                    }
                }
                _ => {}
            }
        }
    }

    fn bracket(&mut self, open: usize, close: usize, commas: &[usize], began: &HashMap<usize, usize>) {
        let kind = self.kinds.get(&open).copied().unwrap_or(BracketKind::List);
        let empty = open + 1 == close;
        match kind {
            BracketKind::Single => return,
            BracketKind::Block | BracketKind::Cases => {
                self.l.bracket(open, close, Nest::Around);
                self.l.gap(close, if empty { Gap::Tight } else { Gap::Line });
                return;
            }
            BracketKind::Body | BracketKind::Fields | BracketKind::List => {}
        }
        if kind != BracketKind::Body
            && let Some(last) = commas.last().filter(|c| **c + 1 == close)
        {
            self.l.leave_out(*last);
        }
        let Some(last) = self.l.kept_before(close) else { return };
        // A bracket around one bracket is one with it.
        if self.l.source(open) == "(" && last > open && began.get(&last) == Some(&(open + 1)) {
            self.l.gap(close, Gap::Tight);
            return;
        }
        self.l.bracket(open, close, Nest::Line);
        let spaced = self.l.source(open) == "{" && kind != BracketKind::Fields && !empty;
        let edge = if spaced { Gap::Soft } else { Gap::SoftTight };
        self.l.gap(open + 1, edge);
        self.l.gap(close, edge);
        if empty {
            self.l.gap(close, Gap::Tight);
            return;
        }
        self.l.group(open, close, false, self.l.broken_before(open + 1));
        if kind != BracketKind::Body {
            for comma in commas.iter().filter(|c| **c != last) {
                self.l.gap(comma + 1, Gap::Soft);
            }
            self.l.gap(close, edge);
            self.l.comma_if_broken(last);
        }
    }
}
