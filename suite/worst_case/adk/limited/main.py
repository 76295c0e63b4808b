"""A run with a limit on its model calls."""
import asyncio

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


def look(place: str) -> str:
    """Looks there."""
    return "nothing"


root_agent = LlmAgent(name="scout", model=LiteLlm(model="openai/gpt-4o-mini"), instruction="Look.", tools=[look])


async def main():
    runner = InMemoryRunner(agent=root_agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="Where?")])
    config = RunConfig(max_llm_calls=6)
    async for event in runner.run_async(
        user_id="u", session_id=session.id, new_message=message, run_config=config
    ):
        print(event.author)


asyncio.run(main())
