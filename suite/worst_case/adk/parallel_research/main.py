"""Three researchers at the same time, and one who joins them."""
import asyncio

from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner

MODEL = LiteLlm(model="openai/gpt-4o-mini")
researchers = [
    LlmAgent(name=f"Researcher_{topic}", model=MODEL, instruction=f"Research {topic}.", output_key=f"{topic}_result")
    for topic in ("energy", "cars", "carbon")
]
parallel = ParallelAgent(name="ParallelWebResearchAgent", sub_agents=researchers)
merger = LlmAgent(name="SynthesisAgent", model=MODEL, instruction="Combine {energy_result} {cars_result}.")
root_agent = SequentialAgent(name="Pipeline", sub_agents=[parallel, merger])
asyncio.run(InMemoryRunner(agent=root_agent).run_debug("Go"))
