"""The real client in a project of its own: what the tests of this directory share.

The client comes from its package registry, pinned, once into the user's cache; where that cannot be had, these tests
are skipped and say why.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_mailbox.known_clients.claude_code import CLAUDE_CODE
from agent_mailbox.known_clients.codex import CODEX
from agent_mailbox.known_clients.every_client import KNOWN
from tests import browsers
from tests.e2e import shown
from tests.e2e.client import Client, client_program
from tests.e2e.codex_client import Codex
from tests.e2e.responses import Responses
from tests.e2e.standin import StandIn
from tests.e2e.worker import Worker
from tests.helpers import TOOLS, Post

if TYPE_CHECKING:
    from collections.abc import Iterator


browser, chromium = browsers.browser, browsers.chromium


def pytest_configure(config: pytest.Config) -> None:
    """Record what the run shows, if that is asked for."""
    config.addinivalue_line("markers", f"{shown.MARK}(client, abilities, by): the test is the proof of these abilities")
    for client in KNOWN:
        config.addinivalue_line("markers", f"{client.name.replace('-', '_')}: the test shows something of it")
    if (into := os.environ.get(shown.INTO)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(shown.Recorder(Path(into)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put into each test's report what it shows."""
    shown.tell(items)


@pytest.fixture(scope="session")
def binary() -> Path:
    """The client's program."""
    return client_program(CLAUDE_CODE)


@pytest.fixture
def post(post: Post) -> Post:
    """The program with an empty mailbox, whose person lets mail wake a session at once after another wake."""
    post.settings = "[wake]\ngap_seconds = 0\n"
    post.configure("")
    return post


@pytest.fixture
def on_path(post: Post) -> None:
    """The program is on the PATH, as it is for people."""
    post.env["PATH"] = f"{TOOLS}:{post.env['PATH']}"


@pytest.fixture
def client(post: Post, binary: Path) -> Iterator[Client]:
    """The client, a mailbox, and the model's stand-in."""
    with StandIn() as model:
        yield Client(post, binary, model)


@pytest.fixture
def worker(client: Client) -> Worker:
    """A session that has a lead."""
    return Worker(client)


@pytest.fixture
def codex(post: Post) -> Iterator[Codex]:
    """Codex, a mailbox, and the model's stand-in."""
    with Responses() as model:
        yield Codex(post, client_program(CODEX), model)
