//! False alarms and misses found in samples of findings on public repositories: `notebook/precision.md`.

use super::tests_code::{among, of};
use super::*;
use diagnostics::FileId;

/// The levels of a rule in one file.
fn levels(code: &str, path: &str, text: &str) -> Vec<Level> {
    among(&[(path, text)]).iter().filter(|d| d.code == code).map(|d| d.level).collect()
}

/// The target of a handoff without tools answers: no agent has a second turn.
#[test]
fn handovers_that_do_not_lead_back_are_no_loop() {
    let text = |more: &str, tail: &str| {
        format!(
            "from agents import Agent, Runner, function_tool\n@function_tool\ndef look(at: str) -> str:\n    return at\n\
             b = Agent(name='b', model='m', instructions='i'{more})\n\
             c = Agent(name='c', model='m', instructions='i', handoffs=[b])\n\
             a = Agent(name='a', model='m', instructions='i', handoffs=[b, c])\n{tail}\nRunner.run_sync(a, 'x')\n"
        )
    };
    let found = |more, tail| levels("L017", "main.py", &text(more, tail));
    assert_eq!(found("", ""), []);
    assert_eq!(found(", tools=[look]", ""), [Level::Warn]);
    assert_eq!(found("", "b.handoffs = [a]"), [Level::Warn]);
    // What is not known may lead back.
    assert_eq!(found(", tools=others()", ""), [Level::Warn]);
}

/// `has_tools_or_approvals_to_run` of the SDK counts no tool that the provider carried out.
#[test]
fn tools_of_the_provider_take_no_turn() {
    let text = |tools: &str| {
        format!(
            "from agents import Agent, Runner, WebSearchTool, CodeInterpreterTool, ComputerTool, HostedMCPTool, function_tool\n\
             @function_tool\ndef look(at: str) -> str:\n    return at\n\
             a = Agent(name='a', model='m', instructions='i', tools=[{tools}])\nRunner.run_sync(a, 'x')\n"
        )
    };
    let found = |tools| levels("L017", "main.py", &text(tools));
    assert_eq!(found("WebSearchTool(), CodeInterpreterTool(tool_config={})"), [Level::Info]);
    assert_eq!(found("WebSearchTool(), look"), [Level::Warn]);
    assert_eq!(found("ComputerTool(computer=c)"), [Level::Warn]);
    assert_eq!(
        found("HostedMCPTool(tool_config={'server_label': 's', 'require_approval': 'never'})"),
        [Level::Info]
    );
    assert_eq!(found("HostedMCPTool(tool_config={'server_label': 's'})"), [Level::Warn]);
}

/// `create_react_agent` of LangChain takes one step; its executor repeats it.
#[test]
fn an_executor_bounds_the_agent_that_it_is_given() {
    let text = |from: &str, rest: &str| {
        format!(
            "from {from} import create_react_agent\nfrom langchain.agents import AgentExecutor\nfrom langchain_openai import ChatOpenAI\n\
             from langchain_core.tools import tool\n@tool\ndef look(at: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return at\n\
             agent = create_react_agent(ChatOpenAI(model='m'), [look], prompt='p')\n{rest}\n"
        )
    };
    let run = "AgentExecutor.from_agent_and_tools(agent=agent, tools=[look], max_iterations=3).invoke({'input': 'x'})";
    assert_eq!(levels("L017", "main.py", &text("langchain.agents", run)), []);
    let run = "AgentExecutor(agent=agent, tools=[look]).invoke({'input': 'x'})";
    let source = text("langchain.agents", run);
    assert_eq!(
        of("L017", &source, &among(&[("main.py", &source)])),
        ["warn AgentExecutor(agent=agent, tools=[look])"]
    );
    let run = "agent.invoke({'messages': []})";
    assert_eq!(levels("L017", "main.py", &text("langgraph.prebuilt", run)), [Level::Warn]);
}

/// CrewAI reads agents under their names; what reads a list is the project's own.
#[test]
fn a_list_of_agents_is_read_by_a_program_that_is_not_known() {
    let one = "role: r\n    goal: g\n    backstory: b\n    llm: m\n    tools: [search]\n";
    let list = format!("agents:\n  - name: a\n    {one}");
    let named = format!("agents:\n  a:\n    {one}");
    assert_eq!(levels("L017", "crew.yaml", &list), [Level::Unknown]);
    assert_eq!(levels("L017", "crew.yaml", &named), [Level::Warn]);
    assert_eq!(levels("L017", "crew.yaml", &format!("{list}    max_iter: 3\n")), []);
}

/// A prompt component without words of its own, filled by what comes in; and notes on the canvas, which run
/// nothing.
#[test]
fn a_template_that_is_filled_may_say_what_to_do() {
    let field = |v: &str| format!("{{\"value\": \"{v}\"}}");
    let node = |id: &str, kind: &str, template: &str| {
        format!(
            "{{\"id\": \"{id}\", \"data\": {{\"type\": \"{kind}\", \"node\": {{\"display_name\": \"{kind}\", \"template\": {{{template}}}}}}}}}"
        )
    };
    let edge = |from: &str, to: &str, name: &str| {
        format!(
            "{{\"source\": \"{from}\", \"target\": \"{to}\", \"data\": {{\"sourceHandle\": {{\"name\": \"o\", \"output_types\": [\"Message\"]}}, \"targetHandle\": {{\"fieldName\": \"{name}\"}}}}}}"
        )
    };
    let flow = |words: &str| {
        let nodes = [
            node("i", "ChatInput", &format!("\"input_value\": {}", field(""))),
            node("h", "Memory", ""),
            node(
                "p",
                "Prompt",
                &format!(
                    "\"template\": {}, \"history\": {}, \"input\": {}",
                    field(words),
                    field(""),
                    field("")
                ),
            ),
            node(
                "m",
                "OpenAIModel",
                &format!(
                    "\"system_message\": {}, \"input_value\": {}, \"model_name\": {}",
                    field(""),
                    field(""),
                    field("gpt")
                ),
            ),
            node("o", "ChatOutput", &format!("\"input_value\": {}", field(""))),
            node("n", "note", "\"backgroundColor\": \"amber\""),
        ];
        let edges = [
            edge("i", "p", "input"),
            edge("h", "p", "history"),
            edge("p", "m", "input_value"),
            edge("m", "o", "input_value"),
        ];
        format!("{{\"data\": {{\"nodes\": [{}], \"edges\": [{}]}}}}", nodes.join(", "), edges.join(", "))
    };
    assert_eq!(levels("L001", "flow.json", &flow("{history} {input}")), [Level::Unknown]);
    assert_eq!(levels("L001", "flow.json", &flow("{input}")), [Level::Error]);
    assert_eq!(levels("L001", "flow.json", &flow("Answer by {history}: {input}")), []);
    let mut project = frontend_kit::Project::default();
    let text = flow("{input}");
    let limits = frontend_kit::doc::Limits::default();
    project.files.push(frontend_kit::File::read(FileId(0), "flow.json", &text.as_str().into(), &limits));
    let frontend_kit::Recognised::Frontend(found) = frontends::recognise(&project.files[0]) else { panic!() };
    let tools: Vec<String> =
        found.lower(&project, 0).units[0].code.tools.iter().map(|t| t.name.to_string()).collect();
    assert_eq!(tools, ["Memory"]);
}

/// The remedy for an executor without a bound names the executor's own limit.
#[test]
fn l017_help_of_executor() {
    let text = "from langchain.agents import AgentExecutor, create_tool_calling_agent\nfrom langchain_openai import ChatOpenAI\n\
                from langchain_core.tools import tool\n@tool\ndef look(at: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return at\n\
                agent = create_tool_calling_agent(ChatOpenAI(model='m'), [look], p)\nrun = AgentExecutor(agent=agent, tools=[look])\n";
    let help = |text: &str| {
        let all = among(&[("main.py", text)]);
        all.iter().find(|d| d.code == "L017").map(|d| d.help.join("; "))
    };
    assert_eq!(help(text).as_deref(), Some("state it: `max_iterations=` of the executor"));
    let off = text.replace("tools=[look])\n", "tools=[look], max_iterations=None)\n");
    assert_eq!(help(&off).as_deref(), Some("state it: `max_iterations=` of the executor"));
    assert_eq!(help(&off.replace("None", "5")), None);
}

/// A function that is given as `tool_use_behavior` decides after each call whether the run goes on.
#[test]
fn code_that_ends_a_run_after_a_call_is_not_judged() {
    let text = |behavior: &str| {
        format!(
            "from agents import Agent, Runner, function_tool\n@function_tool\ndef look(at: str) -> str:\n    return at\n\
             def done(context, results):\n    return ToolsToFinalOutputResult(is_final_output=True, final_output='x')\n\
             a = Agent(name='a', model='m', instructions='i', tools=[look], tool_use_behavior={behavior})\nRunner.run_sync(a, 'x')\n"
        )
    };
    assert_eq!(levels("L017", "main.py", &text("done")), [Level::Unknown]);
    assert_eq!(levels("L017", "main.py", &text("'run_llm_again'")), [Level::Warn]);
}

fn graph(nodes: &str, decides: &str, edges: &str) -> String {
    format!(
        "from typing import TypedDict\nfrom langgraph.graph import StateGraph, START, END\n\
         class S(TypedDict):\n    n: int\nflag = 'off'\ndef a(s):\n    return {{'n': 1}}\n{decides}\n\
         g = StateGraph(S)\ng.add_node('a', a)\n{nodes}\ng.add_edge(START, 'a')\n{edges}\napp = g.compile()\n"
    )
}

/// `@g.add_node` calls the method with the function below it.
#[test]
fn a_node_may_be_added_by_a_decorator() {
    let decides = "def way(s):\n    if s['n'] > 1:\n        return 'tell'\n    return END";
    let edges = "g.add_conditional_edges('a', way, ['tell', END])\ng.add_edge('tell', END)";
    let text = graph("@g.add_node\ndef tell(s):\n    return {'n': 2}", decides, edges);
    let found = among(&[("main.py", &text)]);
    assert!(!found.iter().any(|d| matches!(d.code, "F004" | "L007" | "L008")), "{found:?}");
    let lost = graph("def tell(s):\n    return {'n': 2}", decides, edges);
    let found = among(&[("main.py", &lost)]);
    assert!(found.iter().any(|d| d.code == "F004"), "{found:?}");
    // The label is given, though nothing is there to go to: that is said once.
    assert!(!found.iter().any(|d| d.message.contains("never returns")), "{found:?}");
}

/// A label behind a switch is no slip.
#[test]
fn a_branch_that_a_constant_switches_off_loses_nothing() {
    let text = |label: &str| {
        let decides =
            format!("def way(s):\n    if flag == 'on':\n        return '{label}'\n    return 'end'");
        let edges = "g.add_conditional_edges('a', way, {'end': END, 'again': 'a'})";
        graph("", &decides, edges)
    };
    let never = |label| {
        let found = among(&[("main.py", &text(label))]);
        found.iter().filter(|d| d.message.contains("never returns")).map(|d| d.level).collect::<Vec<_>>()
    };
    assert_eq!(never("again"), [Level::Info]);
    assert_eq!(never("end"), [Level::Warn]);
}

/// `ensure_config` hands the limit of a run on to what its nodes run.
#[test]
fn the_limit_of_a_run_holds_for_what_its_nodes_run() {
    let text = |limit: &str| {
        format!(
            "from typing import TypedDict\nfrom langgraph.graph import StateGraph, START, END\nfrom langgraph.prebuilt import create_react_agent\n\
             from langchain_openai import ChatOpenAI\ndef look(q: str) -> str:\n    return q\n\
             class S(TypedDict):\n    messages: list\nsearch = create_react_agent(ChatOpenAI(model='m'), tools=[look])\n\
             def find(s):\n    return {{'messages': search.invoke(s)['messages']}}\n\
             g = StateGraph(S)\ng.add_node('find', find)\ng.add_edge(START, 'find')\ng.add_edge('find', END)\napp = g.compile()\n\
             app.invoke({{'messages': []}}{limit})\n"
        )
    };
    assert_eq!(levels("L017", "main.py", &text(", {'recursion_limit': 30}")), [Level::Unknown]);
    assert_eq!(levels("L017", "main.py", &text("")), [Level::Warn]);
}

/// A message is no update of a state, whatever class it is of.
#[test]
fn a_message_of_a_class_of_the_project_sets_no_keys() {
    let text = "from langchain_core.messages import FunctionMessage\nfrom langgraph.graph import END\nfrom langgraph.graph.message import MessageGraph\n\
                class Loose(FunctionMessage):\n    extra: str = ''\ndef tell(messages):\n    return Loose(content='x', name='y')\n\
                g = MessageGraph()\ng.add_node('tell', tell)\ng.set_entry_point('tell')\ng.add_edge('tell', END)\napp = g.compile()\n";
    let found = among(&[("main.py", text)]);
    assert!(!found.iter().any(|d| d.code == "F004"), "{found:?}");
}

/// An entry that is not where it is looked for is pointed at.
#[test]
fn an_entry_below_another_is_pointed_at() {
    let crew = |name: &str| {
        format!(
            "from crewai import Agent, Crew, Task\nfrom crewai.project import CrewBase, agent, crew, task\n@CrewBase\nclass C:\n    agents_config = 'config/agents.yaml'\n\
             \x20   @agent\n    def writer(self) -> Agent:\n        return Agent(config=self.agents_config['{name}'], max_iter=3)\n"
        )
    };
    let yaml = "Agents:\n  writer:\n    role: r\n    goal: g\n    backstory: b\neditor:\n  role: r\n  goal: g\n  backstory: b\n";
    let help = |name: &str| {
        let found = among(&[("crew.py", &crew(name)), ("config/agents.yaml", yaml)]);
        found.iter().find(|d| d.code == "F004").map(|d| d.help.join("; "))
    };
    assert_eq!(
        help("writer").as_deref(),
        Some("it is below `Agents`: CrewAI looks for entries at the top level")
    );
    assert_eq!(help("editer").as_deref(), Some("did you mean `editor`?"));
    assert_eq!(help("editor"), None);
}

/// A tool that runs what a model writes is no better than an executor of code; one that looks at it first may
/// be.
#[test]
fn tools_that_run_what_they_are_given_are_unfenced() {
    let text = |body: &str| {
        format!(
            "import os, subprocess\nfrom agents import Agent, Runner, function_tool\n@function_tool\ndef go(cmd: str, more: str = '') -> str:\n{body}\n\
             a = Agent(name='a', model='m', instructions='i', tools=[go])\nRunner.run_sync(a, 'x', max_turns=3)\n"
        )
    };
    let found = |body: &str| levels("S003", "main.py", &text(body)).len();
    for body in [
        "    return subprocess.run(cmd, shell=True, capture_output=True).stdout",
        "    cmd = cmd.strip()\n    return str(eval(cmd))",
        "    try:\n        os.system(f'ls {more}')\n    except OSError:\n        pass\n    return ''",
    ] {
        assert_eq!(found(body), 1, "{body}");
    }
    for body in [
        "    return subprocess.run(['ls', cmd], capture_output=True).stdout",
        "    return str(eval(cmd, {'__builtins__': {}}))",
        "    if cmd not in ('ls', 'pwd'):\n        return 'no'\n    return subprocess.getoutput(cmd)",
        "    if input('run it? ') != 'y':\n        return 'no'\n    return subprocess.getoutput(cmd)",
        "    return subprocess.getoutput('uptime')",
    ] {
        assert_eq!(found(body), 0, "{body}");
    }
    let class = "from crewai import Agent\nfrom crewai.tools import BaseTool\nclass Shell(BaseTool):\n    name: str = 's'\n    def _run(self, command: str) -> str:\n        import os\n        return os.popen(command).read()\n\
                 a = Agent(role='r', goal='g', backstory='b', tools=[Shell()], max_iter=3)\n";
    assert_eq!(of("S003", class, &among(&[("crew.py", class)])), ["warn os.popen(command)"]);
    // A person approves each call.
    let run = "    return subprocess.getoutput(cmd)";
    let approved = |how: &str| {
        levels("S003", "main.py", &text(run).replace("@function_tool", &format!("@function_tool({how})")))
            .len()
    };
    assert_eq!(approved("needs_approval=True"), 0);
    assert_eq!(approved("needs_approval=False"), 1);
    // What is no tool is called by the program.
    let plain =
        text("    return ''").replace("@function_tool\n", "").replace("return ''", "return eval(cmd)");
    assert_eq!(levels("S003", "main.py", &plain), []);
}

/// A key in the address that a tool calls, with values in it.
#[test]
fn keys_in_addresses_are_keys() {
    let text = |key: &str| {
        format!(
            "from agents import Agent, Runner, function_tool\n@function_tool\ndef weather(city: str) -> str:\n    return get(f'https://api.weather.net/v1?key={key}&q={{city}}')\n\
             a = Agent(name='a', model='m', instructions='i', tools=[weather])\nRunner.run_sync(a, 'x', max_turns=3)\n"
        )
    };
    assert_eq!(levels("S001", "main.py", &text("8f14e45fceea167a5a36dedd4bea2543")), [Level::Error]);
    assert_eq!(levels("S001", "main.py", &text("{KEY}")), []);
}

/// `check_manager_llm` of CrewAI raises `missing_manager_llm_or_manager_agent`.
#[test]
fn a_hierarchical_crew_needs_somebody_who_manages() {
    let text = |more: &str| {
        format!(
            "from crewai import Agent, Crew, Process, Task\na = Agent(role='r', goal='g', backstory='b', llm='m', max_iter=3)\n\
             t = Task(description='d', expected_output='e', agent=a)\nCrew(agents=[a], tasks=[t]{more}).kickoff()\n"
        )
    };
    let found = |more: &str| levels("F004", "crew.py", &text(more));
    assert_eq!(found(", process=Process.hierarchical"), [Level::Error]);
    assert_eq!(found(", process=Process.hierarchical, manager_llm='m'"), []);
    assert_eq!(found(", process=Process.hierarchical, manager_agent=a"), []);
    assert_eq!(found(", process=Process.hierarchical, **more"), []);
    assert_eq!(found(", process=Process.sequential"), []);
}

/// `add_node` of LangGraph takes what a node says that it reads as part of the state.
#[test]
fn keys_that_a_node_says_it_reads_are_of_the_state() {
    let text = |reads: &str| {
        format!(
            "from typing import TypedDict\nfrom langgraph.graph import StateGraph, START, END\nclass S(TypedDict):\n    a: str\nclass P(TypedDict):\n    b: str\n\
             def one(s: S):\n    return {{'b': 'x'}}\ndef two(s: {reads}):\n    return {{'a': s['b']}}\n\
             g = StateGraph(S)\ng.add_node(one)\ng.add_node(two)\ng.add_edge(START, 'one')\ng.add_edge('one', 'two')\ng.add_edge('two', END)\napp = g.compile()\n"
        )
    };
    assert_eq!(levels("F004", "main.py", &text("P")), []);
    assert_eq!(levels("F004", "main.py", &text("S")).first(), Some(&Level::Warn));
}

/// The remedy for an endless group chat uses the words of its framework.
#[test]
fn l021_help_is_valid_code() {
    let text = "from autogen_agentchat.agents import AssistantAgent\nfrom autogen_agentchat.teams import RoundRobinGroupChat\n\
                a = AssistantAgent('a', model_client=m, system_message='Write.')\nb = AssistantAgent('b', model_client=m, system_message='Criticise.')\n\
                team = RoundRobinGroupChat([a, b])\n";
    let found = among(&[("main.py", text)]);
    let help = found.iter().find(|d| d.code == "L021").map(|d| d.help.join("; "));
    assert_eq!(help.as_deref(), Some("limit it: `max_turns` of the team, or a `MaxMessageTermination`"));
}

/// A person who is asked each time consents to each run of code. A `UserProxyAgent` asks unless it is told
/// otherwise.
#[test]
fn code_that_a_person_is_asked_about_is_fenced() {
    let text = |mode: &str| {
        format!(
            "import autogen\nuser = autogen.UserProxyAgent(name='u', {mode}code_execution_config={{'work_dir': 'd', 'use_docker': False}})\n\
             a = autogen.AssistantAgent(name='a', llm_config={{'model': 'm'}})\nuser.initiate_chat(a, message='x', max_turns=3)\n"
        )
    };
    for (mode, found) in [
        ("human_input_mode='ALWAYS', ", 0),
        ("", 0),
        ("human_input_mode='NEVER', ", 1),
        ("human_input_mode='TERMINATE', ", 1),
        ("human_input_mode=MODE, ", 1),
        ("**MORE, ", 1),
    ] {
        assert_eq!(levels("S003", "main.py", &text(mode)).len(), found, "{mode}");
    }
}

/// A model that the project writes itself, to try the rest without one, answers as it is written.
#[test]
fn a_model_whose_class_makes_its_replies_is_scripted() {
    let text = |reply: &str| {
        format!(
            "from langchain.agents import create_agent\nfrom langchain_core.language_models.chat_models import BaseChatModel\n\
             from langchain_core.messages import AIMessage\nfrom langchain_core.outputs import ChatGeneration, ChatResult\n\
             class Demo(BaseChatModel):\n    calls: int = 0\n    def bind_tools(self, tools, **more):\n        return self\n\
             \x20   def _generate(self, messages, stop=None, **more):\n        self.calls += 1\n        text = {reply}\n\
             \x20       return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])\n\
             def look(at: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return at\n\
             agent = create_agent(model=Demo(), tools=[look], system_prompt='p')\nagent.invoke({{'messages': []}})\n"
        )
    };
    assert_eq!(levels("L017", "main.py", &text("'done' if messages else str(len(messages))")), [Level::Info]);
    assert_eq!(levels("L017", "main.py", &text("self.client.chat(messages)")), [Level::Warn]);
}

/// The limit of a run doesn't bound the work delegated to a subagent.
#[test]
fn l017_help_of_subagent() {
    let text = "from deepagents import create_deep_agent\ndef look(at: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return at\n\
                agent = create_deep_agent(model='m', tools=[look], system_prompt='p', subagents=[\n    {'name': 's', 'description': 'd', 'system_prompt': 'q'},\n])\n\
                agent.invoke({'messages': []})\n";
    let all = among(&[("main.py", text)]);
    let help: Vec<String> = all.iter().filter(|d| d.code == "L017").map(|d| d.help.join("; ")).collect();
    assert_eq!(help.len(), 2, "{all:#?}");
    assert!(help.iter().any(|h| h.contains("\"runnable\": create_agent")), "{help:?}");
    assert!(help.iter().any(|h| h.contains("in the config of the run")), "{help:?}");
}

/// An agent that is a tool has turns of its own, which the run around it does not bound.
#[test]
fn l017_help_of_agent_tool() {
    let text = "from agents import Agent, function_tool\n@function_tool\ndef look(at: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return at\n\
                helper = Agent(name='h', model='m', instructions='i', tools=[look])\n";
    let all = among(&[("main.py", text)]);
    let help: Vec<String> = all.iter().filter(|d| d.code == "L017").map(|d| d.help.join("; ")).collect();
    assert_eq!(help, ["state it: `max_turns=` of `Runner.run`, and of `as_tool` where the agent is a tool"]);
}
