"""A callback before the model that asks another one."""
import asyncio

import litellm
from google.adk.agents import LlmAgent, RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


def guard(callback_context, llm_request):
    reply = litellm.completion(model="openai/gpt-4o-mini", messages=[{"role": "user", "content": "Safe?"}])
    if "UNSAFE" in (reply.choices[0].message.content or ""):
        raise ValueError("unsafe")
    return None


def look(place: str) -> str:
    """Looks there."""
    return "nothing"


root_agent = LlmAgent(
    name="guarded",
    model=LiteLlm(model="openai/gpt-4o-mini"),
    instruction="Look.",
    tools=[look],
    before_model_callback=guard,
)


async def main():
    runner = InMemoryRunner(agent=root_agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="Where?")])
    async for event in runner.run_async(
        user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=5)
    ):
        print(event.author)


asyncio.run(main())
