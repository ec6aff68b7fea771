"""Mail that other machines have not got is told as that, wherever it is shown: by real commands and a real server."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import Running

from .nats_server import serving
from .pair import MACHINES, Pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers import Program


class Away(Pair):
    """Two machines whose engine is away: a session in the south, two in the north."""

    def __init__(self, program: Program, url: str, credential: str) -> None:
        super().__init__(program, url, credential)
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
            self.join(machine)
            self.ok(machine, "roster", "register", "--session-id", who)
        self.ok("north", "roster", "register", "--session-id", "kim")
        self.ok("south", "engine", "join")
        self.ok("north", "engine", "join")

    def send_all(self) -> tuple[str, str, str]:
        """Send to the session in the south, to a role, and to the other one in the north; the ids."""
        to_ben, to_role, to_kim = (
            self.send("north", "--from", "ann", "--to", to, "--body", "late") for to in ("ben", "role:dev", "kim")
        )
        return to_ben, to_role, to_kim

    def said(self, *words: object) -> str:
        """What a command in the north says."""
        found = self.program.run(*words, "--dir", self.program.scratch / "north")
        assert found.rc in (0, 3), found
        return found.stdout

    def page(self, path: str) -> str:
        """A page of the console in the north."""
        with Running(self.program, "--dir", str(self.program.scratch / "north")) as console:
            return console.enter().ask(path).text


@pytest.fixture
def away(program: Program, credential: str, tmp_path: Path) -> tuple[Away, Path, int]:
    """The machines, the directory of their server, which is away, and its port."""
    home = tmp_path / "server"
    with serving(home) as url:
        pair = Away(program, url, credential)
    return pair, home, int(url.rpartition(":")[2])


def test_mail_that_stayed_here_as_the_machine_left_is_shown_as_never_sent(away: tuple[Away, Path, int]) -> None:
    """Mail that waited as its machine left is told as never sent, until the mailbox joins again.

    Mail to a session of this machine reached it."""
    pair, home, port = away
    to_ben, to_role, to_kim = pair.send_all()
    pair.ok("north", "engine", "leave")
    for one in (to_ben, to_role):
        said = pair.said("show", one)
        assert "never sent: it is in this mailbox alone, and goes to other machines if that joins again" in said
        assert re.search(r"never sent +ann", said)
        assert pair.ok("north", "show", one)["never_sent"] is True
        assert "Receipts: never sent" in pair.said("thread", one)
        assert "Never sent" in pair.page(f"/?open={one}")
    for words in (("history", "--all"), ("search", "late")):
        ends = {line[:8]: line for line in pair.said(*words).splitlines()}
        assert [ends[one[:8]].endswith("never sent") for one in (to_ben, to_role, to_kim)] == [True, True, False]
        marked = {m["id"] for m in pair.ok("north", *words)["messages"] if m.get("never_sent")}
        assert marked == {to_ben, to_role}
    (kept,) = pair.program.user_state.glob("**/engine/kept")
    kept.write_text(f"{kept.read_text()}0f8fad5b-d9cb-469f-a165-70867728950e\n")  # the steward archived that one
    said = pair.said("status", "--session", "ann")
    assert "2 messages of this machine never sent to others" in said
    assert pair.ok("north", "status", "--session", "ann")["never_sent"] == 2
    assert "never sent: it is in this mailbox alone" in pair.page("/search?q=late")
    assert "never sent" not in pair.said("show", to_kim)
    with serving(home, port):
        pair.join("north")
        pair.ok("south", "engine", "join")
        assert pair.seen("south", "ben") == ["late"]
    assert "never_sent" not in pair.ok("north", "show", to_ben)
    pair.ok("north", "engine", "leave")
    assert "never_sent" not in pair.ok("north", "show", to_ben), "it was sent meanwhile"


def test_mail_that_waits_is_not_called_sent(away: tuple[Away, Path, int]) -> None:
    """A message's way begins with *queued*, to a role, too. Searches and threads mark it, and the inbox and the doctor
    say at once how many sends wait, since when, and why."""
    pair, home, port = away
    to_ben, to_role, _ = pair.send_all()
    for one in (to_ben, to_role):
        said = pair.said("show", one)
        assert (bool(re.search(r"queued +ann", said)), "sent" in said) == (True, False)
        assert "Receipts: queued" in pair.said("thread", one)
    marked = {m["id"] for m in pair.ok("north", "search", "late")["messages"] if m.get("queued")}
    assert {to_ben, to_role} <= marked
    since = pair.ok("north", "show", to_ben)["message"]["timestamp"][:16].replace("T", " ")
    told = f"3 sends wait here for the engine since {since}Z; the newest because engine is out of reach: {pair.url}"
    assert told in pair.said("doctor")
    assert told in pair.said("engine", "doctor")
    assert told in pair.page("/")
    with serving(home, port):
        assert "sends wait here" not in pair.said("engine", "doctor")
        assert "sends wait here" not in pair.said("doctor") + pair.page("/")


def test_a_thread_goes_through_mail_that_waits(away: tuple[Away, Path, int]) -> None:
    """A reply that waits, and a reply to that, show the whole conversation with what was sent before, oldest first. So
    do their ids' beginnings, and the first message. No other conversation is among it, waiting or not."""
    pair, home, port = away

    def send(*words: str) -> str:
        return pair.send("north", "--from", "ann", "--to", "ben", "--body", "late", *words)

    with serving(home, port):
        first, other = send(), send()
    second = send("--thread", first)
    apart = send("--thread", other)
    third = send("--thread", second)
    alone = send()
    for message_id, whole in (
        *((one, [first, second, third]) for one in (first, second, third)),
        *((one, [other, apart]) for one in (other, apart)),
        (alone, [alone]),
    ):
        for word in (message_id, message_id[:8].upper()):
            assert [m["id"] for m in pair.ok("north", "thread", word)["messages"]] == whole, word
