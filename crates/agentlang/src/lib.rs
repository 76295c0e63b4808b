//! Languages of this project: `.agent` programs checked and lowered to core terms, and `.lam` programs with
//! the prelude in scope.
//!
//! Entry points: [`check`] reads and checks a program of one file, [`check_files`] one with imports;
//! [`Module::lower`] makes the term of one of its entry points; [`calculus::compile`] reads `.lam`.
//!
//! Invariant: a program that is accepted lowers without any part left out.
//! Invariant: no file is opened and nothing is run.
//! Invariant: no front end of a framework and no rule is known here. Imported configurations come as units.
//!
//! Source: seed 004 (AgentLang v0); `docs/agentlang.md`.

mod branches;
pub mod calculus;
mod check;
pub mod codes;
mod csv;
mod decls;
mod exits;
mod files;
mod functions;
mod generics;
mod imports;
mod library;
mod lower;
mod mocks;
mod policies;
mod predicate;
mod recursion;
mod rows;
mod scopes;
mod structural;
mod types;
mod workflow;

use core_ir::{Code, Name, ToolDecl, Type};
use diagnostics::{Diagnostic, FileId, Span, has_errors};
use policy::{Policy, PolicyUse};
use std::sync::Arc;
use syntax::agent::ast::{Item, Program};

pub use branches::{BranchId, ProgramBranch, TermBranches};
pub use decls::{Budget, DEFAULT_MAX_STEPS};
pub use files::{Loader, NoFiles, NotImported, PythonModule, WithheldFunction};
pub use functions::{function_names, function_signature};
pub use library::library_text;
pub use mocks::{Answer, Attack, ExpectKind, Expectation, Mock, SnapshotPoint, TestPlan};
pub use rows::{DataSet, ROW, Row, Samples};

/// A program that was read and checked without errors.
#[derive(Debug)]
pub struct Module {
    /// The file that was checked.
    main: FileId,
    files: files::Files,
    /// The items of all files.
    program: Program,
    decls: decls::Decls,
    facts: check::Facts,
    exits: exits::ExitTable,
    entries: Vec<Entry>,
    mocks: Vec<mocks::Made>,
    branches: Vec<ProgramBranch>,
    conditions: Vec<policies::Condition>,
    /// True if `retries` repeats calls that timed out. The default is false: a caller that wants it must know
    /// that there is time.
    pub retry_timeouts: bool,
    world: lower::World,
}

/// Kind of an entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A pipeline (or workflow).
    Pipeline,
    /// A test block.
    Test,
}

/// Something of a program that can be run.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name of the pipeline or test.
    pub name: String,
    /// Kind of the entry point.
    pub kind: EntryKind,
    /// The record that it takes, one field for each parameter in order.
    pub input: Type,
    /// Type of its result. For a test it is `null`, or a record of its snapshots.
    pub result: Type,
    /// Place of its declaration.
    pub span: Span,
    item: usize,
}

impl Entry {
    /// The parameters with their types, in order.
    pub fn params(&self) -> &[(Name, Type)] {
        match &self.input {
            Type::Record(fields) => fields,
            // The input is made as a record.
            _ => &[],
        }
    }
}

/// Reads and checks a program. The module is there if nothing of level error was found.
///
/// # Examples
/// ```
/// let mut sources = diagnostics::Sources::new();
/// let text = "pipeline greet(name: String) -> String { return \"Hello, \" + name; }";
/// let file = sources.add("greet.agent", text);
/// let (module, found) = agentlang::check(file, text);
/// assert!(found.is_empty());
/// let module = module.unwrap();
/// let entry = module.default_entry().unwrap();
/// assert_eq!(entry.name, "greet");
/// assert!(module.lower(entry).is_ok());
/// ```
pub fn check(file: FileId, text: &str) -> (Option<Module>, Vec<Diagnostic>) {
    check_files(file, text, &mut NoFiles)
}

/// [`check`] for a program that may import others. What an imported file declares is part of the program; its
/// tests are not.
///
/// # Examples
/// ```
/// use diagnostics::{FileId, Sources};
/// use agentlang::{Loader, check_files};
/// struct Library(Sources);
/// impl Loader for Library {
///     fn load(&mut self, _: FileId, path: &str) -> Result<(FileId, std::sync::Arc<str>), String> {
///         let text = "enum Tone { warm, cold }";
///         Ok((self.0.add(path, text), text.into()))
///     }
/// }
/// let mut library = Library(Sources::new());
/// let text = "use \"tones.agent\"; pipeline p() -> Tone { return \"warm\"; }";
/// let file = library.0.add("main.agent", text);
/// assert!(check_files(file, text, &mut library).0.is_some());
/// ```
pub fn check_files(file: FileId, text: &str, loader: &mut dyn Loader) -> (Option<Module>, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let (mut program, files) = files::collect(file, text, loader, &mut found);
    let of_names = found.len();
    let declared = program.items.len();
    let mocks = mocks::expand(file, &mut program);
    let conditions = policies::expand(&mut program);
    let branches = branches::of(&program.items[..declared]);
    let decls = decls::Decls::collect(&program, &files, &mut found);
    mocks::check(file, &program, &decls, &files, &mut found);
    rows::check(file, &program, &decls, &mut found);
    policies::table(&program, &decls, &mut |_| None, &mut found);
    imports::check(&program, &files, &decls, &mut found);
    for item in &mut program.items {
        if let Item::Workflow(w) = item {
            *item = Item::Pipeline(workflow::pipeline(w, &decls, files.scopes(), &mut found));
        }
    }
    let exits = exits::ExitTable::of(&program);
    let facts = check::check(&program, &decls, &exits, files.scopes(), &mut found);
    let mut after = found.split_off(of_names);
    after.retain(|d| !files.scopes().repeats(d));
    found.extend(after);
    found.iter_mut().for_each(|d| files.scopes().shown(d));
    found.retain(|d| !(codes::is_unknown_name(d.code) && d.span.is_some_and(|place| files.is_unread(place))));
    diagnostics::sort(&mut found);
    // Imported files come after it.
    let (mut found, imported): (Vec<Diagnostic>, Vec<Diagnostic>) =
        found.into_iter().partition(|d| d.span.is_none_or(|place| place.file == file));
    found.extend(imported);
    // What a workflow abbreviates may repeat a mistake.
    found.dedup();
    if has_errors(&found) {
        return (None, found);
    }
    let entries = entries(file, &program.items[..declared], &decls);
    let module = Module {
        main: file,
        files,
        program,
        decls,
        facts,
        exits,
        entries,
        mocks,
        branches,
        conditions,
        retry_timeouts: false,
        world: lower::World::default(),
    };
    (Some(module), found)
}

fn entries(main: FileId, items: &[Item], decls: &decls::Decls) -> Vec<Entry> {
    let mut out = Vec::new();
    for (item, declared) in items.iter().enumerate() {
        match declared {
            // A file behind a name, or of which only some names are taken, gives nothing to run.
            Item::Pipeline(p) if scopes::is_own(&p.name.text) => {
                let Some(s) = decls.callables.get(&p.name.text) else { continue };
                let fields = s.params.iter().map(|q| (Name::from(q.name.text.as_str()), q.input()));
                out.push(Entry {
                    name: p.name.text.clone(),
                    kind: EntryKind::Pipeline,
                    input: Type::record(fields.collect::<Vec<_>>()),
                    result: s.result.clone(),
                    span: p.name.span,
                    item,
                });
            }
            Item::Test(t) if t.span.file == main => out.push(Entry {
                name: t.name.value.clone(),
                kind: EntryKind::Test,
                input: rows::input_of(t, decls),
                result: if t.snapshots.is_empty() { Type::Null } else { Type::Record([].into()) },
                span: t.name.span,
                item,
            }),
            _ => {}
        }
    }
    out.sort_by_key(|e| e.span.file != main);
    out
}

impl Module {
    /// The pipelines and tests, in the order of the text; behind them the pipelines of imported files.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The variables that `let` binds with the types that were found for them, as the language writes them.
    /// Bodies of loops may be looked at more than once; each variable is listed once.
    pub fn variables(&self) -> Vec<(Span, String)> {
        let shown = |(at, ty): &(Span, Type)| (*at, self.files.scopes().show(&types::show(ty), at.file));
        let mut all: Vec<(Span, String)> = self.facts.variables.iter().map(shown).collect();
        all.sort_by_key(|(at, _)| (at.file, at.start));
        all.dedup_by_key(|(at, _)| *at);
        all
    }

    /// The pipeline of a name.
    pub fn pipeline(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.kind == EntryKind::Pipeline && e.name == name)
    }

    /// The pipeline of the file itself to run if none is named: the only one; or `main`; or the only one that
    /// no other calls.
    pub fn default_entry(&self) -> Option<&Entry> {
        let own = |e: &&Entry| e.kind == EntryKind::Pipeline && e.span.file == self.main;
        let pipelines = || self.entries.iter().filter(own);
        if let Some(main) = pipelines().find(|e| e.name == "main") {
            return Some(main);
        }
        let mut called = std::collections::HashSet::new();
        for item in &self.program.items {
            if let Item::Pipeline(p) = item {
                let runs = check::runs_in(&p.body).into_iter().map(|r| r.target.text.as_str());
                called.extend(runs.filter(|target| *target != p.name.text));
            }
        }
        // Agents ask pipelines, too.
        called.extend(self.decls.agents.values().flat_map(|a| a.offers.iter().map(|o| &*o.name.text)));
        let mut outermost = pipelines().filter(|e| !called.contains(&*e.name));
        match (outermost.next(), outermost.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }

    /// The agents that have a budget. Their model calls carry it, too (`extra`: `agent`, and `budget` with
    /// `usd` and `calls`), and whoever answers keeps count: all that an agent does in a run counts together.
    pub fn budgets(&self) -> Vec<(&str, &Budget)> {
        let all = self.decls.agents.iter().filter_map(|(n, a)| Some((n.as_str(), a.budget.as_ref()?)));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(n, _)| *n);
        all
    }

    /// Returns the references to policies. A runner has to find and apply each, or refuse the run.
    pub fn policies(&self) -> Vec<PolicyUse> {
        let signatures = self.decls.tools.values().chain(self.decls.callables.values());
        let mut out: Vec<PolicyUse> = signatures
            .flat_map(|s| {
                let tool = self.decls.handler_name(s);
                let whole = s.flow.policies.iter().map(|p| (None, p));
                let parts = s
                    .params
                    .iter()
                    .flat_map(|q| q.flow.policies.iter().map(|p| (Some(q.name.text.clone()), p)));
                let make = move |(param, p): (Option<String>, &syntax::agent::ast::Name)| PolicyUse {
                    tool: tool.clone(),
                    param,
                    policy: p.text.clone(),
                    span: p.span,
                };
                whole.chain(parts).map(make).collect::<Vec<_>>()
            })
            .collect();
        out.sort_by_key(|u| u.span);
        out
    }

    /// Tables of a policy file for the blocks `policy { … }` of the program; `None` without a block. The
    /// values are checked by [`Policy::of_block`] and [`Policy::parse_with`].
    ///
    /// # Errors
    /// A condition would be a term that is nested too deep (`A081`), or one thing is said twice.
    ///
    /// # Examples
    /// ```
    /// let mut sources = diagnostics::Sources::new();
    /// let text = "tool pay(amount: Number) -> String writes {}\n\
    ///     policy { tool pay { approve when amount > 50; } }";
    /// let file = sources.add("pay.agent", text);
    /// let (module, found) = agentlang::check(file, text);
    /// assert!(found.is_empty());
    /// let block = module.unwrap().policy_block().unwrap().unwrap();
    /// let policy = policy::Policy::of_block(file, &block).unwrap();
    /// assert!(policy.has_block());
    /// ```
    pub fn policy_block(&self) -> Result<Option<policy::tree::Table>, Vec<Diagnostic>> {
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        let mut condition = |rule: &syntax::agent::ast::PolicyRule| {
            let condition = policies::of_rule(&self.conditions, rule)?;
            match lower::condition(&self.checked(), condition.item) {
                Ok(code) => Some(code),
                Err(more) => {
                    failed.extend(more);
                    None
                }
            }
        };
        let table = policies::table(&self.program, &self.decls, &mut condition, &mut found);
        found.extend(failed);
        found.iter_mut().for_each(|d| self.files.scopes().shown(d));
        if has_errors(&found) { Err(found) } else { Ok(table) }
    }

    /// Has [`Module::lower`] make terms for runs under a policy: its lattice, and what it says of results,
    /// decide at which labels the errors of a `try` or a repeated call arrive. The policy itself is applied
    /// to the terms.
    pub fn assume(&mut self, policy: &Policy) {
        let uses = self.policies();
        let names = self.decls.tools.values().chain(self.decls.callables.values());
        let mut world = lower::World { lattice: policy.lattice, ..lower::World::default() };
        for name in names.map(|s| self.decls.handler_name(s)) {
            if policy.bounds(&name, &uses) {
                world.bounds.insert(name.clone());
            }
            let sets: Vec<String> = policy.set_tools(&name, &uses).map(String::from).collect();
            if !sets.is_empty() {
                world.sets.insert(name.clone(), sets);
            }
            if let Some(label) = policy.result_of(&name, &uses) {
                world.results.insert(name, label);
            }
        }
        self.world = world;
    }

    /// The term of an entry point of this module: a function from the record of its inputs (for a test: from
    /// anything) to its result. Inputs and result are checked against their types inside.
    ///
    /// # Errors
    /// The term would be nested too deep (`A081`).
    pub fn lower(&self, entry: &Entry) -> Result<Code, Vec<Diagnostic>> {
        self.lower_with_branches(entry).map(|(code, _)| code)
    }

    /// [`Module::lower`], with the branches of the term that are branches of the program.
    ///
    /// # Errors
    /// The errors of [`Module::lower`].
    ///
    /// # Examples
    /// ```
    /// let mut sources = diagnostics::Sources::new();
    /// let text = "pipeline p(n: Number) -> String { if n > 0 { return \"more\"; } return \"less\"; }";
    /// let file = sources.add("p.agent", text);
    /// let module = agentlang::check(file, text).0.unwrap();
    /// let (_, branches) = module.lower_with_branches(&module.entries()[0]).unwrap();
    /// let mut found: Vec<_> = branches.values().copied().collect();
    /// found.sort();
    /// assert_eq!(found, module.branches().iter().map(|b| b.id).collect::<Vec<_>>());
    /// ```
    pub fn lower_with_branches(&self, entry: &Entry) -> Result<(Code, TermBranches), Vec<Diagnostic>> {
        lower::lower(&self.checked(), entry).map_err(|mut found| {
            found.iter_mut().for_each(|d| self.files.scopes().shown(d));
            found
        })
    }

    /// The branches of the pipelines and `fn`s of all files of the program, in the order of their texts.
    pub fn branches(&self) -> &[ProgramBranch] {
        &self.branches
    }

    /// The declarations of all tools of the program and its imports, whether anything uses them or not.
    pub fn tools(&self) -> Vec<Arc<ToolDecl>> {
        lower::tools(&self.checked())
    }

    fn checked(&self) -> lower::Checked<'_> {
        lower::Checked {
            files: &self.files,
            program: &self.program,
            decls: &self.decls,
            facts: &self.facts,
            exits: &self.exits,
            retry_timeouts: self.retry_timeouts,
            world: &self.world,
        }
    }
}
