//! The walk over a term: one visit for each subterm, which gives its type and adds its constraints.

use super::effects::{Atom, EffectNode};
use super::solve::{
    ANY_RECORD, BOOL, DATA, DYN, Field, Kinds, LABEL, NULL, NUM, Node, SIZED, STR, Solver, T, UNIT, Use,
};
use super::{Mistake, Why, codes};
use core_ir::{
    Abs, Bound, Code, Data, IfSugar, ModelParams, NOTHING_WAITS, Name, Prim, Recv, Slot, StoreDecl, Term,
    TermId, Type,
};
use diagnostics::Span;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Type of a variable.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    Mono(T),
    /// A closed function: each use has a copy of what was made since these numbers.
    Poly(T, u32, u32),
}

/// The variables in scope of one activation.
pub(super) struct Env {
    locals: Vec<Entry>,
    captures: Rc<[Entry]>,
}

impl Env {
    pub(super) fn empty() -> Env {
        Env { locals: Vec::new(), captures: Rc::new([]) }
    }
}

/// A definition of the prelude.
enum Global {
    /// A definition in progress: its type, its number in the order of discovery, and the lowest that it
    /// reaches.
    Open(T, usize),
    Done(Entry),
}

/// The branches of a `par`, to be compared when effects are known.
pub(super) struct ParBranches {
    pub(super) at: Span,
    pub(super) branches: Vec<EffectNode>,
}

pub(super) struct Infer<'a> {
    pub(super) s: Solver,
    pub(super) code: &'a Code,
    globals: HashMap<u32, Global>,
    /// The definitions of the prelude that are open, with the lowest number that each reaches, and the
    /// numbers of types and effects when it was begun.
    stack: Vec<(u32, usize, u32, u32)>,
    pub(super) pars: Vec<ParBranches>,
    tools: HashMap<(bool, u32), T>,
    /// True while a term of the prelude is being inferred.
    in_prelude: bool,
    /// The variable that the last join made, if it made one.
    joined: Option<T>,
    /// Types of subterms, if requested.
    pub(super) steps: Option<Vec<(TermId, T)>>,
}

fn why(span: Span, what: &'static str) -> Why {
    Why::new(span, what)
}

impl<'a> Infer<'a> {
    pub(super) fn new(code: &'a Code) -> Infer<'a> {
        Infer {
            s: Solver::new(),
            code,
            globals: HashMap::new(),
            stack: Vec::new(),
            pars: Vec::new(),
            tools: HashMap::new(),
            in_prelude: false,
            joined: None,
            steps: None,
        }
    }

    fn mistake(&mut self, code: &'static str, message: impl Into<String>, at: Span) {
        let at = why(at, "");
        self.s.mistakes.push(Mistake { code, message: message.into(), at, from: at, help: None });
    }

    /// `a` is used as `b` at a place.
    fn flows(&mut self, a: T, b: T, at: Span, what: &'static str) {
        let w = why(at, what);
        self.s.flows(a, b, w, w);
    }

    fn used(&mut self, a: T, how: Use, at: Span, what: &'static str) {
        let b = self.s.uses(how);
        self.flows(a, b, at, what);
    }

    /// Returns a type that contains all of these.
    fn join(&mut self, ts: &[(T, Span)]) -> T {
        self.join_into(ts, None)
    }

    /// The same for branches of a choice. One that ends in a choice has a variable to which nothing else
    /// refers: it becomes that of the whole, or each value of n nested choices would flow through n of them.
    fn join_into(&mut self, ts: &[(T, Span)], inner: Option<T>) -> T {
        self.joined = None;
        if let [(first, _), rest @ ..] = ts
            && rest.iter().all(|(t, _)| t == first)
        {
            return *first;
        }
        let v = inner.unwrap_or_else(|| self.s.var());
        for (t, at) in ts.iter().filter(|(t, _)| *t != v) {
            self.flows(*t, v, *at, "");
        }
        self.joined = Some(v);
        v
    }

    /// The variable of a choice that a term ends in, just after the type of the term was inferred.
    fn inner_choice(&self, code: &Code, mut id: TermId, t: T) -> Option<T> {
        loop {
            match code.term(id) {
                Term::Let { body, .. } => id = *body,
                Term::If(..) | Term::Case { .. } => return self.joined.filter(|v| *v == t),
                _ => return None,
            }
        }
    }

    pub(super) fn infer(&mut self, code: &Code, id: TermId, env: &mut Env, eff: EffectNode) -> T {
        let t = stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.infer_inner(code, id, env, eff));
        if let Some(steps) = &mut self.steps
            && std::ptr::eq(code, self.code)
        {
            steps.push((id, t));
        }
        t
    }

    fn entry(&mut self, entry: Entry, at: Span) -> T {
        match entry {
            Entry::Mono(t) => t,
            Entry::Poly(t, from, effect) => match self.s.instantiate(t, from, effect) {
                Some(t) => t,
                // Too large to be copied: unknown.
                None => {
                    self.s.dynamic.push(why(at, ""));
                    DYN
                }
            },
        }
    }

    fn slot(env: &Env, slot: Slot) -> Option<Entry> {
        match slot {
            Slot::Local(i) => env.locals.get(i as usize).copied(),
            Slot::Captured(i) => env.captures.get(i as usize).copied(),
            Slot::Global(_) => None,
        }
    }

    fn variable(&mut self, code: &Code, env: &Env, slot: Slot, at: Span) -> T {
        match slot {
            Slot::Global(i) => self.global(code, i, at),
            slot => match Infer::slot(env, slot) {
                Some(entry) => self.entry(entry, at),
                None => DYN,
            },
        }
    }

    /// The type of a definition of the prelude. Definitions that refer to each other are one group (found as
    /// Tarjan does); a group is polymorphic for those after it.
    fn global(&mut self, code: &Code, i: u32, at: Span) -> T {
        match self.globals.get(&i) {
            Some(Global::Done(entry)) => {
                let entry = *entry;
                return self.entry(entry, at);
            }
            Some(Global::Open(t, number)) => {
                let (t, number) = (*t, *number);
                if let Some((_, low, ..)) = self.stack.last_mut() {
                    *low = (*low).min(number);
                }
                return t;
            }
            None => {}
        }
        // The prelude's own code does not name its prelude: its global variables are of the same one.
        let globals = if self.in_prelude { self.code.globals().clone() } else { code.globals().clone() };
        let Some((defined, term)) = globals.get(i) else { return DYN };
        let (from, effect) = (self.s.len(), self.s.effects.len());
        let t = self.s.var();
        let number = self.stack.len();
        self.globals.insert(i, Global::Open(t, number));
        self.stack.push((i, number, from, effect));
        let outer = std::mem::replace(&mut self.in_prelude, true);
        let defined = defined.clone();
        let eff = self.s.effects.node();
        let found = self.infer(&defined, term, &mut Env::empty(), eff);
        self.flows(found, t, defined.span(term), "");
        self.in_prelude = outer;
        let Some((_, low, from, effect)) = self.stack.get(number).copied() else { return t };
        if low < number {
            // Part of the group of one below.
            if let Some((_, below, ..)) = self.stack.get_mut(number - 1) {
                *below = (*below).min(low);
            }
            return t;
        }
        for (j, ..) in self.stack.split_off(number) {
            if let Some(Global::Open(t, _)) = self.globals.get(&j) {
                let done = Global::Done(Entry::Poly(*t, from, effect));
                self.globals.insert(j, done);
            }
        }
        self.entry(Entry::Poly(t, from, effect), at)
    }

    fn effect(&mut self, eff: EffectNode, atom: Atom) {
        self.s.effects.does(eff, atom);
    }

    /// A function applied to an argument.
    pub(super) fn apply(&mut self, f: T, x: T, eff: EffectNode, f_at: Span, x_at: Span, at: Span) -> T {
        let result = self.s.var();
        let latent = self.s.effects.node();
        self.s.effects.contains(eff, latent, why(at, "this call"));
        let call = self.s.add(Node::Fun(x, latent, result));
        let applied = Why { span: f_at, what: "this is applied", argument: x_at };
        self.s.flows(f, call, why(f_at, ""), applied);
        result
    }

    fn function(&mut self, code: &Code, id: TermId, abs: &Abs, env: &Env) -> T {
        let captures = abs
            .captures
            .iter()
            .map(|slot| Infer::slot(env, *slot).unwrap_or(Entry::Mono(DYN)))
            .collect::<Rc<[Entry]>>();
        let param = match &abs.ty {
            Some(ty) => self.s.declared(ty),
            None => self.s.var(),
        };
        let mut inner = Env { locals: vec![Entry::Mono(param)], captures };
        let eff = self.s.effects.node();
        let result = match code.stages(id) {
            // A composition may have any number of stages, which do not nest.
            Some(stages) => {
                let mut t = param;
                let mut at = code.span(id);
                for stage in stages {
                    let span = code.span(stage);
                    let f = self.infer(code, stage, &mut inner, eff);
                    t = self.apply(f, t, eff, span, at, span);
                    at = span;
                }
                t
            }
            None => self.infer(code, abs.body, &mut inner, eff),
        };
        self.s.add(Node::Fun(param, eff, result))
    }

    /// Returns true if every type captured by a function is already solved.
    fn is_closed(abs: &Abs, env: &Env) -> bool {
        abs.captures.iter().all(|slot| matches!(Infer::slot(env, *slot), Some(Entry::Poly(..))))
    }

    fn bound(&mut self, code: &Code, id: TermId, env: &mut Env, eff: EffectNode) -> Entry {
        match code.term(id) {
            Term::Abs(abs) if Infer::is_closed(abs, env) && self.stack.is_empty() => {
                let (from, effect) = (self.s.len(), self.s.effects.len());
                let known = self.steps.as_ref().map_or(0, Vec::len);
                let t = self.infer(code, id, env, eff);
                // Values flow into copies of these types, one for each use.
                if let Some(steps) = &mut self.steps {
                    steps.truncate(known);
                }
                Entry::Poly(t, from, effect)
            }
            _ => Entry::Mono(self.infer(code, id, env, eff)),
        }
    }

    fn infer_inner(&mut self, code: &Code, id: TermId, env: &mut Env, eff: EffectNode) -> T {
        let at = code.span(id);
        match code.term(id) {
            Term::Var(_, slot) => self.variable(code, env, *slot, at),
            Term::Lit(d) => self.s.literal(d, true),
            Term::Record(fields) => {
                let mut out = Vec::with_capacity(fields.len());
                for (name, e) in fields {
                    let ty = self.infer(code, *e, env, eff);
                    out.push(Field { name: name.clone(), ty, may_lack: false });
                }
                self.s.add(Node::Record { fields: out.into(), exact: true })
            }
            Term::Args(tool, fields) => {
                let mut out = Vec::with_capacity(fields.len());
                for (name, e) in fields {
                    let ty = self.infer(code, *e, env, eff);
                    out.push(Field { name: name.clone(), ty, may_lack: false });
                }
                let tool = code.tool(*tool).name.clone();
                self.s.add(Node::Args { tool, fields: out.into() })
            }
            Term::List(items) => {
                let ts = items.iter().map(|e| self.infer(code, *e, env, eff)).collect();
                self.list(code, items, ts)
            }
            Term::Par(most, items) => {
                let mut branches = Vec::with_capacity(items.len());
                let mut ts = Vec::with_capacity(items.len());
                for e in items {
                    let own = self.s.effects.node();
                    self.s.effects.contains(eff, own, why(at, ""));
                    ts.push(self.infer(code, *e, env, own));
                    branches.push(own);
                }
                // One after another they may share a key.
                if branches.len() > 1 && *most != Some(1) {
                    self.pars.push(ParBranches { at, branches });
                }
                self.list(code, items, ts)
            }
            Term::Each(_, f, list) => {
                let ft = self.infer(code, *f, env, eff);
                let xs = self.infer(code, *list, env, eff);
                let item = self.s.var();
                let items = self.s.add(Node::List(item));
                self.flows(xs, items, code.span(*list), "the list of `each`");
                let own = self.s.effects.node();
                self.s.effects.contains(eff, own, why(at, ""));
                let result = self.apply(ft, item, own, code.span(*f), code.span(*list), at);
                // Any two of its branches do the same.
                self.pars.push(ParBranches { at, branches: vec![own, own] });
                self.s.add(Node::List(result))
            }
            Term::Abs(abs) => self.function(code, id, abs, env),
            Term::App(f, x) => {
                let ft = self.infer(code, *f, env, eff);
                let xt = self.infer(code, *x, env, eff);
                self.apply(ft, xt, eff, code.span(*f), code.span(*x), at)
            }
            Term::Let { bindings, body, .. } => {
                let depth = code.locals(id);
                for (i, (_, e)) in bindings.iter().enumerate() {
                    let entry = self.bound(code, *e, env, eff);
                    env.locals.truncate(depth + i);
                    env.locals.push(entry);
                }
                self.infer(code, *body, env, eff)
            }
            Term::Field(e, name) => {
                let t = self.infer(code, *e, env, eff);
                let result = self.s.var();
                self.used(t, Use::Field { name: name.clone(), result }, at, "a field is read");
                result
            }
            Term::Index(a, b) => {
                let t = self.infer(code, *a, env, eff);
                let index = self.infer(code, *b, env, eff);
                let key = match code.term(*b) {
                    Term::Lit(d) => Some(d.clone()),
                    _ => None,
                };
                let result = self.s.var();
                self.used(t, Use::Index { index, key, result }, at, "an item is read");
                result
            }
            Term::With(a, name, b) => {
                let t = self.infer(code, *a, env, eff);
                let value = self.infer(code, *b, env, eff);
                let result = self.s.var();
                self.used(t, Use::With { name: name.clone(), value, result }, at, "a field is set");
                result
            }
            Term::Prim(prim, operands) => self.prim(code, *prim, operands, env, eff, at),
            Term::Pair(a, b) => {
                let a = self.infer(code, *a, env, eff);
                let b = self.infer(code, *b, env, eff);
                self.s.add(Node::Pair(a, b))
            }
            Term::Fst(e) | Term::Snd(e) => {
                let t = self.infer(code, *e, env, eff);
                let (a, b) = (self.s.var(), self.s.var());
                let pair = self.s.add(Node::Pair(a, b));
                self.flows(t, pair, at, "a side of a pair is read");
                if matches!(code.term(id), Term::Fst(_)) { a } else { b }
            }
            Term::Tag(name, payload) => {
                let t = match payload {
                    Some(e) => self.infer(code, *e, env, eff),
                    None => NULL,
                };
                self.s.add(Node::Variant(Rc::new([(name.clone(), t)])))
            }
            Term::If(c, a, b, sugar) => self.choice(code, (*c, *a, *b), *sugar, env, eff),
            Term::Case { scrutinee, branches, default } => {
                let t = self.infer(code, *scrutinee, env, eff);
                let binders: Vec<Option<T>> =
                    branches.iter().map(|b| b.binder.is_some().then(|| self.s.var())).collect();
                let cases = branches.iter().zip(&binders).map(|(b, t)| (b.tag.clone(), *t)).collect();
                self.used(t, Use::Cases { branches: cases, default: default.is_some() }, at, "this `case`");
                let mut results = Vec::with_capacity(branches.len() + 1);
                let mut inner = None;
                for (branch, binder) in branches.iter().zip(binders) {
                    env.locals.truncate(code.locals(id));
                    env.locals.extend(binder.map(Entry::Mono));
                    let t = self.infer(code, branch.body, env, eff);
                    inner = self.inner_choice(code, branch.body, t).or(inner);
                    results.push((t, code.span(branch.body)));
                }
                if let Some(e) = default {
                    env.locals.truncate(code.locals(id));
                    let t = self.infer(code, *e, env, eff);
                    inner = self.inner_choice(code, *e, t).or(inner);
                    results.push((t, code.span(*e)));
                }
                self.join_into(&results, inner)
            }
            Term::Classify(tags, e) => {
                let t = self.infer(code, *e, env, eff);
                self.used(t, Use::Classify, at, "what is classified");
                self.s.add(Node::Variant(tags.iter().map(|t| (t.clone(), NULL)).collect()))
            }
            Term::Fix { bound, body, .. } => {
                let f = self.infer(code, *body, env, eff);
                self.fix(f, *bound, code.span(*body), at)
            }
            Term::Guard { term, pred, .. } => {
                let t = self.infer(code, *term, env, eff);
                let result = self.s.var();
                self.used(t, Use::Guard { pred: Arc::new(pred.clone()), result }, at, "this guard");
                result
            }
            Term::Mem(store, e) => {
                let decl = code.store(*store).clone();
                self.keys(&decl, at);
                self.infer(code, *e, env, eff)
            }
            Term::Recall(_, key) => match key.and_then(|(s, i)| self.key(code, s, i)) {
                Some((store, name, ty)) => {
                    self.effect(eff, Atom::Read(store, name));
                    let t = self.s.declared(&ty);
                    if matches!(self.s.node(t), Node::Option(_) | Node::Dyn) {
                        t
                    } else {
                        self.s.add(Node::Option(t))
                    }
                }
                None => DYN,
            },
            Term::Remember(_, key, e) => {
                let t = self.infer(code, *e, env, eff);
                if let Some((store, name, ty)) = key.and_then(|(s, i)| self.key(code, s, i)) {
                    self.effect(eff, Atom::Write(store, name));
                    let want = self.s.declared(&ty);
                    self.flows(t, want, code.span(*e), "what is remembered");
                    self.flows(t, DATA, code.span(*e), "what is remembered");
                }
                UNIT
            }
            Term::Choose(_, a, b) => {
                self.effect(eff, Atom::Sample);
                let left = self.infer(code, *a, env, eff);
                let right = self.infer(code, *b, env, eff);
                self.join(&[(left, code.span(*a)), (right, code.span(*b))])
            }
            Term::Llm(prompt, params) => {
                let t = self.infer(code, *prompt, env, eff);
                self.flows(t, STR, code.span(*prompt), "a prompt");
                let own = self.s.effects.node();
                self.effect(own, Atom::Llm(model(params)));
                let result = self.reply(code, params);
                // Anything can be shown to a model.
                self.s.add(Node::Fun(DYN, own, result))
            }
            Term::Tool(tool) => {
                if let Some(t) = self.tools.get(&(self.in_prelude, tool.0)) {
                    return *t;
                }
                let decl = code.tool(*tool);
                if decl.policy.is_some() {
                    // The policy is a program of its own, which is decided when it runs.
                    self.s.dynamic.push(why(at, ""));
                }
                let own = self.s.effects.node();
                self.effect(own, Atom::Tool(decl.name.clone()));
                let params = decl
                    .params
                    .iter()
                    .map(|p| {
                        let ty = self.s.declared(&p.ty);
                        // Only data can be handed to a tool.
                        let ty = if ty == DYN { DATA } else { ty };
                        let may_lack = matches!(p.ty, Type::Option(_));
                        Field { name: p.name.clone(), ty, may_lack }
                    })
                    .collect();
                let args = self.s.uses(Use::Args { tool: decl.name.clone(), params });
                let result = self.s.declared(&decl.result);
                let t = self.s.add(Node::Fun(args, own, result));
                self.tools.insert((self.in_prelude, tool.0), t);
                t
            }
            Term::Send(_, e) => {
                self.infer(code, *e, env, eff);
                self.effect(eff, Atom::Conversation);
                UNIT
            }
            Term::Clear => {
                self.effect(eff, Atom::Conversation);
                UNIT
            }
            Term::Recv(Recv::Data(params)) => {
                self.effect(eff, Atom::Conversation);
                // A pending call was received with its reply.
                if !params.waiting {
                    self.effect(eff, Atom::Llm(model(params)));
                }
                self.reply(code, params)
            }
            Term::Recv(Recv::Code) => {
                // Code written by the model is run: it may have any effect and return anything.
                self.s.effects.does_anything(eff);
                self.s.dynamic.push(why(at, ""));
                self.s.add(Node::List(DYN))
            }
            Term::Fork(e) | Term::Within(_, e) => self.infer(code, *e, env, eff),
            Term::Fresh(e) => {
                let own = self.s.effects.node();
                self.s.effects.contains_fresh(eff, own);
                self.infer(code, *e, env, own)
            }
            Term::Relabel(l, e) | Term::Endorse(l, e) | Term::Declassify(l, e) => {
                self.label(code, *l, env, eff);
                self.infer(code, *e, env, eff)
            }
            Term::Test(l, e) => {
                self.label(code, *l, env, eff);
                self.infer(code, *e, env, eff);
                BOOL
            }
            Term::Assert(l, e) => {
                self.label(code, *l, env, eff);
                self.infer(code, *e, env, eff);
                UNIT
            }
            Term::Try { label, body, handler, catches, .. } => {
                self.label(code, *label, env, eff);
                let t = self.infer(code, *body, env, eff);
                env.locals.truncate(code.locals(id));
                env.locals.push(Entry::Mono(if catches.gives_code() { DYN } else { STR }));
                let u = self.infer(code, *handler, env, eff);
                self.join(&[(t, code.span(*body)), (u, code.span(*handler))])
            }
            Term::Fail(e) => {
                self.infer(code, *e, env, eff);
                // It never gives a value, so its type is that of nothing.
                self.s.var()
            }
            Term::Check(_, ty, e) => {
                let t = self.infer(code, *e, env, eff);
                if let (Node::Fun(..), false) = (self.s.node(t), contains_function(ty)) {
                    self.mistake(codes::FUNCTION_AS_DATA, format!("a function is not data of type {ty}"), at);
                }
                self.s.declared(ty)
            }
            Term::Unknown(_) => {
                self.s.dynamic.push(why(at, ""));
                self.s.effects.does_anything(eff);
                DYN
            }
        }
    }

    fn list(&mut self, code: &Code, items: &[TermId], ts: Vec<T>) -> T {
        /// Longer lists are not followed item by item.
        const MAX_ITEMS: usize = 256;
        if ts.len() <= MAX_ITEMS {
            return self.s.add(Node::Tuple(ts.into()));
        }
        let v = self.s.var();
        for (t, e) in ts.into_iter().zip(items) {
            let t = match self.s.node(t) {
                Node::Lit(Data::Str(_)) => STR,
                Node::Lit(_) => NUM,
                _ => t,
            };
            self.flows(t, v, code.span(*e), "an item");
        }
        self.s.add(Node::List(v))
    }

    fn label(&mut self, code: &Code, l: TermId, env: &mut Env, eff: EffectNode) {
        let t = self.infer(code, l, env, eff);
        self.flows(t, LABEL, code.span(l), "a label");
    }

    /// `fix[n] : ((σ → τ) → (σ → τ)) → (σ → τ)` with `σ <: τ` if the bound is finite, because `fix[0]` gives
    /// back its argument. The seed's rule is the case `σ = τ`.
    fn fix(&mut self, f: T, bound: Bound, f_at: Span, at: Span) -> T {
        let (param, result) = (self.s.var(), self.s.var());
        if bound != Bound::Infinite {
            self.flows(param, result, at, "the argument, given back when the bound is reached");
        }
        let all = self.s.effects.node();
        if bound == Bound::Finite(0) {
            return self.s.add(Node::Fun(param, all, result));
        }
        let making = self.s.effects.node();
        let running = self.s.effects.node();
        self.s.effects.contains(all, making, why(at, ""));
        self.s.effects.contains(all, running, why(at, ""));
        let own = self.s.add(Node::Fun(param, all, result));
        let step = self.s.add(Node::Fun(param, running, result));
        let want = self.s.add(Node::Fun(own, making, step));
        self.flows(f, want, f_at, "the body of `fix`, which takes itself and an argument");
        self.s.add(Node::Fun(param, all, result))
    }

    fn key(&self, code: &Code, store: core_ir::StoreId, key: u32) -> Option<(Name, Name, Type)> {
        let decl = code.store(store);
        let key = decl.keys.get(key as usize)?;
        // Stores without a name are told apart by their number.
        let store = if decl.name.is_empty() { format!("#{}", store.0).into() } else { decl.name.clone() };
        Some((store, key.name.clone(), key.ty.clone()))
    }

    /// Store typing: keys hold data, and what they hold at first is of their type.
    fn keys(&mut self, decl: &StoreDecl, at: Span) {
        for key in &decl.keys {
            if contains_function(&key.ty) {
                let message = format!("the key `{}` is to hold a function: {}", key.name, key.ty);
                self.mistake(codes::KEY, message, at);
            } else if let Some(d) = &key.initial
                && let Err((path, cause)) = key.ty.check(d)
            {
                let message =
                    format!("what the key `{}` holds at first does not fit: {path}: {cause}", key.name);
                self.mistake(codes::KEY, message, at);
            }
        }
    }

    /// Returns the type that a model's reply is decoded to.
    fn reply(&mut self, code: &Code, params: &ModelParams) -> T {
        let answer = match &params.result {
            Some(ty) => self.s.declared(ty),
            None => STR,
        };
        if params.tools.is_empty() && !params.waiting {
            return answer;
        }
        let mut tags: Vec<(Name, T)> = Vec::with_capacity(params.tools.len() + 1);
        for tool in &params.tools {
            let decl = code.tool(*tool);
            let fields: Vec<(Name, Type)> =
                decl.params.iter().map(|p| (p.name.clone(), p.ty.clone())).collect();
            let fields = self.s.declared_fields(&fields);
            // A call with other arguments does not decode.
            let t = self.s.add(Node::Record { fields, exact: true });
            tags.push((decl.name.clone(), t));
        }
        tags.push(if params.waiting { (NOTHING_WAITS.into(), NULL) } else { ("final".into(), answer) });
        self.s.add(Node::Variant(tags.into()))
    }

    fn choice(
        &mut self,
        code: &Code,
        (c, a, b): (TermId, TermId, TermId),
        sugar: IfSugar,
        env: &mut Env,
        eff: EffectNode,
    ) -> T {
        let t = self.infer(code, c, env, eff);
        let what = match sugar {
            IfSugar::Plain => "a condition",
            IfSugar::And => "an operand of `&&`",
            IfSugar::Or => "an operand of `||`",
        };
        self.flows(t, BOOL, code.span(c), what);
        let mut results = Vec::with_capacity(2);
        let mut inner = None;
        for (e, holds) in [(a, true), (b, false)] {
            let mut facts = Vec::new();
            learn(code, c, holds, &mut facts, 0);
            let mut before = Vec::with_capacity(facts.len());
            // The record that lacks a field, where that is what the branch is for.
            let mut lacking = None;
            for (slot, fact) in facts {
                let Some(Entry::Mono(t)) = Infer::slot(env, slot) else { continue };
                let result = self.s.var();
                let how = match fact {
                    Fact::OneOf(items) => {
                        for d in items {
                            let t = self.s.literal(&d, true);
                            self.flows(t, result, code.span(c), "");
                        }
                        before.push((slot, t));
                        env.set(slot, Entry::Mono(result));
                        continue;
                    }
                    Fact::Kind(keep) => Use::Filter { keep, result },
                    Fact::Has(name) => Use::Present { name, result },
                    Fact::Lacks(name) => {
                        lacking = Some((t, name));
                        continue;
                    }
                };
                self.used(t, how, code.span(c), "");
                before.push((slot, t));
                env.set(slot, Entry::Mono(result));
            }
            let mut t = self.infer(code, e, env, eff);
            if let Some((record, name)) = lacking {
                let result = self.s.var();
                self.used(record, Use::Lacks { name, value: t, result }, code.span(c), "");
                t = result;
            }
            inner = self.inner_choice(code, e, t).or(inner);
            results.push((t, code.span(e)));
            for (slot, t) in before.into_iter().rev() {
                env.set(slot, Entry::Mono(t));
            }
        }
        self.join_into(&results, inner)
    }

    fn prim(
        &mut self,
        code: &Code,
        prim: Prim,
        operands: &[TermId],
        env: &mut Env,
        eff: EffectNode,
        at: Span,
    ) -> T {
        let ts: Vec<T> = operands.iter().map(|e| self.infer(code, *e, env, eff)).collect();
        if prim.arity().is_some_and(|n| n != ts.len()) {
            let message = format!("`{}` has the wrong number of operands", prim.name());
            self.mistake(codes::MISMATCH, message, at);
            return DYN;
        }
        let place = |i: usize| operands.get(i).map_or(at, |e| code.span(*e));
        let what = operand_of(prim);
        let need = |s: &mut Self, i: usize, t: T| s.flows(ts[i], t, place(i), what);
        match prim {
            Prim::Neg => {
                need(self, 0, NUM);
                NUM
            }
            Prim::Not => {
                need(self, 0, BOOL);
                BOOL
            }
            Prim::Sub | Prim::Mul | Prim::Div | Prim::Rem => {
                need(self, 0, NUM);
                need(self, 1, NUM);
                NUM
            }
            Prim::Add => {
                let result = self.s.var();
                self.used(ts[0], Use::Plus { peer: ts[1], result }, at, what);
                self.used(ts[1], Use::Plus { peer: ts[0], result }, at, what);
                result
            }
            Prim::Eq | Prim::Ne => {
                need(self, 0, DATA);
                need(self, 1, DATA);
                BOOL
            }
            Prim::Lt | Prim::Le | Prim::Gt | Prim::Ge => {
                self.used(ts[0], Use::Order { peer: ts[1] }, at, what);
                self.used(ts[1], Use::Order { peer: ts[0] }, at, what);
                BOOL
            }
            Prim::Format | Prim::ToStr => STR,
            Prim::Length => {
                need(self, 0, SIZED);
                NUM
            }
            Prim::Keys => {
                need(self, 0, ANY_RECORD);
                self.s.add(Node::List(STR))
            }
            Prim::Has => {
                need(self, 0, ANY_RECORD);
                need(self, 1, STR);
                BOOL
            }
            Prim::Append => {
                let v = self.s.var();
                let list = self.s.add(Node::List(v));
                need(self, 0, list);
                self.flows(ts[1], v, place(1), "an item");
                self.s.add(Node::List(v))
            }
            Prim::Range => {
                need(self, 0, NUM);
                need(self, 1, NUM);
                self.s.add(Node::List(NUM))
            }
            Prim::IsFn
            | Prim::IsArray
            | Prim::IsRecord
            | Prim::IsStr
            | Prim::IsNum
            | Prim::IsBool
            | Prim::IsNull => BOOL,
            Prim::ToNum => {
                need(self, 0, STR);
                NUM
            }
            Prim::Lower | Prim::Upper | Prim::Trim => {
                need(self, 0, STR);
                STR
            }
            Prim::Split => {
                need(self, 0, STR);
                need(self, 1, STR);
                self.s.add(Node::List(STR))
            }
            Prim::Join => {
                let list = self.s.add(Node::List(STR));
                need(self, 0, list);
                need(self, 1, STR);
                STR
            }
            Prim::Contains => {
                self.used(ts[0], Use::Contains { item: ts[1] }, place(0), what);
                BOOL
            }
            Prim::Slice => {
                need(self, 1, NUM);
                need(self, 2, NUM);
                let result = self.s.var();
                self.used(ts[0], Use::Slice { result }, place(0), what);
                result
            }
            Prim::Flatten => ts[0],
            Prim::ToJson => {
                need(self, 0, DATA);
                STR
            }
            Prim::FromJson => {
                need(self, 0, STR);
                DYN
            }
            Prim::Py => DYN,
        }
    }
}

impl Env {
    /// Another type for a variable, for as long as a condition is known to hold.
    fn set(&mut self, slot: Slot, entry: Entry) {
        match slot {
            Slot::Local(i) => {
                if let Some(e) = self.locals.get_mut(i as usize) {
                    *e = entry;
                }
            }
            Slot::Captured(i) => {
                let mut captures = self.captures.to_vec();
                if let Some(e) = captures.get_mut(i as usize) {
                    *e = entry;
                }
                self.captures = captures.into();
            }
            Slot::Global(_) => {}
        }
    }
}

/// Fact about a variable that a condition establishes.
enum Fact {
    Kind(Kinds),
    Has(Name),
    Lacks(Name),
    OneOf(Vec<Data>),
}

/// Collects the facts that hold where a condition holds, or, if `holds` is false, where it doesn't.
fn learn(code: &Code, c: TermId, holds: bool, facts: &mut Vec<(Slot, Fact)>, depth: u32) {
    /// Conditions nested deeper than this tell nothing.
    const MAX_DEPTH: u32 = 20;
    if depth > MAX_DEPTH {
        return;
    }
    let variable = |e: TermId| match code.term(e) {
        Term::Var(_, slot @ (Slot::Local(_) | Slot::Captured(_))) => Some(*slot),
        _ => None,
    };
    let is_null = |e: TermId| matches!(code.term(e), Term::Lit(Data::Null));
    match code.term(c) {
        Term::Prim(Prim::Not, es) => {
            if let [e] = es[..] {
                learn(code, e, !holds, facts, depth + 1);
            }
        }
        Term::If(a, b, _, IfSugar::And) if holds => {
            learn(code, *a, true, facts, depth + 1);
            learn(code, *b, true, facts, depth + 1);
        }
        Term::If(a, _, b, IfSugar::Or) if !holds => {
            learn(code, *a, false, facts, depth + 1);
            learn(code, *b, false, facts, depth + 1);
        }
        Term::Prim(prim @ (Prim::Eq | Prim::Ne), es) => {
            if let [a, b] = es[..] {
                let slot = match (is_null(a), is_null(b)) {
                    (false, true) => variable(a),
                    (true, false) => variable(b),
                    _ => None,
                };
                let null = (*prim == Prim::Eq) == holds;
                let kinds = if null { Kinds::NULL } else { Kinds::NULL.but() };
                facts.extend(slot.map(|s| (s, Fact::Kind(kinds))));
            }
        }
        Term::Prim(Prim::Contains, es) => {
            if let ([list, e], true) = (&es[..], holds)
                && let (Some(slot), Some(items)) = (variable(*e), literals(code, *list))
            {
                facts.push((slot, Fact::OneOf(items)));
            }
        }
        Term::Prim(Prim::Has, es) => {
            if let [a, b] = es[..]
                && let (Some(slot), Term::Lit(Data::Str(name))) = (variable(a), code.term(b))
            {
                let name = Name::from(&**name);
                facts.push((slot, if holds { Fact::Has(name) } else { Fact::Lacks(name) }));
            }
        }
        Term::Prim(prim, es) => {
            let Some(kind) = tested(*prim) else { return };
            if let [e] = es[..]
                && let Some(slot) = variable(e)
            {
                facts.push((slot, Fact::Kind(if holds { kind } else { kind.but() })));
            }
        }
        // The prelude's names for the same: `is_null x`.
        Term::App(f, e) => {
            let Term::Var(_, Slot::Global(i)) = code.term(*f) else { return };
            let Some((defined, term)) = code.globals().get(*i) else { return };
            let Term::Abs(abs) = defined.term(term) else { return };
            if let (Term::Prim(prim, es), Some(slot)) = (defined.term(abs.body), variable(*e))
                && let [x] = es[..]
                && matches!(defined.term(x), Term::Var(_, Slot::Local(0)))
                && let Some(kind) = tested(*prim)
            {
                facts.push((slot, Fact::Kind(if holds { kind } else { kind.but() })));
            }
        }
        _ => {}
    }
}

/// The kind of values that a primitive tests for.
fn tested(prim: Prim) -> Option<Kinds> {
    Some(match prim {
        Prim::IsNull => Kinds::NULL,
        Prim::IsStr => Kinds::STR,
        Prim::IsNum => Kinds::NUM,
        Prim::IsBool => Kinds::BOOL,
        Prim::IsArray => Kinds::LIST,
        Prim::IsRecord => Kinds::RECORD,
        Prim::IsFn => Kinds::FUN,
        _ => return None,
    })
}

/// The items of a list of literals.
fn literals(code: &Code, list: TermId) -> Option<Vec<Data>> {
    /// More than these are not kept apart.
    const MAX_ITEMS: usize = 64;
    match code.term(list) {
        Term::Lit(Data::List(items)) if items.len() <= MAX_ITEMS => Some(items.to_vec()),
        Term::List(items) if items.len() <= MAX_ITEMS => items
            .iter()
            .map(|e| match code.term(*e) {
                Term::Lit(d) => Some(d.clone()),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}

fn operand_of(prim: Prim) -> &'static str {
    match prim {
        Prim::Add => "an operand of `+`",
        Prim::Sub => "an operand of `-`",
        Prim::Mul => "an operand of `*`",
        Prim::Div => "an operand of `/`",
        Prim::Rem => "an operand of `%`",
        Prim::Eq | Prim::Ne => "what is compared",
        Prim::Lt | Prim::Le | Prim::Gt | Prim::Ge => "what is compared",
        _ => "an operand",
    }
}

fn model(params: &ModelParams) -> Name {
    params.model.clone().unwrap_or_else(|| Name::from(""))
}

/// Returns true if values of a type can contain functions.
fn contains_function(ty: &Type) -> bool {
    contains(ty, &|t| matches!(t, Type::Fun(_)))
}

/// Returns true if a part of the type satisfies `kind`.
pub(super) fn contains(ty: &Type, kind: &dyn Fn(&Type) -> bool) -> bool {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || {
        kind(ty)
            || match ty {
                Type::List(t) | Type::Option(t) => contains(t, kind),
                Type::Record(fields) | Type::Variant(fields) => fields.iter().any(|(_, t)| contains(t, kind)),
                Type::Pair(p) | Type::Map(p) => contains(&p.0, kind) || contains(&p.1, kind),
                Type::Refined(r) => contains(&r.0, kind),
                Type::Rec(r) => r.bodies().iter().any(|(_, t)| contains(t, kind)),
                _ => false,
            }
    })
}
