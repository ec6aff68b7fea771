"""How every test runs: the same examples each time, and no verdict that depends on how busy the machine is.

``--hypothesis-profile=long`` looks at far more examples, other ones each time; it prints how to repeat one.

And the program in a scratch directory, without and with a mailbox; and a browser, one for all tests of a process: its
driver runs a loop of which there can be but one.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers import Post, Program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
settings.register_profile(
    "mailbox",
    derandomize=True,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a clock's verdict as well
)
settings.register_profile("long", settings.get_profile("mailbox"), derandomize=False, max_examples=5_000)
settings.load_profile("mailbox")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program, no mailbox yet."""
    return Program(tmp_path)


@pytest.fixture
def post(tmp_path: Path) -> Post:
    """The program with an empty mailbox."""
    return Post(tmp_path)


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser, for a test; its windows are closed after it."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A real browser, without a screen."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        pytest.skip("no chromium here (on Debian: apt-get install chromium)")
    with sync_playwright() as driver:
        # As root there is no sandbox to be had; what is opened is our own page.
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()
