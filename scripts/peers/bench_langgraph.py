from common import ANSWER, main
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Fake(BaseChatModel):
    plan: object

    @property
    def _llm_type(self):
        return "fake"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **_):
        raise NotImplementedError

    async def _agenerate(self, messages, stop=None, run_manager=None, **_):
        done = sum(isinstance(m, ToolMessage) for m in messages)
        if self.plan.is_call(done):
            call = {"name": "look", "args": {"q": "it"}, "id": f"c{done}"}
            message = AIMessage(content="", tool_calls=[call])
        else:
            await self.plan.before_answer()
            message = AIMessage(content=ANSWER)
        return ChatResult(generations=[ChatGeneration(message=message)])


async def look(q: str) -> str:
    """Looks it up."""
    return q


def make(plan):
    agent = create_agent(Fake(plan=plan), [look], system_prompt="You look things up.")

    async def one():
        asked = {"messages": [("user", "find it")]}
        result = await agent.ainvoke(asked, {"recursion_limit": 100})
        return result["messages"][-1].content

    return one


main(make)
