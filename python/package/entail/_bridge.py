"""Functions of Python that the native half calls from its own threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import json
import os
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from entail import _entail

Native = Callable[[str, _entail.Answer], Callable[[], object]]


def is_coroutine(function: Callable[..., Any]) -> bool:
    """Whether a call gives a coroutine for certain."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


async def result_of(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What a function gives: a coroutine is awaited, anything else works in a thread."""
    if is_coroutine(function):
        return await function(*args, **named)
    result = await _in_thread(function, *args, **named)
    return await result if inspect.isawaitable(result) else result


#: Most threads that wait for a function.
_KEPT = 8

#: Threads that wait for a function, each at a queue of its own; the last one has waited for the shortest time.
_waiting: list[queue.SimpleQueue[Callable[[], None]]] = []

if hasattr(os, "register_at_fork"):
    # A forked process has none of them.
    os.register_at_fork(after_in_child=_waiting.clear)


def _work(tasks: queue.SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()
        if len(_waiting) >= _KEPT:
            return
        _waiting.append(tasks)


def _work_aside(task: Callable[[], None]) -> None:
    """Does something, which must not raise, in a thread that nobody waits for.

    For one of `asyncio.to_thread` the loop waits when it is closed, and the interpreter when it ends: a function that can't be stopped would hold up
    a run that has reached its time limit.
    """
    try:
        tasks = _waiting.pop()
    except IndexError:
        tasks = queue.SimpleQueue()
        threading.Thread(target=_work, args=(tasks,), name="entail-function", daemon=True).start()
    tasks.put(task)


def _in_thread(function: Callable[..., Any], *args: Any, **named: Any) -> asyncio.Future[Any]:
    """What a function gives in a thread."""
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

    _work_aside(work)
    return done


class _Begun:
    """A function that works in a thread."""

    def __init__(self) -> None:
        self.canceled = False
        #: What it gave, if that is awaited.
        self.awaited: concurrent.futures.Future[None] | None = None

    def cancel(self) -> None:
        """Gives up what has not begun, and what is awaited. A function that works can't be stopped; nobody waits for it."""
        self.canceled = True
        if self.awaited is not None:
            self.awaited.cancel()


def native_of(
    function: Callable[..., Any],
    take: Callable[[Any], tuple[tuple[Any, ...], dict[str, Any]]],
    give: Callable[[Any], Any],
    loop: asyncio.AbstractEventLoop,
) -> Native:
    """A function on data, for the native half: `take` makes its arguments of the data, `give` data of its result.

    A coroutine function works on the loop; anything else in a thread, and what it gives goes from there to the native half. Both see the context
    variables of the caller.
    """
    context = contextvars.copy_context()

    async def awaited(work: Awaitable[Any], answer: _entail.Answer) -> None:
        try:
            answer.give(json.dumps(give(await work), allow_nan=False))
        except asyncio.CancelledError:
            answer.fail("it was canceled")
            raise
        except Exception as e:
            answer.fail(_told(e))

    async def called(argument: str) -> Any:
        args, named = take(json.loads(argument))
        return await function(*args, **named)

    def on_loop(work: Awaitable[Any], answer: _entail.Answer) -> concurrent.futures.Future[None]:
        return context.copy().run(asyncio.run_coroutine_threadsafe, awaited(work, answer), loop)

    def work(argument: str, answer: _entail.Answer, begun: _Begun) -> None:
        if begun.canceled:
            return
        try:
            args, named = take(json.loads(argument))
            result = context.copy().run(function, *args, **named)
            if not inspect.isawaitable(result):
                answer.give(json.dumps(give(result), allow_nan=False))
                return
            begun.awaited = on_loop(result, answer)
            if begun.canceled:
                begun.awaited.cancel()
        except BaseException as e:
            answer.fail(_told(e))

    if is_coroutine(function):
        return lambda argument, answer: on_loop(called(argument), answer).cancel

    def begin(argument: str, answer: _entail.Answer) -> Callable[[], object]:
        begun = _Begun()
        _work_aside(lambda: work(argument, answer, begun))
        return begun.cancel

    return begin


def _told(error: BaseException) -> str:
    """What a program, and perhaps a model, is told of the failure of what it called."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error}"


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
