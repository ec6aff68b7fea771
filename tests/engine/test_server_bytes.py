"""The bytes of a server: how many words a caller in a hurry hears before what it waits for."""

from __future__ import annotations

import socket
import time
from contextlib import nullcontext

import pytest

from agent_mailbox.space.nats.server_words import ServerBytes
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


@pytest.mark.parametrize("is_hurried", [True, False])
def test_a_server_that_closes_is_told_at_once(is_hurried: bool) -> None:
    """It would take the rest of the time, and ask the closed socket all the while."""
    ours, theirs = socket.socketpair()
    heard = ServerBytes(ours, lambda: None)
    theirs.sendall(b"half a li")
    theirs.close()
    with hurry.Hurry(60) if is_hurried else nullcontext(), ours:
        with pytest.raises(OSError, match="closed the connection"):
            heard.read_line(time.monotonic() + 60)
        with pytest.raises(OSError, match="closed the connection"):
            heard.read_bytes(100, time.monotonic() + 60)
