//! The answer of a run: a sink with a bound and a form, like the parameter of a tool.
//!
//! Entry point: [`Machine::delivered`]. It is the only way in which a run ends.
//!
//! Source: `docs/calculus.md` §10, the answer.

use crate::meter::Meter;
use crate::{ErrorCode, Failure, Machine, Part, Refusal, Value};
use core_ir::{AnswerSink, Data, Label, Link};
use diagnostics::clip;

/// Message of an error whose own message may not be in the answer.
const WITHHELD: &str = "the run failed, and the rules for its answer withhold the message";

impl Machine {
    /// The result of the run, as far as the rules for its answer admit it. An error keeps its code and its
    /// place, and loses a message that they don't admit.
    pub(crate) fn delivered(&mut self, result: Result<Value, Failure>) -> Result<Value, Failure> {
        let config = self.config.clone();
        if config.answer == AnswerSink::default() {
            return result;
        }
        let bound = self.lattice.resolve(&config.answer.bound).unwrap_or_default();
        match result {
            Ok(value) => match self.refused_answer(&config.answer, bound, &value) {
                None => Ok(value),
                Some(failure) => Err(*failure),
            },
            Err(failure) if failure.code.is_final() => Err(failure),
            Err(failure) => {
                let text = Data::str(&*failure.message);
                let admitted = self.lattice.flows(failure.label, bound)
                    && self.link_in(&config.answer, bound, failure.label, &text).is_none();
                let message = if admitted { failure.message } else { WITHHELD.to_string() };
                Err(Failure { message, ..failure })
            }
        }
    }

    /// The error that stands in the place of an answer, if it is refused.
    fn refused_answer(&mut self, sink: &AnswerSink, bound: Label, value: &Value) -> Option<Box<Failure>> {
        let label = value.deep_label(&mut self.lattice);
        if !self.lattice.flows(label, bound) {
            let (found, most) = (self.lattice.show(label), self.lattice.show(bound));
            let message = format!("the answer must be labeled {most} at most");
            let mut failure = self.answer_error(ErrorCode::Flow, bound, message);
            failure.notes.push((failure.span, format!("this answer is labeled {found}")));
            failure.refusal = Some(Box::new(Refusal { part: Part::Answer, name: None, label, bound }));
            return Some(failure);
        }
        if sink.plain.is_none() || self.is_trusted(Label::BOTTOM, label) {
            return None;
        }
        // What can't be looked at is not plain.
        let found = match value.to_data(&mut Meter::new(self.config.max_text)) {
            Ok(data) => self.link_in(sink, bound, label, &data)?,
            Err(why) => {
                let message = format!("the answer is untrusted and no plain text: {}", why.message());
                return Some(self.answer_error(ErrorCode::Policy, label, message));
            }
        };
        let trusted = self.lattice.reclassify(Label::BOTTOM, label);
        let refusal = Refusal { part: Part::Form(None), name: None, label, bound: trusted };
        let request = self.sets.as_ref().and_then(|s| s.request_label()).unwrap_or_default();
        let label = self.lattice.join(label, request);
        // The answer is where the link must not be, so the message has none.
        let message =
            format!("the answer is untrusted and has {} that is not in the request", found.kind.describe());
        let mut failure = self.answer_error(ErrorCode::Policy, label, message);
        failure.refusal = Some(Box::new(refusal));
        Some(failure)
    }

    /// The link that an untrusted text of the answer may not have.
    fn link_in(&mut self, sink: &AnswerSink, bound: Label, label: Label, text: &Data) -> Option<Link> {
        let form = sink.plain?;
        if self.is_trusted(Label::BOTTOM, label) {
            return None;
        }
        let (_, tokens) = self.request_tokens(bound);
        form.refused(text, &tokens).map(|link| Link { text: clip(&link.text).to_string(), ..link })
    }

    fn answer_error(&self, code: ErrorCode, label: Label, message: String) -> Box<Failure> {
        Box::new(Failure {
            code,
            message,
            label,
            strand: self.config.strand,
            span: self.root.answer_span(),
            notes: Vec::new(),
            refusal: None,
            stopped: None,
            permanent: false,
            unattended: false,
        })
    }
}
