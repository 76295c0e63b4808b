"""A model behind HTTP, by a local server that speaks Chat Completions."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import entail
from conftest import LIBRARIAN


class Server(ThreadingHTTPServer):
    """Says the same to everybody, or fails."""

    requests: list[dict[str, Any]]
    status = 200


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append({"path": self.path, "key": self.headers["Authorization"], **body})
        said: dict[str, Any] = {
            "id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Bees"}}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22},
        }
        if server.status != 200:
            said = {"error": {"message": "the key is wrong", "code": "invalid_api_key"}}
        text = json.dumps(said).encode()
        self.send_response(server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.requests = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "entail.toml").write_text(
        f"""
        model = "fast"
        [models.fast]
        model = "some-model"
        base_url = "http://127.0.0.1:{server.server_port}/v1"
        key_env = "LIBRARY_KEY"
        price = {{ input = 1.0, output = 2.0 }}
        retries = 0
        """
    )
    monkeypatch.setenv("LIBRARY_KEY", "sk-planted-secret")
    yield server
    server.shutdown()
    server.server_close()


def report(**how: Any) -> entail.Report:
    program = entail.from_source(LIBRARIAN)
    return asyncio.run(program.report({"topic": "bees"}, tools={"count": lambda text: 1}, **how))


def test_a_run_with_a_server(server: Server) -> None:
    found = report()
    assert found.value == {"title": "Bees", "words": 1}
    assert found.usage == entail.Usage(1, 1, 20, 2, 0.000024)
    (request,) = server.requests
    assert request["path"] == "/v1/chat/completions"
    assert request["key"] == "Bearer sk-planted-secret"
    assert request["messages"][-1] == {"role": "user", "content": "A title about bees"}


def test_an_error_of_the_server_tells_no_key(server: Server) -> None:
    server.status = 401
    with pytest.raises(entail.RunError) as raised:
        report()
    assert raised.value.code == "model"
    assert "401" in raised.value.message
    assert "sk-planted-secret" not in str(raised.value) + json.dumps(raised.value.details)


def test_a_model_that_is_not_there(server: Server) -> None:
    with pytest.raises(entail.Error) as raised:
        report(model="slow")
    assert raised.value.code == "settings"
