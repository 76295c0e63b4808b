//! Effects of a term on the world, as a finite set.

use crate::Name;
use crate::print::name_text;
use std::collections::BTreeSet;
use std::fmt;

/// One kind of effect. How *often* it happens is not here but in the cost analysis.
///
/// Source: `docs/calculus.md` §4 (effects); seed 000 §9, TE rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Asks a model (by name; the empty name is the run's default model).
    Llm(Name),
    /// Calls a tool.
    Tool(Name),
    /// Reads or writes a key of a store.
    State(Name),
    /// Draws a sample.
    Sample,
    /// Reads or writes the conversation of its caller.
    Conversation,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |n: &Name| if n.is_empty() { String::new() } else { name_text(n) };
        match self {
            Effect::Llm(m) => write!(f, "llm({})", quoted(m)),
            Effect::Tool(t) => write!(f, "tool({})", quoted(t)),
            Effect::State(k) => write!(f, "state({})", quoted(k)),
            Effect::Sample => f.write_str("sample"),
            Effect::Conversation => f.write_str("conversation"),
        }
    }
}

/// A set of effects, or everything where the analysis cannot tell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectRow {
    /// These at most.
    Only(BTreeSet<Effect>),
    /// Unknown: may be anything.
    Any,
}

impl EffectRow {
    /// No effect.
    pub fn pure() -> EffectRow {
        EffectRow::Only(BTreeSet::new())
    }

    /// One effect.
    pub fn one(effect: Effect) -> EffectRow {
        EffectRow::Only(BTreeSet::from([effect]))
    }

    /// Both.
    #[must_use]
    pub fn union(&self, other: &EffectRow) -> EffectRow {
        match (self, other) {
            (EffectRow::Only(a), EffectRow::Only(b)) => EffectRow::Only(a.union(b).cloned().collect()),
            _ => EffectRow::Any,
        }
    }

    /// Returns true if `other` allows every effect of `self`.
    pub fn within(&self, other: &EffectRow) -> bool {
        match (self, other) {
            (_, EffectRow::Any) => true,
            (EffectRow::Any, EffectRow::Only(_)) => false,
            (EffectRow::Only(a), EffectRow::Only(b)) => a.is_subset(b),
        }
    }
}

impl fmt::Display for EffectRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EffectRow::Any => f.write_str("any"),
            EffectRow::Only(set) if set.is_empty() => f.write_str("pure"),
            EffectRow::Only(set) => {
                for (i, e) in set.iter().enumerate() {
                    write!(f, "{}{e}", if i > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}
