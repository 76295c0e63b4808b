"""A selector over agents, one of which has a team as a tool, and a filter that is not compiled."""
from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent, UserProxyAgent
from autogen_agentchat.conditions import FunctionalTermination, MaxMessageTermination, TimeoutTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat
from autogen_agentchat.tools import AgentTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

model = OpenAIChatCompletionClient(model="gpt-4o")
files = McpWorkbench(server_params=StdioServerParams(command="files", args=["--all"]))


def writer(topic: str) -> AssistantAgent:
    return AssistantAgent(f"{topic}_writer", model_client=model, system_message=f"You write about {topic}.")


critic = AssistantAgent("critic", model_client=model, description="Finds mistakes.", system_message="Find mistakes.", workbench=files)
inner = RoundRobinGroupChat([writer("bees"), critic], max_turns=2)
society = SocietyOfMindAgent("society", team=inner, model_client=model)
editor = AssistantAgent("editor", model_client=model, tools=[AgentTool(agent=writer("cars"))])
panel = SelectorGroupChat(
    [society, editor, UserProxyAgent("reader", input_func=input)],
    model_client=model,
    termination_condition=MaxMessageTermination(8) | TimeoutTermination(60) | FunctionalTermination(lambda m: False),
    allow_repeated_speaker=True,
    selector_prompt="Of {participants}, who is next?\n{roles}\n{history}",
)
