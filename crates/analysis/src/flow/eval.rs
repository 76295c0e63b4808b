//! Functions and their calls: the rules of `docs/calculus.md` §3 and §10 over abstract labels.
//!
//! Each function body is evaluated once for every different call, up to a number of them; after that all
//! further calls of it are taken together. Rounds follow each other until nothing changes any more, so
//! recursion needs no special treatment.

use super::taint::{Cause, Range, Taint, Taints};
use super::value::{AbstractFunction, AbstractValue, CodeId, FnId, Shape};
use super::{Checked, Chosen, Options, Sink};
use core_ir::{Bound, Clearances, Code, Data, Label, LabelSpec, ModelRoutes, Name, Principals, Term, TermId};
use diagnostics::{FileId, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of visited terms.
const MAX_STEPS: u64 = 3_000_000;
/// Maximum number of rounds.
const MAX_ROUNDS: u32 = 300;
/// Maximum depth of nested calls. The unfolding of a fixpoint and its function count separately.
const MAX_DEPTH: u32 = 3_000;
/// Functions of one place that are told apart.
const MAX_FUNCTIONS: usize = 24;
/// Calls of one function that are told apart.
const MAX_CALLS: usize = 24;

/// Runs a step with enough of the stack. Between two steps there are at most 40 KB, unoptimized: `eval_inner`
/// has 18 of them.
pub(super) fn grown<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(256 * 1024, 4 * 1024 * 1024, f)
}

/// The mark of the run's own conversation; those that terms open have higher ones.
pub(super) const OUTERMOST: u32 = 1;

/// Labels that an error may have, and of the conversation that it may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Error {
    pub label: Range,
    pub conversation: Range,
}

/// State of the evaluation: the conversation's label, and the errors that may have ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub conversation: Range,
    pub error: Option<Error>,
}

/// A visited call with its result so far.
struct Call {
    function: FnId,
    argument: AbstractValue,
    pc: Range,
    conversation: Range,
    result: Option<AbstractValue>,
    after: State,
    on_stack: bool,
    round: u32,
}

#[derive(PartialEq, Eq, Hash, Clone)]
struct CallKey {
    function: FnId,
    argument: AbstractValue,
    pc: Range,
    conversation: Range,
    /// For the prelude: the place in the program that what it does is put down to.
    place: Option<Span>,
}

/// The values in scope.
pub(super) struct Env {
    pub code: CodeId,
    pub captures: Rc<Vec<AbstractValue>>,
    pub locals: Vec<AbstractValue>,
}

impl Env {
    pub(super) fn bind(&mut self, index: usize, value: AbstractValue) {
        self.locals.truncate(index);
        self.locals.push(value);
    }
}

/// Findings about a site that makes a request of the world or of a conversation.
pub(super) struct SiteState {
    pub checks: Vec<CheckState>,
    /// In all visits together.
    pub always: bool,
    pub never: bool,
    /// Models of a chain that may not see every conversation that gets here.
    pub passed_over: Vec<(Name, Label)>,
    /// True if untrusted text may reach a form (`plain`).
    pub plain: bool,
    /// True if an argument may not match its pattern.
    pub pattern: bool,
    /// True if it is open whether all who get an argument may read it (`readers`).
    pub readers: bool,
    /// True if somebody may be asked for approval.
    pub asked: bool,
    /// Arguments that untrusted data may choose.
    pub chosen: Vec<Chosen>,
    /// Arguments that the program itself wrote, where untrusted data decides whether the call is made: what
    /// is chosen is one of them at most.
    pub literals: Vec<(Chosen, Vec<Data>)>,
}

/// One bound of a site.
pub(super) struct CheckState {
    pub what: Checked,
    pub found: Range,
    pub bound: Label,
    /// True if it is a constant, whose label is that of the place where it stands.
    pub constant: bool,
    pub always: bool,
    pub never: bool,
}

/// An `endorse` or `declassify`.
#[derive(Default)]
pub(super) struct ReclassifyState {
    /// True if it may lower the label of the value.
    pub lowers: bool,
    /// True if the lowered label is the label of the result, in spite of the program counter.
    pub shows: bool,
}

/// A `try`.
pub(super) struct TryState {
    pub given: Option<Label>,
    /// Taint that errors of the body add to the program counter.
    pub needed: Taint,
    pub escapes: bool,
}

/// See the module documentation.
pub(super) struct Analysis {
    pub taints: Taints,
    pub codes: [Arc<Code>; 2],
    pub source: FileId,
    /// The last place in the program itself.
    pub blamed: Span,
    pub clearances: Clearances<Label>,
    pub routes: ModelRoutes,
    pub principals: Principals,
    pub passes_unknown: bool,
    pub funs: Vec<AbstractFunction>,
    fun_index: HashMap<AbstractFunction, FnId>,
    fun_places: HashMap<(CodeId, u32, u8), Vec<FnId>>,
    calls: Vec<Call>,
    call_index: HashMap<CallKey, usize>,
    calls_of: HashMap<FnId, Vec<usize>>,
    escaped: BTreeSet<FnId>,
    round: u32,
    changed: bool,
    depth: u32,
    pub steps: u64,
    pub gave_up: Option<(Span, &'static str)>,
    /// Parts that are not known, at which a run ends.
    pub unknown: BTreeMap<Span, Name>,
    pub sites: BTreeMap<(Span, Sink), SiteState>,
    pub reclassified: BTreeMap<Span, ReclassifyState>,
    pub tries: BTreeMap<Span, TryState>,
    /// Labels of errors that end the run wherever they happen.
    pub last_error: Option<Range>,
}

/// Possible ends of a run.
pub(super) struct End {
    pub result: Option<AbstractValue>,
    pub error: Option<Error>,
}

impl Analysis {
    pub(super) fn new(code: &Arc<Code>, mut taints: Taints, options: &Options) -> Analysis {
        let root = code.span(code.root());
        let prelude = code.globals().get(0).map_or_else(|| code.clone(), |(c, _)| c.clone());
        let mut resolve = |l: &LabelSpec| taints.lattice.resolve(l).unwrap_or_default();
        let clearances = Clearances {
            default: resolve(options.clearance.as_ref().unwrap_or(&LabelSpec::TOP)),
            named: options.clearances.iter().map(|(n, l)| (n.clone(), resolve(l))).collect(),
        };
        Analysis {
            taints,
            codes: [code.clone(), prelude],
            source: root.file,
            blamed: root,
            clearances,
            routes: options.routes.clone(),
            principals: options.principals.clone(),
            passes_unknown: options.passes_unknown,
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
            steps: MAX_STEPS,
            gave_up: None,
            unknown: BTreeMap::new(),
            sites: BTreeMap::new(),
            reclassified: BTreeMap::new(),
            tries: BTreeMap::new(),
            last_error: None,
        }
    }

    /// Evaluates the code, and applies its value to data if it is to be applied, until nothing changes.
    pub(super) fn run(&mut self, applied: bool) -> End {
        loop {
            self.round += 1;
            self.changed = false;
            self.unknown.clear();
            self.sites.clear();
            self.reclassified.clear();
            self.tries.clear();
            self.last_error = None;
            let end = self.once(applied);
            if self.round >= MAX_ROUNDS {
                self.give_up("it does not terminate");
            }
            if !self.changed || self.gave_up.is_some() {
                return end;
            }
        }
    }

    pub(super) fn give_up(&mut self, why: &'static str) {
        if self.gave_up.is_none() {
            self.gave_up = Some((self.blamed, why));
        }
    }

    pub(super) fn once(&mut self, applied: bool) -> End {
        let outermost = Range { under: OUTERMOST, ..Range::BOTTOM };
        let mut state = State { conversation: outermost, error: None };
        let root = self.codes[0].root();
        let span = self.codes[0].span(root);
        let mut env = Env { code: CodeId(0), captures: Rc::default(), locals: Vec::new() };
        let mut result = self.eval(&mut env, root, Range::BOTTOM, &mut state);
        if applied && let Some(function) = result {
            let hi = self.taints.one(span, Cause::Input, self.taints.top);
            let input = AbstractValue::data(Range::new(Label::BOTTOM, hi));
            result = self.apply(&function, input, Range::BOTTOM, span, &mut state);
        }
        // Unknown functions may call their arguments at any time and with any value.
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
        if let Some(label) = self.last_error {
            self.raise(&mut state, label);
        }
        End { result, error: state.error }
    }

    /// Anything, with any label.
    pub(super) fn anything(&mut self, span: Span) -> AbstractValue {
        let hi = self.taints.one(span, Cause::Generated, self.taints.top);
        AbstractValue { label: Range::new(Label::BOTTOM, hi), inner: hi, shape: Shape::unknown() }
    }

    pub(super) fn escape(&mut self, v: &AbstractValue) {
        let mut fns = BTreeSet::new();
        v.shape.functions(&mut fns);
        let before = self.escaped.len();
        self.escaped.extend(fns);
        self.changed |= self.escaped.len() != before;
    }

    pub(super) fn code(&self, id: CodeId) -> Arc<Code> {
        self.codes[usize::from(id.0)].clone()
    }

    /// A place that means something to the author: in the prelude, that of the call from the program.
    pub(super) fn place(&mut self, span: Span) -> Span {
        if span.file == self.source {
            self.blamed = span;
        }
        self.blamed
    }

    // ----- labels -----

    pub(super) fn join(&mut self, a: Range, b: Range) -> Range {
        self.taints.join(a, b)
    }

    /// `pc ⊔ deep V`.
    pub(super) fn blame(&mut self, pc: Range, v: &AbstractValue) -> Range {
        let deep = v.deep_range(&mut self.taints);
        self.join(pc, deep)
    }

    /// A label that stands in a signature or in the text.
    pub(super) fn exact(&mut self, span: Span, cause: Cause, label: Label) -> Range {
        Range::new(label, self.taints.one(span, cause, label))
    }

    pub(super) fn raise(&mut self, state: &mut State, label: Range) {
        let conversation = state.conversation;
        self.raise_in(state, Error { label, conversation });
    }

    pub(super) fn raise_in(&mut self, state: &mut State, error: Error) {
        state.error = Some(match state.error {
            None => error,
            Some(e) => Error {
                label: self.taints.either(e.label, error.label),
                conversation: self.taints.either_conversation(e.conversation, error.conversation),
            },
        });
    }

    /// One of several ways, each evaluated from the same state.
    pub(super) fn one_of<T>(
        &mut self,
        state: &mut State,
        ways: Vec<T>,
        mut each: impl FnMut(&mut Self, T, &mut State) -> Option<AbstractValue>,
    ) -> Option<AbstractValue> {
        let before = state.conversation;
        let mut result: Option<(AbstractValue, Range)> = None;
        for way in ways {
            let mut after = State { conversation: before, error: None };
            let value = each(self, way, &mut after);
            if let Some(e) = after.error {
                self.raise_in(state, e);
            }
            if let Some(v) = value {
                result = Some(match result {
                    None => (v, after.conversation),
                    Some((w, c)) => (
                        AbstractValue::either(&mut self.taints, &w, &v),
                        self.taints.either_conversation(c, after.conversation),
                    ),
                });
            }
        }
        let (value, conversation) = result?;
        state.conversation = conversation;
        Some(value)
    }

    // ----- functions -----

    pub(super) fn function(&mut self, fun: AbstractFunction, label: Range) -> AbstractValue {
        let mut inner = Taint::NONE;
        for part in fun.parts() {
            let deep = part.deep(&mut self.taints);
            inner = self.taints.union(inner, deep);
        }
        let id = self.intern(fun);
        // A function that represents several has the effects of each.
        for part in self.funs[id.0 as usize].parts().to_vec() {
            let deep = part.deep(&mut self.taints);
            inner = self.taints.union(inner, deep);
        }
        AbstractValue { label, inner, shape: Shape::Fns(Rc::new(BTreeSet::from([id]))) }
    }

    pub(super) fn intern(&mut self, fun: AbstractFunction) -> FnId {
        if let Some(id) = self.fun_index.get(&fun) {
            return *id;
        }
        let place = fun.place();
        let known = self.fun_places.entry(place).or_default();
        if known.len() < MAX_FUNCTIONS {
            let id = FnId(self.funs.len() as u32);
            known.push(id);
            self.fun_index.insert(fun.clone(), id);
            self.funs.push(fun);
            return id;
        }
        // The last function of the place represents all later ones.
        let id = known[MAX_FUNCTIONS - 1];
        let old = self.funs[id.0 as usize].clone();
        let parts: Vec<AbstractValue> = old
            .parts()
            .iter()
            .zip(fun.parts())
            .map(|(a, b)| AbstractValue::either(&mut self.taints, a, b))
            .collect();
        let joined = old.with_parts(parts);
        if joined != old {
            self.funs[id.0 as usize] = joined;
            self.changed = true;
        }
        id
    }

    /// Applies a function value; what it does is done at its label.
    pub(super) fn apply(
        &mut self,
        f: &AbstractValue,
        v: AbstractValue,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let at = f.label;
        match &f.shape {
            Shape::Fns(fns) => {
                let ways: Vec<FnId> = fns.iter().copied().collect();
                if let [only] = ways[..] {
                    return self.apply_fn(only, at, v, pc, span, state);
                }
                self.one_of(state, ways, |a, id, state| a.apply_fn(id, at, v.clone(), pc, span, state))
            }
            Shape::Top { fns, unknown } => {
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

    /// Applies one function. Functions apply each other without a term between them, the self reference of
    /// `fix (\x. x)` itself for ever: so this counts how deep it is and how often it is done, and looks after
    /// the stack.
    pub(super) fn apply_fn(
        &mut self,
        id: FnId,
        at: Range,
        v: AbstractValue,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<AbstractValue> {
        if self.gave_up.is_some() {
            return None;
        }
        self.steps = self.steps.saturating_sub(1);
        if self.depth >= MAX_DEPTH || self.steps == 0 {
            self.give_up("calls are nested too deeply in each other");
            return None;
        }
        self.depth += 1;
        let result = grown(|| self.apply_fn_inner(id, at, v, pc, span, state));
        self.depth -= 1;
        result
    }

    fn apply_fn_inner(
        &mut self,
        id: FnId,
        at: Range,
        v: AbstractValue,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<AbstractValue> {
        match self.funs[id.0 as usize].clone() {
            AbstractFunction::Closure { .. } => self.call(id, v, at, state),
            AbstractFunction::Fix { bound: Bound::Finite(0), .. } => Some(v.read(&mut self.taints, at)),
            AbstractFunction::Fix { code, term, bound, own, body } => {
                let mut ways = vec![true];
                if own && bound != Bound::Infinite {
                    ways.push(false);
                }
                self.one_of(state, ways, |a, unfold, state| {
                    if !unfold {
                        return Some(v.read(&mut a.taints, at));
                    }
                    let this = AbstractFunction::Fix { code, term, bound, own: true, body: body.clone() };
                    let this = a.function(this, at);
                    let function = body.read(&mut a.taints, at);
                    let step = a.apply(&function, this, at, span, state)?;
                    a.apply(&step, v.clone(), at, span, state)
                })
            }
            AbstractFunction::Guarded { code, term, function } => {
                // The first attempt is where the function is called; the guard calls it again.
                let mut place = span;
                self.guard(code, term, pc, state, |a, again, state| {
                    let at = a.join(at, again);
                    let function = function.read(&mut a.taints, at);
                    let attempt = a.apply(&function, v.clone(), at, place, state);
                    place = a.code(code).span(term);
                    attempt
                })
            }
            AbstractFunction::Llm { code, term, prompt } => self.ask(code, term, &prompt, &v, at, state),
            AbstractFunction::Tool { code, tool } => {
                let v = v.read(&mut self.taints, at);
                self.tool(code, tool, v, at, span, state)
            }
        }
    }

    /// Answers an `llm` term: reads its parameters and receives the reply.
    fn ask(
        &mut self,
        code: CodeId,
        term: TermId,
        prompt: &AbstractValue,
        v: &AbstractValue,
        at: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let Term::Llm(_, params) = self.code(code).term(term).clone() else { return None };
        let span = self.code(code).span(term);
        let wrong = self.blame(at, v);
        self.raise(state, wrong);
        let (a, b) = (prompt.deep_range(&mut self.taints), v.deep_range(&mut self.taints));
        let said = self.join(a, b);
        let conversation = Range { under: 0, ..self.join(at, said) };
        let mut inner = State { conversation, error: None };
        let result = self.receive(code, Some(&params), true, at, span, &mut inner);
        if let Some(e) = inner.error {
            let conversation = state.conversation;
            self.raise_in(state, Error { label: e.label, conversation });
        }
        result
    }

    /// The body of a closure, by the table of calls.
    pub(super) fn call(
        &mut self,
        function: FnId,
        argument: AbstractValue,
        pc: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let conversation = state.conversation;
        let in_prelude =
            matches!(self.funs[function.0 as usize], AbstractFunction::Closure { code: CodeId(1), .. });
        let place = in_prelude.then_some(self.blamed);
        let key = CallKey { function, argument, pc, conversation, place };
        let index = match self.call_index.get(&key) {
            Some(i) => *i,
            None => {
                let known = self.calls_of.entry(function).or_default();
                if known.len() < MAX_CALLS {
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
                    let i = known[MAX_CALLS - 1];
                    let call = &self.calls[i];
                    let (old, old_pc, old_conversation) = (call.argument.clone(), call.pc, call.conversation);
                    let argument = AbstractValue::either(&mut self.taints, &old, &key.argument);
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

    pub(super) fn carry_out(&mut self, index: usize) {
        let call = &mut self.calls[index];
        call.on_stack = true;
        call.round = self.round;
        let (function, argument, pc, conversation) =
            (call.function, call.argument.clone(), call.pc, call.conversation);
        let AbstractFunction::Closure { code, term, captures } = self.funs[function.0 as usize].clone()
        else {
            return;
        };
        let Term::Abs(abs) = self.code(code).term(term).clone() else { return };
        let blamed = self.blamed;
        let mut env = Env { code, captures, locals: vec![argument] };
        let mut state = State { conversation, error: None };
        let result = self.eval(&mut env, abs.body, pc, &mut state);
        self.blamed = blamed;

        let call = &self.calls[index];
        let (old, before) = (call.result.clone(), call.after);
        let mut after = before;
        if let Some(e) = state.error {
            self.raise_in(&mut after, e);
        }
        let result = match (&old, result) {
            (Some(o), Some(r)) => {
                after.conversation = self.taints.either_conversation(before.conversation, state.conversation);
                Some(AbstractValue::either(&mut self.taints, o, &r))
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
}
