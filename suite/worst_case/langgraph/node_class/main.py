"""Nodes that are methods of a class which holds the model."""
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph


class Reviewer:
    def __init__(self, model: str, rounds: int = 2):
        self.llm = ChatOpenAI(model=model)
        self.rounds = rounds
        self.graph = self.build()

    def __call__(self, state: MessagesState):
        text = state["messages"][-1].content
        for _ in range(self.rounds):
            text = self.llm.invoke("Improve: " + text).content
        return {"messages": [("ai", text)]}

    def build(self):
        g = StateGraph(MessagesState)
        g.add_node("improve", self)
        g.add_edge(START, "improve")
        g.add_edge("improve", END)
        return g.compile()


print(Reviewer("gpt-4o-mini", rounds=3).graph.invoke({"messages": [("user", "A text")]}))
