"""Retrieval that grades documents and rewrites the question."""
from typing import Literal

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel, Field

response_model = ChatOpenAI(model="gpt-4o-mini", temperature=0)
grader_model = ChatOpenAI(model="gpt-4o-mini", temperature=0)


@tool
def retrieve_blog_posts(query: str) -> str:
    """Searches blog posts."""
    return "A post."


class GradeDocuments(BaseModel):
    binary_score: str = Field(description="'yes' if relevant, or 'no'")


def generate_query_or_respond(state: MessagesState):
    return {"messages": [response_model.bind_tools([retrieve_blog_posts]).invoke(state["messages"])]}


def grade_documents(state: MessagesState) -> Literal["generate_answer", "rewrite_question"]:
    context = state["messages"][-1].content
    response = grader_model.with_structured_output(GradeDocuments).invoke(
        [{"role": "user", "content": f"Relevant? {context}"}]
    )
    return "generate_answer" if response.binary_score == "yes" else "rewrite_question"


def rewrite_question(state: MessagesState):
    response = response_model.invoke([{"role": "user", "content": "Rewrite: " + state["messages"][0].content}])
    return {"messages": [HumanMessage(content=response.content)]}


def generate_answer(state: MessagesState):
    return {"messages": [response_model.invoke("Answer: " + state["messages"][0].content)]}


workflow = StateGraph(MessagesState)
workflow.add_node(generate_query_or_respond)
workflow.add_node("retrieve", ToolNode([retrieve_blog_posts]))
workflow.add_node(rewrite_question)
workflow.add_node(generate_answer)
workflow.add_edge(START, "generate_query_or_respond")
workflow.add_conditional_edges("generate_query_or_respond", tools_condition, {"tools": "retrieve", END: END})
workflow.add_conditional_edges("retrieve", grade_documents)
workflow.add_edge("generate_answer", END)
workflow.add_edge("rewrite_question", "generate_query_or_respond")
graph = workflow.compile()
for chunk in graph.stream({"messages": [{"role": "user", "content": "Reward hacking?"}]}, {"recursion_limit": 9}):
    print(chunk)
