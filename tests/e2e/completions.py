"""A stand-in for the model behind OpenCode: ``/v1/chat/completions``, by the same kind of script (``standin``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.e2e.standin import ANSWER, Server, conversation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.standin import Body, Script

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def said(text: str) -> Body:
    """A delta of an answer: text."""
    return {"content": text}


def shell(command: str) -> Body:
    """A delta of an answer: the client is to run this in its shell."""
    return use("bash", command=command, description="as the test wants it")


def use(tool: str, **arguments: Any) -> Body:
    """A delta of an answer: the client is to use this tool."""
    return {"tool": tool, "arguments": json.dumps(arguments)}


def results(body: Body) -> list[str]:
    """What the tools of a conversation gave back, in order."""
    return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]


def since(body: Body, prompt: str) -> list[Body]:
    """The messages from the last one with that prompt on."""
    places = [n for n, message in enumerate(body["messages"]) if message["role"] == "user" and prompt in str(message)]
    return list(body["messages"][places[-1] :]) if places else []


def by_prompt(**answers: list[Body]) -> Script:
    """A script that answers a conversation by the last of these prompts that is in it: its deltas one by one, as
    often as tools were used since, then ``ANSWER``."""

    def script(body: Body) -> list[Body]:
        asked = [(len(since(body, prompt)), prompt) for prompt in answers if since(body, prompt)]
        if not asked or not body.get("tools"):
            return [said(ANSWER)]
        prompt = min(asked)[1]
        used = sum(message["role"] == "tool" for message in since(body, prompt))
        return [answers[prompt][used]] if used < len(answers[prompt]) else [said(ANSWER)]

    return script


class Completions(Server):
    """The server."""

    def __init__(self) -> None:
        super().__init__(by_prompt())

    def talk(self, body: Body) -> str:
        """See ``conversation``."""
        return conversation(body)

    def answer(self, path: str, body: Body) -> tuple[str, bytes] | None:
        """A completion as the chunks of a stream."""
        if path != "/v1/chat/completions":
            return None
        self.requests.append(body)
        chunks = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(self.script(body), len(self.requests)))
        return "text/event-stream", f"{chunks}data: [DONE]\n\n".encode()


def _chunks(deltas: list[Body], number: int) -> Iterator[Body]:
    chunk = {"id": f"answer_{number}", "object": "chat.completion.chunk", "model": "stand-in"}
    is_tool = False
    for index, delta in enumerate(deltas):
        if "tool" in delta:
            is_tool = True
            function = {"name": delta["tool"], "arguments": delta["arguments"]}
            call = {"index": index, "id": f"call_{number:04}{index:02}", "type": "function", "function": function}
            delta = {"tool_calls": [call]}
        yield {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]}
    reason = "tool_calls" if is_tool else "stop"
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": USAGE}
