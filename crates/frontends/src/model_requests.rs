//! Functions of a project that ask a model by themselves: tools, hooks, guardrails and callbacks that a
//! framework calls.
//!
//! Entry point: [`ModelRequests::new`], then [`ModelRequests::reached`] for what a framework is given.
//!
//! Such functions are no part of the term. A bound that leaves them out would be wrong, so a front end that
//! finds one says in the term that calls are not counted ([`frontend_kit::kit::Kit::uncounted`]).
//!
//! Invariant: a call whose receiver is not known counts if its name is one by which frameworks and clients
//! ask models.
//! Invariant: packages outside the project that are no clients or frameworks of models do not ask.

use crate::scan::dotted;
use diagnostics::Span;
use frontend_kit::emit::clip;
use python::{ClassId, FunctionId, ObjectId, PyKind, Value, World};
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use tool_facts::model_calls::{ALWAYS, LIKELY, OF_MODELS, PATHS, is_asking, is_qualified, of_models};

/// A call that asks a model.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    /// The call.
    pub at: Span,
    /// Callee, as written in the source.
    pub what: String,
}

/// Reason and place of calls that the term of a unit does not count.
pub(crate) type Uncounted = (String, Span);

/// The functions of a project, by what they ask.
pub(crate) struct ModelRequests<'r, 'w> {
    world: &'r World<'w>,
    /// Objects made by calls outside the project, by the place of the call.
    made: HashMap<Span, ObjectId>,
    methods: HashMap<String, Vec<FunctionId>>,
    globals: RefCell<HashMap<usize, Rc<HashMap<String, Value>>>>,
    known: RefCell<HashMap<FunctionId, Option<Asking>>>,
}

/// Calls and names of a body, with those of functions in it.
#[derive(Default)]
struct Uses<'a> {
    calls: Vec<&'a ExprCall>,
    names: Vec<&'a str>,
    members: Vec<(&'a Expr, &'a str)>,
}

impl<'a> SourceOrderVisitor<'a> for Uses<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => self.calls.push(call),
            Expr::Name(n) if n.ctx.is_load() => self.names.push(&n.id),
            Expr::Attribute(a) if a.ctx.is_load() => self.members.push((&a.value, &a.attr)),
            _ => {}
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
    }
}

impl<'r, 'w> ModelRequests<'r, 'w> {
    pub fn new(world: &'r World<'w>) -> Self {
        let mut methods: HashMap<String, Vec<FunctionId>> = HashMap::new();
        for (id, f) in world.functions().filter(|(_, f)| f.class.is_some()) {
            methods.entry(f.name.to_string()).or_default().push(id);
        }
        ModelRequests {
            world,
            made: world.objects().map(|(id, o)| (o.span, id)).collect(),
            methods,
            globals: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// Looks for a function that asks among what is reached from some values: functions, their decorators,
    /// instances of classes of the project, and the arguments of what was called. What `skip` tells is
    /// compiled elsewhere.
    pub fn reached<'v>(
        &self,
        values: impl IntoIterator<Item = &'v Value>,
        skip: &dyn Fn(ObjectId) -> bool,
    ) -> Option<Asking> {
        const MAX_STEPS: usize = 20_000;
        let mut todo: Vec<Value> = values.into_iter().cloned().collect();
        let mut objects: HashSet<ObjectId> = HashSet::new();
        let mut functions: HashSet<FunctionId> = HashSet::new();
        for _ in 0..MAX_STEPS {
            let value = todo.pop()?;
            match &value.kind {
                PyKind::Function(f) | PyKind::Bound(_, f) => {
                    if !functions.insert(*f) {
                        continue;
                    }
                    if let Some(asking) = self.function(*f) {
                        return Some(asking);
                    }
                    todo.extend(self.world.function(*f).decorators.iter().cloned());
                }
                PyKind::Class(c) => todo.extend(self.of_class(*c)),
                PyKind::List(id) | PyKind::Either(id) => {
                    todo.extend(self.world.list(*id).items.iter().cloned())
                }
                PyKind::Dict(id) => {
                    todo.extend(self.world.dict(*id).entries.iter().map(|(_, v)| v.clone()));
                }
                PyKind::Method(on, _) => todo.push((**on).clone()),
                PyKind::Member(id, name) => {
                    let object = self.world.object(*id);
                    let last = name.rsplit('.').next().unwrap_or(name);
                    let asks = ALWAYS.contains(&last)
                        || of_models(&object.callee) && (LIKELY.contains(&last) || OF_MODELS.contains(&last));
                    if asks {
                        return Some(Asking { at: value.span, what: last.to_string() });
                    }
                }
                PyKind::Object(id) if !skip(*id) && objects.insert(*id) => {
                    let object = self.world.object(*id);
                    todo.extend(object.class.into_iter().flat_map(|c| self.of_class(c)));
                    todo.extend(object.args.iter().map(|a| a.value.clone()));
                    todo.extend(object.attrs.iter().map(|(_, v)| v.clone()));
                    // A tool that is made by a method of what asks: `chain.as_tool()`.
                    if let (Some(base), true) = (object.base, is_made_of(object.short())) {
                        if !skip(base) && object.class.is_none() && of_models(&object.callee) {
                            return Some(Asking { at: object.span, what: object.short().to_string() });
                        }
                        todo.push(Value::new(PyKind::Object(base), object.span));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The same as the reason why calls are not counted.
    pub fn beside<'v>(
        &self,
        values: impl IntoIterator<Item = &'v Value>,
        skip: &dyn Fn(ObjectId) -> bool,
    ) -> Option<Uncounted> {
        self.reached(values, skip).map(uncounted)
    }

    /// The same of a function.
    pub fn within(&self, function: FunctionId) -> Option<Uncounted> {
        self.function(function).map(uncounted)
    }

    /// The methods of a class of the project and of the classes it derives from.
    fn of_class(&self, class: ClassId) -> Vec<Value> {
        let class = self.world.class(class);
        let methods = class.attrs.iter().map(|(_, v)| v).filter(|v| matches!(v.kind, PyKind::Function(_)));
        let bases = class.bases.iter().filter(|b| matches!(b.kind, PyKind::Class(_)));
        methods.chain(bases).cloned().collect()
    }

    /// The first call by which a function asks a model, itself or through functions of the project.
    pub fn function(&self, function: FunctionId) -> Option<Asking> {
        if let Some(known) = self.known.borrow().get(&function) {
            return known.clone();
        }
        let mut seen: HashSet<FunctionId> = HashSet::from([function]);
        let mut todo = vec![function];
        let mut found = None;
        while let Some(f) = todo.pop() {
            let mut uses = Uses::default();
            let function = self.world.function(f);
            function.body().iter().for_each(|s| uses.visit_stmt(s));
            function.lambda().into_iter().for_each(|e| uses.visit_expr(e));
            found = uses.calls.iter().find_map(|call| self.asking(f, call));
            if found.is_some() {
                break;
            }
            todo.extend(self.used(f, &uses).into_iter().filter(|f| seen.insert(*f)));
        }
        self.known.borrow_mut().insert(function, found.clone());
        found
    }

    /// The functions of the project that a body names.
    fn used(&self, function: FunctionId, uses: &Uses<'_>) -> Vec<FunctionId> {
        let f = self.world.function(function);
        let globals = self.globals(f.module);
        let mut out = Vec::new();
        for name in &uses.names {
            match globals.get(*name).map(|v| &v.kind) {
                Some(PyKind::Function(f) | PyKind::Bound(_, f)) => out.push(*f),
                Some(PyKind::Class(c)) => out.extend(self.method(*c, "__init__")),
                _ => {}
            }
        }
        for (on, name) in &uses.members {
            let base = match on {
                Expr::Name(n) if matches!(n.id.as_str(), "self" | "cls") => {
                    f.class.map(|c| Value::new(PyKind::Class(c), f.span))
                }
                Expr::Name(n) => globals.get(n.id.as_str()).cloned(),
                Expr::Call(call) => {
                    self.object_at(f.module, call).map(|id| Value::new(PyKind::Object(id), f.span))
                }
                _ => None,
            };
            match base.map(|b| b.kind) {
                Some(PyKind::Class(c)) => out.extend(self.method(c, name)),
                Some(PyKind::Object(id)) => {
                    out.extend(self.world.object(id).class.and_then(|c| self.method(c, name)));
                }
                Some(PyKind::Module(m)) => {
                    if let Some(PyKind::Function(f)) = self.globals(m).get(*name).map(|v| v.kind.clone()) {
                        out.push(f);
                    }
                }
                Some(PyKind::External(_)) => {}
                _ => out.extend(self.methods.get(*name).into_iter().flatten()),
            }
        }
        out
    }

    fn method(&self, class: ClassId, name: &str) -> Option<FunctionId> {
        let (value, _) = self.world.class_lookup(class, name)?;
        crate::py::function_of(&value)
    }

    fn globals(&self, module: usize) -> Rc<HashMap<String, Value>> {
        self.globals
            .borrow_mut()
            .entry(module)
            .or_insert_with(|| {
                let all = self.world.globals(module);
                Rc::new(all.into_iter().map(|(n, v)| (n.to_string(), v.clone())).collect())
            })
            .clone()
    }

    fn object_at(&self, module: usize, call: &ExprCall) -> Option<ObjectId> {
        self.made.get(&self.world.span(module, call.range())).copied()
    }

    /// Returns a call in a function as an [`Asking`] if it asks a model.
    fn asking(&self, function: FunctionId, call: &ExprCall) -> Option<Asking> {
        let module = self.world.function(function).module;
        let path = dotted(&call.func);
        let name = match &*call.func {
            Expr::Attribute(a) => a.attr.as_str(),
            Expr::Name(n) => n.id.as_str(),
            _ => return None,
        };
        let what = path.clone().unwrap_or_else(|| name.to_string());
        let asking = Asking { at: self.world.span(module, call.range()), what };
        let made = self.object_at(module, call).map(|id| self.world.object(id));
        let asks = match made {
            Some(object) if object.class.is_some() => false,
            Some(object) if of_models(&object.callee) => is_asking(object),
            Some(object) if is_qualified(&object.callee) => false,
            _ => {
                let root = path.as_deref().and_then(|p| p.split('.').next());
                let other =
                    root.and_then(|r| self.globals(module).get(r).cloned()).is_some_and(|v| match v.kind {
                        PyKind::External(name) => !of_models(&name),
                        PyKind::Function(_) | PyKind::Class(_) => true,
                        _ => false,
                    });
                let tail = attributes(&call.func);
                let by_path = PATHS.iter().any(|e| tail.ends_with(e));
                let is_method = matches!(&*call.func, Expr::Attribute(_));
                !other && (by_path || is_method && (ALWAYS.contains(&name) || LIKELY.contains(&name)))
            }
        };
        asks.then_some(asking)
    }
}

/// The attributes at the end of an expression: `chat.completions.create` of
/// `OpenAI().chat.completions.create` and of `client.chat.completions.create`.
fn attributes(expr: &Expr) -> String {
    const MAX_PARTS: usize = 4;
    let mut parts: Vec<&str> = Vec::new();
    let mut at = expr;
    while let Expr::Attribute(a) = at
        && parts.len() < MAX_PARTS
    {
        parts.push(&a.attr);
        at = &a.value;
    }
    parts.reverse();
    parts.join(".")
}

fn uncounted(asking: Asking) -> Uncounted {
    let message = format!("`{}` asks a model in a function that the framework calls", clip(&asking.what));
    (message, asking.at)
}

/// Returns whether a method turns its receiver into a tool or a function.
fn is_made_of(method: &str) -> bool {
    matches!(method, "as_tool" | "as_retriever_tool" | "bind" | "partial" | "with_config")
}
