"""A supervisor of supervisors."""
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from langgraph_supervisor import create_supervisor

model = ChatOpenAI(model="gpt-4o-mini")


@tool
def add(a: float, b: float) -> float:
    """Adds."""
    return a + b


math = create_react_agent(model=model, tools=[add], name="math_expert", prompt="You do math.")
research = create_react_agent(model=model, tools=[], name="research_expert", prompt="You research.")
team = create_supervisor([math, research], model=model, supervisor_name="team_lead", prompt="Lead.").compile(name="team")
top = create_supervisor([team], model=model, supervisor_name="top", prompt="Lead the team.").compile(name="company")
top.invoke({"messages": [{"role": "user", "content": "1 + 2"}]}, {"recursion_limit": 6})
