"""Workers that take questions from a queue."""
import asyncio

from agents import Agent, Runner

agent = Agent(name="Worker", instructions="Answer.", model="gpt-4o-mini")


async def worker(queue: asyncio.Queue):
    while not queue.empty():
        question = await queue.get()
        await Runner.run(agent, question)
        queue.task_done()


async def main():
    queue = asyncio.Queue()
    for question in ("a", "b", "c", "d"):
        queue.put_nowait(question)
    await asyncio.gather(*(worker(queue) for _ in range(2)))


asyncio.run(main())
