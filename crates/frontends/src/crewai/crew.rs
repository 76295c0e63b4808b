//! Agents, tasks and crews as terms, wherever they are written.

use super::planning::plan_of;
use super::source::{CrewItem, CrewReader, Setting};
use super::{AGENT_KEYS, AGENT_UNUSED, TASK_KEYS, TASK_UNUSED};
use crate::defaults;
use crate::py;
use core_ir::{
    Bound, Comparison, Data, EffectClass, IfSugar, LabelSpec, Measure, ModelParams, Name, Num, Pred, Prim,
    Term, TermId, ToolDecl, ToolParam, Type,
};
use diagnostics::{Diagnostic, Span};
use frontend_kit::conversation::{CallEffect, Choice, Opening, Over, Speaker, conversation_from};
use frontend_kit::emit::{self, LoopBound, Template, clip, codes, near, undecided, wrong_kind};
use frontend_kit::kit::{Agent, Kit};
use std::collections::HashMap;

/// Separator between the results of several tasks.
const DIVIDER: &str = "\n\n----------\n\n";

/// Size of a reference to an earlier result, in bytes of text.
const SIZE_OF_A_NAME: usize = 16;

/// Default role, backstory and goal of a manager.
const MANAGER: [&str; 3] = [
    "Crew Manager",
    "You are a seasoned manager with a knack for getting the best out of your team.\nYou are also known for your ability to delegate work to the right people, and to ask the right questions to get the best out of your team.\nEven though you don't perform tasks by yourself, you have a lot of experience in the field, which allows you to properly evaluate the work of your team members.",
    "Manage the team to complete the task in the best way possible.",
];

/// Message of CrewAI to an agent whose iterations are used up.
const LAST_ANSWER: &str = "Now it's time you MUST give your absolute best final answer. You'll ignore all previous instructions, stop using any tools, and just return your absolute BEST Final answer.";

/// Default of `max_retry_limit`.
const RETRIES: u32 = 2;

/// Expected output of a task that is delegated to a coworker.
const EXPECTED: &str =
    "Your best answer to your coworker asking you this, accounting for the context shared.";

/// Addition to the description of a task with `markdown=True`.
const MARKDOWN: &str = "\nYour final answer MUST be formatted in Markdown syntax.\nFollow these guidelines:\n- Use # for headers\n- Use ** for bold text\n- Use * for italic text\n- Use - or * for bullet points\n- Use `code` for inline code\n- Use ```language for code blocks";

/// Addition to a request for a typed result, around the schema.
pub(super) const SCHEMA: [&str; 2] = [
    "\nFormat your final answer according to the following OpenAPI schema: ",
    "\n\nIMPORTANT: Preserve the original content exactly as-is. Do NOT rewrite, paraphrase, or modify the meaning of the content. Only structure it to match the schema format.\n\nDo not include the OpenAPI schema in the final output. Ensure the final output does not include any code block markers like ```json or ```python.",
];

/// Settings of a task for the agent that performs it.
#[derive(Default)]
struct TaskSettings {
    /// Tools that outweigh the agent's own.
    tools: Option<Vec<Choice>>,
    /// Type that the answer is decoded to.
    result: Option<Type>,
}

/// Agents and tasks that belong together.
pub(super) struct Crew<'r> {
    pub at: Span,
    pub agents: Vec<CrewItem<'r>>,
    pub tasks: Vec<CrewItem<'r>>,
    /// True in a hierarchical crew, whose manager assigns the tasks.
    pub managed: bool,
    /// The manager, if the crew names one.
    pub manager: Option<CrewItem<'r>>,
    pub manager_llm: Option<Setting<'r>>,
    /// Setting that turns planning on.
    pub planning: Option<Setting<'r>>,
    pub planning_llm: Option<Setting<'r>>,
    /// Setting that gives the agents a shared memory or knowledge.
    pub memory: Option<Setting<'r>>,
    /// The agents by what tasks call them.
    pub names: HashMap<String, CrewItem<'r>>,
}

/// CrewAI reads agents under their names; a list is for a program of the project's own, which hands on what
/// it likes.
const ELSEWHERE: &str =
    "CrewAI does not read a list of agents by itself, and the program that does may set it";
/// Names that people use in place of `max_iter`.
const OTHER_BOUNDS: &[&str] = &["max_iterations", "max_steps", "max_turns"];

impl<'r> CrewReader<'r, '_> {
    /// The agents by their names, the first of a name.
    pub fn names(&self, agents: &[CrewItem<'r>]) -> HashMap<String, CrewItem<'r>> {
        agents.iter().rev().map(|a| (self.agent_name(*a), *a)).collect()
    }

    /// An agent by itself: `Str → Str`.
    pub fn alone(&self, kit: &mut Kit<'_>, agent: CrewItem<'r>) -> TermId {
        let (term, _) = self.agent(kit, agent, TaskSettings::default(), &[]);
        match self.switched_on(agent, "guardrail") {
            Some(written) => uncounted(kit, term, "guardrail", written.at()),
            None => term,
        }
    }

    /// An agent at a task: an empty answer is a failure, after which it begins again.
    fn attempted(&self, kit: &mut Kit<'_>, agent: Option<CrewItem<'r>>, term: TermId, at: Span) -> TermId {
        let written = agent.and_then(|a| self.get(a, "max_retry_limit"));
        let default = LoopBound::written(Bound::Finite(RETRIES.into()), None);
        let limit = match &written {
            Some(Setting::Code(given)) => py::bound(self.world, Some(*given), default),
            Some(Setting::Yaml(entry)) => default.or_written(Some(*entry), kit.out),
            None => default,
        };
        let Bound::Finite(limit) = limit.bound else {
            return kit.uncounted(term, "how often a failed task is tried again is not known", at);
        };
        let retry = u32::try_from(limit).unwrap_or(u32::MAX);
        let answer = kit.on_x(term, at);
        let pred = Pred::Compare(Measure::Length, Comparison::Ge, Num::ONE);
        let guard = kit.b.add(Term::Guard { term: answer, pred, retry }, at);
        if written.is_none() {
            kit.outline.unstated_retries.insert(guard);
        }
        kit.b.abs("x", Some(Type::Str), guard, at)
    }

    /// `Str → Str`, and whether it has something to call. It may ask the `others`.
    fn agent(
        &self,
        kit: &mut Kit<'_>,
        thing: CrewItem<'r>,
        asked: TaskSettings,
        others: &[CrewItem<'r>],
    ) -> (TermId, bool) {
        let (definition, head) = (self.definition(thing), self.head(thing));
        let name = self.agent_name(thing);
        if !kit.seen(definition) {
            self.report(kit, thing, AGENT_KEYS, AGENT_UNUSED, "an agent");
        }
        let text = self.size(thing, &["role", "goal", "backstory"]);
        if let Err(unknown) = kit.open(&name, definition, head, text) {
            return (unknown, false);
        }
        let at = self.get(thing, "role").map_or(head, |w| w.at());
        let prompt = self.prompt(kit, thing, at);
        let mut params = ModelParams {
            purpose: Some(Name::from(name.as_str())),
            result: asked.result,
            ..ModelParams::default()
        };
        let model_at = self.model(kit, self.get(thing, "llm").as_ref(), &mut params);
        let mut choices: Vec<Choice> = asked.tools.or_else(|| self.tools(kit, thing)).unwrap_or_default();
        // A typed answer is made of what the tool gives by one more request.
        for choice in
            choices.iter_mut().filter(|c| params.result.is_some() && matches!(c.kind, CallEffect::FinishNow))
        {
            let message = format!("the answer computed from the result of `{}`", clip(&choice.decl.name));
            kit.out.push(undecided(codes::NOT_COMPILED, message, choice.decl.span));
            choice.kind = CallEffect::Call;
        }
        let delegate = self.delegation(kit, others, head, &mut choices);
        let written = self.get(thing, "max_iter");
        let looped = written.is_some();
        let default = defaults::bound(&defaults::CREWAI_ITER, kit.versions);
        let bound = match written {
            Some(Setting::Code(given)) => py::bound(self.world, Some(given), default),
            Some(Setting::Yaml(entry)) => default.or_written(Some(entry), kit.out),
            None if self.is_hidden(thing) => {
                LoopBound::unknown("it may be in a configuration that is not available")
            }
            // CrewAI does not read these; who wrote one may have a loader that does.
            None if OTHER_BOUNDS.iter().any(|k| matches!(self.get(thing, k), Some(Setting::Yaml(_)))) => {
                LoopBound::unknown("CrewAI does not read this key; it reads `max_iter`")
            }
            None if self.is_listed(thing) => LoopBound::unknown(ELSEWHERE),
            None => default,
        };
        // A loop is where its tools are given; what is to be said of it is said there, once.
        let given_at = match self.get(thing, "tools") {
            Some(Setting::Yaml(entry)) => entry.key.span(),
            _ => head,
        };
        let fix_at = bound.span.unwrap_or(given_at);
        let mut bound = LoopBound { span: Some(fix_at), ..bound };
        bound.facts.timed = self.get(thing, "max_execution_time").is_some();
        let calls = !choices.is_empty();
        let term = if !calls && looped {
            // The reply of a model without tools is the answer; the bound stays, for what it says.
            let nobody = LoopBound::written(Bound::Finite(1), None);
            let actions = Vec::new();
            let agent = Agent {
                name: &name,
                head,
                prompt,
                params,
                model_at,
                actions,
                actions_at: None,
                bound: nobody,
            };
            let oracle = kit.agent(agent);
            let think = kit.on_x(oracle, head);
            kit.fixpoint(think, bound, head, fix_at)
        } else {
            let over = Over::AskedFor(LAST_ANSWER, Box::new(params.clone()));
            let model_at = model_at.unwrap_or(head);
            let choices_at = self.get(thing, "tools").map(|w| w.at());
            let speaker =
                Speaker { name, head, prompts: vec![prompt], params, model_at, choices, choices_at };
            conversation_from(kit, Opening::Text, vec![speaker], bound, over, head)
        };
        kit.close();
        let term = with_delegation(kit, delegate, term, head);
        let more = MORE_CALLS.iter().find_map(|k| Some((*k, self.switched_on(thing, k.0)?)));
        let offered = more.as_ref().is_some_and(|((_, offers), _)| *offers);
        let term = match more {
            Some(((key, _), written)) => uncounted(kit, term, key, written.at()),
            None => term,
        };
        (term, calls || offered)
    }

    /// Reads a model; the place that names it.
    pub(super) fn model(
        &self,
        kit: &mut Kit<'_>,
        written: Option<&Setting<'_>>,
        params: &mut ModelParams,
    ) -> Option<Span> {
        match written? {
            Setting::Code(given) => py::model(self.world, Some(*given), params, kit),
            Setting::Yaml(entry) => {
                let (named, at) = emit::model(Some(*entry), &["model", "model_name", "name"], kit.out);
                params.model = named.model;
                params.temperature = named.temperature;
                params.max_tokens = named.max_tokens;
                params.extra = named.extra;
                at
            }
        }
    }

    /// The system message, as CrewAI puts it together. Its place is the role.
    fn prompt(&self, kit: &mut Kit<'_>, thing: CrewItem<'r>, at: Span) -> TermId {
        let mut template = Template::new(at);
        if !self.has_some(thing, &["role", "goal", "backstory"]) {
            return template.build(&mut kit.b);
        }
        template.text("You are ");
        self.fill(kit, &mut template, thing, "role");
        template.text(". ");
        self.fill(kit, &mut template, thing, "backstory");
        template.text("\nYour personal goal is: ");
        self.fill(kit, &mut template, thing, "goal");
        template.build(&mut kit.b)
    }

    /// Adds the two tools by which coworkers are asked; the function that both call.
    fn delegation(
        &self,
        kit: &mut Kit<'_>,
        others: &[CrewItem<'r>],
        at: Span,
        choices: &mut Vec<Choice>,
    ) -> Option<TermId> {
        if others.is_empty() {
            return None;
        }
        let roles: Vec<String> = others.iter().map(|o| self.called(*o)).collect();
        let list = roles.join(", ");
        for (name, what, about) in [
            (
                "delegate_work_to_coworker",
                "task",
                "Delegate a specific task to one of the following coworkers",
            ),
            (
                "ask_question_to_coworker",
                "question",
                "Ask a specific question to one of the following coworkers",
            ),
        ] {
            let mut decl = ToolDecl::unknown(name.into(), at);
            decl.description = Some(format!("{about}: {list}").into());
            let param = |name: &str| ToolParam {
                name: name.into(),
                ty: Type::Str,
                bound: LabelSpec::TOP,
                default: None,
            };
            decl.params = [what, "context", "coworker"].map(param).to_vec();
            decl.result = Type::Str;
            decl.effect = EffectClass::Pure;
            decl.control = LabelSpec::TOP;
            decl.label = LabelSpec::BOTTOM;
            let mut arg = |name: &str| {
                let a = kit.b.var("a", at);
                kit.b.add(Term::Field(a, name.into()), at)
            };
            let (task, context, coworker) = (arg(what), arg("context"), arg("coworker"));
            let fields =
                vec![("task".into(), task), ("context".into(), context), ("coworker".into(), coworker)];
            let record = kit.b.add(Term::Record(fields), at);
            let ask = kit.b.var("$delegate", at);
            let asked = kit.b.app(ask, record, at);
            choices.push(Choice::new(decl, CallEffect::Show(asked)));
        }
        // The coworker of a question is found by name, without regard to case.
        let mut missing = Template::new(at);
        missing.text(
            "\nError executing tool. coworker mentioned not found, it must be one of the following options:",
        );
        for other in others {
            missing.text("\n- ");
            let name = self.role(kit, *other);
            missing.term(name);
        }
        missing.text("\n");
        let mut answers: Vec<(TermId, TermId)> = Vec::new();
        for other in others {
            let (agent, calls) = self.agent(kit, *other, TaskSettings::default(), &[]);
            let agent = self.attempted(kit, Some(*other), agent, at);
            let request = self.delegated(kit, at, calls);
            let answer = kit.b.app(agent, request, at);
            let (who, name) = (kit.b.var("$who", at), self.role(kit, *other));
            answers.push((kit.b.add(Term::Prim(Prim::Eq, vec![who, name]), at), answer));
        }
        let mut term = missing.build(&mut kit.b);
        for (test, answer) in answers.into_iter().rev() {
            term = kit.b.add(Term::If(test, answer, term, IfSugar::Plain), at);
        }
        let request = kit.b.var("$r", at);
        let who = kit.b.add(Term::Field(request, "coworker".into()), at);
        let who = kit.b.add(Term::Prim(Prim::Trim, vec![who]), at);
        let who = kit.b.add(Term::Prim(Prim::Lower, vec![who]), at);
        let body = kit.b.let_in(vec![("$who".into(), who)], term, at);
        Some(kit.b.abs("$r", None, body, at))
    }

    /// The role of an agent as text for people.
    fn called(&self, thing: CrewItem<'r>) -> String {
        let role = self.known_text(thing, "role").map(|r| r.trim().to_string()).filter(|r| !r.is_empty());
        role.unwrap_or_else(|| self.agent_name(thing))
    }

    /// The role of an agent as it is compared: in lower case.
    fn role(&self, kit: &mut Kit<'_>, thing: CrewItem<'r>) -> TermId {
        let at = self.get(thing, "role").map_or(self.head(thing), |w| w.at());
        let mut template = Template::new(at);
        self.fill(kit, &mut template, thing, "role");
        let role = template.build(&mut kit.b);
        if let Term::Lit(Data::Str(text)) = kit.b.term(role) {
            let text = text.trim().to_lowercase();
            return kit.text(&text, at);
        }
        let role = kit.b.add(Term::Prim(Prim::Trim, vec![role]), at);
        kit.b.add(Term::Prim(Prim::Lower, vec![role]), at)
    }

    /// Lowers the request to a coworker in `$r`.
    fn delegated(&self, kit: &mut Kit<'_>, at: Span, calls: bool) -> TermId {
        let field = |kit: &mut Kit<'_>, name: &str| {
            let r = kit.b.var("$r", at);
            kit.b.add(Term::Field(r, name.into()), at)
        };
        let mut told = Template::new(at);
        told.text("\n\nThis is the context you're working with:\n").term(field(kit, "context"));
        let (told, nothing, empty) = (told.build(&mut kit.b), kit.text("", at), kit.text("", at));
        let context = field(kit, "context");
        let none = kit.b.add(Term::Prim(Prim::Eq, vec![context, empty]), at);
        let context = kit.b.add(Term::If(none, nothing, told, IfSugar::Plain), at);
        let mut template = Template::new(at);
        template.text("\nCurrent Task: ").term(field(kit, "task"));
        template.text("\n\nThis is the expected criteria for your final answer: ").text(EXPECTED);
        template.text("\nyou MUST return the actual complete content as the final answer, not a summary.");
        template.term(context);
        if !calls {
            template.text("\n\nProvide your complete response:");
        }
        template.build(&mut kit.b)
    }

    /// The tasks one after the other.
    pub fn crew(&self, kit: &mut Kit<'_>, crew: &Crew<'r>) -> TermId {
        let at = crew.at;
        if crew.tasks.is_empty() {
            return kit.undecided(codes::NOT_COMPILED, "the tasks of a crew".into(), at);
        }
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let mut by_object: HashMap<_, usize> = HashMap::new();
        for (i, task) in crew.tasks.iter().enumerate() {
            match task {
                CrewItem::Entry(d) => by_name.insert(d.name, i),
                CrewItem::Made(id) => by_object.insert(*id, i),
            };
        }
        let contexts: Vec<Option<Vec<usize>>> = (0..crew.tasks.len())
            .map(|i| match self.get(crew.tasks[i], "context") {
                Some(Setting::Yaml(entry)) => self.named_context(kit, i, crew, &entry, &by_name),
                Some(Setting::Code(given)) => {
                    let position = |value: &python::Value| {
                        self.world.object_of(value).and_then(|(id, _)| by_object.get(&id).copied())
                    };
                    self.made_context(kit, i, given, position)
                }
                // What is carried out beside others is told nothing of those before.
                None => self.flag(crew.tasks[i], "async_execution").then(Vec::new),
            })
            .collect();
        let everything_before = contexts.iter().enumerate().all(|(i, c)| match c {
            None => true,
            Some(list) => list.len() == i && list.iter().enumerate().all(|(n, earlier)| n == *earlier),
        });
        let term =
            if everything_before { self.stages(kit, crew) } else { self.bindings(kit, crew, &contexts) };
        match &crew.planning {
            Some(written) => {
                let term = self.planned(kit, crew, term);
                uncounted(kit, term, "planning", written.at())
            }
            None => term,
        }
    }

    /// Tasks each of which is told the results of all before it: what a stage is given is what it is told.
    fn stages(&self, kit: &mut Kit<'_>, crew: &Crew<'r>) -> TermId {
        let last = crew.tasks.len() - 1;
        let mut stages = Vec::with_capacity(crew.tasks.len());
        for (i, task) in crew.tasks.iter().enumerate() {
            let head = self.head(*task);
            let context = if i == 0 { Vec::new() } else { vec![kit.b.var("x", head)] };
            let mut body = self.task(kit, i, context, crew);
            if 0 < i && i < last {
                let mut said = Template::new(head);
                said.term(kit.b.var("x", head)).text(DIVIDER).term(body);
                body = said.build(&mut kit.b);
            }
            stages.push(kit.b.abs("x", Some(Type::Str), body, head));
        }
        kit.sequence(stages, crew.at)
    }

    /// Tasks some of which are told only some of the results before them.
    fn bindings(&self, kit: &mut Kit<'_>, crew: &Crew<'r>, contexts: &[Option<Vec<usize>>]) -> TermId {
        let variable = |i: usize| Name::from(format!("$task{}", i + 1));
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        for (i, task) in crew.tasks.iter().enumerate() {
            let head = self.head(*task);
            let mut told: Vec<usize> = contexts[i].clone().unwrap_or_else(|| (0..i).collect());
            // Every task told of every other is a quadratic term.
            if !kit.budget.take_text(told.len() * SIZE_OF_A_NAME, head, kit.out) {
                told.clear();
            }
            let context = told.into_iter().map(|n| kit.b.var(variable(n), head)).collect();
            let body = self.task(kit, i, context, crew);
            bindings.push((variable(i), body));
        }
        let last = kit.b.var(variable(crew.tasks.len() - 1), crew.at);
        let body = kit.b.let_in(bindings, last, crew.at);
        kit.b.abs("x", Some(Type::Str), body, crew.at)
    }

    /// The earlier tasks that a configuration names as what a task is told.
    fn named_context(
        &self,
        kit: &mut Kit<'_>,
        index: usize,
        crew: &Crew<'r>,
        entry: &frontend_kit::doc::Entry<'r>,
        position: &HashMap<&str, usize>,
    ) -> Option<Vec<usize>> {
        if !entry.value.is_sequence() {
            kit.out.push(wrong_kind(entry, "a list of tasks"));
            return None;
        }
        // In a configuration that code reads, the names are of other tasks of the code.
        let named = |i: usize| match crew.tasks[i] {
            CrewItem::Entry(d) => d.name.to_string(),
            CrewItem::Made(id) => self.task_name(id),
        };
        let own = named(index);
        let mut earlier = Vec::new();
        for (name, item) in emit::names(entry, kit.out) {
            let found = position.get(name).copied().or_else(|| match crew.tasks[index] {
                CrewItem::Made(_) => (0..crew.tasks.len().min(MAX_TASKS)).find(|i| named(*i) == name),
                CrewItem::Entry(_) => None,
            });
            match found {
                Some(i) if i < index => earlier.push(i),
                Some(_) => kit.out.push(
                    Diagnostic::error(
                        codes::UNDEFINED,
                        format!("task `{}` has no result yet when `{}` needs it", clip(name), clip(&own)),
                        item.span(),
                    )
                    .help("put the task before the one that uses its result"),
                ),
                None => {
                    let message = format!("no task is called `{}` here", clip(name));
                    let d = undecided(codes::UNDEFINED, message, item.span());
                    kit.out.push(match near(name, position.keys().copied(), kit.out) {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d,
                    });
                }
            }
        }
        Some(earlier)
    }

    /// The earlier tasks that code lists as what a task is told.
    fn made_context(
        &self,
        kit: &mut Kit<'_>,
        index: usize,
        given: py::Given<'_>,
        position: impl Fn(&python::Value) -> Option<usize>,
    ) -> Option<Vec<usize>> {
        let Some(items) = self.world.items(given.value) else {
            let message =
                format!("the context of the task is not known: {}", self.world.unknown_reason(given.value));
            kit.out.push(undecided(codes::NOT_COMPILED, message, given.at));
            return None;
        };
        let mut earlier = Vec::new();
        // A task copies the list: what was added to it afterwards, as the task itself, is not told.
        let before = items.iter().take_while(|item| position(item) != Some(index));
        for item in before {
            match position(item) {
                Some(i) if i < index => earlier.push(i),
                Some(_) => kit.out.push(
                    Diagnostic::error(
                        codes::UNDEFINED,
                        "this task has no result yet when it is needed",
                        item.span,
                    )
                    .help("put the task before the one that uses its result"),
                ),
                None => {
                    let message =
                        format!("a task that is not of this crew: {}", self.world.unknown_reason(item));
                    kit.out.push(undecided(codes::UNDEFINED, message, given.at));
                }
            }
        }
        Some(earlier)
    }

    /// Returns the name of a task: its key in the configuration, or its method.
    fn task_name(&self, id: python::ObjectId) -> String {
        let object = self.world.object(id);
        let entry = py::field(object, None, "config").and_then(|g| self.reference(g.value)).map(|(n, ..)| n);
        let method = || object.within.map(|f| self.world.function(f).name.to_string());
        entry.or_else(method).unwrap_or_default()
    }

    /// The agent of a task applied to what it is told.
    fn task(&self, kit: &mut Kit<'_>, index: usize, context: Vec<TermId>, crew: &Crew<'r>) -> TermId {
        let thing = crew.tasks[index];
        let head = self.head(thing);
        let size = self.size(thing, &["description", "expected_output"]);
        if !kit.budget.take(size, head, kit.out) {
            return kit.unknown("a task beyond the limit", head);
        }
        self.report(kit, thing, TASK_KEYS, TASK_UNUSED, "a task");
        let at = self.get(thing, "description").map_or(head, |w| w.at());
        let mut template = Template::new(at);
        template.text("\nCurrent Task: ");
        self.fill(kit, &mut template, thing, "description");
        if crew.planning.is_some() {
            template.term(plan_of(kit, index, at));
        }
        template.text("\n\nThis is the expected criteria for your final answer: ");
        self.fill(kit, &mut template, thing, "expected_output");
        template.text("\nyou MUST return the actual complete content as the final answer, not a summary.");
        if self.flag(thing, "markdown") {
            template.text(MARKDOWN);
        }
        let result = self.result(kit, thing, &mut template);
        let typed = result.is_some();
        let mut told = Template::new(at);
        for (i, earlier) in context.into_iter().enumerate() {
            told.text(if i == 0 { "\n\nThis is the context you're working with:\n" } else { DIVIDER });
            told.term(earlier);
        }
        let told = told.build(&mut kit.b);
        let guardrails = self.guardrails(thing, self.carries_out(thing, crew));
        match guardrails.is_empty() {
            true => template.term(told),
            false => template.term(kit.b.var("$told", at)),
        };
        let (mut agent, mut calls) = self.assigned(kit, thing, result, crew);
        if let Some(memory) = &crew.memory {
            (agent, calls) = (uncounted(kit, agent, "memory", memory.at()), true);
        }
        if let Some(asks) = self.switched_on(thing, "human_input") {
            agent = uncounted(kit, agent, "human_input", asks.at());
        }
        if typed {
            let written = ["output_pydantic", "output_json"].iter().find_map(|k| self.get(thing, k));
            let why = "an answer that is not of the type is converted by further requests";
            agent = kit.uncounted(agent, why, written.map_or(head, |w| w.at()));
        }
        if !calls {
            template.text("\n\nProvide your complete response:");
        }
        let request = template.build(&mut kit.b);
        let answer = kit.b.app(agent, request, head);
        // The next task is told data as JSON.
        let answer = if typed { kit.b.add(Term::Prim(Prim::ToJson, vec![answer]), head) } else { answer };
        if guardrails.is_empty() {
            return answer;
        }
        let ask = kit.b.abs("$told", Some(Type::Str), answer, head);
        self.guarded(kit, thing, guardrails, ask, told)
    }

    /// The agent that a task names.
    pub(super) fn carries_out(&self, task: CrewItem<'r>, crew: &Crew<'r>) -> Option<CrewItem<'r>> {
        match self.get(task, "agent")? {
            Setting::Code(given) => self.agent_of(given.value),
            Setting::Yaml(entry) => crew.names.get(entry.value.text()?).copied(),
        }
    }

    /// The type of a task's result, and what its request says of it.
    fn result(&self, kit: &mut Kit<'_>, thing: CrewItem<'r>, template: &mut Template) -> Option<Type> {
        let written = ["output_pydantic", "output_json"].iter().find_map(|k| self.get(thing, k))?;
        let (at, Setting::Code(given)) = (written.at(), &written) else {
            let message = "the type of the result is a class of Python, which is not read with this file";
            kit.out.push(undecided(codes::NOT_COMPILED, message, written.at()));
            return None;
        };
        let ty = py::type_of(self.world, given.value);
        if !matches!(ty, Type::Record(_)) {
            let message =
                format!("the type of the result is not known: {}", self.world.unknown_reason(given.value));
            kit.out.push(undecided(codes::NOT_COMPILED, message, at));
            return None;
        }
        match self.schema(given.value) {
            Some(schema) => {
                let [before, after] = SCHEMA;
                template.text(before).text(&schema).text(after);
            }
            None => {
                let message = "the schema that CrewAI adds to the request is left out";
                kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, at));
            }
        }
        Some(ty)
    }

    /// A class of plain fields as CrewAI shows it to a model.
    fn schema(&self, class: &python::Value) -> Option<String> {
        let python::PyKind::Class(id) = class.kind else { return None };
        let plain = |v: &python::Value| match self.world.name_of(v)?.rsplit('.').next()? {
            "str" => Some("string"),
            "int" => Some("integer"),
            "float" => Some("number"),
            "bool" => Some("boolean"),
            _ => None,
        };
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let (mut properties, mut names) = (Vec::new(), Vec::new());
        for field in self.world.fields(id) {
            let mut lines: Vec<String> = Vec::new();
            if let Some(default) = &field.default {
                // `Field(description=…)` gives no default.
                let (_, object) = self.world.object_of(default).filter(|(_, o)| o.short() == "Field")?;
                let first = object.args.first().filter(|a| a.name.is_none());
                let given = first
                    .is_some_and(|a| !self.world.name_of(&a.value).is_some_and(|n| n.ends_with("Ellipsis")));
                let other = object.args.iter().any(|a| a.name.as_deref().is_some_and(|n| n != "description"));
                if given || other {
                    return None;
                }
                if let Some(arg) = object.arg("description") {
                    lines.push(format!("\"description\": {}", quoted(self.world.str(&arg.value)?)));
                }
            }
            let item = self
                .world
                .object_of(&field.annotation)
                .filter(|(_, o)| o.callee.ends_with("list[]") || o.callee.ends_with("List[]"));
            if let Some((_, list)) = item {
                let inner = plain(&list.args.first()?.value)?;
                lines.push(format!("\"items\": {{\n        \"type\": \"{inner}\"\n      }}"));
            }
            let title: Vec<String> = field.name.split('_').filter(|w| !w.is_empty()).map(titled).collect();
            lines.push(format!("\"title\": {}", quoted(&title.join(" "))));
            let kind = if item.is_some() { "array" } else { plain(&field.annotation)? };
            lines.push(format!("\"type\": \"{kind}\""));
            properties.push(format!(
                "    {}: {{\n      {}\n    }}",
                quoted(&field.name),
                lines.join(",\n      ")
            ));
            names.push(format!("    {}", quoted(&field.name)));
        }
        let title = quoted(&self.world.class(id).name);
        (!names.is_empty()).then(|| {
            let (properties, names) = (properties.join(",\n"), names.join(",\n"));
            format!(
                "{{\n  \"properties\": {{\n{properties}\n  }},\n  \"required\": [\n{names}\n  ],\n  \"title\": {title},\n  \"type\": \"object\",\n  \"additionalProperties\": false\n}}"
            )
        })
    }

    /// The agent of a task. The flag is true if it has tools.
    fn assigned(
        &self,
        kit: &mut Kit<'_>,
        task: CrewItem<'r>,
        result: Option<Type>,
        crew: &Crew<'r>,
    ) -> (TermId, bool) {
        let head = self.head(task);
        let tools = self.tools(kit, task).filter(|t| !t.is_empty());
        let found: Option<CrewItem<'r>> = match self.get(task, "agent") {
            Some(Setting::Code(given)) => match self.agent_of(given.value) {
                Some(agent) => Some(agent),
                None => {
                    let why = format!("the agent of a task: {}", self.world.unknown_reason(given.value));
                    return (kit.undecided(codes::NOT_COMPILED, why, given.at), false);
                }
            },
            Some(Setting::Yaml(entry)) => match entry.value.text() {
                None => {
                    kit.out.push(wrong_kind(&entry, "the name of an agent"));
                    return (kit.unknown("an agent", head), false);
                }
                Some(name) => match crew.names.get(name) {
                    Some(agent) => Some(*agent),
                    None => return (self.nobody(kit, name, entry.value.span(), crew), false),
                },
            },
            None if crew.managed => None,
            None => {
                return match task {
                    CrewItem::Entry(d) => {
                        (kit.unknown(&format!("the agent of task {}", d.name), head), false)
                    }
                    CrewItem::Made(_) => {
                        let why = "the agent of a task that names none".to_string();
                        (kit.undecided(codes::NOT_COMPILED, why, head), false)
                    }
                };
            }
        };
        if crew.managed {
            // The tools of a task's agent are the task's, too.
            let tools = tools.or_else(|| self.tools(kit, found?));
            return (self.manager(kit, crew, found, TaskSettings { tools, result }), true);
        }
        // INVARIANT: without a manager, a task without an agent was answered above.
        let Some(agent) = found else { return (kit.unknown("an agent", head), false) };
        let others: Vec<CrewItem<'r>> = match self.flag(agent, "allow_delegation") {
            true => crew.agents.iter().copied().filter(|a| *a != agent).collect(),
            false => Vec::new(),
        };
        let typed = result.is_some();
        let (term, calls) = self.agent(kit, agent, TaskSettings { tools, result }, &others);
        match typed {
            true => (term, calls),
            false => (self.attempted(kit, Some(agent), term, head), calls),
        }
    }

    /// An agent that nobody defines.
    fn nobody(&self, kit: &mut Kit<'_>, name: &str, at: Span, crew: &Crew<'r>) -> TermId {
        // Without any agent in sight they are all elsewhere; otherwise one missing is odd, though a
        // Python method of that name may make it.
        if !crew.names.is_empty() {
            let message = format!("agent `{}` is not among the agents of the crew", clip(name));
            let d = undecided(codes::UNDEFINED, message, at);
            let names: Vec<&str> = crew.names.keys().map(String::as_str).collect();
            kit.out.push(match near(name, names, kit.out) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("it may be made in Python, which is not read with this file"),
            });
        }
        kit.unknown(name, at)
    }

    /// The manager calls the agent of the task; without one, any agent of the crew.
    fn manager(
        &self,
        kit: &mut Kit<'_>,
        crew: &Crew<'r>,
        agent: Option<CrewItem<'r>>,
        of_task: TaskSettings,
    ) -> TermId {
        let asked: Vec<CrewItem<'r>> = agent.map_or_else(|| crew.agents.clone(), |a| vec![a]);
        let tools = of_task.tools.unwrap_or_default();
        let mut choices: Vec<Choice> = tools;
        let head = crew.manager.map_or(crew.at, |m| self.head(m));
        let delegate = self.delegation(kit, &asked, head, &mut choices);
        let default = defaults::bound(&defaults::CREWAI_ITER, kit.versions);
        let (name, prompt, llm, bound) = match crew.manager {
            Some(manager) => {
                let bound = match self.get(manager, "max_iter") {
                    Some(Setting::Code(given)) => py::bound(self.world, Some(given), default),
                    Some(Setting::Yaml(entry)) => default.or_written(Some(entry), kit.out),
                    None => default,
                };
                let prompt = self.prompt(kit, manager, head);
                (self.agent_name(manager), prompt, self.get(manager, "llm"), bound)
            }
            None => {
                let [role, backstory, goal] = MANAGER;
                let text = format!("You are {role}. {backstory}\nYour personal goal is: {goal}");
                let listed = crew.tasks.iter().any(|t| self.is_listed(*t));
                let mut bound = if listed { LoopBound::unknown(ELSEWHERE) } else { default };
                bound.facts.bounded = Some(MANAGER_BOUND);
                ("manager".to_string(), kit.text(&text, head), None, bound)
            }
        };
        let mut params = ModelParams {
            purpose: Some(name.as_str().into()),
            result: of_task.result,
            ..ModelParams::default()
        };
        let typed = params.result.is_some();
        let llm = llm.as_ref().or(crew.manager_llm.as_ref().filter(|_| crew.manager.is_none()));
        let model_at = self.model(kit, llm, &mut params).unwrap_or(head);
        let over = Over::AskedFor(LAST_ANSWER, Box::new(params.clone()));
        let choices_at = None;
        let speaker = Speaker { name, head, prompts: vec![prompt], params, model_at, choices, choices_at };
        let term = conversation_from(kit, Opening::Text, vec![speaker], bound, over, head);
        let term = with_delegation(kit, delegate, term, head);
        match typed {
            true => term,
            false => self.attempted(kit, crew.manager, term, head),
        }
    }
}

/// Advice for the bound of the manager that CrewAI makes, which doesn't read the crew's `max_iter`.
const MANAGER_BOUND: &str = "make the manager yourself: `manager_agent=Agent(…, max_iter=n)`";

/// Tasks among which a name of a configuration is looked for.
const MAX_TASKS: usize = 300;

/// Settings of an agent that cause model calls beyond those compiled, and whether they add tools.
const MORE_CALLS: &[(&str, bool)] = &[
    ("memory", true),
    ("mcps", true),
    ("apps", true),
    ("multimodal", true),
    ("allow_code_execution", true),
    ("reasoning", false),
    ("planning", false),
    ("planning_config", false),
    ("knowledge", false),
    ("knowledge_sources", false),
    ("from_repository", false),
];

/// A function that calls models more often than is compiled, for what a key says.
fn uncounted(kit: &mut Kit<'_>, function: TermId, key: &str, at: Span) -> TermId {
    kit.uncounted(function, &format!("`{key}` makes calls that are not compiled"), at)
}

/// `let $delegate = … in e`, if coworkers may be asked.
fn with_delegation(kit: &mut Kit<'_>, delegate: Option<TermId>, term: TermId, at: Span) -> TermId {
    match delegate {
        Some(delegate) => kit.b.let_in(vec![("$delegate".into(), delegate)], term, at),
        None => term,
    }
}

/// A word with a capital letter.
fn titled(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}
