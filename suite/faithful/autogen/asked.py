"""An agent as a tool of another agent."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.tools import AgentTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
translator = AssistantAgent("translator", client, description="Translates into French.", system_message="Translate.")
desk = AssistantAgent(
    "desk",
    client,
    tools=[AgentTool(agent=translator, return_value_as_last_message=True)],
    system_message="Have it translated.",
    reflect_on_tool_use=True,
)


async def main() -> None:
    print((await desk.run(task="Say hello in French")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
