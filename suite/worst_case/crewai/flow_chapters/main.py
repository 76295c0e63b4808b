"""A flow that writes the chapters of an outline at the same time."""
import asyncio

from crewai import Agent, Crew, LLM, Task
from crewai.flow.flow import Flow, listen, start
from pydantic import BaseModel


class Chapter(BaseModel):
    title: str


class Outline(BaseModel):
    chapters: list[Chapter] = []


class Book(Flow[Outline]):
    @start()
    def outline(self):
        text = LLM(model="gpt-4o-mini").call("Write an outline, a chapter on each line")
        self.state.chapters = [Chapter(title=line) for line in text.split(",")]

    @listen(outline)
    async def write(self):
        tasks = [asyncio.create_task(self.chapter(c)) for c in self.state.chapters]
        return await asyncio.gather(*tasks)

    async def chapter(self, chapter):
        writer = Agent(role="Writer", goal="Write", backstory="W.", llm="gpt-4o-mini")
        task = Task(description=f"Write {chapter.title}.", expected_output="A chapter.", agent=writer)
        return (await Crew(agents=[writer], tasks=[task]).kickoff_async()).raw


Book().kickoff()
