"""A crew with planning."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
critic = Agent(role="Critic", goal="Judge", backstory="You are strict.", llm=LLM)
line = Task(description="Write about bees.", expected_output="A line.", agent=poet)
mark = Task(description="Mark it.", expected_output="A number.", agent=critic)
more = Task(description="Say why.", expected_output="A reason.", agent=critic, context=[mark])
crew = Crew(agents=[poet, critic], tasks=[line, mark, more], planning=True, planning_llm="openai/gpt-4o")

if __name__ == "__main__":
    print(crew.kickoff().raw)
