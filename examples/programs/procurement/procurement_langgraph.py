"""Procurement as a graph."""

from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field
from world import call

model = ChatOpenAI(model="gpt-5-mini")


class Offer(BaseModel):
    article: str
    price: float = Field(gt=0)
    shipping: float = Field(ge=0)
    days: float = Field(ge=0)


class Reading(BaseModel):
    offer: Offer | None


class Check(BaseModel):
    fits: bool
    why: str


class State(TypedDict, total=False):
    wanted: str
    days: int
    quote: tuple[float, str, Offer]
    outcome: dict


def collect(state: State) -> State:
    reader = model.with_structured_output(Reading).with_retry(stop_after_attempt=2)
    quotes = []
    for shop in call("shops"):
        try:
            text = call("page", shop=shop, search=state["wanted"])
            reading = reader.invoke([
                ("system", "You read pages of shops."),
                ("user", f"The best fitting {state['wanted']}:\n\n{text}"),
            ])
        except Exception:
            continue
        offer = reading.offer
        if offer and offer.days <= state["days"]:
            quotes.append((offer.price + offer.shipping, shop, offer))
    if not quotes:
        return {"outcome": {"Stopped": {"why": "no shop delivers in time"}}}
    return {"quote": min(quotes, key=lambda quote: quote[0])}


def check(state: State) -> State:
    buyer = model.with_structured_output(Check)
    reply = buyer.invoke([
        ("system", "You check that an article is what was asked for."),
        ("user", f'Is "{state["quote"][2].article}" a {state["wanted"]}?'),
    ])
    return {} if reply.fits else {"outcome": {"Stopped": {"why": reply.why}}}


def buy(state: State) -> State:
    price, shop, offer = state["quote"]
    try:
        if shop not in call("shops"):
            raise PermissionError("no approved shop")
        if price > 500:
            raise PermissionError("over the budget")
        receipt = call("buy", shop=shop, article=offer.article, price=price)
        return {"outcome": {"Ordered": {"shop": shop, "price": price, "receipt": receipt}}}
    except Exception as why:
        return {"outcome": {"Stopped": {"why": str(why)}}}


graph = StateGraph(State)
for node in (collect, check, buy):
    graph.add_node(node.__name__, node)
graph.add_edge(START, "collect")
graph.add_conditional_edges("collect", lambda s: END if "outcome" in s else "check", ["check", END])
graph.add_conditional_edges("check", lambda s: END if "outcome" in s else "buy", ["buy", END])
graph.add_edge("buy", END)
app = graph.compile()


def main(wanted: str, days: int) -> dict:
    return app.invoke({"wanted": wanted, "days": days})["outcome"]
