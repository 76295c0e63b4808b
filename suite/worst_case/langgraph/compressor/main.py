"""A retriever whose documents a model shortens one by one."""
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import LLMChainExtractor
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(model="gpt-4o-mini")


class Notes(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=str(i)) for i in range(4)]


retriever = ContextualCompressionRetriever(base_compressor=LLMChainExtractor.from_llm(llm), base_retriever=Notes())
prompt = ChatPromptTemplate.from_template("{context}\n{question}")
chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | llm | StrOutputParser()
print(chain.invoke("What do bees eat?"))
