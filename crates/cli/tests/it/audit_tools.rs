//! `entail audit`: the ways in which programs give tools to their agents.

use crate::program;
use serde_json::Value;

/// A framework: what it imports, the decorator of a tool, and an agent with a list of tools.
struct Host {
    imports: &'static str,
    decorator: &'static str,
    agent: &'static str,
}

const HOSTS: &[Host] = &[
    Host {
        imports: "from agents import Agent, Runner, function_tool",
        decorator: "@function_tool\n",
        agent: "Agent(name='a', instructions='Do.', model='gpt-4.1', tools=TOOLS)",
    },
    Host {
        imports: "from langchain.agents import create_agent\nfrom langchain_core.tools import tool",
        decorator: "@tool\n",
        agent: "create_agent('openai:gpt-4o', tools=TOOLS)",
    },
    Host {
        imports: "from google.adk.agents import Agent",
        decorator: "",
        agent: "Agent(name='a', model='gemini-2.0-flash', instruction='Do.', tools=TOOLS)",
    },
    Host {
        imports: "from crewai import Agent, Crew, Task\nfrom crewai.tools import tool",
        decorator: "@tool\n",
        agent: "Agent(role='r', goal='g', backstory='b', llm='gpt-4o', tools=TOOLS)",
    },
    Host {
        imports: "from autogen_agentchat.agents import AssistantAgent\n\
                  from autogen_ext.models.openai import OpenAIChatCompletionClient",
        decorator: "",
        agent: "AssistantAgent('a', model_client=OpenAIChatCompletionClient(model='gpt-4o'), tools=TOOLS)",
    },
    Host {
        imports: "from pydantic_ai import Agent",
        decorator: "",
        agent: "Agent('openai:gpt-4.1', tools=TOOLS)",
    },
    Host {
        imports: "from smolagents import ToolCallingAgent, LiteLLMModel, tool",
        decorator: "@tool\n",
        agent: "ToolCallingAgent(tools=TOOLS, model=LiteLLMModel(model_id='gpt-4o'))",
    },
    Host {
        imports: "from llama_index.core.agent.workflow import FunctionAgent\n\
                  from llama_index.llms.openai import OpenAI",
        decorator: "",
        agent: "FunctionAgent(name='a', tools=TOOLS, llm=OpenAI(model='gpt-4o'), system_prompt='Do.')",
    },
];

/// Programs with an agent: `AGENT(x)` is one with the tools `x`. `ACT` is a tool that runs commands.
const IDIOMS: &[(&str, &str)] = &[
    ("a list of a function", "def make_tools():\n    return [page, ACT]\n\nagent = AGENT(make_tools())\n"),
    (
        "a list of an asynchronous function, with what closes it",
        "async def make_tools():\n    return [page, ACT], stack\n\n\
         async def main():\n    tools, closing = await make_tools()\n    return AGENT(tools)\n",
    ),
    (
        "a generator",
        "def make_tools():\n    yield page\n    yield ACT\n\nagent = AGENT(list(make_tools()))\n",
    ),
    ("two lists joined", "READ = [page]\nMORE = (ACT,)\nagent = AGENT([*READ, *MORE])\n"),
    ("groups joined", "GROUPS = {'r': [page], 'x': [ACT]}\nagent = AGENT(sum(GROUPS.values(), []))\n"),
    (
        "names of a configuration",
        "import yaml\nTOOLS = {'page': page, 'act': ACT}\n\
         config = yaml.safe_load(open('config.yaml'))\n\
         agent = AGENT([TOOLS[name] for name in config['tools']])\n",
    ),
    (
        "names of a caller",
        "def chosen(names):\n    known = {'page': page, 'act': ACT}\n    \
         return [known[n] for n in names if n in known]\n\n\
         def build(names):\n    return AGENT(chosen(names))\n",
    ),
    (
        "names that may not be known",
        "TOOLS = {'page': page, 'act': ACT}\n\n\
         def build(names):\n    chosen = [TOOLS.get(n) for n in names]\n    return AGENT([t for t in chosen if t])\n",
    ),
    (
        "a group by a name",
        "GROUPS = {'r': [page], 'x': [page, ACT]}\n\ndef build(kind):\n    return AGENT(GROUPS.get(kind, []))\n",
    ),
    (
        "one of two lists",
        "def build(mode):\n    if mode == 'read':\n        tools = [page]\n    else:\n        \
         tools = [page, ACT]\n    return AGENT(tools)\n",
    ),
    (
        "a list that grows on a condition",
        "tools = [page]\nif os.getenv('ACT'):\n    tools.append(ACT)\nagent = AGENT(tools)\n",
    ),
    (
        "a list that callers extend",
        "def build(more=None):\n    tools = [page, ACT]\n    if more:\n        tools.extend(more)\n    \
         return AGENT(tools)\n",
    ),
    (
        "an attribute of an instance",
        "class Desk:\n    def __init__(self):\n        self.tools = self.make_tools()\n\n    \
         def make_tools(self):\n        return [page, ACT]\n\n    def build(self):\n        return AGENT(self.tools)\n",
    ),
    (
        "a registry of instances",
        "class Registry:\n    def __init__(self):\n        self.known = {}\n\n    \
         def register(self, name, t):\n        self.known[name] = t\n\n    \
         def all(self):\n        return list(self.known.values())\n\n\
         registry = Registry()\nregistry.register('page', page)\nregistry.register('act', ACT)\n\
         agent = AGENT(registry.all())\n",
    ),
    (
        "a method that a class of the project overrides",
        "class Base:\n    def get_tools(self):\n        return []\n\n    \
         def build(self):\n        return AGENT(self.get_tools())\n\n\
         class Desk(Base):\n    def get_tools(self):\n        return [page, ACT]\n",
    ),
    (
        "a constructor of a base class",
        "class Base:\n    def __init__(self, name, tools):\n        self.agent = AGENT(tools)\n\n\
         class Desk(Base):\n    def __init__(self):\n        super().__init__('desk', [page, ACT])\n",
    ),
    (
        "a factory that is called twice",
        "def make(tools):\n    return AGENT(tools)\n\nreader = make([page])\nactor = make([page, ACT])\n",
    ),
];

const HEAD: &str = "import os\nimport subprocess\nimport requests\n";

fn text(host: &Host, body: &str) -> String {
    let Host { imports, decorator, .. } = host;
    format!(
        "{HEAD}{imports}\n\n{decorator}def page(url: str) -> str:\n    \"\"\"Reads a page.\"\"\"\n    \
         return requests.get(url).text\n\n\
         {decorator}def run(command: str) -> str:\n    \"\"\"Runs a command.\"\"\"\n    \
         return str(subprocess.run(command, shell=True))\n\n\
         {decorator}def size(text: str) -> int:\n    \"\"\"Measures a text.\"\"\"\n    return len(text)\n\n{body}"
    )
}

/// The programs of an audit of these files.
pub(crate) fn audit(files: &[(&str, impl AsRef<str>)]) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.as_ref()).unwrap();
    }
    let (_, out, err) = program::ran(&mut program::entail(dir.path(), &["audit", "--format", "json"]));
    let last: Value = serde_json::from_str(out.lines().last().unwrap_or_else(|| panic!("{err}"))).unwrap();
    last["audit"]["programs"].as_array().unwrap_or_else(|| panic!("{out}{err}")).clone()
}

/// Number of paths by which outsiders run commands with `run`.
fn paths_to_run(programs: &[Value]) -> usize {
    let paths = programs.iter().flat_map(|p| p["paths"].as_array().unwrap());
    paths.filter(|p| p["kind"] == "runs" && p["source"]["name"] != "run").count()
}

/// Names of tools of which nothing is known, each with its place.
fn unknown(programs: &[Value]) -> Vec<(String, String)> {
    let tools = programs.iter().flat_map(|p| p["tools"].as_array().unwrap());
    let unknown = tools.filter(|t| t["knowledge"] == "unknown" && t["declared"] == false);
    let text = |v: &Value| v.as_str().unwrap().to_string();
    unknown.map(|t| (text(&t["name"]), text(&t["place"]))).collect()
}

#[test]
fn tools_are_followed_to_where_they_are_made() {
    for host in HOSTS {
        for (name, idiom) in IDIOMS {
            // `AGENT(x)` becomes the agent with `x` for its tools.
            let mut body = String::new();
            let mut rest = *idiom;
            while let Some((before, after)) = rest.split_once("AGENT(") {
                let mut open = 1;
                let end = after.find(|c| {
                    open += i32::from(c == '(') - i32::from(c == ')');
                    open == 0
                });
                let end = end.unwrap();
                body.push_str(before);
                body.push_str(&host.agent.replace("TOOLS", &after[..end]));
                rest = &after[end + 1..];
            }
            body.push_str(rest);
            let of = |act: &str| audit(&[("m.py", text(host, &body.replace("ACT", act)))]);
            assert!(paths_to_run(&of("run")) > 0, "{}: {name}", host.imports);
            // The same with a tool that does nothing.
            let clean = of("size");
            let paths: usize = clean.iter().map(|p| p["paths"].as_array().unwrap().len()).sum();
            assert_eq!(paths, 0, "{}: {name}: {clean:?}", host.imports);
        }
    }
}

#[test]
fn methods_and_functions_that_register_themselves_are_tools() {
    for host in HOSTS.iter().filter(|h| !h.imports.contains("autogen")) {
        let wrap = match host.decorator.trim().strip_prefix('@') {
            Some(decorator) => format!("{decorator}(f)"),
            None => "f".to_string(),
        };
        let Host { imports, agent, .. } = host;
        let registered = format!(
            "{HEAD}{imports}\n\nKNOWN = []\n\ndef register(f):\n    KNOWN.append({wrap})\n    return f\n\n\
             @register\ndef page(url: str) -> str:\n    return requests.get(url).text\n\n\
             @register\ndef run(command: str) -> str:\n    return str(subprocess.run(command, shell=True))\n\n\
             agent = {}\n",
            agent.replace("TOOLS", "KNOWN")
        );
        let listed =
            format!("[{}, {}]", wrap.replace("(f)", "(self.page)"), wrap.replace("(f)", "(self.run)"));
        let listed = if wrap == "f" { "[self.page, self.run]".to_string() } else { listed };
        let methods = format!(
            "{HEAD}{imports}\n\nclass Kit:\n    def __init__(self, session=None):\n        \
             self.session = session or requests.Session()\n\n    \
             def page(self, url: str) -> str:\n        return self.session.get(url).text\n\n    \
             def run(self, command: str) -> str:\n        return str(subprocess.run(command, shell=True))\n\n    \
             def get_tools(self):\n        return {listed}\n\nagent = {}\n",
            agent.replace("TOOLS", "Kit().get_tools()")
        );
        for text in [registered, methods] {
            assert!(paths_to_run(&audit(&[("m.py", text.clone())])) > 0, "{text}");
        }
    }
}

const RUN: &str = "import os, sys, json, yaml, subprocess\nfrom pathlib import Path\n\n\
                   def run(command: str) -> str:\n    \"\"\"Runs a command.\"\"\"\n    \
                   return str(subprocess.run(command, shell=True))\n\n";
const CLIENT: &str = "from langchain_mcp_adapters.client import MultiServerMCPClient\n\
                      from langgraph.prebuilt import create_react_agent\n";
const LIST: &str = r#"{"mcpServers": {"fetch": {"command": "uvx", "args": ["mcp-server-fetch"]}}}"#;

/// A program with an agent that has the tools of a client of servers, and `run`.
fn of_client(servers: &str) -> String {
    format!(
        "{CLIENT}{RUN}async def main():\n    client = MultiServerMCPClient({servers})\n    \
         tools = await client.get_tools()\n    \
         return create_react_agent('openai:gpt-4o', tools + [run])\n"
    )
}

#[test]
fn servers_of_a_configuration_are_known() {
    let list = ("mcp.json", LIST.to_string());
    let own = |port: u16| {
        format!(
            "import httpx\nfrom fastmcp import FastMCP\nmcp = FastMCP('web')\n\n\
             @mcp.tool\ndef page(url: str) -> str:\n    return httpx.get(url).text\n\n\
             mcp.run(transport='http', port={port})\n"
        )
    };
    let yaml = "mcp:\n  servers:\n    fetch:\n      command: uvx\n      args: [mcp-server-fetch]\n";
    let by_name = "servers:\n  web: http://localhost:8932/mcp\n";
    let cases: &[(&str, Option<(&str, String)>)] = &[
        ("{'fetch': {'command': 'uvx', 'args': ['mcp-server-fetch'], 'transport': 'stdio'}}", None),
        ("json.load(open('mcp.json'))['mcpServers']", Some(list.clone())),
        ("json.loads((Path(__file__).parent / 'mcp.json').read_text())['mcpServers']", Some(list)),
        ("yaml.safe_load(open('config.yaml'))['mcp']['servers']", Some(("config.yaml", yaml.into()))),
        (
            "{n: {'url': u} for n, u in yaml.safe_load(open('servers.yaml'))['servers'].items()}",
            Some(("servers.yaml", by_name.into())),
        ),
        ("{'web': {'url': os.getenv('WEB', 'http://localhost:8932/mcp')}}", None),
        (
            "{'web': {'command': sys.executable, 'args': [str(Path(__file__).parent / 'servers' / 'web_server.py')]}}",
            None,
        ),
        ("{'web': {'command': 'python', 'args': ['-m', 'servers.web_server']}}", None),
    ];
    for (servers, file) in cases {
        let mut files = vec![("m.py", of_client(servers)), ("servers/web_server.py", own(8932))];
        files.extend(file.clone());
        assert_eq!(paths_to_run(&audit(&files)), 1, "{servers}");
    }
    // A server at another port is not this one, and the tools are not known.
    let files =
        [("m.py", of_client("{'web': {'url': 'http://localhost:8932/mcp'}}")), ("web_server.py", own(8933))];
    let programs = audit(&files);
    assert_eq!(paths_to_run(&programs), 0, "{programs:?}");
    assert_eq!(unknown(&programs).len(), 1, "{programs:?}");
}

#[test]
fn tools_of_servers_are_known_however_they_are_got() {
    let parameters = "from mcp import ClientSession, StdioServerParameters\n\
                      from mcp.client.stdio import stdio_client\n\
                      params = StdioServerParameters(command='uvx', args=['mcp-server-fetch'])\n\n";
    let session = format!(
        "{CLIENT}from langchain_mcp_adapters.tools import load_mcp_tools\n{parameters}{RUN}async def main():\n    \
         async with stdio_client(params) as (read, write):\n        \
         async with ClientSession(read, write) as session:\n            \
         tools = await load_mcp_tools(session)\n            \
         return create_react_agent('openai:gpt-4o', [run, *tools])\n"
    );
    let selected = format!(
        "{CLIENT}{RUN}async def main():\n    \
         client = MultiServerMCPClient({{'fetch': {{'command': 'uvx', 'args': ['mcp-server-fetch']}}}})\n    \
         tools = [t for t in await client.get_tools() if t.name == 'fetch']\n    tools.append(run)\n    \
         return create_react_agent('openai:gpt-4o', tools)\n"
    );
    let crew = format!(
        "from crewai import Agent\nfrom crewai.tools import tool\nfrom crewai_tools import MCPServerAdapter\n\
         {parameters}{RUN}with MCPServerAdapter(params) as tools:\n    \
         a = Agent(role='r', goal='g', backstory='b', llm='gpt-4o', tools=[*tools, tool('run')(run)])\n"
    );
    let adk = format!(
        "from google.adk.agents import LlmAgent\n\
         from google.adk.tools.mcp_tool.mcp_toolset import MCPToolset, StdioServerParameters\n\n{RUN}\
         async def create():\n    tools, stack = await MCPToolset.from_server(\n        \
         connection_params=StdioServerParameters(command='uvx', args=['mcp-server-fetch']))\n    \
         return LlmAgent(name='a', model='gemini-2.0-flash', instruction='i', tools=[run, *tools])\n"
    );
    let autogen = format!(
        "from autogen_agentchat.agents import AssistantAgent\n\
         from autogen_ext.models.openai import OpenAIChatCompletionClient\n\
         from autogen_ext.tools.mcp import StdioServerParams, mcp_server_tools\n\n{RUN}\
         async def main():\n    tools = await mcp_server_tools(StdioServerParams(command='uvx', args=['mcp-server-fetch']))\n    \
         return AssistantAgent('a', model_client=OpenAIChatCompletionClient(model='gpt-4o'), tools=[run, *tools])\n"
    );
    let smolagents = format!(
        "from smolagents import ToolCallingAgent, MCPClient, LiteLLMModel, tool\n{parameters}{RUN}\
         with MCPClient(params) as tools:\n    \
         agent = ToolCallingAgent(tools=[*tools, tool(run)], model=LiteLLMModel(model_id='x'))\n"
    );
    let llama = format!(
        "from llama_index.tools.mcp import BasicMCPClient, McpToolSpec\n\
         from llama_index.core.agent.workflow import FunctionAgent\n\
         from llama_index.llms.openai import OpenAI\n\n{RUN}async def main():\n    \
         tools = await McpToolSpec(client=BasicMCPClient('uvx', args=['mcp-server-fetch'])).to_tool_list_async()\n    \
         return FunctionAgent(name='a', tools=tools + [run], llm=OpenAI(model='gpt-4o'))\n"
    );
    for text in [session, selected, crew, adk, autogen, smolagents, llama] {
        let programs = audit(&[("m.py", text.clone())]);
        assert!(paths_to_run(&programs) > 0, "{text}\n{programs:?}");
    }
}

#[test]
fn toolkits_are_known_beside_other_tools() {
    let agent = "agent = create_agent('openai:gpt-4o', tools=tools)\n";
    let head = format!("from langchain.agents import create_agent\n{RUN}");
    let toolkit = format!(
        "from langchain_google_community import GmailToolkit\n{head}\
         tools = GmailToolkit().get_tools()\ntools.append(run)\n{agent}"
    );
    let browser = format!(
        "from langchain_community.agent_toolkits import PlayWrightBrowserToolkit\n{head}\
         tools = PlayWrightBrowserToolkit.from_browser(async_browser=b).get_tools() + [run]\n{agent}"
    );
    let by_name = format!(
        "from langchain_community.agent_toolkits.load_tools import load_tools\n{head}\
         tools = load_tools(['serpapi', 'llm-math']) + [run]\n{agent}"
    );
    for text in [toolkit, browser, by_name] {
        let programs = audit(&[("m.py", text.clone())]);
        assert!(paths_to_run(&programs) > 0, "{text}\n{programs:?}");
    }
}

/// An agent of which not all tools are known says so, at the place where they come from.
#[test]
fn tools_that_are_not_known_are_listed() {
    for host in HOSTS {
        for tools in
            ["more()", "[page, *more()]", "[page] + more()", "[t for t in more() if t.name in NAMES]"]
        {
            let body = format!(
                "from somewhere import more, NAMES\n\nagent = {}\n",
                host.agent.replace("TOOLS", tools)
            );
            let text = text(host, &body);
            let line = text.lines().position(|l| l.starts_with("agent = ")).unwrap() + 1;
            let unknown = unknown(&audit(&[("m.py", text.clone())]));
            let place = format!("m.py:{line}:");
            assert!(
                unknown.iter().any(|(_, at)| at.starts_with(&place)),
                "{}: {tools}: {unknown:?}",
                host.imports
            );
        }
    }
}

/// A capability of pydantic-ai has tools, and the client comes with the run.
#[test]
fn tools_of_a_capability_are_those_of_the_agent() {
    let text = "from typing import Any\nfrom dataclasses import dataclass\n\
                from pydantic_ai import Agent, RunContext\nfrom pydantic_ai.capabilities import Capability\n\n\
                @dataclass\nclass Deps:\n    service: Any\n\nmail = Capability(id='mail', instructions='Mail.')\n\n\
                @mail.tool\nasync def read(ctx: RunContext[Deps]) -> str:\n    \
                return str(ctx.deps.service.users().messages().list(userId='me').execute())\n\n\
                @mail.tool\nasync def answer(ctx: RunContext[Deps], to: str, text: str) -> str:\n    \
                return ctx.deps.service.users().messages().send(userId='me', body={'raw': text}).execute()\n\n\
                agent = Agent('openai:gpt-4.1', deps_type=Deps, capabilities=[mail])\n";
    let programs = audit(&[("m.py", text.to_string())]);
    let leaks = programs[0]["paths"]
        .as_array()
        .unwrap()
        .iter()
        .any(|p| p["kind"] == "leaks" && p["source"]["name"] == "read" && p["sink"]["name"] == "answer");
    assert!(leaks, "{programs:?}");
}

/// A folder `agents` of the project is not the package of that name.
#[test]
fn agents_of_a_folder_of_that_name_are_read() {
    let reader = "from smolagents import CodeAgent, DuckDuckGoSearchTool\n\n\
                  def build_reader_agent():\n    \
                  return CodeAgent(tools=[DuckDuckGoSearchTool()], model=m, name='reader', description='Reads.')\n";
    let editor = "from smolagents import CodeAgent\nfrom agents.reader import build_reader_agent\n\n\
                  def build_editor_agent():\n    reader = build_reader_agent()\n    \
                  return CodeAgent(tools=[], model=m, managed_agents=[reader], name='editor')\n";
    let programs = audit(&[
        ("agents/__init__.py", String::new()),
        ("agents/reader.py", reader.into()),
        ("agents/editor.py", editor.into()),
    ]);
    let editor = programs.iter().find(|p| p["name"] == "editor").unwrap();
    assert_eq!(editor["path"], "agents/editor.py", "{programs:?}");
    assert!(!editor["paths"].as_array().unwrap().is_empty(), "{programs:?}");
}

/// Tools that a framework brings are not those of a client among the arguments of the agent.
#[test]
fn tools_that_a_deep_agent_brings_have_their_own_names() {
    let text = "from deepagents import create_deep_agent\n\
                from langchain_mcp_adapters.client import MultiServerMCPClient\n\n\
                async def build():\n    \
                client = MultiServerMCPClient({'fetch': {'command': 'uvx', 'args': ['mcp-server-fetch']}})\n    \
                tools = await client.get_tools()\n    \
                return create_deep_agent(model='openai:gpt-4o', tools=tools, system_prompt='Look.')\n";
    let programs = audit(&[("m.py", text.to_string())]);
    let tools = programs[0]["tools"].as_array().unwrap();
    let server = |name: &str| tools.iter().find(|t| t["name"] == name).map(|t| t["server"].clone());
    assert_eq!(server("write_file"), Some(Value::Null), "{tools:?}");
}
