//! A model that answers as it did in a recording, whatever else the run does: tools and stores are real.

use super::kinds::{ModelSpec, ProviderKind};
use super::{Answer, FaultKind, ModelCall, ModelError, Price, Provider, Tokens, Work};
use crate::event::Progress;
use crate::journal::{Link, link, read_response};
use crate::{ConfigError, Journal};
use diagnostics::clip_to as clip;
use machine::{Call, Response};
use serde_json::Value as Json;
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Answers a question as it was answered in the newest run of a recording (`entail run --record`, or a
/// journal): the conversation must be the same. The same question again gets the next answer that it got, at
/// the end the last one.
///
/// `entail run --replay` repeats a run as a whole; this repeats its models alone, so that tools, policies and
/// prompts after the recorded part can be changed.
#[derive(Debug)]
pub struct Recorded {
    source: String,
    /// By the conversation.
    answers: Mutex<HashMap<Link, VecDeque<(Json, Tokens)>>>,
}

impl Recorded {
    /// Reads a recording.
    ///
    /// # Errors
    /// The file does not exist or can't be read.
    pub fn load(path: &Path) -> Result<Recorded, ConfigError> {
        let failed = |e: crate::JournalError| ConfigError::new(e.message);
        let journal = Journal::existing(path).map_err(failed)?;
        let run = journal.latest(None).map_err(failed)?;
        let mut answers: HashMap<Link, VecDeque<(Json, Tokens)>> = HashMap::new();
        for (conversation, response, tokens) in journal.model_answers(&run.id).map_err(failed)? {
            answers.entry(conversation).or_default().push_back((response, tokens));
        }
        Ok(Recorded { source: path.display().to_string(), answers: Mutex::new(answers) })
    }

    fn answer(&self, call: ModelCall) -> Answer {
        let question = link(&call.messages);
        // A panic while the lock was held can't leave an answer half taken.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let found = answers.get_mut(&question);
        let found = found.and_then(|q| if q.len() > 1 { q.pop_front() } else { q.front().cloned() });
        let Some((json, tokens)) = found else {
            let what = format!(
                "the recording `{}` has no answer to this conversation, whose end is `{}`",
                self.source,
                clip(call.last_text(), 200)
            );
            return Answer::failed(ModelError::new(what).with_help("record the run again"));
        };
        let ModelCall { messages, params, tools, attempt, .. } = call;
        let result = match read_response(&Call::Model { messages, params, tools, attempt }, &json) {
            Ok(Response::Model(result)) => result.map_err(ModelError::new),
            Ok(Response::Permanent(why)) => Err(ModelError::of(FaultKind::Rejected, why)),
            Ok(_) => Err(ModelError::new("the recording has no reply here")),
            Err(why) => Err(ModelError::new(format!("the reply in the recording can't be read: {why}"))),
        };
        Answer::new(result, tokens)
    }
}

impl Provider for Recorded {
    fn stands_in(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        "recorded"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn may_block(&self) -> bool {
        false
    }

    fn ask(self: Arc<Self>, call: ModelCall, _: Progress) -> Work<Answer> {
        Work::Now(self.answer(call))
    }
}

/// The provider `recorded`.
pub(super) struct RecordedFile;

impl ProviderKind for RecordedFile {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn is_free(&self) -> bool {
        true
    }

    fn make(&self, wanted: &ModelSpec<'_>) -> Result<Arc<dyn Provider>, ConfigError> {
        match wanted.file {
            Some(file) => Ok(Arc::new(Recorded::load(file)?)),
            None => Err(wanted.wrong("a recorded model needs a `file`")),
        }
    }
}
