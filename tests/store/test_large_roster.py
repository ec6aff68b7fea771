"""A roster of many: what a change of it costs, and the stamps of all at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from agent_mailbox.core import codec, line_forms, roster_cache
from agent_mailbox.core.records import RosterEvent
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.roster_cache import RosterCache
from agent_mailbox.store.files import lines as lines_in
from agent_mailbox.store.files import small_files
from agent_mailbox.store.log import logs, stamps
from agent_mailbox.store.log.stamps import EVERYONE, StampFiles

if TYPE_CHECKING:
    from tests.helpers import Post

COUNT = 40


def registered(session_id: str, at: int = 0, **more: Any) -> bytes:
    """The line of a registration."""
    return codec.spell_event(RosterEvent("register", session_id, at, **more))


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> logs.Logs:
    """A mailbox whose rollbook counts as too long to be written for every change."""
    monkeypatch.setattr(logs, "SHORT", 1000)
    (tmp_path / "agent-roster.jsonl").write_bytes(b"".join(registered(f"agent-{n:06}", n) for n in range(COUNT)))
    found = logs.Logs(str(tmp_path))
    found.read_roster()
    return found


def anew(found: logs.Logs) -> logs.Logs:
    """The same mailbox, opened by another process."""
    return logs.Logs(found.directory)


def test_a_change_is_folded_from_the_log_until_there_are_many(many: logs.Logs) -> None:
    """The book stays as it is for one change. Then it is written again, and is that of the whole fold."""
    path = many.rollbook
    first = small_files.load_derived(path)
    with many.roster.held() as log:
        log.append([registered("new", 1, name="Ann")], EVERYONE)
    found = anew(many).read_roster()
    assert found.find("Ann").session_id == "new"
    assert small_files.load_derived(path) == first
    with many.roster.held() as log:
        log.append([registered(f"more-{n}", 2) for n in range(logs.NEWS // 50)], EVERYONE)
    anew(many).read_roster()
    whole = Roster(logs.parse_roster(many.roster.lines()))
    assert (small_files.load_derived(path) or b"").partition(b"\n")[2] == roster_cache.written(whole)


@pytest.mark.parametrize("ruin", [b"", b"x" * 64], ids=["cut", "other bytes"])
def test_a_book_that_its_writer_left_torn_counts_for_nothing(many: logs.Logs, ruin: bytes) -> None:
    """Without its seal, which is the last thing a writer does, the whole log is folded."""
    path = Path(many.rollbook)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2] + ruin)
    with many.roster.held() as log:
        log.append([registered("new", 1)], EVERYONE)
    assert len(anew(many).read_roster().agents) == COUNT + 1


def test_the_log_that_a_book_was_not_made_of_is_folded_whole(many: logs.Logs) -> None:
    """Another log in its place, longer or shorter, has its own agents."""
    path = Path(many.roster.path)
    text = path.read_bytes()
    for other in (text + registered("new"), registered("alone")):
        path.unlink()
        path.write_bytes(other)
        for found in (many, anew(many)):
            assert list(found.read_roster().agents) == [e.session_id for e in map(codec.roster_event, lines(other))]


def test_a_change_reads_the_book_once(many: logs.Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind its own change a process goes on with the text that it has, as long as the log continues it by little."""
    read, load = [], small_files.load_derived
    monkeypatch.setattr(logs.small_files, "load_derived", lambda path: read.append(path) or load(path))
    found = anew(many)
    for number in range(3):
        with found.roster.held() as log:
            found.read_roster()
            log.append([registered(f"new-{number}", 1)], EVERYONE)
        assert found.read_roster().get(f"new-{number}") is not None
    assert read == [many.rollbook]
    with many.roster.held() as log:
        log.append([registered(f"more-{n}", 2) for n in range(logs.NEWS // 50)], EVERYONE)
    assert len(found.read_roster().agents) == len(anew(many).read_roster().agents)


NEWCOMER = "1bd4f3a0-5c1e-4a7b-9b06-2f1f0c9d8e7a"


@pytest.mark.parametrize(
    "words",
    [
        ("roster", "register", "--session-id", NEWCOMER, "--name", "new", "--tags", "role:r"),
        ("roster", "show", "agent-000001"),
        ("status", "--session", "agent-000001"),
        ("dead-letters", "--session", "agent-000001"),
        ("check", "--session", "agent-000001"),
        ("send", "--from", "agent-000001", "--to", "agent-000002", "--body", "b"),
        ("send", "--from", "agent-000001", "--to", "role:r", "--body", "b"),
        ("roster", "retire", "--session-id", "agent-000003"),
    ],
    ids=lambda words: " ".join(word for word in words if not word.startswith("agent-")),
)
def test_the_usual_verbs_look_at_few_agents_of_many(
    post: Post, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that concerns one agent or two never decodes the whole roster, which has some role mail that waits."""
    known = (registered(f"agent-{n:06}", n, tags=("role:r",)) for n in range(COUNT))
    post.file("agent-roster.jsonl").write_bytes(b"".join(known))
    post.send("agent-000001", "role:r")
    post.ok("status", "--session", "agent-000001")

    def refuse(_: RosterCache) -> NoReturn:
        raise AssertionError(f"{words} decodes all agents")

    monkeypatch.setattr(RosterCache, "agents", property(refuse))
    assert post.call(*words).rc == 0


def lines(text: bytes) -> list[bytes]:
    return text.splitlines()


def test_a_read_is_somebody_s_however_another_program_spells_the_id() -> None:
    """A read may be a session's even if another program spells the session's id with escapes. A session that read mail
    may owe that mail at its end."""
    assert line_forms.may_be_read_by(b'{"message_id":"m","reader_session_id":"bob"}', [b"bob"])
    assert line_forms.may_be_read_by(b'{"message_id":"m","reader_session_id":"\\u0062ob"}', [b"bob"])
    assert not line_forms.may_be_read_by(b'{"message_id":"m","reader_session_id":"ann"}', [b"bob"])


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("size", [1, 70, 1 << 16])
def test_the_reads_of_some_are_found_among_all(tmp_path: Path, size: int, many: bool) -> None:
    """Each at its place, however the log falls into chunks, with a torn end, too."""
    text = b"".join(b'{"message_id":"m","reader_session_id":"s-%d"}\n' % (n % 7) for n in range(30)) + b'\n{"reader_s-3'
    (tmp_path / "reads").write_bytes(text)
    fd = os.open(tmp_path / "reads", os.O_RDONLY)
    try:
        chunks = lines_in.line_chunks(fd, len(text), size=size)
        others = [b"none-%d" % number for number in range(line_forms.MANY * many)]
        found = list(line_forms.lines_read_by(chunks, [b"s-3", b"s-5", *others]))
        assert found == [at for at in lines_in.lines_of(fd) if line_forms.may_be_read_by(at[1], [b"s-3", b"s-5"])]
    finally:
        os.close(fd)
    assert len(found) == 9


def stamped(tmp_path: Path, count: int) -> StampFiles:
    """The stamps of a mailbox in which so many sessions have no news."""
    (tmp_path / "box").mkdir(exist_ok=True)
    stamp_files = StampFiles(str(tmp_path / "box/.cache"), str(tmp_path / "state"))
    for number in range(count):
        stamp_files.stamp(f"s-{number}", 0)
    return stamp_files


def asides(tmp_path: Path) -> list[str]:
    return sorted(name for name in os.listdir(tmp_path / "box/.cache") if name != "quiet")


@pytest.mark.parametrize("whom", [EVERYONE, [f"s-{n}" for n in range(stamps.MANY + 1)]], ids=["all", "a tag of many"])
def test_the_stamps_of_many_go_in_one_step(tmp_path: Path, whom: list[str] | None) -> None:
    """No guard finds one; the steward removes the files, and a session that looked has a stamp again."""
    stamp_files = stamped(tmp_path, stamps.MANY + 1)
    stamp_files.disturb(whom)
    assert not any(stamp_files.is_quiet(f"s-{n}") for n in range(stamps.MANY + 1))
    assert len(asides(tmp_path)) == 1
    stamp_files.stamp("s-0", 0)
    stamp_files.sweep()
    assert (asides(tmp_path), stamp_files.is_quiet("s-0")) == ([], True)


def test_stamps_put_aside_are_bounded(tmp_path: Path) -> None:
    """Directories of stamps that are put aside do not grow in number where no steward runs. The stamps go all the
    same."""
    stamp_files = stamped(tmp_path, 0)
    for number in range(stamps.ASIDES):
        (tmp_path / f"box/.cache/quiet.gone-{number}").mkdir(parents=True)
        (tmp_path / f"box/.cache/quiet.gone-{number}/s").touch()
    stamp_files = stamped(tmp_path, stamps.MANY + 1)
    stamp_files.disturb(EVERYONE)
    assert not any(stamp_files.is_quiet(f"s-{n}") for n in range(stamps.MANY + 1))
    assert len(asides(tmp_path)) == stamps.ASIDES


def test_a_link_in_the_place_of_stamps_is_not_followed_by_the_sweep(tmp_path: Path) -> None:
    """A checkout may bring one: what it points at stays."""
    stamp_files, elsewhere = stamped(tmp_path, 1), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    (tmp_path / "box/.cache/quiet.gone-0").symlink_to(elsewhere)
    stamp_files.sweep()
    assert (elsewhere / "precious").exists()
