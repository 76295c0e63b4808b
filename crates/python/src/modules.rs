//! A project's modules, each evaluated once for all its importers.
//!
//! Entry point: [`Modules::among`] evaluates a module with its imports, as [`World::run`] and
//! [`World::explore`] do. Imports are evaluated on demand and kept with the [`Modules`].
//!
//! The modules of an import cycle are evaluated together, as one [`Component`], starting with the one nearest
//! to the root. The main module is evaluated by itself, as in Python: if one of its imports imports it in
//! turn, that is another copy, as `__main__` is.
//!
//! Invariant: a component depends on the texts alone, not on the order or the number of requests.
//! Invariant: a component waits only for components that its own modules import, and components form no
//! cycle; so there is no deadlock.
//! Invariant: work is bounded. A module has [`Limits::steps`], and the modules of a project together
//! [`MAX_STEPS`] as components.

use crate::eval::{Framework, Limits, Scope, World};
use crate::overlay::{Overlaid, Tables};
use crate::sources::{Source, Sources};
use crate::value::*;
use diagnostics::Span;
use ruff_python_ast::{ExceptHandler, Stmt};
use ruff_text_size::TextRange;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Step limit for all components of a project together.
pub const MAX_STEPS: usize = 60_000_000;
/// Step limit of a module in the largest project.
const MIN_STEPS: usize = 10_000;
/// Number of modules whose step limits an import cycle may use.
const MAX_CYCLE_MODULES: usize = 16;

/// Everything that the modules of one import cycle made: a strongly connected component of the import graph,
/// mostly a single module.
#[derive(Debug)]
pub(crate) struct Component<'a> {
    /// Number of the module that is evaluated first.
    pub number: u32,
    pub tables: Tables<'a>,
    /// Changed entries of other components.
    pub lists: HashMap<ListId, Overlaid<List>>,
    pub dicts: HashMap<DictId, Overlaid<Dict>>,
    pub objects: HashMap<ObjectId, Overlaid<Object>>,
    pub classes: HashMap<ClassId, Overlaid<Class>>,
    pub scopes: HashMap<ScopeId, Overlaid<Scope<'a>>>,
    /// Modules with their scopes.
    pub modules: Vec<(usize, ScopeId)>,
    pub memo: HashMap<(Option<ObjectId>, FunctionId), Value>,
    /// Linked components, in order; and sorted.
    pub links_to: Vec<u32>,
    pub sorted: Vec<u32>,
    /// True if its evaluation was given up before its end.
    pub cut: bool,
    /// True if its own evaluation, or that of a component it imports, was given up before its end.
    pub exceeded: bool,
}

impl Component<'_> {
    /// Returns true if this component is linked to another, and so includes its changes.
    pub fn links(&self, component: u32) -> bool {
        self.sorted.binary_search(&component).is_ok()
    }
}

/// Provider of components.
pub(crate) trait ComponentSource<'a>: std::fmt::Debug {
    /// Returns the component of a module, and evaluates it if that has not happened.
    fn component(self: Arc<Self>, module: usize) -> Option<Arc<Component<'a>>>;
    /// Returns the component of a number, if it was evaluated.
    fn existing(&self, number: u32) -> Option<Arc<Component<'a>>>;
}

/// The modules of a project.
pub struct Modules(Cell);

self_cell::self_cell! {
    struct Cell {
        owner: Arc<Sources>,
        #[not_covariant]
        dependent: ComponentCache,
    }
}

impl std::fmt::Debug for Modules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} modules", self.sources().len())
    }
}

/// Components evaluated so far, for each framework.
#[derive(Default)]
struct ComponentCache<'a> {
    imports: OnceLock<Arc<Imports<'a>>>,
    tables: Mutex<HashMap<Option<&'static str>, Arc<FrameworkComponents<'a>>>>,
}

/// Components evaluated for one framework.
struct FrameworkComponents<'a> {
    sources: &'a Sources,
    framework: Option<&'static dyn Framework>,
    imports: Arc<Imports<'a>>,
    components: Vec<OnceLock<Arc<Component<'a>>>>,
}

impl std::fmt::Debug for FrameworkComponents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "parts of {} modules", self.components.len())
    }
}

impl Modules {
    /// Makes a project of modules, none of which is evaluated yet.
    pub fn new(sources: Sources) -> Modules {
        Modules(Cell::new(Arc::new(sources), |_| ComponentCache::default()))
    }

    /// Returns the texts of the modules.
    pub fn sources(&self) -> &Sources {
        self.0.borrow_owner()
    }

    /// Evaluates a module as the main module, and the functions in it that nothing calls, together with its
    /// imports. It replaces a module of the same path. `f` gets the evaluator and the module's number.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use python::{Limits, Modules, Source, Sources};
    /// let mut others = Sources::new();
    /// others.add(FileId(1), "names.py", "BO = 'Bo'".into());
    /// let modules = Modules::new(others);
    /// let text = "from names import BO\nfrom agents import Agent\na = Agent(name=BO)\n";
    /// let main = Source::new(FileId(0), "main.py", text.into());
    /// let name = modules.among(main.into(), Limits::default(), None, |world, _| {
    ///     let (_, agent) = world.objects().next().unwrap();
    ///     world.str(&agent.arg("name").unwrap().value).map(str::to_string)
    /// });
    /// assert_eq!(name.as_deref(), Some("Bo"));
    /// ```
    pub fn among<R>(
        &self,
        main: Arc<Source>,
        limits: Limits,
        framework: Option<&'static dyn Framework>,
        f: impl FnOnce(World<'_>, usize) -> R,
    ) -> R {
        self.0.with_dependent(|owner, evaluated| {
            let file = main.id;
            let mut sources = Sources::over(owner.clone());
            let module = sources.push(main);
            let mut world = World::new(&sources, limits);
            world.framework = framework.map(|f| f as &dyn Framework);
            world.components = Some(evaluated.table(owner, framework));
            world.place(module as u32, vec![module]);
            world.main = Some(file);
            world.run(module);
            world.explore(module);
            f(world, module)
        })
    }
}

impl<'a> ComponentCache<'a> {
    fn table(
        &self,
        sources: &'a Sources,
        framework: Option<&'static dyn Framework>,
    ) -> Arc<FrameworkComponents<'a>> {
        let imports = self.imports.get_or_init(|| Arc::new(Imports::new(sources)));
        // A table is whole whenever the lock is free: a panic elsewhere does not spoil it.
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(framework.map(Framework::name)).or_insert_with(|| {
            let components = (0..sources.len()).map(|_| OnceLock::new()).collect();
            Arc::new(FrameworkComponents { sources, framework, imports: imports.clone(), components })
        });
        table.clone()
    }
}

impl<'a: 'w, 'w> ComponentSource<'w> for FrameworkComponents<'a> {
    fn component(self: Arc<Self>, module: usize) -> Option<Arc<Component<'w>>> {
        let cycle = self.imports.cycle(module)?;
        let first = *cycle.first()?;
        let component: &Arc<Component<'a>> = self.components.get(first)?.get_or_init(|| {
            let all = self.sources.len().max(1);
            let each = Limits::default().steps.min(MAX_STEPS / all).max(MIN_STEPS);
            let limits = Limits { steps: each * cycle.len().min(MAX_CYCLE_MODULES), ..Limits::default() };
            let mut world: World<'a> = World::new(self.sources, limits);
            world.framework = self.framework.map(|f| f as &dyn Framework);
            world.components = Some(self.clone());
            let mut members = cycle.to_vec();
            members.sort_unstable();
            world.place(first as u32, members);
            for module in cycle.iter() {
                let start = self.sources.get(*module).map(|s| s.span(TextRange::default()));
                world.load(*module, start.unwrap_or(Span { file: diagnostics::FileId(0), start: 0, end: 0 }));
            }
            Arc::new(world.into_component())
        });
        Some(component.clone())
    }

    fn existing(&self, number: u32) -> Option<Arc<Component<'w>>> {
        let component: &Arc<Component<'a>> = self.components.get(number as usize)?.get()?;
        Some(component.clone())
    }
}

/// Import graph of a project's modules.
struct Imports<'a> {
    sources: &'a Sources,
    of: Vec<OnceLock<Vec<usize>>>,
    /// Known import cycles, by module.
    cycles: RwLock<HashMap<usize, Arc<[usize]>>>,
}

impl<'a> Imports<'a> {
    fn new(sources: &'a Sources) -> Imports<'a> {
        let of = (0..sources.len()).map(|_| OnceLock::new()).collect();
        Imports { sources, of, cycles: RwLock::default() }
    }

    /// Returns the modules that a module imports anywhere in its text.
    fn of(&self, module: usize) -> &[usize] {
        self.of.get(module).map_or(&[], |known| known.get_or_init(|| imports(self.sources, module)))
    }

    /// Returns the import cycle of a module, in the order of evaluation: `__init__.py` of the topmost folder
    /// comes first.
    fn cycle(&self, module: usize) -> Option<Arc<[usize]>> {
        self.sources.get(module)?;
        if let Some(cycle) = self.known(module) {
            return Some(cycle);
        }
        let found = self.cycles_from(module);
        let mut cycles = self.cycles.write().unwrap_or_else(PoisonError::into_inner);
        for cycle in found {
            for member in cycle.iter() {
                // What is known by now is right. What was found beside it may lack those of its modules that
                // became known meanwhile.
                cycles.entry(*member).or_insert_with(|| cycle.clone());
            }
        }
        cycles.get(&module).cloned()
    }

    fn known(&self, module: usize) -> Option<Arc<[usize]>> {
        self.cycles.read().unwrap_or_else(PoisonError::into_inner).get(&module).cloned()
    }

    /// Finds the import cycles reachable from a module that aren't known yet: Tarjan's algorithm, without
    /// recursion.
    fn cycles_from(&self, start: usize) -> Vec<Arc<[usize]>> {
        #[derive(Clone, Copy)]
        struct NodeState {
            index: usize,
            low: usize,
            open: bool,
        }
        let mut marks: HashMap<usize, NodeState> = HashMap::new();
        let mut stack: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        // A module, and how many of its imports were looked at.
        let mut todo: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((module, next)) = todo.pop() {
            if next == 0 {
                let index = marks.len();
                marks.insert(module, NodeState { index, low: index, open: true });
                stack.push(module);
            }
            if let Some(&to) = self.of(module).get(next) {
                todo.push((module, next + 1));
                match marks.get(&to).copied() {
                    None if self.known(to).is_some() => {}
                    None => todo.push((to, 0)),
                    Some(mark) if mark.open => {
                        if let Some(mine) = marks.get_mut(&module) {
                            mine.low = mine.low.min(mark.index);
                        }
                    }
                    Some(_) => {}
                }
                continue;
            }
            let Some(mine) = marks.get(&module).copied() else { continue };
            if let Some((above, _)) = todo.last()
                && let Some(above) = marks.get_mut(above)
            {
                above.low = above.low.min(mine.low);
            }
            if mine.low == mine.index {
                let mut cycle = Vec::new();
                while let Some(member) = stack.pop() {
                    if let Some(mark) = marks.get_mut(&member) {
                        mark.open = false;
                    }
                    cycle.push(member);
                    if member == module {
                        break;
                    }
                }
                cycle.sort_by_key(|m| {
                    let path = self.sources.get(*m).map_or("", |s| &*s.path);
                    (path.matches('/').count(), !path.ends_with("__init__.py"), path, *m)
                });
                found.push(cycle.into());
            }
        }
        found
    }
}

/// Returns the modules that a module imports, also inside functions.
fn imports(sources: &Sources, module: usize) -> Vec<usize> {
    let mut out = BTreeSet::new();
    let mut add = |level: u32, name: &str| out.extend(sources.import(module, level, name));
    let mut todo: Vec<&[Stmt]> = sources.get(module).map(Source::body).into_iter().collect();
    while let Some(body) = todo.pop() {
        for stmt in body {
            match stmt {
                Stmt::Import(s) => {
                    for alias in &s.names {
                        let name = alias.name.id.as_str();
                        add(0, name);
                        add(0, name.split('.').next().unwrap_or(name));
                    }
                }
                Stmt::ImportFrom(s) => {
                    let name = s.module.as_ref().map_or("", |m| m.id.as_str());
                    add(s.level, name);
                    for alias in &s.names {
                        let wanted = alias.name.id.as_str();
                        if name.is_empty() {
                            add(s.level, wanted);
                        } else {
                            add(s.level, &format!("{name}.{wanted}"));
                        }
                    }
                }
                Stmt::FunctionDef(s) => todo.push(&s.body),
                Stmt::ClassDef(s) => todo.push(&s.body),
                Stmt::If(s) => {
                    todo.push(&s.body);
                    todo.extend(s.elif_else_clauses.iter().map(|c| &*c.body));
                }
                Stmt::For(s) => todo.extend([&*s.body, &*s.orelse]),
                Stmt::While(s) => todo.extend([&*s.body, &*s.orelse]),
                Stmt::With(s) => todo.push(&s.body),
                Stmt::Try(s) => {
                    todo.extend([&*s.body, &*s.orelse, &*s.finalbody]);
                    todo.extend(s.handlers.iter().map(|ExceptHandler::ExceptHandler(h)| &*h.body));
                }
                Stmt::Match(s) => todo.extend(s.cases.iter().map(|c| &*c.body)),
                _ => {}
            }
        }
    }
    out.into_iter().collect()
}
