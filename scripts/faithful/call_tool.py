"""Calls a function of a program that its framework knows as a tool: arguments as JSON on standard input, the result as JSON
on standard output. The framework is not loaded: its names do nothing."""

import importlib.util
import json
import sys
import types


class Nothing(types.ModuleType):
    """A module all of whose names can be called, and give something of the kind."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing()


class Thing:
    def __init__(self, *_, **__):
        self.handoffs = []

    def __call__(self, *_, **__):
        return Thing()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing()

    def __getitem__(self, _):
        return Thing()

    def __mro_entries__(self, _):
        return (object,)


TOOLS = {}


def tool(function=None, **named):
    """Remembers a function under the name that models see."""
    if not callable(function):
        name = function or named.get("name_override")
        return lambda f: remember(f, name or f.__name__)
    return remember(function, function.__name__)


def remember(function, name):
    TOOLS[name] = TOOLS[name.lower().replace(" ", "_")] = function
    return function


path, name = sys.argv[1:3]
for module in ("agents", "crewai", "crewai.tools"):
    framework = Nothing(module)
    framework.function_tool = framework.tool = tool
    sys.modules[module] = framework
spec = importlib.util.spec_from_file_location("program", path)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
result = TOOLS[name](**json.load(sys.stdin))
print(json.dumps(result))
