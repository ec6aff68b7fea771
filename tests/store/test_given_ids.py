"""An id that was given is looked up ahead of the lock: in the index, or by a scan while nobody waits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agent_mailbox import Draft, Mailbox
from agent_mailbox.errors import MailboxError
from agent_mailbox.mailbox.mail_pages import MailPages
from agent_mailbox.mailbox.sending import Sending
from agent_mailbox.store.archive.archive import Archive
from agent_mailbox.store.files import system
from agent_mailbox.store.log.log import HeldLog
from agent_mailbox.store.projection import archived_mail
from tests.steps import steps
from tests.store.test_index import mailbox, rotate

if TYPE_CHECKING:
    from pathlib import Path


GIVEN = "a6aad2fc-a42c-489b-864d-21f8cb5ad25e"


def filled(root: Path, count: int) -> tuple[Mailbox, str]:
    """A mailbox whose archive has so many messages; the id of one of them."""
    box = mailbox(str(root))
    box.deliver("bob", lambda items: items)
    box.send_all([Draft(sender="amy", to=("bob",), content=f"text {n}") for n in range(count)])
    wanted = next(iter(box.state().messages))
    box.deliver("bob", lambda items: items)
    rotate(box)
    assert wanted not in box.state().messages
    return box, wanted


def drafts(wanted: str) -> tuple[Draft, Draft]:
    """The archived message once more, and other mail under its id."""
    same = Draft(sender="amy", to=("bob",), content="text 0", id=wanted)
    return same, same.replace(content="other")


@pytest.mark.parametrize("has_index", [True, False], ids=["index", "no index"])
def test_nobody_reads_the_archive_under_the_log_s_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_index: bool
) -> None:
    """The same mail again is the same message, other mail under its id is refused, and nobody waits for the look."""
    box, wanted = filled(tmp_path, 3)
    monkeypatch.setattr(archived_mail, "NEAR", 0)
    if has_index:
        assert MailPages(box).prepare()
    same, other = drafts(wanted)
    known = box.find(wanted).message
    held: list[bool] = []
    enter, leave, lines, find = HeldLog.__enter__, HeldLog.__exit__, Archive.lines, archived_mail.find_lines
    monkeypatch.setattr(HeldLog, "__enter__", lambda log: (held.append(True), enter(log))[1])
    monkeypatch.setattr(HeldLog, "__exit__", lambda log, *error: (held.pop(), leave(log, *error))[1])
    scans: list[int] = []
    monkeypatch.setattr(Archive, "lines", lambda *at: (scans.append(len(held)), lines(*at))[1])
    looks: list[int] = []
    monkeypatch.setattr(archived_mail, "find_lines", lambda *at: (looks.append(len(held)), find(*at))[1])
    assert box.send(same).message.id == wanted
    with pytest.raises(MailboxError, match="another message"):
        box.send(other)
    box.part(Sending).take_in([known], {wanted})
    assert looks == [0, 0, 0]
    assert scans == ([] if has_index else [0, 0, 0])
    assert wanted not in box.state().messages


@pytest.mark.parametrize("door", ["send", "take_in"])
def test_mail_that_is_given_again_is_written_through_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    """Its first writer may have died before its sync, so the log's file is synced before the second answer."""
    box = mailbox(str(tmp_path))
    mail = Draft(sender="amy", to=("bob",), content="text", id=GIVEN)
    sent = box.send(mail).message
    synced, write_through = list[str](), system.fsync

    def note(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        write_through(fd)

    monkeypatch.setattr(system, "fsync", note)
    monkeypatch.setattr(system, "fdatasync", note)
    if door == "send":
        assert box.send(mail).message == sent
    else:
        box.take_in([sent], {sent.id})
    assert box.logs.messages.path in synced
    assert [*box.state().messages] == [GIVEN]


def test_an_id_is_known_though_its_archived_line_is_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program turned two lines of the archive about, and the index still has their old places."""
    box, wanted = filled(tmp_path, 30)
    monkeypatch.setattr(archived_mail, "NEAR", 0)
    assert MailPages(box).prepare()
    assert box.archive is not None
    (month,) = box.archive.months()
    path = box.archive.log(month).path
    with open(path, "r+b") as file:
        one, two, *_ = file.readlines()
        file.seek(0)
        file.write(two + one)
    assert box.send(drafts(wanted)[0]).message.id == wanted
    assert not box.state().messages


def test_mail_that_the_steward_moves_meanwhile_is_looked_up_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that was live at the look and archived at the lock is known."""
    box = mailbox(str(tmp_path))
    box.deliver("bob", lambda items: items)
    same = Draft(sender="amy", to=("bob",), content="once", id="11111111-1111-4111-8111-111111111111")
    box.send(same)
    box.deliver("bob", lambda items: items)
    find, looks = archived_mail.find_lines, []

    def find_then_rotate(*given: object) -> list[bytes]:
        looks.append(find(*given))  # type: ignore[arg-type]
        if len(looks) == 1:
            rotate(box)
        return looks[-1]

    monkeypatch.setattr(archived_mail, "find_lines", find_then_rotate)
    box.send(same)
    assert [len(found) for found in looks] == [0, 1]
    assert not box.state().messages


def test_a_given_id_costs_the_same_before_a_large_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index tells where it is, whatever else is archived."""
    monkeypatch.setattr(archived_mail, "NEAR", 0)
    cost = []
    for count in (100, 1000):
        (tmp_path / str(count)).mkdir()
        box, wanted = filled(tmp_path / str(count), count)
        assert MailPages(box).prepare()
        box.send(drafts(wanted)[0])
        cost.append(steps(lambda: box.send(drafts(wanted)[0])))  # noqa: B023 - called at once
    assert cost[1] < cost[0] * 1.3
