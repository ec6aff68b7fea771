"""Killed between any two of its system calls, a command loses nothing and doubles nothing."""

from __future__ import annotations

import collections
import time
from typing import TYPE_CHECKING

from agent_mailbox import Mailbox
from agent_mailbox.core import codec
from agent_mailbox.mailbox.queries import Library
from agent_mailbox.upkeep import steward as stewards
from tests.helpers import ARCHIVE, MESSAGES, READS, Post

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400_000
NOW = time.time_ns() // 1_000_000


def crashed(post: Post, *words: str, ends: int = 0) -> list[Path]:
    """The places where the command was killed, in order; in the last one it ran to its end."""
    out = post.scratch / "out"
    result = post.run(post.box, out, *words, python=("-m", "tests.store.crash"))
    assert result.rc == ends, result
    places = sorted(out.iterdir())
    assert len(places) > 3
    return places


def opened(box: Path) -> Mailbox:
    """The mailbox, its clock standing."""
    return Mailbox(str(box), clock=lambda: NOW)


def stored(box: Path, name: str) -> collections.Counter[bytes]:
    """How often each record's line stands anywhere, live or archived."""
    months = {p for p in (box / ARCHIVE).glob("[0-9]*.jsonl") if p.name.endswith("-reads.jsonl") == (name == READS)}
    lines = [line for p in (box / name, *months) if p.exists() for line in p.read_bytes().split(b"\n")]
    decode = codec.read if name == READS else codec.message
    return collections.Counter(line for line in lines if not isinstance(decode(line), codec.BadLine))


def test_what_happens_between_a_killed_steward_and_the_next_counts(post: Post) -> None:
    """Mail given back after its line reached the archive is unread, is read anew, and ends there once."""
    for agent in ("ann", "bob", "cat"):
        post.register(agent, *(() if agent == "ann" else ("--role", "builder")))
    sent = post.send("ann", "role:builder", "for one of you")
    post.check("bob")
    for place in crashed(post, "steward", "run", "--max-live", "0"):
        mailbox = opened(place / "box")
        if not mailbox.find(sent).archived:
            mailbox.release(sent, "bob")
            assert [i.message.id for i in mailbox.peek("cat")] == [sent], place
            stewards.run(mailbox, 0)
            assert mailbox.deliver("cat", lambda items: items) == 1, place
        stewards.run(mailbox, 0)
        assert len(mailbox.state().messages) == 0
        everything = Library(mailbox).everything()
        assert [r.session_id for r in everything.reads.of(sent)] in (["cat"], ["bob"]), place
        assert sum(stored(place / "box", MESSAGES).values()) == 1
        receipts = post.ok("show", sent, env={"AGENT_MAILBOX_DIR": str(place / "box")})["receipts"]
        assert [r["event"] for r in receipts] in (
            ["claim", "read"],
            ["claim", "read", "release", "claim", "read"],
        ), place


def test_an_init_killed_at_any_step_is_completed_by_the_next(post: Post) -> None:
    """A half made mailbox is no obstacle."""
    empty = post.scratch / "empty"
    empty.mkdir()
    out = post.scratch / "out"
    result = post.run(empty, out, "init", python=("-m", "tests.store.crash"), cwd=empty)
    assert result.rc == 0, result
    for place in sorted(out.iterdir()):
        result = post.call("init", env={"AGENT_MAILBOX_DIR": str(place / "box")})
        assert result.rc == 0, result
        assert (place / "box" / MESSAGES).exists()
        assert str(place / "box") in (post.home / ".local/state/agent-mailbox/mailboxes").read_text().splitlines()
