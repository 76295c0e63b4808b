"""Guardrails that run an agent, for each input of a chat."""
import asyncio

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    RunContextWrapper,
    Runner,
    TResponseInputItem,
    input_guardrail,
)
from pydantic import BaseModel


class MathHomework(BaseModel):
    reasoning: str
    is_math_homework: bool


guardrail_agent = Agent(name="Guardrail", instructions="Homework?", output_type=MathHomework, model="gpt-4o-mini")


@input_guardrail
async def math_guardrail(
    ctx: RunContextWrapper[None], agent: Agent, input: str | list[TResponseInputItem]
) -> GuardrailFunctionOutput:
    result = await Runner.run(guardrail_agent, input, context=ctx.context)
    return GuardrailFunctionOutput(result.final_output, tripwire_triggered=result.final_output.is_math_homework)


async def main():
    agent = Agent(name="Support", instructions="Help.", input_guardrails=[math_guardrail], model="gpt-4o-mini")
    input_data: list[TResponseInputItem] = []
    for question in ["Hello", "Solve 2x = 4", "Bye"]:
        input_data.append({"role": "user", "content": question})
        try:
            result = await Runner.run(agent, input_data)
            print(result.final_output)
            input_data = result.to_input_list()
        except InputGuardrailTripwireTriggered:
            input_data.append({"role": "assistant", "content": "No."})


asyncio.run(main())
