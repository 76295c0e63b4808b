//! Teams of prebuilt agents: `create_supervisor`, `create_swarm`.
//!
//! | source | term |
//! |---|---|
//! | a supervisor | a loop of one agent, in which `transfer_to_x` has another answer in a copy of the conversation |
//! | a swarm | a conversation in which `transfer_to_x` lets another agent go on |
//!
//! Source: langgraph-supervisor 0.0.31 `supervisor.py`, `handoff.py`; langgraph-swarm 0.1.0 `swarm.py`,
//! `handoff.py`.

use super::agent::{Agent, rounds};
use super::model::handoff_slug;
use super::prompt::Part;
use super::{GraphReader, Inner};
use crate::defaults;
use crate::py::{self, field};
use core_ir::{Data, EffectClass, LabelSpec, ModelParams, Role, TermId, ToolDecl, Type};
use frontend_kit::conversation::{CallEffect, Choice, Speaker, conversation};
use frontend_kit::emit::Unused;
use frontend_kit::kit::Kit;
use frontend_kit::shape::why;
use python::{Object, ObjectId, PyKind, Value};

const SUPERVISOR_KEYS: &[&str] =
    &["agents", "model", "prompt", "tools", "supervisor_name", "handoff_tool_prefix", "parallel_tool_calls"];
const SWARM_KEYS: &[&str] = &["agents", "default_active_agent"];
const UNUSED: &[Unused] = &[
    ("output_mode", "only the last message of an agent's conversation is returned"),
    ("add_handoff_messages", why::NOT_YET),
    ("add_handoff_back_messages", "the message about the return of control is not added"),
    ("add_handoff_to_agents", why::NOT_YET),
    ("response_format", why::NOT_YET),
    ("state_schema", "a team's state is its conversation here"),
    ("context_schema", "what runs are configured with is not compiled"),
    ("config_schema", "what runs are configured with is not compiled"),
    ("pre_model_hook", why::CODE),
    ("post_model_hook", why::CODE),
    ("include_agent_name", why::NOT_YET),
];

impl GraphReader<'_, '_> {
    /// Returns true for a team that the framework builds.
    pub fn is_team(&self, object: &Object) -> bool {
        object.base.is_none()
            && matches!(
                &*object.callee,
                "langgraph_supervisor.create_supervisor" | "langgraph_swarm.create_swarm"
            )
    }

    /// The agents of a team.
    pub fn members(&self, id: ObjectId) -> Vec<(ObjectId, Value)> {
        let object = self.world.object(id);
        let items = field(object, Some(0), "agents").map_or_else(Vec::new, |g| self.items(g.value));
        let agent = |v: Value| match self.inner_graph(&v) {
            Some(Inner::Agent(id)) => Some((id, v)),
            _ => None,
        };
        items.into_iter().filter_map(agent).collect()
    }

    /// A team as a function of a text.
    pub fn team_unit(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let object = self.world.object(id);
        let members = self.members(id);
        let all = field(object, Some(0), "agents").map_or(0, |g| self.items(g.value).len());
        if members.len() < all {
            let message = "some of the agents are not known, or no prebuilt ones: they are left out";
            kit.left_out(message.into(), object.span);
        }
        match object.short() {
            "create_swarm" => self.swarm(kit, id, &members),
            _ => {
                let agent = self.supervisor(kit, object, id, members);
                self.agent_term(kit, agent)
            }
        }
    }

    fn handoff(&self, object: &Object, name: &str, at: diagnostics::Span) -> ToolDecl {
        let prefix = field(object, None, "handoff_tool_prefix")
            .and_then(|g| self.world.str(g.value))
            .unwrap_or("transfer_to_");
        let mut decl = ToolDecl::unknown(format!("{prefix}{}", handoff_slug(name)).as_str().into(), at);
        decl.description = Some(format!("Ask agent '{name}' for help").as_str().into());
        decl.params = Vec::new();
        decl.result = Type::Str;
        decl.effect = EffectClass::Pure;
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        decl
    }

    fn supervisor(
        &self,
        kit: &mut Kit<'_>,
        object: &Object,
        id: ObjectId,
        members: Vec<(ObjectId, Value)>,
    ) -> Agent {
        py::report(object, SUPERVISOR_KEYS, UNUSED, "a supervisor", kit.out);
        let name = field(object, None, "supervisor_name")
            .and_then(|g| py::label(self.world, g.value))
            .unwrap_or_else(|| "supervisor".into());
        let mut params = ModelParams { purpose: Some(name.as_str().into()), ..ModelParams::default() };
        if let Some(given) = field(object, None, "model") {
            match self.model(given.value) {
                Some(model) => params = self.params(kit, &model, &name),
                None => {
                    py::model(self.world, Some(given), &mut params, kit);
                }
            }
        }
        let several = field(object, None, "parallel_tool_calls");
        if !several.is_some_and(|g| matches!(g.value.kind, PyKind::Bool(true))) {
            params.extra.retain(|(n, _)| &**n != "parallel_tool_calls");
            params.extra.push(("parallel_tool_calls".into(), Data::Bool(false)));
        }
        let tools = field(object, None, "tools").map_or_else(Vec::new, |g| self.tool_items(g.value));
        let decls = self.tools(kit, &tools);
        let limit = self.limit(&self.runs_of(id), defaults::bound(&defaults::LANGGRAPH_STEPS, kit.versions));
        let (bound, last) = rounds(limit, true);
        let mut agent =
            Agent::of(object.span, self.agent_prompt(kit, object), params, tools, decls, bound, last);
        for (member, value) in members {
            let called = self.agent_name(member).unwrap_or_else(|| "agent".into());
            agent.helpers.push((self.handoff(object, &called, value.span), called, member));
        }
        agent
    }

    fn swarm(&self, kit: &mut Kit<'_>, id: ObjectId, members: &[(ObjectId, Value)]) -> TermId {
        let object = self.world.object(id);
        py::report(object, SWARM_KEYS, UNUSED, "a swarm", kit.out);
        let name_of = |id: ObjectId| self.agent_name(id).unwrap_or_else(|| "agent".into());
        let first = field(object, None, "default_active_agent")
            .and_then(|g| self.world.str(g.value))
            .map(str::to_string);
        let mut order: Vec<ObjectId> = members.iter().map(|(m, _)| *m).collect();
        if let Some(first) = first
            && let Some(i) = order.iter().position(|m| name_of(*m) == first)
        {
            order[..=i].rotate_right(1);
        }
        let names: Vec<String> = order.iter().map(|m| name_of(*m)).collect();
        let limit = self.limit(&self.runs_of(id), defaults::bound(&defaults::LANGGRAPH_STEPS, kit.versions));
        let (bound, _) = rounds(limit, true);
        let mut speakers = Vec::new();
        let mut opened = 0;
        for (member, name) in order.iter().zip(&names) {
            let span = self.world.object(*member).span;
            opened += usize::from(kit.open(name, span, span, 0).is_ok());
            let agent = self.read_agent(kit, *member);
            // Whoever hands off to it makes it begin again.
            let copies = order.len();
            let prompts = (0..copies).map(|_| self.system_of(kit, &agent)).collect();
            let mut choices = Vec::new();
            for (decl, value) in agent.decls.iter().zip(&agent.tools) {
                let to = self.handoff_target(value).and_then(|to| names.iter().position(|n| *n == to));
                let does = match to {
                    Some(to) => CallEffect::Switch(to, format!("Successfully transferred to {}", names[to])),
                    None => CallEffect::Call,
                };
                choices.push(Choice::new(decl.clone(), does));
            }
            speakers.push(Speaker {
                name: name.clone(),
                head: span,
                prompts,
                params: agent.params,
                model_at: span,
                choices,
                choices_at: None,
            });
        }
        (0..opened).for_each(|_| kit.close());
        let over = match bound.bound {
            core_ir::Bound::Finite(_) => {
                "Recursion limit reached without hitting a stop condition".to_string()
            }
            core_ir::Bound::Infinite => "Recursion limit reached".to_string(),
        };
        conversation(kit, speakers, bound, &over, object.span)
    }

    fn system_of(&self, kit: &mut Kit<'_>, agent: &Agent) -> TermId {
        match agent.parts.first() {
            Some(Part::Say(Role::System, said)) => self.said(kit, &agent.scope, said),
            _ => kit.text("", agent.head),
        }
    }

    /// The agent that a tool hands off to.
    fn handoff_target(&self, value: &Value) -> Option<String> {
        let (_, object) = self.world.object_of(value)?;
        let to = field(object, None, "agent_name").filter(|_| object.short() == "create_handoff_tool")?;
        self.world.str(to.value).map(str::to_string)
    }
}
