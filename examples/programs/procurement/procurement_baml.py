"""Procurement: the program around the functions of procurement.baml."""

from baml_client.sync_client import b
from world import call


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
            offer = b.Read(call("page", shop=shop, search=wanted), wanted)
        except Exception:
            continue
        if offer and offer.days <= days:
            quotes.append((offer.price + offer.shipping, shop, offer))
    if not quotes:
        return {"Stopped": {"why": "no shop delivers in time"}}
    price, shop, offer = min(quotes, key=lambda quote: quote[0])
    check = b.Fits(offer.article, wanted)
    if not check.fits:
        return {"Stopped": {"why": check.why}}
    try:
        receipt = buy(shop, offer.article, price)
        return {"Ordered": {"shop": shop, "price": price, "receipt": receipt}}
    except Exception as why:
        return {"Stopped": {"why": str(why)}}
