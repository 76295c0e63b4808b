"""A task with a retry policy."""
from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint, task
from langgraph.types import RetryPolicy

llm = ChatOpenAI(model="gpt-4o-mini")


@task(retry_policy=RetryPolicy(max_attempts=4, initial_interval=0.01, retry_on=ValueError))
def number(question: str) -> int:
    return int(llm.invoke(question).content)


@entrypoint()
def flow(question: str) -> int:
    return number(question).result()


flow.invoke("How many? Reply with a number.")
