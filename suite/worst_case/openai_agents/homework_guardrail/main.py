"""An input guardrail that asks a second agent whether the question is homework."""
import asyncio

from agents import Agent, GuardrailFunctionOutput, InputGuardrailTripwireTriggered, RunContextWrapper, Runner, input_guardrail
from pydantic import BaseModel


class HomeworkCheck(BaseModel):
    is_homework: bool
    reasoning: str


checker = Agent(name="Checker", instructions="Is the user asking you to do their homework?", model="gpt-4o-mini", output_type=HomeworkCheck)


@input_guardrail
async def no_homework(ctx: RunContextWrapper[None], agent: Agent, input) -> GuardrailFunctionOutput:
    result = await Runner.run(checker, input, context=ctx.context)
    return GuardrailFunctionOutput(output_info=result.final_output, tripwire_triggered=result.final_output.is_homework)


support = Agent(name="Support", instructions="You help customers.", model="gpt-4o-mini", input_guardrails=[no_homework])


async def main():
    try:
        result = await Runner.run(support, "Can you help me with my order?", max_turns=3)
        print(result.final_output)
    except InputGuardrailTripwireTriggered:
        print("no homework, please")


asyncio.run(main())
