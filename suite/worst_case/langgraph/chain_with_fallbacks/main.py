"""A chain with another model where the first cannot be parsed."""
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

prompt = ChatPromptTemplate.from_template("Describe {thing} as JSON.")
small = prompt | ChatOpenAI(model="gpt-4o-mini") | JsonOutputParser()
large = prompt | ChatOpenAI(model="gpt-4o") | JsonOutputParser()
chain = small.with_fallbacks([large, large])
print(chain.invoke({"thing": "a tree"}))
