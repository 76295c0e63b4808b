//! Checked programs to core terms.
//!
//! A pipeline is a function from the record of its inputs. What a branch or loop binds for the
//! statements after it is its result, so a branch not taken still labels it. A loop is a `fix` over
//! those variables. A statement that may leave its block early (`return`, `break`, `continue`) gives a
//! tag that says how; where only one of its ways goes on, what follows is moved into that way and no
//! tag is needed. Where that would nest too deep, what follows becomes a function of the variables that are
//! bound by then, so that a pipeline may leave early any number of times.
//!
//! Source: seed 004 §3; `docs/calculus.md` §3 for what the terms mean.

mod agents;
mod callables;
mod expr;
mod functions;
mod statements;
mod taint;
mod variables;

use expr::{DONE, result_of};
use taint::Taint;
use variables::{Binder, Mode, Scope, last_reads};

use super::branches::{BranchId, TermBranches};
use super::codes;
use super::decls::{CallableKind, Decls, Param, Signature};
use super::exits::ExitTable;
use super::mocks::name_of;
use super::{Entry, EntryKind, check::Facts, rows::ROW};
use core_ir::{
    BoundOrigin, BuildError, Builder, Code, Data, Globals, IfSugar, LabelSpec, Lattice, LatticeKind, Name,
    Prim, StoreId, Term, TermId, ToolDecl, ToolId, Type,
};
use diagnostics::{Diagnostic, Span};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use syntax::agent::ast::{self, Item, Stmt};

/// Number of further calls that may quote a decoding error to the model.
const REPAIR: u32 = 2;

/// Caller of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Whoever runs the program: nothing is known of the input.
    World,
    /// The program itself, whose calls the checker has looked at.
    Program,
}

/// The parts of a checked program.
pub(super) struct Checked<'a> {
    pub(super) files: &'a super::files::Files,
    pub(super) program: &'a ast::Program,
    pub(super) decls: &'a Decls,
    pub(super) facts: &'a Facts,
    pub(super) exits: &'a ExitTable,
    pub(super) retry_timeouts: bool,
    pub(super) world: &'a World,
}

/// Parts of the run's policy that terms depend on.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) lattice: LatticeKind,
    /// Labels of tool and task results, by handler name, where they differ from the declaration.
    pub(super) results: HashMap<String, LabelSpec>,
    /// The tools and tasks whose bounds are not those that they declare.
    pub(super) bounds: HashSet<String>,
    /// The tools that sets of a tool are read from. A term that has the tool has these, too.
    pub(super) sets: HashMap<String, Vec<String>>,
}

impl Checked<'_> {
    /// Returns an upper bound on the label of a tool's or task's result.
    fn returns(&self, s: &Signature) -> Taint {
        match self.world.results.get(&self.decls.handler_name(s)) {
            Some(spec) => Taint::covering(&mut Lattice::new(self.world.lattice), spec),
            None => Taint::of(&s.flow),
        }
    }
}

/// The term of an entry point: a function from the record of its inputs.
pub(super) fn lower(checked: &Checked<'_>, entry: &Entry) -> Result<(Code, TermBranches), Vec<Diagnostic>> {
    let mut lower = SurfaceLowering::new(checked);
    let root = match (&entry.kind, &checked.program.items.get(entry.item)) {
        (EntryKind::Pipeline, Some(Item::Pipeline(p))) => lower.pipeline(p, Taint::NONE, None, Caller::World),
        (EntryKind::Test, Some(Item::Test(t))) => lower.test(t),
        // Entries are made from these items.
        _ => lower.b.add(Term::Unknown("entry".into()), entry.span),
    };
    lower.finish(root, &entry.name, entry.span)
}

/// The function of a condition of the policy: from the record of the arguments.
pub(super) fn condition(checked: &Checked<'_>, item: usize) -> Result<Code, Vec<Diagnostic>> {
    let Some(Item::Function(p)) = checked.program.items.get(item) else { return Err(Vec::new()) };
    let mut lower = SurfaceLowering::new(checked);
    let root = lower.pipeline(p, Taint::NONE, None, Caller::World);
    lower.finish(root, &p.name.text, p.span).map(|(code, _)| code)
}

/// The declarations of all tools, used or not, in the order of the text.
pub(super) fn tools(checked: &Checked<'_>) -> Vec<Arc<ToolDecl>> {
    let mut all: Vec<&Signature> = checked.decls.tools.values().collect();
    all.sort_by_key(|s| (s.name.span.file.0, s.name.span.start));
    let Some(at) = all.first().map(|s| s.name.span) else { return Vec::new() };
    let mut lower = SurfaceLowering::new(checked);
    for signature in all {
        lower.tool(signature);
    }
    let root = lower.b.lit(Data::Null, at);
    // A literal is never too deep.
    lower.b.finish(root, &Globals::none()).map_or_else(|_| Vec::new(), |code| code.tools.clone())
}

fn failure(error: &BuildError, name: &str) -> Diagnostic {
    match error {
        BuildError::TooDeep(span) => {
            Diagnostic::error(codes::TERM_TOO_DEEP, format!("`{name}` becomes too deep a term here"), *span)
                .help("put a part of it into a pipeline of its own")
        }
        BuildError::Unbound(name, span)
        | BuildError::UnknownKey(name, span)
        | BuildError::NotAFunction(name, span)
        | BuildError::Policy(name, span) => fault(&format!("`{name}` is not resolved"), *span),
        BuildError::Shared(span) => fault("a term is used twice", *span),
        BuildError::Stores(conflict) => frontend_kit::emit::store_conflict(conflict),
    }
}

/// Not the program's fault; said rather than hidden.
fn fault(what: &str, span: Span) -> Diagnostic {
    Diagnostic::error(codes::COMPILER_FAULT, format!("a fault of the compiler: {what}"), span)
        .help("please report it together with the program")
}

/// Statements that remain to be lowered: a slice, and what follows when it is done.
struct Rest<'a> {
    stmts: &'a [Stmt],
    /// Number of innermost binders that end with the slice.
    leave: usize,
    next: Option<&'a Rest<'a>>,
    /// End of the slice's block.
    end: Span,
}

/// Function being lowered.
#[derive(PartialEq, Eq, Hash)]
struct Callable {
    name: String,
    /// The agent that runs it, if it is a task.
    agent: Option<String>,
    /// Upper bounds on the labels of a pipeline's arguments and of the program counter.
    given: Taint,
    pc: Taint,
    /// Maximal depth of a pipeline's recursion, if it is known.
    calls: Option<u64>,
}

struct SurfaceLowering<'a> {
    c: &'a Checked<'a>,
    b: Builder,
    scope: Scope,
    tools: HashMap<(bool, String), ToolId>,
    /// The memories of agents.
    stores: HashMap<String, StoreId>,
    /// The variables of the functions that agent tasks and pipelines became.
    functions: HashMap<Callable, Name>,
    /// The variables by which pipelines call themselves that are being lowered, and whether they are counted.
    again: HashMap<String, (Name, bool)>,
    definitions: Vec<(Name, TermId)>,
    /// The variables of the constants that are used.
    constants: HashMap<String, Name>,
    /// The names that are bound for the blocks around this place, outermost first.
    binders: Vec<Binder>,
    /// An upper bound of the program counter's label here.
    pc: Taint,
    /// Labels that pipelines add to their results.
    results: HashMap<String, Taint>,
    /// The regions around this place, outermost first.
    regions: Vec<Region>,
    /// Last read of each variable of the pipeline or test.
    last_reads: HashMap<String, u32>,
    /// Branches of terms that are branches of the program.
    branches: Vec<((TermId, u32), BranchId)>,
    /// Snapshots of the test: the name of each, and its variable.
    snapshots: Vec<(Name, &'a str)>,
}

/// Number of times that a continuation is copied into a branch before it becomes a function. Each copy is two
/// or three levels deeper, and a term has at most [`core_ir::MAX_DEPTH`] of them.
const MAX_COPIES: u32 = 48;

/// A part of a term in which functions for what follows can be defined: at its beginning, before all others.
struct Region {
    /// Lengths of the scope's journal and of the binders at the beginning.
    journal: usize,
    binders: usize,
    /// Number of copies of the continuation so far.
    nested: u32,
    /// The functions, each before those that call it.
    functions: Vec<(Name, TermId)>,
}

impl<'a> SurfaceLowering<'a> {
    fn new(checked: &'a Checked<'a>) -> SurfaceLowering<'a> {
        SurfaceLowering {
            c: checked,
            b: Builder::new(),
            scope: Scope::default(),
            tools: HashMap::new(),
            stores: HashMap::new(),
            functions: HashMap::new(),
            again: HashMap::new(),
            definitions: Vec::new(),
            constants: HashMap::new(),
            binders: Vec::new(),
            pc: Taint::NONE,
            results: HashMap::new(),
            regions: Vec::new(),
            last_reads: HashMap::new(),
            branches: Vec::new(),
            snapshots: Vec::new(),
        }
    }
}

/// The text of an expression on one line without comments, the same however it is laid out.
pub(super) fn on_one_line(source: &str) -> String {
    let mut line = String::new();
    let (mut is_quoted, mut is_apart, mut characters) = (false, false, source.chars());
    while let Some(c) = characters.next() {
        let rest = characters.as_str();
        if !is_quoted && (c == '-' && rest.starts_with('-') || c == '/' && rest.starts_with('/')) {
            // A comment.
            characters = rest[rest.find('\n').unwrap_or(rest.len())..].chars();
            is_apart = true;
        } else if is_quoted || !c.is_whitespace() {
            let last = line.chars().last();
            if !is_quoted && matches!(c, ')' | ']' | '}') && last == Some(',') {
                line.pop();
            }
            let word_before = last.is_some_and(|l| l.is_alphanumeric() || l == '_' || l == ')');
            let is_tight =
                last.is_none_or(|l| matches!(l, '(' | '[')) || matches!(c, ')' | ']' | '.' | ',' | ';');
            let inside_braces = !is_quoted && (last == Some('{') || c == '}');
            if !is_quoted && (is_apart && !is_tight || c == '{' && word_before || inside_braces) {
                line.push(' ');
            }
            is_apart = false;
            line.push(c);
            is_quoted ^= c == '"';
            if c == '\\' && is_quoted {
                line.extend(characters.next());
            }
        } else {
            is_apart = true;
        }
    }
    line
}

impl<'a> SurfaceLowering<'a> {
    /// Notes that branches of a term are branches of the statement or expression at this place, and gives the
    /// term.
    fn branching(
        &mut self,
        term: TermId,
        at: Span,
        branches: impl IntoIterator<Item = (u32, u32)>,
    ) -> TermId {
        let of = |(n, index)| ((term, n), BranchId { span: at, index });
        self.branches.extend(branches.into_iter().map(of));
        term
    }

    /// The reason why a loop over a list has no bound.
    fn length_of(&self, list: Span) -> BoundOrigin {
        let source = on_one_line(self.c.files.text(list).unwrap_or("the list"));
        let source = diagnostics::clip(&source);
        BoundOrigin::Default(format!("the length of `{source}`, which is known only when it runs").into())
    }

    /// The term of a name with what it uses.
    fn finish(mut self, root: TermId, name: &str, at: Span) -> Result<(Code, TermBranches), Vec<Diagnostic>> {
        self.set_tools();
        let definitions = std::mem::take(&mut self.definitions);
        let root = self.b.let_in(definitions, root, at);
        let branches = self.branches;
        let of_code = |(code, ids): (Code, core_ir::NewIds)| {
            let kept = branches.into_iter().filter_map(|((term, n), id)| Some(((ids.of(term)?, n), id)));
            (code, kept.collect())
        };
        self.b.finish_with_ids(root, &Globals::none()).map(of_code).map_err(|errors| {
            // Every leaf of what is too deep is an error; the first says it all.
            let mut found: Vec<Diagnostic> = errors.iter().map(|e| failure(e, name)).collect();
            found.dedup_by_key(|d| d.code);
            found
        })
    }

    /// Adds the tools that sets are read from, whether the program calls them or not.
    fn set_tools(&mut self) {
        let checked = self.c;
        let of = |t: &ToolDecl| checked.world.sets.get(&**t.called()).cloned().unwrap_or_default();
        let sets: Vec<String> = self.b.tools().iter().flat_map(|t| of(t)).collect();
        for set in sets {
            let of_set = |s: &&Signature| checked.decls.handler_name(s) == set;
            if let Some(s) = checked.decls.tools.values().find(of_set) {
                self.tool(s);
            }
        }
    }

    /// Lowers an upper bound to a label of the run's lattice.
    fn label(&mut self, taint: Taint, at: Span) -> TermId {
        let mut lattice = Lattice::new(self.c.world.lattice);
        let axes = LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret };
        // Every lattice has labels for the two axes.
        let data = lattice.resolve(&axes).map_or(Data::Null, |label| lattice.data_of(label));
        self.b.lit(data, at)
    }

    // ----- declarations -----

    /// The function of a pipeline that is called with inputs of at most the label `given`, under the program
    /// counter that is set. Its result is tagged if it is one that calls itself so often at most.
    fn pipeline_once(&mut self, p: &ast::Pipeline, given: Taint, counted: bool, caller: Caller) -> TermId {
        let Some(signature) = self.c.decls.callables.get(&p.name.text) else {
            return self.b.add(Term::Unknown(p.name.text.as_str().into()), p.span);
        };
        // The program calls it with what the checker has looked at; the rest is checked where it is called.
        let is_checked = caller == Caller::World;
        let is_function = signature.kind == CallableKind::Function;
        let mark = self.scope.journal.len();
        let names = std::mem::take(&mut self.scope.names);
        let binders = std::mem::take(&mut self.binders);
        let input = self.b.fresh("input");
        let mut bindings = Vec::new();
        // Named first, so that the message says which pipeline got what.
        let at = p.name.span;
        if !is_function && is_checked {
            let raw = self.b.var(input.clone(), at);
            let fields = signature.params.iter().map(|q| (Name::from(q.name.text.as_str()), q.input()));
            let record = Type::record(fields.collect::<Vec<_>>());
            let what = format!("the input of `{}`", p.name.text);
            let checked = self.b.add(Term::Check(what.into(), record, raw), at);
            bindings.push((input.clone(), checked));
        }
        for q in &signature.params {
            let of = self.b.var(input.clone(), q.name.span);
            let optional = matches!(q.input(), Type::Option(_)) && !is_function;
            let mut value = self.access(of, &q.name.text, optional, q.name.span);
            if let (Some(e), false) = (&q.default, is_function) {
                value = self.or_default(value, q, e);
            }
            let own = Taint { untrusted: q.flow.untrusted, secret: q.flow.secret };
            if own != Taint::NONE {
                let l = self.label(own, q.name.span);
                value = self.b.add(Term::Relabel(l, value), q.name.span);
            }
            bindings.push((self.bind(&q.name.text, own.join(given)), value));
            self.know_type(&q.name.text, Some(&q.ty));
            if q.flow.requires_trusted || q.flow.requires_public {
                let at = q.flow.requires.unwrap_or(q.name.span);
                let most = Taint { untrusted: !q.flow.requires_trusted, secret: !q.flow.requires_public };
                let value = self.variable(&q.name.text, at);
                let all = self.b.add(Term::Prim(Prim::Flatten, vec![value]), at);
                let most = self.label(most, at);
                bindings.push(("_".into(), self.b.add(Term::Assert(most, all), at)));
            }
        }
        let outer = std::mem::replace(&mut self.last_reads, last_reads(&p.body));
        let body = self.block(&p.body, &Mode::Pipeline);
        self.last_reads = outer;
        self.scope.undo(mark);
        self.scope.names = names;
        self.binders = binders;
        let body = self.b.let_in(bindings, body, p.span);
        if is_function {
            return self.b.abs(input, None, body, p.span);
        }
        let mut body = body;
        // To check a value takes a step for each part of it. A growing list that each of many calls returns
        // would take steps in the square of its length.
        if is_checked || self.c.facts.unsure_results.contains(&p.result.span) {
            let result = result_of(&p.name.text);
            body = self.b.add(Term::Check(result, signature.result.clone(), body), p.result.span);
        }
        if counted {
            body = self.b.add(Term::Tag(DONE.into(), Some(body)), p.result.span);
        }
        self.b.abs(input, None, body, p.span)
    }

    /// An input, or its default if it is null.
    fn or_default(&mut self, value: TermId, param: &Param, default: &ast::Expr) -> TermId {
        let at = param.name.span;
        let given = self.b.fresh("given");
        let seen = self.b.var(given.clone(), at);
        let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), at);
        let default = self.default_of(param, default);
        let inside = self.b.var(given.clone(), at);
        let choice = self.b.add(Term::If(absent, default, inside, IfSugar::Plain), at);
        self.b.let_in(vec![(given, value)], choice, at)
    }

    fn test(&mut self, t: &'a ast::Test) -> TermId {
        self.last_reads = last_reads(&t.body);
        let named = |s: &'a ast::Snapshot| (name_of(s, self.c.files).into(), &*s.variable);
        self.snapshots = t.snapshots.iter().map(named).collect();
        let input = self.b.fresh("input");
        let mut bindings = Vec::new();
        if let Some(rows) = &t.rows {
            let at = rows.span;
            let ty = self.c.decls.rows.get(&at).cloned().unwrap_or(Type::Dyn);
            let raw = self.b.var(input.clone(), at);
            let record = Type::record([(Name::from(ROW), ty.clone())]);
            let checked = self.b.add(Term::Check("the row of the test".into(), record, raw), at);
            bindings.push((input.clone(), checked));
            let of = self.b.var(input.clone(), at);
            let value = self.access(of, ROW, false, at);
            bindings.push((self.bind(&rows.name.text, Taint::NONE), value));
            self.know_type(&rows.name.text, Some(&ty));
        }
        let body = self.block(&t.body, &Mode::Test);
        let body = self.b.let_in(bindings, body, t.span);
        self.b.abs(input, None, body, t.span)
    }

    // ----- statements -----

    // ----- calls -----

    // ----- expressions -----
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No program is known to be accepted and not to have a term; a term that is not well formed is said to
    /// be our fault.
    #[test]
    fn a_term_that_is_not_well_formed_is_a_fault_of_the_compiler() {
        let at = Span { file: diagnostics::FileId(0), start: 3, end: 4 };
        let mut b = Builder::new();
        let root = b.var(Name::from("nobody"), at);
        let errors = b.finish(root, &Globals::none()).err().unwrap();
        let found: Vec<Diagnostic> = errors.iter().map(|e| failure(e, "p")).collect();
        assert_eq!((found.len(), found[0].code, found[0].span), (1, "A098", Some(at)));
        assert!(found[0].message.contains("`nobody` is not resolved") && found[0].help[0].contains("report"));
    }
}
