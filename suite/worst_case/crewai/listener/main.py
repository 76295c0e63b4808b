"""A listener of events that asks a model."""
from crewai import LLM, Agent, Crew, Task
from crewai.events import BaseEventListener, TaskCompletedEvent


class Diary(BaseEventListener):
    def setup_listeners(self, bus):
        @bus.on(TaskCompletedEvent)
        def note(source, event):
            LLM(model="gpt-4o-mini").call("Write a diary.")


diary = Diary()
writer = Agent(role="Writer", goal="Write", backstory="A writer.", llm="gpt-4o-mini")
print(Crew(agents=[writer], tasks=[Task(description="Write.", expected_output="A text.", agent=writer)]).kickoff())
