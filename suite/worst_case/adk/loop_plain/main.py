"""A loop of two agents without tools."""
import asyncio

from google.adk.agents import LlmAgent, LoopAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner

MODEL = LiteLlm(model="openai/gpt-4o-mini")
a = LlmAgent(name="a", model=MODEL, instruction="Write.", output_key="text")
b = LlmAgent(name="b", model=MODEL, instruction="Judge {text}.")
root_agent = LoopAgent(name="loop", sub_agents=[a, b], max_iterations=4)
asyncio.run(InMemoryRunner(agent=root_agent).run_debug("Go"))
