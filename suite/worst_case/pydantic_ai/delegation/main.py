"""A tool that runs another agent, with shared usage limits."""
from pydantic_ai import Agent, RunContext, UsageLimits

joke_selection_agent = Agent("openai-chat:gpt-4o", system_prompt="Use joke_factory, then choose the best.")
joke_generation_agent = Agent("openai-chat:gpt-4o-mini", output_type=list[str])


@joke_selection_agent.tool
async def joke_factory(ctx: RunContext[None], count: int) -> list[str]:
    r = await joke_generation_agent.run(f"Please generate {count} jokes.", usage=ctx.usage)
    return r.output


result = joke_selection_agent.run_sync("Tell me a joke.", usage_limits=UsageLimits(request_limit=5))
