"""What one key of a line says, without decoding it."""

from __future__ import annotations

from agent_mailbox.core import codec, line_forms
from agent_mailbox.core.records import Read


def test_a_torn_read_names_no_reader() -> None:
    """A read record that is cut anywhere before its reader's end has none; a whole one has."""
    line = codec.spell_read(Read("m1", "bob", 1_773_650_000_000, "read")).rstrip(b"\n")
    end = line.index(b'bob"') + len(b'bob"')
    assert [line_forms.reader_of(line[:at]) for at in range(end)] == [None] * end
    assert {line_forms.reader_of(line[:at]) for at in range(end, len(line) + 1)} == {b"bob"}
