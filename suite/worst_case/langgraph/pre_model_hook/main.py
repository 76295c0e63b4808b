"""A hook before the model, which summarizes by a model."""
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

llm = ChatOpenAI(model="gpt-4o-mini")


@tool
def look(city: str) -> str:
    """Looks at the sky."""
    return "blue"


def condense(state):
    text = "\n".join(str(m.content) for m in state["messages"])
    return {"llm_input_messages": [HumanMessage(llm.invoke("Condense: " + text).content)]}


agent = create_react_agent(llm, [look], pre_model_hook=condense)
agent.invoke({"messages": [("user", "Oslo?")]}, {"recursion_limit": 10})
