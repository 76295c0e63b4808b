"""A team that surfs the web and runs what it wrote."""
import asyncio

from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.agents.web_surfer import MultimodalWebSurfer
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
from autogen_ext.models.openai import OpenAIChatCompletionClient


async def main() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o")
    surfer = MultimodalWebSurfer("surfer", model_client=client)
    coder = AssistantAgent("coder", model_client=client, system_message="Write Python.")
    runner = CodeExecutorAgent("runner", code_executor=LocalCommandLineCodeExecutor(work_dir="work"))
    team = RoundRobinGroupChat([surfer, coder, runner], termination_condition=MaxMessageTermination(20))
    print(await team.run(task="Plot the prices on example.org."))


asyncio.run(main())
