"""A chain that is tried again where its reply cannot be parsed."""
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

prompt = ChatPromptTemplate.from_template("Describe {thing} as JSON.")
chain = (prompt | ChatOpenAI(model="gpt-4o-mini") | JsonOutputParser()).with_retry(
    stop_after_attempt=5, wait_exponential_jitter=False
)
print(chain.invoke({"thing": "a tree"}))
