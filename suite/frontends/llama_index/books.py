"""Agents of tools: an index, functions, an agent that a tool runs, and the classes of earlier versions."""
from llama_index.core import SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.agent import ReActAgent
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.tools import FunctionTool, QueryEngineTool, ToolMetadata
from llama_index.llms.openai import OpenAI

llm = OpenAI(model="gpt-4.1-mini")
index = VectorStoreIndex.from_documents(SimpleDirectoryReader("books").load_data())


def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


books = QueryEngineTool(
    query_engine=index.as_query_engine(), metadata=ToolMetadata(name="books", description="Knows the books.")
)
old = ReActAgent.from_tools([FunctionTool.from_defaults(fn=multiply, name="times"), books], llm=llm)
reader = FunctionAgent(name="reader", tools=[books], llm=llm, system_prompt="You read.")


async def ask_reader(question: str) -> str:
    """Asks somebody who reads."""
    return str(await reader.run(question))


single = AgentWorkflow.from_tools_or_functions([multiply, ask_reader], llm=llm, system_prompt="You help.")
