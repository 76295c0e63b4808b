"""A typed answer that is asked for again when the model's reply is no JSON."""
import asyncio

from agents import Agent, ModelBehaviorError, Runner
from pydantic import BaseModel


class Recipe(BaseModel):
    title: str
    steps: list[str]


agent = Agent(name="Cook", instructions="Write a recipe.", output_type=Recipe, model="gpt-4o-mini")


async def recipe(dish: str, retries: int = 2) -> Recipe | None:
    for attempt in range(retries + 1):
        try:
            return (await Runner.run(agent, dish)).final_output
        except ModelBehaviorError as e:
            print(attempt, e)
    return None


print(asyncio.run(recipe("soup")))
