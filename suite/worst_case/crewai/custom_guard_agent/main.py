"""A lone agent with a guardrail that runs another one."""
from crewai import Agent
from crewai.lite_agent_output import LiteAgentOutput

judge = Agent(role="Judge", goal="Judge", backstory="J.", llm="gpt-4o-mini")


def good(output: LiteAgentOutput):
    verdict = judge.kickoff(f"Is this good? {output.raw}")
    return ("yes" in verdict.raw, output.raw if "yes" in verdict.raw else "not good")


writer = Agent(
    role="Writer", goal="Write", backstory="W.", llm="gpt-4o-mini", guardrail=good, guardrail_max_retries=2
)
print(writer.kickoff("Write a line"))
