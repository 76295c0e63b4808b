//! Front ends on the fixtures of `suite/frontends`.

use crate::*;
use core_ir::{Bound, Code, Term, TermId};
use diagnostics::{Level, Sources, Span};
use frontend_kit::doc::Limits;
use frontend_kit::*;
use proptest::prelude::*;
use std::sync::Arc;

macro_rules! fixtures {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../suite/frontends/", $path)))),*]
    };
}

const FIXTURES: &[(&str, &str)] = fixtures![
    "lambda_yaml/listing1.yaml",
    "lambda_yaml/simple.yaml",
    "lambda_yaml/chain.yaml",
    "lambda_yaml/router.yaml",
    "lambda_yaml/parallel.yaml",
    "lambda_yaml/odd.yaml",
    "crewai/agents.yaml",
    "crewai/tasks.yaml",
    "crewai/crew.yaml",
    "crewai/agents.json",
];

fn fixture(path: &str) -> &'static str {
    FIXTURES.iter().find(|(p, _)| *p == path).unwrap().1
}

fn project(files: &[(&str, &str)]) -> (Project, Sources) {
    let mut sources = Sources::new();
    let mut project = Project::default();
    for (path, text) in files {
        let text: Arc<str> = Arc::from(*text);
        let id = sources.add(*path, text.clone());
        project.files.push(File::read(id, path, &text, &Limits::default()));
    }
    (project, sources)
}

fn compiled(files: &[(&str, &str)]) -> (Compiled, Sources) {
    let (project, sources) = project(files);
    let compiled = compile(&project, 0).expect("a front end reads it");
    (compiled, sources)
}

/// `code level text-at-the-place` of each diagnostic, in order.
fn said(compiled: &Compiled, sources: &Sources) -> Vec<String> {
    let at = |s: Option<Span>| s.map_or("", |s| sources.text(s)).to_string();
    compiled.diagnostics.iter().map(|d| format!("{} {} {}", d.code, d.level.as_str(), at(d.span))).collect()
}

fn tags(code: &Code) -> Vec<String> {
    code.iter()
        .filter_map(|(_, t)| match t {
            Term::Case { branches, default, .. } => Some((branches, default)),
            _ => None,
        })
        .flat_map(|(b, d)| b.iter().map(|b| b.tag.to_string()).chain(d.map(|_| "_".to_string())))
        .collect()
}

#[test]
fn listing_1_is_the_term_of_the_seed() {
    let (compiled, sources) = compiled(&[("a.yaml", fixture("lambda_yaml/listing1.yaml"))]);
    assert_eq!(said(&compiled, &sources), Vec::<String>::new());
    assert_eq!((compiled.framework, compiled.units.len()), ("lambda", 1));
    let unit = &compiled.units[0];
    assert_eq!(unit.name, "seeCoderManus");
    let code = &unit.code;
    let Term::Mem(store, inner) = code.term(code.root()) else { panic!("mem outermost") };
    let store = code.store(*store);
    assert_eq!((store.backend.as_deref(), store.capacity, store.ttl), (Some("redis"), Some(20), Some(7200)));
    let Term::Fix { bound, origin, body } = code.term(*inner) else { panic!("fix inside") };
    assert_eq!((*bound, origin), (Bound::Finite(20), &None));
    assert_eq!(sources.text(code.span(*inner)), "20");
    let abs = |id: TermId| match code.term(id) {
        Term::Abs(a) => (a.param.to_string(), a.body),
        other => panic!("a function, not {other:?}"),
    };
    let (this, step) = abs(*body);
    let (x, step) = abs(step);
    assert_eq!((this.as_str(), x.as_str()), ("self", "x"));
    let Term::Let { bindings, body, .. } = code.term(step) else { panic!("let t = …") };
    let Term::App(oracle, _) = code.term(bindings[0].1) else { panic!("the oracle applied") };
    let Term::Llm(prompt, params) = code.term(*oracle) else { panic!("an oracle") };
    assert_eq!(params.model.as_deref(), Some("qwen3-max"));
    assert_eq!(params.temperature, "7/10".parse().ok());
    assert_eq!(sources.text(code.span(*prompt)), "\"You are a coding assistant ...\"");
    let offered: Vec<_> = params.tools.iter().map(|t| code.tool(*t).name.to_string()).collect();
    assert_eq!(offered, ["sum", "improve", "terminate"]);
    assert!(matches!(code.term(*body), Term::Case { .. }));
    assert_eq!(tags(code), ["sum", "improve", "terminate", "final"]);
    let shown = core_ir::print_term(code, code.root());
    assert!(shown.starts_with("mem (fix[20] (\\self. \\x: Str."), "{shown}");
    assert!(shown.ends_with("seeCoderManus") && shown.contains("terminate a => a.answer"), "{shown}");
    // Every part points into the file.
    for (id, _) in code.iter() {
        assert!(!sources.text(code.span(id)).is_empty(), "{:?}", code.term(id));
    }
}

#[test]
fn each_type_of_agent_has_its_former() {
    let unit = |path: &str, n: usize| {
        let (compiled, sources) = compiled(&[("a.yaml", fixture(path))]);
        assert_eq!(said(&compiled, &sources), Vec::<String>::new(), "{path}");
        compiled.units[n].code.clone()
    };
    let code = unit("lambda_yaml/simple.yaml", 0);
    let Term::Guard { term, retry: 2, pred } = code.term(code.root()) else { panic!("a guard") };
    assert_eq!(pred.to_string(), "words == 3");
    assert!(matches!(code.term(*term), Term::Llm(..)));
    let code = unit("lambda_yaml/chain.yaml", 0);
    assert_eq!(code.stages(code.root()).unwrap().len(), 2);
    let code = unit("lambda_yaml/router.yaml", 0);
    let Term::Abs(a) = code.term(code.root()) else { panic!("a function") };
    assert!(matches!(code.term(a.body), Term::Case { default: Some(_), .. }));
    assert_eq!(tags(&code), ["look_up", "terminate", "final", "billing", "technical", "_"]);
    let code = unit("lambda_yaml/router.yaml", 1);
    assert!(code.iter().any(|(_, t)| matches!(t, Term::Classify(tags, _) if tags.len() == 2)));
    let code = unit("lambda_yaml/parallel.yaml", 0);
    assert!(code.par_pair(code.root()).is_some());
    let code = unit("lambda_yaml/parallel.yaml", 1);
    assert!(code.iter().any(|(_, t)| matches!(t, Term::Par(None, sides) if sides.len() == 3)));
}

#[test]
fn mistakes_in_lambda_yaml_have_places() {
    let (compiled, sources) = compiled(&[("a.yaml", fixture("lambda_yaml/odd.yaml"))]);
    assert_eq!(
        said(&compiled, &sources),
        [
            "F006 error reakt",
            "F002 info systemprompt",
            "F002 info color",
            "F001 error soon",
            "F001 warn {x: 1}",
            "F007 warn sum",
            "F001 warn [a, b]",
            "F002 unknown wrds",
            "F001 warn [5]",
            "F005 error {type: chain, steps: [knot2]}",
            "F004 error nowhere",
        ]
    );
    let helped =
        compiled.diagnostics.iter().filter(|d| d.help.iter().any(|h| h.contains("did you mean"))).count();
    assert!(helped >= 2);
    assert_eq!(compiled.units.len(), 3);
}

#[test]
fn code_supplies_what_configurations_lack() {
    let text = "from crewai import Agent\nfrom crewai.project import CrewBase, agent\n@CrewBase\nclass C:\n  @agent\n  def scout(self):\n    a = Agent(config=self.agents_config['scout'], llm='m', max_iter=3, tools=[f()])\n    a.verbose = True\n    return a\n";
    let (project, sources) = project(&[("c.py", text)]);
    let given: Vec<String> = crewai::supplied(&project)
        .iter()
        .map(|s| {
            let value = s.value.as_deref().unwrap_or("-");
            format!("{} {} {}={value} {} {}", s.of, s.name, s.key, s.config.0, sources.text(s.span))
        })
        .collect();
    assert_eq!(
        given,
        [
            "agent scout llm=m config/agents.yaml llm='m'",
            "agent scout max_iter=3 config/agents.yaml max_iter=3",
            "agent scout tools=- config/agents.yaml tools=[f()]",
            "agent scout verbose=true config/agents.yaml True",
        ]
    );
}

#[test]
fn crewai_agents_and_tasks() {
    let (agents, sources) = compiled(&[("agents.yaml", fixture("crewai/agents.yaml"))]);
    assert_eq!(said(&agents, &sources), ["F003 info verbose", "F002 info max_itr"]);
    let names: Vec<_> = agents.units.iter().map(|u| u.name.as_str()).collect();
    assert_eq!(names, ["scout", "writer"]);
    // With a placeholder, an agent is a function of the inputs, its text among them; without tools it is one
    // oracle.
    let code = &agents.units[0].code;
    let Term::Abs(a) = code.term(code.root()) else { panic!("a function of the inputs") };
    assert_eq!(a.ty.as_ref().unwrap().to_string(), "{input: Str, topic: Str}");
    let Term::App(oracle, text) = code.term(a.body) else { panic!("the oracle, asked") };
    assert!(matches!(code.term(*oracle), Term::Llm(_, p) if p.model.as_deref() == Some("provider/small")));
    assert!(matches!(code.term(*text), Term::Field(_, name) if **name == *"input"));
    // With tools it is a conversation with a loop, bounded by CrewAI.
    let code = &agents.units[1].code;
    assert!(
        code.iter().any(|(_, t)| matches!(t, Term::Fix { bound: Bound::Finite(25), origin: Some(_), .. }))
    );
    assert_eq!(
        tags(code),
        ["spell_check", "thesaurus", "final", "none", "final", "writer", "final", "writer"]
    );

    let (crew, sources) = compiled(&[
        ("c/tasks.yaml", fixture("crewai/tasks.yaml")),
        ("c/agents.yaml", fixture("crewai/agents.yaml")),
    ]);
    assert_eq!(said(&crew, &sources), ["F003 info output_file", "F003 info verbose", "F002 info max_itr"]);
    let code = &crew.units[0].code;
    let Term::Abs(a) = code.term(code.root()) else { panic!("a function of the inputs") };
    assert_eq!(a.ty.as_ref().unwrap().to_string(), "{topic: Str, year: Str}");
    let Term::App(run, _) = code.term(a.body) else { panic!("the crew, run") };
    assert_eq!(code.stages(*run).unwrap().len(), 2);
    assert!(!code.iter().any(|(_, t)| matches!(t, Term::Unknown(_))));

    // Alone, the tasks' agents are unknown.
    let (alone, sources) = compiled(&[("tasks.yaml", fixture("crewai/tasks.yaml"))]);
    assert_eq!(said(&alone, &sources), ["F003 info output_file"]);
    assert_eq!(alone.units[0].code.iter().filter(|(_, t)| matches!(t, Term::Unknown(_))).count(), 2);
    // Files in another folder are another crew's.
    let (other, _) = compiled(&[
        ("c/tasks.yaml", fixture("crewai/tasks.yaml")),
        ("d/agents.yaml", fixture("crewai/agents.yaml")),
    ]);
    assert_eq!(other.units[0].code.iter().filter(|(_, t)| matches!(t, Term::Unknown(_))).count(), 2);
}

#[test]
fn a_crew_in_one_file() {
    let (crew, sources) = compiled(&[("crew.yaml", fixture("crewai/crew.yaml"))]);
    assert_eq!(said(&crew, &sources), ["F004 unknown thrid", "F004 unknown jugde"]);
    // A manager carries out each task.
    assert!(core_ir::print_code(&crew.units[0].code).contains("You are Crew Manager."));
    let kinds: Vec<_> = crew.units.iter().map(|u| (u.name.as_str(), u.kind)).collect();
    assert_eq!(kinds, [("crew", UnitKind::Crew), ("judge", UnitKind::Agent)]);
    let code = &crew.units[0].code;
    assert!(code.iter().any(|(_, t)| matches!(t, Term::Let { bindings, .. } if bindings.len() == 3)));
    assert_eq!(
        code.iter()
            .filter(|(_, t)| matches!(t, Term::Fix { bound: Bound::Finite(4), origin: None, .. }))
            .count(),
        2
    );
    let (_, sources) = compiled(&[("agents.json", fixture("crewai/agents.json"))]);
    assert!(sources.iter().count() == 1);
}

/// A crew means the same whether its configuration is compiled by itself or with the Python that loads it.
#[test]
fn a_crew_is_the_same_term_in_yaml_and_loaded_by_python() {
    let agents = "scout:\n  role: Scout for {topic}\n  goal: Find\n  backstory: You read.\n  llm: provider/small\n  tools: [search]\nlead:\n  role: Lead\n  goal: Decide\n  backstory: You ask.\n  llm: provider/large\n  allow_delegation: true\n  max_iter: 4\n";
    let tasks = "look:\n  description: Look for {topic}.\n  expected_output: A list.\n  agent: scout\nsort:\n  description: Sort.\n  expected_output: A list.\n  agent: lead\nwrite:\n  description: Write.\n  expected_output: A page.\n  agent: lead\n  markdown: true\n";
    let code = "from crewai import Agent, Crew, Task\nfrom crewai.project import CrewBase, agent, crew, task\n@CrewBase\nclass C:\n  agents_config = 'agents.yaml'\n  tasks_config = 'tasks.yaml'\n  @agent\n  def scout(self):\n    return Agent(config=self.agents_config['scout'])\n  @agent\n  def lead(self):\n    return Agent(config=self.agents_config['lead'])\n  @task\n  def look(self):\n    return Task(config=self.tasks_config['look'])\n  @task\n  def sort(self):\n    return Task(config=self.tasks_config['sort'])\n  @task\n  def write(self):\n    return Task(config=self.tasks_config['write'])\n  @crew\n  def crew(self):\n    return Crew(agents=self.agents, tasks=self.tasks)\n";
    for more in ["", "  context: [look]\n"] {
        let tasks = format!("{tasks}{more}");
        let shown = |main: &[(&str, &str)]| {
            let (crew, _) = compiled(main);
            let unit = crew.units.iter().find(|u| u.kind == UnitKind::Crew).expect("a crew");
            core_ir::print_code(&unit.code)
        };
        let yaml = shown(&[("tasks.yaml", &tasks), ("agents.yaml", agents)]);
        let python = shown(&[("crew.py", code), ("tasks.yaml", &tasks), ("agents.yaml", agents)]);
        assert_eq!(yaml, python);
        assert!(yaml.contains("delegate_work_to_coworker") && yaml.contains("send[tool]"), "{yaml}");
        assert_eq!(yaml.contains(">>"), more.is_empty(), "{yaml}");
    }
}

#[test]
fn other_formats_are_told_apart() {
    let recognized = |text: &str| format!("{:?}", recognize(&project(&[("f.yaml", text)]).0.files[0]));
    for (text, expected) in [
        ("a: 1", "Unknown"),
        ("- 1", "Unknown"),
        ("", "Unknown"),
        ("type: react", "Unknown"),
        ("kind: Deployment\napiVersion: v1", "Unknown"),
        ("kind: Agent\napiVersion: kagent.dev/v1alpha2", "Frontend(kagent)"),
        ("kind: app\napp: {mode: workflow}\nworkflow: {graph: {}}", "Frontend(dify)"),
        ("name: a\nmodel: m\ninstruction: do\nsub_agents: []", "Frontend(adk)"),
        ("agents: {root: {model: m, instruction: do}}", "Frontend(cagent)"),
        (
            "framework: praisonai\nagents: {a: {role: r, goal: g, backstory: b}}\nsteps: []",
            "Frontend(praisonai)",
        ),
        ("topic: t\nagents: {a: {role: r, goal: g, backstory: b, tasks: {}}}", "Frontend(praisonai)"),
        ("a: {role: r, goal: g, backstory: b}", "Frontend(crewai)"),
        ("t: {description: d, expected_output: e}", "Frontend(crewai)"),
        ("agentId: a\ntype: simple", "Frontend(lambda)"),
    ] {
        assert_eq!(recognized(text), expected, "{text}");
    }
}

#[test]
fn bombs_of_agents_are_bounded() {
    let mut text = String::from("agentId: top\ntype: chain\nsteps: [*l]\n");
    // Twenty levels of nine references each: 9^20 agents if they were copied.
    let mut levels = String::from("x0: &a0 {type: simple, systemPrompt: p, model: m}\n");
    for i in 1..20 {
        let below = vec![format!("*a{}", i - 1); 9].join(", ");
        levels.push_str(&format!("x{i}: &a{i} {{type: chain, steps: [{below}]}}\n"));
    }
    text = levels + &text.replace("*l", "*a19");
    let (bomb, _) = compiled(&[("a.yaml", &text)]);
    assert_eq!(bomb.diagnostics.iter().filter(|d| d.level == Level::Error).count(), 1);
    assert!(bomb.units[0].code.len() < 50_000);

    let tasks: String =
        (0..20_000).map(|i| format!("t{i}: {{description: d, expected_output: e, agent: a}}\n")).collect();
    let text = format!(
        "tasks:\n  {}\nagents: {{a: {{role: r, goal: g, backstory: b}}}}\n",
        tasks.trim_end().replace('\n', "\n  ")
    );
    let (bomb, _) = compiled(&[("a.yaml", &text)]);
    assert_eq!(bomb.diagnostics.iter().filter(|d| d.level == Level::Error).count(), 1);
}

#[test]
fn tasks_are_told_what_was_said_before() {
    let task =
        |name: &str, more: &str| format!("{name}: {{description: Do {name}., expected_output: e{more}}}\n");
    let shown = |text: &str| {
        let (crew, sources) = compiled(&[("t.yaml", text)]);
        assert_eq!(said(&crew, &sources), Vec::<String>::new());
        core_ir::print_term(&crew.units[0].code, crew.units[0].code.root())
    };
    // By default of everything, which the stages hand on.
    let all = shown(&(task("a", "") + &task("b", "") + &task("c", "")));
    assert_eq!(all.matches(">>").count(), 2, "{all}");
    assert_eq!(all.matches("----------").count(), 1, "{all}");
    assert_eq!(all.matches("working with:\\n{x}").count(), 2, "{all}");
    // Saying so changes nothing.
    assert_eq!(shown(&(task("a", "") + &task("b", ", context: [a]") + &task("c", ", context: [a, b]"))), all);
    // Otherwise results are named.
    let some =
        shown(&(task("a", "") + &task("b", ", context: []") + &task("c", ", context: [b]") + &task("d", "")));
    assert_eq!(some.matches("working with:\\n{$task2}").count(), 1, "{some}");
    assert_eq!(
        some.matches("{$task1}\\n\\n----------\\n\\n{$task2}\\n\\n----------\\n\\n{$task3}").count(),
        1,
        "{some}"
    );
    // A result that does not exist yet.
    let (crew, sources) = compiled(&[("t.yaml", &(task("a", ", context: [b]") + &task("b", "")))]);
    assert_eq!(said(&crew, &sources), ["F004 error b"]);
}

#[test]
fn tools_are_bounded() {
    let list: String = (0..6000).map(|i| format!("t{i}, ")).collect();
    for text in [
        format!("agentId: a\ntype: react\nmodel: m\nsystemPrompt: p\ntools: [{list}]\n"),
        format!("a: {{role: r, goal: g, backstory: b, tools: [{list}]}}\n"),
    ] {
        let (many, sources) = compiled(&[("a.yaml", &text)]);
        assert_eq!(said(&many, &sources), ["F005 error t5000"]);
    }
}

/// Compiles whatever front end reads it and checks what must hold of any result.
fn total(text: &str) {
    let (project, sources) = project(&[("f.yaml", text), ("agents.yaml", fixture("crewai/agents.yaml"))]);
    for frontend in FRONTENDS {
        let compiled = frontend.lower(&project, 0);
        let inside = |s: Span| {
            let len = sources.get(s.file).map_or(0, |f| f.text.len());
            s.start <= s.end && s.end as usize <= len
        };
        for d in &compiled.diagnostics {
            assert!(d.span.is_none_or(inside), "{d:?}");
            assert!(!d.message.ends_with('.') && !d.message.is_empty());
        }
        for unit in &compiled.units {
            for (id, _) in unit.code.iter() {
                assert!(inside(unit.code.span(id)));
            }
        }
    }
    let _ = recognize(&project.files[0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn damaged_fixtures_compile_or_complain(
        which in 0..FIXTURES.len(),
        edits in proptest::collection::vec((any::<u16>(), "[-:{}\\[\\] \n\"a-z0-9*&|]{0,3}", 0..6usize), 1..6),
    ) {
        let mut text: Vec<char> = FIXTURES[which].1.chars().collect();
        for (place, insert, remove) in edits {
            let place = place as usize % (text.len() + 1);
            let end = (place + remove).min(text.len());
            text.splice(place..end, insert.chars());
        }
        total(&text.into_iter().collect::<String>());
    }

    /// Known keys with values of any shape.
    #[test]
    fn any_values_under_known_keys(
        lines in proptest::collection::vec((
            proptest::sample::select(vec!["agentId", "type", "model", "systemPrompt", "react", "mcp", "memory", "guard", "routes", "steps", "agents", "tasks", "branches", "default", "role", "goal", "backstory", "tools", "max_iter", "llm", "description", "expected_output", "context", "agent"]),
            proptest::sample::select(vec!["react", "simple", "chain", "router", "parallel", "5", "-1", "1e99", "[]", "{}", "[a, b]", "{a: b}", "{role: r, goal: g, backstory: '{x} {'}", "[{role: r, goal: g, tools: [t]}]", "~", "true", "{maxSteps: 0}", "[{description: d, expected_output: e, context: [x]}]", "{localTools: 3}", "${X}", "{a: {type: simple}}"]),
        ), 0..8)
    ) {
        let text: String = lines.iter().map(|(k, v)| format!("{k}: {v}\n")).collect();
        total(&text);
    }

    #[test]
    fn placeholders_split_and_join(text in "[{}a-c_ 1-]{0,20}") {
        let joined: String = emit::parts(&text).iter().map(|p| match p {
            emit::Part::Text(t) => t.to_string(),
            emit::Part::Hole(n) => format!("{{{n}}}"),
        }).collect();
        prop_assert_eq!(joined, text);
    }
}

/// Programs in which one expression makes an agent for each of many tools, by framework.
fn made_for_each(tools: usize) -> Vec<(&'static str, String)> {
    let functions: String = (0..tools).map(|n| format!("def t{n}(x: str) -> str:\n    return x\n")).collect();
    let makes: String = (0..tools).map(|n| format!("a{n} = make(t{n})\n")).collect();
    let program = |import: &str, agent: &str| {
        format!("{import}\n{functions}def make(tool):\n    return {agent}\n{makes}")
    };
    let crew = "Agent(role='r', goal='g', backstory='b', llm='gpt-4o', tools=[tool])";
    vec![
        (
            "langgraph",
            program(
                "from langchain.agents import create_agent",
                "create_agent('openai:gpt-4o', tools=[tool])",
            ),
        ),
        ("pydantic_ai", program("from pydantic_ai import Agent", "Agent('openai:gpt-4o', tools=[tool])")),
        ("crewai", program("from crewai import Agent", crew)),
        (
            "adk",
            program(
                "from google.adk.agents import Agent",
                "Agent(name='n', model='gemini-2.0-flash', tools=[tool])",
            ),
        ),
    ]
}

/// Agents beyond those that are told apart are not dropped without a word: what they do isn't known.
#[test]
fn agents_of_one_expression_beyond_a_number_are_an_unknown_unit() {
    for (framework, text) in made_for_each(10) {
        let (compiled, _) = compiled(&[("main.py", &text)]);
        let rest: Vec<_> = compiled.units.iter().filter(|u| u.name == "other agents").collect();
        assert_eq!(rest.len(), 1, "{framework}: {:?}", compiled.diagnostics);
        assert!(rest[0].code.reaches(|t| matches!(t, Term::Unknown(_))), "{framework}");
        let why = compiled.diagnostics.iter().find(|d| d.message.contains("more than 8 agents"));
        assert_eq!(why.map(|d| d.level), Some(Level::Unknown), "{framework}: {:?}", compiled.diagnostics);
        assert_eq!(compiled.units.len(), 9, "{framework}");
    }
    for (framework, text) in made_for_each(8) {
        let (compiled, _) = compiled(&[("main.py", &text)]);
        assert!(compiled.units.iter().all(|u| u.name != "other agents"), "{framework}");
    }
}
