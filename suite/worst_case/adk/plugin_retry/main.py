"""A plugin that lets the model reflect on tools that fail."""
import asyncio

from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.models.lite_llm import LiteLlm
from google.adk.plugins import ReflectAndRetryToolPlugin
from google.adk.runners import InMemoryRunner


def guess(number: int) -> str:
    """Guesses a number."""
    raise ValueError("wrong")


root_agent = Agent(name="guesser", model=LiteLlm(model="openai/gpt-4o-mini"), instruction="Guess.", tools=[guess])
app = App(name="app", root_agent=root_agent, plugins=[ReflectAndRetryToolPlugin(max_retries=3)])
asyncio.run(InMemoryRunner(app=app).run_debug("Guess"))
