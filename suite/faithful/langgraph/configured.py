"""Settings that a run may give: a class made of the configuration, with defaults."""
import os
from typing import Any, Optional, TypedDict

from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field


class Configuration(BaseModel):
    """What a run may change."""

    writer_model: str = Field(default="m2")
    audience: str = Field(default="children", description="Who reads it.")
    drafts: int = 1

    @classmethod
    def from_runnable_config(cls, config: Optional[RunnableConfig] = None) -> "Configuration":
        configurable = config["configurable"] if config and "configurable" in config else {}
        values: dict[str, Any] = {
            name: os.environ.get(name.upper(), configurable.get(name)) for name in cls.model_fields.keys()
        }
        return cls(**{k: v for k, v in values.items() if v is not None})


class State(TypedDict):
    topic: str
    story: str


async def write(state: State, config: RunnableConfig) -> dict:
    settings = Configuration.from_runnable_config(config)
    llm = ChatOpenAI(model=settings.writer_model)
    reply = await llm.ainvoke(f"A story about {state['topic']} for {settings.audience}.")
    return {"story": reply.content}


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_edge(START, "write")
builder.add_edge("write", END)
graph = builder.compile()

if __name__ == "__main__":
    import asyncio
    import json

    print(json.dumps(asyncio.run(graph.ainvoke({"topic": "bees"}))))
