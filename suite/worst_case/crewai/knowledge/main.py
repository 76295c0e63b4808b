"""A crew that knows a text."""
from crewai import Agent, Crew, Task
from crewai.knowledge.source.string_knowledge_source import StringKnowledgeSource

source = StringKnowledgeSource(content="Ann is 7 years old.")
teller = Agent(role="Teller", goal="Tell", backstory="A teller.", llm="gpt-4o-mini")
task = Task(description="How old is Ann?", expected_output="An age.", agent=teller)
print(Crew(agents=[teller], tasks=[task], knowledge_sources=[source]).kickoff())
