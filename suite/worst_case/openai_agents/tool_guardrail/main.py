"""Guardrails of a tool that ask an agent before and after it is called."""
import asyncio

from agents import (
    Agent,
    Runner,
    ToolGuardrailFunctionOutput,
    function_tool,
    tool_input_guardrail,
    tool_output_guardrail,
)

judge = Agent(name="Judge", instructions="Is it harmless? Say yes or no.", model="gpt-4o-mini")


@tool_input_guardrail
async def check_arguments(data):
    verdict = await Runner.run(judge, str(data.context.tool_arguments))
    return ToolGuardrailFunctionOutput.allow(output_info=verdict.final_output)


@tool_output_guardrail
async def check_result(data):
    verdict = await Runner.run(judge, str(data.output))
    return ToolGuardrailFunctionOutput.allow(output_info=verdict.final_output)


@function_tool(tool_input_guardrails=[check_arguments], tool_output_guardrails=[check_result])
def send_mail(to: str, text: str) -> str:
    """Sends a mail."""
    return "sent"


agent = Agent(name="Mailer", instructions="Send mails.", model="gpt-4o-mini", tools=[send_mail])
print(asyncio.run(Runner.run(agent, "Tell Ann I am late", max_turns=4)).final_output)
