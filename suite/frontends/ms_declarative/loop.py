"""A cycle that code ends by sending nothing on, and a talk that the model ends that orchestrates it."""

from agent_framework import Executor, GroupChatBuilder, WorkflowBuilder, WorkflowContext, handler
from agent_framework.openai import OpenAIChatClient

client = OpenAIChatClient(model_id="gpt-4.1-mini")
guesser = client.as_agent(name="guesser", instructions="Guess a number.")
critic = client.as_agent(name="critic", instructions="Say what is wrong with the guess.")
lead = client.as_agent(name="lead", instructions="Say who speaks next, or that it is done.")


class Judge(Executor):
    @handler
    async def look(self, guess: str, ctx: WorkflowContext[str, str]) -> None:
        if "7" in guess:
            await ctx.yield_output(guess)
        else:
            await ctx.send_message("again")


judge = Judge(id="judge")
workflow = WorkflowBuilder(start_executor=judge).add_edge(judge, guesser).add_edge(guesser, judge).build()
chat = GroupChatBuilder(participants=[guesser, critic], orchestrator_agent=lead).build()
