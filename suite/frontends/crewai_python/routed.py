"""Two routers, whose labels are what they return: each leads where its own labels do."""
from crewai import Agent, Crew, Task
from crewai.flow.flow import Flow, listen, or_, router, start
from pydantic import BaseModel

poet = Agent(role="poet", goal="Write poems.", backstory="Old.", llm="m")
task = Task(description="Write a poem.", expected_output="A poem.", agent=poet)


class PoemState(BaseModel):
    poem: str = ""
    tries: int = 0


class PoemFlow(Flow[PoemState]):
    @start()
    def begin(self):
        self.state.tries = 0

    @router(begin)
    def wanted(self):
        if not self.state.poem:
            return "write"
        return "keep"

    @listen(or_("write", "again"))
    def write(self):
        self.state.poem = Crew(agents=[poet], tasks=[task]).kickoff().raw

    @router(write)
    def good(self):
        if self.state.tries > 3:
            return "give_up"
        self.state.tries += 1
        return "done" if "bees" in self.state.poem else "again"

    @listen("done")
    def publish(self):
        print(self.state.poem)

    @listen("give_up")
    def sigh(self):
        print("no poem")

    @listen("keep")
    def keep(self):
        return self.state.poem
