"""Functions within a chain which ask models themselves."""
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="gpt-4o-mini")


def expand(text: str) -> str:
    ideas = [llm.invoke(f"Idea {i} about {text}").content for i in range(3)]
    return " ".join(ideas)


both = RunnableParallel(short=RunnableLambda(expand) | llm | StrOutputParser(), same=RunnablePassthrough())
chain = both | ChatPromptTemplate.from_template("{short} {same}") | llm
print(chain.invoke("bees").content)
