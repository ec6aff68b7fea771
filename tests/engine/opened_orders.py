"""The way of one machine to a space of an engine, as its tests open it."""

from __future__ import annotations

from agent_mailbox.space.nats.connection import NatsConnection
from agent_mailbox.space.nats.nats_order import NatsOrder
from agent_mailbox.space.postgres.postgres_connection import PostgresConnection
from agent_mailbox.space.postgres.postgres_order import PostgresOrder


def open_nats(
    url: str, space: str, machine: str, credential: str | None = None, authority: str | None = None, wait: float = 5.0
) -> NatsOrder:
    return NatsOrder(NatsConnection(url, credential, authority, wait), space, machine)


def open_postgres(
    url: str, space: str, machine: str, credential: str | None = None, authority: str | None = None, wait: float = 5.0
) -> PostgresOrder:
    return PostgresOrder(PostgresConnection(url, credential, authority, wait), space, machine)
