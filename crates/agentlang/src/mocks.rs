//! Mocks and expectations of tests: what a tool gives instead of being called, and what must be true of its
//! calls.
//!
//! A mock that gives a value becomes a pipeline from what its pattern names to the result of the tool, so it
//! is checked and lowered as one. Its name has a space, so no program can call it.

use super::check::suggest;
use super::codes;
use super::decls::{CallableKind, Decls, Signature, constant};
use super::files::Files;
use super::{Entry, EntryKind};
use core_ir::{Code, Data, Name, Type};
use diagnostics::{Diagnostic, FileId, Span, nearest};
use std::sync::Arc;
use syntax::agent::ast::{
    self, Block, Callable, Expr, ExprKind, Field, Item, MockAnswer, Pipeline, Program, Stmt, StmtKind,
};

pub use syntax::agent::ast::ExpectKind;

/// Mocks and expectations of a test.
#[derive(Clone, Debug, Default)]
pub struct TestPlan {
    /// Tools that are not called for real. Of several mocks of one tool the first counts that fits the
    /// arguments.
    pub mocks: Vec<Mock>,
    /// Conditions that the calls must meet.
    pub expectations: Vec<Expectation>,
    /// Texts that are injected into results.
    pub attacks: Vec<Attack>,
    /// Values that are compared with recorded ones: the fields of the test's result.
    pub snapshots: Vec<SnapshotPoint>,
}

/// A value that is compared with a recorded one.
#[derive(Clone, Debug)]
pub struct SnapshotPoint {
    /// Its name in the file: the text of the expression.
    pub name: String,
    /// Place of the statement.
    pub span: Span,
}

/// A text that is injected into the results of a tool.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The text.
    pub text: String,
    /// The tool, as the test names it.
    pub name: String,
    /// Names by which the tool's handler is found.
    pub tools: Vec<String>,
    /// Place of the attack.
    pub span: Span,
}

/// A tool that is not called for real.
#[derive(Clone, Debug)]
pub struct Mock {
    /// Names by which its handler is found: that of the tool, and that of a task of the same name.
    pub tools: Vec<String>,
    /// Required arguments, in the order of the parameters; `None` accepts anything.
    pub pattern: Vec<Option<Data>>,
    /// Answer to a call.
    pub answer: Answer,
    /// Place of the mock.
    pub span: Span,
}

/// The answer of a mocked tool.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The result of a function of a record: each field is the argument of this number.
    Gives(Arc<Code>, Vec<(Name, usize)>),
    /// The call fails with this message.
    Fails(String),
}

/// Condition that calls must meet.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Kind of the condition.
    pub kind: ExpectKind,
    /// The tool, as the test names it.
    pub name: String,
    /// Names by which its calls are known.
    pub tools: Vec<String>,
    /// Required arguments, if the test gives them.
    pub pattern: Option<Vec<Option<Data>>>,
    /// Place of the expectation.
    pub span: Span,
}

/// The pipeline of a mock.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// Place of the mock.
    mock: Span,
    /// Index of the item.
    item: usize,
}

/// The name of what is mocked or expected, and the patterns of its arguments.
fn parts(call: &Expr) -> Option<(ast::Name, Option<&[Expr]>)> {
    match &call.kind {
        ExprKind::Var(text) => Some((ast::Name { text: text.clone(), span: call.span }, None)),
        ExprKind::Call(name, args) => Some((name.clone(), Some(args))),
        _ => None,
    }
}

/// The name of a snapshot in its file: the text of its value.
pub(super) fn name_of(snapshot: &ast::Snapshot, files: &Files) -> String {
    super::lower::on_one_line(files.text(snapshot.value).unwrap_or(""))
}

/// The name that a pattern gives to an argument.
fn bound(pattern: &Expr) -> Option<&str> {
    match &pattern.kind {
        ExprKind::Var(name) if name != "_" => Some(name),
        _ => None,
    }
}

fn is_any(pattern: &Expr) -> bool {
    matches!(&pattern.kind, ExprKind::Var(_))
}

/// Adds a pipeline for each mock of the file that gives a value.
pub(super) fn expand(main: FileId, program: &mut Program) -> Vec<Made> {
    let declared = |name: &str| -> Option<&Callable> {
        let task = program.items.iter().find_map(|i| match i {
            Item::Task(c) if c.name.text == name => Some(c),
            _ => None,
        });
        let tool = || {
            program.items.iter().find_map(|i| match i {
                Item::Tool(c) if c.name.text == name => Some(c),
                _ => None,
            })
        };
        task.or_else(tool)
    };
    let mut pipelines = Vec::new();
    for item in &program.items {
        let Item::Test(test) = item else { continue };
        for mock in test.mocks.iter().filter(|m| m.span.file == main) {
            let MockAnswer::Gives(value) = &mock.answer else { continue };
            let Some((name, patterns)) = parts(&mock.call) else { continue };
            let Some(c) = declared(&name.text) else { continue };
            let patterns = patterns.unwrap_or_default();
            let params = patterns.iter().zip(&c.params).filter_map(|(pattern, param)| {
                let name = ast::Name { text: bound(pattern)?.to_string(), span: pattern.span };
                Some(Field { name, ty: param.ty.clone(), flow: Vec::new(), default: None })
            });
            let give = Stmt { kind: StmtKind::Return(value.clone()), span: value.span };
            let pipeline = Pipeline {
                name: ast::Name { text: format!("mock {}", pipelines.len()), span: mock.call.span },
                generics: Vec::new(),
                params: params.collect(),
                result: c.result.clone(),
                body: Block { stmts: vec![give], span: value.span },
                span: mock.span,
            };
            pipelines.push((mock.span, pipeline));
        }
    }
    let first = program.items.len();
    let made = pipelines.iter().enumerate().map(|(i, (mock, _))| Made { mock: *mock, item: first + i });
    let made = made.collect();
    program.items.extend(pipelines.into_iter().map(|(_, p)| Item::Pipeline(p)));
    made
}

/// Reports mocks and expectations that can't hold.
pub(super) fn check(
    main: FileId,
    program: &Program,
    decls: &Decls,
    files: &Files,
    out: &mut Vec<Diagnostic>,
) {
    for item in &program.items {
        let Item::Test(test) = item else { continue };
        if test.span.file != main {
            continue;
        }
        for mock in &test.mocks {
            if let Some((signature, Some(patterns))) = named(&mock.call, decls, out) {
                fits(signature, patterns, mock.call.span, true, out);
            }
            if let MockAnswer::Gives(e) = &mock.answer {
                asks_nobody(e, out);
            }
        }
        for (i, snapshot) in test.snapshots.iter().enumerate() {
            let name = name_of(snapshot, files);
            if let Some(first) = test.snapshots[..i].iter().find(|s| name_of(s, files) == name) {
                let message = format!("this test has a snapshot of `{}` already", diagnostics::clip(&name));
                out.push(
                    Diagnostic::error(codes::DUPLICATE, message, snapshot.value)
                        .remark(first.value, "first here")
                        .help("bind the value to another name: the file knows snapshots by their texts"),
                );
            }
        }
        for attack in &test.attacks {
            let call =
                Expr { kind: ExprKind::Var(attack.tool.text.clone()), span: attack.tool.span, height: 1 };
            if named(&call, decls, out).is_none() {
                continue;
            }
            let is_mocked =
                |m: &ast::Mock| parts(&m.call).is_some_and(|(name, _)| name.text == attack.tool.text);
            let wrong = |message: String, at, help: &str| {
                Diagnostic::error(codes::BAD_ATTACK, message, at).help(help)
            };
            if !test.mocks.iter().any(is_mocked) {
                let message = format!("`{}` has no mock in this test", attack.tool.text);
                let help = "mock the tool: the text is appended to what the mock gives";
                out.push(wrong(message, attack.tool.span, help));
            }
            if attack.text.value.trim().is_empty() {
                let help = "write what an attacker would have the model do";
                out.push(wrong("an attack without a text".into(), attack.text.span, help));
            }
        }
        for expectation in &test.expectations {
            let Some((signature, Some(patterns))) = named(&expectation.call, decls, out) else { continue };
            if expectation.kind == ExpectKind::Refused {
                out.push(
                    Diagnostic::error(
                        codes::BAD_PATTERN,
                        "the arguments of a refused call are not known to a test",
                        expectation.call.span,
                    )
                    .help(format!("write `expect refused {};`", signature.name.text)),
                );
            } else {
                fits(signature, patterns, expectation.call.span, false, out);
            }
        }
    }
}

/// The tool or task that is named.
fn named<'a, 'e>(
    call: &'e Expr,
    decls: &'a Decls,
    out: &mut Vec<Diagnostic>,
) -> Option<(&'a Signature, Option<&'e [Expr]>)> {
    let (name, patterns) = parts(call)?;
    let Some(signature) = decls.callable(&name.text) else {
        let message = format!("there is no tool `{}`", name.text);
        let d = Diagnostic::error(codes::UNKNOWN_TOOL, message, name.span);
        let known = decls.tools.keys().chain(decls.callables.keys());
        let known = known.map(String::as_str).filter(|n| !n.contains(' '));
        out.push(match nearest(&name.text, known) {
            Some(near) => suggest(d, near),
            None => d.help("a mock or an expectation is about a tool or task of the program"),
        });
        return None;
    };
    let (what, help) = match signature.kind {
        CallableKind::Tool | CallableKind::Task => return Some((signature, patterns)),
        CallableKind::AgentTask => (
            "an agent task",
            "its model answers from the replies beside the program: mock the tools that it calls",
        ),
        CallableKind::Pipeline => ("a pipeline", "mock the tools that it calls"),
        CallableKind::Function => ("a `fn`", "it only computes: call it"),
        CallableKind::Import => ("an import", "mock the tools that it calls"),
    };
    let message = format!("`{}` is not a tool but {what}", name.text);
    out.push(
        Diagnostic::error(codes::NOT_MOCKABLE, message, name.span)
            .remark(signature.name.span, "declared here")
            .help(help),
    );
    None
}

/// Reports patterns that no arguments of the tool can fit.
fn fits(s: &Signature, patterns: &[Expr], at: Span, names: bool, out: &mut Vec<Diagnostic>) {
    if patterns.len() != s.params.len() {
        let (takes, given) = (s.params.len(), patterns.len());
        let message = format!("`{}` takes {takes} arguments, not {given}", s.name.text);
        out.push(
            Diagnostic::error(codes::ARGUMENT_COUNT, message, at)
                .remark(s.name.span, "declared here")
                .help("write `_` for an argument that may be anything"),
        );
        return;
    }
    for (pattern, param) in patterns.iter().zip(&s.params) {
        if is_any(pattern) && (names || bound(pattern).is_none()) {
            continue;
        }
        let wrong = |message: String| Diagnostic::error(codes::BAD_PATTERN, message, pattern.span);
        match constant(pattern) {
            Err(_) => {
                out.push(wrong("an argument is compared with a constant".into()).help(
                    "write a text, a number, `true`, `false`, `null`, a list or record of such, or `_`",
                ))
            }
            Ok(data) => {
                if let Err((path, why)) = param.ty.check(&data) {
                    let place = if path.is_empty() { String::new() } else { format!(" at {path}") };
                    out.push(
                        wrong(format!("`{}` is never this{place}: {why}", param.name.text))
                            .remark(param.name.span, "the parameter")
                            .help("write a constant of the parameter's type, or `_`"),
                    );
                }
            }
        }
    }
}

/// Reports questions to models in the value of a mock.
fn asks_nobody(value: &Expr, out: &mut Vec<Diagnostic>) {
    value.walk(&mut |e| {
        if matches!(e.kind, ExprKind::Quarantine(..)) {
            out.push(
                Diagnostic::error(codes::NOT_MOCKABLE, "a mock asks no model", e.span)
                    .help("give the value that the test is about"),
            );
        }
    });
}

/// The patterns as data.
fn pattern(patterns: &[Expr]) -> Vec<Option<Data>> {
    patterns.iter().map(|p| if is_any(p) { None } else { constant(p).ok() }).collect()
}

impl super::Module {
    /// Returns the mocks and expectations of a test.
    ///
    /// # Errors
    /// The value of a mock would be too deep a term (`A081`).
    pub fn test_plan(&self, entry: &Entry) -> Result<TestPlan, Vec<Diagnostic>> {
        let Some(Item::Test(test)) = self.program.items.get(entry.item) else {
            return Ok(TestPlan::default());
        };
        let mut plan = TestPlan::default();
        for mock in &test.mocks {
            let Some((name, patterns)) = parts(&mock.call) else { continue };
            let patterns = patterns.unwrap_or_default();
            let answer = match &mock.answer {
                MockAnswer::Fails(message) => Answer::Fails(message.value.clone()),
                MockAnswer::Gives(_) => {
                    let Some(made) = self.mocks.iter().find(|m| m.mock == mock.span) else { continue };
                    let entry = Entry {
                        name: format!("the mock of `{}`", name.text),
                        kind: EntryKind::Pipeline,
                        input: Type::record([]),
                        result: Type::Null,
                        span: mock.span,
                        item: made.item,
                    };
                    let names = patterns.iter().enumerate();
                    let names = names.filter_map(|(i, p)| Some((Name::from(bound(p)?), i))).collect();
                    Answer::Gives(Arc::new(self.lower(&entry)?), names)
                }
            };
            plan.mocks.push(Mock {
                tools: self.handlers_of(&name.text),
                pattern: pattern(patterns),
                answer,
                span: mock.span,
            });
        }
        for a in &test.attacks {
            plan.attacks.push(Attack {
                text: a.text.value.clone(),
                tools: self.handlers_of(&a.tool.text),
                name: self.files.scopes().show(&a.tool.text, a.span.file),
                span: a.span,
            });
        }
        for s in &test.snapshots {
            plan.snapshots.push(SnapshotPoint { name: name_of(s, &self.files), span: s.span });
        }
        for e in &test.expectations {
            let Some((name, patterns)) = parts(&e.call) else { continue };
            plan.expectations.push(Expectation {
                kind: e.kind,
                tools: self.handlers_of(&name.text),
                name: self.files.scopes().show(&name.text, e.span.file),
                pattern: patterns.map(pattern),
                span: e.span,
            });
        }
        Ok(plan)
    }

    /// The names by which a tool and a task of this name are carried out.
    fn handlers_of(&self, name: &str) -> Vec<String> {
        let both = [self.decls.callables.get(name), self.decls.tools.get(name)];
        both.into_iter().flatten().map(|s| self.decls.handler_name(s)).collect()
    }
}
