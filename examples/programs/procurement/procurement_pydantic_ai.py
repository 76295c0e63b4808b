"""Procurement with pydantic-ai."""

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from world import call

MODEL = "openai-chat:gpt-5-mini"


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


reader = Agent(MODEL, output_type=Reading, instructions="You read pages of shops.", retries=2)
buyer = Agent(
    MODEL,
    output_type=Check,
    instructions="You check that an article is what was asked for.",
)


def buy(shop: str, article: str, price: float) -> str:
    if shop not in call("shops"):
        raise PermissionError("no approved shop")
    if price > 500:
        raise PermissionError("over the budget")
    return call("buy", shop=shop, article=article, price=price)


def main(wanted: str, days: int) -> dict:
    quotes = []
    for shop in call("shops"):
        try:
            text = call("page", shop=shop, search=wanted)
            offer = reader.run_sync(f"The best fitting {wanted}:\n\n{text}").output.offer
        except Exception:
            continue
        if offer and offer.days <= days:
            quotes.append((offer.price + offer.shipping, shop, offer))
    if not quotes:
        return {"Stopped": {"why": "no shop delivers in time"}}
    price, shop, offer = min(quotes, key=lambda quote: quote[0])
    check = buyer.run_sync(f'Is "{offer.article}" a {wanted}?').output
    if not check.fits:
        return {"Stopped": {"why": check.why}}
    try:
        receipt = buy(shop, offer.article, price)
        return {"Ordered": {"shop": shop, "price": price, "receipt": receipt}}
    except Exception as why:
        return {"Stopped": {"why": str(why)}}
