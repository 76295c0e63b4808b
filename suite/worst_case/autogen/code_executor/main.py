"""An agent that writes code by a model and runs it, with retries."""
import asyncio

from autogen_agentchat.agents import CodeExecutorAgent
from autogen_ext.code_executors.local import LocalCommandLineCodeExecutor
from autogen_ext.models.openai import OpenAIChatCompletionClient

client = OpenAIChatCompletionClient(model="gpt-4o-mini")
agent = CodeExecutorAgent("coder", code_executor=LocalCommandLineCodeExecutor(), model_client=client, max_retries_on_error=2)
print(asyncio.run(agent.run(task="Compute 6 * 7")).messages[-1])
