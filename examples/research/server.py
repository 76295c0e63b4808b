"""A small library as an MCP server. `pip install mcp`, then it is started by `entail` when a tool is needed."""

from mcp.server.mcpserver import MCPServer

BOOKS = {
    "b1": {"title": "The Life of the Honey-Bee", "year": 1901, "text": "A colony holds twenty to sixty thousand bees."},
    "b2": {"title": "Of Bees and Flowers", "year": 1915, "text": "A bee visits a hundred flowers on one flight."},
    "w1": {"title": "Wasps of the North", "year": 1932, "text": "Most wasps live alone."},
}

server = MCPServer("library")


@server.tool()
def search(query: str, limit: int | None = None) -> list[str]:
    """The identifiers of the books whose title or text contains the query."""
    found = [b for b, book in BOOKS.items() if query.lower() in (book["title"] + book["text"]).lower()]
    return found[:limit]


@server.tool()
def read(book: str) -> str:
    """The text of a book."""
    if book not in BOOKS:
        raise ValueError(f"there is no book {book}")
    return BOOKS[book]["text"]


if __name__ == "__main__":
    server.run()
