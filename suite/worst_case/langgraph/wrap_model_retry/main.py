"""A decorator around the model call that asks again while the answer is short."""
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call


@wrap_model_call
def insist(request, handler):
    for _ in range(3):
        response = handler(request)
        if len(str(response.result[-1].content)) > 1000:
            return response
    return response


agent = create_agent("openai:gpt-4o-mini", tools=[], middleware=[insist])
agent.invoke({"messages": [("user", "Write a long story")]})
