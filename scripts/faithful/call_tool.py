"""Calls a function of a program that its framework knows as a tool: arguments as JSON on standard input, the result as JSON
on standard output. The framework is not loaded: its names do nothing."""

import asyncio
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
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
    def __init__(self):
        self.handoffs = []

    def __call__(self, *given, **named):
        # A tool is made of a function, or a function is registered: it stays a function.
        if given and inspect.isfunction(given[0]):
            return remember(given[0], named.get("name") or given[0].__name__)
        return Thing()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing()

    def __getitem__(self, _):
        return Thing()

    def __or__(self, _):
        return Thing()

    __and__ = __or__

    def __mro_entries__(self, _):
        return (Made,)


class Made:
    """What classes of frameworks give those of a program: a tool that is a class is its `_run`."""

    def __init__(self, *_, **named):
        self.__dict__.update(named)
        name, run = getattr(self, "name", None), getattr(self, "_run", None)
        if isinstance(name, str) and run is not None:
            TOOLS[name] = run


TOOLS = {}


def tool(function=None, **named):
    """Remembers a function under the name that models see."""
    if not callable(function):
        name = function or named.get("name_override")
        return lambda f: remember(f, name or f.__name__)
    return remember(function, function.__name__)


def remember(function, name):
    TOOLS[name] = TOOLS[name.lower().replace(" ", "_")] = function
    function.name = name
    return function


class Anything(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Every module of a framework, whatever it is called."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("autogen_agentchat", "autogen_core", "autogen_ext", "autogen", "pydantic"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Nothing(spec.name)

    def exec_module(self, module):
        pass


path, name = sys.argv[1:3]
sys.meta_path.insert(0, Anything())
LANGGRAPH = ("langgraph", "langgraph.graph", "langgraph.graph.message", "langgraph.prebuilt", "langgraph.types", "langgraph.runtime", "langgraph.errors", "langgraph_supervisor")
LANGCHAIN = ("langchain", "langchain.agents", "langchain_openai", "langchain_core", "langchain_core.tools", "langchain_core.messages")
for module in ("agents", "crewai", "crewai.tools", "crewai.tasks", "crewai.tasks.llm_guardrail", "crewai.tasks.task_output", *LANGGRAPH, *LANGCHAIN):
    framework = Nothing(module)
    framework.function_tool = framework.tool = tool
    sys.modules[module] = framework
spec = importlib.util.spec_from_file_location("program", path)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
# A framework that takes any function knows it by its name, unless it is told another one.
function = TOOLS.get(name) or getattr(program, name)
result = function(**json.load(sys.stdin))
if inspect.isawaitable(result):
    result = asyncio.run(asyncio.wait_for(result, 60))
print(json.dumps(result))
