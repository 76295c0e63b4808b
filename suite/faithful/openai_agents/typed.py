"""A structured answer."""
from typing import Literal

from agents import Agent, Runner
from pydantic import BaseModel


class Ticket(BaseModel):
    title: str
    urgency: Literal["low", "high"]
    tags: list[str]


agent = Agent(name="Clerk", instructions="Make a ticket.", model="m", output_type=Ticket)

if __name__ == "__main__":
    print(Runner.run_sync(agent, "The printer burns").final_output.model_dump_json())
