"""A middleware that lets a model check each answer."""
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

checker = ChatOpenAI(model="gpt-4o-mini")


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class SafetyCheck(AgentMiddleware):
    def after_model(self, state: AgentState, runtime):
        checker.invoke([("system", "Is this safe?"), ("user", str(state["messages"][-1].content))])
        return None


agent = create_agent("openai:gpt-4o-mini", tools=[add], middleware=[SafetyCheck()])
agent.invoke({"messages": [("user", "1 + 2")]}, {"recursion_limit": 10})
