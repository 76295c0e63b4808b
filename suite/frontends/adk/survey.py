"""Two researchers at the same time, and one who puts together what both left."""
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.tools import google_search

topics = ("wind", "sun")
researchers = [
    LlmAgent(name=f"{t}_researcher", model="flash", instruction=f"Research {t}.", output_key=f"{t}_result")
    for t in topics
]
merger = LlmAgent(name="merger", model="flash", instruction="Wind: {wind_result}\nSun: {sun_result}")
root_agent = SequentialAgent(
    name="survey", sub_agents=[ParallelAgent(name="both", sub_agents=researchers), merger]
)
checker = LlmAgent(name="checker", model="flash", instruction="Check facts.", tools=[google_search])
