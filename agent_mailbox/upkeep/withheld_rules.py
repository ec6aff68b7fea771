"""Rules that files which were brought back would allow again: they wait for a word of their own.

Belongs here: which rules these are, and the person's orders that withhold them. A log that was cut, replaced or rolled
back may have lost the line that took a rule back. So the person's word for the log (``adoption.trust_logs``) is none
for what it allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..control.steps import post_message
from ..control_plane import control_log
from ..core import compose, frame, proofs
from ..core.address import ALL
from ..core.control import message_text
from ..core.control import messages as m
from ..core.records import USER, Message, Record
from ..core.roster import DEAD
from ..core.text import typed
from ..mailbox.open_mailbox import OpenMailbox, random_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.control.state import ControlState
    from ..mailbox.mailbox import Mailbox

_WIDE = m.STRICTNESS[: m.STRICTNESS.index("default")]
"""The modes in which an agent is asked less than by default."""


class Withheld(Record):
    """The rules that would allow one agent, or ``all``, something again, and its ``mode`` (empty: none wider than now).

    ``said`` tells it in a line, with the agent's name; ``command`` lets it count. ``orders`` withhold it."""

    session_id: str
    allow: tuple[str, ...]
    mode: str
    said: str
    command: str
    orders: tuple[m.Payload, ...]


def compare_rules(then: OpenMailbox, now: OpenMailbox) -> tuple[Withheld, ...]:
    """Return what the logs would allow once they count, and do not allow now; the orders of all have their order."""
    after, before = control_log.of(then), control_log.of(now)
    found = [_rules_for(ALL, after, before, everyone=False)]
    everyone = bool(found[0].orders)  # then it also replaces what each agent has of its own
    found += [_rules_for(who, after, before, everyone=everyone) for who in after.roster.agents if who != USER]
    return tuple(one for one in found if one.orders)


def _rules_for(who: str, after: ControlState, before: ControlState, *, everyone: bool) -> Withheld:
    """Return what one agent would be allowed. ``everyone``: the orders replace those that follow an order to all."""
    rules, mode, known = after.policy(who), after.mode(who), before.policy(who).allow
    allow = tuple(rule for rule in rules.allow if rule not in known)
    wide = mode if mode in _WIDE and mode != before.mode(who) else ""
    orders: list[m.Payload] = []
    if allow or (everyone and not rules.is_empty):
        kept = tuple(rule for rule in rules.allow if rule in known)
        orders.append(m.PolicyUpdate(allow=kept, deny=rules.deny, hosts=rules.hosts))
    if wide or (everyone and mode != "default"):
        orders.append(m.ModeSet(mode="default" if wide else mode))
    name = ALL if who == ALL else frame.name_of(who, after.roster)
    told = [f"allow {rule}" for rule in allow] + ([f"mode {wide}"] if wide else [])
    options = "".join(f" --allow {typed(rule)}" for rule in allow)
    command = f"control policy {typed(who)}{options} --add" if allow else f"control mode {typed(who)} {wide}"
    return Withheld(who, allow, wide, f"{name}: {', '.join(told)}" if told else "", command, tuple(orders))


def withholding_lines(withheld: tuple[Withheld, ...], now: int) -> Iterator[bytes]:
    """Yield the person's orders that withhold these rules, as lines of the messages log; ``now`` in ms."""
    for one in withheld:
        for order in one.orders:
            content = message_text.written(order.replace(timestamp=now, agent_id=USER))
            yield compose.stored_line(Message(random_id(), USER, (one.session_id,), now, content, type="control"))


def send_withholding(withheld: tuple[Withheld, ...], mailbox: Mailbox) -> None:
    """Send the same orders, in a mailbox that several machines share. The dead are sent none: they come back as others
    let them."""
    box = OpenMailbox(mailbox.directory, prove=lambda _: proofs.TERMINAL)
    for one in withheld:
        if box.logs.read_roster().state(one.session_id) != DEAD:
            for order in one.orders:
                post_message(box, USER, order, [one.session_id])
