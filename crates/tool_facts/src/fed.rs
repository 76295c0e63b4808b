//! Text of outsiders that a program itself hands to its agents, `agent.run(requests.get(url).text)`, and what
//! it does with their answers: `send_mail(to, answer)`.
//!
//! Entry point: [`fed`]. The statements of a module say which names get a part of what: assignments, loops,
//! arguments of the module's own functions, their results, and attributes of `self`. Calls by which text of
//! outsiders comes in are told by what they do (the same table as for bodies of tools), and calls that run an
//! agent by the objects that they are made on.
//!
//! Invariant: conditions are not followed, and neither is what other modules keep: a path may be missed, and
//! one that is found has each step in the text.

use crate::body;
use crate::effect::Effect;
use crate::fact::{Confidence, Evidence, Fact};
use diagnostics::{FileId, Span};
use python::{FunctionId, ObjectId, PyKind, Value, World};
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Comprehension, Decorator, Expr, ExprCall, Parameters, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Methods and functions that run an agent.
const RUNS: &[&str] = &[
    "a_generate_reply",
    "a_initiate_chat",
    "abatch",
    "achat",
    "ainvoke",
    "akickoff",
    "aquery",
    "arun",
    "astream",
    "astream_events",
    "batch",
    "call",
    "chat",
    "execute",
    "generate",
    "generate_reply",
    "initiate_chat",
    "invoke",
    "iter",
    "kickoff",
    "kickoff_async",
    "kickoff_for_each",
    "predict",
    "query",
    "run",
    "run_async",
    "run_stream",
    "run_stream_events",
    "run_streamed",
    "run_sync",
    "send_message",
    "stream",
    "stream_chat",
];
/// Functions whose result holds nothing of the text that they are given.
const FORGETS: &[&str] =
    &["len", "isinstance", "bool", "int", "float", "hash", "id", "type", "hasattr", "print"];
/// Methods by which a collection takes something in.
const TAKES: &[&str] =
    &["append", "extend", "add", "update", "insert", "appendleft", "put", "setdefault", "write"];
/// Decorators of functions that are given messages, with the packages whose they are.
const HANDLERS: &[(&str, &[&str])] = &[
    ("slack_bolt", &["event", "message", "command", "mention"]),
    ("discord", &["event", "command", "listener", "hybrid_command"]),
    ("nextcord", &["event", "command", "listener", "slash_command"]),
    ("aiogram", &["message", "message_handler"]),
    ("telebot", &["message_handler"]),
    ("pyrogram", &["on_message"]),
    ("telethon", &["on"]),
    ("chainlit", &[]),
];
/// Calls that make handlers of requests public.
const TUNNELS: &[&str] = &[
    "flask_cloudflared.run_with_cloudflared",
    "flask_ngrok.run_with_ngrok",
    "ngrok.connect",
    "ngrok.forward",
    "pycloudflared.try_cloudflare",
    "pyngrok.ngrok.connect",
];
/// Objects that are looked at from a call on.
const MAX_OBJECTS: usize = 400;
/// Functions of other modules whose calls are looked at.
const MAX_SUMMARIES: usize = 60;
/// Calls by which text comes in.
const MAX_ORIGINS: usize = 256;
/// Methods of one name that a call may be of.
const MAX_METHODS: usize = 3;

/// Text of outsiders that reaches the input or the instructions of an agent.
#[derive(Clone, Debug)]
pub struct Fed {
    /// Places of the objects that are run, or are made with the text: agents, teams, tasks and runners.
    pub agents: HashSet<Span>,
    /// True if they are made with it, as a task is with its description.
    pub made: bool,
    /// Name of the function by which the text comes in.
    pub name: String,
    /// The call.
    pub span: Span,
    /// Fact about the call.
    pub fact: Fact,
}

/// A call of the program that is given the answer of an agent.
#[derive(Clone, Debug)]
pub struct Acted {
    /// Places of the objects that are run.
    pub agents: HashSet<Span>,
    /// Name of the function that is called.
    pub name: String,
    /// The call.
    pub span: Span,
    /// Fact about the call.
    pub fact: Fact,
}

/// The text that a module hands to agents, and its calls with their answers.
#[derive(Clone, Debug, Default)]
pub struct Handed {
    /// Text of outsiders that reaches agents.
    pub fed: Vec<Fed>,
    /// Calls that are given answers of agents.
    pub acted: Vec<Acted>,
}

/// A call by which text of outsiders comes in, or that acts.
#[derive(Clone)]
struct Origin {
    name: String,
    span: Span,
    fact: Fact,
}

/// A place that may hold text.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// A name of a function.
    Local(usize, String),
    /// A name of the module.
    Global(String),
    /// An attribute of an instance.
    Attribute(String),
    /// The result of a function.
    Result(usize),
    /// The result of a call.
    Call(TextRange),
}

/// A function of the module, or the module itself.
struct Scope {
    parent: Option<usize>,
    class: Option<String>,
    name: String,
    params: Vec<String>,
    locals: HashSet<String>,
    name_at: Span,
}

/// The facts of a function of another module.
#[derive(Clone, Default)]
struct Summary {
    origin: Option<Origin>,
    act: Option<Origin>,
    agents: HashSet<Span>,
}

/// Finds the text of outsiders that a module hands to agents, and what it does with their answers.
pub(crate) fn fed(world: &mut World<'_>, file: FileId) -> Handed {
    let sources = world.sources();
    let Some(module) = sources.of_file(file) else { return Handed::default() };
    let Some(source) = sources.get(module) else { return Handed::default() };
    let mut made: HashMap<Span, Vec<ObjectId>> = HashMap::new();
    for (id, object) in world.objects() {
        if object.span.file == file && object.class.is_none() {
            made.entry(object.span).or_default().push(id);
        }
    }
    let mut builder = Builder {
        module,
        made,
        scopes: Vec::new(),
        defined: HashMap::new(),
        methods: HashMap::new(),
        keys: HashMap::new(),
        next: Vec::new(),
        origins: Vec::new(),
        given: Vec::new(),
        answers: Vec::new(),
        acts: Vec::new(),
        summaries: HashMap::new(),
        elsewhere: HashMap::new(),
        scope: 0,
        now: Vec::new(),
        world,
    };
    for (id, f) in builder.world.functions() {
        if f.class.is_some() && f.span.file != file {
            builder.elsewhere.entry(f.name.to_string()).or_default().push(id);
        }
    }
    builder.scopes.push(Scope {
        parent: None,
        class: None,
        name: String::new(),
        params: Vec::new(),
        locals: HashSet::new(),
        name_at: source.span(TextRange::default()),
    });
    let mut found = Definitions { builder: &mut builder, class: None, scope: 0 };
    source.body().iter().for_each(|s| found.visit_stmt(s));
    builder.all(source.body());
    builder.finish()
}

/// Collects the functions of a module, with the names that each assigns.
struct Definitions<'b, 'w, 'a> {
    builder: &'b mut Builder<'w, 'a>,
    class: Option<String>,
    scope: usize,
}

fn names(parameters: &Parameters) -> Vec<String> {
    parameters.iter().map(|p| p.name().id.to_string()).collect()
}

impl<'t> SourceOrderVisitor<'t> for Definitions<'_, '_, '_> {
    fn visit_stmt(&mut self, stmt: &'t Stmt) {
        match stmt {
            Stmt::FunctionDef(def) => {
                let name_at = self.builder.span(def.name.range());
                let params = names(&def.parameters);
                let scope = Scope {
                    parent: Some(self.scope),
                    class: self.class.clone(),
                    name: def.name.to_string(),
                    locals: params.iter().cloned().collect(),
                    params,
                    name_at,
                };
                let index = self.builder.scopes.len();
                self.builder.scopes.push(scope);
                match &self.class {
                    Some(_) => self.builder.methods.entry(def.name.to_string()).or_default().push(index),
                    None => {
                        self.builder.defined.insert((self.scope, def.name.to_string()), index);
                        if self.scope != 0 {
                            self.builder.scopes[self.scope].locals.insert(def.name.to_string());
                        }
                    }
                }
                let outer = (std::mem::replace(&mut self.scope, index), self.class.take());
                def.body.iter().for_each(|s| self.visit_stmt(s));
                (self.scope, self.class) = outer;
            }
            Stmt::ClassDef(def) => {
                let outer = self.class.replace(def.name.to_string());
                stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                    def.body.iter().for_each(|s| self.visit_stmt(s))
                });
                self.class = outer;
            }
            Stmt::Global(s) => {
                for name in &s.names {
                    self.builder.scopes[self.scope].locals.remove(name.id.as_str());
                }
            }
            _ => stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt)),
        }
    }

    fn visit_expr(&mut self, expr: &'t Expr) {
        if let Expr::Name(name) = expr
            && name.ctx.is_store()
            && self.scope != 0
        {
            self.builder.scopes[self.scope].locals.insert(name.id.to_string());
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
    }
}

/// The callee of a call.
enum Callee {
    /// A function of the module.
    Here(Vec<usize>),
    /// A function of another module.
    There(FunctionId),
    /// Something else.
    Other,
}

struct Builder<'w, 'a> {
    world: &'w mut World<'a>,
    module: usize,
    /// Objects that calls of the module make.
    made: HashMap<Span, Vec<ObjectId>>,
    scopes: Vec<Scope>,
    /// Functions by the function that they stand in, and their name.
    defined: HashMap<(usize, String), usize>,
    methods: HashMap<String, Vec<usize>>,
    keys: HashMap<Key, usize>,
    /// Where what something holds goes.
    next: Vec<Vec<usize>>,
    /// Calls by which text comes in, and what holds it.
    origins: Vec<(Origin, usize)>,
    /// Agents with what they are given.
    given: Vec<(HashSet<Span>, Vec<usize>, bool)>,
    /// Agents that are run, and what holds the answer.
    answers: Vec<(HashSet<Span>, usize)>,
    /// Calls that act, with what they are given.
    acts: Vec<(Origin, Vec<usize>)>,
    summaries: HashMap<FunctionId, Summary>,
    /// Methods of other modules by their names.
    elsewhere: HashMap<String, Vec<FunctionId>>,
    scope: usize,
    /// The parts of the expression that is looked at.
    now: Vec<usize>,
}

impl Builder<'_, '_> {
    fn span(&self, range: TextRange) -> Span {
        self.world.span(self.module, range)
    }

    fn node(&mut self, key: Key) -> usize {
        let fresh = self.keys.len();
        let index = *self.keys.entry(key).or_insert(fresh);
        if index == self.next.len() {
            self.next.push(Vec::new());
        }
        index
    }

    fn flows(&mut self, from: &[usize], to: usize) {
        for from in from {
            if *from != to && !self.next[*from].contains(&to) {
                self.next[*from].push(to);
            }
        }
    }

    /// The name as the current function sees it.
    fn named(&mut self, name: &str) -> usize {
        let mut at = Some(self.scope);
        while let Some(scope) = at {
            if self.scopes[scope].locals.contains(name) {
                return self.node(Key::Local(scope, name.to_string()));
            }
            at = self.scopes[scope].parent;
        }
        self.node(Key::Global(name.to_string()))
    }

    fn all(&mut self, body: &[Stmt]) {
        body.iter().for_each(|s| self.visit_stmt(s));
    }

    /// The parts of an expression.
    fn of(&mut self, expr: &Expr) -> Vec<usize> {
        let outer = std::mem::take(&mut self.now);
        self.visit_expr(expr);
        std::mem::replace(&mut self.now, outer)
    }

    /// Something is assigned.
    fn assign(&mut self, target: &Expr, from: &[usize]) {
        if from.is_empty() {
            return;
        }
        match target {
            Expr::Name(name) => {
                let to = self.named(&name.id);
                self.flows(from, to);
            }
            Expr::Tuple(t) => t.elts.iter().for_each(|e| self.assign(e, from)),
            Expr::List(l) => l.elts.iter().for_each(|e| self.assign(e, from)),
            Expr::Starred(s) => self.assign(&s.value, from),
            Expr::Attribute(a) if root(&a.value) == Some("self") => {
                let to = self.node(Key::Attribute(a.attr.to_string()));
                self.flows(from, to);
            }
            // A part of something makes the whole hold it.
            Expr::Attribute(a) => stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.assign(&a.value, from)),
            Expr::Subscript(s) => stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.assign(&s.value, from)),
            _ => {}
        }
    }

    fn comprehension(&mut self, generators: &[Comprehension], elements: &[&Expr]) {
        for generator in generators {
            let from = self.of(&generator.iter);
            // Its names are those of the function here: two of one name are taken for one.
            self.assign(&generator.target, &from);
        }
        for element in elements {
            let of = self.of(element);
            self.now.extend(of);
        }
    }

    fn callee(&mut self, call: &ExprCall) -> Callee {
        match &*call.func {
            Expr::Name(name) => {
                let mut at = Some(self.scope);
                while let Some(scope) = at {
                    if let Some(function) = self.defined.get(&(scope, name.id.to_string())) {
                        return Callee::Here(vec![*function]);
                    }
                    at = self.scopes[scope].parent;
                }
                self.global(&name.id).map_or(Callee::Other, |v| self.function_of(&v, None))
            }
            Expr::Attribute(a) => {
                let method = a.attr.as_str();
                let this = matches!(&*a.value, Expr::Name(n) if matches!(n.id.as_str(), "self" | "cls"));
                if !this
                    && let Expr::Name(n) = &*a.value
                    && let Some(value) = self.global(&n.id)
                    && matches!(value.kind, PyKind::Module(_) | PyKind::Class(_) | PyKind::Object(_))
                {
                    match self.function_of(&value, Some(method)) {
                        Callee::Other => {}
                        found => return found,
                    }
                }
                if self.made.contains_key(&self.span(call.range())) {
                    return Callee::Other;
                }
                let class = this.then(|| self.class()).flatten();
                let here: Vec<usize> = self.methods.get(method).cloned().unwrap_or_default();
                let own: Vec<usize> =
                    here.iter().copied().filter(|s| this && self.scopes[*s].class == class).collect();
                if !own.is_empty() {
                    return Callee::Here(own);
                }
                if !here.is_empty() && here.len() <= MAX_METHODS {
                    return Callee::Here(here);
                }
                match self.elsewhere.get(method).map(Vec::as_slice) {
                    Some([one]) => Callee::There(*one),
                    _ => Callee::Other,
                }
            }
            _ => Callee::Other,
        }
    }

    /// The class of the method that is looked at.
    fn class(&self) -> Option<String> {
        let mut at = Some(self.scope);
        while let Some(scope) = at {
            if let Some(class) = &self.scopes[scope].class {
                return Some(class.clone());
            }
            at = self.scopes[scope].parent;
        }
        None
    }

    fn global(&self, name: &str) -> Option<Value> {
        self.world.globals(self.module).into_iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone())
    }

    /// The function that a value, or a member of it, is.
    fn function_of(&mut self, value: &Value, member: Option<&str>) -> Callee {
        let found = match (&value.kind, member) {
            (PyKind::Function(f) | PyKind::Bound(_, f), None) => Some(*f),
            (PyKind::Module(m), Some(name)) => {
                let all = self.world.globals(*m);
                let value = all.into_iter().find(|(n, _)| *n == name).map(|(_, v)| v.kind.clone());
                match value {
                    Some(PyKind::Function(f)) => Some(f),
                    _ => None,
                }
            }
            (PyKind::Class(c), Some(name)) => self.method_of(*c, name),
            (PyKind::Object(o), Some(name)) => {
                self.world.object(*o).class.and_then(|c| self.method_of(c, name))
            }
            _ => None,
        };
        let Some(function) = found else { return Callee::Other };
        let at = self.world.function(function).name_span;
        match self.scopes.iter().position(|s| s.name_at == at && !s.name.is_empty()) {
            Some(scope) => Callee::Here(vec![scope]),
            None => Callee::There(function),
        }
    }

    fn method_of(&self, class: python::ClassId, name: &str) -> Option<FunctionId> {
        match self.world.class_lookup(class, name)?.0.kind {
            PyKind::Function(f) => Some(f),
            _ => None,
        }
    }

    /// The calls of a function of another module by which text comes in, and the agents that it runs.
    fn summary(&mut self, function: FunctionId) -> Summary {
        if let Some(known) = self.summaries.get(&function) {
            return known.clone();
        }
        let mut summary = Summary::default();
        if self.summaries.len() < MAX_SUMMARIES {
            let made = body::calls(self.world, function);
            let name = self.world.function(function).name.to_string();
            for id in made.objects {
                if summary.origin.is_none()
                    && let Some(fact) = body::untrusted(self.world, id)
                {
                    let fact = Fact { confidence: fact.confidence.min(Confidence::Likely), ..fact };
                    summary.origin = Some(Origin { name: name.clone(), span: fact.evidence.span(), fact });
                }
                if summary.act.is_none()
                    && !is_run(self.world, id)
                    && let Some(fact) = body::acting(self.world, id)
                {
                    let fact = Fact { confidence: fact.confidence.min(Confidence::Likely), ..fact };
                    summary.act = Some(Origin { name: name.clone(), span: fact.evidence.span(), fact });
                }
                if is_run(self.world, id) {
                    summary.agents.extend(reached(self.world, id));
                }
            }
        }
        self.summaries.insert(function, summary.clone());
        summary
    }

    fn comes_in(&mut self, origin: Origin, at: usize) {
        if self.origins.len() < MAX_ORIGINS {
            self.origins.push((origin, at));
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let span = self.span(call.range());
        let on = match &*call.func {
            Expr::Attribute(a) => self.of(&a.value),
            Expr::Name(_) => Vec::new(),
            other => self.of(other),
        };
        let mut by_position: Vec<Vec<usize>> = Vec::new();
        for arg in &call.arguments.args {
            let of = self.of(arg);
            by_position.push(of);
        }
        let mut by_keyword: Vec<(Option<String>, Vec<usize>)> = Vec::new();
        for keyword in &call.arguments.keywords {
            let of = self.of(&keyword.value);
            by_keyword.push((keyword.arg.as_ref().map(|a| a.to_string()), of));
        }
        let args: Vec<usize> =
            by_position.iter().flatten().chain(by_keyword.iter().flat_map(|(_, of)| of)).copied().collect();
        let result = self.node(Key::Call(call.range()));
        let short = match &*call.func {
            Expr::Attribute(a) => a.attr.as_str(),
            Expr::Name(n) => n.id.as_str(),
            _ => "",
        };
        match self.callee(call) {
            Callee::Here(functions) => {
                for function in functions {
                    let method = self.scopes[function].class.is_some();
                    let skip = usize::from(
                        method
                            && matches!(
                                self.scopes[function].params.first().map(String::as_str),
                                Some("self" | "cls")
                            ),
                    );
                    let params = self.scopes[function].params.clone();
                    for (i, of) in by_position.iter().enumerate() {
                        let Some(param) = params.get(i + skip).or(params.last()) else { continue };
                        let to = self.node(Key::Local(function, param.clone()));
                        self.flows(of, to);
                    }
                    for (name, of) in &by_keyword {
                        let param = name.as_ref().and_then(|n| params.iter().find(|p| *p == n));
                        let Some(param) = param.or(params.last()) else { continue };
                        let to = self.node(Key::Local(function, param.clone()));
                        self.flows(of, to);
                    }
                    let of = self.node(Key::Result(function));
                    self.flows(&[of], result);
                }
            }
            Callee::There(function) => {
                let summary = self.summary(function);
                if let Some(origin) = summary.origin {
                    self.comes_in(Origin { span, ..origin }, result);
                }
                if let Some(act) = summary.act {
                    self.acts.push((Origin { span, ..act }, args.clone()));
                }
                if !summary.agents.is_empty() {
                    self.answers.push((summary.agents.clone(), result));
                    self.given.push((summary.agents, args.clone(), false));
                }
                self.flows(&args, result);
            }
            Callee::Other => {
                if !FORGETS.contains(&short) {
                    self.flows(&args, result);
                    self.flows(&on, result);
                }
                if TAKES.contains(&short)
                    && let Expr::Attribute(a) = &*call.func
                {
                    self.assign(&a.value, &args);
                }
                for id in self.made.get(&span).cloned().unwrap_or_default() {
                    if let Some(fact) = body::untrusted(self.world, id)
                        && !self.origins.iter().any(|(o, _)| o.span == span)
                    {
                        let name = self.world.object(id).callee.to_string();
                        self.comes_in(Origin { name, span, fact }, result);
                    }
                    // Running an agent is no action of the program.
                    if let Some(fact) = body::acting(self.world, id)
                        && !is_run(self.world, id)
                        && !self.acts.iter().any(|(o, _)| o.span == span)
                    {
                        let name = self.world.object(id).callee.to_string();
                        self.acts.push((Origin { name, span, fact }, args.clone()));
                    }
                    if is_run(self.world, id) {
                        let agents = reached(self.world, id);
                        self.answers.push((agents.clone(), result));
                        self.given.push((agents, args.clone(), false));
                    } else if !args.is_empty() && self.world.object(id).base.is_none() {
                        // What an agent or a task is made with.
                        self.given.push((HashSet::from([span]), args.clone(), true));
                    }
                }
            }
        }
        self.now.push(result);
    }

    /// Text of messages is given to functions that a framework of bots calls.
    fn handler(&mut self, function: usize, decorators: &[Decorator]) {
        let at = self.scopes[function].name_at;
        let found = self.world.functions().find(|(_, f)| f.name_span == at).map(|(id, _)| id);
        let values: Vec<Value> =
            found.map(|f| self.world.function(f).decorators.to_vec()).unwrap_or_default();
        for (value, written) in values.iter().zip(decorators) {
            let Some(name) = self.world.name_of(value) else { continue };
            let parts: Vec<&str> = name.split('.').collect();
            let (Some(package), Some(last)) = (parts.first(), parts.last()) else { continue };
            let bot = HANDLERS
                .iter()
                .any(|(p, methods)| p == package && (methods.is_empty() || methods.contains(last)));
            // `@app.post("/webhook")`.
            let path = self
                .world
                .object_of(value)
                .and_then(|(_, o)| o.args.first())
                .and_then(|a| self.world.str(&a.value));
            let hook = matches!(*last, "post" | "route" | "api_route")
                && (path.is_some_and(|p| p.to_ascii_lowercase().contains("webhook")) || self.has_tunnel());
            if *package == "chainlit" || !(bot || hook) {
                continue;
            }
            let span = self.span(written.range());
            let effect = if bot { Effect::MessageRead } else { Effect::PublicRead };
            let evidence = Evidence::Call { callee: Arc::from(&*name), span };
            let fact = Fact { effect, evidence, confidence: Confidence::Likely };
            let name = self.scopes[function].name.clone();
            let params = self.scopes[function].params.clone();
            for param in params.iter().filter(|p| !matches!(p.as_str(), "self" | "cls")) {
                let to = self.node(Key::Local(function, param.clone()));
                self.comes_in(Origin { name: name.clone(), span, fact: fact.clone() }, to);
            }
            // `flask.request` is the request in hand.
            let is_request = |v: &Value| self.world.name_of(v).is_some_and(|n| body::REQUESTS.contains(&&*n));
            let requests: Vec<String> = self
                .world
                .globals(self.module)
                .into_iter()
                .filter(|(_, v)| !bot && is_request(v))
                .map(|(name, _)| name.to_string())
                .collect();
            for request in requests {
                let to = self.node(Key::Global(request));
                self.comes_in(Origin { name: name.clone(), span, fact: fact.clone() }, to);
            }
        }
    }

    /// Returns true if the program opens a tunnel by which anyone reaches its handlers.
    fn has_tunnel(&self) -> bool {
        self.world.objects().any(|(_, o)| TUNNELS.contains(&&*o.callee))
    }

    /// The nodes that a node's content reaches.
    fn from(&self, start: usize) -> Vec<bool> {
        let mut seen = vec![false; self.next.len()];
        let mut todo = vec![start];
        while let Some(at) = todo.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                todo.extend(&self.next[at]);
            }
        }
        seen
    }

    fn finish(self) -> Handed {
        let mut out = Handed::default();
        for (origin, start) in &self.origins {
            let seen = self.from(*start);
            for (agents, args, made) in &self.given {
                if args.iter().any(|a| seen[*a]) {
                    let Origin { name, span, fact } = origin.clone();
                    out.fed.push(Fed { agents: agents.clone(), made: *made, name, span, fact });
                }
            }
        }
        for (agents, start) in &self.answers {
            let seen = self.from(*start);
            for (act, args) in &self.acts {
                if args.iter().any(|a| seen[*a]) {
                    let Origin { name, span, fact } = act.clone();
                    out.acted.push(Acted { agents: agents.clone(), name, span, fact });
                }
            }
        }
        out
    }
}

fn is_id(key: &Expr) -> bool {
    matches!(key, Expr::StringLiteral(text) if text.value.to_str() == "id")
}

/// The name at the beginning of an attribute: `self` of `self.state.page`.
fn root(expr: &Expr) -> Option<&str> {
    let mut at = expr;
    loop {
        match at {
            Expr::Name(name) => return Some(&name.id),
            Expr::Attribute(a) => at = &a.value,
            _ => return None,
        }
    }
}

fn is_run(world: &World<'_>, id: ObjectId) -> bool {
    let object = world.object(id);
    object.class.is_none()
        && RUNS.contains(&object.short())
        && !matches!(object.package(), "subprocess" | "asyncio")
}

/// Places of the objects that a call is made on, or is given.
pub(crate) fn reached(world: &World<'_>, id: ObjectId) -> HashSet<Span> {
    let mut seen: HashSet<ObjectId> = HashSet::from([id]);
    let mut out = HashSet::new();
    let mut todo: Vec<Value> = vec![Value::new(PyKind::Object(id), world.object(id).span)];
    for _ in 0..MAX_OBJECTS {
        let Some(value) = todo.pop() else { break };
        match &value.kind {
            PyKind::Object(o) | PyKind::Member(o, _) | PyKind::Bound(o, _) => {
                let object = world.object(*o);
                out.insert(object.span);
                if *o != id && !seen.insert(*o) {
                    continue;
                }
                todo.extend(object.args.iter().map(|a| a.value.clone()));
                todo.extend(object.attrs.iter().map(|(_, v)| v.clone()));
                todo.extend(object.base.map(|b| Value::new(PyKind::Object(b), object.span)));
                // A builder has its parts by calls: `graph.add_node("a", agent)`.
                todo.extend(
                    object.calls.iter().flat_map(|c| &world.object(c.result).args).map(|a| a.value.clone()),
                );
            }
            PyKind::List(list) | PyKind::Either(list) => todo.extend(world.list(*list).items.iter().cloned()),
            PyKind::Dict(dict) => todo.extend(world.dict(*dict).entries.iter().map(|(_, v)| v.clone())),
            _ => {}
        }
    }
    out
}

impl<'t> SourceOrderVisitor<'t> for Builder<'_, '_> {
    fn visit_stmt(&mut self, stmt: &'t Stmt) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match stmt {
            Stmt::FunctionDef(def) => {
                let at = self.span(def.name.range());
                let Some(index) = self.scopes.iter().position(|s| s.name_at == at && !s.name.is_empty())
                else {
                    return;
                };
                let outer = std::mem::replace(&mut self.scope, index);
                self.handler(index, &def.decorator_list);
                self.all(&def.body);
                self.scope = outer;
            }
            Stmt::ClassDef(def) => self.all(&def.body),
            Stmt::Assign(s) => {
                let from = self.of(&s.value);
                s.targets.iter().for_each(|t| self.assign(t, &from));
            }
            Stmt::AnnAssign(s) => {
                if let Some(value) = &s.value {
                    let from = self.of(value);
                    self.assign(&s.target, &from);
                }
            }
            Stmt::AugAssign(s) => {
                let from = self.of(&s.value);
                self.assign(&s.target, &from);
            }
            Stmt::For(s) => {
                let from = self.of(&s.iter);
                self.assign(&s.target, &from);
                self.all(&s.body);
                self.all(&s.orelse);
            }
            Stmt::With(s) => {
                for item in &s.items {
                    let from = self.of(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.assign(target, &from);
                    }
                }
                self.all(&s.body);
            }
            Stmt::Return(s) => {
                if let Some(value) = &s.value {
                    let from = self.of(value);
                    let to = self.node(Key::Result(self.scope));
                    self.flows(&from, to);
                }
            }
            _ => walk_stmt(self, stmt),
        });
    }

    fn visit_expr(&mut self, expr: &'t Expr) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match expr {
            Expr::Name(name) => {
                let of = self.named(&name.id);
                self.now.push(of);
            }
            Expr::Attribute(a) if root(&a.value) == Some("self") => {
                let mut at = expr;
                while let Expr::Attribute(a) = at {
                    let of = self.node(Key::Attribute(a.attr.to_string()));
                    self.now.push(of);
                    at = &a.value;
                }
            }
            // The number that a service gave something holds nothing of what it says.
            Expr::Attribute(a) if a.attr.as_str() == "id" => {
                self.of(&a.value);
            }
            Expr::Subscript(s) if is_id(&s.slice) => {
                self.of(&s.value);
            }
            Expr::Call(call) => self.call(call),
            Expr::ListComp(c) => self.comprehension(&c.generators, &[&c.elt]),
            Expr::SetComp(c) => self.comprehension(&c.generators, &[&c.elt]),
            Expr::Generator(c) => self.comprehension(&c.generators, &[&c.elt]),
            Expr::DictComp(c) => {
                let elements: Vec<&Expr> = c.key.as_deref().into_iter().chain([&*c.value]).collect();
                self.comprehension(&c.generators, &elements);
            }
            Expr::Named(n) => {
                let from = self.of(&n.value);
                self.assign(&n.target, &from);
                self.now.extend(from);
            }
            // A test says little of what it tests.
            Expr::If(i) => {
                for side in [&i.body, &i.orelse] {
                    let of = self.of(side);
                    self.now.extend(of);
                }
                self.of(&i.test);
            }
            Expr::Compare(_) => {
                let outer = std::mem::take(&mut self.now);
                walk_expr(self, expr);
                self.now = outer;
            }
            Expr::Yield(y) => {
                if let Some(value) = &y.value {
                    let from = self.of(value);
                    let to = self.node(Key::Result(self.scope));
                    self.flows(&from, to);
                }
            }
            _ => walk_expr(self, expr),
        });
    }
}
