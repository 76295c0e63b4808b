//! What draws of findings on public repositories showed to be wrong, or missing: `docs/precision.md`.

use super::tests_code::{among, of};
use super::*;
use diagnostics::FileId;

/// The levels of a rule in one file.
fn levels(code: &str, path: &str, text: &str) -> Vec<Level> {
    among(&[(path, text)]).iter().filter(|d| d.code == code).map(|d| d.level).collect()
}

/// Who is handed over to and has no tools answers: there is no second turn of anybody.
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

/// A prompt component without words of its own, filled by what comes in; and notes on the canvas, which run nothing.
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
    let mut project = frontend::Project::default();
    let text = flow("{input}");
    let limits = frontend::doc::Limits::default();
    project.files.push(frontend::File::read(FileId(0), "flow.json", &text.as_str().into(), &limits));
    let frontend::Recognised::Frontend(found) = frontend::recognise(&project.files[0]) else { panic!() };
    let tools: Vec<String> =
        found.lower(&project, 0).units[0].code.tools.iter().map(|t| t.name.to_string()).collect();
    assert_eq!(tools, ["Memory"]);
}
