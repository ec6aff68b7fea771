"""Whether mail can be kept now: the answer of ``/swarm/health`` and of the local API.

Belongs here: real writes and real opens, seldom (``FRESH``), and the outcome of the last mail that was to be kept. Then
the gateway in numbers, for Prometheus. Counters count where things happen; the rest is looked up when somebody asks. No
label follows from what a stranger sends, so the number of series is fixed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import generate_latest

from ..core import instant
from ..errors import MailboxError
from ..mailbox.mailbox import Mailbox
from ..store.files.small_files import open_file, replace_file
from . import boxes, pairing
from . import home as names
from .carrier import Carrier
from .gateway import Gateway
from .ledger import Ledger
from .protocol.limits import Room

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FRESH = 1.0
"""Seconds for which a look counts: strangers who ask cost no more."""
REMEMBERED = 60.0
"""Seconds for which a failed write counts, if nothing was kept since."""
PROBE = "probe"
BLOCK = b"\0" * 4096


class Readiness:
    """Looks for a reason why a gateway cannot keep mail; thread-safe.

    One mailbox that fails makes a gateway with several no worse for the others: peers of its swarms are told.
    """

    def __init__(
        self,
        mailboxes: Sequence[Mailbox],
        ledger: Ledger,
        unread: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``unread``: why the mailbox of a place takes no mail, as the gateway found (``Gateway.unread``)."""
        self.mailboxes, self._ledger, self._unread, self._clock = list(mailboxes), ledger, unread, clock
        self._lock = threading.Lock()
        self._looked, self._found = float("-inf"), ""
        self._failed: tuple[float, str] | None = None

    def note_outcome(self, code: str) -> None:
        """Note that mail was kept, or (``code``) was not."""
        self._failed = (self._clock(), code) if code else None

    def current_problem(self) -> str:
        """Return why nothing can be kept, for the machine's own eyes; empty if mail can be kept."""
        with self._lock:
            now = self._clock()
            if now - self._looked >= FRESH:
                self._found = self._find_problem()
                self._looked = self._clock()
        failed = self._failed
        if not self._found and failed is not None and self._clock() - failed[0] < REMEMBERED:
            return f"the last message could not be kept: {failed[1]}"
        return self._found

    def _find_problem(self) -> str:
        home = self._ledger.home
        try:
            home.check_modes()
            if not self._ledger.read_knowledge().agent_id:
                return f"the ledger is gone: {home.path_of(names.LEDGER)}"
            _check_opens(home.path_of(names.KEY), os.O_RDONLY)
            _check_opens(home.path_of(names.LEDGER), os.O_WRONLY | os.O_APPEND)
            replace_file(home.path_of(PROBE), BLOCK)
            os.unlink(home.path_of(PROBE))
            _check_appendable(home.path_of(names.OUTBOX))
        except MailboxError as error:
            return error.what
        except OSError as error:
            return f"{error.filename or home.directory}: {error.strerror}"
        found = [_problem_of(mailbox) for mailbox in self.mailboxes]
        return found[0] if all(found) else ""

    def unusable_mailboxes(self) -> dict[str, str]:
        """Return the mailboxes that cannot keep mail, each with the reason; those that are away, too."""
        found = {}
        for mailbox in self.mailboxes:
            place = boxes.place_of(mailbox)
            found[place] = _problem_of(mailbox) or self._unread.get(place)
        home = self._ledger.home
        for place in pairing.mailboxes_of(home):
            found.setdefault(place, f"{place}: away ({boxes.why_away(home, place) or 'coming back'})")
        return {place: why for place, why in found.items() if why}


def _problem_of(mailbox: Mailbox) -> str:
    """Return why a mailbox takes no new lines; empty if it does."""
    directory = mailbox.directory
    try:
        _check_appendable(mailbox.logs.messages.path)
        free = os.statvfs(directory)
    except MailboxError as error:
        return error.what
    except OSError as error:
        return f"{error.filename or directory}: {error.strerror}"
    if not os.access(directory, os.W_OK | os.X_OK) or free.f_flag & os.ST_RDONLY:
        return f"{directory}: cannot be written"
    return f"{directory}: no space is left" if free.f_blocks and free.f_bavail == 0 else ""


def _check_appendable(path: str) -> None:
    if os.path.lexists(path):
        _check_opens(path, os.O_WRONLY | os.O_APPEND)


def _check_opens(path: str, flags: int) -> None:
    os.close(open_file(path, flags))


class GatewayMetrics:
    """The numbers of one gateway."""

    def __init__(self, gateway: Gateway, carrier: Carrier, readiness: Readiness, connections: Room) -> None:
        self._gateway, self.carrier = gateway, carrier
        self._registry = CollectorRegistry()
        own: Any = {"namespace": "agent_mailbox_swarm", "registry": self._registry}
        self._requests = Counter("requests", "Requests of peers by endpoint and status.", ["endpoint", "status"], **own)
        self._refused = Counter("connections_refused", "Connections closed at once, by the reason.", ["reason"], **own)
        self._batches = Counter("batches", "Batches of incoming mail, by outcome.", ["outcome"], **own)
        looked_up: tuple[tuple[str, str, Callable[[], float]], ...] = (
            ("connections", "Connections of peers that are open.", lambda: connections.taken),
            ("incoming_waiting", "Incoming messages that wait to be written.", lambda: gateway.waiting),
            ("outbox_messages", "Outgoing messages not yet delivered to all.", lambda: len(carrier.outbox.fold.open)),
            ("outbox_oldest_seconds", "Age of the oldest of these.", self._oldest_seconds),
            ("ready", "1 if mail can be kept.", lambda: 0 if readiness.current_problem() else 1),
        )
        for name, said, value in looked_up:
            Gauge(name, said, **own).set_function(value)
        peers = Gauge("peers", "Peers by the outcome of the last try.", ["reached"], **own)
        peers.labels("yes").set_function(lambda: carrier.count_reached()[0])
        peers.labels("no").set_function(lambda: carrier.count_reached()[1])

    def _oldest_seconds(self) -> float:
        waiting = [parcel.event["at"] for parcel in list(self.carrier.outbox.fold.open.values())]
        return max(0.0, (self._gateway.ledger.now() - instant.parse(min(waiting))) / 1000) if waiting else 0.0

    def count_request(self, endpoint: str, status: int) -> None:
        self._requests.labels(endpoint, str(status)).inc()

    def count_refused(self, why: str) -> None:
        """Count a connection that found no place."""
        self._refused.labels(why).inc()

    def count_batch(self, code: str) -> None:
        """Count a batch that was kept, or (``code``) was not."""
        self._batches.labels("failed" if code else "kept").inc()

    def metrics_text(self) -> bytes:
        """Return everything in Prometheus's text format."""
        return generate_latest(self._registry)
