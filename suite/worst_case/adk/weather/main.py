"""The weather agent of the tutorial, asked twice."""
import asyncio

from google.adk.agents import Agent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types


def get_weather(city: str) -> dict:
    """Retrieves the current weather report for a specified city."""
    return {"status": "success", "report": f"Sunny in {city}."}


weather_agent = Agent(
    name="weather_agent",
    model=LiteLlm(model="openai/gpt-4o-mini"),
    description="Provides weather information.",
    instruction="You are a helpful weather assistant.",
    tools=[get_weather],
)


async def call_agent_async(query: str, runner, user_id, session_id):
    content = types.Content(role="user", parts=[types.Part(text=query)])
    async for event in runner.run_async(user_id=user_id, session_id=session_id, new_message=content):
        if event.is_final_response():
            break


async def main():
    service = InMemorySessionService()
    await service.create_session(app_name="app", user_id="u", session_id="s")
    runner = Runner(agent=weather_agent, app_name="app", session_service=service)
    await call_agent_async("London?", runner, "u", "s")
    await call_agent_async("Paris?", runner, "u", "s")


asyncio.run(main())
