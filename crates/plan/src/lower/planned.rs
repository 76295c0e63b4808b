//! Planned calls: the arguments of a call are made before the branch, loop or `try` that decides whether it
//! happens.
//!
//! Under an untrusted condition every value is read as untrusted, so a record of arguments that is made there
//! is refused. `args[f]{…}` keeps the labels of the place where it is made. It is made at the innermost
//! statement around the call that no data decides, and only if every argument has a value there: literals,
//! variables that nothing rebinds in between, fields that a value has for certain, and total operations on
//! them. Nothing that may fail, and no call, is moved.
//!
//! A call in a loop over a list that is known at the place has arguments for each item, made there as a list.
//!
//! Source: `docs/language/plans.md`, `docs/calculus.md` (`args[f]{…}`).

use super::{Catching, Lower};
use crate::names;
use crate::scope::Taint;
use core_ir::{Data, Name, Num, Prim, Term, TermId, ToolDecl, ToolId};
use diagnostics::{Hint, Span};
use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextSize};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Terms of one call's arguments that are moved, at most.
const MAX_MOVED: usize = 1_000;
/// Nesting of one argument that is moved, at most.
const MAX_DEPTH: usize = 50;
/// Statements around a call before which its arguments may be made, at most.
const MAX_PLACES: usize = 20;
/// Records of arguments that are made for the items of written lists, at most.
const MAX_RECORDS: usize = 200;

/// A statement before which arguments can be made, with what follows it in its block.
pub(crate) struct Place<'a> {
    stmts: &'a [Stmt],
    /// Frames that there are at the statement: those of functions expanded inside of it are later ones.
    frames: usize,
    pc: Taint,
    pub(crate) made: Vec<(Name, TermId)>,
    /// A number of statements and the variables that they bind, kept for the calls of one statement.
    rebound: (usize, Rc<BTreeSet<String>>),
}

/// A term that is copied to another place.
struct Move {
    place: usize,
    /// Variables that are bound again between the place and the call.
    rebound: Rc<BTreeSet<String>>,
    left: usize,
    /// Loops whose items the arguments have, by the names of their states, outermost first.
    loops: Vec<Name>,
    /// Items of loops, by the states of the loops.
    items: BTreeMap<Name, Item>,
}

/// The item of a loop at the place.
#[derive(Clone)]
enum Item {
    /// One of a written list.
    Written(TermId),
    /// A variable of the function that makes the arguments.
    Bound(Name),
}

/// A call of a tool: its arguments by the names of the parameters.
#[derive(Clone, Copy)]
pub(crate) struct ToolCall<'c> {
    pub(crate) tool: ToolId,
    pub(crate) decl: &'c ToolDecl,
    pub(crate) fields: &'c [(Name, TermId)],
    pub(crate) at: Span,
}

/// Reason why the arguments of a call stay where they are.
pub(crate) struct Unmoved {
    /// The call.
    pub(crate) call: Span,
    /// The parameter whose argument has no value before the statement.
    pub(crate) parameter: Name,
    /// The statement that data decides.
    pub(crate) statement: &'static str,
    pub(crate) at: Span,
}

impl Unmoved {
    /// The change to make.
    pub(crate) fn hint(&self, source: &python::Source) -> Hint {
        let before = source.text.get(..self.at.start as usize).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let (parameter, statement) = (&self.parameter, self.statement);
        Hint {
            at: self.call,
            help: format!(
                "the argument `{parameter}` has no value before {statement} in line {line}: bind it to a variable there, \
                 or let trusted data decide"
            ),
        }
    }
}

impl<'a> Lower<'a> {
    /// Lowers statements behind the arguments of planned calls that are made before them.
    pub(crate) fn with_place(
        &mut self,
        stmts: &'a [Stmt],
        at: Span,
        lower: impl FnOnce(&mut Self) -> TermId,
    ) -> TermId {
        let (frames, pc) = (self.frames.len(), self.pc);
        self.places.push(Place { stmts, frames, pc, made: Vec::new(), rebound: Default::default() });
        let term = lower(self);
        let made = self.places.pop().map_or_else(Vec::new, |p| p.made);
        self.b.let_in(made, term, at)
    }

    /// Makes the arguments of a call where nothing untrusted or secret decides, if they all have their value
    /// there. Returns the arguments as they are read at the call.
    pub(crate) fn planned(&mut self, call: ToolCall<'_>) -> Option<TermId> {
        if self.pc == Taint::NONE && self.catching == Catching::No {
            return None;
        }
        let trusted = self.places.iter().rposition(|p| p.pc == Taint::NONE);
        // The statements around the call, outermost first. A label can only be lower there.
        let around = (0..self.places.len()).filter(|i| {
            let after = self.places.get(i + 1).map(|p| p.stmts.as_ptr());
            let rest = self.places[*i].stmts.get(1..).map(<[Stmt]>::as_ptr);
            Some(*i) != trusted && after != rest
        });
        let places: Vec<usize> = trusted.into_iter().chain(around.take(MAX_PLACES)).collect();
        for (i, place) in places.iter().enumerate() {
            match self.made_at(*place, call) {
                Ok(args) => return Some(args),
                Err(parameter) if i == 0 => self.note_unmoved(*place, parameter, call.at),
                Err(_) => {}
            }
        }
        None
    }

    /// Makes the arguments of a call at a place. The error is the parameter whose argument has no value.
    fn made_at(&mut self, place: usize, call: ToolCall<'_>) -> Result<TermId, Name> {
        let ToolCall { decl, fields, at, .. } = call;
        let end = self.end_of(place, at);
        let around = &mut self.places[place];
        let between = around.stmts.iter().take_while(|s| s.range().start() < end).count();
        // Many calls in one statement walk through it once.
        if around.rebound.0 != between {
            around.rebound = (between, names::assigned(&around.stmts[..between]).into());
        }
        let mut to = Move {
            place,
            rebound: around.rebound.1.clone(),
            left: MAX_MOVED,
            loops: Vec::new(),
            items: BTreeMap::new(),
        };
        // Which loops' items the arguments have.
        for (name, term) in fields {
            if self.scan(*term, &mut to).is_none() {
                return Err(name.clone());
            }
        }
        to.loops.sort_by_key(|s| self.loop_lists.get(s).map(|(order, _)| *order));
        let written: Option<Vec<Vec<TermId>>> = to.loops.iter().map(|s| self.written(s)).collect();
        let records = written.as_ref().map_or(usize::MAX, |w| w.iter().map(Vec::len).product());
        to.left = MAX_MOVED;
        let loops = to.loops.clone();
        let made = match written {
            Some(lists) if records <= MAX_RECORDS => self.for_written(call, &lists, &loops, &mut to),
            _ if loops.len() == 1 => self.for_each(call, &loops[0], &mut to),
            _ => None,
        };
        let first = || fields.first().map_or_else(|| decl.name.clone(), |(n, _)| n.clone());
        let made = made.ok_or_else(first)?;
        let name = self.fresh("args");
        self.places[place].made.push((name.clone(), made));
        let mut term = self.var(&name, at);
        for state in &loops {
            let index = self.field(state, "$i", at);
            term = self.add(Term::Index(term, index), at);
        }
        Ok(term)
    }

    /// The end of a call as the statements of a place have it: of the function that makes it, if that is
    /// called there. Its body stands elsewhere.
    fn end_of(&self, place: usize, call: Span) -> TextSize {
        let frames = self.places[place].frames;
        let site = self.sites.iter().find(|(before, _)| *before >= frames);
        TextSize::from(site.map_or(call, |(_, at)| *at).end)
    }

    fn note_unmoved(&mut self, place: usize, parameter: Name, call: Span) {
        let end = self.end_of(place, call);
        let stmts = self.places[place].stmts;
        let Some(stmt) = stmts.iter().take_while(|s| s.range().start() < end).last() else { return };
        let statement = match stmt {
            Stmt::If(_) => "the `if`",
            Stmt::For(_) | Stmt::While(_) => "the loop",
            Stmt::Try(_) => "the `try`",
            _ => "the statement",
        };
        let at = self.at(stmt);
        self.unmoved.push(Unmoved { call, parameter, statement, at });
    }

    /// The arguments, each moved to the place.
    fn record(&mut self, call: ToolCall<'_>, to: &mut Move) -> Option<TermId> {
        let ToolCall { tool, decl, fields, at } = call;
        let mut parts = Vec::new();
        for p in &decl.params {
            let part = match fields.iter().find(|(n, _)| *n == p.name) {
                Some((_, term)) => self.moved(*term, to, 0)?,
                None => self.lit(Data::Null, at),
            };
            parts.push((p.name.clone(), part));
        }
        self.terms += 1;
        Some(self.b.args(tool, parts, at))
    }

    /// Records for the items of written lists, in lists that are nested as the loops are.
    fn for_written(
        &mut self,
        call: ToolCall<'_>,
        lists: &[Vec<TermId>],
        loops: &[Name],
        to: &mut Move,
    ) -> Option<TermId> {
        let (Some((list, lists)), Some((state, loops))) = (lists.split_first(), loops.split_first()) else {
            to.left = MAX_MOVED;
            return self.record(call, to);
        };
        let mut all = Vec::new();
        for item in list {
            to.items.insert(state.clone(), Item::Written(*item));
            all.push(self.for_written(call, lists, loops, to)?);
        }
        Some(self.add(Term::List(all), call.at))
    }

    /// Records for the items of a list that is known when the plan runs.
    fn for_each(&mut self, call: ToolCall<'_>, state: &Name, to: &mut Move) -> Option<TermId> {
        let at = call.at;
        let (_, list) = self.loop_lists.get(state).cloned()?;
        let list = self.var(&list, at);
        let list = self.moved(list, to, 0)?;
        let item = self.fresh("item");
        to.items.insert(state.clone(), Item::Bound(item.clone()));
        let record = self.record(call, to)?;
        let function = self.b.abs(item, None, record, at);
        Some(self.add(Term::Each(Some(1), function, list), at))
    }

    /// Items of the list that a loop goes over, if it is written in the plan.
    fn written(&self, state: &Name) -> Option<Vec<TermId>> {
        let mut name = self.loop_lists.get(state).map(|(_, list)| list)?;
        for _ in 0..MAX_DEPTH {
            match self.b.term(*self.bound_once.get(name)?) {
                Term::Var(next, _) => name = next,
                Term::List(items) => return Some(items.clone()),
                _ => return None,
            }
        }
        None
    }

    /// Notes the loops whose items a term has; `None` if it can't be moved for another reason.
    fn scan(&mut self, term: TermId, to: &mut Move) -> Option<()> {
        let at = self.b.span(term);
        loop {
            to.left = MAX_MOVED;
            if self.moved(term, to, 0).is_some() {
                return Some(());
            }
            // If a loop was found, continue with an item of it.
            let state = to.loops.iter().find(|s| !to.items.contains_key(*s)).cloned()?;
            let item = match self.written(&state).and_then(|w| w.first().copied()) {
                Some(first) => Item::Written(first),
                None => {
                    let (_, list) = self.loop_lists.get(&state).cloned()?;
                    let list = self.var(&list, at);
                    self.moved(list, to, 0)?;
                    Item::Bound(self.fresh("item"))
                }
            };
            to.items.insert(state, item);
        }
    }

    /// A copy of a pure and total term for another place; `None` if it may have another value there.
    fn moved(&mut self, term: TermId, to: &mut Move, depth: usize) -> Option<TermId> {
        to.left = to.left.checked_sub(1)?;
        let depth = depth + 1;
        if depth > MAX_DEPTH {
            return None;
        }
        let at = self.b.span(term);
        let copy = match self.b.term(term).clone() {
            Term::Lit(data) => Term::Lit(data),
            Term::Var(name, _) => {
                if self.stands(&name, to) {
                    return Some(self.var(&name, at));
                }
                let same = self.bound_once.get(&name).copied()?;
                return self.moved(same, to, depth);
            }
            Term::Record(fields) => {
                let fields: Option<Vec<_>> =
                    fields.into_iter().map(|(n, t)| Some((n, self.moved(t, to, depth)?))).collect();
                Term::Record(fields?)
            }
            Term::List(items) => Term::List(self.all_moved(items, to, depth)?),
            Term::Tag(tag, value) => Term::Tag(
                tag,
                match value {
                    Some(v) => Some(self.moved(v, to, depth)?),
                    None => None,
                },
            ),
            // A field is read where the type says that it is there. The records of blocks stand nowhere.
            Term::Field(of, name) => Term::Field(self.moved(of, to, depth)?, name),
            Term::Index(list, index) => return self.item_moved(list, index, to, depth),
            Term::If(condition, then, other, sugar) => Term::If(
                self.moved(condition, to, depth)?,
                self.moved(then, to, depth)?,
                self.moved(other, to, depth)?,
                sugar,
            ),
            // What may raise is inside of a `case`, and a variable that may be unbound is beside a
            // `fail`: neither is moved. These raise for no value of the types that they are used for.
            Term::Prim(
                prim @ (Prim::Py
                | Prim::Format
                | Prim::Add
                | Prim::Sub
                | Prim::Mul
                | Prim::Neg
                | Prim::Not
                | Prim::Eq
                | Prim::Ne
                | Prim::Lt
                | Prim::Le
                | Prim::Gt
                | Prim::Ge),
                items,
            ) => Term::Prim(prim, self.all_moved(items, to, depth)?),
            _ => return None,
        };
        Some(self.add(copy, at))
    }

    /// The item of a loop, or a part of a written tuple.
    fn item_moved(&mut self, list: TermId, index: TermId, to: &mut Move, depth: usize) -> Option<TermId> {
        // `items[state.$i]`
        if let Some(state) = self.loop_item(list, index) {
            return match to.items.get(&state).cloned() {
                Some(Item::Written(item)) => self.moved(item, to, depth),
                Some(Item::Bound(name)) => {
                    let at = self.b.span(list);
                    Some(self.var(&name, at))
                }
                None => {
                    if !to.loops.contains(&state) {
                        to.loops.push(state);
                    }
                    None
                }
            };
        }
        // `unpack(…)[k]` of a tuple that is written.
        let Term::Lit(Data::Num(k)) = self.b.term(index).clone() else { return None };
        let Term::Var(name, _) = self.b.term(list).clone() else { return None };
        let Term::Case { scrutinee, .. } = self.b.term(*self.bound_once.get(&name)?).clone() else {
            return None;
        };
        let Term::Prim(Prim::Py, operands) = self.b.term(scrutinee).clone() else { return None };
        let [op, of, count] = operands[..] else { return None };
        let unpack = matches!(self.b.term(op), Term::Lit(Data::Str(op)) if &**op == "unpack");
        let Term::Lit(Data::Num(count)) = self.b.term(count).clone() else { return None };
        let parts = unpack.then(|| self.tuple_parts(of, to))??;
        // Unpacking raises nothing if the number of parts is right.
        if Num::from(parts.len() as i64) != count {
            return None;
        }
        self.moved(*parts.get(k.to_usize()?)?, to, depth)
    }

    /// The parts of a tuple or list that is written.
    fn tuple_parts(&mut self, of: TermId, to: &mut Move) -> Option<Vec<TermId>> {
        let mut now = of;
        for _ in 0..MAX_DEPTH {
            match self.b.term(now).clone() {
                Term::Var(name, _) => now = *self.bound_once.get(&name)?,
                Term::Index(list, index) => {
                    let state = self.loop_item(list, index)?;
                    match to.items.get(&state) {
                        Some(Item::Written(item)) => now = *item,
                        Some(Item::Bound(_)) => return None,
                        None => {
                            if !to.loops.contains(&state) {
                                to.loops.push(state);
                            }
                            return None;
                        }
                    }
                }
                Term::Tag(tag, Some(list)) if &*tag == "tuple" => now = list,
                Term::List(items) => return Some(items),
                _ => return None,
            }
        }
        None
    }

    /// The state of the loop whose item `list[index]` is.
    fn loop_item(&self, list: TermId, index: TermId) -> Option<Name> {
        let (Term::Var(list, _), Term::Field(state, field)) = (self.b.term(list), self.b.term(index)) else {
            return None;
        };
        let Term::Var(state, _) = self.b.term(*state) else { return None };
        (&**field == "$i" && self.loop_lists.get(state).is_some_and(|(_, l)| l == list))
            .then(|| state.clone())
    }

    fn all_moved(&mut self, items: Vec<TermId>, to: &mut Move, depth: usize) -> Option<Vec<TermId>> {
        items.into_iter().map(|t| self.moved(t, to, depth)).collect()
    }

    /// Returns true for a variable that has the same value at the place as now.
    fn stands(&self, core: &Name, to: &Move) -> bool {
        if &**core == super::library::NOW {
            return true;
        }
        let frames = self.places[to.place].frames;
        let mut all = self.frames.iter().take(frames).flat_map(|f| &f.vars);
        all.any(|(name, known)| known.core == *core && known.function.is_none() && !to.rebound.contains(name))
    }

    /// Notes the list that a loop with this state goes over.
    pub(crate) fn note_loop(&mut self, state: &Name, list: &Name) {
        let order = self.loop_lists.len();
        self.loop_lists.insert(state.clone(), (order, list.clone()));
    }

    /// Notes the value of a name that nothing binds to another one.
    pub(crate) fn note_once(&mut self, name: &Name, term: TermId) {
        self.bound_once.insert(name.clone(), term);
    }
}
