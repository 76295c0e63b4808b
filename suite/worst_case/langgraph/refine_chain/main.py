"""Map, then refine: a summary over documents in a loop of a helper."""
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="gpt-4o-mini")
first = PromptTemplate.from_template("Summarize: {text}") | llm | StrOutputParser()
refine = PromptTemplate.from_template("Refine {summary} with {text}") | llm | StrOutputParser()


def summarize(pages):
    summary = first.invoke({"text": pages[0]})
    for page in pages[1:]:
        summary = refine.invoke({"summary": summary, "text": page})
    return summary


print(summarize(["one", "two", "three", "four"]))
