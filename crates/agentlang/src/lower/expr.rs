//! Calls and expressions.

use super::taint::Taint;
use super::{REPAIR, SurfaceLowering};
use crate::decls::{CallableKind, Signature};
use crate::functions::{self, MapOperation, Operation};
use crate::scopes::declared_name;
use crate::types::unconditional;
use core_ir::{
    Bound, Branch, Catches, Data, IfSugar, ModelParams, Name, Num, Prim, Term, TermId, ToolId, Type,
};
use diagnostics::Span;
use std::sync::Arc;
use syntax::agent::ast::{
    self, Args, BinaryOp, ClauseKind, Expr, ExprKind, Run, Template, TemplatePart, UnaryOp,
};

/// The tag of the results of a pipeline that calls itself so often at most.
pub(super) const DONE: &str = "done";

/// Target of a call.
pub(super) enum Callee {
    Tool(ToolId),
    Function(Name),
    /// A pipeline that calls itself.
    Fixpoint(Fixpoint),
    Unknown,
}

/// The function of a pipeline that calls itself.
pub(super) struct Fixpoint {
    function: Name,
    pipeline: String,
    result: Type,
    /// True if the recursion has a bound. A function whose bound is reached returns its argument (`fix[0]` is
    /// the identity), so its results are tagged, `` `done v ``, and an untagged one is an error. The bound is
    /// the maximal number of decreasing calls, so that does not happen.
    counted: bool,
}

/// Returns the name of a pipeline's result in checks.
pub(super) fn result_of(pipeline: &str) -> Name {
    format!("the result of `{pipeline}`").into()
}

/// The agent that a call names.
pub(super) fn by_of(run: &Run) -> Option<&str> {
    run.clauses.iter().find_map(|c| match &c.kind {
        ClauseKind::By(agent) => Some(agent.text.as_str()),
        _ => None,
    })
}

pub(super) fn prim_of(op: BinaryOp) -> Option<Prim> {
    Some(match op {
        BinaryOp::Or | BinaryOp::And | BinaryOp::Coalesce => return None,
        BinaryOp::Eq => Prim::Eq,
        BinaryOp::Ne => Prim::Ne,
        BinaryOp::Lt => Prim::Lt,
        BinaryOp::Le => Prim::Le,
        BinaryOp::Gt => Prim::Gt,
        BinaryOp::Ge => Prim::Ge,
        BinaryOp::Add => Prim::Add,
        BinaryOp::Sub => Prim::Sub,
        BinaryOp::Mul => Prim::Mul,
        BinaryOp::Div => Prim::Div,
        BinaryOp::Rem => Prim::Rem,
    })
}

/// The text of a template without holes.
pub(super) fn literal_text(t: &Template) -> String {
    t.parts
        .iter()
        .map(|p| match p {
            TemplatePart::Text(s) => s.value.as_str(),
            TemplatePart::Hole(_) => "",
        })
        .collect()
}

impl SurfaceLowering<'_> {
    /// A call with its clauses, and with the guard that repeats it if there is one.
    pub(super) fn run(&mut self, run: &Run, guard: Option<(&Expr, u32, Span)>) -> (TermId, Taint) {
        let mut taint = self.taint_of_run(run);
        for clause in &run.clauses {
            if let ClauseKind::Use(e) = &clause.kind {
                taint = taint.join(self.taint(e));
            }
        }
        let term = self.run_inner(run);
        let term = match guard {
            Some((e, retry, at)) => self.guarded(term, &run.name.text, e, retry, at),
            None => term,
        };
        (self.declared(&run.name, term), taint)
    }

    /// The value of a variable, checked against the type that its `let` declares.
    pub(super) fn declared(&mut self, name: &ast::Name, value: TermId) -> TermId {
        match self.c.facts.checked.get(&name.span) {
            Some(ty) => {
                let what = format!("the value of `{}`", name.text);
                self.b.add(Term::Check(what.into(), ty.clone(), value), name.span)
            }
            None => value,
        }
    }

    pub(super) fn run_inner(&mut self, run: &Run) -> TermId {
        let at = run.span;
        let Some(s) = self.c.decls.callable(&run.target.text) else {
            let Args::Positional(args) = &run.args else {
                return self.b.add(Term::Unknown(run.target.text.as_str().into()), at);
            };
            return self.call(&run.target.text, args, at);
        };
        let mut fields: Vec<(Name, TermId)> = match &run.args {
            Args::Named(args) => args
                .iter()
                .map(|(n, e)| (Name::from(n.text.as_str()), self.argument(s, &n.text, e)))
                .collect(),
            Args::Positional(args) => s
                .params
                .iter()
                .zip(args)
                .map(|(p, e)| (Name::from(p.name.text.as_str()), self.argument(s, &p.name.text, e)))
                .collect(),
        };
        self.fill(s, &mut fields);
        let args = self.b.add(Term::Record(fields), run.args_span);
        let (mut retries, mut instead, mut limit) = (0u64, None, None);
        for clause in &run.clauses {
            match &clause.kind {
                ClauseKind::Retries(n) => retries = n.text.parse().unwrap_or(0),
                ClauseKind::Use(e) => instead = Some(e),
                ClauseKind::Timeout(n) => limit = n.text.parse::<Num>().ok(),
                ClauseKind::By(_) | ClauseKind::Abort => {}
            }
        }
        let limit = limit.as_ref();
        let given =
            crate::check::arguments_of(run).into_iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
        let callee = self.callee(s, run, given);
        // The label of every error that the call can have. What a bound keeps out can't label one.
        let given = match &callee {
            Callee::Tool(_) if self.c.world.bounds.contains(&self.c.decls.handler_name(s)) => given,
            Callee::Tool(id) => {
                let params = &self.b.tools()[id.0 as usize].params;
                params.iter().fold(Taint::NONE, |t, p| t.join(given.within(&p.bound)))
            }
            Callee::Function(_) | Callee::Fixpoint(..) | Callee::Unknown => given,
        };
        let label = self.added(s, by_of(run)).join(given);
        if retries == 0 && instead.is_none() && limit.is_none() {
            return self.invoke(&callee, args, at);
        }
        // The arguments are evaluated once; a mistake in them is not the callee's failure.
        let held = self.b.fresh("args");
        let attempt = |lower: &mut Self| {
            let args = lower.b.var(held.clone(), run.args_span);
            lower.invoke_within(&callee, args, limit, at)
        };
        let body = match (retries, instead) {
            (0, None) => attempt(self),
            (0, Some(instead)) => {
                let body = attempt(self);
                let message = self.b.fresh("message");
                let handler = self.fallback(s, instead);
                let label = self.label(label, at);
                self.b.add(Term::Try { label, body, catches: Catches::All, name: message, handler }, at)
            }
            // Without a fallback the last attempt is not protected, so that its error is the error of the
            // call.
            (n, None) => {
                let tried = attempt(self);
                let tried = self.retry(tried, n, label, at);
                let last = attempt(self);
                self.or_else(tried, last, at)
            }
            // With one all `n + 1` attempts are; and so is what is not tried again, which is a time limit.
            (n, Some(instead)) => {
                let tried = attempt(self);
                let tried = self.retry(tried, n + 1, label, at);
                let label = self.label(label, at);
                let message = self.b.fresh("message");
                let late = self.b.add(Term::Tag("failed".into(), None), at);
                let catches = Catches::All;
                let tried =
                    self.b.add(Term::Try { label, body: tried, catches, name: message, handler: late }, at);
                let instead = self.fallback(s, instead);
                self.or_else(tried, instead, at)
            }
        };
        self.b.let_in(vec![(held, args)], body, at)
    }

    /// The value after `on_fail use`.
    fn fallback(&mut self, s: &Signature, instead: &Expr) -> TermId {
        let value = self.expr(instead);
        self.sure(value, instead.span, &format!("the value instead of that of `{}`", s.name.text))
    }

    /// `` case tried of {`done v ⇒ v, `failed ⇒ otherwise} ``
    pub(super) fn or_else(&mut self, tried: TermId, otherwise: TermId, at: Span) -> TermId {
        let value = self.b.fresh("value");
        let done = self.b.var(value.clone(), at);
        let branches = vec![
            Branch { tag: "done".into(), binder: Some(value), body: done },
            Branch { tag: "failed".into(), binder: None, body: otherwise },
        ];
        self.b.add(Term::Case { scrutinee: tried, branches, default: None }, at)
    }

    /// `` (fix[n] (λagain. λlast. try[l] `done call catch transient m. again `failed)) `failed ``
    pub(super) fn retry(&mut self, call: TermId, attempts: u64, label: Taint, at: Span) -> TermId {
        let (again, last, message) = (self.b.fresh("again"), self.b.fresh("last"), self.b.fresh("message"));
        let done = self.b.add(Term::Tag("done".into(), Some(call)), at);
        let failed = self.b.add(Term::Tag("failed".into(), None), at);
        let next = self.b.var(again.clone(), at);
        let handler = self.b.app(next, failed, at);
        let label = self.label(label, at);
        let catches = if self.c.retry_timeouts { Catches::NotPermanent } else { Catches::Transient };
        let body = self.b.add(Term::Try { label, body: done, catches, name: message, handler }, at);
        let body = self.b.abs(last, None, body, at);
        let body = self.b.abs(again, None, body, at);
        let fix = self.b.add(Term::Fix { bound: Bound::Finite(attempts), origin: None, body }, at);
        let start = self.b.add(Term::Tag("failed".into(), None), at);
        self.b.app(fix, start, at)
    }

    pub(super) fn callee(&mut self, s: &Signature, run: &Run, given: Taint) -> Callee {
        match (s.kind, by_of(run)) {
            (CallableKind::Tool | CallableKind::Task, _) => {
                self.tool(s).map_or(Callee::Unknown, Callee::Tool)
            }
            (CallableKind::Function, _) => Callee::Function(self.pipeline_function(s, given, None)),
            (CallableKind::Pipeline, _) => {
                let descent = self.c.facts.descents.get(&s.name.text);
                let (function, counted) = match self.again.get(&s.name.text) {
                    Some(again) => again.clone(),
                    None => {
                        let calls = descent.and_then(|d| d.calls_of(run, &s.params));
                        (self.pipeline_function(s, given, calls), calls.is_some())
                    }
                };
                let (pipeline, result) = (s.name.text.clone(), s.result.clone());
                match descent {
                    Some(_) => Callee::Fixpoint(Fixpoint { function, pipeline, result, counted }),
                    None => Callee::Function(function),
                }
            }
            (CallableKind::AgentTask, Some(agent)) => Callee::Function(self.agent_function(s, agent)),
            (CallableKind::Import, _) => Callee::Function(self.import_function(s)),
            // The checker has asked for an agent.
            (CallableKind::AgentTask, None) => Callee::Unknown,
        }
    }

    /// A call with a time limit.
    pub(super) fn invoke_within(
        &mut self,
        callee: &Callee,
        args: TermId,
        limit: Option<&Num>,
        at: Span,
    ) -> TermId {
        let call = self.invoke(callee, args, at);
        match limit {
            Some(seconds) => self.b.add(Term::Within(seconds.clone(), call), at),
            None => call,
        }
    }

    pub(super) fn invoke(&mut self, callee: &Callee, args: TermId, at: Span) -> TermId {
        let function = match callee {
            Callee::Tool(id) => self.b.add(Term::Tool(*id), at),
            Callee::Function(function) | Callee::Fixpoint(Fixpoint { function, .. }) => {
                self.b.var(function.clone(), at)
            }
            Callee::Unknown => self.b.add(Term::Unknown("call".into()), at),
        };
        let call = self.b.app(function, args, at);
        match callee {
            Callee::Fixpoint(f) => {
                let result = if f.counted { self.counted(call, &f.pipeline, at) } else { call };
                self.b.add(Term::Check(result_of(&f.pipeline), f.result.clone(), result), at)
            }
            _ => call,
        }
    }

    /// `` case call of {done v ⇒ v, _ ⇒ fail …} ``
    fn counted(&mut self, call: TermId, pipeline: &str, at: Span) -> TermId {
        let result = self.b.fresh("result");
        let body = self.b.var(result.clone(), at);
        let message = format!("`{pipeline}` called itself more often than its bound");
        let message = self.b.lit(&*message, at);
        let fail = self.b.add(Term::Fail(message), at);
        let branches = vec![Branch { tag: DONE.into(), binder: Some(result), body }];
        self.b.add(Term::Case { scrutinee: call, branches, default: Some(fail) }, at)
    }

    pub(super) fn call(&mut self, name: &str, args: &[Expr], at: Span) -> TermId {
        if let Some(s) = self.c.decls.function(name) {
            return self.call_function(s, args, at);
        }
        if functions::higher(name).is_some() {
            return self.higher(name, args, at);
        }
        let operands = args.iter().map(|e| self.operand(e)).collect();
        match functions::named(name) {
            Some(f) => self.operation(f.operation, operands, at),
            None => self.b.add(Term::Unknown(name.into()), at),
        }
    }

    /// An operand of a function. One of `to_string` that may be a number is shown as a decimal.
    pub(super) fn operand(&mut self, e: &Expr) -> TermId {
        let value = self.expr(e);
        self.shown(value, e.span)
    }

    /// A value in a text. If it may hold a number, no number is shown as a fraction.
    pub(super) fn shown(&mut self, value: TermId, at: Span) -> TermId {
        match self.c.facts.numbers.contains(&at) {
            true => self.operation(Operation::Named("agent.shown"), vec![value], at),
            false => value,
        }
    }

    /// A function of the language.
    pub(super) fn operation(&mut self, operation: Operation, operands: Vec<TermId>, at: Span) -> TermId {
        match operation {
            Operation::Prim(prim) => self.b.add(Term::Prim(prim, operands), at),
            Operation::OfMap(what) => self.map_operation(what, operands, at),
            Operation::Named(name) => {
                let name = self.b.lit(name, at);
                let all = std::iter::once(name).chain(operands).collect();
                self.b.add(Term::Prim(Prim::Py, all), at)
            }
        }
    }

    pub(super) fn expr(&mut self, e: &Expr) -> TermId {
        let mut value = stacker::maybe_grow(64 << 10, 1 << 20, || self.expr_inner(e));
        if let Some(paths) = self.c.facts.absent.get(&e.span) {
            for path in paths {
                value = self.with_null(value, path, e.span);
            }
        }
        let Some(ty) = self.c.facts.narrowed.get(&e.span) else { return value };
        let what = match &e.kind {
            ExprKind::Var(name) => format!("`{name}`"),
            ExprKind::Field(_, name) | ExprKind::OptionalField(_, name) => {
                format!("the field `{}`", name.text)
            }
            _ => return value,
        };
        // With the conditions that the variable was checked for, which the checker leaves out.
        let declared = self.declared_type(e).map(|t| match t {
            Type::Option(inside) => (*inside).clone(),
            other => other,
        });
        let ty = declared.filter(|t| unconditional(t) == *ty).unwrap_or_else(|| ty.clone());
        self.b.add(Term::Check(what.into(), ty, value), e.span)
    }

    /// A record in which the field at the end of a path is null.
    fn with_null(&mut self, record: TermId, path: &[Name], at: Span) -> TermId {
        let Some((name, inside)) = path.split_first() else { return record };
        if inside.is_empty() {
            let null = self.b.lit(Data::Null, at);
            return self.b.add(Term::With(record, name.clone(), null), at);
        }
        let held = self.b.fresh("record");
        let whole = self.b.var(held.clone(), at);
        let part = self.access(whole, name, false, at);
        let part = self.with_null(part, inside, at);
        let whole = self.b.var(held.clone(), at);
        let changed = self.b.add(Term::With(whole, name.clone(), part), at);
        self.b.let_in(vec![(held, record)], changed, at)
    }

    pub(super) fn expr_inner(&mut self, e: &Expr) -> TermId {
        let at = e.span;
        match &e.kind {
            ExprKind::Str(s) => self.b.lit(&**s, at),
            ExprKind::Number(n) => match n.parse::<Num>() {
                Ok(n) => self.b.lit(n, at),
                Err(_) => self.b.add(Term::Unknown("number".into()), at),
            },
            ExprKind::Bool(b) => self.b.lit(*b, at),
            ExprKind::Null => self.b.lit(Data::Null, at),
            ExprKind::Var(name) if self.c.facts.cases.contains(&at) => {
                // Fields that may be absent are null.
                let case = self.c.decls.types.cases.get(name);
                match case.is_some_and(|c| !c.fields().is_empty()) {
                    true => self.construct(&ast::Name { text: name.clone(), span: at }, &[], at),
                    false => self.b.add(Term::Tag(declared_name(name).into(), None), at),
                }
            }
            ExprKind::Var(name) => self.variable(name, at),
            ExprKind::Construct(name, fields) => self.construct(name, fields, at),
            ExprKind::Field(base, name) => {
                let optional = self.c.facts.optional_fields.contains(&at);
                let base = self.expr(base);
                self.access(base, &name.text, optional, at)
            }
            ExprKind::OptionalField(base, name) => {
                let optional = self.c.facts.optional_fields.contains(&at);
                let held = self.b.fresh("option");
                let value = self.expr(base);
                let seen = self.b.var(held.clone(), base.span);
                let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), base.span);
                let of = self.b.var(held.clone(), base.span);
                let field = self.access(of, &name.text, optional, at);
                let null = self.b.lit(Data::Null, at);
                let choice = self.b.add(Term::If(absent, null, field, IfSugar::Plain), at);
                self.b.let_in(vec![(held, value)], choice, at)
            }
            ExprKind::Index(base, index) if self.c.facts.lookups.contains(&at) => {
                let operands = vec![self.expr(base), self.expr(index)];
                self.map_operation(MapOperation::Get, operands, at)
            }
            ExprKind::Index(base, index) => {
                let (base, index) = (self.expr(base), self.expr(index));
                self.b.add(Term::Index(base, index), at)
            }
            ExprKind::Record(fields) | ExprKind::Map(fields) => {
                let fields =
                    fields.iter().map(|(n, e)| (Name::from(n.text.as_str()), self.expr(e))).collect();
                self.b.add(Term::Record(fields), at)
            }
            ExprKind::Update(of, fields) => {
                // Left to right: the record is made first.
                let mut record = self.expr(of);
                for (name, e) in fields {
                    let value = self.expr(e);
                    record = self.b.add(Term::With(record, name.text.as_str().into(), value), at);
                }
                record
            }
            ExprKind::If(bound, condition, then, other) => {
                self.if_value(bound.as_ref(), condition, then, other, at)
            }
            ExprKind::Match(of, arms) => self.match_value(of, arms, at),
            ExprKind::Block(lets, value) => {
                let mark = self.scope.journal.len();
                let mut bindings = Vec::new();
                for l in lets {
                    let value = self.expr(&l.value);
                    let value = self.declared(&l.name, value);
                    let taint = self.taint_of_value(&l.value);
                    let length = self.length(&l.value);
                    bindings.push((self.local(&l.name.text, taint, length), value));
                }
                let value = self.expr(value);
                self.scope.undo(mark);
                self.b.let_in(bindings, value, at)
            }
            ExprKind::List(items) => {
                let items = items.iter().map(|e| self.expr(e)).collect();
                self.b.add(Term::List(items), at)
            }
            ExprKind::Template(t) => self.template(t),
            ExprKind::Paren(inner) => self.expr(inner),
            ExprKind::Unary(op, inner) => {
                let operand = self.expr(inner);
                let prim = match op {
                    UnaryOp::Not => Prim::Not,
                    UnaryOp::Neg => Prim::Neg,
                };
                self.b.add(Term::Prim(prim, vec![operand]), at)
            }
            ExprKind::Binary(BinaryOp::Coalesce, _, a, b) => {
                let option = self.b.fresh("option");
                let value = self.expr(a);
                let seen = self.b.var(option.clone(), a.span);
                let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), a.span);
                let inside = self.b.var(option.clone(), a.span);
                let other = self.expr(b);
                let choice = self.b.add(Term::If(absent, other, inside, IfSugar::Plain), at);
                self.b.let_in(vec![(option, value)], choice, at)
            }
            ExprKind::Binary(op, _, a, b) => {
                let (left, right) = (self.expr(a), self.expr(b));
                match (op, prim_of(*op)) {
                    (_, Some(prim)) => self.b.add(Term::Prim(prim, vec![left, right]), at),
                    (BinaryOp::And, _) => {
                        let no = self.b.lit(false, at);
                        self.b.add(Term::If(left, right, no, IfSugar::And), at)
                    }
                    _ => {
                        let yes = self.b.lit(true, at);
                        self.b.add(Term::If(left, yes, right, IfSugar::Or), at)
                    }
                }
            }
            ExprKind::Call(name, args) => self.call(&name.text, args, at),
            ExprKind::Quarantine(prompt, ty) => {
                let result = self.c.decls.types.ty(ty, &mut Vec::new());
                let params = ModelParams {
                    result: Some(result),
                    repair: REPAIR,
                    purpose: Some("quarantine".into()),
                    ..ModelParams::default()
                };
                let system = self.b.lit("", at);
                let model = self.b.add(Term::Llm(system, Arc::new(params)), at);
                let prompt = self.expr(prompt);
                self.b.app(model, prompt, at)
            }
            ExprKind::Endorse(value, values, other) => self.endorsed(value, values, other.as_deref(), at),
            // Not in a program that was accepted.
            ExprKind::Lambda(..) | ExprKind::Error => self.b.add(Term::Unknown("expression".into()), at),
        }
    }

    /// `let v = value in endorse [] (if contains([…], v) then v else other)`: one of the constants, and so
    /// trusted.
    pub(super) fn endorsed(
        &mut self,
        value: &Expr,
        values: &[Expr],
        other: Option<&Expr>,
        at: Span,
    ) -> TermId {
        let held = self.b.fresh("value");
        let found = self.expr(value);
        let permitted = values.iter().map(|e| self.expr(e)).collect();
        let permitted = self.b.add(Term::List(permitted), at);
        let asked = self.b.var(held.clone(), value.span);
        let permits = self.b.add(Term::Prim(Prim::Contains, vec![permitted, asked]), at);
        let chosen = self.b.var(held.clone(), value.span);
        let otherwise = match other {
            Some(e) => self.expr(e),
            None => {
                let text = self.b.lit("not one of the permitted values: ", at);
                let shown = self.b.var(held.clone(), value.span);
                let message = self.b.add(Term::Prim(Prim::Format, vec![text, shown]), at);
                self.b.add(Term::Fail(message), at)
            }
        };
        let choice = self.b.add(Term::If(permits, chosen, otherwise, IfSugar::Plain), at);
        let trusted = self.label(Taint::NONE, at);
        let endorsed = self.b.add(Term::Endorse(trusted, choice), at);
        self.b.let_in(vec![(held, found)], endorsed, at)
    }

    /// `` `Case {field: e, …} ``; the fields that are left out are null.
    fn construct(&mut self, name: &ast::Name, fields: &[(ast::Name, Expr)], at: Span) -> TermId {
        let mut all: Vec<(Name, TermId)> = Vec::new();
        for (field, e) in fields {
            let value = self.expr(e);
            let value = self.sure(value, e.span, &format!("the field `{}` of `{}`", field.text, name.text));
            all.push((field.text.as_str().into(), value));
        }
        let decls = self.c.decls;
        let declared = decls.types.cases.get(&name.text).map_or(&[][..], |c| c.fields());
        for (field, _) in declared {
            if !all.iter().any(|(n, _)| n == field) {
                let null = self.b.lit(Data::Null, at);
                all.push((field.clone(), null));
            }
        }
        let payload = self.b.add(Term::Record(all), at);
        self.b.add(Term::Tag(declared_name(&name.text).into(), Some(payload)), at)
    }

    /// A field. One that may be absent is null if it is.
    pub(super) fn access(&mut self, base: TermId, name: &str, optional: bool, at: Span) -> TermId {
        if !optional {
            return self.b.add(Term::Field(base, name.into()), at);
        }
        let held = self.b.fresh("record");
        let of = self.b.var(held.clone(), at);
        let key = self.b.lit(name, at);
        let has = self.b.add(Term::Prim(Prim::Has, vec![of, key]), at);
        let of = self.b.var(held.clone(), at);
        let field = self.b.add(Term::Field(of, name.into()), at);
        let null = self.b.lit(Data::Null, at);
        let choice = self.b.add(Term::If(has, field, null, IfSugar::Plain), at);
        self.b.let_in(vec![(held, base)], choice, at)
    }

    pub(super) fn template(&mut self, t: &Template) -> TermId {
        if let [TemplatePart::Text(only)] = &t.parts[..] {
            return self.b.lit(&*only.value, t.span);
        }
        let parts = t
            .parts
            .iter()
            .map(|p| match p {
                TemplatePart::Text(text) => self.b.lit(&*text.value, text.span),
                TemplatePart::Hole(e) => self.operand(e),
            })
            .collect();
        self.b.add(Term::Prim(Prim::Format, parts), t.span)
    }
}
