"""Whatever bytes a machine publishes, all copies are equal; any line, address or instant is a value or an error."""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis import example, given

from agent_mailbox import Draft, Mailbox, Registration
from agent_mailbox.core import address, codec, compose, instant
from agent_mailbox.core.records import BadLine, Read, RosterEvent
from agent_mailbox.core.roster import Roster
from agent_mailbox.core.roster_cache import RosterCache, written
from agent_mailbox.errors import MailboxError
from agent_mailbox.space import joining_space
from agent_mailbox.space.copy import bundled_lines
from agent_mailbox.space.copy.replica import Replica
from agent_mailbox.space.order.order import ARCHIVE, CLAIMS, MESSAGES, PASSED, ROSTER, Ordered, reads_of
from agent_mailbox.space.trust import machine_keys
from agent_mailbox.space.trust.space_judge import SpaceJudge
from agent_mailbox.store.files import system
from agent_mailbox.store.log.unordered import unsealed
from agent_mailbox.store.user_state import creation
from tests.core.build import register, roster
from tests.core.test_codec import a_record_or_a_bad_line
from tests.engine.memory_order import MemoryOrder, MemorySpace
from tests.fuzz import strategies as some

if TYPE_CHECKING:
    from collections.abc import Callable


SEAL = b',"seal":"1 0123abcd 0 9 steward 0123456789abcdef0123456789abcdef"}'
SPACE_SEAL = b',"seal":"2 north 7 ' + b"A" * 43 + b"= session:n1 " + b"A" * 86 + b'=="}'
WHOLE = [
    b'{"id":"m1","sender":"../x","recipient":["../../x","a/b"],"timestamp":"2026-01-01T00:00:00Z","content":"x"}',
    b'{"id":"m2","sender":"user","recipient":"../x","timestamp":"2026-01-01T00:00:00Z","type":"control","content":'
    b'"{\\"type\\":\\"mode_set\\",\\"mode\\":\\"plan\\"}"}',
    codec.spell_event(RosterEvent("register", "n1", 1, name="em", tags=("role:r",), lead="n2")).rstrip(),
    codec.spell_event(RosterEvent("retire", "ben", 1)).rstrip(),
    codec.spell_read(Read("m1", "n1", 1, "claim", "role:r")).rstrip(),
    codec.spell_read(Read("m1", "../x", 1)).rstrip(),
    b'{"ignored":"north","event":"register","session_id":"n1"}',
    zlib.compress(b'{"file":"2026-01.jsonl","told":1,"since":0}\n\n\n{"id":1}'),
    zlib.compress(b'{"file":"messages","told":0,"since":-1}\n{"id":"m3"}\n'),
    zlib.compress(b'{"file":"roster.jsonl","told":2,"since":0}\n{"event":"retire","session_id":"ben"}\nx'),
    b'{"followed":true}',
    b'{"damaged":-1}',
]
EDGES = [b"", b"\n", b"{}", b"}", b" ", b"\r", b"\0", SEAL[1:], SPACE_SEAL[1:], SEAL * 3, b"{}" + SEAL, b"a\nb"]
lines = (
    st.sampled_from([*EDGES, *WHOLE, *(one[:-1] + SEAL for one in WHOLE), *(one[:-1] + SPACE_SEAL for one in WHOLE)])
    | st.binary(max_size=40)
    | some.damaged(WHOLE)
    | st.sampled_from(WHOLE).map(lambda one: b" " + one + b" \r")
)
records = st.lists(
    st.tuples(
        st.sampled_from([MESSAGES, ROSTER, CLAIMS, ARCHIVE, PASSED, reads_of("north"), reads_of("x/y"), "joined", ""]),
        lines,
        st.booleans(),
    ),
    max_size=6,
)


class _Copy:
    """One machine: its mailbox and its copy."""

    def __init__(self, place: Path, name: str, space: MemorySpace) -> None:
        self.box = Mailbox(creation.create(str(place / name), os.environ))
        assert self.box.logs.custody is not None
        directory = self.box.logs.custody.path("engine")
        system.make_directory(directory)
        machine_keys.make_key(directory)
        self.copy = Replica(self.box.logs, MemoryOrder(space, name), directory, SpaceJudge("team", name, directory))
        self.box.share(self.copy)

    def comes_to_the_end(self) -> None:
        """The machine takes in everything, compares all, and looks whether anything is lost, as join and leave do."""
        with self.copy.machine_lock():
            self.copy.catch_up()
            self.copy.heard = None
            bundled_lines.compare_with_order(self.copy)
            self.copy.look_closer(at_all=True)
            self.copy.catch_up()
            bundled_lines.compare_with_order(self.copy)

    def lines(self) -> list[list[bytes]]:
        logs = (self.box.logs.roster, self.box.logs.messages, self.box.logs.reads)
        return [sorted(unsealed(line) for _, line in log.lines()) for log in logs]


@some.budget(2)
@given(records)
@example([(log, line, False) for log in (MESSAGES, ROSTER, CLAIMS, ARCHIVE, PASSED) for line in EDGES])
@example([(log, line, False) for line in WHOLE for log in (MESSAGES, ROSTER, CLAIMS, ARCHIVE, PASSED)])
@example([(MESSAGES, b"x", True), (ROSTER, b"", True), (ARCHIVE, b"y", True)])
def test_no_record_locks_anybody_out(found: list[tuple[str, bytes, bool]]) -> None:
    """North publishes any bytes on any log, damaged or not. South, and a new machine, end with equal copies."""
    with tempfile.TemporaryDirectory() as root:
        space = MemorySpace()
        south = _Copy(Path(root), "south", space)
        south.box.register(Registration(session_id="ben"), "ben")
        for log, line, damaged in found:
            space.records.append(Ordered(space.end() + 1, log, line, "north", damaged))
        south.comes_to_the_end()
        sent = south.box.send(Draft(sender="ben", to=("all",), content="one")).message.id
        east = _Copy(Path(root), "east", space)
        east.comes_to_the_end()
        south.comes_to_the_end()
        assert sent in east.box.state().messages
        assert [record.line for record in space.records if not record.is_decision].count(b"") <= len(found)
        assert east.lines() == south.lines()
        joining_space.plan_purge(south.copy.order, space.joined)


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
