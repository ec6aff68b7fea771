"""Check the proofs: do the logs continue what our writers left, and what do unproven lines claim?

Belongs here: comparing the mailbox's record outside the project (``store.custody``) with the logs, and counting the
lines that claim more than they prove.
"""

from __future__ import annotations

from ...core import claims, codec
from ...core.proofs import BEFORE, proves
from ...core.records import USER, BadLine
from ...store import system
from ...store.line_numbers import numbered_in
from .findings import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...mailbox.facade import Mailbox
    from ...store.log import Log
    from ...store.proof_view import ProofView

TRUST = "`agent-mailbox doctor --trust`"
ADOPT = "`agent-mailbox init --adopt`"
WEAK = "this may forbid your agents something, but permits nothing and settles nothing that you asked"


def examine(mailbox: Mailbox) -> Iterator[Problem]:
    """Yield a log that our writers did not leave so, and notes of unproven lines in others' names."""
    record = mailbox.logs.custody
    if record is None:
        return  # place_checks reports it
    logs = mailbox.logs
    for log in (logs.messages, logs.reads, logs.roster):
        log.attentively(_read)
    if (why := record.broken()) is not None:
        what = f"{why}: nothing here counts as proven, and agents keep their restrictions, until you check the logs"
        yield Problem(mailbox.directory, None, f"{what} and run {TRUST}")
        return
    asked = _asked(logs.messages)
    yield from _counted(logs.messages, _claims_much, "in the person's name or about control")
    yield from _counted(logs.roster, lambda _: True, "of the roster")
    yield from _counted(logs.reads, lambda line: _settles(line, asked), "about control or the person's requests")


def _read(fd: int, view: ProofView | None) -> bool:
    """Read the deciding lines, so that the record notices missing ones."""
    if view is not None:
        for _, position, line in _lines(fd):
            if view.kept.decides(line):
                view.read(line, position)
    return True


def _lines(fd: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (line number, byte offset, line) of an open log."""
    from ...store.lines import lines_of

    positions = lines_of(fd, 0, system.fstat(fd).st_size)
    for (number, line), (position, _) in zip(numbered_in(fd, system.fstat(fd).st_size), positions, strict=False):
        yield number, position, line


def _asked(log: Log) -> set[str]:
    """Return the ids of proven control messages, and of proven messages for which the person asked an ack."""
    view, found = log.view(), set[str]()
    if view is None:
        return found
    for position, line in log.lines():
        if b'"ack":true' in line or b'"type":"control"' in line:
            message = codec.message(line)
            if not isinstance(message, BadLine) and claims.is_kept(message) and proves(view.proof(line, position)):
                found.add(message.id)
    return found


def _claims_much(line: bytes) -> bool:
    message = codec.message(line)
    return not isinstance(message, BadLine) and (message.type == "control" or message.sender == USER)


def _settles(line: bytes, asked: set[str]) -> bool:
    record = codec.read(line)
    return not isinstance(record, BadLine) and record.message_id in asked


def _counted(log: Log, matters: Callable[[bytes], bool], what: str) -> Iterator[Problem]:
    """Yield notes of unproven lines: from before seals, from another program, and sealed ones copied elsewhere."""
    found: dict[str, list[int]] = {}
    view, fd = log.view(), log.open()
    if view is None or fd is None:
        return
    try:
        for number, position, line in _lines(fd):
            proof = view.proof(line, position)
            if not proves(proof) and matters(line):
                kind = "moved" if view.is_misplaced(line, position) else "before" if proof == BEFORE else "foreign"
                kind = "waits" if view.waits(line, position) else kind
                found.setdefault(kind, []).append(number)
    finally:
        system.close(fd)
    told = {
        "foreign": f"unproven {{}} {what}, of another program: {WEAK}; look who wrote it",
        "waits": f"unproven {{}} {what}, of another machine of the space: {WEAK}; see `agent-mailbox engine status`",
        "moved": "sealed {} copied to another place, which do not count there; look who copied it",
        "before": f"unsealed {{}} {what}, from before seals: {WEAK}; if you trust all of them, run {ADOPT}",
    }
    for kind, numbers in found.items():
        lines = "line" if len(numbers) == 1 else "lines"
        yield Problem(log.path, numbers[0], f"{len(numbers)} {told[kind].format(lines)}", note=True)
