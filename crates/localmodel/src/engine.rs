//! Answers requests: prompt in, constrained reply out.
//!
//! Invariant: every token a reply is made of is either the likeliest allowed
//! one, part of the value that [`Choosing`] takes, or forced by the grammar.

use crate::Error;
use crate::channel::{self, Choice};
use crate::constrain::{Grammars, plain_string, string_enum, title};
use crate::gguf::Gguf;
use crate::llama::{Cache, Llama};
use crate::tokens::{Message, Role, Tokenizer};
use serde_json::Value;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Tokens of a prompt between two looks at whether to stop.
const STEP: usize = 64;

/// Tokens of earlier conversations and options whose keys and values are kept, 46 KB each for the default
/// model.
const MAX_KEPT: usize = 2048;

/// Input in place of the user's words when the prior probability of a label is measured.
const CONTENT_FREE: &str = "N/A";

/// Options for running a model.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Number of threads; `None` uses one for each processor, up to eight (more don't help a small model).
    pub threads: Option<usize>,
    /// Tokens to attend to, if less than the model could: bounds the memory of
    /// the cache.
    pub context: Option<usize>,
}

/// How a value of an enum or a boolean is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Choosing {
    /// By the noisy channel: the string is chosen under which the input is likeliest. The input is the text
    /// behind the first blank line of the only user message, or all of it. Values may have descriptions, in
    /// a list `enumDescriptions` beside `enum`. Where this says nothing, as of booleans, in the items of a
    /// list or after earlier answers, or where there are more than 16 values, they are chosen as with
    /// [`Choosing::Label`].
    #[default]
    Channel,
    /// The value is chosen that the conversation makes likelier than [`Request::content_free`] does.
    Label,
}

/// Request to generate text.
#[derive(Debug, Clone)]
pub struct Request {
    /// The conversation so far; at least one message.
    pub messages: Vec<Message>,
    /// If set, the reply is JSON text that validates against this JSON Schema.
    pub schema: Option<Value>,
    /// Tokens the model may write. A reply under a schema that is cut off here
    /// is completed without the model, so it may be somewhat longer.
    pub max_tokens: usize,
    /// Texts that end a free reply; they are no part of it. Ignored under a
    /// schema.
    pub stop: Vec<String>,
    /// How values of enums and booleans are chosen.
    pub choosing: Choosing,
    /// The conversation with the same instructions, but something that says
    /// nothing, as `N/A`, for what they are applied to; for [`Choosing::Label`].
    /// `None` puts `N/A` for every user message, from its first blank line on
    /// if it has one, taking what stands before for instructions.
    pub content_free: Option<Vec<Message>>,
}

impl Request {
    /// A request for free text of at most 512 tokens.
    pub fn new(messages: Vec<Message>) -> Request {
        Request {
            messages,
            schema: None,
            max_tokens: 512,
            stop: Vec::new(),
            choosing: Choosing::default(),
            content_free: None,
        }
    }
}

/// Progress events of [`LocalModel::generate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The prompt is being read.
    Prompt {
        /// Tokens read, including those remembered from the request before.
        done: usize,
        /// Tokens of the prompt.
        total: usize,
    },
    /// The reply grew.
    Text {
        /// Text added since the last event: whole characters. Under a schema, JSON text.
        piece: &'a str,
        /// Tokens of the reply so far.
        output_tokens: usize,
    },
}

/// Reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The model ended it, or nothing could follow.
    Stop,
    /// A stop text of the request was met.
    StopText,
    /// `max_tokens` or the context was used up.
    Length,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text; under a schema JSON text that validates.
    pub text: String,
    /// Tokens of the prompt.
    pub input_tokens: usize,
    /// Number of prompt tokens taken from the cache.
    pub cached_tokens: usize,
    /// Tokens of the reply.
    pub output_tokens: usize,
    /// Reason why the reply ended.
    pub finish: Finish,
}

/// Called as a reply is worked on; `Break` ends the work with
/// [`Error::Canceled`].
pub type Watch<'a> = dyn FnMut(Progress<'_>) -> ControlFlow<()> + 'a;

/// A loaded model.
///
/// Methods block; run them on a thread where that is allowed.
pub struct LocalModel {
    model: Llama,
    tokenizer: Arc<Tokenizer>,
    grammars: Grammars,
    threads: rayon::ThreadPool,
    /// The conversation at hand.
    main: Track,
    /// The prompt without content, to calibrate likelihoods.
    blank: Track,
    /// Earlier conversations and options.
    kept: Tracks,
}

impl std::fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalModel").field("config", &self.model.config).finish_non_exhaustive()
    }
}

impl LocalModel {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::NotGguf`] and [`Error::Unsupported`], if the
    /// file can't be read, is broken or of another kind.
    pub fn load(path: &Path) -> Result<LocalModel, Error> {
        LocalModel::load_with(path, &Options::default())
    }

    /// [`LocalModel::load`] with options.
    pub fn load_with(path: &Path, options: &Options) -> Result<LocalModel, Error> {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.unwrap_or(available.min(8)).max(1))
            .thread_name(|i| format!("localmodel-{i}"))
            .build()
            .map_err(|e| Error::unsupported(format!("no threads to run it: {e}")))?;
        let mut file = Gguf::open(path)?;
        let tokenizer = Arc::new(Tokenizer::read(&file)?);
        let mut model = threads.install(|| Llama::read(&mut file, tokenizer.vocab_size()))?;
        if let Some(most) = options.context {
            model.config.context = model.config.context.min(most.max(1));
        }
        Ok(LocalModel {
            grammars: Grammars::new(tokenizer.clone())?,
            main: Track::new(&model),
            blank: Track::new(&model),
            kept: Tracks::default(),
            model,
            tokenizer,
            threads,
        })
    }

    /// Tokens the model attends to: prompt and reply together.
    pub fn context(&self) -> usize {
        self.model.config.context
    }

    /// Tokens of a text, as the model counts them.
    pub fn count_tokens(&self, text: &str) -> usize {
        self.tokenizer.encode(text).len()
    }

    /// Answers a request. The same request gets the same answer.
    ///
    /// A beginning that this request's prompt shares with a recent one is not
    /// computed again.
    ///
    /// # Errors
    /// [`Error::Request`] without messages or tokens to write,
    /// [`Error::Schema`] if the schema can't be followed,
    /// [`Error::ContextOverflow`] if the prompt leaves no room for a reply,
    /// [`Error::Canceled`] if `watch` breaks off.
    pub fn generate(&mut self, request: &Request, watch: &mut Watch<'_>) -> Result<Reply, Error> {
        if request.messages.is_empty() || request.max_tokens == 0 {
            return Err(Error::Request {
                detail: "it needs at least one message and one token to write".into(),
            });
        }
        let prompt = self.tokenizer.conversation(&request.messages);
        if prompt.len() >= self.context() {
            return Err(Error::ContextOverflow { prompt: prompt.len(), context: self.context() });
        }
        let input_tokens = prompt.len();
        let before = std::mem::replace(&mut self.main, Track::new(&self.model));
        self.kept.put(before);
        self.main = self.kept.take(&self.model, &prompt);
        let cached_tokens = self.main.shared(&prompt);
        let mut run = Generation {
            request,
            blank: self.tokenizer.conversation(&content_free(request)),
            tokens: prompt,
            input_tokens,
            limit: request.max_tokens,
            decoder: Decoder::default(),
            shown: 0,
            quoted: false,
            engine: self,
            watch,
        };
        let (text, finish) = match &request.schema {
            None => run.free(&request.stop, usize::MAX)?,
            Some(schema) => run.constrained(schema)?,
        };
        let output_tokens = run.tokens.len() - input_tokens;
        Ok(Reply { text, input_tokens, cached_tokens, output_tokens, finish })
    }
}

/// The conversation without what it is about.
fn content_free(request: &Request) -> Cow<'_, [Message]> {
    if let Some(messages) = &request.content_free {
        return Cow::Borrowed(messages);
    }
    let messages = request.messages.iter();
    let blank = messages.map(|message| match message.role {
        Role::User => Message::user(match message.content.split_once("\n\n") {
            Some((instructions, _)) => format!("{instructions}\n\n{CONTENT_FREE}"),
            None => CONTENT_FREE.into(),
        }),
        _ => message.clone(),
    });
    Cow::Owned(blank.collect())
}

/// Sequences that the model has read, the most recent last. Of a beginning that requests share, such as the
/// instructions of an agent, nothing is computed twice while it is kept.
///
/// Invariant: at most [`MAX_KEPT`] tokens in all, or one sequence.
#[derive(Default)]
struct Tracks(Vec<Track>);

impl Tracks {
    /// The longest beginning of `tokens` that is kept. A sequence that goes on otherwise stays, unless it is
    /// too long to have twice.
    fn take(&mut self, model: &Llama, tokens: &[u32]) -> Track {
        let shared = self.0.iter().map(|track| track.shared(tokens)).enumerate();
        match shared.max_by_key(|(_, shared)| *shared) {
            Some((at, shared)) if shared > 0 => {
                let whole = self.0[at].cache.tokens.len();
                match shared == whole || whole > MAX_KEPT / 2 {
                    true => self.0.remove(at),
                    false => self.0[at].beginning(shared),
                }
            }
            _ => Track::new(model),
        }
    }

    fn put(&mut self, track: Track) {
        if track.cache.tokens.is_empty() {
            return;
        }
        self.0.push(track);
        let mut total: usize = self.0.iter().map(|track| track.cache.tokens.len()).sum();
        while total > MAX_KEPT && self.0.len() > 1 {
            total -= self.0.remove(0).cache.tokens.len();
        }
    }
}

/// A sequence of tokens the model has read, and what it expects next.
struct Track {
    cache: Cache,
    /// After the last token of the cache.
    logits: Vec<f32>,
}

impl Track {
    fn new(model: &Llama) -> Track {
        Track { cache: Cache::new(&model.config), logits: Vec::new() }
    }

    /// A copy of the first `len` tokens, after which at least one must be read.
    fn beginning(&self, len: usize) -> Track {
        Track { cache: self.cache.beginning(len), logits: Vec::new() }
    }

    /// Returns the number of leading tokens that are already in the cache.
    fn shared(&self, tokens: &[u32]) -> usize {
        let same = self.cache.tokens.iter().zip(tokens);
        let shared = same.take_while(|(a, b)| a == b).count();
        match shared == tokens.len() && shared < self.cache.tokens.len() {
            // The state after the last token was not kept.
            true => shared.saturating_sub(1),
            false => shared,
        }
    }

    /// Reads `tokens`, all of them from the start of the sequence.
    fn read(
        &mut self,
        model: &Llama,
        threads: &rayon::ThreadPool,
        tokens: &[u32],
        mut watch: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut done = self.shared(tokens);
        self.cache.truncate(done);
        for chunk in tokens[done..].chunks(STEP) {
            self.logits = threads.install(|| model.forward(&mut self.cache, chunk, false));
            done += chunk.len();
            if watch(done).is_break() {
                return Err(Error::Canceled);
            }
        }
        Ok(())
    }

    /// Log-likelihood of `text` to follow what was read. `look` is called between steps.
    fn score(
        &mut self,
        model: &Llama,
        threads: &rayon::ThreadPool,
        text: &[u32],
        mut look: impl FnMut() -> ControlFlow<()>,
    ) -> Result<f32, Error> {
        let Some((&first, rest)) = text.split_first() else {
            return Ok(0.0);
        };
        let mut total = log_likelihood(&self.logits, first);
        let past = self.cache.tokens.len();
        let mut stopped = false;
        for (read, next) in text[..rest.len()].chunks(STEP).zip(rest.chunks(STEP)) {
            let logits = threads.install(|| model.forward(&mut self.cache, read, true));
            let each = logits.chunks(model.config.vocab);
            total += each.zip(next).map(|(logits, &token)| log_likelihood(logits, token)).sum::<f32>();
            stopped = look().is_break();
            if stopped {
                break;
            }
        }
        self.cache.truncate(past);
        if stopped { Err(Error::Canceled) } else { Ok(total) }
    }
}

fn log_likelihood(logits: &[f32], token: u32) -> f32 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|x| (x - most).exp()).sum();
    let logit = logits.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
    let value = logit - most - total.ln();
    if value.is_nan() { f32::NEG_INFINITY } else { value }
}

/// One request being answered.
struct Generation<'a, 'w> {
    request: &'a Request,
    /// The prompt and the reply so far.
    tokens: Vec<u32>,
    input_tokens: usize,
    /// The prompt without content.
    blank: Vec<u32>,
    limit: usize,
    decoder: Decoder,
    /// Bytes of the decoder's text that the watcher has seen.
    shown: usize,
    /// True if the watcher receives the inside of a JSON string.
    quoted: bool,
    engine: &'a mut LocalModel,
    watch: &'a mut Watch<'w>,
}

impl Generation<'_, '_> {
    fn output_tokens(&self) -> usize {
        self.tokens.len() - self.input_tokens
    }

    /// Returns true if the model has used up its output tokens.
    fn is_spent(&self) -> bool {
        self.output_tokens() >= self.limit || self.tokens.len() >= self.engine.context()
    }

    /// Makes the model read what there is.
    fn read(&mut self) -> Result<(), Error> {
        let total = self.tokens.len();
        let reply = total > self.input_tokens;
        let watch = &mut self.watch;
        let engine = &mut *self.engine;
        engine.main.read(&engine.model, &engine.threads, &self.tokens, |done| {
            if reply {
                return ControlFlow::Continue(());
            }
            watch(Progress::Prompt { done, total })
        })
    }

    /// Shows the watcher the text up to byte `end`.
    fn show(&mut self, end: usize) -> Result<(), Error> {
        let end = self.decoder.text.floor_char_boundary(end).max(self.shown);
        let piece = &self.decoder.text[self.shown..end];
        let escaped;
        let piece = if self.quoted {
            let quoted = Value::from(piece).to_string();
            escaped = quoted[1..quoted.len() - 1].to_owned();
            &escaped
        } else {
            piece
        };
        self.shown = end;
        let output_tokens = self.output_tokens();
        tell(self.watch, piece, output_tokens)
    }

    /// Adds tokens to the reply.
    fn push(&mut self, tokens: &[u32]) {
        for &token in tokens {
            self.tokens.push(token);
            self.decoder.push(self.engine.tokenizer.bytes(token));
        }
    }

    /// Lets the model write until it ends its turn.
    fn free(&mut self, stop: &[String], max_chars: usize) -> Result<(String, Finish), Error> {
        let longest = stop.iter().map(String::len).max().unwrap_or(0);
        let finish = loop {
            if self.is_spent() {
                break Finish::Length;
            }
            self.read()?;
            let Some(best) = argmax(&self.engine.main.logits) else {
                break Finish::Stop;
            };
            if self.engine.tokenizer.bytes(best).is_empty() {
                break Finish::Stop;
            }
            let from = self.decoder.text.len().saturating_sub(longest);
            let from = self.decoder.text.floor_char_boundary(from);
            self.push(&[best]);
            let met = stop
                .iter()
                .filter(|stop| !stop.is_empty())
                .filter_map(|stop| self.decoder.text[from..].find(stop.as_str()))
                .min();
            if let Some(at) = met {
                self.decoder.text.truncate(from + at);
                break Finish::StopText;
            }
            if let Some((at, _)) = self.decoder.text.char_indices().nth(max_chars) {
                self.decoder.text.truncate(at);
                break Finish::Length;
            }
            // A stop text may have begun.
            self.show((self.decoder.text.len() + 1).saturating_sub(longest.max(1)))?;
        };
        self.show(self.decoder.text.len())?;
        Ok((self.decoder.text.clone(), finish))
    }

    /// Writes JSON text that validates against `schema`.
    fn constrained(&mut self, schema: &Value) -> Result<(String, Finish), Error> {
        if let Some(choices) = string_enum(schema) {
            let best = &choices[self.choose(&choices, Some(title(schema)))?];
            self.push(&self.engine.tokenizer.encode(&best.rest));
            let text = Value::from(best.rest.as_str()).to_string();
            self.decoder.text.clone_from(&text);
            self.show(text.len())?;
            return Ok((text, Finish::Stop));
        }
        // At this size, a model says more when it need not write JSON.
        if let Some(max_chars) = plain_string(schema) {
            self.quoted = true;
            tell(self.watch, "\"", 0)?;
            let (text, finish) = self.free(&[], max_chars)?;
            let output_tokens = self.output_tokens();
            tell(self.watch, "\"", output_tokens)?;
            return Ok((Value::from(text).to_string(), finish));
        }
        let mut grammar = self.engine.grammars.start(schema)?;
        let finish = loop {
            let forced = grammar.forced()?;
            if !forced.is_empty() {
                self.push(&forced);
                self.show(self.decoder.text.len())?;
            }
            if grammar.is_finished() {
                break Finish::Stop;
            }
            if self.is_spent() {
                break Finish::Length;
            }
            let choices = grammar.choices();
            let next = if choices.is_empty() {
                self.read()?;
                let best = grammar.best(&self.engine.main.logits)?;
                if self.engine.tokenizer.stops().contains(&best) {
                    break Finish::Stop;
                }
                grammar.consume(&[best])?;
                vec![best]
            } else {
                let best = self.choose(&choices, grammar.field().as_deref())?;
                grammar.write(&choices[best].rest)?
            };
            self.push(&next);
            self.show(self.decoder.text.len())?;
        };
        let closing = grammar.close()?;
        self.push(&closing);
        self.show(self.decoder.text.len())?;
        let text =
            String::from_utf8(grammar.text().to_vec()).map_err(|_| Error::schema("the reply is not text"))?;
        Ok((text, finish))
    }

    /// The value to choose for `field`; None means the item of a list. Of equals the first.
    fn choose(&mut self, choices: &[Choice], field: Option<&str>) -> Result<usize, Error> {
        if let (Choosing::Channel, Some(field)) = (self.request.choosing, field)
            && let Some(best) = self.choose_by_channel(choices, field)?
        {
            return Ok(best);
        }
        self.read()?;
        self.choose_by_label(choices)
    }

    /// The value under which the input is likeliest, if there is an input and each value has a name.
    fn choose_by_channel(&mut self, choices: &[Choice], field: &str) -> Result<Option<usize>, Error> {
        let request = self.request;
        let Some(input) = channel::input(request).filter(|_| choices.len() <= channel::MAX_OPTIONS) else {
            return Ok(None);
        };
        let field = channel::in_words(field);
        let questions: Option<Vec<Vec<Message>>> =
            choices.iter().map(|choice| channel::question(request, &input, &field, choice)).collect();
        let Some(questions) = questions else { return Ok(None) };
        let output_tokens = self.output_tokens();
        let engine = &mut *self.engine;
        let (model, threads) = (&engine.model, &engine.threads);
        let mut text = engine.tokenizer.encode(input.text);
        text.truncate(channel::MAX_INPUT);
        let questions: Vec<Vec<u32>> =
            questions.iter().map(|messages| engine.tokenizer.conversation(messages)).collect();
        let room = channel::MAX_QUESTION.min(model.config.context.saturating_sub(text.len()));
        if questions.iter().any(|question| question.len() > room) {
            return Ok(None);
        }
        let watch = &mut self.watch;
        let mut look = || watch(Progress::Text { piece: "", output_tokens });
        let mut best = (0, f32::NEG_INFINITY);
        for (i, question) in questions.iter().enumerate() {
            let mut track = engine.kept.take(model, question);
            track.read(model, threads, question, |_| look())?;
            let score = track.score(model, threads, &text, &mut look)?;
            engine.kept.put(track);
            if score > best.1 {
                best = (i, score);
            }
        }
        Ok(Some(best.0))
    }

    /// The value that what was read makes likelier than the mere form of the request does.
    ///
    /// Source: Zhao et al., "Calibrate Before Use", 2021, §5.
    fn choose_by_label(&mut self, choices: &[Choice]) -> Result<usize, Error> {
        let labels: Vec<Vec<u32>> =
            choices.iter().map(|choice| self.engine.tokenizer.encode(&choice.rest)).collect();
        let longest = labels.iter().map(Vec::len).max().unwrap_or(0);
        let mut blank = self.blank.clone();
        blank.extend(&self.tokens[self.input_tokens..]);
        let context = self.engine.context();
        if self.tokens.len().max(blank.len()) + longest > context {
            return Err(Error::ContextOverflow { prompt: self.input_tokens, context });
        }
        let output_tokens = self.output_tokens();
        let engine = &mut *self.engine;
        let (model, threads) = (&engine.model, &engine.threads);
        let watch = &mut self.watch;
        let mut look = || watch(Progress::Text { piece: "", output_tokens });
        engine.blank.read(model, threads, &blank, |_| look())?;
        let mut best = (0, f32::NEG_INFINITY);
        for (i, label) in labels.iter().enumerate() {
            let score = engine.main.score(model, threads, label, &mut look)?
                - engine.blank.score(model, threads, label, &mut look)?;
            if look().is_break() {
                return Err(Error::Canceled);
            }
            if score > best.1 {
                best = (i, score);
            }
        }
        Ok(best.0)
    }
}

fn tell(watch: &mut Watch<'_>, piece: &str, output_tokens: usize) -> Result<(), Error> {
    match watch(Progress::Text { piece, output_tokens }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Canceled),
    }
}

/// The index of the highest value; of several the first.
fn argmax(logits: &[f32]) -> Option<u32> {
    let mut best: Option<(usize, f32)> = None;
    for (i, &logit) in logits.iter().enumerate() {
        if best.is_none_or(|(_, most)| logit > most) && !logit.is_nan() {
            best = Some((i, logit));
        }
    }
    best.map(|(i, _)| i as u32)
}

/// Turns bytes into text as characters become whole.
#[derive(Default)]
struct Decoder {
    pending: Vec<u8>,
    text: String,
}

impl Decoder {
    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let mut used = 0;
        for chunk in self.pending.utf8_chunks() {
            self.text.push_str(chunk.valid());
            used += chunk.valid().len();
            let invalid = chunk.invalid();
            let unfinished = used + invalid.len() == self.pending.len()
                && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            if !invalid.is_empty() && !unfinished {
                self.text.push(char::REPLACEMENT_CHARACTER);
                used += invalid.len();
            }
        }
        self.pending.drain(..used);
    }
}
