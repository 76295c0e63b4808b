//! Results that the model gets a handle of, so that the conversation keeps its label.
//!
//! A handle is a key of a store whose label is that of the result ([calculus §6]). The model may pass its
//! name as an argument: then the turn recalls the key, and the rules of tools compare the value with its own
//! label, not with that of the conversation. Opening a handle sends the value into the conversation. An
//! answer about it is another key, with the same label.
//!
//! Invariant: what the model is told of a handle is its name, which is a function of how many there were.
//! Invariant: a name is never used twice, also not by a later conversation.
//!
//! [calculus §6]: `docs/calculus.md`

use crate::decide::{Allowed, Refused, Start};
use crate::program;
use crate::session::{Session, run};
use core_ir::{Data, Label, LabelSpec, Name, PartPath, PathStep};
use diagnostics::{FileId, Span, clip};
use machine::{Call, Machine, Output, Response};
use std::sync::Arc;

/// The most handles of a session. A result beyond them goes to the model.
const MAX_HANDLES: usize = 4_096;
/// The most parts of a result that become handles.
const MAX_PARTS: usize = 256;
/// The beginning of a handle's name.
const MARK: &str = "#h";

/// A value that the model has a handle of.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    /// Its name: `#h3`.
    pub(crate) name: Name,
    /// The tool whose result it is, or is about.
    pub(crate) by: Name,
    pub(crate) value: Data,
    pub(crate) label: LabelSpec,
    /// True if it is of an earlier conversation, and the user has not named it in this one.
    pub(crate) is_aside: bool,
}

/// A position in a result.
#[derive(Clone, Debug, PartialEq)]
enum At {
    Field(Name),
    Index(usize),
}

impl Session {
    /// Returns whether the policy gives handles of results.
    pub fn has_handles(&self) -> bool {
        self.policy.has_handles()
    }

    /// A handle that the model may use.
    pub(crate) fn handle(&self, name: &str) -> Option<&Handle> {
        self.handles.iter().find(|h| *h.name == *name && !h.is_aside)
    }

    /// The names of handles in arguments: texts that are one as a whole.
    pub(crate) fn handles_in(&self, args: &Data) -> Vec<Name> {
        if self.handles.is_empty() && !self.has_handles() {
            return Vec::new();
        }
        let (mut found, mut rest) = (Vec::new(), vec![args]);
        while let Some(data) = rest.pop() {
            match data {
                Data::Str(text) if is_name(text) => found.push(Name::from(&**text)),
                Data::List(items) => rest.extend(items.iter()),
                Data::Record(fields) => rest.extend(fields.iter().map(|(_, value)| value)),
                _ => {}
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// The arguments with the values of handles in place of their names.
    pub fn with_values(&self, args: &Data) -> Data {
        if self.handles.is_empty() {
            return args.clone();
        }
        match args {
            // A call that was decided in an earlier conversation has the handles of that one.
            Data::Str(text) => match self.handles.iter().find(|h| *h.name == **text) {
                Some(handle) => handle.value.clone(),
                None => args.clone(),
            },
            Data::List(items) => Data::list(items.iter().map(|item| self.with_values(item))),
            Data::Record(fields) => Data::Record(
                fields.iter().map(|(name, value)| (name.clone(), self.with_values(value))).collect(),
            ),
            _ => args.clone(),
        }
    }

    /// Keeps the result of a call from the model if it would raise the label above the floor that the policy
    /// says, or at all if the call was given handles. Gives the name of the handle.
    ///
    /// `result` decides the label, and `value` is what the handle is.
    pub fn keep(
        &mut self,
        call: &Allowed,
        result: &Result<Data, String>,
        stated: Option<&LabelSpec>,
        value: Data,
    ) -> Option<Name> {
        let floor = self.floor(call)?;
        if self.handles.len() >= MAX_HANDLES {
            return None;
        }
        let after = self.after(self.clone(), call, result, stated);
        if after.is_within(&self.joined_label(self, &floor)) {
            return None;
        }
        // The label of the turn is in that of its result, whatever the conversation has read since.
        let label = self.after(self.fresh(), call, result, stated).label_spec();
        Some(self.add_handle(call.tool().clone(), value, label))
    }

    /// Keeps parts of a result from the model. Gives what the model is told in place of the result, and the
    /// rest, which decides the label of that; `None` if nothing is kept.
    pub fn keep_parts(
        &mut self,
        call: &Allowed,
        result: &Data,
        stated: Option<&LabelSpec>,
    ) -> Option<(Data, Data, Vec<Name>)> {
        let rules = self.named.handle(call.tool()).filter(|(path, _)| !path.steps().is_empty());
        let rules: Vec<(PartPath, LabelSpec)> = rules.map(|(p, f)| (p.clone(), f.clone())).collect();
        let mut parts: Vec<(Vec<At>, LabelSpec)> = Vec::new();
        for (path, floor) in &rules {
            for at in positions(result, path.steps()) {
                parts.push((at, floor.clone()));
            }
        }
        if parts.is_empty() || parts.len() > MAX_PARTS || self.handles.len() + parts.len() > MAX_HANDLES {
            return None;
        }
        let all: Vec<&[At]> = parts.iter().map(|(at, _)| at.as_slice()).collect();
        let rest = without(result, &all, None);
        let before = self.after(self.clone(), call, &Ok(rest.clone()), stated);
        let (mut kept, mut shown) = (Vec::new(), Vec::new());
        for (at, floor) in &parts {
            let alone = Ok(without(result, &all, Some(at)));
            let after = self.after(self.clone(), call, &alone, stated);
            if after.is_within(&self.joined_label(&before, floor)) {
                shown.push(at.as_slice());
            } else {
                let label = self.after(self.fresh(), call, &alone, stated).label_spec();
                kept.push((at.as_slice(), label));
            }
        }
        if kept.is_empty() {
            return None;
        }
        let hidden: Vec<&[At]> = kept.iter().map(|(at, _)| *at).collect();
        let rest = without(result, &hidden, None);
        let (mut told, mut names) = (result.clone(), Vec::new());
        for (at, label) in kept {
            let Some(value) = value_at(result, at) else { continue };
            let name = self.add_handle(call.tool().clone(), value.clone(), label);
            told = replaced(&told, at, &Data::str(&*name));
            names.push(name);
        }
        Some((told, rest, names))
    }

    /// The floor above which the whole result of a call is kept.
    fn floor(&self, call: &Allowed) -> Option<LabelSpec> {
        let mut whole = self.named.handle(call.tool()).filter(|(path, _)| path.steps().is_empty());
        let said = whole.next().map(|(_, floor)| floor.clone());
        said.or_else(|| call.turn.start.has_handles.then_some(LabelSpec::BOTTOM))
    }

    /// Returns whether the whole result of a call may be kept from the model.
    pub(crate) fn may_keep(&self, call: &Start) -> bool {
        let mut rules = self.named.handle(&call.tool);
        call.has_handles || rules.any(|(path, _)| path.steps().is_empty())
    }

    /// A session that was given this result.
    fn after(
        &self,
        mut session: Session,
        call: &Allowed,
        result: &Result<Data, String>,
        stated: Option<&LabelSpec>,
    ) -> Session {
        let _ = session.finish(call.clone(), result.clone(), stated.cloned());
        session
    }

    fn label_spec(&self) -> LabelSpec {
        LabelSpec::Exact(self.label_data())
    }

    fn add_handle(&mut self, by: Name, value: Data, label: LabelSpec) -> Name {
        self.handle_count += 1;
        let name = match self.conversation {
            0 => format!("{MARK}{}", self.handle_count),
            n => format!("{MARK}{}.{n}", self.handle_count),
        };
        let name = Name::from(name);
        self.handles.push(Handle { name: name.clone(), by, value, label, is_aside: false });
        name
    }

    /// Takes up handles of earlier conversations that the user names.
    pub(crate) fn take_up_handles(&mut self, text: &str) {
        for handle in self.handles.iter_mut().filter(|h| h.is_aside) {
            handle.is_aside = !names_handle(text, &handle.name);
        }
    }

    /// Gives the model what it has a handle of. The label of the conversation is raised.
    ///
    /// # Errors
    /// There is no such handle, or the model may not see it.
    pub fn open_handle(&mut self, name: &str) -> Result<Data, Box<Refused>> {
        let (handle, mut machine) = self.recalling(name)?;
        let of_value = self.lattice.resolve_or_top(&handle.label);
        let label = self.lattice.join(self.label, of_value);
        self.may_open(label, &handle.by)?;
        match run(&mut machine) {
            Output::Done(Ok(_)) => {
                let label = machine.conversation().0;
                self.raise(&machine, label, &handle.by);
                Ok(handle.value)
            }
            // INVARIANT: the program recalls one key and sends it.
            _ => unreachable!("a handle that is not sent"),
        }
    }

    /// The machine that sends a handle's value, once it has been recalled.
    fn recalling(&mut self, name: &str) -> Result<(Handle, Machine), Box<Refused>> {
        let Some(handle) = self.handle(name).cloned() else {
            let why = format!("there is no handle `{}`", clip(name));
            return Err(self.refuse(name, &why).into());
        };
        let at = Span { file: FileId(0), start: 0, end: 0 };
        let code = program::opening((&handle.name, &handle.label), at);
        let config = self.config();
        let mut machine = Machine::new(Arc::new(code), Some(Data::str(name)), config);
        match run(&mut machine) {
            Output::Request(id, request) if matches!(request.call, Call::Recall { .. }) => {
                machine.handle(id, Response::Recall(Ok(Some(handle.value.clone()))));
                Ok((handle, machine))
            }
            // INVARIANT: that is the first thing that the program asks for.
            _ => unreachable!("a handle that is not recalled"),
        }
    }

    /// Keeps the answer of a quarantined model about a handle. `asked_at` is the label of the conversation
    /// that asked.
    pub fn keep_answer(&mut self, by: Name, value: Data, label: LabelSpec) -> Option<Name> {
        (self.handles.len() < MAX_HANDLES).then(|| self.add_handle(by, value, label))
    }

    /// The label of a question about a handle: that of its value, and of the conversation that asks.
    pub(crate) fn label_of_question(&mut self, handle: &Handle) -> LabelSpec {
        let of_value = self.lattice.resolve_or_top(&handle.label);
        let label = self.lattice.join(self.label, of_value);
        LabelSpec::Exact(self.lattice.data_of(label))
    }

    /// Returns whether another model may see data of a label, by the rule of `recv`.
    pub(crate) fn may_show(&mut self, model: &Name, label: &LabelSpec) -> bool {
        let label = self.lattice.resolve_or_top(label);
        let label: Label = self.lattice.join(self.label, label);
        self.may_model_see(model, label)
    }
}

/// Returns whether a text has the form of a handle's name.
fn is_name(text: &str) -> bool {
    let is_number = |t: &str| !t.is_empty() && t.len() < 10 && t.bytes().all(|b| b.is_ascii_digit());
    text.strip_prefix(MARK).is_some_and(|rest| match rest.split_once('.') {
        Some((number, conversation)) => is_number(number) && is_number(conversation),
        None => is_number(rest),
    })
}

/// Returns whether a text names a handle.
fn names_handle(text: &str, name: &str) -> bool {
    let is_end = |rest: &str| {
        let mut chars = rest.chars();
        match chars.next() {
            Some('.') => !chars.next().is_some_and(|c| c.is_ascii_digit()),
            next => !next.is_some_and(char::is_alphanumeric),
        }
    };
    text.match_indices(name).any(|(at, _)| is_end(&text[at + name.len()..]))
}

/// The positions that a path leads to, in the order of the data.
fn positions(data: &Data, path: &[PathStep]) -> Vec<Vec<At>> {
    let Some((first, rest)) = path.split_first() else { return vec![Vec::new()] };
    let below = |at: At, data: &Data| {
        let deeper = positions(data, rest).into_iter();
        deeper.map(|tail| [vec![at.clone()], tail].concat()).collect::<Vec<_>>()
    };
    match (first, data) {
        (PathStep::Field(name), Data::Record(_)) => {
            data.field(name).map_or(Vec::new(), |value| below(At::Field(name.clone()), value))
        }
        (PathStep::Values, Data::Record(fields)) => {
            fields.iter().flat_map(|(name, value)| below(At::Field(name.clone()), value)).collect()
        }
        (PathStep::Items, Data::List(items)) => {
            items.iter().enumerate().flat_map(|(n, item)| below(At::Index(n), item)).collect()
        }
        _ => Vec::new(),
    }
}

fn value_at<'d>(data: &'d Data, at: &[At]) -> Option<&'d Data> {
    let Some((first, rest)) = at.split_first() else { return Some(data) };
    match (first, data) {
        (At::Field(name), _) => value_at(data.field(name)?, rest),
        (At::Index(n), Data::List(items)) => value_at(items.get(*n)?, rest),
        _ => None,
    }
}

/// The data without what is at these positions, but for one.
fn without(data: &Data, hidden: &[&[At]], but: Option<&[At]>) -> Data {
    let hidden: Vec<&[At]> = hidden.iter().filter(|at| Some(**at) != but).copied().collect();
    kept(data, &hidden)
}

fn kept(data: &Data, hidden: &[&[At]]) -> Data {
    if hidden.is_empty() {
        return data.clone();
    }
    let below = |step: &At| -> (bool, Vec<&[At]>) {
        let of = hidden.iter().filter(|at| at.first() == Some(step)).map(|at| &at[1..]);
        let of: Vec<&[At]> = of.collect();
        (of.iter().any(|at| at.is_empty()), of)
    };
    match data {
        Data::Record(fields) => {
            let field = |(name, value): &(Name, Data)| {
                let (is_hidden, rest) = below(&At::Field(name.clone()));
                (!is_hidden).then(|| (name.clone(), kept(value, &rest)))
            };
            Data::Record(fields.iter().filter_map(field).collect())
        }
        Data::List(items) => {
            let item = |(n, value): (usize, &Data)| {
                let (is_hidden, rest) = below(&At::Index(n));
                (!is_hidden).then(|| kept(value, &rest))
            };
            Data::list(items.iter().enumerate().filter_map(item))
        }
        other => other.clone(),
    }
}

fn replaced(data: &Data, at: &[At], by: &Data) -> Data {
    let Some((first, rest)) = at.split_first() else { return by.clone() };
    match (first, data) {
        (At::Field(here), Data::Record(fields)) => {
            let field = |(name, value): &(Name, Data)| {
                let value = if name == here { replaced(value, rest, by) } else { value.clone() };
                (name.clone(), value)
            };
            Data::Record(fields.iter().map(field).collect())
        }
        (At::Index(here), Data::List(items)) => {
            let item = |(n, value): (usize, &Data)| match n == *here {
                true => replaced(value, rest, by),
                false => value.clone(),
            };
            Data::list(items.iter().enumerate().map(item))
        }
        _ => data.clone(),
    }
}
