"""Programs: what is known of them, and their runs."""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Union, overload

from entail import _entail
from entail._bridge import native_of
from entail._found import Finding, RunError, finding, native, raised
from entail._model import Call, Model, as_data
from entail._schema import as_json, read_as
from entail._tools import Tool, Tools, tools_of

if TYPE_CHECKING:
    # Of the type checker's own; nothing needs to be installed for it.
    from typing_extensions import Unpack

Path = Union[str, "os.PathLike[str]"]
T = TypeVar("T")

#: The most seconds that a run which was canceled has to end.
_LAST = 5.0


@dataclass(frozen=True)
class Interval:
    """The least and the most of something; `most` is `None` where no bound is known."""

    least: float
    most: float | None


@dataclass(frozen=True)
class Cost:
    """What a run may use, as it is known without running it."""

    model_calls: Interval
    tool_calls: Interval
    input_tokens: Interval
    output_tokens: Interval
    #: US dollars, of the models whose price is known.
    usd: Interval
    #: Everything, as `entail cost --format json` writes it: also what has no price, and where no bound is known and why.
    details: dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Usage:
    """What a run has used. `usd` is `None` if the price of a model is not known."""

    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None


@dataclass(frozen=True)
class Report:
    """What a run gave."""

    value: Any
    usage: Usage
    #: Names the run.
    run: str
    #: Everything, as `entail run --format json` writes it: also the label of the value, and the bound.
    details: dict[str, Any] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Approval:
    """A call of a tool that wants somebody's approval."""

    tool: str
    args: dict[str, Any]
    #: Where each argument comes from and who may see it.
    labels: dict[str, Any]
    #: For each argument with a label, the steps that brought it, in words.
    why: dict[str, list[str]] = field(default_factory=dict)
    #: Whether untrusted data decided that the call is made, whatever its arguments are.
    decided: bool = False


@dataclass(frozen=True)
class Pipeline:
    """Something of a program that can be run."""

    name: str
    #: Whether it is what runs if nothing is named.
    default: bool
    #: The type of what it takes, in the notation of the calculus; `None` for a term that is evaluated as it is.
    input: str | None
    #: The type of what it gives, as far as it is known.
    output: str
    #: The JSON Schema of what it takes.
    input_schema: dict[str, Any] | None = field(repr=False)


#: Who approves calls: `True`, or `False` or a text that says why not. A mapping approves the call with these arguments in place of its own.
Approver = Callable[[Approval], Union[bool, str, Mapping[str, Any], Awaitable[Union[bool, str, Mapping[str, Any]]]]]
#: Is told each event of a run, as `entail run --log json` writes them.
Listener = Callable[[dict[str, Any]], Any]


class How(TypedDict, total=False):
    """How a pipeline is run, see `Program.report`."""

    pipeline: str | None
    tools: Tools | None
    model: str | Model | None
    script: Sequence[Any] | None
    config: Path | None
    approver: Approver | None
    listener: Listener | None
    max_calls: int | None
    max_tool_calls: int | None
    max_tokens: int | None
    max_usd: float | str | Decimal | None
    timeout: float | None
    seed: int | None
    fuel: int | None
    python_tools: bool


class Program:
    """A program that was read and found right."""

    def __init__(self, native_program: _entail.Program) -> None:
        self._native = native_program
        self._pipelines = {p["name"]: Pipeline(**p) for p in json.loads(native_program.pipelines())}

    def __repr__(self) -> str:
        return f"<entail.Program: {', '.join(self._pipelines)}>"

    @property
    def pipelines(self) -> dict[str, Pipeline]:
        """What can be run, by name."""
        return dict(self._pipelines)

    def check(self) -> list[Finding]:
        """All that is to be said about it: what was noticed when it was read, types that do not fit, calls that their policy refuses."""
        return [finding(f) for f in json.loads(self._native.check())]

    def cost(self, pipeline: str | None = None) -> Cost:
        """What a run of a pipeline, or of the default one, may use."""
        with native():
            told = json.loads(self._native.bound(pipeline))

        def interval(name: str) -> Interval:
            return Interval(told[name]["least"], told[name]["most"])

        return Cost(
            interval("modelCalls"),
            interval("toolCalls"),
            interval("inputTokens"),
            interval("outputTokens"),
            interval("usd"),
            told,
        )

    async def report(
        self,
        input: Any = None,
        *,
        pipeline: str | None = None,
        tools: Tools | None = None,
        model: str | Model | None = None,
        script: Sequence[Any] | None = None,
        config: Path | None = None,
        approver: Approver | None = None,
        listener: Listener | None = None,
        max_calls: int | None = None,
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
        max_usd: float | str | Decimal | None = None,
        timeout: float | None = None,
        seed: int | None = None,
        fuel: int | None = None,
        python_tools: bool = False,
    ) -> Report:
        """Runs a pipeline, or the default one, and tells what it gave and used.

        `input` is data, or a dataclass or Pydantic model that holds it. `tools` are functions, by their own names or as a mapping.
        `model` answers all calls: a name that the settings or the provider know, or a function. `script` is a list of replies
        in place of models. `python_tools` is consent to run the functions of a compiled project that are its tools. `config` names the settings; without it they are the nearest `entail.toml`.

        Canceling it cancels the run, with everything that is under way.

        Raises `RunError` if the run failed, `Error` if it could not begin.
        """
        return await self._reported(
            input,
            pipeline=pipeline,
            tools=tools,
            model=model,
            script=script,
            config=config,
            approver=approver,
            listener=listener,
            max_calls=max_calls,
            max_tool_calls=max_tool_calls,
            max_tokens=max_tokens,
            max_usd=max_usd,
            timeout=timeout,
            seed=seed,
            fuel=fuel,
            python_tools=python_tools,
        )

    async def _reported(self, input: Any, **how: Any) -> Report:
        outcome = await self._outcome(input, **{**_USUAL, **how})
        error, details = outcome.get("error"), outcome.get("report")
        if details is None:
            raise raised(outcome["error"])
        if error is not None:
            raise RunError(error, details)
        used = details["usage"]
        usage = Usage(
            used["modelCalls"], used["toolCalls"], used["inputTokens"], used["outputTokens"], used["usd"]
        )
        return Report(details["result"], usage, details["run"], details)

    async def stream(self, input: Any = None, **how: Unpack[How]) -> AsyncGenerator[dict[str, Any], None]:
        """Runs a pipeline and gives its events as they happen; everything else is as in `report`.

        Events are those of `listener`. A reply that arrives is an event `text` for each piece, and `partial` for the typed value so far, with `value`
        and `open`, the way to the part that is being written; `open` is `None` when the value is whole. The last event is `result`, with the `report`.
        Whoever reads too slowly misses texts and partial values: `skipped` says how many `events`.

        Leaving the loop cancels the run.
        """
        listener = how.pop("listener", None)
        events = _Events()

        def told(event: dict[str, Any]) -> None:
            if listener is not None:
                listener(event)
            events.put(event)

        run = asyncio.ensure_future(self._reported(input, **{**how, "listener": told, "stream": True}))
        run.add_done_callback(lambda _: events.end())
        try:
            while (event := await events.next()) is not None:
                yield event
            report = await run
            yield {"event": "result", "report": report}
        finally:
            if not run.done():
                run.cancel()
                await asyncio.gather(run, return_exceptions=True)

    async def _outcome(
        self,
        input: Any,
        *,
        pipeline: str | None = None,
        tools: Tools | None,
        model: str | Model | None,
        script: Sequence[Any] | None = None,
        config: Path | None,
        approver: Approver | None,
        listener: Listener | None,
        max_calls: int | None,
        max_tool_calls: int | None,
        max_tokens: int | None,
        max_usd: float | str | Decimal | None,
        timeout: float | None,
        seed: int | None,
        fuel: int | None,
        python_tools: bool,
        stream: bool = False,
        planning: _entail.Planning | None = None,
    ) -> dict[str, Any]:
        """The outcome of a run: `report` and `error`; with an exchange also `next`, the prompt for another plan, and `events` without a listener."""
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = {
            "model": model if isinstance(model, str) else None,
            "script": list(script) if script is not None else None,
            "max_calls": max_calls,
            "max_tool_calls": max_tool_calls,
            "max_tokens": max_tokens,
            "max_usd": None if max_usd is None else str(max_usd),
            "timeout": timeout,
            "seed": seed,
            "fuel": fuel,
            "python_tools": python_tools or None,
            "stream": stream or None,
        }
        ended: asyncio.Future[str] = loop.create_future()

        def end(outcome: str) -> None:
            if not ended.done():
                ended.set_result(outcome)

        def told(event: str) -> None:
            if listener is not None:
                listener(json.loads(event))

        with native():
            world = _entail.World(
                None if config is None else os.fspath(config),
                json.dumps({k: v for k, v in options.items() if v is not None}),
                _model(model, loop) if callable(model) else None,
                [_tool(t, loop) for t in tools_of(tools)],
                _approver(approver, loop) if approver is not None else None,
            )
            run = self._native.start(
                pipeline,
                json.dumps(as_json(input), allow_nan=False),
                world,
                (lambda event: _on(loop, told, event)) if listener is not None else None,
                lambda outcome: _on(loop, end, outcome),
                planning,
            )
        try:
            # Whoever is canceled here leaves the future as it is: it tells when the run has ended.
            outcome: dict[str, Any] = json.loads(await asyncio.shield(ended))
        except asyncio.CancelledError:
            run.cancel()
            # What it has begun, processes above all, ends before the caller goes on, who may be about to leave the interpreter.
            await asyncio.wait([ended], timeout=_LAST)
            raise
        return outcome

    @overload
    async def run(self, input: Any = None, *, output: type[T], **how: Unpack[How]) -> T: ...
    @overload
    async def run(self, input: Any = None, *, output: None = None, **how: Unpack[How]) -> Any: ...
    async def run(self, input: Any = None, *, output: type[Any] | None = None, **how: Unpack[How]) -> Any:
        """The value that a run gives; as a dataclass or Pydantic model, if `output` is one. Everything else is as in `report`."""
        value = (await self.report(input, **how)).value
        return value if output is None else read_as(output, value)

    @overload
    def run_sync(self, input: Any = None, *, output: type[T], **how: Unpack[How]) -> T: ...
    @overload
    def run_sync(self, input: Any = None, *, output: None = None, **how: Unpack[How]) -> Any: ...
    def run_sync(self, input: Any = None, *, output: type[Any] | None = None, **how: Unpack[How]) -> Any:
        """`run` where no event loop runs."""
        return asyncio.run(self.run(input, output=output, **how) if output else self.run(input, **how))


#: The most events that wait for their reader.
_WAITING = 1024

#: How a pipeline is run if nothing is said.
_USUAL: dict[str, Any] = {**dict.fromkeys(How.__annotations__), "python_tools": False}


class _Events:
    """Events on their way to whoever iterates over them. Of those that wait, texts and partial values are left out if there are too many."""

    def __init__(self) -> None:
        self._waiting: deque[dict[str, Any]] = deque()
        self._skipped = 0
        self._ended = False
        self._changed = asyncio.Event()

    def put(self, event: dict[str, Any]) -> None:
        if len(self._waiting) >= _WAITING and event["event"] in ("text", "partial"):
            self._skipped += 1
            return
        if self._skipped:
            self._waiting.append({"event": "skipped", "events": self._skipped})
            self._skipped = 0
        self._waiting.append(event)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def next(self) -> dict[str, Any] | None:
        """The next event; `None` after the last."""
        while not self._waiting and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        return self._waiting.popleft() if self._waiting else None


def _on(loop: asyncio.AbstractEventLoop, act: Callable[[str], None], argument: str) -> None:
    """Calls a function on a loop, unless that has been closed."""
    try:
        loop.call_soon_threadsafe(act, argument)
    except RuntimeError:
        pass


def _tool(
    tool: Tool, loop: asyncio.AbstractEventLoop
) -> tuple[str, str | None, str | None, Callable[[str, _entail.Answer], Callable[[], object]]]:
    def text(schema: dict[str, Any] | None) -> str | None:
        return None if schema is None else json.dumps(schema)

    return tool.name, text(tool.takes), text(tool.gives), tool.native(loop)


def _model(
    model: Callable[[Call], Any], loop: asyncio.AbstractEventLoop
) -> tuple[str, Callable[[str, _entail.Answer], Callable[[], object]]]:
    return getattr(model, "__name__", "python"), native_of(model, lambda call: ((Call(**call),), {}), as_data, loop)


def _approver(
    approver: Approver, loop: asyncio.AbstractEventLoop
) -> Callable[[str, _entail.Answer], Callable[[], object]]:
    def give(said: Any) -> Any:
        if isinstance(said, Mapping):
            return {name: as_json(value) for name, value in said.items()}
        return said if isinstance(said, str) else said is True

    return native_of(approver, lambda call: ((Approval(**call),), {}), give, loop)


def load(path: Path, *, config: Path | None = None) -> Program:
    """Reads a program (`.agent`, `.lam`), the configuration of a framework, or the directory of a project.

    The policy that the settings name is applied: those of `config`, or else of the nearest `entail.toml`. Raises `ProgramError` if it is
    wrong.
    """
    with native():
        return Program(_entail.Program.load(os.fspath(path), None if config is None else os.fspath(config)))


def from_source(text: str) -> Program:
    """Reads a program in the language `.agent`. Raises `ProgramError` if it is wrong."""
    with native():
        return Program(_entail.Program.from_source(text))


def lint(
    *paths: Path,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    level: str | None = None,
    config: Path | None = None,
    policy: Path | None = None,
) -> list[Finding]:
    """Lints files and directories as `entail lint` does.

    Raises `Error` if a path can't be read or an option is wrong.
    """
    words = ["lint"]
    for name, codes in (("--select", select), ("--ignore", ignore)):
        listed = [codes] if isinstance(codes, str) else list(codes)
        words += [f"{name}={','.join(listed)}"] if listed else []
    for name, value in (("--level", level), ("--config", config), ("--policy", policy)):
        words += [f"{name}={os.fspath(value)}"] if value is not None else []
    _, told = _entail.command([*words, "--", *(os.fspath(p) for p in paths)])
    lines = json.loads(told)
    for line in lines:
        if "error" in line:
            raise raised(line["error"])
    return [finding(line) for line in lines]
