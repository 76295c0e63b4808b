//! Streams of Amazon: frames of bytes with headers and checksums (`application/vnd.amazon.eventstream`). No
//! IO.
//!
//! Invariant: what is held back is bounded by the limit given; a frame whose checksums are wrong is an error.

use super::sse::{SseError, SseEvent};

/// The length of a frame, the length of its headers, and the checksum of both.
const PRELUDE: usize = 12;

/// The checksum at the end of a frame.
const CHECKSUM: usize = 4;

/// Reads frames from bytes as they come.
#[derive(Debug)]
pub(super) struct FrameReader {
    most: usize,
    held: Vec<u8>,
}

impl FrameReader {
    /// A frame may have `most` bytes.
    pub(super) fn new(most: usize) -> FrameReader {
        FrameReader { most, held: Vec::new() }
    }

    /// The frames that end within these bytes, as events: the name is the type of the event or exception, the
    /// data is the payload.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        self.held.extend_from_slice(bytes);
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(prelude) = self.held.get(at..at + PRELUDE) {
            let total = number(prelude, 0);
            if total > self.most {
                return Err(SseError::TooLong);
            }
            let headers = number(prelude, 4);
            let is_right =
                total >= PRELUDE + CHECKSUM + headers && crc32(&prelude[..8]) == number(prelude, 8);
            if !is_right {
                return Err(SseError::Corrupt);
            }
            let Some(frame) = self.held.get(at..at + total) else { break };
            let (content, checksum) = frame.split_at(total - CHECKSUM);
            if crc32(content) != number(checksum, 0) {
                return Err(SseError::Corrupt);
            }
            let name = name_of(&content[PRELUDE..PRELUDE + headers]).ok_or(SseError::Corrupt)?;
            let data = std::str::from_utf8(&content[PRELUDE + headers..]).map_err(|_| SseError::NotUtf8)?;
            out.push(SseEvent { name, data: data.to_string() });
            at += total;
        }
        self.held.drain(..at);
        Ok(out)
    }
}

/// The number of four bytes at a place; 0 if they are not there.
fn number(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok());
    four.map_or(0, |b| u32::from_be_bytes(b) as usize)
}

/// The type of the event or exception that the headers of a frame state; empty if they state none, `None` if
/// they can't be read.
fn name_of(mut headers: &[u8]) -> Option<String> {
    let mut take = |n: usize| {
        let (head, rest) = headers.split_at_checked(n)?;
        headers = rest;
        Some(head)
    };
    let mut name = String::new();
    while let Some(length) = take(1) {
        let header = take(usize::from(length[0]))?;
        let value = match take(1)?[0] {
            0 | 1 => &[][..],
            2 => take(1)?,
            3 => take(2)?,
            4 => take(4)?,
            5 | 8 => take(8)?,
            6 | 7 => {
                let length = take(2)?;
                take(usize::from(u16::from_be_bytes([length[0], length[1]])))?
            }
            9 => take(16)?,
            _ => return None,
        };
        if matches!(header, b":event-type" | b":exception-type" | b":error-code") {
            name = String::from_utf8(value.to_vec()).ok()?;
        }
    }
    Some(name)
}

/// The checksum of Ethernet and ZIP.
fn crc32(bytes: &[u8]) -> usize {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| if c & 1 == 1 { (c >> 1) ^ 0xedb8_8320 } else { c >> 1 })
    };
    !bytes.iter().fold(!0, step) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The empty message of the tests that Amazon published.
    const EMPTY: [u8; 16] = [0, 0, 0, 16, 0, 0, 0, 0, 5, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];

    #[test]
    fn frames_are_read_however_they_are_cut() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let two = [EMPTY, EMPTY].concat();
        for cut in 0..two.len() {
            let mut reader = FrameReader::new(100);
            let mut events = reader.push(&two[..cut]).unwrap();
            events.extend(reader.push(&two[cut..]).unwrap());
            assert_eq!(events, vec![SseEvent { name: String::new(), data: String::new() }; 2], "{cut}");
        }
    }

    #[test]
    fn wrong_checksums_and_lengths_are_errors() {
        for at in 0..EMPTY.len() {
            let mut bytes = EMPTY;
            bytes[at] ^= 1;
            let found = FrameReader::new(1 << 10).push(&[&bytes[..], &[0; 64]].concat());
            assert!(matches!(found, Err(SseError::Corrupt | SseError::TooLong)), "{at}: {found:?}");
        }
        assert_eq!(FrameReader::new(15).push(&EMPTY), Err(SseError::TooLong));
    }
}
