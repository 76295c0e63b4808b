//! Tools, models, stores and conversations: where a flow may be refused, and what is known of that.

use super::eval::{Analysis, CheckState, Env, OUTERMOST, SiteState, State, TryState};
use super::taint::{Cause, Range, Taint, Taints};
use super::value::{AbstractValue, CodeId, DataParts, FnId, Form, Params, Shape};
use super::{Checked, Choices, Chosen, Sink};
use core_ir::{
    Among, AmongSource, AnswerSink, Approve, Code, Data, Label, LabelName, Lattice, NOTHING_WAITS, Name,
    PartRules, TermId, ToolDecl, ToolId, Type,
};
use diagnostics::Span;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Values of a parameter that the program wrote itself at one place, of which more are not counted.
const MAX_LITERALS: usize = 64;

/// Parts of results that are deeper are not told apart.
const MAX_PART_DEPTH: usize = 5;

/// A label that is compared with a bound.
pub(super) struct Bounded {
    what: Checked,
    found: Range,
    /// Surely admitted up to this.
    bound: Label,
    /// Perhaps admitted up to this: a set may vouch for the integrity.
    most: Label,
    /// A constant, whose label is that of the place where it stands.
    constant: bool,
}

impl Bounded {
    pub(super) fn new(what: Checked, found: Range, bound: Label) -> Bounded {
        Bounded { what, found, bound, most: bound, constant: false }
    }
}

impl Analysis {
    /// Notes what is known of the bounds of a sink; false if it is surely refused.
    pub(super) fn check(&mut self, span: Span, sink: Sink, checks: &[Bounded]) -> bool {
        let place = self.place(span);
        let verdicts: Vec<(bool, bool)> = checks
            .iter()
            .map(|c| (self.taints.surely_flows(c.found, c.bound), self.taints.never_flows(c.found, c.most)))
            .collect();
        let always = verdicts.iter().all(|v| v.0);
        let never = verdicts.iter().any(|v| v.1);
        let state = |(c, (always, never)): (&Bounded, _)| CheckState {
            what: c.what.clone(),
            found: c.found,
            bound: c.bound,
            constant: c.constant,
            always,
            never,
        };
        let checks = checks.iter().zip(verdicts).map(state).collect();
        self.note(place, sink, (always, never), checks);
        !never
    }

    /// Notes which models of a chain may see the conversation: one that may is enough. False if surely none
    /// may.
    fn check_models(&mut self, span: Span, sink: Sink, params: Option<&Params>, lc: Range) -> bool {
        let models = self.routes.candidates(params.map(|p| &**p));
        let all: Vec<(Name, Vec<Label>)> =
            models.into_iter().map(|m| (m.name.clone(), self.clearances.of(&m).copied().collect())).collect();
        let always = |all: &[Label]| all.iter().all(|l| self.taints.surely_flows(lc, *l));
        let never = |all: &[Label]| all.iter().any(|l| self.taints.never_flows(lc, *l));
        // The one that says most about the site, and those that others answer for.
        let best =
            all.iter().position(|(_, l)| always(l)).or_else(|| all.iter().position(|(_, l)| !never(l)));
        let best = best.unwrap_or(0);
        let passed_over: Vec<(Name, Label)> = all
            .iter()
            .enumerate()
            .filter(|(i, (_, labels))| *i != best && !always(labels))
            .filter_map(|(_, (n, labels))| {
                let broken = labels.iter().find(|l| !self.taints.surely_flows(lc, **l))?;
                Some((n.clone(), *broken))
            })
            .collect();
        let checks: Vec<_> =
            all[best].1.iter().map(|clearance| Bounded::new(Checked::Conversation, lc, *clearance)).collect();
        let place = self.place(span);
        let admitted = self.check(span, sink.clone(), &checks);
        if let Some(site) = self.sites.get_mut(&(place, sink)) {
            for model in passed_over {
                if !site.passed_over.contains(&model) {
                    site.passed_over.push(model);
                }
            }
        }
        admitted
    }

    /// Adds to what is known of a sink: whether it is always, or never, admitted this time, and how each
    /// bound fared.
    fn note(&mut self, place: Span, sink: Sink, (always, never): (bool, bool), checks: Vec<CheckState>) {
        let taints = &mut self.taints;
        let site = self.sites.entry((place, sink)).or_insert_with(|| SiteState {
            checks: Vec::new(),
            always: true,
            never: true,
            passed_over: Vec::new(),
            plain: false,
            pattern: false,
            readers: false,
            asked: false,
            chosen: Vec::new(),
            literals: Vec::new(),
        });
        site.always &= always;
        site.never &= never;
        for check in checks {
            match site.checks.iter_mut().find(|c| c.what == check.what) {
                Some(c) => {
                    c.found = taints.either(c.found, check.found);
                    c.bound = taints.meet(c.bound, check.bound);
                    c.constant &= check.constant;
                    c.always &= check.always;
                    c.never &= check.never;
                }
                None => site.checks.push(check),
            }
        }
    }

    /// `pc ⊑ lc`: the conversation may be touched.
    pub(super) fn touch(&mut self, span: Span, sink: Sink, pc: Range, state: &mut State) -> bool {
        let lc = state.conversation;
        let by_label = self.taints.surely_flows(pc, lc.lo);
        let always = by_label || (pc.under != 0 && pc.under == lc.under);
        let never = !self.taints.lattice.flows(pc.lo, self.taints.label_with_input(lc.hi));
        let place = self.place(span);
        let check =
            CheckState { what: Checked::Control, found: pc, bound: lc.lo, constant: false, always, never };
        self.note(place, sink, (always, never), vec![check]);
        if !always {
            let label = self.join(pc, lc);
            self.raise(state, label);
        }
        !never
    }

    /// A mark for a conversation that a term opens: zero if something in scope has that mark from before.
    pub(super) fn opened(&mut self, env: &Env, term: TermId, pc: Range) -> u32 {
        let mark = OUTERMOST + 1 + term.0 * 2 + u32::from(env.code.0);
        let mut seen = BTreeSet::new();
        let values = env.locals.iter().chain(env.captures.iter());
        let taken = pc.under == mark || values.into_iter().any(|v| self.mentions(v, mark, &mut seen));
        if taken { 0 } else { mark }
    }

    /// Returns true if a part of a value has a mark. Functions may hold functions to any depth, so they are
    /// visited with a worklist.
    pub(super) fn mentions(&self, v: &AbstractValue, mark: u32, seen: &mut BTreeSet<FnId>) -> bool {
        let mut functions = Vec::new();
        let mut found = marked(v, mark, seen, &mut functions);
        while !found && let Some(id) = functions.pop() {
            let parts = self.funs[id.0 as usize].parts();
            found = parts.iter().any(|v| marked(v, mark, seen, &mut functions));
        }
        found
    }

    /// The value as it is when a conversation is closed: nothing flows to its label any more.
    pub(super) fn closed(&mut self, v: AbstractValue, mark: u32) -> AbstractValue {
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
        AbstractValue { label, inner: self.taints.union(v.inner, any.inner), shape: Shape::unknown() }
    }

    /// `recv`, and what `llm` does after sending in a conversation of its own, which is labeled at least
    /// like the place where it is opened. Without parameters the reply is code.
    pub(super) fn receive(
        &mut self,
        code: CodeId,
        params: Option<&Params>,
        own: bool,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let lc = state.conversation;
        let model = params.and_then(|p| p.model.clone()).unwrap_or_else(|| "".into());
        let sink = Sink::Model(model);
        if !own && !self.touch(span, sink.clone(), pc, state) {
            return None;
        }
        if !self.check_models(span, sink, params, lc) {
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
            let ok = AbstractValue { label: lc, inner: Taint::NONE, shape: Shape::data() };
            let value = AbstractValue { label: anything, inner: hi, shape: Shape::unknown() };
            return Some(AbstractValue::made(&mut self.taints, lc, Shape::List(Rc::new(vec![ok, value]))));
        };
        let data = AbstractValue::data(Range::BOTTOM);
        if params.tools.is_empty() && !params.waiting {
            return Some(AbstractValue::data(lc));
        }
        let names: Vec<Name> = params.tools.iter().map(|t| self.code(code).tool(*t).name.clone()).collect();
        let mut tags: Vec<(Name, AbstractValue)> = names.into_iter().map(|n| (n, data.clone())).collect();
        let last = if params.waiting { NOTHING_WAITS } else { "final" };
        if !tags.iter().any(|(n, _)| &**n == last) {
            tags.push((last.into(), data));
        }
        tags.sort_by(|(n, _), (m, _)| n.cmp(m));
        Some(AbstractValue { label: lc, inner: Taint::NONE, shape: Shape::Tags(Rc::new(tags)) })
    }

    pub(super) fn tool(
        &mut self,
        code: CodeId,
        id: ToolId,
        v: AbstractValue,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let decl = self.code(code).tool(id).clone();
        let place = self.place(span);
        let v = v.opened();
        // With approval `l→ ⊑ ℓ→` is compared, which is `l ⊑ ⟨⊤←, ℓ→⟩`.
        let mut bound = |spec: &core_ir::LabelSpec| {
            let lattice = &mut self.taints.lattice;
            let bound = lattice.resolve(spec).unwrap_or_default();
            let top = lattice.top();
            if decl.approve.may_ask() { lattice.reclassify(top, bound) } else { bound }
        };
        let control = bound(&decl.control);
        let bounds: Vec<Label> = decl.params.iter().map(|p| bound(&p.bound)).collect();
        let sets = self.sets(code, &decl);
        let mut checks = vec![Bounded::new(Checked::Control, pc, control)];
        // Which value each parameter gets: one that is known, none, or something in `v`.
        enum ArgumentState<'a> {
            Value(&'a AbstractValue),
            Nothing,
            Something,
        }
        let (fields, is_args) = match &v.shape {
            Shape::Record(fields) => (Some(fields.clone()), false),
            Shape::Args(of, fields) if *of == decl.name => (Some(fields.clone()), true),
            Shape::Args(..) => {
                // The arguments of another tool.
                let sink = Sink::Tool(decl.name.clone());
                let goes_on = self.check(place, sink, &checks);
                if !self.taints.surely_flows(pc, control) {
                    self.raise(state, pc);
                }
                if goes_on {
                    let label = self.blame(pc, &v);
                    self.raise(state, label);
                }
                return None;
            }
            _ => (None, false),
        };
        // What is labeled where arguments are refused: whether they are planned is a fact about the record.
        let admitted = self.taints.surely_flows(v.label, control);
        let record = if admitted {
            v.label.hi
        } else {
            let within = self.taints.within(v.label.hi, control);
            let at = self.exact(place, Cause::Control(decl.name.clone()), control);
            self.taints.union(within, at.hi)
        };
        let record = Range::new(Label::BOTTOM, record);
        let planned = is_args && !self.taints.never_flows(v.label, control);
        // The label of a planned call counts as control, as far as it surely flows there.
        let read_at = match planned {
            true if admitted => Range::new(Label::BOTTOM, self.taints.inputs(v.label.hi)),
            true => Range::new(Label::BOTTOM, v.label.hi),
            false => v.label,
        };
        let is_open = v.shape.is_open();
        let bare = decl.params.len() == 1
            && !is_args
            && match &fields {
                Some(fields) => !fields.iter().any(|(n, _)| *n == decl.params[0].name),
                None => !is_open,
            };
        let mut passed = Taint::NONE;
        // Without the arguments that only complete the call.
        let mut returned = Taint::NONE;
        let spares = !decl.completes.is_empty() && fields.is_some() && !bare;
        let mut argument_may_be_refused: Vec<Range> = Vec::new();
        let strict = self.taints.lattice.resolve(&decl.control).unwrap_or_default();
        // Nobody is asked where nothing is refused in full.
        let (mut plain, mut pattern, mut readers) = (false, false, false);
        let mut unasked = Taint::NONE;
        let (mut chosen, mut literals) = (Vec::new(), Vec::new());
        let mut nothing_refused =
            self.taints.surely_flows(pc, strict) && (!is_args || self.taints.surely_flows(v.label, strict));
        for ((param, bound), set) in decl.params.iter().zip(&bounds).zip(&sets.params) {
            let given = match &fields {
                _ if bare => ArgumentState::Value(&v),
                Some(fields) => match fields.iter().find(|(n, _)| *n == param.name) {
                    Some((_, a)) => ArgumentState::Value(a),
                    None => ArgumentState::Nothing,
                },
                None => ArgumentState::Something,
            };
            // Written by the program, or left out by it.
            let literal = match &given {
                ArgumentState::Value(AbstractValue { shape: Shape::Const(data), .. }) => {
                    Some((*data).clone())
                }
                ArgumentState::Nothing => Some(Data::Null),
                _ => None,
            };
            let found = match given {
                ArgumentState::Value(a) => {
                    let deep = a.deep_range(&mut self.taints);
                    self.join(read_at, deep)
                }
                // That it is missing is a fact about the record.
                ArgumentState::Nothing => v.label,
                // It may be part of the arguments of a planned call.
                ArgumentState::Something if matches!(v.shape, Shape::Top { unknown: true, .. }) => {
                    Range::new(Label::BOTTOM, v.deep(&mut self.taints))
                }
                ArgumentState::Something => Range::new(v.label.lo, v.deep(&mut self.taints)),
            };
            let top = self.taints.top;
            let most = match &decl.delegated {
                _ if !set.may_admit => *bound,
                None => self.taints.lattice.reclassify(top, *bound),
                // Not anybody may choose from the sets of a delegated call.
                Some(delegated) => {
                    let theirs = self.taints.lattice.resolve(&core_ir::Delegated::label(&delegated.to));
                    self.taints.lattice.join(*bound, theirs.unwrap_or_default())
                }
            };
            let within = self.taints.within(found.hi, most);
            passed = self.taints.union(passed, within);
            if !spares || !decl.completes.contains(&param.name) {
                returned = self.taints.union(returned, within);
            }
            pattern |= decl.pattern.iter().any(|(n, _)| *n == param.name) && !self.surely_bottom(found);
            let strict = self.taints.lattice.resolve(&param.bound).unwrap_or_default();
            nothing_refused &= self.taints.surely_flows(found, strict);
            // Nobody is asked about an argument out of a set, which keeps its label.
            let by_set = if set.may_admit { self.taints.lattice.reclassify(top, strict) } else { strict };
            // Nothing is refused only if the record is within the bounds, too, unless it is within that of
            // the control.
            let compared = if planned { self.taints.union(found.hi, v.label.hi) } else { found.hi };
            let by_set = self.taints.within(compared, by_set);
            unasked = self.taints.union(unasked, by_set);
            let within = self.taints.within(found.hi, strict);
            let admitted = !self.surely_trusted(Range::new(Label::BOTTOM, within));
            let choice = Chosen::of(&decl, param, admitted, set.may_admit && !self.surely_trusted(found));
            let constant = literal.is_some() && self.taints.union(found.hi, pc.hi) == pc.hi;
            // What the program wrote itself is as untrusted as what decides that it is read here. Nobody
            // chooses it, but perhaps between several.
            match (choice, literal) {
                (Some(choice), Some(literal)) => literals.push((choice, literal)),
                (choice, _) => chosen.extend(choice),
            }
            plain |= decl.plain.iter().any(|(n, _)| *n == param.name) && !self.surely_trusted(found);
            readers |= decl.includes.iter().any(|(n, _)| *n == param.name) && !self.surely_public(found);
            if !self.taints.surely_flows(found, *bound) {
                let cause = Cause::Bound(param.name.clone());
                let at = self.exact(place, cause, set.refusal.unwrap_or(*bound));
                argument_may_be_refused.push(self.join(at, record));
            }
            let what = Checked::Argument(param.name.clone());
            checks.push(Bounded { what, found, bound: *bound, most, constant });
        }
        let all_known = fields.as_ref().is_none_or(|fields| {
            bare || fields.iter().all(|(n, _)| decl.params.iter().any(|p| p.name == *n))
        });
        if decl.params.is_empty() || !all_known {
            let deep = v.deep(&mut self.taints);
            passed = self.taints.union(passed, deep);
            returned = self.taints.union(returned, deep);
        }
        if planned {
            passed = self.taints.union(passed, v.label.hi);
            returned = self.taints.union(returned, v.label.hi);
        }
        if spares {
            returned = self.taints.union(returned, v.label.hi);
        }
        if decl.policy.is_some() {
            // Its verdict may depend on any argument, and is a part of the label of what returns.
            returned = self.taints.union(returned, passed);
        }
        let mut verdict = Taint::NONE;
        if let Some(policy) = &decl.policy
            && !adds_no_label(policy)
        {
            // The policy's result may have any label, which must flow to the channel of the call.
            let channel = bounds.iter().fold(control, |c, b| self.taints.lattice.join(c, *b));
            let top = self.taints.top;
            verdict = self.exact(place, Cause::Tool(decl.name.clone()), top).hi;
            checks.push(Bounded::new(Checked::Control, Range::new(Label::BOTTOM, verdict), channel));
            let any = Range::new(pc.lo, verdict);
            self.raise(state, any);
        }
        let sink = Sink::Tool(decl.name.clone());
        let goes_on = self.check(place, sink.clone(), &checks);
        if let Some(site) = self.sites.get_mut(&(place, sink)) {
            // Whatever the labels are.
            let asks = match decl.approve {
                Approve::Never => false,
                Approve::IfRefused => !nothing_refused || plain,
                Approve::Always => true,
            };
            let formed = !plain && !pattern && !readers;
            site.always &= decl.policy.is_none() && !asks && decl.at_most.is_none() && formed;
            site.plain |= plain;
            site.pattern |= pattern;
            site.readers |= readers;
            site.asked |= asks || decl.policy_may_ask();
            for (choice, literal) in literals {
                let of_param = site.literals.iter_mut().find(|(c, _)| c.param == choice.param);
                match of_param {
                    Some((_, values)) if values.contains(&literal) => {}
                    Some((_, values)) if values.len() < MAX_LITERALS => values.push(literal),
                    Some(_) => chosen.push(choice),
                    None => site.literals.push((choice, vec![literal])),
                }
            }
            for choice in chosen {
                if !site.chosen.contains(&choice) {
                    site.chosen.push(choice);
                }
            }
        }
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
        let hi = self.taints.union(hi, verdict);
        let lo = self.taints.lattice.join(pc.lo, deep_lo);
        // A policy, a form or the readers of an argument refuse a call because of a part of it, and the error
        // tells of no more than that.
        let by_part = decl.policy.is_some()
            || !decl.plain.is_empty()
            || !decl.pattern.is_empty()
            || !decl.includes.is_empty();
        self.raise(state, Range::new(if by_part { pc.lo } else { lo }, hi));
        if decl.at_most.is_some() {
            let counted = self.join(pc, v.label);
            if !self.surely_trusted(counted) {
                self.use_up(&decl, pc, place);
            }
        }
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
        let mut label = self.join(Range::new(lo, hi), adds);
        let succeeded = match spares {
            false => label,
            true => {
                let hi = self.taints.union(pc_hi, returned);
                let hi = self.taints.union(hi, verdict);
                let lo = self.taints.lattice.join(pc.lo, v.label.lo);
                self.join(Range::new(lo, hi), adds)
            }
        };
        let places = self.places(&decl, &v, (bare, fields.as_deref()));
        let result = self.result(&decl, &places, succeeded, place);
        // A failure may quote every part, and an ill-typed result is found by looking at all of them.
        let most = result.deep(&mut self.taints);
        let most = self.taints.union(most, label.hi);
        self.raise(state, Range { hi: most, ..label });
        if decl.approve == Approve::IfRefused && sets.label != Label::BOTTOM {
            // A refused approval tells of the sets.
            let told = self.exact(place, Cause::Tool(decl.name.clone()), sets.label);
            unasked = self.taints.union(unasked, told.hi);
            let told = self.join(label, told);
            self.raise(state, told);
            if decl.confirms {
                label = told;
            }
        }
        if decl.confirms {
            let unasked = self.taints.union(unasked, verdict);
            return Some(AbstractValue::data(self.confirmed(&decl, label, pc, unasked, v.label.hi)));
        }
        Some(result)
    }

    /// The calls that untrusted data may decide are used up. No program may catch that.
    fn use_up(&mut self, decl: &ToolDecl, pc: Range, place: Span) {
        let mut resolve = |spec| self.taints.lattice.resolve(spec).unwrap_or_default();
        let control = resolve(&decl.control);
        let bounds: Vec<Label> = decl.params.iter().map(|p| resolve(&p.bound)).collect();
        let channel = bounds.into_iter().fold(control, |c, b| self.taints.lattice.join(c, b));
        let at = self.exact(place, Cause::Control(decl.name.clone()), channel);
        let label = self.join(pc, at);
        self.last_error = Some(self.last_error.map_or(label, |other| self.taints.either(other, label)));
    }

    /// Bounds of the labels that arguments name, from below and from above.
    fn places(
        &mut self,
        decl: &ToolDecl,
        v: &AbstractValue,
        (bare, fields): (bool, Option<&Vec<(Name, AbstractValue)>>),
    ) -> Vec<(Name, Label, Label)> {
        let mut places: Vec<(Name, Label, Label)> = Vec::new();
        for name in decl.parts.iter().flat_map(|r| r.source.iter().chain(&r.readers)) {
            let LabelName::Argument(name) = name else { continue };
            let given = if bare {
                Some(v)
            } else {
                fields.and_then(|f| f.iter().find(|(n, _)| n == name).map(|(_, a)| a))
            };
            let known = match given.map(|a| &a.shape) {
                // One that only completes the call names no place.
                _ if decl.completes.contains(name) => Some(self.taints.top),
                Some(Shape::Const(data)) => self.principals.place(&mut self.taints.lattice, data),
                _ => None,
            };
            let (least, most) = known.map_or((Label::BOTTOM, self.taints.top), |label| (label, label));
            places.push((name.clone(), least, most));
        }
        places
    }

    /// The result of a tool that is labeled `label` as a whole.
    fn result(
        &mut self,
        decl: &ToolDecl,
        places: &[(Name, Label, Label)],
        label: Range,
        place: Span,
    ) -> AbstractValue {
        if decl.parts.is_empty() {
            return AbstractValue::data(label);
        }
        let rules = decl.parts.root();
        let of = Answered { decl, places, place };
        let label = self.part_label(&of, &rules, label);
        self.parts(&of, &rules, (&decl.result, label))
    }

    /// The label of a part: that of what it is in, and what its rule adds.
    fn part_label(&mut self, of: &Answered<'_>, rules: &PartRules<'_>, container: Range) -> Range {
        let Some(rule) = rules.rule() else { return container };
        let cause = || Cause::Tool(of.decl.name.clone());
        let stated = self.taints.lattice.resolve(&rule.label).unwrap_or(self.taints.top);
        let adds = self.exact(of.place, cause(), stated);
        let mut label = self.join(container, adds);
        for name in rule.source.iter().chain(&rule.readers) {
            let top = self.taints.top;
            let (least, most) = match name {
                // What a field says is known only then.
                LabelName::Field(_) => (Label::BOTTOM, top),
                LabelName::Argument(name) => {
                    let known = of.places.iter().find(|(n, ..)| n == name);
                    known.map_or((Label::BOTTOM, top), |(_, least, most)| (*least, *most))
                }
            };
            let adds = Range::new(least, self.taints.one(of.place, cause(), most));
            label = self.join(label, adds);
        }
        label
    }

    /// Data of a type with labels for its parts, itself labeled `label`.
    fn parts(
        &mut self,
        of: &Answered<'_>,
        rules: &PartRules<'_>,
        (ty, label): (&Type, Range),
    ) -> AbstractValue {
        if rules.is_empty() || rules.depth() > MAX_PART_DEPTH {
            // All of it is labeled like itself, or as any rule says.
            let mut inner = label.hi;
            for rule in rules.iter() {
                let spec = if rule.is_stated() { self.taints.lattice.resolve(&rule.label) } else { None };
                let most = spec.unwrap_or(self.taints.top);
                let adds = self.taints.one(of.place, Cause::Tool(of.decl.name.clone()), most);
                inner = self.taints.union(inner, adds);
            }
            return AbstractValue { label, inner, shape: Shape::data() };
        }
        let (ty, may_be_null) = match ty {
            Type::Option(inner) => (&**inner, true),
            ty => (ty, false),
        };
        let mut part = |rules: PartRules<'_>, ty: Option<&Type>| {
            let label = self.part_label(of, &rules, label);
            self.parts(of, &rules, (ty.unwrap_or(&Type::Dyn), label))
        };
        let item = match ty {
            Type::List(item) => part(rules.items(), Some(item)),
            _ => part(rules.items(), None),
        };
        let of_type = |name: &Name| match ty {
            Type::Record(fields) => fields.iter().find(|(n, _)| n == name).map(|(_, t)| t),
            Type::Map(of) => Some(&of.1),
            _ => None,
        };
        let mut names: Vec<&Name> = rules.named().collect();
        if let Type::Record(fields) = ty {
            names.extend(fields.iter().map(|(n, _)| n));
        }
        names.sort_unstable();
        names.dedup();
        let fields = names.into_iter().map(|n| (n.clone(), part(rules.field(n), of_type(n)))).collect();
        let rest = match ty {
            Type::Map(of) => part(rules.others(), Some(&of.1)),
            _ => part(rules.others(), None),
        };
        let form = match ty {
            _ if may_be_null => Form::Any,
            Type::List(_) => Form::List,
            Type::Record(fields) => {
                let there = fields.iter().filter(|(_, t)| !matches!(t, Type::Option(_)));
                Form::Record(there.map(|(n, _)| n.clone()).collect())
            }
            Type::Map(_) => Form::Record([].into()),
            _ => Form::Any,
        };
        let parts = DataParts { item, fields, rest, form };
        AbstractValue::made(&mut self.taints, label, Shape::Parts(Rc::new(parts)))
    }

    /// The label of a confirmed value: endorsed if somebody was asked, and else that of arguments which their
    /// bounds admit in full.
    fn confirmed(
        &mut self,
        decl: &ToolDecl,
        label: Range,
        pc: Range,
        unasked: Taint,
        record: Taint,
    ) -> Range {
        let asked = self.taints.reclassify(Range::BOTTOM, label);
        let asked = self.join(pc, asked);
        if decl.approve == Approve::Always {
            return asked;
        }
        let strict = self.taints.lattice.resolve(&decl.control).unwrap_or_default();
        let record = self.taints.within(record, strict);
        let hi = self.taints.union(unasked, record);
        let hi = self.taints.union(hi, asked.hi);
        let hi = if decl.approve.may_ask() { hi } else { label.hi };
        Range::new(asked.lo, hi)
    }

    /// The answer of the run, which is compared with its bound.
    pub(super) fn answer(&mut self, code: &Code, sink: &AnswerSink, value: &AbstractValue) {
        if *sink == AnswerSink::default() {
            return;
        }
        let bound = self.taints.lattice.resolve(&sink.bound).unwrap_or_default();
        let found = value.deep_range(&mut self.taints);
        let place = code.answer_span();
        self.check(place, Sink::Answer, &[Bounded::new(Checked::Value, found, bound)]);
        let plain = sink.plain.is_some() && !self.surely_trusted(found);
        let within = self.taints.within(found.hi, bound);
        let admitted = !self.surely_trusted(Range::new(Label::BOTTOM, within));
        if let Some(site) = self.sites.get_mut(&(place, Sink::Answer)) {
            site.always &= !plain;
            site.plain |= plain;
            let chosen = Chosen { param: None, among: Choices::Any, plain: sink.plain, pattern: None };
            site.chosen.extend(admitted.then_some(chosen));
        }
    }

    /// Returns true if every label of the range is trusted, given a trusted input.
    fn surely_trusted(&mut self, found: Range) -> bool {
        let top = self.taints.top;
        let trusted = self.taints.lattice.reclassify(Label::BOTTOM, top);
        self.taints.surely_flows(found, trusted)
    }

    /// Returns true if every label of the range is trusted and public, given such an input.
    fn surely_bottom(&mut self, found: Range) -> bool {
        self.taints.surely_flows(found, Label::BOTTOM)
    }

    /// Returns true if every label of the range is public, given a public input.
    fn surely_public(&mut self, found: Range) -> bool {
        let top = self.taints.top;
        let public = self.taints.lattice.reclassify(top, Label::BOTTOM);
        self.taints.surely_flows(found, public)
    }

    /// The sets of a tool, as far as they are declared.
    fn sets(&mut self, code: CodeId, decl: &ToolDecl) -> ToolSets {
        let top = self.taints.top;
        let code = self.code(code).clone();
        let lattice = &mut self.taints.lattice;
        let mut sets = ToolSets { params: Vec::new(), label: Label::BOTTOM };
        for among in &decl.among {
            let label = set_label(lattice, &code, among).unwrap_or_default();
            sets.label = lattice.join(sets.label, label);
        }
        for param in &decl.params {
            let mut set = ParamSets { may_admit: false, refusal: None };
            if !decl.among.is_empty() {
                let own = bound_of(lattice, decl, &param.name);
                set.refusal = Some(lattice.reclassify(top, own));
            }
            for among in decl.among.iter().filter(|a| a.params.iter().any(|(n, _)| *n == param.name)) {
                let label = set_label(lattice, &code, among);
                set.may_admit |= label.is_some_and(|label| {
                    among.params.iter().all(|(n, _)| {
                        let bound = bound_of(lattice, decl, n);
                        lattice.flows(label, bound)
                    })
                });
                for (name, _) in &among.params {
                    let other = bound_of(lattice, decl, name);
                    set.refusal = set.refusal.map(|l| lattice.join(l, other));
                }
            }
            sets.params.push(set);
        }
        sets
    }

    pub(super) fn note_reclassified(&mut self, span: Span, integrity: bool, at: Range, l: Range, v: Range) {
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
        // A label that the value may have and the new label certainly lacks.
        let lowers = !lattice.flows(before, l_lo);
        let inert = lattice.join(l_lo, at_lo);
        let shows = !lattice.flows(before, inert);
        let note = self.reclassified.entry(place).or_default();
        note.lowers |= lowers;
        note.shows |= shows;
    }

    pub(super) fn note_try(
        &mut self,
        span: Span,
        given: Option<Label>,
        inside: Range,
        escaping: Option<Range>,
    ) {
        let place = self.place(span);
        let needed = escaping.map_or(Taint::NONE, |e| self.taints.without(e.hi, inside.hi));
        let taints = &mut self.taints;
        let note = self.tries.entry(place).or_insert_with(|| TryState {
            given,
            needed: Taint::NONE,
            escapes: false,
        });
        note.escapes |= escaping.is_some();
        note.needed = taints.union(note.needed, needed);
    }
}

/// The bound of a parameter; one that the tool or the lattice does not have is ⊥.
pub(super) fn bound_of(lattice: &mut Lattice, decl: &ToolDecl, param: &Name) -> Label {
    let param = decl.params.iter().find(|p| p.name == *param);
    param.and_then(|p| lattice.resolve(&p.bound)).unwrap_or_default()
}

/// The label of a set, as far as it is declared; `None` if the program has no such set. The request is taken
/// to be trusted and public, like the input.
pub(super) fn set_label(lattice: &mut Lattice, code: &Code, among: &Among) -> Option<Label> {
    match &among.source {
        AmongSource::Request | AmongSource::Sites | AmongSource::Below(_) | AmongSource::Values(_) => {
            Some(Label::BOTTOM)
        }
        AmongSource::Tool(name) => {
            let read = code.set_read(name)?;
            let label = lattice.resolve(&read.label).unwrap_or_else(|| lattice.top());
            // The labels of what the values are in, and of what is in them.
            Some(among.rules(&read.parts).into_iter().fold(label, |all, rule| {
                let stated = if rule.is_stated() { lattice.resolve(&rule.label) } else { None };
                let stated = stated.unwrap_or_else(|| lattice.top());
                lattice.join(all, stated)
            }))
        }
    }
}

/// A call whose result has labels for its parts.
struct Answered<'a> {
    decl: &'a ToolDecl,
    /// Bounds of the labels that arguments name, from below and from above.
    places: &'a [(Name, Label, Label)],
    place: Span,
}

/// Effect of the sets of a tool.
struct ToolSets {
    /// For each parameter.
    params: Vec<ParamSets>,
    /// The join of all labels of sets.
    label: Label,
}

/// Effect of the sets of a parameter.
struct ParamSets {
    /// True if one may admit what the bound refuses.
    may_admit: bool,
    /// The label of a refusal, if the tool has sets; else it is the bound.
    refusal: Option<Label>,
}

/// Returns true if the result of a policy provably has no label that its arguments lack. Functions of the
/// prelude may add some.
fn adds_no_label(policy: &core_ir::Code) -> bool {
    use core_ir::{Slot, Term};
    !policy.iter().any(|(_, term)| {
        matches!(
            term,
            Term::Relabel(..)
                | Term::Test(..)
                | Term::Assert(..)
                | Term::Try { .. }
                | Term::Endorse(..)
                | Term::Declassify(..)
                | Term::Var(_, Slot::Global(_))
        )
    })
}

/// Returns true if a value outside of its functions has a mark; adds functions not seen before to
/// `functions`.
fn marked(v: &AbstractValue, mark: u32, seen: &mut BTreeSet<FnId>, functions: &mut Vec<FnId>) -> bool {
    if v.label.under == mark {
        return true;
    }
    match &v.shape {
        Shape::Const(_) => false,
        Shape::Parts(parts) => parts.all().any(|v| marked(v, mark, seen, functions)),
        Shape::List(items) => items.iter().any(|v| marked(v, mark, seen, functions)),
        Shape::Record(vs) | Shape::Args(_, vs) | Shape::Tags(vs) => {
            vs.iter().any(|(_, v)| marked(v, mark, seen, functions))
        }
        Shape::Pair(p) => marked(&p.0, mark, seen, functions) || marked(&p.1, mark, seen, functions),
        Shape::Fns(fns) | Shape::Top { fns, .. } => {
            functions.extend(fns.iter().filter(|id| seen.insert(**id)));
            false
        }
    }
}
