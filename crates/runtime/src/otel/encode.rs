//! The encodings of OTLP: JSON, and the binary one of protocol buffers.
//!
//! Spans and metrics are built as the protocol's JSON. The binary encoding follows from that JSON and a table
//! of the fields: their names, numbers and types. The tests decode both with the protocol's own types.
//!
//! Entry points: [`item`] for a span or metrics, [`message`] for a request, [`reply`] for its answer.
//!
//! Invariant: depth of recursion is that of the messages of the table, plus that of attribute values, which
//! are built here and are at most two deep.

use super::Signal;
use serde_json::Value as Json;

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
}

/// Type of a field.
#[derive(Clone, Copy)]
enum FieldType {
    /// A text.
    Text,
    /// Bytes, which the JSON has as hexadecimal digits.
    Hex,
    /// A number of variable length, which the JSON has as a number or as its digits.
    Varint,
    /// A number of 64 bits, which the JSON has as its digits.
    Fixed64,
    /// A floating-point number.
    Double,
    /// A truth value.
    Bool,
    /// A message.
    Message(&'static [Field]),
    /// A value of an attribute, whose messages contain each other.
    AnyValue,
}

/// A field of a message: its name in JSON, its number, and its type. A list has it several times.
type Field = (&'static str, u32, FieldType);

const KEY_VALUE: &[Field] = &[("key", 1, FieldType::Text), ("value", 2, FieldType::AnyValue)];

/// One of several fields is set.
const ANY_VALUE: &[Field] = &[
    ("stringValue", 1, FieldType::Text),
    ("boolValue", 2, FieldType::Bool),
    ("intValue", 3, FieldType::Varint),
    ("doubleValue", 4, FieldType::Double),
    ("arrayValue", 5, FieldType::Message(&[("values", 1, FieldType::AnyValue)])),
];

const RESOURCE: &[Field] = &[("attributes", 1, FieldType::Message(KEY_VALUE))];

const SCOPE: &[Field] = &[("name", 1, FieldType::Text), ("version", 2, FieldType::Text)];

const SPAN: &[Field] = &[
    ("traceId", 1, FieldType::Hex),
    ("spanId", 2, FieldType::Hex),
    ("parentSpanId", 4, FieldType::Hex),
    ("name", 5, FieldType::Text),
    ("kind", 6, FieldType::Varint),
    ("startTimeUnixNano", 7, FieldType::Fixed64),
    ("endTimeUnixNano", 8, FieldType::Fixed64),
    ("attributes", 9, FieldType::Message(KEY_VALUE)),
    (
        "events",
        11,
        FieldType::Message(&[
            ("timeUnixNano", 1, FieldType::Fixed64),
            ("name", 2, FieldType::Text),
            ("attributes", 3, FieldType::Message(KEY_VALUE)),
        ]),
    ),
    ("status", 15, FieldType::Message(&[("message", 2, FieldType::Text), ("code", 3, FieldType::Varint)])),
];

const HISTOGRAM_POINT: &[Field] = &[
    ("startTimeUnixNano", 2, FieldType::Fixed64),
    ("timeUnixNano", 3, FieldType::Fixed64),
    ("count", 4, FieldType::Fixed64),
    ("sum", 5, FieldType::Double),
    ("bucketCounts", 6, FieldType::Fixed64),
    ("explicitBounds", 7, FieldType::Double),
    ("attributes", 9, FieldType::Message(KEY_VALUE)),
];

const NUMBER_POINT: &[Field] = &[
    ("startTimeUnixNano", 2, FieldType::Fixed64),
    ("timeUnixNano", 3, FieldType::Fixed64),
    ("asDouble", 4, FieldType::Double),
    ("attributes", 7, FieldType::Message(KEY_VALUE)),
];

const METRIC: &[Field] = &[
    ("name", 1, FieldType::Text),
    ("unit", 3, FieldType::Text),
    (
        "sum",
        7,
        FieldType::Message(&[
            ("dataPoints", 1, FieldType::Message(NUMBER_POINT)),
            ("aggregationTemporality", 2, FieldType::Varint),
            ("isMonotonic", 3, FieldType::Bool),
        ]),
    ),
    (
        "histogram",
        9,
        FieldType::Message(&[
            ("dataPoints", 1, FieldType::Message(HISTOGRAM_POINT)),
            ("aggregationTemporality", 2, FieldType::Varint),
        ]),
    ),
];

impl Signal {
    /// Field of a request for the resources, field of a resource for its scopes, field of a scope for items.
    fn fields(self) -> (&'static str, &'static str, &'static str, &'static [Field]) {
        match self {
            Signal::Spans => ("resourceSpans", "scopeSpans", "spans", SPAN),
            Signal::Metrics => ("resourceMetrics", "scopeMetrics", "metrics", METRIC),
        }
    }
}

/// Encodes a span or a metric.
pub(super) fn item(protocol: OtlpProtocol, signal: Signal, json: &Json) -> Vec<u8> {
    match protocol {
        OtlpProtocol::HttpJson => json.to_string().into_bytes(),
        OtlpProtocol::HttpProtobuf => encoded(signal.fields().3, json),
    }
}

/// Encodes a request with these items, which [`item`] has encoded. All are of one resource.
pub(super) fn message<'i>(
    protocol: OtlpProtocol,
    signal: Signal,
    resource: &Json,
    scope: &Json,
    schema: &str,
    items: impl Iterator<Item = &'i [u8]>,
) -> Vec<u8> {
    let (resources, scopes, field, _) = signal.fields();
    match protocol {
        OtlpProtocol::HttpJson => {
            let mut out = format!(
                "{{\"{resources}\":[{{\"resource\":{resource},\"{scopes}\":[{{\"scope\":{scope},\"schemaUrl\":\"{schema}\",\"{field}\":["
            )
            .into_bytes();
            for (n, item) in items.enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(item);
            }
            out.extend_from_slice(b"]}]}]}");
            out
        }
        OtlpProtocol::HttpProtobuf => {
            let mut of_scope = Vec::new();
            delimited(&mut of_scope, 1, &encoded(SCOPE, scope));
            for item in items {
                delimited(&mut of_scope, 2, item);
            }
            delimited(&mut of_scope, 3, schema.as_bytes());
            let mut of_resource = Vec::new();
            delimited(&mut of_resource, 1, &encoded(RESOURCE, resource));
            delimited(&mut of_resource, 2, &of_scope);
            let mut out = Vec::new();
            delimited(&mut out, 1, &of_resource);
            out
        }
    }
}

/// A message. What the JSON has and the table has not is left out.
fn encoded(fields: &[Field], json: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, number, ty) in fields {
        match json.get(name) {
            None => {}
            Some(Json::Array(all)) => all.iter().for_each(|one| field(&mut out, *number, *ty, one)),
            Some(one) => field(&mut out, *number, *ty, one),
        }
    }
    out
}

fn field(out: &mut Vec<u8>, number: u32, ty: FieldType, json: &Json) {
    // Numbers of 64 bits are texts in the JSON of the protocol.
    let whole = || json.as_u64().or_else(|| json.as_str()?.parse().ok()).unwrap_or_default();
    match ty {
        FieldType::Text => delimited(out, number, json.as_str().unwrap_or_default().as_bytes()),
        FieldType::Hex => delimited(out, number, &bytes_of_hex(json.as_str().unwrap_or_default())),
        FieldType::Varint => {
            tag(out, number, 0);
            varint(out, whole());
        }
        FieldType::Bool => {
            tag(out, number, 0);
            varint(out, u64::from(json.as_bool().unwrap_or_default()));
        }
        FieldType::Fixed64 => {
            tag(out, number, 1);
            out.extend_from_slice(&whole().to_le_bytes());
        }
        FieldType::Double => {
            tag(out, number, 1);
            out.extend_from_slice(&json.as_f64().unwrap_or_default().to_le_bytes());
        }
        FieldType::Message(fields) => delimited(out, number, &encoded(fields, json)),
        FieldType::AnyValue => delimited(out, number, &encoded(ANY_VALUE, json)),
    }
}

fn tag(out: &mut Vec<u8>, number: u32, wire: u32) {
    varint(out, u64::from(number << 3 | wire));
}

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn delimited(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    tag(out, number, 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn bytes_of_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.filter_map(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok()).collect()
}

/// Answer of a collector to a request that it has accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    /// Number of spans or points that it did not take.
    pub(super) rejected: u64,
    /// Its reason, or a warning if it took all.
    pub(super) message: String,
}

/// Reads an answer; `None` if it is not one.
pub(super) fn reply(protocol: OtlpProtocol, signal: Signal, bytes: &[u8]) -> Option<Reply> {
    // Both encodings leave out what is empty.
    if bytes.is_empty() {
        return Some(Reply::default());
    }
    match protocol {
        OtlpProtocol::HttpJson => {
            let json: Json = serde_json::from_slice(bytes).ok()?;
            let Some(partial) = json.as_object()?.get("partialSuccess") else {
                return Some(Reply::default());
            };
            let count = match signal {
                Signal::Spans => "rejectedSpans",
                Signal::Metrics => "rejectedDataPoints",
            };
            let count = partial.get(count);
            let rejected = count.and_then(|n| n.as_u64().or_else(|| n.as_str()?.parse().ok()));
            let message = partial.get("errorMessage").and_then(Json::as_str).unwrap_or_default();
            Some(Reply { rejected: rejected.unwrap_or_default(), message: message.to_string() })
        }
        OtlpProtocol::HttpProtobuf => {
            let mut out = Reply::default();
            for (number, value) in fields_of(bytes)? {
                let (1, Value::Bytes(partial)) = (number, value) else { continue };
                for (number, value) in fields_of(partial)? {
                    match (number, value) {
                        (1, Value::Number(n)) => out.rejected = n,
                        (2, Value::Bytes(text)) => out.message = String::from_utf8_lossy(text).into_owned(),
                        _ => {}
                    }
                }
            }
            Some(out)
        }
    }
}

/// Value of a field.
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message with their numbers; `None` if the bytes are no message.
fn fields_of(mut bytes: &[u8]) -> Option<Vec<(u64, Value<'_>)>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Value::Number(read_varint(&mut bytes)?),
            1 => Value::Bytes(take(&mut bytes, 8)?),
            2 => {
                let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
                Value::Bytes(take(&mut bytes, length)?)
            }
            5 => Value::Bytes(take(&mut bytes, 4)?),
            _ => return None,
        };
        out.push((tag >> 3, value));
    }
    Some(out)
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        n |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

fn take<'b>(bytes: &mut &'b [u8], n: usize) -> Option<&'b [u8]> {
    let (head, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_in_both_encodings() {
        let json = br#"{"partialSuccess": {"rejectedSpans": "300", "errorMessage": "too old"}}"#;
        let want = Reply { rejected: 300, message: "too old".into() };
        assert_eq!(reply(OtlpProtocol::HttpJson, Signal::Spans, json), Some(want.clone()));
        let mut partial = Vec::new();
        tag(&mut partial, 1, 0);
        varint(&mut partial, 300);
        delimited(&mut partial, 2, b"too old");
        let mut message = Vec::new();
        delimited(&mut message, 1, &partial);
        assert_eq!(reply(OtlpProtocol::HttpProtobuf, Signal::Spans, &message), Some(want));
        for protocol in [OtlpProtocol::HttpJson, OtlpProtocol::HttpProtobuf] {
            assert_eq!(reply(protocol, Signal::Spans, b""), Some(Reply::default()));
            assert_eq!(reply(protocol, Signal::Spans, b"<html>"), None);
        }
        assert_eq!(reply(OtlpProtocol::HttpJson, Signal::Metrics, b"{}"), Some(Reply::default()));
        assert_eq!(reply(OtlpProtocol::HttpProtobuf, Signal::Spans, &[0x0a, 0xff, 0xff]), None);
    }
}
