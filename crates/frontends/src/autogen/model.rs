//! Model of AutoGen programs that configurations and Python share: agents, teams, and termination.

use core_ir::{ModelParams, TermId, ToolDecl, Type};
use diagnostics::Span;
use frontend_kit::calls;
use frontend_kit::emit::{LoopBound, Template};
use frontend_kit::kit::Kit;

/// A text, of which parts may not be known.
pub(super) struct Words {
    /// Text, or why a part is not known.
    pub pieces: Vec<Result<String, String>>,
    pub at: Span,
    /// True if it is the default of a parameter: a caller that is not seen may give another.
    pub is_default: bool,
}

impl Words {
    pub fn of(text: &str, at: Span) -> Words {
        Words { pieces: vec![Ok(text.to_string())], at, is_default: false }
    }

    /// The text as a term.
    pub fn build(&self, kit: &mut Kit<'_>) -> TermId {
        let mut template = Template::new(self.at);
        self.fill(kit, &mut template);
        let text = template.build(&mut kit.b);
        kit.written(text, !self.is_default);
        text
    }

    /// Adds it to a text.
    pub fn fill(&self, kit: &mut Kit<'_>, template: &mut Template) {
        for piece in &self.pieces {
            match piece {
                Ok(text) => {
                    template.text(text);
                }
                Err(why) => {
                    let hole = kit.unknown(why, self.at);
                    template.term(hole);
                }
            }
        }
    }

    /// Bytes that are known.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|p| p.as_ref().map_or(0, String::len)).sum()
    }

    /// Returns the known parts, with the others in braces.
    pub fn shown(&self) -> String {
        let piece = |p: &Result<String, String>| match p {
            Ok(text) => text.clone(),
            Err(why) => format!("{{{why}}}"),
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// A member of a group chat.
pub(super) struct Member {
    pub name: String,
    /// Description for the other members and for the speaker selector.
    pub description: Words,
    /// Place of the definition.
    pub place: Span,
    /// Place at which a missing setting would be added.
    pub head: Span,
    pub kind: MemberKind,
}

/// Kind of the member.
pub(super) enum MemberKind {
    Assistant(Box<Assistant>),
    /// A person, or a program, that is told the last message and answers.
    Outside,
    /// One that says the same whenever it is its turn.
    Constant(String),
    SocietyOfMind(Box<SocietyOfMind>),
    Team(Box<Team>),
    /// Not compiled, and why.
    Unknown(String),
}

/// `AssistantAgent`.
pub(super) struct Assistant {
    pub system: Option<Words>,
    pub params: ModelParams,
    pub model_at: Option<Span>,
    pub tools: Vec<ToolUse>,
    pub handoffs: Vec<Handoff>,
    /// Replies with tool calls that it answers in a turn.
    pub bound: LoopBound,
    /// True if the model is called once more, without tools, after the last iteration.
    pub reflect: bool,
    /// Format of a summary of tool results, in Python's syntax, if the model doesn't reflect on them.
    pub summary: Option<String>,
    pub result: Option<Type>,
}

impl Assistant {
    /// Returns true if one of its replies may contain several calls.
    pub fn calls_several(&self) -> bool {
        !(self.tools.is_empty() && self.handoffs.is_empty()) && calls::several(&self.params)
    }
}

/// A tool of an assistant.
pub(super) struct ToolUse {
    pub decl: ToolDecl,
    /// An agent or a team that is asked instead.
    pub ask: Option<Member>,
}

/// `Handoff`.
pub(super) struct Handoff {
    pub target: String,
    pub name: String,
    pub message: String,
    pub description: String,
    pub at: Span,
}

impl Handoff {
    /// Makes a handoff with AutoGen's default name and description.
    pub fn to(target: &str, at: Span) -> Handoff {
        Handoff {
            target: target.to_string(),
            name: format!("transfer_to_{target}").to_lowercase(),
            message: format!("Transferred to {target}, adopting the role of {target} immediately."),
            description: format!("Handoff to {target}."),
            at,
        }
    }
}

/// `SocietyOfMindAgent`.
pub(super) struct SocietyOfMind {
    pub team: Member,
    pub params: ModelParams,
    pub model_at: Option<Span>,
    pub instruction: Words,
    pub response: Words,
    /// True if both are system messages.
    pub as_system: bool,
}

/// A team.
pub(super) struct Team {
    pub how: SpeakerSelection,
    pub members: Vec<Member>,
    /// Source of the task.
    pub opener: String,
    pub ends: Option<Termination>,
    /// Turns at most, as written or by default.
    pub bound: LoopBound,
    /// Place of the list of members.
    pub at: Span,
}

/// The next speaker.
pub(super) enum SpeakerSelection {
    RoundRobin,
    Selector(Box<Selector>),
    /// Target of the last handoff.
    Swarm,
    /// An orchestrator that plans.
    Magentic(Box<Orchestrator>),
    Graph(Graph),
}

/// `MagenticOneGroupChat`: a model that keeps a ledger.
pub(super) struct Orchestrator {
    pub params: ModelParams,
    pub model_at: Option<Span>,
    /// Turns without progress before it plans anew.
    pub stalls: u64,
    /// Prompt for the final answer, if it isn't AutoGen's default.
    pub answer: Option<Words>,
}

/// A model that names the next speaker.
pub(super) struct Selector {
    pub params: ModelParams,
    pub model_at: Option<Span>,
    pub prompt: Words,
    /// If what was said is told message by message, what follows it.
    pub after: Option<Words>,
    /// True if the prompt is a system message.
    pub as_system: bool,
    /// True if a member may speak twice in a row.
    pub repeats: bool,
    pub attempts: LoopBound,
    /// Code that chooses, and where it is given.
    pub code: Option<(String, Span)>,
}

/// `DiGraph`.
pub(super) struct Graph {
    pub edges: Vec<GraphEdge>,
    pub start: Option<String>,
}

/// An edge.
pub(super) struct GraphEdge {
    pub from: String,
    pub to: String,
    pub when: When,
    /// Edges to one node are counted by group.
    pub group: String,
    /// True if one edge of the group suffices to activate the node.
    pub any: bool,
    pub at: Span,
}

/// When an edge is taken.
#[derive(Clone)]
pub(super) enum When {
    Always,
    /// The last message holds the text.
    Contains(String),
    /// It does not.
    NotContains(String),
    /// Not known, and why.
    Unknown(String),
}

/// Position of a text within a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    /// At its end, but for white space.
    End,
    /// It is all of the message, but for white space.
    All,
}

/// A termination condition.
pub(super) enum Termination {
    Any(Vec<Termination>),
    All(Vec<Termination>),
    Messages(u64, Span),
    Mention {
        text: String,
        sources: Option<Vec<String>>,
        place: Place,
        at: Span,
    },
    Handoff(String, Span),
    Source(Vec<String>, Span),
    /// A message that is a text, of one member or of any.
    TextOf(Option<String>, Span),
    Called(String, Span),
    /// By the clock, by what was spent or from outside, and how that is told.
    Outside(String, Span),
    /// Not compiled, and why.
    Unknown(String, Span),
}
