"""Write, review, refactor."""
import asyncio

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner

MODEL = LiteLlm(model="openai/gpt-4o-mini")
writer = LlmAgent(name="CodeWriterAgent", model=MODEL, instruction="Write code.", output_key="generated_code")
reviewer = LlmAgent(
    name="CodeReviewerAgent", model=MODEL, instruction="Review {generated_code}", output_key="review_comments"
)
refactorer = LlmAgent(
    name="CodeRefactorerAgent", model=MODEL, instruction="Refactor {generated_code} by {review_comments}"
)
root_agent = SequentialAgent(name="CodePipelineAgent", sub_agents=[writer, reviewer, refactorer])


async def main():
    runner = InMemoryRunner(agent=root_agent)
    await runner.run_debug("Write a sort")


asyncio.run(main())
