"""Two tasks in sequence."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
critic = Agent(role="Critic", goal="Judge", backstory="You doubt.", llm=LLM)
write = Task(description="Write about bees.", expected_output="A line.", agent=poet)
judge = Task(description="Judge the line.", expected_output="A verdict.", agent=critic)
crew = Crew(agents=[poet, critic], tasks=[write, judge])

if __name__ == "__main__":
    print(crew.kickoff().raw)
