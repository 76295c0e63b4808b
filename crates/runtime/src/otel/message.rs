//! Messages of OTLP, as far as they are sent here, in both encodings: JSON, and that of protocol buffers.
//!
//! Names and numbers of fields are those of the protocol's definitions, version 1.
//! The tests decode both encodings with the protocol's own types.
//!
//! Entry points: [`Item`], [`request`] for a request with items, [`reply`] for its answer.

use super::Signal;
use prost::Message;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Encoding of messages to a collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// JSON over HTTP.
    #[default]
    HttpJson,
    /// Protocol buffers over HTTP.
    HttpProtobuf,
}

impl OtlpProtocol {
    /// The names in OpenTelemetry's variables.
    pub(super) const NAMES: [(&'static str, OtlpProtocol); 2] =
        [("http/json", OtlpProtocol::HttpJson), ("http/protobuf", OtlpProtocol::HttpProtobuf)];

    /// Media type of requests.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            OtlpProtocol::HttpJson => "application/json",
            OtlpProtocol::HttpProtobuf => "application/x-protobuf",
        }
    }

    fn encoded(self, message: &(impl Message + Serialize)) -> Vec<u8> {
        match self {
            // Nothing in a message can fail: its keys are texts, and its writers return no error.
            OtlpProtocol::HttpJson => serde_json::to_vec(message).unwrap_or_default(),
            OtlpProtocol::HttpProtobuf => message.encode_to_vec(),
        }
    }
}

/// An attribute of a span, a data point or a resource.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// A value of an attribute.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct AnyValue {
    #[prost(oneof = "Scalar", tags = "1, 2, 3, 4, 5")]
    #[serde(flatten)]
    pub(super) value: Option<Scalar>,
}

/// Content of a value.
#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
pub(super) enum Scalar {
    #[prost(string, tag = "1")]
    #[serde(rename = "stringValue")]
    Text(String),
    #[prost(bool, tag = "2")]
    #[serde(rename = "boolValue")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    #[serde(rename = "intValue", serialize_with = "digits")]
    Int(i64),
    #[prost(double, tag = "4")]
    #[serde(rename = "doubleValue")]
    Double(f64),
    #[prost(message, tag = "5")]
    #[serde(rename = "arrayValue")]
    Array(ArrayValue),
}

/// A list as the value of an attribute.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

/// The sender of telemetry.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

/// The library that made the items.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// A span: a run, an agent in it, or a request.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hexadecimal")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hexadecimal")]
    pub(super) span_id: Vec<u8>,
    /// Empty for a span under none.
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "hexadecimal", skip_serializing_if = "Vec::is_empty")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(enumeration = "SpanKind", tag = "6")]
    pub(super) kind: i32,
    /// Nanoseconds since 1970, as in all times here.
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "digits")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "digits")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<SpanEvent>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
}

/// Relation of a span to what is outside of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SpanKind {
    Unspecified = 0,
    Internal = 1,
    Client = 3,
}

/// An event in a span.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpanEvent {
    #[prost(fixed64, tag = "1")]
    #[serde(serialize_with = "digits")]
    pub(super) time_unix_nano: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<KeyValue>,
}

/// End of a span.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Status {
    #[prost(string, tag = "2")]
    pub(super) message: String,
    #[prost(enumeration = "StatusCode", tag = "3")]
    pub(super) code: i32,
}

/// Kind of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum StatusCode {
    Unset = 0,
    Error = 2,
}

/// A metric with its data points.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Metric {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) unit: String,
    #[prost(oneof = "Points", tags = "7, 9")]
    #[serde(flatten)]
    pub(super) points: Option<Points>,
}

/// The data points of a metric.
#[derive(Clone, PartialEq, prost::Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Points {
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(HistogramPoints),
}

/// Data points that are sums.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub(super) data_points: Vec<NumberPoint>,
    #[prost(enumeration = "Temporality", tag = "2")]
    pub(super) aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    pub(super) is_monotonic: bool,
}

/// Data points that are histograms.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistogramPoints {
    #[prost(message, repeated, tag = "1")]
    pub(super) data_points: Vec<HistogramPoint>,
    #[prost(enumeration = "Temporality", tag = "2")]
    pub(super) aggregation_temporality: i32,
}

/// Reference of the counts of data points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Temporality {
    Unspecified = 0,
    /// Each tells what happened since the one before.
    Delta = 1,
}

/// A sum.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "digits")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "digits")]
    pub(super) time_unix_nano: u64,
    /// One of several kinds of numbers in the protocol, so it is there also where it is zero.
    #[prost(double, optional, tag = "4")]
    pub(super) as_double: Option<f64>,
    #[prost(message, repeated, tag = "7")]
    pub(super) attributes: Vec<KeyValue>,
}

/// A histogram.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistogramPoint {
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "digits")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "digits")]
    pub(super) time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    #[serde(serialize_with = "digits")]
    pub(super) count: u64,
    #[prost(double, optional, tag = "5")]
    pub(super) sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    #[serde(serialize_with = "all_digits")]
    pub(super) bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    pub(super) explicit_bounds: Vec<f64>,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
}

/// A request with spans.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct SpansRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<SpanMessage>,
    #[prost(string, tag = "3")]
    schema_url: String,
}

/// A request with metrics.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct MetricsRequest {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
    #[prost(string, tag = "3")]
    schema_url: String,
}

/// A span or a metric on its way.
#[derive(Debug)]
pub(super) enum Item {
    Span(SpanMessage),
    Metric(Metric),
}

impl Item {
    pub(super) fn signal(&self) -> Signal {
        match self {
            Item::Span(_) => Signal::Spans,
            Item::Metric(_) => Signal::Metrics,
        }
    }

    /// Bytes of its encoding as protocol buffers: about what it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            Item::Span(span) => span.encoded_len(),
            Item::Metric(metric) => metric.encoded_len(),
        }
    }
}

/// Encodes the requests with these items: one with the spans, one with the metrics. All are of one resource.
pub(super) fn request(
    protocol: OtlpProtocol,
    signal: Signal,
    resource: &Resource,
    items: Vec<Item>,
) -> Vec<u8> {
    let (mut spans, mut metrics) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Span(span) => spans.push(span),
            Item::Metric(metric) => metrics.push(metric),
        }
    }
    let (resource, scope) = (Some(resource.clone()), Some(super::scope()));
    let schema_url = super::SCHEMA_URL.to_string();
    match signal {
        Signal::Spans => {
            let scope_spans = vec![ScopeSpans { scope, spans, schema_url }];
            protocol.encoded(&SpansRequest { resource_spans: vec![ResourceSpans { resource, scope_spans }] })
        }
        Signal::Metrics => {
            let scope_metrics = vec![ScopeMetrics { scope, metrics, schema_url }];
            let resource_metrics = vec![ResourceMetrics { resource, scope_metrics }];
            protocol.encoded(&MetricsRequest { resource_metrics })
        }
    }
}

/// Answer of a collector to a request that it has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// Number of spans or points that it did not take.
    pub(super) rejected: u64,
    /// Its reason, or a warning if it took all.
    pub(super) message: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    #[serde(rename = "rejectedSpans", alias = "rejectedDataPoints", deserialize_with = "number")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// Reads an answer; `None` if it is not one.
pub(super) fn reply(protocol: OtlpProtocol, bytes: &[u8]) -> Option<Reply> {
    // Both encodings leave out what is empty.
    let response = match protocol {
        _ if bytes.is_empty() => Response::default(),
        OtlpProtocol::HttpJson => serde_json::from_slice(bytes).ok()?,
        OtlpProtocol::HttpProtobuf => Response::decode(bytes).ok()?,
    };
    let PartialSuccess { rejected, error_message } = response.partial_success.unwrap_or_default();
    Some(Reply { rejected: u64::try_from(rejected).unwrap_or_default(), message: error_message })
}

/// Numbers of 64 bits are texts in the JSON of the protocol.
fn digits<S: Serializer>(n: &impl ToString, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&n.to_string())
}

fn all_digits<S: Serializer>(all: &[u64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(u64::to_string))
}

fn hexadecimal<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&runs::hex(bytes))
}

/// A number that a collector may also write as its digits.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(i64),
        Digits(String),
    }
    match Written::deserialize(from)? {
        Written::Number(n) => Ok(n),
        Written::Digits(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_in_both_encodings() {
        let json = br#"{"partialSuccess": {"rejectedSpans": "300", "errorMessage": "too old"}}"#;
        let want = Reply { rejected: 300, message: "too old".into() };
        assert_eq!(reply(OtlpProtocol::HttpJson, json), Some(want.clone()));
        let points = br#"{"partialSuccess": {"rejectedDataPoints": 300, "errorMessage": "too old"}}"#;
        assert_eq!(reply(OtlpProtocol::HttpJson, points), Some(want.clone()));
        let partial = PartialSuccess { rejected: 300, error_message: "too old".into() };
        let message = Response { partial_success: Some(partial) }.encode_to_vec();
        assert_eq!(reply(OtlpProtocol::HttpProtobuf, &message), Some(want));
        for protocol in [OtlpProtocol::HttpJson, OtlpProtocol::HttpProtobuf] {
            assert_eq!(reply(protocol, b""), Some(Reply::default()));
            assert_eq!(reply(protocol, b"<html>"), None);
        }
        assert_eq!(reply(OtlpProtocol::HttpJson, b"{}"), Some(Reply::default()));
        assert_eq!(reply(OtlpProtocol::HttpProtobuf, &[0x0a, 0xff, 0xff]), None);
    }
}
