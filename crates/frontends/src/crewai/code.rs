//! Crews and flows that Python builds.
//!
//! | source | term |
//! |---|---|
//! | `Agent(role, goal, backstory, …)`, `config=self.agents_config["a"]` | an agent as in YAML; arguments in code outweigh the configuration |
//! | `Crew(tasks=[…])` | the tasks one after the other, each told what came before |
//! | `process=Process.hierarchical` | a manager that asks the agents for each task |
//! | `allow_delegation=True` | the agent may ask the others of its crew |
//! | `@CrewBase` | `self.agents` and `self.tasks` are what the methods under `@agent` and `@task` make |
//! | a `Flow`: `@start`, `@listen`, `@router`, `or_`, `and_` | a graph of its methods |
//! | `crew.kickoff()` in a method of a flow | the crew; other code is a tool with the method's name |
//!
//! Source: CrewAI 1.15 (commit f4731f50): `project/crew_base.py`, `crew.py`, `tools/agent_tools`,
//! `flow/flow.py`.

use super::crew::Crew;
use super::source::{CrewItem, CrewReader, Setting};
use super::{CREW_KEYS, CREW_UNUSED, SHARED};
use crate::langgraph::Functions;
use crate::model_requests::{ModelRequests, Uncounted};
use crate::py::{self, Runs, field};
use diagnostics::{Diagnostic, FileId, Span};
use frontend_kit::emit::{codes, undecided};
use frontend_kit::kit::{Budget, Kit, Units};
use frontend_kit::project::{Compiled, Facts, File, Project, UnitKind};
use python::{Arg, ClassId, FunctionId, Object, ObjectId, PyKind, Value, World};
use std::collections::HashSet;

pub(super) fn detect(file: &File) -> u8 {
    let makes = |name: &str| {
        py::ends_with(name, &["Agent", "Task", "Crew", "CrewBase"])
            || name.starts_with("kickoff")
            || name == "Flow"
    };
    // What starts a crew of another module need not name the framework.
    let starts = |name: &str| {
        let (of, method) = name.rsplit_once('.').unwrap_or(("", name));
        of.ends_with(".crew()") && (method.starts_with("kickoff") || matches!(method, "train" | "test"))
    };
    if py::imports(file, &["crewai"]) && py::makes(file, makes) || starts_crew(file, starts) { 90 } else { 0 }
}

/// Returns true if a module starts the crew of an object. Most modules have no such method.
fn starts_crew(file: &File, starts: impl Fn(&str) -> bool) -> bool {
    file.python.as_ref().is_some_and(|m| m.refers("crew") && m.makes(starts))
}

/// Attributes that `@CrewBase` adds to a class.
#[derive(Debug)]
struct CrewBase;

const CONFIGS: [(&str, &str); 2] =
    [("agents_config", "config/agents.yaml"), ("tasks_config", "config/tasks.yaml")];

fn is_base(world: &World<'_>, class: ClassId) -> bool {
    world.class(class).decorators.iter().any(|d| world.name_of(d).is_some_and(|n| n.ends_with("CrewBase")))
}

impl python::Framework for CrewBase {
    fn name(&self) -> &'static str {
        "crewai"
    }

    fn owns(&self, module: &str, _: &str) -> bool {
        module.split('.').next() == Some("crewai")
    }

    fn on_instance(&self, world: &mut World<'_>, instance: ObjectId, class: ClassId) {
        if !is_base(world, class) {
            return;
        }
        let span = world.class(class).name_span;
        for (attr, default) in CONFIGS {
            let written = world.class_lookup(class, attr).map(|(v, _)| v);
            let path = match &written {
                None => Value::new(PyKind::Str(default.into()), span),
                Some(v) if v.as_str().is_some() => v.clone(),
                // A dictionary in code is used as it is.
                Some(_) => continue,
            };
            let args = vec![Arg { name: None, span: path.span, value: path }];
            let config = world.new_call(&format!("crewai.{attr}"), args, span);
            world.set(instance, attr, config);
        }
    }

    fn supplies(&self, world: &World<'_>, class: ClassId, name: &str) -> bool {
        matches!(name, "agents" | "tasks") && is_base(world, class)
    }

    fn attribute(
        &self,
        world: &mut World<'_>,
        instance: ObjectId,
        class: ClassId,
        name: &str,
    ) -> Option<Value> {
        let of = match name {
            "agents" => "agent",
            "tasks" => "task",
            _ => return None,
        };
        if !is_base(world, class) {
            return None;
        }
        let methods: Vec<FunctionId> = world
            .class(class)
            .attrs
            .iter()
            .filter_map(|(_, v)| py::function_of(v))
            .filter(|f| world.decorated(*f, &[of]))
            .collect();
        let span = world.class(class).name_span;
        let made = methods.into_iter().map(|m| world.call_method(instance, m, Vec::new())).collect();
        Some(world.new_list(made, span))
    }
}

pub(super) fn lower(project: &Project, file: &File, facts: Facts) -> Compiled {
    let mut units = Units::new("crewai", facts, project);
    py::evaluated(project, file, python::Limits::default(), Some(&CrewBase), |world, found| {
        units.compiled.diagnostics.extend(found);
        made(units, project, file, world)
    })
}

fn made(mut units: Units, project: &Project, file: &File, mut world: World<'_>) -> Compiled {
    let functions = judging(&mut world);
    let reader = CrewReader { world: &world, project, functions: &functions };
    let mut used: HashSet<ObjectId> = HashSet::new();
    let mut places: HashSet<Span> = HashSet::new();
    let mut crews: Vec<ObjectId> = Vec::new();
    for (id, object) in world.objects() {
        let here = py::made_in(object, file);
        if is(object, "Crew") && py::made_here(&world, id, file) {
            crews.push(id);
        } else if here && starts(object.short()).is_some() {
            // A crew of another module that is started here.
            crews.extend(object.base.filter(|b| is(world.object(*b), "Crew")));
        }
    }
    let asks = ModelRequests::new(&world);
    let hooks = reader.hooks(&asks);
    for class in flows(&world, file) {
        let runs = reader.kickoffs(|base| world.object(base).class == Some(class));
        let span = world.class(class).name_span;
        let name = world.class(class).name.to_string();
        units.add(&name, UnitKind::Crew, span, |kit| {
            let before = used.clone();
            let term = reader.flow(kit, class, &mut used);
            let crews: Vec<ObjectId> = used.difference(&before).copied().collect();
            let crews = || crews.iter().find_map(|id| reader.beside(&asks, *id));
            let term = py::counted(kit, term, reader.repeated(&runs), || hooks.clone().or_else(crews));
            kit.begun(term, span)
        });
    }
    for id in crews {
        let object = world.object(id);
        if used.contains(&id) || !places.insert(object.span) {
            used.extend(reader.members(id));
            continue;
        }
        let name = reader.crew_name(id);
        let span = object.span;
        let given = started(&world, file, id);
        units.add(&name, UnitKind::Crew, span, |kit| {
            let crew = reader.made_crew(kit, id, &mut used);
            let term = reader.crew(kit, &crew);
            let runs = reader.kickoffs(|base| world.object(base).span == span);
            let beside = || hooks.clone().or_else(|| reader.beside(&asks, id));
            let term = py::counted(kit, term, reader.repeated(&runs), beside);
            for (keys, at) in given {
                let lacks: Vec<String> =
                    kit.inputs().filter(|name| !keys.contains(name)).map(str::to_string).collect();
                lacks.iter().for_each(|name| kit.outline.missing(name, at));
            }
            kit.begun(term, span)
        });
    }
    let alone: Vec<ObjectId> = world
        .objects()
        .filter(|(id, _)| is_agent(&world, *id) && py::made_here(&world, *id, file) && !used.contains(id))
        .map(|(id, _)| id)
        .collect();
    let tools = |id: ObjectId| field(world.object(id), None, "tools").map(|g| g.value);
    let kept = py::distinct(&mut units, (&world, file), alone.iter().copied(), tools);
    for id in alone {
        // Made again by another call of the same method, it is the same agent.
        if !kept.contains(&id)
            || places.contains(&world.object(id).span)
            || used.iter().any(|u| world.object(*u).span == world.object(id).span)
        {
            continue;
        }
        let name = reader.agent_name(CrewItem::Made(id));
        let span = world.object(id).span;
        units.add(&name, UnitKind::Agent, span, |kit| {
            let term = reader.alone(kit, CrewItem::Made(id));
            let runs = reader.kickoffs(|base| world.object(base).span == span);
            let beside = || hooks.clone().or_else(|| reader.beside(&asks, id));
            py::counted(kit, term, reader.repeated(&runs), beside)
        });
    }
    let start = Span { file: file.id, start: 0, end: 0 };
    units.done(Some(start), "no crew and no agent is made here")
}

/// Follows the functions that are guardrails of tasks.
fn judging(world: &mut World<'_>) -> Functions {
    let mut values: Vec<Value> = Vec::new();
    for (_, object) in world.objects().filter(|(id, _)| is_task(world, *id)) {
        for given in ["guardrail", "guardrails"].iter().filter_map(|k| field(object, None, k)) {
            let items = world.items(given.value).unwrap_or(std::slice::from_ref(given.value));
            values.extend(items.iter().map(|v| world.resolve_env(v).clone()));
        }
    }
    let mut functions = Functions::default();
    for value in values {
        functions.follow(world, &value);
    }
    functions
}

/// Finds the starts of a crew in a file, each with its place and the names of its inputs. The names are there
/// only if all inputs are known and there are some. Without inputs, CrewAI leaves the texts as they are; with
/// some, a placeholder that none of them names fails the run. A method that is called before may add inputs.
fn started<'w>(world: &'w World<'_>, file: &File, crew: ObjectId) -> Vec<(Vec<&'w str>, Span)> {
    let object = world.object(crew);
    let class = object.within.and_then(|f| world.function(f).class);
    let hooked = class.is_some_and(|c| {
        let methods = world.class(c).attrs.iter().filter_map(|(_, v)| py::function_of(v));
        methods.into_iter().any(|f| world.decorated(f, &["before_kickoff"]))
    });
    if hooked || field(object, None, "before_kickoff_callbacks").is_some() || object.open.is_some() {
        return Vec::new();
    }
    let dict = |value: &Value, at: Span| {
        let PyKind::Dict(dict) = world.resolve_env(value).kind else { return None };
        let dict = world.dict(dict);
        let keys: Option<Vec<&str>> = dict.entries.iter().map(|(k, _)| world.str(k)).collect();
        Some((keys.filter(|k| dict.open.is_none() && !k.is_empty())?, at))
    };
    let mut all = Vec::new();
    for (_, o) in world.objects().filter(|(_, o)| py::made_in(o, file) && o.open.is_none()) {
        let Some(place) = starts(o.short()) else { continue };
        if o.base.is_none_or(|b| world.object(b).span != object.span) {
            continue;
        }
        let Some(given) = field(o, Some(place), "inputs") else { continue };
        match world.items(given.value) {
            Some(each) => all.extend(each.iter().filter_map(|v| dict(v, given.at))),
            None => all.extend(dict(given.value, given.at)),
        }
    }
    all
}

/// Returns the position of the inputs among the arguments of a method that starts a crew, or of their list
/// for one that starts it once per item.
fn starts(method: &str) -> Option<usize> {
    match method {
        "kickoff" | "kickoff_async" | "akickoff" => Some(0),
        "kickoff_for_each" | "kickoff_for_each_async" | "akickoff_for_each" => Some(0),
        // `train(n_iterations, filename, inputs)`, `test(n_iterations, eval_llm, inputs)`: both start it as
        // `kickoff` does.
        "train" | "test" => Some(2),
        "replay" => Some(1),
        _ => None,
    }
}

pub(super) fn is(object: &Object, short: &str) -> bool {
    object.short() == short && object.package() == "crewai"
}

pub(super) fn is_agent(world: &World<'_>, id: ObjectId) -> bool {
    let object = world.object(id);
    let derived = || {
        object.class.is_some_and(|c| world.derives(c, |n| n.starts_with("crewai") && n.ends_with("Agent")))
    };
    is(object, "Agent") || is(object, "LiteAgent") || derived()
}

fn is_task(world: &World<'_>, id: ObjectId) -> bool {
    let object = world.object(id);
    let derived =
        || object.class.is_some_and(|c| world.derives(c, |n| n.starts_with("crewai") && n.ends_with("Task")));
    is(object, "Task") || is(object, "ConditionalTask") || derived()
}

/// The classes of a file that are flows.
fn flows(world: &World<'_>, file: &File) -> Vec<ClassId> {
    world
        .classes()
        .filter(|(id, c)| {
            c.span.file == file.id && world.derives(*id, |n| n.starts_with("crewai") && n.ends_with("Flow"))
        })
        .map(|(id, _)| id)
        .collect()
}

impl<'r> CrewReader<'r, '_> {
    fn crew_name(&self, id: ObjectId) -> String {
        let object = self.world.object(id);
        let class = object.within.and_then(|f| self.world.function(f).class);
        let name = field(object, None, "name").and_then(|g| self.world.str(g.value)).map(str::to_string);
        name.or_else(|| class.map(|c| self.world.class(c).name.to_string())).unwrap_or_else(|| "crew".into())
    }

    /// The calls that start what passes a test.
    fn kickoffs(&self, test: impl Fn(ObjectId) -> bool) -> Vec<ObjectId> {
        let starts = |o: &Object| starts(o.short()).is_some() && o.base.is_some_and(&test);
        self.world.objects().filter(|(_, o)| starts(o)).map(|(id, _)| id).collect()
    }

    /// Number of starts by some calls.
    fn repeated(&self, runs: &[ObjectId]) -> Option<Runs> {
        // Functions that only train or test it are begun instead.
        let several = runs.iter().map(|id| self.world.object(*id)).find(|o| {
            let trains = !o.explored && matches!(o.short(), "train" | "test" | "replay");
            trains || o.short().contains("for_each") && self.inputs(o).is_none()
        });
        if let Some(o) = several {
            return Some(Runs::Unknown(format!("`{}` starts it more than once", o.short()), o.span));
        }
        let times = |id: &ObjectId| self.inputs(self.world.object(*id)).unwrap_or(1);
        py::repeats_of(self.world, runs, times)
    }

    /// Number of inputs of a call that starts a crew once for each, if it is known.
    fn inputs(&self, start: &Object) -> Option<u64> {
        if !start.short().contains("for_each") {
            return Some(1);
        }
        let given = field(start, starts(start.short()), "inputs")?;
        self.world.count(given.value)
    }

    /// Reason why functions of an agent, or of a crew with its agents and tasks, call models of their own.
    fn beside(&self, asks: &ModelRequests<'_, '_>, id: ObjectId) -> Option<Uncounted> {
        let world = self.world;
        let skip = |id| is_agent(world, id) || is_task(world, id) || is(world.object(id), "Crew");
        let members = self.members(id);
        let found = members.iter().find_map(|member| {
            let object = world.object(*member);
            let class = object.class.map(|c| Value::new(PyKind::Class(c), object.span));
            let args = object.args.iter().map(|a| &a.value).chain(object.attrs.iter().map(|(_, v)| v));
            asks.beside(args.chain(&class), &skip)
        });
        let helper = || {
            members.iter().find_map(|member| {
                let given = field(world.object(*member), None, "function_calling_llm")?;
                let why = "`function_calling_llm` makes calls that are not compiled";
                (!given.value.is_none()).then(|| (why.to_string(), given.at))
            })
        };
        let asked = || {
            let runs = self.kickoffs(|base| base == id);
            let given = runs.iter().find_map(|run| field(world.object(*run), None, "response_format"))?;
            let why = "an answer that is not of the type is converted by further requests";
            Some((why.to_string(), given.at))
        };
        found.or_else(helper).or_else(asked)
    }

    /// Reason why hooks of the project call models beside its crews: functions that CrewAI calls before and
    /// after crews, requests and tools, and listeners.
    fn hooks(&self, asks: &ModelRequests<'_, '_>) -> Option<Uncounted> {
        let world = self.world;
        const HOOKS: &[&str] = &[
            "before_kickoff",
            "after_kickoff",
            "before_llm_call",
            "after_llm_call",
            "before_tool_call",
            "after_tool_call",
        ];
        let hooks = world.functions().filter(|(id, _)| world.decorated(*id, HOOKS));
        let listens = |c| world.derives(c, |n| n.starts_with("crewai") && n.ends_with("EventListener"));
        let listeners = world.classes().filter(|(id, _)| listens(*id));
        let listeners = listeners.map(|(id, c)| Value::new(PyKind::Class(id), c.name_span));
        let listeners: Vec<Value> = listeners.collect();
        hooks.into_iter().find_map(|(id, _)| asks.within(id)).or_else(|| asks.beside(&listeners, &|_| false))
    }

    /// The agents and tasks of a crew, and itself.
    fn members(&self, crew: ObjectId) -> Vec<ObjectId> {
        let object = self.world.object(crew);
        let lists = ["agents", "tasks"].into_iter().filter_map(|k| field(object, None, k));
        let items = lists.filter_map(|g| self.world.items(g.value)).flatten();
        let mut out: Vec<ObjectId> =
            items.filter_map(|v| self.world.object_of(v)).map(|(id, _)| id).collect();
        let agents: Vec<ObjectId> = out
            .iter()
            .filter_map(|t| field(self.world.object(*t), None, "agent"))
            .filter_map(|g| self.world.object_of(g.value))
            .map(|(id, _)| id)
            .collect();
        out.extend(agents);
        let manager = field(object, None, "manager_agent").and_then(|g| self.world.object_of(g.value));
        out.extend(manager.map(|(id, _)| id));
        out.push(crew);
        out
    }

    /// The names of the tools of a crew's agents and tasks.
    pub(super) fn tool_names(&self, crew: ObjectId) -> Vec<core_ir::Name> {
        let versions = frontend_kit::versions::Versions::default();
        let (mut out, mut budget) = (Vec::new(), Budget::new());
        let mut kit = Kit::new(&mut out, &mut budget, &versions);
        let members = self.members(crew).into_iter().filter(|m| *m != crew);
        members
            .filter_map(|m| self.tools(&mut kit, CrewItem::Made(m)))
            .flatten()
            .map(|c| c.decl.name)
            .collect()
    }

    /// A crew that code makes.
    pub(super) fn made_crew(
        &self,
        kit: &mut Kit<'_>,
        id: ObjectId,
        used: &mut HashSet<ObjectId>,
    ) -> Crew<'r> {
        let object: &'r Object = self.world.object(id);
        let at = object.span;
        py::report(object, CREW_KEYS, CREW_UNUSED, "a crew", kit.out);
        used.extend(self.members(id));
        let mut agents: Vec<CrewItem<'r>> = Vec::new();
        for value in self.list(kit, id, "agents") {
            if value.maybe {
                let message = "whether this agent is of the crew is not known; it counts as one of it";
                kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
            }
            agents.extend(self.agent_of(&value));
        }
        let mut tasks: Vec<CrewItem<'r>> = Vec::new();
        for value in self.list(kit, id, "tasks") {
            match self.world.object_of(&value).map(|(id, _)| id).filter(|id| is_task(self.world, *id)) {
                Some(task) => tasks.push(CrewItem::Made(task)),
                None => {
                    let message = format!("a task that is not known: {}", self.world.unknown_reason(&value));
                    kit.left_out(message, value.span);
                }
            }
        }
        let process = field(object, None, "process").map(|g| (self.world.name_of(g.value), g.at));
        let managed = match &process {
            Some((Some(name), _)) if name.ends_with("sequential") => false,
            Some((Some(name), _)) if name.ends_with("hierarchical") => true,
            None => false,
            Some((_, at)) => {
                let message = "the process is not known; it counts as sequential";
                kit.left_out(message.into(), *at);
                false
            }
        };
        let given = ["manager_agent", "manager_llm"].iter().any(|k| field(object, None, k).is_some());
        if let (true, false, None, Some((_, at))) = (managed, given, &object.open, &process) {
            let message =
                "a hierarchical crew has neither `manager_llm` nor `manager_agent`: CrewAI refuses it";
            let d = Diagnostic::error(codes::UNDEFINED, message, *at);
            kit.out.push(d.help("name the model that manages: `manager_llm=`"));
        }
        let manager = field(object, None, "manager_agent").and_then(|g| self.agent_of(g.value));
        let manager_llm = field(object, None, "manager_llm").map(Setting::Code);
        let names = self.names(&agents);
        let says = |key: &str| field(object, None, key).map(Setting::Code);
        let on = |key: &str| says(key).filter(|w| self.is_on(w));
        Crew {
            at,
            agents,
            tasks,
            managed,
            manager,
            manager_llm,
            planning: on("planning"),
            planning_llm: says("planning_llm"),
            memory: SHARED.iter().find_map(|k| on(k)),
            names,
        }
    }
}

/// The name of a tool that models see: `CamelCase` and spaces become underscores, in lower case.
pub(super) fn sanitized(name: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (i, c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| chars.get(i));
        let next_is_lower = chars.get(i + 1).is_some_and(char::is_ascii_lowercase);
        let begins = c.is_ascii_uppercase()
            && before.is_some_and(|b| {
                b.is_ascii_lowercase() || b.is_ascii_digit() || (b.is_ascii_uppercase() && next_is_lower)
            });
        let parts = begins || !(c.is_ascii_alphanumeric() || matches!(c, '\'' | '"'));
        if parts && !out.ends_with('_') && !out.is_empty() {
            out.push('_');
        }
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        }
    }
    out.trim_end_matches('_').to_string()
}

/// An argument in code for an entry of a configuration: `Agent(config=self.agents_config["writer"],
/// llm=MODEL)` supplies `llm` for the agent `writer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supplied {
    /// `agent` or `task`.
    pub of: &'static str,
    /// The entry's name.
    pub name: String,
    /// The key that is supplied.
    pub key: String,
    /// The value, if it is a text, a number or a flag; none if it is built or not known.
    pub value: Option<String>,
    /// True if the value isn't known.
    pub unknown: bool,
    /// The argument.
    pub span: Span,
    /// The path of the configuration as code names it, and the file of the code.
    pub config: (String, FileId),
}

/// Returns the arguments that a project's Python supplies for entries of its configurations.
pub fn supplied(project: &Project) -> Vec<Supplied> {
    let sources = project.python();
    let mut out: Vec<Supplied> = Vec::new();
    let mut world = World::with_framework(&sources, python::Limits::default(), &CrewBase);
    for file in project.files.iter().filter(|f| detect(f) > 0) {
        if let Some(module) = sources.of_file(file.id) {
            world.run(module);
            world.explore(module);
        }
    }
    let functions = Functions::default();
    let reader = CrewReader { world: &world, project, functions: &functions };
    for (id, object) in world.objects() {
        let of = match () {
            () if is_agent(&world, id) => "agent",
            () if is_task(&world, id) => "task",
            () => continue,
        };
        let Some((name, path, from)) = field(object, None, "config").and_then(|g| reader.reference(g.value))
        else {
            continue;
        };
        let given = object.args.iter().filter_map(|a| Some((a.name.clone()?, a.value.clone(), a.span)));
        let later = object.attrs.iter().map(|(n, v)| (n.clone(), v.clone(), v.span));
        for (key, value, span) in given.chain(later).filter(|(k, ..)| &**k != "config") {
            let shown = match &world.resolve_env(&value).kind {
                PyKind::Str(s) => Some(s.to_string()),
                PyKind::Int(n) => Some(n.to_string()),
                PyKind::Bool(b) => Some(b.to_string()),
                _ => None,
            };
            let unknown = matches!(value.kind, PyKind::Unknown(_));
            let config = (path.clone(), from);
            let one = Supplied {
                of,
                name: name.clone(),
                key: key.to_string(),
                value: shown,
                unknown,
                span,
                config,
            };
            if !out.contains(&one) {
                out.push(one);
            }
        }
    }
    out
}
