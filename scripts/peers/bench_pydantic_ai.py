from common import ANSWER, main
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


async def look(q: str) -> str:
    """Looks it up."""
    return q


def make(plan):
    async def fake(messages, info):
        done = sum(isinstance(part, ToolReturnPart) for m in messages for part in m.parts)
        if plan.is_call(done):
            return ModelResponse(parts=[ToolCallPart("look", {"q": "it"}, f"c{done}")])
        await plan.before_answer()
        return ModelResponse(parts=[TextPart(ANSWER)])

    agent = Agent(FunctionModel(fake), tools=[look], instructions="You look things up.")

    async def one():
        return (await agent.run("find it")).output

    return one


main(make)
