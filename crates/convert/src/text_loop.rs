//! Agents that converse by text, found again in terms.
//!
//! | term | what it is |
//! |---|---|
//! | `fix[n] (λself. λx. let t = llm p θ x in case t of {…, final a ⇒ a})` | one call of each reply is carried out |
//! | ``fix[n] (λself. λx. let r = fresh (send[system] p; send x; (fix[∞] …) {reply: recv[θ], said: x}) in case r.next of {…})`` | all of them are |
//!
//! Entry point: [`text_loop`].
//!
//! Invariant: what is found is the whole term; a loop with anything else in it is none of these.

use core_ir::{
    Abs, Bound, Branch, Code, Data, ModelParams, NEXT, NOTHING_WAITS, Name, Prim, Recv, Role, Term, TermId,
    ToolId, Type,
};
use diagnostics::Span;

/// A loop on one text, in which results join it: an agent that converses by text.
pub(crate) struct TextLoop<'c> {
    pub bound: Bound,
    /// The instructions, if there are any.
    pub prompt: Option<TermId>,
    pub params: &'c ModelParams,
    /// True if one call of a reply is carried out, though it may hold several.
    pub one_action: bool,
    pub actions: Vec<Action>,
}

/// A call that its model may choose.
pub(crate) struct Action {
    pub id: ToolId,
    pub kind: ActionKind,
    pub at: Span,
}

/// Effect of the call.
pub(crate) enum ActionKind {
    Call,
    /// Its result is the answer.
    Finish,
    Ask(TermId),
    HandOff(TermId),
    /// It is an error.
    End,
}

/// The loop that a function is, if it is one on a text.
pub(crate) fn text_loop(code: &Code, f: TermId) -> Option<TextLoop<'_>> {
    let Term::Fix { bound, body, .. } = code.term(f) else { return None };
    let Term::Abs(Abs { param: this, body, .. }) = code.term(*body) else { return None };
    let Term::Abs(Abs { param: x, body, .. }) = code.term(*body) else { return None };
    if this == x {
        return None;
    }
    let see = See { code };
    let (asked, case) = match code.term(*body) {
        Term::Let { bindings, body, .. } => match (&bindings[..], code.term(*body)) {
            ([(t, asked)], Term::Case { scrutinee, branches, default: None }) if t != x && t != this => {
                match code.term(*scrutinee) {
                    Term::Var(n, _) if n == t => (*asked, branches),
                    Term::Field(of, next) if see.is_var(*of, t) && &**next == NEXT => {
                        let found = see.several(*asked, branches, [this, x, t])?;
                        return Some(TextLoop { bound: *bound, ..found });
                    }
                    _ => return None,
                }
            }
            _ => return None,
        },
        Term::Case { scrutinee, branches, default: None } => (*scrutinee, branches),
        _ => return None,
    };
    Some(TextLoop { bound: *bound, ..see.one(asked, case, this, x)? })
}

struct See<'c> {
    code: &'c Code,
}

impl<'c> See<'c> {
    fn is_var(&self, id: TermId, name: &Name) -> bool {
        matches!(self.code.term(id), Term::Var(n, _) if n == name)
    }

    fn is_field(&self, id: TermId, of: &Name, field: &str) -> bool {
        matches!(self.code.term(id), Term::Field(e, f) if &**f == field && self.is_var(*e, of))
    }

    fn calls_tools_in_text(&self, params: &ModelParams) -> bool {
        !params.tools.is_empty() && matches!(params.result, None | Some(Type::Str))
    }

    /// `str e` as `e`.
    fn of_text(&self, id: TermId) -> Option<TermId> {
        match self.code.term(id) {
            Term::Prim(Prim::ToStr, of) => of.first().copied(),
            _ => None,
        }
    }

    /// `{first: e, second: e'}` as `e` and `e'`.
    fn two(&self, id: TermId, first: &str, second: &str) -> Option<(TermId, TermId)> {
        let Term::Record(fields) = self.code.term(id) else { return None };
        let [(a, x), (b, y)] = &fields[..] else { return None };
        (&**a == first && &**b == second).then_some((*x, *y))
    }

    /// A tool that is given `a`, or a helper that is asked its input.
    fn answered(&self, answer: TermId, id: ToolId, a: &Name) -> Option<ActionKind> {
        let Term::App(f, given) = self.code.term(answer) else { return None };
        match (self.code.term(*f), self.code.term(*given)) {
            (Term::Tool(t), _) if t == &id && self.is_var(*given, a) => Some(ActionKind::Call),
            (_, Term::Field(of, field)) if self.is_var(*of, a) && &**field == "input" => {
                Some(ActionKind::Ask(*f))
            }
            _ => None,
        }
    }

    /// Returns the original text if a text appends a marked result to it.
    fn joined(&self, id: TermId, tool: &str, result: &Name) -> Option<TermId> {
        let Term::Prim(Prim::Format, parts) = self.code.term(id) else { return None };
        let [all, said, o] = &parts[..] else { return None };
        let marked = format!("\n[{tool}] ");
        let joins = self.is_var(*o, result)
            && matches!(self.code.term(*said), Term::Lit(Data::Str(s)) if **s == *marked);
        joins.then_some(*all)
    }

    /// Returns the effect of a function applied to a value that `is_text` recognizes.
    fn over(&self, body: TermId, is_text: impl Fn(TermId) -> bool) -> Option<ActionKind> {
        match self.code.term(body) {
            Term::App(to, all) if is_text(*all) => Some(ActionKind::HandOff(*to)),
            Term::Fail(all) if is_text(*all) => Some(ActionKind::End),
            _ => None,
        }
    }

    fn one(&self, asked: TermId, case: &[Branch], this: &Name, x: &Name) -> Option<TextLoop<'c>> {
        let code = self.code;
        let Term::App(model, on) = code.term(asked) else { return None };
        let Term::Llm(prompt, params) = code.term(*model) else { return None };
        if !self.is_var(*on, x) || !self.calls_tools_in_text(params) {
            return None;
        }
        let mut actions = Vec::new();
        for id in &params.tools {
            let tool = &code.tool(*id).name;
            let branch = case.iter().find(|b| b.tag == *tool)?;
            let does = match (&branch.binder, code.term(branch.body)) {
                (None, _) => self.over(branch.body, |all| self.is_var(all, x))?,
                (Some(a), Term::Prim(..)) => match self.answered(self.of_text(branch.body)?, *id, a)? {
                    ActionKind::Call => ActionKind::Finish,
                    _ => return None,
                },
                (Some(a), Term::Let { bindings, body, .. }) => {
                    let [(o, answer)] = &bindings[..] else { return None };
                    let Term::App(again, now) = code.term(*body) else { return None };
                    let before = self.joined(*now, tool, o)?;
                    if !self.is_var(*again, this) || !self.is_var(before, x) {
                        return None;
                    }
                    self.answered(*answer, *id, a)?
                }
                _ => return None,
            };
            actions.push(Action { id: *id, kind: does, at: code.span(branch.body) });
        }
        let last = case.iter().find(|b| &*b.tag == "final")?;
        let answers = last.binder.as_ref().is_some_and(|a| self.is_var(last.body, a));
        (answers && case.len() == actions.len() + 1).then_some(TextLoop {
            bound: Bound::Infinite,
            prompt: Some(*prompt),
            params,
            one_action: true,
            actions,
        })
    }

    /// All calls of a reply are carried out, then the turn goes on as the first says that decides it.
    fn several(&self, asked: TermId, after: &'c [Branch], [this, x, r]: [&Name; 3]) -> Option<TextLoop<'c>> {
        let code = self.code;
        let Term::Fresh(conversation) = code.term(asked) else { return None };
        let Term::Let { bindings, body, .. } = code.term(*conversation) else { return None };
        let (prompt, said) = match &bindings[..] {
            [(_, system), (_, said)] => match code.term(*system) {
                Term::Send(Role::System, prompt) => (Some(*prompt), *said),
                _ => return None,
            },
            [(_, said)] => (None, *said),
            _ => return None,
        };
        let Term::App(fix, given) = code.term(*body) else { return None };
        let (reply, all) = self.two(*given, "reply", "said")?;
        let Term::Recv(Recv::Data(params)) = code.term(reply) else { return None };
        let sent = matches!(code.term(said), Term::Send(Role::User, text) if self.is_var(*text, x));
        if !sent
            || !self.is_var(all, x)
            || params.waiting
            || !self.calls_tools_in_text(params)
            || !code.receives_calls(*fix)
        {
            return None;
        }
        let Term::Fix { bound: Bound::Infinite, body, .. } = code.term(*fix) else { return None };
        let Term::Abs(Abs { param: more, body, .. }) = code.term(*body) else { return None };
        let Term::Abs(Abs { param: t, body, .. }) = code.term(*body) else { return None };
        let Term::Case { scrutinee, branches, default: None } = code.term(*body) else { return None };
        if !self.is_field(*scrutinee, t, "reply") {
            return None;
        }
        let called = Called { see: self, more, params };
        let is_outcome = |next: &str, id: TermId, said: &dyn Fn(TermId) -> bool| {
            self.two(id, NEXT, "said").is_some_and(|(tag, all)| {
                matches!(code.term(tag), Term::Tag(n, None) if &**n == next) && said(all)
            })
        };
        let (mut actions, mut deciding) = (Vec::new(), 0);
        for id in &params.tools {
            let tool = &code.tool(*id).name;
            let branch = branches.iter().find(|b| b.tag == *tool)?;
            let Term::Let { bindings, body, .. } = code.term(branch.body) else { return None };
            let then = after.iter().find(|b| b.tag == *tool);
            let does = match (&branch.binder, &bindings[..], then) {
                (Some(a), [(o, answer)], None) => {
                    let before = self.joined(called.rest(*body)?, tool, o)?;
                    if !self.is_field(before, t, "said") {
                        return None;
                    }
                    self.answered(*answer, *id, a)?
                }
                (Some(a), [(o, answer), (_, rest)], Some(then)) => {
                    let told = called.rest(*rest).is_some_and(|all| self.is_field(all, t, "said"));
                    let ends = is_outcome(tool, *body, &|all| self.is_var(all, o));
                    if !told || !ends || !self.is_field(then.body, r, "said") {
                        return None;
                    }
                    match self.answered(self.of_text(*answer)?, *id, a)? {
                        ActionKind::Call => ActionKind::Finish,
                        _ => return None,
                    }
                }
                (None, [(o, rest)], Some(then)) => {
                    let told = called.rest(*rest).is_some_and(|all| self.is_field(all, t, "said"));
                    if !told || !is_outcome(tool, *body, &|all| self.is_field(all, o, "said")) {
                        return None;
                    }
                    self.over(then.body, |all| self.is_field(all, r, "said"))?
                }
                _ => return None,
            };
            deciding += usize::from(then.is_some());
            actions.push(Action { id: *id, kind: does, at: code.span(branch.body) });
        }
        let find = |branches: &'c [Branch], tag: &str| branches.iter().find(|b| &*b.tag == tag);
        let answer = find(branches, "final")?;
        let answers = answer
            .binder
            .as_ref()
            .is_some_and(|a| is_outcome("final", answer.body, &|all| self.is_var(all, a)));
        let none = find(branches, NOTHING_WAITS)?;
        let goes_on = is_outcome(NOTHING_WAITS, none.body, &|all| self.is_field(all, t, "said"));
        let ended = self.is_field(find(after, "final")?.body, r, "said");
        let again = matches!(
            code.term(find(after, NOTHING_WAITS)?.body),
            Term::App(f, all) if self.is_var(*f, this) && self.is_field(*all, r, "said")
        );
        let whole = branches.len() == actions.len() + 2 && after.len() == deciding + 2;
        (answers && goes_on && ended && again && whole).then_some(TextLoop {
            bound: Bound::Infinite,
            prompt,
            params,
            one_action: false,
            actions,
        })
    }
}

/// The loop over the calls of a reply.
struct Called<'a, 'c> {
    see: &'a See<'c>,
    more: &'a Name,
    params: &'a ModelParams,
}

impl Called<'_, '_> {
    /// The text that the other calls of a reply are carried out with, in `more {reply: recv[θ, waiting],
    /// said: e}`.
    fn rest(&self, id: TermId) -> Option<TermId> {
        let code = self.see.code;
        let Term::App(more, given) = code.term(id) else { return None };
        let (reply, said) = self.see.two(*given, "reply", "said")?;
        let Term::Recv(Recv::Data(waiting)) = code.term(reply) else { return None };
        let params = self.params;
        let next = ModelParams {
            model: params.model.clone(),
            tools: params.tools.clone(),
            repair: params.repair,
            waiting: true,
            ..ModelParams::default()
        };
        (self.see.is_var(*more, self.more) && **waiting == next).then_some(said)
    }
}
