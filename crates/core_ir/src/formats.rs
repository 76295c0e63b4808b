//! Texts of a known form: days, times, durations, addresses.
//!
//! Entry points: [`FORMATS`], [`Format::of`]. A type of such texts is `Str` with the pattern as its
//! condition, so everything that knows patterns knows these, and a message names the form instead of it.
//!
//! Invariant: the patterns have one meaning here and in JSON Schema, so that models are told them.

/// A form of texts.
#[derive(Debug, PartialEq, Eq)]
pub struct Format {
    /// Name of its type in `.agent`.
    pub name: &'static str,
    /// Regular expression of its texts.
    pub pattern: &'static str,
    /// A text of this form, with an article and an example.
    pub in_words: &'static str,
}

/// All forms. Days are those of the Gregorian calendar, also in leap years; durations are those of ISO 8601
/// without years and months, which have no fixed length.
pub const FORMATS: [Format; 5] = [
    Format {
        name: "Date",
        pattern: "^([0-9]{4}-(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|[0-9]{4}-(0[469]|11)-(0[1-9]|[12][0-9]|30)|[0-9]{4}-02-(0[1-9]|1[0-9]|2[0-8])|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)$",
        in_words: "a day such as `2026-01-31`",
    },
    Format {
        name: "Time",
        pattern: "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$",
        in_words: "a time of day such as `09:30`",
    },
    Format {
        name: "Duration",
        pattern: "^P([0-9]+D(T([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S))?|T([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S))$",
        in_words: "a duration such as `PT1H30M` or `P2D`",
    },
    Format {
        name: "Url",
        pattern: "^https?://[A-Za-z0-9.-]+(:[0-9]+)?([/?#][!-}]*)?$",
        in_words: "a URL such as `https://example.org/a`",
    },
    Format {
        name: "Email",
        pattern: "^[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)+$",
        in_words: "an e-mail address such as `ada@example.org`",
    },
];

impl Format {
    /// Returns the form with this pattern.
    pub fn of(pattern: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|f| f.pattern == pattern)
    }

    /// Returns the form with this name.
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|f| f.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Data, Pred};

    fn check(name: &str, right: &[&str], wrong: &[&str]) {
        let format = Format::named(name).unwrap();
        let pred = Pred::Matches(format.pattern.into());
        for text in right {
            assert_eq!(pred.holds(&Data::str(*text)), Ok(()), "{name}: {text}");
        }
        for text in wrong {
            let why = pred.holds(&Data::str(*text)).unwrap_err();
            assert!(why.contains(format.in_words), "{name}: {text}: {why}");
        }
    }

    #[test]
    fn forms_admit_their_texts_alone() {
        check(
            "Date",
            &["2026-01-31", "2024-02-29", "2000-02-29", "2026-12-31", "0400-02-29"],
            &[
                "2026-02-29",
                "1900-02-29",
                "2026-04-31",
                "2026-13-01",
                "2026-00-10",
                "2026-1-1",
                "31.01.2026",
                "",
            ],
        );
        check("Time", &["09:30", "23:59:59", "00:00"], &["24:00", "9:30", "09:60", "09:30:60"]);
        check(
            "Duration",
            &["PT1H30M", "P2D", "P1DT5S", "PT0S", "PT90M"],
            &["P", "PT", "1h", "P1Y", "PT1.5H", "P1DT"],
        );
        check(
            "Url",
            &["https://example.org", "http://a.b:80/c?d=e#f"],
            &["ftp://a", "example.org", "https://", "https://a b"],
        );
        check("Email", &["ada@example.org", "a.b+c@d-e.co.uk"], &["ada", "ada@x", "a b@c.de", "@x.de"]);
    }
}
