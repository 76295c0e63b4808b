//! Turns of an agent without a conversation: each request is one text, to which results are appended.
//!
//! | source | term |
//! |---|---|
//! | a turn | `let r = fresh (send[system] p; send x; calls) in case r.next of {…}` |
//! | the calls of a reply | `(fix[∞] (λmore. λt. case t.reply of {…})) {reply: recv[θ], said: x}`, see [`crate::calls`] |
//! | what is called and answers | `f a ⇒ let o = e in more {reply: recv[θ, waiting], said: "{t.said}\n[f] {o}"}` |
//! | a call that decides what follows | ``f a ⇒ let o = more {…} in {next: `f, said: o.said}`` |
//! | no call is left | ``none ⇒ {next: `none, said: t.said}``, and then `self r.said` |
//! | a reply without a call | ``final a ⇒ {next: `final, said: a}``, and then `r.said` |
//! | one action at a time | `let t = llm p θ x in case t of {f a ⇒ let o = e in self "{x}\n[f] {o}", final a ⇒ a}` |
//!
//! Invariant: a turn is one reply, however many calls it holds. Of calls that decide what follows the first
//! does, after the others.

use crate::calls;
use crate::emit::Template;
use core_ir::{
    Bound, BoundOrigin, Branch, Builder, Data, ModelParams, NEXT, NOTHING_WAITS, Name, Prim, Recv, Role,
    Term, TermId,
};
use diagnostics::Span;
use std::sync::Arc;

/// Calls of a reply that are executed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// All of them, in their order.
    All,
    /// The first: an agent that takes one action at a time.
    First,
}

/// Outcome of a call.
pub enum Outcome {
    /// Appends the result of a term about the arguments to the text.
    Joins(TermId),
    /// Answers with that result, as a text.
    Answers(TermId),
    /// Passes control to a function of the text.
    Over(TermId),
    /// Fails with the text.
    Fails,
}

/// A call that the model may choose.
pub struct Call {
    /// Name of the tool.
    pub name: Name,
    /// Place in the list.
    pub at: Span,
    /// Result of the call.
    pub comes: Outcome,
}

/// The variables of a turn.
pub struct Names {
    /// The loop itself.
    pub this: Name,
    /// The input of the turn.
    pub x: Name,
    /// The arguments of a call, and the answer.
    pub a: Name,
    /// Reply, or the values known while its calls are executed.
    pub t: Name,
    /// The results so far.
    pub o: Name,
    /// Record that the turn returns.
    pub r: Name,
    /// Remaining calls.
    pub more: Name,
}

impl Names {
    /// Returns readable names, for terms in which no other variable can have them.
    pub fn plain() -> Names {
        let name = |n: &str| Name::from(n);
        Names {
            this: name("self"),
            x: name("x"),
            a: name("a"),
            t: name("t"),
            o: name("o"),
            r: name("r"),
            more: name("more"),
        }
    }

    /// Returns fresh names.
    pub fn fresh(b: &mut Builder) -> Names {
        Names {
            this: b.fresh("again"),
            x: b.fresh("x"),
            a: b.fresh("call"),
            t: b.fresh("t"),
            o: b.fresh("seen"),
            r: b.fresh("turn"),
            more: b.fresh("more"),
        }
    }
}

/// A model call in each turn.
pub struct TurnRequest {
    /// System prompt.
    pub prompt: TermId,
    /// Model and its parameters.
    pub params: ModelParams,
    /// Term for its request, in place of `x`.
    pub request: Option<TermId>,
    /// Tools that it may call.
    pub calls: Vec<Call>,
    /// Calls of one reply that are carried out.
    pub carried: Carried,
    /// Place of the agent.
    pub head: Span,
    /// Place that names the model.
    pub model_at: Span,
    /// Place that lists the tools.
    pub calls_at: Span,
}

impl TurnRequest {
    /// Returns the body of `λself. λx. …`.
    pub fn turn(self, b: &mut Builder, names: &Names) -> Turned {
        match self.carried == Carried::All && calls::several(&self.params) {
            true => Turn { b, names }.of_several(self),
            false => Turned { body: Turn { b, names }.of_one(self), conversation: None },
        }
    }
}

/// The term of a turn.
pub struct Turned {
    /// The body of `λself. λx. …`.
    pub body: TermId,
    /// Term of its conversation, if it is one.
    pub conversation: Option<TermId>,
}

/// The field that holds the text.
const SAID: &str = "said";
/// The field that holds the reply, or the next call of it.
const REPLY: &str = "reply";

struct Turn<'a> {
    b: &'a mut Builder,
    names: &'a Names,
}

impl Turn<'_> {
    fn var(&mut self, name: &Name, at: Span) -> TermId {
        self.b.var(name.clone(), at)
    }

    fn field(&mut self, of: &Name, field: &str, at: Span) -> TermId {
        let of = self.var(of, at);
        self.b.add(Term::Field(of, field.into()), at)
    }

    fn bound_to(&mut self, name: &Name, value: TermId, body: TermId, at: Span) -> TermId {
        self.b.let_in(vec![(name.clone(), value)], body, at)
    }

    /// `"{text}\n[name] {o}"`.
    fn joined(&mut self, text: TermId, name: &Name, at: Span) -> TermId {
        let o = self.var(&self.names.o, at);
        let mut all = Template::new(at);
        all.term(text).text(&format!("\n[{name}] ")).term(o);
        all.build(self.b)
    }

    fn as_text(&mut self, value: TermId, at: Span) -> TermId {
        self.b.add(Term::Prim(Prim::ToStr, vec![value]), at)
    }

    /// Lowers a turn that executes one call.
    fn of_one(&mut self, asked: TurnRequest) -> TermId {
        let Names { this, x, a, t, o, .. } = self.names;
        let mut branches = Vec::with_capacity(asked.calls.len() + 1);
        for Call { name, at, comes } in asked.calls {
            let (binder, body) = match comes {
                Outcome::Joins(answer) => {
                    let all = self.var(x, at);
                    let all = self.joined(all, &name, at);
                    let again = self.var(this, at);
                    let again = self.b.app(again, all, at);
                    (Some(a.clone()), self.bound_to(o, answer, again, at))
                }
                Outcome::Answers(answer) => (Some(a.clone()), self.as_text(answer, at)),
                Outcome::Over(function) => {
                    let all = self.var(x, at);
                    (None, self.b.app(function, all, at))
                }
                Outcome::Fails => {
                    let all = self.var(x, at);
                    (None, self.b.add(Term::Fail(all), at))
                }
            };
            branches.push(Branch { tag: name, binder, body });
        }
        let answer = self.var(a, asked.calls_at);
        branches.push(Branch { tag: "final".into(), binder: Some(a.clone()), body: answer });
        let model = self.b.add(Term::Llm(asked.prompt, Arc::new(asked.params)), asked.model_at);
        let request = match asked.request {
            Some(request) => request,
            None => self.var(x, asked.model_at),
        };
        let reply = self.b.app(model, request, asked.model_at);
        let scrutinee = self.var(t, asked.calls_at);
        let case = self.b.add(Term::Case { scrutinee, branches, default: None }, asked.calls_at);
        self.bound_to(t, reply, case, asked.head)
    }

    /// Lowers a turn that executes every call of the reply.
    fn of_several(&mut self, asked: TurnRequest) -> Turned {
        let Names { this, x, a, t, o, r, more } = self.names;
        let TurnRequest { prompt, params, request, calls, head, model_at, calls_at, .. } = asked;
        let waiting = Arc::new(calls::waiting(&params));
        // What is done with each call, and what follows the turn.
        let (mut during, mut after) = (Vec::new(), Vec::new());
        for Call { name, at, comes } in calls {
            let (binder, did, then) = match comes {
                Outcome::Joins(answer) => {
                    let all = self.field(t, SAID, at);
                    let all = self.joined(all, &name, at);
                    let rest = self.rest(&waiting, all, at);
                    let did = self.bound_to(o, answer, rest, at);
                    during.push(Branch { tag: name, binder: Some(a.clone()), body: did });
                    continue;
                }
                Outcome::Answers(answer) => {
                    let answer = self.as_text(answer, at);
                    let all = self.field(t, SAID, at);
                    let rest = self.rest(&waiting, all, at);
                    let said = self.var(o, at);
                    let did = self.outcome(&name, said, at);
                    let did = self.b.let_in(vec![(o.clone(), answer), ("_".into(), rest)], did, at);
                    (Some(a.clone()), did, self.field(r, SAID, at))
                }
                Outcome::Over(function) => {
                    let all = self.field(r, SAID, at);
                    (None, self.decided(&waiting, &name, at), self.b.app(function, all, at))
                }
                Outcome::Fails => {
                    let all = self.field(r, SAID, at);
                    (None, self.decided(&waiting, &name, at), self.b.add(Term::Fail(all), at))
                }
            };
            during.push(Branch { tag: name.clone(), binder, body: did });
            after.push(Branch { tag: name, binder: None, body: then });
        }
        let answer = self.var(a, calls_at);
        let body = self.outcome("final", answer, calls_at);
        during.push(Branch { tag: "final".into(), binder: Some(a.clone()), body });
        let all = self.field(t, SAID, calls_at);
        let body = self.outcome(NOTHING_WAITS, all, calls_at);
        during.push(Branch { tag: NOTHING_WAITS.into(), binder: None, body });
        let reply = self.field(t, REPLY, calls_at);
        let case = self.b.add(Term::Case { scrutinee: reply, branches: during, default: None }, calls_at);
        let step = self.b.abs(t.clone(), None, case, head);
        let step = self.b.abs(more.clone(), None, step, head);
        let origin = Some(BoundOrigin::from(calls::AS_MANY));
        let fix = self.b.add(Term::Fix { bound: Bound::Infinite, origin, body: step }, head);
        let reply = self.b.add(Term::Recv(Recv::Data(Arc::new(params))), model_at);
        let all = self.var(x, head);
        let given = self.b.add(Term::Record(vec![(REPLY.into(), reply), (SAID.into(), all)]), head);
        let carried_out = self.b.app(fix, given, head);
        let mut said: Vec<(Name, TermId)> = Vec::new();
        if !matches!(self.b.term(prompt), Term::Lit(Data::Str(own)) if own.is_empty()) {
            let at = self.b.span(prompt);
            said.push(("_".into(), self.b.add(Term::Send(Role::System, prompt), at)));
        }
        let request = match request {
            Some(request) => request,
            None => self.var(x, model_at),
        };
        said.push(("_".into(), self.b.add(Term::Send(Role::User, request), model_at)));
        let asked = self.b.let_in(said, carried_out, head);
        let conversation = self.b.add(Term::Fresh(asked), head);
        let answer = self.field(r, SAID, calls_at);
        after.push(Branch { tag: "final".into(), binder: None, body: answer });
        let all = self.field(r, SAID, calls_at);
        let again = self.var(this, calls_at);
        let again = self.b.app(again, all, calls_at);
        after.push(Branch { tag: NOTHING_WAITS.into(), binder: None, body: again });
        let next = self.field(r, NEXT, calls_at);
        let case = self.b.add(Term::Case { scrutinee: next, branches: after, default: None }, calls_at);
        Turned { body: self.bound_to(r, conversation, case, head), conversation: Some(conversation) }
    }

    /// Lowers the remaining calls of the reply, given the results so far.
    fn rest(&mut self, waiting: &Arc<ModelParams>, said: TermId, at: Span) -> TermId {
        let next = self.b.add(Term::Recv(Recv::Data(waiting.clone())), at);
        let given = self.b.add(Term::Record(vec![(REPLY.into(), next), (SAID.into(), said)]), at);
        let more = self.var(&self.names.more, at);
        self.b.app(more, given, at)
    }

    /// Lowers a call that decides the outcome once the others are executed.
    fn decided(&mut self, waiting: &Arc<ModelParams>, name: &str, at: Span) -> TermId {
        let o = &self.names.o;
        let all = self.field(&self.names.t, SAID, at);
        let rest = self.rest(waiting, all, at);
        let said = self.field(o, SAID, at);
        let body = self.outcome(name, said, at);
        self.bound_to(o, rest, body, at)
    }

    /// Builds the record of a reply's outcome: the next step and the text.
    fn outcome(&mut self, next: &str, said: TermId, at: Span) -> TermId {
        let next = self.b.add(Term::Tag(next.into(), None), at);
        self.b.add(Term::Record(vec![(NEXT.into(), next), (SAID.into(), said)]), at)
    }
}
