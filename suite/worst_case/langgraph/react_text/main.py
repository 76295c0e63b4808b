"""A ReAct agent with text actions, that handles parsing errors."""
from langchain_classic.agents import AgentExecutor, create_react_agent
from langchain_core.prompts import PromptTemplate
from langchain_core.tools import Tool
from langchain_openai import ChatOpenAI

tools = [Tool(name="search", func=lambda q: "found", description="Searches.")]
prompt = PromptTemplate.from_template(
    "Answer {input} with {tools}, named {tool_names}.\nQuestion: {input}\nThought:{agent_scratchpad}"
)
agent = create_react_agent(ChatOpenAI(model="gpt-4o-mini"), tools, prompt)
executor = AgentExecutor(agent=agent, tools=tools, handle_parsing_errors=True, max_iterations=5)
executor.invoke({"input": "Who?"})
