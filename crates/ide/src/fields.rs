//! Meaning of the fields of configurations in the calculus.
//!
//! Entry points: [`meaning`] of a key, [`names_others`] for keys whose values are names.

/// Keys, and their counterparts in the term. Keys are compared without case, `_` and `-`.
const MEANINGS: &[(&[&str], &str)] = &[
    (
        &[
            "prompt",
            "systemprompt",
            "instruction",
            "instructions",
            "systemmessage",
            "systemtemplate",
            "prompttemplate",
        ],
        "`p` of `llm p θ`: the instructions. Empty, the model is asked without any (L001)",
    ),
    (&["role", "goal", "backstory"], "a part of `p` of `llm p θ`: who the agent is"),
    (
        &["llm", "model", "modelname", "llmname", "modelclient", "modelid", "chatmodel", "deploymentname"],
        "the model in `θ` of `llm p θ`: who is asked. Without one there is nothing to ask, unless the framework has a default (L002)",
    ),
    (&["temperature", "topp", "seed", "maxtokens"], "a setting in `θ` of `llm p θ`"),
    (
        &["tools", "toolnames", "toolsets", "localtools", "nattools", "functions", "plugins"],
        "the tools in `θ` of `llm p θ`: with tools, the agent is a loop `fix[n]` of asking and calling; the reply that calls none ends it",
    ),
    (
        &[
            "maxiter",
            "maxiterations",
            "maxsteps",
            "maxturns",
            "maxrounds",
            "maxround",
            "maxtoolcalls",
            "recursionlimit",
            "maxllmcallspertask",
            "maxchatnums",
            "steplimit",
            "maxiteration",
        ],
        "`n` of `fix[n]`: how often the loop may run. After it, the run is cut off (L004b); without it, the framework's default holds (L017)",
    ),
    (
        &["terminationcondition", "until", "isterminationmsg", "exitcondition"],
        "the test of the `if` before `self` in a `fix`: what ends the loop without its bound (L004)",
    ),
    (
        &["agents", "participants", "members", "subagents", "nodeagents"],
        "the agents that the term is made of",
    ),
    (&["agent", "agentname"], "the agent that the step applies: `agent (…)`"),
    (&["tasks", "steps", "stages", "toollist"], "`e1 >> … >> en`: one after the other"),
    (
        &["context", "dependencies", "dependson"],
        "the results of other steps that are put into the prompt: `let y = e1 in … y …`",
    ),
    (
        &["expectedoutput", "outputschema", "responseformat", "outputjson", "outputpydantic"],
        "what the reply is to be: a type, where the schema is known",
    ),
    (
        &["branches", "routes", "cases", "classes"],
        "the branches of `case classify[…] (llm p θ x) of {…}`; a reply outside of them needs a default (L013)",
    ),
    (&["default", "defaultroute"], "the branch `_` of a `case`"),
    (&["parallel"], "`par [e1, …]`: at the same time"),
    (&["repeat", "loop"], "a `fix[n]` around the step"),
    (&["nodes"], "the nodes of a graph; what is not reached is no part of the term (L008)"),
    (&["edges", "connections"], "what follows what: `>>`, or a `case` where an edge has a condition (L007)"),
    (
        &["handoffs", "handovers"],
        "the agents that this one may hand off to: a tool each, whose call continues with the other (L020)",
    ),
    (&["allowdelegation"], "whether the other agents are tools of this one"),
    (&["memory"], "`mem`: the store that `remember` and `recall` use"),
    (&["guardrail", "guardrails", "guard"], "`guard e P retry n`: the result is refused unless P holds"),
    (
        &["retry", "retries", "maxretries", "retryonfail", "maxretrylimit"],
        "what fails is tried again, with its effects (L022)",
    ),
    (&["inputs", "variables", "input"], "the parameters of the term: `λinputs. e`"),
    (&["description"], "what the agent is for: shown to those who may choose it"),
    (
        &["strategy", "process", "selectionmode"],
        "how the parts are composed: in order, in turns, or as a model chooses",
    ),
    (
        &["codeexecutionmode", "usedocker", "codeexecutionconfig"],
        "where code that a model writes runs; it is outside of the calculus (S003)",
    ),
    (
        &["approve", "approval", "requireapproval", "humaninput", "humaninputmode"],
        "a person is asked before the call, which endorses its arguments",
    ),
];

fn plain(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns the meaning of a key, if it means the same in most formats.
pub(crate) fn meaning(key: &str) -> Option<&'static str> {
    let key = plain(key);
    MEANINGS.iter().find(|(keys, _)| keys.contains(&key.as_str())).map(|(_, meaning)| *meaning)
}

/// Keys whose values name agents, tasks or nodes.
pub(crate) fn names_others(key: &str) -> bool {
    const KEYS: &[&str] = &[
        "agent",
        "agents",
        "agentname",
        "context",
        "participants",
        "members",
        "subagents",
        "nodeagents",
        "steps",
        "tasks",
        "branches",
        "toollist",
        "toolnames",
        "handoffs",
        "from",
        "to",
        "source",
        "target",
        "next",
        "start",
        "end",
        "root",
        "dependencies",
        "dependson",
        "selector",
        "entrypoint",
    ];
    KEYS.contains(&plain(key).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_however_they_are_written() {
        assert_eq!(meaning("maxSteps"), meaning("max_steps"));
        assert!(meaning("max_iter").is_some_and(|m| m.contains("fix[n]")));
        assert_eq!(meaning("shade"), None);
        assert!(names_others("sub_agents") && !names_others("role"));
        for (keys, _) in MEANINGS {
            assert!(keys.iter().all(|k| plain(k) == **k && meaning(k).is_some()), "{keys:?}");
        }
    }
}
