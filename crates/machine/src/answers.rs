//! Answers that are there at once.
//!
//! Entry point: [`Answers`], for [`Machine::poll_with`](crate::Machine::poll_with). What a driver can answer
//! without waiting, a store in the process or a function, needs no [`Request`](crate::Request) of its own: it
//! is shown the request in place, and the run continues with the answer.
//!
//! Invariant: a run is the same whether a request is answered here or by
//! [`Machine::handle`](crate::Machine::handle): it has the same name, place and labels.

use crate::eval::Strand;
use crate::{Deadlines, Place, RequestId};
use core_ir::{Data, Label, Lattice, Name, Num, StoreDecl, ToolDecl};
use diagnostics::Span;
use std::sync::Arc;

/// Context of a question; see [`Request`](crate::Request), whose fields these are.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The channel label: who can see that it is asked.
    pub channel: Label,
    /// The label of the answer, and of the errors that represent one.
    pub answer: Label,
    /// The term that asks.
    pub span: Span,
    /// The lattice of the run, which gives the labels their meaning.
    pub lattice: &'a Lattice,
    pub(crate) strand: &'a Strand,
}

impl<'a> Asked<'a> {
    /// Returns the name of the request. Requests that are answered at once are counted like others.
    pub fn id(&self) -> RequestId {
        self.strand.next_request()
    }

    /// The number of a call of this tool, see [`Request::call_id`](crate::Request::call_id).
    pub fn call_id(&self, tool: &ToolDecl) -> Option<u64> {
        self.strand.call_id(self.lattice, tool)
    }

    /// The time limits that the answer has to keep.
    pub fn deadlines(&self) -> &'a Deadlines {
        self.strand.deadlines()
    }

    /// Its position in the order of the run.
    pub fn place(&self) -> Place {
        self.strand.next_place()
    }
}

/// The arguments of a call, one for each parameter of the tool, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    tool: &'a ToolDecl,
    values: &'a [(Name, Data)],
}

impl<'a> Args<'a> {
    pub(crate) fn new(tool: &'a ToolDecl, values: &'a [(Name, Data)]) -> Args<'a> {
        Args { tool, values }
    }

    /// The argument of this number.
    pub fn get(&self, number: usize) -> Option<&'a Data> {
        self.values.get(number).map(|(_, value)| value)
    }

    /// Each with the name of its parameter.
    pub fn iter(&self) -> impl Iterator<Item = (&'a Name, &'a Data)> {
        self.tool.params.iter().enumerate().filter_map(move |(i, p)| Some((&p.name, self.get(i)?)))
    }

    /// The same, to be kept.
    pub fn to_vec(&self) -> Vec<(Name, Data)> {
        self.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// A handler that answers some requests at once.
///
/// Each of these gives the answer, or nothing: then it must have done nothing, may be asked the same once
/// more, and the machine gives the request to its driver as [`Output::Request`](crate::Output::Request).
/// Other kinds of requests always go there, and so do all of a run that explains flow.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Globals, Num, Term};
/// use diagnostics::{FileId, Span};
/// use machine::{Answers, Asked, Config, Machine, Output};
///
/// struct Heads;
///
/// impl Answers for Heads {
///     fn sample(&mut self, _: &Asked<'_>, _: &Num, _: u64) -> Option<bool> {
///         Some(true)
///     }
/// }
///
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let sides = [b.lit("heads", at), b.lit("tails", at)];
/// let toss = b.add(Term::Choose(Num::ONE, sides[0], sides[1]), at);
/// let code = b.finish(toss, &Globals::none()).unwrap();
/// let mut machine = Machine::new(code.into(), None, Config::default());
/// let Output::Done(Ok(result)) = machine.poll_with(&mut Heads) else { panic!("nothing is asked") };
/// assert_eq!(machine.reify(&result).to_string(), r#""heads""#);
/// ```
pub trait Answers {
    /// Calls a tool: what it returns, or why it failed.
    fn tool(
        &mut self,
        asked: &Asked<'_>,
        tool: &Arc<ToolDecl>,
        args: Args<'_>,
    ) -> Option<Result<Data, String>> {
        let _ = (asked, tool, args);
        None
    }

    /// Reads a key of a store: what it holds, if anything.
    fn recall(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
    ) -> Option<Result<Option<Data>, String>> {
        let _ = (asked, store, key);
        None
    }

    /// Writes a key of a store.
    fn remember(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
        value: &Data,
    ) -> Option<Result<(), String>> {
        let _ = (asked, store, key, value);
        None
    }

    /// Draws a sample: true with the given probability. The draw is as in
    /// [`Call::Sample`](crate::Call::Sample).
    fn sample(&mut self, asked: &Asked<'_>, probability: &Num, draw: u64) -> Option<bool> {
        let _ = (asked, probability, draw);
        None
    }
}

/// The handler that answers nothing at once.
pub(crate) struct Nobody;

impl Answers for Nobody {}
