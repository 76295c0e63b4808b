//! Workflows as pipelines: what their steps abbreviate, before anything is checked.
//!
//! `stage x = a does t(e…);` is `let x = t(e…) by a;`. `review y = r checks x revise with v using t
//! max_rounds n;` is
//!
//! ```text
//! let review_y = run review_y with { … } by r;
//! let y = x;
//! while !review_y.approved max n {
//!     let y = run t with { …, feedback: review_y.feedback } by v;
//!     let review_y = run review_y with { … } by r;
//! }
//! ```
//!
//! so that the verdict on the last version can be read afterwards (the variable is `$y` if the workflow has
//! another one of that name). Each task gets, for every parameter, the field of the current version of that
//! name, or the pipeline's input of that name. No source name begins with `$`.

use super::codes;
use super::decls::{Decls, Signature};
use super::scopes::Scopes;
use super::types::show;
use core_ir::Type;
use diagnostics::{Applicability, Diagnostic, Fix, Span};
use std::collections::HashMap;
use syntax::agent::ast::{
    Args, Block, Clause, ClauseKind, Expr, ExprKind, Name, Number, Pipeline, Run, Step, Stmt, StmtKind,
    UnaryOp, Workflow,
};

/// Prefix of the name of the task of a review.
pub(super) const REVIEW: &str = "review_";

/// The pipeline that a workflow abbreviates.
pub(super) fn pipeline(w: &Workflow, decls: &Decls, scopes: &Scopes, out: &mut Vec<Diagnostic>) -> Pipeline {
    let mut types: HashMap<&str, Type> = HashMap::new();
    let signature = decls.callables.get(&w.name.text);
    let inputs: Vec<(&str, Type)> = signature
        .map_or(Vec::new(), |s| s.params.iter().map(|p| (p.name.text.as_str(), p.ty.clone())).collect());
    // What a review has replaced, with the review.
    let mut consumed: HashMap<&str, &Name> = HashMap::new();
    let mut stmts = Vec::new();
    for step in &w.steps {
        let mut read = |e: &Expr| {
            e.each_variable(&mut |name, at| {
                if let Some(review) = consumed.get(name) {
                    out.push(
                        Diagnostic::error(
                            codes::CONSUMED,
                            format!("`{name}` has been replaced by a review"),
                            at,
                        )
                        .remark(review.span, "here")
                        .help(format!("use `{}`, the last version", review.text))
                        .fix(Fix {
                            span: at,
                            replacement: review.text.clone(),
                            applicability: Applicability::Unsafe,
                        }),
                    );
                }
            });
        };
        match step {
            Step::Return(e, span) => {
                read(e);
                stmts.push(Stmt { kind: StmtKind::Return(e.clone()), span: *span });
            }
            Step::Stage { name, agent, task, args, span } => {
                args.iter().for_each(&mut read);
                if let Some(s) = decls.callables.get(&task.text) {
                    types.insert(&name.text, s.result.clone());
                }
                consumed.remove(&*name.text);
                let args = Args::Positional(args.clone());
                stmts.push(call(name, task, args, agent, *span));
            }
            Step::Review { name, reviewer, subject, reviser, task, max_rounds, span } => {
                let var = Expr { kind: ExprKind::Var(subject.text.clone()), span: subject.span, height: 1 };
                read(&var);
                let ty = types.get(&*subject.text).cloned().unwrap_or(Type::Dyn);
                let verdict = format!("{REVIEW}{}", name.text);
                let taken = types.contains_key(&*verdict) || inputs.iter().any(|(n, _)| *n == verdict);
                let verdict = if taken { format!("${}", name.text) } else { verdict };
                let review = Review {
                    name,
                    verdict: Name { text: verdict, span: name.span },
                    reviewer,
                    reviser,
                    task,
                    max_rounds,
                    subject: &var,
                    ty: &ty,
                    at: *span,
                    scopes,
                };
                review.add(&inputs, decls, &mut stmts, out);
                types.insert(&name.text, ty);
                consumed.insert(&subject.text, name);
                consumed.remove(&*name.text);
            }
        }
    }
    Pipeline {
        name: w.name.clone(),
        generics: Vec::new(),
        params: w.params.clone(),
        result: w.result.clone(),
        body: Block { stmts, span: w.body_span },
        span: w.span,
    }
}

fn call(name: &Name, task: &Name, args: Args, agent: &Name, at: Span) -> Stmt {
    let clauses = vec![Clause { kind: ClauseKind::By(agent.clone()), span: agent.span }];
    let run =
        Run { name: name.clone(), ty: None, target: task.clone(), args, args_span: at, clauses, span: at };
    Stmt { kind: StmtKind::Run(run), span: at }
}

struct Review<'a> {
    name: &'a Name,
    /// The variable that holds what the reviewer said last.
    verdict: Name,
    reviewer: &'a Name,
    reviser: &'a Name,
    task: &'a Name,
    max_rounds: &'a Number,
    subject: &'a Expr,
    ty: &'a Type,
    at: Span,
    scopes: &'a Scopes,
}

impl Review<'_> {
    fn expr(&self, kind: ExprKind) -> Expr {
        // Three levels at most: `!review_y.approved`.
        Expr { kind, span: self.at, height: 3 }
    }

    fn field(&self, of: &str, name: &str) -> Expr {
        let var = self.expr(ExprKind::Var(of.to_string()));
        self.expr(ExprKind::Field(Box::new(var), Name { text: name.to_string(), span: self.at }))
    }

    /// The arguments for a task: fields of the version held by `current`, the verdict's feedback, and inputs.
    fn args(&self, s: &Signature, current: &str, verdict: Option<&str>, inputs: &[(&str, Type)]) -> Args {
        let mut args = Vec::new();
        for p in &s.params {
            let name = p.name.text.as_str();
            let is_field =
                matches!(self.ty, Type::Record(fields) if fields.iter().any(|(n, _)| **n == *name));
            let value = if let ("feedback", Some(verdict)) = (name, verdict) {
                self.field(verdict, "feedback")
            } else if is_field {
                self.field(current, name)
            } else if matches!(&self.subject.kind, ExprKind::Var(x) if x == name) {
                self.expr(ExprKind::Var(current.to_string()))
            } else if inputs.iter().any(|(n, _)| *n == name) {
                self.expr(ExprKind::Var(name.to_string()))
            } else {
                // The checker says that it is missing.
                continue;
            };
            args.push((Name { text: name.to_string(), span: self.at }, value));
        }
        Args::Named(args)
    }

    fn add(&self, inputs: &[(&str, Type)], decls: &Decls, stmts: &mut Vec<Stmt>, out: &mut Vec<Diagnostic>) {
        let own = format!("{REVIEW}{}", self.name.text);
        let review = Name { text: self.scopes.task(self.at.file, &own), span: self.name.span };
        let Some(reviewing) = decls.callables.get(&review.text) else {
            let mut params: Vec<String> = inputs.iter().map(|(n, t)| format!("{n}: {}", show(t))).collect();
            if let Type::Record(fields) = self.ty {
                params.extend(fields.iter().map(|(n, t)| format!("{n}: {}", show(t))));
            }
            out.push(
                Diagnostic::error(
                    codes::NO_REVIEW_TASK,
                    format!("the review `{}` needs a task `{own}`", self.name.text),
                    self.name.span,
                )
                .help(format!(
                    "declare `task {own}({}) -> Obj{{approved: Bool, feedback: String}} by agent {{}}`",
                    params.join(", ")
                )),
            );
            stmts.push(Stmt {
                kind: StmtKind::Let(self.name.clone(), None, self.subject.clone()),
                span: self.at,
            });
            return;
        };
        let verdict = &self.verdict;
        let first = match &self.subject.kind {
            ExprKind::Var(x) => x.clone(),
            _ => String::new(),
        };
        let args = self.args(reviewing, &first, None, inputs);
        stmts.push(call(verdict, &review, args, self.reviewer, self.at));
        stmts
            .push(Stmt { kind: StmtKind::Let(self.name.clone(), None, self.subject.clone()), span: self.at });
        let mut round = Vec::new();
        let args = match decls.callables.get(&self.task.text) {
            Some(s) => self.args(s, &self.name.text, Some(&verdict.text), inputs),
            None => Args::Named(Vec::new()),
        };
        round.push(call(self.name, self.task, args, self.reviser, self.at));
        let args = self.args(reviewing, &self.name.text, None, inputs);
        round.push(call(verdict, &review, args, self.reviewer, self.at));
        let approved = self.field(&verdict.text, "approved");
        let condition = self.expr(ExprKind::Unary(UnaryOp::Not, Box::new(approved)));
        // The number's place is nobody else's, which blocks need.
        let body = Block { stmts: round, span: self.max_rounds.span };
        let kind = StmtKind::While(condition, Some(self.max_rounds.clone()), body);
        stmts.push(Stmt { kind, span: self.at });
    }
}
