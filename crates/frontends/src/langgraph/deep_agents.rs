//! Deep agents: `create_deep_agent`.
//!
//! A deep agent is an agent of LangChain that is offered files, a list of things to do, and the tool `task`,
//! with which it has another agent carry something out in a conversation of its own: one of `subagents`, or
//! `general-purpose`, which is like itself. What the framework adds to the instructions is not reproduced.
//!
//! Source: deepagents 0.5 `graph.py`, `middleware/subagents.py`, `middleware/filesystem.py`.

use super::agent::{Agent, rounds};
use super::prompt::{MessageContent, Part};
use super::{GraphReader, Inner};
use crate::defaults;
use crate::py::{self, field};
use core_ir::{
    Bound, Branch, EffectClass, LabelSpec, ModelParams, Name, Prim, Role, Term, TermId, ToolDecl, ToolParam,
    Type,
};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Unused, codes, undecided};
use frontend_kit::kit::Kit;
use frontend_kit::shape::why;
use python::{Object, Value};

const KEYS: &[&str] =
    &["model", "tools", "system_prompt", "instructions", "subagents", "name", "response_format"];
const UNUSED: &[Unused] = &[
    ("middleware", why::CODE),
    ("skills", "files that are read at run time are not compiled"),
    ("memory", "files that are read at run time are not compiled"),
    ("permissions", why::NOT_YET),
    ("backend", why::RUNTIME),
    ("interrupt_on", why::NOT_YET),
    ("state_schema", "an agent's state is its conversation here"),
    ("context_schema", "what runs are configured with is not compiled"),
    ("checkpointer", "state kept between runs is not compiled"),
    ("store", "state kept between runs is not compiled"),
    ("debug", why::RUNTIME),
    ("cache", why::RUNTIME),
];
/// Default model.
const MODEL: &str = "claude-sonnet-4-6";
/// Advice for the bound of a subagent.
const SUB_BOUND: &str =
    "give it as an agent that has one: `\"runnable\": create_agent(…).with_config({\"recursion_limit\": n})`";
/// The tool with which an agent has others work.
pub(super) const TASK: &str = "task";

/// An agent that others have work done by.
pub(super) struct Subagent {
    pub name: String,
    pub about: String,
    pub agent: Agent,
}

fn param(name: &str, ty: Type) -> ToolParam {
    ToolParam { name: name.into(), ty, bound: LabelSpec::TOP, default: None }
}

/// A tool that the framework brings along.
fn brought(name: &str, effect: EffectClass, params: &[&str], at: Span) -> ToolDecl {
    let mut decl = ToolDecl::unknown(name.into(), at);
    // What writes takes what an unknown tool takes.
    let careful = decl.params.first().map(|p| p.bound.clone()).filter(|_| effect == EffectClass::Write);
    decl.params = params.iter().map(|p| param(p, Type::Str)).collect();
    if let Some(bound) = careful {
        decl.params.iter_mut().for_each(|p| p.bound = bound.clone());
    }
    decl.result = Type::Str;
    decl.effect = effect;
    decl
}

/// Its tools for files and lists, in the order in which they are offered.
fn all_brought(at: Span) -> Vec<ToolDecl> {
    let mut todos = brought("write_todos", EffectClass::Pure, &[], at);
    todos.params.push(param("todos", Type::list(Type::Dyn)));
    vec![
        todos,
        brought("ls", EffectClass::Read, &["path"], at),
        brought("read_file", EffectClass::Read, &["file_path"], at),
        brought("write_file", EffectClass::Write, &["file_path", "content"], at),
        brought("edit_file", EffectClass::Write, &["file_path", "old_string", "new_string"], at),
        brought("glob", EffectClass::Read, &["pattern"], at),
        brought("grep", EffectClass::Read, &["pattern"], at),
    ]
}

impl GraphReader<'_, '_> {
    /// Reads a deep agent.
    pub fn read_deep(&self, kit: &mut Kit<'_>, object: &Object, name: &str, bound: LoopBound) -> Agent {
        let head = object.span;
        py::report(object, KEYS, UNUSED, "a deep agent", kit.out);
        // Before version 0.2 the tools came first.
        let first = field(object, Some(0), "model")
            .filter(|g| object.arg("model").is_none() && self.world.items(g.value).is_some());
        let old = first.is_some();
        // 0.0, of which these are the parameters, sets no limit of its own.
        let bound = match &bound.origin {
            Some(_) if old => defaults::bound(&defaults::LANGGRAPH_STEPS, kit.versions),
            _ => bound,
        };
        let model = if old { field(object, None, "model") } else { field(object, Some(0), "model") };
        let tools = if old { first } else { field(object, Some(1), "tools") };
        let tools = tools.filter(|g| !g.value.is_none()).map_or_else(Vec::new, |g| self.items(g.value));
        let params = self.deep_model(kit, model.map(|g| g.value), name);
        let said = field(object, None, "system_prompt")
            .or_else(|| field(object, if old { Some(1) } else { None }, "instructions"))
            .filter(|g| !g.value.is_none());
        let parts = said.map_or_else(Vec::new, |g| match self.message_of(g.value).is_some() {
            true => self.agent_prompt(kit, object),
            false => vec![Part::Say(Role::System, MessageContent::Value(g.value.clone()))],
        });
        let mut params = params;
        if let Some(given) = field(object, None, "response_format").filter(|g| !g.value.is_none()) {
            params.result = Some(self.schema(given.value));
        }
        // Whoever works for it has its limit, but before 0.5, where it is `create_agent`'s (0.3, which hands
        // its own on, is not told apart).
        let theirs = match (bound.bound, &bound.origin) {
            (Bound::Finite(1_000), Some(_)) => defaults::create_agent(kit.versions),
            _ => bound.clone(),
        };
        let like_itself = |kit: &mut Kit<'_>, reader: &Self| {
            let params = ModelParams { result: None, ..params.clone() };
            reader.deep_part(kit, head, parts.clone(), params, tools.clone(), theirs.clone())
        };
        let mut subagents: Vec<Subagent> = Vec::new();
        let given = field(object, None, "subagents").filter(|g| !g.value.is_none());
        for value in given.map_or_else(Vec::new, |g| self.items(g.value)) {
            match self.sub(kit, &value, &params, &tools, &theirs) {
                Some(sub) => subagents.push(sub),
                None => {
                    let message =
                        format!("an agent that is not known: {}", self.world.unknown_reason(&value));
                    kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
                }
            }
        }
        if subagents.iter().all(|s| s.name != "general-purpose") {
            let about = "General-purpose agent for researching complex questions and multi-step tasks".into();
            let agent = like_itself(kit, self);
            subagents.insert(0, Subagent { name: "general-purpose".into(), about, agent });
        }
        let mut agent = self.deep_part(kit, head, parts, params, tools, bound);
        agent.subagents = subagents;
        agent
    }

    fn deep_model(&self, kit: &mut Kit<'_>, given: Option<&Value>, name: &str) -> ModelParams {
        let mut params = ModelParams { purpose: Some(name.into()), ..ModelParams::default() };
        if let Some(value) = given {
            self.note_scripted(kit, value);
        }
        match given.filter(|v| !v.is_none()) {
            None => params.model = Some(MODEL.into()),
            Some(value) => match self.model(value) {
                Some(model) => {
                    params = self.params(kit, &super::model::Model { tools: Vec::new(), ..model }, name);
                }
                None => {
                    let given = py::Given { value, at: value.span };
                    py::model(self.world, Some(given), &mut params, kit);
                }
            },
        }
        params
    }

    /// A deep agent without others.
    fn deep_part(
        &self,
        kit: &mut Kit<'_>,
        head: Span,
        parts: Vec<Part>,
        params: ModelParams,
        tools: Vec<Value>,
        bound: LoopBound,
    ) -> Agent {
        let mut decls = self.tools(kit, &tools);
        for decl in all_brought(head) {
            if decls.iter().all(|d| d.name != decl.name) {
                decls.push(decl);
            }
        }
        let (bound, last) = rounds(bound, true);
        Agent::of(head, parts, params, tools, decls, bound, last)
    }

    /// One of `subagents`: a dictionary, or an agent that is made already.
    fn sub(
        &self,
        kit: &mut Kit<'_>,
        value: &Value,
        own: &ModelParams,
        tools: &[Value],
        bound: &LoopBound,
    ) -> Option<Subagent> {
        let at = value.span;
        let entries: Vec<(String, Value)> = match self.world.entries(value) {
            Some(entries) => {
                entries.iter().filter_map(|(k, v)| Some((k.as_str()?.to_string(), v.clone()))).collect()
            }
            // `SubAgent(name=…)`, `CompiledSubAgent(…)`.
            None => {
                let (_, object) = self.world.object_of(value)?;
                object
                    .args
                    .iter()
                    .filter_map(|a| Some((a.name.as_ref()?.to_string(), a.value.clone())))
                    .collect()
            }
        };
        let get = |names: &[&str]| entries.iter().find(|(k, _)| names.contains(&k.as_str())).map(|(_, v)| v);
        let name = py::label(self.world, get(&["name"])?)?;
        let about = get(&["description"]).and_then(|v| py::label(self.world, v)).unwrap_or_default();
        if let Some(Inner::Agent(id)) = get(&["runnable", "graph"]).and_then(|v| self.inner_graph(v)) {
            let agent = self.read_agent(kit, id);
            return Some(Subagent { name, about, agent });
        }
        let prompt = get(&["system_prompt", "prompt"])?;
        let parts = vec![Part::Say(Role::System, MessageContent::Value(prompt.clone()))];
        let mut params = match get(&["model"]) {
            None => ModelParams { result: None, ..own.clone() },
            model => self.deep_model(kit, model, &name),
        };
        params.purpose = Some(name.as_str().into());
        let tools = get(&["tools"]).map_or_else(|| tools.to_vec(), |v| self.items(v));
        // It is made with a limit of its own, which that of the run does not replace.
        let mut bound = bound.clone();
        bound.facts.bounded = Some(SUB_BOUND);
        Some(Subagent { name, about, agent: self.deep_part(kit, at, parts, params, tools, bound) })
    }

    /// The tool `task`: whom it knows stands in what models are told of it.
    pub fn task_decl(&self, subs: &[Subagent], at: Span) -> ToolDecl {
        let mut decl = brought(TASK, EffectClass::Pure, &["description", "subagent_type"], at);
        let known: Vec<String> = subs.iter().map(|s| format!("- {}: {}", s.name, s.about)).collect();
        let about = format!("Launch an agent to handle a task. Available agents:\n{}", known.join("\n"));
        decl.description = Some(about.as_str().into());
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        decl
    }

    /// Lowers a call of `task`: the named agent answers the description.
    pub fn task_branch(&self, kit: &mut Kit<'_>, subs: Vec<Subagent>, next: TermId, at: Span) -> Branch {
        let names: Vec<String> = subs.iter().map(|s| s.name.clone()).collect();
        let part = |kit: &mut Kit<'_>, key: &str| {
            let a = kit.b.var("a", at);
            kit.b.add(Term::Field(a, key.into()), at)
        };
        let mut branches = Vec::new();
        for Subagent { name, agent, .. } in subs {
            if branches.iter().any(|b: &Branch| *b.tag == *name) {
                continue;
            }
            let mut said = self.sends(kit, &agent.scope, &agent.parts);
            let asked = part(kit, "description");
            said.push(("_".into(), kit.b.add(Term::Send(Role::User, asked), at)));
            let head = agent.head;
            // The one that is like itself stands where it does.
            let inside = kit.is_open(head);
            let body = match if inside { Ok(()) } else { kit.open(&name, head, at, 0) } {
                Err(unknown) => unknown,
                Ok(()) => {
                    let body = self.rounds_of(kit, agent);
                    if !inside {
                        kit.close();
                    }
                    body
                }
            };
            let body = kit.b.let_in(said, body, at);
            let body = kit.b.add(Term::Fresh(body), at);
            let body = kit.b.add(Term::Prim(Prim::ToStr, vec![body]), at);
            branches.push(Branch { tag: name.as_str().into(), binder: None, body });
        }
        let sorry = kit
            .text(&format!("We cannot invoke subagent: the only allowed types are {}", names.join(", ")), at);
        let scrutinee = part(kit, "subagent_type");
        let answer = kit.b.add(Term::Case { scrutinee, branches, default: Some(sorry) }, at);
        let o: Name = kit.b.fresh("o");
        let shown = kit.b.var(o.clone(), at);
        let send = kit.b.add(Term::Send(Role::Tool, shown), at);
        let body = kit.b.let_in(vec![(o, answer), ("_".into(), send)], next, at);
        Branch { tag: TASK.into(), binder: Some("a".into()), body }
    }
}
