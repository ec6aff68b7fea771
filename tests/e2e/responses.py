"""A stand-in for the model behind Codex: ``/v1/responses``, by the same kind of script (``standin``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.e2e.standin import ANSWER, Server, stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.standin import Body, Script

_CALLS = ("function_call", "custom_tool_call")
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def said(text: str) -> Body:
    """An item of an answer: text."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def shell(command: str) -> Body:
    """An item of an answer: the client is to run this in its shell."""
    return use("exec_command", cmd=command)


def use(tool: str, *, namespace: str | None = None, **arguments: Any) -> Body:
    """An item of an answer: the client is to use this tool."""
    call = {"type": "function_call", "name": tool, "arguments": json.dumps(arguments)}
    return {**call, "namespace": namespace} if namespace else call


def patch(text: str) -> Body:
    """An item of an answer: the client is to apply this patch. It offers that tool to models that it knows."""
    return {"type": "custom_tool_call", "name": "apply_patch", "input": text}


def conversation(body: Body) -> str:
    """The whole conversation of a request as one text."""
    return json.dumps(body["input"], ensure_ascii=False)


def by_prompt(**answers: list[Body]) -> Script:
    """A script that answers a conversation by the first of these prompts that is in it: its items one by one, as
    often as tools were used before, then ``ANSWER``. A subagent's conversation is one of its own."""

    def script(body: Body) -> list[Body]:
        talk = conversation(body)
        items = next((items for prompt, items in answers.items() if prompt in talk), [])
        used = sum(item["type"] in _CALLS for item in body["input"])
        return [items[used]] if used < len(items) else [said(ANSWER)]

    return script


class Responses(Server):
    """The server."""

    def __init__(self) -> None:
        super().__init__(by_prompt())

    def talk(self, body: Body) -> str:
        """See ``conversation``."""
        return conversation(body)

    def answer(self, path: str, body: Body) -> tuple[str, bytes] | None:
        """A response as the events of a stream."""
        if path != "/v1/responses":
            return None
        self.requests.append(body)
        return stream(_events(self.script(body), len(self.requests)))


def _events(items: list[Body], number: int) -> Iterator[Body]:
    answer = {"id": f"resp_{number}"}
    yield {"type": "response.created", "response": answer}
    for index, item in enumerate(items):
        name = f"{number:04}{index:02}"
        item = {**item, "id": f"item_{name}"}
        if item["type"] in _CALLS:
            item["call_id"] = f"call_{name}"
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": {**answer, "usage": USAGE}}
