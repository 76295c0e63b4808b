"""Agents made by a class: dynamic instructions, a clone, a renamed tool."""
import asyncio
from dataclasses import dataclass

from agents import Agent, ModelSettings, RunContextWrapper, Runner, function_tool

RULES = {"tone": "Be kind.", "length": "Be brief."}


@function_tool(name_override="find_order", description_override="Finds an order.")
def find(number: int) -> str:
    return f"order {number} is on its way"


def instructions(context: RunContextWrapper, agent: Agent) -> str:
    rules = "\n".join(f"- {rule}" for rule in RULES.values())
    return f"You are {agent.name}.\n{rules}"


@dataclass
class Desk:
    model: str = "m"

    def base(self) -> Agent:
        return Agent(name="Desk", instructions=instructions, model=self.model, tools=[find])

    def careful(self) -> Agent:
        return self.base().clone(model_settings=ModelSettings(temperature=0, parallel_tool_calls=False))


async def main():
    result = await Runner.run(Desk().careful(), input="Where is 7?", max_turns=4)
    print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main())
