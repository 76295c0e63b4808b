"""An orchestration of its own: a story that is written again if its tone is negative."""
import asyncio
from typing import AsyncGenerator

from google.adk.agents import BaseAgent, LlmAgent, LoopAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner

MODEL = LiteLlm(model="openai/gpt-4o-mini")


class StoryFlowAgent(BaseAgent):
    story: LlmAgent
    loop: LoopAgent
    tone: LlmAgent

    model_config = {"arbitrary_types_allowed": True}

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        async for event in self.story.run_async(ctx):
            yield event
        async for event in self.loop.run_async(ctx):
            yield event
        async for event in self.tone.run_async(ctx):
            yield event
        if ctx.session.state.get("tone") != "positive":
            async for event in self.story.run_async(ctx):
                yield event


story = LlmAgent(name="Story", model=MODEL, instruction="Write.", output_key="story")
critic = LlmAgent(name="Critic", model=MODEL, instruction="Criticize.", output_key="criticism")
reviser = LlmAgent(name="Reviser", model=MODEL, instruction="Revise.", output_key="story")
loop = LoopAgent(name="Loop", sub_agents=[critic, reviser], max_iterations=2)
tone = LlmAgent(name="Tone", model=MODEL, instruction="Tone?", output_key="tone")
root_agent = StoryFlowAgent(name="StoryFlow", story=story, loop=loop, tone=tone, sub_agents=[story, loop, tone])
asyncio.run(InMemoryRunner(agent=root_agent).run_debug("A kitten"))
