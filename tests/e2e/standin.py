"""A stand-in for the model: answers the client's requests by a script, and stores what it was sent.

What reached the model is then a fact to assert on. Loopback only.
"""

from __future__ import annotations

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Body = dict[str, Any]
    Script = Callable[[Body], list[Body]]

ANSWER = "DONE"
_MESSAGE = {
    "type": "message",
    "role": "assistant",
    "model": "stand-in",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
}


def said(text: str) -> Body:
    """A block of an answer: text."""
    return {"type": "text", "text": text}


def bash(command: str) -> Body:
    """A block of an answer: the client is to run this in its shell."""
    return use("Bash", command=command, description="as the test wants it")


def use(tool: str, **arguments: Any) -> Body:
    """A block of an answer: the client is to use this tool."""
    return {"type": "tool_use", "name": tool, "input": arguments}


def conversation(body: Body) -> str:
    """The whole conversation of a request as one text."""
    return json.dumps(body["messages"], ensure_ascii=False)


def in_turn(*answers: list[Body] | Failed) -> Script:
    """A script that gives these answers to the conversation's requests, then ``ANSWER``. So does it answer what the
    client asks for itself (a title), which has no tools."""
    left = list(answers)
    lock = threading.Lock()

    def script(body: Body) -> list[Body]:
        with lock:
            answer = left.pop(0) if left and body.get("tools") else [said(ANSWER)]
        if isinstance(answer, Failed):
            raise answer
        return answer

    return script


class Failed(Exception):
    """What a script raises to have the request fail, with this status of HTTP and these words. 0: the answer breaks off
    in the midst of its stream."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.message = message or f"failed {status}"


class Server:
    """A server, for a ``with`` block; ``requests`` are the bodies of what asks the model, in order.

    ``script`` makes of each body the blocks of the answer. It runs in the request's own thread: while it waits, the
    client waits.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[Body] = []
        self.script = script
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """What the client takes for its API."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, path: str, body: Body) -> tuple[str, bytes] | None:
        """Content type and bytes for a request that asks the model; None for any other."""
        raise NotImplementedError

    def talk(self, body: Body) -> str:
        """The whole conversation of a request as one text."""
        return conversation(body)

    def asked(self, prompt: str) -> list[str]:
        """The conversations with this prompt in them, in order; without what the client asks for itself."""
        talks = [self.talk(body) for body in self.requests if body.get("tools")]
        return [talk for talk in talks if prompt in talk]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        standin = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                try:
                    answer = standin.answer(self.path.partition("?")[0], body)
                except Failed as failed:
                    self._fail(failed.status, failed.message)
                else:
                    self._send(*(answer or ("application/json", json.dumps({"input_tokens": 1}).encode())))

            def _fail(self, status: int, message: str) -> None:
                error = {"code": status, "message": message, "type": "failed", "status": "FAILED"}
                if status:
                    self._send("application/json", json.dumps({"type": "error", "error": error}).encode(), status)
                else:
                    self._send("text/event-stream", b"", length=1000)
                    self.close_connection = True

            def do_GET(self) -> None:
                self._send("application/json", b"{}")

            do_HEAD = do_GET

            def _send(self, kind: str, data: bytes, status: int = 200, length: int | None = None) -> None:
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(data) if length is None else length))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(data)
                except OSError:
                    self.close_connection = True  # the client is gone: a test ended it

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def stream(events: Iterable[Body]) -> tuple[str, bytes]:
    """Events as the body of an answer that streams them."""
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "text/event-stream", "".join(lines).encode()


class StandIn(Server):
    """Claude's: ``/v1/messages``. ``used`` are the tokens that it says a request took."""

    def __init__(self) -> None:
        super().__init__(in_turn())
        self.used = 1

    def answer(self, path: str, body: Body) -> tuple[str, bytes] | None:
        """A message, streamed where that is asked for."""
        if path != "/v1/messages":
            return None
        self.requests.append(body)
        number = len(self.requests)
        blocks = [
            {**block, **({"id": f"toolu_{number:04}{n:02}"} if block["type"] == "tool_use" else {})}
            for n, block in enumerate(self.script(body))
        ]
        reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        usage = {"input_tokens": self.used, "output_tokens": 1}
        message = {**_MESSAGE, "id": f"msg_{uuid.uuid4().hex}", "usage": usage}
        if body.get("stream"):
            return stream(_events(message, blocks, reason))
        whole = {**message, "content": blocks, "stop_reason": reason}
        return "application/json", json.dumps(whole).encode()


def _events(message: Body, blocks: list[Body], reason: str) -> Iterator[Body]:
    """An answer as the events of a stream."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": message["usage"]}
    yield {"type": "message_stop"}
