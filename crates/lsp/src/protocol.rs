//! Messages on streams: a header with a length, then JSON.
//!
//! Messages are read here because `lsp_server::Message::read` makes room for whatever length a header states,
//! ends at the first text that is no JSON, and reads no number as an identifier where `serde_json` keeps
//! numbers exact, as it does here.

use crate::Server;
use lsp_server::{ErrorCode, Message, RequestId, Response, ResponseError};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, BufRead, Read, Write};

/// The longest message that is read, in bytes. A file of 16 MiB, escaped, fits.
const MAX_MESSAGE: usize = 64 << 20;
/// The longest line of a header.
const MAX_HEADER_LINE: u64 = 1 << 12;

/// Answers a client until it says `exit` or its stream ends. Returns whether it said `shutdown` before.
///
/// # Errors
/// The streams fail, or what is read has no header, so that nobody knows where the next message begins.
pub fn serve(mut server: Server, input: &mut dyn BufRead, mut output: &mut dyn Write) -> io::Result<bool> {
    while let Some(bytes) = read(input)? {
        match message(&bytes) {
            Ok(message) => {
                for answer in server.handle(message) {
                    answer.write(&mut output)?;
                }
            }
            Err(refused) => refused.write(output)?,
        }
        output.flush()?;
        if server.has_exited() {
            break;
        }
    }
    Ok(server.is_shut_down())
}

/// The refusal of a text that is no message.
enum Refused {
    /// Of a request, whose identifier is known.
    Request(Box<Response>),
    /// Of whatever it was.
    Text(ResponseError),
}

impl Refused {
    fn new(code: ErrorCode, message: impl Into<String>) -> Refused {
        Refused::Text(ResponseError { code: code as i32, message: message.into(), data: None })
    }

    fn write(self, output: &mut dyn Write) -> io::Result<()> {
        /// A response that names no request: `lsp_server` has none.
        #[derive(Serialize)]
        struct Nameless {
            jsonrpc: &'static str,
            id: (),
            error: ResponseError,
        }
        match self {
            Refused::Request(response) => Message::from(*response).write(&mut { output }),
            Refused::Text(error) => {
                let text = serde_json::to_string(&Nameless { jsonrpc: "2.0", id: (), error })?;
                write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())
            }
        }
    }
}

/// The message of a text. A value is read first: out of it, numbers are read as identifiers.
fn message(bytes: &[u8]) -> Result<Message, Refused> {
    let json: Value = serde_json::from_slice(bytes)
        .map_err(|e| Refused::new(ErrorCode::ParseError, format!("not JSON: {e}")))?;
    let id = json.get("id").filter(|id| !id.is_null()).cloned();
    match (serde_json::from_value(json), id) {
        // An invalid identifier does not make a request a notification.
        (Ok(Message::Notification(_)), Some(_)) => {
            Err(Refused::new(ErrorCode::InvalidRequest, "an identifier is a text or a 32-bit integer"))
        }
        (Ok(message), _) => Ok(message),
        (Err(_), id) => {
            let why = "a message without a method";
            match id.map(serde_json::from_value::<RequestId>) {
                Some(Ok(id)) => {
                    let refusal = Response::new_err(id, ErrorCode::InvalidRequest as i32, why.into());
                    Err(Refused::Request(Box::new(refusal)))
                }
                _ => Err(Refused::new(ErrorCode::InvalidRequest, why)),
            }
        }
    }
}

/// The next message, or nothing at the end of the stream.
fn read(input: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let broken = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_string());
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if Read::take(&mut *input, MAX_HEADER_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let length = length.ok_or_else(|| broken("a message without `Content-Length`"))?;
    if length > MAX_MESSAGE {
        return Err(broken("a message that is too long"));
    }
    let mut bytes = Vec::new();
    if input.take(length as u64).read_to_end(&mut bytes)? < length {
        return Ok(None);
    }
    Ok(Some(bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_numbers_texts_and_nonsense_as_identifiers() {
        let id = |json: &str| match message(json.as_bytes()) {
            Ok(Message::Request(r)) => r.id.to_string(),
            Ok(other) => format!("{other:?}"),
            Err(Refused::Request(r)) => format!("refused {}", r.id),
            Err(Refused::Text(e)) => e.code.to_string(),
        };
        assert_eq!(id(r#"{"id": 7, "method": "m"}"#), "7");
        assert_eq!(id(r#"{"id": "x", "method": "m", "params": {"n": 1}}"#), "\"x\"");
        assert_eq!(id(r#"{"id": 1e99, "method": "m"}"#), "-32600");
        assert_eq!(id(r#"{"id": 99999999999, "method": "m"}"#), "-32600");
        assert_eq!(id(r#"{"id": 3}"#), "refused 3");
        assert_eq!(id("17"), "-32600");
        assert_eq!(id("{"), "-32700");
    }
}
