"""The web search example with a selector function that gives way to the model."""
import asyncio
from typing import Sequence

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import BaseAgentEvent, BaseChatMessage
from autogen_agentchat.teams import SelectorGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient


def search_web_tool(query: str) -> str:
    """Searches."""
    return "nothing"


model_client = OpenAIChatCompletionClient(model="gpt-4o")
planning_agent = AssistantAgent("PlanningAgent", description="Plans.", model_client=model_client)
search = AssistantAgent("WebSearchAgent", description="Searches.", tools=[search_web_tool], model_client=model_client)
analyst = AssistantAgent("DataAnalystAgent", description="Computes.", model_client=model_client)
termination = TextMentionTermination("TERMINATE") | MaxMessageTermination(max_messages=6)


def selector_func(messages: Sequence[BaseAgentEvent | BaseChatMessage]) -> str | None:
    if messages[-1].source != planning_agent.name:
        return planning_agent.name
    return None


team = SelectorGroupChat(
    [planning_agent, search, analyst],
    model_client=model_client,
    termination_condition=termination,
    allow_repeated_speaker=True,
    selector_func=selector_func,
    max_selector_attempts=2,
)
asyncio.run(team.run(task="Who was the player?"))
