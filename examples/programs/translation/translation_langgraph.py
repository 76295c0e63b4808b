"""Translation as two graphs: one for a paragraph with a cycle, one for the text with a branch for each."""

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

TRANSLATOR = ("system", "You translate manuals of machines. You leave nothing out.")
READER = ("system", "You compare two texts in one language. Only their meaning counts.")
model = ChatOpenAI(model="gpt-5-mini")


class Review(BaseModel):
    faithful: bool
    remark: str


class Part(TypedDict, total=False):
    number: int
    text: str
    language: str
    glossary: list[dict]
    draft: str
    rounds: int
    remark: str


class State(TypedDict, total=False):
    text: str
    language: str
    glossary: list[dict]
    done: Annotated[list[tuple[int, str, str]], operator.add]
    result: dict


def used(glossary: list[dict], text: str) -> list[dict]:
    return [entry for entry in glossary if entry["source"].lower() in text.lower()]


def translate(part: Part) -> Part:
    terms = "; ".join(f"{e['source']} = {e['target']}" for e in used(part["glossary"], part["text"]))
    prompt = f"Translate into {part['language']}. Terms: {terms}\n\n{part['text']}"
    return {"draft": model.invoke([TRANSLATOR, ("user", prompt)]).content, "rounds": 0}


def check(part: Part) -> Part:
    text, draft, rounds = part["text"], part["draft"], part["rounds"] + 1
    lost = [e["target"] for e in used(part["glossary"], text) if e["target"].lower() not in draft.lower()]
    if lost:
        return {"rounds": rounds, "remark": f"Use these terms: {', '.join(lost)}"}
    again = model.invoke([TRANSLATOR, ("user", f"Translate into English.\n\n{draft}")]).content
    reader = model.with_structured_output(Review)
    review = reader.invoke([READER, ("user", f"Do these say the same?\n\n{text}\n\n{again}")])
    return {"rounds": rounds, "remark": "" if review.faithful else review.remark or "not faithful"}


def repair(part: Part) -> Part:
    prompt = f"Repair this translation. {part['remark']}"
    texts = f"Original: {part['text']}\n\nTranslation: {part['draft']}"
    return {"draft": model.invoke([TRANSLATOR, ("user", f"{prompt}\n\n{texts}")]).content}


one = StateGraph(Part)
for node in (translate, check, repair):
    one.add_node(node.__name__, node)
one.add_edge(START, "translate")
one.add_edge("translate", "check")
one.add_conditional_edges("check", lambda part: "repair" if part["remark"] else END, ["repair", END])
one.add_conditional_edges("repair", lambda part: "check" if part["rounds"] < 3 else END, ["check", END])
paragraph = one.compile()


def split(state: State) -> list[Send]:
    paragraphs = [p for p in state["text"].split("\n\n") if p.strip()]
    shared = {"language": state["language"], "glossary": state["glossary"]}
    return [Send("part", {"number": n, "text": p, **shared}) for n, p in enumerate(paragraphs)]


def part(job: Part) -> State:
    done = paragraph.invoke(job)
    return {"done": [(job["number"], done["draft"], done["remark"])]}


def join(state: State) -> State:
    done = sorted(state["done"])
    text = "\n\n".join(draft for _, draft, _ in done)
    return {"result": {"text": text, "open": [remark for _, _, remark in done if remark]}}


graph = StateGraph(State)
graph.add_node("part", part)
graph.add_node("join", join)
graph.add_conditional_edges(START, split, ["part"])
graph.add_edge("part", "join")
graph.add_edge("join", END)
app = graph.compile()


def main(text: str, language: str, glossary: list[dict]) -> dict:
    state = {"text": text, "language": language, "glossary": glossary}
    return app.invoke(state, {"max_concurrency": 3})["result"]
