"""The framework under other names."""
import asyncio
import autogen_agentchat.agents as people
import autogen_ext.models.openai as oai
from autogen_agentchat.teams import RoundRobinGroupChat as Talk

client = oai.OpenAIChatCompletionClient(model="gpt-4o-mini")
people_ = [people.AssistantAgent(f"p{i}", client) for i in range(3)]
print(asyncio.run(Talk(people_, max_turns=5).run(task="Talk")).stop_reason)
