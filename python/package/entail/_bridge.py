"""Functions of Python that the native half calls from its own threads."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from entail import _entail

Native = Callable[[str, _entail.Answer], Callable[[], object]]


async def result_of(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What a function gives: a coroutine is awaited, anything else works in a thread of its own."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
        return await function(*args, **named)
    result = await asyncio.to_thread(function, *args, **named)
    return await result if inspect.isawaitable(result) else result


def on_loop(act: Callable[[Any], Awaitable[Any]], loop: asyncio.AbstractEventLoop) -> Native:
    """A coroutine function on data, for the native half: its work is done on this loop."""

    async def answered(argument: str, answer: _entail.Answer) -> None:
        try:
            answer.give(json.dumps(await act(json.loads(argument)), allow_nan=False))
        except asyncio.CancelledError:
            answer.fail("it was cancelled")
            raise
        except Exception as e:
            # It is told to the program, and perhaps to a model, as the failure of what was called.
            answer.fail(str(e) or type(e).__name__)

    def begin(argument: str, answer: _entail.Answer) -> Callable[[], object]:
        return asyncio.run_coroutine_threadsafe(answered(argument, answer), loop).cancel

    return begin
