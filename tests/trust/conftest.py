"""The scene, for every attack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trust.scene import Scene

if TYPE_CHECKING:
    from tests.helpers import Post


@pytest.fixture
def scene(post: Post) -> Scene:
    """A worker that has a client and a lead."""
    return Scene(post)
