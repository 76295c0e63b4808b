"""What is not known stays unknown, with its place."""
import agents
from agents import Agent, Runner
from somewhere import search, pick_model

EXTRA = {"temperature": 0.5}


def instructions(ctx, agent):
    return f"Help {ctx.context.name}."


def make(name, tools):
    return Agent(name=name, instructions=f"You are {name}, in {place()}.", tools=tools, hooks=object())


team = [make(n, [search]) for n in ("Ann", "Bo")]
lead = make("Lead", []).clone(instructions=instructions, handoffs=team, tool_use_behavior="stop_on_first_tool")
lead.model = pick_model()
looped = Agent(name="Looped", instructions="", tools=[lead.as_tool(tool_name=None, tool_description=None)])
Runner.run_sync(looped, "hi", max_turns=None, context=EXTRA)


def later(kind, **more):
    return Agent(name=f"{kind} agent", instructions="Later.", **more)
