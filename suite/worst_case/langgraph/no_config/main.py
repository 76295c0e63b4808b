"""An agent without a recursion limit of its own."""
from langchain.agents import create_agent


def multiply(a: int, b: int) -> int:
    """Multiplies."""
    return a * b


agent = create_agent("openai:gpt-4o-mini", [multiply], name="calculator").with_config(recursion_limit=11)
for chunk in agent.stream({"messages": [("user", "2 * 3 * 4")]}, stream_mode="updates"):
    print(chunk)
