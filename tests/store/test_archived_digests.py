"""What an archive has already is left out, and is durable all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_mailbox import Mailbox
from agent_mailbox.store.archive.archived_digests import ArchivedDigests
from agent_mailbox.store.files import system

if TYPE_CHECKING:
    import pytest

    from tests.helpers import Post


def test_lines_that_a_killed_run_may_have_left_unsynced_are_synced_once(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that finds them there cannot tell whether they are on the disk."""
    archive = Mailbox(str(post.box)).archive
    log, lines = archive.log("2026-01"), [b'{"id":"a"}', b'{"id":"b"}']
    ArchivedDigests(archive).add(log, lines)
    synced: list[int] = []
    fdatasync = system.fdatasync
    monkeypatch.setattr(system, "fdatasync", lambda fd: (fdatasync(fd), synced.append(fd)))
    again = ArchivedDigests(archive)
    for _ in range(2):
        again.add(log, lines)
        assert len(synced) == 1
    assert [line for _, line in log.lines()] == lines
