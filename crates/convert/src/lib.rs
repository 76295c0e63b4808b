//! Programs written down in other formats, so that they compile to the same term again.
//!
//! Entry point: [`convert`].
//!
//! Invariant: what is given back as text was read again and compared: it means the same term. Names of tasks and agents, which
//! only scripts and traces show, may differ where the source has none.
//! Invariant: what a target cannot say is a diagnostic with the place in the source, and no text is given then.
//! Invariant: pure, and total on every term.

pub mod codes;
mod same;
mod spec;
mod surface;

use core_ir::{Code, Style, print_with};
use diagnostics::{Diagnostic, FileId, Span, has_errors};
use std::sync::Arc;

/// A format that programs can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The surface language.
    Agent,
    /// Open Agent Spec, as JSON.
    AgentSpec,
    /// The calculus.
    Lam,
}

impl Target {
    /// All of them, with their names on the command line.
    pub const ALL: [(&str, Target); 3] =
        [("agent", Target::Agent), ("agentspec", Target::AgentSpec), ("lam", Target::Lam)];

    /// What it is called in messages.
    fn describe(self) -> &'static str {
        match self {
            Target::Agent => "an `.agent` program",
            Target::AgentSpec => "Open Agent Spec",
            Target::Lam => "`.lam`",
        }
    }
}

/// What became of a program.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The program in the other format, if it can say it.
    pub text: Option<String>,
    /// What it cannot say, and what only Entail reads of what it says.
    pub found: Vec<Diagnostic>,
}

/// Writes a term as a program of another format.
///
/// # Examples
/// ```
/// use convert::{Target, convert};
/// use core_ir::{Builder, Globals, ModelParams, Term};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let prompt = b.lit("You sort mail.", at);
/// let oracle = b.add(Term::Llm(prompt, ModelParams { model: Some("m".into()), ..ModelParams::default() }.into()), at);
/// let code = b.finish(oracle, &Globals::none()).unwrap();
/// let text = convert(&code.into(), "sorter", Target::Lam).text.unwrap();
/// assert_eq!(text, "llm \"You sort mail.\" {model: \"m\"}\n");
/// ```
pub fn convert(code: &Arc<Code>, name: &str, target: Target) -> Converted {
    let (text, mut found) = match target {
        Target::Lam => (print_with(code, Style::TEXT).text + "\n", Vec::new()),
        Target::AgentSpec => spec::write(code, name),
        Target::Agent => surface::write(code, name),
    };
    found.extend(twice(code));
    if has_errors(&found) {
        return Converted { text: None, found };
    }
    let same = match target {
        Target::Lam => read_lam(&text).is_some_and(|again| again == **code),
        Target::AgentSpec => read_spec(&text).is_some_and(|again| same::as_unit(code, &again)),
        Target::Agent => read_agent(&text).is_some_and(|again| same::as_pipeline(code, &again)),
    };
    if !same {
        let message = format!("written as {}, this would not mean the same", target.describe());
        found.push(cannot(message, code.span(code.root())));
        return Converted { text: None, found };
    }
    Converted { text: Some(text), found }
}

/// Tools of one name that are not the same tool: no target can tell them apart, nor can whoever carries them out.
fn twice(code: &Code) -> Vec<Diagnostic> {
    let twin = |(i, t): (usize, &Arc<core_ir::ToolDecl>)| {
        let earlier = code.tools.iter().take(i).any(|other| other.name == t.name);
        let message = format!("two different tools are called `{}`", diagnostics::clip(&t.name));
        earlier
            .then(|| Diagnostic::error(codes::CANNOT, message, t.span).help("give one of them another name"))
    };
    code.tools.iter().enumerate().filter_map(twin).collect()
}

/// The report of something that a target cannot say.
fn cannot(message: String, at: Span) -> Diagnostic {
    Diagnostic::error(codes::CANNOT, message, at)
        .help("`--to lam` says everything; `use crew` makes a task of it in an `.agent` program as it is")
}

fn read_lam(text: &str) -> Option<Code> {
    let parsed = frontend::calculus::compile(FileId(0), text);
    parsed.code.filter(|_| !has_errors(&parsed.diagnostics))
}

fn read_spec(text: &str) -> Option<Arc<Code>> {
    use frontend::{File, Project};
    let file = File::read(FileId(0), "converted.json", &text.into(), &frontend::doc::Limits::default());
    let project = Project { files: vec![file], ..Project::default() };
    let compiled = frontend::compile(&project, 0)?;
    match &compiled.units[..] {
        [unit] if !has_errors(&compiled.diagnostics) => Some(unit.code.clone()),
        _ => None,
    }
}

fn read_agent(text: &str) -> Option<Code> {
    let (module, found) = frontend::surface::check(FileId(0), text);
    let module = module.filter(|_| !has_errors(&found))?;
    module.lower(module.default_entry()?).ok()
}
