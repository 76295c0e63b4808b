//! Reading a module: which value goes where, as its statements say.

use super::{CallFacts, Callee, Given, How, Key, MadeClass, Origin, Site, Steps, Way, reached};
use crate::body;
use crate::effect::Effect;
use crate::fact::Fact;
use crate::model_calls;
use diagnostics::{FileId, Span};
use python::{FunctionId, Object, ObjectId, ParamKind, PyKind, Value, World};
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{BoolOp, CmpOp, Comprehension, Decorator, Expr, ExprCall, Operator, Parameters, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Methods that ask a model if they are called on a client or a framework, beside those of
/// [`model_calls`].
const ASK: &[&str] = &[
    "achat",
    "call",
    "converse",
    "invoke_agent",
    "invoke_model",
    "iter",
    "query",
    "run_stream_events",
    "send_message",
    "send_message_async",
    "stream_chat",
    "structured_predict",
    "astructured_predict",
];
/// Clients of clouds by whose methods models are asked.
const CLOUDS: &[(&str, &[&str])] =
    &[("boto3", &["converse", "converse_stream", "invoke_agent", "invoke_model"])];
/// Decorators of methods that are steps of a flow, by the first parts of their packages.
const STEPS: &[(&str, &[&str])] = &[
    ("crewai", &["start", "listen", "router"]),
    ("llama_index", &["step"]),
    ("workflows", &["step"]),
    ("llama_agents", &["step"]),
    ("agent_framework", &["handler"]),
    ("autogen_core", &["message_handler", "event", "rpc", "default_subscription"]),
];
/// Base classes whose methods of these names are steps, by the first parts of their packages.
const STEP_CLASSES: &[(&str, &[&str])] =
    &[("pydantic_graph", &["run"]), ("pocketflow", &["prep", "exec", "post"])];
/// Decorators of functions that are given messages, with the packages whose they are.
const HANDLERS: &[(&str, &[&str])] = &[
    ("slack_bolt", &["event", "message", "command", "mention"]),
    ("discord", &["event", "command", "listener", "hybrid_command"]),
    ("nextcord", &["event", "command", "listener", "slash_command"]),
    ("aiogram", &["message", "message_handler"]),
    ("telebot", &["message_handler"]),
    ("pyrogram", &["on_message"]),
    ("telethon", &["on"]),
];
/// Methods that are given mails, by the first parts of the packages of their classes' bases. The empty
/// package means any class.
const MAIL_HANDLERS: &[(&str, &str)] = &[("smtpd", "process_message"), ("", "handle_DATA")];
/// Calls that make handlers of requests public.
const TUNNELS: &[&str] = &[
    "flask_cloudflared.run_with_cloudflared",
    "flask_ngrok.run_with_ngrok",
    "ngrok.connect",
    "ngrok.forward",
    "pycloudflared.try_cloudflare",
    "pyngrok.ngrok.connect",
];
/// Variables of the environment in which workflows of GitHub hand on what anyone has written.
const EVENT_TEXTS: &[&str] = &[
    "COMMENT_BODY",
    "COMMIT_MESSAGE",
    "DISCUSSION_BODY",
    "ISSUE_BODY",
    "ISSUE_TITLE",
    "PR_BODY",
    "PR_DIFF",
    "PR_TITLE",
    "PULL_REQUEST_BODY",
    "PULL_REQUEST_TITLE",
];
/// Objects of one call that are looked at.
const MAX_OBJECTS_OF_CALL: usize = 6;
/// Parts of a chain of names.
const MAX_CHAIN: usize = 16;

/// Returns true if a call asks a model.
fn is_run(world: &World<'_>, object: &Object) -> bool {
    if object.class.is_some() {
        return false;
    }
    let short = object.short();
    if model_calls::is_asking(object) {
        return !matches!(object.package(), "subprocess" | "asyncio");
    }
    let of_models = model_calls::of_models(&object.callee) || object.package() == "workflows";
    of_models && ASK.contains(&short)
        || CLOUDS.iter().any(|(package, methods)| object.package() == *package && methods.contains(&short))
        || matches!(short, "post" | "request" | "urlopen")
            && object.args.iter().any(|a| is_model_address(world, &a.value))
        || body::starts_model(world, object)
        // `pipeline("summarization")(text)`
        || short == "__call__" && object.callee.starts_with("transformers.pipeline.")
}

fn is_model_address(world: &World<'_>, url: &Value) -> bool {
    // `urlopen(Request(url, data))`
    if let PyKind::Object(id) = url.kind
        && world.object(id).short() == "Request"
        && let Some(inner) = world.object(id).args.first()
        && !matches!(inner.value.kind, PyKind::Object(_))
    {
        return is_model_address(world, &inner.value);
    }
    let Some(pieces) = world.text_of(world.resolve_env(url)) else { return false };
    let texts = || {
        pieces.iter().filter_map(|p| match p {
            python::Piece::Text(text) => Some(&**text),
            python::Piece::Hole(..) => None,
        })
    };
    let host = texts().next().and_then(body::fixed_host);
    host.is_some_and(|h| model_calls::HOSTS.contains(&h))
        || texts()
            .next_back()
            .is_some_and(|t| model_calls::ENDPOINTS.iter().any(|p| t.trim_end_matches('/').ends_with(p)))
}

fn callee(world: &World<'_>, function: FunctionId) -> Callee {
    let f = world.function(function);
    let params: Vec<String> = f.params.iter().map(|p| p.name.to_string()).collect();
    let of_kind = |kind| f.params.iter().find(|p| p.kind == kind).map(|p| p.name.to_string());
    let (rest, keywords) = (of_kind(ParamKind::Rest), of_kind(ParamKind::Keywords));
    Callee { at: f.name_span, skip: params.len() - f.own_params().len(), params, rest, keywords }
}

/// The function that a value is, through decorators of frameworks and `functools.partial`.
fn function_in(world: &World<'_>, value: &Value) -> Option<FunctionId> {
    match &value.kind {
        PyKind::Function(f) | PyKind::Bound(_, f) => Some(*f),
        PyKind::Object(id) => {
            let object = world.object(*id);
            let mut given = object.args.iter().filter_map(|a| match a.value.kind {
                PyKind::Function(f) | PyKind::Bound(_, f) => Some(f),
                _ => None,
            });
            given.next().filter(|_| given.next().is_none() && object.class.is_none() && object.base.is_none())
        }
        _ => None,
    }
}

/// The call at the beginning of a chain of calls of methods.
fn beginning<'w>(world: &'w World<'_>, id: ObjectId) -> &'w Object {
    let mut at = world.object(id);
    for _ in 0..MAX_CHAIN {
        match at.base {
            Some(base) => at = world.object(base),
            None => break,
        }
    }
    at
}

impl Steps {
    /// Reads the module of a file, which is the main module of the world.
    pub(crate) fn read(&mut self, world: &World<'_>, file: FileId) {
        self.look_at_objects(world);
        for (call, functions) in world.entries_of_calls() {
            if self.files.contains(&call.file) {
                let known = self.entered.entry(call).or_default();
                for function in functions.iter().map(|f| callee(world, *f)) {
                    if !known.iter().any(|k| k.at == function.at) {
                        known.push(function);
                    }
                }
            }
        }
        let sources = world.sources();
        let Some(module) = sources.of_file(file) else { return };
        let Some(source) = sources.get(module) else { return };
        let globals = world.globals(module).into_iter().map(|(n, v)| (n.to_string(), v.clone())).collect();
        let mut objects: HashMap<Span, Vec<ObjectId>> = HashMap::new();
        for (id, object) in world.objects().filter(|(_, o)| o.span.file == file) {
            objects.entry(object.span).or_default().push(id);
        }
        let functions = world.functions().map(|(id, f)| (f.name_span, id)).collect();
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder).into();
        let mut module = Module {
            folder,
            steps: self,
            world,
            module,
            globals,
            objects,
            functions,
            scopes: Vec::new(),
            by_place: HashMap::new(),
            defined: HashMap::new(),
            methods: HashMap::new(),
            scope: 0,
            now: Vec::new(),
            tests: Vec::new(),
        };
        module.scopes.push(Scope {
            parent: None,
            class: None,
            name: String::new(),
            params: Vec::new(),
            rest: None,
            keywords: None,
            locals: HashSet::new(),
            at: Span { file, start: 0, end: 0 },
            is_static: false,
        });
        let mut found = Definitions { module: &mut module, class: None, scope: 0 };
        source.body().iter().for_each(|s| found.visit_stmt(s));
        module.all(source.body());
    }

    /// Takes in what calls outside the project do, in the modules that are looked at.
    fn look_at_objects(&mut self, world: &World<'_>) {
        for (id, object) in world.objects() {
            if !self.files.contains(&object.span.file) || !(world.is_own(id)) {
                continue;
            }
            let facts = self.facts.entry(object.span).or_default();
            if facts.objects >= MAX_OBJECTS_OF_CALL {
                continue;
            }
            facts.objects += 1;
            take_in(facts, world, id);
        }
    }
}

fn take_in(facts: &mut CallFacts, world: &World<'_>, id: ObjectId) {
    let object = world.object(id);
    let span = object.span;
    if let Some(class) = object.class {
        let init = world.class_lookup(class, "__init__").and_then(|(v, _)| function_in(world, &v));
        let fields = world.fields(class).iter().map(|f| f.name.to_string()).collect();
        let file = world.class(class).span.file;
        let is_data = world.class(class).bases.iter().all(|b| {
            world
                .name_of(b)
                .is_none_or(|n| n.ends_with("BaseModel") || n.starts_with("typing.") || !n.contains('.'))
        });
        facts.class = Some(MadeClass { file, is_data, init: init.map(|f| callee(world, f)), fields });
        return;
    }
    let runs = is_run(world, object);
    facts.file = facts.file.take().or_else(|| body::own_file(world, object));
    facts.is_known |= runs || body::of_call(world, id).is_some();
    if facts.origin.is_none() && body::opens_event(world, object) {
        let fact = Fact::likely_call(Effect::PublicRead, object.callee.clone(), span);
        facts.origin = Some(Origin { name: "GITHUB_EVENT_PATH".into(), span, fact });
        facts.is_known = true;
    }
    if facts.origin.is_none()
        && !runs
        && let Some(fact) = body::untrusted(world, id)
    {
        facts.origin = Some(Origin { name: object.callee.to_string(), span, fact });
    }
    // Running an agent is no action of the program.
    if facts.act.is_none()
        && !runs
        && let Some((fact, decided)) = body::acting(world, id)
    {
        facts.act = Some((Origin { name: object.callee.to_string(), span, fact }, decided));
    }
    if runs {
        facts.runs = true;
        facts.agents.extend(reached(world, id));
    }
    facts.makes |= object.base.is_none();
    let first = beginning(world, id);
    if model_calls::of_models(&first.callee) || first.package() == "workflows" {
        facts.graph = Some(first.span);
    }
}

/// A function of the module, or the module itself.
struct Scope {
    parent: Option<usize>,
    class: Option<String>,
    name: String,
    params: Vec<String>,
    rest: Option<String>,
    /// The parameter that takes arguments by keyword: its keys are the program's.
    keywords: Option<String>,
    locals: HashSet<String>,
    at: Span,
    is_static: bool,
}

impl Scope {
    fn callee(&self) -> Callee {
        let first = self.params.first().is_some_and(|p| matches!(p.as_str(), "self" | "cls"));
        let skip = usize::from(self.class.is_some() && first && !self.is_static);
        let (rest, keywords) = (self.rest.clone(), self.keywords.clone());
        Callee { at: self.at, params: self.params.clone(), skip, rest, keywords }
    }
}

/// Collects the functions of a module, with the names that each assigns.
struct Definitions<'m, 's, 'w, 'a> {
    module: &'m mut Module<'s, 'w, 'a>,
    class: Option<String>,
    scope: usize,
}

fn names(parameters: &Parameters) -> Vec<String> {
    parameters.iter().map(|p| p.name().id.to_string()).collect()
}

impl Definitions<'_, '_, '_, '_> {
    fn add(&mut self, name: &str, at: Span, given: Option<&Parameters>, is_static: bool) -> usize {
        let params = given.map(names).unwrap_or_default();
        let scope = Scope {
            parent: Some(self.scope),
            class: self.class.clone(),
            name: name.to_string(),
            locals: params.iter().cloned().collect(),
            params,
            rest: given.and_then(|p| p.vararg.as_ref()).map(|p| p.name.to_string()),
            keywords: given.and_then(|p| p.kwarg.as_ref()).map(|p| p.name.to_string()),
            at,
            is_static,
        };
        let index = self.module.scopes.len();
        self.module.by_place.insert(at, index);
        self.module.scopes.push(scope);
        index
    }
}

impl<'t> SourceOrderVisitor<'t> for Definitions<'_, '_, '_, '_> {
    fn visit_stmt(&mut self, stmt: &'t Stmt) {
        match stmt {
            Stmt::FunctionDef(def) => {
                let at = self.module.span(def.name.range());
                let is_static = def
                    .decorator_list
                    .iter()
                    .any(|d| matches!(&d.expression, Expr::Name(n) if n.id.as_str() == "staticmethod"));
                let index = self.add(&def.name, at, Some(&def.parameters), is_static);
                match &self.class {
                    Some(_) => {
                        let callee = self.module.scopes[index].callee();
                        self.module.steps.methods.entry(def.name.to_string()).or_default().push(callee);
                        self.module.methods.entry(def.name.to_string()).or_default().push(index);
                    }
                    None => {
                        self.module.defined.insert((self.scope, def.name.to_string()), index);
                        if self.scope != 0 {
                            self.module.scopes[self.scope].locals.insert(def.name.to_string());
                        }
                    }
                }
                let outer = (std::mem::replace(&mut self.scope, index), self.class.take());
                stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                    def.body.iter().for_each(|s| self.visit_stmt(s))
                });
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
                    self.module.scopes[self.scope].locals.remove(name.id.as_str());
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
            self.module.scopes[self.scope].locals.insert(name.id.to_string());
        }
        if let Expr::Lambda(lambda) = expr {
            let at = self.module.span(lambda.range());
            let class = self.class.take();
            let index = self.add("<lambda>", at, lambda.parameters.as_deref(), true);
            let outer = std::mem::replace(&mut self.scope, index);
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.visit_expr(&lambda.body));
            (self.scope, self.class) = (outer, class);
            return;
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
    }
}

struct Module<'s, 'w, 'a> {
    folder: Arc<str>,
    steps: &'s mut Steps,
    world: &'w World<'a>,
    module: usize,
    globals: HashMap<String, Value>,
    /// Objects that calls of the module make.
    objects: HashMap<Span, Vec<ObjectId>>,
    functions: HashMap<Span, FunctionId>,
    scopes: Vec<Scope>,
    by_place: HashMap<Span, usize>,
    /// Functions by the function that they stand in, and their name.
    defined: HashMap<(usize, String), usize>,
    methods: HashMap<String, Vec<usize>>,
    scope: usize,
    /// The parts of the expression that is looked at.
    now: Vec<u32>,
    /// Tests that decide whether the statement is reached.
    tests: Vec<u32>,
}

/// Parts that a service numbers.
const NUMBERS: &[&str] = &["id", "number"];
/// Methods that give a part by its name.
const GETS: &[&str] = &["get", "pop", "setdefault"];

impl Module<'_, '_, '_> {
    fn span(&self, range: TextRange) -> Span {
        self.world.span(self.module, range)
    }

    fn file(&self) -> FileId {
        self.scopes[0].at.file
    }

    fn at(&self) -> Span {
        self.scopes[self.scope].at
    }

    /// The name as the current function sees it.
    fn named(&mut self, name: &str, is_stored: bool) -> u32 {
        let mut at = Some(self.scope);
        while let Some(scope) = at {
            if self.scopes[scope].locals.contains(name) {
                let of = self.scopes[scope].at;
                let local = self.steps.node(Key::Local(of, name.to_string()));
                if scope == self.scope {
                    return local;
                }
                // A function in the function may be called from anywhere.
                let closed = self.steps.node(Key::Closed(of, name.to_string()));
                match is_stored {
                    true => self.steps.edge(closed, local, How::Copy, Way::Here),
                    false => self.steps.edge(local, closed, How::Copy, Way::Here),
                }
                return closed;
            }
            at = self.scopes[scope].parent;
        }
        self.steps.node(Key::Local(self.scopes[0].at, name.to_string()))
    }

    fn all(&mut self, body: &[Stmt]) {
        let depth = self.tests.len();
        body.iter().for_each(|s| self.visit_stmt(s));
        self.tests.truncate(depth);
    }

    /// The parts of an expression.
    fn of(&mut self, expr: &Expr) -> Vec<u32> {
        let outer = std::mem::take(&mut self.now);
        self.visit_expr(expr);
        std::mem::replace(&mut self.now, outer)
    }

    /// A node for the value of an expression.
    fn value(&mut self, range: TextRange) -> u32 {
        let span = self.span(range);
        self.steps.node(Key::Expr(span))
    }

    /// A value is assigned.
    fn assign(&mut self, target: &Expr, from: &[u32]) {
        match target {
            Expr::Name(name) => {
                let to = self.named(&name.id, true);
                self.steps.flow(from, to, How::Copy);
            }
            _ if from.is_empty() => {}
            Expr::Tuple(t) => t.elts.iter().for_each(|e| self.assign(e, from)),
            Expr::List(l) => l.elts.iter().for_each(|e| self.assign(e, from)),
            Expr::Starred(s) => self.assign(&s.value, from),
            Expr::Attribute(a) if is_self(&a.value) => {
                let to = self.steps.node(Key::Attribute(self.file(), a.attr.to_string()));
                self.steps.flow(from, to, How::Copy);
            }
            Expr::Attribute(a) => self.assign_part(&a.value, &a.attr, from),
            Expr::Subscript(s) => match &*s.slice {
                Expr::StringLiteral(key) => self.assign_part(&s.value, key.value.to_str(), from),
                _ => self.assign_into(&s.value, from),
            },
            _ => {}
        }
    }

    fn assign_part(&mut self, whole: &Expr, key: &str, from: &[u32]) {
        let part = self.steps.key(key);
        let span = self.span(whole.range());
        let changed = self.steps.node(Key::Taken(Span { end: span.end + 1, ..span }));
        self.steps.flow(from, changed, How::Store(part));
        self.assign_into(whole, &[changed]);
    }

    /// A value becomes a part of a collection or an object.
    fn assign_into(&mut self, whole: &Expr, from: &[u32]) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.assign(whole, from));
        if let Expr::Name(name) = whole
            && self.scopes[self.scope].params.iter().any(|p| p == name.id.as_str())
        {
            let to = self.steps.node(Key::Changed(self.at(), name.id.to_string()));
            self.steps.flow(from, to, How::Copy);
        }
    }

    /// A file has what is written to its handle.
    fn opened(&mut self, target: &Expr, value: &Expr) {
        let value = if let Expr::Await(a) = value { &a.value } else { value };
        let (Expr::Name(name), Expr::Call(call)) = (target, value) else { return };
        if matches!(called(&call.func), "open") {
            let file = self.value(call.range());
            let name = self.named(&name.id, false);
            self.steps.edge(name, file, How::Copy, Way::Here);
        }
    }

    /// A name gets each item of a collection. The names of arguments are the program's own.
    fn each(&mut self, target: &Expr, iter: &Expr) {
        let from = self.of(iter);
        let keywords = self.scopes[self.scope].keywords.clone();
        let is_keywords = |e: &Expr| matches!(e, Expr::Name(n) if Some(n.id.as_str()) == keywords.as_deref());
        match (iter, target) {
            (iter, _) if is_keywords(iter) => {}
            (Expr::Call(call), Expr::Tuple(pair)) => match (&*call.func, &pair.elts[..]) {
                (Expr::Attribute(a), [_, value]) if a.attr.as_str() == "items" && is_keywords(&a.value) => {
                    self.assign(value, &from);
                }
                _ => self.assign(target, &from),
            },
            _ => self.assign(target, &from),
        }
    }

    fn comprehension(&mut self, generators: &[Comprehension], elements: &[&Expr]) {
        for generator in generators {
            // Its names are those of the function here: two of one name are taken for one.
            self.each(&generator.target, &generator.iter);
            for test in &generator.ifs {
                self.of(test);
            }
        }
        let is_listed = generators.iter().any(|g| g.ifs.iter().any(|test| is_one_of(&g.target, test)));
        for element in elements {
            let of = self.of(element);
            if is_listed {
                // They are of a list: an answer selects among them.
                let span = self.span(element.range());
                let selected = self.steps.node(Key::Test(span));
                self.steps.flow(&of, selected, How::Compared);
                self.now.push(selected);
            } else {
                self.now.extend(of);
            }
        }
    }

    /// The value of a test: what an answer decides by it.
    fn test(&mut self, test: &Expr) -> u32 {
        let to = {
            let span = self.span(test.range());
            self.steps.node(Key::Test(span))
        };
        self.add_test(test, to);
        to
    }

    fn add_test(&mut self, test: &Expr, to: u32) {
        match test {
            Expr::BoolOp(b) => stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                b.values.iter().for_each(|v| self.add_test(v, to));
            }),
            Expr::UnaryOp(u) => stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.add_test(&u.operand, to)),
            _ => {
                let from = self.of(test);
                self.steps.flow(&from, to, How::Because);
                // A part of an answer that is true or false: `result.approved`.
                if part_name(test).is_some_and(is_verdict) {
                    self.steps.flow(&from, to, How::Compared);
                }
            }
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

    /// The functions that a call enters, as far as names say it.
    fn callees(&self, call: &ExprCall) -> Vec<Callee> {
        match &*call.func {
            Expr::Name(name) => {
                let mut at = Some(self.scope);
                while let Some(scope) = at {
                    if let Some(function) = self.defined.get(&(scope, name.id.to_string())) {
                        return vec![self.scopes[*function].callee()];
                    }
                    at = self.scopes[scope].parent;
                }
                let value = self.globals.get(name.id.as_str());
                value
                    .and_then(|v| function_in(self.world, v))
                    .map(|f| callee(self.world, f))
                    .into_iter()
                    .collect()
            }
            Expr::Attribute(a) => {
                let method = a.attr.as_str();
                if is_self(&a.value) {
                    let class = self.class();
                    let here = self.methods.get(method).into_iter().flatten();
                    let own = here.filter(|s| self.scopes[**s].class == class);
                    return own.map(|s| self.scopes[*s].callee()).collect();
                }
                let Expr::Name(n) = &*a.value else { return Vec::new() };
                let Some(value) = self.globals.get(n.id.as_str()) else { return Vec::new() };
                let world = self.world;
                let of_class = |class| world.class_lookup(class, method).map(|(v, _)| v);
                let found = match &value.kind {
                    PyKind::Module(m) => {
                        world.globals(*m).into_iter().find(|(n, _)| *n == method).map(|(_, v)| v.clone())
                    }
                    PyKind::Class(c) => of_class(*c),
                    PyKind::Object(o) => match world.object(*o).class {
                        Some(class) => of_class(class),
                        // A tool of a framework that the program calls by itself.
                        None if RUN_TOOL.contains(&method) => Some(value.clone()),
                        None => None,
                    },
                    _ => None,
                };
                found.and_then(|v| function_in(world, &v)).map(|f| callee(world, f)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The functions, and the instances of classes with steps, that a call gives to a framework or to
    /// something that calls them.
    fn given(&mut self, span: Span) -> Option<Given> {
        let objects = self.objects.get(&span)?;
        let world = self.world;
        let id = *objects.iter().rev().find(|id| world.object(**id).class.is_none())?;
        let object = world.object(id);
        let mut functions: Vec<Callee> = Vec::new();
        let mut classes: Vec<Span> = Vec::new();
        for arg in &object.args {
            match &arg.value.kind {
                PyKind::Object(o) if world.object(*o).class.is_some() => {
                    classes.extend(world.object(*o).class.map(|c| world.class(c).name_span));
                }
                PyKind::Class(c) => classes.push(world.class(*c).name_span),
                _ => functions.extend(function_in(world, &arg.value).map(|f| callee(world, f))),
            }
        }
        let first = beginning(world, id);
        let of_models = model_calls::of_models(&first.callee) || first.package() == "workflows";
        let builds = object.base.is_some() && of_models && object.short().starts_with("add_");
        if builds {
            self.route(object, first.span, &functions);
        }
        // What is given to an agent are its tools, which its model calls.
        if functions.is_empty() && (classes.is_empty() || !builds) || of_models && !builds {
            return None;
        }
        let selects =
            object.short().contains("conditional") || object.short() == "add_switch_case_edge_group";
        Some(Given { functions, classes, graph: builds.then_some(first.span), selects })
    }

    /// Notes nodes and edges of a graph by their names.
    fn route(&mut self, object: &Object, graph: Span, functions: &[Callee]) {
        let world = self.world;
        let texts: Vec<String> =
            object.args.iter().filter_map(|a| world.str(&a.value)).map(str::to_string).collect();
        match object.short() {
            "add_node" => {
                let function = functions.first();
                let name = texts.first().cloned().or_else(|| {
                    let f = self.functions.get(&function?.at)?;
                    Some(world.function(*f).name.to_string())
                });
                if let (Some(name), Some(function)) = (name, function) {
                    self.steps.routes.nodes.entry((graph, name)).or_default().push(function.at);
                }
            }
            "add_edge" => {
                if let Some(to) = object.arg_at(1, "end_key").and_then(|a| world.str(&a.value)) {
                    self.steps.routes.plain.insert((graph, to.to_string()));
                }
            }
            "add_conditional_edges" => {
                let mut to: Vec<String> = Vec::new();
                for arg in &object.args {
                    let values = world.entries(&arg.value).into_iter().flatten().map(|(_, v)| v);
                    let items = world.items(&arg.value).into_iter().flatten();
                    to.extend(values.chain(items).filter_map(|v| world.str(v)).map(str::to_string));
                }
                let routers = functions.iter().map(|f| (graph, f.at, to.clone()));
                self.steps.routes.routers.extend(routers);
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let span = self.span(call.range());
        let chain = chain(&call.func);
        let method = called(&call.func);
        let on = match &*call.func {
            Expr::Attribute(a) => self.of(&a.value),
            Expr::Name(_) => Vec::new(),
            other => self.of(other),
        };
        let mut by_position: Vec<Vec<u32>> = Vec::new();
        for arg in &call.arguments.args {
            let of = self.of(arg);
            by_position.push(of);
        }
        let mut by_keyword: Vec<(Option<String>, Vec<u32>)> = Vec::new();
        for keyword in &call.arguments.keywords {
            let of = self.of(&keyword.value);
            by_keyword.push((keyword.arg.as_ref().map(|a| a.to_string()), of));
        }
        let result = self.value(call.range());
        if let Some(Expr::StringLiteral(name)) = call.arguments.args.first() {
            self.event_text(name.value.to_str(), &chain, call.range(), result);
        }
        // `state.get("mail")`
        if GETS.contains(&method)
            && matches!(&*call.func, Expr::Attribute(_))
            && let Some(Expr::StringLiteral(key)) = call.arguments.args.first()
        {
            if !NUMBERS.contains(&key.value.to_str()) {
                let part = self.steps.key(key.value.to_str());
                self.steps.flow(&on, result, How::Load(part));
            }
            for default in by_position.iter().skip(1) {
                self.steps.flow(default, result, How::Copy);
            }
            // The service may be asked in this way as well.
            if self.objects.get(&span).is_none_or(Vec::is_empty) {
                self.now.push(result);
                return;
            }
        }
        let callees = self.callees(call);
        let given = self.given(span);
        // What a collection takes in.
        if let Expr::Attribute(a) = &*call.func {
            let taken = self.steps.node(Key::Taken(span));
            self.assign_into(&a.value, &[taken]);
        }
        // What a function changes of what it is given.
        for (i, arg) in call.arguments.args.iter().enumerate() {
            if matches!(arg, Expr::Name(_)) {
                let back =
                    self.steps.node(Key::Taken(Span { start: span.start, end: arg_number(span, i), ..span }));
                self.assign_into(arg, &[back]);
            }
        }
        let is_method = matches!(&*call.func, Expr::Attribute(_));
        let is_own = matches!(&*call.func, Expr::Attribute(a) if is_self(&a.value));
        let folder = self.folder.clone();
        let (scope, tests) = (self.at(), self.tests.clone());
        self.steps.sites.push(Site {
            span,
            scope,
            method: method.to_string(),
            chain,
            is_method,
            is_own,
            folder,
            on,
            by_position,
            by_keyword,
            result,
            tests,
            callees,
            given,
        });
        self.now.push(result);
    }

    /// Text of messages is given to functions that a framework of bots calls.
    fn handler(&mut self, function: usize, decorators: &[Decorator]) {
        let world = self.world;
        let at = self.scopes[function].at;
        let values: Vec<Value> =
            self.functions.get(&at).map(|f| world.function(*f).decorators.to_vec()).unwrap_or_default();
        for (value, written) in values.iter().zip(decorators) {
            let Some(name) = world.name_of(value) else { continue };
            let name = name.trim_end_matches("[]").to_string();
            let parts: Vec<&str> = name.split('.').collect();
            let (Some(package), Some(last)) = (parts.first(), parts.last()) else { continue };
            if STEPS.iter().any(|(p, all)| p == package && all.contains(last)) {
                self.step(function, *last == "router");
                continue;
            }
            let bot = HANDLERS
                .iter()
                .any(|(p, methods)| p == package && (methods.is_empty() || methods.contains(last)));
            // `@app.post("/webhook")`.
            let path =
                world.object_of(value).and_then(|(_, o)| o.args.first()).and_then(|a| world.str(&a.value));
            let hook = matches!(*last, "post" | "route" | "api_route")
                && (path.is_some_and(|p| p.to_ascii_lowercase().contains("webhook")) || self.has_tunnel());
            if *package == "chainlit" || !(bot || hook) {
                continue;
            }
            let span = self.span(written.range());
            let effect = if bot { Effect::MessageRead } else { Effect::PublicRead };
            let fact = Fact::likely_call(effect, Arc::from(&*name), span);
            let name = self.scopes[function].name.clone();
            let origin = Origin { name, span, fact };
            let params = self.scopes[function].params.clone();
            for param in params.iter().filter(|p| !matches!(p.as_str(), "self" | "cls")) {
                let to = self.steps.node(Key::Local(at, param.clone()));
                self.steps.comes_in(origin.clone(), to);
            }
            // `flask.request` is the request in hand.
            let is_request = |v: &Value| world.name_of(v).is_some_and(|n| body::REQUESTS.contains(&&*n));
            let requests = self.globals.iter().filter(|(_, v)| !bot && is_request(v));
            // In one order in each run.
            let requests: BTreeSet<String> = requests.map(|(name, _)| name.clone()).collect();
            for request in requests {
                let to = self.steps.node(Key::Local(self.scopes[0].at, request));
                self.steps.comes_in(origin.clone(), to);
            }
        }
        self.method_of_class(function);
    }

    /// A method that a framework calls by its name: a step, or one that is given mails.
    fn method_of_class(&mut self, function: usize) {
        let world = self.world;
        let at = self.scopes[function].at;
        let Some(class) = self.functions.get(&at).and_then(|f| world.function(*f).class) else { return };
        let name = self.scopes[function].name.clone();
        let is_of = |package: &str| {
            let mut bases = world.class(class).bases.iter().filter_map(|b| world.name_of(b));
            package.is_empty() || bases.any(|n| n.split('.').next() == Some(package))
        };
        if STEP_CLASSES.iter().any(|(package, methods)| methods.contains(&&*name) && is_of(package)) {
            self.step(function, false);
        }
        if MAIL_HANDLERS.iter().any(|(package, method)| *method == name && is_of(package)) {
            let fact = Fact::likely_call(Effect::MailRead, Arc::from(&*name), at);
            let callee = self.scopes[function].callee();
            for param in callee.params.iter().skip(callee.skip) {
                let to = self.steps.node(Key::Local(at, param.clone()));
                self.steps.comes_in(Origin { name: name.clone(), span: at, fact: fact.clone() }, to);
            }
        }
    }

    /// A method that is a step: its class shares what it returns with the other steps.
    fn step(&mut self, function: usize, selects: bool) {
        let Some(class) =
            self.functions.get(&self.scopes[function].at).and_then(|f| self.world.function(*f).class)
        else {
            return;
        };
        let at = self.world.class(class).name_span;
        let callee = self.scopes[function].callee();
        let shared = self.steps.node(Key::Shared(at));
        self.steps.join(&callee, shared, selects);
    }

    /// Returns true if the program opens a tunnel by which anyone reaches its handlers.
    fn has_tunnel(&self) -> bool {
        self.world.objects().any(|(_, o)| TUNNELS.contains(&&*o.callee))
    }

    fn function_body(&mut self, index: usize, body: &[Stmt]) {
        let outer = (std::mem::replace(&mut self.scope, index), std::mem::take(&mut self.tests));
        self.all(body);
        (self.scope, self.tests) = outer;
    }

    /// A value is given back to the caller.
    fn returned(&mut self, from: &[u32]) {
        let to = self.steps.node(Key::Result(self.at()));
        self.steps.flow(from, to, How::Copy);
    }

    /// A variable of the environment that holds what anyone has written.
    fn event_text(&mut self, name: &str, chain: &str, range: TextRange, to: u32) {
        let is_env =
            matches!(chain.rsplit('.').next(), Some("environ" | "getenv")) || chain.ends_with("environ.get");
        if is_env && EVENT_TEXTS.contains(&name) {
            let span = self.span(range);
            let fact = Fact::likely_call(Effect::PublicRead, name.into(), span);
            self.steps.comes_in(Origin { name: name.to_string(), span, fact }, to);
        }
    }

    /// A part by its name.
    fn load(&mut self, of: &Expr, key: &str, range: TextRange) {
        let from = self.of(of);
        // The number that a service gave something holds nothing of what it says.
        if NUMBERS.contains(&key) {
            return;
        }
        let part = self.steps.key(key);
        let to = self.value(range);
        self.steps.flow(&from, to, How::Load(part));
        self.event_text(key, &chain(of), range, to);
        self.now.push(to);
    }
}

/// Methods by which a program calls a tool of a framework.
const RUN_TOOL: &[&str] = &["invoke", "ainvoke", "run", "arun", "func", "fn", "forward"];

/// An end that tells the arguments of a call apart. No call is as long as the numbers that are added.
pub(super) fn arg_number(span: Span, index: usize) -> u32 {
    span.end.wrapping_add(1 << 30).wrapping_add(index as u32)
}

/// Returns true for a test whether a name is among those of a list: `label in ALLOWED`.
fn is_one_of(name: &Expr, test: &Expr) -> bool {
    let Expr::Name(name) = name else { return false };
    let is_in = |test: &Expr| {
        matches!(test, Expr::Compare(c) if c.ops[..] == [CmpOp::In]
            && matches!(&*c.left, Expr::Name(left) if left.id == name.id))
    };
    match test {
        Expr::BoolOp(b) => b.op == BoolOp::And && b.values.iter().any(is_in),
        test => is_in(test),
    }
}

/// The name of the part that an expression is: `approved` of `result["approved"]`.
fn part_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Attribute(a) => Some(&a.attr),
        Expr::Subscript(s) => match &*s.slice {
            Expr::StringLiteral(key) => Some(key.value.to_str()),
            _ => None,
        },
        Expr::Call(c) if GETS.contains(&called(&c.func)) => match c.arguments.args.first() {
            Some(Expr::StringLiteral(key)) => Some(key.value.to_str()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if a name is that of something that is true or false. That there is a text says little of
/// what it says.
fn is_verdict(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "accept",
        "accepted",
        "allow",
        "allowed",
        "approve",
        "approved",
        "archive",
        "can",
        "confirmed",
        "delete",
        "deleted",
        "escalate",
        "has",
        "important",
        "is",
        "legit",
        "merge",
        "must",
        "need",
        "needs",
        "ok",
        "passed",
        "phishing",
        "publish",
        "reject",
        "rejected",
        "relevant",
        "required",
        "requires",
        "safe",
        "send",
        "sendable",
        "should",
        "spam",
        "trash",
        "unsubscribe",
        "urgent",
        "valid",
        "verified",
        "will",
    ];
    const MAX_NAME: usize = 100;
    crate::words::words(name, MAX_NAME).iter().any(|w| WORDS.contains(&w.as_str()))
}

/// The last name of what is called.
fn called(func: &Expr) -> &str {
    match func {
        Expr::Attribute(a) => &a.attr,
        Expr::Name(n) => &n.id,
        _ => "",
    }
}

fn is_self(expr: &Expr) -> bool {
    matches!(expr, Expr::Name(n) if matches!(n.id.as_str(), "self" | "cls"))
}

/// The names that lead to what is called: `client.users.messages.send` of
/// `client.users().messages().send`.
fn chain(func: &Expr) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut at = func;
    while parts.len() < MAX_CHAIN {
        match at {
            Expr::Attribute(a) => {
                parts.push(&a.attr);
                at = &a.value;
            }
            Expr::Call(c) => at = &c.func,
            Expr::Await(a) => at = &a.value,
            Expr::Name(n) => {
                parts.push(&n.id);
                break;
            }
            _ => break,
        }
    }
    parts.reverse();
    parts.join(".")
}

/// Returns true if what follows a body is only reached when the body is not.
fn leaves(body: &[Stmt]) -> bool {
    matches!(body.last(), Some(Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_)))
}

impl<'t> SourceOrderVisitor<'t> for Module<'_, '_, '_> {
    fn visit_body(&mut self, body: &'t [Stmt]) {
        self.all(body);
    }

    fn visit_stmt(&mut self, stmt: &'t Stmt) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match stmt {
            Stmt::FunctionDef(def) => {
                let at = self.span(def.name.range());
                let Some(index) = self.by_place.get(&at).copied() else { return };
                self.handler(index, &def.decorator_list);
                self.function_body(index, &def.body);
            }
            Stmt::ClassDef(def) => self.all(&def.body),
            Stmt::Assign(s) => {
                let from = self.of(&s.value);
                s.targets.iter().for_each(|t| self.assign(t, &from));
                s.targets.iter().for_each(|t| self.opened(t, &s.value));
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
                self.each(&s.target, &s.iter);
                self.all(&s.body);
                self.all(&s.orelse);
            }
            Stmt::If(s) => {
                let depth = self.tests.len();
                let test = self.test(&s.test);
                self.tests.push(test);
                self.all(&s.body);
                let mut left = leaves(&s.body);
                for clause in &s.elif_else_clauses {
                    if let Some(test) = &clause.test {
                        let test = self.test(test);
                        self.tests.push(test);
                    }
                    self.all(&clause.body);
                    left |= leaves(&clause.body);
                }
                if !left {
                    self.tests.truncate(depth);
                }
            }
            Stmt::While(s) => {
                let depth = self.tests.len();
                let test = self.test(&s.test);
                self.tests.push(test);
                self.all(&s.body);
                self.tests.truncate(depth);
                self.all(&s.orelse);
            }
            Stmt::Match(s) => {
                let from = self.of(&s.subject);
                let span = self.span(s.subject.range());
                let test = self.steps.node(Key::Test(span));
                self.steps.flow(&from, test, How::Compared);
                self.tests.push(test);
                s.cases.iter().for_each(|c| self.all(&c.body));
                self.tests.pop();
            }
            Stmt::With(s) => {
                for item in &s.items {
                    let from = self.of(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.assign(target, &from);
                        self.opened(target, &item.context_expr);
                    }
                }
                self.all(&s.body);
            }
            Stmt::Return(s) => {
                if let Some(value) = &s.value {
                    if let Expr::StringLiteral(text) = &**value {
                        let at = self.at();
                        let texts = self.steps.routes.returned.entry(at).or_default();
                        texts.push(text.value.to_str().to_string());
                    }
                    let from = self.of(value);
                    self.returned(&from);
                }
            }
            _ => walk_stmt(self, stmt),
        });
    }

    fn visit_expr(&mut self, expr: &'t Expr) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match expr {
            Expr::Name(name) => {
                let of = self.named(&name.id, false);
                self.now.push(of);
            }
            // A test selects it.
            Expr::StringLiteral(_) | Expr::BooleanLiteral(_) | Expr::NumberLiteral(_) => {
                if !self.tests.is_empty() {
                    let of = self.value(expr.range());
                    for test in self.tests.clone() {
                        self.steps.edge(test, of, How::Because, Way::Here);
                    }
                    self.now.push(of);
                }
            }
            Expr::Attribute(a) if is_self(&a.value) => {
                let of = self.steps.node(Key::Attribute(self.file(), a.attr.to_string()));
                self.now.push(of);
                // A part of the instance that the method is called on.
                self.load(&a.value, &a.attr, expr.range());
            }
            Expr::Attribute(a) => self.load(&a.value, &a.attr, expr.range()),
            Expr::Subscript(s) => match &*s.slice {
                Expr::StringLiteral(key) => self.load(&s.value, key.value.to_str(), expr.range()),
                // An index selects; it is no part of what it selects.
                slice => {
                    self.of(slice);
                    let of = self.of(&s.value);
                    self.now.extend(of);
                }
            },
            Expr::Dict(d) => {
                let to = self.value(expr.range());
                for item in &d.items {
                    let from = self.of(&item.value);
                    match &item.key {
                        Some(Expr::StringLiteral(key)) => {
                            let part = self.steps.key(key.value.to_str());
                            self.steps.flow(&from, to, How::Store(part));
                        }
                        Some(key) => {
                            let key = self.of(key);
                            self.steps.flow(&key, to, How::Whole);
                            self.steps.flow(&from, to, How::Copy);
                        }
                        None => self.steps.flow(&from, to, How::Copy),
                    }
                }
                self.now.push(to);
            }
            Expr::Call(call) => self.call(call),
            Expr::Lambda(lambda) => {
                let at = self.span(lambda.range());
                let Some(index) = self.by_place.get(&at).copied() else { return };
                let outer = (std::mem::replace(&mut self.scope, index), std::mem::take(&mut self.tests));
                let from = self.of(&lambda.body);
                self.returned(&from);
                (self.scope, self.tests) = outer;
            }
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
            Expr::If(i) => {
                let test = self.test(&i.test);
                self.tests.push(test);
                for side in [&i.body, &i.orelse] {
                    let of = self.of(side);
                    self.now.extend(of);
                }
                self.tests.pop();
            }
            // A comparison says little of what it compares, but an answer decides it.
            Expr::Compare(c) => {
                let outer = std::mem::take(&mut self.now);
                walk_expr(self, expr);
                let compared = std::mem::replace(&mut self.now, outer);
                if !c.ops.iter().all(|op| matches!(op, CmpOp::Is | CmpOp::IsNot)) {
                    let to = self.value(expr.range());
                    self.steps.flow(&compared, to, How::Compared);
                    self.now.push(to);
                }
            }
            // What two sets have in common: an answer selects among the others.
            Expr::BinOp(b) if b.op == Operator::BitAnd => {
                let outer = std::mem::take(&mut self.now);
                walk_expr(self, expr);
                let sides = std::mem::replace(&mut self.now, outer);
                let to = self.value(expr.range());
                self.steps.flow(&sides, to, How::Compared);
                self.now.push(to);
            }
            Expr::Yield(y) => {
                if let Some(value) = &y.value {
                    let from = self.of(value);
                    self.returned(&from);
                }
            }
            _ => walk_expr(self, expr),
        });
    }
}
