//! A reply that calls several tools is one reply: of the programs of `suite/faithful` whose models do so, no run asks a model or calls a
//! tool more often than the bound that was known before it, and all that was asked for is carried out.

use core_ir::{Code, Data, LabelSpec, Name, Num, Term, Type};
use diagnostics::Sources;
use frontend::doc::Limits;
use frontend::{File, Project, Recognised, recognise};
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
    ("crewai/at_once", 3),
    ("langgraph/at_once", 3),
    ("langgraph/tools_at_once", 3),
];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn compiled(name: &str, text: &str) -> Arc<Code> {
    let mut sources = Sources::new();
    let id = sources.add(name, text);
    let file = File::read(id, name, &text.into(), &Limits::default());
    let project = Project { files: vec![file], ..Project::default() };
    let Recognised::Frontend(frontend) = recognise(&project.files[0]) else {
        panic!("{name}: not recognised")
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
        let bound = check::cost::bound(&code, true);
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
    let bound = check::cost::bound(&code, true);
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
