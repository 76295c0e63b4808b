"""A flow whose methods wait for all, or for any, of others."""
from crewai import LLM
from crewai.flow.flow import Flow, and_, listen, or_, start

llm = LLM(model="gpt-4o-mini")


class F(Flow):
    @start()
    def one(self):
        return llm.call("one")

    @start()
    def two(self):
        return llm.call("two")

    @listen(and_(one, two))
    def both(self):
        return llm.call("both")

    @listen(or_(one, two))
    def any_of(self):
        return llm.call("any")


F().kickoff()
