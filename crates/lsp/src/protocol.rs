//! Messages on streams: a header with a length, then JSON.

use crate::Server;
use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};

/// The longest message that is read, in bytes. A file of 16 MiB, escaped, fits.
const LONGEST: usize = 64 << 20;
/// The longest line of a header.
const LONGEST_LINE: u64 = 1 << 12;

/// Answers a client until it says `exit` or its stream ends. Gives whether it said `shutdown` before.
///
/// # Errors
/// The streams fail, or what is read has no header, so that nobody knows where the next message begins.
pub fn serve(mut server: Server, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<bool> {
    while let Some(bytes) = read(input)? {
        let answers = match serde_json::from_slice::<Value>(&bytes) {
            Ok(message) => server.handle(&message),
            Err(e) => vec![json!({
                "jsonrpc": "2.0", "id": null,
                "error": {"code": -32700, "message": format!("not JSON: {e}")},
            })],
        };
        for answer in answers {
            let text = answer.to_string();
            write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        }
        output.flush()?;
        if server.has_exited() {
            break;
        }
    }
    Ok(server.is_shut_down())
}

/// The next message, or nothing at the end of the stream.
fn read(input: &mut dyn BufRead) -> io::Result<Option<Vec<u8>>> {
    let broken = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_string());
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if Read::take(&mut *input, LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
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
    if length > LONGEST {
        return Err(broken("a message that is too long"));
    }
    let mut bytes = Vec::new();
    if input.take(length as u64).read_to_end(&mut bytes)? < length {
        return Ok(None);
    }
    Ok(Some(bytes))
}
