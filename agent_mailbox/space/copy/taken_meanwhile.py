"""Taking in other machines' lines while a process of this machine has its turn, and waits for the engine.

Belongs here: what is sound then. Records are appended here in their order, as ever. Whatever needs the turn is left
to its holder: a steward's decision, a damaged record, an order that lost its end, a comparison of all.
"""

from __future__ import annotations

import itertools

from ...store.log.unordered import digest, unsealed
from ..order.order import PAGE
from . import known_copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...core.records import Proof
    from ..order.order import Ordered
    from .replica import Replica


def take_in_beside(copy: Replica) -> int:
    """Write what is new in the order; return how many records. The caller has no turn, and no lock."""
    taken = 0
    while True:
        with copy.files_lock():
            known = copy.look_beside()
        if known is None:
            return taken
        applied, tip = known
        found = copy.order.read_after(applied - 1, PAGE)
        if not found or found[0].position != applied or digest(unsealed(found[0].line)).hex() != tip:
            return taken  # the order lost its end
        plain = [*itertools.takewhile(lambda record: not (record.is_decision or record.damaged), found[1:])]
        if not plain:
            return taken
        with copy.files_lock():
            if copy.look_beside() == known:
                taken += copy.write_records(plain, _own_proofs(copy, plain))


def _own_proofs(copy: Replica, records: list[Ordered]) -> dict[bytes, Proof | None]:
    """Return what the process that published lines of this machine saw of their writers, by line."""
    lines = {unsealed(record.line) for record in records if record.machine == copy.order.machine}
    noted = known_copy.noted_proofs(copy.directory) if lines else {}
    return {line: noted[key] for line in lines if (key := digest(line).hex()) in noted}
