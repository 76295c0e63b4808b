"""A tool with `result_as_answer`."""
from crewai import Agent, Crew, Task
from crewai.tools import tool

LLM = "openai/gpt-4o-mini"


@tool("look_up", result_as_answer=True)
def look_up(word: str) -> str:
    """Looks a word up."""
    return f"{word}: an insect"


clerk = Agent(role="Clerk", goal="Look up", backstory="You look things up.", llm=LLM, tools=[look_up])
find = Task(description="What is a bee?", expected_output="A definition.", agent=clerk)
use = Task(description="Make a riddle of it.", expected_output="A riddle.", agent=clerk)
crew = Crew(agents=[clerk], tasks=[find, use])

if __name__ == "__main__":
    print(crew.kickoff().raw)
