"""The functional interface: tasks that are called by an entry point."""
from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint, task

llm = ChatOpenAI(model="gpt-4o-mini")


@task
def section(name: str) -> str:
    return llm.invoke(f"Write {name}").content


@task
def title(text: str) -> str:
    return llm.invoke(f"Title of {text}").content


@entrypoint()
def article(topic: str) -> str:
    parts = [section(f"{topic} {part}") for part in ("start", "middle", "end")]
    text = "\n".join(p.result() for p in parts)
    return title(text).result() + text


print(article.invoke("bees"))
