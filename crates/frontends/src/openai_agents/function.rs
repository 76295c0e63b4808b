//! Functions in which several agents are run, as one unit each: what one gave decides what the next is asked,
//! and whether.
//!
//! | Python | term |
//! |---|---|
//! | `r = await Runner.run(a, text)` | `let r = a text`; `r.final_output` is `r` |
//! | `a.append(…)`, `r.to_input_list()` | lists of messages, which are said in turn to the agent that is given them |
//! | `if t: return …`, `if t: … else: …` | `if`; what follows a side that jumps stands on the other one |
//! | `asyncio.gather(f(a), f(b))` | `par [f a, f b]` |
//! | `[f(x) for x in xs]` | `each f xs` |
//! | `while t: …`, `for x in xs: …` | `fix` over the names that a turn changes |
//! | a function of the project in which an agent is run | its body where it is called |
//! | any other function | a tool of its name |
//! | `input(…)` | the unit's input; any other one a tool |
//!
//! Entry point: [`FunctionLowering::found`], then [`FunctionLowering::unit`].
//!
//! Invariant: a loop is bounded only where the source bounds it: by the items of what is written, or by a
//! counter that each turn moves.

use super::SdkReader;
use crate::py::{self, field};
use crate::scan::{Found, Takes, awaited, dotted, never_ends, scan, scan_expr};
use core_ir::{Name, TermId, Type};
use diagnostics::Span;
use frontend_kit::kit::Kit;
use frontend_kit::project::File;
use python::{FunctionId, ObjectId, ParamKind, PyKind, Value};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Functions within one another at most.
const MAX_DEPTH: usize = 8;
/// The longest text of a function that is compiled whole, in bytes.
const MAX_FUNCTION_BYTES: usize = 40_000;
/// The name that holds what was given last.
pub(super) const LAST_RESULT: &str = "$out";
/// Suffix of the variable that holds the messages of a run.
pub(super) const MESSAGES: &str = ".to_input_list";

/// Kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Data,
    /// Certainly a text.
    Text,
    /// Result of a run. The flag is true if its output is certainly a text.
    RunResult(bool),
    /// A list of those.
    RunResults(bool),
    /// A list of messages.
    Messages,
}

impl ValueKind {
    fn join(self, other: ValueKind) -> ValueKind {
        match (self, other) {
            (ValueKind::RunResult(a), ValueKind::RunResult(b)) => ValueKind::RunResult(a && b),
            (ValueKind::RunResults(a), ValueKind::RunResults(b)) => ValueKind::RunResults(a && b),
            (a, b) if a == b => a,
            (ValueKind::Data | ValueKind::Text, other) | (other, ValueKind::Data | ValueKind::Text)
                if other != ValueKind::Text =>
            {
                other
            }
            _ => ValueKind::Data,
        }
    }

    pub(super) fn item(self) -> ValueKind {
        if let ValueKind::RunResults(text) = self { ValueKind::RunResult(text) } else { ValueKind::Data }
    }

    pub(super) fn list(self) -> ValueKind {
        if let ValueKind::RunResult(text) = self { ValueKind::RunResults(text) } else { ValueKind::Data }
    }
}

/// A function that is compiled.
pub(super) struct Frame<'w> {
    pub function: FunctionId,
    pub module: usize,
    pub body: &'w [Stmt],
    /// Names that represent agents, instances and functions.
    pub fixed: HashMap<String, Value>,
    /// Its parameters, and names that it assigns: no names of the module.
    pub locals: HashSet<String>,
    pub kinds: HashMap<String, ValueKind>,
    pub reads: Vec<(String, u32)>,
    /// True if a `return` has a value.
    pub gives: bool,
    /// True if it may end without a value.
    pub may_say_nothing: bool,
    /// True if messages of runs are read.
    pub histories: bool,
    pub depth: usize,
}

/// Agent runs in a function.
#[derive(Clone, Default)]
struct Survey {
    sites: BTreeSet<Span>,
    /// True if one depends on the result of another, or if they run in parallel.
    joined: bool,
    /// True if a run that was interrupted for approval is resumed.
    resumes: bool,
    calls: HashSet<FunctionId>,
}

pub(super) struct FunctionLowering<'r, 'w> {
    pub reader: &'r SdkReader<'r, 'w>,
    /// Object made by each call, the last if there are several.
    pub made: HashMap<Span, ObjectId>,
    /// The runs at each place.
    pub runs: HashMap<Span, Vec<ObjectId>>,
    globals: RefCell<HashMap<usize, Rc<HashMap<String, Value>>>>,
    surveys: RefCell<HashMap<FunctionId, Survey>>,
    shows: RefCell<HashMap<FunctionId, bool>>,
    gives: RefCell<HashMap<FunctionId, ValueKind>>,
    /// The first instance of each class, and the function of each name that is defined.
    instances: HashMap<python::ClassId, ObjectId>,
    defined: HashMap<Span, FunctionId>,
}

/// A function that is a unit.
pub(super) struct Unit {
    pub function: FunctionId,
    pub name: String,
    pub at: Span,
    /// The runs in it.
    pub sites: BTreeSet<Span>,
}

impl<'r, 'w> FunctionLowering<'r, 'w> {
    pub fn new(reader: &'r SdkReader<'r, 'w>) -> Self {
        let mut made = HashMap::new();
        let mut runs: HashMap<Span, Vec<ObjectId>> = HashMap::new();
        for (id, object) in reader.world.objects() {
            if super::is_run(object) {
                runs.entry(object.span).or_default().push(id);
            } else {
                made.insert(object.span, id);
            }
        }
        let mut instances = HashMap::new();
        for (id, object) in reader.world.objects() {
            if let Some(class) = object.class {
                instances.entry(class).or_insert(id);
            }
        }
        FunctionLowering {
            reader,
            made,
            runs,
            globals: RefCell::default(),
            surveys: RefCell::default(),
            shows: RefCell::default(),
            gives: RefCell::default(),
            instances,
            defined: reader.world.functions().map(|(id, f)| (f.name_span, id)).collect(),
        }
    }

    /// The functions of a file that are compiled whole; not those that others of them call.
    pub fn found(&self, file: &File) -> Vec<Unit> {
        if self.runs.len() < 2 {
            return Vec::new();
        }
        let short = |at: Span| frontend_kit::kit::size(at) <= MAX_FUNCTION_BYTES;
        let here = self.reader.world.functions().filter(|(_, f)| f.span.file == file.id && short(f.span));
        let mut places = HashSet::new();
        let mut all: Vec<(FunctionId, Survey)> = here
            .filter(|(_, f)| places.insert(f.span))
            .map(|(id, _)| (id, self.survey(id)))
            .filter(|(_, s)| s.joined && !s.resumes && s.sites.len() > 1)
            .collect();
        let called: HashSet<Span> =
            all.iter().flat_map(|(_, s)| &s.calls).map(|f| self.reader.world.function(*f).span).collect();
        all.retain(|(f, _)| !called.contains(&self.reader.world.function(*f).span));
        let unit = |(function, survey): (FunctionId, Survey)| {
            let f = self.reader.world.function(function);
            let class = f.class.map(|c| format!("{}.", self.reader.world.class(c).name));
            let name = format!("{}{}", class.unwrap_or_default(), f.name);
            Unit { function, name, at: f.name_span, sites: survey.sites }
        };
        all.into_iter().map(unit).collect()
    }

    /// The runs at a place.
    pub fn runs_of(&self, at: Span) -> Vec<ObjectId> {
        self.runs.get(&at).cloned().unwrap_or_default()
    }

    /// A function as a term: of its input.
    pub fn unit(&self, kit: &mut Kit<'_>, unit: &Unit) -> TermId {
        let f = self.reader.world.function(unit.function);
        let params: Vec<_> = f
            .own_params()
            .iter()
            .filter(|p| matches!(p.kind, ParamKind::Plain | ParamKind::Keyword))
            .map(|p| {
                let ty = p.annotation.as_ref().map_or(Type::Dyn, |a| py::type_of(self.reader.world, a));
                let ty = if p.annotation.is_none() { Type::Str } else { ty };
                (p.name.to_string(), ty, p.default.as_ref(), p.span)
            })
            .collect();
        let one = params.len() == 1 && params[0].1 == Type::Str;
        let mut said: Vec<(Name, TermId)> = Vec::new();
        let mut env = BTreeSet::new();
        let mut fixed = HashMap::new();
        for (name, ty, default, at) in params {
            let known = default.and_then(|d| py::data(self.reader.world, d)).filter(|_| !one);
            let thing = default.filter(|d| self.is_thing(d));
            let term = match (thing, known) {
                (Some(value), _) => {
                    fixed.insert(name, value.clone());
                    continue;
                }
                (None, Some(data)) => kit.b.lit(data, at),
                (None, None) if one => kit.b.var("x", at),
                (None, None) => {
                    if ty != Type::Str {
                        kit.typed_input(&name, ty);
                    }
                    kit.input(&name, at)
                }
            };
            said.push((core(&name), term));
            env.insert(name);
        }
        // Without arguments the input answers the first call of `input()`.
        if said.is_empty() {
            env.insert(ASKED.into());
        }
        let frame = self.frame(unit.function, fixed, 0);
        let body = self.block(kit, &frame, env, frame.body, &super::block::Rest::End);
        let body = kit.b.let_in(said, body, unit.at);
        kit.b.abs("x", Some(Type::Str), body, unit.at)
    }

    /// A function with what its text says, and what is known of its arguments.
    pub fn frame(&self, function: FunctionId, fixed: HashMap<String, Value>, depth: usize) -> Frame<'w> {
        let f = self.reader.world.function(function);
        let body = f.body();
        let found = scan(body);
        let mut frame = Frame {
            function,
            module: f.module,
            body,
            fixed,
            locals: HashSet::new(),
            kinds: HashMap::new(),
            gives: found.returns.iter().any(Option::is_some),
            histories: found.read.iter().any(|(n, _)| n.ends_with(MESSAGES)),
            may_say_nothing: !never_ends(body) || found.returns.iter().any(Option::is_none),
            reads: Vec::new(),
            depth,
        };
        let texts = f.own_params().iter().filter(|p| {
            p.annotation.as_ref().is_some_and(|a| py::type_of(self.reader.world, a) == Type::Str)
        });
        frame.kinds.extend(texts.map(|p| (p.name.to_string(), ValueKind::Text)));
        self.fix(&mut frame, &found);
        const PASSES: usize = 3;
        for _ in 0..PASSES {
            for (name, value, takes) in &found.assigned {
                let Some(value) = value.filter(|v| !v.is_none_literal_expr() && !is_empty_list(v)) else {
                    continue;
                };
                let is = self.is(&frame, value);
                let is = match takes {
                    Takes::All | Takes::JoinAll => is,
                    Takes::Item => is.item(),
                    Takes::Joins if is_message(value) => ValueKind::Messages,
                    Takes::Joins => is.list(),
                };
                let is = frame.kinds.get(name).map_or(is, |old| old.join(is));
                frame.kinds.insert(name.clone(), is);
            }
        }
        frame.reads = found.read;
        frame
    }

    /// The names that are assigned once, and that represent something that is no data.
    fn fix(&self, frame: &mut Frame<'w>, found: &Found<'w>) {
        let params = self.reader.world.function(frame.function).own_params();
        frame.locals.extend(params.iter().map(|p| p.name.to_string()));
        frame.locals.extend(found.assigned.iter().map(|(n, ..)| n.clone()));
        let mut times: HashMap<&str, usize> = HashMap::new();
        found.assigned.iter().for_each(|(n, ..)| *times.entry(n).or_default() += 1);
        for (name, value, takes) in &found.assigned {
            if let (1, Some(value), Takes::All) = (times[name.as_str()], value, takes)
                && let Some(value) = self.fixed(frame, value).filter(|v| self.is_thing(v))
            {
                frame.fixed.insert(name.clone(), value);
            }
        }
        for stmt in frame.body {
            if let Stmt::FunctionDef(def) = stmt {
                let at = self.reader.world.span(frame.module, def.name.range());
                if let Some(id) = self.defined.get(&at) {
                    frame.fixed.insert(def.name.to_string(), Value::new(PyKind::Function(*id), at));
                }
            }
        }
    }

    /// Returns true if a value isn't data: an agent, a function, or an instance of a class with more than
    /// fields.
    pub fn is_thing(&self, value: &Value) -> bool {
        match &value.kind {
            PyKind::Object(id) => {
                let object = self.reader.world.object(*id);
                match object.class {
                    _ if self.reader.is_agent(*id) => true,
                    Some(class) => !self.is_model(class),
                    None => object.package() == "agents",
                }
            }
            PyKind::Function(_) | PyKind::Bound(..) | PyKind::Class(_) | PyKind::Module(_) => true,
            _ => false,
        }
    }

    /// Returns true if a class has only fields.
    pub fn is_model(&self, class: python::ClassId) -> bool {
        let world = self.reader.world;
        let decorated = world.class(class).decorators.iter().any(|d| {
            let name = world.name_of(d).or_else(|| Some(world.object_of(d)?.1.callee.clone()));
            name.is_some_and(|n| n.contains("dataclass"))
        });
        decorated || world.derives(class, |n| n.ends_with("BaseModel") || n.ends_with("TypedDict"))
    }

    /// Returns the value of an expression as the evaluation of the modules found it.
    pub fn fixed(&self, frame: &Frame<'w>, expr: &Expr) -> Option<Value> {
        let world = self.reader.world;
        let expr = awaited(expr);
        match expr {
            Expr::Name(n) => match frame.fixed.get(n.id.as_str()) {
                Some(value) => Some(value.clone()),
                None if frame.locals.contains(n.id.as_str()) => None,
                None if matches!(n.id.as_str(), "self" | "cls") => self.this(frame),
                None => self.global(frame.module, &n.id),
            },
            Expr::Attribute(a) => {
                let base = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.fixed(frame, &a.value))?;
                match &base.kind {
                    PyKind::Object(id) => world.object(*id).attr(&a.attr).cloned(),
                    PyKind::Module(m) => self.global(*m, &a.attr),
                    PyKind::Class(c) => world.class_lookup(*c, &a.attr).map(|(v, _)| v),
                    _ => None,
                }
            }
            Expr::Call(call) => {
                let at = world.span(frame.module, call.range());
                let id = self.made.get(&at)?;
                Some(Value::new(PyKind::Object(*id), at))
            }
            Expr::Subscript(s) => {
                let base = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.fixed(frame, &s.value))?;
                let Expr::StringLiteral(key) = &*s.slice else { return None };
                let key = key.value.to_str();
                let entries = world.entries(&base)?;
                entries.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v.clone())
            }
            _ => None,
        }
    }

    /// An instance of the class that a method is of.
    fn this(&self, frame: &Frame<'w>) -> Option<Value> {
        let world = self.reader.world;
        let class = world.function(frame.function).class?;
        let id = *self.instances.get(&class)?;
        Some(Value::new(PyKind::Object(id), world.object(id).span))
    }

    fn global(&self, module: usize, name: &str) -> Option<Value> {
        let all = self.globals.borrow().get(&module).cloned();
        let all = all.unwrap_or_else(|| {
            let world = self.reader.world;
            let all = world.globals(module).into_iter().map(|(n, v)| (n.to_string(), v.clone()));
            let all: Rc<HashMap<String, Value>> = Rc::new(all.collect());
            self.globals.borrow_mut().insert(module, all.clone());
            all
        });
        all.get(name).cloned()
    }

    /// The function of the project that a call enters.
    pub fn callee(&self, frame: &Frame<'w>, call: &ExprCall) -> Option<FunctionId> {
        let world = self.reader.world;
        let function = match &*call.func {
            Expr::Attribute(a) => {
                let base = self.fixed(frame, &a.value)?;
                match &base.kind {
                    PyKind::Object(id) => {
                        world.object(*id).class.and_then(|c| world.class_lookup(c, &a.attr)).map(|(v, _)| v)
                    }
                    PyKind::Module(m) => self.global(*m, &a.attr),
                    PyKind::Class(c) => world.class_lookup(*c, &a.attr).map(|(v, _)| v),
                    _ => None,
                }
            }
            other => self.fixed(frame, other),
        }?;
        py::function_of(&function)
    }

    /// The runs that a call is, if it is one.
    pub fn run_at(&self, frame: &Frame<'w>, call: &ExprCall) -> Option<&[ObjectId]> {
        let at = self.reader.world.span(frame.module, call.range());
        self.runs.get(&at).map(Vec::as_slice)
    }

    /// Returns true if a function runs an agent.
    pub fn runs_in_function(&self, function: FunctionId) -> bool {
        !self.survey(function).sites.is_empty()
    }

    /// Returns true if one of these calls runs an agent.
    pub fn runs_in(&self, frame: &Frame<'w>, found: &Found<'_>) -> bool {
        found.calls.iter().any(|c| {
            self.run_at(frame, c).is_some() || self.callee(frame, c).is_some_and(|f| self.runs_in_function(f))
        })
    }

    /// The agent that a run is of, if it is one.
    pub fn agent(&self, frame: &Frame<'w>, call: &ExprCall) -> Option<ObjectId> {
        let written = call.arguments.find_argument_value("starting_agent", 0);
        if let Some(agent) = written.and_then(|e| self.fixed(frame, e)).and_then(|v| self.reader.agent_of(&v))
        {
            return Some(agent);
        }
        let world = self.reader.world;
        let given = self.run_at(frame, call)?.iter().map(|id| {
            field(world.object(*id), Some(0), "starting_agent").and_then(|g| self.reader.agent_of(g.value))
        });
        let all: Vec<Option<ObjectId>> = given.collect();
        let (first, rest) = all.split_first()?;
        let same = |a: ObjectId, b: ObjectId| {
            world.object(a).span == world.object(b).span && self.reader.name(a) == self.reader.name(b)
        };
        let first = (*first)?;
        rest.iter().all(|o| o.is_some_and(|o| same(o, first))).then_some(first)
    }

    /// Returns the kind of an expression's value, as far as the text shows.
    pub fn is(&self, frame: &Frame<'w>, expr: &Expr) -> ValueKind {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.is_inner(frame, awaited(expr)))
    }

    fn is_inner(&self, frame: &Frame<'w>, expr: &Expr) -> ValueKind {
        match expr {
            Expr::StringLiteral(_) | Expr::FString(_) => ValueKind::Text,
            Expr::Call(call) => {
                if self.run_at(frame, call).is_some() {
                    let agent = self.agent(frame, call);
                    let plain = |a| self.reader.get(a, None, "output_type").is_none();
                    return ValueKind::RunResult(agent.is_some_and(plain));
                }
                if let Some(function) = self.callee(frame, call) {
                    return self.gives(frame, function);
                }
                match (&*call.func, called(call)) {
                    (Expr::Name(_), "str" | "input") => ValueKind::Text,
                    (Expr::Attribute(_), "to_input_list") => ValueKind::Messages,
                    (Expr::Attribute(_), "strip" | "lower" | "upper" | "join" | "replace" | "title") => {
                        ValueKind::Text
                    }
                    (_, "create_task" | "ensure_future" | "wait_for" | "run" | "as_completed" | "list") => {
                        call.arguments.args.first().map_or(ValueKind::Data, |a| self.is(frame, a))
                    }
                    (_, "gather") => match call.arguments.args.first() {
                        Some(Expr::Starred(s)) => self.is(frame, &s.value),
                        _ => {
                            let mut all = call.arguments.args.iter().map(|a| self.is(frame, a));
                            let first = all.next().unwrap_or(ValueKind::Data);
                            all.fold(first, ValueKind::join).list()
                        }
                    },
                    _ => ValueKind::Data,
                }
            }
            Expr::Attribute(a) if a.attr.as_str() == "final_output" => match self.is(frame, &a.value) {
                ValueKind::RunResult(true) => ValueKind::Text,
                _ => ValueKind::Data,
            },
            Expr::Name(_) | Expr::Attribute(_) => {
                dotted(expr).and_then(|n| frame.kinds.get(&n).copied()).unwrap_or(ValueKind::Data)
            }
            Expr::Subscript(s) => match (self.is(frame, &s.value), &*s.slice) {
                (is @ ValueKind::RunResults(_), Expr::Slice(_)) => is,
                (is, _) => is.item(),
            },
            Expr::List(l) if !l.elts.is_empty() && l.elts.iter().all(is_message) => ValueKind::Messages,
            Expr::List(l) => {
                let mut all = l.elts.iter().map(|e| self.is(frame, e));
                let first = all.next().unwrap_or(ValueKind::Data);
                all.fold(first, ValueKind::join).list()
            }
            Expr::ListComp(c) => self.is(frame, &c.elt).list(),
            Expr::Generator(c) => self.is(frame, &c.elt).list(),
            Expr::BinOp(b) => match (self.is(frame, &b.left), self.is(frame, &b.right)) {
                (ValueKind::Messages, _) | (_, ValueKind::Messages) => ValueKind::Messages,
                (ValueKind::Text, ValueKind::Text) => ValueKind::Text,
                _ => ValueKind::Data,
            },
            Expr::If(i) => self.is(frame, &i.body).join(self.is(frame, &i.orelse)),
            _ => ValueKind::Data,
        }
    }

    /// Returns the kind of a function's result.
    fn gives(&self, frame: &Frame<'w>, function: FunctionId) -> ValueKind {
        if frame.depth >= MAX_DEPTH || !self.runs_in_function(function) {
            return ValueKind::Data;
        }
        if let Some(known) = self.gives.borrow().get(&function) {
            return *known;
        }
        self.gives.borrow_mut().insert(function, ValueKind::Data);
        let inner = self.frame(function, HashMap::new(), frame.depth + 1);
        let found = scan(inner.body);
        let mut all = found.returns.iter().flatten().map(|e| self.is(&inner, e));
        let is = all.next().map_or(ValueKind::Data, |first| all.fold(first, ValueKind::join));
        self.gives.borrow_mut().insert(function, is);
        is
    }

    /// A function with what its names represent, and nothing else.
    fn sketch(&self, function: FunctionId) -> Frame<'w> {
        let f = self.reader.world.function(function);
        let mut frame = Frame {
            function,
            module: f.module,
            body: f.body(),
            fixed: HashMap::new(),
            locals: HashSet::new(),
            kinds: HashMap::new(),
            reads: Vec::new(),
            gives: false,
            may_say_nothing: false,
            histories: false,
            depth: 0,
        };
        self.fix(&mut frame, &scan(f.body()));
        frame
    }

    // ---- what runs where ----

    /// Returns true if a function of the project only prints and computes.
    pub fn only_shows(&self, function: FunctionId) -> bool {
        if let Some(known) = self.shows.borrow().get(&function) {
            return *known;
        }
        // A function that calls itself adds nothing.
        self.shows.borrow_mut().insert(function, true);
        let frame = self.sketch(function);
        let shows = stacker::maybe_grow(256 * 1024, 2 * 1024 * 1024, || {
            scan(frame.body).calls.iter().all(|c| !self.is_act(&frame, c))
        });
        self.shows.borrow_mut().insert(function, shows);
        shows
    }

    fn survey(&self, function: FunctionId) -> Survey {
        if let Some(known) = self.surveys.borrow().get(&function) {
            return known.clone();
        }
        // A function that calls itself adds nothing.
        self.surveys.borrow_mut().insert(function, Survey::default());
        let frame = self.sketch(function);
        let mut look = SurveyVisitor {
            whole: self,
            frame: &frame,
            tainted: HashSet::new(),
            under: false,
            again: false,
            out: Survey::default(),
        };
        stacker::maybe_grow(256 * 1024, 2 * 1024 * 1024, || look.all(frame.body));
        let out = look.out;
        self.surveys.borrow_mut().insert(function, out.clone());
        out
    }
}

/// Marks that nothing was asked for yet.
pub(super) const ASKED: &str = "$asked";

/// The variable of a name.
pub(super) fn core(name: &str) -> Name {
    match name {
        "x" | "self" | "inputs" | "_" => format!("{name}_").into(),
        _ if name.contains('.') => name.replace('.', "_").into(),
        _ => name.into(),
    }
}

/// The last part of what is called.
pub(super) fn called(call: &ExprCall) -> &str {
    match &*call.func {
        Expr::Name(n) => &n.id,
        Expr::Attribute(a) => &a.attr,
        _ => "",
    }
}

/// Returns true for the literal of a message.
pub(super) fn is_message(expr: &Expr) -> bool {
    let Expr::Dict(dict) = expr else { return false };
    let has = |name: &str| {
        dict.items.iter().any(|i| matches!(&i.key, Some(Expr::StringLiteral(k)) if k.value.to_str() == name))
    };
    has("role") && has("content")
}

fn is_empty_list(expr: &Expr) -> bool {
    matches!(expr, Expr::List(l) if l.elts.is_empty())
}

/// Looks for runs that depend on others.
struct SurveyVisitor<'l, 'r, 'w> {
    whole: &'l FunctionLowering<'r, 'w>,
    frame: &'l Frame<'w>,
    /// Names that hold something of what a run gave.
    tainted: HashSet<String>,
    /// True if the current position depends on the result of a run.
    under: bool,
    /// True within a loop, whose body is examined twice.
    again: bool,
    out: Survey,
}

impl<'w> SurveyVisitor<'_, '_, 'w> {
    fn all(&mut self, body: &'w [Stmt]) {
        for stmt in body {
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.one(stmt));
        }
    }

    fn mentions(&self, found: &Found<'_>) -> bool {
        let of = |name: &str| {
            self.tainted
                .iter()
                .any(|t| name == t || name.strip_prefix(t.as_str()).is_some_and(|r| r.starts_with('.')))
        };
        found.read.iter().any(|(n, _)| of(n))
    }

    /// Under a test, whose outcome may depend on what a run gave.
    fn within(&mut self, test: Option<&'w Expr>, body: &'w [Stmt]) -> bool {
        let found = test.map(scan_expr);
        let depends = found.as_ref().is_some_and(|f| self.simple(f));
        let before = self.under;
        self.under |= depends;
        self.all(body);
        let jumps = scan(body).jumps;
        // What follows a side that leaves depends on the test, too.
        self.under = before || (self.under && jumps);
        depends
    }

    /// A loop; one within another is looked at twice with it.
    fn twice(&mut self, look: impl Fn(&mut Self)) {
        let outermost = !std::mem::replace(&mut self.again, true);
        look(self);
        if outermost {
            look(self);
            self.again = false;
        }
    }

    fn one(&mut self, stmt: &'w Stmt) {
        match stmt {
            Stmt::If(s) => {
                self.within(Some(&s.test), &s.body);
                for clause in &s.elif_else_clauses {
                    self.within(clause.test.as_ref(), &clause.body);
                }
            }
            // What a turn leaves is there at the next one.
            Stmt::While(s) => self.twice(|l| {
                l.within(Some(&s.test), &s.body);
            }),
            Stmt::For(s) => self.twice(|l| {
                if l.within(Some(&s.iter), &[]) {
                    l.tainted.extend(scan_target(&s.target));
                }
                l.within(Some(&s.iter), &s.body);
            }),
            Stmt::With(s) => self.all(&s.body),
            Stmt::Try(s) => {
                self.all(&s.body);
                for handler in &s.handlers {
                    let ruff_python_ast::ExceptHandler::ExceptHandler(h) = handler;
                    self.all(&h.body);
                }
                self.all(&s.orelse);
                self.all(&s.finalbody);
            }
            _ => {
                let found = scan(std::slice::from_ref(stmt));
                if self.simple(&found) {
                    self.tainted.extend(found.names());
                }
            }
        }
    }

    /// Records the calls of an expression. Returns true if its value depends on the result of a run.
    fn simple(&mut self, found: &Found<'_>) -> bool {
        let mentions = self.mentions(found);
        self.out.resumes |=
            found.read.iter().any(|(n, _)| n.ends_with(".interruptions") || n.ends_with(".to_state"));
        let before = self.out.sites.len();
        let (mut runs, mut together) = (false, false);
        for call in &found.calls {
            if self.whole.run_at(self.frame, call).is_some() {
                self.out.sites.insert(self.whole.reader.world.span(self.frame.module, call.range()));
                runs = true;
            } else if let Some(function) = self.whole.callee(self.frame, call) {
                let inner = self.whole.survey(function);
                if !inner.sites.is_empty() {
                    runs = true;
                    self.out.joined |= inner.joined;
                    self.out.resumes |= inner.resumes;
                    self.out.sites.extend(inner.sites);
                    self.out.calls.insert(function);
                    self.out.calls.extend(inner.calls);
                }
            } else {
                together |= called(call) == "gather";
            }
        }
        let several = together && self.out.sites.len() > before;
        self.out.joined |= runs && (mentions || self.under) || several;
        runs || mentions
    }
}

fn scan_target(target: &Expr) -> Vec<String> {
    match target {
        Expr::Tuple(t) => t.elts.iter().filter_map(dotted).collect(),
        other => dotted(other).into_iter().collect(),
    }
}
