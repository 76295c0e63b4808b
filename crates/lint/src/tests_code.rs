//! Findings in modules of Python and in the calculus, and the repairs of both.

use super::*;
use diagnostics::{FileId, fix};
use frontend_kit::{Project, UnitKind};
use std::sync::Arc;

fn everything() -> Config {
    Config { level: Level::Info, ..Config::default() }
}

/// The findings of the first of some files of a project.
pub(super) fn among(files: &[(&str, &str)]) -> Vec<Diagnostic> {
    let others = |_| Project {
        files: files[1..]
            .iter()
            .zip(1..)
            .map(|((path, text), n)| {
                File::read(FileId(n), path, &Arc::from(*text), &frontend_kit::doc::Limits::default())
            })
            .collect(),
        ..Project::default()
    };
    let (path, text) = files[0];
    match lint_among(frontends::recognise, path, FileId(0), text.as_bytes(), others, &everything()).outcome {
        Outcome::Checked { findings, .. } => findings,
        // A module that makes no agent and uses its framework as it should.
        Outcome::Skipped(Skip::NoAgent) if text.contains("import") => Vec::new(),
        other => panic!("not compiled: {other:?}\n{text}"),
    }
}

/// `code level text-at-the-place` of the findings of a rule.
pub(super) fn of(code: &str, text: &str, found: &[Diagnostic]) -> Vec<String> {
    let at = |d: &Diagnostic| d.span.map_or("", |s| &text[s.start as usize..s.end as usize]).to_string();
    found
        .iter()
        .filter(|d| d.code.starts_with(code))
        .map(|d| format!("{} {}", d.level.as_str(), at(d)))
        .collect()
}

/// A text after the safe repairs of its findings.
fn repaired(path: &str, text: &str) -> String {
    fix::apply(text, FileId(0), &among(&[(path, text)]), Applicability::Safe).0
}

#[test]
fn instructions_that_are_written_and_empty_are_where_they_are_written() {
    let text = "from agents import Agent, Runner, function_tool\n\n@function_tool\ndef look(at: str) -> str:\n    return at\n\n\
                a = Agent(name='a', tools=[look], model='m', instructions='')\nRunner.run_sync(a, 'x', max_turns=3)\n";
    assert_eq!(of("L001", text, &among(&[("main.py", text)])), ["error ''"]);
}

#[test]
fn a_module_whose_imports_are_more_than_is_followed_says_so() {
    let heavy =
        format!("x = 0\n{}", "for a in range(999):\n  for b in range(999):\n    x = x + 1\n".repeat(2));
    let text =
        "from heavy import x\nfrom agents import Agent\na = Agent(name='a', model='m', instructions='i')\n";
    let found = among(&[("main.py", text), ("heavy.py", &heavy)]);
    assert_eq!(of("F005", text, &found).len(), 1, "{found:?}");
}

#[test]
fn the_default_of_a_parameter_is_no_empty_text_that_is_given() {
    let text = "from agents import Agent, Runner\n\ndef make(told: str = ''):\n    return Agent(name='a', model='m', instructions=told)\n";
    let levels: Vec<Level> =
        among(&[("main.py", text)]).iter().filter(|d| d.code == "L001").map(|d| d.level).collect();
    assert!(levels.iter().all(|l| *l <= Level::Unknown), "{levels:?}");
}

fn team(members: &str, rest: &str) -> String {
    format!(
        "from autogen_agentchat.agents import AssistantAgent, UserProxyAgent\n\
         from autogen_agentchat.teams import RoundRobinGroupChat\n\
         from autogen_ext.models.openai import OpenAIChatCompletionClient\n\
         m = OpenAIChatCompletionClient(model='small')\n\
         a = AssistantAgent('a', model_client=m, system_message='Write.')\n\
         b = AssistantAgent('b', model_client=m, system_message='Read.')\n\
         u = UserProxyAgent('u')\n\
         team = RoundRobinGroupChat([{members}]{rest})\n"
    )
}

#[test]
fn a_talk_of_so_many_turns_is_meant_to_have_them() {
    let level = |text: &str| {
        let found = among(&[("main.py", text)]);
        found.iter().filter(|d| d.code == "L004b").map(|d| d.level).collect::<Vec<_>>()
    };
    assert_eq!(level(&team("a, b", ", max_turns=4")), [Level::Info]);
    assert_eq!(level(&team("a", ", max_turns=1")), [Level::Info]);
}

#[test]
fn l021_downgraded_with_human_in_loop() {
    let levels = |text: &str| {
        let found = among(&[("main.py", text)]);
        let of = found.iter().filter(|d| matches!(d.code, "L004a" | "L021"));
        of.map(|d| (d.level, d.remarks.len())).collect::<Vec<_>>()
    };
    assert_eq!(levels(&team("a, b", "")), [(Level::Error, 0)]);
    assert_eq!(levels(&team("a, b, u", "")), [(Level::Warn, 1)]);
    assert_eq!(levels(&team("a, u", "")), [(Level::Warn, 1)]);
}

const CREW: &str = "from crewai import Agent, Crew, Task\n\
    w = Agent(role='Writer', goal='Write about {topic}.', backstory='b', llm='m')\n\
    t = Task(description='Write about {topic} for {readers}.', expected_output='A text', agent=w)\n\
    crew = Crew(agents=[w], tasks=[t])\n";

#[test]
fn a_placeholder_that_the_start_of_a_crew_leaves_out_is_missing() {
    let lacks = |start: &str| {
        let text = format!("import crewai\nfrom crew import crew\n{start}\n");
        of("L024", &text, &among(&[("main.py", &text), ("crew.py", CREW)]))
    };
    assert_eq!(lacks("crew.kickoff(inputs={'topic': 'tea'})"), ["warn inputs={'topic': 'tea'}"]);
    assert!(lacks("crew.kickoff(inputs={'topic': 'tea', 'readers': 'all'})").is_empty());
    // Nothing is put in then, and what is not known may be there.
    assert!(lacks("crew.kickoff()").is_empty());
    assert!(lacks("more = {'topic': 'tea'}\nmore.update(load())\ncrew.kickoff(inputs=more)").is_empty());
    // What only starts a crew need not import CrewAI.
    let made = "from crewai import Crew\nfrom crew import crew\nclass Made:\n    def crew(self):\n        return crew\n";
    let text = "from made import Made\nMade().crew().kickoff(inputs={'topic': 'tea'})\n";
    let found = among(&[("main.py", text), ("made.py", made), ("crew.py", CREW)]);
    assert_eq!(of("L024", text, &found), ["warn inputs={'topic': 'tea'}"]);
    let here = format!("{CREW}crew.kickoff({{'readers': 'all'}})\n");
    let found = among(&[("main.py", &here)]);
    assert!(found.iter().any(|d| d.code == "L024" && d.message.contains("`topic`")), "{found:#?}");
}

#[test]
fn l017_fix_states_default() {
    let crew = |agent: &str| {
        format!(
            "from crewai import Agent, Crew, Task\nw = {agent}\nt = Task(description='d', expected_output='e', agent=w)\nCrew(agents=[w], tasks=[t]).kickoff()\n"
        )
    };
    let agent = "Agent(role='r', goal='g', backstory='b', llm='m', tools=[t])";
    assert_eq!(repaired("crew.py", &crew(agent)), crew(&agent.replace(")", ", max_iter=25)")));
    let lines = "Agent(\n    role='r', goal='g', backstory='b',\n    llm='m',  # small\n    tools=[t],\n)";
    let stated = lines.replace("[t],\n", "[t],\n    max_iter=25,\n");
    assert_eq!(repaired("crew.py", &crew(lines)), crew(&stated));
    // What stands in a comment would be no argument.
    let comment = "Agent(role='r', goal='g', backstory='b', llm='m', tools=[t]  # all\n)";
    assert_eq!(repaired("crew.py", &crew(comment)), crew(comment));

    let yaml = "writer:\n  role: r\n  goal: g\n  backstory: b # kept\n  llm: m\n  tools: [search]\n";
    assert_eq!(repaired("agents.yaml", yaml), yaml.replace("  tools", "  max_iter: 25\n  tools"));
    let yaml =
        "agentId: coder\ntype: react\nmodel: m\nsystemPrompt: p\nmcp: {localTools: [run, terminate]}\n";
    let after = repaired("a.yaml", yaml);
    assert_eq!(after, yaml.replace("type: react\n", "type: react\nreact: {maxSteps: 20}\n"));
    assert!(of("L017", &after, &among(&[("a.yaml", &after)])).is_empty());
    // A comment on the line stays there; an agent in a list keeps its indentation.
    let noted = yaml.replace("type: react", "type: react # a loop");
    assert_eq!(repaired("a.yaml", &noted), noted.replace("loop\n", "loop\nreact: {maxSteps: 20}\n"));
    let json = "{\"agentId\": \"coder\", \"type\": \"react\", \"model\": \"m\", \"systemPrompt\": \"p\", \"react\": {\"think\": true}, \"mcp\": {\"localTools\": [\"run\", \"terminate\"]}}\n";
    let after = repaired("a.json", json);
    assert!(after.contains("\"react\": {\"maxSteps\": "), "{after}");
}

#[test]
fn what_names_modules_is_linted_among_them() {
    let manifest = "{\"dependencies\": [\".\"], \"graphs\": {\"agent\": \"./agent.py:graph\"}}";
    let module = "from langgraph.graph import StateGraph, START, END\nfrom typing import TypedDict\nclass S(TypedDict):\n    x: str\n\
                  def go(s):\n    return {'x': s['x']}\n\
                  g = StateGraph(S)\ng.add_node('go', go)\ng.add_edge(START, 'go')\ng.add_edge('go', END)\ngraph = g.compile()\n";
    let with = among(&[("langgraph.json", manifest), ("agent.py", module)]);
    assert!(with.is_empty(), "{with:#?}");
    assert!(!among(&[("langgraph.json", manifest)]).is_empty());
}

#[test]
fn rules_about_terms_hold_for_programs() {
    let codes = |text: &str| {
        let parsed = agentlang::calculus::compile(FileId(0), text);
        let code = parsed.code.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let unit = Unit {
            name: "main".into(),
            kind: UnitKind::Agent,
            code: Arc::new(code),
            span: Span { file: FileId(0), start: 0, end: text.len() as u32 },
            agents: Vec::new(),
            outline: frontend_kit::Outline::default(),
        };
        let found = lint_programs(crate::Language::Lam, vec![unit], &Config::default());
        found.iter().map(|d| d.code).collect::<Vec<_>>()
    };
    assert_eq!(codes("(fix[0] \\self. \\x. self x) 'a'"), ["L003"]);
    assert_eq!(codes("(fix[3] \\self. \\x. self x) 'a'"), ["L004b"]);
    assert!(codes("'a'").is_empty());
}

#[test]
fn what_is_written_in_modules_is_looked_at() {
    let text = "from crewai import Agent\nKEY = 'sk-proj-a8Zk29fLq0XbVn37RtYcWm51HdPe64GjUo'\n\
                a = Agent(role='r', goal='g', backstory='b', llm='m', code_execution_mode='unsafe')\n\
                options = {'use_docker': False, 'base_url': 'http://models.example.org/v1'}\n\
                tool = langchain_experimental.tools.PythonREPLTool()\n\
                local = {'base_url': 'http://localhost:11434', 'use_docker': True}\n";
    let found = among(&[("main.py", text)]);
    assert_eq!(of("S001", text, &found), ["error 'sk-proj-a8Zk29fLq0XbVn37RtYcWm51HdPe64GjUo'"]);
    assert_eq!(of("S002", text, &found), ["warn 'http://models.example.org/v1'"]);
    assert_eq!(
        of("S003", text, &found),
        ["warn 'unsafe'", "warn False", "warn langchain_experimental.tools.PythonREPLTool"]
    );
}

#[test]
fn l017_findings_of_a_file_are_folded() {
    let agent =
        |name: &str| format!("{name}:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n");
    let text = format!("{}{}{}", agent("a"), agent("b"), agent("c"));
    let mut found = among(&[("agents.yaml", &text)]);
    assert_eq!(of("L017", &text, &found).len(), 3);
    fold(&mut found);
    assert_eq!(of("L017", &text, &found).len(), 1);
    let first = found.iter().find(|d| d.code == "L017").and_then(|d| d.help.last().cloned());
    assert_eq!(first.as_deref(), Some("the same holds for 2 more in this file: `b`, `c`"));
}

#[test]
fn a_loop_whose_tools_a_configuration_names_is_said_of_there() {
    let yaml = "writer:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n";
    let tasks = "write:\n  description: d\n  expected_output: e\n  agent: writer\n";
    let code = "from crewai import Agent, Crew, Task\nfrom crewai.project import CrewBase, agent, crew, task\n@CrewBase\nclass C:\n\
                \x20   @agent\n    def writer(self):\n        return Agent(config=self.agents_config['writer'])\n\
                \x20   @task\n    def write(self):\n        return Task(config=self.tasks_config['write'])\n\
                \x20   @crew\n    def crew(self):\n        return Crew(agents=self.agents, tasks=self.tasks)\n";
    let others = [("config/agents.yaml", yaml), ("config/tasks.yaml", tasks)];
    let files = [("crew.py", code), others[0], others[1]];
    assert!(of("L017", code, &among(&files)).is_empty());
    assert_eq!(of("L017", yaml, &among(&[others[0]])), ["warn tools"]);
    let bare = yaml.replace("  tools: [search]\n", "");
    let code = code.replace("['writer'])", "['writer'], tools=[search])");
    let files = [("crew.py", &*code), ("config/agents.yaml", &bare), others[1]];
    assert_eq!(
        of("L017", &code, &among(&files)),
        ["warn Agent(config=self.agents_config['writer'], tools=[search])"]
    );
}

/// A graph of one node that goes round as a function says.
fn graph(decide: &str, node: &str) -> Vec<String> {
    let text = format!(
        "from langgraph.graph import StateGraph, MessagesState, START, END\nfrom langgraph.types import interrupt\n\
         from langchain_openai import ChatOpenAI\nimport outside\nmodel = ChatOpenAI(model='small')\n\
         class State(MessagesState):\n    n: int\n    done: bool\n\
         def ask(state):\n    {node}\n\
         def decide(state):\n    {decide}\n\
         g = StateGraph(State)\ng.add_node('ask', ask)\ng.add_edge(START, 'ask')\ng.add_conditional_edges('ask', decide)\ngraph = g.compile()\n"
    );
    of("L017", &text, &among(&[("main.py", &text)]))
        .iter()
        .map(|f| f[..f.find(' ').unwrap_or(0)].to_string())
        .collect()
}

#[test]
fn what_decides_in_a_graph_decides_how_hard_its_default_is_taken() {
    let asks = "return {'messages': [model.invoke(state['messages'])]}";
    let calls = "return 'ask' if state['messages'][-1].tool_calls else END";
    assert_eq!(graph(calls, asks), ["warn"]);
    assert_eq!(graph("return END if len(state['messages']) > 9 else 'ask'", asks), ["info"]);
    let counted = "return {'messages': [model.invoke(state['messages'])], 'n': state['n'] + 1}";
    assert_eq!(graph("return END if state['n'] >= 3 else 'ask'", counted), ["info"]);
    assert_eq!(graph("return END if outside.enough(state) else 'ask'", asks), ["unknown"]);
    let person = "return {'messages': [model.invoke(state['messages'] + [interrupt('well?')])]}";
    assert_eq!(graph(calls, person), ["unknown"]);
    assert!(graph("return END", asks).is_empty());
}

#[test]
fn a_method_that_code_calls_by_itself_is_reached() {
    let lost = |end: &str| {
        let text = format!(
            "from crewai.flow.flow import Flow, listen, start\nclass F(Flow):\n    @start()\n    def begin(self):\n        return 'x'\n\
             \x20   @listen(lambda s: s.x)\n    def store(self, s):\n        return s\n{end}\n"
        );
        of("L008", &text, &among(&[("main.py", &text)]))
    };
    assert_eq!(lost("F().kickoff()"), ["warn store"]);
    assert!(lost("f = F()\nf.store(f.begin())").is_empty());
}

#[test]
fn a_flag_that_a_count_sets_is_a_count() {
    let node = "if state['n'] < 3:\n        return {'messages': [model.invoke(state['messages'])], 'n': state['n'] + 1}\n    return {'done': True}";
    assert_eq!(graph("return END if state['done'] else 'ask'", node), ["info"]);
}

#[test]
fn a_limit_of_time_is_a_limit() {
    let text = |more: &str| {
        format!(
            "from crewai import Agent, Crew, Task\na = Agent(role='r', goal='g', backstory='b', llm='m', tools=[t]{more})\nk = Task(description='d', expected_output='e', agent=a)\nCrew(agents=[a], tasks=[k]).kickoff()\n"
        )
    };
    let level = |text: &str| among(&[("crew.py", text)]).iter().find(|d| d.code == "L017").map(|d| d.level);
    assert_eq!(level(&text("")), Some(Level::Warn));
    assert_eq!(level(&text(", max_execution_time=300")), Some(Level::Info));
}

#[test]
fn keywords_of_a_call_are_values_of_a_prompt() {
    let text = "from langchain.prompts import PromptTemplate\nfrom langchain.chains import LLMChain\nfrom langchain_openai import ChatOpenAI\n\
                from langgraph.graph import StateGraph, END\nfrom typing import TypedDict\n\
                chain = LLMChain(llm=ChatOpenAI(model='m'), prompt=PromptTemplate.from_template('About {topic}: {news}'))\n\
                class S(TypedDict):\n    topic: str\n    out: str\n\
                def tell(state):\n    return {'out': chain.run(topic=state['topic'], news='none')}\n\
                g = StateGraph(S)\ng.add_node('tell', tell)\ng.set_entry_point('tell')\ng.add_edge('tell', END)\napp = g.compile()\n";
    assert!(of("L024", text, &among(&[("main.py", text)])).is_empty());
    let less = text.replace(", news='none'", "");
    assert_eq!(of("L024", &less, &among(&[("main.py", &less)])).len(), 1);
}

#[test]
fn what_a_test_does_wrong_it_does_on_purpose() {
    let text = "from crewai import Agent\na = Agent(role='r', goal='g', backstory='b', llm='m', code_execution_mode='unsafe')\n";
    assert_eq!(of("S003", text, &among(&[("app/main.py", text)])), ["warn 'unsafe'"]);
    for path in ["tests/main.py", "app/test_main.py", "conftest.py"] {
        assert_eq!(of("S003", text, &among(&[(path, text)])), ["info 'unsafe'"], "{path}");
    }
    assert_eq!(of("S003", text, &among(&[("contest/latest_test_case.py", text)])), ["warn 'unsafe'"]);
}

#[test]
fn l001_accepts_instructions_of_earlier_node() {
    let codes = |request: &str| {
        let text = format!("\\x. let p = {request} in (llm \"\" {{model: \"m\"}}) p");
        let parsed = agentlang::calculus::compile(FileId(0), &text);
        let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
        let unit = Unit {
            name: "main".into(),
            kind: UnitKind::Agent,
            code: Arc::new(code),
            span: Span { file: FileId(0), start: 0, end: text.len() as u32 },
            agents: Vec::new(),
            outline: frontend_kit::Outline::default(),
        };
        lint_programs(crate::Language::Lam, vec![unit], &Config::default())
            .iter()
            .map(|d| d.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(codes("x"), ["L001"]);
    assert!(codes("\"Answer the question {x}.\"").is_empty());
}

#[test]
fn what_gives_each_item_as_it_is_is_no_empty_composition() {
    let text = "from langgraph.graph import StateGraph, END\nfrom typing import TypedDict\n\
                class S(TypedDict):\n    found: list\n    kept: list\n\
                def keep(state):\n    return {'kept': [item.model_dump() for item in state['found']]}\n\
                g = StateGraph(S)\ng.add_node('keep', keep)\ng.set_entry_point('keep')\ng.add_edge('keep', END)\napp = g.compile()\n";
    assert!(of("L006", text, &among(&[("main.py", text)])).is_empty());
}

#[test]
fn l017_help_follows_autogen_version() {
    let talk = "a = ConversableAgent('a', llm_config={'model': 'm'}, human_input_mode='NEVER')\n\
                b = ConversableAgent('b', llm_config={'model': 'm'}, human_input_mode='NEVER')\n\
                a.initiate_chat(b, message='hello')\n";
    let text = format!("from autogen import ConversableAgent\n{talk}");
    let found = |text: &str| {
        let of_loops = among(&[("main.py", text)]).into_iter().filter(|d| d.code == "L017");
        of_loops.map(|d| (d.level, d.help.join(" "))).collect::<Vec<_>>()
    };
    let [(Level::Warn, help)] = &found(&text)[..] else { panic!("{:?}", found(&text)) };
    assert!(help.contains("`max_turns=` of `initiate_chat`"), "{help}");
    assert!(!help.contains("MaxMessageTermination"), "{help}");
    // Who is asked in each round may end it, though a model would answer otherwise.
    let asked = text.replacen("'NEVER'", "'ALWAYS'", 1);
    assert!(found(&asked).iter().all(|(level, _)| *level == Level::Info), "{:?}", found(&asked));
}

#[test]
fn a_bound_by_another_name_is_not_known() {
    let text = |key: &str| {
        format!("writer:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n  {key}: 3\n")
    };
    let level = |key: &str| {
        let text = text(key);
        among(&[("agents.yaml", &text)]).iter().find(|d| d.code == "L017").map(|d| d.level)
    };
    assert_eq!(level("max_rpm"), Some(Level::Warn));
    assert_eq!(level("max_iterations"), Some(Level::Unknown));
    assert_eq!(level("max_iter"), None);
}

#[test]
fn what_an_assigner_names_may_be_written() {
    let text = |selector: &str, keys: &str| {
        format!(
            "app:\n  mode: advanced-chat\n  name: a\nkind: app\nversion: 0.3.0\nworkflow:\n  conversation_variables:\n\
             \x20 - {{id: c1, name: held, value: '', value_type: string}}\n\
             \x20 - {{id: c2, name: other, value: '', value_type: string}}\n  graph:\n    edges:\n\
             \x20   - {{id: e1, source: s, sourceHandle: source, target: w, targetHandle: target}}\n\
             \x20   - {{id: e2, source: w, sourceHandle: source, target: m, targetHandle: target}}\n\
             \x20   - {{id: e3, source: m, sourceHandle: source, target: r, targetHandle: target}}\n    nodes:\n\
             \x20   - {{id: s, data: {{type: start, title: s, variables: []}}}}\n\
             \x20   - {{id: w, data: {{type: assigner, title: w, {keys}: [{{operation: set, value: x, variable_selector: [conversation, {selector}]}}]}}}}\n\
             \x20   - {{id: m, data: {{type: llm, title: m, model: {{name: n, provider: p, mode: chat}}, prompt_template: [{{role: user, text: 'say {{{{#conversation.held#}}}}'}}]}}}}\n\
             \x20   - {{id: r, data: {{type: answer, title: r, answer: '{{{{#m.text#}}}}'}}}}\n"
        )
    };
    let never = |text: &str| of("L011", text, &among(&[("a.yml", text)])).len();
    assert_eq!(never(&text("held", "items")), 0);
    // A key that Dify does not read: what it would assign is not known, rather than nothing.
    assert_eq!(never(&text("held", "actions")), 0);
    assert_eq!(never(&text("other", "actions")), 1);
    // What is declared nowhere cannot be kept.
    assert_eq!(never(&text("nowhere", "actions")), 1);
}

#[test]
fn every_way_to_start_a_crew_needs_its_inputs() {
    let lacks = |start: &str| {
        let text = format!("import crewai\nfrom crew import crew\ncrew.kickoff()\n{start}\n");
        of("L024", &text, &among(&[("main.py", &text), ("crew.py", CREW)]))
    };
    // `train` and `test` start the crew as `kickoff` does, each time.
    assert_eq!(
        lacks("crew.train(n_iterations=2, filename='f', inputs={'topic': 'tea'})"),
        ["warn inputs={'topic': 'tea'}"]
    );
    assert_eq!(lacks("crew.test(2, 'm', {'topic': 'tea'})"), ["warn {'topic': 'tea'}"]);
    assert!(lacks("crew.test(2, 'm', {'topic': 'tea', 'readers': 'all'})").is_empty());
    assert!(lacks("crew.replay(task_id='t')").is_empty());
    let each = "crew.kickoff_for_each(inputs=[{'topic': 'a', 'readers': 'b'}, {'topic': 'c'}])";
    assert_eq!(lacks(each).len(), 1);
}

#[test]
fn l017_help_of_hierarchical_crew() {
    let crew = |more: &str| {
        format!(
            "from crewai import Agent, Crew, Process, Task\nw = Agent(role='r', goal='g', backstory='b', llm='m')\nt = Task(description='d', expected_output='e')\nCrew(agents=[w], tasks=[t], process=Process.hierarchical, {more}).kickoff()\n"
        )
    };
    let said = |text: &str| {
        let found = among(&[("crew.py", text)]);
        found.into_iter().filter(|d| d.code == "L017").map(|d| (d.help.join("; "), d.fix)).collect::<Vec<_>>()
    };
    let own = said(&crew("manager_llm='m'"));
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0].0, "make the manager yourself: `manager_agent=Agent(…, max_iter=n)`");
    assert!(own[0].1.is_none(), "`max_iter` of a crew is nothing: {own:?}");
    let made = said(&crew("manager_agent=Agent(role='m', goal='g', backstory='b', llm='m')"));
    assert!(made.iter().all(|(help, _)| help == "state it: `max_iter`") && !made.is_empty(), "{made:?}");
}

#[test]
fn l017_help_of_group_chat_names_max_turns() {
    let text = "from autogen_agentchat.agents import AssistantAgent\nfrom autogen_agentchat.conditions import TextMentionTermination\nfrom autogen_agentchat.teams import RoundRobinGroupChat\nfrom autogen_ext.models.openai import OpenAIChatCompletionClient\nm = OpenAIChatCompletionClient(model='m')\na = AssistantAgent('a', model_client=m, system_message='Write.')\nb = AssistantAgent('b', model_client=m, system_message='Say DONE when it is good.')\nteam = RoundRobinGroupChat([a, b], termination_condition=TextMentionTermination('DONE'))\n";
    let found = among(&[("team.py", text)]);
    let help: Vec<String> = found.iter().filter(|d| d.code == "L017").map(|d| d.help.join("; ")).collect();
    assert_eq!(help.len(), 1, "{found:#?}");
    assert!(help[0].starts_with("limit it: `max_turns` of the team"), "{help:?}");
}

#[test]
fn a_model_that_says_what_is_written_ends_its_loops_itself() {
    let agent = |model: &str| {
        format!(
            "from langchain.agents import create_agent\nfrom langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel\nfrom langchain_openai import ChatOpenAI\nclass Scripted(FakeMessagesListChatModel):\n    def bind_tools(self, tools, **more):\n        return self\ndef search(q: str) -> str:\n    \"\"\"Searches.\"\"\"\n    return q\nagent = create_agent(model={model}, tools=[search], system_prompt='p')\n"
        )
    };
    assert_eq!(
        of("L017", &agent("ChatOpenAI(model='m')"), &among(&[("a.py", &agent("ChatOpenAI(model='m')"))]))
            .len(),
        1
    );
    for model in ["FakeMessagesListChatModel(responses=[])", "Scripted(responses=[])"] {
        let found = among(&[("a.py", &agent(model))]);
        let l017: Vec<_> = found.iter().filter(|d| d.code == "L017").map(|d| d.level).collect();
        assert_eq!(l017, [Level::Info], "{model}: {found:#?}");
    }
}

/// A graph in which a person may have the first node done again, compiled and run as said.
fn asked_for_again(compiled: &str, more: &str) -> String {
    format!(
        "from langgraph.graph import StateGraph, START, END\nfrom langgraph.types import Send\nfrom langchain_openai import ChatOpenAI\n\
         from typing import TypedDict\nmodel = ChatOpenAI(model='small')\n\
         class S(TypedDict):\n    topic: str\n    plan: str\n    wish: str\n\
         def draw_up(state):\n    return {{'plan': model.invoke(state['topic'] + state.get('wish', '')).content}}\n\
         def ask(state):\n    pass\n\
         def decide(state):\n    return 'draw_up' if state.get('wish') else END\n\
         g = StateGraph(S)\ng.add_node('draw_up', draw_up)\ng.add_node('ask', ask)\ng.add_edge(START, 'draw_up')\n\
         g.add_edge('draw_up', 'ask')\ng.add_conditional_edges('ask', decide, ['draw_up', END])\n\
         app = g.compile({compiled})\napp.invoke({{'topic': 'tea'}})\n{more}"
    )
}

#[test]
fn a_run_that_stops_in_each_round_is_gone_on_with() {
    let level = |compiled: &str| {
        let text = asked_for_again(compiled, "");
        among(&[("main.py", &text)]).iter().find(|d| d.code == "L017").map(|d| d.level)
    };
    assert_eq!(level(""), Some(Level::Warn));
    assert_eq!(level("interrupt_before=['ask']"), Some(Level::Info));
    assert_eq!(level("interrupt_after=['elsewhere']"), Some(Level::Warn));
}

#[test]
fn keys_may_be_written_by_whoever_changes_a_state_that_waits() {
    let never = |more: &str| {
        let text = asked_for_again("interrupt_before=['ask']", more);
        of("L011", &text, &among(&[("main.py", &text)])).len()
    };
    assert_eq!(never(""), 1);
    assert_eq!(never("app.update_state({}, {'wish': 'shorter'}, as_node='ask')\n"), 0);
}

#[test]
fn keys_may_come_with_what_is_sent() {
    let text = |way: &str| {
        format!(
            "from langgraph.graph import StateGraph, START, END\nfrom langgraph.types import Send\nfrom typing import TypedDict\n\
             class S(TypedDict):\n    topics: list\n    topic: str\n    done: str\n\
             def begin(state):\n    return {{}}\n\
             def work(state):\n    return {{'done': state['topic']}}\n\
             def fan_out(state):\n    return {way}\n\
             g = StateGraph(S)\ng.add_node('begin', begin)\ng.add_node('work', work)\ng.add_edge(START, 'begin')\n\
             g.add_conditional_edges('begin', fan_out, ['work'])\ng.add_edge('work', END)\n\
             app = g.compile()\napp.invoke({{'topics': ['a']}})\n"
        )
    };
    let never = |way: &str| of("L011", &text(way), &among(&[("main.py", &text(way))])).len();
    assert_eq!(never("'work'"), 1);
    assert_eq!(never("[Send('work', item) for item in state['topics']]"), 0);
}

#[test]
fn a_configuration_in_a_test_is_a_test() {
    let text = "writer:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n";
    let level = |path: &str| among(&[(path, text)]).iter().find(|d| d.code == "L017").map(|d| d.level);
    assert_eq!(level("app/agents.yaml"), Some(Level::Warn));
    assert_eq!(level("tests/fixtures/agents.yaml"), Some(Level::Info));
}

#[test]
fn a_limit_that_another_module_gives_its_runs_may_be_that_of_what_it_imports() {
    let agent = "from langgraph.prebuilt import create_react_agent\nfrom langchain_openai import ChatOpenAI\n\
                 def look(q: str) -> str:\n    return q\n\
                 def build():\n    return create_react_agent(ChatOpenAI(model='m'), tools=[look])\nagent = build()\n";
    let level = |runs: &str| {
        let files = [("app/agents/looker.py", agent), ("app/main.py", runs)];
        among(&files).iter().find(|d| d.code == "L017").map(|d| d.level)
    };
    let run = "agent.invoke({'messages': []}, {'recursion_limit': 8})\n";
    for import in [
        "from app.agents.looker import agent\n",
        "from agents.looker import (\n    agent,\n)\n",
        "from app.agents import looker\n",
        "import app.agents.looker as looker\n",
        "import os, app.agents.looker as looker\n",
    ] {
        assert_eq!(level(&format!("{import}{run}")), Some(Level::Unknown), "{import}");
    }
    // Comments and texts neither import a module nor limit its runs.
    for runs in [
        format!("'''\nfrom app.agents.looker import agent\n'''\n{run}"),
        "from app.agents.looker import agent\n# recursion_limit = 8\n".to_string(),
        "from app.agents.looker import agent\nprint('recursion_limit: 8')\n".to_string(),
    ] {
        assert_eq!(level(&runs), Some(Level::Warn), "{runs}");
    }
    // Another module of that name; one that only reads a limit; one that is run without.
    assert_eq!(level(&format!("from tools.looker import agent\n{run}")), Some(Level::Warn));
    assert_eq!(
        level("from app.agents.looker import agent\nprint(recursion_limit == 8)\n"),
        Some(Level::Warn)
    );
    assert_eq!(
        level("from app.agents.looker import agent\nagent.invoke({'messages': []})\n"),
        Some(Level::Warn)
    );
}

/// A graph of `a`, `b` and `lost`, with a function that decides after `a`, and what else there is.
fn graph_of(decides: &str, map: &str, more: &str) -> String {
    format!(
        "from langgraph.graph import StateGraph, START, END\nfrom langgraph.types import Command, Send\nfrom typing import TypedDict, Literal\n\
         class S(TypedDict):\n    n: int\n    out: str\n\
         def a(state):\n    return {{'out': 'x'}}\ndef b(state):\n    return {{'out': 'y'}}\n\
         {decides}\n\
         g = StateGraph(S)\ng.add_node('a', a)\ng.add_node('b', b)\ng.add_node('lost', b)\n\
         g.add_edge(START, 'a')\ng.add_conditional_edges('a', after, {map})\ng.add_edge('b', END)\ng.add_edge('lost', END)\n{more}\napp = g.compile()\n"
    )
}

const AFTER: &str = "def after(state):\n    if state['n'] > 1:\n        return 'go'\n    return 'end'";

fn levels(code: &str, text: &str) -> Vec<Level> {
    among(&[("main.py", text)]).iter().filter(|d| d.code == code).map(|d| d.level).collect()
}

#[test]
fn a_node_that_nothing_can_lead_to_is_unreachable() {
    let map = "{'go': 'b', 'end': END}";
    assert_eq!(levels("L008", &graph_of(AFTER, map, "")), [Level::Warn]);
    // A `Command` whose way is not known may lead there, and one that is known does not.
    let command = |to: &str| format!("{AFTER}\ndef b(state):\n    return Command(goto={to})");
    assert_eq!(levels("L008", &graph_of(&command("'a'"), map, "")), [Level::Warn]);
    assert!(levels("L008", &graph_of(&command("state['out']"), map, "")).iter().all(|l| *l < Level::Warn));
    assert!(levels("L008", &graph_of(&command("'lost'"), map, "")).is_empty());
    // So may what is sent, what is added elsewhere, and who starts a run.
    let sends =
        "def after(state):\n    if state['n'] > 1:\n        return 'go'\n    return [Send('lost', state)]";
    assert!(levels("L008", &graph_of(sends, map, "")).is_empty());
    assert_eq!(levels("L008", &graph_of(AFTER, map, "g.add_edge('b', other())")), [Level::Unknown]);
    let starts = "g.compile().invoke(Command(goto='lost'))";
    assert_eq!(levels("L008", &graph_of(AFTER, map, starts)), [Level::Unknown]);
    // What a node that calls code elsewhere gives may be a `Command`.
    let elsewhere = format!("{AFTER}\nfrom somewhere import work\ndef b(state):\n    return work(state)");
    assert_eq!(levels("L008", &graph_of(&elsewhere, map, "")), [Level::Unknown]);
}

#[test]
fn a_branch_that_what_decides_never_gives_is_dead() {
    let found = |decides: &str, map: &str| levels("L007", &graph_of(decides, map, "g.add_edge('b', 'lost')"));
    assert!(found(AFTER, "{'go': 'b', 'end': END}").is_empty());
    assert_eq!(found(AFTER, "{'go': 'b', 'end': END, 'other': 'lost'}"), [Level::Warn]);
    // Another name of the same way.
    assert_eq!(found(AFTER, "{'go': 'b', 'end': END, 'stop': END}"), [Level::Info]);
    // What it gives is not known, and an annotation is no proof.
    let unknown = "def after(state) -> Literal['go', 'end']:\n    return state['out']";
    assert!(found(unknown, "{'go': 'b', 'end': END, 'other': 'lost'}").is_empty());
}

#[test]
fn a_graph_of_edges_without_an_end_goes_round_whatever_its_nodes_do() {
    let round = |node: &str, more: &str| {
        format!(
            "from langgraph.graph import StateGraph, START\nfrom typing import TypedDict\nclass S(TypedDict):\n    n: int\n\
             def a(state):\n    {node}\ndef b(state):\n    return {{'n': 1}}\n\
             g = StateGraph(S)\ng.add_node('a', a)\ng.add_node('b', b)\ng.add_edge(START, 'a')\ng.add_edge('a', 'b')\ng.add_edge('b', 'a')\n{more}\napp = g.compile()\n"
        )
    };
    assert_eq!(levels("L023", &round("return {'n': 2}", "")), [Level::Warn]);
    // Who is asked may stop it, and an edge that is not known may lead to the end.
    assert_eq!(levels("L023", &round("return {'n': input()}", "")), [Level::Unknown]);
    assert!(
        levels("L023", &round("return {'n': 2}", "g.add_edge('a', other())"))
            .iter()
            .all(|l| *l == Level::Unknown)
    );
}

#[test]
fn a_mapping_also_lists_what_is_sent_to() {
    let sends = "def after(state):\n    return [Send('b', {'n': i}) for i in range(state['n'])]";
    assert!(levels("L007", &graph_of(sends, "['b']", "g.add_edge('b', 'lost')")).is_empty());
    let either =
        "def after(state):\n    if state['n'] > 1:\n        return 'lost'\n    return [Send('b', state)]";
    assert!(levels("L007", &graph_of(either, "['b', 'lost']", "")).is_empty());
}

#[test]
fn node_arithmetic_type_checks() {
    let text = "from typing import TypedDict\nfrom langgraph.graph import StateGraph, START, END\n\
                class S(TypedDict, total=False):\n    n: int\n    bar: str\n    said: str\n\
                def show(state):\n    return {'n': int(state.get('n', 0)) + 1, 'bar': '#' * int(state['n'] * 4) + '-' * 2, 'said': '%d done' % state['n']}\n\
                def decide(state):\n    return 'show' if int(state.get('n', 0)) < 3 else END\n\
                g = StateGraph(S)\ng.add_node('show', show)\ng.add_edge(START, 'show')\ng.add_conditional_edges('show', decide)\napp = g.compile()\n";
    let mut project = Project::default();
    project.files.push(File::read(FileId(0), "main.py", &text.into(), &frontend_kit::doc::Limits::default()));
    let frontend_kit::Recognised::Frontend(found) = frontends::recognise(&project.files[0]) else { panic!() };
    let units = found.lower(&project, 0).units;
    assert_eq!(units.len(), 1);
    let report = analysis::types::check(&units[0].code, None);
    assert!(report.diagnostics.iter().all(|d| d.level != Level::Error), "{:?}", report.diagnostics);
}

/// A keystroke in a file of many agents reads it once more for their repairs, not once for each.
#[test]
fn repairs_of_a_file_are_tried_in_one_reading() {
    let readings = |path: &str, text: &str| {
        let before = repair::READINGS.get();
        let found = among(&[(path, text)]);
        let fixes = found.iter().filter(|d| d.code == "L017" && d.fix.is_some()).count();
        (fixes, repair::READINGS.get() - before)
    };
    let agents: String = (0..40)
        .map(|i| format!("a{i}:\n  role: r{i}\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n"))
        .collect();
    assert_eq!(readings("agents.yaml", &agents), (40, 1));
    let agents: String = (0..40)
        .map(|i| format!("a{i} = Agent(role='r{i}', goal='g', backstory='b', llm='m', tools=[t])\n"))
        .collect();
    assert_eq!(readings("crew.py", &format!("from crewai import Agent\n{agents}")), (40, 1));
    // Nothing to repair, nothing to read again.
    assert_eq!(readings("agents.yaml", "a:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n"), (0, 0));
}

#[test]
fn l017_reports_default_of_environment_variable() {
    let text = |max: &str| {
        format!(
            "import os\nfrom crewai import Agent, Crew, Task\na = Agent(role='r', goal='g', backstory='b', llm='m', tools=[t], max_iter={max})\nk = Task(description='d', expected_output='e', agent=a)\nCrew(agents=[a], tasks=[k]).kickoff()\n"
        )
    };
    let found = |max: &str| {
        let all = among(&[("crew.py", &text(max))]);
        let of = all.into_iter().find(|d| d.code == "L017");
        of.map(|d| (d.level, d.message, d.help.join(" "), d.fix.is_some()))
    };
    let (level, message, help, fix) = found("int(os.getenv('N', '7'))").expect("a finding");
    assert_eq!((level, fix), (Level::Info, false));
    assert!(message.ends_with("is the environment variable `N`, 7 by default"), "{message}");
    assert!(!help.contains("state it"), "{help}");
    assert_eq!(found("int(os.environ['N'])").map(|f| f.0), Some(Level::Unknown));
    assert_eq!(found("7"), None);
}

#[test]
fn an_agent_that_ends_with_its_first_call_has_no_loop() {
    let found = |more: &str| {
        let text = format!(
            "from agents import Agent, Runner, function_tool\n@function_tool\ndef look(at: str) -> str:\n    return at\n\
             @function_tool\ndef add(a: int, b: int) -> int:\n    return a + b\n\
             a = Agent(name='a', tools=[look, add], model='m', instructions='i'{more})\nRunner.run_sync(a, 'x')\n"
        );
        of("L017", &text, &among(&[("main.py", &text)])).len()
    };
    assert_eq!(found(""), 1);
    assert_eq!(found(", tool_use_behavior='stop_on_first_tool'"), 0);
    assert_eq!(found(", tool_use_behavior={'stop_at_tool_names': ['look', 'add']}"), 0);
    assert_eq!(found(", tool_use_behavior={'stop_at_tool_names': ['look']}"), 1);
}

#[test]
fn a_method_may_listen_to_a_label_of_its_own_name() {
    let lost = |label: &str, more: &str| {
        let text = format!(
            "from typing import Literal\nfrom crewai.flow.flow import Flow, listen, router, start\nclass F(Flow):\n    @start()\n    def begin(self):\n        return 'x'\n\
             \x20   @router(begin)\n    def choose(self){more}:\n        return self.state['way']\n\
             \x20   @listen('{label}')\n    def left(self):\n        return 1\n\
             \x20   @router('right')\n    def right(self) -> Literal['done']:\n        return 'done'\nF().kickoff()\n"
        );
        of("L008", &text, &among(&[("main.py", &text)]))
    };
    assert!(lost("left", "").is_empty());
    assert!(lost("left", " -> Literal['left', 'right']").is_empty());
    assert_eq!(lost("left", " -> Literal['right']"), ["warn left"]);
}

/// The branch that leads out of a cycle is there, but for an outcome that is not decided.
#[test]
fn l004_help_for_graph_cycle() {
    let help = |edges: &str| {
        let text = format!(
            "from langgraph.graph import StateGraph, MessagesState, START, END\nfrom langgraph.prebuilt import ToolNode, tools_condition\n\
             from langchain_openai import ChatOpenAI\ndef look(q: str) -> str:\n    return q\nllm = ChatOpenAI(model='m').bind_tools([look])\n\
             def ask(state: MessagesState):\n    return {{'messages': [llm.invoke(state['messages'])]}}\n\
             g = StateGraph(MessagesState)\ng.add_node('ask', ask)\ng.add_node('tools', ToolNode([look]))\ng.add_edge(START, 'ask')\n{edges}\n\
             g.add_edge('tools', 'ask')\napp = g.compile()\napp.invoke({{'messages': []}}, {{'recursion_limit': 9}})\n"
        );
        let found = among(&[("main.py", &text)]);
        let of = found.iter().find(|d| d.code.starts_with("L004") && d.level >= Level::Warn);
        of.map(|d| d.help.join(" ")).unwrap_or_default()
    };
    let wrong = help("g.add_conditional_edges('ask', tools_condition, {'tools': 'tools', 'end': END})");
    assert!(wrong.contains("`end` is never taken: label it `__end__`"), "{wrong}");
    let beside = help("g.add_conditional_edges('ask', tools_condition)\ng.add_edge('ask', 'tools')");
    assert!(beside.contains("a conditional edge out of the cycle"), "{beside}");
    assert_eq!(help("g.add_conditional_edges('ask', tools_condition)"), "");
}

#[test]
fn what_decides_may_be_what_a_node_changes_that_is_not_known() {
    let calls = "return END if state['done'] else 'ask'";
    let asks = "model.invoke(state['messages'])\n    return";
    assert_eq!(graph(calls, &format!("{asks} {{'n': 1}}")), ["warn"]);
    assert_eq!(graph(calls, &format!("{asks} outside.after(state)")), ["unknown"]);
}

/// A spread (`{**state, …}`) keeps the keys of its operand, and a key set under a condition in the operand
/// counts.
#[test]
fn a_count_that_is_handed_on_in_spread_records_counts() {
    let text = "from typing import TypedDict\nfrom langgraph.graph import StateGraph, START, END\nfrom langchain_openai import ChatOpenAI\n\
                llm = ChatOpenAI(model='m')\n\
                class S(TypedDict, total=False):\n    thought: str\n    count: int\n    most: int\n    done: bool\n    times: dict\n\
                def timed(state, key):\n    times = dict(state.get('times', {}))\n    times[key] = 1\n    return {**state, 'times': times}\n\
                def plan(state):\n    t = timed(state, 'a')\n    answer = llm.invoke('plan ' + state['thought']).content\n\
                \x20   new = {**t, 'thought': answer, 'count': state.get('count', 0) + 1}\n    return timed(new, 'p')\n\
                def act(state):\n    new = {**state, 'thought': 'x'}\n    if new.get('count', 0) >= new.get('most', 6):\n        new['done'] = True\n    return timed(new, 'e')\n\
                def go(state):\n    if state.get('done'):\n        return 'end'\n    return 'plan'\n\
                b = StateGraph(S)\nb.add_node('plan', plan)\nb.add_node('act', act)\nb.add_edge(START, 'plan')\nb.add_edge('plan', 'act')\n\
                b.add_conditional_edges('act', go, {'plan': 'plan', 'end': END})\ng = b.compile()\n";
    let found = among(&[("main.py", text)]);
    let of = found.iter().find(|d| d.code == "L017").expect("a finding");
    assert_eq!(of.level, Level::Info, "{of:?}");
}

/// `agents: List[BaseAgent]` of a crew is an annotation for what CrewAI fills in, also where nothing in the
/// module makes the crew.
#[test]
fn what_crewai_fills_in_is_known_where_the_class_only_annotates_it() {
    let text = "from crewai import Agent, Crew, Task\nfrom crewai_tools import SerperDevTool\nfrom crewai.project import CrewBase, agent, crew, task\n\
                @CrewBase\nclass Office:\n    agents: list[BaseAgent]\n    tasks: list[Task]\n\
                \x20   @agent\n    def clerk(self):\n        return Agent(role='r', goal='g', backstory='b', llm='m', tools=[SerperDevTool()])\n\
                \x20   @task\n    def work(self):\n        return Task(description='d {topic}', expected_output='e', agent=self.clerk())\n\
                \x20   @crew\n    def crew(self):\n        return Crew(agents=self.agents, tasks=self.tasks)\n";
    let found = among(&[("crew.py", text)]);
    assert!(of("F009", text, &found).is_empty(), "{found:?}");
    assert_eq!(of("L017", text, &found).len(), 1, "{found:?}");
}

#[test]
fn l017_excuses_one_of_two_agents_made_at_one_place() {
    let text = "from crewai import Agent, Crew, Task\nfrom crewai.tools import tool\n\n@tool\ndef look(at: str) -> str:\n    'Looks.'\n    return at\n\n\
                def make(role, **limits):\n    return Agent(role=role, goal='g', backstory='b', llm='m', tools=[look], **limits)\n\n\
                def task(agent):\n    return Task(description='d', expected_output='e', agent=agent)\n\n\
                a = make('a', max_execution_time=60)\nb = make('b')\n\
                crew = Crew(agents=[a, b], tasks=[task(a), task(b)])\ncrew.kickoff()\n";
    let found = among(&[("main.py", text)]);
    let levels: Vec<Level> = found.iter().filter(|d| d.code == "L017").map(|d| d.level).collect();
    assert_eq!(levels, [Level::Warn], "{found:#?}");
}

#[test]
fn l001_names_no_instructions_of_an_agent_within_another() {
    let text = "from agents import Agent, Runner, function_tool\n\n@function_tool\ndef look(at: str) -> str:\n    return at\n\n\
                a = Agent(name='a', tools=[look], model='m', handoffs=[Agent(name='b', tools=[look], model='m', instructions='')])\n\
                Runner.run_sync(a, 'x', max_turns=3)\n";
    let found = of("L001", text, &among(&[("main.py", text)]));
    assert!(found.iter().any(|f| f.starts_with("unknown Agent(name='a'")), "{found:?}");
}

#[test]
fn l001_is_certain_of_written_texts_and_not_of_defaults_of_parameters() {
    let module = |before: &str, given: &str| {
        let text = format!(
            "from agents import Agent, Runner, function_tool\n\n@function_tool\ndef look(at: str) -> str:\n    return at\n\n{before}\
             a = Agent(name='a', tools=[look], model='m', instructions={given})\nRunner.run_sync(a, 'x', max_turns=3)\n"
        );
        of("L001", &text, &among(&[("main.py", &text)]))
    };
    assert_eq!(module("", "''"), ["error ''"]);
    // An annotation is no default.
    assert_eq!(module("words: str = ''\n", "words"), ["error ''"]);
    let made = "from agents import Agent, Runner, function_tool\n\n@function_tool\ndef look(at: str) -> str:\n    return at\n\n\
                def make(words=''):\n    return Agent(name='a', tools=[look], model='m', instructions=words)\n\n\
                Runner.run_sync(make(), 'x', max_turns=3)\n";
    assert_eq!(of("L001", made, &among(&[("main.py", made)])), ["unknown ''"]);
}

#[test]
fn l017_is_not_excused_by_a_stop_of_the_graph_around_the_agent() {
    let text = r#"from typing import TypedDict
from langgraph.graph import StateGraph, START, END
from langgraph.prebuilt import create_react_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

@tool
def look(at: str) -> str:
    "Looks."
    return at

helper = create_react_agent(ChatOpenAI(model='m'), [look], prompt='You look things up.')

class S(TypedDict):
    messages: list

def ask(state):
    return helper.invoke({'messages': state['messages']})

g = StateGraph(S)
g.add_node('ask', ask)
g.add_edge(START, 'ask')
g.add_edge('ask', END)
app = g.compile(interrupt_before=['ask'])
"#;
    let found = among(&[("main.py", text)]);
    let levels: Vec<Level> = found.iter().filter(|d| d.code == "L017").map(|d| d.level).collect();
    assert_eq!(levels, [Level::Warn], "{found:#?}");
}

#[test]
fn l023_looks_at_calls_that_end_a_run_and_not_at_comments() {
    let text = r#"from typing import TypedDict
from langgraph.graph import StateGraph, START
from langchain_openai import ChatOpenAI

# Nothing may interrupt this.
class S(TypedDict):
    text: str

def a(state):
    return {'text': ChatOpenAI(model='m').invoke('Say ' + state['text']).content}

def b(state):
    return {'text': state['text'] + '!'}

g = StateGraph(S)
g.add_node('a', a)
g.add_node('b', b)
g.add_edge(START, 'a')
g.add_edge('a', 'b')
g.add_edge('b', 'a')
app = g.compile()
"#;
    let level = |text: &str| among(&[("main.py", text)]).iter().find(|d| d.code == "L023").map(|d| d.level);
    assert_eq!(level(text), Some(Level::Warn));
    let asked = text.replace("return {'text': state['text'] + '!'}", "return {'text': input()}");
    assert_eq!(level(&asked), Some(Level::Unknown));
    let stopped = text.replace("g.compile()", "g.compile(interrupt_after=['b'])");
    assert_eq!(level(&stopped), Some(Level::Unknown));
}
