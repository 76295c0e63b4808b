"""A greeting and a farewell agent below a root, who hand over to each other."""
import asyncio

from google.adk.agents import Agent, RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

MODEL = LiteLlm(model="openai/gpt-4o-mini")


def say_hello(name: str) -> str:
    """Provides a simple greeting."""
    return f"Hello, {name}!"


greeting = Agent(name="greeting_agent", model=MODEL, instruction="Greet.", description="Greets.", tools=[say_hello])
farewell = Agent(name="farewell_agent", model=MODEL, instruction="Part.", description="Parts.")
root_agent = Agent(name="root", model=MODEL, instruction="Delegate.", sub_agents=[greeting, farewell])


async def main():
    runner = InMemoryRunner(agent=root_agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="Hi")])
    async for _ in runner.run_async(
        user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=7)
    ):
        pass


asyncio.run(main())
