"""A model server with the protocol of Chat Completions. What it replies is decided by a subclass."""

import http.server
import json
import threading


class Refused(Exception):
    """A request that the server answers with an HTTP status instead of a reply."""

    def __init__(self, status):
        super().__init__(status)
        self.status = status


class Server(http.server.ThreadingHTTPServer):
    """Answers every request with what `reply` returns: a text, a call `{"tool": …, "args": …}`, or a list of calls."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def reply(self, body):
        raise NotImplementedError


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["Content-Length"])
        data = self.rfile.read(length)
        if len(data) < length:
            # The program was stopped while it sent the request.
            return
        body = json.loads(data)
        if self.path.endswith("/embeddings"):
            return self.embed(body)
        try:
            with self.server.lock:
                reply = self.server.reply(body)
                number = self.server.answered = getattr(self.server, "answered", 0) + 1
        except Refused as refused:
            return self.send(refused.status, "application/json", b'{"error": {"message": "refused"}}')
        message = {"role": "assistant", "content": None}
        if isinstance(reply, str):
            message["content"] = reply
        else:
            message["tool_calls"] = []
            for i, call in enumerate(reply if isinstance(reply, list) else [reply]):
                call = {"name": call["tool"], "arguments": json.dumps(call["args"])}
                message["tool_calls"].append({"id": f"c{number}_{i}", "type": "function", "function": call})
        reason = "stop" if isinstance(reply, str) else "tool_calls"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {"id": "r", "created": 0, "model": body["model"], "usage": usage}
        if not body.get("stream"):
            choices = [{"index": 0, "message": message, "finish_reason": reason}]
            answer |= {"object": "chat.completion", "choices": choices}
            return self.send(200, "application/json", json.dumps(answer).encode())
        for i, call in enumerate(message.get("tool_calls", [])):
            call["index"] = i
        choices = [{"index": 0, "delta": message, "finish_reason": reason}]
        answer |= {"object": "chat.completion.chunk", "choices": choices}
        self.send(200, "text/event-stream", f"data: {json.dumps(answer)}\n\ndata: [DONE]\n\n".encode())

    def embed(self, body):
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [{"object": "embedding", "index": i, "embedding": [0.1] * 1536} for i in range(len(texts))]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        answer = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        self.send(200, "application/json", json.dumps(answer).encode())

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        # A client that tries again does so at once.
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass
