from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelInfo,
    RequestUsage,
)
from common import ANSWER, main

NONE = RequestUsage(prompt_tokens=0, completion_tokens=0)


class Fake(ChatCompletionClient):
    def __init__(self, plan):
        self.plan = plan

    async def create(self, messages, **_):
        done = sum(isinstance(m, FunctionExecutionResultMessage) for m in messages)
        if self.plan.is_call(done):
            calls = [FunctionCall(id=f"c{done}", name="look", arguments='{"q": "it"}')]
            return CreateResult(finish_reason="function_calls", content=calls, usage=NONE, cached=False)
        await self.plan.before_answer()
        return CreateResult(finish_reason="stop", content=ANSWER, usage=NONE, cached=False)

    def create_stream(self, *_, **__):
        raise NotImplementedError

    async def close(self):
        pass

    def actual_usage(self):
        return NONE

    def total_usage(self):
        return NONE

    def count_tokens(self, *_, **__):
        return 0

    def remaining_tokens(self, *_, **__):
        return 1_000_000

    @property
    def capabilities(self):
        return self.model_info

    @property
    def model_info(self):
        return ModelInfo(
            vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False
        )


async def look(q: str) -> str:
    """Looks it up."""
    return q


def make(plan):
    model = Fake(plan)

    async def one():
        agent = AssistantAgent(
            "seeker",
            model,
            tools=[look],
            system_message="You look things up.",
            max_tool_iterations=50,
        )
        return (await agent.run(task="find it")).messages[-1].content

    return one


main(make)
