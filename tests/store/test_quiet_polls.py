"""A process that stays and polls again and again: it looks at the logs' times alone, and still misses nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.core import instant
from agent_mailbox.store.files import system
from agent_mailbox.store.polling import quiet_polls
from agent_mailbox.store.polling.poll import Poll
from agent_mailbox.store.user_state import creation
from tests.door import switches

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = instant.parse("2026-03-16T12:00:00Z")


class Standing:
    """A process that polls for ``bob``, and has done so until that cost three looks."""

    def __init__(self, scratch: Path) -> None:
        directory = creation.create(str(scratch / "box"), {switches.STATE: str(scratch)})
        self.box = Mailbox(directory, clock=lambda: NOW)
        self.other = Mailbox(directory, clock=lambda: NOW)
        self.send("amy")
        self.box.deliver("bob", list)
        self.stamp = self.box.config.stamp
        for _ in range(4):
            assert self.found() == []

    def send(self, to: str) -> str:
        return self.other.send(Draft(sender="zed", to=(to,), content="x")).message.id

    def found(self, now: int = NOW) -> list[str]:
        """What a poll finds."""
        poll = Poll(self.box.logs, "bob", self.box.config.replace(stamp=self.stamp))
        return [item.message.id for item in poll.unread(now)]

    def opened(self, monkeypatch: pytest.MonkeyPatch) -> int:
        """The files that a poll with nothing new opens."""
        paths: list[str] = []
        opens: Callable[..., int] = system.open
        with monkeypatch.context() as patch:
            patch.setattr(system, "open", lambda path, *rest: paths.append(path) or opens(path, *rest))
            assert self.found() == []
        return len(paths)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose times are always exact."""
    monkeypatch.setattr(quiet_polls, "LATELY", -(10**19))


@pytest.mark.usefixtures("at_once")
def test_a_standing_process_opens_one_file_a_poll(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note about the messages. A first poll opens the logs and the cursor, too."""
    assert Standing(tmp_path).opened(monkeypatch) == 1


def test_logs_that_changed_lately_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second change within a tick of the clock may leave the same time."""
    assert Standing(tmp_path).opened(monkeypatch) > 1


@pytest.mark.usefixtures("at_once")
def test_whatever_changes_is_found(tmp_path: Path) -> None:
    """Mail by our writer and by a program, a log replaced, a line rewritten in its place, an entry of the roster."""
    mine = Standing(tmp_path)
    sent = [mine.send("bob")]
    assert mine.found() == sent
    mine.box.deliver("bob", list)
    assert [mine.found() for _ in range(3)] == [[]] * 3
    messages = mine.box.logs.messages.path
    with open(messages, "rb+") as file:
        line = file.read().splitlines()[-1].replace(b"zed", b"zoe").replace(sent[0].encode(), b"0" * 8 + b"-" * 28)
        file.write(line + b"\n")
    assert mine.found() == ["0" * 8 + "-" * 28]
    mine.box.deliver("bob", list)
    assert [mine.found() for _ in range(3)] == [[]] * 3
    with open(messages, "rb") as file:
        content = file.read()
    with open(messages + ".new", "wb") as file:
        file.write(content.replace(b"0" * 8 + b"-" * 28, b"1" * 8 + b"-" * 28))
    os.rename(messages + ".new", messages)
    assert mine.found() == ["1" * 8 + "-" * 28]


@pytest.mark.usefixtures("at_once")
def test_another_configuration_and_an_earlier_clock_judge_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both may make expired mail unread."""
    mine = Standing(tmp_path)
    mine.send("bob")
    later = NOW + 1000 * instant.HOUR
    assert [mine.found(later) for _ in range(4)] == [[]] * 4
    assert len(mine.found(NOW)) == 1
    assert [mine.found(later) for _ in range(4)] == [[]] * 4
    mine.stamp = (1, 2, 3)
    seen: list[object] = []
    monkeypatch.setattr(Poll, "_asked", lambda *asked: seen.append(asked) or [])
    assert mine.found(later) == []
    assert seen
