//! Checked programs to core terms.
//!
//! A pipeline is a function from the record of its inputs. What a branch or loop binds for the
//! statements after it is its result, so a branch not taken still labels it. A loop is a `fix` over
//! those variables. A statement that may leave its block early (`return`, `break`, `continue`) gives a
//! tag that says how; where only one of its ways goes on, what follows is moved into that way and no
//! tag is needed. Where that would nest too deep, what follows becomes a function of the variables that are
//! bound by then, so that a pipeline may leave early as often as it likes.
//!
//! Source: seed 004 §3; `docs/calculus.md` §3 for what the terms mean.

use super::codes;
use super::decls::{AgentDecl, Budget, Decls, Flow, Kind, Memory, Param, Signature};
use super::exits::ExitTable;
use super::{Entry, EntryKind, check::Facts, functions, predicate};
use core_ir::{
    Bound, Branch, BuildError, Builder, Catches, Code, Data, EffectClass, Globals, IfSugar, KeyDecl,
    LabelSpec, Lattice, LatticeKind, ModelParams, Name, Num, Prim, Recv, Role, StoreDecl, StoreId, Term,
    TermId, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::{Diagnostic, Span};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use syntax::agent::ast::{
    self, Args, BinaryOp, Block, BodyKind, ClauseKind, Expr, ExprKind, Item, Run, Stmt, StmtKind, Template,
    TemplatePart, UnaryOp,
};

/// How many further calls may quote a decoding error to the model.
const REPAIR: u32 = 2;

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

/// What the run's policy says that terms depend on.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) lattice: LatticeKind,
    /// What the results of tools and tasks are labelled with, by the name of the handler, where it is not what they declare.
    pub(super) results: HashMap<String, LabelSpec>,
    /// The tools and tasks whose bounds are not those that they declare.
    pub(super) bounds: HashSet<String>,
}

impl Checked<'_> {
    /// What covers the label of the result of a tool or task.
    fn returns(&self, s: &Signature) -> Taint {
        match self.world.results.get(&self.decls.handler_name(s)) {
            Some(spec) => Taint::covering(&mut Lattice::new(self.world.lattice), spec),
            None => Taint::of(&s.flow),
        }
    }
}

/// The term of an entry point: a function from the record of its inputs.
pub(super) fn lower(checked: &Checked<'_>, entry: &Entry) -> Result<Code, Vec<Diagnostic>> {
    let mut lower = Lower {
        c: checked,
        b: Builder::new(),
        scope: Scope::default(),
        tools: HashMap::new(),
        stores: HashMap::new(),
        functions: HashMap::new(),
        again: HashMap::new(),
        definitions: Vec::new(),
        binders: Vec::new(),
        pc: Taint::NONE,
        results: HashMap::new(),
        regions: Vec::new(),
        last_reads: HashMap::new(),
    };
    let root = match (&entry.kind, &checked.program.items.get(entry.item)) {
        (EntryKind::Pipeline, Some(Item::Pipeline(p))) => lower.pipeline(p, Taint::NONE, None),
        (EntryKind::Test, Some(Item::Test(t))) => lower.test(t),
        // Entries are made from these items.
        _ => lower.b.add(Term::Unknown("entry".into()), entry.span),
    };
    let definitions = std::mem::take(&mut lower.definitions);
    let root = lower.b.let_in(definitions, root, entry.span);
    lower.b.finish(root, &Globals::none()).map_err(|errors| {
        // Every leaf of what is too deep is an error; the first says it all.
        let mut found: Vec<Diagnostic> = errors.iter().map(|e| failure(e, entry)).collect();
        found.dedup_by_key(|d| d.code);
        found
    })
}

fn failure(error: &BuildError, entry: &Entry) -> Diagnostic {
    match error {
        BuildError::TooDeep(span) => Diagnostic::error(
            codes::TERM_TOO_DEEP,
            format!("`{}` becomes too deep a term here", entry.name),
            *span,
        )
        .help("put a part of it into a pipeline of its own"),
        BuildError::Unbound(name, span)
        | BuildError::UnknownKey(name, span)
        | BuildError::NotAFunction(name, span)
        | BuildError::Policy(name, span) => fault(&format!("`{name}` is not resolved"), *span),
        BuildError::Shared(span) => fault("a term is used twice", *span),
    }
}

/// Not the program's fault; said rather than hidden.
fn fault(what: &str, span: Span) -> Diagnostic {
    Diagnostic::error(codes::COMPILER_FAULT, format!("a fault of the compiler: {what}"), span)
        .help("please report it together with the program")
}

/// An upper bound of a label, known before the run: whether the value may be untrusted, and secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Taint {
    untrusted: bool,
    secret: bool,
}

impl Taint {
    const NONE: Taint = Taint { untrusted: false, secret: false };

    fn join(self, other: Taint) -> Taint {
        Taint { untrusted: self.untrusted || other.untrusted, secret: self.secret || other.secret }
    }

    /// What of it can pass the bound of a parameter; the rest is refused before the call.
    fn within(self, bound: &LabelSpec) -> Taint {
        match bound {
            LabelSpec::Axes { untrusted, secret } => {
                Taint { untrusted: self.untrusted && *untrusted, secret: self.secret && *secret }
            }
            LabelSpec::Exact(_) => self,
        }
    }

    fn of(flow: &Flow) -> Taint {
        Taint { untrusted: flow.untrusted || flow.class == Some(EffectClass::Read), secret: flow.secret }
    }

    /// What covers a label of this lattice.
    fn covering(lattice: &mut Lattice, spec: &LabelSpec) -> Taint {
        let most = |untrusted, secret| LabelSpec::Axes { untrusted, secret };
        let axes = [most(false, true), most(true, false)].map(|m| lattice.resolve(&m));
        match (spec, lattice.resolve(spec), axes) {
            (LabelSpec::Axes { untrusted, secret }, ..) => Taint { untrusted: *untrusted, secret: *secret },
            (_, Some(label), [Some(trusted), Some(public)]) => {
                Taint { untrusted: !lattice.flows(label, trusted), secret: !lattice.flows(label, public) }
            }
            // No label of the lattice; the machine refuses it.
            _ => Taint { untrusted: true, secret: true },
        }
    }
}

/// What a tool returns may come from anyone if it says so or reads the world.
fn result_label(flow: &Flow) -> LabelSpec {
    let taint = Taint::of(flow);
    LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret }
}

/// What a source name stands for: the variable that holds its value, and what is known of its label.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    name: Name,
    taint: Taint,
    /// Whether the name means something else around the block that it is bound for.
    shadows: bool,
    /// If it is a list, how many items it has at most, as far as that is known.
    length: Option<u64>,
}

/// A name that is bound for a block only.
#[derive(Clone, Debug)]
struct Binder {
    source: String,
    held: Held,
    /// What the name stood for before.
    before: Option<Held>,
}

/// The source names in scope.
#[derive(Default)]
struct Scope {
    names: HashMap<String, Held>,
    journal: Vec<(String, Option<Held>)>,
}

impl Scope {
    fn set(&mut self, source: &str, held: Option<Held>) {
        let old = match held {
            Some(n) => self.names.insert(source.to_string(), n),
            None => self.names.remove(source),
        };
        self.journal.push((source.to_string(), old));
    }

    fn undo(&mut self, mark: usize) {
        while self.journal.len() > mark {
            let Some((source, old)) = self.journal.pop() else { return };
            match old {
                Some(n) => self.names.insert(source, n),
                None => self.names.remove(&source),
            };
        }
    }
}

/// What is done when a block comes to its end, or is left early.
#[derive(Clone)]
enum Mode {
    /// The body of a pipeline: `return` gives its value.
    Pipeline,
    /// The body of a test.
    Test,
    /// A block inside another: gives the values of these variables; as the tag `next` if the block may be
    /// left early, so that `return`, `break` and `continue` can be told from it. `around` and `binders` are
    /// the variables of the loop around it and the number of binders outside of that.
    Block { outs: Arc<[String]>, tagged: bool, around: Arc<[String]>, binders: usize },
    /// The body of a loop over these variables, which gives `done` of them in the end; tagged if it may `return`.
    Loop { again: Name, vars: Arc<[String]>, done: Arc<[String]>, tagged: bool, binders: usize },
}

/// Statements that remain to be lowered: a slice, and what follows when it is done.
struct Rest<'a> {
    stmts: &'a [Stmt],
    /// Whether the innermost binder ends with the slice.
    leave: bool,
    next: Option<&'a Rest<'a>>,
    /// Where the block of the slice ends.
    end: Span,
}

/// What a function is made for.
#[derive(PartialEq, Eq, Hash)]
struct Callable {
    name: String,
    /// Who carries it out, if it is a task.
    agent: Option<String>,
    /// What is known of the labels of a pipeline's arguments, and of the program counter.
    given: Taint,
    pc: Taint,
    /// How often a pipeline calls itself at most, if that is known.
    calls: Option<u64>,
}

struct Lower<'a> {
    c: &'a Checked<'a>,
    b: Builder,
    scope: Scope,
    tools: HashMap<(bool, String), ToolId>,
    /// The memories of agents.
    stores: HashMap<String, StoreId>,
    /// The variables of the functions that agent tasks and pipelines became.
    functions: HashMap<Callable, Name>,
    /// The variables by which pipelines call themselves that are being lowered.
    again: HashMap<String, Name>,
    definitions: Vec<(Name, TermId)>,
    /// The names that are bound for the blocks around this place, outermost first.
    binders: Vec<Binder>,
    /// An upper bound of the program counter's label here.
    pc: Taint,
    /// What pipelines add to the labels of their results.
    results: HashMap<String, Taint>,
    /// The regions around this place, outermost first.
    regions: Vec<Region>,
    /// Where the pipeline or test reads each of its variables last.
    last_reads: HashMap<String, u32>,
}

/// How often what follows is moved into a branch before it becomes a function of its own. Each time puts it two
/// or three levels deeper, of which a term has [`core_ir::MAX_DEPTH`].
const MOST_NESTED: u32 = 48;

/// A part of a term in which functions for what follows can be defined: at its beginning, before all others.
struct Region {
    /// How long the scope's journal was, and how many binders there were, at the beginning.
    journal: usize,
    binders: usize,
    /// How often what follows has been moved into a branch.
    nested: u32,
    /// The functions, each before those that call it.
    functions: Vec<(Name, TermId)>,
}

impl Lower<'_> {
    /// What is known of a label, as a label of the run's lattice.
    fn label(&mut self, taint: Taint, at: Span) -> TermId {
        let mut lattice = Lattice::new(self.c.world.lattice);
        let axes = LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret };
        // Every lattice has labels for the two axes.
        let data = lattice.resolve(&axes).map_or(Data::Null, |label| lattice.data_of(label));
        self.b.lit(data, at)
    }

    // ----- declarations -----

    /// The function of a pipeline that is called with inputs of at most the label `given`, under the program
    /// counter that is set.
    fn pipeline_once(&mut self, p: &ast::Pipeline, given: Taint) -> TermId {
        let Some(signature) = self.c.decls.callables.get(&p.name.text) else {
            return self.b.add(Term::Unknown(p.name.text.as_str().into()), p.span);
        };
        let mark = self.scope.journal.len();
        let names = std::mem::take(&mut self.scope.names);
        let binders = std::mem::take(&mut self.binders);
        let input = self.b.fresh("input");
        let mut bindings = Vec::new();
        // Named first, so that the message says which pipeline got what.
        let at = p.name.span;
        let raw = self.b.var(input.clone(), at);
        let fields = signature.params.iter().map(|q| (Name::from(q.name.text.as_str()), q.ty.clone()));
        let record = Type::record(fields.collect::<Vec<_>>());
        let checked =
            self.b.add(Term::Check(format!("the input of `{}`", p.name.text).into(), record, raw), at);
        bindings.push((input.clone(), checked));
        for q in &signature.params {
            let of = self.b.var(input.clone(), q.name.span);
            let optional = matches!(q.ty, Type::Option(_));
            let mut value = self.access(of, &q.name.text, optional, q.name.span);
            let own = Taint { untrusted: q.flow.untrusted, secret: q.flow.secret };
            if own != Taint::NONE {
                let l = self.label(own, q.name.span);
                value = self.b.add(Term::Relabel(l, value), q.name.span);
            }
            bindings.push((self.bind(&q.name.text, own.join(given)), value));
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
        let result = result_of(&p.name.text);
        let body = self.b.add(Term::Check(result, signature.result.clone(), body), p.result.span);
        self.b.abs(input, None, body, p.span)
    }

    fn test(&mut self, t: &ast::Test) -> TermId {
        self.last_reads = last_reads(&t.body);
        let body = self.block(&t.body, &Mode::Test);
        let input = self.b.fresh("input");
        self.b.abs(input, None, body, t.span)
    }

    /// The variable of the function of a pipeline that may call itself so often, as far as that is known.
    fn pipeline_function(&mut self, s: &Signature, given: Taint, calls: Option<u64>) -> Name {
        let key = Callable { name: s.name.text.clone(), agent: None, given, pc: self.pc, calls };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&s.name.text);
        self.functions.insert(key, name.clone());
        // What it calls is defined first; the checker has ruled out circles of several.
        if let Some(Item::Pipeline(p)) = self.c.program.items.get(s.item) {
            let term = stacker::maybe_grow(128 << 10, 1 << 20, || self.pipeline(p, given, calls));
            self.definitions.push((name.clone(), term));
        }
        name
    }

    /// The function of a pipeline; of one that calls itself, the fixpoint that calls itself so often at most.
    fn pipeline(&mut self, p: &ast::Pipeline, given: Taint, calls: Option<u64>) -> TermId {
        let name = &p.name.text;
        let Some(descent) = self.c.facts.descents.get(name) else { return self.pipeline_once(p, given) };
        // One function for all calls: with whatever one of them may be given, under whatever may decide it.
        let added = self.c.decls.callables.get(name).map_or(Taint::NONE, |s| self.added(s, None));
        let given = given.join(added);
        let pc = self.pc;
        self.pc = pc.join(given);
        let again = self.b.fresh(name);
        self.again.insert(name.clone(), again.clone());
        let body = self.pipeline_once(p, given);
        self.again.remove(name);
        self.pc = pc;
        let body = self.b.abs(again, None, body, p.name.span);
        let (bound, origin) = match calls {
            Some(n) => (Bound::Finite(n), None),
            None => {
                let origin =
                    format!("`{name}` counts `{}` down, which is known only when it runs", descent.param);
                (Bound::Infinite, Some(Name::from(origin)))
            }
        };
        self.b.add(Term::Fix { bound, origin, body }, p.name.span)
    }

    /// The variable of the function of an agent task carried out by an agent.
    fn agent_function(&mut self, s: &Signature, agent: &str) -> Name {
        // It calls nothing at a label that would have to be known.
        let key = Callable {
            name: s.name.text.clone(),
            agent: Some(agent.to_string()),
            given: Taint::NONE,
            pc: Taint::NONE,
            calls: None,
        };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&format!("{}_by_{agent}", s.name.text));
        self.functions.insert(key, name.clone());
        if let (Some(Item::Task(t)), Some(decl)) =
            (self.c.program.items.get(s.item), self.c.decls.agents.get(agent))
        {
            let names = std::mem::take(&mut self.scope.names);
            let mark = self.scope.journal.len();
            let term = self.agent_task(s, t, agent, decl);
            self.scope.undo(mark);
            self.scope.names = names;
            self.definitions.push((name.clone(), term));
        }
        name
    }

    /// What an import brings.
    fn unit(&self, s: &Signature) -> Option<&crate::Unit> {
        let Item::Import(import) = self.c.program.items.get(s.item)? else { return None };
        self.c.files.unit(import.span)
    }

    /// The variable of the function that an import became: the unit, given what it takes, and what it gives checked.
    fn import_function(&mut self, s: &Signature) -> Name {
        let key = Callable {
            name: s.name.text.clone(),
            agent: None,
            given: Taint::NONE,
            pc: Taint::NONE,
            calls: None,
        };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&s.name.text);
        self.functions.insert(key, name.clone());
        let Some(unit) = self.unit(s) else { return name };
        let (code, at) = (unit.code.clone(), s.name.span);
        let is_text = super::imports::inputs(unit).is_none();
        // Outermost, where nothing of the program is bound.
        let function = self.b.graft(&code);
        let grafted = self.b.fresh(&format!("{}_unit", s.name.text));
        self.definitions.push((grafted.clone(), function));
        let args = self.b.fresh("args");
        let mut input = self.b.var(args.clone(), at);
        if let (true, Some(only)) = (is_text, s.params.first()) {
            input = self.b.add(Term::Field(input, only.name.text.as_str().into()), at);
        }
        let function = self.b.var(grafted, at);
        let called = self.b.app(function, input, at);
        let called = if matches!(s.result, Type::Record(_) | Type::List(_) | Type::Num | Type::Bool) {
            self.decoded(called, at)
        } else {
            called
        };
        let what = format!("the result of `{}`", s.name.text);
        let checked = self.b.add(Term::Check(what.into(), s.result.clone(), called), at);
        let function = self.b.abs(args, None, checked, at);
        self.definitions.push((name.clone(), function));
        name
    }

    /// What a text says as JSON; anything else as it is.
    fn decoded(&mut self, value: TermId, at: Span) -> TermId {
        let got = self.b.fresh("got");
        let (tested, read, other) =
            (self.b.var(got.clone(), at), self.b.var(got.clone(), at), self.b.var(got.clone(), at));
        let test = self.b.add(Term::Prim(Prim::IsStr, vec![tested]), at);
        let read = self.b.add(Term::Prim(Prim::FromJson, vec![read]), at);
        let chosen = self.b.add(Term::If(test, read, other, IfSugar::Plain), at);
        self.b.let_in(vec![(got, value)], chosen, at)
    }

    /// `λargs. …`: the prompt is put together, and the agent's model asked for a value of the result type.
    fn agent_task(&mut self, s: &Signature, t: &ast::Callable, agent: &str, decl: &AgentDecl) -> TermId {
        let at = t.name.span;
        let args = self.b.fresh("args");
        let mut bindings = Vec::new();
        for p in &s.params {
            let of = self.b.var(args.clone(), p.name.span);
            let value = self.access(of, &p.name.text, matches!(p.ty, Type::Option(_)), p.name.span);
            bindings.push((self.bind(&p.name.text, Taint::NONE), value));
        }
        let prompt = match &t.body.kind {
            BodyKind::Prompt(template) => self.template(template),
            _ => self.plain_prompt(s, at),
        };
        let system = match self.c.program.items.get(decl.item) {
            Some(Item::Agent(a)) => a.fields.iter().find_map(|f| match &f.value {
                ast::AgentValue::Prompt(t) => Some((literal_text(t), t.span)),
                _ => None,
            }),
            _ => None,
        };
        let (system, system_span) = system.unwrap_or_else(|| (String::new(), decl.span));
        let tools: Vec<(String, ToolId)> = decl
            .tools
            .iter()
            .filter_map(|name| Some((name.clone(), self.tool(self.c.decls.tools.get(name)?)?)))
            .collect();
        let remembered: Vec<(&Param, ToolId)> =
            decl.memory.iter().flat_map(|m| &m.keys).map(|k| (k, self.remember_tool(k))).collect();
        let mut extra = vec![("agent".into(), Data::str(agent))];
        extra.extend(decl.budget.as_ref().map(|b| ("budget".into(), limits(b))));
        if !decl.fallback.is_empty() {
            let names = decl.fallback.iter().map(|n| Data::str(n.as_str()));
            extra.push(("fallback".into(), Data::list(names)));
        }
        let params = ModelParams {
            model: decl.model.as_deref().map(Name::from),
            temperature: decl.temperature.clone(),
            max_tokens: None,
            result: Some(s.result.clone()),
            repair: REPAIR,
            tools: tools.iter().map(|(_, id)| *id).chain(remembered.iter().map(|(_, id)| *id)).collect(),
            purpose: Some(s.name.text.as_str().into()),
            extra,
        };
        let system = match &decl.memory {
            Some(memory) => self.with_memory(&system, memory, system_span),
            None => self.b.lit(&*system, system_span),
        };
        let body = if params.tools.is_empty() {
            let model = self.b.add(Term::Llm(system, Arc::new(params)), at);
            self.b.app(model, prompt, at)
        } else {
            self.react(system, prompt, params, &tools, &remembered, agent, decl, at)
        };
        let body = match &decl.memory {
            Some(memory) => {
                let store = self.store(agent, memory);
                self.b.add(Term::Mem(store, body), at)
            }
            None => body,
        };
        let body = self.b.let_in(bindings, body, at);
        self.b.abs(args, None, body, at)
    }

    /// The ReAct loop: each unfolding asks the model once, and either gives its answer or carries out the
    /// tool call that it asks for and shows it the result. A tool that fails is shown as the error it gave.
    #[allow(clippy::too_many_arguments, reason = "one for each part of an agent")]
    fn react(
        &mut self,
        system: TermId,
        prompt: TermId,
        params: ModelParams,
        tools: &[(String, ToolId)],
        remembered: &[(&Param, ToolId)],
        agent: &str,
        decl: &AgentDecl,
        at: Span,
    ) -> TermId {
        let (again, step) = (self.b.fresh("again"), self.b.fresh("step"));
        let mut branches = Vec::new();
        let calls = tools.iter().map(|(name, id)| (name.clone(), Invoked::Tool(*id)));
        let keys =
            remembered.iter().map(|(k, _)| (super::decls::remember_tool(&k.name.text), Invoked::Key(k)));
        for (name, what) in calls.chain(keys) {
            let (call, seen, message) = (self.b.fresh("call"), self.b.fresh("seen"), self.b.fresh("message"));
            let arguments = self.b.var(call.clone(), at);
            // The call's program counter is the conversation's label already; what it does adds to that.
            let (invoke, adds) = match what {
                Invoked::Tool(id) => {
                    let tool = self.b.add(Term::Tool(id), at);
                    let adds = self.c.decls.tools.get(&name).map_or(Taint::NONE, |s| self.c.returns(s));
                    (self.b.app(tool, arguments, at), adds)
                }
                Invoked::Key(key) => {
                    let optional = matches!(key.ty, Type::Option(_));
                    let value = self.access(arguments, "value", optional, at);
                    let key_name = Name::from(key.name.text.as_str());
                    let kept = self.b.add(Term::Remember(key_name, None, value), at);
                    let done = self.b.lit("remembered", at);
                    let body = self.b.let_in(vec![("_".into(), kept)], done, at);
                    (body, self.memory_taint(decl, key))
                }
            };
            let text = self.b.var(message.clone(), at);
            let error = self.b.add(Term::Record(vec![("error".into(), text)]), at);
            let l = self.label(adds, at);
            let observed = self.b.add(
                Term::Try {
                    label: l,
                    body: invoke,
                    catches: Catches::NotTimeout,
                    name: message,
                    handler: error,
                },
                at,
            );
            let shown = self.b.var(seen.clone(), at);
            let observe = self.b.add(Term::Send(Role::Tool, shown), at);
            let again = self.b.var(again.clone(), at);
            let next = self.b.var(step.clone(), at);
            let next = self.b.app(again, next, at);
            let body = self.b.let_in(vec![(seen, observed), ("_".into(), observe)], next, at);
            branches.push(Branch { tag: name.as_str().into(), binder: Some(call), body });
        }
        let answer = self.b.fresh("answer");
        let value = self.b.var(answer.clone(), at);
        let value = self.b.add(Term::Tag("final".into(), Some(value)), at);
        branches.push(Branch { tag: "final".into(), binder: Some(answer), body: value });
        let reply = self.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
        let body = self.b.add(Term::Case { scrutinee: reply, branches, default: None }, at);
        let body = self.b.abs(step, None, body, at);
        let body = self.b.abs(again, None, body, at);
        let origin = (!decl.max_steps_given)
            .then(|| Name::from(format!("the default of {} steps", super::DEFAULT_MAX_STEPS)));
        let fix = self.b.add(Term::Fix { bound: Bound::Finite(decl.max_steps), origin, body }, at);
        let stopped = self.b.add(Term::Tag("stopped".into(), None), at);
        let run = self.b.app(fix, stopped, at);

        let answer = self.b.fresh("answer");
        let value = self.b.var(answer.clone(), at);
        let message = format!("agent `{agent}` used its {} steps without an answer", decl.max_steps);
        let message = self.b.lit(&*message, at);
        let fail = self.b.add(Term::Fail(message), at);
        let branches = vec![
            Branch { tag: "final".into(), binder: Some(answer), body: value },
            Branch { tag: "stopped".into(), binder: None, body: fail },
        ];
        let result = self.b.add(Term::Case { scrutinee: run, branches, default: None }, at);
        let first = self.b.add(Term::Send(Role::System, system), at);
        let second = self.b.add(Term::Send(Role::User, prompt), at);
        let all = self.b.let_in(vec![("_".into(), first), ("_".into(), second)], result, at);
        self.b.add(Term::Fresh(all), at)
    }

    /// The label of a key: what it says, and what the agent's tools read.
    fn memory_taint(&self, decl: &AgentDecl, key: &Param) -> Taint {
        let own = Taint { untrusted: key.flow.untrusted, secret: key.flow.secret };
        let tools = decl.tools.iter().filter_map(|t| self.c.decls.tools.get(t));
        tools.fold(own, |t, s| t.join(self.c.returns(s)))
    }

    /// The store of an agent's memory; all its tasks have the same.
    fn store(&mut self, agent: &str, memory: &Memory) -> StoreId {
        if let Some(id) = self.stores.get(agent) {
            return *id;
        }
        let decl = self.c.decls.agents.get(agent);
        let keys = memory.keys.iter().map(|k| {
            let taint = decl.map_or(Taint::NONE, |d| self.memory_taint(d, k));
            KeyDecl {
                name: k.name.text.as_str().into(),
                ty: k.ty.clone(),
                label: LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret },
                initial: None,
            }
        });
        let keys = keys.collect();
        let id = self.b.store(StoreDecl {
            name: agent.into(),
            keys,
            capacity: memory.size,
            ttl: memory.ttl,
            backend: memory.store.as_deref().map(Name::from),
            span: memory.span,
        });
        self.stores.insert(agent.to_string(), id);
        id
    }

    /// How a model is offered to set a key. What it says is kept by the term itself, so nobody else hears of it.
    fn remember_tool(&mut self, key: &Param) -> ToolId {
        self.b.tool(ToolDecl {
            params: vec![ToolParam { name: "value".into(), ty: key.ty.clone(), bound: LabelSpec::TOP }],
            result: Type::Str,
            effect: EffectClass::Pure,
            control: LabelSpec::TOP,
            label: LabelSpec::BOTTOM,
            description: Some(format!("Replaces what you remember as `{}`.", key.name.text).into()),
            ..ToolDecl::unknown(super::decls::remember_tool(&key.name.text).into(), key.name.span)
        })
    }

    /// A system prompt with what the agent remembers.
    fn with_memory(&mut self, system: &str, memory: &Memory, at: Span) -> TermId {
        let before = if system.is_empty() { "" } else { "\n\n" };
        let mut parts = vec![self.b.lit(&*format!("{system}{before}What you remember:"), at)];
        for key in &memory.keys {
            let held = self.b.fresh("held");
            parts.push(self.b.lit(&*format!("\n{}: ", key.name.text), at));
            let recall = self.b.add(Term::Recall(key.name.text.as_str().into(), None), at);
            let seen = self.b.var(held.clone(), at);
            let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), at);
            let nothing = self.b.lit("nothing yet", at);
            let value = self.b.var(held.clone(), at);
            let shown = self.b.add(Term::Prim(Prim::ToStr, vec![value]), at);
            let choice = self.b.add(Term::If(absent, nothing, shown, IfSugar::Plain), at);
            parts.push(self.b.let_in(vec![(held, recall)], choice, at));
        }
        self.b.add(Term::Prim(Prim::Format, parts), at)
    }

    /// The prompt of an agent task that has none: its name and its arguments.
    fn plain_prompt(&mut self, s: &Signature, at: Span) -> TermId {
        let mut parts = vec![self.b.lit(&*format!("Carry out the task `{}`.", s.name.text), at)];
        for p in &s.params {
            parts.push(self.b.lit(&*format!("\n\n{}:\n", p.name.text), at));
            parts.push(self.variable(&p.name.text, at));
        }
        self.b.add(Term::Prim(Prim::Format, parts), at)
    }

    /// The declaration of a tool, or of a task that no agent carries out.
    fn tool(&mut self, s: &Signature) -> Option<ToolId> {
        let key = (s.kind == Kind::Tool, s.name.text.clone());
        if let Some(id) = self.tools.get(&key) {
            return Some(*id);
        }
        let (Item::Tool(c) | Item::Task(c)) = self.c.program.items.get(s.item)? else { return None };
        let class = s.flow.class.unwrap_or_default();
        let said = s.flow.requires_trusted || s.flow.requires_public;
        // A tool that may change the world takes only trusted and public data unless it says otherwise. A
        // task is the program's own code and takes everything.
        let careful = class == EffectClass::Write && (s.kind == Kind::Tool || s.flow.class.is_some());
        let control = match (said, careful) {
            (true, _) => {
                LabelSpec::Axes { untrusted: !s.flow.requires_trusted, secret: !s.flow.requires_public }
            }
            (false, true) => LabelSpec::BOTTOM,
            (false, false) => LabelSpec::TOP,
        };
        let params = s
            .params
            .iter()
            .map(|p| {
                let own = p.flow.requires_trusted || p.flow.requires_public;
                let bound =
                    LabelSpec::Axes { untrusted: !p.flow.requires_trusted, secret: !p.flow.requires_public };
                ToolParam {
                    name: p.name.text.as_str().into(),
                    ty: p.ty.clone(),
                    bound: if own { bound } else { control.clone() },
                }
            })
            .collect();
        let id = self.b.tool(ToolDecl {
            name: self.c.decls.handler_name(s).into(),
            params,
            result: s.result.clone(),
            effect: class,
            control,
            label: result_label(&s.flow),
            description: self.comment_above(c.span),
            handler: handler(&c.body.kind),
            approve: false,
            policy: None,
            span: c.span,
        });
        self.tools.insert(key, id);
        Some(id)
    }

    /// The comment on the lines directly above a declaration, which tells models what a tool is for.
    fn comment_above(&self, declaration: Span) -> Option<Name> {
        let comments = &self.c.files.get(declaration.file)?.comments;
        let last = comments.partition_point(|c| c.span.end <= declaration.start);
        let mut lines = Vec::new();
        let mut below = declaration.start;
        for comment in comments[..last].iter().rev() {
            let between = self.c.files.text(Span { start: comment.span.end, end: below, ..declaration })?;
            if !comment.own_line || !between.trim().is_empty() || between.matches('\n').count() != 1 {
                break;
            }
            let text = self.c.files.text(comment.span)?;
            lines.push(text.trim_start_matches(['-', '/']).trim());
            below = comment.span.start;
        }
        lines.reverse();
        let text = lines.join(" ").trim().to_string();
        (!text.is_empty()).then(|| text.into())
    }

    // ----- statements -----

    fn block(&mut self, block: &Block, mode: &Mode) -> TermId {
        let mark = self.scope.journal.len();
        let end = Span { start: block.span.end.saturating_sub(1), ..block.span };
        let term = self.region(&Rest { stmts: &block.stmts, leave: false, next: None, end }, mode);
        self.scope.undo(mark);
        term
    }

    /// Statements with the functions that what follows some of them becomes.
    fn region(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        self.regions.push(Region {
            journal: self.scope.journal.len(),
            binders: self.binders.len(),
            nested: 0,
            functions: Vec::new(),
        });
        let term = self.seq(rest, mode);
        let functions = self.regions.pop().map_or(Vec::new(), |r| r.functions);
        self.b.let_in(functions, term, rest.end)
    }

    /// What follows, one branch deeper: in place or, if that is deep already, as a call of a function of the
    /// variables that this region has bound.
    fn deeper(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        let Some(region) = self.regions.last_mut() else { return self.seq(rest, mode) };
        if region.nested < MOST_NESTED {
            region.nested += 1;
            let term = self.seq(rest, mode);
            if let Some(region) = self.regions.last_mut() {
                region.nested -= 1;
            }
            return term;
        }
        let at = rest.stmts.first().map_or(rest.end, |s| s.span);
        let variables = self.variables_of_region(at.start, mode);
        let function = self.b.fresh("rest");
        let state = self.b.fresh("state");
        let mut bindings = Vec::new();
        for v in &variables {
            let of = self.b.var(state.clone(), at);
            bindings.push((v.clone(), self.b.add(Term::Field(of, v.clone()), at)));
        }
        let nested = self.regions.last_mut().map(|r| std::mem::take(&mut r.nested));
        let body = self.seq(rest, mode);
        let body = self.b.let_in(bindings, body, at);
        let body = self.b.abs(state, None, body, at);
        if let Some(region) = self.regions.last_mut() {
            region.nested = nested.unwrap_or_default();
            region.functions.push((function.clone(), body));
        }
        let fields = variables.into_iter().map(|v| (v.clone(), self.b.var(v, at))).collect();
        let state = self.b.add(Term::Record(fields), at);
        let function = self.b.var(function, at);
        self.b.app(function, state, at)
    }

    /// The variables that the region has bound and that may be read from a place on, or packed as `mode` says.
    fn variables_of_region(&self, from: u32, mode: &Mode) -> Vec<Name> {
        let Some(region) = self.regions.last() else { return Vec::new() };
        let packed: [&[String]; 2] = match mode {
            Mode::Pipeline | Mode::Test => [&[], &[]],
            Mode::Block { outs, around, .. } => [outs, around],
            Mode::Loop { vars, done, .. } => [vars, done],
        };
        let wanted = |source: &String| {
            self.last_reads.get(source).is_some_and(|at| *at >= from)
                || packed.iter().any(|vars| vars.contains(source))
        };
        let changed = self.scope.journal.get(region.journal..).unwrap_or_default().iter().map(|(n, _)| n);
        let mut out: Vec<Name> = changed
            .filter(|n| wanted(n))
            .filter_map(|n| Some(self.scope.names.get(n)?.name.clone()))
            .chain(self.binders.get(region.binders..).unwrap_or_default().iter().filter_map(|b| {
                // What was bound before the region is in scope in its functions anyway.
                b.before.as_ref().map(|h| h.name.clone())
            }))
            .collect();
        out.sort();
        out.dedup();
        out
    }

    fn seq(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        stacker::maybe_grow(128 << 10, 1 << 20, || self.seq_inner(rest, mode))
    }

    fn seq_inner(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut slice = rest;
        let pc = self.pc;
        let (body, at) = 'all: loop {
            for (i, stmt) in slice.stmts.iter().enumerate() {
                match &stmt.kind {
                    StmtKind::Return(e) => {
                        let value = self.expr(e);
                        break 'all (self.exit_return(value, mode, stmt.span), stmt.span);
                    }
                    StmtKind::Break => break 'all (self.exit_break(mode, stmt.span), stmt.span),
                    StmtKind::Continue => break 'all (self.exit_continue(mode, stmt.span), stmt.span),
                    StmtKind::Run(run) => {
                        let guard = slice.stmts.get(i + 1).and_then(|next| guard_of(run, next));
                        let (value, taint) = self.run(run, guard);
                        let length = match &run.args {
                            Args::Positional(args) if self.c.decls.callable(&run.target.text).is_none() => {
                                self.length_of_call(&run.target.text, args)
                            }
                            _ => None,
                        };
                        bindings.push((self.bind(&run.name.text, taint), value));
                        self.know_length(&run.name.text, length);
                    }
                    StmtKind::Let(name, e) => {
                        let value = self.expr(e);
                        let taint = self.taint_of_value(e);
                        let length = self.length(e);
                        bindings.push((self.bind(&name.text, taint), value));
                        self.know_length(&name.text, length);
                    }
                    StmtKind::Parallel { max_concurrency, runs } => {
                        self.parallel(max_concurrency.as_ref(), runs, stmt.span, &mut bindings);
                    }
                    StmtKind::Assert(e, message) => {
                        let term = self.assertion(e, message.as_ref(), stmt.span);
                        bindings.push(("_".into(), term));
                    }
                    StmtKind::Guard(name, e, _) => {
                        // With the call just before it, it has been lowered together.
                        if i > 0
                            && matches!(&slice.stmts[i - 1].kind, StmtKind::Run(r) if guard_of(r, stmt).is_some())
                        {
                            continue;
                        }
                        let value = self.variable(&name.text, name.span);
                        let term = self.guarded(value, &name.text, e, 0, stmt.span);
                        let taint = self.scope.names.get(&name.text).map_or(Taint::NONE, |h| h.taint);
                        bindings.push((self.bind(&name.text, taint), term));
                    }
                    StmtKind::ParallelFor(name, list, max, body) => {
                        self.parallel_for(stmt, name, list, max.as_ref(), body, &mut bindings);
                    }
                    // Not in a program that was accepted.
                    StmtKind::Error(_) => {
                        let term = self.b.add(Term::Unknown("statement".into()), stmt.span);
                        bindings.push(("_".into(), term));
                    }
                    StmtKind::If(..)
                    | StmtKind::IfLet(..)
                    | StmtKind::Match(..)
                    | StmtKind::Try(..)
                    | StmtKind::For(..)
                    | StmtKind::While(..) => {
                        let exits = self.c.exits.stmt(stmt);
                        if !exits.early() && exits.falls {
                            let outs = self.outs(stmt);
                            let inner = Mode::Block {
                                outs: outs.clone(),
                                tagged: false,
                                around: [].into(),
                                binders: 0,
                            };
                            let value = self.compound(stmt, &inner, None);
                            let taint = self.taint_of_stmt(stmt);
                            self.unpack(&outs, taint, value, stmt.span, &mut bindings);
                            continue;
                        }
                        let rest = Rest {
                            stmts: &slice.stmts[i + 1..],
                            leave: slice.leave,
                            next: slice.next,
                            end: slice.end,
                        };
                        break 'all (self.split(stmt, &rest, mode), stmt.span);
                    }
                }
            }
            if slice.leave
                && let Some(binder) = self.binders.pop()
            {
                self.leave(&binder);
            }
            match slice.next {
                Some(next) => slice = next,
                None => break (self.fall(mode, slice.end), slice.end),
            }
        };
        self.pc = pc;
        self.b.let_in(bindings, body, at)
    }

    /// A statement that may leave the block early, with what follows it.
    fn split(&mut self, stmt: &Stmt, rest: &Rest<'_>, mode: &Mode) -> TermId {
        let at = stmt.span;
        let ways: Option<Vec<Option<&Block>>> = match &stmt.kind {
            StmtKind::If(_, a, b) | StmtKind::IfLet(_, _, a, b) => Some(vec![Some(a), b.as_ref()]),
            StmtKind::Match(_, arms) => Some(arms.iter().map(|a| Some(&a.body)).collect()),
            // What follows may be moved neither into a `try`, which would catch its errors, nor into a loop.
            _ => None,
        };
        let falling =
            ways.map(|w| w.iter().filter(|b| b.is_none_or(|b| self.c.exits.block(b).falls)).count());
        if falling.is_some_and(|n| n <= 1) {
            return self.compound(stmt, mode, Some(rest));
        }
        let exits = self.c.exits.stmt(stmt);
        let outs = self.outs(stmt);
        let (around, binders) = match mode {
            Mode::Loop { vars, binders, .. } => (vars.clone(), *binders),
            Mode::Block { around, binders, .. } => (around.clone(), *binders),
            Mode::Pipeline | Mode::Test => ([].into(), 0),
        };
        let inner = Mode::Block { outs: outs.clone(), tagged: true, around: around.clone(), binders };
        let value = self.compound(stmt, &inner, None);
        let taint = self.taint_of_stmt(stmt);
        let pc = self.pc;
        self.pc = pc.join(taint);
        let mut branches = Vec::new();
        if exits.falls {
            let held = self.b.fresh("next");
            let mut bindings = Vec::new();
            let value = self.b.var(held.clone(), at);
            let mark = self.scope.journal.len();
            self.unpack(&outs, taint, value, at, &mut bindings);
            let binders = self.binders.clone();
            let body = self.deeper(rest, mode);
            self.binders = binders;
            self.scope.undo(mark);
            let body = self.b.let_in(bindings, body, at);
            branches.push(Branch { tag: "next".into(), binder: Some(held), body });
        }
        if exits.returns {
            let held = self.b.fresh("value");
            let value = self.b.var(held.clone(), at);
            let body = self.exit_return(value, mode, at);
            branches.push(Branch { tag: "return".into(), binder: Some(held), body });
        }
        for (on, tag) in [(exits.breaks, "break"), (exits.continues, "continue")] {
            if !on {
                continue;
            }
            let held = self.b.fresh(tag);
            let value = self.b.var(held.clone(), at);
            let mut bindings = Vec::new();
            let mark = self.scope.journal.len();
            self.unpack(&around, taint, value, at, &mut bindings);
            let body = if tag == "break" { self.exit_break(mode, at) } else { self.exit_continue(mode, at) };
            self.scope.undo(mark);
            let body = self.b.let_in(bindings, body, at);
            branches.push(Branch { tag: tag.into(), binder: Some(held), body });
        }
        self.pc = pc;
        self.b.add(Term::Case { scrutinee: value, branches, default: None }, at)
    }

    /// A statement with blocks, each of which ends as `mode` says; the one that goes on, with `rest` if there is any.
    fn compound(&mut self, stmt: &Stmt, mode: &Mode, rest: Option<&Rest<'_>>) -> TermId {
        let pc = self.pc;
        let term = self.compound_inner(stmt, mode, rest);
        self.pc = pc;
        term
    }

    fn compound_inner(&mut self, stmt: &Stmt, mode: &Mode, rest: Option<&Rest<'_>>) -> TermId {
        let at = stmt.span;
        if let StmtKind::If(e, ..) | StmtKind::IfLet(_, e, ..) | StmtKind::Match(e, _) = &stmt.kind {
            self.pc = self.pc.join(self.taint(e));
        }
        match &stmt.kind {
            StmtKind::If(condition, then, other) => {
                let condition = self.expr(condition);
                let then = self.way(Some(then), None, at, mode, rest);
                let other = self.way(other.as_ref(), None, at, mode, rest);
                self.b.add(Term::If(condition, then, other, IfSugar::Plain), at)
            }
            StmtKind::IfLet(name, e, then, other) => {
                let option = self.b.fresh("option");
                let value = self.expr(e);
                let seen = self.b.var(option.clone(), e.span);
                let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), e.span);
                let other = self.way(other.as_ref(), None, at, mode, rest);
                let inside = self.b.var(option.clone(), name.span);
                let held = self.inner_name(&name.text);
                let then = self.way(Some(then), Some((&name.text, held.clone())), at, mode, rest);
                let then = self.b.let_in(vec![(held, inside)], then, at);
                let choice = self.b.add(Term::If(absent, other, then, IfSugar::Plain), at);
                self.b.let_in(vec![(option, value)], choice, at)
            }
            StmtKind::Match(e, arms) => {
                let scrutinee = self.expr(e);
                let mut branches = Vec::new();
                let mut shared_bodies = Vec::new();
                let mut default = None;
                for arm in arms {
                    if arm.variants.is_empty() {
                        default = default.or_else(|| Some(self.way(Some(&arm.body), None, at, mode, rest)));
                    } else if default.is_none() {
                        let body = self.way(Some(&arm.body), None, at, mode, rest);
                        if let [v] = &arm.variants[..] {
                            branches.push(Branch { tag: v.text.as_str().into(), binder: None, body });
                            continue;
                        }
                        // Several variants share one body: a function that each calls.
                        let unused = self.b.fresh("unused");
                        let shared = self.b.abs(unused, None, body, arm.body.span);
                        let case = self.b.fresh("case");
                        shared_bodies.push((case.clone(), shared));
                        for v in &arm.variants {
                            let function = self.b.var(case.clone(), v.span);
                            let argument = self.b.lit(Data::Null, v.span);
                            let body = self.b.app(function, argument, v.span);
                            branches.push(Branch { tag: v.text.as_str().into(), binder: None, body });
                        }
                    }
                }
                let choice = self.b.add(Term::Case { scrutinee, branches, default }, at);
                self.b.let_in(shared_bodies, choice, at)
            }
            StmtKind::Try(body, name, handler) => {
                // The label of every error that the body can have: so it always catches, and what it gives is
                // labelled accordingly.
                let taint = self.taint_of_block(body);
                self.pc = self.pc.join(taint);
                let body = self.way(Some(body), None, at, mode, None);
                let held = self.inner_name(&name.text);
                let handler = self.way(Some(handler), Some((&name.text, held.clone())), at, mode, None);
                let label = self.label(taint, at);
                self.b.add(Term::Try { label, body, catches: Catches::All, name: held, handler }, at)
            }
            StmtKind::While(condition, max, body) => {
                let bound =
                    max.as_ref().and_then(|n| n.text.parse().ok()).map_or(Bound::Infinite, Bound::Finite);
                let vars = self.outs(stmt);
                let over = Over { vars: vars.clone(), done: vars.clone(), bound, origin: None, outs: vars };
                self.repeat(stmt, &over, body, mode, |lower| (lower.expr(condition), Vec::new()))
            }
            StmtKind::For(name, list, body) => self.for_loop(stmt, name, list, body, mode),
            // The others have no blocks.
            _ => self.b.add(Term::Unknown("statement".into()), at),
        }
    }

    /// One way through a statement; a missing block is an empty one.
    fn way(
        &mut self,
        block: Option<&Block>,
        bound: Option<(&str, Name)>,
        at: Span,
        mode: &Mode,
        rest: Option<&Rest<'_>>,
    ) -> TermId {
        let mark = self.scope.journal.len();
        let binders = self.binders.clone();
        let leave = bound.is_some();
        if let Some((source, name)) = bound {
            self.enter(source, name);
        }
        let (stmts, end) = match block {
            Some(b) => (&b.stmts[..], Span { start: b.span.end.saturating_sub(1), ..b.span }),
            None => (&[][..], at),
        };
        let falls = block.is_none_or(|b| self.c.exits.block(b).falls);
        let all = Rest { stmts, leave, next: rest.filter(|_| falls), end };
        let term = match rest {
            None => self.region(&all, mode),
            Some(_) if falls => self.deeper(&all, mode),
            Some(_) => self.seq(&all, mode),
        };
        self.scope.undo(mark);
        self.binders = binders;
        term
    }

    /// A loop with a hidden index that counts through the list. It has as many rounds as the list has items, which
    /// is its bound if that is known; the state of the last round, in which the bound ends it, has the index too.
    fn for_loop(&mut self, stmt: &Stmt, name: &ast::Name, list: &Expr, body: &Block, mode: &Mode) -> TermId {
        let at = list.span;
        let outs = self.outs(stmt);
        let vars: Arc<[String]> = outs.iter().cloned().chain([INDEX.to_string()]).collect();
        let (bound, origin) = match self.length(list) {
            // A loop without a round is no loop; one that may have one has none if there is no item.
            Some(n) => (Bound::Finite(n.max(1)), None),
            None => {
                let source = self.c.files.text(at).unwrap_or("the list");
                let origin = format!(
                    "the length of `{}`, which is known only when it runs",
                    diagnostics::clip(source)
                );
                (Bound::Infinite, Some(Name::from(origin)))
            }
        };
        let items = self.b.fresh("items");
        let value = self.expr(list);
        let zero = self.b.lit(Num::ZERO, at);
        let mark = self.scope.journal.len();
        let index = self.bind(INDEX, Taint::NONE);
        let over = Over { vars: vars.clone(), done: vars, bound, origin, outs };
        let each = self.inner_name(&name.text);
        let term = self.repeat(stmt, &over, body, mode, |lower| {
            let var = |lower: &mut Self, name: &Name| lower.b.var(name.clone(), at);
            let (now, all) = (lower.variable(INDEX, at), var(lower, &items));
            let length = lower.b.add(Term::Prim(Prim::Length, vec![all]), at);
            let more = lower.b.add(Term::Prim(Prim::Lt, vec![now, length]), at);
            let (now, all) = (lower.variable(INDEX, at), var(lower, &items));
            let item = lower.b.add(Term::Index(all, now), name.span);
            let (now, one) = (lower.variable(INDEX, at), lower.b.lit(Num::ONE, at));
            let next = lower.b.add(Term::Prim(Prim::Add, vec![now, one]), at);
            lower.enter(&name.text, each.clone());
            (more, vec![(each.clone(), item), (lower.bind(INDEX, Taint::NONE), next)])
        });
        self.scope.undo(mark);
        self.b.let_in(vec![(items, value), (index, zero)], term, stmt.span)
    }

    /// `(fix[n] (λagain. λstate. if condition then body else state)) state`, the state being the variables
    /// that the body binds for its next round and for what follows. `head` gives the condition and what is
    /// bound before each round.
    fn repeat(
        &mut self,
        stmt: &Stmt,
        over: &Over,
        body: &Block,
        mode: &Mode,
        head: impl FnOnce(&mut Self) -> (TermId, Vec<(Name, TermId)>),
    ) -> TermId {
        let at = stmt.span;
        let tagged = self.c.exits.block(body).returns;
        let start = self.state(&over.vars, tagged, at);
        let (again, state) = (self.b.fresh("again"), self.b.fresh("state"));
        let inner = Mode::Loop {
            again: again.clone(),
            vars: over.vars.clone(),
            done: over.done.clone(),
            tagged,
            binders: self.binders.len(),
        };
        let mark = self.scope.journal.len();
        let mut bindings = Vec::new();
        let held = if tagged { self.b.fresh("next") } else { state.clone() };
        let value = self.b.var(held.clone(), at);
        // A later round may have been reached on, and bind, anything that the loop touches.
        let taint = self.taint_of_stmt(stmt);
        self.pc = self.pc.join(taint);
        self.unpack(&over.vars, taint, value, at, &mut bindings);
        let outside = self.scope.journal.len();
        let (condition, each) = head(self);
        let then = self.block(body, &inner);
        let then = self.b.let_in(each, then, at);
        self.scope.undo(outside);
        if let Mode::Loop { binders, .. } = &inner {
            self.binders.truncate(*binders);
        }
        let done = self.state(&over.done, tagged, at);
        let round = self.b.add(Term::If(condition, then, done, IfSugar::Plain), at);
        let mut round = self.b.let_in(bindings, round, at);
        self.scope.undo(mark);
        if tagged {
            let scrutinee = self.b.var(state.clone(), at);
            let branches = vec![Branch { tag: "next".into(), binder: Some(held), body: round }];
            round = self.b.add(Term::Case { scrutinee, branches, default: None }, at);
        }
        let round = self.b.abs(state, None, round, at);
        let round = self.b.abs(again, None, round, at);
        let fix = self.b.add(Term::Fix { bound: over.bound, origin: over.origin.clone(), body: round }, at);
        let result = self.b.app(fix, start, at);
        let result = self.only(result, over, tagged, at);
        // The loop gives `next` or, if it returns, `return`. A block around it that wants tags gets them.
        match (tagged, mode) {
            (false, Mode::Block { tagged: true, .. }) => {
                self.b.add(Term::Tag("next".into(), Some(result)), at)
            }
            _ => result,
        }
    }

    /// Of what a loop gives, what is wanted of it.
    fn only(&mut self, result: TermId, over: &Over, tagged: bool, at: Span) -> TermId {
        if over.done == over.outs {
            return result;
        }
        // What is left out is not the only variable of the loop if any is wanted, so its state is a record.
        let select = |lower: &mut Self, held: &Name| match &over.outs[..] {
            [] => lower.b.lit(Data::Null, at),
            [one] => {
                let of = lower.b.var(held.clone(), at);
                lower.b.add(Term::Field(of, one.as_str().into()), at)
            }
            all => {
                let mut fields = Vec::with_capacity(all.len());
                for v in all {
                    let of = lower.b.var(held.clone(), at);
                    fields
                        .push((Name::from(v.as_str()), lower.b.add(Term::Field(of, v.as_str().into()), at)));
                }
                lower.b.add(Term::Record(fields), at)
            }
        };
        let all = self.b.fresh("all");
        if !tagged {
            let wanted = select(self, &all);
            return self.b.let_in(vec![(all, result)], wanted, at);
        }
        let wanted = select(self, &all);
        let next = self.b.add(Term::Tag("next".into(), Some(wanted)), at);
        let value = self.b.fresh("value");
        let of = self.b.var(value.clone(), at);
        let returned = self.b.add(Term::Tag("return".into(), Some(of)), at);
        let branches = vec![
            Branch { tag: "next".into(), binder: Some(all), body: next },
            Branch { tag: "return".into(), binder: Some(value), body: returned },
        ];
        self.b.add(Term::Case { scrutinee: result, branches, default: None }, at)
    }

    /// How many items a list has at most, as far as that is known.
    fn length(&self, e: &Expr) -> Option<u64> {
        match &e.kind {
            ExprKind::Paren(inner) => self.length(inner),
            ExprKind::List(items) => Some(items.len() as u64),
            ExprKind::Var(name) => self.scope.names.get(name)?.length,
            ExprKind::Call(name, args) => self.length_of_call(&name.text, args),
            _ => None,
        }
    }

    fn length_of_call(&self, name: &str, args: &[Expr]) -> Option<u64> {
        match (name, args) {
            ("append", [list, _]) => self.length(list)?.checked_add(1),
            ("slice", [list, from, to]) => {
                let cut = predicate::count(from).zip(predicate::count(to)).map(|(a, b)| b.saturating_sub(a));
                match (self.length(list), cut) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                }
            }
            ("range", [from, to]) => Some(predicate::count(to)?.saturating_sub(predicate::count(from)?)),
            _ => None,
        }
    }

    fn know_length(&mut self, source: &str, length: Option<u64>) {
        if length.is_some()
            && let Some(held) = self.scope.names.get_mut(source)
        {
            held.length = length;
        }
    }

    fn outs(&self, stmt: &Stmt) -> Arc<[String]> {
        self.c.facts.outs.get(&stmt.span).cloned().unwrap_or_else(|| [].into())
    }

    /// Binds a source name; its label is at most `taint` and the program counter's. The variable has that
    /// name, unless what the name means outside of the block must stay reachable.
    fn bind(&mut self, source: &str, taint: Taint) -> Name {
        let shadows = self.scope.names.get(source).is_some_and(|h| h.shadows);
        let name = if shadows { self.b.fresh(source) } else { Name::from(source) };
        let held = Held { name: name.clone(), taint: taint.join(self.pc), shadows, length: None };
        self.scope.set(source, Some(held));
        name
    }

    /// Binds a name for a block, to a variable that [`Lower::inner_name`] has given.
    fn enter(&mut self, source: &str, name: Name) {
        let before = self.scope.names.get(source).cloned();
        let held = Held { name, taint: self.pc, shadows: before.is_some(), length: None };
        self.scope.set(source, Some(held.clone()));
        self.binders.push(Binder { source: source.to_string(), held, before });
    }

    /// A name leaves its scope: it means what it did before, or nothing unless it was bound anew.
    fn leave(&mut self, binder: &Binder) {
        if binder.before.is_some() || self.scope.names.get(&binder.source) == Some(&binder.held) {
            self.scope.set(&binder.source, binder.before.clone());
        }
    }

    /// What is known of the label of an expression, beside the program counter's.
    fn taint(&self, e: &Expr) -> Taint {
        let mut taint = Taint::NONE;
        e.each_variable(&mut |name, _| {
            if let Some(held) = self.scope.names.get(name) {
                taint = taint.join(held.taint);
            }
        });
        taint
    }

    /// What is known of the label of the value of an expression: an endorsed one is trusted, though its failure is not.
    fn taint_of_value(&self, e: &Expr) -> Taint {
        match &e.kind {
            ExprKind::Paren(inner) => self.taint_of_value(inner),
            ExprKind::Endorse(value, ..) => Taint { untrusted: false, ..self.taint(value) },
            _ => self.taint(e),
        }
    }

    fn taint_of_block(&mut self, block: &Block) -> Taint {
        let mut taint = Taint::NONE;
        for stmt in &block.stmts {
            taint = taint.join(self.taint_of_stmt(stmt));
        }
        taint
    }

    /// What is known of the labels of everything that a statement binds, and of the errors it can have,
    /// beside the program counter's: whatever it reads, and whatever its calls add.
    fn taint_of_stmt(&mut self, stmt: &Stmt) -> Taint {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut taint = expressions_of(stmt).into_iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
            let runs: &[Run] = match &stmt.kind {
                StmtKind::Run(run) => std::slice::from_ref(run),
                StmtKind::Parallel { runs, .. } => runs,
                StmtKind::Guard(name, ..) => {
                    return self.scope.names.get(&name.text).map_or(taint, |h| taint.join(h.taint));
                }
                _ => &[],
            };
            for run in runs {
                taint = taint.join(self.taint_of_run(run));
            }
            for block in super::exits::blocks_of(stmt) {
                taint = taint.join(self.taint_of_block(block));
            }
            taint
        })
    }

    /// What is known of the label of a call's result, and of its errors.
    fn taint_of_run(&mut self, run: &Run) -> Taint {
        let args =
            super::check::arguments_of(run).into_iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
        match self.c.decls.callable(&run.target.text) {
            Some(s) => self.added(s, by_of(run)).join(args),
            None => args,
        }
    }

    /// What a callee adds to the labels of its arguments.
    fn added(&mut self, s: &Signature, by: Option<&str>) -> Taint {
        match s.kind {
            Kind::Tool | Kind::Task => self.c.returns(s),
            Kind::Import => {
                let Some(unit) = self.unit(s) else { return Taint::NONE };
                let lattice = &mut Lattice::new(self.c.world.lattice);
                unit.code.tools.iter().fold(Taint::NONE, |t, tool| {
                    let label = self.c.world.results.get(&*tool.name).unwrap_or(&tool.label);
                    t.join(Taint::covering(lattice, label))
                })
            }
            Kind::AgentTask => {
                let Some(agent) = by.and_then(|a| self.c.decls.agents.get(a)) else {
                    return Taint::of(&s.flow);
                };
                let tools = agent.tools.iter().filter_map(|t| self.c.decls.tools.get(t));
                let taint = tools.fold(Taint::of(&s.flow), |t, s| t.join(self.c.returns(s)));
                let keys = agent.memory.iter().flat_map(|m| &m.keys);
                keys.fold(taint, |t, k| t.join(self.memory_taint(agent, k)))
            }
            Kind::Pipeline => {
                if let Some(known) = self.results.get(&s.name.text) {
                    return *known;
                }
                let mut taint = s.params.iter().fold(Taint::NONE, |t, p| t.join(Taint::of(&p.flow)));
                // What a call of itself adds is what it adds.
                self.results.insert(s.name.text.clone(), Taint::NONE);
                if let Some(Item::Pipeline(p)) = self.c.program.items.get(s.item) {
                    for run in super::check::runs_in(&p.body) {
                        if let Some(callee) = self.c.decls.callable(&run.target.text) {
                            let added =
                                stacker::maybe_grow(64 << 10, 1 << 20, || self.added(callee, by_of(run)));
                            taint = taint.join(added);
                        }
                    }
                }
                self.results.insert(s.name.text.clone(), taint);
                taint
            }
        }
    }

    /// A variable for a name that is bound inside a block only: another one if the name means something
    /// outside, which must stay reachable.
    fn inner_name(&mut self, source: &str) -> Name {
        if self.scope.names.contains_key(source) { self.b.fresh(source) } else { source.into() }
    }

    fn variable(&mut self, source: &str, at: Span) -> TermId {
        let name = self.scope.names.get(source).map_or_else(|| source.into(), |h| h.name.clone());
        self.b.var(name, at)
    }

    /// The values of variables as one value: the value itself if it is one, otherwise a record.
    fn pack(&mut self, vars: &[String], at: Span) -> TermId {
        match vars {
            [] => self.b.lit(Data::Null, at),
            [one] => self.variable(one, at),
            all => {
                let fields = all.iter().map(|v| (Name::from(v.as_str()), self.variable(v, at))).collect();
                self.b.add(Term::Record(fields), at)
            }
        }
    }

    /// The same where a loop is left or its next round begun: the names bound for blocks inside it stay behind.
    fn pack_outside(&mut self, vars: &[String], binders: usize, at: Span) -> TermId {
        let mark = self.scope.journal.len();
        for i in (binders..self.binders.len()).rev() {
            let binder = self.binders[i].clone();
            self.leave(&binder);
        }
        let value = self.pack(vars, at);
        self.scope.undo(mark);
        value
    }

    fn state(&mut self, vars: &[String], tagged: bool, at: Span) -> TermId {
        let value = self.pack(vars, at);
        self.wrap(value, tagged, at)
    }

    fn wrap(&mut self, value: TermId, tagged: bool, at: Span) -> TermId {
        if tagged { self.b.add(Term::Tag("next".into(), Some(value)), at) } else { value }
    }

    /// Binds the variables again to what [`Lower::pack`] made of them. Each may be as it was before, and so have
    /// the label that it had.
    fn unpack(
        &mut self,
        vars: &[String],
        taint: Taint,
        value: TermId,
        at: Span,
        bindings: &mut Vec<(Name, TermId)>,
    ) {
        let before =
            |lower: &Self, v: &String| lower.scope.names.get(v).map_or(taint, |held| taint.join(held.taint));
        match vars {
            [] => bindings.push(("_".into(), value)),
            [one] => {
                let taint = before(self, one);
                bindings.push((self.bind(one, taint), value));
            }
            all => {
                let held = self.b.fresh("all");
                bindings.push((held.clone(), value));
                for v in all {
                    let of = self.b.var(held.clone(), at);
                    let field = self.b.add(Term::Field(of, v.as_str().into()), at);
                    let taint = before(self, v);
                    bindings.push((self.bind(v, taint), field));
                }
            }
        }
    }

    fn fall(&mut self, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Pipeline => {
                // The checker has seen that every path returns; only a loop without end leads here.
                let message = self.b.lit("the end of the pipeline was reached without a result", at);
                self.b.add(Term::Fail(message), at)
            }
            Mode::Test => self.b.lit(Data::Null, at),
            Mode::Block { outs, tagged, .. } => self.state(outs, *tagged, at),
            Mode::Loop { .. } => self.exit_continue(mode, at),
        }
    }

    fn exit_return(&mut self, value: TermId, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Pipeline | Mode::Test => value,
            Mode::Block { .. } | Mode::Loop { .. } => self.b.add(Term::Tag("return".into(), Some(value)), at),
        }
    }

    fn exit_break(&mut self, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Loop { done, tagged, binders, .. } => {
                let value = self.pack_outside(done, *binders, at);
                self.wrap(value, *tagged, at)
            }
            Mode::Block { around, binders, .. } => {
                let value = self.pack_outside(around, *binders, at);
                self.b.add(Term::Tag("break".into(), Some(value)), at)
            }
            // The checker has refused a `break` outside of a loop.
            Mode::Pipeline | Mode::Test => self.b.add(Term::Unknown("break".into()), at),
        }
    }

    fn exit_continue(&mut self, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Loop { again, vars, tagged, binders, .. } => {
                let next = self.pack_outside(vars, *binders, at);
                let next = self.wrap(next, *tagged, at);
                let again = self.b.var(again.clone(), at);
                self.b.app(again, next, at)
            }
            Mode::Block { around, binders, .. } => {
                let value = self.pack_outside(around, *binders, at);
                self.b.add(Term::Tag("continue".into(), Some(value)), at)
            }
            Mode::Pipeline | Mode::Test => self.b.add(Term::Unknown("continue".into()), at),
        }
    }

    fn parallel(
        &mut self,
        max: Option<&ast::Number>,
        runs: &[Run],
        at: Span,
        bindings: &mut Vec<(Name, TermId)>,
    ) {
        let (branches, taints): (Vec<TermId>, Vec<Taint>) = runs.iter().map(|r| self.run(r, None)).unzip();
        let n = max.and_then(|n| n.text.parse().ok());
        let par = self.b.add(Term::Par(n, branches), at);
        let held = self.b.fresh("parallel");
        bindings.push((held.clone(), par));
        // An error of one branch keeps all results from being seen.
        let taint = taints.into_iter().fold(Taint::NONE, Taint::join);
        for (i, run) in runs.iter().enumerate() {
            let of = self.b.var(held.clone(), run.span);
            let i = self.b.lit(Num::from(i as i64), run.span);
            let value = self.b.add(Term::Index(of, i), run.span);
            bindings.push((self.bind(&run.name.text, taint), value));
        }
    }

    /// `each[n] (λitem. body) list`: a round gives what it binds. Each variable is then the list of what the rounds
    /// have bound it to.
    fn parallel_for(
        &mut self,
        stmt: &Stmt,
        name: &ast::Name,
        list: &Expr,
        max: Option<&ast::Number>,
        body: &Block,
        bindings: &mut Vec<(Name, TermId)>,
    ) {
        let at = stmt.span;
        let outs = self.outs(stmt);
        let taint = self.taint_of_stmt(stmt);
        let length = self.length(list);
        let items = self.expr(list);
        let pc = self.pc;
        self.pc = pc.join(self.taint(list));
        let item = self.inner_name(&name.text);
        let inner = Mode::Block { outs: outs.clone(), tagged: false, around: [].into(), binders: 0 };
        let round = self.way(Some(body), Some((&name.text, item.clone())), at, &inner, None);
        self.pc = pc;
        let round = self.b.abs(item, None, round, at);
        let n = max.and_then(|n| n.text.parse().ok());
        let each = self.b.add(Term::Each(n, round, items), at);
        match &outs[..] {
            [] => bindings.push(("_".into(), each)),
            [one] => bindings.push((self.bind(one, taint), each)),
            all => {
                let held = self.b.fresh("rounds");
                bindings.push((held.clone(), each));
                for v in all {
                    let round = self.b.fresh("round");
                    let of = self.b.var(round.clone(), at);
                    let value = self.b.add(Term::Field(of, v.as_str().into()), at);
                    let value = self.b.abs(round, None, value, at);
                    let of = self.b.var(held.clone(), at);
                    let values = self.b.add(Term::Each(None, value, of), at);
                    bindings.push((self.bind(v, taint), values));
                }
            }
        }
        for v in outs.iter() {
            self.know_length(v, length);
        }
    }

    /// An assertion; a comparison that fails shows both sides.
    fn assertion(&mut self, e: &Expr, message: Option<&ast::StrLit>, at: Span) -> TermId {
        let source = self.c.files.text(e.span).unwrap_or("");
        let text = match message {
            Some(m) => format!("assertion failed: {}", m.value),
            None => format!("assertion failed: {source}"),
        };
        let mut e = e;
        while let ExprKind::Paren(inner) = &e.kind {
            e = inner;
        }
        let passed = self.b.lit(Data::Null, at);
        if let ExprKind::Binary(op, _, a, b) = &e.kind
            && let Some(prim) = prim_of(*op).filter(|_| op.precedence() == 3 || op.precedence() == 4)
        {
            let (left, right) = (self.b.fresh("left"), self.b.fresh("right"));
            let (va, vb) = (self.expr(a), self.expr(b));
            let operands = vec![self.b.var(left.clone(), a.span), self.b.var(right.clone(), b.span)];
            let condition = self.b.add(Term::Prim(prim, operands), e.span);
            let parts = vec![
                self.b.lit(&*format!("{text} (left: "), at),
                self.b.var(left.clone(), a.span),
                self.b.lit(", right: ", at),
                self.b.var(right.clone(), b.span),
                self.b.lit(")", at),
            ];
            let message = self.b.add(Term::Prim(Prim::Format, parts), at);
            let fail = self.b.add(Term::Fail(message), at);
            let test = self.b.add(Term::If(condition, passed, fail, IfSugar::Plain), at);
            return self.b.let_in(vec![(left, va), (right, vb)], test, at);
        }
        let condition = self.expr(e);
        let message = self.b.lit(&*text, at);
        let fail = self.b.add(Term::Fail(message), at);
        self.b.add(Term::If(condition, passed, fail, IfSugar::Plain), at)
    }

    fn guarded(&mut self, term: TermId, name: &str, e: &Expr, retry: u32, at: Span) -> TermId {
        match predicate::of(name, e) {
            Ok(pred) => self.b.add(Term::Guard { term, pred, retry }, at),
            Err(span) => self.b.add(Term::Unknown("guard".into()), span),
        }
    }

    // ----- calls -----

    /// A call with its clauses, and with the guard that repeats it if there is one.
    fn run(&mut self, run: &Run, guard: Option<(&Expr, u32, Span)>) -> (TermId, Taint) {
        let mut taint = self.taint_of_run(run);
        for clause in &run.clauses {
            if let ClauseKind::Use(e) = &clause.kind {
                taint = taint.join(self.taint(e));
            }
        }
        let term = self.run_inner(run);
        let term = match guard {
            Some((e, retry, at)) => self.guarded(term, &run.name.text, e, retry, at),
            None => term,
        };
        (term, taint)
    }

    fn run_inner(&mut self, run: &Run) -> TermId {
        let at = run.span;
        let Some(s) = self.c.decls.callable(&run.target.text) else {
            let Args::Positional(args) = &run.args else {
                return self.b.add(Term::Unknown(run.target.text.as_str().into()), at);
            };
            return self.call(&run.target.text, args, at);
        };
        let fields: Vec<(Name, TermId)> = match &run.args {
            Args::Named(args) => {
                args.iter().map(|(n, e)| (Name::from(n.text.as_str()), self.expr(e))).collect()
            }
            Args::Positional(args) => s
                .params
                .iter()
                .zip(args)
                .map(|(p, e)| (Name::from(p.name.text.as_str()), self.expr(e)))
                .collect(),
        };
        let args = self.b.add(Term::Record(fields), run.args_span);
        let (mut retries, mut instead, mut limit) = (0u64, None, None);
        for clause in &run.clauses {
            match &clause.kind {
                ClauseKind::Retries(n) => retries = n.text.parse().unwrap_or(0),
                ClauseKind::Use(e) => instead = Some(e),
                ClauseKind::Timeout(n) => limit = n.text.parse::<Num>().ok(),
                ClauseKind::By(_) | ClauseKind::Abort => {}
            }
        }
        let limit = limit.as_ref();
        let given =
            super::check::arguments_of(run).into_iter().fold(Taint::NONE, |t, e| t.join(self.taint(e)));
        let callee = self.callee(s, run, given);
        // The label of every error that the call can have. What a bound keeps out can't label one.
        let given = match &callee {
            Callee::Tool(_) if self.c.world.bounds.contains(&self.c.decls.handler_name(s)) => given,
            Callee::Tool(id) => {
                let params = &self.b.tools()[id.0 as usize].params;
                params.iter().fold(Taint::NONE, |t, p| t.join(given.within(&p.bound)))
            }
            Callee::Function(_) | Callee::Fixpoint(..) | Callee::Unknown => given,
        };
        let label = self.added(s, by_of(run)).join(given);
        if retries == 0 && instead.is_none() && limit.is_none() {
            return self.invoke(&callee, args, at);
        }
        // The arguments are evaluated once; a mistake in them is not the callee's failure.
        let held = self.b.fresh("args");
        let attempt = |lower: &mut Self| {
            let args = lower.b.var(held.clone(), run.args_span);
            lower.invoke_within(&callee, args, limit, at)
        };
        let body = match (retries, instead) {
            (0, None) => attempt(self),
            (0, Some(instead)) => {
                let body = attempt(self);
                let message = self.b.fresh("message");
                let handler = self.expr(instead);
                let label = self.label(label, at);
                self.b.add(Term::Try { label, body, catches: Catches::All, name: message, handler }, at)
            }
            // Without a fallback the last attempt is not protected, so that its error is the error of the call.
            (n, None) => {
                let tried = attempt(self);
                let tried = self.retry(tried, n, label, at);
                let last = attempt(self);
                self.or_else(tried, last, at)
            }
            // With one all `n + 1` attempts are; and so is what is not tried again, which is a time limit.
            (n, Some(instead)) => {
                let tried = attempt(self);
                let tried = self.retry(tried, n + 1, label, at);
                let label = self.label(label, at);
                let message = self.b.fresh("message");
                let late = self.b.add(Term::Tag("failed".into(), None), at);
                let catches = Catches::All;
                let tried =
                    self.b.add(Term::Try { label, body: tried, catches, name: message, handler: late }, at);
                let instead = self.expr(instead);
                self.or_else(tried, instead, at)
            }
        };
        self.b.let_in(vec![(held, args)], body, at)
    }

    /// `` case tried of {`done v ⇒ v, `failed ⇒ otherwise} ``
    fn or_else(&mut self, tried: TermId, otherwise: TermId, at: Span) -> TermId {
        let value = self.b.fresh("value");
        let done = self.b.var(value.clone(), at);
        let branches = vec![
            Branch { tag: "done".into(), binder: Some(value), body: done },
            Branch { tag: "failed".into(), binder: None, body: otherwise },
        ];
        self.b.add(Term::Case { scrutinee: tried, branches, default: None }, at)
    }

    /// `` (fix[n] (λagain. λlast. try[l] `done call catch not timeout m. again `failed)) `failed ``
    fn retry(&mut self, call: TermId, attempts: u64, label: Taint, at: Span) -> TermId {
        let (again, last, message) = (self.b.fresh("again"), self.b.fresh("last"), self.b.fresh("message"));
        let done = self.b.add(Term::Tag("done".into(), Some(call)), at);
        let failed = self.b.add(Term::Tag("failed".into(), None), at);
        let next = self.b.var(again.clone(), at);
        let handler = self.b.app(next, failed, at);
        let label = self.label(label, at);
        let catches = if self.c.retry_timeouts { Catches::All } else { Catches::NotTimeout };
        let body = self.b.add(Term::Try { label, body: done, catches, name: message, handler }, at);
        let body = self.b.abs(last, None, body, at);
        let body = self.b.abs(again, None, body, at);
        let fix = self.b.add(Term::Fix { bound: Bound::Finite(attempts), origin: None, body }, at);
        let start = self.b.add(Term::Tag("failed".into(), None), at);
        self.b.app(fix, start, at)
    }

    fn callee(&mut self, s: &Signature, run: &Run, given: Taint) -> Callee {
        match (s.kind, by_of(run)) {
            (Kind::Tool | Kind::Task, _) => self.tool(s).map_or(Callee::Unknown, Callee::Tool),
            (Kind::Pipeline, _) => {
                let descent = self.c.facts.descents.get(&s.name.text);
                let function = match self.again.get(&s.name.text) {
                    Some(again) => again.clone(),
                    None => {
                        let calls = descent.and_then(|d| d.calls_of(run, &s.params));
                        self.pipeline_function(s, given, calls)
                    }
                };
                match descent {
                    Some(_) => Callee::Fixpoint(function, result_of(&s.name.text), s.result.clone()),
                    None => Callee::Function(function),
                }
            }
            (Kind::AgentTask, Some(agent)) => Callee::Function(self.agent_function(s, agent)),
            (Kind::Import, _) => Callee::Function(self.import_function(s)),
            // The checker has asked for an agent.
            (Kind::AgentTask, None) => Callee::Unknown,
        }
    }

    /// A call that has so many seconds.
    fn invoke_within(&mut self, callee: &Callee, args: TermId, limit: Option<&Num>, at: Span) -> TermId {
        let call = self.invoke(callee, args, at);
        match limit {
            Some(seconds) => self.b.add(Term::Within(seconds.clone(), call), at),
            None => call,
        }
    }

    fn invoke(&mut self, callee: &Callee, args: TermId, at: Span) -> TermId {
        let function = match callee {
            Callee::Tool(id) => self.b.add(Term::Tool(*id), at),
            Callee::Function(name) | Callee::Fixpoint(name, ..) => self.b.var(name.clone(), at),
            Callee::Unknown => self.b.add(Term::Unknown("call".into()), at),
        };
        let call = self.b.app(function, args, at);
        match callee {
            Callee::Fixpoint(_, what, result) => {
                self.b.add(Term::Check(what.clone(), result.clone(), call), at)
            }
            _ => call,
        }
    }

    fn call(&mut self, name: &str, args: &[Expr], at: Span) -> TermId {
        let operands = args.iter().map(|e| self.expr(e)).collect();
        match functions::named(name) {
            Some(f) => self.b.add(Term::Prim(f.prim, operands), at),
            None => self.b.add(Term::Unknown(name.into()), at),
        }
    }

    // ----- expressions -----

    fn expr(&mut self, e: &Expr) -> TermId {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.expr_inner(e))
    }

    fn expr_inner(&mut self, e: &Expr) -> TermId {
        let at = e.span;
        match &e.kind {
            ExprKind::Str(s) => self.b.lit(&**s, at),
            ExprKind::Number(n) => match n.parse::<Num>() {
                Ok(n) => self.b.lit(n, at),
                Err(_) => self.b.add(Term::Unknown("number".into()), at),
            },
            ExprKind::Bool(b) => self.b.lit(*b, at),
            ExprKind::Null => self.b.lit(Data::Null, at),
            ExprKind::Var(name) => self.variable(name, at),
            ExprKind::Field(base, name) => {
                let optional = self.c.facts.optional_fields.contains(&at);
                let base = self.expr(base);
                self.access(base, &name.text, optional, at)
            }
            ExprKind::Index(base, index) => {
                let (base, index) = (self.expr(base), self.expr(index));
                self.b.add(Term::Index(base, index), at)
            }
            ExprKind::Record(fields) => {
                let fields =
                    fields.iter().map(|(n, e)| (Name::from(n.text.as_str()), self.expr(e))).collect();
                self.b.add(Term::Record(fields), at)
            }
            ExprKind::List(items) => {
                let items = items.iter().map(|e| self.expr(e)).collect();
                self.b.add(Term::List(items), at)
            }
            ExprKind::Template(t) => self.template(t),
            ExprKind::Paren(inner) => self.expr(inner),
            ExprKind::Unary(op, inner) => {
                let operand = self.expr(inner);
                let prim = match op {
                    UnaryOp::Not => Prim::Not,
                    UnaryOp::Neg => Prim::Neg,
                };
                self.b.add(Term::Prim(prim, vec![operand]), at)
            }
            ExprKind::Binary(op, _, a, b) => {
                let (left, right) = (self.expr(a), self.expr(b));
                match (op, prim_of(*op)) {
                    (_, Some(prim)) => self.b.add(Term::Prim(prim, vec![left, right]), at),
                    (BinaryOp::And, _) => {
                        let no = self.b.lit(false, at);
                        self.b.add(Term::If(left, right, no, IfSugar::And), at)
                    }
                    _ => {
                        let yes = self.b.lit(true, at);
                        self.b.add(Term::If(left, yes, right, IfSugar::Or), at)
                    }
                }
            }
            ExprKind::Call(name, args) => self.call(&name.text, args, at),
            ExprKind::Quarantine(prompt, ty) => {
                let result = self.c.decls.types.ty(ty, &mut Vec::new());
                let params = ModelParams {
                    result: Some(result),
                    repair: REPAIR,
                    purpose: Some("quarantine".into()),
                    ..ModelParams::default()
                };
                let system = self.b.lit("", at);
                let model = self.b.add(Term::Llm(system, Arc::new(params)), at);
                let prompt = self.expr(prompt);
                self.b.app(model, prompt, at)
            }
            ExprKind::Endorse(value, values, other) => self.endorsed(value, values, other.as_deref(), at),
            // Not in a program that was accepted.
            ExprKind::Error => self.b.add(Term::Unknown("expression".into()), at),
        }
    }

    /// `let v = value in endorse [] (if contains([…], v) then v else other)`: one of the constants, and so trusted.
    fn endorsed(&mut self, value: &Expr, values: &[Expr], other: Option<&Expr>, at: Span) -> TermId {
        let held = self.b.fresh("value");
        let found = self.expr(value);
        let permitted = values.iter().map(|e| self.expr(e)).collect();
        let permitted = self.b.add(Term::List(permitted), at);
        let asked = self.b.var(held.clone(), value.span);
        let permits = self.b.add(Term::Prim(Prim::Contains, vec![permitted, asked]), at);
        let chosen = self.b.var(held.clone(), value.span);
        let otherwise = match other {
            Some(e) => self.expr(e),
            None => {
                let text = self.b.lit("not one of the permitted values: ", at);
                let shown = self.b.var(held.clone(), value.span);
                let message = self.b.add(Term::Prim(Prim::Format, vec![text, shown]), at);
                self.b.add(Term::Fail(message), at)
            }
        };
        let choice = self.b.add(Term::If(permits, chosen, otherwise, IfSugar::Plain), at);
        let trusted = self.label(Taint::NONE, at);
        let endorsed = self.b.add(Term::Endorse(trusted, choice), at);
        self.b.let_in(vec![(held, found)], endorsed, at)
    }

    /// A field. One that may be absent is null if it is.
    fn access(&mut self, base: TermId, name: &str, optional: bool, at: Span) -> TermId {
        if !optional {
            return self.b.add(Term::Field(base, name.into()), at);
        }
        let held = self.b.fresh("record");
        let of = self.b.var(held.clone(), at);
        let key = self.b.lit(name, at);
        let has = self.b.add(Term::Prim(Prim::Has, vec![of, key]), at);
        let of = self.b.var(held.clone(), at);
        let field = self.b.add(Term::Field(of, name.into()), at);
        let null = self.b.lit(Data::Null, at);
        let choice = self.b.add(Term::If(has, field, null, IfSugar::Plain), at);
        self.b.let_in(vec![(held, base)], choice, at)
    }

    fn template(&mut self, t: &Template) -> TermId {
        if let [TemplatePart::Text(only)] = &t.parts[..] {
            return self.b.lit(&*only.value, t.span);
        }
        let parts = t
            .parts
            .iter()
            .map(|p| match p {
                TemplatePart::Text(text) => self.b.lit(&*text.value, text.span),
                TemplatePart::Hole(e) => self.expr(e),
            })
            .collect();
        self.b.add(Term::Prim(Prim::Format, parts), t.span)
    }
}

/// Where each variable is read last in a block.
fn last_reads(block: &Block) -> HashMap<String, u32> {
    let mut out: HashMap<String, u32> = HashMap::new();
    let mut read = |name: &str, at: Span| match out.get_mut(name) {
        Some(last) => *last = at.start.max(*last),
        None => {
            out.insert(name.to_string(), at.start);
        }
    };
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for stmt in &block.stmts {
            for e in expressions_of(stmt) {
                e.each_variable(&mut read);
            }
            let runs: &[Run] = match &stmt.kind {
                StmtKind::Run(run) => std::slice::from_ref(run),
                StmtKind::Parallel { runs, .. } => runs,
                StmtKind::Guard(name, ..) => {
                    read(&name.text, name.span);
                    &[]
                }
                _ => &[],
            };
            for e in runs.iter().flat_map(super::check::arguments_of) {
                e.each_variable(&mut read);
            }
            work.extend(super::exits::blocks_of(stmt));
        }
    }
    out
}

/// The hidden variable of a `for`; no source name begins with `$`.
const INDEX: &str = "$index";

/// What a loop is over.
struct Over {
    /// The variables that a round hands to the next.
    vars: Arc<[String]>,
    /// Those of them that the loop gives in the end.
    done: Arc<[String]>,
    /// Those of them that are wanted.
    outs: Arc<[String]>,
    bound: Bound,
    /// Where the bound came from, if it is not written.
    origin: Option<Name>,
}

/// What a model's tool call is about.
enum Invoked<'p> {
    Tool(ToolId),
    /// A key of the agent's memory.
    Key(&'p Param),
}

/// `{usd: …, calls: …}`, for whoever counts.
fn limits(budget: &Budget) -> Data {
    let usd = budget.usd.clone().map(|n| (Name::from("usd"), Data::Num(n)));
    let calls = budget
        .calls
        .map(|n| (Name::from("calls"), Data::Num(Num::from(i64::try_from(n).unwrap_or(i64::MAX)))));
    Data::record(usd.into_iter().chain(calls))
}

/// What a call calls.
enum Callee {
    Tool(ToolId),
    Function(Name),
    /// A function that calls itself, with what its result is called and its type. A fixpoint whose bound is reached gives its
    /// argument back (`fix[0]` is the identity), which is of another type: the bound is never reached, and a check says so.
    Fixpoint(Name, Name, Type),
    Unknown,
}

/// What checks call the result of a pipeline.
fn result_of(pipeline: &str) -> Name {
    format!("the result of `{pipeline}`").into()
}

/// The agent that a call names.
fn by_of(run: &Run) -> Option<&str> {
    run.clauses.iter().find_map(|c| match &c.kind {
        ClauseKind::By(agent) => Some(agent.text.as_str()),
        _ => None,
    })
}

/// The expressions that are directly in a statement.
fn expressions_of(stmt: &Stmt) -> Vec<&Expr> {
    match &stmt.kind {
        StmtKind::Run(run) => clause_expressions(run).collect(),
        StmtKind::Parallel { runs, .. } => runs.iter().flat_map(clause_expressions).collect(),
        StmtKind::Let(_, e)
        | StmtKind::If(e, ..)
        | StmtKind::IfLet(_, e, ..)
        | StmtKind::While(e, ..)
        | StmtKind::For(_, e, _)
        | StmtKind::ParallelFor(_, e, ..)
        | StmtKind::Match(e, _)
        | StmtKind::Assert(e, _)
        | StmtKind::Guard(_, e, _)
        | StmtKind::Return(e) => vec![e],
        StmtKind::Try(..) | StmtKind::Break | StmtKind::Continue | StmtKind::Error(_) => Vec::new(),
    }
}

fn clause_expressions(run: &Run) -> impl Iterator<Item = &Expr> {
    run.clauses.iter().filter_map(|c| match &c.kind {
        ClauseKind::Use(e) => Some(e),
        _ => None,
    })
}

/// The guard that repeats a call: a guard of its result directly after it.
pub(super) fn guard_of<'s>(run: &Run, next: &'s Stmt) -> Option<(&'s Expr, u32, Span)> {
    match &next.kind {
        StmtKind::Guard(name, e, retry) if name.text == run.name.text => {
            let retry = retry.as_ref().map_or(0, |n| n.text.parse().unwrap_or(0));
            Some((e, retry, next.span))
        }
        _ => None,
    }
}

fn prim_of(op: BinaryOp) -> Option<Prim> {
    Some(match op {
        BinaryOp::Or | BinaryOp::And => return None,
        BinaryOp::Eq => Prim::Eq,
        BinaryOp::Ne => Prim::Ne,
        BinaryOp::Lt => Prim::Lt,
        BinaryOp::Le => Prim::Le,
        BinaryOp::Gt => Prim::Gt,
        BinaryOp::Ge => Prim::Ge,
        BinaryOp::Add => Prim::Add,
        BinaryOp::Sub => Prim::Sub,
        BinaryOp::Mul => Prim::Mul,
        BinaryOp::Div => Prim::Div,
        BinaryOp::Rem => Prim::Rem,
    })
}

/// The text of a template without holes.
fn literal_text(t: &Template) -> String {
    t.parts
        .iter()
        .map(|p| match p {
            TemplatePart::Text(s) => s.value.as_str(),
            TemplatePart::Hole(_) => "",
        })
        .collect()
}

/// A template with its holes as they are written, `{name}`, and braces doubled.
fn holes_as_text(t: &Template) -> Data {
    let mut out = String::new();
    for p in &t.parts {
        match p {
            TemplatePart::Text(s) => out.push_str(&s.value.replace('{', "{{").replace('}', "}}")),
            TemplatePart::Hole(e) => {
                if let ExprKind::Var(x) = &e.kind {
                    out.push('{');
                    out.push_str(x);
                    out.push('}');
                }
            }
        }
    }
    Data::str(out)
}

/// How the runtime carries out a body: `{exec: [word, …]}`, `{builtin: name}`, `{http: {method, url}}` or
/// `{mcp: {server, tool}}`. Words and URLs contain holes `{parameter}`; braces that are text are doubled.
fn handler(body: &BodyKind) -> Option<Data> {
    let one = |name: &str, value: Data| Some(Data::record([(Name::from(name), value)]));
    match body {
        BodyKind::Exec(words) => one("exec", Data::list(words.iter().map(holes_as_text))),
        BodyKind::Builtin(name) => one("builtin", Data::str(name.value.as_str())),
        BodyKind::Http(method, url) => one(
            "http",
            Data::record([
                ("method".into(), Data::str(method.text.as_str())),
                ("url".into(), holes_as_text(url)),
            ]),
        ),
        BodyKind::Mcp(server, tool) => one(
            "mcp",
            Data::record([
                ("server".into(), Data::str(server.value.as_str())),
                ("tool".into(), Data::str(tool.value.as_str())),
            ]),
        ),
        BodyKind::Empty | BodyKind::Prompt(_) | BodyKind::Error => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No program is known to be accepted and not to have a term; a term that is not well formed is said to be our fault.
    #[test]
    fn a_term_that_is_not_well_formed_is_a_fault_of_the_compiler() {
        let at = Span { file: diagnostics::FileId(0), start: 3, end: 4 };
        let mut b = Builder::new();
        let root = b.var(Name::from("nobody"), at);
        let errors = b.finish(root, &Globals::none()).err().unwrap();
        let entry = Entry {
            name: "p".into(),
            kind: EntryKind::Pipeline,
            input: Type::record([]),
            result: Type::Null,
            span: at,
            item: 0,
        };
        let found: Vec<Diagnostic> = errors.iter().map(|e| failure(e, &entry)).collect();
        assert_eq!((found.len(), found[0].code, found[0].span), (1, "A098", Some(at)));
        assert!(found[0].message.contains("`nobody` is not resolved") && found[0].help[0].contains("report"));
    }
}
