"""Fixtures: the program in a scratch directory, without and with a mailbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers import Post, Program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program, no mailbox yet."""
    return Program(tmp_path)


@pytest.fixture
def post(tmp_path: Path) -> Post:
    """The program with an empty mailbox."""
    return Post(tmp_path)
