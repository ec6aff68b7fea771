"""The gateway in numbers, for Prometheus: ``GET /metrics`` on the local API.

Belongs here: names and meanings. Counters count where things happen; the rest is looked up when somebody asks. No label
follows from what a stranger sends, so the number of series is fixed.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..core import instant
from .carrier import Carrier
from .gateway import Gateway
from .readiness import Readiness
from .room import Room

PREFIX = "agent_mailbox_swarm"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class GatewayMetrics(Collector):
    """The numbers of one gateway."""

    def __init__(self, gateway: Gateway, carrier: Carrier, readiness: Readiness, connections: Room) -> None:
        self._gateway, self.carrier = gateway, carrier
        self._readiness, self._connections = readiness, connections
        self._registry = CollectorRegistry()
        self._requests = self._make_counter(
            "requests", "Requests of peers by endpoint and status.", "endpoint", "status"
        )
        self._refused = self._make_counter(
            "connections_refused", "Connections closed at once, by the reason.", "reason"
        )
        self._batches = self._make_counter("batches", "Batches of incoming mail, by outcome.", "outcome")
        self._registry.register(self)

    def _make_counter(self, name: str, said: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", said, labels, registry=self._registry)

    def count_request(self, endpoint: str, status: int) -> None:
        """Count an answer."""
        self._requests.labels(endpoint, str(status)).inc()

    def count_refused(self, why: str) -> None:
        """Count a connection that found no place."""
        self._refused.labels(why).inc()

    def count_batch(self, code: str) -> None:
        """Count a batch that was kept, or (``code``) was not."""
        self._batches.labels("failed" if code else "kept").inc()

    def describe(self) -> list[Metric]:
        """Return nothing: what is looked up has no name before."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield what is looked up now."""
        reached, away = self.carrier.count_reached()
        waiting = [parcel.event["at"] for parcel in list(self.carrier.outbox.fold.open.values())]
        oldest = max(0.0, (self._gateway.ledger.now() - instant.parse(min(waiting))) / 1000) if waiting else 0.0
        yield _make_gauge("connections", "Connections of peers that are open.", self._connections.taken)
        yield _make_gauge("incoming_waiting", "Incoming messages that wait to be written.", self._gateway.waiting)
        yield _make_gauge("outbox_messages", "Outgoing messages not yet delivered to all.", len(waiting))
        yield _make_gauge("outbox_oldest_seconds", "Age of the oldest of these.", oldest)
        yield _make_gauge("ready", "1 if mail can be kept.", 0 if self._readiness.current_problem() else 1)
        peers = GaugeMetricFamily(f"{PREFIX}_peers", "Peers by the outcome of the last try.", labels=["reached"])
        peers.add_metric(["yes"], reached)
        peers.add_metric(["no"], away)
        yield peers

    def metrics_text(self) -> bytes:
        """Return everything in Prometheus's text format."""
        return generate_latest(self._registry)


def _make_gauge(name: str, said: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", said, value)
