//! One request and its answer, with everything that can happen to them.

use super::event_stream::FrameReader;
use super::sse::{SseError, SseEvent, SseReader};
use super::{AwsCredentials, Dialect, RemoteOptions, StreamKind, excerpt};
use crate::event::Progress;
use crate::provider::retry::AttemptError;
use crate::provider::{FaultKind, ModelError};
use crate::web;
use crate::{ConfigError, Redactor};
use diagnostics::clip_to as clip;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use runs::RedactedStream;
use serde_json::{Value as Json, json};
use std::fmt;
use std::time::{Duration, SystemTime};

/// Returns true if an endpoint's error code says that the account's quota is exhausted.
fn is_quota(code: &str) -> bool {
    matches!(code, "insufficient_quota" | "billing_error" | "billing_hard_limit_reached")
}

/// Returns whether an endpoint's error code means that the conversation is too long for the model.
fn is_context_length(code: &str) -> bool {
    matches!(
        code,
        "context_length_exceeded" | "exceed_context_size_error" | "model_max_prompt_tokens_exceeded"
    )
}

/// Returns whether an endpoint's error code means that the key is wrong, whatever the status is.
fn is_wrong_key(code: &str) -> bool {
    code == "API_KEY_INVALID"
}

/// The endpoint.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    url: reqwest::Url,
    /// The address of answers as streams.
    stream_url: reqwest::Url,
    place: String,
    /// Credentials that sign requests.
    signing: Option<AwsCredentials>,
    /// The variable that names a proxy for such addresses, if there is one.
    proxy: Option<&'static str>,
    max_body: usize,
    redactor: Redactor,
}

/// Reason why there is no readable response.
#[derive(Debug)]
pub(super) enum Fault {
    /// No connection, or it broke, or it fell silent.
    Connection {
        what: String,
        /// True if the request may have been processed in spite of the failure.
        sent: bool,
        /// True if the request timed out.
        slow: bool,
    },
    /// The endpoint refused.
    Status {
        status: u16,
        message: String,
        /// Error code of the endpoint.
        code: String,
        /// Parts of the request that the endpoint does not know.
        unknown: Vec<Parameter>,
    },
    /// A malformed response, with its description.
    Nonsense(String),
    /// An answer of more bytes than this.
    TooLarge(usize),
}

/// A part of a request that some endpoints do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// The type of the answer.
    Structure,
    /// The limit of a reply by its old name.
    OldLimit,
    /// The response is a stream.
    Stream,
}

impl Parameter {
    /// Words by which endpoints name each of them.
    const WORDS: [(Parameter, &[&str]); 3] = [
        (
            Parameter::Structure,
            &[
                "response_format",
                "json_schema",
                "response format",
                "structured output",
                "json_object",
                "output_config",
                "output_format",
                "text.format",
                "response mime type",
                "response_mime_type",
                "responsemimetype",
                "responsejsonschema",
                "response_json_schema",
            ],
        ),
        (Parameter::OldLimit, &["max_completion_tokens"]),
        (Parameter::Stream, &["stream", "streaming"]),
    ];

    /// Reads the refusal of an endpoint. Protocols have no code for this: some name the parameter, and all
    /// explain it in words of their own.
    fn refused(status: u16, named: Option<&str>, message: &str) -> Vec<Parameter> {
        if !matches!(status, 400 | 404 | 415 | 422 | 501) {
            return Vec::new();
        }
        let message = message.to_lowercase();
        let is = |word: &&str| named.is_some_and(|n| n == *word) || has_word(&message, word);
        Parameter::WORDS
            .iter()
            .filter(|(_, words)| words.iter().any(is))
            .map(|(parameter, _)| *parameter)
            .collect()
    }
}

/// Returns true if a text has a word that is no part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        // A plural is no longer word.
        let after = after.strip_prefix('s').unwrap_or(after);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Connection { what, .. } | Fault::Nonsense(what) => f.write_str(what),
            Fault::Status { status, message, code, .. } => {
                write!(f, "HTTP {status}: {message}")?;
                // A code in the manner of HTTP says nothing more.
                if code.is_empty() { Ok(()) } else { write!(f, " ({code})") }
            }
            Fault::TooLarge(most) => write!(f, "the answer is larger than the limit of {most} bytes"),
        }
    }
}

impl Fault {
    pub(super) fn may_have_answered(&self) -> bool {
        matches!(self, Fault::Connection { sent: true, .. } | Fault::Nonsense(_) | Fault::TooLarge(_))
    }

    pub(super) fn kind(&self) -> FaultKind {
        match self {
            Fault::Connection { slow: true, .. } => FaultKind::Slow,
            Fault::Connection { .. } => FaultKind::Connection,
            Fault::Nonsense(_) => FaultKind::Malformed,
            Fault::TooLarge(_) => FaultKind::TooLarge,
            Fault::Status { code, .. } if is_quota(code) => FaultKind::Quota,
            // Azure looks at prompts, too.
            Fault::Status { code, .. } if code == "content_filter" => FaultKind::Filtered,
            Fault::Status { code, .. } if is_context_length(code) => FaultKind::ContextLength,
            Fault::Status { code, .. } if is_wrong_key(code) => FaultKind::Unauthorized,
            Fault::Status { status: 401 | 403, .. } => FaultKind::Unauthorized,
            Fault::Status { status: 404, .. } => FaultKind::NotFound,
            Fault::Status { status: 429, .. } => FaultKind::RateLimited,
            Fault::Status { status: 408 | 409 | 425 | 500.., .. } => FaultKind::Server,
            Fault::Status { .. } => FaultKind::Rejected,
        }
    }

    /// Returns whether a later request may succeed. [`Backoff`](crate::Backoff) repeats such requests.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Fault::Connection { sent, slow, .. } => !(*sent && *slow),
            Fault::Status { .. } => self.may_pass(),
            Fault::Nonsense(_) | Fault::TooLarge(_) => false,
        }
    }

    /// Returns true if a retry may succeed. An exhausted quota has the status of a rate limit, but waiting
    /// does not help.
    fn may_pass(&self) -> bool {
        let Fault::Status { status, code, .. } = self else { return false };
        matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 529) && !is_quota(code)
    }

    /// Decides how to proceed after a fault that the endpoint reports. `retry_after` is the delay that it
    /// asks for, if any.
    fn trouble(self, retry_after: Option<Duration>) -> AttemptError<Fault> {
        if self.may_pass() { AttemptError::Passing(self, retry_after) } else { AttemptError::Final(self) }
    }

    /// Returns true if the endpoint does not know a part of the request.
    pub(super) fn is_about(&self, parameter: Parameter) -> bool {
        matches!(self, Fault::Status { unknown, .. } if unknown.contains(&parameter))
    }

    /// For people, with the remedy.
    pub(super) fn explain(&self, options: &RemoteOptions, http: &Http, attempts: u32) -> ModelError {
        let place = &http.place;
        let after = if attempts > 1 { format!(" (after {attempts} attempts)") } else { String::new() };
        let error = ModelError::of(self.kind(), format!("{place}: {self}{after}"));
        match self {
            Fault::Status { .. }
                if self.kind() == FaultKind::Unauthorized
                    && (options.key.is_some() || options.signing.is_some()) =>
            {
                error.with_help(format!("check the key in `{}`", options.key_source))
            }
            Fault::Status { .. } if self.kind() == FaultKind::Unauthorized => {
                error.with_help(format!("set `{}` in the environment or in `.env`", options.key_source))
            }
            Fault::Status { status: 404, .. } => {
                error.with_help(format!("check the model's name `{}` and the base URL", options.model))
            }
            Fault::Status { .. } if self.may_pass() => {
                error.with_help("try again later, or with fewer calls at once")
            }
            Fault::Status { .. } | Fault::TooLarge(_) => error,
            Fault::Connection { sent: false, .. } => error.with_help(match http.proxy {
                Some(variable) => format!(
                    "check the base URL, that the endpoint is running, and the proxy that `{variable}` names"
                ),
                None => "check the base URL and that the endpoint is running".into(),
            }),
            Fault::Connection { .. } => error,
            Fault::Nonsense(_) => {
                let (of, such_as) = options.protocol.dialect().described();
                error.with_help(format!("check that the base URL is that of {of}, such as `{such_as}`"))
            }
        }
    }
}

impl Http {
    pub(super) fn new(options: &RemoteOptions) -> Result<Http, ConfigError> {
        let dialect = options.protocol.dialect();
        let base = web::url(&options.base_url, "the base URL of the model")?;
        let address = |stream: bool| {
            let (path, query) = dialect.path(&options.model, stream);
            let mut url = base.clone();
            url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
            if query.is_some() {
                url.set_query(query);
            }
            url
        };
        let (url, stream_url) = (address(false), address(true));
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in dialect.headers() {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some(key) = &options.key {
            let (name, text) = dialect.key_header(key.expose());
            let mut value = HeaderValue::from_str(&text).map_err(|_| {
                ConfigError::new(format!(
                    "the key in `{}` has characters that no header can have",
                    options.key_source
                ))
            })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = web::client(&base, options.connect_timeout, Some(options.read_timeout), headers)?;
        Ok(Http {
            client,
            place: format!("`{}`", web::shown(&url)),
            proxy: web::proxy_variable(&url),
            url,
            stream_url,
            signing: options.signing.clone(),
            max_body: options.max_body,
            redactor: options.redactor.clone(),
        })
    }

    /// The address, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Sends a request once. The answer is JSON without the key, and no error of the endpoint; that of a
    /// stream is put together, and told as it grows.
    pub(super) async fn post(
        &self,
        dialect: &dyn Dialect,
        body: &str,
        stream: bool,
        progress: &Progress,
    ) -> Result<Json, AttemptError<Fault>> {
        let media_type = dialect.streams().media_type();
        let accept =
            if stream { format!("{media_type}, application/json") } else { "application/json".into() };
        let url = if stream { &self.stream_url } else { &self.url };
        let mut request = self.client.post(url.clone()).header(ACCEPT, accept);
        if let (Some(credentials), Some(service)) = (&self.signing, dialect.signed_service()) {
            // Each attempt has a signature of its own: it holds for some minutes.
            for (name, value) in credentials.headers("POST", url, body, service, SystemTime::now()) {
                request = request.header(name, value);
            }
        }
        let request = request.body(body.to_string());
        let response = request.send().await.map_err(|e| self.broken(&e))?;
        let status = response.status().as_u16();
        let kind = web::content_type(&response);
        let retry_after = web::retry_after(&response);
        if stream && status == 200 && kind.as_deref().is_some_and(|k| k.eq_ignore_ascii_case(media_type)) {
            let json = self.stream(dialect, response, progress).await?;
            return no_error(&json).map(|()| json).map_err(|fault| fault.trouble(retry_after));
        }
        let bytes = match web::body(response, self.max_body).await {
            Ok(bytes) => bytes,
            Err(web::BodyError::TooLarge) => return Err(AttemptError::Final(self.too_large())),
            Err(web::BodyError::Broken(e)) => return Err(self.broken(&e)),
        };
        let text = self.redactor.owned(String::from_utf8_lossy(&bytes).into_owned());
        let json = serde_json::from_str::<Json>(&text).map(|mut json| {
            self.redactor.json(&mut json);
            json
        });
        let retry_after = retry_after.or_else(|| json.as_ref().ok().and_then(told_delay));
        if status != 200 {
            return Err(refusal(status, json.as_ref().ok(), &text).trouble(retry_after));
        }
        if std::str::from_utf8(&bytes).is_err() {
            let what = format!("the answer is not UTF-8: {}", excerpt(&text));
            return Err(AttemptError::Final(Fault::Nonsense(what)));
        }
        let json = json.map_err(|e| {
            let what = if kind.as_deref().is_some_and(|k| !k.contains("json")) {
                format!(
                    "the answer is `{}`, not JSON: {}",
                    kind.as_deref().unwrap_or_default(),
                    excerpt(&text)
                )
            } else if e.is_eof() {
                format!("the answer is cut off: {}", excerpt(&text))
            } else {
                format!("the answer is not JSON ({e}): {}", excerpt(&text))
            };
            AttemptError::Final(Fault::Nonsense(what))
        })?;
        no_error(&json).map(|()| json).map_err(|fault| fault.trouble(retry_after))
    }

    /// Reads a stream to its end. Events after the last one of the protocol are not waited for.
    async fn stream(
        &self,
        dialect: &dyn Dialect,
        mut response: reqwest::Response,
        progress: &Progress,
    ) -> Result<Json, AttemptError<Fault>> {
        let mut events = SseReader::new(self.max_body);
        let mut frames = FrameReader::new(self.max_body);
        let kind = dialect.streams();
        let mut assembly = dialect.assembly();
        let (mut size, mut pieces) = (0usize, 0u64);
        let mut shown = RedactedStream::default();
        'reading: while let Some(chunk) = response.chunk().await.map_err(|e| self.broken(&e))? {
            size = size.saturating_add(chunk.len());
            let read = match kind {
                _ if size > self.max_body => Err(SseError::TooLong),
                StreamKind::Events => events.push(&chunk),
                StreamKind::Frames => frames.push(&chunk),
            };
            let read = read.map_err(|e| {
                AttemptError::Final(match e {
                    SseError::TooLong => self.too_large(),
                    SseError::NotUtf8 => Fault::Nonsense("the answer is not UTF-8".into()),
                    SseError::Corrupt => Fault::Nonsense("the stream has a wrong checksum or length".into()),
                })
            })?;
            for event in read {
                let grown = assembly.event(&event).map_err(|fault| self.clean(fault).trouble(None))?;
                match grown {
                    None => break 'reading,
                    Some(text) if text.is_empty() => {}
                    Some(text) => {
                        pieces += 1;
                        progress.text(shown.push(&self.redactor, &text));
                        progress.growing(pieces);
                    }
                }
            }
        }
        let Some(mut json) = assembly.end() else {
            let what = "the answer broke off: the stream ends before the answer does".to_string();
            return Err(AttemptError::Passing(Fault::Connection { what, sent: true, slow: false }, None));
        };
        progress.text(shown.end(&self.redactor));
        self.redactor.json(&mut json);
        Ok(json)
    }

    fn too_large(&self) -> Fault {
        Fault::TooLarge(self.max_body)
    }

    /// Returns the fault with secrets removed.
    fn clean(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Nonsense(what) => Fault::Nonsense(self.redactor.owned(what)),
            Fault::Status { status, message, code, unknown } => {
                Fault::Status { status, message: self.redactor.owned(message), code, unknown }
            }
            other => other,
        }
    }

    fn broken(&self, e: &reqwest::Error) -> AttemptError<Fault> {
        let sent = !e.is_connect();
        let what = self.redactor.owned(web::cause(e));
        let fault = Fault::Connection { what, sent, slow: e.is_timeout() };
        // A silent endpoint was given its time. A connection that can't be made, or breaks, may work next
        // time.
        if sent && e.is_timeout() { AttemptError::Final(fault) } else { AttemptError::Passing(fault, None) }
    }
}

/// The JSON of an event; an error if the event tells one.
pub(super) fn event_json(event: &SseEvent) -> Result<Json, Fault> {
    let json: Json = serde_json::from_str(&event.data).map_err(|e| {
        Fault::Nonsense(format!("an event of the answer is not JSON ({e}): {}", excerpt(&event.data)))
    })?;
    let is_error = event.name == "error" || json.get("type").is_some_and(|t| t == "error");
    if is_error && json.get("error").is_none_or(Json::is_null) {
        // The error itself, without an object around it.
        return Err(reported(&json!({ "error": json })));
    }
    no_error(&json).map(|()| json)
}

/// Some endpoints report errors as success, and streams have no other way.
pub(super) fn no_error(json: &Json) -> Result<(), Fault> {
    if json.get("error").is_some_and(|e| !e.is_null()) { Err(reported(json)) } else { Ok(()) }
}

/// The delay that an error of Google's asks for: it has no header for that.
fn told_delay(json: &Json) -> Option<Duration> {
    let details = json.pointer("/error/details")?.as_array()?;
    let text = details.iter().find_map(|d| d.get("retryDelay")?.as_str())?;
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The reason of an error of Google's.
fn told_reason(json: &Json) -> Option<&str> {
    let details = json.pointer("/error/details")?.as_array()?;
    details.iter().find_map(|d| d.get("reason")?.as_str())
}

/// An error that did not come with a status of its own.
fn reported(json: &Json) -> Fault {
    let said = json.pointer("/error/code").and_then(Json::as_u64).and_then(|s| u16::try_from(s).ok());
    let named = |at: &str| {
        let status = match json.pointer(at).and_then(Json::as_str)? {
            "overloaded_error" => 529,
            "rate_limit_error" | "rate_limit_exceeded" => 429,
            "api_error" | "server_error" => 500,
            "timeout_error" => 504,
            "authentication_error" => 401,
            "permission_error" => 403,
            "not_found_error" => 404,
            "request_too_large" => 413,
            "invalid_request_error" => 400,
            _ => return None,
        };
        Some(status)
    };
    let status = said.filter(|s| (400..600).contains(s));
    let status = status.or_else(|| named("/error/code")).or_else(|| named("/error/type")).unwrap_or(200);
    refusal(status, Some(json), &json.to_string())
}

fn refusal(status: u16, json: Option<&Json>, text: &str) -> Fault {
    let said = json.and_then(|j| {
        let error = j.get("error").unwrap_or(j);
        let message = error.get("message").or_else(|| j.get("message")).or_else(|| j.get("detail"));
        message.and_then(Json::as_str).or_else(|| error.as_str()).map(|m| clip(m, 500))
    });
    let message = said.unwrap_or_else(|| excerpt(text));
    let named = |at: &str| json.and_then(|j| j.pointer(at)).and_then(Json::as_str);
    // A type says something where it is the name of an error.
    let kind = named("/error/type").filter(|t| t.ends_with("_error") || is_quota(t));
    let reason = json.and_then(told_reason).filter(|reason| is_wrong_key(reason));
    let code = clip(reason.or(named("/error/code")).or(kind).unwrap_or_default(), 60);
    let unknown = Parameter::refused(status, named("/error/param"), &message);
    Fault::Status { status, message, code, unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_that_fails_is_no_complaint_about_streams() {
        let about =
            |status: u16, named: Option<&str>, message: &str| Parameter::refused(status, named, message);
        assert_eq!(about(400, None, "upstream connect error"), []);
        assert_eq!(about(400, None, "`stream` is not supported"), [Parameter::Stream]);
        assert_eq!(about(422, None, "Streaming is off for this model"), [Parameter::Stream]);
        assert_eq!(about(400, Some("response_format"), "Unsupported value"), [Parameter::Structure]);
        assert_eq!(about(400, None, "Use 'max_completion_tokens' instead."), [Parameter::OldLimit]);
        assert_eq!(about(500, Some("stream"), "`stream` broke"), []);
    }
}
