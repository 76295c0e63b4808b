"""Quarantined model of the suite `banking`: reads out of a text what the question of a plan asks for."""

from __future__ import annotations

import re
from collections.abc import Callable

# Words that tell the category of a payment.
CATEGORIES = {
    "food": ("pizza", "sushi", "dinner", "lunch"),
    "gifts": ("gift", "present"),
    "subscriptions": ("spotify", "premium", "subscription"),
    "shopping": ("purchase", "store"),
    "housing": ("rent",),
}


def bill(text: str) -> object:
    """Returns the account and the total of a bill."""
    iban = re.search(r"IBAN:\s*(\w+)", text)
    total = re.search(r"Total\s+([\d.]+)", text)
    if iban is None or total is None:
        return None
    return {"iban": iban.group(1), "total": float(total.group(1))}


def increase(text: str) -> object:
    """Returns the amount that follows the word `increased`."""
    found = re.search(r"increased by ([\d.]*\d)", " ".join(text.split()))
    return float(found.group(1)) if found else None


def category(text: str) -> object:
    """Returns the category whose words stand in a subject."""
    for name, words in CATEGORIES.items():
        if any(word in text.lower() for word in words):
            return name
    return "other"


def address(text: str) -> object:
    """Returns street and city of the paragraph that holds a postal code."""
    found = re.search(r"^([^\n]*\d+[^\n]*)\n([^\n]*\d{5})$", text, re.MULTILINE)
    return {"street": found.group(1).strip(), "city": found.group(2).strip()} if found else None


def suspicious(text: str) -> object:
    """Returns true if one payment is at least ten times as large as another."""
    amounts = [float(line.split()[3]) for line in text.splitlines() if line.strip()]
    return max(amounts) >= 10 * min(amounts)


ANSWERS: dict[str, Callable[[str], object]] = {
    "To which IBAN is this bill paid, and how much in total?": bill,
    "By how much is the rent increased?": increase,
    "Which category is this transaction?": category,
    "Which street and city does the letter name?": address,
    "Does a transaction look suspicious, even a little?": suspicious,
}
