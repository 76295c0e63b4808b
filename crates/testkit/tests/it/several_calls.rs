//! A reply that calls several tools is one reply: of the programs of `suite/faithful` whose models do so, no
//! run asks a model or calls a tool more often than the bound that was known before it, and all that was
//! asked for is carried out.

use core_ir::{Code, Data, LabelSpec, Name, Num, Term, Type};
use diagnostics::Sources;
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project, Recognized};
use frontends::recognize;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use testkit::drive::{self, Order};
use testkit::world::{Answer, Call};

/// Programs, with the most that a run asks models.
const PROGRAMS: &[(&str, u64)] = &[
    ("openai_agents/three_at_once", 3),
    ("autogen/three_at_once", 3),
    ("autogen/summed_up", 3),
    ("autogen/swarm_and_tool", 9),
    ("autogen_classic/at_once", 100),
    // Three requests of a task that may begin again twice after an empty answer, and one for the last answer
    // each time.
    ("crewai/at_once", 12),
    ("langgraph/at_once", 3),
    ("langgraph/tools_at_once", 3),
];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All units of a configuration, with the other files of its folder at hand.
fn units(path: &Path) -> Vec<Arc<Code>> {
    let mut sources = Sources::new();
    let mut project = Project::default();
    let folder = path.parent().expect("a folder");
    let mut beside: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    beside.retain(|p| p != path && p.extension().is_some_and(|e| e != "expected") && p.is_file());
    for path in std::iter::once(path.to_path_buf()).chain(beside) {
        let name = path.file_name().expect("a name").to_string_lossy().to_string();
        let text: Arc<str> = read(&path).into();
        let id = sources.add(&*name, text.clone());
        project.files.push(File::read(id, &name, &text, &Limits::default()));
    }
    let Recognized::Frontend(frontend) = recognize(&project.files[0]) else {
        panic!("{}: not recognized", path.display())
    };
    frontend.lower(&project, 0).units.into_iter().map(|u| u.code).collect()
}

fn compiled(name: &str, text: &str) -> Arc<Code> {
    let mut sources = Sources::new();
    let id = sources.add(name, text);
    let file = File::read(id, name, &text.into(), &Limits::default());
    let project = Project { files: vec![file], ..Project::default() };
    let Recognized::Frontend(frontend) = recognize(&project.files[0]) else {
        panic!("{name}: not recognized")
    };
    let compiled = frontend.lower(&project, 0);
    compiled.units.last().unwrap_or_else(|| panic!("{name}: {:?}", compiled.diagnostics)).code.clone()
}

/// The same program, whose tools may be called by anybody and are trusted.
fn open(code: &Code) -> Arc<Code> {
    let mut code = code.clone();
    for tool in &mut code.tools {
        let tool = Arc::make_mut(tool);
        tool.control = LabelSpec::TOP;
        tool.label = LabelSpec::BOTTOM;
        tool.params.iter_mut().for_each(|p| p.bound = LabelSpec::TOP);
    }
    Arc::new(code)
}

/// The calls of a reply, and how often a model and a tool are asked.
fn answers(script: &Value) -> (VecDeque<Answer>, usize) {
    let mut tools = 0;
    let call = |v: &Value| {
        let name = v["tool"].as_str().expect("a tool");
        (Name::from(name), Data::from_json(&v["args"]).expect("arguments"))
    };
    let replies = script["replies"].as_array().expect("replies");
    let all = replies
        .iter()
        .map(|reply| match reply {
            Value::String(text) => Answer::Text(text.clone()),
            Value::Array(calls) => {
                tools += calls.iter().filter(|c| !is_handover(&c["tool"])).count();
                Answer::ToolCalls(calls.iter().map(call).collect())
            }
            one => {
                tools += usize::from(!is_handover(&one["tool"]));
                let (name, args) = call(one);
                Answer::ToolCall(name, args)
            }
        })
        .collect();
    (all, tools)
}

fn is_handover(tool: &Value) -> bool {
    tool.as_str().is_some_and(|t| t.starts_with("transfer_to_"))
}

#[test]
fn a_reply_with_several_calls_is_one_reply() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/faithful");
    for (name, most) in PROGRAMS {
        let text = read(&suite.join(format!("{name}.py")));
        let script: Value =
            serde_json::from_str(&read(&suite.join(format!("{name}.json")))).expect("a script");
        let code = compiled(&format!("{name}.py"), &text);
        let bound = analysis::cost::bound(&code, true);
        assert_eq!(bound.model_calls.most, Some(*most), "{name}");
        // How many calls a reply holds is up to the model.
        assert_eq!(bound.tool_calls.most, None, "{name}");
        assert!(!bound.unbounded.is_empty(), "{name}: no reason");
        let (mut replies, calls) = answers(&script);
        let asked = replies.len();
        let mut world = |call: &Call| match call {
            Call::Model { .. } => {
                replies.pop_front().unwrap_or(Answer::Failed("nothing is left to say".into()))
            }
            Call::Tool { name, .. } => Answer::Data(made(&code, name)),
            _ => Answer::Failed("not asked for here".into()),
        };
        let input = Data::str(script["input"].as_str().expect("an input"));
        let outcome =
            drive::run(&open(&code), Some(&input), machine::Config::default(), &mut world, Order::AtOnce);
        assert!(outcome.result.is_ok(), "{name}: {:?}", outcome.result);
        let count = |of: fn(&Call) -> bool| outcome.requests.iter().filter(|(c, _)| of(c)).count();
        assert_eq!(count(|c| matches!(c, Call::Model { .. })), asked, "{name}");
        assert_eq!(count(|c| matches!(c, Call::Tool { .. })), calls, "{name}");
    }
}

/// Configurations whose agents loop over a text: the number of the unit, tools that it has, and whether all
/// calls of a reply are carried out.
const CONFIGURED: &[(&str, usize, [&str; 2], bool)] = &[
    ("adk/root_agent.yaml", 0, ["opening_hours", "opening_hours"], true),
    ("agentspec/agent.json", 0, ["book_room", "book_room"], true),
    ("cagent/team.yaml", 0, ["todo", "prices"], true),
    ("dify/agent.yml", 0, ["oven", "oven"], true),
    ("flowise/supervisor.json", 0, ["fileTool", "fileTool"], true),
    ("generic/agent.yaml", 0, ["weather", "soil_test"], true),
    ("goose/recipe.yaml", 0, ["developer", "developer"], true),
    ("kagent/agents.yaml", 0, ["query", "alerts"], true),
    ("langflow/news.json", 0, ["calculator", "calculator"], true),
    ("lobechat/agent.json", 0, ["timer", "unit-converter"], true),
    ("ms_agent/agent.yaml", 0, ["write_file", "read_file"], true),
    ("ms_declarative/agent.yaml", 0, ["rooms", "rooms"], true),
    ("praisonai/roles.yaml", 0, ["thermometer", "thermometer"], true),
    ("semantic_kernel/agent.yaml", 0, ["menu.specials", "menu.specials"], true),
    ("solace/agent.yaml", 0, ["files", "sheet-server"], true),
    ("oa/press.yaml", 0, ["archive", "archive"], true),
    ("watsonx/agent.yaml", 0, ["book_visit", "transfer"], true),
    ("langchain/agent.yaml", 0, ["search", "calculator"], false),
    ("letta/agent.json", 0, ["diary_search", "diary_search"], false),
    ("nemo_nat/react.yaml", 0, ["clock", "clock"], false),
    ("swe_agent/default.yaml", 0, ["edit", "bash"], false),
    ("lambda_yaml/listing1.yaml", 0, ["sum", "improve"], false),
];

/// Where the fixture holds more than one agent, or parts that are not known, only the agent.
const ALONE: &[(&str, &str, [&str; 2])] = &[
    (
        "n8n.json",
        r#"{"nodes": [{"name": "By hand", "type": "n8n-nodes-base.manualTrigger", "parameters": {}},
            {"name": "Agent", "type": "@n8n/n8n-nodes-langchain.agent", "parameters": {"text": "Answer."}},
            {"name": "Model", "type": "@n8n/n8n-nodes-langchain.lmChatOpenAi", "parameters": {"model": {"value": "m"}}},
            {"name": "Calendar", "type": "n8n-nodes-base.googleCalendarTool", "parameters": {}}],
            "connections": {"By hand": {"main": [[{"node": "Agent", "type": "main", "index": 0}]]},
            "Model": {"ai_languageModel": [[{"node": "Agent", "type": "ai_languageModel", "index": 0}]]},
            "Calendar": {"ai_tool": [[{"node": "Agent", "type": "ai_tool", "index": 0}]]}}}"#,
        ["Calendar", "Calendar"],
    ),
    (
        "ragflow.json",
        r#"{"dsl": {"components": {"begin": {"obj": {"component_name": "Begin", "params": {}}, "downstream": ["Agent:0"], "upstream": []},
            "Agent:0": {"obj": {"component_name": "Agent", "params": {"llm_id": "m", "sys_prompt": "You explain bills.",
            "tools": [{"component_name": "Search", "name": "Search"}, {"component_name": "Sum", "name": "Sum"}]}}, "downstream": [], "upstream": ["begin"]}}}}"#,
        ["Search", "Sum"],
    ),
    (
        "chatdev.yaml",
        "graph:\n  id: bakery\n  start: [baker]\n  end: [baker]\n  nodes:\n    - id: baker\n      type: agent\n      config:\n        role: You bake.\n        name: m\n        tooling:\n          - type: function\n            config:\n              tools:\n                - name: look_up\n                - name: weigh\n  edges: []\n",
        ["look_up", "weigh"],
    ),
];

/// Returns an input for a program: a string, or a record of strings.
fn input(code: &Code) -> Data {
    match code.term(code.root()) {
        Term::Abs(abs) => match &abs.ty {
            Some(Type::Record(fields)) => {
                Data::record(fields.iter().map(|(name, _)| (name.clone(), Data::str("tea"))))
            }
            _ => Data::str("tea"),
        },
        _ => Data::str("tea"),
    }
}

#[test]
fn agents_that_loop_over_a_text_carry_out_every_call_of_a_reply() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/frontends");
    for (name, unit, tools, all) in CONFIGURED {
        carries_out(name, &units(&suite.join(name))[*unit], tools, *all);
    }
    for (name, text, tools) in ALONE {
        carries_out(name, &compiled(name, text), tools, true);
    }
}

/// The first model that is offered the tools calls both in one reply, and then answers.
fn carries_out(name: &str, code: &Arc<Code>, tools: &[&str; 2], all: bool) {
    let bound = analysis::cost::bound(code, true);
    let args = || Data::record([(Name::from("input"), Data::str("tea"))]);
    let (mut asked, mut both, mut called, mut seen) = (0_u64, false, Vec::new(), String::new());
    let mut world = |call: &Call| match call {
        Call::Model { tools: offered, messages, .. } => {
            asked += 1;
            if both {
                seen += &format!("{messages:?}");
                return Answer::Text("done".into());
            }
            both = tools.iter().all(|t| offered.iter().any(|o| **o == **t));
            match offered.first() {
                _ if both => Answer::ToolCalls(tools.iter().map(|t| (Name::from(*t), args())).collect()),
                // Whoever has the tools is asked first.
                Some(helper) => Answer::ToolCall(helper.clone(), args()),
                None => Answer::Text("done".into()),
            }
        }
        Call::Tool { name, .. } if both => {
            called.push(name.to_string());
            Answer::Data(Data::str(format!("result {}", called.len())))
        }
        Call::Tool { .. } => Answer::Data(Data::str("before")),
        Call::Recall { .. } => Answer::Found(None),
        _ => Answer::Kept,
    };
    let outcome =
        drive::run(&open(code), Some(&input(code)), machine::Config::default(), &mut world, Order::AtOnce);
    assert!(outcome.result.is_ok(), "{name}: {:?}", outcome.result);
    assert_eq!(called, if all { &tools[..] } else { &tools[..1] }, "{name}");
    assert!(seen.contains("result 1") && seen.contains("result 2") == all, "{name}: {seen}");
    let models = bound.model_calls;
    // Of a conversation that spans turns the first question is not told from the others.
    let least = u64::from(!name.starts_with("oa/"));
    assert!(
        models.least >= least && models.most.is_none_or(|most| asked <= most),
        "{name}: {asked} of {models}"
    );
    match bound.tool_calls.most {
        None => assert!(!bound.unbounded.is_empty(), "{name}: no reason"),
        Some(most) => {
            assert!(!all && called.len() as u64 <= most, "{name}: {} calls of {most}", called.len())
        }
    }
}

/// Where the source says that a reply holds one call, the bound of tools is that of replies.
#[test]
fn without_parallel_calls_tools_are_bounded() {
    let text = "from agents import Agent, ModelSettings, Runner, function_tool

@function_tool
def price(item: str) -> str:
    \"\"\"The price.\"\"\"
    return \"3\"

clerk = Agent(name=\"Clerk\", model=\"m\", tools=[price], model_settings=ModelSettings(parallel_tool_calls=False))
print(Runner.run_sync(clerk, \"Tea?\", max_turns=4).final_output)
";
    let code = compiled("shop.py", text);
    let bound = analysis::cost::bound(&code, true);
    assert_eq!((bound.model_calls.most, bound.tool_calls.most), (Some(4), Some(4)));
}

/// Something of the type that a tool returns.
fn made(code: &Code, tool: &Name) -> Data {
    let decl = code.iter().find_map(|(_, term)| match term {
        Term::Tool(id) if code.tool(*id).name == *tool => Some(code.tool(*id)),
        _ => None,
    });
    match decl.map(|d| &d.result) {
        Some(Type::Num) => Data::Num(Num::from(5)),
        _ => Data::str("five"),
    }
}
