"""Whoever has a credential of the servers, and speaks NATS by hand: any subject, any for the answer, any header."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from agent_mailbox.space.nats.connection import API, NatsConnection, Publication
from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_mailbox.space.nats.nats_order import NatsOrder

DENIED = b"Permissions Violation for "


class Attacker:
    """A connection with a credential's rights."""

    def __init__(self, url: str, credential: str | None, authority: str | None, user: str) -> None:
        self.user = user
        self.connection = NatsConnection(url, credential, authority, PATIENCE)
        self.connection.publish_unanswered([])
        self.connection._api = API  # the subjects as they are given
        self.heard: list[bytes] = []

    def publish(self, subject: str, reply: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Publish, and have it answered anywhere."""
        words = self.connection._publication_bytes(Publication(subject, data, headers or {}), None)
        verb, rest = words.split(b" ", 1)
        self.connection._send_bytes(b"%s %s %s" % (verb, subject.encode(), reply.encode()) + rest[len(subject) :])

    def subscribe(self, subject: str, queue: str = "") -> None:
        """Listen."""
        self.connection._send_bytes(f"SUB {subject} {queue} 77\r\n".encode())

    def settle(self) -> list[bytes]:
        """Wait until the server has taken everything; return what it denied, as it names it.

        What it sent is in ``heard``: subjects."""
        denied = []
        self.connection._send_bytes(b"PING\r\n")
        while (line := self.connection._incoming_bytes().read_line(time.monotonic() + PATIENCE)) != b"PONG":
            words = line.split()
            if words[0] in (b"MSG", b"HMSG"):
                self.connection._read_parts(words, time.monotonic() + PATIENCE)
                self.heard.append(words[1])
            elif line.startswith(b"-ERR"):
                assert DENIED in line, line
                denied.append(line.partition(DENIED)[2].strip(b"'"))
        return denied

    def end(self, calls: Iterable[tuple[str, bytes]]) -> None:
        """Close, once the servers have answered these calls: what it did before is done then, by those that lead.

        They answer several at once. To a record they answer once it is kept, in its sequence."""
        self.settle()
        self.connection.ask_each([Publication(subject, body) for subject, body in calls])
        self.close()

    def close(self) -> None:
        """End it."""
        self.connection.close()


def settle(order: NatsOrder, calls: int = 20) -> None:
    """Wait until JetStream has done what it was asked, and both streams of the space have taken what came.

    It answers several calls at once. A stream takes one after the other, and refuses this for its expectation."""
    order.connection.ask_each([Publication(f"{API}INFO", b"")] * calls)
    late = {"Nats-Expected-Last-Sequence": "999999"}
    for kind in ("mbx", "mbxf"):
        (answer,) = order.connection.ask_each([Publication(f"{kind}.{order.space}.{order.machine}.late", b"", late)])
        assert b"wrong last sequence" in answer.data


def state(order: NatsOrder) -> dict[str, Any]:
    """What the two streams of a space are and have: all but what JetStream counts by itself, and ``late``."""
    found: dict[str, Any] = {}
    for stream in (order.stream, f"MBXF_{order.space}"):
        info = order.call_api(f"STREAM.INFO.{stream}", None)
        found[stream] = info["config"], info["state"]["first_seq"]
        asked = [b'{"seq":%d}' % seq for seq in range(1, info["state"]["last_seq"] + 1)]
        for seq, answer in enumerate(
            order.connection.ask_each([Publication(f"{API}STREAM.MSG.GET.{stream}", a) for a in asked])
        ):
            message = json.loads(answer.data).get("message")
            if message and not message["subject"].endswith(".late"):
                found[f"{stream} {seq}"] = message
    return found


def written(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The subjects of what was added to those streams; everything else must be as it was."""
    assert {key: (before[key], after.get(key)) for key in before if after.get(key) != before[key]} == {}
    return {after[key]["subject"] for key in after.keys() - before.keys()}
