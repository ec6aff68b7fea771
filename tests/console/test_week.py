"""A week of forty agents and 20,000 messages: every view in each look. Long, so ``scripts/night`` runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console import week
from tests.console.conftest import Running, Window
from tests.console.screenshots import LOOKS, paths
from tests.night import NIGHT

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.helpers import Post

COUNT = 20_000


@pytest.mark.skipif(not NIGHT, reason="takes minutes: scripts/night console")
def test_every_view_of_a_week_in_each_look(post: Post, browser: Browser, axe: Path) -> None:
    """axe finds nothing, nothing reaches beyond the window's side, no script fails, no document is large."""
    made = week.week(str(post.box), COUNT)
    wrong = {}
    with Running(post) as console:
        console.enter()
        for look, (scheme, how) in LOOKS.items():
            window = Window(browser, console, color_scheme=scheme, reduced_motion="reduce", **how)
            for view, path in paths(made).items():
                page = window.go(path)
                found = window.axe(axe)
                if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                    found.append("reaches beyond the side")
                if page.evaluate("document.querySelectorAll('*').length") > 6000:
                    found.append("is a large document")
                found += window.problems
                window.problems.clear()
                if found:
                    wrong[view, look] = found
    assert wrong == {}, wrong
