"""A flow that asks an agent without a crew, for a typed answer."""
import asyncio

from crewai import Agent
from crewai.flow.flow import Flow, listen, start
from pydantic import BaseModel


class Analysis(BaseModel):
    trends: list[str]
    size: str


class Market(Flow):
    @start()
    def product(self):
        return {"product": "bikes"}

    @listen(product)
    async def analyze(self, given):
        analyst = Agent(role="Analyst", goal="Analyze", backstory="A.", llm="gpt-4o-mini")
        result = await analyst.kickoff_async(f"Analyze {given['product']}", response_format=Analysis)
        return result.raw

    @listen(analyze)
    def say(self, text):
        print(text)


asyncio.run(Market().kickoff_async())
