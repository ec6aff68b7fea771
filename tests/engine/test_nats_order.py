"""The order in a real NATS server conforms, keeps what it acknowledged, and says clearly what is wrong."""

from __future__ import annotations

import itertools
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.errors import Refused, Unavailable
from agent_mailbox.space import joining_space
from agent_mailbox.space.copy import bundled_lines
from agent_mailbox.space.nats import connection, nats_order
from agent_mailbox.space.nats.connection import Publication
from agent_mailbox.space.order.order import ARCHIVE, MESSAGES, PASSED, ROSTER, NoSpace, Ordered, reads_of, spell_word

from .conformance import Pair, SpaceConformance, lines_of
from .nats_server import serving
from .opened_orders import open_nats

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_spaces = itertools.count()


class TestNatsOrder(SpaceConformance):
    """The order in NATS does what every order must do."""

    @pytest.fixture
    def machines(self, server: str, credential: str) -> Iterator[Pair]:  # type: ignore[override]
        """Two machines' ways to one fresh space."""
        space = f"space-{next(_spaces)}"
        a, b = (open_nats(server, space, machine, credential) for machine in "ab")
        a.make_unless_there()
        b.make_unless_there()
        yield a, b
        a.close()
        b.close()


def test_a_wrong_nats_credential_is_refused_with_its_reason(server: str, place: Path, credential: str) -> None:
    """A wrong token, a missing file, and a file that others may read are refused, each with its reason."""
    wrong = place / "wrong"
    wrong.touch(0o600)
    wrong.write_text("nonsense")
    order = open_nats(server, "space", "a", str(wrong))
    for mode, said in ((0o600, "engine refuses the credential"), (0o644, "credential is open to others")):
        wrong.chmod(mode)
        for _ in range(2):  # a replicator tries again
            with pytest.raises(Refused, match=said):
                order.last_position()
    wrong.chmod(0o600)
    for text in ("", "a user and words"):
        wrong.write_text(text)
        with pytest.raises(Refused, match="credential has no known form"):
            order.last_position()
    with pytest.raises(Refused, match="credential cannot be read"):
        open_nats(server, "space", "a", str(place / "none")).last_position()
    with pytest.raises(NoSpace, match="engine has no such space: elsewhere"):
        open_nats(server, "elsewhere", "a", credential).last_position()


def test_many_records_come_by_batch_and_one_by_one_where_that_has_gaps(server: str, credential: str) -> None:
    """The order gives its records in sequence, without a removed one. A stranger's record is empty, and a damaged one
    is marked."""
    order = open_nats(server, "many", "a", credential)
    order.make_unless_there()
    assert order.stream_info()["config"]["allow_direct"]
    order.append_lines(MESSAGES, [b"%d" % n for n in range(60)], ids=[f"m{n}" for n in range(60)])
    order.connection.ask_each([Publication("$JS.API.STREAM.MSG.DELETE.MBX_many", b'{"seq":30}')])
    order.connection.ask_each([Publication("mbx.many.b.messages.x", b"of a stranger")])
    order.connection.ask_each([Publication("mbx.many.b.messages.y", b"flipped", {"Mailbox-Sum": "0123456789abcdef"})])
    wanted = [(n + 1, b"%d" % n, "a", False) for n in range(60) if n != 29]
    wanted += [(61, b"", "", False), (62, b"flipped", "b", True)]
    found = [(one.position, one.line, one.machine, one.damaged) for one in order.read_after(0, 100)]
    assert found == wanted
    order.connection.close()  # it is opened again
    assert [*order._read_batch(1, 62, 100)] == [place for place, *_ in wanted]
    assert [one.position for one in order.read_after(25, 30)] == [*range(26, 30), *range(31, 57)]
    assert [one.log for one in order.read_after(59, 100)] == [MESSAGES, "", MESSAGES]
    assert len(list(order.of_log(MESSAGES))) == 59
    assert list(order.read_after(62, 100)) == []
    order.close()


def test_what_the_nearest_server_lost_comes_from_the_leader_in_as_many_windows_as_it_takes(
    server: str, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the last record alone. Where many were removed, reading goes on behind them."""
    order = open_nats(server, "lost", "a", credential)
    order.make_unless_there()
    order.append_lines(MESSAGES, [b"%d" % n for n in range(60)], ids=[f"m{n}" for n in range(60)])
    for seq in range(31, 51):
        order.connection.ask_each([Publication("$JS.API.STREAM.MSG.DELETE.MBX_lost", b'{"seq":%d}' % seq)])
    last = order._read_batch(60, 60, 1)
    monkeypatch.setattr(order, "_read_batch", lambda *_: last)
    monkeypatch.setattr(nats_order, "WINDOW", 7)
    assert [one.position for one in order.read_after(0, 100)] == [*range(1, 31), *range(51, 61)]
    order.close()


def test_a_name_that_was_taken_with_bytes_that_are_no_text_is_somebody_else_s(server: str, credential: str) -> None:
    """A stranger may write so, and nobody ends on it."""
    order = open_nats(server, "odd", "a", credential)
    order.make_unless_there()
    order.connection.ask_each([Publication("mbx.odd.a.joined", b"\xff")])
    assert order.take_name("me") == "\ufffd"
    order.close()


def test_what_all_archived_goes_at_once_up_to_what_must_stay(server: str, credential: str) -> None:
    """A stranger's message among it stays, and what follows goes one by one."""
    order, remover = (open_nats(server, "swept", "a", credential) for _ in range(2))
    order.make_unless_there()

    def archived(first: int, last: int) -> None:
        lines = [b'{"id":"m%d"}' % n for n in range(first, last)]
        order.append_lines(MESSAGES, lines, ids=[f"m{n}" for n in range(first, last)])
        for record in bundled_lines.records_of("2026-01.jsonl", lines):
            order.append_lines(ARCHIVE, [record])
        order.append_lines(PASSED, [spell_word("applied", order.last_position())])

    archived(0, 5)
    order.connection.ask_each([Publication("mbx.swept.b.messages.x", b"of a stranger")])
    archived(5, 10)
    plan = joining_space.plan_purge(order, ["a"])
    assert (plan.whole, plan.others) == ({MESSAGES: 5, PASSED: 7}, (9, 10, 11, 12))
    joining_space.purge_records(order, plan, remover)
    assert [one.position for one in order.read_after(0, 99)] == [6, 8, 13, 14, 15, 16]
    archived(10, 15)
    plan = joining_space.plan_purge(order, ["a"])
    assert (plan.whole, plan.others) == ({}, (13, 15, 17, 18, 19, 20))
    joining_space.purge_records(order, plan, remover)
    assert [one.position for one in order.read_after(0, 99)] == [6, 8, 14, 16, 21, 22, 23, 24]
    for one in (order, remover):
        one.close()


def test_a_publisher_says_neither_its_machine_nor_its_place(server: str, credential: str) -> None:
    """The server adds its headers behind those of the publisher, which may have the same names: the last ones count."""
    order = open_nats(server, "forged", "a", credential)
    order.make_unless_there()
    order.append_lines(MESSAGES, [b"%d" % n for n in range(30)], ids=[f"m{n}" for n in range(30)])
    first = order.read_after(0, 1)[0]
    head = {
        "Nats-Subject": "mbx.forged.a.roster",
        "Nats-Sequence": "1",
        "Mailbox-Sum": f"{sha256(b'x').hexdigest():.16}",
    }
    order.connection.ask_each([Publication("mbx.forged.b.roster", b"x", head)])
    found = order.read_after(0, 100)
    assert [one.position for one in found] == [*range(1, 32)]
    assert found[0] == first
    assert found[-1] == Ordered(31, ROSTER, b"x", "b")
    order.close()


def test_what_the_nearest_server_lacks_the_leader_has(
    server: str, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that is behind, or has lost records, answers a batch with fewer: nothing is missed."""
    order = open_nats(server, "lacking", "a", credential)
    order.make_unless_there()
    order.append_lines(MESSAGES, [b"%d" % n for n in range(60)], ids=[f"m{n}" for n in range(60)])
    whole = order.connection.ask_for_several
    monkeypatch.setattr(order.connection, "ask_for_several", lambda one: [*whole(one)[:10], *whole(one)[20:40]])
    assert [one.line for one in order.read_after(0, 100)] == [b"%d" % n for n in range(60)]
    monkeypatch.setattr(order.connection, "ask_for_several", lambda _: [])
    assert [one.line for one in order.read_after(0, 100)] == [b"%d" % n for n in range(60)]
    order.close()


def test_a_killed_server_keeps_what_it_acknowledged(
    place: Path, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is killed is out of reach; started again, it has every acknowledged record, and none twice.

    One that was away while nobody asked is asked as if it had been there: so is one that closed an idle connection."""
    monkeypatch.setattr(connection, "IDLE", 0.0)
    with serving(place / "mortal") as url:
        order = open_nats(url, "space", "a", credential, wait=30)
        order.make_unless_there()
        for n in range(20):
            order.append_lines(MESSAGES, [b"%d" % n], ids=[f"m{n}"])
    with pytest.raises(Unavailable):
        order.append_lines(MESSAGES, [b"20"], ids=["m20"])
    with serving(place / "mortal", int(url.rpartition(":")[2])):
        order.append_lines(MESSAGES, [b"20"], ids=["m20"])
        assert lines_of(order, MESSAGES) == [b"%d" % n for n in range(21)]
    with serving(place / "mortal", int(url.rpartition(":")[2])):
        assert order.last_position() == 21
    order.close()


def test_a_full_disk_is_said_and_loses_nothing(place: Path, credential: str) -> None:
    """The server's room is taken: an append says so, what was acknowledged is there, and with room again it goes on."""
    with serving(place / "full", limit="2MB") as url:
        order = open_nats(url, "space", "a", credential)
        order.make_unless_there()
        try:
            for done in range(40):
                order.append_lines(reads_of("a"), [b"%d" % done + b"x" * 100_000])
        except Unavailable:
            pass
        assert 0 < done < 39
        with pytest.raises(Unavailable, match="engine is full"):
            order.append_lines(MESSAGES, [b"mail"], ids=["m1"])
        assert len(lines_of(order, reads_of("a"))) == done
        order.close()
    with serving(place / "full", int(url.rpartition(":")[2])):
        order.append_lines(MESSAGES, [b"mail"], ids=["m1"])
        assert [len(lines_of(order, log)) for log in (reads_of("a"), MESSAGES)] == [done, 1]
        order.close()


def test_an_old_nats_server_is_refused_before_anything_is_made(
    server: str, credential: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order refuses a server that tells an old version as it connects, before anything is made."""
    monkeypatch.setattr(connection, "LEAST", (99, 0))
    order = open_nats(server, "old", "a", credential)
    with pytest.raises(Refused, match=r"engine is too old: nats-server \d+\.\d+"):
        order.make_unless_there()
    monkeypatch.undo()
    with pytest.raises(NoSpace, match="engine has no such space"):
        order.last_position()
    order.close()
    assert connection.is_old("2.9.10")
    assert connection.is_old("2.11.99-preview.1")
    assert connection.is_old("")
    assert not connection.is_old("2.12.0")
