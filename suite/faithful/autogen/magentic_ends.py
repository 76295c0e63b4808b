"""A MagenticOne orchestrator with few turns and a termination condition."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import MagenticOneGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o")
poet = AssistantAgent("poet", client, description="Writes.", system_message="Write.")
team = MagenticOneGroupChat(
    [poet],
    model_client=client,
    max_turns=1,
    termination_condition=TextMentionTermination("END"),
    final_answer_prompt="Say what came of it.",
)


async def main() -> None:
    print((await team.run(task="A line")).messages[-1].content)


if __name__ == "__main__":
    asyncio.run(main())
