"""Limits on text, tokens and messages, joined by and."""
import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import (
    MaxMessageTermination,
    SourceMatchTermination,
    TextMentionTermination,
    TokenUsageTermination,
)
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
names = ["one", "two", "three"]
agents = [AssistantAgent(name, client) for name in names]
stop = (MaxMessageTermination(5) & SourceMatchTermination(["two"])) | TextMentionTermination("STOP")
stop = stop | TokenUsageTermination(max_total_token=100000)
team = RoundRobinGroupChat(agents, termination_condition=stop)
asyncio.run(team.run(task="Go"))
