//! What bounds a loop when the source does not say so: each framework's default, by version.
//!
//! A version comes from the project's lock file or requirements when there is one ([`crate::versions`]);
//! otherwise the newest range counts. A bound says where it came from.

use crate::emit::LoopBound;
use crate::versions::Versions;

/// One default of a framework, over its versions.
pub(crate) struct Default {
    /// The framework as people call it.
    pub framework: &'static str,
    /// The package whose version decides.
    pub package: &'static str,
    /// What is counted: `steps`.
    pub counts: &'static str,
    /// Oldest first: the first version of the range, the value (`None`: no limit), and where that stands.
    pub ranges: &'static [(&'static str, Option<u64>, &'static str)],
}

/// The bound of the version that the project uses; of the newest range if that is not known.
pub(crate) fn bound(default: &Default, versions: &Versions) -> LoopBound {
    of_version(default, versions.of(default.package))
}

fn of_version(default: &Default, version: Option<&str>) -> LoopBound {
    let parsed = version.map(numbers);
    let range = match &parsed {
        Some(v) => default.ranges.iter().rev().find(|(from, _, _)| numbers(from) <= *v),
        None => default.ranges.last(),
    };
    let Default { framework, counts, .. } = default;
    let Some((from, value, _)) = range.or(default.ranges.first()) else {
        return LoopBound::none("nothing is known of the framework's limit");
    };
    let version = match version {
        Some(v) => v.to_string(),
        None if from.is_empty() => String::new(),
        None => format!("{from} and later"),
    };
    let of = if version.is_empty() { framework.to_string() } else { format!("{framework} {version}") };
    match value {
        Some(n) => LoopBound::by_default(*n, &format!("the default of {of}, {n} {counts}")),
        None => LoopBound::none(&format!("{of} sets no limit of {counts}")),
    }
}

/// The numbers of a version: `1.0.0rc2` is `[1, 0, 0]`.
fn numbers(version: &str) -> Vec<u64> {
    let mut out: Vec<u64> = Vec::new();
    for part in version.trim_start_matches(['v', '=', '^', '~', '>', ' ']).split('.') {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        let Ok(n) = digits.parse() else { break };
        out.push(n);
        if digits.len() < part.len() {
            break;
        }
    }
    out
}

/// Model calls of a run of Google ADK.
pub(crate) const ADK_CALLS: Default = Default {
    framework: "Google ADK",
    package: "google-adk",
    counts: "model calls",
    ranges: &[("", Some(500), "google/adk-python src/google/adk/agents/run_config.py: max_llm_calls = 500")],
};

/// Turns of Goose.
pub(crate) const GOOSE_TURNS: Default = Default {
    framework: "Goose",
    package: "goose",
    counts: "turns",
    ranges: &[("", Some(1000), "block/goose crates/goose/src/agents/agent.rs: DEFAULT_MAX_TURNS = 1000")],
};

/// Steps of a Letta agent.
pub(crate) const LETTA_STEPS: Default = Default {
    framework: "Letta",
    package: "letta",
    counts: "steps",
    ranges: &[("", Some(50), "letta-ai/letta letta/constants.py: DEFAULT_MAX_STEPS = 50")],
};

/// Rounds of an ms-agent.
pub(crate) const MS_AGENT_ROUNDS: Default = Default {
    framework: "ms-agent",
    package: "ms-agent",
    counts: "rounds",
    ranges: &[("", Some(20), "modelscope/ms-agent ms_agent/agent/llm_agent.py: DEFAULT_MAX_CHAT_ROUND = 20")],
};

/// Model calls of a task of a Solace Agent Mesh agent.
pub(crate) const SOLACE_CALLS: Default = Default {
    framework: "Solace Agent Mesh",
    package: "solace-agent-mesh",
    counts: "model calls",
    ranges: &[(
        "",
        Some(20),
        "SolaceLabs/solace-agent-mesh (commit 03b358a0) src/solace_agent_mesh/agent/sac/app.py: max_llm_calls_per_task = 20",
    )],
};

/// Iterations of an agent of PraisonAI.
pub(crate) const PRAISON_ITER: Default = Default {
    framework: "PraisonAI",
    package: "praisonaiagents",
    counts: "iterations",
    ranges: &[("", Some(20), "MervinPraison/PraisonAI praisonaiagents/agent/agent.py: max_iter = 20")],
};

/// Iterations of an agent that PraisonAI has CrewAI run.
pub(crate) const PRAISON_CREW_ITER: Default = Default {
    framework: "PraisonAI's adapter of CrewAI",
    package: "praisonai",
    counts: "iterations",
    ranges: &[(
        "",
        Some(15),
        "MervinPraison/PraisonAI (commit 52e3e37b) praisonai/framework_adapters/crewai_adapter.py: max_iter or 15",
    )],
};

/// Tool calls of a ReAct agent of the NeMo Agent Toolkit.
pub(crate) const NAT_CALLS: Default = Default {
    framework: "NeMo Agent Toolkit",
    package: "nvidia-nat",
    counts: "tool calls",
    ranges: &[(
        "",
        Some(15),
        "NVIDIA/NeMo-Agent-Toolkit (commit 0ee87f1e) src/nat/agent/react_agent/register.py: max_tool_calls = 15",
    )],
};

/// Iterations of an agent of Dify.
pub(crate) const DIFY_ITERATIONS: Default = Default {
    framework: "Dify",
    package: "dify",
    counts: "iterations",
    ranges: &[
        (
            "",
            Some(5),
            "langgenius/dify (commit 00d1c455) api/core/agent/entities.py: AgentEntity.max_iteration = 5",
        ),
        ("1.0", Some(10), "langgenius/dify api/core/agent/entities.py: AgentEntity.max_iteration = 10"),
    ],
};

/// Turns of a loop node of Dify.
pub(crate) const DIFY_LOOPS: Default = Default {
    framework: "Dify",
    package: "dify",
    counts: "turns",
    ranges: &[("", Some(100), "langgenius/dify docker/.env.example: LOOP_NODE_MAX_COUNT=100")],
};

/// Iterations of an agent of n8n.
pub(crate) const N8N_ITERATIONS: Default = Default {
    framework: "n8n",
    package: "n8n",
    counts: "iterations",
    ranges: &[(
        "",
        Some(10),
        "n8n-io/n8n packages/@n8n/nodes-langchain/nodes/agents/Agent/agents/ToolsAgent/options.ts: maxIterations 10",
    )],
};

/// Rounds of tool calls of an AutoGen assistant.
pub(crate) const AUTOGEN_TOOLS: Default = Default {
    framework: "AutoGen",
    package: "autogen-agentchat",
    counts: "round of tool calls",
    ranges: &[(
        "0.4",
        Some(1),
        "microsoft/autogen python/packages/autogen-agentchat/src/autogen_agentchat/agents/_assistant_agent.py: max_tool_iterations = 1",
    )],
};

/// Turns of an AutoGen team.
pub(crate) const AUTOGEN_TURNS: Default = Default {
    framework: "AutoGen",
    package: "autogen-agentchat",
    counts: "turns",
    ranges: &[(
        "0.4",
        None,
        "microsoft/autogen python/packages/autogen-agentchat/src/autogen_agentchat/teams/_group_chat/_base_group_chat.py: max_turns = None",
    )],
};

/// Rounds of function calls of Microsoft Agent Framework.
pub(crate) const MAF_CALLS: Default = Default {
    framework: "Microsoft Agent Framework",
    package: "agent-framework",
    counts: "rounds of function calls",
    ranges: &[(
        "",
        Some(40),
        "microsoft/agent-framework python/packages/core/agent_framework/_tools.py: DEFAULT_MAX_ITERATIONS = 40",
    )],
};

/// Turns of a run of the OpenAI Agents SDK.
pub(crate) const OPENAI_AGENTS_TURNS: Default = Default {
    framework: "the OpenAI Agents SDK",
    package: "openai-agents",
    counts: "turns",
    ranges: &[(
        "",
        Some(10),
        "openai/openai-agents-python src/agents/run_config.py (0.24.0): DEFAULT_MAX_TURNS = 10",
    )],
};

/// Turns of a flow of CrewAI that goes in circles.
pub(crate) const CREWAI_FLOW: Default = Default {
    framework: "CrewAI",
    package: "crewai",
    counts: "turns of a flow",
    ranges: &[(
        "",
        None,
        "crewAIInc/crewAI (commit f4731f50) flow/flow.py: a method runs each time that what it listens to ends",
    )],
};
