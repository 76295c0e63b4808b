import os

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"

from common import ANSWER, main
from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool


class Fake(BaseLLM):
    plan: object = None

    def call(self, messages, *_, **__):
        text = messages if isinstance(messages, str) else "\n".join(str(m["content"]) for m in messages)
        done = text.count("\nObservation: it")
        if self.plan.is_call(done):
            # It refuses to call a tool with the same arguments again and again.
            return f'Thought: I look it up.\nAction: look\nAction Input: {{"q": "it {done}"}}'
        return f"Thought: I know it now.\nFinal Answer: {ANSWER}"

    def supports_function_calling(self):
        return False


@tool("look")
def look(q: str) -> str:
    """Looks it up."""
    return q


def make(plan):
    model = Fake(model="fake")
    model.plan = plan

    async def one():
        seeker = Agent(
            role="seeker", goal="Look things up.", backstory="You look things up.", llm=model, tools=[look], max_iter=50
        )
        task = Task(description="find it", expected_output="what was found", agent=seeker)
        return str(await Crew(agents=[seeker], tasks=[task]).akickoff())

    return one


main(make)
