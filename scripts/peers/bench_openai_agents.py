from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from common import ANSWER, main
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

set_tracing_disabled(True)


class Fake(Model):
    def __init__(self, plan):
        self.plan = plan

    async def get_response(self, system_instructions, input, *_, **__):
        items = [] if isinstance(input, str) else input
        done = sum(item.get("type") == "function_call_output" for item in items)
        if self.plan.is_call(done):
            output = ResponseFunctionToolCall(
                type="function_call", name="look", arguments='{"q": "it"}', call_id=f"c{done}", id=f"f{done}"
            )
        else:
            await self.plan.before_answer()
            text = ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
            output = ResponseOutputMessage(
                type="message", id="m", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


@function_tool
async def look(q: str) -> str:
    """Looks it up."""
    return q


def make(plan):
    model = Fake(plan)

    async def one():
        # An agent each: what a shared one keeps of its runs is looked through in every run.
        agent = Agent(name="seeker", instructions="You look things up.", model=model, tools=[look])
        return (await Runner.run(agent, "find it", max_turns=50)).final_output

    return one


main(make)
