"""An agent as a tool of another agent."""
from agents import Agent, Runner

translator = Agent(name="To French", instructions="Translate into French.", model="m")
agent = Agent(
    name="Desk",
    instructions="Have it translated.",
    model="m",
    tools=[translator.as_tool(tool_name="to_french", tool_description="Translates a text into French.")],
)

if __name__ == "__main__":
    print(Runner.run_sync(agent, "Say hello in French").final_output)
