//! Editor queries about `.agent`, `.lam`, configurations in YAML and JSON, and modules of Python that build
//! agents.
//!
//! Entry points: [`Workspace`] has the open documents and answers queries about them; [`Host`] is
//! where settings, policies and files come from that are not open.
//!
//! ```
//! use ide::{Nothing, Workspace};
//!
//! let mut workspace = Workspace::new(Box::new(Nothing));
//! workspace.open("p.agent", "pipeline p() -> String { return 1; }".into());
//! let found = workspace.findings("p.agent");
//! assert_eq!((found[0].code, found[0].range.clone()), ("A050", 32..33));
//! ```
//!
//! Invariant: answers are plain data. Places are ranges of UTF-8 bytes that never split a character; no type
//! here is one of a protocol.
//! Invariant: findings and repairs are those of `entail check` and `entail lint`; nothing is checked here.
//! Invariant: no file is read but through [`Host`].

mod analysis;
mod calls;
mod config_symbols;
mod cross_file;
mod fields;
mod names;
mod outline;
mod workspace;

pub use analysis::{Host, Language, Options, Programs};
pub use workspace::{Nothing, Workspace, repair_title};

use diagnostics::{Applicability, Level};
use std::sync::Arc;

/// A range of UTF-8 bytes.
pub type Range = std::ops::Range<usize>;

/// A place in a file, with the file's text, out of which lines and columns can be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub path: String,
    /// Its text.
    pub text: Arc<str>,
    /// The place.
    pub range: Range,
}

/// A finding in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The code that `entail explain` knows.
    pub code: &'static str,
    /// The level.
    pub level: Level,
    /// The problem.
    pub message: String,
    /// The remedies.
    pub help: Vec<String>,
    /// The place.
    pub range: Range,
    /// Other places, with a remark each.
    pub related: Vec<(Location, String)>,
}

/// A repair of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The change, in a few words.
    pub title: String,
    /// Confidence in the change.
    pub applicability: Applicability,
    /// The finding that it repairs.
    pub finding: Finding,
    /// The change.
    pub edit: Edit,
}

/// A change of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The place that is replaced.
    pub range: Range,
    /// The new text.
    pub text: String,
}

/// Changes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdits {
    /// The file.
    pub path: String,
    /// Its text before the changes.
    pub text: Arc<str>,
    /// The changes.
    pub edits: Vec<Edit>,
}

/// An explanation of what stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The explanation.
    pub markdown: String,
    /// The place that it is about, if that is known.
    pub range: Option<Range>,
}

/// A text that may stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text.
    pub label: String,
    /// Kind of the named item.
    pub kind: CompletionKind,
    /// The text that is inserted, if it is another one.
    pub insert: Option<String>,
    /// The meaning, in a line.
    pub detail: Option<String>,
    /// The meaning, as Markdown.
    pub documentation: Option<String>,
}

impl Completion {
    fn new(label: impl Into<String>, kind: CompletionKind) -> Completion {
        Completion { label: label.into(), kind, insert: None, detail: None, documentation: None }
    }
}

/// Kind of a [`Completion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// A type.
    Type,
    /// An agent.
    Agent,
    /// A task, tool, pipeline or built-in function.
    Function,
    /// A variable.
    Variable,
    /// A key of a record or a configuration.
    Field,
    /// A word of the language.
    Keyword,
}

/// A declaration of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name; never empty.
    pub name: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// The whole declaration.
    pub range: Range,
    /// The name in it.
    pub name_range: Range,
}

/// Kind of a [`Symbol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// Another file that is used.
    Module,
    /// An agent.
    Agent,
    /// An enum.
    Enum,
    /// An abbreviation of a type.
    TypeAlias,
    /// A value with a name.
    Constant,
    /// A tool, task, pipeline, workflow or import.
    Function,
    /// A test.
    Test,
}

/// A token with a meaning that only the whole text shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its place.
    pub range: Range,
    /// Its kind.
    pub kind: TokenKind,
    /// True if it declares what it names.
    pub declares: bool,
}

/// Kind of a [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A type.
    Type,
    /// An agent.
    Agent,
    /// A tool, task, pipeline or policy.
    Function,
    /// A variable.
    Variable,
    /// A comment.
    Comment,
}

/// A text that is shown between the characters of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The byte before which it is shown.
    pub offset: usize,
    /// The text.
    pub label: String,
    /// Its kind.
    pub kind: HintKind,
}

/// Kind of a [`Hint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// The bound of a pipeline.
    Bound,
    /// The type of a variable.
    Type,
}

/// The head of what a call calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The head, in one line.
    pub label: String,
    /// The places of the parameters in it.
    pub params: Vec<Range>,
    /// The parameter whose argument is being written, if it is known.
    pub active: Option<usize>,
}

/// A part of a text that can be folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The part, with its brackets.
    pub range: Range,
    /// Its kind.
    pub kind: FoldKind,
}

/// Kind of a [`Fold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldKind {
    /// Between brackets, or a string.
    Block,
    /// Comments.
    Comment,
}

/// An action or a fact that is shown above a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    /// The name of the declaration.
    pub range: Range,
    /// The action.
    pub action: LensAction,
}

/// Content of a [`Lens`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LensAction {
    /// A pipeline or workflow can be run.
    Run {
        /// Its name.
        pipeline: String,
        /// True if it has parameters.
        takes_input: bool,
    },
    /// A test can be run.
    Test {
        /// Its name.
        name: String,
    },
    /// The most that a pipeline or workflow asks and calls.
    Cost {
        /// The bound, in words.
        bound: String,
    },
}

/// Reason why a query can't be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// Nothing can be changed there, in words for people.
    Refused(String),
    /// The new name is invalid, with the reason.
    InvalidName(String),
}
