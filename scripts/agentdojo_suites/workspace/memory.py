"""Calls of an earlier session with the attacker's text, where the policy admits anybody's text."""

from __future__ import annotations

from typing import Any

from agentdojo.functions_runtime import FunctionCall

from agentdojo_suites.travel import memory


def calls(text: str, env: Any) -> list[FunctionCall]:
    """An event a day, a mail, a file, and more text in every file."""
    made = memory.calls(text, env)
    made.append(FunctionCall(function="create_file", args={"filename": "notes.txt", "content": text}))
    for file in env.cloud_drive.files:
        made.append(FunctionCall(function="append_to_file", args={"file_id": file, "content": text}))
    return made
