"""A desk with functions as tools, an agent that is asked, one that takes over, and one that is code."""
from google.adk.agents import Agent, BaseAgent, LoopAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.mcp_tool.mcp_toolset import MCPToolset
from google.genai import types
from pydantic import BaseModel
from somewhere import lawyer, more_tools


class Answer(BaseModel):
    hours: str


def opening_hours(day: str, tool_context: ToolContext) -> str:
    """When the desk is open."""
    return "9-17"


def close_ticket(number: int):
    """Closes a ticket."""


class Checker(BaseAgent):
    async def _run_async_impl(self, ctx):
        yield None


CONFIG = RunConfig(max_llm_calls=900)
clerk = Agent(name="clerk", model=LiteLlm(model="openai/m"), instruction="Answer.", output_schema=Answer)
expert = Agent(name="expert", model="pro", instruction="Help {customer}.", description="Knows all.")
root_agent = Agent(
    name="desk",
    model="flash",
    instruction="Help, or hand over.",
    global_instruction="Be kind.",
    generate_content_config=types.GenerateContentConfig(temperature=0.2, max_output_tokens=200),
    tools=[opening_hours, FunctionTool(func=close_ticket), AgentTool(agent=clerk), MCPToolset(connection_params=1)],
    sub_agents=[expert],
)
endless = LoopAgent(name="endless", sub_agents=[expert.clone(), Checker(name="check")])
odd = Agent(name="odd", model="flash", instruction=lambda ctx: "x", tools=more_tools())
asking = Agent(
    name="asking",
    model="flash",
    instruction="Ask.",
    tools=[AgentTool(agent=lawyer), MCPToolset(connection_params=1), MCPToolset(connection_params=2)],
)
