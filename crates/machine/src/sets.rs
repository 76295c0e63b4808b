//! Sets of values that untrusted data may choose arguments from (`among` of a tool).
//!
//! The tools of sets are called one after the other before the first step of the run, at the program counter
//! ⊥, whether or not the program reaches a call that needs them. A later call would tell what decided it.
//!
//! Invariant: a set never changes once the program runs. One that could not be read admits nothing.
//!
//! Source: `docs/calculus.md` §10, bounded endorsement.

use crate::value::Tool;
use crate::{Call, Config, Deadlines, Machine, Output, Part, Place, Request, RequestId, Response};
use core_ir::{Among, AmongSource, Code, Data, Label, Lattice, Name, SetSize, ToolDecl, Type, among};
use std::sync::Arc;

/// Arguments that their bounds refuse and a set admits: whoever controls them has chosen one of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The parameters that are chosen together; mostly one.
    pub params: Vec<Name>,
    /// Number of choices.
    pub of: SetSize,
}

/// The sets of a run.
#[derive(Clone)]
pub(crate) struct Sets {
    /// The tokens of the request, with its label.
    request: Option<(Label, Arc<[Data]>)>,
    reads: Vec<SetRead>,
    /// Number of reads that were answered.
    answered: usize,
    /// True if the next one was asked for.
    asked: bool,
}

#[derive(Clone)]
struct SetRead {
    tool: Arc<ToolDecl>,
    channel: Label,
    /// The label of the result as a whole, with what the tool stated.
    label: Label,
    /// The label of the result with all of its parts.
    most: Label,
    /// The result; `None` before it is there, and for ever if there is none.
    found: Option<Data>,
    /// True if the result has the type of the tool, which is a fact about all of its parts.
    fits: bool,
}

impl Sets {
    /// The sets that the tools of a program name, and the tokens that `plain` admits; `None` if there are
    /// none.
    pub(crate) fn of(
        lattice: &mut Lattice,
        code: &Code,
        input: Option<&Data>,
        config: &Config,
    ) -> Option<Box<Sets>> {
        let mut all = code.tools.iter().flat_map(|t| &t.among);
        let is_plain = config.answer.plain.is_some() || code.tools.iter().any(|t| !t.plain.is_empty());
        if all.clone().next().is_none() && !is_plain {
            return None;
        }
        let named = is_plain || all.any(|a| matches!(a.source, AmongSource::Request | AmongSource::Sites));
        let request = named.then(|| {
            let stated = config.request.as_ref().map(|text| Data::Str(text.clone()));
            let tokens = stated.as_ref().or(input).map(among::tokens).unwrap_or_default();
            let label = lattice.resolve_or_top(&config.input);
            (label, tokens.into())
        });
        let read = |tool: &Arc<ToolDecl>| {
            let Tool { channel, most, result, .. } = Tool::in_lattice(lattice, tool);
            // No argument names a place.
            let stated = tool.parts.iter().all(core_ir::PartLabel::is_stated);
            let most = if stated { most } else { lattice.top() };
            SetRead { tool: tool.clone(), channel, label: result, most, found: None, fits: false }
        };
        let reads = code.set_reads().into_iter().map(read).collect();
        Some(Box::new(Sets { request, reads, answered: 0, asked: false }))
    }

    /// Number of requests that are made before the first step.
    pub(crate) fn requests(&self) -> u32 {
        // INVARIANT: a program has fewer tools than terms, and `TermId` is a `u32`.
        u32::try_from(self.reads.len()).unwrap_or(u32::MAX)
    }

    /// The label of the request, if its tokens are needed.
    pub(crate) fn request_label(&self) -> Option<Label> {
        self.request.as_ref().map(|(label, _)| *label)
    }

    /// The label of a set: that of what its values are in, of them, and of what is in them.
    pub(crate) fn label(&self, lattice: &mut Lattice, among: &Among) -> Option<Label> {
        match &among.source {
            AmongSource::Request | AmongSource::Sites => self.request_label(),
            // The policy is the same in every run.
            AmongSource::Below(_) | AmongSource::Values(_) => Some(Label::BOTTOM),
            AmongSource::Tool(name) => {
                let read = self.reads.iter().find(|r| r.tool.name == *name)?;
                Some(among.rules(&read.tool.parts).into_iter().fold(read.label, |all, rule| {
                    // A label that values name is known only of the single part.
                    let stated = if rule.is_stated() { lattice.resolve(&rule.label) } else { None };
                    let stated = stated.unwrap_or_else(|| lattice.top());
                    lattice.join(all, stated)
                }))
            }
        }
    }

    /// The items of a set, none if it could not be read, and the type of what they were read from.
    pub(crate) fn items<'a>(&'a self, among: &'a Among) -> Option<(&'a [Data], &'a Type)> {
        match &among.source {
            AmongSource::Request | AmongSource::Sites => {
                self.request.as_ref().map(|(_, items)| (&**items, &Type::Dyn))
            }
            AmongSource::Below(_) => Some((&[], &Type::Dyn)),
            AmongSource::Values(values) => Some((values, &Type::Dyn)),
            AmongSource::Tool(name) => {
                let read = self.reads.iter().find(|r| r.tool.name == *name)?;
                // Where parts have labels of their own, along a path only the type of what is there is looked
                // at: that of the rest is not for everybody to know who may see the set.
                let whole =
                    among.params.iter().any(|(_, path)| path.is_empty()) || read.tool.parts.is_empty();
                let found = read.found.as_ref().filter(|_| read.fits || !whole);
                Some((found.map_or(&[], among::items), &read.tool.result))
            }
        }
    }

    /// The results, in the order of their requests; `None` while some are missing.
    pub(crate) fn results(&self) -> Option<impl Iterator<Item = (Label, Option<&Data>)>> {
        let all = self.reads.iter().map(|r| (r.most, r.found.as_ref()));
        (self.answered == self.reads.len()).then_some(all)
    }
}

impl Machine {
    /// The tokens of the request that may be in untrusted text of a sink, with the label that they add to the
    /// verdict: none if the request is untrusted, or if its label does not flow to the bound.
    pub(crate) fn request_tokens(&mut self, bound: Label) -> (Label, Arc<[Data]>) {
        let Some((label, tokens)) = self.sets.as_ref().and_then(|s| s.request.clone()) else {
            return (Label::BOTTOM, Arc::default());
        };
        match self.is_trusted(Label::BOTTOM, label) && self.lattice.flows(label, bound) {
            true => (label, tokens),
            false => (Label::BOTTOM, Arc::default()),
        }
    }

    /// The next request for a set; nothing if the program can run.
    pub(crate) fn next_set(&mut self) -> Option<Output> {
        let sets = self.sets.as_deref_mut()?;
        let read = sets.reads.get(sets.answered)?;
        if std::mem::replace(&mut sets.asked, true) {
            return Some(Output::Waiting);
        }
        let number = u32::try_from(sets.answered).unwrap_or(u32::MAX);
        let args = read.tool.params.iter().map(|p| (p.name.clone(), Data::Null)).collect();
        let given = match self.lattice.keeps_origins() {
            true => [(Part::Control, Label::BOTTOM)].into(),
            false => Box::default(),
        };
        let request = Request {
            call: Call::Tool { tool: read.tool.clone(), args },
            channel: read.channel,
            answer: read.most,
            inputs: Label::BOTTOM,
            deadlines: Deadlines::default(),
            given,
            span: read.tool.span,
            place: Place { branch: None, number },
            call_id: None,
            choices: Box::default(),
            counts: crate::CallCount::No,
        };
        Some(Output::Request(RequestId { strand: self.config.strand, number }, request))
    }

    /// Takes the response to a request for a set; false if it is to another one. A failure leaves the set
    /// empty.
    pub(crate) fn set_answered(&mut self, id: RequestId, response: &Response) -> bool {
        let is_root = id.strand == self.config.strand;
        let Some(sets) = self.sets.as_deref_mut().filter(|s| is_root && id.number < s.requests()) else {
            return false;
        };
        if !sets.asked || id.number as usize != sets.answered {
            return true;
        }
        if let Some(read) = sets.reads.get_mut(sets.answered) {
            let (found, own) = match response {
                Response::Tool(Ok(data)) => (Some(data), Label::BOTTOM),
                Response::LabeledTool(Ok(data), own) => (Some(data), self.lattice.resolve_or_top(own)),
                _ => (None, Label::BOTTOM),
            };
            read.label = self.lattice.join(read.label, own);
            read.most = self.lattice.join(read.most, own);
            read.fits = found.is_some_and(|data| read.tool.result.check(data).is_ok());
            read.found = found.cloned();
        }
        sets.answered += 1;
        sets.asked = false;
        true
    }
}
