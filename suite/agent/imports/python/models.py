from enum import Enum
from typing import TypedDict


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Order(TypedDict):
    id: str
    total: float
    level: Level
    parts: "list[Order]"
