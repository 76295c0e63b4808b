//! The same function bodies in several frameworks: how often they may ask a model, and what is unknown.
//!
//! A body is written once, with `ASK(e)` for a question and `RETURN(e)` for the result, and put into a
//! program of each framework. The table is a part of `docs/function-bodies.md`.
//!
//! `UPDATE_EXPECTED=1 cargo test -p lint --test it bodies::` writes the table anew.

use analysis::cost;
use core_ir::Term;
use diagnostics::FileId;
use frontend_kit::doc::Limits;
use frontend_kit::{Compiled, File, Project};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A body of a function of the text `x`, whose result is `y`.
struct Body {
    name: &'static str,
    /// Its lines, without the last `RETURN(y)`.
    text: &'static str,
    /// A helper function beside it.
    helper: &'static str,
    /// Largest number of questions that a run asks; `None` for no limit.
    most: Option<u64>,
}

const fn body(name: &'static str, text: &'static str, most: Option<u64>) -> Body {
    Body { name, text, helper: "", most }
}

const BODIES: &[Body] = &[
    body("one question", "y = ASK(x)", Some(1)),
    body("one after the other", "y = ASK(x)\ny = ASK(y)", Some(2)),
    body("a template", "y = ASK(f'Say {x} again.')", Some(1)),
    body(
        "`if` with `else`",
        "if 'yes' in x:\n    y = ASK(x)\nelse:\n    y = ASK(x)\n    y = ASK(y)",
        Some(2),
    ),
    body(
        "`elif`",
        "if 'a' in x:\n    y = ASK('a')\nelif 'b' in x:\n    y = ASK('b')\nelse:\n    y = x",
        Some(1),
    ),
    body("an early `return`", "if x == '':\n    RETURN(x)\ny = ASK(x)", Some(1)),
    body("a conditional expression", "y = ASK(x) if 'a' in x else x", Some(1)),
    body("`and` with a question", "y = x\nif 'a' in x and 'b' in ASK(x):\n    y = 'both'", Some(1)),
    body("`for` over `range`", "y = x\nfor i in range(3):\n    y = ASK(y)", Some(3)),
    body("`for` over a list", "y = x\nfor w in ['a', 'b']:\n    y = ASK(w + y)", Some(2)),
    body(
        "`for` with `break`",
        "y = x\nfor i in range(5):\n    y = ASK(y)\n    if 'ok' in y:\n        break",
        Some(5),
    ),
    body(
        "`for` with `continue`",
        "y = x\nfor i in range(4):\n    if 'skip' in y:\n        continue\n    y = ASK(y)",
        Some(4),
    ),
    body("nested `for`", "y = x\nfor i in range(2):\n    for j in range(3):\n        y = ASK(y)", Some(6)),
    body("`while` with a counter", "y = x\ni = 0\nwhile i < 3:\n    y = ASK(y)\n    i += 1", Some(3)),
    body(
        "`while True` with a counter",
        "y = x\nn = 0\nwhile True:\n    n += 1\n    y = ASK(y)\n    if n >= 3:\n        break",
        Some(3),
    ),
    body("`while` on a text", "y = x\nwhile 'stop' not in y:\n    y = ASK(y)", None),
    body("`try`", "try:\n    y = ASK(x)\nexcept Exception:\n    y = ASK('again')", Some(2)),
    body(
        "tries",
        "y = x\nfor i in range(3):\n    try:\n        y = ASK(x)\n        break\n    except Exception:\n        continue",
        Some(3),
    ),
    body(
        "a list that grows",
        "notes = []\nfor i in range(2):\n    notes.append(ASK(x))\ny = ' '.join(notes)",
        Some(2),
    ),
    body("a comprehension", "y = ' '.join([ASK(w) for w in ['a', 'b', 'c']])", Some(3)),
    body("a dictionary", "d = {'k': ASK(x)}\ny = d['k']", Some(1)),
    Body {
        name: "a helper",
        text: "y = CALL(twice(x))",
        helper: "DEF twice(t):\n    t = ASK(t)\n    return ASK(t)\n",
        most: Some(2),
    },
];

/// A framework: how a question is written, and the program around a body.
struct Host {
    name: &'static str,
    ask: &'static str,
    /// True if functions that ask are `async`.
    is_async: bool,
    result: &'static str,
    /// Indentation of the body.
    indent: usize,
    program: &'static str,
}

const HOSTS: &[Host] = &[
    Host {
        name: "LangGraph",
        ask: "llm.invoke(E).content",
        is_async: false,
        result: "return {'x': E}",
        indent: 4,
        program: "from typing import TypedDict\nfrom langchain_openai import ChatOpenAI\nfrom langgraph.graph import END, START, StateGraph\n\
                  llm = ChatOpenAI(model='m')\nclass S(TypedDict):\n    x: str\nHELPER\ndef run(state: S):\n    x = state['x']\nBODY\n\
                  g = StateGraph(S)\ng.add_node('run', run)\ng.add_edge(START, 'run')\ng.add_edge('run', END)\ng.compile().invoke({'x': 'q'})\n",
    },
    Host {
        name: "LangChain",
        ask: "llm.invoke(E).content",
        is_async: false,
        result: "return E",
        indent: 4,
        program: "from langchain_core.output_parsers import StrOutputParser\nfrom langchain_core.runnables import RunnableLambda\n\
                  from langchain_openai import ChatOpenAI\nllm = ChatOpenAI(model='m')\nHELPER\ndef run(x):\nBODY\n\
                  chain = RunnableLambda(run) | StrOutputParser()\nchain.invoke('q')\n",
    },
    Host {
        name: "OpenAI Agents",
        ask: "(await Runner.run(bot, E)).final_output",
        is_async: true,
        result: "return E",
        indent: 4,
        program: "import asyncio\nfrom agents import Agent, Runner\nbot = Agent(name='bot', instructions='Answer.', model='m')\nHELPER\n\
                  async def run(x: str):\nBODY\nasyncio.run(run(input()))\n",
    },
    Host {
        name: "CrewAI flow",
        ask: "crew.kickoff(inputs={'x': E}).raw",
        is_async: false,
        result: "return E",
        indent: 8,
        program: "from crewai import Agent, Crew, Task\nfrom crewai.flow.flow import Flow, start\n\
                  bot = Agent(role='r', goal='g', backstory='b', llm='m')\ntask = Task(description='{x}', expected_output='e', agent=bot)\n\
                  crew = Crew(agents=[bot], tasks=[task])\nHELPER\nclass F(Flow):\n    @start()\n    def run(self):\n        x = self.state['x']\n\
                  BODY\nF().kickoff(inputs={'x': 'q'})\n",
    },
    Host {
        name: "AutoGen",
        ask: "(await bot.run(task=E)).messages[-1].content",
        is_async: true,
        result: "return E",
        indent: 4,
        program: "import asyncio\nfrom autogen_agentchat.agents import AssistantAgent\nfrom autogen_ext.models.openai import OpenAIChatCompletionClient\n\
                  bot = AssistantAgent('bot', model_client=OpenAIChatCompletionClient(model='m'), system_message='Answer.')\nHELPER\n\
                  async def run(x: str):\nBODY\nasyncio.run(run(input()))\n",
    },
    Host {
        name: "Agent Framework",
        ask: "(await bot.run(E)).text",
        is_async: true,
        result: "return E",
        indent: 4,
        program: "import asyncio\nfrom agent_framework import ChatAgent\nfrom agent_framework.openai import OpenAIChatClient\n\
                  bot = ChatAgent(name='bot', instructions='Answer.', chat_client=OpenAIChatClient(model_id='m'))\nHELPER\n\
                  async def run(x: str):\nBODY\nasyncio.run(run(input()))\n",
    },
];

/// Text with each `NAME(e)` replaced by a form in which `E` is `e`.
fn replaced(text: &str, name: &str, form: &str) -> String {
    let mark = format!("{name}(");
    let Some(start) = text.find(&mark) else { return text.to_string() };
    let from = start + mark.len();
    let mut depth = 1;
    let end = text[from..].find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    let end = from + end.expect("parentheses match");
    let inner = &text[from..end];
    let rest = replaced(&text[end + 1..], name, form);
    format!("{}{}{rest}", &text[..start], form.replace('E', &replaced(inner, name, form)))
}

fn program(host: &Host, body: &Body) -> String {
    let written = |text: &str| {
        let text = replaced(text, "ASK", host.ask);
        let text = replaced(&text, "CALL", if host.is_async { "await E" } else { "E" });
        let text = replaced(&text, "RETURN", host.result);
        text.replace("DEF ", if host.is_async { "async def " } else { "def " })
    };
    let lines = written(&format!("{}\nRETURN(y)", body.text));
    let pad = " ".repeat(host.indent);
    let lines: Vec<String> = lines.lines().map(|l| format!("{pad}{l}")).collect();
    host.program.replace("HELPER\n", &written(body.helper)).replace("BODY", &lines.join("\n"))
}

fn compiled(host: &Host, body: &Body) -> Compiled {
    let text: Arc<str> = program(host, body).into();
    let file = File::read(FileId(0), "main.py", &text, &Limits::default());
    let wrong = file.python.as_ref().and_then(|m| m.syntax_error());
    assert!(wrong.is_none(), "{}: {}: {wrong:?}\n{text}", host.name, body.name);
    let project = Project { files: vec![file], ..Project::default() };
    frontends::compile(&project, 0).unwrap_or_else(|| panic!("{} does not read\n{text}", host.name))
}

/// Model calls of the unit with the most, and unknown terms of all.
fn measured(host: &Host, body: &Body) -> (Option<u64>, usize) {
    let compiled = compiled(host, body);
    assert!(!compiled.units.is_empty(), "{}: {}: nothing is compiled", host.name, body.name);
    let calls = compiled.units.iter().map(|u| cost::bound(&u.code, true).model_calls.most);
    let most = calls.reduce(|a, b| Some(a?.max(b?))).flatten();
    let unknown = |code: &core_ir::Code| code.iter().filter(|(_, t)| matches!(t, Term::Unknown(_))).count();
    (most, compiled.units.iter().map(|u| unknown(&u.code)).sum())
}

fn shown(most: Option<u64>) -> String {
    most.map_or("∞".into(), |n| n.to_string())
}

/// The table, and the cells whose bound is below what a run may ask.
fn table() -> (String, Vec<String>) {
    let mut out = String::from("| body | asks |");
    HOSTS.iter().for_each(|h| write!(out, " {} |", h.name).unwrap());
    out.push_str("\n|---|---|");
    out.push_str(&"---|".repeat(HOSTS.len()));
    out.push('\n');
    let mut wrong = Vec::new();
    for body in BODIES {
        write!(out, "| {} | {} |", body.name, shown(body.most)).unwrap();
        for host in HOSTS {
            let (most, unknown) = measured(host, body);
            let parts = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
            write!(out, " {}{parts} |", shown(most)).unwrap();
            let is_sound = most.is_none_or(|n| body.most.is_some_and(|real| real <= n));
            if !is_sound {
                wrong.push(format!("{} in {}: {}", body.name, host.name, shown(most)));
            }
        }
        out.push('\n');
    }
    (out, wrong)
}

/// The requests of a function count wherever it stands: in the module itself or in one that it imports.
#[test]
fn a_tool_of_another_module_that_asks_a_model_has_no_bound() {
    let tool = "from openai import OpenAI\ndef translate(text: str) -> str:\n    reply = OpenAI().chat.completions.create(model='m', messages=[])\n    return reply\n";
    let rest = "from autogen import AssistantAgent, ConversableAgent, register_function\n\
                a = AssistantAgent('a', llm_config={'model': 'm'})\nu = ConversableAgent('u', llm_config=False, human_input_mode='NEVER')\n\
                register_function(translate, caller=a, executor=u, description='Translates.')\nu.initiate_chat(a, message='x', max_turns=3)\n";
    let read =
        |id: u32, path: &str, text: &str| File::read(FileId(id), path, &Arc::from(text), &Limits::default());
    let calls = |files: Vec<File>| {
        let compiled = frontends::compile(&Project { files, ..Project::default() }, 0).unwrap();
        compiled.units.iter().map(|u| cost::bound(&u.code, true).model_calls.most).collect::<Vec<_>>()
    };
    assert_eq!(calls(vec![read(0, "main.py", &format!("{tool}{rest}"))]), [None]);
    let main = format!("from helper import translate\n{rest}");
    assert_eq!(calls(vec![read(0, "main.py", &main), read(1, "helper.py", tool)]), [None]);
}

const START: &str = "<!-- generated: bodies -->\n\n";
const END: &str = "<!-- end -->";

#[test]
fn table_of_bodies_is_that_of_the_page_and_no_bound_is_too_small() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/function-bodies.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(START).expect("the page has a table");
    let (stated, after) = rest.split_once(END).expect("the table ends");
    let (table, wrong) = table();
    if std::env::var_os("UPDATE_EXPECTED").is_some_and(|v| !v.is_empty()) {
        std::fs::write(&path, format!("{before}{START}{table}\n{END}{after}")).unwrap();
    } else {
        assert_eq!(
            stated.trim_end(),
            table.trim_end(),
            "the page differs; `UPDATE_EXPECTED=1` writes it anew"
        );
    }
    assert!(wrong.is_empty(), "bounds that are too small:\n{}", wrong.join("\n"));
}
