"""One real server for all tests of a run's process, and a file with its token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .nats_server import TOKEN, serving
from .pair import MACHINES, Pair
from .two import Two

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.helpers import Program


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps its files."""
    return tmp_path_factory.mktemp("nats")


@pytest.fixture(scope="session")
def server(place: Path) -> Iterator[str]:
    """The URL of a server that all tests share, each with a space of its own."""
    with serving(place / "server") as url:
        yield url


@pytest.fixture(scope="session")
def credential(place: Path) -> str:
    """A file with the server's token."""
    path = place / "token"
    path.touch(0o600)
    path.write_text(TOKEN + "\n")
    return str(path)


@pytest.fixture
def pair(program: Program, server: str, credential: str) -> Pair:
    """Two mailboxes, not joined."""
    return Pair(program, server, credential)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


@pytest.fixture
def dark(program: Program, credential: str, tmp_path: Path) -> Iterator[tuple[Pair, int]]:
    """Two machines of a space, and the process of its server."""
    with serving(tmp_path / "server") as url:
        pair = Pair(program, url, credential)
        for machine, who in zip(MACHINES, ("ann", "ben"), strict=True):
            pair.join(machine)
            pair.ok(machine, "roster", "register", "--session-id", who, "--role", "dev")
        yield pair, int((tmp_path / "server/pid").read_text())
