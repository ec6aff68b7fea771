"""Standing orders: the modes, policies and plan requirements that an agent is under.

Belongs here: the orders that counted when they were given, and their result for one agent. A successor is under them
too: clearing a context sheds no policy. For a successor that only took the name they loosen nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..address import ALL
from ..records import Record
from . import authority
from .messages import STRICTNESS, PolicyUpdate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..roster import Roster

MODE, POLICY, HOSTS, HOLD, RELEASE = "mode", "policy", "hosts", "hold", "release"


class Order(Record):
    """One order: its sender, its time (ms), its agent or all that the sender leads, its value.

    ``place`` is its place in the log's order. An order that is not ``proven`` only narrows.
    """

    place: int
    sender: str
    when: int
    to: str
    kind: str
    value: Any
    message_id: str
    proven: bool = True


class StandingOrders(Record):
    """Rules in the client's own syntax, and the hosts that may be contacted: all, if none is named. A deny rule goes
    before any allow rule."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether there is no rule and no host."""
        return not (self.allow or self.deny or self.hosts)


def _orders_of(orders: Sequence[Order], session_id: str, roster: Roster) -> Iterator[tuple[Order, bool]]:
    """Yield the orders that concern an agent, each with whether it may loosen anything."""
    line, estate = roster.lineage(session_id), roster.estate(session_id)

    def led(order: Order, proven: bool) -> bool:
        ones = estate if proven else line
        return any(authority.commands(order.sender, one, order.when, roster, proven=proven) for one in ones)

    for order in orders:
        if order.to in line:
            yield order, order.proven and order.to in estate
        elif order.to == ALL and led(order, False):
            yield order, order.proven and led(order, True)


def find_mode(orders: Sequence[Order], session_id: str, roster: Roster) -> tuple[str, list[Order]]:
    """Return the agent's mode and the orders it rests on.

    The approval of a plan that was asked for in plan mode ends that mode. Orders that may not loosen are kept apart:
    they leave the others in place, and hold until one follows them.
    """
    mode, since = "default", -1
    rests: list[Order] = []
    narrowing: list[Order] = []
    for order, may_loosen in _orders_of(orders, session_id, roster):
        if order.kind == MODE and may_loosen:
            mode, since, rests, narrowing = order.value, order.place, [order], []
        elif order.kind == MODE:
            narrowing.append(order)
        elif order.kind == RELEASE:
            if may_loosen and mode == "plan" and order.value[0] > since:
                mode, rests = order.value[1] or "default", [*rests, order]
            narrowing = [one for one in narrowing if one.value != "plan" or not _frees(order, may_loosen, one)]
    return max([mode, *(one.value for one in narrowing)], key=STRICTNESS.index), [*rests, *narrowing]


def _frees(release: Order, may_loosen: bool, held: Order) -> bool:
    """Return whether the approval of a plan ends an order: it must be earlier, and of the same agent unless it may
    loosen."""
    return held.place <= release.value[0] and (may_loosen or held.to == release.to)


def find_policy(orders: Sequence[Order], session_id: str, roster: Roster) -> tuple[StandingOrders, list[Order]]:
    """Return the agent's policy, the last one set and the additions since; and the orders it rests on."""
    found = StandingOrders()
    rests: list[Order] = []
    for order, may_loosen in _orders_of(orders, session_id, roster):
        if order.kind == HOSTS and (may_loosen or not found.hosts):
            found = found.replace(hosts=_joined(found.hosts, order.value))
        elif order.kind == POLICY:
            update: PolicyUpdate = order.value
            if not may_loosen:  # its deny rules and its first hosts bind; it removes no rule, and allows nothing
                update = PolicyUpdate(deny=update.deny, hosts=() if found.hosts else update.hosts, adds=True)
            base = found if update.adds else StandingOrders()
            rests = rests if update.adds else []
            found = StandingOrders(
                _joined(base.allow, update.allow), _joined(base.deny, update.deny), _joined(base.hosts, update.hosts)
            )
        else:
            continue
        rests = [*rests, order]
    return found, rests


def _joined(one: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *more)))


def find_hold(orders: Sequence[Order], session_id: str, roster: Roster) -> tuple[bool, list[Order]]:
    """Return whether a plan is required of the agent, and none was approved that it asked for since; and the orders
    that rests on."""
    held: list[Order] = []
    rests: list[Order] = []
    for order, may_loosen in _orders_of(orders, session_id, roster):
        if order.kind == HOLD:
            rests = [*rests, order] if held else [order]
            held.append(order)
        elif order.kind == RELEASE and held:
            held = [one for one in held if not _frees(order, may_loosen, one)]
            rests = [*rests, order]
    return bool(held), rests


def order_ids(orders: Sequence[Order], roster: Roster) -> Iterator[str]:
    """Yield the messages that orders still rest on.

    These are the orders of agents that are not dead, or may come back, and all orders to everyone.
    """
    for agent in roster.agents.values():
        if agent.client is not None or agent.session_id in roster.heirs(agent.session_id):
            for find in (find_mode, find_policy, find_hold):
                yield from (order.message_id for order in find(orders, agent.session_id, roster)[1])
    yield from (order.message_id for order in orders if order.to == ALL)
