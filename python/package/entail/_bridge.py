"""Functions of Python that the native half calls from its own threads."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from entail import _entail

Native = Callable[[str, _entail.Answer], Callable[[], object]]


async def result_of(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What a function gives: a coroutine is awaited, anything else works in a thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
        return await function(*args, **named)
    result = await _in_thread(function, *args, **named)
    return await result if inspect.isawaitable(result) else result


def _in_thread(function: Callable[..., Any], *args: Any, **named: Any) -> asyncio.Future[Any]:
    """What a function gives in a thread of its own, which nobody waits for.

    For one of `asyncio.to_thread` the loop waits when it is closed, and the interpreter when it ends: a function that can't be stopped would hold up
    a run that has reached its time limit.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: Exception | None) -> None:
        if done.done():
            # The run was canceled.
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def work() -> None:
        result: Any = None
        error: Exception | None = None
        try:
            result = context.run(function, *args, **named)
        except BaseException as e:
            # A future takes no StopIteration, and SystemExit would end the loop.
            if isinstance(e, Exception) and not isinstance(e, StopIteration):
                error = e
            else:
                error = RuntimeError(f"{type(e).__name__}: {e}")
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            # The loop is closed: the run is over.
            pass

    threading.Thread(target=work, name="entail-function", daemon=True).start()
    return done


def on_loop(act: Callable[[Any], Awaitable[Any]], loop: asyncio.AbstractEventLoop) -> Native:
    """A coroutine function on data, for the native half: its work is done on this loop."""

    async def answered(argument: str, answer: _entail.Answer) -> None:
        try:
            answer.give(json.dumps(await act(json.loads(argument)), allow_nan=False))
        except asyncio.CancelledError:
            answer.fail("it was canceled")
            raise
        except Exception as e:
            # It is told to the program, and perhaps to a model, as the failure of what was called.
            answer.fail(str(e) or type(e).__name__)

    def begin(argument: str, answer: _entail.Answer) -> Callable[[], object]:
        return asyncio.run_coroutine_threadsafe(answered(argument, answer), loop).cancel

    return begin


def finished(work: Awaitable[Any]) -> Any:
    """What a coroutine gives, on a loop of its own: that of the caller may run already."""
    outcome: list[Any] = []
    failure: list[BaseException] = []

    async def wait() -> Any:
        return await work

    def act() -> None:
        try:
            outcome.append(asyncio.run(wait()))
        except BaseException as e:
            failure.append(e)

    thread = threading.Thread(target=act, name="entail-function", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
