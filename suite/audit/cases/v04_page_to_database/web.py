"""Access to pages."""
import httpx


def load(address):
    with httpx.Client(timeout=10) as client:
        return client.get(address).text
