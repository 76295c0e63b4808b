"""Questions to a database: the program around the functions of query.baml."""

import json

from baml_client.sync_client import b
from baml_client.types import Above, Between, Equal, Query
from world import call


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
        query = b.Translate(question, problem)
        try:
            rows = database(sql(query))
            text = b.Explain(question, json.dumps(rows))
            return {"sql": sql(query), "rows": len(rows), "text": text}
        except Exception as why:
            problem = str(why)
    return {"sql": "", "rows": 0, "text": f"The question could not be answered: {problem or ''}"}
