//! Programs written down in other formats, so that they compile to the same term again.
//!
//! Entry point: [`convert`].
//!
//! Invariant: what is given back as text was read again and compared: it means the same term. Names of tasks
//! and agents, which only scripts and traces show, may differ where the source has none.
//! Invariant: what a target cannot say is a diagnostic with the place in the source, and no text is given
//! then.
//! Invariant: pure, and total on every term.

pub mod codes;
mod diff;
mod equivalence;
mod spec;
mod surface;
mod text_loop;

use core_ir::{Builder, Code, Data, Globals, Style, ToolDecl, print_with};
use diagnostics::{Diagnostic, FileId, Span, has_errors};
use diff::Difference;
use std::collections::HashSet;
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

    /// Returns its name for messages.
    fn describe(self) -> &'static str {
        match self {
            Target::Agent => "an `.agent` program",
            Target::AgentSpec => "Open Agent Spec",
            Target::Lam => "`.lam`",
        }
    }
}

/// Result of a conversion.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The program in the other format, if it can say it.
    pub text: Option<String>,
    /// Parts that the format can't express, and parts that only Entail reads.
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
/// let params = ModelParams { model: Some("m".into()), ..ModelParams::default() };
/// let oracle = b.add(Term::Llm(prompt, params.into()), at);
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
        Target::Lam => read_lam(&text).and_then(|again| match again == **code {
            true => Ok(()),
            false => Err(diff::first(code, &again)),
        }),
        Target::AgentSpec => read_spec(&text).and_then(|again| equivalence::as_unit(code, &again)),
        Target::Agent => read_agent(&text).and_then(|again| equivalence::as_pipeline(code, &again)),
    };
    if let Err(Difference { what, at }) = same {
        let message = format!("the program would change when written as {}: {what}", target.describe());
        let at = if at.file == FileId(0) && at.end == 0 { code.span(code.root()) } else { at };
        found.push(cannot(message, at));
        return Converted { text: None, found };
    }
    Converted { text: Some(text), found }
}

/// Writes tools as declarations of the language `.agent`, one a line, with their descriptions above.
///
/// A type that the language can't express is wider: a text in place of an enumeration, anything in place
/// of a record. A tool that it can't declare at all is a finding.
///
/// # Examples
/// ```
/// use core_ir::ToolDecl;
/// use diagnostics::{FileId, Span};
/// let tool = ToolDecl::unknown("search".into(), Span { file: FileId(0), start: 0, end: 0 });
/// let (text, found) = convert::declarations(&[tool]);
/// assert_eq!(text, "tool search(input: Any) -> Any writes untrusted {}\n");
/// assert!(found.is_empty());
/// ```
pub fn declarations(tools: &[ToolDecl]) -> (String, Vec<Diagnostic>) {
    let mut b = Builder::new();
    let tools: Vec<_> = tools.iter().map(|t| (b.tool(t.clone()), t.clone())).collect();
    let at = Span { file: FileId(0), start: 0, end: 0 };
    let root = b.lit(Data::Null, at);
    match b.finish(root, &Globals::none()) {
        Ok(code) => surface::declarations(&code, &tools),
        Err(e) => (String::new(), vec![cannot(format!("tools can't be declared: {e:?}"), at)]),
    }
}

/// Returns the first reason why the output could not be parsed.
fn unread(found: &[Diagnostic]) -> Difference {
    let first = found.iter().find(|d| d.level == diagnostics::Level::Error);
    let why = first.map_or_else(|| "it defines no agent and no pipeline".to_string(), |d| d.message.clone());
    Difference { what: why, at: Span { file: FileId(0), start: 0, end: 0 } }
}

/// Tools of one name that are not the same tool: no target can tell them apart, nor can whoever carries them
/// out.
fn twice(code: &Code) -> Vec<Diagnostic> {
    let mut seen = HashSet::new();
    let twins = code.tools.iter().filter(|t| !seen.insert(&t.name));
    let twice = |t: &Arc<core_ir::ToolDecl>| {
        let message = format!("two different tools are called `{}`", diagnostics::clip(&t.name));
        Diagnostic::error(codes::CANNOT, message, t.span).help("give one of them another name")
    };
    twins.map(twice).collect()
}

/// The report of something that a target cannot say.
fn cannot(message: String, at: Span) -> Diagnostic {
    Diagnostic::error(codes::CANNOT, message, at)
        .help("write it with `--to lam`, which can express every program, or import it into an `.agent` program with `use`")
}

fn read_lam(text: &str) -> Result<Code, Difference> {
    let parsed = agentlang::calculus::compile(FileId(0), text);
    parsed.code.filter(|_| !has_errors(&parsed.diagnostics)).ok_or_else(|| unread(&parsed.diagnostics))
}

fn read_spec(text: &str) -> Result<Arc<Code>, Difference> {
    use frontend_kit::{File, Project};
    let file = File::read(FileId(0), "converted.json", &text.into(), &frontend_kit::doc::Limits::default());
    let project = Project { files: vec![file], ..Project::default() };
    let Some(compiled) = frontends::compile(&project, 0) else { return Err(unread(&[])) };
    match &compiled.units[..] {
        [unit] if !has_errors(&compiled.diagnostics) => Ok(unit.code.clone()),
        _ => Err(unread(&compiled.diagnostics)),
    }
}

fn read_agent(text: &str) -> Result<Code, Difference> {
    let (module, found) = agentlang::check(FileId(0), text);
    let Some(module) = module.filter(|_| !has_errors(&found)) else { return Err(unread(&found)) };
    let Some(entry) = module.default_entry() else { return Err(unread(&[])) };
    module.lower(entry).map_err(|found| unread(&found))
}
