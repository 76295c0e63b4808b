//! Answers of earlier programs for one request, for the program that follows them.
//!
//! Entry point: [`History`], for [`Handlers::history`](crate::Handlers). A plan that ends with an error may
//! be followed by another plan for the same request. The next run then begins with the answers of those
//! before: a call of a tool with equal arguments gets the recorded answer, and is not made again. An equal
//! request to a model is not sent again.
//!
//! A recorded answer is reused for a request if
//! - the tool, the arguments and, for a question to a person, the labels are the same; for a model the
//!   conversation, the parameters and the tools that it is offered;
//! - the label of the recorded answer flows to that of the new one. So the new answer has the label that it
//!   would have without the record, and that covers everything that decided that the record is there;
//! - no request whose answer label flows to that of this one has used it in this run: each is used once;
//! - for a tool that reads: no tool that writes was called since whose channel flows to the answer label and
//!   to the channel of the request. An answer depends on no other call (`docs/calculus.md` §5). Sets
//!   (`among`) and the time of the run stay as they were;
//! - the call succeeded, or whoever sees the new request may not know whether it did.
//!
//! A call that is not made again counts no second time for `at_most`. Whether it is made again depends on
//! nothing but what flows to its channel, as does the count.
//!
//! Invariant: whether an answer is reused depends on nothing but data and requests whose labels flow to the
//! answer label, and that there is a request in the world on nothing but those whose labels flow to the
//! channel.
//! Invariant: an approval is reused only together with the call that it was for, or for a confirmation.

use core_ir::{Approve, Data, EffectClass, Label, Lattice, ModelParams, Name, ToolDecl};
use diagnostics::Span;
use machine::{Call, Config, Messages, RequestId, Response};
use std::collections::HashMap;
use std::sync::Arc;

/// Answers of the runs of one request, in the order of the runs.
#[derive(Debug)]
pub struct History {
    lattice: Lattice,
    /// Number of the run.
    run: u32,
    /// Position in the order of what happened.
    now: u64,
    records: Vec<Record>,
    /// Requests of the current run that are open.
    open: HashMap<RequestId, usize>,
    counted: Vec<(Name, u64)>,
    /// Steps of the machine so far.
    fuel: u64,
    made: Vec<MadeCall>,
}

/// A call of a tool that writes, in the last run: one that was made, or that an earlier run had made.
#[derive(Clone, Debug)]
pub struct MadeCall {
    /// The tool.
    pub tool: Name,
    /// The term that made it.
    pub span: Span,
    /// True if trusted and public data alone decided that it was made, and with which arguments.
    pub is_trusted_and_public: bool,
}

/// Labels of a request, as values.
#[derive(Debug)]
pub(crate) struct RequestLabels {
    pub(crate) channel: Data,
    pub(crate) answer: Data,
    pub(crate) inputs: Data,
}

/// Subject of a request: equal for two requests with the same answer.
#[derive(Debug)]
enum Subject {
    Tool {
        tool: Arc<ToolDecl>,
        args: Vec<(Name, Data)>,
        /// Labels of the arguments, of a question to a person.
        question: Option<Vec<Data>>,
    },
    Model {
        messages: Messages,
        params: Option<Arc<ModelParams>>,
        tools: Vec<Arc<ToolDecl>>,
        attempt: u32,
    },
}

#[derive(Debug)]
struct Record {
    run: u32,
    subject: Subject,
    channel: Label,
    answer: Label,
    asked: u64,
    /// When it was answered, and how.
    answered: Option<(u64, Response)>,
    /// True if it is never asked again in the runs of one request: a set, or the time.
    is_fixed: bool,
    /// Answer labels of the requests of the current run that have used it.
    used: Vec<Label>,
}

impl Subject {
    /// The subject of a request; `None` for those whose answers are not kept.
    fn of(call: &Call, question: Option<Vec<Data>>) -> Option<Subject> {
        Some(match call {
            Call::Tool { tool, args } | Call::Approve { tool, args, .. } => {
                Subject::Tool { tool: tool.clone(), args: args.clone(), question }
            }
            Call::Model { messages, params, tools, attempt } => Subject::Model {
                messages: messages.clone(),
                params: params.clone(),
                tools: tools.clone(),
                attempt: *attempt,
            },
            _ => return None,
        })
    }

    fn is_same(&self, of: &Asked<'_>) -> bool {
        match (self, of) {
            (Subject::Tool { tool, args, question }, Asked::Tool(other, given, asked)) => {
                tool.name == other.name && args == given && question.as_deref() == *asked
            }
            (
                Subject::Model { messages, params, tools, attempt },
                Asked::Model(Call::Model { messages: m, params: p, tools: t, attempt: n }),
            ) => messages == m && params == p && tools == t && attempt == n,
            _ => false,
        }
    }

    /// The tool that it calls.
    fn called(&self) -> Option<&ToolDecl> {
        match self {
            Subject::Tool { tool, question: None, .. } => Some(tool),
            _ => None,
        }
    }

    /// The effect of the call, if it is one of a tool.
    fn effect(&self) -> Option<EffectClass> {
        self.called().map(|tool| tool.effect)
    }
}

impl Record {
    fn is_write(&self) -> bool {
        self.subject.effect() == Some(EffectClass::Write)
    }
}

impl History {
    /// No runs yet. The lattice is that of the runs.
    pub fn new(lattice: Lattice) -> History {
        History {
            lattice,
            run: 0,
            now: 0,
            records: Vec::new(),
            open: HashMap::new(),
            counted: Vec::new(),
            fuel: 0,
            made: Vec::new(),
        }
    }

    /// Makes the earlier runs count for the limits of the machine in the next run: the number of steps, and
    /// of calls that untrusted data decides (`at_most`).
    pub fn carry_into(&self, config: &mut Config) {
        config.counted = self.counted.clone();
        config.fuel = config.fuel.saturating_sub(self.fuel);
    }

    /// Calls of tools that write, in the last run.
    pub fn made(&self) -> &[MadeCall] {
        &self.made
    }

    /// A run begins.
    pub(crate) fn begin(&mut self) {
        self.run += 1;
        self.open.clear();
        self.made.clear();
        for record in &mut self.records {
            record.used.clear();
        }
    }

    /// The run has ended, with these counts and this number of steps.
    pub(crate) fn end(&mut self, counted: &[(Name, u64)], fuel: u64) {
        self.counted = counted.to_vec();
        self.fuel = self.fuel.saturating_add(fuel);
    }

    /// A label that the lattice does not have is above all others.
    fn label(&mut self, data: &Data) -> Label {
        self.lattice.label_of(data).unwrap_or_else(|| self.lattice.top())
    }

    fn step(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A request was made.
    pub(crate) fn asked(
        &mut self,
        id: RequestId,
        (call, span): (&Call, Span),
        labels: &RequestLabels,
        question: Option<Vec<Data>>,
        is_for_set: bool,
    ) {
        let Some(subject) = Subject::of(call, question) else { return };
        let (channel, answer) = (self.label(&labels.channel), self.label(&labels.answer));
        let is_fixed = is_for_set || subject.called().is_some_and(is_time);
        let record = Record {
            run: self.run,
            subject,
            channel,
            answer,
            asked: self.step(),
            answered: None,
            is_fixed,
            used: Vec::new(),
        };
        if let (Call::Tool { tool, .. }, true) = (call, record.is_write()) {
            self.note_made(tool, span, labels);
        }
        self.open.insert(id, self.records.len());
        self.records.push(record);
    }

    fn note_made(&mut self, tool: &ToolDecl, span: Span, labels: &RequestLabels) {
        let inputs = self.label(&labels.inputs);
        let is_trusted_and_public = self.lattice.flows(inputs, Label::BOTTOM);
        self.made.push(MadeCall { tool: tool.called().clone(), span, is_trusted_and_public });
    }

    /// A request was answered.
    pub(crate) fn answered(&mut self, id: RequestId, response: &Response) {
        let Some(at) = self.open.remove(&id) else { return };
        let now = self.step();
        self.records[at].answered = Some((now, response.clone()));
    }

    /// The recorded answer to a request, if it is reused.
    pub(crate) fn reuse(
        &mut self,
        (call, span): (&Call, Span),
        labels: &RequestLabels,
        question: Option<&[Data]>,
        is_for_set: bool,
    ) -> Option<Response> {
        let (channel, answer) = (self.label(&labels.channel), self.label(&labels.answer));
        match call {
            Call::Tool { tool, args } => {
                let is_fixed = is_for_set || is_time(tool);
                let at = self.find(&Asked::Tool(tool, args, None), is_fixed, (channel, answer))?;
                if tool.effect == EffectClass::Write {
                    self.note_made(tool, span, labels);
                }
                self.take(at, answer)
            }
            Call::Approve { tool, args, .. } => {
                let asked = Asked::Tool(tool, args, Some(question?));
                let at = self.find(&asked, false, (channel, answer))?;
                let (_, response) = self.records[at].answered.as_ref()?;
                let is_reused = match response {
                    Response::Approve(Err(_)) => true,
                    Response::Approve(Ok(())) if tool.confirms => true,
                    // The call that follows has the same labels, so its answer is found, too. With sets the
                    // label of this one is above it.
                    Response::Approve(Ok(())) => {
                        (tool.among.is_empty() || tool.approve != Approve::IfRefused)
                            && self.find(&Asked::Tool(tool, args, None), false, (channel, answer)).is_some()
                    }
                    _ => false,
                };
                if is_reused { self.take(at, answer) } else { None }
            }
            Call::Model { .. } => {
                let at = self.find(&Asked::Model(call), false, (channel, answer))?;
                self.take(at, answer)
            }
            _ => None,
        }
    }

    fn take(&mut self, at: usize, answer: Label) -> Option<Response> {
        let record = self.records.get_mut(at)?;
        record.used.push(answer);
        record.answered.as_ref().map(|(_, response)| response.clone())
    }

    /// The first recorded answer that may be reused.
    fn find(&self, asked: &Asked<'_>, is_fixed: bool, (channel, answer): (Label, Label)) -> Option<usize> {
        let flows = |a, b| self.lattice.flows(a, b);
        let is_usable = |record: &Record| {
            let Some((_, response)) = &record.answered else { return false };
            record.run < self.run
                && record.is_fixed == is_fixed
                && record.subject.is_same(asked)
                && flows(record.answer, answer)
                && (!asked.is_question() || flows(record.channel, channel))
                && !record.used.iter().any(|used| flows(*used, answer))
                && !(has_failed(response) && flows(record.answer, channel))
                && !self.is_outdated(record, (channel, answer))
        };
        self.records.iter().position(is_usable)
    }

    /// Returns whether a tool that writes was called since something was read, as far as may be known to
    /// those who see the new request, and to those who see its answer.
    fn is_outdated(&self, read: &Record, (channel, answer): (Label, Label)) -> bool {
        if read.is_fixed || read.subject.effect() != Some(EffectClass::Read) {
            return false;
        }
        let since = |write: &Record| write.answered.as_ref().is_none_or(|(at, _)| *at > read.asked);
        self.records.iter().any(|write| {
            write.is_write()
                && since(write)
                && self.lattice.flows(write.channel, answer)
                && self.lattice.flows(write.channel, channel)
        })
    }
}

/// A request, by the party that answers it.
enum Asked<'a> {
    /// A tool, its arguments, and what an approver is shown where one is asked.
    Tool(&'a ToolDecl, &'a [(Name, Data)], Option<&'a [Data]>),
    /// A model.
    Model(&'a Call),
}

impl Asked<'_> {
    /// Returns whether a person is asked.
    fn is_question(&self) -> bool {
        matches!(self, Asked::Tool(_, _, Some(_)))
    }
}

/// Returns whether a call has no result.
fn has_failed(response: &Response) -> bool {
    matches!(
        response,
        Response::Tool(Err(_))
            | Response::ToolTimeout(_)
            | Response::LabeledTool(Err(_), _)
            | Response::Model(Err(_))
            | Response::Permanent(_)
            | Response::Uncleared(_)
            | Response::Late(_)
            | Response::Unattended
    )
}

/// Returns whether a tool gives the time of the run.
fn is_time(tool: &ToolDecl) -> bool {
    let builtin = tool.handler.as_ref().and_then(|h| h.field("builtin"));
    builtin.is_some_and(|b| b.as_str() == Some("clock.unix"))
}
