"""A parser that has its input repaired by a model."""
from langchain_classic.output_parsers import OutputFixingParser
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="gpt-4o-mini")
parser = OutputFixingParser.from_llm(llm=llm, parser=JsonOutputParser(), max_retries=2)
chain = ChatPromptTemplate.from_template("Describe {thing} as JSON.") | llm | parser
print(chain.invoke({"thing": "a tree"}))
