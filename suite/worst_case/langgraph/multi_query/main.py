"""A retriever that lets a model write further queries."""
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="gpt-4o-mini")


class Notes(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=query)]


retriever = MultiQueryRetriever.from_llm(retriever=Notes(), llm=llm)
prompt = ChatPromptTemplate.from_template("{context}\n{question}")
chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | llm | StrOutputParser()
print(chain.invoke("What do bees eat?"))
