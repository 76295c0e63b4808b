//! Models behind HTTP: one client for all protocols, which differ in how a question is written and an answer
//! is read.
//!
//! Invariant: the key is in one header and nowhere else; what the endpoint says has been through the
//! redactor before any other code sees it.

mod anthropic;
mod aws;
mod bedrock;
mod chat;
mod convert;
mod endpoint;
mod event_stream;
mod gemini;
mod http;
mod responses;
mod sse;

pub(super) use anthropic::ANTHROPIC;
pub use aws::AwsCredentials;
pub(super) use bedrock::BEDROCK;
pub(super) use chat::{AZURE, LLAMA_CPP, OLLAMA, OPENAI, VLLM};
pub(super) use gemini::{GEMINI, VERTEX};
pub(super) use responses::OPENAI_RESPONSES;

use super::rate::{Rate, RateLimit};
use super::retry::AttemptError;
use super::{Answer, Backoff, FaultKind, ModelCall, ModelError, Price, Provider, Tokens, Work};
use crate::event::Progress;
use crate::rng;
use crate::{ConfigError, Redactor, Secret};
use convert::{Plan, Received};
use diagnostics::clip_to as clip;
use http::{Fault, Http, Parameter};
use runs::SplitMix;
use serde_json::{Value as Json, json};
use sse::SseEvent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

/// Way in which a model is told the type of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structured {
    /// `response_format: json_schema`. The next form is tried if the endpoint does not support it.
    JsonSchema,
    /// By `response_format: json_object`, and the schema in the instructions.
    JsonObject,
    /// By the instructions alone.
    Prompt,
}

impl Structured {
    const ALL: [Structured; 3] = [Structured::JsonSchema, Structured::JsonObject, Structured::Prompt];
}

/// Protocol of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's Chat Completions, which Ollama, llama.cpp, vLLM and many others speak too.
    #[default]
    Chat,
    /// Chat Completions of Azure OpenAI.
    Azure,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's Gemini, with a key.
    Gemini,
    /// Gemini of Vertex AI, with an access token.
    Vertex,
    /// Converse of Amazon Bedrock.
    Bedrock,
}

impl Protocol {
    /// Returns the encoder and decoder of the protocol. Only these know the details of each protocol.
    fn dialect(self) -> &'static dyn Dialect {
        match self {
            Protocol::Chat => &chat::Chat { is_azure: false },
            Protocol::Azure => &chat::Chat { is_azure: true },
            Protocol::Responses => &responses::Responses,
            Protocol::Anthropic => &anthropic::Anthropic,
            Protocol::Gemini => &gemini::Gemini { takes_token: false },
            Protocol::Vertex => &gemini::Gemini { takes_token: true },
            Protocol::Bedrock => &bedrock::Bedrock,
        }
    }
}

/// A way to write questions and to read answers.
trait Dialect: Sync {
    /// Path appended to the base URL, for this model, and the query.
    fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>);

    /// Returns the kind of service that has such a base URL, and an example of one.
    fn described(&self) -> (&'static str, &'static str);

    /// Headers of every request.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The header that has the key, with its value.
    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    /// Service whose name is in signatures of requests, where credentials sign them.
    fn signed_service(&self) -> Option<&'static str> {
        None
    }

    /// The first way in which the protocol can state the type of an answer.
    fn structured(&self) -> Structured {
        Structured::JsonSchema
    }

    /// Returns whether prompts are cached on request, and what is written to the cache costs more.
    fn caches_on_request(&self) -> bool {
        false
    }

    /// Encoding of answers that are streams.
    fn streams(&self) -> StreamKind {
        StreamKind::Events
    }

    /// A question.
    fn body(&self, plan: &Plan<'_>) -> Json;

    /// An answer.
    fn read(&self, json: &Json) -> Result<Received, ModelError>;

    /// The beginning of a stream.
    fn assembly(&self) -> Box<dyn Assembly + Send>;
}

/// Encoding of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamKind {
    /// Server-sent events.
    Events,
    /// Frames of Amazon.
    Frames,
}

impl StreamKind {
    fn media_type(self) -> &'static str {
        match self {
            StreamKind::Events => "text/event-stream",
            StreamKind::Frames => "application/vnd.amazon.eventstream",
        }
    }
}

/// A stream on its way to be an answer.
trait Assembly {
    /// Takes an event. Returns what it adds to the text, and `None` after the last.
    fn event(&mut self, event: &SseEvent) -> Result<Option<String>, Fault>;

    /// The answer as it would have come without a stream; `None` if it is not whole.
    fn end(self: Box<Self>) -> Option<Json>;
}

/// Address and settings of a remote model.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// Protocol of the endpoint.
    pub protocol: Protocol,
    /// The name under which the endpoint knows the model.
    pub model: String,
    /// The address up to and without `/chat/completions`, `/responses`, `/messages` or `/models`.
    pub base_url: String,
    /// The key, if the endpoint wants one.
    pub key: Option<Secret>,
    /// Credentials that sign requests, where the endpoint wants that instead of a key.
    pub signing: Option<AwsCredentials>,
    /// Model parameters of programs that the endpoint knows beyond its protocol.
    pub parameters: &'static [&'static str],
    /// Source of the key, for messages: `OPENAI_API_KEY`.
    pub key_source: String,
    /// Preferred way to request typed answers.
    pub structured: Structured,
    /// Price of the model, if known.
    pub price: Option<Price>,
    /// True to request that prompts are cached, where that is requested.
    pub cache: bool,
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
    /// Seed of the jitter between retries; the same seed gives the same delays. Without one they are
    /// arbitrary.
    pub jitter: Option<u64>,
    /// Limits on calls and tokens per minute.
    pub rate: RateLimit,
    /// True to stream responses, false not to; by default, responses are streamed where a listener wants the
    /// text.
    pub stream: Option<bool>,
    /// Further secrets to remove from what is shown. The key always is.
    pub redactor: Redactor,
}

impl RemoteOptions {
    /// The usual limits: 10 s to connect, 2 min of silence, 10 min in all, 8 MiB.
    pub fn new(model: impl Into<String>, base_url: impl Into<String>, key: Option<Secret>) -> RemoteOptions {
        RemoteOptions {
            protocol: Protocol::Chat,
            model: model.into(),
            base_url: base_url.into(),
            redactor: Redactor::new(key.clone()),
            key,
            signing: None,
            parameters: &[],
            key_source: "OPENAI_API_KEY".into(),
            structured: Structured::JsonSchema,
            price: None,
            cache: false,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(120),
            total_timeout: Duration::from_secs(600),
            max_body: 8 << 20,
            backoff: Backoff::default(),
            jitter: None,
            rate: RateLimit::default(),
            stream: None,
        }
    }
}

/// A model behind HTTP. Its connections are kept from call to call.
#[derive(Debug)]
pub struct Remote {
    options: RemoteOptions,
    http: Http,
    rate: Rate,
    /// The index in [`Structured::ALL`] of the way that the endpoint is known to accept.
    structured: AtomicU8,
    /// True if the endpoint is known not to support streams.
    whole: AtomicBool,
    /// True if the endpoint calls the output limit `max_completion_tokens`, as OpenAI's does.
    new_limit: AtomicBool,
    /// Number of consecutive calls that failed although they were repeated.
    failures: AtomicU32,
}

impl Remote {
    /// A client. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is no `http` or `https` URL, the key has characters that no header can have, or there are
    /// no root certificates for `https`.
    pub fn new(options: RemoteOptions) -> Result<Remote, ConfigError> {
        let http = Http::new(&options)?;
        let dialect = options.protocol.dialect();
        let structured = AtomicU8::new((options.structured as u8).max(dialect.structured() as u8));
        let rate = Rate::new(options.rate);
        // Most others know only the old name.
        let new_limit = AtomicBool::new(options.base_url.contains("//api.openai.com"));
        let (whole, failures) = (AtomicBool::new(false), AtomicU32::new(0));
        Ok(Remote { options, http, rate, structured, whole, new_limit, failures })
    }

    async fn answer(self: Arc<Self>, call: ModelCall, progress: Progress) -> Answer {
        let limit = self.options.total_timeout;
        let mut rng = self.options.jitter.map_or_else(rng::arbitrary, SplitMix::new);
        let asked = tokio::time::timeout(limit, self.ask_until_understood(&call, &progress, &mut rng)).await;
        asked.unwrap_or_else(|_| {
            let what = format!("{}: no answer within {} s", self.http.place(), limit.as_secs_f64());
            let bytes = call.messages.size().bytes;
            // It is unknown whether the endpoint charges for abandoned requests; assume it does.
            let tokens = self.abandoned(bytes);
            Answer { tokens, ..Answer::failed(ModelError::of(FaultKind::Slow, what)) }
        })
    }

    /// Asks, and asks again in another way if the endpoint does not know how typed answers, streams, or
    /// limits were asked for.
    async fn ask_until_understood(
        &self,
        call: &ModelCall,
        progress: &Progress,
        rng: &mut SplitMix,
    ) -> Answer {
        let wanted = self.options.stream.unwrap_or(progress.wants_text());
        loop {
            let way = self.structured.load(Ordering::Relaxed);
            let stream = wanted && !self.whole.load(Ordering::Relaxed);
            let new_limit = self.new_limit.load(Ordering::Relaxed);
            let structured = Structured::ALL[usize::from(way) % 3];
            let mut plan = Plan::new(call, &self.options, structured);
            (plan.stream, plan.new_limit) = (stream, new_limit);
            let dialect = self.options.protocol.dialect();
            let body = dialect.body(&plan).to_string();
            let tokens = Tokens::guess(body.len(), 0).input;
            let sent = self.options.backoff.run(
                rng,
                || async {
                    self.rate.wait(tokens).await;
                    let sent = self.http.post(dialect, &body, stream, progress).await;
                    if let Err(AttemptError::Passing(_, Some(pause))) = &sent {
                        // The others need not find out for themselves.
                        self.rate.pause(*pause, self.options.backoff.patience);
                    }
                    sent
                },
                |number, wait, fault: &Fault| progress.retry(number, wait, fault.to_string()),
            );
            let (result, attempts) = sent.await;
            let fault = match result {
                Ok(json) => {
                    self.failures.store(0, Ordering::Relaxed);
                    return self.read(&plan, &json, body.len());
                }
                Err(fault) => fault,
            };
            if fault.is_transient() {
                // Whoever asks again, a `retries` of the program for instance, waits as the next repetition
                // would have.
                let failures = self.failures.fetch_add(1, Ordering::Relaxed);
                let pause = self.options.backoff.pause(failures, rng);
                self.rate.pause(pause, Duration::MAX);
            }
            if plan.is_structured() && fault.is_about(Parameter::Structure) && way < 2 {
                // Remember it for all further questions. Another call may have gone further already.
                self.structured.fetch_max(way + 1, Ordering::Relaxed);
                continue;
            }
            if !new_limit && fault.is_about(Parameter::OldLimit) {
                self.new_limit.store(true, Ordering::Relaxed);
                continue;
            }
            if stream && fault.is_about(Parameter::Stream) {
                self.whole.store(true, Ordering::Relaxed);
                continue;
            }
            let mut answer = Answer::failed(fault.explain(&self.options, &self.http, attempts));
            if fault.may_have_answered() {
                answer.tokens = self.abandoned(body.len());
            }
            return answer;
        }
    }

    /// Tokens of a request whose answer was lost. All of them may have been written to a cache.
    fn abandoned(&self, bytes: usize) -> Tokens {
        let guess = Tokens::guess(bytes, 0);
        Tokens { cache_write: if self.options.cache { guess.input } else { 0 }, ..guess }
    }

    fn read(&self, plan: &Plan<'_>, json: &Json, sent: usize) -> Answer {
        let named = |why: ModelError| ModelError {
            message: format!("{}: {}", self.http.place(), why.message),
            ..why
        };
        match self.options.protocol.dialect().read(json) {
            Err(why) => Answer { tokens: self.abandoned(sent), ..Answer::failed(named(why)) },
            Ok(received) => {
                let (tokens, finish) = (plan.tokens(&received, sent), received.finish);
                // Another model, also one of the same protocol, can't read the thoughts of this one.
                let words = received.words.as_ref();
                let words = words.map(|w| Arc::new(json!({"model": self.options.model, "content": w})));
                let result = plan.reply(received, json).map_err(named);
                Answer { result, tokens, finish, by: None, words }
            }
        }
    }
}

impl Provider for Remote {
    fn name(&self) -> &str {
        &self.options.model
    }

    fn price(&self) -> Option<Price> {
        self.options.price.clone()
    }

    fn may_block(&self) -> bool {
        false
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
