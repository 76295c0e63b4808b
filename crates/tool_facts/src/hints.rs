//! Effects by the hints that a server gives of its tools (MCP annotations). They are the server's word:
//! better than a name, and worse than a documented tool.
//!
//! Source: "Tool annotations" of the Model Context Protocol. A hint that is not given says nothing here,
//! though the protocol has a default for it.

use crate::effect::Effect;
use crate::fact::{Confidence, Evidence, Fact, Knowledge, ToolFacts};
use crate::words::{by_description, by_name};
use diagnostics::Span;

/// A tool as its server offers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// `readOnlyHint`: it changes nothing.
    pub read_only: Option<bool>,
    /// `destructiveHint`: it may delete or replace something.
    pub destructive: Option<bool>,
    /// `openWorldHint`: it deals with things that anybody may have written, as a search of the web does.
    pub open_world: Option<bool>,
}

impl OfferedTool {
    /// Returns what its hints, its name and its description say.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::{FileId, Span};
    /// use tool_facts::{OfferedTool, Role};
    /// let at = Span { file: FileId(0), start: 0, end: 0 };
    /// let looks_up = OfferedTool { read_only: Some(true), open_world: Some(true), ..OfferedTool::default()
    /// }; assert!(looks_up.facts(at).role(Role::Untrusted).is_some()); let unsaid = OfferedTool { name:
    /// "frob".into(), ..OfferedTool::default() }; assert!(unsaid.facts(at).facts.is_empty());
    /// ```
    pub fn facts(&self, span: Span) -> ToolFacts {
        let effects: &[(Effect, &str)] = match (self.read_only, self.open_world) {
            (Some(true), Some(true)) => &[(Effect::PublicRead, "openWorldHint")],
            (Some(true), _) => &[(Effect::AccountRead, "readOnlyHint")],
            (Some(false), Some(true)) => &[(Effect::ServiceWrite, "openWorldHint")],
            (Some(false), _) => &[(Effect::AccountWrite, "readOnlyHint")],
            (None, Some(true)) if self.destructive == Some(true) => {
                &[(Effect::ServiceWrite, "destructiveHint")]
            }
            (None, _) if self.destructive == Some(true) => &[(Effect::AccountWrite, "destructiveHint")],
            (None, _) => &[],
        };
        let hinted = |(effect, hint): &(Effect, &'static str)| Fact {
            effect: *effect,
            evidence: Evidence::Hint { hint, span },
            confidence: Confidence::Likely,
        };
        let words = by_name(&self.name, span).joined(by_description(&self.description, span));
        // A word that contradicts the hint is no evidence.
        let fits = |fact: &Fact| match self.read_only {
            Some(reads) => reads != fact.effect.roles().contains(&crate::Role::Acts),
            None => true,
        };
        let facts: Vec<Fact> =
            effects.iter().map(hinted).chain(words.facts.into_iter().filter(fits)).collect();
        let knowledge = if facts.is_empty() { Knowledge::Unknown } else { Knowledge::Partly };
        ToolFacts::of(facts, knowledge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use diagnostics::FileId;

    #[test]
    fn hints_outweigh_words_that_contradict_them() {
        let at = Span { file: FileId(0), start: 0, end: 0 };
        let tool = |name: &str, read_only, open_world, destructive| {
            let offered = OfferedTool {
                name: name.into(),
                read_only,
                open_world,
                destructive,
                ..OfferedTool::default()
            };
            let facts = offered.facts(at);
            let mut names: Vec<&str> = facts.facts.iter().map(|f| f.effect.as_str()).collect();
            names.sort_unstable();
            (names.join(" "), facts)
        };
        assert_eq!(tool("send_email", None, None, None).0, "mail-send");
        // The name says more than the hint does.
        assert_eq!(tool("send_email", Some(false), Some(true), None).0, "mail-send service-write");
        assert_eq!(tool("send_email", Some(true), None, None).0, "account-read");
        assert_eq!(tool("x", None, None, Some(true)).0, "account-write");
        assert_eq!(tool("x", None, Some(true), None).0, "");
        let (_, facts) = tool("x", Some(true), Some(true), None);
        let fact = facts.role(Role::Untrusted).unwrap();
        assert_eq!((fact.evidence.kind(), fact.confidence), ("hint", Confidence::Likely));
    }
}
