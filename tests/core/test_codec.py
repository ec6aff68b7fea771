"""Lines: what we write reads back, and of what others write only a record or a ``BadLine`` ever comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_mailbox.core import address, codec, instant
from agent_mailbox.core.records import (
    MAX_TTL_HOURS,
    PRIORITIES,
    READ_EVENTS,
    ROSTER_EVENTS,
    TYPES,
    WHENS,
    BadLine,
    Message,
    Read,
    Record,
    RosterEvent,
)

from . import build
from .build import T0, at


def message(*given: Any, **said: Any) -> Message:
    """A message as a line says it: what is proven of its writer no codec knows."""
    return build.message(*given, **said, proof=None)


def read(*given: Any, **said: Any) -> Read:
    """A line of the reads log."""
    return build.read(*given, **said).replace(proof=None)


def ack(*given: Any) -> Read:
    """The line by which a session says it dealt with a message."""
    return build.ack(*given).replace(proof=None)


def event(*given: Any, **said: Any) -> RosterEvent:
    """A line of the roster log."""
    return build.event(*given, **said, proof=None)


def register(*given: Any, **said: Any) -> RosterEvent:
    """A session registers."""
    return build.register(*given, **said, proof=None)


READERS = [codec.message, codec.read, codec.roster_event]
RECORDS = (Message, Read, RosterEvent)
KEYS = [
    *("id", "sender", "recipient", "timestamp", "subject", "content", "thread", "ttl_hours", "read_by"),
    *("type", "when", "expires_at", "ack", "priority", "references", "attachments", "metadata"),
]

DRAWN: dict[type[Record], set[str]] = {}
"""The fields of each record that are drawn below."""


def drawn(kind: type[Record], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw records of a kind, with these fields."""
    DRAWN[kind] = {*fields}
    return st.builds(kind, **fields)


words = st.text(min_size=1, max_size=20)
times = st.integers(instant.parse("1600-01-01"), instant.parse("3000-01-01"))
plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
something = plain_json.filter(lambda value: value is not None)
unknown_keys = st.dictionaries(
    st.sampled_from(["from", "to", "body", "x-trace", "reader", "mood", "ﬁn", ""]) | words,
    plain_json,
    min_size=1,
    max_size=4,
).filter(lambda extra: not extra.keys() & {*KEYS, "seal"})  # a foreign line's seal is known, and taken off
messages = drawn(
    Message,
    id=words,
    sender=words,
    recipients=st.lists(words, min_size=1, max_size=4, unique=True).map(tuple),
    timestamp=times,
    content=st.text(min_size=1),
    subject=st.none() | words,
    thread=st.none() | words,
    ttl_hours=st.none() | st.integers(1, MAX_TTL_HOURS),
    expires_at=st.none() | times.filter(bool),
    type=st.sampled_from(TYPES),
    when=st.none() | st.sampled_from(WHENS),
    ack=st.booleans(),
    priority=st.sampled_from(PRIORITIES),
    references=st.none() | something,
    attachments=st.none() | something,
    metadata=st.none() | something,
    extra=st.none() | unknown_keys,
)
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,20}", fullmatch=True).filter(address.is_id)
tags = st.from_regex(r"[a-z]{1,9}:[a-z0-9][a-z0-9./#-]{0,9}", fullmatch=True)
reads = drawn(
    Read,
    message_id=words,
    session_id=ids,
    timestamp=times,
    event=st.sampled_from(READ_EVENTS),
    via=st.none() | words,
    nonce=st.none() | words,
    tokens=st.none() | st.integers(0, (1 << 53) - 1),
    title=st.booleans(),
)
roster_events = drawn(
    RosterEvent,
    event=st.sampled_from(ROSTER_EVENTS),
    session_id=ids,
    timestamp=times,
    name=st.none() | ids,
    tags=st.none() | st.lists(tags, max_size=4, unique=True).map(tuple),
    lead=st.none() | ids,
    continues=st.none() | ids,
    by=st.none() | words,
    reason=st.none() | words,
    client=st.none() | words,
    muted=st.none() | st.lists(words, max_size=4, unique=True).map(tuple),
)


def line_of(obj: object) -> bytes:
    """A line as a foreign writer spells it, escapes and all."""
    return json.dumps(obj).encode()


def a_message(**changes: object) -> dict[str, object]:
    """The JSON object of a small canonical message."""
    return {
        "id": "m1",
        "sender": "ann-1",
        "recipient": "bob-1",
        "timestamp": "2026-03-16T12:00:00.000Z",
        "content": "hello",
        "thread": None,
        "ttl_hours": None,
        "read_by": [],
        **changes,
    }


A_READ = {"message_id": "m1", "reader_session_id": "bob-1", "timestamp": "2026-03-16T12:00:00Z"}
AN_EVENT = {"event": "register", "session_id": "bob-1", "timestamp": "2026-03-16T12:00:00Z"}


# -- round trips ------------------------------------------------------------------------------------------------------


def test_each_field_of_a_record_is_drawn():
    """The tests below draw whatever a line may have; who wrote it, and who read it, is told beside the line."""
    beside = {"proof", "written_by", "read_by"}
    undrawn = {kind.__name__: {*kind._fields} - beside - DRAWN[kind] for kind in RECORDS}
    assert not any(undrawn.values()), f"draw the new field above; a message's key stands in KEYS, too: {undrawn}"


@given(messages)
@example(message(content="\u2028\u2029\x85\r\n\x00\U0001f600", extra={"from": "x", "": [None, {"k": 1.5}]}))
def test_a_message_reads_back_as_it_was_written_unknown_keys_included(written):
    """Writing and reading a message changes nothing, and it takes exactly one line."""
    line = codec.spell_message(written)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert codec.message(line) == written
    assert codec.message(line.rstrip(b"\n")) == written


@given(reads)
def test_a_read_record_reads_back_as_it_was_written(written):
    """Every field of a read survives, the address it was read through included."""
    line = codec.spell_read(written)
    assert line.count(b"\n") == 1
    assert codec.read(line) == written


@given(roster_events)
def test_a_roster_event_reads_back_as_it_was_written(written):
    """Every field survives; "no tags" stays different from "nothing said of tags"."""
    line = codec.spell_event(written)
    assert line.count(b"\n") == 1
    assert codec.roster_event(line) == written


@given(messages)
def test_the_canonical_keys_stand_in_their_order_and_the_older_ones_are_never_written(written):
    """A line is strict JSON, its keys in the order of the page, with ``read_by`` empty whatever was read."""
    written = written.replace(extra=None, read_by=("bob-1",))
    spelt = json.loads(codec.spell_message(written))
    assert list(spelt) == [key for key in KEYS if key in spelt]
    assert {"id", "sender", "recipient", "timestamp", "content", "thread", "ttl_hours", "read_by"} <= spelt.keys()
    assert spelt["read_by"] == []
    assert spelt["timestamp"] == instant.text(written.timestamp)
    assert isinstance(spelt["recipient"], str if len(written.recipients) == 1 else list)


@given(unknown_keys)
def test_unknown_keys_of_a_foreign_line_survive_a_round_trip(extra):
    """The codec keeps each unknown key of a foreign line with its value."""
    found = codec.message(line_of(a_message(**extra)))
    assert isinstance(found, Message)
    again = json.loads(codec.spell_message(found))
    assert {key: again[key] for key in extra} == extra


def test_whole_spells_out_the_defaults_and_fills_the_readers():
    """Programs get every key, with ``read_by`` as the reads log has it."""
    shown = codec.message_object(message(), ("bob-1",), whole=True)
    assert shown["read_by"] == ["bob-1"]
    assert (shown["subject"], shown["type"], shown["ack"], shown["priority"]) == (None, "message", False, "normal")
    assert list(shown) == [key for key in KEYS if key in shown]


@pytest.mark.parametrize("content", ["\ud800", "a\udcff"])
def test_half_a_surrogate_pair_is_refused_when_written(content):
    """A line that is not UTF-8 never leaves us; the writer hears a ``ValueError``."""
    with pytest.raises(ValueError, match="surrogates"):
        codec.spell_message(message(content=content))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()], ids=["nan", "inf", "set", "object"])
def test_what_json_cannot_hold_is_refused_when_written(value):
    """No line is written that a strict reader would have to skip."""
    with pytest.raises(ValueError, match=r"JSON|range"):
        codec.spell_message(message(metadata={"x": value}))


@given(plain_json)
def test_our_json_means_what_the_standard_library_reads(value):
    """The writer is our own; another parser agrees with it on every value."""
    assert json.loads(codec.dumps(value)) == value


# -- older spellings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["bob-1", ["bob-1", "role:x"]])
def test_the_older_from_to_body_are_read_and_rewritten_canonically(to):
    """The seed's first writers spelt three keys otherwise; their mail is mail, and our copy is canonical."""
    found = codec.message(
        line_of({"id": "m1", "from": "ann-1", "to": to, "timestamp": "2026-03-16T12:00:00Z", "body": "hello"})
    )
    assert found == message(to=(to,) if isinstance(to, str) else tuple(to), content="hello")
    again = json.loads(codec.spell_message(found))
    assert not {"from", "to", "body"} & again.keys()
    assert (again["sender"], again["content"]) == ("ann-1", "hello")


def test_canonical_keys_win_over_older_ones_beside_them():
    """If a line has a canonical key and its older form, the canonical one counts. The other is kept as an unknown
    key."""
    found = codec.message(line_of(a_message(**{"from": "eve-1", "to": "eve-1", "body": "no"})))
    assert isinstance(found, Message)
    assert (found.sender, found.recipients, found.content) == ("ann-1", ("bob-1",), "hello")
    assert found.extra == {"from": "eve-1", "to": "eve-1", "body": "no"}


def test_the_seeds_reads_and_roster_entries_are_read():
    """``{messageid, readersession_id}``, a read without event, an entry with ``role`` and without event or time."""
    assert codec.read(
        line_of({"messageid": "m1", "readersession_id": "bob-1", "timestamp": "2026-03-16T12:00:00Z"})
    ) == read("m1", "bob-1")
    assert codec.roster_event(
        line_of({"session_id": "bob-1", "role": "architect", "tags": ["project:p"]})
    ) == RosterEvent("register", "bob-1", 0, tags=("project:p", "role:architect"))
    assert codec.roster_event(line_of({"session_id": "bob-1", "role": "role:x", "timestamp": "2026-03-16"})) == (
        RosterEvent("register", "bob-1", T0 - 12 * instant.HOUR, tags=("role:x",))
    )


# -- what makes a record ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["id", "sender", "recipient", "timestamp", "content"])
@pytest.mark.parametrize("value", [None, "", 5, True, {}, []], ids=repr)
def test_a_message_needs_its_five_keys(key, value):
    """Without id, sender, recipient, time or content a line is no message, and the reason names the key."""
    found = codec.message(line_of(a_message(**{key: value})))
    assert isinstance(found, BadLine)
    assert key in found.reason


@pytest.mark.parametrize("key", ["message_id", "reader_session_id", "timestamp"])
@pytest.mark.parametrize("value", [None, "", 5, []], ids=repr)
def test_a_read_needs_its_three_keys(key, value):
    """A read of nothing, by nobody or at no time is none."""
    assert isinstance(codec.read(line_of({**A_READ, key: value})), BadLine)


@pytest.mark.parametrize("change", [{"session_id": None}, {"session_id": 7}, {"timestamp": "soon"}, {"event": "marry"}])
def test_a_roster_event_needs_a_session_a_time_and_a_known_event(change):
    """A line whose event nobody knows must not be taken for a registration."""
    assert isinstance(codec.roster_event(line_of({**AN_EVENT, **change})), BadLine)


@pytest.mark.parametrize("odd", ["delete", 5, ["read"], {}], ids=repr)
def test_a_read_line_with_an_unknown_event_is_skipped(odd):
    """An event of a later version is not taken for a plain read."""
    assert isinstance(codec.read(line_of({**A_READ, "event": odd})), BadLine)


@pytest.mark.parametrize(
    ("key", "value", "field", "taken"),
    [
        ("subject", 5, "subject", None),
        ("thread", [], "thread", None),
        ("ttl_hours", 0, "ttl_hours", None),
        ("ttl_hours", -1, "ttl_hours", None),
        ("ttl_hours", True, "ttl_hours", None),
        ("ttl_hours", "24", "ttl_hours", None),
        ("expires_at", 5, "expires_at", None),
        ("expires_at", "soon", "expires_at", None),
        ("expires_at", ["2026-03-16T12:00:00Z"], "expires_at", None),
        ("type", "bomb", "type", "message"),
        ("type", ["control"], "type", "message"),
        ("ack", 1, "ack", False),
        ("ack", "true", "ack", False),
        ("priority", "urgent!", "priority", "normal"),
        ("read_by", "bob-1", "read_by", ("bob-1",)),
        ("read_by", {"bob-1": 1}, "read_by", ()),
        ("read_by", ["bob-1", 5, None, "bob-1"], "read_by", ("bob-1",)),
    ],
)
def test_an_optional_key_of_the_wrong_shape_counts_as_absent(key, value, field, taken):
    """A careless writer's mail is still mail."""
    found = codec.message(line_of(a_message(**{key: value})))
    assert isinstance(found, Message)
    assert getattr(found, field) == taken


def test_recipients_are_a_set_in_the_order_written():
    """An array is a union: an address given twice is one."""
    found = codec.message(line_of(a_message(recipient=["all", "bob-1", "all", 5, ""])))
    assert isinstance(found, Message)
    assert found.recipients == ("all", "bob-1")


# -- hostile lines ----------------------------------------------------------------------------------------------------


def deep(opening: str, closing: str, levels: int, inside: str = "1") -> bytes:
    """A message whose metadata nests so many levels."""
    whole = codec.spell_message(message(metadata="HERE")).decode()
    return whole.replace('"HERE"', opening * levels + inside + closing * levels).encode()


with_raw = codec.spell_message(message(content="RAW", extra={"mood": 5}))
HOSTILE = {
    "two MiB of spaces": b" " * (2 << 20),
    "two MiB of text": with_raw.replace(b"RAW", b"x" * (2 << 20)),
    "100,000 arrays deep": deep("[", "]", 100_000),
    "100,000 objects deep": deep('{"a":', "}", 100_000),
    "100,000 arrays, never closed": b"[" * 100_000,
    "100,000 objects, never closed": b'{"a":' * 100_000,
    "NaN": with_raw.replace(b'"mood":5', b'"mood":NaN'),
    "Infinity": with_raw.replace(b'"mood":5', b'"mood":Infinity'),
    "-Infinity": with_raw.replace(b'"mood":5', b'"mood":[-Infinity]'),
    "a float out of range": with_raw.replace(b'"mood":5', b'"mood":1e999'),
    "an integer of 5000 digits": with_raw.replace(b'"mood":5', b'"mood":1' + b"0" * 5000),
    "an integer of 100,000 digits": with_raw.replace(b'"mood":5', b'"mood":1' + b"0" * 100_000),
    "a leading zero": with_raw.replace(b'"mood":5', b'"mood":05'),
    "two byte order marks": b"\xef\xbb\xbf" * 2 + with_raw,
    "UTF-16": with_raw.decode().encode("utf-16"),
    "a raw half of a surrogate pair": with_raw.replace(b"RAW", b"\xed\xa0\x80"),
    "an escaped half": with_raw.replace(b"RAW", b"\\ud800"),
    "an escaped half, the second": with_raw.replace(b"RAW", b"\\udc00\\ud800"),
    "an escaped half in an unknown key": with_raw.replace(b'"mood"', b'"\\udfff"'),
    "an escaped half deep inside": with_raw.replace(b'"mood":5', b'"mood":[{"a":["\\uD83D"]}]'),
    "a broken escape": with_raw.replace(b"RAW", b"\\u12"),
    "invalid UTF-8": with_raw.replace(b"RAW", b"\xff\xfe"),
    "overlong UTF-8": with_raw.replace(b"RAW", b"\xc0\xaf"),
    "a raw control character": with_raw.replace(b"RAW", b"\x1b"),
    "a raw NUL": with_raw.replace(b"RAW", b"\x00"),
    "a raw line break": with_raw.replace(b"RAW", b"\n"),
    "a raw carriage return": with_raw.replace(b"RAW", b"a\rb"),
    "single quotes": with_raw.replace(b'"', b"'"),
    "a comment": with_raw.rstrip() + b" // ok",
    "a trailing comma": with_raw.rstrip()[:-1] + b",}",
    "two records in one line": with_raw.rstrip() + with_raw,
    "an array of records": b"[" + with_raw.rstrip() + b"]",
    "no object": b'"id"',
    "null": b"null",
    "nothing": b"",
    "white space": b" \t\r\n",
    "a form feed": b"\x0c" + with_raw,
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_line_is_a_bad_line_to_every_reader(line):
    """It is skipped with a reason a person can read; it crashes nobody."""
    for reader in READERS:
        found = reader(line)
        assert isinstance(found, BadLine)
        assert 0 < len(found.reason) < 200


KIND = {
    "a carriage return at the end": (with_raw.rstrip() + b"\r\n", "RAW"),
    "white space around": (b" \t" + with_raw.rstrip() + b" \t\r\n", "RAW"),
    "U+2028 and U+0085 raw": (with_raw.replace(b"RAW", "a\u2028b\x85".encode()), "a\u2028b\x85"),
    "a whole pair, escaped": (with_raw.replace(b"RAW", b"\\ud83d\\ude00"), "\U0001f600"),
    "NUL, escaped": (with_raw.replace(b"RAW", b"a\\u0000"), "a\0"),
    "a non-character": (with_raw.replace(b"RAW", "\uffff\U0010ffff".encode()), "\uffff\U0010ffff"),
    "brackets in text": (with_raw.replace(b"RAW", b"[{" * 1000), "[{" * 1000),
    "brackets and escapes in text": (with_raw.replace(b"RAW", b"[{\\u0041" * 1000), "[{A" * 1000),
    "a key twice": (with_raw.replace(b'"mood":5', b'"content":"last"'), "last"),
    "an integer of 30 digits": (with_raw.replace(b'"mood":5', b'"mood":1' + b"0" * 30), "RAW"),
    "no newline": (with_raw.rstrip(), "RAW"),
}


@pytest.mark.parametrize(("line", "content"), KIND.values(), ids=KIND)
def test_an_unusual_but_valid_line_is_a_message(line, content):
    """Strictness skips no mail that RFC 8259 allows; of a doubled key the last counts."""
    found = codec.message(line)
    assert isinstance(found, Message)
    assert found.content == content


def test_the_longest_line_and_the_deepest_nesting_are_exactly_the_limits():
    """One byte or one level beyond is a bad line; at the limit it is still a message, and can be written again."""
    padded = with_raw.replace(b"RAW", b"x" * (codec.MAX_LINE - len(with_raw) + 3))
    assert len(padded) == codec.MAX_LINE
    assert isinstance(codec.message(padded), Message)
    assert isinstance(codec.message(padded + b" "), BadLine)
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deepest = codec.message(deep(opening, closing, codec.MAX_DEPTH - 1))
        assert isinstance(deepest, Message)
        assert codec.message(codec.spell_message(deepest)) == deepest
        assert isinstance(codec.message(deep(opening, closing, codec.MAX_DEPTH)), BadLine)
        assert isinstance(codec.message(deep(opening, closing, codec.MAX_DEPTH, '"\\u0041"')), BadLine)


def test_a_torn_line_never_becomes_a_record_nor_swallows_the_next():
    """Cut anywhere, alone or run together with the line after it, it is a bad line."""
    line = codec.spell_message(message(subject='say "hi"', metadata={"a": ["b\\", {"c": "é"}]})).rstrip()
    for cut in range(1, len(line)):
        assert isinstance(codec.message(line[:cut]), BadLine)
        assert isinstance(codec.message(line[:cut] + line), BadLine)


def test_a_bad_line_changes_nothing_about_the_next():
    """A bad line before it changes nothing about how the next line reads."""
    for hostile in HOSTILE.values():
        codec.message(hostile)
        assert codec.message(with_raw) == message(content="RAW", extra={"mood": 5})


def a_record_or_a_bad_line(line: bytes) -> None:
    """Assert it for every reader; a record taken from it can be written and means the same when read again."""
    for reader, writer in zip(READERS, (codec.spell_message, codec.spell_read, codec.spell_event), strict=True):
        found = reader(line)
        assert isinstance(found, (BadLine, *RECORDS))
        if isinstance(found, Message):
            found = found.replace(read_by=())
        if not isinstance(found, BadLine):
            assert reader(writer(found)) == found


@given(st.binary(max_size=60))
def test_random_bytes_are_a_record_or_a_bad_line(line):
    """Nothing else ever comes out, no exception either."""
    a_record_or_a_bad_line(line)


@given(
    line=st.sampled_from(
        [
            codec.spell_message(message(to=("all", "role:x"), metadata={"a": [1.5, None]}, extra={"k": "\u2028"})),
            codec.spell_read(read("m1", "bob-1", via="role:x")),
            codec.spell_event(register("bob-1", "role:x", name="bob")),
        ]
    ),
    edits=st.lists(
        st.tuples(
            st.integers(0, 300), st.integers(0, 4), st.binary(max_size=3) | st.sampled_from([b'"', b"{", b"]", b"\\u"])
        ),
        max_size=4,
    ),
)
@settings(max_examples=5 * settings().max_examples)
def test_a_damaged_record_is_a_record_or_a_bad_line(line, edits):
    """Bytes lost, changed or put in anywhere never do more than spoil their own line."""
    for place, lost, put in edits:
        line = line[:place] + put + line[place + lost :]
    a_record_or_a_bad_line(line)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                *(*KEYS, "from", "to", "body", "message_id", "messageid", "reader_session_id", "event", "as"),
                *("session_id", "name", "tags", "role", "lead", "continues", "by", "reason", "client"),
            ]
        ),
        plain_json | st.sampled_from(["2026-03-16T12:00:00Z", "read", "register", "all", ["all"], "bob-1", 24, 1e300]),
        max_size=12,
    )
)
@settings(max_examples=5 * settings().max_examples)
def test_any_json_under_our_keys_is_a_record_or_a_bad_line(obj):
    """Values of any kind may stand where we expect others."""
    a_record_or_a_bad_line(line_of(obj))


@pytest.mark.parametrize(
    "timestamp",
    ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"],
)
def test_a_record_from_the_edge_of_the_calendar_can_be_written_again(timestamp):
    """The codec can write each record from the edge of the calendar again. If it could not, the line is bad."""
    a_record_or_a_bad_line(line_of(a_message(timestamp=timestamp)))
    a_record_or_a_bad_line(line_of({**A_READ, "timestamp": timestamp}))
    a_record_or_a_bad_line(line_of({**AN_EVENT, "timestamp": timestamp}))


def test_records_are_values():
    """They compare by content, do not change, and refuse fields they do not have."""
    assert message() == message()
    assert message() != message(content="other")
    assert hash(read("m1", "bob-1")) == hash(read("m1", "bob-1"))
    assert ack("m1", "bob-1").replace(event="read") == read("m1", "bob-1")
    assert event("freeze", "bob-1", 1).timestamp == at(1)
    with pytest.raises(AttributeError, match="frozen"):
        message().content = "changed"
    with pytest.raises(TypeError, match="no such fields"):
        read("m1", "bob-1").replace(colour="red")
    with pytest.raises(TypeError, match="needs the field"):
        Read(message_id="m1")


def test_a_newer_python_finds_no_hook_that_it_asks_for():
    """Each release may ask the rules for more, as Python 3.15 did for ``array_hook``: nothing would start then."""
    assert codec._Rules().array_hook is None
