//! The evaluator: its tables, scopes and modules.

use crate::sources::{Source, Sources};
use crate::symbol::{Condition, Under};
use crate::value::*;
use diagnostics::Span;
use ruff_text_size::TextRange;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How much is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Expressions and statements, counting each time one is evaluated.
    pub steps: usize,
    /// Calls within one another.
    pub calls: usize,
    /// Bytes of text that are put together.
    pub text: usize,
    /// Turns of one loop.
    pub turns: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 400_000, calls: 24, text: 16 << 20, turns: 1_000 }
    }
}

/// What a framework adds to instances of the project's classes, such as those under one of its decorators, and what is its own.
pub trait Framework: std::fmt::Debug + Sync {
    /// An instance was made; its `__init__` comes after this.
    fn made(&self, world: &mut World<'_>, instance: ObjectId, class: ClassId) {
        let _ = (world, instance, class);
    }

    /// An attribute that neither the instance nor its class has.
    fn attribute(
        &self,
        world: &mut World<'_>,
        instance: ObjectId,
        class: ClassId,
        name: &str,
    ) -> Option<Value> {
        let _ = (world, instance, class, name);
        None
    }

    /// Whether a loop over an attribute of this name has one turn at most, when it is [traced](World::trace).
    fn holds_one(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Whether a name of a module, or the module itself if the name is empty, is the framework's, also where the project has a module
    /// of that name: its own folder `agents` beside the package `agents`.
    fn owns(&self, module: &str, name: &str) -> bool {
        let _ = (module, name);
        false
    }
}

/// Names of one scope.
#[derive(Debug, Default)]
pub(crate) struct Scope<'a> {
    pub vars: HashMap<&'a str, Value>,
    /// The scope in which names are looked for next: the function around, then the module.
    pub parent: Option<usize>,
    /// Names that are the module's.
    pub globals: HashSet<&'a str>,
    /// What a module took over with `from x import *` and could not look into.
    pub stars: Vec<Arc<str>>,
    /// The class whose body this is.
    pub is_class: bool,
}

/// Where evaluation stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub scope: usize,
    pub module: usize,
    /// The instance whose method is evaluated (none in the body of the class), with the class that the method stands in.
    pub this: Option<(Option<ObjectId>, ClassId)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loaded {
    Not,
    Running(usize),
    Done(usize),
}

/// Modules that are evaluated, and all that they made.
#[derive(Debug)]
pub struct World<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) framework: Option<&'a dyn Framework>,
    pub(crate) limits: Limits,
    pub(crate) steps: usize,
    pub(crate) text: usize,
    pub(crate) depth: usize,
    /// Conditions around that are not decided.
    pub(crate) conditions: usize,
    pub(crate) exploring: bool,
    pub(crate) within: Vec<FunctionId>,
    pub(crate) scopes: Vec<Scope<'a>>,
    /// Of each function that is evaluated: how long the path was when it began, and what it gives.
    pub(crate) returns: Vec<(usize, Vec<Under>)>,
    /// Whether what is computed of unknown values is kept.
    pub(crate) symbolic: bool,
    /// What holds where evaluation stands, while it is symbolic.
    pub(crate) path: Vec<Condition>,
    pub(crate) paths: HashMap<ObjectId, Vec<Condition>>,
    loaded: Vec<Loaded>,
    mains: HashSet<usize>,
    /// Results that are remembered, of a function and the instance that it is called on.
    pub(crate) memo: HashMap<(Option<ObjectId>, FunctionId), Value>,
    lists: Vec<List>,
    dicts: Vec<Dict>,
    texts: Vec<Vec<Piece>>,
    objects: Vec<Object>,
    functions: Vec<Function<'a>>,
    classes: Vec<Class>,
    envs: Vec<Env>,
    /// Where evaluation stopped, if it was too much.
    exceeded: Option<Span>,
}

macro_rules! table {
    ($($get:ident $get_mut:ident $add:ident $table:ident $id:ident $type:ty;)*) => {$(
        #[doc = concat!("The entry of a [`", stringify!($id), "`].")]
        pub fn $get(&self, id: $id) -> &$type { &self.$table[id.0 as usize] }
        #[allow(dead_code)]
        pub(crate) fn $get_mut(&mut self, id: $id) -> &mut $type { &mut self.$table[id.0 as usize] }
        pub(crate) fn $add(&mut self, entry: $type) -> $id {
            // Each entry costs a step, and steps are limited far below this number.
            self.$table.push(entry);
            $id(self.$table.len() as u32 - 1)
        }
    )*};
}

impl<'a> World<'a> {
    table! {
        list list_mut add_list lists ListId List;
        dict dict_mut add_dict dicts DictId Dict;
        pieces pieces_mut add_text texts TextId Vec<Piece>;
        object object_mut add_object objects ObjectId Object;
        function function_mut add_function functions FunctionId Function<'a>;
        class class_mut add_class classes ClassId Class;
        env env_mut add_env envs EnvId Env;
    }

    /// Nothing is evaluated yet.
    pub fn new(sources: &'a Sources, limits: Limits) -> World<'a> {
        World {
            sources,
            framework: None,
            limits,
            steps: 0,
            text: 0,
            depth: 0,
            conditions: 0,
            exploring: false,
            within: Vec::new(),
            scopes: Vec::new(),
            returns: Vec::new(),
            symbolic: false,
            path: Vec::new(),
            paths: HashMap::new(),
            loaded: vec![Loaded::Not; sources.len()],
            mains: HashSet::new(),
            memo: HashMap::new(),
            lists: Vec::new(),
            dicts: Vec::new(),
            texts: Vec::new(),
            objects: Vec::new(),
            functions: Vec::new(),
            classes: Vec::new(),
            envs: Vec::new(),
            exceeded: None,
        }
    }

    /// Nothing is evaluated yet; a framework adds to what the project's classes have.
    pub fn with_framework(sources: &'a Sources, limits: Limits, framework: &'a dyn Framework) -> World<'a> {
        World { framework: Some(framework), ..World::new(sources, limits) }
    }

    /// The modules.
    pub fn sources(&self) -> &'a Sources {
        self.sources
    }

    /// Where evaluation was given up because it took too much. What comes after is unknown.
    pub fn exceeded(&self) -> Option<Span> {
        self.exceeded
    }

    /// All objects in the order of their making.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        self.objects.iter().enumerate().map(|(i, o)| (ObjectId(i as u32), o))
    }

    /// All functions in the order of their definition.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function<'a>)> {
        self.functions.iter().enumerate().map(|(i, f)| (FunctionId(i as u32), f))
    }

    /// All classes in the order of their definition.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        self.classes.iter().enumerate().map(|(i, c)| (ClassId(i as u32), c))
    }

    /// Evaluates a module as the one that is started: `__name__` is `__main__` in it. Once.
    pub fn run(&mut self, module: usize) {
        self.mains.insert(module);
        self.load(module);
    }

    /// Calls every function, and makes an instance of every class, of a module that is evaluated, which nothing has called; what
    /// they are given is unknown. The objects that this makes are [`Object::explored`].
    pub fn explore(&mut self, module: usize) {
        let was = std::mem::replace(&mut self.exploring, true);
        let (mut f, mut c) = (0, 0);
        // Exploring defines functions, which are explored too.
        while f < self.functions.len() || c < self.classes.len() {
            while c < self.classes.len() {
                let id = ClassId(c as u32);
                c += 1;
                if self.classes[id.0 as usize].module == module && !self.exhausted() {
                    self.explore_class(id);
                }
            }
            while f < self.functions.len() {
                let id = FunctionId(f as u32);
                f += 1;
                let function = &self.functions[id.0 as usize];
                let lambda = matches!(function.body, Body::Expr(_));
                if function.module == module && !function.entered && !lambda && function.class.is_none() {
                    let span = function.span;
                    if self.exhausted() {
                        return;
                    }
                    self.enter(id, None, Vec::new(), Some(span), span);
                }
            }
        }
        self.exploring = was;
    }

    fn explore_class(&mut self, id: ClassId) {
        let class = self.class(id);
        let span = class.span;
        let methods: Vec<FunctionId> = class
            .attrs
            .iter()
            .filter_map(|(_, v)| match v.kind {
                Kind::Function(f) => Some(f),
                _ => None,
            })
            .filter(|f| !self.function(*f).entered)
            .collect();
        if methods.is_empty() {
            return;
        }
        let this = self.instance(id, Vec::new(), Some(span), span);
        for method in methods {
            if !self.function(method).entered {
                let span = self.function(method).span;
                self.enter(method, Some(this), Vec::new(), Some(span), span);
            }
        }
    }

    /// The value of a name of a module, which is evaluated if it was not.
    pub fn global(&mut self, module: usize, name: &str) -> Option<Value> {
        let scope = self.load(module)?;
        self.scopes[scope].vars.get(name).cloned()
    }

    /// The names of a module that was evaluated, with their values, by place.
    pub fn globals(&self, module: usize) -> Vec<(&'a str, &Value)> {
        let Some(Loaded::Done(scope) | Loaded::Running(scope)) = self.loaded.get(module) else {
            return Vec::new();
        };
        let mut all: Vec<_> = self.scopes[*scope].vars.iter().map(|(n, v)| (*n, v)).collect();
        all.sort_by_key(|(n, v)| (v.span, *n));
        all
    }

    /// Calls a function of the project, or makes an instance of one of its classes.
    pub fn call(&mut self, function: &Value, args: Vec<Arg>) -> Value {
        let span = function.span;
        self.apply(function, args, None, span)
    }

    /// An attribute of a value, as `value.name` gives it.
    pub fn get(&mut self, value: &Value, name: &str) -> Value {
        let span = value.span;
        self.attribute(value, name, span)
    }

    /// Sets an attribute of an object.
    pub fn set(&mut self, object: ObjectId, name: &str, value: Value) {
        self.object_mut(object).attrs.push((name.into(), value));
    }

    /// A list that nothing in the project makes.
    pub fn listed(&mut self, items: Vec<Value>, span: Span) -> Value {
        self.list_value(items, ListKind::List, None, span)
    }

    /// A dictionary that nothing in the project makes.
    pub fn mapped(&mut self, entries: Vec<(&str, Value)>, span: Span) -> Value {
        let key = |name: &str| Value::new(Kind::Str(name.into()), span);
        let entries = entries.into_iter().map(|(name, value)| (key(name), value)).collect();
        let dict = self.add_dict(Dict { entries, open: None });
        Value::new(Kind::Dict(dict), span)
    }

    /// Makes an object that nothing in the project makes, such as what a framework hands in.
    pub fn made(&mut self, callee: &str, args: Vec<Arg>, span: Span) -> Value {
        let id = self.new_object(callee.into(), args, None, span, None);
        Value::new(Kind::Object(id), span)
    }

    /// Calls a method of an instance of one of the project's classes.
    pub fn call_method(&mut self, this: ObjectId, method: FunctionId, args: Vec<Arg>) -> Value {
        let span = self.function(method).span;
        self.enter(method, Some(this), args, Some(span), span)
    }

    // ---- reading values ----

    /// The text, if it is known; what the environment may replace counts as known.
    pub fn str<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        self.settled(value).as_str()
    }

    /// The default of what the environment may say; otherwise the value.
    pub fn settled<'v>(&'v self, mut value: &'v Value) -> &'v Value {
        // A default may be what the environment says again; circles are impossible as values are made before they are used.
        while let Kind::Env(id) = value.kind {
            match &self.env(id).default {
                Some(default) => value = default,
                None => break,
            }
        }
        value
    }

    /// The items of a list; `None` for anything else.
    pub fn items<'v>(&'v self, value: &'v Value) -> Option<&'v [Value]> {
        match self.settled(value).kind {
            Kind::List(id) => Some(&self.list(id).items),
            _ => None,
        }
    }

    /// The entries of a dictionary; `None` for anything else.
    pub fn entries<'v>(&'v self, value: &'v Value) -> Option<&'v [(Value, Value)]> {
        match self.settled(value).kind {
            Kind::Dict(id) => Some(&self.dict(id).entries),
            _ => None,
        }
    }

    /// The object.
    pub fn object_of(&self, value: &Value) -> Option<(ObjectId, &Object)> {
        match self.settled(value).kind {
            Kind::Object(id) => Some((id, self.object(id))),
            _ => None,
        }
    }

    /// What a value is called: a function's or class's name, the qualified name of something outside, an object's callee.
    pub fn name_of(&self, value: &Value) -> Option<Arc<str>> {
        Some(match &value.kind {
            Kind::Function(id) | Kind::Bound(_, id) => self.function(*id).name.clone(),
            Kind::Class(id) => self.class(*id).name.clone(),
            Kind::External(name) => name.clone(),
            Kind::Object(id) => self.object(*id).callee.clone(),
            Kind::Member(id, name) => format!("{}.{name}", self.object(*id).callee).into(),
            _ => return None,
        })
    }

    /// Methods called on an object and on what these calls returned, in order: for builders whose methods return the builder.
    pub fn chain(&self, object: ObjectId) -> Vec<(&Method, &Object)> {
        let mut out = Vec::new();
        let mut todo = vec![object];
        while let Some(id) = todo.pop() {
            for method in &self.object(id).calls {
                out.push((method, self.object(method.result)));
                todo.push(method.result);
            }
        }
        out.sort_by_key(|(m, _)| m.result);
        out
    }

    /// The innermost reason why a value is not known.
    pub fn why(&self, value: &Value) -> Arc<str> {
        match &value.kind {
            Kind::Unknown(why) => why.clone(),
            Kind::Either(_) => "one of several values".into(),
            Kind::Env(id) => match &self.env(*id).name {
                Some(name) => format!("what the environment says for `{name}`").into(),
                None => "what the environment says".into(),
            },
            Kind::Object(id) => format!("what `{}` gives", self.object(*id).callee).into(),
            Kind::Member(id, name) => format!("`{name}` of what `{}` gives", self.object(*id).callee).into(),
            Kind::External(name) => format!("`{name}`, which is not in the project").into(),
            _ => "a value of another kind".into(),
        }
    }

    /// The text of a value: its pieces, if it is one.
    pub fn text_of(&self, value: &Value) -> Option<Vec<Piece>> {
        let settled = self.settled(value);
        match &settled.kind {
            Kind::Str(s) => Some(vec![Piece::Text(s.clone())]),
            Kind::Text(id) => Some(self.pieces(*id).clone()),
            Kind::Env(_) => Some(vec![Piece::Hole(settled.clone(), self.why(settled))]),
            _ => None,
        }
    }

    // ---- evaluation ----

    pub(crate) fn source(&self, module: usize) -> &'a Source {
        // Modules are numbered by the sources themselves.
        self.sources.get(module).expect("a module of these sources")
    }

    pub(crate) fn span(&self, module: usize, range: TextRange) -> Span {
        self.source(module).span(range)
    }

    /// Whether too much was evaluated.
    pub(crate) fn exhausted(&self) -> bool {
        self.steps >= self.limits.steps
    }

    /// Takes some steps. False if there are none left.
    pub(crate) fn step(&mut self, count: usize, at: Span) -> bool {
        self.steps = self.steps.saturating_add(count);
        if self.exhausted() && self.exceeded.is_none() {
            self.exceeded = Some(at);
        }
        !self.exhausted()
    }

    pub(crate) fn load(&mut self, module: usize) -> Option<usize> {
        match *self.loaded.get(module)? {
            Loaded::Running(scope) | Loaded::Done(scope) => return Some(scope),
            Loaded::Not => {}
        }
        let scope = self.new_scope(None, false);
        self.loaded[module] = Loaded::Running(scope);
        let source = self.source(module);
        let start = source.span(TextRange::default());
        let name: Arc<str> =
            if self.mains.contains(&module) { "__main__".into() } else { source.module_name().into() };
        for (var, value) in [("__name__", name), ("__file__", source.path.as_str().into())] {
            self.scopes[scope].vars.insert(var, Value::new(Kind::Str(value), start));
        }
        let at = At { scope, module, this: None };
        // A module is evaluated with nothing around it, wherever it is imported.
        let conditions = std::mem::replace(&mut self.conditions, 0);
        let exploring = std::mem::replace(&mut self.exploring, false);
        let within = std::mem::take(&mut self.within);
        let symbolic = std::mem::replace(&mut self.symbolic, false);
        let path = std::mem::take(&mut self.path);
        self.returns.push((0, Vec::new()));
        self.depth += 1;
        self.deeply(|w| w.block(source.body(), at));
        self.depth -= 1;
        self.returns.pop();
        (self.conditions, self.exploring, self.within) = (conditions, exploring, within);
        (self.symbolic, self.path) = (symbolic, path);
        self.loaded[module] = Loaded::Done(scope);
        Some(scope)
    }

    /// Goes on with enough stack.
    pub(crate) fn deeply<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        stacker::maybe_grow(256 << 10, 2 << 20, || f(self))
    }

    pub(crate) fn new_scope(&mut self, parent: Option<usize>, is_class: bool) -> usize {
        self.scopes.push(Scope { parent, is_class, ..Scope::default() });
        self.scopes.len() - 1
    }

    pub(crate) fn module_scope(&self, module: usize) -> Option<usize> {
        match self.loaded.get(module)? {
            Loaded::Running(scope) | Loaded::Done(scope) => Some(*scope),
            Loaded::Not => None,
        }
    }

    pub(crate) fn new_object(
        &mut self,
        callee: Arc<str>,
        args: Vec<Arg>,
        open: Option<Span>,
        span: Span,
        base: Option<ObjectId>,
    ) -> ObjectId {
        let object = Object {
            callee,
            class: None,
            args,
            open,
            span,
            base,
            calls: Vec::new(),
            attrs: Vec::new(),
            maybe: self.conditions > 0,
            explored: self.exploring,
            within: self.within.last().copied(),
        };
        let id = self.add_object(object);
        self.note_path(id, span);
        id
    }

    /// A new list.
    pub(crate) fn list_value(
        &mut self,
        items: Vec<Value>,
        kind: ListKind,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        let id = self.add_list(List { items, kind, open });
        Value::new(Kind::List(id), span)
    }

    /// One of several values: the value itself if they are the same.
    pub(crate) fn either(&mut self, values: Vec<Value>, span: Span) -> Value {
        const MOST: usize = 16;
        let mut all: Vec<Value> = Vec::new();
        for value in values {
            let several = match value.kind {
                Kind::Either(id) => self.list(id).items.clone(),
                _ => vec![value],
            };
            for value in several {
                if !all.iter().any(|v| self.same(v, &value)) {
                    all.push(value);
                }
            }
        }
        match all.len() {
            1 => all.remove(0),
            n if n > MOST => Value::unknown("one of many values", span),
            _ => {
                let id = self.add_list(List { items: all, kind: ListKind::Tuple, open: None });
                Value::new(Kind::Either(id), span)
            }
        }
    }

    /// Whether two values are certainly the same.
    pub(crate) fn same(&self, a: &Value, b: &Value) -> bool {
        if a.maybe != b.maybe {
            return false;
        }
        match (&a.kind, &b.kind) {
            (Kind::None, Kind::None) => true,
            (Kind::Bool(a), Kind::Bool(b)) => a == b,
            (Kind::Int(a), Kind::Int(b)) => a == b,
            (Kind::Float(a), Kind::Float(b)) => a == b,
            (Kind::Str(a), Kind::Str(b)) | (Kind::External(a), Kind::External(b)) => a == b,
            (Kind::Text(a), Kind::Text(b)) => a == b,
            (Kind::List(a), Kind::List(b)) | (Kind::Either(a), Kind::Either(b)) => a == b,
            (Kind::Dict(a), Kind::Dict(b)) => a == b,
            (Kind::Object(a), Kind::Object(b)) => a == b,
            (Kind::Member(a, n), Kind::Member(b, m)) => a == b && n == m,
            (Kind::Function(a), Kind::Function(b)) => a == b,
            (Kind::Class(a), Kind::Class(b)) => a == b,
            (Kind::Module(a), Kind::Module(b)) => a == b,
            (Kind::Env(a), Kind::Env(b)) => a == b,
            (Kind::Bound(a, f), Kind::Bound(b, g)) => a == b && f == g,
            (Kind::Unknown(x), Kind::Unknown(y)) => x == y && a.span == b.span,
            _ => false,
        }
    }
}
