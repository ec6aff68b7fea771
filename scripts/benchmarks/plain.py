"""The mailbox scheme written plainly: two JSONL files, full scan, set difference. What the benchmarks compare with.

This is what the protocol's text says, with the libraries one would reach for (click, orjson, portalocker) and no
cleverness: ``check`` reads both files, keeps what is addressed to the session, not expired and not read (a role's mail:
not read by anybody), prints it and appends the reads; ``send`` appends a line under a lock and syncs it.
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import orjson
import portalocker

MESSAGES, READS, ROSTER = "agent-mailbox.jsonl", "agent-mailbox-reads.jsonl", "agent-roster.jsonl"
TTL_HOURS = {"direct": 24, "role": None, "tag": 72, "broadcast": 4}
DIRECTORY = click.option("--dir", "directory", type=click.Path(path_type=Path), default=Path("data"))


def load(path: Path) -> list[dict[str, Any]]:
    """Every record of a file."""
    if not path.exists():
        return []
    with path.open("rb") as file:
        return [orjson.loads(line) for line in file if line.strip()]


def append(path: Path, records: list[dict[str, Any]]) -> None:
    """Add records durably, alone."""
    with portalocker.Lock(path, "ab", timeout=10) as file:
        file.write(b"".join(orjson.dumps(record) + b"\n" for record in records))
        file.flush()
        os.fsync(file.fileno())


def tags_of(session: str, directory: Path) -> set[str]:
    """The session's tags, roles among them, by its last roster entry that says any."""
    mine = [e for e in load(directory / ROSTER) if e["session_id"] == session and e.get("tags") is not None]
    return set(mine[-1]["tags"]) if mine else set()


def mode_of(recipient: str) -> str:
    """How a recipient is addressed."""
    if recipient == "all":
        return "broadcast"
    if recipient.startswith("role:"):
        return "role"
    return "tag" if ":" in recipient else "direct"


def expired(message: dict[str, Any], now: datetime) -> bool:
    """Is the message past its time to live, its own or its mode's?"""
    hours = message.get("ttl_hours") or TTL_HOURS[mode_of(message["recipient"])]
    return hours is not None and now >= datetime.fromisoformat(message["timestamp"]) + timedelta(hours=hours)


def unread(session: str, directory: Path, now: datetime) -> list[dict[str, Any]]:
    """The set difference: mail for the session, minus what was read."""
    mine = {session, "all", *tags_of(session, directory)}
    reads = load(directory / READS)
    read_by_me = {read["message_id"] for read in reads if read["reader_session_id"] == session}
    claimed = {read["message_id"] for read in reads}
    return [
        message
        for message in load(directory / MESSAGES)
        if message["recipient"] in mine
        and message["sender"] != session
        and message["id"] not in (claimed if mode_of(message["recipient"]) == "role" else read_by_me)
        and session not in message["read_by"]
        and not expired(message, now)
    ]


def stamp(now: datetime) -> str:
    """An instant as the files hold it."""
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@click.group()
def cli() -> None:
    """Mail between agents, plainly."""


@cli.command()
@click.option("--session", required=True)
@DIRECTORY
def check(session: str, directory: Path) -> None:
    """Show unread mail and mark it as read."""
    now = datetime.now(UTC)
    messages = unread(session, directory, now)
    for message in messages:
        click.echo(f"{message['id']}  {message['sender']}, {message['timestamp']}\n{message['content']}\n")
    click.echo(f"{len(messages)} unread")
    if messages:
        read = {"reader_session_id": session, "timestamp": stamp(now)}
        append(directory / READS, [{"message_id": message["id"], **read} for message in messages])


@cli.command()
@click.option("--from", "sender", required=True)
@click.option("--to", "recipient", required=True)
@click.option("--body", required=True)
@DIRECTORY
def send(sender: str, recipient: str, body: str, directory: Path) -> None:
    """Append one message."""
    message = {"id": str(uuid.uuid4()), "sender": sender, "recipient": recipient, "timestamp": stamp(datetime.now(UTC))}
    append(directory / MESSAGES, [{**message, "content": body, "thread": None, "ttl_hours": None, "read_by": []}])
    click.echo(f"sent {message['id']}")


if __name__ == "__main__":
    cli()
