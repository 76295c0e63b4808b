//! Generated programs: closed terms with every former, the declarations they use, and the world they run in.
//!
//! A program is generated as an [`Ast`], in which variables, keys, tools and models are numbers that are
//! taken modulo how many there are in scope. So every [`Ast`] makes a closed term, and what remains after any
//! part of one is cut away does too: shrinking needs to know nothing of scopes.

mod ast;
mod build;
mod counting;
mod maps;
mod parts;
mod random;
mod script;
mod spending;

pub use ast::{Ast, Op};
pub use build::prelude;
pub use counting::{counting, counting_input, small};
pub(crate) use parts::{Beside, Drawing, draw_parts};
pub(crate) use random::program as random_program;
pub use random::{Rng, Style, Ty, principals};
pub use script::Script;
pub use spending::spending;

use core_ir::{AnswerSink, Code, Data, LabelSpec, LatticeKind, ModelParams, StoreDecl, ToolDecl};
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::fmt;
use std::sync::Arc;

/// A closed term with its declarations and its world.
#[derive(Clone, PartialEq)]
pub struct Program {
    /// The term.
    pub ast: Ast,
    /// The lattice its labels are of.
    pub lattice: LatticeKind,
    /// True if binders reuse a few names, so that they hide each other.
    pub shadowing: bool,
    /// True if `catch` binds the message. Otherwise it binds `true` at the message's label, because the
    /// machine chooses the wording of most errors.
    pub messages: bool,
    /// True if stores fail now and then.
    pub failing_stores: bool,
    /// True if tools label what they return, now and then.
    pub labeling: bool,
    /// True if some errors of models are permanent.
    pub permanent: bool,
    /// True if calls are approved with other arguments, now and then.
    pub edits: bool,
    /// The tools that `tool[…]` means.
    pub tools: Vec<ToolDecl>,
    /// The stores that `mem` opens.
    pub stores: Vec<StoreDecl>,
    /// The parameters of model calls. Their tools are all of `tools`, or none.
    pub models: Vec<ModelParams>,
    /// Clearance of models.
    pub clearance: LabelSpec,
    /// True if generated code may contain `endorse` and `declassify`.
    pub generated_endorse: bool,
    /// Rules for the answer; a generated program has none.
    pub answer: AnswerSink,
    /// Replies of models that are asked for code.
    pub replies: Vec<Reply>,
    /// Seed of the world's other answers.
    pub seed: u64,
}

/// A reply of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Code: the reply's text is a reference to it, which [`Program::parse`] resolves.
    Code(Ast),
    /// Text: read as JSON; what is not JSON does not parse.
    Text(String),
}

impl Program {
    /// The term as code.
    ///
    /// # Panics
    /// Never: every [`Ast`] makes a closed term, unless it is nested too deep, which none of ours is.
    pub fn code(&self) -> Arc<Code> {
        Arc::new(build::build(self, &self.ast).expect("a closed term"))
    }

    /// Reads generated code: a reference to one of the replies, or JSON.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(&self, text: &str) -> Result<Arc<Code>, String> {
        if let Some(index) = text.strip_prefix('#').and_then(|n| n.parse::<usize>().ok())
            && let Some(Reply::Code(ast)) = self.replies.get(index)
        {
            return build::build(self, ast).map(Arc::new).map_err(|e| format!("{e:?}"));
        }
        let json: serde_json::Value = serde_json::from_str(text).map_err(|_| "not code".to_string())?;
        let data = Data::from_json(&json).map_err(|e| e.to_string())?;
        let literal = Ast::new(Op::Lit(data), []);
        build::build(self, &literal).map(Arc::new).map_err(|e| format!("{e:?}"))
    }

    /// Returns true if anything may run in parallel, so that the order of requests is not determined.
    pub fn is_parallel(&self) -> bool {
        let parallel = |a: &Ast| {
            a.any(&|op| matches!(op, Op::Par(None | Some(2..)) | Op::Each(None | Some(2..)) | Op::ParPair))
        };
        parallel(&self.ast) || self.replies.iter().any(|r| matches!(r, Reply::Code(a) if parallel(a)))
    }

    /// The same program with another term.
    #[must_use]
    pub fn with(&self, ast: Ast) -> Program {
        Program { ast, ..self.clone() }
    }

    /// The candidate of a number among the programs that are one step smaller.
    pub(crate) fn smaller(&self, mut n: usize) -> Option<Program> {
        if let Some(ast) = self.ast.smaller(&mut n) {
            return Some(self.with(ast));
        }
        for (i, reply) in self.replies.iter().enumerate() {
            let Reply::Code(a) = reply else { continue };
            if let Some(a) = a.smaller(&mut n) {
                let mut p = self.clone();
                p.replies[i] = Reply::Code(a);
                return Some(p);
            }
        }
        // Last, what surrounds the term.
        let mut around: Vec<Program> = Vec::new();
        if self.clearance != LabelSpec::TOP {
            around.push(Program { clearance: LabelSpec::TOP, ..self.clone() });
        }
        if self.shadowing {
            around.push(Program { shadowing: false, ..self.clone() });
        }
        for i in 0..self.models.len() {
            if self.models[i] != ModelParams::default() {
                let mut p = self.clone();
                p.models[i] = ModelParams::default();
                around.push(p);
            }
        }
        around.into_iter().nth(n)
    }
}

/// Prints the data needed to understand a failed test: the term as `.lam` text, and the parts of the world
/// that it uses.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} {:?} seed {}", self.ast, self.lattice, self.seed)?;
        let printed = core_ir::print_code(&self.code());
        let uses_tools = self.ast.any(&|op| matches!(op, Op::Tool(_) | Op::Llm(_) | Op::RecvData(_)));
        let uses_stores = self.ast.any(&|op| matches!(op, Op::Mem(_)));
        let used = |line: &&str| match line.split(' ').next() {
            Some("tool") => uses_tools,
            Some("store") => uses_stores,
            _ => true,
        };
        for line in printed.lines().filter(used) {
            writeln!(f, "{line}")?;
        }
        let replies = |a: &Ast| a.any(&|op| matches!(op, Op::RecvCode | Op::Ask));
        if self.clearance != LabelSpec::TOP {
            writeln!(f, "models may see {:?}", self.clearance)?;
        }
        if replies(&self.ast) {
            writeln!(f, "replies: {:?}", self.replies)?;
        }
        Ok(())
    }
}

/// The program of a seed, as the strategy makes it.
pub fn of_seed(seed: u64, style: &Style) -> Program {
    random::program(&mut Rng::new(seed), style)
}

/// The strategy of closed programs; they shrink to smaller ones.
pub fn programs(style: Style) -> Programs {
    Programs { kind: Kind::All(style) }
}

/// The strategy of programs that do little but call, see [`spending`].
pub fn spending_programs() -> Programs {
    Programs { kind: Kind::Spending }
}

/// See [`programs`].
#[derive(Clone, Debug)]
pub struct Programs {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    All(Style),
    Spending,
}

impl Strategy for Programs {
    type Tree = Shrinking;
    type Value = Program;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let seed = proptest::num::u64::ANY.new_tree(runner)?.current();
        let program = match &self.kind {
            Kind::All(style) => of_seed(seed, style),
            Kind::Spending => spending(seed),
        };
        Ok(Shrinking { accepted: program.clone(), current: program, candidate: 0 })
    }
}

/// Shrinks greedily: the first smaller program that still fails is shrunk further.
#[derive(Clone, Debug)]
pub struct Shrinking {
    accepted: Program,
    current: Program,
    candidate: usize,
}

impl Shrinking {
    fn next(&mut self) -> bool {
        match self.accepted.smaller(self.candidate) {
            Some(p) => {
                self.candidate += 1;
                self.current = p;
                true
            }
            None => {
                self.current = self.accepted.clone();
                false
            }
        }
    }
}

impl ValueTree for Shrinking {
    type Value = Program;

    fn current(&self) -> Program {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.accepted = self.current.clone();
        self.candidate = 0;
        self.next()
    }

    fn complicate(&mut self) -> bool {
        self.next()
    }
}
