"""A prompt, a model and a parser in a row."""
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

prompt = ChatPromptTemplate.from_messages(
    [("system", "You write in {{braces}} and plainly."), ("human", "A line about {topic}.")]
)
chain = prompt | ChatOpenAI(model="m", temperature=0.5) | StrOutputParser()

if __name__ == "__main__":
    print(chain.invoke({"topic": "bees"}))
