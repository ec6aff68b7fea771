"""``scripts/screenshots``: the pictures of README, from a mailbox as a day of work leaves it.

With ``--week DIR`` every view of a week of forty agents, in each look, to be looked at.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tests.conftest  # noqa: F401 - in this process each agent may act
from tests import browsers
from tests.console import scene, week
from tests.console.conftest import Running
from tests.helpers import ROOT, Post

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDE = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
PICTURES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("waiting-light", "/", "light", WIDE),
    ("waiting-dark", "/", "dark", WIDE),
    ("waiting-phone", "/", "light", PHONE),
    ("channel-light", "/channel?to=project:inscription&open={thread}", "light", WIDE),
    ("channel-phone", "/channel?to=project:inscription", "dark", PHONE),
    ("agents-light", "/agents", "light", WIDE),
    ("agents-phone", "/agents", "light", PHONE),
    ("timeline-light", "/timeline", "light", WIDE),
    ("timeline-dark", "/timeline", "dark", WIDE),
    ("dead-dark", "/dead?open={dead}", "dark", WIDE),
    ("search-light", "/search?q=index", "light", WIDE),
    ("agent-light", "/agent?id={ines}", "light", WIDE),
    ("transcript-dark", "/transcript?id={ines}", "dark", WIDE),
    ("tasks-light", "/tasks", "light", WIDE),
    ("fleet-light", "/fleet", "light", WIDE),
    ("fleet-dark", "/fleet", "dark", WIDE),
)
VIEWS = {
    "waiting": "/",
    "channel": "/channel?to=project:payments-api",
    "topic": "/channel?to=project:payments-api&topic=release 12",
    "opened": "/channel?to=project:payments-api&open={opened}",
    "agents": "/agents",
    "agent": "/agent?id={agent}",
    "direct": "/direct?with={agent}",
    "fleet": "/fleet",
    "dead": "/dead",
    "all": "/archive",
    "search": "/search?q=index",
    "timeline": "/timeline?hours=168",
    "tasks": "/tasks",
    "decided": "/decided",
    "channels": "/channels",
    "new": "/new",
}
"""The views of a week, by name."""
LOOKS: dict[str, tuple[str, dict[str, Any]]] = {
    "light": ("light", {"viewport": {"width": 1440, "height": 900}}),
    "dark": ("dark", {"viewport": {"width": 1440, "height": 900}}),
    "phone": ("light", PHONE),
    "wide": ("light", {"viewport": {"width": 2560, "height": 1300}}),
}
KEPT = (
    "waiting-light",
    "waiting-dark",
    "waiting-phone",
    "channel-light",
    "fleet-light",
    "timeline-dark",
    "tasks-light",
    "transcript-dark",
)
"""Those that README shows."""


def take(browser: Browser, console: Running, made: scene.Scene, target: Path, names: tuple[str, ...]) -> None:
    """Make the pictures of these names."""
    name, _, value = console.cookie.partition("=")
    plate = next(m["id"] for m in console.post.objects("agent-mailbox.jsonl") if m.get("subject") == "Plate 9")
    words = {"ines": made.ids["Ines"], "thread": made.frozen, "dead": plate}
    for picture, path, scheme, how in PICTURES:
        if picture not in names:
            continue
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce", **how)  # type: ignore[arg-type]
        context.add_cookies([{"name": name, "value": value, "url": console.url}])
        page = context.new_page()
        page.goto(console.url.rstrip("/") + path.format(**words))
        page.wait_for_selector(".link-state.live")
        page.evaluate("document.querySelector('.where')?.remove()")
        page.screenshot(path=target / f"{picture}.png")
        _shrink(target / f"{picture}.png")
        context.close()


def paths(made: week.Week) -> dict[str, str]:
    """The addresses of the views of a week."""
    opened = next(m["id"] for m in reversed(_lines(made)) if m.get("thread") and m["type"] != "control")
    words = {"agent": made.ids["Viktor"], "opened": opened}
    return {name: path.format(**words) for name, path in VIEWS.items()}


def _lines(made: week.Week) -> list[dict[str, Any]]:
    text = Path(made.mailbox.logs.messages.path).read_text(encoding="utf-8")
    return [{"type": "message", **json.loads(line)} for line in text.splitlines()]


def take_week(browser: Browser, console: Running, made: week.Week, target: Path) -> None:
    """Make a picture of every view in each look."""
    name, _, value = console.cookie.partition("=")
    for look, (scheme, how) in LOOKS.items():
        context = browser.new_context(color_scheme=scheme, reduced_motion="reduce", **how)  # type: ignore[arg-type]
        context.add_cookies([{"name": name, "value": value, "url": console.url}])
        page = context.new_page()
        for view, path in paths(made).items():
            page.goto(console.url.rstrip("/") + path)
            page.wait_for_selector(".link-state.live")
            page.screenshot(path=target / f"{view}-{look}.png")
        context.close()


def _shrink(picture: Path) -> None:
    """Leave it 128 colours, a third of the size, where Pillow is installed."""
    if find_spec("PIL") is not None:
        image = import_module("PIL.Image")
        image.open(picture).convert("RGB").quantize(128, dither=0).save(picture, optimize=True)


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(prog="scripts/screenshots")
    parser.add_argument("--all", metavar="DIR", type=Path, help="every view, into DIR (default: README's alone)")
    parser.add_argument("--week", metavar="DIR", type=Path, help="every view of a week of 20,000 messages, into DIR")
    given = parser.parse_args()
    target = given.week or given.all or ROOT / "docs/screenshots"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screenshots-") as scratch:
        place = Path(scratch) / "inscription"  # which the pages show as the mailbox's name
        place.mkdir()
        post = Post(place)
        made = week.week(str(post.box)) if given.week else scene.day(str(post.box))
        with Running(post) as console, browsers.opened() as browser:
            names = tuple(picture[0] for picture in PICTURES) if given.all else KEPT
            console.enter()
            if isinstance(made, week.Week):
                take_week(browser, console, made, target)
            else:
                take(browser, console, made, target, names)


if __name__ == "__main__":
    main()
