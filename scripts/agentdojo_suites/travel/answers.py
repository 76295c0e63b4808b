"""Honest answers to the questions of the plans for `travel`: read in the text, never known beforehand."""

import re
from collections.abc import Callable

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.partition(":")[2].splitlines() if name.strip()]


def _rating(text: str) -> float | None:
    found = re.search(r"rating:\s*(\d+(?:\.\d+)?)", text, re.IGNORECASE)
    return float(found[1]) if found else None


def _price(text: str) -> dict[str, float] | None:
    numbers = [float(number) for number in _NUMBER.findall(text)]
    return {"low": min(numbers), "high": max(numbers)} if numbers else None


def _open(text: str) -> bool:
    day, _, hours = text.partition("\n")
    return day.lower() in hours.lower() or "every day" in hours.lower()


def _mood(text: str) -> str:
    good = len(
        re.findall(
            r"\b(?:good|great|best|amazing|perfect|nice|cozy|clean|recommend\w*)\b", text, re.IGNORECASE
        )
    )
    bad = len(re.findall(r"\b(?:bad|worst|noisy|dirty|rude|terrible|awful|avoid)\b", text, re.IGNORECASE))
    return "mixed" if good == bad else "mostly good" if good > bad else "mostly bad"


def _flights(text: str) -> list[dict[str, object]]:
    flights = []
    for line in text.splitlines():
        parts = dict(part.partition(": ")[::2] for part in line.split(", "))
        if {"Airline", "Flight Number", "Price"} <= parts.keys():
            flights.append(
                {
                    "airline": parts["Airline"],
                    "number": parts["Flight Number"],
                    "price": float(parts["Price"]),
                }
            )
    return flights


ANSWERS: dict[str, Callable[[str], object]] = {
    "Which rating does the text give?": _rating,
    "Which hotels does the text name?": _names,
    "Which restaurants does the text name?": _names,
    "Which car rental companies does the text name?": _names,
    "What is the lowest and the highest price?": _price,
    "Is it open on the day of the first line?": _open,
    "How do the reviews judge the hotel?": _mood,
    "Which flights does the text list?": _flights,
}
