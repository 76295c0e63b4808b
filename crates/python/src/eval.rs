//! The evaluator: tables, scopes and modules.

use crate::loops::{LoopExits, Write};
use crate::modules::{Component, ComponentSource};
use crate::overlay::{Overlay, Tables};
use crate::sources::{Source, Sources};
use crate::symbolic::{Condition, Guarded};
use crate::value::*;
use diagnostics::{FileId, Span};
use ruff_text_size::TextRange;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

/// A number of times that something is evaluated where one evaluation represents all; `None` if it has no
/// known limit.
pub(crate) type Times = Option<u64>;

/// Budget of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximal number of evaluated expressions and statements.
    pub steps: usize,
    /// Maximal depth of calls.
    pub calls: usize,
    /// Maximal size of constructed text, in bytes.
    pub text: usize,
    /// Maximal number of iterations of one loop.
    pub iterations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 400_000, calls: 24, text: 16 << 20, iterations: 1_000 }
    }
}

/// Divisor of the step budget for a call into another component.
const CALLED_BUDGET_DIVISOR: usize = 4;
/// Divisor of the step budget for such a call from a function that nothing calls.
const EXPLORED_BUDGET_DIVISOR: usize = 80;

/// A framework's additions to the project's classes (say, under its decorators), and the names that belong to
/// it.
pub trait Framework: std::fmt::Debug + Sync {
    /// Name of the framework, unique among frameworks.
    fn name(&self) -> &'static str;

    /// Returns true if the framework sets an attribute on instances of a class that only annotates it.
    fn supplies(&self, world: &World<'_>, class: ClassId, name: &str) -> bool {
        let _ = (world, class, name);
        false
    }

    /// Called when an instance was made, before its `__init__`.
    fn on_instance(&self, world: &mut World<'_>, instance: ObjectId, class: ClassId) {
        let _ = (world, instance, class);
    }

    /// Returns an attribute that neither the instance nor its class has.
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

    /// Returns true if a loop over an attribute of this name has at most one iteration while it is
    /// [traced](World::trace).
    fn holds_one(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns true if a name of a module, or the module itself for an empty name, belongs to the framework
    /// even where the project has a module of that name: its own folder `agents` beside the package `agents`.
    fn owns(&self, module: &str, name: &str) -> bool {
        let _ = (module, name);
        false
    }
}

/// Names of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope<'a> {
    pub vars: HashMap<&'a str, Value>,
    /// Enclosing scope: that of a function, then that of the module.
    pub parent: Option<ScopeId>,
    /// Names declared `global`.
    pub globals: HashSet<&'a str>,
    /// Names declared `nonlocal`.
    pub outer: HashSet<&'a str>,
    /// Modules outside the project that were imported with `from x import *`.
    pub stars: Vec<Arc<str>>,
    /// True for the body of a class.
    pub is_class: bool,
}

/// Position of the evaluation: scope, module and instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub scope: ScopeId,
    pub module: usize,
    /// Instance whose method is evaluated (`None` in the body of the class), and the class of the method.
    pub this: Option<(Option<ObjectId>, ClassId)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loaded {
    Not,
    Running(ScopeId),
    Done(ScopeId),
}

/// Changed entries of other components, which are immutable otherwise.
#[derive(Debug, Default)]
pub(crate) struct Overlays<'a> {
    pub lists: Overlay<ListId, List>,
    pub dicts: Overlay<DictId, Dict>,
    pub objects: Overlay<ObjectId, Object>,
    pub classes: Overlay<ClassId, Class>,
    pub scopes: Overlay<ScopeId, Scope<'a>>,
}

/// Evaluator of modules, with everything that they made.
#[derive(Debug)]
pub struct World<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) framework: Option<&'a dyn Framework>,
    pub(crate) limits: Limits,
    pub(crate) steps: usize,
    /// Step count at which evaluation stops: the total, or that of the current call into another component.
    pub(crate) stop: usize,
    /// Functions of other components that exceeded their budget.
    pub(crate) heavy: HashSet<FunctionId>,
    pub(crate) text: usize,
    pub(crate) depth: usize,
    /// Number of enclosing undecided conditions.
    pub(crate) conditions: usize,
    /// Enclosing loops and functions that are evaluated once for several times.
    pub(crate) repeating: Vec<Times>,
    /// Enclosing sides of undecided `if` statements, see [`Object::sides`].
    pub(crate) sides: Vec<(Span, usize)>,
    pub(crate) exploring: bool,
    /// The functions visited so far, where each statement is visited once: see [`World::block_in_order`].
    pub(crate) in_order: Option<HashSet<FunctionId>>,
    /// True if a call into another component exceeded its share.
    pub(crate) gave_up: bool,
    pub(crate) within: Vec<FunctionId>,
    /// Component that is being made.
    pub(crate) component: u32,
    pub(crate) own: Tables<'a>,
    pub(crate) changed: Overlays<'a>,
    /// Source of the components that are evaluated elsewhere. `None` if this evaluator evaluates all modules.
    pub(crate) components: Option<Arc<dyn ComponentSource<'a> + 'a>>,
    /// Modules evaluated here, sorted. Empty if all are.
    pub(crate) members: Vec<usize>,
    /// Linked components, by number; and their numbers in order of linking.
    pub(crate) linked: Vec<Option<Arc<Component<'a>>>>,
    pub(crate) order: Vec<u32>,
    /// File of the main module, of which a component may have another copy.
    pub(crate) main: Option<FileId>,
    /// Enclosing functions: length of the path at their start, and return values so far.
    pub(crate) returns: Vec<(usize, Vec<Guarded>)>,
    /// For each enclosing function, whether it yields.
    pub(crate) yields: Vec<bool>,
    /// True while computations on unknown values are kept as objects.
    pub(crate) symbolic: bool,
    /// Conditions that hold at the current position during symbolic evaluation.
    pub(crate) path: Vec<Condition>,
    pub(crate) paths: HashMap<ObjectId, Vec<Condition>>,
    /// Number of enclosing operands that may be skipped, and objects made in such operands.
    pub(crate) operands: usize,
    pub(crate) optional: HashSet<ObjectId>,
    /// Exits of the enclosing loops.
    pub(crate) left: Vec<LoopExits<'a>>,
    /// Number of enclosing iterations whose writes are recorded, and these writes.
    pub(crate) watching: usize,
    pub(crate) written: Vec<(Write<'a>, bool)>,
    pub(crate) changes: usize,
    /// Objects of evaluations that were repeated, as ranges of numbers.
    pub(crate) discarded: Vec<(u32, u32)>,
    /// Functions that replace functions under decorators of the project. `None` if the replacement isn't a
    /// function.
    pub(crate) wrappers: HashMap<FunctionId, Option<Value>>,
    /// Lists that may have several names.
    pub(crate) aliased: HashSet<ListId>,
    loaded: Vec<Loaded>,
    mains: HashSet<usize>,
    /// Memoized results, by instance and function.
    pub(crate) memo: HashMap<(Option<ObjectId>, FunctionId), Value>,
    /// Place at which the budget was used up.
    exceeded: Option<Span>,
    /// The project's functions that the evaluation entered, by the place of the call.
    pub(crate) entered_at: HashMap<Span, Vec<FunctionId>>,
    /// Calls of unknown values, while they are watched.
    pub(crate) unresolved: Option<Vec<(Option<Arc<str>>, Span)>>,
    /// Objects by the place where they were made, as far as somebody has looked for them there.
    places: Mutex<PlaceIndex>,
}

/// Objects by the place where they were made, in the order in which they were made.
#[derive(Debug, Default)]
struct PlaceIndex {
    own: HashMap<Span, Vec<ObjectId>>,
    imported: HashMap<Span, Vec<ObjectId>>,
    /// Numbers of own objects and of linked components that are in it.
    added: (usize, usize),
}

macro_rules! tables {
    ($($get:ident $add:ident $table:ident $id:ident $type:ty $(, $get_mut:ident $changed:ident)?;)*) => {$(
        #[doc = concat!("The entry of a [`", stringify!($id), "`].")]
        pub fn $get(&self, id: $id) -> &$type {
            if id.component == self.component {
                return &self.own.$table[id.index as usize];
            }
            $(
                if let Some(changed) = self.changed.$changed.get(id) {
                    return changed;
                }
            )?
            &self.other(id.component).$table[id.index as usize]
        }
        pub(crate) fn $add(&mut self, entry: $type) -> $id {
            // Each entry costs a step, and steps are limited far below this number.
            self.own.$table.push(entry);
            $id { component: self.component, index: self.own.$table.len() as u32 - 1 }
        }
        $(
            pub(crate) fn $get_mut(&mut self, id: $id) -> &mut $type {
                if id.component == self.component {
                    return &mut self.own.$table[id.index as usize];
                }
                let component = self.linked.get(id.component as usize).and_then(Option::as_deref);
                let made = || component.expect(LINKED).tables.$table[id.index as usize].clone();
                self.changed.$changed.get_mut(id, self.component, made)
            }
        )?
    )*};
}

/// Reason why the component of an entry is there.
const LINKED: &str = "a value names entries of parts that are seen";

impl<'a> World<'a> {
    tables! {
        list add_list lists ListId List, list_mut lists;
        dict add_dict dicts DictId Dict, dict_mut dicts;
        pieces add_text texts TextId Vec<Piece>;
        object add_object objects ObjectId Object, object_mut objects;
        function add_function functions FunctionId Function<'a>;
        class add_class classes ClassId Class, class_mut classes;
        env add_env envs EnvId Env;
    }

    pub(crate) fn scope(&self, id: ScopeId) -> &Scope<'a> {
        if id.component == self.component {
            return &self.own.scopes[id.index as usize];
        }
        self.changed.scopes.get(id).unwrap_or_else(|| &self.other(id.component).scopes[id.index as usize])
    }

    pub(crate) fn scope_mut(&mut self, id: ScopeId) -> &mut Scope<'a> {
        if id.component == self.component {
            return &mut self.own.scopes[id.index as usize];
        }
        let component = self.linked.get(id.component as usize).and_then(Option::as_deref);
        let made = || component.expect(LINKED).tables.scopes[id.index as usize].clone();
        self.changed.scopes.get_mut(id, self.component, made)
    }

    /// Returns the tables of another component.
    fn other(&self, component: u32) -> &Tables<'a> {
        &self.linked.get(component as usize).and_then(Option::as_ref).expect(LINKED).tables
    }

    /// Makes an evaluator.
    pub fn new(sources: &'a Sources, limits: Limits) -> World<'a> {
        World {
            sources,
            framework: None,
            limits,
            steps: 0,
            stop: limits.steps,
            heavy: HashSet::new(),
            text: 0,
            depth: 0,
            conditions: 0,
            repeating: Vec::new(),
            sides: Vec::new(),
            exploring: false,
            in_order: None,
            gave_up: false,
            within: Vec::new(),
            component: 0,
            own: Tables::default(),
            changed: Overlays::default(),
            components: None,
            members: Vec::new(),
            linked: Vec::new(),
            order: Vec::new(),
            main: None,
            returns: Vec::new(),
            yields: Vec::new(),
            symbolic: false,
            path: Vec::new(),
            paths: HashMap::new(),
            operands: 0,
            optional: HashSet::new(),
            left: Vec::new(),
            watching: 0,
            written: Vec::new(),
            changes: 0,
            discarded: Vec::new(),
            wrappers: HashMap::new(),
            aliased: HashSet::new(),
            loaded: vec![Loaded::Not; sources.len()],
            mains: HashSet::new(),
            memo: HashMap::new(),
            exceeded: None,
            entered_at: HashMap::new(),
            unresolved: None,
            places: Mutex::default(),
        }
    }

    /// Makes an evaluator for the classes of a framework.
    pub fn with_framework(sources: &'a Sources, limits: Limits, framework: &'a dyn Framework) -> World<'a> {
        World { framework: Some(framework), ..World::new(sources, limits) }
    }

    /// Sets the component that is being made, and its modules.
    pub(crate) fn place(&mut self, component: u32, members: Vec<usize>) {
        (self.component, self.members) = (component, members);
        self.linked = vec![None; self.sources.len()];
    }

    /// Returns true if a module that the text doesn't import by name may be evaluated. A component must not
    /// wait for one that it isn't known to import.
    pub(crate) fn may_load(&self, module: usize) -> bool {
        self.components.is_none()
            || self.main.is_some()
            || self.members.binary_search(&module).is_ok()
            || self.module_scope(module).is_some()
    }

    /// Returns the modules.
    pub fn sources(&self) -> &'a Sources {
        self.sources
    }

    /// Returns the modules that were evaluated: those that were run, and what they import.
    pub fn evaluated(&self) -> impl Iterator<Item = &'a Source> {
        let sources = self.sources;
        (0..sources.len()).filter(|m| self.is_evaluated(*m)).filter_map(|m| sources.get(m))
    }

    /// Returns true if a module was evaluated: it was run, or is imported by one that was.
    pub fn is_evaluated(&self, module: usize) -> bool {
        self.module_scope(module).is_some()
    }

    /// Place at which evaluation was given up because the budget was used up. Later values are unknown.
    pub fn exceeded(&self) -> Option<Span> {
        self.exceeded
    }

    /// Returns true if this evaluation used up its budget, and not only that of an imported component.
    pub fn is_exhausted(&self) -> bool {
        self.steps >= self.limits.steps
    }

    /// Returns true if an object was made while the main module was evaluated, perhaps by a function of
    /// another module.
    pub fn is_own(&self, id: ObjectId) -> bool {
        id.component == self.component
    }

    /// Returns all objects in order of creation; those of imports module by module.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, &Object)> {
        let imported = self.imported().flat_map(|component| {
            let component = (component.number, component.tables.objects.len());
            (0..component.1 as u32).map(move |index| ObjectId { component: component.0, index })
        });
        let imported = imported.map(|id| (id, self.object(id)));
        let own = self.own_objects(0).filter(|(id, _)| !self.is_discarded(*id));
        imported.filter(|(_, o)| self.main != Some(o.span.file)).chain(own)
    }

    /// Returns the last of the objects ([`World::objects`]) that were made at a place and pass a test.
    pub fn last_made_at(&self, at: Span, is: impl Fn(&Object) -> bool) -> Option<ObjectId> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let PlaceIndex { own, imported, added } = &mut *places;
        for (id, object) in self.own_objects(added.0) {
            own.entry(object.span).or_default().push(id);
        }
        for component in self.imported().skip(added.1) {
            for (index, object) in component.tables.objects.iter().enumerate() {
                let id = ObjectId { component: component.number, index: index as u32 };
                imported.entry(object.span).or_default().push(id);
            }
        }
        *added = (self.own.objects.len(), self.imported().count());
        let is_it = |id: &&ObjectId| !self.is_discarded(**id) && is(self.object(**id));
        let own = own.get(&at).into_iter().flatten().rev().find(is_it);
        let imported = imported.get(&at).into_iter().flatten().rev();
        own.or_else(|| imported.filter(|_| self.main != Some(at.file)).find(is_it)).copied()
    }

    /// Returns the objects made here, without the `first` ones.
    pub(crate) fn own_objects(&self, first: usize) -> impl Iterator<Item = (ObjectId, &Object)> {
        let component = self.component;
        let all = self.own.objects.iter().enumerate().skip(first);
        all.map(move |(i, o)| (ObjectId { component, index: i as u32 }, o))
    }

    /// Returns all functions in order of definition; those of imports module by module.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function<'a>)> {
        let imported = self.imported().flat_map(|component| {
            let all = component.tables.functions.iter().enumerate();
            all.map(|(i, f)| (FunctionId { component: component.number, index: i as u32 }, f))
        });
        let own = self.own.functions.iter().enumerate();
        let own = own.map(|(i, f)| (FunctionId { component: self.component, index: i as u32 }, f));
        imported.filter(|(_, f)| self.main != Some(f.span.file)).chain(own)
    }

    /// Returns all classes in order of definition; those of imports module by module.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Class)> {
        let imported = self.imported().flat_map(|component| {
            let component = (component.number, component.tables.classes.len());
            (0..component.1 as u32).map(move |index| ClassId { component: component.0, index })
        });
        let imported = imported.map(|id| (id, self.class(id)));
        let own = self.own.classes.iter().enumerate();
        let own = own.map(|(i, c)| (ClassId { component: self.component, index: i as u32 }, c));
        imported.filter(|(_, c)| self.main != Some(c.span.file)).chain(own)
    }

    /// Returns the linked components, in order.
    fn imported(&self) -> impl Iterator<Item = &Component<'a>> {
        self.order.iter().filter_map(|n| self.linked.get(*n as usize)?.as_deref())
    }

    /// Evaluates a module as the main module, whose `__name__` is `__main__`.
    pub fn run(&mut self, module: usize) {
        self.mains.insert(module);
        let span = self.source(module).span(TextRange::default());
        self.load(module, span);
    }

    /// Calls every function of an evaluated module that nothing has called, and instantiates every such
    /// class, with unknown arguments. Objects made this way are [`Object::explored`].
    pub fn explore(&mut self, module: usize) {
        let was = std::mem::replace(&mut self.exploring, true);
        let (mut f, mut c) = (0, 0);
        let mapped = self.passed_to_callers();
        // Exploring defines functions, which are explored too.
        while f < self.own.functions.len() || c < self.own.classes.len() {
            while c < self.own.classes.len() {
                let id = ClassId { component: self.component, index: c as u32 };
                c += 1;
                if self.class(id).module == module && !self.exhausted() {
                    self.explore_class(id);
                }
            }
            while f < self.own.functions.len() {
                let id = FunctionId { component: self.component, index: f as u32 };
                f += 1;
                let function = self.function(id);
                let lambda = matches!(function.body, Body::Expr(_));
                let again = mapped.contains(&id);
                let open = !function.entered || again;
                if function.module == module && open && !lambda && function.class.is_none() {
                    let span = function.span;
                    if self.exhausted() {
                        return;
                    }
                    let times = if again { None } else { self.repeating_call(id) };
                    self.repeating(times, |w| w.call_body(id, None, Vec::new(), Some(span), span));
                }
            }
        }
        self.exploring = was;
    }

    /// Returns the functions that are passed to an external caller, as `map` or `Thread` is.
    fn passed_to_callers(&self) -> HashSet<FunctionId> {
        const CALLERS: &[&str] = &[
            "Process",
            "Thread",
            "Timer",
            "add_job",
            "apply_async",
            "imap",
            "imap_unordered",
            "map",
            "map_async",
            "process_map",
            "run_in_executor",
            "starmap",
            "submit",
            "thread_map",
        ];
        let calls = self.objects().filter(|(_, o)| o.class.is_none() && CALLERS.contains(&o.short()));
        let given = calls.flat_map(|(_, o)| o.args.iter().map(|a| &a.value));
        let functions = given.filter_map(|v| match v.kind {
            PyKind::Function(f) | PyKind::Bound(_, f) => Some(f),
            _ => None,
        });
        functions.collect()
    }

    fn explore_class(&mut self, id: ClassId) {
        let class = self.class(id);
        let span = class.span;
        let methods: Vec<FunctionId> = class
            .attrs
            .iter()
            .filter_map(|(_, v)| match v.kind {
                PyKind::Function(f) => Some(f),
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
                self.call_body(method, Some(this), Vec::new(), Some(span), span);
            }
        }
        for method in self.completed_methods(id) {
            if self.exhausted() {
                return;
            }
            let span = self.function(method).span;
            self.call_body(method, Some(this), Vec::new(), Some(span), span);
        }
    }

    /// Methods that a class inherits from the project's classes and that use a method which it overrides:
    /// `build`, which calls `self.get_tools()`.
    fn completed_methods(&self, id: ClassId) -> Vec<FunctionId> {
        const MAX_METHODS: usize = 16;
        let own: HashSet<&str> = self
            .class(id)
            .attrs
            .iter()
            .filter(|(n, v)| !n.starts_with("__") && matches!(v.kind, PyKind::Function(_)))
            .map(|(n, _)| &**n)
            .collect();
        let mut seen: HashSet<&str> = own.clone();
        let mut out = Vec::new();
        let mut todo: Vec<ClassId> = vec![id];
        for _ in 0..MAX_METHODS {
            let Some(at) = todo.pop() else { break };
            for base in &self.class(at).bases {
                let PyKind::Class(base) = base.kind else { continue };
                todo.push(base);
                for (name, value) in &self.class(base).attrs {
                    let PyKind::Function(method) = value.kind else { continue };
                    if seen.insert(name) && !name.starts_with("__") && out.len() < MAX_METHODS {
                        let body = self.function(method).body();
                        if crate::loops::reads_own(body, &own) {
                            out.push(method);
                        }
                    }
                }
            }
        }
        out
    }

    /// Returns the value of a module's name, and evaluates the module if necessary.
    pub fn global(&mut self, module: usize, name: &str) -> Option<Value> {
        let span = self.sources.get(module)?.span(TextRange::default());
        let scope = self.load(module, span)?;
        self.scope(scope).vars.get(name).cloned()
    }

    /// Returns the names of an evaluated module with their values, by place.
    pub fn globals(&self, module: usize) -> Vec<(&'a str, &Value)> {
        let Some(Loaded::Done(scope) | Loaded::Running(scope)) = self.loaded.get(module) else {
            return Vec::new();
        };
        let mut all: Vec<_> = self.scope(*scope).vars.iter().map(|(n, v)| (*n, v)).collect();
        all.sort_by_key(|(n, v)| (v.span, *n));
        all
    }

    /// Calls a function of the project, or makes an instance of one of its classes.
    pub fn call(&mut self, function: &Value, args: Vec<Arg>) -> Value {
        let span = function.span;
        self.apply(function, args, None, span)
    }

    /// Returns the value of `value.name`.
    pub fn get(&mut self, value: &Value, name: &str) -> Value {
        let span = value.span;
        self.attribute(value, name, span)
    }

    /// Sets an attribute of an object.
    pub fn set(&mut self, object: ObjectId, name: &str, value: Value) {
        self.object_mut(object).attrs.push((name.into(), value));
    }

    /// Makes a list for a framework.
    pub fn new_list(&mut self, items: Vec<Value>, span: Span) -> Value {
        self.list_value(items, ListKind::List, None, span)
    }

    /// Makes a dictionary for a framework.
    pub fn new_dict(&mut self, entries: Vec<(&str, Value)>, span: Span) -> Value {
        let key = |name: &str| Value::new(PyKind::Str(name.into()), span);
        let entries = entries.into_iter().map(|(name, value)| (key(name), value)).collect();
        let dict = self.add_dict(Dict { entries, open: None });
        Value::new(PyKind::Dict(dict), span)
    }

    /// Makes an object that nothing in the project makes, such as what a framework hands in.
    pub fn new_call(&mut self, callee: &str, args: Vec<Arg>, span: Span) -> Value {
        let id = self.new_object(callee.into(), args, None, span, None);
        Value::new(PyKind::Object(id), span)
    }

    /// Calls a method of an instance of one of the project's classes.
    pub fn call_method(&mut self, this: ObjectId, method: FunctionId, args: Vec<Arg>) -> Value {
        let span = self.function(method).span;
        self.call_body(method, Some(this), args, Some(span), span)
    }

    // ---- reading values ----

    /// Returns the text of a value, if it is known. Defaults of environment variables count as known.
    pub fn str<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        self.resolve_env(value).as_str()
    }

    /// Returns the default of a value from the environment, or any other value itself.
    pub fn resolve_env<'v>(&'v self, mut value: &'v Value) -> &'v Value {
        // A default may be what the environment says again; cycles are impossible as values are made before
        // they are used.
        while let PyKind::Env(id) = value.kind {
            match &self.env(id).default {
                Some(default) => value = default,
                None => break,
            }
        }
        value
    }

    /// Returns the items of a list. `None` for anything else.
    pub fn items<'v>(&'v self, value: &'v Value) -> Option<&'v [Value]> {
        match self.resolve_env(value).kind {
            PyKind::List(id) => Some(&self.list(id).items),
            _ => None,
        }
    }

    /// Returns the number of items of a list that has some. `None` if it isn't known.
    pub fn count(&self, list: &Value) -> Option<u64> {
        let PyKind::List(id) = self.resolve_env(list).kind else { return None };
        let list = self.list(id);
        u64::try_from(list.items.len()).ok().filter(|n| list.open.is_none() && *n > 0)
    }

    /// Returns the entries of a dictionary. `None` for anything else.
    pub fn entries<'v>(&'v self, value: &'v Value) -> Option<&'v [(Value, Value)]> {
        match self.resolve_env(value).kind {
            PyKind::Dict(id) => Some(&self.dict(id).entries),
            _ => None,
        }
    }

    /// Returns the object of a value, with its number. `None` for anything else.
    pub fn object_of(&self, value: &Value) -> Option<(ObjectId, &Object)> {
        match self.resolve_env(value).kind {
            PyKind::Object(id) => Some((id, self.object(id))),
            _ => None,
        }
    }

    /// Returns the name of a value: of a function or class, the qualified name of an external, or the callee
    /// of an object.
    pub fn name_of(&self, value: &Value) -> Option<Arc<str>> {
        Some(match &value.kind {
            PyKind::Function(id) | PyKind::Bound(_, id) => self.function(*id).name.clone(),
            PyKind::Class(id) => self.class(*id).name.clone(),
            PyKind::External(name) => name.clone(),
            PyKind::Object(id) => self.object(*id).callee.clone(),
            PyKind::Member(id, name) => format!("{}.{name}", self.object(*id).callee).into(),
            _ => return None,
        })
    }

    /// Returns the methods called on an object and on the results of these calls, in order, for builders
    /// whose methods return the builder.
    pub fn method_chain(&self, object: ObjectId) -> Vec<(&Method, &Object)> {
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

    /// Returns the innermost reason why a value is unknown.
    pub fn unknown_reason(&self, value: &Value) -> Arc<str> {
        match &value.kind {
            PyKind::Unknown(why) => why.clone(),
            PyKind::Either(_) => "one of several values".into(),
            PyKind::Env(id) => match &self.env(*id).name {
                Some(name) => format!("the environment variable `{name}`").into(),
                None => "an environment variable".into(),
            },
            PyKind::Object(id) => format!("the result of `{}`", self.object(*id).callee).into(),
            PyKind::Member(id, name) => {
                format!("`{name}` of the result of `{}`", self.object(*id).callee).into()
            }
            PyKind::External(name) => format!("`{name}`, which is not in the project").into(),
            _ => "a value of another kind".into(),
        }
    }

    /// Returns the pieces of a text. `None` for anything else.
    pub fn text_of(&self, value: &Value) -> Option<Vec<Piece>> {
        let settled = self.resolve_env(value);
        match &settled.kind {
            PyKind::Str(s) => Some(vec![Piece::Text(s.clone())]),
            PyKind::Text(id) => Some(self.pieces(*id).clone()),
            PyKind::Env(_) => Some(vec![Piece::Hole(settled.clone(), self.unknown_reason(settled))]),
            _ => None,
        }
    }

    // ---- evaluation ----

    pub(crate) fn source(&self, module: usize) -> &'a Source {
        // Modules are numbered by the sources themselves.
        self.sources.get(module).expect("a module of these sources")
    }

    /// Returns the span of a range of a module's text.
    pub fn span(&self, module: usize, range: TextRange) -> Span {
        self.source(module).span(range)
    }

    /// Returns true if the step budget is used up.
    pub(crate) fn exhausted(&self) -> bool {
        self.steps >= self.stop
    }

    /// Evaluates a call of another component's function within a share of the budget, which is smaller for a
    /// function that nothing calls. A function that exceeds its share isn't called again.
    pub(crate) fn within_budget(
        &mut self,
        id: FunctionId,
        span: Span,
        f: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        if id.component == self.component || self.stop < self.limits.steps {
            return f(self);
        }
        let name = self.function(id).name.clone();
        let given_up =
            || Value::unknown(format!("the result of `{name}`, which exceeds the evaluation limit"), span);
        if self.heavy.contains(&id) && self.in_order.is_none() {
            self.gave_up = true;
            return given_up();
        }
        let share = if self.exploring { EXPLORED_BUDGET_DIVISOR } else { CALLED_BUDGET_DIVISOR };
        self.stop = self.steps.saturating_add(self.limits.steps / share).min(self.limits.steps);
        let known = self.exceeded;
        let value = f(self);
        let cut = self.exhausted();
        self.stop = self.limits.steps;
        if !cut {
            return value;
        }
        self.gave_up = true;
        self.heavy.insert(id);
        self.exceeded = known.or(Some(span));
        given_up()
    }

    /// Takes steps from the budget. Returns false if it is used up.
    pub(crate) fn step(&mut self, count: usize, at: Span) -> bool {
        self.steps = self.steps.saturating_add(count);
        if self.exhausted() && self.exceeded.is_none() {
            self.exceeded = Some(at);
        }
        !self.exhausted()
    }

    /// Returns the scope of a module, and evaluates the module if necessary. `span` is the place of the
    /// import.
    pub(crate) fn load(&mut self, module: usize, span: Span) -> Option<ScopeId> {
        match *self.loaded.get(module)? {
            Loaded::Running(scope) | Loaded::Done(scope) => return Some(scope),
            Loaded::Not => {}
        }
        if let Some(components) =
            self.components.clone().filter(|_| self.members.binary_search(&module).is_err())
        {
            let component = self.with_stack(|_| components.component(module))?;
            if component.exceeded && self.exceeded.is_none() {
                self.exceeded = Some(span);
            }
            self.link(component);
            return self.module_scope(module);
        }
        let scope = self.new_scope(None, false);
        self.loaded[module] = Loaded::Running(scope);
        let source = self.source(module);
        let start = source.span(TextRange::default());
        let name: Arc<str> =
            if self.mains.contains(&module) { "__main__".into() } else { source.module_name().into() };
        for (var, value) in [("__name__", name), ("__file__", source.path.as_str().into())] {
            self.scope_mut(scope).vars.insert(var, Value::new(PyKind::Str(value), start));
        }
        let at = Context { scope, module, this: None };
        // A module is evaluated with nothing around it, wherever it is imported.
        let conditions = std::mem::replace(&mut self.conditions, 0);
        let exploring = std::mem::replace(&mut self.exploring, false);
        let within = std::mem::take(&mut self.within);
        let symbolic = std::mem::replace(&mut self.symbolic, false);
        let path = std::mem::take(&mut self.path);
        self.returns.push((0, Vec::new()));
        self.depth += 1;
        self.with_stack(|w| w.block(source.body(), at));
        self.depth -= 1;
        self.returns.pop();
        (self.conditions, self.exploring, self.within) = (conditions, exploring, within);
        (self.symbolic, self.path) = (symbolic, path);
        self.loaded[module] = Loaded::Done(scope);
        Some(scope)
    }

    /// Calls `f` with enough stack.
    pub(crate) fn with_stack<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        stacker::maybe_grow(256 << 10, 2 << 20, || f(self))
    }

    pub(crate) fn new_scope(&mut self, parent: Option<ScopeId>, is_class: bool) -> ScopeId {
        self.own.scopes.push(Scope { parent, is_class, ..Scope::default() });
        ScopeId { component: self.component, index: self.own.scopes.len() as u32 - 1 }
    }

    /// Links a component, after those that it links.
    fn link(&mut self, component: Arc<Component<'a>>) {
        if self.linked.get(component.number as usize).is_none_or(Option::is_some) {
            return;
        }
        for number in &component.links_to {
            if self.linked.get(*number as usize).is_some_and(Option::is_none)
                && let Some(other) = self.components.as_ref().and_then(|p| p.existing(*number))
            {
                self.link_one(other);
            }
        }
        self.link_one(component);
    }

    fn link_one(&mut self, component: Arc<Component<'a>>) {
        let number = component.number;
        for (module, scope) in &component.modules {
            if let Some(loaded) = self.loaded.get_mut(*module) {
                *loaded = Loaded::Done(*scope);
            }
        }
        for (key, value) in &component.memo {
            self.memo.entry(*key).or_insert_with(|| value.clone());
        }
        self.linked[number as usize] = Some(component.clone());
        self.order.push(number);
        let made = |n: u32| &self.linked.get(n as usize).and_then(Option::as_ref).expect(LINKED).tables;
        let links = |p: u32| component.links(p);
        self.changed
            .lists
            .add(&component.lists, number, links, |id| &made(id.component).lists[id.index as usize]);
        self.changed
            .dicts
            .add(&component.dicts, number, links, |id| &made(id.component).dicts[id.index as usize]);
        self.changed
            .objects
            .add(&component.objects, number, links, |id| &made(id.component).objects[id.index as usize]);
        self.changed
            .classes
            .add(&component.classes, number, links, |id| &made(id.component).classes[id.index as usize]);
        self.changed
            .scopes
            .add(&component.scopes, number, links, |id| &made(id.component).scopes[id.index as usize]);
    }

    /// Makes a part of what was evaluated here.
    pub(crate) fn into_component(self) -> Component<'a> {
        let number = self.component;
        let modules = self.loaded.iter().enumerate().filter_map(|(module, loaded)| match loaded {
            Loaded::Done(scope) if scope.component == number => Some((module, *scope)),
            _ => None,
        });
        let cut = self.is_exhausted();
        let mut sorted = self.order.clone();
        sorted.sort_unstable();
        Component {
            number,
            modules: modules.collect(),
            memo: self.memo,
            links_to: self.order,
            sorted,
            cut,
            exceeded: self.exceeded.is_some(),
            tables: self.own,
            lists: self.changed.lists.of(number),
            dicts: self.changed.dicts.of(number),
            objects: self.changed.objects.of(number),
            classes: self.changed.classes.of(number),
            scopes: self.changed.scopes.of(number),
        }
    }

    /// Returns true if evaluation of a module was given up before its end.
    pub(crate) fn is_cut(&self, module: usize) -> bool {
        let component = self.module_scope(module).map(|s| s.component);
        component.and_then(|p| self.linked.get(p as usize)?.as_ref()).is_some_and(|p| p.cut)
    }

    pub(crate) fn module_scope(&self, module: usize) -> Option<ScopeId> {
        match self.loaded.get(module)? {
            Loaded::Running(scope) | Loaded::Done(scope) => Some(*scope),
            Loaded::Not => None,
        }
    }

    /// Returns true if the evaluation represents an unknown number of others.
    fn is_repeating(&self) -> bool {
        self.repeating.iter().any(Option::is_none)
    }

    /// Maximal number of evaluations that this one represents, as far as there is a limit.
    fn times(&self) -> u64 {
        self.repeating.iter().flatten().fold(1, |n, times| n.saturating_mul(*times))
    }

    /// Evaluates something that represents a number of evaluations.
    pub(crate) fn repeating<T>(&mut self, times: Times, f: impl FnOnce(&mut Self) -> T) -> T {
        self.repeating.push(times);
        let value = f(self);
        self.repeating.pop();
        value
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
            repeated: self.is_repeating(),
            times: self.times(),
            sides: self.sides.clone(),
            explored: self.exploring,
            within: self.within.last().copied(),
        };
        let id = self.add_object(object);
        self.note_path(id, span);
        id
    }

    /// Returns the project's functions that the evaluation entered at a call: one, or a few where the callee
    /// is one of several.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use python::{Limits, Sources, World};
    /// let mut sources = Sources::new();
    /// let text = "class Box:\n    def open(self):\n        return 1\nbox = Box()\nbox.open()\n";
    /// let main = sources.add(FileId(0), "m.py", text.into());
    /// let mut world = World::new(&sources, Limits::default());
    /// world.run(main);
    /// let at = text.rfind("box.open()").unwrap() as u32;
    /// let call = world.entered_at(diagnostics::Span { file: FileId(0), start: at, end: at + 10 });
    /// assert_eq!(&*world.function(call[0]).name, "open");
    /// ```
    pub fn entered_at(&self, call: Span) -> &[FunctionId] {
        self.entered_at.get(&call).map_or(&[], Vec::as_slice)
    }

    /// Returns each call at which the evaluation entered functions of the project, with these functions.
    pub fn entries_of_calls(&self) -> impl Iterator<Item = (Span, &[FunctionId])> {
        self.entered_at.iter().map(|(call, functions)| (*call, functions.as_slice()))
    }

    /// Notes that a call enters a function.
    pub(crate) fn note_entry(&mut self, call: Span, function: FunctionId) {
        const MAX_FUNCTIONS: usize = 4;
        let known = self.entered_at.entry(call).or_default();
        if known.len() < MAX_FUNCTIONS && !known.contains(&function) {
            known.push(function);
        }
    }

    /// Records a call of a function. Calls of other components' functions don't count here.
    pub(crate) fn note_call(&mut self, id: FunctionId) {
        if id.component == self.component {
            let (counts, repeated, times) = (!self.exploring, self.is_repeating(), self.times());
            let function = &mut self.own.functions[id.index as usize];
            function.entered = true;
            if counts {
                function.called = function.called.saturating_add(times);
                function.repeated |= repeated;
            }
        }
    }

    /// Makes a list.
    pub(crate) fn list_value(
        &mut self,
        items: Vec<Value>,
        kind: ListKind,
        open: Option<Span>,
        span: Span,
    ) -> Value {
        let id = self.add_list(List { items, kind, open });
        Value::new(PyKind::List(id), span)
    }

    /// Makes a value with several alternatives, or returns the only one.
    pub(crate) fn either(&mut self, values: Vec<Value>, span: Span) -> Value {
        const MAX_ALTERNATIVES: usize = 16;
        self.either_of(values, MAX_ALTERNATIVES, span)
    }

    /// The same with another limit of the number of values.
    pub(crate) fn either_of(&mut self, values: Vec<Value>, most: usize, span: Span) -> Value {
        let mut all: Vec<Value> = Vec::new();
        for value in values {
            let several = match value.kind {
                PyKind::Either(id) => self.list(id).items.clone(),
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
            n if n > most => Value::unknown("one of many values", span),
            _ => {
                let id = self.add_list(List { items: all, kind: ListKind::Tuple, open: None });
                Value::new(PyKind::Either(id), span)
            }
        }
    }

    /// Returns true if two values are certainly the same.
    pub(crate) fn same(&self, a: &Value, b: &Value) -> bool {
        same(a, b)
    }
}

/// Returns true if two values are certainly the same.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    if a.maybe != b.maybe {
        return false;
    }
    match (&a.kind, &b.kind) {
        (PyKind::None, PyKind::None) => true,
        (PyKind::Bool(a), PyKind::Bool(b)) => a == b,
        (PyKind::Int(a), PyKind::Int(b)) => a == b,
        (PyKind::Float(a), PyKind::Float(b)) => a == b,
        (PyKind::Str(a), PyKind::Str(b)) | (PyKind::External(a), PyKind::External(b)) => a == b,
        (PyKind::Text(a), PyKind::Text(b)) => a == b,
        (PyKind::List(a), PyKind::List(b)) | (PyKind::Either(a), PyKind::Either(b)) => a == b,
        (PyKind::Dict(a), PyKind::Dict(b)) => a == b,
        (PyKind::Object(a), PyKind::Object(b)) => a == b,
        (PyKind::Member(a, n), PyKind::Member(b, m)) => a == b && n == m,
        (PyKind::Function(a), PyKind::Function(b)) => a == b,
        (PyKind::Class(a), PyKind::Class(b)) => a == b,
        (PyKind::Module(a), PyKind::Module(b)) => a == b,
        (PyKind::Env(a), PyKind::Env(b)) => a == b,
        (PyKind::Bound(a, f), PyKind::Bound(b, g)) => a == b && f == g,
        (PyKind::Unknown(x), PyKind::Unknown(y)) => x == y && a.span == b.span,
        _ => false,
    }
}
