"""Fixtures of the hooks' tests."""

from __future__ import annotations

import pytest

from tests.claude.asking import LEAD
from tests.claude.house import House
from tests.claude.shim import ME, NEW, Shim
from tests.helpers import (
    PATIENCE,
    Post,
    Program,
    copy_package,
)


@pytest.fixture
def shim(post: Post) -> Shim:
    """A checkout with the guard, and a session that started there and has nothing to read."""
    made = Shim(post)
    assert NEW in made.hook("SessionStart").raw
    assert made.starts() == 1
    return made


@pytest.fixture
def led(post: Post) -> Post:
    """A mailbox with a session that has a lead."""
    post.register(LEAD)
    post.register(ME, "--lead", LEAD)
    post.file("config.toml").write_text(f"[control]\ntimeout = {PATIENCE}\n")
    return post


@pytest.fixture
def house(program: Program) -> House:
    """A project without any settings."""
    return House(program)


@pytest.fixture
def copied(house: House) -> House:
    """The same with a copy of the package for an installed one: no ``hooks/``, no ``.venv`` beside it."""
    package = copy_package(house.program.scratch / "site packages")
    house.program.env["PYTHONPATH"] = str(package.parent)
    return house
