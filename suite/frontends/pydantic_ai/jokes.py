"""An agent whose tool runs another agent."""
from pydantic_ai import Agent, RunContext

selection = Agent("openai:gpt-4.1", system_prompt="Use `joke_factory`, then choose the best joke.")
generation = Agent("google-gla:gemini-2.5-flash", output_type=list[str])


@selection.tool
async def joke_factory(ctx: RunContext[None], subject: str, count: int) -> list[str]:
    """Makes jokes."""
    r = await generation.run(f"Please make {count} jokes about {subject}.", usage=ctx.usage)
    return r.output


print(selection.run_sync("Tell me a joke.").output)
