"""Plan, execute, replan."""
import operator
from typing import Annotated, List, Tuple, Union

from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel, Field
from typing_extensions import TypedDict


def lookup(name: str) -> str:
    """Looks a name up."""
    return "unknown"


executor = create_react_agent(ChatOpenAI(model="gpt-4o-mini"), [lookup], prompt="You are helpful.")


class PlanExecute(TypedDict):
    input: str
    plan: List[str]
    past_steps: Annotated[List[Tuple], operator.add]
    response: str


class Plan(BaseModel):
    """Plan to follow in future"""

    steps: List[str] = Field(description="different steps to follow")


class Response(BaseModel):
    """Response to user."""

    response: str


class Act(BaseModel):
    """Action to perform."""

    action: Union[Response, Plan] = Field(description="Respond or plan.")


planner = ChatPromptTemplate.from_messages([("system", "Make a plan."), ("user", "{input}")]) | ChatOpenAI(
    model="gpt-4o"
).with_structured_output(Plan)
replanner = ChatPromptTemplate.from_template("{input} {plan} {past_steps}") | ChatOpenAI(
    model="gpt-4o"
).with_structured_output(Act)


def execute_step(state: PlanExecute):
    plan = state["plan"]
    task = plan[0] if plan else "nothing"
    got = executor.invoke({"messages": [("user", task)]}, {"recursion_limit": 5})
    return {"past_steps": [(task, got["messages"][-1].content)]}


def plan_step(state: PlanExecute):
    plan = planner.invoke({"input": state["input"]})
    return {"plan": plan.steps}


def replan_step(state: PlanExecute):
    output = replanner.invoke(state)
    if isinstance(output.action, Response):
        return {"response": output.action.response}
    return {"plan": output.action.steps}


def should_end(state: PlanExecute):
    return END if state.get("response") else "agent"


w = StateGraph(PlanExecute)
w.add_node("planner", plan_step)
w.add_node("agent", execute_step)
w.add_node("replan", replan_step)
w.add_edge(START, "planner")
w.add_edge("planner", "agent")
w.add_edge("agent", "replan")
w.add_conditional_edges("replan", should_end, ["agent", END])
app = w.compile()
app.invoke({"input": "Who won?", "past_steps": []}, {"recursion_limit": 10})
