"""One run for each of several questions."""
from agents import Agent, Runner

QUESTIONS = ["What is a quark?", "What is a gluon?", "What is a boson?"]
agent = Agent(name="Physicist", instructions="Explain briefly.", model="gpt-4o-mini")

for question in QUESTIONS:
    result = Runner.run_sync(agent, question)
    print(question, result.final_output)
