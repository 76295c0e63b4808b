"""An agent executor of before, with a limit on its iterations."""
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def magic(x: int) -> int:
    """Applies magic."""
    return x + 2


prompt = ChatPromptTemplate.from_messages(
    [("system", "You are helpful."), ("human", "{input}"), ("placeholder", "{agent_scratchpad}")]
)
agent = create_tool_calling_agent(ChatOpenAI(model="gpt-4o-mini"), [magic], prompt)
runner = AgentExecutor(agent=agent, tools=[magic], max_iterations=4, early_stopping_method="force")
print(runner.invoke({"input": "magic of 3"}))
