//! Origins of the bounds of loops that the program does not state.

use crate::Name;

/// Origin of the bound of a [`Term::Fix`](crate::Term::Fix) that the source does not state.
///
/// The notation and the exchange format write it as one text, which begins with the variant's mark:
/// [`Display`](std::fmt::Display) gives it and `From<&str>` reads it. Analyses and rules match on the
/// variants, never on the text; messages show [`BoundOrigin::describe`].
///
/// # Examples
/// ```
/// use core_ir::BoundOrigin;
/// let origin = BoundOrigin::from("none: the limit is switched off");
/// assert_eq!(origin, BoundOrigin::Unlimited("the limit is switched off".into()));
/// assert_eq!(origin.to_string(), "none: the limit is switched off");
/// let retries = BoundOrigin::Retries("the default of CrewAI, 3 retries".into());
/// assert_eq!(retries.to_string(), "retries: the default of CrewAI, 3 retries");
/// assert_eq!(retries.describe(), "the default of CrewAI, 3 retries");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BoundOrigin {
    /// A default of the framework, or a place outside of the program. The text names it.
    Default(Name),
    /// A default number of retries: the loop repeats only while its results are refused. The text names it.
    Retries(Name),
    /// A value that the source gives for the case that the environment gives none. The text names both.
    Fallback(Name),
    /// No limit, for the reason given.
    Unlimited(Name),
    /// Not known before a run, for the reason given.
    Unknown(Name),
    /// Calls that are not part of the term and cannot be counted, for the reason given. The loop represents
    /// them.
    Uncounted(Name),
    /// The number of times that a program or a framework runs the body, which the term has once, for the
    /// reason given. Costs count all of them.
    Repeated(Name),
}

const RETRIES: &str = "retries: ";
const FALLBACK: &str = "by default: ";
const UNLIMITED: &str = "none: ";
const UNKNOWN: &str = "not known: ";
const UNCOUNTED: &str = "not counted: ";
const REPEATED: &str = "repeated: ";

/// Makes an origin of a text.
type Make = fn(Name) -> BoundOrigin;

/// The marks of the variants. A text without a mark is a default.
const MARKS: [(&str, Make); 6] = [
    (RETRIES, BoundOrigin::Retries),
    (FALLBACK, BoundOrigin::Fallback),
    (UNLIMITED, BoundOrigin::Unlimited),
    (UNKNOWN, BoundOrigin::Unknown),
    (UNCOUNTED, BoundOrigin::Uncounted),
    (REPEATED, BoundOrigin::Repeated),
];

impl From<&str> for BoundOrigin {
    fn from(text: &str) -> BoundOrigin {
        let marked = |(mark, make): &(&str, Make)| text.strip_prefix(mark).map(|rest| make(rest.into()));
        MARKS.iter().find_map(marked).unwrap_or_else(|| BoundOrigin::Default(text.into()))
    }
}

impl std::fmt::Display for BoundOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = match self {
            BoundOrigin::Default(_) => "",
            BoundOrigin::Retries(_) => RETRIES,
            BoundOrigin::Fallback(_) => FALLBACK,
            BoundOrigin::Unlimited(_) => UNLIMITED,
            BoundOrigin::Unknown(_) => UNKNOWN,
            BoundOrigin::Uncounted(_) => UNCOUNTED,
            BoundOrigin::Repeated(_) => REPEATED,
        };
        write!(f, "{mark}{}", self.reason())
    }
}

impl BoundOrigin {
    /// A value `n` that the source gives for the case that `environment` gives none.
    pub fn fallback(environment: &str, n: u64) -> BoundOrigin {
        BoundOrigin::Fallback(format!("{environment}, {n} by default").into())
    }

    /// Words for messages, after "it is".
    pub fn describe(&self) -> String {
        match self {
            BoundOrigin::Default(text) | BoundOrigin::Retries(text) | BoundOrigin::Fallback(text) => {
                text.to_string()
            }
            BoundOrigin::Unlimited(why) => format!("none: {why}"),
            BoundOrigin::Unknown(why) => format!("not known: {why}"),
            BoundOrigin::Uncounted(why) => format!("not counted: {why}"),
            BoundOrigin::Repeated(why) => format!("repeated: {why}"),
        }
    }

    /// The reason, or the text that names the origin, without the mark of the variant.
    pub fn reason(&self) -> &Name {
        match self {
            BoundOrigin::Default(text)
            | BoundOrigin::Retries(text)
            | BoundOrigin::Fallback(text)
            | BoundOrigin::Unlimited(text)
            | BoundOrigin::Unknown(text)
            | BoundOrigin::Uncounted(text)
            | BoundOrigin::Repeated(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_every_variant_reads_back_as_the_same_origin() {
        let origins = [
            (
                BoundOrigin::Default("the default of CrewAI, 20 steps".into()),
                "the default of CrewAI, 20 steps",
            ),
            (
                BoundOrigin::Retries("the default of CrewAI, 3 retries".into()),
                "retries: the default of CrewAI, 3 retries",
            ),
            (BoundOrigin::fallback("`TURNS`", 25), "by default: `TURNS`, 25 by default"),
            (BoundOrigin::Repeated("it is run more than once".into()), "repeated: it is run more than once"),
            (BoundOrigin::Unlimited("off".into()), "none: off"),
            (BoundOrigin::Unknown("`n`".into()), "not known: `n`"),
            (BoundOrigin::Uncounted("`memory`".into()), "not counted: `memory`"),
        ];
        for (origin, text) in origins {
            assert_eq!(origin.to_string(), text);
            assert_eq!(BoundOrigin::from(text), origin);
        }
    }

    #[test]
    fn words_at_the_end_of_a_text_mark_no_variant() {
        for text in ["the default of a framework, 3 retries", "`LIMIT`, 3 by default"] {
            assert_eq!(BoundOrigin::from(text), BoundOrigin::Default(text.into()));
        }
    }
}
