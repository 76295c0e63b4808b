//! Default bounds of loops, by framework and version.
//!
//! A version comes from the project's lock file or requirements when there is one
//! ([`frontend_kit::versions`]); otherwise the newest range counts. A bound says where it came from.

use core_ir::{Bound, BoundOrigin};
use frontend_kit::emit::LoopBound;
use frontend_kit::versions::{Versions, parts};

/// One default of a framework, over its versions.
pub(crate) struct Default {
    /// The framework as people call it.
    pub framework: &'static str,
    /// The package whose version decides.
    pub package: &'static str,
    /// Unit of the count: `steps`.
    pub counts: &'static str,
    /// Subject of the repetition.
    pub repeats: Repeats,
    /// Oldest first: the first version of the range, the value (`None`: no limit), and where that stands.
    pub ranges: &'static [(&'static str, Option<u64>, &'static str)],
}

/// Subject of a loop whose bound is a default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Turns, which its body decides about.
    Turns,
    /// An attempt, as long as its results are refused.
    Attempts,
}

/// The bound of the version that the project uses; of the newest range that it may use if that is not known.
pub(crate) fn bound(default: &Default, versions: &Versions) -> LoopBound {
    let (exact, below) = (versions.exact(default.package), versions.below(default.package));
    let ranges = default.ranges;
    let range = match (exact.map(parts), below.map(parts)) {
        (Some(v), _) => ranges.iter().rev().find(|(from, _, _)| parts(from) <= v),
        (None, Some(v)) => ranges.iter().rev().find(|(from, _, _)| parts(from) < v),
        (None, None) => ranges.last(),
    };
    let Default { framework, counts, .. } = default;
    let Some((from, value, _)) = range.or(ranges.first()) else {
        return LoopBound::none("nothing is known of the framework's limit");
    };
    let of = match (exact, below) {
        (Some(v), _) => format!("{framework} {v}"),
        (None, _) if from.is_empty() && ranges.len() == 1 => framework.to_string(),
        (None, Some(v)) => format!("{framework} before {v}"),
        (None, None) => format!("{framework} {from} and later"),
    };
    match value {
        Some(n) => {
            let text = format!("the default of {of}, {n} {counts}").into();
            let origin = match default.repeats {
                Repeats::Turns => BoundOrigin::Default(text),
                Repeats::Attempts => BoundOrigin::Retries(text),
            };
            LoopBound::unwritten(Bound::Finite(*n), origin)
        }
        None => LoopBound::none(&format!("{of} sets no limit of {counts}")),
    }
}

/// Model calls of a run of Google ADK.
pub(crate) const ADK_CALLS: Default = Default {
    framework: "Google ADK",
    package: "google-adk",
    counts: "model calls",
    repeats: Repeats::Turns,
    ranges: &[("", Some(500), "google/adk-python src/google/adk/agents/run_config.py: max_llm_calls = 500")],
};

/// Rounds of tool calls of Prime Vector's Open Agent Spec.
pub(crate) const OA_ROUNDS: Default = Default {
    framework: "Open Agent Spec",
    package: "open-agent-spec",
    counts: "rounds",
    repeats: Repeats::Turns,
    ranges: &[("", Some(10), "prime-vector/open-agent-spec oas_cli/runner.py: _MAX_TOOL_ITERATIONS = 10")],
};

/// Turns of Goose.
pub(crate) const GOOSE_TURNS: Default = Default {
    framework: "Goose",
    package: "goose",
    counts: "turns",
    repeats: Repeats::Turns,
    ranges: &[("", Some(1000), "block/goose crates/goose/src/agents/agent.rs: DEFAULT_MAX_TURNS = 1000")],
};

/// Steps of a Letta agent.
pub(crate) const LETTA_STEPS: Default = Default {
    framework: "Letta",
    package: "letta",
    counts: "steps",
    repeats: Repeats::Turns,
    ranges: &[("", Some(50), "letta-ai/letta letta/constants.py: DEFAULT_MAX_STEPS = 50")],
};

/// Rounds of an ms-agent.
pub(crate) const MS_AGENT_ROUNDS: Default = Default {
    framework: "ms-agent",
    package: "ms-agent",
    counts: "rounds",
    repeats: Repeats::Turns,
    ranges: &[("", Some(20), "modelscope/ms-agent ms_agent/agent/llm_agent.py: DEFAULT_MAX_CHAT_ROUND = 20")],
};

/// Model calls of a task of a Solace Agent Mesh agent.
pub(crate) const SOLACE_CALLS: Default = Default {
    framework: "Solace Agent Mesh",
    package: "solace-agent-mesh",
    counts: "model calls",
    repeats: Repeats::Turns,
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
    repeats: Repeats::Turns,
    ranges: &[("", Some(20), "MervinPraison/PraisonAI praisonaiagents/agent/agent.py: max_iter = 20")],
};

/// Rounds of a step that PraisonAI repeats.
pub(crate) const PRAISON_REPEAT: Default = Default {
    framework: "PraisonAI",
    package: "praisonaiagents",
    counts: "rounds",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(5),
        "MervinPraison/PraisonAI (commit 52e3e37b) praisonaiagents/workflows/yaml_parser.py: repeat_config.get('max_iterations', 5)",
    )],
};

/// Iterations of an agent that PraisonAI has CrewAI run.
pub(crate) const PRAISON_CREW_ITER: Default = Default {
    framework: "PraisonAI's adapter of CrewAI",
    package: "praisonai",
    counts: "iterations",
    repeats: Repeats::Turns,
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
    repeats: Repeats::Turns,
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
    repeats: Repeats::Turns,
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
    repeats: Repeats::Turns,
    ranges: &[("", Some(100), "langgenius/dify docker/.env.example: LOOP_NODE_MAX_COUNT=100")],
};

/// Iterations of an agent of n8n.
pub(crate) const N8N_ITERATIONS: Default = Default {
    framework: "n8n",
    package: "n8n",
    counts: "iterations",
    repeats: Repeats::Turns,
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
    repeats: Repeats::Turns,
    ranges: &[
        (
            "0.4",
            Some(1),
            "microsoft/autogen (python-v0.6.1) autogen_agentchat/agents/_assistant_agent.py: the calls of one reply are carried out, then they are summarized or reflected on",
        ),
        (
            "0.6.2",
            Some(1),
            "microsoft/autogen (commit 6f15270cb, first in python-v0.6.2; python-v0.7.5) autogen_agentchat/agents/_assistant_agent.py: max_tool_iterations = 1",
        ),
    ],
};

/// Attempts of an AutoGen selector to name who speaks next.
pub(crate) const AUTOGEN_SELECTS: Default = Default {
    framework: "AutoGen",
    package: "autogen-agentchat",
    counts: "attempts",
    repeats: Repeats::Turns,
    ranges: &[
        (
            "0.4",
            Some(1),
            "microsoft/autogen (python-v0.4.5) autogen_agentchat/teams/_group_chat/_selector_group_chat.py: one request, and an error if it names nobody",
        ),
        (
            "0.4.6",
            Some(3),
            "microsoft/autogen (commit 426b89848, first in python-v0.4.6; python-v0.7.5) autogen_agentchat/teams/_group_chat/_selector_group_chat.py: max_selector_attempts = 3",
        ),
    ],
};

/// Turns of MagenticOne.
pub(crate) const AUTOGEN_MAGENTIC: Default = Default {
    framework: "AutoGen",
    package: "autogen-agentchat",
    counts: "turns",
    repeats: Repeats::Turns,
    ranges: &[(
        "0.4",
        Some(20),
        "autogen-agentchat 0.7.5 autogen_agentchat/teams/_group_chat/_magentic_one/_magentic_one_group_chat.py: max_turns = 20",
    )],
};

/// Replies in a row of an agent of AutoGen before 0.4, unless a person answers.
pub(crate) const AUTOGEN_REPLIES: Default = Default {
    framework: "AutoGen",
    package: "pyautogen",
    counts: "replies in a row",
    repeats: Repeats::Turns,
    ranges: &[(
        "0.2",
        Some(100),
        "autogen-agentchat 0.2.40 autogen/agentchat/conversable_agent.py: MAX_CONSECUTIVE_AUTO_REPLY = 100",
    )],
};

/// Rounds of a group of AutoGen before 0.4.
pub(crate) const AUTOGEN_ROUNDS: Default = Default {
    framework: "AutoGen",
    package: "pyautogen",
    counts: "rounds",
    repeats: Repeats::Turns,
    ranges: &[("0.2", Some(10), "autogen-agentchat 0.2.40 autogen/agentchat/groupchat.py: max_round = 10")],
};

/// Further attempts to name who speaks next in a group of AutoGen before 0.4.
pub(crate) const AUTOGEN_RETRIES: Default = Default {
    framework: "AutoGen",
    package: "pyautogen",
    counts: "further attempts",
    repeats: Repeats::Turns,
    ranges: &[(
        "0.2",
        Some(2),
        "autogen-agentchat 0.2.40 autogen/agentchat/groupchat.py: max_retries_for_selecting_speaker = 2",
    )],
};

/// Turns of an AutoGen team.
pub(crate) const AUTOGEN_TURNS: Default = Default {
    framework: "AutoGen",
    package: "autogen-agentchat",
    counts: "turns",
    repeats: Repeats::Turns,
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
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(40),
        "microsoft/agent-framework python/packages/core/agent_framework/_tools.py: DEFAULT_MAX_ITERATIONS = 40",
    )],
};

/// Iterations of an agent of Langflow.
pub(crate) const LANGFLOW_ITERATIONS: Default = Default {
    framework: "Langflow",
    package: "langflow",
    counts: "iterations",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(15),
        "langflow-ai/langflow (commit 007c2209) src/backend/base/langflow/base/agents/agent.py: max_iterations, value=15",
    )],
};

/// Steps of a workflow of Microsoft Agent Framework.
pub(crate) const MAF_STEPS: Default = Default {
    framework: "Microsoft Agent Framework",
    package: "agent-framework",
    counts: "steps",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(100),
        "microsoft/agent-framework python/packages/core/agent_framework/_workflows/_const.py: DEFAULT_MAX_ITERATIONS = 100",
    )],
};

/// Turns of a run of the OpenAI Agents SDK.
pub(crate) const OPENAI_AGENTS_TURNS: Default = Default {
    framework: "the OpenAI Agents SDK",
    package: "openai-agents",
    counts: "turns",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(10),
        "openai/openai-agents-python src/agents/run_config.py (0.24.0): DEFAULT_MAX_TURNS = 10",
    )],
};

/// Requests of a run of pydantic-ai.
pub(crate) const PYDANTIC_AI_REQUESTS: Default = Default {
    framework: "pydantic-ai",
    package: "pydantic-ai",
    counts: "requests",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(50),
        "pydantic/pydantic-ai pydantic_ai_slim/pydantic_ai/usage.py: UsageLimits.request_limit = 50",
    )],
};

/// Steps of an agent of smolagents.
pub(crate) const SMOLAGENTS_STEPS: Default = Default {
    framework: "smolagents",
    package: "smolagents",
    counts: "steps",
    repeats: Repeats::Turns,
    ranges: &[
        ("", Some(6), "huggingface/smolagents src/smolagents/agents.py (1.9.2): max_steps: int = 6"),
        ("1.10", Some(20), "huggingface/smolagents src/smolagents/agents.py (1.22.0): max_steps: int = 20"),
    ],
};

/// Turns of a run of the Claude Agent SDK.
pub(crate) const CLAUDE_AGENT_TURNS: Default = Default {
    framework: "the Claude Agent SDK",
    package: "claude-agent-sdk",
    counts: "turns",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        None,
        "anthropics/claude-agent-sdk-python src/claude_agent_sdk/types.py: max_turns: int | None = None",
    )],
};

/// Iterations of an agent workflow of LlamaIndex.
pub(crate) const LLAMA_INDEX_ITERATIONS: Default = Default {
    framework: "LlamaIndex",
    package: "llama-index-core",
    counts: "iterations",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(20),
        "run-llama/llama_index llama-index-core/llama_index/core/agent/workflow/base_agent.py: \
         DEFAULT_MAX_ITERATIONS = 20",
    )],
};

/// Iterations of an agent of LlamaIndex that `from_tools` makes.
pub(crate) const LLAMA_INDEX_TOOLS: Default = Default {
    framework: "LlamaIndex",
    package: "llama-index-core",
    counts: "iterations",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        Some(10),
        "run-llama/llama_index llama-index-core/llama_index/core/agent/react/base.py (0.11): max_iterations = 10",
    )],
};

/// Steps of an agent of CrewAI.
pub(crate) const CREWAI_ITER: Default = Default {
    framework: "CrewAI",
    package: "crewai",
    counts: "steps",
    repeats: Repeats::Turns,
    ranges: &[
        ("", Some(15), "crewai 0.11.2 to 0.27.0, agent.py: max_iter = Field(default=15)"),
        (
            "0.28",
            Some(25),
            "crewai 0.28.0 to 0.55.2, agents/agent_builder/base_agent.py: max_iter = Field(default=25)",
        ),
        ("0.60", Some(15), "crewai 0.60.0 to 0.63.6, agent.py: max_iter = Field(default=15)"),
        ("0.64", Some(20), "crewai 0.64.0 to 0.100.0, agent.py: max_iter = Field(default=20)"),
        (
            "0.102",
            Some(25),
            "crewai 0.102.0 to 1.15.17 (commit f4731f50), agents/agent_builder/base_agent.py: max_iter = Field(default=25)",
        ),
    ],
};

/// Default of `guardrail_max_retries` in CrewAI.
pub(crate) const CREWAI_GUARDRAIL: Default = Default {
    framework: "CrewAI",
    package: "crewai",
    counts: "retries",
    repeats: Repeats::Attempts,
    ranges: &[(
        "",
        Some(3),
        "crewai 0.86.0 to 1.15.30, task.py: max_retries, then guardrail_max_retries = Field(default=3)",
    )],
};

/// Turns of a flow of CrewAI that goes in cycles.
pub(crate) const CREWAI_FLOW: Default = Default {
    framework: "CrewAI",
    package: "crewai",
    counts: "turns of a flow",
    repeats: Repeats::Turns,
    ranges: &[(
        "",
        None,
        "crewAIInc/crewAI (commit f4731f50) flow/flow.py: a method runs each time that what it listens to ends",
    )],
};

/// Steps of a run of LangGraph.
pub(crate) const LANGGRAPH_STEPS: Default = Default {
    framework: "LangGraph",
    package: "langgraph",
    counts: "steps",
    repeats: Repeats::Turns,
    ranges: &[
        (
            "",
            Some(25),
            "langchain-ai/langchain libs/core/langchain_core/runnables/config.py: DEFAULT_RECURSION_LIMIT = 25",
        ),
        (
            "1.0.6",
            Some(10_000),
            "langchain-ai/langgraph (commit a5827c5c6) libs/langgraph/langgraph/_internal/_config.py: DEFAULT_RECURSION_LIMIT",
        ),
        (
            "1.1.4",
            Some(10_007),
            "langchain-ai/langgraph (commit 2fb367e90) libs/langgraph/langgraph/_internal/_config.py: DEFAULT_RECURSION_LIMIT",
        ),
    ],
};

/// Steps of a run of an agent that LangChain's `create_agent` makes; [`create_agent`] says which versions set
/// any.
const LANGCHAIN_AGENT_STEPS: Default = Default {
    framework: "LangChain's create_agent",
    package: "langchain",
    counts: "steps",
    repeats: Repeats::Turns,
    ranges: &[
        (
            "1.0.5",
            Some(10_000),
            "langchain 1.0.5 to 1.2.13 langchain/agents/factory.py: {\"recursion_limit\": 10_000}",
        ),
        (
            "1.2.14",
            Some(9_999),
            "langchain 1.2.14 to 1.5.0 langchain/agents/factory.py: {\"recursion_limit\": 9_999}",
        ),
    ],
};

/// The bound of an agent that LangChain's `create_agent` makes. The first versions leave it to LangGraph
/// (langchain 1.0.0 to 1.0.4 `langchain/agents/factory.py`).
pub(crate) fn create_agent(versions: &Versions) -> LoopBound {
    let none_yet = versions.exact(LANGCHAIN_AGENT_STEPS.package).is_some_and(|v| parts(v) < parts("1.0.5"));
    bound(if none_yet { &LANGGRAPH_STEPS } else { &LANGCHAIN_AGENT_STEPS }, versions)
}

/// Steps of a run of a deep agent; [`create_deep_agent`] says which versions set any.
const DEEP_AGENT_STEPS: Default = Default {
    framework: "deepagents",
    package: "deepagents",
    counts: "steps",
    repeats: Repeats::Turns,
    ranges: &[
        ("0.1", Some(1_000), "deepagents 0.1.0 to 0.4.12 deepagents/graph.py: {\"recursion_limit\": 1000}"),
        ("0.5", Some(9_999), "deepagents 0.5.0 to 0.7.32 deepagents/graph.py: {\"recursion_limit\": 9_999}"),
    ],
};

/// The bound of a deep agent. The first versions leave it to LangGraph (deepagents 0.0.5
/// `deepagents/graph.py`).
pub(crate) fn create_deep_agent(versions: &Versions) -> LoopBound {
    let none_yet = versions.exact(DEEP_AGENT_STEPS.package).is_some_and(|v| parts(v) < parts("0.1"));
    bound(if none_yet { &LANGGRAPH_STEPS } else { &DEEP_AGENT_STEPS }, versions)
}

/// Iterations of LangChain's agent executor.
pub(crate) const LANGCHAIN_ITERATIONS: Default = Default {
    framework: "LangChain's AgentExecutor",
    package: "langchain",
    counts: "iterations",
    repeats: Repeats::Turns,
    ranges: &[("", Some(15), "langchain 0.3 langchain/agents/agent.py: AgentExecutor.max_iterations = 15")],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn of_crewai(requirement: &str) -> String {
        let mut versions = Versions::default();
        versions.read("requirements.txt", &format!("crewai{requirement}\n"));
        bound(&CREWAI_ITER, &versions).origin.map_or(String::new(), |o| o.describe())
    }

    #[test]
    fn bounds_of_langchain_agents_depend_on_the_version() {
        let said = |bound: fn(&Versions) -> LoopBound, requirements: &str| {
            let mut versions = Versions::default();
            versions.read("requirements.txt", requirements);
            bound(&versions).origin.map_or(String::new(), |o| o.describe())
        };
        for (requirements, of) in [
            ("langchain==1.0.4\nlanggraph==1.0.3\n", "the default of LangGraph 1.0.3, 25 steps"),
            ("langchain==1.2.10\n", "the default of LangChain's create_agent 1.2.10, 10000 steps"),
            ("langchain==1.2.14\n", "the default of LangChain's create_agent 1.2.14, 9999 steps"),
            ("langchain>=1.0\n", "the default of LangChain's create_agent 1.2.14 and later, 9999 steps"),
        ] {
            assert_eq!(said(create_agent, requirements), of);
        }
        for (requirements, of) in [
            ("deepagents==0.0.5\nlanggraph==0.6.7\n", "the default of LangGraph 0.6.7, 25 steps"),
            ("deepagents==0.4.12\n", "the default of deepagents 0.4.12, 1000 steps"),
            ("deepagents\n", "the default of deepagents 0.5 and later, 9999 steps"),
        ] {
            assert_eq!(said(create_deep_agent, requirements), of);
        }
    }

    #[test]
    fn the_version_decides() {
        for (requirement, expected) in [
            ("==0.30.11", "the default of CrewAI 0.30.11, 25 steps"),
            ("==0.22.5", "the default of CrewAI 0.22.5, 15 steps"),
            ("==0.86.0", "the default of CrewAI 0.86.0, 20 steps"),
            ("==1.9.0", "the default of CrewAI 1.9.0, 25 steps"),
            (">=0.86.0,<1.0.0", "the default of CrewAI before 1.0.0, 25 steps"),
            ("~=0.86.0", "the default of CrewAI before 0.87, 20 steps"),
            (">=0.28", "the default of CrewAI 0.102 and later, 25 steps"),
        ] {
            assert_eq!(of_crewai(requirement), expected, "{requirement}");
        }
    }

    #[test]
    fn deep_agents_and_agents_have_limits_of_their_own() {
        let of = |default: &Default, text: &str| {
            let mut versions = Versions::default();
            versions.read("requirements.txt", text);
            bound(default, &versions).bound
        };
        let limits = [
            ("==1.0.7", &LANGCHAIN_AGENT_STEPS, 10_000),
            ("==1.2.13", &LANGCHAIN_AGENT_STEPS, 10_000),
            ("==1.2.14", &LANGCHAIN_AGENT_STEPS, 9_999),
            ("==0.2.8", &DEEP_AGENT_STEPS, 1_000),
            (">=0.4,<0.5", &DEEP_AGENT_STEPS, 1_000),
            ("==0.7.32", &DEEP_AGENT_STEPS, 9_999),
            ("", &DEEP_AGENT_STEPS, 9_999),
        ];
        for (version, default, steps) in limits {
            let text = format!("{}{version}\n", default.package);
            assert_eq!(of(default, &text), core_ir::Bound::Finite(steps), "{text}");
        }
    }
}
