"""Derived files that are anything but what we left: the answers stay those of the logs.

The pure definition is computed from a copy in which there is nothing derived. Damage as a disk, a crash or a careless
program does it changes a file's time, by which the files are sealed; a forger may keep the time, and then gets wrong
answers for his trouble, but no crash.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox import Draft, Mailbox
from agent_mailbox.core import inbox
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.errors import MailboxError
from agent_mailbox.mailbox.queries import MailQueries
from tests.claude.shim import ME, SHELLS, Shim
from tests.fuzz import strategies as some
from tests.helpers import MESSAGES, Post, record

if TYPE_CHECKING:
    from collections.abc import Callable

READERS = ("ann", "bob", "cat", "dee")
DERIVED = ("cursors/ann", "cursors/bob", "ends/agent-mailbox", "ends/agent-mailbox-reads", "ends/agent-roster")
DERIVED += ("roster", "projection.sqlite", "projection.sqlite-journal", "cursors", "ends", "quiet")
DERIVED += ("projection.lock", "")
HOWS = ("flip", "cut", "noise", "more", "empty", "gone", "directory", "link")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mailbox in which everything derived is there: read, unread, claimed and archived mail, a successor."""
    post = Post(tmp_path_factory.mktemp("derived"))
    box = Mailbox(str(post.box))
    for name in READERS:
        box.register(
            Registration(session_id=name, roles=("x",) if name in "bob cat" else None, tags=("project:p",)), name
        )
    box.register(Registration(session_id="old", name="eve"), "old")
    for number in range(3):
        for to in (*READERS, "role:x", "project:p", "all", "old"):
            box.send(Draft(sender="dee", to=(to,), content=f"{to} {number} alpha", ack=number == 0))
        for name in ("ann", "bob", "cat")[: number + 1]:
            box.deliver(name, lambda items: items[:4])
    box.end("old", "freeze", "user")
    box.register(Registration(session_id="dee", event="update", name="eve"), "user")
    post.append(MESSAGES, record("zed", "bob", "foreign alpha"), b'{"id":"torn')
    box.deliver("ann", lambda items: items)
    MailQueries(box).search("alpha", 5)
    box.send(Draft(sender="ann", to=("cat",), content="not yet indexed alpha"))
    return post.box


def answers(box: Mailbox) -> dict[str, Any]:
    """Everything one may ask."""
    queries = MailQueries(box)
    found: dict[str, Any] = {name: [i.message.id for i in box.peek(name)] for name in READERS}
    found["search"] = [m.id for m in queries.search("alpha", 7)[0]]
    found["history"] = [m.id for m in queries.history("dee", limit=9)[0]]
    found["roster"] = [(a.session_id, a.name, a.state, a.continues) for a in box.logs.read_roster().agents.values()]
    return found


def spoil(path: Path, how: str, place: int, noise: bytes, *, forged: bool = False) -> None:
    """Damage a derived file, or put something else in its place; ``forged``: its time stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
        if how not in ("gone", "directory"):
            path.write_bytes(noise)
        return
    content = path.read_bytes() if path.exists() else b""
    at = path.stat().st_mtime_ns if path.exists() else 0
    place %= len(content) + 1
    flipped = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] if content[place:] else noise
    made = {"flip": flipped, "cut": content[:place], "more": content + noise, "empty": b""}
    path.unlink(missing_ok=True)
    if how == "directory":
        path.mkdir()
    elif how == "link":
        path.symlink_to(path.parent / "elsewhere")
    elif how != "gone":
        path.write_bytes(made.get(how, content[:place] + noise + content[place + len(noise) :]))
        if forged:
            os.utime(path, ns=(at, at))


def copy(whole: Path, to: Path) -> Path:
    """A copy with all times, so that every seal still fits."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(whole, to, symlinks=True)
    _same_inodes(whole, to)
    return to


def _same_inodes(whole: Path, to: Path) -> None:
    """The logs themselves by hard link: the derived files know them by their inodes."""
    for name in whole.glob("*.jsonl"):
        (to / name.name).unlink()
        os.link(name, to / name.name)


damages = st.lists(
    st.tuples(st.sampled_from(DERIVED), st.sampled_from(HOWS), st.integers(0, 20_000), st.binary(max_size=40)),
    min_size=1,
    max_size=3,
)


def test_a_look_at_a_fresh_copy_changes_no_derived_file(whole: Path, tmp_path: Path) -> None:
    """A look at a fresh copy of the mailbox changes no derived file. The files that other tests damage would therefore
    be used."""
    box = copy(whole, tmp_path / "box")
    before = {path: path.read_bytes() for path in (box / ".cache").rglob("*") if path.is_file()}
    found = {str(p.relative_to(box / ".cache")) for p in before}
    assert found >= {"cursors/ann", "ends/agent-mailbox", "projection.sqlite"}
    for name in READERS:
        Mailbox(str(box)).peek(name)
    assert {path: path.read_bytes() for path in before} == before


@some.budget(2)
@given(damages=damages)
def test_no_damage_changes_an_answer(whole: Path, tmp_path: Path, damages: list[tuple[str, str, int, bytes]]) -> None:
    """Damage to derived files changes no answer and hides no mail. It keeps nobody from sending and reading."""
    place = copy(whole, tmp_path / "box")
    shutil.rmtree(place / ".cache")
    wanted = answers(Mailbox(str(place)))
    place = copy(whole, tmp_path / "box")
    for name, how, where, noise in damages:
        if (place / ".cache" / name).parent.is_dir():
            spoil(place / ".cache" / name, how, where, noise)
    assert answers(Mailbox(str(place))) == wanted
    _works(place)


def _works(place: Path) -> None:
    for log in place.glob("*.jsonl"):  # ours alone from here on
        aside = log.with_suffix(".own")
        shutil.copy2(log, aside)
        aside.replace(log)
    box = Mailbox(str(place))
    sent = box.send(Draft(sender="ann", to=("bob",), content="new")).message.id
    shown: list[str] = []
    assert sent in [item.message.id for item in box.peek("bob")]
    box.deliver("bob", _noting(shown))
    assert shown.count(sent) == 1
    assert box.peek("bob") == []
    state = box.state()
    for name in READERS:
        assert not box.logs.stamp_files.is_quiet(name) or not inbox.unread(name, state, box.now())


def _noting(shown: list[str]) -> Callable[[list[inbox.Item]], list[inbox.Item]]:
    def show(items: list[inbox.Item]) -> list[inbox.Item]:
        shown.extend(item.message.id for item in items)
        return items

    return show


@some.budget(2)
@given(damages=damages)
def test_no_forgery_is_a_defect(whole: Path, tmp_path: Path, damages: list[tuple[str, str, int, bytes]]) -> None:
    """A derived file that was changed and has its old time may mislead; it never crashes a command. (The rollbook is
    the exception: it is taken apart only as far as it is asked, and trusted with its time.)"""
    place = copy(whole, tmp_path / "box")
    for name, how, where, noise in damages:
        if name != "roster" and (place / ".cache" / name).parent.is_dir():
            spoil(place / ".cache" / name, how, where, noise, forged=True)
    box = Mailbox(str(place))
    try:
        answers(box)
        box.deliver("bob", list)
    except MailboxError:
        pass


@some.budget(10)
@given(pointer=st.binary(max_size=60), stale=st.booleans())
def test_no_pointer_makes_the_guard_say_nothing_falsely(
    tmp_path: Path, shell_guard: Shim, pointer: bytes, stale: bool
) -> None:
    """Whatever is in the file by which the guard finds a session's mailbox: with mail waiting, Python looks."""
    path = shell_guard.post.home / ".local/state/agent-mailbox/sessions" / ME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pointer + (str(tmp_path / "none").encode() if stale else b""))
    for shell in SHELLS[:1]:
        shell_guard.hook("Stop", shell, env={"AGENT_MAILBOX_DIR": None})
        assert shell_guard.starts() == 1


@pytest.fixture
def shell_guard(post: Post) -> Shim:
    """A session that has mail, and a checkout that counts how often the guard lets Python look."""
    made = Shim(post)
    made.hook("SessionStart")
    post.send("ann", ME)
    made.starts()
    return made
