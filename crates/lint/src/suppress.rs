//! Comments that silence findings:
//! `# entail: ignore[L017] until 2027-01-31: the loop is bounded by the caller`.
//!
//! Entry point: [`Suppressions::read`], then [`Suppressions::apply`].
//!
//! A comment silences the codes it lists (a prefix such as `L004` lists L004a to L004d) on its own line or,
//! if nothing else stands on that line, on the next line that is no such comment; `ignore-file` silences them
//! in the whole file. It has to say why, and it is reported once it silences nothing, so that silence does
//! not outlive its reason.

use diagnostics::{Applicability, Diagnostic, Explanation, FileId, Fix, Level, Span};

/// A suppression that silences nothing.
pub const UNUSED: &str = "I001";
/// A suppression without a reason.
pub const NO_REASON: &str = "I002";
/// A suppression past its date.
pub const EXPIRED: &str = "I003";
/// A suppression that cannot be understood.
pub const MALFORMED: &str = "I004";

/// The codes of this module, for `entail explain`.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        code: UNUSED,
        title: "a suppression that suppresses nothing",
        text: "There is no finding of this code here any more. Remove the comment, or it will hide the next one.",
        wrong: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: Say hello. # entail: ignore[L001] written elsewhere",
        right: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: '' # entail: ignore[L001] written elsewhere",
    },
    Explanation {
        code: NO_REASON,
        title: "a suppression without a reason",
        text: "Whoever reads the comment later has to know whether it still holds. Write the reason behind the codes.",
        wrong: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: '' # entail: ignore[L001]",
        right: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: '' # entail: ignore[L001] written elsewhere",
    },
    Explanation {
        code: EXPIRED,
        title: "a suppression past its date",
        text: "The comment says until when it holds, and that day is over: what it silenced is reported again. Repair the \
               defect, or set a new date.",
        wrong: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: '' # entail: ignore[L001] until 2001-01-31: not yet written",
        right: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: '' # entail: ignore[L001] until 9999-01-31: not yet written",
    },
    Explanation {
        code: MALFORMED,
        title: "a suppression that cannot be understood",
        text: "It silences nothing. Write `# entail: ignore[CODES] reason`, or `# entail: ignore-file[CODES] reason` for a whole \
               file; `until YYYY-MM-DD:` may stand before the reason. The codes are those that `entail explain` lists.",
        wrong: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: '' # entail: ignore L001",
        right: "agentId: a\ntype: simple\nmodel: m\nsystemPrompt: '' # entail: ignore[L001] written elsewhere",
    },
];

/// A day of the Gregorian calendar, ordered as days are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    year: u16,
    month: u8,
    day: u8,
}

impl Day {
    /// The day of a text `YYYY-MM-DD`.
    ///
    /// # Examples
    /// ```
    /// use lint::Day;
    /// assert!(Day::parse("2026-11-22") < Day::parse("2027-01-01"));
    /// assert_eq!(Day::parse("2026-13-01"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Day> {
        let mut parts = text.split('-');
        let mut part = |digits: usize| {
            let p = parts.next()?;
            (p.len() == digits && p.bytes().all(|b| b.is_ascii_digit())).then(|| p.parse::<u16>().ok())?
        };
        let (year, month, day) = (part(4)?, part(2)?, part(2)?);
        let ok = parts.next().is_none() && (1..=12).contains(&month) && (1..=31).contains(&day);
        // INVARIANT: both are below 32.
        ok.then_some(Day { year, month: month as u8, day: day as u8 })
    }

    /// The day that contains a second of Unix time, in UTC.
    ///
    /// # Examples
    /// ```
    /// use lint::Day;
    /// assert_eq!(Day::parse("2000-02-29"), Some(Day::of_unix(951_782_400)));
    /// ```
    pub fn of_unix(seconds: u64) -> Day {
        let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
        let mut days = seconds / 86_400;
        let mut year = 1970;
        while year < 9999 && days >= 365 + u64::from(leap(year)) {
            days -= 365 + u64::from(leap(year));
            year += 1;
        }
        let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while month < 11 && days >= lengths[month] {
            days -= lengths[month];
            month += 1;
        }
        // INVARIANT: the year is at most 9999, the month below 12; a day past the year 9999 is cut to its
        // end.
        Day { year: year as u16, month: month as u8 + 1, day: days.min(30) as u8 + 1 }
    }
}

/// One comment.
#[derive(Clone, Debug)]
struct Suppression {
    /// The comment, for findings about itself.
    span: Span,
    /// Range that removes the comment: the white space before it too, or all of its line.
    removal: Span,
    codes: Vec<String>,
    reason: bool,
    until: Option<Day>,
    /// Bytes of the line that it is about; `None` for the whole file.
    lines: Option<std::ops::Range<u32>>,
}

/// The comments of a file.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    found: Vec<Suppression>,
    malformed: Vec<Diagnostic>,
}

impl Suppressions {
    /// Reads the comments of a text in which comments begin with `#` or `//`. `is_code` says which codes
    /// there are.
    ///
    /// A line of a block scalar that looks like such a comment counts as one.
    pub fn read(file: FileId, text: &str, is_code: impl Fn(&str) -> bool) -> Suppressions {
        let mut out = Suppressions::default();
        if !text.contains("entail:") {
            return out;
        }
        // Comments on lines of their own wait for the line that they are about.
        let mut waiting: Vec<usize> = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.trim_end_matches(['\n', '\r']).len();
            // INVARIANT: texts are at most 8 MiB long.
            let range = start as u32..end as u32;
            match comment(line) {
                None => {
                    for i in waiting.drain(..) {
                        out.found[i].lines = Some(range.clone());
                    }
                }
                Some(at) => {
                    let span = Span { file, start: (start + at) as u32, end: end as u32 };
                    match parse(&text[start + at..end], span, &is_code) {
                        Ok(mut s) => {
                            let before = line[..at].trim_end();
                            let alone = before.is_empty();
                            s.removal.start = (start + before.len()) as u32;
                            if alone {
                                s.removal.end = (start + line.len()) as u32;
                            }
                            // A whole file is marked by the absence of a range, which `parse` leaves so.
                            if s.lines.is_some() {
                                s.lines = Some(range);
                                if alone {
                                    waiting.push(out.found.len());
                                }
                            }
                            out.found.push(s);
                        }
                        Err(d) => out.malformed.push(*d),
                    }
                }
            }
            start += line.len();
        }
        out
    }

    /// Takes out the findings that are silenced, and puts in what there is to say about the comments
    /// themselves. Returns how many were taken out. Without a day of today, nothing has expired.
    pub fn apply(&self, findings: &mut Vec<Diagnostic>, today: Option<Day>) -> usize {
        if self.found.is_empty() && self.malformed.is_empty() {
            return 0;
        }
        let before = findings.len();
        let mut used = vec![false; self.found.len()];
        let expired =
            |s: &Suppression| matches!((s.until, today), (Some(until), Some(today)) if until < today);
        findings.retain(|d| {
            let Some(at) = d.span else { return true };
            let mut keep = true;
            for (s, used) in self.found.iter().zip(&mut used) {
                let here = s.span.file == at.file
                    && s.lines.as_ref().is_none_or(|l| l.start <= at.start && at.start <= l.end);
                if here && s.codes.iter().any(|c| d.code.starts_with(c.as_str())) {
                    *used = true;
                    keep &= expired(s);
                }
            }
            keep
        });
        let silenced = before - findings.len();
        for (s, used) in self.found.iter().zip(used) {
            let codes = s.codes.join(", ");
            if !used {
                let fix =
                    Fix { span: s.removal, replacement: String::new(), applicability: Applicability::Safe };
                let message = format!("unused suppression: there is no {codes} here");
                let d = Diagnostic::warn(UNUSED, message, s.span).help("remove the comment").fix(fix);
                findings.push(d);
            } else if expired(s) {
                let message = format!("the suppression of {codes} has expired");
                let help = "repair the defect, or set a new date";
                findings.push(Diagnostic::warn(EXPIRED, message, s.span).help(help));
            }
            if !s.reason {
                let message = format!("suppression of {codes} without a reason");
                let help = "write the reason after the codes";
                findings.push(Diagnostic::warn(NO_REASON, message, s.span).help(help));
            }
        }
        findings.extend(self.malformed.iter().cloned());
        silenced
    }
}

/// Returns the start of a suppression comment in a line: a `#` or `//` at the line's start or after white
/// space.
fn comment(line: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = line[from..].find("entail:").map(|i| i + from) {
        let before = line[..at].trim_end_matches([' ', '\t']);
        let mark = before.strip_suffix('#').or_else(|| before.strip_suffix("//"));
        if let Some(rest) = mark
            && (rest.is_empty() || rest.ends_with([' ', '\t']))
        {
            return Some(rest.len());
        }
        from = at + "entail:".len();
    }
    None
}

fn parse(comment: &str, span: Span, is_code: &impl Fn(&str) -> bool) -> Result<Suppression, Box<Diagnostic>> {
    let wrong = |message: String| {
        let help = "write `entail: ignore[CODES] reason`";
        Box::new(Diagnostic::new(Level::Warn, MALFORMED, message, span).help(help))
    };
    // INVARIANT: `comment` found the word.
    let text = comment.split_once("entail:").map_or("", |(_, t)| t).trim();
    let (whole_file, rest) = match (text.strip_prefix("ignore-file"), text.strip_prefix("ignore")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err(wrong(format!("`{}` is not a suppression", diagnostics::clip(text)))),
    };
    let listed = rest.trim_start().strip_prefix('[').and_then(|r| r.split_once(']'));
    let Some((codes, rest)) = listed else {
        return Err(wrong("this suppression lists no codes in brackets".into()));
    };
    let codes: Vec<String> =
        codes.split(',').map(|c| c.trim().to_string()).filter(|c| !c.is_empty()).collect();
    if codes.is_empty() {
        return Err(wrong("this suppression lists no codes".into()));
    }
    if let Some(unknown) = codes.iter().find(|c| !is_code(c)) {
        return Err(wrong(format!("unknown code `{}`", diagnostics::clip(unknown))));
    }
    let rest = rest.trim_start_matches([' ', '\t', ':', '-', '–', '—']);
    let (until, rest) = match rest.strip_prefix("until ") {
        None => (None, rest),
        Some(dated) => {
            let (day, rest) = dated.trim_start().split_at_checked(10).unwrap_or((dated, ""));
            let Some(day) = Day::parse(day) else {
                return Err(wrong("the date after `until` is not of the form YYYY-MM-DD".into()));
            };
            (Some(day), rest.trim_start_matches([' ', '\t', ':', '-', '–', '—']))
        }
    };
    let lines = (!whole_file).then_some(0..0);
    Ok(Suppression { span, removal: span, codes, reason: !rest.trim().is_empty(), until, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str, at: &[(&'static str, &str)], today: &str) -> Vec<&'static str> {
        let file = FileId(0);
        let mut found: Vec<Diagnostic> = at
            .iter()
            .map(|(code, place)| {
                let start = text.find(place).expect("the place is in the text") as u32;
                Diagnostic::warn(code, "m", Span { file, start, end: start + 1 })
            })
            .collect();
        let suppressions = Suppressions::read(file, text, |c| c.starts_with('L'));
        suppressions.apply(&mut found, Day::parse(today));
        found.iter().map(|d| d.code).collect()
    }

    #[test]
    fn a_comment_silences_its_line_and_no_other() {
        let text = "a: 1 # entail: ignore[L017] because\nb: 2\n";
        assert_eq!(findings(text, &[("L017", "a: 1"), ("L017", "b: 2")], "2026-01-01"), ["L017"]);
    }

    #[test]
    fn a_comment_alone_is_about_the_next_line() {
        let text = "# entail: ignore[L017] because\n# entail: ignore[L001] because\nb: 2\nc: 3\n";
        let at = [("L017", "b: 2"), ("L001", "b: 2"), ("L017", "c: 3")];
        assert_eq!(findings(text, &at, "2026-01-01"), ["L017"]);
    }

    #[test]
    fn a_prefix_silences_what_begins_with_it() {
        assert!(
            findings("a: 1 # entail: ignore[L004] because", &[("L004b", "a: 1")], "2026-01-01").is_empty()
        );
    }

    #[test]
    fn a_file_is_silenced_from_any_line() {
        let text = "a: 1\n# entail: ignore-file[L017] because\n";
        assert!(findings(text, &[("L017", "a: 1")], "2026-01-01").is_empty());
    }

    #[test]
    fn a_date_holds_until_its_day_is_over() {
        let text = "a: 1 # entail: ignore[L017] until 2026-11-22: because\n";
        assert!(findings(text, &[("L017", "a: 1")], "2026-11-22").is_empty());
        assert_eq!(findings(text, &[("L017", "a: 1")], "2026-11-23"), ["L017", EXPIRED]);
    }

    #[test]
    fn unused_and_malformed_suppressions_are_reported() {
        for (text, expected) in [
            ("a: 1 # entail: ignore[L017] because", UNUSED),
            ("a: 1 # entail: ignore L017", MALFORMED),
            ("a: 1 # entail: ignore[]", MALFORMED),
            ("a: 1 # entail: ignore[X9] because", MALFORMED),
            ("a: 1 # entail: ignore[L017] until tomorrow: because", MALFORMED),
            ("a: 1 # entail: allow[L017]", MALFORMED),
        ] {
            assert_eq!(findings(text, &[], "2026-01-01"), [expected], "{text}");
        }
        assert_eq!(findings("a: 1 # entail: ignore[L017]", &[("L017", "a: 1")], "2026-01-01"), [NO_REASON]);
    }

    #[test]
    fn removing_a_comment_leaves_the_rest_as_it_was() {
        let file = FileId(0);
        for (text, rest) in [
            ("a: 1 # entail: ignore[L017] x\nb: 2\n", "a: 1\nb: 2\n"),
            ("a: 1\n  # entail: ignore[L017] x\nb: 2\n", "a: 1\nb: 2\n"),
        ] {
            let mut found = Vec::new();
            Suppressions::read(file, text, |_| true).apply(&mut found, None);
            assert_eq!(diagnostics::fix::apply(text, file, &found, Applicability::Safe), (rest.into(), 1));
        }
    }

    #[test]
    fn text_that_is_no_comment_is_no_suppression() {
        for text in ["a: entail: ignore[L017]", "a: x#entail: ignore[L017]", "a: 'see entail: ignore[L017]'"]
        {
            assert_eq!(findings(text, &[("L017", "a: ")], "2026-01-01"), ["L017"], "{text}");
        }
    }
}
