"""A guardrail after the agent, with a model."""
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool


@tool
def search(query: str) -> str:
    """Searches."""
    return "found"


class SafetyGuardrail(AgentMiddleware):
    def __init__(self):
        super().__init__()
        self.safety_model = init_chat_model("gpt-4o-mini", model_provider="openai")

    @hook_config(can_jump_to=["end"])
    def after_agent(self, state, runtime):
        last = state["messages"][-1]
        verdict = self.safety_model.invoke([{"role": "user", "content": f"SAFE or UNSAFE? {last.content}"}])
        if "UNSAFE" in verdict.content:
            last.content = "I cannot provide that response."
        return None


agent = create_agent(model="openai:gpt-4o-mini", tools=[search], middleware=[SafetyGuardrail()])
agent.invoke({"messages": [{"role": "user", "content": "How?"}]}, {"recursion_limit": 9})
