"""A manager of an agent."""
from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent

model = OpenAIServerModel(model_id="gpt-4o-mini")
web = ToolCallingAgent(tools=[], model=model, name="web_agent", description="Searches.", max_steps=2)
manager = ToolCallingAgent(tools=[], model=model, managed_agents=[web], max_steps=3)
manager.run("Find it")
