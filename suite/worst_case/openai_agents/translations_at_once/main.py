"""Three runs at the same time, and one that picks the best."""
import asyncio

from agents import Agent, ItemHelpers, Runner, trace

spanish = Agent(name="Spanish", instructions="Translate into Spanish.", model="gpt-4o-mini")
picker = Agent(name="Picker", instructions="Pick the best translation.", model="gpt-4o-mini")


async def main():
    with trace("translations"):
        results = await asyncio.gather(*(Runner.run(spanish, "Good morning") for _ in range(3)))
        texts = [ItemHelpers.text_message_outputs(r.new_items) for r in results]
        best = await Runner.run(picker, "\n\n".join(texts))
    print(best.final_output)


asyncio.run(main())
