//! The rules of `docs/calculus.md` §3, §5, §6 and §10 over abstract labels.
//!
//! Each function body is evaluated once for every different call, up to a number of them; after that all
//! further calls of it are taken together. Rounds follow each other until nothing changes any more, so
//! recursion needs no special treatment.

use super::taint::{Cause, Range, Taint, Taints};
use super::value::{CodeId, FnId, Fun, Params, Shape, Val};
use super::{Checked, Sink};
use core_ir::{Bound, Code, Data, Label, LabelSpec, Name, Prim, Recv, Slot, Term, TermId, ToolId};
use diagnostics::{FileId, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Terms looked at before the analysis gives up.
const MOST_STEPS: u64 = 3_000_000;
/// Rounds before it gives up.
const MOST_ROUNDS: u32 = 300;
/// Calls inside each other before it gives up.
const MOST_DEPTH: u32 = 1_500;
/// Functions of one place that are told apart.
const MOST_FUNCTIONS: usize = 24;
/// Calls of one function that are told apart.
const MOST_CALLS: usize = 24;

/// The mark of the run's own conversation; those that terms open have higher ones.
const OUTERMOST: u32 = 1;

/// What an error may be labelled, and the conversation it may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Error {
    pub label: Range,
    pub conversation: Range,
}

/// What evaluation has done so far: the conversation's label, and the errors that may have ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    conversation: Range,
    error: Option<Error>,
}

/// A call that was looked at, with what came of it so far.
struct Call {
    function: FnId,
    argument: Val,
    pc: Range,
    conversation: Range,
    result: Option<Val>,
    after: State,
    on_stack: bool,
    round: u32,
}

#[derive(PartialEq, Eq, Hash, Clone)]
struct CallKey {
    function: FnId,
    argument: Val,
    pc: Range,
    conversation: Range,
    /// For the prelude: the place in the program that what it does is put down to.
    place: Option<Span>,
}

/// The values in scope.
struct Env {
    code: CodeId,
    captures: Rc<Vec<Val>>,
    locals: Vec<Val>,
}

impl Env {
    fn bind(&mut self, index: usize, value: Val) {
        self.locals.truncate(index);
        self.locals.push(value);
    }
}

/// What is known of a place where something is asked of the world, or of a conversation.
pub(super) struct SiteState {
    pub checks: Vec<CheckState>,
    /// In all visits together.
    pub always: bool,
    pub never: bool,
}

/// One bound of a site.
pub(super) struct CheckState {
    pub what: Checked,
    pub found: Range,
    pub bound: Label,
    pub always: bool,
    pub never: bool,
}

/// An `endorse` or `declassify`.
#[derive(Default)]
pub(super) struct ReclassifyState {
    /// Whether it may lower the label of the value.
    pub lowers: bool,
    /// Whether what it lowers is the label of the result, for all that the program counter adds.
    pub shows: bool,
}

/// A `try`.
pub(super) struct TryState {
    pub given: Option<Label>,
    /// What errors of the body add to the program counter.
    pub needed: Taint,
    pub escapes: bool,
}

/// See the module documentation.
pub(super) struct Analysis {
    pub taints: Taints,
    codes: [Arc<Code>; 2],
    source: FileId,
    /// The last place in the program itself.
    blamed: Span,
    clearance: Label,
    funs: Vec<Fun>,
    fun_index: HashMap<Fun, FnId>,
    fun_places: HashMap<(CodeId, u32, u8), Vec<FnId>>,
    calls: Vec<Call>,
    call_index: HashMap<CallKey, usize>,
    calls_of: HashMap<FnId, Vec<usize>>,
    escaped: BTreeSet<FnId>,
    round: u32,
    changed: bool,
    depth: u32,
    steps: u64,
    pub gave_up: Option<(Span, &'static str)>,
    pub sites: BTreeMap<(Span, Sink), SiteState>,
    pub reclassified: BTreeMap<Span, ReclassifyState>,
    pub tries: BTreeMap<Span, TryState>,
}

/// How a run may end.
pub(super) struct End {
    pub result: Option<Val>,
    pub conversation: Range,
    pub error: Option<Error>,
}

impl Analysis {
    pub(super) fn new(code: &Arc<Code>, mut taints: Taints, clearance: &LabelSpec) -> Analysis {
        let root = code.span(code.root());
        let prelude = code.globals().get(0).map_or_else(|| code.clone(), |(c, _)| c.clone());
        let clearance = taints.lattice.resolve(clearance).unwrap_or_default();
        Analysis {
            taints,
            codes: [code.clone(), prelude],
            source: root.file,
            blamed: root,
            clearance,
            funs: Vec::new(),
            fun_index: HashMap::new(),
            fun_places: HashMap::new(),
            calls: Vec::new(),
            call_index: HashMap::new(),
            calls_of: HashMap::new(),
            escaped: BTreeSet::new(),
            round: 0,
            changed: false,
            depth: 0,
            steps: MOST_STEPS,
            gave_up: None,
            sites: BTreeMap::new(),
            reclassified: BTreeMap::new(),
            tries: BTreeMap::new(),
        }
    }

    /// Evaluates the code, and applies its value to data if it is to be applied, until nothing changes.
    pub(super) fn run(&mut self, applied: bool) -> End {
        loop {
            self.round += 1;
            self.changed = false;
            self.sites.clear();
            self.reclassified.clear();
            self.tries.clear();
            let end = self.once(applied);
            if self.round >= MOST_ROUNDS {
                self.give_up("it does not come to an end");
            }
            if !self.changed || self.gave_up.is_some() {
                return end;
            }
        }
    }

    fn give_up(&mut self, why: &'static str) {
        if self.gave_up.is_none() {
            self.gave_up = Some((self.blamed, why));
        }
    }

    fn once(&mut self, applied: bool) -> End {
        let outermost = Range { under: OUTERMOST, ..Range::BOTTOM };
        let mut state = State { conversation: outermost, error: None };
        let root = self.codes[0].root();
        let span = self.codes[0].span(root);
        let mut env = Env { code: CodeId(0), captures: Rc::default(), locals: Vec::new() };
        let mut result = self.eval(&mut env, root, Range::BOTTOM, &mut state);
        if applied && let Some(function) = result {
            let hi = self.taints.one(span, Cause::Input, self.taints.top);
            let input = Val::data(Range::new(Label::BOTTOM, hi));
            result = self.apply(&function, input, Range::BOTTOM, span, &mut state);
        }
        // What unknown functions were given, they may call, with anything and whenever they like.
        let mut done = BTreeSet::new();
        while let Some(f) = self.escaped.iter().find(|f| !done.contains(*f)).copied() {
            done.insert(f);
            if self.gave_up.is_some() {
                break;
            }
            let anything = self.anything(span);
            let mut state = State { conversation: anything.label, error: None };
            let result = self.apply_fn(f, anything.label, anything.clone(), anything.label, span, &mut state);
            if let Some(v) = result {
                self.escape(&v);
            }
        }
        End { result, conversation: state.conversation, error: state.error }
    }

    /// Anything, with any label.
    fn anything(&mut self, span: Span) -> Val {
        let hi = self.taints.one(span, Cause::Generated, self.taints.top);
        Val { label: Range::new(Label::BOTTOM, hi), inner: hi, shape: Shape::unknown() }
    }

    fn escape(&mut self, v: &Val) {
        let mut fns = BTreeSet::new();
        v.shape.functions(&mut fns);
        let before = self.escaped.len();
        self.escaped.extend(fns);
        self.changed |= self.escaped.len() != before;
    }

    fn code(&self, id: CodeId) -> Arc<Code> {
        self.codes[usize::from(id.0)].clone()
    }

    /// A place that means something to the author: in the prelude, that of the call from the program.
    fn place(&mut self, span: Span) -> Span {
        if span.file == self.source {
            self.blamed = span;
        }
        self.blamed
    }

    // ----- labels -----

    fn join(&mut self, a: Range, b: Range) -> Range {
        self.taints.join(a, b)
    }

    /// `pc ⊔ deep V`.
    fn blame(&mut self, pc: Range, v: &Val) -> Range {
        let deep = v.deep_range(&mut self.taints);
        self.join(pc, deep)
    }

    /// A label that stands in a signature or in the text.
    fn exact(&mut self, span: Span, cause: Cause, label: Label) -> Range {
        Range::new(label, self.taints.one(span, cause, label))
    }

    fn raise(&mut self, state: &mut State, label: Range) {
        let conversation = state.conversation;
        self.raise_in(state, Error { label, conversation });
    }

    fn raise_in(&mut self, state: &mut State, error: Error) {
        state.error = Some(match state.error {
            None => error,
            Some(e) => Error {
                label: self.taints.either(e.label, error.label),
                conversation: self.taints.either_conversation(e.conversation, error.conversation),
            },
        });
    }

    /// One of several ways, each evaluated from the same state.
    fn one_of<T>(
        &mut self,
        state: &mut State,
        ways: Vec<T>,
        mut each: impl FnMut(&mut Self, T, &mut State) -> Option<Val>,
    ) -> Option<Val> {
        let before = state.conversation;
        let mut result: Option<(Val, Range)> = None;
        for way in ways {
            let mut after = State { conversation: before, error: None };
            let value = each(self, way, &mut after);
            if let Some(e) = after.error {
                self.raise_in(state, e);
            }
            if let Some(v) = value {
                result = Some(match result {
                    None => (v, after.conversation),
                    Some((w, c)) => {
                        (
                            Val::either(&mut self.taints, &w, &v),
                            self.taints.either_conversation(c, after.conversation),
                        )
                    }
                });
            }
        }
        let (value, conversation) = result?;
        state.conversation = conversation;
        Some(value)
    }

    // ----- functions -----

    fn function(&mut self, fun: Fun, label: Range) -> Val {
        let mut inner = Taint::NONE;
        for part in fun.parts() {
            let deep = part.deep(&mut self.taints);
            inner = self.taints.union(inner, deep);
        }
        let id = self.intern(fun);
        // A function that stands for several holds what each of them does.
        for part in self.funs[id.0 as usize].parts().to_vec() {
            let deep = part.deep(&mut self.taints);
            inner = self.taints.union(inner, deep);
        }
        Val { label, inner, shape: Shape::Fns(Rc::new(BTreeSet::from([id]))) }
    }

    fn intern(&mut self, fun: Fun) -> FnId {
        if let Some(id) = self.fun_index.get(&fun) {
            return *id;
        }
        let place = fun.place();
        let known = self.fun_places.entry(place).or_default();
        if known.len() < MOST_FUNCTIONS {
            let id = FnId(self.funs.len() as u32);
            known.push(id);
            self.fun_index.insert(fun.clone(), id);
            self.funs.push(fun);
            return id;
        }
        // The last one of the place stands for all that are still to come.
        let id = known[MOST_FUNCTIONS - 1];
        let old = self.funs[id.0 as usize].clone();
        let parts: Vec<Val> = old
            .parts()
            .iter()
            .zip(fun.parts())
            .map(|(a, b)| Val::either(&mut self.taints, a, b))
            .collect();
        let joined = old.with_parts(parts);
        if joined != old {
            self.funs[id.0 as usize] = joined;
            self.changed = true;
        }
        id
    }

    /// Applies a function value; what it does is done at its label.
    fn apply(&mut self, f: &Val, v: Val, pc: Range, span: Span, state: &mut State) -> Option<Val> {
        let at = f.label;
        match &f.shape {
            Shape::Fns(fns) => {
                let ways: Vec<FnId> = fns.iter().copied().collect();
                if let [only] = ways[..] {
                    return self.apply_fn(only, at, v, pc, span, state);
                }
                self.one_of(state, ways, |a, id, state| a.apply_fn(id, at, v.clone(), pc, span, state))
            }
            Shape::Some { fns, unknown } => {
                let wrong = self.blame(at, f);
                self.raise(state, wrong);
                let mut ways: Vec<Option<FnId>> = fns.iter().copied().map(Some).collect();
                if *unknown {
                    ways.push(None);
                }
                self.one_of(state, ways, |a, id, state| match id {
                    Some(id) => a.apply_fn(id, at, v.clone(), pc, span, state),
                    None => {
                        a.escape(&v);
                        let mut result = a.anything(span);
                        a.raise(state, result.label);
                        state.conversation = a.taints.either_conversation(state.conversation, result.label);
                        a.raise(state, result.label);
                        result.label.lo = at.lo;
                        Some(result)
                    }
                })
            }
            _ => {
                let wrong = self.blame(at, f);
                self.raise(state, wrong);
                None
            }
        }
    }

    fn apply_fn(
        &mut self,
        id: FnId,
        at: Range,
        v: Val,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<Val> {
        match self.funs[id.0 as usize].clone() {
            Fun::Closure { .. } => self.call(id, v, at, state),
            Fun::Fix { bound: Bound::Finite(0), .. } => Some(v.read(&mut self.taints, at)),
            Fun::Fix { code, term, bound, own, body } => {
                let mut ways = vec![true];
                if own && bound != Bound::Infinite {
                    ways.push(false);
                }
                self.one_of(state, ways, |a, unfold, state| {
                    if !unfold {
                        return Some(v.read(&mut a.taints, at));
                    }
                    let this = Fun::Fix { code, term, bound, own: true, body: body.clone() };
                    let this = a.function(this, at);
                    let function = body.read(&mut a.taints, at);
                    let step = a.apply(&function, this, at, span, state)?;
                    a.apply(&step, v.clone(), at, span, state)
                })
            }
            Fun::Guarded { code, term, function } => {
                let Term::Guard { retry, .. } = *self.code(code).term(term) else { return None };
                self.guard(code, term, pc, retry, state, |a, again, state| {
                    let at = a.join(at, again);
                    let function = function.read(&mut a.taints, at);
                    a.apply(&function, v.clone(), at, span, state)
                })
            }
            Fun::Llm { code, term, prompt } => {
                let Term::Llm(_, params) = self.code(code).term(term).clone() else { return None };
                let place = self.code(code).span(term);
                self.ask(code, &params, &prompt, &v, at, place, state)
            }
            Fun::Tool { code, tool } => self.tool(code, tool, v, at, span, state),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a model, what it is asked, and where")]
    fn ask(
        &mut self,
        code: CodeId,
        params: &Params,
        prompt: &Val,
        v: &Val,
        at: Range,
        span: Span,
        state: &mut State,
    ) -> Option<Val> {
        let wrong = self.blame(at, v);
        self.raise(state, wrong);
        let (a, b) = (prompt.deep_range(&mut self.taints), v.deep_range(&mut self.taints));
        let said = self.join(a, b);
        let conversation = Range { under: 0, ..self.join(at, said) };
        let mut inner = State { conversation, error: None };
        let result = self.receive(code, Some(params), true, at, span, &mut inner);
        if let Some(e) = inner.error {
            let conversation = state.conversation;
            self.raise_in(state, Error { label: e.label, conversation });
        }
        result
    }

    /// The body of a closure, by the table of calls.
    fn call(&mut self, function: FnId, argument: Val, pc: Range, state: &mut State) -> Option<Val> {
        let conversation = state.conversation;
        let in_prelude = matches!(self.funs[function.0 as usize], Fun::Closure { code: CodeId(1), .. });
        let place = in_prelude.then_some(self.blamed);
        let key = CallKey { function, argument, pc, conversation, place };
        let index = match self.call_index.get(&key) {
            Some(i) => *i,
            None => {
                let known = self.calls_of.entry(function).or_default();
                if known.len() < MOST_CALLS {
                    let i = self.calls.len();
                    known.push(i);
                    self.calls.push(Call {
                        function,
                        argument: key.argument.clone(),
                        pc,
                        conversation,
                        result: None,
                        after: State { conversation, error: None },
                        on_stack: false,
                        round: 0,
                    });
                    self.call_index.insert(key, i);
                    i
                } else {
                    let i = known[MOST_CALLS - 1];
                    let call = &self.calls[i];
                    let (old, old_pc, old_conversation) = (call.argument.clone(), call.pc, call.conversation);
                    let argument = Val::either(&mut self.taints, &old, &key.argument);
                    let pc = self.taints.either(old_pc, pc);
                    let conversation = self.taints.either_conversation(old_conversation, conversation);
                    if (&argument, pc, conversation) != (&old, old_pc, old_conversation) {
                        let call = &mut self.calls[i];
                        call.argument = argument;
                        call.pc = pc;
                        call.conversation = conversation;
                        call.round = 0;
                        self.changed = true;
                    }
                    i
                }
            }
        };
        if !self.calls[index].on_stack && self.calls[index].round != self.round {
            self.carry_out(index);
        }
        let call = &self.calls[index];
        let (result, after) = (call.result.clone(), call.after);
        if let Some(e) = after.error {
            self.raise_in(state, e);
        }
        if result.is_some() {
            state.conversation = after.conversation;
        }
        result
    }

    fn carry_out(&mut self, index: usize) {
        if self.depth >= MOST_DEPTH {
            return self.give_up("calls are nested too deeply in each other");
        }
        let call = &mut self.calls[index];
        call.on_stack = true;
        call.round = self.round;
        let (function, argument, pc, conversation) =
            (call.function, call.argument.clone(), call.pc, call.conversation);
        let Fun::Closure { code, term, captures } = self.funs[function.0 as usize].clone() else { return };
        let Term::Abs(abs) = self.code(code).term(term).clone() else { return };
        let blamed = self.blamed;
        self.depth += 1;
        let mut env = Env { code, captures, locals: vec![argument] };
        let mut state = State { conversation, error: None };
        let result = self.eval(&mut env, abs.body, pc, &mut state);
        self.depth -= 1;
        self.blamed = blamed;

        let call = &self.calls[index];
        let (old, before) = (call.result.clone(), call.after);
        let mut after = before;
        if let Some(e) = state.error {
            self.raise_in(&mut after, e);
        }
        let result = match (&old, result) {
            (Some(o), Some(r)) => {
                after.conversation =
                    self.taints.either_conversation(before.conversation, state.conversation);
                Some(Val::either(&mut self.taints, o, &r))
            }
            (None, Some(r)) => {
                after.conversation = state.conversation;
                Some(r)
            }
            (_, None) => old.clone(),
        };
        self.changed |= result != old || after != before;
        let call = &mut self.calls[index];
        call.result = result;
        call.after = after;
        call.on_stack = false;
    }

    // ----- sinks -----

    /// Notes what is known of the bounds of a sink; false if it is surely refused.
    fn check(&mut self, span: Span, sink: Sink, checks: &[(Checked, Range, Label)]) -> bool {
        let place = self.place(span);
        let verdicts: Vec<(bool, bool)> = checks
            .iter()
            .map(|(_, r, b)| (self.taints.surely_flows(*r, *b), self.taints.never_flows(*r, *b)))
            .collect();
        let always = verdicts.iter().all(|v| v.0);
        let never = verdicts.iter().any(|v| v.1);
        let taints = &mut self.taints;
        let site = self
            .sites
            .entry((place, sink))
            .or_insert_with(|| SiteState { checks: Vec::new(), always: true, never: true });
        site.always &= always;
        site.never &= never;
        for ((what, found, bound), (always, never)) in checks.iter().zip(verdicts) {
            match site.checks.iter_mut().find(|c| c.what == *what) {
                Some(c) => {
                    c.found = taints.either(c.found, *found);
                    c.always &= always;
                    c.never &= never;
                }
                None => site.checks.push(CheckState {
                    what: what.clone(),
                    found: *found,
                    bound: *bound,
                    always,
                    never,
                }),
            }
        }
        !never
    }

    /// `pc ⊑ lc`: the conversation may be touched.
    fn touch(&mut self, span: Span, sink: Sink, pc: Range, state: &mut State) -> bool {
        let lc = state.conversation;
        let by_label = self.taints.surely_flows(pc, lc.lo);
        let always = by_label || (pc.under != 0 && pc.under == lc.under);
        let never = !self.taints.lattice.flows(pc.lo, self.taints.label_with_input(lc.hi));
        let place = self.place(span);
        let taints = &mut self.taints;
        let site = self
            .sites
            .entry((place, sink))
            .or_insert_with(|| SiteState { checks: Vec::new(), always: true, never: true });
        site.always &= always;
        site.never &= never;
        match site.checks.iter_mut().find(|c| c.what == Checked::Control) {
            Some(c) => {
                c.found = taints.either(c.found, pc);
                c.bound = taints.meet(c.bound, lc.lo);
                c.always &= always;
                c.never &= never;
            }
            None => {
                let what = Checked::Control;
                site.checks.push(CheckState { what, found: pc, bound: lc.lo, always, never });
            }
        }
        if !always {
            let label = self.join(pc, lc);
            self.raise(state, label);
        }
        !never
    }

    /// A mark for a conversation that a term opens: zero if something in scope has that mark from before.
    fn opened(&mut self, env: &Env, term: TermId, pc: Range) -> u32 {
        let mark = OUTERMOST + 1 + term.0 * 2 + u32::from(env.code.0);
        let mut seen = BTreeSet::new();
        let values = env.locals.iter().chain(env.captures.iter());
        let taken = pc.under == mark || values.into_iter().any(|v| self.mentions(v, mark, &mut seen));
        if taken { 0 } else { mark }
    }

    fn mentions(&self, v: &Val, mark: u32, seen: &mut BTreeSet<FnId>) -> bool {
        if v.label.under == mark {
            return true;
        }
        match &v.shape {
            Shape::Const(_) => false,
            Shape::List(items) => items.iter().any(|v| self.mentions(v, mark, seen)),
            Shape::Record(vs) | Shape::Tags(vs) => vs.iter().any(|(_, v)| self.mentions(v, mark, seen)),
            Shape::Pair(p) => self.mentions(&p.0, mark, seen) || self.mentions(&p.1, mark, seen),
            Shape::Fns(fns) | Shape::Some { fns, .. } => fns.iter().any(|id| {
                seen.insert(*id)
                    && self.funs[id.0 as usize].parts().iter().any(|v| self.mentions(v, mark, seen))
            }),
        }
    }

    /// The value as it is when a conversation is closed: nothing flows to its label any more.
    fn closed(&mut self, v: Val, mark: u32) -> Val {
        if mark == 0 || !self.mentions(&v, mark, &mut BTreeSet::new()) {
            return v;
        }
        let unmark = |r: Range| if r.under == mark { Range { under: 0, ..r } } else { r };
        let mut fns = BTreeSet::new();
        v.shape.functions(&mut fns);
        let marked = fns.iter().any(|id| {
            let mut seen = BTreeSet::new();
            self.funs[id.0 as usize].parts().iter().any(|v| self.mentions(v, mark, &mut seen))
        });
        if !marked {
            return v.mapped(&unmark, &mut |id| id);
        }
        // Functions made inside: rare enough to be taken for unknown ones, which may do anything.
        self.escape(&v);
        let span = self.blamed;
        let any = self.anything(span);
        let label = unmark(v.label);
        Val { label, inner: self.taints.union(v.inner, any.inner), shape: Shape::unknown() }
    }

    /// `recv`, and what `llm` does after sending in a conversation of its own, which is labelled at least
    /// like the place where it is opened. Without parameters the reply is code.
    fn receive(
        &mut self,
        code: CodeId,
        params: Option<&Params>,
        own: bool,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<Val> {
        let lc = state.conversation;
        let model = params.and_then(|p| p.model.clone()).unwrap_or_else(|| "".into());
        let sink = Sink::Model(model);
        if !own && !self.touch(span, sink.clone(), pc, state) {
            return None;
        }
        if !self.check(span, sink, &[(Checked::Conversation, lc, self.clearance)]) {
            let label = self.join(pc, lc);
            self.raise(state, label);
            return None;
        }
        // A model may fail, and its reply may not decode.
        let label = self.join(pc, lc);
        self.raise(state, label);
        let Some(params) = params else {
            let place = self.place(span);
            let any = self.taints.one(place, Cause::Generated, self.taints.top);
            let hi = self.taints.union(lc.hi, any);
            let anything = Range::new(lc.lo, hi);
            // The code may send, and clear.
            state.conversation = Range::new(Label::BOTTOM, hi);
            self.raise(state, Range::new(Label::BOTTOM, hi));
            let ok = Val { label: lc, inner: Taint::NONE, shape: Shape::data() };
            let value = Val { label: anything, inner: hi, shape: Shape::unknown() };
            return Some(Val::made(&mut self.taints, lc, Shape::List(Rc::new(vec![ok, value]))));
        };
        let data = Val::data(Range::BOTTOM);
        if params.tools.is_empty() {
            return Some(Val::data(lc));
        }
        let names: Vec<Name> = params.tools.iter().map(|t| self.code(code).tool(*t).name.clone()).collect();
        let mut tags: Vec<(Name, Val)> = names.into_iter().map(|n| (n, data.clone())).collect();
        if !tags.iter().any(|(n, _)| &**n == "final") {
            tags.push(("final".into(), data));
        }
        tags.sort_by(|(n, _), (m, _)| n.cmp(m));
        Some(Val { label: lc, inner: Taint::NONE, shape: Shape::Tags(Rc::new(tags)) })
    }

    fn tool(
        &mut self,
        code: CodeId,
        id: ToolId,
        v: Val,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<Val> {
        let decl = self.code(code).tool(id).clone();
        let place = self.place(span);
        let v = v.opened();
        let control = self.taints.lattice.resolve(&decl.control).unwrap_or_default();
        let mut checks = vec![(Checked::Control, pc, control)];
        let bounds: Vec<Label> = decl
            .params
            .iter()
            .map(|p| self.taints.lattice.resolve(&p.bound).unwrap_or_default())
            .collect();
        // Which value each parameter gets: one that is known, none, or something in `v`.
        enum Given<'a> {
            Value(&'a Val),
            Nothing,
            Something,
        }
        let fields = match &v.shape {
            Shape::Record(fields) => Some(fields.clone()),
            _ => None,
        };
        let is_open = matches!(v.shape, Shape::Some { .. });
        let bare = decl.params.len() == 1
            && match &fields {
                Some(fields) => !fields.iter().any(|(n, _)| *n == decl.params[0].name),
                None => !is_open,
            };
        let mut passed = Taint::NONE;
        let mut covered = false;
        let mut argument_may_be_refused: Vec<Range> = Vec::new();
        for (param, bound) in decl.params.iter().zip(&bounds) {
            let optional = matches!(param.ty, core_ir::Type::Option(_));
            let given = match &fields {
                _ if bare => Given::Value(&v),
                Some(fields) => match fields.iter().find(|(n, _)| *n == param.name) {
                    Some((_, a)) => Given::Value(a),
                    None => Given::Nothing,
                },
                None => Given::Something,
            };
            let found = match given {
                Given::Value(a) => {
                    let deep = a.deep_range(&mut self.taints);
                    self.join(v.label, deep)
                }
                Given::Nothing if optional => continue,
                Given::Nothing => {
                    // The type error comes after the checks, which it keeps from mattering.
                    continue;
                }
                Given::Something => {
                    let deep = v.deep(&mut self.taints);
                    Range::new(if optional { Label::BOTTOM } else { v.label.lo }, deep)
                }
            };
            covered |= !(optional && matches!(given, Given::Something));
            let within = self.taints.within(found.hi, *bound);
            passed = self.taints.union(passed, within);
            if !self.taints.surely_flows(found, *bound) {
                let cause = Cause::Bound(param.name.clone());
                let at = self.exact(place, cause, *bound);
                argument_may_be_refused.push(at);
            }
            checks.push((Checked::Argument(param.name.clone()), found, *bound));
        }
        let all_known = fields.as_ref().is_none_or(|fields| {
            bare || fields.iter().all(|(n, _)| decl.params.iter().any(|p| p.name == *n))
        });
        if !covered || !all_known {
            let deep = v.deep(&mut self.taints);
            passed = self.taints.union(passed, deep);
        }
        let goes_on = self.check(place, Sink::Tool(decl.name.clone()), &checks);
        if !self.taints.surely_flows(pc, control) {
            self.raise(state, pc);
        }
        for at in argument_may_be_refused {
            let label = self.join(pc, at);
            self.raise(state, label);
        }
        if !goes_on {
            return None;
        }
        let deep_lo = v.deep_range(&mut self.taints).lo;
        let pc_hi = self.taints.within(pc.hi, control);
        let hi = self.taints.union(pc_hi, passed);
        let lo = self.taints.lattice.join(pc.lo, deep_lo);
        self.raise(state, Range::new(lo, hi));
        let missing = fields.as_ref().is_some_and(|fields| {
            !bare
                && decl.params.iter().any(|p| {
                    !matches!(p.ty, core_ir::Type::Option(_)) && !fields.iter().any(|(n, _)| *n == p.name)
                })
        });
        if missing {
            return None;
        }
        let label = self.taints.lattice.resolve(&decl.label).unwrap_or(self.taints.top);
        let adds = self.exact(place, Cause::Tool(decl.name.clone()), label);
        let label = self.join(Range::new(lo, hi), adds);
        self.raise(state, label);
        Some(Val::data(label))
    }

    /// Attempts until one satisfies: `attempt` is given what the failed ones add to the program counter.
    #[allow(clippy::too_many_arguments, reason = "the guard, and how it is tried")]
    fn guard(
        &mut self,
        code: CodeId,
        term: TermId,
        pc: Range,
        retry: u32,
        state: &mut State,
        mut attempt: impl FnMut(&mut Self, Range, &mut State) -> Option<Val>,
    ) -> Option<Val> {
        let mut again = Range::BOTTOM;
        let mut left = retry;
        let mut result: Option<(Val, Range)> = None;
        loop {
            let start = state.conversation;
            let Some(v) = attempt(self, again, state) else { break };
            let deep = v.deep_range(&mut self.taints);
            let is_function = matches!(v.shape, Shape::Fns(_));
            let passed = match &v.shape {
                Shape::Fns(_) => {
                    let label = v.label;
                    self.function(Fun::Guarded { code, term, function: Rc::new(v.clone()) }, label)
                }
                Shape::Some { fns, unknown } if *unknown || !fns.is_empty() => {
                    // Perhaps a function: one that does what these do, or something else.
                    self.escape(&v);
                    let span = self.blamed;
                    let any = self.anything(span);
                    let label = Range::new(v.label.lo, deep.hi);
                    Val { label, inner: self.taints.union(v.inner, any.inner), shape: Shape::unknown() }
                }
                _ => Val { label: Range { under: 0, ..deep }, ..v.clone() },
            };
            result = Some(match result {
                None => (passed, state.conversation),
                Some((w, c)) => (
                    Val::either(&mut self.taints, &w, &passed),
                    self.taints.either_conversation(c, state.conversation),
                ),
            });
            if is_function {
                break;
            }
            let failed = self.join(pc, deep);
            self.raise(state, failed);
            if left == 0 {
                break;
            }
            left -= 1;
            let next = Range::new(Label::BOTTOM, self.taints.union(again.hi, deep.hi));
            let conversation = self.taints.either_conversation(start, state.conversation);
            if next == again && conversation == start {
                // A further attempt brings nothing new.
                break;
            }
            again = next;
            state.conversation = conversation;
        }
        let (value, conversation) = result?;
        state.conversation = conversation;
        Some(value)
    }

    // ----- terms -----

    fn eval(&mut self, env: &mut Env, id: TermId, pc: Range, state: &mut State) -> Option<Val> {
        stacker::maybe_grow(128 * 1024, 4 * 1024 * 1024, || self.eval_inner(env, id, pc, state))
    }

    fn read(&mut self, env: &Env, slot: Slot) -> Val {
        let found = match slot {
            Slot::Local(i) => env.locals.get(i as usize).cloned(),
            Slot::Captured(i) => env.captures.get(i as usize).cloned(),
            Slot::Global(i) => {
                let term = self.codes[0].globals().get(i).map(|(_, t)| t);
                return match term {
                    Some(term) => {
                        let fun = Fun::Closure { code: CodeId(1), term, captures: Rc::default() };
                        self.function(fun, Range::BOTTOM)
                    }
                    None => self.anything(self.blamed),
                };
            }
        };
        match found {
            Some(v) => v,
            // INVARIANT: slots are resolved when code is made; on the safe side all the same.
            None => self.anything(self.blamed),
        }
    }

    /// The label that a value denotes, if it is known.
    fn denoted(&mut self, v: &Val) -> Option<Label> {
        match &v.shape {
            Shape::Const(d) => self.taints.lattice.label_of(d),
            _ => None,
        }
    }

    /// `n ⊔ l` and what is known of `l`.
    fn label_operand(&mut self, v: &Val, pc: Range, span: Span, state: &mut State) -> (Range, Range, Option<Label>) {
        let n = v.deep_range(&mut self.taints);
        let at = self.join(pc, n);
        let place = self.place(span);
        match self.denoted(v) {
            Some(l) => {
                let range = self.exact(place, Cause::Written, l);
                (at, range, Some(l))
            }
            None => {
                self.raise(state, at);
                let hi = self.taints.one(place, Cause::Computed, self.taints.top);
                (at, Range::new(Label::BOTTOM, hi), None)
            }
        }
    }

    /// The values of several terms, one after the other.
    fn all(&mut self, env: &mut Env, ids: &[TermId], pc: Range, state: &mut State) -> Option<Vec<Val>> {
        ids.iter().map(|id| self.eval(env, *id, pc, state)).collect()
    }

    fn eval_inner(&mut self, env: &mut Env, id: TermId, pc: Range, state: &mut State) -> Option<Val> {
        if self.gave_up.is_some() {
            return None;
        }
        let code = self.code(env.code);
        let span = code.span(id);
        if span.file == self.source {
            self.blamed = span;
        }
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            self.give_up("the program is too large for it");
            return None;
        }
        match code.term(id) {
            Term::Var(_, slot) => Some(self.read(env, *slot).read(&mut self.taints, pc)),
            Term::Lit(data) => Some(Val::literal(data, pc)),
            Term::Abs(abs) => {
                let captures: Vec<Val> = abs.captures.iter().map(|s| self.read(env, *s)).collect();
                Some(self.function(Fun::Closure { code: env.code, term: id, captures: Rc::new(captures) }, pc))
            }
            Term::Record(fields) => {
                let ids: Vec<TermId> = fields.iter().map(|(_, e)| *e).collect();
                let parts = self.all(env, &ids, pc, state)?;
                let names = fields.iter().map(|(n, _)| n.clone());
                if let Some(parts) = constants(&parts, pc).filter(|p| !p.is_empty()) {
                    return Some(Val::literal(&Data::record(names.zip(parts)), pc));
                }
                let fields = names.zip(parts).collect();
                Some(Val::made(&mut self.taints, pc, Shape::Record(Rc::new(fields))))
            }
            Term::List(items) => {
                let parts = self.all(env, items, pc, state)?;
                if let Some(parts) = constants(&parts, pc) {
                    return Some(Val::literal(&Data::list(parts), pc));
                }
                Some(Val::made(&mut self.taints, pc, Shape::List(Rc::new(parts))))
            }
            Term::Pair(a, b) => {
                let a = self.eval(env, *a, pc, state)?;
                let b = self.eval(env, *b, pc, state)?;
                Some(Val::made(&mut self.taints, pc, Shape::Pair(Rc::new((a, b)))))
            }
            Term::Tag(name, payload) => {
                let payload = match payload {
                    Some(e) => self.eval(env, *e, pc, state)?,
                    None => Val::literal(&Data::Null, pc),
                };
                Some(Val::made(&mut self.taints, pc, Shape::Tags(Rc::new(vec![(name.clone(), payload)]))))
            }
            Term::App(f, x) => {
                let f = self.eval(env, *f, pc, state)?;
                let x = self.eval(env, *x, pc, state)?;
                self.apply(&f, x, pc, span, state)
            }
            Term::Let { bindings, body, .. } => {
                let first = code.locals(id);
                for (i, (_, e)) in bindings.iter().enumerate() {
                    let v = self.eval(env, *e, pc, state)?;
                    env.bind(first + i, v);
                }
                self.eval(env, *body, pc, state)
            }
            Term::Field(e, name) => {
                let v = self.eval(env, *e, pc, state)?;
                self.field(&v, name, pc, state)
            }
            Term::Index(a, b) => {
                let v = self.eval(env, *a, pc, state)?;
                let i = self.eval(env, *b, pc, state)?;
                self.index(&v, &i, pc, state)
            }
            Term::With(e, name, x) => {
                let v = self.eval(env, *e, pc, state)?;
                let x = self.eval(env, *x, pc, state)?;
                let opened = v.opened();
                if let Shape::Record(fields) = &opened.shape {
                    let mut fields = fields.as_ref().clone();
                    match fields.iter_mut().find(|(n, _)| n == name) {
                        Some((_, old)) => *old = x,
                        None => fields.push((name.clone(), x)),
                    }
                    return Some(Val::made(&mut self.taints, v.label, Shape::Record(Rc::new(fields))));
                }
                let label = self.blame(pc, &v);
                self.raise(state, label);
                let Shape::Some { .. } = opened.shape else { return None };
                let mut fns = BTreeSet::new();
                let unknown = v.shape.functions(&mut fns) | x.shape.functions(&mut fns);
                let deep = x.deep(&mut self.taints);
                let inner = self.taints.union(v.inner, deep);
                Some(Val { label: v.label, inner, shape: Shape::Some { fns: Rc::new(fns), unknown } })
            }
            Term::Fst(e) | Term::Snd(e) => {
                let v = self.eval(env, *e, pc, state)?;
                let first = matches!(code.term(id), Term::Fst(_));
                match &v.opened().shape {
                    Shape::Pair(p) => {
                        let side = if first { &p.0 } else { &p.1 };
                        Some(side.read(&mut self.taints, v.label))
                    }
                    shape => {
                        let label = self.blame(pc, &v);
                        self.raise(state, label);
                        matches!(shape, Shape::Some { .. }).then(|| v.some_part(&mut self.taints))
                    }
                }
            }
            Term::Prim(p, es) => {
                let parts = self.all(env, es, pc, state)?;
                Some(self.prim(*p, &parts, pc, state))
            }
            Term::If(c, a, b, _) => {
                let c = self.eval(env, *c, pc, state)?;
                let ways = match &c.shape {
                    Shape::Const(Data::Bool(true)) => vec![*a],
                    Shape::Const(Data::Bool(false)) => vec![*b],
                    shape => {
                        let label = self.blame(pc, &c);
                        self.raise(state, label);
                        if matches!(shape, Shape::Some { .. }) { vec![*a, *b] } else { Vec::new() }
                    }
                };
                let pc = self.join(pc, c.label);
                self.one_of(state, ways, |s, way, state| s.eval(env, way, pc, state))
            }
            Term::Case { scrutinee, branches, default } => {
                let v = self.eval(env, *scrutinee, pc, state)?;
                let opened = v.opened();
                let null = |label| Val { label, inner: Taint::NONE, shape: Shape::Const(Data::Null) };
                // The branches that may be taken, with what their binders are bound to; and whether none may be.
                let mut ways: Vec<(TermId, Option<Val>)> = Vec::new();
                let mut none = true;
                match &opened.shape {
                    Shape::Tags(tags) => {
                        none = false;
                        for (name, payload) in tags.iter() {
                            match branches.iter().find(|b| b.tag == *name) {
                                Some(b) => ways.push((b.body, b.binder.as_ref().map(|_| payload.clone()))),
                                None => none = true,
                            }
                        }
                    }
                    Shape::Const(Data::Str(s)) => {
                        if let Some(b) = branches.iter().find(|b| *b.tag == **s) {
                            none = false;
                            ways.push((b.body, b.binder.as_ref().map(|_| null(v.label))));
                        }
                    }
                    Shape::Some { .. } => {
                        let part = v.some_part(&mut self.taints);
                        for b in branches {
                            ways.push((b.body, b.binder.as_ref().map(|_| part.clone())));
                        }
                    }
                    _ => {}
                }
                if none {
                    match default {
                        Some(e) => ways.push((*e, None)),
                        None => {
                            let label = self.blame(pc, &v);
                            self.raise(state, label);
                        }
                    }
                }
                let pc = self.join(pc, v.label);
                let at = code.locals(id);
                self.one_of(state, ways, |s, (way, payload), state| {
                    if let Some(payload) = payload {
                        env.bind(at, payload);
                    }
                    s.eval(env, way, pc, state)
                })
            }
            Term::Classify(tags, e) => {
                let v = self.eval(env, *e, pc, state)?;
                let label = self.blame(pc, &v);
                self.raise(state, label);
                let mut tags: Vec<(Name, Val)> =
                    tags.iter().map(|t| (t.clone(), Val::literal(&Data::Null, Range::BOTTOM))).collect();
                tags.sort_by(|(n, _), (m, _)| n.cmp(m));
                Some(Val { label, inner: Taint::NONE, shape: Shape::Tags(Rc::new(tags)) })
            }
            Term::Fix { bound, body, .. } => {
                let body = self.eval(env, *body, pc, state)?;
                let fun =
                    Fun::Fix { code: env.code, term: id, bound: *bound, own: false, body: Rc::new(body) };
                Some(self.function(fun, pc))
            }
            Term::Guard { term, retry, .. } => {
                let (term, retry, code) = (*term, *retry, env.code);
                self.guard(code, id, pc, retry, state, |s, again, state| {
                    let pc = s.join(pc, again);
                    s.eval(env, term, pc, state)
                })
            }
            Term::Mem(_, e) => self.eval(env, *e, pc, state),
            Term::Recall(name, at) => {
                let spec = at.map(|(store, key)| code.store(store).keys[key as usize].label.clone());
                let label = spec.and_then(|s| self.taints.lattice.resolve(&s)).unwrap_or(self.taints.top);
                let place = self.place(span);
                let held = self.exact(place, Cause::Key(name.clone()), label);
                let label = self.join(pc, held);
                self.raise(state, label);
                Some(Val::data(label))
            }
            Term::Remember(name, at, e) => {
                let v = self.eval(env, *e, pc, state)?;
                let spec = at.map(|(store, key)| code.store(store).keys[key as usize].label.clone());
                let bound = spec.and_then(|s| self.taints.lattice.resolve(&s)).unwrap_or_default();
                let found = self.blame(pc, &v);
                let sink = Sink::Key(name.clone());
                let goes_on = self.check(span, sink, &[(Checked::Value, found, bound)]);
                if !self.taints.surely_flows(found, bound) {
                    let place = self.place(span);
                    let at = self.exact(place, Cause::Bound(name.clone()), bound);
                    let label = self.join(pc, at);
                    self.raise(state, label);
                }
                if !goes_on {
                    return None;
                }
                // Ill-typed, or the store fails.
                self.raise(state, found);
                self.raise(state, pc);
                Some(Val::unit(pc))
            }
            Term::Choose(_, a, b) => {
                self.raise(state, pc);
                self.one_of(state, vec![*a, *b], |s, way, state| s.eval(env, way, pc, state))
            }
            Term::Llm(e, _) => {
                let prompt = self.eval(env, *e, pc, state)?;
                if !matches!(prompt.shape, Shape::Const(Data::Str(_))) {
                    let label = self.blame(pc, &prompt);
                    self.raise(state, label);
                }
                Some(self.function(Fun::Llm { code: env.code, term: id, prompt: Rc::new(prompt) }, pc))
            }
            Term::Tool(tool) => Some(self.function(Fun::Tool { code: env.code, tool: *tool }, pc)),
            Term::Send(_, e) => {
                let v = self.eval(env, *e, pc, state)?;
                if !self.touch(span, Sink::Send, pc, state) {
                    return None;
                }
                let label = self.blame(pc, &v);
                self.raise(state, label);
                let deep = v.deep_range(&mut self.taints);
                let lc = state.conversation;
                state.conversation = Range { under: lc.under, ..self.join(lc, deep) };
                Some(Val::unit(pc))
            }
            Term::Recv(how) => {
                let params = match how {
                    Recv::Code => None,
                    Recv::Data(params) => Some(params),
                };
                self.receive(env.code, params, false, pc, span, state)
            }
            Term::Clear => {
                if !self.touch(span, Sink::Clear, pc, state) {
                    return None;
                }
                // No mark: what was received before does not flow to what is new, and a mark of this place may
                // be known to callers from an earlier time.
                state.conversation = Range { under: 0, ..pc };
                Some(Val::unit(pc))
            }
            Term::Fork(e) => {
                let lc = state.conversation;
                let inside = Range { under: lc.under, ..self.join(lc, pc) };
                let at = if lc.under == 0 { pc } else { Range { under: lc.under, ..pc } };
                self.inside(env, *e, at, inside, state)
            }
            Term::Fresh(e) => {
                let under = self.opened(env, id, pc);
                let inside = Range { under, ..pc };
                let at = if under == 0 { pc } else { inside };
                self.inside(env, *e, at, inside, state)
            }
            Term::Relabel(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, _) = self.label_operand(&l, pc, span, state);
                let pc = self.join(at, l);
                self.eval(env, *e, pc, state)
            }
            Term::Test(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, _) = self.label_operand(&l, pc, span, state);
                self.eval(env, *e, at, state)?;
                let label = self.join(at, l);
                Some(Val::data(label))
            }
            Term::Assert(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, known) = self.label_operand(&l, pc, span, state);
                let v = self.eval(env, *e, pc, state)?;
                let holds = at.hi == pc.hi && known.is_some_and(|l| self.taints.surely_flows(v.label, l));
                if !holds {
                    let label = self.join(at, l);
                    self.raise(state, label);
                    if known.is_some_and(|l| self.taints.never_flows(v.label, l)) {
                        return None;
                    }
                }
                Some(Val::unit(pc))
            }
            Term::Endorse(l, e) | Term::Declassify(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, _) = self.label_operand(&l, pc, span, state);
                let v = self.eval(env, *e, at, state)?;
                let integrity = matches!(code.term(id), Term::Endorse(..));
                let label = if integrity {
                    self.taints.reclassify(l, v.label)
                } else {
                    self.taints.reclassify(v.label, l)
                };
                self.note_reclassified(span, integrity, at, l, v.label);
                let label = self.join(at, label);
                Some(Val { label, ..v })
            }
            Term::Try { label, body, handler, .. } => {
                let l = self.eval(env, *label, pc, state)?;
                let (at, l, given) = self.label_operand(&l, pc, span, state);
                let inside = self.join(at, l);
                let (body, handler, index) = (*body, *handler, code.locals(id));
                let mut after = State { conversation: state.conversation, error: None };
                let value = self.eval(env, body, inside, &mut after);
                let Some(error) = after.error else {
                    self.note_try(span, given, inside, None);
                    state.conversation = after.conversation;
                    return value;
                };
                let escapes = !self.taints.surely_flows(error.label, inside.lo);
                self.note_try(span, given, inside, Some(error.label).filter(|_| escapes));
                if escapes {
                    self.raise_in(state, error);
                }
                // What is caught flows to the program counter inside.
                let within = self.taints.lattice.flows(
                    self.taints.label_with_input(error.label.hi),
                    self.taints.label_with_input(inside.hi),
                );
                let label = if within { error.label } else { Range { lo: error.label.lo, ..inside } };
                let mut caught = State { conversation: error.conversation, error: None };
                env.bind(index, Val::data(label));
                let handled = self.eval(env, handler, inside, &mut caught);
                if let Some(e) = caught.error {
                    self.raise_in(state, e);
                }
                match (value, handled) {
                    (Some(a), Some(b)) => {
                        state.conversation =
                            self.taints.either_conversation(after.conversation, caught.conversation);
                        Some(Val::either(&mut self.taints, &a, &b))
                    }
                    (Some(a), None) => {
                        state.conversation = after.conversation;
                        Some(a)
                    }
                    (None, Some(b)) => {
                        state.conversation = caught.conversation;
                        Some(b)
                    }
                    (None, None) => None,
                }
            }
            Term::Fail(e) => {
                let v = self.eval(env, *e, pc, state)?;
                let label = self.blame(pc, &v);
                self.raise(state, label);
                None
            }
            Term::Par(_, branches) => {
                let lc = state.conversation;
                let inside = Range { under: lc.under, ..self.join(lc, pc) };
                let at = if lc.under == 0 { pc } else { Range { under: lc.under, ..pc } };
                let mut values = Some(Vec::new());
                for e in branches {
                    // A branch is evaluated whatever becomes of the others.
                    let v = self.inside(env, *e, at, inside, state);
                    values = values.zip(v).map(|(mut vs, v)| {
                        vs.push(v);
                        vs
                    });
                }
                Some(Val::made(&mut self.taints, pc, Shape::List(Rc::new(values?))))
            }
            Term::Check(_, _, e) => {
                let v = self.eval(env, *e, pc, state)?;
                let label = self.blame(pc, &v);
                self.raise(state, label);
                let shape = match &v.shape {
                    Shape::Fns(_) => return None,
                    // What passes is data.
                    Shape::Some { .. } => Shape::data(),
                    shape => shape.clone(),
                };
                Some(Val { shape, ..v })
            }
            Term::Unknown(_) => {
                self.raise(state, pc);
                None
            }
        }
    }

    /// Evaluates in another conversation, which is closed then.
    fn inside(
        &mut self,
        env: &mut Env,
        id: TermId,
        pc: Range,
        conversation: Range,
        state: &mut State,
    ) -> Option<Val> {
        let mut inner = State { conversation, error: None };
        let value = self.eval(env, id, pc, &mut inner);
        let mark = conversation.under;
        if let Some(e) = inner.error {
            let under = if e.label.under == mark { 0 } else { e.label.under };
            let outside = state.conversation;
            self.raise_in(state, Error { label: Range { under, ..e.label }, conversation: outside });
        }
        Some(self.closed(value?, mark))
    }

    fn field(&mut self, v: &Val, name: &Name, pc: Range, state: &mut State) -> Option<Val> {
        let opened = v.opened();
        if let Shape::Record(fields) = &opened.shape
            && let Some((_, part)) = fields.iter().find(|(n, _)| n == name)
        {
            return Some(part.read(&mut self.taints, v.label));
        }
        let label = self.blame(pc, v);
        self.raise(state, label);
        matches!(opened.shape, Shape::Some { .. }).then(|| v.some_part(&mut self.taints))
    }

    fn index(&mut self, v: &Val, i: &Val, pc: Range, state: &mut State) -> Option<Val> {
        let at = self.join(v.label, i.label);
        let opened = v.opened();
        let known = match (&opened.shape, &i.shape) {
            (Shape::List(items), Shape::Const(Data::Num(n))) => {
                n.to_usize().and_then(|n| items.get(n)).cloned()
            }
            (Shape::Record(fields), Shape::Const(Data::Str(s))) => {
                fields.iter().find(|(n, _)| **n == **s).map(|(_, v)| v.clone())
            }
            _ => None,
        };
        if let Some(part) = known {
            return Some(part.read(&mut self.taints, at));
        }
        let (a, b) = (self.blame(pc, v), i.deep_range(&mut self.taints));
        let label = self.join(a, b);
        self.raise(state, label);
        Some(v.some_part(&mut self.taints).read(&mut self.taints, at))
    }

    fn prim(&mut self, p: Prim, parts: &[Val], pc: Range, state: &mut State) -> Val {
        let mut label = pc;
        let mut fns = BTreeSet::new();
        let mut unknown = false;
        let mut inner = Taint::NONE;
        for part in parts {
            label = self.blame(label, part);
            unknown |= part.shape.functions(&mut fns);
            inner = self.taints.union(inner, part.inner);
        }
        let tests = matches!(
            p,
            Prim::IsFn
                | Prim::IsArray
                | Prim::IsRecord
                | Prim::IsStr
                | Prim::IsNum
                | Prim::IsBool
                | Prim::IsNull
        );
        if !tests {
            self.raise(state, label);
        }
        // Functions in a list or under `flatten` keep what they captured.
        let carries = matches!(p, Prim::Flatten | Prim::Append | Prim::Add | Prim::Slice);
        if !carries || (fns.is_empty() && !unknown) {
            return Val::data(label);
        }
        match (p, parts) {
            (Prim::Flatten, [v]) if matches!(v.shape, Shape::Fns(_)) => Val { label, ..v.clone() },
            _ => Val { label, inner, shape: Shape::Some { fns: Rc::new(fns), unknown } },
        }
    }

    // ----- what is worth saying besides -----

    fn note_reclassified(&mut self, span: Span, integrity: bool, at: Range, l: Range, v: Range) {
        let place = self.place(span);
        let bottom = Range::BOTTOM;
        let axis = |t: &mut Taints, r: Range| {
            let r = if integrity { t.reclassify(r, bottom) } else { t.reclassify(bottom, r) };
            (r.lo, t.label_with_input(r.hi))
        };
        let (_, before) = axis(&mut self.taints, v);
        let (l_lo, _) = axis(&mut self.taints, l);
        let (at_lo, _) = axis(&mut self.taints, at);
        let lattice = &mut self.taints.lattice;
        // What the value may have and the new label surely has not.
        let lowers = !lattice.flows(before, l_lo);
        let inert = lattice.join(l_lo, at_lo);
        let shows = !lattice.flows(before, inert);
        let note = self.reclassified.entry(place).or_default();
        note.lowers |= lowers;
        note.shows |= shows;
    }

    fn note_try(&mut self, span: Span, given: Option<Label>, inside: Range, escaping: Option<Range>) {
        let place = self.place(span);
        let needed = escaping.map_or(Taint::NONE, |e| self.taints.without(e.hi, inside.hi));
        let taints = &mut self.taints;
        let note = self
            .tries
            .entry(place)
            .or_insert_with(|| TryState { given, needed: Taint::NONE, escapes: false });
        note.escapes |= escaping.is_some();
        note.needed = taints.union(note.needed, needed);
    }
}

/// The constants that parts of a literal are, if all of them are and stand at its own label.
fn constants(parts: &[Val], pc: Range) -> Option<Vec<Data>> {
    parts
        .iter()
        .map(|v| match &v.shape {
            Shape::Const(d) if v.label == pc => Some(d.clone()),
            _ => None,
        })
        .collect()
}
