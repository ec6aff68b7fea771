"""A cursor that begins in large logs looks through them as bytes; it answers as the pure function does."""

from __future__ import annotations

import itertools
import json
import os
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from agent_mailbox import Mailbox, Request
from agent_mailbox.core import codec, inbox, instant
from agent_mailbox.core.records import Read
from agent_mailbox.store.files import paths
from agent_mailbox.store.log import scan
from agent_mailbox.store.log.logs import OpenLogs
from agent_mailbox.store.polling import poll
from agent_mailbox.store.polling.poll import Poll
from tests.store.history import mailbox

if TYPE_CHECKING:
    pass

NOW = instant.parse("2026-03-16T12:00:00Z")
UUIDS = tuple(f"{k:08x}-0000-4000-8000-000000000000" for k in range(6))
IDS = (*UUIDS[:4], "short", 'quo"te', "ümlaut", "ü" * 6)
COMPACT = (",", ":")

ages = st.sampled_from((0, 1, 5, 30, 60, 80, 500)).map(lambda hours: instant.text(NOW - hours * instant.HOUR))
instants = ages | st.sampled_from(("2024-02-29T00:00:00.000Z", "2026-02-30T00:00:00.000Z", "2026-03-16 11:00", "once"))
mail = st.fixed_dictionaries(
    {
        "sender": st.sampled_from((UUIDS[5], "zed", "me")),
        "recipient": st.sampled_from(
            (
                *("me", "nan", "role:dev", "dev", "role:ops", "project:ü", "all", "other"),
                *("role:nan", "role:old", ["role:dev", "role:ops"], ["me"]),
            )
        ),
        "timestamp": instants,
        "content": st.sampled_from(("x", "} y", '","recipient":"me","', "für dich")),
        "thread": st.none(),
        "ttl_hours": st.sampled_from((None, None, 1, 300)),
        "read_by": st.just([]),
    },
    optional={
        "ack": st.just(True),
        "bare": st.sampled_from((["nan"], ["old"], ["nan", "old"], ["other"], "nan")),
        "metadata": st.sampled_from(({"ttl_hours": None, "read_by": []}, {"a": "b", "recipient": "me"})),
    },
)
reads = st.fixed_dictionaries(
    {
        "message_id": st.sampled_from(IDS),
        "reader_session_id": st.sampled_from(("me", "old", "you", "ü")),
        "timestamp": instants,
        "event": st.sampled_from(("read", "read", "read", "ack", "release", "seen", "claim", "what")),
    },
    optional={"as": st.sampled_from(("role:dev", "role:ops", "role:nan", "me", "project:x")), "title": st.just(True)},
)
spellings = st.sampled_from((COMPACT, COMPACT, COMPACT, (", ", ": ")))
ends = st.sampled_from((b"\n", b"\n", b"\n", b"\n\n", b"", b'\n{"torn":"\n'))


def _line(obj: dict[str, Any], spelling: tuple[str, str], end: bytes, ascii_only: bool) -> bytes:
    return json.dumps(obj, separators=spelling, ensure_ascii=ascii_only).encode() + end


def _lines(objects: st.SearchStrategy[dict[str, Any]], most: int) -> st.SearchStrategy[bytes]:
    return st.lists(st.builds(_line, objects, spellings, ends, st.booleans()), max_size=most).map(b"".join)


def _mailed(objects: list[dict[str, Any]]) -> st.SearchStrategy[bytes]:
    """Messages with ids, each once."""
    told = [{"id": message_id, **obj} for message_id, obj in zip(IDS, objects, strict=False)]
    return st.tuples(*(st.builds(_line, st.just(obj), spellings, ends, st.booleans()) for obj in told)).map(b"".join)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Mailbox:
    """A mailbox with a reader that continues another, two roles, a tag and a name."""
    root = tmp_path_factory.mktemp("scan")
    made = mailbox(str(root), lambda: NOW)
    made.register(Request(session_id="old", name="nan"), "user")
    made.end("old", "retire", "user")
    made.register(
        Request(session_id="me", name="nan", roles=("role:dev", "role:ops"), tags=("project:x", "project:ü")), "user"
    )
    return made


def _answers(box: Mailbox, messages: bytes, reads: bytes) -> tuple[list[str], list[str]]:
    """What the scan and the pure function find unread."""
    for name, data in ((paths.MESSAGES, messages), (paths.READS, reads)):
        with open(os.path.join(box.directory, name), "wb") as file:
            file.write(data)
    cursor = box.logs.cache("cursors", "me")
    if os.path.exists(cursor):
        os.unlink(cursor)
    asked = Poll(box.logs, "me", box.config).unread(NOW)
    return [i.message.id for i in asked], [i.message.id for i in inbox.unread("me", box.state(), NOW)]


@given(st.lists(mail, max_size=len(IDS)).flatmap(_mailed), _lines(reads, 12), st.sampled_from((60, 700, 1 << 20)))
@settings(max_examples=2 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_scan_holds_nothing_back(box: Mailbox, messages: bytes, reads: bytes, chunk: int) -> None:
    """Whatever the lines look like, and wherever a stretch of the log ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(poll, "LARGE", 0)
        patch.setattr(scan, "CHUNK", chunk)
        scanned, pure = _answers(box, messages, reads)
    assert scanned == pure


any_mail = st.builds(lambda message_id, obj: {"id": message_id, **obj}, st.sampled_from(IDS), mail)


@given(_lines(any_mail, 12), _lines(reads, 12))
@settings(max_examples=2 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_small_log_is_sieved_and_answers_alike(box: Mailbox, messages: bytes, reads: bytes) -> None:
    """Lines that are passed by undecoded change nothing; of an id written twice the first counts, whoever it is for."""
    found, pure = _answers(box, messages, reads)
    assert found == pure


@pytest.mark.parametrize("first", ["other", "torn"])
def test_of_an_id_the_first_message_counts_and_not_what_is_left_of_one(box: Mailbox, first: str) -> None:
    """Mail for somebody else keeps a later message of its id from being read; a torn line of that id does not."""
    before = _told("other") if first == "other" else _told("other")[:80] + b"\n"
    found, pure = _answers(box, before + _told("me"), b"")
    assert found == pure == ([] if first == "other" else [UUIDS[0]])


@pytest.mark.parametrize("more", [{}, {"nonce": "1a2b3c", "tokens": 30, "title": True}], ids=["check", "hook"])
def test_what_is_left_out_is_what_costs(box: Mailbox, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]) -> None:
    """Mail for others, expired mail and claimed role mail never reach the decoder; all else does."""
    monkeypatch.setattr(poll, "LARGE", 0)
    day, now = instant.text(NOW - 50 * instant.HOUR), instant.text(NOW)
    mail = itertools.product(("me", "role:dev", "all", "other"), (day, now))
    told = [
        {"id": i, "sender": UUIDS[5], "recipient": to, "timestamp": at, "content": "c", "thread": None}
        | {"ttl_hours": None, "read_by": []}
        for i, (to, at) in zip((*IDS[:4], *(i.replace("0000-", "1111-") for i in IDS[:4])), mail, strict=True)
    ]
    messages = b"".join(_line(obj, COMPACT, b"\n", False) for obj in told)
    claim = codec.spell_read(Read(told[2]["id"], "you", NOW, via="role:dev", **more))
    scanned, pure = _answers(box, messages, claim)
    assert scanned == pure == [told[k]["id"] for k in (1, 3, 5)]
    roster = box.logs.read_roster()
    with OpenLogs(box.logs) as logs:
        positions, about = scan.lines(logs, roster.reader("me"), roster, NOW, box.config.ttls)
    assert [messages[p:].partition(b"\n")[0] for p in positions] == [messages.splitlines()[k] for k in (1, 3, 5)]
    assert about == []


def _told(to: str, hours_ago: int = 0, **more: Any) -> bytes:
    when = instant.text(NOW - hours_ago * instant.HOUR)
    line = {"id": UUIDS[0], "sender": UUIDS[5], "recipient": to, "timestamp": when, "content": "c", "thread": None}
    return _line({**line, "ttl_hours": None, "read_by": [], **more}, COMPACT, b"\n", False)


def _claim(event: str = "read", when: str = instant.text(NOW)) -> bytes:
    line = {"message_id": UUIDS[0], "reader_session_id": "you", "timestamp": when, "event": event, "as": "role:dev"}
    return _line(line, COMPACT, b"\n", False)


_ENDS_LATER = f'an-id-of-20-letters-","expires_at":"{instant.text(NOW + 1)}","sender":"of-12-letter'.encode()
"""As long as the id and the sender of other lines."""
_ENDS_IN_ITS_ID = b'x","expires_at":"2099-01-01T00:00:00'
"""As long as an id."""
NOT_DEALT_WITH = {
    "given back": (_told("role:dev"), _claim() + _claim("release")),
    "given back by a program that leaves blanks": (
        _told("role:dev"),
        _claim() + _claim("release").replace(b'"event":', b'"event": '),
    ),
    "claimed on a day there is not": (_told("role:dev"), _claim(when="2026-02-30T00:00:00.000Z")),
    "old, with a life of its own": (_told("me", 60, ttl_hours=300), b""),
    "and one inside that says otherwise": (
        _told("me", 60, ttl_hours=300, metadata={"m": {"ttl_hours": None, "read_by": []}}),
        b"",
    ),
    "and its end told where other lines have their sender": (
        _told("other") + _told("me", 60).replace(f'{UUIDS[0]}","sender":"{UUIDS[5]}'.encode(), _ENDS_LATER),
        b"",
    ),
    "and its end told where other lines have their id": (
        _told("other") + _told("me", 60).replace(UUIDS[0].encode(), _ENDS_IN_ITS_ID),
        b"",
    ),
    "behind what is left of a line with its id": (_told("me")[:-20] + b"\n" + _told("me"), b""),
    "behind what is left of a line with its id, for a role": (
        _told("role:dev")[:-20] + b"\n" + _told("me"),
        _claim(),
    ),
    "an id in escapes": (
        _told("role:dev").replace(UUIDS[0].encode(), b"\\u0066" * 6),
        _claim().replace(UUIDS[0].encode(), b"ffffff") + _claim("release").replace(UUIDS[0].encode(), b"ffffff"),
    ),
}


@pytest.mark.parametrize("why", NOT_DEALT_WITH)
def test_what_only_looks_dealt_with_is_unread(box: Mailbox, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """The marks that let a line be passed over unread, each where it does not mean that."""
    monkeypatch.setattr(poll, "LARGE", 0)
    scanned, pure = _answers(box, *NOT_DEALT_WITH[why])
    assert scanned == pure
    assert len(pure) == 1


def test_an_id_in_escapes_is_known_by_its_reads(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """However either line spells it."""
    monkeypatch.setattr(poll, "LARGE", 0)
    message = _told("me").replace(UUIDS[0].encode(), b"\\u0066" * 6)
    read = _claim().replace(UUIDS[0].encode(), b"ffffff").replace(b'"you"', b'"me"')
    assert _answers(box, message, read) == ([], [])
