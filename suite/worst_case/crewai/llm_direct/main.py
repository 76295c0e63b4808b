"""A model that is called without a crew, with tools, and for a type."""
from crewai import LLM
from pydantic import BaseModel


class Dog(BaseModel):
    name: str
    age: int


llm = LLM(model="gpt-4o-mini", response_format=Dog)


def parse(text: str) -> str:
    return llm.call(f"Parse: {text}")


def main():
    for text in ("Rex is 7", "Ada is 3"):
        print(parse(text))


main()
