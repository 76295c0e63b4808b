"""A guard inside a program: the session of an assistant, whose tool calls are checked at the label of its conversation."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeAlias

from entail import _entail
from entail._bridge import finished, result_of
from entail._found import Error, native, raised
from entail._program import Approval
from entail._schema import Schema
from entail._toml import Policy, policy_arguments
from entail._tools import Tool, tool

#: Is asked before a call that wants approval: `True`, or why not.
Approver: TypeAlias = Callable[[Approval], bool | str | Awaitable[bool | str]]
#: Is told what happens: the objects that `entail guard --format json` writes.
Log: TypeAlias = Callable[[dict[str, Any]], object]
#: A tool: a function, a `Tool`, or its declaration with `name` and the JSON Schema of its arguments, `parameters`.
Declared: TypeAlias = Tool | Callable[..., Any] | Mapping[str, Any]
#: Calls a tool without arguments, for the set of its results.
ReadSet: TypeAlias = Callable[[str], Any]
#: The result of a set as a JSON text, or why it could not be read.
_Set: TypeAlias = tuple[str | None, str | None]


class GuardRefused(Error):
    """A call is not made. Its text is for the model: the reason, where the label comes from, and the remedy."""

    #: The tool.
    tool: str
    #: The part of the call that broke a bound, its label and the bound, if one did.
    broke: tuple[str, str, str] | None
    #: The label of the conversation.
    label: str
    #: The tools whose results raised the label, the first first.
    raised_by: list[str]
    #: The object that `entail guard --format json` writes.
    details: dict[str, Any]

    _said = "entail guard refused this call: "

    def __init__(self, told: dict[str, Any]) -> None:
        text = self._said + told["text"]
        super().__init__({"code": "refused", "message": told["message"], "help": told["remedy"] or None, "text": text})
        self._told = told
        self.tool = told["tool"]
        broke = told.get("broke")
        self.broke = (broke["part"], broke["label"], broke["bound"]) if broke else None
        self.label = told["label"]
        self.raised_by = list(told["raisedBy"])
        self.details = {k: v for k, v in told.items() if k != "text"}


class GuardWithheld(GuardRefused):
    """The model may not be shown a result."""

    _said = "entail guard withheld the result: "


class GuardCall:
    """A call that may be made. Its result goes to `result`, or the text of its failure to `failed`, before the model is shown it."""

    #: The tool.
    tool: str
    #: Its arguments.
    args: dict[str, Any]

    def __init__(
        self, session: GuardSession, tool: str, args: dict[str, Any], id: str | None, call: _entail.GuardCall
    ) -> None:
        self._session = session
        self.tool = tool
        self.args = args
        self._id = id
        self._call = call

    def result(self, value: Any) -> None:
        """Takes note of the result, which raises the label of the conversation. A text that is JSON counts as that.

        Raises `GuardWithheld` if the model may not be shown it.
        """
        try:
            text: str | None = as_json_text(value)
        except _NoJson:
            # Nothing is known of it but its label, which is that of a failure.
            text = None
        self._conclude(text, None)

    def failed(self, why: str) -> None:
        """Takes note of the failure of the call, whose text counts as a result of the tool."""
        self._conclude(None, why.encode(errors="replace").decode())

    def _conclude(self, result: str | None, failed: str | None) -> None:
        with native():
            told = json.loads(self._session._session.conclude(self._call, result, failed))
        self._session._mark(self._id, self.tool, self.args)
        self._session._tell(told["notes"])
        if "withheld" in told:
            raise GuardWithheld(told["withheld"])


class Guard:
    """A policy with those who carry it out. `session` begins a conversation.

    `tools` declares tools: functions, `Tool`s, or mappings with `name` and `parameters`. Adapters of frameworks declare theirs.
    `approver` is asked about calls that want approval; without one they are refused. `model` names the model, for its clearance.
    With `observe` nothing is refused, and `log` is told what would have been.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        tools: Iterable[Declared] = (),
        approver: Approver | None = None,
        model: str | None = None,
        observe: bool = False,
        log: Log | None = None,
    ) -> None:
        path, text = policy_arguments(policy)
        with native():
            self._template = _entail.GuardSession(path, text, model, observe)
        self.observe = observe
        self._approver = approver
        self._log = log
        self._functions: dict[str, Callable[..., Any]] = {}
        declared = [_declaration(t, self._functions) for t in tools]
        self._nothing = self.session().save()
        problems = json.loads(self._template.offer(json.dumps(declared)))
        if declared and problems:
            message = f"the policy does not fit the tools: {problems[0]['message']}"
            raise raised({"code": problems[0]["code"], "message": message, "help": problems[0]["help"]})

    def session(self, saved: str | None = None) -> GuardSession:
        """A conversation that has read nothing, or that goes on from what `GuardSession.save` gave."""
        session = GuardSession(self, self._template.fresh())
        if saved is not None:
            session.join(saved)
        return session

    def _changed(self, session: GuardSession, kept: str | None) -> str | None:
        """What is to be kept of a session, if it is something else than what is kept."""
        saved = session.save()
        return None if saved == (self._nothing if kept is None else kept) else saved


class GuardSession:
    """One conversation of an assistant with its tools. Several threads and tasks may use it at the same time."""

    def __init__(self, guard: Guard, session: _entail.GuardSession) -> None:
        self._guard = guard
        self._session = session
        self._lock = threading.Lock()
        self._declared: dict[str, str] = {}
        #: Calls of the last reply of the model, decided at its label, by their names in the framework.
        self._decided: dict[str, tuple[str, str, str, _entail.GuardCall | None]] = {}
        #: Sets that were read, or are being read.
        self._reading: dict[str, Future[_Set]] = {}
        self._reply: str | None = None
        #: Names of calls whose results this session has labeled.
        self._labeled: set[str] = set()
        #: Those of them that would count for more in another session.
        self._exact: list[str] = []

    @property
    def label(self) -> str:
        """The label of the conversation, as policies write it."""
        return self._session.label()

    @property
    def raised(self) -> list[tuple[str, str]]:
        """The tools whose results raised the label, each with the label from then on."""
        return [(by, to) for by, to in json.loads(self._session.raised())]

    def save(self) -> str:
        """State that must outlive the process: the label and what raised it, calls that the policy counts, and sets that were read."""
        with self._lock:
            sets = {name: reading.result() for name, reading in self._reading.items() if reading.done()}
            kept = {"sets": sets, "labeled": self._exact}
            return json.dumps({**json.loads(self._session.save()), **kept})

    def join(self, saved: str) -> None:
        """Joins what a session of the same policy saved: both conversations are one from here on."""
        with native():
            self._session.join(saved)
        kept = json.loads(saved)
        with self._lock:
            for name, (result, failed) in kept.get("sets", {}).items():
                if name not in self._reading:
                    self._reading[name] = Future()
                    self._reading[name].set_result((result, failed))
            for id in kept.get("labeled", []):
                self._label_exactly(id)

    def declare(self, tools: Iterable[Declared]) -> None:
        """Adds tools, or replaces those of the same names."""
        with self._lock:
            new = []
            for declaration in (_declaration(t, {}) for t in tools):
                text = json.dumps(declaration["schema"], sort_keys=True, default=str)
                if self._declared.get(declaration["name"]) != text:
                    self._declared[declaration["name"]] = text
                    new.append(declaration)
            if new:
                self._session.offer(json.dumps(new, default=str))

    def check(
        self, tool: str, args: Mapping[str, Any], *, id: str | None = None, read: ReadSet | None = None
    ) -> GuardCall:
        """Decides a call before it is made, as if the model had replied with it.

        `id` names the call if `reply` has decided it. `read` calls a tool without arguments, for a set of the policy (`among`); without it
        the functions of `Guard(tools=…)` are called.

        Raises `GuardRefused` if it is not to be made.
        """
        told, call = self._begin(tool, args, id)
        while True:
            decision = self._note(told)
            if decision == "allowed" and call is not None:
                return GuardCall(self, tool, dict(args), id, call)
            if decision == "reads" and call is not None:
                told, call = self._read(call, *self._set(told["set"], self._reader(read)))
            elif decision == "asks" and call is not None:
                told, call = self._answer(call, _ask(self._guard._approver, tool, told))
            else:
                self._mark(id, tool, args)
                raise GuardRefused(told["refused"])

    async def check_async(
        self, tool: str, args: Mapping[str, Any], *, id: str | None = None, read: ReadSet | None = None
    ) -> GuardCall:
        """`check` where an event loop runs: an approver and a set may be async."""
        told, call = self._begin(tool, args, id)
        while True:
            decision = self._note(told)
            if decision == "allowed" and call is not None:
                return GuardCall(self, tool, dict(args), id, call)
            if decision == "reads" and call is not None:
                told, call = self._read(call, *await self._set_async(told["set"], self._reader(read)))
            elif decision == "asks" and call is not None:
                told, call = self._answer(call, await _ask_async(self._guard._approver, tool, told))
            else:
                self._mark(id, tool, args)
                raise GuardRefused(told["refused"])

    def reply(self, calls: Iterable[tuple[str, str, Mapping[str, Any]]], *, id: str | None = None) -> None:
        """Decides the calls of one reply of the model, `(id, tool, arguments)`, at the label of what it had seen.

        So no result of one of them changes the decision about another, in whatever order they are made. `check` with the same `id` takes the
        decision. Those of the reply before that were not taken are dropped. Nothing happens if this is called for a reply again: `id` names it.
        """
        with self._lock:
            if id is not None and self._reply == id:
                return
            self._reply = id
            self._decided = {}
            for call, tool, args in calls:
                try:
                    text = _arguments(tool, args)
                    with native():
                        told, decided = self._session.decide(tool, text)
                except Error:
                    # `check` says so.
                    continue
                self._decided[call] = (tool, text, told, decided)

    def seen(self, tool: str, args: Mapping[str, Any] | None = None, *, id: str | None = None) -> None:
        """Takes note of a result that the model is shown and that is of no call of this session.

        Such are results of an earlier session, and of tools that a provider carries out. It has the highest label that the policy gives
        results of the tool. Nothing happens if `id` names a call of this session.
        """
        with self._lock:
            if id in self._labeled:
                return
        try:
            text = _arguments(tool, args or {})
        except Error:
            text = "null"
        with native():
            notes = json.loads(self._session.seen(tool, text))
        with self._lock:
            if id is not None:
                self._labeled.add(id)
        self._tell(notes)

    def _mark(self, id: str | None, tool: str, args: Mapping[str, Any]) -> None:
        """A call of this session has its result, or was refused."""
        if id is None:
            return
        counts_for_more = self._session.would_raise(tool, _arguments(tool, args))
        with self._lock:
            if counts_for_more:
                self._label_exactly(id)
            self._labeled.add(id)

    def _label_exactly(self, id: str) -> None:
        if id not in self._exact:
            self._exact.append(id)
        self._labeled.add(id)

    def _has_declared(self, names: Iterable[str]) -> bool:
        return all(name in self._declared for name in names)

    def _assume_made(self, but: str) -> None:
        """Takes the other calls of the reply as made: another copy of this session makes them."""
        with self._lock:
            others = [decided for id, decided in self._decided.items() if id != but]
        for _, _, told, call in others:
            if call is not None and json.loads(told)["decision"] == "asks":
                self._answer(call, True)

    def _begin(self, tool: str, args: Mapping[str, Any], id: str | None) -> tuple[dict[str, Any], _entail.GuardCall | None]:
        text = _arguments(tool, args)
        with self._lock:
            if id is None:
                # The framework does not name it.
                id = next((known for known, decided in self._decided.items() if decided[:2] == (tool, text)), None)
            known = self._decided.pop(id, None) if id is not None else None
        if known is not None and known[:2] == (tool, text):
            return json.loads(known[2]), known[3]
        with native():
            told, call = self._session.decide(tool, text)
        return json.loads(told), call

    def _read(
        self, call: _entail.GuardCall, result: str | None, failed: str | None
    ) -> tuple[dict[str, Any], _entail.GuardCall | None]:
        with native():
            told, next_call = self._session.read(call, result, failed)
        return json.loads(told), next_call

    def _set(self, name: str, read: ReadSet) -> _Set:
        """The result of a set, which is read once."""
        reading, is_first = self._reading_of(name)
        # A loop that runs here may have to read it.
        if is_first or asyncio._get_running_loop() is not None:
            self._was_read(name, _attempt(lambda: _now(read(name))))
        return reading.result()

    async def _set_async(self, name: str, read: ReadSet) -> _Set:
        reading, is_first = self._reading_of(name)
        if is_first:
            try:
                self._was_read(name, await _attempt_async(read, name))
            except asyncio.CancelledError:
                self._was_read(name, (None, "it was canceled"))
                raise
        return await asyncio.wrap_future(reading)

    def _reading_of(self, name: str) -> tuple[Future[_Set], bool]:
        with self._lock:
            known = self._reading.get(name)
            if known is None:
                self._reading[name] = Future()
            return self._reading[name], known is None

    def _was_read(self, name: str, found: _Set) -> None:
        with self._lock:
            reading = self._reading[name]
            if reading.done():
                return
            reading.set_result(found)
        if found[1] is not None:
            self._tell([{"event": "unread", "set": name, "message": found[1]}])

    def _answer(self, call: _entail.GuardCall, why_not: str | bool) -> tuple[dict[str, Any], _entail.GuardCall | None]:
        with native():
            if why_not is False:
                told, next_call = self._session.unattended(call)
            else:
                told, next_call = self._session.answer(call, None if why_not is True else str(why_not))
        return json.loads(told), next_call

    def _note(self, told: dict[str, Any]) -> str:
        self._tell(told["notes"])
        return str(told["decision"])

    def _tell(self, notes: list[dict[str, Any]]) -> None:
        if self._guard._log is not None:
            for note in notes:
                self._guard._log(note)

    def _reader(self, read: ReadSet | None) -> ReadSet:
        def own(name: str) -> Any:
            function = self._guard._functions.get(name)
            if function is not None:
                return function()
            if read is not None:
                return read(name)
            raise LookupError(f"nothing can read the set `{name}`: give its function to `Guard(tools=…)`")

        return own


def expect(given: object, taken: tuple[type, ...], by: str) -> None:
    """Raises an error if something else than a guard is attached."""
    if not isinstance(given, taken):
        names = " or ".join(f"`entail.{t.__name__}`" for t in taken)
        message = f"`{by}` takes an {names}, not {type(given).__name__}"
        raise raised({"code": "usage", "message": message, "help": 'write `entail.Guard("policy.toml")` for the guard of a policy'})


class _NoJson(Exception):
    """A value that is no JSON, with the reason."""


def as_json_text(value: Any) -> str:
    """The JSON text of a value, which nothing but JSON has."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_no_json)
        _only_text_keys(value)
        # A lone surrogate is no character.
        text.encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise _NoJson(str(e)) from None
    return text


def _no_json(value: Any) -> Any:
    raise TypeError(f"`{type(value).__name__}` is no JSON")


def _only_text_keys(value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key `{key!r:.40}` is no text")
            _only_text_keys(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _only_text_keys(item)


def _arguments(tool: str, args: Mapping[str, Any]) -> str:
    if not isinstance(args, Mapping):
        message = f"the arguments of `{tool}` are {type(args).__name__}, not a mapping"
        raise raised({"code": "usage", "message": message, "help": "give each argument by its name"})
    try:
        return as_json_text(dict(args))
    except _NoJson as e:
        message = f"the arguments of `{tool}` can't be compared: {e}"
        raise raised({"code": "usage", "message": message, "help": "pass texts, numbers, lists and mappings"}) from None


def _declaration(given: Declared, functions: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """The name and schema of a tool; its function, if it has one."""
    if isinstance(given, Mapping):
        schema: Schema | None = given.get("parameters", given.get("inputSchema"))
        name = given.get("name")
        if not isinstance(name, str) or not (schema is None or isinstance(schema, Mapping)):
            message = "the declaration of a tool has a `name` and, as `parameters`, the JSON Schema of its arguments"
            raise raised({"code": "usage", "message": message})
        return {"name": name, "schema": schema}
    made = given if isinstance(given, Tool) else tool(given)
    functions[made.name] = made.function
    return {"name": made.name, "schema": made.takes}


def _now(value: Any) -> Any:
    return finished(value) if inspect.isawaitable(value) else value


def _attempt(read: Callable[[], Any]) -> _Set:
    try:
        return as_json_text(read()), None
    except Exception as e:
        return None, str(e) or type(e).__name__


async def _attempt_async(read: ReadSet, name: str) -> _Set:
    try:
        value = await result_of(read, name)
        return as_json_text(value), None
    except Exception as e:
        return None, str(e) or type(e).__name__


def _approval(tool: str, told: dict[str, Any]) -> Approval:
    labels = {n: _label(l) for n, l in told["labels"].items() if l != "[]"}
    return Approval(tool, told["args"], labels, decided=told["decided"])


def _label(written: str) -> Any:
    """A label as data, as far as its notation is that of JSON."""
    try:
        return json.loads(written)
    except ValueError:
        return written


def _ask(approver: Approver | None, tool: str, told: dict[str, Any]) -> bool | str:
    """`True`, why not, or `False` if nobody is there."""
    return False if approver is None else _said(_now(approver(_approval(tool, told))))


async def _ask_async(approver: Approver | None, tool: str, told: dict[str, Any]) -> bool | str:
    return False if approver is None else _said(await result_of(approver, _approval(tool, told)))


def _said(answer: Any) -> bool | str:
    if answer is True:
        return True
    return answer if isinstance(answer, str) and answer else "it was not approved"


__all__ = ["Guard", "GuardCall", "GuardRefused", "GuardSession", "GuardWithheld"]
