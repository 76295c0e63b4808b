"""A structured answer that is asked for again while it does not validate."""
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from pydantic import BaseModel, Field


class Rating(BaseModel):
    stars: int = Field(ge=1, le=5)
    comment: str


agent = create_agent("openai:gpt-4o-mini", tools=[], response_format=ToolStrategy(Rating))
agent.invoke({"messages": [("user", "Rate it")]}, {"recursion_limit": 8})
