"""A flow that writes, checks and routes back."""
from crewai.flow.flow import Flow, listen, router, start
from crewai import LLM
from pydantic import BaseModel


class State(BaseModel):
    text: str = ""
    tries: int = 0


class PostFlow(Flow[State]):
    @start("retry")
    def write(self):
        self.state.text = LLM(model="gpt-4o-mini").call("Write a post")

    @router(write)
    def check(self):
        if len(self.state.text) < 10:
            return "complete"
        if self.state.tries > 2:
            return "exceeded"
        self.state.tries += 1
        return "retry"

    @listen("complete")
    def done(self):
        return self.state.text

    @listen("exceeded")
    def stop(self):
        return LLM(model="gpt-4o-mini").call("Say sorry")


print(PostFlow().kickoff())
