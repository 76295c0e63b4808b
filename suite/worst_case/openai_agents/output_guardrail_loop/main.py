"""A run that is repeated while its output guardrail trips."""
import asyncio

from agents import Agent, GuardrailFunctionOutput, OutputGuardrailTripwireTriggered, Runner, output_guardrail
from pydantic import BaseModel


class Verdict(BaseModel):
    bad: bool


judge = Agent(name="Judge", instructions="Is it bad?", output_type=Verdict, model="gpt-4o-mini")


@output_guardrail
async def not_bad(ctx, agent, output) -> GuardrailFunctionOutput:
    result = await Runner.run(judge, str(output), context=ctx.context)
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=result.final_output.bad)


poet = Agent(name="Poet", instructions="Write.", model="gpt-4o-mini", output_guardrails=[not_bad])


async def poem():
    tries = 0
    while tries < 3:
        tries += 1
        try:
            return (await Runner.run(poet, "A poem")).final_output
        except OutputGuardrailTripwireTriggered:
            continue


print(asyncio.run(poem()))
