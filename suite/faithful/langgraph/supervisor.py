"""A supervisor with two agents."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from langgraph_supervisor import create_supervisor

model = ChatOpenAI(model="m")


@tool
def add(a: float, b: float) -> float:
    """Adds."""
    return a + b


math = create_react_agent(model, [add], name="math", prompt="You compute.")
writer = create_react_agent(model, [], name="writer", prompt="You write.")
workflow = create_supervisor(
    [math, writer],
    model=model,
    prompt="You lead.",
    add_handoff_back_messages=False,
    output_mode="last_message",
)
app = workflow.compile()

if __name__ == "__main__":
    result = app.invoke({"messages": [{"role": "user", "content": "What is 2 + 3?"}]})
    print(result["messages"][-1].content)
