"""One real server for all tests of a run's process, and a file with its token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .nats_server import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
