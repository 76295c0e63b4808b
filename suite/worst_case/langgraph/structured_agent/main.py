"""An agent that ends with a structured answer."""
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.tools import tool
from pydantic import BaseModel, Field


class Weather(BaseModel):
    """The weather."""

    degrees: int = Field(ge=-50, le=50)
    sky: str


@tool
def look(city: str) -> str:
    """Looks at the sky."""
    return "blue"


agent = create_agent("openai:gpt-4o-mini", tools=[look], response_format=ToolStrategy(Weather))
agent.invoke({"messages": [("user", "Oslo?")]}, {"recursion_limit": 9})
