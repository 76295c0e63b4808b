//! Server-sent events, as the HTML standard describes them (`text/event-stream`). No IO.
//!
//! Invariant: what is held back is bounded by the limit given; bytes that are no UTF-8 are an error, never
//! replaced.

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Its type; empty if the stream names none.
    pub(super) name: String,
    /// Its data, lines joined by line breaks.
    pub(super) data: String,
}

/// Reason why a stream can't be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SseError {
    /// A line, or the data of an event, has more bytes than the limit.
    TooLong,
    /// Bytes that are no text.
    NotUtf8,
    /// A frame with a wrong checksum, or one that can't be read.
    Corrupt,
}

/// Reads events from bytes as they come.
#[derive(Debug)]
pub(super) struct SseReader {
    most: usize,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    first: bool,
    name: String,
    data: String,
    has_data: bool,
}

impl SseReader {
    /// A line or an event may have `most` bytes.
    pub(super) fn new(most: usize) -> SseReader {
        SseReader {
            most,
            line: Vec::new(),
            after_return: false,
            first: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
        }
    }

    /// The events that end within these bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let mut out = Vec::new();
        let mut rest = bytes;
        if self.after_return && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        self.after_return &= bytes.is_empty();
        while let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            self.line.extend_from_slice(&rest[..end]);
            let is_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_return {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            if let Some(event) = self.end_of_line()? {
                out.push(event);
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > self.most { Err(SseError::TooLong) } else { Ok(out) }
    }

    fn end_of_line(&mut self) -> Result<Option<SseEvent>, SseError> {
        if self.line.len() + self.data.len() > self.most {
            return Err(SseError::TooLong);
        }
        let line = String::from_utf8(std::mem::take(&mut self.line)).map_err(|_| SseError::NotUtf8)?;
        let mut line = line.as_str();
        if std::mem::take(&mut self.first) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            let event =
                SseEvent { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) };
            return Ok(std::mem::take(&mut self.has_data).then_some(event));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.to_string(),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            // Comments (an empty name), `id` and `retry` are for clients that connect again; these requests
            // are not repeatable so.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into() }
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        let text = "\u{feff}: hello\nevent: a\ndata: x\ndata:y\n\nid: 1\r\ndata\r\rretry: 5\n\ndata:  two spaces\n\nevent: lost";
        let mut r = SseReader::new(1000);
        let events = r.push(text.as_bytes()).unwrap();
        assert_eq!(events, [event("a", "x\ny"), event("", ""), event("", " two spaces")]);
    }

    #[test]
    fn oversized_and_binary_input_is_an_error() {
        assert_eq!(SseReader::new(10).push(b"data: 0123456789").unwrap_err(), SseError::TooLong);
        assert_eq!(
            SseReader::new(10).push(b"data: 01234\ndata: 567890123\n").unwrap_err(),
            SseError::TooLong
        );
        assert_eq!(SseReader::new(10).push(b"data: \xff\n").unwrap_err(), SseError::NotUtf8);
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_does_not_matter(
            text in "(data: [a-zé]{0,3}|event: b|:c|)?((\r\n|\n|\r)(data: [a-zé]{0,3}|event: b|)){0,8}",
            cuts in prop::collection::vec(0usize..80, 0..6),
        ) {
            let whole = SseReader::new(1000).push(text.as_bytes()).unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            let (mut r, mut at, mut got) = (SseReader::new(1000), 0, Vec::new());
            for cut in cuts {
                got.extend(r.push(&text.as_bytes()[at..cut]).unwrap());
                at = cut;
            }
            prop_assert_eq!(whole, got);
        }
    }
}
