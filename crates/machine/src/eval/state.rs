//! Fingerprints of runs: two runs of one program that have the same one go on alike.
//!
//! Entry point: [`Machine::fingerprint`]. Exploring all courses of a run ([`crate::explore`]) needs it:
//! courses that have reached the same state have the same future, so one of them is enough.
//!
//! Invariant: machines of one program, each waiting for nothing, that have the same fingerprint give the same
//! results and errors, with the same labels, to the same answers. The converse does not hold: where telling
//! costs too much there is no fingerprint. Invariant: a fingerprint holds addresses, so it may be compared
//! only with one of a machine that exists as well.

use super::{Frame, Guarded, State, Strand};
use crate::value::{Body, Kind, Value};
use crate::{Conversation, Machine, Message};
use core_ir::{Bound, Code, Data, Label, Lattice, TermId};
use diagnostics::Span;
use std::sync::Arc;

/// The longest fingerprint. A state that needs more is not compared.
const MAX_FINGERPRINT_LEN: usize = 1 << 16;

/// Maximum depth to which values are followed.
const MAX_DEPTH: u32 = 100;

impl Machine {
    /// The state that the future of the run depends on, if it is one strand that can go on; the names of its
    /// requests and the fuel that is left apart.
    pub(crate) fn fingerprint(&self) -> Option<Vec<u8>> {
        let [Some(strand)] = &self.strands[..] else { return None };
        if self.done.is_some()
            || self.branches.as_ref().is_some_and(|b| !b.starting.is_empty())
            || self.lattice.keeps_origins()
        {
            return None;
        }
        let mut print = Print { out: Vec::new(), lattice: &self.lattice };
        print.strand(strand)?;
        for (tool, calls) in self.counted.iter().flat_map(|c| c.iter()) {
            print.text(tool)?;
            print.number(*calls as usize)?;
        }
        // What the sets hold decides which calls are admitted.
        for (label, found) in
            self.sets.iter().map(|s| s.results()).collect::<Option<Vec<_>>>()?.into_iter().flatten()
        {
            print.label(label)?;
            match found {
                None => print.tag(0),
                Some(data) => {
                    print.tag(1);
                    print.data(data)?;
                }
            }
        }
        Some(print.out)
    }
}

struct Print<'a> {
    out: Vec<u8>,
    lattice: &'a Lattice,
}

impl Print<'_> {
    fn number(&mut self, n: usize) -> Option<()> {
        self.out.extend_from_slice(&(n as u64).to_le_bytes());
        (self.out.len() <= MAX_FINGERPRINT_LEN).then_some(())
    }

    fn text(&mut self, text: &str) -> Option<()> {
        self.number(text.len())?;
        self.out.extend_from_slice(text.as_bytes());
        (self.out.len() <= MAX_FINGERPRINT_LEN).then_some(())
    }

    fn tag(&mut self, tag: u8) {
        self.out.push(tag);
    }

    fn label(&mut self, label: Label) -> Option<()> {
        // Its text: numbers are given in the order in which labels are met.
        let text = self.lattice.text(label);
        self.text(&text)
    }

    fn code(&mut self, code: &Arc<Code>) -> Option<()> {
        self.number(Arc::as_ptr(code) as usize)
    }

    fn term(&mut self, term: TermId) -> Option<()> {
        self.number(term.0 as usize)
    }

    fn at(&mut self, pc: Label, from: Span) -> Option<()> {
        self.label(pc)?;
        // Where it was raised is told with an error.
        self.number(from.file.0 as usize)?;
        self.number(from.start as usize)?;
        self.number(from.end as usize)
    }

    fn strand(&mut self, s: &Strand) -> Option<()> {
        if !s.deadlines.is_empty() || s.remark.is_some() || s.conversation.edits.is_some() {
            return None;
        }
        if !matches!(s.state, State::Run) {
            return None;
        }
        self.number(s.ip as usize)?;
        self.code(&s.code)?;
        self.at(s.pc, s.pc_from)?;
        self.conversation(&s.conversation)?;
        for n in [s.bottom, s.base, s.stack.len(), s.kont.len()] {
            self.number(n)?;
        }
        s.stack.iter().try_for_each(|v| self.value(v, 0))?;
        s.kont.iter().try_for_each(|frame| self.frame(frame))
    }

    fn conversation(&mut self, c: &Conversation) -> Option<()> {
        self.label(c.label)?;
        self.number(c.messages.iter().count())?;
        c.messages.iter().try_for_each(|Message { role, content, call }| {
            self.tag(*role as u8);
            self.text(content)?;
            match call.as_deref() {
                None => {
                    self.tag(0);
                    Some(())
                }
                Some((name, args)) => {
                    self.tag(1);
                    self.text(name)?;
                    self.data(args)
                }
            }
        })?;
        let pending = c.pending.as_deref().map_or(&[][..], Vec::as_slice);
        self.number(pending.len())?;
        pending.iter().try_for_each(|(name, args)| {
            self.text(name)?;
            self.data(args)
        })
    }

    fn data(&mut self, data: &Data) -> Option<()> {
        // Data of different kinds may have the same JSON (a tag and a record), but not the same notation.
        self.text(&format!("{data:?}"))
    }

    fn frame(&mut self, frame: &Frame) -> Option<()> {
        match frame {
            Frame::Ret { code, ip, bottom, base, pc, pc_from } => {
                self.tag(0);
                self.number(*ip as usize)?;
                match code {
                    None => self.tag(0),
                    Some(code) => {
                        self.tag(1);
                        self.code(code)?;
                    }
                }
                self.number(*bottom)?;
                self.number(*base)?;
                self.at(*pc, *pc_from)
            }
            Frame::Pc { end, pc, pc_from } => {
                self.tag(1);
                self.number(*end as usize)?;
                self.at(*pc, *pc_from)
            }
            Frame::Conv { conversation, after, pc, pc_from } => {
                self.tag(2);
                self.number(*after as usize)?;
                self.conversation(conversation)?;
                self.at(*pc, *pc_from)
            }
            Frame::Labeled { term, l, at, pc, pc_from } => {
                self.tag(7);
                self.number(*term as usize)?;
                self.label(*l)?;
                self.label(*at)?;
                self.at(*pc, *pc_from)
            }
            Frame::FixArg(value, span) => {
                self.tag(8);
                self.value(value, 0)?;
                self.at(Label::BOTTOM, *span)
            }
            Frame::Guard { guarded: Guarded::Term(term), left, remark: None, pc, pc_from } => {
                self.tag(9);
                self.number(*term as usize)?;
                self.number(*left as usize)?;
                self.at(*pc, *pc_from)
            }
            Frame::Try { term, at, pc, pc_from } => {
                self.tag(10);
                self.number(*term as usize)?;
                self.label(*at)?;
                self.at(*pc, *pc_from)
            }
            Frame::Generated => {
                self.tag(11);
                Some(())
            }
            Frame::Guard { .. }
            | Frame::Within { .. }
            | Frame::Policy(_)
            | Frame::Ask(_)
            | Frame::Branch { .. } => None,
        }
    }

    fn value(&mut self, value: &Value, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.label(value.label)?;
        if value.is_mark() {
            self.tag(15);
            return Some(());
        }
        let node = match &value.kind {
            Kind::Null => {
                self.tag(0);
                return Some(());
            }
            Kind::Bool(b) => {
                self.tag(1 + u8::from(*b));
                return Some(());
            }
            Kind::Num(n) => {
                self.tag(3);
                return match n.to_i64() {
                    Some(i) => {
                        self.tag(0);
                        self.number(i as usize)
                    }
                    None => {
                        self.tag(1);
                        self.text(&n.to_string())
                    }
                };
            }
            Kind::Str(text) => {
                self.tag(4);
                return self.text(text);
            }
            Kind::Node(node) => node,
        };
        let depth = depth + 1;
        match &node.body {
            Body::List(items) => {
                self.tag(5);
                self.number(items.len())?;
                items.iter().try_for_each(|v| self.value(v, depth))
            }
            Body::Record(fields) => {
                self.tag(6);
                self.number(fields.len())?;
                fields.iter().try_for_each(|(name, v)| {
                    self.text(name)?;
                    self.value(v, depth)
                })
            }
            Body::Args(tool, fields) => {
                self.tag(14);
                self.number(Arc::as_ptr(tool) as usize)?;
                self.number(fields.len())?;
                fields.iter().try_for_each(|(name, v)| {
                    self.text(name)?;
                    self.value(v, depth)
                })
            }
            Body::Pair(a, b) => {
                self.tag(7);
                self.value(a, depth)?;
                self.value(b, depth)
            }
            Body::Tag(name, v) => {
                self.tag(8);
                self.text(name)?;
                self.value(v, depth)
            }
            Body::Closure { code, term, captures } => {
                self.tag(9);
                self.code(code)?;
                self.term(*term)?;
                captures.iter().try_for_each(|v| self.value(v, depth))
            }
            Body::Fix(bound, v) => {
                self.tag(10);
                match &node.left().unwrap_or(*bound) {
                    Bound::Infinite => self.tag(0),
                    Bound::Finite(n) => {
                        self.tag(1);
                        self.number(*n as usize)?;
                    }
                }
                self.value(v, depth)
            }
            Body::Guarded { code, term, function } => {
                self.tag(11);
                self.code(code)?;
                self.term(*term)?;
                self.value(function, depth)
            }
            Body::Llm { prompt, code, term, .. } => {
                self.tag(12);
                self.code(code)?;
                self.term(*term)?;
                self.value(prompt, depth)
            }
            Body::Tool(tool) => {
                self.tag(13);
                self.number(Arc::as_ptr(&tool.decl) as usize)
            }
        }
    }
}
