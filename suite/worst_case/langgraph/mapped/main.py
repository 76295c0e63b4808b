"""A chain that is mapped over a list."""
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

chain = ChatPromptTemplate.from_template("Translate {word}.") | ChatOpenAI(model="gpt-4o-mini") | StrOutputParser()
each = chain.map()
print(each.invoke([{"word": "tree"}, {"word": "house"}, {"word": "sea"}]))
