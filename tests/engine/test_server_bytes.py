"""The bytes of a server: how many words a caller in a hurry hears before what it waits for."""

from __future__ import annotations

import socket
import time

import pytest

from agent_mailbox.space.nats.server_bytes import ServerBytes
from agent_mailbox.space.order import hurry


def test_a_server_that_speaks_and_does_not_answer_is_left_and_one_that_answers_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each piece of an answer begins the count of words again."""
    monkeypatch.setattr(hurry, "QUIET", 0.001)
    ours, theirs = socket.socketpair()
    heard = ServerBytes(ours, lambda: theirs.sendall(b"PONG\r\n"))
    with hurry.Hurry(60), ours, theirs:
        end = time.monotonic() + 60
        for _ in range(2):
            assert [heard.read_line(end) for _ in range(hurry.WORDS)] == [b"PONG"] * hurry.WORDS
            theirs.sendall(b"piece")
            assert heard.read_bytes(5, end) == b"piece"
        assert [heard.read_line(end) for _ in range(hurry.WORDS)] == [b"PONG"] * hurry.WORDS
        with pytest.raises(TimeoutError, match="does not answer"):
            heard.read_line(end)
