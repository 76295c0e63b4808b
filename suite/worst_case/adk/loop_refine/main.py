"""Iterative improvement with an exit tool."""
import asyncio

from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools.tool_context import ToolContext

MODEL = LiteLlm(model="openai/gpt-4o-mini")


def exit_loop(tool_context: ToolContext):
    """Call this ONLY when the critique says that no changes are needed."""
    tool_context.actions.escalate = True
    return {}


first = LlmAgent(name="InitialWriterAgent", model=MODEL, instruction="Write.", output_key="current_document")
critic = LlmAgent(name="CriticAgent", model=MODEL, instruction="Review {current_document}", output_key="criticism")
refiner = LlmAgent(
    name="RefinerAgent",
    model=MODEL,
    instruction="Refine {current_document} by {criticism} or exit.",
    tools=[exit_loop],
    output_key="current_document",
)
loop = LoopAgent(name="RefinementLoop", sub_agents=[critic, refiner], max_iterations=3)
root_agent = SequentialAgent(name="IterativeWritingPipeline", sub_agents=[first, loop])
asyncio.run(InMemoryRunner(agent=root_agent).run_debug("A story about a cat"))
