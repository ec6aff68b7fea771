"""The files of a space, by the engine that keeps its order: NATS or PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .nats.nats_files import NatsFiles
from .nats.nats_order import NatsOrder
from .postgres.postgres_files import PostgresFiles
from .postgres.postgres_order import PostgresOrder

if TYPE_CHECKING:
    from .order.order import SpaceOrder
    from .order.space_files import SpaceFiles


def files_of(order: SpaceOrder) -> SpaceFiles:
    """Return the way to the files of a space, over the connection of its order."""
    if isinstance(order, NatsOrder):
        return NatsFiles(order)
    if isinstance(order, PostgresOrder):
        return PostgresFiles(order)
    raise TypeError(f"order has no files: {order!r}")
