//! The bounds of the programs in `suite/worst_case`, beside the calls that their frameworks made
//! (`scripts/worst-case --record`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/worst_case")
}

/// The most model calls and tool calls of all entries of a program; `None` where no bound is stated.
fn stated(program: &Path) -> (Option<u64>, Option<u64>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(["cost", "--format", "json"]).arg(program.join("main.py")).stdin(Stdio::null());
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let lines = out.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let entries: Vec<serde_json::Value> = lines.filter(|line| line.get("modelCalls").is_some()).collect();
    let most = |key: &str| entries.iter().map(|e| e[key]["most"].as_u64()).sum::<Option<u64>>();
    if entries.is_empty() { (None, None) } else { (most("modelCalls"), most("toolCalls")) }
}

/// A line of what was measured, if it is more than what is stated.
fn exceeded(line: &str) -> Option<String> {
    let [program, models, tools] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let (models, tools): (u64, u64) = (models.parse().unwrap(), tools.parse().unwrap());
    let (most_models, most_tools) = stated(&suite().join(program));
    let more = most_models.is_some_and(|m| models > m) || most_tools.is_some_and(|m| tools > m);
    let stated = format!("stated {most_models:?} and {most_tools:?}");
    more.then(|| format!("{program}: {models} model calls and {tools} tool calls, {stated}"))
}

#[test]
fn no_stated_bound_is_below_what_a_framework_did() {
    let measured = std::fs::read_to_string(suite().join("measured.tsv")).unwrap();
    let lines: Vec<&str> = measured.lines().skip(1).collect();
    assert!(lines.len() >= 200, "{} programs", lines.len());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let exceeded: Vec<String> = std::thread::scope(|scope| {
        let parts = lines.chunks(lines.len().div_ceil(threads));
        let parts: Vec<_> = parts
            .map(|part| scope.spawn(|| part.iter().filter_map(|l| exceeded(l)).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(exceeded.is_empty(), "{exceeded:#?}");
}

/// Bounds that are stated, so that none becomes unknown, or larger, unseen.
#[test]
fn bounds_that_are_reached_are_stated() {
    for (program, most) in [
        ("autogen/magentic", 15),
        ("autogen/selector", 16),
        ("autogen_classic/pair", 4),
        ("crewai/one_tool", 15),
        ("langgraph/chat_tools", 5),
        ("langgraph/goto", 7),
        ("langgraph/retry_policy", 4),
        ("langgraph/tool_strategy", 8),
        ("langgraph/with_retry_parser", 8),
        ("openai_agents/nested_tools", 39),
        ("openai_agents/ring", 6),
        ("openai_agents/sessions", 3),
    ] {
        assert_eq!(stated(&suite().join(program)).0, Some(most), "{program}");
    }
}
