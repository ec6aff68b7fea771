"""Lines in our usual spelling are the same messages to the index as to the codec, and all others are left to it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mailbox.core import codec, exact_lines, instant
from agent_mailbox.core.exact_lines import ExactLines, plain_record
from agent_mailbox.core.records import Message
from agent_mailbox.core.words import folded, quick_folding

from .build import read

TEXTS = st.text(st.sampled_from('ab Zü—"\\/\n\t\r\x1f\x7f\u2028\U0001f600nut{}[]:,'), min_size=1, max_size=12)
WORDS = st.sampled_from(["ann", "role:x", "all", "b1134fc7-6f1e-4997-83ed-699c6c8ae683", "é", "a b", "old\nid"])
MESSAGES = st.builds(
    Message,
    id=WORDS,
    sender=WORDS,
    recipients=st.lists(WORDS, min_size=1, max_size=2, unique=True).map(tuple),
    timestamp=st.integers(0, 4102444800000),
    content=TEXTS,
    subject=st.none() | TEXTS,
    thread=st.none() | WORDS,
    ttl_hours=st.sampled_from([None, 24, 0.5]),
    ack=st.booleans(),
    priority=st.sampled_from(["normal", "high"]),
    metadata=st.none() | st.just({"content": "other"}),
)
PUT = [b'"', b"\\", b"\\u0041", b"\xff", b"\x01", b" ", b"0", b"}"]
EDITS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.sampled_from(PUT)), max_size=2)
PLAIN = Message(id="ann", sender="bob", recipients=("all",), timestamp=0, content="text")


def edited(line: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Return the line with some bytes in the place of others."""
    for at, length, put in edits:
        line = line[:at] + put + line[at + length :]
    return line


@example(PLAIN, [(45, 0, b"\\u0041")])
@example(PLAIN, [(97, 0, b"\x01")])  # within its text
@example(PLAIN.replace(content='"thread":null'), [])
@example(PLAIN.replace(content="back\\nslash"), [])
@given(MESSAGES, EDITS)
def test_what_is_taken_apart_is_what_the_codec_reads(message: Message, edits: list[tuple[int, int, bytes]]) -> None:
    """Any writer may have spelt the line; escapes separate words, as the characters that they stand for do."""
    line = edited(codec.spell_message(message).removesuffix(b"\n"), edits)
    fields = ExactLines().fields(line)
    if fields is None:
        return
    read = codec.message(line)
    assert isinstance(read, Message), line
    assert fields[:4] == (read.id, read.sender, read.recipients, read.timestamp)
    assert fields[6] == read.thread
    for mine, theirs in ((fields[4] or "", read.subject or ""), (fields[5], read.content)):
        assert _words(mine) == _words(theirs)


@given(st.text(max_size=20) | TEXTS)
def test_the_quick_folding_gives_the_same_words(text: str) -> None:
    """The quick folding gives the same words as the full one, split at each ASCII sign, as FTS5 splits them."""
    assert _split(quick_folding()(text)) == _split(folded(text))


@pytest.mark.parametrize("word", ["\u0915\u093e\u092e", "\u0ba4\u0bbf\u0baf", "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd"])
def test_a_word_keeps_the_signs_of_its_vowels(word: str) -> None:
    """Hindi, Tamil and pointed Hebrew write vowels as marks: they are no spaces between words."""
    assert folded(word).split() == [word]


def _split(text: str) -> list[str]:
    return "".join(char if char.isalnum() or not char.isascii() else " " for char in text).split()


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in folded(text)).split()


def test_our_writers_lines_are_the_usual_ones() -> None:
    """Else the index is right, and takes three times as long to build."""
    plain = PLAIN.replace(content='two\nlines, a "word", \u00fc')
    for message in (
        plain,
        plain.replace(subject="s", thread="b1134fc7"),
        plain.replace(ack=True, priority="high", ttl_hours=4),
    ):
        line = codec.spell_message(message).removesuffix(b"\n")
        fields = ExactLines().fields(line)
        assert fields is not None, line
        assert fields[6] == message.thread
    assert ExactLines().fields(line[:-1] + b',"seal":"1 27 0 180 user@terminal f0cf5caa"}') is not None
    assert ExactLines().fields(line[:-1] + b',"more":1}') is None


def test_a_line_of_another_form_is_left_to_the_codec() -> None:
    """Another key between subject and text, a leap second, half a character."""
    line = codec.spell_message(PLAIN.replace(subject="s")).removesuffix(b"\n")
    for old, new in (
        (b'"content"', b'"more":"x","content"'), (b'"content":', b'"content":['), (b"00:00.", b"00:60."),
        (b"text", b"\xff"),
    ):  # fmt: skip
        assert line.count(old) == 1
        assert ExactLines().fields(line.replace(old, new)) is None, new
    assert ExactLines().fields(line) is not None


def test_the_days_that_a_reader_remembers_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any program may write lines of all days that there are."""
    monkeypatch.setattr(exact_lines, "_MOST_DAYS", 4)
    reader = ExactLines()
    for day in [*range(9), 8, 0]:
        line = codec.spell_message(PLAIN.replace(timestamp=day * instant.DAY)).removesuffix(b"\n")
        fields = reader.fields(line)
        assert fields is not None
        assert (fields[3], len(reader._days) <= 4) == (day * instant.DAY, True)


def test_our_writers_reads_are_told_without_being_decoded() -> None:
    """A reader of the log would be right without that, and slow. Other spellings are decoded."""
    for event, takes in (("read", True), ("ack", True), ("seen", False)):
        line = codec.spell_read(read(f"{5:032}", "bob-1", event=event)).removesuffix(b"\n")
        assert plain_record(line) == (b"%032d" % 5, b"bob-1", takes, False)
        assert plain_record(line.replace(b'":"', b'": "')) is None
