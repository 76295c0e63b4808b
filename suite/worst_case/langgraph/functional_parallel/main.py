"""Three tasks at the same time, and one that joins them."""
from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint, task

llm = ChatOpenAI(model="gpt-4o-mini")


@task
def joke(topic: str):
    return llm.invoke(f"A joke about {topic}").content


@task
def story(topic: str):
    return llm.invoke(f"A story about {topic}").content


@task
def poem(topic: str):
    return llm.invoke(f"A poem about {topic}").content


@task
def best(texts):
    return llm.invoke("Which is best? " + " ".join(texts)).content


@entrypoint()
def workflow(topic: str):
    first, second, third = joke(topic), story(topic), poem(topic)
    return best([first.result(), second.result(), third.result()]).result()


print(workflow.invoke("cats"))
