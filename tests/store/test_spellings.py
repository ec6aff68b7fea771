"""A line's spelling is known by its bytes in many places: each says what the codec says, or has the line decoded."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from agent_mailbox import Mailbox, Request
from agent_mailbox.core import codec, exact_lines, inbox, instant, line_forms
from agent_mailbox.core.address import Reader
from agent_mailbox.core.exact_lines import ExactLines
from agent_mailbox.core.records import BadLine, Message
from agent_mailbox.store.files import paths
from agent_mailbox.store.polling import poll
from agent_mailbox.store.polling.poll import Poll
from agent_mailbox.store.projection import control_table, line_facts
from tests.store.history import mailbox

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = instant.parse("2026-03-16T12:00:00Z")
IDS = tuple(f"{k:08x}-0000-4000-8000-000000000000" for k in range(4))
OLD, NEW = "2026-01-01T00:00:00.000Z", "2026-03-16T11:59:00.000Z"

Pairs = list[tuple[str, Any]]
unknown = st.sampled_from(
    [
        *(("expires_at", NEW), ("expires_at", None), ("x", 1), ("x", True), ("x", 'a"b'), ("x", '","thread":null,"')),
        *(("x", {"id": IDS[1], "recipient": "me"}), ("x", [{"ttl_hours": None, "read_by": []}]), ("x", {"ack": True})),
        *(("x", {"message_id": IDS[1], "event": "release", "type": "control"}), ("idle", IDS[0]), ("ü", "ü\n")),
    ]
)


def _spelt(pairs: Pairs, spelling: tuple[str, str], escaped: bool) -> bytes:
    """Write an object's pairs as they stand, keys given twice too; ``escaped``: each key's first letter as \\u."""
    comma, colon = spelling
    keys = [json.dumps(key, ensure_ascii=False) for key, _ in pairs]
    keys = [f'"\\u{ord(key[1]):04x}{key[2:]}' for key in keys] if escaped else keys
    told = [json.dumps(value, separators=(comma, colon), ensure_ascii=escaped) for _, value in pairs]
    return ("{" + comma.join(f"{key}{colon}{value}" for key, value in zip(keys, told, strict=True)) + "}").encode()


def _messages(draw: st.DrawFn) -> Pairs:
    return [
        ("id", draw(st.sampled_from(IDS))),
        ("sender", draw(st.sampled_from(["zed", "me", "swarm:a/b", IDS[3]]))),
        ("recipient", draw(st.sampled_from(["me", "role:dev", "all", "other", "swarm:a/b", ["me", "all"]]))),
        ("timestamp", draw(st.sampled_from([OLD, NEW]))),
        *draw(st.sampled_from([[], [("subject", "id")], [("subject", 's"')]])),
        (
            "content",
            draw(st.sampled_from(["x", "} y", '","recipient":"me","', "für\n", '"ttl_hours":null,"read_by":[]}'])),
        ),
        ("thread", draw(st.sampled_from([None, None, IDS[2]]))),
        ("ttl_hours", draw(st.sampled_from([None, None, 3000]))),
        ("read_by", []),
        *draw(
            st.sampled_from([[], [("type", "control")], [("ack", True)], [("type", "message"), ("priority", "high")]])
        ),
    ]


def _reads(draw: st.DrawFn) -> Pairs:
    return [
        ("message_id", draw(st.sampled_from(IDS))),
        ("reader_session_id", draw(st.sampled_from(["me", "you"]))),
        ("timestamp", NEW),
        ("event", draw(st.sampled_from(["read", "ack", "release", "seen", "claim"]))),
        *draw(st.sampled_from([[], [("as", "role:dev")], [("as", "me")]])),
    ]


@st.composite
def lines(draw: st.DrawFn, kind: str) -> bytes:
    """A line in our spelling or nearly so: another order, spaces, escapes, a key twice, an unknown one anywhere."""
    pairs = _messages(draw) if kind == "message" else _reads(draw)
    for pair in draw(st.lists(unknown, max_size=2)):
        pairs.insert(draw(st.integers(0, len(pairs))), pair)
    if draw(st.integers(0, 3)) == 0:
        again = _messages(draw) if kind == "message" else _reads(draw)
        pairs.insert(draw(st.integers(0, len(pairs))), draw(st.sampled_from(again)))
    if draw(st.integers(0, 3)) == 0:
        pairs = draw(st.permutations(pairs))
    spelling = draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": "), (" ,", " :")]))
    return _spelt(pairs, spelling, draw(st.integers(0, 5)) == 0)


MANY = settings(max_examples=3 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(lines("message"))
@MANY
def test_what_bytes_say_of_a_message_is_what_the_codec_says(line: bytes) -> None:
    """Its id, its readers, whether it asks or answers, its type, its fields: or the line is decoded."""
    known = codec.message(line)
    if isinstance(known, BadLine):
        return
    assert line_forms.message_id_of(line) in (None, known.id.encode())
    assert line_forms.may_be_message(line, {known.id.encode()})
    assert line_forms.may_begin_with(line, known.id[:5].encode())
    if known.ack or known.thread is not None:
        assert line_forms.may_ask_or_answer(line)
    for older in ((), tuple(f"me-{number}" for number in range(line_forms.MANY))):
        reader = Reader("me", ("me", *older), None, frozenset({"role:dev"}))
        if {*known.recipients} & {"me", "role:dev", "all"}:
            assert line_forms.id_for_others(line, line_forms.addresses(reader)) is None
    fields = ExactLines().fields(line)
    if fields is not None and b"\\" not in line:
        told = line_facts.fields_of(line)
        assert told is not None
        assert fields == (*told[:4], told[4] or "", *told[5:])
    facts, quick = line_facts.facts_of(line), line_facts.hurried()[0](line)
    assert facts is not None
    assert quick is not None
    assert quick[:4] == facts[:4]
    assert quick[6] == known.ack
    assert quick[4] is None or quick[4:6] == (known.recipients[0], known.ttl_hours or 0)
    assert (known.type == "control") <= bool([*control_table.messages_on([(None, line)], None)])


@given(lines("read"))
@MANY
def test_what_bytes_say_of_a_read_is_what_the_codec_says(line: bytes) -> None:
    """Its message, its reader, its event: or the line is decoded."""
    known = codec.read(line)
    if isinstance(known, BadLine):
        return
    assert line_forms.may_be_about(line, {known.message_id.encode()})
    assert line_forms.may_be_read_by(line, [known.session_id.encode()])
    if known.event == "release":
        assert line_forms.may_release(line)
    wanted = known.message_id.encode(), known.session_id.encode(), line_facts.kind_of(known)
    assert line_facts.hurried()[1](line) == line_facts.record_of(line) == wanted
    plain, claim = exact_lines.PLAIN_READ.fullmatch(line), exact_lines.CLAIM.fullmatch(line)
    if plain is not None:
        assert (plain[1].decode(), plain[2].decode()) == (known.message_id, known.event)
    if claim is not None:
        assert (claim[1].decode(), json.loads(claim[2])) == (known.event, known.via)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Mailbox:
    """A mailbox with a reader that holds a role."""
    root = tmp_path_factory.mktemp("spellings")
    made = mailbox(str(root), lambda: NOW)
    made.register(Request(session_id="me", roles=("role:dev",)), "user")
    return made


def _write(box: Mailbox, messages: Sequence[bytes], reads: Sequence[bytes]) -> None:
    for name, data in ((paths.MESSAGES, messages), (paths.READS, reads)):
        with open(os.path.join(box.directory, name), "wb") as file:
            file.write(b"".join(line + b"\n" for line in data))
    cursor = box.logs.cache("cursors", "me")
    if os.path.exists(cursor):
        os.unlink(cursor)


@pytest.mark.parametrize("large", [0, 1 << 40], ids=["looked through as bytes", "sieved"])
@given(st.lists(lines("message"), max_size=5), st.lists(lines("read"), max_size=5))
@MANY
def test_a_poll_finds_what_the_pure_function_finds(
    box: Mailbox, large: int, messages: list[bytes], reads: list[bytes]
) -> None:
    """However lines are spelt, in a large log and in a small one; each id is written once."""
    known = {m.id: line for line in reversed(messages) if isinstance(m := codec.message(line), Message)}
    messages = [line for line in messages if line in known.values()]
    _write(box, [*dict.fromkeys(messages)], reads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(poll, "LARGE", large)
        found = [i.message.id for i in Poll(box.logs, "me", box.config).unread(NOW)]
    assert found == [i.message.id for i in inbox.unread("me", box.state(), NOW)]


@given(unknown, st.integers(0, 9), st.booleans())
@MANY
def test_an_unknown_key_has_old_mail_decoded(box: Mailbox, pair: tuple[str, Any], place: int, titled: bool) -> None:
    """It may say when the mail expires: only a line of known keys is passed by for its age."""
    subject = [("subject", "s")] if titled else []
    pairs: Pairs = [("id", IDS[0]), ("sender", "zed"), ("recipient", "me"), ("timestamp", OLD), *subject]
    pairs += [("content", 'a "b"'), ("thread", None), ("ttl_hours", None), ("read_by", [])]
    seen: list[bytes] = []

    def message(line: bytes) -> Message | BadLine:
        seen.append(line)
        return decode(line)

    decode = codec.message
    for told in (pairs, [*pairs[:place], pair, *pairs[place:]]):
        line = _spelt(told, (",", ":"), False)
        _write(box, [line], [])
        seen.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(poll, "LARGE", 0)
            patch.setattr(codec, "message", message)
            Poll(box.logs, "me", box.config).unread(NOW)
        assert (line in seen) is (told is not pairs)
