"""How every test runs: the same examples each time, and no verdict that depends on how busy the machine is.

``--hypothesis-profile=long`` looks at far more examples, other ones each time; it prints how to repeat one.

And the program in a scratch directory, without and with a mailbox.
"""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import providers

from agent_mailbox.core import proofs
from agent_mailbox.core.records import USER
from agent_mailbox.mailbox import open_mailbox
from tests.door import switches
from tests.helpers import PRODUCT, Post, Program, left_open

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

switches.switch_now()
os.environ[switches.STATE] = "/dev/null/records"
"""Before the first test nothing is recorded within this process, least of all among the user's records."""
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
settings.register_profile("push", settings.get_profile("mailbox"), max_examples=20)  # it is not kept waiting
settings.register_profile("drawn", settings.get_profile("push"), phases=(Phase.explicit, Phase.generate))  # a mutant
settings.register_profile("long", settings.get_profile("mailbox"), derandomize=False, max_examples=5_000)
settings.load_profile("mailbox")


def pytest_configure(config: pytest.Config) -> None:
    """Have no draw depend on the modules that are loaded: Hypothesis takes constants from their source, and which they
    are hangs on the tests that a worker ran before. A long look takes them, too."""
    if config.getoption("--hypothesis-profile") != "long":
        vars(providers)["is_local_module_file"] = lambda _: False


LONGEST = (
    "test_axe_finds_nothing_on_any_page",
    "test_a_leader_that_is_killed_loses_nothing",
    "test_nothing_that_a_worker_does_frees_it",
    "test_every_view_shows_what_it_is_for_with_script_and_without",
    "test_hostile_lines_cost_little_and_hide_nothing",
    "test_the_same_seed_is_the_same_trace_byte_for_byte",
    "test_an_export_holds_a_few_messages_at_a_time",
    "test_hostile_mail_does_nothing_wherever_it_is_shown",
)
"""Each takes a worker more than ten seconds."""
TOGETHER = ("test_layers.py", "test_measures.py")
"""The tests of each have the sources parsed once: one worker runs them all."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have the longest tests begin first: the end of a run waits for the one that began last. Behind them come those
    that no other worker is to take over, which are taken from the end."""
    items.sort(key=lambda item: 0 if item.name.startswith(LONGEST) else 1 if item.path.name in TOGETHER else 2)


def pytest_collectstart() -> None:
    """Have the collector not look at what thousands of tests are, now and later: nothing of that is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """It looks at what comes from now on."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def shared_records(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the fixtures of several tests open in this process keeps its records in a place that goes with the run."""
    os.environ[switches.STATE] = str(tmp_path_factory.mktemp("records"))


@pytest.fixture(autouse=True)
def own_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test opens in this process keeps its records where its program does, and not among the user's own. It
    leaves none of its files open: a replicator or a console that did so would run out of descriptors."""
    monkeypatch.setenv(switches.STATE, str(tmp_path / "home/.local/state/agent-mailbox"))
    yield
    assert not (left := left_open(tmp_path)), f"left open: {left}"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program, no mailbox yet."""
    return Program(tmp_path)


@pytest.fixture
def post(tmp_path: Path) -> Post:
    """The program with an empty mailbox."""
    return Post(tmp_path)
