//! The rules of calls: arguments, and the clauses after them.

use super::{Checker, count, duplicate, removal, suggest};
use crate::codes;
use crate::decls::{ActionKind, CallableKind, Param, Signature};
use crate::functions::{self};
use crate::generics::Chosen;
use crate::types::{certain, show};
use core_ir::{Num, Type};
use diagnostics::{Applicability, Diagnostic, Fix, Span, nearest};
use syntax::agent::ast::{Args, ClauseKind, Expr, Run};

/// The parameter that lets a tool recognize a call that it has carried out already.
pub(super) const IDEMPOTENCY_KEY: &str = "idempotency_key";

pub(crate) fn usage(s: &Signature) -> String {
    let param = |p: &Param| {
        let default = if p.default.is_some() { " = …" } else { "" };
        format!("{}: {}{default}", p.name.text, show(&p.ty))
    };
    let params: Vec<String> = s.params.iter().map(param).collect();
    format!("it is `{}({}) -> {}`", s.name.text, params.join(", "), show(&s.result))
}

/// Returns true if a call may give `given` arguments by position.
pub(super) fn takes(s: &Signature, given: usize) -> bool {
    given <= s.params.len() && s.params.iter().skip(given).all(|p| p.default.is_some())
}

/// The number of arguments that a call gives, in words.
pub(super) fn arity(s: &Signature) -> String {
    let most = s.params.len();
    match s.params.iter().rposition(|p| p.default.is_none()).map_or(0, |i| i + 1) {
        least if least == most => count(most, "argument"),
        least => format!("{least} to {}", count(most, "argument")),
    }
}

/// The arguments of a call in order.
pub(crate) fn arguments_of(run: &Run) -> Vec<&Expr> {
    match &run.args {
        Args::Named(args) => args.iter().map(|(_, e)| e).collect(),
        Args::Positional(args) => args.iter().collect(),
    }
}

impl Checker<'_> {
    /// The type of the result of a call.
    pub(super) fn run(&mut self, run: &Run) -> Type {
        let found = self.result_of(run);
        match &run.ty {
            Some(written) => self.annotated_call(run, written, &found),
            None => found,
        }
    }

    fn result_of(&mut self, run: &Run) -> Type {
        let Some(signature) = self.decls.callable(&run.target.text) else {
            return self.run_unknown(run);
        };
        if signature.kind == CallableKind::Function {
            let chosen = self.arguments(signature, run);
            self.no_clauses(&signature.name.text, run);
            return self.result_type(signature, &chosen);
        }
        if let Some(pure) = self.pure {
            let what = format!("{} `{}`", signature.kind.as_str(), signature.name.text);
            self.not_pure(pure, &what, run.target.span);
        }
        self.arguments(signature, run);
        self.clauses(signature, run);
        signature.result.clone()
    }

    pub(super) fn run_unknown(&mut self, run: &Run) -> Type {
        if let Args::Positional(args) = &run.args {
            let name = &run.target;
            let ty = match (functions::named(&name.text), functions::higher(&name.text)) {
                (Some(f), _) => Some(self.call(f, name, args, run.args_span)),
                (_, Some(f)) => Some(self.higher(f, name, args, run.args_span, None)),
                _ => None,
            };
            if let Some(ty) = ty {
                self.no_clauses(&name.text, run);
                return ty;
            }
        }
        if self.is_of_unknown(&run.target, arguments_of(run)) {
            return Type::Dyn;
        }
        if let Some(case) = self.decls.types.cases.get(&run.target.text) {
            let written = case.written(&run.target.text);
            let message = format!("`{}` is a case, not a function", run.target.text);
            self.report(
                Diagnostic::error(codes::UNKNOWN_CALL, message, run.target.span)
                    .remark(case.span, "declared here")
                    .help(format!("a value of this case is written `{written}`")),
            );
            return Type::Dyn;
        }
        let name = &run.target.text;
        let d = Diagnostic::error(
            codes::UNKNOWN_CALL,
            format!("there is no task or pipeline `{name}`"),
            run.target.span,
        );
        let candidates = self.decls.callables.keys().chain(self.decls.tools.keys()).map(String::as_str);
        let near = nearest(name, candidates.chain(functions::function_names()));
        let d = match functions::known_as(name).or(near) {
            _ if functions::instead_of(name).is_some() => {
                d.help(functions::instead_of(name).unwrap_or_default())
            }
            Some(near) => suggest(d, near),
            None if self.decls.agents.contains_key(name) => {
                d.help(format!("`{name}` is an agent; run a task and add `by {name}`"))
            }
            None => d.help(format!("declare it: `task {name}(…) -> Type {{}}`")),
        };
        self.report(d);
        Type::Dyn
    }

    /// Reports clauses after the call of a function, which does nothing that could be repeated.
    fn no_clauses(&mut self, name: &str, run: &Run) {
        if let Some(clause) = run.clauses.first() {
            self.report(
                Diagnostic::error(
                    codes::CLAUSE_ON_FUNCTION,
                    format!("`{name}` can't fail or be retried"),
                    clause.span,
                )
                .help("it is a function that computes; remove the clause")
                .fix(removal(clause.span)),
            );
        }
    }

    /// Checks the arguments of a call. Returns the types that they decide.
    pub(super) fn arguments(&mut self, signature: &Signature, run: &Run) -> Chosen {
        let mut chosen = Chosen::new();
        let kind = signature.kind.as_str();
        let declared = |d: Diagnostic| d.remark(signature.name.span, "declared here").help(usage(signature));
        match &run.args {
            Args::Positional(args) => {
                if !takes(signature, args.len()) {
                    self.report(declared(Diagnostic::error(
                        codes::ARGUMENT_COUNT,
                        format!(
                            "{kind} `{}` takes {}, found {}",
                            signature.name.text,
                            arity(signature),
                            args.len()
                        ),
                        run.args_span,
                    )));
                }
                for (i, e) in args.iter().enumerate() {
                    match signature.params.get(i) {
                        Some(p) => self.argument(signature, p, e, &mut chosen),
                        None => {
                            self.expr(e, None);
                        }
                    }
                }
            }
            Args::Named(args) => {
                for (i, (name, e)) in args.iter().enumerate() {
                    if let Some((first, _)) = args[..i].iter().find(|(n, _)| n.text == name.text) {
                        let d = duplicate("argument", name, first.span);
                        self.report(d);
                    }
                    if let Some(p) = signature.params.iter().find(|p| p.name.text == name.text) {
                        self.argument(signature, p, e, &mut chosen);
                        continue;
                    }
                    self.expr(e, None);
                    let d = Diagnostic::error(
                        codes::UNKNOWN_ARGUMENT,
                        format!("{kind} `{}` has no parameter `{}`", signature.name.text, name.text),
                        name.span,
                    )
                    .remark(signature.name.span, "declared here");
                    let near = nearest(&name.text, signature.params.iter().map(|p| p.name.text.as_str()));
                    self.report(match near {
                        Some(near) => suggest(d, near),
                        None => d.help(usage(signature)),
                    });
                }
                let missing: Vec<&str> = signature
                    .params
                    .iter()
                    .filter(|p| p.default.is_none())
                    .map(|p| p.name.text.as_str())
                    .filter(|p| !args.iter().any(|(n, _)| n.text == *p))
                    // A slip in the name has been reported as an unknown parameter.
                    .filter(|p| {
                        let known = |n: &str| signature.params.iter().any(|q| q.name.text == n);
                        !args.iter().any(|(n, _)| !known(&n.text) && nearest(&n.text, [*p]).is_some())
                    })
                    .collect();
                if !missing.is_empty() {
                    self.report(declared(Diagnostic::error(
                        codes::MISSING_ARGUMENT,
                        format!(
                            "`{}` is missing in the call of {kind} `{}`",
                            missing.join("`, `"),
                            signature.name.text
                        ),
                        run.args_span,
                    )));
                }
            }
        }
        chosen
    }

    /// Reason why an agent can return nothing but a text where another type is expected.
    fn gives_text(&self, agent: &str, result: &Type) -> Option<String> {
        let decl = self.decls.agents.get(agent)?;
        if Type::Str.is_subtype(result) {
            return None;
        }
        if decl.as_text && !decl.offers.is_empty() {
            return Some("its `talk` is `text`".into());
        }
        decl.offers.iter().find_map(|o| match o.kind {
            ActionKind::HandOff => Some(format!("it may hand off to `{}`", o.name.text)),
            ActionKind::Finish => {
                let tool = self.decls.tools.get(&o.name.text)?;
                let fits = tool.result.is_subtype(result);
                (!fits).then(|| format!("the result of `{}` may be the answer", o.name.text))
            }
            ActionKind::Call | ActionKind::Ask => None,
        })
    }

    pub(super) fn clauses(&mut self, signature: &Signature, run: &Run) {
        let mut by = None;
        for clause in &run.clauses {
            match &clause.kind {
                ClauseKind::By(agent) => {
                    by = Some(agent);
                    if !self.decls.agents.contains_key(&agent.text) {
                        let d = Diagnostic::error(
                            codes::UNKNOWN_AGENT,
                            format!("there is no agent `{}`", agent.text),
                            agent.span,
                        );
                        let near = nearest(&agent.text, self.decls.agents.keys().map(String::as_str));
                        self.report(match near {
                            Some(near) => suggest(d, near),
                            None => d.help(format!("declare it: `agent {} {{ tools: [] }}`", agent.text)),
                        });
                    }
                    match signature.kind {
                        CallableKind::AgentTask => {
                            if let Some(why) = self.gives_text(&agent.text, &signature.result) {
                                let message = format!(
                                    "`{}` returns a String, not {}: {why}",
                                    agent.text,
                                    show(&signature.result)
                                );
                                self.report(
                                    Diagnostic::error(codes::BAD_SETTING, message, agent.span)
                                        .remark(signature.name.span, "declared here")
                                        .help("let another agent do it, or let the task give a String"),
                                );
                            }
                        }
                        CallableKind::Pipeline | CallableKind::Import | CallableKind::Function => self
                            .report(
                                Diagnostic::error(
                                    codes::BY_ON_PIPELINE,
                                    format!(
                                        "`{}` is {} {}; the agents are chosen inside it",
                                        signature.name.text,
                                        if signature.kind == CallableKind::Import { "an" } else { "a" },
                                        signature.kind.as_str()
                                    ),
                                    clause.span,
                                )
                                .remark(signature.name.span, "declared here")
                                .help("remove `by`")
                                .fix(removal(clause.span)),
                            ),
                        CallableKind::Task | CallableKind::Tool => self.report(
                            Diagnostic::warn(
                                codes::BY_WITHOUT_AGENT,
                                format!("no agent runs `{}`, so `by` has no effect", signature.name.text),
                                clause.span,
                            )
                            .remark(signature.name.span, "declared without `by agent`")
                            .help("remove `by`, or declare the task `by agent`")
                            .fix(removal(clause.span)),
                        ),
                    }
                }
                ClauseKind::Use(e) => {
                    // Fallback policy.
                    let why =
                        (signature.name.span, "the result of this must be replaceable by it".to_string());
                    let found = self.expect(e, &signature.result, Some(why));
                    if !certain(&found, &signature.result) {
                        self.facts.unsure.insert(e.span, signature.result.clone());
                    }
                }
                ClauseKind::Timeout(n) => {
                    if n.text.parse::<Num>().is_ok_and(|n| n.is_zero()) {
                        self.report(
                            Diagnostic::error(codes::BAD_SETTING, "a call can't be done in no time", n.span)
                                .help("write a number of seconds, for example `30` or `0.5`"),
                        );
                    }
                }
                ClauseKind::Retries(n) if n.text.parse() != Ok(0u64) => self.repeated(signature, clause.span),
                ClauseKind::Retries(_) | ClauseKind::Abort => {}
            }
        }
        if signature.kind == CallableKind::AgentTask && by.is_none() {
            let mut agents: Vec<&str> = self.decls.agents.keys().map(String::as_str).collect();
            agents.sort_unstable();
            let help = match agents[..] {
                [] => "declare an agent and add `by NAME`".to_string(),
                [one] => format!("add `by {one}`"),
                _ => format!("add `by` and one of `{}`", agents.join("`, `")),
            };
            let at = Span { start: run.args_span.end, ..run.args_span };
            let mut d = Diagnostic::error(
                codes::NO_AGENT,
                format!("`{}` is run by an agent, but the call does not name one", signature.name.text),
                run.target.span,
            )
            .remark(signature.name.span, "declared `by agent`")
            .help(help);
            if let [one] = agents[..] {
                let fix =
                    Fix { span: at, replacement: format!(" by {one}"), applicability: Applicability::Unsafe };
                d = d.fix(fix);
            }
            self.report(d);
        }
    }

    /// A call that is made again though it changes the world: a warning, unless the tool can tell.
    pub(super) fn repeated(&mut self, s: &Signature, at: Span) {
        let writes = s.flow.class == Some(core_ir::EffectClass::Write);
        if !writes || s.params.iter().any(|p| p.name.text == IDEMPOTENCY_KEY) {
            return;
        }
        self.report(
            Diagnostic::warn(
                codes::RETRIED_WRITE,
                format!("a repeated call of `{}` may change the world twice", s.name.text),
                at,
            )
            .remark(s.name.span, "declared `writes`")
            .help(format!(
                "give it a parameter `{IDEMPOTENCY_KEY}: String` by which it recognizes a call that it has carried \
                 out, or remove the repetition"
            )),
        );
    }
}
