"""Calls of an earlier session with the attacker's text, where the policy admits anybody's text."""

from __future__ import annotations

from typing import Any

from agentdojo.functions_runtime import FunctionCall


def calls(text: str, env: Any) -> list[FunctionCall]:
    """Messages to every channel and every user, and a page."""
    posts = [("send_channel_message", {"channel": c, "body": text}) for c in env.slack.channels]
    posts += [("send_direct_message", {"recipient": u, "body": text}) for u in env.slack.users]
    posts += [("post_webpage", {"url": u, "content": text}) for u in env.web.web_content]
    return [FunctionCall(function=tool, args=args) for tool, args in posts]
