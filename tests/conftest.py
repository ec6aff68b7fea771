"""How every test runs: the same examples each time, and no verdict that depends on how busy the machine is.

``--hypothesis-profile=long`` looks at far more examples, other ones each time; it prints how to repeat one.

And the program in a scratch directory, without and with a mailbox.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

from agent_mailbox.core import proofs
from agent_mailbox.core.records import USER
from agent_mailbox.mailbox import open_mailbox
from tests.door import switches
from tests.helpers import PRODUCT, Post, Program

if TYPE_CHECKING:
    from pathlib import Path

switches.switch_now()
os.environ[switches.STATE] = tempfile.mkdtemp(prefix="agent-mailbox-")
atexit.register(shutil.rmtree, os.environ[switches.STATE], ignore_errors=True)
"""The records of what tests do within their own process: never the user's."""
PRODUCT["nobody"], open_mailbox.nobody = (
    open_mailbox.nobody,
    lambda who: proofs.TERMINAL if who == USER else proofs.of_session(who),
)
"""Within a test everyone is whom it says; tests of who is whom use real processes."""

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell has its background jobs ignore Ctrl-C, and the commands that tests interrupt would inherit that."""

settings.register_profile(
    "mailbox",
    max_examples=60,
    derandomize=True,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a clock's verdict as well
)
settings.register_profile("push", settings.get_profile("mailbox"), max_examples=25)  # it is not kept waiting
settings.register_profile("drawn", settings.get_profile("push"), phases=(Phase.explicit, Phase.generate))  # a mutant
settings.register_profile("long", settings.get_profile("mailbox"), derandomize=False, max_examples=5_000)
settings.load_profile("mailbox")


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test opens in this process keeps its records where its program does, and not among the user's own."""
    monkeypatch.setenv(switches.STATE, str(tmp_path / "home/.local/state/agent-mailbox"))


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program, no mailbox yet."""
    return Program(tmp_path)


@pytest.fixture
def post(tmp_path: Path) -> Post:
    """The program with an empty mailbox."""
    return Post(tmp_path)
