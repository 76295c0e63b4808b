"""A flow: its methods are nodes; one of them starts a crew, one decides."""
from typing import Literal

from crewai.flow.flow import Flow, and_, listen, or_, router, start
from pydantic import BaseModel

from crew import NewsCrew


class State(BaseModel):
    topic: str = ""


class NewsFlow(Flow[State]):
    @start()
    def choose(self):
        self.state.topic = "bees"

    @listen(choose)
    def gather(self):
        return NewsCrew().crew().kickoff(inputs={"topic": self.state.topic})

    @router(gather)
    def judge(self, result) -> Literal["good", "bad"]:
        return "good" if len(result.raw) > 100 else "bad"

    @listen("good")
    def publish(self):
        print("published")

    @listen(or_("bad"))
    def archive(self):
        print("archived")

    @listen(or_(publish, archive))
    def tell(self):
        print("done")


NewsFlow().kickoff()
