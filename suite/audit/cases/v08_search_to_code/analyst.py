"""Looks for numbers on the web and computes with them."""
from crewai import Agent, Crew, Task
from crewai_tools import CodeInterpreterTool, SerperDevTool, WebsiteSearchTool

analyst = Agent(
    role="Analyst",
    goal="Find and compute numbers.",
    backstory="You are exact.",
    llm="gpt-4o",
    tools=[SerperDevTool(), WebsiteSearchTool(), CodeInterpreterTool(unsafe_mode=True)],
)
task = Task(description="What is the trend of {topic}?", expected_output="A number.", agent=analyst)
Crew(agents=[analyst], tasks=[task]).kickoff(inputs={"topic": "bees"})
