"""A map of chains, with a router after it."""
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableBranch, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_openai import ChatOpenAI

model = ChatOpenAI(model="gpt-4o-mini")
ask = lambda text: ChatPromptTemplate.from_template(text) | model | StrOutputParser()
facts = RunnableParallel(pros=ask("Pros of {x}?"), cons=ask("Cons of {x}?"), x=RunnablePassthrough())
route = RunnableBranch(
    (lambda d: "no" in d["cons"].lower(), ask("Praise it: {pros}")),
    ask("Weigh {pros} and {cons}") | RunnableLambda(lambda s: model.invoke("Shorten: " + s)),
)
print((facts | route).invoke({"x": "bees"}))
