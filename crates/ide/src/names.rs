//! The names of an `.agent` program: where they are declared and where they are used.

use crate::SymbolKind;
use diagnostics::{FileId, Span};
use std::collections::{HashMap, HashSet};
use syntax::agent::ast::{
    AgentValue, Args, Block, BodyKind, Callable, ClauseKind, Expr, ExprKind, Field, FlowKind, Item, Name,
    Pattern, PatternForm, PolicyArg, PolicyRule, Program, Run, Step, StmtKind, Template, TemplatePart,
    TypeExpr, TypeKind, Use, UsedNames,
};

/// Kinds of named items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Type,
    /// A case of a type with cases.
    Case,
    Agent,
    Tool,
    /// A task, pipeline or workflow; in a call, perhaps a tool.
    Callable,
    /// A variable of the item with this number.
    Variable(usize),
    Policy,
    /// A value for all of the program. Behind an import, any value or function.
    Constant,
    /// A file behind a name.
    Import,
    /// A name of another file, of any kind, in the braces of an import.
    Taken,
    /// The name that it has in this file instead.
    Renamed,
}

/// A place with a name.
#[derive(Clone, Debug)]
pub(crate) struct Occurrence {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) span: Span,
    pub(crate) declares: bool,
    /// The import behind whose name it stands: `lib` in `lib.classify`.
    pub(crate) behind: Option<String>,
}

/// All names of a program, in the order of the text.
pub(crate) struct Names {
    pub(crate) all: Vec<Occurrence>,
    /// Names that are part of a name: `y` in the task `review_y` of the step `review y = …`.
    inside: Vec<Occurrence>,
    /// Keys of records, for completion.
    pub(crate) fields: Vec<String>,
    /// The variables that are named as their fields, in patterns and records.
    shorthands: HashSet<Span>,
    /// The variables that are named as the parameters that they are given as, with the item that has them.
    short_arguments: HashMap<Span, usize>,
}

impl Names {
    pub(crate) fn of(program: &Program) -> Names {
        let mut walk = Walk {
            names: Names {
                all: Vec::new(),
                inside: Vec::new(),
                fields: Vec::new(),
                shorthands: HashSet::new(),
                short_arguments: HashMap::new(),
            },
            arguments: Vec::new(),
            reviews: Vec::new(),
            calls: Vec::new(),
            generics: HashSet::new(),
            imports: program
                .items
                .iter()
                .filter_map(|item| match item {
                    Item::Use(Use { names: UsedNames::Behind(name), .. }) => Some(name.text.clone()),
                    _ => None,
                })
                .collect(),
            taken: program
                .items
                .iter()
                .filter_map(|item| match item {
                    Item::Use(Use { names: UsedNames::These(names), .. }) => Some(names),
                    _ => None,
                })
                .flatten()
                .map(|used| used.local().text.clone())
                .collect(),
            constants: program
                .items
                .iter()
                .filter_map(|item| match item {
                    Item::Const(c) => Some(c.name.text.clone()),
                    _ => None,
                })
                .collect(),
            cases: program
                .items
                .iter()
                .filter_map(|item| match item {
                    Item::Sum(s) => Some(s.cases.iter().map(|c| c.name.text.clone())),
                    _ => None,
                })
                .flatten()
                .collect(),
            tools: program
                .items
                .iter()
                .enumerate()
                .filter_map(|(i, item)| match item {
                    Item::Tool(c) => Some((c.name.text.clone(), i)),
                    _ => None,
                })
                .collect(),
            item: 0,
        };
        for (i, item) in program.items.iter().enumerate() {
            walk.item = i;
            walk.item(item);
        }
        let Walk { mut names, arguments, reviews, calls, .. } = walk;
        for name in calls {
            if names.all.iter().any(|o| o.declares && o.kind == Kind::Callable && o.text == name.text) {
                let (text, span) = (name.text, name.span);
                names.all.push(Occurrence {
                    kind: Kind::Callable,
                    text,
                    span,
                    declares: false,
                    behind: None,
                });
            }
        }
        // In a call, a tool is meant where no task has the name.
        let declared = |all: &[Occurrence], kind: Kind, text: &str| {
            all.iter().any(|o| o.declares && o.kind == kind && o.text == text)
        };
        let tools: Vec<usize> = (0..names.all.len())
            .filter(|i| {
                let o = &names.all[*i];
                o.kind == Kind::Callable
                    && !o.declares
                    && !declared(&names.all, Kind::Callable, &o.text)
                    && declared(&names.all, Kind::Tool, &o.text)
            })
            .collect();
        for i in tools {
            names.all[i].kind = Kind::Tool;
        }
        // The callee is a pipeline if no agent has the name.
        let pipelines: Vec<usize> = (0..names.all.len())
            .filter(|i| {
                let o = &names.all[*i];
                o.kind == Kind::Agent
                    && !o.declares
                    && !declared(&names.all, Kind::Agent, &o.text)
                    && declared(&names.all, Kind::Callable, &o.text)
            })
            .collect();
        for i in pipelines {
            names.all[i].kind = Kind::Callable;
        }
        for (target, argument) in arguments {
            if let Some(item) = callable_of(program, &target) {
                // A pipeline that calls itself: the variable and the parameter have one name anyway.
                if names.short_arguments.get(&argument.span) == Some(&item) {
                    names.short_arguments.remove(&argument.span);
                    continue;
                }
                names.all.push(Occurrence { kind: Kind::Variable(item), declares: false, ..argument });
            }
        }
        for (step, item) in reviews {
            names.follow_review(&step, item);
        }
        names.all.sort_by_key(|o| (o.span.start, o.span.end));
        names.fields.sort();
        names.fields.dedup();
        names
    }

    /// The text that gives a name another one. A field or parameter that is named as a variable keeps its
    /// name if the variable gets another one, and the other way round.
    pub(crate) fn renamed(&self, o: &Occurrence, to: &str) -> String {
        if let Some(item) = self.short_arguments.get(&o.span) {
            return match o.kind == Kind::Variable(*item) {
                true => format!("{}: {to}", o.text),
                false => format!("{to}: {}", o.text),
            };
        }
        match self.shorthands.contains(&o.span) {
            true => format!("{}: {to}", o.text),
            false => to.to_string(),
        }
    }

    /// The name at a place, the end of a name included.
    pub(crate) fn at(&self, offset: usize) -> Option<&Occurrence> {
        self.all.iter().find(|o| (o.span.start as usize..=o.span.end as usize).contains(&offset))
    }

    /// All places of what a place names.
    pub(crate) fn same<'a>(&'a self, as_this: &'a Occurrence) -> impl Iterator<Item = &'a Occurrence> {
        let is_same =
            |o: &&Occurrence| o.kind == as_this.kind && o.text == as_this.text && o.behind == as_this.behind;
        self.all.iter().chain(&self.inside).filter(is_same)
    }

    /// Adds the places of the task that the review `step` of a workflow calls by its own name.
    fn follow_review(&mut self, step: &str, item: usize) {
        let task = format!("{REVIEW}{step}");
        let calls =
            |o: &&Occurrence| (o.kind == Kind::Callable || o.kind == Kind::Variable(item)) && o.text == task;
        self.inside.extend(self.all.iter().filter(calls).map(|o| Occurrence {
            kind: Kind::Variable(item),
            text: step.to_string(),
            span: Span { start: o.span.end - step.len() as u32, ..o.span },
            declares: false,
            behind: None,
        }));
    }

    /// Returns the declaration of an item; for a variable, its first binding.
    pub(crate) fn declaration<'a>(&'a self, of: &'a Occurrence) -> Option<&'a Occurrence> {
        self.same(of).find(|o| o.declares)
    }
}

/// Prefix of the name of the task of a review.
const REVIEW: &str = "review_";

/// The number of the item that a call of `name` means: a tool only where nothing else has the name.
fn callable_of(program: &Program, name: &str) -> Option<usize> {
    let declared = |is: fn(&Item) -> bool| program.items.iter().position(|i| is(i) && title(i).0 == name);
    declared(|i| {
        matches!(
            i,
            Item::Task(_) | Item::Pipeline(_) | Item::Function(_) | Item::Workflow(_) | Item::Import(_)
        )
    })
    .or_else(|| declared(|i| matches!(i, Item::Tool(_))))
}

struct Walk {
    names: Names,
    /// Named arguments of calls, with what is called. The kind is not known before all items are.
    arguments: Vec<(String, Occurrence)>,
    /// Review steps with the numbers of their workflows.
    reviews: Vec<(String, usize)>,
    /// Functions that expressions call. Those of the language are no names of the program.
    calls: Vec<Name>,
    /// The cases of the types of the program.
    cases: HashSet<String>,
    /// The types that the `fn` around this place is given.
    generics: HashSet<String>,
    /// The names of its imports, which no variable has.
    imports: HashSet<String>,
    /// The names that it takes out of other files.
    taken: HashSet<String>,
    /// The names of its constants, which no variable has.
    constants: HashSet<String>,
    /// The tools of the program with the numbers of their items.
    tools: HashMap<String, usize>,
    item: usize,
}

impl Walk {
    fn add(&mut self, kind: Kind, name: &syntax::agent::ast::Name, declares: bool) {
        self.put(kind, &name.text, name.span, declares);
    }

    fn put(&mut self, kind: Kind, text: &str, span: Span, declares: bool) {
        let Some((import, name)) = text.split_once('.') else {
            let text = text.to_string();
            self.names.all.push(Occurrence { kind, text, span, declares, behind: None });
            return;
        };
        self.put(Kind::Import, import, Span { end: span.start + import.len() as u32, ..span }, false);
        self.inside(kind, import, name, Span { start: span.end - name.len() as u32, ..span });
    }

    /// A name behind that of an import.
    fn inside(&mut self, kind: Kind, import: &str, name: &str, span: Span) {
        let (text, behind) = (name.to_string(), Some(import.to_string()));
        self.names.all.push(Occurrence { kind, text, span, declares: false, behind });
    }

    /// Returns whether the item around this place has bound a variable of this name.
    fn is_bound(&self, name: &str) -> bool {
        let here = Kind::Variable(self.item);
        self.names.all.iter().any(|o| o.declares && o.kind == here && o.text == name)
    }

    /// The import that an expression names.
    fn import<'e>(&self, e: &'e Expr) -> Option<&'e str> {
        match &e.kind {
            ExprKind::Var(name) if self.imports.contains(name) => Some(name),
            _ => None,
        }
    }

    fn variable(&mut self, name: &syntax::agent::ast::Name, binds: bool) {
        // A hidden one has no place where its name stands.
        if name.text.starts_with('$') {
            return;
        }
        self.add(Kind::Variable(self.item), name, binds);
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Use(u) => match &u.names {
                UsedNames::All => {}
                UsedNames::Behind(name) => self.add(Kind::Import, name, true),
                UsedNames::These(names) => {
                    for used in names {
                        self.add(Kind::Taken, &used.name, false);
                        used.renamed.iter().for_each(|n| self.add(Kind::Renamed, n, true));
                    }
                }
            },
            Item::Const(c) => {
                self.add(Kind::Constant, &c.name, true);
                c.ty.iter().for_each(|t| self.ty(t));
                self.expr(&c.value);
            }
            Item::Import(i) => {
                self.add(Kind::Callable, &i.name, true);
                i.params.iter().for_each(|p| self.ty(&p.ty));
                self.ty(&i.result);
            }
            Item::Alias(a) => {
                self.add(Kind::Type, &a.name, true);
                self.ty(&a.ty);
            }
            Item::Enum(e) => self.add(Kind::Type, &e.name, true),
            Item::Sum(s) => {
                self.add(Kind::Type, &s.name, true);
                for case in &s.cases {
                    self.add(Kind::Case, &case.name, true);
                    self.names.fields.extend(case.fields.iter().map(|f| f.name.text.clone()));
                    case.fields.iter().for_each(|f| self.ty(&f.ty));
                }
            }
            Item::Agent(a) => {
                self.add(Kind::Agent, &a.name, true);
                for field in &a.fields {
                    match &field.value {
                        AgentValue::Tools(tools, _) | AgentValue::FinalTools(tools, _) => {
                            tools.iter().for_each(|t| self.add(Kind::Tool, t, false))
                        }
                        AgentValue::Helpers(others, _) | AgentValue::Handoffs(others, _) => {
                            others.iter().for_each(|o| self.add(Kind::Agent, &o.name, false));
                        }
                        AgentValue::Memory(m) => m.keys.iter().for_each(|k| self.ty(&k.ty)),
                        _ => {}
                    }
                }
            }
            Item::Tool(c) => {
                self.add(Kind::Tool, &c.name, true);
                self.callable(c);
            }
            Item::Task(c) => {
                self.add(Kind::Callable, &c.name, true);
                self.callable(c);
            }
            Item::Pipeline(p) | Item::Function(p) => {
                self.add(Kind::Callable, &p.name, true);
                p.generics.iter().for_each(|t| self.variable(t, true));
                self.generics = p.generics.iter().map(|t| t.text.clone()).collect();
                self.params(&p.params);
                self.ty(&p.result);
                self.block(&p.body);
                self.generics.clear();
            }
            Item::Workflow(w) => {
                self.add(Kind::Callable, &w.name, true);
                self.params(&w.params);
                self.ty(&w.result);
                for step in &w.steps {
                    match step {
                        Step::Stage { name, agent, task, args, .. } => {
                            self.variable(name, true);
                            self.add(Kind::Agent, agent, false);
                            self.add(Kind::Callable, task, false);
                            args.iter().for_each(|e| self.expr(e));
                        }
                        Step::Review { name, reviewer, subject, reviser, task, .. } => {
                            self.variable(name, true);
                            self.reviews.push((name.text.clone(), self.item));
                            self.add(Kind::Agent, reviewer, false);
                            self.variable(subject, false);
                            self.add(Kind::Agent, reviser, false);
                            self.add(Kind::Callable, task, false);
                        }
                        Step::Return(e, _) => self.expr(e),
                    }
                }
            }
            Item::Policy(p) => p.rules.iter().for_each(|rule| self.rule(rule)),
            Item::Test(t) => {
                if let Some(rows) = &t.rows {
                    rows.ty.iter().for_each(|ty| self.ty(ty));
                    self.variable(&rows.name, true);
                }
                self.block(&t.body);
                t.attacks.iter().for_each(|a| self.add(Kind::Callable, &a.tool, false));
                let calls = t.mocks.iter().map(|m| &m.call).chain(t.expectations.iter().map(|e| &e.call));
                for call in calls {
                    let name = match &call.kind {
                        ExprKind::Var(text) => Name { text: text.clone(), span: call.span },
                        ExprKind::Call(name, _) => name.clone(),
                        // The parser makes no others.
                        _ => continue,
                    };
                    self.add(Kind::Callable, &name, false);
                }
            }
        }
    }

    /// A rule of a policy. The variables of conditions are the parameters of the tool.
    fn rule(&mut self, rule: &PolicyRule) {
        let (Some(PolicyArg::Word(name)), Some((rules, _))) = (rule.args.first(), &rule.rules) else {
            return;
        };
        self.add(Kind::Tool, name, false);
        let Some(tool) = self.tools.get(&name.text).copied() else { return };
        let item = std::mem::replace(&mut self.item, tool);
        rules.iter().filter_map(|inner| inner.condition.as_ref()).for_each(|e| self.expr(e));
        self.item = item;
    }

    fn callable(&mut self, c: &Callable) {
        // Examples see no parameter.
        c.body.examples.iter().for_each(|e| self.expr(e));
        self.params(&c.params);
        self.ty(&c.result);
        self.flow(&c.flow);
        c.body.system.iter().for_each(|t| self.template(t));
        match &c.body.kind {
            BodyKind::Prompt(t) | BodyKind::Http(_, t) => self.template(t),
            BodyKind::Exec(words) => words.iter().for_each(|t| self.template(t)),
            BodyKind::Empty
            | BodyKind::Builtin(_)
            | BodyKind::Mcp(..)
            | BodyKind::Python(..)
            | BodyKind::Error => {}
        }
    }

    fn flow(&mut self, words: &[syntax::agent::ast::FlowWord]) {
        for word in words {
            if let FlowKind::Policy(name) = &word.kind {
                self.add(Kind::Policy, name, false);
            }
        }
    }

    fn params(&mut self, params: &[Field]) {
        for p in params {
            self.variable(&p.name, true);
            self.ty(&p.ty);
            self.flow(&p.flow);
            p.default.iter().for_each(|e| self.expr(e));
        }
    }

    fn ty(&mut self, ty: &TypeExpr) {
        let mut work = vec![ty];
        while let Some(t) = work.pop() {
            match &t.kind {
                TypeKind::Name(n) if self.generics.contains(n) => {
                    self.put(Kind::Variable(self.item), n, t.span, false);
                }
                TypeKind::Name(n) if !["String", "Number", "Bool"].contains(&n.as_str()) => {
                    self.put(Kind::Type, n, t.span, false);
                }
                TypeKind::List(t) | TypeKind::Option(t) => work.push(t),
                TypeKind::Map(of) => work.extend([&of.0, &of.1]),
                TypeKind::Obj(fields) => {
                    self.names.fields.extend(fields.iter().map(|f| f.name.text.clone()));
                    work.extend(fields.iter().map(|f| &f.ty));
                }
                TypeKind::Where(t, _) => work.push(t),
                TypeKind::Name(_) | TypeKind::Literals(_) | TypeKind::Error => {}
            }
        }
    }

    /// Deep blocks need no deep stack.
    fn block(&mut self, block: &Block) {
        let mut work = vec![block];
        while let Some(block) = work.pop() {
            for stmt in &block.stmts {
                match &stmt.kind {
                    StmtKind::Run(run) => self.run(run),
                    StmtKind::Let(name, ty, e) => {
                        ty.iter().for_each(|t| self.ty(t));
                        self.expr(e);
                        self.variable(name, true);
                    }
                    StmtKind::Parallel { runs, .. } => runs.iter().for_each(|r| self.run(r)),
                    StmtKind::If(e, a, b) => {
                        self.expr(e);
                        work.push(a);
                        work.extend(b);
                    }
                    StmtKind::IfLet(name, e, a, b) => {
                        self.expr(e);
                        self.variable(name, true);
                        work.push(a);
                        work.extend(b);
                    }
                    StmtKind::While(e, _, body) => {
                        self.expr(e);
                        work.push(body);
                    }
                    StmtKind::For(name, e, body) | StmtKind::ParallelFor(name, e, _, body) => {
                        self.expr(e);
                        self.variable(name, true);
                        work.push(body);
                    }
                    StmtKind::Match(e, arms) => {
                        self.expr(e);
                        for arm in arms {
                            self.pattern(&arm.pattern);
                            arm.pattern.fields.iter().for_each(|f| self.variable(&f.name, true));
                            work.push(&arm.body);
                        }
                    }
                    StmtKind::Ensure(a, b) => work.extend([a, b]),
                    StmtKind::Try(a, catch, b) => {
                        self.variable(&catch.name, true);
                        work.extend([a, b]);
                    }
                    StmtKind::Assert(e, message) => {
                        self.expr(e);
                        message.iter().flat_map(Template::holes).for_each(|e| self.expr(e));
                    }
                    StmtKind::Return(e) => self.expr(e),
                    StmtKind::Guard(name, e, _) => {
                        self.variable(name, false);
                        self.expr(e);
                    }
                    StmtKind::Break | StmtKind::Continue | StmtKind::Error(_) => {}
                }
            }
        }
    }

    fn run(&mut self, run: &Run) {
        run.ty.iter().for_each(|t| self.ty(t));
        let first = match &run.args {
            Args::Positional(args) => args.first().filter(|e| e.span.end < run.target.span.start),
            Args::Named(_) => None,
        };
        // `lib.task(x)` was read as `task(lib, x)`.
        match first.and_then(|e| self.import(e)) {
            Some(import) => self.inside(Kind::Callable, import, &run.target.text, run.target.span),
            None => self.add(Kind::Callable, &run.target, false),
        }
        match &run.args {
            Args::Named(args) => args.iter().for_each(|(name, e)| {
                let (text, span) = (name.text.clone(), name.span);
                let kind = Kind::Variable(self.item);
                let argument = Occurrence { kind, text, span, declares: false, behind: None };
                self.arguments.push((run.target.text.clone(), argument));
                if name.span == e.span {
                    self.names.short_arguments.insert(name.span, self.item);
                }
                self.expr(e);
            }),
            Args::Positional(args) => args.iter().for_each(|e| self.expr(e)),
        }
        for clause in &run.clauses {
            match &clause.kind {
                ClauseKind::By(agent) => self.add(Kind::Agent, agent, false),
                ClauseKind::Use(e) => self.expr(e),
                ClauseKind::Retries(_) | ClauseKind::Timeout(_) | ClauseKind::Abort => {}
            }
        }
        self.variable(&run.name, true);
    }

    fn template(&mut self, template: &Template) {
        for part in &template.parts {
            if let TemplatePart::Hole(e) = part {
                self.expr(e);
            }
        }
    }

    fn expr(&mut self, e: &Expr) {
        let mut found = Vec::new();
        e.each_variable(&mut |name, span| found.push((name.to_string(), span)));
        for (name, span) in found {
            let kind = if self.cases.contains(&name) {
                Kind::Case
            } else if self.constants.contains(&name) {
                Kind::Constant
            } else if self.imports.contains(&name) {
                Kind::Import
            } else if self.taken.contains(&name) && !self.is_bound(&name) {
                Kind::Constant
            } else {
                Kind::Variable(self.item)
            };
            self.put(kind, &name, span, false);
        }
        // Names that the expression binds itself, with what reads them, and the functions that it calls.
        let mut inner: Vec<&Expr> = Vec::new();
        e.walk(&mut |e| inner.push(e));
        for e in inner {
            match &e.kind {
                ExprKind::Call(name, args) => {
                    let first = args.first().filter(|e| e.span.end < name.span.start);
                    match first.and_then(|e| self.import(e)) {
                        Some(import) => self.inside(Kind::Callable, import, &name.text, name.span),
                        None => self.calls.push(name.clone()),
                    }
                }
                ExprKind::Field(of, name) => {
                    if let Some(import) = self.import(of) {
                        self.inside(Kind::Constant, import, &name.text, name.span);
                    }
                }
                ExprKind::Lambda(params, body) => params.iter().for_each(|p| self.local(p, &[body])),
                ExprKind::If(Some(name), _, then, _) => self.local(name, &[then]),
                ExprKind::Block(lets, value) => {
                    for (i, l) in lets.iter().enumerate() {
                        l.ty.iter().for_each(|t| self.ty(t));
                        let mut after: Vec<&Expr> = lets[i + 1..].iter().map(|l| &l.value).collect();
                        after.push(value);
                        self.local(&l.name, &after);
                    }
                }
                ExprKind::Quarantine(_, ty) => self.ty(ty),
                ExprKind::Construct(case, fields) => {
                    self.add(Kind::Case, case, false);
                    self.short(fields);
                }
                ExprKind::Record(fields) | ExprKind::Map(fields) | ExprKind::Update(_, fields) => {
                    self.short(fields)
                }
                ExprKind::Match(_, arms) => {
                    for arm in arms {
                        self.pattern(&arm.pattern);
                        arm.pattern.fields.iter().for_each(|f| self.local(&f.name, &[&arm.value]));
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes the fields that are written as the variables whose values they have.
    fn short(&mut self, fields: &[(Name, Expr)]) {
        let short = fields.iter().filter(|(name, value)| name.span == value.span);
        self.names.shorthands.extend(short.map(|(name, _)| name.span));
    }

    /// The cases that a pattern names. Variants of enums are texts.
    fn pattern(&mut self, pattern: &Pattern) {
        let short = pattern.fields.iter().filter(|f| f.field.span == f.name.span);
        self.names.shorthands.extend(short.map(|f| f.name.span));
        for v in &pattern.variants {
            let is_behind = pattern.form == PatternForm::Words && v.text.contains('.');
            if self.cases.contains(&v.text) || is_behind {
                self.add(Kind::Case, v, false);
            }
        }
    }

    /// A name that an expression binds for parts of itself.
    fn local(&mut self, name: &Name, scope: &[&Expr]) {
        self.variable(name, true);
        let mut read = Vec::new();
        for e in scope {
            e.each_variable(&mut |text, span| {
                if text == name.text {
                    read.push(span);
                }
            });
        }
        for span in read {
            self.put(Kind::Variable(self.item), &name.text, span, false);
        }
    }
}

/// The item around a place.
pub(crate) fn item_at(program: &Program, offset: usize) -> Option<(usize, &Item)> {
    let inside = |s: Span| (s.start as usize..=s.end as usize).contains(&offset);
    program.items.iter().enumerate().find(|(_, i)| inside(i.span()))
}

/// The name of an item, its place, and its kind.
pub(crate) fn title(item: &Item) -> (String, Span, SymbolKind) {
    use SymbolKind::{Agent, Constant, Enum, Function, Module, Test, TypeAlias};
    match item {
        Item::Use(i) => (i.path.value.clone(), i.path.span, Module),
        Item::Const(i) => (i.name.text.clone(), i.name.span, Constant),
        Item::Import(i) => (i.name.text.clone(), i.name.span, Function),
        Item::Alias(i) => (i.name.text.clone(), i.name.span, TypeAlias),
        Item::Enum(i) => (i.name.text.clone(), i.name.span, Enum),
        Item::Sum(i) => (i.name.text.clone(), i.name.span, Enum),
        Item::Agent(i) => (i.name.text.clone(), i.name.span, Agent),
        Item::Tool(i) | Item::Task(i) => (i.name.text.clone(), i.name.span, Function),
        Item::Pipeline(i) | Item::Function(i) => (i.name.text.clone(), i.name.span, Function),
        Item::Workflow(i) => (i.name.text.clone(), i.name.span, Function),
        Item::Test(i) => (format!("test {}", i.name.value), i.name.span, Test),
        Item::Policy(i) => ("policy".into(), Span { end: i.span.start + 6, ..i.span }, Module),
    }
}

/// The first and only file of a query.
pub(crate) const MAIN: FileId = FileId(0);
