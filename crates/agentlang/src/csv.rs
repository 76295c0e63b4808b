//! Tables of comma-separated values: the records of a text, with their places.
//!
//! Source: RFC 4180. Beyond it, lines may end with a line feed alone, and a cell without quotes may have a
//! quote inside.

/// A cell of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    /// True if it stands in quotes, so that an empty one is a text and not absent.
    pub(super) is_quoted: bool,
}

/// A record: a line, or several where line breaks stand in quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Offset of its first byte.
    pub(super) start: usize,
    /// Offset behind its last byte.
    pub(super) end: usize,
    pub(super) cells: Result<Vec<Cell>, Malformed>,
}

/// Reason why a text is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// A quote is not closed.
    Unclosed,
    /// Text follows a closing quote.
    AfterQuote,
}

/// The records of a text, one after the other. Empty lines are none.
pub(super) struct Records<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(text: &'a str) -> Records<'a> {
        // A byte order mark, as spreadsheets write it.
        Records { text, at: if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 } }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes what stands before the next of these characters.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Takes this text if it comes next.
    fn takes(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn cell(&mut self) -> Result<Cell, Malformed> {
        const ENDS: [char; 3] = [',', '\r', '\n'];
        if !self.takes("\"") {
            return Ok(Cell { text: self.until(&ENDS).to_string(), is_quoted: false });
        }
        let mut text = String::new();
        loop {
            text.push_str(self.until(&['"']));
            if !self.takes("\"") {
                return Err(Malformed::Unclosed);
            }
            // A doubled quote is one in the text.
            if !self.takes("\"") {
                break;
            }
            text.push('"');
        }
        match self.until(&ENDS) {
            "" => Ok(Cell { text, is_quoted: true }),
            _ => Err(Malformed::AfterQuote),
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let rest = self.rest();
        self.at += rest.find(|c| c != '\r' && c != '\n')?;
        let (start, mut cells) = (self.at, Ok(Vec::new()));
        loop {
            match (self.cell(), &mut cells) {
                (Ok(cell), Ok(all)) => all.push(cell),
                (Err(why), Ok(_)) => cells = Err(why),
                (_, Err(_)) => {}
            }
            if !self.takes(",") {
                return Some(Record { start, end: self.at, cells });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Vec<Result<Vec<String>, Malformed>> {
        let shown = |c: Cell| if c.is_quoted { format!("<{}>", c.text) } else { c.text };
        Records::new(text).map(|r| r.cells.map(|all| all.into_iter().map(shown).collect())).collect()
    }

    #[test]
    fn records_are_those_of_the_standard() {
        let found = records("\u{feff}a,b\r\n\r\n\"x, \"\"y\"\"\n2\",\nn\"o, \n\"\",\"é\"");
        let row = |cells: &[&str]| Ok(cells.iter().map(|c| c.to_string()).collect::<Vec<_>>());
        assert_eq!(
            found,
            [row(&["a", "b"]), row(&["<x, \"y\"\n2>", ""]), row(&["n\"o", " "]), row(&["<>", "<é>"])]
        );
        assert_eq!(records(""), []);
        assert_eq!(records("\n\r\n"), []);
    }

    #[test]
    fn a_malformed_record_is_said_and_the_next_line_read() {
        assert_eq!(records("\"a\" b,c\nd"), [Err(Malformed::AfterQuote), Ok(vec!["d".to_string()])]);
        assert_eq!(records("a,\"b\nc"), [Err(Malformed::Unclosed)]);
    }

    #[test]
    fn places_are_those_in_the_text() {
        let text = "\u{feff}a,b\n\n\"1\n2\",3\r\n";
        let places: Vec<&str> = Records::new(text).map(|r| &text[r.start..r.end]).collect();
        assert_eq!(places, ["a,b", "\"1\n2\",3"]);
    }
}
