"""A draft that a critic sends back at most three times; the refiner ends the loop by a tool."""
from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.tools.tool_context import ToolContext

MODEL = "flash"
DONE = "No major issues."


def leave(tool_context: ToolContext):
    """Ends the refinement."""
    tool_context.actions.escalate = True
    return {}


writer = LlmAgent(name="writer", model=MODEL, instruction="Write a short story.", output_key="story")
critic = LlmAgent(
    name="critic",
    model=MODEL,
    include_contents="none",
    instruction=f"Review:\n{{story}}\nIf it is good, say '{DONE}'",
    output_key="criticism",
)
refiner = LlmAgent(
    name="refiner",
    model=MODEL,
    instruction="Story: {story}\nCriticism: {criticism}\nImprove it, or call `leave`.",
    tools=[leave],
    output_key="story",
)
loop = LoopAgent(name="loop", sub_agents=[critic, refiner], max_iterations=3)
closer = LlmAgent(name="closer", model=MODEL, instruction="Bind this as a book for {reader}: {story}")
root_agent = SequentialAgent(name="story_line", sub_agents=[writer, loop, closer], description="Writes.")
