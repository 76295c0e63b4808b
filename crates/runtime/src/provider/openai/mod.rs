//! Any OpenAI-compatible chat completions endpoint.
//!
//! Invariant: the key is in one header and nowhere else; what the endpoint says has been through the
//! redactor before any other code sees it.

mod http;
mod wire;

use super::{Answer, Backoff, ModelCall, ModelError, Price, Provider, Tokens, Work};
use crate::event::Progress;
use crate::rng::SplitMix;
use crate::{ConfigError, Redactor, Secret};
use diagnostics::clip_to as clip;
use http::Http;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How a model is told the type of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structured {
    /// By `response_format: json_schema`. An endpoint that does not know it is asked again with the next.
    JsonSchema,
    /// By `response_format: json_object`, and the schema in the instructions.
    JsonObject,
    /// By the instructions alone.
    Prompt,
}

impl Structured {
    const ALL: [Structured; 3] = [Structured::JsonSchema, Structured::JsonObject, Structured::Prompt];
}

/// Where a model is and how it is asked.
#[derive(Clone, Debug)]
pub struct OpenAiOptions {
    /// The name under which the endpoint knows the model.
    pub model: String,
    /// The address up to and without `/chat/completions`.
    pub base_url: String,
    /// The key, if the endpoint wants one.
    pub key: Option<Secret>,
    /// Where the key came from, for messages: `OPENAI_API_KEY`.
    pub key_source: String,
    /// How typed answers are asked for at first.
    pub structured: Structured,
    /// What it costs, if that is known.
    pub price: Option<Price>,
    /// The longest time to establish a connection.
    pub connect_timeout: Duration,
    /// The longest silence.
    pub read_timeout: Duration,
    /// The longest time for an answer, repetitions included.
    pub total_timeout: Duration,
    /// The largest answer in bytes.
    pub max_body: usize,
    /// Repetitions.
    pub backoff: Backoff,
    /// Further secrets to remove from what is shown. The key always is.
    pub redactor: Redactor,
}

impl OpenAiOptions {
    /// The usual limits: 10 s to connect, 2 min of silence, 10 min in all, 8 MiB.
    pub fn new(model: impl Into<String>, base_url: impl Into<String>, key: Option<Secret>) -> OpenAiOptions {
        OpenAiOptions {
            model: model.into(),
            base_url: base_url.into(),
            redactor: Redactor::new(key.clone()),
            key,
            key_source: "OPENAI_API_KEY".into(),
            structured: Structured::JsonSchema,
            price: None,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(120),
            total_timeout: Duration::from_secs(600),
            max_body: 8 << 20,
            backoff: Backoff::default(),
        }
    }
}

/// A model behind an OpenAI-compatible chat completions endpoint.
#[derive(Debug)]
pub struct OpenAi {
    options: OpenAiOptions,
    http: Http,
    /// The index in [`Structured::ALL`] of the way that the endpoint is known to accept.
    structured: AtomicU8,
}

impl OpenAi {
    /// A client. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is no `http` or `https` URL, the key has characters that no header can have, or there are no
    /// root certificates for `https`.
    pub fn new(options: OpenAiOptions) -> Result<OpenAi, ConfigError> {
        let http = Http::new(&options)?;
        let structured = AtomicU8::new(options.structured as u8);
        Ok(OpenAi { options, http, structured })
    }

    async fn answer(self: Arc<Self>, call: ModelCall, progress: Progress) -> Answer {
        let limit = self.options.total_timeout;
        let mut rng = SplitMix::arbitrary();
        let asked = tokio::time::timeout(limit, self.ask_until_understood(&call, &progress, &mut rng)).await;
        asked.unwrap_or_else(|_| Answer {
            result: Err(ModelError::new(format!(
                "{}: no answer within {} s",
                self.http.place(),
                limit.as_secs_f64()
            ))),
            // Whether the endpoint charges for what nobody waited for is not known; assume it does.
            tokens: Tokens::guess(wire::bytes(&call), 0),
        })
    }

    /// Asks, and asks again in a simpler way if the endpoint does not know how typed answers were asked for.
    async fn ask_until_understood(
        &self,
        call: &ModelCall,
        progress: &Progress,
        rng: &mut SplitMix,
    ) -> Answer {
        loop {
            let way = self.structured.load(Ordering::Relaxed);
            let plan = wire::Plan::new(call, &self.options, Structured::ALL[usize::from(way) % 3]);
            let body = plan.body.to_string();
            let sent = self.options.backoff.run(
                rng,
                || self.http.post(&body),
                |number, wait, fault: &http::Fault| progress.retry(number, wait, fault.to_string()),
            );
            let (result, attempts) = sent.await;
            let fault = match result {
                Ok(json) => return self.read(call, &plan, &json, body.len()),
                Err(fault) => fault,
            };
            if plan.is_structured() && fault.rejects_structure() && way < 2 {
                // Remember it for all further questions. Another call may have gone further already.
                self.structured.fetch_max(way + 1, Ordering::Relaxed);
                continue;
            }
            let mut answer = Answer::failed(fault.explain(&self.options, self.http.place(), attempts));
            if fault.may_have_answered() {
                answer.tokens = Tokens::guess(body.len(), 0);
            }
            return answer;
        }
    }

    fn read(&self, call: &ModelCall, plan: &wire::Plan, json: &serde_json::Value, sent: usize) -> Answer {
        let (result, tokens) = wire::read(call, plan, json, sent);
        let result = result.map_err(|why| {
            let mut e = ModelError::new(format!("{}: {}", self.http.place(), why.message));
            e.help = why.help;
            e
        });
        Answer { result, tokens }
    }
}

impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.options.model
    }

    fn price(&self) -> Option<Price> {
        self.options.price.clone()
    }

    fn ask(self: Arc<Self>, call: ModelCall, progress: Progress) -> Work<Answer> {
        Work::Later(Box::pin(self.answer(call, progress)))
    }
}

/// The beginning of what was received, for messages.
fn excerpt(text: &str) -> String {
    match text.trim() {
        "" => "nothing".into(),
        text => format!("`{}`", clip(text, 300)),
    }
}
