"""A chain that is tried again when its reply does not parse."""
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

chain = (
    ChatPromptTemplate.from_template("As JSON: {text}") | ChatOpenAI(model="gpt-4o-mini") | JsonOutputParser()
).with_retry(stop_after_attempt=4, wait_exponential_jitter=False)
print(chain.batch([{"text": "a"}, {"text": "b"}]))
