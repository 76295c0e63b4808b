"""Calls of an earlier session with the attacker's text, where the policy admits anybody's text."""

from __future__ import annotations

from typing import Any

from agentdojo.functions_runtime import FunctionCall


def calls(text: str, env: Any) -> list[FunctionCall]:
    """An event a day and a mail."""
    days = sorted({e.start_time.date().isoformat() for e in env.calendar.events.values()})
    made = [
        FunctionCall(
            function="create_calendar_event",
            args={
                "title": text,
                "start_time": f"{day} 06:00",
                "end_time": f"{day} 07:00",
                "description": text,
                "location": text,
            },
        )
        for day in days
    ]
    mail = {"recipients": [env.inbox.account_email], "subject": text, "body": text}
    return [*made, FunctionCall(function="send_email", args=mail)]
