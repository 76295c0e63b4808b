"""A prebuilt agent which is asked once more for a structured answer."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel


class Answer(BaseModel):
    text: str


@tool
def look(city: str) -> str:
    """Looks at the sky."""
    return "blue"


agent = create_react_agent(ChatOpenAI(model="gpt-4o-mini"), [look], response_format=Answer)
agent.invoke({"messages": [("user", "Oslo?")]}, {"recursion_limit": 7})
