"""Toolsets: functions, servers, a toolset that asks a person, and functions whose result is the answer."""
from pydantic_ai import Agent, FunctionToolset, Tool, WebSearchTool
from pydantic_ai.common_tools.duckduckgo import duckduckgo_search_tool
from pydantic_ai.mcp import MCPServerStdio, load_mcp_servers


def look_up(name: str) -> str:
    """Looks a customer up."""
    return name


def close_ticket(number: int, text: str) -> str:
    """Closes a ticket with an answer."""
    return text


danger = FunctionToolset()


@danger.tool
def refund(number: int) -> str:
    """Pays the price of an order back."""
    return "done"


files = MCPServerStdio("npx", args=["-y", "@modelcontextprotocol/server-filesystem", "."], tool_prefix="files")
agent = Agent(
    "anthropic:claude-sonnet-4-0",
    name="desk",
    tools=[Tool(look_up, name="customer"), duckduckgo_search_tool()],
    builtin_tools=[WebSearchTool()],
    toolsets=[danger.approval_required(), files],
    output_type=[str, close_ticket],
    instructions=["You answer tickets.", "Be brief."],
)
other = Agent("test", toolsets=load_mcp_servers("mcp.json"))
