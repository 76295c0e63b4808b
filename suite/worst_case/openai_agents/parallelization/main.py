"""Three translations at once, and one that picks the best."""
import asyncio

from agents import Agent, ItemHelpers, Runner, trace

spanish_agent = Agent(name="spanish_agent", instructions="You translate to Spanish", model="gpt-4o-mini")
translation_picker = Agent(name="picker", instructions="You pick the best translation.", model="gpt-4o-mini")


async def main():
    msg = "Good morning"
    with trace("Parallel translation"):
        res_1, res_2, res_3 = await asyncio.gather(
            Runner.run(spanish_agent, msg), Runner.run(spanish_agent, msg), Runner.run(spanish_agent, msg)
        )
        outputs = [ItemHelpers.text_message_outputs(r.new_items) for r in (res_1, res_2, res_3)]
        translations = "\n\n".join(outputs)
        best = await Runner.run(translation_picker, f"Input: {msg}\n\nTranslations:\n{translations}")
    print(best.final_output)


if __name__ == "__main__":
    asyncio.run(main())
