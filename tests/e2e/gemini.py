"""A stand-in for the model behind Gemini CLI: ``streamGenerateContent``, by the same kind of script (``standin``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.e2e.standin import ANSWER, Server

if TYPE_CHECKING:
    from tests.e2e.standin import Body

USAGE = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}


def said(text: str) -> Body:
    """A part of an answer: text."""
    return {"text": text}


def shell(command: str) -> Body:
    """A part of an answer: the client is to run this in its shell."""
    return use("run_shell_command", command=command)


def use(tool: str, **arguments: Any) -> Body:
    """A part of an answer: the client is to use this tool."""
    return {"functionCall": {"name": tool, "args": arguments}}


def conversation(body: Body) -> str:
    """The whole conversation of a request as one text."""
    return json.dumps(body["contents"], ensure_ascii=False)


def used(body: Body) -> list[Any]:
    """What the tools of a conversation gave back, in order."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


class Gemini(Server):
    """The server."""

    def __init__(self) -> None:
        super().__init__(lambda _: [said(ANSWER)])

    def talk(self, body: Body) -> str:
        """See ``conversation``."""
        return conversation(body)

    def answer(self, path: str, body: Body) -> tuple[str, bytes] | None:
        """The one chunk of an answer."""
        if not path.endswith(":streamGenerateContent"):
            return None
        self.requests.append(body)
        content = {"role": "model", "parts": self.script(body)}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        whole = {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "stand-in"}
        return "text/event-stream", f"data: {json.dumps(whole)}\r\n\r\n".encode()
