"""A stand-in for the model: answers the client's requests with one short text, and stores what it was sent.

What reached the model is then a fact to assert on. Loopback only.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

ANSWER = "DONE"
USAGE = {"input_tokens": 1, "output_tokens": 1}
_MESSAGE = {
    "id": "msg_standin",
    "type": "message",
    "role": "assistant",
    "model": "stand-in",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": USAGE,
}
_EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": _MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": USAGE},
    {"type": "message_stop"},
)


class StandIn:
    """The server, for a ``with`` block; ``requests`` are the bodies of ``/v1/messages``, in order."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """What the client takes for its API."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def asked(self, prompt: str) -> list[str]:
        """The conversations with this prompt in them, as JSON, in order; without what the client asks for itself (a
        title), which has no tools."""
        talks = [json.dumps(body["messages"], ensure_ascii=False) for body in self.requests if body.get("tools")]
        return [talk for talk in talks if prompt in talk]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                if self.path.partition("?")[0] != "/v1/messages":
                    self._send("application/json", json.dumps({"input_tokens": 1}).encode())
                    return
                requests.append(body)
                if body.get("stream"):
                    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _EVENTS)
                    self._send("text/event-stream", "".join(lines).encode())
                else:
                    whole = {**_MESSAGE, "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
                    self._send("application/json", json.dumps(whole).encode())

            def do_GET(self) -> None:
                self._send("application/json", b"{}")

            do_HEAD = do_GET

            def _send(self, kind: str, data: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
