//! `planning=True`: a planner is asked for a plan of each task before the crew begins, and each task is told
//! its own.
//!
//! | source | term |
//! |---|---|
//! | `planning=True`, `planning_llm` | `let $plans = (llm p θ "…").list_of_plans_per_task in …` |
//! | the description of task 2 | `"…{plan}"`, `plan` being the first in `$plans` whose `task_number` is 2, or nothing |
//!
//! Source: CrewAI 1.15.30 `utilities/planning_handler.py`, `crew.py` (`_handle_crew_planning`).

use super::crew::Crew;
use super::source::{CrewItem, CrewReader};
use core_ir::{Bound, IfSugar, ModelParams, Name, Num, Prim, Term, TermId, Type};
use diagnostics::Span;
use frontend_kit::emit::Template;
use frontend_kit::kit::Kit;
use std::sync::Arc;

/// The variable that holds the plans.
const PLANS: &str = "$plans";

/// The planner's system message.
const PLANNER: &str = "You are Task Execution Planner. Planner agent for crew planning\nYour personal goal is: Your goal is to create an extremely detailed, step-by-step plan based on the tasks and tools available to each agent so that they can perform the tasks in an exemplary manner";

/// The model that plans if none is named.
const MODEL: &str = "gpt-5.4-mini";

/// Prompt of the planner, around the summary of the tasks.
const REQUEST: [&str; 2] = [
    "\nCurrent Task: Based on these tasks summary: ",
    " \n Create the most descriptive plan based on the tasks descriptions, tools available, and agents' goals for them to execute their goals with perfection.\n\nThis is the expected criteria for your final answer: Step by step plan on how the agents can execute their tasks using the available tools with mastery\nyou MUST return the actual complete content as the final answer, not a summary.",
];

/// The type of its answer as it is shown to it.
const SCHEMA: &str = r#"{
  "description": "Output format for task planning results.",
  "properties": {
    "list_of_plans_per_task": {
      "description": "Step by step plan on how the agents can execute their tasks using the available tools with mastery",
      "items": {
        "description": "Represents a plan for a specific task.",
        "properties": {
          "task_number": {
            "description": "The 1-indexed task number this plan corresponds to",
            "minimum": 1,
            "title": "Task Number",
            "type": "integer"
          },
          "task": {
            "description": "The task for which the plan is created",
            "title": "Task",
            "type": "string"
          },
          "plan": {
            "description": "The step by step plan on how the agents can execute their tasks using the available tools with mastery",
            "title": "Plan",
            "type": "string"
          }
        },
        "required": [
          "task_number",
          "task",
          "plan"
        ],
        "title": "PlanPerTask",
        "type": "object",
        "additionalProperties": false
      },
      "title": "List Of Plans Per Task",
      "type": "array"
    }
  },
  "required": [
    "list_of_plans_per_task"
  ],
  "title": "PlannerTaskPydanticOutput",
  "type": "object",
  "additionalProperties": false
}"#;

impl<'r> CrewReader<'r, '_> {
    /// A crew, a function of text, whose tasks are planned first.
    pub(super) fn planned(&self, kit: &mut Kit<'_>, crew: &Crew<'r>, term: TermId) -> TermId {
        let at = crew.planning.as_ref().map_or(crew.at, |p| p.at());
        let mut params = ModelParams { purpose: Some("planner".into()), ..ModelParams::default() };
        let model_at = self.model(kit, crew.planning_llm.as_ref(), &mut params).unwrap_or(at);
        if params.model.is_none() && crew.planning_llm.is_none() {
            params.model = Some(MODEL.into());
        }
        let plan = Type::record([
            ("task_number".into(), Type::Num),
            ("task".into(), Type::Str),
            ("plan".into(), Type::Str),
        ]);
        params.result = Some(Type::record([("list_of_plans_per_task".into(), Type::list(plan))]));
        let mut request = Template::new(at);
        request.text(REQUEST[0]);
        for (i, task) in crew.tasks.iter().enumerate() {
            if i > 0 {
                request.text(" ");
            }
            self.summarize(kit, &mut request, i, *task, crew);
        }
        request.text(REQUEST[1]);
        let [before, after] = super::crew::SCHEMA;
        request.text(before).text(SCHEMA).text(after).text("\n\nProvide your complete response:");
        let (prompt, request) = (kit.text(PLANNER, at), request.build(&mut kit.b));
        let planner = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
        let answer = kit.b.app(planner, request, at);
        let plans = kit.b.add(Term::Field(answer, "list_of_plans_per_task".into()), at);
        let begun = kit.on_x(term, crew.at);
        let body = kit.b.let_in(vec![(PLANS.into(), plans)], begun, at);
        kit.b.abs("x", Some(Type::Str), body, crew.at)
    }

    /// Lowers the summary of a task for the planner.
    fn summarize(
        &self,
        kit: &mut Kit<'_>,
        request: &mut Template,
        i: usize,
        task: CrewItem<'r>,
        crew: &Crew<'r>,
    ) {
        const INDENT: &str = "\n                ";
        let agent = self.carries_out(task, crew);
        request.text(&format!("{INDENT}Task Number {} - ", i + 1));
        self.fill(kit, request, task, "description");
        request.text(&format!("{INDENT}\"task_description\": "));
        self.fill(kit, request, task, "description");
        request.text(&format!("{INDENT}\"task_expected_output\": "));
        self.fill(kit, request, task, "expected_output");
        for (title, key) in [("agent", "role"), ("agent_goal", "goal")] {
            request.text(&format!("{INDENT}\"{title}\": "));
            match agent {
                Some(agent) => self.fill(kit, request, agent, key),
                None => {
                    request.text("None");
                }
            }
        }
        // A task without tools of its own has those of its agent by then.
        let of_agent = agent.map_or(Vec::new(), |a| self.names_of_tools(a));
        let of_task = Some(self.names_of_tools(task)).filter(|t| !t.is_empty());
        let of_task = of_task.unwrap_or_else(|| of_agent.clone());
        request.text(&format!("{INDENT}\"task_tools\": [{}]", of_task.join(", ")));
        let of_agent = match of_agent[..] {
            [] => "\"agent has no tools\"".to_string(),
            _ => format!("[{}]", of_agent.join(", ")),
        };
        request.text(&format!("{INDENT}\"agent_tools\": {of_agent}"));
    }

    /// The names of the tools under `tools`.
    fn names_of_tools(&self, thing: CrewItem<'r>) -> Vec<String> {
        let versions = frontend_kit::versions::Versions::default();
        let (mut out, mut budget) = (Vec::new(), frontend_kit::kit::Budget::new());
        let mut apart = Kit::new(&mut out, &mut budget, &versions);
        let tools = self.tools(&mut apart, thing).unwrap_or_default();
        tools.into_iter().map(|c| c.decl.name.to_string()).collect()
    }
}

/// Lowers the plan for a task by its place in the crew: the first plan with its number, or nothing.
pub(super) fn plan_of(kit: &mut Kit<'_>, index: usize, at: Span) -> TermId {
    /// More than any planner writes.
    const MAX_STEPS: u64 = 100_000;
    let plan = |kit: &mut Kit<'_>, name: &str| {
        let (plans, i) = (kit.b.var(PLANS, at), kit.b.var("$i", at));
        let plan = kit.b.add(Term::Index(plans, i), at);
        kit.b.add(Term::Field(plan, Name::from(name)), at)
    };
    let number = |kit: &mut Kit<'_>, n: usize| kit.b.lit(Num::from(i64::try_from(n).unwrap_or(i64::MAX)), at);
    let (i, plans) = (kit.b.var("$i", at), kit.b.var(PLANS, at));
    let count = kit.b.add(Term::Prim(Prim::Length, vec![plans]), at);
    let over = kit.b.add(Term::Prim(Prim::Ge, vec![i, count]), at);
    let (of, own) = (plan(kit, "task_number"), number(kit, index.saturating_add(1)));
    let is = kit.b.add(Term::Prim(Prim::Eq, vec![of, own]), at);
    let found = plan(kit, "plan");
    let (this, i, one) = (kit.b.var("self", at), kit.b.var("$i", at), number(kit, 1));
    let next = kit.b.add(Term::Prim(Prim::Add, vec![i, one]), at);
    let next = kit.b.app(this, next, at);
    let rest = kit.b.add(Term::If(is, found, next, IfSugar::Plain), at);
    let nothing = kit.text("", at);
    let body = kit.b.add(Term::If(over, nothing, rest, IfSugar::Plain), at);
    let body = kit.b.abs("$i", None, body, at);
    let body = kit.b.abs("self", None, body, at);
    let search = kit.b.add(Term::Fix { bound: Bound::Finite(MAX_STEPS), origin: None, body }, at);
    let begin = number(kit, 0);
    let plan = kit.b.app(search, begin, at);
    kit.b.add(Term::Prim(Prim::ToStr, vec![plan]), at)
}
