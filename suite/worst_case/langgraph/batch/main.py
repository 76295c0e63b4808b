"""One chain for each of several inputs."""
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI

chain = ChatPromptTemplate.from_template("Translate {word}.") | ChatOpenAI(model="gpt-4o-mini") | StrOutputParser()
words = ["tree", "house", "sea", "sky"]
print(chain.batch([{"word": w} for w in words]))
