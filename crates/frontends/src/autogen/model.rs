//! What AutoGen's components and the Python that makes them say alike: agents, teams, and what ends a talk.

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
}

impl Words {
    pub fn of(text: &str, at: Span) -> Words {
        Words { pieces: vec![Ok(text.to_string())], at }
    }

    /// The text as a term.
    pub fn build(&self, kit: &mut Kit<'_>) -> TermId {
        let mut template = Template::new(self.at);
        self.fill(kit, &mut template);
        template.build(&mut kit.b)
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

    /// What is known of it, the rest in braces.
    pub fn shown(&self) -> String {
        let piece = |p: &Result<String, String>| match p {
            Ok(text) => text.clone(),
            Err(why) => format!("{{{why}}}"),
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// Who takes part in a talk.
pub(super) struct Member {
    pub name: String,
    /// What the others, and who chooses a speaker, are told of it.
    pub description: Words,
    /// Where it is defined.
    pub place: Span,
    /// Where something missing would have to be added.
    pub head: Span,
    pub kind: Kind,
}

/// What a member is.
pub(super) enum Kind {
    Assistant(Box<Assistant>),
    /// A person, or a program, that is told the last message and answers.
    Outside,
    /// One that says the same whenever it is its turn.
    Says(String),
    Society(Box<Society>),
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
    /// Whether the model is asked once more, without tools, when these are used up.
    pub reflect: bool,
    /// How results are told if it is not: a Python format.
    pub summary: Option<String>,
    pub result: Option<Type>,
}

impl Assistant {
    /// Whether a reply of it may hold several calls.
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
    /// What AutoGen makes of a target where nothing else is said.
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
pub(super) struct Society {
    pub team: Member,
    pub params: ModelParams,
    pub model_at: Option<Span>,
    pub instruction: Words,
    pub response: Words,
    /// Whether both are system messages.
    pub as_system: bool,
}

/// A team.
pub(super) struct Team {
    pub how: How,
    pub members: Vec<Member>,
    /// Who gives the task.
    pub opener: String,
    pub ends: Option<Ends>,
    /// Turns at most, as written or by default.
    pub bound: LoopBound,
    /// Where the members are listed.
    pub at: Span,
}

/// Who speaks next.
pub(super) enum How {
    RoundRobin,
    Selector(Box<Selector>),
    /// Whom the last one handed over to.
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
    /// What it is asked at the end, if that is not AutoGen's own question.
    pub answer: Option<Words>,
}

/// A model that names the next speaker.
pub(super) struct Selector {
    pub params: ModelParams,
    pub model_at: Option<Span>,
    pub prompt: Words,
    /// If what was said is told message by message, what follows it.
    pub after: Option<Words>,
    /// Whether the prompt is a system message.
    pub as_system: bool,
    /// Whether the same may speak twice in a row.
    pub repeats: bool,
    pub attempts: LoopBound,
    /// Code that chooses, and where it is given.
    pub code: Option<(String, Span)>,
}

/// `DiGraph`.
pub(super) struct Graph {
    pub edges: Vec<Arrow>,
    pub start: Option<String>,
}

/// An edge.
pub(super) struct Arrow {
    pub from: String,
    pub to: String,
    pub when: When,
    /// Edges to one node are counted by group.
    pub group: String,
    /// Whether one edge of the group is enough.
    pub any: bool,
    pub at: Span,
}

/// When an edge is taken.
#[derive(Clone)]
pub(super) enum When {
    Always,
    /// The last message holds the text.
    Says(String),
    /// It does not.
    SaysNot(String),
    /// Not known, and why.
    Unknown(String),
}

/// Where a message holds a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    /// At its end, but for white space.
    End,
    /// It is all of the message, but for white space.
    All,
}

/// A termination condition.
pub(super) enum Ends {
    Any(Vec<Ends>),
    All(Vec<Ends>),
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
