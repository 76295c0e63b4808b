"""Calls functions of a module of Python that are tools, for a process that speaks JSON lines: `python -m entail.shim MODULE`.

MODULE is a file, or a name with dots. At first it is imported, and `{"ready": true}` or `{"error": …}` is written. Then each line
`{"call": NAME, "args": {…}}` on standard input is answered by `{"value": …}` or `{"error": …}`, with `"missing": true` beside
the error if the module has no NAME. NAME is that of a function, of a class of tools,
or the name under which models know a tool: of CrewAI, LangChain, the OpenAI Agents SDK and AutoGen, or a plain function, sync or async.

It needs nothing but the standard library. What is printed goes to standard error, so that it is never taken for an answer.
"""

import asyncio
import collections.abc
import dataclasses
import datetime
import enum
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
import typing


class RunsWhenImported(BaseException):
    """The module starts its agents when it is imported. No `except Exception` of the module is to hide that."""


class NoSuchTool(LookupError):
    """The module has nothing of the name."""


#: What starts runs: module, class, methods.
RUNS = [
    ("crewai", "Crew", ["kickoff", "kickoff_async", "kickoff_for_each", "kickoff_for_each_async"]),
    ("crewai", "Flow", ["kickoff", "kickoff_async"]),
    ("agents", "Runner", ["run", "run_sync", "run_streamed"]),
    ("langgraph.pregel", "Pregel", ["invoke", "ainvoke", "stream", "astream"]),
    ("autogen_agentchat.teams", "BaseGroupChat", ["run", "run_stream"]),
]

#: Files that stand at the root of a project.
MARKS = ["pyproject.toml", "setup.py", "requirements.txt", "uv.lock", "langgraph.json", ".git"]


def held_back(text):
    """Keeps agents from running while a module of this text is imported. Gives what was replaced."""
    replaced = []
    for module, name, methods in RUNS:
        if module.split(".")[0] not in text or name not in text and module != "langgraph.pregel":
            continue
        try:
            owner = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        for method in methods:
            if method in vars(owner):
                replaced.append((owner, method, vars(owner)[method]))
                setattr(owner, method, refusal("%s.%s" % (name, method)))
    return replaced


def refusal(what):
    @staticmethod
    def refuse(*_, **__):
        raise RunsWhenImported(
            'the module starts `%s` when it is imported (help: put that under `if __name__ == "__main__":`)' % what
        )

    return refuse


def imported(target):
    """The module of a file or of a name."""
    if not (target.endswith(".py") or os.path.isfile(target)):
        return importlib.import_module(target)
    path = os.path.realpath(target)
    if not os.path.isfile(path):
        raise ImportError("file `%s` not found" % target)
    folder, name = os.path.split(path)
    parts = [os.path.splitext(name)[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    # The project's own modules are found as they are when it is run by itself.
    places, root = [folder], folder
    for _ in range(5):
        if any(os.path.exists(os.path.join(root, mark)) for mark in MARKS):
            places += [root, os.path.join(root, "src")]
            break
        root = os.path.dirname(root)
    sys.path[:0] = [place for place in dict.fromkeys(places) if os.path.isdir(place)]
    with open(path, encoding="utf-8", errors="replace") as file:
        replaced = held_back(file.read())
    try:
        if all(part.isidentifier() for part in parts):
            module = None
            try:
                module = importlib.import_module(".".join(parts))
            except ModuleNotFoundError as e:
                # Of the name, not something that the module itself imports.
                if e.name not in (".".join(parts), parts[0]):
                    raise
            if module is not None and os.path.realpath(getattr(module, "__file__", None) or "") == path:
                return module
        # Another module has its name, or it can have none.
        spec = importlib.util.spec_from_file_location("entail_tools_of_this_file", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        for owner, method, function in replaced:
            setattr(owner, method, function)


def plain(name):
    """A tool's name as frameworks write it for models."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in str(name).strip().lower())


def found(module, name):
    """The tool of a name."""
    thing = module
    for part in name.split("."):
        thing = getattr(thing, part, None)
    if thing is None:
        known = [v for v in vars(module).values() if isinstance(getattr(v, "name", None), str)]
        # A class has its name as a default.
        known.sort(key=lambda v: isinstance(v, type))
        thing = next((v for v in known if plain(v.name) == plain(name)), None)
    if thing is None:
        raise NoSuchTool("the module has no `%s`" % name)
    if isinstance(thing, type) and not dataclasses.is_dataclass(thing):
        own = (v for v in vars(module).values() if type(v) is thing)
        thing = next(own, None) or thing()
    return thing


def parameters_of(thing):
    """The names of a tool's parameters, and those that may be left out; `None` if that is not known."""
    schema = getattr(thing, "params_json_schema", None)
    if schema is None:
        args = getattr(thing, "args_schema", None)
        schema = args if isinstance(args, dict) else getattr(args, "model_json_schema", dict)()
    if schema.get("properties"):
        fields = schema["properties"]
        return set(fields), {n for n, f in fields.items() if isinstance(f, dict) and "default" in f}
    function = thing if inspect.isroutine(thing) else getattr(thing, "_run", None) or getattr(thing, "func", None) or thing
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    fields = {n: p for n, p in signature.parameters.items() if p.kind in named}
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values()):
        return None
    return set(fields), {n for n, p in fields.items() if p.default is not inspect.Parameter.empty}


def fitted(thing, args):
    """The arguments as the tool takes them."""
    known = parameters_of(thing)
    if known is None:
        return args
    names, optional = known
    if len(args) == 1 and not set(args) & names:
        # A tool of which the program knows no parameters.
        (given,) = args.values()
        if isinstance(given, dict):
            args = given
        elif len(names) == 1:
            args = {name: given for name in names}
    # What was left out arrives as null.
    return {n: v for n, v in args.items() if not (v is None and n in optional)}


def inner_hint(hint):
    """An annotation without what only checkers need."""
    for _ in range(20):
        if typing.get_origin(hint) in WRAPPERS:
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            # A `NewType`.
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            break
    return hint


#: What stands around the type of a field or parameter, as far as this Python has it.
WRAPPERS = [
    word for word in (getattr(typing, n, None) for n in ["Annotated", "Final", "Required", "NotRequired", "ReadOnly"]) if word
]


def hints_of(thing):
    """The annotations of a function or class, evaluated; none if they can't be."""
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except Exception:
        return {}


def takes_none(hint):
    hint = inner_hint(hint)
    return hint in (None, type(None), typing.Any) or type(None) in typing.get_args(hint)


def typed(value, hint):
    """Data as an annotation wants it: an object becomes an instance of the class that it is of, a text a member of an `Enum`."""
    hint = inner_hint(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if value is None:
        return None
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        some = [arg for arg in args if arg is not type(None)]
        return typed(value, some[0]) if len(some) == 1 else value
    if isinstance(value, list):
        kind = origin or hint
        items = [typed(v, args[0]) for v in value] if args and kind is not tuple else value
        if kind is tuple and args:
            each = args[:1] * len(value) if len(args) == 2 and args[1] is Ellipsis else args
            items = [typed(v, each[i]) if i < len(each) else v for i, v in enumerate(value)]
        if kind in (set, frozenset, tuple):
            return kind(items)
        return set(items) if kind in (collections.abc.Set, collections.abc.MutableSet) else items
    if not isinstance(hint, type):
        if isinstance(value, dict) and len(args) == 2:
            return {typed(k, args[0]): typed(v, args[1]) for k, v in value.items()}
        # A `TypedDict` is a class that no value is an instance of.
        return value
    if issubclass(hint, enum.Enum):
        return hint(value)
    if hint is datetime.date and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if not isinstance(value, dict):
        return value
    fields = hints_of(hint)
    if hasattr(hint, "__required_keys__"):
        # Python does not know the word around an annotation that is a text.
        marks = {n: typing.get_origin(f) for n, f in fields.items()}
        required = {n for n, f in marks.items() if f is getattr(typing, "Required", 0)} | set(hint.__required_keys__)
        required -= {n for n, f in marks.items() if f is getattr(typing, "NotRequired", 0)}
        kept = {n: v for n, v in value.items() if v is not None or n in required}
        return {n: typed(v, fields.get(n)) for n, v in kept.items()}
    # What was left out arrives as null.
    kept = {n: v for n, v in value.items() if v is not None or takes_none(fields.get(n))}
    if callable(getattr(hint, "model_validate", None)):
        return hint.model_validate(kept)
    if dataclasses.is_dataclass(hint):
        return hint(**{n: typed(v, fields.get(n)) for n, v in kept.items()})
    return value


async def called(thing, args):
    """What a tool gives."""
    args = fitted(thing, args)
    if hasattr(thing, "on_invoke_tool"):
        # OpenAI Agents SDK.
        text = json.dumps(args)
        try:
            from agents.tool_context import ToolContext

            context = ToolContext(context=None, tool_name=thing.name, tool_call_id="call", tool_arguments=text)
        except (ImportError, TypeError):
            context = None
        return await thing.on_invoke_tool(context, text)
    if hasattr(thing, "run_json"):
        # AutoGen.
        from autogen_core import CancellationToken

        return await thing.run_json(args, CancellationToken())
    if hasattr(thing, "ainvoke") and hasattr(thing, "args_schema"):
        # LangChain.
        only_async = getattr(thing, "coroutine", None) is not None and getattr(thing, "func", None) is None
        return await thing.ainvoke(args) if only_async else thing.invoke(args)
    if not inspect.isroutine(thing) and callable(getattr(thing, "_run", None)):
        # CrewAI.
        thing = thing.run if callable(getattr(thing, "run", None)) else thing._run
    elif not callable(thing) and callable(getattr(thing, "func", None)):
        thing = thing.func
    hints = hints_of(inspect.unwrap(thing)) if callable(thing) else {}
    result = thing(**{n: typed(v, hints[n]) if n in hints else v for n, v in args.items()})
    return await result if inspect.isawaitable(result) else result


def data(value):
    """A value as JSON has it; what has no JSON, as its text."""
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return data(value.model_dump(mode="json"))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: data(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return data(value.value)
    if isinstance(value, dict):
        return {str(k): data(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [data(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def problem(e):
    """An exception in a line, with the place in the project where it was raised."""
    text = str(e).strip()
    if not isinstance(e, (RunsWhenImported, LookupError)) or isinstance(e, (KeyError, IndexError)):
        text = "%s: %s" % (type(e).__name__, text) if text else type(e).__name__
    own = globals().get("__file__")
    frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename.endswith(".py") and f.filename != own]
    frames = [f for f in frames if "site-packages" not in f.filename]
    if frames:
        place = os.path.relpath(frames[-1].filename)
        text += " (%s:%s)" % (frames[-1].filename if place.startswith("..") else place, frames[-1].lineno)
    return text


def main(target):
    # The protocol has these to itself; nothing that is started from here gets them.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.argv = [target]

    def answer(what):
        try:
            text = json.dumps(what, allow_nan=False)
        except (ValueError, RecursionError) as e:
            text = json.dumps({"error": "its result is not data: %s" % e})
        sys.stdout.flush()
        answers.write(text.encode("utf-8", "replace") + b"\n")
        answers.flush()

    try:
        module = imported(target)
    except (Exception, RunsWhenImported, SystemExit) as e:
        said = {"error": problem(e)}
        if isinstance(e, ModuleNotFoundError) and e.name:
            said["module"] = e.name
        return answer(said)
    answer({"ready": True})
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for line in requests:
        if not line.endswith(b"\n"):
            # Whoever wrote it was killed: a part of a request is none.
            return
        request = json.loads(line)
        os.environ.pop("ENTAIL_IDEMPOTENCY_KEY", None)
        if request.get("key"):
            os.environ["ENTAIL_IDEMPOTENCY_KEY"] = request["key"]
        try:
            said = {"value": data(loop.run_until_complete(called(found(module, request["call"]), request["args"])))}
        except NoSuchTool as e:
            said = {"error": problem(e), "missing": True}
        except (Exception, SystemExit) as e:
            said = {"error": problem(e)}
        answer(said)


if __name__ == "__main__":
    main(sys.argv[1])
