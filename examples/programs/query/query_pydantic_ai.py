"""Questions to a database with pydantic-ai."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import call

MODEL = "openai-chat:gpt-5-mini"
Column = Literal["id", "day", "amount", "country", "name"]


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
    where_all: list[Annotated[Equal | Above | Between, Field(discriminator="kind")]] = Field(max_length=6)
    limit: int = Field(ge=1, le=100)


analyst = Agent(
    MODEL,
    output_type=Query,
    instructions="You translate questions into queries of two tables.",
    retries=2,
)
writer = Agent(MODEL, instructions="You explain numbers to people in one sentence.")


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


def main(question: str) -> dict:
    problem = None
    for _ in range(3):
        prompt = f"Query for: {question}. The last one failed with: {problem}"
        query = analyst.run_sync(prompt).output
        try:
            rows = database(sql(query))
            text = writer.run_sync(f"{question}\n\n{rows}").output
            return {"sql": sql(query), "rows": len(rows), "text": text}
        except Exception as why:
            problem = str(why)
    return {"sql": "", "rows": 0, "text": f"The question could not be answered: {problem or ''}"}
