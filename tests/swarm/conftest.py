"""One certificate authority for all, and machines that are gone when a test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.swarm.machine import Authority, Machine

Make = Callable[..., Machine]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def machine(tmp_path: Path, authority: Authority) -> Iterator[Make]:
    """Make a machine; its gateway ends with the test."""
    yield from making(Machine, tmp_path, authority)


def making(kind: type[Machine], scratch: Path, authority: Authority) -> Iterator[Make]:
    """Give what makes machines of a kind, and end them all."""
    made: list[Machine] = []

    def make(agent: str, **settings: Any) -> Machine:
        made.append(kind(scratch, agent, authority, **settings))
        return made[-1]

    yield make
    for one in made:
        one.kill()
