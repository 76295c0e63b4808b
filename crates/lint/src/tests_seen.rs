//! False alarms and misses found in samples of findings on public repositories: `notebook/precision.md`.

use super::tests_code::among;
use super::*;
use diagnostics::FileId;

/// The levels of a rule in one file.
fn levels(code: &str, path: &str, text: &str) -> Vec<Level> {
    among(&[(path, text)]).iter().filter(|d| d.code == code).map(|d| d.level).collect()
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
    let frontend_kit::Recognized::Frontend(found) = frontends::recognize(&project.files[0]) else { panic!() };
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
    let said = help(text);
    assert!(
        said.as_ref().is_some_and(|s| s.ends_with("state it: `max_iterations=` of the executor")),
        "{said:?}"
    );
    let off = text.replace("tools=[look])\n", "tools=[look], max_iterations=None)\n");
    assert_eq!(help(&off).as_deref(), Some("state it: `max_iterations=` of the executor"));
    assert_eq!(help(&off.replace("None", "5")), None);
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

/// The remedy for an endless group chat uses the words of its framework.
#[test]
fn l021_help_is_valid_code() {
    let text = "from autogen_agentchat.agents import AssistantAgent\nfrom autogen_agentchat.teams import RoundRobinGroupChat\n\
                a = AssistantAgent('a', model_client=m, system_message='Write.')\nb = AssistantAgent('b', model_client=m, system_message='Criticize.')\n\
                team = RoundRobinGroupChat([a, b])\n";
    let found = among(&[("main.py", text)]);
    let help = found.iter().find(|d| d.code == "L021").map(|d| d.help.join("; "));
    assert_eq!(help.as_deref(), Some("limit it: `max_turns` of the team, or a `MaxMessageTermination`"));
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
