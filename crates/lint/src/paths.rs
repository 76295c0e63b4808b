//! Ways through the body of a fixpoint: which of them return without calling `self`.
//!
//! Source: seed 000 §5.4 (L004), `docs/calculus.md` §4.1.

use core_ir::{Abs, AbsSugar, Bound, BoundOrigin, Code, NEXT, Recv, Slot, Term, TermId};

/// A fixpoint of a term.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The fixpoint.
    pub fix: TermId,
    /// Its bound.
    pub bound: Bound,
    /// Origin of the bound if it is not written.
    pub origin: Option<BoundOrigin>,
    /// Ways in which the body can return without calling itself. `None` if the body is not a function that
    /// can be analyzed.
    pub exits: Option<Exits>,
    /// The dispatch that decides how a turn ends, if there is one: the first `case` or `if` on the way.
    pub dispatch: Option<TermId>,
}

impl Loop {
    /// Returns true if the source states a bound, also by a placeholder. A framework's default is not stated,
    /// nor is the absence of one.
    pub fn is_stated(&self) -> bool {
        match self.bound {
            Bound::Finite(_) => self.origin.as_ref().is_none_or(|o| matches!(o, BoundOrigin::Repeated(_))),
            Bound::Infinite => self.origin.as_ref().is_some_and(|o| !matches!(o, BoundOrigin::Unlimited(_))),
        }
    }

    /// Returns true if the loop is endless: it is reachable, no bound is stated, and every path through it
    /// iterates again.
    pub fn is_endless(&self) -> bool {
        self.bound != Bound::Finite(0) && !self.is_stated() && self.exits.is_some_and(Exits::is_empty)
    }
}

/// The kinds of ways that return without calling `self`.
///
/// A way may depend on the model ending the conversation by itself (the `final` branch of a model
/// that was offered tools), and on a test of the model's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exits(u8);

const FINAL: u8 = 1;
const TEXT: u8 = 2;

impl Exits {
    const NONE: Exits = Exits(0);
    /// One way that depends on nothing.
    const PLAIN: Exits = Exits(1);

    /// One way with these marks.
    fn way(marks: u8) -> Exits {
        Exits(1 << marks)
    }

    fn or(self, other: Exits) -> Exits {
        Exits(self.0 | other.0)
    }

    /// Every way of one followed by every way of the other.
    fn then(self, other: Exits) -> Exits {
        let mut all = 0;
        for a in (0..4u8).filter(|a| self.0 & (1 << a) != 0) {
            for b in (0..4u8).filter(|b| other.0 & (1 << b) != 0) {
                all |= 1 << (a | b);
            }
        }
        Exits(all)
    }

    /// Returns true if there are no exits.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn all(self, mark: u8) -> bool {
        self.0 != 0 && (0..4u8).all(|m| self.0 & (1 << m) == 0 || m & mark != 0)
    }

    /// Returns true if there are ways, and all of them need the model to end the conversation by itself.
    pub fn only_by_final_reply(self) -> bool {
        self.all(FINAL)
    }

    /// Returns true if there are ways, and all of them depend on a test of the model's text.
    pub fn only_by_text(self) -> bool {
        self.all(TEXT)
    }
}

/// The fixpoints of a term, inner ones first.
pub fn loops(code: &Code) -> Vec<Loop> {
    let mut loops = Vec::new();
    for (fix, term) in code.iter() {
        let Term::Fix { bound, origin, body } = term else { continue };
        // It ends with the calls of a reply, however many there are.
        if code.receives_calls(fix) {
            continue;
        }
        let exits = turn(code, *body).map(|turn| {
            let mut walk = Walk { code, this: Some(turn.this), locals: turn.locals };
            walk.run(turn.body)
        });
        let dispatch = turn(code, *body).and_then(|t| dispatch(code, t.body));
        loops.push(Loop { fix, bound: *bound, origin: origin.clone(), exits, dispatch });
    }
    loops
}

/// One turn of a fixpoint: the body of `λself. λx. body`.
pub(super) struct LoopBody {
    pub body: TermId,
    /// Slot of `self` in the body.
    pub this: Slot,
    /// Values of its local variables.
    locals: Vec<Binding>,
}

/// The turn that a fixpoint's function makes.
pub(super) fn turn(code: &Code, function: TermId) -> Option<LoopBody> {
    let Term::Abs(outer) = code.term(function) else { return None };
    match code.term(outer.body) {
        Term::Abs(inner) if inner.sugar == AbsSugar::Plain => {
            let index = inner.captures.iter().position(|c| *c == Slot::Local(0));
            // A body that never mentions `self` captures nothing; then no variable is it.
            let this = Slot::Captured(index.map_or(u32::MAX, |i| i as u32));
            Some(LoopBody { body: inner.body, this, locals: vec![Binding::Other] })
        }
        _ => None,
    }
}

/// The first `case` or `if` in the last position.
fn dispatch(code: &Code, mut at: TermId) -> Option<TermId> {
    loop {
        match code.term(at) {
            Term::Case { .. } | Term::If(..) => return Some(at),
            Term::Let { body, .. } => at = *body,
            Term::Guard { term, .. } => at = *term,
            Term::Mem(_, e) | Term::Check(_, _, e) => at = *e,
            _ => return None,
        }
    }
}

/// Returns true if the result of a conversation is that of the reply's calls.
fn carries_out(code: &Code, mut id: TermId) -> bool {
    while let Term::Let { body, .. } = code.term(id) {
        id = *body;
    }
    matches!(code.term(id), Term::App(f, _) if code.receives_calls(*f))
}

/// Knowledge about a local variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding {
    /// The reply of a model that was offered tools: a tag.
    Action,
    /// Text of a model, or a part of it.
    Reply,
    Other,
}

/// A walk through one activation.
struct Walk<'c> {
    code: &'c Code,
    /// Slot of `self` here.
    this: Option<Slot>,
    /// The locals in scope.
    locals: Vec<Binding>,
}

impl Walk<'_> {
    /// The ways through a term that end in a value without a call of `self`.
    fn run(&mut self, id: TermId) -> Exits {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || self.eval(id))
    }

    fn all(&mut self, ids: impl IntoIterator<Item = TermId>) -> Exits {
        ids.into_iter().fold(Exits::PLAIN, |ways, id| ways.then(self.run(id)))
    }

    fn eval(&mut self, id: TermId) -> Exits {
        let code = self.code;
        match code.term(id) {
            // Making a closure calls nothing.
            Term::Abs(_) | Term::Fix { .. } | Term::Llm(..) => Exits::PLAIN,
            Term::Fail(e) => {
                self.run(*e);
                Exits::NONE
            }
            Term::App(f, x) => {
                let ways = self.run(*f).then(self.run(*x));
                ways.then(self.apply(*f))
            }
            Term::Let { bindings, body, .. } => {
                let depth = self.locals.len();
                let mut ways = Exits::PLAIN;
                for (_, e) in bindings {
                    ways = ways.then(self.run(*e));
                    let bound = self.kind(*e);
                    self.locals.push(bound);
                }
                ways = ways.then(self.run(*body));
                self.locals.truncate(depth);
                ways
            }
            Term::If(test, yes, no, _) => {
                let marks = if self.tests_reply(*test) { TEXT } else { 0 };
                let ways = self.run(*test).then(Exits::way(marks));
                ways.then(self.run(*yes).or(self.run(*no)))
            }
            Term::Case { scrutinee, branches, default } => {
                let before = self.run(*scrutinee);
                let kind = self.kind(*scrutinee);
                let mut ways = Exits::NONE;
                for branch in branches {
                    let marks = match kind {
                        Binding::Action if &*branch.tag == "final" => FINAL,
                        Binding::Action => 0,
                        Binding::Reply => TEXT,
                        Binding::Other => 0,
                    };
                    let depth = self.locals.len();
                    if branch.binder.is_some() {
                        let said = if kind == Binding::Other { Binding::Other } else { Binding::Reply };
                        self.locals.push(said);
                    }
                    ways = ways.or(Exits::way(marks).then(self.run(branch.body)));
                    self.locals.truncate(depth);
                }
                if let Some(d) = default {
                    let marks = if kind == Binding::Reply { TEXT } else { 0 };
                    ways = ways.or(Exits::way(marks).then(self.run(*d)));
                }
                before.then(ways)
            }
            Term::Try { label, body, handler, .. } => {
                let ways = self.run(*label);
                let tried = self.run(*body);
                self.locals.push(Binding::Other);
                let caught = self.run(*handler);
                self.locals.pop();
                ways.then(tried.or(caught))
            }
            Term::Choose(_, a, b) => self.run(*a).or(self.run(*b)),
            Term::Guard { term, .. } => self.run(*term),
            other => self.all(other.children()),
        }
    }

    /// The ways through a call of what a term evaluates to. A function that is not known here is
    /// taken to return: only what certainly calls `self` counts as calling it.
    fn apply(&mut self, id: TermId) -> Exits {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || self.call(id))
    }

    fn call(&mut self, id: TermId) -> Exits {
        let code = self.code;
        match code.term(id) {
            Term::Var(_, slot) if Some(*slot) == self.this => Exits::NONE,
            Term::Abs(abs) if abs.sugar == AbsSugar::Compose => {
                let Some(stages) = code.stages(id) else { return Exits::PLAIN };
                let mut inner = self.inside(abs);
                stages.into_iter().fold(Exits::PLAIN, |ways, stage| {
                    let here = inner.run(stage);
                    ways.then(here).then(inner.apply(stage))
                })
            }
            Term::Abs(abs) => self.inside(abs).run(abs.body),
            Term::Fix { body, .. } => match code.term(*body) {
                Term::Abs(outer) => {
                    let mut inner = self.inside(outer);
                    inner.apply(outer.body)
                }
                _ => Exits::PLAIN,
            },
            Term::Guard { term, .. } => self.apply(*term),
            Term::Mem(_, e) => self.apply(*e),
            Term::Choose(_, a, b) => self.apply(*a).or(self.apply(*b)),
            Term::If(_, a, b, _) => self.apply(*a).or(self.apply(*b)),
            _ => Exits::PLAIN,
        }
    }

    /// A walk through the activation that calling a function makes.
    fn inside(&self, abs: &Abs) -> Self {
        let index = self.this.and_then(|this| abs.captures.iter().position(|c| *c == this));
        Walk { code: self.code, this: index.map(|i| Slot::Captured(i as u32)), locals: vec![Binding::Other] }
    }

    /// Returns what is known of the value of a term.
    fn kind(&self, id: TermId) -> Binding {
        match self.code.term(id) {
            Term::Var(_, Slot::Local(i)) => self.locals.get(*i as usize).copied().unwrap_or(Binding::Other),
            Term::App(f, x) => match self.code.term(*f) {
                Term::Llm(_, params) if params.tools.is_empty() => Binding::Reply,
                Term::Llm(..) => Binding::Action,
                // The result of the reply's calls.
                Term::Fix { .. } if self.kind(*x) == Binding::Action => Binding::Action,
                _ => Binding::Other,
            },
            // The called tool decides the result.
            Term::Case { scrutinee, .. } if self.kind(*scrutinee) == Binding::Action => Binding::Action,
            // A turn of a conversation.
            Term::Recv(Recv::Data(params)) if params.tools.is_empty() => Binding::Reply,
            Term::Recv(Recv::Data(_)) => Binding::Action,
            // The decision about the next iteration, after the calls of this one.
            Term::Fresh(e) if carries_out(self.code, *e) => Binding::Action,
            Term::Field(e, field) if &**field == NEXT && self.kind(*e) == Binding::Action => Binding::Action,
            Term::Field(e, _) | Term::Classify(_, e) | Term::Check(_, _, e) => match self.kind(*e) {
                Binding::Other => Binding::Other,
                _ => Binding::Reply,
            },
            Term::Prim(_, es) if es.iter().any(|e| self.kind(*e) == Binding::Reply) => Binding::Reply,
            _ => Binding::Other,
        }
    }

    /// Returns true if a condition looks at what a model said.
    fn tests_reply(&self, test: TermId) -> bool {
        let mut work = vec![test];
        while let Some(id) = work.pop() {
            if self.kind(id) == Binding::Reply {
                return true;
            }
            match self.code.term(id) {
                Term::Prim(_, es) => work.extend(es),
                Term::If(a, b, c, _) => work.extend([*a, *b, *c]),
                _ => {}
            }
        }
        false
    }
}
