//! L017 by the size of a framework's default.

use super::*;
use diagnostics::FileId;

fn l017(text: &str, config: &Config) -> Vec<(Level, Vec<String>)> {
    let report = lint_bytes(frontends::recognize, "main.py", FileId(0), text.as_bytes(), config);
    let Outcome::Checked { findings, .. } = report.outcome else { panic!("not compiled:\n{text}") };
    findings.into_iter().filter(|d| d.code == "L017").map(|d| (d.level, d.help)).collect()
}

const SDK: &str = "from agents import Agent, Runner, function_tool\n@function_tool\ndef look(at: str) -> str:\n    return at\n\
                   Runner.run_sync(Agent(name='a', instructions='Look.', tools=[look]), 'x')\n";

const GRAPH: &str = "from langchain_core.tools import tool\nfrom langgraph.prebuilt import create_react_agent\n@tool\n\
                     def look(at: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return at\n\
                     create_react_agent('openai:m', [look], prompt='Look.').invoke({'messages': []})\n";

#[test]
fn a_small_default_is_info_and_a_large_one_a_warning() {
    let all = Config { level: Level::Info, ..Config::default() };
    let of = |text: &str| l017(text, &all).pop().unwrap_or_else(|| panic!("no finding in\n{text}"));
    let (level, help) = of(SDK);
    assert_eq!((level, &*help[0]), (Level::Info, "the default is at most `most-default-rounds` of `[lint]`"));
    let (level, help) = of(GRAPH);
    assert_eq!(level, Level::Warn);
    // The number that decides is said.
    assert!(help.iter().any(|h| h.contains("above 100 is a warning: `most-default-rounds`")), "{help:?}");
    assert!(l017(SDK, &Config::default()).is_empty());
    assert_eq!(l017(GRAPH, &Config::default()).len(), 1);
}

#[test]
fn the_threshold_of_defaults_is_a_setting() {
    let with = |most_default_rounds| Config { most_default_rounds, ..Config::default() };
    assert_eq!(l017(SDK, &with(9)).len(), 1);
    assert!(l017(SDK, &with(10)).is_empty() && l017(GRAPH, &with(20_000)).is_empty());
}

/// A framework that sets no limit is a warning at any threshold.
#[test]
fn no_default_at_all_is_a_warning() {
    let text = "from autogen_agentchat.agents import AssistantAgent\nfrom autogen_agentchat.teams import RoundRobinGroupChat\nfrom autogen_agentchat.conditions import TextMentionTermination\n\
                a = AssistantAgent('a', model_client=c, system_message='A.')\n\
                b = AssistantAgent('b', model_client=c, system_message='B.')\n\
                team = RoundRobinGroupChat([a, b], termination_condition=TextMentionTermination('OK'))\n";
    let found = l017(text, &Config { most_default_rounds: u64::MAX, ..Config::default() });
    assert!(!found.is_empty() && found.iter().all(|(level, _)| *level == Level::Warn), "{found:?}");
}
