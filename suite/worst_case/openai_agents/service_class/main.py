"""A class that runs its agent in a method, which is called for each ticket."""
import asyncio

from agents import Agent, Runner


class TicketService:
    def __init__(self, model="gpt-4o-mini"):
        self.agent = Agent(name="Tickets", instructions="Classify the ticket.", model=model)
        self.seen = []

    async def classify(self, ticket: str) -> str:
        result = await Runner.run(self.agent, ticket, max_turns=2)
        self.seen.append(ticket)
        return result.final_output

    async def classify_all(self, tickets):
        return [await self.classify(t) for t in tickets]


async def main():
    service = TicketService()
    for label in await service.classify_all(["It is broken", "It is late", "Thank you", "It is wet"]):
        print(label)


if __name__ == "__main__":
    asyncio.run(main())
