"""The edges of small rules: the last value that counts, and the first that does not."""

from __future__ import annotations

from typing import Any

import pytest

from agent_mailbox.core import (
    address,
    attachments,
    attention,
    brake,
    clocks,
    codec,
    instant,
    message_reads,
    misspelt,
    obligations,
    proofs,
    references,
    session_steps,
    space_seals,
)  # fmt: skip
from agent_mailbox.core.control import authority
from agent_mailbox.core.keeping import notes, retention
from agent_mailbox.core.marks import Marks
from agent_mailbox.core.records import BARE, BadLine, Read
from agent_mailbox.core.roster import DEAD, Roster

from .build import ack, at, event, message, read, register, state


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (attachments.aside(bytes(8)), True),
        ("x0000000000000000~", False),
        (".0000000000000000x", False),
        (".000000000000000g~", False),
        (".000000000000000~", False),
    ],
)
def test_a_file_that_is_not_whole_yet_has_a_name_of_one_form(name: str, kept: bool) -> None:
    """Another file in that directory is not ours."""
    assert attachments.is_kept(name) is kept


@pytest.mark.parametrize("wrong", [{"size": -1}, {"size": True}, {"sha256": 5}, {"sha256": "0"}, {"name": 5}])
def test_an_entry_of_another_form_names_no_file(wrong: dict[str, Any]) -> None:
    """An empty file is one."""
    entry = {"type": "file", "name": "a.txt", "mime_type": "text/plain", "size": 0, "sha256": "0" * 64}
    entry["path"] = f"attachments/{attachments.stored('0' * 64, 'a.txt')}"
    assert len(attachments.files(message(attachments=[entry]))) == 1
    assert attachments.files(message(attachments=[entry | wrong])) == []


@pytest.mark.parametrize("text", ["7:0x", "7:0", "24:00", "22:60", "7:٠٠", ":00", "7"])
def test_quiet_hours_are_times_of_the_day(text: str) -> None:
    """Each has an hour below 24, and two digits below 60."""
    assert attention.quiet_hours("0:00-23:59") == (0, 1439)
    with pytest.raises(ValueError, match=text):
        attention.quiet_hours(f"{text}-8:00")


def test_quiet_hours_that_end_as_they_begin_are_none() -> None:
    """They would be all day else."""
    assert [attention.quiet_for((600, 600), minute) for minute in (599, 600, 601)] == [None] * 3
    assert [attention.quiet_for((600, 601), minute) for minute in (599, 600, 601)] == [None, 1, None]


def test_an_echo_is_no_wake() -> None:
    """Neither is a call that passes; proven mail counts for unproven mail, and not the other way round."""
    calls = [brake.Call("m1", "t1", brake.PROVEN, is_echo=True), brake.Call("m2", "t2", brake.PROVEN, passes=True)]
    assert brake.note(calls, [], 5) == []
    assert brake.note([brake.Call("m3", "t3", brake.PROVEN)], [], 5) == [brake.Wake(5, ((brake.PROVEN, "t3"),))]
    first = message("m1", content="well  done")
    assert brake.is_echo(message("m2", content="well done"), first)
    assert not brake.is_echo(message("m2", content="well done", ack=True), first)
    assert not brake.is_echo(message("m2", content="well done", attachments=[{"type": "file"}]), first)
    for was, now, held in (
        *((brake.PROVEN, brake.UNPROVEN, True), (brake.UNPROVEN, brake.PROVEN, False)),
        *((brake.PROVEN, brake.CONTROL, False), (brake.PROVEN, brake.TASK, False)),
    ):
        verdict = brake.judge(
            [brake.Call("m", "t", now)], [brake.Wake(1, ((was, "t"),))], brake.Limits(gap=0, per_thread=1, per_day=1), 5
        )
        assert verdict.wakes is not held, (was, now)


@pytest.mark.parametrize(("tokens", "known"), [(0, 0), ((1 << 53) - 1, (1 << 53) - 1), (1 << 53, None), (-1, None)])
def test_a_count_of_tokens_is_a_number_that_json_holds(tokens: int, known: int | None) -> None:
    """A way and a nonce that are empty are none."""
    line = '{"message_id":"m1","reader_session_id":"b","timestamp":"2026-03-16","as":"","nonce":"","tokens":%d}'
    found = codec.read((line % tokens).encode())
    assert not isinstance(found, BadLine)
    assert (found.via, found.nonce, found.tokens) == (None, None, known)


@pytest.mark.parametrize("clock", ["24:00:00.000Z", "12:60:00.000Z", "12:00:61.000Z"])
def test_a_time_that_no_clock_shows_is_none(clock: str) -> None:
    """It is none in our own spelling, either. A leap second counts as the one before."""
    with pytest.raises(ValueError, match="not a time of day"):
        instant.parse(f"2026-03-16T{clock}")
    assert instant.parse("2026-03-16T12:00:60.000Z") == instant.parse("2026-03-16T12:00:59.000Z")


@pytest.mark.parametrize("zone", ["01:00", "~01:00", "+24:00", "+01:60", "+010"])
def test_a_zone_of_another_form_is_none(zone: str) -> None:
    """It begins with its sign, and has hours and minutes."""
    with pytest.raises(ValueError, match=r"not a (time zone|number)"):
        instant.parse(f"2026-03-16T12:00:00{zone}")


def test_a_place_is_taken_from_the_instant_of_the_succession() -> None:
    """A millisecond before, the successor is not yet the session that it continues."""
    heirs = Roster([register("old-1"), event("retire", "old-1", 1), register("new-1", hours=2, continues="old-1")])
    agent = heirs.get("new-1")
    assert agent is not None
    since = agent.heir[0]
    assert [authority.is_same("new-1", "old-1", since + step, heirs, proven=False) for step in (-1, 0)] == [False, True]


def test_the_person_never_dies() -> None:
    """A foreign line that retires the person makes none of its mail pointless."""
    asked = message(sender="user", ack=True)
    assert obligations.staleness(asked, state([asked], events=[event("retire", "user", proof=None)]), at(0)) == ""


@pytest.mark.parametrize("text", [b"session", b"sessionx:bob-1", b"session:user", b"terminal:", b"desk/", b"session:"])
def test_a_proof_of_another_form_is_none(text: bytes) -> None:
    """Each kind is spelt in one way."""
    assert proofs.parse(b"session:bob-1") == proofs.of_session("bob-1")
    assert proofs.parse(text) is None


def test_nothing_is_seen_here_or_done_by_a_job_of_ours_without_a_proof() -> None:
    """A job's proof is no session's."""
    assert not proofs.is_seen_here(None)
    assert not proofs.is_seen_here(proofs.of_machine("desk", proofs.of_session("bob-1")))
    assert [proofs.is_our_job(one) for one in (None, proofs.STEWARD, proofs.of_session("bob-1"))] == [
        False,
        True,
        False,
    ]


def test_a_note_is_dropped_by_its_author_and_by_no_equal() -> None:
    """An equal may replace it: the new text is there to be read."""
    note = message("n1", "project:p", type="note")
    drop = message("n2", "project:p", "bob-1", 1, type="note", extra={notes.REPLACES: "n1", notes.DROPPED: True})
    people = Roster([register("ann-1"), register("bob-1")])
    for one, is_left in ((drop, True), (drop.replace(extra={notes.REPLACES: "n1"}), False)):
        assert notes.fold([note, one], people)["n1"].is_current is is_left
    own = drop.replace(sender="ann-1", proof=proofs.of_session("ann-1"))
    assert not notes.fold([note, own], people)["n1"].is_current


def test_a_mark_on_a_channel_takes_none_from_a_topic_that_is_seen_further() -> None:
    """The topic's own mark stays until the channel's passes it; another channel's stays in any case."""
    marks = Marks(1).moved("role:a", "t", 9).moved("role:ab", "t", 9)
    for until, topic, other in ((8, 9, 9), (9, 9, 9), (10, 10, 9)):
        moved = marks.moved("role:a", None, until)
        assert (moved.reached("role:a", "t"), moved.reached("role:ab", "t")) == (topic, other)
    assert len(marks.moved("role:a", None, 8).until) == 3
    assert len(marks.moved("role:a", None, 9).until) == 2


def test_news_of_a_swarm_has_a_subject_and_a_reason_of_words() -> None:
    """A list in JSON tells none."""
    news = message(sender="ann@swarm:team", subject="Ben left", extra={"swarm": {"event": True}})
    assert [references.is_event(one) for one in (news, news.replace(subject=None), news.replace(sender="ann-1"))] == [
        references.is_remote(news.sender), False, False,
    ]  # fmt: skip
    for content, lines in (
        ('{"reason":"done"}', 1), ('{"reason":" "}', 0), ('{"reason":5}', 0), ('["reason"]', 0),
        ('{"action":"swarm_dissolved","reason":"done"}', 0),
    ):  # fmt: skip
        assert len(references.reason_lines(news.replace(content=content))) == lines


def test_who_acked_a_title_was_told_the_text() -> None:
    """A receipt without a nonce is about no title."""
    asked = message("m1", ack=True)
    title = read("m1", "bob-1").replace(title=True)
    told = message_reads.Reads([title])
    assert message_reads.untold(asked, told) == [title]
    assert message_reads.untold(asked, message_reads.Reads([title, ack("m1", "bob-1")])) == []
    seen = read("m1", "bob-1", event="seen")
    assert message_reads.by_title([title, seen]) == {title}
    assert message_reads.by_title([title.replace(nonce="n"), seen.replace(nonce="n")]) == {
        title.replace(nonce="n"), seen.replace(nonce="n"),
    }  # fmt: skip


def unproven(line: Read) -> Read:
    """The same line of another program."""
    return line.replace(proof=None)


def test_an_unproven_read_gives_no_text_to_who_was_proven_to_see_the_title() -> None:
    """It takes nothing from a proven ack, either."""
    title, full = read("m1", "bob-1").replace(title=True), read("m1", "bob-1", hours=1)
    for second, is_title in ((full, False), (unproven(full), True)):
        (left,) = message_reads.Reads([title, second]).of("m1")
        assert left.title is is_title
    (left,) = message_reads.Reads([unproven(title), unproven(full)]).of("m1")
    assert not left.title
    asked = message("m1", sender="user", ack=True)
    for lines in ([ack("m1", "bob-1"), unproven(ack("m1", "bob-1"))], [ack("m1", "bob-1")]):
        assert message_reads.Reads(lines).acked(asked, ["bob-1"])
    assert not message_reads.Reads([unproven(ack("m1", "bob-1"))]).acked(asked, ["bob-1"])


def test_a_foreign_line_reads_no_mail_whose_records_are_sealed() -> None:
    """It may name readers of other mail."""
    people = Roster([register("bob-1", client="claude-code")])
    for one, counts in ((message(read_by=("bob-1",)), True), (message(read_by=("bob-1",), type="control"), False)):
        assert message_reads.read_by(one, message_reads.Reads(), ["bob-1"], people) is counts


def test_a_role_s_read_takes_the_message_for_no_tag() -> None:
    """It takes it for each role among the addresses."""
    sent = message(to=("role:a", "role:b", "project:p"))
    found = [message_reads.is_taken(to, "role:a", sent) for to in sent.recipients]
    assert found == [True, True, False]


@pytest.mark.parametrize(
    ("one", "other", "short"),
    [("work", "worker", True), ("work", "work-1", False), ("work", "work-ab", False), ("work", "work-abc", True)],
)
def test_a_word_is_short_for_another_unless_that_is_a_name_of_its_own(one: str, other: str, short: bool) -> None:
    """A number, or a sign and two letters, make another name."""
    assert bool(misspelt.nearly_agent(one, Roster([register(other)]))) is short


def test_who_was_led_and_died_lately_keeps_each_event() -> None:
    """It may come back, and its leads count then; after its time its life is told in short."""
    lives = [
        register("bob-1", hours=hours, lead="lee-1") if hours % 2 == 0 else event("retire", "bob-1", hours)
        for hours in range(20)
    ]
    people = Roster([register("lee-1"), *lives])
    agent = people.get("bob-1")
    assert agent is not None
    assert agent.state == DEAD
    for since, is_told in ((agent.changed, False), (agent.changed + 1, True)):
        assert bool(retention.retold_dead({"bob-1": lives}, people, since, 99)[0]) is is_told


def test_meta_messages_and_texts_are_no_steps_of_a_session() -> None:
    """Neither is an event whose message is no object."""
    said = {"type": "user", "message": {"content": "hello"}}
    for event_, steps in ((said, 1), ({**said, "isMeta": True}, 0), ({**said, "message": "hello"}, 0)):
        assert len([*session_steps._of_transcript_event(event_)]) == steps


def test_a_space_seal_of_another_form_is_none() -> None:
    """Each of its parts has its length, and its number at most 19 digits."""
    key, signature = b"k" * space_seals.PUBLIC, b"s" * space_seals.SIGNATURE

    def sealed(number: bytes = b"7", key: bytes = key, signature: bytes = signature, end: bytes = b"") -> bytes:
        parts = [b"desk", number, key, b"session:bob-1", signature]
        return b'{"id":"m1"' + space_seals._KEY + b" ".join(parts) + space_seals._END + end

    found = space_seals.of(sealed())
    assert found is not None
    assert (found.machine, found.number) == ("desk", 7)
    for wrong in (
        sealed(b"1" * 20), sealed(key=b"k"), sealed(signature=b"s"), sealed(end=b" "), sealed(b"x"),
    ):  # fmt: skip
        assert space_seals.of(wrong) is None
    assert space_seals.of(sealed(b"1" * 19)) is not None


def test_a_clock_is_doubted_from_far_on_and_believed_at_it() -> None:
    """A clock that ran as long as the machine is steady; one that was set is not."""
    look = clocks.ClockDoubt(now=clocks.FAR, newest=0, up=5, boot="b")
    assert clocks.doubted(look, [0], None) is None
    assert clocks.doubted(look.replace(now=clocks.FAR + 1), [0], None) is not None
    for step, steady in ((clocks.STEP, True), (clocks.STEP + 1, False)):
        before = look.replace(now=0, up=0)
        after = look.replace(now=1000 + step, up=1000)
        assert (clocks._steady(before, after) > 0) is steady


def test_mail_to_a_word_is_part_of_the_history_of_who_took_that_name() -> None:
    """Mail to the role of that name is no part of it."""
    people = Roster([register("bob-1", name="bob")])
    for extra, is_there in (({BARE: ["bob"]}, True), (None, False)):
        assert address.is_concerned(message(to="role:bob", extra=extra), people.reader("bob-1")) is is_there
