"""An agent as a tool of another one, with a limit."""
import asyncio

from google.adk.agents import Agent, RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool
from google.genai import types

MODEL = LiteLlm(model="openai/gpt-4o-mini")
summarizer = Agent(name="summarizer", model=MODEL, instruction="Summarize.", description="Summarizes.")
root_agent = Agent(name="root", model=MODEL, instruction="Help.", tools=[AgentTool(agent=summarizer)])


async def main():
    runner = InMemoryRunner(agent=root_agent, app_name="a")
    await runner.session_service.create_session(app_name="a", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="Go")])
    async for _ in runner.run_async(
        user_id="u", session_id="s", new_message=message, run_config=RunConfig(max_llm_calls=4)
    ):
        pass


asyncio.run(main())
