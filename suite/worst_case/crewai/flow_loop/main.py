"""A flow that writes until it is good, at most three times."""
from crewai import LLM
from crewai.flow.flow import Flow, listen, router, start
from pydantic import BaseModel

llm = LLM(model="gpt-4o-mini")


class Draft(BaseModel):
    text: str = ""
    rounds: int = 0


class Writing(Flow[Draft]):
    @start("again")
    def write(self):
        self.state.text = llm.call("Write a post.")
        self.state.rounds += 1

    @router(write)
    def check(self):
        if self.state.rounds >= 3:
            return "stop"
        verdict = llm.call(f"Is it good? {self.state.text}")
        return "done" if verdict == "yes" else "again"

    @listen("done")
    def publish(self):
        return self.state.text

    @listen("stop")
    def give_up(self):
        return "gave up"


print(Writing().kickoff())
