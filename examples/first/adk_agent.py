from google.adk.agents import LlmAgent, SequentialAgent


def search(query: str) -> str:
    """Searches the web."""
    return query


researcher = LlmAgent(name="researcher", model="gemini-2.0-flash", instruction="Find three facts.", tools=[search])
writer = LlmAgent(name="writer", model="gemini-2.0-flash", instruction="")
root_agent = SequentialAgent(name="report", sub_agents=[researcher, writer])
