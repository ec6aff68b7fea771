"""The engines that keep an order: NATS and PostgreSQL.

Belongs here: what is one or the other. A command that asks the replicator imports neither (``space.open_replica``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .nats import nats_order
from .nats.nats_files import NatsFiles
from .postgres import postgres_order
from .postgres.postgres_files import PostgresFiles

if TYPE_CHECKING:
    from .order.order import SpaceOrder
    from .order.space_files import SpaceFiles


def open_way(
    is_postgres: bool, url: str, space: str, machine: str, credential: str | None, authority: str | None, wait: float
) -> SpaceOrder:
    """Return the way of a machine to a space; connects at the first call."""
    opened = postgres_order.open_order if is_postgres else nats_order.open_order
    return opened(url, space, machine, credential, authority, wait)


def files_of(order: SpaceOrder) -> SpaceFiles:
    """Return the way to the files of a space, over the connection of its order."""
    if isinstance(order, nats_order.NatsOrder):
        return NatsFiles(order)
    if isinstance(order, postgres_order.PostgresOrder):
        return PostgresFiles(order)
    raise TypeError(f"order has no files: {order!r}")
