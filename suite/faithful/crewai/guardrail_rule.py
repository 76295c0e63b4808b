"""A guardrail in words."""
from crewai import Agent, Crew, Task

LLM = "openai/gpt-4o-mini"

poet = Agent(role="Poet", goal="Write", backstory="You rhyme.", llm=LLM)
critic = Agent(role="Critic", goal="Judge", backstory="You are strict.", llm="openai/gpt-4o")
line = Task(description="Write about bees.", expected_output="A line.", agent=poet, guardrail="It must not name {bees}.", guardrail_max_retries=2)
mark = Task(description="Mark it.", expected_output="A number.", agent=critic)
crew = Crew(agents=[poet, critic], tasks=[line, mark])

if __name__ == "__main__":
    print(crew.kickoff().raw)
