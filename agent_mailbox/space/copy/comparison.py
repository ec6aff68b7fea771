"""Comparing a machine's copy with the order of its shared mailbox.

Belongs here: the last step of joining and leaving, and a check of the person's. Whatever was taken in of the order is
in the local logs, or archived.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ...errors import BadData
from ...store.log.unordered import Unordered, digest, unsealed
from ..order.order import has_known_log, is_known

if TYPE_CHECKING:
    from ..local_copy import ComparedCopy

DAMAGED = "damaged"
"""The word for damaged records among those that were passed over: no log has that name."""


def compare_with_order(copy: ComparedCopy) -> dict[str, int]:
    """Compare a copy with the order, under the machine's lock, after ``catch_up``; raise ``BadData`` if they differ.

    Return how many records of each log were passed over, since nobody here knows it. Those that no file can hold count
    as another program's, of no log. These and damaged ones keep nobody from joining or leaving.
    Lines of no known form, and messages whose id another message has, stay here alone. A record that came since is no
    difference. A process that has just taken in everything compares the sums of what it read with those of what is
    here, and passes over none."""
    if copy.heard is not None and all(part.total() == copy.heard[kind] for kind, part in copy.parts.items()):
        return {}
    parts = {kind: Unordered(part.log) for kind, part in copy.parts.items()}
    for part in parts.values():
        part.look()
    copy.filed.look()
    strange, end = dict[str, int](), copy.state.applied
    for record in itertools.takewhile(lambda one: one.position <= end, copy.all_records()):
        key = digest(unsealed(record.line))
        if record.damaged or not is_known(record):
            kind = DAMAGED if record.damaged else "" if has_known_log(record) else record.log
            strange[kind] = strange.get(kind, 0) + 1
        elif not (record.is_decision or parts[record.kind].strike(key) or copy.filed.has(key)):
            raise BadData(f"record of the space is not here: {record.position}", "`agent-mailbox engine join`")
    return strange
