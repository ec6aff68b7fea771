"""A real browser without a screen: Debian's chromium; what needs it is skipped where there is none.

Its headless shell is the same engine without windows, and starts and draws faster: it is taken where it is there.
``AGENT_MAILBOX_BROWSER`` names another program.

A package whose tests drive it imports both fixtures into its ``conftest.py``. Imported into a test's module, they would
live as long as the session, and the next package could start no browser.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.helpers import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("AGENT_MAILBOX_BROWSER") or next(filter(None, map(shutil.which, _PROGRAMS)), None)
BROWSER_PATIENCE = PATIENCE * 1000
"""Milliseconds after which what a page should show counts as missing."""


@contextmanager
def opened() -> Iterator[Browser]:
    """Run the browser for a ``with`` block."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=BROWSER_PATIENCE)
    with sync_playwright() as driver:
        # As root there is no sandbox to be had; what is opened is our own page.
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield made
        made.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A browser for a package's tests; while it is there its driver's loop runs, which other tests must not meet."""
    if CHROMIUM is None:
        pytest.skip("no chromium here (on Debian: apt-get install chromium-headless-shell)")
    with opened() as made:
        yield made


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser, for a test; its windows are closed after it."""
    yield chromium
    for context in chromium.contexts:
        context.close()
