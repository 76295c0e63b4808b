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
//! Source: CrewAI 1.15 (commit f4731f50): `project/crew_base.py`, `crew.py`, `tools/agent_tools`, `flow/flow.py`.

use super::{AGENT_UNUSED, CREW_UNUSED, DIVIDER, TASK_UNUSED, definitions};
use crate::defaults;
use crate::doc::Node;
use crate::emit::{self, LoopBound, Template, clip, codes, parts, undecided, value_span};
use crate::flow::{Flow, FlowNode};
use crate::kit::{Agent, Kit, Units, settings};
use crate::project::{Compiled, Facts, File, Project, UnitKind};
use crate::py::{self, Given, field};
use crate::talk::{Choice, Move, Speaker, talk};
use core_ir::{Bound, LabelSpec, ModelParams, Name, Term, TermId, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, FileId, Span};
use python::{Arg, ClassId, FunctionId, Kind, Object, ObjectId, Value, World};
use std::collections::{HashMap, HashSet};

const AGENT_KEYS: &[&str] =
    &["name", "role", "goal", "backstory", "llm", "tools", "max_iter", "config", "allow_delegation"];
const TASK_KEYS: &[&str] = &["name", "description", "expected_output", "agent", "context", "config", "tools"];
const CREW_KEYS: &[&str] = &["agents", "tasks", "process", "manager_llm", "manager_agent"];

/// What an agent of crewAI is told when it manages, shortened to what decides.
const MANAGER: [&str; 3] = [
    "Crew Manager",
    "Manage the team to complete the task in the best way possible.",
    "You are a seasoned manager with a knack for getting the best out of your team.\nYou are also known for your ability to delegate work to the right people, and to ask the right questions to get the best out of your team.\nEven though you don't perform tasks by yourself, you have a lot of experience in the field, which allows you to properly evaluate the work of your team members.",
];

pub(super) fn detect(file: &File) -> u8 {
    let words = ["Agent(", "Task(", "Crew(", "CrewBase", "(Flow", "kickoff("];
    // What starts a crew of another module need not name the framework.
    let starts = py::mentions(file, &[".crew().kickoff"]);
    if py::imports(file, &["crewai"]) && py::mentions(file, &words) || starts { 90 } else { 0 }
}

/// What `@CrewBase` adds to a class.
#[derive(Debug)]
struct CrewBase;

const CONFIGS: [(&str, &str); 2] =
    [("agents_config", "config/agents.yaml"), ("tasks_config", "config/tasks.yaml")];

fn is_base(world: &World<'_>, class: ClassId) -> bool {
    world.class(class).decorators.iter().any(|d| world.name_of(d).is_some_and(|n| n.ends_with("CrewBase")))
}

impl python::Framework for CrewBase {
    fn owns(&self, module: &str, _: &str) -> bool {
        module.split('.').next() == Some("crewai")
    }

    fn made(&self, world: &mut World<'_>, instance: ObjectId, class: ClassId) {
        if !is_base(world, class) {
            return;
        }
        let span = world.class(class).name_span;
        for (attr, default) in CONFIGS {
            let written = world.class_lookup(class, attr).map(|(v, _)| v);
            let path = match &written {
                None => Value::new(Kind::Str(default.into()), span),
                Some(v) if v.as_str().is_some() => v.clone(),
                // A dictionary in code is used as it is.
                Some(_) => continue,
            };
            let args = vec![Arg { name: None, span: path.span, value: path }];
            let config = world.made(&format!("crewai.{attr}"), args, span);
            world.set(instance, attr, config);
        }
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
        Some(world.listed(made, span))
    }
}

pub(super) fn lower(project: &Project, file: &File, facts: Facts) -> Compiled {
    let mut units = Units::new("crewai", facts, project);
    let sources = project.python();
    let world = World::with_framework(&sources, python::Limits::default(), &CrewBase);
    let world = py::evaluate(world, file, &mut units.compiled.diagnostics);
    let reader = Reader { world: &world, project };
    let mut used: HashSet<ObjectId> = HashSet::new();
    let mut places: HashSet<Span> = HashSet::new();
    let mut crews: Vec<ObjectId> = Vec::new();
    for (id, object) in world.objects() {
        let here = py::made_in(object, file);
        if is(object, "Crew") && here {
            crews.push(id);
        } else if here && object.short().starts_with("kickoff") {
            // A crew of another module that is started here.
            crews.extend(object.base.filter(|b| is(world.object(*b), "Crew")));
        }
    }
    for class in flows(&world, file) {
        let span = world.class(class).name_span;
        let name = world.class(class).name.to_string();
        units.add(&name, UnitKind::Crew, span, |kit| {
            let term = reader.flow(kit, class, &mut used);
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
            let term = reader.crew(kit, id, &mut used);
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
        .filter(|(id, o)| is_agent(&world, *id) && py::made_in(o, file) && !used.contains(id))
        .map(|(id, _)| id)
        .collect();
    for id in alone {
        // Made again by another call of the same method, it is the same agent.
        if !places.insert(world.object(id).span)
            || used.iter().any(|u| world.object(*u).span == world.object(id).span)
        {
            continue;
        }
        let name = reader.agent_name(id);
        let span = world.object(id).span;
        units.add(&name, UnitKind::Agent, span, |kit| reader.agent(kit, id, &[], 0));
    }
    let start = Span { file: file.id, start: 0, end: 0 };
    units.done(Some(start), "no crew and no agent is made here")
}

/// What a crew is started with in a file, each time, with the place: the names of the inputs where all of them are known and there
/// are some. Without any, CrewAI leaves the texts as they are; with some, a placeholder that none of them names fails the run. A method
/// that is called before may add others.
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
    let starts = world.objects().filter(|(_, o)| {
        matches!(o.short(), "kickoff" | "kickoff_async" | "akickoff")
            && py::made_in(o, file)
            && o.base.is_some_and(|b| world.object(b).span == object.span)
    });
    let keys = |o: &'w Object| {
        let given = field(o, Some(0), "inputs").filter(|_| o.open.is_none())?;
        let Kind::Dict(dict) = world.settled(given.value).kind else { return None };
        let dict = world.dict(dict);
        let keys: Option<Vec<&str>> = dict.entries.iter().map(|(k, _)| world.str(k)).collect();
        Some((keys.filter(|k| dict.open.is_none() && !k.is_empty())?, given.at))
    };
    starts.filter_map(|(_, o)| keys(o)).collect()
}

fn is(object: &Object, short: &str) -> bool {
    object.short() == short && object.package() == "crewai"
}

fn is_agent(world: &World<'_>, id: ObjectId) -> bool {
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

/// What a configuration says of an agent or task.
#[derive(Clone, Copy)]
enum Config<'r> {
    Yaml(Node<'r>),
    Dict(&'r [(Value, Value)]),
}

/// A value that is written in code, or in a configuration.
enum Written<'r> {
    Code(Given<'r>),
    Yaml(crate::doc::Entry<'r>),
}

impl Written<'_> {
    fn at(&self) -> Span {
        match self {
            Written::Code(g) => g.value.span,
            Written::Yaml(e) => value_span(e),
        }
    }
}

struct Reader<'r, 'w> {
    world: &'r World<'w>,
    project: &'r Project,
}

impl<'r> Reader<'r, '_> {
    /// The entry of a configuration that `config=self.agents_config["name"]` names.
    fn config(&self, id: ObjectId) -> Option<Config<'r>> {
        let given = field(self.world.object(id), None, "config")?;
        if let Some(entries) = self.world.entries(given.value) {
            return Some(Config::Dict(entries));
        }
        let (name, path, from) = self.reference(given.value)?;
        let file = self.file(from, &path)?;
        let root = file.documents.iter().map(|d| d.root());
        let mut found = root.flat_map(|r| {
            let inner = ["agents", "tasks"].iter().filter_map(move |k| r.get(k)).flat_map(definitions);
            definitions(r).into_iter().chain(inner.collect::<Vec<_>>())
        });
        found.find(|d| d.name == name).map(|d| Config::Yaml(d.node))
    }

    /// The name of the entry, the path of the configuration and the file from which it is named.
    fn reference(&self, value: &Value) -> Option<(String, String, FileId)> {
        let (_, item) = self.world.object_of(value)?;
        if !item.callee.ends_with("_config[]") {
            return None;
        }
        let name = self.world.str(&item.args.first()?.value)?.to_string();
        let base = self.world.object(item.base?);
        let path = self.world.str(&base.args.first()?.value)?.to_string();
        Some((name, path, base.span.file))
    }

    fn file(&self, from: FileId, path: &str) -> Option<&'r File> {
        let module = self.project.files.iter().find(|f| f.id == from)?;
        self.project.beside(module, path)
    }

    fn get(&self, id: ObjectId, key: &str) -> Option<Written<'r>> {
        let object: &'r Object = self.world.object(id);
        if let Some(given) = field(object, None, key).filter(|g| !g.value.is_none()) {
            return Some(Written::Code(given));
        }
        match self.config(id)? {
            Config::Yaml(node) => node.entry(key).filter(|e| !e.value.is_null()).map(Written::Yaml),
            Config::Dict(entries) => {
                let (_, value) = entries.iter().find(|(k, _)| k.as_str() == Some(key))?;
                Some(Written::Code(Given { value, at: value.span }))
            }
        }
    }

    /// Whether a part of it stands in a configuration that is not at hand, or in arguments that are not known.
    fn is_hidden(&self, id: ObjectId) -> bool {
        let object = self.world.object(id);
        object.open.is_some() || field(object, None, "config").is_some() && self.config(id).is_none()
    }

    /// Adds the text under a key; whether there is any.
    fn fill(&self, kit: &mut Kit<'_>, template: &mut Template, id: ObjectId, key: &str) {
        match self.get(id, key) {
            Some(Written::Code(given)) => py::fill(kit, self.world, given.value, template, parts),
            Some(Written::Yaml(entry)) => {
                let at = value_span(&entry);
                kit.fill(template, entry.value.text().unwrap_or(""), at, parts);
            }
            None => {
                if self.is_hidden(id) {
                    let unknown = kit.unknown(&format!("`{key}`"), self.world.object(id).span);
                    template.term(unknown);
                }
            }
        }
    }

    fn known_text(&self, id: ObjectId, key: &str) -> Option<String> {
        match self.get(id, key)? {
            Written::Code(given) => py::label(self.world, given.value),
            Written::Yaml(entry) => entry.value.text().map(str::to_string),
        }
    }

    fn agent_name(&self, id: ObjectId) -> String {
        let object = self.world.object(id);
        let entry = field(object, None, "config").and_then(|g| self.reference(g.value)).map(|(n, ..)| n);
        let method = || object.within.map(|f| self.world.function(f)).filter(|f| f.class.is_some());
        entry
            .or_else(|| method().filter(|f| &*f.name != "__init__").map(|f| f.name.to_string()))
            .or_else(|| self.known_text(id, "role").map(|r| r.trim().to_string()))
            .unwrap_or_else(|| "agent".into())
    }

    fn crew_name(&self, id: ObjectId) -> String {
        let object = self.world.object(id);
        let class = object.within.and_then(|f| self.world.function(f).class);
        let name = field(object, None, "name").and_then(|g| self.world.str(g.value)).map(str::to_string);
        name.or_else(|| class.map(|c| self.world.class(c).name.to_string())).unwrap_or_else(|| "crew".into())
    }

    fn list(&self, kit: &mut Kit<'_>, id: ObjectId, key: &str) -> Vec<Value> {
        let Some(given) = field(self.world.object(id), None, key) else { return Vec::new() };
        let open = match self.world.settled(given.value).kind {
            Kind::List(list) => self.world.list(list).open,
            Kind::None => None,
            _ => Some(given.at),
        };
        if let Some(at) = open {
            let message = format!("some of the `{key}` are not known: {}", self.world.why(given.value));
            kit.out.push(undecided(codes::NOT_COMPILED, message, at));
        }
        self.world.items(given.value).map_or(Vec::new(), <[Value]>::to_vec)
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
        out.push(crew);
        out
    }

    /// `Str → Str`. The others are whom it may ask.
    fn agent(&self, kit: &mut Kit<'_>, id: ObjectId, others: &[ObjectId], depth: usize) -> TermId {
        let object = self.world.object(id);
        let head = object.span;
        let name = self.agent_name(id);
        let text: usize = ["role", "goal", "backstory"]
            .iter()
            .filter_map(|k| self.known_text(id, k))
            .map(|t| t.len())
            .sum();
        if let Err(unknown) = kit.open(&name, head, head, text) {
            return unknown;
        }
        self.report(kit, id, AGENT_KEYS, AGENT_UNUSED, "an agent");
        let at = self.get(id, "role").map_or(head, |w| w.at());
        let prompt = self.prompt(kit, id, at);
        let mut params = ModelParams { purpose: Some(Name::from(name.as_str())), ..ModelParams::default() };
        let model_at = match self.get(id, "llm") {
            Some(Written::Code(given)) => py::model(self.world, Some(given), &mut params, kit.out),
            Some(Written::Yaml(entry)) => {
                let (named, at) = emit::model(Some(entry), &["model", "model_name", "name"], kit.out);
                params.model = named.model;
                params.temperature = named.temperature;
                params.max_tokens = named.max_tokens;
                params.extra = named.extra;
                at
            }
            None => None,
        };
        if let Some(Config::Yaml(node)) = self.config(id) {
            settings(node, &mut params, kit.out);
        }
        let mut choices = self.tools(kit, id, "tools");
        let delegates = match self.get(id, "allow_delegation") {
            Some(Written::Code(given)) => matches!(self.world.settled(given.value).kind, Kind::Bool(true)),
            Some(Written::Yaml(entry)) => entry.value.as_bool() == Some(true),
            None => false,
        };
        if delegates && depth < 1 {
            for other in others.iter().filter(|o| **o != id) {
                choices.push(self.coworker(kit, *other, depth));
            }
        }
        let written = self.get(id, "max_iter");
        let looped = written.is_some();
        let default = defaults::bound(&defaults::CREWAI_ITER, kit.versions);
        let bound = match written {
            Some(Written::Code(given)) => py::bound(self.world, Some(given), default),
            Some(Written::Yaml(entry)) => default.or_written(Some(entry), kit.out),
            None if self.is_hidden(id) => {
                LoopBound::unknown("it may stand in a configuration that is not at hand")
            }
            None => default,
        };
        // A loop is where its tools are given; what is to be said of it is said there, once.
        let given_at = match self.get(id, "tools") {
            Some(Written::Yaml(entry)) => entry.key.span(),
            _ => head,
        };
        let fix_at = bound.span.unwrap_or(given_at);
        if self.get(id, "max_execution_time").is_some() {
            kit.outline.timed(fix_at);
        }
        let bound = LoopBound { span: Some(fix_at), ..bound };
        let term = if choices.is_empty() && looped {
            // The reply of a model without tools is the answer; the bound stays, for what it says.
            let nobody = LoopBound { bound: Bound::Finite(1), origin: None, span: None };
            let agent = Agent {
                name: &name,
                head,
                prompt,
                params,
                model_at,
                hands: Vec::new(),
                hands_at: None,
                bound: nobody,
            };
            let oracle = kit.agent(agent);
            let think = kit.on_x(oracle, head);
            kit.fixpoint(think, bound, head, fix_at)
        } else {
            let model_at = model_at.unwrap_or(head);
            let over = reached(&bound);
            let speaker = Speaker { name, head, prompts: vec![prompt], params, model_at, choices };
            talk(kit, vec![speaker], bound, &over, head)
        };
        kit.close();
        term
    }

    fn coworker(&self, kit: &mut Kit<'_>, other: ObjectId, depth: usize) -> Choice {
        let role = self.known_text(other, "role").unwrap_or_else(|| self.agent_name(other));
        let at = self.world.object(other).span;
        let term = self.agent(kit, other, &[], depth + 1);
        let mut decl = ToolDecl::unknown(sanitized(&format!("delegate to {}", role.trim())).into(), at);
        let about = format!("Delegate a task to the coworker `{}`, or ask a question", role.trim());
        decl.description = Some(about.into());
        decl.params = vec![ToolParam { name: "input".into(), ty: Type::Str, bound: LabelSpec::TOP }];
        decl.result = Type::Str;
        decl.effect = core_ir::EffectClass::Pure;
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        Choice { decl, does: Move::Ask(term) }
    }

    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId, at: Span) -> TermId {
        let mut template = Template::new(at);
        let given = ["role", "goal", "backstory"].iter().any(|k| self.get(id, k).is_some());
        let object = self.world.object(id);
        if !given && object.open.is_none() && field(object, None, "config").is_none() {
            return template.build(&mut kit.b);
        }
        template.text("You are ");
        self.fill(kit, &mut template, id, "role");
        template.text(". ");
        self.fill(kit, &mut template, id, "backstory");
        template.text("\nYour personal goal is: ");
        self.fill(kit, &mut template, id, "goal");
        template.build(&mut kit.b)
    }

    /// Reports what is not compiled, and a configuration that is not found.
    fn report(
        &self,
        kit: &mut Kit<'_>,
        id: ObjectId,
        used: &'static [&'static str],
        unused: &[emit::Unused],
        what: &str,
    ) {
        let object = self.world.object(id);
        py::report(object, used, unused, what, kit.out);
        match self.config(id) {
            Some(Config::Yaml(node)) => emit::report_keys(node, used, unused, what, kit.out),
            Some(Config::Dict(_)) => {}
            None => {
                let Some(given) = field(object, None, "config") else { return };
                let d = match self.reference(given.value) {
                    Some((name, path, from)) if self.file(from, &path).is_some() => Diagnostic::error(
                        codes::UNDEFINED,
                        format!("`{}` has no entry `{}`", clip(&path), clip(&name)),
                        given.at,
                    ),
                    Some((_, path, _)) => undecided(
                        codes::UNDEFINED,
                        format!("the configuration `{}` is not at hand", clip(&path)),
                        given.at,
                    ),
                    None => {
                        let message =
                            format!("the configuration is not known: {}", self.world.why(given.value));
                        undecided(codes::NOT_COMPILED, message, given.at)
                    }
                };
                kit.out.push(d);
            }
        }
    }

    fn tools(&self, kit: &mut Kit<'_>, id: ObjectId, key: &str) -> Vec<Choice> {
        match self.get(id, key) {
            Some(Written::Yaml(entry)) => {
                let names = emit::names(&entry, kit.out);
                let called = |name: &str, at| {
                    let decl = ToolDecl::unknown(name.into(), at);
                    Choice { decl, does: Move::Call }
                };
                return names.into_iter().map(|(name, node)| called(name, node.span())).collect();
            }
            Some(Written::Code(_)) => {}
            None => return Vec::new(),
        }
        let mut out = Vec::new();
        for value in self.list(kit, id, key) {
            let decl = self.tool(&value).unwrap_or_else(|| {
                let message = format!("a tool that is not known: {}", self.world.why(&value));
                kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
                let name = py::outside(&value).unwrap_or_else(|| format!("unknown_{}", out.len() + 1));
                ToolDecl::unknown(name.into(), value.span)
            });
            if value.maybe {
                let message = format!(
                    "whether the tool `{}` is given is not known; it counts as given",
                    clip(&decl.name)
                );
                kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
            }
            out.push(Choice { decl, does: Move::Call });
        }
        out
    }

    /// The declaration of a tool, with the name that models see.
    fn tool(&self, value: &Value) -> Option<ToolDecl> {
        let hidden = |_: &World<'_>, _: &Value| false;
        if let Some(f) = py::function_of(value) {
            let name =
                py::decorator_arg(self.world, f, &["tool"], Some(0), "name").and_then(|v| self.world.str(v));
            let function = self.world.function(f);
            let name = name.map_or_else(|| function.name.to_string(), str::to_string);
            return Some(py::signature(self.world, f, &sanitized(&name), function.name_span, hidden));
        }
        let at = value.span;
        match &self.world.settled(value).kind {
            Kind::Object(id) => {
                let object = self.world.object(*id);
                let text =
                    |key| field(object, None, key).and_then(|g| self.world.str(g.value)).map(str::to_string);
                let class = object.class.map(|c| self.world.class(c).name.to_string());
                let name = sanitized(&text("name").or(class).unwrap_or_else(|| object.short().to_string()));
                let run = object.class.and_then(|c| self.world.class_lookup(c, "_run"));
                let mut decl = match run.as_ref().and_then(|(v, _)| py::function_of(v)) {
                    Some(f) => py::signature(self.world, f, &name, at, hidden),
                    None => ToolDecl::unknown(name.as_str().into(), at),
                };
                decl.description = text("description").map(Name::from).or(decl.description);
                decl.handler = object.class.and_then(|c| {
                    let class = self.world.class(c);
                    py::handler(self.world, class.module, &class.name)
                });
                Some(decl)
            }
            Kind::Class(id) => Some(ToolDecl::unknown(sanitized(&self.world.class(*id).name).into(), at)),
            Kind::Str(name) => Some(ToolDecl::unknown((&**name).into(), at)),
            _ => None,
        }
    }

    /// The tasks one after the other, or under a manager.
    fn crew(&self, kit: &mut Kit<'_>, id: ObjectId, used: &mut HashSet<ObjectId>) -> TermId {
        let object = self.world.object(id);
        let at = object.span;
        py::report(object, CREW_KEYS, CREW_UNUSED, "a crew", kit.out);
        used.extend(self.members(id));
        let mut agents: Vec<ObjectId> = Vec::new();
        for value in self.list(kit, id, "agents") {
            if value.maybe {
                let message = "whether this agent is of the crew is not known; it counts as one of it";
                kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
            }
            agents.extend(
                self.world.object_of(&value).map(|(id, _)| id).filter(|id| is_agent(self.world, *id)),
            );
        }
        let mut tasks: Vec<ObjectId> = Vec::new();
        for value in self.list(kit, id, "tasks") {
            match self.world.object_of(&value).map(|(id, _)| id).filter(|id| is_task(self.world, *id)) {
                Some(task) => tasks.push(task),
                None => {
                    let message = format!("a task that is not known: {}", self.world.why(&value));
                    kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
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
                kit.out.push(undecided(codes::NOT_COMPILED, message, *at));
                false
            }
        };
        if tasks.is_empty() {
            return kit.undecided(codes::NOT_COMPILED, "the tasks of a crew".into(), at);
        }
        let crew = Members { id, agents, managed };
        let position: HashMap<ObjectId, usize> = tasks.iter().enumerate().map(|(i, t)| (*t, i)).collect();
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let variable = |i: usize| Name::from(format!("$task{}", i + 1));
        for (i, task) in tasks.iter().enumerate() {
            let head = self.world.object(*task).span;
            let told = self.context(kit, i, *task, &position).unwrap_or_else(|| (0..i).collect());
            let told = if kit.budget.take_text(told.len() * 16, head, kit.out) { told } else { Vec::new() };
            let context = told.into_iter().map(|n| kit.b.var(variable(n), head)).collect();
            let body = self.task(kit, *task, context, &crew);
            bindings.push((variable(i), body));
        }
        let term = match bindings.len() {
            1 => bindings.remove(0).1,
            n => {
                let last = kit.b.var(variable(n - 1), at);
                kit.b.let_in(bindings, last, at)
            }
        };
        kit.b.abs("x", Some(Type::Str), term, at)
    }

    fn context(
        &self,
        kit: &mut Kit<'_>,
        index: usize,
        task: ObjectId,
        position: &HashMap<ObjectId, usize>,
    ) -> Option<Vec<usize>> {
        let given = field(self.world.object(task), None, "context").filter(|g| !g.value.is_none())?;
        let Some(items) = self.world.items(given.value) else {
            let message =
                format!("which results the task is told is not known: {}", self.world.why(given.value));
            kit.out.push(undecided(codes::NOT_COMPILED, message, given.at));
            return None;
        };
        let mut earlier = Vec::new();
        for item in items {
            match self.world.object_of(item).and_then(|(id, _)| position.get(&id)) {
                Some(i) if *i < index => earlier.push(*i),
                Some(_) => kit.out.push(
                    Diagnostic::error(
                        codes::UNDEFINED,
                        "this task has no result yet when it is needed",
                        item.span,
                    )
                    .help("put the task before the one that uses its result"),
                ),
                None => {
                    let message = format!("a task that is not of this crew: {}", self.world.why(item));
                    kit.out.push(undecided(codes::UNDEFINED, message, given.at));
                }
            }
        }
        Some(earlier)
    }

    fn task(&self, kit: &mut Kit<'_>, id: ObjectId, context: Vec<TermId>, crew: &Members) -> TermId {
        let head = self.world.object(id).span;
        let size = ["description", "expected_output"]
            .iter()
            .filter_map(|k| self.known_text(id, k))
            .map(|t| t.len())
            .sum();
        if !kit.budget.take(size, head, kit.out) {
            return kit.unknown("a task beyond the limit", head);
        }
        // Tools of a task replace those of its agent, which is reported.
        self.report(kit, id, TASK_KEYS, TASK_UNUSED, "a task");
        if let Some(tools) = self.get(id, "tools") {
            let message = "tools of a task are not compiled yet: its agent has its own";
            kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, tools.at()));
        }
        let at = self.get(id, "description").map_or(head, |w| w.at());
        let mut template = Template::new(at);
        template.text("\nCurrent Task: ");
        self.fill(kit, &mut template, id, "description");
        template.text("\n\nThis is the expected criteria for your final answer: ");
        self.fill(kit, &mut template, id, "expected_output");
        template.text("\nyou MUST return the actual complete content as the final answer, not a summary.");
        for (i, earlier) in context.into_iter().enumerate() {
            template.text(if i == 0 { "\n\nThis is the context you're working with:\n" } else { DIVIDER });
            template.term(earlier);
        }
        let (agent, has_tools) = self.agent_of(kit, id, crew);
        if !has_tools {
            template.text("\n\nProvide your complete response:");
        }
        let request = template.build(&mut kit.b);
        kit.b.app(agent, request, head)
    }

    /// The agent of a task, and whether it has something to call.
    fn agent_of(&self, kit: &mut Kit<'_>, task: ObjectId, crew: &Members) -> (TermId, bool) {
        if crew.managed {
            return (self.manager(kit, crew), true);
        }
        let found = match self.get(task, "agent") {
            Some(Written::Code(given)) => match self.world.object_of(given.value) {
                Some((id, _)) if is_agent(self.world, id) => Ok(id),
                _ => Err((format!("the agent of a task: {}", self.world.why(given.value)), given.at)),
            },
            Some(Written::Yaml(entry)) => {
                let name = entry.value.text().unwrap_or("");
                // The configuration names a method under `@agent`.
                let of_crew = crew.agents.iter().find(|a| self.agent_name(**a) == name);
                of_crew.copied().ok_or_else(|| {
                    (format!("no agent of the crew is called `{}`", clip(name)), value_span(&entry))
                })
            }
            None => Err(("the agent of a task that names none".to_string(), self.world.object(task).span)),
        };
        match found {
            Ok(id) => {
                let term = self.agent(kit, id, &crew.agents, 0);
                // An agent that has nothing to call is one question, perhaps within a bound.
                let plain = matches!(kit.b.term(term), Term::Llm(..) | Term::Fix { .. });
                (term, !plain)
            }
            Err((why, at)) => (kit.undecided(codes::NOT_COMPILED, why, at), false),
        }
    }

    /// Whoever manages asks the agents of the crew.
    fn manager(&self, kit: &mut Kit<'_>, crew: &Members) -> TermId {
        let object = self.world.object(crew.id);
        let at = object.span;
        if let Some(given) = field(object, None, "manager_agent")
            && let Some((id, _)) = self.world.object_of(given.value)
            && is_agent(self.world, id)
        {
            // A manager may always delegate.
            let choices: Vec<Choice> = crew.agents.iter().map(|a| self.coworker(kit, *a, 0)).collect();
            let head = self.world.object(id).span;
            let prompt = self.prompt(kit, id, head);
            return self.managing(kit, &self.agent_name(id), head, prompt, self.get(id, "llm"), choices);
        }
        let choices: Vec<Choice> = crew.agents.iter().map(|a| self.coworker(kit, *a, 0)).collect();
        let [role, goal, backstory] = MANAGER;
        let text = format!("You are {role}. {backstory}\nYour personal goal is: {goal}");
        let prompt = kit.text(&text, at);
        let llm = field(object, None, "manager_llm").map(Written::Code);
        self.managing(kit, "manager", at, prompt, llm, choices)
    }

    fn managing(
        &self,
        kit: &mut Kit<'_>,
        name: &str,
        head: Span,
        prompt: TermId,
        llm: Option<Written<'_>>,
        choices: Vec<Choice>,
    ) -> TermId {
        let mut params = ModelParams { purpose: Some(name.into()), ..ModelParams::default() };
        let model_at = match llm {
            Some(Written::Code(given)) => py::model(self.world, Some(given), &mut params, kit.out),
            Some(Written::Yaml(entry)) => {
                let (named, at) = emit::model(Some(entry), &["model"], kit.out);
                params.model = named.model;
                at
            }
            None => None,
        };
        let bound = defaults::bound(&defaults::CREWAI_ITER, kit.versions);
        let over = reached(&bound);
        let model_at = model_at.unwrap_or(head);
        let speaker =
            Speaker { name: name.to_string(), head, prompts: vec![prompt], params, model_at, choices };
        talk(kit, vec![speaker], bound, &over, head)
    }

    /// A flow: its methods as a graph.
    fn flow(&self, kit: &mut Kit<'_>, class: ClassId, used: &mut HashSet<ObjectId>) -> TermId {
        let at = self.world.class(class).name_span;
        let methods: Vec<(String, FunctionId)> = self
            .world
            .class(class)
            .attrs
            .iter()
            .filter_map(|(n, v)| Some((n.to_string(), py::function_of(v)?)))
            .filter(|(_, f)| self.world.decorated(*f, &["start", "listen", "router"]))
            .collect();
        if methods.is_empty() {
            return kit.undecided(
                codes::NOT_COMPILED,
                "a flow without methods that start or listen".into(),
                at,
            );
        }
        let names: HashSet<&str> = methods.iter().map(|(n, _)| n.as_str()).collect();
        let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
        let mut labels: Vec<(String, String)> = Vec::new();
        let routers: Vec<&str> = methods
            .iter()
            .filter(|(_, f)| self.world.decorated(*f, &["router"]))
            .map(|(n, _)| n.as_str())
            .collect();
        for (name, f) in &methods {
            for decorator in &self.world.function(*f).decorators {
                for source in self.sources_of(decorator, 0) {
                    if names.contains(source.as_str()) {
                        edges.push((source, name.clone(), None));
                    } else {
                        labels.push((source, name.clone()));
                    }
                }
            }
        }
        for router in &routers {
            let gives = self.labels_of(methods.iter().find(|(n, _)| n == router).map(|(_, f)| *f));
            for (label, to) in &labels {
                if gives.as_ref().is_none_or(|g| g.contains(label)) {
                    edges.push(((*router).to_string(), to.clone(), Some(label.clone())));
                }
            }
        }
        // A method that listens to nothing there is, and that code calls by itself, is run by that code.
        let by_hand = |name: &str, f: FunctionId| {
            let call = format!(".{name}(");
            !self.world.decorated(f, &["start"])
                && edges.iter().all(|(_, to, _)| to != name)
                && self.project.files.iter().filter_map(|f| f.python.as_ref()).any(|m| m.text.contains(&call))
        };
        let (called, methods): (Vec<_>, Vec<_>) = methods.iter().cloned().partition(|(n, f)| by_hand(n, *f));
        edges.retain(|(from, to, _)| !called.iter().any(|(n, _)| n == from || n == to));
        if methods.is_empty() {
            return kit.undecided(codes::NOT_COMPILED, "a flow that code carries out by itself".into(), at);
        }
        let mut nodes = Vec::new();
        for (name, f) in &methods {
            let at = self.world.function(*f).name_span;
            let started: Vec<ObjectId> = self
                .world
                .objects()
                .filter(|(_, o)| o.within == Some(*f) && o.short().starts_with("kickoff"))
                .filter_map(|(_, o)| o.base.filter(|b| is(self.world.object(*b), "Crew")))
                .collect();
            let mut node = match started[..] {
                [] => FlowNode::tool(name.as_str(), name.as_str(), at),
                _ => {
                    let term = {
                        let mut stages: Vec<TermId> = Vec::new();
                        for crew in &started {
                            stages.push(self.crew(kit, *crew, used));
                        }
                        kit.sequence(stages, at)
                    };
                    let mut term = Some(term);
                    FlowNode::new(name.as_str(), name.as_str(), at, move |kit, x| match term.take() {
                        Some(function) => kit.b.app(function, x, at),
                        None => kit.unknown("the same crew again", at),
                    })
                }
            };
            if routers.contains(&name.as_str()) {
                let name = name.clone();
                node = node.deciding(move |kit, _| kit.unknown(&format!("which label `{name}` gives"), at));
            }
            nodes.push(node);
        }
        let starts = methods.iter().filter(|(_, f)| self.world.decorated(*f, &["start"]));
        let start: Vec<String> = starts.map(|(n, _)| n.clone()).collect();
        // A router is code, which may well count the turns.
        let bound = match routers.is_empty() {
            true => defaults::bound(&defaults::CREWAI_FLOW, kit.versions),
            false => LoopBound::unknown("a router decides whether the flow goes round again"),
        };
        Flow { nodes, edges, start, triggers: false, bound, at }.lower(kit)
    }

    /// What a decorator listens to: methods or labels.
    fn sources_of(&self, decorator: &Value, depth: usize) -> Vec<String> {
        let Some((_, object)) = self.world.object_of(decorator) else { return Vec::new() };
        if depth > 8 || !matches!(object.short(), "start" | "listen" | "router" | "or_" | "and_") {
            return Vec::new();
        }
        let mut out = Vec::new();
        for arg in &object.args {
            match &arg.value.kind {
                Kind::Str(s) => out.push(s.to_string()),
                Kind::Function(f) | Kind::Bound(_, f) => out.push(self.world.function(*f).name.to_string()),
                Kind::Object(_) => out.extend(self.sources_of(&arg.value, depth + 1)),
                _ => {}
            }
        }
        out
    }

    /// The labels that a router returns, if all are written.
    fn labels_of(&self, function: Option<FunctionId>) -> Option<Vec<String>> {
        let returns = self.world.function(function?).returns.as_ref()?;
        let (_, object) = self.world.object_of(returns)?;
        if !object.callee.ends_with("Literal[]") {
            return None;
        }
        object.args.iter().map(|a| a.value.as_str().map(str::to_string)).collect()
    }
}

/// What is said when an agent's steps are used up.
fn reached(bound: &LoopBound) -> String {
    match bound.bound {
        Bound::Finite(n) => format!("max_iter ({n}) reached"),
        Bound::Infinite => "max_iter reached".to_string(),
    }
}

/// The name of a tool that models see: `CamelCase` and spaces become underscores, in lower case.
fn sanitized(name: &str) -> String {
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

/// Who works in a crew.
struct Members {
    id: ObjectId,
    agents: Vec<ObjectId>,
    managed: bool,
}

/// What code supplies for an entry of a configuration: `Agent(config=self.agents_config["writer"], llm=MODEL)` supplies `llm`
/// for the agent `writer`.
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
    /// Whether the value is not known.
    pub unknown: bool,
    /// The argument.
    pub span: Span,
    /// The path of the configuration as code names it, and the file of the code.
    pub config: (String, FileId),
}

/// What the Python of a project supplies for the entries of its configurations.
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
    let reader = Reader { world: &world, project };
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
            let shown = match &world.settled(&value).kind {
                Kind::Str(s) => Some(s.to_string()),
                Kind::Int(n) => Some(n.to_string()),
                Kind::Bool(b) => Some(b.to_string()),
                _ => None,
            };
            let unknown = matches!(value.kind, Kind::Unknown(_));
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
