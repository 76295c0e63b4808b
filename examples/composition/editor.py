"""An editor of the OpenAI Agents SDK, which asks a fact checker where it doubts."""

from agents import Agent, Runner

checker = Agent(
    name="Fact checker",
    instructions="Say whether the sentence is true, in one word.",
    model="gpt-4.1-mini",
)

editor = Agent(
    name="Editor",
    instructions="Shorten the report. Ask the fact checker about every number.",
    model="gpt-4.1-mini",
    tools=[checker.as_tool(tool_name="check", tool_description="Checks one sentence")],
)

if __name__ == "__main__":
    result = Runner.run_sync(editor, input("Report: "), max_turns=4)
    print(result.final_output)
