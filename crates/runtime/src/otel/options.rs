//! Destination of telemetry: settings, and the variables of OpenTelemetry.

use super::OtlpProtocol;
use crate::{ConfigError, Environment, Secret};
use serde::Deserialize;
use std::time::Duration;

/// The most spans and metrics that wait to be sent, as in OpenTelemetry's own libraries.
const QUEUE: usize = 2048;

/// The largest queue that can be set.
const MAX_QUEUE: u64 = 1 << 20;

/// `[telemetry]` of the settings. The variables of OpenTelemetry, where they are set, take precedence.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryEntry {
    /// Address of the collector without `/v1/traces`.
    pub endpoint: Option<String>,
    /// `http/json` or `http/protobuf`.
    pub protocol: Option<String>,
    /// The most spans and metrics that wait to be sent.
    pub queue: Option<u64>,
    /// Seconds for one request.
    pub timeout: Option<f64>,
    /// Seconds for which the end of a run waits for the collector.
    pub flush_timeout: Option<f64>,
}

/// Destination and amount of telemetry.
#[derive(Clone, Debug)]
pub struct TelemetryOptions {
    /// The address without `/v1/traces`.
    pub endpoint: String,
    /// Encoding of messages.
    pub protocol: OtlpProtocol,
    /// Headers of requests: keys, mostly.
    pub headers: Vec<(String, Secret)>,
    /// `service.name`.
    pub service: String,
    /// Name of the program.
    pub name: String,
    /// True if the content of messages is exported.
    pub content: bool,
    /// The span that the run is a part of.
    pub parent: Option<ParentSpan>,
    /// The most spans and metrics that wait to be sent; further ones are dropped and counted.
    pub queue: usize,
    /// The longest time for one request.
    pub timeout: Duration,
    /// The longest time for which the end of a run waits for the collector.
    pub flush: Duration,
}

/// A span of another process, as a `traceparent` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentSpan {
    /// Identifier of the trace.
    pub trace: [u8; 16],
    /// Identifier of the span.
    pub span: [u8; 8],
}

impl TelemetryOptions {
    /// As OpenTelemetry's variables say: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_PROTOCOL`,
    /// `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_BSP_MAX_QUEUE_SIZE`,
    /// `OTEL_SERVICE_NAME`, `OTEL_SDK_DISABLED`, `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, and
    /// `TRACEPARENT`; else as the settings say. `None` without an endpoint.
    ///
    /// # Errors
    /// A variable or a setting has a value that can't be used.
    pub fn from_environment(
        env: &Environment,
        entry: &TelemetryEntry,
        endpoint: Option<&str>,
        name: String,
    ) -> Result<Option<TelemetryOptions>, ConfigError> {
        let is = |variable: &str| env.get(variable).is_some_and(|v| v.eq_ignore_ascii_case("true"));
        let set = |variable: &str| env.get(variable).map(str::trim).filter(|v| !v.is_empty());
        let found = set("OTEL_EXPORTER_OTLP_ENDPOINT").or(entry.endpoint.as_deref());
        let Some(endpoint) = endpoint.or(found.filter(|_| !is("OTEL_SDK_DISABLED"))) else { return Ok(None) };
        let protocol = match (set(PROTOCOL), &entry.protocol) {
            (Some(name), _) => protocol(PROTOCOL, name)?,
            (None, Some(name)) => protocol("protocol` of `[telemetry]", name)?,
            (None, None) => OtlpProtocol::default(),
        };
        let queue = match (number(env, "OTEL_BSP_MAX_QUEUE_SIZE")?, entry.queue) {
            (Some(n), _) | (None, Some(n)) if n == 0 || n > MAX_QUEUE => {
                return Err(ConfigError::new(format!("a queue of {n} for telemetry is out of range"))
                    .with_help(format!("write a number from 1 to {MAX_QUEUE}")));
            }
            (n, set) => n.or(set).and_then(|n| usize::try_from(n).ok()).unwrap_or(QUEUE),
        };
        let timeout = match number(env, "OTEL_EXPORTER_OTLP_TIMEOUT")? {
            Some(millis) => Duration::from_millis(millis),
            None => seconds("timeout", entry.timeout, 10.0)?,
        };
        let headers = env.get("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default().split(',');
        let headers = headers.filter_map(|h| h.split_once('='));
        Ok(Some(TelemetryOptions {
            endpoint: endpoint.to_string(),
            protocol,
            headers: headers.map(|(n, v)| (n.trim().to_string(), Secret::new(decoded(v.trim())))).collect(),
            service: set("OTEL_SERVICE_NAME").unwrap_or("entail").to_string(),
            name,
            content: is("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
            parent: env.get("TRACEPARENT").and_then(parent),
            queue,
            timeout,
            flush: seconds("flush_timeout", entry.flush_timeout, 5.0)?,
        }))
    }
}

/// The variable of the protocol.
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

fn protocol(place: &str, name: &str) -> Result<OtlpProtocol, ConfigError> {
    if let Some((_, protocol)) = OtlpProtocol::NAMES.into_iter().find(|(known, _)| *known == name) {
        return Ok(protocol);
    }
    let names = OtlpProtocol::NAMES.map(|(known, _)| format!("`{known}`")).join(" or ");
    let error = ConfigError::new(format!("`{place}`: telemetry can't be sent by `{name}`"));
    Err(if name == "grpc" {
        error.with_help(format!(
            "gRPC is not built in: write {names}, and the collector's port for HTTP, usually 4318"
        ))
    } else {
        error.with_help(format!("write {names}"))
    })
}

fn number(env: &Environment, variable: &str) -> Result<Option<u64>, ConfigError> {
    let Some(text) = env.get(variable).map(str::trim).filter(|v| !v.is_empty()) else { return Ok(None) };
    let wrong = || {
        ConfigError::new(format!("`{variable}` is not a whole number"))
            .with_help("write a number, or unset the variable")
    };
    text.parse().map(Some).map_err(|_| wrong())
}

fn seconds(field: &str, value: Option<f64>, usual: f64) -> Result<Duration, ConfigError> {
    let wrong = || {
        ConfigError::new(format!("`{field}` of `[telemetry]` is not a positive number of seconds"))
            .with_help("write a number such as `5`")
    };
    let time = Duration::try_from_secs_f64(value.unwrap_or(usual)).ok();
    time.filter(|t| *t > Duration::ZERO && *t < Duration::from_secs(86_400)).ok_or_else(wrong)
}

/// A value of a list of headers, in which `%` and two hexadecimal digits mean a byte.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%').and_then(|d| std::str::from_utf8(d).ok());
        match digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(digits) => {
                out.extend(u8::from_str_radix(digits, 16));
                rest = &after[2..];
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    // A value that is no text is used as it was written.
    String::from_utf8(out).unwrap_or_else(|_| text.to_string())
}

/// The span that a `traceparent` names.
pub(super) fn parent(text: &str) -> Option<ParentSpan> {
    let mut parts = text.trim().split('-');
    let (_version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    Some(ParentSpan { trace: bytes(trace)?, span: bytes(span)? })
}

/// The bytes that these hexadecimal digits are, unless all are zero.
fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let is_hex = rest.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let read = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = pairs.iter().filter(|_| is_hex).filter_map(read).collect();
    bytes.try_into().ok().filter(|bytes| *bytes != [0; N])
}
