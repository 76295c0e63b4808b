//! Importance of a step of a run, by which views fold what says little.
//!
//! Entry points: [`Importance::of_request`] when a request is made, [`Importance::answered`] when its answer
//! is there. Every view takes it from the events ([`crate::Event::Answered`]) or from the trace that is made
//! of them, and decides nothing itself.

use crate::{Answered, Asked};

/// Importance of a request with its answer.
///
/// ```
/// use runs::{Answered, Asked, Importance};
///
/// let recall = Asked::Recall { store: "mem".into(), key: "a".into() };
/// let asked = Importance::of_request(&recall, false);
/// assert_eq!(asked.answered(&Answered::Nothing), Importance::Minor);
/// assert_eq!(asked.answered(&Answered::Failed("disk full".into())), Importance::Normal);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Importance {
    /// It stays inside the run, succeeded, and brings no label.
    Minor,
    /// Everything else, and everything of which that is not known.
    #[default]
    Normal,
}

impl Importance {
    /// Name of minor steps in traces and events, which do not name others.
    pub const MINOR: &'static str = "minor";

    /// The importance of a request, as long as it does not fail. `is_labeled` says that data or decisions
    /// with a label are in the request or in its answer.
    pub fn of_request(what: &Asked, is_labeled: bool) -> Importance {
        match what {
            Asked::Recall { .. } | Asked::Remember { .. } | Asked::Sample { .. } if !is_labeled => {
                Importance::Minor
            }
            Asked::Recall { .. }
            | Asked::Remember { .. }
            | Asked::Sample { .. }
            | Asked::Model { .. }
            | Asked::Tool { .. }
            | Asked::Approve { .. } => Importance::Normal,
        }
    }

    /// The importance of a request of this importance with its answer: what fails, or is withheld, is not
    /// minor.
    pub fn answered(self, what: &Answered) -> Importance {
        match what {
            Answered::Failed(_) | Answered::Stopped(_) | Answered::Late | Answered::Withheld => {
                Importance::Normal
            }
            Answered::Reply(_)
            | Answered::Data(_)
            | Answered::Nothing
            | Answered::Approved(_)
            | Answered::Edited { .. }
            | Answered::Sample(_) => self,
        }
    }

    /// Returns true if views may fold the step.
    pub fn is_minor(self) -> bool {
        self == Importance::Minor
    }
}
