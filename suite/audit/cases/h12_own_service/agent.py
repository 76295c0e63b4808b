"""Books rooms with a service of the company."""
import os

import requests
from google.adk.agents import Agent

SERVICE = "https://rooms.intern.example.org/api"


def free_rooms(day: str) -> str:
    """The rooms that are free."""
    return requests.get(f"{SERVICE}/rooms?day={day}", headers={"Authorization": os.environ["ROOMS_KEY"]}).text


def book(room: str, day: str) -> str:
    """Books a room."""
    return requests.post(f"{SERVICE}/bookings", json={"room": room, "day": day}).text


root_agent = Agent(name="rooms", model="gemini-2.5-flash", instruction="You book rooms.", tools=[free_rooms, book])
