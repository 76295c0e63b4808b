"""Looks things up and runs commands."""
import subprocess

from agents import Agent, Runner, WebSearchTool, function_tool


@function_tool
def run(command: str) -> str:
    """Runs a command."""
    done = subprocess.run(command.split(), capture_output=True, text=True)
    return done.stdout


coder = Agent(name="coder", model="gpt-4.1", instructions="You install what is asked for.", tools=[WebSearchTool(), run])
print(Runner.run_sync(coder, "Install the newest ruff.", max_turns=10).final_output)
