"""The roulette wheel of the documentation."""
from pydantic_ai import Agent, RunContext

roulette_agent = Agent("openai-chat:gpt-4o-mini", deps_type=int, output_type=bool, system_prompt="Use the wheel.")


@roulette_agent.tool
async def roulette_wheel(ctx: RunContext[int], square: int) -> str:
    """check if the square is a winner"""
    return "winner" if square == ctx.deps else "loser"


result = roulette_agent.run_sync("Put my money on square eighteen", deps=18)
print(result.output)
