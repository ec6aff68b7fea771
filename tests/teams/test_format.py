"""Inbox files as values: everything valid comes out, everything else is told, and nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mailbox.core import naming
from agent_mailbox.core.address import NAMESPACES, check_id, check_tag
from agent_mailbox.core.compose import check_id_form
from agent_mailbox.core.control import messages
from agent_mailbox.teams import format as teams
from agent_mailbox.teams import team_files
from tests.helpers import each
from tests.teams import samples
from tests.teams.samples import entry, native


def parsed(*values: Any) -> teams.Inbox:
    """An array of these, parsed."""
    return teams.parse_inbox(json.dumps(values).encode())


def test_the_captured_inboxes_are_taken_whole() -> None:
    """Every entry, each with what it says, protocol messages with what they are."""
    kinds = []
    for inboxes in samples.TEAMS.values():
        for entries in inboxes.values():
            found = parsed(*entries)
            assert found.unfit == ()
            assert found.whole
            assert [e.sender for e in found.entries] == [e["from"] for e in entries]
            assert [e.text for e in found.entries] == [e["text"] for e in entries]
            assert [e.summary for e in found.entries] == [e.get("summary") for e in entries]
            assert [e.color for e in found.entries] == [e.get("color") for e in entries]
            assert [e.read for e in found.entries] == [e["read"] for e in entries]
            kinds += [teams.catalog_form(e.protocol)["type"] for e in found.entries if e.protocol]
    assert sorted(kinds) == [
        *("idle_notification", "plan_approval_request", "plan_approval_response"),
        *("shutdown_approved", "shutdown_request", "task_assignment"),
    ]


def test_a_protocol_message_says_what_it_is() -> None:
    """A protocol message is read as the control plane reads it, which links a request to its response. A message that
    it does not know is told by its type."""
    asked, approved = teams.parse_protocol(samples.SHUTDOWN), teams.parse_protocol(samples.APPROVED)
    assert isinstance(asked, messages.ShutdownRequest)
    assert isinstance(approved, messages.ShutdownApproved)
    assert asked.request_id == approved.request_id == "shutdown-1770477661492@docs-events"
    assert teams.catalog_form(asked)["reason"] == "Work is complete. Shutting down the team. Thank you!"
    strange = teams.parse_protocol('{"type":"sing_request"}')
    assert strange is not None
    assert teams.catalog_form(strange) == {"type": "sing_request", "unknown": "not a type of message there is"}


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        ' {"type":"idle_notification"}',
        "{ this is not JSON",
        '{"type":"x"',
        '{"no":"type"}',
        '{"type":7}',
        '{"type":""}',
        "{}",
        '{"type":NaN}',
        "{" * 5000,
        '["type"]',
    ],
)
def test_what_only_looks_like_protocol_is_plain_text(text: str) -> None:
    """The four steps of the founding text."""
    assert teams.parse_protocol(text) is None
    assert parsed(entry("a", text)).entries[0].text == text


WRONG: list[Any] = [None, True, 0, 1.5, [], {}, ["x"], {"x": 1}]


@each("wrong", [*WRONG, "x"])
@pytest.mark.parametrize(
    "key", ["from", "text", "timestamp", "summary", "color", "read", "msg_id", "msgV", "type", "agent_mailbox", "new"]
)
def test_a_wrong_type_in_any_field_spoils_at_most_its_own_entry(key: str, wrong: Any) -> None:
    """Before and after it everything is taken; what the client would deliver all the same is, too."""
    good = native("a", "first", 1), native("b", "last", 2)
    found = parsed(good[0], {**native("c", "odd", 3), key: wrong}, good[1])
    texts = [e.text for e in found.entries]
    if key in ("from", "text", "timestamp") and wrong != "x":
        assert texts == ["first", "last"]
        assert [(u.place, key in u.reason) for u in found.unfit] == [(1, True)]
    else:
        assert texts == ["first", "x" if key == "text" else "odd", "last"]
        assert found.unfit == ()
        if key == "read":
            assert found.entries[1].read is (wrong is True)


@pytest.mark.parametrize("value", [*WRONG, "text"], ids=repr)
def test_what_is_no_entry_is_told_with_its_place(value: Any) -> None:
    """Anything may stand in the array."""
    found = parsed(native("a", "first", 1), value, native("b", "last", 2))
    assert [e.text for e in found.entries] == ["first", "last"]
    assert [u.place for u in found.unfit] == [1]


@pytest.mark.parametrize("value", [None, True, 0, "text", {}, {"from": "a", "text": "b", "timestamp": "c"}], ids=repr)
def test_a_file_that_is_no_array_is_told(value: Any) -> None:
    """A file that is no array is told, and is not taken for an empty one. Nothing that was there counts as consumed."""
    found = teams.parse_inbox(json.dumps(value).encode())
    assert (found.entries, found.whole) == ((), False)
    assert len(found.unfit) == 1


def test_of_a_half_written_file_the_entries_before_the_break_are_taken() -> None:
    """Cut at every byte: never one that was not there, never a raise, and never said to be whole."""
    values = [native("a", "eins { [ ,", 1), native("b", 'zwei "quoted" \u00e9\u2028', 2), native("c", "drei", 3)]
    texts = [v["text"] for v in values]
    for data in (json.dumps(values).encode(), json.dumps(values, indent=2, ensure_ascii=False).encode()):
        best = 0
        for cut in range(len(data)):
            found = teams.parse_inbox(data[:cut])
            got = [e.text for e in found.entries]
            assert got == texts[: len(got)]
            assert not found.whole
            assert found.unfit
            assert len(got) >= best
            best = len(got)
        assert best == 3  # all but the last bracket
        assert teams.parse_inbox(data).whole


@given(st.binary(max_size=300))
def test_any_bytes_are_taken(data: bytes) -> None:
    """A file may hold anything."""
    teams.parse_inbox(data)
    teams.parse_inbox(b"[" + data)
    team_files.parse_team(data, "t")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda v: (
            st.lists(v)
            | st.dictionaries(
                st.sampled_from(["from", "text", "timestamp", "members", "name", "leadSessionId", "type"]) | st.text(),
                v,
            )
        ),
    )
)
def test_an_inbox_and_a_configuration_may_hold_any_json(value: Any) -> None:
    """An inbox, an entry and a configuration may hold any JSON. UTF-8 can hold what comes out."""
    data = json.dumps([value, entry("a", json.dumps(value))]).encode()
    for found in teams.parse_inbox(data).entries:
        (found.sender + found.text + found.timestamp + (found.summary or "")).encode()
        json.dumps(teams.catalog_form(found.protocol) if found.protocol else None).encode()
    team_files.parse_team(json.dumps(value).encode(), "t")


def test_five_thousand_entries_are_five_thousand() -> None:
    """Each known by a key of its own."""
    found = parsed(*(native("a", f"text {n}", n) for n in range(5000)))
    assert len({e.key for e in found.entries}) == 5000
    old = parsed(*(entry("a", f"text {n}") for n in range(5000)))
    assert len({e.key for e in old.entries}) == 5000


def test_an_entry_is_known_again_however_the_array_was_rewritten() -> None:
    """An entry is known again by its msg_id, or else by who wrote what when. ``read``, colour, summary, order and other
    fields do not count."""
    first, second = native("a", "eins", 1), entry("b", "zwei", color="red", read=False)
    keys = [e.key for e in parsed(first, second).entries]
    later = parsed(entry("c", "new"), {**second, "read": True, "color": "blue", "summary": "s"}, {**first, "x": 1})
    assert [e.key for e in later.entries[1:]] == keys[::-1]
    assert parsed(second).entries[0].key == keys[1]


def test_equal_entries_without_ids_are_as_many_as_there_are() -> None:
    """Equal entries without ids count as many times as they are there. They stay known when the array shrinks."""
    twice = parsed(entry("a", "same"), entry("a", "same"))
    assert len({e.key for e in twice.entries}) == 2
    assert parsed(entry("a", "same")).entries[0].key == twice.entries[0].key


def test_a_msg_id_that_stands_twice_is_one_entry() -> None:
    """A msg_id that is twice with one text is one entry. An entry with another text is a second one, and is
    told."""
    one = native("a", "eins", 1)
    assert len(parsed(one, one).entries) == 1
    assert parsed(one, one).unfit == ()
    other = parsed(one, {**one, "text": "zwei"})
    assert [(e.text, other.unfit[0].place) for e in other.entries] == [("eins", 1), ("zwei", 1)]


def test_text_no_mail_can_hold_is_mended() -> None:
    """Half surrogates and NUL, which JSON may carry."""
    found = teams.parse_inbox(b'[{"from":"a\\ud800","text":"x\\u0000y\\udfff","timestamp":"t"}]')
    assert (found.entries[0].sender, found.entries[0].text) == ("a?", "x\ufffdy?")


def test_the_configuration_tells_members_and_lead() -> None:
    """A team's configuration gives its members and lead as the client writes them. Missing and wrong values are left
    out."""
    found = team_files.parse_team(json.dumps(samples.config("t", "ann", leadProcess={"pid": 7})).encode(), "t")
    assert (found.lead_name, found.lead_session, found.lead_pid) == ("team-lead", "lead-session", 7)
    assert found.names == ("team-lead", "ann")
    config = samples.config("t", "ann", leadAgentId="boss@t", leadSessionId=7, leadProcess=[])
    config["members"] += [None, {}, {"name": 3}, {"name": "../x"}, {"name": "bo", "cwd": 3}]
    odd = team_files.parse_team(json.dumps(config).encode(), "t")
    assert (odd.lead_name, odd.lead_session, odd.lead_pid) == ("boss", None, None)
    assert odd.names == ("team-lead", "ann", "bo")
    assert [u.place for u in odd.unfit] == [2, 3, 4, 5]
    assert team_files.parse_team(b"{", "t").members == ()
    assert team_files.parse_team(b'{"members":{}}', "t").unfit


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_name_is_an_id_and_every_team_a_tag(team: str, name: str) -> None:
    """Ids hold no colon, tags no spaces; names that differ stay apart."""
    assert check_id(naming.session_id(team, name))
    assert check_tag(naming.tag(team), (*NAMESPACES, "team"))
    assert (naming.word(team) == naming.word(name)) == (team == name)
    assert check_id_form(teams.message_id(team, name, "key"))


def test_usual_names_are_spelt_as_the_client_spells_them() -> None:
    """``agentId`` in the configuration."""
    assert naming.session_id("session-1a2b3c4d", "worker") == "worker@session-1a2b3c4d"
    assert naming.tag("session-1a2b3c4d") == "team:session-1a2b3c4d"
