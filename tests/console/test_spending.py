"""What mail costs its readers: the tokens of all deliveries, added up a part at a time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mailbox.console import spending
from agent_mailbox.console.spending import Spending
from agent_mailbox.core import codec
from agent_mailbox.core.records import Read
from agent_mailbox.mailbox.mailbox import Mailbox
from tests.console.conftest import Running

if TYPE_CHECKING:
    import pytest

    from tests.helpers import Post

T0 = 1_795_000_000_000


def shown(reader: str, tokens: int | None, via: str | None = None, at: int = T0, number: int = 0) -> bytes:
    """A line of the reads log: a delivery to that reader."""
    return codec.spell_read(Read(f"00000000-0000-4000-8000-{number:012x}", reader, at, via=via, tokens=tokens))


def rows(box: Mailbox, found: Spending) -> dict[str, list[tuple[str, int, int]]]:
    """The tables of one look, by their titles."""
    told = found.describe_spending(box.logs.read_roster())
    return dict(told["spending"])


def test_tokens_are_added_up_by_agent_day_and_project(post: Post) -> None:
    """Mail by a project's address counts there, other mail for its reader's only project. A plain read is free."""
    post.register("ada", "--name", "Ada", "--tags", "project:x")
    post.register("bo", "--tags", "project:x,project:y")
    box = Mailbox(str(post.box))
    day = 24 * 60 * 60 * 1000
    box.logs.reads.append(
        [
            shown("ada", 40),
            shown("ada", 20, "project:y", T0 + day, 1),
            shown("bo", 7, "role:dev", number=2),
            shown("bo", None, number=3),
        ]
    )
    days = [time.strftime("%Y-%m-%d", time.localtime(at / 1000)) for at in (T0 + day, T0)]
    assert rows(box, Spending(box)) == {
        "Agent": [("Ada", 2, 60), ("bo", 1, 7)],
        "Day": [(days[0], 1, 20), (days[1], 2, 47)],
        "Project": [("#x", 1, 40), ("#y", 1, 20), ("no project", 1, 7)],
    }


def test_a_look_is_bounded_and_the_next_goes_on(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look reads so many lines, the live ones first; what is archived later is counted once, and where it is."""
    monkeypatch.setattr(spending, "MOST_READ", 3)
    box = Mailbox(str(post.box))
    box.logs.reads.append([shown("ada", 10, number=number) for number in range(5)])
    found = Spending(box)
    looks = [found.describe_spending(box.logs.read_roster()) for _ in range(2)]
    assert [(look["spent"], look["spending_goes_on"]) for look in looks] == [(30, True), (50, False)]
    lines = post.lines("agent-mailbox-reads.jsonl")
    archive = Path(box.archive.directory)
    archive.mkdir(exist_ok=True)
    (archive / "2026-11.jsonl").touch()
    (archive / "2026-11-reads.jsonl").write_bytes(b"".join(line + b"\n" for line in lines[:4]))
    fresh = post.box / "agent-mailbox-reads.jsonl.new"
    fresh.write_bytes(lines[4] + b"\n")
    fresh.replace(post.box / "agent-mailbox-reads.jsonl")
    looks = [found.describe_spending(box.logs.read_roster()) for _ in range(3)]
    assert [(look["spent"], look["spending_goes_on"]) for look in looks] == [(30, True), (50, False), (50, False)]


def test_many_agents_are_few_rows(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most expensive have rows of their own, and the rest has one, so that a table's sum is the sum of all."""
    monkeypatch.setattr(spending, "MOST_AGENTS", 2)
    box = Mailbox(str(post.box))
    box.logs.reads.append([shown(f"agent-{number}", number + 1, number=number) for number in range(5)])
    assert rows(box, Spending(box))["Agent"] == [("agent-4", 1, 5), ("agent-3", 1, 4), ("3 others", 3, 6)]


def test_the_timeline_has_the_tokens_of_all_mail(post: Post) -> None:
    """The page says what all deliveries cost, though none of that mail is of the hours it shows."""
    Mailbox(str(post.box)).logs.reads.append([shown("ada", 1234)])
    with Running(post) as console:
        text = " ".join(console.enter().ask("/timeline").text.split())
    assert "Hooks showed mail for 1,234 tokens." in text
    assert '<th scope="row">ada</th><td class="num">1</td><td class="num">1,234</td>' in text
