"""A reviewer that may read and search, with an agent of its own for tests."""
from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, ClaudeSDKClient

options = ClaudeAgentOptions(
    system_prompt={"type": "preset", "preset": "claude_code", "append": "Review the last commit."},
    tools=["Read", "Grep", "Bash", "Task"],
    allowed_tools=["Bash(git log:*)"],
    disallowed_tools=["Grep"],
    max_turns=10,
    agents={
        "tester": AgentDefinition(
            description="Runs the tests.",
            prompt="Run the tests and say what fails.",
            tools=["Bash"],
            model="haiku",
            maxTurns=3,
        ),
    },
)


async def review():
    async with ClaudeSDKClient(options=options) as client:
        await client.query("Is it ready?")
        async for message in client.receive_response():
            print(message)
