"""Lines, addresses and instants of any kind: a value, or one of our own errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given

from agent_mailbox.core import address, codec, compose, instant
from agent_mailbox.core.records import BadLine
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.roster_cache import RosterCache, written
from agent_mailbox.errors import MailboxError
from tests.core.build import register, roster
from tests.core.test_codec import a_record_or_a_bad_line
from tests.fuzz import strategies as some

if TYPE_CHECKING:
    from collections.abc import Callable

KNOWN = roster(register("bob", "role:x", "project:x", name="rob"), register("ann-123456"), register("x-1", "role:y"))
BIG = 1 << 64


@given(line=some.lines)
def test_a_line_is_a_record_or_a_bad_line(line: bytes) -> None:
    """Each of the three logs takes any line as a record or as a bad line. Such a record can be written and read
    again."""
    a_record_or_a_bad_line(line)


@given(line=some.lines)
def test_what_is_taken_as_json_is_what_the_standard_library_reads(line: bytes) -> None:
    """Nothing is taken that is not JSON, and nothing is taken for something else."""
    found = codec.parse(line)
    if not isinstance(found, BadLine):
        assert found == json.loads(line, parse_int=lambda digits: n if -BIG < (n := int(digits)) < BIG else float(n))


@given(line=some.lines)
def test_any_roster_line_makes_a_roster_that_can_be_kept_and_asked(line: bytes) -> None:
    """Folded with others, written down and looked things up in, it gives the same answers."""
    event = codec.roster_event(line)
    if isinstance(event, BadLine):
        return
    folded = Roster([register("bob", "role:x", name="rob"), event, register("late", "role:x")])
    kept = RosterCache(written(folded))
    for word in ("bob", "rob", "late", "user", event.session_id, event.name or "-"):
        assert kept.meant(word) == folded.meant(word)
        assert kept.lineage(word) == folded.lineage(word)
        assert kept.heirs(word) == folded.heirs(word)
    assert kept.agents == folded.agents


@given(word=some.words)
def test_an_address_is_taken_or_malformed(word: str) -> None:
    """Every check returns what it was given or a role's tag, or refuses; what it returned it takes again."""
    checks: list[Callable[[str], str]] = [
        address.check_id,
        address.check_name,
        address.check_role,
        lambda text: address.check_tag(text, address.NAMESPACES),
    ]
    for check in checks:
        try:
            found = check(word)
        except MailboxError:
            continue
        else:
            assert found in (word, f"role:{word}")
            assert check(found) == found


@given(word=some.words)
def test_a_recipient_is_resolved_or_refused(word: str) -> None:
    """A recipient is refused or is stored as an address that routing understands, strict or not."""
    for strict in (False, True):
        try:
            found = compose.resolve((word,), KNOWN, address.NAMESPACES, strict=strict)
        except MailboxError:
            continue
        else:
            for stored in found.recipients:
                assert KNOWN.mode(stored) in address.MODES
                address.route((stored,), KNOWN.reader("bob"))


@given(text=some.instants | some.words)
def test_an_instant_is_a_number_or_a_value_error(text: str) -> None:
    """A text is an instant or a `ValueError`. An instant that was taken reads the same when it is written."""
    try:
        found = instant.parse(text)
    except ValueError:
        return
    assert instant.parse(instant.text(found)) == found
