//! `entail audit`: exit statuses, formats, and the policy that it writes.

use crate::program;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/audit/cases").join(name)
}

fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    program::ran(&mut program::entail(dir, args))
}

#[test]
fn the_exit_status_says_whether_there_is_a_path_of_level_error() {
    let (status, out, _) = entail(&case("v05_handoff_to_mail"), &["audit"]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("error[S302]") && out.contains("whoever writes what `open_link` reads"), "{out}");
    let (status, out, _) = entail(&case("h04_own_files"), &["audit", "."]);
    assert_eq!(status, 0, "{out}");
    assert!(out.starts_with("0 attack paths in 1 program with 2 tools"), "{out}");
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(entail(dir.path(), &["audit", "absent"]).0, 2);
    std::fs::write(dir.path().join("data.json"), "{\"a\": 1}").unwrap();
    assert_eq!(entail(dir.path(), &["audit", "data.json"]).0, 2);
    let (status, out, _) = entail(dir.path(), &["audit"]);
    assert_eq!(status, 0);
    assert!(out.ends_with("nothing was audited\n"), "{out}");
}

#[test]
fn a_file_that_is_named_is_audited_whatever_words_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let agent =
        "spec_version: v1\nkind: external\nname: weather\ndescription: d\napi_url: https://w.invalid\n";
    std::fs::write(dir.path().join("weather.yaml"), agent).unwrap();
    let (status, out, err) = entail(dir.path(), &["audit", "weather.yaml"]);
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.starts_with("0 attack paths in 1 program with 0 tools"), "{out}");
}

#[test]
fn a_server_that_is_not_documented_has_no_facts_of_its_neighbors() {
    let dir = tempfile::tempdir().unwrap();
    let servers = r#"{"mcpServers": {
        "fetch": {"command": "uvx", "args": ["mcp-server-fetch"]},
        "acme": {"command": "npx", "args": ["-y", "@acme/unheard-of"]}
    }}"#;
    std::fs::write(dir.path().join(".mcp.json"), servers).unwrap();
    let (_, out, _) = entail(dir.path(), &["audit", "--format", "json"]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let tools = last["audit"]["programs"][0]["tools"].as_array().unwrap();
    let knowledge = |name: &str| tools.iter().find(|t| t["name"] == name).map(|t| &t["knowledge"]);
    assert_eq!(knowledge("fetch"), Some(&"known".into()), "{last}");
    assert_eq!(knowledge("acme"), Some(&"unknown".into()), "{last}");
}

const PAGE_AND_RUN: &str = "import subprocess\nimport requests\n\n\
    def page(url: str) -> str:\n    \"\"\"Reads a page.\"\"\"\n    return requests.get(url).text\n\n\
    def run(command: str = None) -> str:\n    \"\"\"Runs a command.\"\"\"\n    \
    if command is None:\n        return \"?\"\n    return str(subprocess.run(command, shell=True))\n\n";

/// The last line of an audit of these files.
fn last_line(files: &[(&str, String)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let (_, out, err) = entail(dir.path(), &["audit"]);
    out.lines().last().unwrap_or_else(|| panic!("{err}")).to_string()
}

/// Terms after a part that could not be read used to count as never reached.
#[test]
fn instructions_that_are_not_known_hide_no_path() {
    let found = "2 attack paths in 1 program with 2 tools";
    for instructions in ["'You help.'", "open('p.md').read()", "Path('p.md').read_text()", "os.environ['P']"]
    {
        let head = format!("import os\nfrom pathlib import Path\n{PAGE_AND_RUN}");
        let agents = format!(
            "{head}from agents import Agent, Runner, function_tool\n\
             agent = Agent(name='a', model='gpt-4.1', instructions={instructions}, \
             tools=[function_tool(page), function_tool(run)])\nRunner.run_sync(agent, 'Do.')\n"
        );
        let langchain = format!(
            "{head}from langchain.agents import create_agent\n\
             agent = create_agent('openai:gpt-4o', tools=[page, run], system_prompt={instructions})\n"
        );
        let adk = format!(
            "{head}from google.adk.agents import Agent\nfrom google.adk.tools import FunctionTool\n\
             root_agent = Agent(name='a', model='gemini-2.0-flash', instruction={instructions}, \
             tools=[FunctionTool(func=page), FunctionTool(func=run)])\n"
        );
        for text in [agents, langchain, adk] {
            let line = last_line(&[("m.py", text.clone())]);
            assert!(line.starts_with(found), "{text}\n{line}");
        }
    }
}

/// The module that has the tools imports no framework: a function of a package gives it the agent.
#[test]
fn an_agent_that_a_function_of_another_module_makes_has_its_tools() {
    let factory = "from langchain.agents import create_agent\n\n\
                   def make(model=None, tools=None, *, prompt=None):\n    \
                   return create_agent(model, tools=tools, system_prompt=prompt)\n";
    let main =
        format!("{PAGE_AND_RUN}from kit import make\n\nagent = make('openai:gpt-4o', tools=[page, run])\n");
    let line = last_line(&[
        ("kit/__init__.py", "from kit.graph import make\n".into()),
        ("kit/graph.py", factory.into()),
        ("m.py", main),
    ]);
    assert!(line.starts_with("2 attack paths in 2 programs with "), "{line}");
}

/// A tool is written in a function that is called with a client, and once more with whatever that is.
#[test]
fn a_tool_that_keeps_a_client_is_what_the_client_does() {
    let line = last_line(&[(
        "m.py",
        format!(
            "{PAGE_AND_RUN}from tavily import TavilyClient\nfrom langchain.agents import create_agent\n\n\
             def made(client):\n    def look_up(q: str):\n        return client.search(q)\n    return look_up\n\n\
             def start():\n    client = TavilyClient(api_key='k')\n    \
             return create_agent('openai:gpt-4o', tools=[made(client), run])\n\nstart()\n"
        ),
    )]);
    assert!(line.starts_with("1 attack path in 1 program with 2 tools"), "{line}");
}

/// A request that sends something may ask or order; the name of the tool decides.
#[test]
fn a_tool_that_asks_a_service_by_its_name_does_not_act() {
    for (name, found) in [("scrape_site", "0 attack paths"), ("order_part", "1 attack path")] {
        let tool = format!(
            "def {name}(x: str) -> str:\n    \
             return requests.post('http://localhost:3000/content', json={{'x': x}}).text\n\n"
        );
        let look = "def look_up(q: str) -> str:\n    return requests.get('https://r.jina.ai/' + q).text\n\n";
        let agent = format!(
            "import requests\nfrom langchain.agents import create_agent\n\n{tool}{look}\
             agent = create_agent('openai:gpt-4o', tools=[{name}, look_up])\n"
        );
        let line = last_line(&[("m.py", agent)]);
        assert!(line.starts_with(found), "{line}");
    }
}

/// A mail to an address that the workflow writes out shows nobody else what is in it.
#[test]
fn a_workflow_that_writes_out_its_recipient_leaks_nothing() {
    let node = |name: &str, kind: &str, parameters: &str| {
        format!(
            r#"{{"name": "{name}", "type": "{kind}", "parameters": {parameters}, "position": [0, 0], "id": "{name}"}}"#
        )
    };
    let link = |name: &str, kind: &str| {
        format!(r#""{name}": {{"{kind}": [[{{"node": "Agent", "type": "{kind}", "index": 0}}]]}}"#)
    };
    for (to, leaks) in [("me@example.org", false), ("={{ $fromAI('to') }}", true)] {
        let nodes = [
            node("Chat", "@n8n/n8n-nodes-langchain.chatTrigger", r#"{"public": true}"#),
            node("Agent", "@n8n/n8n-nodes-langchain.agent", "{}"),
            node("Model", "@n8n/n8n-nodes-langchain.lmChatOpenAi", "{}"),
            node("Inbox", "n8n-nodes-base.gmailTool", r#"{"operation": "getAll"}"#),
            node(
                "Answer",
                "n8n-nodes-base.gmailTool",
                &format!(r#"{{"sendTo": "{to}", "message": "={{{{ $fromAI('m') }}}}"}}"#),
            ),
        ];
        let links = [
            link("Chat", "main"),
            link("Model", "ai_languageModel"),
            link("Inbox", "ai_tool"),
            link("Answer", "ai_tool"),
        ];
        let text = format!(
            r#"{{"name": "w", "nodes": [{}], "connections": {{{}}}}}"#,
            nodes.join(","),
            links.join(",")
        );
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("w.json"), text).unwrap();
        let (_, out, err) = entail(dir.path(), &["audit"]);
        assert!(out.contains("attack path") && !out.starts_with("0 "), "{out}{err}");
        assert_eq!(out.contains("S302"), leaks, "{to}: {out}");
    }
}

#[test]
fn frameworks_that_are_not_read_are_named() {
    let line = last_line(&[("m.py", "from agno.agent import Agent\nagent = Agent(model='m')\n".into())]);
    assert!(line.ends_with("nothing was audited; 1 file uses Agno, which is not read"), "{line}");
}

const RUN: &str = "import subprocess\nimport requests\n\n\
    def run(command: str) -> str:\n    \"\"\"Runs a command.\"\"\"\n    \
    return str(subprocess.run(command, shell=True))\n\n";

/// The agent has no tool that reads: the program puts the page into the message.
#[test]
fn text_that_the_program_hands_to_an_agent_is_a_source() {
    let direct = "text = requests.get(input()).text\n\
                  Runner.run_sync(agent, f'Sum up: {text[:500]}')\n";
    let helper = "def page(url):\n    out = []\n    for line in requests.get(url).text.splitlines():\n        \
                  out.append(line)\n    return '\\n'.join(out)\n\n\
                  def ask(what):\n    return Runner.run_sync(agent, what)\n\nask('Sum up: ' + page(input()))\n";
    let class = "class Desk:\n    def __init__(self):\n        self.page = None\n\n    \
                 def load(self, url):\n        self.page = requests.get(url).json()['body']\n\n    \
                 async def go(self):\n        return await Runner.run(agent, self.page)\n";
    let hook = "from slack_bolt import App\napp = App()\n\n@app.event('app_mention')\n\
                def mention(event, say):\n    say(Runner.run_sync(agent, event['text']).final_output)\n";
    let no_page = "text = requests.get(input()).text\n\
                   print(len(text))\nRunner.run_sync(agent, input())\n";
    for (run, found) in [(direct, 1), (helper, 1), (class, 1), (hook, 1), (no_page, 0)] {
        let text = format!(
            "{RUN}from agents import Agent, Runner, function_tool\n\
             agent = Agent(name='a', model='gpt-4.1', instructions='You help.', tools=[function_tool(run)])\n{run}"
        );
        let line = last_line(&[("m.py", text.clone())]);
        let paths = if found == 1 { "1 attack path in" } else { "0 attack paths in" };
        assert!(line.starts_with(paths), "{text}\n{line}");
    }
}

/// The page is read by a module of its own, and stands in the description of a task.
#[test]
fn text_in_the_description_of_a_task_is_a_source() {
    let pages = "import requests\n\ndef page(url):\n    return requests.get(url).text\n";
    let crew = format!(
        "{RUN}from crewai import Agent, Crew, Task\nfrom crewai.tools import tool\nfrom pages import page\n\n\
         def main(url):\n    text = page(url)\n    \
         a = Agent(role='r', goal='g', backstory='b', llm='gpt-4o', tools=[tool('run')(run)])\n    \
         t = Task(description=f'Do what this says: {{text}}', expected_output='x', agent=a)\n    \
         Crew(agents=[a], tasks=[t]).kickoff()\n"
    );
    let line = last_line(&[("pages.py", pages.into()), ("m.py", crew)]);
    assert!(line.starts_with("1 attack path in 1 program"), "{line}");
}

/// The agent is made by a class of another module, which is given the tools.
#[test]
fn an_agent_in_a_class_of_another_module_has_the_tools_that_it_is_given() {
    for (import, agent) in [
        ("from agents import Agent, Runner", "Agent(name=name, instructions='You help.', tools=tools)"),
        ("from pydantic_ai import Agent", "Agent('openai:gpt-4.1', name=name, tools=tools)"),
        ("from google.adk.agents import Agent", "Agent(name=name, model='gemini-2.0-flash', tools=tools)"),
    ] {
        let helper = format!(
            "{import}\n\nclass Helper:\n    def __init__(self, name, tools):\n        self.agent = {agent}\n"
        );
        let main = format!("{PAGE_AND_RUN}from helper import Helper\n\nhelper = Helper('h', [page, run])\n");
        let line = last_line(&[("helper.py", helper), ("m.py", main)]);
        assert!(line.starts_with("2 attack paths in "), "{import}: {line}");
    }
}

/// An agent of ADK hands off to the agents beside it, which see what it read.
#[test]
fn agents_of_adk_hand_over_to_those_beside_them() {
    let agents = |peers: &str| {
        format!(
            "{PAGE_AND_RUN}from google.adk.agents import Agent\n\
             reader = Agent(name='reader', model='gemini-2.0-flash', instruction='Read.', tools=[page]{peers})\n\
             actor = Agent(name='actor', model='gemini-2.0-flash', instruction='Act.', tools=[run])\n\
             root_agent = Agent(name='root', model='gemini-2.0-flash', instruction='Route.', \
             sub_agents=[reader, actor])\n"
        )
    };
    let line = last_line(&[("agent.py", agents(""))]);
    assert!(line.starts_with("2 attack paths in 1 program"), "{line}");
    let off = ", disallow_transfer_to_parent=True, disallow_transfer_to_peers=True";
    // It hands off to nobody. In a later turn of the session the others see what it read.
    let line = last_line(&[("agent.py", agents(off))]);
    assert!(line.starts_with("2 attack paths in 1 program"), "{line}");
}

#[test]
fn agents_of_pydantic_ai_smolagents_and_llama_index_have_paths() {
    let delegation = format!(
        "{PAGE_AND_RUN}from pydantic_ai import Agent\n\
         reader = Agent('openai:gpt-4.1', instructions='Read.', tools=[page])\n\
         desk = Agent('openai:gpt-4.1', instructions='Act.', tools=[run])\n\n\
         @desk.tool_plain\nasync def research(topic: str) -> str:\n    \
         return (await reader.run(topic)).output\n"
    );
    let manager = "from smolagents import CodeAgent, ToolCallingAgent, VisitWebpageTool\n\
                   web = ToolCallingAgent(tools=[VisitWebpageTool()], model=m, name='web', description='Web.')\n\
                   boss = CodeAgent(tools=[], model=m, managed_agents=[web])\n";
    let workflow = format!(
        "{PAGE_AND_RUN}from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent\n\
         a = FunctionAgent(name='a', tools=[page], llm=llm, system_prompt='Read.', can_handoff_to=['b'])\n\
         b = FunctionAgent(name='b', tools=[run], llm=llm, system_prompt='Act.')\n\
         w = AgentWorkflow(agents=[a, b], root_agent='a')\n"
    );
    for text in [delegation, manager.to_string(), workflow] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("m.py"), &text).unwrap();
        let (status, out, err) = entail(dir.path(), &["audit"]);
        assert_eq!(status, 1, "{text}\n{out}{err}");
        assert!(out.contains("error[S301]") && out.contains("in 1 program"), "{text}\n{out}");
    }
    let sandboxed = manager.replace("managed_agents=[web]", "managed_agents=[web], executor_type='e2b'");
    let line = last_line(&[("m.py", sandboxed)]);
    assert!(line.starts_with("0 attack paths in 1 program"), "{line}");
}

/// Rules allow calls; a tool that nothing allows is on no path.
#[test]
fn agents_of_the_claude_agent_sdk_have_paths() {
    let text = |options: &str| {
        format!(
            "{PAGE_AND_RUN}from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool\n\n\
             @tool('page', 'Gets a page.', {{'url': str}})\nasync def get(args):\n    \
             return {{'content': [{{'type': 'text', 'text': page(args['url'])}}]}}\n\n\
             options = ClaudeAgentOptions(mcp_servers={{'web': create_sdk_mcp_server('w', tools=[get])}}, {options})\n\n\
             async def main():\n    async for m in query(prompt=input(), options=options):\n        print(m)\n"
        )
    };
    let cases = [
        ("allowed_tools=['Bash']", 0),
        ("allowed_tools=['WebFetch', 'Bash(make)', 'Bash(git log:*)']", 1),
        ("allowed_tools=['WebFetch'], tools=['WebFetch', 'Bash']", 0),
        ("allowed_tools=['WebFetch', 'Bash(git:*)'], tools=['WebFetch', 'Bash']", 2),
        ("allowed_tools=['mcp__web__page', 'Bash'], tools=['Bash']", 1),
        ("allowed_tools=['mcp__w__page', 'Bash'], tools=['Bash']", 0),
        ("permission_mode='bypassPermissions', tools=['Bash']", 1),
        ("permission_mode='bypassPermissions', tools=['Bash'], disallowed_tools=['Bash']", 0),
    ];
    for (options, paths) in cases {
        let line = last_line(&[("m.py", text(options))]);
        let expected = format!("{paths} attack path{} in 1 program", if paths == 1 { "" } else { "s" });
        assert!(line.starts_with(&expected), "{options}: {line}");
    }
    // Tools of one place by which outsiders gain the same are one finding.
    let line = last_line(&[("m.py", text("permission_mode='bypassPermissions'"))]);
    assert!(line.contains("(3 findings)"), "{line}");
    let server = "from claude_agent_sdk import ClaudeAgentOptions\nEACH = 'npx'\n\
        o = ClaudeAgentOptions(tools=[], permission_mode='bypassPermissions', mcp_servers={\n    \
            'files': {'command': EACH, 'args': ['-y', '@modelcontextprotocol/server-filesystem', '/']},\n    \
            'page': {'type': 'stdio', 'command': 'uvx', 'args': ['mcp-server-fetch']}})\n";
    let line = last_line(&[("m.py", server.into())]);
    assert!(line.starts_with("2 attack paths in 1 program with 2 tools"), "{line}");
    // Of the tools of a server, the one that a rule names.
    let read = server.replace(
        "permission_mode='bypassPermissions'",
        "allowed_tools=['mcp__files__read_file', 'mcp__page']",
    );
    let line = last_line(&[("m.py", read)]);
    assert!(line.starts_with("1 attack path in 1 program with 2 tools"), "{line}");
}

/// The tool is an instance that is given what it reads with.
#[test]
fn a_tool_has_what_its_constructor_is_given() {
    let text = format!(
        "{RUN}from smolagents import Tool, ToolCallingAgent, tool\n\n\
         class Browser:\n    def open(self, url):\n        return requests.get(url).text\n\n\
         class Visit(Tool):\n    name = 'visit'\n    description = 'Visits.'\n\n    \
         def __init__(self, browser):\n        self.browser = browser\n\n    \
         def forward(self, url: str) -> str:\n        return self.browser.open(url)\n\n\
         agent = ToolCallingAgent(tools=[Visit(Browser()), tool(run)], model=m)\n"
    );
    let line = last_line(&[("m.py", text)]);
    assert!(line.starts_with("2 attack paths in 1 program with 2 tools"), "{line}");
}

/// Calls of the program with the answer, and a run of an agent, which is none of it.
#[test]
fn a_call_that_is_given_the_answer_is_an_end() {
    let text = |after: &str| {
        format!(
            "{PAGE_AND_RUN}import smtplib\nfrom agents import Agent, Runner, function_tool\n\n\
             agent = Agent(name='a', model='gpt-4.1', instructions='Read.', tools=[function_tool(page)])\n\n\
             def main(to):\n    answer = Runner.run_sync(agent, input()).final_output\n    {after}\n"
        )
    };
    let mail = "with smtplib.SMTP('h') as s:\n        s.sendmail('me@example.org', to, answer)";
    let line = last_line(&[("m.py", text(mail))]);
    assert!(line.starts_with("1 attack path in 1 program with 1 tool"), "{line}");
    for other in
        ["print(answer)", "with smtplib.SMTP('h') as s:\n        s.sendmail('me@example.org', to, 'Hello.')"]
    {
        let line = last_line(&[("m.py", text(other))]);
        assert!(line.starts_with("0 attack paths in 1 program with 1 tool"), "{other}: {line}");
    }
}

/// A message to whoever sent the request is the answer.
#[test]
fn an_answer_to_the_sender_of_a_request_is_no_action() {
    let text = |to: &str| {
        format!(
            "{PAGE_AND_RUN}from agents import Agent, Runner, function_tool\nfrom quart import request\n\
             from twilio.rest import Client\n\n\
             agent = Agent(name='a', model='gpt-4.1', instructions='Read.', tools=[function_tool(page)])\n\n\
             async def main(other):\n    form = await request.form\n    sender = form['From']\n    \
             answer = await Runner.run(agent, form['Body'])\n    \
             Client('a', 'b').messages.create(body=answer.final_output, to={to})\n"
        )
    };
    for (to, paths) in
        [("sender", "0 attack paths"), ("sender.strip()", "0 attack paths"), ("other", "1 attack path")]
    {
        let line = last_line(&[("m.py", text(to))]);
        assert!(line.starts_with(&format!("{paths} in 1 program with 1 tool")), "{to}: {line}");
    }
}

/// The call in a method of another module that only a node of a graph makes.
#[test]
fn calls_in_nodes_of_a_graph_are_known() {
    let box_ = "import imaplib\n\nclass Box:\n    def __init__(self):\n        self.mail = imaplib.IMAP4_SSL('h')\n\n    \
                def first(self):\n        return self.mail.fetch('1', '(RFC822)')\n";
    let graph = "from langgraph.graph import END, START, StateGraph\nfrom langchain_openai import ChatOpenAI\n\
                 from typing import TypedDict\nfrom box import Box\n\n\
                 class State(TypedDict):\n    mail: str\n    text: str\n\n\
                 class Nodes:\n    def __init__(self):\n        self.box = Box()\n\n    \
                 def read(self, state: State):\n        return {'mail': self.box.first()}\n\n    \
                 def write(self, state: State):\n        llm = ChatOpenAI(model='gpt-4o')\n        \
                 return {'text': llm.invoke(state['mail']).content}\n\n\
                 nodes = Nodes()\ngraph = StateGraph(State)\ngraph.add_node('read', nodes.read)\n\
                 graph.add_node('write', nodes.write)\ngraph.add_edge(START, 'read')\n\
                 graph.add_edge('read', 'write')\ngraph.add_edge('write', END)\napp = graph.compile()\n";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("box.py"), box_).unwrap();
    std::fs::write(dir.path().join("m.py"), graph).unwrap();
    let (_, out, _) = entail(dir.path(), &["audit", "--verbose"]);
    assert!(out.contains("reads mail (`imaplib.IMAP4_SSL.fetch` at box.py:8)"), "{out}");
}

/// Whoever has the address of a tunnel writes what a handler of the program is given.
#[test]
fn a_public_tunnel_makes_requests_a_source() {
    let text = |tunnel: &str| {
        format!(
            "{PAGE_AND_RUN}from agents import Agent, Runner, function_tool\nfrom flask import Flask, request\n\
             from pyngrok import ngrok\n\napp = Flask(__name__)\n\
             agent = Agent(name='a', model='gpt-4.1', instructions='Act.', tools=[function_tool(run)])\n\n\
             @app.route('/run', methods=['POST'])\ndef handle():\n    task = request.get_json().get('task')\n    \
             return Runner.run_sync(agent, task).final_output\n\nif __name__ == '__main__':\n    {tunnel}\n    app.run()\n"
        )
    };
    for (tunnel, paths) in [("ngrok.connect(5000)", "1 attack path"), ("print(5000)", "0 attack paths")] {
        let line = last_line(&[("m.py", text(tunnel))]);
        assert!(line.starts_with(&format!("{paths} in 1 program with 1 tool")), "{tunnel}: {line}");
    }
}

/// An answer that becomes a draft in a mailbox.
#[test]
fn a_draft_of_the_answer_is_an_end() {
    let draft = "import imaplib\n\ndef save(text):\n    mail = imaplib.IMAP4_SSL('h')\n    mail.login('a', 'b')\n    \
                 mail.append('Drafts', None, None, text.encode())\n    mail.logout()\n";
    let agent = format!(
        "{PAGE_AND_RUN}from agents import Agent, Runner, function_tool\nfrom draft import save\n\n\
         agent = Agent(name='a', model='gpt-4.1', instructions='Read.', tools=[function_tool(page)])\n\
         answer = Runner.run_sync(agent, input()).final_output\nsave(str(answer))\n"
    );
    let line = last_line(&[("draft.py", draft.into()), ("m.py", agent)]);
    assert!(line.starts_with("1 attack path in 1 program with 1 tool"), "{line}");
}

/// A call that is given an identifier, such as one that deletes a mail, is given no text.
#[test]
fn an_identifier_is_no_text() {
    let text = |given: &str| {
        format!(
            "{PAGE_AND_RUN}import imaplib\nfrom agents import Agent, Runner, function_tool\n\n\
             agent = Agent(name='a', model='gpt-4.1', instructions='Read.', tools=[function_tool(page)])\n\n\
             def main(mail, item):\n    item.text = Runner.run_sync(agent, input()).final_output\n    \
             box = imaplib.IMAP4('h')\n    box.store({given}, '+FLAGS', 'Deleted')\n"
        )
    };
    for (given, paths) in
        [("item.id", "0 attack paths"), ("item['id']", "0 attack paths"), ("item.text", "1 attack path")]
    {
        let line = last_line(&[("m.py", text(given))]);
        assert!(line.starts_with(&format!("{paths} in 1 program with 1 tool")), "{given}: {line}");
    }
}

/// Each class of a list has its own body, though all are made at one place.
#[test]
fn tools_that_are_made_of_a_list_of_classes_are_told_apart() {
    let class = |name: &str, body: &str| {
        format!(
            "class {name}(BaseTool):\n    name: str = '{name}_it'\n    description: str = 'Does.'\n\n    \
             def _run(self, text: str) -> str:\n        return {body}\n\n"
        )
    };
    let kit = format!(
        "{PAGE_AND_RUN}from langchain_core.tools import BaseTool\n\n{}{}ALL: list[type[BaseTool]] = [read, write]\n\n\
         class Kit:\n    def tools(self):\n        return [cls() for cls in ALL]\n",
        class("read", "page(text)"),
        class("write", "run(text)")
    );
    let agent = "from langgraph.prebuilt import create_react_agent\nfrom kit import Kit\n\n\
                 create_react_agent('openai:gpt-4o', tools=Kit().tools()).invoke({'messages': []})\n";
    let line = last_line(&[("kit.py", kit), ("m.py", agent.into())]);
    assert!(line.starts_with("2 attack paths in 1 program with 2 tools"), "{line}");
}

/// A server that the project has itself does what its functions do.
#[test]
fn tools_of_a_server_of_the_project_are_read() {
    let server = format!(
        "from mcp.server.fastmcp import FastMCP\n\nmcp = FastMCP('desk')\n\n{}",
        PAGE_AND_RUN.replace("def page", "@mcp.tool()\ndef page").replace("def run", "@mcp.tool()\ndef run")
    );
    let list = r#"{"mcpServers": {"desk": {"command": "python", "args": ["desk_server.py"]}}}"#;
    let line = last_line(&[("desk_server.py", server.clone()), (".mcp.json", list.into())]);
    assert!(line.starts_with("1 attack path in 1 program with 1 tool"), "{line}");
    let agent = "from pydantic_ai import Agent\nfrom pydantic_ai.mcp import MCPServerStdio\n\n\
                 agent = Agent('openai:gpt-4.1', toolsets=[MCPServerStdio('python', ['desk_server.py'])])\n";
    let line = last_line(&[("desk_server.py", server), ("m.py", agent.into())]);
    assert!(line.starts_with("1 attack path in 1 program with 1 tool"), "{line}");
}

/// Two agents with the same tools have the same paths.
#[test]
fn a_path_of_two_programs_is_one() {
    let text = format!(
        "{PAGE_AND_RUN}from langchain.agents import create_agent\n\
         one = create_agent('openai:gpt-4o', tools=[page, run], name='one')\n\
         two = create_agent('openai:gpt-4o', tools=[page, run], name='two')\n"
    );
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("m.py"), text).unwrap();
    let (_, out, _) = entail(dir.path(), &["audit"]);
    assert!(out.contains("2 attack paths in 2 programs") && out.contains("also in `two`"), "{out}");
}

#[test]
fn servers_that_are_switched_off_are_not_audited() {
    let list = |disabled: bool| {
        format!(
            r#"{{"mcpServers": {{"fetch": {{"command": "uvx", "args": ["mcp-server-fetch"], "disabled": false}},
            "filesystem": {{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/"],
            "disabled": {disabled}}}}}}}"#
        )
    };
    let line = last_line(&[(".mcp.json", list(true))]);
    assert!(line.starts_with("0 attack paths in 1 program with 1 tool"), "{line}");
    let line = last_line(&[(".mcp.json", list(false))]);
    assert!(!line.starts_with("0 attack paths"), "{line}");
}

/// Servers that do the same are one finding, and the paths are counted and listed one by one.
#[test]
fn a_list_of_many_servers_is_read_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = |i: usize| match i % 2 {
        0 => format!(r#""fetch{i}": {{"command": "uvx", "args": ["mcp-server-fetch"]}}"#),
        _ => format!(r#""slack{i}": {{"command": "npx", "args": ["@modelcontextprotocol/server-slack"]}}"#),
    };
    let servers: Vec<String> = (0..60).map(server).collect();
    let list = format!(r#"{{"mcpServers": {{{}}}}}"#, servers.join(","));
    std::fs::write(dir.path().join(".mcp.json"), list).unwrap();
    let (status, out, _) = entail(dir.path(), &["audit"]);
    assert_eq!(status, 1, "{out}");
    assert!(out.lines().count() < 100 && out.contains(" or 29 more: "), "{out}");
    assert!(!out.contains("left out") && !out.contains("too large"), "{out}");
    let (_, json, _) = entail(dir.path(), &["audit", "--format", "json"]);
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let program = &last["audit"]["programs"][0];
    assert_eq!(program["gaveUp"], Value::Null);
    let paths = program["paths"].as_array().unwrap().len();
    assert!(paths > 500 && program["morePaths"] == 0, "{paths}");
    assert!(out.contains(&format!("{paths} attack paths in 1 program")), "{out}");
}

#[test]
fn sarif_has_a_code_flow_that_ends_at_the_call() {
    let (_, out, _) = entail(&case("v05_handoff_to_mail"), &["audit", "--format", "sarif"]);
    let log: Value = serde_json::from_str(&out).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let leak = results.iter().find(|r| r["ruleId"] == "S302").unwrap();
    let steps = leak["codeFlows"][0]["threadFlows"][0]["locations"].as_array().unwrap();
    let line = |s: &Value| s["location"]["physicalLocation"]["region"]["startLine"].as_u64().unwrap();
    assert!(steps.len() >= 3, "{leak}");
    assert_eq!(
        Some(line(steps.last().unwrap())),
        leak["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64()
    );
}

#[test]
fn json_ends_with_the_programs() {
    let (_, out, _) = entail(&case("v10_page_to_payment"), &["audit", "--format", "json"]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    let program = &last["audit"]["programs"][0];
    assert_eq!(program["framework"], "autogen");
    let path = &program["paths"][0];
    assert_eq!((&path["source"]["name"], &path["sink"]["name"]), (&"read_bill".into(), &"transfer".into()));
    assert!(path["source"]["evidence"].as_str().unwrap().contains("httpx.AsyncClient.get"), "{path}");
    let tool = program["tools"].as_array().unwrap().iter().find(|t| t["name"] == "transfer").unwrap();
    assert_eq!(tool["knowledge"], "known");
    for format in ["mermaid", "dot", "github", "markdown"] {
        let (_, out, _) = entail(&case("v10_page_to_payment"), &["audit", "--format", format]);
        assert!(out.contains("transfer"), "{format}: {out}");
    }
}

#[test]
fn the_policy_is_accepted_and_refuses_the_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(case("v05_handoff_to_mail").join("desk.py"), dir.path().join("desk.py")).unwrap();
    let write = ["audit", "--policy-out", "policy.toml"];
    assert_eq!(entail(dir.path(), &write).0, 1);
    let text = std::fs::read_to_string(dir.path().join("policy.toml")).unwrap();
    assert!(
        text.contains("effect = \"write\"  # guessed: `smtplib.SMTP.send_message` at desk.py:"),
        "{text}"
    );
    // A file that is there may hold decisions.
    assert_eq!(entail(dir.path(), &write).0, 2);
    let check = ["check", "--show", "flow", "--policy", "policy.toml", "desk.py"];
    let (_, out, err) = entail(dir.path(), &check);
    let of = |tool: &str| {
        let named = format!("the tool `{tool}`: ");
        out.lines().find(|l| l.starts_with("  desk.py:") && l.contains(&named)).unwrap_or("")
    };
    assert!(of("write_to").ends_with("depends"), "{out}{err}");
    assert!(of("open_link").contains("always allowed") || of("open_link").ends_with("depends"), "{out}");
    assert!(of("customer").contains("always allowed"), "{out}");
}

/// A table with the name of a server is about none of its tools.
#[test]
fn a_server_whose_tools_are_not_known_gets_no_table() {
    let dir = tempfile::tempdir().unwrap();
    let list = r#"{"mcpServers": {
        "ours": {"command": "python3", "args": ["ours.py"]},
        "fetch": {"command": "uvx", "args": ["mcp-server-fetch==2025.4.7"]}
    }}"#;
    std::fs::write(dir.path().join("mcp.json"), list).unwrap();
    entail(dir.path(), &["audit", "mcp.json", "--policy-out", "policy.toml"]);
    let text = std::fs::read_to_string(dir.path().join("policy.toml")).unwrap();
    assert!(text.contains("# ours: mcp.json:2:") && text.contains("entail guard --approve"), "{text}");
    assert!(!text.contains("[tools.ours]") && text.contains("[tools.fetch]"), "{text}");
}

/// Names of both ends of a path; each end has alternatives.
struct Expected {
    source: Vec<String>,
    sink: Vec<String>,
}

/// Names without case and underscores.
fn plain(name: &str) -> String {
    name.to_lowercase().replace('_', "")
}

fn expected(case: &Value, key: &str) -> Vec<Expected> {
    let names = |side: &str| side.split(" | ").map(plain).collect();
    let read = |text: &Value| {
        let (source, sink) = text.as_str().unwrap().split_once(" -> ").unwrap();
        Expected { source: names(source), sink: names(sink) }
    };
    case[key].as_array().into_iter().flatten().map(read).collect()
}

/// Paths that are not found, each with the reason.
const MISSED: &[(&str, &str)] = &[];

/// Each project of `suite/audit` with its name and what is expected.
fn cases() -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(case("..").join("cases.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let cases = all["cases"].as_object().unwrap();
    cases.iter().map(|(name, case)| (name.clone(), case.clone())).collect()
}

fn programs(name: &str) -> Vec<Value> {
    let (_, out, err) = entail(&case(name), &["audit", "--format", "json"]);
    let last: Value =
        serde_json::from_str(out.lines().last().unwrap_or_else(|| panic!("{name}: {err}"))).unwrap();
    last["audit"]["programs"].as_array().unwrap().clone()
}

#[test]
fn the_paths_of_the_suite_are_found_with_evidence() {
    let (mut count, mut reported) = (0, 0);
    let (mut missed, mut wrong) = (Vec::new(), Vec::new());
    for (name, case) in cases() {
        let programs = programs(&name);
        assert!(!programs.is_empty(), "{name}: nothing is read");
        let mut found: Vec<(String, String)> = Vec::new();
        for path in programs.iter().flat_map(|p| p["paths"].as_array().unwrap()) {
            for step in
                [&path["source"], &path["sink"], &path["private"]].into_iter().filter(|s| !s.is_null())
            {
                // A place in a file, or an entry of the registry with its source and date.
                let evidence = step["evidence"].as_str().unwrap();
                let is_placed = evidence.contains(" at ") && evidence.contains(':');
                let is_entry = evidence.starts_with("registry: ") && evidence.contains("https://");
                assert!(is_placed || is_entry || evidence.contains(" says "), "{name}: {step}");
                assert!(!step["place"].as_str().unwrap().starts_with('?'), "{name}: {step}");
            }
            if path["userIsAsked"] == false {
                let end = |end: &str| plain(path[end]["name"].as_str().unwrap());
                found.push((end("source"), end("sink")));
            }
        }
        found.sort();
        found.dedup();
        reported += found.len();
        let (paths, either) = (expected(&case, "paths"), expected(&case, "either"));
        let is = |e: &Expected, f: &(String, String)| e.source.contains(&f.0) && e.sink.contains(&f.1);
        for path in &paths {
            count += 1;
            if !found.iter().any(|f| is(path, f)) {
                missed.push(format!("{name}: {:?} -> {:?}", path.source, path.sink));
            }
        }
        let false_ones = found.iter().filter(|f| !paths.iter().chain(&either).any(|e| is(e, f)));
        wrong.extend(false_ones.map(|f| format!("{name}: {} -> {}", f.0, f.1)));
    }
    let summary = format!("of {count} paths missed: {missed:#?}, of {reported} reported false: {wrong:#?}");
    assert!(wrong.is_empty(), "{summary}");
    let known = |m: &String| MISSED.iter().any(|(path, _)| m.starts_with(path));
    assert!(missed.iter().all(known) && missed.len() == MISSED.len(), "{summary}");
}

#[test]
fn each_policy_is_one_and_its_lines_name_their_evidence() {
    let dir = tempfile::tempdir().unwrap();
    for (name, _) in cases() {
        let file = dir.path().join(format!("{name}.toml"));
        entail(&case(&name), &["audit", "--policy-out", file.to_str().unwrap()]);
        let text = std::fs::read_to_string(&file).unwrap();
        let policy = policy::Policy::parse(diagnostics::FileId(0), &text);
        assert!(policy.is_ok(), "{name}: {text}\n{:?}", policy.err());
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with(['#', '['])) {
            assert!(line.contains("# guessed: ") || line == "approve = true", "{name}: {line}");
        }
    }
}

/// A server that is not documented says what its tools do where it is asked: by its hints.
#[cfg(all(unix, feature = "mcp"))]
#[test]
fn servers_are_asked_what_they_offer() {
    let dir = tempfile::tempdir().unwrap();
    let server = r#"
import json, sys
def tool(name, **hints):
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": hints}
tools = [tool("frob", readOnlyHint=True, openWorldHint=True), tool("blorb", readOnlyHint=False, destructiveHint=True), tool("zorp")]
for line in sys.stdin:
    request = json.loads(line)
    result = {"tools": tools}
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;
    std::fs::write(dir.path().join("server.py"), server).unwrap();
    let list = r#"{"mcpServers": {"ours": {"command": "python3", "args": ["server.py"]}, "gone": {"command": "./none"}}}"#;
    std::fs::write(dir.path().join(".mcp.json"), list).unwrap();
    let (status, out, _) = entail(dir.path(), &["audit", "."]);
    assert!(status == 0 && out.contains("0 attack paths"), "{out}");
    let (_, out, err) = entail(dir.path(), &["audit", "--ask-servers", "."]);
    assert!(out.contains("S303") && out.contains("`frob`") && out.contains("`blorb`"), "{out}{err}");
    assert!(err.contains("`gone` does not say"), "{err}");
    let (_, out, _) = entail(dir.path(), &["audit", "--ask-servers", "--format", "json", "."]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert!(last.to_string().contains("openWorldHint"), "{last}");
}

/// Whatever wraps a function of the project is a tool that does what the function does, by its own name.
#[test]
fn a_call_that_wraps_a_function_is_a_tool_of_it() {
    let agent = "import subprocess\nimport requests\nfrom google.adk.agents import Agent\nfrom google.adk.tools import FunctionTool\n\n\
        def page(url: str) -> str:\n    return requests.get(url).text\n\n\
        def run(command: str) -> str:\n    return subprocess.run(command, shell=True, text=True).stdout\n\n\
        tools = [\n    FunctionTool.from_defaults(name=\"page\", func=page),\n    \
        FunctionTool.from_defaults(name=\"run\", func=run),\n]\n\
        root_agent = Agent(name=\"a\", model=\"gemini-2.0-flash\", tools=tools)\n";
    let line = last_line(&[("agent.py", agent.into())]);
    assert_eq!(line, "2 attack paths in 1 program with 2 tools");
}

/// A class that is handed to a class of the project, which makes the agent.
#[test]
fn an_agent_whose_class_is_handed_over_is_one() {
    let member = "class Member:\n    def __init__(self, name, kind, model, tools):\n        self.name = name\n        \
        self.inner = kind(tools=tools, model=model)\n\n    def run(self, task):\n        return self.inner.run(task)\n";
    let main = "from smolagents import CodeAgent, DuckDuckGoSearchTool, InferenceClientModel\nfrom member import Member\n\n\
        writer = Member(\"w\", kind=CodeAgent, model=InferenceClientModel(), tools=[DuckDuckGoSearchTool()])\n\
        writer.run(\"x\")\n";
    let line = last_line(&[("member.py", member.into()), ("main.py", main.into())]);
    assert!(line.starts_with("1 attack path in 1 program"), "{line}");
}
