"""An output guardrail of the run's configuration, which asks an agent."""
import asyncio

from agents import Agent, GuardrailFunctionOutput, OutputGuardrail, RunConfig, Runner
from pydantic import BaseModel


class Verdict(BaseModel):
    violates: bool


reviewer = Agent(name="Reviewer", instructions="Does the answer violate the policy?", model="gpt-4o-mini", output_type=Verdict)


async def review(context, agent, output):
    verdict = (await Runner.run(reviewer, str(output))).final_output
    return GuardrailFunctionOutput(output_info=verdict, tripwire_triggered=verdict.violates)


writer = Agent(name="Writer", instructions="Write a reply to the customer.", model="gpt-4o-mini")
config = RunConfig(output_guardrails=[OutputGuardrail(guardrail_function=review)])


async def main():
    result = await Runner.run(writer, "Where is my parcel?", run_config=config, max_turns=2)
    print(result.final_output)


asyncio.run(main())
