"""A tool whose output is checked by a model."""
import asyncio

from agents import (
    Agent,
    ModelSettings,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolOutputGuardrailData,
    function_tool,
    tool_output_guardrail,
)

censor = Agent(name="Censor", instructions="Is there a secret in it?", model="gpt-4o-mini")


@tool_output_guardrail
async def no_secrets(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    said = await Runner.run(censor, str(data.output))
    if "yes" in said.final_output:
        return ToolGuardrailFunctionOutput.reject_content("removed")
    return ToolGuardrailFunctionOutput.allow()


@function_tool(tool_output_guardrails=[no_secrets])
def read_mail(box: str) -> str:
    """Reads mail."""
    return "text"


agent = Agent(
    name="Mail",
    instructions="Read it.",
    model="gpt-4o-mini",
    tools=[read_mail],
    model_settings=ModelSettings(parallel_tool_calls=False),
)
asyncio.run(Runner.run(agent, "What is new?", max_turns=4))
