"""Questions to a database as a graph with a cycle."""

from typing import Annotated, Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field
from world import call

Column = Literal["id", "day", "amount", "country", "name"]
model = ChatOpenAI(model="gpt-5-mini")


class Equal(BaseModel):
    kind: Literal["equal"]
    column: Column
    value: str


class Above(BaseModel):
    kind: Literal["above"]
    column: Column
    number: float


class Between(BaseModel):
    kind: Literal["between"]
    column: Column
    low: float
    high: float


class Query(BaseModel):
    table: Literal["orders", "customers"]
    columns: list[Column] = Field(min_length=1, max_length=5)
    where_all: list[Equal | Above | Between] = Field(max_length=6)
    limit: int = Field(ge=1, le=100)


class State(TypedDict, total=False):
    question: str
    problem: str | None
    rounds: int
    query: Query
    answer: dict


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''").replace(";", ",") + "'"


def condition(c: Equal | Above | Between) -> str:
    match c:
        case Equal():
            return f"{c.column} = {quoted(c.value)}"
        case Above():
            return f"{c.column} > {c.number}"
        case Between():
            return f"{c.column} BETWEEN {min(c.low, c.high)} AND {max(c.low, c.high)}"


def sql(query: Query) -> str:
    rules = " AND ".join(condition(c) for c in query.where_all)
    clause = f" WHERE {rules}" if rules else ""
    return f"SELECT {', '.join(query.columns)} FROM {query.table}{clause} LIMIT {query.limit}"


def database(text: str) -> list[dict]:
    if not text.startswith("SELECT ") or ";" in text:
        raise PermissionError("one SELECT")
    return call("database", sql=text)


def translate(state: State) -> State:
    analyst = model.with_structured_output(Query).with_retry(stop_after_attempt=2)
    query = analyst.invoke([
        ("system", "You translate questions into queries of two tables."),
        ("user", f"Query for: {state['question']}. The last one failed with: {state['problem']}"),
    ])
    return {"query": query, "rounds": state["rounds"] + 1}


def ask(state: State) -> State:
    text = sql(state["query"])
    try:
        rows = database(text)
        reply = model.invoke([
            ("system", "You explain numbers to people in one sentence."),
            ("user", f"{state['question']}\n\n{rows}"),
        ])
        return {"answer": {"sql": text, "rows": len(rows), "text": reply.content}}
    except Exception as why:
        return {"problem": str(why)}


def route(state: State) -> str:
    return END if "answer" in state or state["rounds"] == 3 else "translate"


graph = StateGraph(State)
graph.add_node("translate", translate)
graph.add_node("ask", ask)
graph.add_edge(START, "translate")
graph.add_edge("translate", "ask")
graph.add_conditional_edges("ask", route, ["translate", END])
app = graph.compile()


def main(question: str) -> dict:
    state = app.invoke({"question": question, "problem": None, "rounds": 0})
    failed = f"The question could not be answered: {state['problem'] or ''}"
    return state.get("answer") or {"sql": "", "rows": 0, "text": failed}
