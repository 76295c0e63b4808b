"""Reads the web and writes an article into a file of its own."""
from crewai import Agent, Crew, Task
from crewai_tools import ScrapeWebsiteTool, SerperDevTool

scout = Agent(role="Scout", goal="Find news.", backstory="Curious.", llm="gpt-4o", tools=[SerperDevTool(), ScrapeWebsiteTool()])
author = Agent(role="Author", goal="Write.", backstory="Clear.", llm="gpt-4o")
look = Task(description="Find news about {topic}.", expected_output="Notes.", agent=scout)
write = Task(description="Write an article.", expected_output="An article.", agent=author, context=[look], output_file="article.md")
Crew(agents=[scout, author], tasks=[look, write]).kickoff(inputs={"topic": "bees"})
