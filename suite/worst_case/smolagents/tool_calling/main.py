"""A tool-calling agent with a limit on its steps."""
from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def weather(city: str) -> str:
    """Says the weather.

    Args:
        city: The city.
    """
    return "sunny"


agent = ToolCallingAgent(tools=[weather], model=OpenAIServerModel(model_id="gpt-4o-mini"), max_steps=4)
print(agent.run("Paris?"))
