//! Fault injection: seed 000, Experiment A, with more formats and more kinds of faults.
//!
//! Ten sound configurations of each of six formats are made from templates, and into each every fault that
//! applies is put, one at a time. What must be found is known by construction: the fault's own code and
//! nothing else of level warn or error; and nothing in a sound configuration.
//!
//! `cargo run -p lint --example inject` prints the table; the test fails if a fault is missed or something
//! else is found.

use diagnostics::{FileId, Level};
use lint::{Config, Outcome, lint_bytes};
use std::collections::BTreeMap;

/// A sound configuration.
struct Sound {
    format: &'static str,
    path: &'static str,
    text: String,
}

/// A kind of fault.
struct Fault {
    name: &'static str,
    format: &'static str,
    /// The code that must be reported.
    code: &'static str,
    /// Puts it in; `None` if the configuration has no place for it.
    put: fn(&str) -> Option<String>,
}

/// One of the faults, put into one of the configurations.
struct Case {
    format: &'static str,
    fault: &'static str,
    code: &'static str,
    path: &'static str,
    text: String,
}

/// Themes of ten teams' agents.
const THEMES: [(&str, &str, &str); 10] = [
    ("librarian", "You find books that answer a question.", "search_shelves"),
    ("gardener", "You say when a plant needs water.", "read_moisture"),
    ("translator", "You translate what you are given into Dutch.", "look_up_word"),
    ("navigator", "You plan a route between two towns.", "find_route"),
    ("accountant", "You check that the sums of an invoice are right.", "add_numbers"),
    ("meteorologist", "You explain the forecast for tomorrow.", "get_forecast"),
    ("cook", "You suggest a dish for what is in the fridge.", "find_recipe"),
    ("tutor", "You explain a theorem to a beginner.", "look_up_theorem"),
    ("editor", "You shorten a text without losing its meaning.", "count_words"),
    ("archivist", "You date a document by its style.", "compare_documents"),
];

/// The sixty sound configurations.
fn sound() -> Vec<Sound> {
    let mut all = Vec::new();
    for (i, (name, prompt, tool)) in THEMES.iter().enumerate() {
        let mut add = |format, path, text: String| all.push(Sound { format, path, text });
        let steps = 5 + i;
        // λA: agents of four types.
        add(
            "lambda",
            "agent.yaml",
            match i % 4 {
                0 | 1 => format!(
                    "agentId: {name}\ntype: react\nmodel: {{name: small, temperature: 0.2}}\nsystemPrompt: {prompt}\nreact: {{maxSteps: {steps}}}\nmcp: {{localTools: [{tool}, terminate]}}\nguard: {{minLength: 2, maxLength: 900}}\n"
                ),
                2 => format!(
                    "agentId: {name}\ntype: router\nmodel: {{name: small}}\nsystemPrompt: {prompt} Say which of a and b fits.\nroutes:\n  a: {{agentId: a, type: simple, model: {{name: small}}, systemPrompt: Do a.}}\n  b: {{agentId: b, type: simple, model: {{name: small}}, systemPrompt: Do b.}}\n  default: {{agentId: c, type: simple, model: {{name: small}}, systemPrompt: Do c.}}\n"
                ),
                _ => format!(
                    "agentId: {name}\ntype: chain\nagents:\n  - agentId: first\n    type: react\n    model: {{name: small}}\n    systemPrompt: {prompt}\n    react: {{maxSteps: {steps}}}\n    mcp: {{localTools: [{tool}, terminate]}}\n  - {{agentId: second, type: simple, model: {{name: small}}, systemPrompt: Say it in one sentence.}}\n"
                ),
            },
        );
        add(
            "crewai",
            "crew.yaml",
            format!(
                "agents:\n  {name}:\n    role: {name}\n    goal: be of help\n    backstory: {prompt}\n    llm: small\n    tools: [{tool}]\n    max_iter: {steps}\ntasks:\n  work:\n    description: {prompt}\n    expected_output: one paragraph\n    agent: {name}\n"
            ),
        );
        add(
            "autogen",
            "team.json",
            format!(
                r#"{{"provider": "autogen_agentchat.teams.RoundRobinGroupChat", "component_type": "team", "version": 1, "config": {{
  "participants": [
    {{"provider": "autogen_agentchat.agents.AssistantAgent", "component_type": "agent", "version": 1, "config": {{"name": "{name}", "system_message": "{prompt}", "model_client": {{"provider": "autogen_ext.models.openai.OpenAIChatCompletionClient", "component_type": "model", "version": 1, "config": {{"model": "small"}}}}}}}},
    {{"provider": "autogen_agentchat.agents.AssistantAgent", "component_type": "agent", "version": 1, "config": {{"name": "critic", "system_message": "You look for mistakes.", "model_client": {{"provider": "autogen_ext.models.openai.OpenAIChatCompletionClient", "component_type": "model", "version": 1, "config": {{"model": "small"}}}}}}}}
  ],
  "termination_condition": {{"provider": "autogen_agentchat.conditions.TextMentionTermination", "component_type": "termination", "version": 1, "config": {{"text": "DONE"}}}},
  "max_turns": {steps}
}}}}
"#
            ),
        );
        add(
            "dify",
            "app.yml",
            format!(
                "app: {{mode: advanced-chat, name: {name}}}\nkind: app\nworkflow:\n  conversation_variables:\n    - {{name: tone, value_type: string, value: kind}}\n  graph:\n    nodes:\n      - {{id: s, data: {{type: start, title: start, variables: []}}}}\n      - id: c\n        data: {{type: question-classifier, title: kind, model: {{name: small}}, query_variable_selector: [sys, query], classes: [{{id: '1', name: easy}}, {{id: '2', name: hard}}]}}\n      - id: l\n        data:\n          type: llm\n          title: {name}\n          model: {{name: small, completion_params: {{temperature: 0.2}}}}\n          prompt_template:\n            - {{role: system, text: '{prompt} Be {{{{#conversation.tone#}}}}.'}}\n            - {{role: user, text: '{{{{#sys.query#}}}}'}}\n      - {{id: e, data: {{type: answer, title: answer, answer: '{{{{#l.text#}}}}'}}}}\n      - {{id: n, data: {{type: answer, title: no, answer: Ask somebody else.}}}}\n    edges:\n      - {{source: s, sourceHandle: source, target: c}}\n      - {{source: c, sourceHandle: '1', target: l}}\n      - {{source: c, sourceHandle: '2', target: n}}\n      - {{source: l, sourceHandle: source, target: e}}\n"
            ),
        );
        add(
            "cagent",
            "team.yaml",
            format!(
                "agents:\n  root:\n    model: small\n    description: hands over\n    instruction: {prompt}\n    max_iterations: {steps}\n    handoffs: [helper]\n  helper:\n    model: small\n    description: helps\n    instruction: You help the {name}.\n    max_iterations: {steps}\n    toolsets:\n      - {{type: think}}\nmodels:\n  small: {{provider: openai, model: gpt-4o-mini, temperature: 0.2}}\n"
            ),
        );
        add(
            "chatdev",
            "graph.yaml",
            format!(
                "version: 0.4.0\ngraph:\n  id: {name}\n  start: [first]\n  end: [last]\n  nodes:\n    - {{id: first, type: agent, config: {{name: small, role: '{prompt}'}}}}\n    - {{id: second, type: agent, config: {{name: small, role: Look for mistakes.}}}}\n    - {{id: last, type: agent, config: {{name: small, role: Sum it up.}}}}\n  edges:\n    - {{from: first, to: second}}\n    - {{from: second, to: last}}\n"
            ),
        );
    }
    all
}

/// Every occurrence is replaced; `None` if there is none.
fn all(text: &str, from: &str, to: &str) -> Option<String> {
    text.contains(from).then(|| text.replace(from, to))
}

/// The first occurrence is replaced.
fn first(text: &str, from: &str, to: &str) -> Option<String> {
    text.contains(from).then(|| text.replacen(from, to, 1))
}

/// From the first occurrence of a beginning to the end of its line.
fn line(text: &str, begin: &str, to: &str) -> Option<String> {
    let start = text.find(begin)?;
    let end = start + text[start..].find('\n').unwrap_or(text.len() - start);
    Some(format!("{}{to}{}", &text[..start], &text[end..]))
}

const KEY: &str = "8f14e45fceea167a5a36dedd4bea2543";

/// The kinds of faults, by format.
const FAULTS: &[Fault] = &[
    Fault {
        name: "remove terminate",
        format: "lambda",
        code: "L004b",
        put: |t| first(t, ", terminate]", "]"),
    },
    Fault {
        name: "remove terminate and bound",
        format: "lambda",
        code: "L004a",
        put: |t| {
            let t = first(t, ", terminate]", "]")?;
            // The default bound is a finding of its own, about the same place.
            Some(format!(
                "# entail: ignore-file[L017] the fault is the missing end\n{}",
                line(&t, "react: {", "react: {}")?
            ))
        },
    },
    Fault {
        name: "remove the bound",
        format: "lambda",
        code: "L017",
        put: |t| line(t, "react: {", "react: {}"),
    },
    Fault {
        name: "empty prompt",
        format: "lambda",
        code: "L001",
        put: |t| line(t, "systemPrompt: You", "systemPrompt: ''"),
    },
    Fault {
        name: "remove the model",
        format: "lambda",
        code: "L002",
        put: |t| {
            first(t, "    model: {name: small}\n", "")
                .or_else(|| first(t, "model: {name: small, temperature: 0.2}\n", ""))
                .or_else(|| first(t, "model: {name: small}\n", ""))
        },
    },
    Fault {
        name: "bound 0",
        format: "lambda",
        code: "L003",
        put: |t| line(t, "react: {", "react: {maxSteps: 0}"),
    },
    Fault {
        name: "empty routes",
        format: "lambda",
        code: "L005",
        put: |t| Some(format!("{}routes: {{}}\n", &t[..t.find("routes:")?])),
    },
    Fault { name: "no default route", format: "lambda", code: "L013", put: |t| line(t, "  default: {", "") },
    Fault {
        name: "empty chain",
        format: "lambda",
        code: "L006",
        put: |t| Some(format!("{}agents: []\n", &t[..t.find("agents:\n")?])),
    },
    Fault {
        name: "impossible temperature",
        format: "lambda",
        code: "L009",
        put: |t| first(t, "temperature: 0.2", "temperature: 7"),
    },
    Fault {
        name: "impossible guard",
        format: "lambda",
        code: "L010",
        put: |t| first(t, "minLength: 2,", "minLength: 2000,"),
    },
    Fault {
        name: "repeated write",
        format: "lambda",
        code: "L022",
        put: |t| {
            first(
                &first(t, ", terminate]", ", send_email, terminate]")?,
                "minLength: 2,",
                "minLength: 2, retry: 2,",
            )
        },
    },
    Fault {
        name: "cost above the threshold",
        format: "lambda",
        code: "L018",
        put: |t| line(t, "react: {", "react: {maxSteps: 5000}"),
    },
    Fault {
        name: "lethal trifecta",
        format: "lambda",
        code: "S004",
        put: |t| first(t, ", terminate]", ", web_search, read_file, send_message, terminate]"),
    },
    Fault {
        name: "secret",
        format: "lambda",
        code: "S001",
        put: |t| first(t, "model: {name: small", &format!("model: {{apiKey: {KEY}, name: small")),
    },
    Fault {
        name: "plain HTTP",
        format: "lambda",
        code: "S002",
        put: |t| {
            first(t, "model: {name: small", "model: {baseUrl: 'http://models.example.org/v1', name: small")
        },
    },
    Fault {
        name: "empty prompt",
        format: "crewai",
        code: "L001",
        put: |t| {
            line(
                &first(&line(t, "    role: ", "    role: ''")?, "goal: be of help", "goal: ''")?,
                "    backstory: ",
                "    backstory: ''",
            )
        },
    },
    Fault {
        name: "bound 0",
        format: "crewai",
        code: "L003",
        put: |t| line(t, "    max_iter: ", "    max_iter: 0"),
    },
    Fault {
        name: "remove the bound",
        format: "crewai",
        code: "L017",
        put: |t| line(t, "    max_iter: ", ""),
    },
    Fault {
        name: "secret",
        format: "crewai",
        code: "S001",
        put: |t| first(t, "    llm: small\n", &format!("    llm: {{model: small, api_key: {KEY}}}\n")),
    },
    Fault {
        name: "unfenced code",
        format: "crewai",
        code: "S003",
        put: |t| {
            first(
                t,
                "    llm: small\n",
                "    llm: small\n    allow_code_execution: true\n    code_execution_mode: unsafe\n",
            )
        },
    },
    Fault {
        name: "impossible temperature",
        format: "crewai",
        code: "L009",
        put: |t| first(t, "    llm: small\n", "    llm: {model: small, temperature: -1}\n"),
    },
    Fault {
        name: "unbounded talk",
        format: "autogen",
        code: "L021",
        put: |t| {
            let at = t.find(
                ",
  \"termination_condition\"",
            )?;
            Some(format!("{}\n}}}}\n", &t[..at]))
        },
    },
    Fault {
        name: "bound 0",
        format: "autogen",
        code: "L003",
        put: |t| line(t, "  \"max_turns\"", "  \"max_turns\": 0"),
    },
    Fault {
        name: "empty prompt",
        format: "autogen",
        code: "L001",
        put: |t| first(t, "You look for mistakes.", ""),
    },
    Fault {
        name: "remove the model",
        format: "autogen",
        code: "L002",
        put: |t| {
            let at = t.find(", \"model_client\"")?;
            let end = at + t[at..].find("}}}}}}")?;
            Some(format!("{}{}", &t[..at], &t[end + 4..]))
        },
    },
    Fault {
        name: "secret",
        format: "autogen",
        code: "S001",
        put: |t| {
            first(t, "{\"model\": \"small\"}", &format!("{{\"model\": \"small\", \"api_key\": \"{KEY}\"}}"))
        },
    },
    Fault {
        name: "plain HTTP",
        format: "autogen",
        code: "S002",
        put: |t| {
            first(
                t,
                "{\"model\": \"small\"}",
                "{\"model\": \"small\", \"base_url\": \"http://models.example.org/v1\"}",
            )
        },
    },
    Fault {
        name: "outcome without an edge",
        format: "dify",
        code: "L007",
        put: |t| {
            first(
                &line(t, "      - {source: c, sourceHandle: '2'", "")?,
                "      - {id: n, data: {type: answer, title: no, answer: Ask somebody else.}}\n",
                "",
            )
        },
    },
    Fault {
        name: "edge without an outcome",
        format: "dify",
        code: "L007",
        put: |t| {
            first(
                t,
                "      - {source: l, sourceHandle",
                "      - {source: c, sourceHandle: '3', target: n}\n      - {source: l, sourceHandle",
            )
        },
    },
    Fault {
        name: "unreachable node",
        format: "dify",
        code: "L008",
        put: |t| {
            first(
                t,
                "      - {id: n, data",
                "      - {id: z, data: {type: answer, title: never, answer: Never.}}\n      - {id: n, data",
            )
        },
    },
    Fault {
        name: "never written",
        format: "dify",
        code: "L011",
        put: |t| first(t, "value: kind}", "value: ''}"),
    },
    Fault {
        name: "missing value",
        format: "dify",
        code: "L024",
        put: |t| first(t, "{{#l.text#}}", "{{#m.text#}}"),
    },
    Fault {
        name: "empty prompt",
        format: "dify",
        code: "L001",
        put: |t| {
            let t = line(t, "            - {role: system", "            - {role: system, text: ''}")?;
            line(&t, "            - {role: user", "            - {role: user, text: ''}")
        },
    },
    Fault {
        name: "impossible temperature",
        format: "dify",
        code: "L009",
        put: |t| first(t, "temperature: 0.2", "temperature: 9"),
    },
    Fault {
        name: "handover circle",
        format: "cagent",
        code: "L020",
        put: |t| first(t, "    toolsets:\n", "    handoffs: [root]\n    toolsets:\n"),
    },
    Fault {
        name: "remove the bound",
        format: "cagent",
        code: "L017",
        put: |t| {
            let at = t.rfind("    max_iterations: ")?;
            let end = at + t[at..].find('\n')? + 1;
            Some(format!("{}{}", &t[..at], &t[end..]))
        },
    },
    Fault {
        name: "empty prompt",
        format: "cagent",
        code: "L001",
        put: |t| line(t, "    instruction: You help", "    instruction: ''"),
    },
    Fault {
        name: "remove the model",
        format: "cagent",
        code: "L002",
        put: |t| first(t, "    model: small\n    description: helps", "    description: helps"),
    },
    Fault {
        name: "plain HTTP",
        format: "cagent",
        code: "S002",
        put: |t| {
            first(t, "model: gpt-4o-mini", "base_url: 'http://models.example.org/v1', model: gpt-4o-mini")
        },
    },
    Fault {
        name: "secret",
        format: "cagent",
        code: "S001",
        put: |t| first(t, "model: gpt-4o-mini", &format!("api_key: {KEY}, model: gpt-4o-mini")),
    },
    Fault {
        name: "no way to the end",
        format: "chatdev",
        code: "L023",
        put: |t| {
            all(
                t,
                "    - {from: second, to: last}\n",
                "    - {from: second, to: last}\n    - {from: last, to: first}\n",
            )
        },
    },
    Fault {
        name: "unreachable node",
        format: "chatdev",
        code: "L008",
        put: |t| first(t, "    - {from: second, to: last}\n", ""),
    },
    Fault {
        name: "empty prompt",
        format: "chatdev",
        code: "L001",
        put: |t| first(t, "role: Sum it up.", "role: ''"),
    },
    Fault {
        name: "remove the model",
        format: "chatdev",
        code: "L002",
        put: |t| first(t, "{name: small, role: Sum it up.}", "{role: Sum it up.}"),
    },
    Fault {
        name: "secret",
        format: "chatdev",
        code: "S001",
        put: |t| first(t, "role: Sum it up.", &format!("api_key: {KEY}, role: Sum it up.")),
    },
    Fault {
        name: "plain HTTP",
        format: "chatdev",
        code: "S002",
        put: |t| first(t, "role: Sum it up.", "base_url: 'http://models.example.org/v1', role: Sum it up."),
    },
];

/// Every fault in every configuration that has a place for it.
fn cases(sound: &[Sound]) -> Vec<Case> {
    let mut cases = Vec::new();
    for s in sound {
        for f in FAULTS.iter().filter(|f| f.format == s.format) {
            if let Some(text) = (f.put)(&s.text) {
                cases.push(Case { format: s.format, fault: f.name, code: f.code, path: s.path, text });
            }
        }
    }
    cases
}

/// The codes of level warn, error and unknown.
fn found(path: &str, text: &str) -> Vec<(&'static str, Level, String)> {
    // A missing bound is a fault here, whatever the framework's default is.
    let config = Config { most_default_rounds: 0, ..Config::default() };
    match lint_bytes(frontends::recognize, path, FileId(0), text.as_bytes(), &config).outcome {
        Outcome::Checked { findings, .. } => {
            findings.into_iter().map(|d| (d.code, d.level, d.message)).collect()
        }
        other => vec![("none", Level::Error, format!("not checked: {other:?}"))],
    }
}

/// Numbers of injected and detected faults of a kind, and of other findings.
#[derive(Default)]
pub struct Row {
    pub put: usize,
    pub found: usize,
    pub others: Vec<String>,
}

/// The outcome of the experiment.
pub struct Result {
    /// By format, fault and code.
    pub rows: BTreeMap<(&'static str, &'static str, &'static str), Row>,
    /// Findings in sound configurations.
    pub false_alarms: Vec<String>,
    pub sound: usize,
}

/// Runs the experiment.
pub fn experiment() -> Result {
    let sound = sound();
    let mut false_alarms = Vec::new();
    for s in &sound {
        for (code, _, message) in found(s.path, &s.text) {
            false_alarms.push(format!("{} {code} {message}\n{}", s.format, s.text));
        }
    }
    let mut rows: BTreeMap<_, Row> = BTreeMap::new();
    for c in cases(&sound) {
        let row = rows.entry((c.format, c.fault, c.code)).or_default();
        row.put += 1;
        let mut hit = false;
        for (code, _, message) in found(c.path, &c.text) {
            if code == c.code {
                hit = true;
            } else {
                row.others.push(format!("{code} {message}\n{}", c.text));
            }
        }
        row.found += usize::from(hit);
    }
    Result { rows, false_alarms, sound: sound.len() }
}
