"""Tools of a server, and code that a sandbox runs."""
from mcp import StdioServerParameters
from smolagents import CodeAgent, LiteLLMModel, MCPClient, ToolCollection

params = StdioServerParameters(command="uvx", args=["mcp-server-fetch"])
model = LiteLLMModel(model_id="openai/gpt-4.1")

with MCPClient(params) as tools:
    CodeAgent(tools=tools, model=model, executor_type="e2b", add_base_tools=True).run("Hi")

with ToolCollection.from_mcp(params, trust_remote_code=True) as collection:
    CodeAgent(tools=[*collection.tools], model=model, max_steps=3).run("Hi")
