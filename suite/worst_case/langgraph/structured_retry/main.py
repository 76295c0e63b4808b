"""A structured reply that is asked for again while it is not valid."""
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


llm = ChatOpenAI(model="gpt-4o-mini").with_structured_output(Person, include_raw=True)


def extract(text: str, most: int = 3):
    for _ in range(most):
        reply = llm.invoke(text)
        if reply["parsing_error"] is None:
            return reply["parsed"]
    raise ValueError("no person")


if __name__ == "__main__":
    print(extract("Ann is 7"))
