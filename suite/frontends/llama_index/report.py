"""Agents that hand off to each other: one searches, one writes, one reviews."""
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAI
from llama_index.tools.tavily_research import TavilyToolSpec

llm = OpenAI(model="gpt-4.1", temperature=0.1)


async def write_report(ctx: Context, content: str) -> str:
    """Writes the report."""
    return "written"


searcher = FunctionAgent(
    name="Searcher",
    description="Searches the web.",
    system_prompt="You search and take notes.",
    llm=llm,
    tools=TavilyToolSpec(api_key="k").to_tool_list(),
    can_handoff_to=["Writer"],
)
writer = FunctionAgent(
    name="Writer", system_prompt="You write.", llm=llm, tools=[write_report], can_handoff_to=["Reviewer", "Searcher"]
)
reviewer = ReActAgent(name="Reviewer", system_prompt="You review.", llm=llm, can_handoff_to=["Writer"])
workflow = AgentWorkflow(agents=[searcher, writer, reviewer], root_agent=searcher.name)


async def main():
    await workflow.run(user_msg="Write about the web.", max_iterations=12)
