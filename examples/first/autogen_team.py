from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4.1-mini")
writer = AssistantAgent("writer", model_client=client, system_message="You write.")
critic = AssistantAgent("critic", model_client=client, system_message="You criticise.")
team = RoundRobinGroupChat([writer, critic])
