//! Findings in modules of Python and in the calculus, and the repairs of both.

use super::*;
use diagnostics::{FileId, fix};
use frontend_kit::Project;
use std::sync::Arc;

/// Of every level, and every default of a framework is a warning.
fn everything() -> Config {
    Config { level: Level::Info, most_default_rounds: 0, ..Config::default() }
}

/// The findings of the first of some files of a project.
pub(super) fn among(files: &[(&str, &str)]) -> Vec<Diagnostic> {
    among_with(files, &everything())
}

pub(super) fn among_with(files: &[(&str, &str)], config: &Config) -> Vec<Diagnostic> {
    let others = |_| Project {
        files: files[1..]
            .iter()
            .zip(1..)
            .map(|((path, text), n)| {
                File::read(FileId(n), path, &Arc::from(*text), &frontend_kit::doc::Limits::default())
            })
            .collect(),
        ..Project::default()
    };
    let (path, text) = files[0];
    match lint_among(frontends::recognize, path, FileId(0), text.as_bytes(), others, config).outcome {
        Outcome::Checked { findings, .. } => findings,
        // A module that makes no agent and uses its framework as it should.
        Outcome::Skipped(Skip::NoAgent) if text.contains("import") => Vec::new(),
        other => panic!("not compiled: {other:?}\n{text}"),
    }
}

/// `code level text-at-the-place` of the findings of a rule.
pub(super) fn of(code: &str, text: &str, found: &[Diagnostic]) -> Vec<String> {
    let at = |d: &Diagnostic| d.span.map_or("", |s| &text[s.start as usize..s.end as usize]).to_string();
    found
        .iter()
        .filter(|d| d.code.starts_with(code))
        .map(|d| format!("{} {}", d.level.as_str(), at(d)))
        .collect()
}

/// A text after the safe repairs of its findings.
fn repaired(path: &str, text: &str) -> String {
    fix::apply(text, FileId(0), &among(&[(path, text)]), Applicability::Safe).0
}

fn team(members: &str, rest: &str) -> String {
    format!(
        "from autogen_agentchat.agents import AssistantAgent, UserProxyAgent\n\
         from autogen_agentchat.teams import RoundRobinGroupChat\n\
         from autogen_ext.models.openai import OpenAIChatCompletionClient\n\
         m = OpenAIChatCompletionClient(model='small')\n\
         a = AssistantAgent('a', model_client=m, system_message='Write.')\n\
         b = AssistantAgent('b', model_client=m, system_message='Read.')\n\
         u = UserProxyAgent('u')\n\
         team = RoundRobinGroupChat([{members}]{rest})\n"
    )
}

#[test]
fn l021_downgraded_with_human_in_loop() {
    let levels = |text: &str| {
        let found = among(&[("main.py", text)]);
        let of = found.iter().filter(|d| matches!(d.code, "L004a" | "L021"));
        of.map(|d| (d.level, d.remarks.len())).collect::<Vec<_>>()
    };
    assert_eq!(levels(&team("a, b", "")), [(Level::Error, 0)]);
    assert_eq!(levels(&team("a, b, u", "")), [(Level::Warn, 1)]);
    assert_eq!(levels(&team("a, u", "")), [(Level::Warn, 1)]);
}

#[test]
fn l017_fix_states_default() {
    let crew = |agent: &str| {
        format!(
            "from crewai import Agent, Crew, Task\nw = {agent}\nt = Task(description='d', expected_output='e', agent=w)\nCrew(agents=[w], tasks=[t]).kickoff()\n"
        )
    };
    let agent = "Agent(role='r', goal='g', backstory='b', llm='m', tools=[t])";
    assert_eq!(repaired("crew.py", &crew(agent)), crew(&agent.replace(")", ", max_iter=25)")));
    let lines = "Agent(\n    role='r', goal='g', backstory='b',\n    llm='m',  # small\n    tools=[t],\n)";
    let stated = lines.replace("[t],\n", "[t],\n    max_iter=25,\n");
    assert_eq!(repaired("crew.py", &crew(lines)), crew(&stated));
    // What stands in a comment would be no argument.
    let comment = "Agent(role='r', goal='g', backstory='b', llm='m', tools=[t]  # all\n)";
    assert_eq!(repaired("crew.py", &crew(comment)), crew(comment));

    let yaml = "writer:\n  role: r\n  goal: g\n  backstory: b # kept\n  llm: m\n  tools: [search]\n";
    assert_eq!(repaired("agents.yaml", yaml), yaml.replace("  tools", "  max_iter: 25\n  tools"));
    let yaml =
        "agentId: coder\ntype: react\nmodel: m\nsystemPrompt: p\nmcp: {localTools: [run, terminate]}\n";
    let after = repaired("a.yaml", yaml);
    assert_eq!(after, yaml.replace("type: react\n", "type: react\nreact: {maxSteps: 20}\n"));
    assert!(of("L017", &after, &among(&[("a.yaml", &after)])).is_empty());
    // A comment on the line stays there; an agent in a list keeps its indentation.
    let noted = yaml.replace("type: react", "type: react # a loop");
    assert_eq!(repaired("a.yaml", &noted), noted.replace("loop\n", "loop\nreact: {maxSteps: 20}\n"));
    let json = "{\"agentId\": \"coder\", \"type\": \"react\", \"model\": \"m\", \"systemPrompt\": \"p\", \"react\": {\"think\": true}, \"mcp\": {\"localTools\": [\"run\", \"terminate\"]}}\n";
    let after = repaired("a.json", json);
    assert!(after.contains("\"react\": {\"maxSteps\": "), "{after}");
}

#[test]
fn l017_findings_of_a_file_are_folded() {
    let agent =
        |name: &str| format!("{name}:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n");
    let text = format!("{}{}{}", agent("a"), agent("b"), agent("c"));
    let mut found = among(&[("agents.yaml", &text)]);
    assert_eq!(of("L017", &text, &found).len(), 3);
    fold(&mut found);
    assert_eq!(of("L017", &text, &found).len(), 1);
    let first = found.iter().find(|d| d.code == "L017").and_then(|d| d.help.last().cloned());
    assert_eq!(first.as_deref(), Some("the same holds for 2 more in this file: `b`, `c`"));
}

#[test]
fn l017_help_follows_autogen_version() {
    let chat = "a = ConversableAgent('a', llm_config={'model': 'm'}, human_input_mode='NEVER')\n\
                b = ConversableAgent('b', llm_config={'model': 'm'}, human_input_mode='NEVER')\n\
                a.initiate_chat(b, message='hello')\n";
    let text = format!("from autogen import ConversableAgent\n{chat}");
    let found = |text: &str| {
        let of_loops = among(&[("main.py", text)]).into_iter().filter(|d| d.code == "L017");
        of_loops.map(|d| (d.level, d.help.join(" "))).collect::<Vec<_>>()
    };
    let [(Level::Warn, help)] = &found(&text)[..] else { panic!("{:?}", found(&text)) };
    assert!(help.contains("`max_turns=` of `initiate_chat`"), "{help}");
    assert!(!help.contains("MaxMessageTermination"), "{help}");
    // Who is asked in each round may end it, though a model would answer otherwise.
    let asked = text.replacen("'NEVER'", "'ALWAYS'", 1);
    assert!(found(&asked).iter().all(|(level, _)| *level == Level::Info), "{:?}", found(&asked));
}

#[test]
fn l017_help_of_hierarchical_crew() {
    let crew = |more: &str| {
        format!(
            "from crewai import Agent, Crew, Process, Task\nw = Agent(role='r', goal='g', backstory='b', llm='m')\nt = Task(description='d', expected_output='e')\nCrew(agents=[w], tasks=[t], process=Process.hierarchical, {more}).kickoff()\n"
        )
    };
    let said = |text: &str| {
        let found = among(&[("crew.py", text)]);
        found.into_iter().filter(|d| d.code == "L017").map(|d| (d.help.join("; "), d.fix)).collect::<Vec<_>>()
    };
    let own = said(&crew("manager_llm='m'"));
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0].0, "make the manager yourself: `manager_agent=Agent(…, max_iter=n)`");
    assert!(own[0].1.is_none(), "`max_iter` of a crew is nothing: {own:?}");
    let made = said(&crew("manager_agent=Agent(role='m', goal='g', backstory='b', llm='m')"));
    assert!(made.iter().all(|(help, _)| help == "state it: `max_iter`") && !made.is_empty(), "{made:?}");
}

#[test]
fn l017_help_of_group_chat_names_max_turns() {
    let text = "from autogen_agentchat.agents import AssistantAgent\nfrom autogen_agentchat.conditions import TextMentionTermination\nfrom autogen_agentchat.teams import RoundRobinGroupChat\nfrom autogen_ext.models.openai import OpenAIChatCompletionClient\nm = OpenAIChatCompletionClient(model='m')\na = AssistantAgent('a', model_client=m, system_message='Write.')\nb = AssistantAgent('b', model_client=m, system_message='Say DONE when it is good.')\nteam = RoundRobinGroupChat([a, b], termination_condition=TextMentionTermination('DONE'))\n";
    let found = among(&[("team.py", text)]);
    let help: Vec<String> = found.iter().filter(|d| d.code == "L017").map(|d| d.help.join("; ")).collect();
    assert_eq!(help.len(), 1, "{found:#?}");
    assert!(help[0].starts_with("limit it: `max_turns` of the team"), "{help:?}");
}

#[test]
fn node_arithmetic_type_checks() {
    let text = "from typing import TypedDict\nfrom langgraph.graph import StateGraph, START, END\n\
                class S(TypedDict, total=False):\n    n: int\n    bar: str\n    said: str\n\
                def show(state):\n    return {'n': int(state.get('n', 0)) + 1, 'bar': '#' * int(state['n'] * 4) + '-' * 2, 'said': '%d done' % state['n']}\n\
                def decide(state):\n    return 'show' if int(state.get('n', 0)) < 3 else END\n\
                g = StateGraph(S)\ng.add_node('show', show)\ng.add_edge(START, 'show')\ng.add_conditional_edges('show', decide)\napp = g.compile()\n";
    let mut project = Project::default();
    project.files.push(File::read(FileId(0), "main.py", &text.into(), &frontend_kit::doc::Limits::default()));
    let frontend_kit::Recognized::Frontend(found) = frontends::recognize(&project.files[0]) else { panic!() };
    let units = found.lower(&project, 0).units;
    assert_eq!(units.len(), 1);
    let report = analysis::types::check(&units[0].code, None);
    assert!(report.diagnostics.iter().all(|d| d.level != Level::Error), "{:?}", report.diagnostics);
}

/// A keystroke in a file of many agents reads it once more for their repairs, not once for each.
#[test]
fn repairs_of_a_file_are_tried_in_one_reading() {
    let readings = |path: &str, text: &str| {
        let before = repair::READINGS.get();
        let found = among(&[(path, text)]);
        let fixes = found.iter().filter(|d| d.code == "L017" && d.fix.is_some()).count();
        (fixes, repair::READINGS.get() - before)
    };
    let agents: String = (0..40)
        .map(|i| format!("a{i}:\n  role: r{i}\n  goal: g\n  backstory: b\n  llm: m\n  tools: [search]\n"))
        .collect();
    assert_eq!(readings("agents.yaml", &agents), (40, 1));
    let agents: String = (0..40)
        .map(|i| format!("a{i} = Agent(role='r{i}', goal='g', backstory='b', llm='m', tools=[t])\n"))
        .collect();
    assert_eq!(readings("crew.py", &format!("from crewai import Agent\n{agents}")), (40, 1));
    // Nothing to repair, nothing to read again.
    assert_eq!(readings("agents.yaml", "a:\n  role: r\n  goal: g\n  backstory: b\n  llm: m\n"), (0, 0));
}

#[test]
fn l017_reports_default_of_environment_variable() {
    let text = |max: &str| {
        format!(
            "import os\nfrom crewai import Agent, Crew, Task\na = Agent(role='r', goal='g', backstory='b', llm='m', tools=[t], max_iter={max})\nk = Task(description='d', expected_output='e', agent=a)\nCrew(agents=[a], tasks=[k]).kickoff()\n"
        )
    };
    let found = |max: &str| {
        let all = among(&[("crew.py", &text(max))]);
        let of = all.into_iter().find(|d| d.code == "L017");
        of.map(|d| (d.level, d.message, d.help.join(" "), d.fix.is_some()))
    };
    let (level, message, help, fix) = found("int(os.getenv('N', '7'))").expect("a finding");
    assert_eq!((level, fix), (Level::Info, false));
    assert!(message.ends_with("is the environment variable `N`, 7 by default"), "{message}");
    assert!(!help.contains("state it"), "{help}");
    assert_eq!(found("int(os.environ['N'])").map(|f| f.0), Some(Level::Unknown));
    assert_eq!(found("7"), None);
}

/// The branch that leads out of a cycle is there, but for an outcome that is not decided.
#[test]
fn l004_help_for_graph_cycle() {
    let help = |edges: &str| {
        let text = format!(
            "from langgraph.graph import StateGraph, MessagesState, START, END\nfrom langgraph.prebuilt import ToolNode, tools_condition\n\
             from langchain_openai import ChatOpenAI\ndef look(q: str) -> str:\n    return q\nllm = ChatOpenAI(model='m').bind_tools([look])\n\
             def ask(state: MessagesState):\n    return {{'messages': [llm.invoke(state['messages'])]}}\n\
             g = StateGraph(MessagesState)\ng.add_node('ask', ask)\ng.add_node('tools', ToolNode([look]))\ng.add_edge(START, 'ask')\n{edges}\n\
             g.add_edge('tools', 'ask')\napp = g.compile()\napp.invoke({{'messages': []}}, {{'recursion_limit': 9}})\n"
        );
        let found = among(&[("main.py", &text)]);
        let of = found.iter().find(|d| d.code.starts_with("L004") && d.level >= Level::Warn);
        of.map(|d| d.help.join(" ")).unwrap_or_default()
    };
    let wrong = help("g.add_conditional_edges('ask', tools_condition, {'tools': 'tools', 'end': END})");
    assert!(wrong.contains("`end` is never taken: label it `__end__`"), "{wrong}");
    let beside = help("g.add_conditional_edges('ask', tools_condition)\ng.add_edge('ask', 'tools')");
    assert!(beside.contains("a conditional edge out of the cycle"), "{beside}");
    assert_eq!(help("g.add_conditional_edges('ask', tools_condition)"), "");
}
