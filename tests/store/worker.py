"""One of several processes that use a mailbox at once: ``python -m tests.store.worker JOB BOX ARGUMENTS…``.

A worker says ``ready`` and starts when its standard input is closed, so that all start together.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from agent_mailbox import Draft, Mailbox, Refused
from agent_mailbox.core.roster_changes import Registration
from agent_mailbox.mailbox.queries import MailQueries
from agent_mailbox.upkeep import steward as stewards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mailbox.core.inbox import Item


def send(mailbox: Mailbox, me: str, count: str, *to: str) -> list[str]:
    """Send ``count`` messages, to each address in turn; the ids, in order."""
    return [
        mailbox.send(Draft(sender=me, to=(to[n % len(to)],), content=f"{n} from {me}")).message.id
        for n in range(int(count))
    ]


def read(mailbox: Mailbox, me: str, count: str) -> list[str]:
    """Check until as many messages were shown as are known to come; their ids, in the order shown."""
    shown: list[str] = []

    def show(items: list[Item]) -> Sequence[Item]:
        shown.extend(item.message.id for item in items)
        return items

    while len(shown) < int(count):
        mailbox.deliver(me, show)
    return shown


def share(mailbox: Mailbox, me: str, last: str) -> list[str]:
    """Check role mail beside other holders, until the ``last`` message is claimed by any of them; what was shown."""
    shown: list[str] = []

    def show(items: list[Item]) -> Sequence[Item]:
        shown.extend(item.message.id for item in items[:12])
        return items[:12]

    while mailbox.deliver(me, show, choose=lambda items: items[:12]) or not any(
        MailQueries(mailbox).everything().reads.of(i) for i in _ids(mailbox, last)
    ):
        pass
    return shown


def _ids(mailbox: Mailbox, content: str) -> list[str]:
    return [m.id for m in MailQueries(mailbox).everything().messages.values() if m.content == content]


def watch(mailbox: Mailbox, me: str, last: str) -> list[str]:
    """Look at everything until the ``last`` message is there: nothing may vanish, the pending stays pending."""
    queries = MailQueries(mailbox)
    known: set[str] = set()
    pending = [item.message.id for item in mailbox.peek(me)]
    rounds = 0
    while not _ids(mailbox, last):
        everything = queries.everything()
        now = set(everything.messages)
        assert known <= now, f"vanished: {known - now}"
        assert [item.message.id for item in mailbox.peek(me)] == pending, "pending mail changed"
        for message_id in known & set(list(now)[:3]):
            assert mailbox.find(message_id).message.id == message_id
        assert {read.message_id for m in everything.messages for read in everything.reads.of(m)} <= now
        known, rounds = now, rounds + 1
    return [str(rounds)]


def enrol(mailbox: Mailbox, me: str, count: str) -> list[str]:
    """Register sessions under contested names; the names that were to be had."""
    had = []
    for n in range(int(count)):
        try:
            agent, _ = mailbox.register(Registration(session_id=f"{me}-{n}", name=f"name{n}"), "user")
            had.append(str(agent.name))
        except Refused:
            continue
    return had


def keep(mailbox: Mailbox, me: str, count: str) -> list[str]:  # noqa: ARG001 - a steward is nobody
    """Be the steward again and again, moving whatever is finished; how much that was each time."""
    return [str(stewards.run_upkeep(mailbox, 0).archived) for _ in range(int(count))]


JOBS = {job.__name__: job for job in (send, read, share, watch, enrol, keep)}


if __name__ == "__main__":
    box = Mailbox(sys.argv[2])
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(JOBS[sys.argv[1]](box, *sys.argv[3:])))
