//! Statements of a function in which agents are run, as terms.

use super::function::{ASKED, Frame, FunctionLowering, LAST_RESULT, MESSAGES, ValueKind, called, core};
use crate::scan::{awaited, dotted, grown, is_exit, never_ends, scan, scan_expr};
use core_ir::{Catches, Data, IfSugar, Name, Num, Prim, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::codes;
use frontend_kit::kit::Kit;
use ruff_python_ast::{ExceptHandler, Expr, Identifier, Operator, Stmt, StmtIf, StmtTry};
use ruff_text_size::Ranged;
use std::collections::BTreeSet;

/// The names that hold terms.
pub(super) type Env = BTreeSet<String>;
pub(super) type Said = Vec<(Name, TermId)>;

/// Continuation of a block.
pub(super) enum Rest<'k, 'w> {
    /// The function ends.
    End,
    Then(&'w [Stmt], &'k Rest<'k, 'w>),
    /// The next turn of a loop.
    Turn(&'k Turn, &'k Rest<'k, 'w>),
    /// The values of these names are needed.
    Join(&'k [String]),
}

/// Statements after one in its block, and the continuation of the block.
#[derive(Clone, Copy)]
pub(super) struct Following<'k, 'w> {
    pub after: &'w [Stmt],
    pub rest: &'k Rest<'k, 'w>,
}

/// Loop variables that one iteration passes to the next.
pub(super) struct Turn {
    pub names: Vec<String>,
    /// True for a loop over a list.
    pub counted: bool,
    /// True if the function may return within it.
    pub returns: bool,
}

/// The state of a loop, the list that it goes over, and the fields that say where it is and what the function
/// gives.
pub(super) const STATE: &str = "$s";
pub(super) const LIST: &str = "$of";
pub(super) const AT: &str = "$at";
pub(super) const GIVEN: &str = "$given";

/// A side of a test; the last one may be without a test.
type Side<'w> = (Option<&'w Expr>, &'w [Stmt]);

impl<'w> FunctionLowering<'_, 'w> {
    pub(super) fn at(&self, frame: &Frame<'_>, of: &impl Ranged) -> Span {
        self.reader.world.span(frame.module, of.range())
    }

    /// Statements, and what follows them.
    pub(super) fn block(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: Env,
        stmts: &'w [Stmt],
        rest: &Rest<'_, 'w>,
    ) -> TermId {
        let at =
            stmts.first().map_or_else(|| self.reader.world.function(f.function).name_span, |s| self.at(f, s));
        if !kit.budget.begin_value() {
            return kit.undecided(
                codes::NOT_COMPILED,
                "this function takes more than is compiled".into(),
                at,
            );
        }
        let term = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || {
            let mut said = Vec::new();
            let end = self.statements(kit, f, env, stmts, rest, &mut said);
            kit.b.let_in(said, end, at)
        });
        kit.budget.end_value();
        term
    }

    fn statements(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        mut env: Env,
        stmts: &'w [Stmt],
        rest: &Rest<'_, 'w>,
        said: &mut Said,
    ) -> TermId {
        for (i, stmt) in stmts.iter().enumerate() {
            let after = stmts.get(i + 1..).unwrap_or(&[]);
            let at = self.at(f, stmt);
            match stmt {
                Stmt::Assign(s) => {
                    for target in &s.targets {
                        self.assign(kit, f, &mut env, target, &s.value, said);
                    }
                }
                Stmt::AnnAssign(s) => {
                    if let Some(value) = &s.value {
                        self.assign(kit, f, &mut env, &s.target, value, said);
                    }
                }
                Stmt::AugAssign(s) => match dotted(&s.target).filter(|n| env.contains(n)) {
                    Some(name) => {
                        let old = kit.b.var(core(&name), at);
                        let more = self.value(kit, f, &mut env, &s.value);
                        let prim = match s.op {
                            Operator::Add => Some(Prim::Add),
                            Operator::Sub => Some(Prim::Sub),
                            Operator::Mult => Some(Prim::Mul),
                            _ => None,
                        };
                        let new = match prim {
                            Some(prim) => kit.b.add(Term::Prim(prim, vec![old, more]), at),
                            None => self.not_known(kit, f, stmt),
                        };
                        said.push((core(&name), new));
                    }
                    None => {
                        self.act(kit, f, &mut env, &s.value, said);
                    }
                },
                Stmt::Expr(s) => {
                    if is_exit(&s.value) {
                        return self.give(kit, f, &env, None, rest, at);
                    }
                    self.act(kit, f, &mut env, &s.value, said);
                }
                Stmt::Return(s) => {
                    let value = s.value.as_deref().filter(|v| !v.is_none_literal_expr());
                    let value = value.map(|v| self.value(kit, f, &mut env, v));
                    return self.give(kit, f, &env, value, rest, at);
                }
                Stmt::Raise(s) => {
                    let text =
                        s.exc.as_deref().map_or("an exception is raised".to_string(), |e| self.written(f, e));
                    let text = kit.text(&text, at);
                    return kit.b.add(Term::Fail(text), at);
                }
                Stmt::Break(_) => return self.leave(kit, &env, rest, false, at),
                Stmt::Continue(_) => return self.leave(kit, &env, rest, true, at),
                Stmt::If(s) => {
                    if let Some(end) = self.tests(kit, f, &mut env, s, Following { after, rest }, said) {
                        return end;
                    }
                }
                Stmt::While(s) => {
                    if let Some(end) =
                        self.while_loop(kit, f, &mut env, (s, &stmts[..i]), Following { after, rest }, said)
                    {
                        return end;
                    }
                }
                Stmt::For(s) => {
                    if let Some(end) = self.for_loop(kit, f, &mut env, s, Following { after, rest }, said) {
                        return end;
                    }
                }
                Stmt::With(s) => {
                    for target in s.items.iter().filter_map(|i| dotted(i.optional_vars.as_deref()?)) {
                        env.remove(&target);
                    }
                    return self.block(kit, f, env, &s.body, &Rest::Then(after, rest));
                }
                Stmt::Try(s) => return self.tries(kit, f, env, s, Following { after, rest }, said),
                Stmt::Match(s) => {
                    let found = scan(std::slice::from_ref(stmt));
                    if found.leaves
                        || self.acts(f, &found)
                        || !self.needed(f, &found.names(), s.range.end().into(), rest).is_empty()
                    {
                        let term =
                            kit.undecided(codes::NOT_COMPILED, "which case of a `match` holds".into(), at);
                        said.push(("_".into(), term));
                    }
                }
                Stmt::FunctionDef(_)
                | Stmt::ClassDef(_)
                | Stmt::Delete(_)
                | Stmt::TypeAlias(_)
                | Stmt::Assert(_)
                | Stmt::Import(_)
                | Stmt::ImportFrom(_)
                | Stmt::Global(_)
                | Stmt::Nonlocal(_)
                | Stmt::Pass(_)
                | Stmt::IpyEscapeCommand(_) => {}
            }
        }
        self.end(kit, f, env, rest)
    }

    // ---- ends ----

    fn end(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: Env, rest: &Rest<'_, 'w>) -> TermId {
        let at = self.reader.world.function(f.function).name_span;
        match rest {
            Rest::End => self.nothing_given(kit, f, &env, at),
            Rest::Then(stmts, rest) => self.block(kit, f, env, stmts, rest),
            Rest::Turn(turn, _) => self.next(kit, turn, &env, at),
            Rest::Join(names) => self.join(kit, names, &env, at),
        }
    }

    /// Lowers the result of a function without a `return` value: its last run.
    fn nothing_given(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &Env, at: Span) -> TermId {
        match env.contains(LAST_RESULT) {
            true => kit.b.var(LAST_RESULT, at),
            false if f.depth == 0 => kit.text("", at),
            false => kit.b.lit(Data::Null, at),
        }
    }

    /// The function ends here.
    pub(super) fn give(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &Env,
        value: Option<TermId>,
        rest: &Rest<'_, 'w>,
        at: Span,
    ) -> TermId {
        let value = value.unwrap_or_else(|| self.nothing_given(kit, f, env, at));
        let mut rest = rest;
        loop {
            match rest {
                Rest::Then(_, next) => rest = next,
                Rest::Turn(turn, _) => return self.state(kit, turn, env, Some(value), false, at),
                // Sides that jump are not joined.
                Rest::End | Rest::Join(_) => return value,
            }
        }
    }

    /// `break`, or `continue`.
    fn leave(&self, kit: &mut Kit<'_>, env: &Env, rest: &Rest<'_, 'w>, again: bool, at: Span) -> TermId {
        let mut rest = rest;
        loop {
            match rest {
                Rest::Then(_, next) => rest = next,
                Rest::Turn(turn, _) if again => return self.next(kit, turn, env, at),
                Rest::Turn(turn, _) => return self.state(kit, turn, env, None, false, at),
                Rest::End | Rest::Join(_) => return kit.unknown("a jump out of no loop", at),
            }
        }
    }

    fn next(&self, kit: &mut Kit<'_>, turn: &Turn, env: &Env, at: Span) -> TermId {
        let state = self.state(kit, turn, env, None, true, at);
        let this = kit.b.var("self", at);
        kit.b.app(this, state, at)
    }

    /// A name's value, of one that has none yet: `None`.
    fn current(&self, kit: &mut Kit<'_>, name: &str, env: &Env, at: Span) -> TermId {
        match env.contains(name) {
            true => kit.b.var(core(name), at),
            false if name == LAST_RESULT => kit.text("", at),
            false => kit.b.lit(Data::Null, at),
        }
    }

    pub(super) fn state(
        &self,
        kit: &mut Kit<'_>,
        turn: &Turn,
        env: &Env,
        given: Option<TermId>,
        on: bool,
        at: Span,
    ) -> TermId {
        let mut fields: Said = Vec::new();
        for name in &turn.names {
            fields.push((core(name), self.current(kit, name, env, at)));
        }
        if turn.counted {
            let mut index = kit.b.var(AT, at);
            if on {
                let one = kit.b.lit(Num::from(1i64), at);
                index = kit.b.add(Term::Prim(Prim::Add, vec![index, one]), at);
            }
            fields.push((AT.into(), index));
        }
        if turn.returns {
            let given = kit.b.add(Term::List(given.into_iter().collect()), at);
            fields.push((GIVEN.into(), given));
        }
        kit.b.add(Term::Record(fields), at)
    }

    fn join(&self, kit: &mut Kit<'_>, names: &[String], env: &Env, at: Span) -> TermId {
        match names {
            [] => kit.b.lit(Data::Null, at),
            [one] => self.current(kit, one, env, at),
            _ => {
                let mut fields: Said = Vec::new();
                for name in names {
                    fields.push((core(name), self.current(kit, name, env, at)));
                }
                kit.b.add(Term::Record(fields), at)
            }
        }
    }

    /// Binds what was joined.
    pub(super) fn joined(
        &self,
        kit: &mut Kit<'_>,
        names: &[String],
        term: TermId,
        env: &mut Env,
        at: Span,
        said: &mut Said,
    ) {
        match names {
            [] => said.push(("_".into(), term)),
            [one] => said.push((core(one), term)),
            _ => {
                let all = kit.b.fresh("j");
                said.push((all.clone(), term));
                self.fields(kit, names, &all, at, said);
            }
        }
        env.extend(names.iter().cloned());
    }

    pub(super) fn fields(&self, kit: &mut Kit<'_>, names: &[String], of: &Name, at: Span, said: &mut Said) {
        for name in names {
            let of = kit.b.var(of.clone(), at);
            said.push((core(name), kit.b.add(Term::Field(of, core(name)), at)));
        }
    }

    // ---- what is needed ----

    /// Returns true if statements run an agent or have another effect.
    pub(super) fn acts(&self, f: &Frame<'w>, found: &crate::scan::Found<'_>) -> bool {
        found.calls.iter().any(|c| self.is_act(f, c))
    }

    /// Returns the variables that statements change, the hidden ones included: messages of runs, and the last
    /// result.
    pub(super) fn assigned(&self, f: &Frame<'w>, found: &crate::scan::Found<'_>) -> BTreeSet<String> {
        let mut names: BTreeSet<String> =
            found.names().into_iter().filter(|n| !f.fixed.contains_key(n)).collect();
        if f.histories {
            let ran = names.iter().filter(|n| matches!(f.kinds.get(*n), Some(ValueKind::RunResult(_))));
            let said: Vec<String> = ran.map(|n| format!("{n}{MESSAGES}")).collect();
            names.extend(said);
        }
        if self.keeps_last(f) && self.runs_in(f, found) {
            names.insert(LAST_RESULT.into());
        }
        names
    }

    /// Returns true if the last result is needed: the function has no explicit result.
    fn keeps_last(&self, f: &Frame<'w>) -> bool {
        !f.gives || f.depth == 0 && f.may_say_nothing
    }

    /// The names of these that are read after a place, or at the next turn.
    pub(super) fn needed(
        &self,
        f: &Frame<'w>,
        names: &BTreeSet<String>,
        after: u32,
        rest: &Rest<'_, 'w>,
    ) -> Vec<String> {
        let mut turns: Vec<&Turn> = Vec::new();
        let mut joins: Vec<&str> = Vec::new();
        let mut at = rest;
        loop {
            match at {
                Rest::Then(_, next) => at = next,
                Rest::Turn(turn, next) => {
                    turns.push(turn);
                    at = next;
                }
                Rest::Join(names) => {
                    joins.extend(names.iter().map(String::as_str));
                    break;
                }
                Rest::End => break,
            }
        }
        let read = |name: &str| {
            f.reads.iter().any(|(n, at)| {
                *at >= after && (n == name || n.strip_prefix(name).is_some_and(|r| r.starts_with('.')))
            })
        };
        let wanted = |n: &&String| {
            *n == LAST_RESULT
                || read(n)
                || joins.contains(&n.as_str())
                || turns.iter().any(|t| t.names.contains(n))
        };
        names.iter().filter(wanted).cloned().collect()
    }

    // ---- branches ----

    /// A test. `Some` if all that follows is in it.
    fn tests(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        s: &'w StmtIf,
        Following { after, rest }: Following<'_, 'w>,
        said: &mut Said,
    ) -> Option<TermId> {
        let mut sides: Vec<Side<'w>> = vec![(Some(&s.test), &s.body)];
        sides.extend(s.elif_else_clauses.iter().map(|c| (c.test.as_ref(), &c.body[..])));
        let found: Vec<_> = sides.iter().map(|(_, body)| scan(body)).collect();
        if found.iter().any(|f| f.jumps) || after.is_empty() && !matches!(rest, Rest::Join(_)) {
            let then = Rest::Then(after, rest);
            let rest = if after.is_empty() { rest } else { &then };
            return Some(self.sides(kit, f, env, &sides, rest));
        }
        let acts = found.iter().any(|x| self.acts(f, x))
            || sides.iter().filter_map(|(t, _)| *t).any(|t| self.acts(f, &scan_expr(t)));
        let names: BTreeSet<String> = found.iter().flat_map(|x| self.assigned(f, x)).collect();
        let names = self.needed(f, &names, s.range.end().into(), rest);
        if names.is_empty() && !acts {
            return None;
        }
        let at = self.at(f, s);
        let term = self.sides(kit, f, env, &sides, &Rest::Join(&names));
        self.joined(kit, &names, term, env, at, said);
        None
    }

    fn sides(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &Env,
        sides: &[Side<'w>],
        rest: &Rest<'_, 'w>,
    ) -> TermId {
        let mut tests: Vec<(TermId, TermId, Span)> = Vec::new();
        let mut last = None;
        for (test, body) in sides {
            match test {
                Some(test) => {
                    let at = self.at(f, *test);
                    let test = self.test(kit, f, &mut env.clone(), test);
                    let body = self.block(kit, f, env.clone(), body, rest);
                    tests.push((test, body, at));
                }
                None => last = Some(self.block(kit, f, env.clone(), body, rest)),
            }
        }
        let mut term = last.unwrap_or_else(|| self.block(kit, f, env.clone(), &[], rest));
        for (test, body, at) in tests.into_iter().rev() {
            term = kit.b.add(Term::If(test, body, term, IfSugar::Plain), at);
        }
        term
    }

    fn tries(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        mut env: Env,
        s: &'w StmtTry,
        Following { after, rest }: Following<'_, 'w>,
        said: &mut Said,
    ) -> TermId {
        let at = self.at(f, s);
        let handlers: Vec<_> = s.handlers.iter().map(|ExceptHandler::ExceptHandler(h)| h).collect();
        let last = Rest::Then(after, rest);
        let finally = Rest::Then(&s.finalbody, &last);
        let orelse = Rest::Then(&s.orelse, &finally);
        // Guardrails are no part of the term: what follows when they refuse is never reached.
        let only_guardrails =
            handlers.iter().all(|h| h.type_.as_deref().is_some_and(|t| self.is_guardrail_error(f, t)));
        let body = scan(&s.body);
        let found: Vec<_> = handlers.iter().map(|h| scan(&h.body)).collect();
        if only_guardrails || !self.acts(f, &body) {
            return self.block(kit, f, env, &s.body, &orelse);
        }
        if let ([handler], false, [caught]) = (&handlers[..], body.jumps, &found[..])
            && !caught.jumps
        {
            let mut names = self.assigned(f, &body);
            names.extend(self.assigned(f, caught));
            let names = self.needed(f, &names, s.body.last().map_or(0, |l| l.range().end().into()), rest);
            let join = Rest::Join(&names);
            let tried = self.block(kit, f, env.clone(), &s.body, &join);
            let term = (tried, handler.name.as_ref(), &handler.body[..]);
            let term = self.caught(kit, f, env.clone(), term, &join, at);
            self.joined(kit, &names, term, &mut env, at, said);
            return self.block(kit, f, env, &[], &orelse);
        }
        // Nothing follows what is tried: it and what is done otherwise are two ends of the function.
        if let ([handler], true, true, false) = (
            &handlers[..],
            never_ends(&s.body),
            s.orelse.is_empty() && s.finalbody.is_empty(),
            body.continues,
        ) {
            let tried = self.block(kit, f, env.clone(), &s.body, rest);
            let term = (tried, handler.name.as_ref(), &handler.body[..]);
            return self.caught(kit, f, env, term, &Rest::Then(after, rest), at);
        }
        let message = "the exception handlers here are not compiled";
        let d = match found.iter().any(|c| self.runs_in(f, c)) {
            true => frontend_kit::emit::undecided(codes::NOT_COMPILED, message, at),
            false => diagnostics::Diagnostic::info(codes::NOT_COMPILED, message, at),
        };
        kit.out.push(d);
        self.block(kit, f, env, &s.body, &orelse)
    }

    /// Lowers a `try` with its handlers.
    fn caught(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        mut env: Env,
        (body, name, handler): (TermId, Option<&Identifier>, &'w [Stmt]),
        rest: &Rest<'_, 'w>,
        at: Span,
    ) -> TermId {
        let message: Name = name.map_or("m".into(), |n| core(n));
        env.extend(name.map(|n| n.to_string()));
        let handler = self.block(kit, f, env, handler, rest);
        let label = kit.b.lit(Data::list(["U", "S"].map(Data::str).to_vec()), at);
        let term = Term::Try { label, body, catches: Catches::All, name: message, handler };
        kit.b.add(term, at)
    }

    /// Gives names to a value.
    pub(super) fn take(
        &self,
        kit: &mut Kit<'_>,
        target: &Expr,
        value: TermId,
        env: &mut Env,
        at: Span,
        said: &mut Said,
    ) {
        let items = match target {
            Expr::Tuple(t) => &t.elts,
            Expr::List(t) => &t.elts,
            _ => {
                let Some(name) = dotted(target) else {
                    said.push(("_".into(), value));
                    return;
                };
                said.push((core(&name), value));
                env.insert(name);
                return;
            }
        };
        let all = kit.b.fresh("t");
        said.push((all.clone(), value));
        for (i, item) in items.iter().enumerate() {
            let (of, index) = (kit.b.var(all.clone(), at), kit.b.lit(Num::from(i as i64), at));
            let value = kit.b.add(Term::Index(of, index), at);
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.take(kit, item, value, env, at, said));
        }
    }

    // ---- simple statements ----

    fn assign(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        target: &'w Expr,
        value: &'w Expr,
        said: &mut Said,
    ) {
        let at = self.at(f, target);
        let name = dotted(target);
        if name.as_ref().is_some_and(|n| f.fixed.contains_key(n)) {
            return;
        }
        let runs = self.runs_in(f, &scan_expr(value));
        if let (Some(name), Expr::Call(call), true) = (&name, awaited(value), f.histories)
            && self.run_at(f, call).is_some()
        {
            self.heard(kit, f, env, call, name, said);
            return;
        }
        if let Expr::Subscript(s) = target {
            let Some(of) = dotted(&s.value).filter(|n| env.contains(n)) else {
                self.act(kit, f, env, value, said);
                return;
            };
            let new = self.value(kit, f, env, value);
            let old = kit.b.var(core(&of), at);
            let term = match &*s.slice {
                Expr::StringLiteral(key) => kit.b.add(Term::With(old, key.value.to_str().into(), new), at),
                _ => self.not_known(kit, f, target),
            };
            said.push((core(&of), term));
        } else {
            let term = self.value(kit, f, env, value);
            self.take(kit, target, term, env, at, said);
        }
        if let (true, Some((last, _))) = (runs && self.keeps_last(f), said.last().cloned()) {
            let name = name.map_or(last, |n| core(&n));
            let last = kit.b.var(name, at);
            said.push((LAST_RESULT.into(), last));
            env.insert(LAST_RESULT.into());
        }
    }

    /// An expression for what it does.
    fn act(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, expr: &'w Expr, said: &mut Said) {
        let at = self.at(f, expr);
        if let Some((name, method, item)) = grown(expr)
            && env.contains(&name)
        {
            let item = self.value(kit, f, env, item);
            let old = kit.b.var(core(&name), at);
            let prim = if method == "append" { Prim::Append } else { Prim::Add };
            said.push((core(&name), kit.b.add(Term::Prim(prim, vec![old, item]), at)));
            return;
        }
        let found = scan_expr(expr);
        if !self.acts(f, &found) {
            return;
        }
        let runs = self.runs_in(f, &found);
        // What is shown of a call is of no use: the call is.
        let expr = match awaited(expr) {
            Expr::Call(call) if called(call) == "print" && call.arguments.args.len() == 1 => {
                &call.arguments.args[0]
            }
            other => other,
        };
        let term = self.value(kit, f, env, expr);
        match runs && self.keeps_last(f) {
            true => {
                said.push((LAST_RESULT.into(), term));
                env.insert(LAST_RESULT.into());
            }
            false => said.push(("_".into(), term)),
        }
    }

    /// Returns true for the first `input()` and remembers it.
    pub(super) fn asks_first(env: &mut Env) -> bool {
        env.remove(ASKED)
    }
}
