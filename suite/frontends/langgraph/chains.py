"""Chains and an agent of LangChain."""
from langchain.agents import AgentExecutor, create_tool_calling_agent
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="m", api_key="sk-none")


@tool
def weigh(thing: str) -> float:
    """Weighs."""
    return 1.0


prompt = ChatPromptTemplate.from_messages(
    [
        ("system", "You weigh things in {unit}."),
        ("placeholder", "{chat_history}"),
        ("human", "{input}"),
        ("placeholder", "{agent_scratchpad}"),
    ]
)
agent = create_tool_calling_agent(llm, [weigh], prompt)
executor = AgentExecutor(agent=agent, tools=[weigh], max_iterations=4, verbose=True)

rhyme = PromptTemplate.from_template("A rhyme on {word}.") | llm | StrOutputParser()
facts = (
    {"topic": RunnablePassthrough()}
    | ChatPromptTemplate.from_template("Facts on {topic} as JSON.")
    | llm.bind(stop=["\n\n"])
    | JsonOutputParser()
)

print(executor.invoke({"input": "A pear?", "unit": "grams"}))
print(rhyme.invoke({"word": "bee"}))
