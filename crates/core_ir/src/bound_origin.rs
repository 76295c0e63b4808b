//! Origins of the bounds of loops that the program does not state.

use crate::Name;

/// Origin of the bound of a [`Term::Fix`](crate::Term::Fix) that the source does not state.
///
/// The notation and the exchange format write it as one text, which [`Display`](std::fmt::Display) gives and
/// `From<&str>` reads. Analyses and rules match on the variants, never on the text.
///
/// # Examples
/// ```
/// use core_ir::BoundOrigin;
/// let origin = BoundOrigin::from("none: the limit is switched off");
/// assert_eq!(origin, BoundOrigin::Unlimited("the limit is switched off".into()));
/// assert_eq!(origin.to_string(), "none: the limit is switched off");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
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
}

const UNLIMITED: &str = "none: ";
const UNKNOWN: &str = "not known: ";
const UNCOUNTED: &str = "not counted: ";
const FALLBACK: &str = " by default";
const RETRIES: &str = "retries";

impl From<&str> for BoundOrigin {
    fn from(text: &str) -> BoundOrigin {
        if let Some(why) = text.strip_prefix(UNLIMITED) {
            BoundOrigin::Unlimited(why.into())
        } else if let Some(why) = text.strip_prefix(UNKNOWN) {
            BoundOrigin::Unknown(why.into())
        } else if let Some(why) = text.strip_prefix(UNCOUNTED) {
            BoundOrigin::Uncounted(why.into())
        } else if text.ends_with(FALLBACK) {
            BoundOrigin::Fallback(text.into())
        } else if text.ends_with(RETRIES) {
            BoundOrigin::Retries(text.into())
        } else {
            BoundOrigin::Default(text.into())
        }
    }
}

impl std::fmt::Display for BoundOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BoundOrigin::Default(text) | BoundOrigin::Retries(text) | BoundOrigin::Fallback(text) => {
                f.write_str(text)
            }
            BoundOrigin::Unlimited(why) => write!(f, "{UNLIMITED}{why}"),
            BoundOrigin::Unknown(why) => write!(f, "{UNKNOWN}{why}"),
            BoundOrigin::Uncounted(why) => write!(f, "{UNCOUNTED}{why}"),
        }
    }
}

impl BoundOrigin {
    /// A value `n` that the source gives for the case that `environment` gives none.
    pub fn fallback(environment: &str, n: u64) -> BoundOrigin {
        BoundOrigin::Fallback(format!("{environment}, {n}{FALLBACK}").into())
    }

    /// The reason, or the text that names the origin, without the words that mark the variant.
    pub fn reason(&self) -> &Name {
        match self {
            BoundOrigin::Default(text)
            | BoundOrigin::Retries(text)
            | BoundOrigin::Fallback(text)
            | BoundOrigin::Unlimited(text)
            | BoundOrigin::Unknown(text)
            | BoundOrigin::Uncounted(text) => text,
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
                "the default of CrewAI, 3 retries",
            ),
            (BoundOrigin::fallback("`TURNS`", 25), "`TURNS`, 25 by default"),
            (BoundOrigin::Unlimited("off".into()), "none: off"),
            (BoundOrigin::Unknown("`n`".into()), "not known: `n`"),
            (BoundOrigin::Uncounted("`memory`".into()), "not counted: `memory`"),
        ];
        for (origin, text) in origins {
            assert_eq!(origin.to_string(), text);
            assert_eq!(BoundOrigin::from(text), origin);
        }
    }
}
