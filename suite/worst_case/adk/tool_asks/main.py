"""A tool that asks a model by itself."""
import asyncio

import litellm
from google.adk.agents import Agent, RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


def explain(word: str) -> str:
    """Explains a word."""
    reply = litellm.completion(model="openai/gpt-4o-mini", messages=[{"role": "user", "content": word}])
    return reply.choices[0].message.content or ""


root_agent = Agent(name="teacher", model=LiteLlm(model="openai/gpt-4o-mini"), instruction="Teach.", tools=[explain])


async def main():
    runner = InMemoryRunner(agent=root_agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="Bee?")])
    async for _ in runner.run_async(
        user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=5)
    ):
        pass


asyncio.run(main())
