"""A chain with a history, which is invoked several times."""
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_openai import ChatOpenAI

prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
history = InMemoryChatMessageHistory()
chain = RunnableWithMessageHistory(
    prompt | ChatOpenAI(model="gpt-4o-mini"),
    lambda session: history,
    input_messages_key="question",
    history_messages_key="history",
)
config = {"configurable": {"session_id": "a"}}
chain.invoke({"question": "My name is Ann"}, config)
print(chain.invoke({"question": "Who am I?"}, config).content)
