"""Agents at the same time, a function of the project in which one is run, and a class that holds them."""
import asyncio

from agents import Agent, Runner
from pydantic import BaseModel
from archive import save


class Plan(BaseModel):
    questions: list[str]


translator = Agent(name="translator", instructions="Translate.", model="m")
picker = Agent(name="picker", instructions="Pick the best.", model="m")
planner = Agent(name="planner", instructions="Plan.", model="m", output_type=Plan)
asker = Agent(name="asker", instructions="Answer.", model="m")


async def best(text: str):
    one, two = await asyncio.gather(
        Runner.run(translator, text),
        Runner.run(translator, text),
    )
    both = "\n\n".join([one.final_output, two.final_output])
    choice = await Runner.run(picker, f"Input: {text}\n\n{both}")
    return choice.final_output


class Research:
    def __init__(self):
        self.printer = print

    async def run(self, query: str) -> str:
        plan = await self.plan(query)
        answers = await self.answer_all(plan)
        report = await Runner.run(picker, f"{query}: {answers}")
        save(report.final_output)
        return report.final_output

    async def plan(self, query: str) -> Plan:
        result = await Runner.run(planner, f"Query: {query}")
        return result.final_output

    async def answer_all(self, plan: Plan):
        tasks = [asyncio.create_task(self.answer(q)) for q in plan.questions]
        results = []
        for task in asyncio.as_completed(tasks):
            result = await task
            if result is not None:
                results.append(result)
        return results

    async def answer(self, question: str):
        try:
            result = await Runner.run(asker, question)
            return str(result.final_output)
        except Exception:
            return None


async def apart():
    print((await Runner.run(asker, "One?")).final_output)
    print((await Runner.run(asker, "Two?")).final_output)
