"""A middleware that sends the agent back to the model until the answer has a source."""
from langchain.agents import create_agent
from langchain.agents.middleware import after_model
from langchain_core.messages import HumanMessage


@after_model(can_jump_to=["model"])
def need_source(state, runtime):
    if "http" not in str(state["messages"][-1].content):
        return {"messages": [HumanMessage("Name a source.")], "jump_to": "model"}


agent = create_agent("openai:gpt-4o-mini", tools=[], middleware=[need_source])
agent.invoke({"messages": [("user", "When?")]}, {"recursion_limit": 10})
