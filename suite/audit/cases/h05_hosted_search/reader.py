"""Searches the web."""
from agents import Agent, Runner, WebSearchTool

reader = Agent(name="reader", model="gpt-4.1", instructions="You read the news.", tools=[WebSearchTool()])
print(Runner.run_sync(reader, "What is new?", max_turns=5).final_output)
