"""A code agent that plans every second step."""
import os

from smolagents import CodeAgent, OpenAIServerModel

model = OpenAIServerModel(model_id="gpt-4o-mini", api_base=os.environ["OPENAI_BASE_URL"])
agent = CodeAgent(tools=[], model=model, max_steps=5, planning_interval=2)
agent.run("Count")
