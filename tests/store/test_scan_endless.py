"""Starting a cursor in a large log: what may matter comes through, whatever else is in the log."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_mailbox.core import codec
from agent_mailbox.core.address import DEFAULT_TTL
from agent_mailbox.core.roster import Roster
from agent_mailbox.store.files import lines as read_lines
from agent_mailbox.store.files.lines import line_at, lines_of
from agent_mailbox.store.log import scan
from agent_mailbox.store.log.logs import Logs, OpenLogs
from tests.core.build import T0, message
from tests.helpers import MESSAGES, record

if TYPE_CHECKING:
    from pathlib import Path


MIB = 1 << 20
FOR_BOB = codec.spell_message(message("m1", to=("bob",)))
ALSO_FOR_BOB = codec.spell_message(message("m3", to=("bob",)))
FOR_EVE = codec.spell_message(message("m2", to=("eve",)))
FOREIGN = json.dumps(record("zed", "bob")).encode() + b"\n"


def found(path: Path) -> list[tuple[int, bytes]]:
    """What the scan lets through for bob, lines that no decoder takes left out."""
    with OpenLogs(Logs(str(path.parent))) as logs:
        roster = Roster()
        positions, _ = scan.lines(logs, roster.reader("bob"), roster, T0, DEFAULT_TTL)
        assert logs.messages is not None
        pairs = [(position, line_at(logs.messages, position)) for position in sorted(positions)]
        return [pair for pair in pairs if not isinstance(codec.message(pair[1]), codec.BadLine)]


def test_a_line_without_end_costs_bounded_memory_and_hides_nothing(tmp_path: Path) -> None:
    """Fifty mebibytes of zeros between two messages, and behind the last."""
    path = tmp_path / MESSAGES
    hole = b"\0" * (50 * MIB)
    path.write_bytes(FOR_BOB + hole + b"\n" + ALSO_FOR_BOB + FOREIGN + hole)
    tracemalloc.start()
    try:
        there = found(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    second = len(FOR_BOB) + len(hole) + 1
    assert [position for position, _ in there] == [0, second, second + len(ALSO_FOR_BOB)]
    assert peak < 8 * MIB


@given(
    pieces=st.lists(
        st.sampled_from([FOR_BOB, FOR_EVE, FOREIGN, b"\n", b"\n\n", b"torn", b"x" * 300, b"y" * 900, FOR_BOB[:-1]]),
        max_size=12,
    ),
    chunk=st.integers(2, 200),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_message_for_the_reader_comes_through_where_it_stands(
    tmp_path: Path, pieces: list[bytes], chunk: int
) -> None:
    """However the file is read, and however long lines may be: what the plain way gives for bob, the scan gives, twins
    too: an earlier line of an id may be torn, and the codec alone can tell."""
    path = tmp_path / MESSAGES
    path.write_bytes(b"".join(pieces))
    with path.open("rb") as file:
        plainly = [(at, line) for at, line in lines_of(file.fileno()) if codec.message(line) in BOBS]
    before = scan.CHUNK, read_lines.MAX_LINE
    scan.CHUNK, read_lines.MAX_LINE = 2 * chunk, 500
    try:
        there = found(path)
    finally:
        scan.CHUNK, read_lines.MAX_LINE = before
    assert [pair for pair in there if codec.message(pair[1]) in BOBS] == plainly


BOBS = [codec.message(FOR_BOB), codec.message(FOREIGN)]
