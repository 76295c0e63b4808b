"""A typed answer of an agent with tools."""
import asyncio

from google.adk.agents import LlmAgent, RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import BaseModel


class Report(BaseModel):
    title: str
    score: int


def fetch(query: str) -> str:
    """Fetches it."""
    return "data"


root_agent = LlmAgent(
    name="reporter",
    model=LiteLlm(model="openai/gpt-4o-mini"),
    instruction="Report.",
    tools=[fetch],
    output_schema=Report,
)


async def main():
    runner = InMemoryRunner(agent=root_agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    for text in ("one", "two"):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(
            user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=5)
        ):
            pass


asyncio.run(main())
