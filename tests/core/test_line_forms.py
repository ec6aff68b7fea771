"""What one key of a line says, without decoding it."""

from __future__ import annotations

from inspect import isfunction, signature

from agent_mailbox.core import codec, line_forms
from agent_mailbox.core.records import Read

MESSAGE = (
    b'{"id":"a1","sender":"x","recipient":["me","role:r"],"timestamp":"2026-03-16T09:00:00.000Z","thread":"q",'
    b'"content":"hi","ack":true,"read_by":[]}'
)
READ = codec.spell_read(Read("m1", "bob", 1_773_650_000_000, "read")).rstrip(b"\n")


def test_a_torn_read_names_no_reader() -> None:
    """A read record that is cut anywhere before its reader's end has none; a whole one has."""
    line = READ
    end = line.index(b'bob"') + len(b'bob"')
    assert [line_forms.reader_of(line[:at]) for at in range(end)] == [None] * end
    assert {line_forms.reader_of(line[:at]) for at in range(end, len(line) + 1)} == {b"bob"}


def test_mail_that_neither_answers_nor_is_control_settles_nothing() -> None:
    """The filter before a look at what is settled passes by plain mail alone."""
    plain = MESSAGE.replace(b'"thread":"q"', b'"thread":null')
    control = plain.replace(b'"read_by":[]', b'"read_by":[],"type":"control"')
    assert [line_forms.may_settle(line) for line in (plain, MESSAGE, control)] == [False, True, True]
    assert [
        line_forms.may_ask_or_answer(plain.replace(b',"ack":true', b"")),
        line_forms.may_ask_or_answer(MESSAGE),
    ] == [
        False,
        True,
    ]


def test_no_filter_fails_on_a_line_that_is_cut() -> None:
    """Each question about one line has an answer for every beginning and every end of a line."""
    one_line = [f for f in vars(line_forms).values() if isfunction(f) and [*signature(f).parameters] == ["line"]]
    assert line_forms.reader_of in one_line
    for line in (MESSAGE, READ):
        for at in range(len(line) + 1):
            for ask in one_line:
                ask(line[:at])
                ask(line[at:])
