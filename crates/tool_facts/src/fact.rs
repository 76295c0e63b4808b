//! Facts with evidence and confidence.

use crate::effect::{Effect, Role};
use diagnostics::{Sources, Span};
use std::cmp::Reverse;
use std::sync::Arc;

/// Confidence in a fact, from its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// Words of a name or a description suggest it.
    Guessed,
    /// A call that is resolved in part, or a server of which only the purpose is documented.
    Likely,
    /// A resolved call, or a documented tool.
    Sure,
}

impl Confidence {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Confidence::Guessed => "guessed",
            Confidence::Likely => "likely",
            Confidence::Sure => "sure",
        }
    }
}

/// Evidence of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A call in the body of the tool.
    Call {
        /// Qualified name of what is called.
        callee: Arc<str>,
        /// Place of the call.
        span: Span,
    },
    /// An entry of the registry.
    Registry {
        /// The framework or server, and the tool.
        entry: Arc<str>,
        /// Address of what documents it.
        source: &'static str,
        /// Date at which it was read.
        date: &'static str,
        /// Place at which the tool or its server is named.
        span: Span,
    },
    /// A hint that a server gives of its tool.
    Hint {
        /// Name of the hint: `readOnlyHint`.
        hint: &'static str,
        /// Place at which the server is named.
        span: Span,
    },
    /// Words of the tool's name.
    Name {
        /// The words.
        words: Arc<str>,
        /// Place of the tool.
        span: Span,
    },
    /// Words of the tool's description.
    Description {
        /// The words.
        words: Arc<str>,
        /// Place of the tool.
        span: Span,
    },
}

impl Evidence {
    /// Kind of the evidence, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Evidence::Call { .. } => "call",
            Evidence::Registry { .. } => "registry",
            Evidence::Hint { .. } => "hint",
            Evidence::Name { .. } => "name",
            Evidence::Description { .. } => "description",
        }
    }

    /// Place of the evidence.
    pub fn span(&self) -> Span {
        match self {
            Evidence::Call { span, .. }
            | Evidence::Registry { span, .. }
            | Evidence::Hint { span, .. }
            | Evidence::Name { span, .. }
            | Evidence::Description { span, .. } => *span,
        }
    }

    /// Describes it: `` `requests.get` at tools.py:14 ``.
    pub fn describe(&self, sources: &Sources) -> String {
        let place = || match sources.get(self.span().file) {
            Some(source) => format!("{}:{}", source.path, source.line_column(self.span().start).line),
            None => "an unknown place".into(),
        };
        match self {
            Evidence::Call { callee, .. } => format!("`{}` at {}", diagnostics::clip(callee), place()),
            Evidence::Registry { entry, source, date, .. } => {
                format!("registry: {} ({source}, {date})", diagnostics::clip(entry))
            }
            Evidence::Hint { hint, .. } => format!("the server says so: `{hint}`"),
            Evidence::Name { words, .. } => format!("the name says `{}`", diagnostics::clip(words)),
            Evidence::Description { words, .. } => {
                format!("the description says `{}`", diagnostics::clip(words))
            }
        }
    }
}

/// Effect of a tool with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The effect.
    pub effect: Effect,
    /// Evidence of it.
    pub evidence: Evidence,
    /// Confidence in it.
    pub confidence: Confidence,
}

impl Fact {
    /// The fact that a call likely has an effect.
    pub(crate) fn likely_call(effect: Effect, callee: Arc<str>, span: Span) -> Fact {
        Fact { effect, evidence: Evidence::Call { callee, span }, confidence: Confidence::Likely }
    }

    /// The same where a step to it is only likely.
    pub(crate) fn at_most_likely(&self) -> Fact {
        Fact { confidence: self.confidence.min(Confidence::Likely), ..self.clone() }
    }
}

/// Extent of what is known of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knowledge {
    /// Nothing.
    Unknown,
    /// Some of its effects; there may be others.
    Partly,
    /// All of its effects.
    Known,
}

impl Knowledge {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Knowledge::Unknown => "unknown",
            Knowledge::Partly => "partly",
            Knowledge::Known => "known",
        }
    }
}

/// Facts about one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFacts {
    /// Its effects, each once with its best evidence.
    pub facts: Vec<Fact>,
    /// Extent of what is known.
    pub knowledge: Knowledge,
    /// Calls in its body whose effects are not known, with their places.
    pub unknown_calls: Vec<(Arc<str>, Span)>,
    /// The toolkit whose tools it represents, where the program does not name them.
    pub toolkit: Option<Arc<str>>,
}

impl ToolFacts {
    /// Nothing is known.
    pub fn unknown() -> ToolFacts {
        ToolFacts::of(Vec::new(), Knowledge::Unknown)
    }

    /// One fact, beside which nothing counts.
    pub fn of_fact(fact: Fact) -> ToolFacts {
        ToolFacts::of(vec![fact], Knowledge::Known)
    }

    /// Facts of one kind of evidence.
    pub(crate) fn of(facts: Vec<Fact>, knowledge: Knowledge) -> ToolFacts {
        let mut out = ToolFacts { facts: Vec::new(), knowledge, unknown_calls: Vec::new(), toolkit: None };
        facts.into_iter().for_each(|f| out.add(f));
        out
    }

    /// Adds a fact, unless the effect is known with evidence as good.
    pub(crate) fn add(&mut self, fact: Fact) {
        match self.facts.iter_mut().find(|f| f.effect == fact.effect) {
            Some(known) if known.confidence < fact.confidence => *known = fact,
            Some(_) => {}
            None => self.facts.push(fact),
        }
    }

    /// Adds what another body of the tool does.
    pub(crate) fn join(&mut self, other: ToolFacts) {
        other.facts.into_iter().for_each(|f| self.add(f));
        self.unknown_calls.extend(other.unknown_calls);
        if self.knowledge != other.knowledge {
            self.knowledge = self.in_part();
        }
    }

    /// The facts with what another body of the tool does.
    pub(crate) fn joined(mut self, other: ToolFacts) -> ToolFacts {
        self.join(other);
        self
    }

    /// Takes what is sent to services for questions.
    pub(crate) fn asks_only(&mut self) {
        let sent = |f: &Fact| f.effect == Effect::ServiceWrite && matches!(f.evidence, Evidence::Call { .. });
        let Some(at) = self.facts.iter().position(sent) else { return };
        let fact = self.facts.remove(at);
        self.add(Fact { effect: Effect::ServiceRead, ..fact });
    }

    /// Extent of what is known where not all is: an effect that plays no role in an attack, such as a cache,
    /// makes nothing known of the rest.
    pub(crate) fn in_part(&self) -> Knowledge {
        let counts = self.facts.iter().any(|f| !f.effect.roles().is_empty());
        if counts { Knowledge::Partly } else { Knowledge::Unknown }
    }

    /// Returns the best evidence for a role, if the tool has it.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::{FileId, Span};
    /// use tool_facts::{Effect, Role, by_name};
    /// let at = Span { file: FileId(0), start: 0, end: 0 };
    /// let facts = by_name("send_email", at);
    /// assert_eq!(facts.role(Role::Outward).unwrap().effect, Effect::MailSend);
    /// assert!(facts.role(Role::Private).is_none());
    /// ```
    pub fn role(&self, role: Role) -> Option<&Fact> {
        self.facts.iter().filter(|f| f.effect.has(role)).max_by_key(|f| f.confidence)
    }

    /// How well a tool shows a role, if it has it: the greater, the more certain, and the less it does
    /// beside. A tool that starts a program shows less than one that is made to read or to send.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::{FileId, Span};
    /// use tool_facts::{Role, by_name};
    /// let at = Span { file: FileId(0), start: 0, end: 0 };
    /// let shows = |name| by_name(name, at).shows(Role::Outward);
    /// assert!(shows("send_email") > shows("bash") && shows("read_file").is_none());
    /// ```
    pub fn shows(&self, role: Role) -> Option<impl Ord + Copy + use<>> {
        let fact = self.role(role)?;
        let runs = fact.effect.has(Role::Runs);
        let roles: usize = self.facts.iter().map(|f| f.effect.roles().len()).sum();
        Some((fact.confidence, Reverse(runs), Reverse(roles)))
    }
}
