//! Lint: defects that follow from the semantics of the compiled term.
//!
//! Entry points: [`lint`] for something compiled, [`lint_bytes`] for a file, [`lint_among`] for a file of a
//! project.
//!
//! Invariant: a rule reads the core term and the front end's [`Facts`], never the
//! source text. What a rule means is one line of semantics, [`Rule::meaning`].
//! Invariant: codes are stable. The code of a removed rule is not used again.
//! Invariant: each rule's page in `docs/rules` holds a wrong and a right example, and is its test.

mod decision;
mod file;
mod framework_use;
mod joint;
pub mod paths;
mod repair;
pub mod rules;
mod suppress;
mod tools;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_code;
#[cfg(test)]
mod tests_default;
#[cfg(test)]
mod tests_mcp;
#[cfg(test)]
mod tests_seen;
#[cfg(test)]
mod tests_uses;

pub use file::{MODULE, Outcome, Report, Skip, is_test, lint_among, lint_bytes};
pub use framework_use::concerns as uses_framework;
pub use joint::{MAX_MODULES, ProjectCode};
pub use rules::{RULES, rule};
pub use suppress::{Day, EXPLANATIONS, Suppressions};

use analysis::cost::{self, CostBound};
use core_ir::{Code, TermId};
use diagnostics::report::RuleInfo;
use diagnostics::{Applicability, Diagnostic, Fix, Level, Span};
use frontend_kit::doc::Node;
use frontend_kit::{Compiled, Facts, File, Project, Server, Unit, Versions, Words};
use paths::Loop;
use std::cell::OnceCell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// A rule.
pub struct Rule {
    /// Its stable code, such as `L004a`.
    pub code: &'static str,
    /// Its name, which reads well after "allow": `vacuous-loop`.
    pub name: &'static str,
    /// Severity of the rule's findings, unless a finding sets its own.
    pub level: Level,
    /// The defect in one line of semantics.
    pub meaning: &'static str,
    /// Its page: what, why, a wrong and a right example. Empty in a module of WebAssembly.
    pub docs: &'static str,
    /// Reports its findings.
    pub(crate) check: Check,
}

/// Input of a rule's check.
pub(crate) enum Check {
    /// Each runnable term.
    Term(fn(&Rule, &Context<'_>, &mut Vec<Diagnostic>)),
    /// The file, for what does not become part of a term.
    File(fn(&Rule, &FileContext<'_>, &mut Vec<Diagnostic>)),
    /// Each use of a framework that goes wrong, in a module of Python.
    Use(fn(&Rule, &framework_use::Misuse) -> Option<Diagnostic>),
}

impl Rule {
    /// A finding of this rule at its own level.
    pub(crate) fn finding(&self, message: impl Into<String>, span: Span) -> Diagnostic {
        let mut d = Diagnostic::new(self.level, self.code, message, span);
        d.meaning = Some(self.meaning);
        d
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.name)
    }
}

/// Input of a rule about terms: one runnable term.
pub(crate) struct Context<'a> {
    pub compiled: &'a Compiled,
    pub unit: &'a Unit,
    /// Thresholds of rules.
    pub config: &'a Config,
    origin: Origin,
    known_tools: &'a tools::KnownTools<'a>,
    loops: OnceCell<Vec<Loop>>,
    cost: OnceCell<CostBound>,
}

/// Origin of the terms: code or configuration, test or program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Origin {
    /// A module of Python, in which other code may supply what is missing here.
    code: bool,
    /// A file of tests, of which all findings are lowered together: see `file::in_test`.
    test: bool,
}

impl Origin {
    fn of(file: &File) -> Origin {
        Origin { code: file.python.is_some(), test: is_test(&file.path) }
    }
}

impl<'a> Context<'a> {
    fn new(
        compiled: &'a Compiled,
        unit: &'a Unit,
        config: &'a Config,
        origin: Origin,
        known_tools: &'a tools::KnownTools<'a>,
    ) -> Self {
        let (loops, cost) = (OnceCell::new(), OnceCell::new());
        Context { compiled, unit, config, origin, known_tools, loops, cost }
    }

    /// Returns what is known of a tool of the unit.
    pub fn facts(&self, tool: &core_ir::ToolDecl) -> tool_facts::ToolFacts {
        self.known_tools.of(tool)
    }

    /// Lowers a finding in code to a level.
    pub fn at_most_in_code(&self, mut d: Diagnostic, level: Level) -> Diagnostic {
        if self.origin.code {
            d.level = d.level.min(level);
        }
        d
    }

    /// Makes a finding undecided that holds unless code which is not seen decides otherwise, and says why.
    /// Only code does that: what a configuration says, it says.
    pub fn unless_code(&self, mut d: Diagnostic, why: &str) -> Diagnostic {
        if self.origin == (Origin { code: true, test: false }) && d.level > Level::Unknown {
            d.level = Level::Unknown;
            d.help.push(why.to_string());
        }
        d
    }

    /// The term.
    pub fn code(&self) -> &'a Code {
        &self.unit.code
    }

    /// Its fixpoints.
    pub fn loops(&self) -> &[Loop] {
        self.loops.get_or_init(|| paths::loops(self.code()))
    }

    /// Returns the cost bound of a run.
    pub fn cost(&self) -> &CostBound {
        self.cost.get_or_init(|| cost::bound(&self.unit.code, true))
    }
}

/// The replacement of a part of a text at a place, if the place holds the text as it is, in quotes or
/// without.
pub(crate) fn replace(
    text: &str,
    at: Span,
    part: std::ops::Range<usize>,
    by: &str,
    applicability: Applicability,
) -> Option<Fix> {
    let quotes = (at.end - at.start).checked_sub(u32::try_from(text.len()).ok()?)?;
    // Anything else has escapes, or is folded over lines.
    let start = at.start + [0, 1].get(usize::from(quotes == 2)).filter(|_| quotes == 0 || quotes == 2)?;
    let (from, to) = (start + part.start as u32, start + part.end as u32);
    let span = Span { start: from, end: to, ..at };
    Some(Fix { span, replacement: by.to_string(), applicability })
}

/// A term and everything in it.
pub(crate) fn below(code: &Code, root: TermId) -> impl Iterator<Item = TermId> {
    let mut left = vec![root];
    std::iter::from_fn(move || {
        let id = left.pop()?;
        left.extend(code.term(id).children());
        Some(id)
    })
}

/// Input of a rule about files.
pub(crate) struct FileContext<'a> {
    pub file: &'a File,
    /// The servers of tools that it lists.
    pub servers: Vec<Server<'a>>,
    /// The texts of its documents. Several rules look at all of them.
    texts: Vec<(&'a str, Node<'a>)>,
}

impl<'a> FileContext<'a> {
    fn new(file: &'a File, versions: &Versions) -> Self {
        let mut texts: Vec<_> = file.documents.iter().flat_map(|d| d.root().texts()).collect();
        // They come last first; an argument stands after its option.
        texts.reverse();
        FileContext { file, servers: frontend_kit::servers(file, versions), texts }
    }

    /// Every text and number with the key it stands under and its place, each once however many aliases it
    /// has; of a module of Python, what [`python::Source::texts`] gives.
    pub fn texts(&self, found: &mut dyn FnMut(&str, &str, Span)) {
        if let Some(module) = &self.file.python {
            module.texts(found);
        }
        for (key, node) in &self.texts {
            found(key, node.text().unwrap_or_default(), node.span());
        }
    }
}

/// Which findings are wanted, and how serious they are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Only codes that begin with one of these; all if there are none. `L004` selects `L004a` too.
    pub select: Vec<String>,
    /// No codes that begin with one of these.
    pub ignore: Vec<String>,
    /// Nothing below this level.
    pub level: Level,
    /// Other levels for codes that begin so; the longest beginning counts, of two equal ones the later.
    pub levels: Vec<(String, Level)>,
    /// Number of model calls above which L018 reports a run; `None` disables the rule.
    pub most_model_calls: Option<u64>,
    /// Largest default of a framework that L017 reports at level info. A larger one, or none, is a warning.
    pub most_default_rounds: u64,
    /// Today, for suppressions that hold until a date; without it, none has expired.
    pub today: Option<Day>,
}

impl Default for Config {
    /// Everything but level info.
    fn default() -> Self {
        Config {
            select: Vec::new(),
            ignore: Vec::new(),
            level: Level::Unknown,
            levels: Vec::new(),
            most_model_calls: Some(Config::MAX_MODEL_CALLS),
            most_default_rounds: Config::MAX_DEFAULT_ROUNDS,
            today: None,
        }
    }
}

impl Config {
    /// Default limit of model calls for L018.
    pub const MAX_MODEL_CALLS: u64 = 1_000;

    /// Default of [`Config::most_default_rounds`]. The agents of most frameworks stop after 10 to 40 rounds;
    /// those that set hundreds or thousands mean a guard against endless loops, not a budget.
    pub const MAX_DEFAULT_ROUNDS: u64 = 100;

    /// Returns true if a finding is wanted.
    pub fn wants(&self, d: &Diagnostic) -> bool {
        d.level >= self.level
            && (self.select.is_empty() || self.select.iter().any(|s| d.code.starts_with(s.as_str())))
            && !self.ignore.iter().any(|s| d.code.starts_with(s.as_str()))
    }

    /// Gives the findings the levels that are set for them and keeps those that are wanted. What could not be
    /// decided stays undecided.
    pub fn filter(&self, found: &mut Vec<Diagnostic>) {
        for d in found.iter_mut().filter(|d| d.level != Level::Unknown) {
            let set = self.levels.iter().filter(|(code, _)| d.code.starts_with(code.as_str()));
            if let Some((_, level)) = set.max_by_key(|(code, _)| code.len()) {
                d.level = *level;
            }
        }
        found.retain(|d| self.wants(d));
    }
}

/// Returns a description of every code that lint reports, in order of the codes.
pub fn codes() -> Vec<RuleInfo> {
    let rules =
        RULES.iter().map(|r| RuleInfo { code: r.code, name: r.name, summary: r.meaning, text: r.docs });
    let others = frontend_kit::codes::EXPLANATIONS.iter().chain(EXPLANATIONS);
    let others = others.map(|e| RuleInfo { code: e.code, name: e.title, summary: e.title, text: e.text });
    let mut all: Vec<RuleInfo> = rules.chain(others).collect();
    all.sort_by_key(|r| r.code);
    all
}

/// All findings about what was compiled, those of the front end included, in the order of their
/// places. A part that stands in several terms (an agent with two tasks) is reported once.
///
/// # Examples
/// ```
/// use lint::{Config, lint};
/// use frontend_kit::{File, Project, doc::Limits};
/// use frontends::compile;
/// let text = "agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\nreact: {maxSteps: 0}\n".into();
/// let file = File::read(diagnostics::FileId(0), "a.yaml", &text, &Limits::default());
/// let compiled = compile(&Project { files: vec![file], ..Project::default() }, 0).unwrap();
/// assert_eq!(lint(&compiled, &Config::default())[0].code, "L003");
/// ```
pub fn lint(compiled: &Compiled, config: &Config) -> Vec<Diagnostic> {
    let mut found = all(compiled, None, config);
    config.filter(&mut found);
    found
}

/// Codes of which all findings of one file that are about the same have one cause: a framework's default is
/// the same for all agents, and who pins no server pins none.
const FOLDED: &[&str] = &["L017", "S006"];

/// Cause of a finding, if findings of its code that are about the same have one cause.
pub type Cause = (&'static str, Level, String);

/// Returns the cause that a finding shares with others, in its file and in others of the project.
///
/// # Examples
/// ```
/// use lint::cause;
/// use diagnostics::Diagnostic;
/// let of = |code, about| cause(&Diagnostic::warn(code, "", None).about(about));
/// assert!(of("L017", "25 steps").is_some() && of("L017", "25 steps") == of("L017", "25 steps"));
/// assert!(of("L017", "25 steps") != of("L017", "10 turns") && of("L001", "").is_none());
/// ```
pub fn cause(d: &Diagnostic) -> Option<Cause> {
    FOLDED.contains(&d.code).then(|| (d.code, d.level, d.about.clone()))
}

/// Merges the findings of a file that have one cause: the first stays and names the others. For reports only;
/// repairs, suppressions and baselines need each finding.
///
/// # Examples
/// ```
/// use lint::fold;
/// use diagnostics::Diagnostic;
/// let of = |agent: &str| {
///     let mut d = Diagnostic::warn("L017", "its bound is a default", None);
///     d.agent = Some(agent.into());
///     d
/// };
/// let mut found = vec![of("a"), of("b"), of("c")];
/// fold(&mut found);
/// assert_eq!((found.len(), &*found[0].help[0]), (1, "the same holds for 2 more in this file: `b`, `c`"));
/// ```
pub fn fold(findings: &mut Vec<Diagnostic>) {
    const MAX_NAMES: usize = 8;
    let mut first: HashMap<Cause, usize> = HashMap::new();
    let mut more: HashMap<usize, (usize, Vec<String>)> = HashMap::new();
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(findings.len());
    for d in findings.drain(..) {
        if let Some(key) = cause(&d) {
            if let Some(i) = first.get(&key) {
                let (count, names) = more.entry(*i).or_default();
                *count += 1;
                names.extend(d.agent.filter(|a| !names.contains(a)));
                continue;
            }
            first.insert(key, kept.len());
        }
        kept.push(d);
    }
    for (i, (count, names)) in more {
        let mut shown: Vec<String> =
            names.iter().take(MAX_NAMES).map(|n| format!("`{}`", diagnostics::clip(n))).collect();
        if names.len() > MAX_NAMES {
            shown.push("…".into());
        }
        let names = if shown.is_empty() { String::new() } else { format!(": {}", shown.join(", ")) };
        kept[i].help.push(format!("the same holds for {count} more in this file{names}"));
    }
    *findings = kept;
}

/// A language of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The surface language, `.agent`.
    Agent,
    /// The calculus, `.lam`.
    Lam,
}

impl Language {
    /// The name used in reports where configurations have that of their framework.
    pub fn name(self) -> &'static str {
        match self {
            Language::Agent => "agent",
            Language::Lam => "lam",
        }
    }
}

/// Findings of the rules about terms in programs of this project's own languages, where what is named, typed
/// or supplied by settings is checked before: no rule about those is applied, nor L001 where every task has
/// to say what it is.
pub fn lint_programs(language: Language, units: Vec<Unit>, config: &Config) -> Vec<Diagnostic> {
    let checked: &[&str] = match language {
        Language::Agent => &["L002", "L025", "L001"],
        Language::Lam => &["L002", "L025"],
    };
    let words = Words { bound: "state it: `max_steps: n` of the agent", ..Words::default() };
    let facts = Facts { written_term: language == Language::Lam, words, ..Facts::default() };
    let compiled = Compiled { framework: language.name(), units, facts, diagnostics: Vec::new() };
    let mut found = all(&compiled, None, config);
    found.retain(|d| !checked.contains(&d.code));
    config.filter(&mut found);
    found
}

/// All findings, of every level; those about the file itself, the first of its project, if it is there.
fn all(compiled: &Compiled, project: Option<&Project>, config: &Config) -> Vec<Diagnostic> {
    let file = project.and_then(|p| Some((p.files.first()?, &p.versions)));
    let known_tools = tools::KnownTools::new(compiled, project);
    // The findings of rules; the front end's are as it says them.
    let mut found: Vec<Diagnostic> = Vec::new();
    let origin = file.map(|(file, _)| Origin::of(file)).unwrap_or_default();
    for unit in &compiled.units {
        let context = Context::new(compiled, unit, config, origin, &known_tools);
        for rule in RULES {
            let Check::Term(check) = rule.check else { continue };
            let from = found.len();
            check(rule, &context, &mut found);
            for d in &mut found[from..] {
                let agent = d.span.and_then(|s| unit.agent_at(s)).map(|a| &a.name);
                d.agent = Some(agent.unwrap_or(&unit.name).clone());
            }
        }
    }
    if let Some((file, versions)) = file {
        let context = FileContext::new(file, versions);
        for rule in RULES {
            let Check::File(check) = rule.check else { continue };
            let from = found.len();
            check(rule, &context, &mut found);
            for d in &mut found[from..] {
                let agent = d.span.and_then(|s| compiled.units.iter().find_map(|u| u.agent_at(s)));
                let server =
                    |s: Span| context.servers.iter().find(|v| v.span.start <= s.start && s.end <= v.span.end);
                let server = d.span.and_then(server).map(|v| v.name.to_string());
                d.agent = agent.map(|a| a.name.clone()).or(server);
            }
        }
    }
    once(&mut found);
    repair::settle(file.map(|(f, _)| f), &compiled.facts.words, &mut found);
    let mut seen = HashSet::new();
    let front = compiled.diagnostics.iter().filter(|d| seen.insert(*d)).cloned();
    found.splice(0..0, front).for_each(drop);
    for d in &mut found {
        d.framework = Some(compiled.framework);
    }
    diagnostics::sort(&mut found);
    found
}

/// Keeps one finding of those that have the same code and place and are about the same, the most serious: a
/// part that stands in several terms may be excused in some of them.
fn once(found: &mut Vec<Diagnostic>) {
    let mut first: HashMap<(&'static str, Option<Span>, String), usize> = HashMap::new();
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(found.len());
    for d in found.drain(..) {
        match first.entry((d.code, d.span, d.about.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(kept.len());
                kept.push(d);
            }
            Entry::Occupied(entry) if d.level > kept[*entry.get()].level => kept[*entry.get()] = d,
            Entry::Occupied(_) => {}
        }
    }
    *found = kept;
}
