"""Two rounds of tools, then a reflection of the model."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient


def find(name: str) -> int:
    """Finds a number."""
    return 4711 if name == "Ann" else 0


def dial(number: int, loud: bool = False) -> str:
    return f"calling {number}"


agent = AssistantAgent(
    "operator",
    OpenAIChatCompletionClient(model="gpt-4o"),
    tools=[find, FunctionTool(dial, name="call_number", description="Calls a number.")],
    system_message="Call people.",
    max_tool_iterations=2,
    reflect_on_tool_use=True,
)


async def main() -> None:
    print((await agent.run(task="Call Ann")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
