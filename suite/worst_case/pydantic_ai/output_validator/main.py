"""A validator that asks the model again."""
from pydantic_ai import Agent, ModelRetry

agent = Agent("openai-chat:gpt-4o-mini", retries=3)


@agent.output_validator
def short(text: str) -> str:
    if len(text) > 3:
        raise ModelRetry("Too long.")
    return text


print(agent.run_sync("Yes or no?").output)
