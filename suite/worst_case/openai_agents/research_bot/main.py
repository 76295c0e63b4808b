"""A planner, a search for each of its items, and a writer."""
import asyncio

from agents import Agent, Runner, function_tool
from agents.model_settings import ModelSettings
from pydantic import BaseModel


class WebSearchItem(BaseModel):
    reason: str
    query: str


class WebSearchPlan(BaseModel):
    searches: list[WebSearchItem]


class ReportData(BaseModel):
    short_summary: str
    markdown_report: str


@function_tool
def web_search(query: str) -> str:
    """Searches the web."""
    return "found"


planner_agent = Agent(name="PlannerAgent", instructions="Plan.", model="gpt-4o", output_type=WebSearchPlan)
search_agent = Agent(
    name="Search agent",
    instructions="Search.",
    model="gpt-4o-mini",
    tools=[web_search],
    model_settings=ModelSettings(tool_choice="required"),
)
writer_agent = Agent(name="WriterAgent", instructions="Write.", model="gpt-4o-mini", output_type=ReportData)


class ResearchManager:
    async def run(self, query: str) -> None:
        plan = await self._plan_searches(query)
        results = await self._perform_searches(plan)
        report = await self._write_report(query, results)
        print(report.short_summary)

    async def _plan_searches(self, query: str) -> WebSearchPlan:
        result = await Runner.run(planner_agent, f"Query: {query}")
        return result.final_output_as(WebSearchPlan)

    async def _perform_searches(self, plan: WebSearchPlan) -> list[str]:
        tasks = [asyncio.create_task(self._search(item)) for item in plan.searches]
        results = []
        for task in asyncio.as_completed(tasks):
            result = await task
            if result is not None:
                results.append(result)
        return results

    async def _search(self, item: WebSearchItem) -> str | None:
        try:
            result = await Runner.run(search_agent, f"Search term: {item.query}", max_turns=3)
            return str(result.final_output)
        except Exception:
            return None

    async def _write_report(self, query: str, results: list[str]) -> ReportData:
        result = Runner.run_streamed(writer_agent, f"Original query: {query}\nResults: {results}")
        async for _ in result.stream_events():
            pass
        return result.final_output_as(ReportData)


asyncio.run(ResearchManager().run("bees"))
