//! Detection of modules: by what they import and call, not by how it is written.

use diagnostics::FileId;
use frontend_kit::doc::Limits;
use frontend_kit::{Compiled, File, Project, Recognized};
use std::sync::Arc;

fn file(text: &str) -> File {
    File::read(FileId(0), "main.py", &Arc::from(text), &Limits::default())
}

fn recognized(text: &str) -> Option<&'static str> {
    match frontends::recognize(&file(text)) {
        Recognized::Frontend(frontend) => Some(frontend.name()),
        _ => None,
    }
}

fn compiled(text: &str) -> Compiled {
    let project = Project { files: vec![file(text)], ..Project::default() };
    frontends::compile(&project, 0).unwrap_or_else(|| panic!("not recognized:\n{text}"))
}

fn terms(text: &str) -> Vec<String> {
    compiled(text).units.iter().map(|u| core_ir::print_code(&u.code)).collect()
}

const TEAM: &str = "client = C(model='m')\na = AssistantAgent('a', model_client=client, system_message='A.')\n\
                    t = RoundRobinGroupChat([a], max_turns=2)\n";

/// A module, and the same with other names of what it imports.
fn pairs() -> Vec<(&'static str, String, String)> {
    let pair = |name, a: &str, b: &str| (name, a.to_string(), b.to_string());
    vec![
        pair(
            "langgraph",
            "from langgraph.graph import StateGraph, START, END\nfrom typing import TypedDict\nclass S(TypedDict):\n    x: str\n\
             def a(s):\n    return {'x': 'y'}\nb = StateGraph(S)\nb.add_node('a', a)\nb.add_edge(START, 'a')\nb.add_edge('a', END)\napp = b.compile()\n",
            "from langgraph import graph as g\nfrom typing import TypedDict\nclass S(TypedDict):\n    x: str\n\
             def a(s):\n    return {'x': 'y'}\nb = g.StateGraph(S)\nb.add_node('a', a)\nb.add_edge(g.START, 'a')\nb.add_edge('a', g.END)\napp = b.compile()\n",
        ),
        pair(
            "langgraph",
            "from langgraph.prebuilt import create_react_agent\napp = create_react_agent('openai:m', [], prompt='p')\n",
            "from langgraph.prebuilt import create_react_agent as make\napp = make('openai:m', [], prompt='p')\n",
        ),
        pair(
            "openai_agents",
            "from agents import Agent\na = Agent(name='a', instructions='p', model='m')\n",
            "from agents import Agent as Helper\na = Helper(name='a', instructions='p', model='m')\n",
        ),
        pair(
            "openai_agents",
            "from agents import Agent\na = Agent[dict](name='a', instructions='p', model='m')\n",
            "import agents as sdk\na = sdk.Agent[dict](name='a', instructions='p', model='m')\n",
        ),
        pair(
            "crewai",
            "from crewai import Agent, Crew, Task\na = Agent(role='r', goal='g', backstory='b', llm='m')\n\
             k = Task(description='d', expected_output='e', agent=a)\nc = Crew(agents=[a], tasks=[k])\n",
            "import crewai as c9\na = c9.Agent(role='r', goal='g', backstory='b', llm='m')\n\
             k = c9.Task(description='d', expected_output='e', agent=a)\nc = c9.Crew(agents=[a], tasks=[k])\n",
        ),
        pair(
            "autogen",
            &format!(
                "from autogen_agentchat.agents import AssistantAgent\nfrom autogen_agentchat.teams import RoundRobinGroupChat\n{TEAM}"
            ),
            &format!(
                "from autogen_agentchat.agents import AssistantAgent as A\nfrom autogen_agentchat import teams as ts\n{}",
                TEAM.replace("AssistantAgent", "A").replace("RoundRobinGroupChat", "ts.RoundRobinGroupChat")
            ),
        ),
        pair(
            "adk",
            "from google.adk.agents import LlmAgent\nroot_agent = LlmAgent(name='a', model='m', instruction='p')\n",
            "from google.adk import agents as g\nroot_agent = g.LlmAgent(name='a', model='m', instruction='p')\n",
        ),
        pair(
            "ms_declarative",
            "from agent_framework import ChatAgent\na = ChatAgent(name='a', chat_client=c, instructions='p')\n",
            "from agent_framework import ChatAgent as A\na = A(name='a', chat_client=c, instructions='p')\n",
        ),
    ]
}

#[test]
fn aliases_of_imports_change_nothing() {
    for (name, plain, aliased) in pairs() {
        for text in [&plain, &aliased] {
            assert_eq!(recognized(text), Some(name), "\n{text}");
        }
        assert_eq!(terms(&plain), terms(&aliased), "\n{aliased}");
        assert!(!terms(&plain).is_empty(), "\n{plain}");
    }
}

#[test]
fn comments_and_texts_are_not_code() {
    for (_, plain, _) in pairs() {
        // The imports stay, and everything else is said in a comment or a text.
        let (imports, rest): (Vec<&str>, Vec<&str>) =
            plain.lines().partition(|l| l.starts_with("from ") || l.starts_with("import "));
        let commented: Vec<String> = rest.iter().map(|l| format!("# {l}")).collect();
        let text = format!("{}\n{}\n", imports.join("\n"), commented.join("\n"));
        assert_eq!(recognized(&text), None, "\n{text}");
        let text =
            format!("{}\nNOTE = '''\n{}\n'''\n", imports.join("\n"), rest.join("\n").replace("'''", ""));
        assert_eq!(recognized(&text), None, "\n{text}");
    }
}

/// A function tool ends its loop if its own statement says so, however it is written.
#[test]
fn escalation_is_a_statement_of_the_function() {
    let of = |body: &str| {
        let text = format!(
            "from google.adk.agents import LlmAgent, LoopAgent\ndef done(tool_context):\n{body}\n    return {{}}\n\
             a = LlmAgent(name='a', model='m', instruction='p', tools=[done])\n\
             root_agent = LoopAgent(name='l', sub_agents=[a], max_iterations=3)\n"
        );
        terms(&text)
    };
    let ends = of("    tool_context.actions.escalate = True");
    assert_eq!(of("    tool_context . actions.escalate=(\n        True)"), ends);
    assert_eq!(
        of("    '''tool_context.actions.escalate'''\n    tool_context.actions.escalate = True  # done"),
        ends
    );
    let calls = of("    pass");
    assert_ne!(calls, ends);
    assert_eq!(of("    # tool_context.actions.escalate = True"), calls);
    assert_eq!(of("    x = '''\n    tool_context.actions.escalate = True\n    '''"), calls);
}

/// The test of a message is an expression; comments and layout do not count.
#[test]
fn tests_of_messages_are_read_from_the_tree() {
    let of = |test: &str| {
        let text = format!(
            "from autogen import AssistantAgent, UserProxyAgent\n{test}\n\
             a = AssistantAgent('a', llm_config={{'model': 'm'}}, system_message='A.')\n\
             u = UserProxyAgent('u', human_input_mode='NEVER', is_termination_msg=done, code_execution_config=False)\n\
             u.initiate_chat(a, message='hi', max_turns=3)\n"
        );
        terms(&text)
    };
    let ends = of("done = lambda m: 'DONE' in m['content']");
    assert_eq!(of("done = lambda m: \"DONE\"  in  (m['content'])"), ends);
    assert_eq!(of("def done(m):\n    # the word: \"STOP\" in m\n    return 'DONE' in m['content']"), ends);
    assert_eq!(of("def done(m):\n    '''True: if 'STOP' in m.'''\n    return 'DONE' in m['content']"), ends);
    assert_eq!(of("done = lambda m: m.get('content') and 'DONE' in m.get('content', '')"), ends);
    // Both words have to be there, so neither ends it alone.
    let open = of("done = lambda m: decide(m)");
    assert_eq!(of("done = lambda m: 'A' in m['content'] and 'B' in m['content']"), open);
    assert_eq!(of("done = lambda m: not 'DONE' in m['content']"), open);
    assert_ne!(ends, open);
}

/// Other modules of the project count only if they are imported.
#[test]
fn modules_that_are_not_imported_mean_nothing() {
    let main = "from langgraph.graph import StateGraph, START, END\nfrom typing import TypedDict\nfrom elsewhere import go\n\
                class S(TypedDict):\n    x: str\ndef a(s):\n    return {'x': 'y'}\nb = StateGraph(S)\nb.add_node('a', a)\n\
                b.add_node('c', a)\nb.add_edge(START, 'a')\nb.add_edge('a', END)\napp = b.compile()\n";
    let other = "from langgraph.types import Send, Command\ndef f(s):\n    return Command(goto=Send('c', s), graph=Command.PARENT)\n";
    let read =
        |id: u32, path: &str, text: &str| File::read(FileId(id), path, &Arc::from(text), &Limits::default());
    let graphs = |files: Vec<File>| {
        let compiled = frontends::compile(&Project { files, ..Project::default() }, 0).unwrap();
        format!("{:?}", compiled.units.iter().map(|u| &u.outline.graphs).collect::<Vec<_>>())
    };
    let alone = graphs(vec![read(0, "main.py", main)]);
    assert_eq!(graphs(vec![read(0, "main.py", main), read(1, "other.py", other)]), alone);
    let comment = format!("{main}# Send(x), as_node, Command.PARENT\n");
    assert_eq!(graphs(vec![read(0, "main.py", &comment)]), alone);
}
