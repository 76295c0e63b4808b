"""Plan, search each, write: the list is the planner's."""
import asyncio

from agents import Agent, Runner
from pydantic import BaseModel


class Plan(BaseModel):
    searches: list[str]


planner = Agent(name="Planner", instructions="Plan searches.", model="gpt-4o-mini", output_type=Plan)
searcher = Agent(name="Searcher", instructions="Search.", model="gpt-4o-mini")
writer = Agent(name="Writer", instructions="Write a report.", model="gpt-4o-mini")


async def search_all(plan: Plan) -> list[str]:
    tasks = [asyncio.create_task(Runner.run(searcher, s)) for s in plan.searches]
    found = []
    for task in asyncio.as_completed(tasks):
        found.append((await task).final_output)
    return found


async def main():
    plan = (await Runner.run(planner, "Batteries")).final_output
    results = await search_all(plan)
    print((await Runner.run(writer, "\n".join(results))).final_output)


asyncio.run(main())
