"""Sealing lines of a log that waited for the person's word, each at its place.

Belongs here: writing the log again with those seals. It does not know who may say what. As when the steward moves mail,
a kill leaves the old log or the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..log import replacement
from . import rotation

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.records import Proof
    from ..log.log import Log
    from ..log.logs import Logs
    from ..log.proof_view import ProofView
    from ..log.replacement import Replaced

    Judge = Callable[[int, bytes, ProofView], tuple[bytes, Proof] | None]
    """Is asked about each line in turn, with its position; returns its content and the proof that it gets, or None."""


def reseal(logs: Logs, log: Log, judge: Judge) -> tuple[int, Replaced | None]:
    """Seal the lines of a log for which ``judge`` returns a proof; return how many those are, and the fresh log.

    Raises ``Refused`` for a mailbox that is not as it was left: the person must see it unchanged."""
    with log.held() as held:
        rotation.refuse_broken(logs)
        replacement.clear_leftover(held)
        view = held.view()
        if view is None:
            return 0, None
        lines, size = rotation.raw_lines(held)
        fresh, done = [], 0
        for position, line in lines:
            found = judge(position, line, view)
            if found is not None:
                content, proof = found
                line = view.kept.sealed([content + b"\n"], [proof], position, view.entry.generation)[0][:-1]
                done += 1
            fresh.append((position, line))
        return done, replacement.put_back(held, fresh, size, before=view.entry.before) if done else None
