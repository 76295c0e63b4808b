"""A tool that asks by a helper of the run's context."""
import asyncio
from dataclasses import dataclass, field

from agents import Agent, RunContextWrapper, Runner, function_tool
from openai import AsyncOpenAI


@dataclass
class Services:
    client: AsyncOpenAI = field(default_factory=AsyncOpenAI)

    async def summary(self, text: str) -> str:
        reply = await self.client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": text}]
        )
        return reply.choices[0].message.content


@function_tool
async def note(context: RunContextWrapper[Services], text: str) -> str:
    """Takes a note."""
    return await context.context.summary(text)


agent = Agent[Services](name="Notes", instructions="Take notes.", model="gpt-4o-mini", tools=[note])
print(asyncio.run(Runner.run(agent, "Remember the milk", context=Services(), max_turns=3)).final_output)
