"""The gateway in numbers, for Prometheus: ``GET /metrics`` on the local API.

Belongs here: names and meanings. Counters count where things happen; the rest is looked up when somebody asks. No label
follows from what a stranger sends, so the number of series is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import generate_latest

from ..core import instant
from .carrier import Carrier
from .gateway import Gateway
from .protocol.limits import Room
from .readiness import Readiness

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
        """Count an answer."""
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
