"""Searches with Google."""
from google.adk.agents import Agent
from google.adk.tools import google_search

root_agent = Agent(name="searcher", model="gemini-2.5-flash", instruction="You answer from the web.", tools=[google_search])
