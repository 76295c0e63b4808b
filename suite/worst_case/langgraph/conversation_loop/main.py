"""Three questions in one thread, with a checkpointer."""
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver


def get_weather(city: str) -> str:
    """Get weather for a given city."""
    return f"It's always sunny in {city}!"


def main():
    agent = create_agent("openai:gpt-4o-mini", [get_weather], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 5}
    questions = ["Paris?", "Rome?", "Oslo?"]
    for question in questions:
        reply = agent.invoke({"messages": [{"role": "user", "content": question}]}, config)
        print(reply["messages"][-1].content)


if __name__ == "__main__":
    main()
