"""An orchestrator whose tools are agents, and a synthesizer."""
import asyncio

from agents import Agent, ItemHelpers, MessageOutputItem, Runner

spanish = Agent(name="spanish_agent", instructions="Translate to Spanish", handoff_description="es", model="gpt-4o-mini")
french = Agent(name="french_agent", instructions="Translate to French", handoff_description="fr", model="gpt-4o-mini")
orchestrator = Agent(
    name="orchestrator_agent",
    instructions="Use the tools.",
    model="gpt-4o-mini",
    tools=[
        spanish.as_tool(tool_name="translate_to_spanish", tool_description="To Spanish"),
        french.as_tool(tool_name="translate_to_french", tool_description="To French"),
    ],
)
synthesizer = Agent(name="synthesizer_agent", instructions="Inspect and correct.", model="gpt-4o-mini")


async def main():
    result = await Runner.run(orchestrator, "Hello", max_turns=4)
    for item in result.new_items:
        if isinstance(item, MessageOutputItem):
            text = ItemHelpers.text_message_output(item)
            if text:
                print(text)
    final = await Runner.run(synthesizer, result.to_input_list())
    print(final.final_output)


asyncio.run(main())
