"""Models, settings and prompts from constants and the environment."""
import os
from dataclasses import dataclass

from agents import Agent, ModelSettings, Runner


@dataclass
class House:
    name: str
    tone: str = "kind"


HOUSE = House("Bee & Co")
RULES = ["Be brief.", "Be {tone}.".format(tone=HOUSE.tone)]

agent = Agent(
    name="Desk",
    instructions=f"You work for {HOUSE.name}.\n" + "\n".join(f"{i}. {r}" for i, r in enumerate(RULES, 1)),
    model=os.getenv("DESK_MODEL", "m2"),
    model_settings=ModelSettings(temperature=0.25, max_tokens=99),
)

if __name__ == "__main__":
    print(Runner.run_sync(agent, "Hello").final_output)
