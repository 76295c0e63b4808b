//! One request and its answer, with everything that can happen to them.

use super::{OpenAiOptions, excerpt};
use crate::provider::ModelError;
use crate::provider::retry::Trouble;
use crate::web;
use crate::{ConfigError, Redactor};
use diagnostics::clip_to as clip;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::Value as Json;
use std::fmt;

/// The endpoint.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    url: reqwest::Url,
    place: String,
    max_body: usize,
    redactor: Redactor,
}

/// Why there is no answer to read.
#[derive(Debug)]
pub(super) enum Fault {
    /// No connection, or it broke, or it fell silent.
    Connection {
        what: String,
        /// Whether the request may have been carried out all the same.
        sent: bool,
    },
    /// The endpoint refused.
    Status { status: u16, message: String, patience: bool },
    /// An answer that is none: what is wrong with it.
    Nonsense(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Connection { what, .. } | Fault::Nonsense(what) => f.write_str(what),
            Fault::Status { status, message, .. } => write!(f, "HTTP {status}: {message}"),
        }
    }
}

impl Fault {
    pub(super) fn may_have_answered(&self) -> bool {
        matches!(self, Fault::Connection { sent: true, .. } | Fault::Nonsense(_))
    }

    /// Whether the endpoint complains about the way in which a typed answer was asked for.
    pub(super) fn rejects_structure(&self) -> bool {
        let Fault::Status { status: 400 | 404 | 415 | 422 | 501, message, .. } = self else { return false };
        let message = message.to_lowercase();
        ["response_format", "json_schema", "response format", "structured output", "json_object"]
            .iter()
            .any(|word| message.contains(word))
    }

    /// For people, with the remedy.
    pub(super) fn explain(&self, options: &OpenAiOptions, place: &str, attempts: u32) -> ModelError {
        let after = if attempts > 1 { format!(" (after {attempts} attempts)") } else { String::new() };
        let error = ModelError::new(format!("{place}: {self}{after}"));
        match self {
            Fault::Status { status: 401 | 403, .. } if options.key.is_some() => {
                error.with_help(format!("check the key in `{}`", options.key_source))
            }
            Fault::Status { status: 401 | 403, .. } => {
                error.with_help(format!("set `{}` in the environment or in `.env`", options.key_source))
            }
            Fault::Status { status: 404, .. } => {
                error.with_help(format!("check the model's name `{}` and the base URL", options.model))
            }
            Fault::Status { patience: true, .. } => error.with_help("try again later, or with fewer calls at once"),
            Fault::Status { .. } => error,
            Fault::Connection { sent: false, .. } => {
                error.with_help("check the base URL and that the endpoint is running")
            }
            Fault::Connection { .. } => error,
            Fault::Nonsense(_) => {
                error.with_help("check that the base URL is that of an OpenAI-compatible API, such as `https://api.openai.com/v1`")
            }
        }
    }
}

impl Http {
    pub(super) fn new(options: &OpenAiOptions) -> Result<Http, ConfigError> {
        let mut base = web::url(&options.base_url, "the base URL of the model")?;
        let path = format!("{}/chat/completions", base.path().trim_end_matches('/'));
        base.set_path(&path);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &options.key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| {
                ConfigError::new(format!(
                    "the key in `{}` has characters that no header can have",
                    options.key_source
                ))
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client = web::client(&base, options.connect_timeout, Some(options.read_timeout), headers)?;
        Ok(Http {
            client,
            place: format!("`{}`", web::shown(&base)),
            url: base,
            max_body: options.max_body,
            redactor: options.redactor.clone(),
        })
    }

    /// The address, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Sends a request once. The answer is JSON without the key, and no error of the endpoint.
    pub(super) async fn post(&self, body: &str) -> Result<Json, Trouble<Fault>> {
        let sending = self.client.post(self.url.clone()).body(body.to_string()).send();
        let response = sending.await.map_err(|e| self.broken(&e))?;
        let status = response.status().as_u16();
        let kind = web::content_type(&response);
        let retry_after = web::retry_after(&response);
        let bytes = match web::body(response, self.max_body).await {
            Ok(bytes) => bytes,
            Err(web::BodyError::TooLarge) => {
                let what = format!("the answer is larger than the limit of {} bytes", self.max_body);
                return Err(Trouble::Final(Fault::Nonsense(what)));
            }
            Err(web::BodyError::Broken(e)) => return Err(self.broken(&e)),
        };
        let text = self.redactor.owned(String::from_utf8_lossy(&bytes).into_owned());
        let json = serde_json::from_str::<Json>(&text).map(|mut json| {
            self.redactor.json(&mut json);
            json
        });
        if status != 200 {
            return Err(refusal(status, json.as_ref().ok(), &text, retry_after));
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
            Trouble::Final(Fault::Nonsense(what))
        })?;
        // Some endpoints report errors as success.
        if json.get("choices").is_none() && json.get("error").is_some_and(|e| !e.is_null()) {
            let status =
                json.pointer("/error/code").and_then(Json::as_u64).and_then(|s| u16::try_from(s).ok());
            return Err(refusal(
                status.filter(|s| (400..600).contains(s)).unwrap_or(200),
                Some(&json),
                &text,
                retry_after,
            ));
        }
        Ok(json)
    }

    fn broken(&self, e: &reqwest::Error) -> Trouble<Fault> {
        let sent = !e.is_connect();
        let what = self.redactor.owned(web::cause(e));
        let fault = Fault::Connection { what, sent };
        // A silent endpoint was given its time. A connection that can't be made, or breaks, may work next time.
        if sent && e.is_timeout() { Trouble::Final(fault) } else { Trouble::Passing(fault, None) }
    }
}

fn refusal(
    status: u16,
    json: Option<&Json>,
    text: &str,
    retry_after: Option<std::time::Duration>,
) -> Trouble<Fault> {
    let said = json.and_then(|j| {
        let error = j.get("error").unwrap_or(j);
        let message = error.get("message").or_else(|| j.get("message")).or_else(|| j.get("detail"));
        message.and_then(Json::as_str).or_else(|| error.as_str()).map(|m| clip(m, 500))
    });
    let message = said.unwrap_or_else(|| excerpt(text));
    let code = json.and_then(|j| j.pointer("/error/code")).and_then(Json::as_str).unwrap_or_default();
    let message = match code {
        "" => message,
        code => format!("{message} ({})", clip(code, 60)),
    };
    // An exhausted quota has the status of a rate limit, but waiting does not help.
    let patience =
        matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 529) && code != "insufficient_quota";
    let fault = Fault::Status { status, message, patience };
    if patience { Trouble::Passing(fault, retry_after) } else { Trouble::Final(fault) }
}
