"""A tool that asks a model with the library of another vendor."""
from langchain.agents import create_agent
from langchain_core.tools import tool
from openai import OpenAI


@tool
def describe(thing: str) -> str:
    """Describes a thing."""
    client = OpenAI()
    reply = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": f"Describe {thing}"}]
    )
    return reply.choices[0].message.content


agent = create_agent("openai:gpt-4o-mini", tools=[describe])
agent.invoke({"messages": [("user", "A bee")]}, {"recursion_limit": 7})
